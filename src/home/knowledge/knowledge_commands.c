/* SPDX-License-Identifier: Apache-2.0 */
#include "command/cli.h"
#include "home/knowledge/knowledge.h"

static const struct action actions[] = {
	{"list", "[DIR]", .tool = "knowledge_list", .args = "under"},
	{"show", "FILE", .tool = "read_knowledge", .args = "path"},
	{0},
};

const struct command knowledge_commands[] = {
	{"knowledge", "list what people wrote down for the agent, or show a file of it", TOPIC_HOME, .actions = actions,
	 .about = "The files below knowledge/, with their titles. KNOWLEDGE.md is the entry: the prompt contains its\n"
		  "text, and only this list of the others. To search them: stead search --area knowledge.\n",
	 .examples = "stead knowledge\n  all files\nstead knowledge show api/errors.md\n  one file\n"},
	{0},
};
