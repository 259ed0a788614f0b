/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction removes contents from history, in every form of the log, with kills and with other processes at work. */

#include "base/buf.h"
#include "revisions/rev_form.h"
#include "revisions/revisions.h"
#include "store/stores.h"
#include "test.h"

static struct arena *arena;
static struct ctx ctx;
static struct store *meta_shared, *inner_shared, *rev;
static struct err err;
static const struct store_cond any = {0};

static bool is_apart(struct wpath path)
{
	return str_starts(path.s, STR("memory/"));
}

static struct store *open_again(void)
{
	struct revisions_opts opts = form_opts(REV_FORM);
	struct store *s;

	opts.apart = is_apart;
	CHECK_OK(store_revisions_open(store_share(inner_shared), store_share(meta_shared), opts, &ctx, &s, &err), err);
	return s;
}

static void set_up(void)
{
	arena = arena_new();
	ctx = (struct ctx){.arena = arena};
	inner_shared = store_memory_new();
	meta_shared = form_meta(REV_FORM);
	rev = open_again();
}

static void tear_down(void)
{
	store_destroy(rev);
	store_destroy(inner_shared);
	store_destroy(meta_shared);
	arena_destroy(arena);
}

#define P(z) ((struct wpath){str_of(z)})

static void put(struct store *s, const char *path, const char *text)
{
	CHECK_OK(store_write(s, &ctx, P(path), str_of(text), any, NULL, &err), err);
}

static void add(struct store *s, const char *path, const char *text)
{
	CHECK_OK(store_append(s, &ctx, P(path), str_of(text), any, NULL, &err), err);
}

static bool wants_memory(void *arg, struct wpath path)
{
	(void)arg;
	return is_apart(path);
}

static bool holds_secret(void *arg, struct str bytes)
{
	(void)arg;
	return str_find(bytes, STR("secret"), 0) != SIZE_MAX;
}

static struct rev_redacted redact(struct store *s, bool dry_run, int64_t grace_ns)
{
	struct rev_redact want = {
		.wanted = wants_memory, .holds = holds_secret, .dry_run = dry_run, .grace_ns = grace_ns};
	struct rev_redacted got;

	CHECK_OK(revisions_redact(s, &ctx, &want, &got, &err), err);
	return got;
}

static int take(void *arg, const void *bytes, size_t len, struct err *e)
{
	(void)e;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

/* The bytes at a revision; ptr NULL when they are not kept. */
static struct str at(struct store *s, const char *path, uint64_t number)
{
	struct buf text;
	struct sink sink = {.push = take, .arg = &text};
	struct rev_state state;
	int r;

	buf_init(&text, arena, 1 << 20);
	r = revisions_read(s, &ctx, P(path), number, STORE_WHOLE, &sink, &state, &err);
	if (r == -ERR_NOT_FOUND)
		return STR_NONE;
	CHECK_OK(r, err);
	return text.len ? buf_str(&text) : STR("");
}

/* True when a file of the store has the word anywhere. */
static int see(void *arg, const struct scan_item *item, struct err *e)
{
	(void)e;
	if (str_find(item->data, STR("secret"), 0) != SIZE_MAX)
		*(bool *)arg = true;
	return 0;
}

static bool is_anywhere(struct store *s)
{
	bool found = false;
	struct scan_req req = {.contents = true, .threads = 1, .visit = see, .arg = &found};

	CHECK_OK(store_scan(s, &ctx, WPATH_ROOT, &req, &err), err);
	return found;
}

TEST(what_is_redacted_is_nowhere_and_the_records_stay)
{
	struct rev_redacted got;
	struct revision *list;
	size_t count;
	bool more;

	set_up();
	put(rev, "memory/a", "one");          /* 1 */
	put(rev, "memory/a", "one, secret");  /* 2 */
	put(rev, "memory/a", "one, two");     /* 3 */
	put(rev, "files/b", "my own secret"); /* 4 */
	CHECK(is_anywhere(meta_shared));
	got = redact(rev, true, 0);
	CHECK_INT(got.contents, 1);
	CHECK_STR(at(rev, "memory/a", 2), STR("one, secret"));
	got = redact(rev, false, 0);
	CHECK_INT(got.contents, 1);
	CHECK_INT(got.revisions, 2); /* the one that made it, and the one that replaced it */
	CHECK_INT(got.left, 0);
	CHECK_STR(at(rev, "memory/a", 1), STR("one"));
	CHECK(!at(rev, "memory/a", 2).ptr);
	CHECK_STR(at(rev, "memory/a", 3), STR("one, two"));
	CHECK_STR(at(rev, "files/b", 4), STR("my own secret"));
	CHECK_OK(revisions_query(rev, &ctx, &(struct rev_query){.path = P("memory/a")}, &list, &count, &more, &err),
		 err);
	CHECK_INT(count, 3);
	got = redact(rev, true, 0);
	CHECK_INT(got.contents + got.left + got.waiting, 0);
	put(rev, "files/b", "gone");
	CHECK_OK(store_remove(rev, &ctx, P("files/b"), false, any, NULL, &err), err);
	tear_down();
}

TEST(what_was_appended_is_redacted_and_what_was_before_it_can_be_read)
{
	struct rev_redacted got;

	set_up();
	add(rev, "memory/log", "one\n");    /* 1 */
	add(rev, "memory/log", "secret\n"); /* 2 */
	add(rev, "memory/log", "three\n");  /* 3 */
	got = redact(rev, false, 0);
	CHECK_INT(got.contents, 0); /* the file still has it */
	CHECK(got.left > 0);
	CHECK_STR(at(rev, "memory/log", 3), STR("one\nsecret\nthree\n"));
	put(rev, "memory/log", "one\nthree\n"); /* 4 */
	got = redact(rev, false, 0);
	CHECK(got.contents > 0);
	CHECK_INT(got.left, 0);
	CHECK(!is_anywhere(meta_shared));
	CHECK_STR(at(rev, "memory/log", 1), STR("one\n"));
	CHECK(!at(rev, "memory/log", 2).ptr);
	CHECK(!at(rev, "memory/log", 3).ptr);
	CHECK_STR(at(rev, "memory/log", 4), STR("one\nthree\n"));
	tear_down();
}

TEST(moves_and_removals_leave_nothing_behind)
{
	struct rev_redacted got;

	set_up();
	add(rev, "memory/x", "secret\n");
	add(rev, "memory/x", "more\n");
	CHECK_OK(store_move(rev, &ctx, P("memory/x"), P("memory/y"), any, any, NULL, &err), err);
	CHECK_OK(store_remove(rev, &ctx, P("memory/y"), false, any, NULL, &err), err);
	got = redact(rev, false, -1);
	CHECK(got.contents > 0);
	CHECK_INT(got.left + got.waiting, 0);
	CHECK(!is_anywhere(meta_shared));
	tear_down();
}

TEST(another_process_finds_out_that_it_is_not_kept)
{
	struct store *other;

	set_up();
	put(rev, "memory/a", "secret");
	put(rev, "memory/a", "plain");
	other = open_again();
	CHECK_STR(at(other, "memory/a", 1), STR("secret"));
	redact(rev, false, 0);
	CHECK(!at(other, "memory/a", 1).ptr);
	CHECK_STR(at(other, "memory/a", 2), STR("plain"));
	put(other, "memory/a", "next");
	CHECK_STR(at(rev, "memory/a", 3), STR("next"));
	store_destroy(other);
	other = open_again();
	CHECK_STR(at(other, "memory/a", 3), STR("next"));
	CHECK(!at(other, "memory/a", 1).ptr);
	store_destroy(other);
	tear_down();
}

TEST(what_a_writer_left_that_was_overtaken_goes_when_it_is_old)
{
	struct store *other;
	struct store_cond old;
	struct store_stat stat;
	struct rev_redacted got;

	set_up();
	put(rev, "memory/a", "one");
	CHECK_OK(store_stat(rev, &ctx, P("memory/a"), &stat, &err), err);
	old = (struct store_cond){.kind = STORE_VERSION, .version = stat.version};
	other = open_again();
	put(other, "memory/a", "two");
	CHECK_INT(store_write(rev, &ctx, P("memory/a"), STR("secret, lost"), old, NULL, &err), -ERR_CONFLICT);
	got = redact(rev, false, 0);
	CHECK_INT(got.contents, 0);
	CHECK_INT(got.waiting, 1);
	got = redact(rev, false, -1);
	CHECK_INT(got.contents, 1);
	CHECK(!is_anywhere(meta_shared));
	store_destroy(other);
	tear_down();
}

/* A history with the word in many places; no current file has it. */
static void fill(struct store *s)
{
	for (int i = 0; i < 4; i++) {
		put(s, "memory/a", arena_printf(arena, "secret %d", i).ptr);
		add(s, "memory/b", arena_printf(arena, "secret %d\n", i).ptr);
	}
	put(s, "memory/a", "plain");
	put(s, "memory/b", "plain");
}

/* True: the redaction did not come to its n-th operation. */
static bool ends_before(unsigned n, bool after)
{
	struct rev_redact want = {.wanted = wants_memory, .holds = holds_secret};
	struct revisions_opts opts = form_opts(REV_FORM);
	struct rev_redacted got;
	struct store *faulty, *s;
	bool ended;

	set_up();
	fill(rev);
	opts.apart = is_apart;
	faulty = store_fault_new(store_share(meta_shared));
	CHECK_OK(store_revisions_open(store_share(inner_shared), faulty, opts, &ctx, &s, &err), err);
	store_fault_arm(faulty, n, ERR_UNAVAILABLE, after);
	revisions_redact(s, &ctx, &want, &got, &err);
	ended = store_fault_count(faulty) < n;
	store_fault_arm(faulty, 0, ERR_NONE, false);
	CHECK_STR(at(s, "memory/a", 9), STR("plain"));
	redact(s, false, 0);
	CHECK(!is_anywhere(meta_shared));
	CHECK_STR(at(s, "memory/b", 10), STR("plain"));
	store_destroy(s);
	tear_down();
	return ended;
}

TEST(a_fault_at_any_step_is_made_good_by_doing_it_again)
{
	for (int after = 0; after < 2; after++) {
		unsigned n = 1;

		while (!ends_before(n, after))
			n++;
		CHECK(n > 5);
	}
}
