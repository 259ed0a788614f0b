/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three kinds of threads meet here. Channels call on_message() and are answered as soon as the message is in the queue.
 * One thread of the desk holds the lease, takes batches from the queue and starts a thread for each turn. A turn shows
 * its answer while it comes (by edits, not faster than the service wants), and ends its batch.
 *
 * A batch has the id of its last message, and the agent writes it into the session with the text. So a turn that was
 * answered, but whose batch was not yet ended when the process died, is not asked again: the answer of that turn is
 * sent. Only the sending itself can happen twice, because no service offers a way to make it count once.
 */
#include "runner/desk.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "home/channels/chat_log.h"
#include "home/channels/followups.h"
#include "home/channels/outbox.h"
#include "home/sessions/sessions.h"
#include "runner/conversations.h"
#include "runner/desk_internal.h"
#include "store/lease.h"

#define LEASE_NAME    "channels"
#define LEASE_NS      (30 * NS_PER_S)
#define RENEW_NS      (10 * NS_PER_S)
#define LOOK_NS       (4 * NS_PER_S) /* how often people who wait see that something happens */
#define SHOW_ALONE_NS (1500 * NS_PER_MS)
#define SHOW_GROUP_NS (3500 * NS_PER_MS)
#define SHOW_WAIT_NS  (3 * NS_PER_S) /* a partial answer that takes longer to send is left out */
#define STACK_SIZE    (1024 * KIB)
#define RETRY_NS      (5 * NS_PER_S) /* after the channels could not be had */
#define PART_NS       (5 * NS_PER_S) /* for what is said and archived at the end */
#define ARGS_SHOWN    ((size_t)500)  /* of a call that needs an approval */
#define NOTE_SHOWN    ((size_t)2000) /* of what a schedule said, for the agent of the chat */

struct turn {
	struct desk *desk;
	struct arena *arena;
	struct ctx ctx;
	struct cancel cancel;
	struct queue_batch batch;
	struct channel *channel; /* NULL: there is nobody to answer */
	/* the answer while it comes */
	struct buf text;
	int64_t shown_ns;
	struct jv *message; /* that shows it; NULL: none yet */
	atomic_bool is_shown;
	struct turn *next;
};

/* --- saying --- */

void desk_problem(struct desk *desk, struct str what, struct str text)
{
	struct runner_event event = {.kind = RUNNER_PROBLEM,
				     .workspace = desk->opts.workspace,
				     .what = what,
				     .text = text,
				     .is_error = true};

	if (desk->opts.event)
		desk->opts.event(desk->opts.arg, &event);
}

void desk_looked(struct desk *desk, enum desk_source source, int r, struct ctx *ctx, const struct err *err)
{
	static const char *const names[DESK_SOURCES] = {"outbox", "inbox", "follow-ups"};
	uint64_t hash;

	if (atomic_load(&desk->stop.requested))
		return;
	hash = r ? hash_u64(err_text(ctx->arena, err), 0) | 1 : 0;
	if (hash && hash != desk->told[source])
		desk_problem(desk, str_of(names[source]), err_text(ctx->arena, err));
	desk->told[source] = hash;
}

static void tell(struct desk *desk, enum runner_event_kind kind, struct str what, struct str text, bool is_error)
{
	struct runner_event event = {
		.kind = kind, .workspace = desk->opts.workspace, .what = what, .text = text, .is_error = is_error};

	if (desk->opts.event)
		desk->opts.event(desk->opts.arg, &event);
}

struct channel *desk_channel(struct desk *desk, const struct jv *origin)
{
	struct str name = jv_get_str(origin, "channel");
	struct channel *found = NULL;

	pthread_mutex_lock(&desk->lock);
	for (size_t i = 0; i < desk->channel_count; i++)
		if (str_eq(desk->channels[i]->name, name))
			found = desk->channels[i];
	pthread_mutex_unlock(&desk->lock);
	return found;
}

void desk_say(struct desk *desk, struct ctx *ctx, const struct jv *origin, struct str text,
	      const struct channel_button *buttons)
{
	struct channel *channel = desk_channel(desk, origin);
	struct err err = {0};

	if (channel && text.len && channel->ops->send(channel, ctx, origin, text, buttons, NULL, &err) != 0)
		desk_problem(desk, channel->name, err_text(ctx->arena, &err));
}

int64_t desk_ttl_minutes(struct desk *desk, bool is_group)
{
	return is_group ? jv_get_int(workspace_config(desk->ws)->document, "session_ttl_minutes", 180) : 0;
}

struct str desk_chat(struct arena *arena, const struct channel *channel, const struct channel_message *message)
{
	return arena_printf(arena, "%.*s:%.*s", STR_ARG(channel->name), STR_ARG(message->chat));
}

/* What the agent said in a group goes into its log. A failure hurts nothing else. */
static void log_own(struct desk *desk, struct ctx *ctx, struct str channel, struct str chat, struct str text,
		    struct str file)
{
	struct chat_line line = {.channel = channel,
				 .chat = chat,
				 .name = workspace_name(desk->ws),
				 .text = text,
				 .file = file,
				 .is_bot = true};
	struct err err = {0};

	if (chat_log_exists(desk->ws, ctx, channel, chat) && chat_log_add(desk->ws, ctx, &line, &err) != 0)
		desk_problem(desk, channel, err_text(ctx->arena, &err));
}

/* lifecycle.KEY of agent.yaml */
static bool notifies(const struct desk *desk, const char *key, bool otherwise)
{
	return jv_get_bool(jv_get(workspace_config(desk->ws)->document, "lifecycle"), key, otherwise);
}

/* --- the outbox --- */

struct sending {
	struct desk *desk;
	struct ctx *ctx;
};

struct jv *desk_origin(struct arena *arena, struct str channel, struct str chat)
{
	struct str rest = chat, first = STR_NONE;
	struct jv *origin = jv_object(arena);
	int64_t number = 0;

	str_cut(&rest, ':', &first);
	jv_set_str(arena, origin, "channel", channel);
	if (str_to_i64(first, &number))
		jv_set_int(arena, origin, "chat", number);
	else
		jv_set_str(arena, origin, "chat", first);
	if (str_to_i64(rest, &number))
		jv_set_int(arena, origin, "thread", number);
	return origin;
}

static int send_item(struct sending *s, struct channel *channel, const struct outbox_item *item, struct err *err)
{
	struct jv *origin = desk_origin(s->ctx->arena, item->channel, item->chat);
	struct str bytes;
	int r;

	if (!item->file.len)
		return channel->ops->send(channel, s->ctx, origin, item->text, NULL, NULL, err);
	r = store_read(workspace_home(s->desk->ws), s->ctx, (struct wpath){item->file}, STORE_WHOLE, CHANNEL_FILE_MAX,
		       &bytes, NULL, err);
	return r ? r : channel->ops->send_file(channel, s->ctx, origin, item->file_name, bytes, item->text, err);
}

/* What a schedule said in a chat without the agent of the chat: a person may answer to it. */
static int note_item(struct sending *s, const struct outbox_item *item, struct err *err)
{
	struct arena *arena = s->ctx->arena;
	struct str chat = arena_printf(arena, "%.*s:%.*s", STR_ARG(item->channel), STR_ARG(item->chat));
	struct str at = clock_format_seconds(arena, clock_real_ns() / NS_PER_S);

	return queue_note(s->desk->queue, s->ctx, chat,
			  arena_printf(arena, "[said in this chat by %.*s, %.*s:]\n%.*s\n[end]", STR_ARG(item->by),
				       STR_ARG(at), STR_ARG(utf8_first(str_trim(item->text), NOTE_SHOWN))),
			  err);
}

/* A turn of the agent of the chat, whose answer goes there. */
static int give_agent(struct sending *s, const struct outbox_item *item, struct jv *origin, struct err *err)
{
	struct arena *arena = s->ctx->arena;
	struct queue_message m = {
		.id = item->id,
		.session = arena_printf(arena, "%.*s:%.*s", STR_ARG(item->channel), STR_ARG(item->chat)),
		.text = arena_printf(arena,
				     "[from %.*s; nobody in this chat has read it. Your answer is sent "
				     "here:]\n%.*s",
				     STR_ARG(item->by), STR_ARG(item->text)),
		.origin = origin,
		.is_system = true};
	enum queue_result result;

	return queue_put(s->desk->queue, s->ctx, &m, clock_monotonic_ns(), &result, err);
}

/* False: it stays, because it may succeed later. */
static bool try_item(void *arg, const struct outbox_item *item)
{
	struct sending *s = arg;
	struct jv *origin = desk_origin(s->ctx->arena, item->channel, item->chat);
	struct channel *channel = desk_channel(s->desk, origin);
	struct err err = {0};
	int r;

	if (channel && item->is_for_agent)
		r = give_agent(s, item, origin, &err);
	else if (channel)
		r = send_item(s, channel, item, &err);
	else
		r = err_set(&err, ERR_NOT_FOUND, "there is no channel \"%.*s\"", STR_ARG(item->channel));
	if (r == 0 && !item->is_for_agent) {
		log_own(s->desk, s->ctx, item->channel, item->chat, item->text, item->file_name);
		if (item->by.len && note_item(s, item, &err) != 0)
			desk_problem(s->desk, item->channel, err_text(s->ctx->arena, &err));
	}
	if (r == 0)
		return true;
	if (r == -ERR_CANCELLED || r == -ERR_TIMEOUT || r == -ERR_UNAVAILABLE || r == -ERR_RATE_LIMITED)
		return false;
	desk_problem(s->desk, item->channel, err_text(s->ctx->arena, &err));
	return true;
}

/* Sends what waits. One thread at a time, so that the order is kept. */
static void empty_outbox(struct desk *desk, struct ctx *ctx)
{
	struct sending sending = {desk, ctx};
	struct err err = {0};

	pthread_mutex_lock(&desk->outbox);
	desk_looked(desk, DESK_OUTBOX, outbox_each(desk->ws, ctx, try_item, &sending, &err), ctx, &err);
	pthread_mutex_unlock(&desk->outbox);
}

/* --- what arrives --- */

/* The turn of a session that runs is stopped. */
static void interrupt(struct desk *desk, struct str session)
{
	pthread_mutex_lock(&desk->lock);
	for (struct turn *t = desk->turns; t; t = t->next)
		if (str_eq(t->batch.session, session))
			atomic_store(&t->cancel.requested, true);
	pthread_mutex_unlock(&desk->lock);
}

/* As OpenPaw's builtin "timestamp" has it: what waited in the queue says when it came. */
static struct str with_time(struct desk *desk, struct arena *arena, struct str text)
{
	struct str now = clock_format_seconds(arena, clock_real_ns() / NS_PER_S);

	if (!config_has_processor(workspace_config(desk->ws), "timestamp", false))
		return text;
	return arena_printf(arena, "[%.*s]\n%.*s", STR_ARG(workspace_time_of(desk->ws, arena, now)), STR_ARG(text));
}

static int on_message(void *arg, struct channel *channel, struct ctx *ctx, const struct channel_message *message,
		      struct err *err)
{
	struct desk *desk = arg;
	struct jv *origin = jv_copy(ctx->arena, message->origin);
	struct queue_message m = {.id = message->id,
				  .session = desk_chat(ctx->arena, channel, message),
				  .text = with_time(desk, ctx->arena, message->text),
				  .origin = origin};
	enum queue_result result;
	bool done = false;
	int r = 0;

	jv_set_str(ctx->arena, origin, "channel", channel->name);
	if (message->is_group)
		jv_set_bool(ctx->arena, origin, "group", true);
	if (message->command.len)
		r = desk_command(desk, ctx, m.session, message, origin, &done, err);
	if (r || done)
		return r;
	r = followup_reset(desk->ws, ctx, channel->name, message->chat, err);
	if (r == 0)
		r = queue_put(desk->queue, ctx, &m, clock_monotonic_ns(), &result, err);
	if (r == 0 && result == QUEUE_REFUSED)
		desk_say(desk, ctx, origin,
			 STR("Too many messages are waiting; this one was not accepted. Try again later."), NULL);
	/* a turn that is about this message already is not stopped by it */
	if (r == 0 && result == QUEUE_ADDED && queue_mode_of(desk->queue, m.session) == QUEUE_INTERRUPT &&
	    queue_waiting(desk->queue, m.session) > 0)
		interrupt(desk, m.session);
	return r;
}

static void on_heard(void *arg, struct channel *channel, struct ctx *ctx, const struct channel_heard *heard)
{
	struct desk *desk = arg;
	struct chat_line line = {.channel = channel->name,
				 .chat = heard->chat,
				 .id = heard->id,
				 .user = heard->sender,
				 .name = heard->name,
				 .text = heard->text,
				 .file = heard->file};
	struct err err = {0};

	if (chat_log_add(desk->ws, ctx, &line, &err) != 0)
		desk_problem(desk, channel->name, err_text(ctx->arena, &err));
}

static void on_problem(void *arg, struct channel *channel, struct str text)
{
	desk_problem(arg, channel->name, text);
}

/* --- a turn --- */

static bool is_group(const struct turn *t)
{
	return jv_get_bool(t->batch.origin, "group", false);
}

/* Shows what there is of the answer. Failures are left out: the whole answer follows. */
static void show(struct turn *t)
{
	int64_t now = clock_monotonic_ns();
	struct ctx ctx = t->ctx;
	struct err ignored;

	if (!t->channel || !t->channel->ops->edit ||
	    now - t->shown_ns < (is_group(t) ? SHOW_GROUP_NS : SHOW_ALONE_NS) || !str_trim(buf_str(&t->text)).len)
		return;
	ctx.deadline_ns = now + SHOW_WAIT_NS;
	if (t->message)
		t->channel->ops->edit(t->channel, &ctx, t->batch.origin, t->message, buf_str(&t->text), false,
				      &ignored);
	else
		t->channel->ops->send(t->channel, &ctx, t->batch.origin, buf_str(&t->text), NULL, &t->message,
				      &ignored);
	t->shown_ns = clock_monotonic_ns();
	atomic_store(&t->is_shown, t->message != NULL);
}

static void on_event(void *arg, const struct agent_event *event)
{
	struct turn *t = arg;
	const struct desk_opts *opts = &t->desk->opts;

	if (opts->tells_calls)
		runner_tell_call(opts->workspace, t->batch.session, event, opts->event, opts->arg);
	if (event->kind == AGENT_TEXT) {
		buf_add(&t->text, event->text);
		show(t);
	} else if (event->kind == AGENT_RESULT && str_starts(event->name, STR("send_"))) {
		empty_outbox(t->desk, &t->ctx); /* before the answer that follows it */
	} else if (event->kind == AGENT_AGAIN || event->kind == AGENT_CALL) {
		buf_clear(&t->text); /* what follows is another text */
	}
}

static bool is_over(void *arg)
{
	struct turn *t = arg;
	struct queue *queue = t->desk->queue;

	return queue_mode_of(queue, t->batch.session) == QUEUE_STEER && queue_waiting(queue, t->batch.session) > 0;
}

/* `text` empty: the open turn continues. */
static int ask(struct turn *t, const struct conversation *c, struct str text, struct agent_result *ret, struct err *err)
{
	struct desk *desk = t->desk;
	struct agent_opts opts = {.model = c->model.len ? c->model : desk->opts.model, .base_url = desk->opts.base_url};
	struct agent_turn turn = {.session = c->session,
				  .text = text,
				  .key = text.len ? t->batch.id : STR_NONE,
				  .drops_open = text.len && !t->batch.is_again,
				  .is_over = is_over,
				  .event = on_event,
				  .arg = t};
	struct workspace *ws = NULL;
	struct agent *agent = NULL;
	int r = workspace_open_for(desk->ws, STR_NONE, STR_NONE, c->session, &ws, err);

	if (r)
		return r;
	r = agent_open(ws, &opts, &agent, err);
	if (r == 0)
		r = agent_run(agent, &t->ctx, &turn, ret, err);
	agent_close(agent);
	workspace_close(ws);
	return r;
}

/* The whole answer, in the place of what was shown of it. */
static void answer(struct turn *t, struct str text)
{
	struct err err = {0};
	int r;

	text = str_trim(text);
	if (!t->channel || !text.len)
		return;
	if (t->message)
		r = t->channel->ops->edit(t->channel, &t->ctx, t->batch.origin, t->message, text, true, &err);
	else
		r = t->channel->ops->send(t->channel, &t->ctx, t->batch.origin, text, NULL, NULL, &err);
	if (r)
		desk_problem(t->desk, t->batch.session, err_text(t->arena, &err));
	else
		log_own(t->desk, &t->ctx, t->channel->name, str_from(t->batch.session, t->channel->name.len + 1), text,
			STR_NONE);
}

static int compact(struct turn *t, const struct conversation *c, struct err *err)
{
	struct agent_result result;
	int64_t messages = 0;
	int r = ask(t, c,
		    STR("Summarise this conversation for the next one: what was wanted, what was decided, what was "
			"done, what is open. Call no tools."),
		    &result, err);

	if (r == 0)
		r = conversation_end(t->desk->ws, &t->ctx, t->batch.session, STR("compact"), result.answer, &messages,
				     err);
	if (r == 0)
		answer(t, arena_printf(t->arena, "A new conversation begins, with this summary of the old one:\n\n%.*s",
				       STR_ARG(result.answer)));
	return r;
}

struct str desk_approval_id(struct arena *arena, struct str call)
{
	return str_first(sha256_hex(arena, call), 8);
}

/* One question with two buttons for each call that needs an approval. */
static void ask_people(struct turn *t, const struct jv *waiting)
{
	for (const struct jv_member *m = jv_first(waiting); m; m = m->next) {
		const char *id = arena_cstr(t->arena, desk_approval_id(t->arena, jv_get_str(m->value, "id")));
		const struct channel_button buttons[] = {{"Approve", "approve", id}, {"Deny", "deny", id}, {0}};
		const struct jv *input = jv_get(m->value, "input");
		struct str shown = STR_NONE;
		struct buf args;

		buf_init(&args, t->arena, TOOL_TEXT_MAX);
		if (input && jv_count(input)) {
			jv_write(&args, input);
			shown = utf8_first(buf_str(&args), ARGS_SHOWN);
		}
		desk_say(t->desk, &t->ctx, t->batch.origin,
			 arena_printf(t->arena, "May the agent call **%.*s**?%s%.*s%s\n\n/approve %s or /deny %s",
				      STR_ARG(jv_get_str(m->value, "name")), shown.len ? "\n```json\n" : "",
				      STR_ARG(shown), shown.len ? "\n```" : "", id, id),
			 buttons);
	}
}

static int converse(struct turn *t, const struct conversation *c, struct err *err)
{
	struct agent_result result = {0};
	struct str text = str_is(t->batch.text, RESUME_TEXT) ? STR_NONE : t->batch.text;
	int r;

	if (c->summary.len && text.len)
		text = arena_printf(t->arena, "[summary of the conversation before this one]\n%.*s\n[end]\n\n%.*s",
				    STR_ARG(c->summary), STR_ARG(text));
	r = ask(t, c, text, &result, err);
	if (r)
		return r;
	if (c->summary.len && text.len)
		conversation_began(t->desk->ws, &t->ctx, t->batch.session, err);
	if (result.waiting) {
		ask_people(t, result.waiting);
		desk_wait_for_answer(t->desk, t->batch.session, result.waiting);
	} else if (!result.redirected) {
		answer(t, result.answer);
	}
	tell(t->desk, RUNNER_ENDED, t->batch.session,
	     result.waiting      ? STR("waits for an approval")
	     : result.redirected ? STR("redirected")
				 : result.answer,
	     false);
	return 0;
}

static int run(struct turn *t, struct err *err)
{
	struct conversation c;
	int r = conversation_now(t->desk->ws, &t->ctx, t->batch.session, desk_ttl_minutes(t->desk, is_group(t)), &c,
				 err);

	if (r)
		return r;
	if (c.is_expired && notifies(t->desk, "notify_session_ttl", true))
		desk_say(t->desk, &t->ctx, t->batch.origin,
			 STR("The last conversation ended after a long silence. A new one begins."), NULL);
	return str_is(t->batch.text, COMPACT_TEXT) ? compact(t, &c, err) : converse(t, &c, err);
}

static void end(struct turn *t, int r, struct err *err)
{
	struct desk *desk = t->desk;
	bool stops = atomic_load(&desk->stop.requested) || atomic_load(&desk->leaves);
	struct ctx ctx = {.arena = t->arena, .actor = t->ctx.actor}; /* also when the turn was cancelled */
	struct err failed;

	if (r && stops) {
		queue_release(desk->queue, &t->batch); /* it continues with the next opening */
		return;
	}
	t->ctx.cancel = &desk->stop;
	if (r == -ERR_CANCELLED) {
		answer(t, STR("Stopped, because of your new message."));
	} else if (r) {
		tell(desk, RUNNER_ENDED, t->batch.session, err_text(t->arena, err), true);
		answer(t, arena_printf(t->arena, "This did not work: %.*s", STR_ARG(err_text(t->arena, err))));
	}
	atomic_store(&desk->has_mail, true); /* it may have asked for another turn */
	if (queue_done(desk->queue, &ctx, &t->batch, &failed) != 0)
		desk_problem(desk, t->batch.session, err_text(t->arena, &failed));
}

static void *turn_thread(void *arg)
{
	struct turn *t = arg, **at;
	struct desk *desk = t->desk;
	struct arena *arena = t->arena;
	struct err err = {0};
	int r;

	tell(desk, RUNNER_STARTED, t->batch.session, STR_NONE, false);
	if (t->channel && t->channel->ops->typing)
		t->channel->ops->typing(t->channel, &t->ctx, t->batch.origin);
	r = run(t, &err);
	end(t, r, &err);
	pthread_mutex_lock(&desk->lock);
	for (at = &desk->turns; *at != t;)
		at = &(*at)->next;
	*at = t->next;
	pthread_cond_broadcast(&desk->ended);
	pthread_mutex_unlock(&desk->lock);
	arena_destroy(arena);
	return NULL;
}

/* Moves the batch into a thread of its own. `arena` is the turn's from now on. */
static void start_turn(struct desk *desk, struct arena *arena, const struct queue_batch *batch)
{
	struct turn *t = ARENA_NEW(arena, struct turn);
	pthread_attr_t attr;
	pthread_t thread;
	int sys;

	*t = (struct turn){.desk = desk, .arena = arena, .batch = *batch};
	t->ctx = (struct ctx){.arena = arena, .cancel = &t->cancel, .actor = workspace_actor(desk->ws)};
	t->channel = desk_channel(desk, batch->origin);
	t->shown_ns = clock_monotonic_ns();
	buf_init(&t->text, arena, TOOL_TEXT_MAX);
	pthread_mutex_lock(&desk->lock);
	t->next = desk->turns;
	desk->turns = t;
	pthread_mutex_unlock(&desk->lock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sys = pthread_create(&thread, &attr, turn_thread, t);
	pthread_attr_destroy(&attr);
	if (sys)
		turn_thread(t); /* no thread to be had: it is this one's turn */
}

/* --- the beginning and the end --- */

struct notice {
	struct desk *desk;
	struct ctx *ctx;
	struct str text; /* empty: nothing is said */
	bool archives;
};

static void notify_chat(void *arg, struct str chat, struct str session)
{
	struct notice *n = arg;
	struct str rest = chat, channel = STR_NONE;
	struct jv *report;
	struct err err = {0};

	str_cut(&rest, ':', &channel);
	if (n->text.len)
		desk_say(n->desk, n->ctx, desk_origin(n->ctx->arena, channel, rest), n->text, NULL);
	if (n->archives) {
		int r = session_archive(n->desk->ws, n->ctx, (struct session_ref){.session = session}, STR("shutdown"),
					STR_NONE, &report, &err);

		if (r && r != -ERR_NOT_FOUND)
			desk_problem(n->desk, chat, err_text(n->ctx->arena, &err));
	}
}

/* Says `text` in all chats, and archives what was said there since the last archive. The conversations stay open: they
   continue after the next start. */
static void notify_all(struct desk *desk, struct str text, bool archives)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {
		.arena = arena, .actor = workspace_actor(desk->ws), .deadline_ns = clock_monotonic_ns() + PART_NS};
	struct notice notice = {desk, &ctx, text, archives};
	struct err err = {0};

	if (conversations_each(desk->ws, &ctx, notify_chat, &notice, &err) != 0)
		desk_problem(desk, STR("conversations"), err_text(arena, &err));
}

/* --- the thread of the desk --- */

static void take_batches(struct desk *desk, struct ctx *ctx, int64_t *ret_next_ns)
{
	for (;;) {
		struct arena *arena = arena_new();
		struct ctx own = {.arena = arena, .cancel = ctx->cancel, .actor = ctx->actor};
		struct queue_batch batch;
		struct err err = {0};
		bool taken = false;
		int r = queue_take(desk->queue, &own, clock_monotonic_ns(), &batch, &taken, ret_next_ns, &err);

		if (r && !atomic_load(&desk->stop.requested)) {
			desk_problem(desk, STR("queue"), err_text(arena, &err));
			*ret_next_ns = clock_monotonic_ns() + LOOK_NS;
		}
		if (!taken) {
			arena_destroy(arena);
			return;
		}
		start_turn(desk, arena, &batch);
	}
}

/* A copy that shares nothing with the turn, which may end. */
static const struct jv *keep(struct arena *arena, const struct jv *v)
{
	struct jv *copy = NULL;
	struct err ignored;
	struct buf text;

	buf_init(&text, arena, 64 * KIB);
	jv_write(&text, v);
	return jv_parse(arena, buf_str(&text), &copy, &ignored) == 0 ? copy : NULL;
}

/* People who wait see that the agent is at work. */
static void show_typing(struct desk *desk, struct ctx *ctx)
{
	struct {
		struct channel *channel;
		const struct jv *origin;
	} waiting[16];
	size_t n = 0;

	pthread_mutex_lock(&desk->lock);
	for (struct turn *t = desk->turns; t && n < COUNT(waiting); t = t->next)
		if (t->channel && t->channel->ops->typing && !atomic_load(&t->is_shown)) {
			waiting[n].channel = t->channel;
			waiting[n++].origin = keep(ctx->arena, t->batch.origin);
		}
	pthread_mutex_unlock(&desk->lock);
	for (size_t i = 0; i < n; i++)
		waiting[i].channel->ops->typing(waiting[i].channel, ctx, waiting[i].origin);
}

/* Chats and requests are found by the name of their channel. */
static bool name_is_taken(struct desk *desk, size_t index)
{
	struct str name = channel_config_name(channel_config(desk->ws, index));

	for (size_t i = 0; i < index; i++)
		if (str_eq(channel_config_name(channel_config(desk->ws, i)), name))
			return true;
	return false;
}

static void open_channels(struct desk *desk, struct arena *arena)
{
	const struct jv *config, *document = workspace_config(desk->ws)->document;

	if (jv_get(document, "channel") && jv_count(jv_get(document, "channels")))
		desk_problem(
			desk, STR("channels"),
			STR("agent.yaml has \"channel\" and \"channels\", and only the first one is used; move it into "
			    "the list"));
	for (size_t i = 0; (config = channel_config(desk->ws, i)) && i < DESK_CHANNELS_MAX; i++) {
		struct channel *channel;
		struct err err = {0};
		int r;

		if (name_is_taken(desk, i)) {
			desk_problem(desk, channel_config_name(config),
				     STR("another channel has this name, so this one is not opened; give each channel "
					 "its own \"name\""));
			continue;
		}
		pthread_mutex_lock(&desk->lock); /* what it receives at once is answered when it is in the list */
		r = channel_open(desk->ws, config, &desk->events, &channel, &err);
		if (r == 0)
			desk->channels[desk->channel_count++] = channel;
		pthread_mutex_unlock(&desk->lock);
		if (r)
			desk_problem(desk, channel_config_name(config), err_text(arena, &err));
	}
}

/* Once a day: old days of the logs go. */
static void cut_logs(struct desk *desk, struct ctx *ctx)
{
	int64_t day = clock_real_ns() / (86400 * NS_PER_S);
	struct err err = {0};

	if (day == desk->cut_day)
		return;
	desk->cut_day = day;
	if (chat_log_cut(desk->ws, ctx, clock_real_ns(), &err) != 0)
		desk_problem(desk, STR("channel_log"), err_text(ctx->arena, &err));
}

/* Runs until it is stopped or the lease is lost. */
static void work(struct desk *desk, struct ctx *ctx, struct lease *lease)
{
	int64_t renewed = clock_monotonic_ns(), shown = renewed;
	struct err err = {0};

	cut_logs(desk, ctx);
	open_channels(desk, ctx->arena);
	if (!desk->opts.is_reload && notifies(desk, "notify_startup", false))
		notify_all(desk, STR("Online again."), false);
	empty_outbox(desk, ctx);
	desk_find_waiting(desk, ctx);
	atomic_store(&desk->has_mail, true);
	while (!atomic_load(&desk->stop.requested)) {
		uint64_t mark = queue_mark(desk->queue);
		int64_t next = INT64_MAX, expires = desk_resume_expired(desk, ctx), now;

		if (atomic_exchange(&desk->has_mail, false)) {
			desk_take_inbox(desk, ctx);
			desk_start_followups(desk, ctx);
		}
		take_batches(desk, ctx, &next);
		now = clock_monotonic_ns();
		if (now - renewed >= RENEW_NS) {
			if (lease_renew(lease, ctx, &err) != 0) {
				desk_problem(desk, STR("channels"), err_text(ctx->arena, &err));
				if (err.kind == ERR_CONFLICT)
					return;
			}
			renewed = now;
		}
		if (now - shown >= LOOK_NS) {
			desk_take_inbox(desk, ctx);
			desk_start_followups(desk, ctx);
			empty_outbox(desk, ctx);
			show_typing(desk, ctx);
			cut_logs(desk, ctx);
			shown = now;
			arena_reset(ctx->arena);
		}
		next = next < expires ? next : expires;
		next = next < now + LOOK_NS ? next : now + LOOK_NS;
		queue_wait(desk->queue, mark, next);
	}
}

/* Turns that run are cancelled and waited for, then the channels are closed: a turn may still say something. */
static void put_away(struct desk *desk)
{
	struct queue *queue = desk->queue;

	atomic_store(&desk->leaves, true);
	pthread_mutex_lock(&desk->lock);
	for (struct turn *t = desk->turns; t; t = t->next)
		atomic_store(&t->cancel.requested, true);
	while (desk->turns)
		pthread_cond_wait(&desk->ended, &desk->lock);
	pthread_mutex_unlock(&desk->lock);
	if (atomic_load(&desk->stop.requested) && !desk->reloads)
		notify_all(desk, notifies(desk, "notify_shutdown", false) ? STR("Going offline.") : STR_NONE, true);
	for (size_t i = 0; i < desk->channel_count; i++)
		desk->channels[i]->ops->close(desk->channels[i]);
	desk->channel_count = 0;
	desk_forget_waits(desk);
	pthread_mutex_lock(&desk->lock);
	desk->queue = NULL;
	pthread_mutex_unlock(&desk->lock);
	queue_close(queue);
	atomic_store(&desk->leaves, false);
}

static int hold(struct desk *desk, struct ctx *ctx, struct lease *lease, struct err *err)
{
	struct queue_opts opts = queue_settings(desk->ws);
	struct ctx last = {.arena = ctx->arena};
	struct queue *queue;
	struct err ignored;
	int r = queue_open(desk->ws, ctx, &opts, &queue, err);

	if (r == 0) {
		pthread_mutex_lock(&desk->lock);
		desk->queue = queue;
		pthread_mutex_unlock(&desk->lock);
		work(desk, ctx, lease);
		put_away(desk);
	}
	lease_release(lease, &last, &ignored);
	lease_destroy(lease);
	return r;
}

/* Reports once why the channels are not available, and waits before the next try. */
static void rest(struct desk *desk, struct str why, uint64_t *told)
{
	struct timespec until = clock_timespec(clock_monotonic_ns() + RETRY_NS);
	uint64_t hash = hash_u64(why, 0);

	if (hash != *told)
		desk_problem(desk, STR("channels"), why);
	*told = hash;
	pthread_mutex_lock(&desk->lock);
	while (!atomic_load(&desk->stop.requested) &&
	       pthread_cond_timedwait(&desk->ended, &desk->lock, &until) != ETIMEDOUT)
		continue;
	pthread_mutex_unlock(&desk->lock);
}

static void *desk_thread(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct desk *desk = arg;
	struct ctx ctx = {.arena = arena, .cancel = &desk->stop, .actor = workspace_actor(desk->ws)};
	struct store *leases = workspace_brief_leases_new(desk->ws);
	struct str holder = arena_printf(desk->arena, "%d-%016llx", (int)getpid(), (unsigned long long)random_u64());
	uint64_t told = 0;
	struct lease_want want = {.name = STR(LEASE_NAME), .holder = holder, .ttl_ns = LEASE_NS, .wait_ns = LEASE_NS};

	while (!atomic_load(&desk->stop.requested)) {
		struct lease *lease = NULL;
		struct err err = {0};
		int r = lease_acquire(leases, &ctx, &want, &lease, &err); /* ends soon after a cancel */

		if (r == 0)
			r = hold(desk, &ctx, lease, &err);
		if (r == 0)
			told = 0;
		else if (r != -ERR_CONFLICT && r != -ERR_CANCELLED)
			rest(desk, err_text(arena, &err), &told);
		arena_reset(arena);
	}
	store_destroy(leases);
	return NULL;
}

/* --- opening and closing --- */

bool desk_is_wanted(struct workspace *ws)
{
	return channel_config(ws, 0) != NULL;
}

static void desk_free(struct desk *desk)
{
	workspace_close(desk->ws);
	pthread_cond_destroy(&desk->ended);
	pthread_mutex_destroy(&desk->outbox);
	pthread_mutex_destroy(&desk->lock);
	arena_destroy(desk->arena);
}

int desk_open(const struct desk_opts *opts, struct desk **ret, struct err *err)
{
	struct arena *arena = arena_new();
	struct desk *desk = ARENA_NEW(arena, struct desk);
	struct workspace_opts where;
	pthread_condattr_t attr;
	int r, sys = 0;

	*desk = (struct desk){.arena = arena, .opts = *opts};
	desk->opts.store_url = arena_str(arena, opts->store_url);
	desk->opts.workspace = arena_str(arena, opts->workspace);
	desk->opts.model = arena_str(arena, opts->model);
	desk->opts.base_url = arena_str(arena, opts->base_url);
	desk->events =
		(struct channel_events){.receive = on_message, .heard = on_heard, .problem = on_problem, .arg = desk};
	pthread_mutex_init(&desk->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&desk->ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&desk->outbox, NULL);
	where = (struct workspace_opts){
		.store_url = desk->opts.store_url, .name = desk->opts.workspace, .relaxed = opts->relaxed};
	r = workspace_open(&where, &desk->ws, err);
	if (r == 0)
		sys = pthread_create(&desk->thread, NULL, desk_thread, desk);
	if (sys)
		r = err_sys(err, sys, "the channels cannot be started");
	if (r) {
		desk_free(desk);
		return r;
	}
	desk_enlist(desk);
	*ret = desk;
	return 0;
}

void desk_close(struct desk *desk)
{
	if (!desk)
		return;
	desk_delist(desk);
	atomic_store(&desk->stop.requested, true);
	pthread_mutex_lock(&desk->lock);
	if (desk->queue)
		queue_wake(desk->queue);
	pthread_cond_broadcast(&desk->ended);
	pthread_mutex_unlock(&desk->lock);
	pthread_join(desk->thread, NULL);
	desk_free(desk);
}

void desk_close_for_reload(struct desk *desk)
{
	if (desk)
		desk->reloads = true;
	desk_close(desk);
}
