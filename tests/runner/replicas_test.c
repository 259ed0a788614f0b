/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three runners, each a process of its own, over one store, while they are killed at random and started again: every
 * due time runs once. The store is on disk, or on the server that the environment names. The processes share a clock
 * that runs faster than the machine's (but never so far ahead that a server would refuse the time of a signature).
 *
 * STEAD_FIRINGS is how many due times there are (default 24; 1000 is the full size).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "temp_dir.h"
#include "test.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "runner/runner.h"

#define REPLICAS 3
#define TEXTS    256
#define AHEAD_S  (13 * 60) /* servers refuse signatures that are 15 minutes off */
#define PER_MOST 10        /* due times of one schedule: they must fit in AHEAD_S */

struct shared {
	_Atomic unsigned text; /* of `texts`, the present one */
	char texts[TEXTS][24];
	_Atomic unsigned ended, problems;
	char problem[400];
};

static struct shared *shared;

static const char *lookup(const char *name)
{
	return str_is(str_of(name), "STEAD_TEST_CLOCK_NS") ? shared->texts[atomic_load(&shared->text) % TEXTS]
							   : getenv(name);
}

static void set_clock(int64_t ns)
{
	unsigned next = atomic_load(&shared->text) + 1;

	snprintf(shared->texts[next % TEXTS], sizeof shared->texts[0], "%lld", (long long)ns);
	atomic_store(&shared->text, next);
}

struct stage {
	struct arena *arena;
	struct ctx ctx;
	struct str url, model;
	unsigned workspaces, each;
	int64_t first; /* due time */
	pid_t replicas[REPLICAS];
};

static struct str store_url(struct arena *arena, const char *dir)
{
	const char *redis = getenv("STEAD_TEST_REDIS"), *postgres = getenv("STEAD_TEST_POSTGRES");
	const char *s3 = getenv("STEAD_TEST_S3");

	if (s3) {
		setenv("AWS_ACCESS_KEY_ID", getenv("STEAD_TEST_S3_KEY"), 1);
		setenv("AWS_SECRET_ACCESS_KEY", getenv("STEAD_TEST_S3_SECRET"), 1);
		setenv("AWS_REGION", "us-east-1", 1);
		return arena_printf(arena, "s3://stead-test/replicas?create=1&endpoint=%s", s3);
	}
	if (redis || postgres) /* connections of three processes, and of those that were just killed */
		return arena_printf(arena, "%s?prefix=replicas%s", redis ? redis : postgres, redis ? "" : "&pool=6");
	return arena_printf(arena, "disk:%s/store", dir);
}

static void write_recording(const char *path)
{
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	fputs("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"
	      "\"append_file\",\"input\":{\"path\":\"runs.txt\",\"content\":\"run\\n\"}}]}\n"
	      "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}\n",
	      f);
	fclose(f);
}

static struct str workspace_at(struct stage *s, unsigned i)
{
	return arena_printf(s->arena, "w%04u", i);
}

static struct workspace *open_at(struct stage *s, unsigned i, bool create)
{
	struct workspace_opts opts = {
		.store_url = s->url, .name = workspace_at(s, i), .create = create, .relaxed = true};
	struct workspace *ws;
	struct err err;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	return ws;
}

/* Each workspace has one schedule, due in `each` minutes that follow one another. */
static void make_workspaces(struct stage *s)
{
	struct buf text;
	struct err err;

	buf_init(&text, s->arena, 4096);
	buf_lit(&text, "misfire: all\ngrace_seconds: 86400\nprompt: go\nschedule: '");
	for (unsigned i = 0; i < s->each; i++)
		buf_printf(&text, "%s%lld", i ? "," : "", (long long)((s->first / 60 + i) % 60));
	buf_lit(&text, " * * * *'\n");
	for (unsigned i = 0; i < s->workspaces; i++) {
		struct workspace *ws = open_at(s, i, true);

		CHECK_OK(store_write(workspace_home(ws), &s->ctx, (struct wpath){STR("crons/go.yaml")}, buf_str(&text),
				     (struct store_cond){0}, NULL, &err),
			 err);
		CHECK_OK(schedule_begin(ws, &s->ctx, STR("go"), s->first - 1, &err), err);
		workspace_close(ws);
	}
}

/* What is done with a store is done in a child: a process that has threads must not be forked. */
static void in_child(struct stage *s, void (*act)(struct stage *s))
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		act(s);
		fflush(NULL);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void on_event(void *arg, const struct runner_event *event)
{
	(void)arg;
	if (event->kind == RUNNER_ENDED)
		atomic_fetch_add(&shared->ended, 1);
	if (event->is_error && atomic_fetch_add(&shared->problems, 1) == 0)
		snprintf(shared->problem, sizeof shared->problem, "%.*s %.*s: %.*s", STR_ARG(event->workspace),
			 STR_ARG(event->what), STR_ARG(event->text));
}

static void start_replica(struct stage *s, unsigned i)
{
	struct runner_opts opts = {.store_url = s->url, .model = s->model, .relaxed = true, .event = on_event};
	struct runner *runner;
	struct err err;

	s->replicas[i] = fork();
	CHECK(s->replicas[i] >= 0);
	if (s->replicas[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is stopped leaves none behind */
	CHECK_OK(runner_start(&opts, &runner, &err), err);
	for (;;)
		pause();
}

static void kill_replica(struct stage *s, unsigned i)
{
	kill(s->replicas[i], SIGKILL);
	waitpid(s->replicas[i], NULL, 0);
}

static unsigned lines_with(struct str text, struct str part)
{
	struct str line;
	unsigned n = 0;

	while (text.len && str_cut(&text, '\n', &line))
		n += str_find(line, part, 0) != SIZE_MAX;
	return n;
}

static struct str read_text(struct workspace *ws, struct ctx *ctx, const char *path)
{
	struct str text = STR_NONE;
	struct err err;

	if (store_read(workspace_home(ws), ctx, (struct wpath){str_of(path)}, STORE_WHOLE, 1 << 20, &text, NULL, &err))
		return STR("");
	return text;
}

static void check_all(struct stage *s)
{
	for (unsigned i = 0; i < s->workspaces; i++) {
		struct workspace *ws = open_at(s, i, false);
		struct str log = read_text(ws, &s->ctx, "schedules/log.jsonl");
		struct str runs = read_text(ws, &s->ctx, "files/runs.txt");

		for (unsigned d = 0; d < s->each; d++) {
			struct str due = clock_format_seconds(s->arena, s->first + d * 60);
			unsigned n = lines_with(log, arena_printf(s->arena, "\"due\":\"%.*s\"", STR_ARG(due)));

			if (n != 1)
				TEST_FAIL("w%04u: %u lines for %.*s in\n%.*s", i, n, STR_ARG(due), STR_ARG(log));
		}
		CHECK_INT(lines_with(log, STR("\"outcome\":\"ran\"")), s->each);
		CHECK_INT(lines_with(runs, STR("run")), s->each);
		workspace_close(ws);
	}
}

/* The runs that have been recorded, in shared->ended. */
static void count_ended(struct stage *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->workspaces; i++) {
		struct workspace *ws = open_at(s, i, false);

		n += lines_with(read_text(ws, &s->ctx, "schedules/log.jsonl"), STR("\"due\""));
		workspace_close(ws);
	}
	atomic_store(&shared->ended, n);
}

static void stage_init(struct stage *s)
{
	const char *most = getenv("STEAD_FIRINGS"), *dir = temp_dir_new();
	unsigned firings = most ? (unsigned)strtoul(most, NULL, 10) : 24;

	*s = (struct stage){.arena = arena_new(), .each = firings < 100 ? 3 : PER_MOST};
	test_defer(arena_destroy, s->arena);
	s->ctx.arena = s->arena;
	s->workspaces = firings / s->each;
	s->url = store_url(s->arena, dir);
	s->model = arena_printf(s->arena, "replay:%s/recording.jsonl", dir);
	write_recording(arena_printf(s->arena, "%s/recording.jsonl", dir).ptr);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	s->first = (clock_real_ns() / NS_PER_S / 60 + 1) * 60;
	set_clock(s->first * NS_PER_S - NS_PER_S);
	env_set_lookup(lookup);
}

/* Moves the clock on, `rate` times as fast as the machine's, and kills now and then until all due times have come. */
static void run_all(struct stage *s, int rate)
{
	int64_t began = clock_monotonic_ns(), killed = began, asked = began, ahead, now;
	unsigned wanted = s->workspaces * s->each, dice = 0;

	for (;;) {
		struct timespec real;

		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		now = clock_monotonic_ns();
		if (now - began > 1500 * NS_PER_S)
			TEST_FAIL("%u of %u have run; %s", atomic_load(&shared->ended), wanted, shared->problem);
		clock_gettime(CLOCK_REALTIME, &real);
		ahead = ((int64_t)real.tv_sec + AHEAD_S) * NS_PER_S;
		ahead = s->first * NS_PER_S + (now - began) * rate < ahead ? s->first * NS_PER_S + (now - began) * rate
									   : ahead;
		set_clock(ahead);
		if (now - killed > NS_PER_S && ahead / NS_PER_S < s->first + 60 * s->each) {
			unsigned i = (unsigned)(hash_u64(str_n((char *)&dice, sizeof dice), 7) % REPLICAS);

			dice++;
			killed = now;
			kill_replica(s, i);
			start_replica(s, i);
		}
		/* The events are a hint: a replica that was killed may have recorded a run and not said so. */
		if (atomic_load(&shared->ended) >= wanted || now - asked > 5 * NS_PER_S) {
			in_child(s, count_ended);
			asked = now;
			if (atomic_load(&shared->ended) >= wanted)
				break;
		}
	}
	fprintf(stderr, "# %u due times, %u kills, %.1f s\n", wanted, dice,
		(double)(clock_monotonic_ns() - began) / 1e9);
}

TEST(each_due_time_runs_once_over_three_replicas_that_are_killed)
{
	struct stage s;

	stage_init(&s);
	in_child(&s, make_workspaces);
	for (unsigned i = 0; i < REPLICAS; i++)
		start_replica(&s, i);
	run_all(&s, s.each == PER_MOST ? 6 : 60);
	for (unsigned i = 0; i < REPLICAS; i++)
		kill_replica(&s, i);
	in_child(&s, check_all);
}
