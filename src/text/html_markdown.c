/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown is written in one pass, without a tree. Three small stacks replace it: containers (quotations, lists and
 * their items), which decide what each line begins with; inline marks (emphasis, links), which are written only when
 * their first character is, so that an empty one leaves nothing and no blank gets inside; and the captured text of
 * code, which is written when it is complete, because its fence must be longer than any fence inside it. An end tag
 * closes what it names if that is open, and is ignored otherwise, so nothing that a page does can unbalance the output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/html.h"

enum container_kind { QUOTE, BULLETS, NUMBERS, ITEM };
enum capture { NO_CAPTURE, CAPTURE_CODE, CAPTURE_PRE, CAPTURE_TITLE };

struct container {
	enum container_kind kind;
	int64_t number;  /* NUMBERS: of the next item; ITEM: its own, 0 for a bullet */
	bool is_started; /* ITEM: its mark has been written */
};

struct mark {
	char name[16]; /* of its element */
	const char *text;
	struct str href; /* of a link */
	bool is_written;
};

struct writer {
	struct buf *out;
	struct arena *arena; /* for attributes and captures */
	struct html_page *page;
	struct container containers[HTML_DEPTH_MAX];
	size_t depth;
	struct mark marks[HTML_MARKS_MAX];
	size_t mark_count;
	int breaks;    /* line breaks due before the next text: 2 is a blank line */
	bool blank;    /* a blank is due before the next text */
	bool has_text; /* of the current line */
	unsigned skip; /* open elements whose content is left out */
	char skip_name[16];
	enum capture capture;
	struct buf captured;
	char language[24];
	/* tables: only the outermost one is written as one */
	unsigned tables;
	unsigned columns; /* of the current row */
	unsigned rows;
	bool in_row, in_cell;
};

/* --- lines --- */

static void write_prefix(struct writer *w, bool is_blank_line)
{
	size_t from = w->out->len;

	for (size_t i = 0; i < w->depth; i++) {
		struct container *c = &w->containers[i];
		char mark[32] = "- ";

		if (c->kind == QUOTE)
			buf_lit(w->out, "> ");
		if (c->kind != ITEM)
			continue;
		if (c->number)
			snprintf(mark, sizeof(mark), "%lld. ", (long long)c->number);
		if (c->is_started || is_blank_line)
			for (size_t n = strlen(mark); n > 0; n--)
				buf_char(w->out, ' ');
		else
			buf_add(w->out, str_of(mark));
		c->is_started |= !is_blank_line;
	}
	while (is_blank_line && w->out->len > from && w->out->ptr[w->out->len - 1] == ' ')
		w->out->len--;
}

/* Begins the line that is due. */
static void begin_line(struct writer *w)
{
	if (w->out->len == 0) {
		if (w->breaks >= 0)
			write_prefix(w, false);
		w->breaks = -1;
		return;
	}
	if (w->breaks <= 0)
		return;
	buf_char(w->out, '\n');
	if (w->breaks > 1) {
		write_prefix(w, true);
		buf_char(w->out, '\n');
	}
	write_prefix(w, false);
	w->breaks = 0;
	w->blank = false;
	w->has_text = false;
}

static void open_marks(struct writer *w)
{
	for (size_t i = 0; i < w->mark_count; i++) {
		if (!w->marks[i].is_written)
			buf_add(w->out, str_of(w->marks[i].text));
		w->marks[i].is_written = true;
	}
}

/* What must precede the next visible character: the line, a blank, marks. */
static void begin_text(struct writer *w)
{
	begin_line(w);
	if (w->blank && w->has_text)
		buf_char(w->out, ' ');
	w->blank = false;
	w->has_text = true;
	open_marks(w);
}

static void close_mark(struct writer *w)
{
	const struct mark *m = &w->marks[--w->mark_count];

	if (!m->is_written)
		return;
	if (m->href.ptr)
		buf_printf(w->out, "](%.*s)", STR_ARG(m->href));
	else
		buf_add(w->out, str_of(m->text));
}

static void flush_capture(struct writer *w);

/* A block ends or begins: at least `n` line breaks before what follows. */
static void break_block(struct writer *w, int n)
{
	if (w->capture == CAPTURE_CODE)
		flush_capture(w);
	while (w->mark_count)
		close_mark(w);
	if (w->in_cell || w->in_row) {
		w->blank = true;
		return;
	}
	if ((w->breaks >= 0 && w->breaks < n) || (w->breaks < 0 && w->out->len))
		w->breaks = n;
}

/* --- text --- */

/* Characters that would be read as marks. At the start of a line a few more are. */
static bool needs_escape(const struct writer *w, struct str word, size_t i)
{
	char c = word.ptr[i];

	if (c == '*' || c == '`' || c == '[' || c == ']' || c == '<' || c == '\\')
		return true;
	if (c == '|')
		return w->in_cell;
	if (c == '_')
		return i == 0 || i + 1 == word.len;
	if (i > 0 || w->has_text)
		return false;
	if (c == '#' || c == '>' || c == '~')
		return true;
	return (c == '-' || c == '+' || c == '=') && word.len == 1;
}

static void write_word(struct writer *w, struct str word)
{
	size_t digits = 0;
	bool at_start;

	begin_line(w);
	at_start = !w->has_text;
	while (at_start && digits < word.len && word.ptr[digits] >= '0' && word.ptr[digits] <= '9')
		digits++;
	for (size_t i = 0; i < word.len; i++) {
		bool escape = needs_escape(w, word, i);

		if (i == 0)
			begin_text(w);
		if (escape ||
		    (digits && i == digits && i + 1 == word.len && (word.ptr[i] == '.' || word.ptr[i] == ')')))
			buf_char(w->out, '\\');
		buf_char(w->out, word.ptr[i]);
	}
}

static bool is_space(struct str s, size_t i)
{
	unsigned char c = (unsigned char)s.ptr[i];

	return c <= ' ' || c == 0x7F;
}

/* Decoded text: runs of white space are one blank. */
static void write_text(struct writer *w, struct str text)
{
	size_t i = 0;

	while (i < text.len) {
		size_t from = i;

		if (is_space(text, i)) {
			w->blank = true;
			i++;
			continue;
		}
		while (i < text.len && !is_space(text, i))
			i++;
		write_word(w, str_n(text.ptr + from, i - from));
	}
}

/* --- code --- */

static size_t longest_run(struct str s, char c)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < s.len; i++) {
		run = s.ptr[i] == c ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void repeat(struct buf *out, char c, size_t n)
{
	for (size_t i = 0; i < n && !out->overflow; i++)
		buf_char(out, c);
}

static void write_inline_code(struct writer *w, struct str code)
{
	size_t fence = longest_run(code, '`') + 1;

	code = str_trim(code);
	if (!code.len)
		return;
	begin_text(w);
	repeat(w->out, '`', fence);
	if (code.ptr[0] == '`' || code.ptr[code.len - 1] == '`')
		buf_char(w->out, ' ');
	for (size_t i = 0; i < code.len; i++)
		buf_char(w->out, (unsigned char)code.ptr[i] < ' ' ? ' ' : code.ptr[i]);
	if (code.ptr[0] == '`' || code.ptr[code.len - 1] == '`')
		buf_char(w->out, ' ');
	repeat(w->out, '`', fence);
}

static void write_block_code(struct writer *w, struct str code)
{
	size_t fence = longest_run(code, '`') + 1;
	struct str line;

	fence = fence < 3 ? 3 : fence;
	while (code.len && (code.ptr[0] == '\n' || code.ptr[0] == '\r'))
		code = str_from(code, 1);
	while (code.len && is_space(code, code.len - 1))
		code.len--;
	if (!code.len)
		return;
	break_block(w, 2);
	begin_line(w);
	repeat(w->out, '`', fence);
	buf_add(w->out, str_of(w->language));
	while (code.len && str_cut(&code, '\n', &line)) {
		buf_char(w->out, '\n');
		write_prefix(w, false);
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		for (size_t i = 0; i < line.len; i++)
			buf_char(w->out, (unsigned char)line.ptr[i] < ' ' && line.ptr[i] != '\t' ? ' ' : line.ptr[i]);
	}
	buf_char(w->out, '\n');
	write_prefix(w, false);
	repeat(w->out, '`', fence);
	w->has_text = true;
	break_block(w, 2);
}

static struct str one_line(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, 2 * KIB);
	for (size_t i = 0; i < text.len && !out.overflow; i++) {
		if (!is_space(text, i))
			buf_char(&out, text.ptr[i]);
		else if (out.len && out.ptr[out.len - 1] != ' ')
			buf_char(&out, ' ');
	}
	return utf8_first(str_trim(buf_str(&out)), KIB);
}

static void flush_capture(struct writer *w)
{
	enum capture kind = w->capture;
	struct str text = buf_str(&w->captured);

	w->capture = NO_CAPTURE;
	if (kind == CAPTURE_CODE || (kind == CAPTURE_PRE && w->in_row))
		write_inline_code(w, text);
	else if (kind == CAPTURE_PRE)
		write_block_code(w, text);
	else if (kind == CAPTURE_TITLE && !w->page->title.len)
		w->page->title = one_line(w->arena, text);
	buf_release(&w->captured);
	w->language[0] = 0;
}

static void begin_capture(struct writer *w, enum capture kind)
{
	if (w->capture != NO_CAPTURE)
		return;
	w->capture = kind;
	buf_init(&w->captured, NULL, w->out->max);
}

/* class="language-c": a word that may follow a fence. */
static void take_language(struct writer *w, const struct html_token *t)
{
	struct str class = html_attribute(w->arena, t, "class");
	size_t at = str_find(class, STR("language-"), 0), n = 0;

	if (at == SIZE_MAX || w->language[0])
		return;
	for (at += strlen("language-"); at < class.len && n < sizeof(w->language) - 1; at++) {
		char c = class.ptr[at];

		if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && !strchr("+#-", c))
			break;
		w->language[n++] = c;
	}
	w->language[n] = 0;
}

/* --- containers --- */

static void container_open(struct writer *w, enum container_kind kind, int64_t number)
{
	if (w->depth < HTML_DEPTH_MAX && !w->in_row)
		w->containers[w->depth++] = (struct container){kind, number, false};
}

/* Closes the innermost one of this kind with all inside it; nothing when there is none, or `barrier` comes first. */
static void container_close(struct writer *w, enum container_kind kind, bool lists_are_barriers)
{
	for (size_t i = w->depth; i > 0; i--) {
		const struct container *c = &w->containers[i - 1];

		if (c->kind == kind) {
			w->depth = i - 1;
			return;
		}
		if (lists_are_barriers && (c->kind == BULLETS || c->kind == NUMBERS))
			return;
	}
}

static void open_item(struct writer *w)
{
	struct container *list;

	break_block(w, 1);
	container_close(w, ITEM, true);
	list = w->depth ? &w->containers[w->depth - 1] : NULL;
	if (list && list->kind == NUMBERS) {
		int64_t number = list->number++;

		container_open(w, ITEM, number);
	} else {
		container_open(w, ITEM, 0);
	}
}

/* A list inside an item is not set off by a blank line. */
static bool is_in_item(const struct writer *w)
{
	return w->depth && w->containers[w->depth - 1].kind == ITEM;
}

static void open_list(struct writer *w, const struct html_token *t)
{
	int64_t start = 1;
	bool numbered = strcmp(t->name, "ol") == 0;

	break_block(w, is_in_item(w) ? 1 : 2);
	if (numbered && (!str_to_i64(html_attribute(w->arena, t, "start"), &start) || start < 1 || start > 999999999))
		start = 1;
	container_open(w, numbered ? NUMBERS : BULLETS, start);
}

/* --- tables --- */

static void end_cell(struct writer *w)
{
	if (!w->in_cell)
		return;
	while (w->mark_count)
		close_mark(w);
	buf_lit(w->out, " |");
	w->in_cell = w->blank = false;
}

static void end_row(struct writer *w)
{
	end_cell(w);
	if (!w->in_row)
		return;
	w->in_row = false;
	if (w->columns && w->rows++ == 0) {
		buf_char(w->out, '\n');
		write_prefix(w, false);
		for (unsigned i = 0; i < w->columns; i++)
			buf_add(w->out, i ? STR(" --- |") : STR("| --- |"));
	}
	w->has_text = true;
	break_block(w, 1);
}

static void begin_cell(struct writer *w)
{
	if (w->capture != NO_CAPTURE)
		flush_capture(w);
	end_cell(w);
	if (w->columns >= HTML_COLUMNS_MAX)
		return;
	if (!w->in_row) {
		break_block(w, w->rows ? 1 : 2);
		begin_line(w);
		w->in_row = true;
		w->columns = 0;
		buf_char(w->out, '|');
	}
	w->columns++;
	buf_char(w->out, ' ');
	w->in_cell = true;
	w->has_text = w->blank = false;
}

static void table_tag(struct writer *w, const struct html_token *t)
{
	bool is_open = t->kind == HTML_OPEN;

	if (strcmp(t->name, "table") == 0) {
		if (is_open && w->tables++ == 0) {
			break_block(w, 2);
			w->rows = w->columns = 0;
		}
		if (!is_open)
			w->blank = true;
		if (!is_open && w->tables && --w->tables == 0) {
			end_row(w);
			break_block(w, 2);
		}
		return;
	}
	if (w->tables != 1) {
		w->blank = true; /* outside a table, or in one inside another: words */
		return;
	}
	if (t->name[1] == 'r')
		end_row(w);
	else if (is_open)
		begin_cell(w);
	else
		end_cell(w);
	if (t->name[1] == 'r' && is_open)
		w->columns = 0;
}

/* --- inline --- */

/* A link as it can be written in parentheses; empty when it cannot. */
static struct str link_target(struct writer *w, struct str href)
{
	struct buf out;

	href = str_trim(href);
	if (!href.len || href.len > URL_LEN_MAX)
		return STR_NONE;
	if (w->page->link)
		href = w->page->link(w->page->arg, href);
	if (!href.len)
		return STR_NONE;
	buf_init(&out, w->arena, 3 * href.len + 8);
	for (size_t i = 0; i < href.len; i++) {
		unsigned char c = (unsigned char)href.ptr[i];

		if (c <= ' ' || c == '(' || c == ')' || c == '<' || c == '>' || c == '|' || c == 0x7F)
			buf_printf(&out, "%%%02X", c);
		else
			buf_char(&out, (char)c);
	}
	return buf_str(&out);
}

static void open_mark(struct writer *w, const char *name, const char *text, struct str href)
{
	struct mark *m;

	for (size_t i = 0; i < w->mark_count; i++)
		if (strcmp(w->marks[i].text, text) == 0)
			return; /* emphasis in emphasis, a link in a link: once */
	if (w->mark_count == HTML_MARKS_MAX)
		return;
	m = &w->marks[w->mark_count++];
	*m = (struct mark){.text = text, .href = href};
	snprintf(m->name, sizeof(m->name), "%s", name);
}

static void close_marks(struct writer *w, const char *name)
{
	size_t i = w->mark_count;

	while (i > 0 && strcmp(w->marks[i - 1].name, name) != 0)
		i--;
	while (i > 0 && w->mark_count >= i)
		close_mark(w);
}

static void write_image(struct writer *w, const struct html_token *t)
{
	struct str alt = one_line(w->arena, html_attribute(w->arena, t, "alt"));
	struct str src = html_attribute(w->arena, t, "src"), target;

	if (!alt.len || str_starts(src, STR("data:")))
		return; /* decoration */
	target = link_target(w, src);
	if (!target.len)
		return;
	begin_text(w);
	buf_lit(w->out, "![");
	for (size_t i = 0; i < alt.len; i++) {
		if (strchr("[]\\`*<|", alt.ptr[i]))
			buf_char(w->out, '\\');
		buf_char(w->out, alt.ptr[i]);
	}
	buf_printf(w->out, "](%.*s)", STR_ARG(target));
}

/* --- elements --- */

enum action {
	NOTHING,
	SKIP,
	BLOCK,
	LINE,
	HEADING,
	LIST,
	LIST_ITEM,
	QUOTATION,
	CODE,
	PRE,
	RULE,
	BREAK,
	TABLE,
	LINK,
	IMAGE,
	BOLD,
	ITALIC,
	STRUCK,
	TITLE
};

static const struct {
	const char *name;
	enum action action;
} elements[] = {
	{"a", LINK},
	{"address", BLOCK},
	{"article", BLOCK},
	{"aside", SKIP},
	{"audio", SKIP},
	{"b", BOLD},
	{"blockquote", QUOTATION},
	{"body", BLOCK},
	{"br", BREAK},
	{"button", SKIP},
	{"canvas", SKIP},
	{"caption", BLOCK},
	{"code", CODE},
	{"datalist", SKIP},
	{"dd", LINE},
	{"del", STRUCK},
	{"details", BLOCK},
	{"dialog", SKIP},
	{"div", BLOCK},
	{"dl", BLOCK},
	{"dt", BLOCK},
	{"em", ITALIC},
	{"fieldset", BLOCK},
	{"figcaption", BLOCK},
	{"figure", BLOCK},
	{"footer", SKIP},
	{"form", BLOCK},
	{"h1", HEADING},
	{"h2", HEADING},
	{"h3", HEADING},
	{"h4", HEADING},
	{"h5", HEADING},
	{"h6", HEADING},
	{"header", BLOCK},
	{"hr", RULE},
	{"i", ITALIC},
	{"iframe", SKIP},
	{"img", IMAGE},
	{"kbd", CODE},
	{"li", LIST_ITEM},
	{"main", BLOCK},
	{"nav", SKIP},
	{"noembed", SKIP},
	{"noframes", SKIP},
	{"noscript", SKIP},
	{"object", SKIP},
	{"ol", LIST},
	{"p", BLOCK},
	{"pre", PRE},
	{"s", STRUCK},
	{"samp", CODE},
	{"script", SKIP},
	{"section", BLOCK},
	{"select", SKIP},
	{"strike", STRUCK},
	{"strong", BOLD},
	{"style", SKIP},
	{"summary", BLOCK},
	{"svg", SKIP},
	{"table", TABLE},
	{"td", TABLE},
	{"template", SKIP},
	{"textarea", SKIP},
	{"th", TABLE},
	{"title", TITLE},
	{"tr", TABLE},
	{"ul", LIST},
	{"video", SKIP},
};

static enum action action_of(const char *name)
{
	size_t low = 0, high = COUNT(elements);

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strcmp(name, elements[mid].name);

		if (order == 0)
			return elements[mid].action;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NOTHING;
}

/* Within <pre>, a line break is the only element that counts. */
static void tag_in_capture(struct writer *w, const struct html_token *t, enum action action)
{
	bool is_end = t->kind == HTML_CLOSE;

	if (w->capture == CAPTURE_PRE) {
		if (action == BREAK)
			buf_char(&w->captured, '\n');
		else if (action == CODE && !is_end)
			take_language(w, t);
		else if (action == PRE && is_end)
			flush_capture(w);
	} else if (is_end && (w->capture == CAPTURE_TITLE ? action == TITLE : action == CODE)) {
		flush_capture(w);
	}
}

static void open_heading(struct writer *w, const struct html_token *t)
{
	break_block(w, 2);
	if (w->in_row)
		return;
	begin_line(w);
	repeat(w->out, '#', (size_t)(t->name[1] - '0'));
	buf_char(w->out, ' ');
	w->has_text = true;
	w->blank = false;
}

static void open_tag(struct writer *w, const struct html_token *t, enum action action)
{
	static const char *const texts[] = {[BOLD] = "**", [ITALIC] = "*", [STRUCK] = "~~"};
	struct str href;

	switch (action) {
	case HEADING:
		open_heading(w, t);
		break;
	case LIST:
		open_list(w, t);
		break;
	case LIST_ITEM:
		open_item(w);
		break;
	case QUOTATION:
		break_block(w, 2);
		container_open(w, QUOTE, 0);
		break;
	case PRE:
		take_language(w, t);
		begin_capture(w, CAPTURE_PRE);
		break;
	case CODE:
		begin_capture(w, CAPTURE_CODE);
		break;
	case TITLE:
		begin_capture(w, CAPTURE_TITLE);
		break;
	case LINK:
		href = link_target(w, html_attribute(w->arena, t, "href"));
		if (href.len && href.ptr[0] != '#')
			open_mark(w, "a", "[", href);
		break;
	case BOLD:
	case ITALIC:
	case STRUCK:
		open_mark(w, t->name, texts[action], STR_NONE);
		break;
	default:
		break;
	}
}

static void close_tag(struct writer *w, const struct html_token *t, enum action action)
{
	if (action == LINK || action == BOLD || action == ITALIC || action == STRUCK)
		close_marks(w, t->name);
	if (action == HEADING || action == QUOTATION)
		break_block(w, 2);
	if (action == LIST_ITEM) {
		break_block(w, 1);
		container_close(w, ITEM, true);
	}
	if (action == LIST) {
		container_close(w, strcmp(t->name, "ol") == 0 ? NUMBERS : BULLETS, false);
		break_block(w, is_in_item(w) ? 1 : 2);
	}
	if (action == QUOTATION)
		container_close(w, QUOTE, false);
}

static void on_tag(struct writer *w, const struct html_token *t)
{
	enum action action = action_of(t->name);

	if (w->capture == CAPTURE_PRE || w->capture == CAPTURE_TITLE ||
	    (w->capture == CAPTURE_CODE && action == CODE)) {
		tag_in_capture(w, t, action);
		return;
	}
	if (action == BLOCK)
		break_block(w, 2);
	else if (action == LINE || action == BREAK)
		break_block(w, 1);
	else if (action == TABLE)
		table_tag(w, t);
	else if (action == IMAGE)
		write_image(w, t);
	else if (action == RULE && !w->in_row) {
		break_block(w, 2);
		begin_line(w);
		buf_lit(w->out, "---");
		w->has_text = true;
		break_block(w, 2);
	} else if (t->kind == HTML_OPEN)
		open_tag(w, t, action);
	else
		close_tag(w, t, action);
}

/* True while the token is part of what is left out. Elements of the same name are counted; others inside are not. */
static bool is_skipped(struct writer *w, const struct html_token *t)
{
	if (w->skip) {
		if (t->kind != HTML_TEXT && strcmp(t->name, w->skip_name) == 0)
			w->skip += t->kind == HTML_OPEN ? 1 : -1U;
		return true;
	}
	if (t->kind != HTML_OPEN || action_of(t->name) != SKIP)
		return false;
	if (t->attributes.len && t->attributes.ptr[t->attributes.len - 1] == '/')
		return true; /* <svg/> */
	memcpy(w->skip_name, t->name, sizeof(w->skip_name));
	w->skip = 1;
	w->blank = true;
	return true;
}

void html_to_markdown(struct buf *out, struct str html, struct html_page *page)
{
	struct writer w = {.out = out, .arena = out->arena, .page = page};
	struct html_scan scan = {.rest = html};
	struct html_token t;
	struct buf text;

	page->title = STR_NONE;
	while (!out->overflow && html_next(&scan, &t)) {
		if (is_skipped(&w, &t))
			continue;
		if (t.kind != HTML_TEXT) {
			on_tag(&w, &t);
			continue;
		}
		if (w.capture != NO_CAPTURE) {
			html_decode(&w.captured, t.text);
			continue;
		}
		buf_init(&text, NULL, 4 * t.text.len + 16);
		html_decode(&text, t.text);
		write_text(&w, buf_str(&text));
		buf_release(&text);
	}
	if (w.capture != NO_CAPTURE)
		flush_capture(&w);
	end_row(&w);
	while (w.mark_count)
		close_mark(&w);
}
