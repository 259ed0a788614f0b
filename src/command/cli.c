/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share: which workspace the options and the environment name, and how a tool's result is printed. */
#include "command/cli.h"

#include <unistd.h>

/* Without --store: the deployment that --config names, the store or the deployment of the environment, or the one whose
   stead.yaml stands here. */
static struct str store_setting(const struct cli *cli)
{
	const char *store = getenv("STEAD_STORE"), *config = getenv("STEAD_CONFIG");

	if (args_has(&cli->args, OPT_CONFIG))
		return arena_printf(cli->ctx.arena, "config:%.*s", STR_ARG(args_get(&cli->args, OPT_CONFIG)));
	if (store && *store)
		return str_of(store);
	if (config && *config)
		return arena_printf(cli->ctx.arena, "config:%s", config);
	return access("stead.yaml", F_OK) == 0 ? STR("config:stead.yaml") : STR_NONE;
}

struct str cli_setting(const struct cli *cli, enum option_id id)
{
	static const char *const variables[OPTIONS] = {
		[OPT_WORKSPACE] = "STEAD_WORKSPACE",
		[OPT_USER] = "STEAD_USER",
		[OPT_AGENT] = "STEAD_AGENT",
	};

	if (args_has(&cli->args, id))
		return args_get(&cli->args, id);
	if (id == OPT_STORE)
		return store_setting(cli);
	return variables[id] ? str_of(getenv(variables[id])) : STR_NONE;
}

int cli_open(struct cli *cli, enum cli_use use, struct err *err)
{
	struct workspace_opts opts = {
		.store_url = cli_setting(cli, OPT_STORE),
		.name = cli_setting(cli, OPT_WORKSPACE),
		.user = cli_setting(cli, OPT_USER),
		.agent = cli_setting(cli, OPT_AGENT),
		.session = cli_setting(cli, OPT_SESSION),
		.files_dir = cli_setting(cli, OPT_FILES),
		.root = cli_setting(cli, OPT_ROOT),
		.relaxed = args_has(&cli->args, OPT_RELAXED),
	};
	int r;

	if (!opts.root.len && !opts.files_dir.len)
		opts.root = dialect_root(cli_setting(cli, OPT_DIALECT));
	opts.create = use == CLI_SERVES || opts.name.len == 0 || str_is(opts.name, "default");
	/* Searching a directory of the person's own needs nothing from a workspace, so none is written for it. */
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

int cli_print_result(struct cli *cli, const struct tool_result *result, struct err *err)
{
	struct str text = result->text;

	if (result->is_error) {
		*err = result->err;
		cli->detail = str_trim(result->detail);
		return -(int)err->kind;
	}
	if (cli->json && result->value) {
		output_json(&cli->out, cli->ctx.arena, result->value);
		return 0;
	}
	if (cli->json) { /* a dialect that answers in text alone */
		struct jv *value = jv_object(cli->ctx.arena);

		jv_set_str(cli->ctx.arena, value, "text", text);
		output_json(&cli->out, cli->ctx.arena, value);
		return 0;
	}
	output_add(&cli->out, text);
	if (text.len == 0 || text.ptr[text.len - 1] != '\n')
		output_add(&cli->out, STR("\n"));
	return 0;
}

int cli_call(struct cli *cli, const char *tool, const struct jv *args, struct err *err)
{
	struct tool_result result;
	int r = cli->set ? 0 : cli_open_tools(cli, STR_NONE, err);

	if (r == 0)
		r = toolset_call(cli->set, &cli->ctx, str_of(tool), args, &result, err);
	return r ? r : cli_print_result(cli, &result, err);
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
