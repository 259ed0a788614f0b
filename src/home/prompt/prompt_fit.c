/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One budget over all sections.
 *
 * Each class gets what those before it left, less what is set aside for those after it, whether or not they use it. So
 * a class is cut the same way however the later ones grow, and the beginning of the prompt stays the same bytes. The
 * price is that a quiet memory does not make room for a long identity.
 *
 * Within a class that does not fit, sections yield in a fixed order: first each down to its floor (a share of the
 * class), then each to nothing, identity never below its floor. Texts lose their end, memory loses its oldest lines,
 * lists lose their last items and say how many and which tool shows them. Cuts are at the ends of lines.
 */
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"
#include "text/markup.h"

const char *const prompt_class_names[PROMPT_CLASSES] = {"static", "lasting", "working", "session"};

/* What is set aside for a class, whether or not it is needed. */
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

/* What AgentScope calls the sections that it has; a further file is called by its path. */
static const struct {
	const char *name, *tag;
} agentscope_tags[] = {
	{"identity", "agents_context"},
	{"soul", "soul_md"},
	{"user", "user_md"},
	{"knowledge", "domain_knowledge_context"},
	{"skills", "available_skills"},
	{"memory", "memory_context"},
	{"session", "session_context"},
};

static struct str tag_of_path(struct arena *arena, struct str path)
{
	char *tag = (char *)arena_str(arena, path).ptr;

	for (size_t i = 0; i < path.len; i++) {
		char c = tag[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && i > 0) || c == '-';

		if (c >= 'A' && c <= 'Z')
			tag[i] = (char)(c + 'a' - 'A');
		else if (!plain)
			tag[i] = '_';
	}
	return str_n(tag, path.len);
}

static struct str tag_of(struct arena *arena, enum workspace_layout layout, const struct prompt_part *p)
{
	const char *name = p->section->name;

	if (layout != LAYOUT_AGENTSCOPE)
		return str_of(name);
	if (strcmp(name, "context") == 0 && p->source.len)
		return tag_of_path(arena, p->source);
	for (size_t i = 0; i < COUNT(agentscope_tags); i++)
		if (strcmp(name, agentscope_tags[i].name) == 0)
			return str_of(agentscope_tags[i].tag);
	return str_of(name);
}

static struct str frame_open(struct arena *arena, enum workspace_layout layout, const struct prompt_part *p)
{
	struct buf b;

	buf_init(&b, arena, 64 * KIB);
	buf_printf(&b, "<%.*s", STR_ARG(tag_of(arena, layout, p)));
	if (p->source.len) {
		buf_lit(&b, " source=\"");
		markup_escape(&b, p->source);
		buf_char(&b, '"');
	}
	buf_lit(&b, ">\n");
	buf_add(&b, p->about);
	return buf_str(&b);
}

static struct str frame_close(struct arena *arena, enum workspace_layout layout, const struct prompt_part *p)
{
	return arena_printf(arena, "</%.*s>\n\n", STR_ARG(tag_of(arena, layout, p)));
}

/* What a section keeps while others of its class still have something to give. */
static uint64_t floor_of(const struct prompt_parts *parts, size_t i, uint64_t cap)
{
	const struct prompt_part *p = &parts->at[i];
	uint64_t least = p->frame + NOTE_COST + LEAST, floor = cap * p->section->floor / 100;

	/* of two days the older keeps half as much */
	if (p->section->form == PROMPT_LEDGER && i + 1 < parts->count && p[1].section == p->section)
		floor /= 2;
	floor = floor > least ? floor : least;
	return p->section->floor == PROMPT_WHOLE || floor > p->need ? p->need : floor;
}

/* Takes up to `over` from the parts of one section, of each down to its floor or, with `all`, to nothing; returns how
   much is still over. */
static uint64_t yield_section(struct prompt_parts *parts, const struct prompt_section *s, uint64_t cap, uint64_t over,
			      bool all)
{
	for (size_t n = 0; over && n < parts->count; n++) {
		/* of several files the last yields first; of several days the first */
		size_t i = s->form == PROMPT_LEDGER ? n : parts->count - 1 - n;
		struct prompt_part *p = &parts->at[i];
		uint64_t floor, give = p->give > over ? p->give - over : 0;

		if (p->section != s)
			continue;
		floor = floor_of(parts, i, cap);
		if (all && s->yields < PROMPT_YIELDS)
			give = 0;
		else if (give < floor)
			give = floor < p->give ? floor : p->give;
		over -= p->give - give < over ? p->give - give : over;
		p->give = give;
	}
	return over;
}

/* One pass over a class in the order of yielding; returns how much it is still over. */
static uint64_t yield(struct prompt_parts *parts, enum prompt_class class, uint64_t cap, uint64_t over, bool all)
{
	for (unsigned rank = 1; over && rank <= PROMPT_YIELDS; rank++)
		for (size_t i = 0; i < parts->files->section_count; i++) {
			const struct prompt_section *s = parts->files->sections[i].section;

			if (s->class == class && s->yields == rank)
				over = yield_section(parts, s, cap, over, all);
		}
	return over;
}

/* What was given up in too large a step goes back, to those that yield last. */
static void refill(struct prompt_parts *parts, enum prompt_class class, uint64_t slack)
{
	for (unsigned rank = PROMPT_YIELDS; slack && rank > 0; rank--)
		for (size_t i = 0; slack && i < parts->count; i++) {
			struct prompt_part *p = &parts->at[i];
			uint64_t want = p->need - p->give, more = want < slack ? want : slack;

			if (p->section->class != class || p->section->yields != rank)
				continue;
			if (p->give + more < p->need &&
			    (p->section->floor == PROMPT_WHOLE || p->give + more < p->frame + NOTE_COST + LEAST))
				continue;
			p->give += more;
			slack -= more;
		}
}

static void share(struct prompt_parts *parts, enum prompt_class class, uint64_t cap)
{
	uint64_t need = 0, give = 0, over;

	for (size_t i = 0; i < parts->count; i++)
		need += parts->at[i].section->class == class ? parts->at[i].need : 0;
	over = need > cap ? need - cap : 0;
	if (over)
		over = yield(parts, class, cap, over, false);
	if (over)
		yield(parts, class, cap, over, true);
	for (size_t i = 0; i < parts->count; i++)
		give += parts->at[i].section->class == class ? parts->at[i].give : 0;
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
	uint64_t cost, all = prompt_count_lines(p->text) + p->more, shown;
	struct str text = p->give < p->need ? prompt_first_lines(p->text, room, &cost) : p->text;

	if (text.len && text.ptr[text.len - 1] != '\n')
		text.len = 0; /* not even one item fits */
	buf_add(b, text);
	shown = prompt_count_lines(text);
	if (shown == all)
		return;
	buf_printf(b, "[%llu more%s%.*s]\n", (unsigned long long)(all - shown), p->rest.len ? "; " : "",
		   STR_ARG(p->rest));
	*ret_cut = arena_printf(arena, "%llu of %llu shown", (unsigned long long)shown, (unsigned long long)all);
}

/* What of a text that is too long fits into `room` tokens: its beginning, or of a ledger its end. */
static struct prompt_shown cut_text(const struct prompt_part *p, uint64_t room)
{
	struct prompt_shown now = {.room = room};

	if (room && p->shown && p->shown->room == room)
		return *p->shown;
	now.part = p->section->form == PROMPT_LEDGER ? prompt_last_lines(p->text, room, &now.cost)
						     : prompt_first_lines(p->text, room, &now.cost);
	now.lines = prompt_count_lines(now.part);
	now.all = prompt_count_lines(p->text);
	if (p->shown)
		*p->shown = now;
	return now;
}

static void write_text(struct arena *arena, struct buf *b, const struct prompt_part *p, uint64_t room,
		       struct prompt_span *s)
{
	bool last = p->section->form == PROMPT_LEDGER;
	struct prompt_shown shown;
	struct str note;

	if (p->give >= p->need) {
		buf_add(b, p->text);
		return;
	}
	shown = cut_text(p, room);
	note = last ? arena_printf(arena, "[the oldest %zu of %zu lines are not shown%s%.*s]\n",
				   shown.all - shown.lines, shown.all, p->rest.len ? "; " : "", STR_ARG(p->rest))
		    : arena_printf(arena, "[%zu of %zu lines are shown%s%.*s]\n", shown.lines, shown.all,
				   p->rest.len ? "; " : "", STR_ARG(p->rest));
	buf_add(b, last ? note : STR(""));
	buf_add(b, ended(arena, shown.part));
	buf_add(b, last ? STR("") : note);
	s->tokens = p->frame + shown.cost + prompt_cost(note) +
		    (shown.part.len && shown.part.ptr[shown.part.len - 1] != '\n');
	s->cut = arena_printf(arena, "%s %zu of %zu lines shown", last ? "last" : "first", shown.lines, shown.all);
}

static void write_part(struct arena *arena, const struct prompt_parts *parts, struct buf *b,
		       const struct prompt_part *p, struct prompt_span *s)
{
	uint64_t spent = p->frame + NOTE_COST, room = p->give > spent ? p->give - spent : 0;

	*s = (struct prompt_span){.name = p->section->name,
				  .class = p->section->class,
				  .start = b->len,
				  .tokens_all = p->need,
				  .bytes = p->bytes,
				  .sources = p->sources};
	if (!p->give) {
		s->cut = STR("left out whole");
		return;
	}
	buf_add(b, frame_open(arena, parts->layout, p));
	if (prompt_is_list(p->section))
		write_list(arena, b, p, room, &s->cut);
	else
		write_text(arena, b, p, room, s);
	buf_add(b, frame_close(arena, parts->layout, p));
	s->len = b->len - s->start;
	if (p->give >= p->need)
		s->tokens = p->need;
	else if (prompt_is_list(p->section))
		s->tokens = prompt_cost((struct str){b->ptr + s->start, s->len});
}

static void say_why(struct arena *arena, struct prompt_span *s, const struct prompt_part *p, uint64_t cap)
{
	if (s->cut.len && p->give < p->need)
		s->cut = arena_printf(arena, "%.*s: %s sections have %llu tokens", STR_ARG(s->cut),
				      prompt_class_names[s->class], (unsigned long long)cap);
}

void prompt_fit(struct arena *arena, struct prompt_parts *parts, uint64_t max_tokens, struct prompt *ret)
{
	struct prompt prompt = {.max_tokens = max_tokens, .problems = parts->problems};
	uint64_t left = max_tokens, later = 0;
	struct buf b;

	prompt.problem_count = parts->problem_count;
	prompt.sections = ARENA_ARRAY(arena, struct prompt_span, parts->count + 1);
	buf_init(&b, arena, PROMPT_TOKENS_MAX * 32);
	for (size_t i = 0; i < parts->count; i++) {
		struct prompt_part *p = &parts->at[i];

		p->frame = prompt_cost(frame_open(arena, parts->layout, p)) +
			   prompt_cost(frame_close(arena, parts->layout, p));
		p->need = p->give = p->frame + p->cost + (p->more ? NOTE_COST : 0);
	}
	for (int c = 0; c < PROMPT_CLASSES; c++)
		later += set_aside((enum prompt_class)c, max_tokens);
	for (int c = 0; c < PROMPT_CLASSES; c++) {
		uint64_t cap;

		later -= set_aside((enum prompt_class)c, max_tokens);
		cap = left - later;
		share(parts, (enum prompt_class)c, cap);
		for (size_t i = 0; i < parts->count; i++) {
			struct prompt_span *s = &prompt.sections[prompt.count];

			if ((int)parts->at[i].section->class != c)
				continue;
			write_part(arena, parts, &b, &parts->at[i], s);
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
