/* SPDX-License-Identifier: Apache-2.0 */
/* What dialects share: translated arguments, and small pieces of replies. */
#ifndef STEAD_DIALECTS_COMMON_H
#define STEAD_DIALECTS_COMMON_H

#include "base/utf8.h"
#include "home/files/files.h"
#include "tool/dialect.h"

extern const struct dialect dialect_omnicoreagent, dialect_openpaw, dialect_wacht, dialect_agentscope,
	dialect_anthropic_memory, dialect_loomflow;

/* For a pattern without '/', one that matches the name at any depth. */
struct str glob_any_depth(struct arena *arena, struct str pattern);
/* A kind's usual sentence may be replaced by the dialect's own: keeps the kind. */
#define RETELL(err, ...) err_set((err), (err)->kind, __VA_ARGS__)

#endif
