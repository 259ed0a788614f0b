/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of taking back the last call does not depend on how long the history is, once that is longer than the part
 * that is searched for more changes of the call. It is counted in bytes that are allocated, which follow the records
 * that are looked at. */
#include "allocations.h"
#include "tool/tool_fix.h"

static size_t cost_of_undo(int changes)
{
	struct bench b;
	size_t before;

	bench_open(&b, "native");
	for (int i = 0; i < changes; i++) {
		char path[40];

		snprintf(path, sizeof(path), "d%d/f%d", i % 100, i);
		put(&b, path, str_of(path));
	}
	good(&b, "write_file", "{'path':'last','content':'x'}");
	before = allocation_bytes;
	good(&b, "undo", "{}");
	before = allocation_bytes - before;
	bench_close(&b);
	return before;
}

TEST(an_undo_of_the_last_call_costs_the_same_after_any_number_of_changes)
{
	size_t few = cost_of_undo(6000), many = cost_of_undo(24000);

	printf("# %zu and %zu bytes\n", few, many);
	CHECK(many < few + few / 4);
}
