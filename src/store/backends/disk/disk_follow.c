/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens in large directories whose names are kept (disk_kept.c), told by inotify. To read 100,000 names again
 * because one was added takes 30 ms and more; the event that says which one takes a microsecond. The kernel queues an
 * event before the call that made the change returns, whichever process made it. So who reads the queue now knows of
 * every change that was finished before.
 *
 * A watch is set before the names are read. An event from the time of the reading may be about a name that was read
 * already, or is gone already: adding a name that is there and removing one that is not change nothing, and for each
 * name the last event is right.
 *
 * Names are with one list at a time. Events about names that are with a list cannot be given to them, and are counted:
 * the list then does not put its names back. Where nothing can be watched, or the queue has overflowed, the names are
 * read again.
 */
#include <dirent.h>
#include <sys/inotify.h>

#include "store/backends/disk/disk.h"

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR)
#define GONE    (IN_DELETE | IN_MOVED_FROM)

void disk_follow_init(struct disk_follow *f)
{
	*f = (struct disk_follow){.fd = -1};
}

void disk_follow_release(struct disk_follow *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int disk_follow_watch(struct disk_follow *f, int dir)
{
	char path[40];
	int watch;

	if (f->fd < 0 && !f->failed) {
		f->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		f->failed = f->fd < 0;
	}
	if (f->fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	watch = inotify_add_watch(f->fd, path, WATCHED);
	return watch > 0 ? watch : 0;
}

void disk_follow_unwatch(struct disk_follow *f, int watch)
{
	if (watch && f->fd >= 0)
		inotify_rm_watch(f->fd, watch);
}

bool disk_follow_read(struct disk_follow *f, void (*each)(void *arg, const struct inotify_event *event), void *arg)
{
	_Alignas(struct inotify_event) char buf[16 * 1024];
	bool complete = true;
	ssize_t n;

	while (f->fd >= 0 && (n = read(f->fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			if (e->mask & IN_Q_OVERFLOW)
				complete = false;
			else
				each(arg, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	return complete;
}

/* An event in the form in which it waits: 'd' or 'f', '+' or '-', the name, NUL. */
void disk_events_add(struct disk_events *events, const struct inotify_event *e)
{
	size_t len = e->len ? strlen(e->name) : 0;

	if (e->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT) || len == 0 || events->len > DISK_EVENTS_MAX) {
		events->lost = true;
		return;
	}
	if (disk_name_reserved(e->name))
		return;
	if (events->len + len + 3 > events->cap) {
		events->cap = 2 * events->cap + len + 1024;
		events->text = xrealloc(events->text, events->cap);
	}
	events->text[events->len++] = e->mask & IN_ISDIR ? 'd' : 'f';
	events->text[events->len++] = e->mask & GONE ? '-' : '+';
	memcpy(events->text + events->len, e->name, len + 1);
	events->len += len + 1;
}

/* What a file is now; false: it is not there, or it is a directory by now, of which a later event tells. */
static bool kind_now(int dir, const char *name, unsigned char *ret)
{
	struct stat st;

	if (disk_lstat(dir, name, &st) < 0 || S_ISDIR(st.st_mode))
		return false;
	*ret = (unsigned char)IFTODT(st.st_mode);
	return true;
}

bool disk_events_apply(struct disk_events *events, int dir, struct disk_names *names, disk_names_hook *hook, void *arg)
{
	bool ok = !events->lost;

	if (ok && events->len)
		disk_names_sort(names);
	for (size_t at = 0; ok && at < events->len;) {
		const char *name = events->text + at + 2;
		unsigned char type = events->text[at] == 'd' ? DT_DIR : DT_REG;

		if (events->text[at + 1] == '-')
			disk_names_remove(names, name, type, hook, arg);
		else if (type == DT_DIR || kind_now(dir, name, &type))
			ok = disk_names_put(names, name, type, hook, arg);
		at += 2 + strlen(name) + 1;
	}
	free(events->text);
	*events = (struct disk_events){0};
	return ok;
}
