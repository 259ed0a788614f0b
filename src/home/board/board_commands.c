/* SPDX-License-Identifier: Apache-2.0 */
/* `stead board`: boards for people. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "command/cli.h"
#include "home/board/board_internal.h"
#include "tool/call.h"

static struct str board_of(struct cli *cli)
{
	return args_get(&cli->args, "board");
}

static struct board_ref ref_of(struct cli *cli)
{
	return (struct board_ref){board_of(cli), cli->args.operands[0]};
}

static void set_option(struct cli *cli, struct jv *fields, const char *key, const char *option)
{
	if (args_has(&cli->args, option))
		jv_set_str(cli->ctx.arena, fields, key, args_get(&cli->args, option));
}

static void print_item(struct cli *cli, const struct jv *item)
{
	struct jv *v = jv_object(cli->ctx.arena);

	jv_set(cli->ctx.arena, v, "item", (struct jv *)item);
	cli_print(cli, "get_item", v);
}

/* --- lists --- */

static enum tone tone_of(struct str status)
{
	if (str_is(status, "completed"))
		return TONE_GOOD;
	return str_is(status, "failed") || str_is(status, "blocked") || str_is(status, "rejected") ? TONE_BAD
												   : TONE_PLAIN;
}

/* "482913  in_progress  high    Compare the drafts": the last digits of an id are enough to name it. */
static void print_line(struct cli *cli, const struct jv *item)
{
	struct str id = jv_get_str(item, "id"), status = jv_get_str(item, "status");
	struct str tone = output_tone(&cli->out, tone_of(status)), plain = output_tone(&cli->out, TONE_PLAIN);
	struct str number = output_tone(&cli->out, TONE_NUMBER);

	output_printf(&cli->out, "%.*s%.*s%.*s  %.*s%-20.*s%.*s %-8.*s %.*s%s%s%s%.*s\n", STR_ARG(number),
		      STR_ARG(str_from(id, id.len > 6 ? id.len - 6 : 0)), STR_ARG(plain), STR_ARG(tone),
		      STR_ARG(status), STR_ARG(plain), STR_ARG(jv_get_str(item, "priority")),
		      STR_ARG(jv_get_str(item, "title")),
		      jv_is_null(jv_get(item, "pending_question")) ? "" : "  (asks)",
		      jv_is_null(jv_get(item, "pending_approval")) ? "" : "  (wants an approval)",
		      schedule_waits(item) ? "  from " : "",
		      STR_ARG(schedule_waits(item) ? jv_get_str(item, "scheduled_for") : STR("")));
}

static const char *nothing_listed(const struct board_list *list)
{
	if (list->archived)
		return "nothing is archived; 'stead board archive ITEM' frees the space that an item's files use";
	if (list->scheduled || list->status.len)
		return "no such items; 'stead board' shows all that are on the board";
	return "no items; create one with: stead board create TITLE";
}

static int run_board_list(struct cli *cli, struct err *err)
{
	struct board_list list = {.board = board_of(cli),
				  .status = args_get(&cli->args, "status"),
				  .archived = args_has(&cli->args, "archived"),
				  .scheduled = args_has(&cli->args, "scheduled"),
				  .limit = (size_t)args_number(&cli->args, "limit", 100)};
	struct jv *page;
	int r = board_item_list(cli->ws, &cli->ctx, &list, &page, err);

	if (r || cli_json(cli, page))
		return r;
	for (const struct jv_member *m = jv_first(jv_get(page, "items")); m; m = m->next)
		print_line(cli, m->value);
	if (!jv_count(jv_get(page, "items")))
		output_printf(&cli->out, "%s\n", nothing_listed(&list));
	else if (jv_get(page, "next_cursor"))
		output_printf(&cli->out, "(the newest %zu of %lld; see --limit and --status)\n", list.limit,
			      (long long)jv_get_int(page, "total", 0));
	return 0;
}

static int run_board_boards(struct cli *cli, struct err *err)
{
	struct jv *boards;
	int r = board_all(cli->ws, &cli->ctx, &boards, err);

	if (r || cli_json(cli, boards))
		return r;
	for (const struct jv_member *m = jv_first(boards); m; m = m->next)
		output_printf(&cli->out, "%.*s  %.*s\n", STR_ARG(jv_get_str(m->value, "id")),
			      STR_ARG(jv_get_str(m->value, "title")));
	return 0;
}

/* --- items --- */

/* "AT=URL[,rw]": only here, at the command line, may a mount name any store. */
static int add_mount(struct cli *cli, struct jv *mounts, struct str text, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *v = jv_object(arena);
	size_t eq = str_find_char(text, '=');
	struct str at = str_first(text, eq), url = str_from(text, eq + 1);
	bool writes = str_ends(url, STR(",rw"));

	if (eq == text.len || !url.len)
		return err_set(err, ERR_INVALID, "write a mount as /task/NAME=URL, or /task/NAME=URL,rw");
	if (writes)
		url.len -= 3;
	jv_set_str(arena, v, "mount_path",
		   str_starts(at, STR("/task/")) ? at : arena_printf(arena, "/task/%.*s", STR_ARG(at)));
	jv_set_str(arena, v, "url", url);
	jv_set_str(arena, v, "mode", writes ? STR("rw") : STR("ro"));
	jv_push(arena, mounts, v);
	return 0;
}

static int take_lists(struct cli *cli, struct jv *fields, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *mounts = jv_array(arena), *checks = jv_array(arena), *check;
	size_t mount_count, check_count;
	struct str *mount_texts = args_each(arena, &cli->args, "mount", &mount_count);
	struct str *check_texts = args_each(arena, &cli->args, "check", &check_count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < mount_count; i++)
		r = add_mount(cli, mounts, mount_texts[i], err);
	for (size_t i = 0; r == 0 && i < check_count; i++) {
		check = jv_object(arena);
		if (str_starts(check_texts[i], STR("{")))
			r = jv_parse(arena, check_texts[i], &check, err);
		else
			jv_set_str(arena, check, "path", check_texts[i]);
		if (r)
			err_prefix(err, "--check");
		jv_push(arena, checks, check);
	}
	if (jv_count(mounts))
		jv_set(arena, fields, "mounts", mounts);
	if (jv_count(checks))
		jv_set(arena, fields, "checks", checks);
	return r;
}

static int run_board_create(struct cli *cli, struct err *err)
{
	struct jv *fields = jv_object(cli->ctx.arena), *item;
	int r = take_lists(cli, fields, err);

	jv_set_str(cli->ctx.arena, fields, "title", cli->args.operands[0]);
	set_option(cli, fields, "description", "description");
	set_option(cli, fields, "priority", "priority");
	set_option(cli, fields, "child_of", "parent");
	set_option(cli, fields, "next_run_at", "at");
	set_option(cli, fields, "overlap", "overlap");
	if (args_has(&cli->args, "at") || args_has(&cli->args, "every"))
		jv_set_str(cli->ctx.arena, fields, "schedule_kind",
			   args_has(&cli->args, "every") ? STR("interval") : STR("once"));
	if (args_has(&cli->args, "every"))
		jv_set_int(cli->ctx.arena, fields, "interval_seconds", args_number(&cli->args, "every", 0));
	if (r == 0 && args_has(&cli->args, "every") && !args_has(&cli->args, "at"))
		r = err_set(err, ERR_INVALID, "--every needs the first time: --at TIME");
	if (r == 0)
		r = board_item_create(cli->ws, &cli->ctx, board_of(cli), fields, &item, err);
	if (r == 0)
		print_item(cli, item);
	return r;
}

static int run_board_show(struct cli *cli, struct err *err)
{
	struct jv *item;
	int r = board_item_get(cli->ws, &cli->ctx, ref_of(cli), &item, err);

	if (r == 0)
		print_item(cli, item);
	return r;
}

static int update(struct cli *cli, const struct jv *fields, struct err *err)
{
	struct board_caller caller;
	struct jv *item;
	int r = board_caller(cli->ws, &cli->ctx, board_of(cli), STR(""), &caller, err);

	if (r == 0)
		r = board_item_update(cli->ws, &cli->ctx, ref_of(cli), fields, &caller, &item, err);
	if (r == 0)
		print_item(cli, item);
	return r;
}

static int run_board_set(struct cli *cli, struct err *err)
{
	struct jv *fields = jv_object(cli->ctx.arena);
	int r = take_lists(cli, fields, err);

	set_option(cli, fields, "status", "status");
	set_option(cli, fields, "title", "title");
	set_option(cli, fields, "description", "description");
	set_option(cli, fields, "priority", "priority");
	set_option(cli, fields, "result_summary", "summary");
	if (r == 0 && !jv_count(fields))
		r = err_set(err, ERR_INVALID, "there is nothing to change; give --status, --title or another option");
	return r ? r : update(cli, fields, err);
}

static int run_board_complete(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *fields = jv_object(arena), *artifacts = jv_array(arena);
	size_t count;
	struct str *paths = args_each(arena, &cli->args, "artifact", &count);

	jv_set_str(arena, fields, "status", STR("completed"));
	set_option(cli, fields, "result_summary", "summary");
	for (size_t i = 0; i < count; i++)
		jv_push(arena, artifacts, jv_str(arena, paths[i]));
	jv_set(arena, fields, "artifacts", artifacts);
	return update(cli, fields, err);
}

static int run_board_archive(struct cli *cli, struct err *err)
{
	struct jv *item;
	int r = board_item_archive(cli->ws, &cli->ctx, ref_of(cli), &item, err);

	if (r == 0)
		print_item(cli, item);
	return r;
}

static int run_board_unarchive(struct cli *cli, struct err *err)
{
	struct jv *item;
	int r = board_item_unarchive(cli->ws, &cli->ctx, ref_of(cli), &item, err);

	if (r == 0)
		print_item(cli, item);
	return r;
}

static int run_board_assign(struct cli *cli, struct err *err)
{
	struct jv *fields = jv_object(cli->ctx.arena), *done;
	int r;

	jv_set_str(cli->ctx.arena, fields, "thread_id", cli->args.operands[1]);
	set_option(cli, fields, "role", "role");
	set_option(cli, fields, "instructions", "description");
	r = item_assign(cli->ws, &cli->ctx, ref_of(cli), fields, &done, err);
	if (r == 0)
		print_item(cli, jv_get(done, "item"));
	return r;
}

/* --- talk --- */

static int run_board_comment(struct cli *cli, struct err *err)
{
	struct jv *fields = jv_object(cli->ctx.arena), *comment;
	struct board_caller caller;
	int r = board_caller(cli->ws, &cli->ctx, board_of(cli), STR(""), &caller, err);

	jv_set_str(cli->ctx.arena, fields, "body", cli->args.operands[1]);
	if (r == 0)
		r = comment_add(cli->ws, &cli->ctx, ref_of(cli), fields, &caller, &comment, err);
	if (r == 0 && !cli_json(cli, comment))
		output_printf(&cli->out, "comment %.*s\n", STR_ARG(jv_get_str(comment, "id")));
	return r;
}

static int run_board_comments(struct cli *cli, struct err *err)
{
	struct jv *page;
	int r = comment_list(cli->ws, &cli->ctx, ref_of(cli), (size_t)args_number(&cli->args, "limit", 100), STR(""),
			     &page, err);

	if (r == 0)
		cli_print(cli, "list_comments", page);
	return r;
}

/* One text that answers all questions. */
static int run_board_answer(struct cli *cli, struct err *err)
{
	struct jv *fields = jv_object(cli->ctx.arena), *item;
	int r;

	jv_set_str(cli->ctx.arena, fields, "freeform_text", cli->args.operands[1]);
	r = board_question_answer(cli->ws, &cli->ctx, ref_of(cli), fields, &item, err);
	if (r == 0)
		print_item(cli, item);
	return r;
}

/* Approves what the item asks for: the tools that are named, or with none all of them; --always for later calls too. */
static int run_board_approve(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *fields = jv_object(arena), *list = jv_array(arena), *item, *one;
	const struct jv *wanted;
	int r = board_item_get(cli->ws, &cli->ctx, ref_of(cli), &item, err);

	if (r)
		return r;
	wanted = jv_get(item, "pending_approval");
	jv_set_str(arena, fields, "request_message_id", jv_get_str(wanted, "request_message_id"));
	for (const struct jv_member *m = jv_first(jv_get(wanted, "tools")); m; m = m->next) {
		if (args_has(&cli->args, "none"))
			break;
		one = jv_object(arena);
		jv_set_str(arena, one, "tool_name", jv_get_str(m->value, "tool_name"));
		jv_set_str(arena, one, "mode",
			   args_has(&cli->args, "always") ? STR("allow_always") : STR("allow_once"));
		jv_push(arena, list, one);
	}
	jv_set(arena, fields, "approvals", list);
	r = board_approval_answer(cli->ws, &cli->ctx, ref_of(cli), fields, &item, err);
	if (r == 0)
		print_item(cli, item);
	return r;
}

/* --- files --- */

struct out_file {
	struct cli *cli;
	int fd; /* -1: standard output */
};

static int push_out(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct out_file *out = arg;
	const char *at = bytes;

	if (out->fd < 0) {
		output_add(&out->cli->out, str_n(bytes, len));
		return 0;
	}
	while (len) {
		ssize_t n = write(out->fd, at, len);

		if (n < 0)
			return err_sys(err, errno, "the file cannot be written");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int run_board_get(struct cli *cli, struct err *err)
{
	struct out_file out = {.cli = cli, .fd = -1};
	struct sink sink = {.push = push_out, .arg = &out};
	bool to_file = cli->args.operand_count > 2;
	struct store *task;
	struct wpath path;
	int r = board_task_path(cli->ctx.arena, cli->args.operands[1], &path, err);

	if (r == 0)
		r = board_task_open(cli->ws, &cli->ctx, ref_of(cli), &task, err);
	if (r)
		return r;
	if (to_file) {
		out.fd = open(arena_cstr(cli->ctx.arena, cli->args.operands[2]),
			      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (out.fd < 0)
			r = err_sys(err, errno, "%.*s cannot be created", STR_ARG(cli->args.operands[2]));
	}
	if (r == 0)
		r = store_read_stream(task, &cli->ctx, path, STORE_WHOLE, &sink, NULL, err);
	if (out.fd >= 0 && close(out.fd) != 0 && r == 0)
		r = err_sys(err, errno, "%.*s cannot be written", STR_ARG(cli->args.operands[2]));
	store_destroy(task);
	return r;
}

static int pull_file(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	ssize_t n = read(*(int *)arg, buf, cap);

	if (n < 0)
		return err_sys(err, errno, "the file cannot be read");
	*ret_len = (size_t)n;
	return 0;
}

static int rewind_file(void *arg, struct err *err)
{
	return lseek(*(int *)arg, 0, SEEK_SET) == 0 ? 0 : err_sys(err, errno, "the file cannot be read again");
}

static int run_board_put(struct cli *cli, struct err *err)
{
	struct str file = cli->args.operands[1], name;
	struct source source = {.pull = pull_file, .rewind = rewind_file};
	struct store *task;
	struct wpath path;
	int fd, r;

	name = str_from(file, str_rfind_char(file, '/') == file.len ? 0 : str_rfind_char(file, '/') + 1);
	r = board_task_path(cli->ctx.arena, cli->args.operand_count > 2 ? cli->args.operands[2] : name, &path, err);
	if (r)
		return r;
	fd = open(arena_cstr(cli->ctx.arena, file), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "%.*s cannot be opened", STR_ARG(file));
	source.arg = &fd;
	r = board_task_open(cli->ws, &cli->ctx, ref_of(cli), &task, err);
	if (r == 0) {
		r = store_write_stream(task, &cli->ctx, path, &source, (struct store_cond){0}, NULL, err);
		store_destroy(task);
	}
	close(fd);
	if (r == 0)
		output_printf(&cli->out, "/task/%.*s\n", STR_ARG(path.s));
	return r;
}

static const struct action actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_board_list},
	{"boards", NULL, .opens = CLI_READS, .run = run_board_boards},
	{"create", "TITLE", .opens = CLI_WRITES, .run = run_board_create},
	{"show", "ITEM", .opens = CLI_READS, .run = run_board_show},
	{"set", "ITEM", .opens = CLI_WRITES, .run = run_board_set},
	{"complete", "ITEM", .opens = CLI_WRITES, .run = run_board_complete},
	{"assign", "ITEM THREAD", .opens = CLI_WRITES, .run = run_board_assign},
	{"archive", "ITEM", .opens = CLI_WRITES, .run = run_board_archive},
	{"unarchive", "ITEM", .opens = CLI_WRITES, .run = run_board_unarchive},
	{"comment", "ITEM TEXT", .opens = CLI_WRITES, .run = run_board_comment},
	{"comments", "ITEM", .opens = CLI_READS, .run = run_board_comments},
	{"answer", "ITEM TEXT", .opens = CLI_WRITES, .run = run_board_answer},
	{"approve", "ITEM", .opens = CLI_WRITES, .run = run_board_approve},
	{"journal", "ITEM", .tool = "read_journal", .args = "item board=--board whole=--all"},
	{"files", "ITEM [PATH]", .tool = "item_ls", .args = "item path board=--board"},
	{"get", "ITEM PATH [FILE]", .opens = CLI_READS, .run = run_board_get},
	{"put", "ITEM FILE [PATH]", .opens = CLI_WRITES, .run = run_board_put},
	{"threads", NULL, .tool = "list_threads", .args = "board=--board"},
	{"notices", NULL, .tool = "list_notices", .args = "board=--board limit=--limit"},
	{0},
};

static const struct option options[] = {
	{"board", 'b', "NAME", .help = "the board (default: main)"},
	{"status", 0, "STATUS", .help = "list: only items with this status; set: the new status",
	 .words = "pending available claimed in_progress completed blocked needs_clarification rejected failed "
		  "cancelled "
		  "waiting_for_children"},
	{"archived", 0, NULL, .help = "list: only archived items"},
	{"scheduled", 0, NULL, .help = "list: only items that are not on the board yet"},
	{"at", 0, "TIME", .help = "create: when it appears on the board, such as 2026-11-30T09:00:00Z"},
	{"overlap", 0, "HOW",
	 .help = "create, with --every: parallel (default), or skip: no new item while the previous one is open"},
	{"every", 0, "SECONDS", .help = "create, with --at: create another one at this interval", .min = 60,
	 .max = 31536000},
	{"limit", 'n', "N", .help = "list, comments, notices: at most N (default: 100)", .min = 1, .max = 10000},
	{"title", 0, "TEXT", .help = "set: the new title"},
	{"description", 'd', "TEXT", .help = "create, set: the brief; assign: what the lane should do"},
	{"priority", 0, "WORD", .help = "create, set: how urgent it is", .words = "urgent high neutral low"},
	{"parent", 0, "ITEM", .help = "create: the item that it is part of"},
	{"mount", 0, "PATH=URL",
	 .help = "create, set: show the store at URL under /task, read-only; writable with \",rw\""},
	{"check", 0, "PATH|JSON", .help = "create, set: a file that must exist at the end, or a check as JSON"},
	{"summary", 0, "TEXT", .help = "complete, set: what was achieved, at least 30 characters"},
	{"artifact", 0, "PATH", .help = "complete: a file of the task that is a result; may be repeated"},
	{"role", 0, "ROLE", .help = "assign: the role of the lane (default: executor)",
	 .words = "executor reviewer specialist_reviewer approver observer coordinator"},
	{"always", 0, NULL, .help = "approve: later calls too"},
	{"none", 0, NULL, .help = "approve: refuse the request"},
	{"all", 0, NULL, .help = "journal: all of it, not only its end"},
	{0},
};

const struct command board_commands[] = {
	{"board", "task boards: items, their files and deliverables", TOPIC_HOME, .actions = actions,
	 .options = options,
	 .about = "Lists the items of a task board, newest first. ITEM is an id, a key such as\n"
		  "TASK-1865372918462054912, or the last digits of the id. Every item has its own files, which its\n"
		  "agents see as /task: results in artifacts/, files from people in uploads/, files for the next\n"
		  "lane in handoff/. An item can be completed only when all artifacts exist and its checks pass.\n"
		  "'archive' frees the space that its files use; 'unarchive' brings them back. The limits are in\n"
		  "agent.yaml, under boards.\n",
	 .examples =
		 "stead board\n  all items\n"
		 "stead board create 'Compare the drafts' -d 'Say which one is better.' --check artifacts/report.md\n"
		 "  a new item that needs a report\n"
		 "stead board put 482913 report.md artifacts/report.md\n  give it a file\n"
		 "stead board complete 482913 --artifact artifacts/report.md --summary 'The second draft is better; "
		 "see the report.'\n"
		 "  checked and completed\n"},
	{0},
};

/* --- doctor --- */

void board_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct board_list list = {.limit = SIZE_MAX};
	struct jv *boards, *page;
	struct err err;

	if (store_stat(workspace_home(ws), ctx, (struct wpath){STR("boards")}, NULL, &err) != 0)
		return;
	if (board_all(ws, ctx, &boards, &err) != 0) {
		finding_error(findings, "boards", &err, "correct the file, or restore it: stead restore");
		return;
	}
	for (const struct jv_member *m = jv_first(boards); m; m = m->next) {
		struct str name = jv_get_str(m->value, "id");

		list.board = name;
		if (board_item_list(ws, ctx, &list, &page, &err) != 0)
			finding_error(findings, "boards", &err, "correct the record, or restore it: stead restore");
		else
			finding_add(findings, "boards",
				    arena_printf(ctx->arena, "%.*s: %.*s", STR_ARG(name),
						 STR_ARG(value_count(ctx->arena, page, "total", "item"))),
				    NULL);
	}
}
