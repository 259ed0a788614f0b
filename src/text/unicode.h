/* SPDX-License-Identifier: Apache-2.0 */
/* What text analysis needs to know of Unicode (utf8proc's one file): classes of characters and one folded form. */
#ifndef STEAD_TEXT_UNICODE_H
#define STEAD_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum unicode_class {
	UNICODE_GAP,   /* blanks, punctuation, symbols, what is not a character */
	UNICODE_WORD,  /* letters and digits of scripts that put blanks between words */
	UNICODE_DENSE, /* letters of scripts that do not: Han, kana, Hangul, Thai, Lao, Khmer, Myanmar */
	UNICODE_MARK,  /* combines with the character before it */
};

/* The code point at `at` and how many bytes it takes; a malformed byte is U+FFFD and takes one. `at` < s.len. */
uint32_t unicode_decode(struct str s, size_t at, size_t *ret_len);
enum unicode_class unicode_class(uint32_t c);
/* True when folding leaves the character of a dense script as it is, whatever is next to it. */
bool unicode_is_settled(uint32_t c);
/* True for letters whose marks are accents that people leave out (Latin, Greek, Cyrillic). */
bool unicode_has_accents(uint32_t c);

#define UNICODE_FOLD_MAX 256 /* bytes of text that are folded at once */
/* NFKC with case folded: two spellings that readers consider the same give the same bytes. At most UNICODE_FOLD_MAX
   bytes are taken. Returns a part of `room`; empty when nothing is left or the text is not UTF-8. */
struct unicode_room {
	int32_t code[UNICODE_FOLD_MAX * 5];
};
struct str unicode_fold(struct unicode_room *room, struct str s, bool without_marks);

#endif
