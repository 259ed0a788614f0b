/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop. It keeps no state of its own: before each step it looks at the entries of the session (those of the log,
 * and those it has just added) and does what comes next. So continuing after a kill is not a special case; it is the
 * same loop, begun with a log that ends somewhere in the middle.
 */
#include "agent/agent.h"

#include "agent/agent_internal.h"
#include "agent/children.h"
#include "agent/custom.h"
#include "agent/policy.h"
#include "agent/servers.h"
#include "agent/workflow.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/prompt/prompt.h"
#include "revisions/revisions.h"

#define MAX_TURNS   50
#define RUN_SECONDS 300.0
#define WINDOW      200000
#define COMPACT_AT  0.8

/* --- opening --- */

static struct agent *agent_new(struct workspace *ws, const struct agent_opts *opts, const struct kin *kin)
{
	const struct jv *document = workspace_config(ws)->document, *model = jv_get(document, "model");
	const struct jv *compact = jv_get(document, "auto_compact");
	struct arena *arena = arena_new();
	struct agent *agent = ARENA_NEW(arena, struct agent);

	*agent = (struct agent){.ws = ws,
				.arena = arena,
				.prompt = arena_str(arena, opts->prompt),
				.max_turns = (uint64_t)jv_get_int(model, "max_turns", MAX_TURNS),
				.timeout_ns = settings_ns(jv_get(model, "timeout_seconds"), RUN_SECONDS),
				.window = (uint64_t)jv_get_int(model, "context_window", WINDOW),
				.compacts = jv_get_bool(compact, "enabled", true),
				.compact_at = settings_real(jv_get(compact, "trigger"), COMPACT_AT),
				.timeouts = jv_get(document, "tool_timeouts")};
	agent->opts = (struct agent_opts){.model = arena_str(arena, opts->model),
					  .base_url = arena_str(arena, opts->base_url),
					  .dialect = arena_str(arena, opts->dialect)};
	if (kin)
		agent->kin = *kin;
	else
		agent->kin.crew = crew_of(ws);
	if (agent->kin.max_turns)
		agent->max_turns = agent->kin.max_turns;
	if (agent->kin.end_ns)
		agent->timeout_ns = agent->kin.end_ns - clock_real_ns();
	pthread_mutex_init(&agent->custom_lock, NULL);
	agent->servers =
		kin && kin->servers ? servers_share(kin->servers) : servers_new(workspace_config(ws), opts->servers);
	return agent;
}

int agent_open_as(struct workspace *ws, const struct agent_opts *opts, const struct kin *kin, struct agent **ret_agent,
		  struct err *err)
{
	const struct jv *document = workspace_config(ws)->document;
	struct toolset_choice choice = {0}; /* as tools.sets says */
	struct agent_opts summary = {.model = jv_get_str(jv_get(document, "auto_compact"), "summary_model"),
				     .base_url = opts->base_url};
	struct agent *agent = agent_new(ws, opts, kin);
	int r = settings_models(agent, opts, err);

	if (r == 0 && summary.model.len)
		r = settings_model(ws, &summary, &agent->summary_model, err);
	if (r == 0)
		r = toolset_new(ws, opts->dialect, &agent->set, err);
	if (r == 0)
		r = toolset_choose(agent->set, &choice, &agent->offered, err);
	if (r == 0)
		r = gates_new(document, &agent->gates, err);
	if (r == 0)
		r = child_tools_add(agent, err);
	if (r == 0)
		r = workflow_tool_add(agent, err);
	if (r == 0)
		r = host_tools_add(agent, opts, err);
	if (r) {
		agent_close(agent);
		return r;
	}
	agent_offer_tools(agent);
	*ret_agent = agent;
	return 0;
}

int agent_open(struct workspace *ws, const struct agent_opts *opts, struct agent **ret_agent, struct err *err)
{
	return agent_open_as(ws, opts, NULL, ret_agent, err);
}

void agent_close(struct agent *agent)
{
	if (!agent)
		return;
	servers_destroy(agent->servers);
	pthread_mutex_destroy(&agent->custom_lock);
	gates_destroy(agent->gates);
	toolset_destroy(agent->offered);
	toolset_destroy(agent->set);
	for (size_t i = 0; i < agent->model_count; i++)
		model_close(agent->models[i].model);
	model_close(agent->summary_model);
	arena_destroy(agent->arena);
}

const struct agent_model *run_model(const struct run *run)
{
	return &run->agent->models[run->model_at];
}

/* --- asking the model --- */

/* The prompt in parts, one for each class. */
static size_t prompt_parts(const struct prompt *prompt, struct str parts[PROMPT_CLASSES])
{
	size_t count = 0, begin = 0;

	for (size_t i = 0; i < prompt->count; i++) {
		const struct prompt_span *s = &prompt->sections[i];
		size_t end = i + 1 == prompt->count ? prompt->text.len : s->start + s->len;

		if (i + 1 < prompt->count && s[1].class == s->class)
			continue;
		parts[count++] = str_n(prompt->text.ptr + begin, end - begin);
		begin = end;
	}
	return count;
}

static void take_delta(void *arg, enum model_delta kind, struct str text)
{
	static const enum agent_event_kind kinds[] = {
		[MODEL_TEXT] = AGENT_TEXT, [MODEL_THINKING] = AGENT_THINKING, [MODEL_AGAIN] = AGENT_AGAIN};
	struct run *run = arg;
	struct agent_event event = {.kind = kinds[kind], .text = text};

	if (run->in->event)
		run->in->event(run->in->arg, &event);
}

struct jv *agent_keep(struct arena *arena, const struct jv *v)
{
	struct jv *copy = NULL;
	struct buf text;
	struct err ignored;

	if (!v)
		return NULL;
	buf_init(&text, arena, SIZE_MAX / 4);
	jv_write(&text, v);
	return jv_parse(arena, buf_str(&text), &copy, &ignored) == 0 ? copy : jv_array(arena);
}

static void queue_answer(struct run *run, const struct model_answer *answer)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "message");

	jv_set_str(arena, entry, "role", STR("assistant"));
	jv_set(arena, entry, "content", agent_keep(arena, answer->content));
	jv_set_int(arena, entry, "step", (int64_t)++run->step);
	jv_set_int(arena, entry, "number",
		   (int64_t)transcript_answers(run->entries, model_label(run_model(run)->model)) + 1);
	jv_set_str(arena, entry, "model", arena_str(arena, model_label(run_model(run)->model)));
	jv_set_str(arena, entry, "wire", str_of(model_wire(run_model(run)->model)));
	jv_set_str(arena, entry, "stop", str_of(model_stop_name(answer->stop)));
	jv_set(arena, entry, "usage", usage_value(arena, &answer->usage));
	if (answer->id.len)
		jv_set_str(arena, entry, "response_id", arena_str(arena, answer->id));
	if (answer->attempts > 1)
		jv_set_int(arena, entry, "attempts", (int64_t)answer->attempts);
	journal_queue(run, entry);
}

/* What is about to be asked, and at which revision of the workspace: `stead replay` begins there. */
static int queue_request(struct run *run, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "request");
	uint64_t head;
	int r = revisions_head(workspace_revisions(run->agent->ws), run->ctx, &head, err);

	if (r)
		return r;
	jv_set_int(arena, entry, "step", (int64_t)run->step + 1);
	jv_set_str(arena, entry, "model", arena_str(arena, model_label(run_model(run)->model)));
	jv_set_int(arena, entry, "revision", (int64_t)head);
	journal_queue(run, entry);
	return 0;
}

/* Another run of the agent may be about to change them. */
static struct str offered_tools(struct run *run)
{
	struct str tools;

	pthread_mutex_lock(&run->agent->custom_lock);
	tools = run_model(run)->tools;
	pthread_mutex_unlock(&run->agent->custom_lock);
	return tools;
}

/* Assembles the prompt and asks once; the answer is in `ctx`, the memory of the step. */
static int ask_model(struct run *run, struct ctx *ctx, struct model_answer *answer, struct err *err)
{
	struct agent *agent = run->agent;
	struct str parts[PROMPT_CLASSES];
	struct prompt_opts opts = {.is_alone = run->in->once};
	struct model_request request = {.system = parts, .tools = offered_tools(run), .delta = take_delta, .arg = run};
	struct prompt prompt;
	int r = prompt_assemble(agent->ws, ctx, &opts, &prompt, err);

	if (r == 0)
		r = queue_request(run, err);
	if (r == 0)
		r = journal_flush(run, err);
	if (r)
		return r;
	request.system_count = agent->prompt.len ? 1 : prompt_parts(&prompt, parts);
	if (agent->prompt.len)
		parts[0] = agent->prompt;
	request.messages = transcript_messages(ctx->arena, run->entries, !run->is_blind);
	request.answered = transcript_answers(run->entries, model_label(run_model(run)->model));
	return model_ask(run_model(run)->model, ctx, &request, answer, err);
}

static void report(void *arg, struct str sentence)
{
	struct run *run = arg;
	struct agent_event event = {.kind = AGENT_NOTE, .text = sentence};
	struct jv *entry = journal_entry(run, "problem");

	jv_set_str(run->ctx->arena, entry, "problem", arena_str(run->ctx->arena, sentence));
	journal_queue(run, entry);
	if (run->in->event)
		run->in->event(run->in->arg, &event);
}

/* Another model is asked in place of one that cannot be reached, for the rest of the turn. */
static bool falls_back(struct run *run, const struct err *err)
{
	struct str from = model_label(run_model(run)->model), why;
	struct err over;

	if (run->model_at + 1 == run->agent->model_count || ctx_check(run->ctx, &over) != 0 ||
	    err->kind == ERR_INVALID || err->kind == ERR_TOO_LARGE || err->kind == ERR_CANCELLED)
		return false;
	run->model_at++;
	why = arena_printf(run->ctx->arena, "%.*s failed (%.*s); %.*s answers instead", STR_ARG(from),
			   STR_ARG(err_text(run->ctx->arena, err)), STR_ARG(model_label(run_model(run)->model)));
	report(run, why);
	take_delta(run, MODEL_AGAIN, STR("another model is asked"));
	return true;
}

static int ask(struct run *run, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = *run->ctx;
	struct model_answer answer;
	struct err ignored;
	int r;

	ctx.arena = arena;
	children_tell(run);
	if (compact_is_due(run))
		compact_now(run, COMPACT_DUE, &ignored); /* if it fails, the conversation may still fit */
	do
		r = ask_model(run, &ctx, &answer, err);
	while (r && falls_back(run, err));
	if (r == -ERR_INVALID && !run->is_blind && transcript_has_pictures(run->entries)) {
		run->is_blind = true; /* a model that only reads */
		r = ask_model(run, &ctx, &answer, err);
	}
	if (r == -ERR_TOO_LARGE && !run->compacted && run->agent->compacts) {
		run->compacted = true;
		if (compact_now(run, COMPACT_TOO_LONG, &ignored) == 0)
			r = ask_model(run, &ctx, &answer, err);
	}
	if (r == 0 && run->agent->kin.tree)
		atomic_fetch_add(&run->agent->kin.tree->tokens, answer.usage.input + answer.usage.output);
	if (r)
		return r;
	spend_price(&run_model(run)->prices, &answer.usage);
	queue_answer(run, &answer);
	return 0;
}

/* --- the end of a turn --- */

static int add_usage(struct run *run, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct model_usage sum;
	uint64_t calls;
	struct jv *line;
	bool is_there = false;
	struct session_ref ref;
	struct workspace *ws = spend_place(run, &ref);
	int r = run->resumed ? usage_has(ws, run->ctx, ref, run->turn, &is_there, err) : 0;

	transcript_steps(arena, run->entries, run->turn, &sum, &calls);
	sum = transcript_usage(run->entries, run->turn); /* with what servers have asked the model */
	if (r || calls == 0 || is_there)
		return r;
	line = usage_value(arena, &sum);
	jv_set_int(arena, line, "llm_calls", (int64_t)calls);
	jv_set_int(arena, line, "duration_ms", (clock_monotonic_ns() - run->started_ns) / NS_PER_MS);
	jv_set_str(arena, line, "model", model_label(run_model(run)->model));
	jv_set_str(arena, line, "turn", run->turn);
	if (run->in->kind.len)
		jv_set_str(arena, line, "invocation_type", run->in->kind);
	return usage_add(ws, run->ctx, ref, line, err);
}

/* How the turn ended is the last thing that is written about it. */
static int end_turn(struct run *run, const char *status, const struct err *why, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry;
	int r = journal_flush(run, err);

	if (r == 0)
		r = add_usage(run, err);
	if (r == 0)
		r = state_save(run, err);
	if (r)
		return r;
	entry = journal_entry(run, "turn");
	jv_set_str(arena, entry, "status", str_of(status));
	jv_set_int(arena, entry, "steps", (int64_t)run->step);
	if (why)
		jv_set_str(arena, entry, "error", err_text(arena, why));
	journal_queue(run, entry);
	return journal_flush(run, err);
}

static int end_failed(struct run *run, const char *status, struct err *err)
{
	struct ctx own = {.arena = run->ctx->arena, .actor = run->ctx->actor}, *ctx = run->ctx;
	struct err ignored;

	run->ctx = &own; /* also when its time is over */
	end_turn(run, status, err, &ignored);
	run->ctx = ctx;
	return -(int)err->kind;
}

static bool is_final(struct err *err)
{
	return err->kind == ERR_INVALID || err->kind == ERR_TOO_LARGE;
}

static int too_many(struct run *run, struct err *err)
{
	err_set(err, ERR_QUOTA,
		"the turn ended after %llu call%s to the model; say how to continue, or raise model.max_turns in "
		"agent.yaml",
		(unsigned long long)run->agent->max_turns, run->agent->max_turns == 1 ? "" : "s");
	return end_failed(run, "limit", err);
}

/* The limit of the tree that a subagent belongs to. */
static int check_tree(struct run *run, struct err *err)
{
	const struct tree *tree = run->agent->kin.tree;
	uint64_t most = child_limits_read(workspace_config(run->agent->ws)->document).max_tokens;

	if (!tree || !most || atomic_load(&tree->tokens) < most)
		return 0;
	err_set(err, ERR_QUOTA,
		"the subagents of this conversation have used the %llu tokens of subagents.max_tokens; do the rest "
		"yourself",
		(unsigned long long)most);
	return -ERR_QUOTA;
}

static void fill_result(struct run *run, struct agent_result *ret)
{
	struct turn_state state;
	struct arena *arena = run->ctx->arena;

	transcript_state(run->entries, &state);
	ret->session = run->ref.session;
	ret->turn = jv_get_str(state.message, "turn");
	ret->answer = state.answer ? transcript_text(arena, state.answer) : STR("");
	ret->model = jv_get_str(state.answer, "model");
	ret->redirected = run->redirected;
	ret->full = str_is(jv_get_str(state.answer, "stop"), "full");
	ret->cut = ret->full || str_is(jv_get_str(state.answer, "stop"), "cut");
	ret->refused = str_is(jv_get_str(state.answer, "stop"), "refused");
	ret->steps = transcript_steps(arena, run->entries, ret->turn, &ret->usage, &ret->model_calls);
	ret->waiting = run->waiting ? approval_pending(arena, run->entries) : NULL;
	ret->duration_ms = (clock_monotonic_ns() - run->started_ns) / NS_PER_MS;
}

/* The answer is in the log; it is given before the turn is closed. A process that is killed in between gives it again,
   because the turn is still open then. The other way round, the answer would be lost, and its message asked again. */
static int end_done(struct run *run, struct err *err)
{
	struct agent_result result = {.resumed = run->was_open};
	int r = journal_flush(run, err);

	if (r == 0 && run->in->answered && !run->has_more) {
		fill_result(run, &result);
		run->in->answered(run->in->arg, &result);
	}
	return r ? r : end_turn(run, "done", NULL, err);
}

static size_t calls_left(const struct turn_state *state)
{
	size_t left = 0;

	for (size_t i = 0; i < state->call_count; i++)
		left += !state->calls[i].result;
	return left;
}

static bool wants_model(const struct turn_state *state)
{
	return !state->answer || state->call_count > 0 || str_is(jv_get_str(state->answer, "stop"), "paused");
}

bool agent_turn_is_over(const struct run *run)
{
	return run->in->is_over && run->in->is_over(run->in->arg);
}

/* Tools that are only known once something has run: those of servers, and custom ones. */
static void find_tools(struct run *run)
{
	struct agent *agent = run->agent;
	bool is_first;

	pthread_mutex_lock(&agent->custom_lock);
	is_first = !agent->has_custom;
	if (is_first)
		custom_tools_add(agent, run->ctx, report, run);
	agent->has_custom = true;
	if (servers_start(agent->servers, run->ctx, report, run) || is_first) {
		server_tools_add(agent);
		agent_offer_tools(agent);
	}
	pthread_mutex_unlock(&agent->custom_lock);
}

/* Does what comes next until the turn is closed. */
static int go_on(struct run *run, struct err *err)
{
	struct turn_state state;
	int r = 0;

	find_tools(run); /* a call that was cut off needs them before the model is asked */
	children_take_up(run);
	for (;;) {
		transcript_state(run->entries, &state);
		if (state.end)
			return 0;
		run->turn = jv_get_str(state.message, "turn");
		run->step = state.answers;
		if (agent_turn_is_over(run) && (calls_left(&state) > 0 || wants_model(&state))) {
			run->redirected = true;
			return end_turn(run, "redirected", NULL, err);
		}
		if (calls_left(&state) > 0) {
			r = calls_run(run, &state, err);
		} else if (!wants_model(&state)) {
			return end_done(run, err);
		} else if (state.answers >= run->agent->max_turns) {
			return too_many(run, err);
		} else if (check_tree(run, err) != 0 || spend_check(run, err) != 0) {
			return end_failed(run, "limit", err);
		} else {
			find_tools(run);
			r = ask(run, err);
			if (r && is_final(err))
				return end_failed(run, "failed", err);
		}
		if (r || run->waiting)
			return r;
	}
}

/* --- a turn --- */

/* The blocks of the user's message; NULL: it is text alone. */
static struct jv *message_blocks(struct run *run)
{
	struct arena *arena = run->ctx->arena;
	struct jv *content = attach_files(run, run->in->text), *text;

	if (!run->in->blocks)
		return content;
	if (!content) {
		text = jv_object(arena);
		jv_set_str(arena, text, "type", STR("text"));
		jv_set_str(arena, text, "text", run->in->text);
		content = jv_array(arena);
		jv_push(arena, content, text);
	}
	for (const struct jv_member *m = jv_first(run->in->blocks); m; m = m->next)
		jv_push(arena, content, m->value);
	return content;
}

static void begin_turn(struct run *run)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry, *content = message_blocks(run);

	run->turn = STR_NONE;
	entry = journal_entry(run, "message");
	jv_set_str(arena, entry, "turn", jv_get_str(entry, "id"));
	jv_set_str(arena, entry, "role", STR("user"));
	jv_set(arena, entry, "content", content ? content : jv_str(arena, run->in->text));
	if (content)
		jv_set_str(arena, entry, "text", run->in->text);
	if (run->in->key.len)
		jv_set_str(arena, entry, "key", run->in->key);
	journal_queue(run, entry);
}

static int drop_open(struct run *run, const struct turn_state *state, struct err *err)
{
	run->turn = jv_get_str(state->message, "turn");
	run->step = state->answers;
	return end_turn(run, "dropped", NULL, err);
}

/* Finishes, or closes, the turn that was cut off. `text`: the message that waits for it; empty: none. */
static int finish_open(struct run *run, const struct turn_state *state, struct str text, struct err *err)
{
	struct str said = transcript_said(state->message);
	struct agent_event event = {.kind = AGENT_NOTE};
	int r;

	run->recovering = run->resumed = true;
	run->has_more = text.len > 0;
	if (run->in->drops_open && text.len) {
		r = drop_open(run, state, err);
		run->resumed = run->has_more = false;
		return r;
	}
	event.text = arena_printf(run->ctx->arena, "the previous message was cut off and is finished first: %.*s",
				  STR_ARG(utf8_first(str_first(said, str_find_char(said, '\n')), 80)));
	if (text.len && run->in->event)
		run->in->event(run->in->arg, &event);
	r = go_on(run, err);
	run->resumed = run->has_more = false;
	event.text = STR("now the new message");
	if (r == 0 && !run->waiting && text.len && run->in->event)
		run->in->event(run->in->arg, &event);
	return r;
}

/* There is no text and nothing to finish; the answer of the last turn is given, if it has one. */
static int check_answered(const struct run *run, const struct turn_state *state, struct err *err)
{
	struct str session = utf8_first(run->ref.session, 60), why = jv_get_str(state->end, "error");

	if (!state->message)
		return err_set(err, ERR_NOT_FOUND, "session \"%.*s\" has no turn to finish; send a message",
			       STR_ARG(session));
	if (run->in->text.len || str_is(jv_get_str(state->end, "status"), "done"))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "the last turn of session \"%.*s\" ended without an answer%s%.*s%s",
		       STR_ARG(session), why.len ? " (" : "; say something", STR_ARG(utf8_first(why, 250)),
		       why.len ? ")" : "");
}

/* Whether the last turn is this message's: by its key if both have one, else by its text if it is open. */
static bool is_said(const struct run *run, const struct turn_state *state)
{
	struct str key = jv_get_str(state->message, "key"), said = transcript_said(state->message);
	struct agent_event note = {
		.kind = AGENT_NOTE,
		.text = STR("a message with this key was said before, with another text; its answer follows")};

	if (!state->message || run->in->once)
		return state->message != NULL;
	if (!run->in->key.len || !key.len)
		return run->was_open && str_eq(said, run->in->text);
	if (!str_eq(run->in->key, key))
		return false;
	if (run->in->text.len && !str_eq(said, run->in->text) && run->in->event)
		run->in->event(run->in->arg, &note);
	return true;
}

static int run_turn(struct run *run, void *arg, struct err *err)
{
	struct agent_result *ret = arg;
	struct turn_state state;
	struct str text = run->in->text;
	int r = 0;

	transcript_state(run->entries, &state);
	ret->resumed = run->was_open = state.message && !state.end;
	if (is_said(run, &state))
		text = STR_NONE;
	if (ret->resumed)
		r = finish_open(run, &state, text, err);
	else if (!text.len)
		r = check_answered(run, &state, err);
	if (r)
		return r;
	ret->unsaid = run->waiting && text.len;
	if (!run->waiting && text.len) {
		begin_turn(run);
		r = go_on(run, err);
	}
	if (r == 0)
		fill_result(run, ret);
	return r;
}

static struct session_ref ref_of(struct agent *agent, const struct agent_turn *turn)
{
	struct actor actor = workspace_actor(agent->ws);
	struct session_ref ref = {.agent = actor.agent, .session = turn->session};

	if (!ref.session.len)
		ref.session = actor.session;
	if (!ref.session.len)
		ref.session = actor.agent.len ? actor.agent : STR("default");
	return ref;
}

/* The end of the turn's own time, in the words of who set it. */
static int tell_limit(const struct agent *agent, struct err *err)
{
	if (agent->kin.end_ns)
		err_set(err, ERR_TIMEOUT, "this task reached its time limit");
	else
		err_set(err, ERR_TIMEOUT,
			"the turn took longer than the %.6g s of model.timeout_seconds in agent.yaml; run it again, "
			"and it continues where it stopped",
			(double)agent->timeout_ns / NS_PER_S);
	err->retryable = true;
	return -ERR_TIMEOUT;
}

/* Reads the session and calls `act`, which may write to it; `reads`: it does not, so a turn may be running. */
static int in_session(struct agent *agent, struct ctx *ctx, const struct agent_turn *turn, bool reads,
		      int (*act)(struct run *run, void *arg, struct err *err), void *arg, struct err *err)
{
	struct ctx own = *ctx;
	struct run run = {.agent = agent,
			  .ctx = &own,
			  .in = turn,
			  .ref = ref_of(agent, turn),
			  .queued = jv_array(ctx->arena),
			  .started_ns = clock_monotonic_ns()};
	struct turn_lease *lease = NULL;
	int r;

	own.actor = workspace_actor(agent->ws);
	own.actor.session = run.ref.session;
	if (!own.deadline_ns || own.deadline_ns > run.started_ns + agent->timeout_ns)
		own.deadline_ns = run.started_ns + agent->timeout_ns;
	r = reads ? 0 : turn_lease_take(&run, &lease, err);
	if (r)
		return r;
	r = session_recent(agent->ws, &own, run.ref, AGENT_ENTRIES_MAX, &run.entries, err);
	if (r == 0)
		r = act(&run, arg, err);
	if (r == -ERR_TIMEOUT && own.deadline_ns != ctx->deadline_ns && clock_monotonic_ns() >= own.deadline_ns)
		r = tell_limit(agent, err);
	if (lease)
		turn_lease_give(lease, &run);
	return r;
}

static int with_session(struct agent *agent, struct ctx *ctx, const struct agent_turn *turn,
			int (*act)(struct run *run, void *arg, struct err *err), void *arg, struct err *err)
{
	return in_session(agent, ctx, turn, false, act, arg, err);
}

int agent_key_check(struct str key, struct err *err)
{
	if (key.len <= AGENT_KEY_MAX && utf8_valid(key))
		return 0;
	return err_set(err, ERR_INVALID, "the key of a message is UTF-8 text of at most %zu bytes", AGENT_KEY_MAX);
}

int agent_run(struct agent *agent, struct ctx *ctx, const struct agent_turn *turn, struct agent_result *ret,
	      struct err *err)
{
	*ret = (struct agent_result){0};
	return with_session(agent, ctx, turn, run_turn, ret, err);
}

bool agent_wait(struct agent *agent, const struct ctx *ctx, struct str session)
{
	struct session_ref ref = ref_of(agent, &(struct agent_turn){.session = session});

	return crew_wait(agent->kin.crew, ctx, ref.session, NULL, false, INT64_MAX / 4);
}

/* --- between turns --- */

static int act_compact(struct run *run, void *arg, struct err *err)
{
	(void)arg;
	return compact_now(run, COMPACT_ASKED, err);
}

int agent_compact(struct agent *agent, struct ctx *ctx, struct str session, struct err *err)
{
	return with_session(agent, ctx, &(struct agent_turn){.session = session}, act_compact, NULL, err);
}

static int act_forget(struct run *run, void *arg, struct err *err)
{
	struct jv *report;
	int r = session_archive(run->agent->ws, run->ctx, run->ref, STR("manual"), STR_NONE, &report, err);

	(void)arg;
	return r && r != -ERR_NOT_FOUND ? r : compact_forget(run, err);
}

int agent_forget(struct agent *agent, struct ctx *ctx, struct str session, struct err *err)
{
	return with_session(agent, ctx, &(struct agent_turn){.session = session}, act_forget, NULL, err);
}

int agent_undo(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err)
{
	return with_session(agent, ctx, &(struct agent_turn){.session = session}, undo_turn, ret, err);
}

int agent_redo(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err)
{
	return with_session(agent, ctx, &(struct agent_turn){.session = session}, redo_turn, ret, err);
}

static int act_drop(struct run *run, void *arg, struct err *err)
{
	struct turn_state state;
	bool *ret = arg;

	transcript_state(run->entries, &state);
	*ret = state.message && !state.end;
	return *ret ? drop_open(run, &state, err) : 0;
}

int agent_drop(struct agent *agent, struct ctx *ctx, struct str session, bool *ret_was_open, struct err *err)
{
	return with_session(agent, ctx, &(struct agent_turn){.session = session}, act_drop, ret_was_open, err);
}

static int act_status(struct run *run, void *arg, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct jv *v = jv_object(arena), **ret = arg;
	struct turn_state state;
	int64_t turns;

	(void)err;
	transcript_state(run->entries, &state);
	turns = (int64_t)transcript_turns(arena, run->entries, NULL);
	jv_set_str(arena, v, "session", arena_str(arena, run->ref.session));
	jv_set_str(arena, v, "model", arena_str(arena, model_label(run_model(run)->model)));
	jv_set_int(arena, v, "turns", turns);
	jv_set_int(arena, v, "messages", (int64_t)jv_count(transcript_messages(arena, run->entries, false)));
	jv_set_int(arena, v, "tokens", (int64_t)compact_tokens(run));
	jv_set_int(arena, v, "window", (int64_t)run->agent->window);
	jv_set_bool(arena, v, "open", state.message && !state.end);
	*ret = v;
	return 0;
}

int agent_status(struct agent *agent, struct ctx *ctx, struct str session, struct jv **ret, struct err *err)
{
	return in_session(agent, ctx, &(struct agent_turn){.session = session}, true, act_status, ret, err);
}

/* --- as values --- */

const char *agent_event_name(const struct agent_event *event)
{
	static const char *const names[] = {
		[AGENT_TEXT] = "text",   [AGENT_THINKING] = "thinking", [AGENT_AGAIN] = "again",
		[AGENT_CALL] = "call",   [AGENT_RESULT] = "result",     [AGENT_NOTE] = "note",
		[AGENT_ASK] = "approval"};

	return names[event->kind];
}

struct jv *agent_event_value(struct arena *arena, const struct agent_event *event)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "event", str_of(agent_event_name(event)));
	if (event->id.len)
		jv_set_str(arena, v, "id", event->id);
	if (event->name.len)
		jv_set_str(arena, v, "name", event->name);
	if (event->kind == AGENT_CALL || event->kind == AGENT_ASK)
		jv_set(arena, v, "input", (struct jv *)event->input);
	else
		jv_set_str(arena, v, "text", event->text);
	if (event->kind == AGENT_ASK && event->text.len)
		jv_set_str(arena, v, "rule", event->text);
	if (event->is_error)
		jv_set_bool(arena, v, "is_error", true);
	return v;
}

struct jv *agent_result_value(struct arena *arena, const struct agent_result *result)
{
	struct jv *v = jv_object(arena), *usage = usage_value(arena, &result->usage);

	jv_set_int(arena, usage, "model_calls", (int64_t)result->model_calls);
	jv_set_str(arena, v, "session", result->session);
	jv_set_str(arena, v, "turn", result->turn);
	jv_set_str(arena, v, "answer", result->answer);
	jv_set_str(arena, v, "model", result->model);
	if (result->cut)
		jv_set_bool(arena, v, "cut", true);
	if (result->refused)
		jv_set_bool(arena, v, "refused", true);
	jv_set_bool(arena, v, "resumed", result->resumed);
	if (result->waiting)
		jv_set(arena, v, "waiting", result->waiting);
	if (result->unsaid)
		jv_set_bool(arena, v, "unsaid", true);
	jv_set(arena, v, "steps", result->steps);
	jv_set(arena, v, "usage", usage);
	jv_set_int(arena, v, "duration_ms", result->duration_ms);
	return v;
}
