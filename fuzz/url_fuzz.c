/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs and references to them. The input is cut at its first line break: a URL before it, a reference after it. Beyond
 * "does not crash": what is accepted is written in a form that is accepted again and means the same, and has nothing in
 * it that another parser could read differently.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check(struct arena *arena, const struct url *url)
{
	struct str text = url_format(arena, url);
	struct err err = {0};
	struct url again;

	require(url->host.len && url->port && url->target.len && url->target.ptr[0] == '/');
	for (size_t i = 0; i < text.len; i++)
		require(text.ptr[i] > ' ' && text.ptr[i] < 0x7F && text.ptr[i] != '\\');
	for (size_t i = 0; i < url->host.len; i++)
		require(url->host.ptr[i] != '@' && url->host.ptr[i] != '/' && url->host.ptr[i] != '?');
	if (url_parse(arena, text, &again, &err) == 0)
		require(again.tls == url->tls && str_eq(again.host, url->host) && again.port == url->port &&
			str_eq(again.target, url->target));
	else
		require(err.kind == ERR_TOO_LARGE); /* encoding made it longer */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str all = str_n(data, size), text = str_first(all, str_find_char(all, '\n'));
	struct err err = {0};
	struct url url, joined;

	if (url_parse(arena, text, &url, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	check(arena, &url);
	if (url_join(arena, &url, str_from(all, text.len + 1), &joined, &err) == 0)
		check(arena, &joined);
	return 0;
}
