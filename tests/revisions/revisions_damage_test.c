/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage of every kind in a log and its contents: each bit flipped, each line removed, swapped with the next or cut,
 * each segment removed or cut. Nothing wrong is ever returned: an answer is right or an error. A check finds each
 * damage, and after a repair everything that is left is right and can be used. What damage cannot have changed is still
 * answered.
 */
#include "base/clock.h"
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/store_fix.h"
#include "store/stores.h"
#include "temp_dir.h"

#define HEAD 9

static const struct {
	const char *path;
	const char *changes;      /* its revisions */
	const char *at[HEAD + 1]; /* its content after each revision */
} truth[] = {
	{"a", "137", {NULL, "one", "one", "two", "two", "two", "two", NULL, NULL, NULL}},
	{"b",
	 "248",
	 {NULL, NULL, "first", "first", "first,second", "first,second", "first,second", "first,second", "two", "two"}},
	{"c", "5", {NULL, NULL, NULL, NULL, NULL, "c", "c", "c", "c", "c"}},
	{"big", "6", {NULL, NULL, NULL, NULL, NULL, NULL, "B", "B", "B", "B"}},
	{"d", "9", {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "d"}},
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

static struct str boot; /* empty: a clean end is not noted */

static struct store *open_over(struct store *inner, struct store *meta)
{
	struct revisions_opts opts = {.boot_id = boot, .scratch = boot.len ? store_share(meta) : NULL};
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
			if (r == -ERR_NOT_FOUND && want && strstr(err.msg, "did not exist"))
				TEST_FAIL("%s: \"%s\" did not exist at revision %llu", what, truth[p].path,
					  (unsigned long long)n);
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

/* The list of a path's changes is whole, or an error. */
static void ask_for_lists(struct store *rev, const char *what)
{
	for (size_t p = 0; p < sizeof(truth) / sizeof(truth[0]); p++) {
		struct rev_query query = {.path = P(truth[p].path)};
		struct revision *list;
		char got[HEAD + 1] = "";
		size_t count;

		if (revisions_query(rev, &ctx, &query, &list, &count, NULL, &err) == -ERR_CORRUPT)
			continue;
		for (size_t i = 0; i < count; i++)
			got[i] = (char)('0' + list[i].number);
		if (strcmp(got, truth[p].changes) != 0)
			TEST_FAIL("%s: the changes of \"%s\" are \"%s\", and were \"%s\"", what, truth[p].path, got,
				  truth[p].changes);
	}
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

/* As a reader does before it looks at the past: a file that is not what its last record says has been changed by
   another program, or that record was lost. If that is recorded, all answers are asked for again. */
static void settle(struct store *rev, const char *what)
{
	bool any = false;

	for (size_t p = 0; p < sizeof(truth) / sizeof(truth[0]); p++) {
		bool is_new = false;
		int r = revisions_settle(rev, &ctx, P(truth[p].path), &is_new, &err);

		if (r != -ERR_CORRUPT)
			CHECK_OK(r, err);
		any = any || is_new;
	}
	if (any)
		ask(rev, what);
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
	ask_for_lists(rev, what);
	settle(rev, what);
	CHECK_OK(revisions_check(rev, &ctx, &check, &err), err);
	if (!found)
		TEST_FAIL("%s: the check finds nothing", what);
	check = (struct rev_check){.found = count_damage, .arg = &left, .repair = true};
	if (boot.len)
		CHECK_OK(revisions_check(rev, &ctx, &check, &err), err);
	store_destroy(rev);
	if (boot.len == 0)
		CHECK_OK(revisions_check_files(meta, &ctx, &check, &err), err);
	found = 0;
	check = (struct rev_check){.found = count_damage, .arg = &found};
	CHECK_OK(revisions_check_files(meta, &ctx, &check, &err), err);
	if (found)
		TEST_FAIL("%s: after the repair the check finds %zu again", what, found);
	rev = open_over(inner, meta);
	ask(rev, arena_printf(arena, "%s, after the repair", what).ptr);
	settle(rev, arena_printf(arena, "%s, after the repair and a look", what).ptr);
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
static size_t line_starts(struct str bytes, size_t starts[256])
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
	size_t log = the_log(), starts[256], count = line_starts(files[log].bytes, starts);
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

TEST(a_list_gives_what_comes_before_the_damage)
{
	struct store *inner = set_up(), *meta, *rev;
	struct file changed[16];
	struct rev_query query = {.newest_first = true, .limit = 100, .until_damage = true};
	struct revision *list;
	size_t log = the_log(), starts[256], count;
	bool more = false;

	memcpy(changed, files, sizeof(changed));
	line_starts(files[log].bytes, starts);
	changed[log].bytes = arena_str(arena, files[log].bytes);
	((char *)changed[log].bytes.ptr)[starts[2] + 20] ^= 1;
	meta = meta_of(changed, file_count);
	rev = open_over(inner, meta);
	CHECK_OK(revisions_query(rev, &ctx, &query, &list, &count, &more, &err), err);
	CHECK(count > 0 && count < HEAD && list[0].number == HEAD && more);
	query.until = list[count - 1].number - 1;
	CHECK_INT(revisions_query(rev, &ctx, &query, &list, &count, &more, &err), -ERR_CORRUPT);
	query = (struct rev_query){.newest_first = true, .limit = 100};
	CHECK_INT(revisions_query(rev, &ctx, &query, &list, &count, &more, &err), -ERR_CORRUPT);
	store_destroy(rev);
	store_destroy(meta);
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

/* What is cut off leaves a log that looks like one that ends there, but the note of the last clean end says more. */
TEST(a_log_that_is_cut_after_a_clean_end_is_found)
{
	struct store *inner;
	size_t log, last;

	boot = STR("this boot");
	inner = set_up();
	log = the_log();
	last = str_find(files[log].bytes, STR("{\"rev\":9,"), 0);
	for (size_t i = 0; i <= last; i += 13)
		check_case(inner, log, str_first(files[log].bytes, i), arena_printf(arena, "cut at byte %zu", i).ptr);
	check_case(inner, log, STR_NONE, "a removed log");
	tear_down(inner);
	boot = STR_NONE;
}

TEST(the_notes_of_clean_ends_stay_small_and_the_last_one_names_the_end)
{
	struct store *inner = store_memory_new(), *meta = store_memory_new(), *rev;
	struct store_stat log, note;
	struct str text, end;

	boot = STR("this boot");
	arena = arena_new();
	ctx.arena = arena;
	for (int i = 0; i < 150; i++) {
		rev = open_over(inner, meta);
		put_text(rev, "a", i % 2 ? "one" : "two");
		store_destroy(rev);
		CHECK_OK(store_stat(meta, &ctx, P("log/0000000000000001.jsonl"), &log, &err), err);
		CHECK_OK(store_read(meta, &ctx, P("revisions-clean"), STORE_WHOLE, MIB, &text, &note, &err), err);
		CHECK(note.size <= 4096);
		end = arena_printf(arena, "\n%llu\nthis boot\n%d\n", (unsigned long long)log.size, i + 1);
		CHECK(str_find(text, end, text.len > 80 ? text.len - 80 : 0) != SIZE_MAX);
	}
	store_destroy(meta);
	store_destroy(inner);
	arena_destroy(arena);
	boot = STR_NONE;
}

TEST(nothing_is_claimed_of_a_log_that_was_cut_before_a_restart_of_the_machine)
{
	struct store *inner, *meta, *rev;
	size_t log;

	boot = STR("a boot");
	inner = set_up();
	log = the_log();
	files[log].bytes = str_first(files[log].bytes, str_find(files[log].bytes, STR("{\"rev\":9,"), 0));
	meta = meta_of(files, file_count);
	boot = STR("another boot");
	rev = open_over(inner, meta);
	put_text(rev, "e", "e");
	store_destroy(rev);
	store_destroy(meta);
	tear_down(inner);
	boot = STR_NONE;
}

/* --- what is still answered --- */

/* The log with one bit changed in a line, and how much of it is refused then. */
static size_t refused_without(struct store *inner, const char *line)
{
	struct file changed[16];
	struct store *meta, *rev;
	size_t log = the_log(), at = str_find(files[log].bytes, str_of(line), 0), refused;

	CHECK(at != SIZE_MAX);
	memcpy(changed, files, sizeof(changed));
	changed[log].bytes = arena_str(arena, files[log].bytes);
	((char *)changed[log].bytes.ptr)[at + 12] ^= 1;
	meta = meta_of(changed, file_count);
	rev = open_over(inner, meta);
	refused = ask(rev, line);
	store_destroy(rev);
	store_destroy(meta);
	return refused;
}

TEST(damage_costs_few_answers_besides_those_of_its_line)
{
	struct store *inner = set_up();

	CHECK_INT(refused_without(inner, "{\"rev\":1,"), 7);
	CHECK_INT(refused_without(inner, "{\"rev\":4,"), 12);
	CHECK_INT(refused_without(inner, "{\"rev\":9,"), 22); /* nobody knows what follows the last one */
	CHECK_INT(refused_without(inner, "{\"done\":9,"), 12);
	tear_down(inner);
}

TEST(a_state_between_intact_records_is_answered_though_another_one_is_lost)
{
	static const struct {
		const char *path, *want;
		uint64_t number;
	} cases[] = {{"a", "one", 1}, {"a", "one", 2}, {"b", "first", 3}, {"c", NULL, 3}, {"d", NULL, 8}};
	struct store *inner = set_up(), *meta, *rev;
	size_t log = the_log(), at = str_find(files[log].bytes, STR("{\"rev\":3,"), 0);

	files[log].bytes = arena_str(arena, files[log].bytes);
	((char *)files[log].bytes.ptr)[at + 12] ^= 1;
	meta = meta_of(files, file_count);
	rev = open_over(inner, meta);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf got;
		struct sink sink = {.push = push, .arg = &got};
		struct rev_state state;
		int r;

		buf_init(&got, arena, MIB);
		r = revisions_read(rev, &ctx, P(cases[i].path), cases[i].number, STORE_WHOLE, &sink, &state, &err);
		CHECK_INT(r, cases[i].want ? 0 : -ERR_NOT_FOUND);
		if (cases[i].want)
			CHECK_STR(buf_str(&got), str_of(cases[i].want));
	}
	store_destroy(rev);
	store_destroy(meta);
	tear_down(inner);
}

/* Asks for a file with no record, at a revision before a damaged one. `first_ns`: when the first one was logged, from
   now. */
static int ask_untouched(const char *path, int64_t first_ns)
{
	struct store_disk_opts relaxed = {.relaxed = true};
	struct store *inner, *meta = store_memory_new(), *rev;
	struct wpath log = P("log/0000000000000001.jsonl");
	struct rev_state state;
	struct str bytes;
	char clock[32];
	int r;

	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	CHECK_OK(store_disk_open(temp_dir_new(), &relaxed, &inner, &err), err);
	CHECK_OK(store_write(inner, &ctx, P("untouched"), STR("u"), ANY, NULL, &err), err);
	snprintf(clock, sizeof(clock), "%lld", (long long)(clock_real_ns() + first_ns));
	setenv("STEAD_TEST_CLOCK_NS", clock, 1);
	rev = open_over(inner, meta);
	put_text(rev, "a", "1");
	put_text(rev, "a", "2");
	put_text(rev, "a", "3");
	unsetenv("STEAD_TEST_CLOCK_NS");
	store_destroy(rev);
	CHECK_OK(store_read(meta, &ctx, log, STORE_WHOLE, MIB, &bytes, NULL, &err), err);
	((char *)bytes.ptr)[str_find(bytes, STR("{\"rev\":2,"), 0) + 12] ^= 1;
	CHECK_OK(store_write(meta, &ctx, log, bytes, ANY, NULL, &err), err);
	rev = open_over(inner, meta);
	r = revisions_state(rev, &ctx, (struct wpath){str_of(path)}, 1, &state, &err);
	CHECK(r || (state.exists && state.size == 1));
	store_destroy(rev);
	store_destroy(meta);
	store_destroy(inner);
	arena_destroy(arena);
	return r;
}

TEST(a_file_with_no_record_is_read_if_nobody_has_touched_it_since_before_the_damage)
{
	CHECK_INT(ask_untouched("untouched", NS_PER_S), 0);
	CHECK_INT(ask_untouched("untouched", -NS_PER_S), -ERR_CORRUPT);
	CHECK_INT(ask_untouched("absent", NS_PER_S), -ERR_CORRUPT);
}

/* --- histories and damage by chance --- */

#define CHANCE_PATHS 4
#define CHANCE_HEAD  40

static const char *chance_truth[CHANCE_HEAD + 1][CHANCE_PATHS];
static uint64_t chance_head, chance_seed;

static uint64_t chance(uint64_t below)
{
	chance_seed = chance_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (chance_seed >> 33) % below;
}

static struct wpath chance_path(uint64_t i)
{
	return (struct wpath){arena_printf(arena, "p%llu", (unsigned long long)i)};
}

static void chance_became(uint64_t i, const char *text)
{
	chance_head++;
	memcpy(chance_truth[chance_head], chance_truth[chance_head - 1], sizeof(chance_truth[0]));
	chance_truth[chance_head][i] = text;
}

/* One change of a path, which may be that of another program. */
static void chance_step(struct store *rev, struct store *inner)
{
	uint64_t i = chance(CHANCE_PATHS), to = chance(CHANCE_PATHS), what = chance(7), noticed;
	const char *now = chance_truth[chance_head][i];
	struct str text = arena_printf(arena, "%llu;", (unsigned long long)chance_head);

	if (what == 0 && now) {
		CHECK_OK(store_remove(rev, &ctx, chance_path(i), false, ANY, NULL, &err), err);
		chance_became(i, NULL);
	} else if (what == 1 && now && i != to) {
		CHECK_OK(store_move(rev, &ctx, chance_path(i), chance_path(to), ANY, ANY, NULL, &err), err);
		chance_became(i, NULL);
		chance_became(to, now);
	} else if (what == 2) {
		CHECK_OK(store_append(rev, &ctx, chance_path(i), text, ANY, NULL, &err), err);
		chance_became(i, arena_printf(arena, "%s%s", now ? now : "", text.ptr).ptr);
	} else if (what == 3 && now) {
		CHECK_OK(store_write(inner, &ctx, chance_path(i), text, ANY, NULL, &err), err);
		CHECK_OK(revisions_notice(rev, &ctx, chance_path(i), &noticed, &err), err);
		chance_became(i, text.ptr);
	} else {
		CHECK_OK(store_write(rev, &ctx, chance_path(i), text, ANY, NULL, &err), err);
		chance_became(i, text.ptr);
	}
}

/* Asks for every state; counts those that are refused. */
static size_t chance_ask(struct store *rev)
{
	size_t refused = 0;

	for (uint64_t n = 0; n <= chance_head; n++)
		for (uint64_t i = 0; i < CHANCE_PATHS; i++) {
			const char *want = chance_truth[n][i];
			struct buf got;
			struct sink sink = {.push = push, .arg = &got};
			struct rev_state state;
			int r;

			buf_init(&got, arena, MIB);
			r = revisions_read(rev, &ctx, chance_path(i), n, STORE_WHOLE, &sink, &state, &err);
			if (r == -ERR_CORRUPT || (r == -ERR_NOT_FOUND && want && !strstr(err.msg, "did not exist")))
				refused++;
			else if (r == 0 ? !want || !str_is(buf_str(&got), want) : r != -ERR_NOT_FOUND || want)
				TEST_FAIL("seed %llu: path %llu at %llu is \"%.*s\" (%s), not \"%s\"",
					  (unsigned long long)chance_seed, (unsigned long long)i, (unsigned long long)n,
					  (int)got.len, got.ptr, r ? err.msg : "", want ? want : "(absent)");
		}
	return refused;
}

/* Changes a bit in some lines of the log; sometimes only after a change by another program. */
static void chance_case(size_t *refused, size_t *asked)
{
	struct store *inner = store_memory_new(), *meta = store_memory_new(), *rev = open_over(inner, meta);
	struct wpath log = P("log/0000000000000001.jsonl");
	size_t starts[256], count;
	struct str bytes;

	chance_head = 0;
	while (chance_head < CHANCE_HEAD - 2)
		chance_step(rev, inner);
	store_destroy(rev);
	CHECK_OK(store_read(meta, &ctx, log, STORE_WHOLE, MIB, &bytes, NULL, &err), err);
	count = line_starts(bytes, starts);
	for (uint64_t k = 1 + chance(3); k > 0; k--)
		((char *)bytes.ptr)[starts[chance(count)] + 12] ^= 1;
	CHECK_OK(store_write(meta, &ctx, log, bytes, ANY, NULL, &err), err);
	rev = open_over(inner, meta);
	*refused += chance_ask(rev);
	*asked += CHANCE_PATHS * (size_t)(chance_head + 1);
	store_destroy(rev);
	store_destroy(meta);
	store_destroy(inner);
}

TEST(damage_by_chance_never_gives_a_wrong_answer)
{
	const char *given = getenv("STEAD_TEST_SEED");
	size_t refused = 0, asked = 0;

	chance_seed = given ? strtoull(given, NULL, 10) : 20261120;
	printf("# seed %llu\n", (unsigned long long)chance_seed);
	for (int i = 0; i < 400; i++) {
		ARENA_SCOPE struct arena *own = arena_new();

		arena = own;
		ctx = (struct ctx){.arena = own};
		boot = i % 2 ? STR("this boot") : STR_NONE;
		chance_case(&refused, &asked);
	}
	printf("# %zu of %zu answers were refused\n", refused, asked);
	CHECK(refused > 0 && refused < asked / 2);
	boot = STR_NONE;
}
