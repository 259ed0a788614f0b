/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the calls of stores, their bytes, and what is parsed: a measure of work that is the same on every run and
 * every machine. The program is linked with count_store_calls (tests/meson.build), which puts these functions before
 * the real ones.
 */
#ifndef STEAD_TESTS_STORE_CALLS_H
#define STEAD_TESTS_STORE_CALLS_H

#include "store/store.h"
#include "text/yaml.h"

struct work {
	size_t calls;   /* stat, read, write, append, list, scan */
	size_t bytes;   /* read, written and parsed as YAML */
	size_t lists;   /* of directories, and scans */
	size_t entries; /* of lists */
	size_t parses;  /* of YAML */
};
/* Of one thread: what a worker does in the background, such as the sweep of the index every few seconds, is not part of
   a call. */
static _Thread_local struct work work;

/* NOLINTBEGIN: the names are the linker's */
#define DOOR(ret, name, ...)                                                                                           \
	ret __real_##name(__VA_ARGS__);                                                                                \
	ret __wrap_##name(__VA_ARGS__);                                                                                \
	ret __wrap_##name(__VA_ARGS__)

DOOR(int, store_stat, struct store *s, struct ctx *ctx, struct wpath path, struct store_stat *ret, struct err *err)
{
	work.calls++;
	return __real_store_stat(s, ctx, path, ret, err);
}

DOOR(int, store_read, struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, size_t max,
     struct str *ret_bytes, struct store_stat *ret_stat, struct err *err)
{
	int r = __real_store_read(s, ctx, path, range, max, ret_bytes, ret_stat, err);

	work.calls++;
	work.bytes += r ? 0 : ret_bytes->len;
	return r;
}

DOOR(int, store_write, struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
     struct store_stat *ret, struct err *err)
{
	work.calls++;
	work.bytes += bytes.len;
	return __real_store_write(s, ctx, path, bytes, cond, ret, err);
}

DOOR(int, store_append, struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
     struct store_stat *ret, struct err *err)
{
	work.calls++;
	work.bytes += bytes.len;
	return __real_store_append(s, ctx, path, bytes, cond, ret, err);
}

DOOR(int, store_list, struct store *s, struct ctx *ctx, struct wpath path, const struct store_list_req *req,
     struct store_page *ret_page, struct err *err)
{
	int r = __real_store_list(s, ctx, path, req, ret_page, err);

	work.calls++;
	work.lists++;
	work.entries += r ? 0 : ret_page->count;
	return r;
}

DOOR(int, store_scan, struct store *s, struct ctx *ctx, struct wpath path, const struct scan_req *req, struct err *err)
{
	work.calls++;
	work.lists++;
	return __real_store_scan(s, ctx, path, req, err);
}

DOOR(int, yaml_parse, struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	work.parses++;
	work.bytes += text.len;
	return __real_yaml_parse(arena, text, ret, err);
}
/* NOLINTEND */

#endif
