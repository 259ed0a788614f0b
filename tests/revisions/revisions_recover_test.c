/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there after something went wrong: an operation of a store below fails (each one once, by counting), the power
 * is cut while the log is whole and the files are not, a process dies in the middle of a line, another one replays what
 * its owner is still about to do, a person changes a file that has an unfinished record.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/journal.h"
#include "store/store_fix.h"

#define S INT64_C(1000000000)

/* The layer over two stores that outlive it, with a fault between. */
struct rig {
	struct arena *arena;
	struct store *inner, *meta; /* where the bytes are */
	struct store *fault_inner, *fault_meta;
	struct conf c; /* c.s is the layer */
};

static void rig_open(struct rig *r, const char *boot)
{
	struct revisions_opts opts = form_opts(REV_FORM);

	opts.boot_id = str_of(boot);

	r->fault_inner = store_fault_new(store_share(r->inner));
	r->fault_meta = store_fault_new(store_share(r->meta));
	CHECK_OK(store_revisions_open(r->fault_inner, r->fault_meta, opts, &r->c.ctx, &r->c.s, &r->c.err), r->c.err);
}

static struct rig rig_new(struct store *inner, struct store *meta)
{
	struct rig r = {.arena = arena_new(), .inner = inner, .meta = meta};

	r.c.ctx.arena = r.arena;
	rig_open(&r, "");
	return r;
}

static void rig_reopen(struct rig *r, const char *boot)
{
	store_destroy(r->c.s);
	rig_open(r, boot);
}

static void rig_end(struct rig *r)
{
	store_destroy(r->c.s);
	store_destroy(r->inner);
	store_destroy(r->meta);
	arena_destroy(r->arena);
}

/* Every file with its bytes. */
static struct str tree_in(struct rig *r, struct store *s)
{
	struct conf c = {.s = s, .ctx = r->c.ctx};
	struct seen seen = {0};

	return scan_paths(&c, "", &seen, true, false);
}

static struct str tree_at(struct rig *r, uint64_t number)
{
	struct store *past = store_at_revision_new(r->c.s, number);
	struct str tree = tree_in(r, past);

	store_destroy(past);
	return tree;
}

static uint64_t head(struct rig *r)
{
	uint64_t number;

	CHECK_OK(revisions_head(r->c.s, &r->c.ctx, &number, &r->c.err), r->c.err);
	return number;
}

/* --- faults --- */

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
	struct stream st = {.total = 200000};
	struct source source = stream_source(&st);

	return store_write_stream(c->s, &c->ctx, P("a.txt"), &source, ANY, NULL, &c->err);
}

static int change_append(struct conf *c)
{
	return store_append(c->s, &c->ctx, P("d/one"), STR("+"), ANY, NULL, &c->err);
}

static int change_append_stream(struct conf *c)
{
	struct stream st = {.total = 200000};
	struct source source = stream_source(&st);

	return store_append_stream(c->s, &c->ctx, P("d/one"), &source, ANY, NULL, &c->err);
}

static int change_remove(struct conf *c)
{
	return store_remove(c->s, &c->ctx, P("a.txt"), false, ANY, NULL, &c->err);
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

/* An outside change comes before ours. */
static int change_after_outside(struct conf *c)
{
	return store_write(c->s, &c->ctx, P("out"), STR("ours"), ANY, NULL, &c->err);
}

static const struct scene {
	const char *name;
	int (*change)(struct conf *c);
} scenes[] = {
	{"write", change_write},
	{"overwrite", change_overwrite},
	{"stream", change_stream},
	{"append", change_append},
	{"append stream", change_append_stream},
	{"remove", change_remove},
	{"move", change_move},
	{"move onto", change_move_onto},
	{"move tree", change_move_tree},
	{"copy", change_copy},
	{"after an outside change", change_after_outside},
};

static struct rig prepared(void)
{
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM));
	struct conf direct = {.s = r.inner, .ctx = r.c.ctx};

	put(&direct, "d/two", "before the log began");
	put(&r.c, "a.txt", "alpha");
	put(&r.c, "d/one", "1");
	CHECK_OK(store_append(r.c.s, &r.c.ctx, P("d/one"), STR("one"), ANY, NULL, &r.c.err), r.c.err);
	put(&r.c, "d/sub/three", "3");
	put(&r.c, "out", "first");
	put(&direct, "out", "by another program");
	return r;
}

/* With operation n below failing: the tree is the old or the new one, an acknowledged change stays, the past stays, and
   the same change goes through afterwards. */
static bool fail_nth(const struct scene *scene, uint64_t n, bool in_meta, bool after, struct str new)
{
	struct rig r = prepared();
	struct store *fault = in_meta ? r.fault_meta : r.fault_inner;
	uint64_t base = head(&r), noticed;
	struct str old = tree_in(&r, r.inner), past = tree_at(&r, base), tree;
	bool failed;
	int result;

	store_fault_arm(fault, n, ERR_UNAVAILABLE, after);
	result = scene->change(&r.c);
	failed = store_fault_count(fault) >= n;
	CHECK(failed || result == 0);
	store_fault_arm(fault, 0, ERR_NONE, false);
	for (int reopened = 0; reopened < 2; reopened++) {
		tree = tree_in(&r, r.inner);
		if (!str_eq(tree, new) && (result == 0 || !str_eq(tree, old)))
			TEST_FAIL("%s, operation %d of %s failed %s (%d): the tree is \"%.*s\"", scene->name, (int)n,
				  in_meta ? "meta" : "inner", after ? "after" : "before", result,
				  STR_ARG(str_first(tree, 300)));
		CHECK_STR(tree_at(&r, base), past);
		rig_reopen(&r, "");
	}
	if (!str_eq(tree, new))
		CHECK_OK(scene->change(&r.c), r.c.err);
	CHECK_STR(tree_in(&r, r.inner), new);
	CHECK_OK(revisions_notice(r.c.s, &r.c.ctx, WPATH_ROOT, &noticed, &r.c.err), r.c.err);
	CHECK_STR(tree_at(&r, head(&r)), new);
	CHECK_STR(tree_at(&r, base), past);
	rig_end(&r);
	return failed;
}

static void fail_everywhere(bool in_meta, bool after)
{
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		struct rig r = prepared();
		struct str new;
		uint64_t n = 1;

		CHECK_OK(scenes[i].change(&r.c), r.c.err);
		new = tree_in(&r, r.inner);
		while (fail_nth(&scenes[i], n, in_meta, after, new))
			CHECK(n++ < 100);
		CHECK(n > 1 || (in_meta && REV_FORM == FORM_ONE_STEP)); /* it has the blobs only */
		rig_end(&r);
	}
}

TEST(a_failing_store_of_files_leaves_old_or_new_and_the_past_as_it_was)
{
	fail_everywhere(false, false);
	fail_everywhere(false, true);
}

TEST(a_failing_store_of_the_log_leaves_old_or_new_and_the_past_as_it_was)
{
	fail_everywhere(true, false);
	fail_everywhere(true, true);
}

#if REV_FORM == FORM_SEGMENTS
TEST(a_record_that_can_never_be_made_does_not_keep_the_workspace_closed)
{
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM));

	put(&r.c, "a", "a file");
	store_fault_arm(r.fault_meta, 0, ERR_NONE, false);
	/* killed between the record and its refusal: the log says that a/b is to be written */
	struct str line;
	struct store_page page;
	struct store_list_req req = {.recursive = true, .limit = 10};

	CHECK_ERR(store_write(r.c.s, &r.c.ctx, P("a/b"), STR("no"), ANY, NULL, &r.c.err), r.c.err, ERR_INVALID);
	CHECK_OK(store_list(r.meta, &r.c.ctx, P("log"), &req, &page, &r.c.err), r.c.err);
	CHECK_OK(store_read(r.meta, &r.c.ctx, page.entries[0].path, STORE_WHOLE, MIB, &line, NULL, &r.c.err), r.c.err);
	line = str_first(line, str_find(line, STR("{\"abort\""), 0));
	store_destroy(r.c.s);
	CHECK_OK(store_write(r.meta, &r.c.ctx, page.entries[0].path, line, ANY, NULL, &r.c.err), r.c.err);
	rig_open(&r, "");
	put(&r.c, "c", "goes on");
	CHECK_STR(tree_in(&r, r.inner), STR("a:a file c:goes on"));
	rig_end(&r);
}

/* --- the log itself --- */

static struct wpath log_file(struct rig *r)
{
	struct store_list_req req = {.recursive = true, .limit = 10};
	struct store_page page;

	CHECK_OK(store_list(r->meta, &r->c.ctx, P("log"), &req, &page, &r->c.err), r->c.err);
	return page.entries[page.count - 1].path;
}

/* The log is cut at every byte: what is whole counts, nothing else does, and a move counts as a whole. */
TEST(a_log_that_is_cut_at_any_byte_is_read_up_to_there)
{
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM));
	struct str whole;
	struct wpath path;

	put(&r.c, "a", "one");
	put(&r.c, "b", "two");
	CHECK_OK(store_move(r.c.s, &r.c.ctx, P("a"), P("m"), ANY, ANY, NULL, &r.c.err), r.c.err);
	store_destroy(r.c.s);
	path = log_file(&r);
	CHECK_OK(store_read(r.meta, &r.c.ctx, path, STORE_WHOLE, MIB, &whole, NULL, &r.c.err), r.c.err);
	for (size_t cut = 0; cut <= whole.len; cut++) {
		struct rig t = {.arena = arena_new(), .inner = store_memory_new(), .meta = store_memory_new()};
		struct str tree;

		t.c.ctx.arena = t.arena;
		CHECK_OK(store_write(t.meta, &t.c.ctx, path, str_first(whole, cut), ANY, NULL, &t.c.err), t.c.err);
		rig_open(&t, "boot"); /* no file has reached the disk */
		tree = tree_in(&t, t.inner);
		CHECK(str_eq(tree, STR("")) || str_eq(tree, STR("a:one")) || str_eq(tree, STR("a:one b:two")) ||
		      str_eq(tree, STR("b:two m:one")));
		CHECK(cut < whole.len || str_eq(tree, STR("b:two m:one")));
		put(&t.c, "z", "goes on");
		rig_reopen(&t, "boot");
		CHECK_STR(get(&t.c, "z"), STR("goes on"));
		rig_end(&t);
	}
	rig_open(&r, "");
	rig_end(&r);
}

static bool every_path(void *arg, struct wpath path)
{
	(void)arg;
	(void)path;
	return true;
}

/* A copy of the log was killed within a line; the next run adds several KiB of lines in one batch. */
TEST(a_batch_of_lines_that_follows_a_torn_one_is_kept_whole)
{
	struct rig from = rig_new(store_memory_new(), form_meta(REV_FORM));
	struct rig to = {.arena = arena_new(), .inner = store_memory_new(), .meta = store_memory_new()};
	struct rev_carry carry = {.until = 100, .wanted = every_path};
	struct str whole;
	uint64_t ends, differs;

	for (int i = 0; i < 100; i++)
		put(&from.c, arena_printf(from.arena, "a-name-that-takes-some-room-%d", i).ptr, "text");
	CHECK_OK(store_read(from.meta, &from.c.ctx, log_file(&from), STORE_WHOLE, MIB, &whole, NULL, &from.c.err),
		 from.c.err);
	to.c.ctx.arena = to.arena;
	CHECK_OK(store_write(to.meta, &to.c.ctx, log_file(&from), str_first(whole, str_find(whole, STR("room-5"), 0)),
			     ANY, NULL, &to.c.err),
		 to.c.err);
	rig_open(&to, "");
	CHECK_OK(revisions_carry(from.c.s, &from.c.ctx, &carry, &from.c.err), from.c.err);
	CHECK_OK(revisions_follow(to.c.s, &to.c.ctx, from.c.s, &carry, &to.c.err), to.c.err);
	rig_reopen(&to, "");
	CHECK_OK(revisions_compare(to.c.s, &to.c.ctx, from.c.s, &ends, &differs, &to.c.err), to.c.err);
	CHECK_INT(ends, 100);
	CHECK_INT(differs, 0);
	rig_end(&to);
	rig_end(&from);
}
#endif

TEST(appends_of_any_size_are_recorded)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 3000000};
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM));

	for (size_t i = 0; i < 6; i++) {
		char *more = arena_alloc_raw(r.arena, sizes[i] + 1);

		for (size_t k = 0; k < sizes[i]; k++)
			more[k] = (char)(k * 31 + i);
		CHECK_OK(store_append(r.c.s, &r.c.ctx, P("log"), str_n(more, sizes[i]), ANY, NULL, &r.c.err), r.c.err);
	}
	put(&r.c, "log", "over");
	for (uint64_t n = 1; n <= 6; n++) {
		struct store *past = store_at_revision_new(r.c.s, n);
		struct str bytes;
		size_t size = 0;

		for (size_t i = 0; i < n; i++)
			size += sizes[i];
		CHECK_OK(store_read(past, &r.c.ctx, P("log"), STORE_WHOLE, 8 * MIB, &bytes, NULL, &r.c.err), r.c.err);
		CHECK_INT(bytes.len, size);
		for (size_t i = 0, at = 0; i < n; at += sizes[i++])
			for (size_t k = 0; k < sizes[i]; k++)
				if (bytes.ptr[at + k] != (char)(k * 31 + i))
					TEST_FAIL("byte %zu of append %zu is wrong at revision %d", k, i, (int)n);
		store_destroy(past);
	}
	rig_end(&r);
}

TEST(what_was_appended_is_kept_when_another_program_replaces_the_file)
{
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM));
	struct conf direct = {.s = r.inner, .ctx = r.c.ctx};

	put(&r.c, "log", "1");
	CHECK_OK(store_append(r.c.s, &r.c.ctx, P("log"), STR("2"), ANY, NULL, &r.c.err), r.c.err);
	CHECK_OK(store_append(r.c.s, &r.c.ctx, P("log"), STR("3"), ANY, NULL, &r.c.err), r.c.err);
	put(&direct, "log", "gone");
	CHECK_STR(tree_at(&r, 3), STR("log:123")); /* nobody has noticed yet */
	put(&r.c, "log", "new");
	CHECK_STR(tree_at(&r, 2), STR("log:12"));
	CHECK_STR(tree_at(&r, 3), STR("log:123"));
	CHECK_STR(tree_at(&r, 4), STR("log:gone"));
	rig_end(&r);
}

/* --- replays while people and live owners are at work --- */

/* A second process on the same stores, whose notes of what is done are not written yet. */
TEST(a_person_who_cuts_or_removes_a_file_is_not_undone_by_a_replay)
{
	struct rig r = rig_new(store_memory_new(), form_meta(REV_FORM)), other = {0};
	struct conf direct = {.s = r.inner, .ctx = r.c.ctx};
	int64_t long_ago = clock_real_ns() - 60 * S;
	uint64_t noticed;

	CHECK(setenv("STEAD_TEST_CLOCK_NS", arena_printf(r.arena, "%lld", (long long)long_ago).ptr, 1) == 0);
	put(&r.c, "cut", "line 1\nline 2\n");
	put(&r.c, "gone", "for a while");
	put(&r.c, "log", "1\n");
	CHECK_OK(store_append(r.c.s, &r.c.ctx, P("log"), STR("2\n3\n"), ANY, NULL, &r.c.err), r.c.err);
	CHECK(unsetenv("STEAD_TEST_CLOCK_NS") == 0);
	put(&direct, "cut", "line 1\n");
	put(&direct, "log", "1\n2\n");
	CHECK_OK(store_remove(r.inner, &r.c.ctx, P("gone"), false, ANY, NULL, &r.c.err), r.c.err);
	other = (struct rig){.arena = r.arena, .inner = r.inner, .meta = r.meta, .c = {.ctx = r.c.ctx}};
	rig_open(&other, "");
	CHECK_OK(revisions_notice(other.c.s, &r.c.ctx, WPATH_ROOT, &noticed, &r.c.err), r.c.err);
	CHECK_INT(noticed, 3);
	CHECK_STR(tree_in(&r, r.inner), STR("cut:line 1\n log:1\n2\n"));
	CHECK_STR(tree_at(&other, 4), STR("cut:line 1\nline 2\n gone:for a while log:1\n2\n3\n"));
	store_destroy(other.c.s);
	rig_end(&r);
}

/* The owner has logged a move and pauses; another process writes to one of its paths and so replays that half. */
struct slow {
	struct store base;
	struct rig *other;
	const char *path;
	bool settles, done;
};

static int slow_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct slow *slow = (struct slow *)s;

	bool steps = call->op == STORE_OP_JOURNAL_ADD &&
		     (call->journal_add->change == JOURNAL_MOVE || call->journal_add->change == JOURNAL_GROUP);

	if (!slow->done && (call->op == STORE_OP_MOVE || steps)) {
		slow->done = true;
		put(&slow->other->c, slow->path, "by the other");
	}
	if (call->op == STORE_OP_WRITE && slow->settles && !slow->done && str_is(call->path.s, slow->path)) {
		struct conf *c = &slow->other->c;

		slow->done = true;
		CHECK_OK(revisions_settle(c->s, &c->ctx, call->path, NULL, &c->err), c->err);
	}
	return store_forward(s->inner, ctx, call, err);
}

static void slow_destroy(struct store *s)
{
	(void)s;
}

/* Two processes over one store; the first is slow. */
struct pair {
	struct rig r, other;
	struct slow slow;
};

static void pair_open(struct pair *p, const char *path)
{
	static const struct store_ops ops = {.name = "slow", .around = slow_around, .destroy = slow_destroy};
	struct conf *c = &p->r.c;

	p->r = rig_new(store_memory_new(), form_meta(REV_FORM));
	p->other = (struct rig){.arena = p->r.arena, .inner = p->r.inner, .meta = p->r.meta, .c = {.ctx = c->ctx}};
	p->slow = (struct slow){
		.base = {.ops = &ops, .inner = store_share(p->r.inner)}, .other = &p->other, .path = path};
	rig_open(&p->other, "");
	store_destroy(c->s);
	CHECK_OK(store_revisions_open(&p->slow.base, store_share(p->r.meta), form_opts(REV_FORM), &c->ctx, &c->s,
				      &c->err),
		 c->err);
}

static void pair_close(struct pair *p)
{
	store_destroy(p->other.c.s);
	rig_end(&p->r);
}

static void overtake_move(const char *from, const char *to, const char *path, struct str want)
{
	struct pair p;
	struct str tree;

	pair_open(&p, path);
	put(&p.r.c, "d/one", "1");
	put(&p.r.c, "d/two", "2");
	CHECK_OK(store_move(p.r.c.s, &p.r.c.ctx, P(from), P(to), ANY, ANY, NULL, &p.r.c.err), p.r.c.err);
	CHECK(p.slow.done);
	tree = tree_in(&p.r, p.r.inner);
	CHECK_STR(tree, want);
	CHECK_STR(tree_at(&p.other, head(&p.other)), tree);
	pair_close(&p);
}

/* A file that another process makes in the target before the step of a directory: nothing is moved. */
static void overtake_step(void)
{
	struct pair p;

	pair_open(&p, "m/d/one");
	put(&p.r.c, "d/one", "1");
	put(&p.r.c, "d/two", "2");
	CHECK_ERR(store_move(p.r.c.s, &p.r.c.ctx, P("d"), P("m/d"), ANY, ANY, NULL, &p.r.c.err), p.r.c.err,
		  ERR_INVALID);
	CHECK(p.slow.done);
	CHECK_STR(tree_in(&p.r, p.r.inner), STR("d/one:1 d/two:2 m/d/one:by the other"));
	CHECK_STR(tree_at(&p.other, head(&p.other)), tree_in(&p.r, p.r.inner));
	pair_close(&p);
}

TEST(a_move_of_which_another_process_replayed_a_half_is_finished)
{
	/* in one step there is no half: the other one comes before the move */
	bool one_step = REV_FORM == FORM_ONE_STEP;

	overtake_move("d/one", "m/one", "d/one",
		      one_step ? STR("d/two:2 m/one:by the other") : STR("d/one:by the other d/two:2 m/one:1"));
	overtake_move("d/one", "m/one", "m/one", one_step ? STR("d/two:2 m/one:1") : STR("d/two:2 m/one:by the other"));
	if (!one_step)
		overtake_move("d", "m/d", "m/d/one", STR("m/d/one:by the other m/d/two:2"));
	else
		overtake_step();
}

/* The bytes tell nothing here: they were the same before. */
TEST(a_write_of_the_same_bytes_is_not_taken_as_made_before_it_is)
{
	struct rev_query query = {.path = P("a"), .newest_first = true};
	struct pair p;
	struct conf *c = &p.r.c, *other = &p.other.c;
	struct revision *list;
	struct store_stat stat;
	size_t count;

	pair_open(&p, "a");
	put(c, "a", "same");
	p.slow.settles = true;
	put(c, "a", "same");
	CHECK_OK(store_stat(p.r.inner, &c->ctx, P("a"), &stat, &c->err), c->err);
	put(c, "b", "x"); /* brings the note of the end with it */
	CHECK_OK(revisions_query(other->s, &other->ctx, &query, &list, &count, NULL, &other->err), other->err);
	CHECK_INT(count, 2);
	CHECK_STR(list[0].after.version, stat.version);
	pair_close(&p);
}

/* --- the power cut --- */

struct cut {
	const char *dir;
	struct rig r;
};

/* Puts on the disk what `path` holds after the cut; its time is that of the crash. NULL: nothing. */
static void on_disk(struct cut *cut, const char *path, struct str bytes, int64_t after_s)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = clock_real_ns() / S + after_s}};
	char name[600];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", cut->dir, path);
	remove(name);
	if (!bytes.ptr)
		return;
	f = fopen(name, "w");
	CHECK(f && fwrite(bytes.ptr, 1, bytes.len, f) == bytes.len && fclose(f) == 0);
	CHECK(utimensat(AT_FDCWD, name, times, 0) == 0);
}

static struct cut cut_new(void)
{
	struct store_disk_opts relaxed = {.relaxed = true};
	struct cut cut = {.dir = temp_dir_new()};
	struct store *inner;
	struct err err;

	CHECK_OK(store_disk_open(cut.dir, &relaxed, &inner, &err), err);
	cut.r = rig_new(inner, open_disk(true, false));
	return cut;
}

#if REV_FORM != FORM_ONE_STEP
/* Writes a file for somebody else through the log. */
static struct stat write_for(struct cut *cut, struct store_owner owner)
{
	struct source source = {.bytes = STR("theirs"), .mode = 0640, .owner = owner};
	struct conf *c = &cut->r.c;
	struct stat st;

	if (geteuid() != 0)
		SKIP("only root may give a file away");
	CHECK_OK(store_write_stream(c->s, &c->ctx, P("theirs"), &source, ANY, NULL, &c->err), c->err);
	CHECK_INT(stat(arena_printf(cut->r.arena, "%s/theirs", cut->dir).ptr, &st), 0);
	return st;
}
#endif

#if REV_FORM == FORM_OBJECTS
TEST(a_log_on_a_server_has_no_say_in_whom_a_file_belongs_to)
{
	struct cut cut = cut_new();
	struct stat st = write_for(&cut, (struct store_owner){STORE_OWNER_IDS, 1234, 4321});

	CHECK_INT(st.st_uid, 0);
	CHECK_INT(st.st_gid, 0);
	CHECK_INT(st.st_mode & 07777, 0640);
	rig_end(&cut.r);
}
#endif

#if REV_FORM == FORM_SEGMENTS
TEST(a_replayed_file_has_the_owner_that_it_was_written_for)
{
	struct cut cut = cut_new();
	struct stat st = write_for(&cut, (struct store_owner){STORE_OWNER_IDS, 1234, 4321});

	CHECK_INT(st.st_uid, 1234);
	on_disk(&cut, "theirs", STR_NONE, 0);
	rig_reopen(&cut.r, "another boot");
	CHECK_INT(stat(arena_printf(cut.r.arena, "%s/theirs", cut.dir).ptr, &st), 0);
	CHECK_INT(st.st_uid, 1234);
	CHECK_INT(st.st_gid, 4321);
	CHECK_INT(st.st_mode & 07777, 0640);
	rig_end(&cut.r);
}

TEST(whatever_was_acknowledged_is_back_after_a_power_cut)
{
	struct cut cut = cut_new();
	struct rig *r = &cut.r;
	char *big = arena_alloc(r->arena, 150000);
	struct str want;

	memset(big, 'b', 150000);
	put(&r->c, "old", "one");
	put(&r->c, "old", "two");
	put(&r->c, "old", "three");
	put(&r->c, "cut", "cut in the middle");
	put(&r->c, "zeros", "zeros at the end");
	put(&r->c, "empty", "has no bytes");
	put(&r->c, "missing", "has no name");
	put(&r->c, "back", "was removed");
	CHECK_OK(store_remove(r->c.s, &r->c.ctx, P("back"), false, ANY, NULL, &r->c.err), r->c.err);
	CHECK_OK(store_write(r->c.s, &r->c.ctx, P("big"), str_n(big, 150000), ANY, NULL, &r->c.err), r->c.err);
	put(&r->c, "log", "1,");
	for (int i = 0; i < 3; i++)
		CHECK_OK(store_append(r->c.s, &r->c.ctx, P("log"), STR("more,"), ANY, NULL, &r->c.err), r->c.err);
	put(&r->c, "holes", "1,");
	CHECK_OK(store_append(r->c.s, &r->c.ctx, P("holes"), STR("more,"), ANY, NULL, &r->c.err), r->c.err);
	put(&r->c, "from", "moved");
	CHECK_OK(store_move(r->c.s, &r->c.ctx, P("from"), P("to"), ANY, ANY, NULL, &r->c.err), r->c.err);
	put(&r->c, "kept", "reached the disk");
	want = tree_in(r, r->inner);
	on_disk(&cut, "old", STR("one"), 0);
	on_disk(&cut, "cut", STR("cut in"), 0);
	on_disk(&cut, "zeros", STR("zeros at\0\0\0\0\0\0\0\0"), 0);
	on_disk(&cut, "empty", STR(""), 0);
	on_disk(&cut, "missing", STR_NONE, 0);
	on_disk(&cut, "back", STR("was removed"), 0);
	memset(big + 4096, 0, 8192);
	on_disk(&cut, "big", str_n(big, 150000), 0);
	on_disk(&cut, "log", STR("1,mo"), 0);
	on_disk(&cut, "holes", STR("1,\0\0\0\0\0"), 0);
	on_disk(&cut, "from", STR("moved"), 0);
	on_disk(&cut, "to", STR_NONE, 0);
	rig_reopen(r, "another boot");
	CHECK_STR(tree_in(r, r->inner), want);
	CHECK_STR(tree_at(r, head(r)), want);
	rig_end(r);
}

TEST(work_done_after_the_machine_came_back_is_not_taken_for_damage)
{
	struct cut cut = cut_new();
	struct rig *r = &cut.r;
	uint64_t noticed;

	put(&r->c, "a", "one");
	put(&r->c, "a", "one two three");
	on_disk(&cut, "a", STR("one two"), 60); /* edited a minute later */
	rig_reopen(r, "another boot");
	CHECK_STR(get(&r->c, "a"), STR("one two"));
	CHECK_OK(revisions_notice(r->c.s, &r->c.ctx, WPATH_ROOT, &noticed, &r->c.err), r->c.err);
	CHECK_STR(tree_at(r, 2), STR("a:one two three"));
	CHECK_STR(tree_at(r, 3), STR("a:one two"));
	rig_end(r);
}

/* Two processes start after the machine was restarted. The second one is paused: after it has looked for a note of the
   boot, or before it makes a file again. Then the first one starts and works. */
struct second {
	struct store base;
	struct rig *first;
	enum store_op pause;
	bool done;
};

static void open_after_boot(struct rig *r, struct store *inner, struct store *scratch)
{
	struct revisions_opts opts = {.boot_id = STR("another boot"), .scratch = scratch};

	CHECK_OK(store_revisions_open(inner, store_share(r->meta), opts, &r->c.ctx, &r->c.s, &r->c.err), r->c.err);
}

static int second_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	struct second *second = (struct second *)s;
	struct rig *first = second->first;
	bool pauses = !second->done && call->op == second->pause;
	bool is_note = pauses && str_is(call->path.s, "revisions-boot");
	int r = is_note ? store_forward(s->inner, ctx, call, err) : 0;

	if (pauses && (is_note || call->op != STORE_OP_READ)) {
		second->done = true;
		open_after_boot(first, store_share(first->inner), store_share(first->meta));
		if (is_note) {
			put(&first->c, "new", "of this boot");
			put(&first->c, "old", "3"); /* brings the note that the first is done */
		}
		CHECK_OK(store_remove(is_note ? first->inner : first->c.s, &first->c.ctx, P(is_note ? "new" : "lost"),
				      false, ANY, NULL, &first->c.err),
			 first->c.err);
	}
	return is_note ? r : store_forward(s->inner, ctx, call, err);
}

/* The files after both have started; the power cut has taken the file "lost". */
static struct str start_two(enum store_op pause)
{
	static const struct store_ops ops = {.name = "second", .around = second_around, .destroy = slow_destroy};
	struct cut cut = cut_new();
	struct rig *r = &cut.r, first, other;
	struct second second = {.base = {.ops = &ops}, .first = &first, .pause = pause};
	struct str files;

	test_defer(arena_destroy, r->arena); /* what is returned is in it */
	put(&r->c, "old", "1");
	put(&r->c, "lost", "2");
	on_disk(&cut, "lost", STR_NONE, 0);
	first = other = (struct rig){.arena = r->arena, .inner = r->inner, .meta = r->meta, .c = {.ctx = r->c.ctx}};
	second.base.inner = store_share(pause == STORE_OP_READ ? r->meta : r->inner);
	if (pause == STORE_OP_READ)
		open_after_boot(&other, store_share(r->inner), &second.base);
	else
		open_after_boot(&other, &second.base, store_share(r->meta));
	CHECK(second.done);
	files = tree_in(r, r->inner);
	store_destroy(other.c.s);
	store_destroy(first.c.s);
	store_destroy(r->c.s);
	store_destroy(r->meta);
	store_destroy(r->inner);
	return files;
}

TEST(a_file_of_this_boot_that_a_person_removed_stays_removed)
{
	CHECK_STR(start_two(STORE_OP_READ), STR("lost:2 old:3"));
}

TEST(a_file_that_another_process_brought_back_and_removed_stays_removed)
{
	CHECK_STR(start_two(STORE_OP_WRITE), STR("old:1"));
}

TEST(the_boot_is_noted_before_the_first_record_and_not_by_a_question)
{
	struct rig r = rig_new(store_memory_new(), store_memory_new());
	struct rig asking = {.arena = r.arena, .inner = r.inner, .meta = r.meta, .c = {.ctx = r.c.ctx}};
	open_after_boot(&asking, store_share(r.inner), store_share(r.meta));
	CHECK_INT(head(&asking), 0);
	CHECK_ERR(store_stat(r.meta, &r.c.ctx, P("revisions-boot"), &(struct store_stat){0}, &r.c.err), r.c.err,
		  ERR_NOT_FOUND);
	put(&asking.c, "a", "1");
	CHECK_STR(get(&(struct conf){.s = r.meta, .ctx = r.c.ctx}, "revisions-boot"), STR("another boot"));
	store_destroy(asking.c.s);
	rig_end(&r);
}
#endif

#if REV_FORM == FORM_SEGMENTS
/* The store of the log says once that the disk is full, at each of its operations in turn, until it is the append. */
TEST(a_removal_is_recorded_when_the_disk_is_full_and_a_write_is_refused)
{
	struct store_disk_opts opts = {.relaxed = true};
	struct conf c = {.ctx = {.arena = arena_new()}};
	struct revisions_opts how = form_opts(REV_FORM);
	struct store *fault = store_fault_new(store_memory_new()), *scratch;
	struct store_stat stat;
	bool used = false;

	CHECK_OK(store_disk_open(temp_dir_new(), &opts, &how.scratch, &c.err), c.err);
	scratch = store_share(how.scratch);
	CHECK_OK(store_revisions_open(store_memory_new(), fault, how, &c.ctx, &c.s, &c.err), c.err);
	CHECK_OK(store_write(c.s, &c.ctx, P("a"), STR("a"), ANY, NULL, &c.err), c.err);
	CHECK_OK(store_stat(scratch, &c.ctx, P("reserve"), &stat, &c.err), c.err);
	for (uint64_t n = 1; n < 9 && !used; n++) {
		int r;

		CHECK_OK(store_write(c.s, &c.ctx, P("b"), STR("b"), ANY, NULL, &c.err), c.err);
		store_fault_arm(fault, n, ERR_QUOTA, false);
		r = store_remove(c.s, &c.ctx, P("b"), false, ANY, NULL, &c.err);
		used = store_stat(scratch, &c.ctx, P("reserve"), &stat, &c.err) == -ERR_NOT_FOUND;
		CHECK(!used || r == 0);
		if (used) {
			store_fault_arm(fault, n, ERR_QUOTA, false);
			CHECK_INT(store_write(c.s, &c.ctx, P("a"), STR("b"), ANY, NULL, &c.err), -ERR_QUOTA);
		}
		store_fault_arm(fault, 0, ERR_QUOTA, false);
	}
	CHECK(used);
	CHECK_OK(store_write(c.s, &c.ctx, P("a"), STR("c"), ANY, NULL, &c.err), c.err);
	CHECK_OK(store_stat(scratch, &c.ctx, P("reserve"), &stat, &c.err), c.err);
	store_destroy(c.s);
	store_destroy(scratch);
	arena_destroy(c.ctx.arena);
}
#endif
