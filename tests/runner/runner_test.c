/* SPDX-License-Identifier: Apache-2.0 */
/* The runner with a clock that the test moves, over real workspaces on disk and a recorded model. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "temp_dir.h"
#include "test.h"

#include "base/clock.h"
#include "base/env.h"
#include "home/channels/outbox.h"
#include "home/schedules/schedules.h"
#include "runner/heartbeat.h"
#include "runner/reservations.h"
#include "runner/runner.h"
#include "store/journal.h"
#include "workspace/workspace_parts.h"

#define NOON   INT64_C(1772366400) /* 2026-03-01T12:00:00Z */
#define WAIT_S 60

/* --- the clock --- */

static char clock_texts[4096][24];
static _Atomic(const char *) clock_text;
static int clock_sets;

static const char *lookup(const char *name)
{
	return str_is(str_of(name), "STEAD_TEST_CLOCK_NS") ? atomic_load(&clock_text) : getenv(name);
}

static void set_clock(int64_t at)
{
	char *text = clock_texts[clock_sets++ % 4096];

	snprintf(text, sizeof clock_texts[0], "%lld000000000", (long long)at);
	atomic_store(&clock_text, text);
	env_set_lookup(lookup);
}

/* --- a store with workspaces --- */

struct stage {
	struct arena *arena;
	struct ctx ctx;
	struct str url;
	const char *dir;
	struct str model;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int ended, failed, called;
	bool tells_calls;
	bool may_fail;
	char last[200], call[200];
};

static const char recording[] =
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"
	"\"append_file\","
	"\"input\":{\"path\":\"runs.txt\",\"content\":\"run\\n\"}}]}\n"
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}\n";

static void write_host(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void stage_init(struct stage *s)
{
	*s = (struct stage){.arena = arena_new(), .dir = temp_dir_new()};
	test_defer(arena_destroy, s->arena);
	s->ctx.arena = s->arena;
	s->url = arena_printf(s->arena, "disk:%s/store", s->dir);
	s->model = arena_printf(s->arena, "replay:%s/recording.jsonl", s->dir);
	write_host(arena_printf(s->arena, "%s/recording.jsonl", s->dir).ptr, recording);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	set_clock(NOON - 30);
}

static void stage_put(struct stage *s, const char *name, const char *path, const char *text)
{
	struct workspace_opts opts = {.store_url = s->url, .name = str_of(name), .create = true, .relaxed = true};
	struct workspace *ws;
	struct err err;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_OK(store_write(workspace_home(ws), &s->ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	workspace_close(ws);
}

static struct str stage_read(struct stage *s, const char *name, const char *path)
{
	struct workspace_opts opts = {.store_url = s->url, .name = str_of(name), .relaxed = true};
	struct workspace *ws;
	struct str text = STR_NONE;
	struct err err;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	if (store_read(workspace_home(ws), &s->ctx, (struct wpath){str_of(path)}, STORE_WHOLE, 1 << 20, &text, NULL,
		       &err) != 0)
		text = STR_NONE;
	workspace_close(ws);
	return text;
}

static int lines_with(struct str text, const char *part)
{
	struct str line;
	int n = 0;

	while (text.len && str_cut(&text, '\n', &line))
		n += str_find(line, str_of(part), 0) != SIZE_MAX;
	return n;
}

static void on_event(void *arg, const struct runner_event *event)
{
	struct stage *s = arg;

	pthread_mutex_lock(&s->lock);
	if (event->kind == RUNNER_ENDED)
		s->ended++;
	if (event->kind == RUNNER_CALLED) {
		s->called++;
		snprintf(s->call, sizeof s->call, "%.*s %.*s: %.*s", STR_ARG(event->workspace), STR_ARG(event->what),
			 STR_ARG(event->text));
	}
	if (event->is_error) {
		s->failed++;
		snprintf(s->last, sizeof s->last, "%.*s: %.*s", STR_ARG(event->what), STR_ARG(event->text));
	}
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static struct runner *stage_start(struct stage *s, const char *name)
{
	struct str names[] = {str_of(name)};
	struct runner_opts opts = {.store_url = s->url,
				   .names = names,
				   .count = name ? 1 : 0,
				   .model = s->model,
				   .relaxed = true,
				   .tells_calls = s->tells_calls,
				   .event = on_event,
				   .arg = s};
	struct runner *runner;
	struct err err;

	CHECK_OK(runner_start(&opts, &runner, &err), err);
	return runner;
}

/* Until `ended` runs have ended in all. */
static void await_ended(struct stage *s, int ended)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&s->lock);
	while (s->ended < ended && (!s->failed || s->may_fail) && r == 0)
		r = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
	if (s->failed && !s->may_fail)
		TEST_FAIL("%s", s->last);
	if (r)
		TEST_FAIL("%d of %d runs have ended", s->ended, ended);
}

/* Until the state of a schedule was begun by some runner. */
static void await_state(struct stage *s, const char *workspace, const char *id)
{
	const char *path = arena_printf(s->arena, "schedules/%s.json", id).ptr;

	for (int i = 0; i < WAIT_S * 100; i++) {
		if (stage_read(s, workspace, path).ptr)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	TEST_FAIL("the schedule %s was not looked at", id);
}

#define MINUTELY "schedule: '* * * * *'\nprompt: go\n"

TEST(calls_of_tools_are_told_if_that_is_wanted)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		struct stage s;
		struct runner *runner;

		stage_init(&s);
		s.tells_calls = wanted == 1;
		stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
		set_clock(NOON - 1);
		runner = stage_start(&s, "one");
		await_state(&s, "one", "minutely");
		set_clock(NOON);
		await_ended(&s, 1);
		runner_stop(runner);
		CHECK_INT(s.called, wanted);
		CHECK_STR(str_of(s.call), wanted ? STR("one minutely: append_file {\"path\":\"runs.txt\",\"content\":"
						       "\"run\\n\"}")
						 : STR(""));
	}
}

TEST(a_schedule_runs_when_it_is_due)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
	set_clock(NOON - 1);
	runner = stage_start(&s, "one");
	await_state(&s, "one", "minutely");
	set_clock(NOON);
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "\"outcome\":\"ran\""), 1);
	CHECK_INT(lines_with(stage_read(&s, "one", "agents/default/token_usage.jsonl"), "\"invocation_type\":\"cron\""),
		  1);
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR("run\n"));
}

TEST(a_run_leaves_no_lease_behind)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
	runner = stage_start(&s, "one");
	await_state(&s, "one", "minutely");
	set_clock(NOON);
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK(access(arena_printf(s.arena, "%s/store/one/.stead/leases", s.dir).ptr, F_OK) != 0);
}

TEST(a_problem_is_told_once_and_the_workspace_goes_on_when_it_is_solved)
{
	struct stage s;
	struct runner *runner;
	const char *settings;

	stage_init(&s);
	s.may_fail = true;
	settings = arena_printf(s.arena, "%s/store/one/agent.yaml", s.dir).ptr;
	stage_put(&s, "one", "crons/report.yaml", MINUTELY);
	stage_put(&s, "other", "crons/report.yaml", MINUTELY);
	runner = stage_start(&s, NULL);
	await_state(&s, "one", "report");
	await_state(&s, "other", "report");
	write_host(settings, "queue: [\n");
	for (int minute = 0; minute < 4; minute++) {
		set_clock(NOON + minute * 60 + 1);
		await_ended(&s, minute + 1);
	}
	CHECK_INT(s.failed, 1);
	CHECK(strstr(s.last, "agent.yaml line 2"));
	write_host(settings, "timezone: UTC\n");
	set_clock(NOON + 5 * 60 + 1);
	await_ended(&s, 6);
	CHECK_INT(s.failed, 1);
	runner_stop(runner);
}

TEST(a_change_of_the_deployment_is_noticed)
{
	struct stage s;
	struct runner *runner;
	const char *file;

	stage_init(&s);
	file = arena_printf(s.arena, "%s/stead.yaml", s.dir).ptr;
	stage_put(&s, "one", "crons/report.yaml", "schedule: '0 9 * * *'\nprompt: go\n");
	stage_put(&s, "other", "crons/report.yaml",
		  "schedule: '0-2 12 * * *'\ntimezone: UTC\nmisfire: all\nprompt: go\n");
	write_host(file, "workspaces_path: store\ntimezone: UTC\n");
	s.url = arena_printf(s.arena, "config:%s", file);
	set_clock(NOON - 600);
	runner = stage_start(&s, NULL);
	await_state(&s, "one", "report");
	await_state(&s, "other", "report");
	write_host(file, "workspaces_path: store\ntimezone: America/Sao_Paulo\n"); /* 12:00 in UTC */
	for (int minute = 0; minute < 3; minute++) {
		set_clock(NOON + minute * 60 + 1);
		await_ended(&s, minute + 1);
	}
	await_ended(&s, 4);
	CHECK(strstr(stage_read(&s, "one", "schedules/log.jsonl").ptr, "\"due\":\"2026-03-01T12:00:00Z\""));
	runner_stop(runner);
}

TEST(two_runners_run_each_due_time_once)
{
	struct stage s;
	struct runner *a, *b;

	stage_init(&s);
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
	set_clock(NOON - 1);
	a = stage_start(&s, NULL);
	b = stage_start(&s, NULL);
	await_state(&s, "one", "minutely");
	for (int i = 0; i < 5; i++) {
		set_clock(NOON + i * 60);
		await_ended(&s, i + 1);
		set_clock(NOON + i * 60 + 59);
		nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* time for the other one to do it again */
	}
	runner_stop(a);
	runner_stop(b);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "\"outcome\":\"ran\""), 5);
	CHECK_INT(lines_with(stage_read(&s, "one", "files/runs.txt"), "run"), 5);
}

TEST(a_run_whose_process_died_is_finished_once)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "crons/hourly.yaml", "schedule: '0 * * * *'\nprompt: go\n");
	stage_put(&s, "one", "schedules/hourly.json",
		  "{\"last_due\":\"2026-03-01T12:00:00Z\",\"paused\":false,\"running\":\"2026-03-01T12:00:00Z\","
		  "\"claimed\":\"2026-03-01T12:00:00Z\",\"by\":\"a process that is gone\"}");
	set_clock(NOON + 600);
	runner = stage_start(&s, "one");
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "\"due\":\"2026-03-01T12:00:00Z\""), 1);
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR("run\n"));
}

TEST(a_run_is_taken_over_a_minute_after_it_was_claimed)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "crons/daily.yaml", "schedule: '0 9 * * *'\nprompt: go\n");
	stage_put(&s, "one", "crons/hourly.yaml", "schedule: '0 * * * *'\nprompt: go\n");
	stage_put(&s, "one", "schedules/hourly.json",
		  "{\"last_due\":\"2026-03-01T12:00:00Z\",\"paused\":false,\"running\":\"2026-03-01T12:00:00Z\","
		  "\"claimed\":\"2026-03-01T12:00:00Z\",\"by\":\"a process that is gone\"}");
	set_clock(NOON + 30);
	runner = stage_start(&s, "one");
	await_state(&s, "one", "daily");
	set_clock(NOON + 60);
	await_ended(&s, 1);
	runner_stop(runner);
}

TEST(a_due_time_that_was_answered_but_not_recorded_is_not_run_again)
{
	struct stage s;
	struct firing firing;
	struct jv *record;
	struct err err;

	stage_init(&s);
	stage_put(&s, "one", "crons/hourly.yaml", "schedule: '0 * * * *'\nprompt: go\n");
	firing = (struct firing){.store_url = s.url,
				 .workspace = STR("one"),
				 .schedule = STR("hourly"),
				 .due = NOON,
				 .model = s.model,
				 .relaxed = true};
	CHECK_OK(firing_run(&s.ctx, &firing, &record, &err), err);
	CHECK_OK(firing_run(&s.ctx, &firing, &record, &err), err);
	CHECK_STR(jv_get_str(record, "response"), STR("done"));
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR("run\n"));
}

TEST(a_workspace_that_is_made_later_is_run_too)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "notes.md", "x");
	set_clock(NOON - 61);
	runner = stage_start(&s, NULL);
	stage_put(&s, "two", "crons/minutely.yaml", MINUTELY);
	set_clock(NOON - 1);
	await_state(&s, "two", "minutely");
	set_clock(NOON);
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK_STR(stage_read(&s, "two", "files/runs.txt"), STR("run\n"));
}

TEST(a_workspace_that_is_not_there_is_refused)
{
	struct stage s;
	struct str names[] = {STR("nosuch")};
	struct runner *runner;
	struct err err;

	stage_init(&s);
	stage_put(&s, "one", "notes.md", "x");
	CHECK_INT(runner_start(&(struct runner_opts){.store_url = s.url, .names = names, .count = 1}, &runner, &err),
		  -ERR_NOT_FOUND);
}

/* --- heartbeat --- */

TEST(a_workspace_whose_files_are_all_in_the_templates_is_run)
{
	struct stage s;
	struct str names[] = {STR("one")};
	struct runner *runner;
	struct err err;

	stage_init(&s);
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
	stage_put(&s, "one", ".stead/from-templates", "made");
	CHECK_INT(system(arena_printf(s.arena,
				      "cd %s && mkdir t && mv store/one/AGENTS.md store/one/agent.yaml t && "
				      "echo 'workspaces_path: store\ntemplates: disk:./t' > stead.yaml",
				      s.dir)
				 .ptr),
		  0);
	s.url = arena_printf(s.arena, "config:%s/stead.yaml", s.dir);
	CHECK_OK(runner_start(&(struct runner_opts){.store_url = s.url, .names = names, .count = 1}, &runner, &err),
		 err);
	runner_stop(runner);
}

TEST(a_workspace_that_is_named_twice_is_run_once)
{
	struct stage s;
	struct str names[] = {STR("one"), STR("one")};
	struct runner *runner;
	struct err err;

	stage_init(&s);
	s.may_fail = true;
	stage_put(&s, "one", "crons/bad.yaml", "schedule: never\nprompt: go\n");
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY);
	CHECK_OK(runner_start(&(struct runner_opts){.store_url = s.url,
						    .names = names,
						    .count = 2,
						    .model = s.model,
						    .relaxed = true,
						    .event = on_event,
						    .arg = &s},
			      &runner, &err),
		 err);
	await_state(&s, "one", "minutely");
	set_clock(NOON);
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK_INT(s.failed, 1);
}

TEST(active_hours_include_their_bounds_and_may_span_midnight)
{
	static const struct {
		const char *hours;
		int minute;
		bool inside;
	} rows[] = {
		{"08:00-22:00", 479, false},  {"08:00-22:00", 480, true},  {"08:00-22:00", 1320, true},
		{"08:00-22:00", 1321, false}, {"22:00-06:00", 1380, true}, {"22:00-06:00", 360, true},
		{"22:00-06:00", 361, false},  {"22:00-06:00", 720, false},
	};
	bool inside;
	struct err err;

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_OK(heartbeat_hours_contain(str_of(rows[i].hours), rows[i].minute, &inside, &err), err);
		if (inside != rows[i].inside)
			TEST_FAIL("%s at %d", rows[i].hours, rows[i].minute);
	}
	CHECK_INT(heartbeat_hours_contain(STR("8-22"), 0, &inside, &err), -ERR_INVALID);
}

static struct str beat(struct stage *s, int64_t due)
{
	struct firing firing = {.store_url = s->url,
				.workspace = STR("one"),
				.schedule = STR(HEARTBEAT_ID),
				.due = due,
				.model = s->model,
				.relaxed = true};
	struct jv *record;
	struct err err;

	CHECK_OK(firing_run(&s->ctx, &firing, &record, &err), err);
	return jv_get(record, "reason") ? jv_get_str(record, "reason") : jv_get_str(record, "outcome");
}

#define TASKS                                                                                                          \
	"version: 1\ntasks:\n  - id: 5f0c9a52-6d0e-4a53-9d37-2f6f5a0e8f11\n    type: x\n    status: pending\n"         \
	"    priority: high\n    description: compare\n    created_at: 2026-03-01T09:00:00Z\n"

TEST(the_heartbeat_is_due_at_multiples_of_its_interval)
{
	struct stage s;
	struct workspace_opts opts = {.name = STR("one"), .relaxed = true};
	struct workspace *ws;
	struct schedule schedule;
	struct cron_time t;
	struct err err;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true, interval_minutes: 45}\n");
	opts.store_url = s.url;
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	test_defer(workspace_close, ws);
	CHECK(heartbeat_schedule(ws, s.arena, &schedule));
	CHECK(schedule_next(&schedule, NOON + 17, &t));
	CHECK_INT(t.at % (45 * 60), 0);
	CHECK(t.at > NOON + 17 && t.at <= NOON + 17 + 45 * 60);
}

TEST(an_idle_heartbeat_asks_no_model)
{
	struct stage s;

	stage_init(&s);
	s.model = STR("replay:/nonexistent");
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true, active_hours: '08:00-11:59'}\n");
	CHECK_STR(beat(&s, NOON), STR("outside the active hours 08:00-11:59"));
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true}\n");
	CHECK_STR(beat(&s, NOON), STR("HEARTBEAT.md is empty and there is no active task"));
	CHECK_INT(lines_with(stage_read(&s, "one", "heartbeat_log.jsonl"), "\"outcome\":\"skipped\""), 2);
	CHECK_INT(lines_with(stage_read(&s, "one", "heartbeat_log.jsonl"), "\"duration_ms\":"), 2);
}

TEST(a_heartbeat_with_a_task_runs_and_is_logged)
{
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("ran"));
	CHECK_INT(lines_with(stage_read(&s, "one", "heartbeat_log.jsonl"), "\"task_count\":1"), 1);
	CHECK_INT(lines_with(stage_read(&s, "one", "heartbeat_log.jsonl"), "\"tools_used\":[\"append_file\"]"), 1);
	CHECK_INT(lines_with(stage_read(&s, "one", "agents/default/token_usage.jsonl"), "\"heartbeat\""), 1);
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR("run\n"));
}

TEST(a_run_whose_call_needs_an_approval_is_an_error_that_says_how_to_go_on)
{
	struct stage s;
	struct str log;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml",
		  "heartbeat: {enabled: true}\napproval_gates: {enabled: true, tools: {append_file: {}}}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("error"));
	log = stage_read(&s, "one", "heartbeat_log.jsonl");
	CHECK_HAS(log, STR("a call to \\\"append_file\\\" is waiting for approval"));
	CHECK_HAS(log, STR("'stead approvals --session heartbeat-20260301T120000Z'"));
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR_NONE);
}

static bool take_item(void *arg, const struct outbox_item *item)
{
	*(struct outbox_item *)arg = *item;
	return true;
}

/* What waits for the channels of the workspace "one". */
static struct outbox_item stage_outbox(struct stage *s)
{
	struct workspace_opts opts = {.store_url = s->url, .name = STR("one"), .relaxed = true};
	struct outbox_item item = {0};
	struct workspace *ws;
	struct err err = {0};

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_OK(outbox_each(ws, &s->ctx, take_item, &item, &err), err);
	workspace_close(ws);
	return item;
}

TEST(the_answer_of_a_heartbeat_goes_to_its_chat)
{
	struct outbox_item item;
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml",
		  "channel: {type: telegram}\nheartbeat: {enabled: true, output: {channel: telegram, chat_id: -5}}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("ran"));
	item = stage_outbox(&s);
	CHECK_STR(item.channel, STR("telegram"));
	CHECK_STR(item.chat, STR("-5"));
	CHECK_STR(item.text, STR("done"));
	CHECK_STR(item.by, STR("the heartbeat"));
	CHECK(!item.is_for_agent);
}

TEST(the_answer_of_a_heartbeat_goes_where_the_words_of_openpaw_say)
{
	static const struct {
		const char *yaml;
		const char *channel, *chat, *by;
		bool is_for_agent;
	} rows[] = {
		{"target_channel: webhook, target_id: room-1", "team", "room-1", "the heartbeat", false},
		{"target_id: 42", "telegram", "42", "the heartbeat", false},
		{"output: {channel: telegram, target_id: 42}, delivery: channel", "telegram", "42", "", false},
		{"output: {channel: team, chat_id: x}, delivery: agent", "team", "x", "the heartbeat", true},
	};
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct outbox_item item;

		stage_put(&s, "one", "agent.yaml",
			  arena_printf(s.arena,
				       "channels: [{type: telegram}, {type: webhook, name: team}]\n"
				       "heartbeat: {enabled: true, %s}\n",
				       rows[i].yaml)
				  .ptr);
		CHECK_STR(beat(&s, NOON + (int64_t)i), STR("ran"));
		item = stage_outbox(&s);
		CHECK_STR(item.channel, str_of(rows[i].channel));
		CHECK_STR(item.chat, str_of(rows[i].chat));
		CHECK_STR(item.by, str_of(rows[i].by));
		CHECK_INT(item.is_for_agent, rows[i].is_for_agent);
	}
}

TEST(an_answer_of_heartbeat_ok_is_sent_only_if_that_is_wanted)
{
	struct stage s;

	stage_init(&s);
	write_host(arena_printf(s.arena, "%s/recording.jsonl", s.dir).ptr,
		   "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
		   "\"HEARTBEAT_OK\"}]}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	stage_put(&s, "one", "agent.yaml", "channel: {type: telegram}\nheartbeat: {enabled: true, target_id: 42}\n");
	CHECK_STR(beat(&s, NOON), STR("heartbeat_ok"));
	CHECK_STR(stage_outbox(&s).text, STR_NONE);
	stage_put(&s, "one", "agent.yaml",
		  "channel: {type: telegram}\nheartbeat: {enabled: true, target_id: 42, suppress_ok: false}\n");
	CHECK_STR(beat(&s, NOON + 1), STR("heartbeat_ok"));
	CHECK_STR(stage_outbox(&s).text, STR("HEARTBEAT_OK"));
}

TEST(the_answer_of_a_schedule_goes_to_its_chat_or_the_log_says_why_not)
{
	struct firing firing = {
		.workspace = STR("one"), .schedule = STR("daily"), .due = NOON, .by_hand = true, .relaxed = true};
	struct outbox_item item;
	struct jv *record;
	struct err err = {0};
	struct stage s;

	stage_init(&s);
	firing.store_url = s.url;
	firing.model = s.model;
	stage_put(&s, "one", "agent.yaml", "channel: {type: telegram}\n");
	stage_put(&s, "one", "crons/daily.yaml",
		  "schedule: '0 9 * * *'\nprompt: x\noutput: {channel: telegram, chat_id: 42, delivery: both}\n");
	CHECK_OK(firing_run(&s.ctx, &firing, &record, &err), err);
	CHECK(!jv_get(record, "undelivered"));
	item = stage_outbox(&s);
	CHECK_STR(item.chat, STR("42"));
	CHECK_STR(item.by, STR("the schedule \"daily\""));
	stage_put(&s, "one", "agent.yaml", "name: x\n");
	firing.due++;
	CHECK_OK(firing_run(&s.ctx, &firing, &record, &err), err);
	CHECK_HAS(jv_get_str(record, "undelivered"), STR("agent.yaml has no channel \"telegram\""));
}

TEST(two_runs_by_hand_in_one_second_have_a_session_each)
{
	struct firing firing = {
		.workspace = STR("one"), .schedule = STR("daily"), .due = NOON, .by_hand = true, .relaxed = true};
	struct jv *first, *second;
	struct err err = {0};
	struct stage s;

	stage_init(&s);
	firing.store_url = s.url;
	firing.model = s.model;
	stage_put(&s, "one", "crons/daily.yaml", "schedule: '0 9 * * *'\nprompt: x\n");
	CHECK_OK(firing_run(&s.ctx, &firing, &first, &err), err);
	CHECK_OK(firing_run(&s.ctx, &firing, &second, &err), err);
	CHECK_STR(jv_get_str(second, "outcome"), STR("ran"));
	CHECK_STR(jv_get_str(second, "response"), STR("done"));
	CHECK(!str_eq(jv_get_str(first, "session"), jv_get_str(second, "session")));
}

TEST(an_answer_of_heartbeat_ok_is_exactly_that)
{
	CHECK(heartbeat_is_ok(STR(" HEARTBEAT_OK\n")));
	CHECK(!heartbeat_is_ok(STR("All is well. HEARTBEAT_OK")));
}

TEST(a_heartbeat_on_changes_is_skipped_when_nothing_has_changed)
{
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true, when: changed}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("ran"));
	CHECK_STR(beat(&s, NOON + 60), STR("nothing has changed since the last heartbeat"));
	CHECK_STR(beat(&s, NOON + 120), STR("nothing has changed since the last heartbeat"));
	stage_put(&s, "one", "files/new.txt", "x");
	CHECK_STR(beat(&s, NOON + 180), STR("ran"));
	stage_put(&s, "one", "channels/queue/telegram~3a42.jsonl", "x");
	CHECK_STR(beat(&s, NOON + 240), STR("nothing has changed since the last heartbeat"));
}

TEST(a_heartbeat_on_changes_notices_what_changed_outside_of_its_hours)
{
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true, when: changed, active_hours: '08:00-13:00'}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("ran"));
	CHECK_STR(beat(&s, NOON + 1800), STR("nothing has changed since the last heartbeat"));
	stage_put(&s, "one", "files/news.md", "new");
	CHECK_STR(beat(&s, NOON + 7200), STR("outside the active hours 08:00-13:00"));
	CHECK_STR(beat(&s, NOON + 9000), STR("outside the active hours 08:00-13:00"));
	CHECK_STR(beat(&s, NOON + 86400), STR("ran"));
	CHECK_STR(beat(&s, NOON + 86400 + 1800), STR("nothing has changed since the last heartbeat"));
}

TEST(a_heartbeat_on_changes_notices_an_editor_that_history_does_not_know)
{
	struct stage s;

	stage_init(&s);
	stage_put(&s, "one", "agent.yaml", "heartbeat: {enabled: true, when: changed}\n");
	stage_put(&s, "one", "TASKS.yaml", TASKS);
	CHECK_STR(beat(&s, NOON), STR("ran"));
	CHECK_STR(beat(&s, NOON + 60), STR("nothing has changed since the last heartbeat"));
	write_host(arena_printf(s.arena, "%s/store/one/HEARTBEAT.md", s.dir).ptr, "- look at the inbox\n");
	CHECK_STR(beat(&s, NOON + 120), STR("ran"));
	CHECK_STR(beat(&s, NOON + 180), STR("nothing has changed since the last heartbeat"));
}

/* --- many at once --- */

static struct store *stage_base(struct stage *s)
{
	struct store *base;
	struct str dir;
	struct err err;

	CHECK_OK(workspace_open_store(s->arena, s->url, true, true, &base, &dir, &err), err);
	return base;
}

TEST(a_due_time_is_reserved_by_one_runner)
{
	struct reservation first[] = {{STR("one"), STR("a"), NOON, false}, {STR("two"), STR("a"), NOON, false}};
	struct reservation second[] = {{STR("two"), STR("a"), NOON, false}, {STR("three"), STR("a"), NOON, false}};
	struct reservations *a, *b;
	struct reserved found;
	struct store *base;
	struct stage s;
	struct err err;

	stage_init(&s);
	base = stage_base(&s);
	a = reservations_new(base, STR("a"));
	b = reservations_new(base, STR("b"));
	CHECK_OK(reservations_take(a, &s.ctx, first, 2, NOON, &err), err);
	CHECK_OK(reservations_take(b, &s.ctx, second, 2, NOON + 1, &err), err);
	CHECK(!first[0].is_elsewhere && !first[1].is_elsewhere);
	CHECK(second[0].is_elsewhere && !second[1].is_elsewhere);
	CHECK_OK(reservations_refresh(a, &s.ctx, &err), err);
	CHECK(reservations_find(a, STR("three"), STR("a"), &found));
	CHECK(!found.is_own && found.due == NOON && found.at == NOON + 1);
	second[0].due += 60;
	CHECK_OK(reservations_take(b, &s.ctx, second, 1, NOON + 60, &err), err);
	CHECK(!second[0].is_elsewhere);
	reservations_destroy(a);
	reservations_destroy(b);
	store_destroy(base);
}

TEST(what_is_not_an_entry_of_a_runner_takes_nothing)
{
	static const char *const texts[] = {"", "[]", "{\"due\":[1,[\"one\"],[\"one\",\"a\"],{}]}", "\xff"};
	struct reservation want = {STR("one"), STR("a"), NOON, false};
	struct reservations *a;
	struct store *base;
	struct stage s;
	struct err err;

	stage_init(&s);
	base = stage_base(&s);
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct journal_add add = {.after = i, .bytes = str_of(texts[i])};
		struct journal_added added;

		CHECK_OK(store_journal_add(base, &s.ctx, (struct wpath){STR(".stead/reservations")}, WPATH_ROOT,
					   (struct store_cond){0}, &add, &added, &err),
			 err);
	}
	a = reservations_new(base, STR("a"));
	CHECK_OK(reservations_take(a, &s.ctx, &want, 1, NOON, &err), err);
	CHECK(!want.is_elsewhere);
	reservations_destroy(a);
	store_destroy(base);
}

TEST(a_due_time_that_was_reserved_in_time_runs_although_its_runner_died)
{
	struct reservation want = {STR("one"), STR("hourly"), NOON, false};
	struct reservations *dead;
	struct runner *runner;
	struct store *base;
	struct stage s;
	struct err err;

	stage_init(&s);
	stage_put(&s, "one", "crons/hourly.yaml", "schedule: '0 * * * *'\nprompt: go\n");
	stage_put(&s, "one", "schedules/hourly.json", "{\"last_due\":\"2026-03-01T11:00:00Z\",\"paused\":false}");
	base = stage_base(&s);
	dead = reservations_new(base, STR("a process that is gone"));
	CHECK_OK(reservations_take(dead, &s.ctx, &want, 1, NOON, &err), err);
	reservations_destroy(dead);
	store_destroy(base);
	set_clock(NOON + 1800); /* long after the grace */
	runner = stage_start(&s, "one");
	await_ended(&s, 1);
	runner_stop(runner);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "\"outcome\":\"ran\""), 1);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "missed"), 0);
	CHECK_STR(stage_read(&s, "one", "files/runs.txt"), STR("run\n"));
}

TEST(each_missed_due_time_is_made_up_for_if_the_policy_is_all)
{
	struct stage s;
	struct runner *runner;

	stage_init(&s);
	stage_put(&s, "one", "crons/minutely.yaml", MINUTELY "misfire: all\ngrace_seconds: 86400\n");
	stage_put(&s, "one", "schedules/minutely.json", "{\"last_due\":\"2026-03-01T11:59:00Z\",\"paused\":false}");
	set_clock(NOON + 3 * 60);
	runner = stage_start(&s, "one");
	await_ended(&s, 4);
	runner_stop(runner);
	CHECK_INT(lines_with(stage_read(&s, "one", "schedules/log.jsonl"), "\"outcome\":\"ran\""), 4);
	CHECK_INT(lines_with(stage_read(&s, "one", "files/runs.txt"), "run"), 4);
}

TEST(more_due_times_than_can_start_are_reserved_and_each_runs_once)
{
	enum { MANY = 70 };
	struct runner *a, *b;
	struct stage s;

	stage_init(&s);
	for (int i = 0; i < MANY; i++)
		stage_put(&s, arena_printf(s.arena, "w%02d", i).ptr, "crons/minutely.yaml", MINUTELY);
	set_clock(NOON - 1);
	a = stage_start(&s, NULL);
	for (int i = 0; i < MANY; i++)
		await_state(&s, arena_printf(s.arena, "w%02d", i).ptr, "minutely");
	b = stage_start(&s, NULL);
	set_clock(NOON);
	await_ended(&s, MANY);
	runner_stop(a);
	runner_stop(b);
	for (int i = 0; i < MANY; i++)
		CHECK_STR(stage_read(&s, arena_printf(s.arena, "w%02d", i).ptr, "files/runs.txt"), STR("run\n"));
}
