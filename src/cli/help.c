/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual page, both written from the command table. */
#include "cli/commands.h"
#include "command/cli.h"
#include "stead.h"

#define INTRO "Stead gives AI agents a place to live and work: a workspace of plain files."

static const char start[] = "stead init research\n  create a workspace\n"
			    "stead mcp --print-config -w research\n  what to paste into an MCP client\n"
			    "echo hello | stead -w research write notes.md\n  write a file\n"
			    "stead -w research grep hello\n  search\n"
			    "stead call read_file path=notes.md -w research\n  call a tool as an agent would\n";

static const char *const topics[TOPICS] = {
	[TOPIC_AGENT] = "the agent",
	[TOPIC_WORKSPACES] = "workspaces",
	[TOPIC_TOOLS] = "tools of the agent",
	[TOPIC_FILES] = "files",
	[TOPIC_HOME] = "the agent's home",
	[TOPIC_HISTORY] = "history",
	[TOPIC_STORES] = "stores",
	[TOPIC_HELP] = "help",
};

static void heading(struct output *out, const char *text)
{
	struct str bold = output_tone(out, TONE_BOLD), plain = output_tone(out, TONE_PLAIN);

	output_printf(out, "\n%.*s%s:%.*s\n", STR_ARG(bold), text, STR_ARG(plain));
}

/* Lines of an example text come in pairs: the command, and "  what it does". */
static void print_examples(struct output *out, const char *examples)
{
	struct str rest = str_of(examples), line;

	while (str_cut(&rest, '\n', &line)) {
		if (str_starts(line, STR("  ")))
			output_printf(out, "      %.*s\n", STR_ARG(str_from(line, 2)));
		else if (line.len)
			output_printf(out, "  %.*s\n", STR_ARG(line));
	}
}

/* The help of an option, with its environment variable: "the workspace (default: default; $STEAD_WORKSPACE)". */
static struct str option_help(struct arena *arena, const struct option *o)
{
	struct str help = str_of(o->help);

	if (!o->env)
		return help;
	if (str_ends(help, STR(")")))
		return arena_printf(arena, "%.*s; $%s)", STR_ARG(str_first(help, help.len - 1)), o->env);
	return arena_printf(arena, "%s ($%s)", o->help, o->env);
}

/* "  -w, --workspace NAME   what it is", the text in one column. */
static void print_options(struct cli *cli, const struct option *o)
{
	for (; o && o->name; o++) {
		char left[64];
		int n = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s%s", o->letter ? '-' : ' ',
				 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
				 o->optional ? "[="
				 : o->value  ? " "
					     : "",
				 o->value ? o->value : "", o->optional ? "]" : "");
		struct str help = option_help(cli->ctx.arena, o);

		if (n < 28)
			output_printf(&cli->out, "%-28s %.*s\n", left, STR_ARG(help));
		else
			output_printf(&cli->out, "%s\n%29s%.*s\n", left, "", STR_ARG(help));
	}
}

static void print_exit_codes(struct output *out)
{
	for (const struct exit_code *e = exit_codes; e->meaning; e++)
		output_printf(out, "  %2d  %s\n", e->code, e->meaning);
}

static void help_all(struct cli *cli)
{
	struct output *out = &cli->out;
	enum topic last = TOPICS;

	output_printf(out, "%s\n\nusage: stead [OPTION...] COMMAND [ARGUMENT...]\n", INTRO);
	for (const struct command *const *c = command_list(); *c; c++) {
		if ((*c)->topic != last)
			heading(out, topics[(*c)->topic]);
		last = (*c)->topic;
		output_printf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
	}
	heading(out, "options of every command");
	print_options(cli, common_options);
	heading(out, "examples");
	print_examples(out, start);
	heading(out, "exit codes");
	print_exit_codes(out);
	output_printf(out, "\n'stead help COMMAND' explains a command.\n");
}

static struct str operands_of(struct cli *cli, const struct command *c)
{
	struct buf text;

	buf_init(&text, cli->ctx.arena, 4096);
	command_operands(c, &text);
	return buf_str(&text);
}

static void help_command(struct cli *cli, const struct command *c)
{
	struct output *out = &cli->out;
	struct str operands = operands_of(cli, c);

	output_printf(out, "stead %s: %s\n\nusage: stead %s%s%s%.*s\n\n%s", c->name, c->summary, c->name,
		      c->options ? " [OPTION...]" : "", operands.len ? " " : "", STR_ARG(operands), c->about);
	heading(out, "examples");
	print_examples(out, c->examples);
	if (c->options) {
		heading(out, "options");
		print_options(cli, c->options);
	}
	heading(out, "options of every command");
	print_options(cli, common_options);
}

/* roff: '\' and '-' have meanings of their own, and so has a '.' or a ''' at the start of a line. */
static void roff(struct output *out, struct str text)
{
	bool line_start = true;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (line_start && (c == '.' || c == '\''))
			output_add(out, STR("\\&"));
		line_start = c == '\n';
		if (c == '\\')
			output_add(out, STR("\\e"));
		else if (c == '-')
			output_add(out, STR("\\-"));
		else if (c == '\'')
			output_add(out, STR("\\(aq"));
		else
			output_add(out, str_n(&c, 1));
	}
}

static void roff_z(struct output *out, const char *text)
{
	roff(out, str_of(text));
}

static void man_options(struct cli *cli, const struct option *o)
{
	struct output *out = &cli->out;

	for (; o && o->name; o++) {
		output_add(out, STR(".TP\n"));
		if (o->letter)
			output_printf(out, "\\fB\\-%c\\fR, ", o->letter);
		output_add(out, STR("\\fB\\-\\-"));
		roff_z(out, o->name);
		output_add(out, STR("\\fR"));
		if (o->value)
			output_printf(out, o->optional ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", o->value);
		output_add(out, STR("\n"));
		roff(out, option_help(cli->ctx.arena, o));
		output_add(out, STR("\n"));
	}
}

static void man_examples(struct output *out, const char *examples)
{
	struct str rest = str_of(examples), line;

	while (str_cut(&rest, '\n', &line)) {
		if (!line.len)
			continue;
		if (!str_starts(line, STR("  ")))
			output_add(out, STR(".PP\n.nf\n.RS 4\n\\fB"));
		roff(out, str_trim(line));
		output_add(out, str_starts(line, STR("  ")) ? STR("\n") : STR("\\fR\n.RE\n.fi\n.RS 8\n"));
		if (str_starts(line, STR("  ")))
			output_add(out, STR(".RE\n"));
	}
}

static void man_command(struct cli *cli, const struct command *c)
{
	struct output *out = &cli->out;
	struct str operands = operands_of(cli, c);

	output_printf(out, ".SS \"stead %s%s", c->name, operands.len ? " " : "");
	roff(out, operands);
	output_add(out, STR("\"\n"));
	roff_z(out, c->about);
	man_options(cli, c->options);
	man_examples(out, c->examples);
}

static void man_page(struct cli *cli)
{
	struct output *out = &cli->out;

	output_printf(
		out,
		".TH STEAD 1 \"\" \"stead %s\" \"User Commands\"\n.SH NAME\nstead \\- a workspace for AI agents\n.SH "
		"SYNOPSIS\n\\fBstead\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n.SH "
		"DESCRIPTION\n%s It outlasts calls, restarts and machines. Programs and agents use it over MCP, "
		"from\nthe command line, or from a C program (libstead).\n.SH COMMANDS\n",
		STEAD_VERSION, INTRO);
	for (const struct command *const *c = command_list(); *c; c++)
		man_command(cli, *c);
	output_add(out, STR(".SH OPTIONS\nEvery command takes these, before or after its name.\n"));
	man_options(cli, common_options);
	output_add(out, STR(".SH ENVIRONMENT\nAn option overrides its variable.\n"));
	for (const struct option *o = common_options; o->name; o++)
		if (o->env)
			output_printf(out, ".TP\n\\fB%s\\fR\nthe value of \\-\\-%s\n", o->env, o->name);
	output_add(out, STR(".TP\n\\fBNO_COLOR\\fR\nturns colours off if not empty\n.SH EXIT STATUS\n"));
	for (const struct exit_code *e = exit_codes; e->meaning; e++) {
		output_printf(out, ".TP\n\\fB%d\\fR\n", e->code);
		roff_z(out, e->meaning);
		output_add(out, STR("\n"));
	}
}

/* One entry per command and option, for programs that build on the command line. */
static struct jv *options_json(struct arena *arena, const struct option *option)
{
	struct jv *list = jv_array(arena);

	for (; option && option->name; option++) {
		struct jv *o = jv_object(arena);

		jv_set_str(arena, o, "name", str_of(option->name));
		if (option->letter)
			jv_set_str(arena, o, "letter", str_n(&option->letter, 1));
		if (option->value)
			jv_set_str(arena, o, "value", str_of(option->value));
		jv_set_str(arena, o, "help", option_help(arena, option));
		jv_push(arena, list, o);
	}
	return list;
}

static struct jv *command_json(struct cli *cli, const struct command *c)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", str_of(c->name));
	jv_set_str(arena, v, "summary", str_of(c->summary));
	jv_set_str(arena, v, "operands", operands_of(cli, c));
	jv_set_str(arena, v, "about", str_of(c->about));
	jv_set(arena, v, "options", options_json(arena, c->options));
	return v;
}

static void help_json(struct cli *cli, const struct command *only)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *document = jv_object(arena), *list = jv_array(arena);

	for (const struct command *const *c = command_list(); *c; c++)
		if (!only || only == *c)
			jv_push(arena, list, command_json(cli, *c));
	jv_set(arena, document, "commands", list);
	jv_set(arena, document, "options", options_json(arena, common_options));
	output_json(&cli->out, arena, document);
}

int run_help(struct cli *cli, struct err *err)
{
	const struct command *c = cli->args.command;
	bool is_help = c && c->run == run_help;

	if (is_help && args_has(&cli->args, "man")) {
		man_page(cli);
		return 0;
	}
	if (is_help && !args_has(&cli->args, "help")) {
		c = cli->args.operand_count ? command_find(command_list(), cli->args.operands[0]) : NULL;
		if (!c && cli->args.operand_count)
			return command_unknown(command_list(), cli->args.operands[0], err);
	}
	if (cli->json)
		help_json(cli, c);
	else if (c)
		help_command(cli, c);
	else
		help_all(cli);
	return 0;
}

static const struct option help_options[] = {
	{"man", .help = "print the manual page (roff)"},
	{0},
};

const struct command help_commands[] = {
	{"completion", "print the completion script for a shell", TOPIC_HELP, "bash|zsh|fish", .run = run_completion,
	 .words = "bash zsh fish",
	 .about = "Completes commands, options, workspaces, tools and the paths of the workspace.\n",
	 .examples = "source <(stead completion bash)\n  in ~/.bashrc\n"
		     "stead completion zsh > ~/.zfunc/_stead\n  a directory of $fpath\n"
		     "stead completion fish > ~/.config/fish/completions/stead.fish\n  for fish\n"},
	{"help", "explain a command", TOPIC_HELP, "[COMMAND]", .run = run_help, .complete = COMPLETE_COMMAND,
	 .options = help_options, .about = "The same as 'stead COMMAND --help'.\n",
	 .examples = "stead help grep\n  how to search\nstead help --man | man -l -\n  the manual page\n"},
	{0},
};
