/* SPDX-License-Identifier: Apache-2.0 */
/* HTML becomes Markdown that says the same, whatever the page does. */
#include "test.h"

#include "base/limits.h"
#include "text/html.h"

static struct arena *arena;

static struct str convert(struct str html, struct html_page *page)
{
	struct buf out;

	if (!arena)
		arena = arena_new();
	buf_init(&out, arena, MIB);
	html_to_markdown(&out, html, page);
	return out.ptr ? buf_str(&out) : STR("");
}

static struct str md(const char *html)
{
	struct html_page page = {0};

	return convert(str_of(html), &page);
}

#define IS(html, want) CHECK_STR(md(html), STR(want))

TEST(headings_paragraphs_and_lists_keep_their_form)
{
	IS("<h1>Title</h1><p>One\n  two.<p>Three", "# Title\n\nOne two.\n\nThree");
	IS("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>after", "- a\n- b\n  - c\n- d\n\nafter");
	IS("<ol start=9><li>nine<li>ten<p>more</ol>", "9. nine\n10. ten\n\n    more");
	IS("<blockquote><p>a<p>b<ul><li>c</ul></blockquote>d", "> a\n>\n> b\n>\n> - c\n\nd");
	IS("a<br>b<hr>c", "a\nb\n\n---\n\nc");
	IS("<dl><dt>term<dd>meaning</dl>", "term\nmeaning");
}

TEST(emphasis_has_no_blank_inside_and_an_empty_one_leaves_nothing)
{
	IS("a<b> b </b>c", "a **b** c");
	IS("x <i></i><b> </b>y", "x y");
	IS("<b>a<i>b</b>c</i>d", "**a*b***cd");
	IS("<b>open<p>next", "**open**\n\nnext");
	IS("<b><b>a</b></b>", "**a**");
	IS("<del>gone</del>", "~~gone~~");
}

TEST(links_and_pictures_are_written_as_links)
{
	IS("<a href='http://x/a(b) c'>t</a>", "[t](http://x/a%28b%29%20c)");
	IS("<a href=/x></a><a>plain</a>", "plain");
	IS("<a href=/x><img src=p.png alt='a [b]'></a>", "[![a \\[b\\]](p.png)](/x)");
	IS("<img src=pixel.gif><img src=data:x alt=d>", "");
	IS("<a href='/x?a=1&amp;b=2'>q</a>", "[q](/x?a=1&b=2)");
}

TEST(code_has_a_fence_that_is_longer_than_those_inside)
{
	IS("<code>a`b</code>", "``a`b``");
	IS("<code>&lt;p&gt; *x*</code>", "`<p> *x*`");
	IS("<pre>\n  a\n    b&amp;c\n</pre>", "```\n  a\n    b&c\n```");
	IS("<pre><code class='hl language-c'>int a;</code></pre>x", "```c\nint a;\n```\n\nx");
	IS("<pre>```\nx</pre>", "````\n```\nx\n````");
	IS("<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```");
}

TEST(tables_have_one_line_for_each_row)
{
	IS("<table><tr><th>a<th>b|c<tr><td>1<td><p>2</p><p>3</table>x",
	   "| a | b\\|c |\n| --- | --- |\n| 1 | 2 3 |\n\nx");
	IS("<table><td>a<table><tr><td>in</table>b</table>", "| a in b |\n| --- |");
}

TEST(what_is_not_for_reading_is_left_out)
{
	IS("<script>if (a<b) '</p>'</script><style>p{}</style><nav>menu</nav>text<footer>f</footer>", "text");
	IS("<svg><path/><text>x</text></svg>a<select><option>1<option>2</select>b", "a b");
	IS("a<!-- <p>no</p> -->b<!doctype x>c<?php x ?>d", "abcd");
}

TEST(text_cannot_become_markup)
{
	IS("*a* `b` [c](d) &lt;script&gt; \\", "\\*a\\* \\`b\\` \\[c\\](d) \\<script> \\\\");
	IS("<p># no<p>- no<p>1. no<p>snake_case _x_", "\\# no\n\n\\- no\n\n1\\. no\n\nsnake_case \\_x\\_");
}

TEST(character_references_are_resolved_as_browsers_do)
{
	IS("&amp;&lt;&#65;&#x41&eacute;&hellip;&#150;&bogus;&#0;&#xD800;&nope",
	   "&\\<AA\xC3\xA9\xE2\x80\xA6\xE2\x80\x93&bogus;"
	   "\xEF\xBF\xBD\xEF\xBF\xBD&nope");
}

TEST(the_title_is_one_line)
{
	struct html_page page = {0};

	convert(STR("<title>\n A &amp;\n B </title><title>second</title>x"), &page);
	CHECK_STR(page.title, STR("A & B"));
}

/* Deep nesting, long lines and missing ends must not cost more than the input. */
TEST(hostile_pages_take_time_that_grows_with_their_length)
{
	static const char *const parts[] = {"<ul><li>",  "<blockquote>", "<table><tr><td>", "<b><i>",    "<!--",
					    "<a href='", "&#1",          "<pre>",           "</ul></p>", "<script>"};

	for (size_t i = 0; i < COUNT(parts); i++) {
		struct html_page page = {0};
		struct buf html;

		buf_init(&html, NULL, 2 * MIB);
		while (html.len < MIB)
			buf_add(&html, str_of(parts[i]));
		buf_lit(&html, "end");
		CHECK(convert(buf_str(&html), &page).len <= MIB);
		buf_release(&html);
		arena_reset(arena);
	}
}
