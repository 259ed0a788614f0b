/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AgentScope's six file tools. '/' is the whole workspace; a leading /workspace is taken off. Kept: limit 0 reads all
 * (within what one reply may hold, with an offset to go on), create-only write_file, literal grep_files, the forms
 * "Written to", "Edited … (n replacement(s))", "[DIR]", "[FILE]", binary files as base64, "Error:" before a failure.
 * Not kept: an empty old_string (it never ended there), line ends turned to LF, text or binary decided by the name.
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
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "lines")); m; m = m->next)
		buf_printf(&text, "%s%.*s:%lld:%.*s", text.len ? "\n" : "", STR_ARG(jv_get_str(m->value, "path")),
			   (long long)jv_get_int(m->value, "line", 0), STR_ARG(jv_get_str(m->value, "text")));
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
	if (jv_get(ret->value, "next_cursor"))
		buf_printf(&text, "\n[%lld files in all; narrow the pattern]",
			   (long long)jv_get_int(ret->value, "total", 0));
	text_reply(ret, &text);
	return 0;
}

static int scope_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);

	scope_path(call, args, mapped);
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
	if (jv_get(ret->value, "next_cursor"))
		buf_printf(&text, "\n[%lld entries in all; use glob_files]",
			   (long long)jv_get_int(ret->value, "total", 0));
	text_reply(ret, &text);
	return 0;
}

/* clang-format off */
static const struct tool tools[] = {
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO,
	 .call = scope_read,
	 .description = "Reads a file; offset and limit are lines. Binary files come as base64.",
	 .input_schema = S_OBJ(
		S_PATH AND
		S_INT("offset", "first line, from 0 (default 0)") AND
		S_INT("limit", "lines; 0 is all (default)"), "\"path\"")},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file", .call = scope_write,
	 .description = "Creates a file; an existing one is an error.",
	 .input_schema = S_OBJ(S_PATH AND S_STR("content", "what to write"), "\"path\",\"content\"")},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = scope_edit,
	 .description = "Replaces a string that occurs exactly once, or every occurrence with replace_all.",
	 .input_schema = S_OBJ(
		S_PATH AND
		S_STR("old_string", "string that is there") AND
		S_STR("new_string", "string in its place") AND
		S_BOOL("replace_all", "default false"), "\"path\",\"old_string\",\"new_string\"")},
	{.name = "grep_files", .title = "Grep", .group = "files", .acts_as = "grep", .traits = RO | TOOL_LONG,
	 .call = scope_grep,
	 .description = "Finds lines that have a string.",
	 .input_schema = S_OBJ(
		S_STR("pattern", "the string, as it stands") AND
		S_STR("path", "file or directory (default: the workspace)") AND
		S_STR("glob", "only files that match"), "\"pattern\"")},
	{.name = "glob_files", .title = "Glob", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG,
	 .call = scope_glob,
	 .description = "Finds files by pattern at any depth, with sizes.",
	 .input_schema = S_OBJ(
		S_STR("pattern", "for example *.md") AND
		S_STR("path", "directory (default: the workspace)"), "\"pattern\"")},
	{.name = "list_files", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = scope_list,
	 .description = "Lists one directory.",
	 .input_schema = S_OBJ(S_STR("path", "directory"), "\"path\"")},
	{0},
};
/* clang-format on */

static const struct tool_group own_tools = {tools, COUNT(tools)};
static const struct tool_group *const groups[] = {&own_tools,
						  &agentscope_session_tools,
						  &agentscope_plan_tools,
						  &agentscope_memory_tools,
						  &agentscope_skill_tools,
						  NULL};

const struct dialect dialect_agentscope = {
	.name = "agentscope",
	.root = "workspace",
	.groups = groups,
	.error_prefix = "Error: ",
};
