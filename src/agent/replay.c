/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead replay`: runs a recorded conversation again from one of its steps, in a fork of the workspace as it was then,
 * with another model, another prompt or another result of a tool, and compares what came of it. The fork gets the log
 * up to that step; from there on the ordinary loop goes on, as after a kill. Without another model the answers are
 * those of the recording, so with nothing changed the transcript and the files come out the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_commands.h"
#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "command/cli.h"
#include "command/input.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "workspace/fork.h"

#define ID_DIGITS 12 /* of a version or an id; shorter numbers are compared */

struct replay {
	struct cli *cli;
	struct session_ref ref;
	const struct jv **entries; /* of the original */
	size_t count;
	size_t begin;      /* the request at which it begins */
	uint64_t from;     /* its step, counted through the session */
	uint64_t revision; /* of the workspace then */
	struct str fork_name, model;
	struct workspace *fork;
	char recording[64]; /* a file that goes with the command; "" : none */
	struct agent *agent;
};

static bool is_type(const struct jv *entry, const char *type)
{
	return str_is(jv_get_str(entry, "type"), type);
}

/* --- where it begins --- */

static int read_original(struct replay *p, struct err *err)
{
	struct session_page page;
	int r = session_history(p->cli->ws, &p->cli->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, err);

	if (r)
		return r;
	p->entries = ARENA_ARRAY(p->cli->ctx.arena, const struct jv *, jv_count(page.entries) + 1);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		p->entries[p->count++] = m->value;
	return 0;
}

static int find_begin(struct replay *p, struct err *err)
{
	uint64_t step = 0;

	for (size_t i = 0; i < p->count; i++)
		if (is_type(p->entries[i], "request") && ++step == p->from) {
			p->begin = i;
			p->revision = (uint64_t)jv_get_int(p->entries[i], "revision", 0);
			return 0;
		}
	return err_set(err, ERR_NOT_FOUND,
		       "session \"%.*s\" has %llu steps of Stead's agent, and none with number %llu",
		       STR_ARG(utf8_first(p->ref.session, 60)), (unsigned long long)step, (unsigned long long)p->from);
}

/* --- the fork --- */

static int open_fork(struct replay *p, struct err *err)
{
	struct cli *cli = p->cli;
	struct workspace_opts opts = {.store_url = cli_setting(cli, "store"),
				      .user = cli_setting(cli, "user"),
				      .agent = cli_setting(cli, "agent"),
				      .relaxed = args_has(&cli->args, "relaxed")};
	struct jv *report;
	int r;

	p->fork_name =
		arena_printf(cli->ctx.arena, "%.*s-replay-%06llx", STR_ARG(str_first(workspace_name(cli->ws), 40)),
			     (unsigned long long)(random_u64() & 0xffffff));
	opts.name = p->fork_name;
	r = fork_create(cli->ws, &cli->ctx, p->fork_name, p->revision, &report, err);
	return r ? r : workspace_open(&opts, &p->fork, err);
}

/* "3=FILE": the first result of step 3; "3.2=FILE": the second. */
static int take_result(struct replay *p, struct jv *entry, uint64_t step, uint64_t nth, struct err *err)
{
	size_t count;
	struct str *given = args_each(p->cli->ctx.arena, &p->cli->args, "set-result", &count);

	for (size_t i = 0; i < count; i++) {
		struct str place = str_first(given[i], str_find_char(given[i], '='));
		struct str file = str_from(given[i], place.len + 1), text;
		int64_t at = 0, of = 1;
		size_t dot = str_find_char(place, '.');
		int fd, r;

		if (!str_to_i64(str_first(place, dot), &at) ||
		    (dot < place.len && !str_to_i64(str_from(place, dot + 1), &of)) || !file.len)
			return err_set(err, ERR_INVALID, "replay: write --set-result STEP=FILE or STEP.CALL=FILE");
		if ((uint64_t)at != step || (uint64_t)of != nth)
			continue;
		fd = open(arena_cstr(p->cli->ctx.arena, file), O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(err, errno, "replay: \"%.*s\" cannot be opened", STR_ARG(utf8_first(file, 200)));
		r = input_read(p->cli->ctx.arena, fd, TOOL_TEXT_MAX, &text, err);
		close(fd);
		if (r)
			return r;
		jv_set_str(p->cli->ctx.arena, entry, "output", text);
		jv_remove(entry, "is_error");
	}
	return 0;
}

/* The fork's log ends where the last append before the request did: it gets the rest up to the request. */
static int fill_log(struct replay *p, struct err *err)
{
	struct arena *arena = p->cli->ctx.arena;
	struct session_page page = {.entries = jv_array(arena)};
	struct jv *more = jv_array(arena), *written;
	uint64_t step = 0, nth = 0;
	struct err ignored;
	size_t have;

	session_history(p->fork, &p->cli->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, &ignored);
	have = jv_count(page.entries);
	for (size_t i = 0; i < p->begin; i++) {
		struct jv *entry = jv_copy(arena, p->entries[i]);
		int r = 0;

		if (is_type(entry, "request")) {
			step++;
			nth = 0;
		}
		if (is_type(entry, "tool_result"))
			r = take_result(p, entry, step, ++nth, err);
		if (r)
			return r;
		if (i >= have)
			jv_push(arena, more, entry);
		else if (!jv_equal(entry, p->entries[i]))
			return err_set(err, ERR_INVALID,
				       "replay: a result of step %llu is before the beginning; use --from %llu",
				       (unsigned long long)step, (unsigned long long)step + 1);
	}
	return session_append_all(p->fork, &p->cli->ctx, p->ref, more, &written, err);
}

/* --- the model --- */

static int write_recording(struct replay *p, struct err *err)
{
	struct buf text;
	int fd;

	buf_init(&text, p->cli->ctx.arena, JSON_LEN_MAX);
	for (size_t i = p->begin; i < p->count; i++)
		if (is_type(p->entries[i], "message") && str_is(jv_get_str(p->entries[i], "role"), "assistant")) {
			jv_write(&text, p->entries[i]);
			buf_char(&text, '\n');
		}
	snprintf(p->recording, sizeof(p->recording), "/tmp/stead-replay-XXXXXX");
	fd = mkstemp(p->recording);
	if (fd < 0 || write(fd, text.ptr, text.len) != (ssize_t)text.len) {
		int sys = errno;

		if (fd >= 0)
			close(fd);
		return err_sys(err, sys, "replay: the recording cannot be written");
	}
	close(fd);
	p->model = arena_printf(p->cli->ctx.arena, "replay:%s", p->recording);
	return 0;
}

static int read_prompt(struct replay *p, struct str *ret, struct err *err)
{
	struct str file = args_get(&p->cli->args, "prompt");
	int fd, r;

	if (!file.len)
		return 0;
	fd = open(arena_cstr(p->cli->ctx.arena, file), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "replay: \"%.*s\" cannot be opened", STR_ARG(utf8_first(file, 200)));
	r = input_read(p->cli->ctx.arena, fd, PROMPT_FILE_MAX, ret, err);
	close(fd);
	return r;
}

/* The turn that is open, and then the messages that followed it. */
static int run_on(struct replay *p, struct err *err)
{
	struct agent_opts opts = {.base_url = args_get(&p->cli->args, "base-url")};
	struct agent_turn turn = {.session = p->ref.session};
	struct agent_result result;
	int r = read_prompt(p, &opts.prompt, err);

	p->model = cli_setting(p->cli, "model");
	if (r == 0 && !p->model.len)
		r = write_recording(p, err);
	opts.model = p->model;
	if (r == 0)
		r = agent_open(p->fork, &opts, &p->agent, err);
	if (r == 0)
		r = agent_run(p->agent, &p->cli->ctx, &turn, &result, err);
	for (size_t i = p->begin; i < p->count && r == 0; i++)
		if (is_type(p->entries[i], "message") && str_is(jv_get_str(p->entries[i], "role"), "user")) {
			turn.text = transcript_said(p->entries[i]);
			r = agent_run(p->agent, &p->cli->ctx, &turn, &result, err);
		}
	return r;
}

/* --- the comparison --- */

/* One step as it is compared: text, calls, results; without ids, times and tokens. */
struct side {
	struct jv *steps;
	struct model_usage usage;
};

static size_t hex_run(struct str s)
{
	size_t n = 0;

	while (n < s.len && hex_digit((unsigned char)s.ptr[n]) >= 0)
		n++;
	return n;
}

/* The bytes of "2026-11-16T16:13:59.5Z"; 0: there is no time here. */
static size_t time_run(struct str s)
{
	size_t n = str_find_char(str_first(s, 32), 'Z') + 1;
	int64_t ignored;

	return s.len >= 20 && s.ptr[10] == 'T' && clock_parse(str_first(s, n), &ignored) ? n : 0;
}

/* A result without versions, ids and times, which are new in every run. */
static struct str mask(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX / 4);
	while (text.len) {
		size_t n = time_run(text) ? time_run(text) : hex_run(text);

		if (n >= ID_DIGITS)
			buf_lit(&out, "(id)");
		else
			buf_add(&out, str_first(text, n = n ? n : 1));
		text = str_from(text, n);
	}
	return out.len ? buf_str(&out) : STR("");
}

static void mask_step(struct arena *arena, struct jv *step)
{
	jv_remove(step, "model");
	jv_remove(step, "usage");
	jv_remove(step, "step");
	for (const struct jv_member *m = jv_first(jv_get(step, "calls")); m; m = m->next) {
		jv_remove(m->value, "id");
		jv_set_str(arena, m->value, "output", mask(arena, jv_get_str(m->value, "output")));
	}
}

static struct side side_of(struct arena *arena, const struct jv **entries, size_t count)
{
	struct side side = {.steps = jv_array(arena)};
	struct jv *list = jv_array(arena), *steps;
	struct str turn = STR_NONE;

	for (size_t i = 0; i < count; i++)
		jv_push(arena, list, (struct jv *)entries[i]);
	for (size_t i = 0; i < count; i++) {
		struct model_usage sum;
		uint64_t calls;

		if (!jv_get_str(entries[i], "turn").len || str_eq(jv_get_str(entries[i], "turn"), turn))
			continue;
		turn = jv_get_str(entries[i], "turn");
		steps = transcript_steps(arena, list, turn, &sum, &calls);
		side.usage.input += sum.input;
		side.usage.output += sum.output;
		side.usage.cost_usd += sum.cost_usd;
		for (const struct jv_member *m = jv_first(steps); m; m = m->next) {
			struct jv *step = jv_copy(arena, m->value);

			mask_step(arena, step);
			jv_push(arena, side.steps, step);
		}
	}
	return side;
}

static struct side side_of_fork(struct replay *p)
{
	struct arena *arena = p->cli->ctx.arena;
	struct session_page page = {.entries = jv_array(arena)};
	const struct jv **list;
	struct err ignored;
	size_t count = 0;

	session_history(p->fork, &p->cli->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, &ignored);
	list = ARENA_ARRAY(arena, const struct jv *, jv_count(page.entries) + 1);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next, count++)
		if (count >= p->begin)
			list[count - p->begin] = m->value;
	return side_of(arena, list, count > p->begin ? count - p->begin : 0);
}

static void add_paths(struct replay *p, struct workspace *ws, uint64_t since, struct jv *paths)
{
	struct rev_query query = {.since = since, .session = p->ref.session};
	struct revision *found = NULL;
	size_t count = 0;
	struct wpath shown;
	struct err ignored;
	bool more;

	if (revisions_query(workspace_revisions(ws), &p->cli->ctx, &query, &found, &count, &more, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (past_shown(ws, found[i].path, &shown))
			jv_set_key(p->cli->ctx.arena, paths, shown.s, jv_bool(p->cli->ctx.arena, true));
}

/* Files that either run changed and that are not the same now. */
static struct jv *differing_files(struct replay *p)
{
	struct arena *arena = p->cli->ctx.arena;
	struct jv *paths = jv_object(arena), *list = jv_array(arena);

	add_paths(p, p->cli->ws, p->revision, paths);
	add_paths(p, p->fork, 0, paths);
	for (const struct jv_member *m = jv_first(paths); m; m = m->next) {
		struct wpath path = {m->key};
		struct str a = STR_NONE, b = STR_NONE;
		struct err ignored;
		int ra = store_read(workspace_files(p->cli->ws), &p->cli->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &a,
				    NULL, &ignored);
		int rb = store_read(workspace_files(p->fork), &p->cli->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &b, NULL,
				    &ignored);

		if (ra != rb || (ra == 0 && !str_eq(a, b)))
			jv_push(arena, list, jv_str(arena, m->key));
	}
	return list;
}

static struct jv *compare(struct replay *p)
{
	struct arena *arena = p->cli->ctx.arena;
	struct side before = side_of(arena, p->entries + p->begin, p->count - p->begin), after = side_of_fork(p);
	size_t count = jv_count(before.steps) > jv_count(after.steps) ? jv_count(before.steps) : jv_count(after.steps);
	struct jv *v = jv_object(arena), *steps = jv_array(arena);
	bool same = true;

	for (size_t i = 0; i < count; i++) {
		const struct jv *a = jv_at(before.steps, i), *b = jv_at(after.steps, i);
		struct jv *step = jv_object(arena);
		bool equal = a && b && jv_equal(a, b);

		same &= equal;
		jv_set_int(arena, step, "step", (int64_t)(p->from + i));
		jv_set_bool(arena, step, "same", equal);
		if (!equal) {
			jv_set(arena, step, "before", a ? jv_copy(arena, a) : jv_null(arena));
			jv_set(arena, step, "after", b ? jv_copy(arena, b) : jv_null(arena));
		}
		jv_push(arena, steps, step);
	}
	jv_set_str(arena, v, "session", p->ref.session);
	jv_set_int(arena, v, "from", (int64_t)p->from);
	jv_set_str(arena, v, "fork", p->fork_name);
	jv_set_str(arena, v, "model", p->recording[0] ? STR("recorded") : p->model);
	jv_set(arena, v, "steps", steps);
	jv_set(arena, v, "files", differing_files(p));
	jv_set_bool(arena, v, "same", same && !jv_count(jv_get(v, "files")));
	jv_set(arena, v, "usage_before", usage_value(arena, &before.usage));
	jv_set(arena, v, "usage_after", usage_value(arena, &after.usage));
	return v;
}

/* --- the command --- */

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
	output_printf(&cli->out,
		      "tokens: %lld in, %lld out before; %lld in, %lld out after\nthe new run is in the workspace "
		      "%.*s\n",
		      (long long)jv_get_int(jv_get(v, "usage_before"), "input_tokens", 0),
		      (long long)jv_get_int(jv_get(v, "usage_before"), "output_tokens", 0),
		      (long long)jv_get_int(jv_get(v, "usage_after"), "input_tokens", 0),
		      (long long)jv_get_int(jv_get(v, "usage_after"), "output_tokens", 0),
		      STR_ARG(jv_get_str(v, "fork")));
}

/* One session; *ret_report is in the arena of the command. */
static int replay_one(struct cli *cli, struct str session, struct jv **ret_report, struct err *err)
{
	struct replay p = {.cli = cli,
			   .ref = {.agent = workspace_actor(cli->ws).agent, .session = session},
			   .from = args_number(&cli->args, "from", 1)};
	int r = read_original(&p, err);

	if (r == 0)
		r = find_begin(&p, err);
	if (r == 0)
		r = open_fork(&p, err);
	if (r == 0)
		r = fill_log(&p, err);
	if (r == 0)
		r = run_on(&p, err);
	if (r == 0)
		*ret_report = compare(&p);
	agent_close(p.agent);
	if (p.fork)
		workspace_close(p.fork);
	if (p.recording[0])
		unlink(p.recording);
	return r;
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
