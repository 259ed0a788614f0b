/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for people. What an agent does too (edit, mv, cp, rm, info) goes through the tools, so that a person and an
 * agent get the same answer; what moves many bytes or names (ls, cat, write) goes to the store, in bounded memory.
 */
#include <errno.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/limits.h"
#include "command/cli.h"
#include "workspace/past.h"

/* Errors of stores and tools name a tool's arguments; this says how the command spells them. */
static int hint(struct cli *cli, int r, enum err_kind kind, const char *text)
{
	if (r == -(int)kind)
		cli->hint = text;
	return r;
}

static struct jv *stat_json(struct arena *arena, struct wpath path, const struct store_stat *stat)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "kind", stat->kind == STORE_DIR ? STR("directory") : STR("file"));
	if (stat->kind == STORE_FILE) {
		jv_set_int(arena, v, "size", (int64_t)stat->size);
		jv_set_str(arena, v, "modified", clock_format_utc(arena, stat->mtime_ns));
		jv_set_str(arena, v, "version", stat->version);
	}
	return v;
}

static void print_entry(struct cli *cli, struct wpath path, const struct store_stat *stat)
{
	struct output *out = &cli->out;
	bool is_dir = stat->kind == STORE_DIR;

	if (args_has(&cli->args, OPT_LONG) && is_dir)
		output_printf(out, "%12s  %20s  ", "-", "-");
	else if (args_has(&cli->args, OPT_LONG))
		output_printf(out, "%12llu  %.*s  ", (unsigned long long)stat->size,
			      STR_ARG(clock_format_utc(cli->ctx.arena, stat->mtime_ns)));
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
	struct store *files = workspace_files(cli->ws);
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
					stat_json(ctx.arena, page.entries[i].path, &page.entries[i].stat));
			else
				print_entry(cli, page.entries[i].path, &page.entries[i].stat);
		}
		arena_reset(after);
		req.after = page.next.ptr ? arena_str(after, page.next) : STR_NONE;
		arena_reset(page_arena);
	} while (req.after.ptr && !cli->out.gone);
	return 0;
}

int run_ls(struct cli *cli, struct err *err)
{
	struct jv *list = cli->json ? jv_array(cli->ctx.arena) : NULL;
	struct store_stat stat;
	struct wpath path;
	int r = cli_path(cli, cli->args.operand_count ? cli->args.operands[0] : STR(""), &path, err);

	if (r == 0)
		r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = store_stat(workspace_files(cli->ws), &cli->ctx, path, &stat, err);
	if (r)
		return r;
	if (stat.kind == STORE_DIR)
		r = list_directory(cli, path, list, err);
	else if (list)
		jv_push(cli->ctx.arena, list, stat_json(cli->ctx.arena, path, &stat));
	else
		print_entry(cli, path, &stat);
	if (r == 0 && list)
		output_json(&cli->out, cli->ctx.arena, list);
	return r;
}

static int print_bytes(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct cli *cli = arg;

	if (!output_add(&cli->out, str_n(bytes, len)))
		return err_set(err, ERR_CANCELLED, "nobody reads the output");
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
	v = stat_json(arena, path, &stat);
	jv_set_str(arena, v, "encoding", utf8_valid(bytes) ? STR("utf-8") : STR("base64"));
	jv_set_str(arena, v, "content", utf8_valid(bytes) ? bytes : base64_encode(arena, bytes));
	output_json_line(&cli->out, arena, v);
	return 0;
}

static int cat_file(struct cli *cli, struct str name, struct err *err)
{
	struct sink sink = {.push = print_bytes, .arg = cli};
	struct store *files = workspace_files(cli->ws);
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

int run_cat(struct cli *cli, struct err *err)
{
	enum cli_use use = CLI_READS;
	int r;

	for (size_t i = 0; i < cli->args.operand_count; i++)
		if (str_find_char(cli->args.operands[i], '@') < cli->args.operands[i].len)
			use = CLI_WRITES; /* the past of a directory of the person's own lies in a workspace */
	r = cli_open(cli, use, err);
	for (size_t i = 0; i < cli->args.operand_count && r == 0 && !cli->out.gone; i++)
		r = cat_file(cli, cli->args.operands[i], err);
	return cli->out.gone || cli->out.sys ? 0 : r;
}

/* Standard input as a source. It cannot be rewound, so a store that would repeat the write does not. */
struct input {
	struct cli *cli;
	uint64_t done;
};

static int pull_input(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct input *input = arg;
	ssize_t n;

	do
		n = read(STDIN_FILENO, buf, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "read standard input");
	input->done += (uint64_t)n;
	ctx_progress(&input->cli->ctx, input->done, 0, STR("bytes"));
	*ret_len = (size_t)n;
	return 0;
}

static int write_condition(const struct cli *cli, bool append, struct store_cond *ret, struct err *err)
{
	struct str mode = args_get(&cli->args, OPT_MODE);

	*ret = (struct store_cond){.kind = append || str_is(mode, "overwrite") ? STORE_ANY : STORE_ABSENT};
	if (!args_has(&cli->args, OPT_IF_VERSION))
		return 0;
	if (str_is(mode, "create"))
		return err_set(err, ERR_INVALID,
			       "write: --mode create is for a file that does not exist, so it has no "
			       "version; leave --if-version out, or use --mode overwrite");
	*ret = (struct store_cond){.kind = STORE_VERSION, .version = args_get(&cli->args, OPT_IF_VERSION)};
	return 0;
}

int run_write(struct cli *cli, struct err *err)
{
	bool append = str_is(args_get(&cli->args, OPT_MODE), "append");
	struct input input = {.cli = cli};
	struct source source = {.pull = pull_input, .arg = &input};
	struct store_cond cond;
	struct store_stat stat;
	struct wpath path;
	int r = write_condition(cli, append, &cond, err);

	if (r == 0)
		r = cli_path(cli, cli->args.operands[0], &path, err);
	if (r == 0)
		r = cli_open(cli, CLI_SERVES, err);
	if (r)
		return r;
	if (args_has(&cli->args, OPT_CONTENT))
		source = (struct source){.bytes = args_get(&cli->args, OPT_CONTENT)};
	else
		cli_show_progress(cli, "wrote");
	r = append ? store_append_stream(workspace_files(cli->ws), &cli->ctx, path, &source, cond, &stat, err)
		   : store_write_stream(workspace_files(cli->ws), &cli->ctx, path, &source, cond, &stat, err);
	if (r)
		return hint(cli, r, ERR_EXISTS, "--mode overwrite replaces the file, --mode append adds to it");
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, stat_json(cli->ctx.arena, path, &stat));
	else
		output_printf(&cli->out, "%.*s: %llu bytes, version %.*s\n", STR_ARG(path.s),
			      (unsigned long long)stat.size, STR_ARG(stat.version));
	return 0;
}

/* Text that goes into a tool's arguments. */
static int set_text(struct cli *cli, struct jv *args, const char *key, struct str text, struct err *err)
{
	if (!utf8_valid(text))
		return err_set(err, ERR_INVALID, "%s: the argument for '%s' is not UTF-8 text", cli->args.command->name,
			       key);
	jv_set_str(cli->ctx.arena, args, key, text);
	return 0;
}

int run_edit(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);
	struct str *operands = cli->args.operands;
	int r = set_text(cli, args, "path", operands[0], err);

	if (r == 0)
		r = set_text(cli, args, "old_text", operands[1], err);
	if (r == 0)
		r = set_text(cli, args, "new_text", operands[2], err);
	if (r == 0 && args_has(&cli->args, OPT_IF_VERSION))
		r = set_text(cli, args, "if_version", args_get(&cli->args, OPT_IF_VERSION), err);
	if (args_has(&cli->args, OPT_REPLACE_ALL))
		jv_set_bool(cli->ctx.arena, args, "replace_all", true);
	if (args_has(&cli->args, OPT_DRY_RUN))
		jv_set_bool(cli->ctx.arena, args, "dry_run", true);
	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r == 0)
		r = cli_call(cli, "edit_file", args, err);
	if (args_has(&cli->args, OPT_REPLACE_ALL))
		return r;
	return hint(cli, r, ERR_INVALID, "--all replaces every occurrence");
}

static int move_or_copy(struct cli *cli, const char *tool, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);
	int r = set_text(cli, args, "from", cli->args.operands[0], err);

	if (r == 0)
		r = set_text(cli, args, "to", cli->args.operands[1], err);
	if (args_has(&cli->args, OPT_FORCE))
		jv_set_bool(cli->ctx.arena, args, "overwrite", true);
	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r == 0)
		r = cli_call(cli, tool, args, err);
	return hint(cli, r, ERR_EXISTS, "--force replaces the target");
}

int run_mv(struct cli *cli, struct err *err)
{
	return move_or_copy(cli, "move_file", err);
}

int run_cp(struct cli *cli, struct err *err)
{
	return move_or_copy(cli, "copy_file", err);
}

int run_rm(struct cli *cli, struct err *err)
{
	int r = cli_open(cli, CLI_WRITES, err);

	for (size_t i = 0; i < cli->args.operand_count && r == 0; i++) {
		struct jv *args = jv_object(cli->ctx.arena);

		r = set_text(cli, args, "path", cli->args.operands[i], err);
		if (args_has(&cli->args, OPT_RECURSIVE))
			jv_set_bool(cli->ctx.arena, args, "recursive", true);
		if (r == 0)
			r = cli_call(cli, "delete_file", args, err);
	}
	if (args_has(&cli->args, OPT_RECURSIVE))
		return r;
	return hint(cli, r, ERR_INVALID, "-r removes a directory with all that is in it");
}

int run_info(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);
	int r = set_text(cli, args, "path", cli->args.operands[0], err);

	if (r == 0)
		r = cli_open(cli, CLI_READS, err);
	return r ? r : cli_call(cli, "file_info", args, err);
}
