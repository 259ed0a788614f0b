/* SPDX-License-Identifier: Apache-2.0 */
/* diff: by lines for programs, by words and in colour on a terminal. */
#include "command/cli.h"
#include "home/timeline/history.h"
#include "home/timeline/timeline_commands.h"
#include "text/diff.h"

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
	int r = diff_operands(cli, &path, &from, &to, &now, err);

	if (r == 0 && now)
		r = history_notice(cli->ws, &cli->ctx, path, err);
	if (r == 0 && now)
		r = past_revision(cli->ws, &cli->ctx, STR("head"), &to, err);
	p.words = args_has(&cli->args, "words") || (cli->out.to_terminal && !args_has(&cli->args, "lines"));
	if (r == 0)
		r = history_diff_each(cli->ws, &cli->ctx, path, from, to, print_file, &p, err);
	if (r == 0 && p.files) {
		struct jv *v = jv_object(cli->ctx.arena);

		jv_set_int(cli->ctx.arena, v, "from", (int64_t)from);
		jv_set_int(cli->ctx.arena, v, "to", (int64_t)to);
		jv_set(cli->ctx.arena, v, "files", p.files);
		cli_json(cli, v);
	}
	return r;
}

const struct option diff_options[] = {
	{"words", .help = "mark changed words (the default on a terminal)"},
	{"lines", .help = "whole lines, in the format of patch (the default elsewhere)"},
	{0},
};
