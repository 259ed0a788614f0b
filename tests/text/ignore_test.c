/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "text/ignore.h"

static bool ignored(const char *text, const char *path, bool is_dir)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	return ignore_match(ignore_push(arena, NULL, STR(""), str_of(text)), str_of(path), is_dir);
}

TEST(git_itself_is_always_left_out)
{
	CHECK(ignore_match(NULL, STR(".git"), true));
	CHECK(ignore_match(NULL, STR("sub/.git"), false));
	CHECK(!ignore_match(NULL, STR(".gitignore"), false));
	CHECK(ignored("!.git", ".git", true));
}

TEST(a_name_matches_at_any_depth_and_a_path_only_where_it_is_anchored)
{
	CHECK(ignored("foo", "a/b/foo", false));
	CHECK(!ignored("/foo", "a/foo", false));
	CHECK(ignored("/foo", "foo", false));
	CHECK(ignored("a/b", "a/b", false));
	CHECK(!ignored("a/b", "x/a/b", false));
	CHECK(ignored("**/a/b", "x/a/b", false));
	CHECK(ignored("*.o", "a/b.o", false));
	CHECK(!ignored("*.o", "a/b.o.c", false));
	CHECK(!ignored("a/*", "a/b/c", false));
}

TEST(a_rule_for_directories_does_not_touch_files)
{
	CHECK(ignored("build/", "x/build", true));
	CHECK(!ignored("build/", "x/build", false));
}

TEST(two_stars_take_directories_only_as_a_whole_element)
{
	CHECK(ignored("a/**/b", "a/b", false));
	CHECK(ignored("a/**/b", "a/x/y/b", false));
	CHECK(ignored("a/**", "a/x", false));
	CHECK(!ignored("a/**", "a", true));
	CHECK(!ignored("x/a**b", "x/a/b", false));
}

TEST(the_last_rule_that_matches_decides)
{
	CHECK(!ignored("*.log\n!keep.log\n", "keep.log", false));
	CHECK(ignored("!keep.log\n*.log\n", "keep.log", false));
	CHECK(ignored("*.log\n!keep.log\nkeep.*\n", "keep.log", false));
	CHECK(!ignored("keep.*\n!*.log", "keep.log", false));
}

TEST(comments_escapes_spaces_and_line_ends_are_read_as_git_reads_them)
{
	CHECK(!ignored("#a", "#a", false));
	CHECK(ignored("\\#a", "#a", false));
	CHECK(ignored("\\!a", "!a", false));
	CHECK(ignored("a  ", "a", false));
	CHECK(ignored("a\\ ", "a ", false));
	CHECK(ignored("a\r\nb\r\n", "a", false));
	CHECK(ignored("\xEF\xBB\xBF"
		      "a",
		      "a", false));
	CHECK(ignored("b", "b", false));
	CHECK(!ignored("[a", "[a", false));
	CHECK(!ignored("?", "\xC3\xA9", false));
	CHECK(ignored("[[:upper:]]x", "Qx", false));
}

TEST(a_deeper_file_overrules_the_ones_above_it)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct ignore *root = ignore_push(arena, NULL, STR(""), STR("*.txt\n"));
	const struct ignore *sub = ignore_push(arena, root, STR("sub"), STR("!a.txt\n/only\n"));

	CHECK(!ignore_match(sub, STR("sub/a.txt"), false));
	CHECK(ignore_match(sub, STR("sub/b.txt"), false));
	CHECK(ignore_match(sub, STR("sub/only"), false));
	CHECK(!ignore_match(sub, STR("sub/x/only"), false));
}

TEST(outside_a_repository_a_rule_that_takes_everything_is_dropped)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct ignore *base = ignore_outside_repository(arena);
	const struct ignore *ig = ignore_push(arena, base, STR(""), STR("*.o\n/*\n*\n"));

	CHECK(!ignore_match(ig, STR("a"), false));
	CHECK(ignore_match(ig, STR("a.o"), false));
	CHECK(ignored("/*\n", "a", false));
	CHECK(!ignore_match(base, STR("a"), false));
}
