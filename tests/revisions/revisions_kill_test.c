/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes write through the revisions layer on one directory; they are killed at random instants. Every
 * acknowledged write must be there afterwards, whole; the log must be readable; numbers must be without repeats.
 * A writer acknowledges through a shared page: it sets its counter after the call has returned.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "test.h"

#define WRITERS 8

struct acks {
	_Atomic uint32_t written[WRITERS], appended[WRITERS];
};

static struct wpath own_path(struct arena *arena, int id)
{
	return (struct wpath){arena_printf(arena, "own/%d", id)};
}

static struct wpath all_path(void)
{
	return (struct wpath){STR("all")};
}

/* The log as it is by default (synced), or relaxed. */
static struct store *open_on(const char *dir, bool durable)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store_disk_opts visible = {.relaxed = true, .create = true}, log = {.create = true, .relaxed = !durable};
	struct store *inner, *meta, *rev;
	struct err err;

	CHECK_OK(store_disk_open(dir, &visible, &inner, &err), err);
	CHECK_OK(store_disk_open(arena_printf(arena, "%s/.stead/rev", dir).ptr, &log, &meta, &err), err);
	CHECK_OK(store_revisions_open(inner, meta, (struct revisions_opts){0}, &ctx, &rev, &err), err);
	return rev;
}

/* Each writer has a file of its own, which it overwrites with growing numbers, and all append to one. */
static void write_on(const char *dir, bool durable, struct acks *acks, int id, uint32_t rounds)
{
	struct store *rev = open_on(dir, durable);
	struct arena *arena = arena_new();

	for (uint32_t i = acks->appended[id] + 1; i <= rounds; i++) {
		struct ctx ctx = {.arena = arena};
		struct store_cond any = {0};
		char text[2048];
		struct err err;
		int n = snprintf(text, sizeof(text), "%u ", i);

		memset(text + n, 'a' + id, 1500);
		CHECK_OK(store_write(rev, &ctx, own_path(arena, id), str_n(text, (size_t)n + 1500), any, NULL, &err),
			 err);
		acks->written[id] = i;
		n = snprintf(text, sizeof(text), "%d:%u;\n", id, i);
		CHECK_OK(store_append(rev, &ctx, all_path(), str_n(text, (size_t)n), any, NULL, &err), err);
		acks->appended[id] = i;
		arena_reset(arena);
	}
	store_destroy(rev);
	arena_destroy(arena);
}

static void check_own(struct store *rev, struct acks *acks, int id)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct str bytes, number;
	int64_t n;
	struct err err;

	if (acks->written[id] == 0)
		return;
	CHECK_OK(store_read(rev, &ctx, own_path(arena, id), STORE_WHOLE, MIB, &bytes, NULL, &err), err);
	CHECK(str_cut(&bytes, ' ', &number) && str_to_i64(number, &n));
	CHECK(n >= acks->written[id]);
	CHECK_INT(bytes.len, 1500);
	for (size_t i = 0; i < bytes.len; i++)
		CHECK_INT(bytes.ptr[i], 'a' + id);
}

/* Every acknowledged append is there once; a writer's last one may be there without its acknowledgement. */
static void check_all(struct store *rev, struct acks *acks)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	uint32_t seen[WRITERS] = {0};
	struct str bytes, line, id;
	struct err err;
	int r = store_read(rev, &ctx, all_path(), STORE_WHOLE, 64 * MIB, &bytes, NULL, &err);

	if (r == -ERR_NOT_FOUND)
		return;
	CHECK_OK(r, err);
	while (str_cut(&bytes, '\n', &line) && line.len) {
		int64_t who, n;

		CHECK(str_cut(&line, ':', &id) && str_to_i64(id, &who) && who < WRITERS && line.len > 1);
		CHECK(str_to_i64(str_first(line, line.len - 1), &n) && line.ptr[line.len - 1] == ';');
		/* a writer that was killed before its acknowledgement appends the same number again */
		CHECK(n == seen[who] + 1 || n == seen[who]);
		seen[who] = (uint32_t)n;
	}
	for (int i = 0; i < WRITERS; i++)
		CHECK(seen[i] >= acks->appended[i]);
}

static void check_log(struct store *rev)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct revision *list;
	size_t count;
	struct err err;

	CHECK_OK(revisions_query(rev, &ctx, &(struct rev_query){.with_aborted = true}, &list, &count, NULL, &err), err);
	for (size_t i = 0; i < count; i++)
		CHECK_INT(list[i].number, i + 1);
}

static pid_t start_writer(const char *dir, bool durable, struct acks *acks, int id, uint32_t rounds)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		write_on(dir, durable, acks, id, rounds);
		_exit(0);
	}
	return pid;
}

static struct acks *acks_new(void)
{
	return mmap(NULL, sizeof(struct acks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TEST(writers_in_eight_processes_lose_nothing)
{
	const char *dir = temp_dir_new();
	struct acks *acks = acks_new();
	pid_t pids[WRITERS];
	struct store *rev;

	for (int i = 0; i < WRITERS; i++)
		pids[i] = start_writer(dir, false, acks, i, 40);
	for (int i = 0; i < WRITERS; i++) {
		int status;

		waitpid(pids[i], &status, 0);
		CHECK_INT(status, 0);
	}
	rev = open_on(dir, false);
	for (int i = 0; i < WRITERS; i++) {
		CHECK_INT(acks->written[i], 40);
		check_own(rev, acks, i);
	}
	check_all(rev, acks);
	check_log(rev);
	store_destroy(rev);
	munmap(acks, sizeof(*acks));
}

TEST(writers_killed_at_any_instant_lose_nothing_that_was_acknowledged)
{
	const char *rounds_text = getenv("STEAD_KILL_ROUNDS");
	int64_t rounds = 60;
	uint64_t acknowledged = 0;
	struct acks *acks = acks_new();
	const char *dir = temp_dir_new();

	if (rounds_text)
		CHECK(str_to_i64(str_of(rounds_text), &rounds));
	for (int64_t round = 0; round < rounds; round++) {
		pid_t pids[WRITERS];
		struct store *rev;

		if (round % 20 == 19) { /* logs stay short enough to be read each time */
			dir = temp_dir_new();
			memset(acks, 0, sizeof(*acks));
		}
		for (int i = 0; i < WRITERS; i++)
			acknowledged -= acks->written[i] + acks->appended[i];
		for (int i = 0; i < WRITERS; i++)
			pids[i] = start_writer(dir, round / 20 % 2, acks, i, UINT32_MAX);
		usleep((useconds_t)(random_u64() % 40000)); /* the instant is the thing under test */
		for (int i = 0; i < WRITERS; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < WRITERS; i++)
			waitpid(pids[i], NULL, 0);
		rev = open_on(dir, false);
		for (int i = 0; i < WRITERS; i++)
			check_own(rev, acks, i);
		check_all(rev, acks);
		check_log(rev);
		store_destroy(rev);
		for (int i = 0; i < WRITERS; i++)
			acknowledged += acks->written[i] + acks->appended[i];
	}
	printf("# %d rounds, %llu acknowledged changes\n", (int)rounds, (unsigned long long)acknowledged);
	munmap(acks, sizeof(*acks));
}

/* --- a directory of more files than a batch has --- */

#define MANY 1200

static size_t count_below(struct store *rev, struct ctx *ctx, const char *dir)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	size_t count = 0;
	struct err err;

	do {
		int r = store_list(rev, ctx, (struct wpath){str_of(dir)}, &req, &page, &err);

		if (r == -ERR_NOT_FOUND)
			break;
		CHECK_OK(r, err);
		count += page.count;
		req.after = page.next;
	} while (page.next.ptr);
	return count;
}

static void make_many(struct store *rev, struct ctx *ctx)
{
	struct store_cond any = {0};
	struct err err;

	for (int i = 0; i < MANY; i++) {
		struct wpath path = {arena_printf(ctx->arena, "old/%d/%d", i % 7, i)};

		CHECK_OK(store_write(rev, ctx, path, path.s, any, NULL, &err), err);
	}
}

static int move_many(struct store *rev, struct ctx *ctx, struct err *err)
{
	struct store_cond any = {0};

	ctx->actor.call_id = STR("the-move");
	return store_move(rev, ctx, (struct wpath){STR("old")}, (struct wpath){STR("new")}, any, any, NULL, err);
}

/* How long it takes when nobody kills it. */
static int64_t time_a_move(void)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *rev = open_on(temp_dir_new(), false);
	int64_t began;
	struct err err;

	make_many(rev, &ctx);
	began = clock_monotonic_ns();
	CHECK_OK(move_many(rev, &ctx, &err), err);
	CHECK_INT(count_below(rev, &ctx, "new"), MANY);
	store_destroy(rev);
	return clock_monotonic_ns() - began;
}

/* Another process writes to the old place after the kill, before the rest is moved: that stays where it is. */
static void kill_a_move(int64_t after_ns, size_t seen[2])
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct rev_query of_move = {.call_id = STR("the-move")};
	struct ctx ctx = {.arena = arena};
	const char *dir = temp_dir_new();
	struct store *rev = open_on(dir, false);
	struct store_cond any = {0};
	struct revision *list;
	size_t moved, count;
	struct err err;
	pid_t pid;

	make_many(rev, &ctx);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct store *own = open_on(dir, false);

		_exit(move_many(own, &ctx, &err) ? 1 : 0);
	}
	nanosleep(&(struct timespec){.tv_nsec = after_ns % 1000000000}, NULL); /* the instant is the thing under test */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_OK(store_write(rev, &ctx, (struct wpath){STR("old/late")}, STR("late"), any, NULL, &err), err);
	store_destroy(rev);
	rev = open_on(dir, false);
	moved = count_below(rev, &ctx, "new");
	CHECK(moved == 0 || moved == MANY);
	CHECK_INT(count_below(rev, &ctx, "old"), MANY - moved + 1);
	CHECK_OK(revisions_query(rev, &ctx, &of_move, &list, &count, NULL, &err), err);
	CHECK_INT(count, 2 * moved);
	seen[moved > 0]++;
	store_destroy(rev);
}

TEST(a_move_of_many_files_that_was_killed_is_made_whole_at_the_next_start)
{
	const char *rounds_text = getenv("STEAD_KILL_ROUNDS");
	int64_t rounds = 6, whole = time_a_move();
	size_t seen[2] = {0};

	if (rounds_text)
		CHECK(str_to_i64(str_of(rounds_text), &rounds));
	for (int64_t i = 0; i < rounds; i++)
		kill_a_move((int64_t)(random_u64() % (uint64_t)(whole + whole / 4)), seen);
	printf("# not begun %zu, whole %zu\n", seen[0], seen[1]);
}
