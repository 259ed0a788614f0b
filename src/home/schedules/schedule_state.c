/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has run. A due time is claimed by writing it into the schedule's file under the condition that the file is as it
 * was read; the store decides who was first. A claim also takes all earlier due times, so that a clock that is set back
 * or a second process never runs one again.
 *
 * A process that dies leaves `running` behind. Its run is a session with a name made from schedule and due time, and
 * the agent's steps are durable, so whoever sees that the lease of the run is free continues with it under the same
 * name.
 */
#include "home/schedules/schedules.h"

#include "base/clock.h"
#include "base/limits.h"
#include "workspace/workspace_parts.h"

#define LOG       "schedules/log.jsonl"
#define STATE_MAX (64 * KIB)
#define LATE      60 /* a due time that is later than this was missed, for MISFIRE_SKIP */
/* The most missed due times that are counted: two years of one every minute, which take half a second. */
#define COUNTED_MAX 1000000

static struct wpath state_path(struct arena *arena, struct str id)
{
	return (struct wpath){arena_printf(arena, "schedules/%.*s.json", STR_ARG(workspace_encode_name(arena, id)))};
}

static int64_t instant(const struct jv *v, const char *key)
{
	int64_t ns;

	return clock_parse(jv_get_str(v, key), &ns) ? ns / NS_PER_S : 0;
}

/* --- the file --- */

static int parse_state(struct arena *arena, struct str text, struct schedule_state *ret, struct err *err)
{
	struct jv *v;
	int r;

	*ret = (struct schedule_state){0};
	if (!text.ptr)
		return 0;
	r = jv_parse(arena, text, &v, err);
	if (r)
		return r;
	*ret = (struct schedule_state){
		.last_due = instant(v, "last_due"),
		.paused = jv_get_bool(v, "paused", false),
		.running = instant(v, "running"),
		.claimed = instant(v, "claimed"),
		.by = jv_get_str(v, "by"),
	};
	return 0;
}

static struct str format_state(struct arena *arena, const struct schedule_state *state)
{
	struct jv *v = jv_object(arena);
	struct buf text;

	jv_set_str(arena, v, "last_due", clock_format_seconds(arena, state->last_due));
	jv_set_bool(arena, v, "paused", state->paused);
	if (state->running) {
		jv_set_str(arena, v, "running", clock_format_seconds(arena, state->running));
		jv_set_str(arena, v, "claimed", clock_format_seconds(arena, state->claimed));
		jv_set_str(arena, v, "by", state->by);
	}
	buf_init(&text, arena, STATE_MAX);
	jv_write_pretty(&text, v);
	return buf_str(&text);
}

int schedule_state_read(struct workspace *ws, struct ctx *ctx, struct str id, struct schedule_state *ret,
			struct err *err)
{
	struct str text;
	int r = workspace_read(ctx, workspace_home(ws), state_path(ctx->arena, id).s.ptr, STATE_MAX, &text, err);

	if (r == 0 && parse_state(ctx->arena, text, ret, err) != 0)
		return err_prefix(err, "%.*s cannot be read; remove it, and the schedule starts afresh",
				  STR_ARG(state_path(ctx->arena, id).s));
	return r;
}

/* `change` gets the state as it is and says whether to write it. */
struct step {
	bool (*change)(struct schedule_state *state, void *arg);
	void *arg;
	bool done;
};

static int change_state(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct step *step = arg;
	struct schedule_state state;
	int r = parse_state(arena, before, &state, err);

	if (r)
		return r;
	step->done = step->change(&state, step->arg);
	if (step->done)
		*ret_after = format_state(arena, &state);
	return 0;
}

static int take_step(struct workspace *ws, struct ctx *ctx, struct str id, struct step *step, struct err *err)
{
	struct store_change change = {.max = STATE_MAX, .create = true, .change = change_state, .arg = step};

	return store_change(workspace_home(ws), ctx, state_path(ctx->arena, id), &change, NULL, NULL, NULL, err);
}

static bool begin(struct schedule_state *state, void *arg)
{
	if (state->last_due)
		return false;
	state->last_due = *(int64_t *)arg;
	return true;
}

int schedule_begin(struct workspace *ws, struct ctx *ctx, struct str id, int64_t now, struct err *err)
{
	struct step step = {.change = begin, .arg = &now};

	return take_step(ws, ctx, id, &step, err);
}

struct pausing {
	bool paused;
	int64_t now;
};

/* What came due during the pause is not made up for. */
static bool set_paused(struct schedule_state *state, void *arg)
{
	const struct pausing *pausing = arg;

	if (state->paused == pausing->paused)
		return false;
	state->paused = pausing->paused;
	if (!pausing->paused && state->last_due < pausing->now)
		state->last_due = pausing->now;
	return true;
}

int schedule_pause(struct workspace *ws, struct ctx *ctx, struct str id, bool paused, struct err *err)
{
	struct pausing pausing = {paused, clock_real_ns() / NS_PER_S};
	struct step step = {.change = set_paused, .arg = &pausing};

	return take_step(ws, ctx, id, &step, err);
}

/* --- what is due --- */

struct schedule_due schedule_look(const struct schedule *schedule, const struct schedule_state *state, int64_t now)
{
	int64_t most = schedule->misfire == MISFIRE_SKIP ? LATE : schedule->grace, after = state->last_due, oldest;
	struct schedule_due due = {0};
	struct cron_time t;

	if (!schedule->enabled || state->paused || state->running || !state->last_due)
		return due;
	if (schedule->misfire == MISFIRE_SKIP && schedule->grace < LATE)
		most = schedule->grace;
	oldest = now - most;
	/* What is too late is only counted, and only so far: nobody wants to wait for a number. */
	while (schedule_next(schedule, after, &t) && t.at <= now) {
		bool in_time = t.at >= oldest;

		if (due.due && schedule->misfire == MISFIRE_ALL)
			break;
		due.missed += due.due || !in_time;
		due.passed = t.at;
		if (in_time)
			due.due = t.at;
		if (!in_time && due.missed >= COUNTED_MAX && t.at < oldest - 1)
			after = oldest - 1;
		else
			after = t.at;
	}
	return due;
}

struct claiming {
	const struct schedule_due *due;
	struct str by;
};

static bool claim(struct schedule_state *state, void *arg)
{
	const struct claiming *claiming = arg;

	if (state->paused || state->running || state->last_due >= claiming->due->passed)
		return false;
	state->last_due = claiming->due->passed;
	state->running = claiming->due->due;
	state->claimed = clock_real_ns() / NS_PER_S;
	state->by = claiming->by;
	return true;
}

int schedule_log(struct workspace *ws, struct ctx *ctx, struct str id, int64_t due, const struct jv *record,
		 struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct buf line;

	jv_set_str(arena, v, "timestamp", clock_format_utc(arena, clock_real_ns()));
	jv_set_str(arena, v, "schedule", id);
	jv_set_str(arena, v, "due", clock_format_seconds(arena, due));
	for (const struct jv_member *m = jv_first(record); m; m = m->next)
		jv_set_key(arena, v, m->key, m->value);
	buf_init(&line, arena, MIB);
	jv_write(&line, v);
	buf_char(&line, '\n');
	return store_append(workspace_home(ws), ctx, (struct wpath){STR(LOG)}, buf_str(&line), (struct store_cond){0},
			    NULL, err);
}

int schedule_claim(struct workspace *ws, struct ctx *ctx, const struct schedule *schedule,
		   const struct schedule_due *due, struct str by, struct err *err)
{
	struct claiming claiming = {due, by};
	struct step step = {.change = claim, .arg = &claiming};
	int r = take_step(ws, ctx, schedule->id, &step, err);

	if (r == 0 && !step.done)
		return err_set(err, ERR_CONFLICT, "the schedule \"%.*s\" is running elsewhere; wait until it has ended",
			       STR_ARG(utf8_first(schedule->id, 60)));
	if (r == 0 && due->missed) {
		struct jv *record = jv_object(ctx->arena);

		jv_set_str(ctx->arena, record, "outcome", STR("missed"));
		jv_set_int(ctx->arena, record, "count", (int64_t)due->missed);
		r = schedule_log(ws, ctx, schedule->id, due->passed, record, err);
	}
	return r;
}

static bool end(struct schedule_state *state, void *arg)
{
	if (state->running != *(int64_t *)arg)
		return false;
	state->running = 0;
	return true;
}

int schedule_ended(struct workspace *ws, struct ctx *ctx, const struct schedule *schedule, int64_t due,
		   const struct jv *record, struct err *err)
{
	struct step step = {.change = end, .arg = &due};
	struct jv *ignored;
	int r = schedule->kind == SCHEDULE_ONCE ? schedule_cancel(ws, ctx, schedule->id, &ignored, err) : 0;

	if (r && r != -ERR_NOT_FOUND) /* it may have been cancelled while it ran */
		return r;
	r = take_step(ws, ctx, schedule->id, &step, err);
	return r == 0 && step.done && record ? schedule_log(ws, ctx, schedule->id, due, record, err) : r;
}
