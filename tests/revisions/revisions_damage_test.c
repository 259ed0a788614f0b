/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage of every kind in a log and its contents: each bit flipped, each line removed, swapped with the next or cut,
 * each segment removed or cut. Nothing wrong is ever returned: an answer is right or an error. A check finds each
 * damage, and after a repair everything that is left is right and can be used.
 */
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/store_fix.h"

#define HEAD 9

static const struct {
	const char *path;
	const char *at[HEAD + 1]; /* its content after each revision */
} truth[] = {
	{"a", {NULL, "one", "one", "two", "two", "two", "two", NULL, NULL, NULL}},
	{"b",
	 {NULL, NULL, "first", "first", "first,second", "first,second", "first,second", "first,second", "two", "two"}},
	{"c", {NULL, NULL, NULL, NULL, NULL, "c", "c", "c", "c", "c"}},
	{"big", {NULL, NULL, NULL, NULL, NULL, NULL, "B", "B", "B", "B"}},
	{"d", {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "d"}},
};

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static char big[70000];

struct file {
	struct wpath path;
	struct str bytes;
};
static struct file files[16];
static size_t file_count;

static struct store *open_over(struct store *inner, struct store *meta)
{
	struct revisions_opts opts = {0};
	struct store *rev;

	CHECK_OK(store_revisions_open(store_share(inner), store_share(meta), opts, &ctx, &rev, &err), err);
	return rev;
}

static void put_text(struct store *rev, const char *path, const char *text)
{
	CHECK_OK(store_write(rev, &ctx, P(path), str_of(text), ANY, NULL, &err), err);
}

/* The log with the revisions of `truth`, as its files. */
static void make(struct store *inner)
{
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store *meta = store_memory_new(), *rev = open_over(inner, meta);
	struct store_page page;

	memset(big, 'b', sizeof(big) - 1);
	put_text(rev, "a", "one");
	put_text(rev, "b", "first");
	put_text(rev, "a", "two");
	CHECK_OK(store_append(rev, &ctx, P("b"), STR(",second"), ANY, NULL, &err), err);
	put_text(rev, "c", "c");
	put_text(rev, "big", big);
	CHECK_OK(store_move(rev, &ctx, P("a"), P("b"), ANY, ANY, NULL, &err), err);
	put_text(rev, "d", "d");
	store_destroy(rev);
	CHECK_OK(store_list(meta, &ctx, WPATH_ROOT, &req, &page, &err), err);
	file_count = page.count;
	for (size_t i = 0; i < page.count; i++) {
		files[i].path = page.entries[i].path;
		CHECK_OK(store_read(meta, &ctx, files[i].path, STORE_WHOLE, MIB, &files[i].bytes, NULL, &err), err);
	}
	store_destroy(meta);
}

static int push(void *arg, const void *bytes, size_t len, struct err *e)
{
	(void)e;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

/* Asks for everything: returns how many answers were errors other than "it was not there". A wrong answer fails. */
static size_t ask(struct store *rev, const char *what)
{
	size_t errors = 0;

	for (size_t p = 0; p < sizeof(truth) / sizeof(truth[0]); p++)
		for (uint64_t n = 0; n <= HEAD; n++) {
			ARENA_SCOPE struct arena *own = arena_new();
			struct ctx c = {.arena = own};
			struct rev_state state;
			struct buf got;
			struct sink sink = {.push = push, .arg = &got};
			const char *want = truth[p].at[n];
			int r;

			buf_init(&got, own, MIB);
			r = revisions_read(rev, &c, P(truth[p].path), n, STORE_WHOLE, &sink, &state, &err);
			if (r == -ERR_CORRUPT || (r == -ERR_NOT_FOUND && want)) {
				errors++;
				continue;
			}
			if (r == -ERR_NOT_FOUND)
				continue;
			CHECK_OK(r, err);
			if (want && want[0] == 'B')
				want = big;
			if (!want || !str_eq(buf_str(&got), str_of(want)))
				TEST_FAIL("%s: \"%s\" at revision %llu is \"%.*s\"", what, truth[p].path,
					  (unsigned long long)n, (int)(got.len < 40 ? got.len : 40), got.ptr);
		}
	return errors;
}

static void count_damage(void *arg, struct str sentence)
{
	(void)sentence;
	++*(size_t *)arg;
}

static struct store *meta_of(const struct file *list, size_t count)
{
	struct store *meta = store_memory_new();

	for (size_t i = 0; i < count; i++)
		if (list[i].bytes.ptr)
			CHECK_OK(store_write(meta, &ctx, list[i].path, list[i].bytes, ANY, NULL, &err), err);
	return meta;
}

/* One case: file `at` has other bytes (ptr NULL: it is gone). */
static void check_case(struct store *inner, size_t at, struct str bytes, const char *what)
{
	struct file changed[16];
	size_t found = 0, left = 0;
	struct rev_check check = {.found = count_damage, .arg = &found};
	struct store *meta, *rev;

	memcpy(changed, files, sizeof(changed));
	changed[at].bytes = bytes;
	meta = meta_of(changed, file_count);
	rev = open_over(inner, meta);
	ask(rev, what);
	CHECK_OK(revisions_check(rev, &ctx, &check, &err), err);
	if (!found)
		TEST_FAIL("%s: the check finds nothing", what);
	store_destroy(rev);
	check = (struct rev_check){.found = count_damage, .arg = &left, .repair = true};
	CHECK_OK(revisions_check_files(meta, &ctx, &check, &err), err);
	rev = open_over(inner, meta);
	ask(rev, arena_printf(arena, "%s, after the repair", what).ptr);
	put_text(rev, "after", "the repair");
	store_destroy(rev);
	store_destroy(meta);
}

static struct store *set_up(void)
{
	struct store *inner = store_memory_new();

	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	make(inner);
	return inner;
}

static void tear_down(struct store *inner)
{
	store_destroy(inner);
	arena_destroy(arena);
}

static size_t the_log(void)
{
	size_t i = 0;

	while (!str_starts(files[i].path.s, STR("log/")))
		i++;
	return i;
}

TEST(the_answers_of_a_whole_log_are_right)
{
	struct store *inner = set_up(), *meta = meta_of(files, file_count), *rev = open_over(inner, meta);
	size_t found = 0;
	struct rev_check check = {.found = count_damage, .arg = &found};

	CHECK_INT(ask(rev, "whole"), 0);
	CHECK_OK(revisions_check(rev, &ctx, &check, &err), err);
	CHECK_INT(found, 0);
	store_destroy(rev);
	store_destroy(meta);
	tear_down(inner);
}

TEST(every_flipped_bit_of_the_log_is_found)
{
	struct store *inner = set_up();
	size_t log = the_log(), cases = 0;

	for (size_t i = 0; i < files[log].bytes.len * 8; i++) {
		ARENA_SCOPE struct arena *own = arena_new();
		struct arena *outer = arena;
		struct str copy = arena_str(own, files[log].bytes);
		char what[64];

		((char *)copy.ptr)[i / 8] ^= (char)(1 << i % 8);
		snprintf(what, sizeof(what), "bit %zu of byte %zu", i % 8, i / 8);
		ctx.arena = arena = own;
		check_case(inner, log, copy, what);
		ctx.arena = arena = outer;
		cases++;
	}
	printf("# %zu cases\n", cases);
	tear_down(inner);
}

/* Where each line begins; one more than there are lines. */
static size_t line_starts(struct str bytes, size_t starts[64])
{
	size_t count = 0;

	starts[count++] = 0;
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i] == '\n')
			starts[count++] = i + 1;
	return count - 1;
}

TEST(lines_that_are_removed_or_swapped_are_found)
{
	struct store *inner = set_up();
	size_t log = the_log(), starts[64], count = line_starts(files[log].bytes, starts);
	struct str all = files[log].bytes;

	for (size_t i = 0; i + 1 < count; i++) { /* without the last: a log that ends earlier has nothing to show it */
		struct str line = str_first(str_from(all, starts[i]), starts[i + 1] - starts[i]);
		struct str next = str_first(str_from(all, starts[i + 1]), starts[i + 2] - starts[i + 1]);
		struct str before = str_first(all, starts[i]), after = str_from(all, starts[i + 2]);

		check_case(inner, log,
			   arena_printf(arena, "%.*s%.*s%.*s", STR_ARG(before), STR_ARG(next), STR_ARG(after)),
			   arena_printf(arena, "without line %zu", i).ptr);
		check_case(inner, log,
			   arena_printf(arena, "%.*s%.*s%.*s%.*s", STR_ARG(before), STR_ARG(next), STR_ARG(line),
					STR_ARG(after)),
			   arena_printf(arena, "lines %zu and the next swapped", i).ptr);
	}
	tear_down(inner);
}

TEST(a_content_that_is_changed_cut_or_missing_is_found)
{
	struct store *inner = set_up();
	size_t blob = 0;

	while (!str_starts(files[blob].path.s, STR("blobs/")) || files[blob].bytes.len < 1000)
		blob++;
	for (size_t i = 0; i < files[blob].bytes.len * 8; i += 1777) {
		struct str copy = arena_str(arena, files[blob].bytes);

		((char *)copy.ptr)[i / 8] ^= (char)(1 << i % 8);
		check_case(inner, blob, copy, "a changed content");
	}
	check_case(inner, blob, str_first(files[blob].bytes, 4096), "a cut content");
	check_case(inner, blob, STR(""), "an empty content");
	check_case(inner, blob, STR_NONE, "a missing content");
	tear_down(inner);
}
