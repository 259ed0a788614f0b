/* SPDX-License-Identifier: Apache-2.0 */
/* Tools with which an agent plans its own work for later. */

#include "base/clock.h"
#include "home/channels/outbox.h"
#include "home/schedules/schedules.h"
#include "tool/call.h"

static void render_entry(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *task = jv_get(value, "task");

	(void)args;
	buf_printf(text, "%.*s %.*s", STR_ARG(jv_get_str(value, "action")), STR_ARG(jv_get_str(task, "id")));
	if (jv_get(task, "next_run"))
		buf_printf(text, ": %s, next at %.*s",
			   str_is(jv_get_str(task, "task_type"), "once") ? "once" : "repeatedly",
			   STR_ARG(jv_get_str(task, "next_run")));
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *list = jv_get(value, "schedules"), *problems = jv_get(value, "problems");

	(void)args;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		const struct jv *next = jv_get(m->value, "next");
		struct str prompt = jv_get_str(m->value, "prompt");

		prompt = str_first(prompt, str_find_char(prompt, '\n'));
		buf_printf(text, "%.*s  %.*s  ", STR_ARG(jv_get_str(m->value, "id")),
			   STR_ARG(jv_get_str(m->value, "schedule")));
		if (next)
			buf_printf(text, "next %.*s", STR_ARG(jv_get_str(next, "local")));
		else
			buf_add(text, str_of(jv_get_bool(m->value, "paused", false)    ? "paused"
					     : jv_get_bool(m->value, "enabled", false) ? "never again"
										       : "not enabled"));
		buf_printf(text, ": %.*s%s\n", STR_ARG(utf8_first(prompt, 60)), prompt.len > 60 ? "…" : "");
	}
	for (const struct jv_member *m = jv_first(problems); m; m = m->next)
		buf_printf(text, "left out: %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "problem")));
	buf_printf(text, jv_count(list) ? "%zu schedule%s" : "no schedules", jv_count(list), plural(jv_count(list)));
}

static void give(struct call *call, struct outcome *ret, const char *action, struct jv *entry)
{
	static const char *const times[] = {"created_at", "run_at", "next_run", NULL};
	struct arena *arena = call->ctx->arena;

	workspace_times(call->ws, arena, entry, times);
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "action", str_of(action));
	jv_set(arena, ret->value, "task", entry);
}

/* The answer goes to the chat in which it was scheduled; NULL: that was not a chat. */
static struct jv *own_chat(struct call *call)
{
	struct str channel, chat;
	struct jv *to;

	if (!channels_chat_of(call->ctx->actor.session, &channel, &chat) || !channels_has(call->ws, channel))
		return NULL;
	to = jv_object(call->ctx->arena);
	jv_set_str(call->ctx->arena, to, "channel", channel);
	jv_set_str(call->ctx->arena, to, "chat_id", chat);
	return to;
}

static int tool_schedule_at(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *entry;
	int r = schedule_add(call->ws, call->ctx, jv_get_str(args, "run_at"), 0, jv_get_str(args, "prompt"),
			     own_chat(call), &entry, err);

	if (r == 0)
		give(call, ret, "scheduled", entry);
	return r;
}

static int tool_schedule_every(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *entry;
	int r = schedule_add(call->ws, call->ctx, STR_NONE, jv_get_int(args, "interval_seconds", 0),
			     jv_get_str(args, "prompt"), own_chat(call), &entry, err);

	if (r == 0)
		give(call, ret, "scheduled", entry);
	return r;
}

static int tool_cancel_scheduled(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jv *entry;
	int r = schedule_cancel(call->ws, call->ctx, jv_get_str(args, "task_id"), &entry, err);

	if (r == 0)
		give(call, ret, "cancelled", entry);
	return r;
}

static int tool_list_scheduled(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *list = jv_array(arena);
	struct schedules all;
	int r = schedules_read(call->ws, call->ctx, &all, err);

	(void)args;
	for (size_t i = 0; r == 0 && i < all.count; i++)
		jv_push(arena, list, schedule_value(call->ws, call->ctx, &all.list[i], clock_real_ns() / NS_PER_S));
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "schedules", list);
	if (jv_count(all.problems))
		jv_set(arena, ret->value, "problems", all.problems);
	return 0;
}

/* clang-format off */
#define TASK_RESULT "action!; task! obj"

static const struct tool native[] = {
	{
		.name = "schedule_at", .title = "Schedule once", .call = tool_schedule_at, .render = render_entry,
		.description = "Schedules a prompt for yourself, once, at a time in the future.",
		.args =
			"run_at! str>=1: time such as 2026-11-30T09:00 in the workspace's zone, or with Z or an offset\n"
			"prompt! str>=1: what you should do then",
		.result = TASK_RESULT,
	},
	{
		.name = "schedule_every", .title = "Schedule repeatedly", .call = tool_schedule_every, .render = render_entry,
		.description = "Schedules a prompt for yourself at an interval. The first run is one interval from now.",
		.args =
			"interval_seconds! int>=60<=31536000: seconds between runs (at least 300 unless configured otherwise)\n"
			"prompt! str>=1: what you should do each time",
		.result = TASK_RESULT,
	},
	{
		.name = "list_scheduled", .title = "List schedules", .traits = RO, .call = tool_list_scheduled, .render = render_list,
		.description = "Lists all schedules with the time of their next run.",
		.result =
			"schedules! [{id!; schedule!; zone!; enabled! bool; paused! bool; next {at!; local!; effect}; running; last; path!; prompt!}]\n"
			"problems [{path!; problem!}]: files that are left out",
	},
	{
		.name = "cancel_scheduled", .title = "Cancel a schedule", .traits = TOOL_DESTRUCTIVE, .call = tool_cancel_scheduled,
		.render = render_entry,
		.description = "Cancels a schedule that was made with schedule_at or schedule_every.",
		.args = "task_id! str>=1: id from list_scheduled",
		.result = TASK_RESULT,
	},
	{0},
};
/* clang-format on */

const struct family schedules_family = {
	.name = "schedules",
	.about = "Prompts that the agent gets at set times, from crons/ and from its own plans.",
	.tools = native,
	.check = schedules_check,
};
