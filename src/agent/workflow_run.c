/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a workflow. The caller's thread decides which steps begin and writes the record; each step that runs has a
 * thread. Before a step begins, the record says so, and when it has ended, the record has its result: what is there is
 * never done again. A step that was cut off is a turn that was cut off, which the agent finishes by itself; its message
 * has a key, so that it is not said twice.
 */
#include <pthread.h>

#include "agent/children.h"
#include "agent/workflow.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "home/notebook/notebook.h"
#include "home/subagents/subagents.h"

#define RECORD_MAX    ((size_t)8 * MIB)
#define RESULT_MAX    ((size_t)64 * KIB) /* bytes of a result in the record */
#define LOOK_NS       (50 * NS_PER_MS)
#define RUNS_MAX      1000
#define TEAMMATES_MAX 64

struct step_run {
	struct workflow *w;
	const struct jv *step;
	struct str id, agent, session, message, key;
	struct str output, before; /* the file of its result, and the version that it had */
	struct arena *arena;       /* of the thread */
	pthread_t thread;
	bool is_done; /* under the lock */
	int r;
	struct err err;
	struct agent_result result;
};

struct workflow {
	struct workspace *ws;
	struct ctx *ctx;
	const struct workflow_opts *opts;
	struct jv *record;
	const struct jv *definition, *list; /* its steps */
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct step_run *running[16];
	size_t running_count;
	struct cancel cancel; /* of the steps */
	bool stops;           /* no further step begins */
	int r;                /* what ends the run */
	struct err err;
};

/* --- the record --- */

static struct wpath record_path(struct workspace *ws, struct arena *arena, struct str id)
{
	struct str agent = workspace_actor(ws).agent;

	return (struct wpath){arena_printf(arena, "agents/%.*s/workflows/%.*s.json",
					   STR_ARG(workspace_encode_name(arena, agent.len ? agent : STR("default"))),
					   STR_ARG(workspace_encode_name(arena, id)))};
}

int workflow_record(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret, struct err *err)
{
	struct str text;
	int r = store_read(workspace_home(ws), ctx, record_path(ws, ctx->arena, id), STORE_WHOLE, RECORD_MAX, &text,
			   NULL, err);

	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no run \"%.*s\"; 'stead workflow runs' lists them",
			       STR_ARG(utf8_first(id, 60)));
	return r ? r : jv_parse(ctx->arena, text, ret, err);
}

static int save(struct workspace *ws, struct ctx *ctx, struct jv *record, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx own = {.arena = arena, .actor = ctx->actor}; /* also when its time is over */
	struct buf text;

	buf_init(&text, arena, RECORD_MAX);
	jv_write(&text, record);
	return store_write(workspace_home(ws), &own, record_path(ws, arena, jv_get_str(record, "id")), buf_str(&text),
			   (struct store_cond){0}, NULL, err);
}

int workflow_begin(struct workspace *ws, struct ctx *ctx, struct str name, struct str input, struct str id,
		   struct jv **ret_record, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *record = jv_object(arena), *states = jv_object(arena), *definition;
	int r = id.len ? workflow_record(ws, ctx, id, ret_record, err) : -ERR_NOT_FOUND;

	if (r != -ERR_NOT_FOUND)
		return r;
	r = workflow_get(ws, ctx, name, &definition, err);
	if (r)
		return r;
	if (jv_get_str(definition, "input").len && !input.len)
		return err_set(err, ERR_INVALID, "workflow \"%.*s\" needs an input: %.*s", STR_ARG(name),
			       STR_ARG(utf8_first(jv_get_str(definition, "input"), 200)));
	if (!id.len)
		id = str_first(sha256_hex(arena, call_id_new(arena)), 12);
	for (const struct jv_member *m = jv_first(jv_get(definition, "steps")); m; m = m->next) {
		struct jv *state = jv_object(arena);

		jv_set_str(arena, state, "status", STR("pending"));
		jv_set_key(arena, states, jv_get_str(m->value, "id"), state);
	}
	jv_set_str(arena, record, "id", id);
	jv_set_str(arena, record, "workflow", name);
	jv_set_str(arena, record, "input", input);
	jv_set_str(arena, record, "status", STR("running"));
	jv_set_str(arena, record, "begunAt", clock_format_utc(arena, clock_real_ns()));
	jv_set(arena, record, "steps", states);
	jv_set(arena, record, "definition", definition); /* a run continues as it began, whatever becomes of the file */
	*ret_record = record;
	return save(ws, ctx, record, err);
}

static int add_run(struct workspace *ws, struct ctx *ctx, struct str name, struct jv *list, struct err *err)
{
	struct jv *record;
	int r = workflow_record(ws, ctx, name, &record, err);

	if (r)
		return r;
	jv_remove(record, "definition");
	jv_push(ctx->arena, list, record);
	return 0;
}

int workflow_runs(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str dir = record_path(ws, arena, STR("x")).s;
	struct store_list_req req = {.limit = RUNS_MAX};
	struct store_page page = {0};
	struct jv *list = jv_array(arena), *sorted = jv_array(arena);
	int r = store_list(workspace_home(ws), ctx, (struct wpath){str_first(dir, str_rfind_char(dir, '/'))}, &req,
			   &page, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	r = 0;
	for (size_t i = 0; i < page.count && r == 0; i++) {
		struct str path = page.entries[i].path.s, name = str_from(path, str_rfind_char(path, '/') + 1);

		if (str_ends(name, STR(".json")))
			r = add_run(ws, ctx, str_first(name, name.len - 5), list, err);
	}
	while (r == 0 && jv_count(sorted) < jv_count(list)) { /* the newest first */
		struct jv *newest = NULL;

		for (const struct jv_member *m = jv_first(list); m; m = m->next)
			if (!jv_get(m->value, "shown") &&
			    (!newest || str_cmp(jv_get_str(m->value, "begunAt"), jv_get_str(newest, "begunAt")) > 0))
				newest = m->value;
		jv_push(arena, sorted, newest);
		jv_set_bool(arena, newest, "shown", true);
	}
	for (const struct jv_member *m = jv_first(sorted); m; m = m->next)
		jv_remove(m->value, "shown");
	*ret = sorted;
	return r;
}

/* --- one step --- */

static struct jv *state_of(const struct workflow *w, struct str id)
{
	return (struct jv *)jv_get_key(jv_get(w->record, "steps"), id);
}

/* Everybody else who takes part. */
static size_t teammates_of(const struct step_run *s, struct str names[TEAMMATES_MAX])
{
	size_t count = 0;

	for (const struct jv_member *m = jv_first(s->w->list); m; m = m->next) {
		const struct jv *members = jv_get(m->value, "members");
		const struct jv_member *next = jv_first(members);
		struct str name = jv_get_str(m->value, "agent");

		for (;;) {
			bool known = str_eq(name, s->agent) || !name.len;

			for (size_t i = 0; i < count; i++)
				known = known || str_eq(names[i], name);
			if (!known && count < TEAMMATES_MAX)
				names[count++] = name;
			if (!next)
				break;
			name = jv_str_of(next->value);
			next = next->next;
		}
	}
	return count;
}

static void add_team(struct step_run *s, struct workspace *ws, struct ctx *ctx, struct buf *text)
{
	const struct jv *members = jv_get(s->step, "members");

	if (!members)
		return;
	buf_lit(text, "You coordinate a team. Give its members tasks with the subagent tools, and combine their "
		      "results. The members:\n");
	for (const struct jv_member *m = jv_first(members); m; m = m->next) {
		struct jv *declared = NULL;
		struct err ignored;

		buf_printf(text, "- %.*s", STR_ARG(jv_str_of(m->value)));
		if (subagent_get(ws, ctx, jv_str_of(m->value), &declared, &ignored) == 0)
			buf_printf(text, ": %.*s", STR_ARG(jv_get_str(declared, "description")));
		buf_char(text, '\n');
	}
	buf_char(text, '\n');
}

static struct str message_of(struct step_run *s, struct workspace *ws, struct ctx *ctx)
{
	struct str names[TEAMMATES_MAX];
	struct buf text;

	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	buf_printf(&text,
		   "You do the step \"%.*s\" of a workflow. The next steps see only your last message; make it the "
		   "complete result.",
		   STR_ARG(s->id));
	if (s->output.len)
		buf_printf(&text, " Write the result to the file %.*s.", STR_ARG(s->output));
	buf_lit(&text, "\n\n");
	if (jv_get_bool(s->w->definition, "notebook", true)) {
		buf_add(&text, notebook_prompt(workspace_notebook(ws), ctx, names, teammates_of(s, names)));
		buf_lit(&text, "\n\n");
	}
	add_team(s, ws, ctx, &text);
	buf_printf(&text, "The task:\n%.*s", STR_ARG(s->message));
	return buf_str(&text);
}

/* A coordinator needs the tools for subagents whatever its declaration lists. */
static const struct jv *tools_of(const struct step_run *s, struct arena *arena, const struct jv *declared)
{
	static const char *const more[] = {"spawn_agent",  "send_agent",  "list_agents",
					   "agent_output", "wait_agents", "cancel_agent"};
	const struct jv *given = jv_get(s->step, "tools") ? jv_get(s->step, "tools") : jv_get(declared, "tools");
	struct jv *list;

	if (!jv_count(given) || !jv_get(s->step, "members"))
		return given;
	list = jv_copy(arena, given);
	for (size_t i = 0; i < COUNT(more); i++)
		jv_push(arena, list, jv_str(arena, str_of(more[i])));
	return list;
}

static int take_turn(struct step_run *s, struct workspace *ws, struct ctx *ctx, const struct jv *declared)
{
	const struct workflow_opts *given = s->w->opts;
	struct kin kin = {.crew = crew_of(s->w->ws),
			  .is_step = true,
			  .members = jv_get(s->step, "members"),
			  .max_turns = (uint64_t)jv_get_int(declared, "steps", 0)};
	struct agent_opts opts = {.model = given->model, .base_url = given->base_url, .dialect = given->dialect};
	struct agent_turn turn = {
		.session = s->session, .text = message_of(s, ws, ctx), .key = s->key, .kind = STR("workflow")};
	struct str model = jv_get_str(jv_get(s->step, "model") ? s->step : declared, "model");
	struct agent *agent;
	int r;

	if (model.len && !given->model.len)
		opts = (struct agent_opts){.model = model, .dialect = given->dialect};
	opts.prompt = jv_get_str(jv_get(s->step, "prompt") ? s->step : declared, "prompt");
	kin.filters[kin.filter_count++] = (struct tool_filter){tools_of(s, ctx->arena, declared), NULL};
	r = agent_open_as(ws, &opts, &kin, &agent, &s->err);
	if (r)
		return r;
	r = agent_run(agent, ctx, &turn, &s->result, &s->err);
	if (r == 0)
		agent_wait(agent, ctx, turn.session);
	agent_close(agent);
	return r;
}

/* The file of the result: what the agent has written there since the step began, else its answer. */
static int give_file(struct step_run *s, struct workspace *ws, struct ctx *ctx)
{
	struct store_stat stat = {0};
	struct err ignored;
	struct wpath at;
	int r;

	if (!s->output.len || s->result.waiting)
		return 0;
	r = workspace_path(ws, ctx->arena, s->output, &at, &s->err);
	if (r || (store_stat(workspace_files(ws), ctx, at, &stat, &ignored) == 0 && !str_eq(stat.version, s->before)))
		return r;
	return store_write(workspace_files(ws), ctx, at, s->result.answer, (struct store_cond){0}, NULL, &s->err);
}

static void *step_main(void *arg)
{
	struct step_run *s = arg;
	struct workflow *w = s->w;
	struct ctx ctx = {.arena = s->arena, .cancel = &w->cancel, .deadline_ns = w->ctx->deadline_ns};
	struct actor actor = {.user = workspace_actor(w->ws).user, .agent = s->agent, .session = s->session};
	struct jv *declared = NULL;
	struct workspace *ws;
	struct str root;
	int r = str_is(s->agent, GENERAL_PURPOSE) ? 0 : subagent_get(w->ws, &ctx, s->agent, &declared, &s->err);

	root = str_is(jv_get_str(jv_get(declared, "workspace"), "mode"), "isolated")
		       ? jv_get_str(jv_get(declared, "workspace"), "root")
		       : STR_NONE;
	if (str_is(root, "."))
		root = STR_NONE;
	if (r == 0)
		r = workspace_open_at(w->ws, actor, root, &ws, &s->err);
	if (r == 0) {
		r = take_turn(s, ws, &ctx, declared);
		if (r == 0)
			r = give_file(s, ws, &ctx);
		workspace_close(ws);
	}
	pthread_mutex_lock(&w->lock);
	s->r = r;
	s->is_done = true;
	pthread_cond_signal(&w->news);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* --- which steps begin --- */

static bool has_ended(const struct jv *state)
{
	struct str status = jv_get_str(state, "status");

	return str_is(status, "done") || str_is(status, "skipped") || str_is(status, "failed");
}

static void show(struct workflow *w, struct str step, struct str status, struct str text)
{
	if (w->opts->event)
		w->opts->event(w->opts->arg, step, status, text);
}

static bool is_running(const struct workflow *w, struct str id)
{
	for (size_t i = 0; i < w->running_count; i++)
		if (str_eq(w->running[i]->id, id))
			return true;
	return false;
}

static bool is_ready(const struct workflow *w, const struct jv *step)
{
	struct str id = jv_get_str(step, "id");

	if (has_ended(state_of(w, id)) || is_running(w, id))
		return false;
	for (const struct jv_member *m = jv_first(jv_get(step, "needs")); m; m = m->next)
		if (!has_ended(state_of(w, jv_str_of(m->value))))
			return false;
	return true;
}

/* The version of the file that the step is to write, before it does. */
static void note_output(struct workflow *w, const struct jv *step, struct jv *state)
{
	struct str path = workflow_fill(w->ctx->arena, jv_get_str(step, "output"), w->record);
	struct store_stat stat;
	struct err ignored;
	struct wpath at;

	if (!path.len)
		return;
	jv_set_str(w->ctx->arena, state, "output", path);
	if (workspace_path(w->ws, w->ctx->arena, path, &at, &ignored) == 0 &&
	    store_stat(workspace_files(w->ws), w->ctx, at, &stat, &ignored) == 0)
		jv_set_str(w->ctx->arena, state, "outputBefore", stat.version);
}

static int begin_step(struct workflow *w, const struct jv *step, struct err *err)
{
	struct arena *arena = w->ctx->arena;
	struct str id = jv_get_str(step, "id");
	struct jv *state = state_of(w, id);
	struct step_run *s = ARENA_NEW(arena, struct step_run);
	int r;

	*s = (struct step_run){
		.w = w, .step = step, .id = id, .agent = jv_get_str(step, "agent"), .arena = arena_new()};
	s->session = arena_printf(arena, "wf-%.*s-%.*s", STR_ARG(jv_get_str(w->record, "id")), STR_ARG(id));
	s->key = arena_printf(arena, "%.*s/%.*s", STR_ARG(jv_get_str(w->record, "id")), STR_ARG(id));
	s->message = workflow_fill(arena, jv_get_str(step, "task"), w->record);
	if (str_is(jv_get_str(state, "status"), "pending")) {
		note_output(w, step, state);
		jv_set_str(arena, state, "session", s->session);
		jv_set_str(arena, state, "agent", s->agent);
		jv_set_str(arena, state, "begunAt", clock_format_utc(arena, clock_real_ns()));
	}
	jv_set_str(arena, state, "status", STR("running"));
	s->output = arena_str(arena, jv_get_str(state, "output"));
	s->before = arena_str(arena, jv_get_str(state, "outputBefore"));
	r = save(w->ws, w->ctx, w->record, err);
	if (r == 0 && pthread_create(&s->thread, NULL, step_main, s) != 0)
		r = err_set(err, ERR_UNAVAILABLE, "there is no thread left for the step \"%.*s\"", STR_ARG(id));
	if (r) {
		arena_destroy(s->arena);
		return r;
	}
	w->running[w->running_count++] = s;
	show(w, id, STR("running"), s->agent);
	return 0;
}

static void skip_step(struct workflow *w, const struct jv *step)
{
	struct str id = jv_get_str(step, "id");

	jv_set_str(w->ctx->arena, state_of(w, id), "status", STR("skipped"));
	show(w, id, STR("skipped"), STR_NONE);
}

static int begin_ready(struct workflow *w, struct err *err)
{
	size_t most = (size_t)jv_get_int(w->definition, "max_running", 4);
	int r = 0;

	for (const struct jv_member *m = jv_first(w->list); m && r == 0 && !w->stops; m = m->next) {
		if (!is_ready(w, m->value) ||
		    str_is(jv_get_str(state_of(w, jv_get_str(m->value, "id")), "status"), "waiting"))
			continue;
		if (!workflow_holds(jv_get(m->value, "when"), jv_get(w->record, "steps")))
			skip_step(w, m->value);
		else if (w->running_count < most && w->running_count < COUNT(w->running))
			r = begin_step(w, m->value, err);
	}
	return r;
}

/* --- what a step has given --- */

static void take_result(struct workflow *w, struct step_run *s, struct jv *state)
{
	struct arena *arena = w->ctx->arena;

	if (s->result.waiting) {
		jv_set_str(arena, state, "status", STR("waiting"));
		return;
	}
	jv_set_str(arena, state, "status", STR("done"));
	jv_set_str(arena, state, "result", arena_str(arena, utf8_first(s->result.answer, RESULT_MAX)));
	jv_set_int(arena, state, "tokens", (int64_t)(s->result.usage.input + s->result.usage.output));
	if (s->result.usage.cost_usd > 0)
		jv_set(arena, state, "costUsd", jv_real(arena, s->result.usage.cost_usd));
}

/* A failure that may pass leaves the step as it is: it continues with the run. */
static void take_failure(struct workflow *w, struct step_run *s, struct jv *state)
{
	struct arena *arena = w->ctx->arena;

	if (s->err.retryable || s->err.kind == ERR_CANCELLED || s->err.kind == ERR_CONFLICT ||
	    s->err.kind == ERR_TIMEOUT || s->err.kind == ERR_UNAUTHENTICATED) {
		w->stops = true;
		w->r = s->r;
		w->err = s->err;
		err_prefix(&w->err, "step \"%.*s\"", STR_ARG(s->id));
		return;
	}
	jv_set_str(arena, state, "status", STR("failed"));
	jv_set_str(arena, state, "error", err_text(arena, &s->err));
	jv_set_str(arena, state, "result", err_text(arena, &s->err));
	if (!str_is(jv_get_str(s->step, "on_failure"), "continue"))
		w->stops = true;
}

static int end_step(struct workflow *w, struct step_run *s, struct err *err)
{
	struct arena *arena = w->ctx->arena;
	struct jv *state = state_of(w, s->id);
	int r;

	pthread_join(s->thread, NULL);
	if (s->r == 0)
		take_result(w, s, state);
	else
		take_failure(w, s, state);
	if (has_ended(state))
		jv_set_str(arena, state, "endedAt", clock_format_utc(arena, clock_real_ns()));
	show(w, s->id, jv_get_str(state, "status"), jv_get_str(state, "result"));
	arena_destroy(s->arena);
	r = save(w->ws, w->ctx, w->record, err);
	return r;
}

/* Waits until a step has ended. */
static int wait_for_one(struct workflow *w, struct err *err)
{
	struct step_run *ended = NULL;

	pthread_mutex_lock(&w->lock);
	while (!ended) {
		struct timespec until = clock_timespec(clock_real_ns() + LOOK_NS);
		struct err over;

		for (size_t i = 0; i < w->running_count && !ended; i++)
			if (w->running[i]->is_done) {
				ended = w->running[i];
				w->running[i] = w->running[--w->running_count];
			}
		if (!ended && ctx_check(w->ctx, &over) != 0)
			atomic_store(&w->cancel.requested, true);
		if (!ended)
			pthread_cond_timedwait(&w->news, &w->lock, &until);
	}
	pthread_mutex_unlock(&w->lock);
	return end_step(w, ended, err);
}

/* --- the run --- */

static void set_end(struct workflow *w)
{
	struct arena *arena = w->ctx->arena;
	const char *status = "done";
	struct str answer = STR("");
	int64_t tokens = 0;

	for (const struct jv_member *m = jv_first(w->list); m; m = m->next) {
		const struct jv *state = state_of(w, jv_get_str(m->value, "id"));
		struct str is = jv_get_str(state, "status");

		tokens += jv_get_int(state, "tokens", 0);
		if (str_is(is, "done"))
			answer = jv_get_str(state, "result");
		if (str_is(is, "failed") && !str_is(jv_get_str(m->value, "on_failure"), "continue"))
			status = "failed";
		else if (!has_ended(state) && !str_is(str_of(status), "failed"))
			status = str_is(is, "waiting") ? "waiting" : "running";
	}
	if (jv_get(w->definition, "answer"))
		answer = workflow_fill(arena, jv_get_str(w->definition, "answer"), w->record);
	jv_set_str(arena, w->record, "status", str_of(status));
	jv_set_int(arena, w->record, "tokens", tokens);
	if (str_is(str_of(status), "done"))
		jv_set_str(arena, w->record, "answer", answer);
	if (str_is(str_of(status), "done") || str_is(str_of(status), "failed"))
		jv_set_str(arena, w->record, "endedAt", clock_format_utc(arena, clock_real_ns()));
}

/* Steps that waited for an approval are tried again: it may have been given. */
static void forget_waiting(struct workflow *w)
{
	for (const struct jv_member *m = jv_first(jv_get(w->record, "steps")); m; m = m->next)
		if (str_is(jv_get_str(m->value, "status"), "waiting"))
			jv_set_str(w->ctx->arena, m->value, "status", STR("running"));
}

static void stop(struct workflow *w, const struct err *err)
{
	w->stops = true;
	if (w->r)
		return;
	w->r = -(int)err->kind;
	w->err = *err;
}

int workflow_run(struct workspace *ws, struct ctx *ctx, struct str id, const struct workflow_opts *opts,
		 struct jv **ret_record, struct err *err)
{
	struct workflow w = {.ws = ws, .ctx = ctx, .opts = opts};
	int r = workflow_record(ws, ctx, id, &w.record, err);

	if (r)
		return r;
	*ret_record = w.record;
	if (!str_is(jv_get_str(w.record, "status"), "running") && !str_is(jv_get_str(w.record, "status"), "waiting"))
		return 0;
	w.definition = jv_get(w.record, "definition");
	w.list = jv_get(w.definition, "steps");
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.news, NULL);
	forget_waiting(&w);
	for (;;) {
		size_t ended = 0;

		for (const struct jv_member *m = jv_first(jv_get(w.record, "steps")); m; m = m->next)
			ended += has_ended(m->value);
		if (begin_ready(&w, err) != 0)
			stop(&w, err);
		for (const struct jv_member *m = jv_first(jv_get(w.record, "steps")); m; m = m->next)
			ended -= has_ended(m->value);
		if (w.running_count == 0 && (ended == 0 || w.stops))
			break;
		if (w.running_count && wait_for_one(&w, err) != 0)
			stop(&w, err);
	}
	set_end(&w);
	r = save(ws, ctx, w.record, err);
	pthread_mutex_destroy(&w.lock);
	pthread_cond_destroy(&w.news);
	if (r == 0 && w.r) {
		*err = w.err;
		r = w.r;
	}
	return r;
}
