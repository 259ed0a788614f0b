/* SPDX-License-Identifier: Apache-2.0 */
/* Eight processes on one workspace in Redis: what they add, change and make is there once, all of it. And many threads
   on one store, which share its connections. */
#include <pthread.h>
#include <sys/wait.h>

#include "store/backends/redis/redis_fix.h"
#include "store/journal.h"

#define PROCESSES 8
#define ROUNDS    60

struct worker {
	struct conf c;
	int who;
};

/* For children, which have no test to end. */
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		if (call) {                                                                                            \
			printf("# %s: %s\n", #call, w->c.err.msg);                                                     \
			fflush(stdout);                                                                                \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

static struct conf open_prefix(const char *prefix)
{
	return (struct conf){.s = redis_open_at(redis_env("STEAD_TEST_REDIS"), prefix, ""),
			     .ctx = {.arena = arena_new()}};
}

static void conf_end(struct conf *c)
{
	store_destroy(c->s);
	arena_destroy(c->ctx.arena);
}

/* The number of processes that failed. */
static int in_processes(const char *prefix, int (*run)(struct worker *w))
{
	pid_t pids[PROCESSES];
	int r = 0;

	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct worker w = {.c = open_prefix(prefix), .who = i};

			_exit(run(&w));
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = 1;

		waitpid(pids[i], &status, 0);
		r += status != 0;
	}
	return r;
}

static int append_lines(struct worker *w)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct str line = arena_printf(w->c.ctx.arena, "%d/%03d %0*d\n", w->who, i, 700, 7);

		TRY(store_append(w->c.s, &w->c.ctx, P("d/log"), line, ANY, NULL, &w->c.err));
	}
	return 0;
}

/* Every line of every process once, whole, and those of one process in their order. */
TEST(appends_of_eight_processes_are_all_there_once)
{
	const char *prefix = redis_prefix();
	struct conf c = open_prefix(prefix);
	int seen[PROCESSES] = {0}, lines = 0;
	struct str rest, line;

	CHECK_INT(in_processes(prefix, append_lines), 0);
	rest = get(&c, "d/log");
	while (str_cut(&rest, '\n', &line) && line.len) {
		int who, i;

		CHECK_INT(line.len, 706);
		CHECK_INT(sscanf(line.ptr, "%d/%d ", &who, &i), 2);
		CHECK_INT(i, seen[who]);
		seen[who]++;
		lines++;
	}
	CHECK_INT(lines, PROCESSES * ROUNDS);
	conf_end(&c);
}

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

static int add_one(struct worker *w, const char *path)
{
	for (;;) {
		struct store_stat st;
		struct str bytes;
		int r;

		TRY(store_read(w->c.s, &w->c.ctx, P(path), STORE_WHOLE, 100, &bytes, &st, &w->c.err));
		r = store_write(w->c.s, &w->c.ctx, P(path), arena_printf(w->c.ctx.arena, "%d", number(bytes.ptr) + 1),
				VERS(st.version), NULL, &w->c.err);
		if (r == 0)
			return 0;
		if (r != -ERR_CONFLICT)
			TRY(r);
	}
}

static int count_up(struct worker *w)
{
	for (int i = 0; i < ROUNDS; i++)
		if (add_one(w, "counter"))
			return 1;
	return 0;
}

TEST(edits_of_eight_processes_lose_nothing)
{
	const char *prefix = redis_prefix();
	struct conf c = open_prefix(prefix);

	put(&c, "counter", "0");
	CHECK_INT(in_processes(prefix, count_up), 0);
	CHECK_STR(get(&c, "counter"), arena_printf(c.ctx.arena, "%d", PROCESSES * ROUNDS));
	conf_end(&c);
}

/* Who made a name says so in a file of its own. */
static int make_names(struct worker *w)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct str name = arena_printf(w->c.ctx.arena, "names/%d/%d", i % 7, i);
		struct str note = arena_printf(w->c.ctx.arena, "%d\n", i), own;
		struct wpath mine;
		int r = store_write(w->c.s, &w->c.ctx, P(name.ptr), arena_printf(w->c.ctx.arena, "%d", w->who), ABSENT,
				    NULL, &w->c.err);

		if (r == -ERR_EXISTS)
			continue;
		TRY(r);
		own = arena_printf(w->c.ctx.arena, "made/%d", w->who);
		mine = P(own.ptr);
		TRY(store_append(w->c.s, &w->c.ctx, mine, note, ANY, NULL, &w->c.err));
	}
	return 0;
}

TEST(a_name_that_eight_processes_make_is_made_once)
{
	const char *prefix = redis_prefix();
	struct conf c = open_prefix(prefix);
	int makers[ROUNDS] = {0};

	CHECK_INT(in_processes(prefix, make_names), 0);
	for (int who = 0; who < PROCESSES; who++) {
		struct str path = arena_printf(c.ctx.arena, "made/%d", who), rest = STR(""), line;
		struct store_stat st;

		if (store_stat(c.s, &c.ctx, P(path.ptr), &st, &c.err) == 0)
			rest = get(&c, path.ptr);
		while (str_cut(&rest, '\n', &line) && line.len) {
			struct str name =
				arena_printf(c.ctx.arena, "names/%d/%d", number(line.ptr) % 7, number(line.ptr));

			makers[number(line.ptr)]++;
			CHECK_INT(number(get(&c, name.ptr).ptr), who);
		}
	}
	for (int i = 0; i < ROUNDS; i++)
		CHECK_INT(makers[i], 1);
	conf_end(&c);
}

/* The same counter, with an entry for each change in the same step. */
static int count_in_journal(struct worker *w)
{
	uint64_t after = 0;

	for (int i = 0; i < ROUNDS;) {
		struct journal_add add = {.after = after, .change = JOURNAL_WRITE};
		struct journal_added added;
		struct store_stat st;
		struct str bytes;
		int r;

		TRY(store_read(w->c.s, &w->c.ctx, P("counter"), STORE_WHOLE, 100, &bytes, &st, &w->c.err));
		add.content = arena_printf(w->c.ctx.arena, "%d", number(bytes.ptr) + 1);
		add.bytes = add.version = arena_printf(w->c.ctx.arena, "v%d-%d-%s", w->who, i, bytes.ptr);
		r = store_journal_add(w->c.s, &w->c.ctx, P("log"), P("counter"), VERS(st.version), &add, &added,
				      &w->c.err);
		if (r == 0) {
			i++;
			after++;
		} else if (r == -ERR_CONFLICT) {
			after = added.overtaken ? added.news.last : after;
		} else {
			TRY(r);
		}
	}
	return 0;
}

TEST(changes_with_their_entries_are_both_there_once)
{
	const char *prefix = redis_prefix();
	struct conf c = open_prefix(prefix);
	struct journal_read req = {.max_bytes = 64 * MIB};
	struct journal_page page;

	put(&c, "counter", "0");
	CHECK_INT(in_processes(prefix, count_in_journal), 0);
	CHECK_STR(get(&c, "counter"), arena_printf(c.ctx.arena, "%d", PROCESSES * ROUNDS));
	CHECK_OK(store_journal_read(c.s, &c.ctx, P("log"), &req, &page, &c.err), c.err);
	CHECK_INT(page.last, PROCESSES * ROUNDS);
	for (size_t i = 0; i < page.count; i++) /* each entry is where its change was made */
		CHECK_ENDS(page.entries[i].bytes, arena_printf(c.ctx.arena, "-%zu", i));
	conf_end(&c);
}

/* Replaced again and again: a reader of a large file never sees a mix of two. */
static int replace_large(struct worker *w)
{
	size_t len = 3 * MIB;
	char *bytes = arena_alloc(w->c.ctx.arena, len);

	memset(bytes, 'a' + w->who, len);
	for (int i = 0; i < 10; i++) {
		struct str got;

		if (w->who % 2) {
			TRY(store_write(w->c.s, &w->c.ctx, P("large"), str_n(bytes, len), ANY, NULL, &w->c.err));
			continue;
		}
		TRY(store_read(w->c.s, &w->c.ctx, P("large"), STORE_WHOLE, len, &got, NULL, &w->c.err));
		for (size_t k = 1; k < got.len; k++)
			if (got.ptr[k] != got.ptr[0])
				return 1;
		if (got.len != len)
			return 1;
	}
	return 0;
}

TEST(a_large_file_is_read_whole_while_it_is_replaced)
{
	const char *prefix = redis_prefix();
	struct conf c = open_prefix(prefix);
	size_t len = 3 * MIB;
	char *bytes = arena_alloc(c.ctx.arena, len);

	memset(bytes, 'x', len);
	CHECK_OK(store_write(c.s, &c.ctx, P("large"), str_n(bytes, len), ANY, NULL, &c.err), c.err);
	CHECK_INT(in_processes(prefix, replace_large), 0);
	conf_end(&c);
}

static void *thread_appends(void *arg)
{
	struct worker w = {.c = {.s = arg, .ctx = {.arena = arena_new()}}};
	int r = append_lines(&w);

	arena_destroy(w.c.ctx.arena);
	return r ? arg : NULL;
}

TEST(more_threads_than_connections_take_turns)
{
	struct conf c = {.s = redis_open_at(redis_env("STEAD_TEST_REDIS"), redis_prefix(), "&connections=3"),
			 .ctx = {.arena = arena_new()}};
	pthread_t threads[12];
	int r = 0;

	for (int i = 0; i < 12; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, thread_appends, c.s), 0);
	for (int i = 0; i < 12; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		r += failed != NULL;
	}
	CHECK_INT(r, 0);
	CHECK_INT(stat_of(&c, "d/log").size, 12 * ROUNDS * 707);
	conf_end(&c);
}
