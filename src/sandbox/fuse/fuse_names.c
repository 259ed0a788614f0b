/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: directories, removing, renaming, and names that other writers change. A store has directories only while there
 * are files in them; a program expects one that it made to be there, and one that it emptied to stay. So the view keeps
 * those that the store does not have, for as long as it is mounted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sandbox/fuse/fuse_internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

static void begin_change(struct worker *w)
{
	step_aside(w);
	w->ctx.actor.call_id = call_id_new(w->ctx.arena);
}

static int may_change(struct worker *w, struct wpath path)
{
	struct err err;

	return w->v->opts.may_change && w->v->opts.may_change(w->v->opts.arg, path, &err) != 0 ? errno_of(&err) : 0;
}

static struct node *find(struct fuse_view *v, struct wpath path)
{
	struct node *n;

	pthread_mutex_lock(&v->table);
	n = node_find_locked(v, path.s);
	pthread_mutex_unlock(&v->table);
	return n;
}

/* --- directories --- */

void op_mkdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_mkdir_in *asked = arg;
	struct fuse_view *v = w->v;
	struct store_stat stat;
	struct wpath path;
	struct node *n = NULL;
	struct err err;
	int code = child_path(w, in->nodeid, (const char *)(asked + 1), &path);

	(void)len;
	if (code == 0)
		code = may_change(w, path);
	if (code == 0) {
		may_wait(w);
		if (store_stat(v->opts.files, &w->ctx, path, &stat, &err) == 0)
			code = EEXIST;
		else if (err.kind != ERR_NOT_FOUND ||
			 (v->opts.make_dir && v->opts.make_dir(v->opts.arg, &w->ctx, path, &err) != 0))
			code = errno_of(&err);
	}
	if (code) {
		answer(w, in, code, NULL, 0);
		return;
	}
	pthread_mutex_lock(&v->table);
	n = node_take_locked(v, path.s);
	n->is_dir = n->is_known = n->is_made = true;
	node_extra_locked(v, n, true);
	pthread_mutex_unlock(&v->table);
	answer_entry(w, in, n, NULL);
}

/* Is there anything in the directory, here or in the store? An errno when that cannot be known. */
static int is_empty(struct worker *w, struct wpath dir, bool *ret_stored)
{
	struct store_list_req req = {.limit = 1, .names_only = true};
	struct store_page page = {0};
	struct err err;
	bool has = false;
	int r = store_list(w->v->opts.files, &w->ctx, dir, &req, &page, &err);

	*ret_stored = r == 0;
	if (r && err.kind != ERR_NOT_FOUND)
		return err.kind == ERR_INVALID ? ENOTDIR : errno_of(&err);
	pthread_mutex_lock(&w->v->table);
	for (struct node *n = w->v->extras; n && !has; n = n->next_extra)
		has = n->path_len > dir.s.len && wpath_within((struct wpath){str_n(n->path, n->path_len)}, dir);
	pthread_mutex_unlock(&w->v->table);
	return (r == 0 && page.count) || has ? ENOTEMPTY : 0;
}

void op_rmdir(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_view *v = w->v;
	struct wpath path;
	struct node *n;
	struct err err;
	bool stored = false;
	int code = child_path(w, in->nodeid, arg, &path);

	(void)len;
	if (code == 0) {
		begin_change(w);
		code = is_empty(w, path, &stored);
	}
	if (code == 0 && stored &&
	    store_remove(v->opts.files, &w->ctx, path, true, (struct store_cond){0}, NULL, &err) != 0 &&
	    err.kind != ERR_NOT_FOUND)
		code = errno_of(&err);
	if (code == 0) {
		nodes_keep_above(v, path);
		pthread_mutex_lock(&v->table);
		n = node_find_locked(v, path.s);
		if (n)
			node_unname_locked(v, n);
		pthread_mutex_unlock(&v->table);
	}
	answer(w, in, code, NULL, 0);
}

/* --- removing --- */

/* Who has the file open continues reading and writing it, without a name. */
static int hold_bytes(struct worker *w, struct node *n)
{
	int code = 0;

	if (!n || n->is_dir)
		return 0;
	pthread_mutex_lock(&n->lock);
	if (n->opens) {
		code = stage_begin(w, n);
		if (code == 0 && n->stage->hole)
			code = stage_load(w, n);
	}
	pthread_mutex_unlock(&n->lock);
	return code == ENOENT ? 0 : code;
}

void op_unlink(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	struct fuse_view *v = w->v;
	struct node *n = NULL;
	struct wpath path;
	struct err err;
	int code = child_path(w, in->nodeid, arg, &path);

	(void)len;
	if (code == 0) {
		n = find(v, path);
		code = hold_bytes(w, n);
	}
	if (code == 0 && !(n && n->is_new)) {
		begin_change(w);
		if (store_remove(v->opts.files, &w->ctx, path, false, (struct store_cond){0}, NULL, &err) != 0)
			code = errno_of(&err);
	}
	if (code == 0) {
		nodes_keep_above(v, path);
		pthread_mutex_lock(&v->table);
		if (n)
			node_unname_locked(v, n);
		pthread_mutex_unlock(&v->table);
	}
	answer(w, in, code, NULL, 0);
}

/* --- renaming --- */

/* A file that is not in the store yet is written under its new name. */
static int rename_new(struct worker *w, struct node *n, struct wpath to)
{
	struct fuse_view *v = w->v;
	struct err err;
	int code = may_change(w, to);

	if (code)
		return code;
	pthread_mutex_lock(&v->table);
	node_rename_locked(v, n, to.s);
	pthread_mutex_unlock(&v->table);
	pthread_mutex_lock(&n->lock);
	code = stage_commit(w, n, &err) == 0 ? 0 : errno_of(&err);
	pthread_mutex_unlock(&n->lock);
	return code;
}

/* A directory may replace an empty one. */
static int replace_dir(struct worker *w, struct wpath to)
{
	struct node *n = find(w->v, to);
	bool stored;
	int code;

	if (!n || !n->is_dir)
		return 0;
	code = is_empty(w, to, &stored);
	if (code == 0) {
		pthread_mutex_lock(&w->v->table);
		node_unname_locked(w->v, n);
		pthread_mutex_unlock(&w->v->table);
	}
	return code;
}

static int rename_stored(struct worker *w, struct node *n, struct wpath from, struct wpath to, bool keep)
{
	struct fuse_view *v = w->v;
	struct store_cond to_cond = {.kind = keep ? STORE_ABSENT : STORE_ANY};
	struct node *there = find(v, to);
	struct store_stat stat = {0};
	struct err err = {0};
	int code = n && n->is_dir ? replace_dir(w, to) : hold_bytes(w, there), r;

	if (code == 0 && n && !n->is_dir) {
		pthread_mutex_lock(&n->lock);
		code = stage_commit(w, n, &err) == 0 ? 0 : errno_of(&err);
		pthread_mutex_unlock(&n->lock);
	}
	if (code)
		return code;
	r = store_move(v->opts.files, &w->ctx, from, to, (struct store_cond){0}, to_cond, &stat, &err);
	if (r && !(err.kind == ERR_NOT_FOUND && n && n->is_made)) /* one that the store does not have */
		return there && there->is_dir ? EISDIR : errno_of(&err);
	nodes_keep_above(v, from);
	pthread_mutex_lock(&v->table);
	if (n) {
		int64_t own = n->own_mtime_ns;

		node_rename_locked(v, n, to.s);
		if (r == 0 && stat.kind == STORE_FILE) {
			node_set_locked(n, &stat);
			n->own_mtime_ns = own;
		}
	} else if (there) {
		node_unname_locked(v, there);
	}
	pthread_mutex_unlock(&v->table);
	return 0;
}

void op_rename(struct worker *w, const struct fuse_in_header *in, const void *arg, size_t len)
{
	const struct fuse_rename2_in *two = arg;
	const struct fuse_rename_in *one = arg;
	bool is_second = in->opcode == FUSE_RENAME2;
	const char *name = is_second ? (const char *)(two + 1) : (const char *)(one + 1);
	const char *end = (const char *)arg + len, *to_name = name + strnlen(name, (size_t)(end - name)) + 1;
	unsigned flags = is_second ? two->flags : 0;
	struct wpath from, to;
	struct node *n;
	int code = to_name >= end || flags & ~(unsigned)RENAME_NOREPLACE ? EINVAL : 0;

	if (code == 0)
		code = child_path(w, in->nodeid, name, &from);
	if (code == 0)
		code = child_path(w, is_second ? two->newdir : one->newdir, to_name, &to);
	if (code == 0) {
		n = find(w->v, from);
		begin_change(w);
		code = n && n->is_new ? rename_new(w, n, to) : rename_stored(w, n, from, to, flags & RENAME_NOREPLACE);
	}
	answer(w, in, code, NULL, 0);
}

/* --- other writers --- */

/* Holds the node, so that it stays while the kernel hears of it. */
static struct node *hold(struct fuse_view *v, struct wpath path)
{
	struct node *n;

	pthread_mutex_lock(&v->table);
	n = node_find_locked(v, path.s);
	if (n)
		node_take_locked(v, path.s);
	pthread_mutex_unlock(&v->table);
	return n;
}

static void drop_known(struct fuse_view *v, struct node *n)
{
	pthread_mutex_lock(&n->lock);
	node_drop_bytes(v, n);
	listing_destroy(n->listing);
	n->listing = NULL;
	pthread_mutex_lock(&v->table);
	if (n->stage && !n->stage->is_dirty)
		stage_drop(n);
	if (!n->is_dir && !n->is_staged) {
		free(n->version);
		n->version = NULL;
		n->own_mtime_ns = 0;
	}
	pthread_mutex_unlock(&v->table);
	pthread_mutex_unlock(&n->lock);
}

/* True when the directory is there still, so that those above it are as they were. */
static bool is_there(struct fuse_view *v, struct ctx *ctx, struct node *n, struct wpath path)
{
	struct err ignored;

	return n && n->is_dir && (n->is_made || store_stat(v->opts.files, ctx, path, NULL, &ignored) == 0);
}

void fuse_view_changed(struct fuse_view *v, struct wpath path)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .actor = v->opts.actor};

	for (;;) {
		struct node *n = hold(v, path), *parent = wpath_is_root(path) ? NULL : hold(v, wpath_parent(path));
		bool ends = wpath_is_root(path) || is_there(v, &ctx, n, path);

		if (n) {
			drop_known(v, n);
			notify_inode(v, n->id);
			node_forget(v, n->id, 1);
		}
		if (parent) {
			if (!ends)
				notify_entry(v, parent->id, wpath_name(path));
			node_forget(v, parent->id, 1);
		}
		if (ends)
			return;
		path = wpath_parent(path);
	}
}
