/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of the past: they give what its lists and reads give, and use the scan of the store that has the files. */
#include <pthread.h>
#include <stdatomic.h>

#include "revisions/revisions.h"
#include "store/store_fix.h"

struct past_fix {
	struct arena *arena;
	struct store *disk; /* that counts calls */
	struct store *rev;
	struct conf now, past;
};

static void set_up(struct past_fix *f)
{
	char path[32];
	uint64_t head;

	*f = (struct past_fix){.arena = arena_new()};
	f->now.ctx = f->past.ctx = (struct ctx){.arena = f->arena};
	f->disk = store_fault_new(open_disk(true, false));
	CHECK_OK(store_revisions_open(f->disk, store_memory_new(), (struct revisions_opts){0}, &f->now.ctx, &f->rev,
				      &f->now.err),
		 f->now.err);
	f->now.s = f->rev;
	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "d/%d/f%03d", i % 7, i);
		put(&f->now, path, path);
	}
	put(&f->now, "d.txt", "before the directory");
	CHECK_OK(revisions_head(f->rev, &f->now.ctx, &head, &f->now.err), f->now.err);
	f->past.s = store_at_revision_new(f->rev, head);
}

static void tear_down(struct past_fix *f)
{
	store_destroy(f->past.s);
	store_destroy(f->rev);
	arena_destroy(f->arena);
}

#define WITH_PAST                                                                                                      \
	__attribute__((cleanup(tear_down))) struct past_fix f;                                                         \
	set_up(&f)

/* One that is made of the lists of the past, and one of the present files with what was changed. */
static void check_scans(struct past_fix *f, const char *dir)
{
	for (int contents = 0; contents < 2; contents++) {
		struct seen one = {0};
		struct str several;

		CHECK_OK(gather(&f->past, dir, contents, false, &several), f->past.err);
		CHECK_STR(several, scan_paths(&f->past, dir, &one, contents, false));
	}
}

static void change_some(struct past_fix *f, int every)
{
	struct conf *c = &f->now;
	char path[32];

	for (int i = 0; i < 600; i += every) {
		snprintf(path, sizeof(path), "d/%d/f%03d", i % 7, i);
		put(c, path, "changed or new");
	}
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/3"), true, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_remove(c->s, &c->ctx, P("d/1/f001"), false, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_move(c->s, &c->ctx, P("d/5"), P("e/5"), ANY, ANY, NULL, &c->err), c->err);
	put(c, "d/1/f001/now", "a directory");
	put(c, "a", "first");
	put(c, "z/last", "last");
}

TEST(a_scan_of_the_past_gives_what_its_lists_give)
{
	for (int every = 2; every < 1000; every = every * 5 + 1) {
		WITH_PAST;

		check_scans(&f, "");
		change_some(&f, every);
		check_scans(&f, "");
		check_scans(&f, "d");
		check_scans(&f, "d/1");
		check_scans(&f, "d/3");
	}
}

/* Every file is opened and listed by the store itself: the log is asked only about what is new. */
TEST(the_files_scan_themselves_whatever_their_number)
{
	WITH_PAST;
	struct str all;
	uint64_t before;

	put(&f.now, "d/5/f005", "changed");
	before = store_fault_count(f.disk);
	CHECK_OK(gather(&f.past, "d", false, false, &all), f.past.err);
	CHECK(store_fault_count(f.disk) - before <= 8);
	CHECK_HAS(all, STR("d/5/f005 d/5/f012"));
}

/* Nobody told the log of it. */
TEST(what_another_program_changed_is_scanned_as_it_was)
{
	WITH_PAST;
	struct conf host = {.s = f.disk, .ctx = f.now.ctx};
	struct str all;

	put(&host, "d/2/f002", "by another program");
	CHECK_OK(gather(&f.past, "d/2", true, false, &all), f.past.err);
	CHECK_HAS(all, STR("d/2/f002:d/2/f002 d/2/f009:d/2/f009"));
}

/*
 * A writer that changes files between the visits of the scan. It holds no lock while it does: the scan holds the
 * store's already.
 */
struct racing {
	struct past_fix *f;
	pthread_mutex_t lock; /* `wrong` */
	struct buf wrong;
	atomic_int changed, visited;
};

static void change_one(struct store *s, int n)
{
	struct arena *arena = arena_new();
	struct conf c = {.s = s, .ctx = {.arena = arena}};
	char path[32];

	snprintf(path, sizeof(path), "d/%d/f%03d", n % 7, n);
	if (n % 3)
		put(&c, path, "changed during the scan");
	else
		CHECK_OK(store_remove(s, &c.ctx, P(path), false, ANY, NULL, &c.err), c.err);
	arena_destroy(arena);
}

static int race_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct racing *g = arg;

	(void)err;
	atomic_fetch_add(&g->visited, 1);
	if (!str_eq(item->data, item->path)) {
		pthread_mutex_lock(&g->lock);
		buf_printf(&g->wrong, "%.*s:%.*s ", STR_ARG(item->path), STR_ARG(item->data));
		pthread_mutex_unlock(&g->lock);
	}
	for (int i = 0; i < 3; i++) {
		int n = 299 - atomic_fetch_add(&g->changed, 1);

		if (n >= 0)
			change_one(g->f->now.s, n);
	}
	return 0;
}

TEST(a_file_that_changes_during_the_scan_is_given_as_it_was)
{
	WITH_PAST;
	struct racing g = {.f = &f};
	struct scan_req req = {.contents = true, .threads = 3, .visit = race_visit, .arg = &g};

	buf_init(&g.wrong, f.arena, MIB);
	pthread_mutex_init(&g.lock, NULL);
	CHECK_OK(store_scan(f.past.s, &f.past.ctx, P("d"), &req, &f.past.err), f.past.err);
	CHECK_STR(buf_str(&g.wrong), STR(""));
	CHECK(g.changed >= 300);
	CHECK_INT(g.visited, 300);
	pthread_mutex_destroy(&g.lock);
}
