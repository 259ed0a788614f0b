/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of the person's own (--files) in the index. It has a log of its own and is changed by other programs most
 * of the time, so the index does not follow that log: when its head has moved, the files are compared by version, as
 * they are every few seconds anyway. What Git ignores is left out, so that a search finds what the person wrote.
 */
#include "find/find.h"
#include "home/search/search_internal.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "workspace/workspace_parts.h"

struct store *search_home_new(struct workspace *ws)
{
	struct store *home = store_share(workspace_home(ws));
	struct store_mount own = {.at = {STR(OWN_FILES)}, .read_only = true};

	if (workspace_files_are_own(ws)) {
		own.store = store_share(workspace_files(ws));
		home = store_mounts_new(home, &own, 1);
	}
	return store_guard_new(home, &guard_defaults);
}

struct walk {
	struct workspace *ws;
	struct ctx *ctx;
	search_own_emit emit;
	void *arg;
};

static int visit(void *arg, struct str path, struct err *err)
{
	struct walk *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *w->ctx;
	struct store_entry entry;
	int r;

	ctx.arena = arena;
	r = store_stat(workspace_files(w->ws), &ctx, (struct wpath){path}, &entry.stat, err);
	if (r == 0 && entry.stat.kind == STORE_FILE) {
		entry.path = (struct wpath){arena_printf(arena, OWN_FILES "/%.*s", STR_ARG(path))};
		w->emit(w->arg, &entry);
	}
	return r == -ERR_NOT_FOUND || r == -ERR_DENIED ? 0 : r;
}

int search_own_walk(struct workspace *ws, struct ctx *ctx, search_own_emit emit, void *arg, struct err *err)
{
	struct glob_req req = {.pattern = STR("**"), .use_ignore = true, .limit = UINT64_MAX};
	struct walk w = {ws, ctx, emit, arg};
	struct glob_result found;

	return find_glob(workspace_files(ws), ctx, &req, visit, &w, &found, err);
}

bool search_own_moved(struct workspace *ws, struct ctx *ctx, uint64_t *head)
{
	uint64_t now, before = *head;
	struct err ignored;

	if (!workspace_files_are_own(ws) || revisions_head(workspace_revisions(ws), ctx, &now, &ignored))
		return false;
	*head = now;
	return now != before;
}

struct str search_own_path(const struct workspace *ws, struct str path)
{
	struct wpath area = {STR(OWN_FILES)};

	if (!workspace_files_are_own(ws) || !wpath_within((struct wpath){path}, area))
		return STR_NONE;
	return wpath_relative((struct wpath){path}, area).s;
}

struct str search_own_under(struct workspace *ws, struct ctx *ctx, struct str under)
{
	struct store_stat stat;
	struct err ignored;

	if (!under.len || !workspace_files_are_own(ws) ||
	    store_stat(workspace_files(ws), ctx, (struct wpath){under}, &stat, &ignored))
		return under;
	return arena_printf(ctx->arena, OWN_FILES "/%.*s", STR_ARG(under));
}
