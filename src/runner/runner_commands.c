/* SPDX-License-Identifier: Apache-2.0 */
/* `stead status`: what workspaces do by themselves. `stead up`, which does it, is in server/up_command.c. */
#include "runner/runner_commands.h"

#include <stdio.h>

#include "base/clock.h"
#include "command/cli.h"
#include "runner/runner.h"
#include "runner/status.h"
#include "workspace/workspace_parts.h"

#define TEXT_SHOWN ((size_t)300)

static struct str json_line(struct arena *arena, const struct runner_event *event)
{
	static const char *const kinds[] = {
		[RUNNER_QUEUED] = "queued",   [RUNNER_STARTED] = "started", [RUNNER_ENDED] = "ended",
		[RUNNER_CHANGED] = "changed", [RUNNER_CALLED] = "called",   [RUNNER_PROBLEM] = "problem",
	};
	struct jv *v = jv_object(arena);
	struct buf line;
	int64_t now_ns = event->at_ns ? event->at_ns : clock_real_ns();

	jv_set_str(arena, v, "timestamp", clock_format_utc(arena, now_ns));
	jv_set_str(arena, v, "event", str_of(kinds[event->kind]));
	jv_set_str(arena, v, "workspace", event->workspace);
	jv_set_str(arena, v, "what", event->what);
	if (event->due) {
		jv_set_str(arena, v, "due", clock_format_seconds(arena, event->due));
		jv_set_int(arena, v, "late_ms", (now_ns - event->due * NS_PER_S) / NS_PER_MS);
	}
	if (event->text.len)
		jv_set_str(arena, v, "text", event->text);
	if (event->is_error)
		jv_set_bool(arena, v, "is_error", true);
	buf_init(&line, arena, SIZE_MAX);
	jv_write(&line, v);
	return buf_str(&line);
}

struct str runner_event_line(struct arena *arena, const struct runner_event *event, bool is_json)
{
	struct str now = clock_format_utc(arena, clock_real_ns());
	struct str text = utf8_first(str_first(event->text, str_find_char(event->text, '\n')), TEXT_SHOWN);

	if (is_json)
		return json_line(arena, event);
	return arena_printf(arena, "%.*s %.*s%s%.*s: %s%.*s", STR_ARG(str_first(str_from(now, 11), 8)),
			    STR_ARG(event->workspace), event->what.len ? " " : "", STR_ARG(event->what),
			    event->kind == RUNNER_QUEUED    ? "due, waiting for others to end"
			    : event->kind == RUNNER_STARTED ? "started"
			    : event->kind == RUNNER_CALLED  ? "calls "
			    : event->is_error               ? "failed: "
							    : "",
			    STR_ARG(text));
}

/* --- status --- */

static void print_status(struct cli *cli, const struct jv *v)
{
	const struct jv *today = jv_get(v, "today");
	int64_t chats = jv_get_int(v, "conversations", 0), calls = jv_get_int(today, "llm_calls", 0);

	output_printf(&cli->out, "%.*s\n", STR_ARG(jv_get_str(v, "workspace")));
	for (const struct jv_member *m = jv_first(jv_get(v, "problems")); m; m = m->next)
		output_printf(&cli->out, "  problem  %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "path")),
			      STR_ARG(jv_get_str(m->value, "problem")));
	for (const struct jv_member *m = jv_first(jv_get(v, "running")); m; m = m->next)
		output_printf(&cli->out, "  runs     %.*s, since %.*s\n", STR_ARG(jv_get_str(m->value, "schedule")),
			      STR_ARG(jv_get_str(m->value, "since")));
	for (const struct jv_member *m = jv_first(jv_get(v, "next")); m; m = m->next)
		output_printf(&cli->out, "  next     %.*s, %.*s\n", STR_ARG(jv_get_str(m->value, "schedule")),
			      STR_ARG(jv_get_str(m->value, "local")));
	for (const struct jv_member *m = jv_first(jv_get(v, "recent")); m; m = m->next) {
		struct str why = jv_get_str(m->value, jv_get(m->value, "error")    ? "error"
						      : jv_get(m->value, "reason") ? "reason"
										   : "undelivered");

		output_printf(&cli->out, "  recent   %.*s, %.*s: %.*s%s%.*s\n",
			      STR_ARG(jv_get_str(m->value, "schedule")), STR_ARG(jv_get_str(m->value, "timestamp")),
			      STR_ARG(jv_get_str(m->value, "outcome")), why.len ? ": " : "",
			      STR_ARG(utf8_first(why, TEXT_SHOWN)));
	}
	output_printf(&cli->out, "  today    %lld model call%s, %lld tokens; %lld conversation%s\n", (long long)calls,
		      calls == 1 ? "" : "s", (long long)jv_get_int(today, "total_tokens", 0), (long long)chats,
		      chats == 1 ? "" : "s");
}

static int status_of(struct cli *cli, struct str name, struct jv *list, struct err *err)
{
	struct workspace_opts opts = {.store_url = cli_setting(cli, "store"), .name = name};
	struct workspace *ws;
	struct jv *value = NULL;
	int r = workspace_open(&opts, &ws, err);

	if (r)
		return r;
	r = runner_status(ws, &cli->ctx, &value, err);
	workspace_close(ws);
	if (r == 0)
		jv_push(cli->ctx.arena, list, value);
	return r;
}

static int names_of_all(struct cli *cli, struct jv *names, struct err *err)
{
	struct jv *bad = jv_array(cli->ctx.arena);
	struct store *base;
	struct str dir;
	int r = workspace_open_store(cli->ctx.arena, cli_setting(cli, "store"), false, false, &base, &dir, err);

	if (r)
		return r;
	r = workspace_names(&cli->ctx, base, names, bad, err);
	store_destroy(base);
	return r;
}

static int run_status(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *names = jv_array(arena), *list = jv_array(arena), *value = jv_object(arena);
	struct str given = cli_setting(cli, "workspace");
	int r = 0;

	if (args_has(&cli->args, "all") && given.len)
		return err_set(err, ERR_INVALID, "status: --all shows every workspace; leave out -w");
	if (args_has(&cli->args, "all"))
		r = names_of_all(cli, names, err);
	else
		jv_push(arena, names, jv_str(arena, given.len ? given : STR("default")));
	for (const struct jv_member *m = r ? NULL : jv_first(names); m && r == 0; m = m->next)
		r = status_of(cli, jv_str_of(m->value), list, err);
	if (r)
		return r;
	jv_set(arena, value, "workspaces", list);
	if (cli_json(cli, value))
		return 0;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		print_status(cli, m->value);
	return 0;
}

static const struct option status_options[] = {
	{"all", .help = "every workspace in the store"},
	{0},
};

const struct command runner_commands[] = {
	{"status", "show what is running, what comes next, what happened and what it cost", TOPIC_AGENT,
	 .run = run_status, .options = status_options,
	 .about = "Shows what a workspace does on its own: current runs, the next due times of schedules and the\n"
		  "heartbeat, the last results, and today's model calls and tokens (UTC). It reads the workspace's\n"
		  "files, so it also works while no 'stead up' is running.\n",
	 .examples = "stead status -w research\n  one workspace\n"
		     "stead status --all --json\n  all workspaces in a store, for programs\n"},
	{0},
};
