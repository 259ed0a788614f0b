/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes and threads on one directory, and one that tries to lead the store out of it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/backends/disk/disk_fix.h"

#define PROCESSES 8

/* Runs `run(f, 0 … n-1)` in n processes, each with a store of its own; the number of those that failed. */
static int in_processes(struct fix *f, int n, bool relaxed, int (*run)(struct fix *f, int who))
{
	pid_t pids[64];
	int r = 0;

	fflush(stdout);
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct store_disk_opts opts = {.relaxed = relaxed};

			_exit(store_disk_open(f->dir, &opts, &f->s, &f->err) ? 99 : run(f, i));
		}
	}
	for (int i = 0; i < n; i++) {
		int status = 1;

		waitpid(pids[i], &status, 0);
		if (status)
			printf("# process %d: status %x\n", i, (unsigned)status);
		r += status != 0;
	}
	return r;
}

/* For children, which have no test to end. */
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		if (call) {                                                                                            \
			printf("# %s: %s\n", #call, f->err.msg);                                                       \
			fflush(stdout);                                                                                \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

/* The swap. "d" is a directory and "l" a link to a directory outside; the attacker exchanges the two for ever. */

static pid_t start_attacker(struct fix *f, atomic_long *swaps)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	for (; pid == 0; pid = 0) /* until it is killed */
		if (renameat2(f->fd, "d", f->fd, "l", RENAME_EXCHANGE) == 0)
			atomic_fetch_add(swaps, 1);
	return pid;
}

/* One operation below "d"; the error kind or 0. Bytes from outside end the test. */
static int one_act(struct fix *f, unsigned act)
{
	static const struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	struct str bytes;
	int r;

	switch (act % 12) {
	case 0:
	case 1:
		r = store_read(f->s, &f->ctx, P("d/f"), STORE_WHOLE, 1000, &bytes, NULL, &f->err);
		if (r == 0)
			CHECK_LACKS(bytes, STR("OUTSIDE"));
		return r;
	case 2:
		return store_write(f->s, &f->ctx, P("d/f"), STR("inside"), ANY, NULL, &f->err);
	case 3:
		return store_write(f->s, &f->ctx, P("d/s/n"), STR("inside"), ANY, NULL, &f->err);
	case 4:
		return store_append(f->s, &f->ctx, P("d/f"), STR("+"), ANY, NULL, &f->err);
	case 5:
		r = store_list(f->s, &f->ctx, P(act & 64 ? "" : "d"), &req, &page, &f->err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			CHECK(!str_ends(page.entries[i].path.s, STR("canary")));
		return r;
	case 6:
		return store_remove(f->s, &f->ctx, P("d/f"), false, ANY, NULL, &f->err);
	case 7:
		return store_move(f->s, &f->ctx, P("d/f"), P("d/g"), ANY, ANY, NULL, &f->err);
	case 8:
		return store_move(f->s, &f->ctx, P("d/g"), P("f"), ANY, ANY, NULL, &f->err);
	case 9:
		return store_copy(f->s, &f->ctx, P("d/f"), P("d/c"), ANY, NULL, &f->err);
	case 10:
		r = store_stat(f->s, &f->ctx, P("d/canary"), NULL, &f->err);
		CHECK(r);
		return r;
	default:
		return store_remove(f->s, &f->ctx, P(act & 64 ? "d/s" : "d/f"), true, ANY, NULL, &f->err);
	}
}

/* Everything about the outside directory that an operation could change. */
static uint64_t outside_digest(int dir)
{
	static const char *const names[] = {".", "f", "canary", "s", "s/n"};
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat st;

		CHECK(fstatat(dir, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0);
		memset(&st.st_atim, 0, sizeof(st.st_atim));
		hash = hash_u64(str_n(&st, sizeof(st)), hash);
	}
	return hash;
}

static int outside_with_bait(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0 && mkdirat(fd, "s", 0755) == 0);
	raw_write(fd, "f", "OUTSIDE");
	raw_write(fd, "canary", "OUTSIDE");
	raw_write(fd, "s/n", "OUTSIDE");
	return fd;
}

TEST(a_directory_swapped_for_a_link_never_leads_outside)
{
	struct fix f = fix_new(true);
	const char *outside_dir = temp_dir_new();
	FD_SCOPE int outside = outside_with_bait(outside_dir);
	atomic_long *swaps = mmap(NULL, sizeof(*swaps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long done = 0, denied = 0;
	uint64_t before;
	pid_t attacker;

	put(&f, "d/f", "inside");
	put(&f, "d/stays", "inside"); /* so that the directory is not pruned and there is always something to swap */
	CHECK(symlinkat(outside_dir, f.fd, "l") == 0);
	before = outside_digest(outside);
	attacker = start_attacker(&f, swaps);
	for (unsigned i = 0; i < 100000 || (done < 20000 && i < 2000000); i++) {
		int r = one_act(&f, (unsigned)hash_u64(str_n(&i, sizeof(i)), 1));

		done += r == 0;
		denied += r == -ERR_DENIED;
		arena_reset(f.ctx.arena);
	}
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
	printf("# %ld swaps, %ld operations done, %ld refused for the link\n", atomic_load(swaps), done, denied);
	CHECK(before == outside_digest(outside));
	CHECK(atomic_load(swaps) > 1000 && done > 1000 && denied > 1000);
}

/* Appends. */

#define APPENDS 200

static int append_lines(struct fix *f, int who)
{
	for (int i = 0; i < APPENDS; i++) {
		char line[600];
		int n = snprintf(line, sizeof(line), "%d %d %0*d\n", who, i, (who * 61 + i * 7) % 500 + 1, 7);

		TRY(store_append(f->s, &f->ctx, P("d/log"), str_n(line, (size_t)n), ANY, NULL, &f->err));
	}
	return 0;
}

TEST(appends_of_eight_processes_are_all_there_in_order_and_whole)
{
	struct fix f = fix_new(true);
	int next[PROCESSES] = {0}, lines = 0;
	struct str rest, line;

	CHECK_INT(in_processes(&f, PROCESSES, false, append_lines), 0);
	rest = get(&f, "d/log");
	while (rest.len && str_cut(&rest, '\n', &line)) {
		char want[600];
		int who = line.ptr[0] - '0', i;

		CHECK(who >= 0 && who < PROCESSES);
		i = next[who]++;
		snprintf(want, sizeof(want), "%d %d %0*d", who, i, (who * 61 + i * 7) % 500 + 1, 7);
		CHECK_STR(line, str_of(want));
		lines++;
	}
	CHECK_INT(lines, PROCESSES * APPENDS);
}

/* Read, change, write if it is still the same. */

#define EDITS 100

static int edit_once(struct fix *f, int who, int i)
{
	for (;;) {
		struct store_stat st;
		struct str old, new;
		int r;

		TRY(store_read(f->s, &f->ctx, P("d/shared"), STORE_WHOLE, MIB, &old, &st, &f->err));
		new = arena_printf(f->ctx.arena, "%.*s%d %d\n", (int)old.len, old.ptr, who, i);
		r = store_write(f->s, &f->ctx, P("d/shared"), new, VERS(st.version), NULL, &f->err);
		arena_reset(f->ctx.arena);
		if (r == 0)
			return 0;
		if (r != -ERR_CONFLICT)
			TRY(r);
	}
}

static int edit_many(struct fix *f, int who)
{
	for (int i = 0; i < EDITS; i++)
		if (edit_once(f, who, i))
			return 1;
	return 0;
}

static void check_edits(struct fix *f, int who_count)
{
	int next[PROCESSES] = {0}, lines = 0;
	struct str rest = get(f, "d/shared"), line;

	while (rest.len && str_cut(&rest, '\n', &line)) {
		char want[40];
		int who = line.ptr[0] - '0';

		CHECK(who >= 0 && who < who_count);
		snprintf(want, sizeof(want), "%d %d", who, next[who]++);
		CHECK_STR(line, str_of(want));
		lines++;
	}
	CHECK_INT(lines, who_count * EDITS);
}

TEST(conditional_edits_of_eight_processes_lose_nothing)
{
	struct fix f = fix_new(true);

	put(&f, "d/shared", "");
	CHECK_INT(in_processes(&f, PROCESSES, false, edit_many), 0);
	check_edits(&f, PROCESSES);
}

struct worker {
	struct fix f;
	int who, result;
};

static void *edit_thread(void *arg)
{
	struct worker *w = arg;

	w->result = edit_many(&w->f, w->who);
	return NULL;
}

TEST(conditional_edits_of_threads_with_one_store_lose_nothing)
{
	struct fix f = fix_new(true);
	struct worker workers[4];
	pthread_t threads[4];

	put(&f, "d/shared", "");
	for (int i = 0; i < 4; i++) {
		workers[i] = (struct worker){.f = f, .who = i};
		workers[i].f.ctx.arena = arena_new();
		CHECK(pthread_create(&threads[i], NULL, edit_thread, &workers[i]) == 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		arena_destroy(workers[i].f.ctx.arena);
		CHECK_INT(workers[i].result, 0);
	}
	check_edits(&f, 4);
}

/* Exclusive creates: each process writes the names it won to a file of its own. */

#define CREATES 200

static int create_many(struct fix *f, int who)
{
	char own[20];

	snprintf(own, sizeof(own), "won/%d", who);
	for (int i = 0; i < CREATES; i++) {
		struct str name = arena_printf(f->ctx.arena, "new/%d/file", i);
		struct str bytes = arena_printf(f->ctx.arena, "%d", who);
		int r = store_write(f->s, &f->ctx, P(name.ptr), bytes, ABSENT, NULL, &f->err);

		if (r != -ERR_EXISTS)
			TRY(r);
		if (r == 0)
			TRY(store_append(f->s, &f->ctx, P(own), STR("x"), ANY, NULL, &f->err));
	}
	return 0;
}

TEST(an_exclusive_create_has_one_winner)
{
	struct fix f = fix_new(true);
	struct store_page page;
	uint64_t won = 0;

	CHECK_INT(in_processes(&f, PROCESSES, true, create_many), 0);
	page = list(&f, "won", false);
	for (size_t i = 0; i < page.count; i++)
		won += page.entries[i].stat.size;
	CHECK_INT(won, CREATES);
	CHECK_INT(list(&f, "new", true).count, CREATES);
}

/* Directories that come and go under their writers. */

static int come_and_go(struct fix *f, int who)
{
	struct str path = arena_printf(f->ctx.arena, "a/b/c/%d", who);

	for (int i = 0; i < 500; i++) {
		struct str bytes;

		if (i % 2)
			TRY(store_write(f->s, &f->ctx, P(path.ptr), STR("x"), ABSENT, NULL, &f->err));
		else
			TRY(store_append(f->s, &f->ctx, P(path.ptr), STR("x"), ANY, NULL, &f->err));
		TRY(store_read(f->s, &f->ctx, P(path.ptr), STORE_WHOLE, 10, &bytes, NULL, &f->err));
		TRY(bytes.len != 1);
		TRY(store_remove(f->s, &f->ctx, P(path.ptr), false, ANY, NULL, &f->err));
	}
	return 0;
}

TEST(a_directory_pruned_by_one_process_does_not_fail_the_write_of_another)
{
	struct fix f = fix_new(true);

	CHECK_INT(in_processes(&f, PROCESSES, true, come_and_go), 0);
	CHECK_INT(list(&f, "", false).count, 0);
}

/* Moves to and fro: half of the processes one way, half the other, between the same two directories. */

static int move_to_and_fro(struct fix *f, int who)
{
	const char *from = who % 2 ? "left" : "right", *to = who % 2 ? "right" : "left";

	for (int i = 0; i < 500; i++) {
		struct str a = arena_printf(f->ctx.arena, "%s/%d", from, i % 10);
		struct str b = arena_printf(f->ctx.arena, "%s/%d", to, i % 10);
		int r = store_move(f->s, &f->ctx, P(a.ptr), P(b.ptr), ANY, ABSENT, NULL, &f->err);

		if (r && r != -ERR_NOT_FOUND && r != -ERR_EXISTS)
			TRY(r);
	}
	return 0;
}

TEST(moves_in_both_directions_neither_block_nor_lose)
{
	struct fix f = fix_new(true);
	char name[20];

	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "left/%d", i);
		put(&f, name, name);
	}
	CHECK_INT(in_processes(&f, PROCESSES, true, move_to_and_fro), 0);
	CHECK_INT(list(&f, "", true).count, 10);
}
