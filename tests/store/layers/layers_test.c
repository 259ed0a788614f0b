/* SPDX-License-Identifier: Apache-2.0 */
/* What each layer does beyond the contract that all stores share. */
#include <pthread.h>

#include "store/store_fix.h"

/* One store and its arena; ends with the test. */
struct fixture {
	struct conf c;
};

static void fixture_end(struct fixture *f)
{
	store_destroy(f->c.s);
	arena_destroy(f->c.ctx.arena);
}

#define WITH(store_expr)                                                                                               \
	__attribute__((cleanup(fixture_end))) struct fixture fx = {                                                    \
		{.s = (store_expr), .ctx = {.arena = arena_new()}}};                                                   \
	struct conf *c = &fx.c

/* Another store than the one under test, in the same arena. */
static struct conf conf_of(struct conf *c, struct store *s)
{
	return (struct conf){.s = s, .ctx = c->ctx};
}

static int write_to(struct conf *c, const char *path, const char *bytes)
{
	return store_write(c->s, &c->ctx, P(path), str_of(bytes), ANY, NULL, &c->err);
}

/* prefix, owners, abilities, readonly */

TEST(a_prefix_keeps_its_files_below_its_directory)
{
	struct store *inner = store_memory_new();
	WITH(store_prefix_new(inner, P("u/one")));
	struct conf in = conf_of(c, inner);

	put(c, "a/b", "x");
	put(&in, "u/two/c", "y");
	CHECK_STR(listing(&in, "", true, 10), STR("u/one/a/b u/two/c"));
	CHECK_TREE(c, "a/b");
}

TEST(an_error_below_a_prefix_does_not_name_it)
{
	WITH(store_prefix_new(store_memory_new(), P("secret/place")));

	put(c, "a", "x");
	CHECK_ERR(write_to(c, "a/b", "y"), c->err, ERR_INVALID);
	CHECK_LACKS(str_of(c->err.msg), STR("secret"));
	CHECK_HAS(str_of(c->err.msg), STR("\"a\" is a file"));
}

TEST(a_store_lives_as_long_as_one_of_its_owners)
{
	struct store *inner = store_memory_new(), *first = store_prefix_new(store_share(inner), P("d"));
	WITH(store_prefix_new(inner, P("d")));
	struct conf f = conf_of(c, first);

	put(&f, "a", "x");
	store_destroy(first);
	CHECK_STR(get(c, "a"), STR("x"));
}

TEST(a_layer_can_what_the_store_below_can_less_what_it_takes_away)
{
	struct store *guarded = store_guard_new(store_prefix_new(store_memory_new(), P("d")), &guard_defaults);
	WITH(store_quota_new(guarded, (struct quota_limits){.bytes = MIB}));

	CHECK(store_can(guarded, STORE_LOCAL) && store_can(guarded, STORE_JOURNAL) &&
	      store_can(guarded, STORE_ONE_STEP));
	CHECK(store_can(c->s, STORE_LOCAL) && store_can(c->s, STORE_JOURNAL) && !store_can(c->s, STORE_ONE_STEP));
}

TEST(a_view_leaves_the_shared_store_alive)
{
	WITH(store_memory_new());
	struct store *view = store_prefix_new(store_share(c->s), P("d"));
	struct conf v = conf_of(c, view);

	put(&v, "a", "x");
	store_destroy(view);
	CHECK_TREE(c, "d/a");
}

TEST(a_readonly_store_reads_and_refuses_every_change)
{
	struct store *inner = store_memory_new();
	WITH(store_readonly_new(inner));
	struct conf in = conf_of(c, inner);

	put(&in, "a", "x");
	CHECK_STR(get(c, "a"), STR("x"));
	CHECK_TREE(c, "a");
	CHECK_ERR(write_to(c, "b", "y"), c->err, ERR_DENIED);
	CHECK_ERR(store_append(c->s, &c->ctx, P("a"), STR("y"), ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("a"), false, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_ERR(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_ERR(store_copy(c->s, &c->ctx, P("a"), P("b"), ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_TREE(c, "a");
}

/* guard */

static struct store *guarded(struct store **ret_inner)
{
	*ret_inner = store_memory_new();
	return store_guard_new(*ret_inner, &guard_defaults);
}

TEST(secrets_are_denied_by_any_operation)
{
	static const char *const paths[] = {".env",
					    "a/.ENV",
					    ".env.local",
					    ".stead/config",
					    "x/.stead/y",
					    "k.pem",
					    "d/id_rsa",
					    ".ssh/known_hosts",
					    "h/.aws/credentials",
					    ".npmrc",
					    ".stead-tmp-1",
					    "prod.env",
					    "certs/server.key",
					    "secrets.yaml",
					    "Credentials.json",
					    "aws/credentials",
					    ".stead-wh/a",
					    "ID_ED25519",
					    "s.PEM"};
	struct store *inner;
	WITH(guarded(&inner));
	struct str bytes;

	put(c, "ok", "x");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct wpath p = P(paths[i]);

		CHECK_ERR(store_stat(c->s, &c->ctx, p, NULL, &c->err), c->err, ERR_DENIED);
		CHECK_ERR(store_read(c->s, &c->ctx, p, STORE_WHOLE, 9, &bytes, NULL, &c->err), c->err, ERR_DENIED);
		CHECK_ERR(write_to(c, paths[i], "y"), c->err, ERR_DENIED);
		CHECK_ERR(store_remove(c->s, &c->ctx, p, true, ANY, NULL, &c->err), c->err, ERR_DENIED);
		CHECK_ERR(store_copy(c->s, &c->ctx, p, P("n"), ANY, NULL, &c->err), c->err, ERR_DENIED);
		CHECK_ERR(store_move(c->s, &c->ctx, P("ok"), p, ANY, ANY, NULL, &c->err), c->err, ERR_DENIED);
	}
	CHECK_HAS(str_of(c->err.msg), STR("is protected"));
	CHECK_TREE(c, "ok");
}

TEST(what_only_looks_like_a_secret_is_free)
{
	static const char *const paths[] = {
		".env.example", "environment", ".envoy",  "a.pem.txt",      "id_rsa.pub",           ".gitignore",
		"stead",        ".steady",     "keys.md", "src/secrets.ts", "credentials_form.tsx", "a.environment"};
	struct store *inner;
	WITH(guarded(&inner));

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		put(c, paths[i], "x");
}

TEST(lists_and_scans_leave_out_what_is_hidden)
{
	struct store *inner;
	WITH(guarded(&inner));
	struct conf in = conf_of(c, inner);
	struct seen seen = {0};

	put(&in, ".env", "KEY=1");
	for (int i = 0; i < 50; i++) {
		char path[40];

		snprintf(path, sizeof(path), ".stead/log/%02d", i);
		put(&in, path, "1");
		snprintf(path, sizeof(path), "d/k%02d.pem", i);
		put(&in, path, "1");
	}
	put(&in, "d/a", "1");
	put(&in, "d/z", "1");
	put(&in, "e", "1");
	for (size_t limit = 1; limit < 6; limit++) {
		CHECK_STR(listing(c, "", true, limit), STR("d/a d/z e"));
		CHECK_STR(listing(c, "", false, limit), STR("d/ e"));
	}
	CHECK_STR(scan_paths(c, "", &seen, false, false), STR("d/a d/z e"));
}

TEST(a_directory_with_a_secret_is_neither_removed_nor_moved)
{
	struct store *inner;
	WITH(guarded(&inner));
	struct conf in = conf_of(c, inner);

	put(&in, "d/a", "1");
	put(&in, "d/e/.env", "KEY=1");
	CHECK_ERR(store_remove(c->s, &c->ctx, P("d"), true, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_HAS(str_of(c->err.msg), STR("\"d/e/.env\" is protected"));
	CHECK_ERR(store_move(c->s, &c->ctx, P("d"), P("x"), ANY, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_STR(listing(&in, "", true, 10), STR("d/a d/e/.env"));
}

TEST(emptying_the_root_leaves_what_is_hidden)
{
	struct store *inner;
	WITH(guarded(&inner));
	struct conf in = conf_of(c, inner);
	uint64_t count = 0;

	put(&in, "d/a", "1");
	put(&in, "d/.env", "KEY=1");
	put(&in, ".stead/state", "1");
	CHECK_OK(store_remove(c->s, &c->ctx, P(""), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 1);
	CHECK_STR(listing(&in, "", true, 10), STR(".stead/state d/.env"));
}

TEST(a_move_cannot_turn_a_file_into_a_hidden_one)
{
	struct store *inner;
	WITH(guarded(&inner));

	put(c, "d/config.json", "1");
	CHECK_ERR(store_move(c->s, &c->ctx, P("d"), P(".docker"), ANY, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_TREE(c, "d/config.json");
}

TEST(what_is_fixed_is_read_but_not_changed)
{
	static const char *const fixed[] = {"AGENTS.md", "skills/**"};
	struct guard_rules rules = {.fixed = fixed, .fixed_count = 2};
	struct store *inner = store_memory_new();
	WITH(store_guard_new(inner, &rules));
	struct conf in = conf_of(c, inner);

	put(&in, "AGENTS.md", "rules");
	put(&in, "skills/a/b", "skill");
	CHECK_STR(get(c, "AGENTS.md"), STR("rules"));
	CHECK_ERR(write_to(c, "AGENTS.md", "mine"), c->err, ERR_DENIED);
	CHECK_HAS(str_of(c->err.msg), STR("can be read but not changed"));
	CHECK_ERR(store_remove(c->s, &c->ctx, P("skills"), true, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_OK(store_copy(c->s, &c->ctx, P("skills/a/b"), P("mine"), ANY, NULL, &c->err), c->err);
	CHECK_TREE(c, "AGENTS.md mine skills/a/b");
}

/* quota */

#define LIMITS(...) ((struct quota_limits){__VA_ARGS__})

TEST(bytes_are_bounded_and_given_back)
{
	WITH(store_quota_new(store_memory_new(), LIMITS(.bytes = 10)));

	put(c, "a", "12345678");
	CHECK_ERR(write_to(c, "b", "123"), c->err, ERR_QUOTA);
	CHECK_HAS(str_of(c->err.msg), STR("8 of the workspace's 10 are in use"));
	put(c, "a", "1234567");
	put(c, "b", "123");
	CHECK_ERR(store_append(c->s, &c->ctx, P("b"), STR("4"), ANY, NULL, &c->err), c->err, ERR_QUOTA);
	CHECK_OK(store_remove(c->s, &c->ctx, P("a"), false, ANY, NULL, &c->err), c->err);
	put(c, "c", "1234567");
}

TEST(files_are_bounded)
{
	WITH(store_quota_new(store_memory_new(), LIMITS(.files = 2)));

	put(c, "a", "1");
	put(c, "b", "1");
	put(c, "b", "2");
	CHECK_ERR(write_to(c, "c", "1"), c->err, ERR_QUOTA);
	CHECK_ERR(store_copy(c->s, &c->ctx, P("a"), P("c"), ANY, NULL, &c->err), c->err, ERR_QUOTA);
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ANY, NULL, &c->err), c->err);
	put(c, "c", "1");
	CHECK_TREE(c, "b c");
}

TEST(a_stream_is_cut_off_while_it_flows)
{
	struct stream st = {.total = 100 * MIB};
	struct source source = stream_source(&st);
	WITH(store_quota_new(store_memory_new(), LIMITS(.bytes = 1 * MIB)));

	CHECK_ERR(store_write_stream(c->s, &c->ctx, P("a"), &source, ANY, NULL, &c->err), c->err, ERR_QUOTA);
	CHECK(st.at < 2 * MIB);
	CHECK_TREE(c, "");
	put(c, "b", "the reservation was given back");
}

TEST(one_file_is_bounded)
{
	WITH(store_quota_new(store_memory_new(), LIMITS(.file_size = 4)));

	put(c, "a", "1234");
	CHECK_ERR(write_to(c, "b", "12345"), c->err, ERR_QUOTA);
	CHECK_ERR(store_append(c->s, &c->ctx, P("a"), STR("5"), ANY, NULL, &c->err), c->err, ERR_QUOTA);
	CHECK_STR(get(c, "a"), STR("1234"));
}

TEST(what_was_there_before_counts_and_outside_changes_are_noticed)
{
	struct store *inner = store_memory_new();
	WITH(store_quota_new(inner, LIMITS(.bytes = 10)));
	struct conf in = conf_of(c, inner);

	put(&in, "old", "12345678");
	CHECK_ERR(write_to(c, "new", "123"), c->err, ERR_QUOTA);
	CHECK_OK(store_remove(inner, &in.ctx, P("old"), false, ANY, NULL, &in.err), in.err);
	for (int i = 0; i < 1000 && write_to(c, "new", "123"); i++) /* a recount may wait ten times what it took */
		CHECK_INT(c->err.kind, ERR_QUOTA);
	CHECK_TREE(c, "new");
}

TEST(no_limits_cost_nothing)
{
	struct store *inner = store_memory_new();

	CHECK(store_quota_new(inner, LIMITS(0)) == inner);
	store_destroy(inner);
}

/* overlay */

static struct store *template(struct store **ret_upper)
{
	struct store *lower = store_memory_new();
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf in = {.s = lower, .ctx = {.arena = arena}};

	put(&in, "AGENTS.md", "template");
	put(&in, "skills/a", "skill a");
	put(&in, "skills/b", "skill b");
	*ret_upper = store_memory_new();
	return store_overlay_new(*ret_upper, lower);
}

TEST(a_template_shows_through_and_is_overridden)
{
	struct store *upper;
	WITH(template(&upper));
	struct conf up = conf_of(c, upper);

	CHECK_STR(get(c, "AGENTS.md"), STR("template"));
	put(c, "AGENTS.md", "mine");
	CHECK_STR(get(c, "AGENTS.md"), STR("mine"));
	CHECK_TREE(c, "AGENTS.md skills/a skills/b");
	CHECK_STR(listing(&up, "", true, 10), STR("AGENTS.md"));
}

TEST(a_deleted_template_file_stays_deleted)
{
	struct store *upper;
	WITH(template(&upper));

	CHECK_OK(store_remove(c->s, &c->ctx, P("AGENTS.md"), false, ANY, NULL, &c->err), c->err);
	CHECK_GONE(c, "AGENTS.md");
	CHECK_TREE(c, "skills/a skills/b");
	put(c, "AGENTS.md", "");
	CHECK_STR(get(c, "AGENTS.md"), STR(""));
	CHECK_OK(store_remove(c->s, &c->ctx, P("AGENTS.md"), false, ANY, NULL, &c->err), c->err);
	CHECK_GONE(c, "AGENTS.md");
	CHECK_STR(listing(c, "", false, 1), STR("skills/"));
}

TEST(a_deleted_template_directory_stays_deleted_beside_new_files)
{
	struct store *upper;
	uint64_t count = 0;
	WITH(template(&upper));

	CHECK_OK(store_remove(c->s, &c->ctx, P("skills"), true, ANY, &count, &c->err), c->err);
	CHECK_INT(count, 2);
	CHECK_GONE(c, "skills");
	put(c, "skills/c", "new");
	CHECK_TREE(c, "AGENTS.md skills/c");
	CHECK_GONE(c, "skills/a");
}

TEST(conditions_hold_on_template_files)
{
	struct store *upper;
	WITH(template(&upper));
	struct str v = stat_of(c, "AGENTS.md").version;

	CHECK_STARTS(v, STR("l:"));
	CHECK_ERR(store_write(c->s, &c->ctx, P("AGENTS.md"), STR("x"), ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_OK(store_write(c->s, &c->ctx, P("AGENTS.md"), STR("mine"), VERS(v), NULL, &c->err), c->err);
	CHECK_ERR(store_write(c->s, &c->ctx, P("AGENTS.md"), STR("x"), VERS(v), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_STR(get(c, "AGENTS.md"), STR("mine"));
}

TEST(append_and_move_copy_a_template_file_up)
{
	struct store *upper;
	WITH(template(&upper));
	struct conf up = conf_of(c, upper);

	CHECK_OK(store_append(c->s, &c->ctx, P("AGENTS.md"), STR(" and mine"), ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "AGENTS.md"), STR("template and mine"));
	CHECK_OK(store_move(c->s, &c->ctx, P("skills"), P("old"), ANY, ANY, NULL, &c->err), c->err);
	CHECK_TREE(c, "AGENTS.md old/a old/b");
	CHECK_STR(get(&up, "old/a"), STR("skill a"));
}

TEST(whiteouts_can_neither_be_seen_nor_named)
{
	struct store *upper;
	struct seen seen = {0};
	WITH(template(&upper));

	CHECK_OK(store_remove(c->s, &c->ctx, P("skills/a"), false, ANY, NULL, &c->err), c->err);
	CHECK_STR(listing(c, "", false, 10), STR("AGENTS.md skills/"));
	CHECK_STR(scan_paths(c, "", &seen, false, false), STR("AGENTS.md skills/b"));
	CHECK_ERR(store_remove(c->s, &c->ctx, P(".stead-wh"), true, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_ERR(write_to(c, ".stead-wh/AGENTS.md/.stead-wh", ""), c->err, ERR_DENIED);
	CHECK_ERR(store_stat(c->s, &c->ctx, P(".stead-wh/skills"), NULL, &c->err), c->err, ERR_DENIED);
}

TEST(names_conflict_across_the_two_stores)
{
	struct store *upper;
	WITH(template(&upper));

	CHECK_ERR(write_to(c, "skills", "x"), c->err, ERR_INVALID);
	CHECK_ERR(write_to(c, "AGENTS.md/x", "x"), c->err, ERR_INVALID);
	CHECK_TREE(c, "AGENTS.md skills/a skills/b");
}

/* mounts */

static struct store *mounted(void)
{
	struct store_mount mounts[] = {{.at = P("docs/team"), .store = store_memory_new()},
				       {.at = P("ref"), .store = store_memory_new(), .read_only = true}};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf in = {.s = mounts[1].store, .ctx = {.arena = arena}};

	put(&in, "manual", "read me");
	return store_mounts_new(store_memory_new(), mounts, 2);
}

TEST(mount_points_are_directories_and_lists_merge_in_order)
{
	WITH(mounted());
	struct seen seen = {0};

	CHECK_STR(listing(c, "", false, 1), STR("docs/ ref/"));
	CHECK_STR(listing(c, "docs", false, 1), STR("docs/team/"));
	CHECK_INT(stat_of(c, "docs/team").kind, STORE_DIR);
	put(c, "docs/a", "1");
	put(c, "docs/team/plan", "2");
	put(c, "docs/z", "3");
	for (size_t limit = 1; limit < 6; limit++) {
		CHECK_STR(listing(c, "", true, limit), STR("docs/a docs/team/plan docs/z ref/manual"));
		CHECK_STR(listing(c, "docs", false, limit), STR("docs/a docs/team/ docs/z"));
	}
	CHECK_STR(scan_paths(c, "", &seen, false, false), STR("docs/a docs/team/plan docs/z ref/manual"));
}

TEST(a_scan_inside_a_mount_names_full_paths)
{
	WITH(mounted());
	struct seen seen = {0};

	CHECK_STR(scan_paths(c, "ref", &seen, true, false), STR("ref/manual:read me"));
}

TEST(a_read_only_mount_refuses_changes)
{
	WITH(mounted());

	CHECK_STR(get(c, "ref/manual"), STR("read me"));
	CHECK_ERR(write_to(c, "ref/new", "x"), c->err, ERR_DENIED);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("ref/manual"), false, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_ERR(store_move(c->s, &c->ctx, P("ref/manual"), P("mine"), ANY, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_OK(store_copy(c->s, &c->ctx, P("ref/manual"), P("mine"), ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "mine"), STR("read me"));
}

TEST(a_move_between_stores_takes_files_and_directories)
{
	WITH(mounted());

	put(c, "d/one", "1");
	put(c, "d/e/two", "2");
	CHECK_OK(store_move(c->s, &c->ctx, P("d"), P("docs/team/d"), ANY, ABSENT, NULL, &c->err), c->err);
	CHECK_TREE(c, "docs/team/d/e/two docs/team/d/one ref/manual");
	CHECK_OK(store_move(c->s, &c->ctx, P("docs/team/d/one"), P("one"), ANY, ANY, NULL, &c->err), c->err);
	CHECK_STR(get(c, "one"), STR("1"));
	CHECK_GONE(c, "docs/team/d/one");
}

TEST(a_directory_with_a_mount_point_is_not_removed)
{
	WITH(mounted());

	put(c, "docs/a", "1");
	CHECK_ERR(store_remove(c->s, &c->ctx, P("docs"), true, ANY, NULL, &c->err), c->err, ERR_DENIED);
	CHECK_HAS(str_of(c->err.msg), STR("\"docs/team\" is a mount point"));
	CHECK_STR(get(c, "docs/a"), STR("1"));
}

/* events */

struct heard {
	struct buf out;
};

static void hear(void *arg, const struct store_event *event)
{
	struct heard *h = arg;

	buf_printf(&h->out, "%s %.*s>%.*s%s by %.*s\n", store_op_info[event->op].name, STR_ARG(event->path.s),
		   STR_ARG(event->to.s), event->version.len ? " versioned" : "", STR_ARG(event->actor.agent));
}

TEST(listeners_hear_of_changes_that_happened)
{
	WITH(store_events_new(store_memory_new()));
	struct heard h;
	uint64_t handle;

	buf_init(&h.out, c->ctx.arena, MIB);
	c->ctx.actor.agent = STR("ada");
	handle = store_events_listen(c->s, hear, &h);
	put(c, "a", "1");
	get(c, "a");
	CHECK_OK(store_move(c->s, &c->ctx, P("a"), P("b"), ANY, ANY, NULL, &c->err), c->err);
	CHECK_ERR(store_remove(c->s, &c->ctx, P("a"), false, ANY, NULL, &c->err), c->err, ERR_NOT_FOUND);
	CHECK_OK(store_remove(c->s, &c->ctx, P("b"), false, ANY, NULL, &c->err), c->err);
	store_events_unlisten(c->s, handle);
	put(c, "c", "unheard");
	CHECK_STR(buf_str(&h.out), STR("write a> versioned by ada\nmove a>b versioned by ada\nremove b> by ada\n"));
}

/* Threads. */

struct worker {
	struct store *s;
	int id, failures;
	atomic_int *counter;
};

static void start_all(struct worker *workers, void *(*run)(void *), struct store *s, atomic_int *counter)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++) {
		workers[i] = (struct worker){.s = s, .id = i, .counter = counter};
		pthread_create(&threads[i], NULL, run, &workers[i]);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void *append_and_replace(void *arg)
{
	struct worker *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (int i = 0; i < 200; i++) {
		char path[40];
		struct str bytes;

		snprintf(path, sizeof(path), "d%d/f%d", w->id % 3, i % 5);
		w->failures += store_append(w->s, &ctx, P("log"), STR("0123456789\n"), ANY, NULL, &err) != 0;
		(void)store_write(w->s, &ctx, P(path), STR("x"), ANY, NULL, &err);
		(void)store_remove(w->s, &ctx, P(path), false, ANY, NULL, &err);
		(void)store_read(w->s, &ctx, P("log"), STORE_WHOLE, MIB, &bytes, NULL, &err);
		w->failures += bytes.len % 11 != 0;
	}
	return NULL;
}

TEST(eight_threads_lose_no_append)
{
	struct worker workers[8];
	WITH(store_memory_new());

	start_all(workers, append_and_replace, c->s, NULL);
	for (int i = 0; i < 8; i++)
		CHECK_INT(workers[i].failures, 0);
	CHECK_INT(get(c, "log").len, 8 * 200 * 11);
}

static void *fill(void *arg)
{
	struct worker *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (int i = 0; i < 100; i++) {
		char path[40];

		snprintf(path, sizeof(path), "f%d", (i * 7 + w->id) % 40);
		if (i % 5 == 4)
			(void)store_remove(w->s, &ctx, P(path), false, ANY, NULL, &err);
		else if (store_write(w->s, &ctx, P(path), STR("0123456789"), ANY, NULL, &err) == 0)
			atomic_fetch_add(w->counter, 1);
	}
	return NULL;
}

TEST(eight_threads_together_never_pass_the_quota)
{
	struct store *inner = store_memory_new();
	struct worker workers[8];
	atomic_int written = 0;
	WITH(store_quota_new(inner, LIMITS(.bytes = 105, .files = 12)));
	struct conf in = conf_of(c, inner);
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct store_page page;

	start_all(workers, fill, c->s, &written);
	CHECK(written > 0);
	CHECK_OK(store_list(inner, &in.ctx, P(""), &req, &page, &in.err), in.err);
	CHECK(page.count <= 10);
	for (size_t i = page.count; i < 10; i++) { /* and the count is exact: all that is free can be used */
		char path[40];

		snprintf(path, sizeof(path), "more%zu", i);
		put(c, path, "0123456789");
	}
	CHECK_ERR(write_to(c, "over", "0123456789"), c->err, ERR_QUOTA);
}

static void count_event(void *arg, const struct store_event *event)
{
	(void)event;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void *listen_and_leave(void *arg)
{
	struct worker *w = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;

	for (int i = 0; i < 100; i++) {
		atomic_int mine = 0;
		uint64_t handle = store_events_listen(w->s, count_event, &mine);

		w->failures += store_write(w->s, &ctx, P("a"), STR("x"), ANY, NULL, &err) != 0;
		store_events_unlisten(w->s, handle);
		w->failures += atomic_load(&mine) < 1; /* at least its own */
	}
	return NULL;
}

TEST(listeners_may_come_and_go_while_changes_happen)
{
	struct worker workers[8];
	WITH(store_events_new(store_memory_new()));

	start_all(workers, listen_and_leave, c->s, NULL);
	for (int i = 0; i < 8; i++)
		CHECK_INT(workers[i].failures, 0);
}

TEST(a_hundred_thousand_files_are_no_burden)
{
	struct store_list_req req = {.limit = 10000, .recursive = true};
	struct store_page page;
	size_t total = 0;
	WITH(store_memory_new());

	for (int i = 0; i < 100000; i++) {
		char path[40];

		snprintf(path, sizeof(path), "d%d/e%d/f%d", i % 10, i % 1000, i);
		put(c, path, "x");
	}
	do {
		CHECK_OK(store_list(c->s, &c->ctx, P(""), &req, &page, &c->err), c->err);
		total += page.count;
		req.after = page.next;
	} while (page.next.ptr);
	CHECK_INT(total, 100000);
}
