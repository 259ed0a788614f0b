/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a segment. It is checked once, when it is opened: the checksum finds what a disk or a cut-off write did, and
 * every offset is compared with its section, so that later readers need no checks and even a file that was made up does
 * no harm. That costs a pass over the terms, not over the postings.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "index/words_format.h"
#include "index/words_pack.h"

/* --- checking --- */

static int damaged(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the search index is damaged (%s); it will be rebuilt", what);
}

static bool check_head(const struct words_head *h, size_t size)
{
	static const struct {
		enum words_section section;
		size_t one, count_at;
	} fixed[] = {
		{WORDS_FILES, sizeof(struct words_file), offsetof(struct words_head, files)},
		{WORDS_DOCS, sizeof(struct words_row), offsetof(struct words_head, docs)},
		{WORDS_LENS, sizeof(uint32_t), offsetof(struct words_head, docs)},
		{WORDS_TERMS, sizeof(struct words_term), offsetof(struct words_head, terms)},
		{WORDS_BLOCKS, sizeof(struct words_block), offsetof(struct words_head, blocks)},
	};
	uint64_t table = h->len[WORDS_TABLE] / sizeof(uint32_t);

	if (memcmp(h->magic, WORDS_MAGIC, 8) != 0 || h->size != size)
		return false;
	for (size_t i = 0; i < WORDS_SECTIONS; i++)
		if (h->at[i] % 16 || h->at[i] < sizeof *h || h->at[i] > size || h->len[i] > size - h->at[i] ||
		    size - h->at[i] - h->len[i] < 16 || (i && h->at[i] < h->at[i - 1] + h->len[i - 1]))
			return false;
	for (size_t i = 0; i < COUNT(fixed); i++) {
		uint32_t count;

		memcpy(&count, (const char *)h + fixed[i].count_at, sizeof count);
		if (h->len[fixed[i].section] != (uint64_t)count * fixed[i].one)
			return false;
	}
	return table >= 16 && (table & (table - 1)) == 0 && table > h->terms && isfinite(h->average) &&
	       h->average > 0 && isfinite(h->boost_max) && h->boost_max >= 1 && h->docs < INT32_MAX;
}

static bool check_rows(const struct words_segment *s)
{
	const struct words_head *h = s->head;

	for (uint32_t i = 0; i < h->files; i++) {
		const struct words_file *f = &s->files[i];

		if ((uint64_t)f->path_at + f->path_len > h->len[WORDS_NAMES] ||
		    (uint64_t)f->version_at + f->version_len > h->len[WORDS_NAMES] ||
		    (uint64_t)f->first + f->count > h->docs)
			return false;
	}
	for (uint32_t i = 0; i < h->docs; i++) {
		const struct words_row *r = &s->rows[i];

		if (r->file >= h->files || r->text_at > h->len[WORDS_TEXTS] ||
		    r->text_len > h->len[WORDS_TEXTS] - r->text_at || !(r->boost >= 1) ||
		    (double)r->boost > h->boost_max)
			return false;
	}
	return true;
}

static bool check_block(const struct words_segment *s, uint32_t number, uint32_t count)
{
	const struct words_head *h = s->head;
	const struct words_block *b = &s->blocks[number];
	uint64_t need = count == WORDS_BLOCK ? (uint64_t)16 * ((unsigned)b->doc_bits + b->freq_bits) : 0;

	return b->count == count && b->doc_bits <= 32 && b->freq_bits <= 32 && b->last < h->docs &&
	       b->postings <= h->len[WORDS_POSTINGS] && need <= h->len[WORDS_POSTINGS] - b->postings &&
	       b->places <= h->len[WORDS_PLACES] && b->least >= 0;
}

static bool check_terms(const struct words_segment *s)
{
	const struct words_head *h = s->head;

	for (uint32_t i = 0; i < h->terms; i++) {
		const struct words_term *t = &s->terms[i];
		uint32_t blocks = words_block_count(t);

		if ((uint64_t)t->at + t->len > h->len[WORDS_SPELLINGS] || t->docs == 0 || t->docs > h->docs ||
		    (uint64_t)t->block + blocks > h->blocks || !(t->least >= 0))
			return false;
		for (uint32_t b = 0; b < blocks; b++)
			if (!check_block(s, t->block + b,
					 b + 1 < blocks ? WORDS_BLOCK : t->docs - (blocks - 1) * WORDS_BLOCK))
				return false;
	}
	for (size_t i = 0; i <= s->table_mask; i++)
		if (s->table[i] > h->terms)
			return false;
	return true;
}

int words_segment_take(void *bytes, size_t size, bool mapped, struct words_segment **ret, struct err *err)
{
	const struct words_head *h = bytes;
	const unsigned char *b = bytes;
	struct words_segment s = {.refs = 1, .bytes = bytes, .size = size, .mapped = mapped, .head = h};

	if (size < sizeof *h || !check_head(h, size))
		return damaged("its head", err);
	if (hash_u64(str_n(b + 16, h->at[WORDS_TEXTS] - 16), 0) != h->sum)
		return damaged("its checksum", err);
	s.files = (const void *)(b + h->at[WORDS_FILES]);
	s.names = (const char *)b + h->at[WORDS_NAMES];
	s.rows = (const void *)(b + h->at[WORDS_DOCS]);
	s.lens = (const void *)(b + h->at[WORDS_LENS]);
	s.terms = (const void *)(b + h->at[WORDS_TERMS]);
	s.spellings = (const char *)b + h->at[WORDS_SPELLINGS];
	s.table = (const void *)(b + h->at[WORDS_TABLE]);
	s.table_mask = h->len[WORDS_TABLE] / sizeof(uint32_t) - 1;
	s.blocks = (const void *)(b + h->at[WORDS_BLOCKS]);
	s.postings = b + h->at[WORDS_POSTINGS];
	s.places = b + h->at[WORDS_PLACES];
	s.texts = b + h->at[WORDS_TEXTS];
	if (!check_rows(&s) || !check_terms(&s))
		return damaged("its tables", err);
	*ret = xmalloc(sizeof s);
	memcpy(*ret, &s, sizeof s);
	return 0;
}

/* --- files --- */

int words_segment_open(const char *path, struct words_segment **ret, struct err *err)
{
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	void *bytes;
	int r;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "open the search index");
	if (st.st_size < (off_t)sizeof(struct words_head))
		return damaged("a file is too short", err);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(err, errno, "map the search index");
	r = words_segment_take(bytes, (size_t)st.st_size, true, ret, err);
	if (r)
		munmap(bytes, (size_t)st.st_size);
	return r;
}

/* The kernel reads the last byte for us: where the file no longer reaches that far, it says so instead of ending the
   process. A file that is cut off loses its end first. */
bool words_segment_is_whole(const struct words_segment *segment)
{
	static _Atomic int probe = -1;
	int fd = atomic_load(&probe), none = -1;

	if (!segment->mapped)
		return true;
	if (fd < 0) {
		fd = memfd_create("stead-probe", MFD_CLOEXEC);
		if (fd >= 0 && !atomic_compare_exchange_strong(&probe, &none, fd)) {
			close(fd);
			fd = none;
		}
	}
	return fd < 0 || pwrite(fd, segment->bytes + segment->size - 1, 1, 0) == 1 || errno != EFAULT;
}

int words_segment_parse(struct str bytes, struct words_segment **ret, struct err *err)
{
	void *copy = xmalloc(bytes.len + 16);
	int r;

	if (bytes.len)
		memcpy(copy, bytes.ptr, bytes.len);
	r = words_segment_take(copy, bytes.len, false, ret, err);
	if (r)
		free(copy);
	return r;
}

int words_segment_save(const struct words_segment *segment, const char *path, struct err *err)
{
	FD_SCOPE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	size_t done = 0;

	if (fd < 0)
		return err_sys(err, errno, "create a file of the search index");
	while (done < segment->size) {
		ssize_t n = write(fd, segment->bytes + done, segment->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int sys = n < 0 ? errno : EIO;

			unlink(path);
			return err_sys(err, sys, "write a file of the search index");
		}
		done += (size_t)n;
	}
	return 0;
}

struct words_segment *words_segment_ref(struct words_segment *segment)
{
	atomic_fetch_add(&segment->refs, 1);
	return segment;
}

void words_segment_unref(struct words_segment *segment)
{
	void *bytes;

	if (!segment || atomic_fetch_sub(&segment->refs, 1) != 1)
		return;
	memcpy(&bytes, &segment->bytes, sizeof bytes);
	if (segment->mapped)
		munmap(bytes, segment->size);
	else
		free(bytes);
	free(segment);
}

uint32_t words_segment_docs(const struct words_segment *segment)
{
	return segment->head->docs;
}

size_t words_segment_bytes(const struct words_segment *segment)
{
	return segment->size;
}

uint32_t words_segment_files(const struct words_segment *segment)
{
	return segment->head->files;
}

struct str words_segment_path(const struct words_segment *segment, uint32_t file, struct str *ret_version)
{
	*ret_version = str_n(segment->names + segment->files[file].version_at, segment->files[file].version_len);
	return words_path(segment, file);
}

uint32_t words_file_find(const struct words_segment *s, struct str path)
{
	uint32_t low = 0, high = s->head->files;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = str_cmp(words_path(s, mid), path);

		if (c == 0)
			return mid;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return WORDS_NONE;
}

bool words_segment_file(const struct words_segment *segment, struct str path, struct str *ret_version)
{
	uint32_t file = words_file_find(segment, path);

	if (file != WORDS_NONE)
		words_segment_path(segment, file, ret_version);
	return file != WORDS_NONE;
}

/* --- terms and postings --- */

uint32_t words_term_find(const struct words_segment *s, struct str term)
{
	size_t at = hash_u64(term, 0) & s->table_mask;

	for (size_t tries = 0; s->table[at] && tries <= s->table_mask; tries++, at = (at + 1) & s->table_mask)
		if (str_eq(words_term_str(s, s->table[at] - 1), term))
			return s->table[at] - 1;
	return WORDS_NONE;
}

uint32_t words_block_read(const struct words_segment *s, uint32_t block, uint32_t base, uint32_t *docs, uint32_t *freqs)
{
	const struct words_block *b = &s->blocks[block];
	const unsigned char *at = s->postings + b->postings, *end = s->postings + s->head->len[WORDS_POSTINGS];

	if (b->count == WORDS_BLOCK) {
		words_unpack(at, b->doc_bits, docs, 1, base + 1);
		if (freqs)
			words_unpack(at + (size_t)16 * b->doc_bits, b->freq_bits, freqs, 0, 0);
		return WORDS_BLOCK;
	}
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t freq;

		base += words_varint(&at, end) + 1;
		docs[i] = base;
		freq = words_varint(&at, end);
		if (freqs)
			freqs[i] = freq;
	}
	return b->count;
}

/* --- documents --- */

uint64_t words_tag_bit(struct str tag)
{
	return UINT64_C(1) << (hash_u64(tag, 1) & 63);
}

uint32_t words_word_hash(struct str s)
{
	return s.len ? (uint32_t)hash_u64(s, 2) | 1 : 0;
}

static void put_str(struct buf *buf, struct str s)
{
	words_put_varint(buf, (uint32_t)s.len);
	buf_add(buf, s);
}

void words_pack_text(struct buf *buf, const struct words_doc *doc)
{
	put_str(buf, doc->id);
	put_str(buf, doc->title);
	put_str(buf, doc->kind);
	put_str(buf, doc->author);
	words_put_varint(buf, (uint32_t)doc->tag_count);
	for (size_t i = 0; i < doc->tag_count; i++)
		put_str(buf, doc->tags[i]);
	put_str(buf, doc->body);
}

static struct str get_str(const unsigned char **at, const unsigned char *end)
{
	uint32_t len = words_varint(at, end);
	struct str s = str_n(*at, (size_t)(end - *at) < len ? (size_t)(end - *at) : len);

	*at += s.len;
	return s;
}

bool words_unpack_text(struct str text, struct arena *arena, struct words_doc *ret)
{
	const unsigned char *at = (const unsigned char *)text.ptr, *end = at + text.len;
	struct str *tags;

	ret->id = get_str(&at, end);
	ret->title = get_str(&at, end);
	ret->kind = get_str(&at, end);
	ret->author = get_str(&at, end);
	ret->tag_count = words_varint(&at, end);
	if (ret->tag_count > (size_t)(end - at))
		return false;
	tags = ARENA_ARRAY(arena, struct str, ret->tag_count);
	for (size_t i = 0; i < ret->tag_count; i++)
		tags[i] = get_str(&at, end);
	ret->tags = tags;
	ret->body = get_str(&at, end);
	return true;
}

struct words_row words_row_of(const struct words_doc *doc)
{
	double credit = doc->credit > 0 ? doc->credit : 0;
	struct words_row row = {.time_ns = doc->time_ns,
				.kind = words_word_hash(doc->kind),
				.author = words_word_hash(doc->author),
				.boost = (float)(1 + log1p(credit < 1e9 ? credit : 1e9) / 10),
				.area = (uint8_t)doc->area,
				.archived = doc->archived};

	for (size_t i = 0; i < doc->tag_count; i++)
		row.tags |= words_tag_bit(doc->tags[i]);
	return row;
}

static bool row_text(const struct words_segment *s, const struct words_row *row, struct str *ret)
{
	*ret = str_n(s->texts + row->text_at, row->text_len);
	return (uint32_t)hash_u64(*ret, 0) == row->text_sum;
}

void words_doc_of(const struct words_view *view, const struct words_hit *hit, struct arena *arena,
		  struct words_doc *ret, struct str *ret_path)
{
	const struct words_segment *s = view->segments[hit->segment];
	const struct words_row *row = &s->rows[hit->doc];
	struct str text;

	*ret = (struct words_doc){0};
	if (!row_text(s, row, &text) || !words_unpack_text(text, arena, ret))
		*ret = (struct words_doc){0};
	ret->time_ns = row->time_ns;
	ret->area = row->area;
	ret->archived = row->archived;
	*ret_path = words_path(s, row->file);
}
