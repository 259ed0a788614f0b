/* SPDX-License-Identifier: Apache-2.0 */
#include "home/workspace.h"
#include "test.h"

TEST(a_new_workspace_in_memory_has_a_file_area)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct workspace_opts opts = {.store_url = STR("memory:"), .create = true};
	struct ctx ctx = {.arena = arena};
	struct workspace *ws;
	struct err err;
	struct str got;

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_STR(workspace_name(ws), STR("default"));
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("a/b.txt")}, STR("hi"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(store_read(workspace_home(ws), &ctx, (struct wpath){STR("files/a/b.txt")}, STORE_WHOLE, 100, &got,
			    NULL, &err),
		 err);
	CHECK_STR(got, STR("hi"));
	workspace_close(ws);
}
