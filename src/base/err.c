/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[ERR_KINDS] = {
	[ERR_NONE] = "none",
	[ERR_INVALID] = "invalid",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_EXISTS] = "exists",
	[ERR_CONFLICT] = "conflict",
	[ERR_DENIED] = "denied",
	[ERR_UNAUTHENTICATED] = "unauthenticated",
	[ERR_TOO_LARGE] = "too_large",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_RATE_LIMITED] = "rate_limited",
	[ERR_TIMEOUT] = "timeout",
	[ERR_CANCELLED] = "cancelled",
	[ERR_UNAVAILABLE] = "unavailable",
	[ERR_CORRUPT] = "corrupt",
	[ERR_QUOTA] = "quota",
	[ERR_INTERNAL] = "internal",
};

const char *err_kind_name(enum err_kind kind)
{
	return kind < ERR_KINDS ? kind_names[kind] : "internal";
}

enum err_kind err_kind_of_errno(int sys)
{
	switch (sys) {
	case ENOENT:
		return ERR_NOT_FOUND;
	case EEXIST:
		return ERR_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
	case ELOOP:
	case EXDEV:
		return ERR_DENIED;
	case ENOTDIR:
	case EISDIR:
	case EINVAL:
	case ENAMETOOLONG:
	case EILSEQ:
		return ERR_INVALID;
	case ENOSPC:
	case EDQUOT:
		return ERR_QUOTA;
	case EFBIG:
	case E2BIG:
		return ERR_TOO_LARGE;
	case ETIMEDOUT:
		return ERR_TIMEOUT;
	case EINTR:
	case ECANCELED:
		return ERR_CANCELLED;
	case EAGAIN:
	case EBUSY:
	case EMFILE:
	case ENFILE:
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
	case EIO:
		return ERR_UNAVAILABLE;
	case ENOSYS:
	case EOPNOTSUPP:
		return ERR_UNSUPPORTED;
	default:
		return ERR_INTERNAL;
	}
}

/* A message is one line: whatever a name or a file brought in, control characters become '?'. */
static void make_one_line(char *msg)
{
	for (char *p = msg; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			*p = '?';
}

/* snprintf may have cut a code point in half; drop the broken tail. */
static void drop_cut_tail(char *msg, size_t len)
{
	size_t back = 0;

	while (back < 4 && back < len && ((unsigned char)msg[len - 1 - back] & 0xC0) == 0x80)
		back++;
	if (back < len && (unsigned char)msg[len - 1 - back] >= 0xC0) {
		unsigned char lead = (unsigned char)msg[len - 1 - back];
		size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;

		if (back < want)
			msg[len - 1 - back] = '\0';
	}
}

static void finish(struct err *err, int written)
{
	if (written < 0 || (size_t)written >= sizeof(err->msg))
		drop_cut_tail(err->msg, strlen(err->msg));
	make_one_line(err->msg);
}

int(err_set)(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;
	int n;

	err->kind = kind;
	err->sys = 0;
	err->retryable = kind == ERR_UNAVAILABLE || kind == ERR_RATE_LIMITED;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	finish(err, n);
	return -(int)kind;
}

int(err_sys)(struct err *err, int sys, const char *fmt, ...)
{
	char reason[96];
	va_list ap;
	int n;

	err->kind = err_kind_of_errno(sys);
	err->sys = sys;
	err->retryable = err->kind == ERR_UNAVAILABLE;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(err->msg))
		n = (int)sizeof(err->msg) - 1;
	n += snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", strerror_r(sys, reason, sizeof(reason)));
	finish(err, n);
	return -(int)err->kind;
}

int(err_prefix)(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	int n;

	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(err->msg))
		n = (int)sizeof(err->msg) - 1;
	n += snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", old);
	finish(err, n);
	return -(int)err->kind;
}
