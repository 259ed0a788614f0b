/* SPDX-License-Identifier: Apache-2.0 */
#include "command/cli.h"
#include "home/knowledge/knowledge.h"

static const struct action actions[] = {
	{"list", "[DIR]", .tool = "knowledge_list", .args = "under"},
	{"show", "FILE", .tool = "read_knowledge", .args = "path"},
	{0},
};

const struct command knowledge_commands[] = {
	{"knowledge", "list the knowledge that people wrote for the agent, or show a file", TOPIC_HOME,
	 .actions = actions,
	 .about = "Lists the files under knowledge/ with their titles. The prompt contains the text of\n"
		  "KNOWLEDGE.md, and only this list of the others. To search them, use 'stead search --area\n"
		  "knowledge'.\n",
	 .examples = "stead knowledge\n  all files\nstead knowledge show api/errors.md\n  one file\n"},
	{0},
};
