/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terms that are nearly the one asked for. All spellings are looked at, but most for a moment: those of another length,
 * and those whose set of letters differs by more than the changes could explain, are left out before anything is
 * compared.
 */
#include "index/words_format.h"
#include "text/unicode.h"

#define LETTERS_MAX 64

struct spelled {
	uint32_t c[LETTERS_MAX];
	size_t n;
};

static void spell(struct str term, struct spelled *ret)
{
	size_t len;

	ret->n = 0;
	for (size_t i = 0; i < term.len && ret->n < LETTERS_MAX; i += len)
		ret->c[ret->n++] = unicode_decode(term, i, &len);
}

static uint64_t letters(struct str term)
{
	uint64_t set = 0;

	for (size_t i = 0; i < term.len; i++)
		set |= UINT64_C(1) << ((unsigned char)term.ptr[i] & 63);
	return set;
}

/* Changes from a to b, with neighbours swapped as one; more than `max` gives max + 1. */
static unsigned changes(const struct spelled *a, const struct spelled *b, unsigned max)
{
	unsigned rows[3][LETTERS_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t k = 0; k <= b->n; k++)
		last[k] = (unsigned)k;
	memset(before, 0, sizeof rows[0]);
	for (size_t i = 1; i <= a->n; i++) {
		unsigned least = row[0] = (unsigned)i, *spare;

		for (size_t k = 1; k <= b->n; k++) {
			unsigned d = last[k - 1] + (a->c[i - 1] != b->c[k - 1]);

			d = last[k] + 1 < d ? last[k] + 1 : d;
			d = row[k - 1] + 1 < d ? row[k - 1] + 1 : d;
			if (i > 1 && k > 1 && a->c[i - 1] == b->c[k - 2] && a->c[i - 2] == b->c[k - 1] &&
			    before[k - 2] + 1 < d)
				d = before[k - 2] + 1;
			row[k] = d;
			least = d < least ? d : least;
		}
		if (least > max)
			return max + 1;
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b->n];
}

static bool is_better(const struct words_near *a, const struct words_near *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance;
	return a->docs != b->docs ? a->docs > b->docs : str_cmp(a->term, b->term) < 0;
}

static void add(struct words_near *list, size_t *count, size_t max, struct words_near near)
{
	size_t at = *count;

	for (size_t i = 0; i < *count; i++) {
		if (!str_eq(list[i].term, near.term))
			continue;
		near.docs += list[i].docs;
		memmove(list + i, list + i + 1, (*count - i - 1) * sizeof *list);
		at = --*count;
		break;
	}
	while (at && is_better(&near, &list[at - 1]))
		at--;
	if (at >= max)
		return;
	if (*count == max)
		--*count;
	memmove(list + at + 1, list + at, (*count - at) * sizeof *list);
	list[at] = near;
	++*count;
}

size_t words_near(const struct words_view *view, struct arena *arena, struct str term, unsigned distance, size_t max,
		  struct words_near **ret)
{
	struct words_near *list = ARENA_ARRAY(arena, struct words_near, max + 1);
	uint64_t set = letters(term);
	struct spelled asked, other;
	size_t count = 0;

	spell(term, &asked);
	for (size_t i = 0; i < view->count; i++) {
		const struct words_segment *s = view->segments[i];

		for (uint32_t t = 0; t < s->head->terms; t++) {
			struct str have = words_term_str(s, t);
			unsigned d;

			if (have.len + (size_t)distance * 4 < term.len || have.len > term.len + (size_t)distance * 4 ||
			    (unsigned)__builtin_popcountll(letters(have) ^ set) > 6 * distance)
				continue;
			spell(have, &other);
			d = other.n + distance < asked.n || asked.n + distance < other.n
				    ? distance + 1
				    : changes(&asked, &other, distance);
			if (d && d <= distance)
				add(list, &count, max, (struct words_near){have, d, s->terms[t].docs});
		}
	}
	*ret = list;
	return count;
}
