/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the person's own: absolute paths, links, ignored files, encodings, images, and what Git has there. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "tool/tool_fix.h"

static struct str in(struct bench *b, const char *path)
{
	return arena_printf(b->arena, "%s/%s", b->dir, path);
}

static void host_write(struct bench *b, const char *path, struct str bytes)
{
	FILE *f = fopen(in(b, path).ptr, "we");

	CHECK(f && fwrite(bytes.ptr, 1, bytes.len, f) == bytes.len && fclose(f) == 0);
}

static bool exists(struct bench *b, const char *path)
{
	struct stat st;

	return lstat(in(b, path).ptr, &st) == 0;
}

static void put_link(struct bench *b, const char *path, const char *target)
{
	CHECK(symlink(target, in(b, path).ptr) == 0);
}

/* src/a.txt, src/[id].tsx, built/out.js (ignored), .git, and links: within, out, to a secret. */
static void open_project(struct bench *b, const char *dialect)
{
	struct workspace_opts opts = {
		.store_url = STR("memory:"), .name = STR("test"), .create = true, .relaxed = true};

	bench_init(b);
	b->dir = arena_str(b->arena, str_of(temp_dir_new())).ptr;
	opts.files_dir = str_of(b->dir);
	bench_start(b, &opts, dialect);
	CHECK(mkdir(in(b, "src").ptr, 0755) == 0 && mkdir(in(b, "built").ptr, 0755) == 0 &&
	      mkdir(in(b, ".git").ptr, 0755) == 0);
	host_write(b, "src/a.txt", STR("one\ntwo\n"));
	host_write(b, "src/[id].tsx", STR("x"));
	host_write(b, "built/out.js", STR("minified()\n"));
	host_write(b, ".gitignore", STR("built\n"));
	host_write(b, ".git/HEAD", STR("ref\n"));
	host_write(b, ".git/config", STR("[core]\n"));
	host_write(b, ".env", STR("KEY=1\n"));
	CHECK(symlink("src", in(b, "link").ptr) == 0 && symlink("../src/a.txt", in(b, "src/back").ptr) == 0 &&
	      symlink("/etc", in(b, "out").ptr) == 0 && symlink(".env", in(b, "secret").ptr) == 0 &&
	      symlink(in(b, "src/a.txt").ptr, in(b, "absolute").ptr) == 0 && symlink("round", in(b, "round").ptr) == 0);
}

static void read_is(struct bench *b, struct str path, const char *text)
{
	struct jv *args = jv_object(b->arena);

	jv_set_str(b->arena, args, "path", path);
	call_jv(b, "read_file", args);
	CHECK(!b->result.is_error);
	CHECK_STR(b->result.text, str_of(text));
}

TEST(an_absolute_path_below_the_directory_is_accepted)
{
	struct bench b;

	open_project(&b, "native");
	read_is(&b, in(&b, "src/a.txt"), "one\ntwo\n");
	read_is(&b, STR("/src/a.txt"), "one\ntwo\n");
	call_jv(&b, "ls", jv_object(b.arena));
	CHECK(!b.result.is_error);
}

TEST(an_absolute_path_of_another_place_is_refused)
{
	struct bench b;

	open_project(&b, "native");
	CHECK_HAS(refused(&b, "write_file", "{'path':'/tmp/new/x','content':'x'}", ERR_DENIED),
		  STR("\"/tmp/new/x\" is outside the directory; give a path relative to it"));
	refused(&b, "read_file", "{'path':'/etc/passwd'}", ERR_DENIED);
	CHECK(!exists(&b, "tmp"));
	good(&b, "write_file", "{'path':'/new.txt','content':'x'}");
	good(&b, "write_file", "{'path':'/src/new/x','content':'x'}");
	CHECK(exists(&b, "new.txt") && exists(&b, "src/new/x"));
}

TEST(an_empty_directory_can_be_moved)
{
	struct bench b;

	open_project(&b, "native");
	CHECK(mkdir(in(&b, "a").ptr, 0755) == 0 && mkdir(in(&b, "a/b").ptr, 0755) == 0);
	good(&b, "move_file", "{'from':'a','to':'x/y'}");
	CHECK(exists(&b, "x/y/b") && !exists(&b, "a"));
	CHECK(mkdir(in(&b, "hidden").ptr, 0755) == 0);
	host_write(&b, "hidden/.env", STR("KEY=1\n"));
	refused(&b, "move_file", "{'from':'hidden','to':'seen'}", ERR_DENIED);
	CHECK(exists(&b, "hidden/.env"));
}

TEST(several_files_are_read_at_once_and_one_that_fails_does_not_stop_the_others)
{
	struct bench b;
	struct buf args;

	open_project(&b, "native");
	good(&b, "read_files", "{'paths':['src/a.txt','none','.env','src/[id].tsx']}");
	CHECK_HAS(b.result.text, STR("==> src/a.txt <==\none\ntwo\n==> none <==\n[read none: there is no such file"));
	CHECK_HAS(b.result.text, STR("==> src/[id].tsx <==\nx"));
	CHECK(str_find(b.result.text, STR("KEY"), 0) == SIZE_MAX);
	buf_init(&args, b.arena, MIB);
	for (int i = 0; i < 3000; i++)
		buf_lit(&args, "a line of twenty by\n");
	host_write(&b, "large.txt", buf_str(&args));
	good(&b, "read_files", "{'paths':['large.txt','src/a.txt']}");
	CHECK(b.result.text.len < 42 * KIB);
	CHECK_HAS(b.result.text, STR("==> src/a.txt <==\n[the reply is full; read it with another call]"));
}

TEST(search_covers_the_directory_and_leaves_out_what_git_ignores)
{
	struct bench b;

	open_project(&b, "native");
	good(&b, "search", "{'query':'two'}");
	CHECK_HAS(b.result.text, STR("src/a.txt  a.txt"));
	good(&b, "search", "{'query':'two','under':'built'}");
	CHECK_HAS(b.result.text, STR("nothing found"));
	good(&b, "search", "{'query':'two','under':'src'}");
	CHECK_HAS(b.result.text, STR("src/a.txt"));
	good(&b, "search", "{'query':'minified'}");
	CHECK_HAS(b.result.text, STR("nothing found"));
	good(&b, "search", "{'query':'KEY'}");
	CHECK_HAS(b.result.text, STR("nothing found"));
	good(&b, "write_file", "{'path':'docs/lynx.md','content':'The lynx eats hares.'}");
	good(&b, "search", "{'query':'lynx','area':'files'}");
	CHECK_HAS(b.result.text, STR("docs/lynx.md"));
	good(&b, "delete_file", "{'path':'docs/lynx.md'}");
	good(&b, "search", "{'query':'hares'}");
	CHECK_HAS(b.result.text, STR("nothing found"));
}

TEST(a_link_that_stays_inside_is_followed_and_one_that_leaves_is_refused_by_name)
{
	struct bench b;

	open_project(&b, "native");
	read_is(&b, STR("link/a.txt"), "one\ntwo\n");
	read_is(&b, STR("src/back"), "one\ntwo\n");
	read_is(&b, STR("absolute"), "one\ntwo\n");
	CHECK_HAS(refused(&b, "read_file", "{'path':'out/passwd'}", ERR_DENIED),
		  STR("\"out\" is a symbolic link to /etc"));
	CHECK_HAS(refused(&b, "write_file", "{'path':'out/x','content':'x'}", ERR_DENIED), STR("outside"));
	refused(&b, "read_file", "{'path':'secret'}", ERR_DENIED);
	refused(&b, "read_file", "{'path':'round'}", ERR_INVALID);
	good(&b, "edit_file", "{'path':'link/a.txt','old_text':'one','new_text':'1'}");
	read_is(&b, STR("src/a.txt"), "1\ntwo\n");
	read_is(&b, STR("link/a.txt"), "1\ntwo\n");
	good(&b, "write_file", "{'path':'src/a.txt','mode':'overwrite','content':'new'}");
	good(&b, "read_file", "{'path':'link/a.txt','at_revision':1}");
	CHECK_HAS(b.result.text, STR("1\ntwo"));
}

TEST(links_are_listed_moved_and_deleted_as_links)
{
	struct bench b;
	struct str target;

	open_project(&b, "native");
	good(&b, "ls", "{}");
	CHECK_HAS(b.result.text, STR("link -> src"));
	CHECK_HAS(b.result.text, STR("out -> /etc"));
	good(&b, "move_file", "{'from':'link','to':'other'}");
	CHECK(exists(&b, "other") && !exists(&b, "link") && exists(&b, "src/a.txt"));
	good(&b, "delete_file", "{'path':'other'}");
	good(&b, "delete_file", "{'path':'out'}");
	CHECK(!exists(&b, "other") && !exists(&b, "out") && exists(&b, "src/a.txt"));
	(void)target;
}

TEST(links_are_listed_by_name_without_those_that_are_protected)
{
	struct bench b;

	open_project(&b, "native");
	put_link(&b, "b", "src/a.txt");
	put_link(&b, "a", "src/a.txt");
	put_link(&b, ".npmrc", "src/a.txt");
	good(&b, "ls", "{}");
	CHECK_HAS(b.result.text, STR("a -> src/a.txt\nabsolute -> "));
	CHECK_HAS(b.result.text, STR("b -> src/a.txt\nlink -> src"));
	CHECK_LACKS(b.result.text, STR(".npmrc"));
}

TEST(a_link_neither_gets_a_protected_name_nor_leads_around_one)
{
	static const char *const names[] = {".env.local", "keys/server.key", "stead.yaml", ".git/hooks/post-commit"};
	struct bench b;

	open_project(&b, "native");
	for (size_t i = 0; i < COUNT(names); i++) {
		refused(&b, "move_file", arena_printf(b.arena, "{'from':'link','to':'%s'}", names[i]).ptr, ERR_DENIED);
		CHECK(exists(&b, "link") && !exists(&b, names[i]));
	}
	put_link(&b, ".npmrc", "src/a.txt");
	refused(&b, "read_file", "{'path':'.npmrc'}", ERR_DENIED);
	refused(&b, "delete_file", "{'path':'.npmrc'}", ERR_DENIED);
	refused(&b, "move_file", "{'from':'.npmrc','to':'x'}", ERR_DENIED);
	CHECK(exists(&b, ".npmrc") && exists(&b, "src/a.txt"));
}

TEST(a_link_is_moved_into_a_directory_that_is_made_and_over_nothing)
{
	struct bench b;

	open_project(&b, "native");
	good(&b, "move_file", "{'from':'link','to':'new/dir/link'}");
	CHECK(exists(&b, "new/dir/link") && !exists(&b, "link"));
	CHECK_HAS(refused(&b, "move_file", "{'from':'new/dir/link','to':'src/a.txt','overwrite':true}", ERR_EXISTS),
		  STR("choose another name"));
	read_is(&b, STR("src/a.txt"), "one\ntwo\n");
}

TEST(an_agent_does_not_write_the_stead_yaml_of_a_project)
{
	struct bench b;

	open_project(&b, "native");
	CHECK_HAS(refused(&b, "write_file", "{'path':'stead.yaml','content':'store: x'}", ERR_DENIED),
		  STR("people write it"));
	refused(&b, "write_file", "{'path':'src/Stead.YAML','content':'store: x'}", ERR_DENIED);
	refused(&b, "move_file", "{'from':'src/a.txt','to':'stead.yaml'}", ERR_DENIED);
	CHECK(!exists(&b, "stead.yaml"));
	good(&b, "write_file", "{'path':'AGENTS.md','content':'x'}");
	good(&b, "write_file", "{'path':'stead.yml','content':'x'}");
}

TEST(a_directory_with_a_link_in_it_is_removed_whole)
{
	struct bench b;

	open_project(&b, "native");
	good(&b, "delete_file", "{'path':'src','recursive':true}");
	CHECK_STR(b.result.text, STR("removed src (2 files); undo does not bring back the 1 symbolic link in it"));
	CHECK(!exists(&b, "src"));
	good(&b, "undo", "{}");
	read_is(&b, STR("src/a.txt"), "one\ntwo\n");
}

TEST(a_directory_that_holds_only_links_and_empty_directories_is_moved_and_removed)
{
	struct bench b;

	open_project(&b, "native");
	CHECK(mkdir(in(&b, "bare").ptr, 0755) == 0 && mkdir(in(&b, "bare/empty").ptr, 0755) == 0 &&
	      symlink("../src/a.txt", in(&b, "bare/link").ptr) == 0);
	CHECK_HAS(refused(&b, "delete_file", "{'path':'bare'}", ERR_INVALID), STR("set recursive"));
	good(&b, "move_file", "{'from':'bare','to':'moved'}");
	CHECK(exists(&b, "moved/link") && exists(&b, "moved/empty") && !exists(&b, "bare"));
	good(&b, "delete_file", "{'path':'moved','recursive':true}");
	CHECK(!exists(&b, "moved") && exists(&b, "src/a.txt"));
	CHECK(mkdir(in(&b, ".git/bare").ptr, 0755) == 0);
	refused(&b, "delete_file", "{'path':'.git/bare','recursive':true}", ERR_DENIED);
	CHECK(exists(&b, ".git/bare"));
}

TEST(a_tool_that_needs_a_workspace_says_so)
{
	struct bench b;
	struct err err = {0};

	open_project(&b, "native");
	CHECK_INT(toolset_call(b.set, &b.ctx, STR("fork"), jv_object(b.arena), &b.result, &err), -ERR_NOT_FOUND);
	CHECK_HAS(str_of(err.msg), STR("works in a workspace, not in a directory"));
}

TEST(links_and_empty_directories_follow_a_directory_that_is_moved)
{
	struct bench b;

	open_project(&b, "");
	CHECK(mkdir(in(&b, "src/empty").ptr, 0755) == 0 && symlink("../a.txt", in(&b, "src/empty/up").ptr) == 0);
	good(&b, "move_file", "{'from':'src','to':'lib/src'}");
	CHECK(!exists(&b, "src") && exists(&b, "lib/src/back") && exists(&b, "lib/src/empty/up"));
	read_is(&b, STR("lib/src/empty/up"), "one\ntwo\n");
}

TEST(what_git_ignores_is_left_out_of_a_list_unless_it_is_asked_for)
{
	struct bench b;

	open_project(&b, "native");
	good(&b, "ls", "{'depth':3}");
	CHECK_LACKS(b.result.text, STR("built"));
	CHECK_LACKS(b.result.text, STR(".git/"));
	CHECK_HAS(b.result.text, STR("[2 ignored by Git are not shown; set all to see them]"));
	good(&b, "ls", "{'all':true}");
	CHECK_HAS(b.result.text, STR("built/"));
	good(&b, "ls", "{'path':'built'}");
	CHECK_STR(b.result.text, STR("out.js"));
}

TEST(a_list_has_names_and_kinds_and_more_if_asked)
{
	struct bench b;
	const struct jv *v;

	open_project(&b, "native");
	v = good(&b, "ls", "{'path':'src'}");
	CHECK(!jv_get(jv_at(jv_get(v, "entries"), 0), "size"));
	v = good(&b, "ls", "{'path':'src','details':true}");
	CHECK_INT(jv_get_int(jv_at(jv_get(v, "entries"), 1), "size", 0), 8);
	CHECK(jv_get_str(jv_at(jv_get(v, "entries"), 1), "version").len > 0);
}

TEST(a_search_that_finds_nothing_says_what_would)
{
	struct bench b;

	open_project(&b, "native");
	good(&b, "glob", "{'pattern':'*.txt'}");
	CHECK_HAS(b.result.text, STR("**/*.txt matches 1 file"));
	good(&b, "glob", "{'pattern':'**/*.js'}");
	CHECK_HAS(b.result.text, STR("1 file that .gitignore leaves out matches"));
	good(&b, "glob", "{'pattern':'*.js'}");
	CHECK_HAS(b.result.text,
		  STR("**/*.js matches 1 file that .gitignore leaves out; use that pattern and set all"));
	good(&b, "grep", "{'pattern':'minified'}");
	CHECK_HAS(b.result.text, STR("set all to see them"));
	good(&b, "glob", "{'pattern':'src/[id].tsx'}");
	CHECK_STR(b.result.text, STR("src/[id].tsx"));
}

TEST(latin_1_and_utf_16_are_read_as_text)
{
	struct bench b;
	const struct jv *v;

	open_project(&b, "native");
	host_write(&b, "latin.txt", STR("caf\xe9 \x80\nsecond\n"));
	host_write(&b, "wide.txt", str_n("\xff\xfeh\0\xe9\0\n\0\x3c\xd8\x31\xdf", 12));
	host_write(&b, "data.bin", str_n("\x01\x02\x00\xff", 4));
	v = good(&b, "read_file", "{'path':'latin.txt','limit':1}");
	CHECK_STR(jv_get_str(v, "encoding"), STR("latin-1"));
	CHECK_STR(b.result.text, STR("café €\n[1 of 2 lines; continue with offset 2]"));
	v = good(&b, "read_file", "{'path':'wide.txt'}");
	CHECK_STR(jv_get_str(v, "encoding"), STR("utf-16"));
	CHECK_STR(b.result.text, STR("hé\n🌱"));
	refused(&b, "read_file", "{'path':'data.bin'}", ERR_UNSUPPORTED);
	refused(&b, "read_file", "{'path':'latin.txt','encoding':'utf-8'}", ERR_UNSUPPORTED);
}

TEST(an_edit_of_latin_1_or_utf_16_keeps_the_encoding_or_says_what_to_do)
{
	struct bench b;

	open_project(&b, "native");
	host_write(&b, "latin.txt", STR("caf\xe9 one\n"));
	host_write(&b, "wide.txt", str_n("\xff\xfeh\0\xe9\0\n\0", 8));
	good(&b, "edit_file", "{'path':'latin.txt','old_text':'one','new_text':'two'}");
	good(&b, "read_file", "{'path':'latin.txt'}");
	CHECK_STR(b.result.text, STR("café two\n"));
	refused(&b, "edit_file", "{'path':'latin.txt','old_text':'café','new_text':'tea'}", ERR_UNSUPPORTED);
	CHECK_HAS(b.result.text, STR("the file is Latin-1 text"));
	refused(&b, "edit_file", "{'path':'latin.txt','old_text':'two','new_text':'zwölf'}", ERR_UNSUPPORTED);
	refused(&b, "edit_file", "{'path':'wide.txt','old_text':'h','new_text':'hh'}", ERR_UNSUPPORTED);
	CHECK_HAS(b.result.text, STR("the file is UTF-16 text"));
}

TEST(an_image_is_given_as_one)
{
	struct bench b;

	open_project(&b, "native");
	host_write(&b, "dot.png", str_n("\x89PNG\r\n\x1a\n\0", 9));
	good(&b, "read_file", "{'path':'dot.png'}");
	CHECK_STR(b.result.media.mime, STR("image/png"));
	CHECK_STR(b.result.media.data, STR("iVBORw0KGgoA"));
	CHECK_HAS(b.result.text, STR("dot.png: image/png, 9 bytes"));
}

TEST(nothing_in_dot_git_can_be_changed)
{
	static const char *const writes[][2] = {
		{"write_file", "{'path':'.git/hooks/post-checkout','content':'x'}"},
		{"append_file", "{'path':'.git/HEAD','content':'x'}"},
		{"move_file", "{'from':'src/a.txt','to':'.git/config'}"},
		{"delete_file", "{'path':'.git','recursive':true}"},
		{"copy_file", "{'from':'src/a.txt','to':'sub/.git/config'}"},
		{"write_file", "{'path':'.GIT/config','content':'x'}"},
	};
	struct bench b;

	open_project(&b, "native");
	for (size_t i = 0; i < COUNT(writes); i++)
		refused(&b, writes[i][0], writes[i][1], ERR_DENIED);
	refused(&b, "read_file", "{'path':'.git/config'}", ERR_DENIED);
	read_is(&b, STR(".git/HEAD"), "ref\n");
}

TEST(the_documented_calls_of_the_reference_server_are_answered)
{
	struct bench b;
	struct str whole;

	open_project(&b, "filesystem");
	whole = in(&b, "src/a.txt");
	call(&b, "read_text_file", arena_printf(b.arena, "{'path':'%s','head':1}", whole.ptr).ptr);
	CHECK_STR(b.result.text, STR("one"));
	call(&b, "read_text_file", "{'path':'link/a.txt','tail':1}");
	CHECK_STR(b.result.text, STR("two"));
	call(&b, "read_multiple_files", "{'paths':['src/a.txt','none']}");
	CHECK_HAS(b.result.text, STR("src/a.txt:\none\ntwo\n\n\n---\nnone: Error - "));
	call(&b, "write_file", "{'path':'new/n.md','content':'n'}");
	CHECK_STR(b.result.text, STR("Successfully wrote to new/n.md"));
	call(&b, "edit_file", "{'path':'src/a.txt','edits':[{'oldText':'  two','newText':'three'}],'dryRun':false}");
	CHECK_HAS(b.result.text, STR("-two\n+three\n```"));
	call(&b, "create_directory", "{'path':'deep/er'}");
	CHECK_STR(b.result.text, STR("Successfully created directory deep/er"));
	CHECK(exists(&b, "deep/er"));
	call(&b, "list_directory", "{'path':'src'}");
	CHECK_STR(b.result.text, STR("[FILE] [id].tsx\n[FILE] a.txt\n[FILE] back"));
	call(&b, "list_directory_with_sizes", "{'path':'src','sortBy':'size'}");
	CHECK_HAS(b.result.text, STR("Total: 3 files, 0 directories"));
	call(&b, "directory_tree", "{'path':'new'}");
	CHECK_STR(b.result.text, STR("[\n  {\n    \"name\": \"n.md\",\n    \"type\": \"file\"\n  }\n]"));
	call(&b, "move_file", "{'source':'new/n.md','destination':'moved.md'}");
	CHECK_STR(b.result.text, STR("Successfully moved new/n.md to moved.md"));
	call(&b, "search_files", "{'path':'','pattern':'**/*.txt'}");
	CHECK_STR(b.result.text, whole);
	call(&b, "get_file_info", "{'path':'moved.md'}");
	CHECK_HAS(b.result.text, STR("isDirectory: false\nisFile: true\npermissions: 644"));
	call(&b, "list_allowed_directories", "{}");
	CHECK_HAS(b.result.text, STR("Allowed directories:\n"));
}
