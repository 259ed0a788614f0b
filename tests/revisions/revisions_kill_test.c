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
