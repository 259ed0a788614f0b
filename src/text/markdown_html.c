/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are read line by line. What is inside a quotation or an item of a list is collected without its marks and
 * read in the same way, so the time is that of the length times the depth.
 */
#include "text/markdown_internal.h"

#include "base/arena.h"

struct reader {
	struct arena *arena;
	struct buf *out;
	struct str rest;
	struct buf paragraph;
	int depth;
	bool is_tight; /* paragraphs are written without <p> */
};

static void read_blocks(struct arena *arena, struct buf *out, struct str text, int depth, bool is_tight);

/* The next line without its end; false: none is left. */
static bool peek(const struct reader *m, struct str *ret)
{
	*ret = str_first(m->rest, str_find_char(m->rest, '\n'));
	if (ret->len && ret->ptr[ret->len - 1] == '\r')
		ret->len--;
	return m->rest.len > 0;
}

static void skip(struct reader *m)
{
	m->rest = str_from(m->rest, str_find_char(m->rest, '\n') + 1);
}

static size_t indent_of(struct str line)
{
	size_t n = 0;

	while (n < line.len && line.ptr[n] == ' ')
		n++;
	return n;
}

static bool is_blank(struct str line)
{
	return str_trim(line).len == 0;
}

static void end_paragraph(struct reader *m)
{
	struct str text = str_trim(buf_str(&m->paragraph));

	if (text.len) {
		buf_add(m->out, m->is_tight ? STR("") : STR("<p>"));
		markdown_inline(m->out, text, 0);
		buf_add(m->out, m->is_tight ? STR("\n") : STR("</p>\n"));
	}
	buf_clear(&m->paragraph);
}

/* --- lines of one kind --- */

static size_t fence_of(struct str line)
{
	struct str t = str_from(line, indent_of(line));
	size_t n = 0;

	while (n < t.len && t.ptr[n] == t.ptr[0] && (t.ptr[0] == '`' || t.ptr[0] == '~'))
		n++;
	return n >= 3 ? n : 0;
}

static bool is_rule(struct str line)
{
	struct str t = str_trim(line);
	size_t marks = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (t.ptr[i] != t.ptr[0] && t.ptr[i] != ' ')
			return false;
		marks += t.ptr[i] == t.ptr[0];
	}
	return marks >= 3 && strchr("-*_", t.ptr[0]);
}

static size_t heading_of(struct str line)
{
	struct str t = str_trim(line);
	size_t n = 0;

	while (n < t.len && t.ptr[n] == '#')
		n++;
	return n >= 1 && n <= 6 && (n == t.len || t.ptr[n] == ' ') ? n : 0;
}

/* The length of "- " or "12. " with its indentation; 0: not an item. */
static size_t marker_of(struct str line, bool *ret_ordered)
{
	size_t start = indent_of(line), n = start;

	while (n < line.len && line.ptr[n] >= '0' && line.ptr[n] <= '9' && n - start < 9)
		n++;
	*ret_ordered = n > start;
	if (n >= line.len || !strchr(*ret_ordered ? ".)" : "-*+", line.ptr[n]))
		return 0;
	n++;
	if (n < line.len && line.ptr[n] != ' ')
		return 0;
	return n < line.len ? n + 1 : n;
}

static bool is_quote(struct str line)
{
	return str_starts(str_trim(line), STR(">"));
}

static bool begins_block(struct str line)
{
	bool ordered;

	return heading_of(line) || fence_of(line) || is_rule(line) || is_quote(line) || marker_of(line, &ordered);
}

/* --- blocks --- */

static void read_heading(struct reader *m, struct str line)
{
	size_t n = heading_of(line);
	struct str t = str_trim(str_from(str_trim(line), n));

	while (t.len && t.ptr[t.len - 1] == '#')
		t.len--;
	buf_printf(m->out, "<h%zu>", n);
	markdown_inline(m->out, str_trim(t), 0);
	buf_printf(m->out, "</h%zu>\n", n);
	skip(m);
}

static void read_fence(struct reader *m, struct str line)
{
	size_t n = fence_of(line), indent = indent_of(line);
	char mark = line.ptr[indent];

	buf_lit(m->out, "<pre><code>");
	for (skip(m); peek(m, &line); skip(m)) {
		size_t own = indent_of(line);

		if (fence_of(line) >= n && line.ptr[own] == mark) {
			skip(m);
			break;
		}
		markdown_escape(m->out, str_from(line, own < indent ? own : indent));
		buf_char(m->out, '\n');
	}
	buf_lit(m->out, "</code></pre>\n");
}

static void read_indented(struct reader *m, struct str line)
{
	buf_lit(m->out, "<pre><code>");
	for (; peek(m, &line) && (indent_of(line) >= 4 || is_blank(line)); skip(m)) {
		markdown_escape(m->out, str_from(line, indent_of(line) < 4 ? line.len : 4));
		buf_char(m->out, '\n');
	}
	buf_lit(m->out, "</code></pre>\n");
}

static void read_quote(struct reader *m, struct str line)
{
	struct buf inner;

	buf_init(&inner, m->arena, m->rest.len + 1);
	for (; peek(m, &line) && is_quote(line); skip(m)) {
		struct str t = str_from(str_trim(line), 1);

		buf_add(&inner, str_from(t, str_starts(t, STR(" ")) ? 1 : 0));
		buf_char(&inner, '\n');
	}
	buf_lit(m->out, "<blockquote>\n");
	read_blocks(m->arena, m->out, buf_str(&inner), m->depth + 1, false);
	buf_lit(m->out, "</blockquote>\n");
}

/* One item: its first line after the mark, and what follows that is indented or continues with its paragraph. True when
   a blank line is inside it. */
static bool collect_item(struct reader *m, size_t marker, struct buf *inner)
{
	bool blank = false, loose = false;
	struct str line;

	peek(m, &line);
	buf_add(inner, str_from(line, marker));
	buf_char(inner, '\n');
	for (skip(m); peek(m, &line); skip(m)) {
		size_t indent = indent_of(line);

		if (is_blank(line)) {
			blank = true;
			buf_char(inner, '\n');
			continue;
		}
		if (indent < marker && (blank || indent < 2) && (blank || begins_block(line)))
			break;
		loose |= blank && indent < marker + 2; /* a blank line of an inner list is that list's */
		blank = false;
		buf_add(inner, str_from(line, indent < marker ? indent : marker));
		buf_char(inner, '\n');
	}
	return loose;
}

static void write_item(struct reader *m, struct str inner, bool loose)
{
	buf_lit(m->out, "<li>");
	if (str_starts(inner, STR("[ ] ")) || str_starts(inner, STR("[x] ")) || str_starts(inner, STR("[X] "))) {
		buf_add(m->out, inner.ptr[1] == ' ' ? STR("☐ ") : STR("☑ "));
		inner = str_from(inner, 4);
	}
	read_blocks(m->arena, m->out, inner, m->depth + 1, !loose);
	buf_lit(m->out, "</li>\n");
}

static void read_list(struct reader *m, struct str line)
{
	size_t base = indent_of(line), marker;
	int64_t first = 1;
	bool ordered, same;

	marker_of(line, &ordered);
	if (ordered)
		str_to_i64(str_first(str_from(line, base), marker_of(line, &ordered) - base - 2), &first);
	if (ordered && first != 1)
		buf_printf(m->out, "<ol start=\"%lld\">\n", (long long)first);
	else
		buf_add(m->out, ordered ? STR("<ol>\n") : STR("<ul>\n"));
	while (peek(m, &line) && !is_rule(line) && (marker = marker_of(line, &same)) > 0 && same == ordered &&
	       indent_of(line) < base + 4) {
		struct buf inner;
		bool loose;

		buf_init(&inner, m->arena, m->rest.len + 1);
		loose = collect_item(m, marker, &inner);
		write_item(m, buf_str(&inner), loose);
	}
	buf_add(m->out, ordered ? STR("</ol>\n") : STR("</ul>\n"));
}

/* --- tables --- */

static struct str next_cell(struct str *row)
{
	bool in_code = false;
	struct str cell;

	for (size_t i = 0; i < row->len; i++) {
		if (row->ptr[i] == '`')
			in_code = !in_code;
		if (row->ptr[i] == '\\' && !in_code)
			i++;
		else if (row->ptr[i] == '|' && !in_code) {
			cell = str_trim(str_first(*row, i));
			*row = str_from(*row, i + 1);
			return cell;
		}
	}
	cell = str_trim(*row);
	*row = str_from(*row, row->len);
	return cell;
}

static struct str row_of(struct str line)
{
	struct str t = str_trim(line);

	if (str_starts(t, STR("|")))
		t = str_from(t, 1);
	if (str_ends(t, STR("|")) && !str_ends(t, STR("\\|")))
		t.len--;
	return t;
}

static bool is_delimiter(struct str line)
{
	struct str row = row_of(line);

	if (str_find_char(line, '-') == line.len || str_find_char(line, '|') == line.len)
		return false;
	for (size_t i = 0; i < row.len; i++)
		if (!strchr("-:| ", row.ptr[i]))
			return false;
	return true;
}

static bool is_table(const struct reader *m, struct str line)
{
	struct reader after = *m;
	struct str second;

	skip(&after);
	return str_find_char(line, '|') < line.len && peek(&after, &second) && is_delimiter(second);
}

static void write_row(struct reader *m, struct str line, struct str delimiter, const char *tag)
{
	struct str row = row_of(line), marks = row_of(delimiter);

	buf_lit(m->out, "<tr>");
	while (marks.len) {
		struct str mark = next_cell(&marks);
		bool right = str_ends(mark, STR(":"));
		const char *align = right ? str_starts(mark, STR(":")) ? "center" : "right" : "left";

		buf_printf(m->out, "<%s style=\"text-align:%s\">", tag, align);
		markdown_inline(m->out, next_cell(&row), 0);
		buf_printf(m->out, "</%s>", tag);
	}
	buf_lit(m->out, "</tr>\n");
}

static void read_table(struct reader *m, struct str line)
{
	struct str delimiter;

	skip(m);
	peek(m, &delimiter);
	skip(m);
	buf_lit(m->out, "<table>\n<thead>");
	write_row(m, line, delimiter, "th");
	buf_lit(m->out, "</thead>\n<tbody>\n");
	for (; peek(m, &line) && !is_blank(line) && str_find_char(line, '|') < line.len; skip(m))
		write_row(m, line, delimiter, "td");
	buf_lit(m->out, "</tbody></table>\n");
}

/* A line of '=' or '-' makes a heading of the paragraph above it. */
static bool read_underline(struct reader *m, struct str line)
{
	struct str t = str_trim(line), text = str_trim(buf_str(&m->paragraph));
	int level = t.len && t.ptr[0] == '=' ? 1 : 2;

	for (size_t i = 0; i < t.len; i++)
		if (t.ptr[i] != t.ptr[0] || (t.ptr[0] != '=' && t.ptr[0] != '-'))
			return false;
	if (!text.len || !t.len || (level == 2 && t.len < 2))
		return false;
	buf_printf(m->out, "<h%d>", level);
	markdown_inline(m->out, text, 0);
	buf_printf(m->out, "</h%d>\n", level);
	buf_clear(&m->paragraph);
	skip(m);
	return true;
}

static void (*block_at(const struct reader *m, struct str line))(struct reader *m, struct str line)
{
	bool ordered;

	if (fence_of(line))
		return read_fence;
	if (heading_of(line))
		return read_heading;
	if (is_table(m, line))
		return read_table;
	if (indent_of(line) >= 4 && !m->paragraph.len)
		return read_indented;
	if (m->depth < MARKDOWN_DEPTH_MAX && is_quote(line))
		return read_quote;
	if (m->depth < MARKDOWN_DEPTH_MAX && !is_rule(line) && marker_of(line, &ordered))
		return read_list;
	return NULL;
}

static void read_line(struct reader *m, struct str line)
{
	void (*block)(struct reader * m, struct str line);

	if (is_blank(line)) {
		end_paragraph(m);
		skip(m);
		return;
	}
	if (read_underline(m, line))
		return;
	block = block_at(m, line);
	if (block || is_rule(line))
		end_paragraph(m);
	if (block) {
		block(m, line);
	} else if (is_rule(line)) {
		buf_lit(m->out, "<hr>\n");
		skip(m);
	} else {
		buf_add(&m->paragraph, str_from(line, indent_of(line)));
		buf_char(&m->paragraph, '\n');
		skip(m);
	}
}

static void read_blocks(struct arena *arena, struct buf *out, struct str text, int depth, bool is_tight)
{
	struct reader m = {.arena = arena, .out = out, .rest = text, .depth = depth, .is_tight = is_tight};
	struct str line;

	buf_init(&m.paragraph, arena, text.len + 2);
	while (peek(&m, &line))
		read_line(&m, line);
	end_paragraph(&m);
}

void markdown_to_html(struct arena *arena, struct buf *out, struct str text)
{
	read_blocks(arena, out, text, 0, false);
}
