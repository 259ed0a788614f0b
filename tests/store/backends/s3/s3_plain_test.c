/* SPDX-License-Identifier: Apache-2.0 */
/* An S3 server without conditional writes (Swift): what is refused, and what one writer may do. */
#include "store/backends/s3/s3_fix.h"

#include <pthread.h>

#define THREADS 4
#define APPENDS 8

TEST(conditional_writes_and_appends_are_refused_and_say_why)
{
	struct conf c = {.ctx = {.arena = arena_new()}, .s = s3_at(NULL, s3_prefix(), "")};
	struct str v = put(&c, "a", "x");

	CHECK_ERR(store_write(c.s, &c.ctx, P("b"), STR("x"), ABSENT, NULL, &c.err), c.err, ERR_UNSUPPORTED);
	CHECK_HAS(str_of(c.err.msg), STR("single_writer=1"));
	CHECK_ERR(store_write(c.s, &c.ctx, P("a"), STR("y"), VERS(v), NULL, &c.err), c.err, ERR_UNSUPPORTED);
	CHECK_ERR(store_append(c.s, &c.ctx, P("a"), STR("y"), ANY, NULL, &c.err), c.err, ERR_UNSUPPORTED);
	CHECK_STR(get(&c, "a"), STR("x"));
	CHECK_TREE(&c, "a");
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static void *append_some(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (int i = 0; i < APPENDS; i++)
		if (store_append(arg, &ctx, P("log"), STR("line\n"), ANY, NULL, &err))
			printf("# %s\n", err.msg);
	return NULL;
}

TEST(the_threads_of_one_writer_lose_nothing)
{
	const char *prefix = s3_prefix();
	struct conf c = {.ctx = {.arena = arena_new()}, .s = s3_at(NULL, prefix, "&single_writer=1")};
	struct store *second = s3_at(NULL, prefix, "&single_writer=1"); /* the same process, another opening */
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, append_some, i % 2 ? second : c.s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(get(&c, "log").len, THREADS * APPENDS * 5);
	store_destroy(second);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
