/* SPDX-License-Identifier: Apache-2.0 */
/* Text inside tags, as prompts have them. */
#ifndef STEAD_TEXT_MARKUP_H
#define STEAD_TEXT_MARKUP_H

#include "base/buf.h"

/* & < > " become entities, so that no text can close the tag around it; control characters except tab and line
   break become blanks. */
void markup_escape(struct buf *buf, struct str text);

#endif
