/* SPDX-License-Identifier: Apache-2.0 */
/* The search family: one search over everything in the workspace. */
#ifndef STEAD_HOME_SEARCH_SEARCH_TOOLS_H
#define STEAD_HOME_SEARCH_SEARCH_TOOLS_H

#include "command/command.h"
#include "home/search/search.h"
#include "tool/tool.h"

extern const struct command search_commands[];

/* A question from the tool's arguments. */
int search_args(struct arena *arena, const struct jv *args, struct search_query *ret, struct err *err);
/* The answer as the tool gives it. */
struct jv *search_value(struct arena *arena, struct workspace *ws, const struct search_query *query,
			const struct search_hits *hits);

#endif
