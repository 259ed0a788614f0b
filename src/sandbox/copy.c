/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a store copied to a directory for a command: for stores that are not a directory of this machine, and for
 * machines without overlays. The version of each file is kept, so that what comes back replaces nothing that somebody
 * else changed in the meantime.
 *
 * Files in a file system of a user namespace can only be made by a user whom that namespace knows. Root is not one of
 * them, so a thread of root makes them under the other user's id for files, which is a thing of the thread alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "sandbox/sandbox_internal.h"
#include "store/list_stream.h"

struct copier {
	int to;
	uid_t uid;
	gid_t gid;
	bool becomes;
	struct baseline *base;
	uint64_t bytes;
};

static void act_as(const struct copier *c, bool other)
{
	if (!c->becomes)
		return;
	if (other)
		(void)syscall(SYS_setfsgid, c->gid);
	(void)syscall(SYS_setfsuid, other ? c->uid : 0);
	if (!other)
		(void)syscall(SYS_setfsgid, 0);
}

/* The new file, its directories made. -errno. */
static int make(const struct copier *c, const char *path, uint32_t mode)
{
	char dir[PATH_LEN_MAX + 1];
	int fd;

	act_as(c, true);
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		memcpy(dir, path, (size_t)(p - path));
		dir[p - path] = 0;
		(void)mkdirat(c->to, dir, 0755);
	}
	fd = openat(c->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode ? mode & 0777 : 0644);
	if (fd < 0)
		fd = -errno;
	act_as(c, false);
	return fd;
}

static int push(void *arg, const void *bytes, size_t len, struct err *err)
{
	const char *p = bytes;

	while (len) {
		ssize_t n = write(*(int *)arg, p, len);

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot write the copy for the command");
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int copy_one(struct copier *c, struct ctx *ctx, const struct sandbox_files *files,
		    const struct store_entry *entry, struct arena *keep, struct err *err)
{
	struct copied copied = {.path = arena_str(keep, entry->path.s)};
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, clock_timespec(entry->stat.mtime_ns)};
	struct store_stat stat = {0};
	struct stat st;
	FD_SCOPE int fd = make(c, copied.path.ptr, entry->stat.mode);
	struct sink sink = {.push = push, .arg = &fd};
	int r;

	if (fd < 0)
		return err_sys(err, -fd, "cannot make the copy of \"%.*s\" for the command", STR_ARG(copied.path));
	r = store_read_stream(files->store, ctx, entry->path, STORE_WHOLE, &sink, &stat, err);
	if (r)
		return r;
	if (futimens(fd, times) != 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "cannot finish the copy of \"%.*s\"", STR_ARG(copied.path));
	copied.version = arena_str(keep, stat.version);
	copied.size = stat.size;
	copied.changed_ns = clock_of_timespec(st.st_ctim);
	copied.inode = st.st_ino;
	ARENA_ROOM(keep, c->base->copies, c->base->count, c->base->cap);
	c->base->copies[c->base->count++] = copied;
	*strmap_put(c->base->index, copied.path, NULL) = c->base->count;
	c->bytes += stat.size;
	return 0;
}

int baseline_copy(struct ctx *ctx, const struct sandbox_files *files, int to, uid_t uid, gid_t gid,
		  struct baseline *base, struct err *err)
{
	struct copier c = {.to = to, .uid = uid, .gid = gid, .becomes = user_is_root() && uid != 0, .base = base};
	LIST_PAGES_SCOPE struct list_pages pages = {.store = files->store,
						    .dir = WPATH_ROOT,
						    .req = {.recursive = true, .limit = STORE_PAGE_MAX},
						    .ctx = *ctx};
	int r;

	base->index = strmap_new(ctx->arena);
	while ((r = list_pages_next(&pages, err)) > 0)
		for (size_t i = 0; i < pages.page.count; i++) {
			const struct store_entry *e = &pages.page.entries[i];

			if (base->count == SANDBOX_COPY_FILES || c.bytes + e->stat.size > SANDBOX_COPY_BYTES)
				return err_set(err, ERR_TOO_LARGE,
					       "the workspace is too large to copy for a command: the limit is %d "
					       "files and %zu MiB; the tier namespaces copies nothing where 'stead "
					       "doctor' finds an overlay and fuse, and --root runs over a part",
					       SANDBOX_COPY_FILES, SANDBOX_COPY_BYTES / MIB);
			r = copy_one(&c, &pages.ctx, files, e, ctx->arena, err);
			if (r)
				return r;
		}
	return r;
}
