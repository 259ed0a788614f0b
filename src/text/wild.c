/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One path element against one pattern. A pattern becomes tokens; a literal character is its bytes, so only `?` and
 * classes ever look at code points. A failed match goes back to the last `*` only: the part before it has matched as
 * far left as it can, and giving an earlier `*` more could not help. That keeps it at pattern times name, where the
 * usual recursion doubles with every `*`.
 */
#include "text/wild.h"
#include "base/utf8.h"
#include "text/regex.h"

enum { TOK_BYTE, TOK_ANY, TOK_STAR, TOK_CLASS, TOK_NEVER };

struct range {
	uint32_t lo, hi;
};

struct class
{
	bool negated;
	uint64_t ascii[2]; /* the first 128 as bits */
	struct range *ranges;
	size_t count;
};

struct wild_token {
	uint8_t kind;
	unsigned char byte;
	const struct class *class;
};

static uint32_t next_char(struct str s, bool bytes, size_t *ret_len)
{
	uint32_t c = (unsigned char)s.ptr[0];

	*ret_len = 1;
	if (bytes || c < 0x80)
		return c;
	*ret_len = 0;
	return utf8_next(s, ret_len);
}

static void class_add(struct class *class, uint32_t lo, uint32_t hi)
{
	for (uint32_t c = lo; c <= hi && c < 128; c++)
		class->ascii[c >> 6] |= 1ull << (c & 63);
	if (hi >= 128 && lo <= hi)
		class->ranges[class->count++] = (struct range){lo, hi};
}

static void class_add_posix(struct class *class, struct str name)
{
	/* PCRE2's, and unknown to globs */
	const struct re_range *r = str_is(name, "word") ? NULL : regex_posix_class(name);

	for (; r && r->hi; r++)
		class_add(class, r->lo, r->hi);
}

/* "[:name:]" at the start of `s`: the length of it, and the name; else 0. */
static size_t posix_len(struct str s, struct str *ret_name)
{
	size_t i = 2;

	if (s.len < 4 || s.ptr[0] != '[' || s.ptr[1] != ':')
		return 0;
	while (i < s.len && s.ptr[i] >= 'a' && s.ptr[i] <= 'z')
		i++;
	if (i + 1 >= s.len || s.ptr[i] != ':' || s.ptr[i + 1] != ']')
		return 0;
	*ret_name = str_n(s.ptr + 2, i - 2);
	return i + 2;
}

size_t wild_class_len(struct str s)
{
	size_t i = 1, start;
	struct str name;

	if (i < s.len && (s.ptr[i] == '!' || s.ptr[i] == '^'))
		i++;
	start = i;
	while (i < s.len && (s.ptr[i] != ']' || i == start)) {
		size_t n = posix_len(str_from(s, i), &name);

		i += n ? n : s.ptr[i] == '\\' ? 2 : 1;
	}
	return i < s.len ? i + 1 : 0;
}

/* One character of a class, with '\' taken off. */
static uint32_t class_char(struct str s, size_t *at, bool bytes)
{
	size_t len;
	uint32_t c;

	if (s.ptr[*at] == '\\' && *at + 1 < s.len)
		++*at;
	c = next_char(str_from(s, *at), bytes, &len);
	*at += len;
	return c;
}

static const struct class *class_parse(struct arena *arena, struct str body, unsigned flags)
{
	struct class *class = ARENA_NEW(arena, struct class);
	bool bytes = flags & WILD_BYTES;
	size_t i = 0;

	class->ranges = ARENA_ARRAY(arena, struct range, body.len + 1);
	if (body.len && (body.ptr[0] == '!' || body.ptr[0] == '^')) {
		class->negated = true;
		i = 1;
	}
	while (i < body.len) {
		struct str name;
		size_t n = posix_len(str_from(body, i), &name);
		uint32_t lo, hi;

		if (n) {
			class_add_posix(class, name);
			i += n;
			continue;
		}
		hi = lo = class_char(body, &i, bytes);
		if (i + 1 < body.len && body.ptr[i] == '-') {
			i++;
			hi = class_char(body, &i, bytes);
		}
		class_add(class, lo, hi);
	}
	if (flags & WILD_NOCASE)
		for (unsigned c = 'A'; c <= 'Z'; c++)
			if ((class->ascii[1] >> (c & 63) | class->ascii[1] >> ((c | 0x20) & 63)) & 1)
				class->ascii[1] |= 1ull << (c & 63) | 1ull << ((c | 0x20) & 63);
	return class;
}

static bool class_has(const struct class *class, uint32_t c)
{
	bool in = false;

	if (c < 128)
		in = class->ascii[c >> 6] >> (c & 63) & 1;
	else
		for (size_t i = 0; i < class->count && !in; i++)
			in = c >= class->ranges[i].lo && c <= class->ranges[i].hi;
	return in != class->negated;
}

/* Tokens of the pattern; at most one per byte of it. */
static size_t tokenize(struct arena *arena, struct str pat, unsigned flags, struct wild_token *out)
{
	size_t n = 0;

	for (size_t i = 0; i < pat.len; i++) {
		char c = pat.ptr[i];
		size_t len = c == '[' ? wild_class_len(str_from(pat, i)) : 0;

		if (c == '*') {
			if (n == 0 || out[n - 1].kind != TOK_STAR)
				out[n++] = (struct wild_token){.kind = TOK_STAR};
		} else if (c == '?') {
			out[n++] = (struct wild_token){.kind = TOK_ANY};
		} else if (len) {
			out[n++] = (struct wild_token){
				.kind = TOK_CLASS, .class = class_parse(arena, str_n(pat.ptr + i + 1, len - 2), flags)};
			i += len - 1;
		} else if ((flags & WILD_STRICT) && (c == '[' || (c == '\\' && i + 1 == pat.len))) {
			out[n++] = (struct wild_token){.kind = TOK_NEVER};
		} else {
			if (c == '\\' && i + 1 < pat.len)
				c = pat.ptr[++i];
			out[n++] = (struct wild_token){.kind = TOK_BYTE, .byte = (unsigned char)c};
		}
	}
	return n;
}

static enum wild_shape shape_of(const struct wild_token *t, size_t n, bool nocase)
{
	size_t bytes = 0, stars = 0;

	for (size_t i = 0; i < n; i++) {
		bytes += t[i].kind == TOK_BYTE;
		stars += t[i].kind == TOK_STAR;
		if (t[i].kind == TOK_NEVER)
			return WILD_NEVER;
	}
	if (n == 1 && stars == 1)
		return WILD_ALL;
	if (nocase || bytes + stars != n || stars > 1)
		return WILD_TOKENS;
	if (stars == 0)
		return WILD_LITERAL;
	return t[0].kind == TOK_STAR ? WILD_SUFFIX : t[n - 1].kind == TOK_STAR ? WILD_PREFIX : WILD_TOKENS;
}

void wild_compile(struct arena *arena, struct str pattern, unsigned flags, struct wild *ret)
{
	struct wild_token *tokens = ARENA_ARRAY(arena, struct wild_token, pattern.len + 1);
	char *lit = arena_alloc_raw(arena, pattern.len + 1);
	size_t n = tokenize(arena, pattern, flags, tokens), len = 0;

	for (size_t i = 0; i < n; i++) {
		if (tokens[i].kind == TOK_BYTE && (flags & WILD_NOCASE))
			tokens[i].byte = ascii_lower(tokens[i].byte);
		if (tokens[i].kind == TOK_BYTE)
			lit[len++] = (char)tokens[i].byte;
	}
	*ret = (struct wild){
		.shape = shape_of(tokens, n, flags & WILD_NOCASE),
		.bytes = flags & WILD_BYTES,
		.nocase = flags & WILD_NOCASE,
		.lit = str_n(lit, len),
		.tokens = tokens,
		.count = n,
	};
}

/* Bytes that one token other than `*` takes at the start of `s`; 0: it does not match. */
static size_t take(const struct wild *w, const struct wild_token *t, struct str s)
{
	size_t len = 1;
	uint32_t c;

	if (s.len == 0)
		return 0;
	switch (t->kind) {
	case TOK_BYTE:
		return (w->nocase ? ascii_lower((unsigned char)s.ptr[0]) : (unsigned char)s.ptr[0]) == t->byte;
	case TOK_ANY:
		next_char(s, w->bytes, &len);
		return len;
	case TOK_CLASS:
		c = next_char(s, w->bytes, &len);
		return class_has(t->class, c) ? len : 0;
	default:
		return 0;
	}
}

static bool match_tokens(const struct wild *w, struct str name)
{
	size_t t = 0, i = 0, star = SIZE_MAX, back = 0;

	for (;;) {
		size_t len;

		if (t < w->count && w->tokens[t].kind == TOK_STAR) {
			star = ++t;
			back = i;
			continue;
		}
		if (t == w->count && i == name.len)
			return true;
		len = t < w->count ? take(w, &w->tokens[t], str_from(name, i)) : 0;
		if (len) {
			t++;
			i += len;
			continue;
		}
		if (star == SIZE_MAX || back >= name.len)
			return false;
		next_char(str_from(name, back), w->bytes, &len);
		back += len;
		i = back;
		t = star;
	}
}

bool wild_match(const struct wild *w, struct str name)
{
	switch (w->shape) {
	case WILD_LITERAL:
		return str_eq(w->lit, name);
	case WILD_PREFIX:
		return str_starts(name, w->lit);
	case WILD_SUFFIX:
		return str_ends(name, w->lit);
	case WILD_ALL:
		return true;
	case WILD_NEVER:
		return false;
	case WILD_TOKENS:
		break;
	}
	return match_tokens(w, name);
}

bool wild_next_name(struct str *rest, struct str *ret_name)
{
	const char *slash;

	if (rest->len == 0)
		return false;
	slash = memchr(rest->ptr, '/', rest->len);
	ret_name->ptr = rest->ptr;
	ret_name->len = slash ? (size_t)(slash - rest->ptr) : rest->len;
	*rest = str_from(*rest, ret_name->len + (slash != NULL));
	return true;
}

bool wild_match_path(const struct wild_element *elements, size_t count, struct str path)
{
	size_t e = 0, star = SIZE_MAX;
	struct str rest = path, back = path, name;

	for (;;) {
		if (e < count && elements[e].any_depth) {
			if (++e == count)
				return true;
			star = e;
			back = rest;
			continue;
		}
		if (e == count && rest.len == 0)
			return true;
		if (e < count && wild_next_name(&rest, &name) && wild_match(&elements[e].wild, name)) {
			e++;
			continue;
		}
		if (star == SIZE_MAX || !wild_next_name(&back, &name))
			return false;
		rest = back;
		e = star;
	}
}
