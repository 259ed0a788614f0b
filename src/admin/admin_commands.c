/* SPDX-License-Identifier: Apache-2.0 */
/* Whole workspaces and stores: doctor, export, import, copy, fsck. */
#include "admin/admin_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "admin/bundle.h"
#include "admin/copy.h"
#include "admin/doctor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "command/cli.h"
#include "command/input.h"
#include "tool/call.h"

static struct str size_of(struct cli *cli, const struct jv *report, const char *key)
{
	return output_size(cli->ctx.arena, (uint64_t)jv_get_int(report, key, 0));
}

/* --- export, import --- */

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

static void print_counts(struct cli *cli, const struct jv *report, const char *verb)
{
	output_printf(&cli->out, "%s '%.*s': %.*s (%.*s), %.*s, %.*s in all\n", verb,
		      STR_ARG(jv_get_str(report, "workspace")),
		      STR_ARG(value_count(cli->ctx.arena, report, "files", "file")),
		      STR_ARG(size_of(cli, report, "bytes")),
		      STR_ARG(value_count(cli->ctx.arena, report, "revisions", "revision")),
		      STR_ARG(size_of(cli, report, "size")));
}

/* Writes a file next to the target, which gets the target's name when it is complete. */
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

/* What a copy or a bundle cannot have, because the source has lost it. */
static void print_missing(struct cli *cli, const struct jv *report)
{
	if (jv_get_int(report, "missing", 0))
		output_printf(&cli->out, "missing: %.*s of the history, already lost here; 'stead fsck' names them\n",
			      STR_ARG(value_count(cli->ctx.arena, report, "missing", "content")));
}

static int run_export(struct cli *cli, struct err *err)
{
	struct str to = cli->args.operands[0];
	bool to_stdout = str_is(to, "-");
	int out = STDOUT_FILENO;
	struct sink sink = {.push = push_fd, .arg = &out};
	struct jv *report;
	int r;

	if (to_stdout && cli->json)
		return err_set(err, ERR_INVALID,
			       "export: with --json, standard output cannot take the bundle too; name a file");
	if (to_stdout && isatty(out))
		return err_set(err, ERR_INVALID, "export: a terminal cannot take a bundle; name a file");
	r = cli_open(cli, CLI_READS, err);
	if (r)
		return r;
	cli_show_progress(cli, "exported");
	r = to_stdout ? bundle_export(cli->ws, &cli->ctx, &sink, &report, err)
		      : export_to_file(cli, arena_cstr(cli->ctx.arena, to), &report, err);
	if (r || to_stdout || cli_json(cli, report))
		return r;
	print_counts(cli, report, "exported");
	if (jv_get_int(report, "left_out", 0))
		output_printf(&cli->out, "left out: %lld with secrets (.env and the like)\n",
			      (long long)jv_get_int(report, "left_out", 0));
	print_missing(cli, report);
	return 0;
}

static int run_import(struct cli *cli, struct err *err)
{
	struct str from = cli->args.operands[0];
	bool from_stdin = str_is(from, "-");
	FD_SCOPE int file = from_stdin ? -1 : open(arena_cstr(cli->ctx.arena, from), O_RDONLY | O_CLOEXEC);
	struct input input = {.fd = from_stdin ? STDIN_FILENO : file};
	struct source source;
	struct jv *report;
	int r;

	if (input.fd < 0)
		return err_sys(err, errno, "import \"%.*s\"", STR_ARG(from));
	source = input_source(&input);
	cli_show_progress(cli, "imported");
	r = bundle_import(&cli->ctx, cli_setting(cli, "store"), &source, args_operand(&cli->args, 1), &report, err);
	if (r)
		return err_prefix(err, "import \"%.*s\"", STR_ARG(from));
	if (!cli_json(cli, report))
		print_counts(cli, report, "imported");
	return 0;
}

/* --- copy --- */

static int run_copy(struct cli *cli, struct err *err)
{
	struct copy_req req = {
		.from = cli->args.operands[0],
		.to = cli->args.operands[1],
		.workspace = cli_setting(cli, "workspace"),
		.dry_run = args_has(&cli->args, "dry-run"),
		.remove = args_has(&cli->args, "delete"),
	};
	const struct jv *list;
	struct jv *report;
	int r;

	cli_show_progress(cli, "copied");
	r = store_copy_workspaces(&cli->ctx, &req, &report, err);
	if (r || cli_json(cli, report))
		return r;
	list = jv_get(report, "workspaces");
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		const struct jv *w = m->value;

		output_printf(&cli->out, "%s '%.*s': %.*s (%.*s), %lld already there",
			      req.dry_run ? "would copy" : "copied", STR_ARG(jv_get_str(w, "name")),
			      STR_ARG(value_count(cli->ctx.arena, w, "copied", "file")),
			      STR_ARG(size_of(cli, w, "copied_bytes")), (long long)jv_get_int(w, "same", 0));
		if (jv_get_int(w, "removed", 0))
			output_printf(&cli->out, ", %lld removed", (long long)jv_get_int(w, "removed", 0));
		output_printf(&cli->out, "; history up to revision %lld\n", (long long)jv_get_int(w, "head", 0));
		print_missing(cli, w);
	}
	if (!jv_count(list))
		output_add(&cli->out, STR("there is no workspace to copy\n"));
	return 0;
}

/* --- doctor, fsck --- */

/* One line for each check; the exit code is 1 when one failed. */
static void print_checks(struct cli *cli, const struct jv *checks)
{
	struct output *out = &cli->out;

	cli_json(cli, checks);
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		bool ok = jv_get_bool(m->value, "ok", false);
		struct str workspace = jv_get_str(m->value, "workspace"), fix = jv_get_str(m->value, "fix");

		if (!ok)
			cli->status = 1;
		if (cli->json)
			continue;
		output_printf(out, "%.*s%-5s%.*s %.*s%s%.*s: %.*s\n",
			      STR_ARG(output_tone(out, ok ? TONE_GOOD : TONE_BAD)), ok ? "ok" : "wrong",
			      STR_ARG(output_tone(out, TONE_PLAIN)), STR_ARG(workspace), workspace.len ? ": " : "",
			      STR_ARG(jv_get_str(m->value, "check")), STR_ARG(jv_get_str(m->value, "detail")));
		if (fix.len)
			output_printf(out, "      to fix it: %.*s\n", STR_ARG(fix));
	}
}

static int run_doctor(struct cli *cli, struct err *err)
{
	struct str name = cli->args.operand_count ? cli->args.operands[0] : cli_setting(cli, "workspace");
	struct jv *checks;
	int r = workspace_doctor(&cli->ctx, cli_setting(cli, "store"), name, &checks, err);

	if (r == 0)
		print_checks(cli, checks);
	return r;
}

static int run_fsck(struct cli *cli, struct err *err)
{
	struct str url = cli->args.operand_count ? cli->args.operands[0] : cli_setting(cli, "store");
	struct jv *checks;
	int r;

	cli_show_progress(cli, "checked");
	r = store_fsck(&cli->ctx, url, cli_setting(cli, "workspace"), args_has(&cli->args, "repair"), &checks, err);
	if (r == 0)
		print_checks(cli, checks);
	return r;
}

static const struct option copy_options[] = {
	{"dry-run", 'n', .help = "show what would be copied, and copy nothing"},
	{"delete", .help = "remove from the copy what the source no longer has"},
	{0},
};
static const struct option fsck_options[] = {
	{"repair", .help = "set damaged parts aside so that the rest can be used"},
	{0},
};

const struct command admin_commands[] = {
	{"doctor", "check workspaces, and say how to fix them", TOPIC_WORKSPACES, "[NAME]", .run = run_doctor,
	 .complete = COMPLETE_WORKSPACE,
	 .about = "Checks the store, and the configuration and files of one workspace or all. The exit code is 1 if\n"
		  "it finds a problem.\n",
	 .examples = "stead doctor\n  everything\nstead doctor research\n  one workspace\n"},
	{"export", "write the workspace to a single file", TOPIC_STORES, "FILE|-", .run = run_export,
	 .complete = COMPLETE_HOST_DIR,
	 .about = "Writes files, history and configuration, without secrets (.env, key files), to a tar archive\n"
		  "with checksums, which 'stead import' and 'tar -x' can read. '-' is standard output. The bundle\n"
		  "shows the workspace at one moment, even if others change it during the export. The same content\n"
		  "always gives the same bytes.\n",
	 .examples = "stead export -w research research.stead.tar\n  a backup, or a workspace to share\n"
		     "stead export - | ssh host stead import -\n  to another machine\n"},
	{"import", "create a workspace from a bundle", TOPIC_STORES, "FILE|- [NAME]", .run = run_import,
	 .complete = COMPLETE_HOST_DIR,
	 .about = "The workspace gets its old name, or NAME; no other workspace may have that name. The whole\n"
		  "bundle is checked before the workspace appears; a damaged bundle leaves nothing behind. Bundles\n"
		  "contain no secrets: write .env again.\n",
	 .examples = "stead import research.stead.tar\n  under its old name\n"
		     "stead import research.stead.tar research-2\n  under another name\n"},
	{"copy", "copy workspaces to another store", TOPIC_STORES, "SOURCE-URL TARGET-URL", .run = run_copy,
	 .options = copy_options,
	 .about = "Copies all workspaces, or the one that -w names, between stores of any kind: files, secrets\n"
		  "(.env) and history. config:FILE is the deployment that a stead.yaml describes. Every file is\n"
		  "read back and compared. Run the command again to copy what is missing or different, or to\n"
		  "continue an interrupted copy. A workspace of the same name is not touched if it is not a copy of\n"
		  "this one, or was changed since. Stop all writers before the last run.\n",
	 .examples = "stead copy disk:./workspaces s3://bucket/agents\n  to a bucket\n"
		     "stead copy -w research disk:./a disk:./b --dry-run\n  what would be copied\n"},
	{"fsck", "check the integrity of a store", TOPIC_STORES, "[URL]", .run = run_fsck, .options = fsck_options,
	 .about = "Reads everything: the history of each workspace in order, all kept contents and their hashes,\n"
		  "each file and its last record, and what killed processes left behind. Prints each problem and\n"
		  "what to do about it. The exit code is 1 if it finds one.\n",
	 .examples = "stead fsck\n  the store of your workspaces\nstead fsck -w research disk:./backup --json\n"
		     "  one workspace of another store\n"},
	{0},
};
