/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTML as it is found on the web, made into Markdown for a model: hostile, broken, of any size. Nothing in it is an
 * error. Time and memory grow with the length of the input and are bounded by limits.h.
 */
#ifndef STEAD_TEXT_HTML_H
#define STEAD_TEXT_HTML_H

#include "base/buf.h"

/* --- the scanner --- */

enum html_kind { HTML_TEXT, HTML_OPEN, HTML_CLOSE };

struct html_token {
	enum html_kind kind;
	struct str text; /* HTML_TEXT: with its character references */
	char name[16];   /* of a tag, in small letters; longer names are cut */
	struct str attributes;
};

struct html_scan {
	struct str rest;
	char raw[16]; /* the element whose content is text up to its end tag; empty: none */
};

/* The next token, or false at the end. Comments and declarations are passed over; what is not a tag is text. */
bool html_next(struct html_scan *scan, struct html_token *ret);
/* The value of an attribute, decoded; ptr NULL when there is none. */
struct str html_attribute(struct arena *arena, const struct html_token *token, const char *name);
/* Adds text with its character references (&amp; &#8212;) resolved. */
void html_decode(struct buf *out, struct str text);

/* --- Markdown --- */

struct html_page {
	struct str title; /* as text on one line; may be empty */
	/* Makes a link absolute; empty: the link is left out and its text stays. NULL: links stay as they are. */
	struct str (*link)(void *arg, struct str href);
	void *arg;
};

/* Adds the text of the page: headings, paragraphs, lists, quotations, code, tables, links, pictures as links. Scripts,
   styles, forms and navigation are left out. `html` must be UTF-8; `out` must be empty
   and in an arena. Sets page->title. */
void html_to_markdown(struct buf *out, struct str html, struct html_page *page);

#endif
