/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many runs with three MCP servers in one process: nothing of a run is left when it has ended. STEAD_RUNS is their
 * number.
 *
 * The log of a workspace keeps the records of its last changes in memory, some thousand, and then drops them all: the
 * heap rises and falls, whoever makes the changes. What stays is the least that is seen while ROUND changes are made,
 * which is right after such a drop; so both counts are taken at the same point, and can be compared closely.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_fix.h"

#define ROUND     5000                /* changes: more than twice as many as the log keeps */
#define HEAP_MORE ((size_t)24 * 1024) /* for caches of a fixed size, which fill over the runs */

struct count {
	size_t processes, descriptors, heap;
};

static size_t count_files(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Processes whose parent is this one, ended or not. */
static size_t count_children(void)
{
	DIR *dir = opendir("/proc");
	size_t n = 0;

	CHECK(dir != NULL);
	for (struct dirent *e; (e = readdir(dir));) {
		char path[300], text[512];
		FILE *f;
		long parent = 0;
		char *end;

		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		end = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		fclose(f);
		if (end)
			parent = strtol(end + 4, NULL, 10);
		n += parent == (long)getpid();
	}
	closedir(dir);
	return n;
}

static size_t heap_size(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The least heap of a round of changes. */
static size_t count_heap(struct bench *b)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	size_t least = SIZE_MAX;

	for (int i = 0; i < ROUND; i++) {
		struct str text = i % 2 ? STR("odd") : STR("even");
		struct err err;
		size_t now;

		CHECK_OK(store_write(workspace_home(b->ws), &ctx, (struct wpath){STR("files/round.md")}, text,
				     (struct store_cond){0}, NULL, &err),
			 err);
		arena_reset(arena);
		now = heap_size();
		least = now < least ? now : least;
	}
	return least;
}

static struct count count_all(struct bench *b)
{
	arena_give_back();
	return (struct count){count_children(), count_files("/proc/self/fd"), count_heap(b)};
}

static void run_once(struct bench *b, struct str model, size_t number)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct agent_opts opts = {.model = model};
	struct agent_turn turn = {.text = STR("Go"), .session = arena_printf(arena, "s%zu", number)};
	struct agent_result result;
	struct agent *agent;
	struct err err;

	CHECK_OK(agent_open(b->ws, &opts, &agent, &err), err);
	CHECK_OK(agent_run(agent, &ctx, &turn, &result, &err), err);
	CHECK_INT((int)count_children(), 3); /* they are there while the agent is */
	agent_close(agent);
	for (const struct jv_member *m = jv_first(jv_get(jv_at(result.steps, 0), "calls")); m; m = m->next)
		CHECK(!jv_get_bool(m->value, "is_error", false));
}

TEST(after_many_runs_there_are_no_more_processes_descriptors_and_memory_than_after_the_first)
{
	static const char *const answers[] = {
		"[" CALL("1", "a__ls", "{}") "," CALL("2", "b__ls", "{}") "," CALL("3", "c__ls", "{}") "]", "'done'",
		NULL};
	const char *runs = getenv("STEAD_RUNS"), *program = getenv("STEAD_PROGRAM");
	size_t most = runs ? strtoul(runs, NULL, 10) : 24;
	struct count first = {0}, last;
	struct bench b;
	struct err err;
	struct str model;
	struct buf text;

	CHECK(program != NULL);
	bench_open_disk(&b, "");
	buf_init(&text, b.arena, (size_t)64 * 1024);
	buf_lit(&text, "{\"mcpServers\": {");
	for (int name = 'a'; name <= 'c'; name++)
		buf_printf(&text,
			   "\"%c\": {\"command\": \"%s\", \"args\": [\"mcp\", \"--files\", \"%s\", \"--store\", "
			   "\"disk:%s\"]}%s",
			   name, program, temp_dir_new(), temp_dir_new(), name < 'c' ? "," : "}}");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("tools.json")}, buf_str(&text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(&b, (struct workspace_opts){0}, "");
	model = recording(b.arena, answers);
	for (size_t i = 0; i < most; i++) {
		run_once(&b, model, i);
		if (i == 5) /* so that the runs after it find a log that has dropped records once */
			count_heap(&b);
		if (i == 11) /* what is made once is there */
			first = count_all(&b);
	}
	last = count_all(&b);
	printf("# %zu runs: %zu processes, %zu descriptors, %zu KiB of heap; after the first twelve: %zu, %zu, %zu\n",
	       most, last.processes, last.descriptors, last.heap / 1024, first.processes, first.descriptors,
	       first.heap / 1024);
	CHECK_INT((int)last.processes, (int)first.processes);
	CHECK(last.descriptors <= first.descriptors + 1); /* one may be in use by the log at the moment */
	CHECK(last.heap <= first.heap + HEAP_MORE);
}
