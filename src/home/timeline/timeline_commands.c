/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past for people and scripts: history, restore, undo, redo, checkpoint, watch, fork, merge, drop, gc. The answers
 * are the values that the tools give; history and watch print them in columns, without the limits that the context of a
 * model needs.
 */
#include "home/timeline/timeline_commands.h"

#include <poll.h>
#include <signal.h>

#include "base/limits.h"
#include "command/cli.h"
#include "home/timeline/history.h"
#include "home/timeline/history_tools.h"
#include "sandbox/snapshot.h"
#include "tool/call.h"
#include "workspace/fork.h"
#include "workspace/gc.h"
#include "workspace/workspace_parts.h"

#define PAGE          1000
#define WATCH_WAIT_MS 1000

/* The revision that an option names; *ret_given is false when the option is not given. */
static int option_rev(struct cli *cli, const char *option, uint64_t *ret, bool *ret_given, struct err *err)
{
	*ret_given = args_has(&cli->args, option);
	return *ret_given ? past_revision(cli->ws, &cli->ctx, args_get(&cli->args, option), ret, err) : 0;
}

/* --- history --- */

static struct str who_of(const struct jv *r)
{
	static const char *const keys[] = {"user", "agent", "session"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct str name = jv_get_str(jv_get(r, "actor"), keys[i]);

		if (name.len)
			return name;
	}
	return STR("-");
}

static struct str size_change(struct arena *arena, const struct jv *r)
{
	const struct jv *before = jv_get(r, "before"), *after = jv_get(r, "after");

	return arena_printf(arena, "%+lld", (long long)(jv_get_int(after, "size", 0) - jv_get_int(before, "size", 0)));
}

/* One line: revision, time, who, operation, change of size, path. */
static void print_revision(struct cli *cli, struct arena *arena, const struct jv *r, bool with_call)
{
	struct output *out = &cli->out;
	struct str from = jv_get_str(r, "from"), to = jv_get_str(r, "to"),
		   call = jv_get_str(jv_get(r, "actor"), "call");

	output_add(out, output_tone(out, TONE_NUMBER));
	output_printf(out, "%6lld", (long long)jv_get_int(r, "revision", 0));
	output_add(out, output_tone(out, TONE_PLAIN));
	output_printf(out, "  %.*s  %-12.*s  %-7.*s  %8.*s  ", STR_ARG(jv_get_str(r, "time")), STR_ARG(who_of(r)),
		      STR_ARG(jv_get_str(r, "operation")), STR_ARG(size_change(arena, r)));
	output_add(out, output_tone(out, TONE_PATH));
	output_add(out, jv_get_str(r, "path"));
	output_add(out, output_tone(out, TONE_PLAIN));
	if (from.len)
		output_printf(out, " (from %.*s)", STR_ARG(from));
	if (to.len)
		output_printf(out, " (to %.*s)", STR_ARG(to));
	if (!from.len && !to.len && jv_is_null(jv_get(r, "after")))
		output_add(out, STR(" (removed)"));
	if (with_call && call.len)
		output_printf(out, "  [call %.*s]", STR_ARG(call));
	output_add(out, STR("\n"));
}

static int history_request(struct cli *cli, struct history_req *req, struct err *err)
{
	bool since, until;
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		r = cli_path(cli, args_operand(&cli->args, 0), &req->path, err);
	if (r == 0)
		r = option_rev(cli, "since", &req->since, &since, err);
	if (r == 0)
		r = option_rev(cli, "until", &req->until, &until, err);
	if (r == 0 && until && req->until == 0)
		return err_set(err, ERR_INVALID, "history: nothing is recorded up to revision 0; the first is 1");
	req->agent = args_get(&cli->args, "agent");
	req->session = args_get(&cli->args, "session");
	req->call_id = args_get(&cli->args, "call");
	return r;
}

static void print_page(struct cli *cli, struct arena *arena, const struct jv *list, uint64_t *printed)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct buf text;

		if (!cli->json) {
			print_revision(cli, arena, m->value, args_has(&cli->args, "long"));
		} else {
			buf_init(&text, arena, MIB);
			jv_write(&text, m->value);
			output_add(&cli->out, *printed ? STR(",\n  ") : STR("\n  "));
			output_add(&cli->out, buf_str(&text));
		}
		++*printed;
	}
}

static int run_history(struct cli *cli, struct err *err)
{
	struct history_req req = {0};
	uint64_t limit = args_number(&cli->args, "limit", UINT64_MAX), printed = 0;
	bool more = true;
	int r = history_request(cli, &req, err);

	if (r)
		return r;
	if (cli->json)
		output_add(&cli->out, STR("["));
	while (r == 0 && more && printed < limit && !cli->out.gone) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = cli->ctx;
		struct jv *v;

		ctx.arena = arena;
		req.limit = limit - printed < PAGE ? (size_t)(limit - printed) : PAGE;
		r = history_list(cli->ws, &ctx, &req, &v, err);
		if (r)
			break;
		print_page(cli, arena, jv_get(v, "revisions"), &printed);
		more = jv_get_bool(v, "more", false);
		req.until = (uint64_t)jv_get_int(v, "next", 0);
		req.as_known = true;
	}
	if (cli->json)
		output_add(&cli->out, printed ? STR("\n]\n") : STR("]\n"));
	else if (r == 0 && !printed && cli->out.to_terminal)
		output_add(&cli->out, STR("no such change is known\n"));
	return r;
}

/* --- restore, undo, checkpoint --- */

static int run_restore(struct cli *cli, struct err *err)
{
	struct wpath path;
	struct jv *value;
	uint64_t number;
	bool has_rev;
	int r = past_path_at(cli->ws, &cli->ctx, cli->args.operands[0], &path, &number, &has_rev, err);

	if (r == 0 && !has_rev)
		return err_set(err, ERR_INVALID, "restore: say which revision, as in %.*s@12; history lists them",
			       STR_ARG(utf8_first(cli->args.operands[0], 200)));
	if (r == 0)
		r = history_restore(cli->ws, &cli->ctx, path, number, &value, err);
	if (r == 0)
		cli_print(cli, "restore", value);
	return r;
}

static int take_back(struct cli *cli, const struct undo_req *req, struct err *err)
{
	struct jv *value = NULL;
	int r = history_undo(cli->ws, &cli->ctx, req, &value, err);

	if (r == 0) {
		cli_print(cli, "undo", value);
	} else if (value) {
		cli->detail = undo_conflicts_text(cli->ctx.arena, value);
		cli_json(cli, value);
	}
	return r;
}

static int run_undo(struct cli *cli, struct err *err)
{
	struct undo_req req = {.call_id = args_get(&cli->args, "call"),
			       .session = args_get(&cli->args, "session"),
			       .actor = args_get(&cli->args, "actor"),
			       .dry_run = args_has(&cli->args, "dry-run"),
			       .by_person = true};
	int chosen = args_has(&cli->args, "call") + args_has(&cli->args, "session") + args_has(&cli->args, "actor") +
		     args_has(&cli->args, "since");
	int r;

	if (chosen > 1)
		return err_set(
			err, ERR_INVALID,
			"undo: give only one of --since, --call, --session and --actor, or none for the last call");
	r = cli_open(cli, CLI_READS, err);
	if (r == 0)
		r = option_rev(cli, "since", &req.since, &req.has_since, err);
	if (r)
		return r;
	cli->ctx.actor.session = STR_NONE; /* --session says whose changes go, not who takes them back */
	return take_back(cli, &req, err);
}

static int run_redo(struct cli *cli, struct err *err)
{
	struct undo_req req = {.redo = true, .dry_run = args_has(&cli->args, "dry-run"), .by_person = true};

	return take_back(cli, &req, err);
}

static int run_checkpoint(struct cli *cli, struct err *err)
{
	bool names = cli->args.operand_count;
	struct jv *value;
	int r = names ? history_checkpoint(cli->ws, &cli->ctx, cli->args.operands[0], &value, err)
		      : history_checkpoints(cli->ws, &cli->ctx, &value, err);

	if (r == 0 && names)
		cli_print(cli, "checkpoint", value);
	else if (r == 0)
		cli_print_list(cli, "checkpoint", "checkpoints", value);
	return r;
}

/* --- watch --- */

static struct cancel watch_cancel;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&watch_cancel.requested, true);
}

/* Also notices that the reader went away while nothing changes. */
static bool has_reader(const struct output *out)
{
	struct pollfd fd = {.fd = out->fd};

	return !out->gone && !(poll(&fd, 1, 0) == 1 && fd.revents & (POLLERR | POLLNVAL));
}

static int watch_once(struct cli *cli, struct wpath path, bool wait, uint64_t *since, bool *ret_more, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = cli->ctx;
	struct jv *v;
	int r;

	ctx.arena = arena;
	r = history_changes(cli->ws, &ctx, *since, path, wait ? WATCH_WAIT_MS : 0, PAGE, &v, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(v, "changes")); m; m = m->next) {
		if (cli->json)
			output_json_line(&cli->out, arena, m->value);
		else
			print_revision(cli, arena, m->value, false);
	}
	output_flush(&cli->out);
	*since = (uint64_t)jv_get_int(v, "next", 0);
	*ret_more = jv_get_bool(v, "more", false);
	return 0;
}

static int run_watch(struct cli *cli, struct err *err)
{
	bool once = args_has(&cli->args, "once"), given, more = true;
	struct sigaction action = {.sa_handler = on_signal};
	struct wpath path;
	uint64_t since = 0;
	int r = cli_open(cli, CLI_READS, err);

	if (r == 0)
		r = cli_path(cli, args_operand(&cli->args, 0), &path, err);
	if (r == 0)
		r = option_rev(cli, "since", &since, &given, err);
	if (r == 0)
		r = history_notice(cli->ws, &cli->ctx, path, err);
	if (r == 0 && !given && !once)
		r = past_revision(cli->ws, &cli->ctx, STR("head"), &since, err);
	if (r)
		return r;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	cli->ctx.cancel = &watch_cancel;
	while (r == 0 && (!once || more) && has_reader(&cli->out))
		r = watch_once(cli, path, !once, &since, &more, err);
	return r == -ERR_CANCELLED ? 0 : r; /* a signal is how a watch ends */
}

/* --- fork, merge, drop --- */

static int run_fork(struct cli *cli, struct err *err)
{
	uint64_t number = FORK_AT_HEAD;
	struct jv *made;
	bool given;
	int r = option_rev(cli, "at", &number, &given, err);

	if (r == 0)
		r = fork_create(cli->ws, &cli->ctx, cli->args.operands[0], number, &made, err);
	if (r == 0)
		cli_print(cli, "fork", made);
	return r;
}

static int run_merge(struct cli *cli, struct err *err)
{
	struct str prefer = args_get(&cli->args, "prefer");
	struct merge_req req = {.name = cli->args.operands[0],
				.dry_run = args_has(&cli->args, "dry-run"),
				.partial = args_has(&cli->args, "partial"),
				.prefer = str_is(prefer, "ours")     ? MERGE_OURS
					  : str_is(prefer, "theirs") ? MERGE_THEIRS
								     : MERGE_NEITHER};
	size_t count = cli->args.operand_count - 1;
	struct wpath *paths = ARENA_ARRAY(cli->ctx.arena, struct wpath, count + 1);
	struct jv *report = NULL;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = cli_path(cli, cli->args.operands[i + 1], &paths[i], err);
	if (r)
		return r;
	req.paths = count ? paths : NULL;
	req.path_count = count;
	r = fork_merge(cli->ws, &cli->ctx, &req, &report, err);
	if (!report)
		return r;
	cli_print(cli, "merge", report);
	if (!cli->json && jv_get_bool(report, "applied", false) && jv_count(jv_get(report, "merged")))
		output_printf(&cli->out, "to take it back: stead undo --call %.*s\n",
			      STR_ARG(jv_get_str(report, "call")));
	if (r == 0 && jv_count(jv_get(report, "conflicts")))
		cli->status = exit_code_of(ERR_CONFLICT);
	return cli_hint(cli, r, ERR_CONFLICT,
			"--partial merges the other files; --prefer ours or theirs settles the conflicts");
}

static int run_drop(struct cli *cli, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < cli->args.operand_count && r == 0; i++) {
		r = fork_drop(cli->ws, &cli->ctx, cli->args.operands[i], err);
		if (r == 0 && !cli->json)
			output_printf(&cli->out, "removed the fork '%.*s'\n", STR_ARG(cli->args.operands[i]));
	}
	return r;
}

/* --- gc --- */

/* What a process that was killed while it kept a sandbox has left. */
static int sweep_sandboxes(struct cli *cli, struct jv *report, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct wpath dir = {arena_printf(arena, "%.*s/" SNAPSHOTS_DIR, STR_ARG(workspace_name(cli->ws)))};
	uint64_t freed;
	int r = snapshots_sweep(workspace_store_of(cli->ws, true), &cli->ctx, dir, &freed, err);

	if (r == 0)
		jv_set_int(arena, report, "freed", jv_get_int(report, "freed", 0) + (int64_t)freed);
	return r;
}

static void say_kept(struct cli *cli, const struct jv *report, bool dry_run)
{
	struct arena *arena = cli->ctx.arena;
	int64_t dropped = jv_get_int(report, "dropped", 0), first = jv_get_int(report, "first", 0);
	int64_t head = jv_get_int(report, "head", 0);

	output_printf(&cli->out, "%s %lld revision%s and %.*s\n", dry_run ? "would free" : "freed", (long long)dropped,
		      plural((uint64_t)dropped), STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "freed", 0))));
	if (head < first)
		output_printf(&cli->out, "kept: no revisions, because nothing was changed yet\n");
	else
		output_printf(&cli->out, "kept: revisions %lld to %lld, %.*s\n", (long long)first, (long long)head,
			      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "bytes", 0))));
}

static int run_gc(struct cli *cli, struct err *err)
{
	bool dry_run = args_has(&cli->args, "dry-run");
	struct arena *arena = cli->ctx.arena;
	const struct jv *held;
	struct jv *report;
	int r = gc_run(cli->ws, &cli->ctx, dry_run, &report, err);

	if (r == 0 && !dry_run)
		r = sweep_sandboxes(cli, report, err);
	if (r || cli_json(cli, report))
		return r;
	say_kept(cli, report, dry_run);
	if (jv_get_int(report, "waiting", 0))
		output_printf(&cli->out, "another %.*s can be freed once it is a minute old\n",
			      STR_ARG(output_size(arena, (uint64_t)jv_get_int(report, "waiting", 0))));
	held = jv_get(report, "held");
	if (held && jv_get_str(held, "checkpoint").len)
		output_printf(&cli->out, "more is kept because of checkpoint '%.*s' at revision %lld\n",
			      STR_ARG(jv_get_str(held, "checkpoint")), (long long)jv_get_int(held, "revision", 0));
	else if (held)
		output_printf(&cli->out, "more is kept because of a fork at revision %lld\n",
			      (long long)jv_get_int(held, "revision", 0));
	return 0;
}

static const struct option history_options[] = {
	{"since", 0, "REV", .help = "only changes after this revision"},
	{"until", 0, "REV", .help = "only changes up to this revision"},
	{"call", 0, "ID", .help = "only changes made by this call"},
	{"limit", 'n', "N", .help = "at most N changes", .max = UINT32_MAX},
	{"long", 'l', .help = "also print the call, for 'stead undo --call'"},
	{0},
};
static const struct option undo_options[] = {
	{"since", 0, "REV", .help = "all changes after this revision"},
	{"call", 0, "ID", .help = "the changes made by this call (see 'stead history -l')"},
	{"actor", 0, "NAME", .help = "the changes made by this user or agent"},
	{"dry-run", 'n', .help = "show what would be undone, and change nothing"},
	{0},
};
static const struct option redo_options[] = {
	{"dry-run", 'n', .help = "show what would be redone, and change nothing"},
	{0},
};
static const struct option watch_options[] = {
	{"since", 0, "REV", .help = "start after this revision (default: with the next change)"},
	{"once", .help = "print the existing changes, and exit"},
	{0},
};
static const struct option fork_options[] = {
	{"at", 0, "REV", .help = "as it was at this revision: a number or a checkpoint (default: now)"},
	{0},
};
static const struct option merge_options[] = {
	{"dry-run", 'n', .help = "show the changes without making them"},
	{"prefer", 0, "SIDE", .help = "settle conflicts: ours keeps this workspace's file, theirs takes the fork's",
	 .words = "ours theirs"},
	{"partial", .help = "merge the files that do not conflict, even if others do"},
	{0},
};
static const struct option gc_options[] = {
	{"dry-run", 'n', .help = "show what would be removed, and remove nothing"},
	{0},
};

const struct command timeline_commands[] = {
	{"history", "list changes, newest first", TOPIC_HISTORY, "[PATH]", .run = run_history,
	 .complete = COMPLETE_PATH, .options = history_options,
	 .about = "Prints revision, time, author, operation, change in size, and path for every change to a file,\n"
		  "or to all files under a directory. Changes by other programs have the operation 'outside'.\n"
		  "--session and --agent show only their changes. With --json, prints an array with one object per\n"
		  "change.\n",
	 .examples = "stead history notes.md\n  what happened to a file\n"
		     "stead history -n 20\n  the last 20 changes\n"
		     "stead history --json --since before-refactor | jq -r '.[].path'\n"
		     "  paths that changed after a checkpoint\n"},
	{"diff", "show the differences between revisions", TOPIC_HISTORY, "[PATH] [REV..REV|FORK]", .opens = CLI_READS,
	 .run = run_diff, .complete = COMPLETE_PATH, .options = diff_options,
	 .about = "Prints unified diffs of a file, or of all files under a directory. REV is a revision number, a\n"
		  "checkpoint or 'head'; a single REV is compared with the current state; 0 is before everything.\n"
		  "Without REV, shows the last change, to PATH or to anything. The name of a fork of this workspace\n"
		  "shows what the fork changed; a PATH may follow it.\n",
	 .examples = "stead diff 12\n  what changed since revision 12\n"
		     "stead diff notes.md\n  the last change to a file\n"
		     "stead diff notes.md 3..7\n  one file, between two revisions\n"
		     "stead diff 12..head > changes.patch\n  for patch -p0\n"
		     "stead diff try-it\n  what a fork would bring\n"},
	{"restore", "bring back a file or directory as it was", TOPIC_HISTORY, "PATH@REV", .by_person = true,
	 .opens = CLI_READS, .run = run_restore, .complete = COMPLETE_PATH,
	 .about = "Removes what did not exist at that revision. A restore is a change like any other, so 'stead\n"
		  "undo' takes it back.\n",
	 .examples = "stead restore notes.md@12\n  a file\nstead restore drafts@before-refactor\n"
		     "  a directory, as it was at a checkpoint\nstead restore @12\n  everything\n"},
	{"undo", "take back changes", TOPIC_HISTORY, .by_person = true, .run = run_undo, .options = undo_options,
	 .about = "Takes back the last call, whatever it changed: files, a fact, a note. Run it again to take back\n"
		  "the call before; 'stead redo' goes forward again. An option (including --session) chooses other\n"
		  "changes to files. If someone else has changed one of the files since, nothing is undone, the\n"
		  "difference is shown, and the exit code is 5.\n",
	 .examples = "stead undo\n  the last call\n"
		     "stead undo --since 12 --dry-run\n  what a return to revision 12 would change\n"
		     "stead undo --session s-42\n  everything that a session did\n"},
	{"redo", "make undone changes again", TOPIC_HISTORY, .by_person = true, .opens = CLI_READS, .run = run_redo,
	 .options = redo_options,
	 .about = "Takes back the last undo; run it again to take back the one before. After any other change there\n"
		  "is nothing left to redo, but 'stead history' and 'stead restore' still reach what was undone.\n",
	 .examples = "stead undo && stead redo\n  as if nothing had happened\n"},
	{"checkpoint", "name the current state", TOPIC_HISTORY, "[NAME]", .opens = CLI_READS, .run = run_checkpoint,
	 .about = "You can use the name wherever a revision is expected; using a name again moves it. Without a\n"
		  "name, lists the checkpoints.\n",
	 .examples = "stead checkpoint before-refactor\n  name the state\nstead checkpoint\n  list the names\n"},
	{"watch", "follow changes as they are made", TOPIC_HISTORY, "[PATH]", .run = run_watch,
	 .complete = COMPLETE_PATH, .options = watch_options,
	 .about = "Prints one line for each change by any process, until you interrupt it; with --json, one object\n"
		  "per line. To continue without gaps or repeats, give --since the last revision printed. --once\n"
		  "without --since prints all changes in the history.\n",
	 .examples = "stead watch\n  start with the next change\n"
		     "stead watch notes --since 12 --once --json\n  what changed since, for a script\n"},
	{"fork", "create a workspace that starts as a copy of this one", TOPIC_HISTORY, "NEW", .opens = CLI_READS,
	 .run = run_fork, .options = fork_options,
	 .about = "The new workspace has everything that this one has (with --at: had). Nothing is copied, so it\n"
		  "takes the same time whatever the size. Changes in one do not show in the other. 'stead merge'\n"
		  "brings the fork's changes back.\n",
	 .examples = "stead fork try-it\n  a place to try something\n"
		     "stead -w try-it edit plan.md 'in June' 'in May'\n  work there\n"
		     "stead merge try-it\n  keep it\n"
		     "stead fork -w research old --at 120\n  the workspace as it was at revision 120\n"},
	{"merge", "merge a fork's changes into this workspace", TOPIC_HISTORY, "FORK [PATH...]", .by_person = true,
	 .opens = CLI_READS, .run = run_merge, .complete = COMPLETE_WORKSPACE, .options = merge_options,
	 .about = "Merges the fork's changes into the workspace that was forked, text line by line. If both changed\n"
		  "a file in the same place, that is a conflict: both sides are shown, and nothing is merged (with\n"
		  "--partial, the other files are). To resolve a conflict, edit the file in this workspace and\n"
		  "merge with --prefer ours. The fork stays as it is; merging it again brings only what is new. If\n"
		  "you give paths, only these files and directories are merged; you can merge the rest later.\n"
		  "'stead undo' takes back a whole merge. The exit code is 5 if there are conflicts.\n",
	 .examples = "stead merge try-it --dry-run\n  what would change\nstead merge try-it\n  bring it back\n"
		     "stead merge try-it --json | jq '.conflicts[].path'\n  conflicts, for a script\n"},
	{"drop", "remove a fork and its changes", TOPIC_HISTORY, "FORK...", .by_person = true, .opens = CLI_READS,
	 .run = run_drop, .complete = COMPLETE_WORKSPACE,
	 .about = "Removes forks of this workspace and all their changes that were not merged. This cannot be\n"
		  "undone. Workspaces that are not forks are never removed.\n",
	 .examples = "stead drop try-it\n  a fork that is no longer needed\n"},
	{"gc", "remove history beyond the limits of agent.yaml", TOPIC_HISTORY, .opens = CLI_READS, .run = run_gc,
	 .options = gc_options,
	 .about = "'history' in agent.yaml says how much is kept: revisions, age_days and bytes. The oldest\n"
		  "revisions beyond that are removed, except those that a checkpoint or a fork needs; the files\n"
		  "themselves are never touched. This also runs automatically, at most once an hour. Others may\n"
		  "write at the same time.\n",
	 .examples = "stead gc --dry-run\n  what would be removed\nstead gc --json | jq .freed\n"
		     "  remove it, and print how many bytes were freed\n"},
	{0},
};
