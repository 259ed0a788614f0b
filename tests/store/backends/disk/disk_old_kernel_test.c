/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract where the kernel or the file system can do less. A seccomp filter answers the call in question as such a
 * system would. Filters cannot be taken off again, so each test lives with those of the tests before it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "store/conformance.h"
#include "temp_dir.h"

#include <errno.h>
#include <fcntl.h>

/* System call `nr` fails with `error` when argument `arg` has a bit of `mask`. */
static void deny(unsigned nr, unsigned arg, unsigned mask, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, args) + arg * 8),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
}

static struct store *open_plain(void)
{
	return open_disk(true, false);
}

static struct store *open_with_tmp_dir(void)
{
	return open_disk(true, true);
}

TEST(the_contract_holds_where_a_descriptor_is_linked_through_proc)
{
	deny(SYS_linkat, 4, AT_EMPTY_PATH, ENOENT);
	conf_run(&store_cases, open_plain);
}

TEST(the_contract_holds_on_a_file_system_without_unnamed_files)
{
	deny(SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP);
	conf_run(&store_cases, open_plain);
	conf_run(&store_cases, open_with_tmp_dir);
}

TEST(a_kernel_without_openat2_is_refused_with_the_reason)
{
	struct store *s;
	struct err err;

	deny(SYS_openat2, 3, 0xFF, ENOSYS); /* the size of the argument is never 0 */
	CHECK_ERR(store_disk_open(temp_dir_new(), NULL, &s, &err), err, ERR_UNSUPPORTED);
	CHECK_HAS(str_of(err.msg), STR("Linux 5.6"));
}
