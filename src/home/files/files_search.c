/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob and grep: arguments, limits and the reply; the scan itself is in src/find. In a directory of the person's own,
 * files that .gitignore ignores are left out unless `all` is set: a model that searches for code wants the project, not
 * its build output.
 */
#include "find/find.h"
#include "home/files/files.h"
#include "home/files/files_commands.h"

bool files_use_ignore(struct call *call, const struct jv *args)
{
	return workspace_files_are_own(call->ws) && !jv_get_bool(args, "all", false);
}

static int arg_pattern(const struct jv *args, struct str *ret, struct err *err)
{
	*ret = jv_get_str(args, "pattern");
	if (ret->len == 0)
		return err_set(err, ERR_INVALID, "the pattern is empty; give what to look for");
	if (ret->len > PATTERN_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the pattern has %zu bytes; at most %zu are allowed", ret->len,
			       PATTERN_LEN_MAX);
	return 0;
}

/* --- hints: why a search found nothing --- */

static bool glob_again(struct store *files, struct ctx *ctx, struct glob_req req, struct str pattern, bool use_ignore,
		       struct glob_result *ret)
{
	struct err ignored;

	req.pattern = pattern;
	req.use_ignore = use_ignore;
	return find_glob(files, ctx, &req, NULL, NULL, ret, &ignored) == 0 && ret->total > 0;
}

/* The pattern with every '[' as itself: "[id].tsx" is a name that some frameworks use. */
static struct str without_classes(struct arena *arena, struct str pattern)
{
	struct buf b;

	buf_init(&b, arena, pattern.len * 2 + 1);
	for (size_t i = 0; i < pattern.len; i++) {
		if (pattern.ptr[i] == '[')
			buf_char(&b, '\\');
		buf_char(&b, pattern.ptr[i]);
	}
	return buf_str(&b);
}

struct str files_glob_hint(struct store *files, struct ctx *ctx, const struct glob_req *req, const char *all,
			   struct glob_result *found)
{
	struct arena *arena = ctx->arena;
	struct glob_result other;
	struct str deep = arena_printf(arena, "**/%.*s", STR_ARG(req->pattern));
	bool is_name = str_find_char(req->pattern, '/') == req->pattern.len;

	if (str_find_char(req->pattern, '[') < req->pattern.len &&
	    glob_again(files, ctx, *req, without_classes(arena, req->pattern), req->use_ignore, found))
		return STR_NONE;
	if (is_name && glob_again(files, ctx, *req, deep, req->use_ignore, &other))
		return arena_printf(arena, "this pattern matches names at the top only; %.*s matches %llu file%s",
				    STR_ARG(deep), (unsigned long long)other.total, plural(other.total));
	if (req->use_ignore && glob_again(files, ctx, *req, req->pattern, false, &other))
		return arena_printf(arena, "%llu file%s that .gitignore leaves out match%s; %s to see them",
				    (unsigned long long)other.total, plural(other.total), other.total == 1 ? "es" : "",
				    all);
	if (req->use_ignore && is_name && glob_again(files, ctx, *req, deep, false, &other))
		return arena_printf(arena,
				    "%.*s matches %llu file%s that .gitignore leaves out; use that pattern and %s to "
				    "see them",
				    STR_ARG(deep), (unsigned long long)other.total, plural(other.total), all);
	return STR_NONE;
}

/* The same for grep, whose rules may have left out everything. */
static struct str grep_hint(struct call *call, struct grep_req req)
{
	struct grep_result other;
	struct err ignored;

	if (!req.use_ignore)
		return STR_NONE;
	req.use_ignore = false;
	req.limit = 1;
	if (find_grep(call->files, call->ctx, &req, NULL, NULL, &other, &ignored) || !other.matches)
		return STR_NONE;
	return arena_printf(call->ctx->arena, "%llu file%s that .gitignore leaves out match%s; set all to see them",
			    (unsigned long long)other.files, plural(other.files), other.files == 1 ? "es" : "");
}

static void add_hint(struct buf *text, const struct jv *value)
{
	if (jv_get(value, "hint"))
		buf_printf(text, "\n[%.*s]", STR_ARG(jv_get_str(value, "hint")));
}

/* --- the tools --- */

int tool_glob(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct glob_req req = {.use_ignore = files_use_ignore(call, args),
			       .limit = arg_count(args, "limit", LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX),
			       .bytes_max = READ_BYTES_DEFAULT,
			       .cursor = jv_get_str(args, "cursor")};
	struct glob_result found;
	struct str hint = STR_NONE;
	struct jv *paths;
	int r = arg_path(call, args, "path", &req.path, err);

	if (r == 0)
		r = arg_pattern(args, &req.pattern, err);
	if (r == 0)
		r = find_glob(call->files, call->ctx, &req, NULL, NULL, &found, err);
	if (r)
		return r;
	if (!found.total)
		hint = files_glob_hint(call->files, call->ctx, &req, "set all", &found);
	paths = jv_array(arena);
	for (size_t i = 0; i < found.count; i++)
		jv_push(arena, paths, jv_str(arena, found.paths[i]));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "paths", paths);
	jv_set_int(arena, ret->value, "total", (int64_t)found.total);
	if (found.next.ptr)
		jv_set_str(arena, ret->value, "next_cursor", found.next);
	if (hint.len)
		jv_set_str(arena, ret->value, "hint", hint);
	return 0;
}

void render_glob(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str next = jv_get_str(value, "next_cursor");

	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "paths")); m; m = m->next) {
		if (text->len)
			buf_char(text, '\n');
		buf_add(text, jv_str_of(m->value));
	}
	if (jv_count(jv_get(value, "paths")) == 0)
		buf_lit(text, "no file matches");
	add_hint(text, value);
	if (next.len)
		buf_printf(text, "\n[%zu of %lld files; continue with cursor \"%.*s\"]",
			   jv_count(jv_get(value, "paths")), (long long)jv_get_int(value, "total", 0), STR_ARG(next));
}

/* One glob or a list of them. */
static const struct str *arg_globs(struct arena *arena, const struct jv *args, const char *key, size_t *ret_count)
{
	const struct jv *v = jv_get(args, key);
	struct str *globs = ARENA_ARRAY(arena, struct str, jv_count(v) + 1);
	size_t n = 0;

	if (jv_str_of(v).len)
		globs[n++] = jv_str_of(v);
	for (const struct jv_member *m = jv_first(v); m; m = m->next)
		globs[n++] = jv_str_of(m->value);
	*ret_count = n;
	return globs;
}

static enum grep_output arg_output(const struct jv *args)
{
	struct str output = jv_get_str(args, "output");

	return str_is(output, "files") ? GREP_FILES : str_is(output, "count") ? GREP_COUNT : GREP_LINES;
}

static struct jv *grep_matches(struct arena *arena, const struct grep_result *found, bool lines)
{
	struct jv *list = jv_array(arena);

	for (size_t i = 0; i < found->count; i++) {
		const struct grep_line *l = &found->lines[i];
		struct jv *v = jv_object(arena);

		jv_set_str(arena, v, "path", l->path);
		if (lines) {
			jv_set_int(arena, v, "line", (int64_t)l->line);
			jv_set_str(arena, v, "text", l->text);
			if (!l->is_match)
				jv_set_bool(arena, v, "context", true);
			if (l->cut)
				jv_set_bool(arena, v, "cut", true);
			if (l->group_start && i)
				jv_set_bool(arena, v, "group_start", true);
		} else {
			jv_set_int(arena, v, "count", (int64_t)l->count);
		}
		jv_push(arena, list, v);
	}
	return list;
}

int tool_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct grep_req req = {.literal = jv_get_bool(args, "literal", false),
			       .ignore_case = !jv_get_bool(args, "case_sensitive", true),
			       .use_ignore = files_use_ignore(call, args),
			       .context = (unsigned)arg_count(args, "context", 0, GREP_CONTEXT_MAX),
			       .output = arg_output(args),
			       .limit = arg_count(args, "limit", GREP_LIMIT_DEFAULT, GREP_LIMIT_MAX),
			       .bytes_max = READ_BYTES_DEFAULT,
			       .cursor = jv_get_str(args, "cursor"),
			       .line_cut = GREP_LINE_CUT};
	struct grep_result found;
	struct str hint;
	int r = arg_path(call, args, "path", &req.path, err);

	if (r == 0)
		r = arg_pattern(args, &req.pattern, err);
	if (r)
		return r;
	req.include = arg_globs(arena, args, "include", &req.include_count);
	req.exclude = arg_globs(arena, args, "exclude", &req.exclude_count);
	r = find_grep(call->files, call->ctx, &req, NULL, NULL, &found, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, req.output == GREP_LINES ? "lines" : "files",
	       grep_matches(arena, &found, req.output == GREP_LINES));
	jv_set_int(arena, ret->value, "total_matches", (int64_t)found.matches);
	jv_set_int(arena, ret->value, "total_files", (int64_t)found.files);
	jv_set_int(arena, ret->value, "searched", (int64_t)found.searched);
	if (found.binary)
		jv_set_int(arena, ret->value, "binary_skipped", (int64_t)found.binary);
	if (found.unreadable)
		jv_set_int(arena, ret->value, "unreadable", (int64_t)found.unreadable);
	if (found.next.ptr)
		jv_set_str(arena, ret->value, "next_cursor", found.next);
	hint = found.matches ? STR_NONE : grep_hint(call, req);
	if (hint.len)
		jv_set_str(arena, ret->value, "hint", hint);
	return 0;
}

static void render_lines(const struct jv *list, bool grouped, struct buf *text)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		char sep = jv_get_bool(m->value, "context", false) ? '-' : ':';

		if (text->len)
			buf_char(text, '\n');
		if (grouped && jv_get_bool(m->value, "group_start", false))
			buf_lit(text, "--\n");
		buf_add(text, jv_get_str(m->value, "path"));
		buf_char(text, sep);
		buf_i64(text, jv_get_int(m->value, "line", 0));
		buf_char(text, sep);
		buf_add(text, jv_get_str(m->value, "text"));
		if (jv_get_bool(m->value, "cut", false))
			buf_lit(text, " [cut]");
	}
}

void render_grep(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t matches = jv_get_int(value, "total_matches", 0), files = jv_get_int(value, "total_files", 0);
	int64_t binary = jv_get_int(value, "binary_skipped", 0);
	struct str next = jv_get_str(value, "next_cursor");

	render_lines(jv_get(value, "lines"), jv_get_int(args, "context", 0) > 0, text);
	for (const struct jv_member *m = jv_first(jv_get(value, "files")); m; m = m->next) {
		if (text->len)
			buf_char(text, '\n');
		buf_add(text, jv_get_str(m->value, "path"));
		if (arg_output(args) == GREP_COUNT)
			buf_printf(text, ":%lld", (long long)jv_get_int(m->value, "count", 0));
	}
	if (matches == 0)
		buf_printf(text, "no match in %lld file%s", (long long)jv_get_int(value, "searched", 0),
			   plural((uint64_t)jv_get_int(value, "searched", 0)));
	add_hint(text, value);
	if (next.len)
		buf_printf(text, "\n[%lld matching line%s in %lld file%s in all; continue with cursor \"%.*s\"]",
			   (long long)matches, plural((uint64_t)matches), (long long)files, plural((uint64_t)files),
			   STR_ARG(next));
	if (binary)
		buf_printf(text, "\n[%lld binary file%s skipped]", (long long)binary, plural((uint64_t)binary));
}
