/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "base/limits.h"
#include "test.h"
#include "text/diff.h"

static const struct diff_marks marks = {"[-", "-]", "{+", "+}"};

static struct str words(struct arena *arena, const char *before, const char *after)
{
	struct buf out;

	buf_init(&out, arena, MIB);
	diff_words(arena, str_of(before), str_of(after), &marks, &out);
	return buf_str(&out);
}

TEST(a_changed_word_is_marked_and_nothing_else)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(words(arena, "the old house, here\n", "the new house, here\n"),
		  STR("the [-old-]{+new+} house, here\n"));
	CHECK_STR(words(arena, "f(a, b);\n", "f(a);\n"), STR("f(a[-, b-]);\n"));
	CHECK_STR(words(arena, "na\xc3\xafve\n", "naive\n"), STR("[-na\xc3\xafve-]{+naive+}\n"));
	CHECK_STR(words(arena, "same\n", "same\n"), STR("same\n"));
}

TEST(marks_end_with_the_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	CHECK_STR(words(arena, "a\n", "a\nb c\nd\n"), STR("a\n{+b c+}\n{+d+}\n"));
	CHECK_STR(words(arena, "a\nb\n", "a b\n"), STR("a{+ +}b\n"));
	CHECK_STR(words(arena, "x", "y"), STR("[-x-]{+y+}\n"));
}

TEST(a_unified_difference_becomes_one_by_words)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf unified, out;

	buf_init(&unified, arena, MIB);
	buf_init(&out, arena, MIB);
	diff_unified(arena, STR("one\n-- two\nthree\n"), STR("one\n-- 2\nthree\nfour"), STR("f"), UINT_MAX, &unified);
	diff_by_words(arena, buf_str(&unified), &marks, &out);
	CHECK_STR(buf_str(&out), STR("--- f\n+++ f\n@@ -1,3 +1,4 @@\none\n-- [-two-]{+2+}\nthree\n{+four+}\n"));
}

TEST(a_whole_difference_cuts_no_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str line = arena_printf(arena, "%0600d\n", 7);
	struct buf out;

	buf_init(&out, arena, MIB);
	diff_unified(arena, STR(""), line, STR_NONE, UINT_MAX, &out);
	CHECK_HAS(buf_str(&out), line);
}
