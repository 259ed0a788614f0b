/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search, put together: the index is brought up to date, the question is planned, the best documents are found and
 * their passages cut out. When little is found, rare words are taken for misspellings and it is tried once more.
 *
 * Where there is an embedder, the documents nearest in meaning are a second ranking. Both are put together by rank: a
 * document gets 1 / (60 + rank) for each ranking that it is in. Scores of the two cannot be compared; ranks can.
 */
#include "home/search/search.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/search/search_internal.h"
#include "home/search/search_meaning.h"
#include "home/search/search_parts.h"
#include "workspace/workspace_parts.h"

#define FEW_HITS   3
#define RRF_K      60.0
#define FUSE_DEPTH 200 /* ranks of the words that count; fixed, so that pages do not overlap */

/* A document of the answer. */
struct found {
	struct words_hit at;
	double score;
	uint32_t piece; /* the passage that is near in meaning; UINT32_MAX: words found it */
};

struct answer {
	struct found *found;
	size_t count;
	uint64_t total;
	struct words_hits words; /* what the index had to do */
	struct str note, meaning;
};

static void fill_hit(struct ctx *ctx, const struct words_view *view, const struct search_plan *plan,
		     const struct found *from, struct search_hit *hit)
{
	struct arena *arena = ctx->arena;
	struct search_part part = {.line = 1};
	struct words_doc doc;
	struct str path, *tags;

	words_doc_of(view, &from->at, arena, &doc, &path);
	search_part_known(view, path, &part);
	tags = ARENA_ARRAY(arena, struct str, doc.tag_count + 1);
	for (size_t i = 0; i < doc.tag_count; i++)
		tags[i] = arena_str(arena, doc.tags[i]);
	*hit = (struct search_hit){.area = search_area_name(doc.area),
				   .path = arena_str(arena, search_part_file(path)),
				   .id = arena_str(arena, doc.id),
				   .title = arena_str(arena, doc.title),
				   .kind = arena_str(arena, doc.kind),
				   .author = arena_str(arena, doc.author),
				   .tags = tags,
				   .tag_count = doc.tag_count,
				   .time_ns = doc.time_ns,
				   .score = from->score,
				   .offset = part.offset,
				   .line = part.line};
	hit->snippet = search_snippet(arena, view, plan,
				      from->piece == UINT32_MAX ? doc.body : meaning_piece(&doc, from->piece));
}

static struct words_query question_of(const struct search_query *query)
{
	size_t limit = query->limit ? query->limit : 10;

	return (struct words_query){.areas = query->areas ? query->areas : UINT32_MAX,
				    .kind = query->kind,
				    .author = query->author,
				    .under = query->under,
				    .tags = query->tags,
				    .tag_count = query->tag_count,
				    .since_ns = query->since_ns,
				    .until_ns = query->until_ns,
				    .with_archived = query->with_archived,
				    .top = query->offset + (limit < SEARCH_LIMIT_MAX ? limit : SEARCH_LIMIT_MAX),
				    .want_total = true};
}

static int ask(struct ctx *ctx, const struct words_view *view, const struct search_query *query, size_t top,
	       struct search_plan *plan, struct words_hits *hits, struct err *err)
{
	struct words_query q = question_of(query);
	int r = 0;

	q.top = q.top > top ? q.top : top;
	for (int try = 0; !r && try < 2; try++) {
		r = search_plan(ctx->arena, view, query->text, query->exact, try == 1, plan, err);
		q.clauses = plan->clauses;
		q.count = plan->count;
		if (!r)
			r = words_search(view, ctx, &q, hits, err);
		if (!r && (hits->total >= FEW_HITS || !plan->can_widen))
			break;
	}
	return r;
}

/* --- by meaning --- */

/* The question without quotes and without excluded words. */
static struct str said(struct arena *arena, struct str text)
{
	struct str rest = text, word;
	bool quoted = false, without = false;
	struct buf out;

	buf_init(&out, arena, SEARCH_TEXT_MAX * 2);
	while (str_cut(&rest, ' ', &word)) {
		if (!quoted)
			without = word.len > 1 && word.ptr[0] == '-' && word.ptr[1] != '-';
		for (size_t i = 0; i < word.len; i++) {
			quoted ^= word.ptr[i] == '"';
			if (!without && word.ptr[i] != '"')
				buf_char(&out, word.ptr[i]);
		}
		if (!without)
			buf_char(&out, ' ');
	}
	return str_trim(buf_str(&out));
}

static int by_meaning(struct meaning *m, struct ctx *ctx, struct words_view *view, const struct search_query *query,
		      const struct search_plan *plan, struct meaning_hit **ret, size_t *ret_count, struct err *err)
{
	struct words_query q = question_of(query);
	struct words_clause *clauses = ARENA_ARRAY(ctx->arena, struct words_clause, plan->count + 1);

	for (size_t i = 0; i < plan->count; i++)
		if (plan->clauses[i].phrase >= 0 || plan->clauses[i].without)
			clauses[q.count++] = plan->clauses[i];
	q.clauses = clauses;
	return meaning_rank(m, ctx, view, &q, said(ctx->arena, query->text), query->mode == SEARCH_BY_MEANING, ret,
			    ret_count, err);
}

static int compare_found(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	if (a->at.score != b->at.score)
		return a->at.score > b->at.score ? -1 : 1;
	if (a->at.segment != b->at.segment)
		return a->at.segment > b->at.segment ? -1 : 1;
	return a->at.doc < b->at.doc ? -1 : a->at.doc > b->at.doc;
}

static void fuse(struct arena *arena, const struct meaning_hit *near, size_t near_count, struct answer *a)
{
	const struct words_hits *words = &a->words;
	size_t n = 0, twice = 0;

	a->found = ARENA_ARRAY(arena, struct found, words->count + near_count + 1);
	for (size_t i = 0; i < words->count; i++)
		a->found[n++] = (struct found){words->hits[i], 1 / (RRF_K + 1 + (double)i), UINT32_MAX};
	for (size_t i = 0; i < near_count; i++) {
		double part = 1 / (RRF_K + 1 + (double)i);
		size_t k = 0;

		while (k < words->count &&
		       (words->hits[k].segment != near[i].segment || words->hits[k].doc != near[i].doc))
			k++;
		if (k < words->count && k < FUSE_DEPTH) {
			a->found[k].score += part;
			continue;
		}
		if (k < words->count) { /* it ranks higher by its meaning alone */
			a->found[k].score = 0;
			twice++;
		}
		a->found[n++] = (struct found){{near[i].segment, near[i].doc, 0}, part, near[i].piece};
	}
	qsort(a->found, n, sizeof *a->found, compare_found);
	n -= twice; /* they are the last */
	a->count = n;
	a->total = n > words->total ? n : words->total;
}

static void words_only(struct arena *arena, struct answer *a)
{
	a->count = a->words.count;
	a->total = a->words.total;
	a->found = ARENA_ARRAY(arena, struct found, a->count + 1);
	for (size_t i = 0; i < a->count; i++)
		a->found[i] = (struct found){a->words.hits[i], (double)a->words.hits[i].score / WORDS_ONE, UINT32_MAX};
}

static void near_only(struct arena *arena, const struct meaning_hit *near, size_t count, struct answer *a)
{
	a->count = a->total = count;
	a->found = ARENA_ARRAY(arena, struct found, count + 1);
	for (size_t i = 0; i < count; i++)
		a->found[i] = (struct found){{near[i].segment, near[i].doc, 0}, (double)near[i].cosine, near[i].piece};
}

static int answer(struct workspace *ws, struct ctx *ctx, struct words_view *view, const struct search_query *query,
		  struct search_plan *plan, struct answer *ret, struct err *err)
{
	struct meaning *m = query->mode == SEARCH_BY_WORDS ? NULL : home_index_meaning(ws);
	bool meant = m && said(ctx->arena, query->text).len && !(query->exact && query->mode == SEARCH_AUTO);
	struct meaning_hit *near = NULL;
	struct err why;
	size_t count = 0;
	int r;

	if (query->mode == SEARCH_BY_MEANING && !m)
		return err_set(err, ERR_UNSUPPORTED,
			       "search: there is no embedder for a search by meaning; set embedding.url and "
			       "embedding.model in agent.yaml, or leave mode out");
	r = ask(ctx, view, query, meant ? FUSE_DEPTH : 0, plan, &ret->words, err);
	if (r)
		return r;
	r = meant ? by_meaning(m, ctx, view, query, plan, &near, &count, &why) : -ERR_UNSUPPORTED;
	if (ctx_check(ctx, err) != 0)
		return -(int)err->kind;
	if (r)
		words_only(ctx->arena, ret);
	else if (query->mode == SEARCH_BY_MEANING)
		near_only(ctx->arena, near, count, ret);
	else
		fuse(ctx->arena, near, count, ret);
	if (r && meant)
		ret->note = arena_printf(ctx->arena, "found by words only: %.*s", STR_ARG(err_text(ctx->arena, &why)));
	if (!r)
		ret->meaning = arena_printf(ctx->arena, "%zu documents by meaning, combined with %zu by words\n", count,
					    query->mode == SEARCH_AUTO ? ret->words.count : 0);
	return 0;
}

static struct str explain(struct arena *arena, const struct words_view *view, const struct search_plan *plan,
			  const struct answer *a)
{
	const struct words_hits *hits = &a->words;
	uint64_t documents = 0, docs;
	struct buf out;

	buf_init(&out, arena, 64 * KIB);
	for (size_t i = 0; i < words_view_count(view); i++)
		documents += words_view_alive(view, i);
	for (size_t i = 0; i < plan->count; i++) {
		const struct words_clause *c = &plan->clauses[i];
		double idf = words_idf(view, c->term, &docs);

		buf_printf(&out, "%s%.*s%s: weight %.2f, idf %.2f, in %llu documents\n", c->without ? "without " : "",
			   STR_ARG(c->term), c->phrase >= 0 && !c->without ? " (in a phrase)" : "", c->weight, idf,
			   (unsigned long long)docs);
	}
	buf_printf(&out,
		   "%llu documents in %zu segments; %llu blocks unpacked, %llu left packed, %llu documents scored\n",
		   (unsigned long long)documents, words_view_count(view), (unsigned long long)hits->blocks_read,
		   (unsigned long long)hits->blocks_skipped, (unsigned long long)hits->scored);
	buf_add(&out, a->meaning);
	return buf_str(&out);
}

int home_search(struct workspace *ws, struct ctx *ctx, const struct search_query *query, struct search_hits *ret,
		struct err *err)
{
	struct words_view *view;
	struct search_plan plan;
	struct answer a = {0};
	struct str note;
	int r;

	if (query->offset > SEARCH_OFFSET_MAX)
		return err_set(err, ERR_INVALID, "search: you can page through only the best %d; narrow the query",
			       SEARCH_OFFSET_MAX);
	r = home_index_view(ws, ctx, &view, &note, err);
	if (r)
		return err_prefix(err, "search");
	r = answer(ws, ctx, view, query, &plan, &a, err);
	if (!r) {
		size_t limit = query->limit ? query->limit : 10,
		       from = query->offset < a.count ? query->offset : a.count;

		limit = limit < SEARCH_LIMIT_MAX ? limit : SEARCH_LIMIT_MAX;
		*ret = (struct search_hits){.total = a.total, .note = a.note.len ? a.note : note};
		if (a.note.len && note.len)
			ret->note = arena_printf(ctx->arena, "%.*s; %.*s", STR_ARG(a.note), STR_ARG(note));
		ret->count = a.count - from < limit ? a.count - from : limit;
		if (query->explain)
			ret->explanation = explain(ctx->arena, view, &plan, &a);
		ret->hits = ARENA_ARRAY(ctx->arena, struct search_hit, ret->count + 1);
		for (size_t i = 0; i < ret->count; i++)
			fill_hit(ctx, view, &plan, &a.found[from + i], &ret->hits[i]);
	}
	words_view_unref(view);
	home_index_wake(ws);
	return r;
}

int search_time(struct str text, bool end, int64_t *ret_ns, struct err *err)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	int64_t n;

	if (clock_parse(text, ret_ns)) {
		if (text.len == 10 && end) /* a day lasts until the next one */
			*ret_ns += INT64_C(86400) * 1000000000 - 1;
		return 0;
	}
	for (size_t i = 0; text.len > 1 && text.len < 8 && i < sizeof units / sizeof units[0]; i++)
		if (text.ptr[text.len - 1] == units[i].unit && str_to_i64(str_first(text, text.len - 1), &n) &&
		    n >= 0) {
			*ret_ns = clock_real_ns() - n * units[i].seconds * 1000000000;
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "search: \"%.*s\" is not a valid time; write 2026-11-15, 2026-11-15T10:00:00Z, or an age: 30m, "
		       "12h, 7d, 2w",
		       STR_ARG(utf8_first(text, 60)));
}

int search_mode_of(struct str name, enum search_mode *ret, struct err *err)
{
	static const struct {
		const char *name;
		enum search_mode mode;
	} modes[] = {{"auto", SEARCH_AUTO},
		     {"hybrid", SEARCH_AUTO},
		     {"text", SEARCH_BY_WORDS},
		     {"semantic", SEARCH_BY_MEANING}};

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (str_is(name, modes[i].name)) {
			*ret = modes[i].mode;
			return 0;
		}
	return err_set(err, ERR_INVALID, "search: there is no mode \"%.*s\"; the modes are auto, text and semantic",
		       STR_ARG(utf8_first(name, 60)));
}
