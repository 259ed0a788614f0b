/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may change what in a workspace. What an agent may write can never decide what an agent may do, so the layout is
 * divided among owners, whatever '/' is for the tools.
 */
#ifndef STEAD_WORKSPACE_RIGHTS_H
#define STEAD_WORKSPACE_RIGHTS_H

#include "store/wpath.h"
#include "text/jv.h"

enum rights_owner {
	RIGHTS_AGENT,  /* anybody may change it */
	RIGHTS_PEOPLE, /* identity, declarations, knowledge: written by people */
	RIGHTS_MEMORY, /* facts with their origin: changed by people, and by agents through the memory tools */
	RIGHTS_STEAD,  /* records: written by Stead alone, as a result of what happens */
};

/* The owner of a path of the workspace, or of a user's part of it. */
enum rights_owner rights_owner_of(struct wpath path);

/* True for a name at the top of a workspace that is not one of the layout, so that it may be a user's in AgentScope's
   layout: NAME/skills and NAME/subagents are that user's, and people's to write. */
bool rights_may_be_user(struct wpath dir);

/* The parts at the top of the layout that do not belong to the agent, by their index; NULL after the last. */
const char *rights_area(size_t index);

/* Who acts, and where '/' of the tools is. */
struct rights {
	struct wpath root;
	bool person;           /* not an agent */
	const struct jv *lent; /* agents_may_edit of agent.yaml; may be NULL */
};
/* Why `path` below the root may not be changed: the end of a sentence. NULL: it may be. `arg` is a struct rights. */
const char *rights_refusal(const void *arg, struct wpath path);

#endif
