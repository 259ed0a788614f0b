/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include <stdatomic.h>
#include <stdlib.h>

static const char *(*_Atomic process_lookup)(const char *name);

const char *env_process(const char *name)
{
	const char *(*lookup)(const char *name) = atomic_load(&process_lookup);

	return lookup ? lookup(name) : getenv(name);
}

void env_set_lookup(const char *(*lookup)(const char *name))
{
	atomic_store(&process_lookup, lookup);
}

const char *env_get(const struct env *env, const char *name)
{
	for (size_t i = 0; env && i < env->count; i++)
		if (strcmp(env->vars[i].name, name) == 0)
			return env->vars[i].value;
	return env_process(name);
}

struct env env_copy(struct arena *arena, const struct env *env)
{
	struct env_var *vars = ARENA_ARRAY(arena, struct env_var, env->count);

	for (size_t i = 0; i < env->count; i++)
		vars[i] = (struct env_var){arena_cstr(arena, str_of(env->vars[i].name)),
					   arena_cstr(arena, str_of(env->vars[i].value))};
	return (struct env){vars, env->count};
}
