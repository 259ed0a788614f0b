/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OmniCoreAgent's ten workspace tools and four artifact tools. Paths: URL-decoded, then one prefix that its prompts use
 * (workspace/, workspace_files/, files/, also workspace/files/) is taken off; an absolute path that is not one of those
 * is refused. Kept: write_file's modes (append and overwrite need the file), edit_file replaces every occurrence,
 * insert_file clamps, grep is literal and ignores case. Not kept: an empty old_str, whole-file reads without a bound
 * (offset and limit are added), line ends turned to LF, host paths in replies.
 */
#include "dialects/common.h"
#include "home/artifacts/artifacts_tools.h"
#include "home/code/code.h"

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static struct str url_decode(struct arena *arena, struct str s)
{
	char *out = arena_alloc_raw(arena, s.len + 1);
	size_t len = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '%' && i + 2 < s.len && hex(s.ptr[i + 1]) >= 0 && hex(s.ptr[i + 2]) >= 0) {
			out[len++] = (char)(hex(s.ptr[i + 1]) * 16 + hex(s.ptr[i + 2]));
			i += 2;
		} else {
			out[len++] = s.ptr[i];
		}
	}
	return str_n(out, len);
}

/* `path` without `prefix` when that is its first element (or all of it). */
static bool take_prefix(struct str *path, struct str prefix)
{
	if (!str_starts(*path, prefix) || (path->len > prefix.len && path->ptr[prefix.len] != '/'))
		return false;
	*path = str_from(*path, prefix.len + 1);
	return true;
}

/* '/' is the files area, as in "save a summary to /notes/ai_trends.md" on its page. */
static int omni_path(struct call *call, struct str text, struct str *ret, struct err *err)
{
	struct str path = str_trim(url_decode(call->ctx->arena, str_first(text, 2 * PATH_LEN_MAX)));

	(void)err;
	while (str_starts(path, STR("/")) || str_starts(path, STR("./")))
		path = str_from(path, 1);
	if (take_prefix(&path, STR("workspace")) || !take_prefix(&path, STR("workspace_files")))
		(void)take_prefix(&path, STR("files"));
	*ret = path;
	return 0;
}

/* Our arguments from theirs, with `key` set to the normalised path in their argument `from`. */
static int map_path(struct call *call, const struct jv *args, const char *from, struct jv *out, const char *key,
		    struct err *err)
{
	struct str path;
	int r = omni_path(call, jv_get_str(args, from), &path, err);

	if (r == 0)
		jv_set_str(call->ctx->arena, out, key, path);
	return r;
}

static void list_kind(const struct jv *entries, struct str dir, bool directories, struct buf *text)
{
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		if (str_is(jv_get_str(m->value, "kind"), "directory") != directories)
			continue;
		buf_char(text, '\n');
		buf_add(text, str_is(dir, "/") ? path : str_from(path, dir.len + 1));
		if (directories)
			buf_char(text, '/');
	}
}

static void list_text(const struct jv *value, struct buf *text)
{
	const struct jv *entries = jv_get(value, "entries");
	struct str dir = jv_get_str(value, "path");

	buf_printf(text, "Contents of %.*s:", STR_ARG(dir));
	list_kind(entries, dir, true, text);
	list_kind(entries, dir, false, text);
	if (jv_count(entries) == 0)
		buf_lit(text, "\n(empty)");
	note_more(text, value, "entries in all; use glob to find the others");
}

static int omni_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct store_stat stat;
	struct wpath path;

	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = arg_path(call, mapped, "path", &path, err);
	if (r == 0 && store_stat(call->files, call->ctx, path, &stat, err) == 0 && stat.kind == STORE_FILE) {
		buf_printf(&text, "%.*s is a file; use read_file to see it.", STR_ARG(path.s));
		text_reply(ret, &text);
		return 0;
	}
	if (r == 0)
		r = tool_ls(call, mapped, ret, err);
	if (r && err->kind == ERR_NOT_FOUND) {
		struct outcome root = {0};
		struct err ignored;

		if (tool_ls(call, jv_object(arena), &root, &ignored) == 0)
			list_text(root.value, &text);
		ret->detail = buf_str(&text);
	}
	if (r)
		return r;
	list_text(ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

static int omni_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("offset", "offset", "limit", "limit", NULL);

	jv_set_str(arena, mapped, "encoding", STR("utf-8"));
	offset_from_0(arena, mapped);
	if (!jv_get(mapped, "limit"))
		jv_set_int(arena, mapped, "limit", INT64_MAX);
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = tool_read_file(call, mapped, ret, err);
	if (r)
		return r;
	next_offset_from_0(arena, ret->value);
	buf_printf(&text, "File: %.*s\n", STR_ARG(jv_get_str(ret->value, "path")));
	render_read_file(mapped, ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

static int omni_read_artifact(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("artifact_id", "artifact_id", "offset", "offset", "limit", "limit", NULL);

	jv_set_str(arena, mapped, "encoding", STR("utf-8"));
	offset_from_0(arena, mapped);
	r = tool_read_artifact(call, mapped, ret, err);
	if (r)
		return r;
	next_offset_from_0(arena, ret->value);
	render_read_file(mapped, ret->value, &text);
	text_reply(ret, &text);
	return 0;
}

/* What is not text is written as the text it has: lists line by line, objects as indented JSON. */
static struct str content_text(struct arena *arena, const struct jv *v)
{
	struct buf buf;

	if (v && v->type == JV_STR)
		return v->u.s;
	buf_init(&buf, arena, TOOL_FILE_MAX);
	if (v && v->type == JV_ARRAY) {
		for (const struct jv_member *m = jv_first(v); m; m = m->next) {
			if (m != jv_first(v))
				buf_char(&buf, '\n');
			buf_add(&buf, content_text(arena, m->value));
		}
	} else if (v && v->type == JV_OBJECT) {
		jv_write_pretty(&buf, v);
		buf.len--; /* its newline */
	} else {
		jv_write(&buf, v);
	}
	return buf.ptr ? buf_str(&buf) : STR("");
}

struct rewrite {
	struct str content;
	bool append;
};

static int change_rewrite(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct rewrite *job = arg;
	struct buf buf;

	if (!job->append) {
		*ret_after = job->content;
		return 0;
	}
	if (before.len + job->content.len + 1 > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file would grow past %zu bytes", TOOL_FILE_MAX);
	while (before.len && before.ptr[before.len - 1] == '\n')
		before.len--;
	buf_init(&buf, arena, TOOL_FILE_MAX + 1);
	buf_add(&buf, before);
	buf_char(&buf, '\n');
	buf_add(&buf, job->content);
	*ret_after = buf_str(&buf);
	return 0;
}

static int omni_rewrite(struct call *call, struct jv *mapped, struct rewrite *job, struct buf *text, struct err *err)
{
	struct file_change change = {.change = change_rewrite, .arg = job};
	struct wpath path;
	int r = arg_file(call, mapped, "path", &path, err);

	if (r == 0)
		r = file_change(call, path, &change, err);
	if (r && err->kind == ERR_NOT_FOUND)
		return RETELL(err, "%s %.*s: the file does not exist; use mode \"create\"",
			      job->append ? "append to" : "overwrite", STR_ARG(path.s));
	if (r == 0)
		buf_printf(text, "%s %.*s", job->append ? "Appended to" : "Overwrote", STR_ARG(path.s));
	return r;
}

static int omni_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str mode = jv_get_str(args, "mode");
	struct rewrite job = {.append = str_is(mode, "append")};
	START(NULL);

	job.content = content_text(arena, jv_get(args, "content"));
	r = map_path(call, args, "path", mapped, "path", err);
	if (r)
		return r;
	if (mode.len && !str_is(mode, "create")) {
		r = omni_rewrite(call, mapped, &job, &text, err);
	} else {
		jv_set_str(arena, mapped, "content", job.content);
		r = tool_write_file(call, mapped, ret, err);
		if (r == 0)
			buf_printf(&text, "Created %.*s", STR_ARG(jv_get_str(ret->value, "path")));
	}
	if (r == 0)
		text_reply(ret, &text);
	return r;
}

static int omni_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("old_str", "old_text", "new_str", "new_text", NULL);
	int64_t n;

	jv_set_bool(arena, mapped, "replace_all", true);
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = tool_edit_file(call, mapped, ret, err);
	if (r)
		return r;
	n = jv_get_int(ret->value, "replaced", 0);
	buf_printf(&text, "Edited %.*s (%lld occurrence%s replaced)", STR_ARG(jv_get_str(ret->value, "path")),
		   (long long)n, plural((uint64_t)n));
	text_reply(ret, &text);
	return 0;
}

struct clamped {
	int64_t line;
	struct str text;
};

static int change_clamped(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct clamped *job = arg;
	uint64_t lines = count_lines(before);
	uint64_t line = job->line < 1 ? 1 : (uint64_t)job->line > lines + 1 ? lines + 1 : (uint64_t)job->line;

	return insert_apply(arena, before, line, job->text, ret_after, err);
}

static int omni_insert(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct clamped job = {.line = jv_get_int(args, "insert_line", 1), .text = jv_get_str(args, "insert_text")};
	struct file_change change = {.change = change_clamped, .arg = &job};
	struct wpath path;
	START(NULL);

	if (job.text.len && job.text.ptr[job.text.len - 1] != '\n') {
		buf_add(&text, job.text);
		buf_char(&text, '\n');
		job.text = arena_str(arena, buf_str(&text));
		buf_clear(&text);
	}
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = arg_file(call, mapped, "path", &path, err);
	if (r == 0)
		r = file_change(call, path, &change, err);
	if (r)
		return r;
	buf_printf(&text, "Inserted text into %.*s", STR_ARG(path.s));
	text_reply(ret, &text);
	return 0;
}

static int omni_delete(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);

	jv_set_bool(arena, mapped, "recursive", true);
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = tool_delete_file(call, mapped, ret, err);
	if (r)
		return r;
	buf_printf(&text, "Deleted %.*s", STR_ARG(jv_get_str(ret->value, "path")));
	text_reply(ret, &text);
	return 0;
}

static int omni_move(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);

	jv_set_bool(arena, mapped, "overwrite", true);
	r = map_path(call, args, "old_path", mapped, "from", err);
	if (r == 0)
		r = map_path(call, args, "new_path", mapped, "to", err);
	if (r == 0)
		r = tool_move_file(call, mapped, ret, err);
	if (r)
		return r;
	buf_printf(&text, "Moved %.*s to %.*s", STR_ARG(jv_get_str(ret->value, "from")),
		   STR_ARG(jv_get_str(ret->value, "path")));
	text_reply(ret, &text);
	return 0;
}

static void omni_clear_text(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "Cleared the workspace files (%lld removed)", (long long)jv_get_int(value, "removed", 0));
}

static int omni_glob(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str pattern = jv_get_str(args, "pattern");
	START(NULL);

	jv_set_str(arena, mapped, "pattern", glob_any_depth(arena, pattern));
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = tool_glob(call, mapped, ret, err);
	if (r)
		return r;
	if (jv_get_int(ret->value, "total", 0) == 0) {
		buf_printf(&text, "No files match %.*s", STR_ARG(pattern));
	} else {
		buf_printf(&text, "Files matching %.*s:\n", STR_ARG(pattern));
		for (const struct jv_member *m = jv_first(jv_get(ret->value, "paths")); m; m = m->next) {
			buf_add(&text, jv_str_of(m->value));
			buf_char(&text, '\n');
		}
		text.len--;
		note_more(&text, ret->value, "files in all; narrow the pattern");
	}
	text_reply(ret, &text);
	return 0;
}

static int omni_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("pattern", "pattern", "case_sensitive", "case_sensitive", "max_matches", "limit", NULL);
	struct str include = jv_get_str(args, "include");
	int64_t left;

	jv_set_bool(arena, mapped, "literal", true);
	if (!jv_get(mapped, "case_sensitive"))
		jv_set_bool(arena, mapped, "case_sensitive", false);
	if (include.len)
		jv_set_str(arena, mapped, "include", include);
	r = map_path(call, args, "path", mapped, "path", err);
	if (r == 0)
		r = tool_grep(call, mapped, ret, err);
	if (r)
		return r;
	add_grep_lines(&text, ret->value);
	left = jv_get_int(ret->value, "total_matches", 0) - (int64_t)jv_count(jv_get(ret->value, "lines"));
	if (text.len == 0)
		buf_lit(&text, "No matches found");
	if (left > 0)
		buf_printf(&text, "\n[%lld more matches omitted]", (long long)left);
	if (jv_get_int(ret->value, "binary_skipped", 0))
		buf_printf(&text, "\n[%lld files that are not text were skipped]",
			   (long long)jv_get_int(ret->value, "binary_skipped", 0));
	text_reply(ret, &text);
	return 0;
}

static int omni_execute(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct exec_call what = {.shell = "sh",
				 .command = jv_get_str(args, "command"),
				 .timeout_s = jv_get_int(args, "timeout", 60),
				 .timeout_max_s = 180};

	return reply_execute(call, &what, false, ret, err);
}

static int omni_run_skill_script(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct skill_script what = {.skill = jv_get_str(args, "skill_name"),
				    .script = jv_get_str(args, "script_name"),
				    .args = jv_get(args, "args"),
				    .timeout_s = jv_get_int(args, "timeout", CODE_SECONDS_DEFAULT)};
	struct buf text;
	struct jv *ran;
	int r = skill_script_run(call, &what, &ran, err);

	if (r)
		return r;
	buf_init(&text, call->ctx->arena, 2 * TOOL_TEXT_MAX);
	exec_output(ran, &text);
	exec_remarks(ran, &text);
	buf_printf(&text, "[exit code %lld]", (long long)jv_get_int(ran, "exit_code", 1));
	text_reply(ret, &text);
	return 0;
}

/* clang-format off */
#define PATH "path!: path from the tool root, for example notes/plan.md"

static const struct tool tools[] = {
	{.name = "ls", .title = "List", .group = "files", .acts_as = "ls", .traits = RO, .call = omni_ls,
	 .description = "Lists a directory of the workspace, directories before files.",
	 .args = "path: directory (default: the root)"},
	{.name = "read_file", .title = "Read", .group = "files", .acts_as = "read_file", .traits = RO, .call = omni_read,
	 .description = "Reads a workspace file. Continue a long file with offset.",
	 .args =
		PATH "\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=1: number of lines (default: as many as fit)"},
	{.name = "write_file", .title = "Write", .group = "files", .acts_as = "write_file", .traits = TOOL_DESTRUCTIVE,
	 .call = omni_write,
	 .description = "Writes a workspace file. create fails if it exists; append and overwrite need it to exist.",
	 .args =
		PATH "\n"
		"content! any: text; a list becomes lines, an object becomes JSON\n"
		"mode create|append|overwrite: default create"},
	{.name = "edit_file", .title = "Edit", .group = "files", .acts_as = "edit_file", .traits = TOOL_DESTRUCTIVE,
	 .call = omni_edit,
	 .description = "Replaces every occurrence of old_str with new_str.",
	 .args =
		PATH "\n"
		"old_str!: the exact text to replace\n"
		"new_str!: the text that replaces it"},
	{.name = "insert_file", .title = "Insert", .group = "files", .acts_as = "insert_file", .call = omni_insert,
	 .description = "Inserts text before a line. A line out of range means the start or the end.",
	 .args =
		PATH "\n"
		"insert_line! int: the line, from 1\n"
		"insert_text!: the lines"},
	{.name = "delete_file", .title = "Delete", .group = "files", .acts_as = "delete_file",
	 .traits = TOOL_DESTRUCTIVE, .call = omni_delete,
	 .description = "Deletes a file, or a directory and everything in it.",
	 .args = PATH},
	{.name = "move_file", .title = "Move", .group = "files", .acts_as = "move_file", .traits = TOOL_DESTRUCTIVE,
	 .call = omni_move,
	 .description = "Moves or renames a file or directory, and replaces a file at the new path.",
	 .args =
		"old_path!: the current path\n"
		"new_path!: the new path"},
	{.name = "clear_files", .title = "Clear", .group = "files", .acts_as = "clear_files",
	 .traits = TOOL_DESTRUCTIVE | TOOL_IDEMPOTENT, .call = tool_clear_files, .render = omni_clear_text,
	 .description = "Deletes all workspace files."},
	{.name = "glob", .title = "Glob", .group = "files", .acts_as = "glob", .traits = RO | TOOL_LONG, .call = omni_glob,
	 .description = "Finds files by pattern; a pattern without / matches names at any depth.",
	 .args =
		"pattern!: for example **/*.md\n"
		"path: directory (default: the root)"},
	{.name = "grep", .title = "Grep", .group = "files", .acts_as = "grep", .traits = RO | TOOL_LONG, .call = omni_grep,
	 .description = "Finds lines that contain a text (not a regular expression), by default ignoring case.",
	 .args =
		"pattern!: the text\n"
		"path: file or directory (default: the root)\n"
		"include: only files that match this pattern\n"
		"case_sensitive bool: default false\n"
		"max_matches int>=1: number of matching lines (default 100)"},
	{.name = "read_artifact", .title = "Read artifact", .group = "artifacts", .acts_as = "read_artifact", .traits = RO,
	 .call = omni_read_artifact,
	 .description = "Reads an offloaded tool response. Continue a long one with offset.",
	 .args =
		"artifact_id!: its id\n"
		"offset int>=0: first line, from 0 (default 0)\n"
		"limit int>=1: number of lines (default 2000)"},
	{.name = "tail_artifact", .title = "Tail artifact", .group = "artifacts", .acts_as = "tail_artifact", .traits = RO,
	 .call = tool_tail_artifact, .render = render_tail_artifact,
	 .description = "Reads the last lines of an offloaded tool response.",
	 .args =
		"artifact_id!: its id\n"
		"lines int>=1: number of lines (default 50)"},
	{.name = "search_artifact", .title = "Search artifact", .group = "artifacts", .acts_as = "search_artifact",
	 .traits = RO, .call = tool_search_artifact, .render = render_search_artifact,
	 .description = "Finds lines in an offloaded tool response, ignoring case, each with the line before and after it.",
	 .args =
		"artifact_id!: its id\n"
		"query!: the text to find"},
	{.name = "list_artifacts", .title = "List artifacts", .group = "artifacts", .acts_as = "list_artifacts",
	 .traits = RO, .call = tool_list_artifacts, .render = render_list_artifacts,
	 .description = "Lists offloaded tool responses, newest first."},
	{.name = "execute", .title = "Run a command", .group = "exec", .acts_as = "execute",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS | TOOL_PARKS, .call = omni_execute,
	 .description = "Runs a shell command in a sandbox that sees the workspace at /workspace, and no network.",
	 .args =
		"command!: the command, for sh\n"
		"timeout int>=1: seconds (default 60, at most 180)"},
	{.name = "run_skill_script", .title = "Run a skill's script", .group = "code", .acts_as = "run_skill_script",
	 .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .call = omni_run_skill_script,
	 .description = "Runs a script of a skill in the sandbox, over the workspace.",
	 .args =
		"skill_name!: the skill\n"
		"script_name!: the script, from its directory scripts/\n"
		"args [str]: its arguments\n"
		"timeout int>=1<=1800: seconds (default 30)"},
	{0},
};
/* clang-format on */

const struct dialect dialect_omnicoreagent = {
	.name = "omnicoreagent",
	.tools = tools,
};
