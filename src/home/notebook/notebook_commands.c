/* SPDX-License-Identifier: Apache-2.0 */
/* The notebook: note, notes. What agents do goes through their tools; what only the host does (credit, prune, seeds)
   is here alone. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "command/cli.h"
#include "home/notebook/notebook.h"

#define DAY_NS 86400000000000LL

/* --- note --- */

static int read_fd(struct arena *arena, int fd, size_t max, struct str *ret, struct err *err)
{
	struct buf b;

	buf_init(&b, arena, max + 1);
	for (;;) {
		char *room = buf_reserve(&b, 65536 < max + 1 - b.len ? 65536 : max + 1 - b.len);
		ssize_t n = room ? read(fd, room, 65536 < max + 1 - b.len ? 65536 : max + 1 - b.len) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "the text cannot be read");
		if (n == 0)
			break;
		b.len += (size_t)n;
	}
	if (b.len > max)
		return err_set(err, ERR_TOO_LARGE, "the text is longer than %zu bytes", max);
	*ret = b.len ? buf_str(&b) : STR("");
	return 0;
}

int run_note(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *args = jv_object(arena), *list = jv_array(arena);
	struct str content = args_get(&cli->args, OPT_CONTENT), *tags;
	size_t count;
	int r = 0;

	if (!args_has(&cli->args, OPT_CONTENT))
		r = read_fd(arena, STDIN_FILENO, NOTE_BODY_MAX, &content, err);
	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r)
		return r;
	jv_set_str(arena, args, "title", cli->args.operands[0]);
	jv_set_str(arena, args, "content", content);
	if (args_has(&cli->args, OPT_KIND))
		jv_set_str(arena, args, "kind", args_get(&cli->args, OPT_KIND));
	tags = args_each(arena, &cli->args, OPT_TAG, &count);
	for (size_t i = 0; i < count; i++)
		jv_push(arena, list, jv_str(arena, tags[i]));
	jv_set(arena, args, "tags", list);
	return cli_call(cli, "note", args, err);
}

/* --- notes --- */

static struct str operand(const struct cli *cli, size_t index)
{
	return index < cli->args.operand_count ? cli->args.operands[index] : STR("");
}

static int call_tool(struct cli *cli, const char *tool, struct jv *args, struct err *err)
{
	int r = cli_open(cli, CLI_READS, err);

	return r ? r : cli_call(cli, tool, args, err);
}

static int notes_list(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *args = jv_object(arena);
	uint64_t limit;
	int r = args_number(&cli->args, OPT_LIMIT, NOTES_LIST_MAX, 50, &limit, err);

	if (r)
		return r;
	jv_set_int(arena, args, "limit", limit ? (int64_t)limit : 1);
	if (args_has(&cli->args, OPT_KIND))
		jv_set_str(arena, args, "kind", args_get(&cli->args, OPT_KIND));
	if (args_has(&cli->args, OPT_AUTHOR))
		jv_set_str(arena, args, "author", args_get(&cli->args, OPT_AUTHOR));
	if (args_has(&cli->args, OPT_TAG))
		jv_set_str(arena, args, "tag", args_get(&cli->args, OPT_TAG));
	if (args_has(&cli->args, OPT_ALL))
		jv_set_bool(arena, args, "include_archived", true);
	return call_tool(cli, "list_notes", args, err);
}

static int notes_show(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);

	jv_set_str(cli->ctx.arena, args, "slug_or_title", operand(cli, 1));
	jv_set_bool(cli->ctx.arena, args, "versions", args_has(&cli->args, OPT_ALL));
	return call_tool(cli, "read_note", args, err);
}

static int notes_archive(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);

	jv_set_str(cli->ctx.arena, args, "slug", operand(cli, 1));
	return call_tool(cli, "archive_note", args, err);
}

static int notes_questions(struct cli *cli, struct err *err)
{
	return call_tool(cli, "list_open_questions", jv_object(cli->ctx.arena), err);
}

static int notes_credit(struct cli *cli, struct err *err)
{
	bool success = !args_has(&cli->args, OPT_FAILED);
	struct jv *report = jv_object(cli->ctx.arena);
	uint64_t credited;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = notebook_credit(workspace_notebook(cli->ws), &cli->ctx, success, cli->args.operands + 1,
				    cli->args.operand_count - 1, &credited, err);
	if (r)
		return r;
	jv_set_int(cli->ctx.arena, report, "credited", (int64_t)credited);
	jv_set_bool(cli->ctx.arena, report, "success", success);
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, report);
	else
		output_printf(&cli->out, "credited %llu note%s with a %s\n", (unsigned long long)credited,
			      credited == 1 ? "" : "s", success ? "success" : "failure");
	return 0;
}

static int notes_prune(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct note_prune want = {.dry_run = args_has(&cli->args, OPT_DRY_RUN)};
	struct jv *report = jv_object(arena), *slugs = jv_array(arena);
	struct note_list gone;
	uint64_t days;
	int r = args_number(&cli->args, OPT_OLDER_THAN, 36500, 90, &days, err);

	want.keep_kinds = args_each(arena, &cli->args, OPT_KEEP, &want.keep_count);
	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r)
		return r;
	want.idle_ns = (int64_t)days * DAY_NS;
	r = notebook_prune(workspace_notebook(cli->ws), &cli->ctx, &want, &gone, err);
	if (r)
		return r;
	for (size_t i = 0; i < gone.count; i++)
		jv_push(arena, slugs, jv_str(arena, gone.notes[i].slug));
	jv_set(arena, report, "pruned", slugs);
	jv_set_int(arena, report, "total", (int64_t)gone.total);
	jv_set_bool(arena, report, "dry_run", want.dry_run);
	if (cli->json) {
		output_json(&cli->out, arena, report);
		return 0;
	}
	for (size_t i = 0; i < gone.count; i++)
		output_printf(&cli->out, "%.*s\n", STR_ARG(gone.notes[i].slug));
	output_printf(&cli->out, "%s %llu note%s\n", want.dry_run ? "would prune" : "pruned",
		      (unsigned long long)gone.total, gone.total == 1 ? "" : "s");
	return 0;
}

static int notes_index(struct cli *cli, struct err *err)
{
	struct str text;
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		r = notebook_flush(workspace_notebook(cli->ws), &cli->ctx, err);
	if (r == 0)
		r = notebook_index(workspace_notebook(cli->ws), &cli->ctx, &text, err);
	if (r)
		return r;
	if (cli->json) {
		struct jv *v = jv_object(cli->ctx.arena);

		jv_set_str(cli->ctx.arena, v, "index", text);
		output_json(&cli->out, cli->ctx.arena, v);
	} else {
		output_add(&cli->out, text);
	}
	return 0;
}

static int notes_prompt(struct cli *cli, struct err *err)
{
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		output_add(&cli->out, notebook_prompt(workspace_notebook(cli->ws), &cli->ctx, cli->args.operands + 1,
						      cli->args.operand_count - 1));
	return r;
}

/* A document of the person's own becomes seeds/<name>, for every agent to read. */
static int notes_seed(struct cli *cli, struct err *err)
{
	int r = cli_open(cli, CLI_WRITES, err);

	for (size_t i = 1; r == 0 && i < cli->args.operand_count; i++) {
		struct str from = cli->args.operands[i], bytes;
		FD_SCOPE int fd = open(arena_cstr(cli->ctx.arena, from), O_RDONLY | O_CLOEXEC);
		struct wpath path;

		if (fd < 0)
			return err_sys(err, errno, "seed \"%.*s\"", STR_ARG(from));
		r = read_fd(cli->ctx.arena, fd, TOOL_FILE_MAX, &bytes, err);
		if (r == 0)
			r = wpath_parse_lenient(
				cli->ctx.arena,
				arena_printf(cli->ctx.arena, "seeds/%.*s",
					     STR_ARG(str_from(from, str_rfind_char(from, '/') < from.len
									    ? str_rfind_char(from, '/') + 1
									    : 0))),
				&path, err);
		if (r == 0)
			r = store_write(workspace_files(cli->ws), &cli->ctx, path, bytes, (struct store_cond){0}, NULL,
					err);
		if (r == 0 && !cli->json)
			output_printf(&cli->out, "%.*s: %zu bytes\n", STR_ARG(path.s), bytes.len);
	}
	return r;
}

static const struct action {
	const char *name;
	size_t operands_min; /* behind the name */
	int (*run)(struct cli *cli, struct err *err);
} actions[] = {
	{"list", 0, notes_list},           {"show", 1, notes_show},     {"archive", 1, notes_archive},
	{"questions", 0, notes_questions}, {"credit", 1, notes_credit}, {"prune", 0, notes_prune},
	{"index", 0, notes_index},         {"prompt", 0, notes_prompt}, {"seed", 1, notes_seed},
};

int run_notes(struct cli *cli, struct err *err)
{
	struct str what = cli->args.operand_count ? cli->args.operands[0] : STR("list");

	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
		if (!str_is(what, actions[i].name))
			continue;
		if (cli->args.operand_count < actions[i].operands_min + 1 && actions[i].operands_min)
			return err_set(err, ERR_INVALID, "notes %s: an operand is missing; see 'stead help notes'",
				       actions[i].name);
		return actions[i].run(cli, err);
	}
	return err_set(err, ERR_INVALID, "notes: there is no \"%.*s\"; see 'stead help notes'", STR_ARG(what));
}
