/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the person, given to the agent: upload. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "command/cli.h"
#include "home/uploads/uploads.h"

static int pull_fd(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	ssize_t n;

	do
		n = read(*(int *)arg, buf, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "the file cannot be read");
	*ret_len = (size_t)n;
	return 0;
}

static int rewind_fd(void *arg, struct err *err)
{
	return lseek(*(int *)arg, 0, SEEK_SET) == 0 ? 0 : err_sys(err, errno, "the file cannot be read again");
}

static int upload_one(struct cli *cli, struct str file, struct jv **ret, struct err *err)
{
	FD_SCOPE int fd = open(arena_cstr(cli->ctx.arena, file), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t slash = str_rfind_char(file, '/');
	struct upload upload = {.name = slash < file.len ? str_from(file, slash + 1) : file,
				.source = {.pull = pull_fd, .rewind = rewind_fd, .arg = &fd}};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, errno, "upload %.*s", STR_ARG(file));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "upload %.*s: it is no file", STR_ARG(file));
	upload.size = (uint64_t)st.st_size;
	if (upload_save(cli->ws, &cli->ctx, &upload, ret, err))
		return err_prefix(err, "upload %.*s", STR_ARG(file));
	return 0;
}

int run_upload(struct cli *cli, struct err *err)
{
	struct jv *all = jv_array(cli->ctx.arena), *one;
	int r = cli_open(cli, CLI_WRITES, err);

	for (size_t i = 0; r == 0 && i < cli->args.operand_count; i++) {
		r = upload_one(cli, cli->args.operands[i], &one, err);
		if (r)
			break;
		jv_push(cli->ctx.arena, all, one);
		if (!cli->json)
			output_printf(&cli->out, "%.*s\n", STR_ARG(jv_get_str(one, "receipt")));
	}
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, all);
	return r;
}
