/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that close themselves: `FD_SCOPE int fd = open(…);` (an fd never lives in an arena). */
#ifndef STEAD_BASE_FD_H
#define STEAD_BASE_FD_H

#include <errno.h>
#include <unistd.h>

static inline void fd_cleanup(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
}
#define FD_SCOPE __attribute__((cleanup(fd_cleanup)))

#endif
