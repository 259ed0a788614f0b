/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path that is a file for one process and a directory for another, at the same moment. The first process copies a
 * file to `target`, which is logged and then made; between these steps the other process makes a file that is in the
 * way, and removes it. The log is a journal: over the memory store the copy and the note that it is done are one step,
 * over a plain store on it they are not. The last test has segments, as on disk.
 */
#include "revisions/revisions_journal_facts.h"
#include "store/plain_fix.h"

/* A store that lets the other process act at one moment. */
enum moment { AFTER_RECORD, BEFORE_CHANGE, BEFORE_NEXT_ENTRY, MOMENTS };
struct between {
	struct store base;
	const char *target, *obstacle;
	struct conf *other;
	void (*acts[MOMENTS])(struct between *b);
	unsigned later;     /* entries that come before BEFORE_NEXT_ENTRY */
	bool changed;       /* the change of the target was tried */
	bool dies, is_dead; /* with that, the process ends */
};

/* Two processes on one place. */
struct two {
	struct store *memory;
	struct between between;
	struct conf owner, other;
};

static bool is_change(const struct between *b, const struct store_call *call)
{
	return (call->op == STORE_OP_WRITE && str_is(call->path.s, b->target)) || call->op == STORE_OP_MOVE ||
	       call->op == STORE_OP_REMOVE || (call->op == STORE_OP_JOURNAL_ADD && str_is(call->to.s, b->target));
}

static bool is_entry(const struct between *b, const struct store_call *call)
{
	return wpath_within(call->path, P(".stead/rev/journal")) && !store_op_info[call->op].reads_only &&
	       !is_change(b, call);
}

static void act(struct between *b, enum moment moment)
{
	void (*acts)(struct between * b) = b->acts[moment];

	b->acts[moment] = NULL; /* once */
	if (acts)
		acts(b);
}

static int between_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct between *b = (struct between *)s;
	bool change = is_change(b, call), entry = is_entry(b, call), record = entry && !b->changed;
	int r;

	if (change) {
		b->is_dead = b->dies;
		b->changed = true;
		act(b, BEFORE_CHANGE);
	} else if (entry && b->changed && b->later) {
		b->later--;
	} else if (entry && b->changed) {
		act(b, BEFORE_NEXT_ENTRY);
	}
	if (b->is_dead)
		return err_set(err, ERR_UNAVAILABLE, "the process is dead");
	r = store_forward(s->inner, ctx, call, err);
	if (record)
		act(b, AFTER_RECORD);
	return r;
}

static void between_destroy(struct store *s)
{
	(void)s;
}

#define LARGE ((size_t)2 * MIB) /* too much for one step */

static void two_open(struct two *t, const char *target, const char *obstacle, bool plain)
{
	static const struct store_ops ops = {.name = "between", .around = between_around, .destroy = between_destroy};

	*t = (struct two){.memory = store_memory_new(), .owner.ctx.arena = arena_new()};
	t->other.ctx.arena = t->owner.ctx.arena;
	t->other.s = replica_on(plain ? plain_new(store_share(t->memory)) : store_share(t->memory));
	t->between = (struct between){.base = {.ops = &ops, .inner = store_share(t->memory)},
				      .target = target,
				      .obstacle = obstacle,
				      .other = &t->other};
	t->owner.s = replica_on(plain ? plain_new(&t->between.base) : &t->between.base);
	put(&t->other, "text", "to be copied");
}

static int copy(struct two *t)
{
	int r = store_copy(t->owner.s, &t->owner.ctx, P("text"), P(t->between.target), ANY, NULL, &t->owner.err);

	CHECK(t->between.changed);
	return r;
}

static void settle(struct conf *c, const char *path)
{
	CHECK_OK(revisions_settle(c->s, &c->ctx, P(path), NULL, &c->err), c->err);
}

/* Looks at everything: no change was made by another program, and the target has so many records. */
static void check_all(struct two *t, size_t records)
{
	struct conf *c = &t->other;
	struct revision *list;
	uint64_t noticed;
	size_t count, of_target = 0;

	CHECK_OK(revisions_notice(c->s, &c->ctx, WPATH_ROOT, &noticed, &c->err), c->err);
	CHECK_INT(noticed, 0);
	CHECK_OK(revisions_query(c->s, &c->ctx, &(struct rev_query){0}, &list, &count, NULL, &c->err), c->err);
	for (size_t i = 0; i < count; i++) {
		CHECK(list[i].op != REV_OUTSIDE);
		of_target += str_is(list[i].path.s, t->between.target);
	}
	CHECK_INT(of_target, records);
}

static void two_close(struct two *t)
{
	store_destroy(t->owner.s);
	store_destroy(t->other.s);
	store_destroy(t->memory);
	arena_destroy(t->owner.ctx.arena);
}

static void put_obstacle(struct between *b)
{
	put(b->other, b->obstacle, "in the way");
}

/* The obstacle goes, and the other process makes the copy for its owner, unless the log says that it was given up. */
static void drop_obstacle_and_help(struct between *b)
{
	struct conf *c = b->other;

	CHECK_OK(store_remove(c->s, &c->ctx, P(b->obstacle), false, ANY, NULL, &c->err), c->err);
	settle(c, b->target);
}

/* The other process cannot make the copy either, and then the obstacle goes. */
static void put_obstacle_and_help(struct between *b)
{
	put_obstacle(b);
	settle(b->other, b->target);
	drop_obstacle_and_help(b);
}

static void help_before_the_abort(const char *target, const char *obstacle, bool plain)
{
	struct two t;

	two_open(&t, target, obstacle, plain);
	t.between.acts[BEFORE_CHANGE] = put_obstacle;
	t.between.acts[BEFORE_NEXT_ENTRY] = drop_obstacle_and_help;
	CHECK_INT(copy(&t), 0);
	CHECK_STR(get(&t.other, target), STR("to be copied"));
	check_all(&t, 1);
	two_close(&t);
}

TEST(a_copy_that_its_owner_gives_up_when_another_process_has_made_it_is_made)
{
	help_before_the_abort("d", "d/x", false);
	help_before_the_abort("d/x", "d", false);
}

TEST(a_copy_that_is_too_large_for_a_step_is_not_given_up_while_another_process_makes_it)
{
	struct two t;
	struct str large;

	two_open(&t, "d", "d/x", false);
	large = str_n(arena_alloc(t.other.ctx.arena, LARGE), LARGE);
	CHECK_OK(store_write(t.other.s, &t.other.ctx, P("text"), large, ANY, NULL, &t.other.err), t.other.err);
	t.between.acts[BEFORE_CHANGE] = put_obstacle;
	t.between.acts[BEFORE_NEXT_ENTRY] = drop_obstacle_and_help;
	CHECK_INT(copy(&t), 0);
	CHECK_INT(stat_of(&t.other, "d").size, LARGE);
	check_all(&t, 1);
	two_close(&t);
}

TEST(a_copy_on_plain_objects_is_not_given_up_while_another_process_makes_it)
{
	help_before_the_abort("d", "d/x", true);
}

static void give_up_before_the_change(bool plain)
{
	struct two t;

	two_open(&t, "d/x", "d", plain);
	t.between.acts[AFTER_RECORD] = put_obstacle_and_help;
	CHECK_INT(copy(&t), 0);
	CHECK_STR(get(&t.other, "d/x"), STR("to be copied"));
	check_all(&t, 1);
	two_close(&t);
}

TEST(a_copy_that_a_helper_has_given_up_is_logged_and_made_again)
{
	give_up_before_the_change(false);
}

TEST(a_copy_on_plain_objects_that_a_helper_has_given_up_is_logged_and_made_again)
{
	give_up_before_the_change(true);
}

TEST(a_copy_whose_process_was_killed_long_ago_is_not_taken_for_a_removal)
{
	struct two t;
	struct str then;

	two_open(&t, "d", "d/x", false);
	then = arena_printf(t.owner.ctx.arena, "%lld", (long long)(clock_real_ns() - 3600 * NS_PER_S));
	t.between.dies = true;
	CHECK_INT(setenv("STEAD_TEST_CLOCK_NS", then.ptr, 1), 0);
	CHECK_INT(copy(&t), -ERR_UNAVAILABLE);
	CHECK_INT(unsetenv("STEAD_TEST_CLOCK_NS"), 0);
	settle(&t.other, "d");
	check_all(&t, 0);
	two_close(&t);
}

/* The log of the first process: what it appends is an entry. */
struct log_layer {
	struct store base;
	struct between *between;
};

static int log_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct between *b = ((struct log_layer *)s)->between;

	if (call->op == STORE_OP_APPEND && b->changed && b->later)
		b->later--;
	else if (call->op == STORE_OP_APPEND && b->changed)
		act(b, BEFORE_NEXT_ENTRY);
	return store_forward(s->inner, ctx, call, err);
}

static struct store *segments_on(struct store *files, struct store *meta, struct conf *c)
{
	struct store *s;

	CHECK_OK(store_revisions_open(files, meta, (struct revisions_opts){0}, &c->ctx, &s, &c->err), c->err);
	return s;
}

/* The file that was in the way of the first move goes before the log says that this move is given up, or one entry
   later. */
static void move_dir(unsigned later)
{
	static const struct store_ops ops = {.name = "log", .around = log_around, .destroy = between_destroy};
	struct two t;
	struct store *meta = store_memory_new();
	struct log_layer layer = {.base = {.ops = &ops, .inner = store_share(meta)}, .between = &t.between};

	two_open(&t, "d/y", "d", false);
	store_destroy(t.owner.s);
	store_destroy(t.other.s);
	t.between.base = (struct store){.ops = t.between.base.ops, .inner = store_share(t.memory)};
	t.owner.s = segments_on(&t.between.base, &layer.base, &t.owner);
	t.other.s = segments_on(store_share(t.memory), store_share(meta), &t.other);
	put(&t.other, "f/x", "moved in the end");
	put(&t.other, "f/y", "moved by the other process");
	t.between.acts[BEFORE_CHANGE] = put_obstacle;
	t.between.acts[BEFORE_NEXT_ENTRY] = drop_obstacle_and_help;
	t.between.later = later;
	CHECK_OK(store_move(t.owner.s, &t.owner.ctx, P("f"), P("d"), ANY, ANY, NULL, &t.owner.err), t.owner.err);
	CHECK_STR(get(&t.other, "d/y"), STR("moved by the other process"));
	CHECK_STR(get(&t.other, "d/x"), STR("moved in the end"));
	check_all(&t, 1);
	two_close(&t);
	store_destroy(meta);
}

/* Another process makes the removal, and then the path is a directory. */
static void remove_and_make_dir(struct between *b)
{
	struct conf direct = {.s = b->base.inner, .ctx = b->other->ctx};

	settle(b->other, "d");
	put(&direct, "d/x", "in the way of the helper");
}

/* The helper comes too late with the removal. Then the directory goes, and the helper makes the file again. */
static void help_too_late(struct between *b)
{
	struct conf direct = {.s = b->base.inner, .ctx = b->other->ctx};

	settle(b->other, "d");
	CHECK_OK(store_remove(direct.s, &direct.ctx, P("d/x"), false, ANY, NULL, &direct.err), direct.err);
	put(b->other, "d", "made again");
}

TEST(a_move_of_a_directory_gives_up_no_file_that_another_process_has_moved)
{
	move_dir(0);
	move_dir(1);
}

TEST(a_removal_that_a_helper_finds_made_is_not_made_twice)
{
	struct store *meta = store_memory_new();
	struct conf helper;
	struct between late;
	struct two t;

	two_open(&t, "-", "-", false);
	store_destroy(t.owner.s);
	store_destroy(t.other.s);
	late = (struct between){.base = {.ops = t.between.base.ops, .inner = store_share(t.memory)},
				.target = "-",
				.other = &t.other,
				.acts = {[BEFORE_CHANGE] = remove_and_make_dir}};
	helper = (struct conf){.ctx = t.owner.ctx};
	helper.s = segments_on(&late.base, store_share(meta), &helper);
	t.between.base = (struct store){.ops = t.between.base.ops, .inner = store_share(t.memory)};
	t.between.other = &helper;
	t.between.acts[BEFORE_CHANGE] = help_too_late;
	t.owner.s = segments_on(&t.between.base, store_share(meta), &t.owner);
	t.other.s = segments_on(store_share(t.memory), store_share(meta), &t.other);
	put(&t.other, "d", "to be removed");
	CHECK_OK(store_remove(t.owner.s, &t.owner.ctx, P("d"), false, ANY, NULL, &t.owner.err), t.owner.err);
	CHECK(late.changed);
	CHECK_STR(get(&t.other, "d"), STR("made again"));
	check_all(&t, 0);
	store_destroy(helper.s);
	two_close(&t);
	store_destroy(meta);
}
