/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an opened log: when it is read, who has its records in hand, when its memory is trimmed, how large it is.
 *
 * The log is opened by whoever needs it first, not with the store: a process that only reads files never reads it.
 * Records belong to the log and would be freed by a trim, so whoever uses them is pinned, and the last one to let go
 * trims.
 */
#include <sched.h>

#include "base/clock.h"
#include "revisions/layer.h"

struct revisions *revisions_pin(struct revisions *rv)
{
	pthread_rwlock_rdlock(&rv->pins);
	return rv;
}

void revisions_unpin(struct revisions **pinned)
{
	struct revisions *rv = *pinned;
	bool opened = atomic_load_explicit(&rv->opened, memory_order_acquire);

	pthread_rwlock_unlock(&rv->pins);
	if (!opened || !revlog_is_large(rv->log))
		return;
	if (pthread_rwlock_trywrlock(&rv->pins) == 0) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};

		revlog_trim(rv->log, &ctx);
		pthread_rwlock_unlock(&rv->pins);
	}
}

void revisions_pause(struct revisions *rv)
{
	struct revisions *pinned = rv;

	revisions_unpin(&pinned);
	/* Locks are taken in the order pins, tree, and the tree may be held here: this waits for nobody but a trim,
	   which ends without it. */
	while (pthread_rwlock_tryrdlock(&rv->pins) != 0)
		sched_yield();
}

/* Reads the log. If another process recovers it after a restart of the machine while this one reads, the log may
   already have records of this boot, and is read again as one that needs no recovery. */
static int open_log(struct revisions *rv, struct ctx *ctx, bool *ret_booted, struct err *err)
{
	for (;;) {
		bool booted = recover_booted(rv, ctx);
		struct revlog_place place = {.meta = rv->meta,
					     .runs = rv->journal ? rv->meta : rv->scratch,
					     .at = rv->log_at,
					     .journal = rv->log_path,
					     .booted = booted,
					     .known_end = recover_known_end(rv, ctx)};
		int r = revlog_open(&place, ctx, &rv->log, err);

		*ret_booted = booted;
		if (r || !booted || recover_booted(rv, ctx))
			return r;
		revlog_close(rv->log, NULL);
		rv->log = NULL;
	}
}

int revisions_ready(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	int r = 0;

	if (atomic_load_explicit(&rv->opened, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&rv->opening);
	if (!rv->opened) {
		bool booted;

		r = open_log(rv, ctx, &booted, err);
		if (r == 0)
			r = recover_all(rv, ctx, booted, err);
		if (r == 0 && !rv->journal)
			r = moves_resume(rv, ctx, err);
		if (r && rv->log) {
			revlog_close(rv->log, NULL);
			rv->log = NULL;
		}
		atomic_store_explicit(&rv->opened, r == 0, memory_order_release);
	}
	pthread_mutex_unlock(&rv->opening);
	return r;
}

int revisions_log(struct revisions *rv, struct ctx *ctx, struct rev_draft *drafts, size_t count, struct err *err)
{
	if (rv->boot_due) /* two threads may both note it */
		recover_note_boot(rv, ctx);
	return revlog_append(rv->log, ctx, drafts, count, err);
}

uint64_t revisions_kept_bytes(struct store *revisions)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct revisions *rv = revisions_of(revisions);
	struct ctx ctx = {.arena = arena};
	struct err ignored;
	uint64_t log_bytes;
	bool recount;

	if (revisions_ready(rv, &ctx, &ignored))
		return 0;
	if (clock_monotonic_ns() - rv->counted_ns > NS_PER_S) { /* another process may have freed some */
		rv->counted_ns = clock_monotonic_ns();
		revlog_refresh(rv->log, &ctx, &ignored);
	}
	log_bytes = revlog_bytes(rv->log, &recount);
	if (recount || !rv->blobs_counted)
		content_count(rv, &ctx, &ignored);
	return log_bytes + rv->blob_bytes;
}
