/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn with tool calls of all kinds, in a process that is killed: before or after every write to a store, and at
 * system calls all over the run. The turn is run again until it ends. Whatever the instant, the files are as after a
 * run without a kill, no change was made twice, each call has one result, and the tokens are counted once.
 *
 * The kinds: tools that read, tools that change the workspace, a command in the sandbox, a custom tool, two tools of an
 * MCP server (one says that it may be repeated), a tool of the embedding program, a subagent, and a call that waits for
 * approval. The MCP server is this program, started with STEAD_KILL_SERVER.
 *
 * STEAD_KILL_WHOLE=1 kills the turn with all of them at every write; without it, one whose calls start no process.
 * STEAD_KILL_STEP=1 kills at every system call; STEAD_KILL_FIRST is the first of them. STEAD_KILL_DEATHS=5000 has that
 * many processes die at instants of a pseudo-random order, which STEAD_KILL_SEED begins.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "agent/agent_fix.h"

static long kill_at, writes; /* 0: never; the N-th event: odd before it, even after it */

static void maybe_die(void)
{
	if (kill_at && ++writes == kill_at)
		kill(getpid(), SIGKILL);
}

/* NOLINTBEGIN: the names are the linker's */
int __real_store_append(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
			struct store_stat *ret, struct err *err);
int __wrap_store_append(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
			struct store_stat *ret, struct err *err);
int __wrap_store_append(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
			struct store_stat *ret, struct err *err)
{
	int r;

	maybe_die();
	r = __real_store_append(s, ctx, path, bytes, cond, ret, err);
	maybe_die();
	return r;
}

int __real_store_write(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		       struct store_stat *ret, struct err *err);
int __wrap_store_write(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		       struct store_stat *ret, struct err *err);
int __wrap_store_write(struct store *s, struct ctx *ctx, struct wpath path, struct str bytes, struct store_cond cond,
		       struct store_stat *ret, struct err *err)
{
	int r;

	maybe_die();
	r = __real_store_write(s, ctx, path, bytes, cond, ret, err);
	maybe_die();
	return r;
}
/* NOLINTEND */

/* --- the MCP server --- */

/* Adds a line to a file of the host, or makes it anew with that line. */
static void write_line(const char *path, const char *mode, const char *line)
{
	FILE *f = fopen(path, mode);

	if (!f || fputs(line, f) < 0 || fclose(f) != 0)
		_exit(1);
}

static const char *reply_to(const char *line, const char *outside)
{
	char path[400];

	if (strstr(line, "\"initialize\""))
		return "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":"
		       "\"k\","
		       "\"version\":\"1\"}}";
	if (strstr(line, "\"tools/list\""))
		return "{\"tools\":[{\"name\":\"post\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"put\","
		       "\"inputSchema\":{\"type\":\"object\"},\"annotations\":{\"idempotentHint\":true}}]}";
	snprintf(path, sizeof(path), "%s.%s", outside, strstr(line, "\"post\"") ? "post" : "put");
	write_line(path, strstr(line, "\"post\"") ? "ae" : "we", "line\n");
	return "{\"content\":[{\"type\":\"text\",\"text\":\"posted\"}]}";
}

__attribute__((constructor)) static void serve(void)
{
	const char *outside = getenv("STEAD_KILL_SERVER");
	char *line = NULL;
	size_t cap = 0;

	if (!outside)
		return;
	while (getline(&line, &cap, stdin) > 0) {
		const char *id = strstr(line, "\"id\":");

		if (!id)
			continue;
		id += strlen("\"id\":");
		printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}\n", (int)strcspn(id, ",}"), id,
		       reply_to(line, outside));
		fflush(stdout);
	}
	_exit(0);
}

/* --- the turn --- */

/* Each kind of change to the workspace, reading ones, and effects outside of it. */
/* clang-format off */
static const char *const answers[] = {
	"[{'type':'text','text':'First.'},"
	CALL("a", "write_file", "{'path':'log','content':'0\\n'}") ","
	CALL("b", "append_file", "{'path':'log','content':'1\\n'}") ","
	CALL("c", "read_file", "{'path':'log'}") ","
	CALL("d", "ls", "{}") ","
	CALL("e", "append_file", "{'path':'log','content':'2\\n'}") ","
	CALL("f", "send", "{}") "]",
	"["
	CALL("a", "edit_file", "{'path':'log','old_text':'2\\n','new_text':'2\\n3\\n'}") ","
	CALL("b", "move_file", "{'from':'log','to':'moved'}") ","
	CALL("c", "append_file", "{'path':'moved','content':'4\\n'}") ","
	CALL("d", "note", "{'title':'Result','content':'text'}") ","
	CALL("e", "grep", "{'pattern':'3'}") ","
	CALL("f", "copy_file", "{'from':'moved','to':'copy'}") ","
	CALL("g", "append_file", "{'path':'copy','content':'end\\n'}") "]",
	"["
	CALL("a", "append_file", "{'path':'moved','content':'5\\n'}") ","
	CALL("b", "create_task", "{'description':'t'}") ","
	CALL("c", "write_file", "{'path':'gone','content':'x'}") ","
	CALL("d", "delete_file", "{'path':'gone'}") ","
	CALL("e", "insert_file", "{'path':'copy','insert_line':1,'insert_text':'top\\n'}") ","
	CALL("f", "memory_save", "{'content':'- The sky is blue.'}") ","
	CALL("g", "glob", "{'pattern':'*'}") "]",
	"["
	CALL("a", "execute", "{'command':'echo ran >>command'}") ","
	CALL("b", "stamp", "{}") ","
	CALL("c", "out__post", "{}") ","
	CALL("d", "out__put", "{}") ","
	CALL("e", "write_file", "{'path':'asked','content':'yes'}") ","
	CALL("f", "spawn_agent", "{'agent_id':'helper','task':'Help','timeout_seconds':60}") ","
	CALL("g", "append_file", "{'path':'command','content':'end\\n'}") "]",
	"'Finished.'", NULL};
static const char *const helper_answers[] = {
	"[" CALL("a", "append_file", "{'path':'helped','content':'h\\n'}") "]",
	"'Helped.'", NULL};
/* clang-format on */

/* False: only the first three answers, whose calls start no process: so many more instants in the same time. */
static bool is_whole;

static struct str model_of(struct arena *arena)
{
	const char *const first[] = {answers[0], answers[1], answers[2], answers[4], NULL};

	return recording(arena, is_whole ? answers : first);
}

/* An effect that the workspace does not see: a line in a file of the host. */
static int send(void *arg, struct ctx *ctx, const struct jv *args, struct str *ret_text, struct err *err)
{
	FILE *f = fopen(arg, "ae");

	(void)ctx;
	(void)args;
	(void)err;
	CHECK(f && fputs("sent\n", f) >= 0 && fclose(f) == 0);
	*ret_text = STR("sent");
	return 0;
}

/* Next to the store of this URL. */
static const char *outside_file(struct arena *arena, const char *url)
{
	return arena_printf(arena, "%s.outside", url + strlen("disk:")).ptr;
}

/* What the workspace has before the turn. */
static void prepare(struct bench *b, const char *url)
{
	static const char yaml[] = "policy: {rules: [{id: care, effect: ask, path: asked}]}\n";
	static const char stamp[] = "{\"name\":\"stamp\",\"description\":\"Stamps.\",\"command\":[\"sh\",\"-c\",\"echo "
				    "stamp >>stamped\"],\"rights\":{\"files\":\"write\"},\"input_schema\":{\"type\":"
				    "\"object\"}}";
	struct str servers =
		arena_printf(b->arena,
			     "{\"mcpServers\":{\"out\":{\"command\":\"/proc/self/exe\",\"protocolVersion\":"
			     "\"2025-06-18\",\"env\":{\"STEAD_KILL_SERVER\":\"%s\"}}}}",
			     outside_file(b->arena, url));
	struct str helper =
		arena_printf(b->arena, "---\ndescription: Helps.\nworkspace: shared\nmodel: %.*s\n---\nYou help.\n",
			     STR_ARG(recording(b->arena, helper_answers)));
	struct {
		const char *path;
		struct str text;
	} files[] = {{"agent.yaml", str_of(yaml)},
		     {"tools.json", servers},
		     {"tools/stamp.json", str_of(stamp)},
		     {"subagents/helper.md", helper}};
	struct err err;

	for (size_t i = 0; i < COUNT(files); i++)
		CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(files[i].path)},
				     files[i].text, (struct store_cond){0}, NULL, &err),
			 err);
}

/* Runs the turn; a person approves what waits. */
static int take_turn(struct workspace *ws, struct agent *agent, struct ctx *ctx, struct str text,
		     struct agent_result *ret, struct err *err)
{
	struct agent_turn turn = {.session = STR("s"), .text = text};
	int r = agent_run(agent, ctx, &turn, ret, err);

	while (r == 0 && ret->waiting) {
		struct agent_decision yes = {
			.session = turn.session, .id = jv_get_str(jv_at(ret->waiting, 0), "id"), .approves = true};

		CHECK_OK(agent_decide(ws, ctx, &yes, err), *err);
		turn.text = STR_NONE;
		r = agent_run(agent, ctx, &turn, ret, err);
	}
	return r;
}

static int child(const char *url, struct str model)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace_opts opts = {.store_url = str_of(url), .name = STR("test"), .create = true, .relaxed = true};
	struct jv *schema = jv_object(arena);
	struct agent_host_tool tool = {.name = STR("send"),
				       .description = STR("Sends."),
				       .schema = schema,
				       .call = send,
				       .arg = (void *)outside_file(arena, url)};
	struct agent_opts agent_opts = {.model = model, .tools = &tool, .tool_count = 1};
	struct agent_result result;
	struct agent *agent;
	struct workspace *ws;
	struct err err;
	int r = workspace_open(&opts, &ws, &err);

	jv_set_str(arena, schema, "type", STR("object"));
	writes = 0;
	if (r == 0)
		r = agent_open(ws, &agent_opts, &agent, &err);
	if (r == 0)
		r = take_turn(ws, agent, &ctx, STR_NONE, &result, &err); /* goes on */
	if (r == -ERR_NOT_FOUND)
		r = take_turn(ws, agent, &ctx, STR("Go"), &result, &err); /* or begins */
	if (r)
		printf("# the run failed: %s\n", err.msg);
	return r == 0 && str_is(result.answer, "Finished.") ? 0 : 1;
}

/* Waits for the child; true: it was killed. */
static bool was_killed(pid_t pid)
{
	int status = 0;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
	return false;
}

static bool run_to(const char *url, struct str model, long at)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		kill_at = at;
		_exit(child(url, model));
	}
	return was_killed(pid);
}

/* The same with the N-th system call of any of its threads. */
static bool run_to_syscall(const char *url, struct str model, long at)
{
	pid_t pid = fork(), stopped;
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(child(url, model));
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
	ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	while ((stopped = waitpid(-1, &status, __WALL)) > 0) {
		int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

		if (stopped == pid && WIFEXITED(status)) {
			CHECK_INT(WEXITSTATUS(status), 0);
			return false;
		}
		if (stopped == pid && WIFSIGNALED(status))
			return true;
		if (!WIFSTOPPED(status))
			continue;
		if (signal == (SIGTRAP | 0x80) && --at == 0)
			kill(pid, SIGKILL);
		signal = signal == SIGTRAP || signal == SIGSTOP || signal == (SIGTRAP | 0x80) ? 0 : signal;
		ptrace(PTRACE_SYSCALL, stopped, NULL, (void *)(intptr_t)signal);
	}
	TEST_FAIL("the child was lost");
}

/* How many lines a file of the host has; it is removed. */
static unsigned take_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned lines = 0;
	char line[64];

	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	unlink(path);
	return lines;
}

/* Whether the model was told that nobody knows what came of this tool's call. */
static bool is_unknown(struct bench *b, const char *tool)
{
	struct session_page page;
	struct err err;
	bool unknown = false;

	CHECK_OK(session_history(b->ws, &b->ctx, (struct session_ref){.session = STR("s")}, 0, 10000, false, &page,
				 &err),
		 err);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		unknown = unknown || (str_is(jv_get_str(m->value, "name"), tool) &&
				      str_starts(jv_get_str(m->value, "output"), STR("the outcome is unknown")));
	return unknown;
}

/* Each was done once; or not at all, and the model knows that this is possible. One that may be repeated was done. */
static void check_outside(struct bench *b, const char *url)
{
	const char *file = outside_file(b->arena, url);
	unsigned sent = take_lines(file), posted = take_lines(arena_printf(b->arena, "%s.post", file).ptr);

	CHECK(sent == 1 || (sent == 0 && is_unknown(b, "send")));
	if (!is_whole)
		return;
	CHECK(posted == 1 || (posted == 0 && is_unknown(b, "out__post")));
	CHECK_INT((int)take_lines(arena_printf(b->arena, "%s.put", file).ptr), 1);
	CHECK(!is_unknown(b, "out__put"));
}

/* A fact goes to the day's ledger first, and then to MEMORY.md: it is in the ledger once, and there at most once. */
static void check_fact(struct bench *b)
{
	static const char words[] = "The sky is blue.";
	struct store_list_req req = {.limit = 100, .recursive = true};
	struct store_page page;
	struct str text = STR_NONE;
	struct err err;
	int ledger = 0, memory = 0;

	CHECK_OK(store_list(workspace_home(b->ws), &b->ctx, (struct wpath){STR("memory")}, &req, &page, &err), err);
	for (size_t i = 0; i < page.count; i++) {
		CHECK_OK(store_read(workspace_home(b->ws), &b->ctx, page.entries[i].path, STORE_WHOLE, (size_t)1 << 20,
				    &text, NULL, &err),
			 err);
		for (size_t at = 0; (at = str_find(text, str_of(words), at)) != SIZE_MAX; at++)
			ledger++;
	}
	if (store_read(workspace_home(b->ws), &b->ctx, (struct wpath){STR("MEMORY.md")}, STORE_WHOLE, (size_t)1 << 20,
		       &text, NULL, &err) == 0)
		for (size_t at = 0; (at = str_find(text, str_of(words), at)) != SIZE_MAX; at++)
			memory++;
	CHECK_INT(ledger, 1);
	CHECK(memory <= 1);
}

/* What the calls that start processes, the approved one and the subagent have left. */
static void check_rest(struct bench *b)
{
	CHECK_STR(content_of(b, "command"), STR("ran\nend\n"));
	CHECK_STR(content_of(b, "stamped"), STR("stamp\n"));
	CHECK_STR(content_of(b, "asked"), STR("yes"));
	CHECK_STR(content_of(b, "helped"), STR("h\n"));
}

static void check_end(struct bench *b, const char *url)
{
	struct jv *sum, *found;
	struct err err;

	CHECK_STR(content_of(b, "moved"), STR("0\n1\n2\n3\n4\n5\n"));
	CHECK_ERR(store_stat(workspace_files(b->ws), &b->ctx, (struct wpath){STR("gone")}, NULL, &err), err,
		  ERR_NOT_FOUND);
	CHECK_STR(content_of(b, "copy"), STR("top\n0\n1\n2\n3\n4\nend\n"));
	if (is_whole)
		check_rest(b);
	check_outside(b, url);
	CHECK_INT(count_entries(b, "tool_result"), is_whole ? 27 : 20);
	CHECK_INT(count_entries(b, "tool_use"), is_whole ? 27 : 20);
	CHECK_INT(count_entries(b, "message"), is_whole ? 6 : 5);
	CHECK_INT(count_entries(b, "turn"), 1);
	CHECK_OK(usage_sum(b->ws, &b->ctx, STR_NONE, 0, &sum, &err), err);
	CHECK_INT(jv_get_int(sum, "llm_calls", 0), is_whole ? 7 : 4); /* two of the subagent */
	found = (struct jv *)good(b, "list_notes", "{}");
	CHECK_INT(jv_get_int(found, "total", -1), 1);
	found = (struct jv *)good(b, "list_tasks", "{}");
	CHECK_INT(jv_count(jv_get(found, "tasks")), 1);
	check_fact(b);
}

/* A store with the workspace before the turn: "disk:" and a directory, in `url`. */
static const char *new_store(char url[300])
{
	const char *dir = temp_dir_new();
	struct bench b;

	snprintf(url, 300, "disk:%s", dir);
	bench_open_at(&b, str_of(url), "");
	if (is_whole)
		prepare(&b, url);
	bench_close(&b);
	return dir;
}

/* Kills the first run at `at`, then runs to the end; false: the run ended before. */
static bool round_at(struct str model, long at, bool (*run)(const char *url, struct str model, long at))
{
	struct bench b;
	char url[300];
	const char *dir = new_store(url);
	bool killed;

	killed = run(url, model, at);
	if (killed)
		CHECK(!run_to(url, model, 0));
	bench_open_at(&b, str_of(url), "");
	check_end(&b, url);
	bench_close(&b);
	test_close(dir);
	return killed;
}

TEST(a_kill_at_every_write_changes_nothing)
{
	struct arena *arena = arena_new();
	struct str model;
	long at = 1;

	test_defer(arena_destroy, arena);
	is_whole = getenv("STEAD_KILL_WHOLE") != NULL;
	model = model_of(arena);
	while (round_at(model, at, run_to))
		at++;
	printf("# killed at %ld instants\n", at - 1);
	CHECK(at > 50);
}

TEST(a_kill_at_system_calls_all_over_the_run_changes_nothing)
{
	const char *wanted = getenv("STEAD_KILL_STEP");
	const char *first = getenv("STEAD_KILL_FIRST");
	long step = wanted ? strtol(wanted, NULL, 10) : 331, at = first ? strtol(first, NULL, 10) : 1;
	struct arena *arena = arena_new();
	struct str model;

	test_defer(arena_destroy, arena);
	is_whole = true;
	model = model_of(arena);
	while (round_at(model, at, run_to_syscall))
		at += step;
	printf("# killed at %ld instants\n", at / step);
	CHECK(at > 500);
}

/* A number of the environment. */
static long number_of(const char *name, long fallback)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : fallback;
}

/* Going on is killed as well: up to this many times for one run. */
#define DEATHS_OF_A_RUN 5
#define INSTANTS        7500 /* system calls of a run, about; entering and leaving one are two */

TEST(kills_at_system_calls_while_a_run_goes_on_after_a_kill_change_nothing)
{
	long wanted = number_of("STEAD_KILL_DEATHS", 25), deaths = 0, runs = 0;
	uint64_t seed = (uint64_t)number_of("STEAD_KILL_SEED", 1);
	struct arena *arena = arena_new();
	struct str model;

	test_defer(arena_destroy, arena);
	is_whole = true;
	model = model_of(arena);
	for (; deaths < wanted; runs++) {
		char url[300];
		const char *dir = new_store(url);
		struct bench b;
		bool killed = true;

		for (int i = 0; killed && i < DEATHS_OF_A_RUN; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			killed = run_to_syscall(url, model, (long)((seed >> 33) % INSTANTS) + 1);
			deaths += killed;
		}
		if (killed)
			CHECK(!run_to(url, model, 0));
		bench_open_at(&b, str_of(url), "");
		check_end(&b, url);
		bench_close(&b);
		test_close(dir);
	}
	printf("# %ld deaths in %ld runs\n", deaths, runs);
}

TEST(a_run_that_is_killed_again_and_again_ends)
{
	struct arena *arena = arena_new();
	struct str model;
	struct bench b;
	char url[300];
	long kills = 0;

	test_defer(arena_destroy, arena);
	is_whole = true;
	model = model_of(arena);
	new_store(url);
	/* A sandboxed command takes between 20 and 30 writes by itself, and one that was cut off begins again. */
	while (run_to(url, model, 40))
		kills++;
	printf("# killed %ld times in a row\n", kills);
	CHECK(kills > 3);
	bench_open_at(&b, str_of(url), "");
	check_end(&b, url);
}
