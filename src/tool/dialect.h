/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dialect: another system's tools over the same handlers, and what is its own in the reply: how a failure reads and
 * what '/' is. The native table is the dialect "native".
 */
#ifndef STEAD_TOOL_DIALECT_H
#define STEAD_TOOL_DIALECT_H

#include "tool/tool.h"

/* One family's tools, from the file that describes them. */
struct tool_group {
	const struct tool *tools;
	size_t count;
};

struct dialect {
	const char *name;
	const char *root;                       /* dialect_root(); NULL: the file area */
	const struct tool_group *const *groups; /* NULL at the end */
	/* Stands before the sentence of a failure; NULL: nothing. */
	const char *error_prefix;
};

extern const struct dialect dialect_native, dialect_omnicoreagent, dialect_openpaw, dialect_wacht, dialect_agentscope,
	dialect_anthropic_memory, dialect_loomflow;

/* All of them, NULL at the end, in the order of toolset_dialects(). */
extern const struct dialect *const dialects[];
/* Its tools in the order of the table: the first, then the one behind `tool`; NULL behind the last. */
const struct tool *dialect_next(const struct dialect *dialect, const struct tool *tool);

/* Which tools configuration leaves (policy.c). A name in allow or deny that no dialect has is an error that names the
   nearest; so is a list that is not one of names. */
struct policy {
	const struct jv *allow, *deny; /* NULL: everything, nothing */
};
int policy_init(struct policy *policy, const struct config *config, struct err *err);
bool policy_offers(const struct policy *policy, const struct tool *tool);

#endif
