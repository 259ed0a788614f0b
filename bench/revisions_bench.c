/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a revision, compared with the same work without it, in one run on one disk: a durable 1 KiB write over a
 * bare write + fsync + rename + fsync of the directory, 64 writers at once, and the price of the record with sync off.
 * Then what a checkpoint, a fork, a restore and a diff cost in a workspace of 1,000 files and in one of 100,000,
 * compared with a git commit of one changed file in the same tree. Prints the rows of a table; a ratio that is not
 * reached is marked.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "workspace/fork.h"
#include "workspace/workspace.h"

#define ROUNDS  400
#define WRITERS 64
/* Few writes each, because ext4 without a journal does not reuse an inode for a minute, and looks at all such inodes
   before it takes another. */
#define WRITER_ROUNDS 20
#define BARE_ROUNDS   100

static char body[1024];

static int cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

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
	int dir; /* where there is no store */
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

static void row(const char *what, const char *measured, const char *reference, double ratio, const char *wanted,
		bool good)
{
	printf("| %s | %s | %s | **%.3g** | %s%s |\n", what, measured, reference, ratio, wanted,
	       good ? "" : " (not reached)");
}

static const char *us(char *buf, double v)
{
	snprintf(buf, 40, v < 1000 ? "%.1f us" : "%.0f us", v);
	return buf;
}

/* The same files, made and renamed without any sync: the file system's own limit. */
static void *floor_run(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < w->rounds; i++) {
		char tmp[32], name[32], text[1024];
		int fd;

		memset(text, 'a' + i % 26, sizeof(text));
		snprintf(tmp, sizeof(tmp), "t%d", w->id);
		snprintf(name, sizeof(name), "w%d-%d", w->id, i % 20);
		fd = openat(w->dir, tmp, O_CREAT | O_WRONLY | O_TRUNC, 0644);
		if (fd < 0 || write(fd, text, sizeof(text)) != (ssize_t)sizeof(text) || close(fd) ||
		    renameat(w->dir, tmp, w->dir, name))
			exit(1);
	}
	return NULL;
}

/* With a store, or in the directory `dir` without one. */
static double many_per_second(struct store *s, int dir, int rounds)
{
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	int64_t start = clock_monotonic_ns();

	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){s, i, rounds, dir};
		pthread_create(&threads[i], NULL, s ? writer_run : floor_run, &writers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	return WRITERS * rounds / ((double)(clock_monotonic_ns() - start) / 1e9);
}

static double bare_per_second(int dir)
{
	int64_t t[BARE_ROUNDS];

	for (int i = 0; i < BARE_ROUNDS; i++) {
		int64_t start = clock_monotonic_ns();

		bare_write(dir, i);
		t[i] = clock_monotonic_ns() - start;
	}
	return 1e6 / median_us(t, BARE_ROUNDS);
}

static double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), cmp_double);
	return values[count / 2];
}

/* Many writers, one bare writer and many that never sync, in turns. The last say what the file system can do: on an
   ext4 without a journal it may be less than many durable writers reach. */
static void writers_row(struct store *s, const char *path, int dir)
{
	double many[5], bare[5], free_of_syncs[5], ratio[5], share[5];
	char x[40], y[40], z[40], floor[520];
	int floor_dir;

	snprintf(floor, sizeof(floor), "%s/floor", path);
	mkdir(floor, 0755);
	floor_dir = open(floor, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 5; i++) {
		bare[i] = bare_per_second(dir);
		many[i] = many_per_second(s, -1, WRITER_ROUNDS);
		free_of_syncs[i] = many_per_second(NULL, floor_dir, WRITER_ROUNDS);
		ratio[i] = many[i] / bare[i];
		share[i] = many[i] / free_of_syncs[i];
	}
	close(floor_dir);
	snprintf(x, sizeof(x), "%.0f /s", median_of(many, 5));
	snprintf(y, sizeof(y), "%.0f /s", median_of(bare, 5));
	snprintf(z, sizeof(z), "%.0f /s", median_of(free_of_syncs, 5));
	row("64 writers, durable 1 KiB writes, over one bare writer", x, y, median_of(ratio, 5), "≥ 8",
	    median_of(ratio, 5) >= 8);
	row("the same over 64 threads that write and rename and never sync", x, z, median_of(share, 5), "", true);
}

static void write_rows(const char *dir)
{
	static int64_t bare[ROUNDS], layered[ROUNDS], plain[ROUNDS], relaxed[ROUNDS];
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *full = revisions(dir, "full", false), *loose = revisions(dir, "loose", true);
	struct store *without = disk(dir, "plain", true);
	double b, l, p, r;
	char path[512], x[40], y[40];
	int fd;

	snprintf(path, sizeof(path), "%s/bare", dir);
	mkdir(path, 0755);
	fd = open(path, O_RDONLY | O_DIRECTORY);
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
	row("durable 1 KiB write, p50, over write + fsync + rename + fsync of the directory", us(x, l), us(y, b), l / b,
	    "≤ 1.1", l / b <= 1.1);
	row("1 KiB write with sync off, p50, over the same without the layer", us(x, r), us(y, p), r / p, "≤ 1.3",
	    r / p <= 1.3);
	writers_row(full, dir, fd);
	store_destroy(full);
	store_destroy(loose);
	store_destroy(without);
	close(fd);
}

/* --- workspaces of two sizes --- */

enum { CHECKPOINT, FORK, RESTORE, DIFF, KINDS };

struct place {
	char store[600];
	int files;
	struct workspace *ws;
	struct store *area;
	double us[KINDS];
};

static void make_files(const struct place *p)
{
	char path[900];

	for (int i = 0; i < p->files; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/big/files/d%03d", p->store, i / 100);
		if (i % 100 == 0)
			mkdir(path, 0755);
		snprintf(path, sizeof(path), "%s/big/files/d%03d/f%02d.txt", p->store, i / 100, i % 100);
		fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
		if (fd < 0 || write(fd, path, strlen(path)) < 0 || close(fd))
			exit(1);
	}
}

static void place_open(struct place *p, const char *dir, int files)
{
	struct workspace_opts opts = {.name = STR("big"), .create = true};
	char url[620], path[700];
	struct err err;

	p->files = files;
	snprintf(p->store, sizeof(p->store), "%s/ws%d", dir, files);
	snprintf(url, sizeof(url), "disk:%s", p->store);
	opts.store_url = str_of(url);
	must(workspace_open(&opts, &p->ws, &err), &err);
	p->area = workspace_files(p->ws);
	snprintf(path, sizeof(path), "%s/big/files", p->store);
	mkdir(path, 0755);
	make_files(p);
}

static void put_text(struct place *p, struct ctx *ctx, const char *text)
{
	struct err err;

	must(store_write(p->area, ctx, (struct wpath){STR("d001/f01.txt")}, str_of(text), (struct store_cond){0}, NULL,
			 &err),
	     &err);
}

static int64_t one_round(struct place *p, struct ctx *ctx, int kind, int i)
{
	struct wpath path = {STR("d001/f01.txt")};
	struct jv *report;
	uint64_t head;
	int64_t start;
	struct err err;
	int r;

	put_text(p, ctx, "old\nlines\n");
	must(revisions_head(workspace_revisions(p->ws), ctx, &head, &err), &err);
	put_text(p, ctx, "new\nlines\n");
	start = clock_monotonic_ns();
	if (kind == CHECKPOINT)
		r = history_checkpoint(p->ws, ctx, arena_printf(ctx->arena, "point-%d", i), &report, &err);
	else if (kind == FORK)
		r = fork_create(p->ws, ctx, arena_printf(ctx->arena, "fork%d", i), FORK_AT_HEAD, &report, &err);
	else if (kind == RESTORE)
		r = history_restore(p->ws, ctx, path, head, &report, &err);
	else
		r = history_diff(p->ws, ctx, WPATH_ROOT, head, head + 1, &report, &err);
	start = clock_monotonic_ns() - start;
	must(r, &err);
	return start;
}

static void measure(struct place *small, struct place *large, int kind)
{
	static int64_t a[41], b[41];
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};

	for (int i = 0; i < 41; i++) { /* in turns */
		arena_reset(arena);
		a[i] = one_round(small, &ctx, kind, i);
		b[i] = one_round(large, &ctx, kind, i);
	}
	small->us[kind] = median_us(a, 41);
	large->us[kind] = median_us(b, 41);
}

/* git add -A && git commit of one changed file, in the same tree; git's own data is outside it. */
static double git_commit_us(const struct place *p, const char *dir)
{
	static int64_t t[3];
	char first[2000], again[2000];

	snprintf(first, sizeof(first),
		 "export GIT_DIR=%s/git GIT_WORK_TREE=%s/big/files && git init -q 2>/dev/null && git config user.name "
		 "b && "
		 "git config user.email b@example.com && git config gc.auto 0 && git add -A && git commit -qm first",
		 dir, p->store);
	snprintf(again, sizeof(again),
		 "export GIT_DIR=%s/git GIT_WORK_TREE=%s/big/files && date +%%N >$GIT_WORK_TREE/d002/f02.txt && git "
		 "add -A && "
		 "git commit -qm again",
		 dir, p->store);
	if (system(first) != 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		int64_t start = clock_monotonic_ns();

		if (system(again) != 0)
			return 0;
		t[i] = clock_monotonic_ns() - start;
	}
	return median_us(t, 3);
}

static void size_rows(const char *dir)
{
	static const char *const names[KINDS] = {"checkpoint", "fork", "restore of one file", "diff of two revisions"};
	struct place small, large;
	char what[100], x[40], y[40];
	double git;

	place_open(&small, dir, 1000);
	place_open(&large, dir, 100000);
	sync();
	for (int kind = 0; kind < KINDS; kind++) {
		double ratio;

		measure(&small, &large, kind);
		ratio = large.us[kind] / small.us[kind];
		snprintf(what, sizeof(what), "%s with 100,000 files, p50, over the same with 1,000", names[kind]);
		row(what, us(x, large.us[kind]), us(y, small.us[kind]), ratio, "≤ 1.2", ratio <= 1.2);
	}
	git = git_commit_us(&large, dir);
	for (int kind = CHECKPOINT; git > 0 && kind <= FORK; kind++) {
		snprintf(what, sizeof(what), "%s with 100,000 files over `git add -A && git commit` of one change",
			 names[kind]);
		row(what, us(x, large.us[kind]), us(y, git), large.us[kind] / git, "≤ 0.002",
		    large.us[kind] / git <= 0.002);
	}
	workspace_close(small.ws);
	workspace_close(large.ws);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : ".";

	mkdir(dir, 0755);
	memset(body, 'x', sizeof(body));
	write_rows(dir);
	fflush(stdout);
	if (argc < 3 || strcmp(argv[2], "writes") != 0)
		size_rows(dir);
	return 0;
}
