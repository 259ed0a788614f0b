/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging runs. The new run is made block by block while it is written, from the blocks of the old ones: entries follow
 * each other by number, and the paths of each run are in the order of their hashes. Its header says how many blocks of
 * paths follow, so the paths are gone through before: once for their number and size, once for the blocks that they
 * need. The whole run in memory was simpler, and took 200 MB for a million revisions.
 */
#include "base/limits.h"
#include "revisions/run_internal.h"

#define SAME_HASH_MAX 256 /* paths with one hash; more are a damaged run */

/* Where reading the paths of a run is. */
struct path_cursor {
	uint64_t block; /* of its paths */
	size_t at;      /* in the block */
	struct run_path path;
	bool has;
};

/* The paths of all runs in order, each once. */
struct path_stream {
	struct path_cursor cursors[RUN_MAX];
	struct run_path same[SAME_HASH_MAX]; /* the paths of the hash that is given now */
	size_t count, given;
};

struct merging {
	const struct run_merge *m;
	struct ctx *ctx;
	struct arena *arena; /* of one block */
	struct run_header h;
	struct buf marks;
	/* what is given to the store */
	struct path_stream *paths;
	struct run_path next; /* that the next block of paths begins with */
	bool has_next;
	uint64_t block; /* the next one to be made */
	char bytes[RUN_BLOCK];
	size_t left; /* bytes of the last block that were not given yet */
};

/* --- paths --- */

static int cursor_move(struct merging *g, size_t i, struct path_cursor *c, struct err *err)
{
	struct run *run = g->m->runs[i];

	for (c->has = false; !c->has && c->block < run->h.path_blocks;) {
		const char *payload;
		size_t n;
		int r = run_block(run, g->ctx, 1 + run_entry_blocks(&run->h) + c->block, &payload, err);

		if (r)
			return r;
		n = run_get_path(payload, c->at, &c->path);
		c->has = n > 0;
		c->at += n;
		if (!c->has) {
			c->block++;
			c->at = 0;
		}
	}
	return 0;
}

static int paths_begin(struct merging *g, struct path_stream *s, struct err *err)
{
	int r = 0;

	s->count = s->given = 0;
	for (size_t i = 0; r == 0 && i < g->m->count; i++) {
		s->cursors[i] = (struct path_cursor){0};
		r = cursor_move(g, i, &s->cursors[i], err);
	}
	return r;
}

static int path_order(const void *a, const void *b)
{
	const struct run_path *x = a, *y = b;

	return x->last < y->last ? -1 : x->last > y->last;
}

/* Gathers all paths with the lowest hash that is left. */
static int take_hash(struct merging *g, struct path_stream *s, struct err *err)
{
	const struct path_cursor *least = NULL;
	uint64_t hash;
	int r = 0;

	s->count = s->given = 0;
	for (size_t i = 0; i < g->m->count; i++)
		if (s->cursors[i].has && (!least || s->cursors[i].path.hash < least->path.hash))
			least = &s->cursors[i];
	if (!least)
		return 0;
	hash = least->path.hash;
	for (size_t i = 0; i < g->m->count; i++)
		while (r == 0 && s->cursors[i].has && s->cursors[i].path.hash == hash) {
			if (s->count == SAME_HASH_MAX)
				return err_set(err, ERR_CORRUPT, "the index of the log is damaged");
			s->same[s->count++] = s->cursors[i].path;
			r = cursor_move(g, i, &s->cursors[i], err);
		}
	qsort(s->same, s->count, sizeof(s->same[0]), path_order);
	return r;
}

/* One path may be in several runs: only its newest record counts. Two paths may have the same hash: then neither is
   before the other on its path. */
static int drop_older(struct merging *g, struct path_stream *s, struct err *err)
{
	size_t out = 0;

	for (size_t i = 0; i < s->count; i++) {
		bool superseded = false;

		for (size_t k = i + 1; k < s->count && !superseded; k++) {
			int r = g->m->is_before(g->m->arg, g->ctx, s->same[k].last, s->same[i].last, &superseded, err);

			if (r)
				return r;
		}
		if (!superseded)
			s->same[out++] = s->same[i];
	}
	s->count = out;
	return 0;
}

static int paths_next(struct merging *g, struct path_stream *s, struct run_path *ret, bool *ret_has, struct err *err)
{
	int r = 0;

	if (s->given == s->count)
		r = take_hash(g, s, err);
	if (r == 0 && s->given == 0 && s->count > 1)
		r = drop_older(g, s, err);
	*ret_has = r == 0 && s->given < s->count;
	if (*ret_has)
		*ret = s->same[s->given++];
	return r;
}

/* How many paths there will be, and the blocks that they need. */
static int measure(struct merging *g, struct err *err)
{
	struct run_path p;
	uint64_t bytes = 0, block = 0;
	size_t used = 0;
	bool has;
	int r = paths_begin(g, g->paths, err);

	while (r == 0 && (r = paths_next(g, g->paths, &p, &has, err)) == 0 && has) {
		g->h.path_count++;
		bytes += run_path_size(&p);
	}
	g->h.buckets = bytes / PATH_FULL + 1;
	if (r == 0)
		r = paths_begin(g, g->paths, err);
	while (r == 0 && (r = paths_next(g, g->paths, &p, &has, err)) == 0 && has) {
		uint64_t bucket = run_bucket_of(p.hash, g->h.buckets);
		bool is_full = bucket <= block && used + run_path_size(&p) > PATH_ROOM;

		used = bucket > block || is_full ? 0 : used;
		block = bucket > block ? bucket : block + is_full;
		used += run_path_size(&p);
	}
	g->h.path_blocks = block + 1 > g->h.buckets ? block + 1 : g->h.buckets;
	return r;
}

/* --- blocks --- */

static int make_entries(struct merging *g, uint64_t block, char *payload, struct err *err)
{
	uint64_t first = g->h.head.first + block * PER_BLOCK;
	size_t i = 0;
	int r = 0;

	for (uint64_t k = 0; r == 0 && k < PER_BLOCK && first + k <= g->h.head.last; k++) {
		struct run_entry e;

		while (g->m->runs[i]->h.head.last < first + k)
			i++;
		r = run_entry(g->m->runs[i], g->ctx, first + k, &e, err);
		if (r == 0)
			memcpy(payload + k * sizeof(e), &e, sizeof(e));
	}
	return r;
}

static int make_paths(struct merging *g, uint64_t block, char *payload, struct err *err)
{
	int r = 0;

	while (r == 0 && g->has_next && run_bucket_of(g->next.hash, g->h.buckets) <= block &&
	       run_put_path(payload, &g->next))
		r = paths_next(g, g->paths, &g->next, &g->has_next, err);
	return r;
}

static void make_marks(struct merging *g, uint64_t block, char *payload)
{
	struct str rest = str_from(buf_str(&g->marks), (size_t)block * PAYLOAD);

	memcpy(payload, rest.ptr, rest.len < PAYLOAD ? rest.len : PAYLOAD);
}

/* Makes the next block. */
static int make_block(struct merging *g, struct err *err)
{
	uint64_t n = g->block, entries = run_entry_blocks(&g->h);
	char *payload = g->bytes + 8;
	int r = 0;

	memset(g->bytes, 0, sizeof(g->bytes));
	if (n == 0)
		memcpy(payload, &g->h, sizeof(g->h));
	else if (n <= entries)
		r = make_entries(g, n - 1, payload, err);
	else if (n <= entries + g->h.path_blocks)
		r = make_paths(g, n - 1 - entries, payload, err);
	else
		make_marks(g, n - 1 - entries - g->h.path_blocks, payload);
	run_seal(g->bytes, n, g->h.head.first);
	g->block++;
	g->left = RUN_BLOCK;
	arena_reset(g->arena);
	return r;
}

static int merge_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct merging *g = arg;
	uint64_t blocks = 1 + run_entry_blocks(&g->h) + g->h.path_blocks + run_mark_blocks(&g->h);
	size_t len = 0;
	int r = 0;

	while (r == 0 && len < cap) {
		size_t n;

		if (!g->left && g->block == blocks)
			break;
		if (!g->left)
			r = make_block(g, err);
		n = g->left < cap - len ? g->left : cap - len;
		memcpy((char *)buf + len, g->bytes + RUN_BLOCK - g->left, n);
		g->left -= n;
		len += n;
	}
	*ret_len = len;
	return r;
}

static int merge_rewind(void *arg, struct err *err)
{
	struct merging *g = arg;
	int r = paths_begin(g, g->paths, err);

	g->block = 0;
	g->left = 0;
	return r ? r : paths_next(g, g->paths, &g->next, &g->has_next, err);
}

static int gather_marks(struct merging *g, struct ctx *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < g->m->count; i++) {
		struct rev_checkpoint *list;
		size_t count;

		r = run_checkpoints(g->m->runs[i], ctx, &list, &count, err);
		if (r == 0)
			run_put_marks(&g->marks, list, count);
	}
	g->h.mark_bytes = g->marks.len;
	return r == 0 && g->marks.overflow ? err_set(err, ERR_TOO_LARGE, "the index of the log would be too large") : r;
}

int run_merge(struct store *store, struct ctx *ctx, const struct run_merge *m, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct merging *g = xcalloc(1, sizeof(*g));
	struct source source = {.pull = merge_pull, .rewind = merge_rewind, .arg = g};
	struct run_head head = m->runs[m->count - 1]->h.head;
	struct ctx own = *ctx;
	int r;

	head.first = m->runs[0]->h.head.first;
	own.arena = arena;
	g->m = m;
	g->ctx = &own;
	g->arena = arena;
	g->h = run_header_new(&head);
	g->paths = xcalloc(1, sizeof(*g->paths));
	buf_init(&g->marks, NULL, 256 * MIB);
	r = gather_marks(g, ctx, err);
	if (r == 0)
		r = measure(g, err);
	if (r == 0)
		r = merge_rewind(g, err);
	if (r == 0)
		r = store_write_stream(store, ctx, run_path_of(ctx->arena, head.first, head.last), &source,
				       (struct store_cond){0}, NULL, err);
	buf_release(&g->marks);
	free(g->paths);
	free(g);
	return r;
}
