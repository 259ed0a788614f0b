/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 between a command and a server: one request after the other, each read as a whole head, checked, and written
 * again from its parts. What decides where a message ends is decided here once, so the server cannot see a second
 * request where this saw a body.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/http_head.h"
#include "sandbox/net_internal.h"

enum framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_TO_THE_END };

struct body {
	enum framing framing;
	uint64_t left;
	struct http_chunks chunks;
};

/* An answer of our own, after which the connection ends. The reason is in the log too. */
static void answer_error(struct conn *c, int status, const char *word)
{
	struct str why = c->log.reason;
	struct buf text;

	buf_init(&text, c->arena, 2 * KIB);
	buf_printf(&text,
		   "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
		   "Content-Length: %zu\r\n\r\nThe sandbox refused this request: %.*s\n",
		   status, word, why.len + strlen("The sandbox refused this request: \n"), STR_ARG(why));
	c->log.received += side_write(c, &c->in, buf_str(&text)) ? text.len : 0;
}

static bool refuse(struct conn *c, int status, const char *why)
{
	conn_refuse(c, SANDBOX_NET_REFUSED, "%s", why);
	answer_error(c, status, status == 403 ? "Forbidden" : status == 400 ? "Bad Request" : "Bad Gateway");
	return false;
}

/* --- heads --- */

/* Between two requests the server may close, which ends the connection. */
static bool wait_for_request(struct conn *c)
{
	int64_t until = deadline_in(SANDBOX_NET_IDLE_MS);
	struct err ignored;
	size_t len;
	char byte;

	while (!side_have(&c->in).len && !(c->in.tls && tls_has_more(c->in.tls))) {
		struct pollfd fds[3] = {{.fd = c->in.fd, .events = POLLIN},
					{.fd = c->out.fd, .events = POLLIN},
					{.fd = c->net->stop_fd, .events = POLLIN}};
		int n = poll(fds, 3, 1000);

		if ((n < 0 && errno != EINTR) || (n > 0 && fds[2].revents) || clock_monotonic_ns() > until)
			return false;
		if (n > 0 && fds[1].revents &&
		    (!c->out.tls || tls_read(c->out.tls, &byte, 1, &len, &ignored) != TLS_WANT_READ))
			return false; /* TLS may have sent something of its own */
		if (n > 0 && fds[0].revents)
			return true;
	}
	return true;
}

/* 1: a request, 0: the command has ended the connection, -1: it was refused. */
static int read_request(struct conn *c, struct http_head *head, bool is_first)
{
	int64_t deadline = deadline_in(is_first || side_have(&c->in).len ? c->net->head_ms : SANDBOX_NET_IDLE_MS);
	bool began = is_first;
	enum head_state state;

	while ((state = http_head_request(side_have(&c->in), head)) == HEAD_MORE) {
		bool empty = !side_have(&c->in).len;
		int n;

		if (!empty && !began) {
			began = true;
			deadline = deadline_in(c->net->head_ms);
		}
		n = side_fill(c, &c->in, deadline);
		if (n > 0)
			continue;
		if (empty && !is_first) {
			c->log.outcome = SANDBOX_NET_ENDED; /* an idle connection may end in any way */
			return 0;
		}
		conn_refuse(c, SANDBOX_NET_FAILED, "the request is incomplete");
		return -1;
	}
	if (state == HEAD_DONE) { /* of its own, because what was read is moved when more is read */
		(void)http_head_request(arena_str(c->arena, str_first(side_have(&c->in), head->len)), head);
		return 1;
	}
	conn_refuse(c, SANDBOX_NET_REFUSED, "the request is malformed: %s", head->reason_bad);
	answer_error(c, 400, "Bad Request");
	return -1;
}

static bool read_answer(struct conn *c, struct http_head *head)
{
	int64_t deadline = deadline_in(SANDBOX_NET_IDLE_MS);
	enum head_state state;

	while ((state = http_head_answer(side_have(&c->out), head)) == HEAD_MORE)
		if (side_fill(c, &c->out, deadline) <= 0)
			return conn_refuse(c, SANDBOX_NET_FAILED, "the server closed the connection without an answer");
	if (state == HEAD_BAD)
		conn_refuse(c, SANDBOX_NET_FAILED, "the answer is malformed: %s", head->reason_bad);
	return state == HEAD_DONE;
}

/* "name", "name:port": the name of the connection, and its port. */
static bool is_own_host(const struct conn *c, struct str host)
{
	size_t colon = str_find_char(host, ':');
	struct str port = str_from(host, colon + 1);
	char clean[DNS_NAME_MAX + 1];
	size_t len;
	int64_t n = c->port;

	if (!dns_name_clean(str_first(host, colon), clean, &len) || (colon < host.len && !str_to_i64(port, &n)))
		return false;
	if (n != c->port)
		return false;
	return str_eq(str_n(clean, len), c->name) ||
	       (str_is(c->name, "localhost") && str_is(str_n(clean, len), "127.0.0.1"));
}

static bool is_web_socket(const struct conn *c, const struct http_head *head)
{
	return !c->has_secret && str_eq_nocase(http_head_find(head, "upgrade"), STR("websocket"));
}

static bool may_ask(struct conn *c, const struct http_head *head)
{
	if (!is_own_host(c, head->host)) {
		conn_refuse(c, SANDBOX_NET_REFUSED,
			    "the request is for the host \"%.*s\", but the connection is for %.*s:%u",
			    STR_ARG(utf8_first(head->host, 100)), STR_ARG(c->name), c->port);
		answer_error(c, 403, "Forbidden");
		return false;
	}
	if (c->has_secret && str_eq_nocase(head->method, STR("TRACE")))
		return refuse(c, 403, "TRACE returns what was sent, and this host gets a secret");
	return true;
}

/* --- bodies --- */

static bool send_piece(struct conn *c, struct side *to, struct str bytes, bool chunked)
{
	char size[24];

	if (!bytes.len)
		return true;
	if (chunked) {
		snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
		return side_write(c, to, str_of(size)) && side_write(c, to, bytes) && side_write(c, to, STR("\r\n"));
	}
	return side_write(c, to, bytes);
}

/* Bytes of the body from what was read. False: it is malformed. */
static bool cut_body(struct body *body, struct side *from, struct str *ret)
{
	struct str have = side_have(from), rest = have;

	if (body->framing == BODY_CHUNKED) {
		http_chunks_take(&body->chunks, &rest, ret);
		side_use(from, have.len - rest.len);
		return body->chunks.state != CHUNK_BAD;
	}
	*ret = body->framing == BODY_LENGTH && body->left < have.len ? str_first(have, (size_t)body->left) : have;
	body->left -= body->framing == BODY_LENGTH ? ret->len : 0;
	side_use(from, ret->len);
	return true;
}

static bool is_over(const struct body *body)
{
	return body->framing == BODY_NONE || (body->framing == BODY_LENGTH && !body->left) ||
	       (body->framing == BODY_CHUNKED && body->chunks.state == CHUNK_OVER);
}

static bool pass_piece(struct conn *c, struct side *to, const struct body *body, struct str piece, bool is_end,
		       struct mask *mask)
{
	bool chunked = body->framing == BODY_CHUNKED;
	struct str ready = piece;

	if (mask)
		mask_add(mask, piece, is_end, &ready);
	if (!send_piece(c, to, ready, chunked))
		return false;
	if (mask)
		mask_used(mask, ready.len);
	return !is_end || !chunked || side_write(c, to, STR("0\r\n\r\n"));
}

/* Passes the body on; with `mask`, without the secrets. */
static bool pass_body(struct conn *c, struct side *from, struct side *to, struct body *body, struct mask *mask)
{
	struct str piece;

	while (!is_over(body)) {
		if (!side_have(from).len) {
			int n = side_fill(c, from, deadline_in(SANDBOX_NET_IDLE_MS));

			if (n == 0 && body->framing == BODY_TO_THE_END)
				return pass_piece(c, to, body, STR_NONE, true, mask);
			if (n <= 0)
				return conn_refuse(c, SANDBOX_NET_FAILED,
						   "the connection was closed in the middle of a body");
		}
		if (!cut_body(body, from, &piece))
			return conn_refuse(c, SANDBOX_NET_FAILED, "a body is malformed");
		if (!pass_piece(c, to, body, piece, is_over(body), mask))
			return false;
	}
	return true;
}

/* --- an exchange --- */

static struct body body_of(const struct http_head *head, enum framing otherwise)
{
	return (struct body){.framing = head->is_chunked                   ? BODY_CHUNKED
					: head->has_length && head->length ? BODY_LENGTH
					: head->has_length                 ? BODY_NONE
									   : otherwise,
			     .left = head->length};
}

static bool send_request(struct conn *c, const struct http_head *head)
{
	struct body body = body_of(head, BODY_NONE);
	struct buf text;

	buf_init(&text, c->arena, 4 * HEAD_BYTES_MAX);
	net_secret_request(c, head, &text);
	if (head->is_chunked)
		buf_lit(&text, "Transfer-Encoding: chunked\r\n");
	if (is_web_socket(c, head))
		buf_lit(&text, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (head->wants_close || head->minor == 0)
		buf_lit(&text, "Connection: close\r\n");
	buf_lit(&text, "\r\n");
	if (text.overflow)
		return conn_refuse(c, SANDBOX_NET_REFUSED, "the request is too large");
	if (!side_write(c, &c->out, buf_str(&text)))
		return false;
	/* the server's own word on it would be waited for by both */
	if (http_head_find(head, "expect").ptr && body.framing != BODY_NONE &&
	    !side_write(c, &c->in, STR("HTTP/1.1 100 Continue\r\n\r\n")))
		return false;
	side_use(&c->in, head->len);
	return pass_body(c, &c->in, &c->out, &body, NULL);
}

/* What the command gets of an answer's head. */
static bool send_head(struct conn *c, const struct http_head *head, bool closes, bool upgrades)
{
	struct buf text;

	buf_init(&text, c->arena, 2 * HEAD_BYTES_MAX);
	buf_printf(&text, "HTTP/1.1 %d %.*s\r\n", head->status, STR_ARG(head->reason));
	for (size_t i = 0; i < head->count; i++)
		if (!http_head_is_hop(head->fields[i].name))
			buf_printf(&text, "%.*s: %.*s\r\n", STR_ARG(head->fields[i].name),
				   STR_ARG(head->fields[i].value));
	if (head->is_chunked)
		buf_lit(&text, "Transfer-Encoding: chunked\r\n");
	if (upgrades)
		buf_lit(&text, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (closes)
		buf_lit(&text, "Connection: close\r\n");
	buf_lit(&text, "\r\n");
	if (c->has_secret)
		mask_text(c->net, text.ptr, text.len);
	return side_write(c, &c->in, buf_str(&text));
}

/* True: another request may follow. */
static bool pass_answer(struct conn *c, const struct http_head *request)
{
	struct http_head *head = ARENA_NEW(c->arena, struct http_head);
	struct str coding;
	struct body body;
	struct mask mask;
	bool closes, none;

	do {
		if (head->len)
			side_use(&c->out, head->len); /* 100 and its like */
		if (!read_answer(c, head))
			return false;
	} while (head->status < 200 && head->status != 101);
	if (head->status == 101) {
		if (!is_web_socket(c, request))
			return conn_refuse(c, SANDBOX_NET_REFUSED, "the server switches to another protocol");
		side_use(&c->out, head->len);
		if (send_head(c, head, false, true) && side_write(c, &c->in, side_have(&c->out)) &&
		    side_write(c, &c->out, side_have(&c->in))) {
			c->out.at = c->out.len = c->in.at = c->in.len = 0;
			conn_relay(c);
		}
		return false;
	}
	coding = http_head_find(head, "content-encoding");
	if (c->has_secret && coding.ptr && !str_eq_nocase(coding, STR("identity")))
		return refuse(c, 502, "the answer is compressed, so it cannot be searched for the secret");
	none = str_is(request->method, "HEAD") || head->status == 204 || head->status == 304;
	body = body_of(head, BODY_TO_THE_END);
	if (none)
		body.framing = BODY_NONE;
	closes = request->wants_close || request->minor == 0 || head->wants_close || head->minor == 0 ||
		 body.framing == BODY_TO_THE_END;
	if (!send_head(c, head, closes, false))
		return false;
	side_use(&c->out, head->len);
	mask_init(&mask, c->net, c->arena);
	return pass_body(c, &c->out, &c->in, &body, c->has_secret ? &mask : NULL) && !closes;
}

void net_http_serve(struct conn *c)
{
	struct arena *arena = c->arena;

	if (c->has_secret && !c->is_tls) {
		bool plain = false;

		for (size_t i = 0; i < c->net->given->secret_count; i++)
			plain |=
				str_eq(c->net->given->secrets[i].host, c->name) && c->net->given->secrets[i].plain_http;
		if (!plain) {
			refuse(c, 403, "this host gets a secret, which is not sent without TLS; use https");
			return;
		}
	}
	for (bool first = true;; first = false) {
		ARENA_SCOPE struct arena *one = arena_new(); /* a connection may have many requests */
		struct http_head *head = ARENA_NEW(one, struct http_head);
		bool more;

		c->arena = one;
		more = (first || wait_for_request(c)) && read_request(c, head, first) > 0 && may_ask(c, head);
		if (more && c->out.fd < 0 && !conn_dial(c)) {
			answer_error(c, 502, "Bad Gateway");
			more = false;
		}
		more = more && send_request(c, head) && pass_answer(c, head);
		c->arena = arena;
		if (!more)
			break;
	}
}
