/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A glob from anyone against a path from anyone. Input: one byte of flags, the pattern, a newline, the path. Beyond
 * "does not crash and ends": a walk that asks glob_may_match_below() must not miss a match, and a pattern without
 * special characters matches itself and nothing else.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "text/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (strchr("*?[]{}\\,!/", s.ptr[i])) /* also NUL, which ends the set */
			return false;
	return s.len > 0;
}

/* Every directory on the way to a match must be entered. */
static void check_walk(const struct glob *glob, struct str path)
{
	for (size_t i = 1; i + 1 < path.len; i++)
		if (path.ptr[i] == '/')
			require(glob_may_match_below(glob, str_first(path, i)));
}

/* A path as a walk would give it. */
static bool is_path(struct str path)
{
	struct str rest = path, name;

	if (path.len == 0 || path.len > PATH_LEN_MAX || !utf8_valid(path))
		return false;
	if (path.ptr[0] == '/' || path.ptr[path.len - 1] == '/')
		return false;
	while (str_cut(&rest, '/', &name))
		if (name.len == 0 || str_is(name, ".") || str_is(name, ".."))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str path = str_n(data + (size > 0), size - (size > 0)), pattern;
	const struct glob *glob;
	struct err err = {0};
	unsigned flags;

	if (size < 2 || !str_cut(&path, '\n', &pattern))
		return 0;
	flags = data[0] & (GLOB_NOCASE | GLOB_BASENAME);
	if (glob_compile(arena, pattern, flags, &glob, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	if (is_path(path)) {
		bool matches = glob_match(glob, path);

		if (matches)
			check_walk(glob, path);
		if (flags == 0 && is_plain(pattern))
			require(matches == str_eq(pattern, path));
	}
	return 0;
}
