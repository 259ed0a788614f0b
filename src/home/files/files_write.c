/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_file, append_file, delete_file, move_file, copy_file, clear_files: changes of whole files. Each is one
 * conditional operation of the store, so none has a moment between looking and acting in which another writer could
 * slip. `create` is the default because the costly mistake of a model is to overwrite what it has not seen.
 */
#include "home/files/files.h"
#include "store/stores.h"
#include "workspace/own_dir.h"
#include "workspace/past.h"

static int arg_content(struct call *call, const struct jv *args, struct wpath path, struct str *ret, struct err *err)
{
	struct str content = jv_get_str(args, "content");

	if (str_is(jv_get_str(args, "encoding"), "base64")) {
		if (!base64_decode(call->ctx->arena, content, &content))
			return err_set(err, ERR_INVALID,
				       "write %.*s: the content is not base64 (RFC 4648, padded); encode it again, or "
				       "write text without encoding",
				       STR_ARG(path.s));
	}
	if (content.len > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "write %.*s: the content has %zu bytes; one call takes at most %zu; append the rest",
			       STR_ARG(path.s), content.len, TOOL_FILE_MAX);
	*ret = content.ptr ? content : STR("");
	return 0;
}

static int written(struct call *call, struct wpath path, const struct store_stat *stat, struct str action,
		   struct str content, struct outcome *ret)
{
	struct arena *arena = call->ctx->arena;

	ret->value = value_file(arena, path, stat);
	jv_set_str(arena, ret->value, "action", action);
	jv_set_int(arena, ret->value, "bytes_written", (int64_t)content.len);
	jv_set_int(arena, ret->value, "lines_written", (int64_t)count_lines(content));
	return 0;
}

static int append(struct call *call, const struct jv *args, struct wpath path, struct str content, struct outcome *ret,
		  struct err *err)
{
	struct store_stat stat;
	int r = store_append(call->files, call->ctx, path, content, arg_cond(args), &stat, err);

	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, path, ret);
	return r ? r : written(call, path, &stat, STR("appended"), content, ret);
}

static int create(struct call *call, struct wpath path, struct str content, struct outcome *ret, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct store_stat stat;
	int r = store_write(call->files, call->ctx, path, content, absent, &stat, err);

	if (r && err->kind == ERR_EXISTS) {
		ret->detail = first_lines(call, call->files, path);
		return err_set(err, ERR_EXISTS,
			       "write %.*s: the file already exists; use mode \"overwrite\" or \"append\", edit_file, "
			       "or another name",
			       STR_ARG(path.s));
	}
	return r ? r : written(call, path, &stat, STR("created"), content, ret);
}

static int overwrite(struct call *call, const struct jv *args, struct wpath path, struct str content,
		     struct outcome *ret, struct err *err)
{
	struct store_stat stat;
	int r = store_write(call->files, call->ctx, path, content, arg_cond(args), &stat, err);

	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, path, ret);
	return r ? r : written(call, path, &stat, STR("overwritten"), content, ret);
}

/* Where a file may be made. "notes/" is meant as a directory, and would become a file. */
static int arg_new_file(struct call *call, const struct jv *args, struct wpath *ret, struct err *err)
{
	struct str text = jv_get_str(args, "path");
	int r = arg_file(call, args, "path", ret, err);

	if (r == 0 && str_ends(text, STR("/")))
		return err_set(err, ERR_INVALID,
			       "write " ERR_PATH
			       ": a path that ends in '/' names a directory; add the name of the file",
			       STR_ARG(text));
	return r;
}

int tool_write_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str mode = jv_get_str(args, "mode"), content;
	struct wpath path;
	int r = arg_new_file(call, args, &path, err);

	if (r == 0)
		r = arg_content(call, args, path, &content, err);
	if (r)
		return r;
	if (str_is(mode, "append"))
		return append(call, args, path, content, ret, err);
	if (str_is(mode, "overwrite"))
		return overwrite(call, args, path, content, ret, err);
	if (jv_get_str(args, "if_version").ptr)
		return err_set(
			err, ERR_INVALID,
			"write %.*s: mode \"create\" never replaces a version; use mode \"overwrite\" with if_version",
			STR_ARG(path.s));
	return create(call, path, content, ret, err);
}

int tool_append_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct wpath path;
	struct str content;
	int r = arg_new_file(call, args, &path, err);

	if (r == 0)
		r = arg_content(call, args, path, &content, err);
	return r ? r : append(call, args, path, content, ret, err);
}

static struct str written_words(struct str action)
{
	return str_is(action, "appended")      ? STR("appended to")
	       : str_is(action, "overwritten") ? STR("replaced")
					       : action;
}

void render_written(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t lines = jv_get_int(value, "lines_written", 0), bytes = jv_get_int(value, "bytes_written", 0);
	int64_t size = jv_get_int(value, "size", 0);

	(void)args;
	buf_add(text, written_words(jv_get_str(value, "action")));
	buf_char(text, ' ');
	buf_add(text, jv_get_str(value, "path"));
	buf_printf(text, " (%lld line%s, %lld byte%s; the file has %lld byte%s, version %.*s)", (long long)lines,
		   plural((uint64_t)lines), (long long)bytes, plural((uint64_t)bytes), (long long)size,
		   plural((uint64_t)size), STR_ARG(jv_get_str(value, "version")));
}

/* Says how many files a directory holds, so that a model knows what `recursive` would take. */
static void tell_content(struct call *call, struct wpath path, struct outcome *ret)
{
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	struct err ignored;

	if (store_list(call->files, call->ctx, path, &req, &page, &ignored) == 0)
		ret->detail = page.count
				      ? arena_printf(call->ctx->arena, "The directory holds %zu file%s%s.", page.count,
						     plural(page.count), page.next.ptr ? " and more" : "")
				      : STR("The directory holds no files.");
}

/* A symbolic link of a directory of the person's own: it is removed, and not what it leads to. */
static bool is_own_link(struct call *call, struct str text, struct wpath *ret_path, struct str *ret_target)
{
	struct str root = workspace_own_dir(call->ws);
	struct err err;

	return root.len && workspace_link_path(call->ws, call->ctx->arena, text, ret_path, &err) == 0 &&
	       own_dir_is_link(call->ctx->arena, root, *ret_path, ret_target) &&
	       past_visible(call->ws, *ret_path, &err) == 0;
}

static int delete_link(struct call *call, struct wpath path, struct str target, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	int r = store_guard_check_change(call->files, path, err);

	if (r == 0)
		r = own_dir_unlink(arena, workspace_own_dir(call->ws), path, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path.s);
	jv_set_int(arena, ret->value, "removed", 0);
	ret->text = arena_printf(arena,
				 "removed the symbolic link %.*s -> %.*s; its target is untouched, and undo does not "
				 "bring the link back",
				 STR_ARG(path.s), STR_ARG(target));
	return 0;
}

/* A directory of the person's own may hold nothing that a store knows, only links and empty directories. */
static int remove_path(struct call *call, struct wpath path, enum store_kind kind, struct store_cond cond,
		       uint64_t *ret_count, uint64_t *ret_links, struct err *err)
{
	struct str root = workspace_own_dir(call->ws);
	int r = store_remove(call->files, call->ctx, path, kind == STORE_DIR, cond, ret_count, err);

	if (kind != STORE_DIR || !root.len || (r && r != -ERR_NOT_FOUND))
		return r;
	if (r)
		*ret_count = 0;
	return own_dir_drop(call->ctx->arena, root, path, ret_links) ? 0 : r;
}

int tool_delete_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	bool recursive = jv_get_bool(args, "recursive", false);
	struct store_stat stat;
	struct wpath path;
	struct str target;
	uint64_t count, links = 0;
	int r;

	if (is_own_link(call, jv_get_str(args, "path"), &path, &target))
		return delete_link(call, path, target, ret, err);
	r = arg_path(call, args, "path", &path, err);
	if (r == 0 && wpath_is_root(path))
		return err_set(err, ERR_INVALID, "delete: the path is the root; clear_files removes everything");
	if (r == 0)
		r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r)
		return r;
	if (stat.kind == STORE_DIR && !recursive) {
		tell_content(call, path, ret);
		return err_set(err, ERR_INVALID,
			       "delete %.*s: it is a directory; set recursive to remove everything in it",
			       STR_ARG(path.s));
	}
	if (stat.kind == STORE_DIR && jv_get_str(args, "if_version").ptr)
		return err_set(err, ERR_INVALID, "delete %.*s: a directory has no version; leave out if_version",
			       STR_ARG(path.s));
	r = remove_path(call, path, stat.kind, arg_cond(args), &count, &links, err);
	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, path, ret);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path.s);
	jv_set_int(arena, ret->value, "removed", (int64_t)count);
	if (links)
		ret->text =
			arena_printf(arena,
				     "removed %.*s (%llu file%s); undo does not bring back the %llu symbolic link%s "
				     "in it",
				     STR_ARG(path.s), (unsigned long long)count, plural(count),
				     (unsigned long long)links, plural(links));
	return 0;
}

int tool_clear_files(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct wpath area = workspace_clearable(call->ws);
	uint64_t count = 0;
	int r = store_remove(call->files, call->ctx, area, true, (struct store_cond){0}, &count, err);

	(void)args;
	if (r && (r != -ERR_NOT_FOUND || wpath_is_root(area)))
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", path_shown(area));
	jv_set_int(arena, ret->value, "removed", (int64_t)count);
	return 0;
}

void render_removed(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t n = jv_get_int(value, "removed", 0);

	(void)args;
	if (str_is(jv_get_str(value, "path"), "/"))
		buf_printf(text, "removed everything (%lld file%s)", (long long)n, plural((uint64_t)n));
	else
		buf_printf(text, "removed %.*s (%lld file%s)", STR_ARG(jv_get_str(value, "path")), (long long)n,
			   plural((uint64_t)n));
}

static int two_paths(struct call *call, const struct jv *args, struct wpath *from, struct wpath *to, struct err *err)
{
	int r = arg_file(call, args, "from", from, err);

	return r ? r : arg_file(call, args, "to", to, err);
}

static struct store_cond target_cond(const struct jv *args)
{
	return (struct store_cond){.kind = jv_get_bool(args, "overwrite", false) ? STORE_ANY : STORE_ABSENT};
}

/* The common end of move and copy. */
static int moved(struct call *call, struct str action, struct wpath from, struct wpath to,
		 const struct store_stat *stat, int r, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;

	if (r && err->kind == ERR_CONFLICT)
		explain_conflict(call, from, ret);
	if (r && err->kind == ERR_EXISTS) {
		ret->detail = first_lines(call, call->files, to);
		return err_set(err, ERR_EXISTS, "\"%.*s\" already exists; set overwrite, or choose another name",
			       STR_ARG(to.s));
	}
	if (r)
		return r;
	ret->value = value_file(arena, to, stat);
	jv_set_str(arena, ret->value, "action", action);
	jv_set_str(arena, ret->value, "from", from.s);
	jv_set_str(arena, ret->value, "kind", stat->kind == STORE_DIR ? STR("directory") : STR("file"));
	return 0;
}

/* What no store knows: a symbolic link, or a directory without files. */
static int move_on_disk(struct call *call, struct wpath from, struct wpath to, struct store_stat *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str root = workspace_own_dir(call->ws);
	int r = store_guard_check_change(call->files, from, err);

	if (r == 0)
		r = store_guard_check_change(call->files, to, err);
	if (r == 0 && !wpath_is_root(wpath_parent(to)))
		r = own_dir_make(arena, root, wpath_parent(to), err);
	*ret = (struct store_stat){.kind = STORE_DIR, .version = STR("")};
	return r ? r : own_dir_rename(arena, root, from, to, err);
}

/* A link goes only where nothing is: no history would keep what it replaces. */
static int move_link(struct call *call, struct wpath from, struct wpath to, struct outcome *ret, struct err *err)
{
	struct store_stat stat;
	int r = move_on_disk(call, from, to, &stat, err);

	stat.kind = STORE_FILE;
	if (r == -ERR_EXISTS)
		return err_set(err, ERR_EXISTS, "\"%.*s\" already exists; choose another name", STR_ARG(to.s));
	return moved(call, STR("moved"), from, to, &stat, r, ret, err);
}

int tool_move_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct store_stat stat = {0};
	struct wpath from, to;
	struct str target;
	int r;

	if (is_own_link(call, jv_get_str(args, "from"), &from, &target)) {
		r = arg_file(call, args, "to", &to, err);
		return r ? r : move_link(call, from, to, ret, err);
	}
	r = two_paths(call, args, &from, &to, err);
	if (r)
		return r;
	r = store_move(call->files, call->ctx, from, to, arg_cond(args), target_cond(args), &stat, err);
	if (r == -ERR_NOT_FOUND && own_dir_is_bare(call->ctx->arena, workspace_own_dir(call->ws), from))
		r = move_on_disk(call, from, to, &stat, err);
	else if (r == 0 && stat.kind == STORE_DIR && workspace_own_dir(call->ws).len)
		own_dir_follow(call->ctx->arena, workspace_own_dir(call->ws), from, to);
	return moved(call, STR("moved"), from, to, &stat, r, ret, err);
}

/* The store copies whatever is there; a copy of one version goes through memory and is bounded by that. */
static int copy_version(struct call *call, struct wpath from, struct wpath to, struct str version,
			struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct str bytes;
	int r = store_read(call->files, call->ctx, from, STORE_WHOLE, TOOL_FILE_MAX, &bytes, ret_stat, err);

	if (r)
		return r;
	if (!str_eq(ret_stat->version, version))
		return err_set(err, ERR_CONFLICT, "copy %.*s: the file has another version than if_version",
			       STR_ARG(from.s));
	return store_write(call->files, call->ctx, to, bytes, to_cond, ret_stat, err);
}

int tool_copy_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str version = jv_get_str(args, "if_version");
	struct store_stat stat;
	struct wpath from, to;
	int r = two_paths(call, args, &from, &to, err);

	if (r)
		return r;
	if (version.ptr)
		r = copy_version(call, from, to, version, target_cond(args), &stat, err);
	else
		r = store_copy(call->files, call->ctx, from, to, target_cond(args), &stat, err);
	return moved(call, STR("copied"), from, to, &stat, r, ret, err);
}

void render_moved(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str version = jv_get_str(value, "version");

	(void)args;
	buf_add(text, jv_get_str(value, "action"));
	buf_char(text, ' ');
	buf_add(text, jv_get_str(value, "from"));
	buf_lit(text, " to ");
	buf_add(text, jv_get_str(value, "path"));
	if (version.len) {
		buf_lit(text, " (version ");
		buf_add(text, version);
		buf_char(text, ')');
	}
}
