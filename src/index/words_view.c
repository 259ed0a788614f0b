/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several segments as one. A newer segment replaces, file by file, what older ones say; which of their documents that
 * concerns is worked out once, when the view is made, as a bit each. Views are immutable and counted: a search keeps
 * the one that it began with, whatever is added or merged while it runs.
 *
 * A merge takes the lists of its segments term by term and writes them one after the other with new numbers, without
 * what was replaced. Texts are not looked at again.
 */
#include "index/words_format.h"

static struct words_view *view_alloc(size_t count)
{
	struct words_view *v = xcalloc(1, sizeof *v);

	v->refs = 1;
	v->count = count;
	v->segments = xcalloc(count + 1, sizeof *v->segments);
	v->dead = xcalloc(count + 1, sizeof *v->dead);
	v->dead_count = xcalloc(count + 1, sizeof *v->dead_count);
	v->dead_len = xcalloc(count + 1, sizeof *v->dead_len);
	return v;
}

/* The documents of the file `path` in segment `i` are replaced. */
static void kill_file(struct words_view *v, size_t i, struct str path)
{
	const struct words_segment *s = v->segments[i];
	uint32_t file = words_file_find(s, path);

	if (file == WORDS_NONE)
		return;
	for (uint32_t d = s->files[file].first, n = s->files[file].count; n; n--, d++) {
		if (!v->dead[i])
			v->dead[i] = xcalloc(s->head->docs / 64 + 1, sizeof **v->dead);
		if (v->dead[i][d >> 6] >> (d & 63) & 1)
			continue;
		v->dead[i][d >> 6] |= UINT64_C(1) << (d & 63);
		v->dead_count[i]++;
		v->dead_len[i] += s->lens[d];
		v->docs--;
		v->total_len -= s->lens[d];
	}
}

/* Segment `i` counts, but for what is known to be dead. */
static void count_in(struct words_view *v, size_t i)
{
	v->docs += v->segments[i]->head->docs - v->dead_count[i];
	v->total_len += v->segments[i]->head->total_len - v->dead_len[i];
}

/* Segment `top` overrides all before it. */
static void put_over(struct words_view *v, size_t top)
{
	const struct words_segment *s = v->segments[top];

	count_in(v, top);
	for (uint32_t f = 0; top && f < s->head->files; f++)
		for (size_t i = 0; i < top; i++)
			kill_file(v, i, words_path(s, f));
}

struct words_view *words_view_new(struct words_segment *const *segments, size_t count)
{
	struct words_view *v = view_alloc(count);

	for (size_t i = 0; i < count; i++) {
		v->segments[i] = words_segment_ref(segments[i]);
		put_over(v, i);
	}
	return v;
}

/* Segment `from` of `old` becomes segment `to`, with what is known of it. */
static void carry(struct words_view *v, size_t to, const struct words_view *old, size_t from)
{
	size_t bytes = (old->segments[from]->head->docs / 64 + 1) * sizeof **v->dead;

	v->segments[to] = words_segment_ref(old->segments[from]);
	v->dead_count[to] = old->dead_count[from];
	v->dead_len[to] = old->dead_len[from];
	count_in(v, to);
	if (old->dead[from]) {
		v->dead[to] = xmalloc(bytes);
		memcpy(v->dead[to], old->dead[from], bytes);
	}
}

struct words_view *words_view_push(const struct words_view *view, struct words_segment *segment)
{
	size_t old = view ? view->count : 0;
	struct words_view *v = view_alloc(old + 1);

	for (size_t i = 0; i < old; i++)
		carry(v, i, view, i);
	v->segments[old] = words_segment_ref(segment);
	put_over(v, old);
	return v;
}

struct words_view *words_view_replace(const struct words_view *view, size_t first, size_t count,
				      struct words_segment *segment)
{
	struct words_view *v = view_alloc(view->count - count + 1);

	for (size_t i = 0; i < first; i++)
		carry(v, i, view, i);
	v->segments[first] = words_segment_ref(segment);
	count_in(v, first);
	for (size_t i = first + count; i < view->count; i++) {
		const struct words_segment *above = view->segments[i];

		carry(v, i - count + 1, view, i);
		for (uint32_t f = 0; f < above->head->files; f++)
			kill_file(v, first, words_path(above, f));
	}
	return v;
}

struct words_view *words_view_ref(struct words_view *view)
{
	atomic_fetch_add(&view->refs, 1);
	return view;
}

void words_view_unref(struct words_view *view)
{
	if (!view || atomic_fetch_sub(&view->refs, 1) != 1)
		return;
	for (size_t i = 0; i < view->count; i++) {
		words_segment_unref(view->segments[i]);
		free(view->dead[i]);
	}
	free(view->segments);
	free(view->dead);
	free(view->dead_count);
	free(view->dead_len);
	free(view);
}

size_t words_view_count(const struct words_view *view)
{
	return view->count;
}

struct words_segment *words_view_at(const struct words_view *view, size_t i)
{
	return view->segments[i];
}

uint32_t words_view_alive(const struct words_view *view, size_t i)
{
	return view->segments[i]->head->docs - view->dead_count[i];
}

bool words_view_is_whole(const struct words_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		if (!words_segment_is_whole(view->segments[i]))
			return false;
	return true;
}

bool words_view_has(const struct words_view *view, size_t segment, uint32_t doc)
{
	return !words_is_dead(view, segment, doc);
}

bool words_view_file(const struct words_view *view, struct str path, struct str *ret_version)
{
	for (size_t i = view->count; i-- > 0;)
		if (words_segment_file(view->segments[i], path, ret_version))
			return true;
	return false;
}

/* --- merging --- */

struct kept_file {
	struct str path, version;
	size_t source; /* of the view */
	uint32_t file, first;
};

struct merge {
	const struct words_view *view;
	size_t first, count;
	bool oldest;
	const atomic_bool *stop;
	struct words_writer *writer;
	uint32_t **numbers; /* per source: the new number of each document, or WORDS_NONE */
};

static int by_path(const void *a, const void *b)
{
	return str_cmp(((const struct kept_file *)a)->path, ((const struct kept_file *)b)->path);
}

static bool named_above(const struct words_view *v, size_t segment, struct str path)
{
	for (size_t i = segment + 1; i < v->count; i++)
		if (words_file_find(v->segments[i], path) != WORDS_NONE)
			return true;
	return false;
}

/* What stays of the files, with the numbers that their documents get: source by source, in the order they have. */
static struct kept_file *keep_files(struct merge *m, size_t *ret_count)
{
	struct kept_file *kept;
	size_t n = 0, all = 0;
	uint32_t next = 0;

	for (size_t i = 0; i < m->count; i++)
		all += m->view->segments[m->first + i]->head->files;
	kept = xcalloc(all + 1, sizeof *kept);
	for (size_t i = 0; i < m->count; i++) {
		const struct words_segment *s = m->view->segments[m->first + i];
		uint32_t *numbers = m->numbers[i] = xmalloc((s->head->docs + 1) * sizeof *numbers);

		for (uint32_t d = 0; d < s->head->docs; d++)
			numbers[d] = words_is_dead(m->view, m->first + i, d) ? WORDS_NONE : next++;
		for (uint32_t f = 0; f < s->head->files; f++) {
			struct kept_file k = {.source = i, .file = f};

			k.path = words_segment_path(s, f, &k.version);
			if (named_above(m->view, m->first + i, k.path) || (m->oldest && !k.version.len))
				continue;
			k.first = s->files[f].count ? numbers[s->files[f].first] : 0;
			kept[n++] = k;
		}
	}
	qsort(kept, n, sizeof *kept, by_path);
	*ret_count = n;
	return kept;
}

static void merge_docs(struct merge *m)
{
	size_t count;
	struct kept_file *kept = keep_files(m, &count);
	uint32_t **number_of_file = xcalloc(m->count, sizeof *number_of_file);

	for (size_t i = 0; i < m->count; i++)
		number_of_file[i] = xcalloc(m->view->segments[m->first + i]->head->files + 1, sizeof **number_of_file);
	for (size_t f = 0; f < count; f++) {
		const struct words_segment *s = m->view->segments[m->first + kept[f].source];

		words_writer_file(m->writer, kept[f].path, kept[f].version, kept[f].first,
				  s->files[kept[f].file].count);
		number_of_file[kept[f].source][kept[f].file] = (uint32_t)f;
	}
	for (size_t i = 0; i < m->count; i++) {
		const struct words_segment *s = m->view->segments[m->first + i];

		for (uint32_t d = 0; d < s->head->docs; d++) {
			struct words_row row = s->rows[d];

			if (m->numbers[i][d] == WORDS_NONE)
				continue;
			row.file = number_of_file[i][row.file];
			words_writer_doc(m->writer, &row, s->lens[d], str_n(s->texts + row.text_at, row.text_len));
		}
		free(number_of_file[i]);
	}
	words_writer_docs_done(m->writer);
	free(number_of_file);
	free(kept);
}

static void merge_list(struct merge *m, size_t source, uint32_t term)
{
	const struct words_segment *s = m->view->segments[m->first + source];
	const struct words_term *t = &s->terms[term];
	const unsigned char *end = s->places + s->head->len[WORDS_PLACES];
	uint32_t docs[WORDS_BLOCK], freqs[WORDS_BLOCK];

	for (uint32_t b = t->block; b < t->block + words_block_count(t); b++) {
		uint32_t n = words_block_read(s, b, words_block_base(s, t, b), docs, freqs);
		const unsigned char *at = s->places + s->blocks[b].places;

		for (uint32_t i = 0; i < n; i++) {
			const unsigned char *from = at;

			for (uint32_t left = words_varint(&at, end); left && at < end; left--)
				words_varint(&at, end);
			if (docs[i] < s->head->docs && m->numbers[source][docs[i]] != WORDS_NONE && freqs[i])
				words_writer_posting(m->writer, m->numbers[source][docs[i]], freqs[i],
						     str_n(from, (size_t)(at - from)));
		}
	}
}

/* The least spelling that any source has next. */
static bool next_term(const struct merge *m, const uint32_t *at, struct str *ret)
{
	bool any = false;

	for (size_t i = 0; i < m->count; i++) {
		const struct words_segment *s = m->view->segments[m->first + i];
		struct str term;

		if (at[i] == s->head->terms)
			continue;
		term = words_term_str(s, at[i]);
		if (!any || str_cmp(term, *ret) < 0)
			*ret = term;
		any = true;
	}
	return any;
}

static bool merge_terms(struct merge *m)
{
	uint32_t *at = xcalloc(m->count, sizeof *at);
	struct str term;
	bool whole = true;

	for (uint32_t n = 0; whole && next_term(m, at, &term); n++) {
		words_writer_term(m->writer, term);
		for (size_t i = 0; i < m->count; i++) {
			const struct words_segment *s = m->view->segments[m->first + i];

			if (at[i] < s->head->terms && str_eq(words_term_str(s, at[i]), term))
				merge_list(m, i, at[i]++);
		}
		whole = n % 256 || !m->stop || !atomic_load(m->stop);
	}
	free(at);
	return whole;
}

int words_merge(const struct words_view *view, size_t first, size_t count, bool oldest, const atomic_bool *stop,
		struct words_segment **ret, struct err *err)
{
	struct merge m = {.view = view, .first = first, .count = count, .oldest = oldest, .stop = stop};
	bool whole;

	m.writer = words_writer_new();
	m.numbers = xcalloc(count + 1, sizeof *m.numbers);
	merge_docs(&m);
	whole = merge_terms(&m);
	for (size_t i = 0; i < count; i++)
		free(m.numbers[i]);
	free(m.numbers);
	*ret = words_writer_finish(m.writer);
	if (!*ret)
		return err_set(err, ERR_CORRUPT, "merge the search index: one of its segments is inconsistent");
	if (whole)
		return 0;
	words_segment_unref(*ret);
	return err_set(err, ERR_CANCELLED, "merge the search index: it is being closed");
}
