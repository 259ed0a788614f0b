/* SPDX-License-Identifier: Apache-2.0 */
/* Retention of revisions: what goes, what stays readable, and that neither other processes nor a kill does damage. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "test.h"

static struct arena *arena;
static struct ctx ctx;
static struct store *meta_shared, *inner_shared, *rev;
static struct err err;
static const struct store_cond any = {0};

static struct store *open_again(void)
{
	struct store *s;

	CHECK_OK(store_revisions_open(store_share(inner_shared), store_share(meta_shared), form_opts(REV_FORM), &ctx,
				      &s, &err),
		 err);
	return s;
}

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	inner_shared = store_memory_new();
	meta_shared = form_meta(REV_FORM);
	rev = open_again();
}

static void tear_down(void)
{
	store_destroy(rev);
	store_destroy(inner_shared);
	store_destroy(meta_shared);
	arena_destroy(arena);
}

static struct wpath P(const char *z) {
	return (struct wpath){str_of(z)};
}

static void
put(struct store *s, const char *path, struct str text)
{
	CHECK_OK(store_write(s, &ctx, P(path), text, any, NULL, &err), err);
}

static void put_numbers(const char *path, int from, int to)
{
	for (int i = from; i <= to; i++)
		put(rev, path, arena_printf(arena, "%s %d", path, i));
}

static struct rev_retained retain_on(struct store *s, struct rev_limits limits, bool dry_run)
{
	struct rev_retain want = {.limits = limits, .dry_run = dry_run, .grace_ns = -1};
	struct rev_retained got;

	CHECK_OK(revisions_retain(s, &ctx, &want, &got, &err), err);
	return got;
}

static struct rev_retained retain(uint64_t revisions)
{
	return retain_on(rev, (struct rev_limits){.revisions = revisions}, false);
}

static struct str at(struct store *s, const char *path, uint64_t number)
{
	struct store *past = store_at_revision_new(s, number);
	struct str bytes = STR("(absent)");
	int r = store_read(past, &ctx, P(path), STORE_WHOLE, 16 * MIB, &bytes, NULL, &err);

	store_destroy(past);
	return r ? arena_printf(arena, "(%s)", err.msg) : bytes;
}

static size_t count_below(const char *dir)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	int r = store_list(meta_shared, &ctx, P(dir), &req, &page, &err);

	return r ? 0 : page.count;
}

static char *big(char c)
{
	char *bytes = arena_alloc_raw(arena, 100 * KIB + 1);

	memset(bytes, c, 100 * KIB);
	bytes[100 * KIB] = 0;
	return bytes;
}

TEST(the_newest_revisions_stay_and_the_rest_says_that_it_is_gone)
{
	struct rev_retained got;
	struct revision *list;
	size_t count;

	set_up();
	put_numbers("a", 1, 100);
	got = retain(10);
	CHECK_INT(got.dropped, 90);
	CHECK_INT(got.first, 91);
	CHECK_INT(got.head, 100);
	CHECK(got.freed > 90 * 100);
	CHECK_OK(revisions_query(rev, &ctx, &(struct rev_query){0}, &list, &count, NULL, &err), err);
	CHECK_INT(count, 10);
	CHECK_STR(at(rev, "a", 95), STR("a 95"));
	CHECK_STR(at(rev, "a", 90), STR("a 90"));
	CHECK_STR(at(rev, "a", 89), STR("(read a: revision 89 is no longer kept; the oldest that can be read is 90)"));
	CHECK_INT(revisions_query(rev, &ctx, &(struct rev_query){.since = 5}, &list, &count, NULL, &err),
		  -ERR_NOT_FOUND);
	tear_down();
}

TEST(what_was_dropped_stays_dropped_after_a_restart_and_numbers_go_on)
{
	uint64_t head;

	set_up();
	put_numbers("a", 1, 50);
	retain(1);
	store_destroy(rev);
	rev = open_again();
	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	CHECK_INT(head, 50);
	CHECK_STR(at(rev, "a", 49), STR("a 49"));
	CHECK_STARTS(at(rev, "a", 48), STR("(read a: revision 48 is no longer kept"));
	put(rev, "a", STR("new"));
	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	CHECK_INT(head, 51);
	CHECK_STR(at(rev, "a", 50), STR("a 50"));
	tear_down();
}

TEST(all_of_it_can_go_and_numbers_go_on)
{
	struct rev_limits old = {.age_ns = 1};
	uint64_t head;

	set_up();
	put_numbers("a", 1, 20);
	CHECK_INT(retain_on(rev, old, false).first, 21);
	store_destroy(rev);
	rev = open_again();
	put(rev, "a", STR("new"));
	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	CHECK_INT(head, 21);
	CHECK_STR(at(rev, "a", 20), STR("a 20"));
	tear_down();
}

TEST(a_dry_run_tells_the_same_and_changes_nothing)
{
	struct rev_limits limits = {.revisions = 5};
	struct rev_retained dry, wet;
	uint64_t bytes;

	set_up();
	put_numbers("a", 1, 60);
	put(rev, "b", str_of(big('b')));
	put_numbers("b", 1, 9);
	bytes = revisions_kept_bytes(rev);
	dry = retain_on(rev, limits, true);
	CHECK_INT(revisions_kept_bytes(rev), bytes);
	CHECK_STR(at(rev, "a", 1), STR("a 1"));
	wet = retain_on(rev, limits, false);
	CHECK_INT(dry.dropped, wet.dropped);
	CHECK_INT(dry.blobs, wet.blobs);
	CHECK_INT(dry.blobs, 1);
	CHECK(dry.freed + 400 > wet.freed && wet.freed + 400 > dry.freed);
	CHECK(wet.bytes < bytes && wet.freed >= 100 * KIB);
	tear_down();
}

TEST(what_only_history_keeps_is_counted_and_what_is_present_is_not)
{
	struct rev_past past = {0};

	set_up();
	put(rev, "a", str_of(big('1')));
	CHECK_OK(revisions_past(rev, &ctx, false, &past, &err), err);
	CHECK_INT(past.bytes, REV_RECORD_BYTES);
	put(rev, "a", STR("small"));
	CHECK_OK(store_append(rev, &ctx, P("a"), STR(" and more"), any, NULL, &err), err);
	CHECK_OK(store_move(rev, &ctx, P("a"), P("b"), any, any, NULL, &err), err);
	CHECK_OK(revisions_past(rev, &ctx, false, &past, &err), err);
	CHECK_INT(past.bytes, 4 * REV_RECORD_BYTES + strlen(big('1')));
	CHECK_OK(store_remove(rev, &ctx, P("b"), false, any, NULL, &err), err);
	CHECK_OK(revisions_past(rev, &ctx, false, &past, &err), err);
	CHECK_INT(past.bytes, 4 * REV_RECORD_BYTES + strlen(big('1')) + STR("small and more").len);
	retain(1);
	CHECK_OK(revisions_past(rev, &ctx, false, &past, &err), err);
	CHECK_INT(past.bytes, STR("small and more").len);
	tear_down();
}

static struct store *open_with_scratch(void)
{
	struct revisions_opts opts = form_opts(REV_FORM);
	struct store *s;

	opts.scratch = opts.journal ? NULL : store_share(meta_shared);
	CHECK_OK(store_revisions_open(store_share(inner_shared), store_share(meta_shared), opts, &ctx, &s, &err), err);
	return s;
}

TEST(the_sum_of_what_history_keeps_outlives_its_process_and_is_the_same_when_it_is_made_again)
{
	struct rev_past past = {0}, stored = {0}, again = {0};
	struct str text;

	set_up();
	store_destroy(rev);
	rev = open_with_scratch();
	put_numbers("a", 1, 1100);
	CHECK_OK(revisions_past(rev, &ctx, false, &past, &err), err);
	put_numbers("a", 1, 10);
	store_destroy(rev);
	CHECK_OK(store_read(meta_shared, &ctx, P("past/sum"), STORE_WHOLE, 4096, &text, NULL, &err), err);
	rev = open_with_scratch();
	CHECK_OK(revisions_past(rev, &ctx, false, &stored, &err), err);
	CHECK_INT(stored.stored, 1100);
	CHECK_OK(revisions_past(rev, &ctx, true, &again, &err), err);
	CHECK_INT(stored.bytes, again.bytes);
	retain(5); /* another horizon: the stored sum is not used */
	stored = (struct rev_past){0};
	CHECK_OK(revisions_past(rev, &ctx, false, &stored, &err), err);
	CHECK(stored.bytes < 6 * (REV_RECORD_BYTES + 10));
	tear_down();
}

TEST(blobs_go_when_no_kept_revision_needs_them_and_stay_when_one_does)
{
	set_up();
	put(rev, "a", str_of(big('1')));
	put(rev, "a", str_of(big('2')));
	put(rev, "a", str_of(big('3')));
	CHECK_INT(count_below("blobs"), 3);
	retain(1);
	CHECK_INT(count_below("blobs"), 2);
	CHECK_STR(at(rev, "a", 2), str_of(big('2')));
	CHECK_STR(at(rev, "a", 3), str_of(big('3')));
	tear_down();
}

TEST(a_young_blob_stays_because_its_record_may_still_come)
{
	struct rev_retain want = {.limits = {.revisions = 1}};
	struct rev_retained got;

	set_up();
	put(rev, "a", str_of(big('1')));
	put_numbers("a", 1, 3);
	CHECK_OK(revisions_retain(rev, &ctx, &want, &got, &err), err);
	CHECK_INT(got.blobs, 0);
	CHECK_INT(got.waiting, 100 * KIB);
	CHECK_INT(count_below("blobs"), 2); /* and what revision 4 was written over */
	tear_down();
}

TEST(what_a_kept_revision_refers_to_in_a_dropped_one_stays_readable)
{
	set_up();
	put(rev, "old", STR("the old text"));
	put_numbers("a", 1, 30);
	put(rev, "old", STR("the new text"));
	retain(1);
	CHECK_STR(at(rev, "old", 31), STR("the old text"));
	store_destroy(rev);
	rev = open_again();
	CHECK_STR(at(rev, "old", 31), STR("the old text"));
	retain(1);
	CHECK_STR(at(rev, "old", 31), STR("the old text"));
	put(rev, "old", STR("the newest text"));
	retain(1);
	CHECK_STARTS(at(rev, "old", 31), STR("(read old: revision 31 is no longer kept"));
	CHECK_STR(at(rev, "old", 32), STR("the new text"));
	CHECK_INT(count_below("blobs"), 1);
	tear_down();
}

TEST(a_checkpoint_and_a_pin_keep_what_is_after_them)
{
	uint64_t pin = 30;
	struct rev_retain want = {.limits = {.revisions = 1}, .pins = &pin, .pin_count = 1, .grace_ns = -1};
	struct rev_checkpoint *marks;
	struct rev_retained got;
	size_t count;

	set_up();
	put_numbers("a", 1, 40);
	CHECK_OK(revisions_checkpoint(rev, &ctx, STR("good"), 20, &err), err);
	got = retain(1);
	CHECK_INT(got.first, 21);
	CHECK_INT(got.held_at, 20);
	CHECK_STR(got.held_by, STR("good"));
	CHECK_STR(at(rev, "a", 20), STR("a 20"));
	CHECK_OK(revisions_checkpoint(rev, &ctx, STR("good"), 40, &err), err);
	CHECK_OK(revisions_retain(rev, &ctx, &want, &got, &err), err);
	CHECK_INT(got.first, 31);
	CHECK_INT(got.held_at, 30);
	store_destroy(rev);
	rev = open_again();
	CHECK_OK(revisions_checkpoints(rev, &ctx, &marks, &count, &err), err);
	CHECK_INT(count, 1);
	CHECK_INT(marks[0].number, 40);
	tear_down();
}

TEST(history_is_held_to_its_bytes_and_its_age)
{
	struct rev_retained got;

	set_up();
	put(rev, "a", str_of(big('1')));
	put(rev, "a", str_of(big('2')));
	put(rev, "a", str_of(big('3')));
	got = retain_on(rev, (struct rev_limits){.bytes = 250 * KIB}, false);
	CHECK_INT(got.first, 3);
	CHECK(got.bytes <= 250 * KIB);
	got = retain_on(rev, (struct rev_limits){.age_ns = INT64_C(3600) * 1000000000}, false);
	CHECK_INT(got.dropped, 0);
	tear_down();
}

TEST(a_second_process_reads_on_and_writes_on_after_the_log_was_cut)
{
	struct store *other;
	uint64_t head;

	set_up();
	put_numbers("a", 1, 30);
	put(rev, "b", STR("b once"));
	other = open_again();
	CHECK_STR(at(other, "a", 25), STR("a 25"));
	put_numbers("a", 31, 40);
	retain(20);
	CHECK_STR(at(other, "a", 38), STR("a 37")); /* 31 is b's */
	CHECK_STR(at(other, "a", 3), STR("(read a: revision 3 is no longer kept; the oldest that can be read is 21)"));
	put(other, "b", STR("b twice"));
	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	CHECK_INT(head, 42);
	CHECK_STR(at(rev, "b", 41), STR("b once"));
	store_destroy(other);
	tear_down();
}

TEST(a_process_that_knows_only_dropped_records_does_not_refer_to_them)
{
	struct store *other;

	set_up();
	put(rev, "b", STR("b once"));
	other = open_again();
	CHECK_STR(at(other, "b", 1), STR("b once"));
	put_numbers("a", 1, 40);
	retain(1);
	put(other, "b", STR("b twice"));
	CHECK_OK(store_copy(other, &ctx, P("b"), P("c"), any, NULL, &err), err);
	store_destroy(other);
	store_destroy(rev);
	rev = open_again();
	CHECK_STR(at(rev, "b", 41), STR("b once"));
	CHECK_STR(at(rev, "c", 43), STR("b twice"));
	tear_down();
}

#if REV_FORM == FORM_SEGMENTS
/* As after a day: segments that have nothing that is kept are removed, lowest first. */
static void remove_stubs(void)
{
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;

	CHECK_OK(store_list(meta_shared, &ctx, P("log"), &req, &page, &err), err);
	CHECK(page.count >= 3);
	for (size_t i = 0; i + 2 < page.count; i++)
		CHECK_OK(store_remove(meta_shared, &ctx, page.entries[i].path, false, any, NULL, &err), err);
}

/* Another process, which has the log up to `begun`, writes after it went on and was cut. */
static void write_after_cuts(struct store *other, uint64_t begun)
{
	uint64_t head;

	CHECK_OK(revisions_head(other, &ctx, &head, &err), err);
	CHECK_INT(head, begun);
	for (int i = 0; i < 4; i++) {
		put_numbers("a", 1, 20);
		retain(2);
	}
	remove_stubs();
	CHECK_OK(revisions_head(other, &ctx, &head, &err), err);
	CHECK_INT(head, begun + 80);
	put(other, "b", STR("here"));
	CHECK_OK(revisions_head(other, &ctx, &head, &err), err);
	CHECK_INT(head, begun + 81);
	CHECK_STR(at(other, "a", begun + 80), STR("a 20"));
	store_destroy(other);
	store_destroy(rev);
	rev = open_again();
	CHECK_OK(revisions_head(rev, &ctx, &head, &err), err);
	CHECK_INT(head, begun + 81);
}

TEST(whoever_stands_in_a_segment_that_is_gone_finds_the_log_again)
{
	set_up();
	put_numbers("a", 1, 3);
	write_after_cuts(open_again(), 3);
	tear_down();
}

static uint64_t size_of(const char *path)
{
	struct store_stat stat;

	CHECK_OK(store_stat(meta_shared, &ctx, P(path), &stat, &err), err);
	return stat.size;
}

TEST(whoever_stands_before_a_segment_that_was_made_and_is_gone_finds_the_log_again)
{
	struct str text;
	int count = 0;

	set_up();
	text = str_n(memset(arena_alloc(arena, 60 * KIB), 'x', 60 * KIB), 60 * KIB);
	do
		put(rev, arena_printf(arena, "large/%d", count++).ptr, text);
	while (size_of("log/0000000000000001.jsonl") < 4 * MIB);
	CHECK_INT(count_below("log"), 1); /* it is full, and nothing is in the next one */
	write_after_cuts(open_again(), (uint64_t)count);
	tear_down();
}
#endif

TEST(a_failure_at_any_step_loses_nothing_that_is_kept)
{
	uint64_t nth = 1;
	bool done = false;

	for (; !done && nth < 200; nth++) {
		struct store *fault, *s, *sound;
		bool one_step = REV_FORM == FORM_ONE_STEP; /* then the log is in the store of the files */
		struct rev_retain want = {.limits = {.revisions = 4}, .grace_ns = -1};
		struct rev_retained got;

		set_up();
		put(rev, "old", STR("the old text"));
		put(rev, "big", str_of(big('x')));
		put_numbers("a", 1, 30);
		put(rev, "old", STR("the new text"));
		store_destroy(rev);
		fault = store_fault_new(store_share(one_step ? inner_shared : meta_shared));
		sound = store_share(one_step ? meta_shared : inner_shared);
		CHECK_OK(store_revisions_open(one_step ? fault : sound, one_step ? sound : fault, form_opts(REV_FORM),
					      &ctx, &s, &err),
			 err);
		store_fault_arm(fault, nth, ERR_UNAVAILABLE, nth % 2);
		done = revisions_retain(s, &ctx, &want, &got, &err) == 0 && store_fault_count(fault) < nth;
		store_fault_arm(fault, 0, ERR_UNAVAILABLE, false);
		store_destroy(s);
		rev = open_again();
		CHECK_STR(at(rev, "a", 32), STR("a 30"));
		CHECK_STR(at(rev, "a", 30), STR("a 28"));
		CHECK_STR(at(rev, "old", 32), STR("the old text"));
		CHECK_STR(at(rev, "big", 33), str_of(big('x')));
		CHECK_INT(retain(4).first, 30);
		CHECK_STR(at(rev, "old", 32), STR("the old text"));
		tear_down();
	}
	CHECK(done && nth > (REV_FORM == FORM_SEGMENTS ? 20 : REV_FORM == FORM_OBJECTS ? 8 : 4));
}

/* --- with real processes --- */

static struct store *open_on(const char *dir)
{
	struct store_disk_opts opts = {.relaxed = true, .create = true};
	struct store *inner, *log, *s;

	CHECK_OK(store_disk_open(dir, &opts, &inner, &err), err);
	CHECK_OK(store_disk_open(arena_printf(arena, "%s/.stead/rev", dir).ptr, &opts, &log, &err), err);
	CHECK_OK(store_revisions_open(inner, log, form_opts(REV_FORM), &ctx, &s, &err), err);
	return s;
}

/* Overwrites its file with numbers; every version must be what the next record says was before it. */
static void write_on(const char *dir, _Atomic uint32_t *acked, char name)
{
	char path[2] = {name, 0};
	struct store *s = open_on(dir);

	for (uint32_t i = *acked + 1;; i++) {
		struct arena *mine = arena_new();
		struct ctx c = {.arena = mine};
		struct str text = arena_printf(mine, "%c %u %0*d", name, i, i % 50 == 0 ? 70000 : 300, 7);

		CHECK_OK(store_write(s, &c, P(path), text, any, NULL, &err), err);
		*acked = i;
		arena_destroy(mine);
	}
}

static void retain_on_and_on(const char *dir)
{
	struct store *s = open_on(dir);
	struct rev_retain want = {.limits = {.revisions = 40}, .grace_ns = INT64_C(1000000000)};
	struct rev_retained got;

	for (;;)
		CHECK_OK(revisions_retain(s, &ctx, &want, &got, &err), err);
}

/* Every revision that is kept can be read, and is one more or as much as the one before. */
static void check_history(struct store *s, char name)
{
	char path[2] = {name, 0};
	struct revision *list;
	int64_t n, last = 0;
	size_t count;

	CHECK_OK(revisions_query(s, &ctx, &(struct rev_query){.path = P(path)}, &list, &count, NULL, &err), err);
	for (size_t i = 0; i < count; i++) {
		struct str text = at(s, path, list[i].number), number;

		CHECK_STR(text.ptr[0] == name ? str_of(path) : text, str_of(path));
		text = str_from(text, 2);
		CHECK(str_cut(&text, ' ', &number) && str_to_i64(number, &n));
		if (n < last)
			TEST_FAIL("%s is %lld at revision %llu, and %lld before it", path, (long long)n,
				  (unsigned long long)list[i].number, (long long)last);
		last = n;
	}
}

/* On a busy machine the first rounds may end before a writer has written; the last one then waits for both. */
static void one_round(const char *dir, _Atomic uint32_t *acks, bool is_last)
{
	int64_t until = clock_monotonic_ns() + 60 * NS_PER_S;
	pid_t pids[4];
	struct store *s;

	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (i < 2)
				write_on(dir, &acks[i], (char)('a' + i));
			retain_on_and_on(dir);
		}
	}
	do
		usleep((useconds_t)(5000 + random_u64() % 60000)); /* the instant is the thing under test */
	while (is_last && (acks[0] == 0 || acks[1] == 0) && clock_monotonic_ns() < until);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(waitpid(pids[i], NULL, WNOHANG), 0); /* still running: nothing has failed */
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	s = open_on(dir);
	for (int i = 0; i < 2; i++) {
		char path[2] = {(char)('a' + i), 0};
		struct str text, number;
		int64_t n = 0;

		if (acks[i] == 0)
			continue;
		CHECK_OK(store_read(s, &ctx, P(path), STORE_WHOLE, MIB, &text, NULL, &err), err);
		text = str_from(text, 2);
		CHECK(str_cut(&text, ' ', &number) && str_to_i64(number, &n));
		if (n < acks[i])
			TEST_FAIL("%s is %lld, and %u was acknowledged", path, (long long)n, acks[i]);
		check_history(s, path[0]);
	}
	store_destroy(s);
}

TEST(writers_and_collectors_in_four_processes_killed_at_any_instant_lose_nothing)
{
	const char *text = getenv("STEAD_KILL_ROUNDS"), *dir;
	_Atomic uint32_t *acks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t rounds = 15;

	if (text)
		CHECK(str_to_i64(str_of(text), &rounds));
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	dir = temp_dir_new();
	for (int64_t i = 0; i < rounds; i++) {
		one_round(dir, acks, i == rounds - 1);
		arena_reset(arena);
	}
	CHECK(acks[0] > 0 && acks[1] > 0);
	arena_destroy(arena);
	munmap((void *)acks, 4096);
}
