/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown files that anyone wrote. Beyond "does not crash": the body is the end of the text, and what was read comes
 * back the same after it was written, head and body.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "text/frontmatter.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);
	struct frontmatter read, again;
	struct err err = {0};
	struct buf b;

	if (frontmatter_parse(arena, text, &read, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	require(read.head->type == JV_OBJECT && str_ends(text, read.body));
	require(read.has_head || (read.body.len == text.len && jv_count(read.head) == 0));
	buf_init(&b, arena, 64 * YAML_LEN_MAX);
	frontmatter_write(&b, read.head, read.body);
	require(!b.overflow);
	/* written out, aliases and quotes may make the head longer than is read */
	if (frontmatter_parse(arena, buf_str(&b), &again, &err) != 0) {
		require(err.kind == ERR_TOO_LARGE);
		return 0;
	}
	require(again.has_head && jv_equal(read.head, again.head) && str_eq(read.body, again.body));
	return 0;
}
