/* SPDX-License-Identifier: Apache-2.0 */
/* What services posted is handed to its channel by the thread of the desk, in the order in which it came. A process
 * that serves HTTP tells its own desk at once (desks_notice); others find it when they look the next time. */
#include "base/clock.h"
#include "base/limits.h"
#include "home/channels/followups.h"
#include "home/channels/inbox.h"
#include "runner/desk_internal.h"

static pthread_mutex_t desks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct desk *desks; /* of this process */

void desk_enlist(struct desk *desk)
{
	pthread_mutex_lock(&desks_lock);
	desk->next = desks;
	desks = desk;
	pthread_mutex_unlock(&desks_lock);
}

void desk_delist(struct desk *desk)
{
	pthread_mutex_lock(&desks_lock);
	for (struct desk **at = &desks; *at; at = &(*at)->next)
		if (*at == desk) {
			*at = desk->next;
			break;
		}
	pthread_mutex_unlock(&desks_lock);
}

void desks_notice(struct str workspace)
{
	pthread_mutex_lock(&desks_lock);
	for (struct desk *desk = desks; desk; desk = desk->next) {
		if (!str_eq(desk->opts.workspace, workspace))
			continue;
		atomic_store(&desk->has_mail, true);
		pthread_mutex_lock(&desk->lock);
		if (desk->queue)
			queue_wake(desk->queue);
		pthread_mutex_unlock(&desk->lock);
	}
	pthread_mutex_unlock(&desks_lock);
}

struct taking {
	struct desk *desk;
	struct ctx *ctx;
	bool is_stuck; /* something was left for later */
};

/* False: it stays, because it may succeed later. */
static bool take_item(void *arg, const struct inbox_item *item)
{
	struct taking *t = arg;
	struct jv *origin = jv_object(t->ctx->arena);
	struct channel *channel;
	struct err err = {0};

	jv_set_str(t->ctx->arena, origin, "channel", item->channel);
	channel = desk_channel(t->desk, origin);
	if (!channel || !channel->ops->take)
		return true; /* it was removed from agent.yaml */
	if (channel->ops->take(channel, t->ctx, item->id, item->body, &err) == 0)
		return true;
	if (!atomic_load(&t->desk->stop.requested))
		desk_problem(t->desk, item->channel, err_text(t->ctx->arena, &err));
	t->is_stuck = true;
	return false;
}

void desk_take_inbox(struct desk *desk, struct ctx *ctx)
{
	struct taking taking = {desk, ctx, false};
	struct err err = {0};
	bool takes = false;
	int r;

	for (size_t i = 0; i < desk->channel_count; i++)
		takes |= desk->channels[i]->ops->take != NULL;
	if (!takes)
		return;
	r = inbox_each(desk->ws, ctx, take_item, &taking, &err);
	if (r == 0 && !taking.is_stuck)
		r = inbox_sweep(desk->ws, ctx, clock_real_ns() / NS_PER_S, &err);
	desk_looked(desk, DESK_INBOX, r, ctx, &err);
}

/* --- turns that agents asked for --- */

/* An event of the queue: it waits for no silence and ends no turn. */
static bool start_followup(void *arg, const struct followup *f)
{
	struct taking *t = arg;
	struct arena *arena = t->ctx->arena;
	struct queue_message m = {.id = f->id,
				  .session = arena_printf(arena, "%.*s:%.*s", STR_ARG(f->channel), STR_ARG(f->chat)),
				  .text = arena_printf(arena,
						       "[follow-up %lld of at most %d, which you asked for]\n%.*s",
						       (long long)f->depth, FOLLOWUP_DEPTH_MAX, STR_ARG(f->prompt)),
				  .origin = desk_origin(arena, f->channel, f->chat),
				  .is_system = true};
	enum queue_result result;
	struct err err = {0};

	if (queue_put(t->desk->queue, t->ctx, &m, clock_monotonic_ns(), &result, &err) == 0)
		return result != QUEUE_REFUSED;
	desk_problem(t->desk, f->channel, err_text(arena, &err));
	return false;
}

void desk_start_followups(struct desk *desk, struct ctx *ctx)
{
	struct taking taking = {desk, ctx, false};
	struct err err = {0};

	int r = followups_each(desk->ws, ctx, clock_real_ns() / NS_PER_S, start_followup, &taking, &err);

	desk_looked(desk, DESK_FOLLOWUPS, r, ctx, &err);
}
