/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a recorded conversation again from one of its steps, in a fork of the workspace as it was then, with another
 * model, another prompt or another result of a tool, and compares what came of it. The fork gets the log up to that
 * step; from there on the ordinary loop continues, as after a kill. Without another model the answers are those of the
 * recording, so with nothing changed the transcript and the files come out the same.
 */
#include "agent/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/recorded.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define ID_DIGITS 12 /* of a version or an id; shorter numbers are compared */
#define DROP_MS   30000

struct replay {
	struct workspace *ws;
	struct ctx *ctx;
	const struct replay_opts *opts;
	struct session_ref ref;
	const struct jv **entries; /* of the original */
	size_t count;
	size_t begin;      /* the request at which it begins */
	uint64_t from;     /* its step, counted through the session */
	uint64_t revision; /* of the workspace then */
	bool *is_used;     /* for each of the other outputs */
	struct str fork_name, model;
	struct workspace *fork;
	char recording[64]; /* a file that goes with the replay; "" : none */
	struct agent *agent;
	struct recorded *recorded;
	struct jv *waiting; /* calls for which nobody was there to decide; NULL: none */
};

static bool is_type(const struct jv *entry, const char *type)
{
	return str_is(jv_get_str(entry, "type"), type);
}

bool replay_place_parse(struct str place, struct replay_output *ret)
{
	size_t dot = str_find_char(place, '.');
	int64_t step = 0, nth = 1;

	if (!str_to_i64(str_first(place, dot), &step) || step < 1 ||
	    (dot < place.len && !str_to_i64(str_from(place, dot + 1), &nth)) || nth < 1)
		return false;
	ret->step = (uint64_t)step;
	ret->nth = (uint64_t)nth;
	return true;
}

/* --- where it begins --- */

/* What follows a changed result is run again. */
static int choose_begin(struct replay *p, struct err *err)
{
	const struct replay_output *outputs = p->opts->outputs;

	p->from = p->opts->from ? p->opts->from : 1;
	for (size_t i = 0; i < p->opts->output_count && !p->opts->from; i++)
		if (p->from <= outputs[i].step)
			p->from = outputs[i].step + 1;
	for (size_t i = 0; i < p->opts->output_count; i++)
		if (outputs[i].step >= p->from)
			return err_set(
				err, ERR_INVALID,
				"replay: step %llu will run again, so its result cannot be set; begin with step %llu",
				(unsigned long long)outputs[i].step, (unsigned long long)outputs[i].step + 1);
	return 0;
}

static int read_original(struct replay *p, struct err *err)
{
	struct session_page page;
	int r = session_history(p->ws, p->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, err);

	if (r)
		return r;
	p->entries = ARENA_ARRAY(p->ctx->arena, const struct jv *, jv_count(page.entries) + 1);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		p->entries[p->count++] = m->value;
	return 0;
}

/* True for a request that was answered: one that a kill or another model cut off is not a step. */
static bool is_step(const struct replay *p, size_t i)
{
	if (!is_type(p->entries[i], "request"))
		return false;
	for (i++; i < p->count && !is_type(p->entries[i], "turn"); i++) {
		if (is_type(p->entries[i], "request"))
			return false;
		if (is_type(p->entries[i], "message"))
			return true;
	}
	return true; /* the last one: what it asked for has failed, or runs */
}

static int find_begin(struct replay *p, struct err *err)
{
	uint64_t step = 0;

	for (size_t i = 0; i < p->count; i++)
		if (is_step(p, i) && ++step == p->from) {
			p->begin = i;
			p->revision = (uint64_t)jv_get_int(p->entries[i], "revision", 0);
			return 0;
		}
	if (!p->opts->from && p->from - 1 == step && step)
		return err_set(err, ERR_INVALID,
			       "replay: nothing follows step %llu, so another result for it would change nothing",
			       (unsigned long long)step);
	return err_set(err, ERR_NOT_FOUND,
		       "session \"%.*s\" has %llu step%s of Stead's agent, and none with number %llu",
		       STR_ARG(utf8_first(p->ref.session, 60)), (unsigned long long)step, step == 1 ? "" : "s",
		       (unsigned long long)(p->opts->from || p->from == 1 ? p->from : p->from - 1));
}

/* --- the fork --- */

static int open_fork(struct replay *p, struct err *err)
{
	struct arena *arena = p->ctx->arena;
	struct str parent = str_first(workspace_name(p->ws), 40);
	struct str name = arena_printf(arena, "%.*s-replay-%06llx", STR_ARG(parent),
				       (unsigned long long)(random_u64() & 0xffffff));
	struct jv *report;
	int r = fork_create(p->ws, p->ctx, name, p->revision, &report, err);

	if (r)
		return r;
	p->fork_name = jv_get_str(report, "workspace");
	return workspace_open_sibling(p->ws, p->fork_name, &p->fork, err);
}

/* A replay that failed leaves nothing, also when it was cancelled. */
static void drop_fork(struct replay *p)
{
	struct ctx ctx = {.arena = p->ctx->arena,
			  .actor = p->ctx->actor,
			  .deadline_ns = clock_monotonic_ns() + DROP_MS * NS_PER_MS};
	struct err ignored;

	(void)fork_drop(p->ws, &ctx, p->fork_name, &ignored);
}

static void take_result(struct replay *p, struct jv *entry, uint64_t step, uint64_t nth)
{
	for (size_t i = 0; i < p->opts->output_count; i++) {
		if (p->opts->outputs[i].step != step || p->opts->outputs[i].nth != nth)
			continue;
		jv_set_str(p->ctx->arena, entry, "output", p->opts->outputs[i].text);
		jv_remove(entry, "is_error");
		p->is_used[i] = true;
	}
}

/* The fork's log ends where the last append before the request did: it gets the rest up to the request. A changed
   result may be in it already: then the log is written again. */
static int fill_log(struct replay *p, struct err *err)
{
	struct arena *arena = p->ctx->arena;
	struct session_page page = {.entries = jv_array(arena)};
	struct jv *all = jv_array(arena), *more = jv_array(arena), *written;
	uint64_t step = 0, nth = 0;
	bool is_other = false;
	struct err ignored;
	size_t have;

	session_history(p->fork, p->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, &ignored);
	have = jv_count(page.entries);
	for (size_t i = 0; i < p->begin; i++) {
		struct jv *entry = jv_copy(arena, p->entries[i]);

		if (is_step(p, i)) {
			step++;
			nth = 0;
		}
		if (is_type(entry, "tool_result"))
			take_result(p, entry, step, ++nth);
		jv_push(arena, all, entry);
		if (i >= have)
			jv_push(arena, more, entry);
		else if (!jv_equal(entry, p->entries[i]))
			is_other = true;
	}
	for (size_t i = 0; i < p->opts->output_count; i++)
		if (!p->is_used[i])
			return err_set(err, ERR_NOT_FOUND, "replay: step %llu has no tool call %llu",
				       (unsigned long long)p->opts->outputs[i].step,
				       (unsigned long long)p->opts->outputs[i].nth);
	return is_other ? session_replace(p->fork, p->ctx, p->ref, all, err)
			: session_append_all(p->fork, p->ctx, p->ref, more, &written, err);
}

/* --- the model --- */

static int write_recording(struct replay *p, struct err *err)
{
	struct buf text;
	int fd;

	buf_init(&text, p->ctx->arena, JSON_LEN_MAX);
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
	p->model = arena_printf(p->ctx->arena, "replay:%s", p->recording);
	return 0;
}

/* A turn that was cut off or reached a limit has only so many recorded answers; true: it is such a turn. */
static bool is_unfinished(const struct replay *p, struct str turn, uint64_t *ret_answers)
{
	bool done = false;

	*ret_answers = 0;
	for (size_t i = 0; i < p->count; i++) {
		if (!str_eq(jv_get_str(p->entries[i], "turn"), turn))
			continue;
		*ret_answers +=
			is_type(p->entries[i], "message") && str_is(jv_get_str(p->entries[i], "role"), "assistant");
		done |= is_type(p->entries[i], "turn") && str_is(jv_get_str(p->entries[i], "status"), "done");
	}
	return !done;
}

/* `entry`: one of the turn as it was recorded. */
static int run_turn(struct replay *p, struct str text, const struct jv *entry, struct err *err)
{
	struct agent_turn turn = {.session = p->ref.session, .text = text};
	uint64_t usual = p->agent->max_turns, answers;
	bool ends_early = p->recording[0] && is_unfinished(p, jv_get_str(entry, "turn"), &answers);
	struct agent_result result = {0};
	int r;

	if (ends_early)
		p->agent->max_turns = answers;
	r = agent_run(p->agent, p->ctx, &turn, &result, err);
	p->agent->max_turns = usual;
	if (ends_early && r == -ERR_QUOTA)
		r = 0;
	if (r == 0)
		p->waiting = result.waiting;
	return r;
}

/* The turn that is open, and then the messages that followed it, up to a call that needs approval. */
static int run_on(struct replay *p, struct err *err)
{
	struct agent_opts opts = {.base_url = p->opts->base_url, .prompt = p->opts->prompt};
	int r = 0;

	p->model = p->opts->model;
	if (!p->model.len && !opts.prompt.len && !p->opts->output_count)
		r = write_recording(p, err); /* nothing is changed that a model could see */
	opts.model = p->model;
	p->recorded = recorded_new(p->ctx->arena, p->entries + p->begin, p->count - p->begin, p->recording[0] != 0);
	if (r == 0)
		r = agent_open(p->fork, &opts, &p->agent, err);
	if (r == 0)
		p->agent->kin.recorded = p->recorded;
	if (r == 0)
		r = run_turn(p, STR_NONE, p->entries[p->begin], err);
	for (size_t i = p->begin; i < p->count && r == 0 && !p->waiting; i++)
		if (is_type(p->entries[i], "message") && str_is(jv_get_str(p->entries[i], "role"), "user"))
			r = run_turn(p, transcript_said(p->entries[i]), p->entries[i], err);
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
		side.usage.cache_read += sum.cache_read;
		side.usage.cache_write += sum.cache_write;
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
	struct arena *arena = p->ctx->arena;
	struct session_page page = {.entries = jv_array(arena)};
	const struct jv **list;
	struct err ignored;
	size_t count = 0;

	session_history(p->fork, p->ctx, p->ref, 0, AGENT_ENTRIES_MAX, false, &page, &ignored);
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

	if (revisions_query(workspace_revisions(ws), p->ctx, &query, &found, &count, &more, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (past_shown(ws, found[i].path, &shown))
			jv_set_key(p->ctx->arena, paths, shown.s, jv_bool(p->ctx->arena, true));
}

/* Files that either run changed and that are not the same now. */
static struct jv *differing_files(struct replay *p)
{
	struct arena *arena = p->ctx->arena;
	struct jv *paths = jv_object(arena), *list = jv_array(arena);

	add_paths(p, p->ws, p->revision, paths);
	add_paths(p, p->fork, 0, paths);
	for (const struct jv_member *m = jv_first(paths); m; m = m->next) {
		struct wpath path = {m->key};
		struct str a = STR_NONE, b = STR_NONE;
		struct err ignored;
		int ra = store_read(workspace_files(p->ws), p->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &a, NULL,
				    &ignored);
		int rb = store_read(workspace_files(p->fork), p->ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &b, NULL,
				    &ignored);

		if (ra != rb || (ra == 0 && !str_eq(a, b)))
			jv_push(arena, list, jv_str(arena, m->key));
	}
	return list;
}

static struct jv *compare(struct replay *p)
{
	struct arena *arena = p->ctx->arena;
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
	jv_set_str(arena, v, "model",
		   p->recording[0] ? STR("recorded") : arena_str(arena, model_label(p->agent->models[0].model)));
	jv_set(arena, v, "steps", steps);
	jv_set(arena, v, "files", differing_files(p));
	jv_set_bool(arena, v, "same", same && !jv_count(jv_get(v, "files")));
	if (p->waiting)
		jv_set(arena, v, "waiting", p->waiting);
	jv_set(arena, v, "usage_before", usage_value(arena, &before.usage));
	jv_set(arena, v, "usage_after", usage_value(arena, &after.usage));
	return v;
}

int agent_replay(struct workspace *ws, struct ctx *ctx, const struct replay_opts *opts, struct jv **ret_report,
		 struct err *err)
{
	struct replay p = {.ws = ws,
			   .ctx = ctx,
			   .opts = opts,
			   .ref = {.agent = workspace_actor(ws).agent, .session = opts->session},
			   .is_used = ARENA_ARRAY(ctx->arena, bool, opts->output_count + 1)};
	int r = read_original(&p, err);

	if (r == 0)
		r = choose_begin(&p, err);
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
		workspace_close(p.fork); /* and subagents that still ran */
	recorded_release(p.recorded);
	if (p.recording[0])
		unlink(p.recording);
	if (r && p.fork_name.len)
		drop_fork(&p);
	return r;
}
