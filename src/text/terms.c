/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the bytes. Nearly all text is plain ASCII words, which are folded in place of a copy of 64 bytes; a
 * piece with anything else in it goes through utf8proc. A "chunk" is a run without blanks (src/net/http.c,
 * max_retries, 2026-11-15): its words are terms, and when it has several the chunk is one more at the place of its
 * first.
 */
#include "text/terms.h"
#include "base/utf8.h"

#include "text/unicode.h"

struct pass {
	struct str text;
	uint32_t pos;
	term_emit emit;
	void *arg;
	/* the chunk */
	size_t chunk_at;
	uint32_t chunk_pos, chunk_words;
	bool chunk_plain; /* ASCII so far */
	struct unicode_room room;
};

static const unsigned char ascii_class[128] = {
	/* 1: letter small, 2: capital, 3: digit, 4: joins an identifier, 5: underscore, 6: apostrophe */
	['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,  ['g'] = 1, ['h'] = 1, ['i'] = 1,
	['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1,  ['p'] = 1, ['q'] = 1, ['r'] = 1,
	['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1,  ['y'] = 1, ['z'] = 1, ['A'] = 2,
	['B'] = 2, ['C'] = 2, ['D'] = 2, ['E'] = 2, ['F'] = 2, ['G'] = 2,  ['H'] = 2, ['I'] = 2, ['J'] = 2,
	['K'] = 2, ['L'] = 2, ['M'] = 2, ['N'] = 2, ['O'] = 2, ['P'] = 2,  ['Q'] = 2, ['R'] = 2, ['S'] = 2,
	['T'] = 2, ['U'] = 2, ['V'] = 2, ['W'] = 2, ['X'] = 2, ['Y'] = 2,  ['Z'] = 2, ['0'] = 3, ['1'] = 3,
	['2'] = 3, ['3'] = 3, ['4'] = 3, ['5'] = 3, ['6'] = 3, ['7'] = 3,  ['8'] = 3, ['9'] = 3, ['-'] = 4,
	['.'] = 4, ['/'] = 4, [':'] = 4, ['@'] = 4, ['#'] = 4, ['\\'] = 4, ['+'] = 4, ['_'] = 5, ['\''] = 6,
};
enum { SMALL = 1, CAPITAL, DIGIT, JOINS, UNDERSCORE, APOSTROPHE };

static unsigned class_at(struct str s, size_t i)
{
	unsigned char c = i < s.len ? (unsigned char)s.ptr[i] : 0;

	return c < 128 ? ascii_class[c] : 0;
}

static bool is_plain_word(unsigned class)
{
	return class >= SMALL && class <= DIGIT;
}

static void give(struct pass *p, struct str term, uint32_t pos, size_t at, size_t len, unsigned flags)
{
	struct term t = {.text = term.len > TERM_MAX ? utf8_first(term, TERM_MAX) : term,
			 .pos = pos,
			 .at = (uint32_t)at,
			 .len = (uint32_t)len,
			 .flags = flags};

	if (t.text.len)
		p->emit(p->arg, &t);
}

static size_t lower(char *to, struct str s, bool drop_apostrophes)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len && n < TERM_MAX; i++) {
		char c = s.ptr[i];

		if (c == '\'' && drop_apostrophes)
			continue;
		to[n++] = (char)ascii_lower((unsigned char)c);
	}
	return n;
}

/* --- chunks --- */

static void chunk_end(struct pass *p, size_t end)
{
	struct str whole = str_n(p->text.ptr + p->chunk_at, end - p->chunk_at);
	char room[TERM_MAX];

	if (p->chunk_words > 1 && p->chunk_plain && whole.len <= TERM_MAX)
		give(p, str_n(room, lower(room, whole, false)), p->chunk_pos, p->chunk_at, whole.len,
		     TERM_EXTRA | TERM_WHOLE);
	p->chunk_words = 0;
}

static void word(struct pass *p, size_t at, size_t end, struct str folded)
{
	if (!p->chunk_words) {
		p->chunk_at = at;
		p->chunk_pos = p->pos;
		p->chunk_plain = true;
	}
	give(p, folded, p->pos++, at, end - at, 0);
	p->chunk_words++;
}

/* --- ASCII --- */

/* Where the part that begins at `at` ends: before a capital that follows a small letter ("parseHttp"), before the last
   capital of several when a small one follows ("HTTPServer"). Digits stay with the letters before them. */
static size_t part_end(struct str s, size_t at, size_t end)
{
	for (size_t i = at + 1; i < end; i++) {
		unsigned before = class_at(s, i - 1), here = class_at(s, i);

		if (here == CAPITAL && before == SMALL)
			return i;
		if (here == CAPITAL && before == CAPITAL && i + 1 < end && class_at(s, i + 1) == SMALL && i > at)
			return i;
	}
	return end;
}

static void ident_word(struct pass *p, size_t at, size_t end, bool mixed)
{
	char room[TERM_MAX];
	struct str whole = str_n(p->text.ptr + at, end - at);
	size_t part = mixed ? part_end(p->text, at, end) : end;
	uint32_t first = p->pos;

	if (part == end) {
		word(p, at, end, str_n(room, lower(room, whole, true)));
		return;
	}
	for (size_t from = at; from < end; from = part) {
		part = part_end(p->text, from, end);
		p->chunk_words = from > at ? p->chunk_words - 1 : p->chunk_words;
		word(p, from, part, str_n(room, lower(room, str_n(p->text.ptr + from, part - from), true)));
	}
	give(p, str_n(room, lower(room, whole, true)), first, at, end - at, TERM_EXTRA | TERM_WHOLE);
}

/* A plain word from `at` on; returns where it ends. An apostrophe between letters is left out, "'s" is left off. */
static size_t plain(struct pass *p, size_t at)
{
	struct str s = p->text;
	size_t i = at, skip;
	bool small = false, mixed = false;

	for (;; i++) {
		unsigned class = class_at(s, i);

		if (class == APOSTROPHE && is_plain_word(class_at(s, i + 1)) && i > at) {
			bool is_s = (s.ptr[i + 1] | 0x20) == 's' && !is_plain_word(class_at(s, i + 2));

			if (is_s)
				break;
			continue;
		}
		if (!is_plain_word(class))
			break;
		mixed |= class == CAPITAL && i > at;
		small |= class == SMALL;
	}
	skip = class_at(s, i) == APOSTROPHE && is_plain_word(class_at(s, i + 1)) ? 2 : 0;
	ident_word(p, at, i, mixed && small);
	return i + skip;
}

/* --- everything else --- */

/* The characters of a run without blanks, each with its marks; pairs overlap. `at` is where `run` is in the source,
   or `fixed_len` when the folded text has no places there. */
static void dense_run(struct pass *p, struct str run, size_t at, size_t fixed_len)
{
	size_t before = SIZE_MAX, n = 0, len, next;

	for (size_t i = 0; i < run.len; i = next, n++) {
		unsigned flags;

		unicode_decode(run, i, &len);
		next = i + len;
		while (next < run.len && unicode_class(unicode_decode(run, next, &len)) == UNICODE_MARK)
			next += len;
		flags = TERM_DENSE | (n || next < run.len ? TERM_SINGLE : 0);
		if (before != SIZE_MAX)
			give(p, str_n(run.ptr + before, next - before), p->pos - 1, fixed_len ? at : at + before,
			     fixed_len ? fixed_len : next - before, TERM_EXTRA | TERM_DENSE);
		give(p, str_n(run.ptr + i, next - i), p->pos++, fixed_len ? at : at + i,
		     fixed_len ? fixed_len : next - i, flags);
		before = i;
	}
}

static void other_word(struct pass *p, size_t at, size_t end, bool accents)
{
	struct str raw = str_n(p->text.ptr + at, end - at), folded, bare;
	uint32_t pos = p->pos;
	char kept[UNICODE_FOLD_MAX];

	folded = unicode_fold(&p->room, raw, false);
	if (!folded.len)
		return;
	folded = utf8_first(folded, sizeof kept < TERM_MAX ? sizeof kept : TERM_MAX);
	memcpy(kept, folded.ptr, folded.len);
	folded.ptr = kept;
	word(p, at, end, folded);
	if (!accents)
		return;
	bare = unicode_fold(&p->room, raw, true);
	if (bare.len && !str_eq(utf8_first(bare, TERM_MAX), folded))
		give(p, bare, pos, at, end - at, TERM_EXTRA);
}

/* A run of one class that is not plain ASCII. Returns where it ends. */
static size_t unicode_run(struct pass *p, size_t at, enum unicode_class class)
{
	struct str s = p->text;
	size_t i = at, len;
	bool settled = true, accents = false;

	while (i < s.len && (settled || i - at < UNICODE_FOLD_MAX - 8)) {
		uint32_t c = unicode_decode(s, i, &len);
		enum unicode_class here = unicode_class(c);

		if (here != class && here != UNICODE_MARK)
			break;
		if (settled && !unicode_is_settled(c)) {
			if (i - at > UNICODE_FOLD_MAX / 2)
				break;
			settled = false;
		}
		accents |= unicode_has_accents(c) || (here == UNICODE_MARK && c < 0x370);
		i += len;
	}
	if (class != UNICODE_DENSE) {
		other_word(p, at, i, accents);
		p->chunk_plain = false;
	} else if (settled) {
		dense_run(p, str_n(s.ptr + at, i - at), at, 0);
	} else {
		struct str folded = unicode_fold(&p->room, str_n(s.ptr + at, i - at), false);
		char kept[sizeof p->room.code];

		memcpy(kept, folded.ptr, folded.len);
		dense_run(p, str_n(kept, folded.len), at, i - at);
	}
	return i;
}

/* True when a plain word continues as a word of another kind: "naïve" begins with "na". */
static bool goes_on(struct str s, size_t i)
{
	size_t len;
	enum unicode_class class;

	if (i >= s.len || (unsigned char)s.ptr[i] < 128)
		return false;
	class = unicode_class(unicode_decode(s, i, &len));
	return class == UNICODE_WORD || class == UNICODE_MARK;
}

static size_t plain_end(struct str s, size_t i)
{
	while (is_plain_word(class_at(s, i)))
		i++;
	return i;
}

uint32_t terms_each(struct str text, uint32_t pos, term_emit emit, void *arg)
{
	struct pass p = {.text = str_first(text, UINT32_MAX), .pos = pos, .emit = emit, .arg = arg};
	size_t i = 0, word_end = 0, len;

	while (i < p.text.len) {
		unsigned char c = (unsigned char)p.text.ptr[i];
		unsigned class = c < 128 ? ascii_class[c] : 0;
		enum unicode_class other;

		if (is_plain_word(class) && !goes_on(p.text, plain_end(p.text, i))) {
			i = plain(&p, i);
			word_end = i;
			continue;
		}
		if (c < 128 && !is_plain_word(class)) {
			bool joins = p.chunk_words && i == word_end && (class == JOINS || class == UNDERSCORE) &&
				     is_plain_word(class_at(p.text, i + 1));

			if (!joins && p.chunk_words)
				chunk_end(&p, word_end);
			i++;
			word_end = joins ? i : word_end;
			continue;
		}
		other = c < 128 ? UNICODE_WORD : unicode_class(unicode_decode(p.text, i, &len));
		if (other == UNICODE_WORD || other == UNICODE_DENSE) {
			if (other == UNICODE_DENSE && p.chunk_words)
				chunk_end(&p, word_end);
			i = unicode_run(&p, i, other);
			word_end = i;
			continue;
		}
		if (p.chunk_words)
			chunk_end(&p, word_end);
		i += len;
	}
	if (p.chunk_words)
		chunk_end(&p, word_end);
	return p.pos;
}
