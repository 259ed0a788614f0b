/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recursive descent over PCRE2's syntax. It errs on one side only: whatever it does not know makes the whole tree
 * opaque and leaves the pattern to PCRE2. So each construct here must mean exactly what PCRE2 means by it (UTF, no UCP,
 * newline is LF); tests/text compares the two on generated patterns.
 */
#include "text/regex.h"

#include "base/hex.h"
#include "base/limits.h"
#include "base/utf8.h"

struct parser {
	struct arena *arena;
	struct str s;
	size_t at;
	struct re *re;
	bool gave_up;
};

/* A set under construction. */
struct set {
	struct re_range *ranges;
	size_t count, cap;
};

static struct re_node *node_new(struct parser *p, enum re_kind kind)
{
	struct re_node *n = ARENA_NEW(p->arena, struct re_node);

	n->kind = kind;
	if (kind == RE_ZERO || kind == RE_OPAQUE)
		p->re->regular = false;
	return n;
}

static bool more(const struct parser *p)
{
	return p->at < p->s.len && !p->gave_up;
}

static int peek(const struct parser *p, size_t ahead)
{
	return p->at + ahead < p->s.len ? (unsigned char)p->s.ptr[p->at + ahead] : -1;
}

static bool eat(struct parser *p, const char *text)
{
	struct str t = str_of(text);

	if (!str_starts(str_from(p->s, p->at), t))
		return false;
	p->at += t.len;
	return true;
}

static struct re_node *give_up(struct parser *p)
{
	p->gave_up = true;
	return node_new(p, RE_OPAQUE);
}

static void set_add(struct parser *p, struct set *set, uint32_t lo, uint32_t hi)
{
	if (lo > hi)
		return;
	ARENA_ROOM(p->arena, set->ranges, set->count, set->cap);
	set->ranges[set->count++] = (struct re_range){lo, hi};
}

static int range_cmp(const void *a, const void *b)
{
	const struct re_range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

static void set_normalise(struct set *set)
{
	size_t n = 0;

	if (set->count == 0)
		return;
	qsort(set->ranges, set->count, sizeof(*set->ranges), range_cmp);
	for (size_t i = 1; i < set->count; i++) {
		struct re_range *last = &set->ranges[n], r = set->ranges[i];

		if (r.lo <= last->hi + 1)
			last->hi = r.hi > last->hi ? r.hi : last->hi;
		else
			set->ranges[++n] = r;
	}
	set->count = n + 1;
}

static void set_fold(struct parser *p, struct set *set)
{
	size_t n = set->count;

	for (size_t i = 0; i < n; i++) {
		struct re_range r = set->ranges[i];
		uint32_t lo = r.lo > 'A' ? r.lo : 'A', hi = r.hi < 'Z' ? r.hi : 'Z';

		if (r.hi >= 0x80 && r.hi < 0x10FFFF)
			p->re->wide_nocase = true;
		set_add(p, set, lo | 0x20, lo <= hi ? hi | 0x20 : 0);
		lo = r.lo > 'a' ? r.lo : 'a';
		hi = r.hi < 'z' ? r.hi : 'z';
		if (lo <= hi)
			set_add(p, set, lo & ~0x20u, hi & ~0x20u);
	}
}

static struct set set_complement(struct parser *p, struct set *set)
{
	struct set out = {0};
	uint32_t next = 0;

	set_normalise(set);
	for (size_t i = 0; i < set->count; i++) {
		if (set->ranges[i].lo > next)
			set_add(p, &out, next, set->ranges[i].lo - 1);
		next = set->ranges[i].hi + 1;
	}
	set_add(p, &out, next, 0x10FFFF);
	return out;
}

/* Takes the newline out, which no line has, and makes a node of it. */
static struct re_node *set_node(struct parser *p, struct set *set)
{
	struct re_node *n = node_new(p, RE_CLASS);
	struct set out = {0};

	set_normalise(set);
	for (size_t i = 0; i < set->count; i++) {
		struct re_range r = set->ranges[i];

		if (r.lo <= '\n' && r.hi >= '\n') {
			if (r.lo < '\n')
				set_add(p, &out, r.lo, '\n' - 1);
			set_add(p, &out, '\n' + 1, r.hi);
		} else {
			set_add(p, &out, r.lo, r.hi);
		}
	}
	n->ranges = out.ranges;
	n->count = out.count;
	return n;
}

static struct re_node *char_node(struct parser *p, uint32_t c)
{
	struct set set = {0};

	if (c == '\r')
		p->re->names_cr = true;
	if (c == '\n')
		p->re->names_lf = true;
	set_add(p, &set, c, c);
	if (p->re->nocase)
		set_fold(p, &set);
	return set_node(p, &set);
}

static uint32_t next_code_point(struct parser *p)
{
	return utf8_next(p->s, &p->at);
}

/* \d \w \s and their opposites. */
static bool add_perl_class(struct parser *p, struct set *set, int c)
{
	struct set own = {0};

	switch (c | 0x20) {
	case 'd':
		set_add(p, &own, '0', '9');
		break;
	case 'w':
		set_add(p, &own, '0', '9');
		set_add(p, &own, 'A', 'Z');
		set_add(p, &own, '_', '_');
		set_add(p, &own, 'a', 'z');
		break;
	case 's':
		set_add(p, &own, '\t', '\r');
		set_add(p, &own, ' ', ' ');
		break;
	default:
		return false;
	}
	if (c < 'a')
		own = set_complement(p, &own);
	for (size_t i = 0; i < own.count; i++)
		set_add(p, set, own.ranges[i].lo, own.ranges[i].hi);
	return true;
}

/* After "\x". */
static bool hex_escape(struct parser *p, uint32_t *ret)
{
	uint32_t v = 0;
	bool braces = eat(p, "{");

	for (int n = 0; (braces ? n < 6 : n < 2) && hex_digit(peek(p, 0)) >= 0; n++, p->at++)
		v = v * 16 + (uint32_t)hex_digit(peek(p, 0));
	*ret = v;
	return (!braces || eat(p, "}")) && v <= 0x10FFFF;
}

/* An escape that stands for one character; the cursor is after the '\'. False: it is something else. */
static bool char_escape(struct parser *p, uint32_t *ret)
{
	static const char from[] = "aefnrt", to[] = "\a\x1B\f\n\r\t";
	int c = peek(p, 0);
	const char *at = c > 0 ? memchr(from, c, sizeof(from) - 1) : NULL;

	if (at) {
		*ret = (unsigned char)to[at - from];
		p->at++;
		return true;
	}
	if (c == 'x') {
		p->at++;
		return hex_escape(p, ret);
	}
	if (c < 0 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
		return false;
	*ret = next_code_point(p);
	return true;
}

const struct re_range *regex_posix_class(struct str name)
{
	static const struct {
		const char *name;
		struct re_range r[5]; /* ends with {0, 0} */
	} known[] = {
		{"alpha", {{'A', 'Z'}, {'a', 'z'}}},
		{"digit", {{'0', '9'}}},
		{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
		{"upper", {{'A', 'Z'}}},
		{"lower", {{'a', 'z'}}},
		{"space", {{'\t', '\r'}, {' ', ' '}}},
		{"blank", {{'\t', '\t'}, {' ', ' '}}},
		{"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
		{"print", {{' ', '~'}}},
		{"graph", {{'!', '~'}}},
		{"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
		{"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
		{"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
	};

	for (size_t i = 0; i < COUNT(known); i++)
		if (str_is(name, known[i].name))
			return known[i].r;
	return NULL;
}

/* At "[:". */
static bool add_posix_class(struct parser *p, struct set *set)
{
	struct str name = str_from(p->s, p->at + 2);
	const struct re_range *r;

	name = str_first(name, str_find_char(name, ':'));
	r = regex_posix_class(name);
	p->at += 2 + name.len;
	for (; r && r->hi; r++)
		set_add(p, set, r->lo, r->hi);
	return r && eat(p, ":]");
}

/* One end of a range in a class. False: a set was added, or the parser gave up. */
static bool class_char(struct parser *p, struct set *set, uint32_t *ret)
{
	int c = peek(p, 0);

	if (c == '[' && (peek(p, 1) == ':' || peek(p, 1) == '.' || peek(p, 1) == '=')) {
		if (!add_posix_class(p, set))
			give_up(p);
		return false;
	}
	if (c != '\\') {
		*ret = next_code_point(p);
		return true;
	}
	p->at++;
	if (add_perl_class(p, set, peek(p, 0))) {
		p->at++;
		return false;
	}
	if (eat(p, "b")) {
		*ret = '\b';
		return true;
	}
	if (char_escape(p, ret))
		return true;
	give_up(p);
	return false;
}

/* Starts after the '['. */
static struct re_node *parse_class(struct parser *p)
{
	struct set set = {0};
	bool negated = eat(p, "^"), first = true;
	uint32_t lo, hi;

	while (more(p) && (first || peek(p, 0) != ']')) {
		first = false;
		if (!class_char(p, &set, &lo))
			continue;
		hi = lo;
		if (peek(p, 0) == '-' && peek(p, 1) != ']' && peek(p, 1) >= 0) {
			p->at++;
			/* "a-\d" is three things to PCRE2, two of them surprising */
			if (!class_char(p, &set, &hi) || hi < lo)
				return give_up(p);
		}
		if (lo <= '\r' && hi >= '\r')
			p->re->names_cr |= lo == '\r' || hi == '\r';
		set_add(p, &set, lo, hi);
	}
	if (!eat(p, "]"))
		return give_up(p);
	if (p->re->nocase)
		set_fold(p, &set);
	if (negated)
		set = set_complement(p, &set);
	return set_node(p, &set);
}

/* Starts after the '\'. */
static struct re_node *parse_escape(struct parser *p)
{
	struct set set = {0};
	int c = peek(p, 0);
	uint32_t cp;

	if (add_perl_class(p, &set, c)) {
		p->at++;
		return set_node(p, &set);
	}
	if (char_escape(p, &cp))
		return char_node(p, cp);
	p->at++;
	switch (c) {
	case 'b':
		return node_new(p, RE_WORD);
	case 'B':
		return node_new(p, RE_NOT_WORD);
	case 'A':
		return node_new(p, RE_BOL);
	case 'z':
	case 'Z':
		return node_new(p, RE_EOL);
	case 'N':
		if (peek(p, 0) == '{')
			return give_up(p);
		set = set_complement(p, &set);
		return set_node(p, &set);
	case '1' ... '9':
		if (peek(p, 0) >= '0' && peek(p, 0) <= '9')
			return give_up(p);
		return node_new(p, RE_OPAQUE);
	default:
		return give_up(p);
	}
}

static struct re_node *parse_alt(struct parser *p);

/* Starts after "(?" and reads up to the group's content. RE_CAT: an ordinary group. */
static enum re_kind group_head(struct parser *p)
{
	if (eat(p, ":"))
		return RE_CAT;
	if (eat(p, "=") || eat(p, "!") || eat(p, "<=") || eat(p, "<!"))
		return RE_ZERO;
	if (eat(p, ">"))
		return RE_OPAQUE;
	if (eat(p, "P<") || eat(p, "<")) {
		while (more(p) && peek(p, 0) != '>')
			p->at++;
		if (eat(p, ">"))
			return RE_CAT;
	}
	give_up(p);
	return RE_OPAQUE;
}

/* Starts after the '('. */
static struct re_node *parse_group(struct parser *p)
{
	enum re_kind kind = RE_CAT;
	struct re_node *in;

	if (peek(p, 0) == '*')
		p->re->has_verb = true;
	if (eat(p, "?"))
		kind = group_head(p);
	if (p->gave_up || p->re->has_verb)
		return give_up(p);
	in = parse_alt(p);
	if (!eat(p, ")"))
		return give_up(p);
	if (kind == RE_ZERO)
		return node_new(p, RE_ZERO);
	if (kind == RE_OPAQUE) /* an atomic group takes what its content takes, but not always all that it could */
		p->re->regular = false;
	return in;
}

static struct re_node *parse_atom(struct parser *p)
{
	struct set set = {0};

	switch (peek(p, 0)) {
	case '(':
		p->at++;
		return parse_group(p);
	case '[':
		p->at++;
		/* "[[:<:]]" and "[[:>:]]" are assertions to PCRE2 */
		if (peek(p, 0) == '[' && peek(p, 1) == ':' && (peek(p, 2) == '<' || peek(p, 2) == '>'))
			return give_up(p);
		return parse_class(p);
	case '\\':
		p->at++;
		return parse_escape(p);
	case '.':
		p->at++;
		set = set_complement(p, &set);
		return set_node(p, &set);
	case '^':
		p->at++;
		return node_new(p, RE_BOL);
	case '$':
		p->at++;
		return node_new(p, RE_EOL);
	default:
		return char_node(p, next_code_point(p));
	}
}

static bool number(struct parser *p, uint32_t *ret)
{
	size_t digits = 0;

	for (*ret = 0; peek(p, 0) >= '0' && peek(p, 0) <= '9' && digits < 6; digits++, p->at++)
		*ret = *ret * 10 + (uint32_t)(peek(p, 0) - '0');
	return digits > 0;
}

/* True when there was a quantifier; else nothing was taken. */
static bool quantifier(struct parser *p, uint32_t *min, uint32_t *max)
{
	size_t start = p->at;

	*min = 0;
	*max = RE_FOREVER;
	if (eat(p, "*"))
		return true;
	if (eat(p, "+")) {
		*min = 1;
		return true;
	}
	if (eat(p, "?")) {
		*max = 1;
		return true;
	}
	if (eat(p, "{") && number(p, min)) {
		*max = *min;
		if (eat(p, ",") && !number(p, max))
			*max = RE_FOREVER;
		if (eat(p, "}"))
			return true;
	}
	p->at = start;
	return false;
}

static struct re_node *parse_repeats(struct parser *p)
{
	struct re_node *atom = parse_atom(p);
	uint32_t min, max;

	while (!p->gave_up && quantifier(p, &min, &max)) {
		struct re_node *rep = node_new(p, RE_REPEAT);

		if (eat(p, "+")) /* possessive */
			p->re->regular = false;
		else
			eat(p, "?"); /* lazy: the same lines match */
		rep->first = atom;
		rep->min = min;
		rep->max = max;
		atom = rep;
	}
	return atom;
}

static struct re_node *parse_cat(struct parser *p)
{
	struct re_node *cat = node_new(p, RE_CAT), **last = &cat->first;

	while (more(p) && peek(p, 0) != '|' && peek(p, 0) != ')') {
		*last = parse_repeats(p);
		last = &(*last)->next;
	}
	return cat;
}

static struct re_node *parse_alt(struct parser *p)
{
	struct re_node *alt = node_new(p, RE_ALT), **last = &alt->first;

	do {
		*last = parse_cat(p);
		last = &(*last)->next;
	} while (eat(p, "|"));
	return alt->first->next ? alt : alt->first;
}

/* "(?ims)" at the front: 'm' and 's' change nothing for a single line. */
static void leading_flags(struct parser *p)
{
	size_t i = 2;

	if (!str_starts(p->s, STR("(?")))
		return;
	while (i < p->s.len && (p->s.ptr[i] == 'i' || p->s.ptr[i] == 'm' || p->s.ptr[i] == 's'))
		i++;
	if (i == 2 || i >= p->s.len || p->s.ptr[i] != ')')
		return;
	p->re->nocase |= memchr(p->s.ptr + 2, 'i', i - 2) != NULL;
	p->at = i + 1;
}

void regex_parse(struct arena *arena, struct str pattern, bool nocase, struct re *ret)
{
	struct parser p = {.arena = arena, .s = pattern, .re = ret};
	struct re_node *root;

	*ret = (struct re){.regular = true, .nocase = nocase};
	leading_flags(&p);
	root = parse_alt(&p);
	if (p.gave_up || p.at < pattern.len || ret->wide_nocase) {
		root = node_new(&p, RE_OPAQUE);
		/* the part that was not read may name '\r' */
		ret->names_cr |= str_find(pattern, STR("\\r"), 0) != SIZE_MAX;
	}
	ret->root = root;
}

void regex_literal(struct arena *arena, struct str text, bool nocase, struct re *ret)
{
	struct parser p = {.arena = arena, .s = text, .re = ret};
	struct re_node *cat, **last;

	*ret = (struct re){.regular = true, .nocase = nocase};
	cat = node_new(&p, RE_CAT);
	for (last = &cat->first; p.at < text.len; last = &(*last)->next)
		*last = char_node(&p, next_code_point(&p));
	ret->root = ret->wide_nocase ? node_new(&p, RE_OPAQUE) : cat;
}
