/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to start a command in the sandbox, as rows of a table: sandbox_bench DIRECTORY. Each round runs all
 * candidates one after another, so that other load on the machine meets all of them.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/sandbox.h"
#include "store/stores.h"

#define ROUNDS 60
#define MANY   100000

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

static double time_sandbox(const struct place *place)
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
	int64_t start = clock_monotonic_ns();
	int r = sandbox_run(&ctx, &job, &result, &err);
	double ms = (double)(clock_monotonic_ns() - start) / 1e6;

	if (r)
		fprintf(stderr, "sandbox_bench: %s\n", err.msg);
	else
		sandbox_result_release(&result);
	arena_destroy(arena);
	return r ? -1 : ms;
}

static struct place make_place(const char *top, unsigned files)
{
	char *dir, path[600];
	struct store *store;
	struct err err;

	if (asprintf(&dir, "%s/%u", top, files) < 0 || mkdir(dir, 0755) != 0)
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
	if (store_disk_open(dir, &(struct store_disk_opts){.relaxed = true}, &store, &err) != 0)
		exit(1);
	return (struct place){store, dir};
}

int main(int argc, char **argv)
{
	static const char *const plain[] = {"/bin/true", NULL};
	static const char *const bwrap[] = {"bwrap",     "--unshare-all", "--ro-bind",     "/usr",      "/usr",
					    "--symlink", "usr/lib",       "/lib",          "--symlink", "usr/lib64",
					    "/lib64",    "--proc",        "/proc",         "--dev",     "/dev",
					    "--tmpfs",   "/tmp",          "/usr/bin/true", NULL};
	static double times[5][ROUNDS];
	struct place places[3] = {{0}};
	char text[100];
	double base, own;

	if (argc != 2)
		return 2;
	places[1] = make_place(argv[1], 10);
	places[2] = make_place(argv[1], MANY);
	for (unsigned i = 0; i < ROUNDS; i++) {
		times[0][i] = time_program(plain);
		for (unsigned p = 0; p < 3; p++)
			times[1 + p][i] = time_sandbox(&places[p]);
		times[4][i] = time_program(bwrap);
	}
	base = median(times[0]);
	own = median(times[1]);
	row("fork and exec of /bin/true", times[0], "", "");
	snprintf(text, sizeof text, "**+ %.2f ms**", own - base);
	row("namespaces, no files", times[1], text, "≤ + 2 ms");
	snprintf(text, sizeof text, "+ %.2f ms", median(times[2]) - base);
	row("namespaces, 10 files on disk", times[2], text, "");
	snprintf(text, sizeof text, "**%+.2f ms to 10 files**", median(times[3]) - median(times[2]));
	row("namespaces, 100,000 files on disk", times[3], text, "≤ 1 ms");
	snprintf(text, sizeof text, "**%.1f × ours**", median(times[4]) / own);
	if (median(times[4]) > 0)
		row("bubblewrap, the same view without files", times[4], text, "≥ 2 ×");
	return 0;
}
