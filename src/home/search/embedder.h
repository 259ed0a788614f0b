/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service that makes vectors of texts: a client of POST …/embeddings as OpenAI has it. One that fails is left alone
 * for a while, longer each time, so that it cannot slow every search down. Thread-safe.
 */
#ifndef STEAD_HOME_SEARCH_EMBEDDER_H
#define STEAD_HOME_SEARCH_EMBEDDER_H

#include "base/ctx.h"
#include "workspace/config.h"

struct embedder;

/* Who makes vectors for search by meaning. */
struct config_embedding {
	struct str url, model, api_key; /* url empty: nobody */
	uint64_t dimensions;            /* 0: as many as the model gives */
	uint64_t batch, timeout_ms;
};
/* The key `embedding` of agent.yaml. */
void embedding_read(const struct jv *document, struct config_embedding *ret);

/* NULL when the configuration names none. What `config` points to must outlive it. */
struct embedder *embedder_new(const struct config_embedding *config);
void embedder_destroy(struct embedder *e); /* when no request runs */
/* One vector a text, in the arena, `dims` numbers each. ERR_INVALID: the service refuses these texts; it is asked again
   for others. Everything else is a failure of the service: until it is to be asked again, calls fail at once with what
   it failed with. Messages name no key. */
int embedder_embed(struct embedder *e, struct ctx *ctx, const struct str *texts, size_t count, float **ret_values,
		   unsigned *ret_dims, struct err *err);
/* The service answered with what cannot be used: as above. */
void embedder_is_wrong(struct embedder *e, const struct err *err);
bool embedder_is_left_alone(struct embedder *e);

/* The answer, for the fuzzer and the function above: `count` vectors of the same number of finite numbers. */
int embedder_parse(struct arena *arena, struct str body, size_t count, float **ret_values, unsigned *ret_dims,
		   struct err *err);

#endif
