/* SPDX-License-Identifier: Apache-2.0 */
/* `stead schedule`: what runs when, a preview of any expression, and a run by hand. */
#include "runner/runner_commands.h"

#include "base/clock.h"
#include "command/cli.h"
#include "runner/runner.h"

#define TIMES_DEFAULT 10

static int run_schedule_list(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *value = jv_object(arena), *list = jv_array(arena);
	struct schedules all;
	int r = schedules_read(cli->ws, &cli->ctx, &all, err);

	for (size_t i = 0; r == 0 && i < all.count; i++)
		jv_push(arena, list, schedule_value(cli->ws, &cli->ctx, &all.list[i], clock_real_ns() / NS_PER_S));
	if (r)
		return r;
	jv_set(arena, value, "schedules", list);
	if (jv_count(all.problems))
		jv_set(arena, value, "problems", all.problems);
	cli_print(cli, "list_scheduled", value);
	return 0;
}

/* "Sun 2026-03-08 03:00 -04:00   2026-03-08T07:00:00Z   02:30 is skipped …" */
static void print_time(struct cli *cli, const struct jv *time)
{
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	struct str local = jv_get_str(time, "local"), effect = jv_get_str(time, "effect");
	int64_t ns = 0;

	clock_parse(str_first(local, 10), &ns);
	output_printf(&cli->out, "%s %.*s %.*s %.*s   %.*s", days[civil_of(ns / NS_PER_S).weekday],
		      STR_ARG(str_first(local, 10)), STR_ARG(str_first(str_from(local, 11), 5)),
		      STR_ARG(str_from(local, 19)), STR_ARG(jv_get_str(time, "at")));
	if (effect.len)
		output_printf(&cli->out, "   %.*s", STR_ARG(effect));
	output_printf(&cli->out, "\n");
}

/* The zone of --zone, else that of the workspace. Without -w and without a workspace of the default name: UTC, so that
   an expression can be looked at anywhere. */
static int chosen_zone(struct cli *cli, struct str *ret_name, struct err *err)
{
	int r = 0;

	*ret_name = args_get(&cli->args, "zone");
	if (ret_name->len)
		return 0;
	if (!cli->ws)
		r = cli_open(cli, CLI_READS, err);
	if (r && err->detail == DETAIL_NO_WORKSPACE && !cli_setting(cli, "workspace").len) {
		*ret_name = STR("UTC");
		cli->hint = NULL;
		return 0;
	}
	if (r == 0)
		*ret_name = workspace_config(cli->ws)->timezone;
	return r;
}

static int start_time(struct cli *cli, const struct zone *zone, int64_t *ret, struct err *err)
{
	struct str from = args_get(&cli->args, "from"), time = str_from(from, 10);
	int64_t ns = clock_real_ns();
	bool is_instant =
		str_ends(from, STR("Z")) || str_find_char(time, '+') < time.len || str_find_char(time, '-') < time.len;

	if (from.len && !clock_parse(from, &ns))
		return err_set(err, ERR_INVALID,
			       "--from \"%.*s\" is not a valid time; write 2026-03-01, 2026-03-01T09:00 or "
			       "2026-03-01T09:00:00Z, with a year from 1970 to 2261",
			       STR_ARG(utf8_first(from, 60)));
	*ret = !from.len || is_instant ? ns / NS_PER_S : zone_instants(zone, ns / NS_PER_S).at[0];
	return 0;
}

/* `text` is an expression, or the name of a schedule that has one; *ret_zone is that schedule's, else empty. */
static int find_expression(struct cli *cli, struct str *text, struct cron *ret, struct str *ret_zone, struct err *err)
{
	const struct schedule *schedule;
	struct schedules all;
	struct err ignored;
	int r = cron_parse(*text, ret, err);

	*ret_zone = STR_NONE;
	if (r == 0 || !text->len || text->ptr[0] == '@' || str_find_char(*text, ' ') < text->len)
		return r;
	if (cli_open(cli, CLI_READS, &ignored) != 0 || schedules_read(cli->ws, &cli->ctx, &all, &ignored) != 0) {
		cli->hint = NULL; /* it was not the workspace that was wrong */
		return r;
	}
	r = schedule_find(&all, *text, &schedule, err);
	if (r)
		return r;
	if (schedule->kind != SCHEDULE_CRON)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" has no expression; 'stead schedule list' shows when it runs next",
			       STR_ARG(utf8_first(*text, 60)));
	*text = schedule->expression;
	*ret = schedule->cron;
	*ret_zone = schedule->zone_name;
	return 0;
}

static int run_schedule_next(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct str expression = cli->args.operands[0], zone_name;
	struct jv *value = jv_object(arena), *times;
	const struct zone *zone;
	struct cron cron;
	int64_t from = 0;
	int r = find_expression(cli, &expression, &cron, &zone_name, err);

	if (r == 0 && (!zone_name.len || args_has(&cli->args, "zone")))
		r = chosen_zone(cli, &zone_name, err);
	if (r == 0)
		r = zone_open(arena, zone_name, &zone, err);
	if (r == 0)
		r = start_time(cli, zone, &from, err);
	if (r)
		return r;
	times = schedule_times(arena, &cron, zone, from, args_number(&cli->args, "count", TIMES_DEFAULT));
	jv_set_str(arena, value, "schedule", expression);
	jv_set_str(arena, value, "zone", zone_name);
	jv_set(arena, value, "times", times);
	cli->status = jv_count(times) ? 0 : 1;
	if (cli_json(cli, value))
		return 0;
	for (const struct jv_member *m = jv_first(times); m; m = m->next)
		print_time(cli, m->value);
	if (!jv_count(times))
		output_printf(&cli->out, "never: no date in the next 40 years matches\n");
	return 0;
}

static int set_paused(struct cli *cli, bool paused, struct err *err)
{
	const struct schedule *schedule;
	struct schedules all;
	struct jv *value;
	int r = schedules_read(cli->ws, &cli->ctx, &all, err);

	if (r == 0)
		r = schedule_find(&all, cli->args.operands[0], &schedule, err);
	if (r == 0)
		r = schedule_pause(cli->ws, &cli->ctx, schedule->id, paused, err);
	if (r)
		return r;
	value = schedule_value(cli->ws, &cli->ctx, schedule, clock_real_ns() / NS_PER_S);
	if (!cli_json(cli, value))
		output_printf(&cli->out, "%s %.*s%s%.*s\n", paused ? "paused" : "resumed", STR_ARG(schedule->id),
			      jv_get(value, "next") ? "; the next run is at " : "",
			      STR_ARG(jv_get_str(jv_get(value, "next"), "local")));
	return 0;
}

static int run_schedule_pause(struct cli *cli, struct err *err)
{
	return set_paused(cli, true, err);
}

static int run_schedule_resume(struct cli *cli, struct err *err)
{
	return set_paused(cli, false, err);
}

/* A run by hand has the present time as its due time, and leaves the others as they are. */
static int run_schedule_run(struct cli *cli, struct err *err)
{
	struct firing firing = {.store_url = cli_setting(cli, "store"),
				.workspace = workspace_name(cli->ws),
				.due = clock_real_ns() / NS_PER_S,
				.by_hand = true,
				.model = cli_setting(cli, "model"),
				.base_url = args_get(&cli->args, "base-url")};
	const struct schedule *schedule;
	struct schedules all;
	struct jv *record;
	int r = schedules_read(cli->ws, &cli->ctx, &all, err);

	if (r == 0 && str_is(cli->args.operands[0], HEARTBEAT_ID))
		firing.schedule = STR(HEARTBEAT_ID);
	else if (r == 0) {
		r = schedule_find(&all, cli->args.operands[0], &schedule, err);
		firing.schedule = r ? STR_NONE : schedule->id;
	}
	if (r == 0)
		r = firing_run(&cli->ctx, &firing, &record, err);
	if (r)
		return r;
	cli->status = jv_get(record, "error") ? 1 : 0;
	if (!cli_json(cli, record))
		output_printf(&cli->out, "%.*s: %.*s\n", STR_ARG(jv_get_str(record, "outcome")),
			      STR_ARG(str_trim(jv_get(record, "error")      ? jv_get_str(record, "error")
					       : jv_get(record, "response") ? jv_get_str(record, "response")
									    : jv_get_str(record, "reason"))));
	return 0;
}

static const struct action actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_schedule_list},
	{"next", "EXPRESSION|NAME", .run = run_schedule_next},
	{"run", "NAME", .opens = CLI_WRITES, .run = run_schedule_run},
	{"pause", "NAME", .opens = CLI_WRITES, .run = run_schedule_pause},
	{"resume", "NAME", .opens = CLI_WRITES, .run = run_schedule_resume},
	{0},
};

static const struct option options[] = {
	{"zone", 0, "ZONE", .help = "next: the time zone (default: the schedule's, the workspace's, or UTC)"},
	{"from", 0, "TIME", .help = "next: only times after this one (default: now)"},
	{"count", 'n', "N", .help = "next: how many times (default: 10)", .min = 1, .max = 1000},
	{"model", 'm', "MODEL", .env = "STEAD_MODEL", .help = "run: PROVIDER:MODEL (default: model in agent.yaml)"},
	{"base-url", 0, "URL", .help = "run: another server that speaks the provider's protocol"},
	{0},
};

const struct command schedule_commands[] = {
	{"schedule", "list, run and pause schedules; print the next times of an expression", TOPIC_AGENT,
	 .actions = actions, .options = options,
	 .about = "Schedules are prompts that the agent gets at set times. You declare them as crons/NAME.yaml\n"
		  "(name, schedule, prompt); the agent adds its own with schedule_at and schedule_every. An\n"
		  "expression has five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday).\n"
		  "'next' shows the times of an expression or a named schedule, and how clock changes affect them.\n"
		  "A job at a time of day runs once a day: right after the clock change if its time is skipped, and\n"
		  "the first time if its time occurs twice. A job at an interval (* in the minute or hour) keeps\n"
		  "its interval.\n",
	 .examples = "stead schedule\n  all schedules and their next run\n"
		     "stead schedule next '30 2 * * *' --zone America/New_York --from 2026-03-07\n"
		     "  the night when the clocks go forward\n"
		     "stead schedule pause daily-report\n"
		     "  it does not run until 'stead schedule resume daily-report'\n"},
	{0},
};
