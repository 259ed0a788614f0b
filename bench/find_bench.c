/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search alone, without the program around it: prints what find_grep and find_glob give, as fast as they give it.
 *	find_bench grep [-i] [-F] [-l] [-c] [-u] [-j N] PATTERN DIR
 *	find_bench glob [-u] [-j N] PATTERN DIR
 * -u: ignore files are not honoured.
 */
#include <getopt.h>
#include <unistd.h>

#include "base/buf.h"
#include "find/find.h"
#include "store/stores.h"

static struct buf out;

static void flush_out(size_t least)
{
	size_t done = 0;

	if (out.len < least)
		return;
	while (done < out.len) {
		ssize_t n = write(STDOUT_FILENO, out.ptr + done, out.len - done);

		if (n <= 0)
			exit(1);
		done += (size_t)n;
	}
	buf_clear(&out);
}

static int print_line(void *arg, const struct grep_line *line, struct err *err)
{
	(void)arg;
	(void)err;
	buf_add(&out, line->path);
	if (line->line) {
		buf_char(&out, ':');
		buf_u64(&out, line->line);
		buf_char(&out, ':');
		buf_add(&out, line->text);
	} else if (*(bool *)arg) {
		buf_char(&out, ':');
		buf_u64(&out, line->count);
	}
	buf_char(&out, '\n');
	flush_out(128 * 1024);
	return 0;
}

static int print_path(void *arg, struct str path, struct err *err)
{
	(void)arg;
	(void)err;
	buf_add(&out, path);
	buf_char(&out, '\n');
	flush_out(128 * 1024);
	return 0;
}

int main(int argc, char **argv)
{
	struct grep_req grep = {.path = WPATH_ROOT, .use_ignore = true, .limit = UINT64_MAX, .line_cut = SIZE_MAX};
	struct glob_req glob = {.path = WPATH_ROOT, .use_ignore = true, .limit = UINT64_MAX};
	struct ctx ctx = {.arena = arena_new()};
	struct store *store = NULL;
	struct grep_result lines;
	struct glob_result paths;
	struct err err = {0};
	bool is_grep = argc > 1 && strcmp(argv[1], "grep") == 0, counts = false;
	int c, r;

	optind = 2;
	while ((c = getopt(argc, argv, "iFlcuj:")) >= 0) {
		grep.ignore_case |= c == 'i';
		grep.literal |= c == 'F';
		grep.output = c == 'l' ? GREP_FILES : c == 'c' ? GREP_COUNT : grep.output;
		counts |= c == 'c';
		if (c == 'u')
			grep.use_ignore = glob.use_ignore = false;
		if (c == 'j')
			grep.threads = glob.threads = (unsigned)strtoul(optarg, NULL, 10);
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: find_bench grep|glob [-iFlcu] [-j N] PATTERN DIR\n");
		return 2;
	}
	buf_init(&out, NULL, SIZE_MAX / 2);
	grep.pattern = glob.pattern = str_of(argv[optind]);
	r = store_disk_open(argv[optind + 1], NULL, &store, &err);
	if (r == 0 && is_grep)
		r = find_grep(store, &ctx, &grep, print_line, &counts, &lines, &err);
	else if (r == 0)
		r = find_glob(store, &ctx, &glob, print_path, NULL, &paths, &err);
	if (r) {
		fprintf(stderr, "find_bench: %s\n", err.msg);
		return 2;
	}
	flush_out(1);
	store_destroy(store);
	arena_destroy(ctx.arena);
	buf_release(&out);
	return 0;
}
