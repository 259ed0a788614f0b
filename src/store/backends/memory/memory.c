/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in memory: for tests, for throw-away workspaces, and as the plainest reading of the contract.
 *
 * Files are kept in one treap, ordered by path. Directories are not stored: "a/" exists while some path starts with it,
 * which one search answers. Because a directory's files are neighbours in that order, a directory is one cut of the
 * tree: removing it drops the cut, moving it renames the cut's nodes and puts it in elsewhere, with no copying. A hash
 * table was rejected (lists need order), a sorted array too (inserting 100,000 files one by one moves gigabytes).
 *
 * Bytes are counted references. A reader takes one under the lock and pushes after letting go, so a slow or re-entrant
 * sink never blocks a writer. An append grows the block in place when nobody else holds it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

struct blob {
	atomic_uint refs;
	size_t len, cap;
	char bytes[];
};

struct node {
	struct node *left, *right;
	uint64_t priority;
	struct str path; /* owned */
	struct blob *blob;
	int64_t mtime_ns;
	uint64_t version;
	struct str chosen; /* owned; the version that a journal chose for it, instead */
};

/* A journal: entries `first` … first + count - 1. */
struct log {
	struct log *next;
	struct str path;     /* owned */
	struct str *entries; /* owned, each */
	size_t count, cap;
	uint64_t first;
};

struct memory {
	struct store base;
	pthread_rwlock_t lock;
	struct node *root;
	uint64_t seed;
	uint64_t version; /* starts at random, so that a version of an earlier run is not mistaken for a current one */
	struct log *logs;
	pthread_mutex_t news_lock; /* of news: entries that were ever added, for those who wait */
	pthread_cond_t news_added;
	uint64_t news;
};

static struct memory *memory_of(struct store *s)
{
	return (struct memory *)s;
}

/* Bytes. */

static struct blob *blob_new(size_t cap)
{
	struct blob *b = xmalloc(sizeof(*b) + cap);

	atomic_init(&b->refs, 1);
	b->len = 0;
	b->cap = cap;
	return b;
}

static void blob_drop(struct blob *b)
{
	if (atomic_fetch_sub(&b->refs, 1) == 1)
		free(b);
}

/* The blob with room for `more`, grown by doubling. The caller holds the only reference. */
static struct blob *blob_room(struct blob *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 64;

	if (b->len + more <= b->cap)
		return b;
	while (cap < b->len + more)
		cap *= 2;
	b = xrealloc(b, sizeof(*b) + cap);
	b->cap = cap;
	return b;
}

static void blob_add(struct blob **b, struct str bytes)
{
	*b = blob_room(*b, bytes.len);
	if (bytes.len)
		memcpy((*b)->bytes + (*b)->len, bytes.ptr, bytes.len);
	(*b)->len += bytes.len;
}

static int too_large(struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "a file in a memory store holds at most %zu bytes; use a disk store",
		       MEMORY_FILE_MAX);
}

/* Everything that the source gives, before the lock is taken. */
static int blob_collect(struct ctx *ctx, const struct source *source, struct blob **ret, struct err *err)
{
	struct blob *b = blob_new(source->pull ? 4096 : source->bytes.len);
	int r = source->bytes.len > MEMORY_FILE_MAX ? too_large(err) : 0;

	if (r == 0 && !source->pull)
		blob_add(&b, source->bytes);
	while (r == 0 && source->pull) {
		size_t n = 0;

		b = blob_room(b, b->len < STREAM_CHUNK ? 4096 : STREAM_CHUNK);
		r = ctx_check(ctx, err);
		if (r == 0)
			r = source->pull(source->arg, b->bytes + b->len, b->cap - b->len, &n, err);
		if (r || n == 0)
			break;
		b->len += n;
		if (b->len > MEMORY_FILE_MAX)
			r = too_large(err);
	}
	if (r) {
		blob_drop(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* The tree. */

static void node_free(struct node *n)
{
	free((char *)n->path.ptr);
	free((char *)n->chosen.ptr);
	blob_drop(n->blob);
	free(n);
}

static uint64_t tree_free(struct node *n)
{
	uint64_t count = 0;

	if (n) {
		count = 1 + tree_free(n->left) + tree_free(n->right);
		node_free(n);
	}
	return count;
}

/* Cuts into paths below `key` and the rest. */
static void tree_split(struct node *n, struct str key, struct node **ret_less, struct node **ret_rest)
{
	if (!n) {
		*ret_less = *ret_rest = NULL;
	} else if (str_cmp(n->path, key) < 0) {
		tree_split(n->right, key, &n->right, ret_rest);
		*ret_less = n;
	} else {
		tree_split(n->left, key, ret_less, &n->left);
		*ret_rest = n;
	}
}

static struct node *tree_merge(struct node *a, struct node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = tree_merge(a->right, b);
		return a;
	}
	b->left = tree_merge(a, b->left);
	return b;
}

/* The first node at `key` or after it (`behind`: only after it). */
static struct node *tree_seek(struct node *n, struct str key, bool behind)
{
	struct node *best = NULL;

	while (n) {
		int c = str_cmp(n->path, key);

		if (c > 0 || (c == 0 && !behind)) {
			best = n;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

static struct node *tree_find(struct node *n, struct str key)
{
	struct node *found = tree_seek(n, key, false);

	return found && str_eq(found->path, key) ? found : NULL;
}

/* "path/" and "path0": everything below `path` is in the range from the first up to the second. Of the root, all. */
struct span {
	char from_buf[PATH_LEN_MAX + 1], end_buf[PATH_LEN_MAX + 1];
	struct str from, end;
};

static void span_of(struct str path, struct span *ret)
{
	if (path.len) {
		memcpy(ret->from_buf, path.ptr, path.len);
		memcpy(ret->end_buf, path.ptr, path.len);
		ret->from_buf[path.len] = '/';
		ret->end_buf[path.len] = '/' + 1;
		ret->from = str_n(ret->from_buf, path.len + 1);
		ret->end = str_n(ret->end_buf, path.len + 1);
	} else {
		ret->from = STR("");
		ret->end = STR("\xFF"); /* no UTF-8 byte */
	}
}

static bool is_dir(struct memory *m, struct str path)
{
	struct span span;
	struct node *n;

	if (path.len == 0)
		return true;
	span_of(path, &span);
	n = tree_seek(m->root, span.from, false);
	return n && str_starts(n->path, span.from);
}

/* Takes all below `path` out of the tree. */
static struct node *cut_dir(struct memory *m, struct str path)
{
	struct node *before, *cut, *behind;
	struct span span;

	span_of(path, &span);
	tree_split(m->root, span.from, &before, &cut);
	tree_split(cut, span.end, &cut, &behind);
	m->root = tree_merge(before, behind);
	return cut;
}

/* Inserts a tree whose paths are all adjacent at `key`. */
static void put_in(struct memory *m, struct str key, struct node *cut)
{
	struct node *before, *behind;

	tree_split(m->root, key, &before, &behind);
	m->root = tree_merge(tree_merge(before, cut), behind);
}

static void drop_file(struct memory *m, struct str path)
{
	struct node *before, *cut, *behind;
	char end[PATH_LEN_MAX + 1] = {0};

	memcpy(end, path.ptr, path.len); /* path and a NUL after it: the least key that is greater */
	tree_split(m->root, path, &before, &cut);
	tree_split(cut, str_n(end, path.len + 1), &cut, &behind);
	m->root = tree_merge(before, behind);
	tree_free(cut);
}

/* Checks that need the lock. */

static int is_a_dir(struct str path, struct err *err)
{
	return store_refuse(REFUSE_DIR, path, err);
}

/* Checks that a file may be at `path`: it is not a directory, and none of its parents is a file. */
static int check_place(struct memory *m, struct str path, struct err *err)
{
	if (is_dir(m, path))
		return is_a_dir(path, err);
	for (size_t i = 0; i < path.len; i++)
		if (path.ptr[i] == '/' && tree_find(m->root, str_first(path, i)))
			return store_refuse(REFUSE_BELOW_FILE, str_first(path, i), err);
	return 0;
}

static struct str format_version(struct arena *arena, const struct node *n)
{
	return n->chosen.ptr ? arena_str(arena, n->chosen)
			     : arena_printf(arena, "%llx", (unsigned long long)n->version);
}

static int check_cond(const struct node *n, struct store_cond cond, struct err *err)
{
	char have[24];
	int len = n ? snprintf(have, sizeof(have), "%llx", (unsigned long long)n->version) : 0;

	return store_cond_check(cond, n, n && n->chosen.ptr ? n->chosen : str_n(have, (size_t)len), err);
}

static void fill_stat(struct arena *arena, const struct node *n, struct store_stat *ret)
{
	if (n)
		*ret = (struct store_stat){.kind = STORE_FILE,
					   .size = n->blob->len,
					   .mtime_ns = n->mtime_ns,
					   .version = format_version(arena, n)};
	else
		*ret = (struct store_stat){.kind = STORE_DIR};
}

/* Operations. */

static int memory_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
		       struct err *err)
{
	struct memory *m = memory_of(s);
	struct node *n;
	int r = 0;

	pthread_rwlock_rdlock(&m->lock);
	n = tree_find(m->root, path.s);
	if (n || is_dir(m, path.s))
		fill_stat(ctx->arena, n, ret_stat);
	else
		r = store_not_found(err);
	pthread_rwlock_unlock(&m->lock);
	return r;
}

static int push_range(struct ctx *ctx, const struct blob *b, struct store_range range, const struct sink *sink,
		      struct err *err)
{
	size_t from = range.offset < b->len ? (size_t)range.offset : b->len;
	size_t len = range.length < b->len - from ? (size_t)range.length : b->len - from;
	void *direct = sink->reserve ? sink->reserve(sink->arg, len) : NULL;
	int r = 0;

	if (direct) {
		memcpy(direct, b->bytes + from, len);
		return sink->push(sink->arg, direct, len, err);
	}
	while (r == 0 && len) {
		size_t n = len < STREAM_CHUNK ? len : STREAM_CHUNK;

		r = ctx_check(ctx, err);
		if (r == 0)
			r = sink->push(sink->arg, b->bytes + from, n, err);
		from += n;
		len -= n;
	}
	return r;
}

static int memory_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		       const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct memory *m = memory_of(s);
	struct blob *b = NULL;
	struct store_stat stat;
	struct node *n;
	int r;

	pthread_rwlock_rdlock(&m->lock);
	n = tree_find(m->root, path.s);
	if (n) {
		b = n->blob;
		atomic_fetch_add(&b->refs, 1);
		fill_stat(ctx->arena, n, &stat);
		r = 0;
	} else {
		r = is_dir(m, path.s) ? is_a_dir(path.s, err) : store_not_found(err);
	}
	pthread_rwlock_unlock(&m->lock);
	if (r)
		return r;
	r = push_range(ctx, b, range, sink, err);
	blob_drop(b);
	if (r == 0)
		*ret_stat = stat;
	return r;
}

static struct node *add_file(struct memory *m, struct str path)
{
	struct node *n = xcalloc(1, sizeof(*n));

	n->path = str_n(xstrndup(path), path.len);
	n->priority = hash_u64(path, m->seed);
	n->blob = blob_new(0);
	put_in(m, path, n);
	return n;
}

/* The node at `path` that may be written, NULL when it is to be made. */
static int find_for_write(struct memory *m, struct str path, struct store_cond cond, struct node **ret, struct err *err)
{
	int r = check_place(m, path, err);

	*ret = tree_find(m->root, path);
	return r ? r : check_cond(*ret, cond, err);
}

static void touch(struct memory *m, struct node *n)
{
	free((char *)n->chosen.ptr);
	n->chosen = STR_NONE;
	n->version = ++m->version;
	n->mtime_ns = clock_real_ns();
}

static int memory_write(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct memory *m = memory_of(s);
	struct blob *b;
	struct node *n;
	int r = blob_collect(ctx, source, &b, err);

	if (r)
		return r;
	pthread_rwlock_wrlock(&m->lock);
	r = find_for_write(m, path.s, cond, &n, err);
	if (r == 0) {
		struct blob *old;

		if (!n)
			n = add_file(m, path.s);
		old = n->blob;
		n->blob = b;
		b = old;
		touch(m, n);
		fill_stat(ctx->arena, n, ret_stat);
	}
	pthread_rwlock_unlock(&m->lock);
	blob_drop(b);
	return r;
}

static void append_bytes(struct node *n, const struct blob *more)
{
	if (atomic_load(&n->blob->refs) > 1) { /* a reader is pushing these bytes */
		struct blob *own = blob_new(n->blob->len + more->len);

		blob_add(&own, str_n(n->blob->bytes, n->blob->len));
		blob_drop(n->blob);
		n->blob = own;
	}
	blob_add(&n->blob, str_n(more->bytes, more->len));
}

static int memory_append(struct store *s, struct ctx *ctx, struct wpath path, const struct source *source,
			 struct store_cond cond, struct store_stat *ret_stat, struct err *err)
{
	struct memory *m = memory_of(s);
	struct blob *b;
	struct node *n;
	int r = blob_collect(ctx, source, &b, err);

	if (r)
		return r;
	pthread_rwlock_wrlock(&m->lock);
	r = find_for_write(m, path.s, cond, &n, err);
	if (r == 0 && n && n->blob->len + b->len > MEMORY_FILE_MAX)
		r = too_large(err);
	if (r == 0) {
		if (!n)
			n = add_file(m, path.s);
		append_bytes(n, b);
		touch(m, n);
		fill_stat(ctx->arena, n, ret_stat);
	}
	pthread_rwlock_unlock(&m->lock);
	blob_drop(b);
	return r;
}

/* What a remove or move begins with: a file that meets its condition, or (ret NULL) a directory. */
static int find_source(struct memory *m, struct str path, struct store_cond cond, struct node **ret, struct err *err)
{
	*ret = tree_find(m->root, path);
	if (*ret)
		return check_cond(*ret, cond, err);
	if (!is_dir(m, path))
		return cond.kind == STORE_VERSION ? check_cond(NULL, cond, err) : store_not_found(err);
	if (cond.kind != STORE_ANY)
		return store_refuse(REFUSE_DIR_VERSION, path, err);
	return 0;
}

static void log_free(struct log *log)
{
	for (size_t i = 0; i < log->count; i++)
		free((char *)log->entries[i].ptr);
	free(log->entries);
	free((char *)log->path.ptr);
	free(log);
}

/* Of a directory that goes: the journals in it. */
static void drop_logs(struct memory *m, struct wpath dir)
{
	struct log **at = &m->logs;

	while (*at) {
		struct log *log = *at;

		if (wpath_within((struct wpath){log->path}, dir)) {
			*at = log->next;
			log_free(log);
		} else {
			at = &log->next;
		}
	}
}

static int memory_remove(struct store *s, struct ctx *ctx, struct wpath path, bool recursive, struct store_cond cond,
			 uint64_t *ret_count, struct err *err)
{
	struct memory *m = memory_of(s);
	struct node *n;
	int r;

	(void)ctx;
	pthread_rwlock_wrlock(&m->lock);
	r = find_source(m, path.s, cond, &n, err);
	if (r == 0 && !n && !recursive)
		r = store_refuse(REFUSE_NOT_RECURSIVE, path.s, err);
	if (r == 0 && n) {
		drop_file(m, path.s);
		*ret_count = 1;
	} else if (r == 0) {
		*ret_count = tree_free(cut_dir(m, path.s));
		drop_logs(m, path);
	}
	pthread_rwlock_unlock(&m->lock);
	return r;
}

static int check_lengths(const struct node *n, size_t from_len, size_t to_len, struct err *err)
{
	int r;

	if (!n)
		return 0;
	if (n->path.len - from_len + to_len > PATH_LEN_MAX)
		return store_refuse(REFUSE_LONG_PATH, n->path, err);
	r = check_lengths(n->left, from_len, to_len, err);
	return r ? r : check_lengths(n->right, from_len, to_len, err);
}

static void rename_tree(struct node *n, size_t from_len, struct str to)
{
	size_t rest;
	char *path;

	if (!n)
		return;
	rest = n->path.len - from_len;
	path = xmalloc(to.len + rest + 1);
	memcpy(path, to.ptr, to.len);
	memcpy(path + to.len, n->path.ptr + from_len, rest);
	path[to.len + rest] = '\0';
	free((char *)n->path.ptr);
	n->path = str_n(path, to.len + rest);
	rename_tree(n->left, from_len, to);
	rename_tree(n->right, from_len, to);
}

static int move_dir(struct memory *m, struct str from, struct str to, struct err *err)
{
	struct node *cut = cut_dir(m, from);
	int r = check_lengths(cut, from.len, to.len, err);

	if (r) {
		put_in(m, cut->path, cut);
		return r;
	}
	rename_tree(cut, from.len, to);
	put_in(m, cut->path, cut);
	return 0;
}

static void move_file(struct memory *m, struct node *n, struct str to)
{
	struct node *target = tree_find(m->root, to);
	struct blob *old;

	if (!target)
		target = add_file(m, to);
	old = target->blob;
	target->blob = n->blob;
	n->blob = old;
	target->mtime_ns = n->mtime_ns;
	target->version = n->version;
	free((char *)target->chosen.ptr);
	target->chosen = n->chosen;
	n->chosen = STR_NONE;
	drop_file(m, n->path);
}

static int memory_move(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond cond,
		       struct store_cond to_cond, struct store_stat *ret_stat, struct err *err)
{
	struct memory *m = memory_of(s);
	struct node *n, *target;
	int r;

	pthread_rwlock_wrlock(&m->lock);
	r = find_source(m, from.s, cond, &n, err);
	if (r == 0)
		r = find_for_write(m, to.s, to_cond, &target, err);
	if (r == 0 && !n && target)
		r = store_refuse(REFUSE_FILE_TARGET, to.s, err);
	if (r == 0 && n)
		move_file(m, n, to.s);
	else if (r == 0)
		r = move_dir(m, from.s, to.s, err);
	if (r == 0)
		fill_stat(ctx->arena, n ? tree_find(m->root, to.s) : NULL, ret_stat);
	pthread_rwlock_unlock(&m->lock);
	return r;
}

static int memory_copy(struct store *s, struct ctx *ctx, struct wpath from, struct wpath to, struct store_cond to_cond,
		       struct store_stat *ret_stat, struct err *err)
{
	struct memory *m = memory_of(s);
	struct node *n, *target;
	int r = 0;

	pthread_rwlock_wrlock(&m->lock);
	n = tree_find(m->root, from.s);
	if (!n)
		r = is_dir(m, from.s) ? is_a_dir(from.s, err) : store_not_found(err);
	if (r == 0)
		r = find_for_write(m, to.s, to_cond, &target, err);
	if (r == 0) {
		if (!target)
			target = add_file(m, to.s);
		blob_drop(target->blob);
		target->blob = n->blob; /* shared until one of the two is appended to */
		atomic_fetch_add(&n->blob->refs, 1);
		touch(m, target);
		fill_stat(ctx->arena, target, ret_stat);
	}
	pthread_rwlock_unlock(&m->lock);
	return r;
}

/* A list is a walk over the tree that steps over whole directories when it is not recursive. */
struct walk {
	struct memory *m;
	struct span span; /* of the directory */
	bool recursive;
	struct node *at; /* the next entry is this file, or the directory it is in */
};

/* The entry at the walk's place; its path's length, kind. */
static bool walk_entry(const struct walk *w, struct str *ret_path, bool *ret_dir)
{
	size_t slash;

	if (!w->at || !str_starts(w->at->path, w->span.from))
		return false;
	slash = w->recursive ? SIZE_MAX : str_find_char(str_from(w->at->path, w->span.from.len), '/');
	*ret_dir = !w->recursive && slash < w->at->path.len - w->span.from.len;
	*ret_path = *ret_dir ? str_first(w->at->path, w->span.from.len + slash) : w->at->path;
	return true;
}

/* To the first entry after `path`. */
static void walk_behind(struct walk *w, struct str path, bool dir)
{
	struct span span;

	if (dir) {
		span_of(path, &span);
		w->at = tree_seek(w->m->root, span.end, false);
	} else {
		w->at = tree_seek(w->m->root, path, true);
	}
}

static void walk_begin(struct walk *w, struct str after)
{
	bool dir = str_ends(after, STR("/"));

	if (after.len == 0 || str_cmp(after, w->span.from) < 0)
		w->at = tree_seek(w->m->root, w->span.from, false);
	else if (dir && !w->recursive && after.len <= PATH_LEN_MAX + 1)
		walk_behind(w, str_first(after, after.len - 1), true);
	else
		walk_behind(w, after, false);
}

static void fill_page(struct walk *w, struct ctx *ctx, size_t limit, struct store_page *ret)
{
	size_t cap = 0;
	struct str path;
	bool dir;

	*ret = (struct store_page){0};
	while (walk_entry(w, &path, &dir)) {
		struct store_entry *e;

		if (ret->count == limit) {
			e = &ret->entries[limit - 1];
			ret->next = e->stat.kind == STORE_DIR ? arena_printf(ctx->arena, "%.*s/", STR_ARG(e->path.s))
							      : e->path.s;
			return;
		}
		ARENA_ROOM(ctx->arena, ret->entries, ret->count, cap);
		e = &ret->entries[ret->count++];
		e->path.s = arena_str(ctx->arena, path);
		fill_stat(ctx->arena, dir ? NULL : w->at, &e->stat);
		walk_behind(w, path, dir);
	}
}

static int memory_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		       struct store_page *ret_page, struct err *err)
{
	struct memory *m = memory_of(s);
	struct walk w = {.m = m, .recursive = req->recursive};
	int r = 0;

	span_of(path.s, &w.span);
	pthread_rwlock_rdlock(&m->lock);
	if (is_dir(m, path.s)) {
		walk_begin(&w, req->after);
		fill_page(&w, ctx, req->limit, ret_page);
	} else if (tree_find(m->root, path.s)) {
		r = store_refuse(REFUSE_FILE, path.s, err);
	} else {
		r = store_not_found(err);
	}
	pthread_rwlock_unlock(&m->lock);
	return r;
}

/* Journals. */

static struct log *log_find(struct memory *m, struct str path, bool add)
{
	struct log *log = m->logs;

	while (log && !str_eq(log->path, path))
		log = log->next;
	if (log || !add)
		return log;
	log = xcalloc(1, sizeof(*log));
	log->path = str_n(xstrndup(path), path.len);
	log->first = 1;
	log->next = m->logs;
	m->logs = log;
	return log;
}

static uint64_t log_last(const struct log *log)
{
	return log ? log->first + log->count - 1 : 0;
}

/* The entries after `after`, up to `max` bytes; the lock is held. */
static int read_log(struct memory *m, struct ctx *ctx, struct str path, uint64_t after, size_t max,
		    struct journal_page *ret, struct err *err)
{
	struct log *log = log_find(m, path, false);
	size_t bytes = 0, count = 0;

	*ret = (struct journal_page){.first = log ? log->first : 1, .last = log_last(log)};
	if (after + 1 < ret->first)
		return err_set(err, ERR_NOT_FOUND, "entries after %llu are no longer kept; the oldest entry is %llu",
			       (unsigned long long)after, (unsigned long long)ret->first);
	if (after >= ret->last)
		return 0;
	ret->entries = ARENA_ARRAY(ctx->arena, struct journal_entry, (size_t)(ret->last - after));
	for (uint64_t n = after + 1; n <= ret->last; n++) {
		struct str entry = log->entries[n - log->first];

		if (count && bytes + entry.len > max)
			break;
		ret->entries[count++] = (struct journal_entry){n, arena_str(ctx->arena, entry)};
		bytes += entry.len;
	}
	ret->count = count;
	return 0;
}

/* Until there is news, `until` comes or the call ends. */
static void wait_news(struct memory *m, struct ctx *ctx, uint64_t seen, int64_t until)
{
	struct err ignored;

	pthread_mutex_lock(&m->news_lock);
	while (m->news == seen && clock_monotonic_ns() < until && ctx_check(ctx, &ignored) == 0) {
		int64_t slice = clock_monotonic_ns() + 20000000; /* a cancel is noticed within 20 ms */
		int64_t end = until < slice ? until : slice;
		struct timespec t = clock_timespec(end);

		pthread_cond_timedwait(&m->news_added, &m->news_lock, &t);
	}
	pthread_mutex_unlock(&m->news_lock);
}

static int memory_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
			       struct journal_page *ret_page, struct err *err)
{
	struct memory *m = memory_of(s);
	int64_t until = clock_monotonic_ns() + req->wait_ns;
	uint64_t seen;
	int r;

	for (;;) {
		pthread_mutex_lock(&m->news_lock);
		seen = m->news;
		pthread_mutex_unlock(&m->news_lock);
		pthread_rwlock_rdlock(&m->lock);
		r = read_log(m, ctx, journal.s, req->after, req->max_bytes, ret_page, err);
		pthread_rwlock_unlock(&m->lock);
		if (r || ret_page->count || clock_monotonic_ns() >= until)
			return r;
		wait_news(m, ctx, seen, until);
		r = ctx_check(ctx, err);
		if (r)
			return r;
	}
}

/* The change of a file, in the step that adds the entry; the lock is held. */
static int change_file(struct memory *m, struct ctx *ctx, struct str path, struct store_cond cond,
		       const struct journal_add *add, struct store_stat *ret_stat, struct err *err)
{
	struct node *n, *target;
	int r;

	if (add->change == JOURNAL_MOVE) {
		r = find_source(m, add->from.s, add->from_cond, &n, err);
		if (r == 0 && !n)
			r = store_refuse(REFUSE_DIR, add->from.s, err);
		if (r == 0)
			r = find_for_write(m, path, cond, &target, err);
		if (r)
			return r;
		move_file(m, n, path);
		fill_stat(ctx->arena, tree_find(m->root, path), ret_stat);
		return 0;
	}
	if (add->change == JOURNAL_REMOVE) {
		r = find_source(m, path, cond, &n, err);
		if (r == 0 && !n)
			r = store_refuse(REFUSE_NOT_RECURSIVE, path, err);
		if (r == 0)
			drop_file(m, path);
		return r;
	}
	r = find_for_write(m, path, cond, &n, err);
	if (r == 0 && add->content.len + (n && add->change == JOURNAL_APPEND ? n->blob->len : 0) > MEMORY_FILE_MAX)
		r = too_large(err);
	if (r)
		return r;
	if (!n)
		n = add_file(m, path);
	if (add->change == JOURNAL_WRITE || atomic_load(&n->blob->refs) > 1) {
		struct blob *b = blob_new(add->content.len);

		if (add->change == JOURNAL_APPEND)
			blob_add(&b, str_n(n->blob->bytes, n->blob->len));
		blob_drop(n->blob);
		n->blob = b;
	}
	blob_add(&n->blob, add->content);
	touch(m, n);
	n->chosen = str_n(xstrndup(add->version), add->version.len);
	fill_stat(ctx->arena, n, ret_stat);
	return 0;
}

/* Whether a change of a group can be made; the lock is held. */
static int check_item(struct memory *m, const struct journal_item *item, struct err *err)
{
	struct node *n;
	int r;

	if (item->change == JOURNAL_WRITE)
		return find_for_write(m, item->path.s, item->cond, &n, err);
	if (item->change == JOURNAL_REMOVE) {
		r = find_source(m, item->path.s, item->cond, &n, err);
		return r == 0 && !n ? store_refuse(REFUSE_NOT_RECURSIVE, item->path.s, err) : r;
	}
	r = find_source(m, item->from.s, item->from_cond, &n, err);
	if (r == 0 && !n)
		r = store_refuse(REFUSE_DIR, item->from.s, err);
	return r ? r : find_for_write(m, item->path.s, item->cond, &n, err);
}

/* All changes of a group, or none. */
static int change_group(struct memory *m, struct ctx *ctx, const struct journal_add *add, size_t *ret_failed,
			struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < add->item_count; i++) {
		*ret_failed = i;
		r = check_item(m, &add->items[i], err);
	}
	for (size_t i = 0; r == 0 && i < add->item_count; i++) {
		const struct journal_item *item = &add->items[i];
		struct journal_add one = {.change = item->change,
					  .content = item->content,
					  .version = item->version,
					  .from = item->from,
					  .from_cond = item->from_cond};
		struct store_stat unused;

		r = change_file(m, ctx, item->path.s, item->cond, &one, &unused, err);
	}
	return r;
}

static void add_entry(struct memory *m, struct str path, struct str bytes)
{
	struct log *log = log_find(m, path, true);

	HEAP_ROOM(log->entries, log->count, log->cap);
	log->entries[log->count++] = str_n(xstrndup(bytes), bytes.len);
}

static int memory_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to,
			      struct store_cond cond, const struct journal_add *add, struct journal_added *ret_added,
			      struct err *err)
{
	struct memory *m = memory_of(s);
	int r = 0;

	*ret_added = (struct journal_added){0};
	pthread_rwlock_wrlock(&m->lock);
	if (log_last(log_find(m, journal.s, false)) != add->after) {
		struct err ignored;

		ret_added->overtaken = true;
		if (read_log(m, ctx, journal.s, add->after, 8 * MIB, &ret_added->news, &ignored))
			ret_added->news.count = 0;
		r = err_set(err, ERR_CONFLICT, "entry %llu already exists; read on and add after the last one",
			    (unsigned long long)(add->after + 1));
	}
	if (r == 0 && add->change == JOURNAL_GROUP)
		r = change_group(m, ctx, add, &ret_added->failed, err);
	else if (r == 0 && add->change != JOURNAL_ALONE)
		r = change_file(m, ctx, to.s, cond, add, &ret_added->stat, err);
	if (r == 0)
		add_entry(m, journal.s, add->bytes);
	pthread_rwlock_unlock(&m->lock);
	if (r == 0) {
		pthread_mutex_lock(&m->news_lock);
		m->news++;
		pthread_cond_broadcast(&m->news_added);
		pthread_mutex_unlock(&m->news_lock);
	}
	return r;
}

static int memory_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	struct memory *m = memory_of(s);
	struct log *log;

	(void)ctx;
	(void)err;
	pthread_rwlock_wrlock(&m->lock);
	log = log_find(m, journal.s, false);
	if (log && before > log->first) {
		size_t n = before < log_last(log) ? (size_t)(before - log->first) : log->count - 1;

		for (size_t i = 0; i < n; i++)
			free((char *)log->entries[i].ptr);
		memmove(log->entries, log->entries + n, (log->count - n) * sizeof(*log->entries));
		log->count -= n;
		log->first += n;
	}
	pthread_rwlock_unlock(&m->lock);
	return 0;
}

static void memory_destroy(struct store *s)
{
	struct memory *m = memory_of(s);

	tree_free(m->root);
	drop_logs(m, WPATH_ROOT);
	pthread_cond_destroy(&m->news_added);
	pthread_mutex_destroy(&m->news_lock);
	pthread_rwlock_destroy(&m->lock);
	free(m);
}

static const struct store_ops memory_ops = {
	.name = "memory",
	.stat = memory_stat,
	.read = memory_read,
	.write = memory_write,
	.append = memory_append,
	.remove = memory_remove,
	.move = memory_move,
	.copy = memory_copy,
	.list = memory_list,
	.scan = store_scan_generic,
	.journal_read = memory_journal_read,
	.journal_add = memory_journal_add,
	.journal_cut = memory_journal_cut,
	.can = STORE_LOCAL | STORE_JOURNAL | STORE_ONE_STEP | STORE_WRITE_STEP | STORE_GROUP_STEP,
	.destroy = memory_destroy,
};

struct store *store_memory_new(void)
{
	struct memory *m = xcalloc(1, sizeof(*m));
	pthread_condattr_t attr;

	m->base.ops = &memory_ops;
	m->seed = random_u64();
	m->version = random_u64() >> 24;
	pthread_rwlock_init(&m->lock, NULL);
	pthread_mutex_init(&m->news_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->news_added, &attr);
	pthread_condattr_destroy(&attr);
	return &m->base;
}
