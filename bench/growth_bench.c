/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How single commands grow with what is in a workspace: with the number of its revisions, and with the number of files
 * in one directory; and what they cost in a fork. Each command is a process of its own; its CPU time and its largest
 * memory are those that the kernel counted. Writes the rows of tables.
 *   growth_bench STEAD DIR [SIZE]...
 * Sizes above FILES_MAX are measured for revisions alone.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "workspace/workspace.h"

#define ROUNDS    5
#define SIZES_MAX 4
#define FILES     1000 /* that the revisions are spread over */
#define FILES_MAX 100000

struct cost {
	double ms;
	long kib;
};

static const char *stead, *dir;
static char url[300], at_first[40];

static void fail(const char *what)
{
	fprintf(stderr, "growth_bench: %s\n", what);
	exit(1);
}

/* Writes `count` revisions to `files` files, without syncs. */
static void fill(const char *name, uint64_t count, uint64_t files)
{
	struct workspace_opts opts = {.store_url = str_of(url), .name = str_of(name), .create = true, .relaxed = true};
	struct arena *arena = arena_new();
	struct workspace *ws;
	struct err err;

	if (workspace_open(&opts, &ws, &err))
		fail(err.msg);
	for (uint64_t i = 0; i < count; i++) {
		struct ctx ctx = {.arena = arena};
		struct wpath path = {arena_printf(arena, "d/%06llu.md", (unsigned long long)(i % files))};

		if (store_write(workspace_files(ws), &ctx, path,
				arena_printf(arena, "text %llu\n", (unsigned long long)i), (struct store_cond){0}, NULL,
				&err))
			fail(err.msg);
		arena_reset(arena);
	}
	workspace_close(ws);
	arena_destroy(arena);
}

static struct cost run(const char *const *args)
{
	const char *argv[12] = {stead, "--store", url};
	struct rusage used;
	int status, n = 3;
	pid_t pid;

	while (*args && n < 11)
		argv[n++] = *args++;
	fflush(stdout); /* the child would write it too */
	pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execv(stead, (char *const *)argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0)
		fail(argv[3]);
	return (struct cost){(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
				     (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3,
			     used.ru_maxrss};
}

static int cost_cmp(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	return x->ms < y->ms ? -1 : x->ms > y->ms;
}

static struct cost median(const char *const *args, int rounds)
{
	struct cost all[ROUNDS];

	for (int i = 0; i < rounds; i++)
		all[i] = run(args);
	qsort(all, (size_t)rounds, sizeof(*all), cost_cmp);
	return all[rounds / 2];
}

/* A server that has made a change, and is killed. */
static void kill_server(const char *name)
{
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
		"\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"write_file\","
		"\"arguments\":{\"path\":\"d/000002.md\",\"content\":\"x\",\"mode\":\"overwrite\"}}}\n";
	int in[2], out[2], lines = 0;
	char c;
	pid_t pid = -1;

	if (pipe(in) || pipe(out) || (pid = fork()) < 0)
		fail("no pipe or process");
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(stead, stead, "--store", url, "mcp", "-w", name, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	if (write(in[1], call, sizeof(call) - 1) != (ssize_t)sizeof(call) - 1)
		fail("the server takes no input");
	while (lines < 2 && read(out[0], &c, 1) == 1)
		lines += c == '\n';
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(in[1]);
	close(out[0]);
	if (lines < 2)
		fail("the server gave no answer");
}

/* What the first command after the kill costs. */
static struct cost after_kill(const char *name)
{
	const char *args[] = {"cat", "-w", name, "d/000001.md", NULL};
	struct cost all[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		kill_server(name);
		all[i] = run(args);
	}
	qsort(all, ROUNDS, sizeof(*all), cost_cmp);
	return all[ROUNDS / 2];
}

struct row {
	const char *label;
	const char *args[8];
	bool once; /* it cannot be repeated */
};

/* One column of the tables: the rows of a workspace. */
static void measure(const char *name, const struct row *rows, size_t count, struct cost *ret)
{
	for (size_t i = 0; i < count; i++) {
		const char *args[10] = {rows[i].args[0], "-w", name};

		for (int k = 1; rows[i].args[0] && rows[i].args[k]; k++)
			args[k + 2] = rows[i].args[k];
		ret[i] = rows[i].args[0] ? median(args, rows[i].once ? 1 : ROUNDS) : after_kill(name);
	}
}

static void print(const char *of, const struct row *rows, size_t count, const uint64_t *sizes, size_t size_count,
		  struct cost cost[SIZES_MAX][16])
{
	printf("\n| %s |", of);
	for (size_t s = 0; s < size_count; s++)
		printf(" %llu |", (unsigned long long)sizes[s]);
	printf(" last / first |\n|---|");
	for (size_t s = 0; s <= size_count; s++)
		printf("---|");
	printf("\n");
	for (size_t i = 0; i < count; i++) {
		printf("| %s |", rows[i].label);
		for (size_t s = 0; s < size_count; s++)
			printf(" %.1f ms, %.1f MiB |", cost[s][i].ms, (double)cost[s][i].kib / 1024);
		printf(" **%.2f** |\n", cost[size_count - 1][i].ms / cost[0][i].ms);
	}
}

static const struct row by_revisions[] = {
	{"write", {"write", "d/000001.md", "--mode", "overwrite", "--content", "x"}, false},
	{"read", {"cat", "d/000001.md"}, false},
	{"ls", {"call", "ls", "{\"limit\":20}"}, false},
	{"history of a file", {"history", "d/000001.md", "-n", "5"}, false},
	{"read at an old revision", {"cat", at_first}, false},
	{"note", {"note", "A finding", "--content", "It was found."}, false},
	{"undo of the last call", {"undo"}, false},
	{"read after kill -9 of a server", {NULL}, false},
};

static const struct row by_files[] = {
	{"ls, first page", {"call", "ls", "{\"path\":\"d\",\"limit\":20}"}, false},
	{"read", {"cat", "d/000001.md"}, false},
	{"write", {"write", "d/000001.md", "--mode", "overwrite", "--content", "x"}, false},
	{"mv of the directory", {"mv", "d", "e"}, true},
	{"rm of the directory", {"rm", "-r", "e"}, true},
	{"undo of the rm", {"undo"}, true},
};

static const struct row by_fork[] = {
	{"grep", {"grep", "text 4242$"}, false},
	{"find", {"find", "**/004242.md"}, false},
	{"ls, first page", {"call", "ls", "{\"path\":\"d\",\"limit\":20}"}, false},
	{"read", {"cat", "d/000001.md"}, false},
};

/* The commands in a workspace and in its fork, which differ in nothing. */
static void print_fork(uint64_t size)
{
	static struct cost cost[2][16];
	size_t count = sizeof(by_fork) / sizeof(by_fork[0]);
	char name[40], forked[64];
	const char *args[] = {"fork", "-w", name, forked, NULL};

	snprintf(name, sizeof(name), "parent-%llu", (unsigned long long)size);
	snprintf(forked, sizeof(forked), "%s-fork", name);
	fill(name, size, size);
	run(args);
	measure(name, by_fork, count, cost[0]);
	measure(forked, by_fork, count, cost[1]);
	printf("\n| %llu files in one directory | workspace | fork | fork / workspace |\n|---|---|---|---|\n",
	       (unsigned long long)size);
	for (size_t i = 0; i < count; i++)
		printf("| %s | %.1f ms, %.1f MiB | %.1f ms, %.1f MiB | **%.2f** |\n", by_fork[i].label, cost[0][i].ms,
		       (double)cost[0][i].kib / 1024, cost[1][i].ms, (double)cost[1][i].kib / 1024,
		       cost[1][i].ms / cost[0][i].ms);
}

int main(int argc, char **argv)
{
	static struct cost revisions[SIZES_MAX][16], files[SIZES_MAX][16];
	uint64_t sizes[SIZES_MAX] = {1000, 10000, 100000};
	size_t count = 3, file_count = 0, rows = sizeof(by_revisions) / sizeof(by_revisions[0]);
	size_t file_rows = sizeof(by_files) / sizeof(by_files[0]);
	char name[40];

	if (argc < 3 || argc > 3 + SIZES_MAX)
		fail("usage: growth_bench STEAD DIR [SIZE]...");
	stead = argv[1];
	dir = argv[2];
	snprintf(url, sizeof(url), "disk:%s", dir);
	snprintf(at_first, sizeof(at_first), "d/000001.md@5");
	for (int i = 3; i < argc; i++)
		sizes[i - 3] = strtoull(argv[i], NULL, 10);
	count = argc > 3 ? (size_t)argc - 3 : count;
	for (size_t s = 0; s < count; s++) {
		snprintf(name, sizeof(name), "revisions-%llu", (unsigned long long)sizes[s]);
		fill(name, sizes[s], FILES);
		measure(name, by_revisions, rows, revisions[s]);
		if (sizes[s] > FILES_MAX)
			continue;
		snprintf(name, sizeof(name), "files-%llu", (unsigned long long)sizes[s]);
		fill(name, sizes[s], sizes[s]);
		measure(name, by_files, file_rows, files[s]);
		file_count = s + 1;
	}
	print("revisions in the log", by_revisions, rows, sizes, count, revisions);
	if (file_count) {
		print("files in one directory", by_files, file_rows, sizes, file_count, files);
		print_fork(sizes[0] < 10000 ? 10000 : sizes[0]);
	}
	return 0;
}
