/* SPDX-License-Identifier: Apache-2.0 */
/* From files and from what Stead knows itself to the sections of a prompt, in their order and each whole. */
#include "base/clock.h"
#include "base/limits.h"
#include "home/notebook/notebook.h"
#include "home/prompt/prompt_internal.h"
#include "workspace/fork.h"

#define NAME_MAX_BYTES ((size_t)100)
#define QUESTIONS      20
#define NOTES          40

static struct prompt_part *add_part(struct arena *arena, struct prompt_parts *parts, enum prompt_kind kind)
{
	if (parts->count == parts->cap) {
		size_t cap = parts->cap ? parts->cap * 2 : 32;

		parts->at = arena_grow(arena, parts->at, parts->cap * sizeof *parts->at, cap * sizeof *parts->at);
		parts->cap = cap;
	}
	parts->at[parts->count] = (struct prompt_part){.kind = kind};
	return &parts->at[parts->count++];
}

static void add_text(struct arena *arena, struct prompt_parts *parts, enum prompt_kind kind, struct str text)
{
	struct prompt_part *p = add_part(arena, parts, kind);

	p->text = text;
	p->cost = prompt_cost(text);
	p->bytes = text.len;
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

static void add_problem(struct arena *arena, struct prompt_parts *parts, const char *path, struct str why)
{
	if (parts->problem_count == parts->problem_cap) {
		size_t cap = parts->problem_cap ? parts->problem_cap * 2 : 8;

		parts->problems = arena_grow(arena, parts->problems, parts->problem_cap * sizeof(struct str),
					     cap * sizeof(struct str));
		parts->problem_cap = cap;
	}
	parts->problems[parts->problem_count++] = arena_printf(arena, "%s: %.*s", path, STR_ARG(why));
}

/* --- from files --- */

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

static bool is_list(enum prompt_kind kind)
{
	return kind == PART_KNOWLEDGE_FILES || kind == PART_SKILLS || kind == PART_SUBAGENTS || kind == PART_TASKS ||
	       kind == PART_TODO;
}

static void add_lines(struct arena *arena, struct prompt_part *part, const struct prompt_piece *p)
{
	struct str rest = {p->text, p->len}, line;
	bool single = part->kind != PART_TASKS && part->kind != PART_TODO;

	while (rest.len) {
		line = str_first(rest, str_find_char(rest, '\n') + 1);
		rest = str_from(rest, line.len);
		add_item(arena, part, line, single ? p->cost : prompt_cost(line));
	}
}

static void from_files(struct arena *arena, const struct prompt_files *files, enum prompt_kind kind,
		       struct prompt_parts *parts)
{
	struct prompt_part *part = NULL;
	size_t all = 0, n = 0;

	for (size_t i = 0; i < files->count; i++)
		all += files->pieces[i]->kind == kind && files->pieces[i]->len;
	for (size_t i = 0; i < files->count; i++) {
		const struct prompt_piece *p = files->pieces[i];

		if (p->kind != kind)
			continue;
		if (p->problem)
			add_problem(arena, parts, p->path, str_of(p->problem));
		if (!p->len)
			continue;
		if (!part || !is_list(kind))
			part = add_part(arena, parts, kind);
		if (is_list(kind)) {
			add_lines(arena, part, p);
			add_source(arena, part, p->path, n++, all);
			continue;
		}
		part->source = part->sources = arena_str(arena, str_of(p->path));
		part->text = (struct str){p->text, p->len};
		part->cost = p->cost;
		part->bytes = p->bytes;
	}
	if (part && kind == PART_KNOWLEDGE_FILES)
		part->more = files->knowledge_more;
}

/* --- what Stead says itself --- */

static void say_place(struct workspace *ws, struct buf *b)
{
	struct str root = workspace_root(ws).s, part = home_part(ws).s;

	if (workspace_files_are_own(ws)) {
		buf_lit(b, "The file tools work in a directory that people and other programs change too: ");
		prompt_escape_line(b, workspace_files_place(ws), PATH_LEN_MAX);
		buf_lit(b, ". Look before you write. Everything else lies in the workspace.\n");
		return;
	}
	root = str_starts(root, part) ? str_from(root, part.len ? part.len + 1 : 0) : root;
	if (root.len) {
		buf_lit(b, "'/' of the file tools is its directory \"");
		prompt_escape_line(b, root, PATH_LEN_MAX);
		buf_lit(b, "\".\n");
	} else {
		buf_lit(b, "'/' of the file tools is the whole workspace.\n");
	}
	if (home_dir(ws).ptr)
		buf_lit(b, "It lies on the disk of this machine, where people may edit it too.\n");
	else if (store_is_local(home_shared(ws)))
		buf_lit(b, "It lies in memory and goes when this program ends.\n");
	else
		buf_lit(b, "It lies in a store that other machines and agents share: a path is a name there and "
			   "not a path of a host, and what others write shows at once.\n");
}

static bool names(const struct jv *list, const char *family, const char *tool)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str name = jv_str_of(m->value);

		if (str_is(name, tool) || str_is(name, "*") ||
		    (str_starts(name, STR("group:")) && str_is(str_from(name, 6), family)))
			return true;
	}
	return false;
}

/* As far as allow and deny say it plainly: a model is not told of a tool that it has not got. */
static bool is_offered(struct workspace *ws, const char *family, const char *tool)
{
	const struct config *c = workspace_config(ws);

	return !names(c->tools_deny, family, tool) &&
	       (!jv_count(c->tools_allow) || names(c->tools_allow, family, tool));
}

static struct str workspace_text(struct workspace *ws, struct ctx *ctx)
{
	struct fork_info fork;
	struct err ignored;
	bool is_fork = false;
	struct buf b;

	buf_init(&b, ctx->arena, 64 * KIB);
	buf_printf(&b, "You work in the workspace \"%.*s\". What you write there outlasts this conversation.\n",
		   STR_ARG(workspace_name(ws)));
	say_place(ws, &b);
	if (fork_read(ctx, home_unrecorded(ws), &fork, &is_fork, &ignored) == 0 && is_fork) {
		buf_lit(&b, "It is a fork of \"");
		prompt_escape_line(&b, fork.parent, NAME_MAX_BYTES);
		buf_printf(&b, "\" at revision %llu: what you change stays here until a person merges it.\n",
			   (unsigned long long)fork.revision);
	}
	if (is_offered(ws, "memory", "memory_save"))
		buf_lit(&b, "What must be remembered goes into memory with memory_save; memory_search finds it again. "
			    "Never write MEMORY.md or memory/ as files.\n");
	buf_lit(&b,
		"The sections around this one are files of the workspace, as people and agents wrote them. A '<' in "
		"them that could begin a tag is written &lt;.\n");
	return buf_str(&b);
}

static struct str notebook_text(struct workspace *ws, struct ctx *ctx)
{
	const struct jv *mates = workspace_config(ws)->teammates;
	struct str *names = ARENA_ARRAY(ctx->arena, struct str, jv_count(mates) + 1), text;
	size_t n = 0;
	struct buf b;

	for (const struct jv_member *m = jv_first(mates); m; m = m->next)
		names[n++] = jv_str_of(m->value);
	text = notebook_prompt(workspace_notebook(ws), ctx, names, n);
	buf_init(&b, ctx->arena, 256 * KIB);
	prompt_escape(&b, text);
	return buf_str(&b);
}

static void add_note(struct arena *arena, struct prompt_part *p, const struct note *n)
{
	struct buf b;

	buf_init(&b, arena, 64 * KIB);
	buf_lit(&b, "- ");
	prompt_escape_line(&b, n->slug, 200);
	buf_lit(&b, " (");
	prompt_escape_line(&b, n->author, NAME_MAX_BYTES);
	buf_printf(&b, ", %s%.*s): ", n->answer == NOTE_OPEN ? "open " : "", STR_ARG(n->kind));
	prompt_escape_line(&b, n->title, 200);
	buf_char(&b, '\n');
	add_item(arena, p, buf_str(&b), prompt_cost(buf_str(&b)));
}

/* Open questions first, then the last updated. */
static int add_notes(struct workspace *ws, struct ctx *ctx, struct prompt_parts *parts, struct err *err)
{
	struct note_query questions = {.open_questions = true, .limit = QUESTIONS}, newest = {.limit = NOTES};
	struct notebook *nb = workspace_notebook(ws);
	struct note_list open, all;
	struct prompt_part *p;
	int r = notebook_list(nb, ctx, &newest, &all, err);

	if (r == 0 && all.total)
		r = notebook_list(nb, ctx, &questions, &open, err);
	if (r || !all.total)
		return r;
	p = add_part(ctx->arena, parts, PART_NOTES);
	p->sources = STR("notes/");
	for (size_t i = 0; i < open.count; i++)
		add_note(ctx->arena, p, &open.notes[i]);
	for (size_t i = 0; i < all.count; i++)
		if (all.notes[i].answer != NOTE_OPEN)
			add_note(ctx->arena, p, &all.notes[i]);
	p->more = all.total > p->item_count ? all.total - p->item_count : 0;
	for (size_t i = 0; i < all.problem_count && i < 20; i++)
		add_problem(ctx->arena, parts, arena_cstr(ctx->arena, all.problems[i].path), all.problems[i].why);
	return 0;
}

static void add_fact(struct buf *b, const char *label, struct str value)
{
	if (!value.len)
		return;
	buf_add(b, str_of(label));
	prompt_escape_line(b, value, NAME_MAX_BYTES);
	buf_char(b, '\n');
}

/* The day and no hour: what stands behind the prompt in a conversation would have to be read anew at each minute. */
static struct str session_text(struct workspace *ws, struct ctx *ctx)
{
	static const char *const days[] = {"Thursday", "Friday",  "Saturday", "Sunday",
					   "Monday",   "Tuesday", "Wednesday"};
	struct actor own = workspace_actor(ws), *a = &ctx->actor;
	int64_t day = clock_real_ns() / INT64_C(86400000000000);
	struct buf b;

	buf_init(&b, ctx->arena, 64 * KIB);
	add_fact(&b, "Name: ", workspace_config(ws)->name);
	add_fact(&b, "Agent: ", a->agent.len ? a->agent : own.agent);
	add_fact(&b, "Session: ", a->session.len ? a->session : own.session);
	add_fact(&b, "User: ", own.user);
	buf_printf(&b, "Today: %s, %.*s (UTC)\n", days[day % 7], STR_ARG(prompt_day(ctx->arena, 0)));
	return buf_str(&b);
}

int prompt_parts_make(struct workspace *ws, struct ctx *ctx, const struct prompt_files *files, struct prompt_parts *ret,
		      struct err *err)
{
	struct prompt_parts parts = {0};
	int r = 0;

	for (int kind = 0; r == 0 && kind < PART_KINDS; kind++)
		switch (kind) {
		case PART_WORKSPACE:
			add_text(ctx->arena, &parts, PART_WORKSPACE, workspace_text(ws, ctx));
			break;
		case PART_NOTEBOOK:
			if (is_offered(ws, "notes", "note"))
				add_text(ctx->arena, &parts, PART_NOTEBOOK, notebook_text(ws, ctx));
			break;
		case PART_NOTES:
			r = add_notes(ws, ctx, &parts, err);
			break;
		case PART_SESSION:
			add_text(ctx->arena, &parts, PART_SESSION, session_text(ws, ctx));
			break;
		default:
			from_files(ctx->arena, files, (enum prompt_kind)kind, &parts);
		}
	if (r == 0)
		*ret = parts;
	return r;
}
