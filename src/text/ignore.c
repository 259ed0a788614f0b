/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git's rules, one set per file that has some, chained upwards: the deepest set that says anything decides, and within
 * a set its last matching line. A tree of some size asks for every name against a few hundred rules, and nearly all of
 * those are a plain name or "*.ext". These are kept in a hash table, by name or by extension; only the rest is tried
 * one by one, from the last line up, and only while lines are left that come after the best match so far.
 */
#include "text/ignore.h"

#include "base/hash.h"
#include "text/wild.h"

enum rule_form { BY_NAME, BY_EXTENSION, ONE_NAME, WHOLE_PATH };

struct rule {
	enum rule_form form;
	bool negated, dir_only;
	bool fixed_depth; /* WHOLE_PATH without `**` */
	uint32_t next;    /* hash chain: earlier rule + 1 of the same bucket, 0: none */
	struct wild wild; /* all but WHOLE_PATH */
	struct wild_element *elements;
	size_t count;
};

struct ignore {
	const struct ignore *parent;
	bool outside; /* a repository */
	struct str dir;
	struct rule *rules;
	uint32_t count;
	uint32_t *others; /* rules outside the table, ascending */
	uint32_t other_count;
	uint32_t *buckets; /* rule + 1 */
	uint32_t mask;
};

static uint64_t key_hash(struct str key, enum rule_form form)
{
	return hash_u64(key, form);
}

/* Removes trailing spaces, unless a '\' precedes them. */
static struct str trim_line(struct str line)
{
	size_t end = 0;

	for (size_t i = 0; i < line.len; i++) {
		if (line.ptr[i] == '\\' && i + 1 < line.len)
			end = ++i + 1;
		else if (line.ptr[i] != ' ')
			end = i + 1;
	}
	return str_first(line, end);
}

/* Only stars, at least two. */
static bool is_any_depth(struct str part)
{
	for (size_t i = 0; i < part.len; i++)
		if (part.ptr[i] != '*')
			return false;
	return part.len >= 2;
}

/* The next element: up to a '/' outside brackets; "\/" is one too. */
static struct str cut_element(struct str *rest)
{
	size_t i = 0, skip = 1;
	struct str part;

	while (i < rest->len && rest->ptr[i] != '/') {
		size_t n = rest->ptr[i] == '[' ? wild_class_len(str_from(*rest, i)) : 0;

		if (rest->ptr[i] == '\\' && i + 1 < rest->len) {
			if (rest->ptr[i + 1] == '/') {
				skip = 2;
				break;
			}
			n = 2;
		}
		i += n ? n : 1;
	}
	part = str_first(*rest, i);
	*rest = str_from(*rest, i + skip);
	return part;
}

static void parse_path(struct arena *arena, struct str pat, struct rule *rule)
{
	struct str rest = pat.ptr[0] == '/' ? str_from(pat, 1) : pat;

	rule->form = WHOLE_PATH;
	rule->fixed_depth = true;
	rule->elements = ARENA_ARRAY(arena, struct wild_element, pat.len + 2);
	while (rest.len) {
		struct str part = cut_element(&rest);
		struct wild_element *e = &rule->elements[rule->count++];

		e->any_depth = is_any_depth(part);
		if (e->any_depth)
			rule->fixed_depth = false;
		else
			wild_compile(arena, part, WILD_BYTES | WILD_STRICT, &e->wild);
	}
	/* at the end it takes at least one element: "a/" + "**" is what is in a, not a */
	if (rule->count && rule->elements[rule->count - 1].any_depth)
		wild_compile(arena, STR("*"), WILD_BYTES, &rule->elements[rule->count++].wild);
}

static bool parse_rule(struct arena *arena, struct str line, struct rule *rule)
{
	struct str pat = trim_line(line);

	*rule = (struct rule){0};
	if (pat.len == 0 || pat.ptr[0] == '#' || pat.len > PATTERN_LEN_MAX)
		return false;
	if (pat.ptr[0] == '!') {
		rule->negated = true;
		pat = str_from(pat, 1);
	}
	if (str_ends(pat, STR("/"))) {
		rule->dir_only = true;
		pat.len--;
	}
	if (pat.len == 0)
		return false;
	if (memchr(pat.ptr, '/', pat.len)) {
		parse_path(arena, pat, rule);
		return rule->count > 0;
	}
	wild_compile(arena, pat, WILD_BYTES | WILD_STRICT, &rule->wild);
	rule->form = ONE_NAME;
	if (rule->wild.shape == WILD_LITERAL)
		rule->form = BY_NAME;
	else if (rule->wild.shape == WILD_SUFFIX && str_rfind_char(rule->wild.lit, '.') == 0)
		rule->form = BY_EXTENSION;
	return rule->wild.shape != WILD_NEVER;
}

static void build_table(struct arena *arena, struct ignore *ig)
{
	uint32_t size = 4;

	while (size < 2 * ig->count)
		size *= 2;
	ig->mask = size - 1;
	ig->buckets = ARENA_ARRAY(arena, uint32_t, size);
	ig->others = ARENA_ARRAY(arena, uint32_t, ig->count + 1);
	for (uint32_t i = 0; i < ig->count; i++) {
		struct rule *rule = &ig->rules[i];
		uint32_t *bucket;

		if (rule->form == ONE_NAME || rule->form == WHOLE_PATH) {
			ig->others[ig->other_count++] = i;
			continue;
		}
		bucket = &ig->buckets[key_hash(rule->wild.lit, rule->form) & ig->mask];
		rule->next = *bucket;
		*bucket = i + 1;
	}
}

const struct ignore *ignore_outside_repository(struct arena *arena)
{
	struct ignore *ig = ARENA_NEW(arena, struct ignore);

	ig->outside = true;
	build_table(arena, ig);
	return ig;
}

static bool takes_everything(const struct rule *rule)
{
	if (rule->form == WHOLE_PATH)
		return rule->elements[rule->count - 1].wild.shape == WILD_ALL &&
		       (rule->count == 1 || (rule->count == 2 && rule->elements[0].any_depth));
	return rule->wild.shape == WILD_ALL;
}

const struct ignore *ignore_push(struct arena *arena, const struct ignore *parent, struct str dir, struct str text)
{
	struct ignore *ig = ARENA_NEW(arena, struct ignore);
	struct str rest = str_first(text, IGNORE_LEN_MAX), line;
	size_t lines = 1;

	if (str_starts(rest, STR("\xEF\xBB\xBF")))
		rest = str_from(rest, 3);
	for (size_t i = 0; i < rest.len; i++)
		lines += rest.ptr[i] == '\n';
	ig->parent = parent;
	ig->outside = parent && parent->outside;
	ig->dir = arena_str(arena, dir);
	ig->rules = ARENA_ARRAY(arena, struct rule, lines);
	while (str_cut(&rest, '\n', &line)) {
		if (str_ends(line, STR("\r")))
			line.len--;
		if (parse_rule(arena, line, &ig->rules[ig->count]))
			ig->count += !ig->outside || !takes_everything(&ig->rules[ig->count]);
	}
	if (ig->count == 0)
		return parent;
	build_table(arena, ig);
	return ig;
}

struct question {
	struct str path, name, extension;
	uint64_t name_hash, extension_hash;
	bool is_dir;
};

/* The last rule of a bucket that fits, + 1. */
static uint32_t look_up(const struct ignore *ig, uint64_t hash, struct str key, enum rule_form form, bool is_dir)
{
	for (uint32_t i = ig->buckets[hash & ig->mask]; i; i = ig->rules[i - 1].next) {
		const struct rule *rule = &ig->rules[i - 1];

		if (rule->form == form && (is_dir || !rule->dir_only) && str_eq(rule->wild.lit, key))
			return i;
	}
	return 0;
}

static bool rule_fits(const struct rule *rule, const struct question *q, struct str below, size_t depth)
{
	if (rule->dir_only && !q->is_dir)
		return false;
	if (rule->form == ONE_NAME)
		return wild_match(&rule->wild, q->name);
	if (rule->fixed_depth && rule->count != depth)
		return false;
	return wild_match_path(rule->elements, rule->count, below);
}

/* The rule of this set that decides, or NULL. */
static const struct rule *decide(const struct ignore *ig, const struct question *q)
{
	struct str below = str_from(q->path, ig->dir.len ? ig->dir.len + 1 : 0);
	uint32_t best = look_up(ig, q->name_hash, q->name, BY_NAME, q->is_dir), n;
	size_t depth = 1;

	if (q->extension.len) {
		n = look_up(ig, q->extension_hash, q->extension, BY_EXTENSION, q->is_dir);
		best = n > best ? n : best;
	}
	for (size_t i = 0; i < below.len; i++)
		depth += below.ptr[i] == '/';
	for (n = ig->other_count; n > 0 && ig->others[n - 1] + 1 > best; n--)
		if (rule_fits(&ig->rules[ig->others[n - 1]], q, below, depth))
			return &ig->rules[ig->others[n - 1]];
	return best ? &ig->rules[best - 1] : NULL;
}

bool ignore_match(const struct ignore *ig, struct str path, bool is_dir)
{
	size_t slash = str_rfind_char(path, '/'), dot;
	struct question q = {.path = path, .is_dir = is_dir};

	q.name = slash < path.len ? str_from(path, slash + 1) : path;
	if (str_eq(q.name, STR(".git")))
		return true;
	if (!ig)
		return false;
	dot = str_rfind_char(q.name, '.');
	q.extension = str_from(q.name, dot);
	q.name_hash = key_hash(q.name, BY_NAME);
	q.extension_hash = key_hash(q.extension, BY_EXTENSION);
	for (; ig; ig = ig->parent) {
		const struct rule *rule = decide(ig, &q);

		if (rule)
			return !rule->negated;
	}
	return false;
}
