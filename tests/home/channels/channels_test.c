/* SPDX-License-Identifier: Apache-2.0 */
/* send_message and send_file put into the outbox what the session's own chat is to get, and nothing else. */
#include "tool/tool_fix.h"

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
