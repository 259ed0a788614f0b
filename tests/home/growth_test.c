/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the cost of one more, and of one looked up, grows with how many there are: not at all. Each test makes the same
 * calls among a few and among many, and compares the work they take (store_calls.h).
 */
#include "store_calls.h"
#include "tool/tool_fix.h"

#include "home/search/search.h"
#include "revisions/revisions.h"
#include "workspace/workspace_parts.h"

#define FEW  100
#define MANY 10000

static void put_home(struct bench *b, struct str path, struct str bytes)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){path}, bytes, (struct store_cond){0}, NULL,
			     &err),
		 err);
}

/* The work of one call. */
static struct work cost(struct bench *b, const char *tool, const char *json)
{
	work = (struct work){0};
	good(b, tool, json);
	return work;
}

/* At most twice the work, with room for a few small files. */
static void check_same(const char *what, struct work few, struct work many)
{
	if (many.calls > 2 * few.calls + 4 || many.bytes > 2 * few.bytes + 8192 ||
	    many.entries > 2 * few.entries + 128 || many.parses > 2 * few.parses)
		TEST_FAIL("%s: %zu calls, %zu bytes, %zu entries, %zu parses among %d; %zu, %zu, %zu, %zu among %d",
			  what, few.calls, few.bytes, few.entries, few.parses, FEW, many.calls, many.bytes,
			  many.entries, many.parses, MANY);
}

/* --- tasks --- */

static void put_tasks(struct bench *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		unsigned id = i * 2654435761u;

		put_home(b, arena_printf(b->arena, "tasks/%02x/%08x-0000-4000-8000-000000000000.yaml", id >> 24, id),
			 arena_printf(b->arena,
				      "tasks:\n  - id: %08x-0000-4000-8000-000000000000\n    status: awaiting_check\n"
				      "    priority: normal\n    description: task number %u\n",
				      id, i));
	}
}

TEST(a_task_costs_the_same_among_a_hundred_and_among_ten_thousand)
{
	static const char *const calls[][2] = {
		{"create_task", "{'description':'one more'}"},
		{"get_task", "{'task_id':'9e3779b1-0000-4000-8000-000000000000'}"},
		{"get_task", "{'task_id':'9e3779'}"},
		{"update_task", "{'task_id':'9e3779b1','notes':'seen'}"},
	};
	struct work few[COUNT(calls)];
	struct bench b;

	bench_open(&b, "native");
	for (int i = 0; i < 40; i++)
		good(&b, "create_task",
		     "{'description':'some task that fills the first file, with a number of words'}");
	put_tasks(&b, 1, FEW);
	for (size_t i = 0; i < COUNT(calls); i++)
		few[i] = cost(&b, calls[i][0], calls[i][1]);
	put_tasks(&b, FEW, MANY);
	for (size_t i = 0; i < COUNT(calls); i++)
		check_same(calls[i][0], few[i], cost(&b, calls[i][0], calls[i][1]));
	bench_close(&b);
}

/* --- boards --- */

static void put_items(struct bench *b, const char *board, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		put_home(b, arena_printf(b->arena, "boards/%s/items/18820287378%08u.json", board, i),
			 arena_printf(b->arena,
				      "{\"id\":\"18820287378%08u\",\"task_key\":\"TASK-18820287378%08u\",\"title\":"
				      "\"number %u\","
				      "\"status\":\"pending\",\"priority\":\"neutral\",\"assignments\":[],"
				      "\"deliverables\":[]}",
				      i, i, i));
}

/* The arguments with another item each time: what is done to one twice is not the same. */
static const char *about(struct bench *b, const char *json, char digit)
{
	char *text = (char *)arena_cstr(b->arena, str_of(json)), *at = strchr(text, '$');

	if (at)
		*at = digit;
	return text;
}

TEST(an_item_costs_the_same_among_a_hundred_and_among_ten_thousand)
{
	static const char *const calls[][2] = {
		{"create_item", "{'title':'one more','description':'a brief'}"},
		{"get_item", "{'item':'188202873780000000$'}"},
		{"item_write", "{'item':'188202873780000000$','path':'artifacts/a','content':'x','mode':'overwrite'}"},
		{"update_item", "{'item':'188202873780000000$','status':'blocked','result_summary':'It is blocked by "
				"something that is not known.'}"},
		{"comment_item", "{'item':'188202873780000000$','body':'why?'}"},
		{"update_item", "{'item':'188202873780000000$','status':'pending'}"},
	};
	struct work few[COUNT(calls)];
	struct bench b;

	bench_open(&b, "native");
	put_items(&b, "other", 1, MANY); /* the log is as long in both cases */
	put_items(&b, "main", 1, FEW);
	for (size_t i = 0; i < COUNT(calls); i++)
		few[i] = cost(&b, calls[i][0], about(&b, calls[i][1], '1'));
	put_items(&b, "main", FEW, MANY);
	for (size_t i = 0; i < COUNT(calls); i++)
		check_same(calls[i][0], few[i], cost(&b, calls[i][0], about(&b, calls[i][1], '2')));
	bench_close(&b);
}

/* --- memory --- */

static void save_facts(struct bench *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i += 50) {
		struct jv *args = jv_object(b->arena);
		struct buf text;

		buf_init(&text, b->arena, 1 << 20);
		for (unsigned k = i; k < i + 50; k++)
			buf_printf(&text, "- The customer number%u prefers item%u on most days of the week.\n", k,
				   k * 7);
		jv_set_str(b->arena, args, "content", buf_str(&text));
		call_jv(b, "memory_save", args);
	}
}

static uint64_t memory_bytes(struct bench *b)
{
	static const char *const dirs[] = {"memory", "memory/archive"};
	struct store_list_req req = {.limit = 1000};
	struct store_page page;
	struct store_stat stat;
	struct err err = {0};
	uint64_t sum = 0;

	CHECK_OK(store_stat(workspace_home(b->ws), &b->ctx, (struct wpath){STR("MEMORY.md")}, &stat, &err), err);
	CHECK(stat.size <= 4 * 4000); /* memory.max_tokens */
	sum = stat.size;
	for (size_t d = 0; d < COUNT(dirs); d++) {
		CHECK_OK(store_list(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(dirs[d])}, &req, &page, &err),
			 err);
		for (size_t i = 0; i < page.count; i++)
			sum += page.entries[i].stat.kind == STORE_FILE ? page.entries[i].stat.size : 0;
	}
	return sum;
}

TEST(a_fact_costs_the_same_among_a_hundred_and_among_ten_thousand)
{
	struct work save, search, list;
	struct bench b;

	bench_open(&b, "native");
	save_facts(&b, 0, FEW);
	good(&b, "memory_search", "{'query':'number42'}");
	save = cost(&b, "memory_save", "{'content':'- Ann likes tea.'}");
	cost(&b, "memory_search", "{'query':'customer'}");
	search = cost(&b, "memory_search", "{'query':'customer'}");
	list = cost(&b, "memory_list", "{}");
	save_facts(&b, FEW, MANY);
	CHECK(revisions_kept_bytes(workspace_shared(b.ws)) <= 4 * memory_bytes(&b));
	good(&b, "memory_search", "{'query':'number42'}");
	check_same("memory_save", save, cost(&b, "memory_save", "{'content':'- Bo likes coffee.'}"));
	cost(&b, "memory_search", "{'query':'customer'}");
	work = cost(&b, "memory_search", "{'query':'customer'}");
	CHECK(work.calls <= 2 * search.calls + 10); /* each of ten hits is read from its own part */
	CHECK(work.bytes <= 2 * search.bytes + 10 * 32 * 1024);
	check_same("memory_list", list, cost(&b, "memory_list", "{}"));
	bench_close(&b);
}

TEST(a_fact_that_left_MEMORY_md_is_still_found_and_can_be_forgotten)
{
	struct bench b;
	const struct jv *hit;
	char args[100];

	bench_open(&b, "native");
	good(&b, "memory_save", "{'content':'- The lighthouse keeper is called Ida.'}");
	save_facts(&b, 0, 1000);
	hit = jv_at(jv_get(good(&b, "memory_search", "{'query':'lighthouse'}"), "matches"), 0);
	CHECK_STR(jv_get_str(hit, "text"), STR("The lighthouse keeper is called Ida."));
	CHECK_STARTS(jv_get_str(hit, "path"), STR("memory/"));
	snprintf(args, sizeof(args), "{'id':'%.*s'}", STR_ARG(jv_get_str(hit, "id")));
	CHECK(jv_get_bool(jv_get(good(&b, "memory_forget", args), "history"), "covered", false));
	CHECK_INT(jv_count(jv_get(good(&b, "memory_search", "{'query':'lighthouse','all':true}"), "matches")), 0);
	bench_close(&b);
}

/* --- sessions --- */

static void put_sessions(struct bench *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		put_home(
			b, arena_printf(b->arena, "agents/a/sessions/s%05u.log.jsonl", i),
			arena_printf(
				b->arena,
				"{\"type\":\"session\",\"session\":\"s%05u\",\"agent\":\"a\",\"timestamp\":"
				"\"2026-11-15T09:30:00Z\"}\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"%u\","
				"\"timestamp\":\"2026-11-15T09:30:%02uZ\"}\n",
				i, i, i % 60));
}

#define SAY "{'agent':'a','session':'new%d','entries':[{'type':'message','role':'user','content':'hello'}]}"

TEST(a_list_of_sessions_is_a_page_among_ten_thousand)
{
	struct work append, list, again;
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	put_sessions(&b, 0, FEW);
	good(&b, "session_list", "{'agent':'a'}");
	append = cost(&b, "session_append", arena_printf(b.arena, SAY, 1).ptr);
	list = cost(&b, "session_list", "{'agent':'a'}");
	again = cost(&b, "session_list", "{'agent':'a'}");
	put_sessions(&b, FEW, MANY);
	good(&b, "session_list", "{'agent':'a'}");
	check_same("session_append", append, cost(&b, "session_append", arena_printf(b.arena, SAY, 2).ptr));
	work = cost(&b, "session_list", "{'agent':'a'}");
	CHECK_INT(work.lists, list.lists);
	check_same("session_list", list, work);
	check_same("session_list again", again, cost(&b, "session_list", "{'agent':'a'}"));
	v = good(&b, "session_list", "{'agent':'a'}");
	CHECK_INT(jv_get_int(v, "total", 0), MANY + 2);
	CHECK_INT(jv_count(jv_get(v, "sessions")), 50);
	CHECK_STARTS(jv_get_str(jv_at(jv_get(v, "sessions"), 0), "session"), STR("new"));
	CHECK_STARTS(jv_get_str(jv_at(jv_get(v, "sessions"), 1), "session"), STR("new"));
	bench_close(&b);
}

TEST(entries_that_come_together_are_one_change)
{
	struct bench b;
	struct err err = {0};
	uint64_t before, after;

	bench_open(&b, "native");
	good(&b, "session_append", arena_printf(b.arena, SAY, 1).ptr);
	CHECK_OK(revisions_head(workspace_shared(b.ws), &b.ctx, &before, &err), err);
	good(&b, "session_append",
	     "{'agent':'a','session':'new1','entries':[{'type':'message','content':'1'},{'type':'message','content':'2'"
	     "},"
	     "{'type':'tool_use','name':'x'}]}");
	CHECK_OK(revisions_head(workspace_shared(b.ws), &b.ctx, &after, &err), err);
	CHECK_INT(after - before, 1);
	refused(&b, "session_append", "{'agent':'a','session':'new1','entries':[{'type':'message'},{'type':''}]}",
		ERR_INVALID);
	CHECK_INT(jv_count(jv_get(good(&b, "session_history", "{'agent':'a','session':'new1'}"), "entries")), 4);
	bench_close(&b);
}

TEST(a_log_that_grew_is_indexed_from_its_last_part_on)
{
	struct bench b;
	struct buf log;

	bench_open(&b, "native");
	buf_init(&log, b.arena, 1 << 24);
	buf_lit(&log, "{\"type\":\"session\",\"session\":\"long one\",\"agent\":\"a\"}\n");
	for (int i = 0; i < MANY; i++)
		buf_printf(&log,
			   "{\"type\":\"message\",\"id\":\"e%d\",\"role\":\"user\",\"content\":\"about word%d\"}\n", i,
			   i);
	put_home(&b, STR("agents/a/sessions/long.log.jsonl"), buf_str(&log));
	good(&b, "session_search", "{'query':'word4321'}");
	CHECK_HAS(b.result.text, STR("long one"));
	good(&b, "session_append",
	     "{'agent':'a','session':'long','entries':[{'type':'message','role':'user','content':'a quokka'}]}");
	work = (struct work){0};
	good(&b, "session_search", "{'query':'quokka'}");
	CHECK_INT(jv_count(jv_get(b.result.value, "hits")), 1);
	CHECK_HAS(b.result.text, STR("long one"));
	CHECK(work.bytes < 64 * 1024);
	good(&b, "session_search", "{'query':'word4321'}");
	CHECK_INT(jv_count(jv_get(b.result.value, "hits")), 1);
	bench_close(&b);
}

TEST(a_log_that_was_replaced_or_removed_leaves_no_part_behind)
{
	struct bench b;
	struct err err = {0};
	struct buf log;
	struct wpath path = {STR("agents/a/sessions/long.log.jsonl")};

	bench_open(&b, "native");
	buf_init(&log, b.arena, 1 << 24);
	for (int i = 0; i < 2000; i++)
		buf_printf(&log, "{\"type\":\"message\",\"id\":\"e%d\",\"content\":\"about word%d\"}\n", i, i);
	put_home(&b, path.s, buf_str(&log));
	good(&b, "session_search", "{'query':'word1999'}");
	CHECK_INT(jv_count(jv_get(b.result.value, "hits")), 1);
	CHECK_INT(jv_count(jv_get(good(&b, "session_search", "{'query':'\\\"word0\\\"'}"), "hits")), 1);
	put_home(&b, path.s, STR("{\"type\":\"message\",\"content\":\"a tapir\"}\n"));
	CHECK_INT(jv_count(jv_get(good(&b, "session_search", "{'query':'about'}"), "hits")), 0);
	CHECK_INT(jv_count(jv_get(good(&b, "session_search", "{'query':'tapir'}"), "hits")), 1);
	put_home(&b, path.s, buf_str(&log));
	CHECK_INT(jv_count(jv_get(good(&b, "session_search", "{'query':'word3'}"), "hits")), 1);
	CHECK_OK(store_remove(workspace_home(b.ws), &b.ctx, path, false, (struct store_cond){0}, NULL, &err), err);
	CHECK_INT(jv_count(jv_get(good(&b, "session_search", "{'query':'about'}"), "hits")), 0);
	bench_close(&b);
}

/* --- artifacts --- */

#define ARTIFACT "find_20261115_093000_%016u"

static void put_artifacts(struct bench *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		put_home(b, arena_printf(b->arena, "artifacts/" ARTIFACT ".txt", i), STR("a line\nanother line\n"));
}

TEST(an_artifact_is_read_by_its_id_without_a_list)
{
	const char *read, *prefix;
	struct work few, park;
	struct bench b;

	bench_open(&b, "native");
	read = arena_printf(b.arena, "{'artifact_id':'" ARTIFACT "'}", 7).ptr;
	prefix = "{'artifact_id':'find_20261115_093000_000000000000'}";
	put_artifacts(&b, 0, FEW);
	few = cost(&b, "read_artifact", read);
	good(&b, "park_result", "{'content':'x','always':true}");
	park = cost(&b, "park_result", "{'content':'x','always':true}");
	put_artifacts(&b, FEW, MANY);
	CHECK_INT(few.lists, 0);
	check_same("read_artifact", few, cost(&b, "read_artifact", read));
	CHECK_INT(cost(&b, "tail_artifact", read).lists, 0);
	check_same("park_result", park, cost(&b, "park_result", "{'content':'x','always':true}"));
	refused(&b, "read_artifact", prefix, ERR_INVALID); /* a beginning is looked for among all */
	bench_close(&b);
}

TEST(another_process_parks_without_a_list_of_artifacts)
{
	struct bench b;

	bench_open_disk(&b, "native");
	good(&b, "park_result", "{'content':'x','always':true}");
	put_artifacts(&b, 0, 300);
	bench_reopen(&b, (struct workspace_opts){.root = dialect_root(STR("native"))}, "native");
	CHECK(cost(&b, "park_result", "{'content':'x','always':true}").entries < 50);
	bench_close(&b);
}

/* --- skills --- */

static void put_skills(struct bench *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		put_home(b, arena_printf(b->arena, "skills/skill-%u/SKILL.md", i),
			 arena_printf(b->arena, "---\nname: skill-%u\ndescription: does %u things\n---\nDo it.\n", i,
				      i));
}

TEST(a_skill_costs_the_same_among_a_hundred_and_among_two_thousand)
{
	struct work load, propose;
	struct bench b;

	bench_open(&b, "native");
	put_skills(&b, 0, FEW);
	load = cost(&b, "load_skill", "{'name':'skill-7'}");
	propose = cost(&b, "propose_skill", "{'name':'one-more','description':'does it','body':'Do it.'}");
	put_skills(&b, FEW, 2000);
	check_same("load_skill", load, cost(&b, "load_skill", "{'name':'skill-7'}"));
	check_same("propose_skill", propose,
		   cost(&b, "propose_skill", "{'name':'and-another','description':'does it','body':'Do it.'}"));
	bench_close(&b);
}

TEST(the_skill_in_the_directory_of_its_name_counts_before_another_of_that_name)
{
	struct bench b;

	bench_open(&b, "native");
	put_home(&b, STR("skills/aaa/SKILL.md"), STR("---\nname: paint\ndescription: other\n---\nFirst.\n"));
	put_home(&b, STR("skills/paint/SKILL.md"), STR("---\nname: paint\ndescription: right\n---\nSecond.\n"));
	CHECK_HAS(jv_get_str(good(&b, "load_skill", "{'name':'paint'}"), "content"), STR("Second."));
	good(&b, "list_skills", "{}");
	CHECK_HAS(b.result.text, STR("right"));
	bench_close(&b);
}

/* --- a new process --- */

static void put_notes(struct bench *b, unsigned count)
{
	for (unsigned i = 1; i <= count; i++)
		put_home(b, arena_printf(b->arena, "notes/ann/%04u-note.md", i),
			 arena_printf(b->arena, "---\ntitle: Note %u\nkind: finding\n---\nabout word%u\n", i, i));
}

TEST(a_new_process_searches_and_lists_notes_without_looking_at_each)
{
	struct workspace_opts opts = {.root = dialect_root(STR("native"))};
	struct bench b;

	bench_open_disk(&b, "native");
	put_notes(&b, 1500);
	good(&b, "search", "{'query':'word77'}");
	good(&b, "list_notes", "{'limit':5}");
	bench_reopen(&b, opts, "native");
	put_home(&b, STR("notes/ann/2001-late.md"), STR("---\ntitle: Late\nkind: finding\n---\na quokka\n"));
	work = cost(&b, "search", "{'query':'word77'}");
	CHECK_INT(work.lists, 0);
	CHECK(work.calls < 20);
	CHECK_HAS(b.result.text, STR("0077-note"));
	good(&b, "search", "{'query':'quokka'}");
	CHECK_HAS(b.result.text, STR("2001-late"));
	work = cost(&b, "list_notes", "{'limit':5}");
	CHECK_INT(work.lists, 0);
	CHECK(work.calls < 20);
	CHECK_INT(jv_get_int(b.result.value, "total", 0), 1501);
	bench_close(&b);
}
