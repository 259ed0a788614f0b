/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a workspace to a job and from its result to a value. Which tier runs, and with which limits, is decided by
 * agent.yaml, which no tool can write; a call may only choose its time within a limit.
 */
#include "home/exec/exec_internal.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "home/artifacts/artifacts.h"
#include "home/exec/spares.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "tool/family.h"
#include "workspace/workspace.h"
#include "workspace/workspace_parts.h"

static const char *const exclude_default[] = {"node_modules", ".venv", "__pycache__", NULL};

static bool is_hidden(void *arg, struct wpath path)
{
	return store_guard_says(arg, path) == GUARD_HIDDEN;
}

/* Git's own directory has many files, of which none can be changed; its name says enough. */
static bool is_fixed(void *arg, struct wpath path)
{
	return str_eq_nocase(wpath_name(path), STR(".git")) && store_guard_says(arg, path) == GUARD_FIXED;
}

/* The strings of an array, NULL at the end; NULL when there is none. */
static const char *const *strings(struct arena *arena, const struct jv *array)
{
	const char **list = ARENA_ARRAY(arena, const char *, jv_count(array) + 1);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(array); m; m = m->next)
		list[n++] = arena_cstr(arena, jv_str_of(m->value));
	return array ? list : NULL;
}

static const char *const *variables(struct arena *arena, const struct jv *map)
{
	const char **list = ARENA_ARRAY(arena, const char *, jv_count(map) + 1);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(map); m; m = m->next)
		list[n++] = arena_printf(arena, "%.*s=%.*s", STR_ARG(m->key), STR_ARG(jv_str_of(m->value))).ptr;
	return list;
}

/* AgentScope keeps the sandbox of a session. */
static struct str keep_of(struct workspace *ws)
{
	struct str keep = jv_get_str(jv_get(workspace_config(ws)->document, "sandbox"), "keep");

	return keep.len || workspace_layout(ws) != LAYOUT_AGENTSCOPE ? keep : STR("session");
}

int exec_job(struct workspace *ws, struct ctx *ctx, struct sandbox_job *ret, struct err *err)
{
	const struct jv *config = jv_get(workspace_config(ws)->document, "sandbox");
	struct str tier = jv_get_str(config, "tier"), image = jv_get_str(config, "image"),
		   dir = workspace_files_dir(ws);
	struct actor actor = workspace_actor(ws);
	struct arena *arena = ctx->arena;
	int r;

	*ret = (struct sandbox_job){
		.owner = arena_printf(arena, "%.*s/%.*s", STR_ARG(actor.workspace), STR_ARG(actor.user)),
		.env = variables(arena, jv_get(config, "env")),
		.paths = strings(arena, jv_get(config, "paths")),
		.image = image.len ? arena_cstr(arena, image) : NULL,
		.cwd = WPATH_ROOT,
		.limits = {.timeout_ms = jv_get_int(config, "timeout_seconds", SANDBOX_SECONDS_DEFAULT) * 1000,
			   .processes = (uint64_t)jv_get_int(config, "processes", 0)},
		.files = {.store = workspace_files(ws),
			  .at = workspace_root_is_task(ws) ? "/task" : NULL,
			  .dir = dir.ptr ? arena_cstr(arena, dir) : NULL,
			  .is_hidden = is_hidden,
			  .hidden_arg = workspace_files(ws),
			  .hidden_key = store_guard_id(workspace_files(ws)),
			  .is_fixed = is_fixed,
			  .revisions = workspace_revisions(ws),
			  .root = workspace_root(ws),
			  .exclude = strings(arena, jv_get(config, "exclude")),
			  .deletions_max = (uint64_t)jv_get_int(config, "max_deletions", SANDBOX_DELETIONS_DEFAULT)},
	};
	if (!ret->files.exclude)
		ret->files.exclude = exclude_default;
	r = exec_net(ws, ctx, &ret->net, err);
	if (r == 0 && tier.len)
		r = sandbox_tier_parse(tier, &ret->tier, err);
	if (r == 0 && (!config_size(jv_get(config, "memory"), 0, &ret->limits.memory) ||
		       !config_size(jv_get(config, "disk"), 0, &ret->limits.disk)))
		r = err_set(err, ERR_INVALID, "agent.yaml: a size of \"sandbox\" is too large");
	return r ? r : exec_keep(ws, ctx, keep_of(ws), ret, err);
}

int exec_job_on(struct workspace *ws, struct ctx *ctx, struct store *files, struct str dir, const char *at,
		struct sandbox_job *ret, struct err *err)
{
	int r = exec_job(ws, ctx, ret, err);

	if (r)
		return r;
	ret->env = NULL;
	ret->net = NULL;
	ret->keep = NULL;
	if (ret->tier == SANDBOX_LOCAL)
		ret->tier = SANDBOX_AUTO;
	ret->files = (struct sandbox_files){.store = files,
					    .at = at,
					    .dir = dir.len ? arena_cstr(ctx->arena, dir) : NULL,
					    .is_hidden = is_hidden,
					    .hidden_arg = files,
					    .hidden_key = store_guard_id(files),
					    .read_only = true};
	return 0;
}

int exec_reaches_out(struct workspace *ws, struct ctx *ctx, bool *ret, struct err *err)
{
	struct sandbox_job job;
	int r = exec_job(ws, ctx, &job, err);

	if (r == 0)
		*ret = job.tier == SANDBOX_LOCAL || (job.net && job.net->host_count > 0);
	return r;
}

#define SAVE_NS (30 * NS_PER_S)

/* A command that reaches the deadline of its call is killed, and there is time to keep what it printed and changed. */
static int end_in_time(struct ctx *ctx, struct sandbox_limits *limits, struct err *err)
{
	int64_t left_ms = (ctx->deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
	int r = ctx_check(ctx, err);

	if (r || !ctx->deadline_ns)
		return r;
	if (!limits->timeout_ms)
		limits->timeout_ms = SANDBOX_SECONDS_DEFAULT * INT64_C(1000);
	if (left_ms < limits->timeout_ms)
		limits->timeout_ms = left_ms > 1 ? left_ms : 1;
	ctx->deadline_ns += SAVE_NS;
	return 0;
}

int exec_run(struct workspace *ws, struct ctx *caller, const struct sandbox_job *job, struct sandbox_result *ret,
	     struct err *err)
{
	struct past_files *past = NULL;
	struct sandbox_job pinned = *job;
	struct ctx own = *caller, *ctx = &own;
	struct store *task = NULL;
	uint64_t noticed;
	int r = end_in_time(ctx, &pinned.limits, err);

	if (r == 0 && job->files.store == workspace_files(ws))
		r = family_files(ws, ctx, &task, err);
	if (task)
		pinned.files = (struct sandbox_files){.store = task,
						      .at = job->files.at,
						      .exclude = job->files.exclude,
						      .read_only = job->files.read_only,
						      .deletions_max = job->files.deletions_max};
	/* What is in no directory is shown at one revision, while others keep changing it. */
	if (r == 0 && !pinned.files.dir && pinned.files.revisions && pinned.files.store == workspace_files(ws)) {
		r = revisions_head(job->files.revisions, ctx, &pinned.files.head, err);
		if (r == 0)
			past = workspace_files_at(ws, pinned.files.head, &pinned.files.shown);
	}
	pinned.spare = r == 0 ? exec_spare_take(ws, ctx, job) : NULL;
	if (r == 0)
		r = sandbox_run(ctx, &pinned, ret, err);
	exec_spare_give(ws, ctx, job, pinned.spare);
	workspace_files_at_close(past);
	store_destroy(task);
	if (r == 0)
		exec_net_log(ws, ctx, job, ret);
	if (job->keep)
		workspace_snapshots_changed(ws);
	if (r == 0 && ret->tier == SANDBOX_LOCAL && pinned.files.dir)
		r = revisions_notice(workspace_revisions(ws), ctx, workspace_root(ws), &noticed, err);
	return r;
}

/* --- the result as a value --- */

static struct jv *change_value(struct arena *arena, const struct sandbox_change *c)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "path", c->path);
	jv_set_str(arena, v, "outcome", str_of(sandbox_outcome_name(c->outcome)));
	if (c->reason.len)
		jv_set_str(arena, v, "reason", c->reason);
	if (c->kept_as.len)
		jv_set_str(arena, v, "kept_as", c->kept_as);
	return v;
}

/* All of an output as an artifact: the answer has only its beginning and its end. */
static void park(struct workspace *ws, struct ctx *ctx, const struct sandbox_output *out, struct jv *value,
		 const char *key)
{
	struct parked parked;
	struct err err = {0};
	size_t size, done = 0;
	char *bytes;

	if (out->whole_fd < 0)
		return;
	size = out->bytes < SANDBOX_SPILL_MAX ? (size_t)out->bytes : SANDBOX_SPILL_MAX;
	bytes = arena_alloc_raw(ctx->arena, size + 1);
	while (done < size) {
		ssize_t n = pread(out->whole_fd, bytes + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (artifacts_park(workspace_artifacts(ws), ctx, str_of(key), NULL, str_n(bytes, done), &parked, &err) == 0)
		jv_set_str(ctx->arena, value, key, parked.id);
	else
		jv_set_str(ctx->arena, value, "problem", err_text(ctx->arena, &err));
}

static void set_changes(struct arena *arena, const struct sandbox_result *r, struct jv *v)
{
	struct jv *list = jv_array(arena);
	size_t shown = 0;

	for (size_t i = 0; i < r->change_count && shown < SANDBOX_CHANGES_TOLD; i++, shown++)
		jv_push(arena, list, change_value(arena, &r->changes[i]));
	jv_set(arena, v, "changes", list);
	jv_set_int(arena, v, "changed_files", (int64_t)r->change_count);
	if (r->excluded)
		jv_set_int(arena, v, "excluded", (int64_t)r->excluded);
	if (r->left_out.len)
		jv_set_str(arena, v, "left_out", r->left_out);
}

struct jv *exec_value(struct workspace *ws, struct ctx *ctx, struct sandbox_result *r)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	uint64_t head;
	struct err err;

	jv_set_int(arena, v, "exit_code", r->exit_code);
	jv_set_str(arena, v, "stdout", r->out.text);
	jv_set_str(arena, v, "stderr", r->said.text);
	jv_set_bool(arena, v, "truncated", r->out.is_cut || r->said.is_cut);
	if (r->signal)
		jv_set_int(arena, v, "signal", r->signal);
	jv_set_bool(arena, v, "timed_out", r->timed_out);
	if (r->out_of_memory)
		jv_set_bool(arena, v, "out_of_memory", true);
	if (r->out_of_disk)
		jv_set_bool(arena, v, "out_of_disk", true);
	jv_set_int(arena, v, "duration_ms", r->duration_ms);
	jv_set_int(arena, v, "cpu_ms", r->cpu_ms);
	if (r->memory_peak) /* of a command that was killed it is not known */
		jv_set_int(arena, v, "memory_peak", (int64_t)r->memory_peak);
	jv_set_str(arena, v, "tier", str_of(sandbox_tier_name(r->tier)));
	set_changes(arena, r, v);
	exec_net_value(arena, r, v);
	jv_set_bool(arena, v, "saved", r->is_saved);
	if (!r->is_saved)
		jv_set_str(arena, v, "problem", err_text(arena, &r->unsaved));
	park(ws, ctx, &r->out, v, "stdout_artifact");
	park(ws, ctx, &r->said, v, "stderr_artifact");
	if (revisions_head(workspace_revisions(ws), ctx, &head, &err) == 0)
		jv_set_int(arena, v, "revision", (int64_t)head);
	sandbox_result_release(r);
	return v;
}

/* --- a call of a tool --- */

int exec_command_check(struct str command, struct err *err)
{
	if (!str_trim(command).len)
		return err_set(err, ERR_INVALID, "there is no command to run");
	if (memchr(command.ptr, 0, command.len))
		return err_set(err, ERR_INVALID, "the command has a NUL character; write it as text for sh");
	return 0;
}

int exec_cwd(struct arena *arena, struct str text, const char *at, struct wpath *ret, struct err *err)
{
	struct str root = str_of(at ? at : SANDBOX_FILES_AT), rest = text;

	if (str_starts(text, root) && (text.len == root.len || text.ptr[root.len] == '/'))
		rest = str_from(text, root.len + (text.len > root.len));
	if (str_starts(rest, STR("/")) || str_starts(rest, STR("~")))
		return err_set(err, ERR_INVALID,
			       "the working directory \"%.*s\" is not among the files; give one such as \"src\" or "
			       "\"%.*s/src\"",
			       STR_ARG(utf8_first(text, 200)), STR_ARG(root));
	return rest.len ? wpath_parse_lenient(arena, rest, ret, err) : 0;
}

int exec_call(struct call *call, const struct exec_call *what, struct jv **ret, struct err *err)
{
	struct ctx *ctx = call->ctx;
	struct sandbox_job job;
	struct sandbox_result result;
	const char *argv[] = {what->shell, "-c", arena_cstr(ctx->arena, what->command), NULL};
	int r = exec_job(call->ws, ctx, &job, err);

	if (what->at)
		job.files.at = what->at;
	if (r == 0)
		r = exec_cwd(ctx->arena, what->cwd, job.files.at, &job.cwd, err);
	if (r == 0)
		r = exec_command_check(what->command, err);
	if (r)
		return r;
	if (what->timeout_s > what->timeout_max_s)
		return err_set(err, ERR_INVALID,
			       "the time limit is %lld seconds; at most %lld are allowed; run longer commands in parts",
			       (long long)what->timeout_s, (long long)what->timeout_max_s);
	job.argv = argv;
	job.input = what->input;
	job.limits.output = what->output;
	if (what->timeout_s > 0)
		job.limits.timeout_ms = what->timeout_s * 1000;
	r = exec_run(call->ws, ctx, &job, &result, err);
	if (r)
		return r;
	*ret = exec_value(call->ws, ctx, &result);
	return 0;
}

/* --- text --- */

void exec_output(const struct jv *value, struct buf *text)
{
	struct str out = jv_get_str(value, "stdout"), said = jv_get_str(value, "stderr");

	buf_add(text, out);
	if (out.len && out.ptr[out.len - 1] != '\n')
		buf_char(text, '\n');
	if (said.len)
		buf_printf(text, "[stderr]\n%.*s%s", STR_ARG(said), said.ptr[said.len - 1] == '\n' ? "" : "\n");
}

static void remark_changes(const struct jv *value, struct buf *text)
{
	int64_t counts[SANDBOX_OUTCOMES] = {0};
	bool any = false;

	for (const struct jv_member *m = jv_first(jv_get(value, "changes")); m; m = m->next) {
		struct str outcome = jv_get_str(m->value, "outcome");

		for (unsigned i = 0; i < SANDBOX_OUTCOMES; i++)
			counts[i] += str_is(outcome, sandbox_outcome_name((enum sandbox_outcome)i));
		if (jv_get_str(m->value, "reason").len) {
			buf_printf(text, "[%.*s %.*s: %.*s", STR_ARG(outcome), STR_ARG(jv_get_str(m->value, "path")),
				   STR_ARG(jv_get_str(m->value, "reason")));
			if (jv_get_str(m->value, "kept_as").len)
				buf_printf(text, "; the command's version is %.*s",
					   STR_ARG(jv_get_str(m->value, "kept_as")));
			buf_lit(text, "]\n");
		}
	}
	if (jv_get_str(value, "left_out").len)
		buf_printf(
			text,
			"[not kept %.*s: sandbox.exclude names it; --keep or sandbox.keep in agent.yaml keeps it for "
			"the next command]\n",
			STR_ARG(jv_get_str(value, "left_out")));
	for (unsigned i = 0; i <= SANDBOX_MERGED; i++)
		if (counts[i]) {
			buf_printf(text, "%s%lld file%s %s", any ? ", " : "[", (long long)counts[i],
				   plural((uint64_t)counts[i]), sandbox_outcome_name((enum sandbox_outcome)i));
			any = true;
		}
	if (any)
		buf_lit(text, "]\n");
}

/* Which limit ended it, and what raises that. */
static void remark_end(const struct jv *value, struct buf *text)
{
	int signal = (int)jv_get_int(value, "signal", 0);
	const char *name = sigabbrev_np(signal);

	if (jv_get_bool(value, "timed_out", false))
		buf_printf(text,
			   "[killed after %lld ms, with everything that it had started; a larger timeout gives it more "
			   "time]\n",
			   (long long)jv_get_int(value, "duration_ms", 0));
	else if (jv_get_bool(value, "out_of_memory", false))
		buf_lit(text, "[a process was killed because the command used too much memory; --memory or "
			      "sandbox.memory in agent.yaml allows more]\n");
	else if (jv_get_bool(value, "out_of_disk", false))
		buf_lit(text, "[killed because it wrote more than sandbox.disk in agent.yaml allows]\n");
	else if (signal == SIGXFSZ)
		buf_lit(text, "[killed because a file would be larger than sandbox.disk in agent.yaml allows]\n");
	else if (signal)
		buf_printf(text, "[killed by signal %d (SIG%s)]\n", signal, name ? name : "?");
}

bool exec_hit_limit(const struct jv *value)
{
	return jv_get_bool(value, "timed_out", false) || jv_get_bool(value, "out_of_memory", false) ||
	       jv_get_bool(value, "out_of_disk", false) || jv_get_int(value, "signal", 0) == SIGXFSZ;
}

void exec_remarks(const struct jv *value, struct buf *text)
{
	static const char *const outputs[][2] = {{"stdout_artifact", "output"}, {"stderr_artifact", "errors"}};

	for (size_t i = 0; i < COUNT(outputs); i++) {
		struct str id = jv_get_str(value, outputs[i][0]);

		if (id.len)
			buf_printf(text, "[the whole %s: read_artifact(artifact_id=\"%.*s\")]\n", outputs[i][1],
				   STR_ARG(id));
	}
	remark_end(value, text);
	exec_net_remarks(value, text);
	remark_changes(value, text);
	if (!jv_get_bool(value, "saved", true))
		buf_printf(text, "[no change was kept: %.*s]\n", STR_ARG(jv_get_str(value, "problem")));
}
