/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the tables of the families, of src/agent, src/runner, src/admin and src/server and of this directory into one
 * list, ordered by topic.
 */
#include "cli/commands.h"

#include "admin/admin_commands.h"
#include "agent/agent_commands.h"
#include "base/fatal.h"
#include "runner/runner_commands.h"
#include "server/server_commands.h"
#include "tool/family.h"

#define COMMANDS_MAX 200

static const struct command *merged[COMMANDS_MAX + 1];
static size_t count;

static void add(enum topic topic, const struct command *table)
{
	for (; table && table->name; table++) {
		if (table->topic != topic)
			continue;
		if (count == COMMANDS_MAX)
			fatal("bug: there are more than %d commands", COMMANDS_MAX);
		merged[count++] = table;
	}
}

const struct command *const *command_list(void)
{
	if (count)
		return merged;
	for (enum topic topic = 0; topic < TOPICS; topic++) {
		add(topic, agent_commands);
		add(topic, up_commands);
		add(topic, runner_commands);
		add(topic, schedule_commands);
		add(topic, workspace_commands);
		add(topic, mcp_commands);
		add(topic, server_commands);
		add(topic, tools_commands);
		for (const struct family *const *f = families; *f; f++)
			add(topic, (*f)->commands);
		add(topic, admin_commands);
		add(topic, lease_commands);
		add(topic, help_commands);
	}
	return merged;
}
