/* SPDX-License-Identifier: Apache-2.0 */
/* A database behind a proxy that does damage, killed and started again, and used by eight processes at once. Built for
   each kind of server, with its FIX. */
#include <sys/wait.h>

#include FIX
#include "servers/proxy.h"
#include "store/journal.h"

#define FIX_SCOPE __attribute__((cleanup(fix_end)))
#define PROCESSES 8

struct fix {
	struct conf c;
	struct proxy *proxy;
};

static void fix_end(struct fix *f)
{
	store_destroy(f->c.s);
	proxy_stop(f->proxy);
	arena_destroy(f->c.ctx.arena);
}

static struct fix fix_new(const char *params)
{
	const char *at = strchr(SERVER_URL, '@') + 1;
	struct fix f = {.c = {.ctx = {.arena = arena_new()}}};

	f.proxy = proxy_start(arena_cstr(f.c.ctx.arena, str_n(at, strcspn(at, "/"))));
	CHECK_OK(store_open_url(arena_printf(f.c.ctx.arena, SERVER_PROXIED, (unsigned)proxy_port(f.proxy), params),
				NULL, &f.c.s, &f.c.err),
		 f.c.err);
	return f;
}

/* One of each change, from a known state; each is to happen once. */
struct action {
	const char *name;
	int (*act)(struct conf *c);
	const char *tree, *content; /* after it: all files, and the bytes of "t" ("-": not looked at) */
};

static int act_write(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("t"), STR("new"), ANY, NULL, &c->err);
}

static int act_create(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("n/new"), STR("new"), ABSENT, NULL, &c->err);
}

static int act_replace(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("t"), STR("new"), VERS(stat_of(c, "t").version), NULL, &c->err);
}

static int act_append(struct conf *c)
{
	return store_append(c->s, &c->ctx, P("t"), STR("+"), ANY, NULL, &c->err);
}

static int act_remove(struct conf *c)
{
	uint64_t count = 0;
	int r = store_remove(c->s, &c->ctx, P("d"), true, ANY, &count, &c->err);

	if (r == 0)
		CHECK_INT(count, 2);
	return r;
}

static int act_move(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("d"), P("e"), ANY, ABSENT, NULL, &c->err);
}

static int act_copy(struct conf *c)
{
	return store_copy(c->s, &c->ctx, P("t"), P("u"), ABSENT, NULL, &c->err);
}

static int act_journal(struct conf *c)
{
	struct journal_add add = {
		.bytes = STR("an entry"), .change = JOURNAL_APPEND, .content = STR("+"), .version = STR("v1")};
	struct journal_added added;

	return store_journal_add(c->s, &c->ctx, P("log"), P("t"), ANY, &add, &added, &c->err);
}

static int act_stream(struct conf *c)
{
	struct stream st = {.total = 3 * MIB};
	struct source source = stream_source(&st);

	return store_write_stream(c->s, &c->ctx, P("big"), &source, ABSENT, NULL, &c->err);
}

static int act_append_stream(struct conf *c)
{
	struct stream st = {.total = 3 * MIB};
	struct source source = stream_source(&st);

	return store_append_stream(c->s, &c->ctx, P("big"), &source, ANY, NULL, &c->err);
}

static const struct action actions[] = {
	{"write", act_write, "d/1 d/2 t", "new"},
	{"create", act_create, "d/1 d/2 n/new t", "old"},
	{"replace", act_replace, "d/1 d/2 t", "new"},
	{"append", act_append, "d/1 d/2 t", "old+"},
	{"remove", act_remove, "t", "old"},
	{"move", act_move, "e/1 e/2 t", "old"},
	{"copy", act_copy, "d/1 d/2 t u", "old"},
	{"journal", act_journal, "d/1 d/2 t", "old+"},
	{"stream", act_stream, "big d/1 d/2 t", "old"},
	{"append a stream", act_append_stream, "big d/1 d/2 t", "old"},
};
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

static void reset(struct conf *c)
{
	CHECK_OK(store_remove(c->s, &c->ctx, WPATH_ROOT, true, ANY, NULL, &c->err), c->err);
	put(c, "t", "old");
	put(c, "d/1", "1");
	put(c, "d/2", "2");
}

static void check_done(struct conf *c, const struct action *a)
{
	struct str tree = listing(c, "", true, 100), content = get(c, "t");

	if (!str_is(tree, a->tree) || !str_is(content, a->content))
		TEST_FAIL("%s: the tree is \"%.*s\", t is \"%.*s\"", a->name, STR_ARG(tree), STR_ARG(content));
	if (str_find(tree, STR("big"), 0) != SIZE_MAX)
		CHECK_INT(stat_of(c, "big").size, 3 * MIB);
}

/* Every action with the fault at its 1st, 2nd … request, until it is through without meeting it. */
static void at_every_request(struct fix *f, enum proxy_fault fault, uint64_t bytes)
{
	struct conf *c = &f->c;

	for (size_t i = 0; i < ACTIONS; i++) {
		for (uint64_t at = 1;; at++) {
			uint64_t hits;
			int r;

			reset(c);
			proxy_forget(f->proxy);
			proxy_arm(f->proxy, &(struct proxy_plan){.fault = fault, .at = at, .bytes = bytes});
			r = actions[i].act(c);
			hits = proxy_faults(f->proxy);
			proxy_disarm(f->proxy);
			if (r)
				TEST_FAIL("%s, fault at request %llu: %s", actions[i].name, (unsigned long long)at,
					  c->err.msg);
			check_done(c, &actions[i]);
			arena_reset(c->ctx.arena);
			if (hits == 0) {
				CHECK(at > 1);
				break;
			}
			CHECK(at < 20);
		}
	}
}

TEST(an_answer_that_was_lost_is_looked_after_and_nothing_happens_twice)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("faults"));

	at_every_request(&f, PROXY_CUT_ANSWER, 0);
}

TEST(an_answer_that_was_cut_in_the_middle_is_looked_after)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("faults"));

	at_every_request(&f, PROXY_CUT_ANSWER, 9);
}

TEST(a_request_that_was_cut_is_made_again)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("faults"));

	at_every_request(&f, PROXY_CUT_REQUEST, 11);
}

TEST(connections_that_the_server_dropped_are_replaced)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("faults"));

	for (size_t i = 0; i < ACTIONS; i++) {
		reset(&f.c);
		proxy_cut(f.proxy);
		CHECK_OK(actions[i].act(&f.c), f.c.err);
		check_done(&f.c, &actions[i]);
	}
}

/* A stalled server: the call ends by its deadline, then nothing or all of it is there, and the store works again. */
TEST(a_call_to_a_stalled_server_ends_by_its_deadline)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("faults"));
	struct conf *c = &f.c;

	for (size_t i = 0; i < ACTIONS; i++) {
		struct str tree;
		int r;

		if (actions[i].act == act_replace)
			continue; /* it reads before it writes */
		reset(c);
		proxy_arm(f.proxy, &(struct proxy_plan){.fault = i % 2 ? PROXY_STALL : PROXY_STALL_ANSWER,
							.count = PROXY_ALWAYS});
		c->ctx.deadline_ns = clock_monotonic_ns() + 200000000;
		r = actions[i].act(c);
		c->ctx.deadline_ns = 0;
		proxy_disarm(f.proxy);
		if (r != -ERR_TIMEOUT)
			TEST_FAIL("%s: %d, %s", actions[i].name, r, c->err.msg);
		tree = listing(c, "", true, 100);
		if (!str_is(tree, actions[i].tree) && !str_is(tree, "d/1 d/2 t"))
			TEST_FAIL("%s left \"%.*s\"", actions[i].name, STR_ARG(tree));
		put(c, "works", "again");
	}
}

static void server(const char *verb)
{
	char command[700];

	snprintf(command, sizeof(command), "%s/%s %s %s", SERVERS, SERVER_SCRIPT, verb, SERVER_DIR);
	CHECK_INT(system(command), 0);
}

TEST(what_was_acknowledged_is_there_after_the_server_was_killed)
{
	FIX_SCOPE struct fix f = fix_new(SERVER_PLACE("killed"));
	struct conf *c = &f.c;
	struct str bytes;

	reset(c);
	CHECK_OK(act_stream(c), c->err);
	server("kill");
	CHECK_ERR(store_read(c->s, &c->ctx, P("t"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err, ERR_UNAVAILABLE);
	CHECK_ERR(act_append(c), c->err, ERR_UNAVAILABLE);
	server("again");
	check_done(c, &actions[8]);
	CHECK_OK(act_append(c), c->err);
	CHECK_STR(get(c, "t"), STR("old+"));
}

/* Eight processes. */

static int in_processes(int (*run)(struct conf *c, int who))
{
	pid_t pids[PROCESSES];
	int bad = 0;

	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct conf c = {.s = server_open(SERVER_PLACE("crowd") "&pool=2"),
					 .ctx = {.arena = arena_new()}};
			int r = run(&c, i);

			if (r)
				printf("# process %d: %s\n", i, c.err.msg);
			fflush(stdout);
			_exit(r ? 1 : 0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = 1;

		waitpid(pids[i], &status, 0);
		bad += status != 0;
	}
	return bad;
}

static int crowd_append(struct conf *c, int who)
{
	for (int i = 0; i < 60; i++)
		if (store_append(c->s, &c->ctx, P("log"), arena_printf(c->ctx.arena, "%d:%02d\n", who, i), ANY, NULL,
				 &c->err))
			return 1;
	return 0;
}

TEST(appends_of_eight_processes_are_neither_lost_nor_doubled)
{
	struct conf c = {.s = server_empty(SERVER_PLACE("crowd")), .ctx = {.arena = arena_new()}};
	struct str log, line;
	int next[PROCESSES] = {0}, lines = 0;

	CHECK_INT(in_processes(crowd_append), 0);
	log = get(&c, "log");
	while (str_cut(&log, '\n', &line) && line.len) {
		int who = line.ptr[0] - '0';

		CHECK_STR(line, arena_printf(c.ctx.arena, "%d:%02d", who, next[who]++));
		lines++;
	}
	CHECK_INT(lines, 60 * PROCESSES);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static int crowd_edit(struct conf *c, int who)
{
	(void)who;
	for (int i = 0; i < 30;) {
		struct store_stat st;
		struct str bytes;
		int64_t n;
		int r = store_read(c->s, &c->ctx, P("counter"), STORE_WHOLE, 20, &bytes, &st, &c->err);

		if (r || !str_to_i64(bytes, &n))
			return 1;
		r = store_write(c->s, &c->ctx, P("counter"), arena_printf(c->ctx.arena, "%lld", (long long)n + 1),
				VERS(st.version), NULL, &c->err);
		if (r && r != -ERR_CONFLICT)
			return 1;
		i += r == 0;
	}
	return 0;
}

TEST(edits_of_eight_processes_are_neither_lost_nor_doubled)
{
	struct conf c = {.s = server_empty(SERVER_PLACE("crowd")), .ctx = {.arena = arena_new()}};

	put(&c, "counter", "0");
	CHECK_INT(in_processes(crowd_edit), 0);
	CHECK_STR(get(&c, "counter"), arena_printf(c.ctx.arena, "%d", 30 * PROCESSES));
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

/* Each tries to be the one that makes name 0, 1 …, and to be the first to make it or something below it. */
static int crowd_create(struct conf *c, int who)
{
	for (int i = 0; i < 60; i++) {
		const char *one = arena_printf(c->ctx.arena, "same/%d", i).ptr;
		const char *two = arena_printf(c->ctx.arena, who % 2 ? "odd/%d" : "odd/%d/x/y", i).ptr;
		int r = store_write(c->s, &c->ctx, P(one), arena_printf(c->ctx.arena, "%d", who), ABSENT, NULL,
				    &c->err);

		if (r && r != -ERR_EXISTS)
			return 1;
		if (r == 0 && store_append(c->s, &c->ctx, P("won"), STR("."), ANY, NULL, &c->err))
			return 1;
		r = store_write(c->s, &c->ctx, P(two), STR("x"), ANY, NULL, &c->err);
		if (r && r != -ERR_INVALID)
			return 1;
	}
	return 0;
}

TEST(a_name_is_made_by_one_of_eight_processes_and_is_a_file_or_a_directory)
{
	struct conf c = {.s = server_empty(SERVER_PLACE("crowd")), .ctx = {.arena = arena_new()}};
	struct store_list_req req = {.limit = 1000};
	struct store_page page;

	CHECK_INT(in_processes(crowd_create), 0);
	CHECK_INT(get(&c, "won").len, 60);
	CHECK_OK(store_list(c.s, &c.ctx, P("odd"), &req, &page, &c.err), c.err);
	CHECK_INT(page.count, 60); /* as both it would be there twice */
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static int crowd_journal(struct conf *c, int who)
{
	uint64_t after = 0;

	for (int i = 0; i < 30;) {
		struct journal_add add = {.after = after,
					  .bytes = arena_printf(c->ctx.arena, "%d.%d", who, i),
					  .change = JOURNAL_APPEND,
					  .content = STR("."),
					  .version = arena_printf(c->ctx.arena, "v%d.%d", who, i)};
		struct journal_added added;
		int r = store_journal_add(c->s, &c->ctx, P("j"), P("dots"), ANY, &add, &added, &c->err);

		if (r && !(r == -ERR_CONFLICT && added.overtaken))
			return 1;
		after = r ? added.news.last : after + 1;
		i += r == 0;
	}
	return 0;
}

TEST(changes_with_journal_entries_of_eight_processes_stay_together)
{
	struct conf c = {.s = server_empty(SERVER_PLACE("crowd")), .ctx = {.arena = arena_new()}};
	struct journal_read req = {.max_bytes = MIB};
	struct journal_page page;

	CHECK_INT(in_processes(crowd_journal), 0);
	CHECK_OK(store_journal_read(c.s, &c.ctx, P("j"), &req, &page, &c.err), c.err);
	CHECK_INT(page.count, 30 * PROCESSES);
	CHECK_INT(page.last, 30 * PROCESSES);
	CHECK_INT(get(&c, "dots").len, 30 * PROCESSES);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
