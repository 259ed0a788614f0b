/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel is asked for by "CONNECT host:port", anything else by a whole URL, which the strict parser of net/url.h
 * reads. The server gets the path alone, without the headers that are meant for the proxy, and "Connection: close": the
 * next request may be for another host.
 */
#include "net/guard_head.h"

#include "base/buf.h"
#include "net/url.h"

/* Visible characters of ASCII only: nothing in it could end a line or a word. */
static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7F)
			return false;
	return s.len > 0;
}

/* "host:443", "[::1]:443" */
static bool split_target(struct str target, struct str *ret_host, uint16_t *ret_port)
{
	size_t colon = str_rfind_char(target, ':');
	int64_t port;

	if (!is_word(target) || colon == target.len || !str_to_i64(str_from(target, colon + 1), &port) || port < 1 ||
	    port > 65535)
		return false;
	*ret_host = str_first(target, colon);
	if (ret_host->len > 2 && str_starts(*ret_host, STR("[")) && str_ends(*ret_host, STR("]")))
		*ret_host = str_n(ret_host->ptr + 1, ret_host->len - 2);
	*ret_port = (uint16_t)port;
	return ret_host->len > 0;
}

static struct str origin_head(struct arena *arena, struct str method, const struct url *url, struct str fields)
{
	struct str line;
	struct buf out;

	buf_init(&out, arena, 8 * GUARD_HEAD_MAX); /* a path may grow: what is not legal in it is encoded */
	buf_printf(&out, "%.*s %.*s HTTP/1.1\r\n", STR_ARG(method), STR_ARG(url->target));
	while (str_cut(&fields, '\n', &line)) {
		line = str_ends(line, STR("\r")) ? str_first(line, line.len - 1) : line;
		if (line.len && !str_eq_nocase(str_first(line, 6), STR("proxy-")) &&
		    !str_eq_nocase(str_first(line, 10), STR("connection")))
			buf_printf(&out, "%.*s\r\n", STR_ARG(line));
	}
	buf_lit(&out, "Connection: close\r\n\r\n");
	return buf_str(&out);
}

int guard_head_parse(struct arena *arena, struct str head, struct guard_request *ret, struct err *err)
{
	size_t end = str_find(head, STR("\r\n"), 0);
	struct str line = str_first(head, end), method = STR_NONE, target = STR_NONE;
	struct url url;
	int r;

	if (end == SIZE_MAX || str_find_char(head, '\0') < head.len || !str_cut(&line, ' ', &method) ||
	    !str_cut(&line, ' ', &target) || !is_word(method))
		return err_set(err, ERR_INVALID, "the request to the proxy cannot be read");
	*ret = (struct guard_request){0};
	if (str_is(method, "CONNECT"))
		return split_target(target, &ret->host, &ret->port)
			       ? 0
			       : err_set(err, ERR_INVALID, "the address of the request cannot be read");
	r = url_parse(arena, target, &url, err);
	if (r)
		return r;
	ret->host = url.host;
	ret->port = url.port;
	ret->head = origin_head(arena, method, &url, str_from(head, end + 2));
	return 0;
}
