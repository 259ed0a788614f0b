/* SPDX-License-Identifier: Apache-2.0 */
/* The searcher against PCRE2 itself, on generated patterns and lines; and the parts that make it fast, each alone. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "test.h"
#include "text/grep.h"
#include "text/literal.h"
#include "text/regex.h"

static uint64_t state = 0x9E3779B97F4A7C15u;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

struct text {
	char bytes[4096];
	size_t len;
};

static void add(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if (t->len + n < sizeof(t->bytes)) {
		memcpy(t->bytes + t->len, s, n);
		t->len += n;
	}
}

static void pattern(struct text *t, unsigned depth)
{
	static const char *const atoms[] = {"a",           "b",    "foo",  "ab",          "\\w",         "\\s",
					    "\\d",         "[^a]", ".",    "[a-c]",       "[ab_]+",      "\xC3\xA9",
					    "[^\\s]",      "^",    "$",    "\\b",         "\\B",         "_X",
					    "\\W",         "\\S*", "x{2}", "[[:upper:]]", "[[:cntrl:]]", "[[:^print:]]",
					    "[[:graph:]]", "\\.",  "(?:)", "\\x62",       "barb"};
	static const char *const repeats[] = {"", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"};

	for (unsigned i = 0, n = 1 + pick(4); i < n; i++) {
		size_t before = t->len;

		if (depth && pick(3) == 0) {
			add(t, pick(2) ? "(" : "(?:");
			pattern(t, depth - 1);
			if (pick(2)) {
				add(t, "|");
				pattern(t, depth - 1);
			}
			add(t, ")");
		} else {
			add(t, atoms[pick(sizeof(atoms) / sizeof(atoms[0]))]);
		}
		/* an assertion or a closed repeat takes no second one */
		if (memchr("^$bB*+?}", t->bytes[t->len - 1], 8) == NULL || t->bytes[before] == '(')
			add(t, repeats[pick(sizeof(repeats) / sizeof(repeats[0]))]);
	}
}

static void lines(struct text *t)
{
	static const char *const parts[] = {"a",   "b",        "c", "foo", "ab",           " ",  "_X", "x",
					    "xx",  "\xC3\xA9", ".", "1",   "\xE2\x82\xAC", "\n", "\n", "\t",
					    "FOO", "A",        "",  "barb"};

	for (unsigned i = 0, n = pick(60); i < n; i++)
		add(t, parts[pick(sizeof(parts) / sizeof(parts[0]))]);
}

/* Line by line with PCRE2: the numbers of the lines that match, as text. */
static struct str ask_pcre2(struct arena *arena, pcre2_code *code, struct str text)
{
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	struct str rest = text, line, out = STR("");

	pcre2_set_match_limit(limits, 20000);
	for (int n = 1; rest.len && out.ptr && str_cut(&rest, '\n', &line); n++) {
		int r = pcre2_match(code, (PCRE2_SPTR)line.ptr, line.len, 0, 0, data, limits);

		if (r >= 0)
			out = arena_printf(arena, "%.*s %d", STR_ARG(out), n);
		else if (r != PCRE2_ERROR_NOMATCH)
			out = STR_NONE; /* too much for it */
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(limits);
	return out;
}

static struct str ask_searcher(struct arena *arena, const struct matcher *m, struct str text)
{
	struct searcher *s = searcher_new(m);
	struct str line, out = STR("");
	size_t from = 0;
	struct err err;
	int r;

	searcher_begin(s, text);
	while ((r = searcher_next(s, from, &line, &from, &err)) == 1)
		out = arena_printf(arena, "%.*s %d", STR_ARG(out),
				   1 + (int)newline_count(text.ptr, (size_t)(line.ptr - text.ptr)));
	searcher_destroy(s);
	return r ? STR_NONE : out;
}

TEST(the_searcher_finds_the_lines_that_pcre2_finds)
{
	int asked = 0, too_hard = 0;

	for (int i = 0; i < 15000; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct text p = {.len = 0}, t = {.len = 0};
		bool nocase = pick(4) == 0;
		struct matcher *m;
		pcre2_code *code;
		struct err err;
		struct str want, got;
		PCRE2_SIZE at;
		int e;

		pattern(&p, 2);
		code = pcre2_compile((PCRE2_SPTR)p.bytes, p.len,
				     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (nocase ? PCRE2_CASELESS : 0), &e, &at,
				     NULL);
		if (!code)
			continue;
		CHECK_OK(matcher_new(arena, str_n(p.bytes, p.len), nocase ? MATCH_NOCASE : 0, &m, &err), err);
		for (int k = 0; k < 5; k++) {
			t.len = 0;
			lines(&t);
			want = ask_pcre2(arena, code, str_n(t.bytes, t.len));
			got = ask_searcher(arena, m, str_n(t.bytes, t.len));
			asked++;
			too_hard += got.ptr == NULL || want.ptr == NULL;
			if (got.ptr && want.ptr && !str_eq(want, got))
				TEST_FAIL("%.*s%s on \"%.*s\": lines%.*s, but PCRE2 says%.*s", (int)p.len, p.bytes,
					  nocase ? " (nocase)" : "", (int)t.len, t.bytes, STR_ARG(got), STR_ARG(want));
		}
		matcher_destroy(m);
		pcre2_code_free(code);
	}
	/* PCRE2 finds a few of them too much */
	CHECK(asked > 10000 && too_hard * 50 < asked);
}

static size_t literals_of(struct arena *arena, const char *re_text, struct str *out, bool *exact)
{
	struct re re;

	regex_parse(arena, str_of(re_text), false, &re);
	return regex_literals(arena, &re, out, exact);
}

TEST(the_text_that_a_match_must_have_is_known)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str t[LITERALS_MAX];
	bool exact;

	CHECK_INT(literals_of(arena, "[A-Z]+_SUSPEND", t, &exact), 1);
	CHECK_STR(t[0], STR("_SUSPEND"));
	CHECK(!exact);
	CHECK_INT(literals_of(arena, "foo|ba[rz]", t, &exact), 3);
	CHECK(exact);
	CHECK_INT(literals_of(arena, "\\bword\\b", t, &exact), 1);
	CHECK(!exact);
	CHECK_INT(literals_of(arena, "(?=x)needle\\1?", t, &exact), 1);
	CHECK_STR(t[0], STR("needle"));
	CHECK_INT(literals_of(arena, "\\w{5}\\s+\\w{5}", t, &exact), 0);
	CHECK_INT(literals_of(arena, "foo|", t, &exact), 0);
	CHECK_INT(literals_of(arena, "(abc)*", t, &exact), 0);
	CHECK_INT(literals_of(arena, "a(bcd)+", t, &exact), 1);
	CHECK_STR(t[0], STR("bcd"));
}

TEST(literals_are_found_wherever_they_stand)
{
	static const struct str sets[][3] = {{STR("needle")},
					     {STR("x")},
					     {STR("ab"), STR("zz9")},
					     {STR("Qu"), STR("needle"), STR("long_word_here")}};
	static const size_t counts[] = {1, 1, 2, 3};
	char data[300];

	for (size_t s = 0; s < 4; s++)
		for (size_t k = 0; k < counts[s]; k++)
			for (size_t at = 0; at + sets[s][k].len <= 300; at++) {
				ARENA_SCOPE struct arena *arena = arena_new();
				const struct literals *l = literals_new(arena, sets[s], counts[s], at % 2);
				size_t got;

				memset(data, '-', sizeof(data));
				CHECK_INT(literals_find(l, str_n(data, 300), 0), SIZE_MAX);
				memcpy(data + at, sets[s][k].ptr, sets[s][k].len);
				got = literals_find(l, str_n(data, 300), 0);
				CHECK(got >= at && got < at + sets[s][k].len);
				CHECK_INT(literals_find(l, str_n(data, at + sets[s][k].len - 1), 0), SIZE_MAX);
			}
}

TEST(newlines_are_counted_in_texts_of_any_length)
{
	char text[20000];

	memset(text, '\n', sizeof(text));
	for (size_t len = 0; len < sizeof(text); len += 1 + len / 16)
		CHECK_INT(newline_count(text, len), len);
}
