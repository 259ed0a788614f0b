/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool calls of an answer. Calls that only read and follow each other run at the same time; the others run alone,
 * in the order in which the model asked for them. Before a call runs, the log has its intent; its result is in the log
 * before anything else happens.
 *
 * After a kill an intent may have no result. Whether the call was made is known all the same: every change of the
 * workspace is a revision that names its call. A call that only reads is made again; a change that is in the revisions
 * is not; one that is not there was not made, and is made now. For effects outside the workspace nobody knows: the
 * result says so.
 */
#include <pthread.h>

#include "agent/agent_internal.h"
#include "agent/policy.h"
#include "agent/recorded.h"
#include "agent/servers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/artifacts/artifacts.h"
#include "home/exec/exec.h"
#include "home/plans/plans.h"
#include "revisions/revisions.h"
#include "text/schema.h"
#include "tool/coerce.h"

#define TOOL_SECONDS 120.0
#define PICTURE_MAX  (READ_MEDIA_MAX / 3 * 4 + 4) /* bytes of base64 */
#define SHOWN_MAX    20                           /* changes that are named to the model after a kill */

struct job {
	struct run *run;
	const struct jv *block;
	const struct tool_info *tool;     /* NULL: there is none of that name */
	const struct server_tool *remote; /* NULL: not a tool of a server */
	const struct agent_tool *own;     /* NULL: a tool of the workspace or of a server */
	bool has_intent;
	struct str call_id;  /* in the revisions */
	struct arena *arena; /* of the call */
	struct str text;
	struct jv *picture; /* for the model, with the text; NULL: none */
	bool is_error;
	bool is_given; /* it has its result from a recording */
	struct gate gate;
	pthread_t thread;
};

static const struct jv *input_of(const struct job *job)
{
	return jv_get(job->block, "input");
}

static void show(const struct job *job, enum agent_event_kind kind)
{
	const struct agent_turn *in = job->run->in;
	struct agent_event event = {.kind = kind,
				    .text = job->text,
				    .id = jv_get_str(job->block, "id"),
				    .name = jv_get_str(job->block, "name"),
				    .input = input_of(job),
				    .is_error = job->is_error};

	if (in->event)
		in->event(in->arg, &event);
}

/* Commands, subagents, custom tools and servers have limits of their own, which may be longer than TOOL_SECONDS. */
static int64_t limit_ns(const struct job *job)
{
	int64_t usual = settings_ns(NULL, TOOL_SECONDS), own;

	if (job->tool->traits & TOOL_RUNS || (job->own && job->own->ends_itself))
		return INT64_MAX / 2;
	own = job->remote ? mcp_client_timeout_ns(job->remote->client) : 0;
	return own > usual ? own : usual;
}

static int64_t deadline_of(const struct job *job)
{
	const struct jv *timeouts = job->run->agent->timeouts;
	const struct jv *own = jv_get_key(jv_get(timeouts, "overrides"), jv_get_str(job->block, "name"));
	const struct jv *wanted = own ? own : jv_get(timeouts, "default_seconds");
	int64_t may_take = wanted ? settings_ns(wanted, TOOL_SECONDS) : limit_ns(job);
	int64_t now = clock_monotonic_ns(), turn = job->run->ctx->deadline_ns;

	return turn && turn - now < may_take ? turn : now + may_take;
}

/* Of the kinds that every provider takes; NULL: it is not one of them. */
static struct jv *picture_of(struct arena *arena, const struct media *media)
{
	static const char *const kinds[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
	struct str name = wpath_name((struct wpath){media->path});
	struct jv *picture = jv_object(arena);

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (str_is(media->mime, kinds[i]) && media->data.len <= PICTURE_MAX) {
			jv_set_str(arena, picture, "name", name.len ? name : STR("picture"));
			jv_set_str(arena, picture, "media_type", media->mime);
			jv_set_str(arena, picture, "data", media->data);
			return picture;
		}
	return NULL;
}

static int call_server(struct job *job, struct ctx *ctx, struct err *err)
{
	struct server_host own = {.run = job->run, .server = mcp_client_name(job->remote->client)};
	struct mcp_host host = server_host(&own);

	struct mcp_result result;
	int r = mcp_client_call(job->remote->client, ctx, job->remote->name, input_of(job), &host, &result, err);

	if (r)
		return r;
	job->text = result.text;
	job->is_error = result.is_error;
	job->picture = picture_of(job->arena, &(struct media){result.mime, result.image, job->tool->name});
	return 0;
}

/* What goes beyond the workspace's own tools is checked, refused while planning, and parked, as theirs is there. */
static int call_outside(struct job *job, struct ctx *ctx, struct err *err)
{
	const struct jv *input = args_coerce(ctx->arena, job->tool->input_schema, input_of(job));
	struct workspace *ws = job->run->agent->ws;
	int r = 0;

	if (!(job->tool->traits & (TOOL_READS_ONLY | TOOL_PLANS)))
		r = plan_refuses(ws, ctx, arena_cstr(ctx->arena, job->tool->name), err);
	if (r == 0 && job->remote)
		return call_server(job, ctx, err);
	if (r == 0)
		r = schema_check(job->tool->input_schema, input, "arguments", err);
	return r ? r : job->own->call(job->own, job->run, ctx, input, &job->text, err);
}

/* A large result becomes an artifact; one that cannot be stored is given as it is. */
static void park(struct job *job, struct ctx *ctx)
{
	struct artifacts *artifacts = workspace_artifacts(job->run->agent->ws);
	struct err ignored;

	(void)artifacts_offload(artifacts, ctx, job->tool->name, input_of(job), &job->text, &ignored);
}

/* A call that was given up while it ran elsewhere: the model must not take it for one that was not made. */
static bool is_unsure(const struct job *job, const struct err *err)
{
	unsigned traits = job->tool->traits;

	return (err->kind == ERR_TIMEOUT || (err->kind == ERR_UNAVAILABLE && job->remote)) &&
	       traits & TOOL_OPEN_WORLD && !(traits & (TOOL_READS_ONLY | TOOL_IDEMPOTENT));
}

/* True: the job has the result that the same call had in the conversation that is replayed. */
static bool is_recorded(struct job *job)
{
	struct recorded *recorded = job->run->agent->kin.recorded;
	const struct jv *result =
		recorded ? recorded_take(recorded, jv_get_str(job->block, "name"), input_of(job)) : NULL;

	if (!result)
		return false;
	job->text = jv_get_str(result, "output");
	job->is_error = jv_get_bool(result, "is_error", false);
	job->picture = (struct jv *)jv_get(result, "picture");
	return true;
}

/* In a replay nothing outside its fork happens again. */
static bool take_recorded(struct job *job)
{
	struct recorded *recorded = job->run->agent->kin.recorded;
	bool is_of_agents = job->own && job->own->is_of_agents;

	if (!recorded || !(is_of_agents ? recorded_covers_agents(recorded) : job->tool->traits & TOOL_OPEN_WORLD))
		return false;
	if (is_recorded(job))
		return true;
	if (job->tool->traits & TOOL_READS_ONLY)
		return false;
	job->is_error = true;
	job->text = arena_printf(job->arena,
				 "%.*s was not called: it acts outside the workspace, this is a replay, and the "
				 "recording has no such call with these arguments",
				 STR_ARG(job->tool->name));
	return true;
}

static void *job_run(void *arg)
{
	struct job *job = arg;
	struct agent *agent = job->run->agent;
	struct ctx ctx = *job->run->ctx;
	struct tool_result result;
	struct err err;

	if (job->is_given)
		return NULL;
	ctx.arena = job->arena;
	ctx.actor.call_id = job->call_id;
	ctx.deadline_ns = deadline_of(job);
	if (job->remote || job->own) {
		job->is_error = false;
		if (call_outside(job, &ctx, &err) != 0) {
			job->is_error = true;
			job->text = arena_printf(job->arena, "%.*s%s", STR_ARG(err_text(job->arena, &err)),
						 is_unsure(job, &err) ? "; it may or may not have taken effect" : "");
		} else if (!job->is_error) {
			park(job, &ctx);
		}
		return NULL;
	}
	if (toolset_call(agent->set, &ctx, job->tool->name, input_of(job), &result, &err) != 0) {
		job->is_error = true;
		job->text = err_text(job->arena, &err);
		return NULL;
	}
	job->is_error = result.is_error;
	job->text = result.text;
	job->picture = picture_of(job->arena, &result.media);
	return NULL;
}

/* --- what was begun and not finished --- */

#define OUTCOME_UNKNOWN                                                                                                \
	"the outcome is unknown: the process was interrupted during this call, and it may or may not have taken "      \
	"effect"

/* The revision before the last request of the turn: calls of its answer are after it. */
static uint64_t revision_before(const struct run *run)
{
	uint64_t revision = 0;

	for (const struct jv_member *m = jv_first(run->entries); m; m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "request"))
			revision = (uint64_t)jv_get_int(m->value, "revision", 0);
	return revision;
}

/* The changes that the call has made, as lines. */
static int look_up(struct job *job, struct buf *text, bool *ret_made, struct err *err)
{
	struct rev_query query = {.call_id = job->call_id, .since = revision_before(job->run), .limit = SHOWN_MAX};
	struct revision *found = NULL;
	size_t count = 0;
	bool more = false;
	int r = revisions_query(workspace_revisions(job->run->agent->ws), job->run->ctx, &query, &found, &count, &more,
				err);

	for (size_t i = 0; i < count && r == 0; i++)
		buf_printf(text, "\n%s %.*s (revision %llu)", rev_op_name(found[i].op), STR_ARG(found[i].path.s),
			   (unsigned long long)found[i].number);
	if (more)
		buf_lit(text, "\nand more");
	*ret_made = count > 0;
	return r;
}

/* A program that changed no file may still have done something elsewhere. */
static int may_have_acted(struct job *job, bool *ret, struct err *err)
{
	*ret = false;
	return job->tool->traits & TOOL_RUNS ? exec_reaches_out(job->run->agent->ws, job->run->ctx, ret, err) : 0;
}

/* *ret_known: the call is settled; otherwise it has to be made. */
static int recover(struct job *job, bool *ret_known, struct err *err)
{
	bool outside = job->tool->traits & TOOL_OPEN_WORLD;
	struct buf text;
	int r = 0;

	*ret_known = false;
	if (job->tool->traits & TOOL_READS_ONLY)
		return 0;
	buf_init(&text, job->run->ctx->arena, 64 * KIB);
	if (!outside) {
		buf_lit(&text, "done: the process was interrupted after this call had made the changes below; if the "
			       "call should change more than that, check before you continue:");
		r = look_up(job, &text, ret_known, err);
		if (r == 0 && !*ret_known)
			r = may_have_acted(job, &outside, err);
	}
	if (r == 0 && outside && !(job->tool->traits & TOOL_IDEMPOTENT)) {
		buf_clear(&text);
		buf_lit(&text, OUTCOME_UNKNOWN "; find out before you repeat it");
		*ret_known = job->is_error = true;
	}
	job->text = buf_str(&text);
	return r;
}

/* --- in groups --- */

/* The MCP server that the call goes to; empty: none. */
static struct str server_of(const struct job *job)
{
	if (job->remote)
		return mcp_client_name(job->remote->client);
	return job->own && job->own->names_server ? jv_get_str(input_of(job), "server") : STR_NONE;
}

static void job_init(struct job *job, struct run *run, const struct turn_state *state, size_t index)
{
	const struct wanted_call *call = &state->calls[index];
	struct str name = jv_get_str(call->block, "name");

	*job = (struct job){.run = run,
			    .block = call->block,
			    .tool = agent_may_call(run->agent, name) ? toolset_find(run->agent->set, name) : NULL,
			    .has_intent = call->intent != NULL,
			    .call_id = arena_printf(run->ctx->arena, "%.*s.%zu",
						    STR_ARG(jv_get_str(state->answer, "id")), index + 1)};
	if (!job->tool)
		job->own = agent_tool_find(run->agent, name);
	if (!job->tool && !job->own && agent_may_call(run->agent, name))
		job->remote = servers_find(run->agent->servers, name);
	if (job->own || job->remote)
		job->tool = job->own ? &job->own->info : &job->remote->info;
	if (job->tool)
		job->gate = gates_decide(run->agent->gates, job->tool, server_of(job), input_of(job));
}

static bool may_run_along(const struct job *job)
{
	return job->tool && (job->tool->traits & TOOL_READS_ONLY || (job->own && job->own->runs_along)) &&
	       !jv_get(job->block, "input_error") && job->gate.effect == GATE_ALLOW;
}

/* What a call reads may be the work of a subagent that was called before it. */
static bool runs_with(const struct job *first, const struct job *job)
{
	return may_run_along(job) && !((first->tool->traits ^ job->tool->traits) & TOOL_READS_ONLY);
}

static void queue_intent(struct job *job)
{
	struct arena *arena = job->run->ctx->arena;
	struct jv *entry = journal_entry(job->run, "tool_use");

	jv_set_str(arena, entry, "toolCallId", jv_get_str(job->block, "id"));
	jv_set_str(arena, entry, "name", jv_get_str(job->block, "name"));
	jv_set(arena, entry, "input", (struct jv *)input_of(job));
	jv_set_str(arena, entry, "call", job->call_id);
	if (job->gate.rule.len)
		jv_set_str(arena, entry, "rule", arena_str(arena, job->gate.rule));
	journal_queue(job->run, entry);
}

static void queue_result(struct job *job)
{
	struct arena *arena = job->run->ctx->arena;
	struct jv *entry = journal_entry(job->run, "tool_result");

	job->text = arena_str(arena, job->text);
	jv_set_str(arena, entry, "toolCallId", jv_get_str(job->block, "id"));
	jv_set_str(arena, entry, "name", jv_get_str(job->block, "name"));
	jv_set_str(arena, entry, "output", job->text);
	if (job->picture)
		jv_set(arena, entry, "picture", jv_copy(arena, job->picture));
	if (job->is_error)
		jv_set_bool(arena, entry, "is_error", true);
	journal_queue(job->run, entry);
	show(job, AGENT_RESULT);
}

/* Asks where the policy says so. *ret_refused: the call is not to be made. */
static int pass_gate(struct job *job, bool *ret_refused, struct err *err)
{
	struct approval ask = {.call = job->call_id,
			       .name = job->tool->name,
			       .rule = job->gate.rule,
			       .input = input_of(job),
			       .hides_args = job->gate.hides_args};
	enum approval_state state = APPROVAL_REFUSED;
	int r = 0;

	*ret_refused = false;
	if (job->gate.effect == GATE_ALLOW || job->has_intent) /* what was begun was allowed */
		return 0;
	if (job->gate.effect == GATE_ASK)
		r = approval_ask(job->run, &ask, &state, err);
	if (r)
		return r;
	job->run->waiting = state == APPROVAL_WAITING;
	*ret_refused = job->is_error = state == APPROVAL_REFUSED || state == APPROVAL_EXPIRED;
	if (*ret_refused)
		job->text = arena_printf(job->run->ctx->arena,
					 "%.*s was not called: %s (%.*s); do not try to get the same "
					 "effect in another way",
					 STR_ARG(job->tool->name),
					 job->gate.effect == GATE_DENY ? "it is denied"
					 : state == APPROVAL_EXPIRED   ? "nobody approved it in time"
								       : "its approval was refused",
					 STR_ARG(job->gate.rule));
	return 0;
}

/* True: it is settled without a call. */
static bool is_settled(struct job *job)
{
	struct arena *arena = job->run->ctx->arena;
	struct str why = jv_get_str(job->block, "input_error");

	if (job->tool && !why.len)
		return false;
	if (!job->tool && is_recorded(job)) /* of a server, a program or tools/ that had it then */
		return true;
	job->is_error = true;
	if (!job->tool && job->has_intent) { /* of a program, a server or tools/, which had it when the call began */
		job->text = arena_printf(arena, OUTCOME_UNKNOWN "; the tool \"%.*s\" is no longer there",
					 STR_ARG(utf8_first(jv_get_str(job->block, "name"), 100)));
		return true;
	}
	job->text = job->tool ? arena_printf(arena, "%.*s was not called: its arguments are not valid JSON (%.*s)",
					     STR_ARG(job->tool->name), STR_ARG(why))
			      : arena_printf(arena, "there is no tool \"%.*s\"; use one of those that are offered",
					     STR_ARG(utf8_first(jv_get_str(job->block, "name"), 100)));
	return true;
}

static void run_jobs(struct job *jobs, size_t count)
{
	bool threaded[AGENT_THREADS_MAX] = {0};

	for (size_t i = 0; i < count; i++) {
		jobs[i].arena = arena_new();
		jobs[i].is_given = take_recorded(&jobs[i]);
	}
	for (size_t i = 1; i < count; i++)
		threaded[i] = pthread_create(&jobs[i].thread, NULL, job_run, &jobs[i]) == 0;
	for (size_t i = 0; i < count; i++)
		if (!threaded[i])
			job_run(&jobs[i]);
	for (size_t i = 1; i < count; i++)
		if (threaded[i])
			pthread_join(jobs[i].thread, NULL);
}

static int run_group(struct run *run, struct job *jobs, size_t count, struct err *err)
{
	int r;

	for (size_t i = 0; i < count; i++) {
		if (!jobs[i].has_intent)
			queue_intent(&jobs[i]);
	}
	r = journal_flush(run, err);
	for (size_t i = 0; i < count && r == 0; i++)
		show(&jobs[i], AGENT_CALL);
	if (r == 0)
		run_jobs(jobs, count);
	if (r == 0)
		r = ctx_check(run->ctx, err); /* what the end of the turn cut off is taken up again with the turn */
	for (size_t i = 0; i < count; i++) {
		if (r == 0)
			queue_result(&jobs[i]);
		if (jobs[i].arena)
			arena_destroy(jobs[i].arena);
	}
	return r;
}

/* One call, or those that read and follow it. *ret_next: the first call that is left. */
static int run_next(struct run *run, const struct turn_state *state, size_t index, size_t *ret_next, struct err *err)
{
	struct job jobs[AGENT_THREADS_MAX];
	bool known;
	size_t count = 1;
	int r = 0;

	job_init(&jobs[0], run, state, index++);
	known = is_settled(&jobs[0]);
	if (!known)
		r = pass_gate(&jobs[0], &known, err);
	if (r || run->waiting)
		return r;
	if (!known && run->recovering && jobs[0].has_intent)
		r = recover(&jobs[0], &known, err);
	if (r == 0 && known)
		queue_result(&jobs[0]);
	if (!known && may_run_along(&jobs[0]))
		for (; index < state->call_count && count < AGENT_THREADS_MAX && !state->calls[index].result; index++) {
			job_init(&jobs[count], run, state, index);
			if (!runs_with(&jobs[0], &jobs[count]))
				break;
			count++;
		}
	*ret_next = index;
	return r || known ? r : run_group(run, jobs, count, err);
}

int calls_run(struct run *run, const struct turn_state *state, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < state->call_count && r == 0 && !run->waiting && !agent_turn_is_over(run);)
		if (state->calls[i].result)
			i++;
		else
			r = run_next(run, state, i, &i, err);
	run->recovering = false;
	return r == 0 && run->waiting ? journal_flush(run, err) : r;
}
