/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Approvals. A call that needs one is asked for in the session's log, by the id of the call, which stands for this tool
 * with these arguments and no other. The decision is an entry too: by the person at the terminal, or by another process
 * or the server (approval_decide()), at any time. Until there is one the turn is suspended, which is the same as cut
 * off: it continues when it is run again, also after a restart. A question that nobody answered in time is answered by
 * approval_gates.default_action.
 */
#include "agent/agent_internal.h"
#include "agent/policy.h"
#include "base/clock.h"

/* The last entry about the call; NULL: none. */
static const struct jv *find_entry(const struct jv *entries, struct str call)
{
	const struct jv *found = NULL;

	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "approval") && str_eq(jv_get_str(m->value, "call"), call))
			found = m->value;
	return found;
}

static void queue_decision(struct run *run, struct str call, bool approved, struct str by)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "approval");

	jv_set_str(arena, entry, "call", call);
	jv_set_str(arena, entry, "status", approved ? STR("approved") : STR("denied"));
	jv_set_str(arena, entry, "by", by);
	journal_queue(run, entry);
}

static int queue_question(struct run *run, const struct approval *ask, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "approval");
	int64_t until = clock_real_ns() + gates_wait_ns(run->agent->gates);

	jv_set_str(arena, entry, "call", ask->call);
	jv_set_str(arena, entry, "status", STR("asked"));
	jv_set_str(arena, entry, "name", arena_str(arena, ask->name)); /* the answer may outlive the agent */
	if (!ask->hides_args)
		jv_set(arena, entry, "input", (struct jv *)ask->input);
	jv_set_str(arena, entry, "rule", arena_str(arena, ask->rule));
	jv_set_str(arena, entry, "expires_at", clock_format_utc(arena, until));
	journal_queue(run, entry);
	return journal_flush(run, err);
}

static void show_question(struct run *run, const struct approval *ask)
{
	struct agent_event event = {
		.kind = AGENT_ASK, .text = ask->rule, .id = ask->call, .name = ask->name, .input = ask->input};

	if (ask->hides_args)
		event.input = jv_object(run->ctx->arena);
	if (run->in->event)
		run->in->event(run->in->arg, &event);
}

static enum approval_state state_of(const struct jv *entry)
{
	struct str status = jv_get_str(entry, "status");

	return str_is(status, "approved")                   ? APPROVAL_GIVEN
	       : !str_is(status, "denied")                  ? APPROVAL_WAITING
	       : str_is(jv_get_str(entry, "by"), "timeout") ? APPROVAL_EXPIRED
							    : APPROVAL_REFUSED;
}

static bool is_expired(const struct jv *entry)
{
	int64_t until;

	return clock_parse(jv_get_str(entry, "expires_at"), &until) && clock_real_ns() >= until;
}

int approval_ask(struct run *run, const struct approval *ask, enum approval_state *ret, struct err *err)
{
	const struct jv *entry = find_entry(run->entries, ask->call);
	enum agent_verdict verdict = AGENT_LATER;
	struct agent_event event = {
		.kind = AGENT_ASK, .text = ask->rule, .id = ask->call, .name = ask->name, .input = ask->input};
	int r = entry ? 0 : queue_question(run, ask, err);

	*ret = state_of(entry);
	if (r || *ret != APPROVAL_WAITING)
		return r;
	if (entry && is_expired(entry)) {
		*ret = gates_approve_late(run->agent->gates) ? APPROVAL_GIVEN : APPROVAL_EXPIRED;
		queue_decision(run, ask->call, *ret == APPROVAL_GIVEN, STR("timeout"));
		return 0;
	}
	show_question(run, ask);
	if (ask->hides_args)
		event.input = NULL;
	if (run->in->approve)
		verdict = run->in->approve(run->in->arg, &event, gates_wait_ns(run->agent->gates));
	if (verdict == AGENT_LATER)
		return 0;
	*ret = verdict == AGENT_YES ? APPROVAL_GIVEN : APPROVAL_REFUSED;
	queue_decision(run, ask->call, verdict == AGENT_YES, STR("terminal"));
	return journal_flush(run, err);
}

/* --- from outside the turn --- */

struct jv *approval_pending(struct arena *arena, const struct jv *entries)
{
	struct jv *list = jv_array(arena);
	struct turn_state state;

	transcript_state(entries, &state);
	if (!state.message || state.end)
		return list;
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		struct jv *v;

		if (!str_is(jv_get_str(m->value, "type"), "approval") ||
		    find_entry(entries, jv_get_str(m->value, "call")) != m->value ||
		    state_of(m->value) != APPROVAL_WAITING)
			continue;
		v = jv_object(arena);
		jv_set_str(arena, v, "id", jv_get_str(m->value, "call"));
		jv_set_str(arena, v, "name", jv_get_str(m->value, "name"));
		if (jv_get(m->value, "input"))
			jv_set(arena, v, "input", (struct jv *)jv_get(m->value, "input"));
		jv_set_str(arena, v, "rule", jv_get_str(m->value, "rule"));
		jv_set_str(arena, v, "expires_at", jv_get_str(m->value, "expires_at"));
		jv_push(arena, list, v);
	}
	return list;
}

int agent_approvals(struct workspace *ws, struct ctx *ctx, struct str agent, struct str session, struct jv **ret,
		    struct err *err)
{
	struct session_ref ref = {.agent = agent, .session = session};
	struct jv *entries;
	int r = session_recent(ws, ctx, ref, AGENT_ENTRIES_MAX, &entries, err);

	if (r == 0)
		*ret = approval_pending(ctx->arena, entries);
	return r;
}

int agent_decide(struct workspace *ws, struct ctx *ctx, const struct agent_decision *decision, struct err *err)
{
	struct session_ref ref = {.agent = decision->agent, .session = decision->session};
	struct jv *list, *entry = jv_object(ctx->arena);
	const struct jv *found = NULL;
	int r = agent_approvals(ws, ctx, ref.agent, ref.session, &list, err);

	for (const struct jv_member *m = r ? NULL : jv_first(list); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "id"), decision->id))
			found = m->value;
	if (r)
		return r;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "session \"%.*s\" has no call \"%.*s\" that waits for approval",
			       STR_ARG(utf8_first(ref.session, 60)), STR_ARG(utf8_first(decision->id, 60)));
	if (is_expired(found))
		return err_set(err, ERR_TIMEOUT, "the question about \"%.*s\" has expired; run the session again",
			       STR_ARG(jv_get_str(found, "name")));
	jv_set_str(ctx->arena, entry, "type", STR("approval"));
	jv_set_str(ctx->arena, entry, "call", decision->id);
	jv_set_str(ctx->arena, entry, "status", decision->approves ? STR("approved") : STR("denied"));
	jv_set_str(ctx->arena, entry, "by", decision->by.len ? decision->by : STR("person"));
	return session_append(ws, ctx, ref, entry, NULL, err);
}
