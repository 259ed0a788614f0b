/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory on the host for tiers that cannot mount an overlay: a copy of the files, and what the command needs
 * besides them. It is named after the process that made it; what a killed Stead left is removed by the next one that
 * makes such a directory.
 *
 * Such a directory has no limit of its own. So the room of its file system is looked at while the command runs, which
 * costs one call of the kernel, and only when it shrinks is the directory added up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "sandbox/sandbox_internal.h"

#define UIDS_NEEDED UINT32_C(2000000000)

/* The range of ids that begins with `from` in this user namespace; *ret_outside is what `from` is in the one above. */
static uint32_t mapped_ids(uint32_t from, uint32_t *ret_outside)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count, found = 0;

	*ret_outside = from;
	while (map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3) /* NOLINT(cert-err34-c): the kernel's */
		if (from >= inside && from - inside < count) {
			*ret_outside = outside + (from - inside);
			found = count - (from - inside);
		}
	if (!map)
		return UINT32_MAX;
	fclose(map);
	return found;
}

bool user_is_root(void)
{
	uint32_t ignored;

	return geteuid() == 0 && mapped_ids(0, &ignored) >= UIDS_NEEDED;
}

bool user_is_lonely_root(void)
{
	uint32_t outside;

	return geteuid() == 0 && mapped_ids(0, &outside) < UIDS_NEEDED && outside == 0;
}

uint64_t user_threads(void)
{
	DIR *dir = opendir("/proc");
	uint64_t count = 0;
	struct dirent *e;
	char path[300];
	struct stat st;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "%s/task", e->d_name);
		if (fstatat(dirfd(dir), path, &st, 0) == 0 && st.st_uid == geteuid() && st.st_nlink > 2)
			count += st.st_nlink - 2; /* a directory for each of them */
	}
	if (dir)
		closedir(dir);
	return count;
}

#define NAME      "stead-sandbox-"
#define DEPTH_MAX 200

static void remove_in(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			work_remove(fd, e->d_name);
	if (dir)
		closedir(dir);
}

void work_remove(int at, const char *name)
{
	int fd;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return;
	(void)fchmodat(at, name, 0700, 0);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		remove_in(fd);
	(void)unlinkat(at, name, AT_REMOVEDIR);
}

/* Directories of processes that are gone. */
static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *e;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, NAME, sizeof NAME - 1) == 0) {
			long pid = strtol(e->d_name + sizeof NAME - 1, NULL, 10);

			if (pid > 1 && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
			    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
			    (geteuid() == 0 || st.st_uid == geteuid()))
				work_remove(dirfd(dir), e->d_name);
		}
	if (dir)
		closedir(dir);
}

int work_make(struct arena *arena, bool becomes, uid_t uid, gid_t gid, const char **ret, struct err *err)
{
	static const char *const parts[] = {"", "/files", "/tmp", "/home"};
	const char *tmp = env_process("TMPDIR");
	char *dir;

	if (!tmp)
		tmp = "/tmp";
	sweep(tmp);
	dir = (char *)arena_printf(arena, "%s/" NAME "%d-XXXXXX", tmp, (int)getpid()).ptr;
	if (!mkdtemp(dir))
		return err_sys(err, errno, "cannot make a directory for the command");
	*ret = dir;
	for (size_t i = 0; i < COUNT(parts); i++) {
		const char *path = arena_printf(arena, "%s%s", dir, parts[i]).ptr;

		if ((i && mkdir(path, 0755) != 0) || (becomes && chown(path, uid, gid) != 0))
			return err_sys(err, errno, "cannot make a directory for the command");
	}
	return 0;
}

uint64_t work_room(const char *work)
{
	struct statvfs st;

	return statvfs(work, &st) == 0 ? (uint64_t)st.f_bfree * st.f_frsize : UINT64_MAX;
}

static uint64_t used_in(int at, const char *name, unsigned depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t used = 0;
	struct dirent *e;
	struct stat st;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		used += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			used += used_in(fd, e->d_name, depth + 1);
	}
	if (dir)
		closedir(dir);
	return used;
}

uint64_t work_used(const char *work)
{
	return used_in(AT_FDCWD, work, 0);
}
