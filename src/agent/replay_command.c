/* SPDX-License-Identifier: Apache-2.0 */
/* `stead replay`: one conversation side by side, or several in a table. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/agent_commands.h"
#include "agent/agent_internal.h"
#include "agent/replay.h"
#include "command/cli.h"
#include "command/input.h"

/* --- what is changed --- */

static int read_host_file(struct cli *cli, struct str file, size_t most, struct str *ret, struct err *err)
{
	int fd = open(arena_cstr(cli->ctx.arena, file), O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return err_sys(err, errno, "replay: \"%.*s\" cannot be opened", STR_ARG(utf8_first(file, 200)));
	r = input_read(cli->ctx.arena, fd, most, ret, err);
	close(fd);
	return r;
}

/* "3=FILE": the first result of step 3; "3.2=FILE": the second. */
static int read_outputs(struct cli *cli, struct replay_opts *opts, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct str *given = args_each(arena, &cli->args, "set-result", &opts->output_count);
	struct replay_output *outputs = ARENA_ARRAY(arena, struct replay_output, opts->output_count + 1);

	for (size_t i = 0; i < opts->output_count; i++) {
		struct str place = str_first(given[i], str_find_char(given[i], '='));
		int r;

		if (place.len == given[i].len || !replay_place_parse(place, &outputs[i]))
			return err_set(err, ERR_INVALID,
				       "replay: --set-result is \"%.*s\"; write STEP=FILE or STEP.CALL=FILE",
				       STR_ARG(utf8_first(given[i], 100)));
		r = read_host_file(cli, str_from(given[i], place.len + 1), TOOL_TEXT_MAX, &outputs[i].text, err);
		if (r)
			return r;
	}
	opts->outputs = outputs;
	return 0;
}

/* One session; *ret_report is in the arena of the command. */
static int replay_one(struct cli *cli, struct str session, struct jv **ret_report, struct err *err)
{
	struct replay_opts opts = {.session = session,
				   .from = args_number(&cli->args, "from", 0),
				   .model = cli_setting(cli, "model"),
				   .base_url = args_get(&cli->args, "base-url")};
	struct str file = args_get(&cli->args, "prompt");
	int r = file.len ? read_host_file(cli, file, PROMPT_FILE_MAX, &opts.prompt, err) : 0;

	if (r == 0)
		r = read_outputs(cli, &opts, err);
	return r ? r : agent_replay(cli->ws, &cli->ctx, &opts, ret_report, err);
}

/* --- one session --- */

static void print_side(struct cli *cli, const char *name, const struct jv *step)
{
	if (jv_is_null(step))
		output_printf(&cli->out, "  %s: nothing\n", name);
	if (jv_get_str(step, "text").len)
		output_printf(&cli->out, "  %s: %.*s\n", name, STR_ARG(utf8_first(jv_get_str(step, "text"), 200)));
	for (const struct jv_member *m = jv_first(jv_get(step, "calls")); m; m = m->next) {
		struct buf input;

		buf_init(&input, cli->ctx.arena, JSON_LEN_MAX);
		jv_write(&input, jv_get(m->value, "input"));
		output_printf(&cli->out, "  %s: %.*s %.*s -> %.*s\n", name, STR_ARG(jv_get_str(m->value, "name")),
			      STR_ARG(utf8_first(buf_str(&input), 100)),
			      STR_ARG(utf8_first(jv_get_str(m->value, "output"), 100)));
	}
}

static void print_usage(struct cli *cli, const char *name, const struct jv *usage)
{
	double cost = settings_real(jv_get(usage, "cost_usd"), 0);

	output_printf(&cli->out, "tokens %s: %lld in, %lld out", name, (long long)jv_get_int(usage, "input_tokens", 0),
		      (long long)jv_get_int(usage, "output_tokens", 0));
	if (cost > 0)
		output_printf(&cli->out, "; %.4f US dollars", cost);
	output_add(&cli->out, STR("\n"));
}

static void print(struct cli *cli, const struct jv *v)
{
	for (const struct jv_member *m = jv_first(jv_get(v, "steps")); m; m = m->next) {
		bool same = jv_get_bool(m->value, "same", false);

		output_printf(&cli->out, "step %lld: %s\n", (long long)jv_get_int(m->value, "step", 0),
			      same ? "the same" : "different");
		if (!same) {
			print_side(cli, "before", jv_get(m->value, "before"));
			print_side(cli, "after ", jv_get(m->value, "after"));
		}
	}
	for (const struct jv_member *m = jv_first(jv_get(v, "files")); m; m = m->next)
		output_printf(&cli->out, "file differs: %.*s\n", STR_ARG(jv_str_of(m->value)));
	for (const struct jv_member *m = jv_first(jv_get(v, "waiting")); m; m = m->next)
		output_printf(&cli->out,
			      "a call to %.*s is waiting for approval: stead approvals -w %.*s --session %.*s\n",
			      STR_ARG(jv_get_str(m->value, "name")), STR_ARG(jv_get_str(v, "fork")),
			      STR_ARG(jv_get_str(v, "session")));
	print_usage(cli, "before", jv_get(v, "usage_before"));
	print_usage(cli, "after", jv_get(v, "usage_after"));
	output_printf(&cli->out, "the new run is in the workspace %.*s\n", STR_ARG(jv_get_str(v, "fork")));
}

/* --- many sessions --- */

static int64_t tokens_of(const struct jv *report, const char *key)
{
	const struct jv *usage = jv_get(report, key);

	return jv_get_int(usage, "input_tokens", 0) + jv_get_int(usage, "output_tokens", 0);
}

/* What one session adds to the summary. */
static void add_up(struct arena *arena, struct jv *summary, const struct jv *report)
{
	static const char *const costs[] = {"usage_before", "usage_after"};
	static const char *const sums[] = {"cost_usd_before", "cost_usd_after"};
	const struct jv *steps = jv_get(report, "steps");
	int64_t same = 0;

	for (const struct jv_member *m = jv_first(steps); m; m = m->next)
		same += jv_get_bool(m->value, "same", false);
	jv_set_int(arena, summary, "sessions", jv_get_int(summary, "sessions", 0) + 1);
	jv_set_int(arena, summary, "same", jv_get_int(summary, "same", 0) + jv_get_bool(report, "same", false));
	jv_set_int(arena, summary, "failed", jv_get_int(summary, "failed", 0) + (jv_get(report, "error") != NULL));
	jv_set_int(arena, summary, "steps", jv_get_int(summary, "steps", 0) + (int64_t)jv_count(steps));
	jv_set_int(arena, summary, "steps_same", jv_get_int(summary, "steps_same", 0) + same);
	jv_set_int(arena, summary, "files",
		   jv_get_int(summary, "files", 0) + (int64_t)jv_count(jv_get(report, "files")));
	jv_set_int(arena, summary, "tokens_before",
		   jv_get_int(summary, "tokens_before", 0) + tokens_of(report, "usage_before"));
	jv_set_int(arena, summary, "tokens_after",
		   jv_get_int(summary, "tokens_after", 0) + tokens_of(report, "usage_after"));
	for (size_t i = 0; i < COUNT(costs); i++)
		jv_set(arena, summary, sums[i],
		       jv_real(arena, settings_real(jv_get(summary, sums[i]), 0) +
					      settings_real(jv_get(jv_get(report, costs[i]), "cost_usd"), 0)));
}

static void print_row(struct cli *cli, struct str name, const struct jv *sum, struct str outcome)
{
	output_printf(&cli->out, "%.*s\t%lld of %lld\t%lld\t%lld -> %lld\t%.4f -> %.4f\t%.*s\n", STR_ARG(name),
		      (long long)jv_get_int(sum, "steps_same", 0), (long long)jv_get_int(sum, "steps", 0),
		      (long long)jv_get_int(sum, "files", 0), (long long)jv_get_int(sum, "tokens_before", 0),
		      (long long)jv_get_int(sum, "tokens_after", 0), settings_real(jv_get(sum, "cost_usd_before"), 0),
		      settings_real(jv_get(sum, "cost_usd_after"), 0), STR_ARG(outcome));
}

static int replay_many(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *all = jv_object(arena), *summary = jv_object(arena), *list = jv_array(arena);

	if (!cli->json)
		output_add(&cli->out, STR("session\tsteps the same\tfiles that differ\ttokens\tUS dollars\toutcome\n"));
	for (size_t i = 0; i < cli->args.operand_count; i++) {
		struct jv *report = jv_object(arena), *sum = jv_object(arena);
		struct str name = cli->args.operands[i], outcome;
		int r = replay_one(cli, name, &report, err);

		if (r == -ERR_CANCELLED)
			return r;
		if (r) {
			jv_set_str(arena, report, "session", name);
			jv_set_str(arena, report, "error", err_text(arena, err));
		}
		outcome = r                                    ? jv_get_str(report, "error")
			  : jv_get_bool(report, "same", false) ? STR("the same")
							       : STR("different");
		add_up(arena, summary, report);
		add_up(arena, sum, report);
		jv_push(arena, list, report);
		if (!cli->json)
			print_row(cli, name, sum, outcome);
		output_flush(&cli->out);
	}
	jv_set(arena, all, "sessions", list);
	jv_set(arena, all, "summary", summary);
	if (!cli_json(cli, all))
		print_row(cli, STR("in all"), summary,
			  arena_printf(arena, "%lld of %lld the same, %lld failed",
				       (long long)jv_get_int(summary, "same", 0),
				       (long long)jv_get_int(summary, "sessions", 0),
				       (long long)jv_get_int(summary, "failed", 0)));
	cli->status = jv_get_int(summary, "same", 0) == jv_get_int(summary, "sessions", 0) ? 0 : 1;
	return 0;
}

int run_replay(struct cli *cli, struct err *err)
{
	struct jv *report;
	int r;

	if (cli->args.operand_count > 1)
		return replay_many(cli, err);
	r = replay_one(cli, cli->args.operands[0], &report, err);
	if (r)
		return r;
	if (!cli_json(cli, report))
		print(cli, report);
	cli->status = jv_get_bool(report, "same", false) ? 0 : 1;
	return 0;
}
