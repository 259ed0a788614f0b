/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept, and taking it elsewhere: gc, export, import. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/bundle.h"
#include "base/clock.h"
#include "base/fd.h"
#include "command/cli.h"
#include "workspace/gc.h"

int run_gc(struct cli *cli, struct err *err)
{
	bool dry_run = args_has(&cli->args, OPT_DRY_RUN);
	struct arena *arena = cli->ctx.arena;
	const struct jv *held;
	struct jv *report;
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		r = gc_run(cli->ws, &cli->ctx, dry_run, &report, err);
	if (r)
		return r;
	if (cli->json) {
		output_json(&cli->out, arena, report);
		return 0;
	}
	output_printf(&cli->out, "%s %lld revisions and %.*s\n", dry_run ? "would free" : "freed",
		      (long long)jv_get_int(report, "dropped", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "freed", 0))));
	output_printf(&cli->out, "kept: revisions %lld to %lld, %.*s\n", (long long)jv_get_int(report, "first", 0),
		      (long long)jv_get_int(report, "head", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "bytes", 0))));
	if (jv_get_int(report, "waiting", 0))
		output_printf(&cli->out, "another %.*s can go when it is a minute old\n",
			      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "waiting", 0))));
	held = jv_get(report, "held");
	if (held && jv_get_str(held, "checkpoint").len)
		output_printf(&cli->out, "more stays because of checkpoint '%.*s' at revision %lld\n",
			      STR_ARG(jv_get_str(held, "checkpoint")), (long long)jv_get_int(held, "revision", 0));
	else if (held)
		output_printf(&cli->out, "more stays because of a fork at revision %lld\n",
			      (long long)jv_get_int(held, "revision", 0));
	return 0;
}

/* --- bundles --- */

static int push_fd(void *arg, const void *bytes, size_t len, struct err *err)
{
	const char *at = bytes;

	for (ssize_t n; len; at += n, len -= (size_t)n) {
		n = write(*(int *)arg, at, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return err_sys(err, errno, "the bundle cannot be written");
	}
	return 0;
}

static int pull_fd(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	ssize_t n;

	do
		n = read(*(int *)arg, buf, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "the bundle cannot be read");
	*ret_len = (size_t)n;
	return 0;
}

static void print_counts(struct cli *cli, const struct jv *report, const char *verb, struct str what)
{
	struct arena *arena = cli->ctx.arena;

	output_printf(&cli->out, "%s '%.*s': %lld files (%.*s), %lld revisions, %.*s in all\n", verb, STR_ARG(what),
		      (long long)jv_get_int(report, "files", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "bytes", 0))),
		      (long long)jv_get_int(report, "revisions", 0),
		      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "size", 0))));
}

/* Into a file beside the target, which gets its name when it is whole. */
static int export_to_file(struct cli *cli, const char *path, struct jv **ret_report, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	const char *tmp = arena_printf(arena, "%s.%08x.tmp", path, (unsigned)random_u64()).ptr;
	FD_SCOPE int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	struct sink sink = {.push = push_fd, .arg = &fd};
	int r;

	if (fd < 0)
		return err_sys(err, errno, "export to \"%s\"", path);
	r = bundle_export(cli->ws, &cli->ctx, &sink, ret_report, err);
	if (r == 0 && (fsync(fd) || rename(tmp, path)))
		r = err_sys(err, errno, "export to \"%s\"", path);
	if (r)
		unlink(tmp);
	return r;
}

int run_export(struct cli *cli, struct err *err)
{
	struct str to = cli->args.operands[0];
	bool to_stdout = str_is(to, "-");
	int out = STDOUT_FILENO;
	struct sink sink = {.push = push_fd, .arg = &out};
	struct jv *report;
	int r;

	if (to_stdout && cli->json)
		return err_set(err, ERR_INVALID,
			       "export: with --json the bundle cannot go to standard output too; name a file");
	if (to_stdout && isatty(out))
		return err_set(err, ERR_INVALID, "export: a bundle is not for a terminal; name a file");
	r = cli_open(cli, CLI_READS, err);
	if (r)
		return r;
	cli_show_progress(cli, "exported");
	r = to_stdout ? bundle_export(cli->ws, &cli->ctx, &sink, &report, err)
		      : export_to_file(cli, arena_cstr(cli->ctx.arena, to), &report, err);
	if (r || to_stdout)
		return r;
	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, report);
		return 0;
	}
	print_counts(cli, report, "exported", jv_get_str(report, "workspace"));
	if (jv_get_int(report, "left_out", 0))
		output_printf(&cli->out, "left out: what holds secrets (.env and its like), %lld in all\n",
			      (long long)jv_get_int(report, "left_out", 0));
	return 0;
}

int run_import(struct cli *cli, struct err *err)
{
	struct str from = cli->args.operands[0], name = STR_NONE;
	bool from_stdin = str_is(from, "-");
	FD_SCOPE int file = from_stdin ? -1 : open(arena_cstr(cli->ctx.arena, from), O_RDONLY | O_CLOEXEC);
	int fd = from_stdin ? STDIN_FILENO : file;
	struct source source = {.pull = pull_fd, .arg = &fd};
	struct jv *report;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "import \"%.*s\"", STR_ARG(from));
	if (cli->args.operand_count > 1)
		name = cli->args.operands[1];
	cli_show_progress(cli, "imported");
	r = bundle_import(&cli->ctx, cli_setting(cli, OPT_STORE), &source, name, &report, err);
	if (r)
		return err_prefix(err, "import \"%.*s\"", STR_ARG(from));
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, report);
	else
		print_counts(cli, report, "imported", jv_get_str(report, "workspace"));
	return 0;
}
