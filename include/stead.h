/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstead: a workspace for AI agents, as a C library. Plain C11; docs/library.md has an example for each part.
 *
 * - Every function that returns int returns STEAD_OK or the kind of its error; on failure `error` (may be NULL) has the
 *   sentence. Results (`ret_…`) are written only on success; pass NULL for those that you do not need.
 * - Every struct that the caller fills in begins with its own size: `struct stead_options options = {.size = sizeof
 *   options, …};`. Later versions add fields at the end, and zero always means "as before".
 * - Strings are UTF-8, sizes are bytes, and what a function allocates for the caller is freed with stead_free().
 * - One handle may be used by any number of threads at once. Only stead_close() must not run during another call on the
 *   same handle. After fork() the child opens its own handles.
 * - The library prints nothing and installs no signal handlers. docs/library.md lists every environment variable and
 *   file that it reads; stead_set_environment() replaces the environment.
 * - If memory runs out, the process ends with abort(), after the function given to stead_set_fatal(). File contents are
 *   an exception: a read that does not fit in memory fails as STEAD_TOO_LARGE.
 */
#ifndef STEAD_H
#define STEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEAD_VERSION        "0.1.0"
#define STEAD_VERSION_NUMBER 100 /* 10000 * major + 100 * minor + patch */

#if defined(__GNUC__)
#define STEAD_API __attribute__((visibility("default")))
#else
#define STEAD_API
#endif

/* STEAD_VERSION of the library that runs, which may be newer than the header. */
STEAD_API const char *stead_version(void);

/* The values are stable; new ones are added at the end. */
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
	int retryable;     /* the same call may succeed if it is made again */
	char message[480]; /* one sentence that says what to do */
};

struct stead;        /* an open workspace */
struct stead_cancel; /* a request to end calls early */

/* --- opening --- */

struct stead_options {
	size_t size;
	const char *store;     /* "disk:./workspaces", "memory:", "s3://…"; NULL: the person's data directory */
	const char *workspace; /* NULL: "default" */
	const char *user, *agent, *session; /* who works in it; NULL: nobody in particular */
	const char *dialect;                /* whose names the tools have; NULL: Stead's own */
	const char *root;            /* what "/" is: "files", "workspace", "task:KEY"; NULL: the dialect's, "files" */
	const char *files_dir;       /* one of the person's directories, instead of the file area */
	int create;                  /* create the workspace if it is missing */
	int relaxed;                 /* do not wait for the disk: a power cut may lose the latest changes */
	int64_t timeout_ms;          /* for opening; 0: none */
	struct stead_cancel *cancel; /* for opening */
};

/* `options` NULL: all defaults. */
STEAD_API int stead_open(const struct stead_options *options, struct stead **ret_stead, struct stead_error *error);
/* The same workspace for another user, agent and session (each may be NULL), with the same tools. It shares what `of`
   has open, so thousands are cheap: nothing is read, unless `files_dir` was given. Handles may be closed in any order.
 */
STEAD_API int stead_open_for(struct stead *of, const char *user, const char *agent, const char *session,
			     struct stead **ret_stead, struct stead_error *error);
/* NULL is allowed. */
STEAD_API void stead_close(struct stead *stead);

/* --- how a call is made --- */

/* Every call that may wait takes one; NULL: no deadline, no cancellation, no condition. */
struct stead_call_options {
	size_t size;
	int64_t timeout_ms;          /* a call that takes longer fails as STEAD_TIMEOUT; 0: no limit */
	struct stead_cancel *cancel; /* a call that it ends fails as STEAD_CANCELLED; may be shared by many calls */
	const char *call_id;         /* recorded with each change, for undo by call; NULL: a tool call gets a new one */
	const char *if_version;      /* write, append, remove, move: change the file only when it has this version, else
					STEAD_CONFLICT; "": only when there is no file, else STEAD_EXISTS. Other calls
					refuse it. */
};

/* NULL if memory runs out. */
STEAD_API struct stead_cancel *stead_cancel_new(void);
/* Ends the calls that have it, and all later ones. From any thread or signal handler, any number of times. */
STEAD_API void stead_cancel(struct stead_cancel *cancel);
/* After the last call that has it has returned. */
STEAD_API void stead_cancel_free(struct stead_cancel *cancel);

/* --- tools --- */

/* Calls a tool. `arguments` is a JSON object (NULL: {}). `ret_text` is what a model would read, `ret_json` the
   structured result, which may be NULL. If the tool itself fails, ret_text is set too: the sentence and its details. */
STEAD_API int stead_call(struct stead *stead, const struct stead_call_options *how, const char *tool,
			 const char *arguments, char **ret_text, char **ret_json, struct stead_error *error);
/* The tool table as a JSON array of {name, title, description, inputSchema, …}. */
STEAD_API int stead_tools(struct stead *stead, char **ret_json, struct stead_error *error);

/* --- the agent --- */

struct stead_agent;

/* One of the program's own tools, for its agent. */
struct stead_tool {
	size_t size;
	const char *name, *description;
	const char *input_schema; /* JSON Schema of its arguments, an object */
	int reads_only;           /* it changes nothing, and may be called on several threads at once */
	/* Gets arguments that match the schema, as JSON. Returns 0, or non-zero if it failed; *ret_text is the result
	   or the reason, allocated with malloc(); the library frees it. */
	int (*call)(void *arg, const char *arguments, char **ret_text);
	void *arg;
};
struct stead_agent_options {
	size_t size;
	const char *model, *base_url, *prompt, *dialect; /* NULL: as agent.yaml says */
	const struct stead_tool *tools;
	size_t tool_count;
};
/* `options` NULL: all defaults. STEAD_EXISTS names every tool whose name is taken. Close the agent before the
   workspace. */
STEAD_API int stead_agent_open(struct stead *stead, const struct stead_agent_options *options,
			       struct stead_agent **ret_agent, struct stead_error *error);
/* NULL is allowed. */
STEAD_API void stead_agent_close(struct stead_agent *agent);

struct stead_turn {
	size_t size;
	const char *session, *text; /* text NULL: finish the last turn */
	/* Gets what happens as JSON: {event: "text" | "call" | "result" | …}; NULL: nobody listens. */
	void (*event)(void *arg, const char *json);
	/* Asked before a call that needs approval: positive allows it, negative refuses it, 0 leaves it for later;
	   NULL: the turn waits (stead approvals). */
	int (*approve)(void *arg, const char *json);
	void *arg;
};
/* One turn. `ret_answer` is the answer, `ret_json` the whole result with steps and usage; either may be NULL. */
STEAD_API int stead_agent_run(struct stead_agent *agent, const struct stead_call_options *how,
			      const struct stead_turn *turn, char **ret_answer, char **ret_json,
			      struct stead_error *error);

/* --- files: paths are relative to the root; parent directories come and go with their files --- */

struct stead_stat {
	int is_directory;
	uint64_t size;
	int64_t mtime_ns;     /* since 1970, UTC */
	char version[320];    /* changes whenever the bytes change; opaque; empty for a directory */
	uint64_t reserved[4]; /* 0 */
};

STEAD_API int stead_stat(struct stead *stead, const struct stead_call_options *how, const char *path,
			 struct stead_stat *ret_stat, struct stead_error *error);
/* Calls `entry` for each file and directory of one level, in order, with its full path. If it returns non-zero, the
   list ends early, and stead_list() succeeds. */
STEAD_API int stead_list(struct stead *stead, const struct stead_call_options *how, const char *path,
			 int (*entry)(void *arg, const char *path, const struct stead_stat *stat), void *arg,
			 struct stead_error *error);

/* The whole file, in memory that the caller frees; a NUL follows it that `ret_size` does not count. */
STEAD_API int stead_read(struct stead *stead, const struct stead_call_options *how, const char *path, char **ret_data,
			 size_t *ret_size, struct stead_stat *ret_stat, struct stead_error *error);
/* As pread(): fills `buffer` from `offset` on. `*size` is its capacity, and then the number of bytes read: fewer only
   at the end. */
STEAD_API int stead_read_at(struct stead *stead, const struct stead_call_options *how, const char *path,
			    uint64_t offset, void *buffer, size_t *size, struct stead_error *error);
struct stead_sink {
	size_t size;
	/* Takes the next bytes. Non-zero ends the call as STEAD_CANCELLED. It must not call the library. */
	int (*take)(void *arg, const void *bytes, size_t count);
	void *arg;
	uint64_t offset, length; /* the part to read; length 0: to the end */
};
/* In pieces and bounded memory; all pieces are of one version of the file. */
STEAD_API int stead_read_stream(struct stead *stead, const struct stead_call_options *how, const char *path,
				const struct stead_sink *sink, struct stead_stat *ret_stat, struct stead_error *error);

/* All or nothing: a reader sees the old file or the new one. */
STEAD_API int stead_write(struct stead *stead, const struct stead_call_options *how, const char *path, const void *data,
			  size_t size, struct stead_stat *ret_stat, struct stead_error *error);
/* Adds to the end of the file, which need not exist. Other writers' bytes are neither lost nor split. */
STEAD_API int stead_append(struct stead *stead, const struct stead_call_options *how, const char *path,
			   const void *data, size_t size, struct stead_stat *ret_stat, struct stead_error *error);
struct stead_source {
	size_t size;
	/* As read(): up to `room` bytes, 0 at the end, negative ends the call as STEAD_CANCELLED and nothing is
	   written. It must not call the library. */
	ptrdiff_t (*give)(void *arg, void *buffer, size_t room);
	int (*rewind)(void *arg); /* starts again, 0 on success; NULL: cannot, so a failed attempt is not repeated */
	void *arg;
};
/* In pieces and bounded memory; also all or nothing. */
STEAD_API int stead_write_stream(struct stead *stead, const struct stead_call_options *how, const char *path,
				 const struct stead_source *source, struct stead_stat *ret_stat,
				 struct stead_error *error);

/* Removes a file, or with `recursive` a directory and everything in it. */
STEAD_API int stead_remove(struct stead *stead, const struct stead_call_options *how, const char *path, int recursive,
			   uint64_t *ret_files, struct stead_error *error);
/* Moves a file or a directory. If `to` exists, this fails as STEAD_EXISTS; with `replace`, a file replaces it. */
STEAD_API int stead_move(struct stead *stead, const struct stead_call_options *how, const char *from, const char *to,
			 int replace, struct stead_stat *ret_stat, struct stead_error *error);

/* --- events --- */

struct stead_event {
	const char *operation; /* "write", "append", "remove", "move", "copy" */
	const char *path;
	const char *to; /* move, copy; else NULL */
};

/* `listener` is called after each change that is made through this handle, on the thread that made it. It may call the
   library. */
STEAD_API int stead_subscribe(struct stead *stead, void (*listener)(void *arg, const struct stead_event *event),
			      void *arg, uint64_t *ret_handle, struct stead_error *error);
/* When it returns, the listener is not running and will not run again. Do not call it from a listener. */
STEAD_API void stead_unsubscribe(struct stead *stead, uint64_t handle);

/* --- the process: set these before the first stead_open() --- */

/* Called with one sentence before abort(), when memory ran out or the library found a bug in itself. It must not call
   the library. NULL: nothing is called. */
STEAD_API void stead_set_fatal(void (*hook)(const char *message));
/* Called instead of getenv(), from any thread; what it returns must stay valid. A function that always returns NULL
   makes the library independent of the environment. NULL: getenv(). */
STEAD_API void stead_set_environment(const char *(*environment)(const char *name));

STEAD_API void stead_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
