/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many tokens a model is likely to make of a text. No vocabulary is shipped (each model has its own, and a megabyte
 * of merges would cost more at start than the answer is worth); the rule imitates how byte-pair encodings of today cut:
 * a word takes one token for every six letters begun, a number one for every three digits, a run of punctuation one for
 * every three characters, a run of white space one unless it is the single blank before a word, other scripts one for
 * every code point of three bytes or more and one for every two of two bytes. It reads text only as text: a literal
 * that is a special token to some model is just letters and punctuation here.
 */
#include "text/tokens.h"
#include "base/utf8.h"

enum run { PUNCTUATION, WORD, DIGIT, SPACE, TWO_BYTES, MORE_BYTES };

/* By the first byte; letters and digits are ASCII's. */
static const unsigned char run_by_byte[256] =
	{
		['A' ... 'Z'] = WORD,         ['a' ... 'z'] = WORD, ['0' ... '9'] = DIGIT,
		['\t' ... '\r'] = SPACE,      [' '] = SPACE,        [0x80 ... 0xDF] = TWO_BYTES,
		[0xE0 ... 0xFF] = MORE_BYTES,
};

static enum run run_of(unsigned char c)
{
	return (enum run)run_by_byte[c];
}

static uint64_t run_tokens(enum run c, uint64_t units, bool single_blank_before_word)
{
	switch (c) {
	case WORD:
		return (units + 5) / 6;
	case DIGIT:
	case PUNCTUATION:
		return (units + 2) / 3;
	case SPACE:
		return single_blank_before_word ? 0 : 1;
	case TWO_BYTES:
		return (units + 1) / 2;
	case MORE_BYTES:
		break;
	}
	return units;
}

uint64_t tokens_estimate(struct str text)
{
	uint64_t tokens = 0;

	for (size_t i = 0; i < text.len;) {
		enum run c = run_of((unsigned char)text.ptr[i]);
		size_t start = i;
		uint64_t units = 0;

		if (c < TWO_BYTES) {
			while (i < text.len && run_by_byte[(unsigned char)text.ptr[i]] == c)
				i++;
			units = i - start;
		}
		while (c >= TWO_BYTES && i < text.len && run_of((unsigned char)text.ptr[i]) == c) {
			units++;
			i++;
			/* the rest of a code point belongs to its first byte */
			while (i < text.len && utf8_inside(text.ptr[i]))
				i++;
		}
		tokens += run_tokens(c, units,
				     units == 1 && text.ptr[start] == ' ' && i < text.len &&
					     run_of((unsigned char)text.ptr[i]) != DIGIT);
	}
	return tokens;
}
