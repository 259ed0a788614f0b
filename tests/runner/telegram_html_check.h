/* SPDX-License-Identifier: Apache-2.0 */
/* Telegram's rules for HTML, as its documentation has them: known tags that match, and no bare '<' or '&'. */
#ifndef STEAD_TESTS_RUNNER_TELEGRAM_HTML_CHECK_H
#define STEAD_TESTS_RUNNER_TELEGRAM_HTML_CHECK_H

#include <stdbool.h>

#include "base/str.h"

/* Checks one tag and keeps the stack of open ones. */
static bool telegram_html_tag(struct str tag, struct str *open, size_t *depth)
{
	static const char *const known[] = {"b", "i", "s", "u", "a", "code", "pre", "blockquote"};
	bool closes = str_starts(tag, STR("/"));
	struct str name = str_first(tag, str_find_char(tag, ' '));

	if (closes)
		return *depth > 0 && str_eq(open[--*depth], str_from(tag, 1));
	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i]) && *depth < 16) {
			open[(*depth)++] = name;
			return true;
		}
	return false;
}

static bool telegram_html_is_valid(struct str html)
{
	struct str open[16];
	size_t depth = 0;

	while (html.len) {
		if (html.ptr[0] == '<') {
			size_t end = str_find_char(html, '>');

			if (end == html.len || !telegram_html_tag(str_n(html.ptr + 1, end - 1), open, &depth))
				return false;
			html = str_from(html, end + 1);
		} else if (html.ptr[0] == '&') {
			if (!str_starts(html, STR("&lt;")) && !str_starts(html, STR("&gt;")) &&
			    !str_starts(html, STR("&amp;")) && !str_starts(html, STR("&quot;")))
				return false;
			html = str_from(html, 1);
		} else {
			html = str_from(html, 1);
		}
	}
	return depth == 0;
}

#endif
