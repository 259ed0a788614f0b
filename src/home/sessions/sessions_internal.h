/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of sessions share. */
#ifndef STEAD_HOME_SESSIONS_SESSIONS_INTERNAL_H
#define STEAD_HOME_SESSIONS_SESSIONS_INTERNAL_H

#include "home/sessions/sessions.h"

/* agents/<agent>/<rest> */
struct wpath session_agent_path(struct workspace *ws, struct ctx *ctx, struct str agent, const char *rest);

#endif
