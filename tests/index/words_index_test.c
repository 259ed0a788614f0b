/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverted index, held to a scorer that reads every document of every question: the formula, written down once
 * more, without lists, blocks or bounds.
 */
#include <math.h>
#include <unistd.h>

#include "index/words_format.h"
#include "temp_dir.h"
#include "text/terms.h"

#define WORDS 400

static uint64_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % n;
}

/* Few words are frequent, most are rare. */
static uint32_t word_number(void)
{
	uint32_t n = rnd(WORDS) + 1;

	return rnd(n) * rnd(n) / n;
}

struct corpus {
	struct arena *arena;
	struct words_doc *docs;
	struct str *paths;
	size_t count;
	struct words_view *view;
};

static struct str text_of(struct arena *arena, uint32_t words)
{
	struct buf buf;

	buf_init(&buf, arena, SIZE_MAX / 2);
	for (uint32_t i = 0; i < words; i++)
		buf_printf(&buf, "%sw%u", i ? " " : "", word_number());
	return buf_str(&buf);
}

static void make_docs(struct corpus *c, size_t count)
{
	static const char *const kinds[] = {"finding", "decision", "question"};

	c->arena = arena_new();
	c->count = count;
	c->docs = ARENA_ARRAY(c->arena, struct words_doc, count);
	c->paths = ARENA_ARRAY(c->arena, struct str, count);
	for (size_t i = 0; i < count; i++) {
		struct str *tags = ARENA_ARRAY(c->arena, struct str, 2);

		tags[0] = arena_printf(c->arena, "t%u", rnd(5));
		tags[1] = arena_printf(c->arena, "t%u", 5 + rnd(5));
		c->paths[i] = arena_printf(c->arena, "notes/n%05zu.md", i);
		c->docs[i] = (struct words_doc){.title = text_of(c->arena, 1 + rnd(6)),
						.body = text_of(c->arena, 1 + rnd(60)),
						.kind = str_of(kinds[rnd(3)]),
						.author = arena_printf(c->arena, "a%u", rnd(4)),
						.tags = tags,
						.tag_count = 1 + rnd(2),
						.time_ns = 1000 + rnd(50),
						.credit = rnd(4) ? 0 : rnd(20),
						.area = 1u << rnd(3),
						.archived = rnd(10) == 0};
	}
}

/* In `segments` parts of unequal size. */
static void index_docs(struct corpus *c, size_t segments)
{
	struct words_builder *b = words_builder_new();
	size_t done = 0;

	c->view = NULL;
	for (size_t s = 0; s < segments; s++) {
		size_t until = s + 1 == segments ? c->count : done + (c->count - done) * (s + 1) / (segments + 1);
		struct words_segment *segment;
		struct words_view *view;

		for (; done < until; done++) {
			words_builder_file(b, c->paths[done], STR("v1"));
			words_builder_add(b, &c->docs[done]);
		}
		segment = words_builder_finish(b);
		view = words_view_push(c->view, segment);
		words_view_unref(c->view);
		words_segment_unref(segment);
		c->view = view;
	}
	words_builder_destroy(b);
}

static void corpus_release(struct corpus *c)
{
	words_view_unref(c->view);
	arena_destroy(c->arena);
}

/* --- the slow way --- */

struct tally {
	struct str term;
	uint32_t freq, len, weight;
};

static void tally_word(void *arg, const struct term *term)
{
	struct tally *t = arg;

	t->len += !(term->flags & TERM_EXTRA);
	if (str_eq(term->text, t->term))
		t->freq += t->weight;
}

static struct tally tally(const struct words_doc *doc, struct str term)
{
	struct tally t = {.term = term, .weight = 3};

	terms_each(doc->title, 0, tally_word, &t);
	t.weight = 2;
	for (size_t i = 0; i < doc->tag_count; i++)
		terms_each(doc->tags[i], 0, tally_word, &t);
	t.weight = 1;
	terms_each(doc->body, 0, tally_word, &t);
	return t;
}

struct scored {
	size_t doc;
	double score;
	int64_t fixed;
};

static const struct corpus *sorting;

static int by_score(const void *pa, const void *pb)
{
	const struct scored *a = pa, *b = pb;

	if (a->fixed != b->fixed)
		return a->fixed > b->fixed ? -1 : 1;
	if (sorting->docs[a->doc].time_ns != sorting->docs[b->doc].time_ns)
		return sorting->docs[a->doc].time_ns > sorting->docs[b->doc].time_ns ? -1 : 1;
	return str_cmp(sorting->paths[a->doc], sorting->paths[b->doc]);
}

static bool passes(const struct words_doc *d, const struct words_query *q)
{
	if (!(d->area & q->areas) || (d->archived && !q->with_archived) || (q->kind.len && !str_eq(d->kind, q->kind)) ||
	    (q->author.len && !str_eq(d->author, q->author)) || (q->since_ns && d->time_ns < q->since_ns) ||
	    (q->until_ns && d->time_ns > q->until_ns))
		return false;
	for (size_t i = 0; i < q->tag_count; i++) {
		bool has = false;

		for (size_t k = 0; k < d->tag_count; k++)
			has |= str_eq(d->tags[k], q->tags[i]);
		if (!has)
			return false;
	}
	return true;
}

/* All that match, best first. */
static struct scored *exact(const struct corpus *c, const struct words_query *q, size_t *ret_count)
{
	struct scored *all = ARENA_ARRAY(c->arena, struct scored, c->count);
	double *idf = ARENA_ARRAY(c->arena, double, q->count), total = 0;
	struct tally *t = ARENA_ARRAY(c->arena, struct tally, c->count * q->count);
	size_t n = 0;

	for (size_t k = 0; k < q->count; k++) {
		double have = 0;

		for (size_t d = 0; d < c->count; d++) {
			t[d * q->count + k] = tally(&c->docs[d], q->clauses[k].term);
			have += t[d * q->count + k].freq > 0;
			total += k == 0 ? t[d * q->count].len : 0;
		}
		idf[k] = have > 0 ? log(1 + ((double)c->count - have + 0.5) / (have + 0.5)) : 0;
	}
	for (size_t d = 0; d < c->count; d++) {
		struct scored s = {.doc = d};
		bool matches = false, out = false;

		for (size_t k = 0; k < q->count; k++) {
			double f = t[d * q->count + k].freq, len = t[d * q->count + k].len;
			double one = idf[k] * q->clauses[k].weight * f * 2.2 /
				     (f + 1.2 * (0.25 + 0.75 * len / (total / (double)c->count)));

			out |= q->clauses[k].without && f > 0;
			if (q->clauses[k].without || f == 0)
				continue;
			matches = true;
			s.score += one;
		}
		s.score *= (double)(float)(1 + log1p(c->docs[d].credit) / 10);
		if (matches && !out && passes(&c->docs[d], q))
			all[n++] = s;
	}
	/* Scores that differ by rounding only are equal: times and paths decide. */
	for (size_t i = 0; i < n; i++)
		all[i].fixed = llround(all[i].score * 1e8);
	sorting = c;
	qsort(all, n, sizeof *all, by_score);
	*ret_count = n;
	return all;
}

static void check_same(const struct corpus *c, const struct words_query *q)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct words_hits hits;
	struct err err;
	size_t n;
	struct scored *want = exact(c, q, &n);

	CHECK_OK(words_search(c->view, &ctx, q, &hits, &err), err);
	CHECK_INT(hits.total, n);
	CHECK_INT(hits.count, n < q->top ? n : q->top);
	for (size_t i = 0; i < hits.count; i++) {
		struct words_doc doc;
		struct str path;

		words_doc_of(c->view, &hits.hits[i], arena, &doc, &path);
		if (!str_eq(path, c->paths[want[i].doc]))
			TEST_FAIL("place %zu of \"%.*s\" %zu is %.*s (%.9f), expected %.*s (%.9f)", i,
				  STR_ARG(q->clauses[0].term), q->count, STR_ARG(path),
				  (double)hits.hits[i].score / WORDS_ONE, STR_ARG(c->paths[want[i].doc]),
				  want[i].score);
		CHECK(fabs((double)hits.hits[i].score / WORDS_ONE - want[i].score) < 1e-6);
	}
}

static void random_queries(struct corpus *c, int rounds, bool filters)
{
	for (int r = 0; r < rounds; r++) {
		struct words_clause clauses[4];
		struct str tag = arena_printf(c->arena, "t%u", rnd(10));
		struct words_query q = {.clauses = clauses,
					.count = 1 + rnd(3),
					.areas = filters ? 1 + rnd(7) : 7,
					.top = 1 + rnd(20),
					.with_archived = !filters || rnd(2),
					.want_total = true};

		for (size_t i = 0; i < q.count; i++)
			clauses[i] = (struct words_clause){.term = arena_printf(c->arena, "w%u", word_number()),
							   .weight = 1 + rnd(2),
							   .phrase = -1,
							   .without = filters && i && rnd(3) == 0};
		if (filters && rnd(2))
			q.kind = STR("decision");
		if (filters && rnd(3) == 0)
			q.author = STR("a2");
		if (filters && rnd(3) == 0)
			q.tags = &tag, q.tag_count = 1;
		if (filters && rnd(3) == 0)
			q.since_ns = 1000 + rnd(40);
		if (filters && rnd(3) == 0)
			q.until_ns = 1010 + rnd(40);
		check_same(c, &q);
	}
}

TEST(the_best_are_those_of_a_scorer_that_reads_everything)
{
	struct corpus c;

	make_docs(&c, 5000);
	index_docs(&c, 1);
	random_queries(&c, 25, false);
	corpus_release(&c);
}

TEST(the_best_are_the_same_over_several_segments_and_with_filters)
{
	struct corpus c;

	make_docs(&c, 3000);
	index_docs(&c, 4);
	random_queries(&c, 40, true);
	corpus_release(&c);
}

static struct words_view *merged(const struct words_view *view)
{
	struct words_segment *one;
	struct words_view *ret;
	struct err err;

	CHECK_OK(words_merge(view, 0, words_view_count(view), true, NULL, &one, &err), err);
	ret = words_view_new(&one, 1);
	words_segment_unref(one);
	return ret;
}

TEST(a_merge_changes_no_answer)
{
	struct corpus c;
	struct words_view *old;

	make_docs(&c, 2000);
	index_docs(&c, 5);
	old = c.view;
	c.view = merged(old);
	words_view_unref(old);
	CHECK_INT(words_view_count(c.view), 1);
	CHECK_INT(words_segment_docs(words_view_at(c.view, 0)), 2000);
	random_queries(&c, 30, true);
	corpus_release(&c);
}

/* One segment with new texts for `count` documents, and one document gone. */
static void update_some(struct corpus *c, uint32_t count)
{
	struct words_builder *b = words_builder_new();
	struct words_segment *segment;
	struct words_view *view;
	uint32_t at = rnd((uint32_t)c->count - count - 1);

	for (uint32_t i = 0; i < count; i++) {
		c->docs[at + i].title = text_of(c->arena, 1 + rnd(6));
		c->docs[at + i].body = text_of(c->arena, 1 + rnd(90));
		words_builder_file(b, c->paths[at + i], STR("v2"));
		words_builder_add(b, &c->docs[at + i]);
	}
	c->count--;
	words_builder_file(b, c->paths[c->count], STR(""));
	segment = words_builder_finish(b);
	words_builder_destroy(b);
	view = words_view_push(c->view, segment);
	words_view_unref(c->view);
	words_segment_unref(segment);
	c->view = view;
}

TEST(ten_thousand_updates_without_a_merge_change_no_ranking)
{
	struct corpus c;
	struct words_view *old;

	make_docs(&c, 2000);
	index_docs(&c, 3);
	for (int i = 0; i < 40; i++) {
		update_some(&c, 250);
		if (i % 10 == 0)
			random_queries(&c, 5, i % 20 == 0);
	}
	random_queries(&c, 20, false);
	old = c.view;
	c.view = merged(old);
	words_view_unref(old);
	CHECK_INT(words_segment_docs(words_view_at(c.view, 0)), c.count);
	random_queries(&c, 10, true);
	corpus_release(&c);
}

TEST(lists_longer_than_many_windows_are_exact)
{
	struct corpus c;

	make_docs(&c, 20000);
	index_docs(&c, 2);
	random_queries(&c, 6, false);
	corpus_release(&c);
}

/* --- small ones --- */

static struct words_view *view_of(const char *const *bodies, size_t n)
{
	struct words_builder *b = words_builder_new();
	struct words_segment *segment;
	struct words_view *view;
	char path[32];

	for (size_t i = 0; i < n; i++) {
		struct words_doc doc = {.body = str_of(bodies[i]), .area = 1, .time_ns = (int64_t)i + 1};

		snprintf(path, sizeof path, "d%zu", i);
		words_builder_file(b, str_of(path), STR("v"));
		words_builder_add(b, &doc);
	}
	segment = words_builder_finish(b);
	view = words_view_new(&segment, 1);
	words_segment_unref(segment);
	words_builder_destroy(b);
	return view;
}

struct asked {
	struct words_clause clauses[32];
	struct words_query q;
	char text[32][TERM_MAX];
};

static void ask_word(void *arg, const struct term *term)
{
	struct asked *a = arg;

	if (term->flags & (TERM_WHOLE | TERM_SINGLE))
		return;
	memcpy(a->text[a->q.count], term->text.ptr, term->text.len);
	a->clauses[a->q.count] = (struct words_clause){.term = str_n(a->text[a->q.count], term->text.len),
						       .weight = 1,
						       .phrase = a->q.kind.len ? 0 : -1,
						       .at = term->pos};
	a->q.count++;
}

/* Which documents have the text, as digits, best first; as a phrase. */
static struct str found(struct arena *arena, const struct words_view *view, const char *text, bool phrase)
{
	struct ctx ctx = {.arena = arena};
	struct asked a = {.q = {.areas = 1, .top = 10, .want_total = true}};
	struct words_hits hits;
	struct err err;
	struct buf buf;

	a.q.kind = phrase ? STR("phrase") : STR("");
	terms_each(str_of(text), 0, ask_word, &a);
	a.q.kind = STR("");
	a.q.clauses = a.clauses;
	CHECK_OK(words_search(view, &ctx, &a.q, &hits, &err), err);
	buf_init(&buf, arena, 1000);
	for (size_t i = 0; i < hits.count; i++) {
		struct words_doc doc;
		struct str path;

		words_doc_of(view, &hits.hits[i], arena, &doc, &path);
		buf_add(&buf, str_from(path, 1));
	}
	CHECK_INT(hits.total, hits.count);
	return buf_str(&buf);
}

TEST(a_phrase_is_its_words_next_to_each_other)
{
	static const char *const bodies[] = {"the red fox jumps", "fox red the", "a fox, a red hen and the red fox",
					     "the quick red  fox\nsleeps"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view = view_of(bodies, 4);

	CHECK_INT(found(arena, view, "red fox", true).len, 3);
	CHECK_STR(found(arena, view, "quick red fox", true), STR("3"));
	CHECK_STR(found(arena, view, "fox red", true), STR("1"));
	CHECK_STR(found(arena, view, "red hen fox", true), STR(""));
	words_view_unref(view);
}

TEST(scripts_without_blanks_are_found_by_any_part)
{
	static const char *const bodies[] = {"東京都の天気は晴れです", "京都に行きました", "서울에서 회의를 했습니다",
					     "ฉันชอบกินข้าวผัดกุ้ง", "ｶﾞｲﾄﾞを読む ＡＢＣ"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view = view_of(bodies, 5);

	CHECK_STR(found(arena, view, "天気", false), STR("0"));
	CHECK_STR(found(arena, view, "東京", false), STR("0"));
	CHECK_STR(found(arena, view, "회의", false), STR("2"));
	CHECK_STR(found(arena, view, "ข้าวผัด", true), STR("3"));
	CHECK_STR(found(arena, view, "ガイド", true), STR("4"));
	CHECK_STR(found(arena, view, "abc", false), STR("4"));
	CHECK_STR(found(arena, view, "行", false), STR("1"));
	words_view_unref(view);
}

TEST(a_newer_segment_replaces_and_removes_files)
{
	static const char *const bodies[] = {"apple pear", "pear plum", "plum fig"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *old = view_of(bodies, 3), *view;
	struct words_builder *b = words_builder_new();
	struct words_doc doc = {.body = STR("cherry"), .area = 1};
	struct words_segment *s;
	struct str version;

	words_builder_file(b, STR("d1"), STR("v2"));
	words_builder_add(b, &doc);
	words_builder_file(b, STR("d2"), STR(""));
	s = words_builder_finish(b);
	view = words_view_push(old, s);
	CHECK_STR(found(arena, view, "pear", false), STR("0"));
	CHECK_STR(found(arena, view, "plum", false), STR(""));
	CHECK_STR(found(arena, view, "cherry", false), STR("1"));
	CHECK_INT(found(arena, old, "pear", false).len, 2);
	CHECK(words_view_file(view, STR("d1"), &version));
	CHECK_STR(version, STR("v2"));
	words_view_unref(old);
	old = view;
	view = merged(old);
	CHECK_INT(words_segment_docs(words_view_at(view, 0)), 2);
	CHECK(!words_view_file(view, STR("d2"), &version));
	CHECK_STR(found(arena, view, "pear cherry", false), STR("10"));
	words_view_unref(old);
	words_view_unref(view);
	words_segment_unref(s);
	words_builder_destroy(b);
}

TEST(near_spellings_are_found_nearest_first)
{
	static const char *const bodies[] = {"receive", "recieve relieve", "deceive receive", "believe"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view = view_of(bodies, 4);
	struct words_near *near;
	size_t n = words_near(view, arena, STR("receeve"), 1, 5, &near);

	CHECK_INT(n, 2);
	CHECK_STR(near[0].term, STR("receive"));
	CHECK_INT(near[0].docs, 2);
	CHECK(words_near(view, arena, STR("recevie"), 2, 5, &near) >= 2);
	CHECK_STR(near[0].term, STR("receive"));
	CHECK_INT(near[0].distance, 1);
	words_view_unref(view);
}

/* --- damage --- */

TEST(every_changed_byte_of_a_segment_is_noticed_or_harmless)
{
	static const char *const bodies[] = {"one two three", "two three four", "three four five"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view = view_of(bodies, 3);
	struct words_segment *s = words_view_at(view, 0), *again;
	size_t size = words_segment_bytes(s), refused = 0;
	char *bytes = arena_alloc(arena, size);
	struct err err;

	for (size_t i = 0; i < size; i++) {
		memcpy(bytes, s->bytes, size);
		bytes[i] = (char)(bytes[i] ^ 0x41);
		if (words_segment_parse(str_n(bytes, size), &again, &err) != 0) {
			CHECK_INT(err.kind, ERR_CORRUPT);
			refused++;
			continue;
		}
		CHECK(i >= s->head->at[WORDS_TEXTS]);
		words_segment_unref(again);
	}
	CHECK_INT(refused, s->head->at[WORDS_TEXTS]);
	for (size_t n = 0; n < size; n += 7)
		CHECK_ERR(words_segment_parse(str_n(s->bytes, n), &again, &err), err, ERR_CORRUPT);
	words_view_unref(view);
}

TEST(a_segment_comes_back_from_its_file)
{
	static const char *const bodies[] = {"one two three", "two three four"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view = view_of(bodies, 2), *mapped;
	const char *path;
	struct words_segment *s;
	struct err err;

	path = arena_printf(arena, "%s/s", temp_dir_new()).ptr;
	CHECK_OK(words_segment_save(words_view_at(view, 0), path, &err), err);
	CHECK_OK(words_segment_open(path, &s, &err), err);
	unlink(path);
	mapped = words_view_new(&s, 1);
	CHECK_STR(found(arena, mapped, "four", false), STR("1"));
	CHECK_INT(found(arena, mapped, "two three", true).len, 2);
	words_segment_unref(s);
	words_view_unref(view);
	words_view_unref(mapped);
}
