/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings by name: those of one deployment (its .env file), then the environment of the process. Each deployment has
 * its own, so that two of them in one process do not use each other's credentials. A value from a file is not put into
 * the environment of the process, so that no child gets it.
 */
#ifndef STEAD_BASE_ENV_H
#define STEAD_BASE_ENV_H

#include "base/arena.h"

struct env_var {
	const char *name, *value;
};

struct env {
	const struct env_var *vars;
	size_t count;
};

/* A variable of the process alone: through env_set_lookup(), else getenv(). NULL: there is none. */
const char *env_process(const char *name);
/* From now on the environment of the process is what this function says; NULL: getenv(). Values must stay valid. */
void env_set_lookup(const char *(*lookup)(const char *name));
/* `env` NULL: only the environment of the process. NULL: neither has it. */
const char *env_get(const struct env *env, const char *name);
/* A copy that lives as long as the arena. */
struct env env_copy(struct arena *arena, const struct env *env);

#endif
