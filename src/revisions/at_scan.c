/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans of the past. The present files scan themselves, with their own threads (scan_merge.c), without those that were
 * changed since the revision. These are read from the log, in their places.
 *
 * A file that nobody has changed since the time of the revision has the bytes of then. The store says when a file was
 * changed, after it has read the bytes; what is newer than the revision is read through the view, which asks the log.
 * So a file that is changed during the scan, by whomever, is never shown as it is now. The times are those of the
 * machine's clock: if another program changes a file after the clock was set back, a scan may show that.
 *
 * Names are asked about when their directory has been read: then the log is read as far as it goes. What was made or
 * removed before the directory was read is in it, and what was removed later is among the names.
 */
#include "base/limits.h"
#include "revisions/at_internal.h"
#include "store/scan_merge.h"
#include "text/ignore.h"

struct past_scan {
	struct at *at;
	struct ctx *ctx;
	const struct scan_req *req;
	struct arena *arena;
	struct str below; /* the directory with a '/' after it; empty for the root */
	int64_t settled_ns;
	/* the walking thread's */
	struct buf dir;    /* whose names were asked about last */
	struct buf passed; /* the last path that was given or asked about */
	bool asked;        /* there is one */
	int result;
	struct err err;
};

static struct str parent_of(struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	return slash < path.len ? str_first(path, slash) : STR("");
}

static bool is_rules(struct str path)
{
	return str_is(wpath_name((struct wpath){path}), IGNORE_FILE) || str_is(path, IGNORE_EXCLUDE_FILE) ||
	       str_is(path, ".git") || str_starts(path, STR(".git/"));
}

/* Before the first name of a directory is asked about. */
static void bring_up(struct past_scan *s)
{
	struct ctx ctx = *s->ctx;
	int r;

	ctx.arena = s->arena;
	pthread_mutex_lock(&s->at->lock);
	r = at_bring_up(s->at, &ctx, &s->err);
	pthread_mutex_unlock(&s->at->lock);
	if (r)
		s->result = r;
}

static bool hides(void *arg, struct str path, bool is_dir)
{
	struct past_scan *s = arg;
	struct str dir;
	bool hidden;

	if (is_dir || s->result)
		return s->result != 0;
	dir = parent_of(path);
	if (!s->asked || !str_eq(dir, buf_str(&s->dir))) {
		bring_up(s);
		buf_clear(&s->dir);
		buf_add(&s->dir, dir);
		s->asked = true;
	}
	pthread_mutex_lock(&s->at->lock);
	hidden = at_changed_find(s->at, path) != NULL;
	pthread_mutex_unlock(&s->at->lock);
	return hidden || s->result;
}

/* Whether the caller wants a file that is not among the present ones. */
static bool is_wanted(struct past_scan *s, struct str path)
{
	const struct scan_req *req = s->req;

	for (size_t i = s->below.len; req->want_dir && i < path.len; i++)
		if (path.ptr[i] == '/' && !req->want_dir(req->arg, str_first(path, i)))
			return false;
	return !req->want_file || req->want_file(req->arg, path);
}

static void pass(struct past_scan *s, struct str path)
{
	buf_clear(&s->passed);
	buf_add(&s->passed, path);
}

/* The next changed path before `path`, whether or not it is wanted. */
static bool next_changed(struct past_scan *s, struct str path, struct changed *ret)
{
	struct str from = s->passed.len ? buf_str(&s->passed) : s->below;
	bool found = false;

	pthread_mutex_lock(&s->at->lock);
	for (size_t i = at_changed_from(s->at, from); i < s->at->count && !found; i++) {
		const struct changed *c = &s->at->changed[i];

		if (!str_starts(c->path, s->below) || (path.ptr && str_cmp(c->path, path) >= 0))
			break;
		found = c->existed && !str_eq(c->path, from);
		if (found)
			*ret = *c;
	}
	pthread_mutex_unlock(&s->at->lock);
	return found;
}

static bool next(void *arg, struct str path, struct scan_merge_file *ret)
{
	struct past_scan *s = arg;
	struct changed c;

	while (s->result == 0 && next_changed(s, path, &c)) {
		pass(s, c.path);
		if (is_wanted(s, c.path)) {
			*ret = (struct scan_merge_file){.path = c.path, .size = c.size};
			return true;
		}
	}
	if (path.ptr)
		pass(s, path);
	return false;
}

static bool is_stale(void *arg, const struct scan_item *item)
{
	const struct past_scan *s = arg;

	return item->unreadable || item->changed_ns == 0 || item->changed_ns >= s->settled_ns;
}

/* Rules of ignore files are those of the present: if one of them is another one since, or a file has to be put in its
   place by rules, the lists are scanned. The lock of the view is held. */
static bool rules_differ(const struct past_scan *s)
{
	for (size_t i = 0; s->req->use_ignore && i < s->at->count; i++)
		if (s->at->changed[i].existed || is_rules(s->at->changed[i].path))
			return true;
	return false;
}

/* Whether the present files can scan themselves. */
static int prepare(struct past_scan *s, struct ctx *ctx, struct wpath path, bool *ret, struct err *err)
{
	struct store_stat stat, now;
	struct store_call get = {.op = STORE_OP_STAT, .path = path, .ret_stat = &now};
	struct err ignored;
	int r = s->at->base.ops->stat(&s->at->base, ctx, path, &stat, err);

	*ret = false;
	if (r || stat.kind != STORE_DIR || s->req->threads == 1)
		return r;
	if (s->req->contents && !store_is_local(s->at->revisions->inner))
		return 0; /* a server tells no times: each file would be read twice */
	if (store_forward(s->at->revisions->inner, ctx, &get, &ignored) || now.kind != STORE_DIR)
		return 0;
	pthread_mutex_lock(&s->at->lock);
	r = at_bring_up(s->at, ctx, err);
	if (r == 0)
		r = at_settle(s->at, ctx, err);
	s->settled_ns = s->at->settled_ns;
	*ret = r == 0 && s->settled_ns && !rules_differ(s);
	pthread_mutex_unlock(&s->at->lock);
	return r;
}

int at_scan(struct store *store, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct past_scan s = {.at = at_of(store), .ctx = ctx, .req = req, .arena = arena};
	struct scan_merge merge = {.base = s.at->revisions->inner,
				   .extra = store,
				   .req = req,
				   .dated = true,
				   .hides = hides,
				   .next = next,
				   .is_stale = is_stale,
				   .arg = &s};
	REV_PINNED struct revisions *pin = revisions_pin(revisions_of(s.at->revisions));
	bool can;
	int r;

	if (!wpath_is_root(path))
		s.below = arena_printf(arena, "%.*s/", STR_ARG(path.s));
	r = prepare(&s, ctx, path, &can, err);
	if (r)
		return r;
	if (!can)
		return store_scan_generic(store, ctx, path, req, err);
	buf_init(&s.dir, NULL, 2 * PATH_LEN_MAX);
	buf_init(&s.passed, NULL, 2 * PATH_LEN_MAX);
	r = scan_merge(&merge, ctx, path, err);
	buf_release(&s.dir);
	buf_release(&s.passed);
	if (r == 0 && s.result) {
		*err = s.err;
		r = s.result;
	}
	return r;
}
