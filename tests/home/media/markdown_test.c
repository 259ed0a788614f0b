/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown becomes HTML that shows the same, and no HTML of the text gets through. */
#include "test.h"

#include "base/limits.h"
#include "home/media/markdown.h"

static struct arena *arena;

static struct str html(struct str text)
{
	struct err err;
	struct buf out;

	if (!arena)
		arena = arena_new();
	buf_init(&out, arena, 8 * MIB);
	CHECK_OK(markdown_to_html(&out, text, &err), err);
	return out.ptr ? buf_str(&out) : STR("");
}

#define IS(text, want) CHECK_STR(html(STR(text)), STR(want))

TEST(headings_paragraphs_and_rules_keep_their_form)
{
	IS("# One #\n\nTwo\nlines\n\nThree\n===\n\nFour\n---\n\n***\n",
	   "<h1>One</h1>\n<p>Two\nlines</p>\n<h1>Three</h1>\n<h2>Four</h2>\n<hr>\n");
	IS("#tag is text", "<p>#tag is text</p>\n");
	IS("a  \nb\\\nc", "<p>a<br>\nb<br>\nc</p>\n");
}

TEST(lists_are_nested_and_numbered)
{
	IS("- a\n- b\n  - c\n\n    d\n",
	   "<ul>\n<li>a</li>\n<li>b<ul>\n<li><p>c</p>\n<p>d</p>\n</li>\n</ul>\n</li>\n</ul>\n");
	IS("3. a\n4. b\n", "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n");
	IS("- [ ] a\n- [x] b\n", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n");
	IS("text\n- a\n\nafter", "<p>text</p>\n<ul>\n<li>a</li>\n</ul>\n<p>after</p>\n");
}

TEST(code_and_quotations_keep_what_is_in_them)
{
	IS("```c\nif (a < b && *p)\n\n```\n", "<pre><code>if (a &lt; b &amp;&amp; *p)\n\n</code></pre>\n");
	IS("    x\n", "<pre><code>x\n</code></pre>\n");
	IS("> a\n> > b\n", "<blockquote>\n<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>\n</blockquote>\n");
	IS("```\nnot closed", "<pre><code>not closed\n</code></pre>\n");
}

TEST(tables_have_their_columns_aligned)
{
	IS("| a | b |\n|---|--:|\n| `x|y` | 2 |\n",
	   "<table>\n<thead>\n<tr><th>a</th>\n<th style=\"text-align:right\">b</th>\n</tr>\n</thead>\n<tbody>\n"
	   "<tr><td><code>x|y</code></td>\n<td style=\"text-align:right\">2</td>\n</tr>\n</tbody>\n</table>\n");
}

TEST(marks_become_elements_and_others_stay_text)
{
	IS("**b** *i* _j_ ~~s~~ ***t***",
	   "<p><strong>b</strong> <em>i</em> <em>j</em> <del>s</del> <em><strong>t</strong></em></p>\n");
	IS("snake_case_name 2 * 3 * 4 a*", "<p>snake_case_name 2 * 3 * 4 a*</p>\n");
	IS("\\*a\\* `*b*` ``c ` d``", "<p>*a* <code>*b*</code> <code>c ` d</code></p>\n");
	IS("[l *x*](https://e.example/a_b \"t\") <https://f.example> https://g.example/x.",
	   "<p><a href=\"https://e.example/a_b\">l <em>x</em></a> <a href=\"https://f.example\">https://f.example</a> "
	   "<a href=\"https://g.example/x\">https://g.example/x</a>.</p>\n");
}

TEST(html_scripts_and_pictures_of_the_text_do_not_get_through)
{
	IS("<script>x</script> a<br>b", "<p>&lt;script&gt;x&lt;/script&gt; a<br>\nb</p>\n");
	IS("[a](javascript:x) [b](file:///etc/passwd) ![p](http://q/)", "<p>a b p</p>\n");
	IS("[b](https://x/\"onload=y)", "<p><a href=\"https://x/&quot;onload=y\">b</a></p>\n");
	IS("[a](javascript&#58;x) [b](&#104;ttps://x/) [c](HTTPS://x/?a=1&amp;b=2)",
	   "<p>a b <a href=\"HTTPS://x/?a=1&amp;b=2\">c</a></p>\n");
	IS("[![p [q](https://q/)](https://p/)](https://x/)", "<p>[p <a href=\"https://q/\">q</a>](https://x/)</p>\n");
	IS("a\0b", "<p>a\xef\xbf\xbd"
		   "b</p>\n");
	IS("&amp; &#60; & &x", "<p>&amp; &#60; &amp; &amp;x</p>\n");
}

TEST(a_text_of_nothing_but_marks_is_bounded)
{
	static const char *const units[] = {"*a ", "[", "`a``", "> ", "- ", "_a", "![", "<", "**", "|\n|-\n"};

	for (size_t i = 0; i < COUNT(units); i++) {
		struct buf text;

		buf_init(&text, NULL, MIB);
		while (text.len < 50000)
			buf_add(&text, str_of(units[i]));
		CHECK(html(buf_str(&text)).len > 0);
		buf_release(&text);
	}
}

TEST(a_long_address_that_is_used_many_times_stops_at_the_ceiling)
{
	struct buf text, out;
	struct err err;

	buf_init(&text, NULL, 8 * MIB);
	buf_lit(&text, "[x]: https://");
	while (text.len < 200000)
		buf_lit(&text, "aaaaaaaa");
	buf_lit(&text, "\n\n");
	while (text.len < 600000)
		buf_lit(&text, "[x] ");
	buf_init(&out, NULL, 8 * MIB);
	CHECK_OK(markdown_to_html(&out, buf_str(&text), &err), err);
	CHECK(out.overflow && out.len <= 8 * MIB);
	buf_release(&out);
	buf_release(&text);
}
