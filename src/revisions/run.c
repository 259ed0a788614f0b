/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the index: run.h says what is in them. Numbers are in the byte order of the machine. */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/run_internal.h"

#define READ_BLOCKS 256
#define MERGE_RATIO 16

static const char magic[16] = "stead-index-1\n";

struct wpath run_path_of(struct arena *arena, uint64_t first, uint64_t last)
{
	return (struct wpath){
		arena_printf(arena, "index/%016llu-%016llu", (unsigned long long)first, (unsigned long long)last)};
}

uint64_t run_entry_blocks(const struct run_header *h)
{
	return (h->head.last - h->head.first) / PER_BLOCK + 1;
}

uint64_t run_mark_blocks(const struct run_header *h)
{
	return (h->mark_bytes + PAYLOAD - 1) / PAYLOAD;
}

uint64_t run_bucket_of(uint64_t hash, uint64_t buckets)
{
	return (uint64_t)(((unsigned __int128)hash * buckets) >> 64);
}

/* --- writing --- */

static uint64_t block_sum(const char *payload, uint64_t block, uint64_t first)
{
	return hash_u64(str_n(payload, PAYLOAD), block * UINT64_C(0x9e3779b97f4a7c15) ^ first);
}

/* The payload of the next block, zeroed. */
static char *block_new(struct buf *out)
{
	char *p = buf_reserve(out, RUN_BLOCK);

	if (!p)
		return NULL;
	memset(p, 0, RUN_BLOCK);
	out->len += RUN_BLOCK;
	return p + 8;
}

void run_seal(char *block, uint64_t number, uint64_t first)
{
	uint64_t sum = block_sum(block + 8, number, first);

	memcpy(block, &sum, 8);
}

static int path_cmp(const void *a, const void *b)
{
	const struct run_path *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->last < y->last ? -1 : x->last > y->last;
}

bool run_put_path(char *payload, const struct run_path *p)
{
	uint16_t used;
	char *at;

	memcpy(&used, payload, 2);
	if (used + run_path_size(p) > PATH_ROOM) {
		payload[2] = 1;
		return false;
	}
	at = payload + 4 + used;
	memcpy(at, &p->hash, 8);
	memcpy(at + 8, &p->last, 8);
	at[16] = (char)p->version_len;
	memcpy(at + PATH_FIXED, p->version, p->version_len);
	used = (uint16_t)(used + run_path_size(p));
	memcpy(payload, &used, 2);
	return true;
}

/* Each path goes into the block of its hash, or into the next one that has room; then the blocks on the way there say
   that the search continues after them: all of them were full when they were left. */
static void write_paths(struct buf *out, const struct run_build *b, struct run_header *h)
{
	size_t start = out->len;
	uint64_t block = 0;

	for (uint64_t i = 0; i < h->buckets; i++)
		block_new(out);
	h->path_blocks = h->buckets;
	for (size_t i = 0; i < b->path_count && !out->overflow; i++) {
		const struct run_path *p = &b->paths[i];
		uint64_t bucket = run_bucket_of(p->hash, h->buckets);

		if (bucket > block)
			block = bucket;
		while (!run_put_path(out->ptr + start + block * RUN_BLOCK + 8, p)) {
			block++;
			if (block == h->path_blocks && block_new(out))
				h->path_blocks++;
			if (out->overflow)
				break;
		}
	}
}

static void write_entries(struct buf *out, const struct run_build *b)
{
	uint64_t count = b->head.last - b->head.first + 1;

	for (uint64_t i = 0; i < count; i += PER_BLOCK) {
		char *payload = block_new(out);
		uint64_t n = count - i < PER_BLOCK ? count - i : PER_BLOCK;

		if (payload)
			memcpy(payload, b->entries + i, n * sizeof(struct run_entry));
	}
}

void run_put_marks(struct buf *out, const struct rev_checkpoint *marks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct rev_checkpoint *c = &marks[i];
		uint16_t len = (uint16_t)c->name.len;

		buf_add(out, str_n((const char *)&c->number, 8));
		buf_add(out, str_n((const char *)&c->time_ns, 8));
		buf_add(out, str_n((const char *)&len, 2));
		buf_add(out, str_n(c->name.ptr, len));
	}
}

static void write_marks(struct buf *out, const struct run_build *b, struct run_header *h)
{
	struct buf marks;

	buf_init(&marks, NULL, 256 * MIB);
	run_put_marks(&marks, b->checkpoints, b->checkpoint_count);
	h->mark_bytes = marks.len;
	for (size_t at = 0; at < marks.len; at += PAYLOAD) {
		char *payload = block_new(out);
		size_t n = marks.len - at < PAYLOAD ? marks.len - at : PAYLOAD;

		if (payload)
			memcpy(payload, marks.ptr + at, n);
	}
	buf_release(&marks);
}

struct run_header run_header_new(const struct run_head *head)
{
	struct run_header h = {.order = 0x01020304, .entry_size = sizeof(struct run_entry), .head = *head};

	memcpy(h.magic, magic, sizeof(magic));
	return h;
}

int run_write(struct store *store, struct ctx *ctx, struct run_build *b, struct err *err)
{
	struct run_header h = run_header_new(&b->head);
	struct store_cond any = {0};
	size_t bytes = 0;
	struct buf out;
	int r;

	for (size_t i = 0; i < b->path_count; i++)
		bytes += run_path_size(&b->paths[i]);
	if (b->path_count)
		qsort(b->paths, b->path_count, sizeof(*b->paths), path_cmp);
	h.buckets = bytes / PATH_FULL + 1;
	h.path_count = b->path_count;
	buf_init(&out, NULL, (size_t)4 * 1024 * MIB);
	block_new(&out);
	write_entries(&out, b);
	write_paths(&out, b, &h);
	write_marks(&out, b, &h);
	if (out.overflow) {
		buf_release(&out);
		return err_set(err, ERR_TOO_LARGE, "the index of the log would be too large");
	}
	memcpy(out.ptr + 8, &h, sizeof(h));
	for (size_t at = 0; at < out.len; at += RUN_BLOCK)
		run_seal(out.ptr + at, at / RUN_BLOCK, b->head.first);
	r = store_write(store, ctx, run_path_of(ctx->arena, b->head.first, b->head.last), buf_str(&out), any, NULL,
			err);
	buf_release(&out);
	return r;
}

/* --- reading --- */

static int bad_run(const struct run *run, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the index of revisions %llu to %llu is damaged",
		       (unsigned long long)run->h.head.first, (unsigned long long)run->h.head.last);
}

/* Blocks from the file, checked, into `arena`. */
static int read_blocks(struct run *run, struct ctx *ctx, struct arena *arena, uint64_t block, uint64_t count,
		       const char **ret, struct err *err)
{
	struct ctx c = *ctx;
	struct str bytes;
	int r;

	c.arena = arena;
	r = store_read(run->store, &c, run_path_of(arena, run->h.head.first, run->h.head.last),
		       (struct store_range){block * RUN_BLOCK, count * RUN_BLOCK}, count * RUN_BLOCK, &bytes, NULL,
		       err);
	if (r)
		return r == -ERR_NOT_FOUND ? bad_run(run, err) : r;
	if (bytes.len != count * RUN_BLOCK)
		return bad_run(run, err);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t sum;

		memcpy(&sum, bytes.ptr + i * RUN_BLOCK, 8);
		if (sum != block_sum(bytes.ptr + i * RUN_BLOCK + 8, block + i, run->h.head.first))
			return bad_run(run, err);
	}
	*ret = bytes.ptr;
	return 0;
}

static uint64_t block_count(const struct run_header *h)
{
	return 1 + run_entry_blocks(h) + h->path_blocks + run_mark_blocks(h);
}

static void drop_stretches(struct run *run)
{
	for (uint64_t i = 0; run->stretches && i <= block_count(&run->h) / STRETCH; i++)
		free(run->stretches[i]);
	free(run->stretches);
	run->stretches = NULL;
	run->stretch_count = 0;
}

/* The block from its stretch, which is read if it was not. */
static int stretch_block(struct run *run, struct ctx *ctx, uint64_t block, const char **ret, struct err *err)
{
	uint64_t at = block / STRETCH, first = at * STRETCH, count = block_count(&run->h) - first;

	if (run->stretches && !run->stretches[at] && run->stretch_count == STRETCHES_MAX)
		drop_stretches(run);
	if (!run->stretches)
		run->stretches = xcalloc(block_count(&run->h) / STRETCH + 1, sizeof(*run->stretches));
	if (!run->stretches[at]) {
		ARENA_SCOPE struct arena *arena = arena_new();
		const char *bytes;
		int r;

		count = count < STRETCH ? count : STRETCH;
		r = read_blocks(run, ctx, arena, first, count, &bytes, err);
		if (r)
			return r;
		run->stretches[at] = xmalloc(count * RUN_BLOCK);
		memcpy(run->stretches[at], bytes, count * RUN_BLOCK);
		run->stretch_count++;
	}
	*ret = run->stretches[at] + (block - first) * RUN_BLOCK + 8;
	return 0;
}

/* Where the block is in the cache, or is to be. A group of many paths asks for blocks all over the run: to open the
   file again for each of them cost more than the rest of the look at a path. */
static struct run_cached *cached_at(struct run *run, uint64_t block)
{
	if (!run->large && run->misses == MISSES_MANY && store_is_local(run->store)) {
		run->large = xcalloc(BLOCKS_MAX, sizeof(*run->large));
		run->grown_ns = clock_monotonic_ns();
	}
	return run->large ? &run->large[block % BLOCKS_MAX] : &run->cache[block % BLOCK_CACHE];
}

bool run_may_shrink(const struct run *run)
{
	return run->large && clock_monotonic_ns() - run->grown_ns > GROWN_NS;
}

void run_shrink(struct run *run)
{
	for (size_t i = 0; run->large && i < BLOCKS_MAX; i++)
		free(run->large[i].bytes);
	free(run->large);
	run->large = NULL;
	run->misses = 0;
}

int run_block(struct run *run, struct ctx *ctx, uint64_t block, const char **ret, struct err *err)
{
	struct run_cached *c = cached_at(run, block);
	const char *bytes;
	int r;

	if (c->block != block && run->misses >= BLOCK_CACHE && block < block_count(&run->h) &&
	    !store_is_local(run->store))
		return stretch_block(run, ctx, block, ret, err);
	if (c->block != block) {
		ARENA_SCOPE struct arena *arena = arena_new();

		c->block = 0;
		run->misses += run->misses < MISSES_MANY;
		r = read_blocks(run, ctx, arena, block, 1, &bytes, err);
		if (r)
			return r;
		if (!c->bytes)
			c->bytes = xmalloc(PAYLOAD);
		memcpy(c->bytes, bytes + 8, PAYLOAD);
		c->block = block;
	}
	*ret = c->bytes;
	return 0;
}

struct run *run_open(struct store *store, struct ctx *ctx, uint64_t first, uint64_t last)
{
	struct run *run = xcalloc(1, sizeof(*run));
	struct run_header *h = &run->h;
	const char *bytes;
	struct err ignored;

	run->store = store;
	run->h.head.first = first;
	run->h.head.last = last;
	{
		ARENA_SCOPE struct arena *arena = arena_new();

		if (read_blocks(run, ctx, arena, 0, 1, &bytes, &ignored) == 0) {
			memcpy(h, bytes + 8, sizeof(*h));
			if (memcmp(h->magic, magic, sizeof(magic)) == 0 && h->order == 0x01020304 &&
			    h->entry_size == sizeof(struct run_entry) && h->head.first == first && h->head.last == last)
				return run;
		}
	}
	free(run);
	return NULL;
}

void run_close(struct run *run)
{
	for (size_t i = 0; i < BLOCK_CACHE; i++)
		free(run->cache[i].bytes);
	run_shrink(run);
	drop_stretches(run);
	free(run);
}

const struct run_head *run_head(const struct run *run)
{
	return &run->h.head;
}

int run_entry(struct run *run, struct ctx *ctx, uint64_t number, struct run_entry *ret, struct err *err)
{
	uint64_t i = number - run->h.head.first;
	const char *payload;
	int r = run_block(run, ctx, 1 + i / PER_BLOCK, &payload, err);

	if (r == 0)
		memcpy(ret, payload + i % PER_BLOCK * sizeof(struct run_entry), sizeof(*ret));
	return r;
}

size_t run_get_path(const char *payload, size_t at, struct run_path *ret)
{
	uint16_t used;

	memcpy(&used, payload, 2);
	if (used > PATH_ROOM || at + PATH_FIXED > used)
		return 0;
	payload += 4 + at;
	memcpy(&ret->hash, payload, 8);
	memcpy(&ret->last, payload + 8, 8);
	ret->version_len = (uint8_t)payload[16];
	if (ret->version_len > RUN_VERSION_MAX || at + PATH_FIXED + ret->version_len > used)
		return 0;
	memcpy(ret->version, payload + PATH_FIXED, ret->version_len);
	return PATH_FIXED + (size_t)ret->version_len;
}

int run_lookup(struct run *run, struct ctx *ctx, uint64_t hash,
	       int (*found)(void *arg, const struct run_path *path, struct err *err), void *arg, struct err *err)
{
	uint64_t begin = 1 + run_entry_blocks(&run->h);
	struct run_path match[8];
	const char *payload;

	for (uint64_t b = run_bucket_of(hash, run->h.buckets); b < run->h.path_blocks; b++) {
		size_t at = 0, n, count = 0;
		bool goes_on;
		int r = run_block(run, ctx, begin + b, &payload, err);

		if (r)
			return r;
		while (count < 8 && (n = run_get_path(payload, at, &match[count])) > 0) {
			count += match[count].hash == hash;
			at += n;
		}
		goes_on = payload[2] != 0; /* `found` may read other blocks */
		for (size_t i = 0; i < count; i++) {
			r = found(arg, &match[i], err);
			if (r)
				return r;
		}
		if (!goes_on)
			break;
	}
	return 0;
}

int run_each_path(struct run *run, struct ctx *ctx, void (*each)(void *arg, const struct run_path *path), void *arg,
		  struct err *err)
{
	uint64_t begin = 1 + run_entry_blocks(&run->h), blocks = run->h.path_blocks;

	for (uint64_t b = 0; b < blocks; b += READ_BLOCKS) {
		ARENA_SCOPE struct arena *arena = arena_new();
		uint64_t n = blocks - b < READ_BLOCKS ? blocks - b : READ_BLOCKS;
		const char *bytes = NULL;
		int r = read_blocks(run, ctx, arena, begin + b, n, &bytes, err);

		if (r)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			const char *payload = bytes + i * RUN_BLOCK + 8;
			size_t at = 0, size;
			struct run_path p;

			for (; (size = run_get_path(payload, at, &p)) > 0; at += size)
				each(arg, &p);
		}
	}
	return 0;
}

struct path_list {
	struct run_path *at;
	size_t count, cap;
};

static void list_path(void *arg, const struct run_path *path)
{
	struct path_list *list = arg;

	HEAP_ROOM(list->at, list->count, list->cap);
	list->at[list->count++] = *path;
}

int run_paths(struct run *run, struct ctx *ctx, struct run_path **ret, size_t *ret_count, struct err *err)
{
	struct path_list list = {0};
	int r = run_each_path(run, ctx, list_path, &list, err);

	if (r) {
		free(list.at);
		return r;
	}
	*ret = list.at;
	*ret_count = list.count;
	return 0;
}

int run_checkpoints(struct run *run, struct ctx *ctx, struct rev_checkpoint **ret, size_t *ret_count, struct err *err)
{
	uint64_t begin = 1 + run_entry_blocks(&run->h) + run->h.path_blocks;
	struct rev_checkpoint *list = NULL;
	size_t count = 0, cap = 0;
	struct buf all;

	buf_init(&all, ctx->arena, (size_t)run->h.mark_bytes + PAYLOAD + 1);
	for (uint64_t b = 0; b < run_mark_blocks(&run->h); b++) {
		const char *payload;
		int r = run_block(run, ctx, begin + b, &payload, err);

		if (r)
			return r;
		buf_add(&all, str_n(payload, PAYLOAD));
	}
	for (size_t at = 0; at + 18 <= run->h.mark_bytes;) {
		struct rev_checkpoint c;
		uint16_t len;

		memcpy(&c.number, all.ptr + at, 8);
		memcpy(&c.time_ns, all.ptr + at + 8, 8);
		memcpy(&len, all.ptr + at + 16, 2);
		at += 18;
		if (len > run->h.mark_bytes - at)
			return bad_run(run, err);
		c.name = str_n(all.ptr + at, len);
		at += len;
		ARENA_ROOM(ctx->arena, list, count, cap);
		list[count++] = c;
	}
	*ret = list;
	*ret_count = count;
	return 0;
}

/* --- all runs --- */

struct range {
	uint64_t first, last;
	bool bad; /* it cannot be opened */
};

static int range_cmp(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last > y->last ? -1 : x->last < y->last; /* the longest one first */
}

static void add_ranges(struct ctx *ctx, const struct store_page *page, struct range **list, size_t *count, size_t *cap)
{
	for (size_t i = 0; i < page->count; i++) {
		struct str path = page->entries[i].path.s, name = str_from(path, 6);
		int64_t first, last;

		if (!str_starts(path, STR("index/")) || name.len != 33 || name.ptr[16] != '-' ||
		    !str_to_i64(str_first(name, 16), &first) || !str_to_i64(str_from(name, 17), &last) || first <= 0 ||
		    last < first)
			continue;
		ARENA_ROOM(ctx->arena, *list, *count, *cap);
		(*list)[(*count)++] = (struct range){(uint64_t)first, (uint64_t)last, false};
	}
}

static int list_ranges(struct store *store, struct ctx *ctx, const struct store_page *names, struct range **ret,
		       size_t *ret_count, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .never_file = true};
	size_t cap = 0, count = 0;
	struct range *list = NULL;
	struct store_page page = {0};

	*ret = NULL;
	*ret_count = 0;
	if (names)
		add_ranges(ctx, names, &list, &count, &cap);
	while (!names) {
		int r = store_list(store, ctx, (struct wpath){STR("index")}, &req, &page, err);

		if (r)
			return r == -ERR_NOT_FOUND ? 0 : r;
		add_ranges(ctx, &page, &list, &count, &cap);
		req.after = page.next;
		if (!page.next.ptr)
			break;
	}
	if (count)
		qsort(list, count, sizeof(*list), range_cmp);
	*ret = list;
	*ret_count = count;
	return 0;
}

/* The run that continues at `next` and goes farthest; `count`: there is none. */
static size_t farthest(const struct range *list, size_t count, uint64_t next)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (!list[i].bad && list[i].first <= next && list[i].last >= next &&
		    (best == count || list[i].last > list[best].last))
			best = i;
	return best;
}

/* Runs of several processes may overlap. What they say is the same, so that does not matter. */
int runs_open(struct store *store, struct ctx *ctx, const struct store_page *names, struct run *ret_runs[RUN_MAX],
	      size_t *ret_count, struct err *err)
{
	struct range *list;
	uint64_t next;
	size_t count, i;
	int r = list_ranges(store, ctx, names, &list, &count, err);

	*ret_count = 0;
	if (r || count == 0)
		return r;
	for (next = list[0].first; (i = farthest(list, count, next)) < count && *ret_count < RUN_MAX;) {
		ret_runs[*ret_count] = run_open(store, ctx, list[i].first, list[i].last);
		list[i].bad = !ret_runs[*ret_count];
		if (list[i].bad)
			continue;
		(*ret_count)++;
		next = list[i].last + 1;
	}
	for (i = 0; i < count; i++) {
		bool spare = list[i].bad;

		for (size_t k = 0; k < *ret_count && !spare; k++) {
			const struct run_head *h = run_head(ret_runs[k]);

			spare = h->first <= list[i].first && h->last >= list[i].last &&
				h->last - h->first > list[i].last - list[i].first;
		}
		if (spare)
			run_remove(store, ctx, list[i].first, list[i].last);
	}
	return 0;
}

size_t runs_to_merge(struct run *const *runs, size_t count)
{
	uint64_t after = 0;
	size_t i = count;

	/* From the newest on: a run is merged with those after it when they have grown to a part of it. */
	while (i > 0) {
		const struct run_head *h = &runs[i - 1]->h.head;
		uint64_t size = h->last - h->first + 1;

		if (after && size > after * MERGE_RATIO)
			break;
		after += size;
		i--;
	}
	return i + 1 < count ? i : count;
}

void run_remove(struct store *store, struct ctx *ctx, uint64_t first, uint64_t last)
{
	struct store_cond any = {0};
	struct err ignored;

	store_remove(store, ctx, run_path_of(ctx->arena, first, last), false, any, NULL, &ignored);
}

void runs_remove_all(struct store *store, struct ctx *ctx)
{
	struct store_cond any = {0};
	struct err ignored;

	store_remove(store, ctx, (struct wpath){STR("index")}, true, any, NULL, &ignored);
}
