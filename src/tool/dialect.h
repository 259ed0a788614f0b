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
	const char *root; /* dialect_root(); NULL: the file area */
	enum workspace_layout layout;
	const struct tool *tools; /* ends with {0}; NULL in the native dialect: the families' tools */
	const char *top;          /* how its paths begin, such as "/task"; NULL: they are relative to '/' */
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

/* A set of native tools, by their place in the walk over the native dialect. */
#define TOOL_NAMES_MAX 512
struct tool_names {
	uint64_t bits[TOOL_NAMES_MAX / 64];
};

/* Which tools configuration leaves (policy.c). A name in allow or deny that no system has is an error that names the
   nearest. */
struct policy {
	const struct jv *allow, *deny; /* as configured; NULL: everything, nothing */
	struct tool_names allowed, denied, builtins, allowed_builtins;
	bool limits_builtins;
};
int policy_init(struct policy *policy, const struct config *config, struct err *err);
/* Whether the native tool of that name is denied. */
bool policy_denies(const struct policy *policy, const char *native);
/* `family` as in struct tool_walk. */
bool policy_offers(const struct policy *policy, const struct tool *tool, const struct family *family);

#endif
