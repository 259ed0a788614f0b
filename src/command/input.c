/* SPDX-License-Identifier: Apache-2.0 */
#include "command/input.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"

static int pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct input *input = arg;
	ssize_t n;

	do
		n = read(input->fd, buf, cap);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "read the input");
	input->done += (uint64_t)n;
	if (input->ctx)
		ctx_progress(input->ctx, input->done, 0, STR("bytes"));
	*ret_len = (size_t)n;
	return 0;
}

static int seek_start(void *arg, struct err *err)
{
	struct input *input = arg;

	input->done = 0;
	return lseek(input->fd, 0, SEEK_SET) == 0 ? 0 : err_sys(err, errno, "read the input again");
}

struct source input_source(struct input *input)
{
	bool seekable = lseek(input->fd, 0, SEEK_CUR) == 0;

	return (struct source){.pull = pull, .rewind = seekable ? seek_start : NULL, .arg = input};
}

bool input_announce(int fd)
{
	bool asks = isatty(fd);

	if (asks && isatty(STDERR_FILENO))
		fputs("reading from the terminal; end with Ctrl-D\n", stderr);
	return asks;
}

int input_read(struct arena *arena, int fd, size_t max, struct str *ret, struct err *err)
{
	struct input input = {.fd = fd};
	struct buf b;
	size_t n = 1;

	input_announce(fd);
	buf_init(&b, arena, max + STREAM_CHUNK);
	while (n && b.len <= max) {
		int r = pull(&input, buf_reserve(&b, STREAM_CHUNK), STREAM_CHUNK, &n, err);

		if (r)
			return r;
		b.len += n;
	}
	if (b.len > max)
		return err_set(err, ERR_TOO_LARGE, "the input is larger than %zu bytes; split it", max);
	*ret = b.len ? buf_str(&b) : STR("");
	return 0;
}
