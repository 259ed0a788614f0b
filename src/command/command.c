/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands have in common: options, exit codes, and how commands are found by name. */
#include "command/command.h"

#include "base/str.h"

const struct option common_options[] = {
	{"store", 0, "URL", .env = "STEAD_STORE",
	 .help = "the store of the workspaces: disk:DIR, memory:, s3://, r2://, redis://, postgres://, mysql:// "
		 "(default: your data directory)"},
	{"config", 'c', "FILE", .env = "STEAD_CONFIG", .complete = COMPLETE_HOST_DIR,
	 .help = "a stead.yaml that says which store holds which data, and what applies to all workspaces (default: "
		 "stead.yaml in this directory)"},
	{"workspace", 'w', "NAME", .env = "STEAD_WORKSPACE", .complete = COMPLETE_WORKSPACE,
	 .help = "the workspace (default: default)"},
	{"user", 0, "NAME", .env = "STEAD_USER", .help = "the user to open the workspace for"},
	{"agent", 0, "NAME", .env = "STEAD_AGENT", .help = "the agent that acts"},
	{"session", 0, "ID", .help = "the session in which it acts"},
	{"dialect", 0, "NAME", .help = "offer another system's tools, with its names and conventions",
	 .complete = COMPLETE_DIALECT},
	{"root", 0, "ROOT", .help = "the directory that is '/': files (default), workspace, task:KEY, or a path"},
	{"files", 0, "DIR", .help = "use this directory of the machine as the file area",
	 .complete = COMPLETE_HOST_DIR},
	{"relaxed", .help = "do not wait for the disk: faster, but a power cut may lose the last changes"},
	{"json", .help = "print JSON, and errors as JSON on standard error"},
	{"help", 'h', .help = "explain the command"},
	{"version", 'V', .help = "print the version"},
	{0},
};

const struct exit_code exit_codes[] = {
	{0, "success"},
	{1, "nothing matched (grep, find, search), or doctor or fsck found a problem"},
	{2, "invalid: the command line, an argument, a path or the content of a file"},
	{3, "not found"},
	{4, "already exists"},
	{5, "conflict: the file changed in the meantime, or has another version"},
	{6, "denied"},
	{7, "not authenticated"},
	{8, "too large"},
	{9, "not supported"},
	{10, "rate limited"},
	{11, "timeout"},
	{12, "cancelled"},
	{13, "unavailable: the store cannot be reached"},
	{14, "corrupt data"},
	{15, "no space: the quota or the disk is full"},
	{16, "an internal error in Stead"},
	{0},
};

int exit_code_of(enum err_kind kind)
{
	static const int codes[ERR_KINDS] = {
		[ERR_NONE] = 0,         [ERR_INVALID] = 2,       [ERR_NOT_FOUND] = 3,       [ERR_EXISTS] = 4,
		[ERR_CONFLICT] = 5,     [ERR_DENIED] = 6,        [ERR_UNAUTHENTICATED] = 7, [ERR_TOO_LARGE] = 8,
		[ERR_UNSUPPORTED] = 9,  [ERR_RATE_LIMITED] = 10, [ERR_TIMEOUT] = 11,        [ERR_CANCELLED] = 12,
		[ERR_UNAVAILABLE] = 13, [ERR_CORRUPT] = 14,      [ERR_QUOTA] = 15,          [ERR_INTERNAL] = 16,
	};

	return kind < ERR_KINDS ? codes[kind] : 16;
}

const struct command *command_find(const struct command *const *list, struct str name)
{
	for (; *list; list++)
		if (str_is(name, (*list)->name))
			return *list;
	return NULL;
}

int command_unknown(const struct command *const *list, struct str name, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const char **names;
	const char *nearest;
	size_t count = 0;

	while (list[count])
		count++;
	names = ARENA_ARRAY(arena, const char *, count);
	for (size_t i = 0; i < count; i++)
		names[i] = list[i]->name;
	nearest = str_nearest(name, names, count);
	if (nearest)
		return err_set(err, ERR_INVALID, "unknown command '%.*s'; did you mean '%s'?",
			       STR_ARG(utf8_first(name, 80)), nearest);
	return err_set(err, ERR_INVALID, "unknown command '%.*s'; 'stead help' shows the commands",
		       STR_ARG(utf8_first(name, 80)));
}

void command_operands(const struct command *command, struct buf *text)
{
	if (command->operands)
		buf_add(text, str_of(command->operands));
	for (const struct action *a = command->actions; a && a->name; a++)
		buf_printf(text, "%s%s%s%s", a == command->actions ? "[" : " | ", a->name, a->operands ? " " : "",
			   a->operands ? a->operands : "");
	if (command->actions)
		buf_char(text, ']');
}
