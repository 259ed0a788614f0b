/* SPDX-License-Identifier: Apache-2.0 */
/* Eight processes on one prefix of a real S3 server: appends, edits and creates lose nothing and double nothing. */
#include "store/backends/s3/s3_fix.h"

#include <sys/wait.h>

#define PROCESSES 8
#define APPENDS   30
#define EDITS     15
#define CREATES   30

/* A counter that is read, raised and written back under its version until nobody was faster. */
static void raise_counter(struct conf *c)
{
	for (;;) {
		struct store_stat st;
		struct str bytes, more;
		int64_t n;
		int r;

		CHECK_OK(store_read(c->s, &c->ctx, P("counter"), STORE_WHOLE, 100, &bytes, &st, &c->err), c->err);
		CHECK(str_to_i64(bytes, &n));
		more = arena_printf(c->ctx.arena, "%lld", (long long)n + 1);
		r = store_write(c->s, &c->ctx, P("counter"), more, VERS(st.version), NULL, &c->err);
		if (r == 0)
			return;
		CHECK_INT(c->err.kind, ERR_CONFLICT);
	}
}

static void work(struct conf *c, int id)
{
	for (int i = 0; i < CREATES; i++) {
		struct str path = arena_printf(c->ctx.arena, "made/%d", i);
		struct str mine = arena_printf(c->ctx.arena, "%d\n", id);
		int r = store_write(c->s, &c->ctx, (struct wpath){path}, mine, ABSENT, NULL, &c->err);

		if (r == 0) /* who made it says so */
			CHECK_OK(store_append(c->s, &c->ctx, P("winners"), arena_printf(c->ctx.arena, "%d %d\n", i, id),
					      ANY, NULL, &c->err),
				 c->err);
		else
			CHECK_INT(c->err.kind, ERR_EXISTS);
	}
	for (int i = 0; i < APPENDS; i++)
		CHECK_OK(store_append(c->s, &c->ctx, P("log"), arena_printf(c->ctx.arena, "%d-%d\n", id, i), ANY, NULL,
				      &c->err),
			 c->err);
	for (int i = 0; i < EDITS; i++)
		raise_counter(c);
}

static int child(const char *prefix, int id)
{
	struct conf c = {.ctx = {.arena = arena_new()}};

	c.s = s3_at(NULL, prefix, "");
	work(&c, id);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
	return 0;
}

static size_t lines_of(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '\n';
	return n;
}

TEST(eight_processes_lose_nothing_and_double_nothing)
{
	const char *prefix = s3_prefix();
	struct conf c = {.ctx = {.arena = arena_new()}, .s = s3_at(NULL, prefix, "")};
	pid_t pids[PROCESSES];
	struct str log;

	put(&c, "counter", "0");
	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(child(prefix, i));
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK_INT(status, 0);
	}
	log = get(&c, "log");
	CHECK_INT(lines_of(log), PROCESSES * APPENDS);
	for (int id = 0; id < PROCESSES; id++)
		for (int i = 0; i < APPENDS; i++)
			CHECK_HAS(log, arena_printf(c.ctx.arena, "%d-%d\n", id, i));
	CHECK_STR(get(&c, "counter"), arena_printf(c.ctx.arena, "%d", PROCESSES * EDITS));
	CHECK_INT(lines_of(get(&c, "winners")), CREATES);
	for (int i = 0; i < CREATES; i++) {
		struct str who = get(&c, arena_cstr(c.ctx.arena, arena_printf(c.ctx.arena, "made/%d", i)));

		CHECK_HAS(get(&c, "winners"), arena_printf(c.ctx.arena, "%d %.*s", i, STR_ARG(who)));
	}
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
