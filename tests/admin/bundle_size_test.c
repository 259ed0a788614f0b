/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles of any size need the same memory. */
#include "admin/bundle.h"
#include "base/limits.h"
#include "memory_use.h"
#include "temp_dir.h"
#include "test.h"

struct endless {
	uint64_t left;
};

static int endless_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *e)
{
	struct endless *s = arg;
	size_t n = cap < s->left ? cap : (size_t)s->left;

	(void)e;
	for (size_t i = 0; i + 8 <= n; i += 8)
		memcpy((char *)buf + i, &s->left, 8);
	s->left -= n;
	*ret_len = n;
	return 0;
}

static int push_file(void *arg, const void *bytes, size_t len, struct err *e)
{
	return fwrite(bytes, 1, len, arg) == len ? 0 : err_set(e, ERR_UNAVAILABLE, "no space");
}

static int pull_file(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *e)
{
	(void)e;
	*ret_len = fread(buf, 1, cap, arg);
	return 0;
}

static void trip_of(uint64_t size)
{
	struct endless endless = {size};
	struct source from = {.pull = endless_pull, .arg = &endless}, source;
	FILE *file = tmpfile();
	struct sink sink = {.push = push_file, .arg = file};
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace_opts opts = {.name = STR("one"), .create = true, .relaxed = true};
	struct store_cond any = {0};
	struct workspace *ws;
	struct jv *report;
	struct err err;

	opts.store_url = arena_printf(arena, "disk:%s", temp_dir_new());
	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	memory_peak_begin();
	CHECK_OK(store_write_stream(workspace_files(ws), &ctx, (struct wpath){STR("big")}, &from, any, NULL, &err),
		 err);
	CHECK_OK(bundle_export(ws, &ctx, &sink, &report, &err), err);
	rewind(file);
	source = (struct source){.pull = pull_file, .arg = file};
	CHECK_OK(bundle_import(&ctx, opts.store_url, &source, STR("two"), &report, &err), err);
	CHECK(memory_peak_kib() < 24 * 1024);
	fclose(file);
	workspace_close(ws);
	arena_destroy(arena);
}

TEST(a_file_of_64_mib_makes_the_trip_in_less_than_24_mib)
{
	trip_of(64 * MIB);
}

TEST(a_file_of_256_mib_makes_the_trip_in_less_than_24_mib)
{
	trip_of(256 * MIB);
}
