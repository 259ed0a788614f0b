/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstead: a workspace for AI agents, as a C library. Plain C11.
 *
 * Thread-safe: one handle may be used by any number of threads at once. No global state, no signal handlers, no
 * output on stdout or stderr. Strings that a function returns are allocated for the caller and freed with
 * stead_free(). Sizes are bytes; text is UTF-8.
 *
 * A handle belongs to the process that opened it: after fork() the child opens its own (both may have the same
 * workspace open). stead_close() must not run beside another call on the same handle.
 */
#ifndef STEAD_H
#define STEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEAD_VERSION "0.1.0"

#if defined(__GNUC__)
#define STEAD_API __attribute__((visibility("default")))
#else
#define STEAD_API
#endif

/* What went wrong, from every function that returns int: 0 is success. The values are stable. */
enum stead_error_kind {
	STEAD_OK = 0,
	STEAD_INVALID = 1,
	STEAD_NOT_FOUND = 2,
	STEAD_EXISTS = 3,
	STEAD_CONFLICT = 4,
	STEAD_DENIED = 5,
	STEAD_UNAUTHENTICATED = 6,
	STEAD_TOO_LARGE = 7,
	STEAD_UNSUPPORTED = 8,
	STEAD_RATE_LIMITED = 9,
	STEAD_TIMEOUT = 10,
	STEAD_CANCELLED = 11,
	STEAD_UNAVAILABLE = 12,
	STEAD_CORRUPT = 13,
	STEAD_QUOTA = 14,
	STEAD_INTERNAL = 15
};

struct stead_error {
	int kind;          /* enum stead_error_kind */
	char message[480]; /* one sentence that says what to do */
};

/* All may be NULL; then the environment (STEAD_STORE, …) is not read: the library has no hidden inputs. */
struct stead_options {
	const char *store;     /* "disk:./workspaces", "memory:"; NULL: the person's data directory */
	const char *workspace; /* NULL: "default" */
	const char *user, *agent, *session;
	const char *dialect;   /* NULL: native tools */
	const char *root;      /* NULL: "files" */
	const char *files_dir; /* a directory of the person's own as the file area */
	int create;            /* initialise the workspace when it is missing */
	int relaxed;           /* do not wait for the disk */
};

struct stead;

STEAD_API int stead_open(const struct stead_options *options, struct stead **ret_stead, struct stead_error *error);
STEAD_API void stead_close(struct stead *stead);

/* Calls a tool. `arguments` is a JSON object (NULL: {}). `ret_text` is what a model would read, `ret_json` the
   structured result; either may be NULL. When the tool refuses, the kind and sentence are in `error`, and ret_text (if
   wanted) has the sentence with its details. */
STEAD_API int stead_call(struct stead *stead, const char *tool, const char *arguments, char **ret_text, char **ret_json,
			 struct stead_error *error);
/* The tool table as a JSON array. */
STEAD_API int stead_tools(struct stead *stead, char **ret_json, struct stead_error *error);

struct stead_stat {
	int is_directory;
	uint64_t size;
	int64_t mtime_ns;
	char version[64];
};

/* Paths are relative to the tool root. `ret_data` has a NUL behind it that `ret_size` does not count. */
STEAD_API int stead_read(struct stead *stead, const char *path, char **ret_data, size_t *ret_size,
			 struct stead_error *error);
/* `if_version`: NULL writes in any case, "" only when the file does not exist, else only over that version. */
STEAD_API int stead_write(struct stead *stead, const char *path, const void *data, size_t size, const char *if_version,
			  struct stead_stat *ret_stat, struct stead_error *error);
STEAD_API int stead_stat(struct stead *stead, const char *path, struct stead_stat *ret_stat, struct stead_error *error);
/* Calls `entry` for each file and directory of one level, in order; it returns non-zero to stop. */
STEAD_API int stead_list(struct stead *stead, const char *path,
			 int (*entry)(void *arg, const char *path, const struct stead_stat *stat), void *arg,
			 struct stead_error *error);

struct stead_event {
	const char *operation; /* "write", "append", "remove", "move", "copy" */
	const char *path;
	const char *to; /* move, copy; else NULL */
};

/* Called on the thread that made the change, after it. Returns a handle for stead_unsubscribe. */
STEAD_API uint64_t stead_subscribe(struct stead *stead, void (*listener)(void *arg, const struct stead_event *event),
				   void *arg);
/* When it returns, the listener is not running and will not run again. Not to be called from a listener. */
STEAD_API void stead_unsubscribe(struct stead *stead, uint64_t handle);

STEAD_API void stead_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
