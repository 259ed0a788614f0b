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
/* The lines of grep's result: "path:line:text". */
void add_grep_lines(struct buf *text, const struct jv *value);
/* "[1200 files in all; …]" on a line of its own if `value` is only the first page. `what` is what follows the number.
 */
void note_more(struct buf *text, const struct jv *value, const char *what);
/* A kind's usual sentence may be replaced by the dialect's own: keeps the kind. */
#define RETELL(err, ...) err_set((err), (err)->kind, __VA_ARGS__)

#endif
