/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A function that can fail returns 0 or -kind, takes `struct err *err` last, and writes it on failure only.
 * The message is one sentence for the person or the model: what was attempted, on what, why not, what would work.
 * Lower case, values quoted, no newline, no secret. A level may put a prefix before it, never replace it.
 */
#ifndef STEAD_BASE_ERR_H
#define STEAD_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

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

/* Which case of a kind it is, where code has to know. */
enum err_detail {
	DETAIL_NONE = 0,
	DETAIL_AT_LINE,       /* the message begins with "line N" of a file that it does not name */
	DETAIL_TEXT_ABSENT,   /* an edit: the text to replace does not occur */
	DETAIL_NO_WORKSPACE,  /* a workspace that is to be opened does not exist */
	DETAIL_TEXT_REPEATED, /* an edit: the text to replace occurs more than once */
	DETAIL_MAY_BE_DIR,    /* there is no such file; nobody has asked whether it is a directory */
};

#define ERR_PATHS_MAX 8

/* Code decides by kind and detail. The message is for people and models: only the doors read it; all others show it
   with err_text(). */
struct err {
	enum err_kind kind;
	enum err_detail detail;
	bool retryable; /* the same call may succeed if it is simply made again */
	int sys;        /* errno, or 0 */
	struct {
		uint16_t at, len;
	} paths[ERR_PATHS_MAX]; /* where the message names paths of a store; len 0: unused */
	char msg[480];
};

/* In a format, with STR_ARG(path.s): a path of a store, in quotes or without. A layer that shows a part of another
   store takes its directory off such paths (err_leave_dir()). */
#define ERR_PATH      "\"" ERR_PATH_BARE "\""
#define ERR_PATH_BARE "\x1e%.*s\x1f"

/* Returns -kind, so that `return err_set(err, ERR_CONFLICT, "…")` is one line. */
__attribute__((format(printf, 3, 4))) int err_set(struct err *err, enum err_kind kind, const char *fmt, ...);
/* From an errno value; ": <reason>" is added to the text. */
__attribute__((format(printf, 3, 4))) int err_sys(struct err *err, int sys, const char *fmt, ...);
/* Puts "<prefix>: " before the message; returns -err->kind. */
__attribute__((format(printf, 2, 3))) int err_prefix(struct err *err, const char *fmt, ...);
/* The same with the name of a file: "<file> line N: …" with DETAIL_AT_LINE, else "<file>: …". */
int err_in_file(struct err *err, const char *file);
/* Sets the detail; returns -err->kind. */
int err_detail(struct err *err, enum err_detail detail);
/* Takes "dir/" off the paths that the message names; `dir` itself becomes "/". */
void err_leave_dir(struct err *err, struct str dir);
/* The message, to be shown: a copy, with a NUL after it. */
struct str err_text(struct arena *arena, const struct err *err);
/* True when the message contains a secret (which a server may have echoed). */
bool err_mentions(const struct err *err, const char *secret);

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time and cannot know that these never return 0. */
#define ERR_NONZERO(call)                                                                                              \
	__extension__({                                                                                                \
		int r_ = (call);                                                                                       \
		if (r_ == 0)                                                                                           \
			__builtin_unreachable();                                                                       \
		r_;                                                                                                    \
	})
#define err_set(...)     ERR_NONZERO((err_set)(__VA_ARGS__))
#define err_sys(...)     ERR_NONZERO((err_sys)(__VA_ARGS__))
#define err_prefix(...)  ERR_NONZERO((err_prefix)(__VA_ARGS__))
#define err_in_file(...) ERR_NONZERO((err_in_file)(__VA_ARGS__))
#define err_detail(...)  ERR_NONZERO((err_detail)(__VA_ARGS__))
#endif

/* The kind's name as programs see it: "not_found". */
const char *err_kind_name(enum err_kind kind);
enum err_kind err_kind_of_errno(int sys);

#endif
