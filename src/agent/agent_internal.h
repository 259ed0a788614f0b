/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the loop share. */
#ifndef STEAD_AGENT_AGENT_INTERNAL_H
#define STEAD_AGENT_AGENT_INTERNAL_H

#include <pthread.h>

#include "agent/agent.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"

/* US dollars for a million tokens. */
struct prices {
	double input, output, cache_read, cache_write;
};

/* A model that the agent may ask. */
struct agent_model {
	struct model *model;
	struct prices prices;
	struct str tools; /* in the form of the model */
};

struct crew;
struct run;
struct servers;
struct tree;

/* Which tools a subagent gets, of those that its parent has: patterns of names; NULL: no limit. */
struct tool_filter {
	const struct jv *only, *never;
};

/* The place of an agent in a tree of agents (children.h). */
struct kin {
	struct crew *crew;
	struct tree *tree;      /* NULL: it is at the top */
	struct session_ref top; /* the conversation at the top; session empty: it is at the top */
	struct str task;        /* its own; empty: it is at the top */
	struct str root;        /* '/' of its file tools; empty: as the workspace was opened */
	unsigned depth;         /* 0: it is at the top */
	int64_t end_ns;         /* real time; 0: none */
	uint64_t max_turns;     /* 0: as agent.yaml says */
	struct tool_filter filters[SUBAGENT_DEPTH_MAX];
	size_t filter_count;
	struct servers *servers;   /* those of its parent; NULL: its own */
	bool is_step;              /* of a workflow */
	const struct jv *members;  /* of the team that it coordinates; NULL: it has none */
	struct recorded *recorded; /* it runs in a replay of this; NULL: it does not */
};

/* A tool of the agent that is neither the workspace's nor a server's. */
struct agent_tool {
	struct tool_info info;
	bool runs_along;   /* at the same time as its neighbours, although it does not only read */
	bool ends_itself;  /* what it starts has a time limit of its own */
	bool is_of_agents; /* it starts other agents, or says what they have done */
	bool names_server; /* its argument "server" is the MCP server that it asks */
	/* ctx->actor.call_id is the id of the call. The model gets an error as the result. */
	int (*call)(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		    struct str *ret_text, struct err *err);
	const void *arg;
};

struct agent {
	struct workspace *ws;
	struct agent_opts opts; /* as it was opened */
	struct kin kin;
	struct agent_tool *own; /* tools that are neither the workspace's nor a server's */
	size_t own_count, own_cap;
	pthread_mutex_t custom_lock;
	bool has_custom;                             /* custom tools were looked for; under the lock */
	struct toolset *set;                         /* all that may be called */
	struct toolset *offered;                     /* those that the request to the model has */
	struct agent_model models[AGENT_MODELS_MAX]; /* the first, and those that are asked when it fails */
	size_t model_count;
	struct arena *arena;         /* of what is below */
	struct model *summary_model; /* of auto_compact; NULL: the same */
	bool compacts;
	double compact_at; /* share of the window */
	uint64_t window;   /* tokens */
	uint64_t max_turns;
	int64_t timeout_ns;
	struct str prompt; /* in place of the workspace's; empty: that */
	struct gates *gates;
	struct servers *servers;   /* of tools.json */
	const struct jv *timeouts; /* tool_timeouts of agent.yaml; NULL: none */
};

/* A turn while it runs. */
struct run {
	struct agent *agent;
	struct ctx *ctx;
	const struct agent_turn *in;
	struct session_ref ref;
	struct jv *entries; /* of the session, since its last compaction; grows with the turn */
	struct jv *queued;  /* entries that are not in the log yet */
	struct str turn;    /* the id of the user's message */
	uint64_t step;      /* of the last answer in this turn; 0: none */
	size_t model_at;    /* which of the agent's models is asked */
	struct spent *day;  /* what was spent today before this turn; NULL: not known yet */
	bool waiting;       /* for an approval */
	bool compacted;     /* after the model said that the conversation is too long */
	bool was_open;      /* the last turn of the session, before anything was done */
	bool has_more;      /* this turn is finished first, and another one follows */
	bool resumed;       /* the turn was begun by another process, which died or gave up */
	bool recovering;    /* the same, and its last calls are not settled yet */
	bool is_blind;      /* the model has refused a request with pictures of tools */
	bool redirected;    /* in->is_over has ended it */
	int64_t started_ns;
};

/* --- agent.c --- */

bool agent_turn_is_over(const struct run *run);
/* The model that is asked now. */
const struct agent_model *run_model(const struct run *run);
/* The same as agent_open() for a subagent; NULL: at the top. What `kin` points to must outlive the agent. */
int agent_open_as(struct workspace *ws, const struct agent_opts *opts, const struct kin *kin, struct agent **ret_agent,
		  struct err *err);
/* A value that shares nothing with another arena. */
struct jv *agent_keep(struct arena *arena, const struct jv *v);

/* --- tools.c: which tools there are --- */

/* Adds the tools of the program that embeds the agent. ERR_EXISTS names all that collide. */
int host_tools_add(struct agent *agent, const struct agent_opts *opts, struct err *err);
/* Adds a tool, unless configuration or a filter leaves it out. ERR_EXISTS: the workspace has one of this name. */
int agent_tool_add(struct agent *agent, const struct agent_tool *tool, struct err *err);
const struct agent_tool *agent_tool_find(const struct agent *agent, struct str name);
/* True for a tool of the workspace or of a server that the agent may call. */
bool agent_may_call(const struct agent *agent, struct str name);
/* Writes agent->tools, their description for the model. */
void agent_offer_tools(struct agent *agent);
/* Whether one of these patterns fits the name. */
bool names_match(const struct jv *patterns, struct str name);

/* --- settings.c --- */

/* The model of agent.yaml, or the one that `opts` names, with its key. */
int settings_model(struct workspace *ws, const struct agent_opts *opts, struct model **ret, struct err *err);
/* A variable of the workspace's .env, else of the environment; empty: it is not set. */
int settings_var(struct workspace *ws, struct arena *arena, const char *name, struct str *ret, struct err *err);
/* The models of the agent: that one, and those of model.fallback. */
int settings_models(struct agent *agent, const struct agent_opts *opts, struct err *err);
/* A number of seconds, which may have a fraction. */
int64_t settings_ns(const struct jv *seconds, double fallback);
double settings_real(const struct jv *number, double fallback);
/* True for tools that are not for the agent itself, because they write what the loop keeps. */
bool settings_is_for_runtimes(struct str tool);

/* --- transcript.c: readings of the log --- */

/* A call that the last answer asked for. */
struct wanted_call {
	const struct jv *block;  /* tool_use */
	const struct jv *intent; /* the entry that says that it was begun; NULL: none */
	const struct jv *result; /* the entry with its result; NULL: none */
};

struct turn_state {
	const struct jv *message; /* the user's; NULL: the session has no turn */
	const struct jv *answer;  /* the model's last one in this turn; NULL: none */
	const struct jv *end;     /* how it ended; NULL: it is open */
	struct wanted_call calls[AGENT_CALLS_MAX];
	size_t call_count;
	uint64_t answers; /* in this turn */
};

/* Of the last turn. */
void transcript_state(const struct jv *entries, struct turn_state *ret);
/* {turn: true} for those that the user took back. */
struct jv *transcript_undone(struct arena *arena, const struct jv *entries);
/* The conversation for the model. Pictures that tools have given follow the results of their answer, or are left out.
 */
struct jv *transcript_messages(struct arena *arena, const struct jv *entries, bool shows_pictures);
/* True: a tool has given a picture. */
bool transcript_has_pictures(const struct jv *entries);
/* What the user said in this message. */
struct str transcript_said(const struct jv *message);
/* How many turns have ended before the entry `until` (NULL: all), those that are a summary now included and those that
 * were taken back left out. */
uint64_t transcript_turns(struct arena *arena, const struct jv *entries, const struct jv *until);
/* The last compaction; NULL: none. */
const struct jv *transcript_compaction(const struct jv *entries);
/* How many answers of this model the entries have. */
uint64_t transcript_answers(const struct jv *entries, struct str model);
/* [{step, …}] of a turn, and their sum. */
struct jv *transcript_steps(struct arena *arena, const struct jv *entries, struct str turn, struct model_usage *ret_sum,
			    uint64_t *ret_calls);
/* Text of an answer. */
struct str transcript_text(struct arena *arena, const struct jv *answer);
struct jv *usage_value(struct arena *arena, const struct model_usage *usage);
/* What a turn has used so far. */
struct model_usage transcript_usage(const struct jv *entries, struct str turn);

/* --- journal.c: writing the log --- */

/* An entry of this turn, which is written with the next journal_flush(). `entry` is in the run's arena. */
void journal_queue(struct run *run, struct jv *entry);
int journal_flush(struct run *run, struct err *err);
struct jv *journal_entry(struct run *run, const char *type);

/* --- approval.c --- */

struct approval {
	struct str call, name, rule;
	const struct jv *input;
	bool hides_args;
};
enum approval_state { APPROVAL_WAITING, APPROVAL_GIVEN, APPROVAL_REFUSED, APPROVAL_EXPIRED /* refused by nobody */ };
/* Looks for a decision, and asks if there is none yet. */
int approval_ask(struct run *run, const struct approval *ask, enum approval_state *ret, struct err *err);
struct jv *approval_pending(struct arena *arena, const struct jv *entries);

/* --- server_host.c: what MCP servers may ask --- */

struct mcp_host;
struct server_host {
	struct run *run;
	struct str server; /* its name */
};
/* `own` must outlive the host. */
struct mcp_host server_host(struct server_host *own);

/* --- server_tools.c --- */

/* Adds the tools with which the agent reaches resources and prompts of servers, if one of them has any. */
void server_tools_add(struct agent *agent);

/* --- compact.c --- */

/* How many tokens the next request has, as far as is known. */
uint64_t compact_tokens(struct run *run);
bool compact_is_due(struct run *run);
enum compact_why {
	COMPACT_DUE,
	COMPACT_TOO_LONG, /* the model has refused the conversation: less of it stays */
	COMPACT_ASKED,    /* by the user, between turns: nothing but the summary stays */
};
/* Replaces the older part of what is sent by a summary. On failure everything stays as it is. */
int compact_now(struct run *run, enum compact_why why, struct err *err);
/* The same without a summary: the conversation begins again. */
int compact_forget(struct run *run, struct err *err);

/* --- spend.c --- */

/* ERR_QUOTA: the turn, or this day, has used what `spend` of agent.yaml allows. */
int spend_check(struct run *run, struct err *err);
/* Sets the cost. */
void spend_price(const struct prices *prices, struct model_usage *usage);
/* Where the usage of a turn is counted: that of a subagent with the agent at the top. */
struct workspace *spend_place(const struct run *run, struct session_ref *ret_ref);

/* --- state.c --- */

/* Writes agent_state.json, the snapshot that other programs read. */
int state_save(struct run *run, struct err *err);
/* Takes the last turn back; *arg is a struct jv *: {turn, changes}. */
int undo_turn(struct run *run, void *arg, struct err *err);
int redo_turn(struct run *run, void *arg, struct err *err);

/* --- attach.c --- */

/* The blocks of a message with the files that it names as @path; NULL: it names none. */
struct jv *attach_files(struct run *run, struct str text);

/* --- calls.c --- */

/* Runs the calls of the last answer that have no result. */
int calls_run(struct run *run, const struct turn_state *state, struct err *err);

/* --- turn_lease.c --- */

struct turn_lease;
/* ERR_CONFLICT: another process runs a turn of the session. A process of this machine that died holds nothing. */
int turn_lease_take(struct run *run, struct turn_lease **ret, struct err *err);
void turn_lease_give(struct turn_lease *lease, struct run *run);

#endif
