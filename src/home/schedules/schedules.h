/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules: prompts that the agent gets at set times. People declare them as crons/<name>.yaml; agents add their own,
 * once or at an interval, in dynamic_crons.json. Times of day are in the workspace's zone.
 *
 * What has run is in schedules/<id>.json, one small file for each schedule, changed only conditionally: whoever writes
 * a due time into it first has claimed it. So a due time is run by one process, whatever the number of processes and
 * machines. schedules/log.jsonl has a line for each due time, for people. Instants are seconds since 1970.
 */
#ifndef STEAD_HOME_SCHEDULES_SCHEDULES_H
#define STEAD_HOME_SCHEDULES_SCHEDULES_H

#include "text/cron.h"
#include "text/jv.h"
#include "tool/family.h"

enum schedule_kind { SCHEDULE_CRON, SCHEDULE_ONCE, SCHEDULE_INTERVAL };
/* What happens to due times that passed while nothing was running. */
enum misfire { MISFIRE_ONCE, MISFIRE_SKIP, MISFIRE_ALL };

struct schedule {
	struct str id;   /* the name of a declaration; eight hex digits for one that an agent made */
	struct str path; /* the file that it is in */
	enum schedule_kind kind;
	bool enabled;
	struct str expression; /* SCHEDULE_CRON */
	struct cron cron;
	struct str zone_name;
	const struct zone *zone;
	int64_t first;    /* the time of SCHEDULE_ONCE, the first time of SCHEDULE_INTERVAL */
	int64_t interval; /* seconds */
	struct str prompt;
	const struct jv *output; /* {channel, chat_id | target_id, delivery}; NULL: to nobody */
	enum misfire misfire;
	int64_t grace; /* a run that is later than this many seconds does not start */
};

struct schedules {
	const struct schedule *list; /* declared ones first, by name */
	size_t count;
	struct jv *problems; /* [{path, problem}]: files that are left out */
};

/* All of them, in ctx->arena. A file that cannot be used is a problem and hurts no other. */
int schedules_read(struct workspace *ws, struct ctx *ctx, struct schedules *ret, struct err *err);
/* ERR_NOT_FOUND names the nearest. */
int schedule_find(const struct schedules *all, struct str id, const struct schedule **ret, struct err *err);
/* One file of crons/. `zone_name`: of the workspace. */
int schedule_parse(struct arena *arena, struct str name, struct str text, struct str zone_name, struct schedule *ret,
		   struct err *err);
/* The first due time after `after`, whether it is enabled or not; false: there is none. */
bool schedule_next(const struct schedule *schedule, int64_t after, struct cron_time *ret);

/* --- what has run (schedule_state.c) --- */

struct schedule_state {
	int64_t last_due; /* the last due time that was claimed or passed over; 0: it was never looked at */
	bool paused;
	int64_t running; /* the due time of a run that has not ended; 0: none */
	int64_t claimed; /* when that run was claimed */
	struct str by;   /* who runs it */
};

int schedule_state_read(struct workspace *ws, struct ctx *ctx, struct str id, struct schedule_state *ret,
			struct err *err);
/* From now on its due times count. Nothing happens when they do already. */
int schedule_begin(struct workspace *ws, struct ctx *ctx, struct str id, int64_t now, struct err *err);
int schedule_pause(struct workspace *ws, struct ctx *ctx, struct str id, bool paused, struct err *err);

struct schedule_due {
	int64_t due;     /* to be run now; 0: nothing */
	int64_t passed;  /* due times up to this one are over, run or not; 0: none */
	uint64_t missed; /* how many of them are not run */
};
/* What is due at `now`, by the misfire policy. */
struct schedule_due schedule_look(const struct schedule *schedule, const struct schedule_state *state, int64_t now);
/* Takes a due time for `by`. ERR_CONFLICT: another process was faster, it is paused, or an earlier run has not ended.
   The due times in `due` that are not run get a line of the log. */
int schedule_claim(struct workspace *ws, struct ctx *ctx, const struct schedule *schedule,
		   const struct schedule_due *due, struct str by, struct err *err);
/* The run has ended: `record` ({outcome, duration_ms, session, error, …}) is added to the log, unless it is NULL or
   another process has recorded the end. One that runs once is removed from dynamic_crons.json. */
int schedule_ended(struct workspace *ws, struct ctx *ctx, const struct schedule *schedule, int64_t due,
		   const struct jv *record, struct err *err);

/* Adds the line of a run that was not claimed: a person has started it. */
int schedule_log(struct workspace *ws, struct ctx *ctx, struct str id, int64_t due, const struct jv *record,
		 struct err *err);

/* --- those that agents make --- */

/* `when`: run_at as text, or STR_NONE and an interval in seconds. `to` ({channel, chat_id}): where the answer goes; may
   be NULL. */
int schedule_add(struct workspace *ws, struct ctx *ctx, struct str run_at, int64_t interval, struct str prompt,
		 const struct jv *to, struct jv **ret_entry, struct err *err);
int schedule_cancel(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret_entry, struct err *err);
#define SCHEDULES_DYNAMIC "dynamic_crons.json"
/* The id of the heartbeat, which no other schedule may have. */
#define HEARTBEAT_ID "heartbeat"

/* One schedule for people and models: {id, kind, schedule, zone, enabled, paused, next, prompt, …}. */
struct jv *schedule_value(struct workspace *ws, struct ctx *ctx, const struct schedule *schedule, int64_t now);
/* The times of an expression: [{at, local, effect?}]. */
struct jv *schedule_times(struct arena *arena, const struct cron *cron, const struct zone *zone, int64_t from,
			  uint64_t count);

void schedules_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);

#endif
