/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual page, both written from the command table. */
#include "command/cli.h"
#include "stead.h"

#define INTRO "Stead gives AI agents a place to live and work: a workspace of plain files."

static const char start[] = "stead init research\n  make a workspace\n"
			    "stead mcp --print-config -w research\n  what to paste into an MCP client\n"
			    "echo hello | stead -w research write notes.md\n  write a file as a person\n"
			    "stead -w research grep hello\n  search\n"
			    "stead call read_file path=notes.md -w research\n  call a tool as an agent would\n";

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

/* "  -w, --workspace NAME   what it is", the text in one column. */
static void print_options(struct output *out, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = &options[i];
		char left[64];
		int n = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->letter ? '-' : ' ',
				 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name, o->value ? " " : "",
				 o->value ? o->value : "");

		if (n < 28)
			output_printf(out, "%-28s %s\n", left, o->help);
		else
			output_printf(out, "%s\n%29s%s\n", left, "", o->help);
	}
}

static void print_exit_codes(struct output *out)
{
	for (size_t i = 0; i < exit_code_count; i++)
		output_printf(out, "  %2d  %s\n", exit_codes[i].code, exit_codes[i].meaning);
}

static void help_all(struct output *out)
{
	output_printf(out, "%s\n\nusage: stead [OPTION...] COMMAND [ARGUMENT...]\n", INTRO);
	heading(out, "commands");
	for (size_t i = 0; i < command_count; i++)
		output_printf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
	heading(out, "options of every command");
	print_options(out, common_options, common_option_count);
	heading(out, "examples");
	print_examples(out, start);
	heading(out, "exit codes");
	print_exit_codes(out);
	output_printf(out, "\n'stead help COMMAND' explains a command.\n");
}

static void help_command(struct output *out, const struct command *c)
{
	output_printf(out, "stead %s: %s\n\nusage: stead %s%s%s%s\n\n%s", c->name, c->summary, c->name,
		      c->option_count ? " [OPTION...]" : "", c->operands[0] ? " " : "", c->operands, c->about);
	heading(out, "examples");
	print_examples(out, c->examples);
	if (c->option_count) {
		heading(out, "options");
		print_options(out, c->options, c->option_count);
	}
	heading(out, "options of every command");
	print_options(out, common_options, common_option_count);
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

static void man_options(struct output *out, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = &options[i];

		output_add(out, STR(".TP\n"));
		if (o->letter)
			output_printf(out, "\\fB\\-%c\\fR, ", o->letter);
		output_add(out, STR("\\fB\\-\\-"));
		roff_z(out, o->name);
		output_add(out, STR("\\fR"));
		if (o->value)
			output_printf(out, " \\fI%s\\fR", o->value);
		output_add(out, STR("\n"));
		roff_z(out, o->help);
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

static void man_command(struct output *out, const struct command *c)
{
	output_printf(out, ".SS \"stead %s", c->name);
	if (c->operands[0]) {
		output_add(out, STR(" "));
		roff_z(out, c->operands);
	}
	output_add(out, STR("\"\n"));
	roff_z(out, c->about);
	man_options(out, c->options, c->option_count);
	man_examples(out, c->examples);
}

static void man_page(struct output *out)
{
	output_printf(
		out,
		".TH STEAD 1 \"\" \"stead %s\" \"User Commands\"\n.SH NAME\nstead \\- a workspace for AI agents\n"
		".SH SYNOPSIS\n\\fBstead\\fR [\\fIOPTION\\fR...] \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n"
		".SH DESCRIPTION\n%s It survives calls, restarts and machines, and is reached over MCP, from the\n"
		"command line, or from a C program (libstead).\n.SH COMMANDS\n",
		STEAD_VERSION, INTRO);
	for (size_t i = 0; i < command_count; i++)
		man_command(out, &commands[i]);
	output_add(out, STR(".SH OPTIONS\nEvery command takes these, before or behind its name.\n"));
	man_options(out, common_options, common_option_count);
	output_add(out, STR(".SH ENVIRONMENT\n\\fBSTEAD_STORE\\fR, \\fBSTEAD_WORKSPACE\\fR, \\fBSTEAD_USER\\fR and\n"
			    "\\fBSTEAD_AGENT\\fR stand for the options of those names; an option wins.\n"
			    "\\fBNO_COLOR\\fR, when not empty, turns colours off.\n.SH EXIT STATUS\n"));
	for (size_t i = 0; i < exit_code_count; i++) {
		output_printf(out, ".TP\n\\fB%d\\fR\n", exit_codes[i].code);
		roff_z(out, exit_codes[i].meaning);
		output_add(out, STR("\n"));
	}
}

/* One entry per command and option, for programs that build on the command line. */
static struct jv *options_json(struct arena *arena, const struct option *options, size_t count)
{
	struct jv *list = jv_array(arena);

	for (size_t i = 0; i < count; i++) {
		struct jv *o = jv_object(arena);

		jv_set_str(arena, o, "name", str_of(options[i].name));
		if (options[i].letter)
			jv_set_str(arena, o, "letter", str_n(&options[i].letter, 1));
		if (options[i].value)
			jv_set_str(arena, o, "value", str_of(options[i].value));
		jv_set_str(arena, o, "help", str_of(options[i].help));
		jv_push(arena, list, o);
	}
	return list;
}

static struct jv *command_json(struct arena *arena, const struct command *c)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", str_of(c->name));
	jv_set_str(arena, v, "summary", str_of(c->summary));
	jv_set_str(arena, v, "operands", str_of(c->operands));
	jv_set_str(arena, v, "about", str_of(c->about));
	jv_set(arena, v, "options", options_json(arena, c->options, c->option_count));
	return v;
}

static void help_json(struct cli *cli, const struct command *c)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *document = jv_object(arena), *list = jv_array(arena);

	for (size_t i = 0; i < command_count; i++)
		if (!c || c == &commands[i])
			jv_push(arena, list, command_json(arena, &commands[i]));
	jv_set(arena, document, "commands", list);
	jv_set(arena, document, "options", options_json(arena, common_options, common_option_count));
	output_json(&cli->out, arena, document);
}

int run_help(struct cli *cli, struct err *err)
{
	const struct command *c = cli->args.command;

	if (c && c->run == run_help && args_has(&cli->args, OPT_MAN)) {
		man_page(&cli->out);
		return 0;
	}
	if (c && c->run == run_help && !args_has(&cli->args, OPT_HELP)) {
		c = NULL;
		if (cli->args.operand_count) {
			c = command_find(cli->args.operands[0]);
			if (!c)
				return command_unknown(cli->args.operands[0], err);
		}
	}
	if (cli->json)
		help_json(cli, c);
	else if (c)
		help_command(&cli->out, c);
	else
		help_all(&cli->out);
	return 0;
}
