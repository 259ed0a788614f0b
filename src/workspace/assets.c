/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower layer of a user's overlay: what people wrote for everybody (identity, knowledge, skills, …) and nothing
 * else. It is a list of what may be seen, not of what may not: a file that someone adds to the workspace tomorrow, or
 * another user's part, is not seen unless it is named here.
 *
 * It is only ever read, so it has no operation that changes anything.
 */
#include "base/limits.h"
#include "workspace/workspace_parts.h"

/* In the order of lists. */
static const struct asset {
	struct str name;
	enum store_kind kind;
	bool of_user; /* a directory that is named after a user may have it, too */
} assets[] = {
	{STR("AGENT.md"), STORE_FILE, false},   {STR("AGENTS.md"), STORE_FILE, false},
	{STR("SOUL.md"), STORE_FILE, false},    {STR("USER.md"), STORE_FILE, false},
	{STR("agent.yaml"), STORE_FILE, false}, {STR("crons"), STORE_DIR, false},
	{STR("knowledge"), STORE_DIR, false},   {STR("skills"), STORE_DIR, true},
	{STR("subagents"), STORE_DIR, true},    {STR("tools.json"), STORE_FILE, false},
	{STR("tools"), STORE_DIR, false},
};
#define ASSETS COUNT(assets)

struct assets {
	struct store store;
	bool of_user;
};

static bool is_shown(struct wpath path, bool of_user)
{
	struct str first = str_first(path.s, str_find_char(path.s, '/'));

	for (size_t i = 0; i < ASSETS; i++)
		if (str_eq(first, assets[i].name))
			return assets[i].of_user || !of_user;
	return wpath_is_root(path);
}

bool workspace_may_be_asset(struct wpath path)
{
	return is_shown(path, false);
}

static bool shows(const struct store *s, struct wpath path)
{
	return is_shown(path, ((const struct assets *)s)->of_user);
}

static int not_here(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no such file or directory");
}

static int assets_stat(struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret_stat,
		       struct err *err)
{
	struct store_call call = {.op = STORE_OP_STAT, .path = path, .ret_stat = ret_stat};

	return shows(s, path) ? store_forward(s->inner, ctx, &call, err) : not_here(err);
}

static int assets_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range,
		       const struct sink *sink, struct store_stat *ret_stat, struct err *err)
{
	struct store_call call = {
		.op = STORE_OP_READ, .path = path, .range = range, .sink = sink, .ret_stat = ret_stat};

	return shows(s, path) ? store_forward(s->inner, ctx, &call, err) : not_here(err);
}

/* Adds the asset itself to the page, if it exists, has the right kind, and comes after the cursor. */
static int add_one(struct store *inner, struct ctx *ctx, const struct asset *asset, struct str after,
		   struct store_page *page, struct err *err)
{
	struct str key =
		asset->kind == STORE_DIR ? arena_printf(ctx->arena, "%.*s/", STR_ARG(asset->name)) : asset->name;
	struct store_entry *entry = &page->entries[page->count];
	int r;

	if (after.len && str_cmp(key, after) <= 0)
		return 0;
	r = store_stat(inner, ctx, (struct wpath){asset->name}, &entry->stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	entry->path = (struct wpath){asset->name};
	page->count += entry->stat.kind == asset->kind;
	return 0;
}

/* Adds the files of a directory asset that come after the cursor, as far as there is room. */
static int add_below(struct store *inner, struct ctx *ctx, const struct asset *asset, struct store_list_req req,
		     struct store_page *page, struct err *err)
{
	struct str dir = arena_printf(ctx->arena, "%.*s/", STR_ARG(asset->name));
	struct store_page part;
	int r;

	if (!str_starts(req.after, dir)) {
		if (req.after.len && str_cmp(dir, req.after) < 0)
			return 0;
		req.after = STR_NONE;
	}
	req.limit -= page->count;
	r = store_list(inner, ctx, (struct wpath){asset->name}, &req, &part, err);
	if (r) /* a file of that name is not the asset */
		return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
	memcpy(page->entries + page->count, part.entries, part.count * sizeof *part.entries);
	page->count += part.count;
	page->skipped += part.skipped;
	if (part.next.ptr)
		page->next = part.next;
	return 0;
}

static int list_root(struct store *s, struct ctx *ctx, const struct store_list_req *req, struct store_page *ret_page,
		     struct err *err)
{
	struct store_page page = {.entries = ARENA_ARRAY(ctx->arena, struct store_entry, req->limit + ASSETS)};

	for (size_t i = 0; i < ASSETS && !page.next.ptr; i++) {
		int r;

		if (!shows(s, (struct wpath){assets[i].name}))
			continue;
		if (page.count >= req->limit) { /* the next asset may be there or not: the next page will tell */
			page.next = page.entries[page.count - 1].path.s;
			if (page.entries[page.count - 1].stat.kind == STORE_DIR)
				page.next = arena_printf(ctx->arena, "%.*s/", STR_ARG(page.next));
			break;
		}
		if (req->recursive && assets[i].kind == STORE_DIR)
			r = add_below(s->inner, ctx, &assets[i], *req, &page, err);
		else
			r = add_one(s->inner, ctx, &assets[i], req->after, &page, err);
		if (r)
			return r;
	}
	*ret_page = page;
	return 0;
}

static int assets_list(struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
		       struct store_page *ret_page, struct err *err)
{
	struct store_call call = {.op = STORE_OP_LIST, .path = path, .list = req, .ret_page = ret_page};

	if (wpath_is_root(path))
		return list_root(s, ctx, req, ret_page, err);
	return shows(s, path) ? store_forward(s->inner, ctx, &call, err) : not_here(err);
}

static void assets_destroy(struct store *s)
{
	free(s);
}

static const struct store_ops assets_ops = {
	.name = "assets",
	.stat = assets_stat,
	.read = assets_read,
	.list = assets_list,
	.destroy = assets_destroy,
};

struct store *workspace_assets_new(struct store *inner, bool of_user)
{
	struct assets *s = xcalloc(1, sizeof *s);

	*s = (struct assets){.store = {.ops = &assets_ops, .inner = inner}, .of_user = of_user};
	return &s->store;
}
