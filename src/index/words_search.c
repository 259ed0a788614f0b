/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best documents for a question, exactly, without looking at most of them.
 *
 * Document numbers are walked in windows. For each window the most that each term can give there is known from its
 * blocks. When all together cannot reach the worst of the best so far, the window is skipped without unpacking
 * anything. Else the terms with the least to give are set aside as long as they alone could not lift a document into
 * the best (MaxScore); the others are unpacked and added up into an array, and only for documents that can still make
 * it the rest is looked up. Filters, phrases and exclusions are asked last, of what would otherwise enter.
 */
#include <math.h>

#include "index/words_format.h"

#define WINDOW     2048u
#define PLACES_MAX 4096u
#define BOOST_MAX  100.0 /* no credit gives more: a damaged file may say anything */

struct list {
	const struct words_segment *s;
	const struct words_term *t;
	double gives; /* times f / (f + K) */
	double ratio; /* what this view's average may make of a bound: see bound_of */
	uint32_t block, end;
	uint32_t loaded; /* which block is unpacked; WORDS_NONE: none */
	uint32_t i, n;
	int64_t most; /* in this window */
	uint32_t docs[WORDS_BLOCK], freqs[WORDS_BLOCK];
};

struct best {
	struct words_hit hit;
	int64_t time_ns;
};

struct search {
	const struct words_view *view;
	const struct words_query *q;
	struct words_hits *ret;
	struct best *heap; /* the worst on top */
	size_t held;
	double k0, k1; /* K = k0 + k1 len */
	double *idf;   /* per clause */
	bool phrases, plain;
	uint32_t places[2][PLACES_MAX];
	/* the segment */
	uint32_t number;
	const struct words_segment *s;
	uint32_t *terms; /* per clause */
	bool checks;     /* some documents may have to be left out */
	double boost;
	struct list *lists, **order;
	size_t list_count;
	int64_t acc[WINDOW];
	uint64_t touched[WINDOW / 64];
};

/* --- the best so far --- */

static struct str id_of(const struct words_segment *s, uint32_t doc)
{
	const unsigned char *at = s->texts + s->rows[doc].text_at, *end = at + s->rows[doc].text_len;
	uint32_t len = words_varint(&at, end);

	return str_n(at, len < (size_t)(end - at) ? len : (size_t)(end - at));
}

/* True when a ranks below b. */
static bool is_worse(const struct words_view *v, const struct best *a, const struct best *b)
{
	const struct words_segment *sa = v->segments[a->hit.segment], *sb = v->segments[b->hit.segment];
	int c;

	if (a->hit.score != b->hit.score)
		return a->hit.score < b->hit.score;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	c = str_cmp(words_path(sa, sa->rows[a->hit.doc].file), words_path(sb, sb->rows[b->hit.doc].file));
	if (c)
		return c > 0;
	return str_cmp(id_of(sa, a->hit.doc), id_of(sb, b->hit.doc)) > 0;
}

static void sift_down(struct search *x, size_t i, size_t n)
{
	struct best moved = x->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && is_worse(x->view, &x->heap[child + 1], &x->heap[child]))
			child++;
		if (!is_worse(x->view, &x->heap[child], &moved))
			break;
		x->heap[i] = x->heap[child];
		i = child;
	}
	x->heap[i] = moved;
}

static void enter(struct search *x, uint32_t doc, int64_t score)
{
	struct best b = {.hit = {x->number, doc, score}, .time_ns = x->s->rows[doc].time_ns};
	size_t i = x->held;

	if (x->held == x->q->top) {
		if (!x->held || is_worse(x->view, &b, &x->heap[0]))
			return;
		x->heap[0] = b;
		sift_down(x, 0, x->held);
		return;
	}
	x->held++;
	for (; i && is_worse(x->view, &b, &x->heap[(i - 1) / 2]); i = (i - 1) / 2)
		x->heap[i] = x->heap[(i - 1) / 2];
	x->heap[i] = b;
}

/* What a document needs at least; INT64_MIN while there is room. */
static int64_t needed(const struct search *x)
{
	return x->held < x->q->top ? INT64_MIN : x->held ? x->heap[0].hit.score : INT64_MAX;
}

static int64_t boosted(int64_t score, double boost)
{
	boost = boost < BOOST_MAX ? boost : BOOST_MAX;
	return boost > 1 ? (int64_t)((double)score * boost) : score;
}

/* --- which documents may enter --- */

/* The positions of the term in the document; returns how many there are. */
static uint32_t places_of(const struct words_segment *s, uint32_t term, uint32_t doc, uint32_t *places)
{
	const struct words_term *t = &s->terms[term];
	uint32_t low = t->block, high = t->block + words_block_count(t), docs[WORDS_BLOCK], n, i, count;
	const unsigned char *at, *end = s->places + s->head->len[WORDS_PLACES];
	uint32_t place = 0;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->blocks[mid].last < doc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == t->block + words_block_count(t))
		return 0;
	n = words_block_read(s, low, words_block_base(s, t, low), docs, NULL);
	for (i = 0; i < n && docs[i] < doc; i++)
		;
	if (i == n || docs[i] != doc)
		return 0;
	at = s->places + s->blocks[low].places;
	for (; i; i--)
		for (uint32_t left = words_varint(&at, end); left && at < end; left--)
			words_varint(&at, end);
	count = words_varint(&at, end);
	count = count > PLACES_MAX ? PLACES_MAX : count;
	for (i = 0; places && i < count; i++)
		places[i] = place += words_varint(&at, end);
	return count ? count : 1;
}

/* True when the terms of the phrase that begins with clause `c` stand next to each other. */
static bool has_phrase(struct search *x, size_t c, uint32_t doc)
{
	const struct words_clause *clauses = x->q->clauses;
	uint32_t *found = x->places[0], *other = x->places[1], n;

	if (x->terms[c] == WORDS_NONE)
		return false;
	n = places_of(x->s, x->terms[c], doc, found);
	for (size_t k = c + 1; n && k < x->q->count && clauses[k].phrase == clauses[c].phrase; k++) {
		uint32_t kept = 0, j = 0, m;

		if (x->terms[k] == WORDS_NONE)
			return false;
		m = places_of(x->s, x->terms[k], doc, other);
		for (uint32_t i = 0; i < n; i++) {
			while (j < m && other[j] < found[i] + clauses[k].at)
				j++;
			if (j < m && other[j] == found[i] + clauses[k].at)
				found[kept++] = found[i];
		}
		n = kept;
	}
	return n > 0;
}

static bool clauses_ok(struct search *x, uint32_t doc)
{
	for (size_t c = 0; c < x->q->count; c++) {
		const struct words_clause *k = &x->q->clauses[c];

		if (k->phrase >= 0) {
			if (c && x->q->clauses[c - 1].phrase == k->phrase)
				continue;
			if (has_phrase(x, c, doc) == k->without)
				return false;
		} else if (k->without && x->terms[c] != WORDS_NONE && places_of(x->s, x->terms[c], doc, NULL)) {
			return false;
		}
	}
	return true;
}

static bool in_directory(struct str path, struct str dir)
{
	return str_starts(path, dir) &&
	       (path.len == dir.len || dir.ptr[dir.len - 1] == '/' || path.ptr[dir.len] == '/');
}

/* Hashes said yes; the text itself has the last word. */
static bool text_ok(const struct search *x, const struct words_row *row)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_doc doc = {0};

	if (!words_unpack_text(str_n(x->s->texts + row->text_at, row->text_len), arena, &doc))
		return false;
	if ((x->q->kind.len && !str_eq(doc.kind, x->q->kind)) ||
	    (x->q->author.len && !str_eq(doc.author, x->q->author)))
		return false;
	for (size_t i = 0; i < x->q->tag_count; i++) {
		bool has = false;

		for (size_t k = 0; k < doc.tag_count; k++)
			has |= str_eq(doc.tags[k], x->q->tags[i]);
		if (!has)
			return false;
	}
	return true;
}

static bool row_ok(const struct search *x, uint32_t doc)
{
	const struct words_query *q = x->q;
	const struct words_row *row = &x->s->rows[doc];

	if (words_is_dead(x->view, x->number, doc) || !(row->area & q->areas) || (row->archived && !q->with_archived) ||
	    (q->since_ns && row->time_ns < q->since_ns) || (q->until_ns && row->time_ns > q->until_ns))
		return false;
	if (q->under.len && !in_directory(words_path(x->s, row->file), q->under))
		return false;
	if (!q->kind.len && !q->author.len && !q->tag_count)
		return true;
	if ((q->kind.len && row->kind != words_word_hash(q->kind)) ||
	    (q->author.len && row->author != words_word_hash(q->author)))
		return false;
	for (size_t i = 0; i < q->tag_count; i++)
		if (!(row->tags & words_tag_bit(q->tags[i])))
			return false;
	return text_ok(x, row);
}

static bool may_enter(struct search *x, uint32_t doc)
{
	return !x->checks || (row_ok(x, doc) && (x->plain || clauses_ok(x, doc)));
}

/* --- lists --- */

/* The most that a block with this `least` can give. `least` was computed with the segment's average length; where the
   view's is larger, K shrinks by no more than the ratio of both. */
static int64_t bound_of(const struct list *l, float least)
{
	return (int64_t)(l->gives / (1 + l->ratio * (double)least)) + 2;
}

static int64_t score_of(const struct search *x, const struct list *l, uint32_t doc, uint32_t freq)
{
	return (int64_t)(l->gives * freq / (freq + (x->k0 + x->k1 * x->s->lens[doc])));
}

static void load(struct search *x, struct list *l)
{
	if (l->loaded == l->block)
		return;
	l->n = words_block_read(l->s, l->block, words_block_base(l->s, l->t, l->block), l->docs, l->freqs);
	l->loaded = l->block;
	l->i = 0;
	x->ret->blocks_read++;
}

/* Moves to the first block that reaches to `low`, and finds the most it gives before `high`. *ret_next: the first
   document that it may have from `low` on. */
static void look_ahead(struct list *l, uint32_t low, uint32_t high, uint32_t *ret_next)
{
	const struct words_block *blocks = l->s->blocks;
	float least = INFINITY;

	while (l->block < l->end && blocks[l->block].last < low)
		l->block++;
	l->most = 0;
	*ret_next = UINT32_MAX;
	if (l->block == l->end)
		return;
	*ret_next = words_block_base(l->s, l->t, l->block) + 1;
	if (*ret_next < low)
		*ret_next = low;
	if (*ret_next >= high)
		return;
	for (uint32_t b = l->block; b < l->end; b++) {
		least = blocks[b].least < least ? blocks[b].least : least;
		if (blocks[b].last >= high - 1)
			break;
	}
	l->most = bound_of(l, least);
}

/* Adds what the list gives to the documents of the window; blocks that cannot matter are left packed. */
static void add_up(struct search *x, struct list *l, uint32_t low, uint32_t high, int64_t others)
{
	const struct words_block *blocks = l->s->blocks;

	for (uint32_t b = l->block; b < l->end && words_block_base(l->s, l->t, b) + 1 < high; b++) {
		if (l->loaded != b && boosted(bound_of(l, blocks[b].least) + others, x->boost) < needed(x)) {
			x->ret->blocks_skipped++;
			continue;
		}
		l->block = b;
		load(x, l);
		while (l->i < l->n && l->docs[l->i] < low)
			l->i++;
		for (; l->i < l->n; l->i++) {
			uint32_t i = l->i, at = l->docs[i] - low;

			if (at >= high - low)
				break;
			x->acc[at] += score_of(x, l, l->docs[i], l->freqs[i]);
			x->touched[at >> 6] |= UINT64_C(1) << (at & 63);
		}
	}
}

/* What the list gives to one document; documents come in order. */
static int64_t look_up(struct search *x, struct list *l, uint32_t doc)
{
	uint32_t low = 0, n;

	while (l->block < l->end && l->s->blocks[l->block].last < doc)
		l->block++;
	if (l->block == l->end || words_block_base(l->s, l->t, l->block) + 1 > doc)
		return 0;
	load(x, l);
	for (n = l->n; n > 1;) {
		uint32_t half = n / 2;

		low += l->docs[low + half - 1] < doc ? half : 0;
		n -= half;
	}
	return l->docs[low] == doc ? score_of(x, l, doc, l->freqs[low]) : 0;
}

/* --- windows --- */

static void sort_lists(struct search *x)
{
	for (size_t i = 1; i < x->list_count; i++)
		for (size_t k = i; k && x->order[k]->most < x->order[k - 1]->most; k--) {
			struct list *other = x->order[k];

			x->order[k] = x->order[k - 1];
			x->order[k - 1] = other;
		}
}

/* A document of the window has `score` from the lists that were added up; those before `aside` are still to be asked,
   and give `rest` at most. */
static void consider(struct search *x, uint32_t doc, int64_t score, size_t aside, int64_t rest)
{
	double boost = x->s->rows[doc].boost;

	for (size_t i = aside; i-- > 0;) {
		if (boosted(score + rest, boost) < needed(x))
			return;
		rest -= x->order[i]->most;
		score += look_up(x, x->order[i], doc);
	}
	score = boosted(score, boost);
	x->ret->scored++;
	if (score >= needed(x) && may_enter(x, doc))
		enter(x, doc, score);
}

static void take_window(struct search *x, uint32_t low, uint32_t high, size_t aside, int64_t rest, int64_t all)
{
	memset(x->acc, 0, sizeof x->acc);
	memset(x->touched, 0, sizeof x->touched);
	for (size_t i = x->list_count; i-- > aside;)
		if (x->order[i]->most)
			add_up(x, x->order[i], low, high, all - x->order[i]->most);
	for (uint32_t w = 0; w < WINDOW / 64; w++)
		for (uint64_t bits = x->touched[w]; bits; bits &= bits - 1) {
			uint32_t at = w * 64 + (uint32_t)__builtin_ctzll(bits);

			if (boosted(x->acc[at] + rest, x->boost) >= needed(x))
				consider(x, low + at, x->acc[at], aside, rest);
		}
}

static int walk(struct search *x, struct ctx *ctx, struct err *err)
{
	uint32_t docs = x->s->head->docs, high;

	for (uint32_t low = 0; low < docs; low = high) {
		int64_t all = 0, rest = 0;
		uint32_t first = UINT32_MAX, next;
		size_t aside = 0;
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		high = docs - low < WINDOW ? docs : low + WINDOW;
		for (size_t i = 0; i < x->list_count; i++) {
			look_ahead(&x->lists[i], low, high, &next);
			all += x->lists[i].most;
			first = next < first ? next : first;
		}
		if (first >= high) {
			if (first == UINT32_MAX)
				return 0;
			high = first;
			continue;
		}
		if (boosted(all, x->boost) < needed(x))
			continue;
		sort_lists(x);
		while (aside < x->list_count && boosted(rest + x->order[aside]->most, x->boost) < needed(x))
			rest += x->order[aside++]->most;
		take_window(x, low, high, aside, rest, all);
	}
	return 0;
}

/* --- counting --- */

static void mark_all(const struct list *l, uint64_t *bits)
{
	uint32_t docs[WORDS_BLOCK], all = l->s->head->docs;

	for (uint32_t b = l->t->block; b < l->end; b++) {
		uint32_t n = words_block_read(l->s, b, words_block_base(l->s, l->t, b), docs, NULL);

		for (uint32_t i = 0; i < n; i++)
			if (docs[i] < all)
				bits[docs[i] >> 6] |= UINT64_C(1) << (docs[i] & 63);
	}
}

static uint64_t count_all(struct search *x)
{
	uint32_t docs = x->s->head->docs;
	uint64_t *bits, total = 0;

	if (!x->checks && x->list_count == 1)
		return x->lists[0].t->docs;
	bits = xcalloc(docs / 64 + 1, sizeof *bits);
	for (size_t i = 0; i < x->list_count; i++)
		mark_all(&x->lists[i], bits);
	for (uint32_t w = 0; w <= docs / 64; w++) {
		if (!x->checks) {
			total += (uint64_t)__builtin_popcountll(bits[w]);
			continue;
		}
		for (uint64_t left = bits[w]; left; left &= left - 1)
			total += may_enter(x, w * 64 + (uint32_t)__builtin_ctzll(left));
	}
	free(bits);
	return total;
}

/* --- a segment --- */

/* Documents that have none of the words, only phrases, cannot match: the lists hold all that can. With phrases only the
   words of these are needed, but the others count for the score. */
static void make_lists(struct search *x)
{
	double average = x->view->total_len ? (double)x->view->total_len / (double)x->view->docs : 1;
	double ratio = x->s->head->average / average;

	x->list_count = 0;
	for (size_t c = 0; c < x->q->count; c++) {
		const struct words_clause *k = &x->q->clauses[c];
		struct list *l = &x->lists[x->list_count];

		x->terms[c] = x->idf[c] > 0 ? words_term_find(x->s, k->term) : WORDS_NONE;
		if (k->without || x->terms[c] == WORDS_NONE)
			continue;
		l->s = x->s;
		l->t = &x->s->terms[x->terms[c]];
		l->gives = x->idf[c] * k->weight * (WORDS_K1 + 1) * WORDS_ONE;
		l->ratio = ratio < 1 ? ratio : 1;
		l->block = l->t->block;
		l->end = l->t->block + words_block_count(l->t);
		l->loaded = WORDS_NONE;
		l->i = l->n = 0;
		x->order[x->list_count++] = l;
	}
}

static bool needs_checks(const struct search *x)
{
	const struct words_query *q = x->q;
	const struct words_head *h = x->s->head;

	return !x->plain || x->view->dead_count[x->number] || (h->areas & ~q->areas) ||
	       (h->archived && !q->with_archived) || q->under.len || q->kind.len || q->author.len || q->tag_count ||
	       q->since_ns || q->until_ns;
}

static int search_segment(struct search *x, struct ctx *ctx, bool everything, struct err *err)
{
	x->s = x->view->segments[x->number];
	x->boost = x->s->head->boost_max;
	x->checks = needs_checks(x);
	make_lists(x);
	if (everything) {
		for (uint32_t d = 0; d < x->s->head->docs; d++) {
			if (!may_enter(x, d))
				continue;
			x->ret->total++;
			enter(x, d, 0);
		}
		return ctx_check(ctx, err);
	}
	if (!x->list_count)
		return 0;
	if (x->q->want_total)
		x->ret->total += count_all(x);
	return walk(x, ctx, err);
}

/* Largest first: the sooner the best are good, the more is skipped. */
static void order_segments(const struct words_view *v, uint32_t *order)
{
	for (uint32_t i = 0; i < v->count; i++) {
		uint32_t k = i;

		for (; k && v->segments[order[k - 1]]->head->docs < v->segments[i]->head->docs; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

static void prepare(struct search *x, struct arena *arena)
{
	double average = x->view->total_len ? (double)x->view->total_len / (double)x->view->docs : 1;

	x->k0 = WORDS_K1 * (1 - WORDS_B);
	x->k1 = WORDS_K1 * WORDS_B / average;
	x->heap = ARENA_ARRAY(arena, struct best, x->q->top + 1);
	x->idf = ARENA_ARRAY(arena, double, x->q->count + 1);
	x->terms = ARENA_ARRAY(arena, uint32_t, x->q->count + 1);
	x->lists = ARENA_ARRAY(arena, struct list, x->q->count + 1);
	x->order = ARENA_ARRAY(arena, struct list *, x->q->count + 1);
	x->plain = true;
	for (size_t c = 0; c < x->q->count; c++) {
		uint64_t docs;

		x->idf[c] = words_idf(x->view, x->q->clauses[c].term, &docs);
		x->plain &= x->q->clauses[c].phrase < 0 && !x->q->clauses[c].without;
	}
}

int words_search(const struct words_view *view, struct ctx *ctx, const struct words_query *query,
		 struct words_hits *ret, struct err *err)
{
	struct search *x = ARENA_NEW(ctx->arena, struct search);
	uint32_t *order = ARENA_ARRAY(ctx->arena, uint32_t, view->count + 1);
	bool everything = true;

	*ret = (struct words_hits){0};
	x->view = view;
	x->q = query;
	x->ret = ret;
	prepare(x, ctx->arena);
	for (size_t c = 0; c < query->count; c++)
		everything &= query->clauses[c].without;
	order_segments(view, order);
	for (size_t i = 0; i < view->count; i++) {
		int r;

		x->number = order[i];
		r = search_segment(x, ctx, everything, err);
		if (r)
			return r;
	}
	ret->count = x->held;
	ret->hits = ARENA_ARRAY(ctx->arena, struct words_hit, x->held + 1);
	for (size_t n = x->held; n; n--) {
		ret->hits[n - 1] = x->heap[0].hit;
		x->heap[0] = x->heap[n - 1];
		sift_down(x, 0, n - 1);
	}
	return 0;
}

/* --- single documents --- */

struct words_check {
	struct search x;
	struct words_hits unused;
};

struct words_check *words_check_new(const struct words_view *view, struct arena *arena, const struct words_query *query)
{
	struct words_check *check = ARENA_NEW(arena, struct words_check);

	check->x.view = view;
	check->x.q = query;
	check->x.ret = &check->unused;
	prepare(&check->x, arena);
	return check;
}

static void check_segment(struct words_check *check, uint32_t segment)
{
	if (check->x.s && check->x.number == segment)
		return;
	check->x.number = segment;
	check->x.s = check->x.view->segments[segment];
	make_lists(&check->x);
}

bool words_check_row(struct words_check *check, uint32_t segment, uint32_t doc)
{
	check_segment(check, segment);
	return row_ok(&check->x, doc);
}

bool words_check_text(struct words_check *check, uint32_t segment, uint32_t doc)
{
	check_segment(check, segment);
	return check->x.plain || clauses_ok(&check->x, doc);
}

/* Documents of segment `i` that have the term and are alive. Where some are not, the list is walked: that costs as much
   as counting the matches does. */
static uint64_t alive_with(const struct words_view *view, size_t i, uint32_t term)
{
	const struct words_segment *s = view->segments[i];
	const struct words_term *t = &s->terms[term];
	uint32_t docs[WORDS_BLOCK], all = s->head->docs, gone = 0;

	if (!view->dead_count[i])
		return t->docs;
	for (uint32_t b = t->block; b < t->block + words_block_count(t); b++) {
		uint32_t n = words_block_read(s, b, words_block_base(s, t, b), docs, NULL);

		for (uint32_t k = 0; k < n; k++)
			gone += docs[k] < all && words_is_dead(view, i, docs[k]);
	}
	return t->docs > gone ? t->docs - gone : 0;
}

double words_idf(const struct words_view *view, struct str term, uint64_t *ret_docs)
{
	uint64_t docs = 0;

	for (size_t i = 0; i < view->count; i++) {
		uint32_t t = words_term_find(view->segments[i], term);

		docs += t == WORDS_NONE ? 0 : alive_with(view, i, t);
	}
	*ret_docs = docs;
	return docs ? log(1 + ((double)view->docs - (double)docs + 0.5) / ((double)docs + 0.5)) : 0;
}
