/* SPDX-License-Identifier: Apache-2.0 */
/* Knowledge: the index, reading, the prompt, search. */
#include "tool/tool_fix.h"

#include "home/knowledge/knowledge.h"
#include "home/search/search.h"

static void keep(struct bench *b, const char *path, struct str bytes)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, bytes,
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static void fill(struct bench *b)
{
	keep(b, "knowledge/KNOWLEDGE.md", STR("# Entry\n\nRead api first.\n"));
	keep(b, "knowledge/api/errors.md", STR("---\ntitle: \"Errors: all\"\n---\n# Other\n\nteapot means 418\n"));
	keep(b, "knowledge/api/auth.md", STR("text\n\n## Signing in\n"));
	keep(b, "knowledge/broken.md", STR("---\na: [\n---\n# Still here\n"));
	keep(b, "knowledge/data.bin", STR("\0\1"));
	keep(b, "knowledge/plain.txt", STR("no heading"));
}

TEST(the_index_has_paths_sizes_and_titles_by_path)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	CHECK_INT(jv_count(jv_get(good(&b, "knowledge_list", "{}"), "files")), 0);
	fill(&b);
	v = good(&b, "knowledge_list", "{}");
	CHECK(jv_get_bool(v, "entry", false));
	CHECK_STR(b.result.text,
		  STR("KNOWLEDGE.md (25 B): Entry\napi/auth.md (20 B): Signing in\napi/errors.md (55 B): "
		      "Errors: all\nbroken.md (26 B): Still here\ndata.bin (2 B)\nplain.txt (10 B)"));
	CHECK_INT(jv_count(jv_get(good(&b, "knowledge_list", "{'under':'api'}"), "files")), 2);
	v = good(&b, "knowledge_list", "{'limit':2}");
	CHECK_STR(jv_get_str(v, "next"), STR("api/auth.md"));
	v = good(&b, "knowledge_list", "{'cursor':'api/auth.md','limit':100}");
	CHECK_INT(jv_count(jv_get(v, "files")), 4);
	refused(&b, "knowledge_list", "{'under':'none'}", ERR_NOT_FOUND);
	refused(&b, "knowledge_list", "{'under':'../skills'}", ERR_INVALID);
	bench_close(&b);
}

TEST(knowledge_is_read_by_its_path_and_nothing_else_is)
{
	struct bench b;

	bench_open(&b, "native");
	fill(&b);
	CHECK_STR(jv_get_str(good(&b, "read_knowledge", "{}"), "content"), STR("# Entry\n\nRead api first.\n"));
	good(&b, "read_knowledge", "{'path':'api/auth.md'}");
	good(&b, "read_knowledge", "{'path':'knowledge/api/auth.md','offset':3}");
	CHECK_STR(b.result.text, STR("## Signing in\n"));
	good(&b, "read_knowledge", "{'path':'data.bin'}");
	CHECK_STR(b.result.text, STR("base64:AAE="));
	refused(&b, "read_knowledge", "{'path':'../agent.yaml'}", ERR_INVALID);
	refused(&b, "read_knowledge", "{'path':'knowledge/knowledge/../x'}", ERR_INVALID);
	refused(&b, "read_knowledge", "{'path':'agent.yaml'}", ERR_NOT_FOUND);
	refused(&b, "read_knowledge", "{'path':'/'}", ERR_INVALID);
	bench_close(&b);
}

TEST(a_users_knowledge_stands_over_the_shared_one)
{
	struct bench b;

	bench_open_disk(&b, "native");
	fill(&b);
	keep(&b, "users/ann/knowledge/KNOWLEDGE.md", STR("# Of Ann\n"));
	bench_reopen(&b, (struct workspace_opts){.user = STR("ann")}, "native");
	CHECK_INT(jv_count(jv_get(good(&b, "knowledge_list", "{}"), "files")), 6);
	CHECK_HAS(b.result.text, STR("KNOWLEDGE.md (9 B): Of Ann"));
	bench_close(&b);
}

TEST(knowledge_is_found_by_search_with_its_title)
{
	struct bench b;
	struct err err = {0};
	struct search_query query = {.text = STR("teapot"), .areas = search_area(STR("knowledge"))};
	struct search_hits hits;

	bench_open(&b, "native");
	fill(&b);
	CHECK_OK(home_search(b.ws, &b.ctx, &query, &hits, &err), err);
	CHECK_INT(hits.count, 1);
	CHECK_STR(hits.hits[0].path, STR("knowledge/api/errors.md"));
	CHECK_STR(hits.hits[0].title, STR("Errors: all"));
	bench_close(&b);
}
