/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/workspaces: what there is for the holder of a token, and new ones. */
#include "base/limits.h"
#include "server/server_internal.h"
#include "store/stores.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define LIMIT_DEFAULT 1000

/* Adds what the workspace is a fork of. A workspace that cannot be read is listed all the same. */
static void add_parent(struct exchange *x, struct str name, struct jv *one)
{
	struct ctx ctx = exchange_ctx(x);
	struct fork_info info;
	struct store *home;
	struct err err;
	bool is_fork = false;

	home = store_prefix_new(store_share(call_of(x)->serve->base), (struct wpath){name});
	if (fork_read(&ctx, home, &info, &is_fork, &err) == 0 && is_fork) {
		if (grant_covers_workspace(&call_of(x)->grant, info.parent))
			jv_set_str(x->arena, one, "fork_of", info.parent);
		jv_set_int(x->arena, one, "fork_revision", (int64_t)info.revision);
	}
	store_destroy(home);
}

static void write_page(struct exchange *x, const struct store_page *page, bool forks)
{
	const struct grant *grant = &call_of(x)->grant;
	struct jv *list = jv_array(x->arena), *v = jv_object(x->arena);

	for (size_t i = 0; i < page->count; i++) {
		struct str name = page->entries[i].path.s;
		struct jv *one;

		if (page->entries[i].stat.kind != STORE_DIR || !workspace_name_ok(name) ||
		    !grant_covers_workspace(grant, name))
			continue;
		one = jv_object(x->arena);
		jv_set_str(x->arena, one, "name", name);
		if (forks)
			add_parent(x, name, one);
		jv_push(x->arena, list, one);
	}
	jv_set(x->arena, v, "workspaces", list);
	jv_set(x->arena, v, "next", page->next.ptr ? jv_str(x->arena, page->next) : jv_null(x->arena));
	answer_json(x, 200, v);
}

void run_workspaces(struct exchange *x)
{
	struct serve *s = x->arg;
	struct ctx ctx = exchange_ctx(x);
	struct store_list_req req = {0};
	struct store_page page = {0};
	uint64_t limit = LIMIT_DEFAULT;
	struct err err;
	bool found, forks = false;
	int r = query_number(x->arena, x->query, "limit", STORE_PAGE_MAX, &limit, &err);

	if (r == 0)
		r = query_get(x->arena, x->query, "cursor", &req.after, &found, &err);
	if (r == 0)
		r = query_flag(x->arena, x->query, "forks", &forks, &err);
	req.limit = limit ? (size_t)limit : 1;
	if (r == 0)
		r = store_list(s->base, &ctx, WPATH_ROOT, &req, &page, &err);
	if (r)
		answer_error(x, &err);
	else
		write_page(x, &page, forks);
}

/* One that does not exist was refused before. */
void run_workspace_get(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct jv *v = jv_object(x->arena);

	jv_set_str(x->arena, v, "name", call->workspace);
	add_parent(x, call->workspace, v);
	answer_json(x, 200, v);
}

void run_workspace_put(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct init_opts opts = {.store_url = call->serve->opts.store_url, .name = call->workspace};
	struct jv *ignored, *v = jv_object(x->arena);
	struct err err;
	int r = workspace_init(&ctx, &opts, &ignored, &err);

	if (r && r != -ERR_EXISTS) {
		answer_error(x, &err);
		return;
	}
	jv_set_str(x->arena, v, "name", call->workspace);
	jv_set_bool(x->arena, v, "created", r == 0);
	answer_json(x, r ? 200 : 201, v);
}
