/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the log: the past is the same with it and without it, however often the log is closed, merged and cut,
 * and opening, writing and asking cost the same at any length.
 */
#include "base/hash.h"
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/store_fix.h"

#define PATHS 40
#define OPS   3000

struct past {
	char *text; /* NULL: it does not exist */
};

static struct past model[OPS + 1][PATHS];
static struct store *inner, *meta, *scratch, *rev;
static struct arena *arena;
static struct ctx ctx;
static struct err err;
static uint64_t seed, head;

static uint64_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed >> 33;
}

static void open_log(void)
{
	struct revisions_opts opts = form_opts(REV_FORM);

	if (REV_FORM == FORM_SEGMENTS)
		opts.scratch = store_share(scratch);
	CHECK_OK(store_revisions_open(store_share(inner), store_share(meta), opts, &ctx, &rev, &err), err);
}

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	inner = REV_FORM == FORM_ONE_STEP ? store_memory_new() : form_meta(REV_FORM);
	meta = REV_FORM == FORM_ONE_STEP ? store_prefix_new(store_share(inner), P(".stead/rev")) : form_meta(REV_FORM);
	scratch = store_memory_new();
	head = 0;
	open_log();
}

static void tear_down(void)
{
	store_destroy(rev);
	store_destroy(inner);
	store_destroy(meta);
	store_destroy(scratch);
	arena_destroy(arena);
}

static struct wpath path_of(size_t i)
{
	return (struct wpath){arena_printf(arena, "d%zu/f%zu", i % 5, i)};
}

/* The state of one path becomes `text`; that is one revision. */
static void became(size_t i, char *text)
{
	head++;
	memcpy(model[head], model[head - 1], sizeof(model[head]));
	model[head][i].text = text;
}

static void step(void)
{
	size_t i = next_random() % PATHS, to = next_random() % PATHS;
	char *now = model[head][i].text;
	struct str text = arena_printf(arena, "%llu of %zu,", (unsigned long long)head, i);

	switch (next_random() % 8) {
	case 0:
		if (!now)
			return;
		CHECK_OK(store_remove(rev, &ctx, path_of(i), false, ANY, NULL, &err), err);
		became(i, NULL);
		break;
	case 1:
		if (!now || i == to || head + 2 > OPS)
			return;
		CHECK_OK(store_move(rev, &ctx, path_of(i), path_of(to), ANY, ANY, NULL, &err), err);
		became(i, NULL);
		became(to, now);
		break;
	case 2:
	case 3:
	case 4:
		CHECK_OK(store_append(rev, &ctx, path_of(i), text, ANY, NULL, &err), err);
		became(i, (char *)arena_printf(arena, "%s%.*s", now ? now : "", STR_ARG(text)).ptr);
		break;
	default:
		CHECK_OK(store_write(rev, &ctx, path_of(i), text, ANY, NULL, &err), err);
		became(i, (char *)text.ptr);
	}
}

struct got {
	struct buf bytes;
};

static int got_push(void *arg, const void *bytes, size_t len, struct err *e)
{
	(void)e;
	buf_add(&((struct got *)arg)->bytes, str_n(bytes, len));
	return 0;
}

static void check_state(size_t i, uint64_t number)
{
	struct got got;
	struct sink sink = {.push = got_push, .arg = &got};
	struct rev_state state;
	char *want = model[number][i].text;
	int r;

	buf_init(&got.bytes, arena, MIB);
	r = revisions_read(rev, &ctx, path_of(i), number, STORE_WHOLE, &sink, &state, &err);
	if (!want && r == -ERR_NOT_FOUND)
		return;
	CHECK_OK(r, err);
	CHECK_STR(buf_str(&got.bytes), str_of(want ? want : "(nothing)"));
}

static void check_history(size_t i)
{
	struct rev_query query = {.path = path_of(i), .newest_first = true};
	struct revision *list;
	size_t count, at = 0;

	CHECK_OK(revisions_query(rev, &ctx, &query, &list, &count, NULL, &err), err);
	for (uint64_t n = head; n > 0; n--) {
		if (model[n][i].text == model[n - 1][i].text)
			continue;
		CHECK(at < count);
		CHECK_INT(list[at].number, n);
		CHECK(list[at].after.exists == (model[n][i].text != NULL));
		at++;
	}
	CHECK_INT(at, count);
}

static void random_history(uint64_t with)
{
	seed = with;
	set_up();
	while (head < OPS) {
		step();
		if (next_random() % 150 == 0) {
			store_destroy(rev);
			open_log();
		}
		if (next_random() % 20 == 0)
			check_state(next_random() % PATHS, next_random() % (head + 1));
	}
	for (int i = 0; i < 2000; i++)
		check_state(next_random() % PATHS, next_random() % (head + 1));
	for (size_t i = 0; i < PATHS; i++)
		check_history(i);
	tear_down();
}

TEST(the_past_is_the_same_through_the_index)
{
	const char *given = getenv("STEAD_TEST_SEED");
	uint64_t with = given ? strtoull(given, NULL, 10) : 20261116;

	printf("# seed %llu\n", (unsigned long long)with);
	random_history(with);
}

#if REV_FORM == FORM_SEGMENTS
static void found_damage(void *arg, struct str sentence)
{
	TEST_FAIL("%s: %.*s", (const char *)arg, STR_ARG(sentence));
}

/* How many reads of the stores it takes to open the log, write a known path, and ask for the oldest state of another;
   then to check where the log ends; and then to look at all paths. */
static void measure(uint64_t revisions, uint64_t *ret_reads, uint64_t *ret_end, uint64_t *ret_look, uint64_t *ret_runs)
{
	struct rev_check check = {.end_only = true, .found = found_damage, .arg = "a whole log"};
	struct store_list_req req = {.limit = 1000};
	struct revisions_opts opts = {0};
	struct store *counted, *runs;
	struct store_page page;
	struct rev_state state;
	uint64_t noticed;

	set_up();
	for (uint64_t i = 0; i < revisions; i++) {
		CHECK_OK(store_write(rev, &ctx, path_of(i % PATHS), STR("text"), ANY, NULL, &err), err);
		if (i % 1000 == 999)
			arena_reset(arena);
	}
	store_destroy(rev);
	counted = store_fault_new(store_share(meta));
	runs = store_fault_new(store_share(scratch));
	opts.scratch = store_share(runs);
	CHECK_OK(store_revisions_open(store_share(inner), store_share(counted), opts, &ctx, &rev, &err), err);
	store_fault_arm(counted, 0, ERR_UNAVAILABLE, false);
	store_fault_arm(runs, 0, ERR_UNAVAILABLE, false);
	CHECK_OK(store_write(rev, &ctx, path_of(3), STR("more"), ANY, NULL, &err), err);
	CHECK_OK(revisions_state(rev, &ctx, path_of(7), PATHS, &state, &err), err);
	*ret_reads = store_fault_count(counted) + store_fault_count(runs);
	CHECK_OK(revisions_check(rev, &ctx, &check, &err), err);
	CHECK_INT(check.last, revisions + 1);
	*ret_end = store_fault_count(counted) + store_fault_count(runs) - *ret_reads;
	CHECK_OK(revisions_notice(rev, &ctx, WPATH_ROOT, &noticed, &err), err);
	CHECK_INT(noticed, 0);
	*ret_look = store_fault_count(counted) + store_fault_count(runs) - *ret_reads - *ret_end;
	CHECK_OK(store_list(scratch, &ctx, P("index"), &req, &page, &err), err);
	*ret_runs = page.count;
	tear_down();
	store_destroy(counted);
	store_destroy(runs);
}

TEST(a_long_log_costs_what_a_short_one_does)
{
	uint64_t few, many, few_end, many_end, few_look, many_look, few_runs, many_runs;

	measure(1000, &few, &few_end, &few_look, &few_runs);
	measure(50000, &many, &many_end, &many_look, &many_runs);
	printf("# 1000: %llu and %llu reads, %llu runs; 50000: %llu and %llu reads, %llu runs\n",
	       (unsigned long long)few, (unsigned long long)few_look, (unsigned long long)few_runs,
	       (unsigned long long)many, (unsigned long long)many_look, (unsigned long long)many_runs);
	CHECK(many_look <= few_look + 4 * (uint64_t)PATHS);
	CHECK(many <= few + 12);
	CHECK_INT(many_end, few_end);
	CHECK(many_runs <= 6);
}

TEST(a_damaged_index_is_made_again)
{
	struct store_list_req req = {.limit = 100};
	struct store_page page;
	struct str bytes;
	uint64_t number;

	set_up();
	for (int i = 0; i < 600; i++)
		CHECK_OK(store_write(rev, &ctx, path_of((size_t)i % PATHS), STR("text"), ANY, NULL, &err), err);
	store_destroy(rev);
	CHECK_OK(store_list(scratch, &ctx, P("index"), &req, &page, &err), err);
	CHECK(page.count > 0);
	for (size_t i = 0; i < page.count; i++) {
		CHECK_OK(store_read(scratch, &ctx, page.entries[i].path, STORE_WHOLE, MIB, &bytes, NULL, &err), err);
		for (size_t k = 100; k < bytes.len; k += 1000)
			((char *)bytes.ptr)[k] ^= 4;
		CHECK_OK(store_write(scratch, &ctx, page.entries[i].path, bytes, ANY, NULL, &err), err);
	}
	open_log();
	CHECK_OK(store_write(rev, &ctx, P("one/more"), STR("text"), ANY, NULL, &err), err);
	CHECK_OK(revisions_head(rev, &ctx, &number, &err), err);
	CHECK_INT(number, 601);
	tear_down();
}
#endif
