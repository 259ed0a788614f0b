/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads change one file through the tools: nothing is lost. */
#include "tool/tool_fix.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS  40

struct worker {
	struct bench *b;
	int number;
	atomic_int failed;
};

static bool call_ok(struct bench *b, struct arena *arena, const char *tool, const char *fmt, int x, int y)
{
	struct ctx ctx = {.arena = arena};
	struct tool_result result;
	struct err err = {0};
	struct jv *args;
	char json[300];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(json, sizeof(json), fmt, x, y, x, y);
#pragma GCC diagnostic pop
	return jv_parse(arena, str_of(json), &args, &err) == 0 &&
	       toolset_call(b->set, &ctx, str_of(tool), args, &result, &err) == 0 && !result.is_error;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct arena *arena = arena_new();

		if (!call_ok(w->b, arena, "edit_file",
			     "{\"path\":\"f\",\"old_text\":\"slot-%d-%d.\",\"new_text\":\"done-%d-%d.\"}", w->number,
			     i))
			atomic_fetch_add(&w->failed, 1);
		if (!call_ok(w->b, arena, "append_file", "{\"path\":\"log\",\"content\":\"%d-%d\\n\"}", w->number, i))
			atomic_fetch_add(&w->failed, 1);
		arena_destroy(arena);
	}
	return NULL;
}

static void race(struct bench *b)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct buf text;

	buf_init(&text, b->arena, (size_t)1 << 20);
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < ROUNDS; i++)
			buf_printf(&text, "slot-%d-%d.\n", t, i);
	put(b, "f", buf_str(&text));
	for (int t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){.b = b, .number = t};
		CHECK_INT(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (int t = 0; t < THREADS; t++)
		CHECK_INT(workers[t].failed, 0);
	CHECK_LACKS(content_of(b, "f"), STR("slot"));
	CHECK_INT(content_of(b, "f").len, text.len);
	good(b, "grep", "{'pattern':'^[0-9]+-[0-9]+$','path':'log','output':'count'}");
	CHECK_INT(jv_get_int(b->result.value, "total_matches", 0), THREADS * ROUNDS);
}

TEST(eight_threads_that_edit_one_file_in_memory_lose_nothing)
{
	struct bench b;

	bench_open(&b, "native");
	race(&b);
	bench_close(&b);
}

TEST(eight_threads_that_edit_one_file_on_disk_lose_nothing)
{
	struct bench b;

	bench_open_disk(&b, "native");
	race(&b);
	bench_close(&b);
}
