/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead list`: what workspaces there are and how large they are. Counting a workspace means listing it, so it is
 * bounded: past the ceiling the numbers are a lower bound and say so. One workspace that cannot be read is a line with
 * a problem, not the end of the list.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define COUNTED_FILES_MAX 200000
#define WORKSPACES_MAX    10000

static bool is_own(struct str path)
{
	return str_starts(path, STR(".stead/")) || str_starts(path, STR(".stead-wh/")) ||
	       str_starts(path, STR(FORK_GONE "/"));
}

int workspace_count(struct ctx *ctx, struct store *store, struct workspace_usage *ret, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct workspace_usage usage = {0};
	struct store_page page = {0};

	do {
		/* each page in an arena of its own: the walk needs the memory of one */
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx walk = *ctx;
		int r;

		walk.arena = arena;
		r = store_list(store, &walk, WPATH_ROOT, &req, &page, err);
		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			const struct store_entry *e = &page.entries[i];

			if (is_own(e->path.s))
				continue;
			usage.files++;
			usage.bytes += e->stat.size;
			if (e->stat.mtime_ns > usage.modified_ns)
				usage.modified_ns = e->stat.mtime_ns;
		}
		usage.partial = page.next.ptr && usage.files >= COUNTED_FILES_MAX;
		req.after = page.next.ptr ? arena_str(ctx->arena, page.next) : STR_NONE;
	} while (req.after.ptr && !usage.partial);
	*ret = usage;
	return 0;
}

/* A fork is counted by its own files; its configuration is read through it. */
static int describe_fork(struct ctx *ctx, struct store *base, struct str name, struct store **home, struct jv *line,
			 struct err *err)
{
	struct workspace_stores place = {.base = base};
	struct fork_info info;
	struct store *raw;
	bool is_fork;
	int r = fork_read(ctx, *home, &info, &is_fork, err);

	if (r || !is_fork)
		return r;
	jv_set_str(ctx->arena, line, "fork_of", info.parent);
	jv_set_int(ctx->arena, line, "fork_revision", (int64_t)info.revision);
	r = fork_open_raw(ctx, &place, name, &raw, err);
	if (r)
		return r;
	store_destroy(*home);
	*home = raw;
	return 0;
}

static struct jv *describe(struct ctx *ctx, struct store *base, struct str name)
{
	struct store *home = store_prefix_new(store_share(base), (struct wpath){name});
	struct jv *line = jv_object(ctx->arena);
	struct workspace_usage usage;
	struct config config;
	struct err err;

	jv_set_str(ctx->arena, line, "name", name);
	if (workspace_count(ctx, home, &usage, &err) == 0) {
		jv_set_int(ctx->arena, line, "files", (int64_t)usage.files);
		jv_set_int(ctx->arena, line, "bytes", (int64_t)usage.bytes);
		if (usage.files)
			jv_set_str(ctx->arena, line, "modified", clock_format_utc(ctx->arena, usage.modified_ns));
		if (usage.partial)
			jv_set_bool(ctx->arena, line, "partial", true);
	} else {
		jv_set_str(ctx->arena, line, "problem", err_text(ctx->arena, &err));
	}
	if (!jv_get(line, "problem") && (describe_fork(ctx, base, name, &home, line, &err) != 0 ||
					 workspace_load_config(ctx->arena, ctx, home, NULL, &config, &err) != 0))
		jv_set_str(ctx->arena, line, "problem", err_text(ctx->arena, &err));
	store_destroy(home);
	return line;
}

int workspace_names(struct ctx *ctx, struct store *base, struct jv *ret_good, struct jv *ret_bad, struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page;

	do {
		int r = store_list(base, ctx, WPATH_ROOT, &req, &page, err);

		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			struct str name = page.entries[i].path.s;

			if (page.entries[i].stat.kind != STORE_DIR || str_starts(name, STR(".")))
				continue;
			jv_push(ctx->arena, workspace_name_ok(name) ? ret_good : ret_bad, jv_str(ctx->arena, name));
		}
		req.after = page.next;
	} while (req.after.ptr && jv_count(ret_good) + jv_count(ret_bad) < WORKSPACES_MAX);
	return 0;
}

int workspace_list(struct ctx *ctx, struct str store_url, struct jv **ret_list, struct err *err)
{
	struct jv *list = jv_array(ctx->arena), *names = jv_array(ctx->arena), *bad_names = jv_array(ctx->arena);
	struct store *base;
	struct str dir;
	int r = workspace_open_store(ctx->arena, store_url, false, false, &base, &dir, err);

	if (r == -ERR_NOT_FOUND && dir.ptr) { /* no store yet: no workspaces yet */
		*ret_list = list;
		return 0;
	}
	if (r)
		return r;
	r = workspace_names(ctx, base, names, bad_names, err);
	for (const struct jv_member *m = jv_first(names); m && !r; m = m->next) {
		r = ctx_check(ctx, err);
		if (!r)
			jv_push(ctx->arena, list, describe(ctx, base, m->value->u.s));
	}
	for (const struct jv_member *m = jv_first(bad_names); m && !r; m = m->next) {
		struct jv *line = jv_object(ctx->arena);

		jv_set(ctx->arena, line, "name", m->value);
		jv_set_str(ctx->arena, line, "problem", STR("a workspace cannot have this name; rename the directory"));
		jv_push(ctx->arena, list, line);
	}
	store_destroy(base);
	if (!r)
		*ret_list = list;
	return r;
}
