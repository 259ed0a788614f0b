/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated changes of a workspace, with the tree that should be there kept at every step. In memory the last calls are
 * then undone and redone one by one, at random, and new changes come between. Then any revision is looked at through
 * the view of the past, everything is undone back to the start, and the undo is undone: byte-equal each time.
 * STEAD_TEST_SEED repeats a run, STEAD_MODEL_OPS sets its length, STEAD_MODEL_SEEDS the number of runs, whose seeds
 * follow each other. A failing run is cut to the shortest length that still fails, and says so. STEAD_TEST_REDIS,
 * STEAD_TEST_POSTGRES or STEAD_TEST_S3 name a server, on which it runs instead.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/timeline/history.h"
#include "revisions/revisions.h"
#include "temp_dir.h"
#include "workspace/workspace.h"

#define FILES_MAX 64

struct file {
	struct str path, bytes; /* in the run's arena, never changed */
};

struct tree {
	struct file files[FILES_MAX]; /* by path */
	size_t count;
};

struct run {
	struct arena *arena; /* of the model */
	struct arena *calls;
	struct ctx ctx;
	struct err err;
	struct workspace *ws;
	struct store *files;
	const char *dir; /* empty: in memory */
	struct tree now;
	struct tree *then;  /* after each step */
	uint64_t *revision; /* the newest, after each step */
	size_t steps;
	char why[600];
};

static uint64_t rng_state;

static uint64_t rng(uint64_t below)
{
	uint64_t z = rng_state += 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return below ? (z ^ (z >> 31)) % below : 0;
}

/* --- the model --- */

static struct file *find(struct tree *t, struct str path)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_eq(t->files[i].path, path))
			return &t->files[i];
	return NULL;
}

static bool below(struct str path, struct str dir)
{
	return path.len > dir.len && str_starts(path, dir) && path.ptr[dir.len] == '/';
}

static bool is_dir(struct tree *t, struct str path)
{
	for (size_t i = 0; i < t->count; i++)
		if (below(t->files[i].path, path))
			return true;
	return false;
}

/* False: a directory, or below a file. */
static bool may_be_file(struct tree *t, struct str path)
{
	for (size_t i = 0; i < t->count; i++)
		if (below(t->files[i].path, path) || below(path, t->files[i].path))
			return false;
	return true;
}

static void set(struct tree *t, struct str path, struct str bytes)
{
	struct file *f = find(t, path);
	size_t at = 0;

	if (f) {
		f->bytes = bytes;
		return;
	}
	if (t->count == FILES_MAX)
		abort();
	while (at < t->count && str_cmp(t->files[at].path, path) < 0)
		at++;
	memmove(&t->files[at + 1], &t->files[at], (t->count - at) * sizeof(t->files[0]));
	t->files[at] = (struct file){path, bytes};
	t->count++;
}

static void drop(struct tree *t, struct str path)
{
	for (size_t i = t->count; i > 0; i--)
		if (str_eq(t->files[i - 1].path, path) || below(t->files[i - 1].path, path)) {
			memmove(&t->files[i - 1], &t->files[i], (t->count - i) * sizeof(t->files[0]));
			t->count--;
		}
}

/* --- comparing --- */

static bool differs(struct run *r, const char *when, struct str path, const char *how)
{
	snprintf(r->why, sizeof(r->why), "%s: \"%.*s\" %s", when, STR_ARG(path), how);
	return false;
}

static bool same_file(struct run *r, struct store *s, struct str prefix, const struct file *want, const char *when)
{
	struct str path = arena_printf(r->calls, "%.*s%.*s", STR_ARG(prefix), STR_ARG(want->path)), bytes;

	if (store_read(s, &r->ctx, (struct wpath){path}, STORE_WHOLE, 64 * MIB, &bytes, NULL, &r->err))
		return differs(r, when, path, r->err.msg);
	return str_eq(bytes, want->bytes) || differs(r, when, path, "has other bytes");
}

/* The files of a store below `prefix`, against a tree. */
static bool same_tree(struct run *r, struct store *s, const char *prefix, const struct tree *want, const char *when)
{
	struct store_list_req req = {.recursive = true, .limit = 7};
	struct str dir = str_of(prefix);
	struct store_page page;
	size_t n = 0;

	do {
		int bad = store_list(s, &r->ctx, (struct wpath){str_first(dir, dir.len ? dir.len - 1 : 0)}, &req, &page,
				     &r->err);

		if (bad == -ERR_NOT_FOUND)
			break;
		if (bad)
			return differs(r, when, dir, r->err.msg);
		for (size_t i = 0; i < page.count; i++, n++) {
			struct str path = str_from(page.entries[i].path.s, dir.len);

			if (n >= want->count || !str_eq(want->files[n].path, path))
				return differs(r, when, path, "should not be there, or another is missing before it");
			if (page.entries[i].stat.size != want->files[n].bytes.len)
				return differs(r, when, path, "is listed with another size");
		}
		req.after = page.next;
	} while (page.next.ptr);
	if (n != want->count)
		return differs(r, when, want->files[n].path, "is missing");
	for (size_t i = 0; i < want->count; i++)
		if (!same_file(r, s, dir, &want->files[i], when))
			return false;
	return true;
}

/* --- steps --- */

static struct str make_path(struct run *r)
{
	static const char *const names[] = {"a", "b-\xC3\xA9", "c \"q\" d"};
	struct buf out;

	buf_init(&out, r->arena, 256);
	for (size_t i = 0, depth = 1 + rng(3); i < depth; i++)
		buf_printf(&out, "%s%s", i ? "/" : "", names[rng(3)]);
	return buf_str(&out);
}

static struct str make_bytes(struct run *r)
{
	static const size_t edges[] = {0, 1, 65535, 65536, 65537, 200000};
	size_t len = rng(40) ? rng(300) : edges[rng(6)];
	char *p = arena_alloc_raw(r->arena, len + 1);
	bool binary = rng(3) == 0;

	for (size_t i = 0; i < len; i++)
		p[i] = (char)(binary ? rng(256) : 'a' + rng(26));
	return str_n(p, len);
}

/* Another program writes or removes a file. */
static bool step_outside(struct run *r, struct str path, struct str bytes)
{
	char name[400];
	FILE *f;

	if (!r->dir || !find(&r->now, path))
		return true;
	snprintf(name, sizeof(name), "%s/scout/files/%.*s", r->dir, STR_ARG(path));
	if (rng(3) == 0) {
		remove(name);
		drop(&r->now, path);
		return true;
	}
	f = fopen(name, rng(2) ? "w" : "r+");
	if (!f || fwrite(bytes.ptr, 1, bytes.len, f) != bytes.len || fflush(f) ||
	    ftruncate(fileno(f), (off_t)bytes.len))
		return differs(r, "outside", path, "cannot be written");
	fclose(f);
	set(&r->now, path, bytes);
	return true;
}

static void model_move(struct run *r, struct str from, struct str to)
{
	struct tree before = r->now;

	for (size_t i = 0; i < before.count; i++) {
		struct file *f = &before.files[i];

		if (str_eq(f->path, from) || below(f->path, from)) {
			drop(&r->now, f->path);
			set(&r->now,
			    arena_printf(r->arena, "%.*s%.*s", STR_ARG(to), STR_ARG(str_from(f->path, from.len))),
			    f->bytes);
		}
	}
}

static bool step_two(struct run *r, struct str from, struct str to, bool copy)
{
	bool dir = is_dir(&r->now, from);
	struct tree rest = r->now;
	int bad;

	drop(&rest, from);
	if ((!dir && !find(&r->now, from)) || (dir && (copy || find(&r->now, to))) || !may_be_file(&r->now, to) ||
	    str_eq(from, to) || below(to, from) || below(from, to))
		return true;
	if (copy) {
		bad = store_copy(r->files, &r->ctx, (struct wpath){from}, (struct wpath){to}, (struct store_cond){0},
				 NULL, &r->err);
		set(&r->now, to, find(&r->now, from)->bytes);
	} else {
		bad = store_move(r->files, &r->ctx, (struct wpath){from}, (struct wpath){to}, (struct store_cond){0},
				 (struct store_cond){0}, NULL, &r->err);
		model_move(r, from, to);
	}
	return bad ? differs(r, copy ? "copy" : "move", from, r->err.msg) : true;
}

static bool step_put(struct run *r, struct str path, struct str bytes, bool append)
{
	struct file *f = find(&r->now, path);
	struct store_cond any = {0};
	int bad;

	if (!may_be_file(&r->now, path))
		return true;
	if (append) {
		bad = store_append(r->files, &r->ctx, (struct wpath){path}, bytes, any, NULL, &r->err);
		if (f) {
			char *both = arena_alloc_raw(r->arena, f->bytes.len + bytes.len + 1);

			memcpy(both, f->bytes.ptr, f->bytes.len);
			memcpy(both + f->bytes.len, bytes.ptr, bytes.len);
			bytes = str_n(both, f->bytes.len + bytes.len);
		}
	} else {
		bad = store_write(r->files, &r->ctx, (struct wpath){path}, bytes, any, NULL, &r->err);
	}
	set(&r->now, path, bytes);
	return bad ? differs(r, append ? "append" : "write", path, r->err.msg) : true;
}

static bool step(struct run *r)
{
	struct str path = make_path(r), to = make_path(r), bytes = make_bytes(r);
	uint64_t kind = rng(16), noticed;
	int bad = 0;

	arena_reset(r->calls);
	if (kind < 6) {
		if (!step_put(r, path, bytes, false))
			return false;
	} else if (kind < 9) {
		if (!step_put(r, path, bytes, true))
			return false;
	} else if (kind < 11) {
		if (find(&r->now, path) || is_dir(&r->now, path)) {
			bad = store_remove(r->files, &r->ctx, (struct wpath){path}, true, (struct store_cond){0}, NULL,
					   &r->err);
			drop(&r->now, path);
		}
	} else if (kind < 14) {
		if (!step_two(r, path, to, kind == 13))
			return false;
	} else if (!step_outside(r, path, bytes)) {
		return false;
	}
	if (bad == 0 && kind >= 14) /* so that the state has a revision of its own to be looked at */
		bad = revisions_notice(workspace_revisions(r->ws), &r->ctx, workspace_root(r->ws), &noticed, &r->err);
	r->then[r->steps] = r->now;
	if (bad == 0)
		bad = revisions_head(workspace_revisions(r->ws), &r->ctx, &r->revision[r->steps], &r->err);
	r->steps++;
	return bad ? differs(r, "step", path, r->err.msg) : true;
}

/* --- the whole --- */

static bool look_back(struct run *r, size_t step)
{
	struct store *past = store_at_revision_new(workspace_revisions(r->ws), r->revision[step]);
	char when[64];
	bool same;

	arena_reset(r->calls);
	snprintf(when, sizeof(when), "at revision %llu", (unsigned long long)r->revision[step]);
	same = same_tree(r, past, "files/", &r->then[step], when);
	store_destroy(past);
	return same;
}

/* What other programs did is never undone; where they took part, everything is restored instead. */
static bool undo_since(struct run *r, uint64_t since)
{
	struct undo_req req = {.has_since = true, .since = since};
	struct jv *report;

	arena_reset(r->calls);
	if (r->dir)
		return history_restore(r->ws, &r->ctx, WPATH_ROOT, since, &report, &r->err) == 0 ||
		       differs(r, "restore", STR(""), r->err.msg);
	return history_undo(r->ws, &r->ctx, &req, &report, &r->err) == 0 || differs(r, "undo", STR(""), r->err.msg);
}

/* --- undo and redo, one call at a time --- */

#define WALK_MAX 40

/* The trees of the calls that are in effect, oldest first; those after `at` are undone. */
struct walk {
	struct tree trees[WALK_MAX + 1];
	size_t at, count;
};

static bool undo_one(struct run *r, struct walk *w, bool redo)
{
	struct undo_req req = {.redo = redo};
	struct jv *report;
	int bad;

	r->ctx.actor.call_id = STR_NONE;
	bad = history_undo(r->ws, &r->ctx, &req, &report, &r->err);
	if (bad)
		return differs(r, redo ? "redo" : "undo", STR(""), r->err.msg);
	w->at = redo ? w->at + 1 : w->at - 1;
	return same_tree(r, r->files, "", &w->trees[w->at], redo ? "redone" : "undone");
}

static bool same_bytes(const struct tree *a, const struct tree *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (!str_eq(a->files[i].path, b->files[i].path) || !str_eq(a->files[i].bytes, b->files[i].bytes))
			return false;
	return a->count == b->count;
}

/* One call of one to three changes. One that leaves everything as it was is never undone, so it is not kept; but if it
   changed something on the way, it ends what can be redone. */
static bool walk_call(struct run *r, struct walk *w)
{
	uint64_t head;

	if (revisions_head(workspace_revisions(r->ws), &r->ctx, &head, &r->err))
		return differs(r, "head", STR(""), r->err.msg);
	r->now = w->trees[w->at];
	r->ctx.actor.call_id = call_id_new(r->arena);
	for (size_t n = 1 + rng(3); n > 0; n--)
		if (!step(r))
			return false;
	if (!same_bytes(&r->now, &w->trees[w->at]))
		w->trees[++w->at] = r->now;
	if (r->revision[r->steps - 1] > head)
		w->count = w->at;
	return true;
}

static bool walk_steps(struct run *r, size_t steps)
{
	static struct walk w;

	w = (struct walk){.trees = {r->now}};
	while (r->steps + 3 <= steps) {
		uint64_t kind = rng(3);

		arena_reset(r->calls);
		if (kind == 0 && w.at < WALK_MAX) {
			if (!walk_call(r, &w))
				return false;
			continue;
		}
		for (size_t n = rng(6); n > 0; n--) {
			if (kind < 2 ? w.at == 0 : w.at == w.count)
				break;
			if (!undo_one(r, &w, kind == 2))
				return false;
		}
		if (w.at == WALK_MAX) { /* the oldest can no longer be checked */
			memmove(&w.trees[0], &w.trees[WALK_MAX / 2], (WALK_MAX / 2 + 1) * sizeof(w.trees[0]));
			w.at = w.count = WALK_MAX / 2;
		}
		r->then[r->steps] = r->now = w.trees[w.at];
		if (revisions_head(workspace_revisions(r->ws), &r->ctx, &r->revision[r->steps++], &r->err))
			return differs(r, "head", STR(""), r->err.msg);
	}
	r->now = w.trees[w.at];
	r->ctx.actor.call_id = STR_NONE;
	return true;
}

static bool run_steps(struct run *r, size_t steps)
{
	struct tree start = r->now;
	uint64_t first, end;

	if (revisions_head(workspace_revisions(r->ws), &r->ctx, &first, &r->err))
		return differs(r, "head", STR(""), r->err.msg);
	if (!r->dir && !walk_steps(r, steps / 2))
		return false;
	while (r->steps < steps)
		if (!step(r))
			return false;
	if (!same_tree(r, r->files, "", &r->now, "at the end"))
		return false;
	for (size_t i = 0; i < 60 && steps; i++)
		if (!look_back(r, (size_t)rng(steps)))
			return false;
	end = r->revision[steps - 1];
	if (end == first)
		return true; /* nothing could be done */
	if (!undo_since(r, first) || !same_tree(r, r->files, "", &start, "undone"))
		return false;
	if (same_bytes(&start, &r->now))
		return true; /* there was nothing to undo, so there is nothing to redo */
	if (!look_back(r, (size_t)rng(steps)) || !undo_since(r, end) || !same_tree(r, r->files, "", &r->now, "redone"))
		return false;
	return look_back(r, (size_t)rng(steps));
}

enum place { IN_MEMORY, ON_DISK, ON_SERVER };

/* A place on the server that no run has used. */
static struct str server_url(struct arena *arena)
{
	const char *redis = getenv("STEAD_TEST_REDIS"), *postgres = getenv("STEAD_TEST_POSTGRES");
	const char *s3 = getenv("STEAD_TEST_S3");
	static unsigned count;
	struct str prefix = arena_printf(arena, "model%d-%u", (int)getpid(), ++count);

	if (redis || postgres)
		return arena_printf(arena, "%s?prefix=%.*s", redis ? redis : postgres, STR_ARG(prefix));
	if (!s3)
		return STR_NONE;
	setenv("AWS_ACCESS_KEY_ID", getenv("STEAD_TEST_S3_KEY"), 1);
	setenv("AWS_SECRET_ACCESS_KEY", getenv("STEAD_TEST_S3_SECRET"), 1);
	setenv("AWS_REGION", "us-east-1", 1);
	return arena_printf(arena, "s3://stead-test/%.*s?create=1&endpoint=%s", STR_ARG(prefix), s3);
}

static bool run_once(struct run *r, uint64_t seed, size_t steps, enum place place)
{
	struct workspace_opts opts = {.name = STR("scout"), .create = true, .relaxed = true};
	bool good;

	memset(r, 0, sizeof(*r));
	rng_state = seed;
	r->arena = arena_new();
	r->calls = arena_new();
	r->ctx.arena = r->calls;
	r->then = xcalloc(steps + 1, sizeof(struct tree));
	r->revision = xcalloc(steps + 1, sizeof(uint64_t));
	opts.store_url = place == ON_SERVER ? server_url(r->arena) : STR("memory:");
	if (place == ON_DISK) {
		r->dir = temp_dir_new();
		opts.store_url = arena_printf(r->arena, "disk:%s", r->dir);
	}
	CHECK_OK(workspace_open(&opts, &r->ws, &r->err), r->err);
	r->files = workspace_files(r->ws);
	good = run_steps(r, steps);
	workspace_close(r->ws);
	free(r->then);
	free(r->revision);
	arena_destroy(r->calls);
	arena_destroy(r->arena);
	return good;
}

static size_t number_of(const char *name, size_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void fail_shortest(uint64_t seed, size_t steps, enum place place)
{
	static struct run r;
	size_t good = 0;

	while (good + 1 < steps) { /* halving finds a short one, if not the shortest */
		size_t middle = (good + steps) / 2;

		if (run_once(&r, seed, middle, place))
			good = middle;
		else
			steps = middle;
	}
	run_once(&r, seed, steps, place);
	TEST_FAIL("seed %llu fails after %zu steps: %s", (unsigned long long)seed, steps, r.why);
}

static void check(enum place place, size_t usual)
{
	uint64_t seed = number_of("STEAD_TEST_SEED", random_u64() % 1000000);
	size_t steps = number_of("STEAD_MODEL_OPS", usual), seeds = number_of("STEAD_MODEL_SEEDS", 1);
	static struct run r;

	printf("# seeds from %llu on, %zu of them, %zu steps each\n", (unsigned long long)seed, seeds, steps);
	fflush(stdout);
	for (size_t i = 0; i < seeds; i++)
		if (!run_once(&r, seed + i, steps, place))
			fail_shortest(seed + i, steps, place);
}

static bool has_server(void)
{
	return getenv("STEAD_TEST_REDIS") || getenv("STEAD_TEST_POSTGRES") || getenv("STEAD_TEST_S3");
}

TEST(a_workspace_in_memory_goes_back_to_any_revision_and_forward_again)
{
	check(IN_MEMORY, 2000);
}

TEST(a_workspace_on_disk_goes_back_to_any_revision_and_forward_again)
{
	check(ON_DISK, 600);
}

TEST(a_workspace_on_a_server_goes_back_to_any_revision_and_forward_again)
{
	if (!has_server())
		SKIP("no server; run this with tests/servers/with NAME -- TEST");
	check(ON_SERVER, 200);
}

static void check_seeds(const uint64_t *seeds, size_t count, size_t steps, enum place place)
{
	static struct run r;

	for (size_t i = 0; i < count; i++)
		if (!run_once(&r, seeds[i], steps, place))
			TEST_FAIL("seed %llu: %s", (unsigned long long)seeds[i], r.why);
}

/* Two where an append of nothing was undone as if it had changed the file, and one where a call that removes what it
   creates was a conflict once an older call at its path was undone. */
TEST(seeds_that_found_a_fault_in_memory_pass)
{
	static const uint64_t seeds[] = {317604, 239280, 151086};

	check_seeds(seeds, sizeof seeds / sizeof seeds[0], 2000, IN_MEMORY);
}

/* A directory that is moved onto an empty one was not recorded. */
TEST(seeds_that_found_a_fault_on_disk_pass)
{
	static const uint64_t seeds[] = {761785, 561449};

	check_seeds(seeds, sizeof seeds / sizeof seeds[0], 600, ON_DISK);
}
