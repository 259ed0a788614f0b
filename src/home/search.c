/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search, put together: the index is brought up to date, the question is planned, the best documents are found and
 * their passages cut out. When little is found, rare words are taken for misspellings and it is tried once more.
 */
#include "home/search.h"

#include "base/clock.h"
#include "base/limits.h"
#include "home/search_own.h"
#include "home/stack.h"

#define FEW_HITS 3

static void fill_hit(struct ctx *ctx, const struct words_view *view, const struct search_plan *plan,
		     const struct words_hit *from, struct search_hit *hit)
{
	struct arena *arena = ctx->arena;
	struct words_doc doc;
	struct str path, *tags;

	words_doc_of(view, from, arena, &doc, &path);
	tags = ARENA_ARRAY(arena, struct str, doc.tag_count + 1);
	for (size_t i = 0; i < doc.tag_count; i++)
		tags[i] = arena_str(arena, doc.tags[i]);
	*hit = (struct search_hit){.area = doc.area,
				   .path = arena_str(arena, path),
				   .id = arena_str(arena, doc.id),
				   .title = arena_str(arena, doc.title),
				   .kind = arena_str(arena, doc.kind),
				   .author = arena_str(arena, doc.author),
				   .tags = tags,
				   .tag_count = doc.tag_count,
				   .time_ns = doc.time_ns,
				   .score = (double)from->score / WORDS_ONE,
				   .snippet = search_snippet(arena, view, plan, doc.body)};
}

static int ask(struct ctx *ctx, const struct words_view *view, const struct search_query *query,
	       struct search_plan *plan, struct words_hits *hits, struct err *err)
{
	size_t limit = query->limit ? query->limit : 10;
	struct words_query q = {.areas = query->areas ? query->areas : SEARCH_ALL,
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
	int bad = 0;

	for (int try = 0; !bad && try < 2; try++) {
		bad = search_plan(ctx->arena, view, query->text, query->exact, try == 1, plan, err);
		q.clauses = plan->clauses;
		q.count = plan->count;
		if (!bad)
			bad = words_search(view, ctx, &q, hits, err);
		if (!bad && (hits->total >= FEW_HITS || !plan->can_widen))
			break;
	}
	return bad;
}

static struct str explain(struct arena *arena, const struct words_view *view, const struct search_plan *plan,
			  const struct words_hits *hits)
{
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
	return buf_str(&out);
}

int home_search(struct workspace *ws, struct ctx *ctx, const struct search_query *query, struct search_hits *ret,
		struct err *err)
{
	struct words_view *view;
	struct search_plan plan;
	struct words_hits hits;
	struct str note;
	int bad;

	if (query->offset > SEARCH_OFFSET_MAX)
		return err_set(err, ERR_INVALID, "search: only the best %d can be paged through; narrow the question",
			       SEARCH_OFFSET_MAX);
	bad = home_index_view(ws, ctx, &view, &note, err);
	if (bad)
		return err_prefix(err, "search");
	bad = ask(ctx, view, query, &plan, &hits, err);
	if (!bad) {
		size_t from = query->offset < hits.count ? query->offset : hits.count;

		*ret = (struct search_hits){.count = hits.count - from, .total = hits.total, .note = note};
		if (query->explain)
			ret->explanation = explain(ctx->arena, view, &plan, &hits);
		ret->hits = ARENA_ARRAY(ctx->arena, struct search_hit, ret->count + 1);
		for (size_t i = 0; i < ret->count; i++)
			fill_hit(ctx, view, &plan, &hits.hits[from + i], &ret->hits[i]);
	}
	words_view_unref(view);
	return bad;
}

/* Days since 1970-01-01. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
	y -= m <= 2;
	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1 - 719468;
}

static bool digits(struct str s, size_t at, size_t n, int64_t *ret)
{
	return at + n <= s.len && s.ptr[at] != '-' && str_to_i64(str_n(s.ptr + at, n), ret);
}

static bool parse_date(struct str s, bool end, int64_t *ret_ns)
{
	int64_t y, mo, d, h = 0, mi = 0, sec = 0;

	if (!digits(s, 0, 4, &y) || !digits(s, 5, 2, &mo) || !digits(s, 8, 2, &d) || s.ptr[4] != '-' ||
	    s.ptr[7] != '-' || mo < 1 || mo > 12 || d < 1 || d > 31 || y < 1970)
		return false;
	if (s.len > 10 &&
	    (s.len < 16 || (s.ptr[10] != 'T' && s.ptr[10] != ' ') || !digits(s, 11, 2, &h) || !digits(s, 14, 2, &mi) ||
	     (s.len >= 19 && !digits(s, 17, 2, &sec)) || h > 23 || mi > 59 || sec > 60))
		return false;
	if (s.len > 20 || (s.len == 20 && s.ptr[19] != 'Z'))
		return false;
	*ret_ns = (days_of(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec) * 1000000000;
	if (s.len == 10 && end)
		*ret_ns += INT64_C(86400) * 1000000000 - 1;
	return true;
}

int search_time(struct str text, bool end, int64_t *ret_ns, struct err *err)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	int64_t n;

	if (parse_date(text, end, ret_ns))
		return 0;
	for (size_t i = 0; text.len > 1 && text.len < 8 && i < sizeof units / sizeof units[0]; i++)
		if (text.ptr[text.len - 1] == units[i].unit && digits(text, 0, text.len - 1, &n)) {
			*ret_ns = clock_real_ns() - n * units[i].seconds * 1000000000;
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "search: \"%.*s\" is not a time; write 2026-11-15, 2026-11-15T10:00:00Z, or how long ago: 30m, "
		       "12h, 7d, 2w",
		       STR_ARG(utf8_first(text, 60)));
}

const char *search_area_name(enum search_area area)
{
	static const char *const names[] = {"notes", "memory", "sessions", "knowledge", "files"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if ((unsigned)area == 1u << i)
			return names[i];
	return "";
}

unsigned search_area_of(struct str name)
{
	for (unsigned area = 1; area & SEARCH_ALL; area <<= 1)
		if (str_is(name, search_area_name(area)))
			return area;
	return 0;
}
