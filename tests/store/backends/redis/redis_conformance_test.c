/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of conformance.h and journal_conformance.h over a real Redis server: bare, over TLS, over a unix socket, as
   an ACL user, and below layers. */
#include "revisions/revisions.h"
#include "store/backends/redis/redis_fix.h"
#include "store/conformance.h"
#include "store/journal_conformance.h"

#define BOTH(id, expr) STACK(id, expr) JOURNAL_STACK(id, expr)

static struct store *open_tls(void)
{
	setenv("STEAD_REDIS_CA", redis_env("STEAD_TEST_REDIS_CA"), 1);
	return redis_open_at(redis_env("STEAD_TEST_REDIS_TLS"), redis_prefix(), "");
}

/* The keys that this user may touch begin with "{acl}:", so the stores of its cases are directories of one. */
static struct store *open_user(void)
{
	static unsigned count;
	static char dir[32];
	char url[256];
	struct store *s;

	setenv("STEAD_REDIS_PASSWORD", redis_env("STEAD_TEST_REDIS_SECRET"), 1);
	snprintf(url, sizeof(url), "redis://%s@127.0.0.1:%s/0", redis_env("STEAD_TEST_REDIS_USER"),
		 redis_env("STEAD_TEST_REDIS_PORT"));
	s = redis_open_at(url, "acl", "");
	unsetenv("STEAD_REDIS_PASSWORD");
	snprintf(dir, sizeof(dir), "case%u", ++count);
	return store_prefix_new(s, P(dir));
}

/* The revision log in the same server, each change and its record in one step. */
static struct store *open_revisions(void)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *inner = redis_open_new(), *s;
	struct revisions_opts opts = {.journal = true, .own = P(".stead/rev")};
	struct err err;

	CHECK_OK(store_revisions_open(inner, store_prefix_new(store_share(inner), opts.own), opts, &ctx, &s, &err),
		 err);
	return s;
}

/* As in a workspace, with Stead's own files hidden. */
static struct store *revisions_open(void)
{
	return store_guard_new(open_revisions(), &guard_defaults);
}

TEST(revisions_in_redis_keep_the_contract)
{
	conf_run(&store_cases, revisions_open);
}

TEST(a_write_with_its_revision_is_one_round_trip)
{
	struct conf c = {.s = open_revisions(), .ctx = {.arena = arena_new()}};
	struct store *redis = c.s->inner;
	uint64_t before;
	struct str v;

	v = put(&c, "a", "the log was read for this one");
	before = store_redis_trips(redis);
	CHECK_OK(store_write(c.s, &c.ctx, P("a"), STR("two"), VERS(v), NULL, &c.err), c.err);
	CHECK_INT(store_redis_trips(redis) - before, 1);
	get(&c, "a");
	CHECK_INT(store_redis_trips(redis) - before, 2);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

BOTH(redis, redis_open_new())
BOTH(redis_over_tls, open_tls())
BOTH(redis_on_a_unix_socket, redis_open_at(redis_env("STEAD_TEST_REDIS_UNIX"), redis_prefix(), "&db=3"))
BOTH(redis_as_an_acl_user, open_user())
BOTH(a_prefix_in_redis, store_prefix_new(redis_open_new(), P("ws/one")))

STACK(an_overlay_in_redis, store_overlay_new(redis_open_new(), redis_open_new()))

/* What a fork has removed is fetched again after a second, so on a slow machine one more is allowed. */
#define CHECK_TRIPS(act, most)                                                                                         \
	do {                                                                                                           \
		uint64_t before_ = store_redis_trips(redis);                                                           \
		act;                                                                                                   \
		before_ = store_redis_trips(redis) - before_;                                                          \
		CHECK(before_ <= (most) + (clock_monotonic_ns() - began > 500000000));                                 \
	} while (0)

/* A fork: a part of the server over another part that does not change. The stat of a file that is not there, and of a
   directory, takes Redis two round trips, so the three requests of an overlay's write are five. */
TEST(a_read_or_write_in_a_fork_is_at_most_five_round_trips)
{
	struct store *redis = redis_open_new();
	struct store *parent = store_prefix_new(store_share(redis), P("parent"));
	struct conf c = {.s = parent, .ctx = {.arena = arena_new()}};
	int64_t began = clock_monotonic_ns();
	struct str v;

	put(&c, "files/a", "1");
	put(&c, "files/b", "2");
	put(&c, "files/c", "3");
	c.s = store_overlay_new(store_prefix_new(store_share(redis), P("fork")), remote_new(parent, true));
	CHECK_OK(store_remove(c.s, &c.ctx, P("files/c"), false, ANY, NULL, &c.err), c.err);
	v = stat_of(&c, "files/b").version;
	CHECK_TRIPS(get(&c, "files/a"), 2);
	CHECK_TRIPS(put(&c, "files/a", "changed"), 2);
	CHECK_TRIPS(CHECK_OK(store_write(c.s, &c.ctx, P("files/b"), STR("2"), VERS(v), NULL, &c.err), c.err), 3);
	CHECK_TRIPS(put(&c, "files/new", "4"), 5);
	store_destroy(c.s);
	store_destroy(redis);
	arena_destroy(c.ctx.arena);
}

TEST(move_and_copy_honour_a_version_of_the_target)
{
	struct conf c = {.s = redis_open_new(), .ctx = {.arena = arena_new()}};
	struct str old = put(&c, "b", "one"), v = put(&c, "b", "two");

	put(&c, "a", "new");
	CHECK_ERR(store_copy(c.s, &c.ctx, P("a"), P("b"), VERS(old), NULL, &c.err), c.err, ERR_CONFLICT);
	CHECK_ERR(store_move(c.s, &c.ctx, P("a"), P("b"), ANY, VERS(old), NULL, &c.err), c.err, ERR_CONFLICT);
	CHECK_STR(get(&c, "b"), STR("two"));
	CHECK_OK(store_copy(c.s, &c.ctx, P("a"), P("b"), VERS(v), NULL, &c.err), c.err);
	v = stat_of(&c, "b").version;
	CHECK_OK(store_move(c.s, &c.ctx, P("a"), P("b"), ANY, VERS(v), NULL, &c.err), c.err);
	CHECK_TREE(&c, "b");
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

TEST(what_is_stored_is_found_by_the_next_process)
{
	const char *prefix = redis_prefix();
	struct conf c = {.s = redis_open_at(redis_env("STEAD_TEST_REDIS"), prefix, ""), .ctx = {.arena = arena_new()}};

	put(&c, "a/b", "kept");
	store_destroy(c.s);
	c.s = redis_open_at(redis_env("STEAD_TEST_REDIS"), prefix, "");
	CHECK_STR(get(&c, "a/b"), STR("kept"));
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
