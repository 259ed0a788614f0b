/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model in a process of its own, for measurements: it speaks Anthropic Messages and Chat Completions, asks for one
 * tool call per step until it has `steps` results, and then answers. It may hold its answers until a number of requests
 * are there at once, and send them in pieces with pauses between them.
 */
#ifndef STEAD_TESTS_AGENT_MODEL_STUB_H
#define STEAD_TESTS_AGENT_MODEL_STUB_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STUB_CONNECTIONS 4096
#define STUB_PIECES      8

struct model_stub {
	unsigned steps;    /* tool calls before the answer */
	unsigned hold;     /* requests that must be there before the first is answered; 0: none */
	unsigned pause_ms; /* between the pieces of an answer */
	pid_t pid;
	char url[64];
};

struct stub_talk {
	int fd;
	char *in;
	size_t len, cap, need; /* need: bytes of the whole request; 0: not known */
	char out[2048];
	size_t out_len, sent;
	long long next_ms;
};

static long long stub_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static unsigned stub_count(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
		n++;
	return n;
}

static const char *stub_body(int chat, int calls)
{
	if (chat && calls)
		return "data: "
		       "{\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\","
		       "\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"a."
		       "txt\\\"}\"}}]}}]}\n\n"
		       "data: "
		       "{\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
		       "data: [DONE]\n\n";
	if (chat)
		return "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"done\"}}]}\n\n"
		       "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
		       "data: [DONE]\n\n";
	if (calls)
		return "data: "
		       "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_"
		       "tokens\":1}}}\n\n"
		       "data: "
		       "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":"
		       "\"c\","
		       "\"name\":\"read_file\",\"input\":{}}}\n\n"
		       "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\","
		       "\"partial_json\":\"{\\\"path\\\":\\\"a.txt\\\"}\"}}\n\n"
		       "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		       "data: "
		       "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_"
		       "tokens\":5}}\n\n"
		       "data: {\"type\":\"message_stop\"}\n\n";
	return "data: "
	       "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":"
	       "1}}}\n\n"
	       "data: "
	       "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	       "data: "
	       "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"done\"}}"
	       "\n\n"
	       "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	       "data: "
	       "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}"
	       "\n\n"
	       "data: {\"type\":\"message_stop\"}\n\n";
}

/* Takes in bytes; 1: the request is whole. */
static int stub_take(struct stub_talk *t)
{
	ssize_t n;
	char *head, *length;

	if (t->cap - t->len < 65536)
		t->in = realloc(t->in, t->cap += 262144);
	n = read(t->fd, t->in + t->len, t->cap - t->len - 1);
	if (n <= 0)
		return -1;
	t->len += (size_t)n;
	t->in[t->len] = 0;
	head = strstr(t->in, "\r\n\r\n");
	if (!head)
		return 0;
	length = strcasestr(t->in, "content-length:");
	t->need = (size_t)(head + 4 - t->in) + (length ? strtoul(length + 15, NULL, 10) : 0);
	return t->len >= t->need;
}

static void stub_answer(const struct model_stub *m, struct stub_talk *t)
{
	int chat = strstr(t->in, "/chat/completions ") != NULL;
	unsigned results = stub_count(t->in, chat ? "\"role\":\"tool\"" : "\"type\":\"tool_result\"");
	const char *body = stub_body(chat, results < m->steps);

	t->out_len =
		(size_t)snprintf(t->out, sizeof(t->out),
				 "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %zu\r\n\r\n%s",
				 strlen(body), body);
	t->sent = t->len = t->need = 0;
	t->next_ms = 0;
}

/* Sends a piece, or all that is left. */
static void stub_send(const struct model_stub *m, struct stub_talk *t)
{
	size_t left = t->out_len - t->sent, piece = m->pause_ms ? t->out_len / STUB_PIECES + 1 : left;
	ssize_t n = write(t->fd, t->out + t->sent, piece < left ? piece : left);

	t->sent += n > 0 ? (size_t)n : 0;
	t->next_ms = stub_now_ms() + m->pause_ms;
	if (t->sent == t->out_len)
		t->out_len = 0;
}

__attribute__((noreturn)) static void stub_serve(const struct model_stub *m, int listener)
{
	static struct stub_talk talks[STUB_CONNECTIONS];
	static struct pollfd polls[STUB_CONNECTIONS + 1];
	size_t count = 0;
	unsigned arrived = 0;

	for (;;) {
		polls[0] = (struct pollfd){.fd = listener, .events = count < STUB_CONNECTIONS ? POLLIN : 0};
		for (size_t i = 0; i < count; i++)
			polls[i + 1] = (struct pollfd){.fd = talks[i].fd, .events = POLLIN};
		poll(polls, count + 1, m->pause_ms ? 2 : -1);
		for (size_t i = 0; i < count; i++) {
			struct stub_talk *t = &talks[i];
			int whole = polls[i + 1].revents ? stub_take(t) : 0;

			if (whole < 0) {
				close(t->fd);
				free(t->in);
				talks[i] = talks[--count];
				polls[i + 1] = polls[count + 1];
				i--;
				continue;
			}
			arrived += whole > 0;
			if (whole > 0 && arrived >= m->hold)
				stub_answer(m, t);
		}
		for (size_t i = 0; i < count; i++) {
			if (arrived >= m->hold && !talks[i].out_len && talks[i].need && talks[i].len >= talks[i].need)
				stub_answer(m, &talks[i]);
			if (talks[i].out_len && stub_now_ms() >= talks[i].next_ms)
				stub_send(m, &talks[i]);
		}
		if (polls[0].revents) {
			int fd = accept(listener, NULL, NULL);

			if (fd >= 0)
				talks[count++] = (struct stub_talk){.fd = fd};
		}
	}
}

/* Returns 0, or -1 when it cannot be started. `m` has what it should do. */
static int model_stub_start(struct model_stub *m)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	pid_t parent = getpid();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		return -1;
	snprintf(m->url, sizeof(m->url), "http://127.0.0.1:%u/v1", ntohs(at.sin_port));
	m->pid = fork();
	if (m->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it ended before that */
			_exit(0);
		stub_serve(m, fd);
	}
	close(fd);
	return m->pid > 0 ? 0 : -1;
}

static void model_stub_stop(struct model_stub *m)
{
	kill(m->pid, SIGKILL);
	waitpid(m->pid, NULL, 0);
}

#endif
