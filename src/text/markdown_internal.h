/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the blocks and the marks inside them. */
#ifndef STEAD_TEXT_MARKDOWN_INTERNAL_H
#define STEAD_TEXT_MARKDOWN_INTERNAL_H

#include "text/markdown.h"

#define MARKDOWN_DEPTH_MAX 12 /* of lists and quotations, and of marks; deeper ones are text */

void markdown_inline(struct buf *out, struct str text, int depth);

#endif
