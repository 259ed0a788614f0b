/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown with a YAML head between "---" lines. */
#ifndef STEAD_TEXT_FRONTMATTER_H
#define STEAD_TEXT_FRONTMATTER_H

#include "text/jv.h"

struct frontmatter {
	struct jv *head; /* an object; empty when the text has no head */
	struct str body; /* what follows the head, byte for byte */
	bool has_head;
};

int frontmatter_parse(struct arena *arena, struct str text, struct frontmatter *ret, struct err *err);
/* "---\n" head "---\n" body. Any title, tag or number comes back as it was. */
void frontmatter_write(struct buf *buf, const struct jv *head, struct str body);

#endif
