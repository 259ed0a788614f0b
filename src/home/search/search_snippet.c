/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passage that shows why a document was found: of all stretches of about 240 bytes the one with the most valuable
 * words of the question in it, each counted once and its repetitions a little. Long texts are looked at by pieces, and
 * the first piece with a match decides.
 */
#include "base/limits.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "home/search/search_internal.h"
#include "text/terms.h"

#define STRETCH 240
#define BEFORE  50
#define PIECE   (64 * KIB)

struct match {
	uint32_t at, len;
	size_t clause;
};

struct matcher {
	struct arena *arena;
	struct strmap *terms; /* clause + 1 */
	struct match *list;
	size_t count, cap;
};

static void look(void *arg, const struct term *term)
{
	struct matcher *m = arg;
	size_t *clause = strmap_find(m->terms, term->text);

	if (!clause)
		return;
	if (m->count == m->cap) {
		m->list = arena_grow(m->arena, m->list, m->cap * sizeof *m->list, (m->cap * 2 + 32) * sizeof *m->list);
		m->cap = m->cap * 2 + 32;
	}
	m->list[m->count++] = (struct match){term->at, term->len, *clause - 1};
}

static int by_place(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->len > b->len ? -1 : a->len < b->len;
}

/* The first match of the best stretch. */
static size_t best_start(const struct matcher *m, const double *worth, size_t clauses, struct arena *arena)
{
	unsigned *seen = ARENA_ARRAY(arena, unsigned, clauses + 1);
	double best = -1, sum = 0;
	size_t start = 0, end = 0;

	for (size_t i = 0; i < m->count; i++) {
		while (end < m->count && m->list[end].at + m->list[end].len <= m->list[i].at + STRETCH) {
			sum += worth[m->list[end].clause] * (seen[m->list[end].clause]++ ? 0.05 : 1);
			end++;
		}
		if (sum > best + 1e-9) {
			best = sum;
			start = i;
		}
		if (end > i)
			sum -= worth[m->list[i].clause] * (--seen[m->list[i].clause] ? 0.05 : 1);
		else
			end = i + 1;
	}
	return start;
}

/* The stars of Markdown are left out: in a passage they mark what matched. */
static void add_clean(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '*' && ((i + 1 < text.len && text.ptr[i + 1] == '*') || (i && text.ptr[i - 1] == '*')))
			continue;
		if (c > ' ' && c != 127)
			buf_char(out, (char)c);
		else if (out->len && out->ptr[out->len - 1] != ' ')
			buf_char(out, ' ');
	}
}

/* A place at or before `at` where a word begins. */
static size_t word_start(struct str s, size_t at, size_t low)
{
	size_t i = at;

	while (i > low && (unsigned char)s.ptr[i - 1] > ' ')
		i--;
	if (i > low || at == low)
		return i;
	for (i = at; i > low && utf8_inside(s.ptr[i]); i--)
		;
	return i;
}

static size_t stretch_end(struct str s, size_t start)
{
	size_t end = start + STRETCH + BEFORE;

	if (end >= s.len)
		return s.len;
	for (size_t i = end; i > end - 40; i--)
		if ((unsigned char)s.ptr[i] <= ' ')
			return i;
	while (end > start && utf8_inside(s.ptr[end]))
		end--;
	return end;
}

static struct str write_passage(struct arena *arena, struct str s, const struct matcher *m, size_t first, size_t start)
{
	size_t end = stretch_end(s, start), at = start;
	struct buf out;

	buf_init(&out, arena, 4 * KIB);
	if (start)
		buf_lit(&out, "…");
	for (size_t i = first; i < m->count && m->list[i].at < end;) {
		size_t from = m->list[i].at, to = from + m->list[i].len;

		for (i++; i < m->count && m->list[i].at <= to; i++)
			to = m->list[i].at + m->list[i].len > to ? m->list[i].at + m->list[i].len : to;
		if (from < at || to > end)
			continue;
		add_clean(&out, str_n(s.ptr + at, from - at));
		buf_lit(&out, "**");
		add_clean(&out, str_n(s.ptr + from, to - from));
		buf_lit(&out, "**");
		at = to;
	}
	add_clean(&out, str_n(s.ptr + at, end - at));
	if (end < s.len)
		buf_lit(&out, "…");
	return str_trim(buf_str(&out));
}

struct str search_snippet(struct arena *arena, const struct words_view *view, const struct search_plan *plan,
			  struct str body)
{
	struct matcher m = {.arena = arena, .terms = strmap_new(arena)};
	double *worth = ARENA_ARRAY(arena, double, plan->count + 1);
	struct str piece = str_first(body, 0);

	for (size_t i = 0; i < plan->count; i++) {
		uint64_t docs;

		if (plan->clauses[i].without)
			continue;
		worth[i] = words_idf(view, plan->clauses[i].term, &docs) * plan->clauses[i].weight;
		*strmap_put(m.terms, plan->clauses[i].term, NULL) = i + 1;
	}
	for (size_t at = 0; !m.count && at < body.len && plan->count; at += piece.len) {
		piece = utf8_first(str_from(body, at), PIECE);
		if (!piece.len)
			piece = str_first(str_from(body, at), PIECE);
		terms_each(piece, 0, look, &m);
	}
	if (!m.count)
		return write_passage(arena, utf8_first(body, PIECE), &m, 0, 0);
	qsort(m.list, m.count, sizeof *m.list, by_place);
	{
		size_t first = best_start(&m, worth, plan->count, arena), low = m.list[first].at;
		size_t from = low > BEFORE ? low - BEFORE : 0, start = word_start(piece, low, from);

		start = from == 0 ? 0 : word_start(piece, from, from > 24 ? from - 24 : 0);
		while (first && m.list[first - 1].at >= start)
			first--;
		return write_passage(arena, piece, &m, first, start);
	}
}
