/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of agent tests: a workspace, a recording as the model, and turns. */
#ifndef STEAD_TESTS_AGENT_FIX_H
#define STEAD_TESTS_AGENT_FIX_H

#include "agent/agent.h"
#include "home/sessions/sessions.h"
#include "temp_dir.h"
#include "tool/tool_fix.h"

/* Single quotes stand for double ones. */
static struct str quoted(struct arena *arena, const char *text)
{
	struct str copy = arena_str(arena, str_of(text));

	for (size_t i = 0; i < copy.len; i++)
		if (copy.ptr[i] == '\'')
			((char *)copy.ptr)[i] = '"';
	return copy;
}

static void write_host_file(const char *path, struct str text)
{
	FILE *f = fopen(path, "we");

	CHECK(f && fwrite(text.ptr, 1, text.len, f) == text.len && fclose(f) == 0);
}

/* A recording of answers; each is the JSON of a message's content. Returns "replay:FILE". */
__attribute__((unused)) static struct str recording(struct arena *arena, const char *const *contents)
{
	struct str path = arena_printf(arena, "%s/recording.jsonl", temp_dir_new());
	struct buf text;

	buf_init(&text, arena, (size_t)1 << 20);
	for (; *contents; contents++)
		buf_printf(
			&text,
			"{\"type\":\"message\",\"role\":\"assistant\",\"content\":%.*s,\"usage\":{\"input_tokens\":10,"
			"\"output_tokens\":1}}\n",
			STR_ARG(quoted(arena, *contents)));
	write_host_file(path.ptr, buf_str(&text));
	return arena_printf(arena, "replay:%.*s", STR_ARG(path));
}

__attribute__((unused)) static int say(struct bench *b, struct str model, const char *text, struct agent_result *ret,
				       struct err *err)
{
	struct agent_opts opts = {.model = model};
	struct agent_turn turn = {.session = STR("s"), .text = str_of(text)};
	struct agent *agent;
	int r = agent_open(b->ws, &opts, &agent, err);

	if (r)
		return r;
	r = agent_run(agent, &b->ctx, &turn, ret, err);
	agent_close(agent);
	return r;
}

/* Entries of the session "s" of one type. */
__attribute__((unused)) static size_t count_entries(struct bench *b, const char *type)
{
	struct session_page page;
	struct err err;
	size_t count = 0;

	CHECK_OK(session_history(b->ws, &b->ctx, (struct session_ref){.session = STR("s")}, 0, 10000, false, &page,
				 &err),
		 err);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		count += str_is(jv_get_str(m->value, "type"), type);
	return count;
}

#define CALL(id, name, input) "{'type':'tool_use','id':'" id "','name':'" name "','input':" input "}"

#endif
