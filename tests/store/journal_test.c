/* SPDX-License-Identifier: Apache-2.0 */
/* The list of journal_conformance.h over every store that needs no server, and what is true of the generic form only.
 */
#include "store/journal_conformance.h"
#include "store/plain_fix.h"

static struct store *mounted(void)
{
	struct store_mount mounts[] = {{.at = P("m"), .store = store_memory_new()}};

	return store_mounts_new(store_memory_new(), mounts, 1);
}

JOURNAL_STACK(memory, store_memory_new())
JOURNAL_STACK(objects, plain_new(store_memory_new()))
JOURNAL_STACK(disk, open_disk(true, true))
JOURNAL_STACK(a_prefix, store_prefix_new(store_memory_new(), P("ws/one")))
JOURNAL_STACK(a_prefix_of_objects, store_prefix_new(plain_new(store_memory_new()), P("ws/one")))
JOURNAL_STACK(mounts, mounted())
JOURNAL_STACK(an_overlay, store_overlay_new(store_memory_new(), store_memory_new()))
JOURNAL_STACK(events, store_events_new(store_memory_new()))
JOURNAL_STACK(quota, store_quota_new(store_memory_new(), (struct quota_limits){.bytes = 64 * MIB}))
JOURNAL_STACK(a_fault_that_is_not_armed, store_fault_new(plain_new(store_memory_new())))

/* --- the generic form --- */

struct objects {
	struct conf c;
	struct store *memory, *fault;
};

static struct objects objects_new(void)
{
	struct objects o = {.memory = store_memory_new()};

	o.fault = store_fault_new(o.memory);
	o.c = (struct conf){.s = plain_new(o.fault), .ctx = {.arena = arena_new()}};
	return o;
}

static void objects_end(struct objects *o)
{
	store_destroy(o->c.s);
	arena_destroy(o->c.ctx.arena);
}

#define OBJECTS_SCOPE __attribute__((cleanup(objects_end))) struct objects

static uint64_t requests(struct objects *o)
{
	uint64_t n = store_fault_count(o->fault);

	store_fault_arm(o->fault, 0, ERR_UNAVAILABLE, false);
	return n;
}

TEST(adding_and_reading_on_are_one_request_each)
{
	OBJECTS_SCOPE o = objects_new();
	struct journal_add add = {.after = 3, .bytes = STR("four"), .known_ns = clock_real_ns()};
	struct journal_read req = {.after = 4, .max_bytes = MIB, .known_ns = clock_real_ns()};
	struct journal_added added;
	struct journal_page page;

	journal_fill(&o.c, 0, 3);
	requests(&o);
	CHECK_OK(store_journal_add(o.c.s, &o.c.ctx, LOG, WPATH_ROOT, ANY, &add, &added, &o.c.err), o.c.err);
	CHECK_INT(requests(&o), 1);
	CHECK_OK(store_journal_read(o.c.s, &o.c.ctx, LOG, &req, &page, &o.c.err), o.c.err);
	CHECK_INT(requests(&o), 1);
}

/* As a process adds that keeps what it added. */
static void fill_as_one(struct objects *o, uint64_t count)
{
	struct journal_entry *kept = ARENA_ARRAY(o->c.ctx.arena, struct journal_entry, count);

	for (uint64_t i = 0; i < count; i++) {
		struct journal_add add = {
			.after = i,
			.known_ns = clock_real_ns(),
			.bytes = arena_printf(o->c.ctx.arena, "entry %llu\n", (unsigned long long)i + 1),
			.recent = kept,
			.recent_count = i};
		struct journal_added added;

		CHECK_OK(store_journal_add(o->c.s, &o->c.ctx, LOG, WPATH_ROOT, ANY, &add, &added, &o->c.err), o->c.err);
		kept[i] = (struct journal_entry){i + 1, add.bytes};
	}
}

TEST(a_long_journal_is_opened_with_few_requests)
{
	OBJECTS_SCOPE o = objects_new();

	fill_as_one(&o, 5000);
	CHECK_INT(requests(&o), 5000 + 5000 / 64);
	CHECK_INT(journal_get(&o.c, 0, 8 * MIB).count, 5000);
	requests(&o);
	CHECK_INT(journal_get(&o.c, 0, 8 * MIB).count, 5000);
	CHECK(requests(&o) < 40);
}

TEST(a_cut_takes_old_objects_away_and_the_numbers_stay_used)
{
	OBJECTS_SCOPE o = objects_new();
	struct journal_added added;
	struct journal_page page;

	fill_as_one(&o, 200);
	CHECK_OK(store_journal_cut_generic(o.c.s, &o.c.ctx, LOG, 10, -1, &o.c.err), o.c.err);
	CHECK_GONE(&o.c, ".stead/log/00000000000000000100"); /* it is in a larger object */
	CHECK_INT(stat_of(&o.c, ".stead/log/00000000000000000200").size, 10);
	page = journal_get(&o.c, 9, MIB);
	CHECK_INT(page.count, 191);
	CHECK_STR(page.entries[90].bytes, STR("entry 100\n"));
	CHECK_ERR(journal_try(&o.c, ".stead/log", 99, STR("a sleeper"), &added), o.c.err, ERR_CONFLICT);
	CHECK(added.overtaken);
	CHECK_OK(store_journal_cut_generic(o.c.s, &o.c.ctx, LOG, 150, -1, &o.c.err), o.c.err);
	CHECK_ERR(journal_try(&o.c, ".stead/log", 20, STR("a sleeper"), &added), o.c.err, ERR_CONFLICT);
	CHECK_INT(journal_get(&o.c, 149, MIB).count, 51);
}

TEST(young_objects_stay_for_those_who_stand_there)
{
	OBJECTS_SCOPE o = objects_new();
	struct journal_read req = {.after = 70, .max_bytes = MIB, .known_ns = clock_real_ns()};
	struct journal_page page;

	fill_as_one(&o, 200);
	CHECK_OK(store_journal_cut(o.c.s, &o.c.ctx, LOG, 10, &o.c.err), o.c.err);
	CHECK_OK(store_journal_read(o.c.s, &o.c.ctx, LOG, &req, &page, &o.c.err), o.c.err);
	CHECK_INT(page.count, 130);
}

TEST(an_add_whose_answer_was_lost_is_found_again)
{
	OBJECTS_SCOPE o = objects_new();
	struct journal_add add = {.after = 1, .bytes = STR("two"), .known_ns = clock_real_ns()};
	struct journal_added added;

	journal_put(&o.c, 0, "one");
	store_fault_arm(o.fault, 1, ERR_UNAVAILABLE, true);
	CHECK_OK(store_journal_add(o.c.s, &o.c.ctx, LOG, WPATH_ROOT, ANY, &add, &added, &o.c.err), o.c.err);
	CHECK_INT(journal_get(&o.c, 0, MIB).count, 2);
}

/* Every request of reading, gathering and cutting fails once: nothing is lost, nothing comes twice. */
TEST(a_failure_at_any_request_loses_no_entry)
{
	for (uint64_t nth = 1; nth < 400; nth++) {
		OBJECTS_SCOPE o = objects_new();
		struct journal_read req = {.max_bytes = MIB};
		struct journal_page page;
		struct err err;
		bool reached;

		journal_fill(&o.c, 0, 130);
		store_fault_arm(o.fault, nth, ERR_UNAVAILABLE, nth % 2);
		store_journal_read(o.c.s, &o.c.ctx, LOG, &req, &page, &err);
		store_journal_cut_generic(o.c.s, &o.c.ctx, LOG, 20, -1, &err);
		reached = store_fault_count(o.fault) >= nth;
		store_fault_arm(o.fault, 0, ERR_UNAVAILABLE, false);
		page = journal_get(&o.c, 19, MIB);
		CHECK_INT(page.count, 111);
		CHECK_STR(page.entries[0].bytes, STR("entry 20\n"));
		CHECK_STR(page.entries[110].bytes, STR("entry 130\n"));
		if (!reached)
			return;
	}
	TEST_FAIL("the scenario never ended");
}

TEST(a_journal_and_a_file_of_another_mount_are_not_one_step)
{
	struct conf c = {.s = mounted(), .ctx = {.arena = arena_new()}};
	struct journal_added added;
	int r;

	CHECK(!journal_change(&c, JOURNAL_WRITE, 0, "m/a", ABSENT, "text", "v1-x", &added, &r));
	CHECK_GONE(&c, "m/a");
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static void count_event(void *arg, const struct store_event *event)
{
	int *seen = arg;

	*seen = *seen * 10 +
		(event->op == STORE_OP_WRITE && str_is(event->path.s, "a") && str_is(event->version, "v1-x"));
}

TEST(listeners_hear_of_the_file_and_not_of_the_journal)
{
	struct conf c = {.s = store_events_new(store_memory_new()), .ctx = {.arena = arena_new()}};
	struct journal_added added;
	int r, seen = 0;

	store_events_listen(c.s, count_event, &seen);
	CHECK(journal_change(&c, JOURNAL_WRITE, 0, "a", ABSENT, "text", "v1-x", &added, &r));
	journal_put(&c, 1, "two");
	CHECK_OK(store_journal_cut(c.s, &c.ctx, LOG, 2, &c.err), c.err);
	CHECK_INT(seen, 1);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
