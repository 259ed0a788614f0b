/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page about AgentScope's workspace shows, through the dialect: the layout, tools.json with comments, skills
 * that a user overrides, a subagent's declaration, memory, sessions and plans.
 */
#include "tool/tool_fix.h"

static void put_home(struct workspace *ws, struct ctx *ctx, const char *path, const char *text)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(ws), ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static void open_as(struct bench *b, const char *user)
{
	struct workspace_opts opts = {.store_url = arena_printf(b->arena, "disk:%s", b->dir),
				      .name = STR("assistant"),
				      .user = str_of(user),
				      .agent = STR("helper"),
				      .create = true,
				      .relaxed = true};

	dialect_opts(STR("agentscope"), &opts);
	bench_start(b, &opts, "agentscope");
}

static void begin(struct bench *b)
{
	bench_init(b);
	b->dir = temp_dir_new();
	open_as(b, "");
	put_home(b->ws, &b->ctx, "AGENTS.md", "You review code.\n");
	put_home(b->ws, &b->ctx, "knowledge/KNOWLEDGE.md", "# Domain\nWe build bridges.\n");
	put_home(b->ws, &b->ctx, "skills/code-reviewer/SKILL.md",
		 "---\nname: code-reviewer\ndescription: Reviews a change.\n---\nLook for bugs.\n");
	put_home(b->ws, &b->ctx, "subagents/code-reviewer.md",
		 "---\ndescription: Reviews pull requests. Use it for style and checks.\nworkspace:\n  mode: isolated "
		 "# or shared\n"
		 "model: some-model # optional\ntools: [read_file, grep_files]\n---\nYou are a reviewer.\n");
}

TEST(tools_json_with_comments_allows_and_denies)
{
	struct bench b;

	begin(&b);
	put_home(b.ws, &b.ctx, "tools.json",
		 "{\n// what is left\n\"allow\": [\"read_file\", \"grep_files\", \"execute\"],\n\"deny\": "
		 "[\"write_file\"],\n}\n");
	bench_stop(&b);
	open_as(&b, "");
	CHECK_INT(toolset_count(b.set), 2); /* a command could write, too */
	CHECK(toolset_find(b.set, STR("read_file")) != NULL);
	CHECK(toolset_find(b.set, STR("write_file")) == NULL);
	bench_close(&b);
}

TEST(a_skill_is_loaded_and_a_users_own_wins)
{
	struct bench b;

	begin(&b);
	good(&b, "load_skill_through_path", "{'skillId':'code-reviewer','path':'SKILL.md'}");
	CHECK_HAS(b.result.text, STR("Look for bugs."));
	bench_stop(&b);
	open_as(&b, "alice");
	good(&b, "load_skill_through_path", "{'skillId':'code-reviewer','path':'SKILL.md'}");
	put_home(b.ws, &b.ctx, "skills/code-reviewer/SKILL.md",
		 "---\nname: code-reviewer\ndescription: Alice's way.\n---\nLook for tests.\n");
	good(&b, "load_skill_through_path", "{'skillId':'code-reviewer','path':'SKILL.md'}");
	CHECK_HAS(b.result.text, STR("Look for tests."));
	bench_stop(&b);
	open_as(&b, "bob");
	good(&b, "load_skill_through_path", "{'skillId':'code-reviewer','path':'SKILL.md'}");
	CHECK_HAS(b.result.text, STR("Look for bugs."));
	bench_close(&b);
}

TEST(what_is_saved_is_found_and_read_by_lines)
{
	struct bench b;

	begin(&b);
	good(&b, "memory_save", "{'content':'- The bridge opens in May\\n- Ann leads the project'}");
	CHECK_HAS(b.result.text, STR("Saved 2 memories to MEMORY.md"));
	good(&b, "memory_search", "{'query':'bridge'}");
	CHECK_HAS(b.result.text, STR("The bridge opens in May"));
	good(&b, "memory_get", "{'path':'MEMORY.md','startLine':1,'endLine':5}");
	refused(&b, "memory_get", "{'path':'../AGENTS.md','startLine':1,'endLine':5}", ERR_INVALID);
	bench_close(&b);
}

TEST(a_plan_is_made_before_the_work)
{
	struct bench b;

	begin(&b);
	good(&b, "plan_enter", "{}");
	refused(&b, "write_file", "{'path':'files/x.md','content':'x'}", ERR_DENIED);
	good(&b, "list_files", "{'path':'knowledge'}");
	good(&b, "plan_write", "{'content':'# Plan'}");
	good(&b, "todo_write",
	     "{'todos':[{'content':'look','status':'completed'},{'content':'do','status':'in_progress'}]}");
	good(&b, "plan_exit", "{}");
	good(&b, "write_file", "{'path':'files/x.md','content':'x'}");
	good(&b, "read_file", "{'path':'plans/PLAN.md'}");
	CHECK_HAS(b.result.text, STR("# Plan"));
	bench_close(&b);
}
