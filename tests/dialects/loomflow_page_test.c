/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page about Loomflow's workspace shows, through the dialect: a researcher and a writer who share nothing but
 * notes, the kinds, the layout on disk, the places a notebook can be in, and tenants.
 */
#include <sys/stat.h>

#include "home/notebook/notebook.h"
#include "tool/tool_fix.h"

/* An agent of a team at a place, with a user. */
static void member(struct bench *b, const char *place, const char *author, const char *user)
{
	struct workspace_opts opts = {.store_url = str_of(place),
				      .name = STR("team-notebook"),
				      .agent = str_of(author),
				      .user = str_of(user),
				      .create = true,
				      .relaxed = true};

	bench_init(b);
	bench_start(b, &opts, "loomflow");
}

TEST(a_writer_reads_the_researchers_note_and_nothing_else)
{
	struct bench researcher, writer;
	struct str team[] = {STR("researcher")};
	const char *dir = temp_dir_new();

	member(&researcher, dir, "researcher", "team");
	good(&researcher, "note",
	     "{'title':'Microservices at 10 engineers','content':'Not worth it: one deployable, clear modules.',"
	     "'kind':'finding'}");
	bench_close(&researcher);
	member(&writer, dir, "writer", "team");
	CHECK_HAS(notebook_prompt(workspace_notebook(writer.ws), &writer.ctx, team, 1), STR("with researcher"));
	good(&writer, "list_notes", "{'author':'researcher'}");
	CHECK_STR(writer.result.text,
		  STR("- 001-microservices-at-10-engineers [researcher/finding] Microservices at 10 "
		      "engineers — Not worth it: one deployable, clear modules."));
	good(&writer, "read_note", "{'slug_or_title':'microservices'}");
	CHECK_HAS(writer.result.text, STR("author: researcher"));
	refused(&writer, "update_note", "{'slug':'001-microservices-at-10-engineers','content':'mine now'}",
		ERR_DENIED);
	CHECK_HAS(writer.result.text, STR("ERROR: "));
	bench_close(&writer);
}

TEST(every_kind_is_a_filter_and_no_partition)
{
	static const char *const kinds[] = {"finding", "question", "decision", "summary", "artifact", "plan", "note"};
	struct bench b;

	member(&b, "memory", "ann", "");
	for (size_t i = 0; i < 7; i++) {
		char json[120];

		snprintf(json, sizeof(json), "{'title':'A %s','content':'x','kind':'%s'}", kinds[i], kinds[i]);
		good(&b, "note", json);
	}
	good(&b, "list_notes", "{'kind':'decision'}");
	CHECK_STR(b.result.text, STR("- 003-a-decision [ann/decision] A decision — x"));
	bench_close(&b);
}

TEST(a_bare_notebook_is_written_by_agent)
{
	struct bench b;

	member(&b, "memory", "", "");
	good(&b, "note", "{'title':'T','content':'x'}");
	CHECK_HAS(b.result.text, STR("author: agent"));
	bench_close(&b);
}

TEST(a_notebook_at_a_path_has_a_file_for_each_note_and_an_index)
{
	struct bench b;
	struct stat st;
	const char *dir = temp_dir_new();
	char path[400];

	member(&b, dir, "ann", "research_team");
	good(&b, "note", "{'title':'Rate limits','content':'x'}");
	good(&b, "note", "{'title':'Data consistency','content':'x'}");
	bench_close(&b);
	snprintf(path, sizeof(path), "%s/team-notebook/users/research_team/notes/ann/002-data-consistency.md", dir);
	CHECK_INT(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/team-notebook/users/research_team/WORKSPACE.md", dir);
	CHECK_INT(stat(path, &st), 0);
	member(&b, dir, "ann", "research_team");
	good(&b, "list_notes", "{}");
	CHECK_HAS(b.result.text, STR("001-rate-limits"));
	bench_close(&b);
}

TEST(a_temporary_notebook_is_fresh_and_wiped)
{
	struct bench a, b;
	char place[300];

	member(&a, "temp:loom-research-", "ann", "");
	member(&b, "temp", "ann", "");
	good(&a, "note", "{'title':'T','content':'x'}");
	good(&b, "list_notes", "{}");
	CHECK_STR(b.result.text, STR("No notes match."));
	CHECK_HAS(workspace_files_place(a.ws), STR("loom-research-"));
	snprintf(place, sizeof(place), "%.*s", STR_ARG(workspace_files_place(a.ws)));
	bench_close(&a);
	bench_close(&b);
	CHECK(access(place, F_OK) != 0);
}

TEST(notes_of_two_users_never_meet)
{
	struct bench a, b;
	const char *dir = temp_dir_new();

	member(&a, dir, "ann", "alice");
	member(&b, dir, "ann", "alice/../bob");
	good(&a, "note", "{'title':'Secret','content':'alice'}");
	good(&b, "list_notes", "{}");
	CHECK_STR(b.result.text, STR("No notes match."));
	refused(&b, "read_note", "{'slug_or_title':'001-secret'}", ERR_NOT_FOUND);
	bench_close(&a);
	bench_close(&b);
}

TEST(what_a_run_read_is_cited_and_credited_once)
{
	struct workspace_opts opts = {
		.store_url = STR("memory"), .name = STR("team"), .agent = STR("ann"), .create = true};
	struct bench b;

	bench_init(&b);
	bench_start(&b, &opts, "");
	good(&b, "note", "{'title':'Findings','content':'One deployable.'}");
	good(&b, "note", "{'title':'Other','content':'Not read.'}");
	good(&b, "read_note", "{'slug_or_title':'findings'}");
	good(&b, "cited_notes", "{}");
	CHECK_STR(b.result.text, STR("001-findings\n1 note read"));
	good(&b, "attribute_outcome", "{'success':true}");
	CHECK_STR(b.result.text, STR("credited 1 note with a success"));
	good(&b, "cited_notes", "{}");
	CHECK_STR(b.result.text, STR("0 notes read"));
	good(&b, "attribute_outcome", "{'success':false,'slugs':['001-findings','002-other']}");
	good(&b, "read_note", "{'slug_or_title':'001-findings'}");
	CHECK_INT(jv_get_int(b.result.value, "cited", 0), 2);
	CHECK_INT(jv_get_int(b.result.value, "succeeded", 0), 1);
	bench_close(&b);
}
