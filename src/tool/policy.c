/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools configuration leaves. Deny wins; an allow list that is not empty keeps only what it names.
 *
 * Names are understood by their meaning. The lists are shared by all dialects, and a person may write them with the
 * names of any system: a tool, a family or part of one ("group:files"), or one of OpenPaw's builtins. Each name becomes
 * a set of native tools, and so does each tool of a dialect (the native tools whose power it uses). A tool is denied
 * when one of its native tools is, or when one of them could do what a denied tool does (`needs` in the tool table):
 * denying OpenPaw's overwrite_file denies write_file, and with it whatever creates or changes a file in any dialect.
 *
 * A name that no system has is an error at start, so that a misspelt denial is not ignored. Tools of MCP servers are
 * known only when their server runs: what looks like one ("SERVER__TOOL", with '*' for any) is left to the agent, if
 * tools.json has such a server.
 */
#include <ctype.h>

#include "base/utf8.h"
#include "text/glob.h"
#include "tool/call.h"
#include "tool/dialect.h"

#define NAMES_MAX 1024

/* What OpenPaw calls a builtin: a name for some tools, in a group. Native names where Stead has the tools; the others
   are known so that a list which names them is understood. */
static const struct builtin {
	const char *name, *group, *tools;
} builtins[] = {
	{"task_tracker", "automation", "create_task list_tasks update_task get_task delete_task"},
	{"plan", "automation", "plan_enter plan_write plan_read plan_exit todo_write todo_read"},
	{"spawn", "automation",
	 "list_subagents get_subagent spawn_agent send_agent list_agents agent_output cancel_agent wait_agents "
	 "get_subagent_result cancel_subagent agent_spawn agent_send agent_list task_output task_cancel task_list "
	 "wait_async_results spawn_subagents"},
	{"cron", "automation", "schedule_at schedule_every list_scheduled cancel_scheduled"},
	{"followup", "automation", "request_followup"},
	{"send_message", "communication", "send_message"},
	{"send_file", "communication", "send_file"},
	{"channel_history", "communication", "browse_channel_history"},
	{"memory_search", "memory", "session_search"},
	{"shell", "system", "execute"},
	{"browser", "web",
	 "browser_navigate browser_snapshot browser_click browser_type browser_select browser_scroll browser_back "
	 "browser_screenshot browser_close browser_tabs browser_switch_tab"},
	{"brave_search", "web", "web_search"},
	{"elevenlabs", "voice", "text_to_speech"},
	{"md2pdf", "document", "markdown_to_pdf"},
	{"file_persistence", "processor", "save_upload"},
	{"whisper", "processor", "speech_to_text"},
	{"timestamp", "processor", ""},
	{"docling", "processor", ""},
};

/* Further tools of the dialects' systems that Stead does not offer. */
static const char *const elsewhere[] = {"execute", "execute_shell_command", "bash", "team", "agent_generate"};

#define SUBAGENTS "subagents" /* the family whose tools are partly the agent's own */

/* --- sets of native tools --- */

static void set_add(struct tool_names *set, size_t index)
{
	if (index < TOOL_NAMES_MAX)
		set->bits[index / 64] |= (uint64_t)1 << (index % 64);
}

static bool set_has(const struct tool_names *set, size_t index)
{
	return index < TOOL_NAMES_MAX && (set->bits[index / 64] >> (index % 64) & 1);
}

static bool sets_meet(const struct tool_names *a, const struct tool_names *b)
{
	for (size_t i = 0; i < COUNT(a->bits); i++)
		if (a->bits[i] & b->bits[i])
			return true;
	return false;
}

static bool set_within(const struct tool_names *a, const struct tool_names *b)
{
	for (size_t i = 0; i < COUNT(a->bits); i++)
		if (a->bits[i] & ~b->bits[i])
			return false;
	return true;
}

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_of(words), one;

	while (rest.len && str_cut(&rest, ' ', &one))
		if (str_eq(one, word))
			return true;
	return false;
}

/* The native tools that `words` names. */
static struct tool_names natives_of(const char *words)
{
	struct tool_names set = {0};
	size_t i = 0;

	for (struct tool_walk w = {.dialect = dialect_at(0)}; words && tool_next(&w); i++)
		if (has_word(words, str_of(w.tool->name)))
			set_add(&set, i);
	return set;
}

static void set_join(struct tool_names *set, struct tool_names more)
{
	for (size_t i = 0; i < COUNT(set->bits); i++)
		set->bits[i] |= more.bits[i];
}

/* --- the meaning of a name --- */

static bool add_group(struct tool_names *set, struct str group)
{
	bool known = false;
	size_t i = 0;

	for (struct tool_walk w = {.dialect = dialect_at(0)}; tool_next(&w); i++)
		if (str_is(group, w.family->name) || (w.tool->group && str_is(group, w.tool->group))) {
			set_add(set, i);
			known = true;
		}
	for (i = 0; families[i]; i++)
		known |= str_is(group, families[i]->name);
	for (i = 0; i < COUNT(builtins); i++)
		if (str_is(group, builtins[i].group)) {
			set_join(set, natives_of(builtins[i].tools));
			known = true;
		}
	return known;
}

static bool add_builtin(struct tool_names *set, struct str name)
{
	for (size_t i = 0; i < COUNT(builtins); i++)
		if (str_is(name, builtins[i].name)) {
			set_join(set, natives_of(builtins[i].tools));
			return true;
		}
	return false;
}

/* Adds what `name` means. A name may be a builtin and a tool, and a tool in several dialects: it means all of them.
   False: no system has it. */
static bool add_meaning(struct tool_names *set, struct str name)
{
	const struct dialect *d;
	bool known;

	if (str_starts(name, STR("group:")))
		return add_group(set, str_from(name, 6));
	known = add_builtin(set, name);
	for (size_t i = 0; (d = dialect_at(i)); i++) {
		size_t index = 0;

		for (struct tool_walk w = {.dialect = d}; tool_next(&w); index++) {
			if (!str_is(name, w.tool->name))
				continue;
			known = true;
			if (i == 0)
				set_add(set, index);
			else if (!w.family) /* else it is the native tool of that name */
				set_join(set, natives_of(w.tool->acts_as));
		}
	}
	for (size_t i = 0; !known && i < COUNT(builtins); i++)
		known = has_word(builtins[i].tools, name);
	for (size_t i = 0; !known && i < COUNT(elsewhere); i++)
		known = str_is(name, elsewhere[i]);
	return known;
}

/* --- lists --- */

/* All names that a list may have. A name may occur several times. */
static size_t all_names(struct arena *arena, const char **names)
{
	const struct dialect *d;
	size_t n = 0;

	for (size_t i = 0; families[i]; i++)
		names[n++] = arena_printf(arena, "group:%s", families[i]->name).ptr;
	for (size_t i = 0; i < COUNT(builtins); i++)
		names[n++] = builtins[i].name;
	for (size_t i = 0; (d = dialect_at(i)); i++)
		for (struct tool_walk w = {.dialect = d}; tool_next(&w) && n + 2 < NAMES_MAX;) {
			names[n++] = w.tool->name;
			if (w.tool->group)
				names[n++] = arena_printf(arena, "group:%s", w.tool->group).ptr;
		}
	return n;
}

static int unknown_name(const char *key, struct str name, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *names[NAMES_MAX], *nearest = str_nearest(name, names, all_names(arena, names));

	if (nearest)
		return err_set(err, ERR_INVALID, "%s: there is no tool \"%.*s\"; did you mean \"%s\"?", key,
			       STR_ARG(name), nearest);
	return err_set(
		err, ERR_INVALID,
		"%s: there is no tool \"%.*s\"; `stead tools` lists them, and a rule of policy can deny tools of "
		"tools/ and of programs",
		key, STR_ARG(utf8_first(name, 100)));
}

/* An allowance or a time limit may be for a tool of tools/ or of a program, which is not known yet either. */
static bool may_be_outside(struct str name)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char *names[NAMES_MAX];

	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.ptr[i]) && !strchr("_-*", name.ptr[i]))
			return false;
	return name.len && str_find(name, STR("__"), 0) == SIZE_MAX &&
	       !str_nearest(name, names, all_names(arena, names));
}

/* The name of a server as it is in those of its tools: "my.server" is my_server there. */
static struct str as_offered(struct arena *arena, struct str server)
{
	struct str copy = arena_str(arena, server);

	for (size_t i = 0; i < copy.len; i++)
		if (copy.ptr[i] == '.')
			((char *)copy.ptr)[i] = '_';
	return copy;
}

/* A name that no system has: whether it may be one of an MCP server's tools. */
static int check_remote(const struct config *config, const char *key, struct str name, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	size_t first = str_find(name, STR("__"), 0);
	struct str server = str_first(name, first);
	const struct glob *glob;
	struct err ignored;

	if (first == SIZE_MAX || !server.len)
		return unknown_name(key, name, err);
	for (size_t end = first; end != SIZE_MAX; end = str_find(name, STR("__"), end + 1)) /* "a__b" is a name, too */
		if (glob_compile(arena, str_first(name, end), 0, &glob, &ignored) == 0)
			for (const struct jv_member *m = jv_first(config->mcp_servers); m; m = m->next)
				if (glob_match(glob, m->key) || glob_match(glob, as_offered(arena, m->key)))
					return 0;
	return err_set(err, ERR_INVALID,
		       "%s: \"%.*s\" is a tool of the MCP server \"%.*s\", and tools.json has no such server", key,
		       STR_ARG(utf8_first(name, 100)), STR_ARG(utf8_first(server, 60)));
}

/* `denies`: a name that does nothing would be a denial that is not made. */
static int read_list(const struct config *config, const struct jv *list, const char *key, bool denies,
		     struct tool_names *ret, struct err *err)
{
	int r = 0;

	for (const struct jv_member *m = jv_first(list); m && r == 0; m = m->next) {
		struct str name = jv_str_of(m->value);

		if (!add_meaning(ret, name) && (denies || !may_be_outside(name)))
			r = check_remote(config, key, name, err);
		else if (denies) /* "memory" is one system's tool for files, and a family here: both are meant */
			(void)add_group(ret, name);
	}
	return r;
}

/* Names that are keys: settings for a builtin that does not exist do nothing. */
static int check_builtins(const struct jv *object, struct err *err)
{
	struct tool_names ignored = {0};

	for (const struct jv_member *m = jv_first(object); m; m = m->next)
		if (!str_is(m->key, "allow") && !str_is(m->key, "deny") && !add_meaning(&ignored, m->key))
			return unknown_name("builtins", m->key, err);
	return 0;
}

static int check_timeouts(const struct config *config, struct err *err)
{
	const struct jv *overrides = jv_get(jv_get(config->document, "tool_timeouts"), "overrides");
	struct tool_names ignored = {0};
	int r = 0;

	for (const struct jv_member *m = jv_first(overrides); m && r == 0; m = m->next)
		if (!add_meaning(&ignored, m->key) && !may_be_outside(m->key))
			r = check_remote(config, "tool_timeouts.overrides", m->key, err);
	return r;
}

/* Of a gate or a rule, which with a misspelt name would be open. A server may be one that an editor or a user brings.
 */
static int check_gated(const char *key, struct str name, struct err *err)
{
	struct tool_names ignored = {0};

	if (add_meaning(&ignored, name) || may_be_outside(name) || str_find(name, STR("__"), 0) != SIZE_MAX)
		return 0;
	return unknown_name(key, name, err);
}

static int check_gates(const struct config *config, struct err *err)
{
	int r = 0;

	for (const struct jv_member *m = jv_first(jv_get(jv_get(config->document, "approval_gates"), "tools"));
	     m && r == 0; m = m->next)
		r = check_gated("approval_gates.tools", m->key, err);
	return r;
}

static bool is_pattern(struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (strchr("*?[{\\", name.ptr[i]))
			return true;
	return false;
}

/* A pattern may be for tools that are not there yet. */
static int check_rules(const struct config *config, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	int r = 0;

	for (const struct jv_member *m = jv_first(jv_get(jv_get(config->document, "policy"), "rules")); m && r == 0;
	     m = m->next) {
		struct str tool = str_lower(arena, jv_get_str(m->value, "tool")); /* as it is compared */

		if (tool.len && !is_pattern(tool))
			r = check_gated("policy.rules", tool, err);
	}
	return r;
}

int policy_init(struct policy *ret, const struct config *config, struct err *err)
{
	struct policy p = {.allow = config->tools_allow,
			   .deny = config->tools_deny,
			   .limits_builtins = config->builtins_allow != NULL};
	int r = read_list(config, config->tools_allow, "tools allow", false, &p.allowed, err);

	if (!r)
		r = read_list(config, config->tools_deny, "tools deny", true, &p.denied, err);
	if (!r)
		r = read_list(config, config->builtins_allow, "builtins.allow", true, &p.allowed_builtins, err);
	if (!r)
		r = check_builtins(jv_get(config->document, "builtins"), err);
	if (!r)
		r = check_timeouts(config, err);
	if (!r)
		r = check_gates(config, err);
	if (!r)
		r = check_rules(config, err);
	for (size_t i = 0; p.limits_builtins && i < COUNT(builtins); i++)
		set_join(&p.builtins, natives_of(builtins[i].tools));
	if (!r)
		*ret = p;
	return r;
}

/* --- tools that the agent adds --- */

static const struct builtin *builtin_of(struct str tool)
{
	for (size_t i = 0; i < COUNT(builtins); i++)
		if (has_word(builtins[i].tools, tool))
			return &builtins[i];
	return NULL;
}

bool tool_list_has_builtin_of(const struct jv *list, struct str tool)
{
	const struct builtin *b = builtin_of(tool);

	for (const struct jv_member *m = b ? jv_first(list) : NULL; m; m = m->next) {
		struct str name = jv_str_of(m->value), group = str_from(name, 6);

		if (!str_starts(name, STR("group:"))
			    ? str_is(name, b->name)
			    : str_is(group, b->group) || (str_is(group, SUBAGENTS) && str_is(STR("spawn"), b->name)))
			return true;
	}
	return false;
}

bool tool_is_of_builtin(struct str tool)
{
	return builtin_of(tool) != NULL;
}

/* --- one tool --- */

bool policy_denies(const struct policy *policy, const char *native)
{
	struct tool_names one = natives_of(native);

	return sets_meet(&one, &policy->denied);
}

/* A tool with no native counterpart is known by its name alone. */
static bool lists(const struct jv *list, const char *name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_is(jv_str_of(m->value), name))
			return true;
	return false;
}

/* The native tools whose denial denies this one: those it is, and those in whose place it could be used. */
static struct tool_names reach_of(const struct tool *tool, const struct tool_names *powers)
{
	struct tool_names reach = *powers;
	size_t i = 0;

	set_join(&reach, natives_of(tool->needs));
	for (struct tool_walk w = {.dialect = dialect_at(0)}; tool_next(&w); i++)
		if (set_has(powers, i))
			set_join(&reach, natives_of(w.tool->needs));
	return reach;
}

static bool is_allowed(const struct policy *policy, const struct tool *tool, const struct tool_names *own,
		       const struct tool_names *powers)
{
	static const struct tool_names none;

	if (!jv_count(policy->allow) || lists(policy->allow, tool->name))
		return true;
	if (sets_meet(own, &policy->allowed) && set_within(own, &policy->allowed))
		return true;
	return !set_within(powers, &none) && set_within(powers, &policy->allowed);
}

bool policy_offers(const struct policy *policy, const struct tool *tool, const struct family *family)
{
	struct tool_names powers = natives_of(tool->acts_as), own = powers, all, reach;

	if (!jv_count(policy->allow) && !jv_count(policy->deny) && !policy->limits_builtins)
		return true;
	if (family)
		own = natives_of(tool->name);
	all = own;
	set_join(&all, powers);
	reach = reach_of(tool, &all);
	if (lists(policy->deny, tool->name) || sets_meet(&reach, &policy->denied))
		return false;
	for (size_t i = 0; i < COUNT(all.bits); i++)
		if (all.bits[i] & policy->builtins.bits[i] & ~policy->allowed_builtins.bits[i])
			return false;
	return is_allowed(policy, tool, &own, &powers);
}

int tool_check_allowed(struct workspace *ws, const char *native, struct err *err)
{
	struct policy policy;
	int r = policy_init(&policy, workspace_config(ws), err);

	for (struct tool_walk w = {.dialect = dialect_at(0)}; r == 0 && tool_next(&w);)
		if (str_is(str_of(native), w.tool->name) && !policy_offers(&policy, w.tool, w.family))
			return err_set(err, ERR_DENIED,
				       "the configuration of this workspace does not allow the tool %s; work without "
				       "it, or ask the user",
				       native);
	return r;
}
