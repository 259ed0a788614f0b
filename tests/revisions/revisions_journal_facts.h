/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is true of revisions in a journal on any store, with several replicas on it: for the tests in memory, and for
 * those over real servers. A replica is a layer of its own; `open_base` gives another connection to the same place.
 */
#ifndef STEAD_TESTS_REVISIONS_JOURNAL_FACTS_H
#define STEAD_TESTS_REVISIONS_JOURNAL_FACTS_H

#include <pthread.h>

#include "revisions/revisions.h"
#include "store/store_fix.h"

/* The layer as the home puts it on a store: the log is inside that store. Owns `base`. */
static struct store *replica_on(struct store *base)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct revisions_opts opts = {.journal = true, .own = P(".stead/rev")};
	struct store *s, *meta = store_prefix_new(store_share(base), P(".stead/rev"));
	struct err err;

	CHECK_OK(store_revisions_open(base, meta, opts, &ctx, &s, &err), err);
	return s;
}

struct replica {
	struct store *s;
	unsigned id, rounds;
	bool failed;
	struct err err;
};

/* Reads a number, and writes the next one unless somebody else has. */
static int count_up(struct replica *r, struct ctx *ctx)
{
	for (;;) {
		struct store_stat stat;
		struct str bytes, next;
		int64_t n;
		int bad = store_read(r->s, ctx, P("count"), STORE_WHOLE, 100, &bytes, &stat, &r->err);

		if (bad || !str_to_i64(bytes, &n))
			return -1;
		next = arena_printf(ctx->arena, "%lld", (long long)n + 1);
		bad = store_write(r->s, ctx, P("count"), next, VERS(stat.version), NULL, &r->err);
		if (bad != -ERR_CONFLICT)
			return bad;
	}
}

static void *replica_work(void *arg)
{
	struct replica *r = arg;

	for (unsigned i = 0; i < r->rounds && !r->failed; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct str line = arena_printf(arena, "%u:%u;", r->id, i);
		struct wpath name = {arena_printf(arena, "name/%u", i)};
		int bad = store_append(r->s, &ctx, P("all"), line, ANY, NULL, &r->err);

		if (bad == 0)
			bad = count_up(r, &ctx);
		if (bad == 0)
			bad = store_write(r->s, &ctx, name, line, ABSENT, NULL, &r->err);
		r->failed = bad && bad != -ERR_EXISTS;
	}
	return NULL;
}

/* All lines of all replicas, each once and in its own order. */
static void check_appended(struct conf *c, unsigned replicas, unsigned rounds)
{
	struct str rest = get(c, "all"), line;
	unsigned *next = ARENA_ARRAY(c->ctx.arena, unsigned, replicas), lines = 0;

	while (str_cut(&rest, ';', &line) && line.len) {
		struct str id;
		int64_t who, which;

		CHECK(str_cut(&line, ':', &id) && str_to_i64(id, &who) && str_to_i64(line, &which));
		CHECK(who >= 0 && who < replicas);
		CHECK_INT(which, next[who]++);
		lines++;
	}
	CHECK_INT(lines, replicas * rounds);
}

/* The past of every revision leads to the present: what a record says was before is what the one before left. */
static void check_history(struct conf *c, uint64_t creates)
{
	struct revision *list;
	size_t count;
	uint64_t made = 0;

	CHECK_OK(revisions_query(c->s, &c->ctx, &(struct rev_query){.path = P("name")}, &list, &count, NULL, &c->err),
		 c->err);
	for (size_t i = 0; i < count; i++)
		made += !list[i].before.exists;
	CHECK_INT(made, creates);
	CHECK_INT(count, creates);
	CHECK_OK(revisions_query(c->s, &c->ctx, &(struct rev_query){.path = P("count")}, &list, &count, NULL, &c->err),
		 c->err);
	for (size_t i = 1; i < count; i++) {
		CHECK_INT(list[i].op, REV_WRITE);
		CHECK(list[i].before.hash.w[0] == list[i - 1].after.hash.w[0]);
	}
}

/* `count` replicas at once; what they have done is looked at through another one. */
static void replicas_lose_nothing(struct store *(*open_base)(void *arg), void *arg, unsigned count, unsigned rounds)
{
	struct replica *all = xcalloc(count, sizeof(*all));
	pthread_t *threads = xcalloc(count, sizeof(*threads));
	struct conf c = {.s = replica_on(open_base(arg)), .ctx = {.arena = arena_new()}};

	put(&c, "count", "0");
	for (unsigned i = 0; i < count; i++) {
		all[i] = (struct replica){.s = replica_on(open_base(arg)), .id = i, .rounds = rounds};
		CHECK_INT(pthread_create(&threads[i], NULL, replica_work, &all[i]), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		if (all[i].failed)
			TEST_FAIL("replica %u: %s", i, all[i].err.msg);
		store_destroy(all[i].s);
	}
	CHECK_STR(get(&c, "count"), arena_printf(c.ctx.arena, "%u", count * rounds));
	check_appended(&c, count, rounds);
	check_history(&c, rounds);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
	free(all);
	free(threads);
}

/* --- forks --- */

/* A fork of what `server` has below parent/, with its own files below fork/. Owns `server`. */
static struct store *fork_on(struct store *server)
{
	struct store *past = remote_new(store_prefix_new(store_share(server), P("parent")), true);
	struct store *own = remote_new(store_prefix_new(server, P("fork")), false);

	return store_overlay_new(own, past);
}

/* One more for the counter. Files of the parent: some replicas change them, some remove them. */
static void *fork_work(void *arg)
{
	struct replica *r = arg;

	for (unsigned i = 0; i < r->rounds && !r->failed; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct wpath path = {arena_printf(arena, "d/%u", i)};
		struct store_stat stat;
		int bad = count_up(r, &ctx);

		if (bad == 0)
			bad = store_stat(r->s, &ctx, path, &stat, &r->err);
		if (bad == 0 && (r->id + i) % 3)
			bad = store_write(r->s, &ctx, path, arena_printf(arena, "of %u", r->id), VERS(stat.version),
					  NULL, &r->err);
		else if (bad == 0)
			bad = store_remove(r->s, &ctx, path, false, VERS(stat.version), NULL, &r->err);
		r->failed = bad && bad != -ERR_CONFLICT && bad != -ERR_NOT_FOUND;
	}
	return NULL;
}

/* Each record says what the one before it left, the first one what the parent has, and the last one what is there. */
static void check_fork_path(struct conf *c, const char *path, const char *in_parent)
{
	struct revision *list;
	size_t count;
	struct str first;

	CHECK_OK(revisions_query(c->s, &c->ctx, &(struct rev_query){.path = P(path)}, &list, &count, NULL, &c->err),
		 c->err);
	for (size_t i = 0; i < count; i++) {
		CHECK(list[i].op != REV_OUTSIDE);
		CHECK_INT(list[i].before.exists, i ? list[i - 1].after.exists : 1);
		CHECK(i == 0 || !list[i].before.exists || list[i].before.hash.w[0] == list[i - 1].after.hash.w[0]);
	}
	CHECK(count > 0);
	CHECK_INT(store_stat(c->s, &c->ctx, P(path), NULL, &c->err) == 0, list[count - 1].after.exists);
	c->s = store_at_revision_new(c->s, list[0].number - 1);
	first = get(c, path);
	store_destroy(c->s);
	CHECK_STR(first, str_of(in_parent));
}

/* `count` replicas of one fork at once. `open_server` gives another connection. */
static void replicas_of_a_fork_agree(struct store *(*open_server)(void *arg), void *arg, unsigned count,
				     unsigned rounds)
{
	struct replica *all = xcalloc(count, sizeof(*all));
	pthread_t *threads = xcalloc(count, sizeof(*threads));
	struct conf c = {.s = store_prefix_new(open_server(arg), P("parent")), .ctx = {.arena = arena_new()}};
	struct store *fork;
	char path[32];

	put(&c, "count", "0");
	for (unsigned i = 0; i < rounds; i++) {
		snprintf(path, sizeof(path), "d/%u", i);
		put(&c, path, path);
	}
	store_destroy(c.s);
	for (unsigned i = 0; i < count; i++) {
		all[i] = (struct replica){.s = replica_on(fork_on(open_server(arg))), .id = i, .rounds = rounds};
		CHECK_INT(pthread_create(&threads[i], NULL, fork_work, &all[i]), 0);
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		if (all[i].failed)
			TEST_FAIL("replica %u: %s", i, all[i].err.msg);
		store_destroy(all[i].s);
	}
	c.s = fork = replica_on(fork_on(open_server(arg)));
	CHECK_STR(get(&c, "count"), arena_printf(c.ctx.arena, "%u", count * rounds));
	check_fork_path(&c, "count", "0");
	for (unsigned i = 0; i < rounds; i++) {
		snprintf(path, sizeof(path), "d/%u", i);
		c.s = fork;
		check_fork_path(&c, path, path);
	}
	store_destroy(fork);
	arena_destroy(c.ctx.arena);
	free(all);
	free(threads);
}

#endif
