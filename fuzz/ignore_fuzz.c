/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ignore files as they come with anyone's tree. The input is the file, a NUL, and a path. Facts beyond "does not
 * crash": no rule brings .git back, a comment after the rules changes nothing, and a last rule for the name decides.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "text/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str path = str_n(data, size), text, longer;
	const struct ignore *rules, *again;

	if (!str_cut(&path, '\0', &text) || path.ptr == NULL || text.len > 65536)
		return 0;
	rules = ignore_push(arena, NULL, STR(""), text);
	require(ignore_match(rules, STR("a/.git"), true));
	longer = arena_printf(arena, "%.*s\n# %s\n", (int)text.len, text.ptr, "nothing");
	again = ignore_push(arena, NULL, STR(""), longer);
	require(ignore_match(rules, path, true) == ignore_match(again, path, true));
	require(ignore_match(rules, path, false) == ignore_match(again, path, false));
	again = ignore_push(arena, rules, STR(""), STR("!name\n"));
	require(!ignore_match(again, STR("a/name"), false));
	return 0;
}
