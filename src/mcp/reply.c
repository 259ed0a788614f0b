/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies. Results are written straight into the output buffer: what a tool read from a file is escaped once, directly
 * from its buffer, and copied nowhere else. Members that every result of an era must have are added here, so that no
 * method can forget them.
 */
#include <stdarg.h>
#include <stdio.h>

#include "mcp/server.h"
#include "stead.h"

#define SERVER_INFO                                                                                                    \
	"\"io.modelcontextprotocol/serverInfo\":{\"name\":\"stead\",\"title\":\"Stead\",\"version\":\"" STEAD_VERSION  \
	"\"}"

struct buf *reply_begin(struct request *req)
{
	struct buf *buf;

	req->urgent = req->in_flight;
	if (!flights_remove(req->server, req))
		return NULL;
	buf = out_begin(req->out);
	req->reply_start = buf->len;
	buf_lit(buf, "{\"jsonrpc\":\"2.0\",\"id\":");
	jv_write(buf, req->id);
	buf_lit(buf, ",\"result\":{");
	return buf;
}

static void write_tail(struct request *req, struct buf *buf, size_t members)
{
	bool modern = req->form == FORM_MODERN;

	if (members && (modern || req->failed))
		buf_char(buf, ',');
	if (modern)
		buf_printf(buf, "\"resultType\":\"%s\",\"_meta\":{" SERVER_INFO,
			   req->result_type ? req->result_type : "complete");
	else if (req->failed)
		buf_lit(buf, "\"_meta\":{");
	if (req->failed)
		buf_printf(buf, "%s\"stead/error\":{\"kind\":\"%s\",\"retryable\":%s}", modern ? "," : "",
			   err_kind_name(req->failed->kind), req->failed->retryable ? "true" : "false");
	if (modern || req->failed)
		buf_char(buf, '}');
	buf_lit(buf, "}}\n");
}

void reply_end(struct request *req, struct buf *buf, size_t members)
{
	write_tail(req, buf, members);
	if (buf->overflow) {
		struct rpc_error error = {RPC_INTERNAL, STR("the result is too large to send; ask for less"), NULL};

		buf->len = req->reply_start;
		buf->overflow = false;
		rpc_write_error(buf, req->id, &error);
	}
	out_end(req->out, req->urgent);
}

void reply_value(struct request *req, const struct jv *result)
{
	struct buf *buf = reply_begin(req);
	size_t members = 0;

	if (!buf)
		return;
	for (const struct jv_member *m = jv_first(result); m; m = m->next) {
		if (members++)
			buf_char(buf, ',');
		jv_write_string(buf, m->key);
		buf_char(buf, ':');
		jv_write(buf, m->value);
	}
	reply_end(req, buf, members);
}

void reply_error(struct request *req, int code, const struct jv *data, const char *fmt, ...)
{
	struct rpc_error error = {.code = code, .data = data};
	struct server *s = req->server;
	bool urgent = req->in_flight;
	char message[600];
	va_list ap;
	int n;

	if (!flights_remove(s, req))
		return;
	va_start(ap, fmt);
	n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	error.message = utf8_first(str_n(message, n < 0 ? 0 : (size_t)n), sizeof(message) - 1);
	if (!req->out->collects) /* that is another thread's */
		s->error_code = code;
	rpc_write_error(out_begin(req->out), req->id, &error);
	out_end(req->out, urgent);
}

void reply_store_error(struct request *req, struct str uri, const struct err *err)
{
	struct jv *data = jv_object(req->arena);
	int code;

	jv_set_str(req->arena, data, "uri", uri);
	jv_set_str(req->arena, data, "kind", str_of(err_kind_name(err->kind)));
	switch (err->kind) {
	case ERR_NOT_FOUND:
		code = req->form == FORM_MODERN ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE_LEGACY;
		break;
	case ERR_INVALID:
	case ERR_DENIED:
	case ERR_TOO_LARGE:
	case ERR_UNSUPPORTED:
		code = RPC_INVALID_PARAMS;
		break;
	default:
		code = RPC_INTERNAL;
	}
	reply_error(req, code, data, "%s", err->msg);
}

void reply_cache_hint(struct request *req, struct jv *result, int64_t ttl_ms)
{
	if (req->form != FORM_MODERN)
		return;
	jv_set_int(req->arena, result, "ttlMs", ttl_ms);
	/* what a workspace offers depends on whose it is */
	jv_set_str(req->arena, result, "cacheScope", STR("private"));
}
