/* SPDX-License-Identifier: Apache-2.0 */
/* A memory file, and text that is saved to one: parts are the file, and no text changes the provenance of a fact. */
#include <stdlib.h>

#include "base/limits.h"
#include "home/memory/memory_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(struct arena *arena, struct str bytes)
{
	struct parts parts;
	struct str rest = bytes;

	memory_parse(arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++) {
		if (!str_starts(rest, parts.list[i].raw))
			abort();
		rest = str_from(rest, parts.list[i].raw.len);
		if (parts.list[i].is_fact && (!parts.list[i].fact.text.len || !memory_id_is(parts.list[i].fact.id)))
			abort();
	}
	if (rest.len)
		abort();
}

static void check_saved(struct arena *arena, struct str text)
{
	struct jv *mark = jv_object(arena);
	struct parts parts;
	struct buf out;

	jv_set_str(arena, mark, "id", STR("m-0123456789"));
	jv_set_str(arena, mark, "trust", STR("outside"));
	jv_set_str(arena, mark, "source", text);
	buf_init(&out, arena, SIZE_MAX / 2);
	buf_lit(&out, "- before\n");
	memory_write_fact(&out, text, mark);
	buf_lit(&out, "- behind\n");
	memory_parse(arena, buf_str(&out), &parts);
	if (parts.count != 3 || !str_eq(parts.list[1].fact.text, text) || parts.list[1].fact.trust != TRUST_OUTSIDE ||
	    !str_is(parts.list[1].fact.id, "m-0123456789") || !str_is(parts.list[2].fact.text, "behind"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = arena_str(arena, str_n(data, size)), *texts;
	struct err err;
	size_t count;

	check_file(arena, text);
	if (memory_split(arena, text, &texts, &count, &err))
		return 0;
	for (size_t i = 0; i < count; i++)
		check_saved(arena, texts[i]);
	return 0;
}
