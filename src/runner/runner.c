/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads wait for the next time of all workspaces (a heap) and look at those whose time has come; a run has a
 * thread while it lasts, at most RUNS_MAX at once, and the others wait in the order in which they came due.
 *
 * A workspace is not kept open. Between its due times only the versions of the few files that decide about them are
 * looked at (agent.yaml, crons/, dynamic_crons.json, boards/.due/), once a minute and without opening it, so an idle
 * workspace costs some hundred bytes and a few system calls a minute. No wait is longer than a second, so a clock that
 * is set and a machine that slept are noticed.
 *
 * What was due is known from the last look. So all workspaces that are due in a second go to the queue of runs at once
 * and unopened; if they are more than can start, their due times are reserved first (reservations.h). The thread that
 * runs one opens its workspace, once: it looks again at what is due there now, claims it and runs it.
 */
#include "runner/runner.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/board/board.h"
#include "runner/desk.h"
#include "runner/heartbeat.h"
#include "runner/reservations.h"
#include "workspace/place.h"
#include "workspace/workspace_parts.h"

#define LOOKERS        2
#define LOOKERS_REMOTE 16 /* they wait for answers most of the time */
#define RUNS_MAX       64
#define RELOOK_S       60
#define NAP_S          1
#define STACK_SIZE     (1024 * KIB)

/* A due time of a schedule, as far as is known. */
struct slot {
	struct str id;
	int64_t due;
};

/* A workspace. It is changed only by the thread that took it from the heap, or from the queue. */
struct resident {
	struct str name;
	int64_t wake;       /* when to look at it */
	int64_t due;        /* its next due time, as far as is known; ZONE_NEVER: none */
	uint64_t files;     /* hash of the versions of the files that decide about it; 0: not known */
	bool is_elsewhere;  /* another process runs one of its schedules, and may die */
	struct slot *slots; /* the next due time of each schedule; one block with the ids */
	size_t slot_count;
	atomic_bool has_more; /* something that is due waits for the end of a run */
	atomic_bool is_over;  /* that run has ended */
	struct desk *desk;    /* NULL: it has no channels */
	uint64_t settings;    /* hash of the versions of the files that the desk was opened with */
	uint64_t told;        /* hash of the problems that the last look found: the same ones are reported once */
	unsigned failures;    /* looks in a row that could not be made */
};

/* A run that waits for its thread, or a workspace in which something is due. */
struct pending {
	struct pending *next;
	struct resident *resident; /* not NULL: something was due in it at `due`; the rest is not used */
	int64_t due;
	struct str workspace, schedule;
	char names[];
};

struct runner {
	struct arena *arena; /* names and options, under the lock */
	struct runner_opts opts;
	struct str by;
	struct store *base;
	struct cancel cancel;
	pthread_mutex_t lock, anchor_lock;
	pthread_cond_t changed;
	struct resident **heap; /* those that nobody looks at now, the earliest first */
	size_t count;
	struct resident **all; /* every one */
	size_t all_count, room;
	struct reservations *reservations;
	struct workspace *anchor;    /* on a server: the first one that was opened; the others share its connections */
	_Atomic uint64_t deployment; /* version of stead.yaml and the .env file next to it */
	int64_t collected;           /* the second in which those that are due were last collected */
	struct pending *first, **last;
	unsigned running;
	bool stops;
	pthread_t lookers[LOOKERS_REMOTE];
	unsigned looker_count;
	int64_t listed; /* when the store was last asked for its workspaces */
	struct strmap *names;
};

static int64_t now_s(void)
{
	return clock_real_ns() / NS_PER_S;
}

static void tell(struct runner *runner, const struct runner_event *event)
{
	if (runner->opts.event)
		runner->opts.event(runner->opts.arg, event);
}

static void tell_problem(struct runner *runner, struct str workspace, struct str what, struct str problem)
{
	tell(runner,
	     &(struct runner_event){
		     .kind = RUNNER_PROBLEM, .workspace = workspace, .what = what, .text = problem, .is_error = true});
}

/* --- the heap of residents, under the lock --- */

static void heap_swap(struct runner *runner, size_t a, size_t b)
{
	struct resident *other = runner->heap[a];

	runner->heap[a] = runner->heap[b];
	runner->heap[b] = other;
}

static void heap_push(struct runner *runner, struct resident *resident)
{
	size_t i = runner->count++;

	runner->heap[i] = resident;
	while (i && runner->heap[(i - 1) / 2]->wake > runner->heap[i]->wake) {
		heap_swap(runner, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static struct resident *heap_pop(struct runner *runner)
{
	struct resident *top = runner->heap[0];
	size_t i = 0;

	runner->heap[0] = runner->heap[--runner->count];
	while (2 * i + 1 < runner->count) {
		size_t child = 2 * i + 1;

		if (child + 1 < runner->count && runner->heap[child + 1]->wake < runner->heap[child]->wake)
			child++;
		if (runner->heap[i]->wake <= runner->heap[child]->wake)
			break;
		heap_swap(runner, i, child);
		i = child;
	}
	return top;
}

static void add_resident(struct runner *runner, struct str name, int64_t wake)
{
	struct resident *resident = ARENA_NEW(runner->arena, struct resident);

	resident->name = arena_str(runner->arena, name);
	resident->wake = wake;
	resident->due = ZONE_NEVER;
	if (runner->all_count == runner->room) {
		runner->room = runner->room ? 2 * runner->room : 64;
		runner->heap = xrealloc(runner->heap, runner->room * sizeof(struct resident *));
		runner->all = xrealloc(runner->all, runner->room * sizeof(struct resident *));
	}
	*strmap_put(runner->names, resident->name, NULL) = runner->all_count;
	runner->all[runner->all_count++] = resident;
	heap_push(runner, resident);
}

/* --- runs --- */

static void end_run(struct runner *runner)
{
	pthread_mutex_lock(&runner->lock);
	runner->running--;
	pthread_cond_broadcast(&runner->changed);
	pthread_mutex_unlock(&runner->lock);
}

static void tell_ended(struct runner *runner, const struct pending *pending, int r, const struct jv *record,
		       struct str error)
{
	struct runner_event event = {.kind = RUNNER_ENDED, .workspace = pending->workspace, .what = pending->schedule};

	if (r == -ERR_CONFLICT || r == -ERR_CANCELLED)
		return;
	event.is_error = r != 0 || jv_get(record, "error");
	event.text = r ? error : jv_get_str(record, "error");
	if (!event.text.len)
		event.text = jv_get_str(record, "response");
	if (!event.text.len)
		event.text = jv_get_str(record, "reason");
	tell(runner, &event);
}

/* Opens a workspace. On a server all of them share the connections of the first one, which stays open: a pool for each
   run would use up what a server admits. */
static int open_workspace(struct runner *runner, struct str name, struct workspace **ret, struct err *err)
{
	struct workspace_opts opts = {
		.store_url = runner->opts.store_url, .name = name, .relaxed = runner->opts.relaxed};
	struct workspace *anchor, *opened = NULL;
	int r;

	if (store_can(runner->base, STORE_LOCAL))
		return workspace_open(&opts, ret, err);
	pthread_mutex_lock(&runner->anchor_lock);
	r = runner->anchor ? 0 : workspace_open(&opts, &runner->anchor, err);
	anchor = runner->anchor;
	pthread_mutex_unlock(&runner->anchor_lock);
	if (r == 0)
		r = workspace_open_sibling(anchor, name, &opened, err);
	if (r == 0)
		*ret = opened;
	return r;
}

/* What waited for the end of a run is due. */
static void note_end(struct runner *runner, struct str workspace)
{
	struct resident *resident;

	pthread_mutex_lock(&runner->lock);
	resident = runner->all[*strmap_find(runner->names, workspace)];
	if (atomic_exchange(&resident->has_more, false)) {
		atomic_store(&resident->is_over, true);
		runner->collected = 0;
		pthread_cond_signal(&runner->changed);
	}
	pthread_mutex_unlock(&runner->lock);
}

/* `of`: its workspace, or NULL when it is not open. */
static void run_one(struct runner *runner, const struct pending *pending, struct workspace *of)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	struct firing firing = {.store_url = runner->opts.store_url,
				.workspace = pending->workspace,
				.schedule = pending->schedule,
				.due = pending->due,
				.model = runner->opts.model,
				.base_url = runner->opts.base_url,
				.relaxed = runner->opts.relaxed,
				.event = runner->opts.tells_calls ? runner->opts.event : NULL,
				.arg = runner->opts.arg};
	struct workspace *own = NULL;
	struct jv *record = NULL;
	struct err err = {0};
	int r;

	tell(runner, &(struct runner_event){.kind = RUNNER_STARTED,
					    .workspace = pending->workspace,
					    .what = pending->schedule,
					    .due = pending->due});
	r = of ? 0 : open_workspace(runner, pending->workspace, &own, &err);
	firing.of = of ? of : own;
	if (r == 0)
		r = firing_run(&ctx, &firing, &record, &err);
	workspace_close(own);
	tell_ended(runner, pending, r, record, r ? err_text(arena, &err) : STR_NONE);
	note_end(runner, pending->workspace);
}

struct started {
	struct runner *runner;
	struct pending *pending;
};

static struct pending *next_pending(struct runner *runner)
{
	struct pending *pending = NULL;

	pthread_mutex_lock(&runner->lock);
	if (!runner->stops && runner->first) {
		pending = runner->first;
		runner->first = pending->next;
		if (!runner->first)
			runner->last = &runner->first;
	}
	pthread_mutex_unlock(&runner->lock);
	return pending;
}

static void fire(struct runner *runner, struct resident *resident, int64_t seen);

/* Runs what it was started for, and then what waits. */
static void *run_thread(void *arg)
{
	struct started started = *(struct started *)arg;
	struct pending *pending = started.pending;

	free(arg);
	while (pending) {
		if (pending->resident)
			fire(started.runner, pending->resident, pending->due);
		else
			run_one(started.runner, pending, NULL);
		free(pending);
		pending = next_pending(started.runner);
	}
	end_run(started.runner);
	return NULL;
}

static bool start_thread(struct runner *runner, struct pending *pending)
{
	struct started *started = xmalloc(sizeof *started);
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	*started = (struct started){runner, pending};
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&thread, &attr, run_thread, started);
	pthread_attr_destroy(&attr);
	if (r)
		free(started);
	return r == 0;
}

static struct pending *pending_new(struct str workspace, struct str schedule, int64_t due)
{
	struct pending *pending = xmalloc(sizeof *pending + workspace.len + schedule.len);

	memcpy(pending->names, workspace.ptr, workspace.len);
	memcpy(pending->names + workspace.len, schedule.ptr, schedule.len);
	pending->next = NULL;
	pending->resident = NULL;
	pending->workspace = str_n(pending->names, workspace.len);
	pending->schedule = str_n(pending->names + workspace.len, schedule.len);
	pending->due = due;
	return pending;
}

static void enqueue(struct runner *runner, struct pending *pending)
{
	pthread_mutex_lock(&runner->lock);
	if (runner->running < RUNS_MAX && start_thread(runner, pending)) {
		runner->running++;
	} else {
		*runner->last = pending;
		runner->last = &pending->next;
	}
	pthread_mutex_unlock(&runner->lock);
}

/* --- looking at a workspace --- */

struct problem {
	struct str what, text;
};

struct look {
	struct runner *runner;
	struct resident *resident;
	struct workspace *ws;
	struct ctx *ctx;
	int64_t now;  /* what is due by then is looked for */
	int64_t real; /* the present */
	int64_t over; /* when the first run of another process may be taken over; ZONE_NEVER: there is none */
	bool failed;  /* in part */
	struct slot *slots;
	size_t slot_count, slot_room;
	struct pending *runs, **runs_end; /* that are to be made */
	struct problem *problems;
	size_t problem_count, problem_room;
};

static void add_problem(struct look *look, struct str what, struct str text)
{
	ARENA_ROOM(look->ctx->arena, look->problems, look->problem_count, look->problem_room);
	look->problems[look->problem_count++] = (struct problem){what, text};
}

/* A file stays wrong until somebody corrects it: what the last look told is not told again. */
static void tell_problems(struct look *look)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < look->problem_count; i++)
		hash = hash * 31 + hash_u64(look->problems[i].what, 0) + hash_u64(look->problems[i].text, 1);
	if (hash != look->resident->told)
		for (size_t i = 0; i < look->problem_count; i++)
			tell_problem(look->runner, look->resident->name, look->problems[i].what,
				     look->problems[i].text);
	look->resident->told = hash;
}

static void add_run(struct look *look, struct str schedule, int64_t due)
{
	struct pending *pending = pending_new(look->resident->name, schedule, due);

	*look->runs_end = pending;
	look->runs_end = &pending->next;
}

static void add_slot(struct look *look, struct str id, int64_t due)
{
	ARENA_ROOM(look->ctx->arena, look->slots, look->slot_count, look->slot_room);
	look->slots[look->slot_count++] = (struct slot){id, due};
	if (due < look->resident->due)
		look->resident->due = due;
}

/* Replaces what is known of the due times of the resident. */
static void keep_slots(struct look *look)
{
	struct resident *resident = look->resident;
	size_t size = look->slot_count * sizeof(struct slot);
	char *names;

	free(resident->slots);
	resident->slots = NULL;
	resident->slot_count = look->slot_count;
	for (size_t i = 0; i < look->slot_count; i++)
		size += look->slots[i].id.len;
	if (!size)
		return;
	resident->slots = xmalloc(size);
	names = (char *)(resident->slots + look->slot_count);
	for (size_t i = 0; i < look->slot_count; i++) {
		struct str id = look->slots[i].id;

		memcpy(names, id.ptr, id.len);
		resident->slots[i] = (struct slot){str_n(names, id.len), look->slots[i].due};
		names += id.len;
	}
}

/* What is due. What was reserved in time stays in time, however long it waits. A reservation of another runner that is
   still fresh is left to it: *ret_elsewhere. */
static struct schedule_due find_due(struct look *look, const struct schedule *schedule,
				    const struct schedule_state *state, bool *ret_elsewhere)
{
	int64_t now = look->now;
	struct reserved reserved;

	*ret_elsewhere = false;
	if (state->last_due &&
	    reservations_find(look->runner->reservations, look->resident->name, schedule->id, &reserved) &&
	    reserved.due > state->last_due && reserved.due <= now) {
		*ret_elsewhere = !reserved.is_own && reserved.at <= look->real && look->real - reserved.at < RELOOK_S;
		if (reserved.at < now)
			now = reserved.at;
	}
	return *ret_elsewhere ? (struct schedule_due){0} : schedule_look(schedule, state, now);
}

/* Notes the next due time. What is due already and was not claimed by this look (a policy that makes up for each of
   them, or one that came due after it was reserved) is left for the end of the run, or for the next look. */
static void add_next(struct look *look, const struct schedule *schedule, int64_t last, bool is_running)
{
	struct cron_time next;
	bool is_left = schedule_next(schedule, last, &next) && next.at <= look->real;

	if (is_left && is_running)
		atomic_store(&look->resident->has_more, true);
	if ((is_left && !is_running && !look->resident->is_elsewhere) || schedule_next(schedule, look->real, &next))
		add_slot(look, schedule->id, next.at);
}

static int look_at(struct look *look, const struct schedule *schedule, struct err *err)
{
	struct runner *runner = look->runner;
	struct schedule_state state;
	struct schedule_due due;
	bool is_elsewhere;
	int r = schedule_state_read(look->ws, look->ctx, schedule->id, &state, err);

	if (r == 0 && !state.last_due && schedule->enabled) {
		state.last_due = look->now;
		r = schedule_begin(look->ws, look->ctx, schedule->id, look->now, err);
	}
	if (r)
		return r;
	if (state.running && !str_eq(state.by, runner->by)) {
		look->resident->is_elsewhere = true;
		if (look->real - state.claimed >= RELOOK_S) /* its process may be gone; if not, this run ends at once */
			add_run(look, schedule->id, state.running);
		else if (state.claimed <= look->real && state.claimed + RELOOK_S < look->over)
			look->over = state.claimed + RELOOK_S;
	}
	due = find_due(look, schedule, &state, &is_elsewhere);
	if (due.passed) {
		r = schedule_claim(look->ws, look->ctx, schedule, &due, runner->by, err);
		if (r == 0 && due.due)
			add_run(look, schedule->id, due.due);
		if (r == -ERR_CONFLICT) {
			is_elsewhere = true;
			r = 0;
		}
	}
	if (is_elsewhere)
		look->resident->is_elsewhere = true;
	if (r == 0 && schedule->enabled && !state.paused)
		add_next(look, schedule, due.passed ? due.passed : state.last_due, due.due || state.running);
	return r;
}

/* It is looked at again in a minute. */
static void look_failed(struct look *look, struct str what, const struct err *err)
{
	look->failed = true;
	if (err->kind != ERR_CANCELLED)
		add_problem(look, what, err_text(look->ctx->arena, err));
}

static int look_inside(struct look *look, struct err *err)
{
	struct resident *resident = look->resident;
	struct schedule heartbeat;
	struct schedules all;
	int64_t next_ns;
	int r = schedules_read(look->ws, look->ctx, &all, err);

	if (r)
		return r;
	resident->due = ZONE_NEVER;
	resident->is_elsewhere = false;
	atomic_store(&resident->has_more, false);
	atomic_store(&resident->is_over, false);
	for (const struct jv_member *m = jv_first(all.problems); m; m = m->next)
		add_problem(look, jv_get_str(m->value, "path"), jv_get_str(m->value, "problem"));
	for (size_t i = 0; i < all.count; i++)
		if (look_at(look, &all.list[i], err) != 0)
			look_failed(look, all.list[i].id, err);
	if (board_fire(look->ws, look->ctx, clock_real_ns(), &next_ns, err) != 0)
		look_failed(look, STR("boards"), err);
	else if (next_ns / NS_PER_S + 1 < resident->due)
		resident->due = next_ns / NS_PER_S + 1;
	if (heartbeat_schedule(look->ws, look->ctx->arena, &heartbeat))
		r = look_at(look, &heartbeat, err);
	return r;
}

/* The versions of what decides when something is due. */
static uint64_t files_hash(struct runner *runner, struct ctx *ctx, struct str name)
{
	static const char *const files[] = {"agent.yaml", ".env", SCHEDULES_DYNAMIC};
	static const char *const dirs[] = {"crons", BOARD_DUE_DIR};
	struct store_list_req req = {.limit = SCHEDULES_MAX};
	struct store_page page = {0};
	struct store_stat stat;
	struct err ignored;
	uint64_t hash = atomic_load(&runner->deployment);

	for (size_t i = 0; i < COUNT(files); i++)
		if (store_stat(runner->base, ctx,
			       (struct wpath){arena_printf(ctx->arena, "%.*s/%s", STR_ARG(name), files[i])}, &stat,
			       &ignored) == 0)
			hash = hash * 31 + hash_u64(stat.version, 0) + i;
	for (size_t d = 0; d < COUNT(dirs); d++)
		if (store_list(runner->base, ctx,
			       (struct wpath){arena_printf(ctx->arena, "%.*s/%s", STR_ARG(name), dirs[d])}, &req, &page,
			       &ignored) == 0)
			for (size_t i = 0; i < page.count; i++)
				hash = hash * 31 + hash_u64(page.entries[i].stat.version, 0) +
				       hash_u64(page.entries[i].path.s, 0);
	return hash | 1;
}

/* Changes with the settings of channels; 0: they cannot be seen now. */
static uint64_t settings_hash(struct look *look)
{
	uint64_t version;
	struct err ignored;

	if (workspace_settings_version(look->ws, look->ctx, &version, &ignored) != 0)
		return 0;
	return (version * 31 + atomic_load(&look->runner->deployment)) | 1;
}

/* Channels are opened when there are some, and again when their settings have changed. */
static void tend_desk(struct look *look)
{
	struct runner *runner = look->runner;
	struct resident *resident = look->resident;
	bool is_reload = resident->desk != NULL, is_wanted = desk_is_wanted(look->ws);
	struct desk_opts opts = {.store_url = runner->opts.store_url,
				 .workspace = resident->name,
				 .model = runner->opts.model,
				 .base_url = runner->opts.base_url,
				 .relaxed = runner->opts.relaxed,
				 .tells_calls = runner->opts.tells_calls,
				 .is_reload = is_reload,
				 .event = runner->opts.event,
				 .arg = runner->opts.arg};
	uint64_t hash = settings_hash(look);
	struct err err = {0};

	if (hash == 0 || hash == resident->settings)
		return;
	resident->settings = hash;
	desk_close_for_reload(resident->desk);
	resident->desk = NULL;
	if (is_wanted && desk_open(&opts, &resident->desk, &err) != 0) {
		resident->settings = 0;
		look_failed(look, STR("channels"), &err);
	} else if (is_reload) {
		tell(runner, &(struct runner_event){
				     .kind = RUNNER_CHANGED,
				     .workspace = resident->name,
				     .what = STR("channels"),
				     .text = is_wanted ? STR("reopened with the changed settings")
						       : STR("closed, because the settings no longer have any")});
	}
}

/* When it is looked at next. A look that could not be made is repeated after a second, two, four and so on, because
   what is in its way may last. */
static void set_wake(struct look *l, bool has_failed)
{
	struct resident *resident = l->resident;

	resident->failures = has_failed ? resident->failures + 1 : 0;
	resident->wake = l->real + RELOOK_S;
	if (has_failed && resident->failures <= 6)
		resident->wake = l->real + (1 << (resident->failures - 1));
	else if (!has_failed && resident->due < resident->wake)
		resident->wake = resident->due > l->real ? resident->due : l->real + 1;
	if (!has_failed && l->over < resident->wake)
		resident->wake = l->over;
}

/* Opens the workspace and looks inside. *ret_ws: the workspace, for the first run of l->runs; else NULL. */
static void look_open(struct look *l, uint64_t files, struct workspace **ret_ws)
{
	struct runner *runner = l->runner;
	struct resident *resident = l->resident;
	struct err err = {0};
	int r = open_workspace(runner, resident->name, &l->ws, &err);

	l->runs_end = &l->runs;
	l->over = ZONE_NEVER;
	*ret_ws = NULL;
	if (r == 0) {
		tend_desk(l);
		r = look_inside(l, &err);
		keep_slots(l);
		if (l->runs)
			*ret_ws = l->ws;
		else
			workspace_close(l->ws);
	}
	resident->files = r || l->failed ? 0 : files;
	if (r && r != -ERR_CANCELLED && err.detail != DETAIL_NO_WORKSPACE)
		add_problem(l, STR_NONE, err_text(l->ctx->arena, &err));
	tell_problems(l);
	set_wake(l, r != 0);
}

static void give_back(struct runner *runner, struct resident *resident)
{
	pthread_mutex_lock(&runner->lock);
	heap_push(runner, resident);
	pthread_cond_signal(&runner->changed);
	pthread_mutex_unlock(&runner->lock);
}

/* Something was due at `seen`: runs it on this thread, and hands over what else there is to run. */
static void fire(struct runner *runner, struct resident *resident, int64_t seen)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	struct look l = {.runner = runner, .resident = resident, .ctx = &ctx, .now = seen, .real = now_s()};
	struct workspace *ws;
	struct pending *first;

	look_open(&l, files_hash(runner, &ctx, resident->name), &ws);
	give_back(runner, resident);
	first = l.runs;
	while (first && first->next) {
		struct pending *other = first->next;

		first->next = other->next;
		other->next = NULL;
		enqueue(runner, other);
	}
	if (first)
		run_one(runner, first, ws);
	free(first);
	workspace_close(ws);
}

/* A look that is not made because of a due time: of what has changed, and at the start. */
static void look(struct runner *runner, struct resident *resident)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	int64_t now = now_s();
	struct look l = {.runner = runner, .resident = resident, .ctx = &ctx, .now = now, .real = now};
	uint64_t files = files_hash(runner, &ctx, resident->name);
	struct workspace *ws = NULL;

	if (files == resident->files && now < resident->due && !resident->is_elsewhere &&
	    !atomic_load(&resident->has_more)) {
		resident->wake = now + RELOOK_S < resident->due ? now + RELOOK_S : resident->due;
		return;
	}
	look_open(&l, files, &ws);
	workspace_close(ws);
	while (l.runs) {
		struct pending *run = l.runs;

		l.runs = run->next;
		run->next = NULL;
		enqueue(runner, run);
	}
}

/* --- what is due --- */

static bool is_due(const struct resident *resident, int64_t now)
{
	return resident->files && !resident->is_elsewhere && (resident->due <= now || atomic_load(&resident->is_over));
}

/* Takes all residents that are due from the heap. Once in a second is enough: due times have no smaller parts. */
static size_t collect(struct runner *runner, int64_t now, struct resident ***ret)
{
	size_t kept = 0, count = 0;

	*ret = NULL;
	if (runner->collected == now)
		return 0;
	runner->collected = now;
	for (size_t i = 0; i < runner->count; i++)
		count += is_due(runner->heap[i], now);
	if (!count)
		return 0;
	*ret = xmalloc(count * sizeof **ret);
	count = 0;
	for (size_t i = 0, all = runner->count; i < all; i++)
		if (is_due(runner->heap[i], now))
			(*ret)[count++] = runner->heap[i];
		else
			runner->heap[kept++] = runner->heap[i];
	runner->count = 0;
	for (size_t i = 0; i < kept; i++) /* heap_push() writes no place that this has not read */
		heap_push(runner, runner->heap[i]);
	return count;
}

/* Reserves the due times of these residents. Those whose due times are all elsewhere go back to the heap and become
   NULL. Without the journal the claims of the runs decide alone. */
static void reserve(struct runner *runner, struct resident **due, size_t count, int64_t now)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	struct reservation *list;
	size_t all = 0, n = 0;
	int64_t at_ns;
	struct err err;

	for (size_t i = 0; i < count; i++)
		all += due[i]->slot_count;
	list = arena_alloc(arena, (all + 1) * sizeof *list);
	for (size_t i = 0; i < count; i++)
		for (size_t s = 0; s < due[i]->slot_count; s++)
			if (due[i]->slots[s].due <= now)
				list[n++] = (struct reservation){due[i]->name, due[i]->slots[s].id,
								 due[i]->slots[s].due, false};
	if (reservations_take(runner->reservations, &ctx, list, n, now, &err) != 0) {
		tell_problem(runner, STR_NONE, STR("reservations"), err_text(arena, &err));
		return;
	}
	at_ns = clock_real_ns();
	n = 0;
	for (size_t i = 0; i < count; i++) {
		size_t own = 0, others = 0;

		for (size_t s = 0; s < due[i]->slot_count; s++) {
			if (due[i]->slots[s].due > now)
				continue;
			others += list[n].is_elsewhere;
			own += !list[n].is_elsewhere;
			if (!list[n].is_elsewhere)
				tell(runner, &(struct runner_event){.kind = RUNNER_QUEUED,
								    .workspace = due[i]->name,
								    .what = list[n].schedule,
								    .due = list[n].due,
								    .at_ns = at_ns});
			n++;
		}
		if (own || !others) /* neither: a task board */
			continue;
		due[i]->is_elsewhere = true;
		due[i]->wake = now + RELOOK_S;
		give_back(runner, due[i]);
		due[i] = NULL;
	}
}

static void dispatch(struct runner *runner, struct resident **due, size_t count, int64_t now)
{
	bool fits;

	pthread_mutex_lock(&runner->lock);
	fits = runner->running + count <= RUNS_MAX;
	pthread_mutex_unlock(&runner->lock);
	if (!fits)
		reserve(runner, due, count, now);
	for (size_t i = 0; i < count; i++)
		if (due[i]) {
			struct pending *pending = pending_new(STR(""), STR(""), now);

			pending->resident = due[i];
			enqueue(runner, pending);
		}
}

/* --- all workspaces --- */

/* Those of the store that are not known yet. */
static int list_workspaces(struct runner *runner, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	struct jv *good = jv_array(arena), *bad = jv_array(arena);
	int r = workspace_names(&ctx, runner->base, good, bad, err);

	if (r)
		return r;
	pthread_mutex_lock(&runner->lock);
	for (const struct jv_member *m = jv_first(good); m; m = m->next)
		if (!strmap_find(runner->names, m->value->u.s))
			add_resident(runner, m->value->u.s, 0);
	pthread_mutex_unlock(&runner->lock);
	return 0;
}

/* --- threads --- */

/* What a looker does next. */
struct work {
	struct resident *look;
	struct resident **due; /* malloc'd */
	size_t due_count;
	int64_t now;
	bool lists;
};

/* Waits until there is something to do; none: the runner stops. Called with the lock held. */
static struct work await(struct runner *runner)
{
	while (!runner->stops) {
		int64_t now_ns = clock_real_ns(), now = now_ns / NS_PER_S, wake = now + NAP_S;
		struct work work = {.now = now};
		struct timespec until;

		work.due_count = collect(runner, now, &work.due);
		if (work.due)
			return work;
		if (now - runner->listed >= RELOOK_S) {
			runner->listed = now;
			work.lists = true;
			return work;
		}
		if (runner->count && runner->heap[0]->wake <= now) {
			work.look = heap_pop(runner);
			return work;
		}
		if (runner->count && runner->heap[0]->wake < wake)
			wake = runner->heap[0]->wake;
		until = clock_timespec(clock_monotonic_ns() + wake * NS_PER_S - now_ns);
		pthread_cond_timedwait(&runner->changed, &runner->lock, &until);
	}
	return (struct work){0};
}

/* A changed stead.yaml concerns every workspace. */
static void look_at_deployment(struct runner *runner)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	uint64_t version = place_version(arena, runner->opts.store_url);

	if (atomic_exchange(&runner->deployment, version) == version)
		return;
	pthread_mutex_lock(&runner->lock);
	for (size_t i = 0; i < runner->count; i++)
		runner->heap[i]->wake = 0;
	pthread_mutex_unlock(&runner->lock);
}

/* Once a minute: settings of the deployment, new workspaces, and what other runners have reserved. */
static void look_around(struct runner *runner)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &runner->cancel};
	struct err err;

	look_at_deployment(runner);
	if (!runner->opts.count && list_workspaces(runner, &err) != 0)
		tell_problem(runner, STR_NONE, STR_NONE, err_text(arena, &err));
	if (reservations_refresh(runner->reservations, &ctx, &err) != 0 && err.kind != ERR_CANCELLED)
		tell_problem(runner, STR_NONE, STR("reservations"), err_text(arena, &err));
}

static void *look_thread(void *arg)
{
	struct runner *runner = arg;

	pthread_mutex_lock(&runner->lock);
	while (!runner->stops) {
		struct work work = await(runner);

		pthread_mutex_unlock(&runner->lock);
		if (work.due)
			dispatch(runner, work.due, work.due_count, work.now);
		free(work.due);
		if (work.lists)
			look_around(runner);
		if (work.look) {
			look(runner, work.look);
			give_back(runner, work.look);
		}
		pthread_mutex_lock(&runner->lock);
	}
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

/* --- start and stop --- */

static struct str own_name(struct arena *arena)
{
	char host[65] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	return arena_printf(arena, "%s %ld %08x", host, (long)getpid(), (unsigned)random_u64());
}

static int find_workspace(struct runner *runner, struct ctx *ctx, struct str name, struct err *err)
{
	struct store *home = store_prefix_new(store_share(runner->base), (struct wpath){name});
	bool exists = false;
	int r = workspace_name_ok(name) ? workspace_exists(ctx, home, &exists, err) : workspace_bad_name(name, err);

	store_destroy(home);
	if (r == 0 && !exists)
		r = err_set(err, ERR_NOT_FOUND, "there is no workspace \"%.*s\"; create it with: stead init %.*s",
			    STR_ARG(name), STR_ARG(name));
	if (r == 0)
		add_resident(runner, name, 0);
	return r;
}

static int find_workspaces(struct runner *runner, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	int r = 0;

	for (size_t i = 0; r == 0 && i < runner->opts.count; i++)
		if (!strmap_find(runner->names, runner->opts.names[i])) /* else it is named twice */
			r = find_workspace(runner, &ctx, runner->opts.names[i], err);
	return r || runner->opts.count ? r : list_workspaces(runner, err);
}

static void release(struct runner *runner)
{
	for (size_t i = 0; i < runner->all_count; i++) {
		desk_close(runner->all[i]->desk);
		free(runner->all[i]->slots);
	}
	workspace_close(runner->anchor);
	reservations_destroy(runner->reservations);
	store_destroy(runner->base);
	free(runner->heap);
	free(runner->all);
	while (runner->first) {
		struct pending *next = runner->first->next;

		free(runner->first);
		runner->first = next;
	}
	pthread_cond_destroy(&runner->changed);
	pthread_mutex_destroy(&runner->lock);
	pthread_mutex_destroy(&runner->anchor_lock);
	arena_destroy(runner->arena);
	free(runner);
}

static void copy_opts(struct runner *runner, const struct runner_opts *opts)
{
	struct arena *arena = runner->arena;
	struct str *names = arena_alloc(arena, (opts->count + 1) * sizeof *names);

	runner->opts = *opts;
	for (size_t i = 0; i < opts->count; i++)
		names[i] = arena_str(arena, opts->names[i]);
	runner->opts.names = names;
	runner->opts.store_url = arena_str(arena, opts->store_url);
	runner->opts.model = arena_str(arena, opts->model);
	runner->opts.base_url = arena_str(arena, opts->base_url);
}

int runner_start(const struct runner_opts *opts, struct runner **ret, struct err *err)
{
	struct runner *runner = xcalloc(1, sizeof *runner);
	pthread_condattr_t attr;
	unsigned lookers;
	struct str dir;
	int r;

	runner->arena = arena_new();
	runner->last = &runner->first;
	runner->by = own_name(runner->arena);
	runner->names = strmap_new(runner->arena);
	copy_opts(runner, opts);
	pthread_mutex_init(&runner->lock, NULL);
	pthread_mutex_init(&runner->anchor_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&runner->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = workspace_open_store(runner->arena, runner->opts.store_url, false, opts->relaxed, &runner->base, &dir, err);
	if (r == 0) {
		runner->reservations = reservations_new(runner->base, runner->by);
		r = find_workspaces(runner, err);
	}
	if (r == 0)
		look_around(runner);
	runner->listed = now_s();
	if (r) {
		release(runner);
		return r;
	}
	lookers = store_can(runner->base, STORE_LOCAL) ? LOOKERS : LOOKERS_REMOTE;
	for (; runner->looker_count < lookers; runner->looker_count++)
		if (pthread_create(&runner->lookers[runner->looker_count], NULL, look_thread, runner) != 0)
			fatal("cannot start a thread");
	*ret = runner;
	return 0;
}

void runner_stop(struct runner *runner)
{
	atomic_store(&runner->cancel.requested, true);
	pthread_mutex_lock(&runner->lock);
	runner->stops = true;
	pthread_cond_broadcast(&runner->changed);
	pthread_mutex_unlock(&runner->lock);
	for (unsigned i = 0; i < runner->looker_count; i++) /* first: they start runs */
		pthread_join(runner->lookers[i], NULL);
	pthread_mutex_lock(&runner->lock);
	while (runner->running)
		pthread_cond_wait(&runner->changed, &runner->lock);
	pthread_mutex_unlock(&runner->lock);
	release(runner);
}
