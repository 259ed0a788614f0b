/* SPDX-License-Identifier: Apache-2.0 */
/* What a workspace does by itself: what runs, what is next, what happened and what it cost. All of it is read from the
 * workspace's files, so it is the same whichever process runs it, and also when none does. */
#include "runner/status.h"

#include "base/clock.h"
#include "home/sessions/sessions.h"
#include "runner/conversations.h"
#include "runner/heartbeat.h"
#include "store/jsonl.h"

#define SHOWN  5
#define DAY_NS (86400 * NS_PER_S)

struct gather {
	struct workspace *ws;
	struct ctx *ctx;
	int64_t now;
	struct jv *running, *next, *recent;
	size_t left; /* lines of a log that are still wanted */
};

/* Keeps `list` in the order of `key`, the least first. */
static void insert_by(struct arena *arena, struct jv **list, struct jv *v, const char *key, bool newest_first)
{
	struct jv *sorted = jv_array(arena);
	bool done = false;

	for (const struct jv_member *m = jv_first(*list); m; m = m->next) {
		int order = str_cmp(jv_get_str(v, key), jv_get_str(m->value, key));

		if (!done && (newest_first ? order > 0 : order < 0)) {
			jv_push(arena, sorted, v);
			done = true;
		}
		if (jv_count(sorted) < SHOWN)
			jv_push(arena, sorted, m->value);
	}
	if (!done && jv_count(sorted) < SHOWN)
		jv_push(arena, sorted, v);
	*list = sorted;
}

static int add_schedule(struct gather *g, const struct schedule *schedule, struct err *err)
{
	struct arena *arena = g->ctx->arena;
	struct schedule_state state;
	struct cron_time time;
	struct jv *v;
	int r = schedule_state_read(g->ws, g->ctx, schedule->id, &state, err);

	if (r)
		return r;
	if (state.running) {
		v = jv_object(arena);
		jv_set_str(arena, v, "schedule", schedule->id);
		jv_set_str(arena, v, "due", clock_format_seconds(arena, state.running));
		jv_set_str(arena, v, "since", clock_format_seconds(arena, state.claimed));
		jv_set_str(arena, v, "by", state.by);
		jv_push(arena, g->running, v);
	}
	if (!schedule->enabled || state.paused || !schedule_next(schedule, g->now, &time))
		return 0;
	v = jv_object(arena);
	jv_set_str(arena, v, "schedule", schedule->id);
	jv_set_str(arena, v, "at", clock_format_seconds(arena, time.at));
	jv_set_str(arena, v, "local", zone_format(arena, schedule->zone, time.at));
	insert_by(arena, &g->next, v, "at", false);
	return 0;
}

static bool add_line(void *arg, const struct jsonl_line *line)
{
	static const char *const kept[] = {"timestamp", "schedule",    "outcome",     "reason", "error",
					   "session",   "duration_ms", "undelivered", "count"};
	struct gather *g = arg;
	struct arena *arena = g->ctx->arena;
	struct jv *v = jv_object(arena);

	for (size_t i = 0; i < COUNT(kept); i++)
		if (jv_get(line->value, kept[i]))
			jv_set(arena, v, kept[i], jv_copy(arena, jv_get(line->value, kept[i])));
	if (!jv_get(v, "schedule"))
		jv_set_str(arena, v, "schedule", STR(HEARTBEAT_ID));
	insert_by(arena, &g->recent, v, "timestamp", true);
	return --g->left > 0;
}

static int add_log(struct gather *g, const char *path, struct err *err)
{
	struct jsonl_back back = {.visit = add_line, .arg = g};

	g->left = SHOWN;
	return jsonl_read_back(workspace_home(g->ws), g->ctx, (struct wpath){str_of(path)}, &back, err);
}

static void count_one(void *arg, struct str chat, struct str session)
{
	(void)chat;
	(void)session;
	++*(int64_t *)arg;
}

static int add_rest(struct gather *g, struct jv *value, struct err *err)
{
	struct arena *arena = g->ctx->arena;
	struct jv *usage, *today = jv_object(arena);
	int64_t conversations = 0;
	int r = usage_sum(g->ws, g->ctx, STR_NONE, clock_real_ns() / DAY_NS * DAY_NS, &usage, err);

	if (r == 0)
		r = conversations_each(g->ws, g->ctx, count_one, &conversations, err);
	if (r)
		return r;
	jv_set_int(arena, today, "llm_calls", jv_get_int(usage, "llm_calls", 0));
	jv_set_int(arena, today, "total_tokens", jv_get_int(usage, "total_tokens", 0));
	if (jv_get(usage, "cost_usd"))
		jv_set(arena, today, "cost_usd", jv_copy(arena, jv_get(usage, "cost_usd")));
	jv_set_int(arena, value, "conversations", conversations);
	jv_set(arena, value, "today", today);
	return 0;
}

int runner_status(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct gather g = {.ws = ws,
			   .ctx = ctx,
			   .now = clock_real_ns() / NS_PER_S,
			   .running = jv_array(arena),
			   .next = jv_array(arena),
			   .recent = jv_array(arena)};
	struct jv *value = jv_object(arena);
	struct schedule heartbeat;
	struct schedules all;
	int r = schedules_read(ws, ctx, &all, err);

	for (size_t i = 0; r == 0 && i < all.count; i++)
		r = add_schedule(&g, &all.list[i], err);
	if (r == 0 && heartbeat_schedule(ws, arena, &heartbeat))
		r = add_schedule(&g, &heartbeat, err);
	if (r == 0)
		r = add_log(&g, "schedules/log.jsonl", err);
	if (r == 0)
		r = add_log(&g, "heartbeat_log.jsonl", err);
	if (r)
		return r;
	jv_set_str(arena, value, "workspace", arena_str(arena, workspace_name(ws)));
	jv_set(arena, value, "running", g.running);
	jv_set(arena, value, "next", g.next);
	jv_set(arena, value, "recent", g.recent);
	if (jv_count(all.problems))
		jv_set(arena, value, "problems", all.problems);
	*ret = value;
	return add_rest(&g, value, err);
}
