/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for three shells, written from the command table. What is known beforehand (commands, options,
 * words) stands in the script; workspaces, tools and paths are asked of `stead` itself when the key is pressed, with
 * the store, workspace and files options that stand on the line so far.
 */
#include "command/cli.h"

/* The shells' helper functions; %s is nothing: the text is fixed. */
static const char bash_head[] =
	"# bash completion for stead; source it, or install it as /usr/share/bash-completion/completions/stead\n"
	"_stead_ask() {\n"
	"    local i where=()\n"
	"    for ((i = 1; i < COMP_CWORD; i++)); do\n"
	"        case ${COMP_WORDS[i]} in\n"
	"        --store|--config|--workspace|-w|--user|--files|--root|--dialect)\n"
	"            # bash cuts words at '=' and ':', so a URL may stand in several\n"
	"            local key=${COMP_WORDS[i]} value=\n"
	"            [[ ${COMP_WORDS[i + 1]-} == '=' ]] && ((i++))\n"
	"            value=${COMP_WORDS[i + 1]-}; ((i++))\n"
	"            while [[ ${COMP_WORDS[i + 1]-} == ':' && $((i + 1)) -lt $COMP_CWORD ]]; do\n"
	"                value+=:${COMP_WORDS[i + 2]-}; ((i += 2))\n"
	"            done\n"
	"            # the person's own shell would expand a leading '~'\n"
	"            where+=(\"$key\" \"${value/#\\~/$HOME}\") ;;\n"
	"        esac\n"
	"    done\n"
	"    \"${COMP_WORDS[0]/#\\~/$HOME}\" \"${where[@]}\" \"$@\" 2>/dev/null\n"
	"}\n"
	"_stead_words() {\n"
	"    local IFS=$'\\n'\n"
	"    COMPREPLY=($(compgen -W \"$1\" -- \"$2\"))\n"
	"}\n"
	"_stead_lines() {\n"
	"    local line\n"
	"    COMPREPLY=()\n"
	"    while IFS= read -r line; do\n"
	"        [[ $line == \"$1\"* ]] && COMPREPLY+=(\"$(printf %q \"$line\")\")\n"
	"    done\n"
	"}\n"
	"_stead_path() {\n"
	"    local dir=\n"
	"    [[ $1 == */* ]] && dir=${1%/*}/\n"
	"    _stead_lines \"$1\" < <(_stead_ask ls -- \"$dir\" | while IFS= read -r name; do printf '%s%s\\n' \"$dir\" "
	"\"$name\"; done)\n"
	"    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace\n"
	"}\n"
	"_stead_dir() {\n"
	"    compopt -o filenames 2>/dev/null\n"
	"    local IFS=$'\\n'\n"
	"    COMPREPLY=($(compgen -d -- \"$1\"))\n"
	"}\n"
	"_stead() {\n"
	"    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
	"    [[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"    [[ $cur == '=' ]] && { prev=${COMP_WORDS[COMP_CWORD - 1]}; cur=; }\n";

static void words_of_commands(struct output *out, const char *separator)
{
	for (size_t i = 0; i < command_count; i++)
		output_printf(out, "%s%s", i ? separator : "", commands[i].name);
}

static void words_of_dialects(struct output *out, const char *separator)
{
	for (size_t i = 0; toolset_dialect(i); i++)
		output_printf(out, "%s%s", i ? separator : "", toolset_dialect(i));
}

static void bash_words(struct output *out, const char *words)
{
	struct str rest = str_of(words), word;
	bool first = true;

	output_add(out, STR("_stead_words $'"));
	while (str_cut(&rest, ' ', &word)) {
		output_printf(out, "%s%.*s", first ? "" : "\\n", STR_ARG(word));
		first = false;
	}
	output_add(out, STR("' \"$cur\""));
}

static void bash_complete(struct output *out, enum complete complete, const char *words)
{
	switch (complete) {
	case COMPLETE_NOTHING:
		output_add(out, STR("COMPREPLY=()"));
		break;
	case COMPLETE_WORDS:
		bash_words(out, words);
		break;
	case COMPLETE_HOST_DIR:
		output_add(out, STR("_stead_dir \"$cur\""));
		break;
	case COMPLETE_WORKSPACE:
		output_add(out, STR("_stead_lines \"$cur\" < <(_stead_ask list | cut -d' ' -f1)"));
		break;
	case COMPLETE_TOOL:
		output_add(out, STR("_stead_lines \"$cur\" < <(_stead_ask tools | cut -d' ' -f1)"));
		break;
	case COMPLETE_PATH:
		output_add(out, STR("_stead_path \"$cur\""));
		break;
	case COMPLETE_COMMAND:
	case COMPLETE_DIALECT:
		output_add(out, STR("_stead_words $'"));
		(complete == COMPLETE_COMMAND ? words_of_commands : words_of_dialects)(out, "\\n");
		output_add(out, STR("' \"$cur\""));
		break;
	}
}

static void bash_values(struct output *out, const char *indent, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!options[i].value)
			continue;
		output_printf(out, "%s--%s", indent, options[i].name);
		if (options[i].letter)
			output_printf(out, "|-%c", options[i].letter);
		output_add(out, STR(") "));
		bash_complete(out, options[i].complete, options[i].words);
		output_add(out, STR("; return ;;\n"));
	}
}

static void bash_names(struct output *out, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++)
		output_printf(out, "--%s\\n", options[i].name);
}

static void bash_valued_names(struct output *out)
{
	for (size_t i = 0; i < common_option_count; i++) {
		if (!common_options[i].value)
			continue;
		output_printf(out, "%s--%s", i ? "|" : "", common_options[i].name);
		if (common_options[i].letter)
			output_printf(out, "|-%c", common_options[i].letter);
	}
}

static void bash_command(struct output *out, const struct command *c)
{
	output_printf(out, "    %s)\n", c->name);
	if (c->option_count) {
		output_add(out, STR("        case $prev in\n"));
		bash_values(out, "        ", c->options, c->option_count);
		output_add(out, STR("        esac\n"));
	}
	output_add(out, STR("        [[ $cur == -* ]] && { _stead_words $'"));
	bash_names(out, c->options, c->option_count);
	bash_names(out, common_options, common_option_count);
	output_add(out, STR("' \"$cur\"; return; }\n        "));
	bash_complete(out, c->complete, c->words);
	output_add(out, STR(" ;;\n"));
}

static void bash_script(struct output *out)
{
	output_add(out, str_of(bash_head));
	output_add(out, STR("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n        "));
	bash_valued_names(out);
	output_add(out,
		   STR(") ((i++)); [[ ${COMP_WORDS[i]-} == '=' ]] && ((i++))\n"
		       "            while [[ ${COMP_WORDS[i + 1]-} == ':' ]]; do ((i += 2)); done ;;\n"
		       "        -*|=|:) ;;\n        *) command=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n"
		       "    case $prev in\n"));
	bash_values(out, "    ", common_options, common_option_count);
	output_add(out, STR("    esac\n    case $command in\n    '')\n        [[ $cur == -* ]] && { _stead_words $'"));
	bash_names(out, common_options, common_option_count);
	output_add(out, STR("' \"$cur\"; return; }\n        "));
	bash_complete(out, COMPLETE_COMMAND, NULL);
	output_add(out, STR(" ;;\n"));
	for (size_t i = 0; i < command_count; i++)
		bash_command(out, &commands[i]);
	output_add(out, STR("    esac\n}\ncomplete -F _stead stead\n"));
}

/* Single quotes hold anything but themselves. `colon` is what stands for ':' and '[', which zsh gives a meaning. */
static void quoted(struct output *out, const char *text, bool zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			output_add(out, zsh ? STR("'\\''") : STR("\\'"));
		else if (zsh && (*text == ':' || *text == '[' || *text == ']'))
			output_printf(out, "\\%c", *text);
		else
			output_add(out, str_n(text, 1));
	}
}

static void zsh_action(struct output *out, enum complete complete, const char *words)
{
	switch (complete) {
	case COMPLETE_NOTHING:
		output_add(out, STR(" "));
		break;
	case COMPLETE_WORDS:
		output_printf(out, "(%s)", words);
		break;
	case COMPLETE_HOST_DIR:
		output_add(out, STR("_files -/"));
		break;
	case COMPLETE_WORKSPACE:
		output_add(out, STR("_stead_workspaces"));
		break;
	case COMPLETE_TOOL:
		output_add(out, STR("_stead_tools"));
		break;
	case COMPLETE_PATH:
		output_add(out, STR("_stead_paths"));
		break;
	case COMPLETE_COMMAND:
	case COMPLETE_DIALECT:
		output_add(out, STR("("));
		(complete == COMPLETE_COMMAND ? words_of_commands : words_of_dialects)(out, " ");
		output_add(out, STR(")"));
		break;
	}
}

static void zsh_option(struct output *out, const struct option *o, const char *dashes, struct str name)
{
	output_printf(out, " \\\n        '*%s%.*s[", dashes, STR_ARG(name));
	quoted(out, o->help, true);
	output_add(out, STR("]"));
	if (o->value) {
		output_add(out, STR(":"));
		quoted(out, o->value, true);
		output_add(out, STR(":"));
		zsh_action(out, o->complete, o->words);
	}
	output_add(out, STR("'"));
}

static void zsh_options(struct output *out, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		zsh_option(out, &options[i], "--", str_of(options[i].name));
		if (options[i].letter)
			zsh_option(out, &options[i], "-", str_n(&options[i].letter, 1));
	}
}

static const char zsh_head[] = "#compdef stead\n"
			       "# zsh completion for stead; put it as _stead into a directory of $fpath\n"
			       "_stead_ask() {\n"
			       "    local i where=()\n"
			       "    for ((i = 2; i < CURRENT; i++)); do\n"
			       "        case ${words[i]} in\n"
			       "        --store|--config|--workspace|-w|--user|--files|--root|--dialect)\n"
			       "            where+=(\"${words[i]}\" \"${(Q)${words[i + 1]}/#\\~/$HOME}\"); ((i++)) ;;\n"
			       "        --store=*|--config=*|--workspace=*|--user=*|--files=*|--root=*|--dialect=*) "
			       "where+=(\"${words[i]}\") ;;\n"
			       "        esac\n"
			       "    done\n"
			       "    stead $where \"$@\" 2>/dev/null\n"
			       "}\n"
			       "_stead_workspaces() { compadd -- ${${(f)\"$(_stead_ask list)\"}%% *} }\n"
			       "_stead_tools() { compadd -- ${${(f)\"$(_stead_ask tools)\"}%% *} }\n"
			       "_stead_paths() {\n"
			       "    local dir= names\n"
			       "    [[ $PREFIX == */* ]] && dir=${PREFIX%/*}/\n"
			       "    names=(${(f)\"$(_stead_ask ls -- \"$dir\")\"})\n"
			       "    compadd -S '' -- $dir${^names}\n"
			       "}\n";

static void zsh_script(struct output *out)
{
	output_add(out, str_of(zsh_head));
	output_add(out, STR("_stead() {\n    local line state common\n    common=("));
	zsh_options(out, common_options, common_option_count);
	output_add(out, STR(")\n    _arguments -C $common '1:command:->command' '*::argument:->argument'\n"
			    "    case $state in\n    command)\n        local -a names=("));
	for (size_t i = 0; i < command_count; i++) {
		output_printf(out, " \\\n            '%s:", commands[i].name);
		quoted(out, commands[i].summary, true);
		output_add(out, STR("'"));
	}
	output_add(out, STR(")\n        _describe command names ;;\n    argument)\n        case $line[1] in\n"));
	for (size_t i = 0; i < command_count; i++) {
		output_printf(out, "        %s) _arguments $common", commands[i].name);
		zsh_options(out, commands[i].options, commands[i].option_count);
		if (commands[i].operands_max) {
			output_add(out, STR(" \\\n        '*:argument:"));
			zsh_action(out, commands[i].complete, commands[i].words);
			output_add(out, STR("'"));
		}
		output_add(out, STR(" ;;\n"));
	}
	output_add(out, STR("        esac ;;\n    esac\n}\n"
			    "if [[ $funcstack[1] == _stead ]]; then _stead \"$@\"; else compdef _stead stead; fi\n"));
}

static void fish_action(struct output *out, enum complete complete, const char *words)
{
	switch (complete) {
	case COMPLETE_NOTHING:
		break;
	case COMPLETE_WORDS:
		output_printf(out, " -a '%s'", words);
		break;
	case COMPLETE_HOST_DIR:
		output_add(out, STR(" -a '(__fish_complete_directories)'"));
		break;
	case COMPLETE_WORKSPACE:
		output_add(out, STR(" -a '(__stead_ask list | string replace -r \" .*\" \"\")'"));
		break;
	case COMPLETE_TOOL:
		output_add(out, STR(" -a '(__stead_ask tools | string replace -r \" .*\" \"\")'"));
		break;
	case COMPLETE_PATH:
		output_add(out, STR(" -a '(__stead_paths)'"));
		break;
	case COMPLETE_COMMAND:
	case COMPLETE_DIALECT:
		output_add(out, STR(" -a '"));
		(complete == COMPLETE_COMMAND ? words_of_commands : words_of_dialects)(out, " ");
		output_add(out, STR("'"));
		break;
	}
}

static void fish_options(struct output *out, const char *command, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = &options[i];

		output_add(out, STR("complete -c stead"));
		if (command)
			output_printf(out, " -n '__fish_seen_subcommand_from %s'", command);
		output_printf(out, " -l %s", o->name);
		if (o->letter)
			output_printf(out, " -s %c", o->letter);
		output_add(out, STR(" -d '"));
		quoted(out, o->help, false);
		output_add(out, STR("'"));
		if (o->value)
			output_add(out, STR(" -x"));
		fish_action(out, o->complete, o->words);
		output_add(out, STR("\n"));
	}
}

static const char fish_head[] =
	"# fish completion for stead; put it as stead.fish into ~/.config/fish/completions\n"
	"function __stead_ask\n"
	"    set -l tokens (commandline -opc)\n"
	"    set -l where\n"
	"    for i in (seq 2 (count $tokens))\n"
	"        switch $tokens[$i]\n"
	"            case --store --config --workspace -w --user --files --root --dialect\n"
	"                set -a where $tokens[$i] $tokens[(math $i + 1)]\n"
	"            case '--store=*' '--config=*' '--workspace=*' '--user=*' '--files=*' '--root=*' '--dialect=*'\n"
	"                set -a where $tokens[$i]\n"
	"        end\n"
	"    end\n"
	"    stead $where $argv 2>/dev/null\n"
	"end\n"
	"function __stead_paths\n"
	"    set -l dir (string match -r '^.*/' -- (commandline -ct))\n"
	"    for name in (__stead_ask ls -- \"$dir\")\n"
	"        echo \"$dir$name\"\n"
	"    end\n"
	"end\n"
	"complete -c stead -f\n";

static void fish_script(struct output *out)
{
	output_add(out, str_of(fish_head));
	fish_options(out, NULL, common_options, common_option_count);
	for (size_t i = 0; i < command_count; i++) {
		const struct command *c = &commands[i];

		output_printf(out, "complete -c stead -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(out, c->summary, false);
		output_add(out, STR("'\n"));
		fish_options(out, c->name, c->options, c->option_count);
		if (c->complete == COMPLETE_NOTHING)
			continue;
		output_printf(out, "complete -c stead -n '__fish_seen_subcommand_from %s'", c->name);
		fish_action(out, c->complete, c->words);
		output_add(out, STR("\n"));
	}
}

int run_completion(struct cli *cli, struct err *err)
{
	struct str shell = cli->args.operands[0];

	if (str_is(shell, "bash"))
		bash_script(&cli->out);
	else if (str_is(shell, "zsh"))
		zsh_script(&cli->out);
	else if (str_is(shell, "fish"))
		fish_script(&cli->out);
	else
		return err_set(err, ERR_INVALID, "completion: there is no script for '%.*s'; give bash, zsh or fish",
			       STR_ARG(utf8_first(shell, 80)));
	return 0;
}
