/* SPDX-License-Identifier: Apache-2.0 */
/* What an overlay costs: requests to the stores below it, and whose scan it uses. */
#include "store/store_fix.h"

/* A fork on a server: both stores are far away and count what they are asked. */
struct fork_fix {
	struct conf c;
	struct store *upper, *lower; /* that count */
	struct store *upper_memory, *lower_memory;
	int64_t began;
};

static void fork_end(struct fork_fix *f)
{
	store_destroy(f->c.s);
	store_destroy(f->upper_memory);
	store_destroy(f->lower_memory);
	arena_destroy(f->c.ctx.arena);
}

static struct store *over_both(struct fork_fix *f)
{
	f->upper = store_fault_new(store_share(f->upper_memory));
	f->lower = store_fault_new(store_share(f->lower_memory));
	return store_overlay_new(remote_new(f->upper, false), remote_new(f->lower, true));
}

static struct fork_fix fork_new(void)
{
	static const char *const parents[] = {"files/docs/a.md", "files/docs/b.md", "files/docs/c.md", "files/x.md"};
	struct fork_fix f = {
		.c.ctx.arena = arena_new(), .upper_memory = store_memory_new(), .lower_memory = store_memory_new()};
	struct conf lower = {.s = f.lower_memory, .ctx = f.c.ctx};

	for (size_t i = 0; i < COUNT(parents); i++)
		put(&lower, parents[i], "the parent's");
	f.c.s = over_both(&f);
	put(&f.c, "files/own.md", "the fork's");
	CHECK_OK(store_remove(f.c.s, &f.c.ctx, P("files/docs/c.md"), false, ANY, NULL, &f.c.err), f.c.err);
	get(&f.c, "files/x.md");
	return f;
}

#define WITH_FORK __attribute__((cleanup(fork_end))) struct fork_fix f = fork_new()

static uint64_t requests(const struct fork_fix *f)
{
	return store_fault_count(f->upper) + store_fault_count(f->lower);
}

/* Whiteouts are fetched again after a second, so on a slow machine one more is allowed. */
#define CHECK_REQUESTS(f, act, most)                                                                                   \
	do {                                                                                                           \
		uint64_t before_ = requests(f);                                                                        \
		act;                                                                                                   \
		before_ = requests(f) - before_;                                                                       \
		if (before_ > (most) + (clock_monotonic_ns() - (f)->began > 500000000))                                \
			TEST_FAIL("%s took %d requests, at most %d are allowed", #act, (int)before_, (int)(most));     \
	} while (0)

TEST(a_read_in_a_fork_on_a_server_takes_two_requests)
{
	WITH_FORK;

	get(&f.c, "files/docs/b.md");
	CHECK_REQUESTS(&f, get(&f.c, "files/docs/a.md"), 2);
	CHECK_REQUESTS(&f, stat_of(&f.c, "files/docs/a.md"), 2);
	CHECK_REQUESTS(&f, get(&f.c, "files/own.md"), 1);
	CHECK_REQUESTS(&f, CHECK_GONE(&f.c, "files/docs/c.md"), 2);
}

static void write_cond(struct fork_fix *f, const char *path, struct store_cond cond)
{
	CHECK_OK(store_write(f->c.s, &f->c.ctx, P(path), STR("new"), cond, NULL, &f->c.err), f->c.err);
}

TEST(a_write_in_a_fork_on_a_server_takes_three_requests)
{
	WITH_FORK;
	struct str b = stat_of(&f.c, "files/docs/b.md").version;

	CHECK_REQUESTS(&f, put(&f.c, "files/docs/a.md", "new"), 2);
	CHECK_REQUESTS(&f, put(&f.c, "files/docs/a.md", "newer"), 2);
	CHECK_REQUESTS(&f, write_cond(&f, "files/docs/b.md", VERS(b)), 3);
	b = stat_of(&f.c, "files/docs/b.md").version;
	CHECK_REQUESTS(&f, write_cond(&f, "files/docs/b.md", VERS(b)), 2);
	CHECK_REQUESTS(&f, put(&f.c, "files/docs/new.md", "new"), 3);
	CHECK_REQUESTS(&f, write_cond(&f, "files/docs/newer.md", ABSENT), 3);
}

/* Another process, which has its own memory of the same stores. */
TEST(a_condition_sees_what_another_process_has_just_removed)
{
	WITH_FORK;
	struct fork_fix other = {.upper_memory = f.upper_memory, .lower_memory = f.lower_memory, .c.ctx = f.c.ctx};
	struct str a = stat_of(&f.c, "files/docs/a.md").version;

	other.c.s = over_both(&other);
	get(&other.c, "files/docs/a.md");
	CHECK_OK(store_remove(f.c.s, &f.c.ctx, P("files/docs/a.md"), false, ANY, NULL, &f.c.err), f.c.err);
	CHECK_ERR(store_write(other.c.s, &other.c.ctx, P("files/docs/a.md"), STR("x"), VERS(a), NULL, &other.c.err),
		  other.c.err, ERR_CONFLICT);
	CHECK_ERR(store_remove(other.c.s, &other.c.ctx, P("files/docs/a.md"), false, ANY, NULL, &other.c.err),
		  other.c.err, ERR_NOT_FOUND);
	CHECK_GONE(&other.c, "files/docs/a.md");
	CHECK_OK(store_remove(f.c.s, &f.c.ctx, P("files"), true, ANY, NULL, &f.c.err), f.c.err);
	put(&other.c, "files", "a file in place of the directory");
	CHECK_GONE(&other.c, "files/x.md");
	CHECK_TREE(&other.c, "files");
	store_destroy(other.c.s);
}

/* Scans. */

static struct store *over_disk(struct store **ret_upper, struct store **ret_lower, struct arena *arena)
{
	struct conf lower = {.s = open_disk(true, false), .ctx = {.arena = arena}};
	char path[32];

	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "d/%d/f%03d", i % 7, i);
		put(&lower, path, path);
	}
	put(&lower, "build.o", "object");
	put(&lower, ".gitignore", "*.o\nout/\n");
	put(&lower, "out/x", "ignored");
	*ret_lower = store_fault_new(lower.s);
	*ret_upper = store_fault_new(open_disk(true, false));
	return store_overlay_new(*ret_upper, *ret_lower);
}

/* What changes; `n` chooses how much of it. */
static void change_some(struct conf *c, int n)
{
	char path[32];

	for (int i = 0; i < 2000; i += n) {
		snprintf(path, sizeof(path), "d/%d/f%03d", i % 7, i);
		put(c, path, "changed or new");
	}
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/3"), true, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/1/f001"), false, ANY, NULL, &c->err), c->err);
	put(c, "d/1/f001/now", "a directory");
	put(c, "d/3/new", "after a whiteout");
	put(c, "a", "first");
	put(c, "z/last.o", "ignored");
	put(c, "z/last", "last");
	put(c, "out/y", "ignored");
}

TEST(a_scan_with_threads_gives_what_one_with_a_single_thread_gives)
{
	for (int n = 2; n < 1500; n = n * 7 + 1)
		for (int use_ignore = 0; use_ignore < 2; use_ignore++) {
			ARENA_SCOPE struct arena *arena = arena_new();
			struct store *upper, *lower;
			struct conf c = {.s = over_disk(&upper, &lower, arena), .ctx = {.arena = arena}};
			struct seen one = {0};
			struct str several;

			change_some(&c, n);
			for (int contents = 0; contents < 2; contents++) {
				CHECK_OK(gather(&c, "", contents, use_ignore, &several), c.err);
				CHECK_STR(several, scan_paths(&c, "", &one, contents, use_ignore));
				one = (struct seen){0};
				CHECK_OK(gather(&c, "d/1", contents, use_ignore, &several), c.err);
				CHECK_STR(several, scan_paths(&c, "d/1", &one, contents, use_ignore));
				one = (struct seen){0};
			}
			store_destroy(c.s);
		}
}

TEST(lowers_own_scan_is_used_whatever_the_number_of_files)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *upper, *lower;
	struct conf c = {.s = over_disk(&upper, &lower, arena), .ctx = {.arena = arena}};
	struct str all;
	uint64_t before;

	put(&c, "d/5/f005", "changed");
	before = store_fault_count(lower);
	CHECK_OK(gather(&c, "", true, true, &all), c.err);
	CHECK(store_fault_count(lower) - before <= 8); /* a scan, and questions about ignore files */
	CHECK_HAS(all, STR("d/5/f005:changed d/5/f012:d/5/f012"));
	store_destroy(c.s);
}

TEST(an_ignore_file_of_upper_holds_for_lowers_files)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *upper, *lower;
	struct conf c = {.s = over_disk(&upper, &lower, arena), .ctx = {.arena = arena}};
	struct str all;

	put(&c, "d/.gitignore", "[0-4]/\n5/*\n6/*\n!6/f006\n");
	CHECK_OK(gather(&c, "", false, true, &all), c.err);
	CHECK_STR(all, STR(".gitignore d/.gitignore d/6/f006"));
	CHECK_OK(store_remove(c.s, &c.ctx, P(".gitignore"), false, ANY, NULL, &c.err), c.err);
	CHECK_OK(gather(&c, "", false, true, &all), c.err);
	CHECK_STR(all, STR("build.o d/.gitignore d/6/f006 out/x"));
	store_destroy(c.s);
}

static int stop_visit(void *arg, const struct scan_item *item, struct err *err)
{
	const char *where = arg;

	return str_is(item->path, where) ? err_set(err, ERR_TOO_LARGE, "stopped") : 0;
}

TEST(a_visitors_error_on_either_side_ends_the_scan)
{
	static const char *const where[] = {"d/0/f000", "d/5/f005", "d/2/f002"};

	for (size_t i = 0; i < COUNT(where); i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct store *upper, *lower;
		struct conf c = {.s = over_disk(&upper, &lower, arena), .ctx = {.arena = arena}};
		char path[16];
		struct scan_req req = {.contents = true, .visit = stop_visit, .arg = path};

		snprintf(path, sizeof(path), "%s", where[i]);
		put(&c, "d/5/f005", "changed");
		put(&c, "z", "changed");
		CHECK_ERR(store_scan(c.s, &c.ctx, P(""), &req, &c.err), c.err, ERR_TOO_LARGE);
		store_destroy(c.s);
	}
}
