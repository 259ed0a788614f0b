/* SPDX-License-Identifier: Apache-2.0 */
#include "text/markup.h"

static struct str entity(char c)
{
	switch (c) {
	case '&':
		return STR("&amp;");
	case '<':
		return STR("&lt;");
	case '>':
		return STR("&gt;");
	case '"':
		return STR("&quot;");
	default:
		return (unsigned char)c < 32 && c != '\n' && c != '\t' ? STR(" ") : STR_NONE;
	}
}

void markup_escape(struct buf *buf, struct str text)
{
	size_t done = 0;

	for (size_t i = 0; i < text.len; i++) {
		struct str e = entity(text.ptr[i]);

		if (!e.ptr)
			continue;
		buf_add(buf, str_n(text.ptr + done, i - done));
		buf_add(buf, e);
		done = i + 1;
	}
	buf_add(buf, str_from(text, done));
}
