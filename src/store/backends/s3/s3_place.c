/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "A name is a file or a directory, never both", on a server that knows only keys.
 *
 * Nothing in S3 refuses to have both keys "a" and "a/b", so a write has to look first, and looking costs
 * requests that the usual write should not pay. The rule: before the first write into a directory one LIST of that
 * level is made, unless somebody has just asked for one, and the names of its directories are remembered for PLACE_TTL.
 * While they are, a write into it costs its PUT alone: the directory has something in it, so no part of the path is a
 * file; the name is not among its directories, so it may become a file. A write under a version condition never looks:
 * what it replaces is a file.
 *
 * When memory allows a write, it is trusted for that time; before a refusal the server is asked again. So a second
 * process that makes "a/b" at the moment when this one makes "a" (or within PLACE_TTL) may leave both. Both then stay
 * readable and listed, nothing is lost, and `stead fsck` names them. The alternatives cost each write a request (an
 * exact look has the same race, only shorter) or a marker object per directory, which others would have to honour.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/backends/s3/s3.h"

#define PLACE_TTL_NS (60 * 1000000000LL)
#define DIRS_MAX     1024 /* directories that are remembered; a power of two */
#define LOOK_PAGES   4    /* a level of more than 1,000 times this is not remembered: each new name is looked up */

struct dir {
	char *path;
	int64_t seen_ns; /* 0: not in use */
	bool complete;   /* `names` are all directories of this level */
	char **names;
	size_t count, cap;
};

struct s3_places {
	pthread_mutex_t lock;
	struct dir dirs[DIRS_MAX]; /* by hash; a newer one takes the place of an older one */
};

struct s3_places *s3_places_new(void)
{
	struct s3_places *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void dir_forget(struct dir *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->names[i]);
	free(d->names);
	free(d->path);
	*d = (struct dir){0};
}

void s3_places_destroy(struct s3_places *p)
{
	for (size_t i = 0; i < DIRS_MAX; i++)
		dir_forget(&p->dirs[i]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Below: with the lock held. */

static struct dir *slot(struct s3_places *p, struct str path)
{
	return &p->dirs[hash_u64(path, 0) & (DIRS_MAX - 1)];
}

static struct dir *dir_find(struct s3_places *p, struct str path)
{
	struct dir *d = slot(p, path);

	return d->path && str_is(path, d->path) ? d : NULL;
}

static struct dir *dir_new(struct s3_places *p, struct str path)
{
	struct dir *d = slot(p, path);

	dir_forget(d);
	d->path = xstrndup(path);
	d->seen_ns = clock_monotonic_ns();
	d->complete = true;
	return d;
}

static bool dir_has(const struct dir *d, struct str name)
{
	for (size_t i = 0; i < d->count; i++)
		if (str_is(name, d->names[i]))
			return true;
	return false;
}

static void dir_add(struct dir *d, struct str name)
{
	if (dir_has(d, name))
		return;
	if (d->count == d->cap) {
		d->cap = d->cap ? d->cap * 2 : 8;
		d->names = xrealloc(d->names, d->cap * sizeof(d->names[0]));
	}
	d->names[d->count++] = xstrndup(name);
}

static void forget_within(struct s3_places *p, struct str path)
{
	struct wpath top = {path};

	for (size_t i = 0; i < DIRS_MAX; i++)
		if (p->dirs[i].path && wpath_within((struct wpath){str_of(p->dirs[i].path)}, top))
			dir_forget(&p->dirs[i]);
}

/* Facts that an operation learned. */

void s3_place_made(struct s3 *s3, struct str path)
{
	struct s3_places *p = s3->places;
	struct wpath at = {path};

	pthread_mutex_lock(&p->lock);
	if (dir_find(p, path))
		forget_within(p, path);
	while (!wpath_is_root(at = wpath_parent(at))) {
		struct dir *d = dir_find(p, wpath_parent(at).s);

		if (d)
			dir_add(d, wpath_name(at));
	}
	pthread_mutex_unlock(&p->lock);
}

void s3_place_gone(struct s3 *s3, struct str path)
{
	struct s3_places *p = s3->places;
	struct wpath at = {path};

	pthread_mutex_lock(&p->lock);
	forget_within(p, path);
	while (!wpath_is_root(at = wpath_parent(at))) { /* it may have been the last one in them */
		struct dir *d = dir_find(p, at.s);

		if (d)
			dir_forget(d);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Looks. */

static void remember(struct s3_places *p, struct str path, const struct s3_listing *list, size_t skip, bool first)
{
	struct dir *d;

	pthread_mutex_lock(&p->lock);
	d = first ? dir_new(p, path) : dir_find(p, path);
	for (size_t i = 0; d && i < list->count; i++)
		if (list->objects[i].prefix) {
			struct str name = str_from(list->objects[i].key, skip);

			name.len -= name.len > 0; /* its '/' */
			dir_add(d, name);
		}
	if (d)
		d->complete = !list->truncated;
	pthread_mutex_unlock(&p->lock);
}

void s3_place_listed(struct s3 *s3, struct str dir, size_t skip, const struct s3_listing *list)
{
	if (list->count && !list->truncated)
		remember(s3->places, dir, list, skip, true);
}

/* One level as the server has it now; *ret_any: there is something in it. */
static int look(struct s3 *s3, struct ctx *ctx, struct str dir, bool *ret_any, struct err *err)
{
	struct str key = s3_dir_key(s3, ctx->arena, dir), token = STR("");
	bool any = false;

	for (int page = 0; page < LOOK_PAGES; page++) {
		struct s3_listing list;
		int r = s3_list(s3, ctx, key, true, STR(""), token, 1000, &list, err);

		if (r)
			return r;
		any = any || list.count;
		if (any || dir.len == 0)
			remember(s3->places, dir, &list, key.len, page == 0);
		token = list.token;
		if (!list.truncated || !token.len)
			break;
	}
	*ret_any = any || dir.len == 0;
	return 0;
}

static bool known(struct s3_places *p, struct str dir)
{
	struct dir *d;
	bool fresh;

	pthread_mutex_lock(&p->lock);
	d = dir_find(p, dir);
	fresh = d && clock_monotonic_ns() - d->seen_ns < PLACE_TTL_NS;
	pthread_mutex_unlock(&p->lock);
	return fresh;
}

/* No part of `dir`, itself included, is a file. *ret_new: nothing is in it yet. */
static int check_dirs(struct s3 *s3, struct ctx *ctx, struct str dir, bool *ret_new, struct err *err)
{
	*ret_new = false;
	for (struct wpath at = {dir};; at = wpath_parent(at)) {
		struct s3_head head;
		bool any;
		int r;

		if (known(s3->places, at.s))
			return 0;
		r = look(s3, ctx, at.s, &any, err);
		if (r || any)
			return r;
		if (at.s.len == dir.len)
			*ret_new = true;
		r = s3_head(s3, ctx, s3_key(s3, ctx->arena, at.s), &head, err);
		if (r)
			return r;
		if (head.exists)
			return store_refuse(REFUSE_BELOW_FILE, at.s, err);
	}
}

int s3_place_check(struct s3 *s3, struct ctx *ctx, struct str path, struct err *err)
{
	struct wpath at = {path}, dir = wpath_parent(at);
	struct dir *d;
	bool any, is_new;
	int r = check_dirs(s3, ctx, dir.s, &is_new, err);

	if (r || is_new)
		return r;
	pthread_mutex_lock(&s3->places->lock);
	d = dir_find(s3->places, dir.s);
	any = !d || !d->complete || dir_has(d, wpath_name(at));
	pthread_mutex_unlock(&s3->places->lock);
	if (!any)
		return 0;
	r = s3_any_below(s3, ctx, s3_dir_key(s3, ctx->arena, path), &any, err);
	if (r == 0 && any)
		r = store_refuse(REFUSE_DIR, path, err);
	return r;
}
