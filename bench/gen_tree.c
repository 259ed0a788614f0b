/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the tree that grep and glob are measured on: 10,000 files, 100 MB, the same bytes on every machine (own
 * generator, fixed seed). It looks like a source tree to a search: lines of words and identifiers of uneven length,
 * sizes spread around the mean, a few binary files, one word that is rare (zanzibar_quartz, in about 1 of 500 files).
 *   gen_tree DIR [FILES [BYTES]]
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const words[] = {
	"buffer",  "return", "static",  "connection",  "value",  "index",   "parse_header", "the",     "of",
	"error",   "struct", "const",   "while",       "length", "request", "queue",        "session", "x",
	"if",      "NULL",   "size_t",  "update",      "config", "reader",  "write_block",  "Thread",  "lock",
	"version", "data",   "Timeout", "caf\xC3\xA9", "node",   "0x1f",    "int",          "for",     "retry_count",
};
static const char *const extensions[] = {"c", "h", "md", "py", "txt", "json", "ts", "yaml"};

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void fail(const char *what, const char *path)
{
	fprintf(stderr, "gen_tree: cannot %s %s: %s\n", what, path, strerror(errno));
	exit(1);
}

static void make_dir(const char *path)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		fail("make", path);
}

static size_t write_line(FILE *file, int is_rare)
{
	size_t count = 2 + next() % 12, len = 0;

	for (size_t i = next() % 3; i > 0; i--)
		len += (size_t)(fputc('\t', file) != EOF);
	for (size_t i = 0; i < count; i++) {
		const char *word =
			is_rare && i == 1 ? "zanzibar_quartz" : words[next() % (sizeof(words) / sizeof(*words))];
		int n = next() % 16 == 0 ? fprintf(file, "%s(%u); ", word, (unsigned)(next() % 10000))
					 : fprintf(file, "%s ", word);

		len += n > 0 ? (size_t)n : 0;
	}
	return len + (size_t)(fputc('\n', file) != EOF);
}

static void write_file(const char *path, size_t size, size_t number)
{
	FILE *file = fopen(path, "wb");
	size_t len = 0, rare = number % 500 == 7 ? size / 2 : SIZE_MAX;

	if (!file)
		fail("write", path);
	if (number % 200 == 3) /* binary */
		fwrite("\177ELF\0\0\0\0", 1, 8, file);
	while (len < size) {
		int is_rare = len >= rare;

		if (is_rare)
			rare = SIZE_MAX;
		len += write_line(file, is_rare);
	}
	if (fclose(file) != 0)
		fail("write", path);
}

int main(int argc, char **argv)
{
	size_t files = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
	size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 100000000;
	size_t mean = files ? bytes / files : 0;
	char path[4096];

	if (argc < 2 || !files) {
		fprintf(stderr, "usage: gen_tree DIR [FILES [BYTES]]\n");
		return 2;
	}
	make_dir(argv[1]);
	for (size_t i = 0; i < files; i++) {
		/* 10 x 10 directories; sizes from a tenth of the mean to about twice it. */
		snprintf(path, sizeof(path), "%s/area%zu", argv[1], i % 10);
		make_dir(path);
		snprintf(path, sizeof(path), "%s/area%zu/part%zu", argv[1], i % 10, i / 10 % 10);
		make_dir(path);
		snprintf(path, sizeof(path), "%s/area%zu/part%zu/file%05zu.%s", argv[1], i % 10, i / 10 % 10, i,
			 extensions[next() % (sizeof(extensions) / sizeof(*extensions))]);
		write_file(path, mean / 10 + next() % (mean * 18 / 10 + 1), i);
	}
	return 0;
}
