/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other stores at directories of a store: shared skills, a team's documents, read-only references. The longest mount
 * point that contains a path decides which store has it; what the base has there is hidden.
 *
 * Mount points always exist as directories, also with nothing in them, and so do the directories above them. They
 * cannot be removed or moved, nor can a directory that has one in it. A move between stores is a copy and then a remove
 * of what was copied, in that order, so that a failure in between leaves too much rather than too little.
 */
#include "base/limits.h"
#include "store/journal.h"
#include "store/list_stream.h"
#include "store/stores.h"

struct mounts {
	struct store base;
	struct store_mount *mounts; /* longest path first; the last one is the base, at the root */
	size_t count;
};

static struct mounts *mounts_of(struct store *s)
{
	return (struct mounts *)s;
}

static const struct store_mount *owner(const struct mounts *m, struct wpath path)
{
	for (size_t i = 0; i + 1 < m->count; i++)
		if (wpath_within(path, m->mounts[i].at))
			return &m->mounts[i];
	return &m->mounts[m->count - 1];
}

static struct wpath inside(const struct store_mount *mount, struct wpath path)
{
	return wpath_relative(path, mount->at);
}

/* The mount point that is `dir` or is below it, or NULL. */
static const struct store_mount *mount_within(const struct mounts *m, struct wpath dir)
{
	for (size_t i = 0; i + 1 < m->count; i++)
		if (wpath_within(m->mounts[i].at, dir))
			return &m->mounts[i];
	return NULL;
}

/* Refusals. */

static int refuse_dir(struct wpath path, struct err *err)
{
	return err_set(err, ERR_INVALID, ERR_PATH " is a directory with a mount point; name a file", STR_ARG(path.s));
}

static int refuse_read_only(const struct store_mount *mount, struct err *err)
{
	return err_set(err, ERR_DENIED,
		       ERR_PATH " is mounted read-only; copy the file to another directory and change that",
		       STR_ARG(mount->at.s));
}

/* An operation on a mount point, or on a directory that has one in it. */
static int on_mount_point(const struct store_call *call, const struct store_mount *mount, struct err *err)
{
	switch (call->op) {
	case STORE_OP_STAT:
		*call->ret_stat = (struct store_stat){.kind = STORE_DIR};
		return 0;
	case STORE_OP_REMOVE:
		if (!call->recursive)
			return refuse_dir(call->path, err);
		return err_set(err, ERR_DENIED, ERR_PATH " is a mount point; remove what is in it by name",
			       STR_ARG(mount->at.s));
	case STORE_OP_MOVE:
		return err_set(err, ERR_DENIED, ERR_PATH " is a mount point, which stays where it is",
			       STR_ARG(mount->at.s));
	default:
		return refuse_dir(call->path, err);
	}
}

/* Lists. */

/* The directories directly in `dir` that lead to mount points. */
static bool mount_child(const struct store_mount *mount, struct wpath dir, struct store_entry *ret)
{
	struct str rest;

	if (!wpath_within(mount->at, dir) || wpath_eq(mount->at, dir))
		return false;
	rest = wpath_relative(mount->at, dir).s;
	ret->path.s = str_first(mount->at.s, mount->at.s.len - rest.len + str_find_char(rest, '/'));
	ret->stat = (struct store_stat){.kind = STORE_DIR};
	return true;
}

/* The first of them after the entry or cursor `after`. */
static bool next_child(const struct mounts *m, struct ctx *ctx, struct wpath dir, struct str after,
		       struct store_entry *ret)
{
	bool found = false;

	for (size_t i = 0; i + 1 < m->count; i++) {
		struct store_entry e;

		if (!mount_child(&m->mounts[i], dir, &e) || str_cmp(list_cursor(ctx->arena, &e), after) <= 0)
			continue;
		if (!found || store_entry_cmp(&e, ret) < 0)
			*ret = e;
		found = true;
	}
	if (found) /* a page outlives the layer */
		ret->path.s = arena_str(ctx->arena, ret->path.s);
	return found;
}

/* One level: the owner's list, in which mount points take the place of what has their name. */
static int list_level(struct mounts *m, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	const struct store_mount *mount = owner(m, call->path);
	struct page_builder out = {.arena = ctx->arena, .limit = call->list->limit};
	struct str after = call->list->after;
	struct list_stream ls;
	int r = 0;

	list_stream_init(&ls, mount->store, ctx, inside(mount, call->path), mount->at, call->list);
	while (r == 0 && !page_builder_full(&out)) {
		const struct store_entry *e;
		struct store_entry child;

		r = list_stream_peek(&ls, &e, err);
		if (r == -ERR_INVALID) { /* the owner has a file where a mount needs a directory */
			ls.done = true;
			r = 0;
			continue;
		}
		if (r)
			break;
		if (e && mount_within(m, e->path)) {
			list_stream_next(&ls);
			continue;
		}
		if (next_child(m, ctx, call->path, after, &child) && (!e || store_entry_cmp(&child, e) < 0)) {
			page_builder_add(&out, &child);
			after = list_cursor(ctx->arena, &child);
		} else if (e) {
			page_builder_add(&out, e);
			list_stream_next(&ls);
		} else {
			break;
		}
	}
	out.page.skipped = ls.skipped;
	if (r == 0)
		page_builder_finish(&out, call->ret_page);
	return r;
}

/* All levels: the lists of every store that has something there, merged; each gives only what is its own. */
static int list_all(struct mounts *m, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct list_stream *streams = ARENA_ARRAY(ctx->arena, struct list_stream, m->count);
	struct page_builder out = {.arena = ctx->arena, .limit = call->list->limit};
	const struct store_mount *top = owner(m, call->path);
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct store_mount *mount = &m->mounts[i];

		if (mount == top)
			list_stream_init(&streams[n++], mount->store, ctx, inside(mount, call->path), mount->at,
					 call->list);
		else if (wpath_within(mount->at, call->path))
			list_stream_init(&streams[n++], mount->store, ctx, WPATH_ROOT, mount->at, call->list);
	}
	while (!page_builder_full(&out)) {
		const struct store_entry *best = NULL;
		struct list_stream *from = NULL;

		for (size_t i = 0; i < n; i++) {
			const struct store_entry *e;
			int r = list_stream_peek(&streams[i], &e, err);

			if (r == -ERR_INVALID)
				streams[i].done = true;
			else if (r)
				return r;
			else if (e && (!best || store_entry_cmp(e, best) < 0)) {
				best = e;
				from = &streams[i];
			}
		}
		if (!best)
			break;
		if (owner(m, best->path)->store == from->store && !mount_within(m, best->path))
			page_builder_add(&out, best);
		list_stream_next(from);
	}
	for (size_t i = 0; i < n; i++)
		out.page.skipped += streams[i].skipped;
	page_builder_finish(&out, call->ret_page);
	return 0;
}

static int mounts_list(struct mounts *m, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	if (!mount_within(m, call->path)) { /* the owner knows whether it is there */
		const struct store_mount *mount = owner(m, call->path);
		struct store_stat stat;
		struct store_call get = {.op = STORE_OP_STAT, .path = inside(mount, call->path), .ret_stat = &stat};
		int r = store_forward(mount->store, ctx, &get, err);

		if (r)
			return r;
		if (stat.kind == STORE_FILE)
			return store_refuse(REFUSE_FILE, call->path.s, err);
	}
	return call->list->recursive ? list_all(m, ctx, call, err) : list_level(m, ctx, call, err);
}

/* Scans: of one store, its own with the mount point put before its paths; of several, the generic one. */

struct mount_scan {
	struct str at;
	const struct scan_req *req;
};

struct full_path {
	char buf[2 * PATH_LEN_MAX + 2];
	struct str s;
};

static void put_before(struct str at, struct str path, struct full_path *ret)
{
	memcpy(ret->buf, at.ptr, at.len);
	ret->buf[at.len] = '/';
	memcpy(ret->buf + at.len + 1, path.ptr, path.len);
	ret->s = str_n(ret->buf, at.len + 1 + path.len);
}

static bool scan_want_dir(void *arg, struct str path)
{
	struct mount_scan *s = arg;
	struct full_path full;

	put_before(s->at, path, &full);
	return s->req->want_dir(s->req->arg, full.s);
}

static bool scan_want_file(void *arg, struct str path)
{
	struct mount_scan *s = arg;
	struct full_path full;

	put_before(s->at, path, &full);
	return s->req->want_file(s->req->arg, full.s);
}

static int scan_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct mount_scan *s = arg;
	struct scan_item own = *item;
	struct full_path full;

	put_before(s->at, item->path, &full);
	own.path = full.s;
	return s->req->visit(s->req->arg, &own, err);
}

static int mounts_scan(struct store *s, struct ctx *ctx, const struct store_call *call, struct err *err)
{
	struct mounts *m = mounts_of(s);
	const struct store_mount *mount = owner(m, call->path), *below = mount_within(m, call->path);
	struct mount_scan arg = {mount->at.s, call->scan};
	struct scan_req req = *call->scan;
	struct store_call own = *call;

	if (below && below != mount)
		return store_scan_generic(s, ctx, call->path, call->scan, err);
	own.path = inside(mount, call->path);
	if (mount->at.s.len) {
		req.want_dir = req.want_dir ? scan_want_dir : NULL;
		req.want_file = req.want_file ? scan_want_file : NULL;
		req.visit = scan_visit;
		req.arg = &arg;
		own.scan = &req;
	}
	return store_forward(mount->store, ctx, &own, err);
}

/* Moves between stores. */

static int forward_remove(const struct store_mount *mount, struct ctx *ctx, struct wpath path, bool recursive,
			  struct store_cond cond, struct err *err)
{
	uint64_t count;
	struct store_call call = {.op = STORE_OP_REMOVE,
				  .path = inside(mount, path),
				  .recursive = recursive,
				  .cond = cond,
				  .ret_count = &count};

	return store_forward(mount->store, ctx, &call, err);
}

static int forward_stat(const struct store_mount *mount, struct ctx *ctx, struct wpath path, struct store_stat *ret,
			struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = inside(mount, path), .ret_stat = ret};

	return store_forward(mount->store, ctx, &call, err);
}

static struct store_cond is_version(struct str version)
{
	return (struct store_cond){.kind = STORE_VERSION, .version = version};
}

static int move_file(const struct store_mount *a, const struct store_mount *b, struct ctx *ctx,
		     const struct store_call *call, struct str version, struct err *err)
{
	struct store_stat stat, old;
	struct err ignored;
	bool was_absent = forward_stat(b, ctx, call->to, &old, &ignored) == -ERR_NOT_FOUND;
	int r = store_copy_between(a->store, ctx, inside(a, call->path), b->store, inside(b, call->to), call->to_cond,
				   &stat, err);

	if (r)
		return r;
	r = forward_remove(a, ctx, call->path, false, is_version(version), err);
	if (r == 0)
		*call->ret_stat = stat;
	else if (was_absent)
		forward_remove(b, ctx, call->to, false, is_version(stat.version), &ignored);
	return r;
}

/* Every file of a directory, in the arena. */
static int collect(const struct store_mount *mount, struct ctx *ctx, struct wpath dir, struct store_page *ret,
		   struct err *err)
{
	struct page_builder all = {.arena = ctx->arena, .limit = SIZE_MAX};
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct list_stream ls;
	const struct store_entry *e;

	list_stream_init(&ls, mount->store, ctx, inside(mount, dir), mount->at, &req);
	for (;;) {
		int r = list_stream_peek(&ls, &e, err);

		if (r)
			return r;
		if (!e)
			break;
		page_builder_add(&all, e);
		list_stream_next(&ls);
	}
	*ret = all.page;
	return 0;
}

static int copy_files(const struct store_mount *a, const struct store_mount *b, struct ctx *ctx,
		      const struct store_call *call, const struct store_page *files, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++) {
		struct wpath from = files->entries[i].path, to;
		struct store_stat stat;

		r = wpath_join(ctx->arena, call->to, wpath_relative(from, call->path), &to, err);
		if (r == 0)
			r = store_copy_between(a->store, ctx, inside(a, from), b->store, inside(b, to), absent, &stat,
					       err);
	}
	return r;
}

static int move_dir(const struct store_mount *a, const struct store_mount *b, struct ctx *ctx,
		    const struct store_call *call, struct err *err)
{
	struct store_page files;
	struct store_stat stat;
	struct err ignored;
	int r = forward_stat(b, ctx, call->to, &stat, err);

	if (r == 0)
		return err_set(err, ERR_INVALID, ERR_PATH " exists; a directory cannot replace it",
			       STR_ARG(call->to.s));
	if (r != -ERR_NOT_FOUND)
		return r;
	r = collect(a, ctx, call->path, &files, err);
	if (r == 0)
		r = copy_files(a, b, ctx, call, &files, err);
	if (r) { /* the target did not exist: everything in it now is ours */
		forward_remove(b, ctx, call->to, true, (struct store_cond){0}, &ignored);
		return r;
	}
	for (size_t i = 0; r == 0 && i < files.count; i++)
		r = forward_remove(a, ctx, files.entries[i].path, false, is_version(files.entries[i].stat.version),
				   err);
	if (r == 0)
		*call->ret_stat = (struct store_stat){.kind = STORE_DIR};
	return r;
}

static int move_across(const struct store_mount *a, const struct store_mount *b, struct ctx *ctx,
		       const struct store_call *call, struct err *err)
{
	struct store_stat stat;
	int r = forward_stat(a, ctx, call->path, &stat, err);

	if (r == -ERR_NOT_FOUND && call->cond.kind == STORE_VERSION)
		return err_set(err, ERR_CONFLICT, "it was removed since it was read; look again before you decide");
	if (r)
		return r;
	if (stat.kind == STORE_DIR && call->cond.kind != STORE_ANY)
		return err_set(err, ERR_INVALID, "it is a directory, which has no version; leave the condition out");
	if (call->cond.kind == STORE_ABSENT)
		return err_set(err, ERR_EXISTS, "it exists");
	if (call->cond.kind == STORE_VERSION && !str_eq(call->cond.version, stat.version))
		return err_set(err, ERR_CONFLICT, "it changed since it was read; read again");
	return stat.kind == STORE_DIR ? move_dir(a, b, ctx, call, err) : move_file(a, b, ctx, call, stat.version, err);
}

static int two_paths(struct mounts *m, struct ctx *ctx, struct store_call *call, struct err *err)
{
	const struct store_mount *a = owner(m, call->path), *b = owner(m, call->to);
	struct store_call own = *call;

	if (mount_within(m, call->to))
		return refuse_dir(call->to, err);
	if (b->read_only || (a->read_only && call->op == STORE_OP_MOVE))
		return refuse_read_only(b->read_only ? b : a, err);
	if (a != b && call->op == STORE_OP_MOVE)
		return move_across(a, b, ctx, call, err);
	if (a != b)
		return store_copy_between(a->store, ctx, inside(a, call->path), b->store, inside(b, call->to),
					  call->to_cond, call->ret_stat, err);
	own.path = inside(a, call->path);
	own.to = inside(a, call->to);
	return store_forward(a->store, ctx, &own, err);
}

/* A journal and a file in one step: only where both are in the same store. */
static int journal_add(struct mounts *m, struct ctx *ctx, struct store_call *call, struct err *err)
{
	const struct store_mount *a = owner(m, call->path), *b = owner(m, call->to);
	bool alone = call->journal_add->change == JOURNAL_ALONE, two = call->journal_add->change == JOURNAL_MOVE;
	struct journal_add add = *call->journal_add;
	struct store_call own = *call;

	if (add.change == JOURNAL_GROUP)
		return err_set(err, ERR_UNSUPPORTED, "changes in several stores cannot be made in one step");
	if (a->read_only || (!alone && b->read_only))
		return refuse_read_only(a->read_only ? a : b, err);
	if (!alone && mount_within(m, call->to))
		return refuse_dir(call->to, err);
	if (two && mount_within(m, add.from))
		return refuse_dir(add.from, err);
	if ((!alone && a != b) || (two && owner(m, add.from) != a))
		return err_set(err, ERR_UNSUPPORTED, "the journal and the file are in different stores");
	if (two)
		add.from = inside(a, add.from);
	own.journal_add = &add;
	own.path = inside(a, call->path);
	own.to = alone ? WPATH_ROOT : inside(a, call->to);
	return store_forward(a->store, ctx, &own, err);
}

static int mounts_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct mounts *m = mounts_of(s);
	const struct store_mount *mount = owner(m, call->path), *below = mount_within(m, call->path);
	struct store_call own = *call;

	if (call->op == STORE_OP_LIST)
		return mounts_list(m, ctx, call, err);
	if (call->op == STORE_OP_SCAN)
		return mounts_scan(s, ctx, call, err);
	if (below)
		return on_mount_point(call, below, err);
	if (call->op == STORE_OP_MOVE || call->op == STORE_OP_COPY)
		return two_paths(m, ctx, call, err);
	if (call->op == STORE_OP_JOURNAL_ADD)
		return journal_add(m, ctx, call, err);
	if (mount->read_only && !store_op_info[call->op].reads_only)
		return refuse_read_only(mount, err);
	own.path = inside(mount, call->path);
	return store_forward(mount->store, ctx, &own, err);
}

static void mounts_destroy(struct store *s)
{
	struct mounts *m = mounts_of(s);

	for (size_t i = 0; i < m->count; i++) {
		free((char *)m->mounts[i].at.s.ptr);
		if (i + 1 < m->count) /* the base is the inner store */
			store_destroy(m->mounts[i].store);
	}
	free(m->mounts);
	free(m);
}

static const struct store_ops mounts_ops = {
	.name = "mounts",
	.cannot = STORE_ONE_STEP | STORE_GROUP_STEP | STORE_WRITE_STEP | STORE_OVER_PAST,
	.around = mounts_around,
	.destroy = mounts_destroy,
};

static int by_length(const void *a, const void *b)
{
	size_t x = ((const struct store_mount *)a)->at.s.len, y = ((const struct store_mount *)b)->at.s.len;

	return (x < y) - (x > y);
}

struct store *store_mounts_new(struct store *base, const struct store_mount *mounts, size_t count)
{
	struct mounts *m = xcalloc(1, sizeof(*m));

	m->base = (struct store){.ops = &mounts_ops, .inner = base};
	m->mounts = xcalloc(count + 1, sizeof(m->mounts[0]));
	m->count = count + 1;
	for (size_t i = 0; i < count; i++)
		m->mounts[i] = mounts[i];
	m->mounts[count] = (struct store_mount){.at = WPATH_ROOT, .store = base};
	for (size_t i = 0; i <= count; i++)
		m->mounts[i].at.s = str_n(xstrndup(m->mounts[i].at.s), m->mounts[i].at.s.len);
	qsort(m->mounts, count, sizeof(m->mounts[0]), by_length);
	return &m->base;
}
