/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a prompt, in their order and each whole: from files that were read, and from what sections make. */
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

static struct prompt_part *add_part(struct arena *arena, struct prompt_parts *parts, const struct prompt_section *s,
				    struct str text, uint64_t cost)
{
	struct str rest = offered_lines(arena, parts->set, str_of(s->rest));

	parts->at[parts->count] = (struct prompt_part){.section = s,
						       .text = text,
						       .about = offered_lines(arena, parts->set, str_of(s->about)),
						       .rest = str_first(rest, str_find_char(rest, '\n')),
						       .cost = cost,
						       .bytes = text.len};
	return &parts->at[parts->count++];
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

static int by_key(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The lines of all items, in the order of their keys and without them. */
static struct str sort_items(struct arena *arena, struct str text)
{
	struct str *lines, line;
	size_t count = 0;
	struct buf out;

	lines = ARENA_ARRAY(arena, struct str, prompt_count_lines(text) + 1);
	for (struct str rest = text; str_cut(&rest, '\n', &line);)
		if (line.len)
			lines[count++] = line;
	qsort(lines, count, sizeof *lines, by_key);
	buf_init(&out, arena, text.len + 1);
	for (size_t i = 0; i < count; i++) {
		buf_add(&out, prompt_item(lines[i]));
		buf_char(&out, '\n');
	}
	return buf_str(&out);
}

/* The items of all files as one part. */
static void add_list(struct arena *arena, struct prompt_parts *parts, const struct prompt_section_state *s,
		     struct prompt_file *const *files, size_t count)
{
	size_t all = 0, n = 0, len = 0;
	struct prompt_part *part;
	struct buf text;

	for (size_t i = 0; i < count; i++) {
		all += files[i]->len > 0;
		len += files[i]->len;
	}
	if (!all)
		return;
	buf_init(&text, arena, len + 1);
	part = add_part(arena, parts, s->section, STR(""), 0);
	for (size_t i = 0; i < count; i++) {
		buf_add(&text, (struct str){files[i]->text, files[i]->len});
		part->cost += files[i]->cost;
		if (files[i]->len)
			add_source(arena, part, files[i]->path, n++, all);
	}
	part->text = s->section->form == PROMPT_SORTED ? sort_items(arena, buf_str(&text)) : buf_str(&text);
	part->bytes = part->text.len;
	part->more = s->more;
}

static void add_file(struct arena *arena, struct prompt_parts *parts, const struct prompt_section_state *s,
		     struct prompt_file *f)
{
	struct prompt_part *part = add_part(arena, parts, s->section, (struct str){f->text, f->len}, f->cost);

	part->source = part->sources = arena_str(arena, str_of(f->path));
	part->bytes = f->bytes;
	part->shown = &f->shown;
}

/* The files of one section, which begin at `from`. Returns where those of the next begin. */
static size_t add_files(struct arena *arena, struct prompt_parts *parts, const struct prompt_section_state *s,
			size_t from)
{
	const struct prompt_files *files = parts->files;
	size_t section = (size_t)(s - files->sections), end = from;

	for (; end < files->count && files->at[end]->section == section; end++) {
		struct prompt_file *f = files->at[end];

		if (f->problem)
			add_problem(arena, parts, str_of(f->path), str_of(f->problem));
		if (f->len && !prompt_is_list(s->section))
			add_file(arena, parts, s, f);
	}
	if (prompt_is_list(s->section))
		add_list(arena, parts, s, files->at + from, end - from);
	return end;
}

void prompt_add_problem(struct prompt_made *made, struct str path, struct str why)
{
	add_problem(made->ctx->arena, made->parts, path, why);
}

static int add_made(struct workspace *ws, struct ctx *ctx, struct prompt_parts *parts, const struct prompt_section *s,
		    struct err *err)
{
	struct prompt_made made = {.ws = ws, .ctx = ctx, .set = parts->set, .parts = parts};
	struct prompt_part *part;
	int r;

	buf_init(&made.text, ctx->arena, MIB);
	r = s->make(&made, err);
	if (r || !made.text.len)
		return r;
	part = add_part(ctx->arena, parts, s, buf_str(&made.text), prompt_cost_of(s, buf_str(&made.text)));
	part->sources = made.sources;
	part->more = made.more;
	return 0;
}

int prompt_parts_make(struct workspace *ws, struct ctx *ctx, const struct prompt_files *files,
		      const struct toolset *set, struct prompt_parts *ret, struct err *err)
{
	struct prompt_parts parts = {.layout = workspace_layout(ws), .files = files, .set = set};
	size_t at = 0, max = files->count + files->section_count;
	int r = 0;

	parts.at = ARENA_ARRAY(ctx->arena, struct prompt_part, max);
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
