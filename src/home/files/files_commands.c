/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for people. What an agent can do too (edit, mv, cp, rm, info) is done by the tools, so that a person and an
 * agent get the same answer; what moves many bytes or names (ls, cat, write) uses the store, in bounded memory.
 */
#include "home/files/files_commands.h"

#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "command/cli.h"
#include "command/input.h"
#include "tool/call.h"
#include "workspace/own_dir.h"
#include "workspace/past.h"

static struct jv *stat_json(const struct workspace *ws, struct arena *arena, struct wpath path,
			    const struct store_stat *stat)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "kind", stat->kind == STORE_DIR ? STR("directory") : STR("file"));
	if (stat->kind == STORE_FILE) {
		jv_set_int(arena, v, "size", (int64_t)stat->size);
		jv_set_str(arena, v, "modified", workspace_time(ws, arena, stat->mtime_ns));
		jv_set_str(arena, v, "version", stat->version);
	}
	return v;
}

static void print_entry(struct cli *cli, struct wpath path, const struct store_stat *stat)
{
	struct output *out = &cli->out;
	bool is_dir = stat->kind == STORE_DIR;

	if (args_has(&cli->args, "long") && is_dir)
		output_printf(out, "%12s  %20s  ", "-", "-");
	else if (args_has(&cli->args, "long"))
		output_printf(out, "%12llu  %.*s  ", (unsigned long long)stat->size,
			      STR_ARG(workspace_time(cli->ws, cli->ctx.arena, stat->mtime_ns)));
	if (is_dir)
		output_add(out, output_tone(out, TONE_DIR));
	output_add(out, wpath_name(path));
	if (is_dir) {
		output_add(out, output_tone(out, TONE_PLAIN));
		output_add(out, STR("/"));
	}
	output_add(out, STR("\n"));
}

/* A whole directory, page by page; the memory of a page is given back before the next. */
static int list_directory(struct cli *cli, struct wpath dir, struct jv *list, struct err *err)
{
	struct store *files = cli_files(cli);
	ARENA_SCOPE struct arena *after = arena_new(), *page_arena = arena_new();
	struct ctx ctx = cli->ctx;
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page;

	ctx.arena = list ? cli->ctx.arena : page_arena;
	do {
		int r = store_list(files, &ctx, dir, &req, &page, err);

		if (r)
			return r;
		for (size_t i = 0; i < page.count; i++) {
			if (list)
				jv_push(ctx.arena, list,
					stat_json(cli->ws, ctx.arena, page.entries[i].path, &page.entries[i].stat));
			else
				print_entry(cli, page.entries[i].path, &page.entries[i].stat);
		}
		arena_reset(after);
		req.after = page.next.ptr ? arena_str(after, page.next) : STR_NONE;
		arena_reset(page_arena);
	} while (req.after.ptr && !cli->out.gone);
	return 0;
}

/* The symbolic links of a directory of the person's own, which no store has. */
static void list_links(struct cli *cli, struct wpath dir, struct jv *list)
{
	struct str root = workspace_own_dir(cli->ws);
	struct jv *links = list ? list : jv_array(cli->ctx.arena);

	if (root.len)
		own_dir_links(cli->ctx.arena, root, workspace_files(cli->ws), dir, links);
	for (const struct jv_member *m = list ? NULL : jv_first(links); m; m = m->next) {
		if (args_has(&cli->args, "long"))
			output_printf(&cli->out, "%12s  %20s  ", "-", "-");
		output_printf(&cli->out, "%.*s -> %.*s\n",
			      STR_ARG(wpath_name((struct wpath){jv_get_str(m->value, "path")})),
			      STR_ARG(jv_get_str(m->value, "target")));
	}
}

static int run_ls(struct cli *cli, struct err *err)
{
	struct jv *list = cli->json ? jv_array(cli->ctx.arena) : NULL;
	struct store_stat stat;
	struct wpath path;
	int r = cli_open_files(cli, CLI_READS, err);

	if (r == 0)
		r = cli_path(cli, args_operand(&cli->args, 0), &path, err);
	if (r == 0)
		r = store_stat(cli_files(cli), &cli->ctx, path, &stat, err);
	if (r)
		return r;
	if (stat.kind == STORE_DIR)
		r = list_directory(cli, path, list, err);
	else if (list)
		jv_push(cli->ctx.arena, list, stat_json(cli->ws, cli->ctx.arena, path, &stat));
	else
		print_entry(cli, path, &stat);
	if (r == 0 && stat.kind == STORE_DIR)
		list_links(cli, path, list);
	if (r == 0 && list)
		cli_json(cli, list);
	return r;
}

static int print_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct cli *cli = arg;

	if (!output_add(&cli->out, str_n(bytes, len)))
		return err_set(err, ERR_CANCELLED, "nothing reads the output");
	return 0;
}

static int cat_json(struct cli *cli, struct store *files, struct wpath path, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = cli->ctx;
	struct store_stat stat;
	struct str bytes;
	struct jv *v;
	int r;

	ctx.arena = arena;
	r = store_read(files, &ctx, path, STORE_WHOLE, TOOL_FILE_MAX, &bytes, &stat, err);
	if (r)
		return r;
	v = stat_json(cli->ws, arena, path, &stat);
	jv_set_str(arena, v, "encoding", utf8_valid(bytes) ? STR("utf-8") : STR("base64"));
	jv_set_str(arena, v, "content", utf8_valid(bytes) ? bytes : base64_encode(arena, bytes));
	output_json_line(&cli->out, arena, v);
	return 0;
}

static int cat_file(struct cli *cli, struct str name, struct err *err)
{
	struct sink sink = {.push = print_bytes, .arg = cli};
	struct store *files = cli_files(cli);
	struct past_files *past = NULL;
	struct wpath path;
	uint64_t number;
	bool is_past = false;
	int r = str_find_char(name, '@') == name.len
			? cli_path(cli, name, &path, err)
			: past_path_at(cli->ws, &cli->ctx, name, &path, &number, &is_past, err);

	if (r == 0 && is_past)
		r = past_settle(cli->ws, &cli->ctx, path, err);
	if (r)
		return r;
	if (is_past)
		past = workspace_files_at(cli->ws, number, &files);
	r = cli->json ? cat_json(cli, files, path, err)
		      : store_read_stream(files, &cli->ctx, path, STORE_WHOLE, &sink, NULL, err);
	workspace_files_at_close(past);
	return r;
}

static int run_cat(struct cli *cli, struct err *err)
{
	int r = cli_open_files(cli, CLI_READS, err);

	for (size_t i = 0; i < cli->args.operand_count && r == 0 && !cli->out.gone; i++)
		r = cat_file(cli, cli->args.operands[i], err);
	return cli->out.gone || cli->out.sys ? 0 : r;
}

static int write_condition(const struct cli *cli, bool append, struct store_cond *ret, struct err *err)
{
	struct str mode = args_get(&cli->args, "mode");

	*ret = (struct store_cond){.kind = append || str_is(mode, "overwrite") ? STORE_ANY : STORE_ABSENT};
	if (!args_has(&cli->args, "if-version"))
		return 0;
	if (str_is(mode, "create"))
		return err_set(err, ERR_INVALID,
			       "write: --mode create is for a new file, which has no version; leave --if-version out, "
			       "or use --mode overwrite");
	*ret = (struct store_cond){.kind = STORE_VERSION, .version = args_get(&cli->args, "if-version")};
	return 0;
}

static int run_write(struct cli *cli, struct err *err)
{
	bool append = str_is(args_get(&cli->args, "mode"), "append");
	struct input input = {.fd = STDIN_FILENO, .ctx = &cli->ctx};
	struct source source = input_source(&input);
	struct store_cond cond;
	struct store_stat stat;
	struct wpath path;
	int r = write_condition(cli, append, &cond, err);

	if (r == 0)
		r = cli_open_files(cli, CLI_SERVES, err);
	if (r == 0)
		r = cli_path(cli, cli->args.operands[0], &path, err);
	if (r)
		return r;
	if (args_has(&cli->args, "content"))
		source = (struct source){.bytes = args_get(&cli->args, "content")};
	else if (!input_announce(STDIN_FILENO))
		cli_show_progress(cli, "wrote");
	r = append ? store_append_stream(cli_files(cli), &cli->ctx, path, &source, cond, &stat, err)
		   : store_write_stream(cli_files(cli), &cli->ctx, path, &source, cond, &stat, err);
	if (r)
		return cli_hint(cli, r, ERR_EXISTS, "--mode overwrite replaces the file, --mode append adds to it");
	if (!cli_json(cli, stat_json(cli->ws, cli->ctx.arena, path, &stat)))
		output_printf(&cli->out, "%.*s: %llu byte%s, version %.*s\n", STR_ARG(path.s),
			      (unsigned long long)stat.size, plural(stat.size), STR_ARG(stat.version));
	return 0;
}

static int run_edit(struct cli *cli, struct err *err)
{
	return cli_tool(cli, "edit_file",
			"path old_text new_text if_version=--if-version replace_all=--all dry_run=--dry-run", err);
}

static int run_mv(struct cli *cli, struct err *err)
{
	return cli_tool(cli, "move_file", "from to overwrite=--force", err);
}

static int run_cp(struct cli *cli, struct err *err)
{
	return cli_tool(cli, "copy_file", "from to overwrite=--force", err);
}

static int run_rm(struct cli *cli, struct err *err)
{
	int r = 0;

	for (; cli->args.operand_count && r == 0; cli->args.operands++, cli->args.operand_count--)
		r = cli_tool(cli, "delete_file", "path recursive=--recursive", err);
	return r;
}

static const struct option ls_options[] = {
	{"long", 'l', .help = "also print size and time"},
	{0},
};
static const struct option write_options[] = {
	{"mode", 0, "MODE", .help = "create (default): the file must not exist; overwrite; append",
	 .words = "create overwrite append"},
	{"if-version", 0, "V", .help = "only if the file still has this version (see 'stead info')"},
	{"content", 0, "TEXT", .help = "the content, instead of reading standard input"},
	{0},
};
static const struct option edit_options[] = {
	{"all", 'a', .help = "replace every occurrence"},
	{"dry-run", 'n', .help = "show the change without making it"},
	{"if-version", 0, "V", .help = "only if the file still has this version (see 'stead info')"},
	{0},
};
static const struct option move_options[] = {
	{"force", 'f', .help = "replace the target if it exists"},
	{0},
};
static const struct option rm_options[] = {
	{"recursive", 'r', .help = "remove directories with everything in them"},
	{0},
};

const struct command files_commands[] = {
	{"ls", "list files", TOPIC_FILES, "[PATH]", .run = run_ls, .complete = COMPLETE_PATH, .options = ls_options,
	 .about = "Prints one name per line; directories end with '/'. With --files, symbolic links come last, with\n"
		  "their targets.\n",
	 .examples = "stead ls\n  the root\nstead ls -l notes\n  with size and time\n"},
	{"cat", "print files, byte for byte", TOPIC_FILES, "PATH...", .run = run_cat, .complete = COMPLETE_PATH,
	 .about = "Works for any size and any bytes. PATH@REV is the file as it was after a revision. With --json,\n"
		  "prints one object per file, with its version; content that is not UTF-8 is printed as base64.\n",
	 .examples = "stead cat notes.md\n  print it\n"
		     "stead cat notes.md@12\n  as it was after revision 12\n"
		     "stead cat photo.png > photo.png\n  copy it out of the workspace\n"},
	{"write", "write a file from standard input", TOPIC_FILES, "PATH", .by_person = true, .run = run_write,
	 .complete = COMPLETE_PATH, .options = write_options,
	 .about = "Readers see either the old bytes or the new ones, never a mix. Directories are created as\n"
		  "needed. Files of any size are written in bounded memory. --if-version alone means --mode\n"
		  "overwrite.\n",
	 .examples = "echo hello | stead write notes.md\n  a new file\n"
		     "stead write notes.md --mode append --content 'more'\n  add to it\n"
		     "stead write data.bin --mode overwrite < data.bin\n  replace it\n"},
	{"edit", "replace text in a file", TOPIC_FILES, "PATH OLD NEW", .by_person = true, .opens = CLI_CHANGES,
	 .run = run_edit, .complete = COMPLETE_PATH, .options = edit_options,
	 .about = "OLD must occur exactly once, unless --all is given; if it does not occur, the nearest text is\n"
		  "shown. All other bytes stay as they are.\n",
	 .examples = "stead edit notes.md 'Tuesday' 'Wednesday'\n  one place\n"
		     "stead edit --all --dry-run notes.md colour color\n  show what would change\n"},
	{"grep", "search in files", TOPIC_FILES, "PATTERN [PATH]", .run = run_grep, .complete = COMPLETE_PATH,
	 .options = grep_options,
	 .about = "Prints path:line:text for every match, ordered by path; context lines as path-line-text, with --\n"
		  "between groups. The pattern is a Perl-like regular expression. The exit code is 1 if nothing\n"
		  "matches. With --json, prints one object per line.\n",
	 .examples = "stead grep 'budget|deadline'\n  everywhere\n"
		     "stead grep -i -C 2 --include '*.md' budget notes\n  in the Markdown files under notes\n"
		     "stead grep --files ~/project -F 'a.b(' src\n  plain text, in one of your directories\n"},
	{"find", "find files by name", TOPIC_FILES, "GLOB [PATH]", .run = run_find, .complete = COMPLETE_PATH,
	 .options = find_options,
	 .about = "Prints the paths that match, in order. '*' stays within a directory; '**' crosses directories:\n"
		  "'**/*.md' is every Markdown file. The exit code is 1 if nothing matches.\n",
	 .examples = "stead find '**/*.md'\n  every Markdown file\n"
		     "stead find '*.{yaml,yml}' config\n  directly in config\n"},
	{"mv", "move or rename a file or a directory", TOPIC_FILES, "FROM TO", .by_person = true, .opens = CLI_CHANGES,
	 .run = run_mv, .complete = COMPLETE_PATH, .options = move_options,
	 .about = "TO is the new path itself, not a directory to move into.\n",
	 .examples = "stead mv draft.md notes/final.md\n  rename it\n"},
	{"cp", "copy a file", TOPIC_FILES, "FROM TO", .by_person = true, .opens = CLI_CHANGES, .run = run_cp,
	 .complete = COMPLETE_PATH, .options = move_options,
	 .about = "TO is the path of the copy, not a directory to copy into.\n",
	 .examples = "stead cp notes.md notes-old.md\n  keep a copy\n"},
	{"rm", "remove files", TOPIC_FILES, "PATH...", .by_person = true, .opens = CLI_CHANGES, .run = run_rm,
	 .complete = COMPLETE_PATH, .options = rm_options,
	 .about = "Removes a directory only with -r. Stops at the first path that cannot be removed.\n",
	 .examples = "stead rm old.md\n  a file\nstead rm -r drafts\n  a directory\n"},
	{"info", "show the size, time and version of a file", TOPIC_FILES, "PATH", .tool = "file_info", .args = "path",
	 .complete = COMPLETE_PATH,
	 .about = "The version changes whenever the bytes change; --if-version of other commands takes it.\n",
	 .examples = "stead info notes.md\n  for a person\nstead info --json notes.md\n  for a script\n"},
	{0},
};
