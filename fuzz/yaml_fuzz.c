/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML written by anyone. Beyond "does not crash": a value that comes out has lines within the text, nests no deeper
 * than promised, has unique keys, and can be written as JSON and read back to the same value.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "text/yaml.h"

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

static void check(const struct jv *v, size_t lines, unsigned depth)
{
	require(depth <= JSON_DEPTH_MAX * 2 && v->line <= lines);
	require(v->type != JV_STR || utf8_valid(v->u.s));
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		require(v->type == JV_ARRAY || jv_get_key(v, m->key) == m->value);
		check(m->value, lines, depth + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);
	size_t lines = 2;
	struct jv *v, *again;
	struct err err = {0};
	struct buf json;

	if (yaml_parse(arena, text, &v, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r';
	check(v, lines, 0);
	buf_init(&json, arena, 64 * YAML_LEN_MAX);
	jv_write(&json, v);
	if (!json.overflow && jv_parse(arena, buf_str(&json), &again, &err) == 0)
		require(jv_equal(v, again));
	return 0;
}
