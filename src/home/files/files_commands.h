/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_HOME_FILES_FILES_COMMANDS_H
#define STEAD_HOME_FILES_FILES_COMMANDS_H

#include "command/command.h"
#include "find/find.h"

extern const struct command files_commands[];

/* grep_commands.c */
extern const struct option grep_options[], find_options[];
int run_grep(struct cli *cli, struct err *err);
int run_find(struct cli *cli, struct err *err);

/* files_search.c: what to do about a glob that found nothing; empty if nothing helps. `all` says how to include ignored
   files. A name with brackets is looked for as it is written, and then `found` has the files. */
struct str files_glob_hint(struct store *files, struct ctx *ctx, const struct glob_req *req, const char *all,
			   struct glob_result *found);

#endif
