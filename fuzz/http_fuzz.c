/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients of the server write into targets and headers. Beyond "does not crash": a range is within the file, a
 * path has the form of a path, a host and a tag come from the text, and what was encoded is decoded to the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "mcp/jsonrpc.h"
#include "server/mcp_door.h"
#include "server/parse.h"
#include "text/jv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_range(struct str text, uint64_t size)
{
	uint64_t offset, length;

	switch (range_parse(text, size, &offset, &length)) {
	case RANGE_PART:
		require(length > 0 && offset < size && length <= size - offset);
		break;
	case RANGE_WHOLE:
	case RANGE_BEYOND:
		break;
	}
}

static void check_names(struct str text)
{
	struct str host = host_name(text), origin = origin_host(text), tag = etag_single(text),
		   token = bearer_token(text);
	struct str listen_host;
	uint16_t port;
	struct err err;

	require(!host.ptr || (host.ptr >= text.ptr && host.ptr + host.len <= text.ptr + text.len));
	require(!origin.ptr || host_name(origin).len > 0);
	require(!tag.ptr || etag_matches(text, tag, false));
	require(!token.ptr || token.len < text.len);
	/* a name that only looks like loopback must not count as it */
	if (host.ptr && host_is_loopback(host))
		require(str_eq_nocase(host, STR("localhost")) || str_is(host, "::1") || str_starts(host, STR("127.")));
	if (listen_parse(text, &listen_host, &port, &err) == 0)
		require(listen_host.len > 0);
	require(content_type(text) != NULL);
}

static void check_query(struct arena *arena, struct str text)
{
	uint64_t number = 0;
	struct wpath path;
	struct str value;
	struct err err;
	bool flag, found;

	if (query_get(arena, text, "path", &value, &found, &err) == 0 && found)
		require(utf8_valid(value));
	if (query_number(arena, text, "limit", 1000, &number, &err) == 0)
		require(number <= 1000);
	query_flag(arena, text, "recursive", &flag, &err);
	query_check(text, "path limit recursive", &err);
	if (target_path(arena, text, &path, &err) == 0)
		require(wpath_parse(path.s, &path, &err) == 0);
}

/* The first line is the value of a header, the rest a message. */
static void check_mcp(struct arena *arena, struct str text)
{
	struct str line;
	struct mcp_headers headers = {0};
	struct rpc_message msg;
	struct err err;

	if (!str_cut(&text, '\n', &line) || rpc_parse(arena, text, &msg, &err) != 0)
		return;
	headers = (struct mcp_headers){.version = line, .method = msg.method, .name = line};
	mcp_is_modern(&headers, &msg);
	if (mcp_describes_itself(&msg))
		require(jv_get(msg.params, "_meta") != NULL);
	mcp_headers_wrong(arena, &headers, &msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = arena_str(arena, str_n(data, size));

	check_range(text, 0);
	check_range(text, 1);
	check_range(text, 1000);
	check_range(text, UINT64_MAX - 1);
	check_names(text);
	check_query(arena, text);
	check_mcp(arena, text);
	return 0;
}
