/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "find/find.h"
#include "store/stores.h"
#include "test.h"

static struct arena *arena;
static struct ctx ctx;
static struct err err;
static struct store *store;

static void begin(void)
{
	if (store)
		store_destroy(store);
	if (arena)
		arena_destroy(arena);
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	store = store_memory_new();
}

static struct wpath at(const char *path)
{
	struct wpath p;

	CHECK_OK(wpath_parse(str_of(path), &p, &err), err);
	return p;
}

static void put(const char *path, struct str text)
{
	CHECK_OK(store_write(store, &ctx, at(path), text, (struct store_cond){0}, NULL, &err), err);
}

static struct grep_req req_for(const char *pattern)
{
	return (struct grep_req){.path = WPATH_ROOT,
				 .pattern = str_of(pattern),
				 .limit = UINT64_MAX,
				 .line_cut = SIZE_MAX,
				 .threads = 2};
}

/* "path:line:text" of a match, "path-line-text" of context, "--" between groups, as one text. */
static struct str shown(const struct grep_result *res, bool groups)
{
	struct buf out;

	buf_init(&out, arena, 64 * MIB);
	for (size_t i = 0; i < res->count; i++) {
		const struct grep_line *l = &res->lines[i];

		if (groups && l->group_start && i)
			buf_lit(&out, "--\n");
		buf_printf(&out, "%.*s%c", STR_ARG(l->path), l->is_match ? ':' : '-');
		if (l->line)
			buf_printf(&out, "%llu%c%.*s%s\n", (unsigned long long)l->line, l->is_match ? ':' : '-',
				   STR_ARG(l->text), l->cut ? "…" : "");
		else
			buf_printf(&out, "%llu\n", (unsigned long long)l->count);
	}
	return buf_str(&out);
}

static struct grep_result grep(struct grep_req req)
{
	struct grep_result res;

	CHECK_OK(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err);
	return res;
}

static struct str lines(const char *pattern)
{
	struct grep_result res = grep(req_for(pattern));

	return shown(&res, false);
}

TEST(lines_come_in_list_order_with_their_numbers_and_totals)
{
	struct grep_result res;

	begin();
	put("b.txt", STR("one\ntwo needle\n"));
	put("a/z.txt", STR("needle\n\nneedle needle"));
	put("a.txt", STR("nothing\n"));
	res = grep(req_for("needle"));
	CHECK_STR(shown(&res, false), STR("a/z.txt:1:needle\na/z.txt:3:needle needle\nb.txt:2:two needle\n"));
	CHECK_INT(res.matches, 3);
	CHECK_INT(res.files, 2);
	CHECK_INT(res.searched, 3);
	CHECK(res.next.ptr == NULL);
}

TEST(a_dot_or_a_negated_class_never_crosses_a_line)
{
	begin();
	put("f", STR("ab\ncd\n\nef"));
	CHECK_STR(lines("b[^x]c"), STR(""));
	CHECK_STR(lines("b\\sc"), STR(""));
	CHECK_STR(lines("b.c"), STR(""));
	CHECK_STR(lines("^$"), STR("f:3:\n"));
	CHECK_STR(lines("^e"), STR("f:4:ef\n"));
	CHECK_STR(lines("[^a]$"), STR("f:1:ab\nf:2:cd\nf:4:ef\n"));
	CHECK_STR(lines("(?s)b.*c"), STR(""));
}

TEST(a_carriage_return_before_the_line_end_is_not_part_of_the_line)
{
	begin();
	put("f", STR("foo\r\nfoo bar\r\n\r\nx\ry\n"));
	CHECK_STR(lines("foo$"), STR("f:1:foo\n"));
	CHECK_STR(lines("o.$"), STR("f:1:foo\n"));
	CHECK_STR(lines("^$"), STR("f:3:\n"));
	CHECK_STR(lines("x.y"), STR("f:4:x\ry\n"));
	CHECK_STR(lines("(?=bar)bar$"), STR("f:2:foo bar\n"));
	CHECK_INT(grep(req_for("\\r$")).matches, 3);
}

TEST(a_byte_order_mark_and_a_missing_last_line_end_are_no_obstacle)
{
	begin();
	put("f", STR("\xEF\xBB\xBF"
		     "first\nlast"));
	CHECK_INT(grep(req_for("first")).matches, 1);
	CHECK_STR(lines("last$"), STR("f:2:last\n"));
	CHECK_STR(lines("l.st$"), STR("f:2:last\n"));
}

TEST(unicode_text_is_matched_by_code_points_and_broken_text_is_safe)
{
	begin();
	put("f", STR("a\xC3\xA9z\na\xE2\x82\xACz\na\xFFz\nA\xC3\x89Z\n"));
	CHECK_STR(lines("^a.z$"), STR("f:1:a\xC3\xA9z\nf:2:a\xE2\x82\xACz\n"));
	CHECK_STR(lines("a[^x]z"), STR("f:1:a\xC3\xA9z\nf:2:a\xE2\x82\xACz\n"));
	CHECK_STR(lines("[\xC3\xA0-\xC3\xBF]"), STR("f:1:a\xC3\xA9z\n"));
	CHECK_STR(lines("\xC3\xA9+z"), STR("f:1:a\xC3\xA9z\n"));
	CHECK_STR(lines("(?i)\xC3\xA9"), STR("f:1:a\xC3\xA9z\nf:4:A\xC3\x89Z\n"));
	CHECK_STR(lines("\\p{Sc}"), STR("f:2:a\xE2\x82\xACz\n"));
	CHECK_STR(lines("a\\x{20ac}z"), STR("f:2:a\xE2\x82\xACz\n"));
}

TEST(a_nul_byte_makes_a_file_binary)
{
	struct grep_result res;

	begin();
	put("utf16", STR("\xFF\xFEn\0e\0e\0d\0l\0e\0\n\0"));
	put("text", STR("needle\n"));
	put("both", STR("needle\n\0needle\n"));
	res = grep(req_for("needle"));
	CHECK_STR(shown(&res, false), STR("text:1:needle\n"));
	CHECK_INT(res.binary, 2);
	CHECK_INT(res.searched, 3);
}

TEST(a_nul_byte_far_inside_ends_the_file_there)
{
	char *big = arena_alloc_raw((begin(), arena), 200 * KIB);

	memset(big, 'x', 200 * KIB);
	memcpy(big + 10, "\nneedle\n", 8);
	memcpy(big + 100 * KIB, "\nneedle\n\0\nneedle\n", 17);
	put("f", str_n(big, 200 * KIB));
	CHECK_STR(lines("needle"), STR("f:2:needle\nf:4:needle\n"));
}

TEST(case_is_ignored_only_when_asked)
{
	struct grep_req req = req_for("hello_world");

	begin();
	put("f", STR("Hello_World\nhello_world\nHELLO WORLD\n"));
	CHECK_INT(grep(req).matches, 1);
	req.ignore_case = true;
	CHECK_INT(grep(req).matches, 2);
	req.pattern = STR("h[e-f]llo.w");
	CHECK_INT(grep(req).matches, 3);
}

TEST(a_literal_pattern_has_no_special_characters)
{
	struct grep_req req = req_for("a.b*(c");

	begin();
	put("f", STR("a.b*(c\naxb*(c\n"));
	req.literal = true;
	CHECK_INT(grep(req).matches, 1);
	req.pattern = STR("");
	CHECK_INT(grep(req).matches, 2);
}

TEST(context_is_merged_into_groups_without_repeating_a_line)
{
	struct grep_req req = req_for("M");
	struct grep_result res;

	begin();
	put("f", STR("1\n2\nM3\n4\n5\nM6\n7\n8\n9\n10\n11\nM12\n"));
	req.context = 2;
	res = grep(req);
	CHECK_STR(shown(&res, true),
		  STR("f-1-1\nf-2-2\nf:3:M3\nf-4-4\nf-5-5\nf:6:M6\nf-7-7\nf-8-8\n--\nf-10-10\nf-11-11\nf:12:M12\n"));
}

TEST(pages_put_together_are_the_whole_answer)
{
	struct grep_req req = req_for("M");
	struct buf all;
	struct str whole;
	int pages = 0;

	begin();
	put("a", STR("M1\nM2\n3\n4\nM5\n6\n7\n8\nM9"));
	put("b/c", STR("x\nM\n"));
	put("d", STR("M\n"));
	for (req.context = 0; req.context < 4; req.context++) {
		struct grep_result res;

		req.limit = UINT64_MAX;
		req.cursor = STR("");
		res = grep(req);
		whole = shown(&res, false);
		buf_init(&all, arena, MIB);
		for (req.limit = 1; pages < 100; pages++) {
			res = grep(req);
			CHECK_INT(res.matches, 6);
			CHECK_INT(res.files, 3);
			buf_add(&all, shown(&res, false));
			req.cursor = res.next;
			if (!res.next.ptr)
				break;
		}
		CHECK_STR(buf_str(&all), whole);
	}
	CHECK_INT(pages, 20);
}

TEST(files_and_counts_are_paged_by_file)
{
	struct grep_req req = req_for("M");
	struct grep_result res;

	begin();
	put("a", STR("M\nM\n"));
	put("b", STR("none\n"));
	put("c", STR("M\n"));
	req.output = GREP_COUNT;
	req.limit = 1;
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("a:2\n"));
	req.cursor = res.next;
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("c:1\n"));
	CHECK(res.next.ptr == NULL);
	CHECK_INT(res.matches, 3);
}

TEST(include_and_exclude_globs_choose_the_files)
{
	struct str c = STR("*.c"), gen = STR("gen"), deep = STR("src/*.c");
	struct grep_req req = req_for("x");
	struct grep_result res;

	begin();
	put("src/a.c", STR("x\n"));
	put("src/a.h", STR("x\n"));
	put("src/gen/b.c", STR("x\n"));
	req.include = &c;
	req.include_count = 1;
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("src/a.c:1:x\nsrc/gen/b.c:1:x\n"));
	req.exclude = &gen;
	req.exclude_count = 1;
	CHECK_INT(grep(req).searched, 1);
	req.include = &deep;
	req.exclude_count = 0;
	CHECK_INT(grep(req).searched, 1);
	req.path = at("src");
	req.include = &c;
	CHECK_INT(grep(req).searched, 2);
}

TEST(a_single_file_can_be_searched)
{
	struct grep_req req = req_for("x");
	struct grep_result res;

	begin();
	put("d/a", STR("x\ny\nx\n"));
	put("d/b", STR("x\n"));
	req.path = at("d/a");
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("d/a:1:x\nd/a:3:x\n"));
	req.path = at("d/none");
	CHECK_ERR(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err, ERR_NOT_FOUND);
}

TEST(a_long_line_is_cut_at_a_code_point_and_says_so)
{
	struct grep_req req = req_for("b");
	struct grep_result res;

	begin();
	put("f", STR("aaa\xC3\xA9"
		     "b\n"));
	req.line_cut = 4;
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("f:1:aaa…\n"));
}

TEST(a_line_of_ten_megabytes_is_one_line)
{
	char *big = arena_alloc_raw((begin(), arena), 10 * MIB + 32);
	struct grep_req req = req_for("^head.*tail$");
	struct grep_result res;

	memset(big, 'x', 10 * MIB + 32);
	memcpy(big, "one\nhead", 8);
	memcpy(big + 10 * MIB, "tail\ntwo\n", 9);
	put("f", str_n(big, 10 * MIB + 9));
	req.line_cut = 8;
	res = grep(req);
	CHECK_STR(shown(&res, false), STR("f:2:headxxxx…\n"));
	CHECK_STR(lines("two"), STR("f:3:two\n"));
	req.path = at("f");
	CHECK_INT(grep(req).matches, 1);
}

static void grep_gives(const char *pattern, enum err_kind want)
{
	struct grep_req req = req_for(pattern);
	struct grep_result res;

	CHECK_INT(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), -(int)want);
}

/* The searcher counts steps: a pattern that takes more than its limit ends as ERR_INVALID, so the others took less.
   Each line alone has more ways to be matched (2^48) than a machine can try. */
TEST(a_catastrophic_pattern_takes_few_steps_or_is_refused)
{
	char *line = arena_alloc_raw((begin(), arena), 60 * KIB);

	memset(line, 'a', 60 * KIB);
	for (size_t i = 49; i < 60 * KIB; i += 50)
		line[i] = '\n';
	put("f", str_n(line, 60 * KIB));
	grep_gives("(a+)+$", ERR_NONE);
	grep_gives("(x+x+)+y", ERR_NONE);
	grep_gives("^(a|a)*b", ERR_NONE);
	grep_gives("(?=(a+)+[^a])a", ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("too much work"));
	grep_gives("(a+)+\\1[^a]", ERR_INVALID);
}

TEST(a_pattern_that_is_none_gets_a_sentence)
{
	char big[PATTERN_LEN_MAX + 2], deep[1001];

	begin();
	put("f", STR("x\n"));
	grep_gives("a(b", ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("a(b"));
	grep_gives("a\xFF", ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("UTF-8"));
	grep_gives("a\nb", ERR_INVALID);
	grep_gives("a\\nb", ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("line"));
	grep_gives("(*UTF)a", ERR_INVALID);
	memset(deep, '(', 500);
	memset(deep + 500, ')', 500);
	deep[1000] = '\0';
	grep_gives(deep, ERR_INVALID);
	memset(big, 'a', sizeof(big));
	big[PATTERN_LEN_MAX + 1] = '\0';
	grep_gives(big, ERR_TOO_LARGE);
	big[PATTERN_LEN_MAX] = '\0';
	grep_gives(big, ERR_NONE);
}

TEST(a_bad_request_gets_a_sentence)
{
	struct grep_req req = req_for("x");
	struct grep_result res;
	struct str bad = STR("");

	begin();
	req.cursor = STR("nonsense");
	CHECK_ERR(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err, ERR_INVALID);
	req = req_for("x");
	req.context = GREP_CONTEXT_MAX + 1;
	CHECK_ERR(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err, ERR_INVALID);
	req = req_for("x");
	req.include = &bad;
	req.include_count = 1;
	CHECK_ERR(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err, ERR_INVALID);
}

static int stop_at_second(void *arg, const struct grep_line *line, struct err *e)
{
	(void)line;
	return ++*(int *)arg == 2 ? err_set(e, ERR_UNAVAILABLE, "the reader is gone") : 0;
}

TEST(whoever_takes_the_lines_may_end_the_search)
{
	struct grep_req req = req_for("x");
	struct grep_result res;
	int n = 0;

	begin();
	put("f", STR("x\nx\nx\n"));
	CHECK_ERR(find_grep(store, &ctx, &req, stop_at_second, &n, &res, &err), err, ERR_UNAVAILABLE);
	CHECK_INT(n, 2);
}

TEST(a_cancelled_search_ends)
{
	struct cancel cancel = {true};
	struct grep_req req = req_for("x");
	struct grep_result res;

	begin();
	put("f", STR("x\n"));
	ctx.cancel = &cancel;
	CHECK_ERR(find_grep(store, &ctx, &req, NULL, NULL, &res, &err), err, ERR_CANCELLED);
}

TEST(a_glob_below_one_directory_lists_that_directory_alone)
{
	static const char *const patterns[] = {"d/000/*.txt", "d/000/*", "d/none/*", "d/000/a.txt/*"};
	static const size_t totals[] = {1, 2, 0, 0};
	struct cache_opts opts = {.identity = STR("far"), .bytes = MIB};
	struct store *counted, *far;
	struct glob_result res;

	begin();
	for (int i = 0; i < 3000; i++)
		put(arena_printf(ctx.arena, "c/%d", i).ptr, STR(""));
	put("d/000/a.txt", STR(""));
	put("d/000/b", STR(""));
	counted = store_fault_new(store_share(store));
	far = store_cache_new(counted, opts);
	for (size_t i = 0; i < COUNT(patterns); i++) {
		struct glob_req req = {.path = WPATH_ROOT, .pattern = str_of(patterns[i]), .limit = 9};

		store_fault_arm(counted, 0, ERR_NONE, false);
		CHECK_OK(find_glob(far, &ctx, &req, NULL, NULL, &res, &err), err);
		CHECK_INT(res.total, totals[i]);
		CHECK_INT(store_fault_count(counted), 1);
	}
	CHECK_ERR(find_glob(far, &ctx, &(struct glob_req){.path = at("gone"), .pattern = STR("x/*"), .limit = 9}, NULL,
			    NULL, &res, &err),
		  err, ERR_NOT_FOUND);
	store_destroy(far);
}

TEST(globs_are_paged_in_list_order)
{
	struct glob_req req = {.path = WPATH_ROOT, .pattern = STR("**/*.md"), .limit = 2};
	struct glob_result res;

	begin();
	put("z.md", STR(""));
	put("a/b.md", STR(""));
	put("a/.hidden/c.md", STR(""));
	put("a/b.txt", STR(""));
	CHECK_OK(find_glob(store, &ctx, &req, NULL, NULL, &res, &err), err);
	CHECK_INT(res.total, 3);
	CHECK_INT(res.count, 2);
	CHECK_STR(res.paths[0], STR("a/.hidden/c.md"));
	CHECK_STR(res.paths[1], STR("a/b.md"));
	req.cursor = res.next;
	CHECK_OK(find_glob(store, &ctx, &req, NULL, NULL, &res, &err), err);
	CHECK_INT(res.count, 1);
	CHECK_STR(res.paths[0], STR("z.md"));
	CHECK(res.next.ptr == NULL);
	req = (struct glob_req){.path = at("a"), .pattern = STR("*.md"), .limit = 9};
	CHECK_OK(find_glob(store, &ctx, &req, NULL, NULL, &res, &err), err);
	CHECK_INT(res.count, 1);
}
