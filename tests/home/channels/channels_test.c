/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a group is for its own chat only; send_message and send_file put into the outbox what the session's
 * own chat is to get, and nothing else. */
#include "tool/tool_fix.h"

#include "base/clock.h"
#include "home/channels/chat_log.h"
#include "home/channels/followups.h"
#include "home/channels/inbox.h"
#include "home/channels/outbox.h"

static void open_as(struct bench *b, const char *yaml, const char *session)
{
	struct err err = {0};

	bench_open_disk(b, "native");
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){.session = str_of(session)}, "native");
}

struct seen {
	struct arena *arena;
	struct outbox_item items[4];
	size_t count;
};

static bool keep(void *arg, const struct outbox_item *item)
{
	struct seen *seen = arg;

	seen->items[seen->count++] = *item;
	return true;
}

static struct seen empty(struct bench *b)
{
	struct seen seen = {.arena = b->arena};
	struct err err = {0};

	CHECK_OK(outbox_each(b->ws, &b->ctx, keep, &seen, &err), err);
	return seen;
}

TEST(a_message_goes_to_the_chat_of_its_session)
{
	struct seen seen;
	struct bench b;

	open_as(&b, "channel: {type: telegram}\n", "telegram:-100:7:conv_2026");
	good(&b, "send_message", "{'content':'one'}");
	good(&b, "send_message", "{'content':'two'}");
	seen = empty(&b);
	CHECK_INT(seen.count, 2);
	CHECK_STR(seen.items[0].channel, STR("telegram"));
	CHECK_STR(seen.items[0].chat, STR("-100:7"));
	CHECK_STR(seen.items[0].text, STR("one"));
	CHECK_STR(seen.items[1].text, STR("two"));
	CHECK_INT(empty(&b).count, 0);
}

TEST(a_session_that_is_not_a_chat_has_nobody_to_speak_to)
{
	struct bench b;

	open_as(&b, "channel: {name: team, type: telegram}\n", "telegram:5:conv_2026");
	refused(&b, "send_message", "{'content':'x'}", ERR_UNSUPPORTED); /* agent.yaml has another channel */
	open_as(&b, "channel: {type: telegram}\n", "daily-20260301");
	refused(&b, "send_message", "{'content':'x'}", ERR_UNSUPPORTED);
	bench_open(&b, "native");
	CHECK(!toolset_find(b.set, STR("send_message")));
}

TEST(a_file_is_sent_from_the_tool_root_only)
{
	struct seen seen;
	struct bench b;

	open_as(&b, "channel: {type: telegram}\n", "telegram:5:conv_2026");
	put(&b, "out/report.txt", STR("text"));
	good(&b, "send_file", "{'file_path':'out/report.txt','caption':'here'}");
	seen = empty(&b);
	CHECK_STR(seen.items[0].file, STR("files/out/report.txt"));
	CHECK_STR(seen.items[0].file_name, STR("report.txt"));
	refused(&b, "send_file", "{'file_path':'../agent.yaml'}", ERR_INVALID);
	refused(&b, "send_file", "{'file_path':'missing'}", ERR_NOT_FOUND);
	refused(&b, "send_file", "{'file_path':'out'}", ERR_TOO_LARGE);
}

TEST(what_is_scheduled_in_a_chat_is_answered_there)
{
	const struct jv *task;
	struct bench b;

	open_as(&b, "channel: {type: telegram}\n", "telegram:5:conv_2026");
	task = jv_get(good(&b, "schedule_every", "{'interval_seconds':600,'prompt':'look'}"), "task");
	CHECK_STR(jv_get_str(task, "channel"), STR("telegram"));
	CHECK_STR(jv_get_str(task, "chat_id"), STR("5"));
}

static bool count_item(void *arg, const struct inbox_item *item)
{
	CHECK_STR(item->id, STR("m1"));
	++*(int *)arg;
	return true;
}

TEST(a_message_that_cannot_be_read_does_not_stop_the_others)
{
	struct inbox_item item = {.channel = STR("webhook"), .id = STR("m1"), .until = 1};
	struct err err = {0};
	struct bench b;
	int taken = 0;

	open_as(&b, "channel: {type: telegram}\n", "telegram:5:conv_2026");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("channels/inbox/0.json")}, STR("{"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	item.body = jv_object(b.arena);
	CHECK_OK(inbox_put(b.ws, &b.ctx, &item, &err), err);
	CHECK(inbox_each(b.ws, &b.ctx, count_item, &taken, &err) != 0);
	CHECK_HAS(str_of(err.msg), STR("channels/damaged/0.json"));
	CHECK_OK(inbox_each(b.ws, &b.ctx, count_item, &taken, &err), err);
	CHECK_INT(taken, 1);
}

static bool count_sent(void *arg, const struct outbox_item *item)
{
	CHECK_STR(item->text, STR("good"));
	++*(int *)arg;
	return true;
}

static bool count_started(void *arg, const struct followup *f)
{
	CHECK_STR(f->prompt, STR("go on"));
	++*(int *)arg;
	return true;
}

static void put_damaged(struct bench *b, const char *path)
{
	struct err err;

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, STR("{"),
			     (struct store_cond){0}, NULL, &err),
		 err);
}

TEST(a_damaged_file_of_the_outbox_or_of_a_follow_up_does_not_stop_the_others)
{
	struct outbox_item item = {.channel = STR("telegram"), .chat = STR("5"), .text = STR("good")};
	struct followup f;
	struct err err = {0};
	struct bench b;
	int sent = 0, started = 0;

	open_as(&b, "channel: {type: telegram}\n", "telegram:5:conv_2026");
	put_damaged(&b, "channels/outbox/0.json");
	CHECK_OK(outbox_put(b.ws, &b.ctx, &item, &err), err);
	CHECK(outbox_each(b.ws, &b.ctx, count_sent, &sent, &err) != 0);
	CHECK_HAS(str_of(err.msg), STR("channels/outbox/0.json was moved to channels/damaged/0.json"));
	CHECK_OK(outbox_each(b.ws, &b.ctx, count_sent, &sent, &err), err);
	CHECK_INT(sent, 1);
	put_damaged(&b, "channels/followups/0.json");
	CHECK_OK(followup_add(b.ws, &b.ctx, STR("telegram"), STR("5"), STR("go on"), 0, &f, &err), err);
	CHECK(followups_each(b.ws, &b.ctx, INT64_MAX - 1, count_started, &started, &err) != 0);
	CHECK_HAS(str_of(err.msg), STR("channels/followups/0.json was moved to channels/damaged/0.json"));
	CHECK_OK(followups_each(b.ws, &b.ctx, INT64_MAX - 1, count_started, &started, &err), err);
	CHECK_INT(started, 1);
}

/* --- the log of a group --- */

static void hear(struct bench *b, const char *chat, const char *id, const char *name, const char *text)
{
	struct chat_line line = {.channel = STR("telegram"),
				 .chat = str_of(chat),
				 .id = str_of(id),
				 .user = STR("7"),
				 .name = str_of(name),
				 .text = str_of(text),
				 .is_bot = str_is(str_of(name), "stead")};
	struct err err = {0};

	CHECK_OK(chat_log_add(b->ws, &b->ctx, &line, &err), err);
}

static const struct jv *history(struct bench *b, const char *args, size_t count)
{
	const struct jv *found = good(b, "browse_channel_history", args);

	CHECK_INT(jv_count(jv_get(found, "messages")), count);
	return found;
}

static struct str text_at(const struct jv *found, size_t i)
{
	return jv_get_str(jv_at(jv_get(found, "messages"), i), "text");
}

TEST(the_history_of_a_group_is_paged_and_filtered_and_a_message_is_shown_once)
{
	const struct jv *page;
	struct bench b;

	open_as(&b, "channel: {type: telegram}\n", "telegram:-5:conv_2026");
	hear(&b, "-5", "1", "Ann", "one");
	hear(&b, "-5", "2", "Bob", "the Plan");
	hear(&b, "-5", "2", "Bob", "the Plan"); /* the service delivered it twice */
	hear(&b, "-5", "", "stead", "an answer");
	hear(&b, "-5", "3", "Ann", "three");
	page = history(&b, "{'limit':2}", 2);
	CHECK_STR(text_at(page, 0), STR("the Plan"));
	CHECK_STR(text_at(page, 1), STR("three"));
	page = history(&b, arena_printf(b.arena, "{'before':'%.*s'}", STR_ARG(jv_get_str(page, "before"))).ptr, 1);
	CHECK_STR(text_at(page, 0), STR("one"));
	CHECK(!jv_get(page, "before"));
	CHECK_STR(text_at(history(&b, "{'keyword':'plan'}", 1), 0), STR("the Plan"));
	history(&b, "{'user':'ann'}", 2);
	history(&b, "{'user':'7'}", 3);
	history(&b, "{'include_bots':true}", 4);
	refused(&b, "browse_channel_history", "{'before':'yesterday'}", ERR_INVALID);
}

TEST(a_chat_shows_no_other_chats_history)
{
	struct bench b;

	open_as(&b, "channel: {type: telegram}\n", "telegram:-5:conv_2026");
	hear(&b, "-6", "1", "Ann", "secret");
	refused(&b, "browse_channel_history", "{'channel':'telegram:-6'}", ERR_DENIED);
	refused(&b, "browse_channel_history", "{}", ERR_NOT_FOUND);
	bench_reopen(&b, (struct workspace_opts){.session = STR("daily-20260301")}, "native");
	history(&b, "{'channel':'telegram:-6'}", 1);
	CHECK_HAS(refused(&b, "browse_channel_history", "{'channel':'telegram:-9'}", ERR_NOT_FOUND),
		  STR("telegram:-6"));
}

TEST(the_log_of_a_chat_ends_after_its_retention_and_can_be_switched_off)
{
	struct err err = {0};
	struct bench b;

	open_as(&b, "channel: {type: telegram, channel_log: {retention_days: 2}}\n", "telegram:-5:conv_2026");
	hear(&b, "-5", "1", "Ann", "one");
	CHECK_OK(chat_log_cut(b.ws, &b.ctx, clock_real_ns() + 86400 * NS_PER_S, &err), err);
	history(&b, "{}", 1);
	CHECK_OK(chat_log_cut(b.ws, &b.ctx, clock_real_ns() + 3 * 86400 * NS_PER_S, &err), err);
	refused(&b, "browse_channel_history", "{}", ERR_NOT_FOUND);
	open_as(&b, "channel: {type: telegram, channel_log: {enabled: false}}\n", "telegram:-5:conv_2026");
	hear(&b, "-5", "1", "Ann", "one");
	refused(&b, "browse_channel_history", "{}", ERR_NOT_FOUND);
}
