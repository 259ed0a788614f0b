/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers start together with the first question to the model, since it must know their tools, and end with the agent.
 * Before each later question those are asked again that have said that their tools changed.
 */
#include "agent/servers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/limits.h"

#define NAME_MOST ((size_t)64) /* what every provider accepts */

#define AGAIN_NS (60 * NS_PER_S) /* before a server that failed is tried again */

struct member {
	struct str name;
	struct mcp_client *client;
	const struct mcp_tool *tools;
	size_t count;
	bool was_asked;
	int64_t failed_ns; /* 0: it works */
};

/* What is offered at a time. It never changes: another one takes its place, and runs that look at it continue. */
struct listing {
	struct server_tool *tools;
	size_t count, cap;
};

struct servers {
	const struct config *config;
	struct arena *arena;
	pthread_mutex_t lock;
	atomic_size_t owners;
	struct member *members;
	size_t member_count;
	_Atomic(struct listing *) listing;
};

static void add_members(struct servers *s, const struct jv *servers)
{
	for (const struct jv_member *m = jv_first(servers); m; m = m->next)
		if (!jv_get_bool(m->value, "disabled", false))
			s->members[s->member_count++] =
				(struct member){.name = m->key, .client = mcp_client_new(m->key, m->value)};
}

struct servers *servers_new(const struct config *config, const struct jv *more)
{
	size_t most = jv_count(config->mcp_servers) + jv_count(more) + 1;
	struct arena *arena = arena_new();
	struct servers *s = ARENA_NEW(arena, struct servers);

	s->arena = arena;
	s->config = config;
	atomic_store(&s->owners, 1);
	atomic_store(&s->listing, ARENA_NEW(arena, struct listing));
	pthread_mutex_init(&s->lock, NULL);
	s->members = ARENA_ARRAY(arena, struct member, most);
	add_members(s, config->mcp_servers);
	add_members(s, more);
	return s;
}

struct servers *servers_share(struct servers *s)
{
	atomic_fetch_add(&s->owners, 1);
	return s;
}

void servers_destroy(struct servers *s)
{
	if (!s || atomic_fetch_sub(&s->owners, 1) > 1)
		return;
	for (size_t i = 0; i < s->member_count; i++)
		mcp_client_destroy(s->members[i].client);
	pthread_mutex_destroy(&s->lock);
	arena_destroy(s->arena);
}

/* A name that every provider accepts; ptr NULL: it is too long. */
static struct str offered_name(struct arena *arena, struct str server, struct str tool)
{
	struct str name = arena_printf(arena, "%.*s__%.*s", STR_ARG(server), STR_ARG(tool));
	char *p = (char *)name.ptr;

	for (size_t i = 0; i < name.len; i++)
		if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= '0' && p[i] <= '9') ||
		      p[i] == '_' || p[i] == '-'))
			p[i] = '_';
	return name.len <= NAME_MOST ? name : STR_NONE;
}

static const struct server_tool *find(const struct listing *l, struct str name)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->tools[i].info.name, name))
			return &l->tools[i];
	return NULL;
}

static void add_tool(struct servers *s, struct listing *l, struct mcp_client *client, struct str name,
		     const struct mcp_tool *tool)
{
	const struct config *config = s->config;

	if (names_match(config->tools_deny, name) ||
	    (jv_count(config->tools_allow) && !names_match(config->tools_allow, name)))
		return;
	ARENA_ROOM(s->arena, l->tools, l->count, l->cap);
	l->tools[l->count++] = (struct server_tool){
		.info = {.name = name,
			 .title = name,
			 .description = tool->description,
			 .input_schema = tool->schema,
			 .traits = TOOL_OPEN_WORLD | (tool->is_idempotent ? (unsigned)TOOL_IDEMPOTENT : 0)},
		.client = client,
		.name = tool->name};
}

/* A schema that a provider would refuse, and with it every request that has the tool. */
static bool is_for_object(const struct jv *schema)
{
	const struct jv *properties = jv_get(schema, "properties");

	return schema && schema->type == JV_OBJECT && str_is(jv_get_str(schema, "type"), "object") &&
	       (!properties || properties->type == JV_OBJECT);
}

static void add_tools(struct servers *s, struct listing *l, struct ctx *ctx, struct member *member,
		      void (*report)(void *arg, struct str sentence), void *arg)
{
	const char *why = NULL;
	struct str first = STR_NONE;
	size_t left_out = 0;

	for (size_t i = 0; i < member->count; i++) {
		const struct mcp_tool *tool = &member->tools[i];
		struct str name = offered_name(s->arena, member->name, tool->name);
		const char *reason = !name.ptr || find(l, name)
					     ? "its name is too long, or already taken by another tool"
				     : !is_for_object(tool->schema) ? "its input schema does not describe an object"
								    : NULL;

		if (!reason)
			add_tool(s, l, member->client, name, tool);
		else if (left_out++ == 0)
			why = reason, first = utf8_first(tool->name, 80);
	}
	if (left_out)
		report(arg,
		       arena_printf(ctx->arena, "the tool \"%.*s\" of the MCP server \"%.*s\" is left out%s: %s",
				    STR_ARG(first), STR_ARG(member->name),
				    left_out == 1 ? "" : arena_printf(ctx->arena, " (and %zu more)", left_out - 1).ptr,
				    why));
}

/* True: its tools are not those of before. */
static bool ask_member(struct member *m, struct ctx *ctx, void (*report)(void *arg, struct str sentence), void *arg)
{
	const struct mcp_tool *tools = NULL;
	struct err err;
	size_t count = 0;
	bool changed;

	if (m->failed_ns && clock_monotonic_ns() - m->failed_ns < AGAIN_NS)
		return false;
	if (m->was_asked && !m->failed_ns && !mcp_client_is_stale(m->client, ctx))
		return false;
	m->was_asked = true;
	m->failed_ns = 0;
	if (mcp_client_tools(m->client, ctx, &tools, &count, &err) != 0) {
		m->failed_ns = clock_monotonic_ns();
		report(arg, err_text(ctx->arena, &err));
		return false; /* what it offered before may work again */
	}
	changed = tools != m->tools || count != m->count;
	m->tools = tools;
	m->count = count;
	return changed;
}

bool servers_start(struct servers *s, struct ctx *ctx, void (*report)(void *arg, struct str sentence), void *arg)
{
	struct listing *next;
	bool changed = false;

	if (s->member_count == 0)
		return false;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->member_count; i++)
		changed = ask_member(&s->members[i], ctx, report, arg) || changed;
	if (changed) {
		next = ARENA_NEW(s->arena, struct listing);
		for (size_t i = 0; i < s->member_count; i++)
			add_tools(s, next, ctx, &s->members[i], report, arg);
		atomic_store(&s->listing, next);
	}
	pthread_mutex_unlock(&s->lock);
	return changed;
}

struct mcp_client *servers_client_at(const struct servers *s, size_t index)
{
	return index < s->member_count ? s->members[index].client : NULL;
}

struct mcp_client *servers_client(const struct servers *s, struct str name)
{
	for (size_t i = 0; i < s->member_count; i++)
		if (str_eq(s->members[i].name, name))
			return s->members[i].client;
	return NULL;
}

const struct server_tool *servers_list(const struct servers *s, size_t *ret_count)
{
	const struct listing *l = atomic_load(&((struct servers *)s)->listing);

	*ret_count = l->count;
	return l->tools;
}

const struct server_tool *servers_find(const struct servers *s, struct str name)
{
	return find(atomic_load(&((struct servers *)s)->listing), name);
}
