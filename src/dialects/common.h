/* SPDX-License-Identifier: Apache-2.0 */
/* What dialects share: translated arguments, and small pieces of replies. */
#ifndef STEAD_DIALECTS_COMMON_H
#define STEAD_DIALECTS_COMMON_H

#include "home/files/files.h"
#include "tool/dialect.h"
#include "tool/schemas.h"

#define RO           (TOOL_READS_ONLY | TOOL_IDEMPOTENT)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A copy of the arguments with names changed: pairs of (theirs, ours), NULL at the end. What is not named is left out;
   a null value counts as not given. */
struct jv *args_map(struct arena *arena, const struct jv *args, const char *const *pairs);
/* How most handlers begin: `mapped` are our arguments (pairs as for args_map), `text` is the reply. */
#define START(...)                                                                                                     \
	struct arena *arena = call->ctx->arena;                                                                        \
	struct jv *mapped = args_map(arena, args, (const char *const[]){__VA_ARGS__});                                 \
	struct buf text;                                                                                               \
	int r;                                                                                                         \
	buf_init(&text, arena, 2 * TOOL_TEXT_MAX)

/* Finishes a reply of text alone: drops the value. */
void text_reply(struct outcome *ret, const struct buf *text);
/* The first `n` code points. */
struct str utf8_points(struct str s, size_t n);
/* For a pattern without '/', one that matches the name at any depth. */
struct str glob_any_depth(struct arena *arena, struct str pattern);
/* A kind's usual sentence may be replaced by the dialect's own: keeps the kind. */
#define RETELL(err, ...) err_set((err), (err)->kind, __VA_ARGS__)

#endif
