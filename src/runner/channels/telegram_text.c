/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of Telegram has at most 4096 UTF-16 units, counted after its markup is taken off, and a message with
 * markup that does not match is refused. So the Markdown is cut first and each piece is converted for itself: the
 * visible text of a piece is never longer than the piece, and no tag can be open across a cut. HTML instead of
 * MarkdownV2, because only three characters need an escape.
 */
#include "runner/channels/telegram_text.h"

#include "base/limits.h"
#include "base/utf8.h"

#define DEPTH_MAX 4 /* emphasis inside emphasis */

size_t telegram_units(struct str text)
{
	size_t units = 0;

	for (size_t i = 0; i < text.len;)
		units += utf8_next(text, &i) >= 0x10000 ? 2 : 1;
	return units;
}

/* --- cutting --- */

/* The longest prefix with at most `units` units. */
static size_t fitting(struct str text, size_t units)
{
	size_t i = 0;

	while (i < text.len) {
		size_t next = i;
		size_t cost = utf8_next(text, &next) >= 0x10000 ? 2 : 1;

		if (cost > units)
			break;
		units -= cost;
		i = next;
	}
	return i;
}

/* Where to cut within the first `len` bytes: after the last paragraph, line or word of the second half. */
static size_t place_to_cut(struct str text, size_t len)
{
	size_t line = 0, word = 0;

	for (size_t i = len; i > len / 2; i--) {
		if (text.ptr[i - 1] == '\n' && i >= 2 && text.ptr[i - 2] == '\n')
			return i;
		if (!line && text.ptr[i - 1] == '\n')
			line = i;
		if (!word && text.ptr[i - 1] == ' ')
			word = i;
	}
	return line ? line : word ? word : len;
}

/* The opening line of the fence that is open at the end of `text`; empty: none is. */
static struct str open_fence(struct str text)
{
	struct str rest = text, line, fence = STR("");

	while (rest.ptr && str_cut(&rest, '\n', &line)) {
		if (!str_starts(line, STR("```")))
			continue;
		fence = fence.len ? STR("") : str_first(line, 40);
	}
	return fence;
}

bool telegram_cut(struct arena *arena, struct str *rest, size_t units_max, struct str *ret_piece)
{
	struct str text = *rest, piece, fence;
	size_t len;

	while (text.len && (text.ptr[0] == '\n' || text.ptr[0] == '\r'))
		text = str_from(text, 1);
	if (!str_trim(text).len)
		return false;
	if (telegram_units(text) <= units_max) {
		*ret_piece = text;
		*rest = STR_NONE;
		return true;
	}
	len = place_to_cut(text, fitting(text, units_max - 8)); /* room for the end of a fence */
	piece = str_first(text, len);
	fence = open_fence(piece);
	*rest = str_from(text, len);
	if (fence.len) {
		piece = arena_printf(arena, "%.*s%s```", STR_ARG(piece), piece.ptr[len - 1] == '\n' ? "" : "\n");
		*rest = arena_printf(arena, "%.*s\n%.*s", STR_ARG(fence), STR_ARG(*rest));
	}
	*ret_piece = piece;
	return true;
}

/* --- HTML --- */

static void escape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '<')
			buf_lit(out, "&lt;");
		else if (c == '>')
			buf_lit(out, "&gt;");
		else if (c == '&')
			buf_lit(out, "&amp;");
		else if (c == '"')
			buf_lit(out, "&quot;");
		else if ((unsigned char)c >= ' ' || c == '\n' || c == '\t')
			buf_char(out, c);
	}
}

static bool is_word(struct str s, size_t i)
{
	unsigned char c = i < s.len ? (unsigned char)s.ptr[i] : ' ';

	return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_blank(struct str s, size_t i)
{
	return i >= s.len || s.ptr[i] == ' ' || s.ptr[i] == '\n';
}

static const struct emphasis {
	const char *mark, *open, *close;
} emphases[] = {
	{"**", "<b>", "</b>"}, {"__", "<b>", "</b>"}, {"~~", "<s>", "</s>"}, {"*", "<i>", "</i>"}, {"_", "<i>", "</i>"},
};

/* The emphasis that begins at `i`, with the place of its closing mark; NULL: none. */
static const struct emphasis *emphasis_at(struct str s, size_t i, size_t *ret_end)
{
	for (size_t k = 0; k < COUNT(emphases); k++) {
		struct str mark = str_of(emphases[k].mark);
		size_t end = i + mark.len;

		if (!str_starts(str_from(s, i), mark) || is_blank(s, end) ||
		    (mark.ptr[0] == '_' && i && is_word(s, i - 1)))
			continue;
		while ((end = str_find(s, mark, end + 1)) != SIZE_MAX) {
			if (is_blank(s, end - 1) || (mark.ptr[0] == '_' && is_word(s, end + mark.len)))
				continue;
			if (mark.len == 1 && end + 1 < s.len && s.ptr[end + 1] == mark.ptr[0]) {
				end++; /* "**" inside is another mark */
				continue;
			}
			*ret_end = end;
			return &emphases[k];
		}
	}
	return NULL;
}

/* "[text](url)" at `i`: its parts, and where it ends. */
static bool link_at(struct str s, size_t i, struct str *ret_text, struct str *ret_url, size_t *ret_end)
{
	struct str rest = str_from(s, i + 1);
	size_t close = str_find(rest, STR("]("), 0), end;

	if (close == SIZE_MAX || memchr(rest.ptr, '\n', close) || memchr(rest.ptr, '[', close))
		return false;
	*ret_text = str_first(rest, close);
	rest = str_from(rest, close + 2);
	end = str_find_char(rest, ')');
	*ret_url = str_first(rest, end);
	*ret_end = i + 1 + close + 2 + end + 1;
	return end < rest.len && ret_text->len && !memchr(ret_url->ptr, ' ', ret_url->len) &&
	       (str_starts(*ret_url, STR("https://")) || str_starts(*ret_url, STR("http://")) ||
		str_starts(*ret_url, STR("tg://")) || str_starts(*ret_url, STR("mailto:")));
}

static size_t run_of(struct str s, size_t i, char c)
{
	size_t n = 0;

	while (i + n < s.len && s.ptr[i + n] == c)
		n++;
	return n;
}

/* "`code`" at `i`; 0: the run has no end. */
static size_t code_end(struct str s, size_t i, struct str *ret_code)
{
	size_t fence = run_of(s, i, '`'), at = i + fence;

	while (at < s.len) {
		size_t n = run_of(s, at, '`');

		if (n == fence) {
			*ret_code = str_n(s.ptr + i + fence, at - i - fence);
			return at + n;
		}
		at += n ? n : 1;
	}
	return 0;
}

static void inline_html(struct buf *out, struct str s, unsigned depth)
{
	struct str text, url;
	size_t i = 0, end = 0;

	while (i < s.len) {
		const struct emphasis *e;
		char c = s.ptr[i];
		bool is_image = c == '!' && i + 1 < s.len && s.ptr[i + 1] == '[';

		if (c == '\\' && i + 1 < s.len && strchr("\\`*_{}[]()#+-.!~>|<", s.ptr[i + 1]) && s.ptr[i + 1]) {
			escape(out, str_n(s.ptr + i + 1, 1));
			i += 2;
		} else if (c == '`' && (end = code_end(s, i, &text)) > 0) {
			buf_lit(out, "<code>");
			escape(out, text);
			buf_lit(out, "</code>");
			i = end;
		} else if ((c == '[' || is_image) && depth < DEPTH_MAX && link_at(s, i + is_image, &text, &url, &end)) {
			buf_lit(out, "<a href=\"");
			escape(out, url);
			buf_lit(out, "\">");
			inline_html(out, text, DEPTH_MAX);
			buf_lit(out, "</a>");
			i = end;
		} else if ((c == '*' || c == '_' || c == '~') && depth < DEPTH_MAX && (e = emphasis_at(s, i, &end))) {
			size_t from = i + strlen(e->mark);

			buf_add(out, str_of(e->open));
			inline_html(out, str_n(s.ptr + from, end - from), depth + 1);
			buf_add(out, str_of(e->close));
			i = end + strlen(e->mark);
		} else {
			escape(out, str_n(s.ptr + i, 1));
			i++;
		}
	}
}

/* A fence: its lines up to the closing one, or to the end. */
static void code_block(struct buf *out, struct str opening, struct str *rest)
{
	struct str language = str_trim(str_from(opening, run_of(opening, 0, '`'))), line;
	bool first = true;

	if (language.len && language.len <= 20 && !memchr(language.ptr, ' ', language.len)) {
		buf_lit(out, "<pre><code class=\"language-");
		escape(out, language);
		buf_lit(out, "\">");
	} else {
		language = STR_NONE;
		buf_lit(out, "<pre>");
	}
	while (rest->ptr && str_cut(rest, '\n', &line) && !str_starts(line, STR("```"))) {
		if (!first)
			buf_char(out, '\n');
		escape(out, line);
		first = false;
	}
	buf_add(out, language.len ? STR("</code></pre>") : STR("</pre>"));
}

static size_t heading_len(struct str line)
{
	size_t n = run_of(line, 0, '#');

	return n > 0 && n <= 6 && n < line.len && line.ptr[n] == ' ' ? n + 1 : 0;
}

void telegram_html(struct buf *out, struct str piece)
{
	struct str rest = piece, line;
	bool first = true, in_quote = false;

	while (rest.ptr && str_cut(&rest, '\n', &line)) {
		bool quote = str_starts(line, STR(">"));

		if (in_quote && !quote)
			buf_lit(out, "</blockquote>");
		if (!first)
			buf_char(out, '\n');
		if (!in_quote && quote)
			buf_lit(out, "<blockquote>");
		in_quote = quote;
		first = false;
		if (quote) {
			inline_html(out, str_from(line, line.len > 1 && line.ptr[1] == ' ' ? 2 : 1), 0);
		} else if (str_starts(line, STR("```"))) {
			code_block(out, line, &rest);
		} else if (heading_len(line)) {
			buf_lit(out, "<b>");
			inline_html(out, str_from(line, heading_len(line)), DEPTH_MAX);
			buf_lit(out, "</b>");
		} else {
			inline_html(out, line, 0);
		}
	}
	if (in_quote)
		buf_lit(out, "</blockquote>");
}
