/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that is made before there is a command for it. Half of the time of a short command goes into namespaces,
 * mounts and groups, which do not depend on the command: a guardian makes them and waits. When a job comes that fits,
 * it gets the rest (program, variables, limits, streams, files) and continues as any other guardian does. So the
 * command has what every command has, a sandbox that nobody used before it.
 *
 * The guardian is a clone of the program and cannot be given memory later. So what a job brings is put into memory that
 * both share since before the clone, at the same address, with its pointers.
 *
 * What a spare is made of is compared with what the job needs, field by field: when in doubt, the job makes its own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/run_internal.h"

#define READY_MS  10000
#define CALL_SIZE (4 * SANDBOX_COMMAND_MAX) /* for the command and its variables; a job with more makes its own */

struct sandbox_spare {
	struct spawned child;
	struct cgroup group;
	struct arena *arena;
	struct plan plan; /* what it was made of; strings in the arena */
	struct sandbox_limits limits;
	struct spare_call *call;
};

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- making one --- */

static int check(const struct sandbox_job *job, struct err *err)
{
	enum sandbox_tier tier;
	int code = sandbox_tier_choose(job->tier, &tier, err);

	if (code == 0 && (tier != SANDBOX_NAMESPACES ||
			  (job->net && (job->net->host_count || job->net->secret_count)) || job->keep || job->tty))
		code = err_set(err, ERR_UNSUPPORTED,
			       "only the sandbox of a command in the tier namespaces, without a network, a terminal or "
			       "a kept home, can be made in advance");
	return code;
}

static const char *const *copy_list(struct arena *arena, const char *const *list)
{
	const char **copy;
	size_t n = 0;

	while (list && list[n])
		n++;
	copy = ARENA_ARRAY(arena, const char *, n + 1);
	for (size_t i = 0; i < n; i++)
		copy[i] = arena_cstr(arena, str_of(list[i]));
	return copy;
}

static int wait_ready(const struct sandbox_spare *s, struct err *err)
{
	struct pollfd fd = {.fd = s->child.control, .events = POLLIN};
	struct note note = {0};
	int fds[3];

	if (poll(&fd, 1, READY_MS) != 1 || run_receive(s->child.control, &note, fds) != (ssize_t)sizeof note)
		return err_set(err, ERR_UNAVAILABLE, "a sandbox that was made in advance ended unexpectedly");
	if (note.kind == NOTE_FAILED)
		return err_sys(err, note.sys, "a sandbox could not be made in advance: it could not %s",
			       step_name((enum step)note.value));
	return cgroup_add(&s->group, s->child.pid)
		       ? 0
		       : err_set(err, ERR_UNAVAILABLE, "a sandbox that was made in advance cannot be put under limits");
}

static int make(struct run *r, struct sandbox_spare *s, struct err *err)
{
	struct plan *p = &r->plan;
	void *memory = mmap(NULL, CALL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int code;

	if (memory == MAP_FAILED)
		return err_sys(err, errno, "cannot share memory with a sandbox");
	p->call = s->call = memory;
	s->plan = *p;
	s->plan.at = arena_cstr(s->arena, str_of(p->at));
	s->plan.dir = p->dir ? arena_cstr(s->arena, str_of(p->dir)) : NULL;
	s->plan.paths = copy_list(s->arena, p->paths);
	s->limits = r->limits;
	cgroup_make(&s->group, r->limits.memory, 0);
	code = cgroup_open(&s->group, p->groups)
		       ? plan_spawn(p, &s->child, err)
		       : err_sys(err, errno, "the processes of a sandbox cannot be put under their limits");
	drop(&p->groups[0]);
	drop(&p->groups[1]);
	return code ? code : wait_ready(s, err);
}

int sandbox_spare_open(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_spare **ret, struct err *err)
{
	static const char *const nothing[] = {"true", NULL};
	struct sandbox_job like = *job;
	struct run r = RUN_NEW(ctx, &like);
	struct sandbox_spare *s;
	int code = check(job, err);

	if (code)
		return code;
	like.argv = nothing;
	like.net = NULL;
	like.worker = NULL;
	r.is_spare = true;
	s = xcalloc(1, sizeof *s);
	*s = (struct sandbox_spare){.child = {-1, -1}, .arena = arena_new()};
	code = run_prepare(&r, SANDBOX_NAMESPACES, err);
	if (code == 0)
		code = make(&r, s, err);
	run_release(&r);
	if (code)
		sandbox_spare_close(s);
	else
		*ret = s;
	return code;
}

bool sandbox_spare_is_used(const struct sandbox_spare *s)
{
	return s->child.pid < 0;
}

void sandbox_spare_close(struct sandbox_spare *s)
{
	if (!s)
		return;
	drop(&s->child.control);
	if (s->child.pid > 0) {
		kill(s->child.pid, SIGKILL);
		while (waitpid(s->child.pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	cgroup_remove(&s->group);
	if (s->call)
		munmap(s->call, CALL_SIZE);
	arena_destroy(s->arena);
	free(s);
}

/* --- giving it a job --- */

static bool is_same_list(const char *const *a, const char *const *b)
{
	size_t i = 0;

	for (; a && a[i]; i++)
		if (!b || !b[i] || strcmp(a[i], b[i]) != 0)
			return false;
	return !b || !b[i];
}

/* The directory of the machine that is shown as it is, if there is one, is bound already. */
static bool is_same_source(const struct plan *made, const struct plan *p)
{
	bool binds = p->dir && p->tree < 0 && !p->fill;

	return binds ? made->dir && made->dev == p->dev && made->ino == p->ino : !made->dir;
}

static bool fits(const struct sandbox_spare *s, const struct run *r)
{
	const struct plan *made = &s->plan, *p = &r->plan;

	return s->child.pid > 0 && p->tier == SANDBOX_NAMESPACES && !r->worker && p->net < 0 && !p->net_bundle &&
	       !p->keeps && !p->tty && p->becomes == made->becomes && p->uid == made->uid && p->gid == made->gid &&
	       p->has_files == made->has_files && p->use_overlay == made->use_overlay && strcmp(p->at, made->at) == 0 &&
	       is_same_source(made, p) && is_same_list(p->paths, made->paths) &&
	       strcmp(p->upper_opts, made->upper_opts) == 0 && strcmp(p->tmp_opts, made->tmp_opts) == 0 &&
	       r->limits.memory == s->limits.memory && r->limits.processes == s->limits.processes;
}

/* The shared memory while it is filled. */
struct room {
	char *at, *end;
};

/* Aligned for pointers. NULL: there is no room left. */
static void *take(struct room *room, size_t size)
{
	char *at = room->at;

	size = (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
	if (!at || size > (size_t)(room->end - at))
		return room->at = NULL;
	room->at += size;
	return at;
}

static const char *put_text(struct room *room, const char *text)
{
	size_t size = strlen(text) + 1;
	char *to = take(room, size);

	return to ? memcpy(to, text, size) : NULL;
}

static const char *const *put_list(struct room *room, const char *const *list)
{
	const char **to;
	size_t n = 0;

	while (list[n])
		n++;
	to = take(room, (n + 1) * sizeof *to);
	for (size_t i = 0; to && i < n; i++)
		to[i] = put_text(room, list[i]);
	return to;
}

static bool describe(struct sandbox_spare *s, const struct plan *p)
{
	struct room room = {(char *)s->call, (char *)s->call + CALL_SIZE};
	struct spare_call *call = take(&room, sizeof *call);

	*call = (struct spare_call){.rlimit_count = p->rlimit_count,
				    .fill = p->fill,
				    .shows = p->shows,
				    .has_answer = p->answer >= 0,
				    .has_tree = p->tree >= 0};
	memcpy(call->rlimits, p->rlimits, sizeof call->rlimits);
	call->programs = put_list(&room, p->programs);
	call->argv = put_list(&room, p->argv);
	call->env = put_list(&room, p->env);
	call->cwd = put_text(&room, p->cwd);
	return room.at != NULL;
}

bool spare_start(struct sandbox_spare *s, struct run *r)
{
	const struct plan *p = &r->plan;
	int fds[PLAN_FDS_MAX] = {p->in, p->out, p->said};
	size_t count = 3;

	if (!fits(s, r) || !describe(s, p))
		return false;
	if (p->answer >= 0)
		fds[count++] = p->answer;
	if (p->tree >= 0)
		fds[count++] = p->tree;
	if (!run_send(s->child.control, &(char){SAY_JOB}, 1, fds, count))
		return false;
	r->child = s->child;
	r->group = s->group;
	s->child = (struct spawned){-1, -1};
	s->group = (struct cgroup){0};
	return true;
}

/* --- the child --- */

void spare_wait(struct plan *plan)
{
	const struct spare_call *call = plan->call;
	int fds[PLAN_FDS_MAX];
	size_t count, at = 3;
	char said;

	plan_note(plan, &(struct note){.kind = NOTE_READY});
	if (plan_receive(plan->control, &said, 1, fds, &count) != 1 || said != SAY_JOB ||
	    count != 3 + (size_t)call->has_answer + (size_t)call->has_tree)
		_exit(125);
	plan->programs = call->programs;
	plan->argv = call->argv;
	plan->env = call->env;
	plan->cwd = call->cwd;
	memcpy(plan->rlimits, call->rlimits, sizeof plan->rlimits);
	plan->rlimit_count = call->rlimit_count;
	plan->fill = call->fill;
	plan->shows = call->shows;
	plan->in = fds[0];
	plan->out = fds[1];
	plan->said = fds[2];
	plan->answer = call->has_answer ? fds[at++] : -1;
	plan->tree = call->has_tree ? fds[at] : -1;
}
