/* SPDX-License-Identifier: Apache-2.0 */
/* What commands leave in their home and in excluded directories, kept from one command to the next. */
#include "sandbox_fix.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>

#include "sandbox/snapshot_internal.h"

static const char *const exclude[] = {"node_modules", "__pycache__", NULL};

struct kept_box {
	struct box b;
	struct sandbox_keep keep;
	struct store *snapshots;
};

static void kept_init(struct kept_box *k)
{
	box_on_memory(&k->b, SANDBOX_NAMESPACES);
	k->snapshots = store_memory_new();
	test_defer(store_destroy, k->snapshots);
	k->keep = (struct sandbox_keep){.store = k->snapshots,
					.dir = {STR("one")},
					.cache = arena_printf(k->b.arena, "%s/c", temp_dir_new()).ptr};
	k->b.job.keep = &k->keep;
	k->b.job.files.exclude = exclude;
}

static int remove_any(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void lose_cache(struct kept_box *k)
{
	nftw(k->keep.cache, remove_any, 16, FTW_DEPTH | FTW_PHYS);
}

#define LEAVE                                                                                                          \
	"mkdir -p node_modules/a ~/bin; echo x > node_modules/a/i.js; ln -s a node_modules/b; echo y > ~/bin/t; "      \
	"chmod 751 ~/bin/t; touch -d @1000000000 ~/bin/t; echo kept > file"
#define SHOW "cat node_modules/b/i.js ~/bin/t; stat -c '%a %Y' ~/bin/t"

TEST(the_next_command_finds_what_one_left)
{
	static struct kept_box k;

	kept_init(&k);
	run(&k.b, LEAVE);
	CHECK_STR(content(&k.b, "file"), STR("kept\n"));
	CHECK_STR(content(&k.b, "node_modules/a/i.js"), STR("(absent)"));
	run(&k.b, SHOW);
	CHECK_STR(k.b.result.out.text, STR("x\ny\n751 1000000000\n"));
	CHECK_INT(k.b.result.change_count, 0);
	k.keep.dir = (struct wpath){STR("two")};
	run(&k.b, "ls -A ~; ls");
	CHECK_STR(k.b.result.out.text, STR("file\n"));
}

TEST(a_lost_cache_is_made_again_from_the_store)
{
	static struct kept_box k;

	kept_init(&k);
	run(&k.b, LEAVE);
	run(&k.b, SHOW);
	lose_cache(&k);
	CHECK(access(k.keep.cache, F_OK) != 0);
	run(&k.b, SHOW);
	CHECK_STR(k.b.result.out.text, STR("x\ny\n751 1000000000\n"));
}

TEST(what_is_deleted_or_replaced_stays_so)
{
	static struct kept_box k;

	kept_init(&k);
	put(&k.b, "node_modules/own/f", "of the workspace");
	run(&k.b, LEAVE "; mkdir -p d/node_modules; echo 1 > d/node_modules/q; touch d/z");
	run(&k.b, "rm -r ~/bin node_modules/a node_modules/own; echo f > ~/bin; rm -r d; mkdir node_modules/own");
	run(&k.b, "cat ~/bin; find node_modules d 2>/dev/null");
	CHECK_STR(k.b.result.out.text, STR("f\nnode_modules\nnode_modules/own\nnode_modules/b\n"));
	lose_cache(&k);
	run(&k.b, "cat ~/bin; find node_modules d 2>/dev/null | sort");
	CHECK_STR(k.b.result.out.text, STR("f\nnode_modules\nnode_modules/b\nnode_modules/own\n"));
	CHECK_STR(content(&k.b, "node_modules/own/f"), STR("of the workspace"));
}

static size_t files_in(struct kept_box *k, const char *dir)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct err ignored;

	(void)store_list(k->snapshots, &k->b.ctx, (struct wpath){str_of(dir)}, &req, &page, &ignored);
	return page.count;
}

TEST(an_equal_content_is_kept_once_and_an_old_one_goes)
{
	static struct kept_box k;
	struct snapshot_info before, after;
	struct store *one;

	kept_init(&k);
	one = store_prefix_new(store_share(k.snapshots), k.keep.dir);
	test_defer(store_destroy, one);
	run(&k.b, "seq 100000 > ~/a; cp ~/a ~/b");
	CHECK_INT(files_in(&k, "one"), 4); /* head, lease, manifest, one pack */
	CHECK_OK(snapshot_show(one, &k.b.ctx, &before, &k.b.err), k.b.err);
	CHECK_INT(before.files, 2);
	run(&k.b, "cat ~/a > /dev/null; touch ~/c; rm ~/c");
	CHECK_OK(snapshot_show(one, &k.b.ctx, &after, &k.b.err), k.b.err);
	CHECK_STR(after.id, before.id);
	run(&k.b, "mv ~/b ~/c; rm ~/a");
	CHECK_INT(files_in(&k, "one"), 4);
	run(&k.b, "echo 1 > ~/c");
	CHECK_INT(files_in(&k, "one"), 4);
	run(&k.b, "cat ~/c");
	CHECK_STR(k.b.result.out.text, STR("1\n"));
}

/* Another command of the same sandbox, while one runs. */
static bool run_another(void *arg, bool is_stderr, struct str bytes)
{
	struct kept_box *k = arg;
	static const char *const argv[] = {"sh", "-c", "echo other > ~/other; echo other > ~/both", NULL};
	struct sandbox_job job = k->b.job;
	struct sandbox_result result;
	struct err err;

	(void)is_stderr, (void)bytes;
	job.argv = argv;
	job.output = NULL;
	CHECK_OK(sandbox_run(&k->b.ctx, &job, &result, &err), err);
	sandbox_result_release(&result);
	return true;
}

TEST(commands_at_the_same_time_keep_both_and_the_last_to_end_wins)
{
	static struct kept_box k;

	kept_init(&k);
	run(&k.b, "echo 0 > ~/begin");
	k.b.job.output = run_another;
	k.b.job.output_arg = &k;
	run(&k.b, "echo mine > ~/mine; echo mine > ~/both; echo go");
	k.b.job.output = NULL;
	run(&k.b, "cd; cat begin mine other both");
	CHECK_STR(k.b.result.out.text, STR("0\nmine\nother\nmine\n"));
}

TEST(too_much_is_not_kept_and_what_was_kept_before_stays)
{
	static struct kept_box k;

	kept_init(&k);
	k.keep.size_max = 100000;
	run(&k.b, "echo small > ~/f");
	run(&k.b, "echo changed > ~/f; head -c 200000 /dev/zero > ~/big");
	CHECK_STR(str_of(outcome(&k.b, "/home")), STR("refused"));
	run(&k.b, "cat ~/*");
	CHECK_STR(k.b.result.out.text, STR("small\n"));
	k.b.job.files.read_only = true;
	run(&k.b, "echo dropped > ~/f");
	run(&k.b, "cat ~/*");
	CHECK_STR(k.b.result.out.text, STR("small\n"));
}

TEST(a_damaged_pack_is_refused_and_can_be_dropped)
{
	static struct kept_box k;
	static const char *const argv[] = {"true", NULL};
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page;
	struct store *one;

	kept_init(&k);
	run(&k.b, LEAVE);
	CHECK_OK(store_list(k.snapshots, &k.b.ctx, k.keep.dir, &req, &page, &k.b.err), k.b.err);
	for (size_t i = 0; i < page.count; i++)
		if (str_starts(page.entries[i].path.s, STR("one/p-")))
			CHECK_OK(store_write(k.snapshots, &k.b.ctx, page.entries[i].path, STR("abcd"),
					     (struct store_cond){0}, NULL, &k.b.err),
				 k.b.err);
	k.b.job.argv = argv;
	CHECK_INT(sandbox_run(&k.b.ctx, &k.b.job, &k.b.result, &k.b.err), -ERR_CORRUPT);
	CHECK_HAS(str_of(k.b.err.msg), STR("stead sandbox drop"));
	one = store_prefix_new(store_share(k.snapshots), k.keep.dir);
	test_defer(store_destroy, one);
	CHECK_OK(snapshot_drop(one, &k.b.ctx, &k.b.err), k.b.err);
	run(&k.b, "ls -A ~");
	CHECK_STR(k.b.result.out.text, STR(""));
}

/* In tiers without layers, where it is copied. */
#define EACH_COPY(name)                                                                                                \
	static void name##_in(enum sandbox_tier tier);                                                                 \
	TEST(name##_with_bubblewrap)                                                                                   \
	{                                                                                                              \
		name##_in(SANDBOX_BUBBLEWRAP);                                                                         \
	}                                                                                                              \
	TEST(name##_with_landlock)                                                                                     \
	{                                                                                                              \
		name##_in(SANDBOX_LANDLOCK);                                                                           \
	}                                                                                                              \
	static void name##_in(enum sandbox_tier tier)

static void kept_init_in(struct kept_box *k, enum sandbox_tier tier)
{
	enum sandbox_tier have;

	kept_init(k);
	if (sandbox_tier_choose(tier, &have, &k->b.err) != 0)
		SKIP("%.150s", k->b.err.msg);
	k->b.job.tier = tier;
}

EACH_COPY(a_copy_of_what_one_command_left_is_found_by_the_next)
{
	static struct kept_box k;

	kept_init_in(&k, tier);
	run(&k.b, LEAVE "; mkdir ~/shut; echo z > ~/shut/f; chmod 500 ~/shut; ln -s bin/t ~/l");
	CHECK_STR(content(&k.b, "file"), STR("kept\n"));
	CHECK_STR(content(&k.b, "node_modules/a/i.js"), STR("(absent)"));
	run(&k.b, SHOW "; cat ~/l ~/shut/f; stat -c %a ~/shut");
	CHECK_STR(k.b.result.out.text, STR("x\ny\n751 1000000000\ny\nz\n500\n"));
	CHECK_INT(k.b.result.change_count, 0);
	lose_cache(&k);
	k.b.job.tier = SANDBOX_NAMESPACES; /* another tier shows the same */
	run(&k.b, SHOW);
	CHECK_STR(k.b.result.out.text, STR("x\ny\n751 1000000000\n"));
	k.keep.dir = (struct wpath){STR("two")};
	k.b.job.tier = tier;
	run(&k.b, "ls -A ~; ls");
	CHECK_STR(k.b.result.out.text, STR("file\n"));
}

EACH_COPY(what_is_deleted_from_a_copy_stays_so)
{
	static struct kept_box k;

	kept_init_in(&k, tier);
	put(&k.b, "node_modules/own/f", "of the workspace");
	run(&k.b,
	    LEAVE "; mkdir -p d/node_modules; echo 1 > d/node_modules/q; touch d/z; echo mine > node_modules/own/f");
	run(&k.b, "cat node_modules/own/f; rm -r ~/bin node_modules/a node_modules/own; echo f > ~/bin; rm -r d");
	CHECK_STR(k.b.result.out.text, STR("mine\n"));
	lose_cache(&k);
	run(&k.b, "cat ~/bin; find node_modules d 2>/dev/null | sort");
	CHECK_STR(k.b.result.out.text, STR("f\nnode_modules\nnode_modules/b\nnode_modules/own\n"));
	CHECK_STR(content(&k.b, "node_modules/own/f"), STR("of the workspace"));
}

EACH_COPY(a_command_that_changes_nothing_of_its_copy_saves_nothing)
{
	static struct kept_box k;
	struct snapshot_info before, after;
	struct store *one;

	kept_init_in(&k, tier);
	put(&k.b, "node_modules/own/f", "of the workspace");
	one = store_prefix_new(store_share(k.snapshots), k.keep.dir);
	test_defer(store_destroy, one);
	run(&k.b, "echo aaaa > ~/f; touch -d @1000000000 ~/f; mkdir node_modules/a; echo b > node_modules/a/x");
	CHECK_OK(snapshot_show(one, &k.b.ctx, &before, &k.b.err), k.b.err);
	CHECK_INT(before.files, 2); /* not the one of the store */
	run(&k.b, "cat ~/f node_modules/*/* > /dev/null; touch ~/c; rm ~/c");
	CHECK_OK(snapshot_show(one, &k.b.ctx, &after, &k.b.err), k.b.err);
	CHECK_STR(after.id, before.id);
	run(&k.b, "echo bbbb > ~/f; touch -d @1000000000 ~/f"); /* as large and as old as before */
	run(&k.b, "cat ~/f");
	CHECK_STR(k.b.result.out.text, STR("bbbb\n"));
}

static void shut_files_are_kept(struct box *b)
{
	static struct sandbox_keep keep;
	enum sandbox_tier have;

	if (sandbox_tier_choose(SANDBOX_LANDLOCK, &have, &b->err) != 0)
		return;
	keep = (struct sandbox_keep){.store = store_memory_new(),
				     .dir = {STR("one")},
				     .cache = arena_printf(b->arena, "%s/c", temp_dir_new()).ptr};
	test_defer(store_destroy, keep.store);
	b->job.keep = &keep;
	b->job.tier = SANDBOX_LANDLOCK;
	run(b, "echo x > ~/f; chmod 0 ~/f; mkdir ~/d; echo y > ~/d/g; chmod 300 ~/d");
	run(b, "stat -c %a ~/f ~/d; chmod 700 ~/f ~/d; cat ~/f ~/d/g");
	CHECK_STR(b->result.out.text, STR("0\n300\nx\ny\n"));
	run(b, "cat ~/f ~/d/g");
	CHECK_STR(b->result.out.text, STR("x\ny\n"));
}

TEST(a_user_may_keep_what_its_owner_may_not_read)
{
	box_as_user(shut_files_are_kept);
}

TEST(a_tier_that_cannot_keep_anything_refuses_to_run)
{
	static struct kept_box k;
	static const char *const argv[] = {"true", NULL};

	kept_init(&k);
	k.b.job.tier = SANDBOX_LOCAL;
	k.b.job.argv = argv;
	CHECK_INT(sandbox_run(&k.b.ctx, &k.b.job, &k.b.result, &k.b.err), -ERR_UNSUPPORTED);
	CHECK_HAS(str_of(k.b.err.msg), STR("use another tier"));
}

/* --- killed at every step --- */

static int steps_left;

static int killing_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r;

	if (steps_left-- == 0)
		kill(getpid(), SIGKILL);
	r = store_forward(s->inner, ctx, call, err);
	if (steps_left-- == 0)
		kill(getpid(), SIGKILL);
	return r;
}

static void killing_destroy(struct store *s)
{
	free(s);
}

static struct store *killing_new(struct store *inner)
{
	static const struct store_ops ops = {.name = "killing", .around = killing_around, .destroy = killing_destroy};
	struct store *s = xcalloc(1, sizeof *s);

	*s = (struct store){.ops = &ops, .inner = inner};
	return s;
}

/* True: it came to its end. */
static bool run_killed_after(struct kept_box *k, int steps, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		steps_left = steps;
		k->keep.store = killing_new(store_share(k->snapshots));
		k->b.job.argv = argv;
		_exit(sandbox_run(&k->b.ctx, &k->b.job, &k->b.result, &k->b.err) != 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFEXITED(status);
}

TEST(a_process_killed_at_any_step_leaves_the_old_or_the_new_one)
{
	static struct kept_box k;
	struct store_disk_opts opts = {.relaxed = true};
	const char *dir = temp_dir_new();
	bool done = false;

	kept_init(&k);
	CHECK_OK(store_disk_open(dir, &opts, &k.snapshots, &k.b.err), k.b.err); /* both processes see it */
	test_defer(store_destroy, k.snapshots);
	k.keep.store = k.snapshots;
	run(&k.b, "echo old > ~/f; seq 1000 > ~/g");
	for (int steps = 0; !done && steps < 200; steps++) {
		uint64_t freed;
		struct store *one;

		if (steps % 3 == 0)
			lose_cache(&k);
		done = run_killed_after(&k, steps, "echo new > ~/f; rm ~/g; seq 2000 > ~/h");
		run(&k.b, "cat ~/f; ls ~");
		CHECK(str_is(k.b.result.out.text, "old\nf\ng\n") || str_is(k.b.result.out.text, "new\nf\nh\n"));
		one = store_prefix_new(store_share(k.snapshots), k.keep.dir);
		CHECK_OK(snapshot_sweep(one, &k.b.ctx, &freed, &k.b.err), k.b.err);
		store_destroy(one);
		CHECK(files_in(&k, "one") <= 5);
		run(&k.b, "rm -f ~/h; echo old > ~/f; seq 1000 > ~/g");
		CHECK_STR(str_of(outcome(&k.b, "/home")), STR("nothing"));
	}
	CHECK(done);
}

/* --- lists of kept files that others wrote --- */

TEST(a_manifest_that_leads_elsewhere_is_refused)
{
	static const char *const bad[] = {"w files/../x\n",
					  "w home\n",
					  "w etc/passwd\n",
					  "w files//x\n",
					  "w files/x/\n",
					  "w files/%00\n",
					  "w files/%2E%2E/x\n",
					  "w files/b\nw files/a\n",
					  "w files/a\nw files/a\n",
					  "f 644 0 1 HASH 0 0 files/x\n",
					  "d 4755 0 files/x\n",
					  "x files/x\n",
					  "w files/x"};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct manifest m;
	struct err err;

	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK_ERR(manifest_parse(arena, arena_printf(arena, "stead-snapshot 1\n%s", bad[i]), &m, &err), err,
			  ERR_CORRUPT);
	CHECK_OK(manifest_parse(arena, STR("stead-snapshot 1\nd 755 1 files/a%20b\nw files/a%20b/%0A\n"), &m, &err),
		 err);
	CHECK_INT(m.count, 2);
	CHECK_STR(m.entries[1].path, STR("files/a b/\n"));
}
