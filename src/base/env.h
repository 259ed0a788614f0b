/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings by name: those that a deployment's .env file gives, then the environment of the process. What came from a
 * file stays in this process: it is not put into its environment, so that no child gets it.
 */
#ifndef STEAD_BASE_ENV_H
#define STEAD_BASE_ENV_H

#include "base/str.h"

/* A variable of the process alone: through env_set_lookup(), else getenv(). NULL: there is none. */
const char *env_process(const char *name);
/* From now on the environment of the process is what this function says; NULL: getenv(). Values must stay valid. */
void env_set_lookup(const char *(*lookup)(const char *name));
/* NULL: neither has it. Good until the process ends. Thread-safe. */
const char *env_get(const char *name);
/* From now on env_get() gives this value. The bytes are copied, and kept. */
void env_set(struct str name, struct str value);

#endif
