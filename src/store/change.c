/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-modify-write without a lock: the write succeeds only if the file is still what was read. Correct
 * between threads, processes and replicas alike, because the condition is checked where the bytes are stored.
 */
#include <time.h>

#include "base/clock.h"
#include "store/store.h"

#define TRIES_MAX 1000

/* Others got ahead: after a few tries at once, a short random pause lets one of us through. */
static void back_off(unsigned tries)
{
	struct timespec pause = {.tv_nsec = (long)(random_u64() % (20000u * (tries < 500 ? tries + 1 : 500)))};

	if (tries > 3)
		nanosleep(&pause, NULL);
}

/* *ret_lost: another writer was faster. A conflict that `change` itself reports would be the same at the next try. */
static int change_once(struct store *s, struct ctx *ctx, struct wpath path, const struct store_change *c,
		       struct str *ret_before, struct str *ret_after, struct store_stat *ret_stat, bool *ret_lost,
		       struct err *err)
{
	struct store_cond same = {.kind = STORE_VERSION};
	int r = store_read(s, ctx, path, STORE_WHOLE, c->max, ret_before, ret_stat, err);

	if (r == -ERR_NOT_FOUND && c->create && c->cond.kind != STORE_VERSION) {
		*ret_before = STR_NONE;
		*ret_stat = (struct store_stat){0};
		same.kind = STORE_ABSENT;
		r = 0;
	}
	if (r == 0 && c->cond.kind == STORE_VERSION && !str_eq(c->cond.version, ret_stat->version))
		r = err_set(err, ERR_CONFLICT,
			    "edit " ERR_PATH_BARE ": the file has another version than if_version; nothing was changed",
			    STR_ARG(path.s));
	*ret_after = STR_NONE;
	if (r == 0)
		r = c->change(c->arg, ctx->arena, *ret_before, ret_after, err);
	if (r || c->dry_run || !ret_after->ptr)
		return r;
	if (ret_after->len > c->max)
		return err_set(err, ERR_TOO_LARGE, "edit " ERR_PATH_BARE ": the file would exceed %zu bytes",
			       STR_ARG(path.s), c->max);
	same.version = ret_stat->version;
	r = store_write(s, ctx, path, *ret_after, same, ret_stat, err);
	*ret_lost = r == -ERR_EXISTS || r == -ERR_CONFLICT;
	return r == -ERR_EXISTS ? err_set(err, ERR_CONFLICT, "write " ERR_PATH_BARE ": another writer created it",
					  STR_ARG(path.s))
				: r;
}

int store_change(struct store *s, struct ctx *ctx, struct wpath path, const struct store_change *change,
		 struct str *ret_before, struct str *ret_after, struct store_stat *ret_stat, struct err *err)
{
	struct str unused_before, unused_after;
	struct store_stat unused_stat;

	ret_before = ret_before ? ret_before : &unused_before;
	ret_after = ret_after ? ret_after : &unused_after;
	ret_stat = ret_stat ? ret_stat : &unused_stat;
	for (unsigned tries = 0;; tries++) {
		bool lost = false;
		int r = change_once(s, ctx, path, change, ret_before, ret_after, ret_stat, &lost, err);

		if (!lost || change->cond.kind == STORE_VERSION || tries >= TRIES_MAX)
			return r;
		r = ctx_check(ctx, err);
		if (r)
			return r;
		back_off(tries);
	}
}
