/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: opening, what tools can reach, several users, init, list and doctor. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin/doctor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "temp_dir.h"
#include "workspace/workspace.h"
#include "workspace/workspace_parts.h"

/* A store in a directory of its own. */
struct place {
	const char *dir;
	char url[80];
	struct arena *arena;
	struct ctx ctx;
	struct err err;
};

static struct place place_new(void)
{
	struct place p = {.arena = arena_new()};

	test_defer(arena_destroy, p.arena);
	p.dir = temp_dir_new();
	snprintf(p.url, sizeof p.url, "disk:%s", p.dir);
	p.ctx.arena = p.arena;
	return p;
}

static struct workspace *open_as(struct place *p, const char *user, const char *root)
{
	struct workspace_opts opts = {.store_url = str_of(p->url),
				      .name = STR("scout"),
				      .user = str_of(user),
				      .root = str_of(root),
				      .create = true,
				      .relaxed = true};
	struct workspace *ws = NULL;

	CHECK_OK(workspace_open(&opts, &ws, &p->err), p->err);
	return ws;
}

static struct wpath at(const char *path)
{
	return (struct wpath){str_of(path)};
}

static int put(struct place *p, struct store *s, const char *path, const char *text)
{
	return store_write(s, &p->ctx, at(path), str_of(text), (struct store_cond){0}, NULL, &p->err);
}

static int get(struct place *p, struct store *s, const char *path, struct str *ret)
{
	*ret = STR("");
	return store_read(s, &p->ctx, at(path), STORE_WHOLE, MIB, ret, NULL, &p->err);
}

/* All paths that a recursive list shows, one a line. */
static struct str tree(struct place *p, struct store *s)
{
	struct store_list_req req = {.recursive = true, .limit = 1000};
	struct store_page page;
	struct buf b;

	buf_init(&b, p->arena, MIB);
	CHECK_OK(store_list(s, &p->ctx, WPATH_ROOT, &req, &page, &p->err), p->err);
	for (size_t i = 0; i < page.count; i++)
		buf_printf(&b, "%.*s\n", STR_ARG(page.entries[i].path.s));
	return buf_str(&b);
}

static void write_host(struct place *p, const char *path, const char *text)
{
	FILE *f = fopen(arena_printf(p->arena, "%s/%s", p->dir, path).ptr, "we");

	CHECK(f != NULL);
	fputs(text, f);
	fclose(f);
}

/* --- opening --- */

TEST(a_new_workspace_in_memory_has_a_file_area)
{
	struct place p = place_new();
	struct workspace_opts opts = {
		.store_url = STR("memory:"), .create = true, .agent = STR("a"), .session = STR("s")};
	struct workspace *ws;
	struct str got;

	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	CHECK_STR(workspace_name(ws), STR("default"));
	CHECK_STR(workspace_actor(ws).agent, STR("a"));
	CHECK_OK(put(&p, workspace_files(ws), "a/b.txt", "hi"), p.err);
	CHECK_OK(get(&p, workspace_home(ws), "files/a/b.txt", &got), p.err);
	CHECK_STR(got, STR("hi"));
	workspace_close(ws);
}

TEST(a_workspace_that_is_missing_is_made_only_when_asked)
{
	struct place p = place_new();
	struct workspace_opts opts = {.store_url = str_of(p.url), .name = STR("scout")};
	struct workspace *ws;

	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_NOT_FOUND);
	CHECK_HAS(str_of(p.err.msg), STR("stead init scout"));
	opts.store_url = arena_printf(p.arena, "disk:%s/none", p.dir);
	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_NOT_FOUND);
	opts.create = true;
	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	workspace_close(ws);
	opts.create = false;
	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	CHECK_STR(workspace_files_place(ws), arena_printf(p.arena, "%s/none/scout/files", p.dir));
	workspace_close(ws);
}

/* One that is made durably, because it is new, must not go on like that. */
TEST(a_workspace_that_was_opened_relaxed_syncs_nothing_whether_it_is_new_or_not)
{
	struct place p = place_new();
	struct workspace_opts opts = {
		.store_url = str_of(p.url), .name = STR("scout"), .create = true, .relaxed = true};
	struct workspace *ws;

	for (int i = 0; i < 2; i++) {
		CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
		CHECK(workspace_store_of(ws, true) == workspace_store_of(ws, false));
		workspace_close(ws);
	}
	opts.relaxed = false;
	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	CHECK(workspace_store_of(ws, true) != workspace_store_of(ws, false));
	workspace_close(ws);
}

TEST(names_follow_the_rule)
{
	static const char *const good[] = {"ab", "a1", "my_agent", "test-bot", "z-_9"};
	static const char *const bad[] = {"", "a", "A1", "1a", "a.b", "a b", "-a", "a/b", "..", "\xC3\xA4x"};
	char longest[66];

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		CHECK(workspace_name_ok(str_of(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK(!workspace_name_ok(str_of(bad[i])));
	memset(longest, 'a', 65);
	CHECK(workspace_name_ok(str_n(longest, 64)) && !workspace_name_ok(str_n(longest, 65)));
}

TEST(a_broken_configuration_stops_the_start_with_its_line)
{
	struct place p = place_new();
	struct workspace_opts opts = {.store_url = str_of(p.url), .name = STR("scout")};
	struct workspace *ws = open_as(&p, "", "");

	workspace_close(ws);
	write_host(&p, "scout/agent.yaml", "name: x\nqouta: {}\n");
	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_INVALID);
	CHECK_STR(str_of(p.err.msg), STR("agent.yaml line 2: unknown key \"qouta\"; did you mean \"quota\"?"));
	write_host(&p, "scout/agent.yaml", "");
	write_host(&p, "scout/tools.json", "{\"deny\": [\"ls\"");
	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_INVALID);
	write_host(&p, "scout/tools.json", "{}");
	write_host(&p, "scout/.env", "A=1\nno\n");
	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_INVALID);
	CHECK_HAS(str_of(p.err.msg), STR(".env line 2"));
}

TEST(the_quota_of_agent_yaml_bounds_the_files)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "");

	workspace_close(ws);
	write_host(&p, "scout/agent.yaml", "quota: {bytes: 6kB, files: 9}\ndurability: relaxed\n");
	ws = open_as(&p, "", "");
	CHECK(workspace_config(ws)->relaxed);
	CHECK_OK(put(&p, workspace_files(ws), "a", "small"), p.err);
	CHECK_ERR(put(&p, workspace_files(ws), "b", arena_printf(p.arena, "%6000d", 7).ptr), p.err, ERR_QUOTA);
	CHECK_OK(put(&p, workspace_files(ws), "b", "2"), p.err);
	CHECK_OK(put(&p, workspace_files(ws), "c", "3"), p.err);
	CHECK_ERR(put(&p, workspace_files(ws), "d", "4"), p.err, ERR_QUOTA);
	workspace_close(ws);
}

/* --- roots --- */

TEST(the_root_of_the_tools_is_what_was_asked_for)
{
	struct place p = place_new();
	static const char *const cases[][2] = {
		{"", "files/x"},
		{"files", "files/x"},
		{"workspace", "x"},
		{"task:T-1", "tasks/T-1/x"},
		{"task:TASK-1", "boards/main/tasks/TASK-1/x"},
		{"task:web/TASK-1", "boards/web/tasks/TASK-1/x"},
		{"notes/ann", "notes/ann/x"},
		{"/plans/", "plans/x"},
	};
	static const char *const refused[] = {"../x",    ".stead",    ".stead/tmp", "task:",  "task:a/b",
					      "task:..", "users/bob", "Users/bob",  ".STEAD", "boards/main"};
	struct workspace_opts opts = {.store_url = str_of(p.url), .name = STR("scout")};
	struct workspace *ws;
	struct str got;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ws = open_as(&p, "", cases[i][0]);
		CHECK_OK(put(&p, workspace_files(ws), "x", cases[i][1]), p.err);
		CHECK_OK(get(&p, workspace_home(ws), cases[i][1], &got), p.err);
		CHECK_STR(got, str_of(cases[i][1]));
		workspace_close(ws);
	}
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		opts.root = str_of(refused[i]);
		CHECK(workspace_open(&opts, &ws, &p.err) != 0);
	}
}

TEST(what_is_not_the_agents_is_fixed_in_the_whole_workspace)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "workspace");
	struct store *tools = workspace_files(ws);
	static const char *const fixed[] = {"agent.yaml",   "AGENT.YAML", "tools.json", "artifacts/a.txt", "AGENTS.md",
					    "tools/pay.py", "MEMORY.md",  "memory/x",   "agents/a/s.jsonl"};
	static const char *const free_names[] = {"files/agent.yaml", "files/artifacts/a.txt", "files/users/u",
						 "HEARTBEAT.md",     "notes/tools.json",      "TASKS.yaml"};
	struct str got;

	CHECK_OK(put(&p, workspace_home(ws), "artifacts/a.txt", "parked"), p.err);
	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		CHECK_ERR(put(&p, tools, fixed[i], "mine"), p.err, ERR_DENIED);
	for (size_t i = 0; i < sizeof free_names / sizeof free_names[0]; i++)
		CHECK_OK(put(&p, tools, free_names[i], "mine"), p.err);
	CHECK_ERR(store_remove(tools, &p.ctx, at("artifacts"), true, (struct store_cond){0}, NULL, &p.err), p.err,
		  ERR_DENIED);
	CHECK_OK(get(&p, tools, "artifacts/a.txt", &got), p.err);
	CHECK_STR(got, STR("parked"));
	CHECK_OK(get(&p, tools, "agent.yaml", &got), p.err);
	workspace_close(ws);
	ws = open_as(&p, "", "artifacts");
	CHECK_ERR(put(&p, workspace_files(ws), "b", "mine"), p.err, ERR_DENIED);
	workspace_close(ws);
}

TEST(a_person_changes_what_people_own_and_no_record)
{
	struct place p = place_new();
	struct workspace_opts opts = {.store_url = str_of(p.url),
				      .name = STR("scout"),
				      .root = STR("workspace"),
				      .person = true,
				      .create = true};
	struct workspace *ws;

	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	CHECK_OK(put(&p, workspace_files(ws), "AGENTS.md", "mine"), p.err);
	CHECK_OK(put(&p, workspace_files(ws), "tools.json", "{}"), p.err);
	CHECK_OK(put(&p, workspace_files(ws), "MEMORY.md", "mine"), p.err);
	CHECK_ERR(put(&p, workspace_files(ws), "agents/a/sessions/s.log.jsonl", "mine"), p.err, ERR_DENIED);
	workspace_close(ws);
}

static int visit_nothing(void *arg, const struct scan_item *item, struct err *err)
{
	struct buf *seen = arg;

	(void)err;
	buf_printf(seen, "%.*s\n%.*s\n", STR_ARG(item->path), STR_ARG(item->data));
	return 0;
}

TEST(secrets_are_not_reachable_by_any_operation)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "workspace");
	struct store *tools = workspace_files(ws);
	static const char *const secret[] = {".env", ".ENV", ".env.local", "files/.env", ".stead/x", "skills/a/.env"};
	struct store_cond any = {0};
	struct buf seen;
	struct scan_req scan = {.contents = true, .threads = 1, .visit = visit_nothing, .arg = &seen};
	struct str got;

	for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
		CHECK_OK(put(&p, workspace_home(ws), secret[i], "TOKEN=hunter2"), p.err);
	for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++) {
		struct wpath path = at(secret[i]);

		CHECK(get(&p, tools, secret[i], &got) != 0 && got.len == 0);
		CHECK(store_stat(tools, &p.ctx, path, NULL, &p.err) != 0);
		CHECK(put(&p, tools, secret[i], "x") != 0);
		CHECK(store_append(tools, &p.ctx, path, STR("x"), any, NULL, &p.err) != 0);
		CHECK(store_move(tools, &p.ctx, path, at("files/out"), any, any, NULL, &p.err) != 0);
		CHECK(store_copy(tools, &p.ctx, path, at("files/out"), any, NULL, &p.err) != 0);
		CHECK(store_move(tools, &p.ctx, at("SOUL.md"), path, any, any, NULL, &p.err) != 0);
		CHECK(store_remove(tools, &p.ctx, path, false, any, NULL, &p.err) != 0);
		CHECK_LACKS(str_of(p.err.msg), STR("hunter2"));
	}
	CHECK_LACKS(tree(&p, tools), STR(".env"));
	buf_init(&seen, p.arena, MIB);
	CHECK_OK(store_scan(tools, &p.ctx, WPATH_ROOT, &scan, &p.err), p.err);
	CHECK_LACKS(buf_str(&seen), STR("hunter2"));
	CHECK_HAS(buf_str(&seen), STR("SOUL.md"));
	workspace_close(ws);
}

/* --- users --- */

TEST(two_users_never_see_each_other)
{
	struct place p = place_new();
	static const char *const pairs[][2] = {
		{"ann", "bob"},
		{"a/b", "a_b"},
		{"a/b", "a~2fb"},
		{"..", "."},
		{"Ann", "ann"},
		{"", "~"},
		{"con", "~63on"},
		{"a.", "a"},
		{"../bob", "bob"},
		{"users", "users/users"},
		{"\xC3\xA9", "e\xCC\x81"},
	};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		struct workspace *one = open_as(&p, pairs[i][0], "workspace"),
				 *two = open_as(&p, pairs[i][1], "workspace");
		struct str got;

		CHECK_OK(put(&p, workspace_files(one), "files/secret.txt", "one"), p.err);
		CHECK_OK(put(&p, workspace_home(one), "MEMORY.md", "one"), p.err);
		CHECK_ERR(get(&p, workspace_files(two), "files/secret.txt", &got), p.err, ERR_NOT_FOUND);
		CHECK_ERR(get(&p, workspace_files(two), "MEMORY.md", &got), p.err, ERR_NOT_FOUND);
		CHECK_LACKS(tree(&p, workspace_files(two)), STR("secret"));
		CHECK_OK(store_remove(workspace_files(one), &p.ctx, at("files"), true, (struct store_cond){0}, NULL,
				      &p.err),
			 p.err);
		CHECK_OK(store_remove(workspace_home(one), &p.ctx, at("MEMORY.md"), false, (struct store_cond){0}, NULL,
				      &p.err),
			 p.err);
		workspace_close(one);
		workspace_close(two);
	}
}

TEST(a_user_cannot_name_another_users_part)
{
	struct place p = place_new();
	struct workspace *bob = open_as(&p, "bob", ""), *ann = open_as(&p, "ann", "workspace"),
			 *nobody = open_as(&p, "", "workspace");
	static const char *const tries[] = {"users/bob/files/s", "users/bob",  "Users/bob/files/s", "users",
					    "files/s",           ".stead-wh/x"};
	struct str got;

	CHECK_OK(put(&p, workspace_files(bob), "s", "bob's"), p.err);
	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
		CHECK(get(&p, workspace_files(ann), tries[i], &got) != 0 && got.len == 0);
		CHECK(get(&p, workspace_files(nobody), tries[i], &got) != 0 && got.len == 0);
		CHECK(get(&p, workspace_home(ann), tries[i], &got) != 0 && got.len == 0);
	}
	CHECK(put(&p, workspace_files(nobody), "users/bob/files/s", "x") != 0);
	CHECK_LACKS(tree(&p, workspace_files(nobody)), STR("bob"));
	workspace_close(bob);
	workspace_close(ann);
	workspace_close(nobody);
}

TEST(a_user_has_the_shared_assets_and_overrides_them_for_himself)
{
	struct place p = place_new();
	struct workspace *all = open_as(&p, "", "workspace"), *ann, *bob;
	struct str got;

	CHECK_OK(put(&p, workspace_home(all), "skills/brew/SKILL.md", "for all"), p.err);
	CHECK_OK(put(&p, workspace_home(all), "files/shared.txt", "not an asset"), p.err);
	ann = open_as(&p, "ann", "workspace");
	bob = open_as(&p, "bob", "workspace");
	CHECK_OK(get(&p, workspace_files(ann), "skills/brew/SKILL.md", &got), p.err);
	CHECK_STR(got, STR("for all"));
	CHECK_OK(put(&p, workspace_home(ann), "skills/brew/SKILL.md", "ann's own"), p.err);
	CHECK_OK(get(&p, workspace_files(ann), "skills/brew/SKILL.md", &got), p.err);
	CHECK_STR(got, STR("ann's own"));
	CHECK_OK(get(&p, workspace_files(bob), "skills/brew/SKILL.md", &got), p.err);
	CHECK_STR(got, STR("for all"));
	CHECK_OK(store_remove(workspace_home(bob), &p.ctx, at("SOUL.md"), false, (struct store_cond){0}, NULL, &p.err),
		 p.err);
	CHECK_ERR(get(&p, workspace_files(bob), "SOUL.md", &got), p.err, ERR_NOT_FOUND);
	CHECK_OK(get(&p, workspace_files(all), "SOUL.md", &got), p.err);
	CHECK_ERR(get(&p, workspace_files(ann), "files/shared.txt", &got), p.err, ERR_NOT_FOUND);
	CHECK_ERR(get(&p, workspace_files(ann), "HEARTBEAT.md", &got), p.err, ERR_NOT_FOUND);
	workspace_close(all);
	workspace_close(ann);
	workspace_close(bob);
}

TEST(a_user_sees_exactly_the_static_assets_of_the_workspace)
{
	struct place p = place_new();
	struct workspace *all = open_as(&p, "", "workspace"), *ann;
	static const char *const more[] = {"crons/a.yaml",   "knowledge/k.md", "knowledge/deep/k2.md",
					   "subagents/s.md", "tools/t.py",     "tools.json",
					   "MEMORY.md",      "notes/n.md",     "tasks/T/TASK.md",
					   "agents/a/x",     "skills-old/x",   "new.md",
					   "toolsx"};

	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		CHECK_OK(put(&p, workspace_home(all), more[i], "{}"), p.err);
	ann = open_as(&p, "ann", "workspace");
	CHECK_STR(tree(&p, workspace_files(ann)),
		  STR("AGENTS.md\nSOUL.md\nUSER.md\nagent.yaml\ncrons/a.yaml\nknowledge/deep/k2.md\nknowledge/k.md\n"
		      "subagents/s.md\ntools.json\ntools/t.py\n"));
	workspace_close(all);
	workspace_close(ann);
}

TEST(shared_assets_are_listed_page_by_page_without_loss)
{
	struct place p = place_new();
	struct workspace *all = open_as(&p, "", "workspace"), *ann;
	struct store_list_req req = {.recursive = true, .limit = 1};
	struct store_page page;
	size_t seen = 0;

	for (int i = 0; i < 5; i++)
		CHECK_OK(put(&p, workspace_home(all), arena_printf(p.arena, "skills/s%d/SKILL.md", i).ptr, "x"), p.err);
	ann = open_as(&p, "ann", "workspace");
	for (int recursive = 0; recursive < 2; recursive++) {
		req.recursive = recursive;
		req.after = STR_NONE;
		seen = 0;
		do {
			CHECK_OK(store_list(workspace_home(ann), &p.ctx, WPATH_ROOT, &req, &page, &p.err), p.err);
			CHECK(page.count <= 1 && seen < 20);
			seen += page.count;
			req.after = page.next;
		} while (page.next.ptr);
		CHECK_INT(seen, recursive ? 9 : 5);
	}
	workspace_close(all);
	workspace_close(ann);
}

TEST(configuration_is_never_taken_from_a_users_part)
{
	struct place p = place_new();
	struct workspace *ann = open_as(&p, "ann", "workspace");

	CHECK_OK(put(&p, workspace_home(ann), "agent.yaml", "tools: {allow: [everything]}\n"), p.err);
	workspace_close(ann);
	ann = open_as(&p, "ann", "workspace");
	CHECK(workspace_config(ann)->tools_allow == NULL);
	workspace_close(ann);
}

/* --- a directory of the person's own --- */

static size_t host_entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

TEST(a_directory_of_the_person_holds_his_files_and_nothing_of_stead)
{
	struct place p = place_new();
	const char *project = arena_printf(p.arena, "%s/project", p.dir).ptr;
	struct workspace_opts opts = {.store_url = arena_printf(p.arena, "disk:%s/store", p.dir),
				      .name = STR("scout"),
				      .files_dir = str_of(project),
				      .create = true};
	struct workspace *ws;
	struct str got;

	CHECK_ERR(workspace_open(&opts, &ws, &p.err), p.err, ERR_NOT_FOUND);
	CHECK(mkdir(project, 0755) == 0);
	CHECK_OK(workspace_open(&opts, &ws, &p.err), p.err);
	CHECK(workspace_files_are_own(ws));
	CHECK_STR(workspace_files_place(ws), str_of(project));
	CHECK_OK(put(&p, workspace_files(ws), "main.c", "int x;"), p.err);
	CHECK_INT(host_entries(project), 1);
	write_host(&p, "project/.env", "SECRET=1");
	CHECK(get(&p, workspace_files(ws), ".env", &got) != 0);
	CHECK_OK(put(&p, workspace_home(ws), "notes/n.md", "data stays here"), p.err);
	CHECK_INT(host_entries(project), 2);
	CHECK_OK(put(&p, workspace_files(ws), "agent.yaml", "a project may have one"), p.err);
	workspace_close(ws);
}

/* --- names of people --- */

static bool is_path_element(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_-.~", s.ptr[i]))
			return false;
	return s.len > 0 && s.len <= PATH_NAME_MAX && s.ptr[0] != '.' && s.ptr[s.len - 1] != '.';
}

TEST(a_plain_name_stays_readable_and_others_are_escaped)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const cases[][2] = {
		{"ann", "ann"},
		{"ann.lee-2_x", "ann.lee-2_x"},
		{"Ann", "~41nn"},
		{"a/b", "a~2fb"},
		{"", "~"},
		{"~", "~7e"},
		{".", "~2e"},
		{"..", "~2e~2e"},
		{"a.", "a~2e"},
		{".a", "~2ea"},
		{"con", "~63on"},
		{"nul.txt", "~6eul.txt"},
		{"com1", "~63om1"},
		{"common", "common"},
		{"\xC3\xA9", "~c3~a9"},
		{"a b", "a~20b"},
		{"telegram:42", "telegram~3a42"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK_STR(workspace_encode_name(arena, str_of(cases[i][0])), str_of(cases[i][1]));
}

TEST(a_long_name_ends_with_the_sha256_of_the_whole)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	char name[1000];
	struct str encoded;

	memset(name, 'a', sizeof name);
	encoded = workspace_encode_name(arena, str_n(name, sizeof name));
	CHECK_STR(str_from(encoded, 120), STR("~~41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"));
	CHECK(is_path_element(encoded));
	CHECK_STR(workspace_encode_name(arena, str_n(name, 200)), str_n(name, 200));
	CHECK(workspace_encode_name(arena, str_n(name, 201)).len == 186);
}

static struct str random_name(struct arena *arena, uint64_t *state)
{
	static const char letters[] = "aAbB~._-/ 27eE\xC3\xA9\n";
	static const size_t lengths[] = {1, 2, 3, 5, 70, 200, 201, 300};
	size_t len;
	char *name;

	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	len = lengths[*state >> 61];
	name = arena_alloc(arena, len);
	for (size_t i = 0; i < len; i++) {
		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		name[i] = letters[(*state >> 40) % (sizeof letters - 1)];
	}
	return str_n(name, len);
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(((const struct str *)a)[1], ((const struct str *)b)[1]);
}

TEST(two_names_never_become_the_same_element)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static struct str pairs[20000][2];
	uint64_t state = 42;

	for (size_t i = 0; i < 20000; i++) {
		pairs[i][0] = random_name(arena, &state);
		pairs[i][1] = workspace_encode_name(arena, pairs[i][0]);
		if (!is_path_element(pairs[i][1]))
			TEST_FAIL("\"%.*s\" is not a valid path element", STR_ARG(pairs[i][1]));
	}
	qsort(pairs, 20000, sizeof pairs[0], by_text);
	for (size_t i = 1; i < 20000; i++)
		if (str_eq(pairs[i - 1][1], pairs[i][1]))
			CHECK_STR(pairs[i - 1][0], pairs[i][0]);
}

/* --- init, heartbeat, list --- */

TEST(init_writes_the_templates_once_and_says_which)
{
	struct place p = place_new();
	struct init_opts opts = {.store_url = str_of(p.url), .name = STR("scout")};
	struct stat st;
	struct jv *report;
	struct buf b;

	CHECK_OK(workspace_init(&p.ctx, &opts, &report, &p.err), p.err);
	buf_init(&b, p.arena, 4096);
	jv_write(&b, jv_get(report, "written"));
	CHECK_STR(buf_str(&b), STR("[\"AGENTS.md\",\"SOUL.md\",\"USER.md\",\"HEARTBEAT.md\",\".env\",\"agent.yaml\"]"));
	CHECK(stat(arena_printf(p.arena, "%s/scout/.env", p.dir).ptr, &st) == 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	CHECK_ERR(workspace_init(&p.ctx, &opts, &report, &p.err), p.err, ERR_EXISTS);
	opts.name = STR("Bad Name");
	CHECK_ERR(workspace_init(&p.ctx, &opts, &report, &p.err), p.err, ERR_INVALID);
}

TEST(init_completes_a_directory_and_overwrites_nothing)
{
	struct place p = place_new();
	struct init_opts opts = {.store_url = str_of(p.url), .name = STR("scout")};
	struct workspace *ws;
	struct jv *report;
	struct str got;

	mkdir(arena_printf(p.arena, "%s/scout", p.dir).ptr, 0755);
	write_host(&p, "scout/SOUL.md", "my own");
	CHECK_OK(workspace_init(&p.ctx, &opts, &report, &p.err), p.err);
	CHECK_INT(jv_count(jv_get(report, "written")), 5);
	ws = open_as(&p, "", "workspace");
	CHECK_OK(get(&p, workspace_files(ws), "SOUL.md", &got), p.err);
	CHECK_STR(got, STR("my own"));
	workspace_close(ws);
}

TEST(init_makes_no_workspace_whose_configuration_does_not_load)
{
	struct place p = place_new();
	struct init_opts opts = {.store_url = str_of(p.url), .name = STR("other"), .model = STR("no provider")};
	struct jv *report;

	CHECK_ERR(workspace_init(&p.ctx, &opts, &report, &p.err), p.err, ERR_INVALID);
	opts.model = STR("a:b\nname: injected");
	CHECK_ERR(workspace_init(&p.ctx, &opts, &report, &p.err), p.err, ERR_INVALID);
	CHECK(access(arena_printf(p.arena, "%s/other", p.dir).ptr, F_OK) != 0);
}

TEST(a_heartbeat_without_content_is_empty)
{
	struct place p = place_new();
	static const char *const empty[] = {
		"",
		" \n\t\n",
		"# Heartbeat\n\n## Later\n",
		"<!-- a\nb -->\n",
		"# H\n<!-- x --> <!-- y -->\n- \n- [ ]\n",
		"<!-- never closed\n- text",
		"---\n***\n",
	};
	static const char *const full[] = {"# H\n- look at mail\n",          "text",           "<!-- x --> text",
					   "# H\n<!-- a --> <!-- b\n --> t", "- [ ] buy milk", "--> x"};
	struct workspace *ws = open_as(&p, "", "workspace");
	struct str text;

	for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
		if (!workspace_heartbeat_is_empty(str_of(empty[i])))
			TEST_FAIL("not empty: %s", empty[i]);
	for (size_t i = 0; i < sizeof full / sizeof full[0]; i++)
		if (workspace_heartbeat_is_empty(str_of(full[i])))
			TEST_FAIL("empty: %s", full[i]);
	CHECK_OK(get(&p, workspace_files(ws), "HEARTBEAT.md", &text), p.err);
	CHECK(workspace_heartbeat_is_empty(text));
	workspace_close(ws);
}

static char ended[4]; /* the slots of the next test, in the order in which they ended */

static void *slot_opened(struct workspace *ws)
{
	(void)ws;
	return ended;
}

static void oldest_ends(void *state)
{
	((char *)state)[strlen(state)] = 'o';
}

static void threads_end(void *state)
{
	((char *)state)[strlen(state)] = 't';
}

static void newest_ends(void *state)
{
	((char *)state)[strlen(state)] = 'n';
}

TEST(what_has_threads_ends_before_everything_that_they_may_use)
{
	static const char keys[3];
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "");

	memset(ended, 0, sizeof ended);
	workspace_slot(ws, &keys[0], slot_opened, oldest_ends);
	workspace_thread_slot(ws, &keys[1], slot_opened, threads_end);
	workspace_slot(ws, &keys[2], slot_opened, newest_ends);
	workspace_close(ws);
	CHECK_STR(str_of(ended), STR("tno"));
}

TEST(list_counts_what_people_have_and_names_what_is_broken)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "");
	struct jv *list;
	const struct jv *line;

	CHECK_OK(put(&p, workspace_files(ws), "a.txt", "12345"), p.err);
	CHECK_OK(put(&p, workspace_home(ws), ".stead/index", "not counted"), p.err);
	workspace_close(ws);
	mkdir(arena_printf(p.arena, "%s/Bad.Name", p.dir).ptr, 0755);
	write_host(&p, "Bad.Name/x", "x");
	mkdir(arena_printf(p.arena, "%s/broken", p.dir).ptr, 0755);
	write_host(&p, "broken/agent.yaml", "nmae: x\n");
	CHECK_OK(workspace_list(&p.ctx, str_of(p.url), &list, &p.err), p.err);
	CHECK_INT(jv_count(list), 3);
	CHECK_HAS(jv_get_str(jv_at(list, 0), "problem"), STR("did you mean \"name\""));
	line = jv_at(list, 1);
	CHECK_STR(jv_get_str(line, "name"), STR("scout"));
	CHECK_INT(jv_get_int(line, "files", 0), 7);
	CHECK(jv_get_int(line, "bytes", 0) > 1000 && jv_get(line, "problem") == NULL);
	CHECK_HAS(jv_get_str(line, "modified"), STR("Z"));
	CHECK_HAS(jv_get_str(jv_at(list, 2), "problem"), STR("rename"));
	CHECK_OK(workspace_list(&p.ctx, arena_printf(p.arena, "%s/none", p.url), &list, &p.err), p.err);
	CHECK_INT(jv_count(list), 0);
}

/* --- doctor --- */

/* The lines that are not ok, as "workspace check: detail" each. */
static struct str complaints(struct place *p, const char *url, const char *name)
{
	struct jv *checks;
	struct buf b;

	buf_init(&b, p->arena, MIB);
	CHECK_OK(workspace_doctor(&p->ctx, str_of(url), str_of(name), &checks, &p->err), p->err);
	CHECK(jv_count(checks) >= 3);
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		CHECK(jv_get_str(m->value, "detail").len > 0);
		CHECK(jv_get_bool(m->value, "ok", false) == (jv_get(m->value, "fix") == NULL));
		if (!jv_get_bool(m->value, "ok", false))
			buf_printf(&b, "%.*s %.*s: %.*s\n", STR_ARG(jv_get_str(m->value, "workspace")),
				   STR_ARG(jv_get_str(m->value, "check")), STR_ARG(jv_get_str(m->value, "detail")));
	}
	return buf_str(&b);
}

TEST(doctor_has_no_complaint_about_a_new_workspace)
{
	struct place p = place_new();

	workspace_close(open_as(&p, "", ""));
	CHECK_STR(complaints(&p, p.url, ""), STR(""));
	CHECK_STR(complaints(&p, p.url, "scout"), STR(""));
	CHECK_INT(host_entries(p.dir), 1);
}

TEST(doctor_names_what_is_wrong)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "");
	struct str got;
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	CHECK_OK(put(&p, workspace_files(ws), "big", arena_printf(p.arena, "%95d", 1).ptr), p.err);
	workspace_close(ws);
	write_host(&p, "scout/agent.yaml", "quota: {bytes: 100}\n");
	CHECK(chmod(arena_printf(p.arena, "%s/scout/.env", p.dir).ptr, 0644) == 0);
	CHECK(unlink(arena_printf(p.arena, "%s/scout/SOUL.md", p.dir).ptr) == 0);
	write_host(&p, "scout/files/.stead-tmp-1234", "left");
	CHECK(utimensat(AT_FDCWD, arena_printf(p.arena, "%s/scout/files/.stead-tmp-1234", p.dir).ptr, old, 0) == 0);
	mkdir(arena_printf(p.arena, "%s/Bad.Name", p.dir).ptr, 0755);
	write_host(&p, "Bad.Name/x", "x");
	mkdir(arena_printf(p.arena, "%s/broken", p.dir).ptr, 0755);
	write_host(&p, "broken/agent.yaml", "a: [\n");
	CHECK(mkfifo(arena_printf(p.arena, "%s/broken/.env", p.dir).ptr, 0600) == 0);
	got = complaints(&p, p.url, "");
	CHECK_HAS(got, STR("scout quota: "));
	CHECK_HAS(got, STR("more than nine tenths of what agent.yaml allows"));
	CHECK_HAS(got, STR("scout .env: others on this machine may read .env (mode 644)"));
	CHECK_HAS(got, STR("scout identity: missing: SOUL.md"));
	CHECK_HAS(got, STR("scout leftovers: 1 unfinished writes"));
	CHECK_HAS(got, STR("names: \"Bad.Name\" cannot be the name"));
	CHECK_HAS(got, STR("broken configuration: "));
	CHECK_HAS(got, STR("broken .env: .env is not a plain file"));
}

static bool has_journal(void)
{
	return getenv("STEAD_TEST_JOURNAL") != NULL;
}

/* A workspace with some history; returns where its log is: the only segment, or an entry of the journal. */
static const char *place_with_history(struct place *p)
{
	struct workspace *ws = open_as(p, "", "");

	for (int i = 0; i < 20; i++)
		CHECK_OK(put(p, workspace_files(ws), "a", arena_printf(p->arena, "%d", i).ptr), p->err);
	workspace_close(ws);
	CHECK_STR(complaints(p, p->url, "scout"), STR(""));
	return arena_printf(p->arena, "%s/scout/.stead/rev/%s", p->dir,
			    has_journal() ? "journal/00000000000000000010" : "log/0000000000000001.jsonl")
		.ptr;
}

TEST(doctor_finds_a_changed_bit_in_the_log)
{
	struct place p = place_new();
	FD_SCOPE int log = open(place_with_history(&p), O_RDWR | O_CLOEXEC);
	struct stat st;
	char c;

	CHECK(log >= 0 && fstat(log, &st) == 0);
	CHECK(pread(log, &c, 1, st.st_size / 2) == 1);
	c ^= 1;
	CHECK(pwrite(log, &c, 1, st.st_size / 2) == 1);
	CHECK_HAS(complaints(&p, p.url, ""), has_journal() ? STR("scout history: entry 10 of the journal")
							   : STR("scout history: log/0000000000000001.jsonl"));
}

TEST(doctor_finds_a_log_that_lost_its_end)
{
	struct place p = place_new();
	const char *log = place_with_history(&p);
	struct stat st;

	if (has_journal())
		SKIP("a journal has no note of its end");
	CHECK(stat(log, &st) == 0);
	CHECK(truncate(log, st.st_size / 2) == 0);
	CHECK_HAS(complaints(&p, p.url, "scout"),
		  STR("scout history: log/0000000000000001.jsonl: it ends at revision "));
	CHECK(unlink(log) == 0);
	CHECK_HAS(complaints(&p, p.url, "scout"), STR("is missing, with revisions 1 to 20"));
}

TEST(doctor_survives_stores_that_are_not_there)
{
	struct place p = place_new();
	const char *none = arena_printf(p.arena, "%s/none", p.url).ptr;

	CHECK_HAS(complaints(&p, none, ""), STR("does not exist yet"));
	CHECK_HAS(complaints(&p, "disk:/dev/null", ""), STR("store: "));
	CHECK_HAS(complaints(&p, "s3://bucket", ""), STR("store: "));
	CHECK_HAS(complaints(&p, p.url, ""), STR("there is no workspace yet"));
	CHECK_HAS(complaints(&p, p.url, "nobody"), STR("nobody workspace: "));
	CHECK_HAS(complaints(&p, p.url, "../x"), STR("is not allowed"));
	CHECK_HAS(complaints(&p, "memory:", ""), STR("there is no workspace yet"));
}

/* --- speed --- */

/* How many system calls it takes to open the workspace, counted from outside of a process that does it. */
static int calls_of_opening(struct place *p)
{
	struct workspace_opts opts = {.store_url = str_of(p->url), .name = STR("scout")};
	struct workspace *ws;
	int status, stops = 0;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(workspace_open(&opts, &ws, &p->err) ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	while (WIFSTOPPED(status)) {
		CHECK(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		stops++;
	}
	CHECK_INT(status, 0);
	return stops / 2; /* before the call and after it */
}

TEST(opening_takes_few_system_calls_however_much_there_is)
{
	struct place p = place_new();
	struct workspace *ws = open_as(&p, "", "");
	int few, many;

	CHECK_OK(put(&p, workspace_files(ws), "a", "x"), p.err);
	workspace_close(ws);
	few = calls_of_opening(&p);
	ws = open_as(&p, "", "");
	for (int i = 0; i < 400; i++)
		CHECK_OK(put(&p, workspace_files(ws), arena_printf(p.arena, "d%d/f%d", i % 40, i).ptr, "x"), p.err);
	workspace_close(ws);
	many = calls_of_opening(&p);
	printf("# %d calls, %d with 400 files\n", few, many);
	CHECK(few < 200);
	CHECK(many < few + 40);
}
