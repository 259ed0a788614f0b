/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share: which workspace the options and the environment name, and how tools are called and printed. */
#include "command/cli.h"

#include <unistd.h>

#include "base/fatal.h"
#include "tool/family.h"

struct str cli_setting(const struct cli *cli, const char *option)
{
	const char *env = args_option(&cli->args, str_of(option))->env, *set = env ? getenv(env) : NULL;
	struct str config;

	if (args_has(&cli->args, option))
		return args_get(&cli->args, option);
	if (strcmp(option, "store") != 0)
		return str_of(set);
	if (set && *set && !args_has(&cli->args, "config"))
		return str_of(set);
	config = cli_setting(cli, "config");
	if (config.len)
		return arena_printf(cli->ctx.arena, "config:%.*s", STR_ARG(config));
	return access("stead.yaml", F_OK) == 0 ? STR("config:stead.yaml") : STR_NONE;
}

int cli_open(struct cli *cli, enum cli_use use, struct err *err)
{
	struct workspace_opts opts = {
		.store_url = cli_setting(cli, "store"),
		.name = cli_setting(cli, "workspace"),
		.user = cli_setting(cli, "user"),
		.agent = cli_setting(cli, "agent"),
		.session = cli_setting(cli, "session"),
		.files_dir = cli_setting(cli, "files"),
		.root = cli_setting(cli, "root"),
		.relaxed = args_has(&cli->args, "relaxed"),
	};
	int r;

	if (!opts.root.len && !opts.files_dir.len)
		opts.root = dialect_root(cli_setting(cli, "dialect"));
	opts.create = use == CLI_SERVES || opts.name.len == 0 || str_is(opts.name, "default");
	/* Searching a directory of the host needs nothing from a workspace, so none is created for it. */
	if (use == CLI_READS && opts.files_dir.len && !opts.store_url.len && !opts.name.len)
		opts.store_url = STR("memory:");
	r = workspace_open(&opts, &cli->ws, err);
	if (r == 0) {
		cli->ctx.actor = workspace_actor(cli->ws);
		cli->ctx.actor.call_id = call_id_new(cli->ctx.arena); /* one command is one call, and one undo */
	} else if (r == -ERR_NOT_FOUND && opts.name.len && !opts.files_dir.len)
		cli->hint = "'stead list' shows the workspaces there are, 'stead init NAME' makes one";
	return r;
}

int cli_open_tools(struct cli *cli, struct str dialect, struct err *err)
{
	return toolset_new(cli->ws, dialect, &cli->set, err);
}

static void print_text(struct cli *cli, struct str text)
{
	output_add(&cli->out, text);
	if (text.len == 0 || text.ptr[text.len - 1] != '\n')
		output_add(&cli->out, STR("\n"));
}

bool cli_json(struct cli *cli, const struct jv *value)
{
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, value);
	return cli->json;
}

static const struct tool *find_tool(const char *name)
{
	for (const struct family *const *f = families; *f; f++)
		for (const struct tool *t = (*f)->tools; t && t->name; t++)
			if (strcmp(t->name, name) == 0)
				return t;
	fatal("bug: a command names the tool %s, which does not exist", name);
}

struct str cli_render(struct cli *cli, const char *tool, const struct jv *value)
{
	struct buf text;

	buf_init(&text, cli->ctx.arena, SIZE_MAX / 4);
	find_tool(tool)->render(NULL, value, &text);
	return buf_str(&text);
}

void cli_print(struct cli *cli, const char *tool, const struct jv *value)
{
	if (!cli_json(cli, value))
		print_text(cli, cli_render(cli, tool, value));
}

void cli_print_list(struct cli *cli, const char *tool, const char *key, struct jv *list)
{
	struct jv *value = jv_object(cli->ctx.arena);

	if (cli_json(cli, list))
		return;
	jv_set(cli->ctx.arena, value, key, list);
	jv_set_int(cli->ctx.arena, value, "total", (int64_t)jv_count(list));
	print_text(cli, cli_render(cli, tool, value));
}

int cli_print_result(struct cli *cli, const struct tool_result *result, struct err *err)
{
	struct str text = result->text;

	if (result->is_error) {
		*err = result->err;
		cli->detail = str_trim(result->detail);
		return -(int)err->kind;
	}
	if (cli->json && !result->value) { /* a dialect that answers in text alone */
		struct jv *value = jv_object(cli->ctx.arena);

		jv_set_str(cli->ctx.arena, value, "text", text);
		cli_json(cli, value);
	} else if (!cli_json(cli, result->value)) {
		print_text(cli, text);
	}
	return 0;
}

static int text_arg(struct cli *cli, struct str key, struct str text, struct jv **ret, struct err *err)
{
	if (!utf8_valid(text))
		return err_set(err, ERR_INVALID, "%s: the argument for '%.*s' is not UTF-8 text",
			       cli->args.command->name, STR_ARG(key));
	*ret = jv_str(cli->ctx.arena, text);
	return 0;
}

/* NULL: the option is not given. */
static int option_arg(struct cli *cli, struct str key, struct str name, struct jv **ret, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	bool is_list = str_ends(name, STR("..."));
	const struct option *option = args_option(&cli->args, is_list ? str_first(name, name.len - 3) : name);
	struct jv *list = jv_array(arena);

	for (size_t i = 0; i < cli->args.option_count; i++) {
		struct str text = cli->args.options[i].value;
		int r = 0;

		if (cli->args.options[i].option != option)
			continue;
		if (!option->value)
			*ret = jv_bool(arena, true);
		else if (option->max)
			*ret = jv_int(arena, (int64_t)args_number(&cli->args, option->name, 0));
		else
			r = text_arg(cli, key, text, ret, err);
		if (r)
			return r;
		jv_push(arena, list, *ret);
	}
	if (is_list)
		*ret = list;
	return 0;
}

int cli_args(struct cli *cli, const char *words, struct jv **ret_args, struct err *err)
{
	struct str rest = str_of(words), word;
	struct jv *args = jv_object(cli->ctx.arena);
	size_t next = 0;

	while (str_cut(&rest, ' ', &word)) {
		size_t eq = str_find(word, STR("=--"), 0);
		struct str key = str_first(word, eq);
		struct jv *value = NULL;
		int r = 0;

		if (eq != SIZE_MAX)
			r = option_arg(cli, key, str_from(word, eq + 3), &value, err);
		else if (next < cli->args.operand_count)
			r = text_arg(cli, key, cli->args.operands[next++], &value, err);
		if (r)
			return r;
		if (value)
			jv_set_key(cli->ctx.arena, args, key, value);
	}
	*ret_args = args;
	return 0;
}

int cli_call(struct cli *cli, const char *tool, const struct jv *args, struct err *err)
{
	enum cli_use use = find_tool(tool)->traits & TOOL_READS_ONLY ? CLI_READS : CLI_WRITES;
	struct tool_result result;
	int r = cli->ws ? 0 : cli_open(cli, use, err);

	if (r == 0 && !cli->set)
		r = cli_open_tools(cli, STR_NONE, err);
	if (r == 0)
		r = toolset_call(cli->set, &cli->ctx, str_of(tool), args, &result, err);
	return r ? r : cli_print_result(cli, &result, err);
}

int cli_tool(struct cli *cli, const char *tool, const char *words, struct err *err)
{
	struct jv *args;
	int r = cli_args(cli, words, &args, err);

	return r ? r : cli_call(cli, tool, args, err);
}

int cli_run(struct cli *cli, struct err *err)
{
	const struct command *c = cli->args.command;
	const struct action *a = cli->args.action;

	enum cli_use opens = a ? a->opens : c->opens;
	int r = opens ? cli_open(cli, opens, err) : 0;

	if (r)
		return r;
	if (a ? a->run : c->run)
		return (a ? a->run : c->run)(cli, err);
	return cli_tool(cli, a ? a->tool : c->tool, a ? a->args : c->args, err);
}

int cli_hint(struct cli *cli, int r, enum err_kind kind, const char *text)
{
	if (r == -(int)kind)
		cli->hint = text;
	return r;
}

int cli_path(struct cli *cli, struct str text, struct wpath *ret, struct err *err)
{
	return wpath_parse_lenient(cli->ctx.arena, text, ret, err);
}

void cli_show_progress(struct cli *cli, const char *verb)
{
	if (output_progress(&cli->out, verb, &cli->progress))
		cli->ctx.progress = &cli->progress;
}
