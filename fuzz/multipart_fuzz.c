/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms with files. The input is cut at its first NUL: the Content-Type before it, the body after it. Beyond "does not
 * crash": the bytes of a part are a part of the body, in order, and the boundary does not occur in them.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "server/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str all = str_n(data, size), type = str_first(all, str_find_char(all, 0)), body, boundary;
	struct part *parts = NULL;
	size_t count = 0;
	const char *last;
	struct err err = {0};

	body = str_from(all, type.len + 1);
	boundary = multipart_boundary(arena, type);
	if (!boundary.ptr)
		return 0;
	require(boundary.len > 0 && boundary.len <= 70);
	if (multipart_parse(arena, body, boundary, &parts, &count, &err) != 0) {
		require(err.kind == ERR_INVALID || err.kind == ERR_TOO_LARGE);
		return 0;
	}
	require(count <= MULTIPART_PARTS_MAX);
	last = body.ptr;
	for (size_t i = 0; i < count; i++) {
		struct str mark = arena_printf(arena, "\r\n--%.*s", STR_ARG(boundary));

		require(parts[i].name.ptr != NULL);
		require(str_find(parts[i].bytes, mark, 0) == SIZE_MAX);
		if (!parts[i].bytes.len)
			continue;
		require(parts[i].bytes.ptr >= last && parts[i].bytes.ptr + parts[i].bytes.len <= body.ptr + body.len);
		last = parts[i].bytes.ptr + parts[i].bytes.len;
	}
	return 0;
}
