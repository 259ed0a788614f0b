/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of this machine as the lower layer of a command's files. Root runs commands as a user that owns nothing,
 * so it makes a mount of the directory in which the files of its owner belong to that user. What must not be seen of it
 * is found by hidden.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/sandbox_internal.h"

/* --- a mount with other owners --- */

static bool write_map(pid_t pid, const char *file, unsigned from, unsigned to)
{
	char path[64], text[64];
	int n = snprintf(text, sizeof text, "%u %u 1", from, to);

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	{
		FD_SCOPE int fd = open(path, O_WRONLY | O_CLOEXEC);

		return fd >= 0 && write(fd, text, (size_t)n) == n;
	}
}

/* A user namespace that maps one id: the kernel takes the mapping of a mount from such a one. */
static int mapping(const struct stat *owner, uid_t uid, gid_t gid)
{
	char path[64];
	int hold[2], fd = -1;
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC) != 0)
		return -1;
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		char byte;

		close(hold[1]);
		_exit((int)!read(hold[0], &byte, 1));
	}
	close(hold[0]);
	if (pid > 0 && write_map(pid, "uid_map", owner->st_uid, uid) && write_map(pid, "gid_map", owner->st_gid, gid)) {
		snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(hold[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

/* The last one made, because it is nearly always the next one wanted. */
static int mapping_cached(const struct stat *owner, uid_t uid, gid_t gid)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int cached = -1;
	static uid_t from_uid, to_uid;
	static gid_t from_gid;
	int fd;

	pthread_mutex_lock(&lock);
	if (cached < 0 || from_uid != owner->st_uid || from_gid != owner->st_gid || to_uid != uid) {
		if (cached >= 0)
			close(cached);
		cached = mapping(owner, uid, gid);
		from_uid = owner->st_uid;
		from_gid = owner->st_gid;
		to_uid = uid;
	}
	fd = cached < 0 ? -1 : fcntl(cached, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&lock);
	return fd;
}

int lower_tree(const char *dir, uid_t uid, gid_t gid)
{
	struct mount_attr attr = {.attr_set =
					  MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	struct stat st;
	int tree;

	if (stat(dir, &st) != 0)
		return -1;
	{
		FD_SCOPE int map = mapping_cached(&st, uid, gid);

		if (map < 0)
			return -1;
		attr.userns_fd = (uint64_t)map;
		tree = (int)syscall(SYS_open_tree, AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (tree >= 0 && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
			close(tree);
			tree = -1;
		}
	}
	return tree;
}

int lower_clone(const char *dir)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree >= 0 && syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
		close(tree);
		tree = -1;
	}
	return tree;
}
