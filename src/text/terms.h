/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to the terms that an index knows. The same for documents and for questions, for any script, without a
 * dictionary:
 *  - case, width and composition are folded (NFKC);
 *  - words of scripts with blanks are terms; one with accents is a term without them too; "'s" is left off;
 *  - scripts without blanks give every character and every two neighbours;
 *  - identifiers (snake_case, camelCase, paths, versions, addresses) are terms as a whole and by their parts.
 * Words are not stemmed: a question is widened instead (home/search/search_query.c), so an exact match stays the best
 * one.
 */
#ifndef STEAD_TEXT_TERMS_H
#define STEAD_TEXT_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define TERM_MAX ((size_t)64) /* bytes; what is longer is cut */

enum {
	TERM_EXTRA = 1,  /* another form of the word at this position: does not count for the length */
	TERM_WHOLE = 2,  /* an identifier as a whole */
	TERM_DENSE = 4,  /* of a script without blanks */
	TERM_SINGLE = 8, /* one character of a run that has more: the pairs say it better */
};

struct term {
	struct str text;  /* folded; good until the call returns */
	uint32_t pos;     /* counts words, from `pos` on */
	uint32_t at, len; /* the bytes of the source that it stands for */
	unsigned flags;
};

typedef void (*term_emit)(void *arg, const struct term *term);
/* Returns the position after the last word. Texts over 4 GiB are cut. */
uint32_t terms_each(struct str text, uint32_t pos, term_emit emit, void *arg);

#endif
