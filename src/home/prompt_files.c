/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a prompt is made of: which there are, and what each gives. Looking costs a list of three directories
 * and a stat of a few files; a file is read when its version is another one than the last time. What is kept of it is
 * what stands in the prompt (its escaped text, or one line of a list), so a turn in which one file has changed costs
 * that file.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/memory_own.h"
#include "home/plans.h"
#include "home/prompt_own.h"
#include "home/skills.h"
#include "home/tasks.h"
#include "text/frontmatter.h"

#define NS_PER_DAY INT64_C(86400000000000)
/* A change within the clock tick of the one before may leave the version as it was: what was read that early is read
   once more when something happens. */
#define YOUNG_NS INT64_C(50000000)
#define TEXT_MAX ((size_t)1024) /* of a description */

struct str prompt_day(struct arena *arena, int days)
{
	return str_first(clock_format_utc(arena, clock_real_ns() - days * NS_PER_DAY), 10);
}

/* --- looking --- */

/* "- name: description", both of a head. */
static void add_entry(struct buf *b, struct str name, struct str description)
{
	buf_lit(b, "- ");
	prompt_escape_line(b, name, 200);
	if (description.len)
		buf_lit(b, ": ");
	prompt_escape_line(b, description, TEXT_MAX);
	buf_char(b, '\n');
}

static void add_found(struct arena *arena, struct prompt_sweep *s, enum prompt_kind kind, struct wpath path,
		      const struct store_stat *stat)
{
	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;

		s->found = arena_grow(arena, s->found, s->cap * sizeof *s->found, cap * sizeof *s->found);
		s->cap = cap;
	}
	s->found[s->count++] = (struct prompt_found){.kind = kind, .path = path, .stat = *stat};
}

static int look_at(struct workspace *ws, struct ctx *ctx, enum prompt_kind kind, struct str path,
		   struct prompt_sweep *s, struct err *err)
{
	struct store_stat stat;
	int r = store_stat(workspace_home(ws), ctx, (struct wpath){path}, &stat, err);

	if (r == 0 && stat.kind == STORE_FILE)
		add_found(ctx->arena, s, kind, (struct wpath){path}, &stat);
	return r == -ERR_NOT_FOUND || r == -ERR_DENIED ? 0 : r;
}

static int look_at_top(struct workspace *ws, struct ctx *ctx, struct prompt_sweep *s, struct err *err)
{
	static const struct {
		enum prompt_kind kind;
		struct str name;
	} top[] = {{PART_IDENTITY, STR("AGENTS.md")},     {PART_IDENTITY, STR("AGENT.md")},
		   {PART_SOUL, STR("SOUL.md")},           {PART_USER, STR("USER.md")},
		   {PART_HEARTBEAT, STR("HEARTBEAT.md")}, {PART_MEMORY, STR("MEMORY.md")},
		   {PART_TASKS, STR("TASKS.yaml")}};
	size_t before = s->count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof top / sizeof top[0]; i++) {
		if (top[i].kind == PART_IDENTITY && s->count > before)
			continue; /* AGENTS.md is there */
		r = look_at(ws, ctx, top[i].kind, top[i].name, s, err);
	}
	return r;
}

/* A name that a tool of Stead or a person put aside. */
static bool is_aside(struct str name)
{
	return !name.len || name.ptr[0] == '.' || name.ptr[0] == '_';
}

static void take_entry(struct ctx *ctx, struct prompt_sweep *s, enum prompt_kind kind, const struct store_entry *e)
{
	struct str below = str_from(e->path.s, str_find_char(e->path.s, '/') + 1), name;

	if (e->stat.kind != STORE_FILE)
		return;
	switch (kind) {
	case PART_KNOWLEDGE_FILES:
		if (str_is(below, "KNOWLEDGE.md"))
			add_found(ctx->arena, s, PART_KNOWLEDGE, e->path, &e->stat);
		else if (s->count >= PROMPT_LIST_MAX)
			s->knowledge_more++;
		else
			add_found(ctx->arena, s, kind, e->path, &e->stat);
		return;
	case PART_SKILLS:
		if (str_cut(&below, '/', &name) && !is_aside(name) && str_is(below, "SKILL.md"))
			add_found(ctx->arena, s, kind, e->path, &e->stat);
		return;
	default:
		if (str_ends(below, STR(".md")) && !is_aside(below))
			add_found(ctx->arena, s, kind, e->path, &e->stat);
	}
}

static int look_below(struct workspace *ws, struct ctx *ctx, enum prompt_kind kind, const char *dir, bool recursive,
		      struct prompt_sweep *s, struct err *err)
{
	struct store_list_req req = {.recursive = recursive, .limit = 1000};
	size_t seen = 0;
	int r;

	do {
		struct store_page page;

		r = store_list(workspace_home(ws), ctx, (struct wpath){str_of(dir)}, &req, &page, err);
		if (r)
			return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
		for (size_t i = 0; i < page.count; i++)
			take_entry(ctx, s, kind, &page.entries[i]);
		seen += page.count;
		req.after = page.next;
	} while (req.after.ptr && seen < PROMPT_LOOK_MAX);
	return 0;
}

static struct str dir_of(struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	return slash == path.len ? STR("") : str_first(path, slash);
}

static struct str below(struct arena *arena, struct str base, struct str dir)
{
	return base.len && dir.len ? arena_printf(arena, "%.*s/%.*s", STR_ARG(base), STR_ARG(dir))
	       : base.len          ? base
				   : dir;
}

/* Skills from elsewhere may be hidden by those of the workspace, so all are asked for together. */
static int look_at_skills(struct workspace *ws, struct ctx *ctx, struct prompt_sweep *s, struct err *err)
{
	struct skills skills;
	int r = skills_open(ws, ctx, &skills, err);

	if (r)
		return r;
	for (size_t i = 0; i < skills.count; i++) {
		const struct skill *k = &skills.skills[i];
		struct str path = arena_printf(ctx->arena, "%.*s (%.*s)", STR_ARG(k->name), STR_ARG(k->source));
		struct store_stat stat = {.kind = STORE_FILE, .version = arena_str(ctx->arena, k->version)};
		struct buf line;

		buf_init(&line, ctx->arena, 64 * KIB);
		add_entry(&line, k->name, k->description);
		add_found(ctx->arena, s, PART_SKILLS, (struct wpath){path}, &stat);
		s->found[s->count - 1].line = buf_str(&line);
	}
	for (const struct jv_member *m = jv_first(skills.problems); m; m = m->next) {
		struct store_stat stat = {.kind = STORE_FILE, .version = STR("")};

		add_found(ctx->arena, s, PART_SKILLS, (struct wpath){jv_get_str(m->value, "path")}, &stat);
		s->found[s->count - 1].problem = jv_get_str(m->value, "problem");
	}
	skills_close(&skills);
	return 0;
}

bool prompt_skills_elsewhere(const struct workspace *ws)
{
	const struct jv *settings = jv_get(workspace_config(ws)->document, "skills");

	return jv_get_str(settings, "global_dir").len || jv_count(jv_get(settings, "repositories"));
}

static void watch_all(struct workspace *ws, struct ctx *ctx, struct prompt_watch *w)
{
	static const char *const dirs[] = {"", "memory", "plans", "subagents"};
	static const char *const trees[] = {"knowledge", "skills"};
	struct str part = home_part(ws).s;
	struct wpath plan, todo;

	prompt_watch_begin(w);
	plan_places(ws, ctx, &plan, &todo);
	for (int own = 0; own < (part.len ? 2 : 1); own++) {
		struct str base = own ? part : STR("");

		for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
			prompt_watch_add(w, below(ctx->arena, base, str_of(dirs[i])), false);
		for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++)
			prompt_watch_add(w, below(ctx->arena, base, str_of(trees[i])), true);
		for (const struct jv_member *m = jv_first(workspace_config(ws)->prompt_files); m; m = m->next)
			prompt_watch_add(w, below(ctx->arena, base, dir_of(jv_str_of(m->value))), false);
		prompt_watch_add(w, below(ctx->arena, base, dir_of(todo.s)), false);
	}
}

/* .env, .stead/ and whatever else a name with a dot before it keeps from being looked at. */
static bool is_hidden(struct str path)
{
	return !path.len || path.ptr[0] == '.' || str_find(path, STR("/."), 0) != SIZE_MAX;
}

static int look_at_context(struct workspace *ws, struct ctx *ctx, struct prompt_sweep *s, struct err *err)
{
	int r = 0;

	for (const struct jv_member *m = jv_first(workspace_config(ws)->prompt_files); r == 0 && m; m = m->next) {
		struct wpath path;
		struct err bad;

		if (wpath_parse(jv_str_of(m->value), &path, &bad) == 0 && !is_hidden(path.s))
			r = look_at(ws, ctx, PART_CONTEXT, path.s, s, err);
	}
	return r;
}

int prompt_look(struct workspace *ws, struct ctx *ctx, struct prompt_watch *watch, struct prompt_sweep *ret,
		struct err *err)
{
	struct arena *arena = ctx->arena;
	struct prompt_sweep s = {0};
	struct wpath plan, todo;
	struct buf all;
	int r;

	if (watch)
		watch_all(ws, ctx, watch);
	r = look_at_top(ws, ctx, &s, err);
	if (r == 0)
		r = look_at_context(ws, ctx, &s, err);
	for (int back = 1; r == 0 && back >= 0; back--)
		r = look_at(ws, ctx, PART_RECENT, arena_printf(arena, "memory/%.10s.md", prompt_day(arena, back).ptr),
			    &s, err);
	plan_places(ws, ctx, &plan, &todo);
	if (r == 0)
		r = look_at(ws, ctx, PART_PLAN, plan.s, &s, err);
	if (r == 0)
		r = look_at(ws, ctx, PART_TODO, todo.s, &s, err);
	if (r == 0)
		r = prompt_skills_elsewhere(ws) ? look_at_skills(ws, ctx, &s, err)
						: look_below(ws, ctx, PART_SKILLS, "skills", true, &s, err);
	if (r == 0)
		r = look_below(ws, ctx, PART_SUBAGENTS, "subagents", false, &s, err);
	if (r == 0)
		r = look_below(ws, ctx, PART_KNOWLEDGE_FILES, "knowledge", true, &s, err);
	if (r)
		return err_prefix(err, "the files of the prompt");
	buf_init(&all, arena, 64 * MIB);
	for (size_t i = 0; i < s.count; i++) {
		buf_add(&all, s.found[i].path.s);
		buf_char(&all, '\0');
		if (s.found[i].kind != PART_KNOWLEDGE_FILES)
			buf_add(&all, s.found[i].stat.version);
		buf_char(&all, '\0');
	}
	buf_u64(&all, s.knowledge_more);
	hash_u128(buf_str(&all), s.hash);
	*ret = s;
	return 0;
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
	struct str file = str_from(f->path.s, str_find_char(f->path.s, '/') + 1), description;
	struct frontmatter fm;
	struct skill skill;
	struct err err = {0};
	int r;

	if (f->kind == PART_SKILLS) {
		r = skill_parse(arena, str_first(file, str_find_char(file, '/')), bytes, &skill, &err);
		if (r == 0)
			add_entry(b, skill.name, skill.description);
	} else {
		r = frontmatter_parse(arena, bytes, &fm, &err);
		description = r ? STR_NONE : jv_get_str(fm.head, "description");
		if (r == 0 && !str_trim(description).len)
			r = err_set(&err, ERR_INVALID, "its head has no description");
		else if (r == 0 && !jv_get_bool(fm.head, "hidden", false))
			add_entry(b, str_first(file, file.len - 3), description);
	}
	if (r)
		*ret_problem = arena_str(arena, str_of(err.msg));
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
		*ret_problem = arena_str(ctx->arena, str_of(err.msg));
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
		*ret_problem = arena_str(ctx->arena, str_of(err.msg));
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

/* Facts that hold, without their provenance but for the one thing a reader must know; other text as it is. Of a ledger
   only what MEMORY.md does not have. */
static void render_facts(struct workspace *ws, struct ctx *ctx, const struct prompt_found *f, struct str bytes,
			 struct buf *b)
{
	struct strmap *known = strmap_new(ctx->arena);
	struct parts parts = {0}, memory = {0};
	int64_t now = clock_real_ns();
	struct err ignored;
	struct str kept;

	if (f->kind == PART_RECENT && memory_read(ws, ctx, STR(MEMORY_PATH), &kept, NULL, &ignored) == 0)
		memory_parse(ctx->arena, kept, &memory);
	for (size_t i = 0; i < memory.count; i++)
		if (memory.list[i].is_fact)
			strmap_put(known, memory.list[i].fact.id, NULL);
	memory_parse(ctx->arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		const struct part *p = &parts.list[i];

		if (!p->is_fact) {
			prompt_escape(b, p->raw);
			continue;
		}
		if (!memory_holds(&p->fact, now) || strmap_find(known, p->fact.id))
			continue;
		buf_lit(b, "- ");
		if (p->fact.trust == TRUST_OUTSIDE)
			buf_lit(b, "(from outside, not checked) ");
		prompt_escape(b, p->fact.text);
		buf_char(b, '\n');
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

static void render(struct workspace *ws, struct ctx *ctx, const struct prompt_found *f, struct str bytes, struct buf *b,
		   struct str *ret_problem)
{
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
	else if (f->kind == PART_MEMORY || f->kind == PART_RECENT)
		render_facts(ws, ctx, f, bytes, b);
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

static int read_piece(struct workspace *ws, struct ctx *ctx, const struct prompt_found *f, struct prompt_piece **ret,
		      struct err *err)
{
	struct prompt_piece *p;
	struct store_stat stat = f->stat;
	struct str bytes = STR_NONE, problem = f->problem;
	int64_t now = clock_real_ns();
	struct buf b;
	int r = 0;

	if (f->kind != PART_KNOWLEDGE_FILES && !f->line.ptr && !problem.len)
		r = store_read(workspace_home(ws), ctx, f->path, range_of(f), PROMPT_FILE_MAX, &bytes, &stat, err);
	if (r == -ERR_NOT_FOUND)
		problem = STR("it went while it was read");
	else if (r)
		return r;
	buf_init(&b, NULL, PROMPT_FILE_MAX * 6);
	if (f->line.ptr)
		buf_add(&b, f->line);
	else if (!problem.len)
		render(ws, ctx, f, bytes, &b, &problem);
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
		r = read_piece(ws, ctx, f, &pieces[n], err);
		read += f->kind != PART_KNOWLEDGE_FILES && !f->line.ptr && !f->problem.len;
	}
	for (size_t i = 0; i < files->count; i++)
		if (files->pieces[i])
			piece_free(files->pieces[i]);
	free(files->pieces);
	*files = (struct prompt_files){pieces, n, sweep->knowledge_more, read, {memory[0], memory[1]}};
	return r;
}
