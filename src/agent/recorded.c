/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/recorded.h"

#include <pthread.h>

struct call {
	const struct jv *use, *result; /* entries; NULL: it has no result */
	bool is_taken;
};

struct recorded {
	struct call *calls;
	size_t count;
	bool covers_agents;
	pthread_mutex_t lock;
};

/* The first call of that id that still lacks a result: a model may use an id twice. */
static void give_result(struct recorded *r, const struct jv *result)
{
	for (size_t i = 0; i < r->count; i++)
		if (!r->calls[i].result &&
		    str_eq(jv_get_str(r->calls[i].use, "toolCallId"), jv_get_str(result, "toolCallId"))) {
			r->calls[i].result = result;
			return;
		}
}

struct recorded *recorded_new(struct arena *arena, const struct jv **entries, size_t count, bool covers_agents)
{
	struct recorded *r = ARENA_NEW(arena, struct recorded);

	r->calls = ARENA_ARRAY(arena, struct call, count + 1);
	r->covers_agents = covers_agents;
	pthread_mutex_init(&r->lock, NULL);
	for (size_t i = 0; i < count; i++) {
		struct str type = jv_get_str(entries[i], "type");

		if (str_is(type, "tool_use"))
			r->calls[r->count++] = (struct call){.use = entries[i]};
		else if (str_is(type, "tool_result"))
			give_result(r, entries[i]);
	}
	return r;
}

void recorded_release(struct recorded *recorded)
{
	if (recorded)
		pthread_mutex_destroy(&recorded->lock);
}

bool recorded_covers_agents(const struct recorded *recorded)
{
	return recorded->covers_agents;
}

const struct jv *recorded_take(struct recorded *recorded, struct str name, const struct jv *input)
{
	const struct jv *result = NULL;

	pthread_mutex_lock(&recorded->lock);
	for (size_t i = 0; i < recorded->count && !result; i++) {
		struct call *c = &recorded->calls[i];

		if (c->result && !c->is_taken && str_eq(jv_get_str(c->use, "name"), name) &&
		    jv_equal(jv_get(c->use, "input"), input)) {
			c->is_taken = true;
			result = c->result;
		}
	}
	pthread_mutex_unlock(&recorded->lock);
	return result;
}
