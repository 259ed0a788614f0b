/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storage of parked results. The store is the only state (memory has a copy of when the sweep last ran), so two
 * processes see the same list and a restart loses nothing. The time of an artifact is in its id: listing and sweeping
 * need one list of names and no reads. A whole id leads straight to its file. The random part makes ids unique without
 * any coordination, and the write is still conditional on absence, so that even a repeated number could not destroy an
 * older result.
 */
#include "home/artifacts/artifacts.h"

#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/files/files.h"

#define AREA         "artifacts"
#define SWEPT        ".swept" /* has the time of the last sweep by any process */
#define NS_PER_S     INT64_C(1000000000)
#define SWEEP_NS     (3600 * NS_PER_S)
#define TOOL_LEN_MAX ((size_t)60)
/* "_YYYYMMDD_HHMMSS_" and 16 hex digits */
#define STAMP_LEN ((size_t)33)

struct artifacts {
	struct store *home;
	struct offload_config offload;
	_Atomic int64_t swept_ns; /* 0: not yet */
	atomic_bool has_ignore, has_stamp;
};

void offload_read(const struct jv *document, struct offload_config *ret)
{
	const struct jv *offload = jv_get(document, "tool_offload");

	*ret = (struct offload_config){
		.enabled = jv_get_bool(offload, "enabled", true),
		.threshold_tokens = (uint64_t)jv_get_int(offload, "threshold_tokens", 500),
		.max_preview_tokens = (uint64_t)jv_get_int(offload, "max_preview_tokens", 150),
		.max_preview_lines = (uint64_t)jv_get_int(offload, "max_preview_lines", 10),
		.retention_days = (uint64_t)jv_get_int(offload, "retention_days", 7),
	};
	if (!config_size(jv_get(offload, "threshold_bytes"), 2000, &ret->threshold_bytes))
		ret->threshold_bytes = UINT64_MAX;
}

struct artifacts *artifacts_new(struct store *home, const struct offload_config *offload)
{
	struct artifacts *a = xcalloc(1, sizeof(*a));

	a->home = home;
	a->offload = *offload;
	return a;
}

void artifacts_destroy(struct artifacts *a)
{
	free(a);
}

struct store *artifacts_store(struct artifacts *a)
{
	return a->home;
}

bool artifacts_too_large(const struct artifacts *a, struct str text)
{
	if (!a->offload.enabled)
		return false;
	return text.len > a->offload.threshold_bytes || tokens_estimate(text) > a->offload.threshold_tokens;
}

static struct wpath area_path(struct arena *arena, struct str name, const char *suffix)
{
	return (struct wpath){arena_printf(arena, AREA "/%.*s%s", STR_ARG(name), suffix)};
}

static const char *extension(struct arena *arena, struct str text)
{
	struct str body = str_trim(text);
	struct jv *parsed;
	struct err ignored;

	if (body.len && (body.ptr[0] == '{' || body.ptr[0] == '[') && jv_parse(arena, body, &parsed, &ignored) == 0)
		return ".json";
	return body.len && body.ptr[0] == '<' ? ".xml" : ".txt";
}

static struct str make_id(struct arena *arena, struct str tool, int64_t now_ns)
{
	time_t t = (time_t)(now_ns / NS_PER_S);
	char stamp[32], hex[16], *name;
	struct tm tm;
	size_t n;

	gmtime_r(&t, &tm);
	n = strftime(stamp, sizeof(stamp), "%Y%m%d_%H%M%S", &tm);
	hex_u64(random_u64(), hex);
	tool = str_first(tool.len ? tool : STR("result"), TOOL_LEN_MAX);
	name = (char *)arena_str(arena, tool).ptr;
	for (size_t i = 0; i < tool.len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
			name[i] = '_';
	}
	return arena_printf(arena, "%s_%.*s_%.16s", name, (int)n, stamp, hex);
}

/* The time in an id, or false when it is not one of ours. */
static bool id_time(struct str id, int64_t *ret_ns)
{
	struct str s = str_from(id, id.len > STAMP_LEN ? id.len - STAMP_LEN : 0);
	const char *d = s.ptr + 1, *t = d + 9;
	char text[24];

	if (id.len <= STAMP_LEN || s.ptr[0] != '_' || s.ptr[9] != '_' || s.ptr[16] != '_')
		return false;
	snprintf(text, sizeof(text), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", d, d + 4, d + 6, t, t + 2, t + 4);
	return clock_parse(str_of(text), ret_ns);
}

/* The first lines; when those are still too many tokens, a part of them by length. */
static void make_preview(const struct offload_config *o, struct str text, struct parked *ret)
{
	struct str rest = text, preview;
	uint64_t lines = 0, tokens;

	while (lines < o->max_preview_lines && rest.len) {
		size_t n = str_find_char(rest, '\n');

		rest = str_from(rest, n + (n < rest.len));
		lines++;
	}
	preview = str_first(text, text.len - rest.len);
	tokens = tokens_estimate(preview);
	while (tokens > o->max_preview_tokens && preview.len) {
		size_t keep = (size_t)((double)preview.len * (double)o->max_preview_tokens / (double)tokens);

		preview = utf8_first(preview, keep < preview.len ? keep : preview.len - 1);
		tokens = tokens_estimate(preview);
	}
	ret->lines_left = count_lines(text) - (preview.len ? count_lines(preview) : 0);
	ret->preview_tokens = tokens;
	ret->preview = preview;
}

static int write_meta(struct artifacts *a, struct ctx *ctx, struct str tool, const struct jv *args, int64_t now_ns,
		      const struct parked *p, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *meta = jv_object(arena), *custom = jv_object(arena);
	struct buf buf;

	jv_set_str(arena, meta, "artifact_id", p->id);
	jv_set_str(arena, meta, "tool_name", tool);
	jv_set_int(arena, meta, "original_tokens", (int64_t)p->tokens);
	jv_set_int(arena, meta, "original_bytes", (int64_t)p->bytes);
	jv_set_str(arena, meta, "timestamp", clock_format_utc(arena, now_ns));
	jv_set(arena, custom, "args", args ? jv_copy(arena, args) : jv_object(arena));
	if (ctx->actor.session.len)
		jv_set_str(arena, custom, "session_id", ctx->actor.session);
	jv_set(arena, meta, "custom", custom);
	buf_init(&buf, arena, 1 * MIB);
	jv_write_pretty(&buf, meta);
	return store_write(a->home, ctx, area_path(arena, p->id, ".meta.json"), buf_str(&buf), (struct store_cond){0},
			   NULL, err);
}

/* A person who keeps the workspace in git does not want parked results in it. */
static void write_ignore(struct artifacts *a, struct ctx *ctx)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct err ignored;

	if (!atomic_exchange(&a->has_ignore, true))
		(void)store_write(a->home, ctx, area_path(ctx->arena, STR(".gitignore"), ""), STR("*\n!.gitignore\n"),
				  absent, NULL, &ignored);
}

/* Cuts ".txt" and the like; false for side files and what is not an artifact. */
static bool artifact_of(const struct store_entry *e, struct artifact *ret)
{
	struct str name = wpath_name(e->path);
	size_t dot = str_rfind_char(name, '.');
	struct str suffix = str_from(name, dot);

	if (e->stat.kind != STORE_FILE || str_ends(name, STR(".meta.json")))
		return false;
	if (!str_is(suffix, ".txt") && !str_is(suffix, ".json") && !str_is(suffix, ".xml"))
		return false;
	*ret = (struct artifact){.id = str_first(name, dot), .file = name, .size = e->stat.size};
	return id_time(ret->id, &ret->time_ns);
}

static int newer_first(const void *x, const void *y)
{
	const struct artifact *a = x, *b = y;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return str_cmp(a->id, b->id);
}

int artifacts_list(struct artifacts *a, struct ctx *ctx, struct artifact **ret_list, size_t *ret_count, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct artifact *list = NULL;
	size_t count = 0, cap = 0;
	struct store_page page;

	do {
		int r = store_list(a->home, ctx, (struct wpath){STR(AREA)}, &req, &page, err);

		if (r && err->kind == ERR_NOT_FOUND)
			break; /* nothing was ever parked */
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			if (count == cap) {
				size_t bytes = cap * sizeof(*list);

				cap = cap ? 2 * cap : 64;
				list = arena_grow(ctx->arena, list, bytes, cap * sizeof(*list));
			}
			count += artifact_of(&page.entries[i], &list[count]);
		}
		req.after = page.next;
	} while (page.next.ptr);
	if (count)
		qsort(list, count, sizeof(*list), newer_first);
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* The file of a whole id, without a list. ERR_NOT_FOUND: it is not a whole id, or there is no such artifact. */
static int find_whole(struct artifacts *a, struct ctx *ctx, struct str id, struct wpath *ret_path, struct err *err)
{
	static const char *const suffixes[] = {".txt", ".json", ".xml"};
	int64_t time_ns;
	int r = -ERR_NOT_FOUND;

	if (id.len > TOOL_LEN_MAX + STAMP_LEN || !id_time(id, &time_ns) || str_find_char(id, '/') < id.len)
		return r;
	for (size_t i = 0; r == -ERR_NOT_FOUND && i < COUNT(suffixes); i++) {
		struct store_stat stat;

		r = wpath_parse(area_path(ctx->arena, id, suffixes[i]).s, ret_path, err);
		if (r)
			return -ERR_NOT_FOUND;
		r = store_stat(a->home, ctx, *ret_path, &stat, err);
		if (r == 0 && stat.kind != STORE_FILE)
			r = -ERR_NOT_FOUND;
	}
	return r;
}

int artifacts_find(struct artifacts *a, struct ctx *ctx, struct str id, struct wpath *ret_path, struct str *ret_id,
		   struct err *err)
{
	struct artifact *list;
	size_t count, hits = 0, at = 0;
	int r = find_whole(a, ctx, id, ret_path, err);

	*ret_id = id;
	if (r == -ERR_NOT_FOUND)
		r = artifacts_list(a, ctx, &list, &count, err);
	else
		return r;
	if (r)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (!str_starts(list[i].id, id) || id.len == 0)
			continue;
		hits++;
		at = i;
		if (list[i].id.len == id.len) {
			hits = 1;
			break;
		}
	}
	if (hits == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no artifact \"%.*s\"; list_artifacts shows what there is",
			       STR_ARG(utf8_first(id, 100)));
	if (hits > 1)
		return err_set(err, ERR_INVALID, "%zu artifacts begin with \"%.*s\"; give more of the id", hits,
			       STR_ARG(utf8_first(id, 100)));
	*ret_path = area_path(ctx->arena, list[at].file, "");
	*ret_id = list[at].id;
	return 0;
}

const struct jv *artifacts_meta(struct artifacts *a, struct ctx *ctx, struct str id)
{
	struct err ignored;
	struct str text;
	struct jv *meta;

	if (store_read(a->home, ctx, area_path(ctx->arena, id, ".meta.json"), STORE_WHOLE, 1 * MIB, &text, NULL,
		       &ignored) ||
	    jv_parse(ctx->arena, text, &meta, &ignored) || meta->type != JV_OBJECT)
		return NULL;
	return meta;
}

/* When any process last swept; 0: none has. */
static int64_t last_sweep(struct artifacts *a, struct ctx *ctx)
{
	struct str text;
	struct err ignored;
	int64_t last = atomic_load(&a->swept_ns);

	if (last == 0 &&
	    store_read(a->home, ctx, area_path(ctx->arena, STR(SWEPT), ""), STORE_WHOLE, KIB, &text, NULL, &ignored) ==
		    0 &&
	    clock_parse(str_trim(text), &last)) {
		atomic_store(&a->swept_ns, last);
		atomic_store(&a->has_stamp, true);
	}
	return last;
}

/* Tells other processes when the last sweep was. */
static void write_stamp(struct artifacts *a, struct ctx *ctx)
{
	struct str time = clock_format_utc(ctx->arena, atomic_load(&a->swept_ns));
	struct err ignored;

	if (!atomic_exchange(&a->has_stamp, true))
		(void)store_write(a->home, ctx, area_path(ctx->arena, STR(SWEPT), ""),
				  arena_printf(ctx->arena, "%.*s\n", STR_ARG(time)), (struct store_cond){0}, NULL,
				  &ignored);
}

void artifacts_sweep(struct artifacts *a, struct ctx *ctx)
{
	int64_t now = clock_real_ns(), last;
	int64_t keep_ns = (int64_t)a->offload.retention_days * 86400 * NS_PER_S;
	struct artifact *list;
	struct err ignored;
	size_t count;

	if (a->offload.retention_days == 0)
		return;
	last = last_sweep(a, ctx);
	if (last && now - last < SWEEP_NS && now >= last)
		return;
	if (!atomic_compare_exchange_strong(&a->swept_ns, &last, now))
		return;                     /* another call is at it */
	atomic_store(&a->has_stamp, false); /* the next one that is parked writes it */
	if (artifacts_list(a, ctx, &list, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++) {
		if (now - list[i].time_ns <= keep_ns)
			continue;
		(void)store_remove(a->home, ctx, area_path(ctx->arena, list[i].file, ""), false, (struct store_cond){0},
				   NULL, &ignored);
		(void)store_remove(a->home, ctx, area_path(ctx->arena, list[i].id, ".meta.json"), false,
				   (struct store_cond){0}, NULL, &ignored);
	}
}

int artifacts_park(struct artifacts *a, struct ctx *ctx, struct str tool_name, const struct jv *args, struct str text,
		   struct parked *ret, struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	int64_t now_ns = clock_real_ns();
	struct parked p = {.tokens = tokens_estimate(text), .bytes = text.len};
	const char *suffix = extension(ctx->arena, text);
	int r;

	if (text.len > TOOL_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "park a result of %zu bytes: at most %zu can be parked; write it to a file", text.len,
			       TOOL_FILE_MAX);
	make_preview(&a->offload, text, &p);
	artifacts_sweep(a, ctx);
	write_ignore(a, ctx);
	if (a->offload.retention_days)
		write_stamp(a, ctx);
	do {
		p.id = make_id(ctx->arena, tool_name, now_ns);
		r = store_write(a->home, ctx, area_path(ctx->arena, p.id, suffix), text, absent, NULL, err);
	} while (r && err->kind == ERR_EXISTS);
	if (r == 0)
		r = write_meta(a, ctx, tool_name, args, now_ns, &p, err);
	if (r == 0)
		*ret = p;
	return r;
}

void parked_block(struct buf *text, struct str tool_name, const struct parked *p)
{
	buf_printf(text,
		   "[TOOL RESPONSE OFFLOADED]\nTool: %.*s\nArtifact ID: %.*s\nOriginal: %llu tokens, %llu bytes\n"
		   "Preview: %llu tokens (%llu saved)\n--- preview ---\n",
		   STR_ARG(tool_name), STR_ARG(p->id), (unsigned long long)p->tokens, (unsigned long long)p->bytes,
		   (unsigned long long)p->preview_tokens,
		   (unsigned long long)(p->tokens > p->preview_tokens ? p->tokens - p->preview_tokens : 0));
	buf_add(text, p->preview);
	if (p->preview.len && p->preview.ptr[p->preview.len - 1] != '\n')
		buf_char(text, '\n');
	if (p->lines_left)
		buf_printf(text, "[%llu more line%s]\n", (unsigned long long)p->lines_left, plural(p->lines_left));
	buf_printf(text,
		   "--- end of preview ---\nRead it with read_artifact(artifact_id=\"%.*s\"), or search_artifact or "
		   "tail_artifact.",
		   STR_ARG(p->id));
}

int artifacts_offload(struct artifacts *a, struct ctx *ctx, struct str tool_name, const struct jv *args,
		      struct str *text, struct err *err)
{
	struct parked p;
	struct buf block;
	int r;

	if (!artifacts_too_large(a, *text))
		return 0;
	r = artifacts_park(a, ctx, tool_name, args, *text, &p, err);
	if (r)
		return r;
	buf_init(&block, ctx->arena, TOOL_TEXT_MAX);
	parked_block(&block, tool_name, &p);
	*text = buf_str(&block);
	return 0;
}
