/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a prompt is made of. Looking at all of them costs a list of three directories and a stat of a few files,
 * and reads none. When the kernel has named the files that changed, only those are looked at again.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/plans/plans.h"
#include "home/prompt/prompt_internal.h"
#include "home/skills/skills.h"

#define NS_PER_DAY INT64_C(86400000000000)

struct str prompt_day(struct arena *arena, int days)
{
	return str_first(clock_format_utc(arena, clock_real_ns() - days * NS_PER_DAY), 10);
}

/* --- looking --- */

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

/* .env, .stead/ and whatever else a name with a dot before it keeps from being looked at. */
static bool is_hidden(struct str path)
{
	return !path.len || path.ptr[0] == '.' || str_find(path, STR("/."), 0) != SIZE_MAX;
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
		if (is_hidden(e->path.s))
			return;
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
		prompt_entry(&line, k->name, k->description);
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
	*ret = s;
	return 0;
}

void prompt_sweep_hash(struct arena *arena, const struct prompt_sweep *sweep, uint64_t ret_hash[2])
{
	struct buf all;

	buf_init(&all, arena, 64 * MIB);
	for (size_t i = 0; i < sweep->count; i++) {
		buf_add(&all, sweep->found[i].path.s);
		buf_char(&all, '\0');
		if (sweep->found[i].kind != PART_KNOWLEDGE_FILES)
			buf_add(&all, sweep->found[i].stat.version);
		buf_char(&all, '\0');
	}
	buf_u64(&all, sweep->knowledge_more);
	hash_u128(buf_str(&all), ret_hash);
}

struct prompt_sweep prompt_sweep_copy(struct arena *arena, const struct prompt_sweep *sweep)
{
	struct prompt_sweep copy = *sweep;

	copy.cap = copy.count;
	copy.found = ARENA_ARRAY(arena, struct prompt_found, sweep->count + 1);
	for (size_t i = 0; i < sweep->count; i++) {
		copy.found[i] = sweep->found[i];
		copy.found[i].path.s = arena_str(arena, sweep->found[i].path.s);
		copy.found[i].stat.version = arena_str(arena, sweep->found[i].stat.version);
	}
	return copy;
}

/* --- looking again --- */

/* The path in the home of a path in the workspace's directory. */
static struct str in_home(const struct workspace *ws, struct str path)
{
	struct wpath part = home_part(ws);

	return part.s.len && wpath_within((struct wpath){path}, part) && path.len > part.s.len
		       ? str_from(path, part.s.len + 1)
		       : path;
}

static struct prompt_found *find(struct prompt_sweep *sweep, struct str path)
{
	for (size_t i = 0; i < sweep->count; i++)
		if (str_eq(sweep->found[i].path.s, path))
			return &sweep->found[i];
	return NULL;
}

bool prompt_look_again(struct workspace *ws, struct ctx *ctx, const struct prompt_news *news,
		       struct prompt_sweep *sweep)
{
	for (size_t i = 0; i < news->count; i++) {
		struct str path = in_home(ws, news->paths[i]);
		struct prompt_found *f = find(sweep, path);
		struct store_stat stat;
		struct err ignored;

		if (str_is(path, "WORKSPACE.md") || (!f && !news->came[i]))
			continue; /* no part of it */
		if (!f || store_stat(workspace_home(ws), ctx, f->path, &stat, &ignored) || stat.kind != STORE_FILE)
			return false;
		f->stat = stat;
	}
	return true;
}
