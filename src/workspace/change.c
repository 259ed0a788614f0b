/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of files that mostly grow. store_change() writes the whole file again, and history keeps each whole. Where
 * what comes out only adds to the end of what was there, an append says the same, and costs what was added.
 */
#include <time.h>

#include "base/clock.h"
#include "store/stores.h"
#include "workspace/workspace_parts.h"

#define TRIES_MAX 1000

/* Others got ahead: after a few tries at once, a short random pause lets one of us through. */
static void back_off(unsigned tries)
{
	struct timespec pause = {.tv_nsec = (long)(random_u64() % (20000u * (tries < 500 ? tries + 1 : 500)))};

	if (tries > 3)
		nanosleep(&pause, NULL);
}

static int change_once(struct store *home, struct ctx *ctx, struct wpath path, const struct store_change *change,
		       struct workspace_changed *ret, struct err *err)
{
	struct store_cond cond = {.kind = STORE_ABSENT};
	int r = store_change(home, ctx, path, change, &ret->before, &ret->after, &ret->stat, err);

	if (r || !ret->after.ptr)
		return r;
	if (ret->after.len > change->max)
		return err_set(err, ERR_TOO_LARGE, "%.*s would have more than %zu bytes", STR_ARG(path.s), change->max);
	if (ret->stat.kind)
		cond = (struct store_cond){.kind = STORE_VERSION, .version = ret->stat.version};
	if (ret->before.len && str_starts(ret->after, ret->before))
		r = store_append(home, ctx, path, str_from(ret->after, ret->before.len), cond, &ret->stat, err);
	else
		r = store_write(home, ctx, path, ret->after, cond, &ret->stat, err);
	return r == -ERR_EXISTS || (r == -ERR_NOT_FOUND && ret->before.ptr) ? -ERR_CONFLICT : r;
}

int workspace_change(struct workspace *ws, struct ctx *ctx, struct wpath path, const struct store_change *change,
		     struct workspace_changed *ret, struct err *err)
{
	struct store_change look = *change;

	look.dry_run = true;
	for (unsigned tries = 0;; tries++) {
		int r = change_once(workspace_home(ws), ctx, path, &look, ret, err);

		if (r != -ERR_CONFLICT || tries == TRIES_MAX)
			return r;
		r = ctx_check(ctx, err);
		if (r)
			return r;
		back_off(tries);
	}
}

struct derived {
	struct workspace *ws;
	struct ctx *ctx;
	struct wpath path;
	struct str text;
	struct store_cond cond;
};

static int write_derived(void *arg, struct err *err)
{
	struct derived *d = arg;

	return store_write(workspace_unrecorded(d->ws), d->ctx, d->path, d->text, d->cond, NULL, err);
}

int workspace_write_derived(struct workspace *ws, struct ctx *ctx, struct wpath path, struct str text,
			    struct store_cond cond, struct err *err)
{
	struct derived d = {ws, ctx, path, text, cond};
	struct quota_need need = {.bytes = text.len, .files = 1};
	struct store_stat stat;
	int r;

	if (!store_quota_bounds(workspace_home(ws)))
		return write_derived(&d, err);
	r = store_stat(workspace_unrecorded(ws), ctx, path, &stat, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r == 0) {
		need.replaced = stat.size;
		need.files = 0;
	}
	return store_quota_around(workspace_home(ws), ctx, need, write_derived, &d, err);
}
