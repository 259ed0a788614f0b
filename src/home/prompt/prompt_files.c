/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each file gives to a prompt. A file is read when its version is another one than the last time; what is kept of
 * it is what stands in the prompt (its escaped text, or one line of a list), so a turn in which one file has changed
 * costs that file.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/memory/memory_internal.h"
#include "home/plans/plans.h"
#include "home/prompt/prompt_internal.h"
#include "home/skills/skills.h"
#include "home/subagents/subagents.h"
#include "home/tasks/tasks.h"

/* A change within the clock tick of the one before may leave the version as it was: what was read that early is read
   once more when something happens. */
#define YOUNG_NS INT64_C(50000000)
#define TEXT_MAX ((size_t)1024) /* of a description */

/* "- name: description", both of a head. */
void prompt_entry(struct buf *b, struct str name, struct str description)
{
	buf_lit(b, "- ");
	prompt_escape_line(b, name, 200);
	if (description.len)
		buf_lit(b, ": ");
	prompt_escape_line(b, description, TEXT_MAX);
	buf_char(b, '\n');
}

/* --- what a file gives --- */

static void piece_free(struct prompt_piece *p)
{
	free(p->path);
	free(p->version);
	free(p->text);
	free(p->problem);
	free(p);
}

void prompt_files_release(struct prompt_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		piece_free(files->pieces[i]);
	free(files->pieces);
	*files = (struct prompt_files){0};
}

/* *ret_problem: why it is not shown. A subagent that is hidden gives no line and has no problem. */
static void render_head(struct arena *arena, const struct prompt_found *f, struct str bytes, struct buf *b,
			struct str *ret_problem)
{
	struct str file = str_from(f->path.s, str_find_char(f->path.s, '/') + 1);
	struct skill skill;
	struct jv *agent;
	struct err err = {0};
	int r;

	if (f->kind == PART_SKILLS) {
		r = skill_parse(arena, str_first(file, str_find_char(file, '/')), bytes, &skill, &err);
		if (r == 0)
			prompt_entry(b, skill.name, skill.description);
	} else {
		r = subagent_parse(arena, str_first(file, file.len - 3), bytes, &agent, &err);
		if (r == 0 && !jv_get_bool(agent, "hidden", false))
			prompt_entry(b, jv_get_str(agent, "id"), jv_get_str(agent, "description"));
	}
	if (r)
		*ret_problem = err_text(arena, &err);
}

static void add_field(struct buf *b, const char *before, struct str value)
{
	if (!value.len)
		return;
	buf_add(b, str_of(before));
	prompt_escape_line(b, value, TEXT_MAX);
}

/* Those that are to be done, in the order of list_tasks. */
static void render_tasks(struct workspace *ws, struct ctx *ctx, struct buf *b, struct str *ret_problem)
{
	struct err err = {0};
	struct jv *tasks;

	if (tasks_list(ws, ctx, STR_NONE, STR_NONE, &tasks, &err)) {
		*ret_problem = err_text(ctx->arena, &err);
		return;
	}
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		if (!task_is_active(m->value))
			continue;
		add_field(b, "- ", jv_get_str(m->value, "short_id"));
		add_field(b, " [", jv_get_str(m->value, "status"));
		add_field(b, ", ", jv_get_str(m->value, "priority"));
		add_field(b, ", due ", jv_get_str(m->value, "deadline"));
		add_field(b, "] ", jv_get_str(m->value, "description"));
		buf_char(b, '\n');
	}
}

static void render_todo(struct workspace *ws, struct ctx *ctx, struct buf *b, struct str *ret_problem)
{
	struct err err = {0};
	struct jv *plan, *todo;

	if (plan_look(ws, ctx, false, &plan, &err) || todo_read(ws, ctx, &todo, &err)) {
		*ret_problem = err_text(ctx->arena, &err);
		return;
	}
	if (jv_get_bool(plan, "active", false))
		buf_lit(b, "Plan mode is on: tools that change something are refused until plan_exit.\n");
	for (const struct jv_member *m = jv_first(jv_get(todo, "todos")); m; m = m->next) {
		struct str status = jv_get_str(m->value, "status");

		add_field(b,
			  str_is(status, "completed")     ? "- [x] "
			  : str_is(status, "in_progress") ? "- [~] "
							  : "- [ ] ",
			  jv_get_str(m->value, "content"));
		buf_char(b, '\n');
	}
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

/* Facts that hold, without their provenance but for the one thing a reader must know; other text as it is. Of a ledger
   only what MEMORY.md does not have (`known`; NULL: this is MEMORY.md). */
static void render_facts(struct ctx *ctx, struct str bytes, struct strmap *known, struct buf *b)
{
	struct parts parts = {0};
	int64_t now = clock_real_ns();

	memory_parse(ctx->arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		const struct part *p = &parts.list[i];

		if (!p->is_fact) {
			prompt_escape(b, p->raw);
			continue;
		}
		if (!memory_holds(&p->fact, now) || (known && strmap_find(known, p->fact.id)))
			continue;
		buf_lit(b, "- ");
		if (p->fact.trust == TRUST_OUTSIDE)
			buf_lit(b, "(from outside, not checked) ");
		for (struct str rest = p->fact.text, line; str_cut(&rest, '\n', &line);) {
			prompt_escape(b, line);
			buf_add(b, rest.len ? STR("\n  ") : STR("\n"));
		}
	}
}

/* Without blank lines at both ends, and with one newline behind it; all blank: nothing. */
static void tidy(struct buf *b)
{
	struct str text = str_trim(buf_str(b));

	if (text.len)
		memmove(b->ptr, text.ptr, text.len);
	b->len = text.len;
	if (b->len)
		buf_char(b, '\n');
}

/* What reading several files shares. */
struct reader {
	struct workspace *ws;
	struct ctx *ctx;
	struct strmap *known; /* known_facts(); NULL: not asked for yet */
};

static void render(struct reader *reader, const struct prompt_found *f, struct str bytes, struct buf *b,
		   struct str *ret_problem)
{
	struct workspace *ws = reader->ws;
	struct ctx *ctx = reader->ctx;

	switch (f->kind) {
	case PART_SKILLS:
	case PART_SUBAGENTS:
		render_head(ctx->arena, f, bytes, b, ret_problem);
		return;
	case PART_KNOWLEDGE_FILES:
		buf_lit(b, "- ");
		prompt_escape_line(b, f->path.s, PATH_LEN_MAX);
		buf_char(b, '\n');
		return;
	case PART_TASKS:
		render_tasks(ws, ctx, b, ret_problem);
		return;
	case PART_TODO:
		render_todo(ws, ctx, b, ret_problem);
		return;
	case PART_HEARTBEAT:
		if (workspace_heartbeat_is_empty(bytes))
			return;
		break;
	default:
		break;
	}
	if (bytes.len && memchr(bytes.ptr, 0, bytes.len))
		*ret_problem = STR("it is no text");
	else if (f->kind == PART_MEMORY)
		render_facts(ctx, bytes, NULL, b);
	else if (f->kind == PART_RECENT)
		render_facts(ctx, bytes, reader->known ? reader->known : (reader->known = known_facts(ws, ctx)), b);
	else
		prompt_escape(b, bytes);
	tidy(b);
}

/* Of a file that is too large: its end when the newest stands there, else its beginning. */
static struct store_range range_of(const struct prompt_found *f)
{
	struct store_range range = {0, PROMPT_FILE_MAX};

	if ((f->kind == PART_MEMORY || f->kind == PART_RECENT) && f->stat.size > PROMPT_FILE_MAX)
		range.offset = f->stat.size - PROMPT_FILE_MAX;
	return range;
}

static int read_piece(struct reader *reader, const struct prompt_found *f, struct prompt_piece **ret, struct err *err)
{
	struct prompt_piece *p;
	struct store_stat stat = f->stat;
	struct str bytes = STR_NONE, problem = f->problem;
	int64_t now = clock_real_ns();
	struct buf b;
	int r = 0;

	if (f->kind != PART_KNOWLEDGE_FILES && !f->line.ptr && !problem.len)
		r = store_read(workspace_home(reader->ws), reader->ctx, f->path, range_of(f), PROMPT_FILE_MAX, &bytes,
			       &stat, err);
	if (r == -ERR_NOT_FOUND)
		problem = STR("it went while it was read");
	else if (r)
		return r;
	buf_init(&b, NULL, PROMPT_FILE_MAX * 6);
	if (f->line.ptr)
		buf_add(&b, f->line);
	else if (!problem.len)
		render(reader, f, bytes, &b, &problem);
	p = xcalloc(1, sizeof *p);
	p->kind = f->kind;
	p->path = xstrndup(f->path.s);
	p->version = xstrndup(stat.version);
	p->text = b.ptr;
	p->len = problem.len ? 0 : b.len;
	p->cost = prompt_cost((struct str){p->text, p->len});
	p->bytes = stat.size;
	p->young = stat.mtime_ns > now - YOUNG_NS;
	if (problem.len)
		p->problem = xstrndup(problem);
	*ret = p;
	return 0;
}

static bool is_current(const struct prompt_piece *p, const struct prompt_found *f, bool same_memory)
{
	if (p->kind != f->kind || f->line.ptr || f->problem.len)
		return false;
	if ((p->kind == PART_MEMORY || p->kind == PART_RECENT) && !same_memory)
		return false;
	return p->kind == PART_KNOWLEDGE_FILES || (!p->young && str_is(f->stat.version, p->version));
}

/* Ledgers show what MEMORY.md does not have, and both what holds on this day. */
static void memory_state(struct arena *arena, const struct prompt_sweep *sweep, uint64_t ret[2])
{
	struct str day = prompt_day(arena, 0), version = STR("");

	for (size_t i = 0; i < sweep->count; i++)
		if (sweep->found[i].kind == PART_MEMORY)
			version = sweep->found[i].stat.version;
	hash_u128(arena_printf(arena, "%.*s %.*s", STR_ARG(day), STR_ARG(version)), ret);
}

int prompt_files_update(struct prompt_files *files, struct workspace *ws, struct ctx *ctx,
			const struct prompt_sweep *sweep, struct err *err)
{
	struct prompt_piece **pieces = xcalloc(sweep->count + 1, sizeof(struct prompt_piece *));
	struct reader reader = {.ws = ws, .ctx = ctx};
	struct strmap *old = strmap_new(ctx->arena);
	uint64_t read = 0, memory[2];
	bool same_memory;
	size_t n = 0;
	int r = 0;

	memory_state(ctx->arena, sweep, memory);
	same_memory = memory[0] == files->memory[0] && memory[1] == files->memory[1];
	for (size_t i = 0; i < files->count; i++)
		*strmap_put(old, str_of(files->pieces[i]->path), NULL) = i;
	for (; r == 0 && n < sweep->count; n += r == 0) {
		const struct prompt_found *f = &sweep->found[n];
		size_t *at = strmap_find(old, f->path.s);

		if (at && files->pieces[*at] && is_current(files->pieces[*at], f, same_memory)) {
			pieces[n] = files->pieces[*at];
			files->pieces[*at] = NULL;
			continue;
		}
		r = read_piece(&reader, f, &pieces[n], err);
		read += f->kind != PART_KNOWLEDGE_FILES && !f->line.ptr && !f->problem.len;
	}
	for (size_t i = 0; i < files->count; i++)
		if (files->pieces[i])
			piece_free(files->pieces[i]);
	free(files->pieces);
	*files = (struct prompt_files){pieces, n, sweep->knowledge_more, read, {memory[0], memory[1]}};
	return r;
}
