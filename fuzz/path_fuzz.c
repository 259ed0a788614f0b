/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths typed by anyone. Beyond "does not crash": whatever either parser accepts has the form that wpath.h promises,
 * checked here by other means, and taking it apart and joining it again gives the same path.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "store/wpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_element(struct str name)
{
	require(name.len > 0 && name.len <= PATH_NAME_MAX);
	require(!str_is(name, ".") && !str_is(name, ".."));
	require(wpath_name_ok(name));
	for (size_t i = 0; i < name.len; i++)
		require((unsigned char)name.ptr[i] >= 0x20 && name.ptr[i] != 0x7f);
}

static void check_form(struct wpath p)
{
	struct str rest = p.s, name;

	require(p.s.len <= PATH_LEN_MAX && utf8_valid(p.s));
	if (p.s.len == 0)
		return;
	require(p.s.ptr[0] != '/' && p.s.ptr[p.s.len - 1] != '/');
	while (str_cut(&rest, '/', &name))
		check_element(name);
}

static void check_parts(struct arena *arena, struct wpath p)
{
	struct wpath parent = wpath_parent(p), joined, again;
	struct err err;

	require(wpath_within(p, WPATH_ROOT) && wpath_within(p, parent));
	if (!wpath_is_root(p)) {
		require(wpath_join(arena, parent, (struct wpath){wpath_name(p)}, &joined, &err) == 0);
		require(wpath_eq(joined, p));
		require(str_eq(wpath_relative(p, parent).s, wpath_name(p)));
	}
	require(wpath_parse(p.s, &again, &err) == 0 && wpath_eq(again, p));
	require(wpath_parse_lenient(arena, p.s, &again, &err) == 0 && wpath_eq(again, p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);
	struct wpath strict, lenient;
	struct err err;
	bool is_strict = wpath_parse(text, &strict, &err) == 0;

	if (is_strict) {
		check_form(strict);
		check_parts(arena, strict);
	}
	if (wpath_parse_lenient(arena, text, &lenient, &err) == 0) {
		check_form(lenient);
		check_parts(arena, lenient);
		require(!is_strict || wpath_eq(strict, lenient));
	} else {
		require(!is_strict);
	}
	return 0;
}
