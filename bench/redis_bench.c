/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis store beside redis-benchmark on the same server: reading and writing files through the store, GET and SET
 * of as many bytes by redis-benchmark with one client. The two take turns; a round is thousands of calls, of which the
 * median counts; of the rounds the median again. Run through tests/servers/with redis --.
 *   redis_bench [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

#define CALLS      4000
#define ROUNDS_MAX 99

struct bench {
	struct store *s;
	struct ctx ctx;
	struct str bytes, version;
	uint64_t journal_end;
	size_t size;
};

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "%s\n", err->msg);
		exit(1);
	}
}

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set; run this through tests/servers/with redis --\n", name);
		exit(1);
	}
	return value;
}

static const struct wpath file = {STR("notes/plan.md")}, journal = {STR(".stead/log")};

static void read_one(struct bench *b)
{
	struct str bytes;
	struct err err;

	must(store_read(b->s, &b->ctx, file, STORE_WHOLE, b->size, &bytes, NULL, &err), &err);
}

/* Under the condition that nobody changed it. */
static void write_one(struct bench *b)
{
	struct store_cond cond = {.kind = STORE_VERSION, .version = b->version};
	struct store_stat stat;
	char version[64];
	struct err err;

	must(store_write(b->s, &b->ctx, file, b->bytes, cond, &stat, &err), &err);
	snprintf(version, sizeof(version), "%.*s", STR_ARG(stat.version));
	arena_reset(b->ctx.arena);
	b->version = arena_str(b->ctx.arena, str_of(version));
}

/* The same with an entry of the journal in the same step. */
static void write_with_entry(struct bench *b)
{
	char text[64];
	struct store_cond cond = {.kind = STORE_VERSION, .version = b->version};
	struct journal_add add = {.after = b->journal_end, .change = JOURNAL_WRITE, .content = b->bytes};
	struct journal_added added;
	struct err err;

	snprintf(text, sizeof(text), "entry-%llu", (unsigned long long)b->journal_end);
	add.bytes = add.version = str_of(text);
	must(store_journal_add(b->s, &b->ctx, journal, file, cond, &add, &added, &err), &err);
	b->journal_end++;
	arena_reset(b->ctx.arena);
	b->version = arena_str(b->ctx.arena, str_of(text));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

/* Microseconds, the median of CALLS. */
static double time_store(struct bench *b, void (*one)(struct bench *b))
{
	static double took[CALLS];

	for (size_t i = 0; i < CALLS; i++) {
		int64_t from = clock_monotonic_ns();

		one(b);
		took[i] = (double)(clock_monotonic_ns() - from) / 1000;
		if (one == read_one && i % 64 == 0) {
			char version[64];

			snprintf(version, sizeof(version), "%.*s", STR_ARG(b->version));
			arena_reset(b->ctx.arena);
			b->version = arena_str(b->ctx.arena, str_of(version));
		}
	}
	return median(took, CALLS);
}

/* The fifth column of redis-benchmark's table: the median in milliseconds. Both are run, so that GET finds what SET of
   the same size wrote. */
static double time_peer(const char *what, size_t size)
{
	char command[256], line[512], name[8];
	double rps, avg, min, p50 = 0, found = 0;
	FILE *f;

	snprintf(command, sizeof(command), "redis-benchmark -p %s -c 1 -n %d -d %zu -t set,get --csv 2>/dev/null",
		 need("STEAD_TEST_REDIS_PORT"), CALLS, size);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "\"%7[A-Z]\",\"%lf\",\"%lf\",\"%lf\",\"%lf\"", name, &rps, &avg, &min, &p50) == 5 &&
		    str_eq_nocase(str_of(name), str_of(what)))
			found = p50;
	if (!f || pclose(f) || found <= 0) {
		fprintf(stderr, "redis-benchmark gave no figures\n");
		exit(1);
	}
	return found * 1000;
}

static void row(struct bench *b, size_t rounds, const char *name, const char *peer, void (*one)(struct bench *b))
{
	double own[ROUNDS_MAX], theirs[ROUNDS_MAX], x, y;

	for (size_t i = 0; i < rounds; i++) {
		theirs[i] = time_peer(peer, b->size);
		own[i] = time_store(b, one);
	}
	x = median(own, rounds);
	y = median(theirs, rounds);
	printf("| %s, %zu KiB | %.1f µs | %s %.1f µs | %.2f | ≤ 1.3 |\n", name, b->size / KIB, x, peer, y, x / y);
	fflush(stdout);
}

static void rows(struct bench *b, size_t rounds, size_t size)
{
	char *bytes = xmalloc(size);
	struct store_stat stat;
	struct err err;

	memset(bytes, 'x', size);
	b->size = size;
	b->bytes = str_n(bytes, size);
	must(store_write(b->s, &b->ctx, file, b->bytes, (struct store_cond){0}, &stat, &err), &err);
	b->version = stat.version;
	row(b, rounds, "read", "get", read_one);
	row(b, rounds, "conditional write", "set", write_one);
	row(b, rounds, "conditional write with its journal entry", "set", write_with_entry);
	free(bytes);
}

int main(int argc, char **argv)
{
	struct bench b = {.ctx = {.arena = arena_new()}};
	size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 5;
	struct err err;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "give 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	must(store_open_url(str_of(need("STEAD_TEST_REDIS")), &b.s, &err), &err);
	rows(&b, rounds, 1 * KIB);
	rows(&b, rounds, 64 * KIB);
	store_destroy(b.s);
	arena_destroy(b.ctx.arena);
	return 0;
}
