/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every journal must do (store/journal.h), as a list of cases; each gets an empty store of its own. A store that
 * cannot change a file in the step that adds an entry says so, and must then have done nothing; all else is the same
 * for all. journal_test.c runs the list over what needs no server; the tests of the remote stores run it over theirs.
 */
#ifndef STEAD_TESTS_STORE_JOURNAL_CONFORMANCE_H
#define STEAD_TESTS_STORE_JOURNAL_CONFORMANCE_H

#include <pthread.h>

#include "store/conformance_run.h"
#include "store/journal.h"

static struct conf_list journal_cases = {.at_least = 15};

#define JOURNAL_CASE(id) CONF_CASE(journal_cases, id)
#define LOG              P(".stead/log")

static int journal_try(struct conf *c, const char *journal, uint64_t after, struct str bytes, struct journal_added *ret)
{
	struct journal_add add = {.after = after, .bytes = bytes};

	return store_journal_add(c->s, &c->ctx, P(journal), WPATH_ROOT, ANY, &add, ret, &c->err);
}

static void journal_put(struct conf *c, uint64_t after, const char *text)
{
	struct journal_added added;

	CHECK_OK(journal_try(c, ".stead/log", after, str_of(text), &added), c->err);
}

/* As a writer does that has just added the one before. */
static void journal_fill(struct conf *c, uint64_t after, uint64_t count)
{
	int64_t known_ns = 0;

	for (uint64_t n = after + 1; n <= after + count; n++) {
		struct journal_add add = {.after = n - 1, .known_ns = known_ns};
		struct journal_added added;

		add.bytes = arena_printf(c->ctx.arena, "entry %llu\n", (unsigned long long)n);
		CHECK_OK(store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c->err), c->err);
		known_ns = clock_real_ns();
	}
}

static struct journal_page journal_get(struct conf *c, uint64_t after, size_t max)
{
	struct journal_read req = {.after = after, .max_bytes = max};
	struct journal_page page;

	CHECK_OK(store_journal_read(c->s, &c->ctx, LOG, &req, &page, &c->err), c->err);
	return page;
}

static uint64_t journal_end(struct conf *c)
{
	return journal_get(c, 0, 1).last;
}

/* One change of a file with an entry. False: this store cannot, and nothing happened. */
static bool journal_change(struct conf *c, enum journal_change change, uint64_t after, const char *path,
			   struct store_cond cond, const char *content, const char *version, struct journal_added *ret,
			   int *ret_result)
{
	struct journal_add add = {.after = after,
				  .bytes = arena_printf(c->ctx.arena, "%llu %s", (unsigned long long)after, version),
				  .change = change,
				  .content = str_of(content),
				  .version = str_of(version)};
	bool can = store_can(c->s, change == JOURNAL_WRITE ? STORE_WRITE_STEP : STORE_ONE_STEP);

	*ret_result = store_journal_add(c->s, &c->ctx, LOG, P(path), cond, &add, ret, &c->err);
	CHECK(*ret_result != -ERR_UNSUPPORTED || !can);
	if (*ret_result != -ERR_UNSUPPORTED)
		return true;
	CHECK_INT(journal_end(c), after);
	return false;
}

JOURNAL_CASE(a_journal_that_was_never_added_to_is_empty)
{
	struct journal_page page = journal_get(c, 0, MIB);

	CHECK_INT(page.count, 0);
	CHECK_INT(page.last, 0);
	CHECK_INT(page.first, 1);
}

JOURNAL_CASE(entries_come_back_in_order_with_their_numbers)
{
	struct journal_page page;

	journal_put(c, 0, "one");
	journal_put(c, 1, "two");
	journal_put(c, 2, "three");
	page = journal_get(c, 0, MIB);
	CHECK_INT(page.count, 3);
	CHECK_INT(page.first, 1);
	CHECK_INT(page.last, 3);
	CHECK_INT(page.entries[1].number, 2);
	CHECK_STR(page.entries[1].bytes, STR("two"));
	page = journal_get(c, 2, MIB);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].bytes, STR("three"));
	CHECK_INT(journal_get(c, 3, MIB).count, 0);
}

JOURNAL_CASE(an_add_behind_an_old_entry_is_overtaken_and_adds_nothing)
{
	struct journal_added added;

	journal_put(c, 0, "one");
	journal_put(c, 1, "two");
	CHECK_ERR(journal_try(c, ".stead/log", 0, STR("late"), &added), c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
	if (added.news.count) { /* a store may leave it at that */
		CHECK_INT(added.news.entries[0].number, 1);
		CHECK_STR(added.news.entries[0].bytes, STR("one"));
	}
	CHECK_INT(journal_get(c, 0, MIB).count, 2);
	CHECK_STR(journal_get(c, 0, MIB).entries[0].bytes, STR("one"));
}

/* With known_ns, so that a store of files asks for nothing else and tries to make the object. */
JOURNAL_CASE(of_two_that_add_the_same_bytes_in_one_place_one_is_overtaken)
{
	struct journal_add add = {.after = 1, .bytes = STR("two"), .known_ns = clock_real_ns()};
	struct journal_added added;

	journal_put(c, 0, "one");
	CHECK_OK(store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c->err), c->err);
	CHECK_ERR(store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c->err), c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
	CHECK_INT(journal_get(c, 0, MIB).count, 2);
}

JOURNAL_CASE(an_add_behind_an_entry_that_is_not_there_adds_nothing)
{
	struct journal_added added;

	journal_put(c, 0, "one");
	CHECK_ERR(journal_try(c, ".stead/log", 5, STR("from the future"), &added), c->err, ERR_CONFLICT);
	CHECK_INT(journal_end(c), 1);
}

JOURNAL_CASE(a_page_has_at_least_one_entry_and_no_more_than_fit)
{
	struct journal_page page;

	journal_fill(c, 0, 5); /* of 8 bytes each */
	CHECK_INT(journal_get(c, 0, 1).count, 1);
	page = journal_get(c, 1, 20);
	CHECK_INT(page.count, 2);
	CHECK_INT(page.entries[1].number, 3);
	CHECK(page.last > 3);
}

JOURNAL_CASE(the_bytes_of_an_entry_are_kept_exactly)
{
	struct journal_added added;
	char *big = arena_alloc_raw(c->ctx.arena, MIB);
	struct journal_page page;

	for (size_t i = 0; i < MIB; i++)
		big[i] = (char)(i * 31 + i / 256);
	CHECK_OK(journal_try(c, ".stead/log", 0, str_n(big, MIB), &added), c->err);
	CHECK_OK(journal_try(c, ".stead/log", 1, STR("a\0b\n\xFF"), &added), c->err);
	page = journal_get(c, 0, 8 * MIB);
	CHECK_INT(page.count, 2);
	CHECK(str_eq(page.entries[0].bytes, str_n(big, MIB)));
	CHECK_STR(page.entries[1].bytes, STR("a\0b\n\xFF"));
}

JOURNAL_CASE(what_is_cut_away_is_not_found_and_the_rest_stays)
{
	struct journal_read req = {.after = 1, .max_bytes = MIB};
	struct journal_page page;

	journal_fill(c, 0, 6);
	CHECK_OK(store_journal_cut(c->s, &c->ctx, LOG, 4, &c->err), c->err);
	CHECK_ERR(store_journal_read(c->s, &c->ctx, LOG, &req, &page, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_INT(page.first, 4);
	page = journal_get(c, 3, MIB);
	CHECK_INT(page.count, 3);
	CHECK_INT(page.first, 4);
	CHECK_STR(page.entries[0].bytes, STR("entry 4\n"));
	CHECK_OK(store_journal_cut(c->s, &c->ctx, LOG, 2, &c->err), c->err); /* which is cut already */
	CHECK_INT(journal_get(c, 3, MIB).count, 3);
}

JOURNAL_CASE(a_cut_never_takes_the_last_entry_and_numbers_go_on)
{
	struct journal_added added;

	journal_fill(c, 0, 3);
	CHECK_OK(store_journal_cut(c->s, &c->ctx, LOG, 1000, &c->err), c->err);
	CHECK_INT(journal_get(c, 2, MIB).first, 3);
	CHECK_INT(journal_get(c, 2, MIB).count, 1);
	CHECK_ERR(journal_try(c, ".stead/log", 0, STR("again"), &added), c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
	journal_put(c, 3, "four");
	CHECK_INT(journal_get(c, 3, MIB).last, 4);
}

JOURNAL_CASE(a_cut_of_an_empty_journal_is_nothing)
{
	CHECK_OK(store_journal_cut(c->s, &c->ctx, LOG, 10, &c->err), c->err);
	journal_put(c, 0, "one");
	CHECK_INT(journal_get(c, 0, MIB).count, 1);
}

JOURNAL_CASE(journals_do_not_mix)
{
	struct journal_added added;

	journal_put(c, 0, "one");
	CHECK_OK(journal_try(c, ".stead/log2", 0, STR("other"), &added), c->err);
	CHECK_OK(journal_try(c, "log", 0, STR("third"), &added), c->err);
	journal_put(c, 1, "two");
	CHECK_INT(journal_get(c, 0, MIB).count, 2);
}

JOURNAL_CASE(hundreds_of_entries_are_read_whole_by_pages_and_from_the_middle)
{
	uint64_t at = 0;
	struct journal_page page;

	journal_fill(c, 0, 300);
	for (int round = 0; round < 2; round++) { /* the second time after others have read it */
		page = journal_get(c, 0, MIB);
		CHECK_INT(page.count, 300);
		for (size_t i = 0; i < 300; i++)
			CHECK_STR(page.entries[i].bytes, arena_printf(c->ctx.arena, "entry %zu\n",
								      page.entries[i].number == i + 1 ? i + 1 : 0));
		CHECK_INT(journal_get(c, 257, MIB).entries[0].number, 258);
		CHECK_INT(journal_get(c, 63, MIB).count, 237);
	}
	for (at = 0; at < 300; at = page.entries[page.count - 1].number) {
		page = journal_get(c, at, 200);
		CHECK(page.count > 0 && page.count < 30);
		CHECK_INT(page.entries[0].number, at + 1);
	}
	CHECK_OK(store_journal_cut(c->s, &c->ctx, LOG, 100, &c->err), c->err);
	CHECK_INT(journal_get(c, 99, MIB).count, 201);
	CHECK_INT(journal_get(c, 99, MIB).first, 100);
}

JOURNAL_CASE(who_knows_the_end_reads_the_same)
{
	struct journal_read req = {.after = 2, .max_bytes = MIB, .known_ns = clock_real_ns()};
	struct journal_add add = {.after = 4, .bytes = STR("five"), .known_ns = clock_real_ns()};
	struct journal_added added;
	struct journal_page page;

	journal_fill(c, 0, 4);
	CHECK_OK(store_journal_read(c->s, &c->ctx, LOG, &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 2);
	CHECK_STR(page.entries[1].bytes, STR("entry 4\n"));
	CHECK_INT(page.last, 4);
	CHECK_OK(store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c->err), c->err);
	add.bytes = STR("five again");
	CHECK_ERR(store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c->err), c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
}

JOURNAL_CASE(a_wait_that_brings_nothing_ends)
{
	struct journal_read req = {.after = 1, .max_bytes = MIB, .wait_ns = 30000000};
	struct journal_page page;

	journal_put(c, 0, "one");
	CHECK_OK(store_journal_read(c->s, &c->ctx, LOG, &req, &page, &c->err), c->err);
	CHECK_INT(page.count, 0);
	CHECK_INT(page.last, 1);
}

static void *journal_add_later(void *arg)
{
	struct conf *other = arg, c = {.s = other->s, .ctx = {.arena = arena_new()}};
	struct journal_added added;
	int r = journal_try(&c, ".stead/log", 1, STR("two"), &added);

	arena_destroy(c.ctx.arena);
	return r ? arg : NULL;
}

JOURNAL_CASE(who_waits_hears_of_the_next_entry)
{
	struct journal_read req = {.after = 1, .max_bytes = MIB, .wait_ns = INT64_C(20000000000)};
	struct journal_page page;
	pthread_t other;
	void *failed;

	journal_put(c, 0, "one");
	CHECK_INT(pthread_create(&other, NULL, journal_add_later, c), 0);
	CHECK_OK(store_journal_read(c->s, &c->ctx, LOG, &req, &page, &c->err), c->err);
	pthread_join(other, &failed);
	CHECK(!failed);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].bytes, STR("two"));
}

struct journal_adder {
	struct store *s;
	unsigned id;
	bool failed;
};

/* Adds 25 entries, each after the current last one. One of two says that it knows the end. */
static void *journal_add_many(void *arg)
{
	struct journal_adder *a = arg;
	struct conf c = {.s = a->s, .ctx = {.arena = arena_new()}};
	uint64_t after = 0;

	for (unsigned i = 0; i < 25 && !a->failed;) {
		struct str text = arena_printf(c.ctx.arena, "%u/%u", a->id, i);
		int64_t known_ns = a->id % 2 && after ? clock_real_ns() : 0;
		struct journal_add add = {.after = after, .bytes = text, .known_ns = known_ns};
		struct journal_read req = {.after = after, .max_bytes = MIB, .known_ns = known_ns};
		struct journal_added added;
		struct journal_page page;
		int r = store_journal_add(c.s, &c.ctx, LOG, WPATH_ROOT, ANY, &add, &added, &c.err);

		i += r == 0;
		a->failed = r && !(r == -ERR_CONFLICT && added.overtaken);
		if (r && store_journal_read(c.s, &c.ctx, LOG, &req, &page, &c.err) == 0)
			after = page.last;
		after += r == 0;
	}
	arena_destroy(c.ctx.arena);
	return NULL;
}

JOURNAL_CASE(many_who_add_at_once_lose_nothing_and_double_nothing)
{
	struct journal_adder adders[4];
	pthread_t threads[4];
	struct journal_page page;
	unsigned next[4] = {0};

	for (unsigned i = 0; i < 4; i++) {
		adders[i] = (struct journal_adder){.s = c->s, .id = i};
		CHECK_INT(pthread_create(&threads[i], NULL, journal_add_many, &adders[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	page = journal_get(c, 0, MIB);
	CHECK_INT(page.count, 100);
	for (size_t i = 0; i < page.count; i++) {
		unsigned id = (unsigned)(page.entries[i].bytes.ptr[0] - '0');

		CHECK(id < 4 && !adders[id].failed);
		CHECK_STR(page.entries[i].bytes, arena_printf(c->ctx.arena, "%u/%u", id, next[id]++));
	}
}

JOURNAL_CASE(a_directory_that_is_removed_takes_its_journals_with_it)
{
	struct journal_added added;
	struct journal_read req = {.max_bytes = MIB};
	struct journal_page page;

	put(c, "ws/a", "text");
	CHECK_OK(journal_try(c, "ws/.stead/log", 0, STR("one"), &added), c->err);
	CHECK_OK(journal_try(c, "ws2/log", 0, STR("one"), &added), c->err);
	CHECK_OK(store_remove(c->s, &c->ctx, P("ws"), true, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_journal_read(c->s, &c->ctx, P("ws/.stead/log"), &req, &page, &c->err), c->err);
	CHECK_INT(page.last, 0);
	CHECK_OK(store_journal_read(c->s, &c->ctx, P("ws2/log"), &req, &page, &c->err), c->err);
	CHECK_INT(page.last, 1);
}

/* A change of a file in the same step. */

JOURNAL_CASE(a_write_in_the_same_step_has_the_chosen_version)
{
	struct journal_added added;
	int r;

	if (!journal_change(c, JOURNAL_WRITE, 0, "d/a", ABSENT, "text", "v1-x", &added, &r))
		return;
	CHECK_OK(r, c->err);
	CHECK_STR(added.stat.version, STR("v1-x"));
	CHECK_INT(added.stat.size, 4);
	CHECK_INT(added.stat.kind, STORE_FILE);
	CHECK_STR(get(c, "d/a"), STR("text"));
	CHECK_STR(stat_of(c, "d/a").version, STR("v1-x"));
	CHECK_INT(journal_end(c), 1);
	CHECK(journal_change(c, JOURNAL_WRITE, 1, "d/a", VERS(STR("v1-x")), "other", "v2-x", &added, &r));
	CHECK_OK(r, c->err);
	CHECK_STR(stat_of(c, "d/a").version, STR("v2-x"));
	CHECK_STR(get(c, "d/a"), STR("other"));
	CHECK_OK(store_write(c->s, &c->ctx, P("d/a"), STR("by hand"), VERS(STR("v2-x")), NULL, &c->err), c->err);
	CHECK(!str_is(stat_of(c, "d/a").version, "v2-x"));
}

JOURNAL_CASE(an_append_in_the_same_step_adds_to_the_file_or_makes_it)
{
	struct journal_added added;
	int r;

	if (!journal_change(c, JOURNAL_APPEND, 0, "a", ABSENT, "one", "v1-x", &added, &r))
		return;
	CHECK_OK(r, c->err);
	CHECK(journal_change(c, JOURNAL_APPEND, 1, "a", VERS(STR("v1-x")), "two", "v2-x", &added, &r));
	CHECK_OK(r, c->err);
	CHECK_INT(added.stat.size, 6);
	CHECK_STR(added.stat.version, STR("v2-x"));
	CHECK_STR(get(c, "a"), STR("onetwo"));
	CHECK_INT(journal_end(c), 2);
}

JOURNAL_CASE(a_remove_in_the_same_step_removes)
{
	struct journal_added added;
	struct str version = put(c, "d/a", "text");
	int r;

	if (!journal_change(c, JOURNAL_REMOVE, 0, "d/a", VERS(version), "", "-", &added, &r))
		return;
	CHECK_OK(r, c->err);
	CHECK_GONE(c, "d/a");
	CHECK_GONE(c, "d");
	CHECK_INT(journal_end(c), 1);
}

JOURNAL_CASE(a_condition_that_fails_adds_no_entry)
{
	struct journal_added added;
	int r;

	put(c, "a", "text");
	put(c, "d/b", "text");
	if (!journal_change(c, JOURNAL_WRITE, 0, "a", ABSENT, "x", "v1-x", &added, &r))
		return;
	CHECK_ERR(r, c->err, ERR_EXISTS);
	CHECK(!added.overtaken);
	CHECK(journal_change(c, JOURNAL_WRITE, 0, "a", VERS(STR("another")), "x", "v2-x", &added, &r));
	CHECK_ERR(r, c->err, ERR_CONFLICT);
	CHECK(!added.overtaken);
	if (journal_change(c, JOURNAL_APPEND, 0, "none", VERS(STR("another")), "x", "v3-x", &added, &r)) {
		CHECK_ERR(r, c->err, ERR_CONFLICT);
		CHECK(!added.overtaken);
	}
	if (journal_change(c, JOURNAL_REMOVE, 0, "a", VERS(STR("another")), "", "-", &added, &r))
		CHECK_ERR(r, c->err, ERR_CONFLICT);
	CHECK(journal_change(c, JOURNAL_WRITE, 0, "d", ABSENT, "x", "v4-x", &added, &r));
	CHECK_ERR(r, c->err, ERR_INVALID);
	CHECK(journal_change(c, JOURNAL_WRITE, 0, "a/below", ABSENT, "x", "v5-x", &added, &r));
	CHECK_ERR(r, c->err, ERR_INVALID);
	CHECK_INT(journal_end(c), 0);
	CHECK_STR(get(c, "a"), STR("text"));
}

JOURNAL_CASE(who_is_overtaken_changes_no_file)
{
	struct journal_added added;
	int r;

	journal_put(c, 0, "one");
	journal_put(c, 1, "two");
	if (!journal_change(c, JOURNAL_WRITE, 2, "b", ABSENT, "x", "v0-x", &added, &r))
		return;
	CHECK(journal_change(c, JOURNAL_WRITE, 1, "a", ABSENT, "x", "v1-x", &added, &r));
	CHECK_ERR(r, c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
	CHECK_GONE(c, "a");
	CHECK_INT(journal_end(c), 3);
}

/* Groups of changes in the same step. */

static struct journal_item item_write(const char *path, struct store_cond cond, const char *content,
				      const char *version)
{
	return (struct journal_item){.change = JOURNAL_WRITE,
				     .path = P(path),
				     .cond = cond,
				     .content = str_of(content),
				     .version = str_of(version)};
}

static struct journal_item item_remove(const char *path, struct store_cond cond)
{
	return (struct journal_item){.change = JOURNAL_REMOVE, .path = P(path), .cond = cond, .version = STR("")};
}

/* False: this store cannot, and nothing happened. */
static bool journal_group(struct conf *c, uint64_t after, const struct journal_item *items, size_t count,
			  struct journal_added *ret, int *ret_result)
{
	struct journal_add add = {.after = after,
				  .bytes = arena_printf(c->ctx.arena, "group after %llu", (unsigned long long)after),
				  .change = JOURNAL_GROUP,
				  .items = items,
				  .item_count = count};
	uint64_t end = journal_end(c);

	*ret_result = store_journal_add(c->s, &c->ctx, LOG, WPATH_ROOT, ANY, &add, ret, &c->err);
	CHECK_INT(*ret_result != -ERR_UNSUPPORTED, store_can(c->s, STORE_GROUP_STEP));
	CHECK(*ret_result == 0 || journal_end(c) == end);
	return *ret_result != -ERR_UNSUPPORTED;
}

JOURNAL_CASE(a_group_in_the_same_step_makes_all_its_changes)
{
	struct str old = put(c, "d/old", "old"), gone = put(c, "d/gone", "text"), from = put(c, "d/from", "moved");
	struct journal_item items[] = {
		item_remove("d/gone", VERS(gone)),
		item_write("d/old", VERS(old), "new", "v1-x"),
		item_write("new/a", ABSENT, "one", "v2-x"),
		item_write("new/b", ABSENT, "", "v3-x"),
		{.change = JOURNAL_MOVE,
		 .path = P("to/there"),
		 .cond = ABSENT,
		 .version = from,
		 .from = P("d/from"),
		 .from_cond = VERS(from)},
	};
	struct journal_added added;
	int r;

	if (!journal_group(c, 0, items, COUNT(items), &added, &r))
		return;
	CHECK_OK(r, c->err);
	CHECK_TREE(c, "d/old new/a new/b to/there");
	CHECK_STR(get(c, "d/old"), STR("new"));
	CHECK_STR(get(c, "to/there"), STR("moved"));
	CHECK_STR(stat_of(c, "new/a").version, STR("v2-x"));
	CHECK_STR(stat_of(c, "new/b").version, STR("v3-x"));
	CHECK_STR(journal_get(c, 0, MIB).entries[0].bytes, STR("group after 0"));
}

JOURNAL_CASE(a_group_of_which_one_change_is_refused_makes_none_and_names_that_one)
{
	struct str gone = put(c, "d/gone", "text");
	struct journal_item items[] = {
		item_remove("d/gone", VERS(gone)),
		item_write("a", ABSENT, "one", "v1-x"),
		item_write("taken", ABSENT, "two", "v2-x"),
		item_write("b", ABSENT, "three", "v3-x"),
	};
	struct journal_added added;
	int r;

	put(c, "taken", "text");
	if (!journal_group(c, 0, items, COUNT(items), &added, &r))
		return;
	CHECK_ERR(r, c->err, ERR_EXISTS);
	CHECK(!added.overtaken);
	CHECK_INT(added.failed, 2);
	items[2] = item_remove("taken", VERS(STR("another")));
	CHECK(journal_group(c, 0, items, COUNT(items), &added, &r));
	CHECK_ERR(r, c->err, ERR_CONFLICT);
	CHECK_INT(added.failed, 2);
	items[2] = item_write("taken/below", ABSENT, "x", "v4-x");
	CHECK(journal_group(c, 0, items, COUNT(items), &added, &r));
	CHECK_ERR(r, c->err, ERR_INVALID);
	CHECK_INT(added.failed, 2);
	items[2] = item_write("b/below", ABSENT, "x", "v5-x"); /* of a file of the same group */
	CHECK(journal_group(c, 0, items, COUNT(items), &added, &r));
	CHECK_ERR(r, c->err, ERR_INVALID);
	CHECK_TREE(c, "d/gone taken");
	CHECK_INT(journal_end(c), 0);
}

JOURNAL_CASE(who_is_overtaken_makes_nothing_of_a_group)
{
	struct journal_item items[] = {item_write("a", ABSENT, "one", "v1-x"), item_write("b", ABSENT, "two", "v2-x")};
	struct journal_added added;
	int r;

	journal_put(c, 0, "one");
	if (!journal_group(c, 0, items, COUNT(items), &added, &r))
		return;
	CHECK_ERR(r, c->err, ERR_CONFLICT);
	CHECK(added.overtaken);
	CHECK_TREE(c, "");
	CHECK(journal_group(c, 1, items, COUNT(items), &added, &r));
	CHECK_OK(r, c->err);
	CHECK_TREE(c, "a b");
}

JOURNAL_CASE(the_largest_group_is_made_and_a_larger_one_is_refused)
{
	static struct journal_item items[JOURNAL_GROUP_MAX + 1];
	struct journal_added added;
	int r;

	for (size_t i = 0; i <= JOURNAL_GROUP_MAX; i++)
		items[i] = item_write(arena_printf(c->ctx.arena, "d/%zu/f", i).ptr, ABSENT,
				      arena_printf(c->ctx.arena, "%08000zu", i).ptr,
				      arena_printf(c->ctx.arena, "v%zu-x", i).ptr);
	if (!journal_group(c, 0, items, JOURNAL_GROUP_MAX, &added, &r))
		return;
	CHECK_OK(r, c->err);
	CHECK_STR(get(c, "d/511/f"), arena_printf(c->ctx.arena, "%08000d", 511));
	CHECK(journal_group(c, 1, items, JOURNAL_GROUP_MAX + 1, &added, &r));
	CHECK_ERR(r, c->err, ERR_TOO_LARGE);
}

#define JOURNAL_STACK(id, expr)                                                                                        \
	static struct store *id##_journal_open(void)                                                                   \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	TEST(a_journal_on_##id##_keeps_the_contract)                                                                   \
	{                                                                                                              \
		conf_run(&journal_cases, id##_journal_open);                                                           \
	}

#endif
