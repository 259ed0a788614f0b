/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a prompt, in their order and each whole: from files that were read, and from what sections make. */
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

static struct prompt_part *add_part(struct arena *arena, struct prompt_parts *parts, const struct prompt_section *s)
{
	if (parts->count == parts->cap) {
		size_t cap = parts->cap ? parts->cap * 2 : 32;

		parts->at = arena_grow(arena, parts->at, parts->cap * sizeof *parts->at, cap * sizeof *parts->at);
		parts->cap = cap;
	}
	parts->at[parts->count] = (struct prompt_part){.section = s};
	return &parts->at[parts->count++];
}

static void add_item(struct arena *arena, struct prompt_part *p, struct str line, uint64_t cost)
{
	if (p->item_count == p->item_cap) {
		size_t cap = p->item_cap ? p->item_cap * 2 : 32;

		p->items = arena_grow(arena, p->items, p->item_cap * sizeof *p->items, cap * sizeof *p->items);
		p->item_cap = cap;
	}
	p->items[p->item_count++] = line;
	p->cost += cost;
	p->bytes += line.len;
}

/* The text of a part, or more lines of a list. */
static void add_text(struct arena *arena, struct prompt_part *p, struct str text, uint64_t cost)
{
	struct str line;

	if (p->section->form != PROMPT_LIST) {
		p->text = text;
		p->cost = cost;
		p->bytes = text.len;
		return;
	}
	for (size_t all = text.len; text.len; text = str_from(text, line.len)) {
		line = str_first(text, str_find_char(text, '\n') + 1);
		add_item(arena, p, line, line.len == all ? cost : prompt_cost(line));
	}
}

static void add_problem(struct arena *arena, struct prompt_parts *parts, struct str path, struct str why)
{
	if (parts->problem_count == parts->problem_cap) {
		size_t cap = parts->problem_cap ? parts->problem_cap * 2 : 8;

		parts->problems = arena_grow(arena, parts->problems, parts->problem_cap * sizeof(struct str),
					     cap * sizeof(struct str));
		parts->problem_cap = cap;
	}
	parts->problems[parts->problem_count++] = arena_printf(arena, "%.*s: %.*s", STR_ARG(path), STR_ARG(why));
}

/* The first few, then how many more. */
static void add_source(struct arena *arena, struct prompt_part *p, const char *path, size_t index, size_t all)
{
	if (index == 0)
		p->sources = arena_str(arena, str_of(path));
	else if (index < 3)
		p->sources = arena_printf(arena, "%.*s, %s", STR_ARG(p->sources), path);
	else if (index + 1 == all)
		p->sources = arena_printf(arena, "%.*s and %zu more", STR_ARG(p->sources), all - 3);
}

/* The files of one section, which begin at `from`. Returns where those of the next begin. */
static size_t add_files(struct arena *arena, struct prompt_parts *parts, const struct prompt_section_state *s,
			size_t from)
{
	const struct prompt_files *files = parts->files;
	size_t section = (size_t)(s - files->sections), end = from, all = 0, n = 0;
	struct prompt_part *part = NULL;

	for (; end < files->count && files->at[end]->section == section; end++)
		all += files->at[end]->len > 0;
	for (size_t i = from; i < end; i++) {
		const struct prompt_file *f = files->at[i];

		if (f->problem)
			add_problem(arena, parts, str_of(f->path), str_of(f->problem));
		if (!f->len)
			continue;
		if (!part || s->section->form != PROMPT_LIST)
			part = add_part(arena, parts, s->section);
		add_text(arena, part, (struct str){f->text, f->len}, f->cost);
		if (s->section->form == PROMPT_LIST) {
			add_source(arena, part, f->path, n++, all);
		} else {
			part->source = part->sources = arena_str(arena, str_of(f->path));
			part->bytes = f->bytes;
		}
	}
	if (part)
		part->more = s->more;
	return end;
}

void prompt_add_problem(struct prompt_made *made, struct str path, struct str why)
{
	add_problem(made->ctx->arena, made->parts, path, why);
}

static int add_made(struct workspace *ws, struct ctx *ctx, struct prompt_parts *parts, const struct prompt_section *s,
		    struct err *err)
{
	struct prompt_made made = {.ws = ws, .ctx = ctx, .parts = parts};
	struct prompt_part *part;
	int r;

	buf_init(&made.text, ctx->arena, MIB);
	r = s->make(&made, err);
	if (r || !made.text.len)
		return r;
	part = add_part(ctx->arena, parts, s);
	add_text(ctx->arena, part, buf_str(&made.text), prompt_cost(buf_str(&made.text)));
	part->sources = made.sources;
	part->more = made.more;
	return 0;
}

int prompt_parts_make(struct workspace *ws, struct ctx *ctx, const struct prompt_files *files, struct prompt_parts *ret,
		      struct err *err)
{
	struct prompt_parts parts = {.files = files};
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->section_count; i++) {
		const struct prompt_section_state *s = &files->sections[i];

		if (s->section->make)
			r = add_made(ws, ctx, &parts, s->section, err);
		else
			at = add_files(ctx->arena, &parts, s, at);
	}
	if (r == 0)
		*ret = parts;
	return r;
}
