/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to start a command in the sandbox and to bring back what it changed, as rows of a table:
 *   sandbox_bench DIRECTORY [start | changes | end]
 * Each round runs all candidates one after another, so that other load on the machine meets all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "home/exec/exec.h"
#include "store/stores.h"
#include "workspace/workspace.h"

#define ROUNDS  60
#define MANY    100000
#define SOME    10000
#define CHANGED 50

extern char **environ;

struct place {
	struct store *store;
	const char *dir;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	return values[ROUNDS / 2];
}

/* One round in ten is faster: what other load on the machine has hardly touched. */
static double quick(double *values)
{
	qsort(values, ROUNDS, sizeof *values, by_value);
	return values[ROUNDS / 10];
}

static void row(const char *what, double *values, const char *compared, const char *goal)
{
	printf("| %s | %.2f ms | %.2f ms | %s | %s |\n", what, median(values), quick(values), compared, goal);
}

/* Milliseconds from the start of the program to its end; negative: it cannot be run. */
static double time_program(const char *const *argv)
{
	int64_t start = clock_monotonic_ns();
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		return -1;
	return (double)(clock_monotonic_ns() - start) / 1e6;
}

/* `in_advance`: the sandbox was made before, which is not timed. */
static double time_sandbox(const struct place *place, bool in_advance)
{
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	const char *argv[] = {"/bin/true", NULL};
	struct sandbox_job job = {.argv = argv,
				  .owner = STR("bench"),
				  .files = {.store = place->store,
					    .dir = place->dir,
					    .hidden_key = place->store ? 1 : 0,
					    .read_only = true}};
	struct sandbox_result result;
	struct err err;
	int r = in_advance ? sandbox_spare_open(&ctx, &job, &job.spare, &err) : 0;
	int64_t start = clock_monotonic_ns();
	double ms;

	if (r == 0)
		r = sandbox_run(&ctx, &job, &result, &err);
	ms = (double)(clock_monotonic_ns() - start) / 1e6;
	if (r)
		fprintf(stderr, "sandbox_bench: %s\n", err.msg);
	else
		sandbox_result_release(&result);
	sandbox_spare_close(job.spare);
	arena_destroy(arena);
	return r ? -1 : ms;
}

static void make_files(const char *dir, unsigned files)
{
	char path[600];

	if (mkdir(dir, 0755) != 0)
		exit(1);
	for (unsigned i = 0; i < files; i++) {
		int fd;

		snprintf(path, sizeof path, "%s/d%u", dir, i / 100);
		if (i % 100 == 0 && mkdir(path, 0755) != 0)
			exit(1);
		snprintf(path, sizeof path, "%s/d%u/f%u", dir, i / 100, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || close(fd) != 0)
			exit(1);
	}
}

static struct place make_place(const char *top, unsigned files)
{
	struct store *store;
	struct err err;
	char *dir;

	if (asprintf(&dir, "%s/%u", top, files) < 0)
		exit(1);
	make_files(dir, files);
	if (store_disk_open(dir, &(struct store_disk_opts){.relaxed = true}, &store, &err) != 0)
		exit(1);
	return (struct place){store, dir};
}

/* --- bringing back --- */

static struct workspace *open_workspace(const char *top)
{
	struct workspace_opts opts = {.name = STR("bench"), .create = true};
	struct workspace *ws;
	struct err err;
	char *dir;

	if (asprintf(&dir, "%s/ws", top) < 0)
		exit(1);
	opts.store_url = str_of(dir);
	if (workspace_open(&opts, &ws, &err) != 0)
		exit(1);
	if (asprintf(&dir, "%s/ws/bench/files", top) < 0 || (mkdir(dir, 0755) != 0 && errno != EEXIST) ||
	    asprintf(&dir, "%s/ws/bench/files/tree", top) < 0)
		exit(1);
	make_files(dir, SOME);
	return ws;
}

/* A command that changes files of the workspace; with `drops`, nothing of it is brought back. Directories that the
   round before changed are looked through by a command that is not timed. */
static double time_changes(struct workspace *ws, unsigned round, unsigned changed, bool drops)
{
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	const char *argv[] = {
		"sh", "-c",
		arena_printf(arena,
			     "i=0; while [ $i -lt %u ]; do echo %u >tree/d$((i %% 100))/f$((i %% 100 * 100)); "
			     "i=$((i + 1)); done",
			     changed, 2 * round + drops)
			.ptr,
		NULL};
	struct sandbox_result result;
	struct sandbox_job job;
	struct err err;
	int r = exec_job(ws, &ctx, &job, &err);
	int64_t start = clock_monotonic_ns();
	double ms;

	job.argv = argv;
	job.files.read_only = drops;
	if (r == 0)
		r = exec_run(ws, &ctx, &job, &result, &err);
	ms = (double)(clock_monotonic_ns() - start) / 1e6;
	if (r == 0 && (!result.is_saved || result.change_count != (drops ? 0 : changed)))
		r = err_set(&err, ERR_INTERNAL, "%zu changes were brought back", result.change_count);
	if (r)
		fprintf(stderr, "sandbox_bench: %s\n", err.msg);
	else
		sandbox_result_release(&result);
	arena_destroy(arena);
	return r ? -1 : ms;
}

static void bench_changes(const char *top)
{
	static double times[2][ROUNDS];
	struct workspace *ws = open_workspace(top);
	char text[100];

	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned drops = 0; drops < 2; drops++) {
			(void)time_changes(ws, i, 0, true);
			times[drops][i] = time_changes(ws, i, CHANGED, drops);
		}
	row("50 of 10,000 files changed, dropped", times[1], "", "");
	snprintf(text, sizeof text, "**+ %.2f ms**", median(times[0]) - median(times[1]));
	row("50 of 10,000 files changed, brought back as revisions", times[0], text, "≤ + 5 ms");
	workspace_close(ws);
}

/* --- ending --- */

#define END_ROUNDS 5
#define ALIVE_MS   4000 /* in which the processes are started */

/* A thousand processes, each of a session of its own. */
static double time_end(enum sandbox_tier tier)
{
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	const char *argv[] = {
		"sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); setsid sleep 100 & done; echo all; wait", NULL};
	struct sandbox_job job = {.tier = tier,
				  .argv = argv,
				  .owner = STR("bench"),
				  .limits = {.timeout_ms = ALIVE_MS, .processes = 1100}};
	struct sandbox_result result;
	struct err err;
	int64_t start = clock_monotonic_ns();
	int r = sandbox_run(&ctx, &job, &result, &err);
	double ms = (double)(clock_monotonic_ns() - start) / 1e6 - ALIVE_MS;

	if (r)
		fprintf(stderr, "sandbox_bench: %s\n", err.msg);
	else if (!str_is(result.out.text, "all\n"))
		fprintf(stderr, "sandbox_bench: fewer than 1,000 processes were started in time\n");
	if (r == 0)
		sandbox_result_release(&result);
	arena_destroy(arena);
	return r ? -1 : ms;
}

static void bench_end(void)
{
	static const enum sandbox_tier tiers[] = {SANDBOX_NAMESPACES, SANDBOX_BUBBLEWRAP, SANDBOX_LANDLOCK};

	for (size_t t = 0; t < COUNT(tiers); t++) {
		double times[END_ROUNDS];

		for (int i = 0; i < END_ROUNDS; i++)
			times[i] = time_end(tiers[t]);
		qsort(times, END_ROUNDS, sizeof *times, by_value);
		printf("| 1,000 processes, from the deadline until all are gone and the result is there: %s | %.1f ms "
		       "| "
		       "%.1f ms | | ≤ 100 ms |\n",
		       sandbox_tier_name(tiers[t]), times[END_ROUNDS / 2], times[0]);
	}
}

/* --- sandboxes of others --- */

#define PEER_ROUNDS 10

/* Programs from npm, in turns with ours: `own` is the median of ours without files. */
static void bench_peers(const char *bin, double own)
{
	static const char *const names[] = {"codex", "srt"};
	static const char *const titles[] = {"Codex's sandbox", "Anthropic's sandbox-runtime"};

	for (unsigned p = 0; p < COUNT(names); p++) {
		double times[PEER_ROUNDS];
		char text[100], *program;
		bool works = true;

		if (asprintf(&program, "%s/%s", bin, names[p]) < 0)
			exit(1);
		for (unsigned i = 0; works && i < PEER_ROUNDS; i++) {
			const char *codex[] = {program, "sandbox", "--", "/bin/true", NULL};
			const char *srt[] = {program, "/bin/true", NULL};

			times[i] = time_program(p == 0 ? codex : srt);
			works = times[i] > 0;
		}
		free(program);
		if (!works) {
			fprintf(stderr, "sandbox_bench: %s does not start here\n", titles[p]);
			continue;
		}
		qsort(times, PEER_ROUNDS, sizeof *times, by_value);
		snprintf(text, sizeof text, "**%.0f × ours**", times[PEER_ROUNDS / 2] / own);
		printf("| %s | %.1f ms | %.1f ms | %s | ≥ 15 × |\n", titles[p], times[PEER_ROUNDS / 2], times[0], text);
	}
}

static void add(const char **list, size_t *count, const char *option, const char *from, const char *to)
{
	list[(*count)++] = option;
	list[(*count)++] = from;
	if (to)
		list[(*count)++] = to;
}

/* The same directories, files, devices and limits as in the sandbox of a command, without its files. Left out is what
   bwrap does not do: Landlock, the filter, limits of processes and memory. */
static const char **bwrap_with_our_view(const char *top)
{
	static const char *const links[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64"};
	static const char *const made[] = {"passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf"};
	static const char *const kept[] = {"/etc/ssl",         "/etc/ca-certificates", "/etc/alternatives",
					   "/etc/ld.so.cache", "/etc/localtime",       "/etc/mime.types",
					   "/etc/fonts",       "/etc/python3",         "/etc/magic"};
	static const char *const temporary[] = {"/tmp", "/home", "/dev/shm", "/workspace"};
	static const char *list[160];
	char *path, *to;
	size_t n = 0;

	list[n++] = "bwrap";
	list[n++] = "--unshare-all";
	list[n++] = "--unshare-user";
	list[n++] = "--die-with-parent";
	add(list, &n, "--hostname", "sandbox", NULL);
	add(list, &n, "--cap-drop", "ALL", NULL);
	add(list, &n, "--ro-bind", "/usr", "/usr");
	for (size_t i = 0; i < COUNT(links); i++)
		if (asprintf(&to, "usr%s", links[i]) > 0)
			add(list, &n, "--symlink", to, links[i]);
	if (asprintf(&path, "%s/etc", top) < 0)
		exit(1);
	make_files(path, 0);
	for (size_t i = 0; i < COUNT(made); i++) {
		int fd = asprintf(&path, "%s/etc/%s", top, made[i]) < 0 || asprintf(&to, "/etc/%s", made[i]) < 0
				 ? -1
				 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		if (fd < 0 || close(fd) != 0)
			exit(1);
		add(list, &n, "--ro-bind", path, to);
	}
	for (size_t i = 0; i < COUNT(kept); i++)
		add(list, &n, "--ro-bind-try", kept[i], kept[i]);
	add(list, &n, "--dev", "/dev", NULL);
	add(list, &n, "--proc", "/proc", NULL);
	for (size_t i = 0; i < COUNT(temporary); i++) {
		add(list, &n, "--size", "1073741824", NULL);
		add(list, &n, "--tmpfs", temporary[i], NULL);
	}
	add(list, &n, "--remount-ro", "/", NULL);
	list[n++] = "/usr/bin/true";
	return list;
}

/* `many` false: the row of the large workspace, which takes longest to make, is left out. */
static void bench_start(const char *top, bool many)
{
	static const char *const plain[] = {"/bin/true", NULL};
	static double times[7][ROUNDS];
	struct place places[3] = {{0}};
	const char **bwrap = bwrap_with_our_view(top);
	char text[100];
	double base, own;

	places[1] = make_place(top, 10);
	if (many)
		places[2] = make_place(top, MANY);
	for (unsigned i = 0; i < ROUNDS; i++) {
		times[0][i] = time_program(plain);
		for (unsigned p = 0; p < (many ? 3U : 2U); p++)
			times[1 + p][i] = time_sandbox(&places[p], false);
		times[4][i] = time_program(bwrap);
		for (unsigned p = 0; p < 2; p++)
			times[5 + p][i] = time_sandbox(&places[p], true);
	}
	base = median(times[0]);
	own = median(times[1]);
	row("fork and exec of /bin/true", times[0], "", "");
	snprintf(text, sizeof text, "**+ %.2f ms**", own - base);
	row("namespaces, no files", times[1], text, "≤ + 2 ms");
	snprintf(text, sizeof text, "+ %.2f ms", median(times[2]) - base);
	row("namespaces, 10 files on disk", times[2], text, "");
	snprintf(text, sizeof text, "**%+.2f ms to 10 files**", median(times[3]) - median(times[2]));
	if (many)
		row("namespaces, 100,000 files on disk", times[3], text, "≤ 1 ms");
	snprintf(text, sizeof text, "**+ %.2f ms**", median(times[5]) - base);
	row("namespaces made in advance, no files", times[5], text, "≤ + 1 ms");
	snprintf(text, sizeof text, "+ %.2f ms", median(times[6]) - base);
	row("namespaces made in advance, 10 files on disk", times[6], text, "");
	snprintf(text, sizeof text, "**%.1f × ours**", median(times[4]) / own);
	if (median(times[4]) > 0)
		row("bubblewrap with the same view, without files", times[4], text, "≥ 2 ×");
	if (getenv("STEAD_BENCH_PEERS"))
		bench_peers(getenv("STEAD_BENCH_PEERS"), own);
}

int main(int argc, char **argv)
{
	const char *only = argc == 3 ? argv[2] : NULL;

	if (argc < 2 || argc > 3 ||
	    (only && strcmp(only, "start") != 0 && strcmp(only, "changes") != 0 && strcmp(only, "end") != 0))
		return 2;
	if (!only || strcmp(only, "start") == 0)
		bench_start(argv[1], !only);
	if (!only || strcmp(only, "changes") == 0)
		bench_changes(argv[1]);
	if (!only || strcmp(only, "end") == 0)
		bench_end();
	return 0;
}
