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

/* A path that cannot be noted must not show a directory that a layer would take off: it is made unreadable. */
static void note_path(struct err *err, size_t at, size_t len)
{
	for (size_t i = 0; i < ERR_PATHS_MAX; i++)
		if (err->paths[i].len == 0) {
			err->paths[i].at = (uint16_t)at;
			err->paths[i].len = (uint16_t)len;
			return;
		}
	memset(err->msg + at, '?', len);
}

/* A message is one line: control characters from a name or a file become '?'. The marks of ERR_PATH are taken out, and
   the paths between them are noted. */
static void finish(struct err *err, int written)
{
	size_t out = 0, begin = SIZE_MAX;

	if (written < 0 || (size_t)written >= sizeof(err->msg))
		drop_cut_tail(err->msg, strlen(err->msg));
	for (const char *p = err->msg; *p; p++) {
		if (*p == '\x1f' && begin < out)
			note_path(err, begin, out - begin);
		if (*p == '\x1e' || *p == '\x1f')
			begin = *p == '\x1e' ? out : SIZE_MAX;
		else
			err->msg[out++] = (unsigned char)*p < 0x20 || *p == 0x7F ? '?' : *p;
	}
	err->msg[out] = '\0';
	if (begin < out) /* the message was cut within a path */
		note_path(err, begin, out - begin);
}

int(err_set)(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;
	int n;

	err->kind = kind;
	err->detail = DETAIL_NONE;
	err->sys = 0;
	err->retryable = kind == ERR_UNAVAILABLE || kind == ERR_RATE_LIMITED;
	memset(err->paths, 0, sizeof(err->paths));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	finish(err, n);
	return -(int)kind;
}

int(err_sys)(struct err *err, int sys, const char *fmt, ...)
{
	char text[sizeof(err->msg)], reason[96];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(err, err_kind_of_errno(sys), "%s: %s", text, strerror_r(sys, reason, sizeof(reason)));
	err->sys = sys;
	err->retryable = err->kind == ERR_UNAVAILABLE;
	return -(int)err->kind;
}

/* `text` (with marks of ERR_PATH), `separator`, and the message that was there. */
static void put_before(struct err *err, const char *text, const char *separator)
{
	const struct err old = *err;
	size_t len;
	int n;

	memset(err->paths, 0, sizeof(err->paths));
	n = snprintf(err->msg, sizeof(err->msg), "%s%s", text, separator);
	finish(err, n);
	len = strlen(err->msg);
	n = snprintf(err->msg + len, sizeof(err->msg) - len, "%s", old.msg);
	if (n < 0 || (size_t)n >= sizeof(err->msg) - len)
		drop_cut_tail(err->msg, strlen(err->msg));
	for (size_t i = 0, end = strlen(err->msg); i < ERR_PATHS_MAX && old.paths[i].len; i++)
		if (old.paths[i].at + len < end)
			note_path(err, old.paths[i].at + len,
				  old.paths[i].at + len + old.paths[i].len < end ? old.paths[i].len
										 : end - old.paths[i].at - len);
}

int(err_prefix)(struct err *err, const char *fmt, ...)
{
	char text[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_before(err, text, ": ");
	if (err->detail == DETAIL_AT_LINE)
		err->detail = DETAIL_NONE;
	return -(int)err->kind;
}

int(err_in_file)(struct err *err, const char *file)
{
	put_before(err, file, err->detail == DETAIL_AT_LINE ? " " : ": ");
	err->detail = DETAIL_NONE;
	return -(int)err->kind;
}

int(err_detail)(struct err *err, enum err_detail detail)
{
	err->detail = detail;
	return -(int)err->kind;
}

void err_leave_dir(struct err *err, struct str dir)
{
	for (size_t i = 0; dir.len && i < ERR_PATHS_MAX && err->paths[i].len; i++) {
		size_t at = err->paths[i].at, cut = dir.len;
		char *path = err->msg + at;

		if (err->paths[i].len < dir.len || memcmp(path, dir.ptr, dir.len) != 0)
			continue;
		if (err->paths[i].len == dir.len)
			path[--cut] = '/'; /* the directory itself is the root of what is shown */
		else if (path[cut++] != '/')
			continue;
		memmove(path, path + cut, strlen(path + cut) + 1);
		err->paths[i].len = (uint16_t)(err->paths[i].len - cut);
		for (size_t k = 0; k < ERR_PATHS_MAX; k++)
			if (err->paths[k].at > at)
				err->paths[k].at = (uint16_t)(err->paths[k].at - cut);
	}
}

struct str err_text(struct arena *arena, const struct err *err)
{
	return arena_str(arena, str_of(err->msg));
}

bool err_mentions(const struct err *err, const char *secret)
{
	return strstr(err->msg, secret) != NULL;
}
