/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a prompt costs per turn: prompt_bench DIR. Makes a home of a megabyte (identity, memory, knowledge, 80 skills,
 * 20 subagents, ledgers, tasks, notes), and measures in turns, medians of many: reading all of these files through the
 * store and nothing else; making the prompt of a workspace that was just opened; the next turn when nothing has
 * changed; and when one file has.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "home/notebook/notebook.h"
#include "home/prompt/prompt.h"

#define ROUNDS 301

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "prompt_bench: %s\n", err->msg);
		exit(1);
	}
}

static int cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median(int64_t times[ROUNDS])
{
	qsort(times, ROUNDS, sizeof(times[0]), cmp);
	return (double)times[ROUNDS / 2] / 1000;
}

static struct workspace *open_at(const char *dir)
{
	struct workspace_opts opts = {.store_url = str_of(dir), .name = STR("bench"), .create = true, .relaxed = true};
	struct workspace *ws;
	struct err err = {0};

	must(workspace_open(&opts, &ws, &err), &err);
	return ws;
}

/* --- the home --- */

static void put(struct workspace *ws, struct arena *arena, struct str path, const char *head, size_t size, unsigned n)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct buf b;

	buf_init(&b, arena, 4 * MIB);
	buf_add(&b, str_of(head));
	for (unsigned line = 0; b.len < size; line++)
		buf_printf(&b, "- Line %u of text %u: what was agreed with the people of the second floor on <date>.\n",
			   line, n);
	must(store_write(workspace_home(ws), &ctx, (struct wpath){path}, buf_str(&b), (struct store_cond){0}, NULL,
			 &err),
	     &err);
}

static void put_tasks(struct workspace *ws, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct buf b;

	buf_init(&b, arena, MIB);
	buf_lit(&b, "tasks:\n");
	for (unsigned i = 0; i < 150; i++)
		buf_printf(&b,
			   "  - id: %08x-0000-4000-8000-000000000000\n    description: Task number %u\n    status: "
			   "pending\n",
			   i * 2654435761U, i);
	must(store_write(workspace_home(ws), &ctx, (struct wpath){STR("TASKS.yaml")}, buf_str(&b),
			 (struct store_cond){0}, NULL, &err),
	     &err);
}

static void make_home(struct workspace *ws, struct arena *arena)
{
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct note note;

	put(ws, arena, STR("AGENTS.md"), "# What you do\n", 20 * KIB, 0);
	put(ws, arena, STR("SOUL.md"), "# Character\n", 4 * KIB, 1);
	put(ws, arena, STR("USER.md"), "# People\n", 4 * KIB, 2);
	put(ws, arena, STR("HEARTBEAT.md"), "# Heartbeat\n", 2 * KIB, 3);
	put(ws, arena, STR("MEMORY.md"), "# Memory\n", 200 * KIB, 4);
	put(ws, arena, STR("knowledge/KNOWLEDGE.md"), "# Knowledge\n", 100 * KIB, 5);
	for (int back = 0; back < 2; back++) {
		int64_t day = clock_real_ns() - back * INT64_C(86400000000000);

		put(ws, arena, arena_printf(arena, "memory/%.10s.md", clock_format_utc(arena, day).ptr), "", 30 * KIB,
		    6);
	}
	for (unsigned i = 0; i < 80; i++)
		put(ws, arena, arena_printf(arena, "skills/skill-%u/SKILL.md", i),
		    arena_printf(arena, "---\nname: skill-%u\ndescription: How the thing number %u is done.\n---\n", i,
				 i)
			    .ptr,
		    6 * KIB, i);
	for (unsigned i = 0; i < 20; i++)
		put(ws, arena, arena_printf(arena, "subagents/agent-%u.md", i),
		    arena_printf(arena, "---\ndescription: Looks after the matter number %u.\n---\n", i).ptr, 6 * KIB,
		    i);
	put_tasks(ws, arena);
	for (unsigned i = 0; i < 20; i++) {
		struct note_new in = {.title = arena_printf(arena, "Note %u", i), .body = STR("It was decided.")};

		must(notebook_add(workspace_notebook(ws), &ctx, &in, &note, &err), &err);
	}
	arena_reset(arena);
}

/* --- what is measured --- */

static int64_t read_all(struct workspace *ws, struct arena *arena, uint64_t *ret_bytes, uint64_t *ret_files)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct ctx ctx = {.arena = arena};
	int64_t from = clock_monotonic_ns();
	struct store_page page;
	struct err err = {0};
	struct str bytes;

	*ret_bytes = *ret_files = 0;
	must(store_list(workspace_home(ws), &ctx, WPATH_ROOT, &req, &page, &err), &err);
	for (size_t i = 0; i < page.count; i++) {
		if (str_starts(page.entries[i].path.s, STR(".stead")))
			continue;
		must(store_read(workspace_home(ws), &ctx, page.entries[i].path, STORE_WHOLE, 4 * MIB, &bytes, NULL,
				&err),
		     &err);
		*ret_bytes += bytes.len;
		*ret_files += 1;
	}
	from = clock_monotonic_ns() - from;
	arena_reset(arena);
	return from;
}

static int64_t assemble(struct workspace *ws, struct arena *arena, uint64_t *ret_read, uint64_t *ret_tokens)
{
	struct prompt_opts opts = {0};
	struct ctx ctx = {.arena = arena};
	int64_t from = clock_monotonic_ns();
	struct prompt prompt;
	struct err err = {0};

	must(prompt_assemble(ws, &ctx, &opts, &prompt, &err), &err);
	from = clock_monotonic_ns() - from;
	*ret_read = prompt.files_read;
	*ret_tokens = prompt.tokens;
	arena_reset(arena);
	return from;
}

int main(int argc, char **argv)
{
	static int64_t all[ROUNDS], fresh[ROUNDS], same[ROUNDS], one[ROUNDS];
	struct arena *arena = arena_new();
	uint64_t bytes = 0, files = 0, read = 0, tokens = 0, first_read = 0;
	struct workspace *ws;
	double plain;

	if (argc < 2) {
		fprintf(stderr, "usage: prompt_bench DIR\n");
		return 2;
	}
	ws = open_at(argv[1]);
	make_home(ws, arena);
	assemble(ws, arena, &read, &tokens);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct workspace *other = open_at(argv[1]);

		all[i] = read_all(ws, arena, &bytes, &files);
		fresh[i] = assemble(other, arena, &first_read, &tokens);
		workspace_close(other);
		assemble(ws, arena, &read, &tokens);
		same[i] = assemble(ws, arena, &read, &tokens);
		if (read)
			fprintf(stderr, "prompt_bench: %llu files were read although nothing had changed\n",
				(unsigned long long)read);
		put(ws, arena, arena_printf(arena, "skills/skill-%u/SKILL.md", i % 80),
		    arena_printf(arena, "---\nname: skill-%u\ndescription: Now it is done in the way %u.\n---\n",
				 i % 80, i)
			    .ptr,
		    6 * KIB, i);
		one[i] = assemble(ws, arena, &read, &tokens);
	}
	plain = median(all);
	printf("| reading %llu files, %.2f MiB | %.0f us | | |\n", (unsigned long long)files,
	       (double)bytes / (double)MIB, plain);
	printf("| the first prompt of an open workspace: %llu files read, %llu tokens | %.0f us | %.3f | |\n",
	       (unsigned long long)first_read, (unsigned long long)tokens, median(fresh), median(fresh) / plain);
	printf("| the next turn, nothing changed | %.1f us | **%.4f** | ≤ 0.02 |\n", median(same),
	       median(same) / plain);
	printf("| the next turn, one file changed (%llu read) | %.0f us | **%.3f** | ≤ 0.2 |\n",
	       (unsigned long long)read, median(one), median(one) / plain);
	workspace_close(ws);
	arena_destroy(arena);
	return 0;
}
