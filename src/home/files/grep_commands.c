/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grep and find for people: all matches, as they are found. They call the search directly, which delivers each line in
 * order; a line is copied once, into the output buffer. The tools grep and glob answer in pages instead.
 */
#include "base/limits.h"
#include "command/cli.h"
#include "find/find.h"
#include "home/files/files_commands.h"

struct printer {
	struct cli *cli;
	struct output *out;
	struct buf json;
	struct str path_on, number_on, off; /* colours, mostly empty */
	enum grep_output output;
	bool first, context;
	uint64_t printed;
};

static void add_tone(struct output *out, struct str tone)
{
	if (tone.len)
		output_add(out, tone);
}

static int go_on(const struct printer *p, struct err *err)
{
	if (p->out->gone || p->out->sys)
		return err_set(err, ERR_CANCELLED, "nothing reads the output");
	return 0;
}

static char *put(char *to, struct str s)
{
	if (s.len)
		memcpy(to, s.ptr, s.len);
	return to + s.len;
}

/* What nearly every line is: path:line:text without colours. One check of the room instead of six. */
static bool put_line(struct output *out, const struct grep_line *line, char separator)
{
	char digits[20], *start = output_reserve(out, line->path.len + line->text.len + sizeof(digits) + 3), *to;

	if (!start)
		return false;
	to = put(start, line->path);
	*to++ = separator;
	to = put(to, format_u64(line->line, digits));
	*to++ = separator;
	to = put(to, line->text);
	*to++ = '\n';
	out->len += (size_t)(to - start);
	return true;
}

static int emit_line(void *arg, const struct grep_line *line, struct err *err)
{
	struct printer *p = arg;
	struct output *out = p->out;
	struct str separator = line->is_match || p->output != GREP_LINES ? STR(":") : STR("-");

	if (p->context && line->group_start && !p->first)
		output_add(out, STR("--\n"));
	p->first = false;
	p->printed++;
	if (p->output == GREP_LINES && p->off.len == 0 && put_line(out, line, separator.ptr[0]))
		return go_on(p, err);
	add_tone(out, p->path_on);
	output_add(out, line->path);
	add_tone(out, p->off);
	if (p->output != GREP_FILES) {
		output_add(out, separator);
		add_tone(out, p->number_on);
		output_u64(out, p->output == GREP_LINES ? line->line : line->count);
		add_tone(out, p->off);
	}
	if (p->output == GREP_LINES) {
		output_add(out, separator);
		output_add(out, line->text);
	}
	output_add(out, STR("\n"));
	return go_on(p, err);
}

static int emit_json(void *arg, const struct grep_line *line, struct err *err)
{
	struct printer *p = arg;

	p->printed++;
	buf_clear(&p->json);
	buf_lit(&p->json, "{\"path\":");
	jv_write_string(&p->json, line->path);
	if (p->output == GREP_LINES) {
		buf_lit(&p->json, ",\"line\":");
		buf_u64(&p->json, line->line);
		if (!line->is_match)
			buf_lit(&p->json, ",\"context\":true");
		buf_lit(&p->json, ",\"text\":");
		jv_write_string(&p->json, line->text);
	} else {
		buf_lit(&p->json, ",\"count\":");
		buf_u64(&p->json, line->count);
	}
	buf_lit(&p->json, "}\n");
	output_add(p->out, buf_str(&p->json));
	return go_on(p, err);
}

static int grep_request(struct cli *cli, struct grep_req *req, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	int r;

	*req = (struct grep_req){
		.pattern = cli->args.operands[0],
		.literal = args_has(&cli->args, "literal"),
		.ignore_case = args_has(&cli->args, "ignore-case"),
		.context = (unsigned)args_number(&cli->args, "context", 0),
		.threads = (unsigned)args_number(&cli->args, "threads", 0),
		.output = args_has(&cli->args, "files-with-matches") ? GREP_FILES
			  : args_has(&cli->args, "count")            ? GREP_COUNT
								     : GREP_LINES,
		.limit = UINT64_MAX,
		.line_cut = SIZE_MAX,
	};
	req->include = args_each(arena, &cli->args, "include", &req->include_count);
	req->exclude = args_each(arena, &cli->args, "exclude", &req->exclude_count);
	r = cli_open_files(cli, CLI_READS, err);
	return r ? r : cli_path(cli, args_operand(&cli->args, 1), &req->path, err);
}

int run_grep(struct cli *cli, struct err *err)
{
	struct printer p = {.cli = cli, .out = &cli->out, .first = true};
	struct grep_result result = {0};
	struct grep_req req;
	int r = grep_request(cli, &req, err);

	if (r)
		return r;
	req.use_ignore = workspace_files_are_own(cli->ws) && !args_has(&cli->args, "all");
	p.output = req.output;
	p.context = req.context > 0 && req.output == GREP_LINES;
	p.path_on = output_tone(p.out, TONE_PATH);
	p.number_on = output_tone(p.out, TONE_NUMBER);
	p.off = output_tone(p.out, TONE_PLAIN);
	buf_init(&p.json, cli->ctx.arena, SIZE_MAX / 4);
	cli_show_progress(cli, "searched");
	r = find_grep(cli_files(cli), &cli->ctx, &req, cli->json ? emit_json : emit_line, &p, &result, err);
	if (cli->out.gone || cli->out.sys)
		return 0;
	cli->status = r == 0 && p.printed == 0 ? 1 : 0;
	if (r == -ERR_INVALID && !req.literal)
		cli->hint = "-F searches for the pattern as plain text";
	return r;
}

static int emit_path(void *arg, struct str path, struct err *err)
{
	struct printer *p = arg;

	p->printed++;
	if (p->cli->json) {
		buf_clear(&p->json);
		buf_lit(&p->json, "{\"path\":");
		jv_write_string(&p->json, path);
		buf_lit(&p->json, "}\n");
		output_add(p->out, buf_str(&p->json));
	} else {
		output_add(p->out, path);
		output_add(p->out, STR("\n"));
	}
	return go_on(p, err);
}

/* Nothing matched: a name with brackets is found as it is written, and a hint says what else would match. */
static void find_differently(struct cli *cli, struct glob_req req, struct printer *p)
{
	struct glob_result found = {0};
	struct err ignored;
	struct str hint;

	req.limit = LIST_LIMIT_MAX;
	hint = files_glob_hint(cli_files(cli), &cli->ctx, &req, "give --all", &found);

	for (size_t i = 0; i < found.count; i++)
		emit_path(p, found.paths[i], &ignored);
	if (hint.len && !cli->json)
		fprintf(stderr, "hint: %.*s\n", STR_ARG(hint));
}

int run_find(struct cli *cli, struct err *err)
{
	struct printer p = {.cli = cli, .out = &cli->out};
	struct glob_req req = {.pattern = cli->args.operands[0], .limit = UINT64_MAX};
	struct glob_result result = {0};
	int r = cli_open_files(cli, CLI_READS, err);

	if (r == 0)
		r = cli_path(cli, args_operand(&cli->args, 1), &req.path, err);
	if (r)
		return r;
	req.threads = (unsigned)args_number(&cli->args, "threads", 0);
	req.use_ignore = workspace_files_are_own(cli->ws) && !args_has(&cli->args, "all");
	buf_init(&p.json, cli->ctx.arena, SIZE_MAX / 4);
	cli_show_progress(cli, "looked at");
	r = find_glob(cli_files(cli), &cli->ctx, &req, emit_path, &p, &result, err);
	if (cli->out.gone || cli->out.sys)
		return 0;
	if (r == 0 && p.printed == 0)
		find_differently(cli, req, &p);
	cli->status = r == 0 && p.printed == 0 ? 1 : 0;
	return r;
}

const struct option grep_options[] = {
	{"literal", 'F', .help = "the pattern is plain text, not a regular expression"},
	{"ignore-case", 'i', .help = "ignore case"},
	{"context", 'C', "N", .help = "N lines before and after each match", .max = GREP_CONTEXT_MAX},
	{"include", 'g', "GLOB", .help = "only files that match; may be repeated"},
	{"exclude", 0, "GLOB", .help = "skip files that match; may be repeated"},
	{"count", 'c', .help = "print path:count for each file that matches"},
	{"files-with-matches", 'l', .help = "print only the paths of files that match"},
	{"all", .help = "with --files: include .git and what .gitignore excludes"},
	{"threads", 'j', "N", .help = "the number of threads (default: one per core)", .max = 64},
	{0},
};

const struct option find_options[] = {
	{"all", .help = "with --files: include .git and what .gitignore excludes"},
	{"threads", 'j', "N", .help = "the number of threads (default: one per core)", .max = 64},
	{0},
};
