/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in the background. A job is a thread that runs a command as a call would; what it prints is kept in memory
 * up to a limit and read by offset, so that nothing is given twice. wait_job returns when the job ends, not before, so
 * that nobody has to ask again and again. Jobs belong to an open workspace: they are killed when it is closed, and
 * another user's handle does not have them.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "home/exec/exec_internal.h"
#include "tool/family.h"

enum job_status { JOB_RUNNING, JOB_ENDED, JOB_FAILED };

struct job {
	uint64_t number; /* 0: a free place */
	struct jobs *jobs;
	struct workspace *ws;
	struct arena *arena; /* of all that follows */
	struct ctx ctx;
	struct sandbox_job what;
	struct str command;
	struct cancel stop;
	pthread_t thread;
	/* under the lock */
	enum job_status status;
	struct buf output;
	uint64_t printed;
	struct jv *value; /* JOB_ENDED: as of execute */
	struct str problem;
};

struct jobs {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t last;
	struct job places[SANDBOX_JOBS_MAX];
};

static bool keep_output(void *arg, bool is_stderr, struct str bytes)
{
	struct job *job = arg;

	(void)is_stderr;
	pthread_mutex_lock(&job->jobs->lock);
	buf_add(&job->output, str_first(bytes, job->output.max - job->output.len));
	job->printed += bytes.len;
	pthread_mutex_unlock(&job->jobs->lock);
	return true;
}

static void *run_job(void *arg)
{
	struct job *job = arg;
	struct sandbox_result result;
	struct err err = {0};
	int r = exec_run(job->ws, &job->ctx, &job->what, &result, &err);
	struct jv *value = r ? NULL : exec_value(job->ws, &job->ctx, &result);

	pthread_mutex_lock(&job->jobs->lock);
	job->status = r ? JOB_FAILED : JOB_ENDED;
	job->value = value;
	if (r)
		job->problem = err_text(job->arena, &err);
	pthread_cond_broadcast(&job->jobs->changed);
	pthread_mutex_unlock(&job->jobs->lock);
	return NULL;
}

/* Waits for its thread, and frees its place. */
static void job_end(struct job *job)
{
	if (!job->number)
		return;
	atomic_store(&job->stop.requested, true);
	pthread_join(job->thread, NULL);
	buf_release(&job->output);
	arena_destroy(job->arena);
	*job = (struct job){0};
}

void *jobs_open(struct workspace *ws)
{
	struct jobs *jobs = xcalloc(1, sizeof *jobs);

	(void)ws;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->changed, NULL);
	return jobs;
}

void jobs_close(void *state)
{
	struct jobs *jobs = state;

	for (size_t i = 0; i < SANDBOX_JOBS_MAX; i++)
		job_end(&jobs->places[i]);
	pthread_cond_destroy(&jobs->changed);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
}

static struct jobs *jobs_of(struct call *call)
{
	return family_state(&exec_family, call->ws);
}

/* A free place, or that of the job that ended first. Called with the lock held; NULL: all run. */
static struct job *find_place(struct jobs *jobs)
{
	struct job *best = NULL;

	for (size_t i = 0; i < SANDBOX_JOBS_MAX; i++) {
		struct job *job = &jobs->places[i];

		if (!job->number)
			return job;
		if (job->status != JOB_RUNNING && (!best || job->number < best->number))
			best = job;
	}
	if (best)
		job_end(best); /* its thread has done its last step */
	return best;
}

static int prepare(struct call *call, const struct jv *args, struct job *job, struct err *err)
{
	int64_t seconds = jv_get_int(args, "timeout", SANDBOX_SECONDS_MAX);
	const char **argv;
	int r;

	job->arena = arena_new();
	job->ctx = (struct ctx){.arena = job->arena, .actor = call->ctx->actor};
	job->ctx.actor.call_id = call_id_new(job->arena);
	job->ctx.actor.session = arena_str(job->arena, call->ctx->actor.session);
	job->ctx.actor.agent = arena_str(job->arena, call->ctx->actor.agent);
	job->ctx.actor.user = arena_str(job->arena, call->ctx->actor.user);
	job->ctx.actor.workspace = arena_str(job->arena, call->ctx->actor.workspace);
	job->command = arena_str(job->arena, jv_get_str(args, "command"));
	r = exec_command_check(job->command, err);
	if (r == 0)
		r = exec_job(call->ws, &job->ctx, &job->what, err);
	if (r == 0)
		r = exec_cwd(job->arena, jv_get_str(args, "working_directory"), job->what.files.at, &job->what.cwd,
			     err);
	argv = ARENA_ARRAY(job->arena, const char *, 4);
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = job->command.ptr;
	job->what.argv = argv;
	job->what.limits.timeout_ms = seconds * 1000;
	job->what.stop = &job->stop;
	job->what.output = keep_output;
	job->what.output_arg = job;
	return r;
}

int tool_start_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jobs *jobs = jobs_of(call);
	enum sandbox_tier tier;
	struct job *job;
	int r = 0;

	pthread_mutex_lock(&jobs->lock);
	job = find_place(jobs);
	if (!job)
		r = err_set(err, ERR_UNAVAILABLE,
			    "%d jobs are running; wait for one with wait_job, or end it with kill_job",
			    SANDBOX_JOBS_MAX);
	if (r == 0) {
		*job = (struct job){.jobs = jobs, .ws = call->ws};
		buf_init(&job->output, NULL, SANDBOX_JOB_OUTPUT_MAX);
		r = prepare(call, args, job, err);
		if (r == 0)
			r = sandbox_tier_choose(job->what.tier, &tier, err);
		if (r == 0 && pthread_create(&job->thread, NULL, run_job, job) != 0)
			r = err_set(err, ERR_UNAVAILABLE, "a thread for the job cannot be started");
		if (r == 0)
			job->number = ++jobs->last;
		else
			arena_destroy(job->arena);
	}
	if (r == 0) {
		ret->value = jv_object(call->ctx->arena);
		jv_set_int(call->ctx->arena, ret->value, "job", (int64_t)job->number);
	}
	pthread_mutex_unlock(&jobs->lock);
	return r;
}

static struct job *find_job(struct jobs *jobs, const struct jv *args, struct err *err)
{
	uint64_t number = (uint64_t)jv_get_int(args, "job", 0);

	for (size_t i = 0; number && i < SANDBOX_JOBS_MAX; i++)
		if (jobs->places[i].number == number)
			return &jobs->places[i];
	err_set(err, ERR_NOT_FOUND, "there is no job %llu; list_jobs shows the existing jobs",
		(unsigned long long)number);
	return NULL;
}

static void set_status(struct arena *arena, const struct job *job, struct jv *v)
{
	static const char *const names[] = {"running", "ended", "failed"};
	static const char *const copied[] = {"exit_code", "changes",       "saved",       "problem",  "signal",
					     "timed_out", "out_of_memory", "out_of_disk", "left_out", "duration_ms"};

	jv_set_int(arena, v, "job", (int64_t)job->number);
	jv_set_str(arena, v, "status", str_of(names[job->status]));
	for (size_t i = 0; i < COUNT(copied) && job->value; i++)
		if (jv_get(job->value, copied[i]))
			jv_set_key(arena, v, str_of(copied[i]), jv_copy(arena, jv_get(job->value, copied[i])));
	if (job->problem.len)
		jv_set_str(arena, v, "problem", arena_str(arena, job->problem));
}

/* What was printed from `offset` on, as far as one answer goes. */
static void set_output(struct arena *arena, const struct job *job, uint64_t offset, struct jv *v)
{
	struct str all = buf_str(&job->output), part;

	offset = offset < all.len ? offset : all.len;
	part = utf8_first(str_from(all, (size_t)offset), SANDBOX_OUTPUT_DEFAULT);
	jv_set_str(arena, v, "output", sandbox_clean(arena, part));
	jv_set_int(arena, v, "next_offset", (int64_t)(offset + part.len));
	jv_set_int(arena, v, "printed", (int64_t)job->printed);
}

int tool_wait_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	int64_t until = clock_monotonic_ns() + jv_get_int(args, "timeout", 60) * NS_PER_S;
	uint64_t offset = (uint64_t)jv_get_int(args, "offset", 0);
	struct arena *arena = call->ctx->arena;
	struct jobs *jobs = jobs_of(call);
	struct job *job;
	int r = 0;

	pthread_mutex_lock(&jobs->lock);
	job = find_job(jobs, args, err);
	while (job && job->status == JOB_RUNNING && r == 0 && clock_monotonic_ns() < until) {
		struct timespec slice = clock_timespec(clock_real_ns() + 50 * NS_PER_MS);

		pthread_cond_timedwait(&jobs->changed, &jobs->lock, &slice);
		r = ctx_check(call->ctx, err);
		job = r ? job : find_job(jobs, args, err);
	}
	if (job && r == 0) {
		ret->value = jv_object(arena);
		set_status(arena, job, ret->value);
		set_output(arena, job, offset, ret->value);
	}
	pthread_mutex_unlock(&jobs->lock);
	if (!job)
		return -(int)err->kind;
	return r;
}

int tool_kill_job(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct jobs *jobs = jobs_of(call);
	struct jv *wait = jv_copy(call->ctx->arena, args);
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	job = find_job(jobs, args, err);
	if (job)
		atomic_store(&job->stop.requested, true);
	pthread_mutex_unlock(&jobs->lock);
	if (!job)
		return -err->kind;
	jv_set_int(call->ctx->arena, wait, "timeout", 30);
	return tool_wait_job(call, wait, ret, err);
}

/* The one with the next higher number. */
static const struct job *next_job(const struct jobs *jobs, uint64_t after)
{
	const struct job *next = NULL;

	for (size_t i = 0; i < SANDBOX_JOBS_MAX; i++)
		if (jobs->places[i].number > after && (!next || jobs->places[i].number < next->number))
			next = &jobs->places[i];
	return next;
}

int tool_list_jobs(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jobs *jobs = jobs_of(call);
	struct jv *list = jv_array(arena);

	(void)args, (void)err;
	pthread_mutex_lock(&jobs->lock);
	for (const struct job *job = next_job(jobs, 0); job; job = next_job(jobs, job->number)) {
		struct jv *v;

		v = jv_object(arena);
		set_status(arena, job, v);
		jv_remove(v, "changes");
		jv_set_str(arena, v, "command", arena_str(arena, job->command));
		jv_push(arena, list, v);
	}
	pthread_mutex_unlock(&jobs->lock);
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "jobs", list);
	return 0;
}
