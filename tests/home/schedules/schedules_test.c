/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: declarations, what is due by the misfire policy, and claims by many at once. */
#include <pthread.h>

#include "tool/tool_fix.h"

#include "base/clock.h"
#include "home/schedules/schedules.h"

#define NOON INT64_C(1772366400) /* 2026-03-01T12:00:00Z */
#define HOUR INT64_C(3600)

static struct schedule declared(struct arena *arena, const char *yaml)
{
	struct schedule s = {0};
	struct err err;

	CHECK_OK(schedule_parse(arena, STR("file-name"), str_of(yaml), STR("UTC"), &s, &err), err);
	return s;
}

TEST(a_declaration_is_read_as_it_is_written)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct schedule s =
		declared(arena, "name: daily-summary\nschedule: \"0 9 * * *\"  # 9 AM daily\nenabled: true\n"
				"prompt: |\n  Generate a summary.\noutput:\n  channel: telegram\n  chat_id: 123\n");
	struct cron_time t;

	CHECK_STR(s.id, STR("daily-summary"));
	CHECK_STR(s.prompt, STR("Generate a summary.\n"));
	CHECK_INT(jv_get_int(s.output, "chat_id", 0), 123);
	CHECK(s.enabled);
	CHECK(schedule_next(&s, NOON, &t));
	CHECK_INT(t.at, NOON + 21 * HOUR);
}

TEST(a_wrong_declaration_is_refused_with_its_line)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const rows[][2] = {
		{"schedule: \"0 9 * * *\"\n", "prompt"},
		{"prompt: x\n", "schedule"},
		{"prompt: x\nschedule: \"61 9 * * *\"\n", "line 2: the minute \"61\""},
		{"prompt: x\nschedule: \"0 9 * * *\"\nshedule: 1\n", "shedule"},
		{"prompt: x\nschedule: \"0 9 * * *\"\nmisfire: sometimes\n", "misfire"},
		{"prompt: x\nschedule: \"0 9 * * *\"\ntimezone: Mars/Base\n",
		 "line 3: there is no time zone \"Mars/Base\""},
		{"", "the file is empty; it needs \"schedule\" and \"prompt\""},
		{"prompt: x\nschedule: \"0 9 * * *\"\nname: \"a\\nb\"\n", "the name \"a\" is not allowed"},
		{"prompt: x\nschedule: \"0 9 * * *\"\ngrace_seconds: 99999999999999999999\n", "grace_seconds is"},
		{"[1, 2]\n", "object"},
	};
	struct schedule s;
	struct err err;

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_INT(schedule_parse(arena, STR("x"), str_of(rows[i][0]), STR("UTC"), &s, &err) != 0, 1);
		if (!strstr(err.msg, rows[i][1]))
			TEST_FAIL("\"%s\" does not say \"%s\"", err.msg, rows[i][1]);
	}
}

TEST(a_broken_file_hurts_no_other)
{
	struct bench b;
	struct schedules all;
	struct err err;

	bench_open(&b, "");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("crons/good.yaml")},
			     STR("schedule: '@daily'\nprompt: x\n"), (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("crons/bad.yaml")}, STR("schedule: [\n"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("crons/same.yml")},
			     STR("name: good\nschedule: '@daily'\nprompt: x\n"), (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(schedules_read(b.ws, &b.ctx, &all, &err), err);
	CHECK_INT(all.count, 1);
	CHECK_STR(all.list[0].id, STR("good"));
	CHECK_INT(jv_count(all.problems), 2);
}

/* --- what is due --- */

struct due_row {
	const char *yaml;
	int64_t last, now;
	int64_t due, passed;
	uint64_t missed;
};

#define HOURLY "schedule: '0 * * * *'\nprompt: x\n"

TEST(what_is_due_follows_the_misfire_policy)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct due_row rows[] = {
		{HOURLY, NOON, NOON + 100, 0, 0, 0},
		{HOURLY, NOON, NOON + HOUR, NOON + HOUR, NOON + HOUR, 0},
		{HOURLY, NOON, NOON + HOUR + 299, NOON + HOUR, NOON + HOUR, 0},
		{HOURLY, NOON, NOON + HOUR + 301, 0, NOON + HOUR, 1},
		{HOURLY, NOON, NOON + 5 * HOUR + 10, NOON + 5 * HOUR, NOON + 5 * HOUR, 4},
		{HOURLY "grace_seconds: 86400\n", NOON, NOON + 5 * HOUR + 10, NOON + 5 * HOUR, NOON + 5 * HOUR, 4},
		{HOURLY "grace_seconds: 86400\nmisfire: all\n", NOON, NOON + 5 * HOUR + 10, NOON + HOUR, NOON + HOUR,
		 0},
		{HOURLY "grace_seconds: 86400\nmisfire: skip\n", NOON, NOON + 5 * HOUR + 61, 0, NOON + 5 * HOUR, 5},
		{HOURLY "misfire: skip\n", NOON, NOON + 5 * HOUR + 30, NOON + 5 * HOUR, NOON + 5 * HOUR, 4},
		{HOURLY "enabled: false\n", NOON, NOON + HOUR, 0, 0, 0},
		{HOURLY, NOON + 9 * HOUR, NOON + HOUR, 0, 0, 0}, /* the clock was set back */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct schedule s = declared(arena, rows[i].yaml);
		struct schedule_state state = {.last_due = rows[i].last};
		struct schedule_due due = schedule_look(&s, &state, rows[i].now);

		if (due.due != rows[i].due || due.passed != rows[i].passed || due.missed != rows[i].missed)
			TEST_FAIL("row %zu: due %lld, passed %lld, missed %llu", i, (long long)due.due,
				  (long long)due.passed, (unsigned long long)due.missed);
	}
}

TEST(a_schedule_that_was_never_looked_at_has_nothing_due)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct schedule s = declared(arena, HOURLY);
	struct schedule_state state = {0};

	CHECK_INT(schedule_look(&s, &state, NOON).passed, 0);
}

/* --- claims --- */

struct claimer {
	struct workspace *ws;
	const struct schedule *schedule;
	int64_t hours;
	int claimed;
};

static void *claim_all(void *arg)
{
	struct claimer *c = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};

	for (int64_t h = 1; h <= c->hours; h++) {
		struct schedule_due due = {.due = NOON + h * HOUR, .passed = NOON + h * HOUR};
		struct err err;
		struct jv *record = jv_object(arena);

		if (schedule_claim(c->ws, &ctx, c->schedule, &due, STR("me"), &err) != 0)
			continue;
		c->claimed++;
		jv_set_str(arena, record, "outcome", STR("ran"));
		if (schedule_ended(c->ws, &ctx, c->schedule, due.due, record, &err) != 0)
			c->claimed = 1000000;
	}
	return NULL;
}

TEST(a_due_time_is_claimed_once_by_many)
{
	struct bench b;
	struct schedule s;
	struct claimer claimers[8];
	pthread_t threads[8];
	int claimed = 0;
	struct err err;

	bench_open(&b, "");
	s = declared(b.arena, HOURLY);
	CHECK_OK(schedule_begin(b.ws, &b.ctx, s.id, NOON, &err), err);
	for (size_t i = 0; i < COUNT(threads); i++) {
		claimers[i] = (struct claimer){b.ws, &s, 40, 0};
		CHECK_INT(pthread_create(&threads[i], NULL, claim_all, &claimers[i]), 0);
	}
	for (size_t i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], NULL);
		claimed += claimers[i].claimed;
	}
	CHECK(claimed >= 1 && claimed <= 40);
	/* One line for each claim, and no due time in two of them. */
	{
		struct str text, line;
		int lines = 0;
		uint64_t seen = 0; /* one bit for each hour */
		int64_t at;
		struct jv *v;

		CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, (struct wpath){STR("schedules/log.jsonl")},
				    STORE_WHOLE, 1 << 20, &text, NULL, &err),
			 err);
		while (str_cut(&text, '\n', &line) && line.len) {
			CHECK_OK(jv_parse(b.arena, line, &v, &err), err);
			CHECK(clock_parse(jv_get_str(v, "due"), &at));
			at = (at / NS_PER_S - NOON) / HOUR;
			CHECK(at >= 1 && at <= 40 && !(seen >> at & 1));
			seen |= UINT64_C(1) << at;
			lines++;
		}
		CHECK_INT(lines, claimed);
	}
}

TEST(a_run_that_has_not_ended_keeps_the_next_from_starting)
{
	struct bench b;
	struct schedule s;
	struct schedule_state state;
	struct schedule_due due = {.due = NOON + HOUR, .passed = NOON + HOUR};
	struct err err;

	bench_open(&b, "");
	s = declared(b.arena, HOURLY);
	CHECK_OK(schedule_begin(b.ws, &b.ctx, s.id, NOON, &err), err);
	CHECK_OK(schedule_claim(b.ws, &b.ctx, &s, &due, STR("me"), &err), err);
	CHECK_OK(schedule_state_read(b.ws, &b.ctx, s.id, &state, &err), err);
	CHECK_INT(state.running, NOON + HOUR);
	CHECK_INT(schedule_look(&s, &state, NOON + 2 * HOUR).passed, 0);
	due = (struct schedule_due){.due = NOON + 2 * HOUR, .passed = NOON + 2 * HOUR};
	CHECK_INT(schedule_claim(b.ws, &b.ctx, &s, &due, STR("you"), &err), -ERR_CONFLICT);
}

TEST(what_came_due_during_a_pause_is_not_made_up_for)
{
	struct bench b;
	struct schedule s;
	struct schedule_state state;
	struct err err;

	bench_open(&b, "");
	s = declared(b.arena, HOURLY);
	CHECK_OK(schedule_begin(b.ws, &b.ctx, s.id, NOON, &err), err);
	CHECK_OK(schedule_pause(b.ws, &b.ctx, s.id, true, &err), err);
	CHECK_OK(schedule_state_read(b.ws, &b.ctx, s.id, &state, &err), err);
	CHECK_INT(schedule_look(&s, &state, NOON + HOUR).passed, 0);
	CHECK_OK(schedule_pause(b.ws, &b.ctx, s.id, false, &err), err);
	CHECK_OK(schedule_state_read(b.ws, &b.ctx, s.id, &state, &err), err);
	CHECK(state.last_due > NOON);
	CHECK(!state.paused);
}

/* --- made by agents --- */

TEST(an_agent_schedules_lists_and_cancels)
{
	struct bench b;
	struct str id;

	bench_open(&b, "");
	good(&b, "schedule_every", "{\"interval_seconds\": 600, \"prompt\": \"look\"}");
	id = jv_get_str(jv_get(b.result.value, "task"), "id");
	CHECK_INT(id.len, 8);
	good(&b, "list_scheduled", "{}");
	CHECK_INT(jv_count(jv_get(b.result.value, "schedules")), 1);
	good(&b, "cancel_scheduled", arena_printf(b.arena, "{\"task_id\": \"%.*s\"}", STR_ARG(id)).ptr);
	good(&b, "list_scheduled", "{}");
	CHECK_INT(jv_count(jv_get(b.result.value, "schedules")), 0);
}

TEST(an_interval_that_is_too_short_and_a_time_that_has_passed_are_refused)
{
	struct bench b;

	bench_open(&b, "");
	refused(&b, "schedule_every", "{\"interval_seconds\": 299, \"prompt\": \"look\"}", ERR_INVALID);
	refused(&b, "schedule_at", "{\"run_at\": \"2020-01-01T00:00\", \"prompt\": \"look\"}", ERR_INVALID);
	refused(&b, "schedule_at", "{\"run_at\": \"tomorrow\", \"prompt\": \"look\"}", ERR_INVALID);
	refused(&b, "cancel_scheduled", "{\"task_id\": \"00000000\"}", ERR_NOT_FOUND);
}

TEST(there_are_at_most_fifty)
{
	struct bench b;

	bench_open(&b, "");
	for (int i = 0; i < 50; i++)
		good(&b, "schedule_every", "{\"interval_seconds\": 600, \"prompt\": \"look\"}");
	refused(&b, "schedule_every", "{\"interval_seconds\": 600, \"prompt\": \"look\"}", ERR_QUOTA);
}

TEST(one_that_runs_once_is_gone_after_its_run)
{
	struct bench b;
	struct schedules all;
	struct schedule_due due;
	struct err err;

	bench_open(&b, "");
	good(&b, "schedule_at", "{\"run_at\": \"2099-01-01T00:00:00Z\", \"prompt\": \"look\"}");
	CHECK_OK(schedules_read(b.ws, &b.ctx, &all, &err), err);
	CHECK_INT(all.count, 1);
	CHECK_OK(schedule_begin(b.ws, &b.ctx, all.list[0].id, NOON, &err), err);
	due = (struct schedule_due){.due = all.list[0].first, .passed = all.list[0].first};
	CHECK_OK(schedule_claim(b.ws, &b.ctx, &all.list[0], &due, STR("me"), &err), err);
	CHECK_OK(schedule_ended(b.ws, &b.ctx, &all.list[0], due.due, NULL, &err), err);
	CHECK_OK(schedules_read(b.ws, &b.ctx, &all, &err), err);
	CHECK_INT(all.count, 0);
}
