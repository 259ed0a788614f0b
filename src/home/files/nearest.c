/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an edit's text is not found, the most useful answer is the place that was probably meant, with the difference.
 * Each line becomes a 256-bit set of its letter triples (white space and case left out); a window of lines is near when
 * its lines contain the triples of the lines that were wanted. That is a pass over the file with a few operations per
 * byte, where an edit distance per window would be quadratic; the true difference is then shown for the one best
 * window. Work is bounded by LOOK_MOST bytes, HAVE_MOST lines of the file and WANT_MOST of the text.
 */
#include <ctype.h>

#include "home/files/files.h"

#define LOOK_MOST (4 * MIB)
#define HAVE_MOST 50000
#define WANT_MOST 40
#define LINE_MOST ((size_t)2000)

struct grams {
	uint64_t bits[4];
	unsigned count;
};

static void set_gram(struct grams *g, uint32_t window)
{
	uint32_t h = (window * 2654435761u) >> 24;

	g->bits[h >> 6] |= UINT64_C(1) << (h & 63);
}

static unsigned common(const struct grams *a, const struct grams *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < 4; i++)
		n += (unsigned)__builtin_popcountll(a->bits[i] & b->bits[i]);
	return n;
}

static struct grams grams_of(struct str line)
{
	struct grams g = {0};
	uint32_t window = 0;
	unsigned letters = 0;

	line = str_first(line, LINE_MOST);
	for (size_t i = 0; i < line.len; i++) {
		unsigned char c = (unsigned char)line.ptr[i];

		if (isspace(c))
			continue;
		window = (window << 8 | (unsigned)tolower(c)) & 0xFFFFFF;
		if (++letters >= 3) {
			set_gram(&g, window);
		}
	}
	if (letters == 1 || letters == 2)
		set_gram(&g, window);
	g.count = common(&g, &g);
	return g;
}

struct texts {
	struct str *line;
	struct grams *grams;
	size_t count;
};

static struct texts cut(struct arena *arena, struct str text, size_t most)
{
	struct texts t = {0};
	size_t n = count_lines(text);
	struct str line;

	n = n < most ? n : most;
	t.line = ARENA_ARRAY(arena, struct str, n + 1);
	t.grams = ARENA_ARRAY(arena, struct grams, n + 1);
	while (t.count < n && str_cut(&text, '\n', &line)) {
		t.line[t.count] = line;
		t.grams[t.count++] = grams_of(line);
	}
	return t;
}

/* How much of the wanted triples the window at `at` has, in parts of `total`; lines of the window that have much more
   than was wanted count a little against it, so that a short line wins over a long one that happens to contain all. */
static int score(const struct texts *want, const struct texts *have, size_t at)
{
	int sum = 0;

	for (size_t i = 0; i < want->count && at + i < have->count; i++) {
		const struct grams *w = &want->grams[i], *h = &have->grams[at + i];
		unsigned both = common(w, h);

		sum += (int)(8 * both) - (int)(h->count - both);
	}
	return sum;
}

static bool same_but(struct str a, struct str b, bool ignore_case)
{
	size_t i = 0, j = 0;

	for (;;) {
		while (i < a.len && isspace((unsigned char)a.ptr[i]))
			i++;
		while (j < b.len && isspace((unsigned char)b.ptr[j]))
			j++;
		if (i == a.len || j == b.len)
			return i == a.len && j == b.len;
		if (ignore_case ? tolower((unsigned char)a.ptr[i]) != tolower((unsigned char)b.ptr[j])
				: a.ptr[i] != b.ptr[j])
			return false;
		i++;
		j++;
	}
}

static const char *reason(struct str have, struct str wanted)
{
	if (same_but(have, wanted, false))
		return " It differs only in white space (indentation, tabs, line ends or blank lines).";
	if (same_but(have, wanted, true))
		return " It differs only in upper and lower case and white space.";
	return "";
}

struct str nearest_text(struct arena *arena, struct str bytes, struct str wanted)
{
	struct texts want, have;
	size_t best_at = 0, last;
	int best = 0;
	unsigned total = 0, found = 0;
	struct str window;
	struct buf buf;

	bytes = str_first(bytes, LOOK_MOST);
	while (wanted.len && wanted.ptr[wanted.len - 1] == '\n')
		wanted.len--;
	if (wanted.len == 0 || bytes.len == 0)
		return STR_NONE;
	want = cut(arena, str_first(wanted, WANT_MOST * LINE_MOST), WANT_MOST);
	have = cut(arena, bytes, HAVE_MOST);
	for (size_t i = 0; i < have.count; i++) {
		int s = score(&want, &have, i);

		if (s > best) {
			best = s;
			best_at = i;
		}
	}
	for (size_t i = 0; i < want.count && best_at + i < have.count; i++)
		found += common(&want.grams[i], &have.grams[best_at + i]);
	for (size_t i = 0; i < want.count; i++)
		total += want.grams[i].count;
	if (best == 0 || found * 5 < total * 3) /* much of it is not there: that was not meant */
		return STR_NONE;
	last = best_at + want.count < have.count ? best_at + want.count : have.count;
	window = str_n(have.line[best_at].ptr,
		       (size_t)(have.line[last - 1].ptr + have.line[last - 1].len - have.line[best_at].ptr));
	buf_init(&buf, arena, 64 * KIB);
	buf_printf(&buf, "The nearest text is at line %zu.%s (- wanted, + in the file)\n", best_at + 1,
		   reason(window, wanted));
	diff_unified(arena, arena_printf(arena, "%.*s\n", STR_ARG(wanted)),
		     arena_printf(arena, "%.*s\n", STR_ARG(window)), STR_NONE, 40, &buf);
	if (buf.len && buf.ptr[buf.len - 1] == '\n')
		buf.len--;
	return buf_str(&buf);
}
