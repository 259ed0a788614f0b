/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family is everything that a workspace can do with one kind of thing: notes, tasks, memory, files. It is one folder
 * of src/home: the model of its files, its tools, its commands, its page in docs/. The folder exports one table, and
 * src/home/families.txt lists the folders. Nothing else in the tree names a family, so adding one needs a folder and
 * one line (docs/adding-a-family.md). The keys of agent.yaml that a family acts on are in config.json of its folder.
 */
#ifndef STEAD_TOOL_FAMILY_H
#define STEAD_TOOL_FAMILY_H

#include "tool/tool.h"

struct command;
struct search_source;
struct prompt_section;

/* Lines of `stead doctor` and `stead fsck`: [{workspace?, check, ok, detail, fix?}]. */
struct findings {
	struct arena *arena;
	struct jv *list;
	struct str workspace; /* empty: they are about no single one */
};
/* `fix` says what to do; NULL: all is well. */
void finding_add(const struct findings *findings, const char *check, struct str detail, const char *fix);
/* What went wrong while it was being checked. */
void finding_error(const struct findings *findings, const char *check, const struct err *err, const char *fix);
/* One line for each of `problems`: [{path, problem}]. */
void finding_problems(const struct findings *findings, const char *check, const struct jv *problems, const char *fix);

struct family {
	const char *name;                    /* "notebook": also the name of its toolset (`group:notebook`) */
	const char *about;                   /* one sentence for docs/tools.md */
	const struct tool *tools;            /* ends with {0}, as do the other tables; NULL: none */
	const struct command *commands;      /* command/command.h */
	const struct search_source *search;  /* files that are searched, and the documents in them */
	const struct prompt_section *prompt; /* its sections of the prompt */
	/* What it keeps for an open workspace: made at its first use, ended with the workspace. */
	void *(*open)(struct workspace *ws);
	void (*close)(void *state);
	bool has_threads; /* that use the workspace: it is ended before what the others keep */
	/* Asked before each tool that changes something, whatever its family: an error refuses the call. */
	int (*before_change)(struct call *call, const struct tool *tool, struct err *err);
	/* Given each successful result of a tool with TOOL_PARKS: it may replace it. */
	int (*after_call)(struct call *call, const struct tool *tool, const struct jv *args, struct outcome *out,
			  struct err *err);
	/* Texts that a person can choose in an MCP client: adds {name, title?, description} to `list`. A prompt that is
	   not its own is ERR_NOT_FOUND. */
	int (*list_prompts)(struct call *call, struct jv *list, struct err *err);
	int (*get_prompt)(struct call *call, struct str name, struct str *ret_text, struct err *err);
	/* What commands see if the tool root belongs to this family and has more in it than the workspace's files: a
	   guard, which the caller destroys. *ret stays NULL if there is no more. */
	int (*files)(struct workspace *ws, struct ctx *ctx, struct store **ret, struct err *err);
	/* Adds what `stead doctor` should report about it; nothing if it has no files here. */
	void (*check)(struct workspace *ws, struct ctx *ctx, const struct findings *findings);
};

/* All of them in the order of families.txt, NULL at the end. */
extern const struct family *const families[];

/* What the family keeps for this workspace, opened at its first use. */
void *family_state(const struct family *family, struct workspace *ws);

/* The files of the tool root with everything that a family shows there; NULL: they are the workspace's files. The
   caller destroys them. */
int family_files(struct workspace *ws, struct ctx *ctx, struct store **ret, struct err *err);

#endif
