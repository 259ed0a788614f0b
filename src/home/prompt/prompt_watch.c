/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether anything happened in a few directories since the last turn, for the price of one read that finds nothing. The
 * kernel queues an event before the change returns to whoever made it, so what an editor or another process has
 * finished is known. Events only say "look again", so a lost or doubled one does no harm.
 *
 * It is not used on file systems that change without this kernel (network, FUSE), nor when there are no instances or
 * watches left. Then files are looked at one by one at each turn. A file that is changed through another hard link to
 * it, or through mapped memory, is noticed with the next change in its directory.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "home/prompt/prompt_internal.h"

#define INSTANCES_MAX 32   /* of one process: a person has few, and other programs need them too */
#define DIRS_MAX      1024 /* watches of one workspace */
#define DEPTH_MAX     16

#define COMES_AND_GOES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
#define CHANGES        (COMES_AND_GOES | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)
#define HOW            (IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD)

static atomic_int instances;

struct prompt_watch {
	int fd;
	char *dir;
	char **dirs; /* by watch number: the path below dir; NULL: none */
	size_t cap;
	size_t added; /* in this round */
	bool full;
};

static bool is_trusted(const char *dir)
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

struct prompt_watch *prompt_watch_new(const char *dir)
{
	struct prompt_watch *w;
	int fd = atomic_load(&instances) < INSTANCES_MAX && strlen(dir) <= PATH_LEN_MAX * 2 && is_trusted(dir)
			 ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
			 : -1;

	if (fd < 0)
		return NULL;
	atomic_fetch_add(&instances, 1);
	w = xcalloc(1, sizeof *w);
	w->fd = fd;
	w->dir = xstrndup(str_of(dir));
	return w;
}

void prompt_watch_destroy(struct prompt_watch *w)
{
	if (!w)
		return;
	atomic_fetch_sub(&instances, 1);
	close(w->fd);
	for (size_t i = 0; i < w->cap; i++)
		free(w->dirs[i]);
	free(w->dirs);
	free(w->dir);
	free(w);
}

/* `whole` is the path with the directory before it. */
static void remember(struct prompt_watch *w, size_t wd, const char *whole)
{
	const char *below = whole + strlen(w->dir);

	while (wd >= w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 128;

		w->dirs = xrealloc(w->dirs, cap * sizeof(char *));
		memset(w->dirs + w->cap, 0, (cap - w->cap) * sizeof(char *));
		w->cap = cap;
	}
	while (*below == '/')
		below++;
	if (w->dirs[wd] && strcmp(w->dirs[wd], below) == 0)
		return;
	free(w->dirs[wd]);
	w->dirs[wd] = xstrndup(str_of(below));
}

static bool add_one(struct prompt_watch *w, const char *whole, uint32_t events)
{
	int wd = inotify_add_watch(w->fd, whole, events | HOW);

	if ((wd < 0 && errno != ENOENT && errno != ENOTDIR) || ++w->added > DIRS_MAX)
		w->full = true;
	if (wd >= 0)
		remember(w, (size_t)wd, whole);
	return wd >= 0;
}

void prompt_watch_begin(struct prompt_watch *w)
{
	w->added = 0;
	w->full = false;
}

/* A directory is watched before it is read: one that is made in it afterwards is an event. */
static void add_below(struct prompt_watch *w, const char *whole, unsigned depth)
{
	char sub[PATH_LEN_MAX * 4];
	DIR *dir;

	if (!add_one(w, whole, CHANGES) || depth == 0 || w->full)
		return;
	dir = opendir(whole);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    snprintf(sub, sizeof sub, "%s/%s", whole, e->d_name) < (int)sizeof sub)
			add_below(w, sub, depth - 1);
	if (dir)
		closedir(dir);
}

void prompt_watch_add(struct prompt_watch *w, struct str path, bool with_below)
{
	char whole[PATH_LEN_MAX * 4];
	int base = snprintf(whole, sizeof whole, "%s", w->dir);

	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] != '/')
			continue;
		snprintf(whole + base, sizeof whole - (size_t)base, "/%.*s", STR_ARG(str_first(path, i)));
		add_one(w, whole, COMES_AND_GOES);
	}
	snprintf(whole + base, sizeof whole - (size_t)base, "/%.*s", STR_ARG(path));
	add_below(w, whole, with_below ? DEPTH_MAX : 0);
}

/* A file that changed in a directory that is known; anything else that happens is about directories. */
static bool take_event(struct prompt_watch *w, struct arena *arena, const struct inotify_event *e,
		       struct prompt_news *news)
{
	const char *dir = e->wd >= 0 && (size_t)e->wd < w->cap ? w->dirs[e->wd] : NULL;
	struct str path;

	if (dir && e->len && (e->name[0] == '.' || ((e->mask & IN_ISDIR) && !(e->mask & COMES_AND_GOES))))
		return true; /* unfinished, Stead's own, or not read at all */
	if (!dir || !e->len || (e->mask & (IN_ISDIR | IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT)))
		return false;
	path = arena_printf(arena, "%s%s%s", dir, dir[0] ? "/" : "", e->name);
	if (!news->count || !str_eq(news->paths[news->count - 1], path)) {
		if (news->count == sizeof news->paths / sizeof news->paths[0])
			return false;
		news->paths[news->count] = path;
		news->came[news->count++] = false;
	}
	news->came[news->count - 1] |= (e->mask & COMES_AND_GOES) != 0;
	return true;
}

void prompt_watch_ask(struct prompt_watch *w, struct arena *arena, struct prompt_news *ret)
{
	char buf[16 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	*ret = (struct prompt_news){0};
	while ((n = read(w->fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			ret->anything = ret->anything || !take_event(w, arena, e, ret);
			at += (ssize_t)(sizeof *e + e->len);
		}
	ret->anything = ret->anything || w->full || n == 0 || errno != EAGAIN;
}
