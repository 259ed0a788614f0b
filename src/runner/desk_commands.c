/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that people give in a chat. They are carried out at once, also while a turn runs; /compact needs the model,
 * so it waits in the queue like a message. A word that is not a command here goes to the agent. */
#include "agent/agent.h"
#include "base/clock.h"
#include "home/sessions/sessions.h"
#include "home/tasks/tasks.h"
#include "runner/conversations.h"
#include "runner/desk_internal.h"

struct asked {
	struct desk *desk;
	struct ctx *ctx;
	struct str chat;
	const struct channel_message *message;
	const struct jv *origin;
};

static int say(const struct asked *a, struct str text)
{
	desk_say(a->desk, a->ctx, a->origin, text, NULL);
	return 0;
}

static int run_help(const struct asked *a, struct err *err)
{
	(void)err;
	return say(a, STR("/new: archive this conversation and begin another one\n/compact: the same, with a summary "
			  "of this one\n/queue collect|steer|followup|interrupt|reset: what happens to messages while "
			  "the agent works\n/model PROVIDER:MODEL|reset: the model of this chat\n/approve ID, /deny "
			  "ID: decide about a waiting call\n/status: model, conversation, waiting messages, active "
			  "tasks, today's tokens\n/help: this list"));
}

static int run_new(const struct asked *a, struct err *err)
{
	int64_t messages = 0;
	int r = conversation_end(a->desk->ws, a->ctx, a->chat, STR("manual"), STR_NONE, &messages, err);

	if (r)
		return r;
	return say(a,
		   arena_printf(a->ctx->arena, "A new conversation begins. %lld message%s of the old one %s archived.",
				(long long)messages, messages == 1 ? "" : "s", messages == 1 ? "was" : "were"));
}

static int run_compact(const struct asked *a, struct err *err)
{
	struct queue_message m = {.id = a->message->id,
				  .session = a->chat,
				  .text = STR(COMPACT_TEXT),
				  .origin = a->origin,
				  .is_system = true};
	enum queue_result result;

	return queue_put(a->desk->queue, a->ctx, &m, clock_monotonic_ns(), &result, err);
}

static int run_queue(const struct asked *a, struct err *err)
{
	static const struct channel_button modes[] = {{"collect", "queue", "collect"},
						      {"steer", "queue", "steer"},
						      {"followup", "queue", "followup"},
						      {"interrupt", "queue", "interrupt"},
						      {0}};
	struct str args = a->message->command_args;
	enum queue_mode mode;
	int r;

	if (!args.len) {
		desk_say(a->desk, a->ctx, a->origin,
			 arena_printf(a->ctx->arena, "The mode is %s.",
				      queue_mode_name(queue_mode_of(a->desk->queue, a->chat))),
			 modes);
		return 0;
	}
	if (!queue_mode_parse(args, &mode))
		return say(a, STR("There is no such mode; write collect, steer, followup, interrupt or reset."));
	r = queue_set_mode(a->desk->queue, a->ctx, a->chat, mode, err);
	if (r)
		return r;
	return say(a, arena_printf(a->ctx->arena, "The mode is now %s.",
				   queue_mode_name(queue_mode_of(a->desk->queue, a->chat))));
}

static struct str configured_model(const struct asked *a)
{
	const struct jv *model = jv_get(workspace_config(a->desk->ws)->document, "model");
	struct str provider = jv_get_str(model, "provider"), name = jv_get_str(model, "model");

	if (a->desk->opts.model.len)
		return a->desk->opts.model;
	if (model && model->type == JV_STR)
		return jv_str_of(model);
	if (!name.len)
		return STR("(none)");
	return provider.len ? arena_printf(a->ctx->arena, "%.*s:%.*s", STR_ARG(provider), STR_ARG(name)) : name;
}

/* Sets an agent up with the model, without asking it anything. */
static int check_model(const struct asked *a, const struct conversation *c, struct err *err)
{
	struct agent_opts opts = {.model = c->model, .base_url = a->desk->opts.base_url};
	struct workspace *ws = NULL;
	struct agent *agent = NULL;
	int r = workspace_open_for(a->desk->ws, STR_NONE, STR_NONE, c->session, &ws, err);

	if (r == 0)
		r = agent_open(ws, &opts, &agent, err);
	agent_close(agent);
	workspace_close(ws);
	return r;
}

static int run_model(const struct asked *a, struct err *err)
{
	struct str args = a->message->command_args;
	struct conversation c;
	int r = conversation_now(a->desk->ws, a->ctx, a->chat, 0, &c, err);

	if (r == 0 && args.len) {
		c.model = str_is(args, "reset") ? STR_NONE : args;
		if (c.model.len && str_find_char(args, ':') == args.len)
			return say(a, STR("Write PROVIDER:MODEL, or reset."));
		if (c.model.len && check_model(a, &c, err) != 0)
			return say(a, arena_printf(a->ctx->arena, "That model cannot be used: %.*s",
						   STR_ARG(err_text(a->ctx->arena, err))));
		r = conversation_set_model(a->desk->ws, a->ctx, a->chat, c.model, err);
	}
	if (r)
		return r;
	return say(a, arena_printf(a->ctx->arena, "The model of this chat is %.*s.",
				   STR_ARG(c.model.len ? c.model : configured_model(a))));
}

/* "2 turns, 3 % of 200000 tokens"; "(unknown)" when the model cannot be set up. */
static struct str context_of(const struct asked *a, const struct conversation *c)
{
	struct desk *desk = a->desk;
	struct agent_opts opts = {.model = c->model.len ? c->model : desk->opts.model, .base_url = desk->opts.base_url};
	struct workspace *ws = NULL;
	struct agent *agent = NULL;
	struct jv *status = NULL;
	struct err ignored;
	int64_t turns, tokens, window;

	if (workspace_open_for(desk->ws, STR_NONE, STR_NONE, c->session, &ws, &ignored) == 0 &&
	    agent_open(ws, &opts, &agent, &ignored) == 0)
		(void)agent_status(agent, a->ctx, c->session, &status, &ignored);
	agent_close(agent);
	workspace_close(ws);
	if (!status)
		return STR("(unknown)");
	turns = jv_get_int(status, "turns", 0);
	tokens = jv_get_int(status, "tokens", 0);
	window = jv_get_int(status, "window", 1);
	return arena_printf(a->ctx->arena, "%lld turn%s, about %lld %% of %lld tokens", (long long)turns,
			    turns == 1 ? "" : "s", (long long)(100 * tokens / window), (long long)window);
}

static int active_tasks(const struct asked *a, int64_t *ret, struct err *err)
{
	struct jv *tasks = NULL;
	int r = tasks_list(a->desk->ws, a->ctx, STR_NONE, STR_NONE, &tasks, err);

	*ret = 0;
	for (const struct jv_member *m = r ? NULL : jv_first(tasks); m; m = m->next)
		*ret += task_is_active(m->value);
	return r;
}

static int run_status(const struct asked *a, struct err *err)
{
	int64_t day = clock_real_ns() / (86400 * NS_PER_S) * (86400 * NS_PER_S);
	struct arena *arena = a->ctx->arena;
	struct jv *usage = NULL;
	struct conversation c;
	int64_t tasks = 0;
	int r = conversation_now(a->desk->ws, a->ctx, a->chat, 0, &c, err);

	if (r == 0)
		r = active_tasks(a, &tasks, err);
	if (r == 0)
		r = usage_sum(a->desk->ws, a->ctx, STR_NONE, day, &usage, err);
	if (r)
		return r;
	return say(a, arena_printf(arena,
				   "workspace: %.*s\nmodel: %.*s\nconversation: %.*s\ncontext: %.*s\nqueue: %s, %zu "
				   "waiting\ntasks: %lld active\ntokens today: %lld",
				   STR_ARG(workspace_name(a->desk->ws)),
				   STR_ARG(c.model.len ? c.model : configured_model(a)), STR_ARG(c.id),
				   STR_ARG(context_of(a, &c)), queue_mode_name(queue_mode_of(a->desk->queue, a->chat)),
				   queue_waiting(a->desk->queue, a->chat), (long long)tasks,
				   (long long)jv_get_int(usage, "total_tokens", 0)));
}

/* A decision about a call of the open turn, which then continues. */
static int decide(const struct asked *a, bool approves, struct err *err)
{
	struct agent_decision decision = {.by = a->message->sender, .approves = approves};
	struct queue_message m = {.id = a->message->id,
				  .session = a->chat,
				  .text = STR(RESUME_TEXT),
				  .origin = a->origin,
				  .is_system = true};
	enum queue_result result;
	struct jv *waiting = NULL;
	struct conversation c;
	int r = conversation_now(a->desk->ws, a->ctx, a->chat, 0, &c, err);

	if (r == 0)
		r = agent_approvals(a->desk->ws, a->ctx, STR_NONE, c.session, &waiting, err);
	for (const struct jv_member *w = r ? NULL : jv_first(waiting); w; w = w->next)
		if (str_eq(desk_approval_id(a->ctx->arena, jv_get_str(w->value, "id")), a->message->command_args))
			decision.id = jv_get_str(w->value, "id");
	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (!decision.id.len)
		return say(a, STR("Nothing is waiting for that decision. It was already made, or another message "
				  "closed the turn."));
	decision.session = c.session;
	r = agent_decide(a->desk->ws, a->ctx, &decision, err);
	if (r == -ERR_TIMEOUT || r == -ERR_NOT_FOUND)
		return say(a, err_text(a->ctx->arena, err));
	if (r == 0)
		r = say(a, approves ? STR("Approved.") : STR("Denied."));
	return r ? r : queue_put(a->desk->queue, a->ctx, &m, clock_monotonic_ns(), &result, err);
}

static int run_approve(const struct asked *a, struct err *err)
{
	return decide(a, true, err);
}

static int run_deny(const struct asked *a, struct err *err)
{
	return decide(a, false, err);
}

static const struct {
	const char *name;
	int (*run)(const struct asked *a, struct err *err);
} commands[] = {
	{"help", run_help},       {"start", run_help},      {"new", run_new},
	{"compact", run_compact}, {"queue", run_queue},     {"model", run_model},
	{"status", run_status},   {"approve", run_approve}, {"deny", run_deny},
};

int desk_command(struct desk *desk, struct ctx *ctx, struct str chat, const struct channel_message *message,
		 const struct jv *origin, bool *ret_done, struct err *err)
{
	struct asked asked = {desk, ctx, chat, message, origin};

	*ret_done = false;
	for (size_t i = 0; i < COUNT(commands); i++)
		if (str_eq_nocase(message->command, str_of(commands[i].name))) {
			*ret_done = true;
			return commands[i].run(&asked, err);
		}
	return 0;
}
