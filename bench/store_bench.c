/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk store against the bare system calls that any program needs for the same promise. The two take turns, one
 * operation each, in the same directory, so that what else the machine does falls on both; the medians are compared.
 *   store_bench [DIR] [ROUNDS]     DIR is made if missing; files in it are kept
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/stores.h"

#define SIZE      1024
#define LIST_SIZE 1000

struct bench {
	int dir; /* DIR/d, where both sides work */
	struct store *strict, *relaxed;
	struct ctx ctx;
	struct str bytes;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "%s\n", err->msg);
		exit(1);
	}
}

static struct wpath path_of(const char *text)
{
	struct wpath p;
	struct err err;

	must(wpath_parse(str_of(text), &p, &err), &err);
	return p;
}

static void bare_write(struct bench *b, bool sync)
{
	int fd = openat(b->dir, "bare.tmp", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, b->bytes.ptr, b->bytes.len) != (ssize_t)b->bytes.len)
		die("write");
	if (sync && fsync(fd))
		die("fsync");
	close(fd);
	if (renameat(b->dir, "bare.tmp", b->dir, "bare"))
		die("rename");
	if (sync && fsync(b->dir))
		die("fsync");
}

static void bare_durable(struct bench *b)
{
	bare_write(b, true);
}

static void bare_relaxed(struct bench *b)
{
	bare_write(b, false);
}

static void bare_read(struct bench *b)
{
	char buf[SIZE];
	int fd = openat(b->dir, "bare", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, sizeof(buf)) != SIZE)
		die("read");
	close(fd);
}

static void store_put(struct bench *b, struct store *s)
{
	struct err err;

	must(store_write(s, &b->ctx, path_of("d/ours"), b->bytes, (struct store_cond){0}, NULL, &err), &err);
}

static void our_durable(struct bench *b)
{
	store_put(b, b->strict);
}

static void our_relaxed(struct bench *b)
{
	store_put(b, b->relaxed);
}

static void our_read(struct bench *b)
{
	struct str bytes;
	struct err err;

	must(store_read(b->strict, &b->ctx, path_of("d/ours"), STORE_WHOLE, MIB, &bytes, NULL, &err), &err);
}

/* A listing with the size and time of each of the 1,000 files, as one would write it without a store. */
static void bare_list(struct bench *b)
{
	char name[24];
	struct stat st;

	for (int i = 0; i < LIST_SIZE; i++) {
		snprintf(name, sizeof(name), "../list/%d", i);
		if (fstatat(b->dir, name, &st, AT_SYMLINK_NOFOLLOW))
			die("stat");
	}
}

static void our_list(struct bench *b)
{
	struct store_list_req req = {.limit = LIST_SIZE};
	struct store_page page;
	struct err err;

	must(store_list(b->strict, &b->ctx, path_of("list"), &req, &page, &err), &err);
	if (page.count != LIST_SIZE)
		die("list");
}

static void our_append(struct bench *b)
{
	struct err err;

	must(store_append(b->relaxed, &b->ctx, path_of("d/log"), STR("one line of a log\n"), (struct store_cond){0},
			  NULL, &err),
	     &err);
}

static void bare_append(struct bench *b)
{
	int fd = openat(b->dir, "bare.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, "one line of a log\n", 18) != 18)
		die("append");
	close(fd);
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t timed(void (*run)(struct bench *b), struct bench *b)
{
	int64_t start = clock_monotonic_ns();

	run(b);
	arena_reset(b->ctx.arena);
	return clock_monotonic_ns() - start;
}

static void report(struct bench *b, const char *name, size_t rounds, void (*ours)(struct bench *b),
		   void (*bare)(struct bench *b))
{
	int64_t *a = xcalloc(rounds, sizeof(*a)), *c = xcalloc(rounds, sizeof(*c));

	for (size_t i = 0; i < rounds / 10 + 1; i++) { /* warm */
		timed(ours, b);
		timed(bare, b);
	}
	for (size_t i = 0; i < rounds; i++) {
		a[i] = timed(ours, b);
		c[i] = timed(bare, b);
	}
	qsort(a, rounds, sizeof(*a), compare_ns);
	qsort(c, rounds, sizeof(*c), compare_ns);
	printf("| %s | %.1f | %.1f | %.2f |\n", name, (double)a[rounds / 2] / 1000, (double)c[rounds / 2] / 1000,
	       (double)a[rounds / 2] / (double)c[rounds / 2]);
	free(a);
	free(c);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "store-bench-data";
	int64_t rounds = 1000;
	struct store_disk_opts strict = {.create = true}, relaxed = {.relaxed = true};
	struct bench b = {.ctx = {.arena = arena_new()}};
	char bytes[SIZE], path[32];
	struct err err;
	int top;

	if (argc > 2 && (!str_to_i64(str_of(argv[2]), &rounds) || rounds < 1))
		return 2;
	memset(bytes, 'x', sizeof(bytes));
	b.bytes = str_n(bytes, sizeof(bytes));
	must(store_disk_open(dir, &strict, &b.strict, &err), &err);
	must(store_disk_open(dir, &relaxed, &b.relaxed, &err), &err);
	for (int i = 0; i < LIST_SIZE; i++) {
		snprintf(path, sizeof(path), "list/%d", i);
		must(store_write(b.relaxed, &b.ctx, path_of(path), b.bytes, (struct store_cond){0}, NULL, &err), &err);
	}
	our_durable(&b);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b.dir = openat(top, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b.dir < 0)
		die(dir);
	printf("| disk store, median in us | Stead | bare calls | ratio |\n|---|---|---|---|\n");
	report(&b, "durable write of 1 KB / write, fsync, rename, fsync", (size_t)rounds / 4 + 1, our_durable,
	       bare_durable);
	report(&b, "relaxed write of 1 KB / write, rename", (size_t)rounds, our_relaxed, bare_relaxed);
	report(&b, "read of 1 KB / open, read, close", (size_t)rounds * 10, our_read, bare_read);
	report(&b, "relaxed append of a line / open, write, close", (size_t)rounds, our_append, bare_append);
	report(&b, "list of 1,000 files / 1,000 stats", (size_t)rounds / 10 + 1, our_list, bare_list);
	store_destroy(b.strict);
	store_destroy(b.relaxed);
	arena_destroy(b.ctx.arena);
	close(b.dir);
	close(top);
	return 0;
}
