/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a workspace, for those who work below its doors: src/workspace itself, families and src/admin. */
#ifndef STEAD_WORKSPACE_WORKSPACE_PARTS_H
#define STEAD_WORKSPACE_WORKSPACE_PARTS_H

#include "store/stores.h"
#include "workspace/workspace.h"

/* Opens the store of all workspaces. `url` empty: the default. `create` makes a directory that is missing. *ret_dir is
   the host directory of a disk store (in the arena), else ptr NULL. */
int workspace_open_store(struct arena *arena, struct str url, bool create, bool relaxed, struct store **ret_store,
			 struct str *ret_dir, struct err *err);
/* "memory", "inmemory" and paths as URLs; what is one already stays. */
struct str workspace_url(struct arena *arena, struct str text);
/* "temp" or "temp:PREFIX": a directory of its own, which workspace_close() removes with all that is in it, unless
   "?cleanup=false" follows (`ret_cleanup` may be NULL). */
bool workspace_is_temp(struct str url);
int workspace_temp_new(struct arena *arena, struct str url, struct str *ret_dir, bool *ret_cleanup, struct err *err);
void workspace_temp_end(const char *dir);

/* The stores of workspaces, for callers that open several of them. All borrowed. */
struct workspace_stores {
	struct store *base, *log_base; /* log_base: the same place as a store that syncs; NULL: base */
	struct str known;              /* a workspace whose revisions are already open; empty: none */
	struct store *known_revisions;
	struct store *known_own; /* the revisions of the directory of the person's own that it works in; NULL: none */
	struct str known_dir;    /* that directory */
};
/* Puts the layer that records on `inner`, which it owns whatever happens. `dir` of the workspace `name` has the log. */
int workspace_record(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct store *inner,
		     const char *dir, struct store **ret, struct err *err);
/* The same for the person's own directory `dir` (absolute, without links), whose log is kept in the workspace `name`.
 */
int workspace_record_own(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct str dir,
			 const struct store_disk_opts *opts, struct store **ret, struct err *err);
/* Another workspace of the same store, opened as `ws` was (user, root) but with files of its own. `ws` must
   outlive it. */
int workspace_open_sibling(struct workspace *ws, struct str name, struct workspace **ret_ws, struct err *err);
/* The host directory of a workspace on disk, else ptr NULL; the URL it was opened with. */
struct str workspace_dir(const struct workspace *ws);
struct str workspace_url_of(const struct workspace *ws);
/* The store of all workspaces. */
struct store *workspace_store_of(const struct workspace *ws, bool durable);

/* --- files that mostly grow (change.c) --- */

struct workspace_changed {
	struct str before, after; /* after: ptr NULL when nothing was changed */
	struct store_stat stat;
};
/* store_change() of a file of workspace_home(), made as an append when the new content only adds to the end. */
int workspace_change(struct workspace *ws, struct ctx *ctx, struct wpath path, const struct store_change *change,
		     struct workspace_changed *ret, struct err *err);

/* --- forks (fork.c) --- */

/* Where a fork keeps what it removed of its parent. */
#define FORK_GONE ".stead-gone"

/* True when the workspace directory `home` is a fork's. */
int fork_is(struct ctx *ctx, struct store *home, bool *ret, struct err *err);
/* The fork `name`, unrecorded: its own directory over its parent's past. Owns what it opens. ERR_NOT_FOUND when a
   parent is gone. */
int fork_open_raw(struct ctx *ctx, const struct workspace_stores *place, struct str name, struct store **ret_raw,
		  struct err *err);

/* The layer that records an open workspace as a whole, and the store below it, for derived files that are not
   recorded. */
struct store *workspace_shared(struct workspace *ws);
struct store *workspace_unrecorded(struct workspace *ws);
/* Writes a derived file (a path of workspace_unrecorded()) without a record, within the quotas. */
int workspace_write_derived(struct workspace *ws, struct ctx *ctx, struct wpath path, struct str text,
			    struct store_cond cond, struct err *err);
/* What is kept of sandboxes has another size than before: the quota counts it again. */
void workspace_snapshots_changed(struct workspace *ws);
/* The directory of workspace_home() in both: the part of the user, whatever the file area is. */
struct wpath workspace_part(const struct workspace *ws);
/* Another one after each start of the machine, where a write may be lost by that; else empty. */
struct str workspace_boot(struct arena *arena, const struct workspace *ws);
/* agent.yaml, .env and tools.json of the workspace in `home`; those that are missing count as empty. `defaults` may be
   NULL. */
int workspace_load_config(struct arena *arena, struct ctx *ctx, struct store *home,
			  const struct config_defaults *defaults, struct config *ret, struct err *err);
/* A file of the workspace, or ptr NULL when it is missing. */
int workspace_read(struct ctx *ctx, struct store *home, const char *path, size_t max, struct str *ret, struct err *err);
/* A workspace in a store that is not a directory, as a person would write it: the URL with the name before its
   options. */
struct str workspace_place_shown(struct arena *arena, struct str url, struct str name);
/* Says that a workspace was made, where the deployment's templates have its other files. */
#define WORKSPACE_MARK ".stead/from-templates"
/* True when the workspace has one of the files that make it one: AGENTS.md, AGENT.md, agent.yaml or WORKSPACE_MARK. */
int workspace_exists(struct ctx *ctx, struct store *home, bool *ret, struct err *err);
/* Writes the templates that are missing; `dir` is the workspace's host directory or empty. Adds paths to `written`. */
int workspace_write_templates(struct ctx *ctx, struct store *home, struct str dir, const struct init_opts *opts,
			      struct jv *written, struct err *err);

/* The shared workspace as a user sees it below their own: only what people wrote for everybody. With `of_user`, `inner`
   is the directory that they wrote for one user. Owns `inner`. */
struct store *workspace_assets_new(struct store *inner, bool of_user);
/* True for the root and for what the store above may show. */
bool workspace_may_be_asset(struct wpath path);

/* This user's own part of the workspace; the root without a user. */
struct wpath workspace_user_dir(const struct workspace *ws);

struct workspace_usage {
	uint64_t files, bytes;
	int64_t modified_ns;
	bool partial; /* there is more: these are the least numbers */
};
/* Counts all files but Stead's own, in bounded memory and time. */
int workspace_count(struct ctx *ctx, struct store *store, struct workspace_usage *ret, struct err *err);
/* The directories of the store, by whether a workspace may be called so. */
int workspace_names(struct ctx *ctx, struct store *base, struct jv *ret_good, struct jv *ret_bad, struct err *err);

/* "the workspace "x" …": the name rule in one sentence. */
int workspace_bad_name(struct str name, struct err *err);

#endif
