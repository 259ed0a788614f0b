/* SPDX-License-Identifier: Apache-2.0 */
/* From one URL to the store it names: the only place that knows which backends this build has. */
#include "store/stores.h"

#include "base/limits.h"

static int open_disk(struct str dir, struct store **ret_store, struct err *err)
{
	static const struct store_disk_opts opts = {.create = true};
	char *path;
	int r;

	if (dir.len == 0)
		return err_set(err, ERR_INVALID, "the store \"disk:\" names no directory; write \"disk:DIR\"");
	if (dir.len > 4 * PATH_LEN_MAX || memchr(dir.ptr, '\0', dir.len))
		return err_set(err, ERR_INVALID, "the directory of the store is too long or has a NUL character");
	path = xstrndup(dir);
	r = store_disk_open(path, &opts, ret_store, err);
	free(path);
	return r;
}

int store_open_url(struct str url, const struct env *env, struct store **ret_store, struct err *err)
{
	return store_open_url_within(url, env, &(struct ctx){0}, ret_store, err);
}

int store_open_url_within(struct str url, const struct env *env, const struct ctx *limits, struct store **ret_store,
			  struct err *err)
{
	struct arena *arena;

	if (str_starts(url, STR("s3://")) || str_starts(url, STR("r2://")))
		return store_s3_open(url, env, ret_store, err);
	if (str_starts(url, STR("disk:")))
		return open_disk(str_from(url, 5), ret_store, err);
	if (str_starts(url, STR("redis://")) || str_starts(url, STR("rediss://")) ||
	    str_starts(url, STR("redis+unix://")))
		return store_redis_open(url, env, limits, ret_store, err);
	if (str_is(url, "memory:")) {
		*ret_store = store_memory_new();
		return 0;
	}
	if (str_starts(url, STR("postgres://")) || str_starts(url, STR("postgresql://")))
		return store_postgres_open(url, env, limits, ret_store, err);
	if (str_starts(url, STR("mysql://")) || str_starts(url, STR("mariadb://")))
		return store_mysql_open(url, env, limits, ret_store, err);
	arena = arena_new();
	err_set(err, ERR_UNSUPPORTED,
		"cannot open the store \"%.*s\"; this build knows \"disk:DIR\", \"memory:\", \"s3://…\", \"r2://…\", "
		"\"redis://…\", \"rediss://…\", \"redis+unix://…\", \"postgres://…\", \"mysql://…\" and "
		"\"mariadb://…\"",
		STR_ARG(utf8_first(store_url_shown(arena, url), 200)));
	arena_destroy(arena);
	return -ERR_UNSUPPORTED;
}

bool store_url_is_local(struct str url)
{
	return str_starts(url, STR("disk:")) || str_starts(url, STR("memory:"));
}

/* Hides everything from the first ':' after "scheme://" to the last '@', and the values of such parameters. A password
   may have any character, so what cannot be told from one is hidden too. */
struct str store_url_shown(struct arena *arena, struct str url)
{
	static const struct str secret[] = {STR("password="), STR("secret="), STR("token="), STR("key=")};
	size_t start = str_find(url, STR("://"), 0), end, colon;

	if (start == SIZE_MAX)
		return url;
	start += 3;
	end = str_rfind_char(url, '@');
	colon = start + str_find_char(str_from(url, start), ':');
	if (end < url.len && colon < end)
		url = arena_printf(arena, "%.*s***%.*s", (int)(colon + 1), url.ptr, STR_ARG(str_from(url, end)));
	for (size_t i = 0; i < COUNT(secret); i++) {
		for (size_t at = 0, stop; (at = str_find(url, secret[i], at)) != SIZE_MAX;) {
			at += secret[i].len;
			stop = at + str_find_char(str_from(url, at), '&');
			url = arena_printf(arena, "%.*s***%.*s", (int)at, url.ptr, STR_ARG(str_from(url, stop)));
		}
	}
	return url;
}
