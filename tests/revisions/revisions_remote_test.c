/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revisions in a journal: how many requests they cost, and several replicas on one workspace. The memory store makes a
 * change and its record in one step; a plain store over it has two, as S3 has.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "revisions/revisions_journal_facts.h"
#include "store/plain_fix.h"

/* A store that is counted, and the layer on it. */
struct rig {
	struct store *memory, *fault;
	struct conf c;
};

static struct rig rig_on(struct store *memory, bool plain)
{
	struct rig r = {.memory = memory, .fault = store_fault_new(store_share(memory))};

	r.c = (struct conf){.s = replica_on(plain ? plain_new(r.fault) : r.fault), .ctx = {.arena = arena_new()}};
	return r;
}

static void rig_end(struct rig *r)
{
	store_destroy(r->c.s);
	arena_destroy(r->c.ctx.arena);
}

static uint64_t requests(struct rig *r)
{
	uint64_t n = store_fault_count(r->fault);

	store_fault_arm(r->fault, 0, ERR_UNAVAILABLE, false);
	return n;
}

/* write new, write known, write under a condition, append, read, remove. */
static struct str costs(struct rig *r)
{
	struct conf *c = &r->c;
	struct buf out;
	struct str bytes;
	struct store_stat st;

	buf_init(&out, c->ctx.arena, 200);
	put(c, "first", "reads the log");
	requests(r);
	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("one"), ANY, &st, &c->err), c->err);
	buf_printf(&out, "new %d", (int)requests(r));
	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("two"), ANY, &st, &c->err), c->err);
	buf_printf(&out, ", known %d", (int)requests(r));
	CHECK_OK(store_write(c->s, &c->ctx, P("a"), STR("three"), VERS(st.version), &st, &c->err), c->err);
	buf_printf(&out, ", condition %d", (int)requests(r));
	CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("four"), ANY, &st, &c->err), c->err);
	buf_printf(&out, ", append %d", (int)requests(r));
	CHECK_OK(store_read(c->s, &c->ctx, P("a"), STORE_WHOLE, MIB, &bytes, NULL, &c->err), c->err);
	CHECK_STR(bytes, STR("threefour"));
	buf_printf(&out, ", read %d", (int)requests(r));
	CHECK_OK(store_remove(c->s, &c->ctx, P("first"), false, ANY, NULL, &c->err), c->err);
	buf_printf(&out, ", remove %d", (int)requests(r));
	CHECK_OK(store_write(c->s, &c->ctx, P("large"), str_n(arena_alloc(c->ctx.arena, 100000), 100000), ANY, &st,
			     &c->err),
		 c->err);
	buf_printf(&out, ", large %d", (int)requests(r));
	return buf_str(&out);
}

TEST(a_change_with_its_revision_is_one_request_where_the_store_can)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, false);

	CHECK_STR(costs(&r), STR("new 1, known 1, condition 1, append 1, read 1, remove 1, large 2"));
	rig_end(&r);
	store_destroy(memory);
}

TEST(a_change_on_plain_objects_is_two_requests)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true);

	CHECK_STR(costs(&r), STR("new 2, known 2, condition 2, append 2, read 1, remove 2, large 3"));
	rig_end(&r);
	store_destroy(memory);
}

TEST(a_thousand_changes_are_opened_with_few_requests)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true), again;
	uint64_t head, opening;

	for (int i = 0; i < 1000; i++)
		put(&r.c, "a", arena_printf(r.c.ctx.arena, "%d", i).ptr);
	CHECK(requests(&r) <= 2000 + 1000 / 64 + 10);
	rig_end(&r);
	again = rig_on(memory, true);
	CHECK_OK(revisions_head(again.c.s, &again.c.ctx, &head, &again.c.err), again.c.err);
	CHECK_INT(head, 1000);
	opening = requests(&again);
	put(&again.c, "a", "more");
	CHECK(opening + requests(&again) <= 13);
	rig_end(&again);
	store_destroy(memory);
}

/* Its version tells that it is what it was. What another replica has changed since is found in the log. */
static void check_past(bool plain)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, plain), other = rig_on(memory, plain);
	struct conf past = {.ctx = r.c.ctx};
	uint64_t size;

	put(&r.c, "a", "one");
	put(&r.c, "b", "two");
	past.s = store_at_revision_new(r.c.s, 2);
	requests(&r);
	CHECK_STR(get(&past, "a"), STR("one"));
	CHECK_INT(requests(&r), 1);
	size = stat_of(&past, "b").size;
	CHECK_INT(size, 3);
	CHECK_INT(requests(&r), 1);
	put(&other.c, "a", "changed");
	CHECK_OK(store_remove(other.c.s, &other.c.ctx, P("b"), false, ANY, NULL, &other.c.err), other.c.err);
	CHECK_STR(get(&past, "a"), STR("one"));
	CHECK_STR(get(&past, "b"), STR("two"));
	store_destroy(past.s);
	rig_end(&other);
	rig_end(&r);
	store_destroy(memory);
}

TEST(an_unchanged_file_of_the_past_is_one_request)
{
	check_past(false);
	check_past(true);
}

/* The last record until then is done, and nothing that others add changes that. */
TEST(a_state_that_the_log_tells_for_good_is_no_request)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true);
	struct rev_state state;

	put(&r.c, "a", "one");
	put(&r.c, "a", "longer");
	requests(&r);
	CHECK_OK(revisions_state(r.c.s, &r.c.ctx, P("a"), 1, &state, &r.c.err), r.c.err);
	CHECK_INT(state.size, 3);
	CHECK_OK(revisions_state(r.c.s, &r.c.ctx, P("a"), 2, &state, &r.c.err), r.c.err);
	CHECK_INT(state.size, 6);
	CHECK_INT(requests(&r), 0);
	rig_end(&r);
	store_destroy(memory);
}

TEST(changes_by_other_programs_are_noticed_by_lists)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true);
	uint64_t count;

	for (int i = 0; i < 200; i++)
		put(&r.c, arena_printf(r.c.ctx.arena, "d%d/f%d", i % 7, i).ptr, "one");
	CHECK_OK(store_write(memory, &r.c.ctx, P("d3/f10"), STR("two"), ANY, NULL, &r.c.err), r.c.err);
	CHECK_OK(store_remove(memory, &r.c.ctx, P("d4/f11"), false, ANY, NULL, &r.c.err), r.c.err);
	requests(&r);
	CHECK_OK(revisions_notice(r.c.s, &r.c.ctx, WPATH_ROOT, &count, &r.c.err), r.c.err);
	CHECK_INT(count, 2);
	CHECK(requests(&r) <= 30);
	CHECK_OK(revisions_notice(r.c.s, &r.c.ctx, WPATH_ROOT, &count, &r.c.err), r.c.err);
	CHECK_INT(count, 0);
	CHECK(requests(&r) <= 5);
	rig_end(&r);
	store_destroy(memory);
}

TEST(a_workspace_is_opened_without_a_request)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true);

	CHECK_INT(requests(&r), 0);
	rig_end(&r);
	store_destroy(memory);
}

/* A trim gives the memory of records back when the call that holds them ends: what the call returned must not be in it.
 */
TEST(the_version_that_a_move_returns_outlives_the_memory_of_its_record)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, false);
	struct store_stat moved, now;

	put(&r.c, "a", "one");
	for (unsigned i = 0; i < 9000; i++) { /* two records each; 16,384 are a reason to trim */
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct wpath from = i % 2 ? P("b") : P("a"), to = i % 2 ? P("a") : P("b");

		CHECK_OK(store_move(r.c.s, &ctx, from, to, ANY, ANY, &moved, &r.c.err), r.c.err);
		CHECK_OK(store_stat(r.c.s, &ctx, to, &now, &r.c.err), r.c.err);
		CHECK_STR(moved.version, now.version);
	}
	rig_end(&r);
	store_destroy(memory);
}

/* Nothing is known of the file, and its bytes are by chance those that are to be written. */
TEST(a_file_that_nobody_recorded_is_not_taken_for_what_was_just_made)
{
	struct store *memory = store_memory_new();
	struct rig r = rig_on(memory, true);
	struct conf direct = {.s = memory, .ctx = r.c.ctx};
	struct revision *list;
	size_t count;

	put(&r.c, "first", "two steps are known");
	put(&direct, "old", "same");
	CHECK_ERR(store_write(r.c.s, &r.c.ctx, P("old"), STR("same"), ABSENT, NULL, &r.c.err), r.c.err, ERR_EXISTS);
	put(&r.c, "old", "same");
	CHECK_OK(revisions_query(r.c.s, &r.c.ctx, &(struct rev_query){.path = P("old")}, &list, &count, NULL, &r.c.err),
		 r.c.err);
	CHECK_INT(count, 1);
	CHECK(list[0].before.exists);
	rig_end(&r);
	store_destroy(memory);
}

/* --- forks --- */

#define LARGE (100 * 1024)

/* A fork, counted, of a parent with a few files. */
static struct rig fork_rig(struct store *memory, bool plain)
{
	struct rig r = {.memory = memory};
	struct conf parent = {.s = store_prefix_new(store_share(memory), P("parent")), .ctx = {.arena = arena_new()}};

	put(&parent, "d/a", "of the parent");
	put(&parent, "d/b", "binary \xff");
	put(&parent, "d/c", "c");
	CHECK_OK(store_write(parent.s, &parent.ctx, P("large"), str_n(arena_alloc(parent.ctx.arena, LARGE), LARGE), ANY,
			     NULL, &parent.err),
		 parent.err);
	store_destroy(parent.s);
	r.fault = store_fault_new(store_share(memory));
	r.c = (struct conf){.s = replica_on(fork_on(plain ? plain_new(r.fault) : r.fault)), .ctx = parent.ctx};
	put(&r.c, "first", "reads the log");
	requests(&r);
	return r;
}

/* What was there before the newest revision of a path. */
static struct str before_newest(struct rig *r, const char *path)
{
	struct conf then = r->c;
	struct revision *list;
	size_t count;
	struct str was;

	CHECK_OK(revisions_query(r->c.s, &r->c.ctx, &(struct rev_query){.path = P(path)}, &list, &count, NULL,
				 &r->c.err),
		 r->c.err);
	CHECK(count > 0 && list[count - 1].before.exists);
	then.s = store_at_revision_new(r->c.s, list[count - 1].number - 1);
	was = get(&then, path);
	store_destroy(then.s);
	return was;
}

static void check_fork_costs(bool plain, const char *want)
{
	struct store *memory = store_memory_new();
	struct rig r = fork_rig(memory, plain);
	struct conf *c = &r.c;
	struct buf out;
	struct str version;

	buf_init(&out, c->ctx.arena, 200);
	put(c, "d/a", "of the fork");
	buf_printf(&out, "first %d", (int)requests(&r));
	put(c, "d/a", "again");
	buf_printf(&out, ", known %d", (int)requests(&r));
	version = stat_of(c, "d/b").version;
	requests(&r);
	CHECK_OK(store_write(c->s, &c->ctx, P("d/b"), STR("b"), VERS(version), NULL, &c->err), c->err);
	buf_printf(&out, ", condition %d", (int)requests(&r));
	put(c, "d/new", "new");
	buf_printf(&out, ", new %d", (int)requests(&r));
	put(c, "large", "small");
	CHECK_STR(buf_str(&out), str_of(want));
	CHECK_STR(before_newest(&r, "d/b"), STR("binary \xff"));
	CHECK_INT(before_newest(&r, "large").len, LARGE);
	rig_end(&r);
	store_destroy(memory);
}

TEST(the_first_change_of_a_parents_file_is_two_requests_where_the_store_can)
{
	check_fork_costs(false, "first 2, known 1, condition 2, new 2");
}

TEST(the_first_change_of_a_parents_file_on_plain_objects_is_three_requests)
{
	check_fork_costs(true, "first 3, known 2, condition 3, new 3");
}

TEST(a_condition_in_a_fork_is_refused_before_anything_is_logged)
{
	struct store *memory = store_memory_new();
	struct rig r = fork_rig(memory, false);
	struct conf *c = &r.c;
	uint64_t head, now;

	CHECK_OK(revisions_head(c->s, &c->ctx, &head, &c->err), c->err);
	CHECK_ERR(store_write(c->s, &c->ctx, P("d/a"), STR("x"), ABSENT, NULL, &c->err), c->err, ERR_EXISTS);
	CHECK_ERR(store_write(c->s, &c->ctx, P("d/a"), STR("x"), VERS(STR("l:other")), NULL, &c->err), c->err,
		  ERR_CONFLICT);
	CHECK_ERR(store_write(c->s, &c->ctx, P("d"), STR("x"), ANY, NULL, &c->err), c->err, ERR_INVALID);
	CHECK_OK(revisions_head(c->s, &c->ctx, &now, &c->err), c->err);
	CHECK_INT(now, head);
	rig_end(&r);
	store_destroy(memory);
}

TEST(what_another_replica_removed_in_a_fork_does_not_come_back)
{
	struct store *memory = store_memory_new();
	struct rig r = fork_rig(memory, false);
	struct conf *c = &r.c, other = {.s = replica_on(fork_on(store_share(memory))), .ctx = r.c.ctx};
	struct str version = stat_of(c, "d/a").version;
	struct revision *list;
	size_t count;

	CHECK_OK(store_remove(other.s, &other.ctx, P("d/a"), false, ANY, NULL, &other.err), other.err);
	CHECK_ERR(store_write(c->s, &c->ctx, P("d/a"), STR("x"), VERS(version), NULL, &c->err), c->err, ERR_CONFLICT);
	CHECK_GONE(c, "d/a");
	put(c, "d/a", "new");
	CHECK_STR(get(&other, "d/a"), STR("new"));
	CHECK_OK(revisions_query(c->s, &c->ctx, &(struct rev_query){.path = P("d/a")}, &list, &count, NULL, &c->err),
		 c->err);
	CHECK_INT(count, 2);
	CHECK(list[0].before.exists && !list[1].before.exists);
	store_destroy(other.s);
	rig_end(&r);
	store_destroy(memory);
}

/* --- several replicas --- */

static struct store *another_memory(void *arg)
{
	return store_share(arg);
}

static struct store *another_plain(void *arg)
{
	return plain_new(store_share(arg));
}

TEST(what_another_replica_changed_is_not_overwritten_unseen)
{
	struct store *memory = store_memory_new();
	struct conf a = {.s = replica_on(another_memory(memory)), .ctx = {.arena = arena_new()}}, b = a;
	struct str version = put(&a, "f", "one");
	struct revision *list;
	size_t count;

	b.s = replica_on(another_memory(memory));
	put(&b, "f", "two");
	CHECK_ERR(store_write(a.s, &a.ctx, P("f"), STR("x"), VERS(version), NULL, &a.err), a.err, ERR_CONFLICT);
	CHECK_ERR(store_write(a.s, &a.ctx, P("f"), STR("x"), ABSENT, NULL, &a.err), a.err, ERR_EXISTS);
	put(&a, "f", "three");
	CHECK_OK(store_remove(b.s, &b.ctx, P("f"), false, ANY, NULL, &b.err), b.err);
	CHECK_OK(store_append(a.s, &a.ctx, P("f"), STR("four"), ANY, NULL, &a.err), a.err);
	CHECK_STR(get(&b, "f"), STR("four"));
	CHECK_OK(revisions_query(b.s, &b.ctx, &(struct rev_query){.with_aborted = true}, &list, &count, NULL, &b.err),
		 b.err);
	CHECK_INT(count, 5);
	CHECK(list[3].op == REV_REMOVE && list[4].op == REV_APPEND && !list[4].before.exists);
	store_destroy(a.s);
	store_destroy(b.s);
	store_destroy(memory);
	arena_destroy(a.ctx.arena);
}

static void *write_once(void *arg)
{
	struct conf c = {.s = arg, .ctx = {.arena = arena_new()}};
	int r = store_write(c.s, &c.ctx, P("f"), STR("x"), ANY, NULL, &c.err);

	arena_destroy(c.ctx.arena);
	return r ? arg : NULL;
}

static void hears_of(struct store *(*open_base)(void *arg))
{
	struct store *memory = store_memory_new(), *other = replica_on(open_base(memory));
	struct conf c = {.s = replica_on(open_base(memory)), .ctx = {.arena = arena_new()}};
	pthread_t writer;
	void *failed;

	c.ctx.deadline_ns = clock_monotonic_ns() + INT64_C(20000000000);
	CHECK_INT(pthread_create(&writer, NULL, write_once, other), 0);
	CHECK_OK(revisions_wait(c.s, &c.ctx, 0, 50, &c.err), c.err);
	pthread_join(writer, &failed);
	CHECK(!failed);
	store_destroy(other);
	store_destroy(c.s);
	store_destroy(memory);
	arena_destroy(c.ctx.arena);
}

TEST(who_waits_hears_of_another_replica)
{
	hears_of(another_memory);
	hears_of(another_plain);
}

TEST(eight_replicas_lose_nothing_and_double_nothing)
{
	struct store *memory = store_memory_new();

	replicas_lose_nothing(another_memory, memory, 8, 15);
	store_destroy(memory);
}

TEST(eight_replicas_on_plain_objects_lose_nothing_and_double_nothing)
{
	struct store *memory = store_memory_new();

	replicas_lose_nothing(another_plain, memory, 8, 10);
	store_destroy(memory);
}

/* --- processes --- */

static struct store *on_disk(void *arg)
{
	struct store_disk_opts opts = {.relaxed = true};
	struct store *s;
	struct err err;

	CHECK_OK(store_disk_open(arg, &opts, &s, &err), err);
	return s;
}

TEST(eight_replicas_of_a_fork_agree)
{
	struct store *memory = store_memory_new();

	replicas_of_a_fork_agree(another_memory, memory, 8, 20);
	store_destroy(memory);
}

TEST(eight_replicas_of_a_fork_on_plain_objects_agree)
{
	struct store *memory = store_memory_new();

	replicas_of_a_fork_agree(another_plain, memory, 8, 20);
	store_destroy(memory);
}

TEST(eight_processes_on_one_journal_lose_nothing_and_double_nothing)
{
	char *dir = (char *)temp_dir_new();
	struct conf c = {.s = replica_on(on_disk(dir)), .ctx = {.arena = arena_new()}};
	pid_t children[8];

	put(&c, "count", "0");
	for (unsigned i = 0; i < 8; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct replica r = {.s = replica_on(on_disk(dir)), .id = i, .rounds = 10};

			replica_work(&r);
			store_destroy(r.s);
			_exit(r.failed ? 1 : 0);
		}
	}
	for (unsigned i = 0; i < 8; i++) {
		int status;

		CHECK_INT(waitpid(children[i], &status, 0), children[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	CHECK_STR(get(&c, "count"), STR("80"));
	check_appended(&c, 8, 10);
	check_history(&c, 10);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

/* --- where a log comes from --- */

TEST(a_log_that_began_in_segments_goes_on_in_a_journal)
{
	struct store *memory = store_memory_new(), *s, *past;
	struct conf c = {.ctx = {.arena = arena_new()}};
	struct rev_retained kept;
	struct str bytes;
	uint64_t head;

	CHECK_OK(store_revisions_open(store_share(memory), store_prefix_new(store_share(memory), P(".stead/rev")),
				      (struct revisions_opts){0}, &c.ctx, &s, &c.err),
		 c.err);
	c.s = s;
	put(&c, "a", "one");
	put(&c, "a", "two");
	store_destroy(s);
	c.s = replica_on(another_memory(memory));
	put(&c, "a", "three");
	store_destroy(c.s);
	c.s = replica_on(another_memory(memory));
	CHECK_OK(revisions_head(c.s, &c.ctx, &head, &c.err), c.err);
	CHECK_INT(head, 3);
	past = store_at_revision_new(c.s, 1);
	CHECK_OK(store_read(past, &c.ctx, P("a"), STORE_WHOLE, MIB, &bytes, NULL, &c.err), c.err);
	CHECK_STR(bytes, STR("one"));
	store_destroy(past);
	CHECK_OK(revisions_retain(c.s, &c.ctx, &(struct rev_retain){.limits = {.revisions = 1}, .grace_ns = -1}, &kept,
				  &c.err),
		 c.err);
	CHECK_INT(kept.first, 3);
	past = store_at_revision_new(c.s, 2);
	CHECK_OK(store_read(past, &c.ctx, P("a"), STORE_WHOLE, MIB, &bytes, NULL, &c.err), c.err);
	CHECK_STR(bytes, STR("two"));
	store_destroy(past);
	store_destroy(c.s);
	store_destroy(memory);
	arena_destroy(c.ctx.arena);
}
