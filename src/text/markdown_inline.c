/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The marks inside a paragraph. An opening mark looks for its closing one within SPAN_MAX bytes, so that a text of
 * nothing but opening marks costs a bounded time for each; CommonMark's stack of delimiters would pair a few more odd
 * cases, which nobody prints.
 */
#include "text/markdown_internal.h"

#include "base/utf8.h"

#define SPAN_MAX ((size_t)4096)

void markdown_escape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		switch (text.ptr[i]) {
		case '&':
			buf_lit(out, "&amp;");
			break;
		case '<':
			buf_lit(out, "&lt;");
			break;
		case '>':
			buf_lit(out, "&gt;");
			break;
		case '"':
			buf_lit(out, "&quot;");
			break;
		default:
			buf_char(out, text.ptr[i]);
		}
}

static bool is_space_at(struct str s, size_t i)
{
	return i >= s.len || s.ptr[i] == ' ' || s.ptr[i] == '\t' || s.ptr[i] == '\n';
}

static bool is_word_at(struct str s, size_t i)
{
	unsigned char c = i < s.len ? (unsigned char)s.ptr[i] : ' ';

	return c >= 0x80 || (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z');
}

static size_t run_at(struct str s, size_t i)
{
	size_t n = 1;

	while (i + n < s.len && s.ptr[i + n] == s.ptr[i])
		n++;
	return n;
}

/* Where the code span that begins at `i` ends; 0: it does not. */
static size_t code_end(struct str s, size_t i)
{
	size_t n = run_at(s, i), limit = i + SPAN_MAX < s.len ? i + SPAN_MAX : s.len;

	for (size_t at = i + n; at < limit;) {
		size_t run = s.ptr[at] == '`' ? run_at(s, at) : 0;

		if (run == n)
			return at;
		at += run ? run : 1;
	}
	return 0;
}

/* Where `mark` closes what was opened before `from`; 0: nowhere near. */
static size_t close_of(struct str s, size_t from, struct str mark)
{
	size_t limit = from + SPAN_MAX < s.len ? from + SPAN_MAX : s.len;

	for (size_t i = from; i + mark.len <= limit;) {
		size_t run = run_at(s, i), end;

		if (s.ptr[i] == '\\') {
			i += 2;
		} else if (s.ptr[i] == '`') {
			end = code_end(s, i);
			i = end ? end + run : i + run;
		} else if (s.ptr[i] == mark.ptr[0]) {
			bool fits = mark.len == 1 ? run == 1 || run == 3 : run >= mark.len;
			bool in_word = mark.ptr[0] == '_' && is_word_at(s, i + run);

			if (fits && !in_word && i > from && !is_space_at(s, i - 1))
				return i + run - mark.len;
			i += run;
		} else {
			i++;
		}
	}
	return 0;
}

static size_t emphasis(struct buf *out, struct str s, size_t i, int depth)
{
	static const struct {
		struct str mark;
		const char *tag;
	} kinds[] = {
		{STR("**"), "strong"}, {STR("__"), "strong"}, {STR("~~"), "del"}, {STR("*"), "em"}, {STR("_"), "em"}};

	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct str mark = kinds[k].mark;
		size_t end;

		if (!str_starts(str_from(s, i), mark) || is_space_at(s, i + mark.len))
			continue;
		if (mark.ptr[0] == '_' && i > 0 && is_word_at(s, i - 1))
			continue;
		end = close_of(s, i + mark.len, mark);
		if (!end)
			continue;
		buf_printf(out, "<%s>", kinds[k].tag);
		markdown_inline(out, str_n(s.ptr + i + mark.len, end - i - mark.len), depth + 1);
		buf_printf(out, "</%s>", kinds[k].tag);
		return end + mark.len;
	}
	return 0;
}

/* Links lead to the web or to a person; others would be dead in a document. */
static bool is_linkable(struct str url)
{
	return str_starts(url, STR("http://")) || str_starts(url, STR("https://")) || str_starts(url, STR("mailto:"));
}

static void link_to(struct buf *out, struct str url, struct str label, int depth)
{
	bool linked = is_linkable(url);

	if (linked) {
		buf_lit(out, "<a href=\"");
		markdown_escape(out, url);
		buf_lit(out, "\">");
	}
	if (depth < 0)
		markdown_escape(out, label);
	else
		markdown_inline(out, label, depth + 1);
	if (linked)
		buf_lit(out, "</a>");
}

/* "[label](url "title")" at `i`, which may be the picture's "![…]". */
static size_t bracket(struct buf *out, struct str s, size_t i, int depth)
{
	bool picture = s.ptr[i] == '!';
	size_t open = i + (picture ? 1 : 0), at = open + 1, nested = 1, limit, end;
	struct str label, url;

	limit = open + SPAN_MAX < s.len ? open + SPAN_MAX : s.len;
	for (; at < limit && nested; at++)
		if (s.ptr[at] == '\\')
			at++;
		else
			nested += (s.ptr[at] == '[') - (size_t)(s.ptr[at] == ']');
	if (nested || at >= limit || s.ptr[at] != '(')
		return 0;
	label = str_n(s.ptr + open + 1, at - open - 2);
	end = str_find(str_first(s, limit), STR(")"), at);
	if (end == SIZE_MAX)
		return 0;
	url = str_trim(str_n(s.ptr + at + 1, end - at - 1));
	url = str_first(url, str_find_char(url, ' '));
	if (picture)
		markdown_escape(out, label);
	else
		link_to(out, url, label, depth);
	return end + 1;
}

/* "<https://…>" and "<br>"; other HTML is text. */
static size_t angle(struct buf *out, struct str s, size_t i)
{
	struct str rest = str_first(str_from(s, i), SPAN_MAX), inner;
	size_t end = str_find_char(rest, '>');

	if (end == rest.len)
		return 0;
	inner = str_n(rest.ptr + 1, end - 1);
	if (str_is(inner, "br") || str_is(inner, "br/") || str_is(inner, "br /"))
		buf_lit(out, "<br>");
	else if (is_linkable(inner) && str_find_char(inner, ' ') == inner.len)
		link_to(out, inner, inner, -1);
	else
		return 0;
	return i + end + 1;
}

static size_t bare_url(struct buf *out, struct str s, size_t i)
{
	struct str rest = str_from(s, i);
	size_t n = 0;

	if ((i > 0 && is_word_at(s, i - 1)) || !(str_starts(rest, STR("http://")) || str_starts(rest, STR("https://"))))
		return 0;
	while (n < rest.len && (unsigned char)rest.ptr[n] > ' ' && !strchr("<>\"`", rest.ptr[n]))
		n++;
	while (n && strchr(".,;:!?)*_", rest.ptr[n - 1]))
		n--;
	link_to(out, str_first(rest, n), str_first(rest, n), -1);
	return i + n;
}

/* "&amp;" and "&#8212;" stay what they are. */
static size_t reference(struct buf *out, struct str s, size_t i)
{
	struct str rest = str_first(str_from(s, i), 34);
	size_t end = str_find_char(rest, ';');

	if (end == rest.len || end < 2)
		return 0;
	for (size_t k = 1; k < end; k++)
		if (!is_word_at(rest, k) && !(k == 1 && rest.ptr[k] == '#'))
			return 0;
	buf_add(out, str_first(rest, end + 1));
	return i + end + 1;
}

static size_t code_span(struct buf *out, struct str s, size_t i)
{
	size_t n = run_at(s, i), end = code_end(s, i);

	if (!end)
		return 0;
	buf_lit(out, "<code>");
	markdown_escape(out, str_trim(str_n(s.ptr + i + n, end - i - n)));
	buf_lit(out, "</code>");
	return end + n;
}

static size_t special(struct buf *out, struct str s, size_t i, int depth)
{
	switch (s.ptr[i]) {
	case '`':
		return code_span(out, s, i);
	case '*':
	case '_':
	case '~':
		return depth < MARKDOWN_DEPTH_MAX ? emphasis(out, s, i, depth) : 0;
	case '!':
	case '[':
		if (depth >= MARKDOWN_DEPTH_MAX || (s.ptr[i] == '!' && (i + 1 >= s.len || s.ptr[i + 1] != '[')))
			return 0;
		return bracket(out, s, i, depth);
	case '<':
		return angle(out, s, i);
	case '&':
		return reference(out, s, i);
	case 'h':
		return bare_url(out, s, i);
	default:
		return 0;
	}
}

void markdown_inline(struct buf *out, struct str s, int depth)
{
	for (size_t i = 0; i < s.len;) {
		size_t next = special(out, s, i, depth), run;

		if (next) {
			i = next;
		} else if (s.ptr[i] == '\\' && i + 1 < s.len && strchr("\\`*_{}[]()<>#+-.!|~\"'&\n", s.ptr[i + 1])) {
			if (s.ptr[i + 1] == '\n')
				buf_lit(out, "<br>");
			markdown_escape(out, str_n(s.ptr + i + 1, 1));
			i += 2;
		} else if (str_starts(str_from(s, i), STR("  \n"))) {
			buf_lit(out, "<br>\n");
			i += 3;
		} else {
			run = strchr("*_~`", s.ptr[i]) && s.ptr[i] ? run_at(s, i) : 1; /* marks that close nothing */
			markdown_escape(out, str_n(s.ptr + i, run));
			i += run;
		}
	}
}
