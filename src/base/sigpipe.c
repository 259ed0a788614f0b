/* SPDX-License-Identifier: Apache-2.0 */
/* SIGPIPE of a write goes to the thread that writes: blocked there, it waits, and is taken before the mask is put back.
 */
#include "base/sigpipe.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static sigset_t only_sigpipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

void sigpipe_hold(struct sigpipe *ret)
{
	sigset_t pipe = only_sigpipe(), pending;

	sigemptyset(&pending);
	sigpending(&pending);
	ret->pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &ret->before);
}

void sigpipe_release(const struct sigpipe *held)
{
	const struct timespec none = {0};
	sigset_t pipe = only_sigpipe();
	int saved = errno;

	while (!held->pending && (sigtimedwait(&pipe, NULL, &none) == SIGPIPE || errno == EINTR))
		continue;
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
	errno = saved;
}

ssize_t sigpipe_write(int fd, const void *bytes, size_t len)
{
	struct sigpipe held;
	ssize_t n;

	sigpipe_hold(&held);
	n = write(fd, bytes, len);
	sigpipe_release(&held);
	return n;
}
