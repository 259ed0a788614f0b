/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers, and one call over HTTP with its retries. A provider is a row of a table: which protocol it speaks, where,
 * and which variable has its key. A server that speaks a known protocol at another address needs no row, only a base
 * URL.
 *
 * A call is tried again for what may pass (429, 408, 409, 5xx, a connection that broke, a stream that ended early),
 * since nothing is acted on before an answer is complete. The server's own advice (Retry-After, x-should-retry) comes
 * first; without it the pause doubles and is shortened at random by up to a quarter, so that many clients do not come
 * back together. A pause that would not end before the deadline is not begun.
 *
 * Texts of servers may quote a key, so an error text that has it in it is not shown.
 */
#include "model/model.h"

#include <math.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "model/model_internal.h"
#include "net/http.h"
#include "net/sse.h"

#define CONNECT_MS      10000
#define SILENCE_MS      120000 /* a server that works sends something in this time */
#define PAUSE_MS        500
#define PAUSE_MOST_MS   30000
#define LOOK_MS         20
#define SERVER_TEXT_MAX ((size_t)240) /* of a server's own words in an error */

struct provider {
	const char *name;
	const struct wire *wire; /* NULL: a recording */
	const char *base_url;    /* NULL: must be given */
	const char *key_name;    /* NULL: it needs none */
};

static const struct provider providers[] = {
	{"anthropic", &wire_anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"},
	{"openai", &wire_chat, "https://api.openai.com/v1", "OPENAI_API_KEY"},
	{"openai-responses", &wire_responses, "https://api.openai.com/v1", "OPENAI_API_KEY"},
	{"openrouter", &wire_chat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	{"ollama", &wire_chat, "http://127.0.0.1:11434/v1", NULL},
	{"llamacpp", &wire_chat, "http://127.0.0.1:8080/v1", NULL},
	{"vllm", &wire_chat, "http://127.0.0.1:8000/v1", NULL},
	{"replay", NULL, NULL, NULL},
};

static const struct provider *find_provider(struct str name)
{
	for (size_t i = 0; i < COUNT(providers); i++)
		if (str_is(name, providers[i].name))
			return &providers[i];
	return NULL;
}

bool model_split(struct str text, struct str *ret_provider, struct str *ret_name)
{
	size_t colon = str_find_char(text, ':');

	*ret_provider = str_first(text, colon);
	*ret_name = str_from(text, colon + 1);
	return ret_provider->len && ret_name->len;
}

const char *model_key_name(struct str provider)
{
	const struct provider *p = find_provider(provider);

	return p ? p->key_name : NULL;
}

static int unknown_provider(struct str name, struct err *err)
{
	char list[200] = "";
	size_t len = 0;

	for (size_t i = 0; i < COUNT(providers) && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", providers[i].name);
	return err_set(err, ERR_INVALID,
		       "there is no model provider \"%.*s\"; the providers are %s; for a server that speaks OpenAI's "
		       "protocol, use \"openai\" with a base URL",
		       STR_ARG(utf8_first(name, 60)), list);
}

int model_check_provider(struct str provider, struct err *err)
{
	return find_provider(provider) ? 0 : unknown_provider(provider, err);
}

/* --- addresses --- */

static bool is_private(struct str host)
{
	static const char *const starts[] = {"127.", "10.", "192.168.", "169.254.", "[::1]", "[fd", "[fe80"};
	struct str name = str_first(host, str_find_char(host, ':'));
	int64_t second;

	for (size_t i = 0; i < COUNT(starts); i++)
		if (str_starts(host, str_of(starts[i])))
			return true;
	if (str_starts(host, STR("172."))) {
		struct str rest = str_from(host, 4);

		return str_to_i64(str_first(rest, str_find_char(rest, '.')), &second) && second >= 16 && second <= 31;
	}
	return str_find_char(name, '.') == name.len && name.len > 0; /* localhost, or a name of the local network */
}

/* The base with "/v1" at its end, unless it has a path of its own. */
static int base_of(struct arena *arena, struct str url, struct str *ret, struct err *err)
{
	bool plain = str_starts(url, STR("http://"));
	struct str rest = str_from(url, plain ? 7 : 8), host;

	if (!plain && !str_starts(url, STR("https://")))
		return err_set(err, ERR_INVALID, "the model's base URL must begin with https:// or http://");
	while (url.len && url.ptr[url.len - 1] == '/')
		url.len--;
	host = str_first(rest, str_find_char(rest, '/'));
	if (!host.len || str_find_char(host, '@') < host.len)
		return err_set(err, ERR_INVALID, "the model's base URL must name a host, and no user");
	if (plain && !is_private(host))
		return err_set(
			err, ERR_INVALID,
			"the base URL http://%.*s would send the key and the conversation unencrypted; write https://",
			STR_ARG(utf8_first(host, 100)));
	rest = str_from(url, plain ? 7 : 8);
	*ret = str_find_char(rest, '/') == rest.len ? arena_printf(arena, "%.*s/v1", STR_ARG(url))
						    : arena_str(arena, url);
	return 0;
}

/* --- opening --- */

static int check_options(const struct jv *options, struct err *err)
{
	static const char *const own[] = {"model",       "messages", "stream",        "tools",
					  "system",      "input",    "instructions",  "max_tokens",
					  "temperature", "top_p",    "stream_options"};

	for (const struct jv_member *m = jv_first(options); m; m = m->next)
		for (size_t i = 0; i < COUNT(own); i++)
			if (str_is(m->key, own[i]))
				return err_set(err, ERR_INVALID,
					       "model.options must not contain \"%s\", because Stead sets it", own[i]);
	return 0;
}

static int set_up(struct model *m, const struct provider *p, struct err *err)
{
	struct http_opts opts = {.connect_ms = CONNECT_MS, .stall_ms = SILENCE_MS};
	struct str base = m->set.base_url;
	int r = check_options(m->set.options, err);

	m->wire = p->wire;
	if (r || !p->wire)
		return r ? r : recording_open(m, err);
	m->first_party = !base.len && str_starts(m->set.provider, STR("openai"));
	m->key_name = p->key_name;
	r = base_of(m->arena, base.len ? base : str_of(p->base_url), &base, err);
	if (r)
		return r;
	if (p->key_name && !m->set.api_key.len && !m->set.base_url.len)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "%.*s needs a key; set %s in the workspace's .env or in the environment",
			       STR_ARG(m->set.provider), p->key_name);
	m->url = str_ends(base, str_of(p->wire->path)) ? base
						       : arena_printf(m->arena, "%.*s%s", STR_ARG(base), p->wire->path);
	m->http = http_new(&opts);
	return 0;
}

int model_open(const struct model_settings *settings, struct model **ret_model, struct err *err)
{
	const struct provider *p = find_provider(settings->provider);
	struct arena *arena;
	struct model *m;
	int r;

	if (!p)
		return unknown_provider(settings->provider, err);
	arena = arena_new();
	m = ARENA_NEW(arena, struct model);
	m->arena = arena;
	m->set = *settings;
	m->set.provider = arena_str(arena, settings->provider);
	m->set.name = arena_str(arena, settings->name);
	m->set.base_url = arena_str(arena, settings->base_url);
	m->set.api_key = arena_str(arena, settings->api_key);
	m->label = arena_printf(arena, "%.*s:%.*s", STR_ARG(m->set.provider), STR_ARG(m->set.name));
	r = set_up(m, p, err);
	if (r)
		model_close(m);
	else
		*ret_model = m;
	return r;
}

void model_close(struct model *model)
{
	if (!model)
		return;
	http_destroy(model->http);
	arena_destroy(model->arena);
}

struct str model_label(const struct model *model)
{
	return model->label;
}

const char *model_wire(const struct model *model)
{
	return model->wire ? model->wire->name : "replay";
}

struct str model_tools(const struct model *model, struct arena *arena, const struct model_tool *tools, size_t count)
{
	struct jv *list = jv_array(arena);
	struct buf text;

	if (!model->wire || count == 0)
		return STR_NONE;
	for (size_t i = 0; i < count; i++) {
		struct jv *tool = jv_object(arena);

		model->wire->tool(arena, &tools[i], tool);
		jv_push(arena, list, tool);
	}
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, list);
	return buf_str(&text);
}

/* --- what a server refuses --- */

static const struct {
	const char *word; /* in the type or the code of an error */
	enum err_kind kind;
	bool retryable;
} words[] = {
	{"overloaded", ERR_UNAVAILABLE, true},
	{"insufficient_quota", ERR_QUOTA, false},
	{"rate_limit", ERR_RATE_LIMITED, true},
	{"billing", ERR_QUOTA, false},
	{"authentication", ERR_UNAUTHENTICATED, false},
	{"permission", ERR_DENIED, false},
	{"not_found", ERR_NOT_FOUND, false},
	{"context_length", ERR_TOO_LARGE, false},
	{"too_large", ERR_TOO_LARGE, false},
	{"invalid", ERR_INVALID, false},
	{"timeout", ERR_UNAVAILABLE, true},
};

static void kind_of_words(struct str text, enum err_kind *kind, bool *retryable)
{
	for (size_t i = 0; i < COUNT(words); i++)
		if (str_find(text, str_of(words[i].word), 0) != SIZE_MAX) {
			*kind = words[i].kind;
			*retryable = words[i].retryable;
			return;
		}
}

static void kind_of_status(int status, enum err_kind *kind, bool *retryable)
{
	*retryable = status == 408 || status == 409 || status == 429 || status >= 500 || status == 0;
	*kind = status == 401                                                     ? ERR_UNAUTHENTICATED
		: status == 402                                                   ? ERR_QUOTA
		: status == 403                                                   ? ERR_DENIED
		: status == 404                                                   ? ERR_NOT_FOUND
		: status == 413                                                   ? ERR_TOO_LARGE
		: status == 429                                                   ? ERR_RATE_LIMITED
		: status >= 300 && status < 500 && status != 408 && status != 409 ? ERR_INVALID
										  : ERR_UNAVAILABLE;
}

/* A server's words as one short line. */
static struct str one_line(struct arena *arena, struct str text)
{
	struct str cut = utf8_first(str_trim(text), SERVER_TEXT_MAX);
	char *line = (char *)arena_str(arena, cut).ptr;

	for (size_t i = 0; i < cut.len; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = ' ';
	return utf8_valid(cut) ? str_n(line, cut.len) : STR("");
}

static bool is_too_long(struct str text)
{
	static const char *const signs[] = {"prompt is too long", "maximum context length", "context window",
					    "context size", "too many tokens"};

	for (size_t i = 0; i < COUNT(signs); i++)
		if (str_find(text, str_of(signs[i]), 0) != SIZE_MAX)
			return true;
	return false;
}

int model_refusal(const struct model *m, struct arena *arena, int status, struct str body, struct err *err)
{
	struct jv *v = NULL;
	const struct jv *error;
	struct str text, type;
	enum err_kind kind;
	bool retryable;
	struct err why;

	if (jv_parse(arena, body, &v, &why) != 0)
		v = NULL;
	error = jv_get(v, "error") ? jv_get(v, "error") : v;
	text = error && error->type == JV_STR ? error->u.s : jv_get_str(error, "message");
	type = arena_printf(arena, "%.*s %.*s", STR_ARG(utf8_first(jv_get_str(error, "type"), 100)),
			    STR_ARG(utf8_first(jv_get_str(error, "code"), 100)));
	kind_of_status(status, &kind, &retryable);
	if (status == 0 || status == 400 || status == 429)
		kind_of_words(type, &kind, &retryable);
	if ((status == 0 || status == 400) && is_too_long(text))
		kind = ERR_TOO_LARGE, retryable = false;
	text = one_line(arena, text);
	if (m->set.api_key.len && str_find(text, m->set.api_key, 0) != SIZE_MAX)
		text = STR("");
	if (kind == ERR_UNAUTHENTICATED)
		err_set(err, kind,
			"\"%.*s\" does not accept the key%s; check %s in the workspace's .env or in the "
			"environment",
			STR_ARG(m->label), status ? " (HTTP 401)" : "", m->key_name ? m->key_name : "the key");
	else if (status)
		err_set(err, kind, "\"%.*s\" answered with HTTP %d%s%.*s%s", STR_ARG(m->label), status,
			text.len ? ": " : "", STR_ARG(text),
			status == 404       ? "; check the base URL and the name of the model"
			: status / 100 == 3 ? "; check the base URL, because redirects are not followed"
					    : "");
	else
		err_set(err, kind, "\"%.*s\" ended its answer with an error%s%.*s", STR_ARG(m->label),
			text.len ? ": " : "", STR_ARG(text));
	err->retryable = retryable;
	return -(int)kind;
}

/* --- one attempt --- */

struct attempt {
	struct answer stream;
	struct sse sse;
	bool is_stream;
	struct http_response response;
	struct str body;
	bool without_sampling; /* the server refused it */
};

static int take_sse(void *arg, const struct sse_event *event, struct err *err)
{
	struct attempt *a = arg;

	return a->stream.model->wire->event(&a->stream, event->event, event->data, err);
}

static int take_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct attempt *a = arg;

	return sse_feed(&a->sse, str_n(bytes, len), err);
}

static int take_head(void *arg, int status, const struct http_header *headers, size_t count, struct err *err)
{
	struct attempt *a = arg;

	(void)status;
	for (size_t i = 0; i < count; i++)
		if (str_is(headers[i].name, "content-type") && str_starts(headers[i].value, STR("text/event-stream")))
			return 0;
	/* not tried again: it would be the same answer, paid once more */
	return err_set(err, ERR_UNSUPPORTED,
		       "\"%.*s\" did not answer with an event stream; check the base URL, and that the server streams",
		       STR_ARG(a->stream.model->label));
}

static void write_number(struct buf *out, const char *name, double value)
{
	if (!isnan(value))
		buf_printf(out, ",\"%s\":%.6g", name, value);
}

static int write_body(const struct model *m, struct arena *arena, const struct model_request *req, bool sampling,
		      struct str *ret, struct err *err)
{
	struct buf out;

	buf_init(&out, arena, JSON_LEN_MAX);
	buf_lit(&out, "{\"model\":");
	jv_write_string(&out, m->set.name);
	buf_lit(&out, ",\"stream\":true");
	if (sampling) {
		write_number(&out, "temperature", m->set.temperature);
		write_number(&out, "top_p", m->set.top_p);
	}
	for (const struct jv_member *o = jv_first(m->set.options); o; o = o->next) {
		buf_char(&out, ',');
		jv_write_string(&out, o->key);
		buf_char(&out, ':');
		jv_write(&out, o->value);
	}
	m->wire->body(m, arena, req, &out);
	buf_char(&out, '}');
	if (out.overflow)
		return err_set(err, ERR_TOO_LARGE, "the conversation has more than %zu MiB; start a new session",
			       JSON_LEN_MAX / MIB);
	*ret = buf_str(&out);
	return 0;
}

static size_t write_headers(const struct model *m, struct arena *arena, struct http_header *headers)
{
	size_t n = 0;

	headers[n++] = (struct http_header){STR("content-type"), STR("application/json")};
	headers[n++] = (struct http_header){STR("accept"), STR("text/event-stream")};
	if (m->wire == &wire_anthropic) {
		headers[n++] = (struct http_header){STR("anthropic-version"), STR("2023-06-01")};
		if (m->set.api_key.len)
			headers[n++] = (struct http_header){STR("x-api-key"), m->set.api_key};
	} else if (m->set.api_key.len) {
		headers[n++] = (struct http_header){STR("authorization"),
						    arena_printf(arena, "Bearer %.*s", STR_ARG(m->set.api_key))};
	}
	return n;
}

static int try_once(struct model *m, struct ctx *ctx, const struct model_request *req, struct attempt *a,
		    struct err *err)
{
	struct http_header headers[4];
	struct http_request http = {.method = "POST",
				    .url = m->url,
				    .headers = headers,
				    .header_count = write_headers(m, ctx->arena, headers),
				    .body = a->body,
				    .push = take_bytes,
				    .head = take_head,
				    .arg = a};
	int r;

	a->stream = (struct answer){.arena = ctx->arena, .model = m, .req = req};
	sse_init(&a->sse, take_sse, a);
	r = http_perform(m->http, ctx, &http, &a->response, err);
	sse_release(&a->sse);
	if (r == 0 && a->response.status / 100 != 2)
		return model_refusal(m, ctx->arena, a->response.status, a->response.body, err);
	if (r == 0 && !a->stream.done) {
		err_set(err, ERR_UNAVAILABLE, "the stream of \"%.*s\" ended before the answer was complete",
			STR_ARG(m->label));
		err->retryable = true;
		return -ERR_UNAVAILABLE;
	}
	return r;
}

/* --- again --- */

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool http_date_parse(struct str text, int64_t *ret_real_ns)
{
	struct tm tm = {0};
	char z[40];

	if (text.len >= sizeof(z))
		return false;
	snprintf(z, sizeof(z), "%.*s", STR_ARG(text));
	if (!strptime(z, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return false;
	*ret_real_ns = (int64_t)timegm(&tm) * NS_PER_S;
	return true;
}

static int64_t server_pause_ms(const struct http_response *r)
{
	struct str after = str_trim(http_header_of(r, "retry-after"));
	int64_t ms, s, at;

	if (str_to_i64(str_trim(http_header_of(r, "retry-after-ms")), &ms) && ms > 0)
		return ms;
	if (str_to_i64(after, &s) && s > 0)
		return s < 86400 ? s * 1000 : 86400000;
	if (http_date_parse(after, &at) && at > clock_real_ns())
		return (at - clock_real_ns()) / NS_PER_MS;
	return 0;
}

static int64_t pause_of(const struct model *m, const struct http_response *r, unsigned attempt)
{
	int64_t ms = server_pause_ms(r);

	if (ms > 0)
		return ms;
	ms = m->set.pause_ms ? m->set.pause_ms : PAUSE_MS;
	for (unsigned i = 1; i < attempt && ms < PAUSE_MOST_MS; i++)
		ms *= 2;
	ms = ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS;
	return ms - (int64_t)(random_u64() % (uint64_t)(ms / 4 + 1));
}

static int wait_ms(struct ctx *ctx, int64_t ms, struct err *err)
{
	int64_t end = clock_monotonic_ns() + ms * NS_PER_MS, now;
	int r;

	while ((r = ctx_check(ctx, err)) == 0 && (now = clock_monotonic_ns()) < end) {
		int64_t step = end - now < LOOK_MS * NS_PER_MS ? end - now : LOOK_MS * NS_PER_MS;
		struct timespec t = clock_timespec(step);

		nanosleep(&t, NULL);
	}
	return r;
}

static bool may_retry(const struct attempt *a, const struct err *err)
{
	struct str advice = http_header_of(&a->response, "x-should-retry");

	if (str_is(advice, "true") || str_is(advice, "false"))
		return str_is(advice, "true");
	return err->retryable;
}

/* Some models refuse every sampling parameter: the request is made once more without. */
static bool drops_sampling(const struct model *m, struct attempt *a)
{
	struct str text = a->response.body;

	if (a->response.status != 400 || a->without_sampling || (isnan(m->set.temperature) && isnan(m->set.top_p)))
		return false;
	a->without_sampling =
		str_find(text, STR("temperature"), 0) != SIZE_MAX || str_find(text, STR("top_p"), 0) != SIZE_MAX;
	return a->without_sampling;
}

/* Why it is not asked again, although it could be. */
static void tell_pause(struct arena *arena, int64_t pause_ms, struct err *err)
{
	struct str why = err_text(arena, err);
	bool retryable = err->retryable;

	err_set(err, err->kind, "%.*s; it wants a retry in %lld s, but this turn may not take that long",
		STR_ARG(utf8_first(why, 340)), (long long)((pause_ms + 999) / 1000));
	err->retryable = retryable;
}

static int prepare_retry(struct model *m, struct ctx *ctx, const struct model_request *req, struct attempt *a,
			 unsigned attempt, struct err *err)
{
	int64_t pause;
	struct err ended;

	if (drops_sampling(m, a))
		return write_body(m, ctx->arena, req, false, &a->body, err);
	if (attempt > m->set.retries || !may_retry(a, err))
		return -(int)err->kind;
	pause = pause_of(m, &a->response, attempt);
	if (ctx->deadline_ns && clock_monotonic_ns() + pause * NS_PER_MS >= ctx->deadline_ns) {
		if (server_pause_ms(&a->response) > 0)
			tell_pause(ctx->arena, pause, err);
		return -(int)err->kind; /* there is no time left for it */
	}
	if (req->delta)
		req->delta(req->arg, MODEL_AGAIN, err_text(ctx->arena, err));
	if (wait_ms(ctx, pause, &ended) != 0) {
		*err = ended;
		return -(int)err->kind;
	}
	return 0;
}

int model_ask(struct model *model, struct ctx *ctx, const struct model_request *request, struct model_answer *ret,
	      struct err *err)
{
	struct attempt a = {0};
	int r;

	if (!model->wire)
		return recording_ask(model, ctx, request, ret, err);
	r = write_body(model, ctx->arena, request, true, &a.body, err);
	for (unsigned attempt = 1; r == 0; attempt++) {
		r = try_once(model, ctx, request, &a, err);
		if (r == 0) {
			answer_finish(&a.stream, ret);
			ret->attempts = attempt;
			return 0;
		}
		r = prepare_retry(model, ctx, request, &a, attempt, err);
	}
	return r;
}
