/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to somebody who may be gone. That is the error EPIPE; the signal that comes with it would end a program that
 * does not ignore it, such as one that uses the library. Only the calling thread is touched.
 */
#ifndef STEAD_BASE_SIGPIPE_H
#define STEAD_BASE_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct sigpipe {
	sigset_t before;
	bool pending;
};

/* Nothing that is written until the release raises SIGPIPE. */
void sigpipe_hold(struct sigpipe *ret);
void sigpipe_release(const struct sigpipe *held);
/* write(2) without the signal. (A socket has MSG_NOSIGNAL for that.) */
ssize_t sigpipe_write(int fd, const void *bytes, size_t len);

#endif
