/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command sees: a root directory made of nothing, with the programs of the machine in it, read-only, a few
 * devices, and its files as an overlay: the workspace below, a temporary layer with limits above it.
 *
 * Everything is put together in a temporary file system over /tmp of a mount namespace that nobody else has, and then
 * the part "root" of it becomes the root. The layers of the overlay stay outside that root, so what the command does to
 * names and attributes that mean something to an overlay means nothing. The host keeps no mount point and no file of
 * it: all of it ends with the last process.
 *
 * This runs in a clone of a program that may have threads: calls of the kernel, no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/sandbox_internal.h"

#define STAGE "/tmp"

static void must(const struct plan *plan, bool ok, enum step step)
{
	if (!ok)
		plan_fail(plan, step);
}

static bool make_dir(const char *path)
{
	return mkdir(path, 0755) == 0 || errno == EEXIST;
}

static bool make_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC | O_NOFOLLOW, 0644);
	size_t len = strlen(text);
	bool ok = fd >= 0 && write(fd, text, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool lock_mount(const char *path, uint64_t attributes, unsigned flags)
{
	struct mount_attr attr = {.attr_set = attributes};

	return syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &attr, sizeof attr) == 0;
}

static bool bind_tree(const char *from, const char *to)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
}

static bool bind_read_only(const char *from, const char *to)
{
	return bind_tree(from, to) &&
	       lock_mount(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, AT_RECURSIVE);
}

static bool write_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void map_ids(const struct plan *plan)
{
	must(plan,
	     plan->becomes ||
		     (write_proc("/proc/self/setgroups", "deny") && write_proc("/proc/self/uid_map", plan->uid_map) &&
		      write_proc("/proc/self/gid_map", plan->gid_map)),
	     STEP_IDS);
}

/* --- programs --- */

/* A directory of the host's root, as it is there: a link stays a link. */
static bool take_top(const char *name)
{
	char from[64], to[64], target[128];
	ssize_t n;

	snprintf(from, sizeof from, "/%s", name);
	snprintf(to, sizeof to, "root/%s", name);
	n = readlink(from, target, sizeof target - 1);
	if (n > 0) {
		target[n] = 0;
		return symlink(target, to) == 0;
	}
	return access(from, F_OK) != 0 || (make_dir(to) && bind_read_only(from, to));
}

/* The directory `path` of the view, with its parents. */
static bool make_path(char *ret, size_t size, const char *path)
{
	int len = snprintf(ret, size, "root%s", path);

	if (len <= 0 || len >= (int)size)
		return false;
	for (char *p = ret + 5; *p; p++)
		if (*p == '/') {
			*p = 0;
			if (!make_dir(ret))
				return false;
			*p = '/';
		}
	return make_dir(ret);
}

/* A further directory. It was opened before anything was mounted over it. */
static bool take_path(int fd, const char *path)
{
	char to[512], from[32];

	snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
	return make_path(to, sizeof to, path) && bind_read_only(from, to);
}

static void open_paths(const struct plan *plan, int *fds)
{
	for (size_t i = 0; plan->paths && plan->paths[i]; i++) {
		fds[i] = open(plan->paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		must(plan, fds[i] >= 0, STEP_PATHS);
	}
}

/* After /tmp and its like are there: a path may be below one of them. */
static void take_paths(const struct plan *plan, const int *fds)
{
	for (size_t i = 0; plan->paths && plan->paths[i]; i++) {
		must(plan, take_path(fds[i], plan->paths[i]), STEP_PATHS);
		close(fds[i]);
	}
}

const struct etc_file etc_made[] = {
	{"passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
		   "agent:x:1000:1000:agent:/home:/bin/sh\n"
		   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
	{"hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
	{"hostname", "sandbox\n"},
	{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	{NULL, NULL},
};
const char *const etc_kept[] = {"ssl",        "ca-certificates", "alternatives", "ld.so.cache", "localtime",
				"mime.types", "fonts",           "python3",      "magic",       NULL};

/* Those of the command: where variables name them, and where most programs look. */
static bool take_certificates(const struct plan *plan)
{
	static const char own[] = "root/etc/stead-ca.crt", usual[] = "root/etc/ssl/certs/ca-certificates.crt";

	return make_file(own, plan->net_bundle) && (access(usual, F_OK) != 0 || bind_read_only(own, usual));
}

static bool take_etc(const struct plan *plan)
{
	char from[64], to[64];
	struct stat st;

	if (!make_dir("root/etc"))
		return false;
	for (const struct etc_file *f = etc_made; f->name; f++) {
		snprintf(to, sizeof to, "root/etc/%s", f->name);
		if (!make_file(to, f->text))
			return false;
	}
	if (!make_file("root/etc/resolv.conf", plan->net >= 0 ? "nameserver 127.0.0.53\n" : ""))
		return false;
	for (size_t i = 0; etc_kept[i]; i++) {
		snprintf(from, sizeof from, "/etc/%s", etc_kept[i]);
		snprintf(to, sizeof to, "root/etc/%s", etc_kept[i]);
		if (stat(from, &st) != 0)
			continue;
		if (!(S_ISDIR(st.st_mode) ? make_dir(to) : make_file(to, "")) || !bind_read_only(from, to))
			return false;
	}
	return !plan->net_bundle || take_certificates(plan);
}

static void take_programs(const struct plan *plan)
{
	static const char *const tops[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};

	for (size_t i = 0; i < COUNT(tops); i++)
		must(plan, take_top(tops[i]), STEP_PROGRAMS);
	must(plan, take_etc(plan), STEP_PROGRAMS);
}

/* --- devices, /proc, temporary directories --- */

static bool temporary(const char *path, const char *opts)
{
	return make_dir(path) && mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, opts) == 0;
}

static void make_devices(const struct plan *plan)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "fd"},
					       {"/proc/self/fd/0", "stdin"},
					       {"/proc/self/fd/1", "stdout"},
					       {"/proc/self/fd/2", "stderr"}};
	char from[32], to[64];

	must(plan, make_dir("root/dev"), STEP_DEVICES);
	for (size_t i = 0; i < COUNT(nodes) - !plan->tty; i++) {
		snprintf(from, sizeof from, "/dev/%s", nodes[i]);
		snprintf(to, sizeof to, "root/dev/%s", nodes[i]);
		must(plan, make_file(to, "") && bind_tree(from, to), STEP_DEVICES);
	}
	/* so that a program that asks for the name of its terminal finds one */
	if (plan->tty)
		must(plan, make_file("root/dev/console", "") && bind_tree(plan->terminal, "root/dev/console"),
		     STEP_DEVICES);
	for (size_t i = 0; i < COUNT(links); i++) {
		snprintf(to, sizeof to, "root/dev/%s", links[i][1]);
		must(plan, symlink(links[i][0], to) == 0, STEP_DEVICES);
	}
	must(plan,
	     temporary("root/dev/shm", plan->tmp_opts) && temporary("root/tmp", plan->tmp_opts) &&
		     (plan->keeps || temporary("root/home", plan->tmp_opts)) && make_dir("root/run") &&
		     make_dir("root/var") && symlink("../tmp", "root/var/tmp") == 0,
	     STEP_DEVICES);
}

/* Refused where the outer /proc is partly covered, as in containers: then the directory stays empty. All of it is
   read-only: settings of the kernel, and the memory of processes of the same user. */
static void make_proc(const struct plan *plan)
{
	static const char *const covered[] = {"root/proc/kcore", "root/proc/keys", "root/proc/key-users",
					      "root/proc/timer_list", "root/proc/sched_debug"};

	must(plan, make_dir("root/proc"), STEP_DEVICES);
	if (mount("proc", "root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2") != 0)
		return;
	/* no namespaces inside, whatever the filter lets through */
	(void)write_proc("root/proc/sys/user/max_user_namespaces", "0");
	for (size_t i = 0; i < COUNT(covered); i++)
		must(plan, bind_tree("/dev/null", covered[i]) || errno == ENOENT, STEP_DEVICES);
	must(plan, lock_mount("root/proc", MOUNT_ATTR_RDONLY, 0), STEP_DEVICES);
}

/* --- the workspace --- */

/* The directory that the parent looked at, and no other that has its name now. */
static int open_source(const struct plan *plan)
{
	int fd;
	struct stat st;

	if (!plan->dir || plan->tree >= 0)
		return -1;
	fd = open(plan->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	must(plan, fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == plan->dev && st.st_ino == plan->ino, STEP_FILES);
	return fd;
}

/* A path is marked as deleted in the layer "mask". */
static void mask(const struct plan *plan, const char *hidden)
{
	char path[2 * PATH_LEN_MAX];
	int len = snprintf(path, sizeof path, "mask/%s", hidden);

	must(plan, len > 0 && len < (int)sizeof path, STEP_FILES);
	for (char *p = path + 5; *p; p++)
		if (*p == '/') {
			*p = 0;
			must(plan, make_dir(path), STEP_FILES);
			*p = '/';
		}
	must(plan, mknod(path, S_IFCHR | 0600, makedev(0, 0)) == 0, STEP_FILES);
}

/* Until the parent says go. What must not be seen comes before that: it is looked for while the view is made. */
static void wait_go(const struct plan *plan)
{
	char packet[SAY_MAX + 1];

	for (;;) {
		size_t n = plan_hear(plan, packet, SAY_MAX);

		if (packet[0] == SAY_GO)
			return;
		packet[n] = 0;
		for (size_t i = 1; i < n; i += strlen(packet + i) + 1)
			mask(plan, packet + i);
	}
}

/* A user's mount belongs to the user namespace in which its device was opened and it was made, so that happens here.
   The parent answers from then on; it alone has the device, and when it closes that, whoever waits gets an error. */
static bool show_store(const struct plan *plan, int device)
{
	char opts[96];

	if (device < 0)
		return false;
	snprintf(opts, sizeof opts, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,default_permissions", device,
		 SANDBOX_UID, SANDBOX_UID);
	if (mount("stead", "lower", "fuse", MS_RDONLY | MS_NOSUID | MS_NODEV, opts) != 0) {
		close(device);
		return false;
	}
	plan_send(plan, &(struct note){.kind = NOTE_VIEW}, &device, 1);
	close(device);
	return true;
}

/* False: the parent is to fill it. */
static bool make_lower(const struct plan *plan, int source, int device)
{
	char link[32];

	must(plan, make_dir("lower") && make_dir("mask"), STEP_FILES);
	if (show_store(plan, device))
		return true;
	if (plan->tree >= 0) {
		must(plan, syscall(SYS_move_mount, plan->tree, "", AT_FDCWD, "lower", MOVE_MOUNT_F_EMPTY_PATH) == 0,
		     STEP_FILES);
	} else if (source >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", source);
		must(plan, bind_tree(link, "lower"), STEP_FILES);
	} else {
		must(plan, mount("tmpfs", "lower", "tmpfs", MS_NOSUID | MS_NODEV, plan->upper_opts) == 0, STEP_FILES);
	}
	return !plan->fill && !plan->shows;
}

/* The upper layer, or the whole of the files where there is no overlay. */
static void make_upper(const struct plan *plan)
{
	must(plan,
	     make_dir("up") && mount("tmpfs", "up", "tmpfs", MS_NOSUID | MS_NODEV, plan->upper_opts) == 0 &&
		     make_dir("up/data") && make_dir("up/work"),
	     STEP_FILES);
}

/* What is kept between commands: a directory of restored files, opened before anything is mounted over it. */
static int open_kept(const struct plan *plan)
{
	int fd = !plan->kept_dir || plan->kept_tree >= 0
			 ? -1
			 : open(plan->kept_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	must(plan, fd >= 0 || !plan->kept_dir || plan->kept_tree >= 0, STEP_KEPT);
	return fd;
}

/* The home over what was kept of it. The upper layer of the home is given to the parent; -1: nothing is kept. */
static int make_home(const struct plan *plan, int kept)
{
	char link[32];
	int upper;

	if (!plan->keeps)
		return -1;
	must(plan, make_dir("kept"), STEP_KEPT);
	if (plan->kept_tree >= 0) {
		must(plan, syscall(SYS_move_mount, plan->kept_tree, "", AT_FDCWD, "kept", MOVE_MOUNT_F_EMPTY_PATH) == 0,
		     STEP_KEPT);
	} else if (kept >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", kept);
		must(plan, bind_tree(link, "kept"), STEP_KEPT);
		close(kept);
	} else {
		must(plan, make_dir("kept/home") && make_dir("kept/files"), STEP_KEPT);
	}
	must(plan,
	     temporary("uphome", plan->upper_opts) && make_dir("uphome/data") && make_dir("uphome/work") &&
		     make_dir("root/home") &&
		     mount("overlay", "root/home", "overlay", MS_NOSUID | MS_NODEV,
			   "lowerdir=kept/home,upperdir=uphome/data,workdir=uphome/work,userxattr") == 0,
	     STEP_KEPT);
	upper = open("uphome/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(plan, upper >= 0, STEP_KEPT);
	return upper;
}

static void place_files(const struct plan *plan, const char *below, bool fill, int home)
{
	char at[64];
	int len = snprintf(at, sizeof at, "%s/%s", below, plan->at);
	int lower = fill ? open(plan->use_overlay ? "lower" : "up/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int upper = open("up/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(plan, len < (int)sizeof at && make_dir(at) && upper >= 0, STEP_FILES);
	plan_send_files(plan, lower, upper, home);
	wait_go(plan);
	if (lower >= 0)
		close(lower);
	if (home >= 0)
		close(home);
	close(upper);
	if (plan->use_overlay)
		must(plan,
		     mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV,
			   plan->keeps ? "lowerdir=mask:kept/files:lower,upperdir=up/data,workdir=up/work,userxattr"
				       : "lowerdir=mask:lower,upperdir=up/data,workdir=up/work,userxattr") == 0,
		     STEP_OVERLAY);
	else
		must(plan, bind_tree("up/data", at), STEP_FILES);
}

/* --- the network --- */

/*
 * A namespace of the network takes the kernel as long as everything else together. So another process makes it while
 * this one mounts, and this one enters it at the end. They share their memory, so that no page has to be copied, and
 * their descriptors. The helper has a stack of its own and calls the kernel through syscall() alone, which has been
 * called before and touches errno only after a failure.
 */
static int network_fd; /* written by the helper; -1: it failed */

/* Brings the loopback device up; a program that needs it will say that it is not. In a worker, a connection that a call
   closed is not there for the next one. */
static void set_up_network(const struct plan *plan)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	long fd = syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
		syscall(SYS_close, fd);
	}
	fd = plan->is_worker ? syscall(SYS_openat, plan_proc(), "sys/net/ipv4/tcp_max_tw_buckets", O_WRONLY | O_CLOEXEC)
			     : -1;
	if (fd >= 0) {
		syscall(SYS_write, fd, "0", 1);
		syscall(SYS_close, fd);
	}
}

static int make_network(void *arg)
{
	if (syscall(SYS_unshare, CLONE_NEWNET) == 0) {
		set_up_network(arg);
		network_fd = (int)syscall(SYS_openat, plan_proc(), "thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	}
	syscall(SYS_exit, 0);
	return 0;
}

static pid_t network_helper;

void view_begin_network(const struct plan *plan)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* there, end_network() does all of it */
	static _Alignas(16) char stack[16 * 1024];

	network_fd = -1;
	network_helper = clone(make_network, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD,
			       (void *)(uintptr_t)plan);
	must(plan, network_helper > 0, STEP_NETWORK);
#else
	(void)plan;
#endif
}

static void end_network(const struct plan *plan)
{
	if (network_helper > 0) {
		while (waitpid(network_helper, NULL, __WALL) < 0 && errno == EINTR)
			;
		must(plan, network_fd >= 0 && setns(network_fd, CLONE_NEWNET) == 0, STEP_NETWORK);
		close(network_fd);
	} else {
		must(plan, unshare(CLONE_NEWNET) == 0, STEP_NETWORK);
		set_up_network(plan);
	}
	net_open(plan);
}

/* --- the rest --- */

static void enter(const struct plan *plan)
{
	must(plan,
	     chdir("root") == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
		     chdir("/") == 0 && lock_mount("/", MOUNT_ATTR_RDONLY, 0),
	     STEP_PIVOT);
}

/* --- a worker --- */

/* Further directories of the host below one that each call has for itself; -1: it is elsewhere. */
static int covered_paths[SANDBOX_PATHS_MAX];
static const char *const call_dirs[] = {"root/tmp", "root/dev/shm", "root/home"};

static void open_covered(const struct plan *plan)
{
	for (size_t i = 0; plan->paths && plan->paths[i]; i++) {
		char path[512];

		snprintf(path, sizeof path, "root%s", plan->paths[i]);
		covered_paths[i] = -1;
		for (size_t d = 0; d < COUNT(call_dirs); d++) {
			size_t len = strlen(call_dirs[d]);

			if (strncmp(path, call_dirs[d], len) == 0 && (!path[len] || path[len] == '/'))
				covered_paths[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		}
	}
}

/* Temporary directories of a call. They cover those of the program, so nothing that a call leaves there, and nothing
   that it does to the directories themselves, is found by the next one. */
static void cover_dirs(const struct plan *plan)
{
	size_t count = plan->keeps ? COUNT(call_dirs) - 1 : COUNT(call_dirs); /* a kept home is covered below */
	char to[512];

	for (size_t d = 0; d < count; d++)
		must(plan, temporary(call_dirs[d], plan->tmp_opts), STEP_DEVICES);
	if (plan->keeps)
		must(plan,
		     temporary("/call/home", plan->upper_opts) && make_dir("/call/home/data") &&
			     make_dir("/call/home/work") &&
			     mount("overlay", "root/home", "overlay", MS_NOSUID | MS_NODEV,
				   "lowerdir=kept/home,upperdir=call/home/data,workdir=call/home/work,userxattr") == 0,
		     STEP_KEPT);
	for (size_t i = 0; plan->paths && plan->paths[i]; i++) {
		int tree;

		if (covered_paths[i] < 0)
			continue;
		tree = (int)syscall(SYS_open_tree, covered_paths[i], "",
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
		must(plan,
		     tree >= 0 && make_path(to, sizeof to, plan->paths[i]) &&
			     syscall(SYS_move_mount, tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) == 0,
		     STEP_PATHS);
		close(tree);
	}
}

/*
 * The guardian stays outside the root: in the stage, without the files of the machine. What it mounts below "root"
 * appears in the namespace of the program. Landlock knows directories, not names, and looks for a rule on the way up
 * from the root of a mount to the directory above it: so for files that come and go the rule is that of "/"
 * (confine.c), and everything else that the program could write to is mounted read-only, /proc too.
 */
static void build_worker(const struct plan *plan, int source, int kept)
{
	char link[64];
	int home;

	if (source >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", source);
		must(plan, make_dir("source") && bind_tree(link, "source"), STEP_FILES);
		close(source);
	}
	home = make_home(plan, kept);
	if (home >= 0)
		close(home);
	plan_send_files(plan, -1, -1, -1);
	snprintf(link, sizeof link, "root/%s", plan->at);
	must(plan, make_dir("call") && make_dir(link), STEP_FILES);
	must(plan,
	     lock_mount("root", MOUNT_ATTR_RDONLY, 0) && mount(NULL, "root", NULL, MS_REC | MS_SHARED, NULL) == 0 &&
		     syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0,
	     STEP_PIVOT);
	open_covered(plan);
}

void view_enter(const struct plan *plan)
{
	must(plan, unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0, STEP_NAMESPACES);
	enter(plan);
}

void view_place(const struct plan *plan, bool fill, int tree)
{
	struct plan call = *plan;

	call.fill = fill;
	call.tree = tree;
	call.keeps = false;
	must(plan, mount("tmpfs", "/call", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64m") == 0, STEP_FILES);
	cover_dirs(plan);
	must(plan, chdir("/call") == 0, STEP_FILES);
	if (plan->has_files && (fill || tree >= 0))
		(void)make_lower(&call, -1, -1);
	else if (plan->has_files)
		must(plan, make_dir("lower") && make_dir("mask") && bind_tree("/source", "lower"), STEP_FILES);
	if (tree >= 0)
		close(tree);
	make_upper(&call);
	place_files(&call, "../root", fill, -1);
	must(plan, chdir("/") == 0, STEP_FILES);
}

bool view_clear(const struct plan *plan)
{
	char at[64];
	bool ok;

	snprintf(at, sizeof at, "root/%s", plan->at);
	ok = umount2(at, MNT_DETACH) == 0;
	for (size_t d = 0; d < COUNT(call_dirs); d++)
		ok = umount2(call_dirs[d], MNT_DETACH) == 0 && ok;
	return umount2("/call", MNT_DETACH) == 0 && ok;
}

void view_build(struct plan *plan)
{
	int source, kept, device, paths[SANDBOX_PATHS_MAX];
	bool fill;

	map_ids(plan);
	must(plan,
	     mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ||
		     mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0,
	     STEP_ROOT);
	source = open_source(plan);
	kept = open_kept(plan);
	open_paths(plan, paths);
	must(plan,
	     mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64m") == 0 && chdir(STAGE) == 0 &&
		     make_dir("root") && mount("tmpfs", "root", "tmpfs", MS_NOSUID | MS_NODEV, plan->root_opts) == 0,
	     STEP_ROOT);
	take_programs(plan);
	make_devices(plan);
	make_proc(plan);
	take_paths(plan, paths);
	if (plan->is_worker) {
		end_network(plan);
		build_worker(plan, source, kept);
		return;
	}
	if (plan->call) {
		end_network(plan);
		spare_wait(plan);
	}
	fill = plan->fill;
	device = plan->shows ? open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
	if (plan->use_overlay)
		fill = !make_lower(plan, source, device);
	make_upper(plan);
	if (plan->net >= 0) /* the parent serves it before the command may begin */
		end_network(plan);
	place_files(plan, "root", fill, make_home(plan, kept));
	enter(plan);
	if (plan->net < 0 && !plan->call) /* as late as possible, because it takes the longest */
		end_network(plan);
}
