/* SPDX-License-Identifier: Apache-2.0 */
/* What an undo and a restore of many files need beyond the log: each file goes through memory of its own. */
#include <sys/resource.h>

#include "tool/tool_fix.h"

#define FILES     12000   /* more than are made as one group */
#define KIB_OF(n) ((n)*2) /* two KiB per file, of which the log takes one */

static long peak_kib(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss;
}

static void remove_all(struct bench *b)
{
	for (int i = 0; i < FILES; i++) {
		char path[40];

		snprintf(path, sizeof(path), "d%d/f%d", i % 100, i);
		put(b, path, str_of(path));
	}
	good(b, "clear_files", "{}");
}

TEST(an_undo_of_many_files_needs_little_memory_for_each)
{
	struct bench b;
	long before;

	bench_open(&b, "native");
	remove_all(&b);
	before = peak_kib();
	CHECK_INT(jv_get_int(good(&b, "undo", "{}"), "total", 0), FILES);
	printf("# %ld KiB more memory at its peak\n", peak_kib() - before);
	CHECK(peak_kib() - before < KIB_OF(FILES));
	bench_close(&b);
}

TEST(a_restore_of_many_files_needs_little_memory_for_each)
{
	struct bench b;
	long before;

	bench_open(&b, "native");
	remove_all(&b);
	before = peak_kib();
	CHECK_INT(jv_get_int(good(&b, "restore", "{'path':'/','revision':12000}"), "total", 0), FILES);
	printf("# %ld KiB more memory at its peak\n", peak_kib() - before);
	CHECK(peak_kib() - before < KIB_OF(FILES));
	bench_close(&b);
}
