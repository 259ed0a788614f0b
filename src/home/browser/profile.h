/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser needs before it starts: its program, and a directory of its own. */
#ifndef STEAD_HOME_BROWSER_PROFILE_H
#define STEAD_HOME_BROWSER_PROFILE_H

#include "workspace/workspace.h"

/* browser.program of agent.yaml, or the first Chromium of PATH. False: there is none. */
bool browser_find_program(struct workspace *ws, char *ret, size_t size);
/* A new directory with "downloads" in it; `size` at least 128. False, with errno and `ret` empty or a directory that is
   still to be removed. */
bool profile_make(char *ret, size_t size);
void profile_remove(const char *dir);

#endif
