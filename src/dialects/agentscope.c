/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AgentScope's tools for files, sessions, plans, memory and skills. '/' is the whole workspace; a leading /workspace is
 * taken off. Kept: limit 0 reads all (up to the limit of one reply, with an offset to continue), create-only
 * write_file, literal grep_files, the forms "Written to", "Edited … (n replacement(s))", "[DIR]", "[FILE]", binary
 * files as base64, "Error:" before a failure. Not kept: an empty old_string (AgentScope loops on it forever), line ends
 * turned into LF, text or binary decided by the name. Its plan tools and its tools that write skills are the native
 * ones, as text alone.
 */
#include "dialects/common.h"
#include "home/memory/memory_tools.h"
#include "home/plans/plans_tools.h"
#include "home/sessions/sessions_tools.h"
#include "home/skills/skills_tools.h"

static void scope_path(struct call *call, const struct jv *args, struct jv *out)
{
	struct str path = str_trim(jv_get_str(args, "path"));

	if (str_starts(path, STR("/workspace")) && (path.len == 10 || path.ptr[10] == '/'))
		path = str_from(path, 10);
	jv_set_str(call->ctx->arena, out, "path", path);
}

static int scope_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("offset", "offset", NULL);
	int64_t limit = jv_get_int(args, "limit", 0);

	jv_set_str(arena, mapped, "encoding", STR("utf-8"));
	offset_from_0(arena, mapped);
	scope_path(call, args, mapped);
	jv_set_int(arena, mapped, "limit", limit > 0 ? limit : INT64_MAX);
	r = tool_read_file(call, mapped, ret, err);
	if (r && err->kind == ERR_UNSUPPORTED) {
		jv_set_str(arena, mapped, "encoding", STR("base64"));
		jv_set_int(arena, mapped, "byte_limit", TOOL_TEXT_MAX);
		r = tool_read_file(call, mapped, ret, err);
	}
	if (r && err->kind == ERR_INVALID && jv_get_int(args, "offset", 0) > 0)
		return err_prefix(err, "offset exceeds file length");
	if (r)
		return r;
	next_offset_from_0(arena, ret->value);
	if (jv_get_int(ret->value, "size", 0))
		render_read_file(mapped, ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

static int scope_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("content", "content", NULL);

	scope_path(call, args, mapped);
	r = tool_write_file(call, mapped, ret, err);
	if (r && err->kind == ERR_EXISTS)
		return RETELL(err, "file already exists: %.*s; use edit_file to change it",
			      STR_ARG(jv_get_str(mapped, "path")));
	if (r)
		return r;
	buf_printf(&text, "Written to %.*s", STR_ARG(jv_get_str(args, "path")));
	text_reply(ret, &text);
	return 0;
}

static int scope_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("old_string", "old_text", "new_string", "new_text", "replace_all", "replace_all", NULL);

	scope_path(call, args, mapped);
	r = tool_edit_file(call, mapped, ret, err);
	if (r && err->detail == DETAIL_TEXT_ABSENT)
		return err_prefix(err, "string not found");
	if (r && err->detail == DETAIL_TEXT_REPEATED)
		return err_prefix(err, "string appears more than once");
	if (r)
		return r;
	buf_printf(&text, "Edited %.*s (%lld replacement(s))", STR_ARG(jv_get_str(args, "path")),
		   (long long)jv_get_int(ret->value, "replaced", 0));
	text_reply(ret, &text);
	return 0;
}

static int scope_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("pattern", "pattern", "glob", "include", NULL);
	int64_t left;

	scope_path(call, args, mapped);
	jv_set_bool(arena, mapped, "literal", true);
	jv_set_int(arena, mapped, "limit", 1000);
	r = tool_grep(call, mapped, ret, err);
	if (r)
		return r;
	add_grep_lines(&text, ret->value);
	left = jv_get_int(ret->value, "total_matches", 0) - (int64_t)jv_count(jv_get(ret->value, "lines"));
	if (text.len == 0)
		buf_lit(&text, "No matches found");
	if (left > 0)
		buf_printf(&text, "\n[%lld more matches; narrow the search]", (long long)left);
	text_reply(ret, &text);
	return 0;
}

static int scope_glob(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct store_stat stat;
	struct err gone;

	scope_path(call, args, mapped);
	jv_set_str(arena, mapped, "pattern", glob_any_depth(arena, jv_get_str(args, "pattern")));
	r = tool_glob(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "paths")); m; m = m->next) {
		struct wpath path = {jv_str_of(m->value)};

		if (store_stat(call->files, call->ctx, path, &stat, &gone) == 0)
			buf_printf(&text, "%s%.*s (%llu bytes)", text.len ? "\n" : "", STR_ARG(path.s),
				   (unsigned long long)stat.size);
	}
	if (text.len == 0)
		buf_lit(&text, "No matching files found");
	note_more(&text, ret->value, "files in all; narrow the pattern");
	text_reply(ret, &text);
	return 0;
}

static int scope_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);

	scope_path(call, args, mapped);
	jv_set_bool(arena, mapped, "details", true);
	r = tool_ls(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "entries")); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		if (text.len)
			buf_char(&text, '\n');
		if (str_is(jv_get_str(m->value, "kind"), "directory"))
			buf_printf(&text, "[DIR]  %.*s/", STR_ARG(path));
		else
			buf_printf(&text, "[FILE] %.*s (%lld bytes)", STR_ARG(path),
				   (long long)jv_get_int(m->value, "size", 0));
	}
	if (text.len == 0)
		buf_lit(&text, "The directory is empty");
	note_more(&text, ret->value, "entries in all; use glob_files");
	text_reply(ret, &text);
	return 0;
}

/* --- sessions --- */

static int scope_session_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("query", "query", "agentId", "agent", "maxResults", "limit", NULL);
	const struct jv *hits;

	r = tool_session_search(call, mapped, ret, err);
	if (r)
		return r;
	hits = jv_get(ret->value, "hits");
	buf_printf(&text, "Found %zu matching entries", jv_count(hits));
	for (const struct jv_member *m = jv_first(hits); m; m = m->next) {
		struct str role = jv_get_str(m->value, "role"), snippet = jv_get_str(m->value, "snippet");

		buf_printf(&text, "\n  [%.*s] %.*s — [%.*s]: %.*s", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "id")), STR_ARG(role), STR_ARG(utf8_points(snippet, 200)));
	}
	text_reply(ret, &text);
	return 0;
}

static int scope_session_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("agentId", "agent", NULL);

	r = tool_session_list(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "sessions")); m; m = m->next)
		buf_printf(&text, "%s- %.*s (updated %.*s)", text.len ? "\n" : "",
			   STR_ARG(jv_get_str(m->value, "session")), STR_ARG(jv_get_str(m->value, "last_active_at")));
	if (!text.len)
		buf_lit(&text, "No sessions found");
	text_reply(ret, &text);
	return 0;
}

static int scope_session_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("agentId", "agent", "sessionId", "session", "lastN", "last", NULL);
	const struct jv *entries;

	r = tool_session_history(call, mapped, ret, err);
	if (r)
		return r;
	entries = jv_get(ret->value, "entries");
	buf_printf(&text, "Session %.*s: last %zu entries", STR_ARG(jv_get_str(args, "sessionId")), jv_count(entries));
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		buf_char(&text, '\n');
		session_line(arena, &text, m->value, SESSION_LINE_MAX);
	}
	text_reply(ret, &text);
	return 0;
}

/* --- memory --- */

static void scope_memory_save_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	size_t n;

	(void)args;
	n = jv_count(jv_get(value, "saved")) + jv_count(jv_get(value, "known"));
	buf_printf(text, "Saved %zu %s to MEMORY.md", n, n == 1 ? "memory" : "memories");
}

static int scope_memory_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("query", "query", NULL);
	const struct jv *matches;

	jv_set_int(arena, mapped, "limit", 50);
	r = tool_memory_search(call, mapped, ret, err);
	if (r)
		return r;
	matches = jv_get(ret->value, "matches");
	if (!jv_count(matches))
		buf_lit(&text, "No matches found in memory files");
	else
		buf_printf(&text, "Found %zu matches:\n", jv_count(matches));
	for (const struct jv_member *m = jv_first(matches); m; m = m->next) {
		struct str rest = jv_get_str(m->value, "text"), line;

		buf_printf(&text, "\nSource: %.*s#%lld: ", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 1));
		for (bool first = true; str_cut(&rest, '\n', &line); first = false) {
			if (!first)
				buf_char(&text, ' ');
			buf_add(&text, line);
		}
	}
	text_reply(ret, &text);
	return 0;
}

static int scope_memory_get(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("path", "path", "startLine", "start_line", "endLine", "end_line", NULL);

	r = tool_memory_get(call, mapped, ret, err);
	if (r)
		return r;
	memory_lines(&text, ret->value, " | ");
	text_reply(ret, &text);
	return 0;
}

/* --- skills --- */

static int scope_load_skill(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("skillId", "name", "path", "path", NULL);
	struct str file, name;

	r = tool_load_skill(call, mapped, ret, err);
	if (r)
		return r;
	file = jv_get_str(ret->value, "file");
	name = jv_get_str(ret->value, "name");
	if (str_is(file, "SKILL.md"))
		buf_printf(&text, "Skill: %.*s_%.*s\nName: %.*s\nDescription: %.*s\nSource: %.*s\n\n````\n",
			   STR_ARG(name), STR_ARG(jv_get_str(ret->value, "source")), STR_ARG(name),
			   STR_ARG(jv_get_str(ret->value, "description")), STR_ARG(jv_get_str(ret->value, "source")));
	if (str_is(file, "SKILL.md")) {
		buf_add(&text, jv_get_str(ret->value, "content"));
		buf_lit(&text, "\n````");
		jv_remove(ret->value, "content");
	}
	render_skill(args, ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

static int scope_execute(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct exec_call what = {.shell = "sh",
				 .command = jv_get_str(args, "command"),
				 .cwd = jv_get_str(args, "working_directory"),
				 .timeout_s = jv_get_int(args, "timeout", 30),
				 .timeout_max_s = SANDBOX_SECONDS_MAX};

	if (what.timeout_s <= 0)
		what.timeout_s = 30;
	return reply_execute(call, &what, true, ret, err);
}

/* clang-format off */
#define EXECUTE_ARGS \
	"command!: the command, for sh\n" \
	"working_directory: relative directory to run it in (default: the root of the files)\n" \
	"timeout int: seconds (default 30, at most 1800)"
#define PATH "path!: path from the tool root, for example notes/plan.md"

static const struct tool tools[] = {
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = scope_read,
	 .description = "Reads a file by lines. Binary files are given as base64.",
	 .args =
		PATH "\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=0: number of lines; 0 (the default) reads all"},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file", .call = scope_write,
	 .description = "Creates a file. Fails if the file exists.",
	 .args =
		PATH "\n"
		"content!: what to write"},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = scope_edit,
	 .description = "Replaces a string that must occur exactly once, or every occurrence with replace_all.",
	 .args =
		PATH "\n"
		"old_string!: the exact string to replace\n"
		"new_string!: the string that replaces it\n"
		"replace_all bool: replace every occurrence (default false)"},
	{.name = "grep_files", .title = "Grep", .group = "files", .acts_as = "grep", .traits = RO | TOOL_LONG,
	 .call = scope_grep,
	 .description = "Finds lines that contain a string.",
	 .args =
		"pattern!: the exact string\n"
		"path: file or directory (default: the workspace)\n"
		"glob: only files that match this pattern"},
	{.name = "glob_files", .title = "Glob", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG,
	 .call = scope_glob,
	 .description = "Finds files by pattern at any depth, with sizes.",
	 .args =
		"pattern!: for example *.md\n"
		"path: directory (default: the workspace)"},
	{.name = "list_files", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = scope_list,
	 .description = "Lists one directory.",
	 .args = "path!: directory"},
	{.name = "session_list", .title = "List sessions", .group = "sessions", .acts_as = "session_list", .traits = RO,
	 .call = scope_session_list, .description = "Lists the sessions of an agent.",
	 .args = "agentId: the agent"},
	{.name = "session_history", .title = "Session history", .group = "sessions", .acts_as = "session_history",
	 .traits = RO, .call = scope_session_history, .description = "Shows the last entries of a session.",
	 .args =
		"agentId: the agent\n"
		"sessionId!: the session\n"
		"lastN int>=1: number of entries (default 20)"},
	{.name = "session_search", .title = "Search sessions", .group = "sessions", .acts_as = "session_search",
	 .traits = RO | TOOL_LONG, .call = scope_session_search, .description = "Finds entries in sessions.",
	 .args =
		"query!: words to find\n"
		"agentId: only sessions of this agent\n"
		"maxResults int>=1: number of entries (default 10)"},
	{.same_as = "plan_enter"}, {.same_as = "plan_write"}, {.same_as = "plan_read"}, {.same_as = "plan_exit"},
	{.same_as = "todo_write"},
	{.name = "memory_save", .title = "Save memory", .group = "memory", .acts_as = "memory_save", .call = tool_memory_save, .render = scope_memory_save_text,
	 .description = "Saves important information to long-term memory (MEMORY.md), as Markdown bullets.",
	 .args = "content!: Markdown bullets, one fact each"},
	{.name = "memory_search", .title = "Search memory", .group = "memory", .acts_as = "memory_search", .traits = RO,
	 .call = scope_memory_search, .description = "Searches MEMORY.md and the daily ledgers.",
	 .args = "query!: words to find"},
	{.name = "memory_get", .title = "Read memory lines", .group = "memory", .acts_as = "memory_get", .traits = RO,
	 .call = scope_memory_get, .description = "Reads some lines of a memory file.",
	 .args =
		"path!: MEMORY.md or a path below memory/\n"
		"startLine! int>=1: the first line, from 1\n"
		"endLine! int>=1: the last line"},
	{.name = "load_skill_through_path", .title = "Load a skill", .group = "skills", .acts_as = "load_skill",
	 .call = scope_load_skill, .traits = RO,
	 .description = "Reads a skill's SKILL.md, or one of the files that it lists.",
	 .args =
		"skillId!: id or name of the skill\n"
		"path!: SKILL.md, or a file of the skill"},
	{.same_as = "skill_manage"},
	{.same_as = "propose_skill", .acts_as = "skill_manage"},
	{.same_as = "web_fetch"}, {.same_as = "web_search"},
	{.name = "execute", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = scope_execute,
	 .description = "Runs a shell command in a sandbox that sees the workspace at /workspace, and no network.",
	 .args = EXECUTE_ARGS},
	{.name = "execute_shell_command", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = scope_execute,
	 .description = "The same as execute.",
	 .args = EXECUTE_ARGS},
	{0},
};
/* clang-format on */

const struct dialect dialect_agentscope = {
	.name = "agentscope",
	.root = "workspace",
	.layout = LAYOUT_AGENTSCOPE,
	.tools = tools,
	.error_prefix = "Error: ",
};
