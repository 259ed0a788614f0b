/* SPDX-License-Identifier: Apache-2.0 */
/* diff: by lines for programs, by words and in colour on a terminal. */
#include "command/cli.h"
#include "home/timeline/history.h"
#include "home/timeline/timeline_commands.h"
#include "text/diff.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

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

/* The revisions come last; they may also come first if only one of the two operands can be meant. */
static int diff_operands(struct cli *cli, struct wpath *ret_path, uint64_t *from, uint64_t *to, bool *now,
			 struct err *err)
{
	size_t last = cli->args.operand_count ? cli->args.operand_count - 1 : 0;
	struct str path = last ? cli->args.operands[0] : STR("");
	struct err ignored;
	int r;

	if (!cli->args.operand_count)
		return err_set(err, ERR_NOT_FOUND, "nothing has changed yet");
	r = parse_range(cli, cli->args.operands[last], from, to, now, err);

	if (r == -ERR_NOT_FOUND && last && parse_range(cli, path, from, to, now, &ignored) == 0) {
		path = cli->args.operands[last];
		r = 0;
	}
	return r ? r : cli_path(cli, path, ret_path, err);
}

static int print_diff(struct cli *cli, struct workspace *ws, struct wpath path, uint64_t from, uint64_t to, bool now,
		      struct err *err)
{
	struct diff_printer p = {.cli = cli, .files = cli->json ? jv_array(cli->ctx.arena) : NULL};
	int r = now ? history_notice(ws, &cli->ctx, path, err) : 0;

	if (r == 0 && now)
		r = past_revision(ws, &cli->ctx, STR("head"), &to, err);
	p.words = args_has(&cli->args, "word");
	if (r == 0)
		r = history_diff_each(ws, &cli->ctx, path, from, to, print_file, &p, err);
	if (r == 0 && p.files) {
		struct jv *v = jv_object(cli->ctx.arena);

		jv_set_int(cli->ctx.arena, v, "from", (int64_t)from);
		jv_set_int(cli->ctx.arena, v, "to", (int64_t)to);
		jv_set(cli->ctx.arena, v, "files", p.files);
		cli_json(cli, v);
	}
	return r;
}

/* All that a fork changed. */
static int diff_fork(struct cli *cli, struct str name, struct err *err)
{
	struct workspace *fork;
	struct wpath path = WPATH_ROOT;
	int r = cli->args.operand_count > 1 ? cli_path(cli, cli->args.operands[1], &path, err) : 0;

	if (r == 0)
		r = workspace_open_sibling(cli->ws, name, &fork, err);
	if (r)
		return r;
	r = print_diff(cli, fork, path, 0, 0, true, err);
	workspace_close(fork);
	return r;
}

/* A path alone, or nothing: the last change. False when nothing is known of it. */
static bool find_last_change(struct cli *cli, struct wpath *ret_path, uint64_t *from, uint64_t *to)
{
	struct history_req req = {.limit = 1};
	struct str path = cli->args.operand_count ? cli->args.operands[0] : STR("");
	struct err ignored;
	struct jv *v;

	if (cli->args.operand_count > 1 || cli_path(cli, path, &req.path, &ignored) ||
	    history_list(cli->ws, &cli->ctx, &req, &v, &ignored) || !jv_count(jv_get(v, "revisions")))
		return false;
	*ret_path = req.path;
	*to = (uint64_t)jv_get_int(jv_at(jv_get(v, "revisions"), 0), "revision", 1);
	*from = *to - 1;
	return true;
}

/* "notes.md", "notes/plan": nobody calls a checkpoint so, and a range has "..". */
static bool is_like_path(struct str text)
{
	return (memchr(text.ptr, '.', text.len) || memchr(text.ptr, '/', text.len)) &&
	       str_find(text, STR(".."), 0) == SIZE_MAX;
}

int run_diff(struct cli *cli, struct err *err)
{
	struct wpath path;
	struct str fork;
	uint64_t from, to = 0;
	bool now;
	int r = diff_operands(cli, &path, &from, &to, &now, err);

	if (r && cli->args.operand_count && fork_find(cli->ws, &cli->ctx, cli->args.operands[0], &fork))
		return diff_fork(cli, fork, err);
	if (r && find_last_change(cli, &path, &from, &to))
		return print_diff(cli, cli->ws, path, from, to, false, err);
	if (r == -ERR_NOT_FOUND && cli->args.operand_count == 1 && is_like_path(cli->args.operands[0]))
		return err_set(err, ERR_NOT_FOUND,
			       "diff: no change to \"%.*s\" is known; 'stead history' lists the changes",
			       STR_ARG(utf8_first(cli->args.operands[0], 200)));
	return r ? r : print_diff(cli, cli->ws, path, from, to, now, err);
}

const struct option diff_options[] = {
	{"word", .help = "mark the words that changed, instead of whole lines"},
	{0},
};
