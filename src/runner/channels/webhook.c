/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel for any program that can send and receive HTTP requests. Both directions are signed in the same way, that
 * of Standard Webhooks (standardwebhooks.com): the headers webhook-id, webhook-timestamp and webhook-signature, which
 * is "v1," and the Base64 of HMAC-SHA256 over "id.timestamp.body". A scheme of our own would need a library of our own
 * in every language; for this one they exist.
 *
 * What arrives was checked by the HTTP server (webhook_check) and waits in the inbox. What leaves has an id that is the
 * same in each attempt, so it is tried again whatever happened to the attempt before: the receiver drops doubles.
 */
#include <stdlib.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "home/uploads/uploads.h"
#include "net/digest.h"
#include "net/http.h"
#include "runner/channels/channel.h"

#define ATTEMPTS_MAX   6
#define WAIT_MAX_S     120 /* a longer wait is an error */
#define BACKOFF_MAX_MS 30000
#define ID_MAX         ((size_t)256)
#define NAME_MAX_LEN   ((size_t)100) /* of a chat or a sender */
#define SECRET_MIN     ((size_t)24)

struct webhook {
	struct channel channel;
	struct workspace *ws;
	const struct jv *config;
	const struct channel_events *events;
	struct http *http;
	struct str url;
	struct arena *arena; /* of the key */
	struct str key;
};

static struct webhook *as_webhook(struct channel *channel)
{
	return (struct webhook *)channel;
}

/* --- signatures --- */

static int read_key(struct arena *arena, const struct jv *config, struct str *ret, struct err *err)
{
	const struct jv *secret = jv_get(config, "secret");
	struct str text = jv_str_of(secret);
	bool is_coded = str_starts(text, STR("whsec_"));

	if (!text.len || !secret->from_env)
		return err_set(err, ERR_INVALID,
			       "the channel \"%.*s\" has no secret from .env; write secret: ${WEBHOOK_SECRET} and set "
			       "WEBHOOK_SECRET there",
			       STR_ARG(channel_config_name(config)));
	*ret = text;
	if ((is_coded && !base64_decode(arena, str_from(text, 6), ret)) || ret->len < SECRET_MIN)
		return err_set(err, ERR_INVALID,
			       "the secret of the channel \"%.*s\" must have at least %zu bytes; write \"whsec_\" "
			       "followed by their Base64, as 'openssl rand -base64 32' prints it",
			       STR_ARG(channel_config_name(config)), SECRET_MIN);
	return 0;
}

static struct str sign(struct arena *arena, struct str key, struct str id, struct str time, struct str body)
{
	uint8_t mac[SHA256_LEN];
	struct buf text;

	buf_init(&text, arena, id.len + time.len + body.len + 2);
	buf_printf(&text, "%.*s.%.*s.", STR_ARG(id), STR_ARG(time));
	buf_add(&text, body);
	digest_hmac_sha256(key, buf_str(&text), mac);
	return base64_encode(arena, str_n(mac, sizeof(mac)));
}

/* Takes as long whatever differs. */
static bool is_same(struct str a, struct str b)
{
	unsigned char other = a.len != b.len;

	for (size_t i = 0; i < a.len && i < b.len; i++)
		other |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
	return other == 0;
}

bool channel_secret_is(struct str given, struct str secret)
{
	return secret.len && is_same(given, secret);
}

int webhook_check(const struct jv *config, struct arena *arena, const struct channel_post *post,
		  struct channel_receipt *ret, struct err *err)
{
	struct str id = post->header(post->arg, "webhook-id"), time = post->header(post->arg, "webhook-timestamp");
	struct str rest = post->header(post->arg, "webhook-signature"), one, key, wanted;
	bool is_signed = false;
	int64_t at = 0;
	int r = read_key(arena, config, &key, err);

	if (r)
		return r;
	if (!id.len || id.len > ID_MAX || !utf8_valid(id) || !str_to_i64(time, &at) || !rest.len || rest.len > KIB)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the request has no valid webhook-id, webhook-timestamp and webhook-signature");
	wanted = sign(arena, key, id, time, post->body);
	while (str_cut(&rest, ' ', &one))
		if (str_starts(one, STR("v1,")))
			is_signed |= is_same(str_from(one, 3), wanted);
	if (!is_signed)
		return err_set(err, ERR_UNAUTHENTICATED, "the signature of the request is wrong");
	if (at < post->now - CHANNEL_REPLAY_S || at > post->now + CHANNEL_REPLAY_S)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the webhook-timestamp differs by more than %d seconds from this server's clock; sign "
			       "the request again",
			       CHANNEL_REPLAY_S);
	*ret = (struct channel_receipt){.id = id, .until = at + CHANNEL_REPLAY_S};
	return 0;
}

/* --- what arrives --- */

/* A name as it may be part of a session's: "room-1", "ann@example.org". */
static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (i == 0 || !strchr("-_.@+", c)))
			return false;
	}
	return name.len && name.len <= NAME_MAX_LEN;
}

/* A string, or a number as text. */
static struct str name_of(struct arena *arena, const struct jv *v)
{
	return v && v->type == JV_INT ? arena_printf(arena, "%lld", (long long)v->u.i) : jv_str_of(v);
}

static bool lists(struct arena *arena, const struct jv *list, struct str name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(name_of(arena, m->value), name))
			return true;
	return false;
}

static bool admits(struct webhook *w, struct arena *arena, const struct channel_message *m, struct str sender)
{
	return jv_get_bool(w->config, "allow_all", false) || lists(arena, jv_get(w->config, "allowed_users"), sender) ||
	       (m->is_group && lists(arena, jv_get(w->config, "allowed_groups"), m->chat));
}

/* Who sends what to which chat. `chat` is that of the sender if the body names none. */
struct said {
	struct str sender, chat, text;
};

static int read_said(struct arena *arena, const struct jv *body, struct said *ret, struct err *err)
{
	const struct jv *text = jv_get(body, "text"), *files = jv_get(body, "files");
	struct said said = {name_of(arena, jv_get(body, "sender")), name_of(arena, jv_get(body, "chat")),
			    str_trim(jv_str_of(text))};

	if (!said.chat.len)
		said.chat = said.sender;
	if (!is_name(said.sender) || !is_name(said.chat))
		return err_set(err, ERR_INVALID,
			       "\"%s\" must be a name of at most %zu letters, digits and \"-_.@+\" that begins with a "
			       "letter or digit",
			       is_name(said.sender) ? "chat" : "sender", NAME_MAX_LEN);
	if ((text && text->type != JV_STR && text->type != JV_NULL) ||
	    (files && files->type != JV_ARRAY && files->type != JV_NULL))
		return err_set(err, ERR_INVALID, "\"text\" must be a string, and \"files\" a list");
	if (said.text.len && memchr(said.text.ptr, 0, said.text.len))
		return err_set(err, ERR_INVALID, "\"text\" has a NUL character; leave it out");
	if (!said.text.len && !jv_count(files))
		return err_set(err, ERR_INVALID, "the message is empty; it needs \"text\" or \"files\"");
	*ret = said;
	return 0;
}

int webhook_check_body(struct arena *arena, const struct jv *body, struct err *err)
{
	struct said ignored;

	return read_said(arena, body, &ignored, err);
}

static void add_files(struct webhook *w, struct ctx *ctx, const struct jv *files, struct buf *text)
{
	for (const struct jv_member *m = jv_first(files); m; m = m->next) {
		struct upload upload = {.name = jv_get_str(m->value, "name"), .mime = jv_get_str(m->value, "mime")};

		if (!base64_decode(ctx->arena, jv_get_str(m->value, "content_base64"), &upload.source.bytes)) {
			buf_lit(text, "[a file was sent but could not be stored: its content_base64 is not Base64]\n");
			continue;
		}
		upload.size = upload.source.bytes.len;
		channel_keep_file(w->ws, ctx, &upload, text);
	}
}

/* "/status now": the command and what follows it. */
static void read_command(struct str text, struct channel_message *m)
{
	size_t end = 0;

	if (!str_starts(text, STR("/")))
		return;
	while (end < text.len && (unsigned char)text.ptr[end] > ' ')
		end++;
	m->command = str_n(text.ptr + 1, end - 1);
	m->command_args = str_trim(str_from(text, end));
}

static int webhook_take(struct channel *channel, struct ctx *ctx, struct str id, const struct jv *body, struct err *err)
{
	struct webhook *w = as_webhook(channel);
	struct arena *arena = ctx->arena;
	struct channel_message m = {.id = id, .is_group = jv_get_bool(body, "group", false)};
	struct jv *origin = jv_object(arena);
	struct str sender, alias;
	struct said said;
	struct buf text;

	if (read_said(arena, body, &said, err) != 0) { /* it would be the same the next time */
		w->events->problem(w->events->arg, channel,
				   arena_printf(arena, "a request was dropped: %.*s", STR_ARG(err_text(arena, err))));
		return 0;
	}
	sender = said.sender;
	alias = jv_str_of(jv_get_key(jv_get(w->config, "user_aliases"), sender));
	m.chat = said.chat;
	m.sender = alias.len ? alias : sender;
	m.origin = origin;
	if (!admits(w, arena, &m, sender)) {
		w->events->problem(w->events->arg, channel,
				   arena_printf(arena,
						"a message from %.*s was not admitted; to admit them, add \"%.*s\" to "
						"allowed_users",
						STR_ARG(sender), STR_ARG(sender)));
		return 0;
	}
	jv_set_str(arena, origin, "chat", m.chat);
	read_command(said.text, &m);
	if (m.is_group && !m.command.len)
		w->events->heard(w->events->arg, channel, ctx,
				 &(struct channel_heard){.chat = m.chat,
							 .id = id,
							 .sender = sender,
							 .name = m.sender,
							 .text = said.text,
							 .file = jv_get_str(jv_at(jv_get(body, "files"), 0), "name")});
	buf_init(&text, arena, 4 * MIB);
	add_files(w, ctx, jv_get(body, "files"), &text);
	if (m.is_group)
		buf_printf(&text, "%.*s: ", STR_ARG(m.sender));
	buf_add(&text, said.text);
	m.text = buf_str(&text);
	return w->events->receive(w->events->arg, channel, ctx, &m, err);
}

/* --- what leaves --- */

static int one_attempt(struct webhook *w, struct ctx *ctx, struct str id, struct str body, int64_t *ret_wait_ms,
		       struct err *err)
{
	struct str time = arena_printf(ctx->arena, "%lld", (long long)(clock_real_ns() / NS_PER_S));
	struct http_header headers[] = {
		{STR("Content-Type"), STR("application/json")},
		{STR("User-Agent"), STR("Stead")},
		{STR("webhook-id"), id},
		{STR("webhook-timestamp"), time},
		{STR("webhook-signature"),
		 arena_printf(ctx->arena, "v1,%.*s", STR_ARG(sign(ctx->arena, w->key, id, time, body)))},
	};
	struct http_request req = {
		.method = "POST", .url = w->url, .headers = headers, .header_count = COUNT(headers), .body = body};
	struct http_response response = {0};
	int64_t after = -1;
	int r = http_perform(w->http, ctx, &req, &response, err);

	if (r) {
		*ret_wait_ms = err->kind == ERR_UNAVAILABLE || (err->kind == ERR_TIMEOUT && err->retryable) ? 0 : -1;
		return r;
	}
	if (response.status / 100 == 2)
		return 0;
	*ret_wait_ms = -1;
	if (response.status >= 500 || response.status == 429 || response.status == 408 || response.status == 425)
		*ret_wait_ms = 0;
	if (*ret_wait_ms == 0 && str_to_i64(http_header_of(&response, "retry-after"), &after) && after > 0)
		*ret_wait_ms = after <= WAIT_MAX_S ? after * 1000 : -1;
	return err_set(err,
		       response.status == 429   ? ERR_RATE_LIMITED
		       : response.status >= 500 ? ERR_UNAVAILABLE
						: ERR_DENIED,
		       "the receiver of the channel \"%.*s\" answered %d", STR_ARG(w->channel.name), response.status);
}

static int post(struct webhook *w, struct ctx *ctx, struct jv *event, struct err *err)
{
	struct str id = arena_printf(ctx->arena, "msg_%016llx%016llx", (unsigned long long)random_u64(),
				     (unsigned long long)random_u64());
	struct buf body;
	int r = 0;

	jv_set_str(ctx->arena, event, "id", id);
	jv_set_str(ctx->arena, event, "workspace", workspace_name(w->ws));
	jv_set_str(ctx->arena, event, "channel", w->channel.name);
	buf_init(&body, ctx->arena, 2 * CHANNEL_FILE_MAX);
	jv_write(&body, event);
	for (unsigned n = 0; n < ATTEMPTS_MAX; n++) {
		int64_t wait = -1, backoff = 500 << n;

		r = one_attempt(w, ctx, id, buf_str(&body), &wait, err);
		if (r == 0 || wait < 0 || n + 1 == ATTEMPTS_MAX)
			return r;
		if (wait == 0)
			wait = backoff < BACKOFF_MAX_MS ? backoff : BACKOFF_MAX_MS;
		r = channel_pause(ctx, wait, err);
		if (r)
			return r;
	}
	return r;
}

static struct jv *event_to(struct arena *arena, const char *type, const struct jv *origin)
{
	struct jv *event = jv_object(arena);

	jv_set_str(arena, event, "type", str_of(type));
	jv_set_str(arena, event, "chat", name_of(arena, jv_get(origin, "chat")));
	return event;
}

static int webhook_send(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str markdown,
			const struct channel_button *buttons, struct jv **ret_message, struct err *err)
{
	struct jv *event = event_to(ctx->arena, "message", origin), *list = jv_array(ctx->arena);

	jv_set_str(ctx->arena, event, "text", markdown);
	for (; buttons && buttons->label; buttons++) {
		struct jv *button = jv_object(ctx->arena);

		jv_set_str(ctx->arena, button, "label", str_of(buttons->label));
		jv_set_str(ctx->arena, button, "text",
			   arena_printf(ctx->arena, "/%s %s", buttons->command, buttons->args));
		jv_push(ctx->arena, list, button);
	}
	if (jv_count(list))
		jv_set(ctx->arena, event, "buttons", list);
	if (ret_message)
		*ret_message = jv_object(ctx->arena);
	return post(as_webhook(channel), ctx, event, err);
}

static int webhook_file(struct channel *channel, struct ctx *ctx, const struct jv *origin, struct str name,
			struct str bytes, struct str caption, struct err *err)
{
	struct jv *event = event_to(ctx->arena, "file", origin);

	jv_set_str(ctx->arena, event, "name", name);
	jv_set_str(ctx->arena, event, "text", caption);
	jv_set_str(ctx->arena, event, "content_base64", base64_encode(ctx->arena, bytes));
	return post(as_webhook(channel), ctx, event, err);
}

/* --- opening and closing --- */

static void webhook_close(struct channel *channel)
{
	struct webhook *w = as_webhook(channel);

	http_destroy(w->http);
	arena_destroy(w->arena);
	free(w);
}

static const struct channel_ops webhook_ops = {
	.type = "webhook",
	.send = webhook_send,
	.send_file = webhook_file,
	.take = webhook_take,
	.close = webhook_close,
};

int webhook_open(struct workspace *ws, const struct jv *config, const struct channel_events *events,
		 struct channel **ret, struct err *err)
{
	struct arena *arena = arena_new();
	struct webhook *w;
	struct str key;
	int r = read_key(arena, config, &key, err);

	if (r == 0 && !jv_get_str(config, "url").len)
		r = err_set(err, ERR_INVALID,
			    "the channel \"%.*s\" has no url; write the address that gets the agent's messages",
			    STR_ARG(channel_config_name(config)));
	if (r) {
		arena_destroy(arena);
		return r;
	}
	w = xcalloc(1, sizeof(*w));
	w->channel = (struct channel){.ops = &webhook_ops, .name = channel_config_name(config)};
	w->ws = ws;
	w->config = config;
	w->events = events;
	w->arena = arena;
	w->key = key;
	w->url = jv_get_str(config, "url");
	w->http = http_new(NULL);
	*ret = &w->channel;
	return 0;
}
