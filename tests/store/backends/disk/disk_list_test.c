/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of large directories: how often the names are read, and that kept names are never out of date. */
#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/hash.h"
#include "store/backends/disk/disk_fix.h"
#include "store/list_stream.h"

#define DIR_NAME "d"
#define LIST_MAX (16 * MIB)

static void make_raw(struct fix *f, const char *name, int number)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), DIR_NAME "/%s%05d", name, number);
	fd = openat(f->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	close(fd);
}

static void unlink_raw(struct fix *f, const char *name, int number)
{
	char path[64];

	snprintf(path, sizeof(path), DIR_NAME "/%s%05d", name, number);
	CHECK_INT(unlinkat(f->fd, path, 0), 0);
}

static struct fix with_files(int count)
{
	struct fix f = fix_new(true);

	CHECK_INT(mkdirat(f.fd, DIR_NAME, 0755), 0);
	for (int i = 0; i < count; i++)
		make_raw(&f, "f", (i * 7919) % count);
	return f;
}

/* Until the file system's clock has passed the directory's last change. */
static void settle(struct fix *f)
{
	struct timespec now;
	struct stat st;

	CHECK_INT(fstatat(f->fd, DIR_NAME, &st, 0), 0);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec < st.st_ctim.tv_sec ||
	       (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec));
}

static struct store_page page_of(struct fix *f, struct store_list_req req)
{
	struct store_page page;

	CHECK_OK(store_list(f->s, &f->ctx, P(DIR_NAME), &req, &page, &f->err), f->err);
	return page;
}

static struct str all_of(struct fix *f, struct store_list_req req, struct str dir)
{
	struct store_page page;
	struct buf out;

	buf_init(&out, f->ctx.arena, LIST_MAX);
	do {
		CHECK_OK(store_list(f->s, &f->ctx, (struct wpath){dir}, &req, &page, &f->err), f->err);
		for (size_t i = 0; i < page.count; i++)
			buf_printf(&out, "%.*s%s\n", STR_ARG(page.entries[i].path.s),
				   page.entries[i].stat.kind == STORE_DIR ? "/" : "");
		req.after = page.next;
	} while (page.next.ptr);
	return buf_str(&out);
}

TEST(the_names_of_a_large_directory_are_read_once_for_any_number_of_pages)
{
	struct fix f = with_files(800);
	uint64_t before = store_disk_dirs_read(f.s);
	struct str paged;

	settle(&f);
	paged = all_of(&f, (struct store_list_req){.limit = 50}, STR(DIR_NAME));
	CHECK_INT(store_disk_dirs_read(f.s) - before, 1);
	CHECK_STR(paged, all_of(&f, (struct store_list_req){.limit = STORE_PAGE_MAX}, STR(DIR_NAME)));
}

TEST(a_recursive_list_reads_each_large_directory_twice)
{
	struct fix f = with_files(1000);
	uint64_t before = store_disk_dirs_read(f.s);
	struct str paged;

	settle(&f);
	paged = all_of(&f, (struct store_list_req){.recursive = true, .limit = 50}, STR(""));
	CHECK_INT(store_disk_dirs_read(f.s) - before, 2 + 20); /* and the small one above it for each page */
	CHECK_STR(paged, all_of(&f, (struct store_list_req){.recursive = true, .limit = STORE_PAGE_MAX}, STR("")));
}

TEST(kept_names_are_not_used_after_any_change_of_the_directory)
{
	struct fix f = with_files(400);
	struct store_list_req req = {.limit = 10};
	uint64_t random = 1;

	settle(&f);
	req.after = page_of(&f, req).next;
	/* No wait between changes: most of them are in one step of the clock. */
	for (int i = 0; i < 400; i++) {
		struct store_page page;
		char want[32];

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (random >> 62)
			page_of(&f, req);
		make_raw(&f, "f00009x", i);
		page = page_of(&f, req);
		snprintf(want, sizeof(want), DIR_NAME "/f00009x%05d", i);
		CHECK_STR(page.entries[0].path.s, str_of(want));
		unlink_raw(&f, "f00009x", i);
		req.names_only = (random >> 33) & 1;
		CHECK_STR(page_of(&f, req).entries[0].path.s, STR(DIR_NAME "/f00010"));
	}
}

/* One change by another program: a file, a link or a directory comes or goes, is renamed, or takes another's place. */
static void change_raw(struct fix *f, uint64_t random)
{
	char a[48], b[48];

	snprintf(a, sizeof(a), DIR_NAME "/f%05d", (int)(random % 3100));
	snprintf(b, sizeof(b), DIR_NAME "/f%05d%s", (int)(random / 7919 % 3100), random & 64 ? "" : "-x");
	switch (random >> 20 & 7) {
	case 0:
		unlinkat(f->fd, a, 0);
		break;
	case 1:
		unlinkat(f->fd, b, 0);
		symlinkat("nowhere", f->fd, b);
		break;
	case 2:
		unlinkat(f->fd, a, 0);
		mkdirat(f->fd, a, 0755);
		break;
	case 3:
		unlinkat(f->fd, b, AT_REMOVEDIR);
		break;
	case 4:
	case 5:
		renameat(f->fd, a, f->fd, b);
		break;
	default:
		close(openat(f->fd, b, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
	}
}

/* All names in pages of `limit`, and their number. */
static struct str counted_names(struct fix *f, struct store *s, size_t limit)
{
	struct store_count count = {.rule = 1};
	struct store_list_req req = {.limit = limit, .names_only = true, .count = &count};
	struct store_page page;
	struct buf out;
	size_t total = 0;

	buf_init(&out, f->ctx.arena, LIST_MAX);
	do {
		CHECK_OK(store_list(s, &f->ctx, P(DIR_NAME), &req, &page, &f->err), f->err);
		for (size_t i = 0; i < page.count; i++)
			buf_printf(&out, "%.*s%d\n", STR_ARG(page.entries[i].path.s), page.entries[i].stat.kind);
		req.after = page.next;
		total += page.count;
	} while (page.next.ptr);
	CHECK(count.known);
	CHECK_INT(count.total, total);
	return buf_str(&out);
}

TEST(a_very_large_directory_is_followed_and_not_read_again)
{
	struct fix f = with_files(3000);
	struct store_count count = {.rule = 1};
	struct store_list_req first = {.limit = 20, .names_only = true, .count = &count};
	uint64_t random = 1, before;

	page_of(&f, first);
	before = store_disk_dirs_read(f.s);
	for (int i = 0; i < 2000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		change_raw(&f, random >> 20);
		if (random >> 62 == 0)
			page_of(&f, first);
	}
	CHECK_INT(store_disk_dirs_read(f.s) - before, 0);
}

TEST(a_followed_directory_is_listed_as_one_that_was_just_opened)
{
	struct fix f = with_files(3000);
	uint64_t random = 7;

	for (int i = 0; i < 60; i++) {
		struct store_list_req first = {.limit = 20, .names_only = true};
		struct store *fresh;

		page_of(&f, first);
		for (int k = 0; k < i % 20; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			change_raw(&f, random >> 20);
		}
		CHECK_OK(store_disk_open(f.dir, &(struct store_disk_opts){0}, &fresh, &f.err), f.err);
		CHECK_STR(counted_names(&f, f.s, 700), counted_names(&f, fresh, STORE_PAGE_MAX));
		store_destroy(fresh);
		arena_reset(f.ctx.arena);
	}
}

TEST(after_more_changes_than_can_be_followed_the_directory_is_read_again)
{
	struct fix f = with_files(3000);
	struct store_page page;

	page_of(&f, (struct store_list_req){.limit = 20});
	for (int i = 0; i < 2500; i++)
		unlink_raw(&f, "f", i);
	page = page_of(&f, (struct store_list_req){.limit = 20});
	CHECK_STR(page.entries[0].path.s, STR(DIR_NAME "/f02500"));
}

TEST(a_followed_directory_that_was_removed_and_made_again_is_empty)
{
	struct fix f = with_files(3000);
	struct store_page page;

	page_of(&f, (struct store_list_req){.limit = 20});
	CHECK_INT(renameat(f.fd, DIR_NAME, f.fd, "away"), 0);
	CHECK_INT(mkdirat(f.fd, DIR_NAME, 0755), 0);
	make_raw(&f, "only", 1);
	page = page_of(&f, (struct store_list_req){.limit = 20});
	CHECK_INT(page.count, 1);
	CHECK_OK(store_list(f.s, &f.ctx, P("away"), &(struct store_list_req){.limit = 20}, &page, &f.err), f.err);
	CHECK_STR(page.entries[0].path.s, STR("away/f00000"));
}

TEST(a_list_of_names_alone_has_kinds_and_no_versions)
{
	struct fix f = with_files(3);
	struct store_page page;

	CHECK_INT(mkdirat(f.fd, DIR_NAME "/sub", 0755), 0);
	page = page_of(&f, (struct store_list_req){.limit = 10, .names_only = true});
	CHECK_INT(page.count, 4);
	CHECK_INT(page.entries[2].stat.kind, STORE_FILE);
	CHECK_INT(page.entries[2].stat.version.len, 0);
	CHECK_INT(page.entries[3].stat.kind, STORE_DIR);
}

TEST(pages_of_any_size_give_the_same_order)
{
	struct fix f = with_files(0);
	struct str whole;

	for (uint64_t i = 0; i < 600; i++) {
		char name[32], hex[17] = "";

		hex_u64(i * 0x9E3779B97F4A7C15u, hex);
		snprintf(name, sizeof(name), DIR_NAME "/%.*s%s", 1 + (int)(i % 5), hex, i % 3 ? "" : "-x");
		if (i % 4 == 0)
			mkdirat(f.fd, name, 0755);
		else
			close(openat(f.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
	whole = all_of(&f, (struct store_list_req){.limit = STORE_PAGE_MAX}, STR(DIR_NAME));
	for (size_t limit = 1; limit < 500; limit = limit * 3 + 1)
		CHECK_STR(all_of(&f, (struct store_list_req){.limit = limit}, STR(DIR_NAME)), whole);
}

/* What `rm -r` does: each page is removed before the next one is asked for. */
TEST(a_walk_that_removes_what_it_lists_asks_for_few_lists)
{
	struct fix f = with_files(1000);
	LIST_PAGES_SCOPE struct list_pages pages = {
		.store = f.s, .dir = P(DIR_NAME), .req = {.limit = 16}, .ctx = f.ctx};
	uint64_t removed = 0;

	while (list_pages_next(&pages, &f.err) > 0) {
		CHECK(pages.page.count <= 16);
		for (size_t i = 0; i < pages.page.count; i++, removed++)
			CHECK_OK(store_remove(f.s, &pages.ctx, pages.page.entries[i].path, false, ANY, NULL, &f.err),
				 f.err);
	}
	CHECK_INT(removed, 1000);
	CHECK(store_disk_dirs_read(f.s) <= 8);
}
