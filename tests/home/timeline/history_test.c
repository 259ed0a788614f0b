/* SPDX-License-Identifier: Apache-2.0 */
/* The history family through the tool table, on memory and on disk. */
#include <pthread.h>
#include <sys/stat.h>

#include "tool/tool_fix.h"

#include "base/limits.h"
#include "home/timeline/history.h"
#include "store/stores.h"

#define EACH_PLACE(b)                                                                                                  \
	for (size_t p = 0; p < 2 && (p ? bench_open_disk(b, "native") : bench_open(b, "native"), 1);                   \
	     p++, bench_close(b))

static struct str text_at(struct bench *b, const char *path, int revision)
{
	const struct jv *v =
		good(b, "read_file", arena_printf(b->arena, "{'path':'%s','at_revision':%d}", path, revision).ptr);

	return jv_get_str(v, "content");
}

static bool is_there(struct bench *b, const char *path)
{
	return jv_get_bool(good(b, "exists", arena_printf(b->arena, "{'path':'%s'}", path).ptr), "exists", false);
}

/* A change by another program: the file on disk, with no door of Stead between. */
static void outside(struct bench *b, const char *path, const char *text)
{
	char name[200];
	FILE *f;

	snprintf(name, sizeof(name), "%s/test/files/%s", b->dir, path);
	f = fopen(name, "w");
	CHECK(f != NULL);
	fputs(text, f);
	CHECK_INT(fclose(f), 0);
}

TEST(history_lists_newest_first_with_who_and_which_call)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		const struct jv *v, *list;

		b.ctx.actor = (struct actor){.user = STR("ann"), .session = STR("s1")};
		good(&b, "write_file", "{'path':'a.md','content':'one'}");
		good(&b, "append_file", "{'path':'a.md','content':' two'}");
		good(&b, "write_file", "{'path':'b.md','content':'b'}");
		v = good(&b, "history", "{'path':'a.md'}");
		list = jv_get(v, "revisions");
		CHECK_INT(jv_count(list), 2);
		CHECK_INT(jv_get_int(v, "head", 0), 3);
		CHECK_INT(jv_get_int(jv_at(list, 0), "revision", 0), 2);
		CHECK_STR(jv_get_str(jv_at(list, 0), "operation"), STR("append"));
		CHECK_STR(jv_get_str(jv_at(list, 0), "path"), STR("a.md"));
		CHECK_STR(jv_get_str(jv_get(jv_at(list, 0), "actor"), "user"), STR("ann"));
		CHECK(jv_get_str(jv_get(jv_at(list, 0), "actor"), "call").len > 0);
		CHECK(!jv_equal(jv_get(jv_at(list, 0), "actor"), jv_get(jv_at(list, 1), "actor")));
		CHECK_INT(jv_count(jv_get(good(&b, "history", "{'user':'bob'}"), "revisions")), 0);
		CHECK_INT(jv_count(jv_get(good(&b, "history", "{'session':'s1','since':1,'until':2}"), "revisions")),
			  1);
	}
}

TEST(history_is_paged_by_its_next)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	for (int i = 0; i < 5; i++)
		good(&b, "append_file", "{'path':'log','content':'x'}");
	v = good(&b, "history", "{'limit':3}");
	CHECK(jv_get_bool(v, "more", false));
	CHECK_INT(jv_get_int(v, "next", 0), 2);
	v = good(&b, "history", "{'limit':3,'until':2}");
	CHECK_INT(jv_count(jv_get(v, "revisions")), 2);
	CHECK(!jv_get_bool(v, "more", true));
	bench_close(&b);
}

TEST(a_file_is_read_at_a_number_a_checkpoint_or_head)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		good(&b, "write_file", "{'path':'a.md','content':'one'}");
		good(&b, "checkpoint", "{'name':'first'}");
		good(&b, "write_file", "{'path':'a.md','content':'two','mode':'overwrite'}");
		CHECK_STR(text_at(&b, "a.md", 1), STR("one"));
		CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'a.md','at_revision':'first'}"), "content"),
			  STR("one"));
		CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'a.md','at_revision':'head'}"), "content"),
			  STR("two"));
		refused(&b, "read_file", "{'path':'a.md','at_revision':0}", ERR_NOT_FOUND);
		CHECK_HAS(refused(&b, "read_file", "{'path':'a.md','at_revision':'frist'}", ERR_NOT_FOUND),
			  STR("did you mean \"first\""));
		refused(&b, "read_file", "{'path':'a.md','at_revision':99}", ERR_NOT_FOUND);
	}
}

TEST(a_read_of_the_past_is_paged_like_any_other)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'1\\n2\\n3\\n4\\n'}");
	good(&b, "delete_file", "{'path':'a'}");
	v = good(&b, "read_file", "{'path':'a','at_revision':1,'offset':2,'limit':2}");
	CHECK_STR(jv_get_str(v, "content"), STR("2\n3\n"));
	CHECK_INT(jv_get_int(v, "next_offset", 0), 4);
	CHECK_INT(jv_get_int(v, "revision", 0), 1);
	v = good(&b, "read_file", "{'path':'a','at_revision':1,'byte_offset':6}");
	CHECK_STR(jv_get_str(v, "content"), STR("4\n"));
	bench_close(&b);
}

TEST(no_tool_of_the_past_shows_what_is_hidden)
{
	struct bench b;
	struct err err = {0};

	bench_open(&b, "native");
	CHECK_OK(store_write(workspace_revisions(b.ws), &b.ctx, (struct wpath){STR("files/.env")}, STR("KEY=secret"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	put(&b, "a", STR("a"));
	refused(&b, "read_file", "{'path':'.env','at_revision':1}", ERR_DENIED);
	refused(&b, "history", "{'path':'.env'}", ERR_DENIED);
	refused(&b, "diff", "{'path':'.env','from':0}", ERR_DENIED);
	refused(&b, "restore", "{'path':'.env','revision':0}", ERR_DENIED);
	refused(&b, "changes", "{'path_prefix':'.env'}", ERR_DENIED);
	good(&b, "diff", "{'from':0}");
	CHECK_LACKS(b.result.text, STR("secret"));
	CHECK_INT(jv_count(jv_get(good(&b, "history", "{}"), "revisions")), 1);
	good(&b, "restore", "{'path':'/','revision':0}");
	CHECK_OK(store_stat(workspace_revisions(b.ws), &b.ctx, (struct wpath){STR("files/.env")}, NULL, &err), err);
	bench_close(&b);
}

TEST(diff_shows_added_removed_and_changed_files_in_order)
{
	struct bench b;
	const struct jv *files;

	EACH_PLACE(&b)
	{
		good(&b, "write_file", "{'path':'b','content':'old\\nsame\\n'}");
		good(&b, "write_file", "{'path':'c','content':'gone'}");
		good(&b, "write_file", "{'path':'b','content':'new\\nsame\\n','mode':'overwrite'}");
		good(&b, "delete_file", "{'path':'c'}");
		good(&b, "write_file", "{'path':'a','content':'fresh\\n'}");
		good(&b, "write_file", "{'path':'blob','content':'AAEC','encoding':'base64'}");
		files = jv_get(good(&b, "diff", "{'from':2}"), "files");
		CHECK_INT(jv_count(files), 4);
		CHECK_STR(jv_get_str(jv_at(files, 0), "change"), STR("added"));
		CHECK_STR(jv_get_str(jv_at(files, 0), "diff"), STR("--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+fresh\n"));
		CHECK_HAS(jv_get_str(jv_at(files, 1), "diff"), STR("-old\n+new\n same\n"));
		CHECK_STR(jv_get_str(jv_at(files, 2), "path"), STR("blob"));
		CHECK(jv_get(jv_at(files, 2), "diff") == NULL);
		CHECK_STR(jv_get_str(jv_at(files, 3), "change"), STR("removed"));
		CHECK_HAS(
			jv_get_str(jv_at(jv_get(good(&b, "diff", "{'from':3,'to':2,'path':'b'}"), "files"), 0), "diff"),
			STR("-new\n+old\n"));
		CHECK_INT(jv_count(jv_get(good(&b, "diff", "{'from':2,'to':2}"), "files")), 0);
	}
}

TEST(restore_brings_a_file_back_and_is_a_change_that_can_be_undone)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		good(&b, "write_file", "{'path':'a','content':'one'}");
		good(&b, "write_file", "{'path':'a','content':'two','mode':'overwrite'}");
		good(&b, "delete_file", "{'path':'a'}");
		good(&b, "restore", "{'path':'a','revision':1}");
		CHECK_STR(content_of(&b, "a"), STR("one"));
		CHECK_INT(jv_get_int(good(&b, "history", "{}"), "head", 0), 4);
		good(&b, "undo", "{}");
		CHECK(!is_there(&b, "a"));
		good(&b, "undo", "{'redo':true}");
		CHECK_STR(content_of(&b, "a"), STR("one"));
		CHECK_HAS(good(&b, "restore", "{'path':'a','revision':'head'}") ? b.result.text : STR(""),
			  STR("nothing to do"));
		refused(&b, "restore", "{'path':'never','revision':1}", ERR_NOT_FOUND);
	}
}

TEST(restore_of_a_directory_makes_room_where_a_file_became_one)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		good(&b, "write_file", "{'path':'d/x','content':'file'}");
		good(&b, "write_file", "{'path':'d/y/z','content':'deep'}");
		good(&b, "delete_file", "{'path':'d','recursive':true}");
		good(&b, "write_file", "{'path':'d/x/inner','content':'dir now'}");
		good(&b, "write_file", "{'path':'d/y','content':'file now'}");
		good(&b, "restore", "{'path':'d','revision':2}");
		CHECK_STR(content_of(&b, "d/x"), STR("file"));
		CHECK_STR(content_of(&b, "d/y/z"), STR("deep"));
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "d/x/inner"), STR("dir now"));
		CHECK_STR(content_of(&b, "d/y"), STR("file now"));
	}
}

TEST(undo_takes_back_the_last_call_whatever_it_touched)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		put(&b, "a", STR("a"));
		put(&b, "d/b", STR("b"));
		good(&b, "move_file", "{'from':'d','to':'e'}");
		good(&b, "undo", "{}");
		CHECK(is_there(&b, "d/b") && !is_there(&b, "e/b"));
		good(&b, "clear_files", "{}");
		CHECK_INT(jv_count(jv_get(good(&b, "undo", "{}"), "files")), 2);
		CHECK_STR(content_of(&b, "d/b"), STR("b"));
		good(&b, "move_file", "{'from':'a','to':'d/b','overwrite':true}");
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("a"));
		CHECK_STR(content_of(&b, "d/b"), STR("b"));
		good(&b, "undo", "{'redo':true}");
		CHECK(!is_there(&b, "a"));
		CHECK_STR(content_of(&b, "d/b"), STR("a"));
	}
}

static void write_versions(struct bench *b, int count)
{
	for (int i = 1; i <= count; i++)
		good(b, "write_file", arena_printf(b->arena, "{'path':'a','content':'v%d','mode':'overwrite'}", i).ptr);
}

TEST(undo_goes_further_back_each_time_and_redo_forward_again)
{
	struct bench b;

	EACH_PLACE(&b)
	{
		write_versions(&b, 3);
		good(&b, "append_file", "{'path':'a','content':'+'}");
		good(&b, "append_file", "{'path':'a','content':'+'}");
		for (int i = 0; i < 3; i++)
			good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v2"));
		if (b.dir)
			bench_reopen(&b, (struct workspace_opts){0}, "native");
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v1"));
		good(&b, "undo", "{'redo':true}");
		CHECK_STR(content_of(&b, "a"), STR("v2"));
		good(&b, "undo", "{}");
		good(&b, "undo", "{}");
		CHECK(!is_there(&b, "a"));
		refused(&b, "undo", "{}", ERR_NOT_FOUND);
		for (int i = 0; i < 5; i++)
			good(&b, "undo", "{'redo':true}");
		CHECK_STR(content_of(&b, "a"), STR("v3++"));
		CHECK_HAS(refused(&b, "undo", "{'redo':true}", ERR_NOT_FOUND),
			  STR("something has changed since the undo"));
	}
}

TEST(a_change_after_an_undo_ends_what_can_be_redone)
{
	struct bench b;

	bench_open(&b, "native");
	CHECK_HAS(refused(&b, "undo", "{'redo':true}", ERR_NOT_FOUND), STR("nothing was undone"));
	write_versions(&b, 3);
	good(&b, "undo", "{}");
	good(&b, "write_file", "{'path':'b','content':'new'}");
	CHECK_HAS(refused(&b, "undo", "{'redo':true}", ERR_NOT_FOUND), STR("something has changed since the undo"));
	good(&b, "undo", "{}");
	CHECK(!is_there(&b, "b"));
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "a"), STR("v1"));
	refused(&b, "undo", "{'redo':true,'since':1}", ERR_INVALID);
	bench_close(&b);
}

TEST(an_undo_of_chosen_changes_is_redone_and_passed_over_by_the_next_undo)
{
	static const char *const choices[] = {"{'since':2}", "{'session':'s~1'}", "{'actor':'Coder'}"};
	struct bench b;

	for (size_t i = 0; i < 3; i++) {
		bench_open(&b, "native");
		b.ctx.actor = (struct actor){.session = STR("other")};
		write_versions(&b, 2);
		b.ctx.actor = (struct actor){.agent = STR("Coder"), .session = STR("s~1")};
		write_versions(&b, 4);
		good(&b, "undo", choices[i]);
		CHECK_STR(content_of(&b, "a"), STR("v2"));
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v1"));
		good(&b, "undo", "{'redo':true}");
		CHECK_STR(content_of(&b, "a"), STR("v2"));
		good(&b, "undo", "{'redo':true}");
		CHECK_STR(content_of(&b, "a"), STR("v4"));
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v3"));
		bench_close(&b);
	}
}

TEST(a_call_that_left_nothing_to_take_back_is_passed_over)
{
	struct bench b;

	bench_open_disk(&b, "native");
	write_versions(&b, 2);
	good(&b, "write_file", "{'path':'a','content':'v2','mode':'overwrite'}");
	good(&b, "write_file", "{'path':'b','content':'x'}");
	CHECK_INT(remove(arena_printf(b.arena, "%s/test/files/b", b.dir).ptr), 0);
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "a"), STR("v1"));
	bench_close(&b);
}

TEST(an_append_of_nothing_is_passed_over)
{
	struct bench b;
	struct err err = {0};
	struct wpath a = {STR("a")};

	EACH_PLACE(&b)
	{
		write_versions(&b, 2);
		CHECK_OK(store_append(workspace_files(b.ws), &b.ctx, a, STR(""), (struct store_cond){0}, NULL, &err),
			 err);
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v1"));
	}
}

TEST(a_call_that_removed_what_it_created_is_passed_over_each_time)
{
	struct bench b;
	struct err err = {0};
	struct wpath a = {STR("a")};
	struct store_cond any = {0};

	EACH_PLACE(&b)
	{
		write_versions(&b, 2);
		good(&b, "move_file", "{'from':'a','to':'b'}");
		b.ctx.actor.call_id = STR("there-and-gone");
		CHECK_OK(store_write(workspace_files(b.ws), &b.ctx, a, STR("x"), any, NULL, &err), err);
		CHECK_OK(store_remove(workspace_files(b.ws), &b.ctx, a, false, any, NULL, &err), err);
		b.ctx.actor.call_id = STR_NONE;
		good(&b, "undo", "{}"); /* the move: "a" is there again */
		CHECK(is_there(&b, "a") && !is_there(&b, "b"));
		good(&b, "undo", "{}");
		CHECK_STR(content_of(&b, "a"), STR("v1"));
		good(&b, "undo", "{'redo':true}");
		good(&b, "undo", "{'redo':true}");
		CHECK(!is_there(&b, "a") && is_there(&b, "b"));
	}
}

/* The call removed a file of someone else after its own: what should come back is not clear. */
TEST(a_path_that_others_changed_between_the_changes_of_a_call_stays_a_conflict)
{
	struct bench b;
	struct err err = {0};
	struct wpath a = {STR("a")};
	struct store_cond any = {0};

	EACH_PLACE(&b)
	{
		b.ctx.actor.call_id = STR("mixed");
		CHECK_OK(store_write(workspace_files(b.ws), &b.ctx, a, STR("x"), any, NULL, &err), err);
		b.ctx.actor.call_id = STR_NONE;
		write_versions(&b, 1);
		b.ctx.actor.call_id = STR("mixed");
		CHECK_OK(store_remove(workspace_files(b.ws), &b.ctx, a, false, any, NULL, &err), err);
		b.ctx.actor.call_id = STR_NONE;
		write_versions(&b, 2);
		refused(&b, "undo", "{'call':'mixed'}", ERR_CONFLICT);
	}
}

TEST(the_last_call_may_be_of_any_family)
{
	struct bench b, other;
	struct err err = {0};
	struct wpath memory = {STR("MEMORY.md")};

	EACH_PLACE(&b)
	{
		b.ctx.actor = (struct actor){.agent = STR("scout")};
		good(&b, "write_file", "{'path':'a','content':'1'}");
		good(&b, "memory_save", "{'content':'the sky is blue'}");
		good(&b, "note", "{'title':'Sky','content':'blue'}");
		CHECK_HAS(good(&b, "undo", "{}") ? b.result.text : STR(""), STR("removed notes/agent/"));
		CHECK_HAS(good(&b, "undo", "{}") ? b.result.text : STR(""), STR("MEMORY.md"));
		CHECK_INT(store_stat(workspace_home(b.ws), &b.ctx, memory, NULL, &err), -ERR_NOT_FOUND);
		CHECK(is_there(&b, "a"));
		good(&b, "undo", "{'redo':true}");
		CHECK_OK(store_stat(workspace_home(b.ws), &b.ctx, memory, NULL, &err), err);
		b.ctx.actor = (struct actor){.agent = STR("coder")};
		good(&b, "memory_save", "{'content':'grass is green'}");
		b.ctx.actor = (struct actor){.agent = STR("scout")}; /* the other's fact is in the same file */
		CHECK_LACKS(refused(&b, "undo", "{}", ERR_CONFLICT), STR("green"));
		b.ctx.actor = (struct actor){.agent = STR("third")}; /* of the two facts, neither is this one's */
		good(&b, "undo", "{}");
		CHECK(!is_there(&b, "a"));
		CHECK_OK(store_stat(workspace_home(b.ws), &b.ctx, memory, NULL, &err), err);
	}
	bench_open_disk(&b, "native");
	bench_init(&other);
	bench_start(&other,
		    &(struct workspace_opts){.store_url = arena_printf(b.arena, "disk:%s", b.dir),
					     .name = STR("test"),
					     .agent = STR("bot"),
					     .files_dir = str_of(temp_dir_new()),
					     .relaxed = true},
		    "native");
	good(&other, "write_file", "{'path':'main.c','content':'int x;'}");
	good(&other, "memory_save", "{'content':'it is C'}");
	good(&other, "write_file", "{'path':'main.h','content':'int y;'}");
	good(&other, "undo", "{}");
	CHECK(!is_there(&other, "main.h") && is_there(&other, "main.c"));
	good(&other, "undo", "{}");
	CHECK_INT(store_stat(workspace_home(other.ws), &other.ctx, memory, NULL, &err), -ERR_NOT_FOUND);
	good(&other, "undo", "{}");
	CHECK(!is_there(&other, "main.c"));
	for (int i = 0; i < 3; i++)
		good(&other, "undo", "{'redo':true}");
	CHECK(is_there(&other, "main.h") && is_there(&other, "main.c"));
	CHECK_OK(store_stat(workspace_home(other.ws), &other.ctx, memory, NULL, &err), err);
	bench_close(&other);
	bench_close(&b);
}

TEST(an_agent_without_a_name_cannot_take_back_what_a_person_told_the_memory)
{
	struct bench b;

	bench_open_disk(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'1'}");
	good(&b, "memory_save", "{'content':'wants no payments without asking'}");
	good(&b, "undo", "{}");
	CHECK(!is_there(&b, "a"));
	CHECK_INT(jv_get_int(good(&b, "memory_list", "{}"), "total", 0), 1);
	bench_close(&b);
}

TEST(what_was_forgotten_does_not_come_back_with_an_undo)
{
	struct bench b;
	struct err err = {0};
	struct str text;
	const struct jv *v;

	bench_open_disk(&b, "native");
	b.ctx.actor.agent = STR("bot");
	v = good(&b, "memory_save", "{'content':'- the sky is blue'}");
	good(&b, "memory_save", "{'content':'- grass is green'}");
	v = jv_at(jv_get(v, "saved"), 0);
	good(&b, "memory_forget", arena_printf(b.arena, "{'id':'%.*s'}", STR_ARG(jv_get_str(v, "id"))).ptr);
	CHECK_HAS(refused(&b, "undo", "{}", ERR_NOT_FOUND), STR("is not kept; nothing was changed"));
	CHECK_OK(store_read(workspace_home(b.ws), &b.ctx, (struct wpath){STR("MEMORY.md")}, STORE_WHOLE, 10000, &text,
			    NULL, &err),
		 err);
	CHECK_HAS(text, STR("green"));
	CHECK_LACKS(text, STR("blue"));
	bench_close(&b);
}

TEST(undo_chooses_by_revision_call_session_and_actor)
{
	struct bench b;
	struct str call_id;

	bench_open(&b, "native");
	refused(&b, "undo", "{}", ERR_NOT_FOUND);
	b.ctx.actor = (struct actor){.user = STR("ann"), .session = STR("s1")};
	good(&b, "write_file", "{'path':'a','content':'1'}");
	b.ctx.actor = (struct actor){.user = STR("bob"), .agent = STR("coder"), .session = STR("s2")};
	good(&b, "write_file", "{'path':'b','content':'2'}");
	good(&b, "write_file", "{'path':'c','content':'3'}");
	call_id =
		jv_get_str(jv_get(jv_at(jv_get(good(&b, "history", "{'path':'b'}"), "revisions"), 0), "actor"), "call");
	good(&b, "undo", arena_printf(b.arena, "{'call':'%.*s'}", STR_ARG(call_id)).ptr);
	CHECK(!is_there(&b, "b") && is_there(&b, "c"));
	good(&b, "undo", "{'session':'s1'}");
	CHECK(!is_there(&b, "a"));
	good(&b, "undo", "{'actor':'coder'}");
	CHECK(!is_there(&b, "c"));
	good(&b, "undo", "{'since':0}");
	refused(&b, "undo", "{'call':'none'}", ERR_NOT_FOUND);
	refused(&b, "undo", "{'since':0,'session':'s1'}", ERR_INVALID);
	bench_close(&b);
}

TEST(undo_of_what_was_changed_since_is_a_conflict_with_the_difference)
{
	struct bench b;
	const struct jv *v;

	EACH_PLACE(&b)
	{
		b.ctx.actor = (struct actor){.session = STR("mine")};
		good(&b, "write_file", "{'path':'a','content':'one\\n'}");
		good(&b, "write_file", "{'path':'other','content':'x'}");
		b.ctx.actor = (struct actor){.session = STR("theirs")};
		good(&b, "write_file", "{'path':'a','content':'two\\n','mode':'overwrite'}");
		CHECK_HAS(refused(&b, "undo", "{'session':'mine'}", ERR_CONFLICT), STR("-one\n+two\n"));
		CHECK_STR(content_of(&b, "a"), STR("two\n"));
		CHECK(is_there(&b, "other"));
		CHECK(b.result.value != NULL);
		v = good(&b, "undo", "{'session':'mine','dry_run':true}");
		CHECK_STR(jv_get_str(jv_at(jv_get(v, "conflicts"), 0), "path"), STR("a"));
		CHECK_INT(jv_count(jv_get(v, "undone")), 0);
		good(&b, "undo", "{'session':'theirs'}");
		CHECK_STR(content_of(&b, "a"), STR("one\n"));
		good(&b, "undo", "{'session':'mine'}"); /* what stood on it was taken back, so it is free again */
		CHECK(!is_there(&b, "a") && !is_there(&b, "other"));
	}
}

TEST(undo_never_takes_back_what_another_program_wrote)
{
	struct bench b;

	bench_open_disk(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'mine\\n'}");
	outside(&b, "a", "edited by hand\n");
	CHECK_HAS(refused(&b, "undo", "{}", ERR_CONFLICT), STR("+edited by hand\n"));
	refused(&b, "undo", "{'since':0}", ERR_CONFLICT);
	CHECK_STR(content_of(&b, "a"), STR("edited by hand\n"));
	CHECK_STR(jv_get_str(jv_at(jv_get(good(&b, "history", "{}"), "revisions"), 0), "operation"), STR("outside"));
	good(&b, "restore", "{'path':'a','revision':1}"); /* when the person says so */
	CHECK_STR(content_of(&b, "a"), STR("mine\n"));
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "a"), STR("edited by hand\n"));
	bench_close(&b);
}

static int mode_of(struct bench *b, const char *path)
{
	struct stat st;

	CHECK_INT(stat(arena_printf(b->arena, "%s/test/files/%s", b->dir, path).ptr, &st), 0);
	return st.st_mode & 0777;
}

static void set_mode(struct bench *b, const char *path, unsigned mode)
{
	CHECK_INT(chmod(arena_printf(b->arena, "%s/test/files/%s", b->dir, path).ptr, mode), 0);
}

TEST(a_file_that_comes_back_has_the_mode_that_it_had)
{
	struct bench b;

	bench_open_disk(&b, "native");
	good(&b, "write_file", "{'path':'key','content':'secret'}");
	set_mode(&b, "key", 0600);
	good(&b, "delete_file", "{'path':'key'}");
	good(&b, "undo", "{}");
	CHECK_INT(mode_of(&b, "key"), 0600);
	good(&b, "move_file", "{'from':'key','to':'d/key'}");
	good(&b, "undo", "{}");
	CHECK_INT(mode_of(&b, "key"), 0600);
	good(&b, "write_file", "{'path':'key','content':'other','mode':'overwrite'}");
	set_mode(&b, "key", 0640); /* the person's doing, which stays */
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "key"), STR("secret"));
	CHECK_INT(mode_of(&b, "key"), 0640);
	good(&b, "checkpoint", "{'name':'full'}");
	good(&b, "clear_files", "{}");
	good(&b, "restore", "{'path':'/','revision':'full'}");
	CHECK_INT(mode_of(&b, "key"), 0640);
	bench_close(&b);
}

/* "uid:gid mode" */
static struct str rights_of(struct bench *b, const char *path)
{
	struct stat st;

	CHECK_INT(stat(arena_printf(b->arena, "%s/test/files/%s", b->dir, path).ptr, &st), 0);
	return arena_printf(b->arena, "%u:%u %o", st.st_uid, st.st_gid, st.st_mode & 07777);
}

static void give_to(struct bench *b, const char *path, unsigned uid, unsigned gid)
{
	CHECK_INT(chown(arena_printf(b->arena, "%s/test/%s", b->dir, path).ptr, uid, gid), 0);
}

/* A file of somebody else. */
static void open_with_theirs(struct bench *b)
{
	if (geteuid() != 0)
		SKIP("only root may give a file away");
	bench_open_disk(b, "native");
	good(b, "write_file", "{'path':'key','content':'secret'}");
	set_mode(b, "key", 0640);
	give_to(b, "files/key", 1234, 4321);
}

TEST(a_file_that_comes_back_has_the_owner_that_it_had)
{
	struct bench b;

	open_with_theirs(&b);
	good(&b, "delete_file", "{'path':'key'}");
	good(&b, "undo", "{}");
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	good(&b, "move_file", "{'from':'key','to':'d/key'}");
	CHECK_STR(rights_of(&b, "d/key"), STR("1234:4321 640"));
	good(&b, "undo", "{}");
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	good(&b, "undo", "{'redo':true}");
	CHECK_STR(rights_of(&b, "d/key"), STR("1234:4321 640"));
	good(&b, "checkpoint", "{'name':'full'}");
	good(&b, "clear_files", "{}");
	good(&b, "restore", "{'path':'/','revision':'full'}");
	CHECK_STR(rights_of(&b, "d/key"), STR("1234:4321 640"));
	good(&b, "delete_file", "{'path':'d/key'}");
	good(&b, "restore", "{'path':'d/key','revision':'full'}");
	CHECK_STR(rights_of(&b, "d/key"), STR("1234:4321 640"));
	bench_close(&b);
}

TEST(an_edit_and_its_undo_leave_a_file_to_its_owner)
{
	struct bench b;

	open_with_theirs(&b);
	good(&b, "edit_file", "{'path':'key','old_text':'secret','new_text':'other'}");
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	good(&b, "write_file", "{'path':'key','content':'third','mode':'overwrite'}");
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "key"), STR("other"));
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	give_to(&b, "files/key", 2345, 4321); /* the person's doing, which stays */
	good(&b, "undo", "{}");
	CHECK_STR(content_of(&b, "key"), STR("secret"));
	CHECK_STR(rights_of(&b, "key"), STR("2345:4321 640"));
	bench_close(&b);
}

TEST(a_file_that_was_removed_and_made_again_goes_back_to_its_owner)
{
	struct bench b;

	open_with_theirs(&b);
	b.ctx.actor.session = STR("s");
	good(&b, "delete_file", "{'path':'key'}");
	good(&b, "write_file", "{'path':'key','content':'mine'}");
	CHECK_STR(rights_of(&b, "key"), STR("0:0 644"));
	good(&b, "undo", "{'session':'s'}");
	CHECK_STR(content_of(&b, "key"), STR("secret"));
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	good(&b, "undo", "{'redo':true}");
	CHECK_STR(content_of(&b, "key"), STR("mine"));
	CHECK_STR(rights_of(&b, "key"), STR("0:0 644"));
	good(&b, "restore", "{'path':'key','revision':2}"); /* 2: that it is theirs was noticed */
	CHECK_STR(rights_of(&b, "key"), STR("1234:4321 640"));
	bench_close(&b);
}

TEST(a_copy_belongs_to_whoever_makes_it)
{
	struct bench b;

	open_with_theirs(&b);
	good(&b, "copy_file", "{'from':'key','to':'copy'}");
	CHECK_STR(rights_of(&b, "copy"), STR("0:0 640"));
	good(&b, "delete_file", "{'path':'copy'}");
	good(&b, "undo", "{}");
	CHECK_STR(rights_of(&b, "copy"), STR("0:0 640"));
	bench_close(&b);
}

/* All lines of the log. */
static struct str log_text(struct bench *b)
{
	struct str text;
	struct err err = {0};
	struct store *own;

	CHECK_OK(store_disk_open(arena_printf(b->arena, "%s/test", b->dir).ptr, NULL, &own, &err), err);
	CHECK_OK(store_read(own, &b->ctx, (struct wpath){STR(".stead/rev/log/0000000000000001.jsonl")}, STORE_WHOLE,
			    MIB, &text, NULL, &err),
		 err);
	store_destroy(own);
	return text;
}

TEST(records_name_an_owner_only_if_it_is_not_that_of_the_store)
{
	struct bench b;

	open_with_theirs(&b);
	good(&b, "write_file", "{'path':'own','content':'1'}");
	good(&b, "delete_file", "{'path':'own'}");
	CHECK_LACKS(log_text(&b), STR("\"uid\""));
	good(&b, "delete_file", "{'path':'key'}");
	good(&b, "history", "{}");
	good(&b, "write_file", "{'path':'own','content':'1'}");
	CHECK_HAS(log_text(&b), STR("\"uid\":1234,\"gid\":4321"));
	bench_close(&b);
}

TEST(root_gives_what_it_brings_back_to_the_owner_of_the_store)
{
	struct bench b;
	const char *dir = temp_dir_new();
	char url[300];

	if (geteuid() != 0)
		SKIP("only root may give a file away");
	CHECK_INT(chown(dir, 1234, 1234), 0);
	snprintf(url, sizeof(url), "disk:%s", dir);
	bench_open_at(&b, str_of(url), "native");
	b.dir = dir;
	good(&b, "write_file", "{'path':'key','content':'secret'}");
	give_to(&b, "files/key", 1234, 1234);
	good(&b, "delete_file", "{'path':'key'}");
	good(&b, "undo", "{}");
	CHECK_STR(rights_of(&b, "key"), STR("1234:1234 644"));
	CHECK_LACKS(log_text(&b), STR("\"uid\":1234"));
	bench_close(&b);
}

TEST(the_past_of_a_file_that_another_program_changed_is_not_its_present)
{
	struct bench b;

	bench_open_disk(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'mine\\n'}");
	outside(&b, "a", "theirs\n");
	CHECK_STR(text_at(&b, "a", 1), STR("mine\n"));
	CHECK_HAS(good(&b, "diff", "{'path':'a','from':1}") ? b.result.text : STR(""), STR("-mine\n+theirs"));
	bench_close(&b);
}

TEST(a_dry_run_tells_what_would_happen_and_changes_nothing)
{
	struct bench b;
	const struct jv *v;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'a','content':'1'}");
	v = good(&b, "undo", "{'dry_run':true}");
	CHECK_STR(jv_get_str(jv_at(jv_get(v, "files"), 0), "how"), STR("removed"));
	CHECK_HAS(b.result.text, STR("would remove a"));
	CHECK(is_there(&b, "a"));
	bench_close(&b);
}

TEST(checkpoints_are_listed_moved_and_refused_where_they_would_be_ambiguous)
{
	struct bench b;
	const struct jv *list;

	bench_open(&b, "native");
	CHECK_INT(jv_get_int(good(&b, "checkpoint", "{'name':'start'}"), "revision", -1), 0);
	put(&b, "a", STR("a"));
	good(&b, "checkpoint", "{'name':'start'}");
	list = jv_get(good(&b, "checkpoint", "{}"), "checkpoints");
	CHECK_INT(jv_count(list), 1);
	CHECK_INT(jv_get_int(jv_at(list, 0), "revision", 0), 1);
	refused(&b, "checkpoint", "{'name':'head'}", ERR_INVALID);
	refused(&b, "checkpoint", "{'name':'7'}", ERR_INVALID);
	refused(&b, "checkpoint", "{'name':'a..b'}", ERR_INVALID);
	refused(&b, "checkpoint", "{'name':'a@b'}", ERR_INVALID);
	refused(&b, "checkpoint", "{'name':''}", ERR_INVALID);
	bench_close(&b);
}

TEST(changes_have_no_gap_and_no_repeat)
{
	struct bench b;
	const struct jv *v;
	int64_t next = 0;
	int seen = 0;

	bench_open(&b, "native");
	for (int i = 0; i < 25; i++)
		put(&b, i % 2 ? "in/a" : "out", arena_printf(b.arena, "%d", i));
	do {
		v = good(&b, "changes",
			 arena_printf(b.arena, "{'since_revision':%lld,'path_prefix':'in','limit':5}", (long long)next)
				 .ptr);
		for (const struct jv_member *m = jv_first(jv_get(v, "changes")); m; m = m->next) {
			CHECK_INT(jv_get_int(m->value, "revision", 0), 2 * (seen + 1));
			seen++;
		}
		next = jv_get_int(v, "next", 0);
	} while (jv_get_bool(v, "more", false));
	CHECK_INT(seen, 12);
	CHECK_INT(next, 25);
	CHECK_INT(jv_count(jv_get(good(&b, "changes", "{'since_revision':25,'wait_ms':20}"), "changes")), 0);
	refused(&b, "changes", "{'since_revision':26}", ERR_NOT_FOUND);
	refused(&b, "changes", "{'wait_ms':60001}", ERR_INVALID);
	bench_close(&b);
}

static void *write_later(void *arg)
{
	struct bench *b = arg;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err = {0};

	CHECK_OK(store_write(workspace_files(b->ws), &ctx, (struct wpath){STR("late")}, STR("x"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	return NULL;
}

TEST(changes_wait_for_the_first_one)
{
	struct bench b;
	pthread_t thread;

	bench_open(&b, "native");
	CHECK_INT(pthread_create(&thread, NULL, write_later, &b), 0);
	CHECK_INT(jv_count(jv_get(good(&b, "changes", "{'wait_ms':60000}"), "changes")), 1);
	pthread_join(thread, NULL);
	bench_close(&b);
}

TEST(a_change_by_another_process_is_in_the_feed_and_visible_when_it_is_told)
{
	struct bench b, other = {0};

	bench_open_disk(&b, "native");
	bench_open_at(&other, arena_printf(b.arena, "disk:%s", b.dir),
		      "native"); /* its own log in memory, as a process has */
	for (int i = 0; i < 20; i++) {
		const struct jv *v, *list;
		struct str text = arena_printf(b.arena, "%d", i);

		put(&other, "shared", text);
		v = good(&b, "changes", arena_printf(b.arena, "{'since_revision':%d,'wait_ms':60000}", i).ptr);
		list = jv_get(v, "changes");
		CHECK_INT(jv_count(list), 1);
		CHECK_INT(jv_get_int(v, "next", 0), i + 1);
		CHECK_STR(content_of(&b, "shared"), text);
	}
	bench_close(&other);
	bench_close(&b);
}

/* Users, roots and directories of the person's own. */
static void open_as(struct bench *b, const char *dir, struct workspace_opts opts)
{
	bench_init(b);
	opts.store_url = arena_printf(b->arena, "disk:%s", dir);
	opts.name = STR("test");
	opts.create = opts.relaxed = true;
	bench_start(b, &opts, "native");
}

TEST(users_see_and_undo_their_own_part_only)
{
	struct bench all, ann, bob;

	bench_open_disk(&all, "native");
	open_as(&ann, all.dir, (struct workspace_opts){.user = STR("ann")});
	good(&ann, "write_file", "{'path':'a','content':'ann'}");
	open_as(&bob, all.dir, (struct workspace_opts){.user = STR("bob")});
	good(&bob, "write_file", "{'path':'a','content':'bob'}");
	CHECK_INT(jv_count(jv_get(good(&ann, "history", "{}"), "revisions")), 1);
	CHECK_STR(jv_get_str(jv_get(jv_at(jv_get(good(&ann, "history", "{}"), "revisions"), 0), "actor"), "user"),
		  STR("ann"));
	CHECK_STR(text_at(&ann, "a", 2), STR("ann"));
	good(&ann, "undo", "{}");
	CHECK(!is_there(&ann, "a") && is_there(&bob, "a"));
	bench_close(&bob);
	bench_close(&ann);
	bench_close(&all);
}

TEST(undoing_a_users_own_version_of_a_shared_file_shows_the_shared_one_again)
{
	struct bench all, ann;

	bench_open_disk(&all, "native");
	open_as(&ann, all.dir, (struct workspace_opts){.root = STR("workspace"), .person = true});
	good(&ann, "write_file", "{'path':'knowledge/s.md','content':'for all'}");
	bench_close(&ann);
	open_as(&ann, all.dir, (struct workspace_opts){.root = STR("workspace"), .person = true, .user = STR("ann")});
	good(&ann, "write_file", "{'path':'knowledge/s.md','content':'mine','mode':'overwrite'}");
	CHECK_STR(jv_get_str(good(&ann, "read_file", "{'path':'knowledge/s.md','at_revision':1}"), "content"),
		  STR("for all"));
	good(&ann, "undo", "{}");
	CHECK_STR(content_of(&ann, "knowledge/s.md"), STR("for all"));
	good(&ann, "undo", "{'redo':true}");
	CHECK_STR(content_of(&ann, "knowledge/s.md"), STR("mine"));
	bench_close(&ann);
	bench_close(&all);
}

TEST(with_the_whole_workspace_as_root_what_is_fixed_stays_out_of_undo_and_restore)
{
	struct bench b, whole;
	struct err err = {0};

	bench_open_disk(&b, "native");
	open_as(&whole, b.dir, (struct workspace_opts){.root = STR("workspace"), .person = true});
	good(&whole, "write_file", "{'path':'files/a','content':'1'}");
	CHECK_OK(store_write(workspace_home(whole.ws), &whole.ctx, (struct wpath){STR("artifacts/x")}, STR("parked"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	good(&whole, "write_file", "{'path':'MEMORY.md','content':'m','mode':'overwrite'}");
	good(&whole, "undo", "{'since':0}");
	CHECK(!is_there(&whole, "files/a") && is_there(&whole, "artifacts/x"));
	good(&whole, "undo", "{'redo':true}");
	good(&whole, "restore", "{'path':'/','revision':0}");
	CHECK(!is_there(&whole, "files/a") && is_there(&whole, "artifacts/x"));
	bench_close(&whole);
	bench_close(&b);
}

TEST(a_directory_of_the_persons_own_has_a_history_of_its_own)
{
	struct bench b, own;
	const char *dir = temp_dir_new();

	bench_open_disk(&b, "native");
	put(&b, "elsewhere", STR("x"));
	open_as(&own, b.dir, (struct workspace_opts){.files_dir = str_of(dir)});
	good(&own, "write_file", "{'path':'main.c','content':'int x;'}");
	CHECK_INT(jv_get_int(good(&own, "history", "{}"), "head", 0), 1);
	bench_close(&own);
	open_as(&own, b.dir, (struct workspace_opts){.files_dir = str_of(dir)});
	good(&own, "undo", "{}");
	CHECK(!is_there(&own, "main.c"));
	CHECK_INT(jv_get_int(good(&b, "history", "{}"), "head", 0), 1);
	bench_close(&own);
	bench_close(&b);
}

TEST(more_files_than_an_answer_lists_are_undone_redone_and_counted)
{
	struct bench b;
	struct err err = {0};
	const struct jv *v;

	bench_open(&b, "native");
	for (int i = 0; i < 10002; i++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx ctx = {.arena = arena, .actor.session = STR("many")};
		struct wpath path = {arena_printf(arena, "d%d/f%d", i % 100, i)};

		CHECK_OK(store_write(workspace_files(b.ws), &ctx, path, path.s, (struct store_cond){0}, NULL, &err),
			 err);
	}
	v = good(&b, "undo", "{'session':'many'}");
	CHECK_INT(jv_get_int(v, "total", 0), 10002);
	CHECK_INT(jv_count(jv_get(v, "files")), 10000);
	CHECK_HAS(b.result.text, STR("undid 10002 changes (10002 files)\n"));
	CHECK_HAS(b.result.text, STR(" and 9952 more"));
	CHECK_INT(jv_count(jv_get(good(&b, "ls", "{}"), "entries")), 0);
	good(&b, "undo", "{'redo':true}");
	CHECK_STR(content_of(&b, "d99/f9999"), STR("d99/f9999"));
	bench_close(&b);
}

TEST(denying_the_tools_that_change_denies_undo_and_restore_too)
{
	struct bench b;
	struct err err = {0};

	bench_open_disk(&b, "native");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("tools.json")},
			     STR("{\"deny\":[\"write_file\",\"read_file\"]}"), (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(&b, (struct workspace_opts){0}, "native");
	CHECK(!toolset_find(b.set, STR("undo")) && !toolset_find(b.set, STR("restore")));
	CHECK(!toolset_find(b.set, STR("diff")) && toolset_find(b.set, STR("history")));
	bench_close(&b);
}

/* In the line of a revision that is in the middle of the log. */
static void flip_bit(struct bench *b, uint64_t revision)
{
	const char *name = arena_printf(b->arena, "%s/test/.stead/rev/log/0000000000000001.jsonl", b->dir).ptr;
	char text[16384], *line;
	FILE *f = fopen(name, "r+");
	size_t len;

	CHECK(f != NULL);
	len = fread(text, 1, sizeof(text) - 1, f);
	text[len] = '\0';
	line = strstr(text, arena_printf(b->arena, "{\"rev\":%llu,", (unsigned long long)revision).ptr);
	CHECK(line != NULL);
	CHECK_INT(fseek(f, line - text + 30, SEEK_SET), 0);
	CHECK(fputc(line[30] ^ 1, f) != EOF);
	CHECK_INT(fclose(f), 0);
}

TEST(history_lists_what_is_on_either_side_of_damage)
{
	struct bench b;
	const struct jv *v;

	bench_open_disk(&b, "native");
	for (int i = 1; i <= 9; i++)
		good(&b, "write_file", arena_printf(b.arena, "{'path':'%d','content':'x'}", i).ptr);
	bench_stop(&b);
	flip_bit(&b, 5);
	bench_reopen(&b, (struct workspace_opts){0}, "native");
	v = good(&b, "history", "{}");
	CHECK_INT(jv_count(jv_get(v, "revisions")), 4);
	CHECK(jv_get_bool(v, "more", false));
	CHECK_HAS(refused(&b, "history", arena_printf(b.arena, "{'until':%d}", (int)jv_get_int(v, "next", 0)).ptr,
			  ERR_CORRUPT),
		  STR("revision 5 cannot be read"));
	CHECK_INT(jv_count(jv_get(good(&b, "history", "{'until':4}"), "revisions")), 4);
	bench_close(&b);
}
