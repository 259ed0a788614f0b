/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools configuration leaves. Deny wins; an allow list that is not empty keeps only what it names; `group:files`
 * stands for a family. Lists are shared by all dialects, so a dialect's tool is also judged by the native tools whose
 * power it has: denying write_file takes away OpenPaw's overwrite_file as well, otherwise a change of dialect would
 * open the gate. A name that no tool has is an error at start, so that a misspelt denial
 * is not ignored.
 */
#include "tool/call.h"
#include "tool/dialect.h"

#define NAMES_MAX 1024

/* Tools that the dialects' systems have and Stead does not offer. A list that was written for one of those systems may
   name them; allowing or denying them has no effect. */
static const char *const elsewhere[] = {"execute",
					"execute_shell_command",
					"shell",
					"bash",
					"agent_spawn",
					"agent_send",
					"agent_list",
					"agent_generate",
					"task_output",
					"task_cancel",
					"task_list",
					"wait_async_results",
					"web_fetch",
					"web_search",
					"team",
					"spawn_agent",
					"get_subagent_result",
					"cancel_subagent",
					"schedule_at",
					"schedule_every",
					"list_scheduled",
					"cancel_scheduled",
					"request_followup",
					"send_message",
					"send_file",
					"browse_channel_history",
					"brave_search",
					"text_to_speech",
					"markdown_to_pdf"};

/* All names that a list may have: families and parts of them as "group:NAME", and every dialect's tools. A name may
   occur several times. */
static size_t all_names(struct arena *arena, const char **names)
{
	const struct dialect *d;
	size_t n = 0;

	for (size_t i = 0; families[i]; i++)
		names[n++] = arena_printf(arena, "group:%s", families[i]->name).ptr;
	for (size_t i = 0; (d = dialect_at(i)); i++)
		for (struct tool_walk w = {.dialect = d}; tool_next(&w) && n + 2 < NAMES_MAX;) {
			names[n++] = w.tool->name;
			if (w.tool->group)
				names[n++] = arena_printf(arena, "group:%s", w.tool->group).ptr;
		}
	for (size_t i = 0; i < COUNT(elsewhere); i++)
		names[n++] = elsewhere[i];
	return n;
}

/* With MCP servers configured, a name may be a tool of theirs; one that is close to a native name is still an error. */
static int check_list(const struct jv *list, const char *key, bool has_servers, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *names[NAMES_MAX + COUNT(elsewhere)];
	size_t count = jv_count(list) ? all_names(arena, names) : 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str name = jv_str_of(m->value);
		const char *nearest;
		size_t i = 0;

		while (i < count && !str_is(name, names[i]))
			i++;
		if (i < count)
			continue;
		nearest = str_nearest(name, names, count);
		if (nearest)
			return err_set(err, ERR_INVALID, "tools %s: there is no tool \"%.*s\"; did you mean \"%s\"?",
				       key, STR_ARG(name), nearest);
		if (!has_servers)
			return err_set(err, ERR_INVALID,
				       "tools %s: there is no tool \"%.*s\"; `stead tools` lists them", key,
				       STR_ARG(name));
	}
	return 0;
}

int policy_init(struct policy *policy, const struct config *config, struct err *err)
{
	bool has_servers = jv_count(config->mcp_servers) > 0;
	int r;

	policy->allow = jv_count(config->tools_allow) ? config->tools_allow : NULL;
	policy->deny = config->tools_deny;
	r = check_list(policy->allow, "allow", has_servers, err);
	return r ? r : check_list(policy->deny, "deny", has_servers, err);
}

static bool lists(const struct jv *list, struct str name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_str_of(m->value), name))
			return true;
	return false;
}

static bool lists_group(const struct jv *list, const char *group)
{
	for (const struct jv_member *m = jv_first(list); m && group; m = m->next) {
		struct str entry = jv_str_of(m->value);

		if (str_starts(entry, STR("group:")) && str_is(str_from(entry, 6), group))
			return true;
	}
	return false;
}

/* The family of a dialect's tool: the one of that name, or the one that has such a part. */
static const struct family *group_family(const char *group)
{
	for (size_t i = 0; group && families[i]; i++)
		if (str_is(str_of(group), families[i]->name))
			return families[i];
	for (struct tool_walk w = {.dialect = dialect_at(0)}; group && tool_next(&w);)
		if (w.tool->group && str_is(str_of(group), w.tool->group))
			return w.family;
	return NULL;
}

/* By its name, its part of the family, or its family. */
static bool lists_tool(const struct jv *list, const struct tool *tool, const struct family *family)
{
	if (jv_count(list) == 0)
		return false;
	family = family ? family : group_family(tool->group);
	return lists(list, str_of(tool->name)) || lists_group(list, tool->group) ||
	       (family && lists_group(list, family->name));
}

static bool lists_native(const struct jv *list, struct str name)
{
	for (struct tool_walk w = {.dialect = dialect_at(0)}; list && tool_next(&w);)
		if (str_is(name, w.tool->name))
			return lists_tool(list, w.tool, w.family);
	return false;
}

bool policy_offers(const struct policy *policy, const struct tool *tool, const struct family *family)
{
	struct str powers = str_of(tool->acts_as), needs = str_of(tool->needs), power;
	bool allowed = true;

	if (lists_tool(policy->deny, tool, family))
		return false;
	while (needs.len && str_cut(&needs, ' ', &power))
		if (lists_native(policy->deny, power))
			return false;
	while (powers.len && str_cut(&powers, ' ', &power)) {
		if (lists(policy->deny, power))
			return false;
		if (policy->allow && !lists(policy->allow, power))
			allowed = false;
	}
	if (!policy->allow || lists_tool(policy->allow, tool, family))
		return true;
	return tool->acts_as && allowed;
}
