/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounting and unmounting. Root asks the kernel itself. Another user asks fusermount3, which Debian installs for that;
 * it hands the descriptor back over a socket.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/fuse/fuse.h"

#define TYPE "fuse.stead"

static int open_device(struct err *err)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return err_set(
			err, ERR_UNSUPPORTED,
			"this machine has no /dev/fuse; load the kernel module fuse, or give the container the device");
	return fd < 0 ? err_sys(err, errno, "cannot open /dev/fuse") : fd;
}

/* --- by fusermount3 --- */

/* The exit code of fusermount3; -1: it could not be run. `socket` becomes its descriptor 3. What it says, without its
   name and without the end of the line, is in `said`. */
static int run_helper(char *const *argv, int socket, char *said, size_t size)
{
	posix_spawn_file_actions_t actions;
	char *env[] = {"_FUSE_COMMFD=3", "PATH=/usr/bin:/bin", NULL};
	FD_SCOPE int file = memfd_create("stead", MFD_CLOEXEC);
	int status = -1, r;
	ssize_t n;
	pid_t pid;

	said[0] = 0;
	if (file < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, file, 2);
	if (socket >= 0)
		posix_spawn_file_actions_adddup2(&actions, socket, 3);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	n = pread(file, said, size - 1, 0);
	said[n > 0 ? n : 0] = 0;
	said[strcspn(said, "\n")] = 0;
	if (strncmp(said, "fusermount3: ", 13) == 0)
		memmove(said, said + 13, strlen(said + 13) + 1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int receive_fd(int from)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} data;
	char byte;
	int fd = -1;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = data.room, .msg_controllen = sizeof data.room};

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) > 0 && CMSG_FIRSTHDR(&msg) &&
	    CMSG_FIRSTHDR(&msg)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
	return fd;
}

static int mount_by_helper(const char *dir, const char *source, bool read_only, int *ret_dev, struct err *err)
{
	char opts[512], said[200];
	char *argv[] = {"fusermount3", "-o", opts, "--", (char *)dir, NULL};
	int ends[2], code, fd;

	snprintf(opts, sizeof opts, "%s,nosuid,nodev,default_permissions,subtype=stead,fsname=%s",
		 read_only ? "ro" : "rw", source);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return err_sys(err, errno, "cannot mount \"%s\"", dir);
	code = run_helper(argv, ends[1], said, sizeof said);
	fd = code == 0 ? receive_fd(ends[0]) : -1;
	close(ends[0]);
	close(ends[1]);
	if (code < 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "a user needs the program fusermount3 to mount; install the package fuse3");
	if (fd < 0)
		return err_set(
			err, ERR_DENIED,
			"fusermount3 refused to mount \"%s\" (%s); the directory must be yours, and /dev/fuse open to "
			"users",
			dir, *said ? said : "it gave no reason");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*ret_dev = fd;
	return 0;
}

/* --- by root --- */

int fuse_mount(const char *dir, const char *source, bool read_only, int *ret_dev, struct err *err)
{
	char opts[160];
	int fd;

	if (geteuid() != 0)
		return mount_by_helper(dir, source, read_only, ret_dev, err);
	fd = open_device(err);
	if (fd < 0)
		return fd;
	snprintf(opts, sizeof opts, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd);
	if (mount(source, dir, TYPE, MS_NOSUID | MS_NODEV | (read_only ? MS_RDONLY : 0UL), opts) != 0) {
		int sys = errno;

		close(fd);
		return err_sys(err, sys, "cannot mount over \"%s\"", dir);
	}
	*ret_dev = fd;
	return 0;
}

static bool configure(int fs, const char *key, uint64_t value, bool octal)
{
	char text[32];

	snprintf(text, sizeof text, octal ? "%llo" : "%llu", (unsigned long long)value);
	return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, text, 0) == 0;
}

int fuse_mount_detached(uid_t uid, gid_t gid, int *ret_dev, int *ret_tree, struct err *err)
{
	int dev = geteuid() == 0 ? open_device(err)
				 : err_set(err, ERR_UNSUPPORTED, "only root can mount without a directory");
	FD_SCOPE int fs = dev >= 0 ? (int)syscall(SYS_fsopen, "fuse", FSOPEN_CLOEXEC) : -1;
	int tree = -1, sys;

	if (dev < 0)
		return dev;
	if (fs >= 0 && configure(fs, "fd", (uint64_t)dev, false) && configure(fs, "rootmode", 040000, true) &&
	    configure(fs, "user_id", uid, false) && configure(fs, "group_id", gid, false) &&
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "source", "stead", 0) == 0 &&
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "allow_other", NULL, 0) == 0 &&
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "default_permissions", NULL, 0) == 0 &&
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
				    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0) {
		sys = errno;
		close(dev);
		return err_set(err, ERR_UNSUPPORTED, "the kernel refused to mount: %s", strerrordesc_np(sys));
	}
	*ret_dev = dev;
	*ret_tree = tree;
	return 0;
}

/* --- what is mounted --- */

/* Mount points are written with \040 and the like in them. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++)
		if (s[0] == '\\' && isdigit((unsigned char)s[1]) && isdigit((unsigned char)s[2]) &&
		    isdigit((unsigned char)s[3])) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	*to = 0;
}

/* One line of mountinfo: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE …". */
static bool read_line(char *line, const char *dir, unsigned *ret_minor, pid_t *ret_pid)
{
	char *part[6], *rest = line, *type, *source, *pid;
	unsigned major;

	for (size_t i = 0; i < COUNT(part); i++)
		if (!(part[i] = strsep(&rest, " ")))
			return false;
	type = rest ? strstr(rest, "- ") : NULL;
	unescape(part[4]);
	if (!type || strcmp(part[4], dir) != 0 || strncmp(type + 2, TYPE " ", sizeof TYPE) != 0 ||
	    sscanf(part[2], "%u:%u", &major, ret_minor) != 2) /* NOLINT(cert-err34-c): the kernel writes it */
		return false;
	source = type + 2 + sizeof TYPE;
	source[strcspn(source, " \n")] = 0;
	pid = strrchr(source, '@');
	*ret_pid = pid ? (pid_t)strtol(pid + 1, NULL, 10) : 0;
	return true;
}

/* The last one is the one on top. */
static bool find_mount(const char *dir, unsigned *ret_minor, pid_t *ret_pid)
{
	FILE *list = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	unsigned minor;
	pid_t pid;

	while (list && getline(&line, &cap, list) > 0)
		if (read_line(line, dir, &minor, &pid)) {
			found = true;
			*ret_minor = minor;
			*ret_pid = pid;
		}
	free(line);
	if (list)
		fclose(list);
	return found;
}

enum fuse_state fuse_mount_state(const char *dir, pid_t *ret_pid)
{
	unsigned minor;
	struct stat st;

	*ret_pid = 0;
	if (!find_mount(dir, &minor, ret_pid))
		return FUSE_NOT_OURS;
	return stat(dir, &st) != 0 && (errno == ENOTCONN || errno == ECONNABORTED) ? FUSE_DEAD : FUSE_SERVED;
}

/* Calls that wait for an answer fail from now on. */
static void abort_connection(unsigned minor)
{
	char path[64];

	snprintf(path, sizeof path, "/sys/fs/fuse/connections/%u/abort", minor);
	{
		FD_SCOPE int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0)
			(void)!write(fd, "1", 1);
	}
}

int fuse_unmount(const char *dir, bool lazily, struct err *err)
{
	char *argv[] = {"fusermount3", "-u", lazily ? "-z" : "-q", "--", (char *)dir, NULL}, said[200];
	unsigned minor = 0;
	pid_t pid;
	int sys;

	if (!find_mount(dir, &minor, &pid))
		return err_set(err, ERR_NOT_FOUND, "Stead has nothing mounted at \"%s\"", dir);
	if (lazily)
		abort_connection(minor);
	sys = umount2(dir, lazily ? MNT_DETACH : 0) == 0 ? 0 : errno;
	if (sys == EPERM && run_helper(argv, -1, said, sizeof said) == 0)
		sys = 0;
	else if (sys == EPERM)
		sys = EBUSY;
	if (sys == EBUSY)
		return err_set(err, ERR_UNAVAILABLE,
			       "\"%s\" is in use; close the files under it and leave its directories", dir);
	return sys ? err_sys(err, sys, "cannot unmount \"%s\"", dir) : 0;
}
