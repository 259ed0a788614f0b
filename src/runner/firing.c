/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a schedule. The agent's steps are durable, so a run is repeated without harm: what the session of this due
 * time has is finished, and only a session without a turn gets the prompt. That is the same for a new run, for one
 * whose process died, and for one that was answered but not yet recorded.
 */
#include "agent/agent.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/channels/outbox.h"
#include "runner/heartbeat.h"
#include "runner/runner.h"

#define RESPONSE_MAX ((size_t)4000) /* of an answer, in the log */

struct run {
	struct ctx *ctx;
	const struct firing *firing;
	struct workspace *ws;
	struct schedule schedule;
	struct str session, prompt;
	struct jv *record;
};

static int open_workspace(const struct firing *firing, struct str session, struct str root, struct workspace **ret,
			  struct err *err)
{
	struct workspace_opts opts = {.store_url = firing->store_url,
				      .name = firing->workspace,
				      .session = session,
				      .root = root,
				      .relaxed = firing->relaxed};

	return firing->of ? workspace_open_at(firing->of, (struct actor){.session = session}, root, ret, err)
			  : workspace_open(&opts, ret, err);
}

static int find_schedule(struct run *run, struct err *err)
{
	const struct schedule *found;
	struct schedules all;
	int r = schedules_read(run->ws, run->ctx, &all, err);

	if (r == 0)
		r = schedule_find(&all, run->firing->schedule, &found, err);
	if (r)
		return r;
	run->schedule = *found;
	run->prompt = found->prompt;
	return 0;
}

/* --- the agent --- */

/* The names of the tools that were called, each once. */
static struct jv *tools_used(struct arena *arena, const struct jv *steps)
{
	struct jv *names = jv_array(arena);

	for (const struct jv_member *s = jv_first(steps); s; s = s->next)
		for (const struct jv_member *c = jv_first(jv_get(s->value, "calls")); c; c = c->next) {
			struct str name = jv_get_str(c->value, "name");
			const struct jv_member *m = jv_first(names);

			while (m && !str_eq(jv_str_of(m->value), name))
				m = m->next;
			if (!m)
				jv_push(arena, names, jv_str(arena, name));
		}
	return names;
}

static void add_usage(struct run *run, const struct agent_result *result)
{
	struct arena *arena = run->ctx->arena;
	struct jv *record = run->record;

	jv_set_int(arena, record, "input_tokens", (int64_t)result->usage.input);
	jv_set_int(arena, record, "output_tokens", (int64_t)result->usage.output);
	jv_set_int(arena, record, "total_tokens", (int64_t)(result->usage.input + result->usage.output));
	jv_set_int(arena, record, "llm_calls", (int64_t)result->model_calls);
	jv_set(arena, record, "tools_used", tools_used(arena, result->steps));
	jv_set_str(arena, record, "response", utf8_first(result->answer, RESPONSE_MAX));
}

void runner_tell_call(struct str workspace, struct str what, const struct agent_event *call,
		      void (*event)(void *arg, const struct runner_event *event), void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf text;

	if (!event || call->kind != AGENT_CALL)
		return;
	buf_init(&text, arena, JSON_LEN_MAX + KIB);
	buf_printf(&text, "%.*s ", STR_ARG(call->name));
	jv_write(&text, call->input);
	event(arg, &(struct runner_event){
			   .kind = RUNNER_CALLED, .workspace = workspace, .what = what, .text = buf_str(&text)});
}

static void on_event(void *arg, const struct agent_event *event)
{
	const struct firing *firing = ((struct run *)arg)->firing;

	runner_tell_call(firing->workspace, firing->schedule, event, firing->event, firing->arg);
}

static int ask(struct run *run, struct agent_result *ret, struct err *err)
{
	struct agent_opts opts = {.model = run->firing->model, .base_url = run->firing->base_url};
	struct agent_turn turn = {.session = run->session,
				  .text = run->prompt,
				  .once = true,
				  .event = on_event,
				  .arg = run,
				  .kind = str_is(run->firing->schedule, HEARTBEAT_ID) ? STR("heartbeat") : STR("cron")};
	struct agent *agent;
	int r = agent_open(run->ws, &opts, &agent, err);

	if (r)
		return r;
	r = agent_run(agent, run->ctx, &turn, ret, err);
	agent_close(agent);
	return r;
}

/* Nobody is there who could be asked. People read the log, or the chat that gets the answer. */
static struct str waiting_text(const struct run *run, const struct jv *waiting)
{
	return arena_printf(run->ctx->arena,
			    "a call to \"%.*s\" is waiting for approval; 'stead approvals --session %.*s' shows it, "
			    "and after the decision 'stead run --resume --session %.*s' continues",
			    STR_ARG(jv_get_str(jv_at(waiting, 0), "name")), STR_ARG(run->session),
			    STR_ARG(run->session));
}

/* True: it ended without a result that could be recorded, and continues later. */
static bool goes_on(int r)
{
	return r == -ERR_CONFLICT || r == -ERR_CANCELLED;
}

static int run_agent(struct run *run, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	struct agent_result result = {0};
	int r = ask(run, &result, err);

	if (goes_on(r))
		return r;
	jv_set_str(arena, run->record, "outcome", r || result.waiting ? STR("error") : STR("ran"));
	jv_set_str(arena, run->record, "session", run->session);
	if (r)
		jv_set_str(arena, run->record, "error", err_text(arena, err));
	else if (result.waiting)
		jv_set_str(arena, run->record, "error", waiting_text(run, result.waiting));
	if (r == 0)
		add_usage(run, &result);
	return 0;
}

/* --- the two kinds --- */

/* The answer goes to the chat that `output` names, to its agent, or to both. If that cannot be, the log says so: it
   must not seem to have reached anybody. */
static int deliver(struct run *run, const struct jv *output, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	const struct jv *id = jv_get(output, "chat_id") ? jv_get(output, "chat_id") : jv_get(output, "target_id");
	struct str delivery = jv_get_str(output, "delivery"), name = jv_get_str(output, "channel");
	struct outbox_item item = {.channel = channels_find(run->ws, name),
				   .chat = jv_str_of(id),
				   .is_for_agent = str_is(delivery, "agent")};

	if (!str_is(delivery, "channel"))
		item.by = str_is(run->schedule.id, HEARTBEAT_ID)
				  ? STR("the heartbeat")
				  : arena_printf(arena, "the schedule \"%.*s\"", STR_ARG(run->schedule.id));
	item.text = jv_get_str(run->record, jv_get(run->record, "error") ? "error" : "response");
	if (id && id->type == JV_INT)
		item.chat = arena_printf(arena, "%lld", (long long)id->u.i);
	if (!name.len || !item.text.len)
		return 0;
	if (item.chat.len && item.channel.len)
		return outbox_put(run->ws, run->ctx, &item, err);
	jv_set_str(arena, run->record, "undelivered",
		   arena_printf(arena, "%s \"%.*s\"; the answer is only in this log",
				item.chat.len ? "agent.yaml has no channel" : "output has no chat_id for",
				STR_ARG(utf8_first(name, 60))));
	return 0;
}

static void set_duration(struct run *run, int64_t began_ns)
{
	jv_set_int(run->ctx->arena, run->record, "duration_ms", (clock_monotonic_ns() - began_ns) / NS_PER_MS);
}

static int run_schedule(struct run *run, struct err *err)
{
	int64_t began_ns = clock_monotonic_ns();
	int r = find_schedule(run, err);

	if (r == 0)
		r = run_agent(run, err);
	if (r == 0)
		set_duration(run, began_ns);
	if (r == 0)
		r = deliver(run, run->schedule.output, err);
	if (r == 0 && run->firing->by_hand)
		return schedule_log(run->ws, run->ctx, run->schedule.id, run->firing->due, run->record, err);
	return r ? r : schedule_ended(run->ws, run->ctx, &run->schedule, run->firing->due, run->record, err);
}

static int beat(struct run *run, struct workspace *whole, struct err *err)
{
	struct arena *arena = run->ctx->arena;
	int64_t began_ns = clock_monotonic_ns();
	struct str reason;
	uint64_t tasks;
	bool is_ok;
	int r = heartbeat_check(whole, run->ctx, run->firing->due, &reason, &run->prompt, &tasks, err);

	if (r)
		return r;
	if (reason.len) {
		jv_set_str(arena, run->record, "outcome", STR("skipped"));
		jv_set_str(arena, run->record, "reason", reason);
	} else {
		r = run_agent(run, err);
		if (r)
			return r;
		is_ok = heartbeat_is_ok(jv_get_str(run->record, "response"));
		if (is_ok)
			jv_set_str(arena, run->record, "outcome", STR("heartbeat_ok"));
		if (!is_ok || !heartbeat_keeps_ok(run->ws))
			r = deliver(run, heartbeat_output(run->ws, arena), err);
		if (r)
			return r;
	}
	set_duration(run, began_ns);
	jv_set_int(arena, run->record, "task_count", (int64_t)tasks);
	return heartbeat_log(whole, run->ctx, run->record, err);
}

static int run_heartbeat(struct run *run, struct err *err)
{
	struct workspace *whole;
	int r = open_workspace(run->firing, run->session, STR("workspace"), &whole, err);

	if (r)
		return r;
	if (heartbeat_schedule(run->ws, run->ctx->arena, &run->schedule))
		r = beat(run, whole, err);
	else
		run->schedule.id = STR(HEARTBEAT_ID); /* it was switched off after it was claimed */
	workspace_close(whole);
	return r ? r : schedule_ended(run->ws, run->ctx, &run->schedule, run->firing->due, NULL, err);
}

/* The same for every try of a due time, so that the next one continues with it. A run by hand is not repeated, and its
   time is not a due time: it has a session of its own, also when another one begins in the same second. */
static struct str session_name(struct arena *arena, const struct firing *firing)
{
	struct civil c = civil_of(firing->due);
	struct str name = arena_printf(arena, "%.*s-%04lld%02d%02dT%02d%02d%02dZ", STR_ARG(firing->schedule),
				       (long long)c.year, c.month, c.day, c.hour, c.minute, c.second);

	if (!firing->by_hand)
		return name;
	return arena_printf(arena, "%.*s-%08llx", STR_ARG(name), (unsigned long long)(random_u64() >> 32));
}

int firing_run(struct ctx *ctx, const struct firing *firing, struct jv **ret, struct err *err)
{
	struct run run = {.ctx = ctx,
			  .firing = firing,
			  .session = session_name(ctx->arena, firing),
			  .record = jv_object(ctx->arena)};
	int r = open_workspace(firing, run.session, STR_NONE, &run.ws, err);

	if (r)
		return r;
	r = str_is(firing->schedule, HEARTBEAT_ID) ? run_heartbeat(&run, err) : run_schedule(&run, err);
	workspace_close(run.ws);
	if (r == 0)
		*ret = run.record;
	return r;
}
