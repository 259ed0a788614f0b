/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a command may not make, as a program for the kernel's filter. Everything is allowed except
 * what makes new namespaces or mounts, looks into other processes, loads code into the kernel, reaches devices or
 * sockets that are not part of any namespace, or came after this file: numbers that are not known here do not exist for
 * the command, because a list of refusals ages. The kernel gives such a filter values, not memory, so clone3(), whose
 * flags are in memory, does not exist either; the C library uses clone() then. Arguments are compared in the width that
 * the kernel uses. A library for this (libseccomp) would be a dependency for sixty lines.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "sandbox/sandbox_internal.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls is not known for this machine"
#endif

#define X32_BIT     0x40000000u
#define LAST_KNOWN  450 /* set_mempolicy_home_node: the same number on every machine */
#define CODE_MAX    512
#define SEARCH_LEAF 5 /* numbers that are compared one after the other */
#define CLONE_NEW                                                                                                      \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |   \
	 0x00000080 /* CLONE_NEWTIME */)

/* The kernel tries the program on every number when it is given one, so the list is searched by halves. */
static const int refused[] = {
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_setns,
	SYS_unshare,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_process_mrelease,
	SYS_pidfd_getfd,
	SYS_kcmp,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_kexec_load,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_acct,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_syslog,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_vmsplice,
	SYS_fanotify_init,
	SYS_move_pages,
	SYS_mbind,
	SYS_migrate_pages,
	SYS_set_mempolicy,
	SYS_set_mempolicy_home_node,
	SYS_lookup_dcookie,
	SYS_nfsservctl,
	SYS_sethostname,
	SYS_setdomainname,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#if defined(__x86_64__)
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
	SYS_uselib,
	SYS__sysctl,
	SYS_create_module,
#endif
};

/* Without namespaces of its own the command shares these with the machine. */
static const int refused_shared[] = {
	SYS_shmget, SYS_shmat,  SYS_shmctl, SYS_semget,  SYS_semop,
	SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_mq_open, SYS_mq_unlink,
};

struct code {
	struct sock_filter *at;
	unsigned short count;
};

static void op(struct code *c, uint16_t code, uint32_t k, uint8_t when_true, uint8_t when_false)
{
	if (c->count < CODE_MAX)
		c->at[c->count++] = (struct sock_filter){code, when_true, when_false, k};
}

static void load(struct code *c, size_t offset)
{
	op(c, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half of an argument. */
static void load_arg(struct code *c, unsigned n)
{
	load(c, offsetof(struct seccomp_data, args) + 8 * n);
}

static void give(struct code *c, uint32_t what)
{
	op(c, BPF_RET | BPF_K, what, 0, 0);
}

static void give_errno(struct code *c, int sys)
{
	give(c, SECCOMP_RET_ERRNO | ((uint32_t)sys & SECCOMP_RET_DATA));
}

static void refuse(struct code *c, int nr, int sys)
{
	op(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1);
	give_errno(c, sys);
}

/* `nr` is refused when its argument `n` is one of `values`, or, with `only`, when it is not. Then the number
   is loaded again for what follows. */
static void judge(struct code *c, int nr, unsigned n, const uint32_t *values, uint8_t count, bool only, int sys)
{
	uint8_t length = (uint8_t)(1 + count + (only ? 1 : 2) + 1);

	op(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, length);
	load_arg(c, n);
	for (uint8_t i = 0; i < count; i++) /* a hit: to the answer for hits */
		op(c, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
	if (!only)
		op(c, BPF_JMP | BPF_JA, 1, 0, 0);
	give_errno(c, sys);
	load(c, offsetof(struct seccomp_data, nr));
}

/* Refuses the numbers of a sorted list and allows all others. */
static void search(struct code *c, const int *numbers, size_t count)
{
	size_t half = count / 2;
	unsigned short at = c->count;

	if (count > SEARCH_LEAF) {
		op(c, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)numbers[half], 0, 0);
		search(c, numbers, half);
		c->at[at].jt = (uint8_t)(c->count - at - 1);
		search(c, numbers + half, count - half);
		return;
	}
	for (size_t i = 0; i < count; i++)
		op(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], (uint8_t)(count - i), 0);
	give(c, SECCOMP_RET_ALLOW);
	give_errno(c, EPERM);
}

static void add_sorted(int *numbers, size_t *count, const int *more, size_t more_count)
{
	for (size_t i = 0; i < more_count; i++) {
		size_t at = (*count)++;

		for (; at > 0 && numbers[at - 1] > more[i]; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = more[i];
	}
}

static void judge_clone(struct code *c)
{
	op(c, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	load_arg(c, 0);
	op(c, BPF_JMP | BPF_JSET | BPF_K, (uint32_t)CLONE_NEW, 0, 1);
	give_errno(c, EPERM);
	load(c, offsetof(struct seccomp_data, nr));
}

static void judge_sockets(struct code *c, enum sandbox_tier tier)
{
	static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6};
	static const uint32_t unix_alone[] = {AF_UNIX};

	if (tier == SANDBOX_LANDLOCK) { /* a pair talks to nobody outside */
		refuse(c, SYS_socket, EACCES);
		judge(c, SYS_socketpair, 0, unix_alone, 1, true, EAFNOSUPPORT);
	} else {
		judge(c, SYS_socket, 0, families, COUNT(families), true, EAFNOSUPPORT);
		judge(c, SYS_socketpair, 0, families, COUNT(families), true, EAFNOSUPPORT);
	}
}

void filter_build(struct arena *arena, enum sandbox_tier tier, bool is_worker, struct sock_fprog *ret)
{
	static const uint32_t itself[] = {0};
	static const uint32_t terminal[] = {TIOCSTI, 0x541C /* TIOCLINUX */, TIOCSETD};
	static const uint32_t plain[] = {0, 0xffffffff};
	struct code c = {.at = ARENA_ARRAY(arena, struct sock_filter, CODE_MAX)};
	int numbers[COUNT(refused) + COUNT(refused_shared)];
	size_t count = 0;

	load(&c, offsetof(struct seccomp_data, arch));
	op(&c, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
	give(&c, SECCOMP_RET_KILL_PROCESS);
	load(&c, offsetof(struct seccomp_data, nr));
	op(&c, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	give(&c, SECCOMP_RET_KILL_PROCESS);
	op(&c, BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN, 0, 1);
	give_errno(&c, ENOSYS);
	judge_clone(&c);
	judge(&c, SYS_ioctl, 1, terminal, COUNT(terminal), false, EPERM);
	judge_sockets(&c, tier);
	judge(&c, SYS_personality, 0, plain, COUNT(plain), true, EPERM);
	if (is_worker) /* a call must not change the limits of the program that makes the next one */
		judge(&c, SYS_prlimit64, 0, itself, 1, true, EPERM);
	refuse(&c, SYS_clone3, ENOSYS);
	add_sorted(numbers, &count, refused, COUNT(refused));
	if (tier == SANDBOX_LANDLOCK)
		add_sorted(numbers, &count, refused_shared, COUNT(refused_shared));
	search(&c, numbers, count);
	*ret = (struct sock_fprog){.len = c.count, .filter = c.at};
}
