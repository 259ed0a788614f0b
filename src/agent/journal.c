/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the journal of a turn. Entries wait until something is about to happen in the world (a call of a tool or of
 * the model, or the answer is given): then all of them are one append. So each fact is in the log before the next
 * action, and a step costs two appends, not one for each entry.
 */
#include "agent/agent_internal.h"
#include "base/ctx.h"

struct jv *journal_entry(struct run *run, const char *type)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = jv_object(arena);

	jv_set_str(arena, entry, "type", str_of(type));
	jv_set_str(arena, entry, "id", call_id_new(arena));
	if (run->turn.len)
		jv_set_str(arena, entry, "turn", run->turn);
	return entry;
}

void journal_queue(struct run *run, struct jv *entry)
{
	jv_push(run->ctx->arena, run->queued, entry);
	jv_push(run->ctx->arena, run->entries, entry);
}

int journal_flush(struct run *run, struct err *err)
{
	struct jv *written;
	int r;

	if (jv_count(run->queued) == 0)
		return 0;
	r = session_append_all(run->agent->ws, run->ctx, run->ref, run->queued, &written, err);
	if (r)
		return err_prefix(err, "the session's log cannot be written");
	run->queued = jv_array(run->ctx->arena);
	return 0;
}
