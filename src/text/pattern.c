/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small matcher for the patterns of schemas. They are short and fixed, and every tool call may need one: translating
 * such a pattern to a few dozen steps on the stack and walking all of its threads at once (Thompson's way) costs less
 * than a look-up in a shared cache of compiled expressions, needs no lock and no memory, and cannot be made slow by the
 * text. grep has the real engine; it is not wanted here.
 */
#include "text/pattern.h"

#include <stdint.h>

#define STEPS_MAX  1024
#define REPEAT_MAX 256
#define DEPTH_MAX  16

enum step_kind {
	STEP_CHAR,
	STEP_ANY,
	STEP_CLASS,
	STEP_ESCAPE,
	STEP_BEGIN,
	STEP_END,
	STEP_SPLIT,
	STEP_JUMP,
	STEP_MATCH
};

struct step {
	enum step_kind kind;
	uint32_t c; /* STEP_CHAR: a code point; STEP_ESCAPE: its letter */
	uint16_t x, y;
	uint16_t from, to; /* STEP_CLASS: the slice of the pattern between the brackets */
};

struct program {
	struct str text; /* the pattern */
	size_t at;
	struct step steps[STEPS_MAX];
	uint16_t count;
	unsigned depth;
	bool bad;
};

/* --- translation --- */

static uint16_t emit(struct program *p, struct step step)
{
	if (p->count >= STEPS_MAX - 1) {
		p->bad = true;
		return 0;
	}
	p->steps[p->count] = step;
	return p->count++;
}

static bool at(const struct program *p, char c)
{
	return p->at < p->text.len && p->text.ptr[p->at] == c;
}

/* The code point at s[*i]; bytes that are no UTF-8 count as themselves. */
static uint32_t next_char(struct str s, size_t *i)
{
	unsigned char c = (unsigned char)s.ptr[(*i)++];
	unsigned more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
	uint32_t v = more == 3 ? c & 7U : more == 2 ? c & 15U : more == 1 ? c & 31U : c;

	while (more-- && *i < s.len && ((unsigned char)s.ptr[*i] & 0xC0U) == 0x80)
		v = v << 6 | ((unsigned char)s.ptr[(*i)++] & 63U);
	return v;
}

static bool is_set_letter(uint32_t c)
{
	return c && c < 128 && strchr("dDwWsS", (int)c);
}

static uint32_t escaped(uint32_t c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* A letter or digit behind '\' that has no meaning here may have one elsewhere: refused. */
static bool escape_known(uint32_t c)
{
	bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

	return !alnum || is_set_letter(c) || c == 'n' || c == 't' || c == 'r';
}

static void alternatives(struct program *p);

static void class(struct program *p)
{
	size_t from = p->at;

	if (at(p, '^'))
		p->at++;
	while (p->at < p->text.len && p->text.ptr[p->at] != ']') {
		if (p->text.ptr[p->at] == '\\' && p->at + 1 < p->text.len &&
		    !escape_known((unsigned char)p->text.ptr[++p->at]))
			p->bad = true;
		p->at++;
	}
	if (p->at >= p->text.len || p->at == from || p->text.len > UINT16_MAX) {
		p->bad = true;
		return;
	}
	emit(p, (struct step){.kind = STEP_CLASS, .from = (uint16_t)from, .to = (uint16_t)p->at});
	p->at++;
}

static void group(struct program *p)
{
	if (at(p, '?')) {
		if (!str_starts(str_from(p->text, p->at), STR("?:")))
			p->bad = true;
		p->at += 2;
	}
	if (++p->depth > DEPTH_MAX)
		p->bad = true;
	if (!p->bad)
		alternatives(p);
	p->depth--;
	if (!at(p, ')'))
		p->bad = true;
	p->at++;
}

static void atom(struct program *p)
{
	uint32_t c = next_char(p->text, &p->at);

	if (c == '(') {
		group(p);
	} else if (c == '[') {
		class(p);
	} else if (c == '.') {
		emit(p, (struct step){.kind = STEP_ANY});
	} else if (c == '^') {
		emit(p, (struct step){.kind = STEP_BEGIN});
	} else if (c == '$') {
		emit(p, (struct step){.kind = STEP_END});
	} else if (c == '\\' && p->at < p->text.len) {
		c = next_char(p->text, &p->at);
		p->bad |= !escape_known(c);
		emit(p, is_set_letter(c) ? (struct step){.kind = STEP_ESCAPE, .c = c}
					 : (struct step){.kind = STEP_CHAR, .c = escaped(c)});
	} else if (c == '\\' || c == '*' || c == '+' || c == '?' || c == '{') {
		p->bad = true;
	} else {
		emit(p, (struct step){.kind = STEP_CHAR, .c = c});
	}
}

static unsigned digits(struct program *p)
{
	unsigned n = 0;

	while (p->at < p->text.len && p->text.ptr[p->at] >= '0' && p->text.ptr[p->at] <= '9' && n <= REPEAT_MAX)
		n = n * 10 + (unsigned)(p->text.ptr[p->at++] - '0');
	return n;
}

/* How often the atom before may stand; UINT32_MAX is "without end". False: no repetition stands here. */
static bool repetition(struct program *p, unsigned *ret_min, unsigned *ret_max)
{
	char c = p->at < p->text.len ? p->text.ptr[p->at] : 0;

	*ret_min = c == '+';
	*ret_max = c == '?' ? 1 : UINT32_MAX;
	if (c != '*' && c != '+' && c != '?' && c != '{')
		return false;
	p->at++;
	if (c != '{')
		return true;
	*ret_min = *ret_max = digits(p);
	if (at(p, ',')) {
		p->at++;
		*ret_max = at(p, '}') ? UINT32_MAX : digits(p);
	}
	if (!at(p, '}') || *ret_min > REPEAT_MAX || (*ret_max != UINT32_MAX && *ret_max > REPEAT_MAX) ||
	    *ret_max < *ret_min)
		p->bad = true;
	p->at++;
	return true;
}

/* The atom's text is translated again for each time that it may stand. */
static void again(struct program *p, size_t from)
{
	size_t behind = p->at;

	p->at = from;
	atom(p);
	p->at = behind;
}

static void piece(struct program *p)
{
	size_t from = p->at;
	uint16_t start = p->count, split;
	unsigned low, high, n;

	atom(p);
	if (p->bad || !repetition(p, &low, &high))
		return;
	p->count = start;
	for (n = 0; n < low && !p->bad; n++)
		again(p, from);
	if (high == UINT32_MAX) {
		split = emit(p, (struct step){.kind = STEP_SPLIT});
		again(p, from);
		emit(p, (struct step){.kind = STEP_JUMP, .x = split});
		p->steps[split].x = (uint16_t)(split + 1);
		p->steps[split].y = p->count;
	}
	for (; high != UINT32_MAX && n < high && !p->bad; n++) {
		split = emit(p, (struct step){.kind = STEP_SPLIT});
		again(p, from);
		p->steps[split].x = (uint16_t)(split + 1);
		p->steps[split].y = p->count; /* none of the later ones either: each begins with such a choice */
	}
	if (p->at < p->text.len && p->text.ptr[p->at] && strchr("*+?{", p->text.ptr[p->at]))
		p->bad = true;
}

static void sequence(struct program *p)
{
	while (!p->bad && p->at < p->text.len && !at(p, '|') && !at(p, ')'))
		piece(p);
}

/* a|b|c: a chain of choices before each; what an alternative ends with jumps behind the last. */
static void alternatives(struct program *p)
{
	uint16_t ends[64], n = 0, split;

	for (;;) {
		split = emit(p, (struct step){.kind = STEP_SPLIT});
		sequence(p);
		p->steps[split].x = (uint16_t)(split + 1);
		p->steps[split].y = (uint16_t)(split + 1);
		if (p->bad || !at(p, '|'))
			break;
		p->at++;
		if (n == sizeof ends / sizeof ends[0]) {
			p->bad = true;
			break;
		}
		ends[n++] = emit(p, (struct step){.kind = STEP_JUMP});
		p->steps[split].y = p->count;
	}
	while (n)
		p->steps[ends[--n]].x = p->count;
}

static bool translate(struct program *p, struct str pattern)
{
	p->text = pattern;
	p->at = 0;
	p->count = 0;
	p->depth = 0;
	p->bad = pattern.len > 1000;
	if (!p->bad)
		alternatives(p);
	if (p->at < pattern.len)
		p->bad = true;
	p->steps[p->count] = (struct step){.kind = STEP_MATCH};
	return !p->bad;
}

bool pattern_ok(struct str pattern)
{
	struct program p;

	return translate(&p, pattern);
}

/* --- matching --- */

static bool in_set(uint32_t letter, uint32_t c)
{
	bool digit = c >= '0' && c <= '9';

	switch (letter | 32U) {
	case 'd':
		return digit == (letter == 'd');
	case 'w':
		return (digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') == (letter == 'w');
	default:
		return (c == ' ' || (c >= '\t' && c <= '\r')) == (letter == 's');
	}
}

static bool in_class(struct str class, uint32_t c)
{
	bool inverted = class.len && class.ptr[0] == '^', found = false;
	size_t i = inverted;

	while (i < class.len && !found) {
		uint32_t low = next_char(class, &i), high;

		if (low == '\\' && i < class.len) {
			low = next_char(class, &i);
			if (is_set_letter(low)) {
				found = in_set(low, c);
				continue;
			}
			low = escaped(low);
		}
		high = low;
		if (i + 1 < class.len && class.ptr[i] == '-') {
			i++;
			high = next_char(class, &i);
			if (high == '\\' && i < class.len)
				high = escaped(next_char(class, &i));
		}
		found = c >= low && c <= high;
	}
	return found != inverted;
}

static bool takes(const struct program *p, const struct step *step, uint32_t c)
{
	switch (step->kind) {
	case STEP_CHAR:
		return step->c == c;
	case STEP_ANY:
		return c != '\n';
	case STEP_ESCAPE:
		return in_set(step->c, c);
	case STEP_CLASS:
		return in_class(str_n(p->text.ptr + step->from, (size_t)step->to - step->from), c);
	default:
		return false;
	}
}

/* The steps that wait for a character, each once. */
struct threads {
	uint16_t waiting[STEPS_MAX], count;
	uint8_t seen[STEPS_MAX];
};

/* Follows what needs no character, with a stack of its own. True when the end of the pattern is reached. */
static bool add(const struct program *p, struct threads *t, uint16_t first, bool begin, bool end)
{
	uint16_t stack[STEPS_MAX + 1], n = 0;

	stack[n++] = first;
	while (n) {
		uint16_t i = stack[--n];
		const struct step *step = &p->steps[i];

		if (t->seen[i])
			continue;
		t->seen[i] = 1;
		if (step->kind == STEP_MATCH)
			return true;
		if (step->kind == STEP_JUMP) {
			stack[n++] = step->x;
		} else if (step->kind == STEP_SPLIT) {
			stack[n++] = step->y;
			if (step->x != step->y) /* each step is followed once and adds one: the stack is large enough */
				stack[n++] = step->x;
		} else if (step->kind == STEP_BEGIN || step->kind == STEP_END) {
			if (step->kind == STEP_BEGIN ? begin : end)
				stack[n++] = (uint16_t)(i + 1);
		} else {
			t->waiting[t->count++] = i;
		}
	}
	return false;
}

bool pattern_found(struct str pattern, struct str text)
{
	struct program p;
	struct threads sets[2], *now = &sets[0], *then = &sets[1], *swap;
	size_t i = 0;

	if (!translate(&p, pattern))
		return false;
	now->count = 0;
	memset(now->seen, 0, (size_t)p.count + 1);
	for (;;) {
		uint32_t c;

		/* a match may begin at each place */
		if (add(&p, now, 0, i == 0, i == text.len))
			return true;
		if (i >= text.len)
			return false;
		c = next_char(text, &i);
		then->count = 0;
		memset(then->seen, 0, (size_t)p.count + 1);
		for (uint16_t k = 0; k < now->count; k++)
			if (takes(&p, &p.steps[now->waiting[k]], c) &&
			    add(&p, then, (uint16_t)(now->waiting[k] + 1), false, i == text.len))
				return true;
		swap = now;
		now = then;
		then = swap;
	}
}
