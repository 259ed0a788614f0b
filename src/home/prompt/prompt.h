/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prompt: an agent's instructions before a conversation, made from the files of its home. It is made for each turn,
 * but a file is read again only when it has changed, by whichever process, program or person.
 *
 * The sections come from the families (tool/prompt_section.h), in the order in which they change, the rarest first, so
 * that a turn's prompt begins with the same bytes as the one before it: providers charge little for a beginning that
 * they have seen. A class is what changes together; its end is a good place for a cache breakpoint. What one class may
 * take never depends on those after it.
 *
 * Everything from a file is escaped: the tags of the text are Stead's, and no others.
 */
#ifndef STEAD_HOME_PROMPT_PROMPT_H
#define STEAD_HOME_PROMPT_PROMPT_H

#include "command/command.h"
#include "text/jv.h"
#include "tool/prompt_section.h"

extern const char *const prompt_class_names[PROMPT_CLASSES];

struct prompt_opts {
	uint64_t max_tokens;       /* 0: what agent.yaml says (prompt.max_tokens), or 16000 */
	const struct toolset *set; /* the tools that the agent has; NULL: all native ones that configuration allows */
	bool is_alone;             /* the workspace was opened for it: changes are watched from the second prompt on */
};

/* A section, or one of its files, in the text. */
struct prompt_span {
	const char *name;
	enum prompt_class class;
	size_t start, len;          /* in the text */
	uint64_t tokens;            /* as it is there */
	uint64_t tokens_all, bytes; /* of everything there is to show */
	struct str sources;         /* its files, ", " between them; the first few */
	struct str cut;             /* what was left out, why and where it is; empty: nothing */
};

struct prompt {
	struct str text;
	uint64_t tokens, max_tokens;
	struct prompt_span *sections; /* those that have something to say, in order */
	size_t count;
	struct str *problems; /* files that could not be used, with the reason */
	size_t problem_count;
	uint64_t files_read; /* this time */
};

/* Everything in ctx->arena. Agent and session are those of the call, else those that the workspace was opened for. The
   same files, options and day give the same bytes. Never fails for what a file holds. */
int prompt_assemble(struct workspace *ws, struct ctx *ctx, const struct prompt_opts *opts, struct prompt *ret,
		    struct err *err);
/* {text, tokens, max_tokens, sections: […], breakpoints: [{class, after, bytes, tokens}], problems?: […]} */
struct jv *prompt_value(struct arena *arena, const struct prompt *prompt);

/* What an open workspace keeps between turns. */
struct prompt_kept;
extern const struct family prompt_family;
void *prompt_kept_new(struct workspace *ws);
void prompt_kept_destroy(void *state);

extern const struct command prompt_commands[];

#endif
