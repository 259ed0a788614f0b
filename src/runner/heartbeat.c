/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An idle heartbeat costs no model call: outside its hours, with an empty HEARTBEAT.md and no active task, or (if asked
 * for) with nothing changed, it is skipped, and the log says why.
 *
 * "Changed" is a question to the change feed: a file that another than a heartbeat wrote since the last one. What
 * Stead itself keeps (logs, sessions, states of schedules) does not count, or each heartbeat would cause the next.
 */
#include "runner/heartbeat.h"

#include "agent/agent.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/tasks/tasks.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "runner/conversations.h"
#include "workspace/workspace_parts.h"

#define LOG             "heartbeat_log.jsonl"
#define EVERY_DEFAULT   30
#define FEED_PAGE       1000
#define FEED_PAGES      100
#define CHATS_LOOKED_AT 100
#define NOTHING_CHANGED "nothing has changed since the last heartbeat"

static const struct jv *settings(struct workspace *ws)
{
	return jv_get(workspace_config(ws)->document, "heartbeat");
}

bool heartbeat_schedule(struct workspace *ws, struct arena *arena, struct schedule *ret)
{
	int64_t every = jv_get_int(settings(ws), "interval_minutes", EVERY_DEFAULT) * 60;
	struct err ignored;

	if (!jv_get_bool(settings(ws), "enabled", false))
		return false;
	*ret = (struct schedule){
		.id = STR(HEARTBEAT_ID),
		.path = STR("HEARTBEAT.md"),
		.kind = SCHEDULE_INTERVAL,
		.enabled = true,
		.zone_name = workspace_config(ws)->timezone,
		.first = every,
		.interval = every,
		.grace = every,
	};
	if (zone_open(arena, ret->zone_name, &ret->zone, &ignored) != 0)
		(void)zone_open(arena, STR("UTC"), &ret->zone, &ignored);
	return true;
}

const struct jv *heartbeat_output(struct workspace *ws, struct arena *arena)
{
	const struct jv *s = settings(ws), *given = jv_get(s, "output"), *id = jv_get(given, "chat_id");
	struct jv *output;
	struct str channel = jv_get_str(given, "channel"), delivery = jv_get_str(s, "delivery");

	if (!given && !jv_get(s, "target_id"))
		return NULL;
	if (!id)
		id = jv_get(given, "target_id") ? jv_get(given, "target_id") : jv_get(s, "target_id");
	if (!channel.len)
		channel = jv_get_str(s, "target_channel");
	output = jv_object(arena);
	jv_set_str(arena, output, "channel", channel.len ? channel : STR("telegram"));
	if (id)
		jv_set(arena, output, "chat_id", jv_copy(arena, id));
	if (delivery.len)
		jv_set_str(arena, output, "delivery", delivery);
	return output;
}

bool heartbeat_keeps_ok(struct workspace *ws)
{
	return jv_get_bool(settings(ws), "suppress_ok", true);
}

/* --- hours --- */

static bool minute_of(struct str text, int *ret)
{
	int64_t hour, minute;

	if (text.len != 5 || text.ptr[2] != ':' || !str_to_i64(str_first(text, 2), &hour) ||
	    !str_to_i64(str_from(text, 3), &minute) || hour < 0 || hour > 23 || minute < 0 || minute > 59)
		return false;
	*ret = (int)(hour * 60 + minute);
	return true;
}

int heartbeat_hours_contain(struct str hours, int minute, bool *ret, struct err *err)
{
	int from, to;

	if (hours.len != 11 || hours.ptr[5] != '-' || !minute_of(str_first(hours, 5), &from) ||
	    !minute_of(str_from(hours, 6), &to))
		return err_set(err, ERR_INVALID, "heartbeat.active_hours \"%.*s\" does not have the form 08:00-22:00",
			       STR_ARG(utf8_first(hours, 40)));
	*ret = from <= to ? minute >= from && minute <= to : minute >= from || minute <= to;
	return 0;
}

static int check_hours(struct workspace *ws, struct ctx *ctx, int64_t due, struct str *reason, struct err *err)
{
	struct str hours = jv_get_str(settings(ws), "active_hours");
	const struct zone *zone;
	struct civil c;
	bool inside;
	int r;

	if (!hours.len)
		return 0;
	r = zone_open(ctx->arena, workspace_config(ws)->timezone, &zone, err);
	if (r)
		return r;
	c = civil_of(due + zone_offset(zone, due));
	r = heartbeat_hours_contain(hours, c.hour * 60 + c.minute, &inside, err);
	if (r == 0 && !inside)
		*reason = arena_printf(ctx->arena, "outside the active hours %.*s", STR_ARG(hours));
	return r;
}

/* --- turns --- */

struct turns {
	struct workspace *ws;
	struct ctx *ctx;
	size_t left; /* chats that are still looked at */
	struct str reason;
};

static void look_at_turn(void *arg, struct str chat, struct str session)
{
	struct turns *turns = arg;
	struct err ignored;
	bool runs = false;

	if (turns->reason.len || !turns->left)
		return;
	turns->left--;
	if (agent_turn_runs(turns->ws, turns->ctx, session, &runs, &ignored) == 0 && runs)
		turns->reason = arena_printf(turns->ctx->arena, "the agent is answering in the chat %.*s",
					     STR_ARG(utf8_first(chat, 80)));
}

/* Somebody who talks to the agent is not disturbed, and the agent is not in two places at once. */
static int check_turns(struct workspace *ws, struct ctx *ctx, struct str *reason, struct err *err)
{
	struct turns turns = {ws, ctx, CHATS_LOOKED_AT, STR_NONE};
	int r = conversations_each(ws, ctx, look_at_turn, &turns, err);

	*reason = turns.reason;
	return r;
}

/* --- changes --- */

static bool is_own_record(struct str path)
{
	static const char *const own[] = {"agents/", "schedules/", "memory/", "artifacts/", "channels/", ".stead/"};

	if (str_is(path, LOG) || str_is(path, SCHEDULES_DYNAMIC))
		return true;
	for (size_t i = 0; i < COUNT(own); i++)
		if (str_starts(path, str_of(own[i])))
			return true;
	return false;
}

/* What the last heartbeat saw, from its line of the log. */
struct seen {
	uint64_t revision; /* 0: there was none */
	struct str file;   /* the version of HEARTBEAT.md; empty: it was not noted */
};

static int last_seen(struct workspace *ws, struct ctx *ctx, struct seen *ret, struct err *err)
{
	struct str text;
	struct store_stat stat;
	struct jv *v;
	struct err ignored;
	size_t end;
	int r = store_stat(workspace_home(ws), ctx, (struct wpath){STR(LOG)}, &stat, err);

	*ret = (struct seen){0};
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = store_read(workspace_home(ws), ctx, (struct wpath){STR(LOG)},
		       (struct store_range){stat.size > 64 * KIB ? stat.size - 64 * KIB : 0, 64 * KIB}, 64 * KIB, &text,
		       NULL, err);
	if (r)
		return r;
	text = str_trim(text);
	end = str_rfind_char(text, '\n');
	if (jv_parse(ctx->arena, end < text.len ? str_from(text, end + 1) : text, &v, &ignored) == 0)
		*ret = (struct seen){(uint64_t)jv_get_int(v, "revision", 0), jv_get_str(v, "file_version")};
	return 0;
}

/* People change HEARTBEAT.md with an editor, and then history does not know. "-": there is none. */
static struct str file_version(struct workspace *ws, struct ctx *ctx)
{
	struct store_stat stat;
	struct err ignored;

	if (store_stat(workspace_home(ws), ctx, (struct wpath){STR("HEARTBEAT.md")}, &stat, &ignored) != 0)
		return STR("-");
	return arena_str(ctx->arena, stat.version);
}

static int look_now(struct workspace *ws, struct ctx *ctx, struct seen *ret, struct err *err)
{
	ret->file = file_version(ws, ctx);
	return revisions_head(workspace_revisions(ws), ctx, &ret->revision, err);
}

static int check_changes(struct workspace *ws, struct ctx *ctx, struct str *reason, struct err *err)
{
	struct seen seen;
	uint64_t since;
	int r;

	if (!str_is(jv_get_str(settings(ws), "when"), "changed"))
		return 0;
	r = last_seen(ws, ctx, &seen, err);
	if (r || (seen.file.len && !str_eq(seen.file, file_version(ws, ctx))))
		return r;
	since = seen.revision;
	for (int page = 0; r == 0 && since && page < FEED_PAGES; page++) {
		struct jv *feed;

		r = history_changes(ws, ctx, since, WPATH_ROOT, 0, FEED_PAGE, &feed, err);
		if (r)
			break;
		for (const struct jv_member *m = jv_first(jv_get(feed, "changes")); m; m = m->next)
			if (!is_own_record(jv_get_str(m->value, "path")))
				return 0;
		since = (uint64_t)jv_get_int(feed, "next", 0);
		if (!jv_get_bool(feed, "more", false)) {
			*reason = STR(NOTHING_CHANGED);
			return 0;
		}
	}
	return r;
}

/* --- the prompt --- */

static int active_tasks(struct workspace *ws, struct ctx *ctx, struct buf *text, uint64_t *ret, struct err *err)
{
	struct jv *tasks;
	int r = tasks_list(ws, ctx, STR_NONE, STR_NONE, &tasks, err);

	*ret = 0;
	for (const struct jv_member *m = r ? NULL : jv_first(tasks); m; m = m->next) {
		struct str what = jv_get_str(m->value, "description");

		if (!task_is_active(m->value))
			continue;
		if ((*ret)++ == 0)
			buf_lit(text, "<active_tasks>\n");
		what = utf8_first(str_first(what, str_find_char(what, '\n')), 200);
		buf_printf(text, "%.*s %.*s, created %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "short_id")),
			   STR_ARG(jv_get_str(m->value, "status")), STR_ARG(jv_get_str(m->value, "created_at")),
			   STR_ARG(what));
	}
	if (*ret)
		buf_lit(text, "</active_tasks>\n");
	return r;
}

int heartbeat_check(struct workspace *ws, struct ctx *ctx, int64_t due, struct str *ret_reason, struct str *ret_prompt,
		    uint64_t *ret_tasks, struct err *err)
{
	struct arena *arena = ctx->arena;
	const struct zone *zone;
	struct buf text;
	struct str file;
	int r = workspace_read(ctx, workspace_home(ws), "HEARTBEAT.md", PROMPT_FILE_MAX, &file, err);

	*ret_reason = STR_NONE;
	buf_init(&text, arena, PROMPT_FILE_MAX);
	if (r == 0)
		r = zone_open(arena, workspace_config(ws)->timezone, &zone, err);
	if (r == 0) {
		buf_printf(&text,
			   "This is a heartbeat, at %.*s. Nobody has written to you. Look at HEARTBEAT.md and at your "
			   "tasks, and do what is due now. If something needs a person's attention, answer with a "
			   "short message for them. If there is nothing to do and nothing to report, answer with "
			   "HEARTBEAT_OK and nothing else.\n",
			   STR_ARG(zone_format(arena, zone, due)));
		r = active_tasks(ws, ctx, &text, ret_tasks, err);
	}
	*ret_prompt = buf_str(&text);
	if (r == 0)
		r = check_hours(ws, ctx, due, ret_reason, err);
	if (r == 0 && !ret_reason->len && !*ret_tasks && workspace_heartbeat_is_empty(file))
		*ret_reason = STR("HEARTBEAT.md is empty and there is no active task");
	if (r == 0 && !ret_reason->len)
		r = check_changes(ws, ctx, ret_reason, err);
	if (r == 0 && !ret_reason->len)
		r = check_turns(ws, ctx, ret_reason, err);
	return r;
}

bool heartbeat_is_ok(struct str answer)
{
	return str_is(str_trim(answer), "HEARTBEAT_OK");
}

int heartbeat_log(struct workspace *ws, struct ctx *ctx, struct jv *record, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str reason = jv_get_str(record, "reason");
	struct jv *v = jv_object(arena);
	struct seen seen;
	struct buf line;
	int r;

	/* The next one looks at what comes after it. One that was skipped for another reason has not looked. */
	if (reason.len && !str_is(reason, NOTHING_CHANGED))
		r = last_seen(ws, ctx, &seen, err);
	else
		r = look_now(ws, ctx, &seen, err);
	if (r)
		return r;
	jv_set_str(arena, v, "timestamp", clock_format_utc(arena, clock_real_ns()));
	jv_set_str(arena, v, "workspace", workspace_name(ws));
	for (const struct jv_member *m = jv_first(record); m; m = m->next)
		jv_set_key(arena, v, m->key, m->value);
	jv_set_int(arena, v, "revision", (int64_t)seen.revision);
	jv_set_str(arena, v, "file_version", seen.file);
	buf_init(&line, arena, MIB);
	jv_write(&line, v);
	buf_char(&line, '\n');
	return store_append(workspace_home(ws), ctx, (struct wpath){STR(LOG)}, buf_str(&line), (struct store_cond){0},
			    NULL, err);
}
