/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown as people and models write it, made into HTML for printing: headings, paragraphs, lists, quotations, code,
 * tables, emphasis, links. Nothing in it is an error. HTML in the text is shown as it is written and never passed on,
 * so the result has no element, attribute or script but those that this module writes.
 */
#ifndef STEAD_TEXT_MARKDOWN_H
#define STEAD_TEXT_MARKDOWN_H

#include "base/buf.h"

/* Adds the elements of the text, without <html> and <body>. Pictures become their description. */
void markdown_to_html(struct arena *arena, struct buf *out, struct str text);
/* Adds text in which no character has a meaning to HTML. */
void markdown_escape(struct buf *out, struct str text);

#endif
