/* SPDX-License-Identifier: Apache-2.0 */
#include "command/cli.h"
#include "home/subagents/subagents.h"

static const struct action actions[] = {
	{"list", NULL, .tool = "list_subagents", .args = ""},
	{"show", "ID", .tool = "get_subagent", .args = "id"},
	{0},
};

const struct command subagents_commands[] = {
	{"subagents", "show the subagents declared in subagents/", TOPIC_HOME, .actions = actions,
	 .about = "Each subagents/ID.md says what a subagent is for, which model and tools it has, and where it\n"
		  "works; the text after the frontmatter is its system prompt. Invalid files are listed with the\n"
		  "reason.\n",
	 .examples = "stead subagents\n  all subagents, and invalid files\nstead subagents show reviewer\n"
		     "  one subagent with its prompt\n"},
	{0},
};
