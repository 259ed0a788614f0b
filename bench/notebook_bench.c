/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a note in an empty notebook and in a large one: notebook_bench DIR [NOTES]. Fills a notebook with sync
 * off, through the same calls that the tools make, and prints the median of 200 writes at its beginning and at its end,
 * a read by slug and by title, a page of the list, and the first look of a process that knows nothing yet.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "home/notebook/notebook.h"

#define SAMPLE 200

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "notebook_bench: %s\n", err->msg);
		exit(1);
	}
}

static int cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static struct workspace *open_at(const char *dir, const char *agent)
{
	struct workspace_opts opts = {.store_url = str_of(dir), .name = STR("bench"), .create = true, .relaxed = true};
	struct workspace *ws;
	struct err err = {0};

	opts.agent = str_of(agent);
	must(workspace_open(&opts, &ws, &err), &err);
	return ws;
}

/* Median of SAMPLE writes in microseconds; `number` continues. */
static double write_some(struct notebook *nb, struct arena *arena, long *number, long count)
{
	int64_t times[SAMPLE];
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct note n;

	for (long i = 0; i < count; i++) {
		struct note_new in = {
			.body = STR("The API allows ten calls a second, and more with a key. Ask before.")};
		int64_t from;

		arena_reset(arena);
		in.title = arena_printf(arena, "Note number %ld about limits", ++*number);
		from = clock_monotonic_ns();
		must(notebook_add(nb, &ctx, &in, &n, &err), &err);
		times[i % SAMPLE] = clock_monotonic_ns() - from;
	}
	qsort(times, SAMPLE, sizeof(times[0]), cmp);
	return (double)times[SAMPLE / 2] / 1000;
}

static double list_once(struct notebook *nb, struct arena *arena, uint64_t *ret_total)
{
	struct ctx ctx = {.arena = arena};
	struct note_query query = {0};
	int64_t from = clock_monotonic_ns();
	struct note_list list;
	struct err err = {0};

	must(notebook_list(nb, &ctx, &query, &list, &err), &err);
	*ret_total = list.total;
	return (double)(clock_monotonic_ns() - from) / 1000;
}

static double read_once(struct notebook *nb, struct arena *arena, const char *ref)
{
	struct ctx ctx = {.arena = arena};
	int64_t from = clock_monotonic_ns();
	struct err err = {0};
	struct note n;

	must(notebook_read(nb, &ctx, str_of(ref), &n, &err), &err);
	return (double)(clock_monotonic_ns() - from) / 1000;
}

int main(int argc, char **argv)
{
	long notes = argc > 2 ? strtol(argv[2], NULL, 10) : 100000, number = 0;
	struct arena *arena = arena_new();
	struct workspace *ws;
	uint64_t total;
	double first, last;

	if (argc < 2 || notes < 2 * SAMPLE) {
		fprintf(stderr, "usage: notebook_bench DIR [NOTES]\n");
		return 2;
	}
	ws = open_at(argv[1], "ann");
	first = write_some(workspace_notebook(ws), arena, &number, SAMPLE);
	write_some(workspace_notebook(ws), arena, &number, notes - 2 * SAMPLE);
	last = write_some(workspace_notebook(ws), arena, &number, SAMPLE);
	printf("a note when there are none: %.0f us; when there are %ld: %.0f us (%.2f x)\n", first, number, last,
	       last / first);
	workspace_close(ws);
	ws = open_at(argv[1], "bob");
	printf("by a process that knows nothing yet: a note %.0f us (median), ",
	       write_some(workspace_notebook(ws), arena, &number, SAMPLE));
	printf("a read by slug %.0f us\n", read_once(workspace_notebook(ws), arena, "001-note-number-1-about-limits"));
	printf("its first list %.0f us, ", list_once(workspace_notebook(ws), arena, &total));
	write_some(workspace_notebook(ws), arena, &number, SAMPLE);
	printf("after %d more notes %.0f us, ", SAMPLE, list_once(workspace_notebook(ws), arena, &total));
	printf("again %.0f us (%llu notes)\n", list_once(workspace_notebook(ws), arena, &total),
	       (unsigned long long)total);
	printf("by slug %.0f us, by part of a title %.0f us\n",
	       read_once(workspace_notebook(ws), arena, "001-note-number-1-about-limits"),
	       read_once(workspace_notebook(ws), arena, "number 77 about"));
	workspace_close(ws);
	arena_destroy(arena);
	return 0;
}
