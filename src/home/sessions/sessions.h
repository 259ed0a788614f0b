/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: what was said and done in conversations, by agent.
 *
 *   agents/<agent>/sessions/<session>.log.jsonl     everything, in order, never shortened
 *   agents/<agent>/sessions/sessions.json           an index of the newest, derived from the logs
 *   agents/<agent>/context/<session>/agent_state.json   the runtime's snapshot, with a version
 *   agents/<agent>/token_usage.jsonl                what was spent
 *   memory/conversations/conv_*.{json,md}           archives for people and for memory
 *
 * Names of agents and sessions are encoded, so that any name is safe; the first line of a log has them as they are.
 */
#ifndef STEAD_HOME_SESSIONS_SESSIONS_H
#define STEAD_HOME_SESSIONS_SESSIONS_H

#include "text/jv.h"
#include "tool/search_source.h"
#include "workspace/workspace.h"

/* Which session. An empty agent is the workspace's own ("default" when it has none). */
struct session_ref {
	struct str agent, session;
};

/* Adds an entry: an object with "type" (message, tool_use, tool_result, compaction, summary, …) and whatever belongs to
   it. id and timestamp are given when they are missing. *ret_entry is what was written. */
int session_append(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entry,
		   struct jv **ret_entry, struct err *err);

/* The same for a list of entries, as one change: all or none. *ret_entries: what was written. */
int session_append_all(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entries,
		       struct jv **ret_entries, struct err *err);

/* Makes a log of these entries alone, in place of the one that is there: for a fork in which they are to be others. */
int session_replace(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entries,
		    struct err *err);

/* {agent, session, started_at, last_active_at, entries, messages, bytes, title} of the newest `most`, the newest first.
   agent empty: of all. *ret_total: how many there are. */
int session_list(struct workspace *ws, struct ctx *ctx, struct str agent, uint64_t most, struct jv **ret_list,
		 uint64_t *ret_total, struct err *err);

struct session_page {
	struct jv *entries; /* in order */
	uint64_t before;    /* for the page before this one; 0: there is none */
	uint64_t bad;       /* lines that could not be read */
};
/* The last `count` entries before `before` (0: the end); with `messages` only those of type message. ERR_NOT_FOUND
   names the sessions that there are. */
int session_history(struct workspace *ws, struct ctx *ctx, struct session_ref ref, uint64_t before, size_t count,
		    bool messages, struct session_page *ret, struct err *err);

/* What a conversation continues from: the entries from its last compaction on, and before them those that it keeps
   (from the one whose id is its "first_kept"); all of them when there is none. Nothing when there is no such session.
   ERR_TOO_LARGE: there are more than `most`. */
int session_recent(struct workspace *ws, struct ctx *ctx, struct session_ref ref, size_t most, struct jv **ret_entries,
		   struct err *err);

/* The snapshot; *ret_state is NULL when there is none. */
int session_state(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct jv **ret_state,
		  struct str *ret_version, struct err *err);
/* if_version empty: whatever is there. ERR_CONFLICT: another version. */
int session_state_set(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *state,
		      struct str if_version, struct str *ret_version, struct err *err);

/* Writes what was said since the last archive to memory/conversations/ and marks the place in the log. `tag`: manual,
   compact, ttl_expired, … {conversation_id, path, messages}. ERR_NOT_FOUND: nothing was said. */
int session_archive(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct str tag, struct str summary,
		    struct jv **ret_report, struct err *err);

/* One line of token_usage.jsonl: input_tokens, output_tokens, model, invocation_type, … */
int usage_add(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *usage, struct err *err);
/* Whether one of the newest lines has this value of "turn". */
int usage_has(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct str turn, bool *ret_has,
	      struct err *err);
/* Sums since `since_ns`, of one agent or, if `agent` is empty, of all: {input_tokens, output_tokens, total_tokens,
   llm_calls, cost_usd?, by_model: {…}, by_session: {…}, by_day: {"2026-11-15": …}}. */
int usage_sum(struct workspace *ws, struct ctx *ctx, struct str agent, int64_t since_ns, struct jv **ret_sum,
	      struct err *err);

/* Text of an entry for people and models: the words of a message, or the call. */
struct str session_entry_text(struct arena *arena, const struct jv *entry);

/* For search. */
extern const struct search_source sessions_sources[];

#endif
