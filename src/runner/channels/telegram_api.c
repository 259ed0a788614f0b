/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function makes a request and one decides whether to make it again. A call is repeated when that cannot do harm:
 * always when nothing was sent or the service refused it, and otherwise only for methods that change nothing in a chat.
 * The service has no key that would make a message count once, so a message whose answer was lost is not sent again:
 * a person can ask again, and a doubled message cannot be taken back.
 */
#include "runner/channels/telegram_api.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/http.h"
#include "runner/channels/channel.h"

#define ATTEMPTS_MAX   6
#define WAIT_MAX_S     120 /* a longer wait is an error */
#define BACKOFF_MAX_MS 30000
#define STALL_MS       70000 /* more than a long poll */

struct telegram_api {
	struct http *http;
	char *base_url, *token;
};

struct telegram_api *telegram_api_new(struct str base_url, struct str token)
{
	struct telegram_api *api = xcalloc(1, sizeof(*api));

	while (base_url.len && base_url.ptr[base_url.len - 1] == '/')
		base_url.len--;
	api->http = http_new(&(struct http_opts){.stall_ms = STALL_MS});
	api->base_url = xstrndup(base_url);
	api->token = xstrndup(token);
	return api;
}

void telegram_api_destroy(struct telegram_api *api)
{
	if (!api)
		return;
	http_destroy(api->http);
	free(api->base_url);
	free(api->token);
	free(api);
}

/* --- one request --- */

struct attempt {
	const char *method;
	struct http_header type;
	struct str body;
	bool was_sent;       /* it may have been carried out */
	int64_t retry_after; /* seconds; -1: not said */
};

static int refused(const struct attempt *a, struct telegram_failure *f, struct err *err)
{
	struct str text = utf8_first(f->text, 200);
	enum err_kind kind = f->code == 401 || f->code == 404 ? ERR_UNAUTHENTICATED
			     : f->code == 403                 ? ERR_DENIED
			     : f->code == 409                 ? ERR_CONFLICT
			     : f->code == 413                 ? ERR_TOO_LARGE
			     : f->code == 429                 ? ERR_RATE_LIMITED
			     : f->code >= 500 || f->code == 0 ? ERR_UNAVAILABLE
							      : ERR_INVALID;

	return err_set(err, kind, "telegram refused %s (%d): %.*s", a->method, f->code, STR_ARG(text));
}

static int read_answer(struct attempt *a, struct arena *arena, const struct http_response *response,
		       struct jv **ret_result, struct telegram_failure *f, struct err *err)
{
	struct err ignored;
	struct jv *v = NULL;
	const struct jv *parameters;

	*f = (struct telegram_failure){.code = response->status};
	if (jv_parse(arena, response->body, &v, &ignored) != 0)
		return refused(a, f, err);
	if (response->status == 200 && jv_get_bool(v, "ok", false)) {
		*ret_result = (struct jv *)jv_get(v, "result");
		return 0;
	}
	parameters = jv_get(v, "parameters");
	f->code = (int)jv_get_int(v, "error_code", response->status);
	f->text = jv_get_str(v, "description");
	f->migrate_to = jv_get_int(parameters, "migrate_to_chat_id", 0);
	a->retry_after = jv_get_int(parameters, "retry_after", -1);
	return refused(a, f, err);
}

static int try_once(struct telegram_api *api, struct ctx *ctx, struct attempt *a, struct jv **ret_result,
		    struct telegram_failure *f, struct err *err)
{
	struct http_request req = {.method = "POST",
				   .url = arena_printf(ctx->arena, "%s/bot%s/%s", api->base_url, api->token, a->method),
				   .headers = &a->type,
				   .header_count = 1,
				   .body = a->body,
				   .body_max = 16 * MIB};
	struct http_response response;
	int r;

	*f = (struct telegram_failure){0};
	a->retry_after = -1;
	r = http_perform(api->http, ctx, &req, &response, err);
	a->was_sent = r && response.sent;
	return r ? r : read_answer(a, ctx->arena, &response, ret_result, f, err);
}

static bool changes_a_chat(const char *method)
{
	return str_is(str_of(method), "sendMessage") || str_is(str_of(method), "sendDocument");
}

/* What only decorates a chat: a turn does not wait for it. */
static bool is_courtesy(const char *method)
{
	return str_is(str_of(method), "sendChatAction") || str_is(str_of(method), "answerCallbackQuery");
}

/* How long to wait before the next attempt; negative: there is none. */
static int64_t wait_ms(const struct attempt *a, const struct telegram_failure *f, const struct err *err, unsigned n)
{
	int64_t backoff = 500 << n;

	if (err->kind == ERR_CANCELLED || n + 1 >= ATTEMPTS_MAX || is_courtesy(a->method))
		return -1;
	if (f->code == 429)
		return a->retry_after <= WAIT_MAX_S ? (a->retry_after < 0 ? 1 : a->retry_after) * 1000 : -1;
	if (f->code && f->code < 500)
		return -1;
	if (changes_a_chat(a->method) && (a->was_sent || f->code))
		return -1;
	return backoff < BACKOFF_MAX_MS ? backoff : BACKOFF_MAX_MS;
}

static int try_all(struct telegram_api *api, struct ctx *ctx, struct attempt *a, struct jv **ret_result,
		   struct telegram_failure *ret_failure, struct err *err)
{
	struct telegram_failure own, *f = ret_failure ? ret_failure : &own;
	struct err waiting;
	int r = 0;

	for (unsigned n = 0; n < ATTEMPTS_MAX; n++) {
		int64_t wait;

		r = try_once(api, ctx, a, ret_result, f, err);
		wait = r ? wait_ms(a, f, err, n) : -1;
		if (r == 0 || wait < 0)
			return r;
		if (channel_pause(ctx, wait, &waiting) != 0) {
			*err = waiting;
			return -(int)err->kind;
		}
	}
	return r;
}

int telegram_call(struct telegram_api *api, struct ctx *ctx, const char *method, const struct jv *params,
		  struct jv **ret_result, struct telegram_failure *ret_failure, struct err *err)
{
	struct attempt a = {.method = method, .type = {STR("Content-Type"), STR("application/json")}};
	struct jv *ignored;
	struct buf body;

	buf_init(&body, ctx->arena, MIB);
	if (params)
		jv_write(&body, params);
	else
		buf_lit(&body, "{}");
	a.body = buf_str(&body);
	return try_all(api, ctx, &a, ret_result ? ret_result : &ignored, ret_failure, err);
}

/* --- files --- */

static void add_field(struct buf *body, struct str boundary, struct str name, struct str value)
{
	buf_printf(body, "--%.*s\r\nContent-Disposition: form-data; name=\"%.*s\"\r\n\r\n", STR_ARG(boundary),
		   STR_ARG(name));
	buf_add(body, value);
	buf_lit(body, "\r\n");
}

/* A name that cannot end its quotes. */
static struct str safe_name(struct arena *arena, struct str name)
{
	char *copy = (char *)arena_str(arena, utf8_first(name, 200)).ptr;
	size_t len = utf8_first(name, 200).len;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)copy[i] < ' ' || copy[i] == '"' || copy[i] == '\\' || copy[i] == '/')
			copy[i] = '_';
	return str_n(copy, len);
}

int telegram_send_file(struct telegram_api *api, struct ctx *ctx, const struct jv *params, struct str name,
		       struct str bytes, struct jv **ret_result, struct telegram_failure *ret_failure, struct err *err)
{
	struct str boundary = arena_printf(ctx->arena, "stead%016llx%016llx", (unsigned long long)random_u64(),
					   (unsigned long long)random_u64());
	struct attempt a = {.method = "sendDocument"};
	struct buf body;

	if (bytes.len > TELEGRAM_SEND_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file has %zu bytes; telegram takes at most %zu", bytes.len,
			       TELEGRAM_SEND_MAX);
	buf_init(&body, ctx->arena, bytes.len + MIB);
	for (const struct jv_member *m = jv_first(params); m; m = m->next) {
		struct buf value;

		buf_init(&value, ctx->arena, 64 * KIB);
		if (m->value->type == JV_STR)
			buf_add(&value, m->value->u.s);
		else
			jv_write(&value, m->value);
		add_field(&body, boundary, m->key, buf_str(&value));
	}
	buf_printf(&body,
		   "--%.*s\r\nContent-Disposition: form-data; name=\"document\"; filename=\"%.*s\"\r\n"
		   "Content-Type: application/octet-stream\r\n\r\n",
		   STR_ARG(boundary), STR_ARG(safe_name(ctx->arena, name)));
	buf_add(&body, bytes);
	buf_printf(&body, "\r\n--%.*s--\r\n", STR_ARG(boundary));
	a.body = buf_str(&body);
	a.type = (struct http_header){
		STR("Content-Type"), arena_printf(ctx->arena, "multipart/form-data; boundary=%.*s", STR_ARG(boundary))};
	return try_all(api, ctx, &a, ret_result, ret_failure, err);
}

int telegram_get_file(struct telegram_api *api, struct ctx *ctx, struct str file_id, struct str *ret_bytes,
		      struct err *err)
{
	struct http_request req = {.method = "GET", .body_max = TELEGRAM_GET_MAX};
	struct jv *params = jv_object(ctx->arena), *file = NULL;
	struct http_response response;
	struct buf url;
	int r;

	jv_set_str(ctx->arena, params, "file_id", file_id);
	r = telegram_call(api, ctx, "getFile", params, &file, NULL, err);
	if (r)
		return r;
	if (jv_get_int(file, "file_size", 0) > (int64_t)TELEGRAM_GET_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file is larger than the 20 MB that bots can download");
	buf_init(&url, ctx->arena, 16 * KIB);
	buf_printf(&url, "%s/file/bot%s/", api->base_url, api->token);
	http_encode(&url, jv_get_str(file, "file_path"), true);
	req.url = buf_str(&url);
	r = http_perform(api->http, ctx, &req, &response, err);
	if (r == 0 && response.status != 200)
		r = err_set(err, ERR_UNAVAILABLE, "telegram answered %d for a file", response.status);
	if (r == 0)
		*ret_bytes = response.body;
	return r;
}
