/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a recorded conversation with their results. A replay is not to send a message or file an issue a second
 * time: a call that acts outside the workspace gets the result that the same call had in the recording.
 */
#ifndef STEAD_AGENT_RECORDED_H
#define STEAD_AGENT_RECORDED_H

#include "base/arena.h"
#include "text/jv.h"

struct recorded;

/* Of these entries of a log, which must outlive it. `covers_agents`: calls of subagents are taken from it as well.
 * Lives in the arena; recorded_release() when it is no longer needed. */
struct recorded *recorded_new(struct arena *arena, const struct jv **entries, size_t count, bool covers_agents);
void recorded_release(struct recorded *recorded); /* NULL is allowed */
bool recorded_covers_agents(const struct recorded *recorded);
/* The entry with the result of the next call that has this name and these arguments; NULL: there is none that is left.
 * From any thread. */
const struct jv *recorded_take(struct recorded *recorded, struct str name, const struct jv *input);

#endif
