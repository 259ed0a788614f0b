/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one subagent: where it works, one turn, and what is left of it in its record. Everything is decided by
 * the record and the declaration, so that a task that another process began continues in the same way; the turn itself
 * is durable as every turn is.
 *
 * Three places to work in: shared (the files of its parent), isolated (a directory of its own), and fork (a copy of the
 * whole workspace, whose changes are merged at the end).
 */
#include "agent/children.h"
#include "base/clock.h"
#include "home/notebook/notebook.h"
#include "home/plans/plans.h"
#include "home/subagents/subagents.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define TEAMMATES_MAX 64
#define MORE_NS       (3600 * NS_PER_S) /* how long it waits for its own tasks: its time limit comes first */

static bool is_told_to_end(void *arg)
{
	struct child *child = arg;
	int64_t now_ns = clock_monotonic_ns();

	if (now_ns - child->looked_ns > NS_PER_S) { /* another process may have asked for it */
		ARENA_SCOPE struct arena *arena = arena_new();
		struct jv *tasks;
		struct err ignored;

		child->looked_ns = now_ns;
		if (task_records_read(&child->records, arena, &tasks, &ignored) == 0 &&
		    jv_get_bool(jv_get_key(tasks, jv_get_str(child->record, "taskId")), "cancelRequested", false)) {
			atomic_store(&child->is_cancelled, true);
			atomic_store(&child->cancel.requested, true);
		}
	}
	return atomic_load(&child->cancel.requested);
}

/* --- where it works --- */

struct place {
	struct workspace *fork; /* NULL: it works in the workspace itself */
	struct workspace *ws;
};

static int open_fork(struct child *child, struct ctx *ctx, struct place *place, struct err *err)
{
	struct workspace *ws = crew_workspace(child->crew);
	struct str name = jv_get_str(child->record, "fork");
	struct jv *report;
	int r = fork_create(ws, ctx, name, FORK_AT_HEAD, &report, err);

	if (r == -ERR_EXISTS) /* made by the process that began this task */
		r = 0;
	return r ? r : workspace_open_sibling(ws, fork_name_of(ws, ctx->arena, name), &place->fork, err);
}

static int place_open(struct child *child, struct ctx *ctx, struct place *ret, struct err *err)
{
	struct workspace *ws = crew_workspace(child->crew);
	struct actor actor = {.user = workspace_actor(ws).user,
			      .agent = jv_get_str(child->record, "subAgentId"),
			      .session = jv_get_str(child->record, "subSessionId")};
	struct str root = jv_get_str(child->record, "root");
	int r = 0;

	*ret = (struct place){0};
	if (jv_get_str(child->record, "fork").len)
		r = open_fork(child, ctx, ret, err);
	if (r == 0)
		r = workspace_open_at(ret->fork ? ret->fork : ws, actor, root, &ret->ws, err);
	if (r && ret->fork)
		workspace_close(ret->fork);
	child->kin.root = root;
	return r;
}

static void place_close(struct place *place)
{
	workspace_close(place->ws);
	if (place->fork)
		workspace_close(place->fork);
}

/* --- what it is --- */

static int read_declaration(struct child *child, struct ctx *ctx, struct agent_opts *opts, struct err *err)
{
	struct str id = jv_get_str(child->record, "subAgentId");
	struct jv *declared = NULL;
	int r = str_is(id, GENERAL_PURPOSE) ? 0 : subagent_get(crew_workspace(child->crew), ctx, id, &declared, err);

	if (r)
		return r;
	*opts = child->opts;
	if (jv_get_str(child->record, "model").len) /* its own: neither the parent's nor at its address */
		*opts = (struct agent_opts){.model = jv_get_str(child->record, "model"),
					    .dialect = child->opts.dialect};
	opts->prompt = jv_get_str(declared, "prompt");
	child->kin.max_turns = declared ? (uint64_t)jv_get_int(declared, "steps", 0) : 0;
	child->kin.filters[child->kin.filter_count++] =
		(struct tool_filter){jv_get(child->record, "allowedTools") ? jv_get(child->record, "allowedTools")
									   : jv_get(declared, "tools"),
				     jv_get(child->record, "deniedTools")};
	return 0;
}

/* A subagent of an agent that plans plans, too. */
static int plan_too(struct child *child, struct place *place, struct ctx *ctx, struct err *err)
{
	struct ctx own = *ctx;
	struct jv *state;

	if (!jv_get_bool(child->record, "plans", false))
		return 0;
	own.actor = workspace_actor(place->ws);
	return plan_enter(place->ws, &own, &state, err);
}

static void add_teammates(struct child *child, struct workspace *ws, struct ctx *ctx, struct buf *text)
{
	struct str names[TEAMMATES_MAX];
	size_t count = 0;

	for (const struct jv_member *m = jv_first(jv_get(child->record, "teammates")); m && count < TEAMMATES_MAX;
	     m = m->next)
		names[count++] = jv_str_of(m->value);
	if (count)
		buf_printf(text, "\n\n%.*s", STR_ARG(notebook_prompt(workspace_notebook(ws), ctx, names, count)));
}

static struct str first_message(struct child *child, struct workspace *ws, struct ctx *ctx)
{
	struct arena *arena = ctx->arena;
	struct str role = jv_get_str(child->record, "role"), path = jv_get_str(child->record, "outputPath");
	struct str task = jv_get_str(child->record, "task");
	struct buf text;

	if (jv_get_bool(child->record, "follows", false))
		return task;
	buf_init(&text, arena, TOOL_TEXT_MAX);
	buf_lit(&text,
		"You work on a task for another agent, which sees nothing but your last message. Make that message a "
		"complete report.");
	if (role.len)
		buf_printf(&text, " Your role: %.*s.", STR_ARG(role));
	if (path.len)
		buf_printf(&text, " Write the result to the file %.*s.", STR_ARG(path));
	add_teammates(child, ws, ctx, &text);
	buf_printf(&text, "\n\nThe task:\n%.*s", STR_ARG(task));
	return buf_str(&text);
}

/* --- what is left of it --- */

static void set_text(struct arena *arena, struct jv *end, const char *key, struct str text)
{
	jv_set_str(arena, end, key, utf8_first(text, TASK_RESULT_MAX));
}

/* The files of a result: what the subagent wrote to outputPath, else its answer. */
static int give_file(struct child *child, struct place *place, struct ctx *ctx, struct str answer, struct err *err)
{
	struct str path = jv_get_str(child->record, "outputPath"), bytes = answer;
	struct store *from = workspace_files(place->ws);
	struct workspace *parent;
	struct wpath at;
	int r = path.len ? workspace_path(place->ws, ctx->arena, path, &at, err) : -1;

	if (!path.len)
		return 0;
	if (r == 0)
		r = store_read(from, ctx, at, STORE_WHOLE, TOOL_FILE_MAX, &bytes, NULL, err);
	if (r == 0 && !place->fork && !jv_get_bool(child->record, "isolated", false))
		return 0; /* it is there */
	if (r && r != -ERR_NOT_FOUND)
		return r;
	r = workspace_open_at(crew_workspace(child->crew), workspace_actor(place->ws),
			      jv_get_str(child->record, "parentRoot"), &parent, err);
	if (r)
		return r;
	r = store_write(workspace_files(parent), ctx, at, bytes, (struct store_cond){0}, NULL, err);
	workspace_close(parent);
	return r;
}

static void merge_fork(struct child *child, struct place *place, struct ctx *ctx, struct jv *end)
{
	struct arena *arena = ctx->arena;
	struct merge_req req = {.name = jv_get_str(child->record, "fork")};
	struct workspace *parent;
	struct jv *report = NULL, *conflicts = jv_array(arena);
	struct err err;
	int r;

	if (!place->fork)
		return;
	r = workspace_open_at(crew_workspace(child->crew), workspace_actor(place->ws), STR_NONE, &parent, &err);
	if (r == 0) {
		r = fork_merge(parent, ctx, &req, &report, &err);
		workspace_close(parent);
	}
	jv_set_int(arena, end, "mergedFiles", r == 0 ? (int64_t)jv_count(jv_get(report, "merged")) : 0);
	if (r == 0)
		return;
	for (const struct jv_member *m = jv_first(jv_get(report, "conflicts")); m; m = m->next)
		jv_push(arena, conflicts, jv_str(arena, jv_get_str(m->value, "path")));
	jv_set(arena, end, "mergeConflicts", conflicts);
	jv_set_str(arena, end, "mergeError", err_text(arena, &err));
}

static void say_completed(struct child *child, struct place *place, struct ctx *ctx, const struct agent_result *result,
			  struct jv *end)
{
	struct arena *arena = ctx->arena;
	struct err err;

	jv_set_int(arena, end, "tokens", (int64_t)(result->usage.input + result->usage.output));
	if (result->usage.cost_usd > 0)
		jv_set(arena, end, "costUsd", jv_real(arena, result->usage.cost_usd));
	if (result->waiting) {
		jv_set_bool(arena, end, "awaitingConfirm", true);
		jv_set(arena, end, "pendingConfirms", result->waiting);
		return;
	}
	jv_set(arena, end, "awaitingConfirm", jv_null(arena));
	jv_set(arena, end, "pendingConfirms", jv_null(arena));
	merge_fork(child, place, ctx, end);
	jv_set_str(arena, end, "status", STR("COMPLETED"));
	set_text(arena, end, "result", result->answer);
	if (give_file(child, place, ctx, result->answer, &err) != 0) {
		jv_set_str(arena, end, "status", STR("FAILED"));
		jv_set_str(arena, end, "errorMessage", err_text(arena, &err));
	}
}

static void say_failed(struct child *child, struct arena *arena, const struct err *err, struct jv *end)
{
	if (atomic_load(&child->is_cancelled)) {
		jv_set_str(arena, end, "status", STR("CANCELLED"));
	} else if (atomic_load(&child->cancel.requested) || err->kind == ERR_CONFLICT) {
		return; /* the process ends and the task continues later, or another process has it */
	} else {
		jv_set_str(arena, end, "status", STR("FAILED"));
		set_text(arena, end, "errorMessage", err_text(arena, err));
	}
}

/* --- its life --- */

static int take_turn(struct child *child, struct place *place, struct ctx *ctx, struct agent_result *result,
		     struct err *err)
{
	struct agent_turn turn = {.session = jv_get_str(child->record, "subSessionId"),
				  .text = first_message(child, place->ws, ctx),
				  .key = jv_get_str(child->record, "taskId"),
				  .drops_open = true,
				  .is_over = is_told_to_end,
				  .kind = STR("subagent"),
				  .arg = child};
	struct agent_opts opts;
	struct agent *agent;
	int r = read_declaration(child, ctx, &opts, err);

	if (r == 0)
		r = plan_too(child, place, ctx, err);
	if (r == 0)
		r = agent_open_as(place->ws, &opts, &child->kin, &agent, err);
	if (r)
		return r;
	r = agent_run(agent, ctx, &turn, result, err);
	if (r == 0 && result->redirected)
		r = err_set(err, ERR_CANCELLED, "the task was cancelled");
	crew_wait(child->crew, ctx, turn.session, NULL, false, MORE_NS);
	agent_close(agent);
	return r;
}

void child_run(struct child *child)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .cancel = &child->cancel}, free_ctx = {.arena = arena};
	struct jv *state = jv_object(arena);
	struct str id = jv_get_str(child->record, "taskId");
	struct agent_result result;
	struct place place;
	struct err err, ignored;
	int r;

	child->kin.task = id;
	child->kin.servers = child->servers;
	clock_parse(jv_get_str(child->record, "endsAt"), &child->kin.end_ns);
	ctx.deadline_ns = clock_monotonic_ns() + (child->kin.end_ns - clock_real_ns());
	jv_set_str(arena, state, "status", STR("RUNNING"));
	task_records_set(&child->records, arena, id, state, &ignored);
	state = jv_object(arena);
	r = place_open(child, &ctx, &place, &err);
	if (r == 0) {
		r = take_turn(child, &place, &ctx, &result, &err);
		if (r == 0)
			say_completed(child, &place, &free_ctx, &result, state);
		place_close(&place);
	}
	if (r)
		say_failed(child, arena, &err, state);
	task_records_set(&child->records, arena, id, state, &ignored);
}
