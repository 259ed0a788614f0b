/* SPDX-License-Identifier: Apache-2.0 */
/* Plan mode and the to-do list. */
#include "tool/tool_fix.h"

TEST(while_a_plan_is_made_nothing_else_changes)
{
	struct bench b;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a.md','content':'a'}");
	refused(&b, "plan_exit", "{}", ERR_INVALID);
	good(&b, "plan_enter", "{}");
	CHECK(str_find(refused(&b, "write_file", "{'path':'b.md','content':'b'}", ERR_DENIED), STR("plan_exit"), 0) !=
	      SIZE_MAX);
	refused(&b, "delete_file", "{'path':'a.md'}", ERR_DENIED);
	refused(&b, "create_task", "{'description':'x'}", ERR_DENIED);
	good(&b, "read_file", "{'path':'a.md'}");
	good(&b, "grep", "{'pattern':'a'}");
	refused(&b, "plan_exit", "{}", ERR_INVALID); /* nothing is planned yet */
	good(&b, "plan_write", "{'content':'# Plan'}");
	CHECK_STR(jv_get_str(good(&b, "plan_read", "{}"), "content"), STR("# Plan"));
	good(&b, "todo_write", "{'todos':[{'content':'x'}]}");
	good(&b, "plan_exit", "{'summary':'do x'}");
	good(&b, "write_file", "{'path':'b.md','content':'b'}");
	bench_close(&b);
}

TEST(plan_mode_is_one_sessions_own)
{
	struct bench b;

	bench_open(&b, "native");
	b.ctx.actor = (struct actor){.agent = STR("a"), .session = STR("one")};
	good(&b, "plan_enter", "{}");
	good(&b, "plan_write", "{'content':'of one'}");
	b.ctx.actor.session = STR("two");
	good(&b, "write_file", "{'path':'b.md','content':'b'}");
	CHECK(!jv_get_bool(good(&b, "plan_read", "{}"), "exists", true));
	b.ctx.actor.session = STR("one");
	refused(&b, "write_file", "{'path':'c.md','content':'c'}", ERR_DENIED);
	CHECK_STR(jv_get_str(good(&b, "plan_read", "{}"), "content"), STR("of one"));
	bench_close(&b);
}

TEST(the_list_keeps_ids_and_one_item_at_a_time)
{
	struct bench b;
	const struct jv *v;
	struct str id;

	bench_open(&b, "native");
	v = good(&b, "todo_write", "{'todos':[{'content':'one','status':'in_progress'},{'content':'two'}]}");
	CHECK_INT(jv_get_int(v, "open", 0), 2);
	CHECK_STR(b.result.text, STR("2 open\n- [~] one\n- [ ] two"));
	id = jv_get_str(jv_at(jv_get(v, "todos"), 1), "id");
	v = good(&b, "todo_write",
		 "{'todos':[{'content':'two','status':'in_progress'},{'content':'one','status':'completed'}]}");
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "todos"), 0), "id"), id);
	refused(&b, "todo_write",
		"{'todos':[{'content':'a','status':'in_progress'},{'content':'b','status':'in_progress'}]}",
		ERR_INVALID);
	refused(&b, "todo_write", "{'todos':[{'content':'a','status':'done'}]}", ERR_INVALID);
	refused(&b, "todo_write", "{'todos':[{'content':'  '}]}", ERR_INVALID);
	CHECK_INT(jv_count(jv_get(good(&b, "todo_read", "{}"), "todos")), 2);
	good(&b, "todo_write", "{'todos':[]}");
	CHECK_INT(jv_count(jv_get(good(&b, "todo_read", "{}"), "todos")), 0);
	bench_close(&b);
}

TEST(evidence_that_names_a_file_must_be_there)
{
	struct bench b;

	bench_open(&b, "native");
	refused(&b, "todo_write", "{'todos':[{'content':'report','status':'completed','evidence':'out/report.md'}]}",
		ERR_INVALID);
	good(&b, "write_file", "{'path':'out/report.md','content':'r'}");
	good(&b, "todo_write", "{'todos':[{'content':'report','status':'completed','evidence':'out/report.md'}]}");
	CHECK_STR(b.result.text, STR("0 open\n- [x] report (out/report.md)"));
	good(&b, "todo_write", "{'todos':[{'content':'call Ann','status':'completed','evidence':'she said yes'}]}");
	bench_close(&b);
}

TEST(other_systems_agents_plan_by_their_names)
{
	struct bench b;

	bench_open(&b, "openpaw");
	good(&b, "write_plan", "{'steps':[{'step':'look','status':'completed'},{'step':'do','status':'in_progress'}]}");
	good(&b, "read_plan", "{}");
	CHECK_STR(b.result.text, STR("Plan:\n- [x] look\n- [>] do"));
	bench_close(&b);
	bench_open(&b, "agentscope");
	good(&b, "plan_enter", "{}");
	refused(&b, "write_file", "{'path':'a.md','content':'a'}", ERR_DENIED);
	CHECK(good(&b, "plan_write", "{'content':'p'}") == NULL);
	good(&b, "plan_exit", "{}");
	bench_close(&b);
}
