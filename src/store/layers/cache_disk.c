/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in a directory that several processes may share: one file per key, written under another name and renamed,
 * so that nobody sees half of one. Nothing is synced: each file carries the hash of its bytes, and one that a power cut
 * tore is not believed but removed.
 *
 * The keys are spread over sixteen directories, and each may hold a sixteenth of the bytes. When one is full it alone
 * is listed, and those used longest ago go until a quarter of it is free: a list of a sixteenth pays for very many
 * puts. A process counts what is there once and then what it puts; others put too, so it counts again after it has put
 * an eighth of a share. The bound may thus be passed by an eighth per process for a while.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "store/layers/cache_internal.h"

#define SHARES 16
#define MAGIC  "stead-c1"
/* A file's time of use is brought up to date once in so many seconds. */
#define USE_SECONDS 60
/* What a name costs in addition to its bytes: a file of one byte takes a block. */
#define FILE_COST 4096

struct header {
	char magic[8];
	char key[CACHE_KEY_LEN];
	uint64_t hash[2];
};

struct disk_pool {
	struct cache_pool base;
	char *dir;
	uint64_t share_max;
	pthread_mutex_t lock;
	struct share {
		bool counted;
		uint64_t bytes, put;
	} shares[SHARES];
};

static struct disk_pool *pool_of(struct cache_pool *p)
{
	return (struct disk_pool *)p;
}

static unsigned share_of(const struct cache_key *key)
{
	char c = key->hex[0];

	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) % SHARES;
}

static void path_of(const struct disk_pool *p, const struct cache_key *key, char *ret, size_t cap)
{
	snprintf(ret, cap, "%s/%x/%.*s", p->dir, share_of(key), CACHE_KEY_LEN, key->hex);
}

static bool read_all(int fd, void *to, size_t len)
{
	char *at = to;

	for (ssize_t n; len; at += n, len -= (size_t)n) {
		n = read(fd, at, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

static bool write_all(int fd, const void *from, size_t len)
{
	const char *at = from;

	for (ssize_t n; len; at += n, len -= (size_t)n) {
		n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return false;
	}
	return true;
}

/* --- getting --- */

/* False: it is not there, or damaged; then it goes when `remove` is set. */
static bool read_item(const struct disk_pool *p, const struct cache_key *key, bool remove, struct cache_item *ret)
{
	struct header head;
	uint64_t hash[2];
	char path[4200];
	struct stat st;
	size_t len;
	char *bytes;

	path_of(p, key, path, sizeof path);
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	if ((size_t)st.st_size < sizeof head || (size_t)st.st_size - sizeof head > p->base.item_max) {
		if (remove)
			unlink(path);
		return false;
	}
	len = (size_t)st.st_size - sizeof head;
	bytes = xmalloc(len + 1);
	if (!read_all(fd, &head, sizeof head) || !read_all(fd, bytes, len)) {
		free(bytes);
		return false;
	}
	hash_u128(str_n(bytes, len), hash);
	if (memcmp(head.magic, MAGIC, 8) != 0 || memcmp(head.key, key->hex, CACHE_KEY_LEN) != 0 ||
	    head.hash[0] != hash[0] || head.hash[1] != hash[1]) {
		if (remove)
			unlink(path);
		free(bytes);
		return false;
	}
	*ret = (struct cache_item){.bytes = str_n(bytes, len), .own = bytes, .used_s = st.st_mtime};
	return true;
}

static bool disk_get(struct cache_pool *pool, const struct cache_key *key, struct cache_item *ret)
{
	char path[4200];

	if (!read_item(pool_of(pool), key, true, ret))
		return false;
	if (clock_real_ns() / NS_PER_S - ret->used_s > USE_SECONDS) {
		path_of(pool_of(pool), key, path, sizeof path);
		utimensat(AT_FDCWD, path, NULL, 0);
	}
	return true;
}

static void disk_release(struct cache_pool *pool, struct cache_item *item)
{
	(void)pool;
	free(item->own);
}

/* --- making room --- */

struct found {
	int64_t used_ns;
	uint64_t cost;
	char name[CACHE_KEY_LEN + 1];
};

static int oldest_first(const void *a, const void *b)
{
	int64_t x = ((const struct found *)a)->used_ns, y = ((const struct found *)b)->used_ns;

	return (x > y) - (x < y);
}

/* The files of a share; removes unfinished files of processes that ended. */
static struct found *list_share(const struct disk_pool *p, unsigned share, size_t *ret_count, uint64_t *ret_bytes)
{
	struct found *all = NULL;
	size_t count = 0, cap = 0;
	char path[4200];
	struct dirent *e;
	struct stat st;
	DIR *dir;

	*ret_bytes = 0;
	*ret_count = 0;
	snprintf(path, sizeof path, "%s/%x", p->dir, share);
	dir = opendir(path);
	if (!dir)
		return NULL;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (strlen(e->d_name) != CACHE_KEY_LEN) {
			if (clock_real_ns() / NS_PER_S - st.st_mtime > USE_SECONDS)
				unlinkat(dirfd(dir), e->d_name, 0);
			continue;
		}
		HEAP_ROOM(all, count, cap);
		all[count].used_ns = clock_of_timespec(st.st_mtim);
		all[count].cost = (uint64_t)st.st_size + FILE_COST;
		memcpy(all[count].name, e->d_name, sizeof all[count].name);
		*ret_bytes += all[count++].cost;
	}
	closedir(dir);
	*ret_count = count;
	return all;
}

bool store_cache_check(const char *dir, bool remove, struct cache_state *ret)
{
	struct disk_pool p = {.base.item_max = SIZE_MAX / 2, .dir = (char *)dir};
	struct stat st;

	*ret = (struct cache_state){0};
	if (strlen(dir) >= 4000 || stat(dir, &st) != 0)
		return false;
	for (unsigned share = 0; share < SHARES; share++) {
		uint64_t bytes;
		size_t count;
		struct found *all = list_share(&p, share, &count, &bytes);

		ret->files += count;
		ret->bytes += bytes;
		for (size_t i = 0; i < count; i++) {
			struct cache_key key;
			struct cache_item item;

			memcpy(key.hex, all[i].name, sizeof key.hex);
			if (read_item(&p, &key, remove, &item))
				free(item.own);
			else
				ret->damaged++;
		}
		free(all);
	}
	return true;
}

/* With the lock held: counts the share, and frees a quarter of it when it is full. */
static void tidy(struct disk_pool *p, unsigned share)
{
	struct share *s = &p->shares[share];
	char path[4200];
	uint64_t bytes;
	size_t count;
	struct found *all = list_share(p, share, &count, &bytes);

	if (bytes > p->share_max) {
		qsort(all, count, sizeof *all, oldest_first);
		for (size_t i = 0; i < count && bytes > p->share_max / 4 * 3; i++) {
			snprintf(path, sizeof path, "%s/%x/%s", p->dir, share, all[i].name);
			unlink(path);
			bytes -= all[i].cost;
		}
	}
	free(all);
	*s = (struct share){.counted = true, .bytes = bytes};
}

static void account(struct disk_pool *p, unsigned share, uint64_t cost)
{
	struct share *s = &p->shares[share];

	pthread_mutex_lock(&p->lock);
	s->bytes += cost;
	s->put += cost;
	if (!s->counted || s->bytes > p->share_max || s->put > p->share_max / 8)
		tidy(p, share);
	pthread_mutex_unlock(&p->lock);
}

/* --- putting --- */

static void disk_put(struct cache_pool *pool, const struct cache_key *key, struct str bytes)
{
	struct disk_pool *p = pool_of(pool);
	struct header head = {.magic = MAGIC};
	char path[4200], tmp[4300];
	bool ok;

	if (bytes.len > pool->item_max)
		return;
	path_of(p, key, path, sizeof path);
	if (access(path, F_OK) == 0)
		return;
	snprintf(tmp, sizeof tmp, "%s.%08x", path, (unsigned)random_u64());
	memcpy(head.key, key->hex, CACHE_KEY_LEN);
	hash_u128(bytes, head.hash);
	FD_SCOPE int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	ok = write_all(fd, &head, sizeof head) && write_all(fd, bytes.ptr, bytes.len) && rename(tmp, path) == 0;
	if (!ok)
		unlink(tmp);
	else
		account(p, share_of(key), bytes.len + sizeof head + FILE_COST);
}

static void disk_destroy(struct cache_pool *pool)
{
	struct disk_pool *p = pool_of(pool);

	pthread_mutex_destroy(&p->lock);
	free(p->dir);
	free(p);
}

static const struct cache_pool_ops disk_pool_ops = {
	.get = disk_get, .put = disk_put, .release = disk_release, .destroy = disk_destroy};

/* The directories on the way too, all private: the cache holds what files hold. */
static bool make_dirs(char *path)
{
	for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		if (mkdir(path, 0700) != 0 && errno != EEXIST) {
			*at = '/';
			return false;
		}
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

struct cache_pool *cache_disk_new(const char *dir, uint64_t bytes_max)
{
	struct disk_pool *p;
	char path[4200];
	bool ok = strlen(dir) < 4000;

	for (unsigned i = 0; ok && i < SHARES; i++) {
		snprintf(path, sizeof path, "%s/%x", dir, i);
		ok = i ? mkdir(path, 0700) == 0 || errno == EEXIST : make_dirs(path);
	}
	if (!ok)
		return NULL;
	p = xcalloc(1, sizeof *p);
	p->base.ops = &disk_pool_ops;
	p->share_max = bytes_max / SHARES;
	p->base.item_max = (size_t)(p->share_max / 4);
	p->dir = xstrndup(str_of(dir));
	pthread_mutex_init(&p->lock, NULL);
	return &p->base;
}
