/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which text must a match contain? Each node answers with all the texts it can match, if they are few ("exact"), and
 * with a set of texts of which every match has one ("need"). A concatenation multiplies exact answers as long as the
 * product stays small, and of all the pieces between its inexact parts takes the rarest.
 */
#include "base/utf8.h"
#include "text/literal.h"
#include "text/regex.h"

#define EXACT_MAX     24 /* texts in one answer */
#define TEXT_MAX      64 /* bytes of one text */
#define CLASS_MAX     10 /* characters of a set that are spelled out */
#define WORTH_REGULAR 30 /* below this rarity the automaton alone is faster */

struct texts {
	struct str v[EXACT_MAX];
	size_t n;
};

struct answer {
	bool exact;
	struct texts all;  /* exact; may hold the empty text */
	struct texts need; /* n 0: nothing is known; no empty text */
};

struct finder {
	struct arena *arena;
	bool nocase, pure;
};

static unsigned score(const struct finder *f, const struct texts *t)
{
	unsigned worst = t->n ? UINT32_MAX : 0;

	for (size_t i = 0; i < t->n; i++) {
		unsigned r = literal_rarity(t->v[i], f->nocase);

		worst = r < worst ? r : worst;
	}
	/* several texts are a little slower than one */
	return worst > 2 * (unsigned)t->n ? worst - (unsigned)t->n : worst / 2;
}

static void consider(const struct finder *f, struct texts *best, const struct texts *t)
{
	if (score(f, t) > score(f, best))
		*best = *t;
}

static bool add_text(struct texts *t, struct str s)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_eq(t->v[i], s))
			return true;
	if (t->n == EXACT_MAX)
		return false;
	t->v[t->n++] = s;
	return true;
}

static struct str encode(struct arena *arena, uint32_t c)
{
	char *p = arena_alloc_raw(arena, UTF8_LEN_MAX);

	return str_n(p, utf8_put(p, c));
}

static void of_class(struct finder *f, const struct re_node *n, struct answer *a)
{
	size_t total = 0;

	for (size_t i = 0; i < n->count; i++)
		total += n->ranges[i].hi - n->ranges[i].lo + 1;
	if (total == 0 || total > (f->nocase ? 2 * CLASS_MAX : CLASS_MAX))
		return;
	for (size_t i = 0; i < n->count; i++)
		for (uint32_t c = n->ranges[i].lo; c <= n->ranges[i].hi; c++)
			if (!add_text(&a->all, encode(f->arena, f->nocase && c >= 'A' && c <= 'Z' ? c | 0x20 : c)))
				return;
	a->exact = true;
}

/* a := a × b; false when that gets too large. */
static bool multiply(struct finder *f, struct texts *a, const struct texts *b)
{
	struct texts out = {.n = 0};

	if (a->n * b->n > EXACT_MAX)
		return false;
	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; j < b->n; j++) {
			size_t len = a->v[i].len + b->v[j].len;
			char *p = arena_alloc_raw(f->arena, len + 1);

			if (len > TEXT_MAX)
				return false;
			if (a->v[i].len)
				memcpy(p, a->v[i].ptr, a->v[i].len);
			if (b->v[j].len)
				memcpy(p + a->v[i].len, b->v[j].ptr, b->v[j].len);
			if (!add_text(&out, str_n(p, len)))
				return false;
		}
	*a = out;
	return true;
}

static void of_node(struct finder *f, const struct re_node *n, struct answer *a);

static const struct texts nothing = {.v = {{"", 0}}, .n = 1};

static void of_cat(struct finder *f, const struct re_node *n, struct answer *a)
{
	struct texts *cur = ARENA_NEW(f->arena, struct texts);
	struct answer *kid = ARENA_NEW(f->arena, struct answer);

	*cur = nothing;
	a->exact = true;
	for (const struct re_node *c = n->first; c; c = c->next) {
		*kid = (struct answer){0};
		of_node(f, c, kid);
		if (kid->exact && multiply(f, cur, &kid->all))
			continue;
		a->exact = false;
		consider(f, &a->need, cur);
		consider(f, &a->need, &kid->need);
		*cur = kid->exact ? kid->all : nothing;
	}
	if (a->exact)
		a->all = *cur;
	consider(f, &a->need, cur);
}

static void of_alt(struct finder *f, const struct re_node *n, struct answer *a)
{
	struct answer *kid = ARENA_NEW(f->arena, struct answer);
	bool need = true;

	a->exact = true;
	for (const struct re_node *c = n->first; c; c = c->next) {
		*kid = (struct answer){0};
		of_node(f, c, kid);
		a->exact = a->exact && kid->exact;
		need = need && kid->need.n;
		for (size_t i = 0; a->exact && i < kid->all.n; i++)
			a->exact = add_text(&a->all, kid->all.v[i]);
		for (size_t i = 0; need && i < kid->need.n; i++)
			need = add_text(&a->need, kid->need.v[i]);
	}
	if (!need)
		a->need.n = 0;
}

static void of_repeat(struct finder *f, const struct re_node *n, struct answer *a)
{
	struct answer *kid = ARENA_NEW(f->arena, struct answer);

	of_node(f, n->first, kid);
	if (n->min > 0)
		a->need = kid->need;
	if (!kid->exact || n->max > 8 || (n->max != n->min && n->max != 1)) {
		/* x+ needs what x needs; its length is open */
		return;
	}
	a->exact = true;
	a->all = nothing;
	for (uint32_t i = 0; i < n->max && a->exact; i++)
		a->exact = multiply(f, &a->all, &kid->all);
	if (n->min == 0 && n->max == 1 && a->exact)
		a->exact = add_text(&a->all, STR(""));
}

static void of_node(struct finder *f, const struct re_node *n, struct answer *a)
{
	switch (n->kind) {
	case RE_CLASS:
		of_class(f, n, a);
		break;
	case RE_CAT:
		of_cat(f, n, a);
		return;
	case RE_ALT:
		of_alt(f, n, a);
		return;
	case RE_REPEAT:
		of_repeat(f, n, a);
		break;
	case RE_OPAQUE:
		f->pure = false;
		return;
	case RE_BOL:
	case RE_EOL:
	case RE_WORD:
	case RE_NOT_WORD:
	case RE_ZERO:
		f->pure = false;
		a->exact = true;
		a->all = nothing;
		return;
	case RE_EMPTY:
		a->exact = true;
		a->all = nothing;
		return;
	}
	if (a->exact && a->need.n == 0) {
		a->need = a->all;
		for (size_t i = 0; i < a->all.n; i++)
			if (a->all.v[i].len == 0)
				a->need.n = 0;
	}
}

size_t regex_literals(struct arena *arena, const struct re *re, struct str *texts, bool *ret_exact)
{
	struct finder f = {.arena = arena, .nocase = re->nocase, .pure = re->regular};
	struct answer *a = ARENA_NEW(arena, struct answer);
	const struct texts *use;

	of_node(&f, re->root, a);
	*ret_exact = a->exact && f.pure;
	for (size_t i = 0; i < a->all.n; i++)
		if (a->all.v[i].len == 0)
			*ret_exact = false;
	use = *ret_exact ? &a->all : &a->need;
	if (!*ret_exact && score(&f, use) < (re->regular ? WORTH_REGULAR : 1))
		return 0;
	for (size_t i = 0; i < use->n; i++)
		texts[i] = use->v[i];
	return use->n;
}
