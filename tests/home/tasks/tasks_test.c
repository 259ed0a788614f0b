/* SPDX-License-Identifier: Apache-2.0 */
/* The task list: through the tools, while a person edits the file. */
#include "tool/tool_fix.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "home/tasks/tasks.h"

static struct str file(struct bench *b)
{
	struct err err = {0};
	struct str bytes;

	CHECK_OK(store_read(workspace_home(b->ws), &b->ctx, (struct wpath){STR("TASKS.yaml")}, STORE_WHOLE, 1 << 20,
			    &bytes, NULL, &err),
		 err);
	return bytes;
}

static void put_file(struct bench *b, const char *path, struct str bytes)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, bytes,
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static struct str create(struct bench *b, const char *json)
{
	return jv_get_str(jv_get(good(b, "create_task", json), "task"), "id");
}

TEST(a_task_lives_from_creation_to_deletion)
{
	struct bench b;
	const struct jv *v;
	struct str id;
	char args[300];

	bench_open(&b, "native");
	id = create(&b, "{'description':'compare the drafts','type':'research','priority':'high'}");
	CHECK_INT(id.len, 36);
	CHECK_INT(id.ptr[14], '4');
	v = good(&b, "list_tasks", "{'status':'pending'}");
	CHECK_INT(jv_get_int(v, "total", 0), 1);
	snprintf(args, sizeof(args), "{'task_id':'%.8s','status':'in_progress','notes':'began'}", id.ptr);
	v = jv_get(good(&b, "update_task", args), "task");
	CHECK(jv_get_str(v, "started_at").len > 0);
	CHECK_INT(jv_get_int(v, "check_count", 0), 1);
	snprintf(args, sizeof(args), "{'task_id':'%.4s'}", id.ptr);
	refused(&b, "delete_task", args, ERR_DENIED);
	snprintf(args, sizeof(args), "{'task_id':'%.4s','status':'completed','result_summary':'the second: it is #1'}",
		 id.ptr);
	v = jv_get(good(&b, "update_task", args), "task");
	CHECK(jv_get_str(v, "completed_at").len > 0);
	snprintf(args, sizeof(args), "{'task_id':'%.4s'}", id.ptr);
	v = jv_get(good(&b, "get_task", args), "task");
	CHECK_STR(jv_get_str(v, "result_summary"), STR("the second: it is #1"));
	CHECK_HAS(jv_get_str(v, "notes"), STR("] began\n"));
	good(&b, "delete_task", args);
	refused(&b, "get_task", args, ERR_NOT_FOUND);
	bench_close(&b);
}

TEST(tasks_come_by_urgency_and_an_ambiguous_id_is_refused)
{
	struct bench b;
	const struct jv *tasks;

	bench_open(&b, "native");
	put_file(&b, "TASKS.yaml",
		 STR("tasks:\n- {id: aaaabbbbcccc1, status: pending, priority: low, description: one}\n"
		     "- {id: aaaabbbbcccc2, status: pending, priority: urgent, description: two}\n"));
	tasks = jv_get(good(&b, "list_tasks", "{}"), "tasks");
	CHECK_STR(jv_get_str(jv_at(tasks, 0), "description"), STR("two"));
	CHECK_STR(jv_get_str(jv_at(tasks, 0), "short_id"), STR("aaaabbbbcccc2"));
	refused(&b, "get_task", "{'task_id':'aaaa'}", ERR_INVALID);
	refused(&b, "update_task", "{'task_id':'aaaabbbbcccc1'}", ERR_INVALID);
	refused(&b, "update_task", "{'task_id':'aaaabbbbcccc1','deadline':'soon'}", ERR_INVALID);
	refused(&b, "create_task", "{'description':' '}", ERR_INVALID);
	bench_close(&b);
}

TEST(a_persons_comments_and_keys_stay)
{
	struct bench b;
	struct str text;

	bench_open(&b, "native");
	put_file(&b, "TASKS.yaml",
		 STR("# Ann keeps this file too\nversion: 1\ntasks:\n  # ask Bo first\n  - id: a1\n    status: pending "
		     "# !\n"
		     "    description: paint\n    colour: red\n"));
	good(&b, "update_task", "{'task_id':'a1','status':'in_progress'}");
	create(&b, "{'description':'next'}");
	text = file(&b);
	CHECK_STARTS(text, STR("# Ann keeps this file too\nversion: 1\ntasks:\n  # ask Bo first\n  - id: a1\n"
			       "    status: in_progress # !\n    description: paint\n    colour: red\n"));
	bench_close(&b);
}

TEST(a_broken_file_is_set_aside_and_never_emptied)
{
	struct bench b;
	struct store_list_req req = {.recursive = true, .limit = 100};
	struct store_page page;
	struct err err = {0};
	struct str bytes;
	bool found = false;

	bench_open(&b, "native");
	put_file(&b, "TASKS.yaml", STR("tasks: [oh {\n"));
	refused(&b, "list_tasks", "{}", ERR_INVALID);
	CHECK_STR(file(&b), STR("tasks: [oh {\n"));
	CHECK(jv_get_str(good(&b, "create_task", "{'description':'go on'}"), "note").len > 0);
	CHECK_OK(store_list(workspace_home(b.ws), &b.ctx, WPATH_ROOT, &req, &page, &err), err);
	for (size_t i = 0; i < page.count; i++)
		if (str_starts(page.entries[i].path.s, STR("TASKS.broken-"))) {
			CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, page.entries[i].path, STORE_WHOLE, 1000,
					    &bytes, NULL, &err),
				 err);
			CHECK_STR(bytes, STR("tasks: [oh {\n"));
			found = true;
		}
	CHECK(found);
	CHECK_INT(jv_get_int(good(&b, "list_tasks", "{}"), "total", 0), 1);
	bench_close(&b);
}

TEST(what_nobody_looks_after_fails_and_what_ended_long_ago_goes)
{
	struct bench b;
	uint64_t failed, removed;
	struct err err = {0};
	struct jv *task;

	bench_open(&b, "native");
	put_file(&b, "TASKS.yaml",
		 STR("tasks:\n"
		     "- {id: old, status: pending, description: a, created_at: 2020-01-01T00:00:00Z, notes: null}\n"
		     "- {id: seen, status: in_progress, description: b, created_at: 2020-01-01T00:00:00Z,\n"
		     "   last_checked_at: 2200-01-01T00:00:00Z}\n"
		     "- {id: done, status: completed, description: c, completed_at: 2020-01-01T00:00:00+02:00}\n"
		     "- {id: hand, status: someday, description: d}\n"));
	CHECK_OK(tasks_clean(b.ws, &b.ctx, &failed, &removed, &err), err);
	CHECK_INT(failed, 1);
	CHECK_INT(removed, 1);
	CHECK_OK(tasks_get(b.ws, &b.ctx, STR("old"), &task, &err), err);
	CHECK_STR(jv_get_str(task, "status"), STR("failed"));
	CHECK_STARTS(jv_get_str(task, "notes"), STR("- ["));
	CHECK_OK(tasks_get(b.ws, &b.ctx, STR("hand"), &task, &err), err);
	CHECK_ERR(tasks_get(b.ws, &b.ctx, STR("done"), &task, &err), err, ERR_NOT_FOUND);
	bench_close(&b);
}

/* Creates until there is a file below tasks/; its id. */
static struct str fill(struct bench *b, size_t *ret_count)
{
	for (*ret_count = 1;; ++*ret_count) {
		struct str id =
			create(b, "{'description':'one of many tasks, with a few words that say what it is about'}");
		struct err err = {0};
		struct wpath path = {arena_printf(b->arena, "tasks/%.2s/%.*s.yaml", id.ptr, STR_ARG(id))};

		if (store_stat(workspace_home(b->ws), &b->ctx, path, NULL, &err) == 0)
			return id;
		if (*ret_count == 200)
			TEST_FAIL("TASKS.yaml is never full");
	}
}

TEST(when_the_list_is_full_tasks_get_files_of_their_own)
{
	struct bench b;
	struct str id;
	size_t count;
	char args[200];

	bench_open(&b, "native");
	id = fill(&b, &count);
	CHECK(file(&b).len < 9000);
	CHECK_INT(jv_get_int(good(&b, "list_tasks", "{}"), "total", 0), (int64_t)count);
	snprintf(args, sizeof(args), "{'task_id':'%.10s','status':'completed','notes':'done'}", id.ptr);
	good(&b, "update_task", args);
	snprintf(args, sizeof(args), "{'task_id':'%.36s'}", id.ptr);
	CHECK_HAS(jv_get_str(jv_get(good(&b, "get_task", args), "task"), "notes"), STR("] done\n"));
	good(&b, "delete_task", args);
	refused(&b, "get_task", args, ERR_NOT_FOUND);
	CHECK_INT(jv_get_int(good(&b, "list_tasks", "{}"), "total", 0), (int64_t)count - 1);
	bench_close(&b);
}

TEST(a_file_of_a_single_task_may_be_edited_by_hand)
{
	struct bench b;
	struct err err = {0};
	struct str bytes;
	struct jv *task;
	uint64_t failed, removed;

	bench_open(&b, "native");
	put_file(&b, "tasks/ab/abcd-1.yaml",
		 STR("# from Bo\ntasks:\n  - id: abcd-1\n    status: awaiting_check # !\n    description: paint\n"));
	put_file(&b, "tasks/ab/abcd-2.yaml",
		 STR("tasks:\n- {id: abcd-2, status: pending, description: b, created_at: 2020-01-01T00:00:00Z}\n"));
	put_file(&b, "tasks/ab/notes.txt", STR("not a task\n"));
	refused(&b, "get_task", "{'task_id':'abcd'}", ERR_INVALID);
	good(&b, "update_task", "{'task_id':'abcd-1','priority':'high'}");
	CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, (struct wpath){STR("tasks/ab/abcd-1.yaml")}, STORE_WHOLE,
			    1000, &bytes, NULL, &err),
		 err);
	CHECK_STARTS(bytes, STR("# from Bo\ntasks:\n  - id: abcd-1\n    status: awaiting_check # !\n"));
	CHECK_OK(tasks_clean(b.ws, &b.ctx, &failed, &removed, &err), err);
	CHECK_INT(failed, 1);
	CHECK_OK(tasks_get(b.ws, &b.ctx, STR("abcd-2"), &task, &err), err);
	CHECK_STR(jv_get_str(task, "status"), STR("failed"));
	put_file(&b, "tasks/ab/abcd-2.yaml", STR("tasks: [\n"));
	CHECK_HAS(refused(&b, "update_task", "{'task_id':'abcd-2','notes':'x'}", ERR_INVALID), STR("abcd-2.yaml"));
	bench_close(&b);
}

TEST(four_processes_that_create_tasks_lose_none)
{
	struct bench b;
	pid_t pids[4];
	int status;

	bench_open_disk(&b, "native");
	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct bench own;

			bench_open_at(&own, arena_printf(b.arena, "disk:%s", b.dir), "native");
			for (int n = 0; n < 15; n++)
				good(&own, "create_task", "{'description':'x'}");
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++) {
		CHECK_INT(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_INT(status, 0);
	}
	CHECK_INT(jv_get_int(good(&b, "list_tasks", "{}"), "total", 0), 60);
	bench_close(&b);
}

TEST(openpaw_agents_read_text)
{
	struct bench b;

	bench_open(&b, "openpaw");
	CHECK(good(&b, "create_task", "{'description':'look at the logs','type':'monitoring'}") == NULL);
	CHECK_STARTS(b.result.text, STR("created task "));
	good(&b, "list_tasks", "{}");
	CHECK_ENDS(b.result.text, STR("monitoring, normal, 0 min old: look at the logs\n1 task"));
	CHECK_STARTS(refused(&b, "get_task", "{'task_id':'zz'}", ERR_NOT_FOUND), STR("Error: "));
	bench_close(&b);
}
