/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps before a command runs, in the one thread that it will be: limits, no capability, no way to get one,
 * Landlock over what is mounted, and the filter of system calls at the end, because the steps before it need calls that
 * it refuses. Landlock is the second wall of the namespaces: a mistake in the view does not become a write. Its rights
 * are those of the ABI that the kernel has.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/sandbox_internal.h"

/* linux/landlock.h of Debian 12 ends with ABI 2. */
#define FS_EXECUTE    (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE  (1ULL << 2)
#define FS_READ_DIR   (1ULL << 3)
#define FS_ALL_1      ((1ULL << 13) - 1)
#define FS_REFER      (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE   (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV  (1ULL << 15) /* ABI 5 */
#define NET_ALL       3ULL         /* ABI 4: bind and connect, TCP */
#define SCOPE_ALL     3ULL         /* ABI 6: abstract sockets and signals */
#define FS_READ       (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define FS_OF_FILES   (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};
struct path_rule {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1u);

	return abi > 0 ? (int)abi : 0;
}

static uint64_t rights_of(int abi)
{
	return FS_ALL_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0);
}

/* What is not there needs no rule. */
static bool allow(int rules, const char *path, uint64_t rights)
{
	struct path_rule rule = {rights, open(path, O_PATH | O_CLOEXEC)};
	struct stat st;
	long r;

	if (rule.fd < 0)
		return errno == ENOENT || errno == EACCES;
	if (fstat(rule.fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed &= FS_OF_FILES;
	r = syscall(SYS_landlock_add_rule, rules, 1, &rule, 0u);
	close(rule.fd);
	return r == 0;
}

/* Its own: /dev/tty is the terminal of whoever opens it. */
static bool allow_terminal(int rules, const char *name, uint64_t all)
{
	return allow(rules, name, (FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV) & all);
}

static bool allow_view(const struct plan *plan, int rules, uint64_t all)
{
	static const char *const open_dirs[] = {"/tmp", "/home", "/dev/shm"};
	uint64_t read = FS_READ & all;
	bool ok = allow(rules, "/", read) && allow(rules, "/dev", (read | FS_WRITE_FILE | FS_TRUNCATE) & all);

	for (size_t i = 0; ok && i < COUNT(open_dirs); i++)
		ok = allow(rules, open_dirs[i], all);
	if (ok && plan->tty)
		ok = allow_terminal(rules, "/dev/tty", all) && allow_terminal(rules, "/dev/console", all);
	return ok && allow(rules, plan->work, all);
}

/* Without a root of its own the command sees the machine: programs and libraries, and its own directory. */
static bool allow_host(const struct plan *plan, int rules, uint64_t all)
{
	static const char *const programs[] = {"/usr",
					       "/bin",
					       "/sbin",
					       "/lib",
					       "/lib64",
					       "/etc/ssl",
					       "/etc/ld.so.cache",
					       "/etc/alternatives",
					       "/etc/localtime",
					       "/etc/passwd",
					       "/etc/group",
					       "/etc/nsswitch.conf",
					       "/proc/self"};
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
	bool ok = true;

	for (size_t i = 0; ok && i < COUNT(programs); i++)
		ok = allow(rules, programs[i], FS_READ & all);
	for (size_t i = 0; ok && i < COUNT(devices); i++)
		ok = allow(rules, devices[i], (FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE) & all);
	for (size_t i = 0; ok && plan->paths && plan->paths[i]; i++)
		ok = allow(rules, plan->paths[i], FS_READ & all);
	if (ok && plan->tty)
		ok = allow_terminal(rules, "/dev/tty", all);
	return ok && (!plan->work || allow(rules, plan->work, all));
}

static bool restrict_files(const struct plan *plan)
{
	int abi = landlock_abi(), rules;
	bool alone = plan->tier == SANDBOX_LANDLOCK, ok;
	uint64_t all = rights_of(abi);
	struct ruleset_attr attr = {
		.fs = all, .net = abi >= 4 && alone ? NET_ALL : 0, .scoped = abi >= 6 ? SCOPE_ALL : 0};

	if (abi == 0)
		return !alone; /* the mounts are the wall then */
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0u);
	if (rules < 0)
		return false;
	ok = alone ? allow_host(plan, rules, all) : allow_view(plan, rules, all);
	ok = ok && syscall(SYS_landlock_restrict_self, rules, 0u) == 0;
	close(rules);
	return ok;
}

/* Abstract sockets and signals alone: where files are restricted, nothing can be mounted. */
static bool restrict_scope(void)
{
	struct ruleset_attr attr = {.scoped = SCOPE_ALL};
	int abi = landlock_abi(), rules;
	bool ok;

	if (abi < 6)
		return true; /* the namespaces are the wall */
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, 24, 0u);
	ok = rules >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	     syscall(SYS_landlock_restrict_self, rules, 0u) == 0;
	if (rules >= 0)
		close(rules);
	return ok;
}

void bound_capabilities(void)
{
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			break; /* there is none to drop, or this was the last that the kernel has */
}

bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) == 0;
}

void confine(const struct plan *plan)
{
	for (size_t i = 0; i < plan->rlimit_count; i++) {
		struct rlimit have, want = {plan->rlimits[i].value, plan->rlimits[i].value};
		__rlimit_resource_t what = (__rlimit_resource_t)plan->rlimits[i].what;

		if (getrlimit(what, &have) == 0 && have.rlim_max < want.rlim_max)
			want.rlim_cur = want.rlim_max = have.rlim_max;
		if (setrlimit(what, &want) != 0)
			plan_fail(plan, STEP_LIMITS);
	}
	if (plan->tier == SANDBOX_LOCAL)
		return;
	if (plan->tier == SANDBOX_BUBBLEWRAP) { /* which does the rest, and needs to be able to mount for it */
		if (!restrict_scope())
			plan_fail(plan, STEP_LANDLOCK);
		return;
	}
	if (!drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		plan_fail(plan, STEP_PRIVILEGES);
	if (!restrict_files(plan))
		plan_fail(plan, STEP_LANDLOCK);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan->filter) != 0)
		plan_fail(plan, STEP_SECCOMP);
}
