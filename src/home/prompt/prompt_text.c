/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of files on its way into a prompt: made harmless, measured and cut.
 *
 * A '<' that could begin a tag becomes "&lt;". That is the whole of the escaping: Markdown, code and prose stay as they
 * are for a reader, "a < b" and "<- 3" too, and a tag of any name is still readable, but is none. So that nothing is
 * lost by it, an "&lt;" that was there before becomes "&amp;lt;". What a tag could hide behind (control characters,
 * malformed UTF-8) becomes U+FFFD. Escaping only Stead's own tag names was rejected: a model that sees "</system>" in a
 * file may believe it whether or not Stead has such a tag.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "home/prompt/prompt_internal.h"
#include "text/tokens.h"

/* --- escaping --- */

/* What follows a '<' makes it one that cannot begin a tag: white space that is not before a '/', a digit, "=", "-",
   another '<', or the end. */
static bool is_harmless(struct str rest)
{
	unsigned char c = rest.len ? (unsigned char)rest.ptr[0] : ' ';

	if ((c >= '0' && c <= '9') || c == '=' || c == '-' || c == '<')
		return true;
	if (c != ' ' && c != '\n' && c != '\t')
		return false;
	while (rest.len && (rest.ptr[0] == ' ' || rest.ptr[0] == '\n' || rest.ptr[0] == '\t' || rest.ptr[0] == '\r'))
		rest = str_from(rest, 1);
	return !rest.len || rest.ptr[0] != '/';
}

/* "&lt;", "&amp;lt;", "&amp;amp;lt;" …, all but the '&'. */
static bool is_escape(struct str rest)
{
	while (str_starts(rest, STR("amp;")))
		rest = str_from(rest, 4);
	return str_starts(rest, STR("lt;"));
}

/* Length of the code point at the start, or 0 when it is malformed. */
static size_t point_len(struct str s)
{
	unsigned char c = (unsigned char)s.ptr[0];
	size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;

	return n <= s.len && utf8_valid(str_first(s, n)) ? n : 0;
}

static size_t escape_one(struct buf *b, struct str rest, bool one_line)
{
	unsigned char c = (unsigned char)rest.ptr[0];
	size_t n = point_len(rest);

	if (c == '\r') { /* a line end of another system */
		buf_char(b, one_line ? ' ' : '\n');
		return rest.len > 1 && rest.ptr[1] == '\n' ? 2 : 1;
	}
	if (c == '\n' || c == '\t')
		buf_char(b, one_line ? ' ' : (char)c);
	else if (n == 0 || c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)rest.ptr[1] < 0xA0))
		buf_lit(b, "\xEF\xBF\xBD");
	else if (c == '<' && !is_harmless(str_from(rest, 1)))
		buf_lit(b, "&lt;");
	else if (c == '&' && is_escape(str_from(rest, 1)))
		buf_lit(b, "&amp;");
	else
		buf_add(b, str_first(rest, n));
	return n ? n : 1;
}

static bool is_plain(unsigned char c)
{
	return (c >= 0x20 && c < 0x7F && c != '<' && c != '&') || c == '\n' || c == '\t';
}

void prompt_escape(struct buf *b, struct str text)
{
	while (text.len) {
		size_t n = 0;

		while (n < text.len && is_plain((unsigned char)text.ptr[n]))
			n++;
		buf_add(b, str_first(text, n));
		text = str_from(text, n);
		if (text.len)
			text = str_from(text, escape_one(b, text, false));
	}
}

void prompt_escape_line(struct buf *b, struct str text, size_t max)
{
	bool cut = text.len > max;

	text = str_trim(cut ? utf8_first(text, max) : text);
	while (text.len)
		text = str_from(text, escape_one(b, text, true));
	if (cut)
		buf_lit(b, "…");
}

/* Between double quotes of a tag that Stead writes. */
void prompt_escape_attribute(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '"')
			buf_lit(b, "&quot;");
		else if (c == '<')
			buf_lit(b, "&lt;");
		else if (c == '>')
			buf_lit(b, "&gt;");
		else if (c == '&')
			buf_lit(b, "&amp;");
		else
			buf_char(b, c < 0x20 || c == 0x7F ? ' ' : (char)c);
	}
}

/* --- measuring and cutting --- */

/* Blanks cost a model next to nothing, but not nothing: a token is taken to hold at most so many bytes. */
#define BYTES_PER_TOKEN 16

uint64_t prompt_cost(struct str text)
{
	uint64_t tokens = tokens_estimate(text), least = (text.len + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;

	return tokens > least ? tokens : least;
}

/* As much of one line as fits: its beginning or its end. */
static struct str cut_line(struct str line, uint64_t max, bool tail)
{
	size_t low = 0, high = line.len < max * BYTES_PER_TOKEN ? line.len : (size_t)max * BYTES_PER_TOKEN;
	struct str best = {line.ptr, 0};

	while (low < high) {
		size_t mid = low + (high - low + 1) / 2, from = line.len - mid;
		struct str part;

		if (tail) {
			part = utf8_skip_inside(str_from(line, from));
		} else {
			part = utf8_first(line, mid);
		}
		if (prompt_cost(part) <= max) {
			best = part;
			low = mid;
		} else {
			high = mid - 1;
		}
	}
	return best;
}

struct str prompt_first_lines(struct str text, uint64_t max, uint64_t *ret_cost)
{
	uint64_t used = 0;
	size_t end = 0;

	while (end < text.len) {
		struct str rest = str_from(text, end), line = str_first(rest, str_find_char(rest, '\n') + 1);
		uint64_t cost = prompt_cost(line);

		*ret_cost = end ? used : max;
		if (used + cost > max)
			return end ? str_first(text, end) : cut_line(line, max, false);
		used += cost;
		end += line.len;
	}
	*ret_cost = used;
	return text;
}

struct str prompt_last_lines(struct str text, uint64_t max, uint64_t *ret_cost)
{
	uint64_t used = 0;
	size_t start = text.len;

	while (start > 0) {
		struct str before = str_first(text, start - 1);
		size_t nl = str_rfind_char(before, '\n'), from = nl == before.len ? 0 : nl + 1;
		struct str line = {text.ptr + from, start - from};
		uint64_t cost = prompt_cost(line);

		*ret_cost = start < text.len ? used : max;
		if (used + cost > max)
			return start < text.len ? str_from(text, start) : cut_line(line, max, true);
		used += cost;
		start = from;
	}
	*ret_cost = used;
	return text;
}

size_t prompt_count_lines(struct str text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text.len; i++)
		lines += text.ptr[i] == '\n';
	return lines + (text.len && text.ptr[text.len - 1] != '\n');
}
