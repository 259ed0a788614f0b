/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a session besides its log. agent_state.json is a snapshot for other programs, in the form of
 * AgentScope; Stead itself goes by the log. Members that Stead does not write stay as they are.
 *
 * Undo takes the last turn back: its calls by their ids, the last first, and then the turn in what is sent to the
 * model.
 */
#include "agent/agent_internal.h"
#include "home/timeline/history.h"

int state_save(struct run *run, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct workspace *ws = run->agent->ws;
	struct str version, summary = jv_get_str(transcript_compaction(run->entries), "summary");
	struct jv *state = NULL;
	struct err ignored;
	int r = session_state(ws, run->ctx, run->ref, &state, &version, &ignored);

	if (r || !state || state->type != JV_OBJECT)
		state = jv_object(arena);
	jv_set_str(arena, state, "session_id", run->ref.session);
	jv_set_str(arena, state, "user_id", workspace_actor(ws).user);
	jv_set_str(arena, state, "summary", summary.len ? summary : STR(""));
	jv_set(arena, state, "context", transcript_messages(arena, run->entries, false));
	jv_set_str(arena, state, "reply_id", run->turn);
	jv_set_int(arena, state, "cur_iter", (int64_t)run->step);
	jv_set_bool(arena, state, "shutdown_interrupted", false);
	return session_state_set(ws, run->ctx, run->ref, state, STR_NONE, &version, err);
}

/* The last turn that is not taken back; empty: none. */
static struct str last_turn(struct arena *arena, const struct jv *entries)
{
	const struct jv *undone = transcript_undone(arena, entries);
	struct str last = STR_NONE;

	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		struct str turn = jv_get_str(m->value, "turn");

		if (str_is(jv_get_str(m->value, "role"), "user") && turn.len && !jv_get_key(undone, turn))
			last = turn;
	}
	return last;
}

struct undone {
	int64_t changes; /* of files */
	int64_t calls;   /* that changed something */
};

static int undo_call(struct run *run, struct str call_id, struct undone *done, struct err *err)
{
	struct undo_req req = {.call_id = call_id, .by_person = true};
	struct jv *report;
	int r = history_undo(run->agent->ws, run->ctx, &req, &report, err);

	if (r == 0) {
		done->changes += jv_get_int(report, "changes", 0);
		done->calls++;
	}
	return r == -ERR_NOT_FOUND ? 0 : r; /* it changed nothing */
}

/* The calls of a turn that may have changed something, the last one first. */
static int undo_calls(struct run *run, struct str turn, struct undone *done, struct err *err)
{
	struct jv *ids = jv_array(run->ctx->arena);
	int r = 0;

	for (const struct jv_member *m = jv_first(run->entries); m; m = m->next) {
		const struct tool_info *tool;

		if (!str_eq(jv_get_str(m->value, "turn"), turn) || !jv_get_str(m->value, "call").len)
			continue;
		tool = toolset_find(run->agent->set, jv_get_str(m->value, "name"));
		if (!tool || !(tool->traits & TOOL_READS_ONLY))
			jv_push(run->ctx->arena, ids, (struct jv *)jv_get(m->value, "call"));
	}
	for (size_t i = jv_count(ids); i-- > 0 && r == 0;)
		r = undo_call(run, jv_str_of(jv_at(ids, i)), done, err);
	return r;
}

static int report_turn(struct run *run, const char *type, struct str turn, const struct undone *done, struct jv **ret,
		       struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry;

	run->turn = STR_NONE;
	entry = journal_entry(run, type);
	jv_set_str(arena, entry, type, turn);
	jv_set_int(arena, entry, "calls", done->calls);
	journal_queue(run, entry);
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "turn", turn);
	jv_set_int(arena, *ret, "changes", done->changes);
	return journal_flush(run, err);
}

int undo_turn(struct run *run, void *arg, struct err *err)
{
	struct str turn = last_turn(run->ctx->arena, run->entries);
	struct undone done = {0};
	int r;

	if (!turn.len)
		return err_set(err, ERR_NOT_FOUND, "there is no turn to take back");
	r = undo_calls(run, turn, &done, err);
	return r ? r : report_turn(run, "undone", turn, &done, arg, err);
}

/* The turn that was taken back last and can come back: nothing was said since. NULL: none. */
static const struct jv *last_undone(struct arena *arena, const struct jv *entries)
{
	const struct jv *undone = transcript_undone(arena, entries), *last = NULL;

	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		struct str turn = jv_get_str(m->value, "undone");

		if (str_is(jv_get_str(m->value, "role"), "user"))
			last = NULL;
		else if (turn.len && jv_get_key(undone, turn))
			last = m->value;
	}
	return last;
}

int redo_turn(struct run *run, void *arg, struct err *err)
{
	const struct jv *entry = last_undone(run->ctx->arena, run->entries);
	struct undo_req req = {.redo = true, .by_person = true};
	struct undone done = {0};
	struct jv *report;

	if (!entry)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no turn to bring back; only the last undone turn can be brought back, and "
			       "only until something else is said");
	for (int64_t left = jv_get_int(entry, "calls", 0); left; left--) {
		int r = history_undo(run->agent->ws, run->ctx, &req, &report, err);

		if (r)
			return r;
		done.changes += jv_get_int(report, "changes", 0);
		done.calls++;
	}
	return report_turn(run, "redone", jv_get_str(entry, "undone"), &done, arg, err);
}
