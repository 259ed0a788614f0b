/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a segment, section by section, from input that comes in order: files, documents, terms, postings. Both
 * indexing and merging write through it, so the format is written in one place.
 */
#include <math.h>

#include "base/hash.h"
#include "index/words_format.h"
#include "index/words_pack.h"

#define SECTION_MAX ((size_t)1 << 40)

struct words_writer {
	struct buf section[WORDS_SECTIONS];
	struct words_head head;
	/* the term */
	struct words_term term;
	struct buf *blocks;
	uint32_t docs[WORDS_BLOCK], freqs[WORDS_BLOCK];
	uint32_t held;   /* postings of the block that is being filled */
	uint32_t before; /* the last document of the block before; UINT32_MAX: none */
	float least;
	uint64_t places_at;
	bool in_term;
};

struct words_writer *words_writer_new(void)
{
	struct words_writer *w = xcalloc(1, sizeof *w);

	for (size_t i = 0; i < WORDS_SECTIONS; i++)
		buf_init(&w->section[i], NULL, SECTION_MAX);
	memcpy(w->head.magic, WORDS_MAGIC, 8);
	w->head.boost_max = 1;
	return w;
}

static void put(struct buf *buf, const void *bytes, size_t len)
{
	buf_add(buf, str_n(bytes, len));
}

void words_put_varint(struct buf *buf, uint32_t v)
{
	while (v >= 128) {
		buf_char(buf, (char)(v | 128));
		v >>= 7;
	}
	buf_char(buf, (char)v);
}

void words_writer_file(struct words_writer *w, struct str path, struct str version, uint32_t first, uint32_t count)
{
	struct buf *names = &w->section[WORDS_NAMES];
	struct words_file file = {.path_at = (uint32_t)names->len,
				  .path_len = (uint32_t)path.len,
				  .version_at = (uint32_t)(names->len + path.len),
				  .version_len = (uint32_t)version.len,
				  .first = first,
				  .count = count};

	buf_add(names, path);
	buf_add(names, version);
	put(&w->section[WORDS_FILES], &file, sizeof file);
	w->head.files++;
}

void words_writer_doc(struct words_writer *w, const struct words_row *row, uint32_t len, struct str text)
{
	struct words_row copy = *row;

	copy.text_at = w->section[WORDS_TEXTS].len;
	copy.text_len = (uint32_t)text.len;
	copy.text_sum = (uint32_t)hash_u64(text, 0);
	buf_add(&w->section[WORDS_TEXTS], text);
	put(&w->section[WORDS_DOCS], &copy, sizeof copy);
	put(&w->section[WORDS_LENS], &len, sizeof len);
	w->head.total_len += len;
	if (copy.boost > w->head.boost_max)
		w->head.boost_max = copy.boost;
	w->head.areas |= copy.area;
	w->head.archived += copy.archived != 0;
	w->head.docs++;
}

void words_writer_docs_done(struct words_writer *w)
{
	w->head.average = w->head.docs && w->head.total_len ? (double)w->head.total_len / w->head.docs : 1;
}

/* --- postings --- */

static void pack_whole(struct words_writer *w, struct words_block *block)
{
	struct buf *out = &w->section[WORDS_POSTINGS];
	uint32_t gaps[WORDS_BLOCK], gap_max = 0, freq_max = 0, start = w->before + 1;
	char *to;

	for (unsigned i = 0; i < WORDS_BLOCK; i++) {
		gaps[i] = w->docs[i] - (i < 4 ? start : w->docs[i - 4]);
		gap_max |= gaps[i];
		freq_max |= w->freqs[i];
	}
	block->doc_bits = (uint8_t)words_bits(gap_max);
	block->freq_bits = (uint8_t)words_bits(freq_max);
	to = buf_reserve(out, (size_t)16 * (block->doc_bits + block->freq_bits));
	words_pack(gaps, block->doc_bits, (unsigned char *)to);
	words_pack(w->freqs, block->freq_bits, (unsigned char *)to + (size_t)16 * block->doc_bits);
	out->len += (size_t)16 * (block->doc_bits + block->freq_bits);
}

static void flush_block(struct words_writer *w)
{
	struct buf *out = &w->section[WORDS_POSTINGS];
	struct words_block block = {.postings = out->len,
				    .places = w->places_at,
				    .last = w->held ? w->docs[w->held - 1] : 0,
				    .least = w->least,
				    .count = (uint8_t)w->held};

	if (!w->held)
		return;
	if (w->held == WORDS_BLOCK) {
		pack_whole(w, &block);
	} else {
		for (uint32_t i = 0; i < w->held; i++) {
			words_put_varint(out, w->docs[i] - (i ? w->docs[i - 1] : w->before) - 1);
			words_put_varint(out, w->freqs[i]);
		}
	}
	put(&w->section[WORDS_BLOCKS], &block, sizeof block);
	w->head.blocks++;
	w->before = block.last;
	w->held = 0;
	w->places_at = w->section[WORDS_PLACES].len;
	w->least = INFINITY;
}

static void end_term(struct words_writer *w)
{
	if (!w->in_term)
		return;
	flush_block(w);
	w->in_term = false;
	if (!w->term.docs) { /* all its documents are gone */
		w->section[WORDS_SPELLINGS].len = w->term.at;
		return;
	}
	put(&w->section[WORDS_TERMS], &w->term, sizeof w->term);
	w->head.terms++;
}

void words_writer_term(struct words_writer *w, struct str term)
{
	end_term(w);
	w->term = (struct words_term){.at = (uint32_t)w->section[WORDS_SPELLINGS].len,
				      .len = (uint32_t)term.len,
				      .block = w->head.blocks,
				      .least = INFINITY};
	buf_add(&w->section[WORDS_SPELLINGS], term);
	w->in_term = true;
	w->before = UINT32_MAX;
	w->least = INFINITY;
	w->places_at = w->section[WORDS_PLACES].len;
}

void words_writer_posting(struct words_writer *w, uint32_t doc, uint32_t freq, struct str places)
{
	const uint32_t *lens = (const uint32_t *)(const void *)w->section[WORDS_LENS].ptr;
	float least;

	freq = freq > WORDS_FREQ_MAX ? WORDS_FREQ_MAX : freq;
	least = nextafterf((float)(words_k(lens[doc], w->head.average) / freq), 0);
	w->docs[w->held] = doc;
	w->freqs[w->held++] = freq;
	w->term.docs++;
	w->least = least < w->least ? least : w->least;
	w->term.least = least < w->term.least ? least : w->term.least;
	buf_add(&w->section[WORDS_PLACES], places);
	if (w->held == WORDS_BLOCK)
		flush_block(w);
}

/* --- the whole --- */

static void make_table(struct words_writer *w)
{
	const struct words_term *terms = (const struct words_term *)(const void *)w->section[WORDS_TERMS].ptr;
	size_t size = 16;
	uint32_t *table;

	while (size < (size_t)w->head.terms * 2)
		size *= 2;
	table = xcalloc(size, sizeof *table);
	for (uint32_t i = 0; i < w->head.terms; i++) {
		struct str term = str_n(w->section[WORDS_SPELLINGS].ptr + terms[i].at, terms[i].len);
		size_t at = hash_u64(term, 0) & (size - 1);

		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = i + 1;
	}
	put(&w->section[WORDS_TABLE], table, size * sizeof *table);
	free(table);
}

static size_t rounded(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

struct words_segment *words_writer_finish(struct words_writer *w)
{
	struct words_segment *segment;
	struct err err;
	size_t at = rounded(sizeof w->head);
	char *all;

	end_term(w);
	make_table(w);
	for (size_t i = 0; i < WORDS_SECTIONS; i++) {
		w->head.at[i] = at;
		w->head.len[i] = w->section[i].len;
		at += rounded(w->section[i].len + 16); /* a whole vector may be read at the end of any */
	}
	w->head.size = at;
	all = xcalloc(1, at);
	memcpy(all, &w->head, sizeof w->head);
	for (size_t i = 0; i < WORDS_SECTIONS; i++) {
		if (w->section[i].len)
			memcpy(all + w->head.at[i], w->section[i].ptr, w->section[i].len);
		buf_release(&w->section[i]);
	}
	((struct words_head *)(void *)all)->sum = hash_u64(str_n(all + 16, w->head.at[WORDS_TEXTS] - 16), 0);
	free(w);
	if (words_segment_take(all, at, false, &segment, &err) == 0)
		return segment;
	free(all);
	return NULL;
}
