/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One budget over all sections.
 *
 * Each class gets what those before it left, less what is set aside for those behind it, whether or not they use it. So
 * a class is cut the same way however the later ones grow, and the beginning of the prompt stays the same bytes. The
 * price is that a quiet memory does not make room for a long identity.
 *
 * Within a class that does not fit, sections yield in a fixed order: first each down to its floor (a share of the
 * class), then each to nothing, identity never below its floor. Texts lose their end, memory loses its oldest lines,
 * lists lose their last items and say how many and which tool shows them. Cuts are at the ends of lines.
 */
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

enum mode { MODE_FIRST, MODE_LAST, MODE_LIST };

static const struct kind {
	const char *name;
	enum prompt_class class;
	enum mode mode;
	unsigned floor;  /* percent of what its class may take; 100: it is short, and never cut to a part */
	unsigned yields; /* the lowest first */
	const char *about, *rest;
} kinds[PART_KINDS] = {
	[PART_IDENTITY] = {"identity", PROMPT_STATIC, MODE_FIRST, 30, 10, "", "the rest is in that file"},
	[PART_SOUL] = {"soul", PROMPT_STATIC, MODE_FIRST, 10, 8, "", "the rest is in that file"},
	[PART_WORKSPACE] = {"workspace", PROMPT_STATIC, MODE_FIRST, 100, 9, "", ""},
	[PART_NOTEBOOK] = {"notebook", PROMPT_STATIC, MODE_FIRST, 100, 6, "", ""},
	[PART_CONTEXT] = {"context", PROMPT_STATIC, MODE_FIRST, 10, 4, "", "the rest is in that file"},
	[PART_KNOWLEDGE] = {"knowledge", PROMPT_STATIC, MODE_FIRST, 15, 5, "", "read_knowledge shows the rest"},
	[PART_KNOWLEDGE_FILES] = {"knowledge_files", PROMPT_STATIC, MODE_LIST, 5, 1,
				  "Read with read_knowledge what the task needs.\n", "knowledge_list shows them"},
	[PART_SKILLS] = {"skills", PROMPT_STATIC, MODE_LIST, 10, 3,
			 "Before a task that one of these fits, load it with load_skill.\n", "list_skills shows them"},
	[PART_SUBAGENTS] = {"subagents", PROMPT_STATIC, MODE_LIST, 5, 2, "", "list_subagents shows them"},
	[PART_USER] = {"user", PROMPT_STATIC, MODE_FIRST, 10, 7, "", "the rest is in that file"},
	[PART_HEARTBEAT] = {"heartbeat", PROMPT_LASTING, MODE_FIRST, 25, 2, "", "the rest is in that file"},
	[PART_MEMORY] = {"memory", PROMPT_LASTING, MODE_LAST, 50, 1, "", "memory_search finds them"},
	[PART_NOTES] = {"notes", PROMPT_WORKING, MODE_LIST, 15, 1, "", "list_notes shows them"},
	[PART_RECENT] = {"recent_memory", PROMPT_WORKING, MODE_LAST, 20, 2, "", "memory_search finds them"},
	[PART_TASKS] = {"tasks", PROMPT_WORKING, MODE_LIST, 20, 3, "", "list_tasks shows them"},
	[PART_PLAN] = {"plan", PROMPT_WORKING, MODE_FIRST, 20, 5, "", "plan_read shows the rest"},
	[PART_TODO] = {"todo", PROMPT_WORKING, MODE_LIST, 15, 4, "", "todo_read shows them"},
	[PART_SESSION] = {"session", PROMPT_SESSION, MODE_FIRST, 100, 1, "", ""},
};
#define YIELDS_MAX 10

const char *const prompt_class_names[PROMPT_CLASSES] = {"static", "lasting", "working", "session"};

/* What is set aside for a class, whatever it needs. */
static uint64_t set_aside(enum prompt_class class, uint64_t max)
{
	return class == PROMPT_LASTING   ? max / 4
	       : class == PROMPT_WORKING ? max / 5
	       : class == PROMPT_SESSION ? 256
					 : 0;
}

/* For the line that says what is missing. */
#define NOTE_COST 28
/* A section of which less than this would be left is left out. */
#define LEAST 24

/* --- sharing out --- */

static struct str frame_open(struct arena *arena, const struct prompt_part *p)
{
	struct buf b;

	buf_init(&b, arena, 64 * KIB);
	buf_printf(&b, "<%s", kinds[p->kind].name);
	if (p->source.len) {
		buf_lit(&b, " source=\"");
		prompt_escape_attribute(&b, p->source);
		buf_char(&b, '"');
	}
	buf_lit(&b, ">\n");
	buf_add(&b, str_of(kinds[p->kind].about));
	return buf_str(&b);
}

static struct str frame_close(struct arena *arena, const struct prompt_part *p)
{
	return arena_printf(arena, "</%s>\n\n", kinds[p->kind].name);
}

/* What a section keeps while others of its class still have something to give. */
static uint64_t floor_of(const struct prompt_parts *parts, size_t i, uint64_t cap)
{
	const struct prompt_part *p = &parts->at[i];
	uint64_t least = p->frame + NOTE_COST + LEAST, floor = cap * kinds[p->kind].floor / 100;

	/* of two days the older keeps half as much */
	if (p->kind == PART_RECENT && i + 1 < parts->count && p[1].kind == PART_RECENT)
		floor /= 2;
	floor = floor > least ? floor : least;
	return kinds[p->kind].floor == 100 || floor > p->need ? p->need : floor;
}

/* One pass over a class in the order of yielding; returns how much it is still over. */
static uint64_t yield(struct prompt_parts *parts, enum prompt_class class, uint64_t cap, uint64_t over, bool all)
{
	for (unsigned rank = 1; over && rank <= YIELDS_MAX; rank++)
		for (size_t n = 0; over && n < parts->count; n++) {
			/* of several files the last yields first; of several days the first */
			size_t i =
				kinds[PART_RECENT].yields == rank && class == PROMPT_WORKING ? n : parts->count - 1 - n;
			struct prompt_part *p = &parts->at[i];
			uint64_t floor = floor_of(parts, i, cap), give;

			if (kinds[p->kind].class != class || kinds[p->kind].yields != rank)
				continue;
			give = p->give > over ? p->give - over : 0;
			if (all && p->kind != PART_IDENTITY)
				give = 0;
			else if (give < floor)
				give = floor < p->give ? floor : p->give;
			over -= p->give - give < over ? p->give - give : over;
			p->give = give;
		}
	return over;
}

/* What was given up in too large a step goes back, to those that yield last. */
static void refill(struct prompt_parts *parts, enum prompt_class class, uint64_t slack)
{
	for (unsigned rank = YIELDS_MAX; slack && rank > 0; rank--)
		for (size_t i = 0; slack && i < parts->count; i++) {
			struct prompt_part *p = &parts->at[i];
			uint64_t want = p->need - p->give, more = want < slack ? want : slack;

			if (kinds[p->kind].class != class || kinds[p->kind].yields != rank)
				continue;
			if (p->give + more < p->need &&
			    (kinds[p->kind].floor == 100 || p->give + more < p->frame + NOTE_COST + LEAST))
				continue;
			p->give += more;
			slack -= more;
		}
}

static void share(struct prompt_parts *parts, enum prompt_class class, uint64_t cap)
{
	uint64_t need = 0, give = 0, over;

	for (size_t i = 0; i < parts->count; i++)
		need += kinds[parts->at[i].kind].class == class ? parts->at[i].need : 0;
	over = need > cap ? need - cap : 0;
	if (over)
		over = yield(parts, class, cap, over, false);
	if (over)
		yield(parts, class, cap, over, true);
	for (size_t i = 0; i < parts->count; i++)
		give += kinds[parts->at[i].kind].class == class ? parts->at[i].give : 0;
	if (need > cap && give < cap)
		refill(parts, class, cap - give);
}

/* --- writing --- */

static struct str ended(struct arena *arena, struct str text)
{
	return text.len && text.ptr[text.len - 1] != '\n' ? arena_printf(arena, "%.*s\n", (int)text.len, text.ptr)
							  : text;
}

static void write_list(struct arena *arena, struct buf *b, const struct prompt_part *p, uint64_t room,
		       struct str *ret_cut)
{
	bool whole = p->give >= p->need;
	uint64_t used = 0;
	size_t n = 0;

	for (; n < p->item_count; n++) {
		if (!whole && (used += prompt_cost(p->items[n])) > room)
			break;
		buf_add(b, p->items[n]);
	}
	if (n == p->item_count && !p->more)
		return;
	buf_printf(b, "[%llu more; %s]\n", (unsigned long long)(p->item_count - n + p->more), kinds[p->kind].rest);
	*ret_cut = arena_printf(arena, "%zu of %llu shown", n, (unsigned long long)(p->item_count + p->more));
}

static void write_text(struct arena *arena, struct buf *b, const struct prompt_part *p, uint64_t room,
		       struct prompt_section *s)
{
	const struct kind *k = &kinds[p->kind];
	bool last = k->mode == MODE_LAST;
	struct str part, note;
	size_t lines, all;

	if (p->give >= p->need) {
		buf_add(b, p->text);
		return;
	}
	part = last ? prompt_last_lines(p->text, room, &s->tokens) : prompt_first_lines(p->text, room, &s->tokens);
	lines = prompt_count_lines(part);
	all = prompt_count_lines(p->text);
	note = last ? arena_printf(arena, "[the oldest %zu of %zu lines are not shown; %s]\n", all - lines, all,
				   k->rest)
		    : arena_printf(arena, "[%zu of %zu lines are shown; %s]\n", lines, all, k->rest);
	buf_add(b, last ? note : STR(""));
	buf_add(b, ended(arena, part));
	buf_add(b, last ? STR("") : note);
	s->tokens += p->frame + prompt_cost(note) + (part.len && part.ptr[part.len - 1] != '\n');
	s->cut = arena_printf(arena, "%s %zu of %zu lines shown", last ? "last" : "first", lines, all);
}

static void write_part(struct arena *arena, struct buf *b, const struct prompt_part *p, struct prompt_section *s)
{
	uint64_t spent = p->frame + NOTE_COST, room = p->give > spent ? p->give - spent : 0;

	*s = (struct prompt_section){.name = kinds[p->kind].name,
				     .class = kinds[p->kind].class,
				     .start = b->len,
				     .tokens_all = p->need,
				     .bytes = p->bytes,
				     .sources = p->sources};
	if (!p->give) {
		s->cut = STR("left out whole");
		return;
	}
	buf_add(b, frame_open(arena, p));
	if (kinds[p->kind].mode == MODE_LIST)
		write_list(arena, b, p, room, &s->cut);
	else
		write_text(arena, b, p, room, s);
	buf_add(b, frame_close(arena, p));
	s->len = b->len - s->start;
	if (p->give >= p->need)
		s->tokens = p->need;
	else if (kinds[p->kind].mode == MODE_LIST)
		s->tokens = prompt_cost((struct str){b->ptr + s->start, s->len});
}

static void say_why(struct arena *arena, struct prompt_section *s, const struct prompt_part *p, uint64_t cap)
{
	if (s->cut.len && p->give < p->need)
		s->cut = arena_printf(arena, "%.*s: %s sections have %llu tokens", STR_ARG(s->cut),
				      prompt_class_names[s->class], (unsigned long long)cap);
}

void prompt_fit(struct arena *arena, struct prompt_parts *parts, uint64_t max_tokens, struct prompt *ret)
{
	struct prompt prompt = {.max_tokens = max_tokens, .problems = parts->problems};
	uint64_t left = max_tokens, behind = 0;
	struct buf b;

	prompt.problem_count = parts->problem_count;
	prompt.sections = ARENA_ARRAY(arena, struct prompt_section, parts->count + 1);
	buf_init(&b, arena, PROMPT_TOKENS_MAX * 32);
	for (size_t i = 0; i < parts->count; i++) {
		struct prompt_part *p = &parts->at[i];

		p->frame = prompt_cost(frame_open(arena, p)) + prompt_cost(frame_close(arena, p));
		p->need = p->give = p->frame + p->cost + (p->more ? NOTE_COST : 0);
	}
	for (int c = 0; c < PROMPT_CLASSES; c++)
		behind += set_aside((enum prompt_class)c, max_tokens);
	for (int c = 0; c < PROMPT_CLASSES; c++) {
		uint64_t cap;

		behind -= set_aside((enum prompt_class)c, max_tokens);
		cap = left - behind;
		share(parts, (enum prompt_class)c, cap);
		for (size_t i = 0; i < parts->count; i++) {
			struct prompt_section *s = &prompt.sections[prompt.count];

			if ((int)kinds[parts->at[i].kind].class != c)
				continue;
			write_part(arena, &b, &parts->at[i], s);
			say_why(arena, s, &parts->at[i], cap);
			left -= s->tokens < left ? s->tokens : left;
			prompt.tokens += s->tokens;
			prompt.count++;
		}
	}
	if (b.len)
		b.len--; /* one newline ends it */
	if (prompt.count)
		prompt.sections[prompt.count - 1].len--;
	prompt.text = buf_str(&b);
	*ret = prompt;
}
