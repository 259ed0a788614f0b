/* SPDX-License-Identifier: Apache-2.0 */
/* Views of stores, mounted by the kernel of this machine: what programs do to them and to a plain directory is the
 * same. */
#include "sandbox/fuse/fuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "sandbox_fix.h"

struct mounted {
	struct arena *arena;
	struct ctx ctx;
	struct err err;
	struct store *store;
	const char *dir;
	struct fuse_view *view;
};

static void unmount(struct mounted *m)
{
	struct err ignored;

	(void)fuse_unmount(m->dir, true, &ignored);
	fuse_view_close(m->view);
}

/* Over `store`, or over a new one. */
static void mount_store(struct mounted *m, struct store *store, struct fuse_opts opts)
{
	*m = (struct mounted){.arena = arena_new(), .store = store ? store : store_memory_new(), .dir = temp_dir_new()};
	test_defer(arena_destroy, m->arena);
	test_defer(store_destroy, m->store);
	m->ctx.arena = m->arena;
	if (access("/dev/fuse", R_OK | W_OK) != 0)
		SKIP("this machine has no /dev/fuse that the test may use");
	opts.files = m->store;
	CHECK_OK(fuse_mount(m->dir, "stead:test", opts.read_only, &opts.dev, &m->err), m->err);
	opts.uid = geteuid();
	opts.gid = getegid();
	m->view = fuse_view_new(&opts);
	test_defer(unmount, m);
}

static const char *at(struct mounted *m, const char *path)
{
	return arena_printf(m->arena, "%s/%s", m->dir, path).ptr;
}

static void store_put(struct mounted *m, const char *path, struct str text)
{
	CHECK_OK(store_write(m->store, &m->ctx, (struct wpath){str_of(path)}, text, (struct store_cond){0}, NULL,
			     &m->err),
		 m->err);
}

static struct str host_read(struct arena *arena, const char *path)
{
	char *bytes = arena_alloc(arena, 256 * KIB);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, 256 * KIB);

	if (fd >= 0)
		close(fd);
	return n < 0 ? STR("(absent)") : str_n(bytes, (size_t)n);
}

static int host_write(const char *path, int flags, struct str text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644), r;

	if (fd < 0)
		return errno;
	r = write(fd, text.ptr, text.len) == (ssize_t)text.len ? 0 : errno;
	return close(fd) == 0 ? r : errno;
}

static struct str stored(struct mounted *m, const char *path)
{
	struct str bytes;

	return store_read(m->store, &m->ctx, (struct wpath){str_of(path)}, STORE_WHOLE, 64 * MIB, &bytes, NULL, &m->err)
		       ? STR("(absent)")
		       : bytes;
}

/* --- against a plain directory --- */

static uint64_t state;

static unsigned draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % below;
}

/* The names in a directory, sorted, and of files the size. */
static struct str listing(struct arena *arena, const char *dir)
{
	struct dirent **list;
	struct stat st;
	int n = scandir(dir, &list, NULL, alphasort);
	struct str text = STR("");

	for (int i = 0; i < n; i++) {
		const char *path = arena_printf(arena, "%s/%s", dir, list[i]->d_name).ptr;
		bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);

		text = arena_printf(arena, "%.*s%s%s%lld ", STR_ARG(text), list[i]->d_name, is_file ? ":" : "/",
				    is_file ? (long long)st.st_size : 0);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n < 0 ? STR("(none)") : text;
}

static int truncate_at(const char *path, off_t size)
{
	return truncate(path, size) == 0 ? 0 : errno;
}

static int write_at(const char *path, off_t offset, struct str text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return errno;
	r = pwrite(fd, text.ptr, text.len, offset) == (ssize_t)text.len ? 0 : errno;
	return close(fd) == 0 ? r : errno;
}

struct step {
	unsigned what, offset, length;
	const char *path, *to;
};

static struct str act(struct arena *arena, const char *dir, const struct step *s)
{
	const char *path = arena_printf(arena, "%s/%s", dir, s->path).ptr;
	const char *to = arena_printf(arena, "%s/%s", dir, s->to).ptr;
	char *bytes = memset(arena_alloc(arena, s->length + 1), 'a' + (int)(s->offset % 26), s->length);
	struct str text = str_n(bytes, s->length);
	int r = 0;

	switch (s->what) {
	case 0:
	case 1:
		r = host_write(path, O_CREAT | O_TRUNC, text);
		break;
	case 2:
		r = host_write(path, O_CREAT | O_APPEND, text);
		break;
	case 3:
		r = write_at(path, s->offset, text);
		break;
	case 4:
		r = truncate_at(path, s->offset);
		break;
	case 5:
	case 6:
		r = rename(path, to) == 0 ? 0 : errno;
		break;
	case 7:
		r = unlink(path) == 0 ? 0 : errno;
		break;
	case 8:
		r = mkdir(path, 0755) == 0 ? 0 : errno;
		break;
	case 9:
		r = rmdir(path) == 0 ? 0 : errno;
		break;
	case 10:
		return listing(arena, path);
	case 11:
		r = host_write(path, O_CREAT | O_EXCL, text);
		break;
	default:
		return host_read(arena, path);
	}
	return arena_printf(arena, "%s", r ? strerrorname_np(r) : "ok");
}

TEST(random_operations_have_the_results_that_a_plain_directory_gives)
{
	static struct mounted m;
	static const char *const names[] = {"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "d/e/b"};
	const char *plain = temp_dir_new();

	mount_store(&m, NULL, (struct fuse_opts){.known_ms = 60000});
	state = 88172645463325252u;
	for (int i = 0; i < 6000; i++) {
		struct arena *arena = arena_new();
		struct step s = {.what = draw(14), .offset = draw(3000), .length = draw(5000)};
		struct str mine, theirs;

		s.path = names[draw(COUNT(names))];
		s.to = names[draw(COUNT(names))];
		mine = act(arena, m.dir, &s);
		theirs = act(arena, plain, &s);
		if (!str_eq(mine, theirs))
			TEST_FAIL("step %d: what %u of %s to %s: %.*s, and in a plain directory %.*s", i, s.what,
				  s.path, s.to, STR_ARG(utf8_first(mine, 200)), STR_ARG(utf8_first(theirs, 200)));
		arena_destroy(arena);
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *path = arena_printf(m.arena, "%s/%s", plain, names[i]).ptr;

		CHECK_STR(listing(m.arena, at(&m, names[i])), listing(m.arena, path));
		CHECK_STR(stored(&m, names[i]), host_read(m.arena, path));
	}
}

TEST(a_shared_mapping_is_written)
{
	static struct mounted m;
	char *page;
	int fd;

	mount_store(&m, NULL, (struct fuse_opts){.known_ms = 60000});
	store_put(&m, "page", STR("hello world"));
	fd = open(at(&m, "page"), O_RDWR | O_CLOEXEC);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(page != MAP_FAILED);
	memcpy(page, "HELLO", 5);
	CHECK_INT(msync(page, 4096, MS_SYNC), 0);
	CHECK_INT(fsync(fd), 0);
	CHECK_STR(stored(&m, "page"), STR("HELLO world"));
	munmap(page, 4096);
	close(fd);
}

TEST(a_file_is_one_change_of_the_store_however_often_it_is_written)
{
	static struct mounted m;
	uint64_t before;
	FILE *f;

	mount_store(&m, store_fault_new(store_memory_new()), (struct fuse_opts){.known_ms = 60000});
	f = fopen(at(&m, "log"), "we");
	before = store_fault_count(m.store);
	for (int i = 0; i < 1000; i++) {
		fprintf(f, "line %d\n", i);
		fflush(f);
	}
	fclose(f);
	CHECK_INT(store_fault_count(m.store), before + 1);
	CHECK_INT(stored(&m, "log").len, 8890);
}

TEST(a_large_file_is_read_in_ranges_from_any_place)
{
	static struct mounted m;
	char *bytes = xmalloc(20 * MIB), got[100];
	int fd;

	for (size_t i = 0; i < 20 * MIB; i++)
		bytes[i] = (char)(i / 4096 % 251);
	mount_store(&m, NULL, (struct fuse_opts){.read_only = true, .is_fixed = true});
	store_put(&m, "large", str_n(bytes, 20 * MIB));
	fd = open(at(&m, "large"), O_RDONLY | O_CLOEXEC);
	CHECK(pread(fd, got, sizeof got, 15 * MIB + 4090) == sizeof got);
	CHECK(memcmp(got, bytes + 15 * MIB + 4090, sizeof got) == 0);
	for (size_t i = 0; i < 20 * MIB; i += 64 * KIB) {
		char part[64 * KIB];

		CHECK(pread(fd, part, sizeof part, (off_t)i) == sizeof part);
		CHECK(memcmp(part, bytes + i, sizeof part) == 0);
	}
	close(fd);
	free(bytes);
}

TEST(a_change_by_another_writer_shows_after_it_was_reported)
{
	static struct mounted m;

	mount_store(&m, NULL, (struct fuse_opts){.known_ms = 600000});
	store_put(&m, "file", STR("old"));
	CHECK_STR(host_read(m.arena, at(&m, "file")), STR("old"));
	CHECK_STR(host_read(m.arena, at(&m, "dir/new")), STR("(absent)"));
	CHECK_STR(listing(m.arena, m.dir), STR("./0 ../0 file:3 "));
	store_put(&m, "file", STR("newer"));
	store_put(&m, "dir/new", STR("made"));
	fuse_view_changed(m.view, (struct wpath){STR("file")});
	fuse_view_changed(m.view, (struct wpath){STR("dir/new")});
	CHECK_STR(host_read(m.arena, at(&m, "file")), STR("newer"));
	CHECK_STR(host_read(m.arena, at(&m, "dir/new")), STR("made"));
	CHECK_STR(listing(m.arena, m.dir), STR("./0 ../0 dir/0 file:5 "));
}

TEST(names_that_a_store_cannot_hold_are_refused_when_they_are_made)
{
	static struct mounted m;

	mount_store(&m, NULL, (struct fuse_opts){.known_ms = 1000});
	CHECK_INT(host_write(at(&m, "new\nline"), O_CREAT, STR("x")), EINVAL);
	CHECK_INT(host_write(at(&m, "\xff"), O_CREAT, STR("x")), EINVAL);
	CHECK_INT(symlink("a", at(&m, "link")) ? errno : 0, EPERM);
	CHECK_INT(mkfifo(at(&m, "fifo"), 0600) ? errno : 0, EPERM);
}

/* --- a store that does not answer --- */

static atomic_int waiting;

static int stuck_around(struct store *s, struct ctx *ctx, struct store_call *call, struct err *err)
{
	int r = 0;

	if (call->op != STORE_OP_READ)
		return store_forward(s->inner, ctx, call, err);
	atomic_fetch_add(&waiting, 1);
	while (r == 0) {
		r = ctx_check(ctx, err);
		sched_yield();
	}
	return r;
}

static void stuck_destroy(struct store *s)
{
	free(s);
}

static const struct store_ops stuck_ops = {.name = "stuck", .around = stuck_around, .destroy = stuck_destroy};

static struct store *stuck_new(void)
{
	struct store *s = xcalloc(1, sizeof *s);

	s->ops = &stuck_ops;
	s->inner = store_memory_new();
	return s;
}

static pid_t stuck_reader(struct mounted *m)
{
	pid_t pid;

	atomic_store(&waiting, 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(str_is(host_read(m->arena, at(m, "file")), "(absent)") ? 7 : 0);
	while (!atomic_load(&waiting))
		sched_yield();
	return pid;
}

TEST(a_reader_that_waits_for_a_dead_store_can_be_killed)
{
	static struct mounted m;
	int status;
	pid_t pid;

	mount_store(&m, stuck_new(), (struct fuse_opts){.known_ms = 1000});
	store_put(&m, "file", STR("bytes"));
	pid = stuck_reader(&m);
	kill(pid, SIGKILL);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
}

TEST(a_reader_that_waits_gets_an_error_at_the_deadline_and_at_the_end)
{
	static struct mounted m;
	int status;
	pid_t pid;

	mount_store(&m, stuck_new(), (struct fuse_opts){.known_ms = 1000, .call_ms = 300});
	store_put(&m, "file", STR("bytes"));
	pid = stuck_reader(&m);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 7);
	pid = stuck_reader(&m);
	fuse_view_end(m.view);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 7);
}

/* --- as the lower layer of a command's files --- */

static void box_shown(struct box *b, int files)
{
	if (access("/dev/fuse", R_OK | W_OK) != 0)
		SKIP("this needs a /dev/fuse that may be opened");
	box_init(b, SANDBOX_NAMESPACES);
	b->job.files.store = b->store = store_fault_new(store_memory_new());
	test_defer(store_destroy, b->store);
	for (int i = 0; i < files; i++)
		put(b, arena_printf(b->arena, "dir%d/file%d", i % 10, i).ptr, "text\n");
}

/* A user to whom the device is open, as it is on most machines: in a mount namespace of its own. */
static void become_user(const char *device)
{
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	      mknod(device, S_IFCHR | 0666, makedev(10, 229)) == 0 && chmod(device, 0666) == 0 &&
	      mount(device, "/dev/fuse", NULL, MS_BIND, NULL) == 0);
	CHECK(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	      setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static void as_user_with_fuse(void (*fact)(void))
{
	char device[300];
	int status;
	pid_t pid;

	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0)
		SKIP("this needs root, who opens /dev/fuse to a user");
	snprintf(device, sizeof device, "%s/fuse", temp_dir_new());
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		become_user(device);
		fact();
		while (test_scopes[test_depth].cleanups)
			test_run_cleanup(&test_scopes[test_depth].cleanups);
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

#define SHOWN(name)                                                                                                    \
	static void name##_here(void);                                                                                 \
	TEST(name)                                                                                                     \
	{                                                                                                              \
		name##_here();                                                                                         \
	}                                                                                                              \
	TEST(name##_for_a_user)                                                                                        \
	{                                                                                                              \
		as_user_with_fuse(name##_here);                                                                        \
	}                                                                                                              \
	static void name##_here(void)

SHOWN(a_command_sees_a_store_without_a_copy_and_its_changes_come_back)
{
	static struct box b;

	box_shown(&b, 300);
	run(&b, "cat dir*/* | wc -l; cat dir1/file11; echo more >>dir1/file11; rm dir2/file2; echo new >dir3/x; "
		"chmod +x dir4/file4; mkdir e; echo y >e/y");
	CHECK_STR(b.result.out.text, STR("300\ntext\n"));
	CHECK(b.result.is_saved);
	CHECK_STR(content(&b, "dir1/file11"), STR("text\nmore\n"));
	CHECK_STR(content(&b, "dir2/file2"), STR("(absent)"));
	CHECK_STR(content(&b, "dir3/x"), STR("new\n"));
	CHECK_STR(content(&b, "e/y"), STR("y\n"));
}

SHOWN(a_command_in_a_sandbox_made_in_advance_sees_a_store_without_a_copy)
{
	static struct box b;

	box_shown(&b, 300);
	CHECK_OK(sandbox_spare_open(&b.ctx, &b.job, &b.job.spare, &b.err), b.err);
	test_defer(sandbox_spare_close, b.job.spare);
	put(&b, "dir1/file11", "later\n");
	run(&b, "cat dir1/file11; echo more >>dir1/file11");
	CHECK(sandbox_spare_is_used(b.job.spare));
	CHECK_STR(b.result.out.text, STR("later\n"));
	CHECK_STR(content(&b, "dir1/file11"), STR("later\nmore\n"));
}

SHOWN(the_start_of_a_command_asks_as_much_of_many_files_as_of_few)
{
	uint64_t asked[2];

	for (int i = 0; i < 2; i++) {
		static struct box b;
		uint64_t before;

		box_shown(&b, i ? 20500 : 300); /* more than are ever copied */
		before = store_fault_count(b.store);
		run(&b, "cat dir1/file11");
		CHECK_STR(b.result.out.text, STR("text\n"));
		asked[i] = store_fault_count(b.store) - before;
	}
	CHECK_INT(asked[1], asked[0]);
}

static bool change_it(void *arg, bool is_stderr, struct str bytes)
{
	(void)is_stderr, (void)bytes;
	put(arg, "dir1/file1", "by another\n");
	put(arg, "dir2/made", "by another\n");
	return true;
}

SHOWN(what_another_writer_changed_while_the_command_ran_is_a_conflict)
{
	static struct box b;

	box_shown(&b, 300);
	b.job.output = change_it;
	b.job.output_arg = &b;
	run(&b, "echo mine >dir1/file1; echo mine >dir2/made; echo mine >dir3/file3; echo go");
	CHECK_STR(content(&b, "dir1/file1"), STR("by another\n"));
	CHECK_STR(content(&b, "dir2/made"), STR("by another\n"));
	CHECK_STR(content(&b, "dir3/file3"), STR("mine\n"));
	CHECK_INT(b.result.changes[0].outcome, SANDBOX_CONFLICT);
}

static bool stop_it(void *arg, bool is_stderr, struct str bytes)
{
	(void)is_stderr, (void)bytes;
	atomic_store(&((struct cancel *)arg)->requested, true);
	return true;
}

SHOWN(a_command_that_waits_for_a_dead_store_ends_at_its_limit)
{
	static struct box b;
	static struct cancel stop;

	box_shown(&b, 300);
	b.job.files.store = stuck_new();
	test_defer(store_destroy, b.job.files.store);
	b.store = b.job.files.store;
	for (int i = 0; i < 100; i++)
		put(&b, arena_printf(b.arena, "file%d", i).ptr, "text\n");
	atomic_store(&stop.requested, false);
	b.job.stop = &stop;
	b.job.output = stop_it;
	b.job.output_arg = &stop;
	run(&b, "echo started; cat file1");
	CHECK(b.result.stopped);
}
