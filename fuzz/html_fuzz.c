/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTML of the web. Beyond "does not crash": the scanner uses up its input, what comes out is UTF-8 when what went in
 * was, it has no control characters but line breaks and tabs, and its length is bounded by that of the input.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "text/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_scan(struct str html)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct html_scan scan = {.rest = html};
	struct html_token t;
	size_t tokens = 0;

	while (html_next(&scan, &t)) {
		require(++tokens <= html.len);
		if (t.kind != HTML_TEXT)
			(void)html_attribute(arena, &t, "href");
	}
	require(scan.rest.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str html = str_n(data, size);
	struct html_page page = {0};
	struct buf out;

	check_scan(html);
	buf_init(&out, arena, MIB);
	html_to_markdown(&out, html, &page);
	require(!utf8_valid(html) || (utf8_valid(buf_str(&out)) && utf8_valid(page.title)));
	for (size_t i = 0; i < out.len; i++)
		require((unsigned char)out.ptr[i] >= ' ' || out.ptr[i] == '\n' || out.ptr[i] == '\t');
	require(out.len <= 256 * (size + 1));
	return 0;
}
