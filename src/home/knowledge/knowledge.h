/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knowledge: what people wrote down for the agent, below knowledge/. KNOWLEDGE.md is the entry and is included in the
 * prompt; of the other files only an index is (path, size, title), and the agent reads what it needs. A user's own
 * files override the workspace's.
 */
#ifndef STEAD_HOME_KNOWLEDGE_KNOWLEDGE_H
#define STEAD_HOME_KNOWLEDGE_KNOWLEDGE_H

#include "command/command.h"
#include "text/jv.h"
#include "tool/prompt_section.h"
#include "tool/search_source.h"
#include "workspace/workspace.h"

/* {entry?, files: [{path, size, title?}], more, next?}, by path; paths begin below knowledge/. `under` (may be empty)
   is a directory there, `after` the path to continue after, `limit` 0: 200, at most KNOWLEDGE_LIST_MAX. */
struct knowledge_query {
	struct str under, after;
	size_t limit;
};
int knowledge_list(struct workspace *ws, struct ctx *ctx, const struct knowledge_query *query, struct jv **ret,
		   struct err *err);
/* A path below knowledge/ (with or without that prefix) as a path of the home. */
int knowledge_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err);

/* For search. */
extern const struct search_source knowledge_sources[];
/* For the prompt. */
extern const struct prompt_section knowledge_sections[];

extern const struct command knowledge_commands[];

#endif
