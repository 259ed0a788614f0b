/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telegram. One thread asks for updates with a long poll and hands each one over, in order; with webhook_url it only
 * tells the service where to post them, and they come through the inbox. The number of the next
 * update is written to channels/<name>.json when those before it are safely in the queue, so a kill at any instant
 * delivers an update again or not at all, and the queue drops what it has seen.
 *
 * Sending is done by whoever has something to send. A piece that the service cannot parse is sent again as plain text,
 * a group that got another number is followed, and an edit that changes nothing is not an error.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "home/uploads/uploads.h"
#include "runner/channels/channel.h"
#include "runner/channels/telegram_api.h"
#include "runner/channels/telegram_text.h"
#include "runner/channels/telegram_update.h"

#define BASE_URL     "https://api.telegram.org"
#define POLL_SECONDS 25
#define AGAIN_MS     5000 /* after a poll that failed */
#define OFFSET_DAYS  6    /* for which the service surely keeps counting its updates */
#define TYPING_NS    (2 * NS_PER_S)
#define LINE_MAX     ((size_t)500) /* of a message that is kept for a mention */

/* Messages of a group that were not for the agent, until one is. */
struct chat {
	int64_t id;
	char **lines;
	size_t count;
	struct chat *next;
};

struct telegram {
	struct channel channel;
	struct workspace *ws;
	const struct jv *config;
	const struct channel_events *events;
	struct telegram_api *api;
	struct cancel stop;
	pthread_t thread;
	struct telegram_rules rules;
	char me_name[64];
	int64_t offset;
	int64_t moved;        /* second in which the offset was last moved; 0: not known */
	atomic_bool is_ready; /* the rules are set */
	size_t context_max;
	struct chat *chats;
	size_t chat_count;
	int64_t away[TELEGRAM_AWAY_MAX]; /* senders that were turned away and reported */
	size_t away_count;
};

static struct telegram *as_telegram(struct channel *channel)
{
	return (struct telegram *)channel;
}

static void problem(struct telegram *t, struct str text)
{
	t->events->problem(t->events->arg, &t->channel, text);
}

/* --- state --- */

static struct wpath state_path(struct telegram *t, struct arena *arena)
{
	return (struct wpath){arena_printf(arena, "channels/%.*s.json", STR_ARG(t->channel.name))};
}

static int read_state(struct telegram *t, struct ctx *ctx, struct err *err)
{
	struct str bytes;
	struct jv *state;
	int r = store_read(workspace_home(t->ws), ctx, state_path(t, ctx->arena), STORE_WHOLE, 64 * KIB, &bytes, NULL,
			   err);

	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 && jv_parse(ctx->arena, bytes, &state, err) != 0)
		return err_prefix(err, "%.*s", STR_ARG(state_path(t, ctx->arena).s));
	if (r == 0) {
		int64_t ns = 0;

		t->offset = jv_get_int(state, "offset", 0);
		t->moved = clock_parse(jv_get_str(state, "at"), &ns) ? ns / NS_PER_S : 0;
	}
	return r;
}

static int write_state(struct telegram *t, struct ctx *ctx, struct err *err)
{
	struct str at = clock_format_seconds(ctx->arena, t->moved);
	struct str text =
		arena_printf(ctx->arena, "{\"offset\":%lld,\"at\":\"%.*s\"}\n", (long long)t->offset, STR_ARG(at));

	return store_write(workspace_home(t->ws), ctx, state_path(t, ctx->arena), text, (struct store_cond){0}, NULL,
			   err);
}

/* --- what was said before --- */

static struct chat *chat_of(struct telegram *t, int64_t id)
{
	struct chat *c;

	for (c = t->chats; c; c = c->next)
		if (c->id == id)
			return c;
	if (t->chat_count == CHANNEL_CHATS_MAX || !t->context_max)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->id = id;
	c->lines = xcalloc(t->context_max, sizeof(*c->lines));
	c->next = t->chats;
	t->chats = c;
	t->chat_count++;
	return c;
}

static void remember(struct telegram *t, struct arena *arena, const struct telegram_update *u)
{
	struct chat *c = chat_of(t, u->chat);
	char **place;

	if (!c || !u->text.len)
		return;
	place = &c->lines[c->count++ % t->context_max];
	free(*place);
	*place = xstrndup(
		arena_printf(arena, "%.*s: %.*s", STR_ARG(u->sender_name), STR_ARG(utf8_first(u->text, LINE_MAX))));
}

/* The lines kept for the chat, which are then forgotten. */
static void recall(struct telegram *t, const struct telegram_update *u, struct buf *text)
{
	struct chat *c = chat_of(t, u->chat);
	size_t kept = c && c->count < t->context_max ? c->count : t->context_max;

	if (!c || !c->count)
		return;
	buf_lit(text, "[said in this group before:]\n");
	for (size_t i = 0; i < kept; i++)
		buf_printf(text, "%s\n", c->lines[(c->count - kept + i) % t->context_max]);
	buf_lit(text, "[now:]\n");
	c->count = 0;
}

/* --- receiving --- */

/* The file becomes an upload; what goes wrong is a line of the message. */
static void save_file(struct telegram *t, struct ctx *ctx, const struct telegram_update *u, struct buf *text)
{
	struct upload upload = {.name = u->file_name, .mime = u->file_type};
	struct err err = {0};

	if (telegram_get_file(t->api, ctx, u->file, &upload.source.bytes, &err) != 0) {
		buf_printf(text, "[a file was sent but could not be stored: %.*s]\n",
			   STR_ARG(err_text(ctx->arena, &err)));
		return;
	}
	upload.size = upload.source.bytes.len;
	channel_keep_file(t->ws, ctx, &upload, text);
}

static struct jv *origin_of(struct arena *arena, const struct telegram_update *u)
{
	struct jv *origin = jv_object(arena);

	jv_set_int(arena, origin, "chat", u->chat);
	if (u->thread)
		jv_set_int(arena, origin, "thread", u->thread);
	if (u->is_group && u->message)
		jv_set_int(arena, origin, "message", u->message);
	return origin;
}

static struct str chat_name(struct arena *arena, const struct telegram_update *u)
{
	return u->thread ? arena_printf(arena, "%lld:%lld", (long long)u->chat, (long long)u->thread)
			 : arena_printf(arena, "%lld", (long long)u->chat);
}

static void hear(struct telegram *t, struct ctx *ctx, const struct telegram_update *u)
{
	struct arena *arena = ctx->arena;
	struct channel_heard heard = {.chat = chat_name(arena, u),
				      .id = arena_printf(arena, "%lld", (long long)u->message),
				      .sender = arena_printf(arena, "%lld", (long long)u->sender),
				      .name = u->sender_name,
				      .text = u->text,
				      .file = u->file.len ? u->file_name : STR_NONE};

	if (u->is_group && !u->callback.len && !u->command.len)
		t->events->heard(t->events->arg, &t->channel, ctx, &heard);
}

static int deliver(struct telegram *t, struct ctx *ctx, const struct telegram_update *u, struct err *err)
{
	struct channel_message m = {
		.id = arena_printf(ctx->arena, "%lld", (long long)u->update),
		.chat = chat_name(ctx->arena, u),
		.sender = u->sender_name,
		.command = u->command,
		.command_args = u->command_args,
		.is_group = u->is_group,
		.origin = origin_of(ctx->arena, u),
	};
	struct buf text;

	buf_init(&text, ctx->arena, 4 * MIB);
	if (u->is_group && !u->command.len)
		recall(t, u, &text);
	if (u->file.len)
		save_file(t, ctx, u, &text);
	if (u->is_group)
		buf_printf(&text, "%.*s: ", STR_ARG(u->sender_name));
	buf_add(&text, u->text);
	m.text = buf_str(&text);
	return t->events->receive(t->events->arg, &t->channel, ctx, &m, err);
}

static void turn_away(struct telegram *t, struct arena *arena, const struct telegram_update *u)
{
	int64_t who = u->is_group ? u->chat : u->sender;

	if (u->is_bot || (u->is_group && !u->is_for_me))
		return;
	for (size_t i = 0; i < COUNT(t->away); i++)
		if (t->away[i] == who)
			return;
	t->away[t->away_count++ % COUNT(t->away)] = who;
	problem(t, arena_printf(arena, "a message from %.*s was not admitted; to admit them, add %lld to %s",
				STR_ARG(u->sender_name), (long long)who,
				u->is_group ? "allowed_groups" : "allowed_users"));
}

static void answer_press(struct telegram *t, struct ctx *ctx, const struct telegram_update *u)
{
	struct jv *params = jv_object(ctx->arena);
	struct err ignored;

	jv_set_str(ctx->arena, params, "callback_query_id", u->callback);
	telegram_call(t->api, ctx, "answerCallbackQuery", params, NULL, NULL, &ignored);
}

static int take_update(struct telegram *t, struct ctx *ctx, const struct jv *update, struct err *err)
{
	struct telegram_update u;

	if (!telegram_update_read(ctx->arena, &t->rules, update, &u))
		return 0;
	if (u.callback.len)
		answer_press(t, ctx, &u);
	if (!u.is_admitted) {
		turn_away(t, ctx->arena, &u);
		return 0;
	}
	if (u.moved_to) {
		problem(t, arena_printf(ctx->arena, "the group %lld has become %lld; change allowed_groups",
					(long long)u.chat, (long long)u.moved_to));
		return 0;
	}
	hear(t, ctx, &u);
	if (!u.is_for_me && jv_get_bool(t->config, "mention_required", false)) {
		remember(t, ctx->arena, &u);
		return 0;
	}
	return deliver(t, ctx, &u, err);
}

static int take_updates(struct telegram *t, struct ctx *ctx, const struct jv *updates, struct err *err)
{
	int r = 0;

	for (const struct jv_member *m = jv_first(updates); r == 0 && m; m = m->next) {
		int64_t id = jv_get_int(m->value, "update_id", 0);

		r = take_update(t, ctx, m->value, err);
		if (r == 0 && id >= t->offset)
			t->offset = id + 1;
	}
	if (jv_count(updates)) {
		struct err other;
		int w;

		t->moved = clock_real_ns() / NS_PER_S;
		w = write_state(t, ctx, &other);

		if (r == 0 && w) {
			*err = other;
			r = w;
		}
	}
	return r;
}

/* --- the thread --- */

/* The address of this server that the service posts to; empty: updates are polled. */
static struct str posts_to(const struct telegram *t)
{
	return jv_get_str(t->config, "webhook_url");
}

/* A webhook that was set before would keep updates from a poll, so it is removed; NULL: that needs no parameters. */
static struct jv *webhook_params(const struct telegram *t, struct arena *arena)
{
	struct jv *params = jv_object(arena), *kinds = jv_array(arena);
	struct str base = posts_to(t);

	if (!base.len)
		return NULL;
	jv_push(arena, kinds, jv_str(arena, STR("message")));
	jv_push(arena, kinds, jv_str(arena, STR("callback_query")));
	jv_set_str(arena, params, "url",
		   arena_printf(arena, "%.*s/hooks/%.*s/%.*s", STR_ARG(base), STR_ARG(workspace_name(t->ws)),
				STR_ARG(t->channel.name)));
	jv_set_str(arena, params, "secret_token", jv_get_str(t->config, "webhook_secret"));
	jv_set(arena, params, "allowed_updates", kinds);
	return params;
}

static int get_me(struct telegram *t, struct ctx *ctx, struct err *err)
{
	struct jv *me = NULL;
	int r = telegram_call(t->api, ctx, "getMe", NULL, &me, NULL, err);

	if (r == 0)
		r = telegram_call(t->api, ctx, posts_to(t).len ? "setWebhook" : "deleteWebhook",
				  webhook_params(t, ctx->arena), NULL, NULL, err);
	if (r)
		return r;
	snprintf(t->me_name, sizeof(t->me_name), "%.*s", STR_ARG(utf8_first(jv_get_str(me, "username"), 60)));
	t->rules = (struct telegram_rules){
		.me = jv_get_int(me, "id", 0), .me_name = str_of(t->me_name), .config = t->config};
	return 0;
}

/* After a week without updates the service may begin to count again at any number, also a lower one, and an offset
   would drop what it has. It keeps nothing for so long, so no update is taken twice. */
static void forget_old_offset(struct telegram *t)
{
	if (t->moved && clock_real_ns() / NS_PER_S - t->moved > OFFSET_DAYS * 86400)
		t->offset = 0;
}

static int poll_once(struct telegram *t, struct ctx *ctx, struct err *err)
{
	struct jv *params = jv_object(ctx->arena), *kinds = jv_array(ctx->arena), *updates = NULL;
	int r;

	forget_old_offset(t);
	jv_push(ctx->arena, kinds, jv_str(ctx->arena, STR("message")));
	jv_push(ctx->arena, kinds, jv_str(ctx->arena, STR("callback_query")));
	jv_set_int(ctx->arena, params, "offset", t->offset);
	jv_set_int(ctx->arena, params, "timeout", POLL_SECONDS);
	jv_set(ctx->arena, params, "allowed_updates", kinds);
	r = telegram_call(t->api, ctx, "getUpdates", params, &updates, NULL, err);
	return r ? r : take_updates(t, ctx, updates, err);
}

static void *listen(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct telegram *t = arg;
	struct ctx ctx = {.arena = arena, .cancel = &t->stop, .actor = workspace_actor(t->ws)};
	struct err err = {0}, waiting;
	uint64_t told = 0; /* hash of the problem that was reported last: the same one is reported once */
	int r = read_state(t, &ctx, &err);

	while (!atomic_load(&t->stop.requested)) {
		if (r == 0)
			r = atomic_load(&t->is_ready) ? poll_once(t, &ctx, &err) : get_me(t, &ctx, &err);
		if (r == 0) {
			atomic_store(&t->is_ready, true);
			told = 0;
		}
		if (r == 0 && posts_to(t).len)
			break; /* from now on they are posted */
		if (r && !atomic_load(&t->stop.requested)) {
			if (hash_u64(err_text(arena, &err), 0) != told)
				problem(t, err_text(arena, &err));
			told = hash_u64(err_text(arena, &err), 0);
			if (r == -ERR_UNAUTHENTICATED)
				break; /* it will not get better by itself */
			channel_pause(&ctx, AGAIN_MS, &waiting);
		}
		r = 0;
		arena_reset(arena);
	}
	return NULL;
}

/* An update that the service posted. Those before the offset were taken before. */
static int telegram_take(struct channel *channel, struct ctx *ctx, struct str id, const struct jv *body,
			 struct err *err)
{
	struct telegram *t = as_telegram(channel);
	struct jv *updates = jv_array(ctx->arena);

	(void)id;
	if (!atomic_load(&t->is_ready))
		return err_set(err, ERR_UNAVAILABLE, "the channel does not know its own name yet");
	jv_push(ctx->arena, updates, (struct jv *)body);
	return take_updates(t, ctx, updates, err);
}

int telegram_check(const struct jv *config, struct arena *arena, const struct channel_post *post,
		   struct channel_receipt *ret, struct err *err)
{
	const struct jv *secret = jv_get(config, "webhook_secret");
	struct jv *update = NULL;
	struct err ignored;

	if (!jv_get_str(config, "webhook_url").len || !secret || !secret->from_env)
		return err_set(err, ERR_NOT_FOUND, "this channel polls and accepts no posts");
	if (!channel_secret_is(post->header(post->arg, "X-Telegram-Bot-Api-Secret-Token"), jv_str_of(secret)))
		return err_set(err, ERR_UNAUTHENTICATED, "the secret of the request is wrong");
	if (jv_parse(arena, post->body, &update, &ignored) != 0 || !jv_get_int(update, "update_id", 0))
		return err_set(err, ERR_INVALID, "the body is not an update of Telegram");
	/* the service posts an update again for a day */
	*ret = (struct channel_receipt){
		.id = arena_printf(arena, "%lld", (long long)jv_get_int(update, "update_id", 0)),
		.until = post->now + 86400};
	return 0;
}

/* --- sending --- */

static struct jv *params_to(struct arena *arena, const struct jv *origin)
{
	struct jv *params = jv_object(arena);

	jv_set_int(arena, params, "chat_id", jv_get_int(origin, "chat", 0));
	if (jv_get(origin, "thread"))
		jv_set_int(arena, params, "message_thread_id", jv_get_int(origin, "thread", 0));
	return params;
}

static void set_text(struct arena *arena, struct jv *params, struct str piece)
{
	struct buf html;

	buf_init(&html, arena, 256 * KIB);
	telegram_html(&html, piece);
	jv_set_str(arena, params, "text", buf_str(&html));
	jv_set_str(arena, params, "parse_mode", STR("HTML"));
}

/* Sends or edits; as plain text when the service does not take the markup. */
static int post(struct telegram *t, struct ctx *ctx, const char *method, struct jv *params, struct str piece,
		struct jv **ret, struct err *err)
{
	struct telegram_failure f = {0};
	int r;

	set_text(ctx->arena, params, piece);
	r = telegram_call(t->api, ctx, method, params, ret, &f, err);
	if (r && f.migrate_to) {
		jv_set_int(ctx->arena, params, "chat_id", f.migrate_to);
		r = telegram_call(t->api, ctx, method, params, ret, &f, err);
	}
	if (r && f.code == 400 && str_find(f.text, STR("parse entities"), 0) != SIZE_MAX) {
		jv_remove(params, "parse_mode");
		jv_set_str(ctx->arena, params, "text", piece);
		r = telegram_call(t->api, ctx, method, params, ret, &f, err);
	}
	if (r && f.code == 400 && str_find(f.text, STR("not modified"), 0) != SIZE_MAX)
		return 0;
	return r;
}

static struct jv *keyboard(struct arena *arena, const struct channel_button *buttons)
{
	struct jv *markup = jv_object(arena), *rows = jv_array(arena), *row = jv_array(arena);

	for (; buttons->label; buttons++) {
		struct jv *button = jv_object(arena);

		jv_set_str(arena, button, "text", str_of(buttons->label));
		jv_set_str(arena, button, "callback_data",
			   arena_printf(arena, "/%s %s", buttons->command, buttons->args));
		jv_push(arena, row, button);
	}
	jv_push(arena, rows, row);
	jv_set(arena, markup, "inline_keyboard", rows);
	return markup;
}

/* The rest of a text, after the first piece. */
static int send_pieces(struct telegram *t, struct ctx *ctx, const struct jv *origin, struct str rest, struct err *err)
{
	struct jv *ignored = NULL;
	struct str piece;
	int r = 0;

	while (r == 0 && telegram_cut(ctx->arena, &rest, TELEGRAM_TEXT_MAX, &piece))
		r = post(t, ctx, "sendMessage", params_to(ctx->arena, origin), piece, &ignored, err);
	return r;
}

static int telegram_send(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str markdown,
			 const struct channel_button *buttons, struct jv **ret_message, struct err *err)
{
	struct telegram *t = as_telegram(channel);
	struct jv *params = params_to(ctx->arena, origin), *sent = NULL, *reply;
	struct str rest = markdown, piece;
	int r;

	if (!telegram_cut(ctx->arena, &rest, TELEGRAM_TEXT_MAX, &piece))
		return err_set(err, ERR_INVALID, "there is nothing to send");
	if (jv_get(origin, "message")) {
		reply = jv_object(ctx->arena);
		jv_set_int(ctx->arena, reply, "message_id", jv_get_int(origin, "message", 0));
		jv_set_bool(ctx->arena, reply, "allow_sending_without_reply", true);
		jv_set(ctx->arena, params, "reply_parameters", reply);
	}
	if (buttons)
		jv_set(ctx->arena, params, "reply_markup", keyboard(ctx->arena, buttons));
	r = post(t, ctx, "sendMessage", params, piece, &sent, err);
	if (r || !ret_message)
		return r ? r : send_pieces(t, ctx, origin, rest, err);
	*ret_message = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret_message, "message", jv_get_int(sent, "message_id", 0));
	return 0;
}

static int telegram_edit(struct channel *channel, struct ctx *ctx, const struct jv *origin, const struct jv *message,
			 struct str markdown, bool is_last, struct err *err)
{
	struct telegram *t = as_telegram(channel);
	struct jv *params = params_to(ctx->arena, origin), *ignored = NULL;
	struct str rest = markdown, piece;
	int r;

	if (!telegram_cut(ctx->arena, &rest, TELEGRAM_TEXT_MAX, &piece))
		return 0;
	jv_set_int(ctx->arena, params, "message_id", jv_get_int(message, "message", 0));
	r = post(t, ctx, "editMessageText", params, piece, &ignored, err);
	return r || !is_last ? r : send_pieces(t, ctx, origin, rest, err);
}

static int telegram_file(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str name,
			 struct str bytes, struct str caption, struct err *err)
{
	struct jv *params = params_to(ctx->arena, origin), *ignored = NULL;

	if (caption.len)
		jv_set_str(ctx->arena, params, "caption", utf8_points(caption, 1000));
	return telegram_send_file(as_telegram(channel)->api, ctx, params, name, bytes, &ignored, NULL, err);
}

static void telegram_typing(struct channel *channel, struct ctx *ctx, const struct jv *origin)
{
	struct jv *params = params_to(ctx->arena, origin);
	struct ctx own = *ctx;
	struct err ignored;

	own.deadline_ns = clock_monotonic_ns() + TYPING_NS;
	jv_set_str(ctx->arena, params, "action", STR("typing"));
	telegram_call(as_telegram(channel)->api, &own, "sendChatAction", params, NULL, NULL, &ignored);
}

/* --- opening and closing --- */

static void telegram_free(struct telegram *t)
{
	while (t->chats) {
		struct chat *c = t->chats;

		t->chats = c->next;
		for (size_t i = 0; i < t->context_max; i++)
			free(c->lines[i]);
		free(c->lines);
		free(c);
	}
	telegram_api_destroy(t->api);
	free(t);
}

static void telegram_close(struct channel *channel)
{
	struct telegram *t = as_telegram(channel);

	atomic_store(&t->stop.requested, true);
	pthread_join(t->thread, NULL);
	telegram_free(t);
}

static const struct channel_ops telegram_ops = {
	.type = "telegram",
	.send = telegram_send,
	.edit = telegram_edit,
	.send_file = telegram_file,
	.typing = telegram_typing,
	.take = telegram_take,
	.close = telegram_close,
};

/* As setWebhook takes it. */
static bool is_secret_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = ascii_lower((unsigned char)text.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-')
			return false;
	}
	return text.len >= 16 && text.len <= 256;
}

/* People and groups are known by number. */
static int check_ids(const struct jv *list, struct err *err)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		int64_t n;

		if (m->value->type == JV_STR && !str_to_i64(m->value->u.s, &n))
			return err_set(err, ERR_INVALID, "\"%.*s\" is not the number of a Telegram user or group",
				       STR_ARG(utf8_first(m->value->u.s, 60)));
		if (m->value->type != JV_STR && m->value->type != JV_INT)
			return err_set(err, ERR_INVALID,
				       "allowed_users or allowed_groups has a number that is too large for Telegram");
	}
	return 0;
}

int telegram_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		  struct channel **ret, struct err *err)
{
	const struct jv *token = jv_get(config, "token"), *secret = jv_get(config, "webhook_secret");
	struct str base = jv_get_str(config, "base_url");
	struct telegram *t;
	int sys;

	if (check_ids(jv_get(config, "allowed_users"), err) || check_ids(jv_get(config, "allowed_groups"), err))
		return -(int)err->kind;
	if (!jv_str_of(token).len || !token->from_env)
		return err_set(err, ERR_INVALID,
			       "the channel \"%.*s\" has no token from .env; write token: ${TELEGRAM_BOT_TOKEN} and "
			       "set TELEGRAM_BOT_TOKEN there",
			       STR_ARG(channel_config_name(config)));
	if (jv_get_str(config, "webhook_url").len &&
	    (!secret || !secret->from_env || !is_secret_token(jv_str_of(secret))))
		return err_set(err, ERR_INVALID,
			       "the channel \"%.*s\" has a webhook_url and no webhook_secret from .env; write "
			       "webhook_secret: ${TELEGRAM_WEBHOOK_SECRET} and set it there to 16 to 256 letters, "
			       "digits, '_' and '-'",
			       STR_ARG(channel_config_name(config)));
	t = xcalloc(1, sizeof(*t));
	t->channel = (struct channel){.ops = &telegram_ops, .name = channel_config_name(config)};
	t->ws = ws;
	t->config = config;
	t->events = events;
	t->context_max = (size_t)jv_get_int(config, "context_messages", 25);
	t->api = telegram_api_new(base.len ? base : STR(BASE_URL), jv_str_of(token));
	sys = pthread_create(&t->thread, NULL, listen, t);
	if (sys) {
		telegram_free(t);
		return err_sys(err, sys, "the channel cannot be started");
	}
	*ret = &t->channel;
	return 0;
}
