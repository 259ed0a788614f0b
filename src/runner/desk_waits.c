/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns that wait for an approval which nobody gives. When the time of the question is over, the turn continues, and
 * the agent does with the call what approval_gates.default_action says. The questions are in the sessions, so those of
 * an earlier process are found there; here is only when to look.
 */
#include <stdlib.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fatal.h"
#include "runner/conversations.h"
#include "runner/desk_internal.h"

#define CHATS_MAX 1000 /* that are looked at when the desk opens */

struct desk_wait {
	char *chat;
	int64_t until_ns; /* real time */
	struct desk_wait *next;
};

/* When the last of these questions expires; 0: there is none. */
static int64_t end_of(const struct jv *waiting)
{
	int64_t last = 0, ns;

	for (const struct jv_member *m = jv_first(waiting); m; m = m->next)
		if (clock_parse(jv_get_str(m->value, "expires_at"), &ns) && ns > last)
			last = ns;
	return last;
}

void desk_wait_for_answer(struct desk *desk, struct str chat, const struct jv *waiting)
{
	struct desk_wait *wait = xcalloc(1, sizeof(*wait));

	wait->chat = xstrndup(chat);
	wait->until_ns = end_of(waiting);
	pthread_mutex_lock(&desk->lock);
	wait->next = desk->waits;
	desk->waits = wait;
	pthread_mutex_unlock(&desk->lock);
}

struct finding {
	struct desk *desk;
	struct ctx *ctx;
	size_t left;
};

static void find_one(void *arg, struct str chat, struct str session)
{
	struct finding *f = arg;
	struct jv *waiting = NULL;
	struct err ignored;

	if (!f->left)
		return;
	f->left--;
	if (agent_approvals(f->desk->ws, f->ctx, STR_NONE, session, &waiting, &ignored) == 0 && jv_count(waiting))
		desk_wait_for_answer(f->desk, chat, waiting);
}

void desk_find_waiting(struct desk *desk, struct ctx *ctx)
{
	struct finding f = {desk, ctx, CHATS_MAX};
	struct err err = {0};

	if (conversations_each(desk->ws, ctx, find_one, &f, &err) != 0)
		desk_problem(desk, STR("conversations"), err_text(ctx->arena, &err));
}

/* The turn continues if all that it waits for has expired. A later question of the same chat has a wait of its own. */
static int resume(struct desk *desk, struct ctx *ctx, struct str chat, int64_t now_ns, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str rest = chat, channel = STR_NONE;
	struct queue_message m = {.session = chat, .text = STR(RESUME_TEXT), .is_system = true};
	enum queue_result result;
	struct jv *waiting = NULL;
	struct conversation c;
	int r = conversation_now(desk->ws, ctx, chat, 0, &c, err);

	if (r == 0)
		r = agent_approvals(desk->ws, ctx, STR_NONE, c.session, &waiting, err);
	if (r || !jv_count(waiting) || end_of(waiting) > now_ns)
		return r == -ERR_NOT_FOUND ? 0 : r;
	str_cut(&rest, ':', &channel);
	m.id = arena_printf(arena, "expired-%.*s",
			    STR_ARG(desk_approval_id(arena, jv_get_str(jv_at(waiting, 0), "id"))));
	m.origin = desk_origin(arena, channel, rest);
	return queue_put(desk->queue, ctx, &m, clock_monotonic_ns(), &result, err);
}

static struct desk_wait *take_over(struct desk *desk, int64_t now_ns, int64_t *ret_next_ns)
{
	struct desk_wait *found = NULL, **at = &desk->waits;

	*ret_next_ns = INT64_MAX;
	pthread_mutex_lock(&desk->lock);
	while (*at && !found)
		if ((*at)->until_ns <= now_ns) {
			found = *at;
			*at = found->next;
		} else {
			at = &(*at)->next;
		}
	for (struct desk_wait *w = desk->waits; w; w = w->next)
		*ret_next_ns = w->until_ns < *ret_next_ns ? w->until_ns : *ret_next_ns;
	pthread_mutex_unlock(&desk->lock);
	return found;
}

int64_t desk_resume_expired(struct desk *desk, struct ctx *ctx)
{
	int64_t now_ns = clock_real_ns(), next_ns;
	struct desk_wait *wait;

	while ((wait = take_over(desk, now_ns, &next_ns))) {
		struct err err = {0};

		if (resume(desk, ctx, str_of(wait->chat), now_ns, &err) != 0)
			desk_problem(desk, str_of(wait->chat), err_text(ctx->arena, &err));
		free(wait->chat);
		free(wait);
	}
	return next_ns == INT64_MAX ? INT64_MAX : clock_monotonic_ns() + next_ns - now_ns;
}

void desk_forget_waits(struct desk *desk)
{
	int64_t ignored;
	struct desk_wait *wait;

	while ((wait = take_over(desk, INT64_MAX, &ignored))) {
		free(wait->chat);
		free(wait);
	}
}
