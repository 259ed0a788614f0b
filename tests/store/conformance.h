/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store contract as a list of cases. Each case is one line of the contract in store/store.h, its name is the fact,
 * and it gets an empty store of its own. conformance_test.c runs the list over every backend and layer; whoever adds a
 * store adds one line there. workspace/workspace_conformance_test.c runs it over what workspace_open() composes.
 */
#ifndef STEAD_TESTS_STORE_CONFORMANCE_H
#define STEAD_TESTS_STORE_CONFORMANCE_H

#include "store/conformance_run.h"

static struct conf_list store_cases = {.at_least = 60};

#define CASE(id) CONF_CASE(store_cases, id)

/* Root and stat. */

CASE(the_root_exists_and_is_a_directory)
{
	struct store_stat st = stat_of(c, "");

	CHECK_INT(st.kind, STORE_DIR);
	CHECK_INT(st.size, 0);
	CHECK_INT(st.mtime_ns, 0);
	CHECK_INT(st.version.len, 0);
}

CASE(an_empty_store_lists_nothing)
{
	CHECK_STR(listing(c, "", false, 10), STR(""));
	CHECK_STR(listing(c, "", true, 10), STR(""));
}

CASE(the_root_cannot_be_read_written_or_moved)
{
	struct str bytes;

	CHECK_ERR(store_read(c->s, &c->ctx, P(""), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_write(c->s, &c->ctx, P(""), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_append(c->s, &c->ctx, P(""), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_move(c->s, &c->ctx, P(""), P("a"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_remove(c->s, &c->ctx, P(""), false, ANY, NULL, &c->err), c->err, ERR_INVALID);
}

CASE(stat_of_a_file_gives_kind_size_time_and_version)
{
	int64_t before = clock_real_ns() - 2000000000;
	struct store_stat st;

	put(c, "a.txt", "hello");
	st = stat_of(c, "a.txt");
	CHECK_INT(st.kind, STORE_FILE);
	CHECK_INT(st.size, 5);
	CHECK(st.mtime_ns > before && st.mtime_ns < clock_real_ns() + 2000000000);
	CHECK(st.version.len > 0);
}

CASE(stat_of_a_directory_has_no_size_time_or_version)
{
	struct store_stat st;

	put(c, "d/e/f", "x");
	st = stat_of(c, "d/e");
	CHECK_INT(st.kind, STORE_DIR);
	CHECK_INT(st.size, 0);
	CHECK_INT(st.mtime_ns, 0);
	CHECK_INT(st.version.len, 0);
}

CASE(stat_of_what_is_not_there_is_not_found)
{
	put(c, "a", "x");
	CHECK_GONE(c, "b");
	CHECK_GONE(c, "a/b");
	CHECK_GONE(c, "x/y/z");
}

CASE(an_error_names_the_operation_and_the_path)
{
	CHECK_ERR(store_stat(c->s, &c->ctx, P("no/such"), NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_STARTS(str_of(c->err.msg), STR("look up no/such: "));
}

/* Read and write. */

CASE(what_was_written_is_read)
{
	put(c, "notes/today.md", "# today\n");
	CHECK_STR(get(c, "notes/today.md"), STR("# today\n"));
}

CASE(an_empty_file_is_a_file)
{
	put(c, "empty", "");
	CHECK_STR(get(c, "empty"), STR(""));
	CHECK_INT(stat_of(c, "empty").kind, STORE_FILE);
	CHECK_TREE(c, "empty");
}

CASE(bytes_are_stored_exactly)
{
	char all[512];
	struct str bytes;

	for (int i = 0; i < 512; i++)
		all[i] = (char)i;
	CHECK_OK(store_write(c->s, &c->ctx, P("bin"), str_n(all, 512), ANY, NULL, &c->err), c->err);
	CHECK_OK(store_read(c->s, &c->ctx, P("bin"), STORE_WHOLE, 512, &bytes, NULL, &c->err), c->err);
	CHECK_STR(bytes, str_n(all, 512));
}

CASE(write_and_read_answer_with_the_files_stat)
{
	struct store_stat wrote, read, st;
	struct str bytes;

	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("abc"), ANY, &wrote, &c->err), c->err);
	CHECK_OK(store_read(c->s, &c->ctx, P("a"), STORE_WHOLE, 10, &bytes, &read, &c->err), c->err);
	st = stat_of(c, "a");
	CHECK_INT(wrote.size, 3);
	CHECK_INT(wrote.kind, STORE_FILE);
	CHECK_STR(wrote.version, st.version);
	CHECK_STR(read.version, st.version);
	CHECK_INT(read.mtime_ns, st.mtime_ns);
}

CASE(a_write_replaces_the_whole_file)
{
	put(c, "a", "a long first text");
	put(c, "a", "short");
	CHECK_STR(get(c, "a"), STR("short"));
	CHECK_INT(stat_of(c, "a").size, 5);
}

CASE(the_version_changes_with_the_bytes)
{
	struct str v1 = put(c, "a", "one"), v2 = put(c, "a", "two"), v3 = put(c, "a", "six");

	CHECK(!str_eq(v1, v2) && !str_eq(v2, v3) && !str_eq(v1, v3));
}

CASE(a_version_stays_while_the_bytes_stay)
{
	struct str v = put(c, "a", "one");

	put(c, "b", "other");
	CHECK_STR(stat_of(c, "a").version, v);
	get(c, "a");
	CHECK_STR(stat_of(c, "a").version, v);
}

CASE(read_of_what_is_not_there_is_not_found)
{
	struct str bytes;

	put(c, "a", "x");
	CHECK_ERR(store_read(c->s, &c->ctx, P("b"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_ERR(store_read(c->s, &c->ctx, P("a/b"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err, ERR_NOT_FOUND);
}

CASE(read_of_a_directory_is_invalid)
{
	struct str bytes;

	put(c, "d/f", "x");
	CHECK_ERR(store_read(c->s, &c->ctx, P("d"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err, ERR_INVALID);
}

CASE(a_range_gives_its_part)
{
	static const struct {
		uint64_t offset, length;
		const char *want;
	} ranges[] = {{0, 3, "012"}, {3, 4, "3456"}, {8, 100, "89"}, {7, UINT64_MAX, "789"}, {0, 0, ""}, {4, 0, ""}};

	put(c, "a", "0123456789");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct store_range range = {ranges[i].offset, ranges[i].length};
		struct str bytes;

		CHECK_OK(store_read(c->s, &c->ctx, P("a"), range, 100, &bytes, NULL, &c->err), c->err);
		CHECK_STR(bytes, str_of(ranges[i].want));
	}
}

CASE(a_range_past_the_end_is_empty)
{
	struct store_stat st;
	struct str bytes;

	put(c, "a", "0123456789");
	CHECK_OK(store_read(c->s, &c->ctx, P("a"), (struct store_range){10, 5}, 100, &bytes, &st, &c->err), c->err);
	CHECK_STR(bytes, STR(""));
	CHECK_INT(st.size, 10);
	CHECK_OK(store_read(c->s, &c->ctx, P("a"), (struct store_range){UINT64_MAX, UINT64_MAX}, 100, &bytes, NULL,
			    &c->err),
		 c->err);
	CHECK_STR(bytes, STR(""));
}

CASE(a_read_over_its_maximum_is_too_large)
{
	struct str bytes;

	put(c, "a", "0123456789");
	CHECK_ERR(store_read(c->s, &c->ctx, P("a"), STORE_WHOLE, 9, &bytes, NULL, &c->err), c->err, ERR_TOO_LARGE);
	CHECK_OK(store_read(c->s, &c->ctx, P("a"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err);
}

CASE(a_stream_is_written_and_read_whole)
{
	struct stream st = {.total = 3 * MIB + 17};
	struct source source = stream_source(&st);
	struct str bytes;

	CHECK_OK(store_write_stream(c->s, &c->ctx, P("big"), &source, ANY, NULL, &c->err), c->err);
	bytes = get(c, "big");
	CHECK_INT(bytes.len, 3 * MIB + 17);
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i] != stream_byte(i))
			TEST_FAIL("byte %zu is %d", i, bytes.ptr[i]);
}

CASE(a_stream_that_fails_changes_nothing)
{
	struct stream st = {.total = 1 * MIB, .fail_at = 700000};
	struct source source = stream_source(&st);
	struct str v = put(c, "a", "old");

	CHECK_ERR(store_write_stream(c->s, &c->ctx, P("a"), &source, ANY, NULL, &c->err), c->err, ERR_UNAVAILABLE);
	CHECK_STR(get(c, "a"), STR("old"));
	CHECK_STR(stat_of(c, "a").version, v);
	st.at = 0;
	CHECK_ERR(store_write_stream(c->s, &c->ctx, P("n/new"), &source, ANY, NULL, &c->err), c->err, ERR_UNAVAILABLE);
	CHECK_TREE(c, "a");
}

static int refuse_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)bytes;
	(void)len;
	++*(int *)arg;
	return err_set(err, ERR_UNAVAILABLE, "the reader went away");
}

CASE(a_reader_may_end_a_read)
{
	int pushes = 0;
	struct sink sink = {.push = refuse_push, .arg = &pushes};

	put(c, "a", "bytes");
	CHECK_ERR(store_read_stream(c->s, &c->ctx, P("a"), STORE_WHOLE, &sink, NULL, &c->err), c->err, ERR_UNAVAILABLE);
	CHECK_INT(pushes, 1);
	CHECK_HAS(str_of(c->err.msg), STR("the reader went away"));
}

CASE(a_failed_write_leaves_the_outputs_alone)
{
	struct store_stat st = {.size = 4711};

	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("x"), VERS(STR("no")), &st, &c->err), c->err, ERR_CONFLICT);
	CHECK_INT(st.size, 4711);
}

/* Directories are implied. */

CASE(writing_creates_the_parents)
{
	put(c, "a/b/c/d.txt", "x");
	CHECK_INT(stat_of(c, "a").kind, STORE_DIR);
	CHECK_INT(stat_of(c, "a/b/c").kind, STORE_DIR);
	CHECK_STR(listing(c, "", false, 10), STR("a/"));
}

CASE(removing_the_last_file_removes_its_directories)
{
	put(c, "a/b/c/d.txt", "x");
	CHECK_OK(store_remove(c->s, &c->ctx, P("a/b/c/d.txt"), false, ANY, NULL, &c->err), c->err);
	CHECK_GONE(c, "a/b/c");
	CHECK_GONE(c, "a");
	CHECK_STR(listing(c, "", false, 10), STR(""));
}

CASE(a_directory_stays_while_a_file_is_in_it)
{
	put(c, "a/b/one", "1");
	put(c, "a/two", "2");
	CHECK_OK(store_remove(c->s, &c->ctx, P("a/b/one"), false, ANY, NULL, &c->err), c->err);
	CHECK_GONE(c, "a/b");
	CHECK_STR(listing(c, "", false, 10), STR("a/"));
}

CASE(moving_the_last_file_away_removes_its_directory)
{
	put(c, "a/b/one", "1");
	CHECK_OK(store_move(c->s, &c->ctx, P("a/b/one"), P("one"), ANY, ANY, NULL, &c->err), c->err);
	CHECK_GONE(c, "a");
	CHECK_TREE(c, "one");
}

CASE(nothing_can_lie_below_a_file)
{
	struct str v = put(c, "a", "file");

	CHECK_ERR(store_write(c->s, &c->ctx, P("a/b"), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_write(c->s, &c->ctx, P("a/b/c"), STR("x"), ABSENT, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_append(c->s, &c->ctx, P("a/b"), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_STR(stat_of(c, "a").version, v);
	CHECK_TREE(c, "a");
}

CASE(a_directory_is_not_overwritten_by_a_file)
{
	put(c, "a/b", "file");
	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("x"), ABSENT, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_append(c->s, &c->ctx, P("a"), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "a/b");
}

CASE(a_name_may_become_a_directory_after_its_file_is_gone)
{
	put(c, "a", "file");
	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), false, ANY, NULL, &c->err), c->err);
	put(c, "a/b", "below");
	CHECK_TREE(c, "a/b");
	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), true, ANY, NULL, &c->err), c->err);
	put(c, "a", "file again");
	CHECK_TREE(c, "a");
}

/* Conditions. */

CASE(absent_writes_what_is_not_there)
{
	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("new"), ABSENT, NULL, &c->err), c->err);
	CHECK_STR(get(c, "a"), STR("new"));
}

CASE(absent_refuses_what_exists)
{
	struct str v = put(c, "a", "old");

	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("new"), ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_STR(get(c, "a"), STR("old"));
	CHECK_STR(stat_of(c, "a").version, v);
}

CASE(a_version_condition_writes_when_it_is_current)
{
	struct str v = put(c, "a", "one");

	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("two"), VERS(v), NULL, &c->err), c->err);
	CHECK_STR(get(c, "a"), STR("two"));
}

CASE(a_version_condition_refuses_an_older_version)
{
	struct str v = put(c, "a", "one");

	put(c, "a", "two");
	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("three"), VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_STR(get(c, "a"), STR("two"));
}

CASE(a_version_condition_refuses_what_is_gone)
{
	struct str v = put(c, "a", "one");

	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), false, ANY, NULL, &c->err), c->err);
	CHECK_ERR(store_write(c->s, &c->ctx, P("a"), STR("two"), VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_GONE(c, "a");
}

CASE(a_version_from_a_list_may_be_a_condition)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;

	put(c, "d/a", "one");
	CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 1);
	CHECK_OK(store_write(c->s, &c->ctx, P("d/a"), STR("two"), VERS(page.entries[0].stat.version), NULL, &c->err),
		 c->err);
}

CASE(append_honours_conditions)
{
	struct str v = put(c, "a", "one");

	CHECK_ERR(store_append(c->s, &c->ctx, P("a"), STR("x"), ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("+"), VERS(v), NULL, &c->err), c->err);
	CHECK_ERR(store_append(c->s, &c->ctx, P("a"), STR("x"), VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_ERR(store_append(c->s, &c->ctx, P("b"), STR("x"), VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_STR(get(c, "a"), STR("one+"));
	CHECK_TREE(c, "a");
}

CASE(remove_honours_a_version)
{
	struct str old = put(c, "a", "one"), v = put(c, "a", "two");

	CHECK_ERR(store_remove(c->s, &c->ctx, P("a"), false, VERS(old), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_STR(get(c, "a"), STR("two"));
	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), false, VERS(v), NULL, &c->err), c->err);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("a"), false, VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
}

CASE(move_honours_a_version_of_the_source)
{
	struct str old = put(c, "a", "one"), v = put(c, "a", "two");

	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("b"), VERS(old), ANY, NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_TREE(c, "a");
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("b"), VERS(v), ANY, NULL, &c->err), c->err);
	CHECK_TREE(c, "b");
}

/* Append. */

CASE(append_creates_the_file_and_its_directories)
{
	struct store_stat st;

	CHECK_OK(store_append(c->s, &c->ctx, P("log/today"), STR("one\n"), ANY, &st, &c->err), c->err);
	CHECK_INT(st.size, 4);
	CHECK_STR(get(c, "log/today"), STR("one\n"));
}

CASE(append_adds_behind_what_is_there)
{
	struct store_stat st;
	struct str v = put(c, "a", "one\n");

	CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("two\n"), ANY, &st, &c->err), c->err);
	CHECK_STR(get(c, "a"), STR("one\ntwo\n"));
	CHECK_INT(st.size, 8);
	CHECK(!str_eq(st.version, v));
	CHECK_STR(stat_of(c, "a").version, st.version);
}

CASE(many_appends_lose_nothing)
{
	struct str bytes;

	for (int i = 0; i < 300; i++)
		CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("0123456789"), ANY, NULL, &c->err), c->err);
	bytes = get(c, "a");
	CHECK_INT(bytes.len, 3000);
	for (size_t i = 0; i < bytes.len; i++)
		CHECK_INT(bytes.ptr[i], (int)('0' + i % 10));
}

/* Remove. */

CASE(remove_takes_one_file_away)
{
	uint64_t count = 0;

	put(c, "a", "1");
	put(c, "b", "2");
	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), false, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 1);
	CHECK_TREE(c, "b");
}

CASE(remove_of_what_is_not_there_is_not_found)
{
	put(c, "a", "1");
	CHECK_ERR(store_remove(c->s, &c->ctx, P("b"), false, ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("b"), true, ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("a/b"), false, ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_TREE(c, "a");
}

CASE(a_directory_is_removed_only_recursively)
{
	put(c, "d/a", "1");
	CHECK_ERR(store_remove(c->s, &c->ctx, P("d"), false, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "d/a");
}

CASE(a_recursive_remove_takes_all_below_and_counts)
{
	uint64_t count = 0;

	put(c, "d/a", "1");
	put(c, "d/e/b", "2");
	put(c, "d/e/f/c", "3");
	put(c, "d.txt", "4");
	put(c, "d0", "5");
	CHECK_OK(store_remove(c->s, &c->ctx, P("d"), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 3);
	CHECK_TREE(c, "d.txt d0");
}

CASE(a_recursive_remove_takes_a_file_too)
{
	uint64_t count = 0;

	put(c, "d/a", "1");
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/a"), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 1);
	CHECK_TREE(c, "");
}

CASE(a_recursive_remove_of_the_root_empties_the_store)
{
	uint64_t count = 99;

	put(c, "a", "1");
	put(c, "d/e/f", "2");
	CHECK_OK(store_remove(c->s, &c->ctx, P(""), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 2);
	CHECK_TREE(c, "");
	CHECK_OK(store_remove(c->s, &c->ctx, P(""), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 0);
	put(c, "again", "x");
	CHECK_TREE(c, "again");
}

/* Move. */

CASE(move_renames_a_file)
{
	struct store_stat before, st;

	put(c, "a", "bytes");
	before = stat_of(c, "a");
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("d/b"), ANY, ANY, &st, &c->err), c->err);
	CHECK_STR(get(c, "d/b"), STR("bytes"));
	CHECK_TREE(c, "d/b");
	CHECK_INT(st.kind, STORE_FILE);
	CHECK_INT(st.size, 5);
	CHECK_INT(st.mtime_ns, before.mtime_ns);
	CHECK_STR(stat_of(c, "d/b").version, st.version);
}

CASE(move_replaces_a_file)
{
	struct str v;

	put(c, "a", "new");
	v = put(c, "b", "old");
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "b"), STR("new"));
	CHECK(!str_eq(stat_of(c, "b").version, v));
	CHECK_TREE(c, "b");
}

CASE(move_with_absent_refuses_an_existing_target)
{
	put(c, "a", "new");
	put(c, "b", "old");
	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_STR(get(c, "a"), STR("new"));
	CHECK_STR(get(c, "b"), STR("old"));
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("c"), ANY, ABSENT, NULL, &c->err), c->err);
	CHECK_TREE(c, "b c");
}

CASE(move_takes_a_directory_with_all_in_it)
{
	struct store_stat st;

	put(c, "d/a", "1");
	put(c, "d/e/b", "2");
	put(c, "d0", "3");
	CHECK_OK(store_move(c->s, &c->ctx, P("d"), P("x/y"), ANY, ANY, &st, &c->err), c->err);
	CHECK_INT(st.kind, STORE_DIR);
	CHECK_TREE(c, "d0 x/y/a x/y/e/b");
	CHECK_STR(get(c, "x/y/e/b"), STR("2"));
	CHECK_GONE(c, "d");
}

CASE(a_directory_is_never_replaced_by_a_move)
{
	put(c, "a", "1");
	put(c, "d/b", "2");
	put(c, "e/c", "3");
	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("d"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_move(c->s, &c->ctx, P("e"), P("d"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "a d/b e/c");
}

CASE(a_directory_does_not_replace_a_file)
{
	put(c, "a", "1");
	put(c, "d/b", "2");
	CHECK_ERR(store_move(c->s, &c->ctx, P("d"), P("a"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "a d/b");
}

CASE(a_move_below_a_file_is_invalid)
{
	put(c, "a", "1");
	put(c, "b", "2");
	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("b/c"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "a b");
}

CASE(a_move_into_itself_is_invalid)
{
	put(c, "d/a", "1");
	CHECK_ERR(store_move(c->s, &c->ctx, P("d"), P("d/e"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_move(c->s, &c->ctx, P("d/a"), P("d"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_move(c->s, &c->ctx, P("d/a"), P("d/a"), ANY, ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "d/a");
}

CASE(move_of_what_is_not_there_is_not_found)
{
	put(c, "b", "old");
	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_STR(get(c, "b"), STR("old"));
}

/* Copy. */

CASE(copy_makes_an_independent_file)
{
	struct store_stat st;

	put(c, "a", "bytes");
	CHECK_OK(store_copy(c->s, &c->ctx, P("a"), P("d/b"), ANY, &st, &c->err), c->err);
	CHECK_INT(st.size, 5);
	CHECK_STR(stat_of(c, "d/b").version, st.version);
	CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("+"), ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "d/b"), STR("bytes"));
	CHECK_STR(get(c, "a"), STR("bytes+"));
	CHECK_TREE(c, "a d/b");
}

CASE(copy_of_a_large_file_is_exact)
{
	struct stream st = {.total = 700001};
	struct source source = stream_source(&st);

	CHECK_OK(store_write_stream(c->s, &c->ctx, P("big"), &source, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_copy(c->s, &c->ctx, P("big"), P("copy"), ANY, NULL, &c->err), c->err);
	CHECK(str_eq(get(c, "big"), get(c, "copy")));
}

CASE(copy_honours_absent_and_replaces_without_it)
{
	put(c, "a", "new");
	put(c, "b", "old");
	CHECK_ERR(store_copy(c->s, &c->ctx, P("a"), P("b"), ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_STR(get(c, "b"), STR("old"));
	CHECK_OK(store_copy(c->s, &c->ctx, P("a"), P("b"), ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "b"), STR("new"));
	CHECK_STR(get(c, "a"), STR("new"));
}

CASE(copy_takes_one_file_not_a_directory)
{
	put(c, "d/a", "1");
	CHECK_ERR(store_copy(c->s, &c->ctx, P("d"), P("e"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_ERR(store_copy(c->s, &c->ctx, P("x"), P("e"), ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	put(c, "f", "2");
	CHECK_ERR(store_copy(c->s, &c->ctx, P("f"), P("d"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_TREE(c, "d/a f");
}

/* Lists. */

CASE(a_list_shows_one_level)
{
	put(c, "b", "22");
	put(c, "a/x", "1");
	put(c, "a/y/z", "1");
	CHECK_STR(listing(c, "", false, 10), STR("a/ b"));
	CHECK_STR(listing(c, "a", false, 10), STR("a/x a/y/"));
}

CASE(a_list_gives_the_stat_of_files)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;
	struct store_stat st;

	put(c, "d/b", "22");
	put(c, "d/e/f", "1");
	CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 2);
	st = stat_of(c, "d/b");
	CHECK_INT(page.entries[0].stat.size, 2);
	CHECK_INT(page.entries[0].stat.mtime_ns, st.mtime_ns);
	CHECK_STR(page.entries[0].stat.version, st.version);
	CHECK_INT(page.entries[1].stat.kind, STORE_DIR);
	CHECK_INT(page.entries[1].stat.version.len, 0);
	CHECK_INT(page.skipped, 0);
}

CASE(a_recursive_list_shows_files_at_any_depth)
{
	put(c, "b", "1");
	put(c, "a/y/z", "1");
	put(c, "a/x", "1");
	CHECK_STR(listing(c, "", true, 10), STR("a/x a/y/z b"));
	CHECK_STR(listing(c, "a", true, 10), STR("a/x a/y/z"));
}

CASE(lists_are_in_byte_order_with_directories_as_if_they_ended_in_a_slash)
{
	put(c, "a/x", "1");
	put(c, "a.txt", "1");
	put(c, "a-b", "1");
	put(c, "a0", "1");
	put(c, "B", "1");
	put(c, "\xC3\xA9", "1");
	put(c, "z", "1");
	CHECK_STR(listing(c, "", false, 100), STR("B a-b a.txt a/ a0 z \xC3\xA9"));
	CHECK_STR(listing(c, "", true, 100), STR("B a-b a.txt a/x a0 z \xC3\xA9"));
}

CASE(pages_of_any_size_give_the_same_list)
{
	static const char *const files[] = {"a", "b/a", "b/b/c", "b/b/d", "b.x", "c", "d/e/f/g", "d/e/h", "d0", "e"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(c, files[i], "1");
	for (size_t limit = 1; limit < 12; limit++) {
		CHECK_STR(listing(c, "", false, limit), STR("a b.x b/ c d/ d0 e"));
		CHECK_STR(listing(c, "", true, limit), STR("a b.x b/a b/b/c b/b/d c d/e/f/g d/e/h d0 e"));
		CHECK_STR(listing(c, "b", false, limit), STR("b/a b/b/"));
		CHECK_STR(listing(c, "d", true, limit), STR("d/e/f/g d/e/h"));
	}
}

CASE(a_full_last_page_has_no_cursor)
{
	struct store_list_req req = {.limit = 2};
	struct store_page page;

	put(c, "a", "1");
	put(c, "b/c", "1");
	CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 2);
	CHECK(!page.next.ptr);
}

CASE(a_cursor_goes_on_after_its_entry_is_gone)
{
	struct store_list_req req = {.limit = 2};
	struct store_page page;

	put(c, "a", "1");
	put(c, "b/x", "1");
	put(c, "c", "1");
	CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
	CHECK_STR(page.next, STR("b/"));
	CHECK_OK(store_remove(c->s, &c->ctx, P("b"), true, ANY, NULL, &c->err), c->err);
	req.after = page.next;
	CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].path.s, STR("c"));
}

CASE(a_cursor_sees_what_was_added_behind_it)
{
	struct store_list_req req = {.limit = 1, .recursive = true};
	struct store_page page;

	put(c, "d/a", "1");
	put(c, "d/z", "1");
	CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
	CHECK_STR(page.next, STR("d/a"));
	put(c, "d/m/n", "1");
	req.after = page.next;
	CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
	CHECK_STR(page.entries[0].path.s, STR("d/m/n"));
}

CASE(list_of_what_is_not_there_is_not_found)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;

	put(c, "a", "1");
	CHECK_ERR(store_list(c->s, &c->ctx, P("b"), &req, &page, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_ERR(store_list(c->s, &c->ctx, P("a/b"), &req, &page, &c->err), c->err, ERR_NOT_FOUND);
}

CASE(list_of_a_file_is_invalid)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;

	put(c, "a", "1");
	CHECK_ERR(store_list(c->s, &c->ctx, P("a"), &req, &page, &c->err), c->err, ERR_INVALID);
}

CASE(a_list_limit_is_bounded)
{
	struct store_list_req req = {.limit = 0};
	struct store_page page;

	CHECK_ERR(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err, ERR_INVALID);
	req.limit = STORE_PAGE_MAX + 1;
	CHECK_ERR(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err, ERR_INVALID);
	req.limit = STORE_PAGE_MAX;
	CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
}

CASE(a_thousand_files_are_listed_by_pages)
{
	struct store_list_req req = {.recursive = true, .limit = 64};
	struct store_page page;
	size_t total = 0;

	for (int i = 0; i < 1000; i++) {
		char path[64];

		snprintf(path, sizeof(path), "d%d/f%03d", i % 7, i);
		put(c, path, "x");
	}
	do {
		CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
		total += page.count;
		req.after = page.next;
	} while (page.next.ptr);
	CHECK_INT(total, 1000);
}

/* Names. */

CASE(names_with_odd_characters_are_kept)
{
	static const char *const names[] = {"a b", "-rf", "#x", "\xF0\x9F\x8C\xB1", "a\\b", "q?*[x]",
					    "...", "~",   "%2e"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put(c, names[i], names[i]);
		CHECK_STR(get(c, names[i]), str_of(names[i]));
	}
	CHECK_STR(listing(c, "", false, 100), STR("#x %2e -rf ... a b a\\b q?*[x] ~ \xF0\x9F\x8C\xB1"));
}

CASE(names_differ_by_case)
{
	put(c, "Read", "upper");
	put(c, "read", "lower");
	CHECK_STR(get(c, "Read"), STR("upper"));
	CHECK_STR(get(c, "read"), STR("lower"));
}

CASE(the_longest_name_and_a_deep_path_work)
{
	char name[PATH_NAME_MAX + 1], deep[401];

	memset(name, 'n', PATH_NAME_MAX);
	name[PATH_NAME_MAX] = '\0';
	for (size_t i = 0; i < 400; i++)
		deep[i] = i % 2 ? '/' : 'd';
	deep[399] = '\0';
	put(c, name, "long");
	put(c, deep, "deep");
	CHECK_STR(get(c, name), STR("long"));
	CHECK_STR(get(c, deep), STR("deep"));
	CHECK_OK(store_remove(c->s, &c->ctx, P("d"), true, ANY, NULL, &c->err), c->err);
	CHECK_STR(listing(c, "", false, 5), str_of(name));
}

/* Scans. */

CASE(a_scan_visits_every_file_in_list_order)
{
	struct seen seen = {0};

	put(c, "b", "1");
	put(c, "a/y/z", "1");
	put(c, "a.txt", "1");
	put(c, "a/x", "1");
	CHECK_STR(scan_paths(c, "", &seen, false, false), STR("a.txt a/x a/y/z b"));
}

CASE(a_count_that_comes_with_a_list_is_right)
{
	struct store_count count = {0};
	struct store_list_req req = {.limit = 2, .names_only = true, .count = &count};
	struct store_page page;

	for (int i = 0; i < 9; i++) {
		char path[16];

		snprintf(path, sizeof(path), "d/%d%s", i, i % 3 ? "" : "/in");
		put(c, path, "1");
	}
	for (int round = 0; round < 2; round++) {
		CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
		CHECK_INT(page.count, 2);
		CHECK(!count.known || (count.total == 9 && count.skipped == 0));
		req.after = page.next;
	}
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/7"), false, ANY, NULL, &c->err), c->err);
	put(c, "d/8", "2");
	CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err);
	CHECK(!count.known || count.total == 8);
}

CASE(a_scan_gives_the_contents)
{
	struct seen seen = {0};

	put(c, "d/a", "one");
	put(c, "d/b", "");
	put(c, "e", "no");
	CHECK_STR(scan_paths(c, "d", &seen, true, false), STR("d/a:one d/b"));
}

CASE(a_scan_leaves_out_unwanted_directories_and_files)
{
	struct seen seen = {.skip_dir = "a/y", .skip_file = "b"};

	put(c, "a/x", "1");
	put(c, "a/y/z", "1");
	put(c, "b", "1");
	put(c, "c", "1");
	CHECK_STR(scan_paths(c, "", &seen, false, false), STR("a/x c"));
}

struct chunks {
	uint64_t total, pieces, bad;
};

static int chunk_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct chunks *k = arg;

	(void)err;
	k->bad += item->data.len > SCAN_CHUNK || item->offset != k->total;
	k->bad += !item->last && (item->data.len == 0 || item->data.ptr[item->data.len - 1] != '\n');
	for (size_t i = 0; i < item->data.len; i++)
		k->bad += item->data.ptr[i] != ((item->offset + i) % 100 == 99 ? '\n' : 'x');
	k->total += item->data.len;
	k->pieces++;
	return 0;
}

CASE(a_large_file_is_scanned_in_chunks_that_end_behind_a_line)
{
	struct chunks k = {0};
	struct scan_req req = {.contents = true, .threads = 1, .visit = chunk_visit, .arg = &k};
	size_t len = 3 * MIB;
	char *bytes = arena_alloc(c->ctx.arena, len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = i % 100 == 99 ? '\n' : 'x';
	CHECK_OK(store_write(c->s, &c->ctx, P("big"), str_n(bytes, len), ANY, NULL, &c->err), c->err);
	CHECK_OK(store_scan(c->s, &c->ctx, P(""), &req, &c->err), c->err);
	CHECK_INT(k.total, len);
	CHECK_INT(k.bad, 0);
	CHECK(k.pieces >= 3);
}

static int skip_visit(void *arg, const struct scan_item *item, struct err *err)
{
	(void)item;
	(void)err;
	++*(int *)arg;
	return SCAN_SKIP_FILE;
}

CASE(a_visitor_may_skip_the_rest_of_a_file)
{
	int visits = 0;
	struct scan_req req = {.contents = true, .threads = 1, .visit = skip_visit, .arg = &visits};
	struct stream st = {.total = 3 * MIB};
	struct source source = stream_source(&st);

	CHECK_OK(store_write_stream(c->s, &c->ctx, P("a"), &source, ANY, NULL, &c->err), c->err);
	put(c, "b", "1");
	CHECK_OK(store_scan(c->s, &c->ctx, P(""), &req, &c->err), c->err);
	CHECK_INT(visits, 2);
}

static int stop_visit(void *arg, const struct scan_item *item, struct err *err)
{
	(void)item;
	++*(int *)arg;
	return err_set(err, ERR_CORRUPT, "the visitor has seen enough");
}

CASE(a_visitors_error_ends_the_scan)
{
	int visits = 0;
	struct scan_req req = {.contents = true, .threads = 1, .visit = stop_visit, .arg = &visits};

	put(c, "a", "1");
	put(c, "b", "1");
	CHECK_ERR(store_scan(c->s, &c->ctx, P(""), &req, &c->err), c->err, ERR_CORRUPT);
	CHECK_HAS(str_of(c->err.msg), STR("the visitor has seen enough"));
}

CASE(a_scan_leaves_out_dot_git_when_it_honours_ignores)
{
	struct seen seen = {0}, all = {0};

	if (store_write(c->s, &c->ctx, P(".git/HEAD"), STR("1"), ANY, NULL, &c->err) == -ERR_DENIED)
		return; /* above a guard that lets nobody write there */
	put(c, ".git/HEAD", "1");
	put(c, "a/.git/HEAD", "1");
	put(c, "a/b", "1");
	CHECK_STR(scan_paths(c, "", &seen, false, true), STR("a/b"));
	CHECK_STR(scan_paths(c, "", &all, false, false), STR(".git/HEAD a/.git/HEAD a/b"));
}

CASE(a_scan_honours_the_ignore_files_on_the_way_down)
{
	struct seen seen = {0}, part = {0};

	put(c, ".gitignore", "*.o\nbuild/\n");
	put(c, "a/.gitignore", "!keep.o\nlocal\n");
	put(c, "a/b/keep.o", "1");
	put(c, "a/b/x.o", "1");
	put(c, "a/local", "1");
	put(c, "build/out", "1");
	put(c, "local", "1");
	CHECK_STR(scan_paths(c, "", &seen, false, true), STR(".gitignore a/.gitignore a/b/keep.o local"));
	CHECK_STR(scan_paths(c, "a/b", &part, false, true), STR("a/b/keep.o"));
}

CASE(scan_of_what_is_not_there_is_not_found)
{
	int visits = 0;
	struct scan_req req = {.visit = skip_visit, .arg = &visits};

	CHECK_ERR(store_scan(c->s, &c->ctx, P("no"), &req, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_INT(visits, 0);
}

/* Groups. */

CASE(a_group_makes_all_its_changes)
{
	struct source one = {.bytes = STR("new")}, two = {.bytes = STR("")};
	struct str a = put(c, "d/a", "old"), b = put(c, "d/b", "goes");
	struct store_group_item items[] = {
		{.op = STORE_OP_REMOVE, .path = P("d/b"), .cond = VERS(b)},
		{.op = STORE_OP_WRITE, .path = P("d/a"), .source = &one, .cond = VERS(a)},
		{.op = STORE_OP_WRITE, .path = P("e/f/c"), .source = &two, .cond = ABSENT},
	};
	struct store_group group = {.items = items, .count = COUNT(items)};

	CHECK_OK(store_group(c->s, &c->ctx, &group, &c->err), c->err);
	for (size_t i = 0; i < COUNT(items); i++)
		CHECK(items[i].made);
	CHECK_TREE(c, "d/a e/f/c");
	CHECK_STR(get(c, "d/a"), STR("new"));
	CHECK_INT(items[1].stat.size, 3);
	CHECK_STR(items[1].stat.version, stat_of(c, "d/a").version);
}

CASE(a_group_ends_with_the_change_whose_condition_does_not_hold)
{
	struct source source = {.bytes = STR("new")};
	struct str a = put(c, "a", "old");
	struct store_group_item items[] = {
		{.op = STORE_OP_WRITE, .path = P("b"), .source = &source, .cond = VERS(STR("no"))},
		{.op = STORE_OP_WRITE, .path = P("a"), .source = &source, .cond = VERS(a)},
	};
	struct store_group group = {.items = items, .count = COUNT(items)};

	CHECK_ERR(store_group(c->s, &c->ctx, &group, &c->err), c->err, ERR_CONFLICT);
	CHECK_INT(group.failed, 0);
	CHECK(!items[0].made && !items[1].made);
	CHECK_STR(str_first(str_of(c->err.msg), 9), STR("write b: "));
	CHECK_TREE(c, "a");
	CHECK_STR(get(c, "a"), STR("old"));
}

CASE(in_a_group_files_and_directories_take_each_others_place)
{
	struct source source = {.bytes = STR("new")};
	struct str a = put(c, "a", "file"), b = put(c, "b/c/d", "below");
	struct store_group_item items[] = {
		{.op = STORE_OP_REMOVE, .path = P("a"), .cond = VERS(a)},
		{.op = STORE_OP_REMOVE, .path = P("b/c/d"), .cond = VERS(b)},
		{.op = STORE_OP_WRITE, .path = P("a/e/f"), .source = &source, .cond = ABSENT},
		{.op = STORE_OP_WRITE, .path = P("b"), .source = &source, .cond = ABSENT},
	};
	struct store_group group = {.items = items, .count = COUNT(items)};

	CHECK_OK(store_group(c->s, &c->ctx, &group, &c->err), c->err);
	CHECK_TREE(c, "a/e/f b");
}

/* Ends of a call. */

CASE(a_cancelled_scan_ends)
{
	struct cancel cancel = {true};
	int visits = 0;
	struct scan_req req = {.contents = true, .threads = 1, .visit = skip_visit, .arg = &visits};

	put(c, "a", "1");
	c->ctx.cancel = &cancel;
	CHECK_ERR(store_scan(c->s, &c->ctx, P(""), &req, &c->err), c->err, ERR_CANCELLED);
	c->ctx.cancel = NULL;
}

CASE(a_cancelled_stream_changes_nothing)
{
	struct cancel cancel = {true};
	struct stream st = {.total = 1 * MIB};
	struct source source = stream_source(&st);

	put(c, "a", "old");
	c->ctx.cancel = &cancel;
	CHECK_ERR(store_write_stream(c->s, &c->ctx, P("a"), &source, ANY, NULL, &c->err), c->err, ERR_CANCELLED);
	c->ctx.cancel = NULL;
	CHECK_STR(get(c, "a"), STR("old"));
	CHECK_TREE(c, "a");
}

/* A store that `expr` opens, empty, for each case. */
#define STACK(id, expr)                                                                                                \
	static struct store *id##_open(void)                                                                           \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	TEST(id##_keeps_the_contract)                                                                                  \
	{                                                                                                              \
		conf_run(&store_cases, id##_open);                                                                     \
	}

#endif
