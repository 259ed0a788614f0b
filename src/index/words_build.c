/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From documents to a segment. While documents come in, every word is two numbers at the end of one array: which term,
 * and where with what weight. At the end terms are sorted by spelling and the array by term (counting, so documents and
 * places stay in order), and the lists are written. Nothing is kept per term but its count: adding a word costs one
 * look into a table and eight bytes.
 */
#include "base/hash.h"
#include "index/words_format.h"
#include "text/terms.h"

struct entry {               /* of the table */
	uint32_t hash, term; /* term + 1; 0: free */
};

struct built_file {
	struct str path, version; /* in the arena */
	uint32_t first, count;    /* documents */
};

struct built_doc {
	struct words_row row;
	uint64_t text_at;
	uint32_t text_len, len;
	size_t words; /* where its words begin */
};

struct spelling {
	uint32_t at, len;
};

struct words_builder {
	struct arena *arena;
	struct entry *table;
	size_t table_size;
	struct spelling *terms;
	size_t term_count, term_cap;
	struct buf spellings, texts;
	uint32_t *word_term, *word_place; /* place: position * 4 + weight */
	size_t word_count, word_cap;
	struct built_file *files;
	size_t file_count, file_cap;
	struct built_doc *docs;
	size_t doc_count, doc_cap;
	/* the document that is being added */
	uint32_t weight, len;
};

struct words_builder *words_builder_new(void)
{
	struct words_builder *b = xcalloc(1, sizeof *b);

	b->arena = arena_new();
	b->table_size = 256;
	b->table = xcalloc(b->table_size, sizeof *b->table);
	buf_init(&b->spellings, NULL, SIZE_MAX / 2);
	buf_init(&b->texts, NULL, SIZE_MAX / 2);
	return b;
}

void words_builder_destroy(struct words_builder *b)
{
	if (!b)
		return;
	arena_destroy(b->arena);
	buf_release(&b->spellings);
	buf_release(&b->texts);
	free(b->table);
	free(b->terms);
	free(b->word_term);
	free(b->word_place);
	free(b->files);
	free(b->docs);
	free(b);
}

size_t words_builder_size(const struct words_builder *b)
{
	return b->word_count * 16 + b->texts.len * 2 + b->spellings.len + b->term_count * 64 + b->doc_count * 128 +
	       b->file_count * 160;
}

static void grow_table(struct words_builder *b)
{
	size_t size = b->table_size * 2;
	struct entry *table = xcalloc(size, sizeof *table);

	for (size_t i = 0; i < b->table_size; i++) {
		size_t at = b->table[i].hash & (size - 1);

		if (!b->table[i].term)
			continue;
		while (table[at].term)
			at = (at + 1) & (size - 1);
		table[at] = b->table[i];
	}
	free(b->table);
	b->table = table;
	b->table_size = size;
}

static uint32_t term_number(struct words_builder *b, struct str term)
{
	uint32_t hash = (uint32_t)hash_u64(term, 0);
	size_t at = hash & (b->table_size - 1);

	for (; b->table[at].term; at = (at + 1) & (b->table_size - 1)) {
		const struct spelling *s = &b->terms[b->table[at].term - 1];

		if (b->table[at].hash == hash && s->len == term.len &&
		    memcmp(b->spellings.ptr + s->at, term.ptr, term.len) == 0)
			return b->table[at].term - 1;
	}
	HEAP_ROOM(b->terms, b->term_count, b->term_cap);
	b->terms[b->term_count] = (struct spelling){(uint32_t)b->spellings.len, (uint32_t)term.len};
	buf_add(&b->spellings, term);
	b->table[at] = (struct entry){hash, (uint32_t)++b->term_count};
	if (b->term_count * 2 > b->table_size)
		grow_table(b);
	return (uint32_t)b->term_count - 1;
}

static void add_word(void *arg, const struct term *term)
{
	struct words_builder *b = arg;

	if (b->word_count == b->word_cap) {
		b->word_cap = b->word_cap ? b->word_cap * 2 : 1024;
		b->word_term = xrealloc(b->word_term, b->word_cap * sizeof *b->word_term);
		b->word_place = xrealloc(b->word_place, b->word_cap * sizeof *b->word_place);
	}
	b->word_term[b->word_count] = term_number(b, term->text);
	b->word_place[b->word_count++] = term->pos * 4 + b->weight;
	b->len += !(term->flags & TERM_EXTRA);
}

void words_builder_file(struct words_builder *b, struct str path, struct str version)
{
	HEAP_ROOM(b->files, b->file_count, b->file_cap);
	b->files[b->file_count++] = (struct built_file){.path = arena_str(b->arena, path),
							.version = arena_str(b->arena, version),
							.first = (uint32_t)b->doc_count};
}

static uint32_t add_field(struct words_builder *b, struct str text, uint32_t pos, uint32_t weight)
{
	b->weight = weight;
	/* A phrase does not go from one field to the next. */
	return terms_each(text, pos, add_word, b) + 16;
}

void words_builder_add(struct words_builder *b, const struct words_doc *doc)
{
	struct words_doc cut = *doc;
	struct built_doc *d;
	uint32_t pos = 0;

	HEAP_ROOM(b->docs, b->doc_count, b->doc_cap);
	d = &b->docs[b->doc_count++];
	cut.title = utf8_first(doc->title, 4096);
	cut.body = utf8_first(doc->body, WORDS_TEXT_MAX);
	cut.id = utf8_first(doc->id, 1024);
	cut.kind = utf8_first(doc->kind, 1024);
	cut.author = utf8_first(doc->author, 1024);
	cut.tag_count = doc->tag_count < 256 ? doc->tag_count : 256;
	*d = (struct built_doc){.row = words_row_of(&cut), .text_at = b->texts.len, .words = b->word_count};
	words_pack_text(&b->texts, &cut);
	d->text_len = (uint32_t)(b->texts.len - d->text_at);
	b->len = 0;
	pos = add_field(b, cut.title, pos, WORDS_TITLE);
	for (size_t i = 0; i < cut.tag_count; i++)
		pos = add_field(b, cut.tags[i], pos, WORDS_TAG);
	add_field(b, cut.body, pos, WORDS_BODY);
	d->len = b->len ? b->len : 1;
	b->files[b->file_count - 1].count++;
}

/* --- sorting --- */

static int by_path(const void *a, const void *b)
{
	return str_cmp(((const struct built_file *)a)->path, ((const struct built_file *)b)->path);
}

struct sorted_term {
	uint64_t head; /* the first eight bytes, big-endian: most comparisons end here */
	struct str text;
	uint32_t number;
};

static int by_spelling(const void *pa, const void *pb)
{
	const struct sorted_term *a = pa, *b = pb;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	return str_cmp(a->text, b->text);
}

static struct sorted_term *sort_terms(const struct words_builder *b)
{
	struct sorted_term *terms = xcalloc(b->term_count + 1, sizeof *terms);

	for (size_t i = 0; i < b->term_count; i++) {
		struct str text = str_n(b->spellings.ptr + b->terms[i].at, b->terms[i].len);
		unsigned char head[8] = {0};

		memcpy(head, text.ptr, text.len < 8 ? text.len : 8);
		terms[i] = (struct sorted_term){.text = text, .number = (uint32_t)i};
		for (int k = 0; k < 8; k++)
			terms[i].head = terms[i].head << 8 | head[k];
	}
	qsort(terms, b->term_count, sizeof *terms, by_spelling);
	return terms;
}

struct placed {
	uint32_t doc, place;
};

/* Words by term, then by document, then by place. start[t] … start[t + 1] are those of term t. */
static struct placed *sort_words(const struct words_builder *b, size_t **ret_start)
{
	struct placed *placed = xmalloc((b->word_count + 1) * sizeof *placed);
	size_t *start = xcalloc(b->term_count + 2, sizeof *start);

	for (size_t i = 0; i < b->word_count; i++)
		start[b->word_term[i] + 2]++;
	for (size_t t = 2; t <= b->term_count; t++)
		start[t] += start[t - 1];
	for (uint32_t d = 0; d < b->doc_count; d++) {
		size_t end = d + 1 < b->doc_count ? b->docs[d + 1].words : b->word_count;

		for (size_t i = b->docs[d].words; i < end; i++)
			placed[start[b->word_term[i] + 1]++] = (struct placed){d, b->word_place[i]};
	}
	*ret_start = start;
	return placed;
}

static void write_list(struct words_writer *w, const struct placed *list, size_t n, struct buf *places)
{
	for (size_t i = 0; i < n;) {
		uint32_t doc = list[i].doc, freq = 0, before = 0;
		size_t end = i;

		for (; end < n && list[end].doc == doc; end++)
			freq += list[end].place & 3;
		buf_clear(places);
		words_put_varint(places, (uint32_t)(end - i));
		for (; i < end; i++) {
			words_put_varint(places, (list[i].place >> 2) - before);
			before = list[i].place >> 2;
		}
		words_writer_posting(w, doc, freq, buf_str(places));
	}
}

static void write_docs(struct words_builder *b, struct words_writer *w)
{
	qsort(b->files, b->file_count, sizeof *b->files, by_path);
	for (size_t f = 0; f < b->file_count; f++) {
		const struct built_file *file = &b->files[f];

		words_writer_file(w, file->path, file->version, file->first, file->count);
		for (uint32_t i = 0; i < file->count; i++)
			b->docs[file->first + i].row.file = (uint32_t)f;
	}
	for (size_t i = 0; i < b->doc_count; i++) {
		const struct built_doc *d = &b->docs[i];

		words_writer_doc(w, &d->row, d->len, str_n(b->texts.ptr + d->text_at, d->text_len));
	}
	words_writer_docs_done(w);
}

static void empty(struct words_builder *b)
{
	arena_reset(b->arena);
	b->term_count = b->word_count = b->file_count = b->doc_count = 0;
	memset(b->table, 0, b->table_size * sizeof *b->table);
	buf_clear(&b->spellings);
	buf_clear(&b->texts);
}

struct words_segment *words_builder_finish(struct words_builder *b)
{
	struct words_writer *w = words_writer_new();
	struct sorted_term *terms = sort_terms(b);
	struct placed *placed;
	struct buf places;
	size_t *start;

	write_docs(b, w);
	placed = sort_words(b, &start);
	buf_init(&places, NULL, SIZE_MAX / 2);
	for (size_t i = 0; i < b->term_count; i++) {
		uint32_t t = terms[i].number;

		words_writer_term(w, terms[i].text);
		write_list(w, placed + start[t], start[t + 1] - start[t], &places);
	}
	buf_release(&places);
	free(terms);
	free(placed);
	free(start);
	empty(b);
	return words_writer_finish(w); /* of documents that were read here it is never NULL */
}
