/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subagents as files: subagents/<id>.md has a head (what it is for, which model, which tools) and, as its body, the
 * system prompt. Here they are only read and checked; src/agent runs them.
 */
#ifndef STEAD_HOME_SUBAGENTS_SUBAGENTS_H
#define STEAD_HOME_SUBAGENTS_SUBAGENTS_H

#include "command/command.h"
#include "text/jv.h"
#include "tool/prompt_section.h"

/* The subagent that needs no declaration: it works as its parent does, in the same files. */
#define GENERAL_PURPOSE "general-purpose"

/* One file: {id, description, workspace: {mode, path?, root}, model?, steps, temperature?, top_p?, variant?, mode,
   hidden, expose_to_user, tools?, skills?, prompt?, warnings?}. `root` is where it works: "." for the workspace itself.
   Aliases (maxIters, topP, exposeToUser, "workspace.mode" as one key) and lists written as "a, b" are taken. */
int subagent_parse(struct arena *arena, struct str id, struct str text, struct jv **ret, struct err *err);
/* {subagents: [… by id], problems: [{path, problem}]}. `with_prompt`: the bodies too. A bad file is reported, and the
   others are listed. A user's files override the workspace's. */
int subagents_list(struct workspace *ws, struct ctx *ctx, bool with_prompt, struct jv **ret, struct err *err);
/* One, with its prompt; when its workspace has a path, that is AGENTS.md there. */
int subagent_get(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret, struct err *err);

/* For `stead doctor`. */
void subagents_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings);
/* For the prompt. */
extern const struct prompt_section subagents_sections[];

extern const struct command subagents_commands[];

#endif
