/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for three shells, written from the command table. What is known beforehand (commands, options,
 * words) is in the script; for workspaces, tools and paths the script asks `stead` when the key is pressed, with the
 * options for store, workspace and files that are on the line so far.
 */
#include "cli/commands.h"
#include "command/cli.h"
#include "tool/family.h"
#include "tool/search_source.h"

/* Helper functions of the shell. */
static const char bash_head[] =
	"# bash completion for stead; source it, or install it as /usr/share/bash-completion/completions/stead\n"
	"_stead_ask() {\n"
	"    local i where=()\n"
	"    for ((i = 1; i < COMP_CWORD; i++)); do\n"
	"        case ${COMP_WORDS[i]} in\n"
	"        --store|--config|--workspace|-w|--user|--files|--root|--dialect)\n"
	"            # bash cuts words at '=' and ':', so a URL may be several words\n"
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
	"_stead_tool() {\n" /* the tools, or after `call TOOL` its arguments */
	"    local i\n"
	"    for ((i = 1; i < COMP_CWORD - 1; i++)); do\n"
	"        [[ $2 == call && ${COMP_WORDS[i]} == call ]] || continue\n"
	"        compopt -o nospace\n"
	"        _stead_lines \"$1\" < <(_stead_ask tools --names \"${COMP_WORDS[i + 1]}\")\n"
	"        return\n"
	"    done\n"
	"    _stead_lines \"$1\" < <(_stead_ask tools --names)\n"
	"}\n"
	"_stead() {\n"
	"    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
	"    [[ $prev == '=' ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"    [[ $cur == '=' ]] && { prev=${COMP_WORDS[COMP_CWORD - 1]}; cur=; }\n";

/* How a shell's script names the candidates for a value or an operand: a list of words, or the output of a function. */
struct shell {
	const char *open, *separator, *close; /* around words */
	const char *functions[COMPLETE_COMMAND];
};

static const struct shell bash = {
	"_stead_words $'",
	"\\n",
	"' \"$cur\"",
	{[COMPLETE_NOTHING] = "COMPREPLY=()",
	 [COMPLETE_HOST_DIR] = "_stead_dir \"$cur\"",
	 [COMPLETE_WORKSPACE] = "_stead_lines \"$cur\" < <(_stead_ask list | cut -d' ' -f1)",
	 [COMPLETE_TOOL] = "_stead_tool \"$cur\" \"$command\"",
	 [COMPLETE_PATH] = "_stead_path \"$cur\""},
};
static const struct shell zsh = {
	"(",
	" ",
	")",
	{[COMPLETE_NOTHING] = " ",
	 [COMPLETE_HOST_DIR] = "_files -/",
	 [COMPLETE_WORKSPACE] = "_stead_workspaces",
	 [COMPLETE_TOOL] = "_stead_tools",
	 [COMPLETE_PATH] = "_stead_paths"},
};
static const struct shell fish = {
	" -a '",
	" ",
	"'",
	{[COMPLETE_NOTHING] = "",
	 [COMPLETE_HOST_DIR] = " -a '(__fish_complete_directories)'",
	 [COMPLETE_WORKSPACE] = " -a '(__stead_ask list | string replace -r \" .*\" \"\")'",
	 [COMPLETE_TOOL] = " -a '(__stead_tools)'",
	 [COMPLETE_PATH] = " -a '(__stead_paths)'"},
};

/* The names of what there is of a kind, separated by blanks. */
static struct str names_of(struct arena *arena, enum complete complete)
{
	struct buf names;

	buf_init(&names, arena, 64 * 1024);
	for (const struct command *const *c = command_list(); complete == COMPLETE_COMMAND && *c; c++)
		buf_printf(&names, "%s ", (*c)->name);
	for (size_t i = 0; complete == COMPLETE_DIALECT && toolset_dialect(i); i++)
		buf_printf(&names, "%s ", toolset_dialect(i));
	for (const struct family *const *f = families; complete == COMPLETE_AREA && *f; f++)
		for (const struct search_source *s = (*f)->search; s && s->area; s++)
			if (s == (*f)->search || strcmp(s->area, s[-1].area) != 0)
				buf_printf(&names, "%s ", s->area);
	return str_trim(buf_str(&names));
}

static void add_completion(struct output *out, const struct shell *shell, enum complete complete, const char *words)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str rest = words ? str_of(words) : names_of(arena, complete), word;
	const char *gap = "";

	if (!words && complete < COMPLETE_COMMAND) {
		output_add(out, str_of(shell->functions[complete]));
		return;
	}
	output_add(out, str_of(shell->open));
	for (; str_cut(&rest, ' ', &word); gap = shell->separator)
		output_printf(out, "%s%.*s", gap, STR_ARG(word));
	output_add(out, str_of(shell->close));
}

/* The words that complete the operands: those of the command, or the names of its actions. */
static const char *operand_words(struct arena *arena, const struct command *c)
{
	struct buf names;

	if (!c->actions)
		return c->words;
	buf_init(&names, arena, 4096);
	for (const struct action *a = c->actions; a->name; a++)
		buf_printf(&names, "%s%s", a == c->actions ? "" : " ", a->name);
	return arena_cstr(arena, buf_str(&names));
}

static void bash_values(struct output *out, const char *indent, const struct option *o)
{
	for (; o && o->name; o++) {
		if (!o->value)
			continue;
		output_printf(out, "%s--%s", indent, o->name);
		if (o->letter)
			output_printf(out, "|-%c", o->letter);
		output_add(out, STR(") "));
		add_completion(out, &bash, o->complete, o->words);
		output_add(out, STR("; return ;;\n"));
	}
}

static void bash_names(struct output *out, const struct option *o)
{
	for (; o && o->name; o++)
		output_printf(out, "--%s\\n", o->name);
}

static void bash_valued_names(struct output *out)
{
	for (const struct option *o = common_options; o->name; o++) {
		if (!o->value)
			continue;
		output_printf(out, "%s--%s", o == common_options ? "" : "|", o->name);
		if (o->letter)
			output_printf(out, "|-%c", o->letter);
	}
}

static void bash_command(struct cli *cli, const struct command *c)
{
	struct output *out = &cli->out;

	output_printf(out, "    %s)\n", c->name);
	if (c->options) {
		output_add(out, STR("        case $prev in\n"));
		bash_values(out, "        ", c->options);
		output_add(out, STR("        esac\n"));
	}
	output_add(out, STR("        [[ $cur == -* ]] && { _stead_words $'"));
	bash_names(out, c->options);
	bash_names(out, common_options);
	output_add(out, STR("' \"$cur\"; return; }\n        "));
	add_completion(out, &bash, c->complete, operand_words(cli->ctx.arena, c));
	output_add(out, STR(" ;;\n"));
}

static void bash_script(struct cli *cli)
{
	struct output *out = &cli->out;

	output_add(out, str_of(bash_head));
	output_add(out, STR("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n        "));
	bash_valued_names(out);
	output_add(out,
		   STR(") ((i++)); [[ ${COMP_WORDS[i]-} == '=' ]] && ((i++))\n"
		       "            while [[ ${COMP_WORDS[i + 1]-} == ':' ]]; do ((i += 2)); done ;;\n"
		       "        -*|=|:) ;;\n        *) command=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n"
		       "    case $prev in\n"));
	bash_values(out, "    ", common_options);
	output_add(out, STR("    esac\n    case $command in\n    '')\n        [[ $cur == -* ]] && { _stead_words $'"));
	bash_names(out, common_options);
	output_add(out, STR("' \"$cur\"; return; }\n        "));
	add_completion(out, &bash, COMPLETE_COMMAND, NULL);
	output_add(out, STR(" ;;\n"));
	for (const struct command *const *c = command_list(); *c; c++)
		bash_command(cli, *c);
	output_add(out, STR("    esac\n}\ncomplete -F _stead stead\n"));
}

/* Text inside single quotes. zsh also gives ':', '[' and ']' a meaning. */
static void quoted(struct output *out, const char *text, bool in_zsh)
{
	for (; *text; text++) {
		if (*text == '\'')
			output_add(out, in_zsh ? STR("'\\''") : STR("\\'"));
		else if (in_zsh && (*text == ':' || *text == '[' || *text == ']'))
			output_printf(out, "\\%c", *text);
		else
			output_add(out, str_n(text, 1));
	}
}

static void zsh_option(struct output *out, const struct option *o, const char *dashes, struct str name)
{
	output_printf(out, " \\\n        '*%s%.*s%s[", dashes, STR_ARG(name), o->optional ? "=-" : "");
	quoted(out, o->help, true);
	output_add(out, STR("]"));
	if (o->value) {
		output_add(out, o->optional ? STR("::") : STR(":"));
		quoted(out, o->value, true);
		output_add(out, STR(":"));
		add_completion(out, &zsh, o->complete, o->words);
	}
	output_add(out, STR("'"));
}

static void zsh_options(struct output *out, const struct option *o)
{
	for (; o && o->name; o++) {
		zsh_option(out, o, "--", str_of(o->name));
		if (o->letter)
			zsh_option(out, o, "-", str_n(&o->letter, 1));
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
			       "_stead_tools() {\n"
			       "    local tool=${words[(I)call]}\n"
			       "    if ((tool && CURRENT > tool + 1)); then\n"
			       "        compadd -S '' -- ${(f)\"$(_stead_ask tools --names ${words[tool + 1]})\"}\n"
			       "    else\n"
			       "        compadd -- ${(f)\"$(_stead_ask tools --names)\"}\n"
			       "    fi\n"
			       "}\n"
			       "_stead_paths() {\n"
			       "    local dir= names\n"
			       "    [[ $PREFIX == */* ]] && dir=${PREFIX%/*}/\n"
			       "    names=(${(f)\"$(_stead_ask ls -- \"$dir\")\"})\n"
			       "    compadd -S '' -- $dir${^names}\n"
			       "}\n";

static void zsh_script(struct cli *cli)
{
	struct output *out = &cli->out;

	output_add(out, str_of(zsh_head));
	output_add(out, STR("_stead() {\n    local line state common\n    common=("));
	zsh_options(out, common_options);
	output_add(out, STR(")\n    _arguments -C $common '1:command:->command' '*::argument:->argument'\n"
			    "    case $state in\n    command)\n        local -a names=("));
	for (const struct command *const *c = command_list(); *c; c++) {
		output_printf(out, " \\\n            '%s:", (*c)->name);
		quoted(out, (*c)->summary, true);
		output_add(out, STR("'"));
	}
	output_add(out, STR(")\n        _describe command names ;;\n    argument)\n        case $line[1] in\n"));
	for (const struct command *const *c = command_list(); *c; c++) {
		output_printf(out, "        %s) _arguments $common", (*c)->name);
		zsh_options(out, (*c)->options);
		if ((*c)->operands || (*c)->actions) {
			output_add(out, STR(" \\\n        '*:argument:"));
			add_completion(out, &zsh, (*c)->complete, operand_words(cli->ctx.arena, *c));
			output_add(out, STR("'"));
		}
		output_add(out, STR(" ;;\n"));
	}
	output_add(out, STR("        esac ;;\n    esac\n}\n"
			    "if [[ $funcstack[1] == _stead ]]; then _stead \"$@\"; else compdef _stead stead; fi\n"));
}

static void fish_options(struct output *out, const char *command, const struct option *o)
{
	for (; o && o->name; o++) {
		output_add(out, STR("complete -c stead"));
		if (command)
			output_printf(out, " -n '__fish_seen_subcommand_from %s'", command);
		output_printf(out, " -l %s", o->name);
		if (o->letter)
			output_printf(out, " -s %c", o->letter);
		output_add(out, STR(" -d '"));
		quoted(out, o->help, false);
		output_add(out, STR("'"));
		if (o->value && !o->optional)
			output_add(out, STR(" -x"));
		add_completion(out, &fish, o->complete, o->words);
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
	"function __stead_tools\n"
	"    set -l tokens (commandline -opc)\n"
	"    set -l at (contains -i -- call $tokens)\n"
	"    if test -n \"$at\" -a (count $tokens) -gt \"$at\"\n"
	"        __stead_ask tools --names $tokens[(math $at + 1)]\n"
	"    else\n"
	"        __stead_ask tools --names\n"
	"    end\n"
	"end\n"
	"complete -c stead -f\n";

static void fish_script(struct cli *cli)
{
	struct output *out = &cli->out;

	output_add(out, str_of(fish_head));
	fish_options(out, NULL, common_options);
	for (const struct command *const *at = command_list(); *at; at++) {
		const struct command *c = *at;
		const char *words = operand_words(cli->ctx.arena, c);

		output_printf(out, "complete -c stead -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(out, c->summary, false);
		output_add(out, STR("'\n"));
		fish_options(out, c->name, c->options);
		if (c->complete == COMPLETE_NOTHING && !words)
			continue;
		output_printf(out, "complete -c stead -n '__fish_seen_subcommand_from %s'", c->name);
		add_completion(out, &fish, c->complete, words);
		output_add(out, STR("\n"));
	}
}

int run_completion(struct cli *cli, struct err *err)
{
	struct str shell = cli->args.operands[0];

	if (str_is(shell, "bash"))
		bash_script(cli);
	else if (str_is(shell, "zsh"))
		zsh_script(cli);
	else if (str_is(shell, "fish"))
		fish_script(cli);
	else
		return err_set(err, ERR_INVALID, "completion: there is no script for '%.*s'; use bash, zsh or fish",
			       STR_ARG(utf8_first(shell, 80)));
	return 0;
}
