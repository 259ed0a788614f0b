/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's URI is `stead:///` and its path in the workspace, percent-encoded. It says nothing of where the bytes lie,
 * so it stays the same when a workspace moves, and no path of the host reaches a client.
 */
#include "base/hex.h"
#include "base/limits.h"
#include "mcp/server.h"

#define SCHEME STR("stead:///")

static bool is_unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~' || c == '/';
}

struct str uri_format(struct arena *arena, struct str path)
{
	static const char hex[] = "0123456789ABCDEF";
	struct buf b;

	buf_init(&b, arena, 3 * PATH_LEN_MAX + 16);
	buf_add(&b, SCHEME);
	for (size_t i = 0; i < path.len; i++) {
		unsigned char c = (unsigned char)path.ptr[i];

		if (is_unreserved(c)) {
			buf_char(&b, (char)c);
		} else {
			buf_char(&b, '%');
			buf_char(&b, hex[c >> 4]);
			buf_char(&b, hex[c & 15]);
		}
	}
	return buf_str(&b);
}

/* Reserved characters stand for themselves: a client that fills in the template need not encode them. */
int uri_parse(struct arena *arena, struct str uri, struct wpath *ret_path, struct err *err)
{
	struct str rest, path;

	if (!str_starts(uri, SCHEME))
		return err_set(err, ERR_INVALID, "resource \"%.*s\": a URI here is stead:/// and a path, as in %s",
			       STR_ARG(utf8_first(uri, 100)), "stead:///notes/today.md");
	rest = str_from(uri, SCHEME.len);
	path = percent_decode(arena, rest);
	if (!path.ptr)
		return err_set(
			err, ERR_INVALID,
			"resource \"%.*s\": '%%' must be followed by two hex digits; write %%25 for a percent sign",
			STR_ARG(utf8_first(uri, 100)));
	if (path.len > PATH_LEN_MAX)
		return err_set(err, ERR_INVALID, "the path of this resource is longer than %zu bytes", PATH_LEN_MAX);
	return wpath_parse_lenient(arena, path, ret_path, err);
}
