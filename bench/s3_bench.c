/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes small files, one after the other in each of some threads, and prints how many there were per second: through
 * the store, through the store with its revisions, or through the file system in a directory that a peer mounted.
 * bench/s3 runs it in turns.
 *   s3_bench store|revisions URL COUNT THREADS NAME
 *   s3_bench files DIR COUNT THREADS NAME
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "revisions/revisions.h"
#include "store/stores.h"

#define THREADS_MAX 64
#define FILE_BYTES  1024

struct job {
	struct store *s; /* NULL: `dir` */
	const char *dir, *name;
	unsigned long count;
	unsigned id;
};

static const char bytes[FILE_BYTES];

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "%s\n", err->msg);
		exit(1);
	}
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	/* a refusal of the server shows when the file is closed */
	if (fd < 0 || write(fd, bytes, FILE_BYTES) != FILE_BYTES || close(fd)) {
		perror(path);
		exit(1);
	}
}

static void *make_files(void *arg)
{
	static const struct store_cond absent = {.kind = STORE_ABSENT};
	const struct job *job = arg;
	struct ctx ctx = {.arena = arena_new()};
	char path[4 * PATH_LEN_MAX];
	struct err err;

	for (unsigned long i = 0; i < job->count; i++) {
		snprintf(path, sizeof(path), "%s%s%s/%u-%lu", job->s ? "" : job->dir, job->s ? "" : "/", job->name,
			 job->id, i);
		if (job->s)
			must(store_write(job->s, &ctx, (struct wpath){str_of(path)}, str_n(bytes, FILE_BYTES), absent,
					 NULL, &err),
			     &err);
		else
			make_file(path);
		arena_reset(ctx.arena);
	}
	arena_destroy(ctx.arena);
	return NULL;
}

static struct store *open_store(const char *url, bool with_revisions)
{
	struct ctx ctx = {.arena = arena_new()};
	struct revisions_opts opts = {.journal = true, .own = {STR(".stead/rev")}};
	struct store *bare, *s;
	struct err err;

	must(store_open_url(str_of(url), NULL, &bare, &err), &err);
	s = bare;
	if (with_revisions)
		must(store_revisions_open(bare, store_prefix_new(store_share(bare), opts.own), opts, &ctx, &s, &err),
		     &err);
	arena_destroy(ctx.arena);
	return s;
}

/* The first write finds out what the server can do and connects; that is not timed. */
static void warm_up(struct store *s, const char *dir, const char *name)
{
	struct ctx ctx = {.arena = arena_new()};
	char path[4 * PATH_LEN_MAX];
	struct err err;

	snprintf(path, sizeof(path), "%s%s%s/first", s ? "" : dir, s ? "" : "/", name);
	if (s)
		must(store_write(s, &ctx, (struct wpath){str_of(path)}, STR("x"),
				 (struct store_cond){.kind = STORE_ABSENT}, NULL, &err),
		     &err);
	else
		make_file(path);
	arena_destroy(ctx.arena);
}

int main(int argc, char **argv)
{
	bool files = argc == 6 && str_is(str_of(argv[1]), "files");
	unsigned threads = argc == 6 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
	unsigned long count = argc == 6 ? strtoul(argv[3], NULL, 10) : 0;
	pthread_t ids[THREADS_MAX];
	struct job jobs[THREADS_MAX];
	struct store *s;
	int64_t from;

	if (threads < 1 || threads > THREADS_MAX || count < threads) {
		fprintf(stderr, "usage: s3_bench store|revisions|files PLACE COUNT THREADS NAME\n");
		return 2;
	}
	s = files ? NULL : open_store(argv[2], str_is(str_of(argv[1]), "revisions"));
	warm_up(s, argv[2], argv[5]);
	from = clock_monotonic_ns();
	for (unsigned i = 0; i < threads; i++) {
		jobs[i] = (struct job){.s = s, .dir = argv[2], .name = argv[5], .count = count / threads, .id = i};
		if (pthread_create(&ids[i], NULL, make_files, &jobs[i]) != 0)
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%.1f\n", (double)(count / threads * threads) / ((double)(clock_monotonic_ns() - from) / 1e9));
	store_destroy(s);
	return 0;
}
