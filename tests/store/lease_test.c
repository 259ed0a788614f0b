/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases by a clock that the test moves. The list runs over memory and disk, and over the store that
 * a server's variable names (tests/servers/with).
 */
#include "store/lease.h"
#include "store/store_fix.h"

static const char *server_url(void)
{
	const char *redis = getenv("STEAD_TEST_REDIS"), *postgres = getenv("STEAD_TEST_POSTGRES"),
		   *mariadb = getenv("STEAD_TEST_MARIADB");

	return redis ? redis : postgres ? postgres : mariadb;
}

#define SECOND INT64_C(1000000000)

struct hands {
	int64_t now_ns;
	void (*during)(struct hands *h); /* called while a contender sleeps */
	struct lease *held;
	struct conf *c;
};

static int64_t hands_now(void *arg)
{
	return ((struct hands *)arg)->now_ns;
}

static void hands_sleep(void *arg, int64_t ns)
{
	struct hands *h = arg;

	h->now_ns += ns;
	if (h->during)
		h->during(h);
}

struct lease_case {
	struct conf c;
	struct hands hands;
	struct lease_clock clock;
	char name[40];
};

static struct lease_want want_of(struct lease_case *t, const char *holder)
{
	return (struct lease_want){
		.name = str_of(t->name), .holder = str_of(holder), .ttl_ns = 10 * SECOND, .clock = &t->clock};
}

static struct lease *take(struct lease_case *t, const char *holder)
{
	struct lease_want want = want_of(t, holder);
	struct lease *l;

	CHECK_OK(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err);
	return l;
}

#define CHECK_REFUSED(t, want)                                                                                         \
	do {                                                                                                           \
		struct lease *l_ = NULL;                                                                               \
		CHECK_ERR(lease_acquire((t)->c.s, &(t)->c.ctx, &(want), &l_, &(t)->c.err), (t)->c.err, ERR_CONFLICT);  \
	} while (0)

/* What the store says of the lease now. */
static void check_held(struct lease_case *t, const char *holder, uint64_t fence)
{
	struct lease_info info;

	CHECK_OK(lease_show(t->c.s, &t->c.ctx, str_of(t->name), &info, &t->c.err), t->c.err);
	CHECK_STR(info.holder, str_of(holder));
	CHECK_INT(info.fence, fence);
}

static void each_acquisition_has_a_greater_fence(struct lease_case *t)
{
	struct lease *a = take(t, "a"), *b, *again;

	check_held(t, "a", 1);
	CHECK_OK(lease_release(a, &t->c.ctx, &t->c.err), t->c.err);
	b = take(t, "b");
	check_held(t, "b", 2);
	again = take(t, "b"); /* the same holder, started again */
	check_held(t, "b", 3);
	CHECK_ERR(lease_renew(b, &t->c.ctx, &t->c.err), t->c.err, ERR_CONFLICT);
	CHECK_OK(lease_renew(again, &t->c.ctx, &t->c.err), t->c.err);
	lease_destroy(a);
	lease_destroy(b);
	lease_destroy(again);
}

static void a_dropped_lease_leaves_no_file_on_a_disk_and_only_its_holder_can_drop_it(struct lease_case *t)
{
	struct lease *a = take(t, "a"), *b;
	struct lease_want want = want_of(t, "b");
	struct lease_info info;
	int r;

	want.wait_ns = 20 * SECOND;
	CHECK_OK(lease_acquire(t->c.s, &t->c.ctx, &want, &b, &t->c.err), t->c.err);
	CHECK_OK(lease_drop(a, &t->c.ctx, &t->c.err), t->c.err);
	check_held(t, "b", 2);
	CHECK_OK(lease_drop(b, &t->c.ctx, &t->c.err), t->c.err);
	r = lease_show(t->c.s, &t->c.ctx, str_of(t->name), &info, &t->c.err);
	CHECK_INT(r, store_is_local(t->c.s) ? -ERR_NOT_FOUND : 0);
	lease_destroy(a);
	lease_destroy(b);
	a = take(t, "a");
	check_held(t, "a", store_is_local(t->c.s) ? 1 : 3);
	lease_destroy(a);
}

static void a_held_lease_is_refused_and_says_who_has_it(struct lease_case *t)
{
	struct lease *a = take(t, "ann's machine");
	struct lease_want want = want_of(t, "b");

	CHECK_REFUSED(t, want);
	CHECK_HAS(str_of(t->c.err.msg), STR("ann's machine"));
	lease_destroy(a);
}

static void a_lease_that_nobody_renews_is_taken_after_its_time(struct lease_case *t)
{
	struct lease *a = take(t, "a"), *b;
	struct lease_want want = want_of(t, "b");

	want.wait_ns = 20 * SECOND;
	CHECK_OK(lease_acquire(t->c.s, &t->c.ctx, &want, &b, &t->c.err), t->c.err);
	CHECK(t->hands.now_ns > 10 * SECOND);
	check_held(t, "b", 2);
	CHECK_ERR(lease_renew(a, &t->c.ctx, &t->c.err), t->c.err, ERR_CONFLICT);
	CHECK_OK(lease_release(a, &t->c.ctx, &t->c.err), t->c.err);
	check_held(t, "b", 2);
	lease_destroy(a);
	lease_destroy(b);
}

static void renew_held(struct hands *h)
{
	CHECK_OK(lease_renew(h->held, &h->c->ctx, &h->c->err), h->c->err);
}

static void a_holder_that_renews_is_never_overtaken(struct lease_case *t)
{
	struct lease_want want = want_of(t, "b");

	t->hands.held = take(t, "a");
	t->hands.during = renew_held;
	want.wait_ns = 100 * SECOND;
	CHECK_REFUSED(t, want);
	check_held(t, "a", 1);
	t->hands.during = NULL;
	lease_destroy(t->hands.held);
}

static void looking_now_and_then_is_as_good_as_waiting(struct lease_case *t)
{
	struct lease *a = take(t, "a"), *b;
	struct lease_watch watch = {0};
	struct lease_want want = want_of(t, "b");

	want.watch = &watch;
	CHECK_REFUSED(t, want);
	t->hands.now_ns += 9 * SECOND;
	CHECK_REFUSED(t, want);
	t->hands.now_ns += 2 * SECOND;
	CHECK_OK(lease_acquire(t->c.s, &t->c.ctx, &want, &b, &t->c.err), t->c.err);
	lease_destroy(a);
	lease_destroy(b);
}

static void what_was_not_watched_counts_for_nothing(struct lease_case *t)
{
	struct lease *a = take(t, "a");
	struct lease_want want = want_of(t, "b");

	t->hands.now_ns += 3600 * SECOND; /* this clock may run ahead: it has seen nothing */
	CHECK_REFUSED(t, want);
	lease_destroy(a);
}

static void a_lease_is_resumed_by_its_holder_and_nobody_else(struct lease_case *t)
{
	struct lease *a = take(t, "a"), *l;
	struct lease_want mine = want_of(t, "a"), other = want_of(t, "b");

	CHECK_ERR(lease_resume(t->c.s, &t->c.ctx, &other, 0, &l, &t->c.err), t->c.err, ERR_CONFLICT);
	CHECK_ERR(lease_resume(t->c.s, &t->c.ctx, &mine, 7, &l, &t->c.err), t->c.err, ERR_CONFLICT);
	CHECK_OK(lease_resume(t->c.s, &t->c.ctx, &mine, 1, &l, &t->c.err), t->c.err);
	CHECK_OK(lease_renew(l, &t->c.ctx, &t->c.err), t->c.err);
	CHECK_OK(lease_renew(a, &t->c.ctx, &t->c.err), t->c.err); /* the other handle of the same holder works on */
	lease_destroy(a);
	lease_destroy(l);
}

static void what_cannot_be_a_lease_is_refused(struct lease_case *t)
{
	struct lease_want want = want_of(t, "a");
	struct lease_info info;
	struct lease *l;

	CHECK_ERR(lease_show(t->c.s, &t->c.ctx, str_of(t->name), &info, &t->c.err), t->c.err, ERR_NOT_FOUND);
	want.name = STR("a/b");
	CHECK_ERR(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err, ERR_INVALID);
	want = want_of(t, "");
	CHECK_ERR(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err, ERR_INVALID);
	want = want_of(t, "a");
	want.ttl_ns = 1;
	CHECK_ERR(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err, ERR_INVALID);
	put(&t->c, t->name, "{\"fence\":0}");
	want = want_of(t, "a");
	CHECK_ERR(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err, ERR_CORRUPT);
}

static void what_a_power_cut_left_of_a_lease_is_taken(struct lease_case *t)
{
	struct lease_want want = want_of(t, "a");
	struct lease *l;

	put(&t->c, t->name, "");
	CHECK_OK(lease_acquire(t->c.s, &t->c.ctx, &want, &l, &t->c.err), t->c.err);
	check_held(t, "a", 1);
	lease_destroy(l);
}

static const struct {
	const char *name;
	void (*run)(struct lease_case *t);
} cases[] = {
#define ONE(f)                                                                                                         \
	{                                                                                                              \
#f, f                                                                                                  \
	}
	ONE(each_acquisition_has_a_greater_fence),
	ONE(a_dropped_lease_leaves_no_file_on_a_disk_and_only_its_holder_can_drop_it),
	ONE(a_held_lease_is_refused_and_says_who_has_it),
	ONE(a_lease_that_nobody_renews_is_taken_after_its_time),
	ONE(a_holder_that_renews_is_never_overtaken),
	ONE(looking_now_and_then_is_as_good_as_waiting),
	ONE(what_was_not_watched_counts_for_nothing),
	ONE(a_lease_is_resumed_by_its_holder_and_nobody_else),
	ONE(what_cannot_be_a_lease_is_refused),
	ONE(what_a_power_cut_left_of_a_lease_is_taken),
};

static void run_cases(struct store *s)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct lease_case t = {.c = {.s = s, .ctx.arena = arena_new()}};

		printf("# %s\n", cases[i].name);
		t.hands.c = &t.c;
		t.clock = (struct lease_clock){.now_ns = hands_now, .sleep_ns = hands_sleep, .arg = &t.hands};
		snprintf(t.name, sizeof t.name, "lease-%016llx", (unsigned long long)random_u64());
		cases[i].run(&t);
		arena_destroy(t.c.ctx.arena);
	}
	store_destroy(s);
}

TEST(leases_hold_in_memory)
{
	run_cases(store_memory_new());
}

TEST(leases_hold_on_disk_or_in_the_store_that_the_environment_names)
{
	const char *url = server_url();
	struct store *s = NULL;
	struct err err;

	if (url)
		CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	run_cases(s ? s : open_disk(true, false));
}

TEST(an_acquisition_whose_answer_got_lost_is_known_as_ones_own)
{
	struct store *fault = store_fault_new(store_memory_new());
	struct lease_case t = {.c = {.s = fault, .ctx.arena = arena_new()}, .name = "x"};
	struct lease *l;

	t.clock = (struct lease_clock){.now_ns = hands_now, .sleep_ns = hands_sleep, .arg = &t.hands};
	store_fault_arm(fault, 2, ERR_UNAVAILABLE, true);
	l = take(&t, "a");
	check_held(&t, "a", 1);
	store_fault_arm(fault, 1, ERR_UNAVAILABLE, true);
	CHECK_OK(lease_renew(l, &t.c.ctx, &t.c.err), t.c.err);
	CHECK_OK(lease_renew(l, &t.c.ctx, &t.c.err), t.c.err);
	lease_destroy(l);
	store_destroy(fault);
	arena_destroy(t.c.ctx.arena);
}
