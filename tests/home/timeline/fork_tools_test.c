/* SPDX-License-Identifier: Apache-2.0 */
/* fork and merge through the tool table, on memory and on disk. */
#include "tool/tool_fix.h"

#include "workspace/workspace_parts.h"

#define EACH_PLACE(b)                                                                                                  \
	for (size_t p = 0; p < 2 && (p ? bench_open_disk(b, "native") : bench_open(b, "native"), 1);                   \
	     p++, bench_close(b))

/* What a subagent does in the fork. */
static void work_in(struct bench *b, const char *fork, const char *path, const char *text)
{
	struct workspace *ws = NULL;
	struct err err = {0};

	CHECK_OK(workspace_open_sibling(b->ws, str_of(fork), &ws, &err), err);
	CHECK_OK(store_write(workspace_files(ws), &b->ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	workspace_close(ws);
}

TEST(what_was_done_in_a_fork_comes_back_with_merge_and_goes_with_undo)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		const struct jv *v;

		good(&b, "write_file", "{'path':'a.md','content':'a\\n'}");
		v = good(&b, "fork", "{'name':'try'}");
		CHECK_INT(jv_get_int(v, "revision", 0), 1);
		work_in(&b, "try", "a.md", "A\n");
		work_in(&b, "try", "new.md", "n\n");
		v = good(&b, "read_file", "{'path':'a.md'}");
		CHECK_STR(jv_get_str(v, "content"), STR("a\n"));
		v = good(&b, "merge", "{'fork':'try'}");
		CHECK_INT(jv_count(jv_get(v, "merged")), 2);
		v = good(&b, "read_file", "{'path':'a.md'}");
		CHECK_STR(jv_get_str(v, "content"), STR("A\n"));
		good(&b, "undo", "{}");
		v = good(&b, "exists", "{'path':'new.md'}");
		CHECK(!jv_get_bool(v, "exists", true));
	}
}

TEST(a_conflict_is_an_error_that_shows_both_sides)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		good(&b, "write_file", "{'path':'a.md','content':'a\\n'}");
		good(&b, "fork", "{'name':'try','at_revision':1}");
		work_in(&b, "try", "a.md", "theirs\n");
		good(&b, "write_file", "{'path':'a.md','content':'ours\\n','mode':'overwrite'}");
		call(&b, "merge", "{'fork':'try'}");
		CHECK(b.result.is_error && b.result.err.kind == ERR_CONFLICT);
		CHECK_HAS(b.result.text, STR("=======\ntheirs\n>>>>>>> try"));
		good(&b, "merge", "{'fork':'try','prefer':'theirs'}");
		CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'a.md'}"), "content"), STR("theirs\n"));
	}
}
