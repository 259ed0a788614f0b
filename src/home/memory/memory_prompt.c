/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the prompt: MEMORY.md, and of the ledgers of yesterday and today what it does not have. Only facts that
 * hold now are shown, so these files are read again on each day.
 */
#include "base/clock.h"
#include "base/strmap.h"
#include "home/memory/memory_internal.h"

static int find_ledgers(struct prompt_find *find, struct err *err)
{
	struct arena *arena = find->ctx->arena;
	int r = 0;

	for (int back = 1; r == 0 && back >= 0; back--) {
		struct str day = memory_day(arena, find->ws, back);

		r = prompt_find_file(find, arena_printf(arena, "memory/%.*s.md", STR_ARG(day)), err);
	}
	return r;
}

/* Facts that hold, without their provenance except for the one thing a reader must know; other text as it is. Those in
   `known` (may be NULL) are left out. */
static void add_facts(struct ctx *ctx, struct str bytes, struct strmap *known, struct buf *text)
{
	struct parts parts = {0};
	int64_t now = clock_real_ns();

	memory_parse(ctx->arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		const struct part *p = &parts.list[i];

		if (!p->is_fact) {
			prompt_escape(text, p->raw);
			continue;
		}
		if (!memory_holds(&p->fact, now) || (known && strmap_find(known, p->fact.id)))
			continue;
		buf_lit(text, "- ");
		if (p->fact.trust == TRUST_OUTSIDE)
			buf_lit(text, "(from outside, not checked) ");
		for (struct str rest = p->fact.text, line; str_cut(&rest, '\n', &line);) {
			prompt_escape(text, line);
			buf_add(text, rest.len ? STR("\n  ") : STR("\n"));
		}
	}
}

static int read_memory(struct prompt_read *read, struct buf *text, struct err *err)
{
	(void)err;
	add_facts(read->ctx, read->bytes, NULL, text);
	return 0;
}

/* Ids of the facts that MEMORY.md has. */
static struct strmap *known_facts(struct workspace *ws, struct ctx *ctx)
{
	struct strmap *known = strmap_new(ctx->arena);
	struct parts memory = {0};
	struct err ignored;
	struct str text;

	if (memory_read(ws, ctx, STR(MEMORY_PATH), &text, NULL, &ignored) == 0)
		memory_parse(ctx->arena, text, &memory);
	for (size_t i = 0; i < memory.count; i++)
		if (memory.list[i].is_fact)
			strmap_put(known, memory.list[i].fact.id, NULL);
	return known;
}

static int read_ledger(struct prompt_read *read, struct buf *text, struct err *err)
{
	(void)err;
	if (!read->shared)
		read->shared = known_facts(read->ws, read->ctx);
	add_facts(read->ctx, read->bytes, read->shared, text);
	return 0;
}

static void advise(struct workspace *ws, struct buf *text)
{
	(void)ws;
	buf_lit(text, "What must be remembered goes into memory with memory_save; memory_search finds it again. "
		      "Never write MEMORY.md or memory/ as files.\n");
}

const struct prompt_section memory_sections[] = {
	{"memory", PROMPT_LASTING, 20, PROMPT_LEDGER, 50, 1, .rest = "memory_search finds them", .file = MEMORY_PATH,
	 .read = read_memory, .advise = advise},
	{"recent_memory", PROMPT_WORKING, 20, PROMPT_LEDGER, 20, 2, .rest = "memory_search finds them",
	 .find = find_ledgers, .read = read_ledger, .reads_also = "memory"},
	{0},
};
