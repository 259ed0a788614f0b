/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead`: finds the command in the table, runs it, and turns its outcome into output and an exit code. SIGPIPE is
 * ignored here, in the program and not in the library: a reader that goes away must not end an MCP server in the middle
 * of a call, and output.c takes care of `| head`.
 */
#include <signal.h>
#include <unistd.h>

#include "base/fatal.h"
#include "cli/commands.h"
#include "command/cli.h"
#include "stead.h"

static int run(struct cli *cli, int argc, char **argv, struct err *err)
{
	int r = args_parse(cli->ctx.arena, command_list(), argc, argv, &cli->args, err);

	cli->json = args_has(&cli->args, "json");
	if (r)
		return r;
	if (args_has(&cli->args, "version")) {
		output_printf(&cli->out, "stead %s\n", STEAD_VERSION);
		return 0;
	}
	if (!cli->args.command || args_has(&cli->args, "help"))
		return run_help(cli, err);
	r = args_check(&cli->args, err);
	return r ? r : cli_run(cli, err);
}

static void print_fatal(const char *message)
{
	fprintf(stderr, "stead: %s\n", message);
}

int main(int argc, char **argv)
{
	struct cli cli = {.ctx.arena = arena_new()};
	struct err err = {0};
	int r;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error of write(2) */
	arena_give_back();
	fatal_set_hook(print_fatal);
	output_init(&cli.out, STDOUT_FILENO);
	r = run(&cli, argc, argv, &err);
	if (r) {
		cli_speak_commands(&cli, &err);
		output_error(&cli.out, &err, cli.detail, cli.hint, cli.json);
	}
	if (cli.set)
		toolset_destroy(cli.set);
	store_destroy(cli.task);
	if (cli.ws)
		workspace_close(cli.ws);
	if (r == 0 && (r = output_close(&cli.out, &err)) != 0)
		output_error(&cli.out, &err, STR_NONE, NULL, cli.json);
	else if (cli.out.data)
		free(cli.out.data);
	arena_destroy(cli.ctx.arena);
	return r ? exit_code_of(err.kind) : cli.status;
}
