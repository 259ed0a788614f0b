/* SPDX-License-Identifier: Apache-2.0 */
/* Subagents as files. */
#include "tool/tool_fix.h"

#include "home/subagents/subagents.h"

static void keep(struct bench *b, const char *path, struct str bytes)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, bytes,
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static struct jv *parsed(struct arena *arena, const char *head)
{
	struct str text = arena_printf(arena, "---\ndescription: d\n%s---\nYou are.\n", head);
	struct err err = {0};
	struct jv *v;

	CHECK_OK(subagent_parse(arena, STR("rev"), text, &v, &err), err);
	return v;
}

TEST(every_key_and_alias_of_a_declaration_is_understood)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *v = parsed(arena, "model: anthropic:x\nmaxIters: 7\ntemperature: 0.5\ntopP: 1\nvariant: high\nmode: "
				     "ALL\nhidden: true\nexposeToUser: true\ntools: read_file, grep\nskills: [a, b]\n");

	CHECK_STR(jv_get_str(v, "model"), STR("anthropic:x"));
	CHECK_INT(jv_get_int(v, "steps", 0), 7);
	CHECK_STR(jv_get_str(v, "variant"), STR("high"));
	CHECK_STR(jv_get_str(v, "mode"), STR("all"));
	CHECK(jv_get_bool(v, "hidden", false) && jv_get_bool(v, "expose_to_user", false));
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "tools"), 1)), STR("grep"));
	CHECK_INT(jv_count(jv_get(v, "skills")), 2);
	CHECK(jv_get(v, "temperature") && jv_get(v, "top_p"));
	CHECK(jv_get(v, "warnings") == NULL);
	CHECK_STR(jv_get_str(v, "prompt"), STR("You are."));
	v = parsed(arena, "steps: 3\ntop_p: 0.1\nexpose_to_user: false\n");
	CHECK_INT(jv_get_int(v, "steps", 0), 3);
	v = parsed(arena, "");
	CHECK_INT(jv_get_int(v, "steps", 0), 10);
	CHECK_STR(jv_get_str(v, "mode"), STR("subagent"));
	v = parsed(arena, "temprature: 1\n");
	CHECK_STR(jv_str_of(jv_at(jv_get(v, "warnings"), 0)),
		  STR("unknown key \"temprature\"; did you mean \"temperature\"?"));
}

TEST(where_a_subagent_works_follows_from_path_and_mode)
{
	static const struct {
		const char *head, *root;
	} cases[] = {
		{"", "agents/rev/workspace"},
		{"workspace:\n  mode: isolated\n", "agents/rev/workspace"},
		{"workspace: shared\n", "."},
		{"workspace.mode: shared\n", "."},
		{"workspace:\n  mode: Shared\n  path: teams/x\n", "."},
		{"workspace:\n  path: teams/x\n", "teams/x"},
		{"workspace.path: /teams//x/\n", "teams/x"},
	};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_STR(jv_get_str(jv_get(parsed(arena, cases[i].head), "workspace"), "root"), str_of(cases[i].root));
}

TEST(three_hyphens_in_a_value_end_nothing)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err = {0};
	struct jv *v;

	CHECK_OK(subagent_parse(
			 arena, STR("x"),
			 STR("---\ndescription: \"a --- b\"\nvariant: |\n  one\n  ---\n  two\n---\nbody --- end\n"), &v,
			 &err),
		 err);
	CHECK_STR(jv_get_str(v, "description"), STR("a --- b"));
	CHECK_STR(jv_get_str(v, "variant"), STR("one\n---\ntwo"));
	CHECK_STR(jv_get_str(v, "prompt"), STR("body --- end"));
}

TEST(a_wrong_declaration_is_refused_with_its_line)
{
	static const char *const heads[] = {
		"description: 7",
		"description: d\nsteps: 0",
		"description: d\nsteps: many",
		"model: x",
		"description: d\nmode: other",
		"description: d\ntemperature: 3",
		"description: ''",
		"description: d\ntools: {}",
		"description: d\nhidden: perhaps",
		"- a",
		"description: d\ntools: [1]",
		"description: d\nworkspace: {path: ../x}",
		"description: [",
		"description: d\ntop_p: -1",
		"description: d\nsteps: 1\nmaxIters: 2",
		"a: b: c",
		"description: d\nmodel: []",
		"description: d\nworkspace.mode: half",
	};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct err err = {0};
	struct jv *v;

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		struct str text = arena_printf(arena, "---\n%s\n---\nx\n", heads[i]);

		if (subagent_parse(arena, STR("x"), text, &v, &err) != -ERR_INVALID)
			TEST_FAIL("\"%s\" was taken", heads[i]);
	}
	CHECK_INT(subagent_parse(arena, STR("x"), STR("no head"), &v, &err), -ERR_INVALID);
	CHECK_INT(subagent_parse(arena, STR("../x"), STR("---\ndescription: d\n---\n"), &v, &err), -ERR_INVALID);
}

TEST(one_bad_file_is_told_of_and_users_have_their_own)
{
	struct bench b;
	const struct jv *v;

	bench_open_disk(&b, "native");
	keep(&b, "subagents/reviewer.md", STR("---\ndescription: Reviews <code>.\n---\nYou review.\n"));
	keep(&b, "subagents/bad.md", STR("---\nmodel: x\n---\n"));
	keep(&b, "subagents/team.md", STR("---\ndescription: Team.\nworkspace: {path: teams/t}\n---\nignored\n"));
	keep(&b, "subagents/deep/no.md", STR("---\ndescription: not looked at\n---\n"));
	keep(&b, "teams/t/AGENTS.md", STR("You are the team."));
	keep(&b, "users/ann/subagents/reviewer.md", STR("---\ndescription: Ann's.\nhidden: true\n---\nx\n"));
	v = good(&b, "list_subagents", "{}");
	CHECK_INT(jv_count(jv_get(v, "subagents")), 2);
	CHECK_INT(jv_count(jv_get(v, "problems")), 1);
	CHECK_STR(jv_get_str(good(&b, "get_subagent", "{'id':'reviewer'}"), "prompt"), STR("You review."));
	CHECK_STR(jv_get_str(good(&b, "get_subagent", "{'id':'team'}"), "prompt"), STR("You are the team."));
	refused(&b, "get_subagent", "{'id':'../agent'}", ERR_NOT_FOUND);
	refused(&b, "get_subagent", "{'id':'bad'}", ERR_INVALID);
	bench_reopen(&b, (struct workspace_opts){.user = STR("ann")}, "native");
	CHECK_STR(jv_get_str(good(&b, "get_subagent", "{'id':'reviewer'}"), "description"), STR("Ann's."));
	bench_close(&b);
}
