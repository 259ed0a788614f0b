/* SPDX-License-Identifier: Apache-2.0 */
/* One workspace asked for prompts by several threads, of several sessions, while files change. */
#include <pthread.h>

#include "home/notebook/notebook_fix.h"

#include "home/plans/plans.h"
#include "home/prompt/prompt.h"

#define THREADS 4
#define TURNS   60

struct worker {
	struct workspace *ws;
	int number;
	int bad; /* prompts that were not this session's, or not whole */
};

static bool is_right(const struct worker *w, struct arena *arena, struct str text)
{
	struct str mine = arena_printf(arena, "The plan of %d.\n", w->number);

	return str_find(text, mine, 0) != SIZE_MAX && str_starts(text, STR("<identity ")) &&
	       str_ends(text, STR("</session>\n"));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct prompt_opts opts = {0};

	for (int turn = 0; turn < TURNS; turn++) {
		struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct prompt p;
		struct err err = {0};
		struct jv *ret;

		ctx.actor.session = arena_printf(arena, "s%d", w->number);
		if (turn == 0)
			w->bad += plan_write(w->ws, &ctx, arena_printf(arena, "The plan of %d.\n", w->number), &ret,
					     &err) != 0;
		w->bad += prompt_assemble(w->ws, &ctx, &opts, &p, &err) != 0 || !is_right(w, arena, p.text);
		arena_destroy(arena);
	}
	return NULL;
}

TEST(sessions_that_share_a_workspace_get_their_own_prompts)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct desk d;
	char url[80];

	disk_new(url);
	desk_open(&d, url, "clerk", "");
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.ws = d.ws, .number = i};
		CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < TURNS; i++)
		put_file(&d, "MEMORY.md", arena_printf(d.arena, "- fact %d\n", i));
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(workers[i].bad, 0);
	desk_close(&d);
}
