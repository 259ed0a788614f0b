/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host that people give to the agent. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "command/cli.h"
#include "command/input.h"
#include "home/uploads/uploads.h"

static int upload_one(struct cli *cli, struct str file, struct jv **ret, struct err *err)
{
	FD_SCOPE int fd = open(arena_cstr(cli->ctx.arena, file), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t slash = str_rfind_char(file, '/');
	struct input input = {.fd = fd};
	struct upload upload = {.name = slash < file.len ? str_from(file, slash + 1) : file};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "upload %.*s", STR_ARG(file));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "upload %.*s: this is not a regular file; name a file", STR_ARG(file));
	upload.source = input_source(&input);
	upload.size = (uint64_t)st.st_size;
	if (upload_save(cli->ws, &cli->ctx, &upload, ret, err))
		return err_prefix(err, "upload %.*s", STR_ARG(file));
	return 0;
}

static int run_upload(struct cli *cli, struct err *err)
{
	struct jv *all = jv_array(cli->ctx.arena), *one;
	int r = 0;

	for (size_t i = 0; r == 0 && i < cli->args.operand_count; i++) {
		r = upload_one(cli, cli->args.operands[i], &one, err);
		if (r)
			break;
		jv_push(cli->ctx.arena, all, one);
		if (!cli->json)
			cli_print(cli, "save_upload", one);
	}
	cli_json(cli, all);
	return r;
}

const struct command uploads_commands[] = {
	{"upload", "give files to the agent", TOPIC_HOME, "FILE...", .opens = CLI_WRITES, .run = run_upload,
	 .about = "Copies each file to uploads/YYYY-MM-DD/ under a safe name; a second file of that name gets (1). If\n"
		  "agent.yaml names a converter for its type (uploads.converters), the converter writes the text\n"
		  "next to it; if the converter fails, the file is kept and the failure is reported.\n",
	 .examples = "stead upload report.pdf notes.docx\n  two files\n"
		     "stead call list_uploads\n  what was uploaded\n"},
	{0},
};
