/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries to get out of a sandbox in every way it knows, from inside. Prints "open NAME" for each attempt that succeeds
 * and "tried N" at the end. What the host has to be attacked with comes as arguments:
 *   attacker SECRET_FILE OUTER_PID TCP_PORT ABSTRACT_NAME SOCKET_PATH SHM_ID [mild|init|engine]
 * "mild" leaves out what would do harm if it succeeded: it never runs unconfined with more than that. "init": process 1
 * is a shell of the tier, which may be seen; "engine": its streams are not a terminal either, and calls for one need
 * not be refused.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *secret, *abstract_name, *socket_path;
static pid_t outer;
static int port, shm_id;
static bool has_init, has_engine;

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool reads(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool got = fd >= 0 && read(fd, &byte, 1) == 1;

	if (fd >= 0)
		close(fd);
	return got;
}

static const char *of_outer(const char *rest)
{
	static char path[256];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)outer, rest);
	return path;
}

/* In a child, since the answer may be its death. */
static bool survives(bool (*attack)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(attack() ? 7 : 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

/* --- files --- */
static bool read_a_host_file(void)
{
	return reads(secret);
}
static bool root_of_an_outer_process(void)
{
	return opens(of_outer("root/etc/shadow"), O_RDONLY) || opens(of_outer("root"), O_RDONLY);
}
/* Where process 1 is a shell that was started for the command: it may be seen, and must show nothing of the host. */
static bool is_in(const char *path, const char *text, size_t len)
{
	static char bytes[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);

	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(bytes, (size_t)n, text, len);
}
static bool shell_shows_the_host(void)
{
	return is_in("/proc/1/cmdline", "stead-sandbox", 13) || is_in("/proc/1/environ", "STEAD_", 6) ||
	       is_in("/proc/1/mountinfo", secret, strlen(secret)) || reads("/proc/1/mem");
}
static bool root_of_process_1(void)
{
	if (has_init) {
		char path[512];

		snprintf(path, sizeof path, "/proc/1/root%s", secret);
		return reads(path);
	}
	return opens("/proc/1/root/etc/shadow", O_RDONLY) || opens("/proc/1/root/tmp/..", O_RDONLY);
}
static bool environment_of_others(void)
{
	return reads(of_outer("environ")) || (has_init ? shell_shows_the_host() : reads("/proc/1/environ"));
}
static bool command_line_of_others(void)
{
	return reads(of_outer("cmdline")) || (has_init ? shell_shows_the_host() : reads("/proc/1/cmdline"));
}
static bool inherited_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return true;
	return false;
}
static bool parent_of_a_standard_descriptor(void)
{
	return openat(0, "..", O_RDONLY) >= 0 || openat(1, "..", O_RDONLY) >= 0 ||
	       opens("/proc/self/fd/0/..", O_RDONLY);
}
static bool write_its_own_program(void)
{
	return opens("/proc/1/exe", O_WRONLY) || opens("/bin/sh", O_WRONLY);
}
static bool create_in_usr(void)
{
	return opens("/usr/bin/stead-attack", O_WRONLY | O_CREAT) ||
	       opens("/usr/local/stead-attack", O_WRONLY | O_CREAT);
}
static bool change_etc(void)
{
	return opens("/etc/passwd", O_WRONLY | O_APPEND) || opens("/etc/stead-attack", O_WRONLY | O_CREAT) ||
	       opens("/etc/ssl/stead-attack", O_WRONLY | O_CREAT);
}
static bool create_in_the_root(void)
{
	return opens("/stead-attack", O_WRONLY | O_CREAT);
}
static bool make_a_device(void)
{
	return mknod("device", S_IFBLK | 0600, makedev(8, 0)) == 0 || mknod("kmem", S_IFCHR | 0600, makedev(1, 1)) == 0;
}
static bool open_a_device(void)
{
	return opens("/dev/vda", O_RDONLY) || opens("/dev/sda", O_RDONLY) || opens("/dev/kvm", O_RDWR) ||
	       opens("/dev/fuse", O_RDWR) || opens("/dev/mem", O_RDONLY) ||
	       (!has_engine && opens("/dev/ptmx", O_RDWR)); /* an engine's is the container's own */
}
static bool kernel_memory_and_keys(void)
{
	return reads("/proc/kcore") || reads("/proc/keys");
}
static bool sysrq(void)
{
	return opens("/proc/sysrq-trigger", O_WRONLY);
}
static bool core_pattern(void)
{
	return opens("/proc/sys/kernel/core_pattern", O_WRONLY);
}
static bool settings_of_namespaces(void)
{
	return opens("/proc/sys/user/max_user_namespaces", O_WRONLY);
}
static bool sys_of_the_host(void)
{
	return opens("/sys/kernel/mm", O_RDONLY) || opens("/sys/fs/cgroup/memory", O_RDONLY) ||
	       opens("/sys/fs/cgroup/cgroup.procs", O_RDONLY) || opens("/sys/class/net", O_RDONLY);
}
static bool open_by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char rest[64];
	} h = {.head = {.handle_bytes = 64}};
	int mount_id;

	return name_to_handle_at(AT_FDCWD, "/", &h.head, &mount_id, 0) == 0 ||
	       open_by_handle_at(1, &h.head, O_RDONLY) >= 0;
}
static bool change_the_root(void)
{
	return chroot("/tmp") == 0 || syscall(SYS_pivot_root, ".", ".") == 0;
}
static bool mount_something(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || mount("/", "/tmp", NULL, MS_BIND, NULL) == 0 ||
	       umount2("/proc", MNT_DETACH) == 0 || mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL) == 0;
}
static bool new_mount_calls(void)
{
	return syscall(SYS_fsopen, "tmpfs", 0) >= 0 || syscall(SYS_open_tree, AT_FDCWD, "/", 1) >= 0 ||
	       syscall(SYS_fspick, AT_FDCWD, "/", 0) >= 0;
}
static bool link_to_what_is_outside(void)
{
	return link("/usr/bin/true", "stolen") == 0 || link("/etc/ssl/openssl.cnf", "stolen") == 0;
}

static bool write_the_running_program(void)
{
	return opens("/proc/self/exe", O_WRONLY) || opens("/proc/self/exe", O_RDWR | O_TRUNC);
}
static bool change_mounts_by_new_calls(void)
{
	struct {
		uint64_t set, clear, propagation, userns;
	} attr = {.clear = 1 /* read-only */};

	return syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &attr, sizeof attr) == 0 ||
	       syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/usr", 0) == 0 ||
	       syscall(467 /* open_tree_attr */, AT_FDCWD, "/", 1, &attr, sizeof attr) >= 0;
}
static bool directory_of_a_descriptor(void)
{
	char path[64];

	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d/..", fd);
		if (chdir(path) == 0)
			return true;
	}
	return false;
}
static bool link_to_a_host_file(void)
{
	bool seen = symlink(secret, "to-the-host") == 0 && reads("to-the-host");

	unlink("to-the-host");
	return seen;
}
static bool rename_over_what_is_outside(void)
{
	return rename("/usr/bin/true", "/usr/bin/stolen") == 0 || unlink("/usr/bin/true") == 0 ||
	       truncate("/usr/bin/true", 0) == 0 || chmod("/usr/bin/true", 04777) == 0 || truncate("/bin/sh", 0) == 0 ||
	       chmod("/bin/sh", 04777) == 0;
}
static bool other_kernel_tables(void)
{
	return reads("/proc/key-users") || reads("/proc/timer_list") || opens("/proc/sys/vm/drop_caches", O_WRONLY) ||
	       opens("/proc/irq", O_WRONLY | O_DIRECTORY | O_TMPFILE);
}

/* --- processes and the kernel --- */
static bool signal_a_process_outside(void)
{
	return kill(outer, 0) == 0;
}
static bool trace_a_process_outside(void)
{
	return ptrace(PTRACE_ATTACH, outer, NULL, NULL) == 0;
}
static bool read_memory_outside(void)
{
	char here[8];
	struct iovec l = {here, 8}, r = {(void *)0x400000, 8};

	return process_vm_readv(outer, &l, 1, &r, 1, 0) >= 0;
}
static bool take_a_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, outer, 0);

	return fd >= 0 && syscall(SYS_pidfd_getfd, fd, 0, 0) >= 0;
}
static bool list_processes_outside(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int seen = 0;

	while (dir && (e = readdir(dir)))
		seen += strtol(e->d_name, NULL, 10) == outer || (!has_init && strcmp(e->d_name, "1") == 0);
	return seen > 0;
}
static bool new_user_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}
static bool new_network_namespace(void)
{
	return unshare(CLONE_NEWNET) == 0;
}
static bool clone_with_namespace(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid > 0;
}
static bool clone3_with_namespace(void)
{
	struct {
		uint64_t flags, a[10];
	} args = {.flags = CLONE_NEWUSER};
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid == 0)
		_exit(0);
	return pid > 0;
}
static bool enter_a_namespace(void)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY);

	return setns(fd < 0 ? 0 : fd, 0) == 0;
}
static bool enter_by_process(void)
{
	int fd = (int)syscall(SYS_pidfd_open, outer, 0);

	return fd >= 0 && setns(fd, CLONE_NEWNS | CLONE_NEWNET) == 0;
}
static bool semaphores_and_queues_of_the_host(void)
{
	char name[80];

	snprintf(name, sizeof name, "/%s", abstract_name);
	return semget((key_t)outer, 1, 0) >= 0 || mq_open(name, O_RDONLY) != (mqd_t)-1;
}
static bool local_descriptor_table(void)
{
#if defined(__x86_64__)
	char room[64];

	return syscall(SYS_modify_ldt, 0, room, sizeof room) >= 0;
#else
	return false;
#endif
}
static bool any_call_newer_than_the_filter(void)
{
	for (long nr = 451; nr < 700; nr++)
		if (syscall(nr, -1, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
			return true;
	return false;
}
static bool lower_its_priority_to_be_killed(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "-1000", 5) == 5;

	if (fd >= 0)
		close(fd);
	return ok;
}
static bool raise_a_limit(void)
{
	struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};

	return setrlimit(RLIMIT_NPROC, &more) == 0 || setrlimit(RLIMIT_NOFILE, &more) == 0 ||
	       setrlimit(RLIMIT_FSIZE, &more) == 0;
}
static bool more_than_1024_files(void)
{
	static int fds[1100];
	int count = 0;
	bool more;

	while (count < 1100 && (fds[count] = dup(0)) >= 0)
		count++;
	more = count > 1024;
	while (count > 0)
		close(fds[--count]);
	return more;
}
static bool become_root(void)
{
	return setuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0;
}
static bool keyring(void)
{
	return syscall(SYS_keyctl, 0, -3, 1, 0, 0) >= 0 || syscall(SYS_add_key, "user", "x", "y", 1, -3) >= 0 ||
	       syscall(SYS_request_key, "user", "x", NULL, 0) >= 0;
}
static bool bpf_program(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr) >= 0;
}
static bool user_faults(void)
{
	return syscall(SYS_userfaultfd, 1 /* user mode only */) >= 0;
}
static bool performance_events(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .exclude_kernel = 1};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) >= 0;
}
static bool io_uring(void)
{
	struct io_uring_params p = {0};

	return syscall(SYS_io_uring_setup, 4, &p) >= 0;
}
static bool change_personality(void)
{
	return personality(ADDR_NO_RANDOMIZE) >= 0;
}
static bool kernel_log(void)
{
	char text[16];

	return syscall(SYS_syslog, 3, text, sizeof text) >= 0;
}
static bool change_the_host_name(void)
{
	return sethostname("attacked", 8) == 0;
}
static bool shared_memory_of_the_host(void)
{
	return shmat(shm_id, NULL, SHM_RDONLY) != (void *)-1;
}
static bool type_into_a_terminal(void)
{
	return ioctl(0, TIOCSTI, "x") == 0 || (!has_engine && errno != EPERM);
}
static bool type_with_a_high_bit(void)
{
	return syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, "x") == 0 || (!has_engine && errno != EPERM);
}
static bool terminal_of_the_console(void)
{
	return ioctl(0, 0x541C, "\2") == 0 || (!has_engine && errno != EPERM);
}
static bool x32_number_in_child(void)
{
	return syscall(0x40000000 | SYS_getpid) >= -1;
}
static bool x32_number(void)
{
	return survives(x32_number_in_child);
}
static bool old_call_in_child(void)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory");
	return true;
#else
	return false;
#endif
}
static bool call_of_another_architecture(void)
{
	return survives(old_call_in_child);
}
static bool call_newer_than_the_filter(void)
{
	return syscall(457, NULL, NULL, 0, 0) >= 0 || errno != ENOSYS;
}
static bool splice_memory(void)
{
	struct iovec v = {(void *)"x", 1};
	int ends[2];

	return pipe(ends) == 0 && vmsplice(ends[1], &v, 1, 0) >= 0;
}
/* The bounding set does not count: without new privileges nothing can be taken from it. */
static bool capabilities_left(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	bool left = !f, filtered = false, fixed = false;

	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, "Cap", 3) == 0 && strncmp(line, "CapBnd", 6) != 0)
			left |= strtoull(strchr(line, '\t'), NULL, 16) != 0;
		filtered |= strcmp(line, "Seccomp:\t2\n") == 0;
		fixed |= strcmp(line, "NoNewPrivs:\t1\n") == 0;
	}
	if (f)
		fclose(f);
	return left || !filtered || !fixed;
}

/* --- network --- */
static bool connects(int family, const struct sockaddr *to, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM, 0);
	bool ok = fd >= 0 && connect(fd, to, len) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}
static bool loopback_of_the_host(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};

	return connects(AF_INET, (struct sockaddr *)&to, sizeof to);
}
static bool loopback_of_the_host_as_mapped_address(void)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	return inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr) == 1 &&
	       connects(AF_INET6, (struct sockaddr *)&to, sizeof to);
}
static bool sockets_of_services(void)
{
	static const char *const paths[] = {"/run/docker.sock",        "/var/run/docker.sock",
					    "/run/podman/podman.sock", "/run/dbus/system_bus_socket",
					    "/run/systemd/private",    "/tmp/.X11-unix/X0"};

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		struct sockaddr_un to = {.sun_family = AF_UNIX};

		snprintf(to.sun_path, sizeof to.sun_path, "%s", paths[i]);
		if (connects(AF_UNIX, (struct sockaddr *)&to, sizeof to))
			return true;
	}
	return false;
}
static bool address_of_the_metadata_service(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr = {htonl(0xa9fea9fe)}};

	return connects(AF_INET, (struct sockaddr *)&to, sizeof to);
}
static bool datagram_outside(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(0x08080808)}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1;
}
static bool strange_socket_families(void)
{
	for (int family = 0; family < 64; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
			for (int type = 1; type <= 5; type++)
				if (socket(family, type, 0) >= 0)
					return true;
	return false;
}
static bool raw_sockets(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0 || socket(AF_INET6, SOCK_RAW, IPPROTO_RAW) >= 0 ||
	       socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) >= 0;
}
static bool abstract_socket_of_the_host(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = strlen(abstract_name);

	memcpy(to.sun_path + 1, abstract_name, len);
	return connects(AF_UNIX, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
}
static bool named_socket_of_the_host(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	snprintf(to.sun_path, sizeof to.sun_path, "%s", socket_path);
	return connects(AF_UNIX, (struct sockaddr *)&to, sizeof to);
}

/* A mild one may succeed on the machine that runs the test and does no harm. */
#define ATTACK(name)                                                                                                   \
	{                                                                                                              \
#name, name, false                                                                                     \
	}
#define ATTACK_MILD(name)                                                                                              \
	{                                                                                                              \
#name, name, true                                                                                      \
	}
/* clang-format off */
static const struct {
	const char *name;
	bool (*succeeds)(void);
	bool is_mild;
} attacks[] = {
	ATTACK(inherited_descriptors),
	ATTACK_MILD(read_a_host_file),
	ATTACK(root_of_an_outer_process),
	ATTACK(root_of_process_1),
	ATTACK(environment_of_others),
	ATTACK(command_line_of_others),
	ATTACK(parent_of_a_standard_descriptor),
	ATTACK(write_its_own_program),
	ATTACK(create_in_usr),
	ATTACK(change_etc),
	ATTACK(create_in_the_root),
	ATTACK(make_a_device),
	ATTACK(open_a_device),
	ATTACK(kernel_memory_and_keys),
	ATTACK(sysrq),
	ATTACK(core_pattern),
	ATTACK(settings_of_namespaces),
	ATTACK(sys_of_the_host),
	ATTACK(open_by_handle),
	ATTACK(change_the_root),
	ATTACK(mount_something),
	ATTACK(new_mount_calls),
	ATTACK(link_to_what_is_outside),
	ATTACK(write_the_running_program),
	ATTACK(change_mounts_by_new_calls),
	ATTACK(directory_of_a_descriptor),
	ATTACK_MILD(link_to_a_host_file),
	ATTACK(rename_over_what_is_outside),
	ATTACK(other_kernel_tables),
	ATTACK(enter_by_process),
	ATTACK_MILD(semaphores_and_queues_of_the_host),
	ATTACK(local_descriptor_table),
	ATTACK(any_call_newer_than_the_filter),
	ATTACK(lower_its_priority_to_be_killed),
	ATTACK(raise_a_limit),
	ATTACK(more_than_1024_files),
	ATTACK_MILD(loopback_of_the_host_as_mapped_address),
	ATTACK(sockets_of_services),
	ATTACK(address_of_the_metadata_service),
	ATTACK_MILD(signal_a_process_outside),
	ATTACK(trace_a_process_outside),
	ATTACK(read_memory_outside),
	ATTACK(take_a_descriptor),
	ATTACK_MILD(list_processes_outside),
	ATTACK(new_user_namespace),
	ATTACK(new_network_namespace),
	ATTACK(clone_with_namespace),
	ATTACK(clone3_with_namespace),
	ATTACK(enter_a_namespace),
	ATTACK(become_root),
	ATTACK(keyring),
	ATTACK(bpf_program),
	ATTACK(user_faults),
	ATTACK(performance_events),
	ATTACK_MILD(io_uring),
	ATTACK(change_personality),
	ATTACK(kernel_log),
	ATTACK(change_the_host_name),
	ATTACK_MILD(shared_memory_of_the_host),
	ATTACK(type_into_a_terminal),
	ATTACK(type_with_a_high_bit),
	ATTACK(terminal_of_the_console),
	ATTACK(x32_number),
	ATTACK(call_of_another_architecture),
	ATTACK(call_newer_than_the_filter),
	ATTACK(splice_memory),
	ATTACK(capabilities_left),
	ATTACK_MILD(loopback_of_the_host),
	ATTACK(datagram_outside),
	ATTACK(strange_socket_families),
	ATTACK(raw_sockets),
	ATTACK_MILD(abstract_socket_of_the_host),
	ATTACK_MILD(named_socket_of_the_host),
};
/* clang-format on */
#define ATTACKS (sizeof attacks / sizeof attacks[0])

int main(int argc, char **argv)
{
	bool mild = argc == 8 && strcmp(argv[7], "mild") == 0;

	has_engine = argc == 8 && strcmp(argv[7], "engine") == 0;
	has_init = has_engine || (argc == 8 && strcmp(argv[7], "init") == 0);

	if (argc < 7)
		return 2;
	secret = argv[1];
	outer = (pid_t)strtol(argv[2], NULL, 10);
	port = (int)strtol(argv[3], NULL, 10);
	abstract_name = argv[4];
	socket_path = argv[5];
	shm_id = (int)strtol(argv[6], NULL, 10);
	for (size_t i = 0; i < ATTACKS; i++)
		if ((attacks[i].is_mild || !mild) && attacks[i].succeeds())
			printf("open %s\n", attacks[i].name);
	printf("tried %zu\n", ATTACKS);
	return 0;
}
