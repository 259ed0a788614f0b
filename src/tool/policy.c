/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools configuration leaves. Deny wins; an allow list that is not empty keeps only what it names; `group:files`
 * stands for a family. Lists are shared by all dialects, so a dialect's tool is also judged by the native tools whose
 * power it has: denying write_file takes away OpenPaw's overwrite_file as well, otherwise a change of dialect would
 * open the gate. A name that nobody has stops the start: a misspelt denial must not pass as one.
 */
#include "tool/dialect.h"

#define NAMES_MAX 1024

/* Tools of the systems whose dialects there are that Stead does not offer: a list that was written for one of those
   systems may name them. Allowing or denying what is not there means nothing, so it does no harm. */
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

static bool has_name(struct str name)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (str_is(name, elsewhere[i]))
			return true;
	for (const struct dialect *const *d = dialects; *d; d++)
		for (const struct tool *t = dialect_next(*d, NULL); t; t = dialect_next(*d, t)) {
			if (str_is(name, t->name))
				return true;
			if (str_starts(name, STR("group:")) && str_is(str_from(name, 6), t->family))
				return true;
		}
	return false;
}

static const char *nearest_name(struct str name)
{
	/* clang-format off */
	static const char *const families[] = {
		"group:files",
		"group:artifacts",
		"group:history",
		"group:forks",
		"group:notes",
		"group:tasks",
		"group:sessions",
		"group:plan",
		"group:memory",
		"group:skills",
		"group:knowledge",
		"group:subagents",
		"group:uploads",
	};
	/* clang-format on */
	const char *names[NAMES_MAX];
	size_t n = 0;

	for (; n < sizeof(families) / sizeof(families[0]); n++)
		names[n] = families[n];
	for (const struct dialect *const *d = dialects; *d; d++)
		for (const struct tool *t = dialect_next(*d, NULL); t && n < NAMES_MAX; t = dialect_next(*d, t))
			names[n++] = t->name;
	return str_nearest(name, names, n);
}

/* With servers of others, a name may be a tool of theirs; one that is nearly a tool's is a slip all the same. */
static int check_list(const struct jv *list, const char *key, bool has_servers, struct err *err)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str name = jv_str_of(m->value);
		const char *nearest;

		if (has_name(name))
			continue;
		nearest = nearest_name(name);
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

static bool lists(const struct jv *list, struct str name, const char *family)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str entry = jv_str_of(m->value);

		if (str_eq(entry, name))
			return true;
		if (family && str_starts(entry, STR("group:")) && str_is(str_from(entry, 6), family))
			return true;
	}
	return false;
}

bool policy_offers(const struct policy *policy, const struct tool *tool)
{
	struct str name = str_of(tool->name), powers = str_of(tool->acts_as), needs = str_of(tool->needs), power;
	bool allowed = true;

	if (lists(policy->deny, name, tool->family))
		return false;
	while (needs.len && str_cut(&needs, ' ', &power))
		if (lists(policy->deny, power, "files"))
			return false;
	while (powers.len && str_cut(&powers, ' ', &power)) {
		if (lists(policy->deny, power, NULL))
			return false;
		if (policy->allow && !lists(policy->allow, power, NULL))
			allowed = false;
	}
	if (!policy->allow || lists(policy->allow, name, tool->family))
		return true;
	return tool->acts_as && allowed;
}
