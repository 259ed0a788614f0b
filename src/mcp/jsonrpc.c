/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framing and envelopes.
 *
 * The reader keeps one buffer and cuts lines in place: a message is copied once, by the JSON parser, into the arena of
 * its call. Bytes are searched for '\n' once, however many reads a long line takes. A buffer that a long line made
 * large is given back when the line is done, since a server lives for days and such lines are rare.
 */
#include "mcp/jsonrpc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

#define BUF_FIRST (64 * KIB)
#define BUF_KEEP  (1 * MIB)

void rpc_reader_init(struct rpc_reader *r, int fd, size_t line_max)
{
	*r = (struct rpc_reader){.fd = fd, .line_max = line_max};
}

void rpc_reader_release(struct rpc_reader *r)
{
	free(r->buf);
	*r = (struct rpc_reader){.fd = -1, .ended = true};
}

static struct str without_cr(struct str line)
{
	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

enum rpc_got rpc_reader_next(struct rpc_reader *r, struct str *ret_line)
{
	char *nl = r->searched < r->end ? memchr(r->buf + r->searched, '\n', r->end - r->searched) : NULL;
	size_t line_start = r->start;

	if (nl || (r->ended && r->start < r->end)) {
		size_t line_end = nl ? (size_t)(nl - r->buf) : r->end;
		bool too_long = r->skipping || line_end - line_start > r->line_max;

		r->start = r->searched = nl ? line_end + 1 : line_end;
		r->skipping = false;
		*ret_line = without_cr(str_n(r->buf + line_start, line_end - line_start));
		return too_long ? RPC_TOO_LONG : RPC_LINE;
	}
	if (r->ended && r->skipping) {
		r->skipping = false;
		return RPC_TOO_LONG;
	}
	if (r->ended)
		return RPC_END;
	r->searched = r->end;
	if (r->end - r->start > r->line_max || r->skipping) {
		r->skipping = true;
		r->start = r->end = r->searched = 0;
	}
	return RPC_NEED_MORE;
}

static void make_room(struct rpc_reader *r)
{
	if (r->start == r->end && r->cap > BUF_KEEP) {
		free(r->buf);
		r->buf = NULL;
		r->cap = 0;
	}
	if (r->start) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->searched -= r->start;
		r->end -= r->start;
		r->start = 0;
	}
	if (!r->buf || r->end == r->cap) {
		r->cap = r->cap ? r->cap * 2 : BUF_FIRST;
		r->buf = xrealloc(r->buf, r->cap);
	}
}

void rpc_reader_fill(struct rpc_reader *r)
{
	if (r->start == r->end)
		r->start = r->end = r->searched = 0;
	make_room(r);
	for (;;) {
		ssize_t n = read(r->fd, r->buf + r->end, r->cap - r->end);

		if (n > 0) {
			r->end += (size_t)n;
			return;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = r->fd, .events = POLLIN}, 1, -1);
			continue;
		}
		r->ended = true;
		return;
	}
}

static int refuse(struct err *err, int code, const char *sentence)
{
	err_set(err, ERR_INVALID, "%s", sentence);
	return code;
}

/* A null, fractional, boolean, array or object id cannot be answered to. */
static bool id_ok(const struct jv *id)
{
	return id && (id->type == JV_STR || id->type == JV_INT);
}

static int read_envelope(const struct jv *v, struct rpc_message *ret, struct err *err)
{
	const struct jv *id = jv_get(v, "id"), *method = jv_get(v, "method"), *params = jv_get(v, "params");

	if (id_ok(id))
		ret->id = id;
	if (!str_eq(jv_get_str(v, "jsonrpc"), STR("2.0")))
		return refuse(err, RPC_INVALID_REQUEST, "the member \"jsonrpc\" must be \"2.0\"");
	if (!method && (jv_get(v, "result") || jv_get(v, "error"))) {
		ret->kind = RPC_RESPONSE;
		ret->result = jv_get(v, "result");
		return 0;
	}
	if (!method || method->type != JV_STR)
		return refuse(err, RPC_INVALID_REQUEST, "the member \"method\" must be a string");
	if (id && !ret->id)
		return refuse(err, RPC_INVALID_REQUEST, "the member \"id\" must be a string or an integer");
	ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	ret->method = method->u.s;
	if (jv_is_null(params))
		return 0;
	if (params->type != JV_OBJECT) {
		/* a notification is never answered, not even a wrong one */
		return id ? refuse(err, RPC_INVALID_PARAMS, "the member \"params\" must be an object") : 0;
	}
	ret->params = params;
	return 0;
}

/* The string that begins at `at`, with its quotes; empty when it does not end. */
static struct str raw_string(struct str line, size_t at)
{
	for (size_t i = at + 1; i < line.len; i++) {
		if (line.ptr[i] == '\\')
			i++;
		else if (line.ptr[i] == '"')
			return str_n(line.ptr + at, i + 1 - at);
	}
	return STR("");
}

/* The value that begins at `at`, as an id; NULL when it cannot be one. */
static const struct jv *raw_id(struct arena *arena, struct str line, size_t at)
{
	struct str text = str_from(line, at);
	struct jv *id;
	struct err ignored;
	size_t n = 0;

	while (n < text.len && strchr("-0123456789", text.ptr[n]))
		n++;
	text = text.len && text.ptr[0] == '"' ? raw_string(line, at) : str_first(text, n);
	return text.len && jv_parse(arena, text, &id, &ignored) == 0 && id_ok(id) ? id : NULL;
}

/* The member "id" of a message that is not JSON: a string in it has a lone surrogate or is not UTF-8, or a key occurs
   twice. Its sender still waits for an answer. The first "id" counts. */
static const struct jv *find_id(struct arena *arena, struct str line)
{
	size_t depth = 0;

	for (size_t i = 0; i < line.len; i++) {
		struct str s;

		if (line.ptr[i] == '{' || line.ptr[i] == '[') {
			depth++;
		} else if ((line.ptr[i] == '}' || line.ptr[i] == ']') && depth) {
			depth--;
		} else if (line.ptr[i] == '"') {
			s = raw_string(line, i);
			if (!s.len)
				return NULL;
			i += s.len - 1;
			if (depth != 1 || !str_is(s, "\"id\""))
				continue;
			for (i++; i < line.len && strchr(" \t:", line.ptr[i]);)
				i++;
			return raw_id(arena, line, i);
		}
	}
	return NULL;
}

int rpc_parse(struct arena *arena, struct str line, struct rpc_message *ret, struct err *err)
{
	struct jv *v;

	*ret = (struct rpc_message){0};
	if (jv_parse(arena, line, &v, err) != 0) {
		ret->id = str_starts(str_trim(line), STR("{")) ? find_id(arena, line) : NULL;
		return RPC_PARSE;
	}
	if (v->type == JV_ARRAY)
		return refuse(err, RPC_INVALID_REQUEST, "batches are not supported; send each message on its own line");
	if (v->type != JV_OBJECT)
		return refuse(err, RPC_INVALID_REQUEST, "a message must be a JSON object");
	return read_envelope(v, ret, err);
}

void rpc_write_error(struct buf *buf, const struct jv *id, const struct rpc_error *error)
{
	buf_lit(buf, "{\"jsonrpc\":\"2.0\",");
	if (id) {
		buf_lit(buf, "\"id\":");
		jv_write(buf, id);
		buf_char(buf, ',');
	}
	buf_lit(buf, "\"error\":{\"code\":");
	buf_i64(buf, error->code);
	buf_lit(buf, ",\"message\":");
	jv_write_string(buf, error->message);
	if (error->data) {
		buf_lit(buf, ",\"data\":");
		jv_write(buf, error->data);
	}
	buf_lit(buf, "}}\n");
}
