/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads MCP servers over stdio and says what they cost. Several servers take turns in one run, so that a slow minute of
 * the machine falls on all of them. It speaks the handshake of 2025-11-25, which every server understands.
 *
 *   mcp_load start [-r ROUNDS] NAME COMMAND ARG... [::: NAME COMMAND ARG...]...
 *     from spawn to the answer of the first tools/list; prints name, median ms, least ms, resident KiB then.
 *   mcp_load call [-r ROUNDS] [-n CALLS] [-w WARM-UP] [-f IN-FLIGHT] NAME TOOL ARGUMENTS COMMAND ARG... [::: …]...
 *     CALLS calls per round with IN-FLIGHT of them open at a time; prints name, p50 us, p99 us (both 0 unless one at a
 *     time), calls per second, server CPU us per call, resident KiB at the end. ARGUMENTS is a JSON object, or an array
 *     of objects that are used in turn (an edit there and back).
 *
 * Values are medians over the rounds, separated by tabs. A call that is answered with an error ends the run: the
 * speed of refusals is not measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "text/jv.h"

enum { SERVERS_MAX = 8, ROUNDS_MAX = 1000, CALLS_MAX = 1000000, FORMS_MAX = 8 };

struct server {
	const char *name, *tool, *arguments;
	char **argv;
	pid_t pid;
	int in, out; /* its stdin and stdout */
	char *buf;   /* what it said and was not looked at yet: buf[start, end) */
	size_t cap, start, end, searched;
	struct str form[FORMS_MAX]; /* the part of a request after its id */
	size_t forms;
	uint64_t next_id;
	double rounds[5][ROUNDS_MAX];
};

static struct server servers[SERVERS_MAX];
static int server_count;
static long rounds = 5, calls = 2000, warm_up = 200, in_flight = 1;
static double *latencies;

static _Noreturn void die(const struct server *s, const char *what, struct str detail)
{
	fprintf(stderr, "mcp_load: %s: %s %.*s\n", s->name, what, (int)(detail.len < 400 ? detail.len : 400),
		detail.ptr ? detail.ptr : "");
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* CPU time of the server, all its threads. */
static double cpu_us(const struct server *s)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(s->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		die(s, "cannot read its CPU clock", STR_NONE);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double resident_kib(const struct server *s)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return (double)kib;
}

static void spawn(struct server *s)
{
	int in[2], out[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || (s->pid = fork()) < 0)
		die(s, "cannot be started:", str_of(strerror(errno)));
	if (s->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(s->argv[0], s->argv);
		_exit(127);
	}
	close(null);
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->out = out[0];
	s->start = s->end = s->searched = 0;
	s->next_id = 1;
}

static void stop(struct server *s)
{
	close(s->in);
	close(s->out);
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
}

static void send_bytes(struct server *s, struct str bytes)
{
	while (bytes.len) {
		ssize_t n = write(s->in, bytes.ptr, bytes.len);

		if (n <= 0)
			die(s, "no longer reads", STR_NONE);
		bytes = str_from(bytes, (size_t)n);
	}
}

/* The next whole line if it is already there; with `wait`, waits for it. */
static bool next_line(struct server *s, bool wait, struct str *ret)
{
	for (;;) {
		char *nl = memchr(s->buf + s->searched, '\n', s->end - s->searched);
		ssize_t n;

		if (nl) {
			*ret = str_n(s->buf + s->start, (size_t)(nl - s->buf) - s->start);
			s->start = s->searched = (size_t)(nl - s->buf) + 1;
			return true;
		}
		s->searched = s->end;
		if (!wait)
			return false;
		if (s->start) {
			memmove(s->buf, s->buf + s->start, s->end - s->start);
			s->end -= s->start;
			s->searched -= s->start;
			s->start = 0;
		}
		if (s->end == s->cap) {
			s->cap *= 2;
			s->buf = xrealloc(s->buf, s->cap);
		}
		n = read(s->out, s->buf + s->end, s->cap - s->end);
		if (n <= 0)
			die(s, "ended before it had answered", STR_NONE);
		s->end += (size_t)n;
	}
}

/* True for the answer of a request; ends the run when it is an error. Only the ends of the line are looked at: an
   answer may hold the same words within a file's text. */
static bool is_answer(const struct server *s, struct str line)
{
	struct str head = str_first(line, 200), tail = str_from(line, line.len > 200 ? line.len - 200 : 0);

	if (str_find(head, STR("\"method\":\"notifications/"), 0) != SIZE_MAX)
		return false;
	if (str_find(head, STR("\"error\":{"), 0) != SIZE_MAX || str_find(tail, STR("\"isError\":true"), 0) != SIZE_MAX)
		die(s, "answered with an error:", line);
	return true;
}

static void wait_answer(struct server *s)
{
	struct str line;

	do
		next_line(s, true, &line);
	while (!is_answer(s, line));
}

static void handshake(struct server *s)
{
	send_bytes(s, STR("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
			  "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}}"
			  "\n"));
	wait_answer(s);
	send_bytes(s, STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"));
}

static void list_tools(struct server *s)
{
	send_bytes(s, STR("{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"method\":\"tools/list\",\"params\":{}}\n"));
	wait_answer(s);
}

static void measure_start(struct server *s, long round)
{
	double from = now_us();

	spawn(s);
	handshake(s);
	list_tools(s);
	if (round >= 0) {
		s->rounds[0][round] = (now_us() - from) / 1e3;
		s->rounds[1][round] = resident_kib(s);
	}
	stop(s);
}

static void add_call(struct server *s, struct buf *b)
{
	uint64_t id = s->next_id++;

	buf_lit(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_u64(b, id);
	buf_add(b, s->form[id % s->forms]);
}

static void call_one_by_one(struct server *s, long count)
{
	struct buf b;

	buf_init(&b, NULL, SIZE_MAX / 2);
	for (long i = 0; i < count; i++) {
		double from;

		buf_clear(&b);
		add_call(s, &b);
		from = now_us();
		send_bytes(s, buf_str(&b));
		wait_answer(s);
		latencies[i] = now_us() - from;
	}
	buf_release(&b);
}

/* For every answer that has come, one more call goes out, in one write. */
static void call_many(struct server *s, long count)
{
	long sent = 0, answered = 0;
	struct str line;
	struct buf b;

	buf_init(&b, NULL, SIZE_MAX / 2);
	while (answered < count) {
		buf_clear(&b);
		for (; sent < count && sent - answered < in_flight; sent++)
			add_call(s, &b);
		send_bytes(s, buf_str(&b));
		next_line(s, true, &line);
		do
			answered += is_answer(s, line);
		while (next_line(s, false, &line));
	}
	buf_release(&b);
}

static void make_calls(struct server *s, long count)
{
	if (in_flight > 1)
		call_many(s, count);
	else
		call_one_by_one(s, count);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double percentile(double *values, long count, long percent)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return values[count * percent / 100];
}

static void measure_calls(struct server *s, long round)
{
	double wall = now_us(), cpu = cpu_us(s);

	make_calls(s, calls);
	wall = now_us() - wall;
	s->rounds[0][round] = in_flight > 1 ? 0 : percentile(latencies, calls, 50);
	s->rounds[1][round] = in_flight > 1 ? 0 : percentile(latencies, calls, 99);
	s->rounds[2][round] = (double)calls / wall * 1e6;
	s->rounds[3][round] = (cpu_us(s) - cpu) / (double)calls;
	s->rounds[4][round] = resident_kib(s);
}

/* The part of each request after its id, one per object in the arguments. */
static void prepare_calls(struct server *s, struct arena *arena)
{
	const struct jv_member *m = NULL;
	struct jv *args;
	struct err err;

	if (jv_parse(arena, str_of(s->arguments), &args, &err) != 0)
		die(s, "its arguments:", str_of(err.msg));
	if (args->type == JV_ARRAY)
		m = jv_first(args);
	do {
		struct buf b;

		buf_init(&b, arena, SIZE_MAX / 2);
		buf_lit(&b, ",\"method\":\"tools/call\",\"params\":{\"name\":");
		jv_write_string(&b, str_of(s->tool));
		buf_lit(&b, ",\"arguments\":");
		jv_write(&b, m ? m->value : args);
		buf_lit(&b, "}}\n");
		s->form[s->forms++] = buf_str(&b);
		m = m ? m->next : NULL;
	} while (m && s->forms < FORMS_MAX);
}

/* Cuts what is left of argv at ":::" into servers, each with `fields` words before its command. */
static bool split(int argc, char **argv, int fields)
{
	for (int i = 0; i < argc; i++) {
		struct server *s = &servers[server_count++];

		if (server_count > SERVERS_MAX || i + fields >= argc)
			return false;
		s->name = argv[i];
		if (fields == 3) {
			s->tool = argv[i + 1];
			s->arguments = argv[i + 2];
		}
		s->argv = &argv[i + fields];
		s->cap = 1 << 20;
		s->buf = xmalloc(s->cap);
		while (i < argc && strcmp(argv[i], ":::") != 0)
			i++;
		if (i < argc)
			argv[i] = NULL;
	}
	return server_count > 0;
}

static bool options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+r:n:w:f:")) != -1) {
		long *value = c == 'r'   ? &rounds
			      : c == 'n' ? &calls
			      : c == 'w' ? &warm_up
			      : c == 'f' ? &in_flight
					 : NULL;

		if (!value || (*value = strtol(optarg, NULL, 10)) < (c != 'w'))
			return false;
	}
	return rounds <= ROUNDS_MAX && calls <= CALLS_MAX && warm_up <= CALLS_MAX;
}

static void run_start(void)
{
	for (long round = -1; round < rounds; round++)
		for (int i = 0; i < server_count; i++)
			measure_start(&servers[i], round);
	for (int i = 0; i < server_count; i++) {
		struct server *s = &servers[i];
		double median = percentile(s->rounds[0], rounds, 50);

		printf("%s\t%.2f\t%.2f\t%.0f\n", s->name, median, s->rounds[0][0],
		       percentile(s->rounds[1], rounds, 50));
	}
}

static void run_calls(void)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	latencies = xcalloc((size_t)(calls > warm_up ? calls : warm_up), sizeof(*latencies));
	for (int i = 0; i < server_count; i++) {
		prepare_calls(&servers[i], arena);
		spawn(&servers[i]);
		handshake(&servers[i]);
		make_calls(&servers[i], warm_up);
	}
	for (long round = 0; round < rounds; round++)
		for (int i = 0; i < server_count; i++)
			measure_calls(&servers[i], round);
	for (int i = 0; i < server_count; i++) {
		struct server *s = &servers[i];

		stop(s);
		printf("%s\t%.1f\t%.1f\t%.0f\t%.2f\t%.0f\n", s->name, percentile(s->rounds[0], rounds, 50),
		       percentile(s->rounds[1], rounds, 50), percentile(s->rounds[2], rounds, 50),
		       percentile(s->rounds[3], rounds, 50), percentile(s->rounds[4], rounds, 50));
	}
	free(latencies);
}

int main(int argc, char **argv)
{
	bool start = argc > 1 && strcmp(argv[1], "start") == 0;

	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || (!start && strcmp(argv[1], "call") != 0) || !options(argc - 1, argv + 1) ||
	    !split(argc - 1 - optind, argv + 1 + optind, start ? 1 : 3)) {
		fprintf(stderr,
			"usage: mcp_load start [-r ROUNDS] NAME COMMAND ARG... [::: ...]...\n"
			"       mcp_load call [-r ROUNDS] [-n CALLS] [-w WARM-UP] [-f IN-FLIGHT] NAME TOOL ARGUMENTS "
			"COMMAND ARG... [::: ...]...\n");
		return 2;
	}
	if (start)
		run_start();
	else
		run_calls();
	for (int i = 0; i < server_count; i++)
		free(servers[i].buf);
	return 0;
}
