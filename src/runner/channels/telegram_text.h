/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown as models write it, in the forms that Telegram takes: pieces of limited length, and its HTML. */
#ifndef STEAD_RUNNER_CHANNELS_TELEGRAM_TEXT_H
#define STEAD_RUNNER_CHANNELS_TELEGRAM_TEXT_H

#include "base/buf.h"

#define TELEGRAM_TEXT_MAX 4096 /* UTF-16 units of one message, after its markup is taken off */

/* Cuts the next piece off `*rest`: at a paragraph, else a line, else a word, else a code point. A fence of code that is
   cut is closed in this piece and opened again in the next. False: nothing is left. */
bool telegram_cut(struct arena *arena, struct str *rest, size_t units_max, struct str *ret_piece);
/* One piece as HTML: bold, italic, struck, code, links, quotations; headings are bold. What is not closed is text, so
   the tags always match. Never longer than the piece when the tags are taken off. */
void telegram_html(struct buf *out, struct str piece);
size_t telegram_units(struct str text); /* UTF-16 units */

#endif
