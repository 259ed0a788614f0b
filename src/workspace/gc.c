/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention for a workspace: which limits, what may not go, and when it happens by itself.
 *
 * What may not go is not known to the log: a fork of this workspace reads it as it was at a revision, and a fork that
 * will be merged needs its own changes since it was last merged. Both are recorded in .stead/fork.json of a workspace
 * in the same store, so these files are read before anything is dropped. A fork that is made after that uses the head,
 * or a revision that is still there.
 */
#include "workspace/gc.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "workspace/workspace_parts.h"

#define FORK_FILE    ".stead/fork.json"
#define MARK_FILE    ".stead/rev/gc-mark"
#define CHANGES_MANY 1000
#define DUE_NS       (INT64_C(3600) * 1000000000)
#define NS_PER_DAY   (INT64_C(86400) * 1000000000)

/* --- revisions that others need --- */

struct pins {
	uint64_t *numbers;
	size_t count, cap;
};

static void pin(struct arena *arena, struct pins *pins, int64_t number)
{
	if (number < 0)
		return;
	if (pins->count == pins->cap) {
		size_t cap = pins->cap ? pins->cap * 2 : 16;

		pins->numbers = arena_grow(arena, pins->numbers, pins->cap * sizeof(uint64_t), cap * sizeof(uint64_t));
		pins->cap = cap;
	}
	pins->numbers[pins->count++] = (uint64_t)number;
}

/* The fork.json of the workspace `name`; NULL: it is not a fork. A file that cannot be read is an error, because it may
   name revisions that must be kept. */
static int read_fork(struct ctx *ctx, struct store *base, struct str name, struct jv **ret, struct err *err)
{
	struct wpath path = {arena_printf(ctx->arena, "%.*s/" FORK_FILE, STR_ARG(name))};
	struct str text;
	int r = store_read(base, ctx, path, STORE_WHOLE, JSON_LEN_MAX, &text, NULL, err);

	*ret = NULL;
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = jv_parse(ctx->arena, text, ret, err);
	return r ? err_prefix(err, "the fork \"%.*s\"", STR_ARG(name)) : 0;
}

/* A fork of the directory of the person's own that this workspace works in. */
static void pin_own(struct workspace *ws, struct arena *arena, struct pins *own, const struct jv *files)
{
	if (files && str_eq(jv_get_str(files, "dir"), workspace_own_dir(ws)))
		pin(arena, own, jv_get_int(files, "revision", -1));
}

static int find_pins(struct workspace *ws, struct ctx *ctx, struct pins *pins, struct pins *own, struct err *err)
{
	struct store *base = workspace_store_of(ws, false);
	struct jv *names = jv_array(ctx->arena), *unused = jv_array(ctx->arena), *fork;
	int r = read_fork(ctx, base, workspace_name(ws), &fork, err);

	if (r == 0 && fork) { /* its own changes since the last merge are what a merge brings */
		pin(ctx->arena, pins, jv_get_int(fork, "merged", 0));
		for (const struct jv_member *m = jv_first(jv_get(fork, "pending")); m; m = m->next)
			pin(ctx->arena, pins, m->value->type == JV_INT ? m->value->u.i : 0);
	}
	if (r == 0)
		r = workspace_names(ctx, base, names, unused, err);
	for (const struct jv_member *m = jv_first(names); r == 0 && m; m = m->next) {
		r = read_fork(ctx, base, jv_str_of(m->value), &fork, err);
		if (r || !fork || !str_eq(jv_get_str(fork, "parent"), workspace_name(ws)))
			continue;
		pin(ctx->arena, pins, jv_get_int(fork, "revision", -1));
		pin_own(ws, ctx->arena, own, jv_get(fork, "files"));
	}
	return r;
}

/* --- one run --- */

static struct rev_limits limits_of(struct workspace *ws)
{
	const struct config_history *history = &workspace_config(ws)->history;

	return (struct rev_limits){.revisions = history->revisions,
				   .age_ns = (int64_t)history->age_days * NS_PER_DAY,
				   .bytes = history->bytes};
}

static bool has_limits(struct workspace *ws)
{
	struct rev_limits limits = limits_of(ws);

	return limits.revisions || limits.age_ns || limits.bytes;
}

static struct jv *report(struct arena *arena, const struct rev_retained *got, bool dry_run)
{
	struct jv *v = jv_object(arena), *held;

	jv_set_bool(arena, v, "dry_run", dry_run);
	jv_set_int(arena, v, "dropped", (int64_t)got->dropped);
	jv_set_int(arena, v, "freed", (int64_t)got->freed);
	jv_set_int(arena, v, "contents", (int64_t)got->blobs);
	jv_set_int(arena, v, "waiting", (int64_t)got->waiting);
	jv_set_int(arena, v, "first", (int64_t)got->first);
	jv_set_int(arena, v, "head", (int64_t)got->head);
	jv_set_int(arena, v, "bytes", (int64_t)got->bytes);
	if (got->held_at != UINT64_MAX) {
		held = jv_object(arena);
		jv_set_int(arena, held, "revision", (int64_t)got->held_at);
		if (got->held_by.len)
			jv_set_str(arena, held, "checkpoint", got->held_by);
		jv_set(arena, v, "held", held);
	}
	return v;
}

static struct wpath mark_path(struct workspace *ws, struct ctx *ctx)
{
	return (struct wpath){arena_printf(ctx->arena, "%.*s/" MARK_FILE, STR_ARG(workspace_name(ws)))};
}

static void write_mark(struct workspace *ws, struct ctx *ctx)
{
	struct err ignored;

	store_write(workspace_store_of(ws, false), ctx, mark_path(ws, ctx),
		    clock_format_utc(ctx->arena, clock_real_ns()), (struct store_cond){0}, NULL, &ignored);
}

int gc_run(struct workspace *ws, struct ctx *ctx, bool dry_run, struct jv **ret, struct err *err)
{
	struct store *shared = workspace_shared(ws), *recorded = workspace_revisions(ws);
	struct rev_retain want = {.limits = limits_of(ws), .dry_run = dry_run};
	struct rev_retained got, own = {0};
	struct pins pins = {0}, own_pins = {0};
	int r = find_pins(ws, ctx, &pins, &own_pins, err);

	if (r)
		return r;
	if (recorded != shared) { /* a directory of the person's own has a log of its own */
		want.pins = own_pins.numbers;
		want.pin_count = own_pins.count;
		r = revisions_retain(recorded, ctx, &want, &own, err);
		if (r)
			return r;
	}
	want.pins = pins.numbers;
	want.pin_count = pins.count;
	r = revisions_retain(shared, ctx, &want, &got, err);
	if (r)
		return r;
	if (!dry_run)
		write_mark(ws, ctx);
	got.dropped += own.dropped;
	got.freed += own.freed;
	got.blobs += own.blobs;
	got.waiting += own.waiting;
	got.bytes += own.bytes;
	*ret = report(ctx->arena, &got, dry_run);
	return 0;
}

/* --- by itself --- */

struct gc_auto {
	struct workspace *ws;
	uint64_t handle; /* of the listener */
	_Atomic uint64_t changes;
	atomic_bool running;
	struct cancel cancel;
	pthread_mutex_t lock; /* guards the thread */
	bool has_thread;
	pthread_t thread;
};

static bool is_due(struct workspace *ws, struct ctx *ctx)
{
	struct store_stat stat;
	struct err ignored;
	int r = store_stat(workspace_store_of(ws, false), ctx, mark_path(ws, ctx), &stat, &ignored);

	return r == -ERR_NOT_FOUND || (r == 0 && clock_real_ns() - stat.mtime_ns > DUE_NS);
}

static void run_if_due(struct gc_auto *gc)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &gc->cancel};
	struct jv *unused;
	struct err ignored; /* the next one may do better, and `stead gc` tells */

	if (is_due(gc->ws, &ctx))
		gc_run(gc->ws, &ctx, false, &unused, &ignored);
}

static void *run_thread(void *arg)
{
	struct gc_auto *gc = arg;

	run_if_due(gc);
	atomic_store(&gc->running, false);
	return NULL;
}

static void count_change(void *arg, const struct store_event *event)
{
	struct gc_auto *gc = arg;

	(void)event;
	if ((atomic_fetch_add(&gc->changes, 1) + 1) % CHANGES_MANY || atomic_exchange(&gc->running, true))
		return;
	pthread_mutex_lock(&gc->lock);
	if (gc->has_thread)
		pthread_join(gc->thread, NULL); /* it has ended */
	gc->has_thread = pthread_create(&gc->thread, NULL, run_thread, gc) == 0;
	if (!gc->has_thread)
		atomic_store(&gc->running, false);
	pthread_mutex_unlock(&gc->lock);
}

struct gc_auto *gc_auto_new(struct workspace *ws)
{
	struct gc_auto *gc;

	if (!has_limits(ws))
		return NULL;
	gc = xcalloc(1, sizeof(*gc));
	gc->ws = ws;
	pthread_mutex_init(&gc->lock, NULL);
	gc->handle = store_events_listen(workspace_events(ws), count_change, gc);
	return gc;
}

void gc_auto_end(struct gc_auto *gc)
{
	if (!gc)
		return;
	store_events_unlisten(workspace_events(gc->ws), gc->handle);
	if (gc->has_thread) {
		atomic_store(&gc->cancel.requested, true);
		pthread_join(gc->thread, NULL);
		atomic_store(&gc->cancel.requested, false);
	}
	if (gc->changes)
		run_if_due(gc);
	pthread_mutex_destroy(&gc->lock);
	free(gc);
}
