/* SPDX-License-Identifier: Apache-2.0 */
/* The cache, by counting what reaches the inner store. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "store/store_fix.h"

struct far {
	struct conf c;
	struct store *count;
};

static struct far far_new(struct store *inner, const char *dir, uint64_t bytes)
{
	struct far f = {.c.ctx.arena = arena_new()};
	struct cache_opts opts = {.identity = STR("far"), .bytes = bytes, .dir = dir};

	f.count = store_fault_new(inner);
	f.c.s = store_cache_new(f.count, opts);
	return f;
}

/* Operations that reached the inner store since the last look. */
static uint64_t asked(struct far *f)
{
	uint64_t n = store_fault_count(f->count);

	store_fault_arm(f->count, 0, ERR_NONE, false);
	return n;
}

static void far_end(struct far *f)
{
	store_destroy(f->c.s);
	arena_destroy(f->c.ctx.arena);
}

static struct str letters(struct arena *arena, size_t size, char c)
{
	char *p = arena_alloc_raw(arena, size + 1);

	for (size_t i = 0; i < size; i++)
		p[i] = i % 61 == 60 ? '\n' : c;
	p[size] = 0;
	return str_n(p, size);
}

static void write_at(struct far *f, const char *path, struct str bytes)
{
	CHECK_OK(store_write(f->c.s, &f->c.ctx, P(path), bytes, ANY, NULL, &f->c.err), f->c.err);
}

/* --- scans --- */

struct total {
	atomic_uint_fast64_t files, bytes, last;
	atomic_bool order_broken;
};

static int total_visit(void *arg, const struct scan_item *item, struct err *err)
{
	struct total *t = arg;

	(void)err;
	atomic_fetch_add(&t->bytes, item->data.len);
	if (item->last)
		atomic_fetch_add(&t->files, 1);
	if (item->unreadable || item->worker >= 2)
		atomic_store(&t->order_broken, true);
	return 0;
}

static struct total scan_all(struct far *f, const char *dir)
{
	struct total t = {0};
	struct scan_req req = {.contents = true, .threads = 2, .visit = total_visit, .arg = &t};

	CHECK_OK(store_scan(f->c.s, &f->c.ctx, P(dir), &req, &f->c.err), f->c.err);
	CHECK(!t.order_broken);
	return t;
}

static void a_second_scan_reads_nothing(const char *dir)
{
	struct store *inner = store_memory_new();
	struct far f = far_new(inner, dir, 256 * MIB);
	struct conf c = {.s = inner, .ctx = f.c.ctx};
	struct total t;
	char path[40];

	for (int i = 0; i < 10000; i++) {
		snprintf(path, sizeof path, "d%d/f%d", i % 37, i);
		put(&c, path, "some text\n");
	}
	asked(&f);
	t = scan_all(&f, "");
	CHECK_INT(t.files, 10000);
	CHECK_INT(asked(&f), 10 + 10000); /* pages of 1,000 and each file */
	t = scan_all(&f, "");
	CHECK_INT(t.files, 10000);
	CHECK_INT(t.bytes, 100000);
	CHECK_INT(asked(&f), 10); /* pages of the list, and no file */
	put(&c, "d3/f3", "other text, by somebody else\n");
	put(&c, "d4/new", "new\n");
	t = scan_all(&f, "");
	CHECK_INT(t.bytes, 100000 - 10 + 29 + 4);
	CHECK_INT(asked(&f), 11 + 2);
	far_end(&f);
}

TEST(a_second_scan_over_10000_unchanged_files_reads_none_in_memory)
{
	a_second_scan_reads_nothing(NULL);
}

TEST(a_second_scan_over_10000_unchanged_files_reads_none_on_disk)
{
	a_second_scan_reads_nothing(temp_dir_new());
}

static int paths_visit(void *arg, const struct scan_item *item, struct err *err)
{
	(void)err;
	buf_add(arg, item->path);
	buf_char(arg, ' ');
	return 0;
}

static bool not_b(void *arg, struct str path)
{
	(void)arg;
	return !str_is(path, "b") && !str_is(path, "d/x");
}

TEST(directories_that_are_not_wanted_are_left_by_the_cursor)
{
	struct far f = far_new(store_memory_new(), NULL, 8 * MIB);
	struct scan_req req = {.threads = 1, .want_dir = not_b, .visit = paths_visit};
	struct buf seen;
	char path[40];

	for (int i = 0; i < 5000; i++) {
		snprintf(path, sizeof path, "b/%d", i);
		put(&f.c, path, "x");
	}
	put(&f.c, "a/1", "x");
	put(&f.c, "d/a", "x");
	put(&f.c, "d/x/1", "x");
	put(&f.c, "d/z", "x");
	asked(&f);
	buf_init(&seen, f.c.ctx.arena, MIB);
	req.arg = &seen;
	CHECK_OK(store_scan(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err);
	CHECK_STR(buf_str(&seen), STR("a/1 d/a d/z "));
	CHECK_INT(asked(&f), 2); /* not six pages */
	far_end(&f);
}

static bool only_one(void *arg, struct str path)
{
	(void)arg;
	return str_is(path, "d") || str_is(path, "d/040");
}

TEST(one_directory_among_many_is_found_by_level)
{
	struct far f = far_new(store_memory_new(), NULL, 8 * MIB);
	struct scan_req req = {.threads = 1, .want_dir = only_one, .visit = paths_visit};
	struct buf seen;
	char path[40];

	for (int i = 0; i < 100 * 100; i++) {
		snprintf(path, sizeof path, "d/%03d/%d/x", i / 100, i % 100);
		put(&f.c, path, "x");
	}
	put(&f.c, "d/040/a", "x");
	put(&f.c, "d/040/z", "x");
	asked(&f);
	buf_init(&seen, f.c.ctx.arena, MIB);
	req.arg = &seen;
	CHECK_OK(store_scan(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err);
	CHECK_STR(buf_str(&seen), STR("d/040/a d/040/z "));
	CHECK(asked(&f) <= 7); /* not eleven pages */
	far_end(&f);
}

/* By chance, but the same for one path. */
static bool some(void *arg, struct str path)
{
	(void)arg;
	return hash_u64(path, 7) % 4 != 0;
}

static bool few(void *arg, struct str path)
{
	(void)arg;
	return hash_u64(path, 7) % 4 == 0;
}

TEST(a_scan_visits_what_the_generic_form_visits)
{
	static const char *const names[] = {"a", "a-", "a.b", "a0", "b", "z", " ", "\xC3\xA9"};
	struct far f = far_new(store_memory_new(), NULL, 8 * MIB);
	struct scan_req req = {.threads = 1, .visit = paths_visit};
	struct buf seen, want;

	for (unsigned i = 0; i < 8 * 8 * 8 * 12; i++) {
		unsigned k = i / 12;

		put(&f.c,
		    arena_printf(f.c.ctx.arena, "%s/%s/%s/f%u", names[k / 64], names[k / 8 % 8], names[k % 8], i % 12)
			    .ptr,
		    "x");
		if (i % 12 == 0)
			put(&f.c, arena_printf(f.c.ctx.arena, "%s/%s/f%u", names[k / 64], names[k / 8 % 8], k).ptr,
			    "x");
	}
	for (int i = 0; i < 2; i++) {
		buf_init(&seen, f.c.ctx.arena, MIB);
		buf_init(&want, f.c.ctx.arena, MIB);
		req.want_dir = i ? some : few;
		req.arg = &seen;
		CHECK_OK(store_scan(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err);
		req.arg = &want;
		CHECK_OK(store_scan_generic(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err);
		CHECK(want.len > 0);
		CHECK_STR(buf_str(&seen), buf_str(&want));
	}
	far_end(&f);
}

TEST(files_of_many_chunks_are_visited_whole_from_the_cache)
{
	struct far f = far_new(store_memory_new(), NULL, 64 * MIB);
	struct total t;

	write_at(&f, "big", letters(f.c.ctx.arena, 3 * SCAN_CHUNK + 17, 'x')); /* kept */
	write_at(&f, "huge", letters(f.c.ctx.arena, CACHE_ITEM_MAX + 5, 'y')); /* too large to be */
	asked(&f);
	for (int i = 0; i < 2; i++) {
		t = scan_all(&f, "");
		CHECK_INT(t.files, 2);
		CHECK_INT(t.bytes, 3 * SCAN_CHUNK + 17 + CACHE_ITEM_MAX + 5);
	}
	far_end(&f);
}

static int failing_visit(void *arg, const struct scan_item *item, struct err *err)
{
	(void)arg;
	return item->seq == 100 ? err_set(err, ERR_DENIED, "enough") : 0;
}

TEST(a_visitor_that_fails_ends_the_scan_with_its_error)
{
	struct far f = far_new(store_memory_new(), NULL, 8 * MIB);
	struct scan_req req = {.contents = true, .threads = 2, .visit = failing_visit};
	char path[40];

	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof path, "%d", i);
		put(&f.c, path, "x");
	}
	CHECK_ERR(store_scan(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err, ERR_DENIED);
	far_end(&f);
}

TEST(a_server_that_goes_away_ends_the_scan)
{
	struct store *inner = store_memory_new();
	struct far f = far_new(inner, NULL, 8 * MIB);
	struct conf c = {.s = inner, .ctx = f.c.ctx};
	struct total t = {0};
	struct scan_req req = {.contents = true, .threads = 2, .visit = total_visit, .arg = &t};
	char path[40];

	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof path, "%d", i);
		put(&c, path, "x");
	}
	store_fault_arm(f.count, 20, ERR_UNAVAILABLE, false);
	CHECK_ERR(store_scan(f.c.s, &f.c.ctx, P(""), &req, &f.c.err), f.c.err, ERR_UNAVAILABLE);
	far_end(&f);
}

/* --- reads --- */

TEST(a_small_file_is_read_in_one_request_and_is_always_the_present_one)
{
	struct store *inner = store_memory_new();
	struct far f = far_new(inner, NULL, 8 * MIB);
	struct conf other = {.s = inner, .ctx = f.c.ctx};

	put(&f.c, "a", "one");
	asked(&f);
	CHECK_STR(get(&f.c, "a"), STR("one"));
	CHECK_INT(asked(&f), 1);
	put(&other, "a", "two");
	CHECK_STR(get(&f.c, "a"), STR("two"));
	CHECK_INT(asked(&f), 1);
	far_end(&f);
}

static void a_large_file_costs_a_stat(const char *dir)
{
	struct store *inner = store_memory_new();
	struct far f = far_new(inner, dir, 256 * MIB);
	struct conf other = {.s = inner, .ctx = f.c.ctx};
	struct str x = letters(f.c.ctx.arena, MIB, 'x'), y = letters(f.c.ctx.arena, MIB, 'y'), part;

	put(&other, "a", x.ptr);
	CHECK_STR(get(&f.c, "a"), x);
	CHECK_INT(asked(&f), 1);
	store_fault_arm(f.count, 2, ERR_UNAVAILABLE, false); /* a second operation would fail */
	CHECK_STR(get(&f.c, "a"), x);
	CHECK_INT(asked(&f), 1);
	CHECK_OK(store_read(f.c.s, &f.c.ctx, P("a"), (struct store_range){10, 20}, 100, &part, NULL, &f.c.err),
		 f.c.err);
	CHECK_STR(part, str_n(x.ptr + 10, 20));
	put(&other, "a", y.ptr); /* the same size, another version */
	CHECK_STR(get(&f.c, "a"), y);
	CHECK_OK(store_remove(inner, &f.c.ctx, P("a"), false, ANY, NULL, &f.c.err), f.c.err);
	CHECK_ERR(store_read(f.c.s, &f.c.ctx, P("a"), STORE_WHOLE, 2 * MIB, &part, NULL, &f.c.err), f.c.err,
		  ERR_NOT_FOUND);
	far_end(&f);
}

TEST(a_large_file_costs_a_stat_when_it_is_kept_in_memory)
{
	a_large_file_costs_a_stat(NULL);
}

TEST(a_large_file_costs_a_stat_when_it_is_kept_on_disk)
{
	a_large_file_costs_a_stat(temp_dir_new());
}

TEST(another_process_finds_what_is_kept_on_disk)
{
	const char *dir = temp_dir_new();
	struct store *inner = store_memory_new();
	struct far a = far_new(store_share(inner), dir, 64 * MIB), b;

	put(&a.c, "x/1", "text");
	scan_all(&a, "");
	b = far_new(store_share(inner), dir, 64 * MIB);
	scan_all(&b, "");
	CHECK_INT(asked(&b), 1);
	far_end(&a);
	far_end(&b);
	store_destroy(inner);
}

/* --- the directory --- */

/* Calls `act` for every file of the cache; returns how many and how large they are. */
static size_t each_kept(const char *dir, void (*act)(int dirfd, const char *name), uint64_t *ret_bytes)
{
	size_t count = 0;

	*ret_bytes = 0;
	for (int i = 0; i < 16; i++) {
		char path[300];
		struct stat st;
		struct dirent *e;
		DIR *d;

		snprintf(path, sizeof path, "%s/%x", dir, i);
		d = opendir(path);
		CHECK(d);
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			CHECK(fstatat(dirfd(d), e->d_name, &st, 0) == 0);
			count++;
			*ret_bytes += (uint64_t)st.st_size;
			if (act)
				act(dirfd(d), e->d_name);
		}
		closedir(d);
	}
	return count;
}

static void spoil(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY);

	CHECK(fd >= 0 && lseek(fd, -1, SEEK_END) > 0 && write(fd, "#", 1) == 1);
	close(fd);
}

TEST(what_was_damaged_on_disk_is_not_believed)
{
	const char *dir = temp_dir_new();
	struct far f = far_new(store_memory_new(), dir, 64 * MIB);
	uint64_t bytes;
	struct total t;

	put(&f.c, "a", "right");
	asked(&f);
	CHECK_INT(each_kept(dir, spoil, &bytes), 1);
	t = scan_all(&f, "");
	CHECK_INT(t.bytes, 5);
	CHECK_INT(asked(&f), 2);
	CHECK_STR(get(&f.c, "a"), STR("right"));
	far_end(&f);
}

TEST(the_directory_stays_within_its_bytes)
{
	const char *dir = temp_dir_new();
	struct far f = far_new(store_memory_new(), dir, 4 * MIB);
	struct str text = letters(f.c.ctx.arena, 20000, 'x');
	uint64_t bytes;
	char path[40];

	for (int i = 0; i < 1000; i++) { /* 20 MB */
		snprintf(path, sizeof path, "f%d", i);
		write_at(&f, path, text);
	}
	CHECK(each_kept(dir, NULL, &bytes) > 50);
	CHECK(bytes <= 4 * MIB);
	far_end(&f);
}

TEST(memory_stays_within_its_bytes_and_keeps_what_is_used)
{
	struct store *inner = store_memory_new();
	struct far f = far_new(inner, NULL, 4 * MIB);
	struct str text = letters(f.c.ctx.arena, 400000, 'x');
	char path[40];

	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof path, "f%d", i);
		put(&(struct conf){.s = inner, .ctx = f.c.ctx}, path, text.ptr);
		get(&f.c, path);
		get(&f.c, "f0"); /* in use all the time */
	}
	store_fault_arm(f.count, 2, ERR_UNAVAILABLE, false);
	CHECK_INT(get(&f.c, "f0").len, 400000); /* one stat */
	CHECK_INT(asked(&f), 1);
	get(&f.c, "f1"); /* fell out: stat or nothing, then the bytes */
	CHECK(asked(&f) >= 1);
	far_end(&f);
}

TEST(two_stores_that_share_a_directory_do_not_meet)
{
	const char *dir = temp_dir_new();
	struct store *inner_a = store_memory_new(), *inner_b = store_memory_new();
	struct conf a = {.ctx.arena = arena_new()}, b = {.ctx = a.ctx};
	struct seen seen = {0};

	a.s = store_cache_new(inner_a, (struct cache_opts){.identity = STR("a"), .bytes = 64 * MIB, .dir = dir});
	b.s = store_cache_new(inner_b, (struct cache_opts){.identity = STR("b"), .bytes = 64 * MIB, .dir = dir});
	put(&a, "f", "of a"); /* a memory store numbers its versions: both have the same one */
	put(&b, "f", "of b");
	CHECK_STR(scan_paths(&a, "", &seen, true, false), STR("f:of a"));
	seen = (struct seen){0};
	CHECK_STR(scan_paths(&b, "", &seen, true, false), STR("f:of b"));
	store_destroy(a.s);
	store_destroy(b.s);
	arena_destroy(a.ctx.arena);
}

TEST(a_directory_that_cannot_be_made_costs_only_the_cache)
{
	struct far f = far_new(store_memory_new(), "/proc/nowhere/cache", 64 * MIB);

	put(&f.c, "a", "x");
	CHECK_STR(get(&f.c, "a"), STR("x"));
	far_end(&f);
}
