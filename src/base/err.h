/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A function that can fail returns 0 or -kind, takes `struct err *err` last, and writes it on failure only.
 * The message is one sentence for the person or the model: what was attempted, on what, why not, what would work.
 * Lower case, values quoted, no newline, no secret. A level may put a prefix before it, never replace it.
 */
#ifndef STEAD_BASE_ERR_H
#define STEAD_BASE_ERR_H

#include <stdbool.h>

/* Stable: decides the exit code, the HTTP status, the MCP form and whether to retry. Append only. */
enum err_kind {
	ERR_NONE = 0,
	ERR_INVALID,
	ERR_NOT_FOUND,
	ERR_EXISTS,
	ERR_CONFLICT,
	ERR_DENIED,
	ERR_UNAUTHENTICATED,
	ERR_TOO_LARGE,
	ERR_UNSUPPORTED,
	ERR_RATE_LIMITED,
	ERR_TIMEOUT,
	ERR_CANCELLED,
	ERR_UNAVAILABLE,
	ERR_CORRUPT,
	ERR_QUOTA,
	ERR_INTERNAL,
	ERR_KINDS
};

struct err {
	enum err_kind kind;
	bool retryable; /* the same call may succeed if it is simply made again */
	int sys;        /* errno, or 0 */
	char msg[480];
};

/* Returns -kind, so that `return err_set(err, ERR_CONFLICT, "…")` is one line. */
__attribute__((format(printf, 3, 4))) int err_set(struct err *err, enum err_kind kind, const char *fmt, ...);
/* From an errno value; the text gets ": <reason>" behind it. */
__attribute__((format(printf, 3, 4))) int err_sys(struct err *err, int sys, const char *fmt, ...);
/* Puts "<prefix>: " before the message; returns -err->kind. */
__attribute__((format(printf, 2, 3))) int err_prefix(struct err *err, const char *fmt, ...);

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time and cannot know that these never return 0. */
#define ERR_NONZERO(call)                                                                                              \
	__extension__({                                                                                                \
		int r_ = (call);                                                                                       \
		if (r_ == 0)                                                                                           \
			__builtin_unreachable();                                                                       \
		r_;                                                                                                    \
	})
#define err_set(...)    ERR_NONZERO((err_set)(__VA_ARGS__))
#define err_sys(...)    ERR_NONZERO((err_sys)(__VA_ARGS__))
#define err_prefix(...) ERR_NONZERO((err_prefix)(__VA_ARGS__))
#endif

/* The kind's name as programs see it: "not_found". */
const char *err_kind_name(enum err_kind kind);
enum err_kind err_kind_of_errno(int sys);

#endif
