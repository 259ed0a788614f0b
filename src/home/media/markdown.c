/* SPDX-License-Identifier: Apache-2.0 */
/*
 * md4c parses, and this file writes the HTML. md4c's own renderer would pass on pictures and links of every kind, which
 * the text of an agent must not decide. The library is loaded when the first text is printed (decision 0461).
 */
#include "home/media/markdown.h"

#include <md4c.h>
#include <stdlib.h>

#include "base/limits.h"
#include "net/dynlib.h"
#include "text/markup.h"

struct page {
	struct buf *out;
	bool is_link; /* the open link was written; links have no links in them */
};

/* Not 0 ends the parse. */
static int next(const struct page *page)
{
	return page->out->overflow;
}

/* --- blocks --- */

static const char *const block_names[] = {
	[MD_BLOCK_QUOTE] = "blockquote",
	[MD_BLOCK_UL] = "ul",
	[MD_BLOCK_OL] = "ol",
	[MD_BLOCK_LI] = "li",
	[MD_BLOCK_P] = "p",
	[MD_BLOCK_TABLE] = "table",
	[MD_BLOCK_THEAD] = "thead",
	[MD_BLOCK_TBODY] = "tbody",
	[MD_BLOCK_TR] = "tr",
	[MD_BLOCK_TH] = "th",
	[MD_BLOCK_TD] = "td",
};

static const char *const alignments[] = {
	[MD_ALIGN_LEFT] = "left", [MD_ALIGN_CENTER] = "center", [MD_ALIGN_RIGHT] = "right"};

static bool holds_blocks(MD_BLOCKTYPE type)
{
	return type == MD_BLOCK_QUOTE || type == MD_BLOCK_UL || type == MD_BLOCK_OL || type == MD_BLOCK_TABLE ||
	       type == MD_BLOCK_THEAD || type == MD_BLOCK_TBODY;
}

static void open_item(struct page *page, const MD_BLOCK_LI_DETAIL *item)
{
	buf_lit(page->out, "<li>");
	if (item->is_task && item->task_mark == ' ')
		buf_lit(page->out, "☐ ");
	else if (item->is_task)
		buf_lit(page->out, "☑ ");
}

static void open_cell(struct page *page, const char *name, MD_ALIGN align)
{
	buf_printf(page->out, "<%s", name);
	if (align != MD_ALIGN_DEFAULT)
		buf_printf(page->out, " style=\"text-align:%s\"", alignments[align]);
	buf_lit(page->out, ">");
}

static int open_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
	struct page *page = arg;

	if (type == MD_BLOCK_HR)
		buf_lit(page->out, "<hr>\n");
	else if (type == MD_BLOCK_H)
		buf_printf(page->out, "<h%u>", ((MD_BLOCK_H_DETAIL *)detail)->level);
	else if (type == MD_BLOCK_CODE)
		buf_lit(page->out, "<pre><code>");
	else if (type == MD_BLOCK_LI)
		open_item(page, detail);
	else if (type == MD_BLOCK_TH || type == MD_BLOCK_TD)
		open_cell(page, block_names[type], ((MD_BLOCK_TD_DETAIL *)detail)->align);
	else if (type == MD_BLOCK_OL && ((MD_BLOCK_OL_DETAIL *)detail)->start != 1)
		buf_printf(page->out, "<ol start=\"%u\">\n", ((MD_BLOCK_OL_DETAIL *)detail)->start);
	else if (type != MD_BLOCK_DOC)
		buf_printf(page->out, holds_blocks(type) ? "<%s>\n" : "<%s>", block_names[type]);
	return next(page);
}

static int close_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
	struct page *page = arg;

	if (type == MD_BLOCK_H)
		buf_printf(page->out, "</h%u>\n", ((MD_BLOCK_H_DETAIL *)detail)->level);
	else if (type == MD_BLOCK_CODE)
		buf_lit(page->out, "</code></pre>\n");
	else if (type != MD_BLOCK_DOC && type != MD_BLOCK_HR)
		buf_printf(page->out, "</%s>\n", block_names[type]);
	return next(page);
}

/* --- spans --- */

static const char *const span_names[] = {
	[MD_SPAN_EM] = "em", [MD_SPAN_STRONG] = "strong", [MD_SPAN_CODE] = "code", [MD_SPAN_DEL] = "del"};

/* Decided by the bytes as they are written, so no entity can become part of the scheme. */
static bool may_lead(struct str href)
{
	static const struct str schemes[] = {STR("https://"), STR("http://"), STR("mailto:")};

	for (size_t i = 0; i < COUNT(schemes); i++)
		if (str_eq_nocase(str_first(href, schemes[i].len), schemes[i]))
			return true;
	return false;
}

static void add_attribute(struct buf *out, const MD_ATTRIBUTE *a)
{
	for (size_t i = 0; a->substr_offsets[i] < a->size; i++) {
		struct str part =
			str_n(a->text + a->substr_offsets[i], a->substr_offsets[i + 1] - a->substr_offsets[i]);

		if (a->substr_types[i] == MD_TEXT_ENTITY)
			buf_add(out, part);
		else
			markup_escape(out, part);
	}
}

static void open_link(struct page *page, const MD_ATTRIBUTE *href)
{
	page->is_link = may_lead(str_n(href->text, href->size));
	if (!page->is_link)
		return;
	buf_lit(page->out, "<a href=\"");
	add_attribute(page->out, href);
	buf_lit(page->out, "\">");
}

static int open_span(MD_SPANTYPE type, void *detail, void *arg)
{
	struct page *page = arg;

	if (type == MD_SPAN_A)
		open_link(page, &((MD_SPAN_A_DETAIL *)detail)->href);
	else if (type != MD_SPAN_IMG)
		buf_printf(page->out, "<%s>", span_names[type]);
	return next(page);
}

static int close_span(MD_SPANTYPE type, void *detail, void *arg)
{
	struct page *page = arg;

	(void)detail;
	if (type == MD_SPAN_A)
		buf_add(page->out, page->is_link ? STR("</a>") : STR(""));
	else if (type != MD_SPAN_IMG)
		buf_printf(page->out, "</%s>", span_names[type]);
	return next(page);
}

static bool is_break(struct str html)
{
	return str_is(html, "<br>") || str_is(html, "<br/>") || str_is(html, "<br />");
}

static int add_text(MD_TEXTTYPE type, const MD_CHAR *bytes, MD_SIZE len, void *arg)
{
	struct page *page = arg;
	struct str text = str_n(bytes, len);

	if (type == MD_TEXT_BR || (type == MD_TEXT_HTML && is_break(text)))
		buf_lit(page->out, "<br>\n");
	else if (type == MD_TEXT_SOFTBR)
		buf_lit(page->out, "\n");
	else if (type == MD_TEXT_NULLCHAR)
		buf_lit(page->out, "\xef\xbf\xbd");
	else if (type == MD_TEXT_ENTITY)
		buf_add(page->out, text);
	else
		markup_escape(page->out, text);
	return next(page);
}

int markdown_to_html(struct buf *out, struct str text, struct err *err)
{
	static const MD_PARSER parser = {.flags = MD_DIALECT_GITHUB | MD_FLAG_NOHTMLBLOCKS,
					 .enter_block = open_block,
					 .leave_block = close_block,
					 .enter_span = open_span,
					 .leave_span = close_span,
					 .text = add_text};
	int (*parse)(const MD_CHAR *, MD_SIZE, const MD_PARSER *, void *);
	const struct dynlib_entry entries[] = {{"md_parse", &parse}};
	struct page page = {.out = out};
	int r = dynlib_load("libmd4c.so.0", "libmd4c0", entries, COUNT(entries), err);
	char *ended;

	if (r)
		return r;
	ended = xstrndup(text); /* md4c looks for the end of a line with strcspn, so the text must end with a NUL */
	if (text.len > UINT32_MAX || parse(ended, (MD_SIZE)text.len, &parser, &page) != 0)
		out->overflow = true;
	free(ended);
	return 0;
}
