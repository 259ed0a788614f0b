/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .env files, and ${NAME} in values. The input is cut at its first NUL: the file before it, a value after it. Beyond
 * "does not crash": names have the form of names, and a value without '$' never changes.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "text/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_name(struct str name)
{
	require(name.len > 0 && !(name.ptr[0] >= '0' && name.ptr[0] <= '9'));
	for (size_t i = 0; i < name.len; i++)
		require((name.ptr[i] >= '0' && name.ptr[i] <= '9') || (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') ||
			(name.ptr[i] >= 'a' && name.ptr[i] <= 'z') || name.ptr[i] == '_');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str all = str_n(data, size), text = str_first(all, str_find_char(all, 0)), value;
	struct jv *vars, *v;
	struct err err = {0};

	value = str_from(all, text.len + 1);
	if (dotenv_parse(arena, text, &vars, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	for (const struct jv_member *m = jv_first(vars); m; m = m->next) {
		check_name(m->key);
		require(m->value->type == JV_STR && utf8_valid(m->value->u.s));
	}
	v = jv_str(arena, value);
	if (utf8_valid(value) && dotenv_expand(arena, v, vars, &err) == 0) {
		require(v->type == JV_STR && utf8_valid(v->u.s));
		require(str_find_char(value, '$') < value.len || str_eq(v->u.s, value));
	}
	return 0;
}
