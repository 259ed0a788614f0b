/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tier "container": a container of Docker or Podman for each command, from an image of the user's choice. The
 * engine is asked for everything that its defaults leave out: no network, no capability, no new privileges, Stead's
 * filter of system calls, a root that cannot be written, limits of memory, processes and files, another user id. The
 * files are a copy on the host, bound in, because filling a container through its interface takes a millisecond per
 * file.
 *
 * Process 1 of the container is a shell that runs the command and ends with it, which ends all that is left; the
 * image's own entry point is not used. The command has ended when the engine closes its output. A container carries the
 * number of the process that made it, and what a killed Stead left is removed by the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "revisions/revisions.h"
#include "sandbox/engine.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/snapshot_internal.h"
#include "text/jv.h"

#define LABEL    "stead.process"
#define CALL_MS  60000
#define SLICE_MS 50
#define ID_MAX   80
#define SHELL    "\"$0\" \"$@\"; exit $?"
#define ANSWERS  "\"$0\" \"$@\" 3>/run/answer; exit $?"

struct container {
	struct ctx *ctx;
	const struct sandbox_job *job;
	struct sandbox_limits limits;
	struct engine engine;
	struct baseline base;
	const char *work, *at;
	bool becomes;
	uid_t uid;
	gid_t gid;
	char id[ID_MAX + 1];
	int stream, files, home;
	struct kept kept; /* what earlier commands left */
	struct engine_frames frames;
	struct capture captured[2];
	struct str input; /* what is left of it */
	char input_room[16 * 1024];
	uint64_t room;
	int64_t started_ns;
	bool timed_out, stopped, out_of_disk;
};

/* --- what is asked of the engine --- */

static struct jv *strings(struct arena *arena, const char *const *list)
{
	struct jv *array = jv_array(arena);

	for (size_t i = 0; list && list[i]; i++)
		jv_push(arena, array, jv_str(arena, str_of(list[i])));
	return array;
}

static void push_text(struct arena *arena, struct jv *array, struct str text)
{
	jv_push(arena, array, jv_str(arena, text));
}

static void add_ulimit(struct arena *arena, struct jv *array, const char *name, uint64_t value)
{
	struct jv *limit = jv_object(arena);

	jv_set_str(arena, limit, "Name", str_of(name));
	jv_set_int(arena, limit, "Soft", (int64_t)value);
	jv_set_int(arena, limit, "Hard", (int64_t)value);
	jv_push(arena, array, limit);
}

static void add_limits(struct container *c, struct jv *host)
{
	struct arena *arena = c->ctx->arena;
	const struct sandbox_limits *l = &c->limits;
	struct jv *limits = jv_array(arena), *temporary = jv_object(arena);
	struct str options = arena_printf(arena, "rw,nosuid,nodev,mode=1777,size=%llu", (unsigned long long)l->disk);

	add_ulimit(arena, limits, "core", 0);
	add_ulimit(arena, limits, "nofile", 1024);
	/* counted for the user of the host: root gives each owner one */
	add_ulimit(arena, limits, "nproc", l->processes + (c->becomes ? 2 : 4096));
	add_ulimit(arena, limits, "fsize", l->disk);
	add_ulimit(arena, limits, "cpu", (uint64_t)l->timeout_ms / 1000 + 2);
	jv_set(arena, host, "Ulimits", limits);
	jv_set_int(arena, host, "Memory", (int64_t)l->memory);
	jv_set_int(arena, host, "MemorySwap", (int64_t)l->memory);
	jv_set_int(arena, host, "PidsLimit", (int64_t)l->processes + 2);
	jv_set_int(arena, host, "ShmSize", (int64_t)l->disk);
	jv_set_str(arena, temporary, "/tmp", options);
	if (!c->job->keep)
		jv_set_str(arena, temporary, "/home", options);
	jv_set(arena, host, "Tmpfs", temporary);
}

static struct jv *binds(struct container *c)
{
	struct arena *arena = c->ctx->arena;
	struct jv *list = jv_array(arena);

	push_text(arena, list, arena_printf(arena, "%s/files:%s:rw", c->work, c->at));
	if (c->job->keep)
		push_text(arena, list, arena_printf(arena, "%s/home:/home:rw", c->work));
	if (c->job->answer_max)
		push_text(arena, list, arena_printf(arena, "%s/answer:/run/answer:rw", c->work));
	for (size_t i = 0; c->job->paths && c->job->paths[i]; i++)
		push_text(arena, list, arena_printf(arena, "%s:%s:ro", c->job->paths[i], c->job->paths[i]));
	return list;
}

/* Docker takes the filter itself, Podman a file with it. */
static int add_security(struct container *c, struct jv *host, struct err *err)
{
	static const char *const masked[] = {"/sys",
					     "/proc/acpi",
					     "/proc/asound",
					     "/proc/kcore",
					     "/proc/keys",
					     "/proc/key-users",
					     "/proc/latency_stats",
					     "/proc/timer_list",
					     "/proc/timer_stats",
					     "/proc/sched_debug",
					     "/proc/scsi",
					     NULL};
	static const char *const read_only[] = {"/proc/bus",           "/proc/fs", "/proc/irq", "/proc/sys",
						"/proc/sysrq-trigger", NULL};
	struct arena *arena = c->ctx->arena;
	struct str filter = engine_filter(arena);
	struct jv *options = jv_array(arena), *drop = jv_array(arena);

	if (c->engine.is_podman) {
		const char *path = arena_printf(arena, "%s/filter.json", c->work).ptr;
		FD_SCOPE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		if (fd < 0 || write(fd, filter.ptr, filter.len) != (ssize_t)filter.len)
			return err_sys(err, errno, "cannot write the filter for the container engine");
		filter = str_of(path);
	}
	push_text(arena, options, STR("no-new-privileges"));
	push_text(arena, options, arena_printf(arena, "seccomp=%.*s", STR_ARG(filter)));
	for (size_t i = 0; c->engine.is_podman && masked[i]; i++) /* it does not take MaskedPaths */
		push_text(arena, options, arena_printf(arena, "mask=%s", masked[i]));
	push_text(arena, drop, STR("ALL"));
	jv_set(arena, host, "SecurityOpt", options);
	jv_set(arena, host, "CapDrop", drop);
	jv_set_str(arena, host, "NetworkMode", STR("none"));
	jv_set_str(arena, host, "IpcMode", STR("private"));
	jv_set_bool(arena, host, "ReadonlyRootfs", true);
	jv_set(arena, host, "MaskedPaths", strings(arena, masked));
	jv_set(arena, host, "ReadonlyPaths", strings(arena, read_only));
	return 0;
}

static struct jv *environment(struct container *c)
{
	static const char *const usual[] = {"HOME=/home",  "USER=agent", "LANG=C.UTF-8",
					    "TMPDIR=/tmp", "TERM=dumb",  NULL};
	struct jv *list = strings(c->ctx->arena, usual);

	for (size_t i = 0; c->job->env && c->job->env[i]; i++)
		push_text(c->ctx->arena, list, str_of(c->job->env[i]));
	return list;
}

static int describe_container(struct container *c, struct str *ret, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	const char *const shell[] = {"/bin/sh", "-c", c->job->answer_max ? ANSWERS : SHELL, NULL};
	struct jv *v = jv_object(arena), *host = jv_object(arena), *labels = jv_object(arena);
	struct jv *log = jv_object(arena);
	struct buf text;
	int r = add_security(c, host, err);

	add_limits(c, host);
	jv_set(arena, host, "Binds", binds(c));
	jv_set_str(arena, log, "Type", STR("none"));
	jv_set(arena, host, "LogConfig", log);
	jv_set_str(arena, labels, LABEL, arena_printf(arena, "%d", (int)getpid()));
	jv_set_str(arena, v, "Image", str_of(c->job->image ? c->job->image : SANDBOX_IMAGE_DEFAULT));
	jv_set(arena, v, "Entrypoint", strings(arena, shell));
	jv_set(arena, v, "Cmd", strings(arena, c->job->argv));
	jv_set(arena, v, "Env", environment(c));
	jv_set(arena, v, "Labels", labels);
	jv_set(arena, v, "HostConfig", host);
	jv_set_str(arena, v, "Hostname", STR("sandbox"));
	jv_set_str(arena, v, "WorkingDir", arena_printf(arena, "%s/%.*s", c->at, STR_ARG(c->job->cwd.s)));
	jv_set_str(arena, v, "User",
		   c->engine.is_rootless ? STR("0:0")
					 : arena_printf(arena, "%u:%u", (unsigned)c->uid, (unsigned)c->gid));
	jv_set_bool(arena, v, "NetworkDisabled", true);
	jv_set_bool(arena, v, "Tty", c->job->tty);
	for (size_t i = 0; i < 5; i++)
		jv_set_bool(arena, v,
			    (const char *const[]){"OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout",
						  "AttachStderr"}[i],
			    true);
	buf_init(&text, arena, 2 * MIB);
	jv_write(&text, v);
	if (r == 0 && text.overflow)
		r = err_set(err, ERR_TOO_LARGE, "the command and its environment are too long for a container");
	*ret = buf_str(&text);
	return r;
}

/* --- its life --- */

static int ask(struct container *c, const char *method, const char *rest, struct str body, struct str *ret_body,
	       int *ret_status, struct err *err)
{
	const char *target = arena_printf(c->ctx->arena, "/containers/%s%s", c->id, rest).ptr;

	return engine_call(&c->engine, c->ctx->arena, method, target, body, CALL_MS, ret_status, ret_body, err);
}

/* Containers of processes that are gone. */
static void sweep(struct container *c)
{
	struct err ignored;
	struct str body;
	struct jv *list;
	int status;

	if (engine_call(&c->engine, c->ctx->arena, "GET",
			"/containers/json?all=1&filters=%7B%22label%22%3A%5B%22" LABEL "%22%5D%7D", STR_NONE, CALL_MS,
			&status, &body, &ignored) != 0 ||
	    status != 200 || jv_parse(c->ctx->arena, body, &list, &ignored) != 0)
		return;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str owner = jv_get_str(jv_get(m->value, "Labels"), LABEL), id = jv_get_str(m->value, "Id");
		long pid = owner.len ? strtol(arena_cstr(c->ctx->arena, owner), NULL, 10) : 0;

		if (pid > 1 && id.len && id.len <= ID_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
			memcpy(c->id, id.ptr, id.len);
			c->id[id.len] = 0;
			(void)ask(c, "DELETE", "?force=1&v=1", STR_NONE, &body, &status, &ignored);
			c->id[0] = 0;
		}
	}
}

static int create(struct container *c, struct err *err)
{
	struct str body, answer, id;
	struct jv *v;
	int status, r = describe_container(c, &body, err);

	if (r == 0)
		r = engine_call(&c->engine, c->ctx->arena, "POST", "/containers/create", body, CALL_MS, &status,
				&answer, err);
	if (r)
		return r;
	if (status == 404)
		return err_set(err, ERR_NOT_FOUND,
			       "the container engine has no image \"%.100s\"; pull it, or name another one in "
			       "sandbox.image",
			       c->job->image ? c->job->image : SANDBOX_IMAGE_DEFAULT);
	if (status != 201 || jv_parse(c->ctx->arena, answer, &v, err) != 0)
		return err_set(err, ERR_UNAVAILABLE, "the container engine cannot make a container: %.*s",
			       STR_ARG(engine_message(c->ctx->arena, answer)));
	id = jv_get_str(v, "Id");
	for (size_t i = 0; i < id.len; i++)
		if (!((id.ptr[i] >= '0' && id.ptr[i] <= '9') || (id.ptr[i] >= 'a' && id.ptr[i] <= 'f')))
			id.len = 0;
	if (!id.len || id.len > ID_MAX)
		return err_set(err, ERR_UNAVAILABLE, "the container engine gave a container without a name");
	memcpy(c->id, id.ptr, id.len);
	c->id[id.len] = 0;
	return 0;
}

static int begin(struct container *c, struct err *err)
{
	struct str answer;
	int status, r;

	r = engine_stream(
		&c->engine,
		arena_printf(c->ctx->arena, "/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", c->id).ptr,
		&c->stream, err);
	if (r == 0)
		r = ask(c, "POST", "/start", STR_NONE, &answer, &status, err);
	if (r == 0 && status != 204 && status != 200)
		r = err_set(err, ERR_UNAVAILABLE, "the container engine cannot start the container: %.*s",
			    STR_ARG(engine_message(c->ctx->arena, answer)));
	c->started_ns = clock_monotonic_ns();
	c->room = work_room(c->work);
	return r;
}

/* --- while it runs --- */

static void on_output(void *arg, bool is_stderr, struct str bytes)
{
	struct container *c = arg;

	if (!c->job->output)
		capture_add(&c->captured[is_stderr], bytes);
	else if (!c->job->output(c->job->output_arg, is_stderr, bytes))
		c->stopped = true;
}

static bool is_over(struct container *c)
{
	uint64_t room = work_room(c->work);

	if (clock_monotonic_ns() - c->started_ns >= c->limits.timeout_ms * NS_PER_MS)
		c->timed_out = true;
	if (c->job->stop && atomic_load(&c->job->stop->requested))
		c->stopped = true;
	if (room < c->room && c->room - room > c->limits.disk) {
		c->room = room;
		c->out_of_disk = work_used(c->work) > c->limits.disk;
	}
	return c->timed_out || c->stopped || c->out_of_disk;
}

/* Input that the caller gives, or none; then the container's is closed. */
static void give_input(struct container *c, bool *is_open)
{
	ssize_t n;

	if (!c->input.len && c->job->input_fd) {
		n = read(*c->job->input_fd, c->input_room, sizeof c->input_room);
		c->input = n > 0 ? str_n(c->input_room, (size_t)n) : STR_NONE;
	}
	n = c->input.len ? send(c->stream, c->input.ptr, c->input.len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	if (n > 0)
		c->input = str_from(c->input, (size_t)n);
	if ((!c->input.len && (!c->job->input_fd || n == 0)) || (n < 0 && errno != EAGAIN)) {
		shutdown(c->stream, SHUT_WR);
		*is_open = false;
	}
}

static int pump(struct container *c, struct err *err)
{
	bool open = true;
	char bytes[64 * 1024];
	int r = 0;

	c->input = c->job->input;
	while (r == 0 && !is_over(c)) {
		bool asks = open && !c->input.len && c->job->input_fd;
		struct pollfd fds[2] = {{.fd = c->stream, .events = (short)(POLLIN | (open && !asks ? POLLOUT : 0))},
					{.fd = asks ? *c->job->input_fd : -1, .events = POLLIN}};
		ssize_t n;

		if (poll(fds, 2, SLICE_MS) < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot wait for the container");
		if (open && ((fds[0].revents & POLLOUT) || fds[1].revents))
			give_input(c, &open);
		r = ctx_check(c->ctx, err);
		if (r || !(fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = recv(c->stream, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		if (n > 0 && c->job->tty)
			on_output(c, false, str_n(bytes, (size_t)n));
		else if (n > 0 && !engine_frames_take(&c->frames, str_n(bytes, (size_t)n), on_output, c))
			return err_set(err, ERR_UNAVAILABLE, "the container engine gave output that cannot be read");
	}
	return r;
}

/* --- the result --- */

static void read_answer(struct container *c, struct sandbox_result *ret)
{
	char *bytes = arena_alloc_raw(c->ctx->arena, c->job->answer_max + 1);
	FD_SCOPE int fd = open(arena_printf(c->ctx->arena, "%s/answer", c->work).ptr,
			       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 || !c->job->answer_max ? 0 : read(fd, bytes, c->job->answer_max + 1);

	ret->answer = str_n(bytes, n > 0 ? (size_t)n : 0);
	ret->answer_is_cut = ret->answer.len > c->job->answer_max;
	ret->answer = str_first(ret->answer, c->job->answer_max);
}

/* Ends what is left of it, and asks how it ended. */
static int finish(struct container *c, struct sandbox_result *ret, struct err *err)
{
	struct str body;
	struct jv *v;
	const struct jv *state;
	int status, r;

	if (c->timed_out || c->stopped || c->out_of_disk)
		(void)ask(c, "POST", "/kill?signal=KILL", STR_NONE, &body, &status, err);
	r = ask(c, "POST", "/wait", STR_NONE, &body, &status, err);
	if (r == 0)
		r = ask(c, "GET", "/json", STR_NONE, &body, &status, err);
	if (r == 0)
		r = status == 200 ? jv_parse(c->ctx->arena, body, &v, err)
				  : err_set(err, ERR_UNAVAILABLE, "the container engine has lost the container");
	if (r)
		return r;
	state = jv_get(v, "State");
	*ret = (struct sandbox_result){.tier = SANDBOX_CONTAINER,
				       .exit_code = (int)jv_get_int(state, "ExitCode", 1),
				       .timed_out = c->timed_out,
				       .stopped = c->stopped,
				       .out_of_disk = c->out_of_disk,
				       .out_of_memory = jv_get_bool(state, "OOMKilled", false),
				       .memory_is_shared = true,
				       .duration_ms = (clock_monotonic_ns() - c->started_ns) / NS_PER_MS};
	if (c->timed_out || c->stopped || c->out_of_disk) {
		ret->signal = SIGKILL;
		ret->exit_code = c->timed_out ? 124 : 128 + SIGKILL;
	}
	read_answer(c, ret);
	return 0;
}

static int bring_back(struct container *c, struct sandbox_result *ret, struct err *err)
{
	const struct sandbox_files *files = &c->job->files;
	struct changes changes = {.arena = c->ctx->arena};
	int r;

	ret->is_saved = true;
	if (!files->store || (files->read_only && !files->tells_dropped))
		return 0;
	r = changes_of_copy(c->ctx, files, c->files, &c->base, &changes, err);
	if (files->read_only) {
		changes_count_dropped(c->ctx, files, &changes, ret);
		return r == -ERR_CANCELLED ? r : 0;
	}
	if (r == 0)
		r = changes_commit(c->ctx, files, &c->base, &changes, ret, err);
	if (r == -ERR_CANCELLED || r == 0)
		return r;
	ret->is_saved = false;
	ret->unsaved = *err;
	return 0;
}

static int fill_kept(struct container *c, struct err *err)
{
	int r = kept_restore(c->ctx, c->job->keep, c->uid, c->gid, &c->kept, err);

	c->kept.base = &c->base;
	c->home = open(arena_printf(c->ctx->arena, "%s/home", c->work).ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r ? r : kept_copy(c->ctx, &c->kept, c->work, c->uid, c->gid, err);
}

static int fill(struct container *c, struct err *err)
{
	const struct sandbox_files *files = &c->job->files;
	const char *answer, *cwd;
	struct stat st = {0};
	int r = work_make(c->ctx->arena, c->becomes, c->uid, c->gid, &c->work, err);

	if (r)
		return r;
	answer = arena_printf(c->ctx->arena, "%s/answer", c->work).ptr;
	cwd = arena_printf(c->ctx->arena, "%s/files/%.*s", c->work, STR_ARG(c->job->cwd.s)).ptr;
	c->files = open(arena_printf(c->ctx->arena, "%s/files", c->work).ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	{
		FD_SCOPE int fd = open(answer, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (c->files < 0 || fd < 0 || (c->becomes && fchown(fd, c->uid, c->gid) != 0))
			return err_sys(err, errno, "cannot make a directory for the container");
	}
	c->base = (struct baseline){.lower = -1, .time_ns = clock_real_ns()};
	if (files->revisions)
		r = revisions_head(files->revisions, c->ctx, &c->base.head, err);
	if (r == 0 && files->store)
		r = baseline_copy(c->ctx, files, c->files, c->uid, c->gid, &c->base, err);
	if (r == 0 && c->job->keep)
		r = fill_kept(c, err);
	if (r == 0 && stat(cwd, &st) == 0 && !S_ISDIR(st.st_mode))
		r = err_set(err, ERR_INVALID, "the working directory \"%.*s\" is a file, not a directory",
			    STR_ARG(c->job->cwd.s));
	else if (r == 0 && !S_ISDIR(st.st_mode))
		r = err_set(err, ERR_NOT_FOUND, "the working directory \"%.*s\" does not exist",
			    STR_ARG(c->job->cwd.s));
	return r;
}

int container_run(struct ctx *ctx, const struct sandbox_job *job, const struct sandbox_limits *limits, uid_t uid,
		  struct sandbox_result *ret, struct err *err)
{
	struct container c = {.ctx = ctx,
			      .job = job,
			      .limits = *limits,
			      .at = job->files.at ? job->files.at : SANDBOX_FILES_AT,
			      .becomes = user_is_root(),
			      .uid = uid,
			      .gid = user_is_root() ? (gid_t)uid : getegid(),
			      .stream = -1,
			      .files = -1,
			      .home = -1,
			      .kept = {.lock = -1}};
	struct err ignored;
	struct str body;
	int status, r;

	capture_init(&c.captured[0], ctx->arena, limits->output);
	capture_init(&c.captured[1], ctx->arena, limits->output);
	r = engine_open(&c.engine, err);
	if (r == 0) {
		sweep(&c);
		r = fill(&c, err);
	}
	if (r == 0)
		r = create(&c, err);
	if (r == 0)
		r = begin(&c, err);
	if (r == 0)
		r = pump(&c, err);
	if (r == 0)
		r = finish(&c, ret, err);
	if (c.id[0]) /* before the files are read: nothing can write to them then */
		(void)ask(&c, "DELETE", "?force=1&v=1", STR_NONE, &body, &status, &ignored);
	if (r == 0) {
		capture_end(&c.captured[0], ctx->arena, &ret->out);
		capture_end(&c.captured[1], ctx->arena, &ret->said);
		r = bring_back(&c, ret, err);
		if (r == 0 && kept_finish(ctx, job, &c.kept, c.home, c.files, ret) != 0)
			r = ctx_check(ctx, err);
	} else {
		for (int i = 0; i < 2; i++)
			if (c.captured[i].spill >= 0)
				close(c.captured[i].spill);
	}
	if (c.stream >= 0)
		close(c.stream);
	if (c.files >= 0)
		close(c.files);
	if (c.home >= 0)
		close(c.home);
	kept_release(&c.kept);
	if (c.work)
		work_remove(AT_FDCWD, c.work);
	return r;
}
