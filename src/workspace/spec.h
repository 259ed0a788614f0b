/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in the words of other systems: an object in place of a URL. Two forms are understood.
 *
 *   OmniCoreAgent's workspace_config: {workspace_backend, workspace_dir, prefix, s3_bucket, r2_bucket_name, …}
 *   Loomflow's dict: {backend, path, prefix, cleanup, seed, author, teammates}
 */
#ifndef STEAD_WORKSPACE_SPEC_H
#define STEAD_WORKSPACE_SPEC_H

#include "base/env.h"
#include "text/jv.h"

struct place_spec {
	struct str store;           /* a URL, also "temp:…" */
	struct str workspace;       /* which one of the store; empty: any */
	struct str author;          /* the agent that acts; empty: not said */
	const struct jv *teammates; /* the agents that share the notebook; may be NULL */
	const struct jv *seeds;     /* files of this machine to copy to seeds/ of the file area; may be NULL */
	struct env_var env[8];      /* keys and addresses of the store */
	size_t env_count;
};

/* True for text that is an object: "{…}". */
bool place_is_spec(struct str text);
/* An unknown key is an error that names it, and so is a bucket that is missing. */
int place_spec_read(struct arena *arena, const struct jv *object, struct place_spec *ret, struct err *err);
/* From text, in JSON or YAML. */
int place_spec_parse(struct arena *arena, struct str text, struct place_spec *ret, struct err *err);
/* OmniCoreAgent's directory, or its prefix in a bucket, is the workspace itself: here that is a workspace of this name
   in the store above it, so that both programs find the same files. `bucket` is ignored for "local". */
int place_of_omnicoreagent(struct arena *arena, struct str backend, struct str path, struct str bucket,
			   struct str *ret_store, struct str *ret_name, struct err *err);

#endif
