/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls for a container engine, which takes names instead of a program (filter.c). What is listed
 * is allowed and all else does not exist for the command: the calls that filter.c refuses, and those that are newer
 * than this list. The profiles that engines bring leave open what is not part of any namespace, such as AF_VSOCK.
 */
#include "sandbox/sandbox_internal.h"
#include "text/jv.h"

/* clang-format off */
static const char allowed[] =
	"accept accept4 access afs_syscall alarm arch_prctl bind brk capget capset chdir chmod chown "
	"clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 "
	"dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait "
	"epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 "
	"fallocate fanotify_mark fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr "
	"flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_waitv futimesat "
	"get_kernel_syms get_mempolicy get_robust_list get_thread_area getcpu getcwd getdents getdents64 "
	"getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getpmsg getppid "
	"getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid "
	"gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch "
	"io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioprio_get ioprio_set kill "
	"landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat "
	"listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier memfd_create "
	"memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr "
	"mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap msgctl msgget msgrcv msgsnd msync "
	"munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open "
	"pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv "
	"preadv2 prlimit64 pselect6 putpmsg pwrite64 pwritev pwritev2 query_module read readahead readlink "
	"readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2 "
	"restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn "
	"rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min "
	"sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval "
	"sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp security "
	"select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list "
	"set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority "
	"setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl "
	"shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat statfs statx symlink symlinkat "
	"sync sync_file_range syncfs sysfs sysinfo tee tgkill time timer_create timer_delete "
	"timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times "
	"tkill truncate tuxcall umask uname unlink unlinkat ustat utime utimensat utimes vfork vhangup "
	"vserver wait4 waitid write writev";
/* clang-format on */

#if defined(__x86_64__)
#define ARCHITECTURE "SCMP_ARCH_X86_64"
#else
#define ARCHITECTURE "SCMP_ARCH_AARCH64"
#endif
#define NEW_NAMESPACES 0x7e020080 /* flags of clone() */

static struct jv *rule(struct arena *arena, struct jv *rules, const char *action)
{
	struct jv *r = jv_object(arena);

	jv_set(arena, r, "names", jv_array(arena));
	jv_set_str(arena, r, "action", str_of(action));
	jv_push(arena, rules, r);
	return r;
}

static void rule_name(struct arena *arena, struct jv *r, struct str name)
{
	jv_push(arena, (struct jv *)(uintptr_t)jv_get(r, "names"), jv_str(arena, name));
}

/* `name` is allowed when its first argument compares so. */
static void rule_argument(struct arena *arena, struct jv *rules, const char *name, const char *op, int64_t value,
			  int64_t second)
{
	struct jv *r = rule(arena, rules, "SCMP_ACT_ALLOW"), *args = jv_array(arena), *arg = jv_object(arena);

	rule_name(arena, r, str_of(name));
	jv_set_int(arena, arg, "index", 0);
	jv_set_int(arena, arg, "value", value);
	jv_set_int(arena, arg, "valueTwo", second);
	jv_set_str(arena, arg, "op", str_of(op));
	jv_push(arena, args, arg);
	jv_set(arena, r, "args", args);
}

struct str engine_filter(struct arena *arena)
{
	static const int families[] = {1, 2, 10}; /* AF_UNIX, AF_INET, AF_INET6 */
	struct jv *v = jv_object(arena), *rules = jv_array(arena), *list = rule(arena, rules, "SCMP_ACT_ALLOW");
	struct jv *architectures = jv_array(arena);
	struct str rest = str_of(allowed), name;
	struct buf text;

	jv_set_str(arena, v, "defaultAction", STR("SCMP_ACT_ERRNO"));
	jv_set_int(arena, v, "defaultErrnoRet", 38); /* ENOSYS */
	jv_push(arena, architectures, jv_str(arena, STR(ARCHITECTURE)));
	jv_set(arena, v, "architectures", architectures);
	while (rest.len && str_cut(&rest, ' ', &name))
		if (name.len)
			rule_name(arena, list, name);
	rule_name(arena, list, STR("ioctl")); /* its terminal is its own */
	rule_argument(arena, rules, "clone", "SCMP_CMP_MASKED_EQ", NEW_NAMESPACES, 0);
	for (size_t i = 0; i < COUNT(families); i++) {
		rule_argument(arena, rules, "socket", "SCMP_CMP_EQ", families[i], 0);
		rule_argument(arena, rules, "socketpair", "SCMP_CMP_EQ", families[i], 0);
	}
	rule_argument(arena, rules, "personality", "SCMP_CMP_EQ", 0, 0);
	rule_argument(arena, rules, "personality", "SCMP_CMP_EQ", 0xffffffff, 0);
	jv_set(arena, v, "syscalls", rules);
	buf_init(&text, arena, 64 * 1024);
	jv_write(&text, v);
	return buf_str(&text);
}
