/* SPDX-License-Identifier: Apache-2.0 */
/* send_message, send_file and request_followup: the agent speaks to the chat that it is in while it works, or asks for
 * another turn there. It can reach no other chat, and browse_channel_history shows it no other one: what one group
 * says is not for the people of another. */
#include "base/limits.h"
#include "home/channels/chat_log.h"
#include "home/channels/followups.h"
#include "home/channels/outbox.h"
#include "tool/call.h"
#include "tool/family.h"

static bool has_channels(struct workspace *ws)
{
	return channels_has(ws, STR_NONE);
}

/* Where this session's words go. */
static int find_chat(struct call *call, struct outbox_item *item, struct err *err)
{
	struct str session = call->ctx->actor.session;

	if (!channels_chat_of(session, &item->channel, &item->chat) || !channels_has(call->ws, item->channel))
		return err_set(
			err, ERR_UNSUPPORTED,
			"the session \"%.*s\" is not a channel's chat; put what you want to say into your answer",
			STR_ARG(utf8_first(session, 80)));
	return 0;
}

static struct jv *accepted(struct call *call, const struct outbox_item *item)
{
	struct jv *v = jv_object(call->ctx->arena);

	jv_set_str(call->ctx->arena, v, "channel", item->channel);
	jv_set_str(call->ctx->arena, v, "chat", item->chat);
	return v;
}

static int tool_send_message(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct outbox_item item = {.text = str_trim(jv_get_str(args, "content"))};
	int r = find_chat(call, &item, err);

	if (r == 0 && !item.text.len)
		r = err_set(err, ERR_INVALID, "\"content\" is empty; give the text to send");
	if (r == 0)
		r = outbox_put(call->ws, call->ctx, &item, err);
	if (r == 0)
		ret->value = accepted(call, &item);
	return r;
}

static int tool_send_file(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct outbox_item item = {.text = jv_get_str(args, "caption"), .file_name = jv_get_str(args, "filename")};
	struct wpath path, home;
	struct store_stat stat;
	int r = find_chat(call, &item, err);

	if (r == 0)
		r = arg_file(call, args, "file_path", &path, err);
	if (r == 0)
		r = store_stat(call->files, call->ctx, path, &stat, err);
	if (r)
		return r;
	if (stat.kind != STORE_FILE || stat.size > CHANNEL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "" ERR_PATH " is not a file of at most %zu MiB; send a smaller one",
			       STR_ARG(path.s), CHANNEL_FILE_MAX / MIB);
	r = wpath_join(call->ctx->arena, workspace_root(call->ws), path, &home, err);
	if (r)
		return r;
	item.file = home.s;
	if (!item.file_name.len)
		item.file_name = wpath_name(path);
	r = outbox_put(call->ws, call->ctx, &item, err);
	if (r == 0)
		ret->value = accepted(call, &item);
	return r;
}

static void render_accepted(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "accepted for %.*s:%.*s; it is sent at once if the channel is open",
		   STR_ARG(jv_get_str(value, "channel")), STR_ARG(jv_get_str(value, "chat")));
}

static int tool_request_followup(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str prompt = str_trim(jv_get_str(args, "prompt"));
	int64_t delay = jv_get_int(args, "delay_seconds", 0);
	struct outbox_item chat = {0};
	struct followup followup;
	int r = find_chat(call, &chat, err);

	if (r == 0 && !prompt.len)
		r = err_set(err, ERR_INVALID, "\"prompt\" is empty; say what you should do then");
	if (r == 0)
		r = followup_add(call->ws, call->ctx, chat.channel, chat.chat, prompt, delay, &followup, err);
	if (r)
		return r;
	ret->value = accepted(call, &chat);
	jv_set_int(call->ctx->arena, ret->value, "depth", followup.depth);
	return 0;
}

static void render_followup(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "follow-up %lld of at most %d is planned; you get it as a message after this turn",
		   (long long)jv_get_int(value, "depth", 1), FOLLOWUP_DEPTH_MAX);
}

/* The chat whose log is read: the session's own. Only a session that is not a chat, such as one of a schedule, may name
   one. */
static int find_log(struct call *call, struct str wanted, struct chat_query *query, struct err *err)
{
	struct str channel, chat, rest = wanted, first = STR_NONE, session = call->ctx->actor.session;

	if (!session.len) /* a tool that only reads is called without an actor */
		session = workspace_actor(call->ws).session;
	if (channels_chat_of(session, &channel, &chat)) {
		struct str own = arena_printf(call->ctx->arena, "%.*s:%.*s", STR_ARG(channel), STR_ARG(chat));

		if (wanted.len && !str_eq(wanted, own) && !str_eq(wanted, chat))
			return err_set(err, ERR_DENIED,
				       "from this chat, only its own history can be read; leave out \"channel\"");
		query->channel = channel;
		query->chat = chat;
		return 0;
	}
	if (str_find_char(wanted, ':') < wanted.len)
		str_cut(&rest, ':', &first);
	query->channel = first;
	query->chat = rest;
	return 0;
}

static int tool_browse(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct chat_query query = {.limit = (uint64_t)jv_get_int(args, "limit", 50),
				   .before = jv_get_str(args, "before"),
				   .keyword = jv_get_str(args, "keyword"),
				   .user = jv_get_str(args, "user"),
				   .has_bots = jv_get_bool(args, "include_bots", false)};
	int r = find_log(call, jv_get_str(args, "channel"), &query, err);

	return r ? r : chat_log_read(call->ws, call->ctx, &query, &ret->value, err);
}

static void render_browse(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str before = jv_get_str(value, "before");

	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "messages")); m; m = m->next) {
		struct str file = jv_get_str(m->value, "file");

		buf_printf(text, "[%.*s] %.*s: %.*s", STR_ARG(str_first(jv_get_str(m->value, "at"), 16)),
			   STR_ARG(jv_get_str(m->value, "name")), STR_ARG(jv_get_str(m->value, "text")));
		if (file.len)
			buf_printf(text, " (file: %.*s)", STR_ARG(file));
		buf_char(text, '\n');
	}
	if (!jv_count(jv_get(value, "messages")))
		buf_lit(text, "no messages\n");
	if (before.len)
		buf_printf(text, "there are older ones: before=\"%.*s\"\n", STR_ARG(before));
}

#define SETUP "set channel in agent.yaml"

/* clang-format off */
static const struct tool tools[] = {
	{.name = "send_message", .title = "Send a message", .traits = TOOL_OPEN_WORLD, .call = tool_send_message,
	 .render = render_accepted, .available = has_channels, .setup = SETUP,
	 .description = "Sends a message to the person of this chat while you work. Your last answer is sent anyway.",
	 .args = "content!: Markdown",
	 .result = "channel!: its name\n" "chat!: where it goes"},
	{.name = "send_file", .title = "Send a file", .traits = TOOL_OPEN_WORLD, .call = tool_send_file,
	 .render = render_accepted, .available = has_channels, .setup = SETUP, .needs = "read_file",
	 .description = "Sends a file to the person of this chat.",
	 .args =
		"file_path!: path from the tool root\n"
		"caption: text that goes with it\n"
		"filename: what the person sees as its name (default: its own)",
	 .result = "channel!: its name\n" "chat!: where it goes"},
	{.name = "request_followup", .title = "Ask for another turn", .call = tool_request_followup,
	 .render = render_followup, .available = has_channels, .setup = SETUP,
	 .description =
		"Gives you another turn in this chat after this one. One can wait, and 5 can follow each other.",
	 .args =
		"prompt! str>=1: what you should do then\n"
		"delay_seconds int>=0<=86400: how long to wait (default 0)",
	 .result = "channel!: its name\n" "chat!: where it happens\n" "depth! int: how many in a row"},
	{.name = "browse_channel_history", .title = "Read what a group said", .traits = TOOL_READS_ONLY,
	 .call = tool_browse, .render = render_browse, .available = has_channels, .setup = SETUP,
	 .description = "Shows what was said in this group, also to others, the oldest first.",
	 .args =
		"channel: outside a chat: which one, as \"telegram:-100\"\n"
		"limit int>=1<=100: number of messages (default 50)\n"
		"before: from an earlier result: continue with older messages\n"
		"keyword: only messages with this text\n"
		"user: only of this name or number\n"
		"include_bots bool: with your own messages",
	 .result =
		"channel!: its name\n" "chat!: in it\n"
		"messages! [{at!; id; user_id; name!; text!; file; is_bot bool}]: 500 characters of each\n"
		"before: there are older ones"},
	{0},
};
/* clang-format on */

const struct family channels_family = {
	.name = "channels",
	.about = "Messages to the chat that a session belongs to. Offered if agent.yaml has a channel.",
	.tools = tools,
};
