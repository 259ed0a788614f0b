/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places: an object in another system's words, and the URL of a database. Beyond "does not crash": what is accepted
 * names a store, and a password that was in a URL is in none of its parts.
 */
#include <stdint.h>
#include <stdlib.h>

#include "store/backends/mysql/mysql_conn.h"
#include "workspace/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = arena_str(arena, str_n((const char *)data, size));
	struct place_spec spec;
	struct my_config config;
	struct env env = {0};
	struct err err = {0};

	if (place_spec_parse(arena, text, &spec, &err) == 0)
		require(spec.store.len > 0 && spec.env_count <= 8);
	if (my_config_parse(arena_printf(arena, "mysql://%.*s", STR_ARG(text)), &env, &config, &err) == 0) {
		require(config.host && config.database && config.port && config.pool && !config.password);
		my_config_release(&config);
	}
	return 0;
}
