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
	TOOL_LONG = 16,         /* may take long: runs alongside other calls, with progress and cancellation */
	TOOL_PARKS = 32,        /* a result over the offload thresholds is parked as an artifact */
	TOOL_PLANS = 64,        /* part of planning: allowed while plan mode is on, although it changes something */
	TOOL_BASIC = 128,       /* a client of a workspace gets it by default */
	TOOL_BASIC_FILES = 256, /* a client of a directory of the person's own (--files) gets it by default */
	TOOL_NEEDS_HOME = 512,  /* cannot work on a directory of the person's own, and is not offered there */
	TOOL_RUNS = 2048,       /* runs a program, which acts outside the workspace where the sandbox lets it */
	TOOL_STAYS = 4096,      /* what it starts continues after the call, and ends with the process */
	TOOL_FIRST = 1024,      /* used in nearly every turn: clients that load tools when needed load it at once */
};

#define TOOL_BASICS (TOOL_BASIC | TOOL_BASIC_FILES)

/* What a handler works with. */
struct call {
	struct ctx *ctx;
	struct workspace *ws;
	struct store *files;       /* workspace_files(ws) */
	const struct toolset *set; /* through which it is called: what else the caller can call */
};

/* An image or a sound, for clients that can show one to a model, or the bytes of any other file; the text says what it
   is for all others. */
struct media {
	struct str mime; /* "image/png"; empty: there is none */
	struct str data; /* base64 */
	struct str path; /* of a file that is neither */
};

/* What a handler gives back, all in the call's arena. */
struct outcome {
	struct media media;
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
	/* Native tools: whether it can work in this workspace; one that cannot is not offered. NULL: always. */
	bool (*available)(struct workspace *ws);
	const char *setup; /* what a person does to make it available: "set web.fetch.enabled in agent.yaml" */
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
/* Which tools of a set a client gets. */
struct toolset_choice {
	/* "default", "all", and names of tools, families (files) and parts of them (notes), with ',' between them.
	   Empty: as tools.sets in agent.yaml says; without that, all when agent.yaml allows tools by name, else
	   "default": of the native tools those with TOOL_BASIC or TOOL_BASIC_FILES, of a dialect all. */
	struct str sets;
	bool read_only; /* only those that change nothing */
};
/* ERR_INVALID names the nearest name when one is unknown. `of` must outlive the new set. */
int toolset_choose(const struct toolset *of, const struct toolset_choice *choice, struct toolset **ret_set,
		   struct err *err);
/* Whether `sets` of a toolset_choice names what the native tools have, and whether there is such a dialect (empty: the
   native one). */
int toolset_choice_check(struct str sets, struct err *err);
int dialect_check(struct str dialect, struct err *err);
/* The traits of a dialect's tool; 0 when there is no such tool. */
unsigned dialect_traits(struct str dialect, struct str tool);
/* The name of the `index`-th dialect; the first is "native"; NULL after the last. */
const char *toolset_dialect(size_t index);
/* What '/' is for a dialect's tools by default, for workspace_opts.root: "workspace", "task:default",
   …; empty for the file area, and for a dialect that is not known. */
struct str dialect_root(struct str dialect);
/* What a dialect expects of a workspace: its root, unless one is given, and its layout. */
void dialect_opts(struct str dialect, struct workspace_opts *opts);

/* A tool as a client sees it. Order is stable. */
struct tool_info {
	struct str name, title, description;
	const struct jv *input_schema, *output_schema; /* output_schema may be NULL */
	unsigned traits;
};
size_t toolset_count(const struct toolset *set);
const struct tool_info *toolset_at(const struct toolset *set, size_t index);
const struct tool_info *toolset_find(const struct toolset *set, struct str name);
/* The JSON Schema of the arguments of a tool of a table: an object, which the caller may change. */
struct jv *tool_args_schema(struct arena *arena, const struct tool *tool);
/* How the paths of its tools begin, such as "/task"; NULL: they are relative to '/'. */
const char *toolset_top(const struct toolset *set);

/* The same for sets with the same tools. */
uint64_t toolset_hash(const struct toolset *set);
/* What the set calls a native tool; NULL when it has none that is the same. */
const char *toolset_name_of(const struct toolset *set, struct str native);
/* True for the name of a native tool, whether or not it is offered. */
bool tool_is_native(struct str name);
/* Whether a list of names (allow, deny) has a builtin of OpenPaw, or a group, that the tool is part of. The agent asks
   it about tools that it adds to those of the families, such as spawn_agent. */
bool tool_list_has_builtin_of(const struct jv *list, struct str tool);
bool tool_is_of_builtin(struct str tool);
/* ERR_DENIED: agent.yaml or tools.json takes this native tool away, so nothing else may have its power either. */
int tool_check_allowed(struct workspace *ws, const char *native, struct err *err);

struct tool_result {
	bool is_error;
	struct err err;    /* when is_error */
	struct str text;   /* for the model; on error the sentence, then details */
	struct str detail; /* on error: what the text has besides the sentence */
	struct media media;
	const struct jv *value; /* structured content, or NULL (in dialects without it, and nearly always on error) */
};

/* Runs a tool: check arguments, call, render, park what is too large. What it changes is recorded under ctx->actor; an
   empty actor is filled from the workspace, an empty call id with a new one. `args` NULL: {}. Everything in ret_result
   is in ctx->arena. Fails (ERR_NOT_FOUND) only for a name that is not in the set; what goes wrong in a tool is a
   result. */
int toolset_call(struct toolset *set, struct ctx *ctx, struct str name, const struct jv *args,
		 struct tool_result *ret_result, struct err *err);

#endif
