/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns and texts of anyone. The input is a byte of flags, a pattern, a NUL, and a text. Facts beyond "does not
 * crash" and "ends": the lines come in order, each is a line of the text, and the lines found do not depend on
 * their neighbours: each line alone gives the same answer.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "text/grep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Does the line that starts at `start` match when it is the only one? */
static int alone(struct searcher *s, struct str text, size_t start)
{
	struct str rest = str_from(text, start), line;
	size_t len = str_find_char(rest, '\n'), next;
	struct err err;

	searcher_begin(s, str_first(rest, len + 1));
	return searcher_next(s, 0, &line, &next, &err);
}

static void check(const struct matcher *m, struct str text)
{
	struct searcher *all = searcher_new(m), *one = searcher_new(m);
	size_t from = 0, start = 0, next;
	struct str line;
	struct err err;
	int r = 1;

	searcher_begin(all, text);
	while (r == 1 && (r = searcher_next(all, from, &line, &next, &err)) == 1) {
		size_t found = (size_t)(line.ptr - text.ptr);

		require(found >= from && found + line.len <= text.len && next > from);
		require(found == 0 || text.ptr[found - 1] == '\n');
		require(!memchr(line.ptr, '\n', line.len));
		for (; start < found && r == 1; start += str_find_char(str_from(text, start), '\n') + 1) {
			int a = alone(one, text, start);

			require(a <= 0);
			r = a < 0 ? a : 1;
		}
		require(r != 1 || alone(one, text, found) != 0);
		from = start = next;
	}
	searcher_destroy(all);
	searcher_destroy(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str rest, pattern;
	struct matcher *m;
	struct err err;

	if (size < 1)
		return 0;
	rest = str_n(data + 1, size - 1);
	if (!str_cut(&rest, '\0', &pattern))
		return 0;
	if (matcher_new(arena, pattern, data[0] & 3, &m, &err) != 0) {
		require(err.kind == ERR_INVALID || err.kind == ERR_TOO_LARGE);
		return 0;
	}
	check(m, rest.ptr ? rest : STR(""));
	matcher_destroy(m);
	return 0;
}
