/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for an open workspace: lines of lists by the version of their record, and the counts behind caps. All of
   it is derived, and lost with the process. */
#ifndef STEAD_HOME_BOARD_BOARD_STATE_H
#define STEAD_HOME_BOARD_BOARD_STATE_H

#include "store/store.h"

struct board_state;

/* The text that was kept for this path and version, copied to the arena; empty: none. */
struct str board_state_find(struct board_state *state, struct arena *arena, struct str path, struct str version);
void board_state_keep(struct board_state *state, struct str path, struct str version, struct str text);
/* The directories of all tasks within the cap of the workspace, and of one within its own cap: counted once. The caller
   destroys it. */
struct store *board_state_task(struct board_state *state, struct ctx *ctx, struct wpath dir);

#endif
