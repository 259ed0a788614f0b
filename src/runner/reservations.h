/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Due times that are taken and wait for their run. When more come due at once than can start, a runner writes all of
 * them as one entry of a journal that the runners of a store share: the order of the entries decides who has which.
 * So ten thousand due times are taken durably in a few writes, and none of them is too late because it had to wait.
 *
 * A reservation orders the work; it does not decide about a run. Who begins a run still claims it in the workspace
 * (home/schedules), so a due time runs once even if its reservation is lost or another runner helps out.
 */
#ifndef STEAD_RUNNER_RESERVATIONS_H
#define STEAD_RUNNER_RESERVATIONS_H

#include "store/store.h"

struct reservations;

struct reservation {
	struct str workspace, schedule;
	int64_t due;
	bool is_elsewhere; /* out: another runner has it */
};

/* What is known of the last due time of a schedule that was reserved. */
struct reserved {
	int64_t due, at; /* at: when it was reserved, seconds since 1970 */
	bool is_own;
};

/* `base` is the store of all workspaces and must outlive it; `by` names this runner and no other. */
struct reservations *reservations_new(struct store *base, struct str by);
void reservations_destroy(struct reservations *all);
/* Reads what other runners have added. */
int reservations_refresh(struct reservations *all, struct ctx *ctx, struct err *err);
/* Takes those that no other runner has, in one entry, at the time `now`. */
int reservations_take(struct reservations *all, struct ctx *ctx, struct reservation *list, size_t count, int64_t now,
		      struct err *err);
/* False: none is known. */
bool reservations_find(struct reservations *all, struct str workspace, struct str schedule, struct reserved *ret);

#endif
