/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dialect: another system's tools over the same handlers, and what is its own in the reply: how a failure reads and
 * what '/' is. The native table is the dialect "native".
 */
#ifndef STEAD_TOOL_DIALECT_H
#define STEAD_TOOL_DIALECT_H

#include "tool/family.h"

struct dialect {
	const char *name;
	const char *root;         /* dialect_root(); NULL: the file area */
	const struct tool *tools; /* ends with {0}; NULL in the native dialect: the families' tools */
	const char *error_prefix; /* precedes the sentence of a failure; NULL: nothing */
};

/* Those of other systems, NULL at the end (src/dialects). */
extern const struct dialect *const dialects[];
/* The native one and those above by their index; NULL after the last. */
const struct dialect *dialect_at(size_t index);

/* A walk over the tools of a dialect in their order. Start with {.dialect = d}. */
struct tool_walk {
	const struct dialect *dialect;
	size_t next_family;          /* native: the family to visit next */
	const struct tool *entry;    /* in its table */
	const struct family *family; /* NULL for a tool that is another system's own */
	const struct tool *tool;     /* the entry, or `same` */
	struct tool same;            /* the native tool that the entry's same_as names */
};
/* The next tool, valid until the next call; NULL after the last. */
const struct tool *tool_next(struct tool_walk *walk);

/* Which tools configuration leaves (policy.c). A name in allow or deny that no dialect has is an error that names the
   nearest; so is a list that is not one of names. */
struct policy {
	const struct jv *allow, *deny; /* NULL: everything, nothing */
};
int policy_init(struct policy *policy, const struct config *config, struct err *err);
/* `family` as in struct tool_walk. */
bool policy_offers(const struct policy *policy, const struct tool *tool, const struct family *family);

#endif
