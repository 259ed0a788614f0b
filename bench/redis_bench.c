/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis store compared with redis-benchmark on the same server, over TCP, with one client: reading and writing
 * files through the store, GET and SET of as many bytes by redis-benchmark, and by a loop that sends and receives and
 * does nothing else. They take turns in short rounds. redis-benchmark reports its median in steps of 8 µs, so its mean
 * is compared with the mean; the loop's median with the median. Of the rounds the median counts, on every side. Last,
 * what a script costs that does nothing. Run through tests/servers/with redis --. redis_bench [ROUNDS]
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/journal.h"
#include "store/stores.h"

#define CALLS      400
#define ROUNDS_MAX 99

struct bench {
	struct store *s;
	struct ctx ctx;
	struct str bytes, version;
	uint64_t journal_end;
	size_t size;
};

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "%s\n", err->msg);
		exit(1);
	}
}

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set; run this through tests/servers/with redis --\n", name);
		exit(1);
	}
	return value;
}

static const struct wpath file = {STR("notes/plan.md")}, journal = {STR(".stead/log")};

/* A call's memory goes with the call; only the version is needed by the next. */
static void keep_version(struct bench *b, struct str version)
{
	char text[64];
	size_t len = version.len < sizeof(text) ? version.len : sizeof(text);

	memcpy(text, version.ptr, len);
	arena_reset(b->ctx.arena);
	b->version = arena_str(b->ctx.arena, str_n(text, len));
}

static void read_one(struct bench *b)
{
	struct str bytes;
	struct err err;

	must(store_read(b->s, &b->ctx, file, STORE_WHOLE, b->size, &bytes, NULL, &err), &err);
	keep_version(b, b->version);
}

/* Under the condition that nobody changed it. */
static void write_one(struct bench *b)
{
	struct store_cond cond = {.kind = STORE_VERSION, .version = b->version};
	struct store_stat stat;
	struct err err;

	must(store_write(b->s, &b->ctx, file, b->bytes, cond, &stat, &err), &err);
	keep_version(b, stat.version);
}

/* The same with an entry of the journal in the same step. */
static void write_with_entry(struct bench *b)
{
	char text[64];
	struct store_cond cond = {.kind = STORE_VERSION, .version = b->version};
	struct journal_add add = {.after = b->journal_end, .change = JOURNAL_WRITE, .content = b->bytes};
	struct journal_added added;
	struct err err;

	snprintf(text, sizeof(text), "entry-%llu", (unsigned long long)b->journal_end);
	add.bytes = add.version = str_of(text);
	must(store_journal_add(b->s, &b->ctx, journal, file, cond, &add, &added, &err), &err);
	b->journal_end++;
	keep_version(b, str_of(text));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

/* Microseconds of one call. */
struct took {
	double mean, median;
};

static struct took of_calls(double *calls)
{
	double sum = 0;

	for (size_t i = 0; i < CALLS; i++)
		sum += calls[i];
	return (struct took){sum / CALLS, median(calls, CALLS)};
}

static struct took time_store(struct bench *b, void (*one)(struct bench *b))
{
	static double calls[CALLS];

	for (size_t i = 0; i < CALLS; i++) {
		int64_t from = clock_monotonic_ns();

		one(b);
		calls[i] = (double)(clock_monotonic_ns() - from) / 1000;
	}
	return of_calls(calls);
}

/* The third column of redis-benchmark's table: the mean in milliseconds. Both are run, so that GET finds what SET of
   the same size wrote. */
static double time_peer(const char *what, size_t size)
{
	char command[256], line[512], name[8];
	double rps, avg, found = 0;
	FILE *f;

	snprintf(command, sizeof(command), "redis-benchmark -p %s -c 1 -n %d -d %zu -t set,get --csv 2>/dev/null",
		 need("STEAD_TEST_REDIS_PORT"), CALLS, size);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "\"%7[A-Z]\",\"%lf\",\"%lf\"", name, &rps, &avg) == 3 &&
		    str_eq_nocase(str_of(name), str_of(what)))
			found = avg;
	if (!f || pclose(f) || found <= 0) {
		fprintf(stderr, "redis-benchmark gave no figures\n");
		exit(1);
	}
	return found * 1000;
}

/* The loop. */

static int plain_connect(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtoul(need("STEAD_TEST_REDIS_PORT"), NULL, 10)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		fprintf(stderr, "cannot connect to Redis\n");
		exit(1);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* Sends, and receives as many bytes as the answer has. */
static void plain_call(int fd, const struct buf *request, char *answer, size_t len)
{
	size_t done = 0;

	while (done < request->len) {
		ssize_t n = send(fd, request->ptr + done, request->len - done, MSG_NOSIGNAL);

		done += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			exit(1);
	}
	for (done = 0; done < len;) {
		ssize_t n = recv(fd, answer + done, len - done, 0);

		done += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			exit(1);
	}
}

static struct took time_plain(const char *what, size_t size)
{
	static double calls[CALLS];
	char *bytes = xmalloc(size), *answer = xmalloc(size + 64), head[32];
	int fd = plain_connect(), n = snprintf(head, sizeof(head), "$%zu\r\n", size);
	struct buf set, get, script;

	memset(bytes, 'x', size);
	buf_init(&set, NULL, 2 * size + 256);
	buf_init(&get, NULL, 256);
	buf_init(&script, NULL, 256);
	buf_printf(&set, "*3\r\n$3\r\nSET\r\n$5\r\nplain\r\n%s", head);
	buf_add(&set, str_n(bytes, size));
	buf_lit(&set, "\r\n");
	buf_lit(&get, "*2\r\n$3\r\nGET\r\n$5\r\nplain\r\n");
	buf_lit(&script, "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n");
	plain_call(fd, &set, answer, 5);
	for (size_t i = 0; i < CALLS; i++) {
		int64_t from = clock_monotonic_ns();

		if (strcmp(what, "get") == 0)
			plain_call(fd, &get, answer, (size_t)n + size + 2);
		else if (strcmp(what, "set") == 0)
			plain_call(fd, &set, answer, 5);
		else
			plain_call(fd, &script, answer, 4);
		calls[i] = (double)(clock_monotonic_ns() - from) / 1000;
	}
	close(fd);
	buf_release(&set);
	buf_release(&get);
	buf_release(&script);
	free(bytes);
	free(answer);
	return of_calls(calls);
}

static void row(struct bench *b, size_t rounds, const char *name, const char *peer, void (*one)(struct bench *b))
{
	double mean[ROUNDS_MAX], middle[ROUNDS_MAX], theirs[ROUNDS_MAX], plain[ROUNDS_MAX], x, y, z, w;

	for (size_t i = 0; i < rounds; i++) {
		struct took own;

		theirs[i] = time_peer(peer, b->size);
		own = time_store(b, one);
		plain[i] = time_plain(peer, b->size).median;
		mean[i] = own.mean;
		middle[i] = own.median;
	}
	x = median(mean, rounds);
	y = median(theirs, rounds);
	z = median(middle, rounds);
	w = median(plain, rounds);
	printf("| %s, %zu KiB | %.1f µs | %s %.1f µs | %.2f | ≤ 1.3 | %.1f µs | %.1f µs | %.2f |\n", name,
	       b->size / KIB, x, peer, y, x / y, z, w, z / w);
	fflush(stdout);
}

/* The least that a script costs, compared with SET. */
static void floor_row(size_t rounds)
{
	double script[ROUNDS_MAX], set[ROUNDS_MAX], x, y;

	for (size_t i = 0; i < rounds; i++) {
		script[i] = time_plain("script", KIB).median;
		set[i] = time_plain("set", KIB).median;
	}
	x = median(script, rounds);
	y = median(set, rounds);
	printf("| a script that does nothing, by the loop | | | | | %.1f µs | %.1f µs | %.2f |\n", x, y, x / y);
}

static void rows(struct bench *b, size_t rounds, size_t size)
{
	char *bytes = xmalloc(size);
	struct store_stat stat;
	struct err err;

	memset(bytes, 'x', size);
	b->size = size;
	b->bytes = str_n(bytes, size);
	must(store_write(b->s, &b->ctx, file, b->bytes, (struct store_cond){0}, &stat, &err), &err);
	b->version = stat.version;
	row(b, rounds, "read", "get", read_one);
	row(b, rounds, "conditional write", "set", write_one);
	row(b, rounds, "conditional write with its journal entry", "set", write_with_entry);
	free(bytes);
}

int main(int argc, char **argv)
{
	struct bench b = {.ctx = {.arena = arena_new()}};
	size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 25;
	struct err err;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "give 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	must(store_open_url(str_of(need("STEAD_TEST_REDIS")), NULL, &b.s, &err), &err);
	rows(&b, rounds, 1 * KIB);
	rows(&b, rounds, 64 * KIB);
	floor_row(rounds);
	store_destroy(b.s);
	arena_destroy(b.ctx.arena);
	return 0;
}
