/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool table: a tool is described once (name, arguments, result, traits, handler), and every interface (MCP, CLI,
 * library, later HTTP and the agent loop) serves that table. Arguments are checked against the schema before the
 * handler runs. A result is one value; the text for the model is rendered from it, so the two cannot differ.
 *
 * A dialect is another table over the same handlers: another system's names, arguments, defaults and reply form.
 */
#ifndef STEAD_TOOL_TOOL_H
#define STEAD_TOOL_TOOL_H

#include "base/ctx.h"
#include "text/jv.h"
#include "workspace/workspace.h"

enum {
	TOOL_READS_ONLY = 1,
	TOOL_DESTRUCTIVE = 2,
	TOOL_IDEMPOTENT = 4,
	TOOL_OPEN_WORLD = 8,
	TOOL_LONG = 16,  /* may take long: runs alongside other calls, with progress and cancellation */
	TOOL_PARKS = 32, /* a result over the offload thresholds is parked as an artifact */
	TOOL_PLANS = 64, /* part of planning: allowed while plan mode is on, although it changes something */
};

/* What a handler works with. */
struct call {
	struct ctx *ctx;
	struct workspace *ws;
	struct store *files; /* workspace_files(ws) */
};

/* What a handler gives back, all in the call's arena. */
struct outcome {
	struct jv *value; /* an object that fits the output schema; NULL in dialects without structured content */
	struct jv *failed_value; /* on failure: data for programs, that fits the output schema too; else NULL */
	struct str detail; /* on failure: lines for the model after the error's sentence (nearest text, first lines) */
	struct str text; /* the whole text, when the handler has it already (`ptr` not NULL); on failure it is given in
			    place of the sentence and the detail, for dialects whose wording is fixed */
};

struct tool {
	const char *name, *title, *description;
	const char *args; /* its arguments in the form of tool/schema_text.h; NULL: none */
	/* Gives what "$WORDS" in `args` is: words with '|' between them that depend on the families; NULL: none. */
	struct str (*words)(struct arena *arena);
	const char *result; /* its structured result in the same form; NULL: text alone */
	unsigned traits;
	int (*call)(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);
	/* The text for the model; NULL: the value as JSON. */
	void (*render)(const struct jv *args, const struct jv *value, struct buf *text);
	const char *group; /* "forks": a part of its family that `group:forks` in allow and deny names; NULL: none.
			      In a dialect: the family or the part that it belongs to. */
	/* Dialects, in place of everything but acts_as: the native tool that this one is, as text alone. */
	const char *same_as;
	/* Dialects: the native tools whose power this one uses, separated by blanks. Denying one of them denies it. */
	const char *acts_as;
	/* Native tools whose denial denies this one too, because it could be used in their place. */
	const char *needs;
};

/* The tools that one interface offers: a dialect's table without what configuration denies. Immutable and thread-safe.
 */
struct toolset;

/* `dialect` empty: native. ERR_NOT_FOUND lists the dialects. `ws` is borrowed and must outlive the set. */
int toolset_new(struct workspace *ws, struct str dialect, struct toolset **ret_set, struct err *err);
void toolset_destroy(struct toolset *set);
/* The same tools over another user's handle of the same workspace, sharing what `of` has parsed. `of` and `ws` must
   outlive it. */
struct toolset *toolset_for(struct toolset *of, struct workspace *ws);
/* Those tools of `of` that change nothing. `of` must outlive it. */
struct toolset *toolset_reading(const struct toolset *of);
/* The name of the `index`-th dialect; the first is "native"; NULL after the last. */
const char *toolset_dialect(size_t index);
/* What '/' is for a dialect's tools by default, for workspace_opts.root: "workspace", "task:default",
   …; empty for the file area, and for a dialect that is not known. */
struct str dialect_root(struct str dialect);

/* A tool as a client sees it. Order is stable. */
struct tool_info {
	struct str name, title, description;
	const struct jv *input_schema, *output_schema; /* output_schema may be NULL */
	unsigned traits;
};
size_t toolset_count(const struct toolset *set);
const struct tool_info *toolset_at(const struct toolset *set, size_t index);
const struct tool_info *toolset_find(const struct toolset *set, struct str name);

struct tool_result {
	bool is_error;
	struct err err;         /* when is_error */
	struct str text;        /* for the model; on error the sentence, then details */
	struct str detail;      /* on error: what the text has besides the sentence */
	const struct jv *value; /* structured content, or NULL (in dialects without it, and nearly always on error) */
};

/* Runs a tool: check arguments, call, render, park what is too large. What it changes is recorded under ctx->actor; an
   empty actor is filled from the workspace, an empty call id with a new one. `args` NULL: {}. Everything in ret_result
   is in ctx->arena. Fails (ERR_NOT_FOUND) only for a name that is not in the set; what goes wrong in a tool is a
   result. */
int toolset_call(struct toolset *set, struct ctx *ctx, struct str name, const struct jv *args,
		 struct tool_result *ret_result, struct err *err);

#endif
