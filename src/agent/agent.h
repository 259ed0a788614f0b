/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stead's own agent: a loop of durable steps over a workspace.
 *
 *   message in → [assemble prompt → ask the model → for each tool call: run → result]* → answer
 *
 * The session's log is the journal of the run, and the loop is a function of it: what happened is in the log before the
 * next thing is done. After a kill at any instant the next process reads the log and continues: an answer that is in
 * the log is not asked for again, a call whose result is in the log is not made again, and a call that may have been
 * made is looked up in the revisions by its id. docs/agent.md has the form of the entries.
 */
#ifndef STEAD_AGENT_AGENT_H
#define STEAD_AGENT_AGENT_H

#include "model/model.h"
#include "tool/tool.h"

struct agent;

/* A tool of the program that runs the agent. */
struct agent_host_tool {
	struct str name, description;
	const struct jv *schema; /* of its arguments */
	bool reads_only;         /* it changes nothing; it may be called on several threads at once */
	/* An error is the result for the model. */
	int (*call)(void *arg, struct ctx *ctx, const struct jv *args, struct str *ret_text, struct err *err);
	void *arg;
};

#define AGENT_TOOL_NAME_MAX ((size_t)64)
/* Whether every provider takes it as the name of a tool: letters, digits, "_" and "-". */
bool agent_is_tool_name(struct str name);

/* Empty fields: as agent.yaml says. */
struct agent_opts {
	struct str model;                    /* provider:model */
	struct str base_url;                 /* of a server that speaks the provider's protocol */
	struct str prompt;                   /* in place of the one that the workspace makes */
	struct str dialect;                  /* whose tools the model gets; empty: native */
	const struct agent_host_tool *tools; /* copied, but for `arg`; subagents do not have them */
	size_t tool_count;
	const struct jv *servers; /* MCP servers in addition to those of tools.json, in the form of config.mcp_servers;
				     NULL: none */
};

/* `ws` is borrowed and must outlive it. An agent may run turns of several sessions at once. */
int agent_open(struct workspace *ws, const struct agent_opts *opts, struct agent **ret_agent, struct err *err);
void agent_close(struct agent *agent); /* NULL is allowed */
/* Whether agent.yaml names the model "provider:model", as its model or as a fallback. */
bool agent_names_model(struct workspace *ws, struct str model);

enum agent_event_kind {
	AGENT_TEXT,     /* of the answer, as it comes */
	AGENT_THINKING, /* the same */
	AGENT_AGAIN,    /* the model is asked again, for the reason in `text`; what came so far is void */
	AGENT_CALL,     /* a tool is called */
	AGENT_RESULT,   /* it gave `text` */
	AGENT_NOTE,     /* something that people should know, such as a server that does not start */
	AGENT_ASK,      /* a call needs approval, by the rule in `text`; `id` is the id of the approval */
};

struct agent_event {
	enum agent_event_kind kind;
	struct str text;
	struct str id, name;    /* of a call */
	const struct jv *input; /* of a call */
	bool is_error;          /* of a result */
};

/* The name of its kind: "text", "call", … */
const char *agent_event_name(const struct agent_event *event);
/* {event, text? , id?, name?, input?, rule?, is_error?} */
struct jv *agent_event_value(struct arena *arena, const struct agent_event *event);

#define AGENT_KEY_MAX ((size_t)200)
/* Whether it can be the key of a message. */
int agent_key_check(struct str key, struct err *err);

enum agent_verdict { AGENT_LATER, AGENT_YES, AGENT_NO };

struct agent_result;

struct agent_turn {
	struct str session;      /* empty: the workspace's, else the name of the agent */
	struct str text;         /* what the user says; empty: finish what was cut off, if anything was */
	const struct jv *blocks; /* further blocks of the message, such as pictures (model.h); NULL: none */
	bool once;       /* the text is said only if the session has no turn yet; else its last answer is given */
	struct str key;  /* of the message: if the session's last turn has it, the text is not said again */
	bool drops_open; /* a turn that was cut off is closed instead of finished */
	struct str kind; /* in the log of usage: "cron", "heartbeat", "subagent"; empty: "user" */
	/* Asked before each call of a tool and each question to the model; true: the turn ends there, without an
	   answer. May be NULL. */
	bool (*is_over)(void *arg);
	/* Called on the thread of the turn; may be NULL. */
	void (*event)(void *arg, const struct agent_event *event);
	/* Gets the result of a turn that is done, before the turn is closed: whoever is killed before this has returned
	   gets it again from the next run with the same text. Not called for what agent_run() gives of a turn that was
	   closed before. May be NULL. */
	void (*answered)(void *arg, const struct agent_result *result);
	/* Asks the person at hand whether a call may be made, and waits at most so long. NULL, or AGENT_LATER: nobody
	   is there, and the turn is suspended until somebody decides (agent_decide()). */
	enum agent_verdict (*approve)(void *arg, const struct agent_event *event, int64_t wait_ns);
	/* Asks the person at hand for the values of a form, which an MCP server wants (event->text says what for);
	 *ret_values has those that they gave, in `arena`. NULL: `approve` is asked, and the form's own defaults count.
	 */
	enum agent_verdict (*fill)(void *arg, const struct agent_event *event, const struct jv *schema,
				   struct arena *arena, struct jv **ret_values);
	void *arg;
};

struct agent_result {
	struct str session, turn; /* turn: the id of the user's message */
	struct str answer, model;
	bool cut;           /* the answer reached its limit of tokens, or: */
	bool full;          /* the model's window was full; the next turn summarises the conversation first */
	bool refused;       /* the provider declined to answer */
	bool resumed;       /* a turn that was cut off was finished */
	bool redirected;    /* `is_over` has ended it */
	bool unsaid;        /* the text was not taken: a call of the turn before waits for approval */
	struct jv *waiting; /* calls that need approval: [{id, name, input?, rule, expires_at}]; NULL: the turn ended */
	struct jv *steps;   /* [{step, model, text?, calls?: [{id, name, input, output, is_error}], usage}] */
	struct model_usage usage;
	uint64_t model_calls;
	int64_t duration_ms;
};

/*
 * Runs one turn to its answer. First it finishes a turn of the session that was cut off; if `text` is that turn's own
 * message, that is all. Without a text it gives the answer of the last turn.
 *
 * ERR_CONFLICT: another process runs a turn of this session. ERR_QUOTA: the turn has made as many calls of the model as
 * model.max_turns allows; it is closed. ERR_TIMEOUT: model.timeout_seconds; the turn continues when it is run again, as
 * after every failure that may pass. ERR_NOT_FOUND: no text, and the session has no turn, or its last one ended without
 * an answer.
 */
int agent_run(struct agent *agent, struct ctx *ctx, const struct agent_turn *turn, struct agent_result *ret,
	      struct err *err);
/* The calls of an open turn that wait for approval, in the form of agent_result.waiting. */
int agent_approvals(struct workspace *ws, struct ctx *ctx, struct str agent, struct str session, struct jv **ret,
		    struct err *err);
struct agent_decision {
	struct str agent, session, id; /* the id of the approval: of one call with its arguments */
	struct str by;                 /* who decides; may be empty */
	bool approves;
};
/* Decides one; the turn continues when it is run again. ERR_NOT_FOUND: it does not wait; ERR_TIMEOUT: it has expired.
 */
int agent_decide(struct workspace *ws, struct ctx *ctx, const struct agent_decision *decision, struct err *err);

/* Replaces the older part of the session by a summary in what is sent to the model, as happens by itself when a
   conversation comes near the model's window. The log keeps everything. */
int agent_compact(struct agent *agent, struct ctx *ctx, struct str session, struct err *err);
/* The conversation begins again: what was said is archived (memory/conversations/) and no longer sent. */
int agent_forget(struct agent *agent, struct ctx *ctx, struct str session, struct err *err);
/* Takes back the last turn: what its calls changed, and the turn itself in what is sent. {turn, changes}.
   ERR_CONFLICT: somebody changed the same file since; the calls after that one are taken back, and the turn is not.
   ERR_NOT_FOUND: there is no turn left. */
int agent_undo(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err);
/* Brings back the turn that agent_undo() took back last, with its changes, if nothing was said or changed since. {turn,
   changes}. ERR_NOT_FOUND: there is none. */
int agent_redo(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err);
/* Closes a turn that was cut off, so that it does not continue with the next message. */
int agent_drop(struct agent *agent, struct ctx *ctx, struct str session, bool *ret_was_open, struct err *err);
/* {session, model, turns, messages, tokens, window, open} */
int agent_status(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err);
/* Waits until the background tasks that a session has started in this process have ended, as long as `ctx` allows.
   False: some still run. They end with the workspace at the latest, and the next turn of the session takes them up. */
bool agent_wait(struct agent *agent, const struct ctx *ctx, struct str session);
/* {session, turn, answer, model, steps, usage, …} */
struct jv *agent_result_value(struct arena *arena, const struct agent_result *result);

/* Stops a turn that another process runs, on this machine or another: asks for it in the store, and waits until the
   turn has ended. *ret_ran: there was one. ERR_TIMEOUT: it did not end by the deadline of `ctx`. */
int agent_stop(struct workspace *ws, struct ctx *ctx, struct str session, bool *ret_ran, struct err *err);
/* Whether any process runs a turn of the session. */
int agent_turn_runs(struct workspace *ws, struct ctx *ctx, struct str session, bool *ret_runs, struct err *err);
/* For the process that runs a turn of the session: whether somebody asks to stop it. */
bool agent_stop_asked(struct workspace *ws, struct ctx *ctx, struct str session);

#endif
