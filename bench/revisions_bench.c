/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a revision costs, beside the same work without it, in one run on one disk: a durable 1 KiB write over a bare
 * write + fsync + rename + fsync of the directory, 64 writers at once, and the price of the record with sync off.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/revisions.h"
#include "store/stores.h"

#define ROUNDS  400
#define WRITERS 64

static char body[1024];

static int cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(int64_t *t, size_t n)
{
	qsort(t, n, sizeof(*t), cmp);
	return (double)t[n / 2] / 1000.0;
}

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "revisions_bench: %s\n", err->msg);
		exit(1);
	}
}

static void bare_write(int dir, int i)
{
	char tmp[32], name[32];
	int fd;

	snprintf(tmp, sizeof(tmp), "t%d", i);
	snprintf(name, sizeof(name), "f%d", i % 50);
	fd = openat(dir, tmp, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	if (fd < 0 || write(fd, body, sizeof(body)) != (ssize_t)sizeof(body) || fsync(fd) || close(fd) ||
	    renameat(dir, tmp, dir, name) || fsync(dir))
		exit(1);
}

static struct store *disk(const char *dir, const char *sub, bool relaxed)
{
	char path[512];
	struct store_disk_opts opts = {.relaxed = relaxed, .create = true};
	struct store *s;
	struct err err;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	must(store_disk_open(path, &opts, &s, &err), &err);
	return s;
}

static struct store *revisions(const char *dir, const char *sub, bool relaxed)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	char log[64];
	struct store *s;
	struct err err;

	snprintf(log, sizeof(log), "%s-log", sub);
	must(store_revisions_open(disk(dir, sub, true), disk(dir, log, relaxed), (struct revisions_opts){0}, &ctx, &s,
				  &err),
	     &err);
	return s;
}

static void write_one(struct store *s, struct arena *arena, int i)
{
	struct ctx ctx = {.arena = arena};
	char name[32];
	struct err err;

	arena_reset(arena);
	snprintf(name, sizeof(name), "f%d", i);
	memcpy(body, &i, sizeof(i));
	must(store_write(s, &ctx, (struct wpath){str_of(name)}, str_n(body, sizeof(body)), (struct store_cond){0}, NULL,
			 &err),
	     &err);
}

struct writer {
	struct store *store;
	int id, rounds;
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();

	for (int i = 0; i < w->rounds; i++) {
		struct ctx ctx = {.arena = arena};
		char name[32], text[1024];
		struct err err;

		memset(text, 'a' + i % 26, sizeof(text));
		arena_reset(arena);
		snprintf(name, sizeof(name), "w%d-%d", w->id, i % 20);
		must(store_write(w->store, &ctx, (struct wpath){str_of(name)}, str_n(text, sizeof(text)),
				 (struct store_cond){0}, NULL, &err),
		     &err);
	}
	return NULL;
}

static double many_per_second(struct store *s, int rounds)
{
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	int64_t start = clock_monotonic_ns();

	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){s, i, rounds};
		pthread_create(&threads[i], NULL, writer_run, &writers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	return WRITERS * rounds / ((double)(clock_monotonic_ns() - start) / 1e9);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : ".";
	static int64_t bare[ROUNDS], layered[ROUNDS], plain[ROUNDS], relaxed[ROUNDS];
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *full = revisions(dir, "full", false), *loose = revisions(dir, "loose", true);
	struct store *without = disk(dir, "plain", true);
	double b, l, p, r;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/bare", dir);
	mkdir(path, 0755);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	memset(body, 'x', sizeof(body));
	for (int i = 0; i < ROUNDS; i++) {
		int64_t t0 = clock_monotonic_ns(), t1, t2, t3, t4;

		bare_write(fd, i);
		t1 = clock_monotonic_ns();
		write_one(full, arena, i % 50);
		t2 = clock_monotonic_ns();
		write_one(without, arena, i % 50);
		t3 = clock_monotonic_ns();
		write_one(loose, arena, i % 50);
		t4 = clock_monotonic_ns();
		bare[i] = t1 - t0;
		layered[i] = t2 - t1;
		plain[i] = t3 - t2;
		relaxed[i] = t4 - t3;
	}
	b = median_us(bare, ROUNDS);
	l = median_us(layered, ROUNDS);
	p = median_us(plain, ROUNDS);
	r = median_us(relaxed, ROUNDS);
	printf("durable 1 KiB write, p50: bare %.0f us, with its revision %.0f us, ratio %.2f\n", b, l, l / b);
	printf("sync off, 1 KiB write, p50: without the layer %.1f us, with it %.1f us, ratio %.2f\n", p, r, r / p);
	l = many_per_second(full, 100);
	printf("64 writers, durable: %.0f writes/s, over one bare writer %.1f x\n", l, l / (1e6 / b));
	store_destroy(full);
	store_destroy(loose);
	store_destroy(without);
	close(fd);
	return 0;
}
