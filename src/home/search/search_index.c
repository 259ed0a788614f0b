/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of one workspace as one user sees it, kept up with the files.
 *
 * Before each search the revisions since the last one are taken in: only files that changed are read, and become one
 * small segment in memory. What other programs changed is found by comparing versions, when a small index is opened and
 * later alongside the searches, at no more than a twentieth of the time. A large index that was opened answers first
 * and is compared after that, when no process has done so for a minute; a process that ends completes it. Segments in
 * memory are merged, and when they have grown large, written to the index's directory, by a thread that lives as long
 * as there is something to do.
 *
 * Several processes may do all that at once. Each is complete by itself: the segments on disk up to the manifest's
 * revision, and its own memory beyond. Only a writer takes the lock, and never waits for it.
 */
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/search/embedder.h"
#include "home/search/search_disk.h"
#include "home/search/search_internal.h"
#include "home/search/search_meaning.h"
#include "home/search/search_parts.h"
#include "revisions/revisions.h"
#include "workspace/workspace_parts.h"

#define NS_PER_S       INT64_C(1000000000)
#define SWEEP_EVERY_NS (5 * NS_PER_S)
#define SWEEP_LATER_NS (60 * NS_PER_S) /* after another process has compared everything */
#define SMALL_FILES    1000            /* so many are compared when the index is opened */
#define REVISIONS_MAX  50000           /* more than this is found faster by a sweep */
#define IN_FLIGHT_MAX  256             /* changes that may be under way at once */
#define BUILD_MAX      (96 * MIB)      /* memory of a builder before it becomes a segment */
#define LIVE_DOCS      2048            /* more than this in memory is written out */
#define LIVE_BYTES     (16 * MIB)
#define TROUBLES       64        /* files with a problem that are remembered */
#define WINDOW         (1 * MIB) /* of a file in parts that is read at once */
#define SMALL_DOCS     1024      /* merged at once, by the thread that made the last one */
/* What is worth writing when the process ends: files, bytes, or revisions that the next process would ask for. */
#define CLOSE_FILES     64
#define CLOSE_BYTES     (64 * KIB)
#define CLOSE_REVISIONS 1000

/* A file that could not be taken in as it is. */
struct trouble {
	char *path;
	bool unreadable; /* else: not what its family expects, and taken as plain text */
};

struct home_index {
	struct workspace *ws;
	struct store *home;       /* what may be searched: without secrets and Stead's own */
	char *dir;                /* NULL: in memory only */
	pthread_mutex_t catching; /* held while changes are taken in */
	bool opened, swept;
	uint64_t revision;      /* taken in up to here */
	uint64_t disk_revision; /* the same for the segments on disk */
	uint64_t own_revision;  /* of the log of a directory of the person's own */
	pthread_mutex_t lock;   /* for what follows; never held for long */
	struct words_view *view;
	size_t disk;                       /* number of segments at the start of the view that are files */
	size_t frozen;                     /* number of segments at its start that the worker is merging */
	char (*names)[INDEX_NAME_LEN + 1]; /* of the files */
	uint64_t generation;
	uint64_t view_revision; /* of the view */
	int64_t sweep_at;
	bool unswept;        /* the files were not compared since the index was opened */
	atomic_bool closing; /* the worker ends after a sweep */
	pthread_t worker;
	bool has_worker, working;
	struct cancel stop;
	struct trouble troubles[TROUBLES]; /* under `catching` */
	size_t trouble_count;
	struct config_embedding embedding;
	struct meaning *meaning; /* NULL: no embedder */
};

/* --- opening --- */

/* The directory of this view's index; NULL: it has none. */
static char *place_of(struct workspace *ws, struct arena *arena)
{
	const char *cache = env_process("XDG_CACHE_HOME"), *home = env_process("HOME");
	struct str dir = workspace_dir(ws), user = workspace_actor(ws).user;
	struct str part = user.len ? workspace_encode_name(arena, user) : STR("-"), url = workspace_url_of(ws);

	if (dir.ptr)
		return xstrndup(arena_printf(arena, "%s/.stead/index/%.*s", dir.ptr, STR_ARG(part)));
	if (!url.len || str_starts(url, STR("memory:")))
		return NULL;
	url = hash_hex128(arena, arena_printf(arena, "%.*s\n%.*s", STR_ARG(url), STR_ARG(workspace_name(ws))));
	if (cache && cache[0] == '/')
		return xstrndup(arena_printf(arena, "%s/stead/index/%s/%.*s", cache, url.ptr, STR_ARG(part)));
	if (home && home[0] == '/')
		return xstrndup(arena_printf(arena, "%s/.cache/stead/index/%s/%.*s", home, url.ptr, STR_ARG(part)));
	return NULL;
}

void *home_index_new(struct workspace *ws)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct home_index *ix = xcalloc(1, sizeof *ix);

	ix->ws = ws;
	ix->home = search_home_new(ws);
	ix->dir = place_of(ws, arena);
	ix->view = words_view_new(NULL, 0);
	embedding_read(workspace_config(ws)->document, &ix->embedding);
	ix->meaning = meaning_new(&ix->embedding, ix->dir);
	pthread_mutex_init(&ix->catching, NULL);
	pthread_mutex_init(&ix->lock, NULL);
	return ix;
}

static struct home_index *index_of(struct workspace *ws)
{
	return family_state(&search_family, ws);
}

static void set_view(struct home_index *ix, struct words_view *view, size_t disk)
{
	struct words_view *old;

	pthread_mutex_lock(&ix->lock);
	old = ix->view;
	ix->view = view;
	ix->disk = disk;
	pthread_mutex_unlock(&ix->lock);
	words_view_unref(old);
}

static void set_names(struct home_index *ix, const struct str *names, size_t count)
{
	free(ix->names);
	ix->names = xcalloc(count + 1, sizeof *ix->names);
	for (size_t i = 0; i < count; i++)
		memcpy(ix->names[i], names[i].ptr, INDEX_NAME_LEN);
}

/* Opens the segments on disk. If anything is wrong with them, the index starts empty, and the sweep fills it. */
static void open_dir(struct home_index *ix, struct ctx *ctx)
{
	struct index_manifest m = {0};
	struct words_segment **list;
	struct words_view *view;
	struct err err;

	if (!ix->dir || index_dir_make(ix->dir, &err) != 0 || index_open(ctx->arena, ix->dir, &m, &list, &err) != 0)
		return;
	view = words_view_new(list, m.count);
	for (size_t i = 0; i < m.count; i++)
		words_segment_unref(list[i]);
	pthread_mutex_lock(&ix->lock);
	set_names(ix, m.names, m.count);
	ix->generation = m.generation;
	pthread_mutex_unlock(&ix->lock);
	set_view(ix, view, m.count);
	ix->revision = ix->disk_revision = m.revision;
}

/* --- taking files in --- */

struct intake {
	struct home_index *ix;
	struct ctx *ctx;
	struct words_builder *builder;
	struct arena *scratch;
	unsigned area;
	size_t files;
};

static void take_doc(void *arg, const struct search_doc *doc)
{
	struct intake *in = arg;
	struct words_doc d = {.id = doc->id,
			      .title = doc->title,
			      .body = doc->body,
			      .kind = doc->kind,
			      .author = doc->author,
			      .tags = doc->tags,
			      .tag_count = doc->tag_count,
			      .time_ns = doc->time_ns,
			      .credit = doc->credit,
			      .area = in->area,
			      .archived = doc->archived};

	words_builder_add(in->builder, &d);
}

/* Merges the last segments in memory while they are small and alike, so that there are never many. */
static void tidy(struct home_index *ix)
{
	for (;;) {
		struct words_view *view, *next;
		struct words_segment *one;
		size_t n, low;
		uint32_t a, b;
		struct err err;

		pthread_mutex_lock(&ix->lock);
		view = words_view_ref(ix->view);
		low = ix->disk > ix->frozen ? ix->disk : ix->frozen;
		pthread_mutex_unlock(&ix->lock);
		n = words_view_count(view);
		a = n >= 2 ? words_segment_files(words_view_at(view, n - 2)) : 0;
		b = n >= 2 ? words_segment_files(words_view_at(view, n - 1)) : 0;
		if (n < low + 2 || a + b > SMALL_DOCS || a >= 2 * b + 4 ||
		    words_segment_bytes(words_view_at(view, n - 2)) > 2 * MIB ||
		    words_merge(view, n - 2, 2, n == 2, NULL, &one, &err) != 0) {
			words_view_unref(view);
			return;
		}
		next = words_view_replace(view, n - 2, 2, one);
		words_segment_unref(one);
		pthread_mutex_lock(&ix->lock);
		low = ix->disk > ix->frozen ? ix->disk : ix->frozen;
		if (n < low + 2 || ix->view != view) { /* the worker was first */
			pthread_mutex_unlock(&ix->lock);
			words_view_unref(next);
			words_view_unref(view);
			return;
		}
		ix->view = next;
		pthread_mutex_unlock(&ix->lock);
		words_view_unref(view);
		words_view_unref(view); /* the index's own */
	}
}

static void put_segment(struct intake *in)
{
	struct words_segment *segment = words_builder_finish(in->builder);
	struct home_index *ix = in->ix;
	struct words_view *old, *next;

	for (;;) { /* the worker may replace the view at the same time */
		pthread_mutex_lock(&ix->lock);
		old = words_view_ref(ix->view);
		pthread_mutex_unlock(&ix->lock);
		next = words_view_push(old, segment);
		pthread_mutex_lock(&ix->lock);
		if (ix->view == old) {
			ix->view = next;
			pthread_mutex_unlock(&ix->lock);
			words_view_unref(old);
			break;
		}
		pthread_mutex_unlock(&ix->lock);
		words_view_unref(next);
		words_view_unref(old);
	}
	words_view_unref(old);
	words_segment_unref(segment);
	in->files = 0;
}

/* Remembers, or forgets, that a file has a problem. */
static void set_trouble(struct home_index *ix, struct str path, bool has, bool unreadable)
{
	size_t i = 0;

	while (i < ix->trouble_count && !str_is(path, ix->troubles[i].path))
		i++;
	if (has && i == ix->trouble_count && i < TROUBLES)
		ix->troubles[ix->trouble_count++].path = xstrndup(path);
	if (has && i < TROUBLES)
		ix->troubles[i].unreadable = unreadable;
	if (!has && i < ix->trouble_count) {
		free(ix->troubles[i].path);
		ix->troubles[i] = ix->troubles[--ix->trouble_count];
	}
}

static struct str trouble_note(const struct home_index *ix, struct arena *arena)
{
	size_t counts[2] = {0};
	const char *first[2] = {NULL};
	struct buf out;

	buf_init(&out, arena, 16 * KIB);
	for (size_t i = 0; i < ix->trouble_count; i++)
		if (counts[ix->troubles[i].unreadable]++ == 0)
			first[ix->troubles[i].unreadable] = ix->troubles[i].path;
	for (int unreadable = 1; unreadable >= 0; unreadable--) {
		if (!counts[unreadable])
			continue;
		buf_printf(&out, "%s%s", out.len ? "; " : "", first[unreadable]);
		if (counts[unreadable] > 1)
			buf_printf(&out, " and %zu more files", counts[unreadable] - 1);
		buf_add(&out, unreadable ? STR(" could not be read and cannot be found")
					 : STR(" could not be parsed, and counts as plain text"));
	}
	return buf_str(&out);
}

static struct words_view *view_ref(struct home_index *ix)
{
	struct words_view *view;

	pthread_mutex_lock(&ix->lock);
	view = words_view_ref(ix->view);
	pthread_mutex_unlock(&ix->lock);
	return view;
}

static void put_file(struct intake *in, struct str key, struct str version)
{
	words_builder_file(in->builder, key, version);
	in->files++;
}

/* The parts of a file from `number` on, which the index still has, are gone. */
static void drop_parts(struct intake *in, struct wpath path, uint64_t number)
{
	struct words_view *view = view_ref(in->ix);

	for (;; number++) {
		struct str key = search_part_key(in->ctx->arena, path.s, number), version;

		if (!words_view_file(view, key, &version) || !version.len)
			break;
		put_file(in, key, STR(""));
	}
	words_view_unref(view);
}

static void take_documents(struct intake *in, const struct search_source *source, struct wpath path, struct str bytes,
			   int64_t mtime_ns)
{
	in->area = search_area(str_of(source->area));
	if (!search_documents(in->scratch, source, path, bytes, mtime_ns, take_doc, in))
		set_trouble(in->ix, path.s, true, false);
	if (words_builder_size(in->builder) > BUILD_MAX)
		put_segment(in);
}

/* What became of a file that could not be read. */
static void take_failure(struct intake *in, struct wpath path, int r)
{
	bool gone = r == -ERR_NOT_FOUND || r == -ERR_INVALID;

	set_trouble(in->ix, path.s, !gone, true);
	if (!gone)
		return;
	put_file(in, path.s, STR(""));
	drop_parts(in, path, 0);
}

/* --- files in parts --- */

/* A file that is taken in part by part, from `part` on. */
struct growing {
	struct intake *in;
	const struct search_source *source;
	struct wpath path;
	struct str head;    /* is given with each part; in the call's arena; may be empty */
	struct str version; /* at the first read, so that what comes later is noticed; in the call's arena */
	struct search_part part;
	struct str bytes; /* from part.offset on */
	struct store_stat stat;
};

static int read_on(struct growing *g, size_t length, struct err *err)
{
	struct ctx ctx = *g->in->ctx;
	struct store_range range = {g->part.offset, length};
	int r;

	arena_reset(g->in->scratch);
	ctx.arena = g->in->scratch;
	r = store_read(g->in->ix->home, &ctx, g->path, range, length, &g->bytes, &g->stat, err);
	if (r == 0 && !g->version.ptr)
		g->version = arena_str(g->in->ctx->arena, g->stat.version);
	return r;
}

/* Bytes of the part that `bytes` begin with; SIZE_MAX: its end is not in them. */
static size_t part_len(const struct growing *g, struct str bytes)
{
	for (size_t at = SEARCH_PART_MIN; at < bytes.len;) {
		struct str rest = str_from(bytes, at - 1);
		size_t end = str_find_char(rest, '\n');

		at += end;
		if (at >= bytes.len)
			break;
		rest = str_from(bytes, at);
		if (g->source->line(g->path, str_first(rest, str_find_char(rest, '\n'))) == SEARCH_BEGINS)
			return at;
		at++;
	}
	return SIZE_MAX;
}

static void take_part(struct growing *g, struct str key, struct str version, struct str bytes)
{
	struct arena *arena = g->in->scratch;

	put_file(g->in, key, version);
	if (g->part.number)
		bytes = arena_printf(arena, "%.*s%.*s", STR_ARG(g->head), STR_ARG(bytes));
	take_documents(g->in, g->source, g->path, bytes, g->stat.mtime_ns);
}

/* Takes the whole parts of what was read; what is left is of the next one. */
static bool take_whole_parts(struct growing *g)
{
	struct arena *arena = g->in->ctx->arena;
	bool any = false;
	size_t len;

	while ((len = part_len(g, g->bytes)) != SIZE_MAX) {
		struct str part = str_first(g->bytes, len);

		take_part(g, search_part_key(arena, g->path.s, g->part.number),
			  search_part_version(arena, STR("part"), &g->part), part);
		g->part.number++;
		g->part.offset += len;
		for (size_t at = 0; at < len; at++)
			g->part.line += part.ptr[at] == '\n';
		g->bytes = str_from(g->bytes, len);
		any = true;
	}
	return any;
}

/* True when the file is what the index has, and more. Then only that is taken in, beginning with the last part. */
static bool has_grown(struct growing *g)
{
	struct words_view *view = view_ref(g->in->ix);
	struct search_part part = {0};
	bool known = search_part_known(view, g->path.s, &part).ptr && part.size;
	uint64_t was = part.size - part.offset;
	struct err err;

	words_view_unref(view);
	if (!known || part.offset > part.size || was > SEARCH_FILE_MAX)
		return false;
	g->part = part;
	if (read_on(g, was + WINDOW, &err) == 0 && g->stat.size > part.size && g->bytes.len > was &&
	    hash_u64(str_first(g->bytes, was), 0) == part.hash)
		return true;
	g->part = (struct search_part){.line = 1};
	g->version = STR_NONE;
	return false;
}

static void read_head(struct growing *g)
{
	struct store_range beginning = {0, 4 * KIB};
	struct str bytes;
	struct err ignored;
	size_t end;

	if (store_read(g->in->ix->home, g->in->ctx, g->path, beginning, 4 * KIB, &bytes, NULL, &ignored))
		return;
	end = str_find_char(bytes, '\n');
	if (end < bytes.len && g->source->line(g->path, str_first(bytes, end)) == SEARCH_HEAD)
		g->head = str_first(bytes, end + 1);
}

static void take_growing(struct intake *in, struct wpath path, const struct search_source *source)
{
	struct growing g = {.in = in, .source = source, .path = path, .part = {.line = 1}};
	size_t length = WINDOW;
	struct err err;
	int r = has_grown(&g) ? 0 : read_on(&g, length, &err);

	if (r == 0)
		read_head(&g);
	while (r == 0 && g.part.offset + g.bytes.len < g.stat.size && length <= SEARCH_FILE_MAX) {
		if (!take_whole_parts(&g))
			length *= 2;
		r = read_on(&g, length, &err);
	}
	if (r) {
		take_failure(in, path, r);
		return;
	}
	set_trouble(in->ix, path.s, false, true);
	take_whole_parts(&g);
	g.part.size = g.part.offset + g.bytes.len;
	g.part.hash = hash_u64(g.bytes, 0);
	if (length > SEARCH_FILE_MAX) /* a part that is too large is not searched, nor what follows it */
		g.bytes = STR("");
	drop_parts(in, path, g.part.number);
	take_part(&g, path.s, search_part_version(in->ctx->arena, g.version, &g.part), g.bytes);
}

/* Reads a file of the home and puts what it says into the builder. */
static void take_file(struct intake *in, struct wpath path, const struct search_source *source)
{
	struct ctx ctx = *in->ctx;
	struct store_stat stat = {0};
	struct str bytes = STR_NONE;
	struct err err;
	int r;

	if (source->line) {
		take_growing(in, path, source);
		return;
	}
	arena_reset(in->scratch);
	ctx.arena = in->scratch;
	r = store_read(in->ix->home, &ctx, path, STORE_WHOLE, SEARCH_FILE_MAX, &bytes, &stat, &err);
	if (r == -ERR_TOO_LARGE) {
		bytes = STR_NONE;
		r = store_stat(in->ix->home, &ctx, path, &stat, &err);
	}
	if (r) {
		take_failure(in, path, r);
		return;
	}
	set_trouble(in->ix, path.s, false, true);
	put_file(in, path.s, stat.version);
	take_documents(in, source, path, bytes, stat.mtime_ns);
}

static void intake_begin(struct intake *in, struct home_index *ix, struct ctx *ctx)
{
	*in = (struct intake){.ix = ix, .ctx = ctx};
	in->builder = words_builder_new();
	in->scratch = arena_new();
}

static void intake_end(struct intake *in)
{
	if (in->files)
		put_segment(in);
	words_builder_destroy(in->builder);
	arena_destroy(in->scratch);
	tidy(in->ix);
}

/* --- what changed --- */

/* A path of the workspace as a path of this user's home; false: it is not in it. */
static bool home_path(const struct home_index *ix, struct wpath path, struct wpath *ret)
{
	struct wpath part = workspace_part(ix->ws);

	if (wpath_is_root(part)) {
		*ret = path;
		return !wpath_within(path, (struct wpath){STR("users")}) &&
		       !wpath_within(path, (struct wpath){STR(".stead")});
	}
	if (wpath_within(path, part)) {
		*ret = wpath_relative(path, part);
		return true;
	}
	*ret = path;
	return workspace_may_be_asset(path);
}

/* True when the index has the file as this change left it. */
static bool is_known(struct home_index *ix, struct wpath path, const struct revision *r)
{
	bool known;

	pthread_mutex_lock(&ix->lock);
	known = r->after.version.len && str_eq(search_part_known(ix->view, path.s, NULL), r->after.version);
	pthread_mutex_unlock(&ix->lock);
	return known;
}

/* A change that a thread of this process is still making is looked at again by the next search. */
static int take_revisions(struct home_index *ix, struct ctx *ctx, uint64_t head, struct err *err)
{
	struct rev_query query = {.since = ix->revision, .until = head, .limit = REVISIONS_MAX};
	struct strmap *seen = strmap_new(ctx->arena);
	struct store *shared = workspace_shared(ix->ws);
	struct revision *list;
	struct intake in;
	size_t count;
	bool more = false;
	int r = revisions_query(shared, ctx, &query, &list, &count, &more, err);

	if (r || more)
		return r ? r : -ERR_NOT_FOUND;
	intake_begin(&in, ix, ctx);
	for (size_t i = count; i-- > 0 && !r;) { /* newest first: one look a path */
		const struct search_source *source;
		struct wpath path;
		bool added;

		if (!home_path(ix, list[i].path, &path) || !(source = search_source_of(path)))
			continue;
		strmap_put(seen, path.s, &added);
		if (!added)
			continue;
		if (!list[i].done && !list[i].own)
			r = revisions_settle(shared, ctx, list[i].path, NULL, err);
		if (!r && !is_known(ix, path, &list[i]))
			take_file(&in, path, source);
	}
	intake_end(&in);
	for (size_t i = 0; i < count; i++)
		if (list[i].own && !list[i].done && list[i].number <= head)
			head = list[i].number - 1;
	if (!r && head > ix->revision)
		ix->revision = head;
	return r;
}

/* Compares one file of the list with what the index knows. */
static bool is_news(const struct words_view *view, const struct store_entry *entry)
{
	struct str version = search_part_known(view, entry->path.s, NULL);

	return !version.ptr || !str_eq(version, entry->stat.version);
}

struct sweep {
	struct home_index *ix;
	struct ctx *ctx;
	struct words_view *view;
	struct strmap *seen;
	struct arena *keep; /* paths that changed, and seen */
	struct wpath *changed;
	size_t count, cap;
};

static void add_changed(struct sweep *s, struct wpath path)
{
	if (s->count == s->cap) {
		s->changed = arena_grow(s->keep, s->changed, s->cap * sizeof *s->changed,
					(s->cap * 2 + 64) * sizeof *s->changed);
		s->cap = s->cap * 2 + 64;
	}
	s->changed[s->count++] = (struct wpath){arena_str(s->keep, path.s)};
}

static void compare(void *arg, const struct store_entry *entry)
{
	struct sweep *s = arg;

	strmap_put(s->seen, arena_str(s->keep, entry->path.s), NULL);
	if (is_news(s->view, entry))
		add_changed(s, entry->path);
}

static int sweep_tree(struct sweep *s, const char *dir, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	char after[PATH_LEN_MAX + 2];
	ARENA_SCOPE struct arena *arena = arena_new();

	for (;;) {
		struct ctx ctx = *s->ctx;
		struct store_page page;
		int r;

		ctx.arena = arena;
		r = store_list(s->ix->home, &ctx, (struct wpath){str_of(dir)}, &req, &page, err);
		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			if (search_source_of(page.entries[i].path))
				compare(s, &page.entries[i]);
		if (!page.next.ptr || page.next.len > sizeof after || atomic_load(&s->ix->stop.requested))
			return 0;
		memcpy(after, page.next.ptr, page.next.len);
		req.after = str_n(after, page.next.len);
		arena_reset(arena);
	}
}

/* Files that are in the index but not in the store. */
static void find_gone(struct sweep *s)
{
	for (size_t i = 0; i < words_view_count(s->view); i++) {
		const struct words_segment *segment = words_view_at(s->view, i);

		for (uint32_t f = 0; f < words_segment_files(segment); f++) {
			struct str version, key = words_segment_path(segment, f, &version), path;

			path = search_part_file(key);
			if (strmap_find(s->seen, path) || !words_view_file(s->view, key, &version) || !version.len)
				continue;
			add_changed(s, (struct wpath){path});
			strmap_put(s->seen, s->changed[s->count - 1].s, NULL);
		}
	}
}

/* A place is a directory or a single file. */
static int sweep_place(struct sweep *s, const char *place, struct err *err)
{
	struct store_entry entry = {.path = {str_of(place)}};
	int r;

	if (strcmp(place, OWN_FILES) == 0 && workspace_files_are_own(s->ix->ws))
		return search_own_walk(s->ix->ws, s->ctx, compare, s, err);
	r = store_stat(s->ix->home, s->ctx, entry.path, &entry.stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if (entry.stat.kind != STORE_FILE)
		return sweep_tree(s, place, err);
	compare(s, &entry);
	return 0;
}

static int sweep_look(struct sweep *s, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct strmap *done = strmap_new(arena);
	const char *place;
	int r = 0;

	for (size_t i = 0; !r && (place = search_place(i)); i++) {
		bool is_new;

		strmap_put(done, str_of(place), &is_new);
		if (is_new)
			r = sweep_place(s, place, err);
	}
	if (!r)
		find_gone(s);
	return r;
}

/* Compares everything by version. With `held` the caller takes changes in already. */
static int sweep(struct home_index *ix, struct ctx *ctx, bool held, struct err *err)
{
	ARENA_SCOPE struct arena *keep = arena_new();
	struct sweep s = {.ix = ix, .ctx = ctx, .keep = keep, .seen = strmap_new(keep)};
	int64_t began = clock_monotonic_ns(), took;
	struct intake in;
	int r;

	s.view = view_ref(ix);
	r = sweep_look(&s, err);
	words_view_unref(s.view);
	took = clock_monotonic_ns() - began;
	if (!r && s.count) {
		if (!held)
			pthread_mutex_lock(&ix->catching);
		intake_begin(&in, ix, ctx);
		for (size_t i = 0; i < s.count && !atomic_load(&ix->stop.requested); i++) {
			const struct search_source *source = search_source_of(s.changed[i]);

			if (source)
				take_file(&in, s.changed[i], source);
			if (i % 1024 == 1023)
				ctx_progress(ctx, i, s.count, STR("files"));
		}
		intake_end(&in);
		if (!held)
			pthread_mutex_unlock(&ix->catching);
	}
	if (!r && ix->dir && !atomic_load(&ix->stop.requested))
		index_stamp(ix->dir);
	pthread_mutex_lock(&ix->lock);
	ix->unswept = false;
	ix->sweep_at = clock_monotonic_ns() + (took * 20 > SWEEP_EVERY_NS ? took * 20 : SWEEP_EVERY_NS);
	pthread_mutex_unlock(&ix->lock);
	return r;
}

/* --- writing out --- */

struct live {
	uint64_t docs;
	size_t bytes, segments;
};

static struct live live_of(const struct words_view *view, size_t disk)
{
	struct live live = {0};

	for (size_t i = disk; i < words_view_count(view); i++) {
		live.docs += words_segment_files(words_view_at(view, i));
		live.bytes += words_segment_bytes(words_view_at(view, i));
		live.segments++;
	}
	return live;
}

/* From where on the segments are merged into one: the last so many, as long as the one before is not much larger than
   all after it. */
static size_t merge_from(const struct words_view *view, size_t end)
{
	uint64_t behind = 0;
	size_t i = end;

	while (i > 0) {
		uint64_t docs = words_segment_docs(words_view_at(view, i - 1)) + 1;

		if (i < end && docs > 3 * behind)
			break;
		behind += docs;
		i--;
	}
	return i;
}

/* Segments `first` … `end` of the view become one, on disk if there is a directory. */
static int merge_range(struct home_index *ix, struct words_view *view, size_t first, size_t end, struct arena *arena,
		       uint64_t revision, struct err *err)
{
	struct words_segment *one, *mapped;
	struct index_manifest m = {.revision = revision};
	struct words_view *next, *old;
	struct str name = STR("");
	int r = words_merge(view, first, end - first, first == 0, &ix->stop.requested, &one, err);

	if (r)
		return r;
	if (ix->dir) {
		r = index_save(arena, ix->dir, one, &name, err);
		if (!r)
			r = words_segment_open(arena_printf(arena, "%s/%.*s", ix->dir, STR_ARG(name)).ptr, &mapped,
					       err);
		words_segment_unref(one);
		if (r)
			return r;
		one = mapped;
	}
	pthread_mutex_lock(&ix->lock);
	next = words_view_replace(ix->view, first, end - first, one);
	old = ix->view;
	ix->view = next;
	ix->frozen = 0;
	if (ix->dir) {
		m.names = ARENA_ARRAY(arena, struct str, first + 1);
		for (size_t i = 0; i < first; i++)
			m.names[i] = arena_str(arena, str_of(ix->names[i]));
		m.names[first] = name;
		m.count = first + 1;
		m.generation = ++ix->generation;
		set_names(ix, m.names, m.count);
		ix->disk = m.count;
		ix->disk_revision = revision;
	}
	pthread_mutex_unlock(&ix->lock);
	words_view_unref(old);
	words_segment_unref(one);
	if (!ix->dir)
		return 0;
	r = index_manifest_write(arena, ix->dir, &m, err);
	if (!r)
		index_sweep_dir(arena, ix->dir, &m);
	return r;
}

/* Another process wrote the index: its segments replace those that we had on disk, and those in memory too if it is as
   far as we are. The lock of the directory and `catching` are held. */
static void adopt(struct home_index *ix, struct arena *arena)
{
	struct index_manifest m = {0};
	struct words_segment **list;
	struct words_view *view, *old, *next;
	size_t disk;
	struct err err;

	index_manifest_read(arena, ix->dir, &m);
	if (m.generation == ix->generation)
		return;
	if (index_open(arena, ix->dir, &m, &list, &err) != 0)
		m = (struct index_manifest){.generation = m.generation};
	view = words_view_new(list, m.count);
	for (size_t i = 0; i < m.count; i++)
		words_segment_unref(list[i]);
	disk = m.count;
	pthread_mutex_lock(&ix->lock);
	old = words_view_ref(ix->view);
	pthread_mutex_unlock(&ix->lock);
	if (m.revision >= ix->revision && m.count) {
		ix->revision = m.revision;
	} else {
		for (size_t i = m.count ? ix->disk : 0; i < words_view_count(old); i++) {
			next = words_view_push(view, words_view_at(old, i));
			words_view_unref(view);
			view = next;
		}
	}
	words_view_unref(old);
	pthread_mutex_lock(&ix->lock);
	set_names(ix, m.names, m.count);
	ix->generation = m.generation;
	ix->disk_revision = m.revision;
	ix->sweep_at = 0;
	pthread_mutex_unlock(&ix->lock);
	set_view(ix, view, disk);
}

/* Writes out what is in memory and merges what is on disk, as far as that is due; `least` documents are worth it. */
static void flush(struct home_index *ix, uint64_t least, bool held)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct words_view *view;
	uint64_t revision;
	size_t first, end;
	struct err err;
	int lock = -1;

	if (ix->dir && (lock = index_lock(ix->dir)) < 0)
		return;
	if (!held)
		pthread_mutex_lock(&ix->catching);
	if (ix->dir)
		adopt(ix, arena);
	pthread_mutex_lock(&ix->lock);
	view = words_view_ref(ix->view);
	end = words_view_count(view);
	ix->frozen = end;
	revision = ix->revision;
	first = merge_from(view, end);
	if (ix->dir && first > ix->disk)
		first = ix->disk;
	pthread_mutex_unlock(&ix->lock);
	if (!held)
		pthread_mutex_unlock(&ix->catching);
	if (end && words_view_is_whole(view) && live_of(view, ix->dir ? ix->disk : 0).docs >= least)
		merge_range(ix, view, first, end, arena, revision, &err);
	words_view_unref(view);
	pthread_mutex_lock(&ix->lock);
	ix->frozen = 0;
	pthread_mutex_unlock(&ix->lock);
	if (lock >= 0)
		close(lock);
}

/* --- the worker --- */

static bool flush_is_due(struct home_index *ix)
{
	struct live live = live_of(ix->view, ix->dir ? ix->disk : 0);

	if (!ix->dir)
		return live.segments > 12;
	return live.docs > LIVE_DOCS || live.bytes > LIVE_BYTES;
}

/* One turn of what is due; false: nothing was. */
static bool work_once(struct home_index *ix, struct ctx *ctx)
{
	struct words_view *view;
	bool due, look, more;
	struct err err;

	arena_reset(ctx->arena);
	pthread_mutex_lock(&ix->lock);
	due = flush_is_due(ix);
	look = ix->sweep_at <= clock_monotonic_ns();
	pthread_mutex_unlock(&ix->lock);
	if (look)
		sweep(ix, ctx, false, &err);
	if (atomic_load(&ix->closing))
		return false;
	if (due)
		flush(ix, 1, false);
	if (!meaning_is_due(ix->meaning))
		return false;
	view = view_ref(ix);
	more = meaning_work(ix->meaning, ctx, view);
	words_view_unref(view);
	return more;
}

static void *work(void *arg)
{
	struct home_index *ix = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .actor = workspace_actor(ix->ws), .cancel = &ix->stop};

	while (work_once(ix, &ctx) && !atomic_load(&ix->stop.requested))
		;
	pthread_mutex_lock(&ix->lock);
	ix->working = false;
	pthread_mutex_unlock(&ix->lock);
	return NULL;
}

static void wake_worker(struct home_index *ix)
{
	pthread_mutex_lock(&ix->lock);
	if (!ix->working && !atomic_load(&ix->stop.requested) &&
	    (flush_is_due(ix) || ix->sweep_at <= clock_monotonic_ns() || meaning_is_due(ix->meaning))) {
		if (ix->has_worker)
			pthread_join(ix->worker, NULL); /* it has ended */
		ix->working = ix->has_worker = pthread_create(&ix->worker, NULL, work, ix) == 0;
	}
	pthread_mutex_unlock(&ix->lock);
}

void home_index_wake(struct workspace *ws)
{
	wake_worker(index_of(ws));
}

struct meaning *home_index_meaning(struct workspace *ws)
{
	return index_of(ws)->meaning;
}

/* --- the door --- */

/* The newest revision before which nothing is still being made: a sweep may have missed what was. */
static int settled_head(struct home_index *ix, struct ctx *ctx, uint64_t *head, struct err *err)
{
	struct rev_query query = {.until = *head, .newest_first = true, .limit = IN_FLIGHT_MAX};
	struct store *shared = workspace_shared(ix->ws);
	struct revision *list;
	size_t count = 0;
	int r = *head ? revisions_query(shared, ctx, &query, &list, &count, NULL, err) : 0;

	for (size_t i = 0; !r && i < count; i++) {
		if (list[i].own && !list[i].done)
			*head = list[i].number - 1;
		else if (!list[i].done)
			r = revisions_settle(shared, ctx, list[i].path, NULL, err);
	}
	return r;
}

static bool view_is_whole(struct home_index *ix)
{
	bool whole;

	pthread_mutex_lock(&ix->lock);
	whole = words_view_is_whole(ix->view);
	pthread_mutex_unlock(&ix->lock);
	return whole;
}

/* True when the log can say what happened since the index was written, and it is too large to be compared first. */
static bool can_follow(struct home_index *ix, uint64_t head)
{
	struct words_view *view = view_ref(ix);
	uint64_t files = 0;

	for (size_t i = 0; i < words_view_count(view); i++)
		files += words_segment_files(words_view_at(view, i));
	words_view_unref(view);
	return ix->revision && ix->revision <= head && files > SMALL_FILES;
}

/* Answers from the index as it was opened, and what the log says of it. The comparison comes later. */
static int follow_first(struct home_index *ix, struct ctx *ctx, uint64_t head, struct err *err)
{
	int64_t ago = index_stamp_age(ix->dir);
	int r = head > ix->revision ? take_revisions(ix, ctx, head, err) : 0;

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	ix->swept = true;
	pthread_mutex_lock(&ix->lock);
	ix->unswept = ago >= SWEEP_LATER_NS;
	ix->sweep_at = clock_monotonic_ns() + (ix->unswept ? 0 : SWEEP_LATER_NS - ago);
	pthread_mutex_unlock(&ix->lock);
	return 0;
}

static int catch_up(struct home_index *ix, struct ctx *ctx, struct err *err)
{
	uint64_t head;
	int r;

	if (ix->opened && !view_is_whole(ix)) { /* a file was truncated, so the view is of no use */
		set_view(ix, words_view_new(NULL, 0), 0);
		ix->opened = ix->swept = false;
		ix->revision = 0;
	}
	if (!ix->opened)
		open_dir(ix, ctx);
	ix->opened = true;
	if (search_own_moved(ix->ws, ctx, &ix->own_revision))
		ix->swept = false;
	r = revisions_head(workspace_shared(ix->ws), ctx, &head, err);
	if (r)
		return r;
	if (ix->swept && head > ix->revision) {
		r = take_revisions(ix, ctx, head, err);
		ix->swept = r != -ERR_NOT_FOUND;
		r = ix->swept ? r : 0;
	}
	if (!r && !ix->swept && ix->dir && !workspace_files_are_own(ix->ws) && can_follow(ix, head))
		r = follow_first(ix, ctx, head, err);
	if (!r && !ix->swept) {
		r = settled_head(ix, ctx, &head, err);
		if (!r)
			r = sweep(ix, ctx, true, err);
		ix->swept = !r;
		if (!r)
			ix->revision = head;
	}
	return r;
}

int home_index_view(struct workspace *ws, struct ctx *ctx, struct words_view **ret_view, struct str *ret_note,
		    struct err *err)
{
	struct home_index *ix = index_of(ws);
	int r;

	*ret_note = STR_NONE;
	pthread_mutex_lock(&ix->catching);
	r = catch_up(ix, ctx, err);
	if (!r)
		*ret_note = trouble_note(ix, ctx->arena);
	pthread_mutex_unlock(&ix->catching);
	if (r)
		return r;
	*ret_view = view_ref(ix);
	return 0;
}

static void forget_dir(struct arena *arena, const char *dir)
{
	struct index_manifest none = {0};
	int lock = index_lock(dir);

	unlink(arena_printf(arena, "%s/manifest", dir).ptr);
	index_sweep_dir(arena, dir, &none);
	index_drop_vectors(arena, dir);
	if (lock >= 0)
		close(lock);
}

void home_search_forget(struct workspace *ws)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct home_index *ix = index_of(ws);
	struct str parent = ix->dir ? str_of(ix->dir) : STR("");
	DIR *d;

	pthread_mutex_lock(&ix->lock);
	atomic_store(&ix->stop.requested, true); /* no new one starts */
	pthread_mutex_unlock(&ix->lock);
	if (ix->has_worker)
		pthread_join(ix->worker, NULL);
	ix->has_worker = false;
	pthread_mutex_lock(&ix->catching);
	set_view(ix, words_view_new(NULL, 0), 0);
	meaning_forget(ix->meaning);
	ix->opened = ix->swept = false;
	ix->revision = ix->disk_revision = ix->generation = 0;
	parent = str_first(parent, str_rfind_char(parent, '/'));
	d = ix->dir ? opendir(arena_cstr(arena, parent)) : NULL;
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			forget_dir(arena, arena_printf(arena, "%.*s/%s", STR_ARG(parent), e->d_name).ptr);
	if (d)
		closedir(d);
	atomic_store(&ix->stop.requested, false);
	pthread_mutex_unlock(&ix->catching);
}

static bool is_worth_writing(const struct home_index *ix)
{
	struct live live = live_of(ix->view, ix->disk);

	return live.docs >= CLOSE_FILES || live.bytes >= CLOSE_BYTES ||
	       (live.segments && ix->revision - ix->disk_revision > CLOSE_REVISIONS);
}

void home_index_close(void *state)
{
	struct home_index *ix = state;

	bool unswept;

	atomic_store(&ix->closing, true);
	pthread_mutex_lock(&ix->lock);
	unswept = ix->unswept;
	pthread_mutex_unlock(&ix->lock);
	if (!unswept)
		atomic_store(&ix->stop.requested, true);
	if (ix->has_worker)
		pthread_join(ix->worker, NULL);
	atomic_store(&ix->stop.requested, false);
	if (ix->dir && ix->opened && is_worth_writing(ix))
		flush(ix, 1, true);
	words_view_unref(ix->view);
	meaning_destroy(ix->meaning);
	while (ix->trouble_count)
		free(ix->troubles[--ix->trouble_count].path);
	store_destroy(ix->home);
	pthread_mutex_destroy(&ix->catching);
	pthread_mutex_destroy(&ix->lock);
	free(ix->names);
	free(ix->dir);
	free(ix);
}
