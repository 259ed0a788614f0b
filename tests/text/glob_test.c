/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "test.h"
#include "text/glob.h"

static const struct glob *compile(struct arena *arena, const char *pattern, unsigned flags)
{
	const struct glob *g = NULL;
	struct err err;

	CHECK_OK(glob_compile(arena, str_of(pattern), flags, &g, &err), err);
	return g;
}

struct row {
	const char *pattern, *path;
	bool match;
};

static void check_rows(const struct row *rows, size_t n, unsigned flags)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < n; i++)
		if (glob_match(compile(arena, rows[i].pattern, flags), str_of(rows[i].path)) != rows[i].match)
			TEST_FAIL("%s against %s should be %d", rows[i].pattern, rows[i].path, rows[i].match);
}
#define CHECK_ROWS(rows, flags) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), flags)

/* What picomatch and minimatch (dot: true) answer. */
TEST(globs_answer_as_the_common_matchers_do)
{
	static const struct row rows[] = {
		{"*.md", "a.md", true},
		{"*.md", "a/b.md", false},
		{"*.md", ".md", true},
		{"**/*.md", "a.md", true},
		{"**/*.md", "a/b/c.md", true},
		{"**/*.md", ".hidden/.x.md", true},
		{"**/*.md", "a.mdx", false},
		{"**", "a/b/.c", true},
		{"**", "a", true},
		{"*", ".env", true},
		{"*", "a/b", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/y/c", false},
		{"a/**/b", "ab", false},
		{"a/**", "a/b/c", true},
		{"a/**", "a", true},
		{"a/**", "ab", false},
		{"**/a/**", "x/a/y", true},
		{"**/b/**/c", "a/b/b/x/c", true},
		{"a/*/c", "a/b/c", true},
		{"a/*/c", "a/b/b/c", false},
		{"a**b", "axxb", true},
		{"a**b", "a/b", false},
		{"**.c", "a.c", true},
		{"**.c", "a/b.c", false},
		{"?.c", "a.c", true},
		{"?.c", ".c", false},
		{"?.c", "\xC3\xA9.c", true},
		{"a?b", "a/b", false},
		{"[a-c].x", "b.x", true},
		{"[!a-c].x", "b.x", false},
		{"[^a-c].x", "d.x", true},
		{"[]].x", "].x", true},
		{"[[:digit:]]x", "7x", true},
		{"[[:digit:]]x", "ax", false},
		{"[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", true},
		{"a[!x]b", "a/b", false},
		{"{a,b}.c", "b.c", true},
		{"{a,b}.c", "c.c", false},
		{"{a,b{c,d}}e", "bde", true},
		{"{a,b{c,d}}e", "be", false},
		{"{src/**,lib}/x", "src/a/b/x", true},
		{"{src/**,lib}/x", "lib/x", true},
		{"{src/**,lib}/x", "lib/a/x", false},
		{"x{**,b}/c", "xyz/c", true},
		{"x{**,b}/c", "x/y/c", false},
		{"{a}", "{a}", true},
		{"{a", "{a", true},
		{"a{,b}", "a", true},
		{"a{,b}", "ab", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"\\{a,b\\}", "{a,b}", true},
		{"a[", "a[", true},
		{"./a.c", "a.c", true},
		{"/a.c", "a.c", true},
		{"a//b", "a/b", true},
		{"src/", "src/a/b", true},
		{"*a*b*c*", "xxaxxbxxcxx", true},
		{"*a*b*c*", "xxaxxcxxbxx", false},
		{"README.MD", "README.md", false},
	};

	CHECK_ROWS(rows, 0);
}

TEST(a_pattern_without_a_slash_matches_the_name_at_any_depth_when_asked)
{
	static const struct row rows[] = {
		{"*.c", "a/b/c.c", true}, {"*.c", "c.c", true},           {"a/*.c", "x/a/b.c", false},
		{"/*.c", "a/b.c", false}, {"{*.h,a/*.c}", "x/y.h", true}, {"{*.h,a/*.c}", "x/a/y.c", false},
	};

	CHECK_ROWS(rows, GLOB_BASENAME);
}

TEST(case_is_ignored_when_asked)
{
	static const struct row rows[] = {
		{"README.MD", "readme.md", true}, {"[a-c]*", "Bx", true}, {"[A-C]*", "bx", true}, {"*.c", "X.C", true}};

	CHECK_ROWS(rows, GLOB_NOCASE);
}

TEST(a_walk_learns_which_directories_to_leave_out)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct glob *g = compile(arena, "src/*/x/{a,b}.c", 0);

	CHECK(glob_may_match_below(g, STR("src")));
	CHECK(glob_may_match_below(g, STR("src/any/x")));
	CHECK(!glob_may_match_below(g, STR("lib")));
	CHECK(!glob_may_match_below(g, STR("src/any/y")));
	CHECK(!glob_may_match_below(g, STR("src/any/x/deeper")));
	CHECK(glob_may_match_below(compile(arena, "a/**/b", 0), STR("a/q/r/s")));
	CHECK(!glob_may_match_below(compile(arena, "a/**/b", 0), STR("b")));
	CHECK(glob_may_match_below(compile(arena, "*.c", GLOB_BASENAME), STR("any/where")));
}

TEST(a_hostile_glob_takes_no_more_time_than_its_size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char pattern[2001], name[256], path[1001];

	for (size_t i = 0; i < 2000; i += 2)
		memcpy(pattern + i, "*a", 2);
	memset(name, 'a', 255);
	pattern[200] = '\0';
	CHECK(!glob_match(compile(arena, pattern, 0), str_n(name, 99)));
	CHECK(glob_match(compile(arena, pattern, 0), str_n(name, 255)));
	for (size_t i = 0; i < 1998; i += 3)
		memcpy(pattern + i, "**/", 3);
	memcpy(pattern + 1998, "b", 2);
	for (size_t i = 0; i < 1000; i += 2)
		memcpy(path + i, "a/", 2);
	CHECK(!glob_match(compile(arena, pattern, 0), str_n(path, 999)));
}

TEST(a_glob_that_cannot_be_used_says_why)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct glob *g;
	struct err err;
	char big[PATTERN_LEN_MAX + 1];

	CHECK_ERR(glob_compile(arena, STR(""), 0, &g, &err), err, ERR_INVALID);
	CHECK_ERR(glob_compile(arena, STR("a\xFF"), 0, &g, &err), err, ERR_INVALID);
	CHECK_ERR(glob_compile(arena, STR("../a"), 0, &g, &err), err, ERR_INVALID);
	memset(big, '*', sizeof(big));
	CHECK_ERR(glob_compile(arena, str_n(big, sizeof(big)), 0, &g, &err), err, ERR_TOO_LARGE);
	for (size_t i = 0; i < 4000; i += 5)
		memcpy(big + i, "{a,b}", 5);
	CHECK_ERR(glob_compile(arena, str_n(big, 4000), 0, &g, &err), err, ERR_TOO_LARGE);
	memset(big, '{', sizeof(big));
	CHECK_ERR(glob_compile(arena, str_n(big, PATTERN_LEN_MAX), 0, &g, &err), err, ERR_TOO_LARGE);
}
