/* SPDX-License-Identifier: Apache-2.0 */
/* What dialects share: translated arguments, and small pieces of replies. */
#ifndef STEAD_DIALECTS_COMMON_H
#define STEAD_DIALECTS_COMMON_H

#include "base/utf8.h"
#include "home/exec/exec.h"
#include "home/files/files.h"
#include "tool/dialect.h"

extern const struct dialect dialect_omnicoreagent, dialect_openpaw, dialect_wacht, dialect_agentscope,
	dialect_anthropic_memory, dialect_loomflow, dialect_filesystem;

/* For a pattern without '/', one that matches the name at any depth. */
struct str glob_any_depth(struct arena *arena, struct str pattern);
/* The lines of grep's result: "path:line:text". */
void add_grep_lines(struct buf *text, const struct jv *value);
/* "[1200 files in all; …]" on a line of its own if `value` is only the first page. `what` is what follows the number.
 */
void note_more(struct buf *text, const struct jv *value, const char *what);
/* For systems that count lines from 0: the `offset` of their arguments as the number of a line, and the `next_offset`
   of a result as one of theirs. */
void offset_from_0(struct arena *arena, struct jv *mapped);
void next_offset_from_0(struct arena *arena, struct jv *value);
/* Runs a command; the reply is text: its output, and its exit code before or after it. */
int reply_execute(struct call *call, const struct exec_call *what, bool code_first, struct outcome *ret,
		  struct err *err);
/* A kind's usual sentence may be replaced by the dialect's own: keeps the kind. */
#define RETELL(err, ...) err_set((err), (err)->kind, __VA_ARGS__)

#endif
