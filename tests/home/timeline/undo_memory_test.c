/* SPDX-License-Identifier: Apache-2.0 */
/* What an undo and a restore of many files need on disk: each file goes through memory of its own. */
#include "memory_use.h"
#include "tool/tool_fix.h"

#define FILES     12000 /* more than are made as one group */
#define KIB_OF(n) ((n)*2)

TEST(an_undo_and_a_restore_of_many_files_need_little_memory_for_each)
{
	struct bench b;

	bench_open_disk(&b, "native");
	for (int i = 0; i < FILES; i++) {
		char path[40];

		snprintf(path, sizeof(path), "d%d/f%d", i % 100, i);
		put(&b, path, str_of(path));
	}
	good(&b, "clear_files", "{}");
	memory_peak_begin();
	CHECK_INT(jv_get_int(good(&b, "undo", "{}"), "total", 0), FILES);
	CHECK(memory_peak_kib() < KIB_OF(FILES));
	good(&b, "clear_files", "{}");
	memory_peak_begin();
	CHECK_INT(jv_get_int(good(&b, "restore", "{'path':'/','revision':12000}"), "total", 0), FILES);
	CHECK(memory_peak_kib() < KIB_OF(FILES));
	bench_close(&b);
}
