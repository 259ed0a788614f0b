/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace: a named home for an agent in a store, opened for one user. Opening composes the stack of stores and
 * reads the configuration; everything that acts on a workspace (tools, doors) starts from this handle. Thread-safe.
 */
#ifndef STEAD_WORKSPACE_WORKSPACE_H
#define STEAD_WORKSPACE_WORKSPACE_H

#include "base/ctx.h"
#include "store/store.h"
#include "workspace/config.h"

struct workspace;

/* Whose conventions the home follows beyond Stead's own. */
enum workspace_layout {
	LAYOUT_STEAD,
	/* AgentScope's: a directory named after a user may have skills/ and subagents/ for that user, all sessions
	   share plans/PLAN.md, and the prompt has its tags. */
	LAYOUT_AGENTSCOPE,
};

struct workspace_opts {
	struct str store_url; /* empty: the person's data directory ($XDG_DATA_HOME/stead/workspaces); a URL, a path,
				 "memory", or "temp" for a directory that goes when the workspace is closed */
	struct str name;      /* empty: "default" */
	struct str user, agent, session;
	struct str files_dir; /* host directory that is the file area instead of files/; empty: none */
	struct str root; /* what '/' is for file tools: "files" (default), "workspace", "task:KEY", or a directory of
			    the workspace */
	enum workspace_layout layout;
	bool person;   /* a person acts and not an agent: what people own can be changed (workspace/rights.h) */
	bool with_git; /* programs of the person work on the files: git's own directory is neither hidden nor fixed */
	bool create;   /* initialise the workspace when it does not exist */
	bool relaxed;  /* no fsync, also when agent.yaml asks for durability */
	/* Of opening alone, with connecting to a server. */
	int64_t deadline_ns; /* clock_monotonic_ns(), 0: none */
	const struct cancel *cancel;
};

/* ^[a-z][a-z0-9_-]{1,63}$ */
bool workspace_name_ok(struct str name);
/* A user, author or session name as one path element; no two names give the same one. */
struct str workspace_encode_name(struct arena *arena, struct str name);
/* The same for the id of an agent or a session, which keeps its capital letters. */
struct str workspace_encode_id(struct arena *arena, struct str id);
/* The store URL that is used when none is given. */
struct str workspace_default_store(struct arena *arena);

int workspace_open(const struct workspace_opts *opts, struct workspace **ret_ws, struct err *err);
void workspace_close(struct workspace *ws);
/* The same workspace for another user, agent or session: shares what `of` has open (connections, the log, the
   configuration), so that ten thousand of them are cheap. `of` must outlive it. */
int workspace_open_for(struct workspace *of, struct str user, struct str agent, struct str session,
		       struct workspace **ret_ws, struct err *err);
/* The same with another directory as '/' of the file tools (as workspace_opts.root; empty: that of `of`). Of the actor
   only user, agent and session count. */
int workspace_open_at(struct workspace *of, struct actor actor, struct str root, struct workspace **ret_ws,
		      struct err *err);

struct str workspace_name(const struct workspace *ws);
enum workspace_layout workspace_layout(const struct workspace *ws);
const struct config *workspace_config(const struct workspace *ws);
/* The settings of the deployment, with which other stores of it are opened. */
const struct env *workspace_env(const struct workspace *ws);
struct actor workspace_actor(const struct workspace *ws);
/* What file tools see: '/' is the tool root, protected paths are absent. */
struct store *workspace_files(struct workspace *ws);
/* The whole workspace for this user, unguarded: for Stead's own data. Never given to a tool's path argument. */
struct store *workspace_home(struct workspace *ws);
/* A number that changes with the files that a workspace is opened with: agent.yaml, tools.json and .env. */
int workspace_settings_version(struct workspace *ws, struct ctx *ctx, uint64_t *ret, struct err *err);
/* The events layer in the stack of workspace_files(): for store_events_listen. */
struct store *workspace_events(struct workspace *ws);
/* The revisions layer below workspace_files(), and where '/' of the file tools is in it. */
struct store *workspace_revisions(struct workspace *ws);
struct wpath workspace_root(const struct workspace *ws);
/* The root was given as task:KEY. */
bool workspace_root_is_task(const struct workspace *ws);
/* What file tools saw after revision `number`: read-only, with the same paths and the same paths hidden. */
struct past_files;
struct past_files *workspace_files_at(struct workspace *ws, uint64_t number, struct store **ret_files);
void workspace_files_at_close(struct past_files *past);
/* Where the leases of this workspace are kept (store/lease.h), unrecorded. The caller destroys it, before the
 * workspace. */
struct store *workspace_leases_new(struct workspace *ws);
/* The same place, but on disk nothing waits for a sync: for leases that mean nothing after a power cut, because their
   holders ended with it, and whose fences nobody keeps. */
struct store *workspace_brief_leases_new(struct workspace *ws);
/* What a family keeps for this handle under `key`: made by `open` at the first use, ended by `close` with the handle,
   before its stores, the newest first. Thread-safe; `open` may ask for other slots. */
void *workspace_slot(struct workspace *ws, const void *key, void *(*open)(struct workspace *ws),
		     void (*close)(void *state));
/* The same for what has threads that use the workspace, and with it any other slot: it is ended before those. */
void *workspace_thread_slot(struct workspace *ws, const void *key, void *(*open)(struct workspace *ws),
			    void (*close)(void *state));
/* True when a part of the workspace is in a store on a server: its answers may have to be waited for. */
bool workspace_is_remote(const struct workspace *ws);
/* True when a person acts and not an agent (workspace_opts). */
bool workspace_acts_for_person(const struct workspace *ws);
/* True when the file area is a directory of the person's own (files_dir): .gitignore is honoured. */
bool workspace_files_are_own(const struct workspace *ws);
/* A time as people and models read it, in the workspace's zone: "2026-11-15T10:50:42+01:00", or with 'Z' when that is
   UTC. Files that programs read have UTC (clock_format_utc). */
struct str workspace_time(const struct workspace *ws, struct arena *arena, int64_t real_ns);
/* The same of a time as a file has it; a text that is not a time stays as it is. */
struct str workspace_time_of(const struct workspace *ws, struct arena *arena, struct str text);
/* The same of the times that `value` has under these keys (NULL at the end), at any depth. */
void workspace_times(const struct workspace *ws, struct arena *arena, struct jv *value, const char *const *keys);
/* What a person or a model writes as a path of the file area: from its root, with or without a '/' before it, or
   the absolute path of something below a directory of the person's own. With such a directory, "/x/y" is refused if
   there is no "x" in it: it means another place of this machine. */
int workspace_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
		   struct err *err);
/* The part of an absolute path below a directory of the person's own, "" or "/…"; ptr NULL: it is elsewhere. */
struct str workspace_below(const struct workspace *ws, struct str text);
/* What clearing the file area empties, as tools name it: files/ when '/' is the workspace, else '/'. */
struct wpath workspace_clearable(const struct workspace *ws);
/* The directory of this machine that holds the files of workspace_files() and nothing else; ptr NULL: there is none,
   because they are elsewhere or are made of several layers. What the guard hides is in it too. */
struct str workspace_files_dir(const struct workspace *ws);
/* The same for a directory of workspace_home(). */
struct str workspace_home_dir(const struct workspace *ws, struct arena *arena, struct wpath path);
/* The same, but a path that is itself a symbolic link stays one: for whoever deletes or moves it. */
int workspace_link_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
			struct err *err);
/* The same, but symbolic links stay in it. To ask for them costs a good part of a small read, and few paths have one:
   so a read takes this path first. Where it leads through a link the store refuses it (ERR_DENIED, with ELOOP in
   err->sys), and workspace_path() says where to. */
int workspace_written_path(const struct workspace *ws, struct arena *arena, struct str text, struct wpath *ret,
			   struct err *err);
/* The directory of the person's own, for own_dir.h; empty when there is none. */
struct str workspace_own_dir(const struct workspace *ws);
/* Makes a directory and those above it, where directories exist without files: in one of the person's own. */
int workspace_make_dir(struct workspace *ws, struct ctx *ctx, struct wpath path, struct err *err);
/* "workspace" as the person would name the place of '/': a host path for disk, else a URL. For people, not models. */
struct str workspace_files_place(const struct workspace *ws);

/* `stead init`: writes the templates that are missing; ERR_EXISTS when the workspace already exists. `model` and
   `channel` (may be empty) go into agent.yaml. Lists what it wrote. */
struct init_opts {
	struct str store_url, name, model, channel;
};
int workspace_init(struct ctx *ctx, const struct init_opts *opts, struct jv **ret_report, struct err *err);
/* `stead list`: an array of {name, files, bytes, modified, fork_of?, fork_revision?, problem?}. */
int workspace_list(struct ctx *ctx, struct str store_url, struct jv **ret_list, struct err *err);
/* True when HEARTBEAT.md says nothing: missing, blank, only headings and comments, or the untouched template. */
bool workspace_heartbeat_is_empty(struct str text);

#endif
