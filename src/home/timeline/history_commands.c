/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past for people and scripts: history, diff, restore, undo, checkpoint, watch. The answers are those of
 * home/history.h, the same that the tools give; here they are printed, without the bounds that a model's conversation
 * needs. A script gets JSON, a terminal colours and differences by words.
 */
#include <poll.h>
#include <signal.h>

#include "base/limits.h"
#include "command/cli.h"
#include "home/timeline/history.h"
#include "home/timeline/history_tools.h"
#include "text/diff.h"

#define PAGE          1000
#define WATCH_WAIT_MS 1000

/* The revision that an option names; *ret_given false when it is not there. */
static int option_rev(struct cli *cli, enum option_id id, uint64_t *ret, bool *ret_given, struct err *err)
{
	*ret_given = args_has(&cli->args, id);
	return *ret_given ? past_revision(cli->ws, &cli->ctx, args_get(&cli->args, id), ret, err) : 0;
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
static void print_revision(struct cli *cli, struct arena *arena, const struct jv *r)
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
	if (args_has(&cli->args, OPT_LONG) && call.len)
		output_printf(out, "  [call %.*s]", STR_ARG(call));
	output_add(out, STR("\n"));
}

static int history_request(struct cli *cli, struct history_req *req, struct err *err)
{
	bool since, until;
	int r = cli_path(cli, cli->args.operand_count ? cli->args.operands[0] : STR(""), &req->path, err);

	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r == 0)
		r = option_rev(cli, OPT_SINCE, &req->since, &since, err);
	if (r == 0)
		r = option_rev(cli, OPT_UNTIL, &req->until, &until, err);
	if (r == 0 && until && req->until == 0)
		return err_set(err, ERR_INVALID, "history: nothing is recorded up to revision 0; the first is 1");
	if (args_has(&cli->args, OPT_AGENT))
		req->agent = args_get(&cli->args, OPT_AGENT);
	req->session = args_get(&cli->args, OPT_SESSION);
	req->call_id = args_get(&cli->args, OPT_CALL);
	return r;
}

static void print_page(struct cli *cli, struct arena *arena, const struct jv *list, uint64_t *printed)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct buf text;

		if (!cli->json) {
			print_revision(cli, arena, m->value);
		} else {
			buf_init(&text, arena, MIB);
			jv_write(&text, m->value);
			output_add(&cli->out, *printed ? STR(",\n  ") : STR("\n  "));
			output_add(&cli->out, buf_str(&text));
		}
		++*printed;
	}
}

int run_history(struct cli *cli, struct err *err)
{
	struct history_req req = {0};
	uint64_t limit, printed = 0;
	bool more = true;
	int r = args_number(&cli->args, OPT_LIMIT, UINT32_MAX, UINT64_MAX, &limit, err);

	if (r == 0)
		r = history_request(cli, &req, err);
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
	return r;
}

/* --- diff --- */

/* "REV..REV", "REV.." and "REV" (up to now), "..REV" (from the beginning). */
static int parse_range(struct cli *cli, struct str text, uint64_t *ret_from, uint64_t *ret_to, bool *ret_now,
		       struct err *err)
{
	size_t dots = str_find(text, STR(".."), 0);
	struct str from = str_first(text, dots), to = dots == SIZE_MAX ? STR("") : str_from(text, dots + 2);
	int r = 0;

	*ret_from = 0;
	*ret_now = to.len == 0;
	if (from.len || dots == SIZE_MAX)
		r = past_revision(cli->ws, &cli->ctx, from, ret_from, err);
	if (r == 0 && to.len)
		r = past_revision(cli->ws, &cli->ctx, to, ret_to, err);
	return r;
}

static enum tone tone_of_line(struct str line)
{
	if (str_starts(line, STR("@@ ")))
		return TONE_PATH;
	if (str_starts(line, STR("--- ")) || str_starts(line, STR("+++ ")))
		return TONE_BOLD;
	return line.ptr[0] == '-' ? TONE_BAD : line.ptr[0] == '+' ? TONE_GOOD : TONE_PLAIN;
}

static void print_colored(struct output *out, struct str diff)
{
	struct str line;

	while (diff.len && str_cut(&diff, '\n', &line)) {
		enum tone tone = line.len ? tone_of_line(line) : TONE_PLAIN;

		if (tone != TONE_PLAIN)
			output_add(out, output_tone(out, tone));
		output_add(out, line);
		if (tone != TONE_PLAIN)
			output_add(out, output_tone(out, TONE_PLAIN));
		output_add(out, STR("\n"));
	}
}

static void print_words(struct output *out, struct str diff)
{
	static const struct diff_marks plain = {"[-", "-]", "{+", "+}"};
	static const struct diff_marks colored = {"\033[31m", "\033[0m", "\033[32m", "\033[0m"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct buf text;

	buf_init(&text, arena, SIZE_MAX / 4);
	diff_by_words(arena, diff, out->color ? &colored : &plain, &text);
	output_add(out, buf_str(&text));
}

struct diff_printer {
	struct cli *cli;
	bool words;
	struct jv *files; /* NULL: not for JSON */
};

static int print_file(void *arg, const struct jv *file, struct err *err)
{
	struct diff_printer *p = arg;
	struct output *out = &p->cli->out;
	struct str diff = jv_get_str(file, "diff");

	(void)err;
	if (p->files) {
		struct arena *arena = p->cli->ctx.arena;
		struct jv *one = jv_object(arena);

		for (const struct jv_member *m = jv_first(file); m; m = m->next)
			jv_set_str(arena, one, arena_cstr(arena, m->key), arena_str(arena, jv_str_of(m->value)));
		jv_push(arena, p->files, one);
	} else if (!diff.len) {
		output_printf(out, "%.*s: %.*s\n", STR_ARG(jv_get_str(file, "path")),
			      STR_ARG(jv_get_str(file, "change")));
	} else if (p->words) {
		print_words(out, diff);
	} else if (out->color) {
		print_colored(out, diff);
	} else {
		output_add(out, diff);
	}
	return out->gone;
}

/* The revisions stand last; first is fine too, as long as only one of the two can be meant. */
static int diff_operands(struct cli *cli, struct wpath *ret_path, uint64_t *from, uint64_t *to, bool *now,
			 struct err *err)
{
	size_t last = cli->args.operand_count - 1;
	struct str path = last ? cli->args.operands[0] : STR("");
	struct err ignored;
	int r = parse_range(cli, cli->args.operands[last], from, to, now, err);

	if (r == -ERR_NOT_FOUND && last && parse_range(cli, path, from, to, now, &ignored) == 0) {
		path = cli->args.operands[last];
		r = 0;
	}
	return r ? r : cli_path(cli, path, ret_path, err);
}

int run_diff(struct cli *cli, struct err *err)
{
	struct diff_printer p = {.cli = cli, .files = cli->json ? jv_array(cli->ctx.arena) : NULL};
	struct wpath path;
	uint64_t from, to;
	bool now;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = diff_operands(cli, &path, &from, &to, &now, err);
	if (r == 0 && now)
		r = history_notice(cli->ws, &cli->ctx, path, err);
	if (r == 0 && now)
		r = past_revision(cli->ws, &cli->ctx, STR("head"), &to, err);
	p.words = args_has(&cli->args, OPT_WORDS) || (cli->out.to_terminal && !args_has(&cli->args, OPT_LINES));
	if (r == 0)
		r = history_diff_each(cli->ws, &cli->ctx, path, from, to, print_file, &p, err);
	if (r == 0 && p.files) {
		struct jv *v = jv_object(cli->ctx.arena);

		jv_set_int(cli->ctx.arena, v, "from", (int64_t)from);
		jv_set_int(cli->ctx.arena, v, "to", (int64_t)to);
		jv_set(cli->ctx.arena, v, "files", p.files);
		output_json(&cli->out, cli->ctx.arena, v);
	}
	return r;
}

/* --- restore, undo, checkpoint --- */

/* The value, or the text that a model would get. */
static void print_value(struct cli *cli, const struct jv *value,
			void (*render)(const struct jv *args, const struct jv *value, struct buf *text))
{
	struct buf text;

	if (cli->json) {
		output_json(&cli->out, cli->ctx.arena, value);
		return;
	}
	buf_init(&text, cli->ctx.arena, SIZE_MAX / 4);
	render(NULL, value, &text);
	buf_char(&text, '\n');
	output_add(&cli->out, buf_str(&text));
}

int run_restore(struct cli *cli, struct err *err)
{
	struct wpath path;
	struct jv *value;
	uint64_t number;
	bool has_rev;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = past_path_at(cli->ws, &cli->ctx, cli->args.operands[0], &path, &number, &has_rev, err);
	if (r == 0 && !has_rev)
		return err_set(err, ERR_INVALID, "restore: say which revision, as in %.*s@12; history lists them",
			       STR_ARG(utf8_first(cli->args.operands[0], 200)));
	if (r == 0)
		r = history_restore(cli->ws, &cli->ctx, path, number, &value, err);
	if (r == 0)
		print_value(cli, value, render_restored);
	return r;
}

int run_undo(struct cli *cli, struct err *err)
{
	struct undo_req req = {.call_id = args_get(&cli->args, OPT_CALL),
			       .session = args_get(&cli->args, OPT_SESSION),
			       .actor = args_get(&cli->args, OPT_ACTOR),
			       .dry_run = args_has(&cli->args, OPT_DRY_RUN)};
	int chosen = args_has(&cli->args, OPT_CALL) + args_has(&cli->args, OPT_SESSION) +
		     args_has(&cli->args, OPT_ACTOR) + args_has(&cli->args, OPT_SINCE);
	struct jv *value = NULL;
	int r;

	if (chosen > 1)
		return err_set(
			err, ERR_INVALID,
			"undo: --since, --call, --session and --actor choose different things; give one of them, "
			"or none for the last call");
	r = cli_open(cli, CLI_WRITES, err);
	if (r == 0)
		r = option_rev(cli, OPT_SINCE, &req.since, &req.has_since, err);
	if (r)
		return r;
	cli->ctx.actor.session = STR_NONE; /* --session says whose changes go, not who takes them back */
	r = history_undo(cli->ws, &cli->ctx, &req, &value, err);
	if (r == 0) {
		print_value(cli, value, render_undone);
	} else if (value) {
		cli->detail = undo_conflicts_text(cli->ctx.arena, value);
		if (cli->json)
			output_json(&cli->out, cli->ctx.arena, value);
	}
	return r;
}

int run_checkpoint(struct cli *cli, struct err *err)
{
	struct jv *value, *list;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r)
		return r;
	if (cli->args.operand_count) {
		r = history_checkpoint(cli->ws, &cli->ctx, cli->args.operands[0], &value, err);
		if (r == 0)
			print_value(cli, value, render_checkpoint);
		return r;
	}
	r = history_checkpoints(cli->ws, &cli->ctx, &list, err);
	if (r)
		return r;
	if (cli->json)
		output_json(&cli->out, cli->ctx.arena, list);
	for (const struct jv_member *m = cli->json ? NULL : jv_first(list); m; m = m->next)
		output_printf(&cli->out, "%6lld  %.*s  %.*s\n", (long long)jv_get_int(m->value, "revision", 0),
			      STR_ARG(jv_get_str(m->value, "time")), STR_ARG(jv_get_str(m->value, "checkpoint")));
	return 0;
}

/* --- watch --- */

static struct cancel watch_cancel;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&watch_cancel.requested, true);
}

/* A reader that went away is noticed also while nothing changes. */
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
			print_revision(cli, arena, m->value);
	}
	output_flush(&cli->out);
	*since = (uint64_t)jv_get_int(v, "next", 0);
	*ret_more = jv_get_bool(v, "more", false);
	return 0;
}

int run_watch(struct cli *cli, struct err *err)
{
	bool once = args_has(&cli->args, OPT_ONCE), given, more = true;
	struct sigaction action = {.sa_handler = on_signal};
	struct wpath path;
	uint64_t since = 0;
	int r = cli_path(cli, cli->args.operand_count ? cli->args.operands[0] : STR(""), &path, err);

	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	if (r == 0)
		r = option_rev(cli, OPT_SINCE, &since, &given, err);
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
	return r == -ERR_CANCELLED ? 0 : r; /* asked to end: that is how a watch ends well */
}
