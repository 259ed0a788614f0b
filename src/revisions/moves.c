/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of large directories, which are made in several batches (tree.c). Before the first batch a note of the move is
 * written, moves/<number> in meta, and it goes when the call is answered. So a note whose writer is gone is a move that
 * was killed, and whoever finds it makes the rest: the next start on this machine, and with a journal the next one who
 * moves a directory. Its records have the actor and the call of the move, so undo takes back the whole of it.
 *
 * Only what was there when the move began is moved: a file that was written to the old place since then stays there.
 * Two processes may make the rest at the same time, because every file is moved on the condition that it is what was
 * logged.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "revisions/layer.h"
#include "store/list_stream.h"
#include "text/jv.h"

#define NOTE_MAX (64 * KIB)
/* With a journal the writer may be on another machine: after this time without an end it counts as gone. */
#define FAR_MOVE_NS (600 * NS_PER_S)

static void put_actor(struct arena *arena, struct jv *v, const struct actor *a)
{
	jv_set_str(arena, v, "workspace", a->workspace);
	jv_set_str(arena, v, "user", a->user);
	jv_set_str(arena, v, "agent", a->agent);
	jv_set_str(arena, v, "session", a->session);
	jv_set_str(arena, v, "call", a->call_id);
}

int moves_begin(struct revisions *rv, struct ctx *ctx, struct wpath from, struct wpath to, struct wpath *ret_note,
		struct err *err)
{
	struct jv *v = jv_object(ctx->arena);
	struct buf text;
	int r = revlog_refresh(rv->log, ctx, err);

	if (r)
		return r;
	jv_set_str(ctx->arena, v, "from", from.s);
	jv_set_str(ctx->arena, v, "to", to.s);
	revlog_lock(rv->log);
	jv_set_int(ctx->arena, v, "until", (int64_t)revlog_head(rv->log));
	revlog_unlock(rv->log);
	jv_set_str(ctx->arena, v, "boot", rv->boot_id);
	jv_set_int(ctx->arena, v, "pid", (int64_t)getpid());
	put_actor(ctx->arena, v, &ctx->actor);
	buf_init(&text, ctx->arena, NOTE_MAX);
	jv_write(&text, v);
	ret_note->s = arena_printf(ctx->arena, "moves/%016llx", (unsigned long long)random_u64());
	return store_write(rv->meta, ctx, *ret_note, buf_str(&text), (struct store_cond){0}, NULL, err);
}

void moves_end(struct revisions *rv, struct ctx *ctx, struct wpath note)
{
	struct ctx c = {.arena = ctx->arena}; /* also when the call was cancelled */
	struct err ignored;

	store_remove(rv->meta, &c, note, false, (struct store_cond){0}, NULL, &ignored);
}

/* True when the process that moves may still be at it. */
static bool is_under_way(const struct revisions *rv, const struct jv *v, const struct store_stat *stat)
{
	int64_t pid = jv_get_int(v, "pid", 0);

	if (rv->journal)
		return clock_real_ns() - stat->mtime_ns < FAR_MOVE_NS;
	return pid > 0 && pid <= INT32_MAX && pid != (int64_t)getpid() && str_eq(jv_get_str(v, "boot"), rv->boot_id) &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static int resume_one(struct revisions *rv, struct ctx *ctx, struct wpath note, struct err *err)
{
	struct ctx c = *ctx;
	struct wpath from, to;
	struct store_stat stat;
	struct str text;
	struct jv *v;
	int r = store_read(rv->meta, ctx, note, STORE_WHOLE, NOTE_MAX, &text, &stat, err);

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if (jv_parse(ctx->arena, text, &v, err) || wpath_parse(jv_get_str(v, "from"), &from, err) ||
	    wpath_parse(jv_get_str(v, "to"), &to, err)) {
		moves_end(rv, ctx, note); /* it was being written: nothing is moved yet */
		return 0;
	}
	if (is_under_way(rv, v, &stat))
		return 0;
	c.actor = (struct actor){.workspace = jv_get_str(v, "workspace"),
				 .user = jv_get_str(v, "user"),
				 .agent = jv_get_str(v, "agent"),
				 .session = jv_get_str(v, "session"),
				 .call_id = jv_get_str(v, "call")};
	r = tree_move_rest(rv, &c, from, to, (uint64_t)jv_get_int(v, "until", 0), err);
	if (r == 0)
		moves_end(rv, ctx, note);
	return r;
}

int moves_resume(struct revisions *rv, struct ctx *ctx, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page;
	int r = store_list(rv->meta, ctx, (struct wpath){STR("moves")}, &req, &page, err);

	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	for (size_t i = 0; r == 0 && i < page.count; i++)
		r = resume_one(rv, ctx, page.entries[i].path, err);
	return r;
}
