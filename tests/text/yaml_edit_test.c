/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of YAML text: the intended change is there, and every other line is as it was. */
#include "test.h"

#include "base/clock.h"
#include "text/yaml.h"

static const char document[] = "# my tasks\n"
			       "version: 1   # do not touch\n"
			       "last_updated: 2026-01-01T00:00:00Z\n"
			       "tasks:\n"
			       "  # the first one\n"
			       "  - id: aaaa\n"
			       "    status: pending   # waits for Ann\n"
			       "    notes: |\n"
			       "      one\n"
			       "      # not a comment\n"
			       "\n"
			       "      two\n"
			       "    metadata:\n"
			       "      k: v # inner\n"
			       "\n"
			       "  # the second one\n"
			       "  - id: bbbb\n"
			       "    status: \"a # b\" # quoted\n"
			       "# the end\n";

static struct jv *item(struct arena *arena, struct str text, size_t index)
{
	struct jv *doc;
	struct err err;

	CHECK_OK(yaml_parse(arena, text, &doc, &err), err);
	return jv_copy(arena, jv_at(jv_get(doc, "tasks"), index));
}

static struct str set(struct arena *arena, struct str text, size_t index, const struct jv *value)
{
	struct str out;
	struct err err;

	CHECK_OK(yaml_list_set(arena, text, "tasks", index, value, &out, &err), err);
	CHECK(jv_equal(item(arena, out, index), value));
	return out;
}

TEST(a_changed_value_leaves_every_other_line_and_its_own_comment)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *first = item(arena, str_of(document), 0);
	struct str out;

	jv_set_str(arena, first, "status", STR("completed"));
	out = set(arena, str_of(document), 0, first);
	CHECK_STR(out, STR("# my tasks\n"
			   "version: 1   # do not touch\n"
			   "last_updated: 2026-01-01T00:00:00Z\n"
			   "tasks:\n"
			   "  # the first one\n"
			   "  - id: aaaa\n"
			   "    status: completed   # waits for Ann\n"
			   "    notes: |\n"
			   "      one\n"
			   "      # not a comment\n"
			   "\n"
			   "      two\n"
			   "    metadata:\n"
			   "      k: v # inner\n"
			   "\n"
			   "  # the second one\n"
			   "  - id: bbbb\n"
			   "    status: \"a # b\" # quoted\n"
			   "# the end\n"));
}

TEST(a_value_of_several_lines_is_replaced_as_a_whole)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *first = item(arena, str_of(document), 0);
	struct str out;

	jv_set_str(arena, first, "notes", STR("three\nfour"));
	jv_set_str(arena, first, "error_message", STR("a: b # c"));
	out = set(arena, str_of(document), 0, first);
	CHECK_STR(out, STR("# my tasks\n"
			   "version: 1   # do not touch\n"
			   "last_updated: 2026-01-01T00:00:00Z\n"
			   "tasks:\n"
			   "  # the first one\n"
			   "  - id: aaaa\n"
			   "    status: pending   # waits for Ann\n"
			   "    notes: |-\n"
			   "      three\n"
			   "      four\n"
			   "    metadata:\n"
			   "      k: v # inner\n"
			   "    error_message: \"a: b # c\"\n"
			   "\n"
			   "  # the second one\n"
			   "  - id: bbbb\n"
			   "    status: \"a # b\" # quoted\n"
			   "# the end\n"));
}

TEST(an_item_is_added_behind_the_last_and_removed_without_its_neighbours)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *more = jv_object(arena);
	struct str out;
	struct err err;

	jv_set_str(arena, more, "id", STR("cccc"));
	out = set(arena, str_of(document), 2, more);
	CHECK_ENDS(out, STR("    status: \"a # b\" # quoted\n  - id: cccc\n# the end\n"));
	CHECK_OK(yaml_list_remove(arena, out, "tasks", 0, &out, &err), err);
	CHECK_ENDS(out, STR("tasks:\n  # the first one\n\n  # the second one\n  - id: bbbb\n"
			    "    status: \"a # b\" # quoted\n  - id: cccc\n# the end\n"));
	CHECK_OK(yaml_list_remove(arena, out, "tasks", 0, &out, &err), err);
	CHECK_OK(yaml_list_remove(arena, out, "tasks", 0, &out, &err), err);
	CHECK_HAS(out, STR("tasks: []\n"));
	out = set(arena, out, 0, more);
	CHECK_HAS(out, STR("# the end\n"));
	CHECK_ERR(yaml_list_remove(arena, out, "tasks", 7, &out, &err), err, ERR_NOT_FOUND);
}

TEST(a_key_of_the_document_is_set_or_added)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str out;
	struct err err;

	CHECK_OK(yaml_set(arena, str_of(document), "version", jv_int(arena, 2), &out, &err), err);
	CHECK_STARTS(out, STR("# my tasks\nversion: 2   # do not touch\n"));
	CHECK_OK(yaml_set(arena, STR(""), "a", jv_str(arena, STR("b")), &out, &err), err);
	CHECK_STR(out, STR("a: b\n"));
	CHECK_OK(yaml_set(arena, STR("tasks: []"), "a", jv_str(arena, STR("b")), &out, &err), err);
	CHECK_STR(out, STR("tasks: []\na: b\n"));
}

TEST(other_ways_to_write_the_same_are_changed_without_losing_a_value)
{
	static const char *const forms[] = {
		"tasks: [{id: aaaa, status: pending}, {id: bbbb}]\n",
		"tasks:\n- {id: aaaa, status: pending}\n- {id: bbbb}\n",
		"tasks:\n-\n  id: aaaa\n  status: pending\n-\n  id: bbbb\n",
		"{tasks: [{id: aaaa,\n status: pending}, {id: bbbb}]}\n",
		"---\ntasks:\n- id: aaaa\n  status: pending\n- id: bbbb",
		"tasks:\n  -   id: aaaa\n      status: >\n        pen\n        ding\n\n  -   id: bbbb\n",
		"a: &x {id: aaaa, status: pending}\ntasks:\n  - *x\n  - id: bbbb\n",
		"tasks:\r\n- id: aaaa\r\n  status: pending\r\n- id: bbbb\r\n",
	};
	ARENA_SCOPE struct arena *arena = arena_new();

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct jv *first = item(arena, str_of(forms[i]), 0), *more = jv_object(arena);
		struct str out;

		jv_set_str(arena, first, "status", STR("done: yes"));
		jv_set_str(arena, more, "id", STR("cccc"));
		out = set(arena, str_of(forms[i]), 0, first);
		out = set(arena, out, 2, more);
		CHECK_STR(jv_get_str(item(arena, out, 1), "id"), STR("bbbb"));
		CHECK_STR(jv_get_str(item(arena, out, 0), "status"), STR("done: yes"));
	}
}

static struct str random_text(struct arena *arena)
{
	static const char *const parts[] = {"a",  "#", " #", ": ",  "- ", "\n",   "\"",  "'", "|",
					    "\t", "{", "]",  "\\n", "é",  "null", "---", " ", "1"};
	struct buf text;

	buf_init(&text, arena, 1000);
	buf_lit(&text, "x");
	text.len = 0;
	for (size_t n = random_u64() % 8; n; n--)
		buf_add(&text, str_of(parts[random_u64() % (sizeof(parts) / sizeof(parts[0]))]));
	return buf_str(&text);
}

/* Any text in any value, changed again and again: the values are exact and the comments of a person stay. */
TEST(random_changes_keep_values_exact_and_comments_in_place)
{
	for (int round = 0; round < 300; round++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct str text = str_of(document);
		size_t count = 2;

		for (int step = 0; step < 12; step++) {
			size_t index = random_u64() % (count + 1);
			struct jv *value = index < count ? item(arena, text, index) : jv_object(arena);

			if (index == count) {
				count++;
				jv_set_str(arena, value, "id", STR("new"));
			}
			jv_set_str(arena, value, random_u64() % 2 ? "notes" : "status", random_text(arena));
			if (random_u64() % 4 == 0)
				jv_set(arena, value, "metadata", jv_object(arena));
			text = set(arena, text, index, value);
			CHECK_STARTS(text, STR("# my tasks\nversion: 1   # do not touch\n"));
			CHECK_HAS(text, STR("  # the first one\n"));
			CHECK_HAS(text, STR("  # the second one\n"));
			CHECK_HAS(text, STR("# the end\n"));
		}
	}
}
