/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run, from the job to the result: prepare everything that needs memory, start the child, fill its files if they are
 * copied, move its output while it runs, end it, and bring back what it changed.
 *
 * The command has ended when its own process has, not when its pipes are closed: something that it left running may
 * hold them for ever. Then what is in the pipes is read for a moment, and everything that is left is killed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/sigpipe.h"
#include "revisions/revisions.h"
#include "sandbox/run_internal.h"

#define SLICE_MS     50
#define DRAIN_MS     200
#define USUAL_PATH   "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#define HOST_ID      UINT32_C(1900000000)
#define HOST_IDS     UINT32_C(40000000)
#define PROGRAMS_MAX 64

/* --- preparing --- */

static void or_default(uint64_t *value, uint64_t fallback)
{
	if (!*value)
		*value = fallback;
}

static void set_limits(const struct sandbox_job *job, struct sandbox_limits *l)
{
	*l = job->limits;
	if (!l->timeout_ms)
		l->timeout_ms = SANDBOX_SECONDS_DEFAULT * INT64_C(1000);
	or_default(&l->memory, SANDBOX_MEMORY_DEFAULT);
	or_default(&l->disk, SANDBOX_DISK_DEFAULT);
	or_default(&l->files, SANDBOX_FILES_DEFAULT);
	or_default(&l->processes, SANDBOX_PROCESSES_DEFAULT);
	if (!l->output)
		l->output = SANDBOX_OUTPUT_DEFAULT;
}

static void add_rlimit(struct plan *p, int what, uint64_t value)
{
	p->rlimits[p->rlimit_count].what = what;
	p->rlimits[p->rlimit_count++].value = value;
}

static void plan_limits(struct run *r)
{
	struct plan *p = &r->plan;
	const struct sandbox_limits *l = &r->limits;

	snprintf(p->root_opts, sizeof p->root_opts, "mode=0755,size=16m,nr_inodes=4096");
	snprintf(p->upper_opts, sizeof p->upper_opts, "mode=0755,size=%llu,nr_inodes=%llu", (unsigned long long)l->disk,
		 (unsigned long long)l->files + 8);
	snprintf(p->tmp_opts, sizeof p->tmp_opts, "mode=1777,size=%llu,nr_inodes=%llu", (unsigned long long)l->disk,
		 (unsigned long long)l->files + 8);
	add_rlimit(p, RLIMIT_CORE, 0);
	if (p->tier == SANDBOX_LOCAL)
		return;
	add_rlimit(p, RLIMIT_NOFILE, 1024);
	/* where it is not counted for the namespace alone, the user's other processes count as well */
	add_rlimit(p, RLIMIT_NPROC,
		   l->processes +
			   (p->tier == SANDBOX_NAMESPACES || p->becomes ? 1 : user_threads() + SANDBOX_OTHERS_MAX));
	add_rlimit(p, RLIMIT_FSIZE, l->disk);
	add_rlimit(p, RLIMIT_CPU, (uint64_t)l->timeout_ms / 1000 + 2);
	add_rlimit(p, RLIMIT_MEMLOCK, 64 * KIB);
	add_rlimit(p, RLIMIT_MSGQUEUE, 0);
	add_rlimit(p, RLIMIT_DATA, l->memory);
}

static const char *env_value(const struct sandbox_job *job, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; job->env && job->env[i]; i++)
		if (strncmp(job->env[i], name, len) == 0 && job->env[i][len] == '=')
			return job->env[i] + len + 1;
	return NULL;
}

/* True when the list has a variable of the same name. */
static bool is_set(const char *const *list, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (size_t i = 0; list[i]; i++)
		if (strncmp(list[i], variable, len) == 0)
			return true;
	return false;
}

/* Built, never inherited; a name in the job's own list wins, and a placeholder of a secret over that. */
static void plan_env(struct run *r)
{
	struct arena *arena = r->ctx->arena;
	const struct sandbox_job *job = r->job;
	bool own = r->plan.tier == SANDBOX_NAMESPACES || r->plan.tier == SANDBOX_BUBBLEWRAP,
	     local = r->plan.tier == SANDBOX_LOCAL;
	const char *path = local ? env_process("PATH") : NULL, *home = local ? env_process("HOME") : NULL;
	const char *usual[][2] = {
		{"PATH", path ? path : USUAL_PATH},
		{"HOME", own || !r->work ? home ? home : "/home" : arena_printf(arena, "%s/home", r->work).ptr},
		{"USER", "agent"},
		{"LANG", "C.UTF-8"},
		{"TMPDIR", own || !r->work ? "/tmp" : arena_printf(arena, "%s/tmp", r->work).ptr},
		{"TERM", "dumb"},
		/* where /etc is not its own, git may not read the machine's configuration, and takes that for damage */
		{"GIT_CONFIG_NOSYSTEM", "1"},
	};
	size_t usual_count = COUNT(usual) - (r->plan.tier != SANDBOX_LANDLOCK);
	const char *const *net = r->net ? (const char *const *)r->net->env : NULL;
	size_t given = 0, n = 0;
	const char **env;

	while (job->env && job->env[given])
		given++;
	env = ARENA_ARRAY(arena, const char *, given + COUNT(usual) + SANDBOX_SECRETS_MAX + SANDBOX_NET_VARIABLES + 1);
	for (size_t i = 0; net && net[i]; i++) /* first: a placeholder is what a program finds under its name */
		env[n++] = net[i];
	for (size_t i = 0; i < usual_count; i++)
		if (!env_value(job, usual[i][0]))
			env[n++] = arena_printf(arena, "%s=%s", usual[i][0], usual[i][1]).ptr;
	for (size_t i = 0; i < given; i++)
		if (!net || !is_set(net, job->env[i]))
			env[n++] = job->env[i];
	r->plan.env = env;
}

/* Where the program may be: as it is named, or in each directory of PATH. */
static void plan_programs(struct run *r)
{
	struct arena *arena = r->ctx->arena;
	const char **list = ARENA_ARRAY(arena, const char *, PROGRAMS_MAX + 1);
	const char *name = r->job->argv[0], *path = env_value(r->job, "PATH");
	struct str rest, dir;
	size_t n = 0;

	if (!path && r->plan.tier == SANDBOX_LOCAL)
		path = env_process("PATH");
	rest = str_of(path ? path : USUAL_PATH);
	if (strchr(name, '/') || !*name)
		list[n++] = name;
	else
		while (n < PROGRAMS_MAX && rest.len && str_cut(&rest, ':', &dir))
			if (dir.len)
				list[n++] = arena_printf(arena, "%.*s/%s", STR_ARG(dir), name).ptr;
	r->plan.programs = list;
	r->plan.argv = r->job->argv;
}

bool run_pipe(int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	*ret_read = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
	*ret_write = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
	close(ends[0]);
	close(ends[1]);
	return *ret_read >= 0 && *ret_write >= 0;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The user of the host that root runs a command as. */
static uid_t host_id(const struct sandbox_job *job)
{
	return HOST_ID + (uint32_t)(hash_u64(job->owner, 0) % HOST_IDS);
}

/* The kernel counts processes by user where a command has no user namespace of ours. So there each run is a user of its
   own, and none can use up the processes of another. Its files are a copy, so they can belong to anybody. */
static uid_t run_id(const struct sandbox_job *job, enum sandbox_tier tier)
{
	if (tier != SANDBOX_BUBBLEWRAP && tier != SANDBOX_LANDLOCK)
		return host_id(job);
	return HOST_ID + HOST_IDS + (uint32_t)(random_u64() % HOST_IDS);
}

/* --- its files --- */

/* A directory that is there, with no link on the way to it. */
static bool use_dir(struct run *r)
{
	const char *dir = r->job->files.dir;
	char *real = dir ? realpath(dir, NULL) : NULL;
	struct stat st;
	bool ok = real && stat(real, &st) == 0 && S_ISDIR(st.st_mode);

	if (ok) {
		r->plan.dir = arena_cstr(r->ctx->arena, str_of(real));
		r->plan.dev = st.st_dev;
		r->plan.ino = st.st_ino;
	}
	free(real);
	return ok;
}

static void plan_own_files(struct run *r)
{
	struct plan *p = &r->plan;
	const char *at = r->job->files.at ? r->job->files.at : SANDBOX_FILES_AT;

	p->at = at + (*at == '/');
	p->work = arena_printf(r->ctx->arena, "/%s", p->at).ptr;
	p->cwd = arena_printf(r->ctx->arena, "%s%s%.*s", p->work, r->job->cwd.s.len ? "/" : "", STR_ARG(r->job->cwd.s))
			 .ptr;
	p->has_files = r->job->files.store != NULL;
	if (r->opens) {
		p->use_overlay = p->has_files;
		p->work = "/"; /* the files will be below it */
		p->cwd = "/";
		if (p->has_files && !p->becomes)
			(void)use_dir(r);
		return;
	}
	if (!p->has_files) {
		p->use_overlay = r->try_overlay;
		return;
	}
	p->use_overlay = tier_has_overlay();
	if (r->is_spare) {
		if (p->use_overlay && !p->becomes)
			(void)use_dir(r);
		return;
	}
	if (p->use_overlay && use_dir(r)) {
		p->tree = p->becomes ? lower_tree(p->dir, p->uid, p->gid) : -1;
		r->hides = p->tree >= 0 || !p->becomes;
		if (r->hides)
			return;
		p->dir = NULL; /* its owner cannot be shown as the command's user: copy */
	}
	if (p->use_overlay && p->becomes)
		r->base.view = lower_view(r->ctx, &r->job->files, p->uid, p->gid, &p->tree);
	else if (p->use_overlay && !r->worker)
		p->shows = lower_is_shown(r->ctx, &r->job->files);
	p->fill = !r->base.view && !p->shows;
}

/* Tiers that run among the machine's own files. What a command changes in place could not be dropped, so one whose
   changes are to be dropped gets a copy in the tier "local" too. */
static int plan_host_files(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	const char *files;
	int code = 0;

	r->in_place = p->tier == SANDBOX_LOCAL && !r->job->files.read_only && use_dir(r);
	if (!r->in_place)
		code = work_make(r->ctx->arena, p->becomes, p->uid, p->gid, &r->work, err);
	if (code)
		return code;
	p->work = r->work;
	p->fill = !r->in_place && r->job->files.store;
	files = r->in_place ? p->dir : arena_printf(r->ctx->arena, "%s/files", r->work).ptr;
	p->cwd = arena_printf(r->ctx->arena, "%s/%.*s", files, STR_ARG(r->job->cwd.s)).ptr;
	return 0;
}

/* What earlier commands left: a layer of its own, or a copy among the files. */
static int plan_kept(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	bool copies = p->tier == SANDBOX_BUBBLEWRAP || p->tier == SANDBOX_LANDLOCK;
	uid_t uid = p->becomes ? host_id(r->job) : p->uid;
	int code;

	if (p->tier == SANDBOX_LOCAL)
		return err_set(err, ERR_UNSUPPORTED,
			       "the tier \"local\" keeps nothing between commands, because they use your own home; use "
			       "another tier, or keep nothing (sandbox.keep: none)");
	if (!copies && (!tier_has_overlay() || (p->has_files && !p->use_overlay)))
		return err_set(
			err, ERR_UNSUPPORTED,
			"this machine mounts no overlay, so the tier \"namespaces\" keeps nothing between "
			"commands; use another tier that `stead doctor` shows, or keep nothing (sandbox.keep: none)");
	code = kept_restore(r->ctx, r->job->keep, uid, p->becomes ? uid : p->gid, &r->kept, err);
	if (code || copies)
		return code;
	p->keeps = true;
	p->kept_dir = r->kept.dir;
	if (p->kept_dir && p->becomes) {
		p->kept_tree = lower_clone(p->kept_dir);
		if (p->kept_tree < 0)
			return err_sys(err, errno, "the cache of kept files cannot be shown to a command");
	}
	return 0;
}

static int mark_start(struct run *r, struct err *err)
{
	const struct sandbox_files *files = &r->job->files;

	r->base = (struct baseline){.lower = -1, .time_ns = clock_real_ns()};
	r->base.head = files->head;
	return files->revisions && !files->shown ? revisions_head(files->revisions, r->ctx, &r->base.head, err) : 0;
}

static int plan_network(struct run *r, struct err *err)
{
	const struct sandbox_net *given = r->job->net;
	int code;

	r->plan.net = -1;
	if (!given)
		return 0;
	if (given->host_count && r->plan.tier != SANDBOX_NAMESPACES)
		return err_set(
			err, ERR_UNSUPPORTED,
			"the tier %s cannot limit the network to some hosts; use the tier namespaces, or allow no "
			"host",
			sandbox_tier_name(r->plan.tier));
	code = net_new(given, &r->net, err);
	if (code == 0)
		net_plan(r->net, &r->plan);
	return code;
}

static int plan_bwrap(struct run *r, struct err *err)
{
	const char *at = r->job->files.at ? r->job->files.at : SANDBOX_FILES_AT,
		   *program = bwrap_program(r->ctx->arena);
	const char **list = ARENA_ARRAY(r->ctx->arena, const char *, 2);
	struct bwrap_view view = {
		.work = r->work,
		.at = at,
		.cwd = arena_printf(r->ctx->arena, "%s%s%.*s", at, r->job->cwd.s.len ? "/" : "", STR_ARG(r->job->cwd.s))
			       .ptr,
		.paths = r->job->paths,
		.argv = r->job->argv,
		.disk = r->limits.disk,
		.processes = r->limits.processes + 2,
		.tty = r->job->tty,
		.keeps = r->job->keep != NULL,
	};

	if (!program)
		return err_set(err, ERR_UNSUPPORTED, "the program bwrap is missing; install bubblewrap");
	list[0] = program;
	r->plan.programs = list;
	r->plan.passed[0] = bwrap_filter(&r->plan.filter);
	if (r->plan.passed[0] < 0 || !run_pipe(&r->begun, &r->plan.passed[1]))
		return err_sys(err, errno, "cannot prepare a filter for bwrap");
	return bwrap_args(r->ctx->arena, &view, &r->plan.argv, err);
}

int run_prepare(struct run *r, enum sandbox_tier tier, struct err *err)
{
	struct plan *p = &r->plan;
	int code;

	*p = (struct plan){.tier = tier,
			   .tree = -1,
			   .kept_tree = -1,
			   .control = -1,
			   .in = -1,
			   .out = -1,
			   .said = -1,
			   .answer = -1,
			   .groups = {-1, -1},
			   .passed = {-1, -1}};
	if (tier != SANDBOX_LOCAL && user_is_lonely_root())
		return err_set(err, ERR_UNSUPPORTED,
			       "Stead is the machine's root in a user namespace without other users, and no command "
			       "may run as root; start Stead as another user, or outside that namespace");
	if (tier == SANDBOX_LANDLOCK && geteuid() == 0 && !user_is_root())
		return err_set(err, ERR_UNSUPPORTED,
			       "there is no user here other than root that a command could run as; use the tier "
			       "namespaces, which creates one");
	p->tty = r->job->tty;
	p->is_worker = r->opens;
	p->becomes = user_is_root() && tier != SANDBOX_LOCAL;
	p->uid = p->becomes ? run_id(r->job, tier) : geteuid();
	p->gid = p->becomes ? p->uid : getegid();
	snprintf(p->uid_map, sizeof p->uid_map, "%d %u 1", SANDBOX_UID, p->uid);
	snprintf(p->gid_map, sizeof p->gid_map, "%d %u 1", SANDBOX_UID, p->gid);
	p->paths = r->job->paths;
	set_limits(r->job, &r->limits);
	plan_limits(r);
	if (tier != SANDBOX_LOCAL && !r->worker)
		filter_build(r->ctx->arena, tier, r->opens, &p->filter);
	code = r->worker ? 0 : plan_network(r, err);
	if (code == 0 && !r->opens && !r->is_spare)
		code = mark_start(r, err);
	if (code == 0)
		code = tier == SANDBOX_NAMESPACES ? (plan_own_files(r), 0) : plan_host_files(r, err);
	if (code == 0 && r->job->keep && !r->worker)
		code = plan_kept(r, err);
	if (code || r->worker)
		return code;
	plan_env(r);
	if (tier == SANDBOX_BUBBLEWRAP)
		return plan_bwrap(r, err);
	if (r->job->argv)
		plan_programs(r);
	return 0;
}

/* --- starting --- */

/* The caller's terminal may have got another size. */
static void follow_size(struct run *r)
{
	struct winsize now;

	if (!r->plan.tty || !r->job->input_fd || r->out < 0 || ioctl(*r->job->input_fd, TIOCGWINSZ, &now) != 0 ||
	    (now.ws_row == r->size.ws_row && now.ws_col == r->size.ws_col))
		return;
	r->size = now;
	(void)ioctl(r->out, TIOCSWINSZ, &now);
}

/* A terminal: what the command types to is its streams, the other end is ours. */
static bool make_terminal(struct run *r)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), no = 0;
	int slave = master >= 0 && ioctl(master, TIOCSPTLCK, &no) == 0
			    ? ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
			    : -1;
	struct plan *p = &r->plan;

	if (slave >= 0 && ptsname_r(master, p->terminal, sizeof p->terminal) == 0) {
		p->in = fcntl(slave, F_DUPFD_CLOEXEC, 3);
		p->out = fcntl(slave, F_DUPFD_CLOEXEC, 3);
		p->said = fcntl(slave, F_DUPFD_CLOEXEC, 3);
		r->in = fcntl(master, F_DUPFD_CLOEXEC, 3);
		r->out = fcntl(master, F_DUPFD_CLOEXEC, 3);
		follow_size(r);
	}
	drop(&slave);
	drop(&master);
	return p->in >= 0 && p->out >= 0 && p->said >= 0 && r->in >= 0 && r->out >= 0;
}

bool run_send(int to, const void *packet, size_t size, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(PLAN_FDS_MAX * sizeof(int))];
	} data = {{0}};
	struct iovec iov = {(void *)(uintptr_t)packet, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = data.room;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(to, &msg, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool say_hidden(const struct run *r)
{
	char packet[SAY_MAX];
	size_t n = 1;

	packet[0] = SAY_HIDDEN;
	for (size_t i = 0; i <= r->hidden_count; i++) {
		size_t len = i < r->hidden_count ? strlen(r->hidden[i]) + 1 : 0;

		if (n > 1 && (!len || n + len > sizeof packet)) {
			if (send(r->child.control, packet, n, MSG_NOSIGNAL) != (ssize_t)n)
				return false;
			n = 1;
		}
		if (len)
			memcpy(packet + n, r->hidden[i], len);
		n += len;
	}
	return true;
}

/* The command may begin, in its groups. Why a child is gone that does not hear this, it has said itself. */
static int begin(struct run *r, struct err *err)
{
	int groups[2], count = 0;

	if (!r->worker && !cgroup_add(&r->group, r->child.pid))
		return err_set(err, ERR_UNAVAILABLE, "the command's processes cannot be put under their limits");
	for (size_t i = 0; i < COUNT(r->groups); i++)
		if (r->groups[i] >= 0)
			groups[count++] = r->groups[i];
	r->started_ns = clock_monotonic_ns();
	if (say_hidden(r))
		(void)run_send(r->child.control, &(char){SAY_GO}, 1, groups, (size_t)count);
	drop(&r->groups[0]);
	drop(&r->groups[1]);
	r->was_told = true;
	return 0;
}

/* The processes of the run, with limits over all of them. */
static int start_processes(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	bool is_spare = r->job->spare && spare_start(r->job->spare, r);
	int code = is_spare ? 0 : plan_spawn(p, &r->child, err);

	drop(&p->passed[0]);
	drop(&p->passed[1]);
	drop(&p->in);
	drop(&p->out);
	drop(&p->said);
	drop(&p->answer);
	drop(&p->tree);
	drop(&p->kept_tree);
	if (code || is_spare)
		return code;
	/* while the child makes the rest */
	cgroup_make(&r->group, p->tier == SANDBOX_LOCAL ? 0 : r->limits.memory,
		    p->tier == SANDBOX_NAMESPACES ? 0 : r->limits.processes + 2);
	return cgroup_open(&r->group, r->groups)
		       ? 0
		       : err_sys(err, errno, "the command's processes cannot be put under their limits");
}

static int start(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	int code;

	if (p->tty ? !make_terminal(r)
		   : !run_pipe(&p->in, &r->in) || !run_pipe(&r->out, &p->out) || !run_pipe(&r->said, &p->said))
		return err_sys(err, errno, "cannot create a %s", p->tty ? "terminal" : "pipe");
	if (r->job->answer_max && !run_pipe(&r->answer, &p->answer))
		return err_sys(err, errno, "cannot create a pipe");
	buf_init(&r->answered, r->ctx->arena, r->job->answer_max);
	fcntl(r->in, F_SETFL, O_NONBLOCK);
	if (r->worker) {
		r->child = r->worker->child;
		r->started_ns = clock_monotonic_ns();
		code = r->worker->is_ready ? worker_call(r, err) : 0;
		return code == 0 && r->hides ? lower_hidden(r->ctx, &r->job->files, &r->hidden, &r->hidden_count, err)
					     : code;
	}
	code = start_processes(r, err);
	if (code == 0 && r->hides)
		code = lower_hidden(r->ctx, &r->job->files, &r->hidden, &r->hidden_count, err);
	if (code == 0 && p->tier == SANDBOX_NAMESPACES && !p->fill && !p->shows && p->net < 0)
		code = begin(r, err);
	return code;
}

ssize_t run_receive(int control, struct note *note, int fds[3])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} data;
	struct iovec iov = {note, sizeof *note};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = data.room, .msg_controllen = sizeof data.room};
	ssize_t n;

	fds[0] = fds[1] = fds[2] = -1;
	while ((n = recvmsg(control, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

static int copy_kept(struct run *r, struct err *err)
{
	r->kept.base = &r->base;
	r->home = open(arena_printf(r->ctx->arena, "%s/home", r->work).ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return kept_copy(r->ctx, &r->kept, r->work, r->plan.uid, r->plan.gid, err);
}

/* The view is there: fill it, and let the command begin. */
static int go(struct run *r, struct err *err)
{
	struct plan *p = &r->plan;
	int code = 0;

	if (r->work)
		r->upper =
			open(arena_printf(r->ctx->arena, "%s/files", r->work).ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fill)
		code = baseline_copy(r->ctx, &r->job->files, r->base.lower >= 0 ? r->base.lower : r->upper, p->uid,
				     p->gid, &r->base, err);
	if (code == 0 && r->work && r->job->keep)
		code = copy_kept(r, err);
	if (code == 0)
		code = net_begin(r->net, err);
	r->room = r->work ? work_room(r->work) : 0;
	return code ? code : begin(r, err);
}

static const struct cgroup *group_of(const struct run *r)
{
	return r->worker ? &r->worker->group : &r->group;
}

static int on_note(struct run *r, struct err *err)
{
	struct note note = {0};
	int fds[3];
	ssize_t n = run_receive(r->child.control, &note, fds);

	if (n != (ssize_t)sizeof note) {
		if (!r->exited_ns && r->started_ns && cgroup_was_out_of_memory(group_of(r))) {
			r->exit = (struct note){.value = SIGKILL};
			r->exited_ns = clock_monotonic_ns();
		}
		if (!r->exited_ns)
			return err_set(err, ERR_UNAVAILABLE, "the sandbox ended unexpectedly");
		r->is_over = true;
		return 0;
	}
	switch (note.kind) {
	case NOTE_VIEW:
		r->base.view = lower_view_of(r->ctx, &r->job->files, fds[0]);
		return 0;
	case NOTE_FILES:
		r->plan.fill |= r->plan.shows && !r->base.view;
		r->upper = fds[0];
		r->base.lower = note.value ? fds[1] : -1;
		r->home = fds[note.value ? 2 : 1];
		return r->was_told ? 0 : go(r, err);
	case NOTE_FAILED:
		if (note.value == STEP_CWD && note.sys == ENOENT)
			return err_set(err, ERR_NOT_FOUND, "the working directory \"%.*s\" does not exist",
				       STR_ARG(r->job->cwd.s));
		if (note.value == STEP_CWD && note.sys == ENOTDIR)
			return err_set(err, ERR_INVALID, "the working directory \"%.*s\" is a file, not a directory",
				       STR_ARG(r->job->cwd.s));
		if (note.value != STEP_CWD && (note.sys == EPERM || note.sys == EACCES))
			return err_set(err, ERR_UNSUPPORTED,
				       "the sandbox could not %s: %s; a security module or a container forbids it, and "
				       "`stead doctor` shows the tiers that work here",
				       step_name((enum step)note.value), strerrordesc_np(note.sys));
		return err_sys(err, note.sys, "the sandbox could not %s", step_name((enum step)note.value));
	case NOTE_EXEC_FAILED:
		r->exec_errno = note.sys;
		return 0;
	case NOTE_EXITED:
		r->exit = note;
		r->exited_ns = clock_monotonic_ns();
		return 0;
	case NOTE_PLACED:
		return worker_begin(r, err);
	case NOTE_CLEARED:
	case NOTE_READY:
		return 0;
	}
	return 0;
}

/* --- while it runs --- */

static void on_output(struct run *r, int *fd, bool is_stderr)
{
	char bytes[64 * 1024];
	ssize_t n = read(*fd, bytes, sizeof bytes);

	if (n > 0 && r->job->output) {
		if (!r->job->output(r->job->output_arg, is_stderr, str_n(bytes, (size_t)n)))
			drop(fd);
	} else if (n > 0)
		capture_add(&r->captured[is_stderr], str_n(bytes, (size_t)n));
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		drop(fd);
}

/* More than it may have is read and dropped, so that the command is not held up. */
static void on_answer(struct run *r)
{
	char bytes[64 * 1024];
	ssize_t n = read(r->answer, bytes, sizeof bytes);

	if (n > 0)
		buf_add(&r->answered, str_n(bytes, (size_t)n));
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		drop(&r->answer);
}

static void on_input(struct run *r)
{
	ssize_t n = r->input.len ? sigpipe_write(r->in, r->input.ptr, r->input.len) : 0;

	if (n > 0)
		r->input = str_from(r->input, (size_t)n);
	if ((!r->input.len && r->input_is_all) || (n < 0 && errno != EINTR && errno != EAGAIN))
		drop(&r->in);
}

/* More to give to the command. */
static void on_more_input(struct run *r)
{
	ssize_t n = read(*r->job->input_fd, r->input_room, sizeof r->input_room);

	if (n > 0)
		r->input = str_n(r->input_room, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		r->input_is_all = true;
	if (r->input_is_all && r->plan.tty)
		r->input = STR("\4"); /* what a person types at the end */
	else if (r->input_is_all)
		drop(&r->in);
}

/* The directory of the tiers that have no other limit. Others write to its file system, too, so it is added up before
   anything is said, and again only when as much has been written once more. */
static bool is_too_large(struct run *r)
{
	uint64_t room = work_room(r->work);

	if (r->in_place || room > r->room || r->room - room <= r->limits.disk)
		return false;
	r->room = room;
	return work_used(r->work) > r->limits.disk;
}

/* Milliseconds that may be waited; 0: it is over. */
static int patience(struct run *r)
{
	int64_t now = clock_monotonic_ns(), until = r->started_ns + r->limits.timeout_ms * NS_PER_MS;

	if (r->is_over)
		return 0;
	if (r->exited_ns)
		return (r->out < 0 && r->said < 0 && r->answer < 0) || now - r->exited_ns > DRAIN_MS * NS_PER_MS
			       ? 0
			       : SLICE_MS / 10;
	if (r->started_ns && now >= until)
		r->timed_out = true;
	if (r->job->stop && atomic_load(&r->job->stop->requested))
		r->stopped = true;
	if (r->work && r->started_ns && is_too_large(r))
		r->out_of_disk = true;
	if (r->timed_out || r->stopped || r->out_of_disk)
		return 0;
	if (r->started_ns && until - now < SLICE_MS * NS_PER_MS)
		return (int)((until - now) / NS_PER_MS) + 1;
	return SLICE_MS;
}

static int pump(struct run *r, struct err *err)
{
	int code = 0, ms;

	r->input_is_all = !r->job->input_fd;
	if (!r->input.len && r->input_is_all)
		drop(&r->in);
	while (code == 0 && (ms = patience(r)) > 0) {
		bool wants_input = r->in >= 0 && !r->input.len && !r->input_is_all;
		struct pollfd fds[] = {{.fd = r->child.control, .events = POLLIN},
				       {.fd = r->out, .events = POLLIN},
				       {.fd = r->said, .events = POLLIN},
				       {.fd = wants_input ? -1 : r->in, .events = POLLOUT},
				       {.fd = wants_input ? *r->job->input_fd : -1, .events = POLLIN},
				       {.fd = r->answer, .events = POLLIN},
				       {.fd = r->worker ? r->worker->talk : -1, .events = POLLIN}};

		code = ctx_check(r->ctx, err);
		if (code)
			break;
		follow_size(r);
		if (poll(fds, COUNT(fds), ms) < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot wait for the command");
		if (fds[1].revents)
			on_output(r, &r->out, false);
		if (fds[2].revents)
			on_output(r, &r->said, true);
		if (fds[3].revents)
			on_input(r);
		if (fds[4].revents)
			on_more_input(r);
		if (fds[5].revents)
			on_answer(r);
		if (fds[6].revents)
			code = worker_hear(r, err);
		if (code == 0 && fds[0].revents)
			code = on_note(r, err);
	}
	return code;
}

/* The guardian is gone, and all that it guarded. What the command used until it was killed is known from then on. */
static void wait_for_guardian(struct run *r)
{
	struct rusage used = {0};
	int status;

	while (wait4(r->child.pid, &status, __WALL, &used) < 0 && errno == EINTR)
		;
	r->child.pid = -1;
	if (!r->exited_ns)
		r->exit.cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
				 used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* Ends everything that is left, and what is in the pipes is read: nothing can write to them now. A guardian that is
   alone is not waited for: the kernel takes its mounts apart while the changes are brought back. */
static void end(struct run *r)
{
	if (r->worker && r->child.pid > 0) {
		bool cleared = r->exited_ns && !r->is_over && !r->timed_out && !r->stopped && worker_clear(r->worker);

		fuse_view_end(r->base.view);
		if (!cleared)
			worker_end(r->worker);
		r->child = (struct spawned){-1, -1};
	}
	drop(&r->child.control);
	fuse_view_end(r->base.view); /* a process that waits for an answer cannot be killed before */
	if (r->child.pid > 0 && !r->exit.is_alone) {
		if (r->plan.tier == SANDBOX_NAMESPACES)
			kill(r->child.pid, SIGKILL);
		wait_for_guardian(r);
	}
	for (int i = 0; i < 2; i++) {
		int *fd = i ? &r->said : &r->out;

		if (*fd >= 0)
			fcntl(*fd, F_SETFL, O_NONBLOCK);
		for (int reads = 0; *fd >= 0 && reads < 64; reads++) {
			on_output(r, fd, i == 1);
			if (*fd >= 0 && errno == EAGAIN)
				break;
		}
		drop(fd);
	}
	if (r->answer >= 0)
		fcntl(r->answer, F_SETFL, O_NONBLOCK);
	for (int reads = 0; r->answer >= 0 && reads < 64; reads++) {
		errno = 0;
		on_answer(r);
		if (errno == EAGAIN)
			break;
	}
	drop(&r->answer);
	drop(&r->in);
}

/* --- the result --- */

void run_release(struct run *r)
{
	end(r);
	if (r->child.pid > 0)
		wait_for_guardian(r);
	drop(&r->plan.in);
	drop(&r->plan.out);
	drop(&r->plan.said);
	drop(&r->plan.answer);
	drop(&r->plan.tree);
	drop(&r->plan.passed[0]);
	drop(&r->plan.passed[1]);
	drop(&r->begun);
	drop(&r->plan.kept_tree);
	drop(&r->groups[0]);
	drop(&r->groups[1]);
	drop(&r->upper);
	drop(&r->home);
	kept_release(&r->kept);
	drop(&r->base.lower);
	fuse_view_close(r->base.view);
	r->base.view = NULL;
	cgroup_remove(&r->group);
	net_destroy(r->net);
	r->net = NULL;
	if (r->work)
		work_remove(AT_FDCWD, r->work);
}

static void say_exec_failed(struct run *r)
{
	struct str text;

	if (!r->exec_errno)
		return;
	text = arena_printf(r->ctx->arena, "cannot run \"%.200s\": %s\n", r->job->argv[0],
			    r->exec_errno == ENOENT ? "there is no such program" : strerrordesc_np(r->exec_errno));
	if (r->job->output)
		(void)r->job->output(r->job->output_arg, true, text);
	else
		capture_add(&r->captured[1], text);
}

static void describe(struct run *r, struct sandbox_result *ret)
{
	int status = r->exit.value;

	*ret = (struct sandbox_result){.tier = r->plan.tier,
				       .timed_out = r->timed_out,
				       .stopped = r->stopped,
				       .out_of_disk = r->out_of_disk,
				       .memory_is_shared = cgroup_has_memory(group_of(r)),
				       .cpu_ms = r->exit.cpu_us / 1000,
				       .memory_peak = r->exit.memory_peak};
	if (r->timed_out || r->stopped || r->out_of_disk) {
		ret->signal = SIGKILL;
		ret->exit_code = r->timed_out ? 124 : 128 + SIGKILL;
	} else if (WIFSIGNALED(status)) {
		ret->signal = WTERMSIG(status);
		ret->exit_code = 128 + ret->signal;
	} else {
		ret->exit_code = WEXITSTATUS(status);
	}
	ret->out_of_memory = cgroup_was_out_of_memory(group_of(r));
	ret->duration_ms = ((r->exited_ns ? r->exited_ns : clock_monotonic_ns()) - r->started_ns) / NS_PER_MS;
	ret->answer = r->answered.ptr ? buf_str(&r->answered) : STR_NONE;
	ret->answer_is_cut = r->answered.overflow;
	say_exec_failed(r);
	capture_end(&r->captured[0], r->ctx->arena, &ret->out);
	capture_end(&r->captured[1], r->ctx->arena, &ret->said);
}

/* What bwrap says when it cannot set up is all that the command seems to have printed. */
static int check_begun(struct run *r, struct err *err)
{
	char byte;

	if (r->begun < 0 || r->timed_out || r->stopped || read(r->begun, &byte, 1) == 1)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "bwrap could not create the sandbox: %.*s",
		       STR_ARG(utf8_first(str_trim(buf_str(&r->captured[1].head)), 200)));
}

static int bring_back(struct run *r, struct sandbox_result *ret, struct err *err)
{
	const struct sandbox_files *files = &r->job->files;
	struct changes changes = {.arena = r->ctx->arena};
	bool layered = r->plan.use_overlay;
	int code;

	ret->is_saved = true;
	if (!files->store || (files->read_only && !files->tells_dropped) || r->in_place)
		return 0;
	code = layered ? changes_of_overlay(r->ctx, files, r->upper, &changes, err)
		       : changes_of_copy(r->ctx, files, r->upper, &r->base, &changes, err);
	if (files->read_only) {
		changes_count_dropped(r->ctx, files, &changes, ret);
		return code == -ERR_CANCELLED ? code : 0;
	}
	if (code == 0)
		code = changes_commit(r->ctx, files, &r->base, &changes, ret, err);
	if (code == -ERR_CANCELLED || code == 0)
		return code;
	ret->is_saved = false; /* the command has run all the same: this is part of what became of it */
	ret->unsaved = *err;
	return 0;
}

static int run(struct run *r, enum sandbox_tier tier, struct sandbox_result *ret, struct err *err)
{
	int code = run_prepare(r, tier, err);

	if (code == 0 && r->worker && !worker_fits(r->worker, r))
		code = err_set(err, ERR_UNAVAILABLE, "the worker was made for other files");
	capture_init(&r->captured[0], r->ctx->arena, r->limits.output);
	capture_init(&r->captured[1], r->ctx->arena, r->limits.output);
	r->input = r->job->input;
	if (code == 0)
		code = start(r, err);
	if (code == 0)
		code = pump(r, err);
	end(r);
	net_end(r->net);
	if (code == 0)
		code = check_begun(r, err);
	if (code == 0) {
		describe(r, ret);
		net_result(r->net, r->ctx->arena, ret);
		code = bring_back(r, ret, err);
		if (code == 0)
			code = kept_finish(r->ctx, r->job, &r->kept, r->home, r->upper, ret) ? ctx_check(r->ctx, err)
											     : 0;
	}
	if (code) {
		drop(&r->captured[0].spill);
		drop(&r->captured[1].spill);
	}
	run_release(r);
	return code;
}

int sandbox_try(enum sandbox_tier tier, bool with_overlay, struct err *err)
{
	static const char *const nothing[] = {"true", NULL};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct sandbox_job job = {.tier = tier, .limits = {.timeout_ms = 10000}};
	struct sandbox_result result;
	struct run r = RUN_NEW(&ctx, &job);

	if (tier == SANDBOX_BUBBLEWRAP)
		job.argv = nothing;
	r.try_overlay = with_overlay;
	return run(&r, tier, &result, err);
}

static int check_job(const struct sandbox_job *job, struct err *err)
{
	size_t bytes = 0, paths = 0;
	struct stat st;

	for (size_t i = 0; job->argv[i]; i++)
		bytes += strlen(job->argv[i]) + 1;
	if (!job->argv[0] || !*job->argv[0])
		return err_set(err, ERR_INVALID, "there is no command to run");
	if (bytes > SANDBOX_COMMAND_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the command has %zu bytes; at most %zu are allowed; write it to a file and run that",
			       bytes, SANDBOX_COMMAND_MAX);
	for (; job->paths && job->paths[paths]; paths++) {
		if (job->paths[paths][0] != '/' || strstr(job->paths[paths], "/../"))
			return err_set(err, ERR_INVALID, "\"%.200s\" is not an absolute path", job->paths[paths]);
		if (stat(job->paths[paths], &st) != 0 || !S_ISDIR(st.st_mode))
			return err_set(err, ERR_NOT_FOUND, "sandbox.paths: there is no directory \"%.200s\" to show",
				       job->paths[paths]);
	}
	if (paths > SANDBOX_PATHS_MAX)
		return err_set(err, ERR_TOO_LARGE, "sandbox.paths may show a command at most %d directories",
			       SANDBOX_PATHS_MAX);
	return 0;
}

/* An engine has no part in secrets: it gets their placeholders. */
static int run_in_container(struct run *r, struct sandbox_result *ret, struct err *err)
{
	struct sandbox_job job = *r->job;
	size_t count = 0, n = 0;
	const char **env;
	int code;

	set_limits(&job, &r->limits);
	r->plan.tier = SANDBOX_CONTAINER;
	code = plan_network(r, err);
	while (job.env && job.env[count])
		count++;
	env = ARENA_ARRAY(r->ctx->arena, const char *, count + SANDBOX_SECRETS_MAX + SANDBOX_NET_VARIABLES + 1);
	for (size_t i = 0; r->net && r->net->env[i]; i++)
		env[n++] = r->net->env[i];
	for (size_t i = 0; i < count; i++)
		if (!r->net || !is_set((const char *const *)r->net->env, job.env[i]))
			env[n++] = job.env[i];
	job.env = env;
	if (code == 0)
		code = container_run(r->ctx, &job, &r->limits, user_is_root() ? host_id(&job) : geteuid(), ret, err);
	net_destroy(r->net);
	return code;
}

/* False: the call was not made, and can be made in a new process. */
static bool run_in_worker(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_result *ret, int *ret_code,
			  struct err *err)
{
	struct run r = RUN_NEW(ctx, job);
	struct err own = {0};

	r.worker = job->worker;
	if (r.worker->is_spent)
		return false;
	*ret_code = run(&r, SANDBOX_NAMESPACES, ret, &own);
	if (*ret_code && !r.has_begun && ctx_check(ctx, &own) == 0) {
		worker_end(r.worker);
		*ret_code = 0;
		return false;
	}
	if (*ret_code)
		*err = own;
	return true;
}

int sandbox_run(struct ctx *ctx, const struct sandbox_job *job, struct sandbox_result *ret, struct err *err)
{
	struct run r = RUN_NEW(ctx, job);
	enum sandbox_tier tier;
	int code = check_job(job, err);

	if (code == 0)
		code = ctx_check(ctx, err);
	if (code == 0)
		code = sandbox_tier_choose(job->tier, &tier, err);
	if (code == 0 && tier == SANDBOX_CONTAINER)
		return run_in_container(&r, ret, err);
	if (code == 0 && job->worker && tier == SANDBOX_NAMESPACES && run_in_worker(ctx, job, ret, &code, err))
		return code;
	return code ? code : run(&r, tier, ret, err);
}

void sandbox_result_release(struct sandbox_result *result)
{
	drop(&result->out.whole_fd);
	drop(&result->said.whole_fd);
}
