/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn with tool calls of all kinds, in a process that is killed: before or after every write to a store, and at
 * system calls all over the run. The turn is run again until it ends. Whatever the instant, the files are as after a
 * run without a kill, no change was made twice, each call has one result, and the tokens are counted once.
 *
 * STEAD_KILL_STEP=1 kills at every system call; STEAD_KILL_FIRST is the first of them. STEAD_KILL_DEATHS=5000 has that
 * many processes die at instants of a pseudo-random order, which STEAD_KILL_SEED begins.
 */
#include <signal.h>
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

/* Twenty calls: each kind of change to the workspace, reading ones, and an effect outside of it. */
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
	"'Finished.'", NULL};
/* clang-format on */

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
	struct agent_turn turn = {.session = STR("s")};
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
		r = agent_run(agent, &ctx, &turn, &result, &err); /* goes on */
	turn.text = STR("Go");
	if (r == -ERR_NOT_FOUND)
		r = agent_run(agent, &ctx, &turn, &result, &err); /* or begins */
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

/* It was done once; or not at all, and the model knows that this is possible. */
static void check_outside(struct bench *b, const char *url)
{
	FILE *f = fopen(outside_file(b->arena, url), "re");
	struct session_page page;
	struct err err;
	unsigned sent = 0;
	bool unknown = false;
	char line[64];

	while (f && fgets(line, sizeof(line), f))
		sent++;
	if (f)
		fclose(f);
	CHECK_OK(session_history(b->ws, &b->ctx, (struct session_ref){.session = STR("s")}, 0, 10000, false, &page,
				 &err),
		 err);
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		unknown = unknown || str_starts(jv_get_str(m->value, "output"), STR("the outcome is unknown"));
	CHECK(sent == 1 || (sent == 0 && unknown));
	unlink(outside_file(b->arena, url));
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

static void check_end(struct bench *b, const char *url)
{
	struct jv *sum, *found;
	struct err err;

	CHECK_STR(content_of(b, "moved"), STR("0\n1\n2\n3\n4\n5\n"));
	CHECK_ERR(store_stat(workspace_files(b->ws), &b->ctx, (struct wpath){STR("gone")}, NULL, &err), err,
		  ERR_NOT_FOUND);
	CHECK_STR(content_of(b, "copy"), STR("top\n0\n1\n2\n3\n4\nend\n"));
	check_outside(b, url);
	CHECK_INT(count_entries(b, "tool_result"), 20);
	CHECK_INT(count_entries(b, "tool_use"), 20);
	CHECK_INT(count_entries(b, "message"), 5);
	CHECK_INT(count_entries(b, "turn"), 1);
	CHECK_OK(usage_sum(b->ws, &b->ctx, STR_NONE, 0, &sum, &err), err);
	CHECK_INT(jv_get_int(sum, "llm_calls", 0), 4);
	found = (struct jv *)good(b, "list_notes", "{}");
	CHECK_INT(jv_get_int(found, "total", -1), 1);
	found = (struct jv *)good(b, "list_tasks", "{}");
	CHECK_INT(jv_count(jv_get(found, "tasks")), 1);
	check_fact(b);
}

/* Kills the first run at `at`, then runs to the end; false: the run ended before. */
static bool round_at(struct str model, long at, bool (*run)(const char *url, struct str model, long at))
{
	struct bench b;
	const char *dir = temp_dir_new();
	char url[300];
	bool killed;

	snprintf(url, sizeof(url), "disk:%s", dir);
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
	model = recording(arena, answers);
	while (round_at(model, at, run_to))
		at++;
	printf("# killed at %ld instants\n", at - 1);
	CHECK(at > 50);
}

TEST(a_kill_at_system_calls_all_over_the_run_changes_nothing)
{
	const char *wanted = getenv("STEAD_KILL_STEP");
	const char *first = getenv("STEAD_KILL_FIRST");
	long step = wanted ? strtol(wanted, NULL, 10) : 61, at = first ? strtol(first, NULL, 10) : 1;
	struct arena *arena = arena_new();
	struct str model;

	test_defer(arena_destroy, arena);
	model = recording(arena, answers);
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
#define INSTANTS        4500 /* system calls of a run, about; entering and leaving one are two */

TEST(kills_at_system_calls_while_a_run_goes_on_after_a_kill_change_nothing)
{
	long wanted = number_of("STEAD_KILL_DEATHS", 40), deaths = 0, runs = 0;
	uint64_t seed = (uint64_t)number_of("STEAD_KILL_SEED", 1);
	struct arena *arena = arena_new();
	struct str model;

	test_defer(arena_destroy, arena);
	model = recording(arena, answers);
	for (; deaths < wanted; runs++) {
		const char *dir = temp_dir_new();
		struct bench b;
		char url[300];
		bool killed = true;

		snprintf(url, sizeof(url), "disk:%s", dir);
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
	const char *dir = temp_dir_new();
	struct str model;
	struct bench b;
	char url[300];
	long kills = 0;

	test_defer(arena_destroy, arena);
	model = recording(arena, answers);
	snprintf(url, sizeof(url), "disk:%s", dir);
	while (run_to(url, model, 12))
		kills++;
	printf("# killed %ld times in a row\n", kills);
	CHECK(kills > 3);
	bench_open_at(&b, str_of(url), "");
	check_end(&b, url);
}
