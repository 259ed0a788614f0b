/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that gives one prepared answer to each connection, byte for byte, and keeps what it was asked. For faults
 * that no real server makes on demand.
 */
#ifndef STEAD_TESTS_MODEL_STUB_H
#define STEAD_TESTS_MODEL_STUB_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/buf.h"
#include "test.h"

#define STUB_MOST 64

struct stub {
	int fd;
	pthread_t thread;
	const char **answers; /* NULL at the end */
	struct buf requests[STUB_MOST];
	size_t count; /* of requests; read it after stub_join() */
	char url[64];
};

static void stub_read(int fd, struct buf *request)
{
	size_t need = SIZE_MAX;
	char bytes[4096];

	buf_init(request, NULL, (size_t)1 << 26);
	while (request->len < need) {
		ssize_t n = read(fd, bytes, sizeof(bytes));
		size_t head;

		if (n <= 0)
			return;
		buf_add(request, str_n(bytes, (size_t)n));
		head = str_find(buf_str(request), STR("\r\n\r\n"), 0);
		if (head != SIZE_MAX && need == SIZE_MAX) {
			size_t at = str_find(buf_str(request),
					     STR("ontent-"
						 "Length: "),
					     0);

			if (at == SIZE_MAX)
				at = str_find(buf_str(request), STR("ontent-length: "), 0);
			need = head + 4 + (at == SIZE_MAX ? 0 : strtoull(request->ptr + at + 15, NULL, 10));
		}
	}
}

static void *stub_serve(void *arg)
{
	struct stub *stub = arg;

	for (; stub->answers[stub->count] && stub->count < STUB_MOST; stub->count++) {
		int fd = accept(stub->fd, NULL, NULL);
		const char *answer = stub->answers[stub->count];

		if (fd < 0)
			break;
		stub_read(fd, &stub->requests[stub->count]);
		if (write(fd, answer, strlen(answer)) < 0)
			perror("stub");
		close(fd);
	}
	return NULL;
}

/* Waits until every answer was given. */
static void stub_join(struct stub *stub)
{
	if (stub->thread)
		pthread_join(stub->thread, NULL);
	stub->thread = 0;
}

static void stub_stop(struct stub *stub)
{
	shutdown(stub->fd, SHUT_RDWR); /* ends an accept() that still waits */
	stub_join(stub);
	close(stub->fd);
	for (size_t i = 0; i < STUB_MOST; i++)
		buf_release(&stub->requests[i]);
	free(stub->answers);
	free(stub);
}

static struct stub *stub_start(const char *const *answers)
{
	struct stub *stub = xcalloc(1, sizeof(*stub));
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	size_t count = 0;

	while (answers[count])
		count++;
	/* a copy: the test may return while the thread still looks at the end of the list */
	stub->answers = xcalloc(count + 1, sizeof(*stub->answers));
	memcpy(stub->answers, answers, count * sizeof(*stub->answers));
	stub->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(stub->fd >= 0 && bind(stub->fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(stub->fd, 16) == 0);
	CHECK(getsockname(stub->fd, (struct sockaddr *)&at, &len) == 0);
	snprintf(stub->url, sizeof(stub->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	CHECK(pthread_create(&stub->thread, NULL, stub_serve, stub) == 0);
	test_defer(stub_stop, stub);
	return stub;
}

#define STUB_STREAM "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

#endif
