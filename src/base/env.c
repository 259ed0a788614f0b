/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that is only added to: who got a value may keep the pointer, and a look needs no lock. There are as many
 * entries as a .env file has lines.
 */
#include "base/env.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"

struct setting {
	struct setting *next;
	char *name, *value;
};

static const char *(*_Atomic process_lookup)(const char *name);
static struct setting *_Atomic settings;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static const struct setting *find(const char *name)
{
	const struct setting *s = atomic_load(&settings);

	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

const char *env_process(const char *name)
{
	const char *(*lookup)(const char *name) = atomic_load(&process_lookup);

	return lookup ? lookup(name) : getenv(name);
}

void env_set_lookup(const char *(*lookup)(const char *name))
{
	atomic_store(&process_lookup, lookup);
}

const char *env_get(const char *name)
{
	const struct setting *s = find(name);

	return s ? s->value : env_process(name);
}

void env_set(struct str name, struct str value)
{
	struct setting *s = xcalloc(1, sizeof *s);
	const struct setting *known;

	s->name = xstrndup(name);
	s->value = xstrndup(value);
	pthread_mutex_lock(&adding);
	known = find(s->name);
	if (known && strcmp(known->value, s->value) == 0) { /* the same file, read again */
		free(s->name);
		free(s->value);
		free(s);
	} else {
		s->next = atomic_load(&settings);
		atomic_store(&settings, s);
	}
	pthread_mutex_unlock(&adding);
}
