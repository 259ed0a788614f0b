/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process puts messages into the queue and takes turns from it, in all four modes at once, and is killed at random;
 * the next one goes on with the files. Every message must come out once, and in the order of its session.
 *
 * What survives a kill besides the files is what survives it in the runner: how far the service was told that messages
 * were received (`put`), and which message the session's last turn was about (`got`).
 *
 * STEAD_QUEUE_MESSAGES is how many messages there are (default 4000; 100000 is the full size).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temp_dir.h"
#include "test.h"

#include "base/clock.h"
#include "base/hash.h"
#include "runner/queue.h"

#define SESSIONS 8
#define LIVES_MS 400 /* a process lives at most so long */

struct shared {
	_Atomic uint64_t put[SESSIONS], got[SESSIONS]; /* numbers of messages */
	_Atomic uint64_t all, batches, again;
	_Atomic int64_t now;
	_Atomic bool failed;
	char problem[300];
};

static struct shared *shared;

static void fail(const char *what, struct str batch, uint64_t got)
{
	snprintf(shared->problem, sizeof shared->problem, "%s: the batch is \"%.*s\", and %llu was the last", what,
		 STR_ARG(str_first(batch, 200)), (unsigned long long)got);
	atomic_store(&shared->failed, true);
	_exit(1);
}

static void expect(int r, const char *what, const struct err *err)
{
	if (r)
		fail(what, str_of(err->msg), 0);
}

struct life {
	struct arena *arena;
	struct ctx ctx;
	struct workspace *ws;
	struct queue *queue;
	uint64_t each;
};

static struct str session_of(struct arena *arena, size_t n)
{
	return arena_printf(arena, "test:%zu", n);
}

/* As a service does: a message that was not acknowledged comes again. */
static void put_one(struct life *life, size_t n)
{
	uint64_t number = atomic_load(&shared->put[n]) + 1;
	struct str text = arena_printf(life->arena, "%llu", (unsigned long long)number);
	struct queue_message m = {
		.id = text, .session = session_of(life->arena, n), .text = text, .is_system = number % 23 == 0};
	enum queue_result result;
	struct err err = {0};

	if (number > life->each)
		return;
	expect(queue_put(life->queue, &life->ctx, &m, atomic_load(&shared->now), &result, &err), "put", &err);
	if (result == QUEUE_REFUSED)
		fail("refused", text, number);
	atomic_store(&shared->put[n], number);
}

/* The turn of a batch: it is said unless the last turn was about it already. */
static void turn(const struct queue_batch *batch)
{
	size_t n = (size_t)(batch->session.ptr[batch->session.len - 1] - '0');
	uint64_t got = atomic_load(&shared->got[n]), last = got;
	struct str rest = batch->text, line;
	int64_t id = 0, number = 0;

	str_to_i64(batch->id, &id);
	if ((uint64_t)id <= got) {
		if ((uint64_t)id != got || !batch->is_again)
			fail("doubled", batch->text, got);
		atomic_fetch_add(&shared->again, 1);
		return;
	}
	while (str_cut(&rest, '\n', &line))
		if (line.len && (!str_to_i64(line, &number) || (uint64_t)number != ++last))
			fail("lost, or in another order", batch->text, got);
	if (last != (uint64_t)id)
		fail("not the id of the last message", batch->text, got);
	atomic_store(&shared->got[n], last);
	atomic_fetch_add(&shared->batches, 1);
	atomic_fetch_add(&shared->all, last - got);
}

static void take_one(struct life *life, uint64_t dice)
{
	struct queue_batch batch;
	struct err err = {0};
	int64_t next;
	bool taken;

	expect(queue_take(life->queue, &life->ctx, atomic_load(&shared->now), &batch, &taken, &next, &err), "take",
	       &err);
	if (!taken)
		return;
	if (dice % 11 == 0) { /* the turn is cut off before it has begun */
		queue_release(life->queue, &batch);
		return;
	}
	turn(&batch);
	expect(queue_done(life->queue, &life->ctx, &batch, &err), "done", &err);
}

static void live(const char *dir, uint64_t each)
{
	struct life life = {.arena = arena_new(), .each = each};
	struct queue_opts opts = {.mode = QUEUE_COLLECT, .debounce_ms = 5, .cap = 1 << 20, .turns = 3};
	struct workspace_opts where = {.store_url = arena_printf(life.arena, "disk:%s/store", dir),
				       .name = STR("queue"),
				       .create = true,
				       .relaxed = true};
	struct err err = {0};

	life.ctx.arena = arena_new();
	expect(workspace_open(&where, &life.ws, &err), "open", &err);
	expect(queue_open(life.ws, &life.ctx, &opts, &life.queue, &err), "open the queue", &err);
	for (size_t n = 0; n < SESSIONS; n++)
		expect(queue_set_mode(life.queue, &life.ctx, session_of(life.ctx.arena, n),
				      (enum queue_mode)(n % QUEUE_MODES), &err),
		       "set the mode", &err);
	while (atomic_load(&shared->all) < SESSIONS * each) {
		uint64_t dice = random_u64() >> 8;

		arena_reset(life.ctx.arena);
		arena_reset(life.arena);
		atomic_fetch_add(&shared->now, NS_PER_MS);
		if (dice % 5 < 3)
			put_one(&life, dice / 5 % SESSIONS);
		else
			take_one(&life, dice / 5);
	}
	_exit(0);
}

TEST(every_message_comes_out_once_and_in_order_in_all_modes_over_kills)
{
	const char *most = getenv("STEAD_QUEUE_MESSAGES"), *dir = temp_dir_new();
	uint64_t each = (most ? strtoull(most, NULL, 10) : 4000) / SESSIONS;
	unsigned kills = 0;
	int status = 1;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	atomic_store(&shared->now, NS_PER_S);
	while (!atomic_load(&shared->failed) && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			live(dir, each);
		}
		for (uint64_t ms = 5 + random_u64() % LIVES_MS; ms && waitpid(pid, &status, WNOHANG) == 0; ms--)
			usleep(1000);
		if (kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid)
			kills += WIFSIGNALED(status);
	}
	CHECK_STR(str_of(shared->problem), STR(""));
	for (size_t n = 0; n < SESSIONS; n++)
		CHECK_INT(atomic_load(&shared->got[n]), each);
	printf("# %llu messages, %llu turns, %llu of them found again after a kill, %u kills\n",
	       (unsigned long long)atomic_load(&shared->all), (unsigned long long)atomic_load(&shared->batches),
	       (unsigned long long)atomic_load(&shared->again), kills);
	CHECK(kills > 0);
}
