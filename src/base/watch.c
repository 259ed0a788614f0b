/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"

bool watch_sees_all(const char *dir)
{
	static const unsigned long good[] = {
		0xEF53,     /* ext4 */
		0x58465342, /* XFS */
		0x9123683E, /* Btrfs */
		0x01021994, /* tmpfs */
		0x2FC12FC1, /* ZFS */
		0xF2F52010, /* F2FS */
		0x794C7630, /* overlayfs */
	};
	struct statfs fs;

	if (statfs(dir, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (good[i] == (unsigned long)fs.f_type)
			return true;
	return false;
}

bool watch_open(struct watch *w, const char *root)
{
	*w = (struct watch){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	if (w->fd >= 0)
		w->root = xstrndup(str_of(root));
	return w->fd >= 0;
}

void watch_close(struct watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < w->cap; i++)
		free(w->dirs[i]);
	free(w->dirs);
	free(w->root);
}

/* dir/name, or one of them when the other is empty. False, with errno: it does not fit. */
static bool join(char *out, size_t size, const char *dir, const char *name)
{
	errno = ENAMETOOLONG;
	return snprintf(out, size, "%s%s%s", dir, dir[0] && name[0] ? "/" : "", name) < (int)size;
}

bool watch_add_above(struct watch *w, uint32_t events)
{
	char above[PATH_LEN_MAX * 4];
	bool is_missing = join(above, sizeof(above), w->root, "");
	char *slash;

	while (is_missing && (slash = strrchr(above, '/'))) {
		slash[slash == above] = '\0'; /* of "/name" the '/' is the directory */
		if (inotify_add_watch(w->fd, above, events | IN_ONLYDIR | IN_ONESHOT) >= 0)
			return true;
		is_missing = errno == ENOENT && slash != above;
	}
	return false;
}

int watch_add(struct watch *w, const char *below, uint32_t events)
{
	uint32_t mask = events | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;
	char whole[PATH_LEN_MAX * 4];
	int wd = join(whole, sizeof(whole), w->root, below) ? inotify_add_watch(w->fd, whole, mask) : -1;

	if (wd < 0)
		return errno;
	if ((size_t)wd >= w->cap) {
		size_t cap = 2 * (size_t)wd + 64;

		w->dirs = xrealloc(w->dirs, cap * sizeof(char *));
		memset(w->dirs + w->cap, 0, (cap - w->cap) * sizeof(char *));
		w->cap = cap;
	}
	w->count += !w->dirs[wd];
	free(w->dirs[wd]);
	w->dirs[wd] = xstrndup(str_of(below));
	return 0;
}

int watch_add_tree(struct watch *w, const char *below, const struct watch_tree *how, unsigned depth)
{
	char whole[PATH_LEN_MAX * 4], sub[PATH_LEN_MAX + 1];
	int r = w->count >= how->dirs_max ? ENOSPC : watch_add(w, below, how->events);
	DIR *dir;

	if (r || depth == 0 || !join(whole, sizeof(whole), w->root, below))
		return r;
	dir = opendir(whole);
	for (struct dirent *e; dir && r != ENOSPC && r != ENOMEM && (e = readdir(dir));)
		if (e->d_type == DT_DIR && !how->skips(e->d_name) && join(sub, sizeof(sub), below, e->d_name)) {
			int one = watch_add_tree(w, sub, how, depth - 1);

			r = one && one != ENOENT && one != ENOTDIR ? one : r;
		}
	if (dir)
		closedir(dir);
	return r;
}

static void take_one(struct watch *w, const struct inotify_event *e, watch_take take, void *arg)
{
	char *dir = e->wd >= 0 && (size_t)e->wd < w->cap ? w->dirs[e->wd] : NULL, path[PATH_LEN_MAX + 1];

	if (dir && (e->mask & IN_IGNORED)) {
		w->dirs[e->wd] = NULL;
		w->count--;
	}
	take(arg, e, dir && e->len && join(path, sizeof(path), dir, e->name) ? path : NULL);
	if (e->mask & IN_IGNORED)
		free(dir);
}

bool watch_read(struct watch *w, watch_take take, void *arg)
{
	char buf[16 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(w->fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			take_one(w, e, take, arg);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	return n < 0 && errno == EAGAIN;
}
