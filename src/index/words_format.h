/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment as bytes: a head, then sections, each at a multiple of 16. Numbers are as this machine has them (the index
 * is derived, and rebuilt elsewhere). One checksum covers head and sections but the texts, which have one per document:
 * nothing but a snippet comes from them.
 *
 * A list of postings is cut into blocks of 128. A whole block has its documents as differences to the fourth before
 * (so that four lanes add up at once) and its frequencies, each packed with as many bits as the largest needs, row by
 * row over four lanes. The last block of a list is bytes. A block knows its last document, and `least`: the least of
 * K / frequency over its documents, from which follows the most that any of them can score.
 */
#ifndef STEAD_INDEX_WORDS_FORMAT_H
#define STEAD_INDEX_WORDS_FORMAT_H

#include <stdatomic.h>

#include "base/buf.h"
#include "index/words.h"

#define WORDS_MAGIC    "STEADWD1"
#define WORDS_BLOCK    128u
#define WORDS_TEXT_MAX ((size_t)1 << 20)
#define WORDS_FREQ_MAX 65535u

enum words_section {
	WORDS_FILES,     /* struct words_file, by path */
	WORDS_NAMES,     /* bytes of paths and versions */
	WORDS_DOCS,      /* struct words_row */
	WORDS_LENS,      /* uint32_t per document: words */
	WORDS_TERMS,     /* struct words_term, by term */
	WORDS_SPELLINGS, /* bytes of terms */
	WORDS_TABLE,     /* uint32_t: term + 1 by hash, a power of two of them */
	WORDS_BLOCKS,    /* struct words_block */
	WORDS_POSTINGS,  /* packed documents and frequencies */
	WORDS_PLACES,    /* per posting: number of places, then differences, as varints */
	WORDS_TEXTS,     /* per document: id, title, kind, author, number of tags, tags, body; each with its length */
	WORDS_SECTIONS
};

struct words_head {
	char magic[8];
	uint64_t sum; /* of everything after it except the texts */
	uint64_t size;
	uint64_t at[WORDS_SECTIONS], len[WORDS_SECTIONS];
	uint64_t total_len;
	uint32_t files, docs, terms, blocks;
	uint32_t areas, archived; /* which there are; how many */
	double average;           /* the length that `least` was computed with */
	double boost_max;
};

struct words_file {
	uint32_t path_at, path_len, version_at, version_len;
	uint32_t first, count;
};

struct words_row {
	int64_t time_ns;
	uint64_t text_at, tags; /* tags: a bit per tag by its hash */
	uint32_t text_len, text_sum;
	uint32_t file, kind, author; /* hashes */
	float boost;
	uint8_t area, archived;
	uint8_t unused[6];
};

struct words_term {
	uint32_t at, len;
	uint32_t docs, block; /* the first one */
	float least;
	uint32_t unused;
};

struct words_block {
	uint64_t postings, places; /* where they begin */
	uint32_t last;
	float least;
	uint8_t doc_bits, freq_bits, count; /* count 128: packed */
	uint8_t unused[5];
};

struct words_segment {
	_Atomic unsigned refs;
	const unsigned char *bytes;
	size_t size;
	bool mapped;
	const struct words_head *head;
	const struct words_file *files;
	const char *names;
	const struct words_row *rows;
	const uint32_t *lens;
	const struct words_term *terms;
	const char *spellings;
	const uint32_t *table;
	size_t table_mask;
	const struct words_block *blocks;
	const unsigned char *postings, *places, *texts;
};

struct words_view {
	_Atomic unsigned refs;
	size_t count;
	struct words_segment **segments;
	uint64_t **dead; /* a bit per document, or NULL: all are alive */
	uint32_t *dead_count;
	uint64_t *dead_len;       /* their words */
	uint64_t docs, total_len; /* of those alive: what idf and lengths are taken from */
};

static inline struct str words_term_str(const struct words_segment *s, uint32_t term)
{
	return str_n(s->spellings + s->terms[term].at, s->terms[term].len);
}

static inline struct str words_path(const struct words_segment *s, uint32_t file)
{
	return str_n(s->names + s->files[file].path_at, s->files[file].path_len);
}

static inline bool words_is_dead(const struct words_view *v, size_t segment, uint32_t doc)
{
	return v->dead[segment] && (v->dead[segment][doc >> 6] >> (doc & 63) & 1);
}

/* How hard a document of this length makes it: K of BM25 = k1 (1 - b + b len / average). */
static inline double words_k(uint32_t len, double average)
{
	return WORDS_K1 * (1 - WORDS_B) + WORDS_K1 * WORDS_B / average * len;
}

#define WORDS_NONE UINT32_MAX
/* The file's number, or WORDS_NONE. */
uint32_t words_file_find(const struct words_segment *s, struct str path);
/* The term's number, or WORDS_NONE. */
uint32_t words_term_find(const struct words_segment *s, struct str term);
/* Documents (and frequencies, unless NULL) of a block; returns how many. In a damaged file documents may be anything:
   compare with head->docs before using one as an index. */
uint32_t words_block_read(const struct words_segment *s, uint32_t block, uint32_t base, uint32_t *docs,
			  uint32_t *freqs);
/* The last document of the block before, or UINT32_MAX (which counts as -1) for a term's first. */
static inline uint32_t words_block_base(const struct words_segment *s, const struct words_term *t, uint32_t block)
{
	return block == t->block ? UINT32_MAX : s->blocks[block - 1].last;
}

static inline uint32_t words_block_count(const struct words_term *t)
{
	return (t->docs + WORDS_BLOCK - 1) / WORDS_BLOCK;
}

/* A varint; ends at `end`. */
static inline uint32_t words_varint(const unsigned char **at, const unsigned char *end)
{
	uint32_t v = 0;

	for (unsigned shift = 0; shift < 35 && *at < end; shift += 7) {
		unsigned char c = *(*at)++;

		v |= (uint32_t)(c & 127) << shift;
		if (c < 128)
			break;
	}
	return v;
}

/* --- writing --- */

struct words_writer;

struct words_writer *words_writer_new(void);
/* Files by path, with the first of their documents and how many; then all documents, in any order of files. */
void words_writer_file(struct words_writer *w, struct str path, struct str version, uint32_t first, uint32_t count);
void words_writer_doc(struct words_writer *w, const struct words_row *row, uint32_t len, struct str text);
/* Once, between documents and terms. */
void words_writer_docs_done(struct words_writer *w);
/* Terms by spelling; postings by document. */
void words_writer_term(struct words_writer *w, struct str term);
void words_writer_posting(struct words_writer *w, uint32_t doc, uint32_t freq, struct str places);
/* Frees the writer. NULL: the input is not a valid index, because it came from a forged segment. */
struct words_segment *words_writer_finish(struct words_writer *w);
void words_put_varint(struct buf *buf, uint32_t v);

/* A segment over bytes that are in memory (freed with it) or mapped; on failure they stay the caller's. */
int words_segment_take(void *bytes, size_t size, bool mapped, struct words_segment **ret, struct err *err);

/* False when the file that is mapped was cut off. */
bool words_segment_is_whole(const struct words_segment *segment);

/* A document's text section, and its row but for file and text. */
void words_pack_text(struct buf *buf, const struct words_doc *doc);
struct words_row words_row_of(const struct words_doc *doc);
uint64_t words_tag_bit(struct str tag);
uint32_t words_word_hash(struct str s);
bool words_unpack_text(struct str text, struct arena *arena, struct words_doc *ret);

#endif
