/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead mount` and `stead umount`. The mount is served by a process of its own, which is forked before anything is
 * opened: the command returns when the files can be used, and its exit code says whether they can.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "command/cli.h"
#include "home/mount/mount.h"
#include "sandbox/fuse/fuse.h"

#define END_MS 10000

/* The directory without links, also when what is mounted there does not answer: only what is above it is looked at. */
static int find_dir(struct cli *cli, struct str text, const char **ret, struct err *err)
{
	const char *given = arena_cstr(cli->ctx.arena, text);
	char *copy = (char *)arena_cstr(cli->ctx.arena, text), *slash, *real;

	if (!*given)
		return err_set(err, ERR_INVALID, "the name of the directory is empty");
	while (strlen(copy) > 1 && copy[strlen(copy) - 1] == '/')
		copy[strlen(copy) - 1] = 0;
	slash = strrchr(copy, '/');
	if (strcmp(copy, "/") == 0 || strcmp(slash ? slash + 1 : copy, ".") == 0 ||
	    strcmp(slash ? slash + 1 : copy, "..") == 0) {
		real = realpath(copy, NULL);
		if (!real)
			return err_sys(err, errno, "cannot find the directory \"%s\"", given);
		*ret = arena_cstr(cli->ctx.arena, str_of(real));
		free(real);
		return 0;
	}
	if (slash)
		*slash = 0;
	real = realpath(!slash ? "." : *copy ? copy : "/", NULL);
	if (!real)
		return err_sys(err, errno, "cannot find the directory \"%s\"", given);
	*ret = arena_printf(cli->ctx.arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, slash ? slash + 1 : copy).ptr;
	free(real);
	return 0;
}

/* What a dead process left there goes. A link is followed now that something answers. */
static int clear_dir(struct cli *cli, const char **dir, struct err *err)
{
	struct stat st;
	pid_t pid;
	char *real;

	switch (fuse_mount_state(*dir, &pid)) {
	case FUSE_SERVED:
		return err_set(err, ERR_EXISTS, "\"%s\" is already mounted; unmount it first: stead umount %s", *dir,
			       *dir);
	case FUSE_DEAD:
		if (fuse_unmount(*dir, true, err) != 0)
			return -err->kind;
		break;
	case FUSE_NOT_OURS:
		break;
	}
	if (stat(*dir, &st) != 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no directory \"%s\" to mount on; create it first: mkdir %s", *dir, *dir);
	if (stat(*dir, &st) != 0)
		return err_sys(err, errno, "cannot mount on \"%s\"", *dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "\"%s\" is not a directory", *dir);
	real = realpath(*dir, NULL);
	if (!real)
		return err_sys(err, errno, "cannot mount on \"%s\"", *dir);
	*dir = arena_cstr(cli->ctx.arena, str_of(real));
	free(real);
	return 0;
}

/* --- the process that serves --- */

struct starting {
	struct cli *cli;
	const char *dir;
	int tell; /* the command waits for a struct err from here; -1: there is no other process */
};

/* Kind 0: the files can be used. */
static void tell(struct starting *s, const struct err *err)
{
	if (s->tell >= 0) {
		(void)!write(s->tell, err, sizeof *err);
		close(s->tell);
	}
	s->tell = -1;
}

static void print_mounted(struct cli *cli, const char *dir)
{
	struct jv *value = jv_object(cli->ctx.arena);

	jv_set_str(cli->ctx.arena, value, "mounted", str_of(dir));
	if (!cli_json(cli, value))
		output_printf(&cli->out, "mounted at %s; to unmount it: stead umount %s\n", dir, dir);
	output_flush(&cli->out);
}

static void on_ready(void *arg)
{
	struct starting *s = arg;
	int null;

	if (s->tell < 0) {
		print_mounted(s->cli, s->dir);
		return;
	}
	tell(s, &(struct err){0});
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		close(null);
}

static int serve(struct starting *s, bool foreground, struct err *err)
{
	struct cli *cli = s->cli;
	struct mount_opts opts = {.dir = s->dir, .says_lost = foreground};
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	cli->relaxed = true; /* as in any file system, fsync() is what waits for the disk */
	cli->with_git = true;
	opts.at = args_get(&cli->args, "at");
	opts.read_only = args_has(&cli->args, "read-only");
	r = cli_open(cli, opts.at.len || opts.read_only ? CLI_READS : CLI_WRITES, err);
	if (r == 0)
		r = cli_path(cli, args_get(&cli->args, "path"), &opts.path, err);
	if (r == 0) {
		FD_SCOPE int stop = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);

		r = mount_serve(cli->ws, &cli->ctx, &opts, stop, on_ready, s, err);
	}
	return r;
}

/* In the background: a process of its own, in a session of its own, in the root directory. */
static int serve_apart(struct cli *cli, const char *dir, struct err *err)
{
	struct starting s = {.cli = cli, .dir = dir};
	struct err told = {0};
	int ends[2], r;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		return err_sys(err, errno, "cannot start a process that serves \"%s\"", dir);
	if (pid == 0) {
		close(ends[0]);
		s.tell = ends[1];
		(void)setsid();
		r = serve(&s, false, err);
		if (r)
			tell(&s, err);
		cli->status = 0;
		return s.tell >= 0 ? r : 0;
	}
	close(ends[1]);
	while ((n = read(ends[0], &told, sizeof told)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	if (n == (ssize_t)sizeof told && !told.kind) {
		print_mounted(cli, dir);
		return 0;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof told)
		return err_set(err, ERR_UNAVAILABLE, "the process that was to serve \"%s\" ended unexpectedly", dir);
	*err = told;
	return -(int)told.kind;
}

static int run_mount(struct cli *cli, struct err *err)
{
	struct starting s = {.cli = cli, .tell = -1};
	int r = find_dir(cli, args_operand(&cli->args, 0), &s.dir, err);

	if (r == 0)
		r = clear_dir(cli, &s.dir, err);
	if (r)
		return r;
	return args_has(&cli->args, "foreground") ? serve(&s, true, err) : serve_apart(cli, s.dir, err);
}

/* --- unmounting --- */

/* When it has ended, everything is written. */
static int wait_end(const char *dir, pid_t pid, struct err *err)
{
	FD_SCOPE int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (fd >= 0 && poll(&wait, 1, END_MS) == 0)
		return err_set(err, ERR_TIMEOUT, "\"%s\" is unmounted, but process %d still writes to the store", dir,
			       (int)pid);
	return 0;
}

static int run_umount(struct cli *cli, struct err *err)
{
	const char *dir;
	enum fuse_state state;
	pid_t pid;
	char *real;
	int r = find_dir(cli, args_operand(&cli->args, 0), &dir, err);

	if (r)
		return r;
	state = fuse_mount_state(dir, &pid);
	real = state == FUSE_NOT_OURS ? realpath(dir, NULL) : NULL;
	if (real) {
		dir = arena_cstr(cli->ctx.arena, str_of(real));
		state = fuse_mount_state(dir, &pid);
		free(real);
	}
	r = fuse_unmount(dir, state == FUSE_DEAD || args_has(&cli->args, "force"), err);
	if (r == -ERR_UNAVAILABLE)
		cli->hint = "--force unmounts it anyway; programs that use it get errors";
	return r || state != FUSE_SERVED ? r : wait_end(dir, pid, err);
}

static const struct option mount_options[] = {
	{"path", 'p', "PATH", .help = "mount only this directory of the files", .complete = COMPLETE_PATH},
	{"at", 0, "REVISION", .help = "mount the files as they were after this revision or checkpoint, read-only"},
	{"read-only", 'r', NULL, .help = "allow no changes through the mount"},
	{"foreground", 'f', NULL, .help = "serve until it is unmounted, and print what goes wrong"},
	{0},
};

static const struct option umount_options[] = {
	{"force", 'f', NULL, .help = "even while it is in use; programs that wait for it get an error"},
	{0},
};

const struct command mount_commands[] = {
	{"mount", "show the files as a directory on this machine", TOPIC_FILES, "DIR", .run = run_mount,
	 .complete = COMPLETE_HOST_DIR, .options = mount_options, .by_person = true,
	 .about = "Mounts the workspace's files on a directory, whatever store they are in, so that any program can\n"
		  "work on them: editors, git, rg, sqlite. What a program writes becomes a revision when it closes\n"
		  "the file, under the rules for tools; changes by others show up. Protected files such as .env do\n"
		  "not appear and cannot be created. The command returns when the files can be used; a background\n"
		  "process serves them until 'stead umount DIR'. docs/mount.md has the details.\n",
	 .examples = "stead mount /mnt\n  the files of the workspace \"default\"\n"
		     "stead mount -w demo --path reports --read-only /mnt\n  part of another workspace\n"
		     "stead mount --at before-refactoring /mnt\n  the files at a checkpoint\n"
		     "stead mount --root task:TASK-1 /mnt\n  what a task sees as /task, including its mounts\n"},
	{"umount", "end a mount", TOPIC_FILES, "DIR", .run = run_umount, .complete = COMPLETE_HOST_DIR,
	 .options = umount_options,
	 .about = "Unmounts what 'stead mount' mounted, and waits until everything is written. It also removes what\n"
		  "a killed process left behind.\n",
	 .examples = "stead umount /mnt\n  if nothing uses it\nstead umount --force /mnt\n  in any case\n"},
	{0},
};
