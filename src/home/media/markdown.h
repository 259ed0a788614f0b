/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown as people and models write it, made into HTML for printing: CommonMark with the tables, task lists, struck
 * text and bare addresses of GitHub. HTML in the text is shown as it is written (except for <br>), a picture is its
 * description, and a link leads to a web page or a mail address or is plain text. So the result has no element,
 * attribute or script but those that this module writes.
 */
#ifndef STEAD_HOME_MEDIA_MARKDOWN_H
#define STEAD_HOME_MEDIA_MARKDOWN_H

#include "base/buf.h"
#include "base/err.h"

/* Adds the elements of the text, without <html> and <body>. Past the buffer's ceiling it stops; the caller looks at
   `overflow`. ERR_UNSUPPORTED: md4c is not installed. */
int markdown_to_html(struct buf *out, struct str text, struct err *err);

#endif
