/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools a client gets, and in which form arguments may come. */
#include "tool_fix.h"

#define FILES "ls read_file write_file append_file edit_file delete_file move_file copy_file glob grep"
#define PAST  "history diff restore undo"

static struct toolset *choose(struct bench *b, const char *sets, bool read_only)
{
	struct toolset_choice choice = {str_of(sets), read_only};
	struct toolset *set;
	struct err err = {0};

	CHECK_OK(toolset_choose(b->set, &choice, &set, &err), err);
	test_defer(toolset_destroy, set);
	return set;
}

/* True when the set has exactly these tools, in any order. */
static bool is_exactly(const struct toolset *set, const char *names)
{
	struct str rest = str_of(names), name;
	size_t count = 0;

	for (; str_cut(&rest, ' ', &name); count++)
		if (!toolset_find(set, name))
			TEST_FAIL("%.*s is missing", STR_ARG(name));
	CHECK_INT(toolset_count(set), count);
	return true;
}

static void open_files(struct bench *b)
{
	struct workspace_opts opts = {.store_url = STR("memory:"),
				      .name = STR("test"),
				      .files_dir = str_of(temp_dir_new()),
				      .create = true,
				      .relaxed = true};

	bench_init(b);
	bench_start(b, &opts, "native");
}

TEST(a_directory_has_fifteen_tools_by_default)
{
	struct bench b;

	open_files(&b);
	CHECK(is_exactly(choose(&b, "", false), FILES " file_info " PAST));
	CHECK(is_exactly(choose(&b, "default", false), FILES " file_info " PAST));
}

TEST(a_workspace_has_twenty_five_tools_by_default)
{
	struct bench b;

	bench_open(&b, "native");
	CHECK(is_exactly(choose(&b, "", false),
			 FILES " " PAST " search memory_save memory_search note read_note search_notes create_task "
			       "list_tasks update_task list_skills load_skill"));
}

TEST(no_tool_is_offered_where_it_cannot_work)
{
	struct bench b, home;

	open_files(&b);
	CHECK(!toolset_find(choose(&b, "all", false), STR("fork")));
	CHECK(!toolset_find(choose(&b, "all", false), STR("merge")));
	bench_open(&home, "native");
	CHECK(toolset_find(choose(&home, "forks", false), STR("fork")));
}

TEST(tools_are_chosen_by_their_name_their_family_or_a_part_of_it)
{
	struct bench b;

	bench_open(&b, "native");
	CHECK(is_exactly(choose(&b, "grep, list_tasks", false), "grep list_tasks"));
	CHECK(is_exactly(choose(&b, "search,forks", false), "search fork merge"));
	CHECK(is_exactly(choose(&b, "group:knowledge", false), "knowledge_list read_knowledge"));
	CHECK_INT(toolset_count(choose(&b, "all", false)), toolset_count(b.set));
	CHECK_INT(toolset_count(choose(&b, "default,plans", false)), 25 + 6);
}

TEST(read_only_leaves_what_changes_nothing)
{
	struct bench b;
	struct toolset *set;

	bench_open(&b, "native");
	set = choose(&b, "all", true);
	CHECK(toolset_find(set, STR("read_file")) && toolset_find(set, STR("search")));
	for (size_t i = 0; i < toolset_count(set); i++)
		CHECK(toolset_at(set, i)->traits & TOOL_READS_ONLY);
}

TEST(an_unknown_name_is_refused_with_the_nearest)
{
	struct toolset_choice choice = {.sets = STR("default,memry")};
	struct toolset *set;
	struct bench b;
	struct err err = {0};

	bench_open(&b, "native");
	CHECK_ERR(toolset_choose(b.set, &choice, &set, &err), err, ERR_INVALID);
	CHECK_HAS(str_of(err.msg), STR("did you mean \"memory\"?"));
}

static void configure(struct bench *b, const char *yaml)
{
	struct err err = {0};

	bench_open_disk(b, "native");
	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

TEST(tools_that_are_known_only_later_can_be_named_and_misspelt_ones_cannot)
{
	static const struct {
		const char *yaml, *why; /* NULL: it is accepted */
	} cases[] = {
		{"tools: {allow: [forecast]}\n", NULL},
		{"tool_timeouts: {overrides: {forecast: 3, calc__add: 3}}\n", NULL},
		{"tools: {deny: [calc__add, 'calc__d*', '*__drop']}\n", NULL},
		{"tools: {allow: [raed_file]}\n", "did you mean \"read_file\"?"},
		{"tool_timeouts: {overrides: {raed_file: 3}}\n", "did you mean \"read_file\"?"},
		{"approval_gates: {enabled: true, tools: {forecast: {}, editor__post: {}, write_file: {}}}\n", NULL},
		{"approval_gates: {enabled: true, tools: {wirte_file: {}}}\n", "did you mean \"write_file\"?"},
		{"policy: {rules: [{effect: deny, tool: forecast}, {effect: deny, tool: 'wirte_*'}]}\n", NULL},
		{"policy: {rules: [{effect: deny, tool: Write_File}, {effect: ask, tool: shell}]}\n", NULL},
		{"policy: {rules: [{effect: deny, tool: wirte_file}]}\n", "did you mean \"write_file\"?"},
		{"tools: {deny: [forecast]}\n", "a rule of policy can deny"},
		{"tools: {deny: [clac__add]}\n", "tools.json has no such server"},
		{"tools: {allow: [clac__add]}\n", "tools.json has no such server"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct workspace_opts opts = {.name = STR("test"), .relaxed = true};
		struct workspace *ws = NULL;
		struct toolset *set = NULL;
		struct bench b;
		struct err err = {0};
		int r;

		bench_open_disk(&b, "native");
		CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("tools.json")},
				     STR("{\"mcpServers\": {\"calc\": {\"command\": \"calc\"}}}"),
				     (struct store_cond){0}, NULL, &err),
			 err);
		CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("agent.yaml")},
				     str_of(cases[i].yaml), (struct store_cond){0}, NULL, &err),
			 err);
		opts.store_url = arena_printf(b.arena, "disk:%s", b.dir);
		bench_stop(&b);
		r = workspace_open(&opts, &ws, &err);
		if (r == 0)
			r = toolset_new(ws, STR("native"), &set, &err);
		CHECK_INT(r, cases[i].why ? -ERR_INVALID : 0);
		if (r)
			CHECK_HAS(str_of(err.msg), str_of(cases[i].why));
		toolset_destroy(set);
		workspace_close(ws);
		test_close(b.arena);
	}
}

TEST(agent_yaml_chooses_what_the_command_line_does_not)
{
	struct bench b;

	configure(&b, "tools: {sets: [tasks, grep]}\n");
	CHECK(is_exactly(choose(&b, "", false), "grep create_task list_tasks update_task get_task delete_task"));
	CHECK(is_exactly(choose(&b, "glob", false), "glob"));
}

TEST(tools_that_are_allowed_by_name_are_all_offered)
{
	struct bench b;

	configure(&b, "tools: {allow: [read_file, park_result]}\n");
	CHECK(is_exactly(choose(&b, "", false), "read_file park_result"));
}

TEST(a_choice_never_brings_back_what_is_denied)
{
	struct bench b;

	configure(&b, "tools: {deny: [delete_file]}\n");
	CHECK(!toolset_find(choose(&b, "all,delete_file", false), STR("delete_file")));
}

TEST(a_dialect_is_offered_whole)
{
	struct bench b;

	for (size_t i = 1; toolset_dialect(i); i++) {
		bench_open(&b, toolset_dialect(i));
		CHECK_INT(toolset_count(choose(&b, "", false)), toolset_count(b.set));
		bench_close(&b);
	}
}

/* Some providers of models refuse a schema that has one of these. */
static void check_portable(const struct jv *schema, const char *dialect, struct str tool)
{
	static const char *const refused[] = {"anyOf", "oneOf", "allOf", "not", "$ref", "const", "pattern"};
	const struct jv *type = jv_get(schema, "type");

	for (size_t i = 0; i < COUNT(refused); i++)
		if (jv_get(schema, refused[i]))
			TEST_FAIL("%s %.*s has %s", dialect, STR_ARG(tool), refused[i]);
	if (type && type->type != JV_STR)
		TEST_FAIL("%s %.*s has several types in one place", dialect, STR_ARG(tool));
	for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next)
		check_portable(m->value, dialect, tool);
	if (jv_get(schema, "items"))
		check_portable(jv_get(schema, "items"), dialect, tool);
}

TEST(input_schemas_are_portable_in_every_dialect)
{
	struct bench b;

	for (size_t i = 0; toolset_dialect(i); i++) {
		bench_open(&b, toolset_dialect(i));
		for (size_t k = 0; k < toolset_count(b.set); k++)
			check_portable(toolset_at(b.set, k)->input_schema, toolset_dialect(i),
				       toolset_at(b.set, k)->name);
		bench_close(&b);
	}
}

TEST(an_argument_may_come_in_another_form_than_the_schema_names)
{
	struct bench b;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a.md','content':'one\\ntwo\\n','if_version':null}");
	good(&b, "read_file", "{'path':'a.md','at_revision':1,'limit':'1','line_numbers':'true'}");
	CHECK_STR(b.result.text, STR("     1\tone\n[1 of 2 lines; continue with offset 2]"));
	good(&b, "grep", "{'pattern':'two','include':'*.md'}");
	CHECK_STR(b.result.text, STR("a.md:2:two"));
	good(&b, "grep", "{'pattern':'two','include':'[\\'*.txt\\']'}");
	CHECK_HAS(b.result.text, STR("no match"));
	refused(&b, "read_file", "{'path':'a.md','limit':'many'}", ERR_INVALID);
	refused(&b, "read_file", "{'path':null}", ERR_INVALID);
}
