/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes out. Replies of quick calls pile up in one buffer while more requests are waiting to be read, and leave in
 * one write: a system call costs more than a small call does. Whoever is about to wait flushes first. A peer that does
 * not read blocks the writer, and with it the reading of more requests: that bounds memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/limits.h"
#include "mcp/server.h"

#define FLUSH_AT (64 * KIB)
#define KEEP_MAX (512 * KIB)
/* The largest result (a resource of MCP_RESOURCE_MAX bytes, every byte escaped) fits several times. */
#define OUT_MAX (1024 * MIB)
/* A pipe holds 64 KiB by itself, which a few dozen answers fill. With more room the server continues working while the
   client reads, instead of being woken for every piece that was taken out. */
#define PIPE_ROOM (512 * KIB)

void out_init(struct out *out, int fd)
{
	pthread_mutex_init(&out->lock, NULL);
	buf_init(&out->buf, NULL, OUT_MAX);
	out->fd = fd;
	if (fd >= 0)
		(void)fcntl(fd, F_SETPIPE_SZ,
			    (int)PIPE_ROOM); /* refused for anything but a pipe, and past the user's limit */
	atomic_init(&out->broken, false);
}

void out_release(struct out *out)
{
	buf_release(&out->buf);
	pthread_mutex_destroy(&out->lock);
}

static void write_all(struct out *out)
{
	struct str rest = buf_str(&out->buf);

	if (out->push) {
		out->push(out->push_arg, rest);
		rest.len = 0;
	}
	while (rest.len && !atomic_load(&out->broken)) {
		ssize_t n = write(out->fd, rest.ptr, rest.len);

		if (n >= 0)
			rest = str_from(rest, (size_t)n);
		else if (errno == EAGAIN)
			poll(&(struct pollfd){.fd = out->fd, .events = POLLOUT}, 1, -1);
		else if (errno != EINTR)
			atomic_store(&out->broken, true);
	}
	if (out->buf.cap > KEEP_MAX)
		buf_release(&out->buf);
	buf_clear(&out->buf);
}

struct buf *out_begin(struct out *out)
{
	pthread_mutex_lock(&out->lock);
	return &out->buf;
}

void out_end(struct out *out, bool now)
{
	if (!out->collects && out->buf.len && (now || out->buf.len >= FLUSH_AT))
		write_all(out);
	pthread_mutex_unlock(&out->lock);
}

void out_flush(struct out *out)
{
	out_begin(out);
	out_end(out, true);
}
