/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes, with the log in segments. The first one moves the directory `e` to `d`: the moves of its files are
 * logged together and then made. When it makes the first of them, the other process has made `d` a file. Before the
 * first one can say so in the log, the other one removes that file and completes what it finds in the log.
 */
#include "revisions/revisions.h"
#include "store/store_fix.h"

struct race;

/* A store of the first process that lets the other one act right before an operation. */
struct between {
	struct store base;
	struct race *race;
	void (*before)(struct race *race, const struct store_call *call);
};

struct race {
	struct store *files, *log;
	struct between on_files, on_log;
	struct conf owner, other;
	bool in_the_way, gone;
};

static int between_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct between *b = (struct between *)s;

	b->before(b->race, call);
	return store_forward(s->inner, ctx, call, err);
}

static void between_destroy(struct store *s)
{
	(void)s;
}

static const struct store_ops between_ops = {.name = "between", .around = between_around, .destroy = between_destroy};

static void make_obstacle(struct race *race, const struct store_call *call)
{
	if (race->in_the_way || call->op != STORE_OP_MOVE)
		return;
	race->in_the_way = true;
	put(&race->other, "d", "in the way");
}

static void drop_obstacle_and_help(struct race *race, const struct store_call *call)
{
	struct conf *c = &race->other;

	if (!race->in_the_way || race->gone || call->op != STORE_OP_APPEND)
		return;
	race->gone = true;
	CHECK_OK(store_remove(c->s, &c->ctx, P("d"), false, ANY, NULL, &c->err), c->err);
	CHECK_OK(revisions_settle(c->s, &c->ctx, P("d/2"), NULL, &c->err), c->err);
}

static struct store *open_log(struct conf *c, struct store *files, struct store *log)
{
	struct store *s;

	c->ctx.arena = c->ctx.arena ? c->ctx.arena : arena_new();
	CHECK_OK(store_revisions_open(files, log, (struct revisions_opts){0}, &c->ctx, &s, &c->err), c->err);
	return s;
}

static void race_open(struct race *r)
{
	*r = (struct race){.files = store_memory_new(), .log = store_memory_new()};
	r->on_files = (struct between){{.ops = &between_ops, .inner = store_share(r->files)}, r, make_obstacle};
	r->on_log = (struct between){{.ops = &between_ops, .inner = store_share(r->log)}, r, drop_obstacle_and_help};
	r->other.s = open_log(&r->other, store_share(r->files), store_share(r->log));
	put(&r->other, "e/1", "one");
	put(&r->other, "e/2", "two");
	put(&r->other, "e/3", "three");
	r->owner.s = open_log(&r->owner, &r->on_files.base, &r->on_log.base);
}

static void race_close(struct race *r)
{
	store_destroy(r->owner.s);
	store_destroy(r->other.s);
	store_destroy(r->on_files.base.inner);
	store_destroy(r->on_log.base.inner);
	store_destroy(r->files);
	store_destroy(r->log);
	arena_destroy(r->owner.ctx.arena);
	arena_destroy(r->other.ctx.arena);
}

TEST(what_others_have_made_of_a_move_is_never_given_up)
{
	struct race r;
	struct store_stat stat;
	uint64_t noticed;
	struct err err;

	race_open(&r);
	CHECK_OK(store_move(r.owner.s, &r.owner.ctx, P("e"), P("d"), ANY, ANY, NULL, &err), err);
	CHECK(r.in_the_way && r.gone);
	CHECK_OK(revisions_notice(r.other.s, &r.other.ctx, WPATH_ROOT, &noticed, &err), err);
	CHECK_INT(noticed, 0); /* the log explains what is there */
	for (const char *name = "123"; *name; name++)
		CHECK_OK(store_stat(r.other.s, &r.other.ctx, P(arena_printf(r.other.ctx.arena, "d/%c", *name).ptr),
				    &stat, &err),
			 err);
	race_close(&r);
}
