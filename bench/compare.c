/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times commands against each other in one run. They take turns (A B C, A B C, …), so that a slow minute of the machine
 * falls on all of them, and the median of each is given. Output goes through a pipe that is read and counted: some
 * programs notice /dev/null and stop early. The first round warms the caches and is not counted.
 *   compare ROUNDS NAME COMMAND ARG... [::: NAME COMMAND ARG...]...
 * prints per command, with tabs: name, median ms, least ms, median CPU ms, peak memory KiB, lines, exit status.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS_MAX = 16, ROUNDS_MAX = 1000 };

struct command {
	const char *name;
	char **argv;
	double wall_ms[ROUNDS_MAX], cpu_ms[ROUNDS_MAX];
	long rss_kib;
	uint64_t lines;
	int status;
};

static struct command commands[COMMANDS_MAX];
static int command_count;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint64_t count_lines(int fd)
{
	static char buffer[1 << 16];
	uint64_t lines = 0;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		for (char *p = buffer; (p = memchr(p, '\n', (size_t)(buffer + n - p))); p++)
			lines++;
	return lines;
}

static void exec_child(const struct command *c, int out)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (!getenv("COMPARE_STDERR"))
		dup2(null, STDERR_FILENO);
	execvp(c->argv[0], c->argv);
	_exit(127);
}

static void run(struct command *c, int round)
{
	struct rusage usage;
	int pipes[2], status;
	double from = now_ms();
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		perror("compare");
		exit(1);
	}
	if (pid == 0)
		exec_child(c, pipes[1]);
	close(pipes[1]);
	c->lines = count_lines(pipes[0]);
	close(pipes[0]);
	if (wait4(pid, &status, 0, &usage) < 0)
		exit(1);
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	if (round < 0)
		return;
	c->wall_ms[round] = now_ms() - from;
	c->cpu_ms[round] = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
			   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
	if (usage.ru_maxrss > c->rss_kib)
		c->rss_kib = usage.ru_maxrss;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Cuts argv at ":::" into commands; false when one has no name or no program. */
static int split(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		struct command *c = &commands[command_count++];

		if (command_count > COMMANDS_MAX || i + 1 >= argc)
			return 0;
		c->name = argv[i];
		c->argv = &argv[i + 1];
		while (i < argc && strcmp(argv[i], ":::") != 0)
			i++;
		if (i < argc)
			argv[i] = NULL;
	}
	return command_count > 0;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX || !split(argc, argv)) {
		fprintf(stderr, "usage: compare ROUNDS NAME COMMAND ARG... [::: NAME COMMAND ARG...]...\n");
		return 2;
	}
	for (int round = -1; round < rounds; round++)
		for (int i = 0; i < command_count; i++)
			run(&commands[i], round);
	for (int i = 0; i < command_count; i++) {
		struct command *c = &commands[i];

		qsort(c->wall_ms, (size_t)rounds, sizeof(double), by_value);
		qsort(c->cpu_ms, (size_t)rounds, sizeof(double), by_value);
		printf("%s\t%.2f\t%.2f\t%.2f\t%ld\t%llu\t%d\n", c->name, c->wall_ms[rounds / 2], c->wall_ms[0],
		       c->cpu_ms[rounds / 2], c->rss_kib, (unsigned long long)c->lines, c->status);
	}
	return 0;
}
