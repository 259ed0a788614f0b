/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each segment there is a table: the pieces of its documents, their keys, and the records of their vectors as far
 * as there are any. It is made when the segment is first searched, by hashing its texts, and goes when the segment
 * goes: segments are merged all the time, vectors stay. Tables are shared by searches and the worker; records in them
 * are filled in as vectors come.
 */
#include "home/search/search_meaning.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/search/embedder.h"
#include "home/search/search_disk.h"
#include "index/vectors.h"

#define REFUSED      (VECTORS_NONE - 1) /* the embedder does not want this text */
#define RECENT       64                 /* questions whose vectors are remembered: pages of one answer */
#define QUESTION_MAX ((size_t)2000)

struct table {
	_Atomic unsigned refs;
	struct words_segment *segment;
	uint32_t docs;
	uint32_t *first; /* per document: its first piece; one more at the end */
	uint64_t (*keys)[2];
	_Atomic uint32_t *records;
	_Atomic uint32_t missing; /* how many have none */
	uint32_t seen;            /* vectors there were when records were last looked up */
	atomic_bool done;         /* what is missing belongs to documents that are no more */
};

struct question {
	uint64_t key[2];
	float *values;
	unsigned dims;
};

struct meaning {
	const struct config_embedding *config;
	struct embedder *embedder;
	struct vectors *vectors;
	pthread_mutex_t lock; /* for what follows */
	struct table **tables;
	size_t count;
	struct question recent[RECENT];
	size_t next;
	atomic_bool due;
};

struct meaning *meaning_new(const struct config_embedding *config, const char *dir)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct embedder *e = embedder_new(config);
	const char *path = NULL;
	struct meaning *m;
	struct vectors *v;
	struct err err;
	char hex[16];

	if (!e)
		return NULL;
	hex_u64(hash_u64(config->model, config->dimensions), hex);
	if (dir && index_dir_make(dir, &err) == 0)
		path = arena_printf(arena, "%s/" INDEX_VECTORS "%.16s", dir, hex).ptr;
	if (vectors_open(path, &v, &err) != 0 && vectors_open(NULL, &v, &err) != 0) {
		embedder_destroy(e);
		return NULL;
	}
	m = xcalloc(1, sizeof *m);
	m->config = config;
	m->embedder = e;
	m->vectors = v;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

/* --- tables --- */

static void table_unref(struct table *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	words_segment_unref(t->segment);
	free(t->first);
	free(t->keys);
	free(t->records);
	free(t);
}

static void drop_tables(struct meaning *m)
{
	for (size_t i = 0; i < m->count; i++)
		table_unref(m->tables[i]);
	free(m->tables);
	m->tables = NULL;
	m->count = 0;
}

void meaning_destroy(struct meaning *m)
{
	if (!m)
		return;
	drop_tables(m);
	for (size_t i = 0; i < RECENT; i++)
		free(m->recent[i].values);
	embedder_destroy(m->embedder);
	vectors_close(m->vectors);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

void meaning_forget(struct meaning *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	drop_tables(m);
	vectors_forget(m->vectors);
	pthread_mutex_unlock(&m->lock);
}

/* Cuts the next piece off: at a paragraph, a line, the end of a sentence, a blank, whatever is in its second half. */
static struct str cut_piece(struct str *rest)
{
	static const struct str ends[] = {STR("\n\n"), STR("\n"), STR(". "), STR("。"), STR(" ")};
	struct str piece = utf8_first(*rest, EMBED_PIECE_MAX);

	for (size_t i = 0; piece.len < rest->len && i < sizeof ends / sizeof ends[0]; i++) {
		size_t at = SIZE_MAX, next = EMBED_PIECE_MAX / 2;

		while ((next = str_find(piece, ends[i], next)) != SIZE_MAX)
			at = next++;
		if (at != SIZE_MAX) {
			piece.len = at + ends[i].len;
			break;
		}
	}
	*rest = str_from(*rest, piece.len);
	return piece;
}

struct str meaning_piece(const struct words_doc *doc, uint32_t piece)
{
	struct str rest = doc->body, got = cut_piece(&rest);

	while (piece-- && rest.len)
		got = cut_piece(&rest);
	return got;
}

static struct str piece_text(struct arena *arena, const struct words_doc *doc, struct str piece)
{
	return arena_printf(arena, "%.*s\n%.*s", STR_ARG(doc->title), STR_ARG(piece));
}

static void key_of(const struct meaning *m, struct arena *arena, struct str text, uint64_t ret[2])
{
	hash_u128(arena_printf(arena, "%.*s\n%llu\n%.*s", STR_ARG(m->config->model),
			       (unsigned long long)m->config->dimensions, STR_ARG(text)),
		  ret);
}

/* The pieces of segment `number` of the view. */
static struct table *table_new(const struct meaning *m, const struct words_view *view, uint32_t number)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct table *t = xcalloc(1, sizeof *t);
	size_t cap = 0;
	uint32_t n = 0;

	t->refs = 1;
	t->segment = words_segment_ref(words_view_at(view, number));
	t->docs = words_segment_docs(t->segment);
	t->first = xcalloc((size_t)t->docs + 1, sizeof *t->first);
	for (uint32_t d = 0; d < t->docs; d++) {
		struct words_hit hit = {number, d, 0};
		struct words_doc doc;
		struct str path, rest;

		if (d % 16 == 0)
			arena_reset(arena);
		words_doc_of(view, &hit, arena, &doc, &path);
		t->first[d] = n;
		rest = doc.body;
		for (unsigned i = 0; i < EMBED_PIECES_MAX && (i == 0 || rest.len); i++) {
			struct str piece = cut_piece(&rest);

			if (!doc.title.len && !piece.len)
				break;
			if (n == cap) {
				cap = cap * 2 + 64;
				t->keys = xrealloc(t->keys, cap * sizeof *t->keys);
			}
			key_of(m, arena, piece_text(arena, &doc, piece), t->keys[n++]);
		}
	}
	t->first[t->docs] = n;
	t->records = xcalloc((size_t)n + 1, sizeof *t->records);
	for (uint32_t i = 0; i < n; i++)
		atomic_init(&t->records[i], VECTORS_NONE);
	t->missing = n;
	return t;
}

/* Looks up what had no vector when it was last tried. */
static void resolve(struct meaning *m, struct table *t)
{
	uint32_t vectors = vectors_count(m->vectors), missing = 0;

	if (!t->missing || t->seen == vectors)
		return;
	for (uint32_t i = 0; i < t->first[t->docs]; i++) {
		uint32_t record = atomic_load(&t->records[i]);

		if (record == VECTORS_NONE) {
			record = vectors_find(m->vectors, t->keys[i]);
			atomic_store(&t->records[i], record);
			missing += record == VECTORS_NONE;
		}
	}
	t->missing = missing;
	t->seen = vectors;
}

/* The tables of the view's segments, each referenced; those of segments that are gone are dropped. */
static struct table **tables_of(struct meaning *m, struct arena *arena, const struct words_view *view)
{
	size_t n = words_view_count(view);
	struct table **list = ARENA_ARRAY(arena, struct table *, n + 1), **own;
	bool due = false;

	pthread_mutex_lock(&m->lock);
	if (!vectors_refresh(m->vectors))
		drop_tables(m);
	own = xcalloc(n + 1, sizeof(struct table *));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; !own[i] && k < m->count; k++)
			if (m->tables[k]->segment == words_view_at(view, i))
				own[i] = m->tables[k];
		if (own[i])
			atomic_fetch_add(&own[i]->refs, 1);
		else
			own[i] = table_new(m, view, (uint32_t)i);
		resolve(m, own[i]);
		due |= own[i]->missing > 0 && !own[i]->done;
		atomic_fetch_add(&own[i]->refs, 1);
		list[i] = own[i];
	}
	drop_tables(m);
	m->tables = own;
	m->count = n;
	atomic_store(&m->due, due);
	pthread_mutex_unlock(&m->lock);
	return list;
}

static void release(struct table **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		table_unref(list[i]);
}

/* --- embedding --- */

struct batch {
	struct str *texts;
	uint64_t (*keys)[2];
	struct table **tables;
	uint32_t *pieces;
	size_t count, max;
};

static void batch_init(struct batch *b, struct arena *arena, size_t max)
{
	*b = (struct batch){.max = max};
	b->texts = ARENA_ARRAY(arena, struct str, max + 1);
	b->keys = (uint64_t(*)[2])ARENA_ARRAY(arena, uint64_t, 2 * (max + 1));
	b->tables = ARENA_ARRAY(arena, struct table *, max + 1);
	b->pieces = ARENA_ARRAY(arena, uint32_t, max + 1);
}

static bool has_key(const struct batch *b, const uint64_t key[2])
{
	for (size_t i = 0; i < b->count; i++)
		if (b->keys[i][0] == key[0] && b->keys[i][1] == key[1])
			return true;
	return false;
}

static void gather_doc(struct arena *arena, const struct words_view *view, struct table *t, struct words_hit at,
		       struct batch *b)
{
	struct words_doc doc;
	struct str path;

	words_doc_of(view, &at, arena, &doc, &path);
	for (uint32_t i = t->first[at.doc]; i < t->first[at.doc + 1] && b->count < b->max; i++) {
		size_t n = b->count;

		if (atomic_load(&t->records[i]) != VECTORS_NONE || has_key(b, t->keys[i]))
			continue;
		b->texts[n] = piece_text(arena, &doc, meaning_piece(&doc, i - t->first[at.doc]));
		memcpy(b->keys[n], t->keys[i], sizeof b->keys[n]);
		b->tables[n] = t;
		b->pieces[n] = i;
		b->count++;
	}
}

/* Pieces of living documents that have no vector, newest segments first. */
static void gather(struct arena *arena, const struct words_view *view, struct table **tables, struct batch *b)
{
	for (size_t s = words_view_count(view); s-- > 0 && b->count < b->max;) {
		struct table *t = tables[s];

		for (uint32_t d = 0; t->missing && !t->done && d < t->docs && b->count < b->max; d++) {
			bool lacks = false;

			for (uint32_t i = t->first[d]; !lacks && i < t->first[d + 1]; i++)
				lacks = atomic_load(&t->records[i]) == VECTORS_NONE;
			if (lacks && words_view_has(view, s, d))
				gather_doc(arena, view, t, (struct words_hit){(uint32_t)s, d, 0}, b);
		}
	}
}

/* What the embedder answered cannot be used. */
static int wrong_vectors(struct meaning *m, unsigned dims, struct err *err)
{
	err_set(err, ERR_UNAVAILABLE,
		"the embedder answers with vectors of %u numbers, where it gave %u before, or with zeros; give "
		"embedding.model another name if the model changed",
		dims, vectors_dims(m->vectors));
	embedder_is_wrong(m->embedder, err);
	return -ERR_UNAVAILABLE;
}

static int keep(struct meaning *m, const struct batch *b, const float *values, unsigned dims, struct err *err)
{
	int r = vectors_add(m->vectors, (const uint64_t(*)[2])b->keys, values, b->count, dims, err);

	if (r == -ERR_INVALID)
		return wrong_vectors(m, dims, err);
	for (size_t i = 0; !r && i < b->count; i++)
		atomic_store(&b->tables[i]->records[b->pieces[i]], vectors_find(m->vectors, b->keys[i]));
	return r;
}

/* Embeds the batch. When the embedder refuses it, one text after the other: those that it refuses are left out from
   then on. */
static int embed_batch(struct meaning *m, struct ctx *ctx, struct batch *b, struct err *err)
{
	float *values;
	unsigned dims;
	int r = embedder_embed(m->embedder, ctx, b->texts, b->count, &values, &dims, err);

	if (!r)
		return keep(m, b, values, dims, err);
	if (r == -ERR_INVALID && b->count == 1) {
		atomic_store(&b->tables[0]->records[b->pieces[0]], REFUSED);
		atomic_fetch_sub(&b->tables[0]->missing, 1);
		return 0;
	}
	for (size_t i = 0; r == -ERR_INVALID && i < b->count; i++) {
		struct batch one = {b->texts + i, b->keys + i, b->tables + i, b->pieces + i, 1, 1};
		int one_r = embed_batch(m, ctx, &one, err);

		if (one_r)
			return one_r;
	}
	return r == -ERR_INVALID ? 0 : r;
}

bool meaning_is_due(struct meaning *m)
{
	return m && atomic_load(&m->due) && !embedder_is_left_alone(m->embedder);
}

bool meaning_work(struct meaning *m, struct ctx *ctx, struct words_view *view)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = *ctx;
	struct table **tables;
	struct batch b;
	struct err err;
	int r = 0;

	own.arena = arena;
	tables = tables_of(m, arena, view);
	batch_init(&b, arena, m->config->batch);
	gather(arena, view, tables, &b);
	if (b.count)
		r = embed_batch(m, &own, &b, &err);
	for (size_t i = 0; !b.count && i < words_view_count(view); i++)
		atomic_store(&tables[i]->done, true);
	atomic_store(&m->due, b.count > 0);
	release(tables, words_view_count(view));
	return b.count && !r;
}

/* --- the question --- */

/* The vector of a question, if it was asked lately; in the arena. */
static bool recall(struct meaning *m, struct arena *arena, const uint64_t key[2], float **ret, unsigned *ret_dims)
{
	bool found = false;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; !found && i < RECENT; i++) {
		const struct question *q = &m->recent[i];

		if (!q->values || q->key[0] != key[0] || q->key[1] != key[1])
			continue;
		*ret = ARENA_ARRAY(arena, float, q->dims);
		memcpy(*ret, q->values, q->dims * sizeof **ret);
		*ret_dims = q->dims;
		found = true;
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}

static void remember(struct meaning *m, const uint64_t key[2], const float *values, unsigned dims)
{
	struct question *q;

	pthread_mutex_lock(&m->lock);
	q = &m->recent[m->next++ % RECENT];
	free(q->values);
	*q = (struct question){{key[0], key[1]}, xmalloc(dims * sizeof *values), dims};
	memcpy(q->values, values, dims * sizeof *values);
	pthread_mutex_unlock(&m->lock);
}

/* The question and what is missing go in one request. */
static int embed_question(struct meaning *m, struct ctx *ctx, const struct words_view *view, struct table **tables,
			  struct str text, float **ret, unsigned *ret_dims, struct err *err)
{
	uint64_t key[2];
	struct batch b;
	int r;

	text = utf8_first(text, QUESTION_MAX);
	key_of(m, ctx->arena, text, key);
	if (recall(m, ctx->arena, key, ret, ret_dims))
		return 0;
	batch_init(&b, ctx->arena, m->config->batch);
	b.max = m->config->batch - 1;
	gather(ctx->arena, view, tables, &b);
	b.texts[b.count] = text;
	r = embedder_embed(m->embedder, ctx, b.texts, b.count + 1, ret, ret_dims, err);
	if (r == -ERR_INVALID && b.count) { /* one of the others may be what it refuses */
		b.count = 0;
		r = embedder_embed(m->embedder, ctx, &text, 1, ret, ret_dims, err);
	}
	if (r)
		return r;
	if (b.count)
		r = keep(m, &b, *ret, *ret_dims, err);
	*ret += b.count * *ret_dims;
	if (!r)
		remember(m, key, *ret, *ret_dims);
	return r;
}

/* --- the nearest --- */

static bool is_nearer(const struct meaning_hit *a, const struct meaning_hit *b)
{
	if (a->cosine != b->cosine)
		return a->cosine > b->cosine;
	return a->segment != b->segment ? a->segment > b->segment : a->doc < b->doc;
}

/* Keeps the best in order; there are few. */
static void enter(struct meaning_hit *hits, size_t *count, struct meaning_hit hit)
{
	size_t i = *count < MEANING_DEPTH ? (*count)++ : MEANING_DEPTH - 1;

	for (; i && is_nearer(&hit, &hits[i - 1]); i--)
		hits[i] = hits[i - 1];
	hits[i] = hit;
}

static void rank_segment(struct meaning *m, struct table *t, uint32_t number, struct words_check *check,
			 const struct vectors_probe *probe, struct meaning_hit *hits, size_t *count)
{
	uint32_t n = t->first[t->docs], used = 0, *records = xcalloc((size_t)n + 1, sizeof *records),
		 *docs = xcalloc((size_t)n + 1, sizeof *docs);
	float *cosines = xcalloc((size_t)n + 1, sizeof *cosines);

	for (uint32_t d = 0; d < t->docs; d++) {
		if (!words_check_row(check, number, d))
			continue;
		for (uint32_t i = t->first[d]; i < t->first[d + 1]; i++) {
			records[used] = atomic_load(&t->records[i]);
			docs[used++] = d;
		}
	}
	vectors_cosines(m->vectors, probe, records, used, cosines);
	for (uint32_t i = 0; i < used;) {
		struct meaning_hit hit = {number, docs[i], 0, -2};
		uint32_t first = i;

		for (; i < used && docs[i] == hit.doc; i++)
			if (cosines[i] > hit.cosine) {
				hit.cosine = cosines[i];
				hit.piece = i - first;
			}
		if (hit.cosine <= 0 || (*count == MEANING_DEPTH && !is_nearer(&hit, &hits[*count - 1])))
			continue;
		if (words_check_text(check, number, hit.doc))
			enter(hits, count, hit);
	}
	free(records);
	free(docs);
	free(cosines);
}

static int rank(struct meaning *m, struct ctx *ctx, struct words_view *view, struct table **tables,
		const struct words_query *query, struct str text, bool all, struct meaning_hit **ret, size_t *ret_count,
		struct err *err)
{
	int64_t until = clock_monotonic_ns() + (int64_t)m->config->timeout_ms * 1000000;
	struct words_check *check = words_check_new(view, ctx->arena, query);
	struct vectors_probe probe;
	float *values;
	unsigned dims;
	int r = embed_question(m, ctx, view, tables, text, &values, &dims, err);

	while (!r && all && clock_monotonic_ns() < until && meaning_work(m, ctx, view))
		;
	if (r)
		return r;
	if (!vectors_probe(ctx->arena, values, dims, &probe) ||
	    (vectors_dims(m->vectors) && vectors_dims(m->vectors) != dims))
		return wrong_vectors(m, dims, err);
	*ret = ARENA_ARRAY(ctx->arena, struct meaning_hit, MEANING_DEPTH + 1);
	*ret_count = 0;
	for (size_t s = 0; !r && s < words_view_count(view); s++) {
		rank_segment(m, tables[s], (uint32_t)s, check, &probe, *ret, ret_count);
		r = ctx_check(ctx, err);
	}
	return r;
}

int meaning_rank(struct meaning *m, struct ctx *ctx, struct words_view *view, const struct words_query *query,
		 struct str text, bool all, struct meaning_hit **ret, size_t *ret_count, struct err *err)
{
	struct table **tables = tables_of(m, ctx->arena, view);
	int r = rank(m, ctx, view, tables, query, text, all, ret, ret_count, err);

	release(tables, words_view_count(view));
	return r;
}
