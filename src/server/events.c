/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watcher is at a revision. It takes a step on a worker: asks the timeline what came after, and either writes it or
 * waits. The thread of its feed waits for the log of the workspace; when that has grown, all who wait take a step. A
 * stream takes its next step when the last one was sent, so a client that reads slowly is behind in the log, not in the
 * server's memory. So a watcher has something to send, or takes a step, or waits: never two of these at once.
 */
#include "server/events.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "home/timeline/outside.h"
#include "revisions/revisions.h"
#include "server/server_internal.h"
#include "workspace/workspace_parts.h"

#define POLL_MS      50 /* how soon a change by another process is seen */
#define TICK_MS      250
#define HEARTBEAT_NS (15 * NS_PER_S)
#define PAGE         500
#define PENDING_MAX  (16 * MIB) /* a page of the longest records */

/* One workspace that somebody watches. All fields but `tenant` are guarded by feeds.lock. */
struct feed {
	struct feed *next;
	struct feeds *feeds;
	struct tenant *tenant; /* keeps it open */
	struct store *revisions;
	uint64_t head; /* the newest revision that its thread has seen */
	struct watcher *waiting;
	unsigned watchers;
	struct cancel cancel;
};

struct feeds {
	struct serve *serve;
	pthread_mutex_t lock;
	pthread_cond_t thread_ended;
	struct feed *feeds;
	struct watcher *all;
	uint64_t watchers;
	unsigned threads;
	bool ended;
};

struct watcher {
	struct watcher *next, **slot;          /* of all */
	struct watcher *next_waiting, **waits; /* waits NULL: it does not wait */
	struct feed *feed;
	struct tenant *tenant;
	struct arena *arena; /* of the path and the item */
	struct wpath path;
	struct board_ref item; /* `ref` not empty: the changes of this item, in place of those below the path */
	size_t limit;
	uint64_t at;
	struct stream *stream; /* or: */
	struct exchange *x;
	int64_t deadline_ns; /* of x */
	int64_t written_ns;
	bool gone;
	unsigned refs; /* the stream or the exchange, and a job */
};

struct feeds *feeds_new(struct serve *serve)
{
	struct feeds *f = xcalloc(1, sizeof(*f));

	f->serve = serve;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->thread_ended, NULL);
	return f;
}

uint64_t feeds_watchers(struct feeds *f)
{
	uint64_t count;

	pthread_mutex_lock(&f->lock);
	count = f->watchers;
	pthread_mutex_unlock(&f->lock);
	return count;
}

/* --- watchers; feeds.lock is held where it is not said --- */

static void waiting_remove(struct watcher *w)
{
	if (!w->waits)
		return;
	*w->waits = w->next_waiting;
	if (w->next_waiting)
		w->next_waiting->waits = w->waits;
	w->waits = NULL;
}

static void waiting_add(struct watcher *w)
{
	w->next_waiting = w->feed->waiting;
	w->waits = &w->feed->waiting;
	if (w->next_waiting)
		w->next_waiting->waits = &w->next_waiting;
	w->feed->waiting = w;
}

/* The lock is not held. */
static void watcher_unref(struct watcher *w)
{
	struct feeds *f = w->feed->feeds;
	bool last;

	pthread_mutex_lock(&f->lock);
	last = --w->refs == 0;
	if (last) {
		*w->slot = w->next;
		if (w->next)
			w->next->slot = w->slot;
		f->watchers--;
		if (--w->feed->watchers == 0)
			atomic_store(&w->feed->cancel.requested, true);
	}
	pthread_mutex_unlock(&f->lock);
	if (!last)
		return;
	if (w->stream)
		stream_release(w->stream);
	tenants_put(f->serve->tenants, w->tenant);
	arena_destroy(w->arena);
	free(w);
}

static void watcher_step(void *arg);

/* Its next step; without a place in the queue it waits for the next tick. The caller has a reference for the job. */
static void step_later(struct watcher *w)
{
	struct feeds *f = w->feed->feeds;
	bool dropped;

	if (httpd_submit(f->serve->httpd, w->tenant->owner, watcher_step, w))
		return;
	pthread_mutex_lock(&f->lock);
	dropped = w->gone || w->waits;
	if (!dropped)
		waiting_add(w);
	pthread_mutex_unlock(&f->lock);
	watcher_unref(w);
}

static void on_drained(void *arg)
{
	struct watcher *w = arg;

	pthread_mutex_lock(&w->feed->feeds->lock);
	w->refs++;
	pthread_mutex_unlock(&w->feed->feeds->lock);
	step_later(w);
}

static void on_gone(void *arg)
{
	struct watcher *w = arg;

	pthread_mutex_lock(&w->feed->feeds->lock);
	w->gone = true;
	waiting_remove(w);
	pthread_mutex_unlock(&w->feed->feeds->lock);
	watcher_unref(w);
}

/* --- output --- */

static void write_events(struct buf *b, const struct jv *changes)
{
	for (const struct jv_member *m = jv_first(changes); m; m = m->next) {
		buf_lit(b, "id: ");
		buf_i64(b, jv_get_int(m->value, "revision", 0));
		buf_lit(b, "\nevent: change\ndata: ");
		jv_write(b, m->value);
		buf_lit(b, "\n\n");
	}
}

/* The answer to a long poll: the exchange is the owner's again after this. */
static void answer_poll(struct watcher *w, const struct jv *page)
{
	struct exchange *x = w->x;

	exchange_add_header(x, "Cache-Control", STR("no-store"));
	answer_json(x, 200, page);
	exchange_resume(x);
	watcher_unref(w);
}

static struct jv *empty_page(struct arena *arena, uint64_t at)
{
	struct jv *v = jv_object(arena);

	jv_set(arena, v, "changes", jv_array(arena));
	jv_set_int(arena, v, "next", (int64_t)at);
	jv_set_bool(arena, v, "more", false);
	return v;
}

static void fail(struct watcher *w, struct arena *arena, const struct err *err)
{
	struct jv *v = jv_object(arena);
	struct buf b;

	if (w->x) {
		answer_error(w->x, err);
		exchange_resume(w->x);
		watcher_unref(w);
		return;
	}
	jv_set_str(arena, v, "detail", err_text(arena, err));
	jv_set_str(arena, v, "kind", str_of(err_kind_name(err->kind)));
	buf_init(&b, arena, 64 * KIB);
	buf_lit(&b, "event: error\ndata: ");
	jv_write(&b, v);
	buf_lit(&b, "\n\n");
	stream_add(w->stream, buf_str(&b));
	stream_end(w->stream, false);
}

/* What came after where it is. True: something was written. */
static bool write_page(struct watcher *w, struct arena *arena, const struct jv *page)
{
	struct buf b;

	w->at = (uint64_t)jv_get_int(page, "next", (int64_t)w->at);
	if (!jv_count(jv_get(page, "changes")))
		return false;
	if (w->x) {
		answer_poll(w, page);
		return true;
	}
	buf_init(&b, arena, PENDING_MAX);
	write_events(&b, jv_get(page, "changes"));
	w->written_ns = clock_monotonic_ns();
	if (b.overflow || !stream_add(w->stream, buf_str(&b)))
		stream_end(w->stream, true);
	return true;
}

/* False: there is more by now. Else it waits, or is answered because the server ends. */
static bool wait_for_more(struct watcher *w)
{
	struct feeds *f = w->feed->feeds;
	bool more, ended;

	pthread_mutex_lock(&f->lock);
	ended = f->ended;
	more = !ended && !w->gone && w->feed->head > w->at;
	if (!more && !ended && !w->gone)
		waiting_add(w);
	pthread_mutex_unlock(&f->lock);
	if (ended && w->x)
		answer_poll(w, empty_page(w->x->arena, w->at));
	else if (ended)
		stream_end(w->stream, false);
	return !more;
}

static int changes_of(struct watcher *w, struct ctx *ctx, struct jv **ret, struct err *err)
{
	if (w->item.ref.len)
		return board_changes(w->tenant->ws, ctx, w->item, w->at, w->limit, ret, err);
	return history_changes(w->tenant->ws, ctx, w->at, w->path, 0, w->limit, ret, err);
}

/* On a worker, with a reference of its own. */
static void watcher_step(void *arg)
{
	struct watcher *w = arg;
	struct arena *own = w->x ? NULL : arena_new();
	bool done = false;

	while (!done) {
		struct arena *arena = own ? own : w->x->arena;
		struct ctx ctx = {.arena = arena,
				  .deadline_ns = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS,
				  .actor = workspace_actor(w->tenant->ws)};
		struct jv *page;
		struct err err;

		if (own)
			arena_reset(own);
		if (changes_of(w, &ctx, &page, &err) != 0) {
			fail(w, arena, &err);
			done = true;
		} else {
			done = write_page(w, arena, page) || wait_for_more(w);
		}
	}
	if (own)
		arena_destroy(own);
	watcher_unref(w); /* NOLINT(clang-analyzer-unix.Malloc): it is counted */
}

/* --- feeds --- */

/* Takes those who are to act now: all of them, or on a tick those whose time has come. */
static struct watcher *take_waiting(struct feed *feed, bool all)
{
	int64_t now = clock_monotonic_ns();
	struct watcher *list = NULL, *next;

	for (struct watcher *w = feed->waiting; w; w = next) {
		next = w->next_waiting;
		if (!all && (w->x ? now < w->deadline_ns : now - w->written_ns < HEARTBEAT_NS) && feed->head <= w->at)
			continue;
		waiting_remove(w);
		w->next_waiting = list;
		list = w;
		w->refs++;
	}
	return list;
}

/* A tick: long polls end without a change, streams get a comment so that dead clients are noticed. */
static void end_wait(struct watcher *w)
{
	int64_t now = clock_monotonic_ns();

	if (w->x && now >= w->deadline_ns) {
		answer_poll(w, empty_page(w->x->arena, w->at));
		watcher_unref(w); /* NOLINT(clang-analyzer-unix.Malloc): it is counted */
	} else if (w->stream && now - w->written_ns >= HEARTBEAT_NS) {
		w->written_ns = now;
		stream_add(w->stream, STR(":\n\n"));
		watcher_unref(w);
	} else {
		step_later(w);
	}
}

static void *follow(void *arg)
{
	struct feed *feed = arg;
	struct feeds *f = feed->feeds;
	struct outside *outside = outside_start(feed->tenant->ws, 0);
	struct arena *arena = arena_new();

	while (!atomic_load(&feed->cancel.requested)) {
		struct ctx ctx = {.arena = arena,
				  .cancel = &feed->cancel,
				  .deadline_ns = clock_monotonic_ns() + TICK_MS * NS_PER_MS};
		struct watcher *list, *next;
		uint64_t head = feed->head;
		struct err err;
		int r = revisions_wait(feed->revisions, &ctx, head, POLL_MS, &err);

		if (r == 0)
			r = revisions_head(feed->revisions, &ctx, &head, &err);
		if (r && r != -ERR_TIMEOUT && r != -ERR_CANCELLED)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = TICK_MS * NS_PER_MS}, NULL);
		pthread_mutex_lock(&f->lock);
		list = take_waiting(feed, head > feed->head);
		feed->head = head;
		pthread_mutex_unlock(&f->lock);
		for (; list; list = next) {
			next = list->next_waiting;
			if (r == 0)
				step_later(list);
			else
				end_wait(list);
		}
		arena_reset(arena);
	}
	outside_stop(outside);
	arena_destroy(arena);
	pthread_mutex_lock(&f->lock);
	for (struct feed **slot = &f->feeds; *slot; slot = &(*slot)->next)
		if (*slot == feed) {
			*slot = feed->next;
			break;
		}
	pthread_mutex_unlock(&f->lock);
	tenants_put(f->serve->tenants, feed->tenant);
	free(feed);
	pthread_mutex_lock(&f->lock);
	f->threads--;
	pthread_cond_broadcast(&f->thread_ended);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* The log that has what is watched: boards are part of the workspace, whatever its file area is. */
static struct store *log_of(struct tenant *tenant, struct board_ref item)
{
	return item.ref.len ? workspace_shared(tenant->ws) : workspace_revisions(tenant->ws);
}

/* The feed of the workspace with one more watcher; feeds.lock is held. */
static int feed_get(struct feeds *f, struct tenant *tenant, const struct watcher *like, struct feed **ret,
		    struct err *err)
{
	struct store *revisions = log_of(tenant, like->item);
	struct feed *feed = f->feeds;
	pthread_t thread;

	while (feed && (feed->revisions != revisions || atomic_load(&feed->cancel.requested)))
		feed = feed->next;
	if (!feed) {
		if (f->ended || f->threads >= SERVER_FEEDS_MAX)
			return err_set(err, ERR_UNAVAILABLE, "too many workspaces are being watched; try again later");
		feed = xcalloc(1, sizeof(*feed));
		feed->feeds = f;
		feed->revisions = revisions;
		feed->head = like->at;
		feed->tenant = tenants_share(f->serve->tenants, tenant);
		if (pthread_create(&thread, NULL, follow, feed) != 0) {
			tenants_put(f->serve->tenants, feed->tenant);
			free(feed);
			return err_set(err, ERR_UNAVAILABLE, "no thread can be started to watch the workspace");
		}
		pthread_detach(thread);
		f->threads++;
		feed->next = f->feeds;
		f->feeds = feed;
	}
	feed->watchers++;
	*ret = feed;
	return 0;
}

static int watcher_new(struct exchange *x, const struct watcher *like, struct watcher **ret, struct err *err)
{
	struct web_call *call = call_of(x);
	struct feeds *f = call->serve->feeds;
	struct watcher *w = xcalloc(1, sizeof(*w));
	int r;

	*w = *like;
	w->arena = arena_new();
	w->path.s = arena_str(w->arena, like->path.s);
	w->item = (struct board_ref){arena_str(w->arena, like->item.board), arena_str(w->arena, like->item.ref)};
	w->tenant = call->tenant;
	w->refs = 1;
	w->written_ns = clock_monotonic_ns();
	pthread_mutex_lock(&f->lock);
	r = f->watchers >= SERVER_WATCHERS_MAX
		    ? err_set(err, ERR_UNAVAILABLE, "too many clients are waiting for events; try again later")
		    : feed_get(f, w->tenant, like, &w->feed, err);
	if (r == 0) {
		w->next = f->all;
		w->slot = &f->all;
		if (w->next)
			w->next->slot = &w->next;
		f->all = w;
		f->watchers++;
	}
	pthread_mutex_unlock(&f->lock);
	if (r) {
		arena_destroy(w->arena);
		free(w);
		return r;
	}
	w->tenant = tenants_share(call->serve->tenants, call->tenant);
	*ret = w;
	return 0;
}

/* Where to begin: after Last-Event-ID, after `since`, or after what there is now. */
static int parse_since(struct exchange *x, struct ctx *ctx, uint64_t *ret, struct err *err)
{
	struct str last = exchange_header(x, "Last-Event-ID"), since;
	uint64_t head;
	bool found;
	int64_t n;
	int r = query_get(x->arena, x->query, "since", &since, &found, err);

	if (r)
		return r;
	if (last.len) {
		since = last;
		found = true;
	}
	if (!found)
		return revisions_head(log_of(call_of(x)->tenant, exchange_item(x)), ctx, ret, err);
	if (!str_to_i64(since, &n) || n < 0)
		return err_set(err, ERR_INVALID, "\"since\" and Last-Event-ID must be the number of a revision");
	*ret = (uint64_t)n;
	r = n ? revisions_head(log_of(call_of(x)->tenant, exchange_item(x)), ctx, &head, err) : 0;
	/* Of a workspace that was replaced, such as by an older copy: who waited would miss all until then. */
	if (n && r == 0 && *ret > head)
		r = err_set(err, ERR_NOT_FOUND,
			    "there is no revision %llu; the newest is %llu; begin again without \"since\"",
			    (unsigned long long)n, (unsigned long long)head);
	return r;
}

static int parse_watch(struct exchange *x, struct watcher *ret, bool *ret_polls, struct err *err)
{
	struct ctx ctx = exchange_ctx(x);
	uint64_t wait_s = 0, limit = PAGE;
	struct str path, wait;
	bool found;
	int r = query_get(x->arena, x->query, "path", &path, &found, err);

	ret->item = exchange_item(x);
	if (r == 0 && ret->item.ref.len) { /* so that there is an error for an item that is not there */
		struct jv *item;

		r = board_item_get(call_of(x)->tenant->ws, &ctx, ret->item, &item, err);
	}
	if (r == 0)
		r = wpath_parse_lenient(x->arena, path, &ret->path, err);
	if (r == 0)
		r = parse_since(x, &ctx, &ret->at, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "wait", &wait, ret_polls, err);
	if (r == 0)
		r = query_number(x->arena, x->query, "wait", SERVER_WAIT_S_MAX, &wait_s, err);
	if (r == 0)
		r = query_number(x->arena, x->query, "limit", HISTORY_LIMIT_MAX, &limit, err);
	limit = limit ? limit : 1; /* an answer with nothing in it would lead nowhere */
	ret->limit = *ret_polls ? (size_t)limit : PAGE;
	ret->deadline_ns = clock_monotonic_ns() + (int64_t)wait_s * NS_PER_S;
	return r;
}

void run_events(struct exchange *x)
{
	struct stream_opts opts = {
		.size = UINT64_MAX, .pending_max = PENDING_MAX, .drained = on_drained, .gone = on_gone};
	struct watcher like = {0}, *w;
	struct err err;
	bool polls = false;
	int r = parse_watch(x, &like, &polls, &err);

	if (r == 0)
		r = watcher_new(x, &like, &w, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	if (polls) {
		w->x = x;
		w->refs++; /* for its first step; a stream takes that when its beginning was sent */
		exchange_park(x);
		watcher_step(w);
		return;
	}
	opts.arg = w;
	answer_event_stream(x, &opts, &w->stream);
	stream_add(w->stream, STR("retry: 1000\n\n"));
}

/* --- the end --- */

void feeds_end(struct feeds *f)
{
	struct watcher *list = NULL, *next;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	for (struct watcher *w = f->all; w; w = w->next) {
		if (w->stream)
			stream_end(w->stream, false);
		if (w->x && w->waits) {
			waiting_remove(w);
			w->next_waiting = list;
			list = w;
		}
	}
	pthread_mutex_unlock(&f->lock);
	for (; list; list = next) {
		next = list->next_waiting;
		answer_poll(list, empty_page(list->x->arena, list->at));
	}
}

void feeds_destroy(struct feeds *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	for (struct feed *feed = f->feeds; feed; feed = feed->next)
		atomic_store(&feed->cancel.requested, true);
	while (f->threads)
		pthread_cond_wait(&f->thread_ended, &f->lock);
	pthread_mutex_unlock(&f->lock);
	pthread_cond_destroy(&f->thread_ended);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
