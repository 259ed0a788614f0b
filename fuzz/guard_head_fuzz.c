/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of requests to the browser's proxy. Beyond "does not crash": what is accepted names a host and a port, and the
 * head that the server gets is whole lines, begins with the method and a path, says once that the connection ends, and
 * has nothing that was meant for the proxy.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/guard_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_head(struct str head)
{
	struct str line, word;
	size_t closes = 0, ends = 0;

	require(str_ends(head, STR("\r\n\r\n")));
	require(str_cut(&head, '\n', &line) && str_ends(line, STR(" HTTP/1.1\r")));
	require(str_cut(&line, ' ', &word) && word.len > 0 && str_starts(line, STR("/")));
	while (str_cut(&head, '\n', &line)) {
		require(str_ends(line, STR("\r")) || !head.len);
		require(!str_eq_nocase(str_first(line, 6), STR("proxy-")));
		closes += str_eq_nocase(str_first(line, 10), STR("connection"));
		ends += line.len == 1;
	}
	require(closes == 1 && ends == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct guard_request request;
	struct err err;

	if (size > GUARD_HEAD_MAX || guard_head_parse(arena, str_n(data, size), &request, &err) != 0)
		return 0;
	require(request.host.len > 0 && request.port > 0);
	for (size_t i = 0; i < request.host.len; i++)
		require(request.host.ptr[i] > ' ' && request.host.ptr[i] < 0x7F);
	if (request.head.ptr)
		check_head(request.head);
	return 0;
}
