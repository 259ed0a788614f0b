/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of the S3 store times every fault times every request that the operation makes. Whatever happens, a
 * call ends by its deadline, with success or with an error that fits; afterwards the files are as they were or as they
 * should be, whole; and when the fault is over the store works. The state is looked at past the proxy.
 */
#include "store/backends/s3/s3_fix.h"

#include <signal.h>

#include "servers/proxy.h"

#define LENGTH      60000
#define REQUESTS    6     /* the most that an operation of this matrix makes is less */
#define GRACE_MS    15000 /* a call that knows no deadline continues for a minute */
#define TRANSIENT   4000  /* deadlines, ms: for faults that pass, */
#define LASTING     400   /* and for those that do not */
#define RETRY_AFTER "Retry-After: 1\r\n"

struct world {
	struct conf near, far; /* past the proxy, and through it */
	struct proxy *proxy;
	char *old, *new, *both;
	unsigned cases;
	char dir[16], a[32], b[32], x[32], y[32]; /* paths of a case */
	struct str version;
};

static char *filled(char c, size_t len)
{
	char *text = xmalloc(len + 1);

	memset(text, c, len);
	text[len] = 0;
	return text;
}

static struct world *world_new(void)
{
	struct world *w = xcalloc(1, sizeof(*w));
	char prefix[32], endpoint[64];

	w->near.ctx.arena = arena_new();
	w->far.ctx.arena = arena_new();
	w->proxy = proxy_start(s3_env(""));
	snprintf(prefix, sizeof(prefix), "%s", s3_prefix());
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", proxy_port(w->proxy));
	w->near.s = s3_at(NULL, prefix, "");
	w->far.s = s3_at(endpoint, prefix, "");
	w->old = filled('o', LENGTH);
	w->new = filled('n', LENGTH);
	w->both = filled('o', (size_t)2 * LENGTH);
	memset(w->both + LENGTH, 'n', LENGTH);
	/* the bucket is made and the server's abilities are known before the first fault */
	put(&w->near, "warm", "x");
	CHECK_OK(store_append(w->far.s, &w->far.ctx, P("warm"), STR("x"), ANY, NULL, &w->far.err), w->far.err);
	return w;
}

static void world_destroy(struct world *w)
{
	store_destroy(w->near.s);
	store_destroy(w->far.s);
	proxy_stop(w->proxy);
	arena_destroy(w->near.ctx.arena);
	arena_destroy(w->far.ctx.arena);
	free(w->old);
	free(w->new);
	free(w->both);
	free(w);
}

/* New files for a case: a, and d/x and d/y. */
static void lay_out(struct world *w)
{
	arena_reset(w->near.ctx.arena);
	arena_reset(w->far.ctx.arena);
	w->cases++;
	snprintf(w->dir, sizeof(w->dir), "c%u", w->cases);
	snprintf(w->a, sizeof(w->a), "c%u/a", w->cases);
	snprintf(w->b, sizeof(w->b), "c%u/b", w->cases);
	snprintf(w->x, sizeof(w->x), "c%u/d/x", w->cases);
	snprintf(w->y, sizeof(w->y), "c%u/d/y", w->cases);
	w->version = put(&w->near, w->a, w->old);
	put(&w->near, w->x, w->old);
	put(&w->near, w->y, w->old);
}

/* What is at a path: "", or its bytes. */
static struct str there(struct world *w, const char *path)
{
	struct conf *c = &w->near;
	struct str bytes;
	int r = store_read(c->s, &c->ctx, P(path), STORE_WHOLE, MIB, &bytes, NULL, &c->err);

	if (r == -ERR_NOT_FOUND)
		return STR("");
	CHECK_OK(r, c->err);
	return bytes;
}

static void check_one_of(struct world *w, const char *path, const char *first, const char *second)
{
	struct str bytes = there(w, path);

	if (!str_is(bytes, first) && !str_is(bytes, second))
		TEST_FAIL("%s has %zu bytes, neither what was there nor what was to be", path, bytes.len);
}

static void check_is(struct world *w, const char *path, const char *want)
{
	struct str bytes = there(w, path);

	if (!str_is(bytes, want))
		TEST_FAIL("%s has %zu bytes, expected %zu", path, bytes.len, strlen(want));
}

/* The operations. `check` looks at what is there afterwards; `done`: the call said that it was done. */

struct op {
	const char *name;
	int (*run)(struct world *w, struct err *err);
	void (*check)(struct world *w, bool done);
};

static int run_stat(struct world *w, struct err *err)
{
	struct store_stat st;
	int r = store_stat(w->far.s, &w->far.ctx, P(w->a), &st, err);

	if (r == 0)
		CHECK_INT(st.size, LENGTH);
	return r;
}

static int run_read(struct world *w, struct err *err)
{
	struct str bytes;
	int r = store_read(w->far.s, &w->far.ctx, P(w->a), STORE_WHOLE, MIB, &bytes, NULL, err);

	if (r == 0)
		CHECK(str_is(bytes, w->old));
	return r;
}

static int run_list(struct world *w, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	int r = store_list(w->far.s, &w->far.ctx, P(w->dir), &req, &page, err);

	if (r == 0)
		CHECK_INT(page.count, 3);
	return r;
}

static void check_unchanged(struct world *w, bool done)
{
	(void)done;
	check_is(w, w->a, w->old);
	check_is(w, w->b, "");
}

static int run_write(struct world *w, struct err *err)
{
	return store_write(w->far.s, &w->far.ctx, P(w->a), str_of(w->new), ANY, NULL, err);
}

static int run_change(struct world *w, struct err *err)
{
	return store_write(w->far.s, &w->far.ctx, P(w->a), str_of(w->new), VERS(w->version), NULL, err);
}

static void check_written(struct world *w, bool done)
{
	check_one_of(w, w->a, done ? w->new : w->old, w->new);
}

static int run_create(struct world *w, struct err *err)
{
	return store_write(w->far.s, &w->far.ctx, P(w->b), str_of(w->new), ABSENT, NULL, err);
}

static void check_created(struct world *w, bool done)
{
	check_one_of(w, w->b, done ? w->new : "", w->new);
}

static int run_append(struct world *w, struct err *err)
{
	return store_append(w->far.s, &w->far.ctx, P(w->a), str_of(w->new), ANY, NULL, err);
}

static void check_appended(struct world *w, bool done)
{
	check_one_of(w, w->a, done ? w->both : w->old, w->both);
}

static int run_copy(struct world *w, struct err *err)
{
	return store_copy(w->far.s, &w->far.ctx, P(w->a), P(w->b), ANY, NULL, err);
}

static void check_copied(struct world *w, bool done)
{
	check_is(w, w->a, w->old);
	check_one_of(w, w->b, done ? w->old : "", w->old);
}

static int run_move(struct world *w, struct err *err)
{
	return store_move(w->far.s, &w->far.ctx, P(w->a), P(w->b), ANY, ANY, NULL, err);
}

/* Half done it may be in both places, whole; never in none. */
static void check_moved(struct world *w, bool done)
{
	check_one_of(w, w->a, "", done ? "" : w->old);
	check_one_of(w, w->b, done ? w->old : "", w->old);
	CHECK(there(w, w->a).len + there(w, w->b).len > 0);
}

static int run_remove(struct world *w, struct err *err)
{
	return store_remove(w->far.s, &w->far.ctx, P(w->a), false, ANY, NULL, err);
}

static void check_removed(struct world *w, bool done)
{
	check_one_of(w, w->a, "", done ? "" : w->old);
}

static int run_prune(struct world *w, struct err *err)
{
	char d[32];

	snprintf(d, sizeof(d), "%s/d", w->dir);
	return store_remove(w->far.s, &w->far.ctx, P(d), true, ANY, NULL, err);
}

static void check_pruned(struct world *w, bool done)
{
	check_is(w, w->a, w->old);
	check_one_of(w, w->x, "", done ? "" : w->old);
	check_one_of(w, w->y, "", done ? "" : w->old);
}

static const struct op ops[] = {
	{"stat", run_stat, check_unchanged},     {"read", run_read, check_unchanged},
	{"list", run_list, check_unchanged},     {"write", run_write, check_written},
	{"change", run_change, check_written},   {"create", run_create, check_created},
	{"append", run_append, check_appended},  {"copy", run_copy, check_copied},
	{"move", run_move, check_moved},         {"remove", run_remove, check_removed},
	{"remove all", run_prune, check_pruned},
};
#define OPS (sizeof(ops) / sizeof(*ops))

static bool fits(const struct err *err)
{
	return (err->kind == ERR_UNAVAILABLE || err->kind == ERR_TIMEOUT || err->kind == ERR_RATE_LIMITED) &&
	       !strstr(err->msg, s3_env("_SECRET")) && !strchr(err->msg, '\n');
}

/* One operation under one fault. Returns whether the fault was met. */
static bool one_case(struct world *w, const struct op *op, const struct proxy_plan *plan, int64_t deadline_ms,
		     bool must)
{
	struct err err = {0};
	int64_t now;
	bool met;
	int r;

	lay_out(w);
	proxy_forget(w->proxy);
	proxy_arm(w->proxy, plan);
	w->far.ctx.deadline_ns = clock_monotonic_ns() + deadline_ms * 1000000;
	r = op->run(w, &err);
	now = clock_monotonic_ns();
	met = proxy_faults(w->proxy) > 0;
	proxy_disarm(w->proxy);
	if (now > w->far.ctx.deadline_ns + GRACE_MS * INT64_C(1000000))
		TEST_FAIL("%s under fault %d at request %d did not end by its deadline", op->name, plan->fault,
			  (int)plan->at);
	w->far.ctx.deadline_ns = 0;
	if (r != 0 && (must || !met || !fits(&err)))
		TEST_FAIL("%s under fault %d (%d bytes) at request %d failed as %s: %s", op->name, plan->fault,
			  (int)plan->bytes, (int)plan->at, err_kind_name(err.kind), err.msg);
	op->check(w, r == 0);
	r = store_stat(w->far.s, &w->far.ctx, P("warm"), NULL, &err); /* it works again */
	CHECK_OK(r, err);
	return met;
}

/* Each operation, with the fault at its first request, its second, and so on, until it makes no more. */
static void at_every_request(struct proxy_plan plan, int64_t deadline_ms, bool must)
{
	struct world *w = world_new();

	for (size_t i = 0; i < OPS; i++)
		for (plan.at = 1; one_case(w, &ops[i], &plan, deadline_ms, must); plan.at++)
			CHECK(plan.at < REQUESTS);
	CHECK(w->cases > OPS);
	world_destroy(w);
}

static void from_the_first_request_on(struct proxy_plan plan)
{
	struct world *w = world_new();

	plan.count = PROXY_ALWAYS;
	for (size_t i = 0; i < OPS; i++)
		CHECK(one_case(w, &ops[i], &plan, LASTING, false));
	world_destroy(w);
}

/* A failure that passes when the request is repeated does not reach the caller. */

TEST(a_request_that_is_cut_before_it_arrives_is_made_again)
{
	at_every_request((struct proxy_plan){.fault = PROXY_CUT_REQUEST}, TRANSIENT, true);
}

TEST(a_request_that_is_cut_in_the_middle_is_made_again)
{
	at_every_request((struct proxy_plan){.fault = PROXY_CUT_REQUEST, .bytes = 200}, TRANSIENT, true);
}

TEST(a_lost_answer_is_looked_after)
{
	at_every_request((struct proxy_plan){.fault = PROXY_CUT_ANSWER}, TRANSIENT, true);
}

TEST(an_internal_error_is_tried_again)
{
	at_every_request(
		(struct proxy_plan){.fault = PROXY_ANSWER, .answer = PROXY_STATUS("500 Internal Server Error", "")},
		TRANSIENT, true);
}

TEST(a_busy_server_is_tried_again)
{
	at_every_request((struct proxy_plan){.fault = PROXY_ANSWER, .answer = PROXY_STATUS("503 Slow Down", "")},
			 TRANSIENT, true);
}

TEST(a_limit_of_requests_is_waited_for)
{
	at_every_request((struct proxy_plan){.fault = PROXY_ANSWER,
					     .answer = PROXY_STATUS("429 Too Many Requests", RETRY_AFTER)},
			 2 * TRANSIENT, true);
}

TEST(a_slow_answer_is_waited_for)
{
	at_every_request((struct proxy_plan){.fault = PROXY_DELAY, .delay_ms = 50}, TRANSIENT, true);
}

/* A read that has already handed over bytes is not repeated; only the rest is requested. */
TEST(an_answer_that_is_cut_in_the_middle_leaves_no_half)
{
	at_every_request((struct proxy_plan){.fault = PROXY_CUT_ANSWER, .bytes = 100}, TRANSIENT, false);
	at_every_request((struct proxy_plan){.fault = PROXY_CUT_ANSWER, .bytes = 20000}, TRANSIENT, false);
}

/* A failure that does not pass is reported by the deadline. */

TEST(a_server_that_falls_silent_at_any_request_is_given_up_at_the_deadline)
{
	at_every_request((struct proxy_plan){.fault = PROXY_STALL}, LASTING, false);
}

TEST(a_server_that_falls_silent_before_or_within_any_answer_is_given_up_at_the_deadline)
{
	at_every_request((struct proxy_plan){.fault = PROXY_STALL_ANSWER}, LASTING, false);
	at_every_request((struct proxy_plan){.fault = PROXY_STALL_ANSWER, .bytes = 50}, LASTING, false);
}

TEST(a_server_that_is_gone_is_said_to_be_and_works_again_when_it_is_back)
{
	from_the_first_request_on((struct proxy_plan){.fault = PROXY_REFUSE});
}

TEST(a_server_that_only_fails_is_said_to)
{
	from_the_first_request_on(
		(struct proxy_plan){.fault = PROXY_ANSWER, .answer = PROXY_STATUS("500 Internal Server Error", "")});
	from_the_first_request_on(
		(struct proxy_plan){.fault = PROXY_ANSWER, .answer = PROXY_STATUS("503 Service Unavailable", "")});
	from_the_first_request_on((struct proxy_plan){.fault = PROXY_ANSWER,
						      .answer = PROXY_STATUS("429 Too Many Requests", RETRY_AFTER)});
}

TEST(a_server_that_only_cuts_off_is_said_to)
{
	from_the_first_request_on((struct proxy_plan){.fault = PROXY_CUT_REQUEST});
	from_the_first_request_on((struct proxy_plan){.fault = PROXY_CUT_ANSWER});
}

/* The process of the gateway itself: stopped, so that it takes connections and says nothing, and let continue. */
TEST(a_gateway_that_is_frozen_is_given_up_at_the_deadline_and_works_again_when_it_goes_on)
{
	struct world *w = world_new();
	struct err err = {0};
	char line[64], path[512];
	pid_t gateway = 0;
	FILE *pids;
	int r;

	snprintf(path, sizeof(path), "%s/pids", getenv("STEAD_TEST_DIR_CEPH"));
	pids = fopen(path, "re");
	CHECK(pids != NULL);
	while (fgets(line, sizeof(line), pids)) /* the last one */
		gateway = (pid_t)strtol(line, NULL, 10);
	fclose(pids);
	CHECK(gateway > 1);
	lay_out(w);
	for (size_t i = 0; i < OPS; i++) {
		w->far.ctx.deadline_ns = clock_monotonic_ns() + LASTING * INT64_C(1000000);
		CHECK_INT(kill(gateway, SIGSTOP), 0);
		r = ops[i].run(w, &err);
		CHECK_INT(kill(gateway, SIGCONT), 0);
		CHECK(r != 0);
		CHECK(fits(&err));
	}
	w->far.ctx.deadline_ns = 0;
	lay_out(w);
	CHECK_OK(run_append(w, &err), err);
	check_appended(w, true);
	world_destroy(w);
}

static int gateway(const char *verb)
{
	char command[1024];

	snprintf(command, sizeof(command), "'%s/ceph' %s '%s'", SERVERS_DIR, verb, getenv("STEAD_TEST_DIR_CEPH"));
	return system(command); /* NOLINT(cert-env33-c): a script of ours with paths of ours */
}

TEST(a_gateway_that_was_killed_is_said_to_be_gone_and_nothing_is_lost_when_it_is_back)
{
	struct world *w = world_new();
	struct err err = {0};

	lay_out(w);
	CHECK_OK(run_append(w, &err), err);
	CHECK_INT(gateway("kill"), 0);
	for (size_t i = 0; i < OPS; i++) {
		w->far.ctx.deadline_ns = clock_monotonic_ns() + LASTING * INT64_C(1000000);
		CHECK(ops[i].run(w, &err) != 0);
		CHECK(fits(&err));
	}
	w->far.ctx.deadline_ns = 0;
	CHECK_INT(gateway("again"), 0);
	check_is(w, w->a, w->both);
	CHECK_OK(run_create(w, &err), err);
	check_created(w, true);
	world_destroy(w);
}
