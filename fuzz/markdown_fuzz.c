/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown to HTML. Beyond "does not crash": every '<' that comes out begins a tag of the module's own, so no HTML of
 * the text is passed on; UTF-8 stays UTF-8; a link leads to the web or to a mail address.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "home/media/markdown.h"
#include "text/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool is_own(const char *name)
{
	static const char *const names[] = {"a",     "blockquote", "br", "code", "del",   "em", "h1", "h2",  "h3",
					    "h4",    "h5",         "h6", "hr",   "li",    "ol", "p",  "pre", "strong",
					    "table", "tbody",      "td", "th",   "thead", "tr", "ul"};

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);
	struct html_token token;
	struct html_scan scan;
	struct err err;
	struct buf out;

	buf_init(&out, arena, 64 * MIB);
	require(markdown_to_html(&out, text, &err) == 0);
	require(out.len <= 64 * MIB);
	require(!utf8_valid(text) || utf8_valid(buf_str(&out)));
	scan = (struct html_scan){.rest = buf_str(&out)};
	while (html_next(&scan, &token))
		require(token.kind == HTML_TEXT || is_own(token.name));
	return 0;
}
