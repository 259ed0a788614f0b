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
 * A list takes the names out and puts them back after its page, so no two threads ever share them. They are given up
 * after the last page. Inotify was rejected: it needs a watch per directory, and fails where many are used.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/vfs.h>
#include <time.h>

#include "store/backends/disk/disk.h"

#define KEPT_MAX       4
#define KEPT_NAMES_MIN 256        /* fewer are read again */
#define KEPT_BYTES_MAX (48 * MIB) /* in all; about a million names */

struct kept_names {
	struct disk_stamp stamp;
	struct disk_names names;
	size_t bytes; /* 0: the place is free */
	uint64_t used;
};

struct disk_kept {
	pthread_mutex_t lock;
	struct kept_names dirs[KEPT_MAX];
	uint64_t uses;
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

static void drop(struct kept_names *dir)
{
	disk_names_release(&dir->names);
	*dir = (struct kept_names){0};
}

void disk_kept_destroy(struct disk_kept *kept)
{
	for (size_t i = 0; i < KEPT_MAX; i++)
		drop(&kept->dirs[i]);
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
	struct timespec now;
	struct stat st;

	/* first the clock: what is changed after this has a time that is not before `now` */
	if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0 || fstat(dir, &st) != 0)
		return (struct disk_stamp){0};
	return (struct disk_stamp){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.changed = st.st_ctim,
		.modified = st.st_mtim,
		/* whole seconds: an ext4 with small inodes has no finer ones */
		.settled = st.st_ctim.tv_nsec && time_cmp(st.st_ctim, now) < 0 && is_trusted(d, st.st_dev),
	};
}

static bool same_dir(const struct disk_stamp *a, const struct disk_stamp *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

bool disk_kept_take(const struct disk *d, const struct disk_stamp *stamp, struct disk_names *ret)
{
	struct disk_kept *kept = d->kept;
	bool found = false;

	if (!stamp->settled)
		return false;
	pthread_mutex_lock(&kept->lock);
	for (size_t i = 0; i < KEPT_MAX && !found; i++) {
		struct kept_names *dir = &kept->dirs[i];

		if (!dir->bytes || !same_dir(&dir->stamp, stamp))
			continue;
		found = time_cmp(dir->stamp.changed, stamp->changed) == 0 &&
			time_cmp(dir->stamp.modified, stamp->modified) == 0;
		if (found) {
			*ret = dir->names;
			dir->names = (struct disk_names){0};
		}
		drop(dir);
	}
	pthread_mutex_unlock(&kept->lock);
	return found;
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
		drop(oldest);
	}
}

void disk_kept_put(const struct disk *d, const struct disk_stamp *stamp, struct disk_names *names)
{
	size_t bytes = names->cap + names->ref_cap * sizeof(*names->refs);
	struct disk_kept *kept = d->kept;
	struct kept_names *place;

	if (!stamp->settled || names->count < KEPT_NAMES_MIN || bytes > KEPT_BYTES_MAX) {
		disk_names_release(names);
		return;
	}
	pthread_mutex_lock(&kept->lock);
	for (size_t i = 0; i < KEPT_MAX; i++)
		if (kept->dirs[i].bytes && same_dir(&kept->dirs[i].stamp, stamp))
			drop(&kept->dirs[i]);
	place = make_room(kept, bytes);
	*place = (struct kept_names){.stamp = *stamp, .names = *names, .bytes = bytes, .used = ++kept->uses};
	pthread_mutex_unlock(&kept->lock);
	*names = (struct disk_names){0};
}
