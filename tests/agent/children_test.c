/* SPDX-License-Identifier: Apache-2.0 */
/* Subagents: what a parent gets back, where they work, the limits of a tree, and what survives the process. */
#include "agent/agent_fix.h"
#include "base/clock.h"
#include "home/plans/plans.h"

static void write_home(struct bench *b, const char *path, struct str text)
{
	struct err err;

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, text, (struct store_cond){0},
			     NULL, &err),
		 err);
}

/* subagents/worker.md with these answers and lines of its head. */
static void declare(struct bench *b, const char *head, const char *const *answers)
{
	write_home(b, "subagents/worker.md",
		   arena_printf(b->arena, "---\ndescription: Works.\nmodel: \"%.*s\"\n%s---\nYou are a worker.\n",
				STR_ARG(recording(b->arena, answers)), head));
}

static void configure(struct bench *b, const char *text)
{
	write_home(b, "agent.yaml", str_of(text));
	bench_reopen(b, (struct workspace_opts){0}, "");
}

static struct str output_of(const struct agent_result *result, size_t step, size_t call)
{
	return jv_get_str(jv_at(jv_get(jv_at(result->steps, step), "calls"), call), "output");
}

static struct jv *records(struct bench *b)
{
	struct jv *tasks = NULL;
	struct str text;
	struct err err;

	CHECK_OK(store_read(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agents/default/tasks/s.json")},
			    STORE_WHOLE, 1 << 20, &text, NULL, &err),
		 err);
	CHECK_OK(jv_parse(b->arena, text, &tasks, &err), err);
	return tasks;
}

static const struct jv *record_at(struct bench *b, size_t index)
{
	const struct jv_member *m = jv_first(records(b));

	while (index-- > 0)
		m = m->next;
	return m->value;
}

#define SPAWN(id, args) CALL(id, "spawn_agent", "{'agent_id':'worker','task':'Do it.'" args "}")

TEST(a_subagent_reports_to_its_parent_from_a_session_of_its_own)
{
	const char *const child[] = {"'the report'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "'thanks'", NULL};
	struct agent_result result;
	struct session_page page;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_HAS(output_of(&result, 0, 0), STR("status: ok\nreply:\nthe report"));
	CHECK_STR(jv_get_str(record_at(&b, 0), "status"), STR("COMPLETED"));
	CHECK_INT(jv_get_int(record_at(&b, 0), "tokens", 0), 11);
	CHECK_OK(session_history(b.ws, &b.ctx,
				 (struct session_ref){STR("worker"), jv_get_str(record_at(&b, 0), "subSessionId")}, 0,
				 100, true, &page, &err),
		 err);
	CHECK_INT(jv_count(page.entries), 2);
	CHECK_INT(count_entries(&b, "notice"), 0);
}

TEST(a_background_task_is_told_once_in_the_next_turn)
{
	const char *const child[] = {"'late report'", NULL};
	const char *const top[] = {"[" SPAWN("a", ",'timeout_seconds':0") "]", "'first'", "'second'", "'third'", NULL};
	struct agent_opts opts = {0};
	struct agent_turn turn = {.session = STR("s"), .text = STR("Go")};
	struct agent_result result;
	struct agent *agent;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	opts.model = recording(b.arena, top);
	CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
	CHECK_OK(agent_run(agent, &b.ctx, &turn, &result, &err), err);
	CHECK_HAS(output_of(&result, 0, 0), STR("status: accepted\ntask_id: task_"));
	CHECK(agent_wait(agent, &b.ctx, turn.session));
	turn.text = STR("And?");
	CHECK_OK(agent_run(agent, &b.ctx, &turn, &result, &err), err);
	turn.text = STR("More?");
	CHECK_OK(agent_run(agent, &b.ctx, &turn, &result, &err), err);
	agent_close(agent);
	CHECK_INT(count_entries(&b, "notice"), 1);
	CHECK(jv_get_str(record_at(&b, 0), "deliveredAt").len > 0);
}

TEST(a_call_that_reads_sees_what_the_subagents_called_before_it_did)
{
	const char *const child[] = {"'the report'", NULL};
	const char *const top[] = {
		"[" SPAWN("a", ",'output_path':'out.md'") "," CALL("b", "read_file", "{'path':'out.md'}") "," CALL(
			"c", "list_agents", "{}") "," CALL("d", "wait_agents", "{'wait_all':true}") "]",
		"'thanks'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_STR(output_of(&result, 0, 1), STR("the report"));
	CHECK_STARTS(output_of(&result, 0, 2), STR("1 task"));
	CHECK_STR(output_of(&result, 0, 3), STR("no task is running"));
}

TEST(a_result_that_cannot_be_a_file_is_refused_before_the_task_begins)
{
	const char *const child[] = {"'the report'", NULL};
	const char *const top[] = {
		"[" SPAWN("a", ",'output_path':'../out.md'") "," SPAWN("b", ",'output_path':'/'") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_STARTS(output_of(&result, 0, 0), STR("output_path: the path \"../out.md\""));
	CHECK_STARTS(output_of(&result, 0, 1), STR("output_path: name a file"));
	CHECK_INT((int)result.usage.output, 2); /* of the two answers of the parent */
}

TEST(an_isolated_subagent_writes_in_its_own_place_and_gives_its_result_as_a_file)
{
	const char *const child[] = {"[" CALL("w", "write_file", "{'path':'out.md','content':'mine'}") "]", "'done'",
				     NULL};
	const char *const top[] = {"[" SPAWN("a", ",'output_path':'out.md'") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;
	struct str text;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_STR(content_of(&b, "out.md"), STR("mine"));
	CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, (struct wpath){STR("agents/worker/workspace/out.md")},
			    STORE_WHOLE, 100, &text, NULL, &err),
		 err);
}

TEST(the_changes_of_a_subagent_in_a_fork_are_merged)
{
	const char *const child[] = {"[" CALL("w", "write_file", "{'path':'new.md','content':'forked'}") "]", "'done'",
				     NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "workspace: fork\n", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_HAS(output_of(&result, 0, 0), STR("files merged: 1"));
	CHECK_STR(content_of(&b, "new.md"), STR("forked"));
}

TEST(a_subagent_has_only_the_tools_that_are_declared_and_starts_none_itself)
{
	const char *const child[] = {"[" CALL("a", "write_file", "{'path':'x','content':'1'}") "," SPAWN(
					     "b", "") "," CALL("c", "ls", "{}") "]",
				     "'done'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "'ok'", NULL};
	struct agent_result result;
	struct session_page page;
	struct bench b;
	struct err err;
	size_t errors = 0;

	bench_open_disk(&b, "");
	declare(&b, "workspace: shared\ntools: [ls, read_file]\n", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_OK(session_history(b.ws, &b.ctx,
				 (struct session_ref){STR("worker"), jv_get_str(record_at(&b, 0), "subSessionId")}, 0,
				 100, false, &page, &err),
		 err);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		errors += jv_get_bool(m->value, "is_error", false);
	CHECK_INT(errors, 2);
	CHECK_INT(jv_count(records(&b)), 1);
}

TEST(the_limits_hold_for_the_whole_tree)
{
	const char *const child[] = {"'report'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "[" SPAWN("b", "") "]", "[" SPAWN("c", "") "]", "'ok'",
				   NULL};
	static const struct {
		const char *config, *says;
	} cases[] = {{"subagents:\n  max_tasks: 2\n", "subagents.max_tasks is 2"},
		     {"subagents:\n  max_tokens: 20\n", "subagents.max_tokens is 20"}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct agent_result result;
		struct bench b;
		struct err err;

		bench_open_disk(&b, "");
		declare(&b, "", child);
		configure(&b, cases[i].config);
		CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
		CHECK_HAS(output_of(&result, 1, 0), STR("status: ok"));
		CHECK_HAS(output_of(&result, 2, 0), str_of(cases[i].says));
	}
}

TEST(a_task_that_waits_counts_as_running)
{
	const char *const child[] = {"[" CALL("l", "ls", "{}") "]", "'done'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "[" SPAWN("b", "") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	configure(&b, "subagents:\n  max_running: 1\n  timeout_seconds: 60\n"
		      "policy: {rules: [{id: care, effect: ask, tool: ls}]}\n");
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_HAS(output_of(&result, 0, 0), STR("status: waiting"));
	CHECK_STR(jv_get_str(jv_at(jv_get(record_at(&b, 0), "pendingConfirms"), 0), "rule"), STR("care"));
	CHECK_HAS(output_of(&result, 1, 0), STR("subagents.max_running is 1"));
	{
		int64_t begun, ends;

		CHECK(clock_parse(jv_get_str(record_at(&b, 0), "createdAt"), &begun));
		CHECK(clock_parse(jv_get_str(record_at(&b, 0), "endsAt"), &ends));
		CHECK((ends - begun) / 1000000000 <= 62);
	}
}

TEST(subagents_are_nested_as_deep_as_the_configuration_says_or_not_at_all)
{
	const char *const child[] = {"[" CALL("s", "spawn_agent", "{'task':'Deeper.'}") "]", "'done'", NULL};
	const char *const deepest[] = {"'deep'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "'ok'", NULL};
	static const struct {
		const char *config;
		size_t tasks;
	} cases[] = {{"max_depth: 2", 2}, {"max_depth: 1", 1}};
	struct agent_result result;
	struct bench b;
	struct err err;

	for (size_t i = 0; i < COUNT(cases); i++) {
		bench_open_disk(&b, "");
		declare(&b, "", child);
		configure(&b, arena_printf(b.arena, "subagents:\n  %s\n  model: \"%.*s\"\n", cases[i].config,
					   STR_ARG(recording(b.arena, deepest)))
				      .ptr);
		CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
		CHECK_INT(jv_count(records(&b)), cases[i].tasks);
	}
	configure(&b, "subagents:\n  enabled: false\n");
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_HAS(output_of(&result, 0, 0), STR("there is no tool"));
}

TEST(a_list_that_denies_openpaws_spawn_or_its_group_denies_all_tools_of_subagents)
{
	static const struct {
		const char *config;
		bool is_there;
	} cases[] = {{"builtins: {deny: [spawn]}", false},
		     {"builtins: {deny: ['group:automation']}", false},
		     {"builtins: {deny: ['group:subagents']}", false},
		     {"builtins: {spawn: {enabled: false}}", false},
		     {"builtins: {allow: [plan]}", false},
		     {"tools: {allow: [ls]}", false},
		     {"builtins: {deny: [plan]}", true},
		     {"builtins: {allow: [spawn]}", true},
		     {"tools: {allow: [ls, spawn]}", true},
		     {"tools: {allow: [spawn_agent]}", true}};
	const char *const child[] = {"'done'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "", child);
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool was_refused;

		configure(&b, cases[i].config);
		CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
		was_refused = str_find(output_of(&result, 0, 0), STR("there is no tool"), 0) != SIZE_MAX;
		if (was_refused == cases[i].is_there)
			TEST_FAIL("%s: %.*s", cases[i].config, STR_ARG(output_of(&result, 0, 0)));
	}
}

TEST(a_task_whose_process_ended_goes_on_and_its_parent_gets_the_same_task)
{
	const char *const begun[] = {"[" CALL("w", "append_file", "{'path':'x','content':'1'}") "]", NULL};
	const char *const rest[] = {"'resumed'", NULL};
	const char *const top[] = {"[" SPAWN("a", "") "]", "[" SPAWN("b", ",'label':'again'") "]", "'ok'", NULL};
	struct agent_result result;
	struct bench b;
	struct err err;
	struct jv *tasks, *record;
	struct buf text;

	bench_open_disk(&b, "");
	declare(&b, "workspace: shared\n", begun); /* ends too early: the model fails after the first call */
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	tasks = records(&b);
	record = (struct jv *)jv_first(tasks)->value;
	CHECK_STR(jv_get_str(record, "status"), STR("FAILED"));
	jv_set_str(b.arena, record, "status", STR("RUNNING")); /* as a kill leaves it */
	jv_set_str(b.arena, record, "model", recording(b.arena, rest));
	jv_remove(record, "deliveredAt");
	buf_init(&text, b.arena, 1 << 20);
	jv_write(&text, tasks);
	write_home(&b, "agents/default/tasks/s.json", buf_str(&text));
	bench_reopen(&b, (struct workspace_opts){0}, "");
	{
		const char *const later[] = {"[" CALL("w", "wait_agents", "{'wait_all':true}") "]", "'end'", NULL};

		CHECK_OK(say(&b, recording(b.arena, later), "Go on", &result, &err), err);
	}
	CHECK_HAS(output_of(&result, 0, 0), STR("resumed"));
	CHECK_STR(content_of(&b, "x"), STR("11")); /* once for each of the two tasks, not again */
}

TEST(a_task_of_a_planning_parent_plans_too)
{
	const char *const child[] = {"[" CALL("w", "write_file", "{'path':'x','content':'1'}") "]", "'done'", NULL};
	const char *const top[] = {"[" CALL("p", "plan_enter", "{}") "]", "[" SPAWN("a", "") "]", "'ok'", NULL};
	struct agent_result result;
	struct store_stat stat;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	declare(&b, "workspace: shared\n", child);
	CHECK_OK(say(&b, recording(b.arena, top), "Go", &result, &err), err);
	CHECK_HAS(output_of(&result, 1, 0), STR("status: ok"));
	CHECK_ERR(store_stat(workspace_files(b.ws), &b.ctx, (struct wpath){STR("x")}, &stat, &err), err, ERR_NOT_FOUND);
}

TEST(the_words_of_other_systems_work)
{
	const char *const child[] = {"'report'", NULL};
	const char *const agentscope[] = {
		"[" CALL("a", "agent_spawn", "{'agent_id':'worker','task':'t','label':'w'}") "]",
		"[" CALL("b", "task_list", "{}") "," CALL("c", "agent_list", "{}") "]", "'ok'", NULL};
	const char *const omnicore[] = {
		"[" CALL("a", "spawn_subagents",
			 "{'subagents':[{'name':'n','role':'r','task':'t','output_path':'n.md'},"
			 "{'name':'m','role':'r','task':'t','output_path':'m.md'}]}") "," CALL("b", "delegate_worker",
											       "{'task':'t'}") "]",
		"'ok'", NULL};
	const struct {
		const char *dialect;
		const char *const *answers;
		const char *says;
	} cases[] = {{"agentscope", agentscope, "status: ok"}, {"omnicoreagent", omnicore, "output_path: n.md"}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct agent_turn turn = {.session = STR("s"), .text = STR("Go")};
		struct agent_opts opts = {.dialect = str_of(cases[i].dialect)};
		struct agent_result result;
		struct agent *agent;
		struct bench b;
		struct err err;

		bench_open_disk(&b, "");
		declare(&b, "", child);
		configure(&b,
			  arena_printf(b.arena, "subagents:\n  model: \"%.*s\"\n", STR_ARG(recording(b.arena, child)))
				  .ptr);
		opts.model = recording(b.arena, cases[i].answers);
		CHECK_OK(agent_open(b.ws, &opts, &agent, &err), err);
		CHECK_OK(agent_run(agent, &b.ctx, &turn, &result, &err), err);
		agent_close(agent);
		CHECK_HAS(output_of(&result, 0, 0), str_of(cases[i].says));
	}
}
