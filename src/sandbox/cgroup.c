/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits over all processes of a command together. Only a cgroup has them; where none is lent to us, each process has
 * its own limit instead, and the result says so. Version 1 has a tree per controller and lets root make a group below
 * its own. Version 2 has one tree; a group that has processes cannot lend its controllers to groups below it, so ours
 * is made next to the one that Stead is in, where the parent is delegated (as systemd does for users).
 *
 * A group is named after the process that made it. What a killed Stead left is removed by the next one that makes a
 * group.
 *
 * Processes are counted only where RLIMIT_NPROC does not do it: a command with a user namespace of its own is the only
 * one that the kernel counts there, and a second group would cost a tenth of a millisecond for each command.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/sandbox_internal.h"

#define TREE "/sys/fs/cgroup"
#define NAME "stead-"

static bool put(const char *dir, const char *file, uint64_t value)
{
	char path[600], text[32];
	int n = snprintf(text, sizeof text, "%llu", (unsigned long long)value);

	snprintf(path, sizeof path, "%s/%s", dir, file);
	{
		FD_SCOPE int fd = open(path, O_WRONLY | O_CLOEXEC);

		return fd >= 0 && write(fd, text, (size_t)n) == n;
	}
}

static size_t get(const char *dir, const char *file, char *text, size_t size)
{
	char path[600];
	ssize_t n;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	{
		FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : read(fd, text, size - 1);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* This process's group for a controller ("" is version 2). */
static bool own_group(const char *controller, char *ret, size_t size)
{
	char text[4096];
	struct str rest, line, id, names, path;

	rest = str_n(text, get("/proc/self", "cgroup", text, sizeof text));
	while (str_cut(&rest, '\n', &line)) {
		path = line;
		if (str_cut(&path, ':', &id) && str_cut(&path, ':', &names) && str_is(names, controller) &&
		    path.len < size) {
			snprintf(ret, size, "%.*s", STR_ARG(path));
			return true;
		}
	}
	return false;
}

/* Groups of processes that are gone. */
static void sweep(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, NAME, sizeof NAME - 1) == 0) {
			long pid = strtol(e->d_name + sizeof NAME - 1, NULL, 10);

			if (pid > 1 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
				(void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
		}
	if (dir)
		closedir(dir);
}

static bool make_in(const char *parent, char ret[512])
{
	int n = snprintf(ret, 512, "%s/" NAME "%d-%016llx", parent, (int)getpid(), (unsigned long long)random_u64());

	if (n > 0 && n < 512 && access(parent, W_OK) == 0 && mkdir(ret, 0755) == 0)
		return true;
	ret[0] = 0;
	return false;
}

static void make_v1(struct cgroup *group, size_t which, const char *controller, const char *file, uint64_t value)
{
	char own[256], parent[400];

	if (!value || !own_group(controller, own, sizeof own))
		return;
	snprintf(parent, sizeof parent, TREE "/%s%s", controller, strcmp(own, "/") == 0 ? "" : own);
	sweep(parent);
	if (make_in(parent, group->dirs[which]) && !put(group->dirs[which], file, value)) {
		rmdir(group->dirs[which]);
		group->dirs[which][0] = 0;
	}
}

static bool make_v2(struct cgroup *group, uint64_t memory, uint64_t processes)
{
	char own[256], parent[400], lent[256], *slash;

	if (access(TREE "/cgroup.controllers", F_OK) != 0 || !own_group("", own, sizeof own))
		return false;
	slash = strrchr(own, '/');
	if (slash)
		*slash = 0; /* the group above ours */
	snprintf(parent, sizeof parent, TREE "%s", own);
	get(parent, "cgroup.subtree_control", lent, sizeof lent);
	if (!strstr(lent, "memory") || (processes && !strstr(lent, "pids")))
		return true;
	sweep(parent);
	group->is_v2 = true;
	if (make_in(parent, group->dirs[0])) {
		(void)put(group->dirs[0], "memory.swap.max", 0);
		if (!put(group->dirs[0], "memory.max", memory) ||
		    (processes && !put(group->dirs[0], "pids.max", processes)))
			cgroup_remove(group);
	}
	return true;
}

void cgroup_make(struct cgroup *group, uint64_t memory, uint64_t processes)
{
	*group = (struct cgroup){0};
	if (make_v2(group, memory, processes))
		return;
	make_v1(group, 0, "memory", "memory.limit_in_bytes", memory);
	if (group->dirs[0][0])
		(void)put(group->dirs[0], "memory.memsw.limit_in_bytes", memory);
	make_v1(group, 1, "pids", "pids.max", processes);
}

bool cgroup_open(const struct cgroup *group, int ret[2])
{
	char path[600];
	bool ok = true;

	for (size_t i = 0; i < COUNT(group->dirs); i++) {
		ret[i] = -1;
		if (!group->dirs[i][0] || group->is_v2)
			continue;
		snprintf(path, sizeof path, "%s/tasks", group->dirs[i]);
		ret[i] = open(path, O_WRONLY | O_CLOEXEC);
		ok &= ret[i] >= 0;
	}
	return ok;
}

bool cgroup_add(const struct cgroup *group, pid_t pid)
{
	bool ok = true;

	for (size_t i = 0; group->is_v2 && i < COUNT(group->dirs); i++)
		if (group->dirs[i][0])
			ok &= put(group->dirs[i], "cgroup.procs", (uint64_t)pid);
	return ok;
}

bool cgroup_has_memory(const struct cgroup *group)
{
	return group->dirs[0][0] != 0;
}

bool cgroup_was_out_of_memory(const struct cgroup *group)
{
	char text[1024];
	const char *at;

	if (!group->dirs[0][0] || (!get(group->dirs[0], "memory.events", text, sizeof text) &&
				   !get(group->dirs[0], "memory.oom_control", text, sizeof text)))
		return false;
	at = strstr(text, "oom_kill ");
	return at && strtoul(at + 9, NULL, 10) > 0;
}

/* The last process may need a moment to leave it. */
void cgroup_remove(struct cgroup *group)
{
	struct timespec moment = {0, 1000000};

	for (size_t i = 0; i < COUNT(group->dirs); i++) {
		for (int tries = 0; group->dirs[i][0] && rmdir(group->dirs[i]) != 0 && errno == EBUSY && tries < 200;
		     tries++)
			nanosleep(&moment, NULL);
		group->dirs[i][0] = 0;
	}
}
