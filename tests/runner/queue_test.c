/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: modes, limits, order, and what a restart finds. The test has the clock. */
#include "tool/tool_fix.h"

#include "base/clock.h"
#include "runner/queue.h"

static const struct queue_opts plain = {.mode = QUEUE_FOLLOWUP, .cap = 20, .turns = 4};

struct line {
	struct bench b;
	struct queue *queue;
	struct queue_opts opts;
	int64_t now;
	struct queue_batch batch;
	int64_t next;
};

static void line_open(struct line *l, struct queue_opts opts)
{
	struct err err = {0};

	*l = (struct line){.opts = opts, .now = NS_PER_S};
	bench_open(&l->b, "native");
	CHECK_OK(queue_open(l->b.ws, &l->b.ctx, &opts, &l->queue, &err), err);
	test_defer(queue_close, l->queue);
}

/* As after a kill: memory is gone, files are not. */
static void line_restart(struct line *l)
{
	struct err err = {0};

	test_close(l->queue);
	CHECK_OK(queue_open(l->b.ws, &l->b.ctx, &l->opts, &l->queue, &err), err);
	test_defer(queue_close, l->queue);
}

static enum queue_result put_as(struct line *l, const char *session, const char *id, const char *text, bool is_system)
{
	struct queue_message m = {str_of(id), str_of(session), str_of(text), NULL, is_system};
	enum queue_result result;
	struct err err = {0};

	CHECK_OK(queue_put(l->queue, &l->b.ctx, &m, l->now, &result, &err), err);
	return result;
}

static enum queue_result say(struct line *l, const char *id, const char *text)
{
	return put_as(l, "s", id, text, false);
}

static bool take(struct line *l)
{
	struct err err = {0};
	bool taken;

	CHECK_OK(queue_take(l->queue, &l->b.ctx, l->now, &l->batch, &taken, &l->next, &err), err);
	return taken;
}

static void done(struct line *l)
{
	struct err err = {0};

	CHECK_OK(queue_done(l->queue, &l->b.ctx, &l->batch, &err), err);
}

TEST(collect_waits_for_a_silence_and_makes_one_turn)
{
	struct queue_opts opts = {.mode = QUEUE_COLLECT, .debounce_ms = 1000, .cap = 20, .turns = 4};
	struct line l;

	line_open(&l, opts);
	say(&l, "1", "one");
	l.now += 900 * NS_PER_MS;
	say(&l, "2", "two");
	l.now += 900 * NS_PER_MS;
	CHECK(!take(&l));
	CHECK_INT(l.next, l.now + 100 * NS_PER_MS);
	l.now = l.next;
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("one\n\ntwo"));
	CHECK_STR(l.batch.id, STR("2"));
	done(&l);
	CHECK(!take(&l) && l.next == INT64_MAX);
}

TEST(followup_makes_a_turn_for_each_message_in_order)
{
	struct line l;

	line_open(&l, plain);
	say(&l, "1", "one");
	say(&l, "2", "two");
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("one"));
	CHECK_INT(queue_waiting(l.queue, STR("s")), 1);
	{
		struct queue_batch first = l.batch;

		CHECK(!take(&l)); /* one turn of a session at a time */
		l.batch = first;
	}
	done(&l);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("two"));
}

TEST(sessions_run_next_to_each_other_up_to_the_limit_of_the_lane)
{
	struct queue_opts opts = plain;
	struct line l;

	opts.turns = 2;
	line_open(&l, opts);
	put_as(&l, "a", "1", "a", false);
	put_as(&l, "b", "1", "b", false);
	put_as(&l, "c", "1", "c", false);
	CHECK(take(&l) && take(&l) && !take(&l));
	l.batch.session = STR("a");
	done(&l);
	CHECK(take(&l));
	CHECK_STR(l.batch.session, STR("c"));
}

TEST(a_message_that_comes_twice_counts_once_also_after_a_restart)
{
	struct line l;

	line_open(&l, plain);
	CHECK_INT(say(&l, "1", "one"), QUEUE_ADDED);
	CHECK_INT(say(&l, "1", "one"), QUEUE_SEEN);
	CHECK(take(&l));
	done(&l);
	CHECK_INT(say(&l, "1", "one"), QUEUE_SEEN);
	line_restart(&l);
	CHECK_INT(say(&l, "1", "one"), QUEUE_SEEN);
	CHECK(!take(&l));
}

TEST(events_wait_for_no_silence_and_are_turns_of_their_own)
{
	struct queue_opts opts = {.mode = QUEUE_COLLECT, .debounce_ms = 1000, .cap = 1, .turns = 4};
	struct line l;

	line_open(&l, opts);
	put_as(&l, "s", "e1", "event", true);
	say(&l, "1", "one");
	CHECK_INT(queue_waiting(l.queue, STR("s")), 1);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("event"));
	done(&l);
	CHECK(!take(&l));
	l.now += NS_PER_S;
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("one"));
}

TEST(what_does_not_fit_is_dropped_by_the_policy)
{
	static const struct {
		enum queue_drop drop;
		const char *want;
	} cases[] = {{QUEUE_OLD, "two\n\nthree"},
		     {QUEUE_NEW, "one\n\ntwo"},
		     {QUEUE_SUMMARIZE, "[earlier messages were dropped because too many were waiting: \"one\"]\n\n"
				       "two\n\nthree"}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct queue_opts opts = {.mode = QUEUE_STEER, .cap = 2, .turns = 4, .drop = cases[i].drop};
		struct line l;

		line_open(&l, opts);
		say(&l, "1", "one");
		say(&l, "2", "two");
		CHECK_INT(say(&l, "3", "three"), cases[i].drop == QUEUE_NEW ? QUEUE_REFUSED : QUEUE_ADDED);
		line_restart(&l);
		CHECK(take(&l));
		CHECK_STR(l.batch.text, str_of(cases[i].want));
	}
}

TEST(what_is_dropped_while_a_turn_runs_is_told_with_the_next_one)
{
	struct queue_opts opts = {.mode = QUEUE_STEER, .cap = 1, .turns = 4};
	struct line l;

	line_open(&l, opts);
	say(&l, "1", "one");
	CHECK(take(&l));
	say(&l, "2", "two");
	say(&l, "3", "three");
	line_restart(&l);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("one"));
	done(&l);
	line_restart(&l);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("[earlier messages were dropped because too many were waiting: \"two\"]\n\nthree"));
	done(&l);
	say(&l, "4", "four");
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("four"));
}

static void note(struct line *l, const char *text)
{
	struct err err = {0};

	CHECK_OK(queue_note(l->queue, &l->b.ctx, STR("s"), str_of(text), &err), err);
}

TEST(a_note_starts_no_turn_and_is_told_once_with_the_next_message_of_a_person)
{
	struct queue_opts opts = {.mode = QUEUE_STEER, .cap = 20, .turns = 4};
	struct line l;

	line_open(&l, opts);
	say(&l, "1", "one");
	CHECK(take(&l));
	note(&l, "[a]");
	note(&l, "[b]");
	done(&l);
	line_restart(&l);
	CHECK(!take(&l));
	put_as(&l, "s", "2", "/compact", true);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("/compact"));
	done(&l);
	say(&l, "3", "three");
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("[a]\n\n[b]\n\nthree"));
	line_restart(&l);
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("[a]\n\n[b]\n\nthree"));
	done(&l);
	line_restart(&l);
	say(&l, "4", "four");
	CHECK(take(&l));
	CHECK_STR(l.batch.text, STR("four"));
}

TEST(a_batch_that_was_taken_and_not_finished_comes_again_as_it_was)
{
	struct queue_opts opts = {.mode = QUEUE_STEER, .cap = 20, .turns = 4};
	struct line l;

	line_open(&l, opts);
	say(&l, "1", "one");
	say(&l, "2", "two");
	CHECK(take(&l) && !l.batch.is_again);
	say(&l, "3", "three");
	line_restart(&l);
	CHECK(take(&l) && l.batch.is_again);
	CHECK_STR(l.batch.text, STR("one\n\ntwo"));
	CHECK_STR(l.batch.id, STR("2"));
	done(&l);
	line_restart(&l);
	CHECK(take(&l) && !l.batch.is_again);
	CHECK_STR(l.batch.text, STR("three"));
	queue_release(l.queue, &l.batch);
	CHECK(take(&l) && l.batch.is_again);
}

TEST(the_mode_of_a_session_survives_a_restart)
{
	struct err err = {0};
	struct line l;

	line_open(&l, plain);
	CHECK_OK(queue_set_mode(l.queue, &l.b.ctx, STR("s"), QUEUE_STEER, &err), err);
	say(&l, "1", "one");
	CHECK(take(&l));
	done(&l);
	line_restart(&l);
	CHECK_INT(queue_mode_of(l.queue, STR("s")), QUEUE_STEER);
	CHECK_INT(queue_mode_of(l.queue, STR("other")), QUEUE_FOLLOWUP);
	CHECK_OK(queue_set_mode(l.queue, &l.b.ctx, STR("s"), QUEUE_MODES, &err), err);
	CHECK_INT(queue_mode_of(l.queue, STR("s")), QUEUE_FOLLOWUP);
}

/* Random messages, turns and restarts: what comes out is what went in, in order, once. */
static void order_is_kept(size_t messages)
{
	struct queue_opts opts = {.mode = QUEUE_FOLLOWUP, .cap = 1 << 20, .turns = 3};
	size_t put[4] = {0}, got[4] = {0}, finished = 0;
	uint64_t seed = 7;
	struct line l;

	line_open(&l, opts);
	while (finished < messages) {
		char session[2] = "a", id[24];
		uint64_t dice;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		dice = seed >> 33;
		session[0] = (char)('a' + dice % 4);
		if (dice % 7 < 3 && put[0] + put[1] + put[2] + put[3] < messages) {
			snprintf(id, sizeof(id), "%zu", ++put[dice % 4]);
			put_as(&l, session, id, id, false);
		} else if (dice % 97 == 5) {
			line_restart(&l);
		} else if (take(&l)) {
			size_t who = (size_t)(l.batch.session.ptr[0] - 'a');

			snprintf(id, sizeof(id), "%zu", got[who] + 1);
			CHECK_STR(l.batch.text, str_of(id));
			if (dice % 5) {
				done(&l);
				got[who]++;
				finished++;
			} else {
				queue_release(l.queue, &l.batch);
			}
		}
		if (finished % 64 == 0)
			arena_reset(l.b.arena);
	}
	CHECK(!take(&l));
}

TEST(order_is_kept_and_nothing_is_lost_or_doubled_over_random_restarts)
{
	const char *most = getenv("STEAD_QUEUE_MESSAGES");

	order_is_kept(most ? strtoull(most, NULL, 10) : 3000);
}
