/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not getopt_long: it wants one table before it sees the first argument, and here the table depends on the command;
 * it prints its own errors, without the nearest word; and it is global state.
 */
#include "command/args.h"

#include <stdio.h>

#include "base/fatal.h"

#define NAMES_MAX 100 /* options that are considered when one is misspelled */

struct parser {
	struct arena *arena;
	struct args *args;
	char *const *rest; /* arguments not yet looked at */
	int left;
};

static struct str next_argument(struct parser *p)
{
	p->left--;
	return str_of(*p->rest++);
}

static const struct option *search(const struct option *options, char letter, struct str name)
{
	for (; options && options->name; options++)
		if (letter ? options->letter == letter : str_is(name, options->name))
			return options;
	return NULL;
}

static const struct option *find_option(const struct command *command, char letter, struct str name)
{
	const struct option *own = command ? search(command->options, letter, name) : NULL;

	return own ? own : search(common_options, letter, name);
}

/* A command that has the option, for the hint when the option comes before its command. */
static const struct command *command_with(const struct command *const *list, char letter, struct str name)
{
	for (; *list; list++)
		if (search((*list)->options, letter, name))
			return *list;
	return NULL;
}

static const char *nearest_option(const struct command *command, struct str name)
{
	const char *names[NAMES_MAX];
	size_t n = 0;

	for (const struct option *o = common_options; o->name && n < NAMES_MAX; o++)
		names[n++] = o->name;
	for (const struct option *o = command ? command->options : NULL; o && o->name && n < NAMES_MAX; o++)
		names[n++] = o->name;
	return str_nearest(name, names, n);
}

static int unknown_option(const struct args *args, char letter, struct str name, struct err *err)
{
	const struct command *other = args->command ? NULL : command_with(args->list, letter, name);
	const char *nearest = letter ? NULL : nearest_option(args->command, name);
	const char *dashes = letter ? "-" : "--";
	struct str shown = letter ? str_n(&letter, 1) : utf8_first(name, 80);

	if (other)
		return err_set(err, ERR_INVALID, "option '%s%.*s' belongs after its command, as in 'stead %s %s%.*s'",
			       dashes, STR_ARG(shown), other->name, dashes, STR_ARG(shown));
	if (nearest)
		return err_set(err, ERR_INVALID, "unknown option '%s%.*s'; did you mean '--%s'?", dashes,
			       STR_ARG(shown), nearest);
	return err_set(err, ERR_INVALID, "unknown option '%s%.*s'; 'stead %s%s--help' shows the options", dashes,
		       STR_ARG(shown), args->command ? args->command->name : "", args->command ? " " : "");
}

static bool word_of(const char *words, struct str value)
{
	struct str rest = str_of(words), word;

	while (str_cut(&rest, ' ', &word))
		if (str_eq(word, value))
			return true;
	return false;
}

static int add_option(struct parser *p, const struct option *option, struct str value, struct err *err)
{
	struct args *args = p->args;

	if (option->words && !(option->optional && !value.ptr) && !word_of(option->words, value))
		return err_set(err, ERR_INVALID, "--%s is '%.*s'; give one of: %s", option->name,
			       STR_ARG(utf8_first(value, 80)), option->words);
	args->options[args->option_count++] = (struct args_option){option, value};
	return 0;
}

static int missing_value(const struct option *option, struct err *err)
{
	return err_set(err, ERR_INVALID, "--%s needs a value: '--%s %s'", option->name, option->name, option->value);
}

static int parse_long(struct parser *p, struct str text, struct err *err)
{
	size_t eq = str_find_char(text, '=');
	struct str name = str_first(text, eq);
	const struct option *option = find_option(p->args->command, 0, name);

	if (!option)
		return unknown_option(p->args, 0, name, err);
	if (!option->value) {
		if (eq < text.len)
			return err_set(err, ERR_INVALID, "--%s takes no value; write just '--%s'", option->name,
				       option->name);
		return add_option(p, option, STR_NONE, err);
	}
	if (eq < text.len)
		return add_option(p, option, str_from(text, eq + 1), err);
	if (option->optional)
		return add_option(p, option, STR_NONE, err);
	if (p->left == 0)
		return missing_value(option, err);
	return add_option(p, option, next_argument(p), err);
}

static int parse_letters(struct parser *p, struct str letters, struct err *err)
{
	for (size_t i = 0; i < letters.len; i++) {
		const struct option *option = find_option(p->args->command, letters.ptr[i], STR_NONE);
		int r;

		if (!option)
			return unknown_option(p->args, letters.ptr[i], STR_NONE, err);
		if (option->value && i + 1 < letters.len) /* "-C2" and "-C=2" */
			return add_option(p, option, str_from(letters, i + (letters.ptr[i + 1] == '=' ? 2 : 1)), err);
		if (option->value && p->left == 0)
			return missing_value(option, err);
		r = add_option(p, option, option->value ? next_argument(p) : STR_NONE, err);
		if (r)
			return r;
	}
	return 0;
}

static int parse_operand(struct parser *p, struct str text, struct err *err)
{
	struct args *args = p->args;

	if (args->command) {
		args->operands[args->operand_count++] = text;
		return 0;
	}
	args->command = command_find(args->list, text);
	return args->command ? 0 : command_unknown(args->list, text, err);
}

int args_parse(struct arena *arena, const struct command *const *list, int argc, char *const *argv,
	       struct args *ret_args, struct err *err)
{
	struct parser p = {.arena = arena, .args = ret_args, .rest = argv + 1, .left = argc > 0 ? argc - 1 : 0};
	size_t most = 1; /* "--name" is one option, "-abc" may be three */
	bool options_ended = false;

	for (int i = 1; i < argc; i++)
		most += argv[i][0] == '-' ? (argv[i][1] == '-' ? 1 : strlen(argv[i])) : 0;
	*ret_args = (struct args){.list = list};
	ret_args->options = ARENA_ARRAY(arena, struct args_option, most);
	ret_args->operands = ARENA_ARRAY(arena, struct str, (size_t)p.left + 1);
	while (p.left > 0) {
		struct str text = next_argument(&p);
		int r;

		if (!options_ended && str_is(text, "--")) {
			options_ended = true;
			continue;
		}
		if (options_ended || text.len < 2 || text.ptr[0] != '-')
			r = parse_operand(&p, text, err);
		else if (text.ptr[1] == '-')
			r = parse_long(&p, str_from(text, 2), err);
		else
			r = parse_letters(&p, str_from(text, 1), err);
		if (r)
			return r;
		options_ended |= ret_args->operand_count && ret_args->command->runs_operands;
	}
	return 0;
}

/* "FROM TO" are two, "PATTERN [PATH]" one or two, "PATH..." any number from one on. */
static void count_operands(const char *operands, size_t *ret_min, size_t *ret_max)
{
	int depth = 0;

	*ret_min = *ret_max = 0;
	for (const char *at = operands; at && *at; at++) {
		if (depth == 0 && *at != ' ' && (at == operands || at[-1] == ' ')) {
			*ret_min += *at != '[';
			*ret_max += *ret_max < SIZE_MAX;
		}
		depth += (*at == '[') - (*at == ']');
		if (strncmp(at, "...", 3) == 0)
			*ret_max = SIZE_MAX;
	}
}

static int check_operands(const struct args *args, const char *operands, struct err *err)
{
	const char *name = args->command->name, *action = args->action ? args->action->name : "";
	const char *gap = args->action ? " " : "";
	size_t min, max;

	count_operands(operands, &min, &max);
	if (args->operand_count < min)
		return err_set(err, ERR_INVALID, "%s%s%s: too few arguments; usage: stead %s%s%s %s", name, gap, action,
			       name, gap, action, operands);
	if (args->operand_count > max)
		return err_set(err, ERR_INVALID, "%s%s%s: unexpected argument '%.*s'; usage: stead %s%s%s%s%s", name,
			       gap, action, STR_ARG(utf8_first(args->operands[max], 80)), name, gap, action,
			       operands ? " " : "", operands ? operands : "");
	return 0;
}

static int choose_action(struct args *args, struct err *err)
{
	const struct action *actions = args->command->actions;
	char names[200];
	size_t len = 0;

	args->action = actions;
	if (args->operand_count == 0)
		return 0;
	for (; args->action->name; args->action++)
		if (str_is(args->operands[0], args->action->name)) {
			args->operands++;
			args->operand_count--;
			return 0;
		}
	for (const struct action *a = actions; a->name && len < sizeof(names); a++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", a == actions ? "" : ", ", a->name);
	return err_set(err, ERR_INVALID, "%s: there is no action '%.*s'; use one of: %s", args->command->name,
		       STR_ARG(utf8_first(args->operands[0], 80)), names);
}

int args_check(struct args *args, struct err *err)
{
	int r = args->command->actions ? choose_action(args, err) : 0;

	if (r == 0)
		r = check_operands(args, args->action ? args->action->operands : args->command->operands, err);
	for (size_t i = 0; r == 0 && i < args->option_count; i++) {
		const struct option *o = args->options[i].option;
		struct str text = args->options[i].value;
		int64_t n;

		if (o->max && (!str_to_i64(text, &n) || n < 0 || (uint64_t)n < o->min || (uint64_t)n > o->max))
			r = err_set(err, ERR_INVALID, "--%s is '%.*s'; give a number from %llu to %llu", o->name,
				    STR_ARG(utf8_first(text, 80)), (unsigned long long)o->min,
				    (unsigned long long)o->max);
	}
	return r;
}

const struct option *args_option(const struct args *args, struct str name)
{
	const struct option *option = find_option(args->command, 0, name);

	if (!option)
		fatal("bug: %s asks for --%.*s, which it does not declare",
		      args->command ? args->command->name : "no command", STR_ARG(name));
	return option;
}

static const struct args_option *last_given(const struct args *args, const char *name)
{
	const struct option *option = args_option(args, str_of(name));

	for (size_t i = args->option_count; i-- > 0;)
		if (args->options[i].option == option)
			return &args->options[i];
	return NULL;
}

bool args_has(const struct args *args, const char *name)
{
	return last_given(args, name) != NULL;
}

struct str args_get(const struct args *args, const char *name)
{
	const struct args_option *given = last_given(args, name);

	return given ? given->value : STR_NONE;
}

struct str *args_each(struct arena *arena, const struct args *args, const char *name, size_t *ret_count)
{
	const struct option *option = args_option(args, str_of(name));
	struct str *values = ARENA_ARRAY(arena, struct str, args->option_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < args->option_count; i++)
		if (args->options[i].option == option)
			values[n++] = args->options[i].value;
	*ret_count = n;
	return values;
}

uint64_t args_number(const struct args *args, const char *name, uint64_t fallback)
{
	const struct args_option *given = last_given(args, name);
	int64_t n;

	return given && str_to_i64(given->value, &n) ? (uint64_t)n : fallback;
}

struct str args_operand(const struct args *args, size_t index)
{
	return index < args->operand_count ? args->operands[index] : STR("");
}
