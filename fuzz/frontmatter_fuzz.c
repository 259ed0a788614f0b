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

/* What the quick reader takes, the YAML parser reads the same way: a blank after the first "---" makes it read. */
static void compare_readers(struct arena *arena, struct str text, const struct frontmatter *quick)
{
	const struct jv_member *a = jv_first(quick->head), *b;
	struct frontmatter slow;
	struct err err = {0};
	struct buf other;

	if (!str_starts(text, STR("---\n")) || !quick->has_head || !utf8_valid(text) || text.len > YAML_LEN_MAX / 2)
		return;
	buf_init(&other, arena, YAML_LEN_MAX);
	buf_lit(&other, "--- ");
	buf_add(&other, str_from(text, 3));
	if (frontmatter_parse(arena, buf_str(&other), &slow, &err) != 0) {
		require(err.kind == ERR_TOO_LARGE);
		return;
	}
	require(slow.has_head && jv_equal(quick->head, slow.head) && str_eq(quick->body, slow.body));
	for (b = jv_first(slow.head); a && b; a = a->next, b = b->next)
		require(a->key_line == b->key_line && a->value->line == b->value->line);
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
	compare_readers(arena, text, &read);
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
