/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent has what it is asked to use: over every dialect and every set of tools, no text by Stead names a tool that
 * is not offered. Texts are the prompt of a full workspace, whole and cut, and what each tool says when it fails.
 */
#include "tool_fix.h"

#include "home/prompt/prompt.h"
#include "tool/dialect.h"
#include "tool/offered.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* A name of a tool that no sentence has by chance. */
static bool is_tool(struct str word)
{
	const struct dialect *d;

	if (str_find_char(word, '_') == word.len)
		return false;
	for (size_t i = 0; (d = dialect_at(i)); i++)
		for (struct tool_walk w = {.dialect = d}; tool_next(&w);)
			if (str_is(word, w.tool->name))
				return true;
	return false;
}

/* Arguments are named too ("content_text"), and some are called like a tool of another system. */
static void check_text(const struct toolset *set, struct str text, const char *what)
{
	size_t n;

	for (struct str rest = text; rest.len; rest = str_from(rest, n ? n : 1)) {
		for (n = 0; n < rest.len && is_word(rest.ptr[n]);)
			n++;
		if (is_tool(str_first(rest, n)) && !toolset_find(set, str_first(rest, n)))
			TEST_FAIL("%s names %.*s, which is not offered: %.*s", what, (int)n, rest.ptr, STR_ARG(text));
	}
}

/* Something of everything that a prompt tells of, more than fits into a small one. */
static void fill(struct bench *b)
{
	struct store *home = workspace_home(b->ws);
	struct err err;

	for (int i = 0; i < 60; i++) {
		char path[64], text[200];

		snprintf(path, sizeof path, "knowledge/part-%d.md", i);
		snprintf(text, sizeof text, "# Part %d\n\nWhat is known about it.\n", i);
		CHECK_OK(store_write(home, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0},
				     NULL, &err),
			 err);
		snprintf(path, sizeof path, "skills/skill-%d/SKILL.md", i);
		snprintf(text, sizeof text, "---\nname: skill-%d\ndescription: Does the thing %d well.\n---\n# Do\n", i,
			 i);
		CHECK_OK(store_write(home, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0},
				     NULL, &err),
			 err);
		snprintf(path, sizeof path, "subagents/helper-%d.md", i);
		snprintf(text, sizeof text, "---\nname: helper-%d\ndescription: Helps with %d.\n---\nHelp.\n", i, i);
		CHECK_OK(store_write(home, &b->ctx, (struct wpath){str_of(path)}, str_of(text), (struct store_cond){0},
				     NULL, &err),
			 err);
		snprintf(text, sizeof text, "{'title':'Finding %d','content':'It is so.'}", i);
		good(b, "note", text);
		snprintf(text, sizeof text, "{'description':'task number %d'}", i);
		good(b, "create_task", text);
		snprintf(text, sizeof text, "{'facts':[{'text':'Fact number %d is worth keeping for later.'}]}", i);
		call(b, "memory_save", text);
	}
	good(b, "todo_write", "{'todos':[{'content':'one','status':'pending'}]}");
}

static void check_prompt(struct bench *b, const struct toolset *set, uint64_t max, const char *what)
{
	struct prompt_opts opts = {.max_tokens = max, .set = set};
	struct prompt p;
	struct err err = {0};

	CHECK_OK(prompt_assemble(b->ws, &b->ctx, &opts, &p, &err), err);
	check_text(set, p.text, what);
}

TEST(the_prompt_names_only_tools_that_are_offered)
{
	struct bench b;
	struct toolset *all, *set;
	struct err err = {0};

	bench_open(&b, "native");
	fill(&b);
	for (size_t i = 0; toolset_dialect(i); i++) {
		CHECK_OK(toolset_new(b.ws, str_of(toolset_dialect(i)), &all, &err), err);
		for (size_t k = 0; families[k]; k++) {
			const char *sets[] = {"default", "all", families[k]->name};
			size_t count = families[k]->tools ? 6 : 4; /* a family without tools is not a toolset */

			for (size_t n = 0; n < count; n++) {
				struct toolset_choice choice = {.sets = str_of(sets[n / 2]), .read_only = n % 2};

				CHECK_OK(toolset_choose(all, &choice, &set, &err), err);
				check_prompt(&b, set, 1000, toolset_dialect(i));
				check_prompt(&b, set, 50000, toolset_dialect(i));
				toolset_destroy(set);
			}
		}
		toolset_destroy(all);
	}
}

/* Arguments that fit the schema and name nothing that exists. */
static struct jv *wrong_value(struct arena *arena, const struct jv *schema, unsigned round)
{
	struct str type = jv_get_str(schema, "type");
	const struct jv *words = jv_get(schema, "enum");
	struct jv *v;

	if (words)
		return jv_copy(arena, jv_at(words, round % jv_count(words)));
	if (str_is(type, "integer"))
		return jv_int(arena, round % 2 ? 1 : 999999);
	if (str_is(type, "number"))
		return jv_real(arena, 0.5);
	if (str_is(type, "boolean"))
		return jv_bool(arena, round % 2);
	if (str_is(type, "array")) {
		v = jv_array(arena);
		jv_push(arena, v, wrong_value(arena, jv_get(schema, "items"), round));
		return v;
	}
	if (str_is(type, "object")) {
		v = jv_object(arena);
		for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next)
			jv_set_key(arena, v, m->key, wrong_value(arena, m->value, round));
		return v;
	}
	return jv_str(arena, round % 3 == 0 ? STR("none") : round % 3 == 1 ? STR("a.md") : STR(""));
}

static void check_failures(struct bench *b, const struct toolset *set)
{
	for (size_t i = 0; i < toolset_count(set); i++)
		for (unsigned round = 0; round < 12; round++) {
			const struct tool_info *info = toolset_at(set, i);
			struct jv *args = wrong_value(b->arena, info->input_schema, round);
			struct tool_result result;
			struct err err = {0};

			jv_remove(args, "wait_ms");
			CHECK_OK(toolset_call((struct toolset *)set, &b->ctx, info->name, args, &result, &err), err);
			if (result.is_error)
				check_text(set, str_first(result.text, str_find_char(result.text, '\n')),
					   arena_cstr(b->arena, info->name));
		}
}

TEST(the_advice_of_a_failure_can_be_followed)
{
	struct toolset_choice files = {.sets = STR("files")}, basic = {.sets = STR("default")};
	struct bench b;

	for (size_t i = 0; toolset_dialect(i); i++) {
		struct toolset *set;
		struct err err = {0};

		bench_open(&b, toolset_dialect(i));
		check_failures(&b, b.set);
		for (int k = 0; i == 0 && k < 2; k++) {
			CHECK_OK(toolset_choose(b.set, k ? &files : &basic, &set, &err), err);
			check_failures(&b, set);
			toolset_destroy(set);
		}
		bench_close(&b);
	}
}

TEST(advice_keeps_what_can_be_followed)
{
	struct bench b;

	bench_open(&b, "agentscope");
	CHECK_STR(offered_advice(b.arena, b.set, STR("edit a: the text is empty; give the text, or use insert_file")),
		  STR("edit a: the text is empty; give the text"));
	CHECK_STR(offered_advice(b.arena, b.set, STR("no note; use list_notes; ask a person")),
		  STR("no note; ask a person"));
	CHECK_STR(offered_advice(b.arena, b.set, STR("list_notes failed")), STR("list_notes failed"));
	CHECK_STR(offered_lines(b.arena, b.set, STR("- use list_notes\n  to see them\n- or ask\n")), STR("- or ask\n"));
}
