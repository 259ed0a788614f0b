/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern from anyone over text from anyone, through the whole search. Input: one byte of flags, the pattern, a
 * newline, the text of one file. Beyond "does not crash and ends": lines come in order and are lines of the text, the
 * page agrees with the total, and a literal finds exactly the lines that a plain search finds.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"
#include "find/find.h"
#include "store/stores.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLAG_LITERAL = 1, FLAG_IGNORE_CASE = 2, FLAG_CONTEXT = 4, FLAG_COUNT = 8, FLAG_CUT = 16 };

static void require(bool fact)
{
	if (!fact)
		abort();
}

static uint64_t lines_with(struct str text, struct str needle)
{
	struct str line;
	uint64_t count = 0;

	while (str_cut(&text, '\n', &line))
		count += str_find(line, needle, 0) != SIZE_MAX;
	return count;
}

static void check_lines(const struct grep_result *result, struct str text, const struct grep_req *req)
{
	uint64_t last = 0, matches = 0;

	for (size_t i = 0; i < result->count; i++) {
		const struct grep_line *l = &result->lines[i];

		if (req->output != GREP_LINES) {
			require(l->count == result->matches);
			continue;
		}
		require(l->line > last && l->text.len <= req->line_cut);
		require(l->text.len == 0 || str_find(text, l->text, 0) != SIZE_MAX);
		require(req->context || l->is_match);
		matches += l->is_match;
		last = l->line;
	}
	require(req->output != GREP_LINES || matches == result->matches);
}

static void search(struct store *store, struct ctx *ctx, struct str pattern, struct str text, unsigned flags)
{
	struct grep_req req = {
		.path = WPATH_ROOT,
		.pattern = pattern,
		.literal = flags & FLAG_LITERAL,
		.ignore_case = flags & FLAG_IGNORE_CASE,
		.context = flags & FLAG_CONTEXT ? 2 : 0,
		.output = flags & FLAG_COUNT ? GREP_COUNT : GREP_LINES,
		.limit = UINT64_MAX,
		.line_cut = flags & FLAG_CUT ? 10 : SIZE_MAX,
		.threads = 1,
	};
	struct grep_result result;
	struct err err = {0};

	if (find_grep(store, ctx, &req, NULL, NULL, &result, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return;
	}
	check_lines(&result, text, &req);
	/* A NUL makes a file binary, and a carriage return at the end does not belong to the line. */
	if (req.literal && !req.ignore_case && pattern.len && str_find_char(text, '\0') == text.len &&
	    str_find_char(pattern, '\r') == pattern.len)
		require(result.matches == lines_with(text, pattern));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data + (size > 0), size - (size > 0)), pattern;
	struct ctx ctx = {.arena = arena};
	struct store_stat stat;
	struct store *store;
	struct err err;

	if (size < 2 || !str_cut(&text, '\n', &pattern))
		return 0;
	store = store_memory_new();
	if (store_write(store, &ctx, (struct wpath){STR("a.txt")}, text, (struct store_cond){0}, &stat, &err) == 0)
		search(store, &ctx, pattern, text, data[0]);
	store_destroy(store);
	return 0;
}
