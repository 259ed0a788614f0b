/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a file that somebody sent, by a program that agent.yaml names for its type. */
#ifndef STEAD_HOME_UPLOADS_CONVERT_H
#define STEAD_HOME_UPLOADS_CONVERT_H

#include "workspace/workspace.h"

/* `path` is in workspace_home(). The text is not empty and is UTF-8. An error says what the program did. */
int upload_convert(struct workspace *ws, struct ctx *ctx, const struct jv *converter, struct wpath path,
		   struct str ending, struct str *ret_text, struct err *err);

#endif
