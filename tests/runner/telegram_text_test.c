/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown in the forms of Telegram: cut within the limit, and HTML whose tags match. */
#include "test.h"

#include "base/limits.h"
#include "runner/channels/telegram_text.h"
#include "runner/telegram_html_check.h"

static struct str html(struct arena *arena, const char *markdown)
{
	struct buf out;

	buf_init(&out, arena, MIB);
	telegram_html(&out, str_of(markdown));
	return out.ptr ? buf_str(&out) : STR("");
}

TEST(markdown_becomes_the_html_that_telegram_knows)
{
	static const struct {
		const char *markdown, *want;
	} cases[] = {
		{"a **b** *c* _d_ ~~e~~", "a <b>b</b> <i>c</i> <i>d</i> <s>e</s>"},
		{"**a *b* c**", "<b>a <i>b</i> c</b>"},
		{"x `a<b` ``c`d``", "x <code>a&lt;b</code> <code>c`d</code>"},
		{"[t](https://x/?a=1&b=\"2\")", "<a href=\"https://x/?a=1&amp;b=&quot;2&quot;\">t</a>"},
		{"![pic](https://x/p.png)", "<a href=\"https://x/p.png\">pic</a>"},
		{"[t](javascript:x)", "[t](javascript:x)"},
		{"# Title\ntext", "<b>Title</b>\ntext"},
		{"```c\nint a<b;\n```\nx", "<pre><code class=\"language-c\">int a&lt;b;</code></pre>\nx"},
		{"```\nopen", "<pre>open</pre>"},
		{"> q\n> r\ns", "<blockquote>q\nr</blockquote>\ns"},
		{"2 * 3 * 4 snake_case_name **open", "2 * 3 * 4 snake_case_name **open"},
		{"\\*not\\*", "*not*"},
		{"a & b < c > d", "a &amp; b &lt; c &gt; d"},
	};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_STR(html(arena, cases[i].markdown), str_of(cases[i].want));
		CHECK(telegram_html_is_valid(html(arena, cases[i].markdown)));
	}
}

TEST(a_text_is_cut_at_paragraphs_lines_and_words)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str rest = STR("first paragraph\n\nsecond one here\nand more words follow"), piece;

	CHECK(telegram_cut(arena, &rest, 40, &piece));
	CHECK_STR(piece, STR("first paragraph\n\n"));
	CHECK(telegram_cut(arena, &rest, 40, &piece));
	CHECK_STR(piece, STR("second one here\nand more words follow"));
	CHECK(!telegram_cut(arena, &rest, 40, &piece));
}

TEST(a_fence_that_is_cut_is_closed_and_opened_again)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str rest = STR("```py\nline one of code\nline two of code\nline three\n```\nafter"), piece;

	CHECK(telegram_cut(arena, &rest, 40, &piece));
	CHECK_STR(piece, STR("```py\nline one of code\n```"));
	CHECK(telegram_cut(arena, &rest, 60, &piece));
	CHECK_STARTS(piece, STR("```py\nline two of code\n"));
}

/* Words, marks, fences and characters outside the first plane, at random. */
TEST(no_piece_is_too_long_and_no_tag_is_open_whatever_the_text)
{
	static const char *const parts[] = {"word ",    "**",
					    "*",        "_",
					    "`",        "```",
					    "\n",       "\n\n",
					    "```c\n",   "[a](https://x)",
					    "> ",       "# ",
					    "<",        "&",
					    "~~",       "\xF0\x9F\x98\x80",
					    "\xC3\xA9", "\\"};
	uint64_t seed = 3;

	for (int round = 0; round < 300; round++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct buf text;
		struct str rest, piece;
		size_t pieces = 0;

		buf_init(&text, arena, MIB);
		for (int i = 0; i < 4000; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			buf_add(&text, str_of(parts[(seed >> 33) % (round % 2 ? COUNT(parts) : 8)]));
		}
		rest = buf_str(&text);
		while (telegram_cut(arena, &rest, TELEGRAM_TEXT_MAX, &piece)) {
			struct buf out;

			CHECK(++pieces < 100 && telegram_units(piece) <= TELEGRAM_TEXT_MAX && utf8_valid(piece));
			buf_init(&out, arena, MIB);
			telegram_html(&out, piece);
			CHECK(telegram_html_is_valid(buf_str(&out)));
		}
	}
}
