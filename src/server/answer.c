/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that all routes give: JSON, and errors in the form of RFC 9457 with the sentence that every door gives. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/server_internal.h"
#include "text/jv.h"

int http_status(enum err_kind kind)
{
	static const int statuses[ERR_KINDS] = {
		[ERR_INVALID] = 400,      [ERR_NOT_FOUND] = 404,       [ERR_EXISTS] = 409,    [ERR_CONFLICT] = 409,
		[ERR_DENIED] = 403,       [ERR_UNAUTHENTICATED] = 401, [ERR_TOO_LARGE] = 413, [ERR_UNSUPPORTED] = 501,
		[ERR_RATE_LIMITED] = 429, [ERR_TIMEOUT] = 504,         [ERR_CANCELLED] = 503, [ERR_UNAVAILABLE] = 503,
		[ERR_CORRUPT] = 500,      [ERR_QUOTA] = 507,           [ERR_INTERNAL] = 500,
	};

	return kind < ERR_KINDS && statuses[kind] ? statuses[kind] : 500;
}

static const char *title_of(int status)
{
	static const struct {
		int status;
		const char *title;
	} titles[] = {
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{409, "Conflict"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{429, "Too Many Requests"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < COUNT(titles); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Error";
}

/* The address of this server, as clients know it. */
static struct str public_url(struct exchange *x)
{
	struct str given = jv_get_str(call_of(x)->serve->settings, "public_url");

	return given.len ? given : arena_printf(x->arena, "http://%.*s", STR_ARG(exchange_header(x, "Host")));
}

#define METADATA "/.well-known/oauth-protected-resource"

/* An MCP client learns here where it can find out who gives out tokens, if that is known. */
static struct str challenge(struct exchange *x)
{
	struct web_call *call = call_of(x);

	if (!jv_count(jv_get(call->serve->settings, "authorization_servers")) || !call->workspace.len ||
	    !str_starts(x->path, STR("/mcp/")))
		return STR("Bearer realm=\"stead\"");
	return arena_printf(x->arena, "Bearer realm=\"stead\", resource_metadata=\"%.*s" METADATA "/mcp/%.*s\"",
			    STR_ARG(public_url(x)), STR_ARG(call->workspace));
}

static struct jv *words(struct arena *arena, const char *text)
{
	struct jv *list = jv_array(arena);
	struct str rest = str_of(text), word;

	while (str_cut(&rest, ' ', &word))
		jv_push(arena, list, jv_str(arena, word));
	return list;
}

/* RFC 9728. Who it is for need not exist: the answer says nothing about which workspaces there are. */
void run_resource_metadata(struct exchange *x)
{
	struct web_call *call = call_of(x);
	const struct jv *servers = jv_get(call->serve->settings, "authorization_servers");
	struct jv *v = jv_object(x->arena);
	struct str path = call->rest.len ? arena_printf(x->arena, "/mcp/%.*s", STR_ARG(call->rest)) : STR("");

	jv_set_str(x->arena, v, "resource", arena_printf(x->arena, "%.*s%.*s", STR_ARG(public_url(x)), STR_ARG(path)));
	if (jv_count(servers))
		jv_set(x->arena, v, "authorization_servers", (struct jv *)servers);
	jv_set(x->arena, v, "scopes_supported", words(x->arena, "read write admin"));
	jv_set(x->arena, v, "bearer_methods_supported", words(x->arena, "header"));
	jv_set_str(x->arena, v, "resource_name", STR("Stead"));
	answer_json(x, 200, v);
}

void answer_problem(struct exchange *x, int status, const struct err *err, const struct jv *more)
{
	struct jv *v = jv_object(x->arena);
	struct buf text;

	jv_set_str(x->arena, v, "type", STR("about:blank"));
	jv_set_str(x->arena, v, "title", str_of(title_of(status)));
	jv_set_int(x->arena, v, "status", status);
	jv_set_str(x->arena, v, "detail", err_text(x->arena, err));
	jv_set_str(x->arena, v, "kind", str_of(err_kind_name(err->kind)));
	jv_set_bool(x->arena, v, "retryable", err->retryable);
	jv_set_str(x->arena, v, "request_id", str_of(x->id));
	for (const struct jv_member *m = jv_first(more); m; m = m->next)
		jv_set_key(x->arena, v, m->key, m->value);
	if (status == 401)
		exchange_add_header(x, "WWW-Authenticate", challenge(x));
	if (status == 429 || status == 503)
		exchange_add_header(x, "Retry-After",
				    arena_printf(x->arena, "%u", call_of(x)->retry_s ? call_of(x)->retry_s : 1));
	exchange_add_header(x, "Content-Type", STR("application/problem+json"));
	buf_init(&text, x->arena, JSON_LEN_MAX);
	jv_write(&text, v);
	exchange_answer(x, status, buf_str(&text));
}

void answer_error(struct exchange *x, const struct err *err)
{
	answer_problem(x, http_status(err->kind), err, NULL);
}

void answer_json_text(struct exchange *x, int status, struct str text)
{
	exchange_add_header(x, "Content-Type", STR("application/json"));
	exchange_answer(x, status, text);
}

void answer_json(struct exchange *x, int status, const struct jv *value)
{
	struct buf text;
	struct err err;

	buf_init(&text, x->arena, 2 * JSON_LEN_MAX);
	jv_write(&text, value);
	if (text.overflow) {
		err_set(&err, ERR_TOO_LARGE, "the result is too large to send; ask for less");
		answer_error(x, &err);
		return;
	}
	answer_json_text(x, status, buf_str(&text));
}

void answer_empty(struct exchange *x, int status)
{
	exchange_answer(x, status, STR(""));
}

void answer_event_stream(struct exchange *x, const struct stream_opts *opts, struct stream **ret)
{
	exchange_add_header(x, "Content-Type", STR("text/event-stream"));
	exchange_add_header(x, "Cache-Control", STR("no-store"));
	exchange_add_header(x, "X-Accel-Buffering", STR("no"));
	*ret = exchange_answer_stream(x, 200, opts);
}

int body_text(struct exchange *x, struct str *ret, struct err *err)
{
	size_t len = 0;
	char *bytes;

	*ret = x->body;
	if (x->body_fd < 0)
		return 0;
	bytes = arena_alloc_raw(x->arena, (size_t)x->body_size + 1);
	while (len < x->body_size) {
		ssize_t n = pread(x->body_fd, bytes + len, (size_t)x->body_size - len, (off_t)len);

		if (n <= 0)
			return err_set(err, ERR_INTERNAL, "the body of the request cannot be read back");
		len += (size_t)n;
	}
	*ret = str_n(bytes, len);
	return 0;
}

int body_map(struct exchange *x, struct body_view *ret, struct err *err)
{
	*ret = (struct body_view){.text = x->body};
	if (x->body_fd < 0)
		return 0;
	ret->size = (size_t)x->body_size;
	ret->mapped = mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, x->body_fd, 0);
	if (ret->mapped == MAP_FAILED) {
		ret->mapped = NULL;
		return err_set(err, ERR_INTERNAL, "the body of the request cannot be read back");
	}
	ret->text = str_n(ret->mapped, ret->size);
	return 0;
}

void body_unmap(struct body_view *view)
{
	if (view->mapped)
		munmap(view->mapped, view->size);
}

int body_json(struct exchange *x, struct jv **ret, struct err *err)
{
	struct str text;
	int r = body_text(x, &text, err);

	if (r)
		return r;
	if (str_trim(text).len == 0) {
		*ret = jv_object(x->arena);
		return 0;
	}
	r = jv_parse(x->arena, text, ret, err);
	if (r)
		return err_prefix(err, "the body of the request");
	if ((*ret)->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "the body of the request must be a JSON object");
	return 0;
}
