/* SPDX-License-Identifier: Apache-2.0 */
/* A request is one batch of texts. Only the service's numbers are used; its text is not passed on, because it may quote
   the key. */
#include "home/search/embedder.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/http.h"

#define NS_PER_S    INT64_C(1000000000)
#define PAUSE_FIRST (2 * NS_PER_S)
#define PAUSE_MAX   (300 * NS_PER_S)

struct embedder {
	const struct config_embedding *config;
	struct http *http;
	pthread_mutex_t lock; /* for what follows */
	int64_t ask_at;       /* monotonic; not before */
	unsigned failures;    /* in a row */
	struct err last;
};

void embedding_read(const struct jv *document, struct config_embedding *ret)
{
	const struct jv *embedding = jv_get(document, "embedding");

	ret->url = jv_get_str(embedding, "url");
	ret->model = jv_get_str(embedding, "model");
	ret->api_key = jv_get_str(embedding, "api_key");
	ret->dimensions = (uint64_t)jv_get_int(embedding, "dimensions", 0);
	ret->batch = (uint64_t)jv_get_int(embedding, "batch", 32);
	ret->timeout_ms = (uint64_t)jv_get_int(embedding, "timeout_ms", 3000);
}

struct embedder *embedder_new(const struct config_embedding *config)
{
	struct http_opts opts = {.connect_ms = (unsigned)config->timeout_ms, .stall_ms = (unsigned)config->timeout_ms};
	struct embedder *e;

	if (!config->url.len || !config->model.len)
		return NULL;
	e = xcalloc(1, sizeof *e);
	e->config = config;
	e->http = http_new(&opts);
	pthread_mutex_init(&e->lock, NULL);
	return e;
}

void embedder_destroy(struct embedder *e)
{
	if (!e)
		return;
	http_destroy(e->http);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* --- leaving it alone --- */

static void leave_alone(struct embedder *e, const struct err *err, int64_t at_least_ns)
{
	int64_t pause;

	pthread_mutex_lock(&e->lock);
	pause = PAUSE_FIRST << (e->failures < 8 ? e->failures : 8);
	pause = pause < PAUSE_MAX ? pause : PAUSE_MAX;
	e->failures++;
	e->last = *err;
	e->ask_at = clock_monotonic_ns() + (pause > at_least_ns ? pause : at_least_ns);
	pthread_mutex_unlock(&e->lock);
}

void embedder_is_wrong(struct embedder *e, const struct err *err)
{
	leave_alone(e, err, 0);
}

bool embedder_is_left_alone(struct embedder *e)
{
	bool alone;

	pthread_mutex_lock(&e->lock);
	alone = e->failures && clock_monotonic_ns() < e->ask_at;
	pthread_mutex_unlock(&e->lock);
	return alone;
}

/* Of many that find it due only one asks: the others continue without until it has answered. */
static int may_ask(struct embedder *e, struct err *err)
{
	int64_t now = clock_monotonic_ns();
	int r = 0;

	pthread_mutex_lock(&e->lock);
	if (e->failures && now < e->ask_at) {
		*err = e->last;
		r = -(int)err->kind;
	} else if (e->failures) {
		e->ask_at = now + (int64_t)e->config->timeout_ms * 1000000;
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

static void answered(struct embedder *e)
{
	pthread_mutex_lock(&e->lock);
	e->failures = 0;
	pthread_mutex_unlock(&e->lock);
}

/* --- the request --- */

static struct str body_of(const struct embedder *e, struct arena *arena, const struct str *texts, size_t count)
{
	struct jv *v = jv_object(arena), *input = jv_array(arena);
	struct buf buf;

	jv_set_str(arena, v, "model", e->config->model);
	for (size_t i = 0; i < count; i++)
		jv_push(arena, input, jv_str(arena, texts[i]));
	jv_set(arena, v, "input", input);
	jv_set_str(arena, v, "encoding_format", STR("float"));
	if (e->config->dimensions)
		jv_set_int(arena, v, "dimensions", (int64_t)e->config->dimensions);
	buf_init(&buf, arena, JSON_LEN_MAX);
	jv_write(&buf, v);
	return buf_str(&buf);
}

static int post(struct embedder *e, struct ctx *ctx, struct str body, struct http_response *ret, struct err *err)
{
	struct str url = e->config->url;
	struct http_header headers[2] = {{STR("content-type"), STR("application/json")}};
	struct http_request req = {.method = "POST",
				   .headers = headers,
				   .header_count = 1,
				   .body = body,
				   .body_max = EMBEDDER_ANSWER_MAX,
				   .timeout_ms = (int64_t)e->config->timeout_ms};

	while (url.len && url.ptr[url.len - 1] == '/')
		url.len--;
	req.url = str_ends(url, STR("/embeddings")) ? url : arena_printf(ctx->arena, "%.*s/embeddings", STR_ARG(url));
	if (e->config->api_key.len) {
		headers[1] = (struct http_header){STR("authorization"),
						  arena_printf(ctx->arena, "Bearer %.*s", STR_ARG(e->config->api_key))};
		req.header_count = 2;
	}
	return http_perform(e->http, ctx, &req, ret, err);
}

static int refused(const struct http_response *r, struct err *err)
{
	switch (r->status) {
	case 400:
	case 413:
	case 422:
		return err_set(err, ERR_INVALID, "the embedder refuses the text (HTTP %d)", r->status);
	case 401:
	case 403:
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the embedder does not accept the key (HTTP %d); check embedding.api_key", r->status);
	case 404:
		return err_set(err, ERR_NOT_FOUND,
			       "the embedder does not know this model or address (HTTP 404); check embedding.url and "
			       "embedding.model");
	case 429:
		return err_set(err, ERR_RATE_LIMITED, "the embedder is getting too many requests (HTTP 429)");
	default:
		return err_set(err, ERR_UNAVAILABLE, "the embedder failed (HTTP %d)", r->status);
	}
}

/* "Retry-After: 30"; a date is as good as none. */
static int64_t retry_after_ns(const struct http_response *r)
{
	int64_t s;

	if (!str_to_i64(str_trim(http_header_of(r, "retry-after")), &s) || s < 0)
		return 0;
	return (s < 3600 ? s : 3600) * NS_PER_S;
}

/* --- the answer --- */

static bool number_of(const struct jv *v, float *ret)
{
	double d = v->type == JV_INT ? (double)v->u.i : v->type == JV_REAL ? v->u.d : NAN;

	*ret = (float)d;
	return isfinite(*ret);
}

static int bad_answer(struct err *err, const char *why)
{
	return err_set(err, ERR_UNAVAILABLE, "the embedder's answer is not a list of vectors: %s", why);
}

static int take_vector(const struct jv *list, unsigned dims, float *to, struct err *err)
{
	if (jv_count(list) != dims)
		return bad_answer(err, "they are not all of the same length");
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (!number_of(m->value, to++))
			return bad_answer(err, "one has something that is not a number");
	return 0;
}

int embedder_parse(struct arena *arena, struct str body, size_t count, float **ret_values, unsigned *ret_dims,
		   struct err *err)
{
	struct jv *v;
	const struct jv *data;
	struct err why;
	bool *seen = ARENA_ARRAY(arena, bool, count + 1);
	size_t dims, place = 0;
	float *values;

	if (jv_parse(arena, body, &v, &why) != 0)
		return bad_answer(err, "it is not JSON");
	data = jv_get(v, "data");
	if (!data || data->type != JV_ARRAY || jv_count(data) != count || !count)
		return bad_answer(err, "there is not one for each text");
	dims = jv_count(jv_get(jv_first(data)->value, "embedding"));
	if (!dims || dims > EMBEDDER_DIMS_MAX)
		return bad_answer(err, "one is empty or too long");
	values = ARENA_ARRAY(arena, float, count *dims);
	for (const struct jv_member *m = jv_first(data); m; m = m->next, place++) {
		int64_t at = jv_get_int(m->value, "index", (int64_t)place);
		const struct jv *list = jv_get(m->value, "embedding");
		int r;

		if (at < 0 || (uint64_t)at >= count || seen[at] || !list || list->type != JV_ARRAY)
			return bad_answer(err, "there is not one for each text");
		seen[at] = true;
		r = take_vector(list, (unsigned)dims, values + (size_t)at * dims, err);
		if (r)
			return r;
	}
	*ret_values = values;
	*ret_dims = (unsigned)dims;
	return 0;
}

int embedder_embed(struct embedder *e, struct ctx *ctx, const struct str *texts, size_t count, float **ret_values,
		   unsigned *ret_dims, struct err *err)
{
	struct http_response response = {0};
	int r = may_ask(e, err);

	if (r)
		return r;
	r = post(e, ctx, body_of(e, ctx->arena, texts, count), &response, err);
	if (!r && (response.status < 200 || response.status > 299))
		r = refused(&response, err);
	else if (!r)
		r = embedder_parse(ctx->arena, response.body, count, ret_values, ret_dims, err);
	if (!r && e->config->dimensions && *ret_dims != e->config->dimensions)
		r = err_set(err, ERR_UNAVAILABLE,
			    "the embedder answers with %u numbers, but embedding.dimensions asks for %llu", *ret_dims,
			    (unsigned long long)e->config->dimensions);
	if (!r || r == -ERR_INVALID)
		answered(e);
	else if (r != -ERR_CANCELLED)
		leave_alone(e, err, retry_after_ns(&response));
	return r;
}
