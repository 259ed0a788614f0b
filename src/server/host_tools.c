/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls wait under one lock per turn. They are few: a turn calls one tool after the other, or a handful of tools that
 * only read at once. A list on the arena of the turn is enough, and an answer is copied before the waiting call is
 * woken.
 */
#include "server/host_tools.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/limits.h"

#define TOOLS_MAX ((size_t)64)
#define SLICE_NS  (100 * NS_PER_MS) /* between looks at a turn that is cancelled */

struct waiting {
	struct waiting *next;
	struct str id, name;
	const struct jv *input;
	bool is_answered, is_error;
	struct str text; /* on the heap */
};

struct host_tools {
	struct agent_host_tool tools[TOOLS_MAX];
	struct host_call {
		struct host_tools *host;
		struct str name;
	} calls[TOOLS_MAX];
	size_t count;
	void (*tell)(void *arg, const struct jv *call);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct waiting *first;
};

static struct jv *call_value(struct arena *arena, const struct waiting *w)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "id", arena_str(arena, w->id));
	jv_set_str(arena, v, "name", arena_str(arena, w->name));
	jv_set(arena, v, "input", jv_copy(arena, w->input));
	return v;
}

/* With the lock held, until it is answered or the call has to end. */
static int wait_for_answer(struct host_tools *host, struct ctx *ctx, const struct waiting *w, struct err *err)
{
	int r = 0;

	while (r == 0 && !w->is_answered) {
		struct timespec until = clock_timespec(clock_monotonic_ns() + SLICE_NS);

		pthread_cond_timedwait(&host->answered, &host->lock, &until);
		if (!w->is_answered)
			r = ctx_check(ctx, err);
	}
	return r;
}

static int call_client(void *arg, struct ctx *ctx, const struct jv *args, struct str *ret_text, struct err *err)
{
	struct host_call *call = arg;
	struct host_tools *host = call->host;
	struct waiting w = {.id = ctx->actor.call_id, .name = call->name, .input = args}, **at;
	int r;

	pthread_mutex_lock(&host->lock);
	w.next = host->first;
	host->first = &w;
	pthread_mutex_unlock(&host->lock);
	host->tell(host->arg, call_value(ctx->arena, &w));
	pthread_mutex_lock(&host->lock);
	r = wait_for_answer(host, ctx, &w, err);
	for (at = &host->first; *at != &w; at = &(*at)->next)
		;
	*at = w.next;
	pthread_mutex_unlock(&host->lock);
	*ret_text = w.is_answered ? arena_str(ctx->arena, w.text) : STR("");
	free((char *)w.text.ptr);
	if (r == 0 && w.is_error)
		return err_set(err, ERR_INVALID, "%.*s", STR_ARG(*ret_text));
	return r;
}

static int read_tool(struct arena *arena, struct host_tools *host, const struct jv *v, struct err *err)
{
	static const char *const known[] = {"name", "description", "input_schema", "reads_only"};
	struct host_call *call = &host->calls[host->count];
	const struct jv *schema = jv_get(v, "input_schema");
	bool ok = v->type == JV_OBJECT && schema && schema->type == JV_OBJECT;

	for (const struct jv_member *m = jv_first(v); m && ok; m = m->next) {
		ok = false;
		for (size_t i = 0; i < COUNT(known); i++)
			ok |= str_is(m->key, known[i]);
	}
	if (!ok || !agent_is_tool_name(jv_get_str(v, "name")) || !jv_get_str(v, "description").len)
		return err_set(err, ERR_INVALID,
			       "a tool must be {\"name\": 1 to %zu letters, digits, \"_\" and \"-\", \"description\", "
			       "\"input_schema\": a JSON Schema, \"reads_only\": false or true}",
			       AGENT_TOOL_NAME_MAX);
	*call = (struct host_call){host, arena_str(arena, jv_get_str(v, "name"))};
	host->tools[host->count++] =
		(struct agent_host_tool){.name = call->name,
					 .description = arena_str(arena, jv_get_str(v, "description")),
					 .schema = jv_copy(arena, schema),
					 .reads_only = jv_get_bool(v, "reads_only", false),
					 .call = call_client,
					 .arg = call};
	return 0;
}

int host_tools_new(struct arena *arena, const struct jv *list, void (*tell)(void *arg, const struct jv *call),
		   void *arg, struct host_tools **ret, struct err *err)
{
	struct host_tools *host = ARENA_NEW(arena, struct host_tools);
	pthread_condattr_t attr;
	int r = 0;

	if (list->type != JV_ARRAY || jv_count(list) > TOOLS_MAX)
		return err_set(err, ERR_INVALID, "\"tools\" must be a list of at most %zu tools", TOOLS_MAX);
	*host = (struct host_tools){.tell = tell, .arg = arg};
	for (const struct jv_member *m = jv_first(list); m && r == 0; m = m->next)
		r = read_tool(arena, host, m->value, err);
	if (r)
		return r;
	pthread_mutex_init(&host->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&host->answered, &attr);
	pthread_condattr_destroy(&attr);
	*ret = host;
	return 0;
}

void host_tools_release(struct host_tools *host)
{
	if (!host)
		return;
	pthread_cond_destroy(&host->answered);
	pthread_mutex_destroy(&host->lock);
}

void host_tools_offer(struct host_tools *host, struct agent_opts *opts)
{
	if (!host)
		return;
	opts->tools = host->tools;
	opts->tool_count = host->count;
}

struct jv *host_tools_waiting(struct host_tools *host, struct arena *arena)
{
	struct jv *list = jv_array(arena);

	if (!host)
		return list;
	pthread_mutex_lock(&host->lock);
	for (const struct waiting *w = host->first; w; w = w->next)
		if (!w->is_answered)
			jv_push(arena, list, call_value(arena, w));
	pthread_mutex_unlock(&host->lock);
	return list;
}

int host_tools_answer(struct host_tools *host, struct str id, struct str text, bool is_error, struct err *err)
{
	struct waiting *w = NULL;

	if (host) {
		pthread_mutex_lock(&host->lock);
		for (w = host->first; w && (w->is_answered || !str_eq(w->id, id));)
			w = w->next;
		if (w) {
			w->text = str_n(memcpy(xcalloc(1, text.len + 1), text.ptr, text.len), text.len);
			w->is_error = is_error;
			w->is_answered = true;
			pthread_cond_broadcast(&host->answered);
		}
		pthread_mutex_unlock(&host->lock);
	}
	return w ? 0
		 : err_set(err, ERR_NOT_FOUND, "this session has no call \"%.*s\" that waits for an answer",
			   STR_ARG(str_first(id, 100)));
}
