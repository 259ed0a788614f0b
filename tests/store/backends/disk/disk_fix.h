/* SPDX-License-Identifier: Apache-2.0 */
/* A disk store in a fresh directory, and short forms to act on it through the store and around it. */
#ifndef STEAD_TESTS_DISK_FIX_H
#define STEAD_TESTS_DISK_FIX_H

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/limits.h"
#include "store/stores.h"
#include "temp_dir.h"
#include "test.h"

#define ANY     ((struct store_cond){0})
#define ABSENT  ((struct store_cond){.kind = STORE_ABSENT})
#define VERS(v) ((struct store_cond){.kind = STORE_VERSION, .version = (v)})

struct fix {
	const char *dir;
	int fd; /* of dir */
	struct store *s;
	struct ctx ctx;
	struct err err;
};

__attribute__((unused)) static struct wpath P(const char *text) {
	struct wpath p;
	struct err err;

	if (wpath_parse(str_of(text), &p, &err))
		abort();
	return p;
}

__attribute__((unused)) static void
fix_reopen(struct fix *f, bool relaxed, const char *tmp_dir)
{
	struct store_disk_opts opts = {.relaxed = relaxed, .tmp_dir = tmp_dir};

	test_close(f->s);
	CHECK_OK(store_disk_open(f->dir, &opts, &f->s, &f->err), f->err);
	test_defer(store_destroy, f->s);
}

static void fix_close_dir(int *fd)
{
	close(*fd);
	free(fd);
}

/* Closed when the test ends. */
static struct fix fix_new(bool relaxed)
{
	struct fix f = {.dir = temp_dir_new(), .ctx = {.arena = arena_new()}};
	struct store_disk_opts opts = {.relaxed = relaxed};
	int *fd = malloc(sizeof(*fd));

	test_defer(arena_destroy, f.ctx.arena);
	f.fd = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!fd || f.fd < 0 || store_disk_open(f.dir, &opts, &f.s, &f.err))
		abort();
	*fd = f.fd;
	test_defer(fix_close_dir, fd);
	test_defer(store_destroy, f.s);
	return f;
}

__attribute__((unused)) static struct str put(struct fix *f, const char *path, const char *bytes)
{
	struct store_stat st;

	CHECK_OK(store_write(f->s, &f->ctx, P(path), str_of(bytes), ANY, &st, &f->err), f->err);
	return st.version;
}

__attribute__((unused)) static struct str get(struct fix *f, const char *path)
{
	struct str bytes = STR_NONE;

	CHECK_OK(store_read(f->s, &f->ctx, P(path), STORE_WHOLE, 64 * MIB, &bytes, NULL, &f->err), f->err);
	return bytes;
}

__attribute__((unused)) static struct store_page list(struct fix *f, const char *path, bool recursive)
{
	struct store_list_req req = {.recursive = recursive, .limit = STORE_PAGE_MAX};
	struct store_page page = {0};

	CHECK_OK(store_list(f->s, &f->ctx, P(path), &req, &page, &f->err), f->err);
	return page;
}

/* Changes of the directory that bypass the store. */

__attribute__((unused)) static void raw_write(int dir, const char *name, const char *bytes)
{
	FD_SCOPE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
}

__attribute__((unused)) static struct str raw_read(struct arena *arena, int dir, const char *name)
{
	FD_SCOPE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	p = arena_alloc(arena, (size_t)st.st_size + 1);
	CHECK(read(fd, p, (size_t)st.st_size) == st.st_size);
	return str_n(p, (size_t)st.st_size);
}

__attribute__((unused)) static bool raw_exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Runs `run` in a child; its answer is the exit code (0: good). A child may spoil its own limits, ids and filters. */
__attribute__((unused)) static int in_child(int (*run)(struct fix *f), struct fix *f)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(run(f));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
