/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the agent. */
#ifndef STEAD_AGENT_AGENT_COMMANDS_H
#define STEAD_AGENT_AGENT_COMMANDS_H

#include "command/cli.h"
#include "command/command.h"

extern const struct command agent_commands[];
int run_chat(struct cli *cli, struct err *err);
int run_replay(struct cli *cli, struct err *err);
int run_sessions_merge(struct cli *cli, struct err *err);
extern const struct action child_actions[];
extern const struct action server_actions[];
extern const struct action workflow_actions[];
extern const struct option workflow_options[];

/* The session that --session names, else the agent's own. */
struct str agent_session_of(struct cli *cli);

#endif
