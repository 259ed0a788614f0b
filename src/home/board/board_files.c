/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of an item see as /task:
 *
 *   guard    outermost: .env and its kin are absent as everywhere; JOURNAL.md and audit/ are read and never written,
 *            because they say what happened, and append_item_file adds to the journal in its own way
 *   mounts   outside the caps: what is mounted is somebody else's bytes and is streamed, never copied
 *   quota    the caps of the item and of all boards
 *   prefix   the item's directory
 *   home     the workspace of this user, so every change is a revision
 *
 * An item that comes again has a directory "shared" that all items of its series see: what one leaves there, the next
 * one finds. It is mounted, too, from boards/<board>/series/<schedule_id>/ of the home.
 *
 * A mount names a store that a person has put into agent.yaml (boards.mounts), or, given at the command line, a URL. An
 * agent can create items, so it must not be able to name a store that nobody meant it to reach.
 */
#include "home/board/board_internal.h"

#include "base/env.h"
#include "home/board/board_state.h"
#include "workspace/workspace_parts.h"

#define MOUNT_PATH_MAX ((size_t)128)
#define MOUNT_KEY_MAX  ((size_t)256)

static const char *const task_fixed[] = {"JOURNAL.md", "!*/**/JOURNAL.md", "audit", "!*/**/audit"};

int board_task_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	text = str_trim(text);
	if (str_starts(text, STR("/task")) && (text.len == 5 || text.ptr[5] == '/'))
		text = str_from(text, 5);
	else if (str_starts(text, STR("/" BOARD_SHARED)) && (text.len == 7 || text.ptr[7] == '/'))
		text = str_from(text, 1);
	else if (str_starts(text, STR("/")))
		return err_set(err, ERR_INVALID, "the path \"%.*s\" is not in /task; use /task/… or a relative path",
			       STR_ARG(utf8_first(text, 150)));
	return wpath_parse_lenient(arena, text, ret, err);
}

bool board_dir_is_fixed(struct wpath path)
{
	static const char *const names[] = {"artifacts", "uploads", "handoff", "audit", BOARD_SHARED};

	for (size_t i = 0; i < COUNT(names); i++) {
		if (str_is(path.s, names[i]))
			return true;
	}
	return false;
}

struct store *item_dir(struct workspace *ws, struct ctx *ctx, struct str board, struct str key)
{
	return store_prefix_new(store_share(workspace_home(ws)),
				board_path(ctx->arena, board, "tasks/%.*s", STR_ARG(key)));
}

/* --- mounts --- */

struct source_of {
	struct str url;
	bool read_only;
};

static int find_source(struct workspace *ws, const struct jv *mount, struct source_of *ret, struct err *err)
{
	const struct jv *all = jv_get(jv_get(workspace_config(ws)->document, "boards"), "mounts"), *entry;
	struct str name = jv_get_str(mount, "source");

	if (jv_get_str(mount, "url").len) {
		*ret = (struct source_of){.url = jv_get_str(mount, "url")};
		return 0;
	}
	entry = jv_get_key(all, name.len ? name : STR("default"));
	if (!jv_get_str(entry, "url").len)
		return err_set(err, ERR_DENIED,
			       "nothing can be mounted from \"%.*s\"; a person must list the stores in agent.yaml, "
			       "under boards.mounts",
			       STR_ARG(utf8_first(name.len ? name : STR("default"), 60)));
	*ret = (struct source_of){.url = jv_get_str(entry, "url"),
				  .read_only = !str_is(jv_get_str(entry, "mode"), "rw")};
	return 0;
}

static int check_mount(struct workspace *ws, struct ctx *ctx, const struct jv *mount, struct wpath *ret_at,
		       struct err *err)
{
	struct str at = jv_get_str(mount, "mount_path"), key = jv_get_str(mount, "s3_relative_key");
	struct source_of source;
	struct wpath path;
	int r;

	if (!str_starts(at, STR("/task/")) || at.len > MOUNT_PATH_MAX)
		return err_set(err, ERR_INVALID,
			       "the mount_path \"%.*s\" is not below /task/, or is longer than %zu characters; write "
			       "it as /task/inputs",
			       STR_ARG(utf8_first(at, 150)), MOUNT_PATH_MAX);
	r = wpath_parse(str_from(at, strlen("/task/")), ret_at, err);
	if (r == 0 && (wpath_within(*ret_at, (struct wpath){STR("audit")}) || str_is(ret_at->s, "JOURNAL.md") ||
		       str_is(ret_at->s, "TASK.md") || str_is(ret_at->s, "artifacts")))
		r = err_set(err, ERR_INVALID, "nothing can be mounted over %.*s; use another name", STR_ARG(at));
	if (r == 0 && (key.len > MOUNT_KEY_MAX || (!key.len && !jv_get_str(mount, "url").len)))
		r = err_set(err, ERR_INVALID, "a mount needs an s3_relative_key of at most %zu characters",
			    MOUNT_KEY_MAX);
	if (r == 0 && key.len)
		r = wpath_parse(key, &path, err);
	if (r == 0)
		r = find_source(ws, mount, &source, err);
	if (r == 0 && source.read_only && str_is(jv_get_str(mount, "mode"), "rw"))
		r = err_set(err, ERR_DENIED, "agent.yaml allows this mount only read-only; use mode ro");
	(void)ctx;
	return r;
}

int mounts_validate(struct workspace *ws, struct ctx *ctx, const struct jv *mounts, struct err *err)
{
	struct wpath at[BOARD_MOUNTS_MAX];
	size_t n = 0;
	int r = 0;

	if (jv_count(mounts) > BOARD_MOUNTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "an item has at most %d mounts; mount the directory above them",
			       BOARD_MOUNTS_MAX);
	for (const struct jv_member *m = jv_first(mounts); m && r == 0; m = m->next, n++) {
		r = check_mount(ws, ctx, m->value, &at[n], err);
		for (size_t i = 0; r == 0 && i < n; i++)
			if (wpath_within(at[n], at[i]) || wpath_within(at[i], at[n]))
				r = err_set(err, ERR_INVALID, "two mounts are at /task/%.*s; give each its own path",
					    STR_ARG(at[n].s));
	}
	return r;
}

struct jv *mounts_view(struct arena *arena, const struct jv *mounts)
{
	struct jv *list = jv_array(arena);

	for (const struct jv_member *m = jv_first(mounts); m; m = m->next) {
		struct jv *v = jv_copy(arena, m->value);

		if (jv_get_str(v, "url").len)
			jv_set_str(arena, v, "url", store_url_shown(arena, jv_get_str(v, "url")));
		if (!jv_get(v, "mode"))
			jv_set_str(arena, v, "mode", STR("ro"));
		jv_push(arena, list, v);
	}
	return list;
}

/* The characters of a name as a glob that matches only it. */
static struct str glob_of_name(struct arena *arena, struct str name)
{
	struct buf b;

	buf_init(&b, arena, 2 * name.len + 4);
	buf_lit(&b, "!/"); /* the '/': at the top only */
	for (size_t i = 0; i < name.len; i++) {
		if (strchr("*?[]{}\\!", name.ptr[i]))
			buf_char(&b, '\\');
		buf_char(&b, name.ptr[i]);
	}
	buf_char(&b, '\0');
	return str_n(b.ptr, b.len - 1);
}

/* A key that names one object is a directory with that object alone in it. */
static int open_mount(struct workspace *ws, struct ctx *ctx, const struct jv *mount, struct store_mount *ret,
		      struct err *err)
{
	struct wpath key = {jv_get_str(mount, "s3_relative_key")};
	struct store_stat stat = {0};
	struct source_of source;
	struct store *s;
	int r = check_mount(ws, ctx, mount, &ret->at, err);

	if (r == 0)
		r = find_source(ws, mount, &source, err);
	if (r == 0)
		r = store_open_url_within(workspace_url(ctx->arena, source.url), workspace_env(ws), ctx, &s, err);
	if (r)
		return err_prefix(err, "the mount at %.*s", STR_ARG(jv_get_str(mount, "mount_path")));
	if (key.s.len)
		r = store_stat(s, ctx, key, &stat, err);
	if (r && r != -ERR_NOT_FOUND) {
		store_destroy(s);
		return err_prefix(err, "the mount at %.*s", STR_ARG(jv_get_str(mount, "mount_path")));
	}
	if (stat.kind == STORE_FILE) {
		const char *hidden[] = {"*", glob_of_name(ctx->arena, wpath_name(key)).ptr};
		struct guard_rules rules = {.hidden = hidden, .hidden_count = 2};

		if (!wpath_is_root(wpath_parent(key)))
			s = store_prefix_new(s, wpath_parent(key));
		s = store_guard_new(s, &rules);
	} else if (key.s.len) {
		s = store_prefix_new(s, key);
	}
	ret->store = s;
	ret->read_only = source.read_only || !str_is(jv_get_str(mount, "mode"), "rw");
	return 0;
}

/* The item is one of a series. */
static bool has_shared(const struct jv *item)
{
	return jv_get_int(item, "interval_seconds", 0) > 0 && board_is_id(jv_get_str(item, "schedule_id"));
}

/* What the items of a series share, unless something else was mounted there. */
static size_t add_shared(struct workspace *ws, struct ctx *ctx, const struct item *item, struct store_mount *list,
			 size_t n)
{
	const struct wpath at = {STR(BOARD_SHARED)};

	for (size_t i = 0; i < n; i++)
		if (wpath_within(list[i].at, at))
			return n;
	if (!has_shared(item->v))
		return n;
	list[n] = (struct store_mount){
		.at = at,
		.store = store_prefix_new(store_share(workspace_home(ws)),
					  board_path(ctx->arena, item->board, "series/%.*s",
						     STR_ARG(jv_get_str(item->v, "schedule_id"))))};
	return n + 1;
}

static int add_mounts(struct workspace *ws, struct ctx *ctx, const struct item *item, struct store **task,
		      struct err *err)
{
	struct store_mount list[BOARD_MOUNTS_MAX + 1];
	size_t n = 0;
	int r = 0;

	for (const struct jv_member *m = jv_first(jv_get(item->v, "mounts")); m && r == 0 && n < BOARD_MOUNTS_MAX;
	     m = m->next) {
		r = open_mount(ws, ctx, m->value, &list[n], err);
		n += r == 0;
	}
	if (r == 0)
		n = add_shared(ws, ctx, item, list, n);
	if (r == 0 && n)
		*task = store_mounts_new(*task, list, n);
	for (size_t i = 0; r && i < n; i++)
		store_destroy(list[i].store);
	return r;
}

int board_task_open(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct store **ret_task,
		    struct err *err)
{
	const char *hidden[128];
	struct guard_rules rules = guard_defaults;
	struct store *task;
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0 && item.archived)
		r = err_set(err, ERR_CONFLICT, "the item %.*s is archived; take it back with unarchive_item first",
			    STR_ARG(item_key(item.v)));
	if (r)
		return r;
	task = board_state_task(family_state(&board_family, ws), ctx,
				board_path(ctx->arena, item.board, "tasks/%.*s", STR_ARG(item_key(item.v))));
	r = add_mounts(ws, ctx, &item, &task, err);
	if (r) {
		store_destroy(task);
		return r;
	}
	for (size_t i = 0; i < rules.hidden_count && i < COUNT(hidden); i++)
		hidden[i] = rules.hidden[i];
	rules.hidden = hidden;
	rules.fixed = task_fixed;
	rules.fixed_count = COUNT(task_fixed);
	*ret_task = store_guard_new(task, &rules);
	return 0;
}

/* The root of the tools is /task of this item, whether it exists or not. */
static bool root_item(struct workspace *ws, struct board_ref *ret)
{
	struct wpath root = workspace_root(ws), part = workspace_part(ws);
	struct str rest, word;

	if (!wpath_within(root, part))
		return false;
	rest = wpath_relative(root, part).s;
	if (!str_cut(&rest, '/', &word) || !str_is(word, "boards") || !str_cut(&rest, '/', &ret->board) ||
	    !str_cut(&rest, '/', &word) || !str_is(word, "tasks"))
		return false;
	ret->ref = rest;
	return true;
}

bool board_bound_item(struct workspace *ws, struct ctx *ctx, struct board_ref *ret)
{
	struct item item;
	struct err ignored;

	return root_item(ws, ret) && item_load(ws, ctx, *ret, &item, &ignored) == 0;
}

int board_root_files(struct workspace *ws, struct ctx *ctx, struct store **ret, struct err *err)
{
	struct board_ref ref;
	struct item item;
	int r;

	if (!root_item(ws, &ref))
		return 0;
	r = item_load(ws, ctx, ref, &item, err);
	if (r == 0 && (item.archived || has_shared(item.v) || jv_count(jv_get(item.v, "mounts")) > 0))
		r = board_task_open(ws, ctx, ref, ret, err);
	return r;
}
