/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes and connections of the backends in SQL databases. The pool keeps no more than `size` connections, the one
 * used last first. Each has the epoch in which it was opened: losing one begins a new epoch, and idle connections of an
 * older one are closed when they are next taken.
 */
#include "store/sql.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"

#define TRIES_MAX     7
#define WAIT_SLICE_NS 20000000 /* between looks at a cancelled call */

int sql_outcome_check(enum sql_outcome outcome, struct str detail, struct str path, struct store_cond cond,
		      struct err *err)
{
	switch (outcome) {
	case SQL_DONE:
		return 0;
	case SQL_NOT_FOUND:
		return store_not_found(err);
	case SQL_EXISTS:
		return store_cond_check((struct store_cond){.kind = STORE_ABSENT}, true, detail, err);
	case SQL_CONFLICT:
		return store_cond_check(cond, true, detail, err);
	case SQL_GONE:
		return store_cond_check((struct store_cond){.kind = STORE_VERSION}, false, detail, err);
	case SQL_IS_DIR:
		return store_refuse(REFUSE_DIR, path, err);
	case SQL_BELOW_FILE:
		return store_refuse(REFUSE_BELOW_FILE, detail, err);
	case SQL_TOO_LONG:
		return store_refuse(REFUSE_LONG_PATH, detail, err);
	case SQL_IS_FILE:
		return store_refuse(REFUSE_FILE_TARGET, path, err);
	case SQL_DIR_COND:
		return store_refuse(REFUSE_DIR_VERSION, path, err);
	case SQL_OVERTAKEN:
		return err_set(err, ERR_CONFLICT,
			       "another entry was added to the journal first; read it and try again");
	case SQL_ENDS_BEFORE:
		return err_set(err, ERR_CONFLICT, "the journal ends at %.*s, before the entry to add after",
			       STR_ARG(detail));
	}
	return err_set(err, ERR_INTERNAL, "the database answered %d, which none of Stead's functions returns",
		       (int)outcome);
}

int sql_cond_kind(struct store_cond cond)
{
	return cond.kind == STORE_ABSENT ? 1 : cond.kind == STORE_VERSION ? 2 : 0;
}

int sql_list_seek(struct arena *arena, struct wpath dir, const struct store_list_req *req, struct str *ret,
		  struct err *err)
{
	struct str top = wpath_is_root(dir) ? STR("") : arena_printf(arena, "%.*s/", STR_ARG(dir.s));

	*ret = top;
	if (req->after.len == 0)
		return 0;
	if (req->after.len > 2 * PATH_LEN_MAX || !utf8_valid(req->after) ||
	    memchr(req->after.ptr, '\0', req->after.len))
		return err_set(err, ERR_INVALID, "the cursor is not one of this store; list from the start");
	if (str_cmp(req->after, top) < 0)
		return 0;
	if (!req->recursive && str_ends(req->after, STR("/")))
		*ret = arena_printf(arena, "%.*s0", STR_ARG(str_first(req->after, req->after.len - 1)));
	else
		*ret = arena_printf(arena, "%.*s\x01", STR_ARG(req->after)); /* before whatever begins with it */
	return 0;
}

struct str sql_version_new(struct arena *arena)
{
	return arena_printf(arena, "%016llx", (unsigned long long)random_u64());
}

int64_t sql_token_new(void)
{
	return (int64_t)(random_u64() >> 2) | 1;
}

/* The pool. */

void sql_pool_init(struct sql_pool *p)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->freed, &attr);
	pthread_condattr_destroy(&attr);
}

void sql_pool_release(struct sql_pool *p)
{
	while (p->idle) {
		struct sql_link *l = p->idle;

		p->idle = l->next;
		p->ops->close(l);
	}
	pthread_cond_destroy(&p->freed);
	pthread_mutex_destroy(&p->lock);
}

uint64_t sql_pool_trips(struct sql_pool *p)
{
	uint64_t trips;

	pthread_mutex_lock(&p->lock);
	trips = p->trips;
	pthread_mutex_unlock(&p->lock);
	return trips;
}

static int64_t earlier(const struct ctx *ctx, int64_t until)
{
	return ctx->deadline_ns && ctx->deadline_ns < until ? ctx->deadline_ns : until;
}

/* With the lock held: an idle connection, or (NULL) the right to open one. */
static int wait_for_place(struct sql_pool *p, struct ctx *ctx, struct sql_link **ret, struct err *err)
{
	int64_t until = earlier(ctx, clock_monotonic_ns() + p->timeout_ns), now;

	while (!p->idle && p->open >= p->size) {
		struct timespec slice;
		int r = ctx_check(ctx, err);

		if (r)
			return r;
		now = clock_monotonic_ns();
		slice = clock_timespec(until < now + WAIT_SLICE_NS ? until : now + WAIT_SLICE_NS);
		if (pthread_cond_timedwait(&p->freed, &p->lock, &slice) == ETIMEDOUT && clock_monotonic_ns() >= until) {
			err_set(err, ERR_TIMEOUT,
				"%s: all %u connections were busy until the deadline; raise pool= in the store's URL",
				p->server, p->size);
			err->retryable = true;
			return -ERR_TIMEOUT;
		}
	}
	*ret = p->idle;
	if (*ret)
		p->idle = (*ret)->next;
	else
		p->open++;
	return 0;
}

int sql_take(struct sql_pool *p, struct ctx *ctx, struct sql_link **ret_link, struct err *err)
{
	struct sql_link *l = NULL;
	uint64_t epoch;
	int r = ctx_check(ctx, err);

	if (r)
		return r;
	pthread_mutex_lock(&p->lock);
	r = wait_for_place(p, ctx, &l, err);
	epoch = p->epoch;
	pthread_mutex_unlock(&p->lock);
	if (r)
		return r;
	if (l && l->epoch != epoch) {
		p->ops->close(l);
		l = NULL;
	}
	if (!l) {
		r = p->ops->open(p->owner, ctx, &l, err);
		if (r) {
			pthread_mutex_lock(&p->lock);
			p->open--;
			pthread_cond_signal(&p->freed);
			pthread_mutex_unlock(&p->lock);
			return r;
		}
		l->epoch = epoch;
		l->counted = l->trips;
	}
	*ret_link = l;
	return 0;
}

void sql_give(struct sql_pool *p, struct sql_link *l)
{
	bool keep = !l->broken;

	pthread_mutex_lock(&p->lock);
	p->trips += l->trips - l->counted;
	l->counted = l->trips;
	if (l->lost)
		p->epoch++;
	if (keep) {
		l->next = p->idle;
		p->idle = l;
	} else {
		p->open--;
	}
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
	if (!keep)
		p->ops->close(l);
}

void sql_pause(struct ctx *ctx, int64_t ns)
{
	struct timespec at = clock_timespec(earlier(ctx, clock_monotonic_ns() + ns));

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

bool sql_try_again(struct ctx *ctx, unsigned tries, const struct err *err)
{
	struct err ignored;

	if (err->kind != ERR_UNAVAILABLE || !err->retryable || tries + 1 >= TRIES_MAX)
		return false;
	if (tries) /* the first time at once: an idle connection had died */
		sql_pause(ctx, (int64_t)(10000000 << tries));
	return ctx_check(ctx, &ignored) == 0;
}
