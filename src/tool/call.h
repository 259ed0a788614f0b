/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the handlers of tools: arguments, results and pieces of text. */
#ifndef STEAD_TOOL_CALL_H
#define STEAD_TOOL_CALL_H

#include "base/buf.h"
#include "base/limits.h"
#include "store/store.h"
#include "tool/tool.h"

#define RO (TOOL_READS_ONLY | TOOL_IDEMPOTENT)
#ifndef COUNT
#endif

/* A path from the arguments; the root when the key is missing. */
int arg_path(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err);
/* The same, refusing the root. */
int arg_file(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err);
/* The same as workspace_written_path() has it: for what only reads. */
int arg_written_file(struct call *call, const struct jv *args, const char *key, struct wpath *ret, struct err *err);
/* if_version as a condition; {0} when it is not given. */
struct store_cond arg_cond(const struct jv *args);
/* A count from the arguments, at most `max`. */
uint64_t arg_count(const struct jv *args, const char *key, uint64_t fallback, uint64_t max);
/* How many lines `offset`, the number of a line, has before it. */
uint64_t arg_first_line(const struct jv *args);
/* A revision from the arguments: a number, a checkpoint's name or "head". */
int arg_revision(struct call *call, const struct jv *args, const char *key, uint64_t *ret, bool *ret_given,
		 struct err *err);
/* A copy of the arguments with names changed: pairs of (theirs, ours), NULL at the end. What is not named is left out;
   a null value counts as not given. */
struct jv *args_map(struct arena *arena, const struct jv *args, const char *const *pairs);
/* How most handlers of dialects begin: `mapped` are our arguments (pairs as for args_map), `text` is the reply. */
#define START(...)                                                                                                     \
	struct arena *arena = call->ctx->arena;                                                                        \
	struct jv *mapped = args_map(arena, args, (const char *const[]){__VA_ARGS__});                                 \
	struct buf text;                                                                                               \
	int r;                                                                                                         \
	buf_init(&text, arena, 2 * TOOL_TEXT_MAX)

/* {path, size, version}. */
struct jv *value_file(struct arena *arena, struct wpath path, const struct store_stat *stat);
/* Finishes a reply of text alone: drops the value. */
void text_reply(struct outcome *ret, const struct buf *text);
/* The path as a model sees it: the root is "/". */
struct str path_shown(struct wpath path);
/* "1.5 KB" */
void buf_size(struct buf *buf, uint64_t bytes);
/* "s" unless `n` is 1. */
const char *plural(uint64_t n);
/* "1 file", "2 files": a number of the value, for printf with %.*s and STR_ARG. */
struct str value_count(struct arena *arena, const struct jv *value, const char *key, const char *noun);
bool bytes_are_binary(struct str bytes);

#endif
