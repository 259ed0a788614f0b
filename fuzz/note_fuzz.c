/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Note files that anyone wrote. Beyond "does not crash": whatever the head claims, slug and author are those of the
 * path; and a note that could be read comes back the same after it was written, in every field.
 */
#include <stdint.h>
#include <stdlib.h>

#include "home/notebook/notebook_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libfyaml 0.7.12 forgets a buffer when a quoted string never ends; docs/decisions/0007-libfyaml.md. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml";
}

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void same(const struct note *a, const struct note *b)
{
	require(str_eq(a->title, b->title) && str_eq(a->body, b->body) && str_eq(a->kind, b->kind));
	require(str_eq(a->author, b->author) && str_eq(a->slug, b->slug) && str_eq(a->lede, b->lede));
	require(a->tag_count == b->tag_count);
	for (size_t i = 0; i < a->tag_count; i++)
		require(str_eq(a->tags[i], b->tags[i]));
	require(a->created_ns / 1000 == b->created_ns / 1000 && a->updated_ns / 1000 == b->updated_ns / 1000);
	require(a->answer == b->answer && a->version == b->version && a->cited == b->cited);
	require(a->succeeded == b->succeeded && (a->archived_ns != 0) == (b->archived_ns != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct wpath path = {STR("notes/ann/space/001-x.md")};
	struct note read, again;
	struct err err = {0};
	struct str bytes;

	if (note_parse(arena, path, str_n(data, size), 1, &read, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	require(str_is(read.slug, "001-x") && str_is(read.author, "ann") && str_is(read.namespace, "space"));
	require(utf8_valid(read.title) && utf8_valid(read.lede));
	if (note_format(arena, &read, NULL, &bytes, &err) != 0) {
		require(err.kind == ERR_TOO_LARGE);
		return 0;
	}
	require(note_parse(arena, path, bytes, 1, &again, &err) == 0);
	same(&read, &again);
	require(note_fragment(arena, read.title).len > 0 && wpath_name_ok(note_fragment(arena, read.title)));
	return 0;
}
