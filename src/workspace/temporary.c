/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where workspaces lie, in the words people use: a store's URL, a path, "memory", or "temp" for a directory of its own
 * that goes with the workspace ("temp:PREFIX" begins its name; "?cleanup=false" after it keeps the directory).
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "workspace/workspace_parts.h"

#define OPEN_DIRS 16

bool workspace_is_temp(struct str url)
{
	return str_is(url, "temp") || str_starts(url, STR("temp:"));
}

struct str workspace_url(struct arena *arena, struct str text)
{
	if (str_is(text, "memory") || str_is(text, "inmemory"))
		return STR("memory:");
	if (str_starts(text, STR("/")) || str_starts(text, STR("./")) || str_starts(text, STR("../")) ||
	    str_is(text, ".") || str_is(text, ".."))
		return arena_printf(arena, "disk:%.*s", STR_ARG(text));
	return text;
}

int workspace_temp_new(struct arena *arena, struct str url, struct str *ret_dir, bool *ret_cleanup, struct err *err)
{
	struct str rest = str_from(url, 5), prefix = str_first(rest, str_find_char(rest, '?')), option;
	const char *base = env_process("TMPDIR");
	struct str dir;
	bool keeps;

	option = str_from(rest, prefix.len);
	keeps = str_is(option, "?cleanup=false");
	if (ret_cleanup)
		*ret_cleanup = !keeps;
	if (option.len && !keeps && !str_is(option, "?cleanup=true"))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" has an option that is not known; write temp:NAME?cleanup=false",
			       STR_ARG(utf8_first(url, 100)));
	if (!prefix.len)
		prefix = STR("stead-");
	if (!wpath_name_ok(prefix) || prefix.len > 200)
		return err_set(err, ERR_INVALID, "temp:%.*s: the prefix must be a valid name, without '/'",
			       STR_ARG(utf8_first(prefix, 80)));
	dir = arena_printf(arena, "%s/%.*sXXXXXX", base && base[0] == '/' ? base : "/tmp", STR_ARG(prefix));
	if (!mkdtemp((char *)dir.ptr))
		return err_sys(err, errno, "no temporary directory could be created in \"%s\"",
			       base && base[0] == '/' ? base : "/tmp");
	*ret_dir = dir;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

void workspace_temp_end(const char *dir)
{
	/* What cannot be removed stays; it is in the place for temporary things. */
	(void)nftw(dir, remove_entry, OPEN_DIRS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
