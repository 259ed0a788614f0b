/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of services to the channels of a workspace. They have no token: the channel's own signature says who sent
 * them, and it is checked over the bytes before anything in them is looked at. Whoever cannot sign learns nothing, not
 * even which workspaces and channels there are. What is accepted is a file of the inbox when the answer is sent.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/channels/inbox.h"
#include "runner/channels/channel.h"
#include "runner/desk.h"
#include "server/server_internal.h"
#include "workspace/workspace_parts.h"

static struct str header_of(void *arg, const char *name)
{
	return exchange_header(arg, name);
}

static int check(struct exchange *x, struct str workspace, struct str channel, struct inbox_item *ret, struct err *err)
{
	struct web_call *call = call_of(x);
	struct channel_post post = {.header = header_of, .arg = x, .now = clock_real_ns() / NS_PER_S};
	struct channel_receipt receipt;
	struct jv *body;
	int r = body_text(x, &post.body, err);

	if (r)
		return r;
	r = workspace_name_ok(workspace) ? tenants_get(call->serve->tenants, workspace, STR_NONE, &call->tenant, err)
					 : workspace_bad_name(workspace, err);
	if (r == 0)
		r = channel_check(call->tenant->ws, channel, x->arena, &post, &receipt, err);
	if (r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT || r == -ERR_CANCELLED)
		return r;
	if (r)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "there is no such channel, the request is not signed with its secret, or its time is "
			       "more than %d seconds off",
			       CHANNEL_REPLAY_S);
	r = jv_parse(x->arena, post.body, &body, err);
	if (r == 0)
		r = channel_check_body(call->tenant->ws, channel, x->arena, body, err);
	*ret = (struct inbox_item){.channel = channel, .id = receipt.id, .until = receipt.until, .body = body};
	return r;
}

void run_hook(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct str rest = call->rest, workspace = STR_NONE;
	struct inbox_item item;
	struct ctx ctx;
	struct err err = {0};
	int r = gate_enter(call->serve->gate, STR("hooks"), &call->place, &call->retry_s, &err);

	str_cut(&rest, '/', &workspace);
	if (r == 0)
		r = check(x, workspace, rest, &item, &err);
	if (r == 0) {
		ctx = exchange_change_ctx(x);
		r = inbox_put(call->tenant->ws, &ctx, &item, &err);
	}
	if (r) {
		answer_error(x, &err);
		return;
	}
	desks_notice(workspace);
	answer_empty(x, 202);
}
