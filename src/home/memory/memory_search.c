/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching memory. Each fact is a document of its own, so that a hit is a fact and not a file. Each hit is looked up
 * in its file again, in the part of it that the index names, which says whether the fact still holds and which line it
 * is on.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/memory/memory_internal.h"
#include "home/search/search.h"

#define HITS_MAX 100

/* --- files as documents --- */

static bool owns(struct wpath path)
{
	return str_is(path.s, MEMORY_PATH) || (str_starts(path.s, STR("memory/")) && str_ends(path.s, STR(".md")) &&
					       str_find(path.s, STR("/."), 0) == SIZE_MAX);
}

static int documents(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
		     void *arg, struct err *err)
{
	bool archived = str_starts(path.s, STR("memory/archive/")), facts = false;
	struct search_doc rest = {.title = wpath_name(path), .time_ns = mtime_ns, .archived = archived};
	struct parts parts = {0};
	struct buf other;

	(void)err;
	if (!str_starts(path.s, STR("memory/conversations/")))
		memory_parse(arena, bytes, &parts);
	buf_init(&other, arena, bytes.len + 1);
	for (size_t i = 0; i < parts.count; i++) {
		const struct fact *f = &parts.list[i].fact;
		struct str trust = str_of(memory_trust_name(f->trust));
		struct search_doc doc = {.id = f->id,
					 .body = f->text,
					 .kind = STR("fact"),
					 .author = jv_get_str(f->mark, "agent"),
					 .tags = &trust,
					 .tag_count = 1,
					 .time_ns = mtime_ns,
					 .archived = archived || f->superseded};

		if (!parts.list[i].is_fact) { /* headings say the same everywhere */
			if (parts.list[i].raw.ptr[0] != '#')
				buf_add(&other, parts.list[i].raw);
			continue;
		}
		clock_parse(f->at, &doc.time_ns);
		emit(arg, &doc);
		facts = true;
	}
	rest.body = facts ? str_trim(buf_str(&other)) : bytes;
	if (facts && rest.body.len)
		rest.id = STR("text");
	if (rest.body.len)
		emit(arg, &rest);
	return 0;
}

/* Each save adds a heading and facts below it. A conversation is one document. */
static enum search_line line_of(struct wpath path, struct str line)
{
	return str_starts(line, STR("## ")) && !str_starts(path.s, STR("memory/conversations/")) ? SEARCH_BEGINS
												 : SEARCH_WITHIN;
}

static const char *const places[] = {MEMORY_PATH, "memory", NULL};
const struct search_source memory_sources[] = {{"memory", places, owns, documents, line_of}, {0}};

/* --- searching --- */

/* A file from `offset` on, where line `line` begins. */
struct looked {
	struct str path;
	uint64_t offset, line;
	struct str bytes;
};

struct finding {
	struct workspace *ws;
	struct ctx *ctx;
	int64_t now;
	struct looked *files;
	size_t file_count;
	struct parts memory; /* MEMORY.md */
	struct str ids[HITS_MAX];
	size_t id_count;
};

#define PART_READ (24 * KIB) /* more than most parts have */

static int look(struct finding *f, const struct looked *at, uint64_t length, struct looked **ret, struct err *err)
{
	struct store_range range = {at->offset, length};
	int r;

	for (size_t i = 0; i < f->file_count; i++)
		if (str_eq(f->files[i].path, at->path) && f->files[i].offset == at->offset) {
			*ret = &f->files[i];
			return 0;
		}
	*ret = &f->files[f->file_count];
	**ret = *at;
	r = store_read(workspace_home(f->ws), f->ctx, (struct wpath){at->path}, range, FACT_FILE_MAX, &(*ret)->bytes,
		       NULL, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	f->file_count++;
	return 0;
}

static const struct part *part_of(const struct parts *parts, struct str id)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->list[i].is_fact && str_eq(parts->list[i].fact.id, id))
			return &parts->list[i];
	return NULL;
}

/* The fact with this id; its line is that in the file. */
static const struct part *fact_in(struct arena *arena, const struct looked *file, struct str id)
{
	struct part *found = ARENA_ARRAY(arena, struct part, 1);

	if (!memory_find(arena, file->bytes, id, found))
		return NULL;
	found->line += file->line - 1;
	return found;
}

static int find_fact(struct finding *f, const struct search_hit *hit, const struct part **ret, struct err *err)
{
	struct looked part = {hit->path, hit->offset, hit->line, STR_NONE}, whole = {hit->path, 0, 1, STR_NONE}, *file;
	int r = look(f, &part, PART_READ, &file, err);

	*ret = r ? NULL : fact_in(f->ctx->arena, file, hit->id);
	if (r || *ret)
		return r;
	f->file_count = 0; /* the part is longer, or the file has changed since */
	r = look(f, &whole, UINT64_MAX, &file, err);
	*ret = r ? NULL : fact_in(f->ctx->arena, file, hit->id);
	f->file_count = 0;
	return r;
}

static bool found_before(struct finding *f, struct str id)
{
	for (size_t i = 0; i < f->id_count; i++)
		if (str_eq(f->ids[i], id))
			return true;
	f->ids[f->id_count++] = id;
	return false;
}

/* The hit for programs; NULL: it is left out. */
static int match_of(struct finding *f, const struct search_hit *hit, bool all, struct jv **ret, struct err *err)
{
	struct arena *arena = f->ctx->arena;
	const struct part *part = NULL;
	int r = memory_id_is(hit->id) ? find_fact(f, hit, &part, err) : 0;

	*ret = NULL;
	if (r)
		return r;
	if (part) {
		const struct part *curated = part_of(&f->memory, hit->id);

		if (found_before(f, hit->id))
			return 0;
		/* MEMORY.md knows best what became of a fact */
		if (!all && (!memory_holds(&part->fact, f->now) || (curated && !memory_holds(&curated->fact, f->now)) ||
			     memory_is_superseded(&f->memory, hit->id)))
			return 0;
		*ret = curated ? memory_value(arena, curated, STR(MEMORY_PATH), f->now)
			       : memory_value(arena, part, hit->path, f->now);
	} else {
		*ret = jv_object(arena);
		jv_set_str(arena, *ret, "path", hit->path);
		jv_set_int(arena, *ret, "line", 1);
		jv_set_str(arena, *ret, "text", hit->snippet);
	}
	jv_set_str(arena, *ret, "snippet", hit->snippet);
	jv_set(arena, *ret, "score", jv_real(arena, hit->score));
	return 0;
}

int memory_search(struct workspace *ws, struct ctx *ctx, struct str query, size_t limit, bool all, struct jv **ret,
		  struct err *err)
{
	struct search_query q = {
		.text = query, .areas = search_area(STR("memory")), .with_archived = all, .limit = HITS_MAX};
	struct finding f = {.ws = ws, .ctx = ctx, .now = clock_real_ns()};
	struct search_hits hits;
	struct jv *matches = jv_array(ctx->arena), *match;
	struct str bytes;
	int r = home_search(ws, ctx, &q, &hits, err);

	if (r)
		return r;
	f.files = ARENA_ARRAY(ctx->arena, struct looked, hits.count + 1);
	r = memory_read(ws, ctx, STR(MEMORY_PATH), &bytes, NULL, err);
	if (r == 0)
		memory_parse(ctx->arena, bytes, &f.memory);
	for (size_t i = 0; r == 0 && i < hits.count && jv_count(matches) < limit; i++) {
		r = match_of(&f, &hits.hits[i], all, &match, err);
		if (r == 0 && match)
			jv_push(ctx->arena, matches, match);
	}
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "matches", matches);
	jv_set_int(ctx->arena, *ret, "total", (int64_t)jv_count(matches));
	if (hits.note.len)
		jv_set_str(ctx->arena, *ret, "note", hits.note);
	return 0;
}
