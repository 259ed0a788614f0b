/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many sessions at once, each a turn that waits for a slow model; then all of them are idle. STEAD_SESSIONS is their
 * number. The model holds its answers until all have asked, so they do run at the same time.
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>

#include "agent/agent_fix.h"
#include "agent/model_stub.h"
#include "memory_use.h"

struct talker {
	pthread_t thread;
	struct agent *agent;
	size_t number;
	int r;
};

static void *talk(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct talker *t = arg;
	struct ctx ctx = {.arena = arena};
	struct agent_turn turn = {.text = STR("Go"), .session = arena_printf(arena, "s%zu", t->number)};
	struct agent_result result;
	struct err err;

	t->r = agent_run(t->agent, &ctx, &turn, &result, &err);
	if (t->r)
		printf("# session %zu: %s\n", t->number, err.msg);
	else if (!str_is(result.answer, "done"))
		t->r = -1;
	return NULL;
}

static size_t count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	size_t n = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* KiB, of /proc/self/status. */
static void run_all(struct agent *agent, struct talker *talkers, size_t first, size_t count)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)1024 * 1024);
	for (size_t i = 0; i < count; i++) {
		talkers[i] = (struct talker){.agent = agent, .number = first + i};
		CHECK(pthread_create(&talkers[i].thread, &attr, talk, &talkers[i]) == 0);
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(talkers[i].thread, NULL);
		CHECK_INT(talkers[i].r, 0);
	}
	pthread_attr_destroy(&attr);
}

TEST(many_sessions_at_once_finish_and_an_idle_one_costs_little_memory_and_no_thread)
{
	const char *wanted = getenv("STEAD_SESSIONS");
	size_t most = wanted ? strtoul(wanted, NULL, 10) : 60, before, after, threads;
	struct model_stub stub = {.steps = 1, .hold = (unsigned)most, .pause_ms = 5}, first = {.steps = 1};
	struct talker *talkers;
	struct agent_opts opts = {.model = STR("anthropic:m")};
	struct agent *agent;
	struct bench b;
	struct err err;

	setenv("ANTHROPIC_API_KEY", "k", 1);
	CHECK(model_stub_start(&first) == 0);
	CHECK(model_stub_start(&stub) == 0);
	bench_open_disk(&b, "");
	put(&b, "a.txt", STR("one\n"));
	talkers = ARENA_ARRAY(b.arena, struct talker, most);
	opts.base_url = str_of(first.url);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	run_all(agent, talkers, 0, 1); /* what is made once */
	agent_close(agent);
	opts.base_url = str_of(stub.url);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	arena_give_back();
	before = mallinfo2().uordblks;
	threads = count_threads();
	run_all(agent, talkers, 1, most);
	arena_give_back();
	after = mallinfo2().uordblks;
	printf("# %zu sessions at once: %ld MiB at most; %zu bytes of heap for each that is idle\n", most,
	       memory_kib("VmHWM") / 1024, after > before ? (after - before) / most : 0);
	CHECK(after < before + most * 64 * 1024);
	CHECK(memory_kib("VmHWM") < 512 * 1024);
	CHECK(count_threads() <= threads + 2); /* of the workspace, not of sessions */
	agent_close(agent);
	model_stub_stop(&stub);
	model_stub_stop(&first);
}
