/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kind of operation on a store in PostgreSQL, many times by one client; prints the mean in microseconds, as pgbench
 * does for the bare statement (bench/postgres runs the two in turns).
 *   postgres_bench URL read|write|journal COUNT
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

#define SIZE 1024

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

struct bench {
	struct store *s;
	struct ctx ctx;
	struct str bytes, version;
	uint64_t last;
};

static void run_read(struct bench *b)
{
	struct str bytes;
	struct err err;

	must(store_read(b->s, &b->ctx, path_of("bench/ours"), STORE_WHOLE, MIB, &bytes, NULL, &err), &err);
}

/* Under the condition that it is the version of the write before. */
static void run_write(struct bench *b)
{
	struct store_cond cond = {.kind = b->version.len ? STORE_VERSION : STORE_ANY, .version = b->version};
	char version[64];
	struct store_stat st;
	struct err err;

	must(store_write(b->s, &b->ctx, path_of("bench/ours"), b->bytes, cond, &st, &err), &err);
	snprintf(version, sizeof(version), "%.*s", STR_ARG(st.version));
	free((char *)b->version.ptr);
	b->version = str_n(xstrndup(str_of(version)), strlen(version));
}

static void run_journal(struct bench *b)
{
	struct journal_add add = {.after = b->last,
				  .bytes = arena_printf(b->ctx.arena, "entry %llx", (unsigned long long)random_u64()),
				  .change = JOURNAL_WRITE,
				  .content = b->bytes,
				  .version = arena_printf(b->ctx.arena, "%llx", (unsigned long long)random_u64())};
	struct journal_added added;
	struct err err;
	int r = store_journal_add(b->s, &b->ctx, path_of("bench/log"), path_of("bench/ours"), (struct store_cond){0},
				  &add, &added, &err);

	if (r == -ERR_CONFLICT && added.overtaken && b->last == 0) {
		b->last = added.news.last;
		return;
	}
	must(r, &err);
	b->last++;
}

int main(int argc, char **argv)
{
	struct bench b = {.ctx = {.arena = arena_new()}};
	void (*run)(struct bench * b);
	int64_t count, start = 0;
	char bytes[SIZE];
	struct err err;

	if (argc != 4 || !str_to_i64(str_of(argv[3]), &count) || count < 1)
		return 2;
	run = strcmp(argv[2], "read") == 0 ? run_read : strcmp(argv[2], "write") == 0 ? run_write : run_journal;
	memset(bytes, 'x', sizeof(bytes));
	b.bytes = str_n(bytes, sizeof(bytes));
	must(store_open_url(str_of(argv[1]), NULL, &b.s, &err), &err);
	must(store_write(b.s, &b.ctx, path_of("bench/ours"), b.bytes, (struct store_cond){0}, NULL, &err), &err);
	for (int64_t i = -10; i < count; i++) {
		if (i == 0)
			start = clock_monotonic_ns();
		run(&b);
		arena_reset(b.ctx.arena);
	}
	printf("%.1f\n", (double)(clock_monotonic_ns() - start) / 1000 / (double)count);
	store_destroy(b.s);
	free((char *)b.version.ptr);
	arena_destroy(b.ctx.arena);
	return 0;
}
