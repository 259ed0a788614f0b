/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs over whole paths. Braces are expanded first, as shells do, because only then is it known whether a `**` is
 * alone in its element; the number of alternatives is bounded, so that `{a,b}{a,b}…` is an error and not a month.
 * Each alternative is a list of elements. `**` is matched like `*` one level up: a mismatch goes back to the last `**`
 * only, so the work stays within pattern times path. Alternative rejected: translation to a regular expression, which
 * needs PCRE2's limits to stay bounded and is slower for the few hundred bytes that a path has.
 *
 * Where tools differ: hidden names are names like others; "a", '/' and two stars also match "a" itself; a trailing '/'
 * means all below.
 */
#include "text/glob.h"

#include "base/buf.h"
#include "base/limits.h"
#include "text/wild.h"

#define ALTERNATIVES_MAX 1024
#define EXPANDED_MAX     (64 * KIB)
#define BRACES_MAX       256 /* for each open one its end is searched */

struct alternative {
	struct wild_element *elements;
	size_t count;
};

struct glob {
	struct alternative *alternatives;
	size_t count;
};

struct expansion {
	struct arena *arena;
	struct str *out;
	size_t count, cap, bytes;
};

/* The length of the indivisible unit at `s.ptr[0]`: an escape, a class, else one byte. */
static size_t unit_len(struct str s)
{
	size_t n = 1;

	if (s.ptr[0] == '\\' && s.len > 1)
		n = 2;
	else if (s.ptr[0] == '[')
		n = wild_class_len(s);
	return n ? n : 1;
}

/* The index of the '}' that closes the '{' at `open`, or 0; *ret_commas counts those of its own level. */
static size_t brace_end(struct str s, size_t open, size_t *ret_commas)
{
	size_t depth = 0;

	*ret_commas = 0;
	for (size_t i = open; i < s.len; i += unit_len(str_from(s, i))) {
		if (s.ptr[i] == '{')
			depth++;
		else if (s.ptr[i] == ',' && depth == 1)
			++*ret_commas;
		else if (s.ptr[i] == '}' && --depth == 0)
			return i;
	}
	return 0;
}

static int too_many(struct err *err)
{
	return err_set(err, ERR_TOO_LARGE,
		       "the glob's braces stand for more than %d patterns or %zu bytes; use fewer braces",
		       ALTERNATIVES_MAX, EXPANDED_MAX);
}

static int add_expanded(struct expansion *x, struct str s, struct err *err)
{
	x->bytes += s.len;
	if (x->count == ALTERNATIVES_MAX || x->bytes > EXPANDED_MAX)
		return too_many(err);
	ARENA_ROOM(x->arena, x->out, x->count, x->cap);
	x->out[x->count++] = s;
	return 0;
}

static struct str concat(struct arena *arena, struct str a, struct str b, struct str c)
{
	char *p = arena_alloc_raw(arena, a.len + b.len + c.len + 1);

	if (a.len)
		memcpy(p, a.ptr, a.len);
	if (b.len)
		memcpy(p + a.len, b.ptr, b.len);
	if (c.len)
		memcpy(p + a.len + b.len, c.ptr, c.len);
	return str_n(p, a.len + b.len + c.len);
}

/* Expands the first group of braces at or after `from` and continues with each outcome. A pattern of N bytes nests at
   most N/2 deep, and each level here has taken one group away. The work is bounded by `bytes`, which counts every
   text that was made. */
static int expand(struct expansion *x, struct str s, size_t from, struct err *err)
{
	size_t end = 0, commas, part, i = from;

	for (; i < s.len; i += unit_len(str_from(s, i)))
		if (s.ptr[i] == '{' && (end = brace_end(s, i, &commas)) != 0 && commas)
			break;
	if (i >= s.len)
		return add_expanded(x, s, err);
	part = i + 1;
	for (size_t j = part, depth = 0; j <= end; j += unit_len(str_from(s, j))) {
		char c = s.ptr[j];
		struct str whole;
		int r;

		if (j == end || (c == ',' && depth == 0)) {
			whole = concat(x->arena, str_first(s, i), str_n(s.ptr + part, j - part), str_from(s, end + 1));
			x->bytes += whole.len;
			if (x->bytes > EXPANDED_MAX * 4)
				return too_many(err);
			r = expand(x, whole, i, err);
			if (r)
				return r;
			part = j + 1;
		} else if (c == '{') {
			depth++;
		} else if (c == '}' && depth) {
			depth--;
		}
	}
	return 0;
}

/* The next element of a pattern: up to a '/' outside a class. */
static struct str cut_element(struct str *rest)
{
	size_t i = 0;
	struct str part;

	while (i < rest->len && rest->ptr[i] != '/') {
		size_t n = unit_len(str_from(*rest, i));

		/* a '/' in brackets ends the element: brackets never match one */
		i += memchr(rest->ptr + i, '/', n) ? 1 : n;
	}
	part = str_first(*rest, i);
	*rest = str_from(*rest, i + 1);
	return part;
}

static int add_element(struct arena *arena, struct alternative *a, struct str part, unsigned flags, struct err *err)
{
	struct wild_element *last = a->count ? &a->elements[a->count - 1] : NULL;

	if (str_is(part, ".."))
		return err_set(err, ERR_INVALID,
			       "the glob has a \"..\" element, which never matches; write it from the root");
	if (part.len == 0 || str_is(part, "."))
		return 0;
	if (str_is(part, "**")) {
		if (!last || !last->any_depth)
			a->elements[a->count++].any_depth = true;
		return 0;
	}
	wild_compile(arena, part, flags & GLOB_NOCASE ? WILD_NOCASE : 0, &a->elements[a->count++].wild);
	return 0;
}

static int compile_one(struct arena *arena, struct str text, unsigned flags, struct alternative *a, struct err *err)
{
	struct str rest = text;
	bool slash = memchr(text.ptr, '/', text.len), below = str_ends(text, STR("/"));
	int r = 0;

	a->elements = ARENA_ARRAY(arena, struct wild_element, text.len + 2);
	if (!slash && (flags & GLOB_BASENAME))
		r = add_element(arena, a, STR("**"), flags, err);
	while (rest.len && !r)
		r = add_element(arena, a, cut_element(&rest), flags, err);
	if (below && !r)
		r = add_element(arena, a, STR("**"), flags, err);
	return r;
}

int glob_compile(struct arena *arena, struct str pattern, unsigned flags, const struct glob **ret, struct err *err)
{
	struct expansion x = {.arena = arena};
	struct glob *g;
	int r;

	if (pattern.len == 0)
		return err_set(err, ERR_INVALID, "the glob is empty; use \"**\" for every file");
	if (pattern.len > PATTERN_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the glob has %zu bytes; at most %zu are allowed", pattern.len,
			       PATTERN_LEN_MAX);
	if (!utf8_valid(pattern) || memchr(pattern.ptr, '\0', pattern.len))
		return err_set(err, ERR_INVALID, "the glob is not UTF-8 text; write it as UTF-8 without NUL");
	for (size_t i = 0, open = 0; i < pattern.len; i++)
		if (pattern.ptr[i] == '{' && ++open > BRACES_MAX)
			return too_many(err);
	r = expand(&x, pattern, 0, err);
	if (r)
		return r;
	g = ARENA_NEW(arena, struct glob);
	g->alternatives = ARENA_ARRAY(arena, struct alternative, x.count);
	g->count = x.count;
	for (size_t i = 0; i < x.count; i++) {
		/* an empty alternative ("{,a}") matches nothing, as no path is empty */
		r = x.out[i].len ? compile_one(arena, x.out[i], flags, &g->alternatives[i], err) : 0;
		if (r)
			return r;
	}
	*ret = g;
	return 0;
}

static bool match_one(const struct alternative *a, struct str path)
{
	if (a->count == 0)
		return false;
	/* "**" and one element, the commonest form: only the name counts */
	if (a->count == 2 && a->elements[0].any_depth && !a->elements[1].any_depth) {
		size_t at = str_rfind_char(path, '/');

		return path.len && wild_match(&a->elements[1].wild, at < path.len ? str_from(path, at + 1) : path);
	}
	return wild_match_path(a->elements, a->count, path);
}

bool glob_match(const struct glob *g, struct str path)
{
	for (size_t i = 0; i < g->count; i++)
		if (match_one(&g->alternatives[i], path))
			return true;
	return false;
}

static bool may_match_below(const struct alternative *a, struct str dir)
{
	struct str rest = dir, name;
	size_t e = 0;

	while (e < a->count && !a->elements[e].any_depth && wild_next_name(&rest, &name))
		if (!wild_match(&a->elements[e++].wild, name))
			return false;
	return e < a->count;
}

bool glob_may_match_below(const struct glob *g, struct str dir)
{
	for (size_t i = 0; i < g->count; i++)
		if (may_match_below(&g->alternatives[i], dir))
			return true;
	return false;
}
