/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP over the unix socket of a container engine. The requests are of version 1.0, so an answer ends with its length
 * or with the connection, and never comes in chunks. libcurl was not used: the streams of a container come through a
 * connection that stops to be HTTP after its head, and are waited for together with the caller's own input.
 */
#include "sandbox/engine.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/jv.h"

#define HEAD_MAX   (16 * KIB)
#define ANSWER_MAX (4 * MIB)
#define API        "/v1.40"
#define ASK_MS     20000

/* --- parsing --- */

static bool parse_number(struct str s, int64_t most, int64_t *ret)
{
	int64_t n = 0;

	s = str_trim(s);
	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		n = n * 10 + (s.ptr[i] - '0');
		if (n > most)
			return false;
	}
	*ret = n;
	return true;
}

static bool parse_header(struct str line, struct engine_head *ret)
{
	struct str name;

	if (!str_cut(&line, ':', &name))
		return false;
	if (str_eq_nocase(name, STR("Transfer-Encoding")))
		return false; /* not asked for */
	return !str_eq_nocase(name, STR("Content-Length")) || parse_number(line, INT64_MAX / 20, &ret->length);
}

int engine_head_parse(struct str bytes, struct engine_head *ret)
{
	const char *end = bytes.len ? memmem(bytes.ptr, bytes.len, "\r\n\r\n", 4) : NULL;
	struct str rest, line;
	int64_t status;

	if (!end)
		return bytes.len >= HEAD_MAX ? -1 : 0;
	if ((size_t)(end - bytes.ptr) > HEAD_MAX)
		return -1;
	rest = str_n(bytes.ptr, (size_t)(end - bytes.ptr));
	*ret = (struct engine_head){.length = -1};
	if (!str_cut(&rest, '\n', &line) || line.len < 12 || memcmp(line.ptr, "HTTP/1.", 7) != 0 ||
	    !parse_number(str_n(line.ptr + 9, 3), 999, &status))
		return -1;
	ret->status = (int)status;
	while (rest.len && str_cut(&rest, '\n', &line))
		if (!parse_header(str_trim(line), ret))
			return -1;
	return (int)(end - bytes.ptr) + 4;
}

bool engine_frames_take(struct engine_frames *f, struct str bytes,
			void (*push)(void *arg, bool is_stderr, struct str bytes), void *arg)
{
	while (bytes.len) {
		if (f->left) {
			struct str part = str_first(bytes, f->left);

			push(arg, f->head[0] == 2, part);
			f->left -= (uint32_t)part.len;
			bytes = str_from(bytes, part.len);
			continue;
		}
		f->head[f->have++] = (unsigned char)bytes.ptr[0];
		bytes = str_from(bytes, 1);
		if (f->have < sizeof f->head)
			continue;
		if (f->head[0] > 2 || f->head[1] || f->head[2] || f->head[3])
			return false;
		f->left = (uint32_t)f->head[4] << 24 | (uint32_t)f->head[5] << 16 | (uint32_t)f->head[6] << 8 |
			  f->head[7];
		f->have = 0;
	}
	return true;
}

/* --- requests --- */

static int engine_connect(const struct engine *e, struct err *err)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(to.sun_path, e->path, sizeof to.sun_path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	err_sys(err, errno, "cannot reach the container engine at %.100s", e->path);
	return -1;
}

static int wait_for(int fd, short events, int64_t until_ns, struct err *err)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int64_t left = until_ns - clock_monotonic_ns();
		int n = left <= 0 ? 0 : poll(&p, 1, (int)(left / NS_PER_MS) + 1);

		if (n > 0)
			return 0;
		if (n == 0)
			return err_set(err, ERR_TIMEOUT, "the container engine does not answer");
		if (errno != EINTR)
			return err_sys(err, errno, "cannot wait for the container engine");
	}
}

static int send_request(int fd, const char *method, const char *target, struct str body, int64_t until_ns,
			struct err *err)
{
	char head[1024];
	int n = snprintf(head, sizeof head,
			 "%s " API "%s HTTP/1.0\r\nHost: engine\r\nContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n\r\n",
			 method, target, body.len);
	struct str parts[2] = {str_n(head, (size_t)n), body};

	if (n < 0 || n >= (int)sizeof head)
		return err_set(err, ERR_TOO_LARGE, "a request to the container engine is too long");
	for (size_t i = 0; i < 2; i++)
		while (parts[i].len) {
			ssize_t sent = send(fd, parts[i].ptr, parts[i].len, MSG_NOSIGNAL | MSG_DONTWAIT);
			int r = 0;

			if (sent > 0)
				parts[i] = str_from(parts[i], (size_t)sent);
			else if (errno == EAGAIN)
				r = wait_for(fd, POLLOUT, until_ns, err);
			else if (errno != EINTR)
				r = err_sys(err, errno, "cannot write to the container engine");
			if (r)
				return r;
		}
	return 0;
}

/* Reads until the head is there, or with `whole` the body, too. */
static int read_answer(int fd, struct buf *buf, bool whole, int64_t until_ns, struct engine_head *head, size_t *ret_at,
		       struct err *err)
{
	int at = 0;

	for (;;) {
		char bytes[16 * 1024];
		ssize_t n;
		int r;

		if (!at)
			at = engine_head_parse(buf->ptr ? buf_str(buf) : STR_NONE, head);
		if (at < 0 || buf->overflow)
			return err_set(err, ERR_UNAVAILABLE, "the container engine gave an answer that cannot be read");
		if (at > 0 && (!whole || (head->length >= 0 && (int64_t)buf->len - at >= head->length)))
			break;
		r = wait_for(fd, POLLIN, until_ns, err);
		if (r)
			return r;
		/* what follows a head belongs to the stream */
		n = recv(fd, bytes, whole ? sizeof bytes : 1, 0);
		if (n > 0)
			buf_add(buf, str_n(bytes, (size_t)n));
		else if (n == 0 && at > 0)
			break;
		else if (n == 0 || errno != EINTR)
			return err_set(err, ERR_UNAVAILABLE, "the container engine ended the connection");
	}
	*ret_at = (size_t)at;
	return 0;
}

int engine_call(const struct engine *e, struct arena *arena, const char *method, const char *target, struct str body,
		int64_t timeout_ms, int *ret_status, struct str *ret_body, struct err *err)
{
	int64_t until = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
	FD_SCOPE int fd = engine_connect(e, err);
	struct engine_head head;
	struct buf buf;
	size_t at = 0;
	int r;

	if (fd < 0)
		return -err->kind;
	buf_init(&buf, arena, ANSWER_MAX);
	r = send_request(fd, method, target, body, until, err);
	if (r == 0)
		r = read_answer(fd, &buf, true, until, &head, &at, err);
	if (r == 0) {
		*ret_status = head.status;
		*ret_body = str_from(buf_str(&buf), at);
	}
	return r;
}

int engine_stream(const struct engine *e, const char *target, int *ret_fd, struct err *err)
{
	int64_t until = clock_monotonic_ns() + ASK_MS * NS_PER_MS;
	ARENA_SCOPE struct arena *arena = arena_new();
	int fd = engine_connect(e, err), r;
	struct engine_head head;
	struct buf buf;
	size_t at;

	if (fd < 0)
		return -err->kind;
	buf_init(&buf, arena, ANSWER_MAX);
	r = send_request(fd, "POST", target, STR_NONE, until, err);
	if (r == 0)
		r = read_answer(fd, &buf, false, until, &head, &at, err);
	if (r == 0 && head.status != 200 && head.status != 101) {
		r = read_answer(fd, &buf, true, until, &head, &at, err);
		if (r == 0)
			r = err_set(err, ERR_UNAVAILABLE, "the container engine cannot make the container ready: %.*s",
				    STR_ARG(engine_message(arena, str_from(buf_str(&buf), at))));
	}
	if (r) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

struct str engine_message(struct arena *arena, struct str body)
{
	struct jv *v;
	struct err ignored;

	if (jv_parse(arena, body, &v, &ignored) == 0 && jv_get_str(v, "message").len)
		body = jv_get_str(v, "message");
	else if (!body.len)
		body = STR("no reason was given");
	return utf8_first(str_trim(body), 300);
}

/* --- finding it --- */

static bool answers(struct engine *e, const char *path)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err ignored;
	struct str body;
	int status;

	if (strlen(path) >= sizeof e->path || access(path, W_OK) != 0)
		return false;
	*e = (struct engine){0};
	memcpy(e->path, path, strlen(path));
	if (engine_call(e, arena, "GET", "/version", STR_NONE, ASK_MS, &status, &body, &ignored) != 0 || status != 200)
		return false;
	e->is_podman = memmem(body.ptr, body.len, "Podman", 6) != NULL;
	if (geteuid() != 0 && engine_call(e, arena, "GET", "/info", STR_NONE, ASK_MS, &status, &body, &ignored) == 0 &&
	    status == 200)
		e->is_rootless = memmem(body.ptr, body.len, "name=rootless", 13) != NULL;
	return true;
}

int engine_open(struct engine *e, struct err *err)
{
	const char *named = env_process("DOCKER_HOST"), *run = env_process("XDG_RUNTIME_DIR");
	char own[200];

	if (named && *named) {
		if (strncmp(named, "unix://", 7) != 0)
			return err_set(err, ERR_UNSUPPORTED,
				       "DOCKER_HOST is \"%.100s\"; only an engine on a socket of this machine "
				       "(unix://PATH) can see the files",
				       named);
		return answers(e, named + 7)
			       ? 0
			       : err_set(err, ERR_UNSUPPORTED, "no container engine answers at %.100s", named);
	}
	snprintf(own, sizeof own, "%s/podman/podman.sock", run ? run : "");
	if (answers(e, "/var/run/docker.sock") || answers(e, "/run/podman/podman.sock") || (run && answers(e, own)))
		return 0;
	return err_set(
		err, ERR_UNSUPPORTED,
		"no container engine answers at /var/run/docker.sock or /run/podman/podman.sock; start Docker or "
		"Podman's service, or name its socket in DOCKER_HOST");
}
