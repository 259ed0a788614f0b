/* SPDX-License-Identifier: Apache-2.0 */
/* The notebook: note, notes. What agents can do too is done by their tools; only the host can credit, prune and seed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "command/cli.h"
#include "command/input.h"
#include "home/notebook/notebook_tools.h"

#define DAY_NS 86400000000000LL

static int run_note(struct cli *cli, struct err *err)
{
	struct str content = args_get(&cli->args, "content");
	struct jv *args;
	int r = cli_args(cli, "title kind=--kind tags=--tag...", &args, err);

	if (r == 0 && !args_has(&cli->args, "content"))
		r = input_read(cli->ctx.arena, STDIN_FILENO, NOTE_BODY_MAX, &content, err);
	if (r)
		return r;
	if (!str_trim(cli->args.operands[0]).len)
		return err_set(err, ERR_INVALID, "a note needs a title, such as 'Rate limits'");
	if (!str_trim(content).len)
		return err_set(err, ERR_INVALID, "the note has no text; give it with --content or on standard input");
	jv_set_str(cli->ctx.arena, args, "content", content);
	return cli_call(cli, "note", args, err);
}

static int run_notes_credit(struct cli *cli, struct err *err)
{
	bool success = !args_has(&cli->args, "failed");
	struct jv *report = jv_object(cli->ctx.arena);
	uint64_t credited;
	int r = notebook_credit(workspace_notebook(cli->ws), &cli->ctx, success, cli->args.operands,
				cli->args.operand_count, &credited, err);

	if (r)
		return r;
	jv_set_int(cli->ctx.arena, report, "credited", (int64_t)credited);
	jv_set_bool(cli->ctx.arena, report, "success", success);
	if (!cli_json(cli, report))
		output_printf(&cli->out, "credited %llu note%s with a %s\n", (unsigned long long)credited,
			      credited == 1 ? "" : "s", success ? "success" : "failure");
	return 0;
}

static int run_notes_prune(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct note_prune want = {.dry_run = args_has(&cli->args, "dry-run")};
	struct jv *report = jv_object(arena), *slugs = jv_array(arena);
	struct note_list gone;
	int r;

	want.keep_kinds = args_each(arena, &cli->args, "keep", &want.keep_count);
	want.idle_ns = (int64_t)args_number(&cli->args, "older-than", 90) * DAY_NS;
	r = notebook_prune(workspace_notebook(cli->ws), &cli->ctx, &want, &gone, err);
	if (r)
		return r;
	for (size_t i = 0; i < gone.count; i++)
		jv_push(arena, slugs, jv_str(arena, gone.notes[i].slug));
	jv_set(arena, report, "pruned", slugs);
	jv_set_int(arena, report, "total", (int64_t)gone.total);
	jv_set_bool(arena, report, "dry_run", want.dry_run);
	if (cli_json(cli, report))
		return 0;
	for (size_t i = 0; i < gone.count; i++)
		output_printf(&cli->out, "%.*s\n", STR_ARG(gone.notes[i].slug));
	output_printf(&cli->out, "%s %llu note%s\n", want.dry_run ? "would prune" : "pruned",
		      (unsigned long long)gone.total, gone.total == 1 ? "" : "s");
	return 0;
}

static int run_notes_index(struct cli *cli, struct err *err)
{
	struct jv *v = jv_object(cli->ctx.arena);
	struct str text;
	int r = notebook_flush(workspace_notebook(cli->ws), &cli->ctx, err);

	if (r == 0)
		r = notebook_index(workspace_notebook(cli->ws), &cli->ctx, &text, err);
	if (r)
		return r;
	jv_set_str(cli->ctx.arena, v, "index", text);
	if (!cli_json(cli, v))
		output_add(&cli->out, text);
	return 0;
}

static int run_notes_prompt(struct cli *cli, struct err *err)
{
	(void)err;
	output_add(&cli->out, notebook_prompt(workspace_notebook(cli->ws), &cli->ctx, cli->args.operands,
					      cli->args.operand_count));
	return 0;
}

static int seed(struct cli *cli, struct str from, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	FD_SCOPE int fd = open(arena_cstr(arena, from), O_RDONLY | O_CLOEXEC);
	size_t slash = str_rfind_char(from, '/');
	struct str name = slash < from.len ? str_from(from, slash + 1) : from, bytes;
	struct wpath path;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "seed \"%.*s\"", STR_ARG(from));
	r = input_read(arena, fd, TOOL_FILE_MAX, &bytes, err);
	if (r == 0)
		r = cli_path(cli, arena_printf(arena, "seeds/%.*s", STR_ARG(name)), &path, err);
	if (r == 0)
		r = store_write(workspace_files(cli->ws), &cli->ctx, path, bytes, (struct store_cond){0}, NULL, err);
	if (r == 0 && !cli->json)
		output_printf(&cli->out, "%.*s: %zu byte%s\n", STR_ARG(path.s), bytes.len, bytes.len == 1 ? "" : "s");
	return r;
}

/* A document of the host becomes seeds/<name>, which every agent can read. */
static int run_notes_seed(struct cli *cli, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < cli->args.operand_count; i++)
		r = seed(cli, cli->args.operands[i], err);
	return r;
}

static const struct action actions[] = {
	{"list", NULL, .tool = "list_notes",
	 .args = "kind=--kind author=--author tag=--tag limit=--limit include_archived=--all"},
	{"show", "REF", .tool = "read_note", .args = "slug_or_title versions=--all"},
	{"archive", "SLUG", .tool = "archive_note", .args = "slug"},
	{"questions", NULL, .tool = "list_open_questions", .args = ""},
	{"credit", "SLUG...", .opens = CLI_WRITES, .run = run_notes_credit},
	{"prune", NULL, .opens = CLI_WRITES, .run = run_notes_prune},
	{"index", NULL, .opens = CLI_READS, .run = run_notes_index},
	{"prompt", "[TEAMMATE...]", .opens = CLI_READS, .run = run_notes_prompt},
	{"seed", "FILE...", .opens = CLI_WRITES, .run = run_notes_seed},
	{0},
};

#define KINDS "finding question decision summary artifact plan note"
static const struct option note_options[] = {
	{"content", 0, "TEXT", .help = "the content, instead of reading standard input"},
	{"kind", 0, "KIND", .help = "the kind of note (default: finding)", .words = KINDS},
	{"tag", 0, "TAG", .help = "a word to find it by; may be repeated"},
	{0},
};
static const struct option notes_options[] = {
	{"kind", 0, "KIND", .help = "list: only notes of this kind", .words = KINDS},
	{"author", 0, "NAME", .help = "list: only notes by this agent"},
	{"tag", 0, "TAG", .help = "list: only notes with this tag"},
	{"limit", 'n', "N", .help = "list: at most N notes (default: 50)", .min = 1, .max = NOTES_LIST_MAX},
	{"all", 'a', .help = "list: include archived notes; show: include earlier versions"},
	{"failed", .help = "credit: the notes did not help"},
	{"older-than", 0, "DAYS", .help = "prune: notes not used for this many days (default: 90)", .max = 36500},
	{"keep", 0, "KIND", .help = "prune: keep notes of this kind; may be repeated", .words = KINDS},
	{"dry-run", .help = "prune: show what would be removed, and remove nothing"},
	{0},
};

const struct command notebook_commands[] = {
	{"note", "write a note in the notebook", TOPIC_HOME, "TITLE", .by_person = true, .run = run_note,
	 .options = note_options,
	 .about = "The text comes from standard input or --content. The author is --agent. The note is a file under\n"
		  "notes/ with a unique slug.\n",
	 .examples = "stead note 'Rate limits' --content 'The API allows 10 calls a second.' --tag api\n"
		     "  a finding\n"
		     "stead note 'Use Postgres' --kind decision --agent ann < why.md\n  a decision by ann\n"},
	{"notes", "show the notebook, and clean it up", TOPIC_HOME, .by_person = true, .actions = actions,
	 .options = notes_options,
	 .about = "'list' (the default) shows the most recently updated notes; 'show' takes a slug or part of a\n"
		  "title; 'archive' hides a note by --agent; 'questions' lists the open questions. 'credit' records\n"
		  "that notes helped (with --failed: that they did not), and searches rank them accordingly.\n"
		  "'prune' removes notes that were never cited and not updated for 90 days. 'index' prints the\n"
		  "table of contents and writes it to WORKSPACE.md. 'prompt' prints the model's instructions for\n"
		  "the notebook. 'seed' copies documents to seeds/ in the file area.\n",
	 .examples = "stead notes --kind decision\n  what was decided\n"
		     "stead notes show rate\n  the note with 'rate' in its title\n"
		     "stead notes prune --older-than 30 --keep decision --dry-run\n  what would be removed\n"},
	{0},
};
