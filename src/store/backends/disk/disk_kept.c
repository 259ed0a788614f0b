/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a list begins after a cursor, and a directory cannot be read from a name on. Without a memory every page of
 * a large directory would read and sort all its names again. So the names are kept between two pages, as long as the
 * directory is as it was when they were read.
 *
 * Whether it is, its times tell, between processes too: whoever adds or removes a name sets them. A file system's clock
 * advances in steps of some milliseconds, and a change in the same step as the one before leaves the same times. So
 * names are kept only when the clock had moved on since the directory's last change before they were read. This holds
 * for the file systems of this kernel that have fine times; for the others nothing is kept.
 *
 * Very large directories are followed instead (disk_follow.c): what came and went since is known by name. So one change
 * does not cost a list of everything. There are at most KEPT_MAX watches.
 *
 * A list takes the names out and puts them back after its page, so no two threads ever share them. They are given up
 * after the last page.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/hash.h"
#include "store/backends/disk/disk.h"

#define KEPT_MAX       4
#define KEPT_NAMES_MIN 256                 /* fewer are read again */
#define KEPT_BYTES_MAX (48 * MIB)          /* in all; about a million names */
#define FOLLOWED_MIN   2048                /* fewer are read again in less than a millisecond */
#define FOLLOWED_SIZE  (FOLLOWED_MIN * 12) /* of a directory with so many names, at least */
#define DEAD_MAX       MIB                 /* text of names that went */

struct kept_names {
	struct disk_stamp stamp;
	struct disk_names names;
	struct disk_events events;
	size_t bytes; /* 0: the place is free */
	uint64_t used;
};

struct disk_kept {
	pthread_mutex_t lock;
	struct kept_names dirs[KEPT_MAX];
	struct disk_follow follow;
	uint64_t uses, missed;
	bool is_known; /* what follows; asked for at the first need */
	bool has_fine_times;
	dev_t dev; /* of the store; others may be mounted in it */
};

static bool has_fine_times(int root)
{
	static const unsigned long good[] = {
		0xEF53,     /* ext4 */
		0x58465342, /* XFS */
		0x9123683E, /* Btrfs */
		0x01021994, /* tmpfs */
		0xF2F52010, /* F2FS */
		0x794C7630, /* overlayfs */
	};
	struct statfs fs;

	if (fstatfs(root, &fs) != 0)
		return false;
	for (size_t i = 0; i < COUNT(good); i++)
		if (good[i] == (unsigned long)fs.f_type)
			return true;
	return false;
}

struct disk_kept *disk_kept_new(void)
{
	struct disk_kept *kept = xcalloc(1, sizeof(*kept));

	pthread_mutex_init(&kept->lock, NULL);
	disk_follow_init(&kept->follow);
	return kept;
}

/* Whether the times of a directory on `dev` tell of every change. */
static bool is_trusted(const struct disk *d, dev_t dev)
{
	struct disk_kept *kept = d->kept;
	struct stat st;
	bool r;

	pthread_mutex_lock(&kept->lock);
	if (!kept->is_known) {
		kept->is_known = true;
		kept->has_fine_times = has_fine_times(d->root) && fstat(d->root, &st) == 0;
		kept->dev = kept->has_fine_times ? st.st_dev : 0;
	}
	r = kept->has_fine_times && kept->dev == dev;
	pthread_mutex_unlock(&kept->lock);
	return r;
}

/* Two lists of the same directory at once have the same watch. An event says that it has ended to whoever still has it.
 */
static void drop(struct disk_kept *kept, struct kept_names *dir)
{
	disk_follow_unwatch(&kept->follow, dir->names.watch);
	disk_names_release(&dir->names);
	free(dir->events.text);
	*dir = (struct kept_names){0};
}

void disk_kept_destroy(struct disk_kept *kept)
{
	for (size_t i = 0; i < KEPT_MAX; i++)
		drop(kept, &kept->dirs[i]);
	disk_follow_release(&kept->follow);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

static int time_cmp(struct timespec a, struct timespec b)
{
	if (a.tv_sec != b.tv_sec)
		return a.tv_sec < b.tv_sec ? -1 : 1;
	return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

struct disk_stamp disk_stamp_take(const struct disk *d, int dir)
{
	struct disk_stamp stamp;
	struct timespec now;
	struct stat st;

	/* first the clock: what is changed after this has a time that is not before `now` */
	if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0 || fstat(dir, &st) != 0)
		return (struct disk_stamp){0};
	stamp = (struct disk_stamp){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.changed = st.st_ctim,
		.modified = st.st_mtim,
		.is_trusted = is_trusted(d, st.st_dev),
		.is_large = st.st_size >= FOLLOWED_SIZE,
	};
	/* whole seconds: an ext4 with small inodes has no finer ones */
	stamp.settled = stamp.is_trusted && st.st_ctim.tv_nsec && time_cmp(st.st_ctim, now) < 0;
	return stamp;
}

uint64_t disk_stamp_number(const struct disk_stamp *stamp)
{
	uint64_t number, parts[6] = {
				 (uint64_t)stamp->dev,
				 (uint64_t)stamp->ino,
				 (uint64_t)stamp->changed.tv_sec,
				 (uint64_t)stamp->changed.tv_nsec,
				 (uint64_t)stamp->modified.tv_sec,
				 (uint64_t)stamp->modified.tv_nsec,
			 };

	if (!stamp->settled)
		return 0;
	number = hash_u64(str_n(parts, sizeof(parts)), 0);
	return number ? number : 1;
}

static bool same_dir(const struct disk_stamp *a, const struct disk_stamp *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

static void take_event(void *arg, const struct inotify_event *e)
{
	struct disk_kept *kept = arg;
	bool found = false;

	for (size_t i = 0; i < KEPT_MAX; i++)
		if (kept->dirs[i].bytes && kept->dirs[i].names.watch == e->wd) {
			disk_events_add(&kept->dirs[i].events, e);
			found = true;
		}
	kept->missed += !found;
}

/* Hands out what has happened. The lock is held. */
static void take_events(struct disk_kept *kept)
{
	if (disk_follow_read(&kept->follow, take_event, kept))
		return;
	kept->missed++;
	for (size_t i = 0; i < KEPT_MAX; i++)
		kept->dirs[i].events.lost = true;
}

/* Whether the names of `dir` are or can be made those of now. They leave it if so. The lock is held. */
static bool bring_up(struct kept_names *kept, int dir, const struct disk_stamp *stamp, disk_names_hook *hook, void *arg)
{
	bool same = stamp->settled && kept->stamp.settled && time_cmp(kept->stamp.changed, stamp->changed) == 0 &&
		    time_cmp(kept->stamp.modified, stamp->modified) == 0;

	if (!kept->names.watch)
		return same;
	if (!same || kept->events.len)
		kept->names.followed = true;
	return disk_events_apply(&kept->events, dir, &kept->names, hook, arg) && kept->names.dead < DEAD_MAX;
}

bool disk_kept_take(const struct disk *d, int dir, struct disk_stamp *stamp, disk_names_hook *hook, void *arg,
		    struct disk_names *ret)
{
	struct disk_kept *kept = d->kept;
	bool found = false;

	if (!stamp->is_trusted)
		return false;
	pthread_mutex_lock(&kept->lock);
	take_events(kept);
	for (size_t i = 0; i < KEPT_MAX && !found; i++) {
		struct kept_names *k = &kept->dirs[i];

		if (!k->bytes || !same_dir(&k->stamp, stamp))
			continue;
		found = bring_up(k, dir, stamp, hook, arg);
		if (found) {
			*ret = k->names;
			k->names = (struct disk_names){0};
		}
		drop(kept, k);
	}
	stamp->missed = kept->missed;
	pthread_mutex_unlock(&kept->lock);
	return found;
}

int disk_kept_watch(const struct disk *d, int dir, const struct disk_stamp *stamp)
{
	int watch = 0;

	pthread_mutex_lock(&d->kept->lock);
	if (stamp->is_trusted && stamp->is_large)
		watch = disk_follow_watch(&d->kept->follow, dir);
	pthread_mutex_unlock(&d->kept->lock);
	return watch;
}

bool disk_kept_can(const struct disk_stamp *stamp, const struct disk_names *names)
{
	return stamp->settled || names->watch;
}

/* Makes room for `bytes` more: the place to put them. The lock is held. */
static struct kept_names *make_room(struct disk_kept *kept, size_t bytes)
{
	for (;;) {
		struct kept_names *oldest = NULL, *place = NULL;
		size_t sum = bytes;

		for (size_t i = 0; i < KEPT_MAX; i++) {
			struct kept_names *dir = &kept->dirs[i];

			sum += dir->bytes;
			if (!dir->bytes)
				place = dir;
			else if (!oldest || dir->used < oldest->used)
				oldest = dir;
		}
		if (place && sum <= KEPT_BYTES_MAX)
			return place;
		drop(kept, oldest);
	}
}

void disk_kept_drop(const struct disk *d, struct disk_names *names)
{
	if (names->watch) {
		pthread_mutex_lock(&d->kept->lock);
		disk_follow_unwatch(&d->kept->follow, names->watch);
		pthread_mutex_unlock(&d->kept->lock);
	}
	disk_names_release(names);
}

/* Ends the watch of names that need none, or have missed an event. The lock is held. */
static void check_watch(struct disk_kept *kept, const struct disk_stamp *stamp, struct disk_names *names)
{
	if (!names->watch || (names->count >= FOLLOWED_MIN && stamp->missed == kept->missed))
		return;
	disk_follow_unwatch(&kept->follow, names->watch);
	names->watch = 0;
}

void disk_kept_put(const struct disk *d, const struct disk_stamp *stamp, struct disk_names *names)
{
	size_t bytes = names->cap + names->ref_cap * sizeof(*names->refs);
	struct disk_kept *kept = d->kept;
	struct kept_names *place;

	if (!disk_kept_can(stamp, names) || names->count < KEPT_NAMES_MIN || bytes > KEPT_BYTES_MAX) {
		disk_kept_drop(d, names);
		return;
	}
	pthread_mutex_lock(&kept->lock);
	check_watch(kept, stamp, names);
	for (size_t i = 0; i < KEPT_MAX; i++)
		if (kept->dirs[i].bytes && same_dir(&kept->dirs[i].stamp, stamp)) {
			if (kept->dirs[i].names.watch == names->watch)
				kept->dirs[i].names.watch = 0; /* it continues */
			drop(kept, &kept->dirs[i]);
		}
	/* names that were followed may be newer than their stamp */
	if (names->watch || (stamp->settled && !names->followed)) {
		place = make_room(kept, bytes);
		*place = (struct kept_names){.stamp = *stamp, .names = *names, .bytes = bytes, .used = ++kept->uses};
		*names = (struct disk_names){0};
	}
	pthread_mutex_unlock(&kept->lock);
	disk_names_release(names);
}
