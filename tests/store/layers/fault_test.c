/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults by counting. A scenario is one change to a prepared store; operation 1 below it is made to fail, then
 * operation 2, and so on, until the change succeeds. After each failure the tree must be the old or the new one, with
 * nothing else in it, and after the last one the new one. Once the fault is over, the same change must go through.
 */
#include "store/store_fix.h"

struct scene {
	const char *name;
	struct store *(*open)(struct store **ret_fault);
	int (*change)(struct conf *c);
};

/* Every file with its bytes; what a reader can see. */
static struct str tree_of(struct conf *c)
{
	struct seen seen = {0};

	return scan_paths(c, "", &seen, true, false);
}

static void prepare(struct conf *c)
{
	put(c, "a.txt", "alpha");
	put(c, "d/one", "1");
	put(c, "d/two", "2");
	put(c, "d/sub/three", "3");
}

static struct str tree_after(const struct scene *scene, bool changed, struct arena *arena)
{
	struct store *fault;
	struct conf c = {.s = scene->open(&fault), .ctx = {.arena = arena}};
	struct str tree;

	if (changed)
		CHECK_OK(scene->change(&c), c.err);
	tree = tree_of(&c);
	store_destroy(c.s);
	return tree;
}

/* One run with operation n failing; false when there are fewer than n operations. */
static bool fail_nth(const struct scene *scene, uint64_t n, enum err_kind kind, bool after, struct str old,
		     struct str new)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *fault;
	struct conf c = {.s = scene->open(&fault), .ctx = {.arena = arena}};
	struct str tree;
	bool failed;
	int r;

	store_fault_arm(fault, n, kind, after);
	r = scene->change(&c);
	if (r && c.err.kind != kind)
		TEST_FAIL("%s, operation %d: failed as %s (%s)", scene->name, (int)n, err_kind_name(c.err.kind),
			  c.err.msg);
	failed = store_fault_count(fault) >= n;
	if (!failed)
		CHECK_INT(r, 0);
	store_fault_arm(fault, 0, kind, false);
	tree = tree_of(&c);
	if (!str_eq(tree, new) && (r == 0 || !str_eq(tree, old)))
		TEST_FAIL("%s, operation %d failed %s (%d): the tree is \"%.*s\"", scene->name, (int)n,
			  after ? "after" : "before", r, STR_ARG(tree));
	if (r && str_eq(tree, old)) {
		CHECK_OK(scene->change(&c), c.err);
		CHECK_STR(tree_of(&c), new);
	}
	store_destroy(c.s);
	return failed;
}

static void check_scene(const struct scene *scene)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str old = tree_after(scene, false, arena), new = tree_after(scene, true, arena);
	uint64_t n;

	CHECK(!str_eq(old, new));
	for (int after = 0; after < 2; after++) {
		for (n = 1; fail_nth(scene, n, ERR_UNAVAILABLE, after, old, new); n++)
			CHECK(n < 100);
		CHECK(n > 1); /* something was made to fail */
	}
}

/* Changes. */

static int change_write(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("n/new"), STR("new"), ANY, NULL, &c->err);
}

static int change_overwrite(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("a.txt"), STR("beta"), ANY, NULL, &c->err);
}

static int change_stream(struct conf *c)
{
	struct stream st = {.total = 600000};
	struct source source = stream_source(&st);

	return store_write_stream(c->s, &c->ctx, P("a.txt"), &source, ANY, NULL, &c->err);
}

static int change_append(struct conf *c)
{
	return store_append(c->s, &c->ctx, P("d/one"), STR("+"), ANY, NULL, &c->err);
}

static int change_remove(struct conf *c)
{
	return store_remove(c->s, &c->ctx, P("a.txt"), false, ANY, NULL, &c->err);
}

static int change_remove_tree(struct conf *c)
{
	return store_remove(c->s, &c->ctx, P("d"), true, ANY, NULL, &c->err);
}

static int change_move(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("a.txt"), P("m/a.txt"), ANY, ANY, NULL, &c->err);
}

static int change_move_onto(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("a.txt"), P("d/one"), ANY, ANY, NULL, &c->err);
}

static int change_move_tree(struct conf *c)
{
	return store_move(c->s, &c->ctx, P("d"), P("m/d"), ANY, ANY, NULL, &c->err);
}

static int change_copy(struct conf *c)
{
	return store_copy(c->s, &c->ctx, P("a.txt"), P("m/copy"), ANY, NULL, &c->err);
}

/* Stores: the fault is between the layer under test and the backend. */

static struct conf conf_of(struct store *s, struct arena *arena)
{
	return (struct conf){.s = s, .ctx = {.arena = arena}};
}

static struct store *prepared(struct store *s)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf c = conf_of(s, arena);

	prepare(&c);
	return s;
}

static struct store *open_plain(struct store **ret_fault)
{
	return *ret_fault = store_fault_new(prepared(store_memory_new()));
}

static struct store *open_stack(struct store **ret_fault)
{
	struct store *s = *ret_fault = store_fault_new(store_memory_new());

	s = store_prefix_new(s, P("ws/one"));
	s = store_quota_new(s, (struct quota_limits){.bytes = 10 * MIB, .files = 100});
	return prepared(store_guard_new(store_events_new(s), &guard_defaults));
}

static struct store *open_over_template(struct store **ret_fault)
{
	*ret_fault = store_fault_new(store_memory_new());
	return store_overlay_new(*ret_fault, prepared(store_memory_new()));
}

/* A fork on a server: what is covered is remembered. */
static struct store *open_fork(struct store **ret_fault)
{
	*ret_fault = store_fault_new(store_memory_new());
	return store_overlay_new(remote_new(*ret_fault, false), remote_new(prepared(store_memory_new()), true));
}

/* Overrides of a part of the template, and files of its own. */
static struct store * override(struct store *s)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf c = conf_of(s, arena);

	put(&c, "a.txt", "override");
	put(&c, "d/two", "override");
	put(&c, "d/four", "4");
	return s;
}

static struct store *open_overrides(struct store **ret_fault)
{
	return override(open_over_template(ret_fault));
}

static struct store *open_fork_overrides(struct store **ret_fault)
{
	return override(open_fork(ret_fault));
}

static struct store *open_mounted(struct store **ret_fault)
{
	struct store_mount mount = {.at = P("m"), .store = store_memory_new()};

	*ret_fault = store_fault_new(prepared(store_memory_new()));
	return store_mounts_new(*ret_fault, &mount, 1);
}

static const struct {
	const char *name;
	int (*change)(struct conf *c);
} changes[] = {
	{"write", change_write},   {"overwrite", change_overwrite}, {"stream", change_stream},
	{"append", change_append}, {"remove", change_remove},       {"remove tree", change_remove_tree},
	{"move", change_move},     {"move onto", change_move_onto}, {"move tree", change_move_tree},
	{"copy", change_copy},
};

static void check_all(struct store *(*open)(struct store **ret_fault))
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct scene scene = {changes[i].name, open, changes[i].change};

		check_scene(&scene);
	}
}

TEST(a_failing_store_shows_the_old_tree_or_the_new_one)
{
	check_all(open_plain);
}

TEST(the_shipped_layers_keep_a_failed_change_whole)
{
	check_all(open_stack);
}

TEST(an_overlay_over_a_template_keeps_a_failed_change_whole)
{
	check_all(open_over_template);
}

TEST(an_overlay_with_overrides_keeps_a_failed_change_whole)
{
	check_all(open_overrides);
}

TEST(a_fork_keeps_a_failed_change_whole)
{
	check_all(open_fork);
	check_all(open_fork_overrides);
}

TEST(changes_beside_a_mount_fail_whole)
{
	static const struct scene scenes[] = {{"write", open_mounted, change_write},
					      {"remove tree", open_mounted, change_remove_tree},
					      {"copy into the mount", open_mounted, change_copy}};

	for (size_t i = 0; i < 3; i++)
		check_scene(&scenes[i]);
}

/* A move between stores has a state in which both have the file; never one in which none has it. */
TEST(a_failed_move_between_stores_loses_nothing)
{
	for (int after = 0; after < 2; after++)
		for (uint64_t n = 1; n < 20; n++) {
			ARENA_SCOPE struct arena *arena = arena_new();
			struct store *fault;
			struct conf c = conf_of(open_mounted(&fault), arena);

			store_fault_arm(fault, n, ERR_UNAVAILABLE, after);
			(void)change_move_tree(&c);
			store_fault_arm(fault, 0, ERR_NONE, false);
			for (size_t i = 0; i < 3; i++) {
				static const char *const at[][2] = {
					{"d/one", "m/d/one"}, {"d/two", "m/d/two"}, {"d/sub/three", "m/d/sub/three"}};
				int old = store_stat(c.s, &c.ctx, P(at[i][0]), NULL, &c.err);
				int new = store_stat(c.s, &c.ctx, P(at[i][1]), NULL, &c.err);

				CHECK(old == 0 || new == 0);
			}
			store_destroy(c.s);
		}
}
