/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where OmniCoreAgent keeps its workspace, by the variables of its page. Keys and regions are the variables that S3 and
 * R2 stores read anyway.
 */
#include "base/env.h"
#include "command/cli.h"
#include "workspace/spec.h"

static struct str variable(const char *name, const char *fallback)
{
	const char *value = env_process(name);

	return str_of(value && *value ? value : fallback);
}

int cli_foreign_place(struct arena *arena, struct str dialect, struct str *store, struct str *name, struct err *err)
{
	struct str backend = variable("OMNICOREAGENT_WORKSPACE_BACKEND", "local"), path, bucket = STR("");
	bool given = env_process("OMNICOREAGENT_WORKSPACE_BACKEND") || env_process("OMNICOREAGENT_WORKSPACE_DIR");

	if (!str_is(dialect, "omnicoreagent") || !given || store->len || name->len)
		return 0;
	path = variable("OMNICOREAGENT_WORKSPACE_DIR", "./workspace");
	if (str_is(backend, "s3") || str_is(backend, "r2")) {
		const char *key = str_is(backend, "s3") ? "AWS_S3_BUCKET" : "R2_BUCKET_NAME";

		path = variable("OMNICOREAGENT_WORKSPACE_PREFIX", "workspace");
		bucket = variable(key, "");
		if (!bucket.len)
			return err_set(
				err, ERR_INVALID,
				"OMNICOREAGENT_WORKSPACE_BACKEND is \"%.*s\" and %s is not set; set it to the bucket",
				STR_ARG(backend), key);
	}
	return place_of_omnicoreagent(arena, backend, path, bucket, store, name, err);
}
