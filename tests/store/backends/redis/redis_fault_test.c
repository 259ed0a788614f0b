/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis server whose answers get lost, whose connections are cut at every byte, that stalls, goes away and comes
 * back. Every call ends, with a success that happened once or with an error; nothing is half-visible; and afterwards
 * the same store works again.
 */
#include <pthread.h>

#include "servers/proxy.h"
#include "store/backends/redis/redis_fix.h"
#include "store/journal.h"

struct rig {
	struct conf c;
	struct proxy *proxy;
};

static struct rig rig_at(const char *prefix, const char *options)
{
	struct rig r = {.c = {.ctx = {.arena = arena_new()}}};
	char url[64];

	snprintf(url, sizeof(url), "127.0.0.1:%s", redis_env("STEAD_TEST_REDIS_PORT"));
	r.proxy = proxy_start(url);
	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy_port(r.proxy));
	r.c.s = redis_open_at(url, prefix, options);
	return r;
}

static struct rig rig_new(const char *options)
{
	return rig_at(redis_prefix(), options);
}

static void rig_end(struct rig *r)
{
	store_destroy(r->c.s);
	proxy_stop(r->proxy);
	arena_destroy(r->c.ctx.arena);
}

#define RIG_SCOPE __attribute__((cleanup(rig_end))) struct rig

/* Each operation with what must be true after it, whether or not its first answer was lost. */

static struct str versions[2];

static int do_write(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("a"), STR("new"), ANY, NULL, &c->err);
}

static int do_create(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("n/new"), STR("made"), ABSENT, NULL, &c->err);
}

static int do_edit(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("a"), STR("edited"), VERS(versions[0]), NULL, &c->err);
}

static int do_append(struct conf *c)
{
	return store_append(c->s, &c->ctx, P("a"), STR("+"), ANY, NULL, &c->err);
}

static int do_append_edit(struct conf *c)
{
	return store_append(c->s, &c->ctx, P("a"), STR("+"), VERS(versions[0]), NULL, &c->err);
}

static int do_remove(struct conf *c)
{
	return store_remove(c->s, &c->ctx, P("a"), false, VERS(versions[0]), NULL, &c->err);
}

static int do_remove_all(struct conf *c)
{
	uint64_t count = 0;
	int r = store_remove(c->s, &c->ctx, P("d"), true, ANY, &count, &c->err);

	if (r == 0)
		CHECK_INT(count, 2);
	return r;
}

static int do_move(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("a"), P("m"), VERS(versions[0]), ABSENT, NULL, &c->err);
}

static int do_move_dir(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("d"), P("x/d"), ANY, ABSENT, NULL, &c->err);
}

static int do_copy(struct conf *c)
{
	return store_copy(c->s, &c->ctx, P("a"), P("copy"), ABSENT, NULL, &c->err);
}

static int do_journal(struct conf *c)
{
	struct journal_add add = {
		.bytes = STR("entry"), .change = JOURNAL_APPEND, .content = STR("+"), .version = STR("v-journal")};
	struct journal_added added;

	return store_journal_add(c->s, &c->ctx, P("log"), P("a"), VERS(versions[0]), &add, &added, &c->err);
}

static int do_read(struct conf *c)
{
	struct str bytes;

	return store_read(c->s, &c->ctx, P("a"), STORE_WHOLE, 100, &bytes, NULL, &c->err);
}

static const struct operation {
	const char *name;
	int (*run)(struct conf *c);
	const char *tree, *a; /* after it; a NULL: gone */
} operations[] = {
	{"write", do_write, "a d/1 d/2", "new"},
	{"create", do_create, "a d/1 d/2 n/new", "old"},
	{"edit", do_edit, "a d/1 d/2", "edited"},
	{"append", do_append, "a d/1 d/2", "old+"},
	{"append to a version", do_append_edit, "a d/1 d/2", "old+"},
	{"remove", do_remove, "d/1 d/2", NULL},
	{"remove all", do_remove_all, "a", "old"},
	{"move", do_move, "d/1 d/2 m", NULL},
	{"move a directory", do_move_dir, "a x/d/1 x/d/2", "old"},
	{"copy", do_copy, "a copy d/1 d/2", "old"},
	{"journal", do_journal, "a d/1 d/2", "old+"},
	{"read", do_read, "a d/1 d/2", "old"},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void fresh(struct rig *r)
{
	struct conf *c = &r->c;

	CHECK_OK(store_remove(c->s, &c->ctx, P(""), true, ANY, NULL, &c->err), c->err);
	versions[0] = put(c, "a", "old");
	put(c, "d/1", "1");
	put(c, "d/2", "2");
}

static void check_done(struct rig *r, const struct operation *op)
{
	struct str tree = listing(&r->c, "", true, 100);

	if (!str_is(tree, op->tree))
		TEST_FAIL("after %s there is \"%.*s\", expected \"%s\"", op->name, STR_ARG(tree), op->tree);
	if (op->a)
		CHECK_STR(get(&r->c, "a"), str_of(op->a));
}

TEST(a_change_whose_answer_was_lost_is_made_once_and_succeeds)
{
	RIG_SCOPE r = rig_new("");

	for (size_t i = 0; i < OPERATIONS; i++) {
		fresh(&r);
		proxy_forget(r.proxy);
		proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER});
		if (operations[i].run(&r.c))
			TEST_FAIL("%s: %s", operations[i].name, r.c.err.msg);
		CHECK_INT(proxy_faults(r.proxy), 1);
		proxy_disarm(r.proxy);
		check_done(&r, &operations[i]);
	}
}

static void *edit_in_thread(void *arg)
{
	struct conf *c = arg;

	return do_edit(c) ? c : NULL;
}

/* Somebody else changes the file after the change whose answer was lost and before it is asked about. */
TEST(a_lost_answer_is_no_conflict_when_others_went_on)
{
	const char *prefix = redis_prefix();
	RIG_SCOPE r = rig_at(prefix, "");
	struct conf other = {.s = redis_open_at(redis_env("STEAD_TEST_REDIS"), prefix, ""), .ctx = r.c.ctx};
	pthread_t thread;
	void *failed;

	fresh(&r);
	proxy_forget(r.proxy);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .count = PROXY_ALWAYS, .match = "EVALSHA"});
	other.ctx.arena = arena_new();
	CHECK_INT(pthread_create(&thread, NULL, edit_in_thread, &r.c), 0);
	while (!str_is(get(&other, "a"), "edited"))
		;
	put(&other, "a", "by another");
	proxy_disarm(r.proxy);
	pthread_join(thread, &failed);
	CHECK(!failed);
	CHECK_STR(get(&other, "a"), STR("by another"));
	store_destroy(other.s);
	arena_destroy(other.ctx.arena);
}

TEST(a_connection_that_is_cut_within_a_request_does_no_harm)
{
	RIG_SCOPE r = rig_new("");

	for (uint64_t bytes = 0; bytes < 420; bytes += 13) {
		fresh(&r);
		proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .bytes = bytes});
		CHECK_OK(do_append(&r.c), r.c.err);
		proxy_disarm(r.proxy);
		CHECK_STR(get(&r.c, "a"), STR("old+"));
	}
}

TEST(a_connection_that_is_cut_within_an_answer_does_no_harm)
{
	RIG_SCOPE r = rig_new("");

	for (uint64_t bytes = 0; bytes < 24; bytes++)
		for (size_t i = 0; i < OPERATIONS; i += bytes % 3 + 1) {
			fresh(&r);
			proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .bytes = bytes});
			if (operations[i].run(&r.c))
				TEST_FAIL("%s: %s", operations[i].name, r.c.err.msg);
			proxy_disarm(r.proxy);
			check_done(&r, &operations[i]);
		}
}

TEST(when_every_answer_is_lost_the_call_says_that_it_does_not_know)
{
	RIG_SCOPE r = rig_new("&timeout_ms=1000");

	fresh(&r);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .count = PROXY_ALWAYS, .match = "EVALSHA"});
	CHECK_ERR(do_append(&r.c), r.c.err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(r.c.err.msg), STR("check whether it was made"));
	proxy_disarm(r.proxy);
	CHECK_STR(get(&r.c, "a"), STR("old+")); /* once, not once for each try */
}

TEST(a_stalled_server_ends_every_call_by_its_deadline)
{
	RIG_SCOPE r = rig_new("");

	for (size_t i = 0; i < OPERATIONS; i++) {
		fresh(&r);
		proxy_arm(r.proxy, &(struct proxy_plan){.fault = i % 2 ? PROXY_STALL : PROXY_STALL_ANSWER,
							.count = PROXY_ALWAYS});
		r.c.ctx.deadline_ns = clock_monotonic_ns() + 60000000;
		CHECK_ERR(operations[i].run(&r.c), r.c.err, ERR_TIMEOUT);
		r.c.ctx.deadline_ns = 0;
		proxy_disarm(r.proxy);
		CHECK_OK(do_write(&r.c), r.c.err);
	}
}

TEST(a_stalled_server_ends_a_call_without_a_deadline_too)
{
	RIG_SCOPE r = rig_new("&timeout_ms=1000");

	fresh(&r);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
	CHECK_ERR(do_read(&r.c), r.c.err, ERR_TIMEOUT);
	CHECK_ERR(do_write(&r.c), r.c.err, ERR_TIMEOUT);
	proxy_disarm(r.proxy);
	CHECK_OK(do_read(&r.c), r.c.err);
}

static void *cancel_soon(void *arg)
{
	struct timespec t = {.tv_nsec = 20000000};

	nanosleep(&t, NULL);
	atomic_store(&((struct cancel *)arg)->requested, true);
	return NULL;
}

TEST(a_call_that_waits_for_the_server_can_be_cancelled)
{
	RIG_SCOPE r = rig_new("");
	struct cancel cancel = {false};
	pthread_t thread;

	fresh(&r);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
	r.c.ctx.cancel = &cancel;
	CHECK_INT(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
	CHECK_ERR(do_read(&r.c), r.c.err, ERR_CANCELLED);
	pthread_join(thread, NULL);
	r.c.ctx.cancel = NULL;
	proxy_disarm(r.proxy);
	CHECK_OK(do_read(&r.c), r.c.err);
}

TEST(a_server_that_is_away_is_unavailable_and_works_when_it_is_back)
{
	RIG_SCOPE r = rig_new("&timeout_ms=600");

	fresh(&r);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_REFUSE, .count = PROXY_ALWAYS});
	for (size_t i = 0; i < OPERATIONS; i++)
		CHECK_ERR(operations[i].run(&r.c), r.c.err, ERR_UNAVAILABLE);
	proxy_disarm(r.proxy);
	CHECK_STR(listing(&r.c, "", true, 100), STR("a d/1 d/2"));
	CHECK_OK(do_write(&r.c), r.c.err);
}

/* As after a restart: it answers, but not the request. */
TEST(a_server_that_is_loading_for_a_moment_is_asked_again)
{
	RIG_SCOPE r = rig_new("");

	for (size_t i = 0; i < OPERATIONS; i++) {
		fresh(&r);
		proxy_forget(r.proxy);
		proxy_arm(r.proxy,
			  &(struct proxy_plan){.fault = PROXY_ANSWER,
					       .count = 2,
					       .answer = "-LOADING Redis is loading the dataset in memory\r\n"});
		CHECK_OK(operations[i].run(&r.c), r.c.err);
		CHECK_INT(proxy_faults(r.proxy), 2);
		proxy_disarm(r.proxy);
		check_done(&r, &operations[i]);
	}
}

TEST(a_server_that_only_refuses_is_asked_four_times)
{
	RIG_SCOPE r = rig_new("");

	fresh(&r);
	proxy_forget(r.proxy);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_ANSWER,
						.count = PROXY_ALWAYS,
						.match = "EVALSHA", /* not what begins a connection */
						.answer = "-LOADING Redis is loading the dataset in memory\r\n"});
	CHECK_ERR(do_write(&r.c), r.c.err, ERR_UNAVAILABLE);
	CHECK_HAS(str_of(r.c.err.msg), STR("loading"));
	CHECK_INT(proxy_connections(r.proxy), 3); /* each try after the first is on a new one */
}

TEST(idle_connections_that_were_dropped_are_not_noticed)
{
	RIG_SCOPE r = rig_new("");

	for (size_t i = 0; i < OPERATIONS; i++) {
		fresh(&r);
		proxy_cut(r.proxy);
		CHECK_OK(operations[i].run(&r.c), r.c.err);
		check_done(&r, &operations[i]);
	}
}

/* A large write and a large read over connections that break again and again. */
TEST(large_files_get_through_a_connection_that_breaks)
{
	RIG_SCOPE r = rig_new("");
	struct stream st = {.total = 9 * MIB + 3};
	struct source source = stream_source(&st);
	struct str bytes;

	fresh(&r);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_REQUEST, .at = 3, .bytes = 300000});
	CHECK_OK(store_write_stream(r.c.s, &r.c.ctx, P("big"), &source, ANY, NULL, &r.c.err), r.c.err);
	CHECK_INT(proxy_faults(r.proxy), 1);
	proxy_arm(r.proxy, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .at = 2, .bytes = 300000});
	bytes = get(&r.c, "big");
	CHECK_INT(bytes.len, st.total);
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i] != stream_byte(i))
			TEST_FAIL("byte %zu is %d", i, bytes.ptr[i]);
}

TEST(read_write_and_write_with_its_entry_are_one_request_on_the_wire)
{
	RIG_SCOPE r = rig_new("");

	fresh(&r);
	proxy_forget(r.proxy);
	CHECK_OK(do_read(&r.c), r.c.err);
	CHECK_INT(proxy_requests(r.proxy), 1);
	CHECK_OK(do_journal(&r.c), r.c.err);
	CHECK_INT(proxy_requests(r.proxy), 2);
	versions[0] = stat_of(&r.c, "a").version;
	proxy_forget(r.proxy);
	CHECK_OK(do_edit(&r.c), r.c.err);
	CHECK_INT(proxy_requests(r.proxy), 1);
}

/* Killed and started again under four writers: what was acknowledged is there once, nothing is there twice. */

#define WRITERS 4
#define LINES   300

struct writer {
	struct store *s;
	int who;
	bool done[LINES];
};

static void *keep_appending(void *arg)
{
	struct writer *w = arg;
	struct conf c = {.s = w->s, .ctx = {.arena = arena_new()}};

	for (int i = 0; i < LINES; i++) {
		struct str line = arena_printf(c.ctx.arena, "%d/%d\n", w->who, i);

		w->done[i] = store_append(c.s, &c.ctx, P("log"), line, ANY, NULL, &c.err) == 0;
	}
	arena_destroy(c.ctx.arena);
	return NULL;
}

/* With a sync once a second, a server whose disk is slow answers before it has written. */
static void keep_at_once(bool on)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "redis-cli -p %s config set appendfsync %s >/dev/null && redis-cli -p %s config rewrite >/dev/null",
		 redis_env("STEAD_TEST_REDIS_PORT"), on ? "always" : "everysec", redis_env("STEAD_TEST_REDIS_PORT"));
	CHECK_INT(system(command), 0);
}

TEST(a_server_that_is_killed_and_restarted_loses_and_doubles_nothing)
{
	struct conf c = {.s = redis_open_new(), .ctx = {.arena = arena_new()}};
	static struct writer writers[WRITERS];
	static int seen[WRITERS][LINES];
	pthread_t threads[WRITERS];
	struct str rest, line;
	char again[256];
	int done = 0;

	keep_at_once(true);
	snprintf(again, sizeof(again), "%s/again", redis_env("STEAD_TEST_DIR_REDIS"));
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.s = c.s, .who = i};
		CHECK_INT(pthread_create(&threads[i], NULL, keep_appending, &writers[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		CHECK_INT(system(again), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	keep_at_once(false);
	CHECK_OK(store_append(c.s, &c.ctx, P("log"), STR("9/0\n"), ANY, NULL, &c.err), c.err);
	rest = get(&c, "log");
	while (str_cut(&rest, '\n', &line) && line.len) {
		int who, i;

		CHECK_INT(sscanf(line.ptr, "%d/%d", &who, &i), 2);
		if (who < WRITERS)
			seen[who][i]++;
	}
	for (int who = 0; who < WRITERS; who++)
		for (int i = 0; i < LINES; i++) {
			CHECK(seen[who][i] <= 1);
			CHECK(!writers[who].done[i] || seen[who][i] == 1);
			done += writers[who].done[i];
		}
	CHECK(done > 0);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
