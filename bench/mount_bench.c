/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, reads and closes every file below each directory, one directory after the other, and again for each round. The
 * first round is not counted: then the caches know everything.
 *   mount_bench ROUNDS DIR...
 * prints per directory: the median of the rounds in ms, and how many files there are.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 200000, DIRS_MAX = 8, ROUNDS_MAX = 100 };

static char *paths[FILES_MAX];
static int count;

static int add(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)ftw;
	if (type == FTW_F && count < FILES_MAX && !strstr(path, "/.git/"))
		paths[count++] = strdup(path);
	return 0;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double read_all(int from, int to)
{
	static char bytes[65536];
	double start = now_ms();

	for (int i = from; i < to; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			perror(paths[i]);
			exit(1);
		}
		while (read(fd, bytes, sizeof bytes) > 0)
			;
		close(fd);
	}
	return now_ms() - start;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double took[DIRS_MAX][ROUNDS_MAX];
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, dirs = argc - 2, first[DIRS_MAX + 1];

	if (dirs < 1 || dirs > DIRS_MAX || rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	for (int d = 0; d < dirs; d++) {
		first[d] = count;
		nftw(argv[d + 2], add, 32, FTW_PHYS);
	}
	first[dirs] = count;
	for (int round = -1; round < rounds; round++)
		for (int d = 0; d < dirs; d++) {
			double ms = read_all(first[d], first[d + 1]);

			if (round >= 0)
				took[d][round] = ms;
		}
	for (int d = 0; d < dirs; d++) {
		qsort(took[d], (size_t)rounds, sizeof(double), by_size);
		printf("%.2f %d\n", took[d][rounds / 2], first[d + 1] - first[d]);
	}
	return 0;
}
