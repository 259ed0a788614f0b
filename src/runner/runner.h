/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What acts by itself: one process that runs the schedules and heartbeats of any number of workspaces.
 *
 * A workspace that has nothing to do costs a name and a time. A few threads wait for the next time of all and look at
 * the workspaces whose time has come, and a run has a thread of its own while it lasts. Times are computed from the
 * wall clock and the zone of the schedule, never from the start of the process. A due time is claimed by one
 * conditional write (home/schedules), so any number of runners may share a store.
 *
 * A run is a session of the agent with a name made of the schedule and the due time. If its process dies, the next
 * runner that looks continues with that session.
 */
#ifndef STEAD_RUNNER_RUNNER_H
#define STEAD_RUNNER_RUNNER_H

#include "home/schedules/schedules.h"
#include "workspace/workspace.h"

struct agent_event;
struct runner;

enum runner_event_kind {
	RUNNER_QUEUED,  /* a due time: it is reserved for this runner, and waits because too many others run */
	RUNNER_STARTED, /* a run */
	RUNNER_CALLED,  /* with tells_calls: a tool, by the agent of a run or a chat; `text` is its arguments */
	RUNNER_ENDED,   /* a run; `text` is its answer or its error */
	RUNNER_CHANGED, /* changed settings hold from now on; `text` says for what */
	RUNNER_PROBLEM, /* a workspace or a file that cannot be used; the same one is reported once */
};

struct runner_event {
	enum runner_event_kind kind;
	struct str workspace, what; /* what: the schedule, or the file of a problem */
	struct str text;
	int64_t due;   /* of a run of a schedule that was queued or started; else 0 */
	int64_t at_ns; /* when it happened; 0: now */
	bool is_error;
};

/* An event for people ("15:04:05 research daily-report: started") or for programs, one line of JSON. Without the line's
   end. */
struct str runner_event_line(struct arena *arena, const struct runner_event *event, bool is_json);

struct runner_opts {
	struct str store_url; /* empty: the default */
	const struct str *names;
	size_t count;               /* 0: all workspaces of the store, and those that are made later */
	struct str model, base_url; /* instead of those of agent.yaml; empty: as there */
	bool relaxed;
	bool tells_calls; /* of tools, too */
	/* Called on the runner's threads; may be NULL. */
	void (*event)(void *arg, const struct runner_event *event);
	void *arg;
};

/* Copies what it needs. ERR_NOT_FOUND: a workspace that is named is not there. */
int runner_start(const struct runner_opts *opts, struct runner **ret, struct err *err);
/* Cancels what runs, and waits for it; what was cut off continues when a runner starts again. */
void runner_stop(struct runner *runner);

/* --- one run (firing.c) --- */

struct firing {
	struct workspace *of; /* the workspace, if it is open; NULL: it is opened */
	struct str store_url, workspace;
	struct str schedule; /* its id, or HEARTBEAT_ID */
	int64_t due;
	bool by_hand;               /* a person has started it: `due` is the present time, and was not claimed */
	struct str model, base_url; /* as in runner_opts */
	bool relaxed;
	/* Gets the calls of tools; NULL: nobody listens. */
	void (*event)(void *arg, const struct runner_event *event);
	void *arg;
};

/* An event about a call of a tool, for those who listen to a runner; another event is left out. */
void runner_tell_call(struct str workspace, struct str what, const struct agent_event *call,
		      void (*event)(void *arg, const struct runner_event *event), void *arg);

/* Runs a due time, or continues with it, and records how it ended. *ret: {outcome, session, response,
   error, duration_ms, …}, in ctx->arena. ERR_CONFLICT: another process runs it. ERR_CANCELLED: it was cut off, and is
   not recorded. */
int firing_run(struct ctx *ctx, const struct firing *firing, struct jv **ret, struct err *err);

#endif
