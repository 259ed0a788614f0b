/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of stores share: short forms to act on a store, streams, a scan's visitor, a store on disk. */
#ifndef STEAD_TESTS_STORE_STORE_FIX_H
#define STEAD_TESTS_STORE_STORE_FIX_H

#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "test.h"

/* No test uses all of these. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define GATHERED_MAX 4096

struct conf {
	struct store *s;
	struct ctx ctx;
	struct err err;
};

/* Short forms. A path in a test is well-formed, or the test is wrong. */

static struct wpath P(const char *text) {
	struct wpath p;
	struct err err;

	if (wpath_parse(str_of(text), &p, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
	return p;
}

#define ANY     ((struct store_cond){0})
#define ABSENT  ((struct store_cond){.kind = STORE_ABSENT})
#define VERS(v) ((struct store_cond){.kind = STORE_VERSION, .version = (v)})

static struct str
put(struct conf *c, const char *path, const char *bytes)
{
	struct store_stat st;

	CHECK_OK(store_write(c->s, &c->ctx, P(path), str_of(bytes), ANY, &st, &c->err), c->err);
	return st.version;
}

static struct str get(struct conf *c, const char *path)
{
	struct str bytes;

	CHECK_OK(store_read(c->s, &c->ctx, P(path), STORE_WHOLE, 64 * MIB, &bytes, NULL, &c->err), c->err);
	return bytes;
}

static struct store_stat stat_of(struct conf *c, const char *path)
{
	struct store_stat st;

	CHECK_OK(store_stat(c->s, &c->ctx, P(path), &st, &c->err), c->err);
	return st;
}

#define CHECK_GONE(c, path) CHECK_ERR(store_stat((c)->s, &(c)->ctx, P(path), NULL, &(c)->err), (c)->err, ERR_NOT_FOUND)

/* All pages of a list as "a b/ c"; every page but the last is full, and the order holds across pages. */
static struct str listing(struct conf *c, const char *dir, bool recursive, size_t limit)
{
	struct store_list_req req = {.recursive = recursive, .limit = limit};
	struct store_entry before = {0};
	struct store_page page;
	struct buf out;

	buf_init(&out, c->ctx.arena, 64 * MIB);
	do {
		CHECK_OK(store_list(c->s, &c->ctx, P(dir), &req, &page, &c->err), c->err);
		CHECK(page.next.ptr ? page.count == limit : page.count <= limit);
		for (size_t i = 0; i < page.count; i++) {
			const struct store_entry *e = &page.entries[i];

			CHECK(!before.path.s.ptr || store_entry_cmp(&before, e) < 0);
			if (out.len)
				buf_char(&out, ' ');
			buf_add(&out, e->path.s);
			if (e->stat.kind == STORE_DIR)
				buf_char(&out, '/');
			before = *e;
		}
		req.after = page.next;
	} while (page.next.ptr);
	return buf_str(&out);
}

#define CHECK_TREE(c, want) CHECK_STR(listing((c), "", true, 7), STR(want))

/* A stream of `total` bytes whose content is a function of the place; fails at `fail_at` if that is not 0. */
struct stream {
	uint64_t total, at, fail_at;
};

static char stream_byte(uint64_t at)
{
	return (char)('a' + (at * 7 + at / 251) % 26);
}

static int stream_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct stream *s = arg;
	size_t n = cap < 7000 ? cap : 7000;

	if (s->fail_at && s->at >= s->fail_at)
		return err_set(err, ERR_UNAVAILABLE, "the client went away");
	n = n < s->total - s->at ? n : (size_t)(s->total - s->at);
	for (size_t i = 0; i < n; i++)
		((char *)buf)[i] = stream_byte(s->at + i);
	s->at += n;
	*ret_len = n;
	return 0;
}

static int stream_rewind(void *arg, struct err *err)
{
	(void)err;
	((struct stream *)arg)->at = 0;
	return 0;
}

static struct source stream_source(struct stream *s)
{
	return (struct source){.pull = stream_pull, .rewind = stream_rewind, .arg = s};
}

/* Collects what a scan visits as "path:bytes" lines, or paths. */
struct seen {
	struct buf out;
	const char *skip_dir, *skip_file;
	uint64_t next_seq;
	bool order_ok;
};

static bool seen_want_dir(void *arg, struct str path)
{
	struct seen *s = arg;

	return !s->skip_dir || !str_is(path, s->skip_dir);
}

static bool seen_want_file(void *arg, struct str path)
{
	struct seen *s = arg;

	return !s->skip_file || !str_is(path, s->skip_file);
}

static int seen_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	s->order_ok = s->order_ok && item->seq == s->next_seq && !item->unreadable;
	if (s->out.len && item->offset == 0)
		buf_char(&s->out, ' ');
	if (item->offset == 0)
		buf_add(&s->out, item->path);
	if (item->data.len) {
		buf_char(&s->out, ':');
		buf_add(&s->out, item->data);
	}
	s->next_seq += item->last;
	return 0;
}

static struct str scan_paths(struct conf *c, const char *dir, struct seen *seen, bool contents, bool use_ignore)
{
	struct scan_req req = {.contents = contents,
			       .use_ignore = use_ignore,
			       .threads = 1,
			       .want_dir = seen_want_dir,
			       .want_file = seen_want_file,
			       .visit = seen_visit,
			       .arg = seen};

	buf_init(&seen->out, c->ctx.arena, 64 * MIB);
	seen->order_ok = true;
	CHECK_OK(store_scan(c->s, &c->ctx, P(dir), &req, &c->err), c->err);
	CHECK(seen->order_ok);
	return buf_str(&seen->out);
}

/* The same with several threads, whose visits are put in order by their numbers. */
struct gathered {
	pthread_mutex_t lock;
	struct buf texts[GATHERED_MAX];
	uint64_t count;
	bool ok;
};

static int gather_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct gathered *g = arg;
	struct buf *text = &g->texts[item->seq % GATHERED_MAX];

	(void)err;
	pthread_mutex_lock(&g->lock);
	g->ok = g->ok && item->seq < GATHERED_MAX && !item->unreadable && item->worker < SCAN_WORKERS_MAX;
	if (item->offset == 0)
		buf_printf(text, "%s%.*s%s", item->seq ? " " : "", STR_ARG(item->path), item->data.len ? ":" : "");
	buf_add(text, item->data);
	g->count += item->last;
	pthread_mutex_unlock(&g->lock);
	return 0;
}

/* What scan_paths() returns. Every number below the count of files has been visited. */
static int gather(struct conf *c, const char *dir, bool contents, bool use_ignore, struct str *ret)
{
	struct gathered *g = calloc(1, sizeof(*g));
	struct scan_req req = {
		.contents = contents, .use_ignore = use_ignore, .threads = 3, .visit = gather_visit, .arg = g};
	struct buf out;
	int r;

	buf_init(&out, c->ctx.arena, 64 * MIB);
	for (size_t i = 0; i < GATHERED_MAX; i++)
		buf_init(&g->texts[i], c->ctx.arena, MIB);
	pthread_mutex_init(&g->lock, NULL);
	g->ok = true;
	r = store_scan(c->s, &c->ctx, P(dir), &req, &c->err);
	for (uint64_t i = 0; r == 0 && i < g->count; i++) {
		g->ok = g->ok && g->texts[i].len;
		buf_add(&out, buf_str(&g->texts[i]));
	}
	*ret = g->ok ? buf_str(&out) : STR("out of order");
	pthread_mutex_destroy(&g->lock);
	free(g);
	return r;
}

/* A layer that makes a store one that is not on this machine, for what the layers above it remember. */
static int remote_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	return store_forward(s->inner, ctx, call, err);
}

static void remote_destroy(struct store *s)
{
	free(s);
}

static struct store *remote_new(struct store *inner, bool is_fixed)
{
	static const struct store_ops remote = {.name = "remote",
						.around = remote_around,
						.cannot = STORE_LOCAL | STORE_FIXED,
						.destroy = remote_destroy};
	static const struct store_ops remote_fixed = {.name = "remote",
						      .around = remote_around,
						      .cannot = STORE_LOCAL | STORE_FIXED,
						      .can = STORE_FIXED,
						      .destroy = remote_destroy};
	struct store *s = calloc(1, sizeof(*s));

	*s = (struct store){.ops = is_fixed ? &remote_fixed : &remote, .inner = inner};
	return s;
}

/* Removes what a test left at `url`, if its server still answers. */
static void drop_keys(char *url)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + INT64_C(2000000000)};
	struct store *s;
	struct err err;

	if (store_open_url(str_of(url), NULL, &s, &err) == 0) {
		store_remove(s, &ctx, WPATH_ROOT, true, ANY, NULL, &err);
		store_destroy(s);
	}
	free(url);
}

/* A disk store in a directory of its own. */
static struct store *open_disk(bool relaxed, bool tmp_dir)
{
	struct store_disk_opts opts = {.relaxed = relaxed, .tmp_dir = tmp_dir ? temp_dir_new() : NULL};
	struct store *s;
	struct err err;

	CHECK_OK(store_disk_open(temp_dir_new(), &opts, &s, &err), err);
	return s;
}

#endif
