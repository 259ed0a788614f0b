/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sections of all families share: making the text of a file harmless in a prompt.
 *
 * A '<' that could begin a tag becomes "&lt;". That is the whole of the escaping: Markdown, code and prose stay as they
 * are for a reader, "a < b" and "<- 3" too, and a tag of any name is still readable, but no longer a tag. So that
 * nothing is lost by it, an "&lt;" that was there before becomes "&amp;lt;". What could hide a tag (control characters,
 * malformed UTF-8) becomes U+FFFD. Escaping only Stead's own tag names was rejected: a model that sees "</system>" in a
 * file may believe it whether or not Stead has such a tag.
 */
#include "tool/prompt_section.h"

#include "tool/dialect.h"

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

void prompt_escape_entry(struct buf *b, struct str name, struct str description)
{
	buf_lit(b, "- ");
	prompt_escape_line(b, name, 200);
	if (description.len)
		buf_lit(b, ": ");
	prompt_escape_line(b, description, PROMPT_ENTRY_MAX);
	buf_char(b, '\n');
}

bool prompt_offers(const struct toolset *set, const char *tool)
{
	return toolset_name_of(set, str_of(tool));
}

struct str prompt_without_comments(struct arena *arena, struct str text)
{
	bool in_code = false, at_line = true;
	struct buf out;
	size_t end;

	if (str_find(text, STR("<!--"), 0) == SIZE_MAX)
		return text;
	buf_init(&out, arena, text.len + 1);
	while (text.len) {
		if (at_line && (str_starts(text, STR("```")) || str_starts(text, STR("~~~"))))
			in_code = !in_code;
		if (!in_code && str_starts(text, STR("<!--")) && (end = str_find(text, STR("-->"), 4)) != SIZE_MAX) {
			text = str_from(text, end + 3);
			at_line = !out.len || out.ptr[out.len - 1] == '\n';
			if (at_line && str_starts(text, STR("\n"))) /* it had lines of its own */
				text = str_from(text, 1);
			continue;
		}
		at_line = text.ptr[0] == '\n';
		buf_char(&out, text.ptr[0]);
		text = str_from(text, 1);
	}
	return out.len ? buf_str(&out) : STR("");
}
