/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders as processes of their own: killed, they are followed; paused beyond their time, they find out when they
 * continue. On disk, and on the server's store that the environment names.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "store/lease.h"
#include "store/store_fix.h"

static const char *server_url(void)
{
	const char *redis = getenv("STEAD_TEST_REDIS"), *postgres = getenv("STEAD_TEST_POSTGRES"),
		   *mariadb = getenv("STEAD_TEST_MARIADB");

	return redis ? redis : postgres ? postgres : mariadb;
}

#define TTL_NS INT64_C(300000000)

static char url[300];

static struct store *open_shared(void)
{
	struct store *s;
	struct err err;

	if (store_open_url(str_of(url), NULL, &s, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
	return s;
}

static void begin(void)
{
	const char *given = server_url();

	if (given)
		snprintf(url, sizeof url, "%s", given);
	else
		snprintf(url, sizeof url, "disk:%s", temp_dir_new());
}

static struct lease_want want_as(const char *name, const char *holder)
{
	return (struct lease_want){
		.name = str_of(name), .holder = str_of(holder), .ttl_ns = TTL_NS, .wait_ns = 120 * INT64_C(1000000000)};
}

/* A child that acquires the lease as `holder`, says so, and renews it. Its exit code is 0 when that was refused. One
   that pauses does so between two renewals: in the middle of one it would keep a lock of the disk, which nobody can
   take. */
struct child {
	pid_t pid;
	int said;
};

static void live(const char *name, const char *holder, bool pauses, int say)
{
	struct conf c = {.s = open_shared(), .ctx.arena = arena_new()};
	struct lease_want want = want_as(name, holder);
	struct lease *l;
	char byte = 'k';

	if (lease_acquire(c.s, &c.ctx, &want, &l, &c.err) || write(say, &byte, 1) != 1)
		_exit(2);
	for (int renewals = 0;; renewals++) {
		if (pauses && renewals == 10)
			raise(SIGSTOP);
		if (lease_renew(l, &c.ctx, &c.err))
			_exit(c.err.kind == ERR_CONFLICT ? 0 : 3);
		usleep((useconds_t)(TTL_NS / 10000));
	}
}

static struct child start(const char *name, const char *holder, bool pauses)
{
	int say[2];
	struct child child;
	char byte;

	CHECK(pipe(say) == 0);
	fflush(stdout);
	child.pid = fork();
	CHECK(child.pid >= 0);
	if (child.pid == 0) {
		close(say[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		live(name, holder, pauses, say[1]);
	}
	close(say[1]);
	child.said = say[0];
	CHECK(read(child.said, &byte, 1) == 1); /* it holds the lease */
	return child;
}

static void check_second_holds(struct conf *c, const char *name)
{
	struct lease_info info;

	CHECK_OK(lease_show(c->s, &c->ctx, str_of(name), &info, &c->err), c->err);
	CHECK_STR(info.holder, STR("second"));
	CHECK_INT(info.fence, 2);
}

static int end_of(struct child child)
{
	int status;

	CHECK(waitpid(child.pid, &status, 0) == child.pid);
	close(child.said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(a_killed_holder_is_followed_by_one_that_waits)
{
	struct conf c = {.ctx.arena = arena_new()};
	struct lease_want want = want_as("killed", "second");
	struct child first;
	struct lease *l;

	begin();
	first = start("killed", "first", false);
	kill(first.pid, SIGKILL);
	CHECK_INT(end_of(first), -SIGKILL);
	c.s = open_shared();
	CHECK_OK(lease_acquire(c.s, &c.ctx, &want, &l, &c.err), c.err);
	check_second_holds(&c, "killed");
	CHECK_OK(lease_release(l, &c.ctx, &c.err), c.err);
	lease_destroy(l);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

TEST(a_paused_holder_finds_out_when_it_goes_on)
{
	struct conf c = {.ctx.arena = arena_new()};
	struct lease_want want = want_as("paused", "second");
	struct child first;
	struct lease *l;
	int status;

	begin();
	first = start("paused", "first", true);
	CHECK(waitpid(first.pid, &status, WUNTRACED) == first.pid && WIFSTOPPED(status));
	c.s = open_shared();
	CHECK_OK(lease_acquire(c.s, &c.ctx, &want, &l, &c.err), c.err);
	check_second_holds(&c, "paused");
	kill(first.pid, SIGCONT);
	CHECK_INT(end_of(first), 0); /* its renewal was refused */
	check_second_holds(&c, "paused");
	lease_destroy(l);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

/* Four processes raise one counter under the lease, read-modify-write without a condition of its own. */
static void count_up(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct conf c = {.s = open_shared(), .ctx.arena = arena_new()};
		struct lease_want want = want_as("counter", "");
		struct lease *l;
		int64_t n;

		want.holder = arena_printf(c.ctx.arena, "process %d", (int)getpid());
		want.ttl_ns = 60 * INT64_C(1000000000);
		if (lease_acquire(c.s, &c.ctx, &want, &l, &c.err))
			_exit(2);
		if (!str_to_i64(get(&c, "count"), &n))
			_exit(3);
		put(&c, "count", arena_printf(c.ctx.arena, "%lld", (long long)n + 1).ptr);
		if (lease_release(l, &c.ctx, &c.err))
			_exit(4);
		lease_destroy(l);
		store_destroy(c.s);
		arena_destroy(c.ctx.arena);
	}
	_exit(0);
}

TEST(four_processes_never_hold_one_lease_at_once)
{
	struct conf c = {.ctx.arena = arena_new()};
	pid_t pids[4];
	int status;

	begin();
	c.s = open_shared();
	put(&c, "count", "0");
	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0)
			count_up(10);
	}
	for (int i = 0; i < 4; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_STR(get(&c, "count"), STR("40"));
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
