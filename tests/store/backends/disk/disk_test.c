/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the disk backend beyond the contract: links, strange files, leftovers, modes, limits of the host. */
#include <grp.h>
#include <linux/capability.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "store/backends/disk/disk_fix.h"

/* Every operation on `path` is refused as `kind`, and leaves what is there alone. */
static void check_all_refuse(struct fix *f, const char *path, enum err_kind kind)
{
	struct store_list_req req = {.limit = 10};
	struct store_page page;

	put(f, "other", "other");
	CHECK_ERR(store_stat(f->s, &f->ctx, P(path), NULL, &f->err), f->err, kind);
	CHECK_ERR(store_read(f->s, &f->ctx, P(path), STORE_WHOLE, 100, NULL, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_write(f->s, &f->ctx, P(path), STR("evil"), ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_append(f->s, &f->ctx, P(path), STR("evil"), ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_remove(f->s, &f->ctx, P(path), true, ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_move(f->s, &f->ctx, P(path), P("new"), ANY, ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_move(f->s, &f->ctx, P("other"), P(path), ANY, ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_copy(f->s, &f->ctx, P(path), P("new"), ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_copy(f->s, &f->ctx, P("other"), P(path), ANY, NULL, &f->err), f->err, kind);
	CHECK_ERR(store_list(f->s, &f->ctx, P(path), &req, &page, &f->err), f->err, kind);
	CHECK_STR(get(f, "other"), STR("other"));
	CHECK(!raw_exists(f->fd, "new"));
}

/* A directory outside the store with one file, which must stay as it is. */
static int outside_new(const char **ret_dir)
{
	int fd;

	*ret_dir = temp_dir_new();
	fd = open(*ret_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	raw_write(fd, "secret", "secret");
	return fd;
}

TEST(a_link_at_the_end_of_a_path_is_refused)
{
	struct fix f = fix_new(true);
	const char *dir;
	FD_SCOPE int outside = outside_new(&dir);
	struct str target = arena_printf(f.ctx.arena, "%s/secret", dir);

	CHECK(symlinkat(target.ptr, f.fd, "absolute") == 0);
	CHECK(symlinkat("other", f.fd, "inside") == 0);
	CHECK(symlinkat("loop", f.fd, "loop") == 0);
	CHECK(symlinkat("/proc/self/root/etc/passwd", f.fd, "magic") == 0);
	check_all_refuse(&f, "absolute", ERR_DENIED);
	check_all_refuse(&f, "inside", ERR_DENIED);
	check_all_refuse(&f, "loop", ERR_DENIED);
	check_all_refuse(&f, "magic", ERR_DENIED);
	CHECK(raw_exists(f.fd, "absolute") && raw_exists(f.fd, "inside"));
	CHECK_STR(raw_read(f.ctx.arena, outside, "secret"), STR("secret"));
}

TEST(a_link_on_the_way_is_refused)
{
	struct fix f = fix_new(true);
	const char *dir;
	FD_SCOPE int outside = outside_new(&dir);
	struct str magic = arena_printf(f.ctx.arena, "/proc/self/fd/%d", outside);

	put(&f, "real/secret", "real");
	CHECK(symlinkat(dir, f.fd, "absolute") == 0);
	CHECK(symlinkat("real", f.fd, "inside") == 0);
	CHECK(symlinkat("..", f.fd, "up") == 0);
	CHECK(symlinkat(magic.ptr, f.fd, "magic") == 0);
	check_all_refuse(&f, "absolute/secret", ERR_DENIED);
	check_all_refuse(&f, "absolute/new/file", ERR_DENIED);
	check_all_refuse(&f, "inside/secret", ERR_DENIED);
	check_all_refuse(&f, "up/secret", ERR_DENIED);
	check_all_refuse(&f, "magic/secret", ERR_DENIED);
	CHECK_STR(raw_read(f.ctx.arena, outside, "secret"), STR("secret"));
	CHECK(!raw_exists(outside, "new"));
}

TEST(a_fifo_a_socket_and_a_device_are_refused_without_waiting)
{
	struct fix f = fix_new(true);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	FD_SCOPE int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(mkfifoat(f.fd, "fifo", 0644) == 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", f.dir);
	CHECK(bind(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	check_all_refuse(&f, "fifo", ERR_DENIED);
	check_all_refuse(&f, "sock", ERR_DENIED);
	if (mknodat(f.fd, "device", S_IFCHR | 0644, makedev(1, 3)) == 0) /* needs root */
		check_all_refuse(&f, "device", ERR_DENIED);
	CHECK_HAS(str_of(f.err.msg), STR("name the real file"));
}

TEST(a_list_leaves_out_and_counts_what_is_no_file_of_the_store)
{
	struct fix f = fix_new(true);
	struct store_page page;

	put(&f, "d/file", "x");
	raw_write(f.fd, "d/bad\xFFname", "x");
	raw_write(f.fd, "d/new\nline", "x");
	CHECK(symlinkat("file", f.fd, "d/link") == 0);
	CHECK(mkfifoat(f.fd, "d/fifo", 0644) == 0);
	CHECK(symlinkat("d", f.fd, "dirlink") == 0);
	page = list(&f, "", true);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].path.s, STR("d/file"));
	CHECK_INT(page.skipped, 5);
	page = list(&f, "", false);
	CHECK_INT(page.count, 1);
	CHECK_INT(page.skipped, 1);
}

TEST(a_skipped_name_is_counted_on_one_page_only)
{
	struct fix f = fix_new(true);
	struct store_list_req req = {.recursive = true, .limit = 1};
	uint64_t skipped = 0, files = 0;
	struct store_page page;

	put(&f, "b", "x");
	put(&f, "d", "x");
	for (const char *name = "ace"; *name; name++)
		CHECK(symlinkat("b", f.fd, (char[]){*name, 0}) == 0);
	do {
		CHECK_OK(store_list(f.s, &f.ctx, WPATH_ROOT, &req, &page, &f.err), f.err);
		skipped += page.skipped;
		files += page.count;
		req.after = page.next;
	} while (page.next.ptr);
	CHECK_INT(files, 2);
	CHECK_INT(skipped, 3);
}

TEST(names_of_unfinished_writes_are_not_in_the_store)
{
	struct fix f = fix_new(true);
	FD_SCOPE int live = -1;

	raw_write(f.fd, ".stead-tmp-1", "unfinished");
	live = openat(f.fd, ".stead-tmp-1", O_RDONLY | O_CLOEXEC);
	CHECK(flock(live, LOCK_EX) == 0);
	CHECK_ERR(store_stat(f.s, &f.ctx, P(".stead-tmp-1"), NULL, &f.err), f.err, ERR_NOT_FOUND);
	CHECK_ERR(store_read(f.s, &f.ctx, P(".stead-tmp-1"), STORE_WHOLE, 9, NULL, NULL, &f.err), f.err, ERR_NOT_FOUND);
	CHECK_ERR(store_remove(f.s, &f.ctx, P(".stead-tmp-1"), true, ANY, NULL, &f.err), f.err, ERR_NOT_FOUND);
	CHECK_ERR(store_write(f.s, &f.ctx, P("d/.stead-tmp-2"), STR("x"), ANY, NULL, &f.err), f.err, ERR_INVALID);
	CHECK_ERR(store_append(f.s, &f.ctx, P(".stead-tmp-2/x"), STR("x"), ANY, NULL, &f.err), f.err, ERR_INVALID);
	CHECK_INT(list(&f, "", true).count, 0);
	CHECK(raw_exists(f.fd, ".stead-tmp-1"));
	CHECK(!raw_exists(f.fd, "d"));
}

TEST(a_dead_writers_file_goes_with_the_next_list)
{
	struct fix f = fix_new(true);

	put(&f, "d/file", "x");
	raw_write(f.fd, "d/.stead-tmp-dead", "half");
	CHECK_INT(list(&f, "", true).count, 1);
	CHECK(!raw_exists(f.fd, "d/.stead-tmp-dead"));
}

TEST(a_dead_writers_file_goes_with_the_next_replacing_write)
{
	struct fix f = fix_new(false);

	put(&f, "file", "old");
	raw_write(f.fd, ".stead-tmp-0000000000000000", "half");
	put(&f, "file", "new");
	CHECK_STR(get(&f, "file"), STR("new"));
	CHECK(!raw_exists(f.fd, ".stead-tmp-0000000000000000"));
}

TEST(a_file_in_the_way_that_lives_is_left_to_its_writer)
{
	struct fix f = fix_new(false);
	FD_SCOPE int live = -1;

	put(&f, "file", "old");
	raw_write(f.fd, ".stead-tmp-0000000000000000", "half");
	live = openat(f.fd, ".stead-tmp-0000000000000000", O_RDONLY | O_CLOEXEC);
	CHECK(flock(live, LOCK_EX) == 0);
	put(&f, "file", "new");
	CHECK_STR(get(&f, "file"), STR("new"));
	CHECK_STR(raw_read(f.ctx.arena, f.fd, ".stead-tmp-0000000000000000"), STR("half"));
}

TEST(opening_sweeps_the_tmp_dir_of_the_dead_only)
{
	struct fix f = fix_new(true);
	const char *tmp = temp_dir_new();
	FD_SCOPE int dir = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC), live = -1;

	raw_write(dir, ".stead-tmp-dead", "half");
	raw_write(dir, ".stead-tmp-live", "half");
	raw_write(dir, "not-ours", "x");
	live = openat(dir, ".stead-tmp-live", O_RDONLY | O_CLOEXEC);
	CHECK(flock(live, LOCK_EX) == 0);
	fix_reopen(&f, true, tmp);
	CHECK(!raw_exists(dir, ".stead-tmp-dead"));
	CHECK(raw_exists(dir, ".stead-tmp-live") && raw_exists(dir, "not-ours"));
}

TEST(a_tmp_dir_that_vanishes_does_not_stop_writes)
{
	struct fix f = fix_new(true);
	const char *tmp = temp_dir_new();

	fix_reopen(&f, true, tmp);
	put(&f, "file", "old");
	CHECK(rmdir(tmp) == 0);
	put(&f, "file", "new");
	CHECK_STR(get(&f, "file"), STR("new"));
}

TEST(a_recursive_remove_takes_links_away_and_not_what_they_point_to)
{
	struct fix f = fix_new(true);
	const char *dir;
	FD_SCOPE int outside = outside_new(&dir);
	uint64_t count;

	put(&f, "d/e/file", "x");
	CHECK(symlinkat(dir, f.fd, "d/link") == 0);
	CHECK(symlinkat(dir, f.fd, "d/e/link") == 0);
	CHECK(mkfifoat(f.fd, "d/fifo", 0644) == 0);
	CHECK(mkdirat(f.fd, "d/.stead-tmp-dir", 0755) == 0);
	CHECK_OK(store_remove(f.s, &f.ctx, P("d"), true, ANY, &count, &f.err), f.err);
	CHECK_INT(count, 1);
	CHECK(!raw_exists(f.fd, "d"));
	CHECK_STR(raw_read(f.ctx.arena, outside, "secret"), STR("secret"));
}

TEST(a_replaced_file_keeps_its_mode_and_a_new_one_is_not_writable_by_others)
{
	struct fix f = fix_new(false);
	struct stat st;

	put(&f, "script", "1");
	CHECK(fstatat(f.fd, "script", &st, 0) == 0 && (st.st_mode & 0022) == 0);
	CHECK(fchmodat(f.fd, "script", 0750, 0) == 0);
	put(&f, "script", "2");
	CHECK(fstatat(f.fd, "script", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0750);
}

TEST(a_file_is_written_with_the_mode_that_is_asked_for_and_stat_gives_it)
{
	struct fix f = fix_new(false);
	struct source source = {.bytes = STR("#!/bin/sh"), .mode = 0751};
	struct store_stat stat;
	struct stat st;

	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ABSENT, &stat, &f.err), f.err);
	CHECK(fstatat(f.fd, "new", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0751);
	CHECK_INT(stat.mode, 0751);
	source.mode = 0600;
	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ANY, NULL, &f.err), f.err);
	CHECK_OK(store_stat(f.s, &f.ctx, P("new"), &stat, &f.err), f.err);
	CHECK_INT(stat.mode, 0600);
}

TEST(a_replaced_file_keeps_its_owner)
{
	struct fix f = fix_new(true);
	struct stat st;

	if (geteuid() != 0)
		return; /* nobody else may give a file away */
	put(&f, "theirs", "1");
	CHECK(fchownat(f.fd, "theirs", 1234, 4321, 0) == 0);
	put(&f, "theirs", "2");
	CHECK(fstatat(f.fd, "theirs", &st, 0) == 0);
	CHECK_INT(st.st_uid, 1234);
	CHECK_INT(st.st_gid, 4321);
}

static struct stat raw_stat(struct fix *f, const char *path)
{
	struct stat st = {0};

	CHECK(fstatat(f->fd, path, &st, 0) == 0);
	return st;
}

TEST(a_file_is_written_for_the_owner_that_is_asked_for_and_stat_gives_it)
{
	struct fix f = fix_new(false);
	struct source source = {.bytes = STR("x"), .mode = 0640, .owner = {STORE_OWNER_IDS, 1234, 4321}};
	struct store_stat stat;

	if (geteuid() != 0)
		SKIP("only root may give a file away");
	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ABSENT, &stat, &f.err), f.err);
	CHECK(store_owner_eq(stat.owner, source.owner));
	CHECK_INT(raw_stat(&f, "new").st_uid, 1234);
	CHECK_INT(raw_stat(&f, "new").st_gid, 4321);
	CHECK_INT(raw_stat(&f, "new").st_mode & 07777, 0640);
	source.owner.kind = STORE_OWNER_TOP;
	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ANY, &stat, &f.err), f.err);
	CHECK_INT(stat.owner.kind, STORE_OWNER_TOP);
	CHECK_INT(raw_stat(&f, "new").st_uid, 0);
}

TEST(a_mode_that_is_asked_for_never_makes_a_file_run_as_its_owner)
{
	struct fix f = fix_new(true);
	struct source source = {.bytes = STR("#!/bin/sh"), .mode = 06755, .owner = {STORE_OWNER_TOP, 0, 0}};

	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ANY, NULL, &f.err), f.err);
	CHECK_INT(raw_stat(&f, "new").st_mode & 07777, 0755);
	CHECK_OK(store_write_stream(f.s, &f.ctx, P("new"), &source, ANY, NULL, &f.err), f.err);
	CHECK_INT(raw_stat(&f, "new").st_mode & 07777, 0755);
}

/* Becomes another user, who may give files away if `caps` says so. */
static bool become(unsigned uid, uint32_t caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = caps, .permitted = caps}};

	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setresgid(uid, uid, uid) == 0 &&
	       setresuid(uid, uid, uid) == 0 && syscall(SYS_capset, &head, data) == 0;
}

/* 0: what is asked for `owner` becomes that of uid:gid. */
static int write_for(struct fix *f, struct store_owner owner, unsigned uid, unsigned gid)
{
	struct source source = {.bytes = STR("x"), .mode = 0640, .owner = owner};
	struct stat st;

	for (int i = 0; i < 2; i++) /* a new file, and one that is replaced */
		if (store_write_stream(f->s, &f->ctx, P("new"), &source, ANY, NULL, &f->err) ||
		    fstatat(f->fd, "new", &st, 0) < 0 || (st.st_mode & 07777) != 0640 || st.st_uid != uid ||
		    st.st_gid != gid)
			return 1;
	return store_remove(f->s, &f->ctx, P("new"), false, ANY, NULL, &f->err) ? 2 : 0;
}

static int write_as_giver(struct fix *f)
{
	if (!become(1234, 1u << CAP_CHOWN | 1u << CAP_FOWNER))
		return 3;
	if (write_for(f, (struct store_owner){STORE_OWNER_IDS, 2345, 3456}, 2345, 3456))
		return 4; /* it may give files away */
	if (write_for(f, (struct store_owner){STORE_OWNER_IDS, 0, 0}, 1234, 1234))
		return 5;
	return write_for(f, (struct store_owner){STORE_OWNER_IDS, 2345, 0}, 2345, 1234);
}

TEST(nothing_that_is_asked_for_is_given_to_root)
{
	struct fix f = fix_new(true);

	if (geteuid() != 0)
		SKIP("only root may give a file away");
	CHECK(fchmod(f.fd, 0777) == 0);
	CHECK_INT(in_child(write_as_giver, &f), 0);
}

static int write_as_member(struct fix *f)
{
	static const gid_t groups[] = {4321};

	if (setgroups(1, groups) < 0 || !become(1234, 0))
		return 3;
	if (write_for(f, (struct store_owner){STORE_OWNER_IDS, 2345, 3456}, 1234, 1234))
		return 4;
	return write_for(f, (struct store_owner){STORE_OWNER_IDS, 2345, 4321}, 1234, 4321); /* the group at least */
}

TEST(a_file_that_may_not_be_given_away_is_written_all_the_same)
{
	struct fix f = fix_new(true);

	if (geteuid() != 0)
		SKIP("only root may become somebody else");
	CHECK(fchmod(f.fd, 0777) == 0);
	CHECK_INT(in_child(write_as_member, &f), 0);
}

TEST(a_replaced_file_keeps_its_extended_attributes)
{
	struct fix f = fix_new(false);
	const char *path;
	char value[100];

	put(&f, "file", "1");
	path = arena_printf(f.ctx.arena, "%s/file", f.dir).ptr;
	if (setxattr(path, "user.origin", "https://example.org", 19, 0) < 0 && errno == EOPNOTSUPP)
		return; /* the file system has none */
	CHECK(setxattr(path, "user.empty", "", 0, 0) == 0);
	put(&f, "file", "2");
	CHECK_STR(get(&f, "file"), STR("2"));
	CHECK_INT(getxattr(path, "user.origin", value, sizeof(value)), 19);
	CHECK_STR(str_n(value, 19), STR("https://example.org"));
	CHECK_INT(getxattr(path, "user.empty", value, sizeof(value)), 0);
}

TEST(where_links_are_kept_a_file_with_two_names_cannot_be_changed)
{
	struct fix f = fix_new(true);
	struct store_disk_opts opts = {.relaxed = true, .keep_links = true};

	test_close(f.s);
	CHECK_OK(store_disk_open(f.dir, &opts, &f.s, &f.err), f.err);
	test_defer(store_destroy, f.s);
	put(&f, "file", "old");
	put(&f, "file", "older");
	CHECK(linkat(f.fd, "file", f.fd, "second", 0) == 0);
	CHECK_ERR(store_write(f.s, &f.ctx, P("file"), STR("new"), ANY, NULL, &f.err), f.err, ERR_DENIED);
	CHECK_HAS(str_of(f.err.msg), STR("2 names"));
	CHECK_ERR(store_append(f.s, &f.ctx, P("second"), STR("new"), ANY, NULL, &f.err), f.err, ERR_DENIED);
	CHECK_STR(get(&f, "second"), STR("older"));
	CHECK_OK(store_remove(f.s, &f.ctx, P("second"), false, ANY, NULL, &f.err), f.err);
	put(&f, "file", "new");
}

/* The lowest descriptor that is free. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

TEST(a_store_that_replaced_many_files_leaves_no_descriptor_open)
{
	struct fix f = fix_new(true);
	struct rlimit before, few = {.rlim_cur = 200};

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few.rlim_max = before.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (int i = 0; i < 2000; i++)
		put(&f, "same", i % 2 ? "odd" : "even");
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	test_close(f.s);
	CHECK_INT(next_fd(), f.fd + 1);
}

TEST(a_child_process_replaces_files_of_a_store_that_was_opened_before_the_fork)
{
	struct fix f = fix_new(true);
	int status;
	pid_t child;

	for (int i = 0; i < 3; i++)
		put(&f, "same", "parent");
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 300; i++)
			put(&f, "same", "child");
		store_destroy(f.s);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK_STR(get(&f, "same"), STR("child"));
}

TEST(an_append_to_a_file_with_two_names_leaves_the_other_name_alone)
{
	struct fix f = fix_new(true);

	put(&f, "file", "old");
	CHECK(linkat(f.fd, "file", f.fd, "second", 0) == 0);
	CHECK_OK(store_append(f.s, &f.ctx, P("file"), STR("+new"), ANY, NULL, &f.err), f.err);
	CHECK_STR(get(&f, "file"), STR("old+new"));
	CHECK_STR(get(&f, "second"), STR("old"));
}

TEST(an_append_to_a_file_with_one_name_keeps_the_inode)
{
	struct fix f = fix_new(true);
	struct stat before, after;

	put(&f, "log", "1\n");
	CHECK(fstatat(f.fd, "log", &before, 0) == 0);
	CHECK_OK(store_append(f.s, &f.ctx, P("log"), STR("2\n"), ANY, NULL, &f.err), f.err);
	CHECK(fstatat(f.fd, "log", &after, 0) == 0);
	CHECK_INT(before.st_ino, after.st_ino);
	CHECK_STR(get(&f, "log"), STR("1\n2\n"));
}

static int append_past_the_limit(struct fix *f)
{
	struct rlimit limit = {6, 6};
	int r;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	r = store_append(f->s, &f->ctx, P("log"), STR("0123456789"), ANY, NULL, &f->err);
	return r == -ERR_TOO_LARGE ? 0 : 1;
}

TEST(an_append_that_fails_half_way_is_taken_back)
{
	struct fix f = fix_new(true);

	put(&f, "log", "abc");
	CHECK_INT(in_child(append_past_the_limit, &f), 0);
	CHECK_STR(get(&f, "log"), STR("abc"));
}

TEST(versions_agree_between_write_stat_and_list_and_never_repeat)
{
	struct fix f = fix_new(true);
	struct str seen[500];
	struct store_stat st;

	for (size_t i = 0; i < 500; i++) {
		seen[i] = put(&f, "d/file", i % 2 ? "one" : "two");
		CHECK_OK(store_stat(f.s, &f.ctx, P("d/file"), &st, &f.err), f.err);
		CHECK_STR(st.version, seen[i]);
		for (size_t j = 0; j < i; j++)
			CHECK(!str_eq(seen[i], seen[j]));
	}
	CHECK_STR(list(&f, "d", false).entries[0].stat.version, seen[499]);
}

TEST(a_change_by_another_program_is_a_conflict)
{
	struct fix f = fix_new(true);
	struct str version = put(&f, "file", "mine");

	raw_write(f.fd, "file", "hers");
	CHECK_ERR(store_write(f.s, &f.ctx, P("file"), STR("x"), VERS(version), NULL, &f.err), f.err, ERR_CONFLICT);
	CHECK_STR(get(&f, "file"), STR("hers"));
}

TEST(a_failed_write_leaves_no_directories)
{
	struct fix f = fix_new(true);

	CHECK_ERR(store_write(f.s, &f.ctx, P("a/b/c"), STR("x"), VERS(STR("0")), NULL, &f.err), f.err, ERR_CONFLICT);
	CHECK(!raw_exists(f.fd, "a"));
}

TEST(an_empty_directory_is_no_obstacle)
{
	struct fix f = fix_new(true);

	CHECK(mkdirat(f.fd, "a", 0755) == 0 && mkdirat(f.fd, "b", 0755) == 0 && mkdirat(f.fd, "c", 0755) == 0);
	put(&f, "a", "file");
	CHECK_OK(store_append(f.s, &f.ctx, P("b"), STR("file"), ANY, NULL, &f.err), f.err);
	CHECK_OK(store_move(f.s, &f.ctx, P("a"), P("c"), ANY, ABSENT, NULL, &f.err), f.err);
	CHECK_STR(get(&f, "c"), STR("file"));
	CHECK_STR(get(&f, "b"), STR("file"));
}

TEST(directories_with_no_file_in_them_are_no_obstacle_at_any_depth)
{
	struct fix f = fix_new(true);

	CHECK(mkdirat(f.fd, "a", 0755) == 0 && mkdirat(f.fd, "a/b", 0755) == 0 && mkdirat(f.fd, "a/b/c", 0755) == 0);
	put(&f, "a", "file");
	CHECK_STR(get(&f, "a"), STR("file"));
	put(&f, "d/e/f", "inside");
	CHECK(mkdirat(f.fd, "d/g", 0755) == 0);
	CHECK_ERR(store_write(f.s, &f.ctx, P("d"), STR("x"), ANY, NULL, &f.err), f.err, ERR_INVALID);
	CHECK_STR(get(&f, "d/e/f"), STR("inside"));
}

TEST(a_directory_that_stays_locked_is_a_timeout)
{
	struct fix f = fix_new(true);
	FD_SCOPE int other = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(flock(other, LOCK_EX) == 0);
	f.ctx.deadline_ns = clock_monotonic_ns() + 5000000;
	CHECK_ERR(store_write(f.s, &f.ctx, P("file"), STR("x"), ANY, NULL, &f.err), f.err, ERR_TIMEOUT);
	CHECK(!raw_exists(f.fd, "file"));
}

/* Directories d/d/d/…, one descriptor at a time. */
static void make_deep(int dir, unsigned levels)
{
	int at = dup(dir);

	while (levels--) {
		int next;

		CHECK(mkdirat(at, "d", 0755) == 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		close(at);
		at = next;
	}
	raw_write(at, "f", "x");
	close(at);
}

TEST(the_deepest_path_is_listed_with_few_descriptors)
{
	struct fix f = fix_new(true);
	struct rlimit old, few = {100, 100};
	struct store_page page;

	make_deep(f.fd, 511);
	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	page = list(&f, "", true);
	setrlimit(RLIMIT_NOFILE, &old);
	CHECK_INT(page.count, 1);
	CHECK_INT(page.entries[0].path.s.len, 1023);
}

TEST(a_tree_deeper_than_any_path_is_counted_and_can_be_removed)
{
	struct fix f = fix_new(true);
	uint64_t count;

	make_deep(f.fd, 700);
	CHECK_INT(list(&f, "", true).count, 0);
	CHECK_INT(list(&f, "", true).skipped, 1);
	CHECK_OK(store_remove(f.s, &f.ctx, P("d"), true, ANY, &count, &f.err), f.err);
	CHECK_INT(count, 1);
	CHECK(!raw_exists(f.fd, "d"));
	CHECK_INT(list(&f, "", false).count, 0);
}

static int write_with_no_descriptor_left(struct fix *f)
{
	struct rlimit none = {3, 3};

	setrlimit(RLIMIT_NOFILE, &none);
	if (store_write(f->s, &f->ctx, P("d/file"), STR("x"), ANY, NULL, &f->err) != -ERR_UNAVAILABLE)
		return 1;
	return strstr(f->err.msg, "too many files open") ? 0 : 2;
}

TEST(too_many_open_files_is_said_so)
{
	struct fix f = fix_new(true);

	CHECK_INT(in_child(write_with_no_descriptor_left, &f), 0);
}

static int write_as_nobody(struct fix *f)
{
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 0; /* not root: nothing to give up */
	if (store_write(f->s, &f->ctx, P("file"), STR("x"), ANY, NULL, &f->err) != -ERR_DENIED)
		return 1;
	return strstr(f->err.msg, "check the owner and mode") ? 0 : 2;
}

TEST(a_directory_that_may_not_be_written_is_said_so)
{
	struct fix f = fix_new(true);

	CHECK_INT(in_child(write_as_nobody, &f), 0);
}

TEST(a_missing_directory_is_made_only_when_asked)
{
	struct fix f = fix_new(true);
	struct str path = arena_printf(f.ctx.arena, "%s/a/b", f.dir);
	struct store_disk_opts opts = {.create = true};
	struct store *s;

	CHECK_ERR(store_disk_open(path.ptr, NULL, &s, &f.err), f.err, ERR_NOT_FOUND);
	CHECK_OK(store_disk_open(path.ptr, &opts, &s, &f.err), f.err);
	store_destroy(s);
	CHECK(raw_exists(f.fd, "a/b"));
}

TEST(a_url_opens_the_store_it_names)
{
	struct fix f = fix_new(true);
	struct str url = arena_printf(f.ctx.arena, "disk:%s", f.dir);
	struct store *s;

	CHECK_OK(store_open_url(url, NULL, &s, &f.err), f.err);
	CHECK_OK(store_write(s, &f.ctx, P("file"), STR("x"), ANY, NULL, &f.err), f.err);
	store_destroy(s);
	CHECK(raw_exists(f.fd, "file"));
	CHECK_OK(store_open_url(STR("memory:"), NULL, &s, &f.err), f.err);
	store_destroy(s);
	CHECK_ERR(store_open_url(STR("disk:"), NULL, &s, &f.err), f.err, ERR_INVALID);
	CHECK_ERR(store_open_url(STR("ftp://x"), NULL, &s, &f.err), f.err, ERR_UNSUPPORTED);
	CHECK_HAS(str_of(f.err.msg), STR("\"disk:DIR\", \"memory:\""));
}
