/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of notebook tests: a workspace in memory or on disk, opened for agents and users. */
#ifndef STEAD_TESTS_NOTEBOOK_FIX_H
#define STEAD_TESTS_NOTEBOOK_FIX_H

#include "temp_dir.h"

#include "base/clock.h"
#include "home/notebook/notebook.h"
#include "home/notebook/notebook_internal.h"

struct desk {
	struct arena *arena;
	struct ctx ctx;
	struct workspace *ws;
	struct notebook *nb;
	struct err err;
};

static void desk_start(struct desk *d, const struct workspace_opts *opts)
{
	*d = (struct desk){.arena = arena_new()};
	test_defer(arena_destroy, d->arena);
	d->ctx.arena = d->arena;
	CHECK_OK(workspace_open(opts, &d->ws, &d->err), d->err);
	test_defer(workspace_close, d->ws);
	d->nb = workspace_notebook(d->ws);
}

static void desk_open(struct desk *d, const char *url, const char *agent, const char *user)
{
	struct workspace_opts opts = {.store_url = str_of(url),
				      .name = STR("test"),
				      .agent = str_of(agent),
				      .user = str_of(user),
				      .create = true,
				      .relaxed = true};

	desk_start(d, &opts);
}

static void desk_close(struct desk *d)
{
	test_close(d->ws);
	test_close(d->arena);
}

__attribute__((unused)) static struct note wrote(struct desk *d, struct str title, struct str body)
{
	struct note_new in = {.title = title, .body = body};
	struct note n;

	CHECK_OK(notebook_add(d->nb, &d->ctx, &in, &n, &d->err), d->err);
	return n;
}

__attribute__((unused)) static struct note reads(struct desk *d, struct str ref)
{
	struct note n;

	CHECK_OK(notebook_read(d->nb, &d->ctx, ref, &n, &d->err), d->err);
	return n;
}

__attribute__((unused)) static struct note_list lists(struct desk *d, struct note_query query)
{
	struct note_list list;

	CHECK_OK(notebook_list(d->nb, &d->ctx, &query, &list, &d->err), d->err);
	return list;
}

/* A new directory, as a store URL. */
__attribute__((unused)) static const char *disk_new(char url[80])
{
	snprintf(url, 80, "disk:%s", temp_dir_new());
	return url;
}

__attribute__((unused)) static void put_file(struct desk *d, const char *path, struct str bytes)
{
	struct wpath p;

	CHECK_OK(wpath_parse(str_of(path), &p, &d->err), d->err);
	CHECK_OK(store_write(workspace_home(d->ws), &d->ctx, p, bytes, (struct store_cond){0}, NULL, &d->err), d->err);
}

#endif
