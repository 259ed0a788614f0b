/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, and the "%2F" that URLs make of them. */
#ifndef STEAD_BASE_HEX_H
#define STEAD_BASE_HEX_H

#include "base/arena.h"

/* 0 to 15; -1: it is not a digit. */
static inline int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 16 small digits, without a NUL. */
void hex_u64(uint64_t v, char ret_hex[16]);
/* Two small digits for each byte, without a NUL. */
void hex_bytes(const uint8_t *bytes, size_t len, char *ret_hex);
/* The byte that "%XX" at text[at] stands for; -1: there is no such code. */
int percent_byte(struct str text, size_t at);
/* "%2F" and its like decoded, in the arena; ptr NULL when a '%' is not followed by two digits. */
struct str percent_decode(struct arena *arena, struct str text);

#endif
