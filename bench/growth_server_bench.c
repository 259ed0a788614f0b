/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the calls of one server grow: with the number of files in a directory, in a fork, and with the number of tasks
 * and facts. The tools are called as a server calls them, one after the other; a value is the CPU time of the process,
 * the median of ROUNDS calls. Writes the rows of tables.
 *   growth_server_bench DIR [SMALL LARGE]
 */
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "tool/tool.h"
#include "workspace/workspace.h"

#define ROUNDS 15

struct server {
	struct workspace *ws;
	struct toolset *set;
	struct arena *arena;
};

static char url[300];

static void fail(const char *what)
{
	fprintf(stderr, "growth_server_bench: %s\n", what);
	exit(1);
}

static struct server server_open(const char *name)
{
	struct workspace_opts opts = {.store_url = str_of(url), .name = str_of(name), .create = true, .relaxed = true};
	struct server s = {.arena = arena_new()};
	struct err err;

	if (workspace_open(&opts, &s.ws, &err) || toolset_new(s.ws, STR("native"), &s.set, &err))
		fail(err.msg);
	return s;
}

static void server_close(struct server *s)
{
	toolset_destroy(s->set);
	workspace_close(s->ws);
	arena_destroy(s->arena);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One call, with arguments as JSON; what it took, and a member of its result that the next call needs. */
static double call(struct server *s, const char *tool, const char *args, const char *member, char ret_member[256])
{
	struct ctx ctx = {.arena = s->arena};
	struct tool_result result;
	struct jv *value;
	double start, took;
	struct err err;

	arena_reset(s->arena);
	if (jv_parse(s->arena, str_of(args), &value, &err))
		fail(err.msg);
	start = cpu_ms();
	if (toolset_call(s->set, &ctx, str_of(tool), value, &result, &err))
		fail(err.msg);
	took = cpu_ms() - start;
	if (result.is_error) {
		fprintf(stderr, "%s %s\n", tool, args);
		fail("a call was refused");
	}
	if (member) {
		const struct jv *task = jv_get(result.value, "task");
		struct str text = jv_get_str(task ? task : result.value, member);

		snprintf(ret_member, 256, "%.*s", STR_ARG(text));
	}
	return took;
}

static int double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *all)
{
	qsort(all, ROUNDS, sizeof(*all), double_cmp);
	return all[ROUNDS / 2];
}

/* `args` is a format that may take one number, which differs from call to call. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static double timed(struct server *s, const char *tool, const char *args, int first)
{
	double all[ROUNDS];
	char text[512];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(text, sizeof(text), args, first + i);
		all[i] = call(s, tool, text, NULL, NULL);
	}
	return median(all);
}

static void fill(struct server *s, unsigned count, unsigned dirs)
{
	for (unsigned i = 0; i < count; i++) {
		struct ctx ctx = {.arena = s->arena};
		struct wpath path;
		struct err err;

		arena_reset(s->arena);
		path.s = arena_printf(s->arena, "d%u/%06u.md", i % dirs, i);
		if (store_write(workspace_files(s->ws), &ctx, path, arena_printf(s->arena, "text %u\n", i),
				(struct store_cond){0}, NULL, &err))
			fail(err.msg);
	}
}

static void print_row(const char *label, double a, double b)
{
	printf("| %s | %.3f ms | %.3f ms | **%.2f** |\n", label, a, b, b / a);
}

/* --- files in one directory --- */

enum { LS, LS_LATER, READ, WRITE, LS_CHANGED, FILE_ROWS };

static void by_files(unsigned count, double ret[FILE_ROWS])
{
	double all[ROUNDS];
	struct server s;
	char name[40], next[256], args[512];

	snprintf(name, sizeof(name), "server-%u", count);
	s = server_open(name);
	fill(&s, count, 1);
	call(&s, "ls", "{\"path\":\"d0\",\"limit\":20}", "next_cursor", next);
	ret[LS] = timed(&s, "ls", "{\"path\":\"d0\",\"limit\":20}", 0);
	snprintf(args, sizeof(args), "{\"path\":\"d0\",\"limit\":20,\"cursor\":\"%.200s\"}", next);
	for (int i = 0; i < ROUNDS; i++)
		all[i] = call(&s, "ls", args, NULL, NULL);
	ret[LS_LATER] = median(all);
	ret[READ] = timed(&s, "read_file", "{\"path\":\"d0/%06d.md\"}", 100);
	ret[WRITE] = timed(&s, "write_file", "{\"path\":\"d0/%06d.md\",\"content\":\"x\",\"mode\":\"overwrite\"}", 100);
	for (int i = 0; i < ROUNDS; i++) {
		snprintf(args, sizeof(args), "{\"path\":\"d0/new%d.md\",\"content\":\"x\"}", i);
		call(&s, "write_file", args, NULL, NULL);
		all[i] = call(&s, "ls", "{\"path\":\"d0\",\"limit\":20}", NULL, NULL);
	}
	ret[LS_CHANGED] = median(all);
	server_close(&s);
}

static void print_files(unsigned small, unsigned large)
{
	static const char *const labels[FILE_ROWS] = {"ls, first page", "ls, a later page", "read", "write",
						      "ls, first page, after a change in the directory"};
	double a[FILE_ROWS], b[FILE_ROWS];

	by_files(small, a);
	by_files(large, b);
	printf("\nOne server, calls one after the other, medians of %d:\n\n", ROUNDS);
	printf("| files in one directory | %u | %u | last / first |\n|---|---|---|---|\n", small, large);
	for (int i = 0; i < FILE_ROWS; i++)
		print_row(labels[i], a[i], b[i]);
}

/* --- a fork --- */

static void print_fork(unsigned count, unsigned dirs, const char *where)
{
	static const struct {
		const char *label, *tool, *args;
	} rows[] = {
		{"grep", "grep", "{\"pattern\":\"text 4242$\"}"},
		{"glob", "glob", "{\"pattern\":\"**/*4242.md\"}"},
		{"ls, first page", "ls", "{\"path\":\"d0\",\"limit\":20}"},
	};
	char name[40], forked[64], args[128], label[80];
	struct server parent, fork;

	snprintf(name, sizeof(name), "family-%u", dirs);
	snprintf(forked, sizeof(forked), "%s-fork", name);
	parent = server_open(name);
	fill(&parent, count, dirs);
	snprintf(args, sizeof(args), "{\"name\":\"%s\"}", forked);
	call(&parent, "fork", args, NULL, NULL);
	fork = server_open(forked);
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(label, sizeof(label), "%s, in %s", rows[i].label, where);
		print_row(label, timed(&parent, rows[i].tool, rows[i].args, 0),
			  timed(&fork, rows[i].tool, rows[i].args, 0));
	}
	server_close(&fork);
	server_close(&parent);
}

/* --- one more of something --- */

/* What can be made, and looked for; `id` is the member of the answer that a task is looked for by. */
struct kind {
	const char *label, *make, *make_args, *id, *find, *find_args;
};

static const struct kind kinds[] = {
	{"task: create, get", "create_task", "{\"description\":\"Task number %d\"}", "id", "get_task", NULL},
	{"fact: save, search for one", "memory_save", "{\"content\":\"Fact number%d is known.\"}", NULL,
	 "memory_search", "{\"query\":\"number%d\"}"},
};

/* Makes `count` of them, then once more, and then looks for one. */
static void by_count(const struct kind *k, unsigned count, double *ret_make, double *ret_find)
{
	char space[64], args[512], id[256] = "";
	struct server s;

	snprintf(space, sizeof(space), "%s-%u", k->find, count);
	for (char *c = space; *c; c++)
		*c = *c == '_' ? '-' : *c;
	s = server_open(space);
	for (unsigned i = 0; i < count; i++) {
		snprintf(args, sizeof(args), k->make_args, i);
		call(&s, k->make, args, i == count / 2 ? k->id : NULL, id);
	}
	*ret_make = timed(&s, k->make, k->make_args, (int)count);
	snprintf(args, sizeof(args), "{\"task_id\":\"%.200s\"}", id);
	*ret_find = timed(&s, k->find, k->find_args ? k->find_args : args, 50);
	server_close(&s);
}

static void print_counts(unsigned small, unsigned large)
{
	printf("\n| one more, or one looked up | among %u | among %u | last / first |\n|---|---|---|---|\n", small,
	       large);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		double make[2], find[2];

		by_count(&kinds[i], small, &make[0], &find[0]);
		by_count(&kinds[i], large, &make[1], &find[1]);
		printf("| %s | %.2f, %.2f ms | %.2f, %.2f ms | **%.2f, %.2f** |\n", kinds[i].label, make[0], find[0],
		       make[1], find[1], make[1] / make[0], find[1] / find[0]);
	}
}

int main(int argc, char **argv)
{
	unsigned small = 1000, large = 100000;

	if (argc != 2 && argc != 4)
		fail("usage: growth_server_bench DIR [SMALL LARGE]");
	if (argc == 4) {
		small = (unsigned)strtoul(argv[2], NULL, 10);
		large = (unsigned)strtoul(argv[3], NULL, 10);
	}
	snprintf(url, sizeof(url), "disk:%s", argv[1]);
	print_files(small, large);
	printf("\n| %u files, one server | workspace | fork | fork / workspace |\n|---|---|---|---|\n", large / 10);
	print_fork(large / 10, 100, "100 directories");
	print_fork(large / 10, 1, "one directory");
	print_counts(small / 10, large / 10);
	return 0;
}
