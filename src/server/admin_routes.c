/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of agents as AgentScope's console knows them: /v1/admin/sessions, what belongs to one, and actions with
 * a colon before their names (":undo"). They are the same conversations as below /sessions.
 */
#include "agent/agent.h"
#include "agent/records.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "home/plans/plans.h"
#include "home/sessions/sessions.h"
#include "server/server_internal.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000

static struct str session_of(struct exchange *x)
{
	return percent_decode(x->arena, call_of(x)->rest);
}

/* For what belongs to a session: its plan and its list. */
static struct ctx session_ctx(struct exchange *x)
{
	struct ctx ctx = exchange_change_ctx(x);

	ctx.actor.session = session_of(x);
	return ctx;
}

static void answer_result(struct exchange *x, int r, const struct jv *value, const struct err *err)
{
	if (r)
		answer_error(x, err);
	else
		answer_json(x, 200, value);
}

/* The description of one session among the newest. */
static int find_session(struct exchange *x, struct jv **ret, struct err *err)
{
	struct workspace *ws = call_of(x)->tenant->ws;
	struct session_ref ref;
	struct ctx ctx = exchange_ctx(x);
	struct session_page page;
	struct jv *list;
	uint64_t total;
	int r = exchange_session(x, &ref, err);

	if (r == 0)
		r = session_history(ws, &ctx, ref, 0, 1, false, &page, err); /* its error names the sessions */
	if (r == 0)
		r = session_list(ws, &ctx, ref.agent, LIMIT_MAX, &list, &total, err);
	if (r)
		return r;
	*ret = jv_object(x->arena);
	jv_set_str(x->arena, *ret, "session", ref.session);
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "session"), ref.session))
			*ret = m->value;
	return 0;
}

void run_admin_sessions(struct exchange *x)
{
	run_sessions(x);
}

void run_admin_session(struct exchange *x)
{
	struct jv *v = NULL;
	struct err err = {0};
	int r = find_session(x, &v, &err);

	answer_result(x, r, v, &err);
}

void run_admin_messages(struct exchange *x)
{
	struct session_ref ref;
	struct ctx ctx = exchange_ctx(x);
	uint64_t limit = LIMIT_DEFAULT, before = 0;
	struct jv *v = jv_object(x->arena);
	struct session_page page = {0};
	struct err err = {0};
	int r = query_number(x->arena, x->query, "limit", LIMIT_MAX, &limit, &err);

	if (r == 0)
		r = query_number(x->arena, x->query, "before", INT64_MAX, &before, &err);
	if (r == 0)
		r = exchange_session(x, &ref, &err);
	if (r == 0)
		r = session_history(call_of(x)->tenant->ws, &ctx, ref, before, limit ? limit : 1, true, &page, &err);
	if (r == 0) {
		jv_set(x->arena, v, "messages", page.entries);
		jv_set(x->arena, v, "before", page.before ? jv_int(x->arena, (int64_t)page.before) : jv_null(x->arena));
	}
	answer_result(x, r, v, &err);
}

void run_admin_tasks(struct exchange *x)
{
	struct ctx ctx = session_ctx(x);
	struct jv *todos = NULL, *v = jv_object(x->arena);
	struct err err = {0};
	int r = todo_read(call_of(x)->tenant->ws, &ctx, &todos, &err);

	if (r == 0)
		jv_set(x->arena, v, "tasks", (struct jv *)jv_get(todos, "todos"));
	answer_result(x, r, v, &err);
}

void run_admin_subagent_tasks(struct exchange *x)
{
	struct workspace *ws = call_of(x)->tenant->ws;
	struct records records = {.ws = ws, .top = {.agent = workspace_actor(ws).agent, .session = session_of(x)}};
	struct jv *tasks = NULL, *list = jv_array(x->arena), *v = jv_object(x->arena);
	struct err err = {0};
	int r = task_records_read(&records, x->arena, &tasks, &err);

	for (const struct jv_member *m = r ? NULL : jv_first(tasks); m; m = m->next)
		jv_push(x->arena, list, m->value);
	jv_set(x->arena, v, "tasks", list);
	answer_result(x, r, v, &err);
}

void run_admin_plan(struct exchange *x)
{
	struct ctx ctx = session_ctx(x);
	struct jv *v = NULL;
	struct err err = {0};
	int r = plan_look(call_of(x)->tenant->ws, &ctx, true, &v, &err);

	answer_result(x, r, v, &err);
}

/* --- actions --- */

static int act_plan_on(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	(void)agent;
	return plan_enter(call_of(x)->tenant->ws, ctx, ret, err);
}

static int act_plan_off(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	(void)agent;
	return plan_leave(call_of(x)->tenant->ws, ctx, ret, err);
}

static int act_undo(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	(void)x;
	return agent_undo(agent, ctx, ctx->actor.session, ret, err);
}

static int act_redo(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	(void)x;
	return agent_redo(agent, ctx, ctx->actor.session, ret, err);
}

static int act_compact(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	int r = agent_compact(agent, ctx, ctx->actor.session, err);

	(void)x;
	return r ? r : agent_status(agent, ctx, ctx->actor.session, ret, err);
}

/* A turn that runs ends, on whichever server; one that was cut off does not continue with the next message. */
static int act_abort(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err)
{
	struct jv *v = jv_object(x->arena);
	bool ran = false, was_open = false;
	int r = exchange_stop_turn(x, ctx->actor.session, &ran, err);

	if (r == 0)
		r = agent_drop(agent, ctx, ctx->actor.session, &was_open, err);
	jv_set_bool(x->arena, v, "aborted", ran || was_open);
	*ret = v;
	return r;
}

static const struct session_action {
	const char *name;
	bool with_agent;
	int (*act)(struct exchange *x, struct ctx *ctx, struct agent *agent, struct jv **ret, struct err *err);
} actions[] = {
	{"undo", true, act_undo},
	{"redo", true, act_redo},
	{"abort", true, act_abort},
	{"compact", true, act_compact},
	{"enter-plan-mode", false, act_plan_on},
	{"exit-plan-mode", false, act_plan_off},
};

void run_admin_action(struct exchange *x)
{
	const char *name = strrchr(call_of(x)->route->path, ':') + 1;
	const struct agent_opts opts = {0};
	struct ctx ctx = session_ctx(x);
	struct agent *agent = NULL;
	struct jv *v = NULL;
	struct err err = {0};
	int r = 0;

	for (size_t i = 0; i < COUNT(actions); i++) {
		if (strcmp(actions[i].name, name) != 0)
			continue;
		if (actions[i].with_agent)
			r = agent_open(call_of(x)->tenant->ws, &opts, &agent, &err);
		if (r == 0)
			r = actions[i].act(x, &ctx, agent, &v, &err);
	}
	agent_close(agent);
	answer_result(x, r, v, &err);
}
