/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the inbox, as the webhook channel takes them. Beyond "does not crash": only the one person in the list is
 * received, with a chat that can be a name, and every message says something.
 */
#include <stdint.h>
#include <stdlib.h>

#include "home/channels/inbox.h"
#include "runner/channels/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static int receive(void *arg, struct channel *channel, struct ctx *ctx, const struct channel_message *m,
		   struct err *err)
{
	(void)arg, (void)channel, (void)ctx, (void)err;
	require(str_is(m->sender, "anna") && m->chat.len > 0 && m->chat.len <= 100);
	for (size_t i = 0; i < m->chat.len; i++)
		require(m->chat.ptr[i] > ' ' && m->chat.ptr[i] != '/' && m->chat.ptr[i] != ':');
	require(m->text.len > 0);
	return 0;
}

static void problem(void *arg, struct channel *channel, struct str text)
{
	(void)arg, (void)channel;
	require(text.len > 0);
}

/* One channel for all inputs; what files it writes are in memory. */
static struct channel *open_channel(void)
{
	static const struct channel_events events = {.receive = receive, .problem = problem};
	static struct channel *channel;
	static struct arena *volatile arena; /* kept, also where a leak would be reported */
	struct workspace_opts opts = {.store_url = STR("memory"), .name = STR("fuzz"), .create = true, .relaxed = true};
	struct workspace *ws;
	struct jv *config;
	struct err err;

	if (channel)
		return channel;
	arena = arena_new();
	require(jv_parse(arena,
			 STR("{\"type\":\"webhook\",\"url\":\"http://127.0.0.1:9/\",\"secret\":"
			     "\"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\",\"allowed_users\":[\"anna\"]}"),
			 &config, &err) == 0);
	((struct jv *)jv_get(config, "secret"))->from_env = true; /* as the configuration would have filled it in */
	require(workspace_open(&opts, &ws, &err) == 0);
	require(webhook_open(ws, config, &events, &channel, &err) == 0);
	return channel;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct channel *channel = open_channel();
	struct inbox_item item;
	struct err err = {0};

	if (inbox_parse(arena, str_n(data, size), &item, &err) != 0)
		return 0;
	require(item.channel.len > 0 && item.id.len > 0 && item.until >= 0 && item.body);
	channel->ops->take(channel, &ctx, item.id, item.body, &err);
	return 0;
}
