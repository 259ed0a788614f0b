/* SPDX-License-Identifier: Apache-2.0 */
/* Boards: what is completed is there, what is handed over is in the journal, and nobody acts for another. */
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "home/board/board_internal.h"
#include "sandbox/sandbox.h"
#include "store/stores.h"
#include "tool/tool_fix.h"

#define DONE "'result_summary':'All of it was compared and the second is better.'"

static struct str id_of(const struct jv *v, const char *key)
{
	return jv_get_str(jv_get(v, key), "id");
}

__attribute__((format(printf, 3, 4))) static const struct jv *ok(struct bench *b, const char *tool, const char *fmt,
								 ...)
{
	char text[8192];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	return good(b, tool, text);
}

__attribute__((format(printf, 4, 5))) static void no(struct bench *b, const char *tool, const char *why,
						     const char *fmt, ...)
{
	char text[8192];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	call(b, tool, text);
	CHECK(b->result.is_error);
	if (*why)
		CHECK_HAS(b->result.text, str_of(why));
}

static const char *new_item(struct bench *b)
{
	return arena_cstr(
		b->arena,
		id_of(good(b, "create_item", "{'title':'Compare the drafts','description':'Which?'}"), "item"));
}

static const char *new_thread(struct bench *b, const char *purpose, const char *duty)
{
	return arena_cstr(b->arena, id_of(ok(b, "create_thread", "{'title':'%s','purpose':'%s','responsibility':'%s'}",
					     purpose, purpose, duty),
					  "thread"));
}

static struct str read_task(struct bench *b, const char *id, const char *path)
{
	struct str text = STR("");
	struct err err = {0};
	struct wpath at = {arena_printf(b->arena, "boards/main/tasks/TASK-%s/%s", id, path)};

	if (store_read(workspace_home(b->ws), &b->ctx, at, STORE_WHOLE, 64 * MIB, &text, NULL, &err) != 0)
		return STR("");
	return text;
}

static size_t count_of(struct str text, const char *needle)
{
	size_t n = 0, at = 0;

	while ((at = str_find(text, str_of(needle), at)) != SIZE_MAX) {
		n++;
		at++;
	}
	return n;
}

/* agent.yaml, in a workspace on disk that is opened again. */
static void configure(struct bench *b, const char *yaml)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

/* A file of the machine. */
static void put_file(struct bench *b, const char *dir, const char *path, const char *text)
{
	struct err err = {0};
	struct store *s;

	CHECK_OK(store_disk_open(dir, &(struct store_disk_opts){.relaxed = true}, &s, &err), err);
	CHECK_OK(
		store_write(s, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0}, NULL, &err),
		err);
	store_destroy(s);
}

/* --- completion --- */

TEST(an_item_is_completed_only_with_what_is_there)
{
	struct bench b;
	const char *id;

	bench_open(&b, "native");
	id = new_item(&b);
	no(&b, "update_item", "at least 30",
	   "{'item':'%s','status':'completed','result_summary':'short','artifacts':['a']}", id);
	no(&b, "update_item", "at least one artifact", "{'item':'%s','status':'completed'," DONE "}", id);
	no(&b, "update_item", "does not exist",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a.md']}", id);
	ok(&b, "item_write", "{'item':'%s','path':'/task/artifacts/a.md','content':''}", id);
	no(&b, "update_item", "is empty", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a.md']}",
	   id);
	no(&b, "update_item", "is a directory", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts']}",
	   id);
	no(&b, "update_item", "not in /task", "{'item':'%s','status':'completed'," DONE ",'artifacts':['/etc/passwd']}",
	   id);
	no(&b, "update_item", "..", "{'item':'%s','status':'completed'," DONE ",'artifacts':['../../items/x']}", id);
	CHECK_STR(read_task(&b, id, "JOURNAL.md"), STR(""));
	CHECK_STR(jv_get_str(jv_get(ok(&b, "get_item", "{'item':'%s'}", id), "item"), "status"), STR("pending"));
	bench_close(&b);
}

TEST(a_second_result_of_a_completed_item_is_not_lost)
{
	struct bench b;
	const char *id;
	const struct jv *item;

	bench_open(&b, "native");
	id = new_item(&b);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a.md','content':'abc'}", id);
	ok(&b, "update_item", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a.md']}", id);
	/* the same request, because its answer was lost */
	ok(&b, "update_item", "{'item':'%s','status':'completed'," DONE ",'artifacts':['/task/artifacts/a.md']}", id);
	no(&b, "update_item", "only be reopened", "{'item':'%s','status':'completed'," DONE ",'artifacts':['../../x']}",
	   id);
	no(&b, "update_item", "only be reopened",
	   "{'item':'%s','status':'completed','result_summary':'Another summary that is as long as it has to be.',"
	   "'artifacts':['artifacts/a.md']}",
	   id);
	item = jv_get(ok(&b, "update_item", "{'item':'%s','status':'completed','title':'A title'}", id), "item");
	CHECK_INT(jv_count(jv_get(item, "deliverables")), 1);
	bench_close(&b);
}

TEST(another_reason_for_a_status_is_taken)
{
	struct bench b;
	const char *id;

	bench_open(&b, "native");
	id = new_item(&b);
	for (int i = 0; i < 2; i++)
		ok(&b, "update_item",
		   "{'item':'%s','status':'blocked','result_summary':'The port has not answered any of our letters.'}",
		   id);
	ok(&b, "update_item",
	   "{'item':'%s','status':'blocked','result_summary':'The port answered, and wants to be paid for the table.'}",
	   id);
	CHECK_HAS(read_task(&b, id, "JOURNAL.md"), STR("wants to be paid"));
	CHECK_INT(count_of(read_task(&b, id, "JOURNAL.md"), "has not answered"), 1);
	bench_close(&b);
}

TEST(a_deliverable_has_the_size_and_the_hash_of_each_artifact)
{
	struct bench b;
	const struct jv *item, *file;
	const char *id;

	bench_open(&b, "native");
	id = new_item(&b);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a.md','content':'abc'}", id);
	item = jv_get(
		ok(&b, "update_item",
		   "{'item':'%s','status':'completed'," DONE
		   ",'artifacts':[{'path':'/task/artifacts/a.md','kind':'text','note':'n'}],'cautions':'mind the gap'}",
		   id),
		"item");
	file = jv_at(jv_get(jv_at(jv_get(item, "deliverables"), 0), "artifacts"), 0);
	CHECK_STR(jv_get_str(file, "path"), STR("/task/artifacts/a.md"));
	CHECK_STR(jv_get_str(file, "sha256"), STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	CHECK_INT(jv_get_int(file, "size_bytes", 0), 3);
	CHECK(!jv_get(item, "journal_queue"));
	CHECK_HAS(read_task(&b, id, "JOURNAL.md"), STR("cautions: mind the gap\nartifacts: /task/artifacts/a.md\n"));
	no(&b, "update_item", "can only be reopened", "{'item':'%s','status':'failed'," DONE "}", id);
	ok(&b, "update_item", "{'item':'%s','status':'pending'}", id);
	item = jv_get(
		ok(&b, "update_item", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a.md']}", id),
		"item");
	CHECK_INT(jv_count(jv_get(item, "deliverables")), 2);
	bench_close(&b);
}

TEST(acceptance_checks_decide_and_their_results_are_kept)
{
	struct bench b;
	const struct jv *item;
	const char *id;

	bench_open(&b, "native");
	id = arena_cstr(
		b.arena,
		id_of(good(&b, "create_item",
			   "{'title':'x','checks':[{'path':'artifacts/r.md','min_size':5,'matches':'^# '},"
			   "{'path':'/task/artifacts/r.json','json_schema':{'type':'object','required':['best']}}]}"),
		      "item"));
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/r.md','content':'no'}", id);
	no(&b, "update_item",
	   "/task/artifacts/r.md min_size: it has 2 bytes; at least 5 are needed; /task/artifacts/r.md matches: no "
	   "line "
	   "matches ^# ; /task/artifacts/r.json exists: the file does not exist",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/r.md']}", id);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/r.md','content':'# Result','mode':'overwrite'}", id);
	no(&b, "update_item", "artifacts/r.json exists",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/r.md']}", id);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/r.json','content':'[1]'}", id);
	no(&b, "update_item", "json_schema",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/r.md']}", id);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/r.json','content':'{\\\"best\\\":2}','mode':'overwrite'}",
	   id);
	item = jv_get(
		ok(&b, "update_item", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/r.md']}", id),
		"item");
	CHECK_INT(jv_count(jv_get(jv_at(jv_get(item, "deliverables"), 0), "checks")), 5);
	no(&b, "create_item", "the path of a file, or a command", "{'title':'x','checks':[{'min_size':1}]}");
	no(&b, "create_item", "the check of", "{'title':'x','checks':[{'path':'a','matches':'('}]}");
	bench_close(&b);
}

static const char *checked_by(struct bench *b, const char *command)
{
	const char *id = arena_cstr(
		b->arena, id_of(ok(b, "create_item", "{'title':'x','checks':[{'command':'%s'}]}", command), "item"));

	ok(b, "item_write", "{'item':'%s','path':'artifacts/r.txt','content':'5 apples'}", id);
	return id;
}

#define COMPLETED "'status':'completed'," DONE ",'artifacts':['artifacts/r.txt']"

static void commands_decide(struct bench *b)
{
	const struct jv *check;
	const char *id = checked_by(b, "echo looking; grep -q pears artifacts/r.txt || { echo no pears >&2; exit 3; }");

	no(b, "update_item", "exit code 3: no pears", "{'item':'%s'," COMPLETED "}", id);
	ok(b, "item_write", "{'item':'%s','path':'artifacts/r.txt','content':'pears','mode':'overwrite'}", id);
	check = jv_at(jv_get(jv_at(jv_get(jv_get(ok(b, "update_item", "{'item':'%s'," COMPLETED "}", id), "item"),
					  "deliverables"),
				   0),
			     "checks"),
		      0);
	CHECK_STR(jv_get_str(check, "check"), STR("command"));
	CHECK(jv_get_bool(check, "ok", false));
	CHECK_INT(jv_get_int(check, "exit_code", -1), 0);
	id = checked_by(b,
			"pwd | grep -qx /task && rm -r artifacts && echo x > new && ! cat /etc/shadow && ! cat .env");
	ok(b, "update_item", "{'item':'%s'," COMPLETED "}", id);
	CHECK_STR(read_task(b, id, "artifacts/r.txt"), STR("5 apples"));
	CHECK_STR(read_task(b, id, "new"), STR(""));
}

TEST(a_command_looks_at_the_files_and_its_exit_code_decides)
{
	enum sandbox_tier tier;
	struct bench b;
	struct err err;

	if (sandbox_tier_choose(SANDBOX_AUTO, &tier, &err) != 0)
		SKIP("%.150s", err.msg);
	bench_open(&b, "native"); /* in memory: the files are copied */
	commands_decide(&b);
	bench_close(&b);
	bench_open_disk(&b, "native");
	commands_decide(&b);
	bench_close(&b);
}

TEST(a_check_gives_an_agent_no_power_that_it_lacks)
{
	struct bench b;
	const char *id, *lane;

	bench_open_disk(&b, "native");
	id = checked_by(&b, "test -z $SECRET");
	lane = new_thread(&b, "execution", "Writes all reports about the drafts of the contract");
	no(&b, "update_item", "only the coordinator changes", "{'item':'%s','checks':[],'thread_id':'%s'}", id, lane);
	configure(&b, "sandbox: {tier: local, env: {SECRET: key}}\n");
	ok(&b, "update_item", "{'item':'%s'," COMPLETED "}", id);
	ok(&b, "update_item", "{'item':'%s','status':'pending'}", id);
	configure(&b, "tools: {deny: [execute]}\n");
	no(&b, "update_item", "does not allow the tool execute", "{'item':'%s'," COMPLETED "}", id);
	no(&b, "create_item", "does not allow the tool execute", "{'title':'x','checks':[{'command':'true'}]}");
	bench_close(&b);
}

TEST(a_parent_waits_for_its_children)
{
	struct bench b;
	const char *parent, *child;

	bench_open(&b, "native");
	parent = new_item(&b);
	no(&b, "update_item", "no children", "{'item':'%s','status':'waiting_for_children'}", parent);
	child = arena_cstr(b.arena, id_of(ok(&b, "create_item", "{'title':'part','child_of':'%s'}", parent), "item"));
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a','content':'x'}", parent);
	no(&b, "update_item", "waiting_for_children",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a']}", parent);
	ok(&b, "update_item", "{'item':'%s','status':'waiting_for_children'}", parent);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a','content':'x'}", child);
	ok(&b, "update_item", "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a']}", child);
	CHECK_STR(jv_get_str(jv_get(ok(&b, "get_item", "{'item':'%s'}", parent), "item"), "status"), STR("pending"));
	bench_close(&b);
}

/* --- the journal --- */

TEST(an_entry_that_a_crash_left_in_the_record_is_moved_once)
{
	struct bench b;
	const char *id;
	struct wpath path;
	struct str record;
	struct err err = {0};
	size_t end;

	bench_open(&b, "native");
	id = new_item(&b);
	path = (struct wpath){arena_printf(b.arena, "boards/main/items/%s.json", id)};
	CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, path, STORE_WHOLE, MIB, &record, NULL, &err), err);
	end = str_rfind_char(record, '}');
	record = arena_printf(
		b.arena,
		"%.*s,\"journal_queue\":[{\"marker\":\"<!-- handoff:7 -->\",\"text\":\"## [t]\\noutcome: x\\n<!-- "
		"handoff:7 -->\\n\"}]}",
		(int)end, record.ptr);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, path, record, (struct store_cond){0}, NULL, &err),
			 err);
		CHECK(!jv_get(jv_get(ok(&b, "get_item", "{'item':'%s'}", id), "item"), "journal_queue"));
		CHECK_INT(count_of(read_task(&b, id, "JOURNAL.md"), "handoff:7"), 1);
	}
	bench_close(&b);
}

struct writer {
	struct bench *b;
	const char *id;
	int number;
};

static void *write_journal(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < 25; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena};
		struct err err;

		if (board_journal_add(w->b->ws, &ctx, (struct board_ref){STR(""), str_of(w->id)},
				      arena_printf(arena, "## note %d-%d.", w->number, i), &err) != 0)
			return w;
	}
	return NULL;
}

TEST(writers_of_a_journal_lose_nothing)
{
	struct bench b;
	struct writer writers[4];
	pthread_t threads[4];
	struct str journal;
	void *failed;

	bench_open_disk(&b, "native");
	writers[0].id = new_item(&b);
	for (int i = 0; i < 4; i++) {
		writers[i] = (struct writer){&b, writers[0].id, i};
		CHECK_INT(pthread_create(&threads[i], NULL, write_journal, &writers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		CHECK(!failed);
	}
	journal = read_task(&b, writers[0].id, "JOURNAL.md");
	for (int w = 0; w < 4; w++)
		for (int i = 0; i < 25; i++)
			CHECK_INT(count_of(journal, arena_printf(b.arena, "## note %d-%d.\n", w, i).ptr), 1);
	bench_close(&b);
}

TEST(compaction_keeps_every_entry_every_mark_and_every_other_section)
{
	struct arena *arena = arena_new();
	struct str old, compact;
	struct buf journal, all;

	test_defer(arena_destroy, arena);
	buf_init(&journal, arena, MIB);
	buf_lit(&journal, "# Journal\n\nTASK-1: x\n");
	for (int i = 0; i < 60; i++) {
		buf_printf(&journal,
			   "\n## [2026-11-16T15:%02d:00Z] · agent %d · completed\noutcome: result %d. %0*d\ncautions: "
			   "care %d.\n<!-- handoff:%d -->\n",
			   i, i, i, 1500, 0, i, i);
		if (i % 10 == 0)
			buf_printf(&journal, "\n## Free section %d.\nwritten by hand\n", i);
	}
	compact =
		item_journal_compact(arena, buf_str(&journal), STR("audit/old.md"), STR("2026-11-16T16:00:00Z"), &old);
	CHECK(old.ptr && compact.len < JOURNAL_COMPACT_BYTES);
	buf_init(&all, arena, 2 * MIB);
	buf_add(&all, old);
	buf_add(&all, compact);
	for (int i = 0; i < 60; i++) {
		CHECK_INT(count_of(buf_str(&all), arena_printf(arena, "outcome: result %d. ", i).ptr), 1);
		CHECK_INT(count_of(compact, arena_printf(arena, "<!-- handoff:%d -->\n", i).ptr), 1);
		CHECK(count_of(compact, arena_printf(arena, "care %d.\n", i).ptr) == 1);
		if (i % 10 == 0)
			CHECK_INT(
				count_of(compact, arena_printf(arena, "## Free section %d.\nwritten by hand\n", i).ptr),
				1);
	}
	CHECK_STR(item_journal_compact(arena, compact, STR("x"), STR("t"), &old), compact);
	CHECK(!old.ptr);
}

TEST(no_tool_can_rewrite_the_journal_or_the_audit)
{
	struct bench b;
	const char *id, *lane;

	bench_open(&b, "native");
	id = new_item(&b);
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	ok(&b, "item_write",
	   "{'item':'%s','path':'JOURNAL.md','content':'## Hello\\n<!-- handoff:1 "
	   "-->','mode':'append','thread_id':'%s'}",
	   id, lane);
	ok(&b, "item_write", "{'item':'%s','path':'x.md','content':'x','thread_id':'%s'}", id, lane);
	CHECK_HAS(read_task(&b, id, "JOURNAL.md"), STR("## Hello\n(!-- handoff:1 -->"));
	CHECK_HAS(read_task(&b, id, arena_printf(b.arena, "audit/execution-%s.log", lane).ptr),
		  STR("tool=item_write status=success"));
	no(&b, "item_write", "JOURNAL.md", "{'item':'%s','path':'JOURNAL.md','content':'x','mode':'overwrite'}", id);
	no(&b, "item_delete", "JOURNAL.md", "{'item':'%s','path':'JOURNAL.md'}", id);
	no(&b, "item_delete", "audit", "{'item':'%s','path':'audit','recursive':true}", id);
	no(&b, "item_move", "", "{'item':'%s','from':'x.md','to':'audit/x.md'}", id);
	bench_close(&b);
}

/* --- lanes --- */

TEST(lanes_work_one_after_the_other_and_the_coordinator_decides)
{
	struct bench b;
	const struct jv *v;
	const char *id, *boss, *first, *second;

	bench_open(&b, "native");
	id = new_item(&b);
	boss = new_thread(&b, "coordinator", "Decides who does what and in which order");
	first = new_thread(&b, "execution", "Writes the texts that people ask for");
	second = new_thread(&b, "execution", "Draws pictures and charts from given numbers");
	no(&b, "create_thread", "nearly the same",
	   "{'title':'t','responsibility':'writes texts that the people ask for'}");
	no(&b, "create_thread", "at least 30 characters", "{'title':'t','responsibility':'writes'}");
	ok(&b, "assign_item", "{'item':'%s','thread_id':'%s'}", id, first);
	v = ok(&b, "assign_item", "{'item':'%s','thread_id':'%s'}", id, second);
	CHECK_STR(jv_get_str(jv_get(v, "item"), "assigned_thread_id"), str_of(first));
	v = ok(&b, "update_assignment", "{'item':'%s','status':'in_progress','thread_id':'%s'}", id, first);
	CHECK_STR(jv_get_str(jv_get(v, "item"), "status"), STR("in_progress"));
	ok(&b, "item_write", "{'item':'%s','path':'handoff/a','content':'x'}", id);
	v = ok(&b, "update_assignment",
	       "{'item':'%s','status':'completed','thread_id':'%s'," DONE ",'artifacts':['handoff/a']}", id, first);
	CHECK_STR(jv_get_str(jv_get(v, "item"), "assigned_thread_id"), str_of(second));
	CHECK_INT(jv_count(jv_get(jv_get(v, "item"), "deliverables")), 0);
	CHECK_HAS(read_task(&b, id, "JOURNAL.md"), STR("<!-- assignment:"));
	v = ok(&b, "update_assignment", "{'item':'%s','status':'blocked','thread_id':'%s'," DONE "}", id, second);
	CHECK_STR(jv_get_str(jv_get(v, "item"), "status"), STR("pending"));
	CHECK_STR(jv_get_str(jv_get(v, "item"), "assigned_thread_id"), str_of(boss));
	no(&b, "update_assignment", "has ended", "{'item':'%s','status':'claimed','thread_id':'%s'}", id, second);
	bench_close(&b);
}

TEST(a_session_that_is_bound_to_a_lane_cannot_act_as_another)
{
	struct bench b;
	const char *id, *boss, *lane;

	bench_open(&b, "native");
	id = new_item(&b);
	boss = new_thread(&b, "coordinator", "Decides who does what and in which order");
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	b.ctx.actor.session = str_of(lane);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a','content':'x'}", id);
	no(&b, "update_item", "can only set an item to blocked",
	   "{'item':'%s','status':'completed','thread_id':'%s'," DONE ",'artifacts':['artifacts/a']}", id, boss);
	ok(&b, "update_item", "{'item':'%s','status':'blocked'," DONE "}", id);
	bench_close(&b);
}

TEST(a_lane_acts_as_itself_on_other_boards_too)
{
	struct bench b;
	const char *id, *lane;

	bench_open(&b, "native");
	ok(&b, "set_board", "{'board':'drafts','title':'Drafts'}");
	id = new_item(&b);
	lane = arena_cstr(b.arena, jv_get_str(jv_get(ok(&b, "create_thread",
							"{'board':'drafts','title':'Writer','purpose':'execution',"
							"'responsibility':'Writes the texts that people ask for'}"),
						     "thread"),
					      "id"));
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a','content':'x'}", id);
	b.ctx.actor.session = str_of(lane);
	no(&b, "update_item", "can only set an item to blocked",
	   "{'item':'%s','status':'completed'," DONE ",'artifacts':['artifacts/a']}", id);
	bench_close(&b);
}

TEST(an_agent_of_wacht_means_the_board_of_its_lane)
{
	struct bench b;
	const struct jv *v;
	const char *lane;

	bench_open_disk(&b, "native");
	ok(&b, "set_board", "{'board':'drafts','title':'Drafts'}");
	lane = arena_cstr(b.arena, jv_get_str(jv_get(ok(&b, "create_thread",
							"{'board':'drafts','title':'Boss','purpose':'coordinator',"
							"'responsibility':'Decides who does what and in which order'}"),
						     "thread"),
					      "id"));
	bench_reopen(&b, (struct workspace_opts){.session = str_of(lane)}, "wacht");
	v = good(&b, "create_project_task", "{'title':'Compare the drafts'}");
	CHECK_STR(jv_get_str(jv_get(v, "item"), "board_id"), STR("drafts"));
	good(&b, "get_project_task",
	     arena_printf(b.arena, "{'task_key':'%.*s'}", STR_ARG(jv_get_str(jv_get(v, "item"), "task_key"))).ptr);
	good(&b, "write_file", "{'path':'/workspace/a.md','content':'mine'}");
	v = good(&b, "list_threads", "{}");
	CHECK_INT((int64_t)jv_count(jv_get(v, "threads")), 1);
	bench_close(&b);
}

TEST(a_delegated_item_is_completed_by_its_lane)
{
	struct bench b;
	const struct jv *v;
	const char *id, *lane;

	bench_open(&b, "native");
	lane = arena_cstr(
		b.arena,
		id_of(good(&b, "create_thread",
			   "{'title':'w','assigned_agent_name':'writer','responsibility':'Writes the texts that "
			   "people ask for'}"),
		      "thread"));
	v = ok(&b, "delegate_item",
	       "{'title':'x','thread_id':'%s','description':'Read all of the drafts that are in the folder, and write "
	       "a table that says "
	       "which of them is the best one.'}",
	       lane);
	id = arena_cstr(b.arena, jv_get_str(v, "board_item_id"));
	CHECK_HAS(jv_get_str(v, "task_key"), STR("DELEGATE-"));
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a','content':'x'}", id);
	v = ok(&b, "update_assignment",
	       "{'item':'%s','status':'completed','thread_id':'%s'," DONE ",'artifacts':['artifacts/a']}", id, lane);
	CHECK_STR(jv_get_str(jv_get(v, "item"), "status"), STR("completed"));
	CHECK_INT(jv_count(jv_get(jv_get(v, "item"), "deliverables")), 1);
	bench_close(&b);
}

TEST(a_comment_of_a_person_stops_the_work_until_the_coordinator_decides)
{
	struct bench b;
	const struct jv *v;
	const char *id, *boss, *lane, *comment;

	bench_open(&b, "native");
	id = new_item(&b);
	boss = new_thread(&b, "coordinator", "Decides who does what and in which order");
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	ok(&b, "assign_item", "{'item':'%s','thread_id':'%s'}", id, lane);
	ok(&b, "update_assignment", "{'item':'%s','status':'in_progress','thread_id':'%s'}", id, lane);
	comment = arena_cstr(b.arena,
			     id_of(ok(&b, "comment_item", "{'item':'%s','body':'not like this'}", id), "comment"));
	v = jv_get(ok(&b, "get_item", "{'item':'%s'}", id), "item");
	CHECK_STR(jv_get_str(v, "assigned_thread_id"), str_of(boss));
	CHECK_STR(jv_get_str(jv_get(v, "routing"), "cause"), STR("user_feedback"));
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "assignments"), 0), "status"), STR("pending"));
	ok(&b, "resolve_comment", "{'item':'%s','comment_id':'%s','resolution_summary':'rewritten','thread_id':'%s'}",
	   id, comment, boss);
	v = jv_at(jv_get(ok(&b, "list_comments", "{'item':'%s'}", id), "comments"), 0);
	CHECK_STR(jv_get_str(v, "resolution_summary"), STR("rewritten"));
	bench_close(&b);
}

TEST(lanes_are_told_of_items_that_they_watch)
{
	struct bench b;
	const struct jv *v;
	const char *id, *lane;

	bench_open(&b, "native");
	id = new_item(&b);
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	ok(&b, "watch_item", "{'item':'%s','thread_id':'%s','events':['cancelled']}", id, lane);
	ok(&b, "update_item", "{'item':'%s','status':'cancelled'}", id);
	v = jv_get(ok(&b, "list_notices", "{'thread_id':'%s'}", lane), "notices");
	CHECK_INT(jv_count(v), 1);
	ok(&b, "read_notices", "{'ids':['%s']}", jv_get_str(jv_at(v, 0), "id").ptr);
	CHECK_INT(jv_count(jv_get(ok(&b, "list_notices", "{'thread_id':'%s','unread':true}", lane), "notices")), 0);
	bench_close(&b);
}

/* --- files, caps, mounts, the archive --- */

TEST(a_task_holds_no_more_than_its_cap)
{
	struct bench b;
	const char *id;

	bench_open_disk(&b, "native");
	configure(&b, "boards:\n  item_bytes: 1000\n  item_files: 4\n");
	id = new_item(&b);
	ok(&b, "item_write", "{'item':'%s','path':'a','content':'%0900d'}", id, 0);
	no(&b, "item_write", "", "{'item':'%s','path':'b','content':'%0200d'}", id, 0);
	CHECK_INT(b.result.err.kind, ERR_QUOTA);
	ok(&b, "item_delete", "{'item':'%s','path':'a'}", id);
	ok(&b, "item_write", "{'item':'%s','path':'b','content':'%0200d'}", id, 0);
	bench_close(&b);
}

TEST(a_deployment_says_what_a_task_may_hold_unless_agent_yaml_does)
{
	struct bench b;
	const char *id;
	struct workspace_opts opts = {.create = true, .name = STR("test"), .relaxed = true};

	bench_init(&b);
	b.dir = temp_dir_new();
	put_file(&b, b.dir, "stead.yaml", "store: disk:./store\nboards: {item_bytes: 1KB, item_files: 3}\n");
	opts.store_url = arena_printf(b.arena, "config:%s/stead.yaml", b.dir);
	bench_start(&b, &opts, "native");
	id = new_item(&b);
	no(&b, "item_write", "", "{'item':'%s','path':'b','content':'%02000d'}", id, 0);
	CHECK_INT(b.result.err.kind, ERR_QUOTA);
	bench_stop(&b);
	put_file(&b, b.dir, "store/test/agent.yaml", "boards: {item_bytes: 1MB}\n");
	bench_start(&b, &opts, "native");
	ok(&b, "item_write", "{'item':'%s','path':'b','content':'%02000d'}", id, 0);
	ok(&b, "item_write", "{'item':'%s','path':'c','content':'c'}", id);
	no(&b, "item_write", "", "{'item':'%s','path':'d','content':'d'}", id);
	CHECK_INT(b.result.err.kind, ERR_QUOTA);
	bench_close(&b);
}

TEST(mounts_show_what_the_configuration_allows_and_nothing_else)
{
	struct bench b;
	const char *dir = temp_dir_new(), *id;
	struct store *other;
	struct ctx ctx = {0};
	struct err err = {0};

	bench_open_disk(&b, "native");
	ctx.arena = b.arena;
	CHECK_OK(store_disk_open(dir, &(struct store_disk_opts){.relaxed = true}, &other, &err), err);
	CHECK_OK(store_write(other, &ctx, (struct wpath){STR("q2/film.mp4")}, STR("film"), (struct store_cond){0}, NULL,
			     &err),
		 err);
	CHECK_OK(store_write(other, &ctx, (struct wpath){STR("q2/secret.txt")}, STR("secret"), (struct store_cond){0},
			     NULL, &err),
		 err);
	CHECK_OK(store_write(other, &ctx, (struct wpath){STR("q2/x/film.mp4")}, STR("secret"), (struct store_cond){0},
			     NULL, &err),
		 err);
	configure(&b, arena_printf(b.arena,
				   "boards:\n  item_bytes: 100\n  mounts:\n    default: {url: 'disk:%s'}\n    out: "
				   "{url: 'disk:%s', mode: rw}\n",
				   dir, dir)
			      .ptr);
	id = arena_cstr(
		b.arena,
		id_of(good(&b, "create_item",
			   "{'title':'x','mounts':[{'mount_path':'/task/source','s3_relative_key':'q2/"
			   "film.mp4','mode':'ro'},"
			   "{'mount_path':'/task/out','s3_relative_key':'results','source':'out','mode':'rw'}]}"),
		      "item"));
	CHECK_STR(jv_get_str(ok(&b, "item_read", "{'item':'%s','path':'/task/source/film.mp4'}", id), "content"),
		  STR("film"));
	ok(&b, "item_ls", "{'item':'%s'}", id);
	CHECK_HAS(b.result.text, STR("out/\nsource/"));
	no(&b, "item_read", "", "{'item':'%s','path':'/task/source/secret.txt'}", id);
	no(&b, "item_read", "", "{'item':'%s','path':'/task/source/x/film.mp4'}", id);
	no(&b, "item_write", "", "{'item':'%s','path':'/task/source/film.mp4','content':'x','mode':'overwrite'}", id);
	ok(&b, "item_write", "{'item':'%s','path':'/task/out/big','content':'%0500d'}", id, 0);
	CHECK_OK(store_stat(other, &ctx, (struct wpath){STR("results/big")}, NULL, &err), err);
	no(&b, "create_item", "boards.mounts",
	   "{'title':'x','mounts':[{'mount_path':'/task/a','s3_relative_key':'b','source':'none'}]}");
	no(&b, "create_item", "read-only",
	   "{'title':'x','mounts':[{'mount_path':'/task/a','s3_relative_key':'b','mode':'rw'}]}");
	no(&b, "create_item", "..", "{'title':'x','mounts':[{'mount_path':'/task/a','s3_relative_key':'../b'}]}");
	no(&b, "create_item", "below /task/", "{'title':'x','mounts':[{'mount_path':'/a','s3_relative_key':'b'}]}");
	no(&b, "create_item", "", "{'title':'x','mounts':[{'mount_path':'/task/a','url':'disk:/etc'}]}");
	store_destroy(other);
	bench_close(&b);
}

TEST(an_archived_item_frees_its_files_and_can_be_taken_back)
{
	struct bench b;
	const char *id;

	bench_open_disk(&b, "native");
	id = new_item(&b);
	ok(&b, "item_write", "{'item':'%s','path':'artifacts/a.md','content':'abc'}", id);
	ok(&b, "archive_item", "{'item':'%s'}", id);
	CHECK_HAS(b.result.text, STR("[pending, archived] Compare the drafts"));
	CHECK_STR(read_task(&b, id, "artifacts/a.md"), STR(""));
	CHECK_INT(jv_count(jv_get(good(&b, "list_items", "{}"), "items")), 0);
	CHECK_INT(jv_count(jv_get(good(&b, "list_items", "{'archived':true}"), "items")), 1);
	no(&b, "item_read", "is archived", "{'item':'%s','path':'artifacts/a.md'}", id);
	no(&b, "update_item", "is archived", "{'item':'%s','title':'y'}", id);
	ok(&b, "unarchive_item", "{'item':'%s'}", id);
	CHECK_STR(read_task(&b, id, "artifacts/a.md"), STR("abc"));
	CHECK_STR(read_task(&b, id, "TASK.md"), STR("# Compare the drafts\n\nWhich?\n"));
	no(&b, "unarchive_item", "is not archived", "{'item':'%s'}", id);
	bench_close(&b);
}

TEST(items_are_listed_in_pages_newest_first)
{
	struct bench b;
	const struct jv *page;
	char last[32] = "";

	bench_open(&b, "native");
	for (int i = 0; i < 25; i++)
		snprintf(last, sizeof(last), "%s", new_item(&b));
	ok(&b, "update_item", "{'item':'%s','status':'cancelled'}", last);
	page = good(&b, "list_items", "{'limit':10}");
	CHECK_INT(jv_get_int(page, "total", 0), 25);
	CHECK_INT(jv_count(jv_get(page, "items")), 10);
	page = ok(&b, "list_items", "{'limit':20,'cursor':'%s'}", arena_cstr(b.arena, jv_get_str(page, "next_cursor")));
	CHECK_INT(jv_count(jv_get(page, "items")), 15);
	CHECK(!jv_get(page, "next_cursor"));
	page = good(&b, "list_items", "{'status':'cancelled'}");
	CHECK_INT(jv_count(jv_get(page, "items")), 1);
	CHECK_STR(jv_get_str(jv_at(jv_get(page, "items"), 0), "id"), str_of(last));
	page = good(&b, "list_items", "{'limit':1}");
	CHECK_STR(jv_get_str(jv_at(jv_get(page, "items"), 0), "id"), str_of(last));
	CHECK_STR(id_of(ok(&b, "get_item", "{'item':'%s'}", last + 8), "item"), str_of(last));
	CHECK_STR(id_of(ok(&b, "get_item", "{'item':'TASK-%s'}", last), "item"), str_of(last));
	no(&b, "get_item", "list_items", "{'item':'../board'}");
	bench_close(&b);
}

TEST(answers_have_the_kind_of_their_question)
{
	static const struct {
		const char *question, *bad, *good;
	} cases[] = {
		{"{'text':'?','kind':'yes_no'}", "'yes'", "true"},
		{"{'text':'?','kind':'number'}", "'1'", "1.5"},
		{"{'text':'?','kind':'date'}", "'soon'", "'2026-11-16'"},
		{"{'text':'?','kind':'multi_choice','options':['a','b']}", "['a','c']", "['a','b']"},
		{"{'text':'?'}", "1", "'text'"},
	};
	struct bench b;

	bench_open(&b, "native");
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *id = new_item(&b);
		struct board_ref ref = {STR(""), str_of(id)};
		struct jv *fields, *item;
		struct err err = {0};

		ok(&b, "ask_user", "{'item':'%s','questions':[%s]}", id, cases[i].question);
		for (int k = 0; k < 2; k++) {
			char *text = (char *)arena_printf(b.arena, "{'answers':[{'question_id':'q1','value':%s}]}",
							  k ? cases[i].good : cases[i].bad)
					     .ptr;

			for (char *p = text; *p; p++)
				*p = *p == '\'' ? '"' : *p;
			CHECK_OK(jv_parse(b.arena, str_of(text), &fields, &err), err);
			if (k)
				CHECK_OK(board_question_answer(b.ws, &b.ctx, ref, fields, &item, &err), err);
			else
				CHECK_ERR(board_question_answer(b.ws, &b.ctx, ref, fields, &item, &err), err,
					  ERR_INVALID);
		}
		CHECK(jv_is_null(jv_get(item, "pending_question")));
	}
	bench_close(&b);
}

TEST(a_root_of_one_task_keeps_the_journal_from_all_file_tools)
{
	struct bench b;
	const char *id;

	bench_open_disk(&b, "native");
	id = new_item(&b);
	ok(&b, "add_journal", "{'item':'%s','text':'## Hello'}", id);
	bench_reopen(&b, (struct workspace_opts){.root = arena_printf(b.arena, "task:TASK-%s", id)}, "native");
	good(&b, "write_file", "{'path':'artifacts/a','content':'x'}");
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'TASK.md'}"), "content"),
		  STR("# Compare the drafts\n\nWhich?\n"));
	no(&b, "write_file", "JOURNAL.md", "{'path':'JOURNAL.md','content':'x','mode':'overwrite'}");
	no(&b, "append_file", "audit", "{'path':'audit/x.log','content':'x'}");
	CHECK_STR(read_task(&b, id, "artifacts/a"), STR("x"));
	bench_close(&b);
}

/* --- the dialect of Wacht --- */

TEST(an_agent_of_wacht_works_on_the_task_that_is_its_root)
{
	struct bench b;
	const struct jv *v;
	const char *id, *lane;

	bench_open_disk(&b, "native");
	id = new_item(&b);
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	ok(&b, "assign_item", "{'item':'%s','thread_id':'%s'}", id, lane);
	bench_reopen(
		&b, (struct workspace_opts){.root = arena_printf(b.arena, "task:TASK-%s", id), .session = str_of(lane)},
		"wacht");
	no(&b, "terminate_loop", "end it first", "{'summary':'done'}");
	good(&b, "write_file", "{'path':'/task/artifacts/summary.md','content':'short'}");
	no(&b, "update_project_task", "does not exist",
	   "{'status':'completed'," DONE ",'artifacts':['/task/artifacts/none.md']}");
	v = good(&b, "update_project_task",
		 "{'status':'completed'," DONE ",'artifacts':['/task/artifacts/summary.md']}");
	CHECK_STR(jv_get_str(jv_get(v, "assignment"), "status"), STR("completed"));
	CHECK_STR(jv_get_str(jv_get(v, "item"), "status"), STR("pending"));
	good(&b, "append_file", "{'path':'/task/JOURNAL.md','content':'## By hand'}");
	no(&b, "write_file", "JOURNAL.md", "{'path':'/task/JOURNAL.md','content':'x'}");
	good(&b, "terminate_loop", "{'summary':'done','next_actions':['review it']}");
	CHECK_HAS(jv_get_str(good(&b, "get_project_task", "{}"), "journal"), STR("## By hand"));
	CHECK_HAS(read_task(&b, id, "JOURNAL.md"), STR("outcome: All of it was compared"));
	bench_close(&b);
}

TEST(a_thread_of_wacht_keeps_files_of_its_own)
{
	struct bench b;
	const struct jv *v;
	const char *id, *lane;

	bench_open_disk(&b, "native");
	id = new_item(&b);
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	bench_reopen(
		&b, (struct workspace_opts){.root = arena_printf(b.arena, "task:TASK-%s", id), .session = str_of(lane)},
		"wacht");
	v = good(&b, "write_file", "{'path':'/workspace/notes/a.md','content':'mine'}");
	CHECK_STR(jv_get_str(v, "path"), STR("/workspace/notes/a.md"));
	good(&b, "append_file", "{'path':'/workspace/notes/a.md','content':'more'}");
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'/workspace/notes/a.md'}"), "content"), STR("mine\nmore"));
	CHECK_INT((int64_t)jv_count(jv_get(good(&b, "list_directory", "{'path':'/workspace/notes'}"), "entries")), 1);
	CHECK(!jv_get_bool(good(&b, "exists", "{'path':'/task/workspace/notes/a.md'}"), "exists", true));
	no(&b, "read_file", "..", "{'path':'/workspace/../x'}");
	bench_reopen(&b, (struct workspace_opts){.root = arena_printf(b.arena, "task:TASK-%s", id)}, "wacht");
	no(&b, "read_file", "bound to none", "{'path':'/workspace/notes/a.md'}");
	bench_close(&b);
}

TEST(the_prompt_of_a_thread_says_which_lane_it_is)
{
	struct bench b;
	const char *lane;

	bench_open_disk(&b, "native");
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	bench_reopen(&b, (struct workspace_opts){.session = str_of(lane)}, "native");
	CHECK_HAS(jv_get_str(ok(&b, "assemble_prompt", "{}"), "text"), STR("Writes the texts that people ask for"));
	ok(&b, "set_board", "{'board':'drafts','title':'Drafts'}");
	lane = arena_cstr(b.arena, jv_get_str(jv_get(ok(&b, "create_thread",
							"{'board':'drafts','title':'Reader','purpose':'review',"
							"'responsibility':'Reads every draft before it is sent'}"),
						     "thread"),
					      "id"));
	bench_reopen(&b, (struct workspace_opts){.session = str_of(lane)}, "native");
	CHECK_HAS(jv_get_str(ok(&b, "assemble_prompt", "{}"), "text"), STR("Reads every draft before it is sent"));
	bench_close(&b);
}

TEST(a_command_of_wacht_sees_what_is_mounted)
{
	enum sandbox_tier tier;
	struct bench b;
	const char *dir = temp_dir_new(), *id;
	struct err err = {0};
	struct workspace_opts opts = {0};

	if (sandbox_tier_choose(SANDBOX_AUTO, &tier, &err) != 0)
		SKIP("%.150s", err.msg);
	bench_open_disk(&b, "native");
	put_file(&b, dir, "in/film.txt", "film");
	configure(&b, arena_printf(b.arena, "boards: {mounts: {default: {url: 'disk:%s', mode: rw}}}\n", dir).ptr);
	id = arena_cstr(b.arena,
			id_of(good(&b, "create_item",
				   "{'title':'x','mounts':[{'mount_path':'/task/source','s3_relative_key':'in',"
				   "'mode':'rw'}]}"),
			      "item"));
	opts.root = arena_printf(b.arena, "task:TASK-%s", id);
	bench_reopen(&b, opts, "wacht");
	good(&b, "execute_command",
	     "{'command':'cat source/film.txt; echo seen > source/note; echo x > artifacts.txt'}");
	CHECK_HAS(b.result.text, STR("\"stdout\":\"film\""));
	CHECK_INT(access(arena_printf(b.arena, "%s/in/note", dir).ptr, F_OK), 0);
	CHECK_STR(read_task(&b, id, "artifacts.txt"), STR("x\n"));
	bench_close(&b);
}

TEST(every_tool_of_a_connection_to_a_task_sees_what_is_mounted)
{
	enum sandbox_tier tier;
	struct bench b;
	const char *dir = temp_dir_new(), *id;
	struct err err = {0};
	struct workspace_opts opts = {0};

	bench_open_disk(&b, "native");
	put_file(&b, dir, "in/film.txt", "film");
	configure(&b, arena_printf(b.arena, "boards: {mounts: {default: {url: 'disk:%s'}}}\n", dir).ptr);
	id = arena_cstr(b.arena,
			id_of(good(&b, "create_item",
				   "{'title':'x','mounts':[{'mount_path':'/task/source','s3_relative_key':'in'}]}"),
			      "item"));
	opts.root = arena_printf(b.arena, "task:TASK-%s", id);
	bench_reopen(&b, opts, "native");
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'source/film.txt'}"), "content"), STR("film"));
	refused(&b, "write_file", "{'path':'source/film.txt','content':'x'}", ERR_DENIED);
	good(&b, "write_file", "{'path':'own.txt','content':'own'}");
	if (sandbox_tier_choose(SANDBOX_AUTO, &tier, &err) != 0)
		SKIP("%.150s", err.msg);
	good(&b, "execute", "{'command':'pwd; cat source/film.txt own.txt; echo x > /task/made.txt'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("/task\nfilmown"));
	CHECK_STR(read_task(&b, id, "made.txt"), STR("x\n"));
	good(&b, "execute", "{'command':'cat film.txt','working_directory':'/task/source'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("film"));
	good(&b, "run_code", "{'code':'open(\\'/task/source/film.txt\\').read()'}");
	CHECK_HAS(b.result.text, STR("film"));
	good(&b, "start_job", "{'command':'cat source/film.txt'}");
	CHECK_STR(jv_get_str(good(&b, "wait_job", "{'job':1}"), "output"), STR("film"));
	opts.root = STR("task:TASK-1");
	bench_reopen(&b, opts, "native");
	refused(&b, "execute", "{'command':'ls'}", ERR_NOT_FOUND);
	bench_close(&b);
}

static size_t listed(struct bench *b, const char *args)
{
	return jv_count(jv_get(ok(b, "list_items", "%s", args), "items"));
}

static int refuse(struct item_edit *e, struct jv *item, struct err *err)
{
	(void)item;
	++*(int *)e->arg;
	return err_set(err, ERR_CONFLICT, "it is not possible now");
}

TEST(a_change_that_is_refused_as_a_conflict_is_not_tried_again)
{
	struct bench b;
	struct err err;
	int tries = 0;
	struct item_edit e = {.edit = refuse, .arg = &tries};

	bench_open(&b, "");
	CHECK_ERR(item_edit(b.ws, &b.ctx, (struct board_ref){STR(""), str_of(new_item(&b))}, &e, &err), err,
		  ERR_CONFLICT);
	CHECK_INT(tries, 1);
}

TEST(an_item_with_a_schedule_is_on_the_board_when_its_time_has_come_and_followed_by_the_next)
{
	struct bench b;
	const struct jv *item;
	const char *id;
	int64_t next;
	struct err err;

	bench_open(&b, "");
	no(&b, "create_item", "next_run_at", "{'title':'x','schedule_kind':'once','next_run_at':'soon'}");
	no(&b, "create_item", "interval_seconds",
	   "{'title':'x','schedule_kind':'interval','next_run_at':'2026-01-01T00:00:00Z','interval_seconds':1}");
	ok(&b, "create_item", "{'title':'Later','schedule_kind':'once','next_run_at':'2200-01-01T00:00:00Z'}");
	CHECK_INT(listed(&b, "{}"), 0);
	CHECK_INT(listed(&b, "{'scheduled':true}"), 1);
	item = ok(&b, "create_item",
		  "{'title':'Often','schedule_kind':'interval','next_run_at':'2026-01-01T00:00:00Z','interval_seconds':"
		  "3600}");
	id = arena_cstr(b.arena, id_of(item, "item"));
	CHECK_INT(listed(&b, "{}"), 1);
	CHECK_INT(listed(&b, "{}"), 1);
	CHECK_INT(listed(&b, "{'scheduled':true}"), 2);
	CHECK(jv_get_str(jv_get(ok(&b, "get_item", "{'item':'%s'}", id), "item"), "fired_at").len > 0);
	/* the next one comes by itself, in time */
	CHECK_OK(board_fire(b.ws, &b.ctx, clock_real_ns(), &next, &err), err);
	CHECK(next > clock_real_ns() && next <= clock_real_ns() + 3600 * NS_PER_S);
	CHECK_OK(board_fire(b.ws, &b.ctx, next, &next, &err), err);
	CHECK_INT(listed(&b, "{}"), 2);
}

TEST(the_items_of_a_series_share_a_directory_and_no_others_see_it)
{
	struct bench b;
	const char *first, *second = "", *other;
	int64_t next;
	struct err err;

	bench_open(&b, "");
	first = arena_cstr(b.arena, id_of(ok(&b, "create_item",
					     "{'title':'Often','schedule_kind':'interval','next_run_at':"
					     "'2026-01-01T00:00:00Z','interval_seconds':3600}"),
					  "item"));
	other = arena_cstr(b.arena, id_of(ok(&b, "create_item", "{'title':'Other'}"), "item"));
	CHECK_INT(listed(&b, "{}"), 2); /* which also makes the next one */
	for (const struct jv_member *m = jv_first(jv_get(ok(&b, "list_items", "{'scheduled':true}"), "items")); m;
	     m = m->next)
		if (jv_get_str(m->value, "scheduled_for").len && !jv_get_str(m->value, "fired_at").len)
			second = arena_cstr(b.arena, jv_get_str(m->value, "id"));
	ok(&b, "item_write", "{'item':'%s','path':'/task/shared/seen.txt','content':'one\\n'}", first);
	CHECK_OK(board_fire(b.ws, &b.ctx, clock_real_ns() + 7200 * NS_PER_S, &next, &err), err);
	ok(&b, "item_write", "{'item':'%s','path':'/shared/seen.txt','mode':'append','content':'two\\n'}", second);
	CHECK_STR(jv_get_str(ok(&b, "item_read", "{'item':'%s','path':'shared/seen.txt'}", first), "content"),
		  STR("one\ntwo\n"));
	no(&b, "item_read", "shared/seen.txt", "{'item':'%s','path':'/shared/seen.txt'}", other);
}

TEST(with_overlap_skip_nothing_new_comes_while_the_item_before_is_open)
{
	struct bench b;
	const char *id;
	int64_t next, at = clock_real_ns();
	struct err err;

	bench_open(&b, "");
	no(&b, "create_item", "overlap is for recurring items",
	   "{'title':'x','schedule_kind':'once','next_run_at':'2026-01-01T00:00:00Z','overlap':'skip'}");
	id = arena_cstr(b.arena, id_of(ok(&b, "create_item",
					  "{'title':'Often','schedule_kind':'interval','next_run_at':"
					  "'2026-01-01T00:00:00Z','interval_seconds':3600,'overlap':'skip'}"),
				       "item"));
	CHECK_INT(listed(&b, "{}"), 1);
	for (int i = 0; i < 3; i++) { /* its time comes and is left out, three times */
		CHECK_OK(board_fire(b.ws, &b.ctx, at, &next, &err), err);
		CHECK(next > at && next <= at + 3600 * NS_PER_S);
		at = next;
		CHECK_OK(board_fire(b.ws, &b.ctx, at, &next, &err), err);
		CHECK_INT(listed(&b, "{}"), 1);
		CHECK_INT(listed(&b, "{'scheduled':true}"), 1);
	}
	ok(&b, "update_item", "{'item':'%s','status':'cancelled'}", id);
	CHECK_OK(board_fire(b.ws, &b.ctx, at, &next, &err), err);
	CHECK_OK(board_fire(b.ws, &b.ctx, next, &next, &err), err);
	CHECK_INT(listed(&b, "{}"), 2);
	CHECK_INT(listed(&b, "{'scheduled':true}"), 1);
}

TEST(a_schedule_ends_with_clear_schedule_or_with_its_item)
{
	struct bench b;
	const char *id;
	int64_t next;
	struct err err;

	bench_open(&b, "");
	id = arena_cstr(b.arena,
			id_of(ok(&b, "create_item",
				 "{'title':'Later','schedule_kind':'once','next_run_at':'2200-01-01T00:00:00Z'}"),
			      "item"));
	ok(&b, "update_item", "{'item':'%s','clear_schedule':true}", id);
	CHECK_INT(listed(&b, "{}"), 1);
	id = arena_cstr(b.arena, id_of(ok(&b, "create_item",
					  "{'title':'Never','schedule_kind':'interval','next_run_at':"
					  "'2200-01-01T00:00:00Z','interval_seconds':60}"),
				       "item"));
	ok(&b, "archive_item", "{'item':'%s'}", id);
	CHECK_OK(board_fire(b.ws, &b.ctx, INT64_MAX - 1, &next, &err), err);
	CHECK_INT(next, INT64_MAX);
	CHECK_INT(listed(&b, "{}"), 1);
	CHECK_INT(listed(&b, "{'scheduled':true}"), 0);
}

TEST(a_coordinator_stops_only_when_somebody_goes_on)
{
	struct bench b;
	const char *id, *boss, *lane, *comment;

	bench_open_disk(&b, "native");
	id = new_item(&b);
	boss = new_thread(&b, "coordinator", "Decides who does what and in which order");
	lane = new_thread(&b, "execution", "Writes the texts that people ask for");
	comment = arena_cstr(b.arena, id_of(ok(&b, "comment_item", "{'item':'%s','body':'hurry'}", id), "comment"));
	bench_reopen(
		&b, (struct workspace_opts){.root = arena_printf(b.arena, "task:TASK-%s", id), .session = str_of(boss)},
		"wacht");
	no(&b, "terminate_loop", "is not resolved", "{'summary':'done'}");
	ok(&b, "resolve_user_feedback", "{'comment_id':'%s','resolution_summary':'we do'}", comment);
	no(&b, "assign_project_task", "TASK.md", "{'thread_id':'%s'}", lane);
	ok(&b, "write_file",
	   "{'path':'/task/TASK.md','content':'# Compare\\n\\nRead both drafts.\\nSay which one is "
	   "better.\\n%0100d\\n'}",
	   0);
	no(&b, "terminate_loop", "nobody works on", "{'summary':'done'}");
	ok(&b, "assign_project_task", "{'thread_id':'%s'}", lane);
	good(&b, "terminate_loop", "{'summary':'assigned'}");
	bench_close(&b);
}
