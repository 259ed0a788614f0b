/* SPDX-License-Identifier: Apache-2.0 */
/* Three-way merges: what becomes of both sides' changes, and that no line is ever lost. */
#include "base/limits.h"
#include "test.h"
#include "text/diff.h"
#include "text/merge.h"

static const struct merge_labels labels = {STR("ours"), STR("base"), STR("theirs")};

struct merged {
	struct arena *arena;
	struct str text;
	size_t conflicts;
};

static void merged_end(struct merged *m)
{
	arena_destroy(m->arena);
}
#define MERGED __attribute__((cleanup(merged_end))) struct merged

static struct merged merge(struct str base, struct str ours, struct str theirs)
{
	struct merged m = {.arena = arena_new()};
	struct buf out;

	buf_init(&out, m.arena, 1 << 20);
	m.conflicts = merge_lines(m.arena, base, ours, theirs, &labels, &out);
	m.text = out.ptr ? buf_str(&out) : STR("");
	return m;
}

TEST(changes_in_different_places_are_both_made)
{
	MERGED m = merge(STR("a\nb\nc\nd\ne\n"), STR("A\nb\nc\nd\ne\n"), STR("a\nb\nc\nd\nE\nf\n"));

	CHECK_INT(m.conflicts, 0);
	CHECK_STR(m.text, STR("A\nb\nc\nd\nE\nf\n"));
}

TEST(the_same_change_on_both_sides_is_made_once)
{
	MERGED m = merge(STR("a\nb\nc\n"), STR("a\nB\nc\n"), STR("a\nB\nc\n"));

	CHECK_INT(m.conflicts, 0);
	CHECK_STR(m.text, STR("a\nB\nc\n"));
}

TEST(a_conflict_shows_all_three_sides)
{
	MERGED m = merge(STR("a\nb\nc\n"), STR("a\nX\nc\n"), STR("a\nY\nc\n"));

	CHECK_INT(m.conflicts, 1);
	CHECK_STR(m.text, STR("a\n<<<<<<< ours\nX\n||||||| base\nb\n=======\nY\n>>>>>>> theirs\nc\n"));
}

TEST(changes_of_neighbouring_lines_are_a_conflict)
{
	MERGED m = merge(STR("a\nb\nc\n"), STR("A\nb\nc\n"), STR("a\nB\nc\n"));

	CHECK_INT(m.conflicts, 1);
}

TEST(a_removed_and_a_changed_line_are_a_conflict)
{
	MERGED m = merge(STR("a\nb\nc\n"), STR("a\nc\n"), STR("a\nB\nc\n"));

	CHECK_INT(m.conflicts, 1);
}

TEST(two_different_new_files_are_a_conflict)
{
	MERGED m = merge(STR(""), STR("x\n"), STR("y\n"));

	CHECK_INT(m.conflicts, 1);
	CHECK_STR(m.text, STR("<<<<<<< ours\nx\n||||||| base\n=======\ny\n>>>>>>> theirs\n"));
}

TEST(a_last_line_without_an_end_stays_so)
{
	MERGED m = merge(STR("a\nb\nc\nd"), STR("A\nb\nc\nd"), STR("a\nb\nc\nD"));

	CHECK_INT(m.conflicts, 0);
	CHECK_STR(m.text, STR("A\nb\nc\nD"));
}

TEST(markers_stand_on_lines_of_their_own_and_end_as_the_text_does)
{
	MERGED m = merge(STR("a\r\nb"), STR("a\r\nx"), STR("a\r\ny"));

	CHECK_INT(m.conflicts, 1);
	CHECK_STR(m.text, STR("a\r\n<<<<<<< ours\r\nx\r\n||||||| base\r\nb\r\n=======\r\ny\r\n>>>>>>> theirs\r\n"));
}

/* --- generated texts; every line that is ever written is another one --- */

struct gen {
	struct arena *arena;
	uint64_t seed;
	unsigned lines;
	bool crlf, open_end;
};

static unsigned below(struct gen *g, unsigned n)
{
	g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(g->seed >> 33) % n;
}

static struct str new_line(struct gen *g)
{
	static const char *const words[] = {"plain", "\xC3\xA4\xC3\xB6", "\xE6\x97\xA5\xE6\x9C\xAC", "  indented", ""};

	return arena_printf(g->arena, "%s#%u%s", words[below(g, 5)], g->lines++, g->crlf ? "\r\n" : "\n");
}

struct text {
	struct str line[200];
	size_t count;
};

static void insert(struct text *t, size_t at, struct str line)
{
	memmove(t->line + at + 1, t->line + at, (t->count - at) * sizeof(*t->line));
	t->line[at] = line;
	t->count++;
}

static void drop(struct text *t, size_t at)
{
	memmove(t->line + at, t->line + at + 1, (t->count - at - 1) * sizeof(*t->line));
	t->count--;
}

static void change(struct gen *g, struct text *t, unsigned times)
{
	while (times--) {
		size_t at = below(g, (unsigned)t->count + 1);
		unsigned what = below(g, 3);

		if (what == 0 || at == t->count)
			insert(t, at, new_line(g));
		else if (what == 1)
			drop(t, at);
		else
			t->line[at] = new_line(g);
	}
}

static struct str join(struct gen *g, const struct text *t)
{
	struct buf b;

	buf_init(&b, g->arena, 1 << 20);
	for (size_t i = 0; i < t->count; i++)
		buf_add(&b, t->line[i]);
	if (g->open_end && b.len)
		b.len -= g->crlf ? 2 : 1;
	return b.ptr ? buf_str(&b) : STR("");
}

static bool has(const struct text *t, struct str line)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->line[i], line))
			return true;
	return false;
}

static struct str bare(struct str line)
{
	while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
		line.len--;
	return line;
}

/* How often the line occurs in the text. */
static unsigned times_in(struct str text, struct str line)
{
	struct str rest = text, one;
	unsigned n = 0;

	while (str_cut(&rest, '\n', &one))
		n += str_eq(bare(one), bare(line));
	return n;
}

static void check_lines(const struct text *base, const struct text *side, const struct text *other, struct str out,
			size_t conflicts)
{
	for (size_t i = 0; i < side->count; i++) {
		bool added = !has(base, side->line[i]), kept = has(other, side->line[i]);

		if ((added || kept) && times_in(out, side->line[i]) < 1)
			TEST_FAIL("the line %.*s is lost", STR_ARG(bare(side->line[i])));
		if (!conflicts && times_in(out, side->line[i]) > 1)
			TEST_FAIL("the line %.*s came twice", STR_ARG(bare(side->line[i])));
	}
	for (size_t i = 0; !conflicts && i < base->count; i++)
		if ((!has(side, base->line[i]) || !has(other, base->line[i])) && times_in(out, base->line[i]))
			TEST_FAIL("the line %.*s was removed and came back", STR_ARG(bare(base->line[i])));
}

static void merge_generated(uint64_t seed, size_t *clean)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct gen g = {.arena = arena, .seed = seed, .crlf = seed % 3 == 0, .open_end = seed % 4 == 0};
	struct text base = {0}, ours, theirs;
	unsigned lines = below(&g, 60);

	while (base.count < lines)
		insert(&base, base.count, new_line(&g));
	ours = theirs = base;
	change(&g, &ours, below(&g, 5));
	change(&g, &theirs, below(&g, 5));
	{
		MERGED m = merge(join(&g, &base), join(&g, &ours), join(&g, &theirs));
		MERGED other = merge(join(&g, &base), join(&g, &theirs), join(&g, &ours));

		check_lines(&base, &ours, &theirs, m.text, m.conflicts);
		check_lines(&base, &theirs, &ours, m.text, m.conflicts);
		CHECK_INT(other.conflicts, m.conflicts);
		if (!m.conflicts)
			CHECK(str_eq(m.text, other.text));
		*clean += m.conflicts == 0;
	}
}

TEST(no_line_is_lost_in_generated_merges)
{
	size_t clean = 0;

	for (uint64_t seed = 1; seed <= 4000; seed++)
		merge_generated(seed, &clean);
	CHECK(clean > 1000 && clean < 4000); /* both kinds came */
}

TEST(a_side_that_did_nothing_leaves_the_other_as_it_is)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct gen g = {.arena = arena, .seed = seed, .open_end = seed % 2};
		struct text base = {0}, side;

		change(&g, &base, 30);
		side = base;
		change(&g, &side, 10);
		{
			MERGED mine = merge(join(&g, &base), join(&g, &side), join(&g, &base));
			MERGED theirs = merge(join(&g, &base), join(&g, &base), join(&g, &side));

			CHECK(str_eq(mine.text, join(&g, &side)));
			CHECK(str_eq(theirs.text, join(&g, &side)));
			CHECK_INT(mine.conflicts + theirs.conflicts, 0);
		}
	}
}

TEST(texts_with_nothing_in_common_are_one_conflict_with_every_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf base, ours, theirs;

	buf_init(&base, arena, 1 << 20);
	buf_init(&ours, arena, 1 << 20);
	buf_init(&theirs, arena, 1 << 20);
	for (int i = 0; i < 3000; i++) { /* more than the search for the shortest difference handles */
		buf_printf(&base, "b%d\n", i);
		buf_printf(&ours, "o%d\n", i);
		buf_printf(&theirs, "t%d\n", i);
	}
	{
		MERGED m = merge(buf_str(&base), buf_str(&ours), buf_str(&theirs));

		CHECK_INT(m.conflicts, 1);
		CHECK_INT(count_lines(m.text), 3 * 3000 + 4);
	}
}

TEST(a_difference_in_a_large_text_is_found_wherever_it_lies)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	for (int line = 1; line <= 500; line += 37) {
		struct buf before, after, diff;

		buf_init(&before, arena, 1 * MIB);
		buf_init(&after, arena, 1 * MIB);
		buf_init(&diff, arena, 1 * MIB);
		for (int i = 1; i <= 500; i++) {
			buf_printf(&before, "line %d\n", i);
			if (i != line)
				buf_printf(&after, "line %d\n", i);
		}
		diff_unified(arena, buf_str(&before), buf_str(&after), STR(""), 100, &diff);
		CHECK(str_find(buf_str(&diff), arena_printf(arena, "\n-line %d\n", line), 0) != SIZE_MAX);
		CHECK_STR(str_first(buf_str(&diff), str_find_char(buf_str(&diff), '\n')),
			  arena_printf(arena, "@@ -%d,%d +%d,%d @@", line > 3 ? line - 3 : 1,
				       (line > 3 ? 3 : line - 1) + 1 + (500 - line > 3 ? 3 : 500 - line),
				       line > 3 ? line - 3 : 1,
				       (line > 3 ? 3 : line - 1) + (500 - line > 3 ? 3 : 500 - line)));
	}
}
