/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not getopt_long: it wants one table before it sees the first argument, and here the table depends on the command;
 * it prints its own errors, without the nearest word; and it is global state.
 */
#include "command/args.h"

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

static const struct option *search(const struct option *options, size_t count, char letter, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (letter ? options[i].letter == letter : str_is(name, options[i].name))
			return &options[i];
	return NULL;
}

static const struct option *find_option(const struct command *command, char letter, struct str name)
{
	const struct option *found = search(common_options, common_option_count, letter, name);

	if (!found && command)
		found = search(command->options, command->option_count, letter, name);
	return found;
}

/* A command that has the option, for the hint when it stands before its command. */
static const struct command *command_with(char letter, struct str name)
{
	for (size_t i = 0; i < command_count; i++)
		if (search(commands[i].options, commands[i].option_count, letter, name))
			return &commands[i];
	return NULL;
}

static const char *nearest_option(const struct command *command, struct str name)
{
	const char *names[OPTIONS * 2];
	size_t n = 0;

	for (size_t i = 0; i < common_option_count; i++)
		names[n++] = common_options[i].name;
	for (size_t i = 0; command && i < command->option_count; i++)
		names[n++] = command->options[i].name;
	return str_nearest(name, names, n);
}

static int unknown_option(const struct args *args, char letter, struct str name, struct err *err)
{
	const struct command *other = args->command ? NULL : command_with(letter, name);
	const char *nearest = letter ? NULL : nearest_option(args->command, name);
	const char *dashes = letter ? "-" : "--";
	struct str shown = letter ? str_n(&letter, 1) : str_first(name, 80);

	if (other)
		return err_set(err, ERR_INVALID, "option '%s%.*s' belongs behind its command, as in 'stead %s %s%.*s'",
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

	if (option->words && !word_of(option->words, value))
		return err_set(err, ERR_INVALID, "--%s is '%.*s'; give one of: %s", option->name,
			       STR_ARG(utf8_first(value, 80)), option->words);
	args->options[args->option_count++] = (struct args_option){option->id, value};
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
	args->command = command_find(text);
	return args->command ? 0 : command_unknown(text, err);
}

int args_parse(struct arena *arena, int argc, char *const *argv, struct args *ret_args, struct err *err)
{
	struct parser p = {.arena = arena, .args = ret_args, .rest = argv + 1, .left = argc > 0 ? argc - 1 : 0};
	size_t most = 1; /* "--name" is one option, "-abc" may be three */
	bool options_ended = false;

	for (int i = 1; i < argc; i++)
		most += argv[i][0] == '-' ? (argv[i][1] == '-' ? 1 : strlen(argv[i])) : 0;
	*ret_args = (struct args){0};
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
	}
	return 0;
}

int args_check_operands(const struct args *args, struct err *err)
{
	const struct command *c = args->command;

	if (args->operand_count < c->operands_min)
		return err_set(err, ERR_INVALID, "%s: too few arguments; usage: stead %s %s", c->name, c->name,
			       c->operands);
	if (args->operand_count > c->operands_max)
		return err_set(err, ERR_INVALID, "%s: '%.*s' is one argument too many; usage: stead %s%s%s", c->name,
			       STR_ARG(utf8_first(args->operands[c->operands_max], 80)), c->name,
			       c->operands[0] ? " " : "", c->operands);
	return 0;
}

bool args_has(const struct args *args, enum option_id id)
{
	for (size_t i = 0; i < args->option_count; i++)
		if (args->options[i].id == id)
			return true;
	return false;
}

struct str args_get(const struct args *args, enum option_id id)
{
	for (size_t i = args->option_count; i-- > 0;)
		if (args->options[i].id == id)
			return args->options[i].value;
	return STR_NONE;
}

struct str *args_each(struct arena *arena, const struct args *args, enum option_id id, size_t *ret_count)
{
	struct str *values = ARENA_ARRAY(arena, struct str, args->option_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < args->option_count; i++)
		if (args->options[i].id == id)
			values[n++] = args->options[i].value;
	*ret_count = n;
	return values;
}

int args_number(const struct args *args, enum option_id id, uint64_t max, uint64_t fallback, uint64_t *ret,
		struct err *err)
{
	struct str text = args_get(args, id);
	const struct option *option = NULL;
	int64_t n;

	if (!args_has(args, id)) {
		*ret = fallback;
		return 0;
	}
	for (size_t i = 0; i < args->command->option_count; i++)
		if (args->command->options[i].id == id)
			option = &args->command->options[i];
	if (!str_to_i64(text, &n) || n < 0 || (uint64_t)n > max)
		return err_set(err, ERR_INVALID, "--%s is '%.*s'; give a number from 0 to %llu",
			       option ? option->name : "option", STR_ARG(utf8_first(text, 80)),
			       (unsigned long long)max);
	*ret = (uint64_t)n;
	return 0;
}
