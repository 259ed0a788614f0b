/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in containers of a real engine: container_test.sh starts one and names its socket and an image. */
#include "sandbox_fix.h"

#include <fcntl.h>
#include <stdlib.h>

#include "sandbox/snapshot.h"

static void box_in_container(struct box *b)
{
	if (!getenv("STEAD_TEST_IMAGE"))
		SKIP("no container engine was started");
	box_on_memory(b, SANDBOX_CONTAINER);
	b->job.image = getenv("STEAD_TEST_IMAGE");
}

TEST(a_command_in_a_container_gives_its_outputs_its_exit_code_and_its_changes)
{
	static struct box b;

	box_in_container(&b);
	put(&b, "kept.txt", "kept");
	put(&b, "changed.txt", "before");
	put(&b, "dir/deleted.txt", "x");
	b.job.input = STR("given");
	b.job.answer_max = 100;
	run(&b, "cat kept.txt; cat; echo said >&2; echo answer >&3; printf after > changed.txt; rm dir/deleted.txt; "
		"pwd; exit 3");
	CHECK_STR(b.result.out.text, STR("keptgiven/workspace\n"));
	CHECK_STR(b.result.said.text, STR("said\n"));
	CHECK_STR(b.result.answer, STR("answer\n"));
	CHECK_INT(b.result.exit_code, 3);
	CHECK_INT(b.result.tier, SANDBOX_CONTAINER);
	CHECK_STR(content(&b, "changed.txt"), STR("after"));
	CHECK_STR(content(&b, "dir/deleted.txt"), STR("(absent)"));
	CHECK_INT(b.result.change_count, 2);
}

TEST(what_a_container_left_is_found_by_the_next)
{
	static const char *const exclude[] = {"node_modules", NULL};
	static struct sandbox_keep keep;
	static struct box b;

	box_in_container(&b);
	keep = (struct sandbox_keep){.store = store_memory_new(),
				     .dir = {STR("one")},
				     .cache = arena_printf(b.arena, "%s/c", temp_dir_new()).ptr};
	test_defer(store_destroy, keep.store);
	b.job.keep = &keep;
	b.job.files.exclude = exclude;
	run(&b, "/bin/busybox mkdir node_modules; echo x > node_modules/f; echo y > ~/g; echo z > ~/gone; echo made > "
		"file");
	CHECK_STR(content(&b, "file"), STR("made\n"));
	run(&b, "cat node_modules/f ~/g; rm ~/gone");
	CHECK_STR(b.result.out.text, STR("x\ny\n"));
	CHECK_INT(b.result.change_count, 0);
	run(&b, "ls ~ node_modules");
	CHECK_STR(b.result.out.text, STR("/home:\ng\n\nnode_modules:\nf\n"));
}

TEST(a_container_is_killed_at_its_deadline)
{
	static struct box b;

	box_in_container(&b);
	b.job.limits.timeout_ms = 700;
	run(&b, "trap '' TERM; echo begun; sleep 48161 & sleep 48161");
	CHECK(b.result.timed_out);
	CHECK_INT(b.result.exit_code, 124);
	CHECK_STR(b.result.out.text, STR("begun\n"));
}

TEST(a_missing_program_and_a_missing_image_are_told_apart)
{
	static const char *const missing[] = {"no-such-program", NULL};
	static struct box b;

	box_in_container(&b);
	b.job.argv = missing;
	CHECK_OK(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err);
	CHECK_INT(b.result.exit_code, 127);
	b.job.image = "localhost/there-is-none:1";
	CHECK_ERR(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), b.err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(b.err.msg), STR("sandbox.image"));
}

TEST(a_container_is_as_confined_as_a_sandbox)
{
	static struct box b;

	box_in_container(&b);
	run(&b, "echo x > /etc/x 2>/dev/null && echo root is writable; grep -E "
		"'^(Cap(Eff|Prm|Inh|Bnd)|Seccomp|NoNewPrivs):' "
		"/proc/self/status; ls /sys/class/net; id -u");
	CHECK_LACKS(b.result.out.text, STR("writable"));
	CHECK_HAS(b.result.out.text, STR("CapEff:\t0000000000000000"));
	CHECK_HAS(b.result.out.text, STR("CapBnd:\t0000000000000000"));
	CHECK_HAS(b.result.out.text, STR("Seccomp:\t2"));
	CHECK_HAS(b.result.out.text, STR("NoNewPrivs:\t1"));
	CHECK_LACKS(b.result.out.text, STR("eth0"));
	CHECK_LACKS(b.result.out.text, STR("\n0\n"));
}
