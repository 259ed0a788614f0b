/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease: the right to do one thing (run a schedule, sweep a store), held by one at a time among all processes and
 * machines that share a store, and lost by itself when its holder is gone. It is a small file that is changed by
 * conditional writes only.
 *
 * No clocks are compared. A holder counts the time to live by its own clock from before it asked; a contender must see
 * the file of the lease unchanged for the whole of that time by its own clock before it takes the lease. So a holder
 * that renews in time is never overtaken, whatever the wall clocks say.
 *
 * A holder that was paused (a stopped process, a machine that slept) may wake up after its time. That is what the fence
 * is for: a number that only grows, greater with every acquisition. Whoever keeps the greatest that it has seen can
 * refuse an older one.
 */
#ifndef STEAD_STORE_LEASE_H
#define STEAD_STORE_LEASE_H

#include "base/clock.h"
#include "store/store.h"

#define LEASE_TTL_MIN_NS INT64_C(100000000)
#define LEASE_TTL_MAX_NS (24 * 3600 * NS_PER_S)

/* What a contender has seen so far: {0} at first, kept between calls by callers that poll instead of waiting. */
struct lease_watch {
	bool begun;
	uint64_t seen[2]; /* of the version */
	int64_t since_ns;
};

/* Tests bring their own. */
struct lease_clock {
	int64_t (*now_ns)(void *arg);
	void (*sleep_ns)(void *arg, int64_t ns);
	void *arg;
};

struct lease_want {
	struct str name;           /* one path element */
	struct str holder;         /* unlike that of any other contender; the same one takes over from itself at once */
	int64_t ttl_ns;            /* LEASE_TTL_MIN_NS … LEASE_TTL_MAX_NS */
	int64_t wait_ns;           /* how long to wait for it; 0: look once */
	struct lease_watch *watch; /* NULL: this call's own */
	const struct lease_clock *clock; /* NULL: the machine's, which continues while it sleeps */
};

struct lease_info {
	struct str name, holder; /* holder empty: free */
	uint64_t fence;
	int64_t ttl_ns;
};

struct lease;

/* `leases` has one file for each lease and must outlive the handle. ERR_CONFLICT: somebody else holds it (the message
 * says who). */
int lease_acquire(struct store *leases, struct ctx *ctx, const struct lease_want *want, struct lease **ret_lease,
		  struct err *err);
/* A handle to a lease that this holder acquired elsewhere (a command before this one). `fence` 0: whichever it has.
   ERR_CONFLICT: it is held by another, or with another fence. The time of its file is not known here: renew it. */
int lease_resume(struct store *leases, struct ctx *ctx, const struct lease_want *want, uint64_t fence,
		 struct lease **ret_lease, struct err *err);
/* The time begins again. ERR_CONFLICT: it was lost, for good; the fence says which came first. */
int lease_renew(struct lease *lease, struct ctx *ctx, struct err *err);
/* Others no longer have to wait. Not an error when it is already lost. The fence stays known. */
int lease_release(struct lease *lease, struct ctx *ctx, struct err *err);
/* The same, and on a disk of this machine its file goes as well: for the many names that are used once. Its fence
   begins again with 1, so nothing may depend on that. Not every server removes on a condition, so elsewhere the file
   stays. */
int lease_drop(struct lease *lease, struct ctx *ctx, struct err *err);
/* Frees the handle; the lease itself stays until its time is over. NULL is allowed. */
void lease_destroy(struct lease *lease);

/* ERR_NOT_FOUND: it was never acquired. */
int lease_show(struct store *leases, struct ctx *ctx, struct str name, struct lease_info *ret_info, struct err *err);

#endif
