/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command whose changes are held: they go to a fork of the workspace instead of the workspace itself. The command
 * works over the files as they are, in an overlay as always; only the store that its changes are written to is another
 * one. So holding costs what the changes cost, several attempts can run at the same time, and what a fork can do
 * (diff, merge of all or some files, further work in it) is there for each of them.
 */
#include "home/exec/exec_internal.h"
#include "tool/family.h"
#include "workspace/fork.h"
#include "workspace/workspace_parts.h"

#define NAMES_MAX 1000

/* The first free name, when none is given. */
static int make_fork(struct workspace *ws, struct ctx *ctx, struct str name, struct str *ret, struct err *err)
{
	struct str parent = str_first(workspace_name(ws), 48);
	struct jv *made;
	int r = -ERR_EXISTS;

	for (unsigned n = 1; r == -ERR_EXISTS && n < NAMES_MAX; n++) {
		struct str tried = name.len ? name : arena_printf(ctx->arena, "%.*s-held-%u", STR_ARG(parent), n);

		r = fork_create(ws, ctx, tried, FORK_AT_HEAD, &made, err);
		if (name.len)
			break;
	}
	if (r == 0)
		*ret = jv_get_str(made, "workspace");
	return r;
}

int exec_hold(struct workspace *ws, struct ctx *ctx, const struct sandbox_job *job, struct str name,
	      struct sandbox_result *ret, struct str *ret_fork, struct err *err)
{
	struct sandbox_job held = *job;
	struct sandbox_keep keep;
	struct workspace *fork = NULL;
	struct store *task = NULL;
	struct str made = STR_NONE;
	enum sandbox_tier tier;
	struct err ignored;
	int r = sandbox_tier_choose(job->tier, &tier, err);

	if (r == 0 && tier == SANDBOX_LOCAL)
		r = err_set(err, ERR_INVALID,
			    "the tier \"local\" works in the files themselves, so nothing can be held; use another "
			    "tier");
	if (r == 0)
		r = family_files(ws, ctx, &task, err);
	if (task)
		r = err_set(err, ERR_UNSUPPORTED,
			    "a fork does not contain what is mounted into a task, so the changes cannot be held; run "
			    "it without --hold, or with --discard");
	store_destroy(task);
	if (r == 0)
		r = make_fork(ws, ctx, name, &made, err);
	if (r == 0)
		r = workspace_open_sibling(ws, made, &fork, err);
	if (r == 0) {
		held.files.store = workspace_files(fork);
		held.files.revisions = workspace_revisions(fork);
		held.files.root = workspace_root(fork);
		if (job->keep) { /* an attempt begins with what is kept and leaves nothing there */
			keep = *job->keep;
			keep.read_only = true;
			held.keep = &keep;
		}
		r = sandbox_run(ctx, &held, ret, err);
		if (r == 0)
			exec_net_log(ws, ctx, &held, ret);
	}
	workspace_close(fork);
	if (made.len && (r || !ret->is_saved || !ret->change_count)) {
		(void)fork_drop(ws, ctx, made, &ignored);
		made = STR_NONE;
	}
	if (r == 0)
		*ret_fork = made;
	return r;
}
