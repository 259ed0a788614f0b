/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP server over stores on real servers that stop answering: their processes are stopped (SIGSTOP) or a proxy in
 * front of them passes nothing on. What counts is which message comes first, not when. Below
 * `tests/servers/with redis,postgres,ceph -- …`, with the program in STEAD_PROGRAM.
 */
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "session.h"

#include "servers/proxy.h"
#include "store/backends/s3/s3_fix.h"

#define CALL(id, name, args)                                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name                    \
	"\",\"arguments\":" args "}}"
#define CANCEL(id) "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

static const char *const kinds[] = {"redis", "postgres", "ceph"};

/* The URL of the server, or of the proxy in front of it. No limit of its own is short enough to end a test. */
static struct str url_of(struct arena *arena, const char *kind, struct proxy **ret_proxy)
{
	const char *prefix = arena_printf(arena, "f-%016llx", (unsigned long long)random_u64()).ptr;
	const char *name = strcmp(kind, "redis") == 0      ? "STEAD_TEST_REDIS"
			   : strcmp(kind, "postgres") == 0 ? "STEAD_TEST_POSTGRES"
							   : "STEAD_TEST_S3";
	const char *server = getenv(name);
	char endpoint[64], files[512];
	unsigned port;

	CHECK(server && sscanf(strrchr(server, ':'), ":%u", &port) == 1);
	snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", port);
	if (ret_proxy) {
		*ret_proxy = proxy_start(endpoint);
		snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", proxy_port(*ret_proxy));
	}
	if (strcmp(kind, "redis") == 0)
		return arena_printf(arena, "redis://%s?prefix=%s&timeout_ms=600000", endpoint, prefix);
	if (strcmp(kind, "postgres") == 0)
		return arena_printf(arena, "postgres://stead@%s/stead?sslmode=disable&timeout=600&prefix=%s", endpoint,
				    prefix);
	s3_keys();
	s3_url(files, sizeof files, arena_printf(arena, "http://%s", endpoint).ptr, prefix, "");
	return arena_str(arena, str_of(files));
}

/* A thread of the process may continue until another one of it has been scheduled and has taken the signal. */
static void wait_until_stopped(int pid)
{
	char path[40], state = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	for (int tries = 0; state != 'T' && tries < 10000; tries++) {
		FILE *stat = fopen(path, "re");

		if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
			state = 'T'; /* it is gone */
		if (stat)
			fclose(stat);
		if (state != 'T')
			usleep(1000);
	}
	CHECK_INT(state, 'T');
}

static void signal_one(int pid, int number)
{
	if (kill(pid, number) == 0 && number == SIGSTOP)
		wait_until_stopped(pid);
}

/* Sends a signal to the processes that were started for a server, and to their children. */
static void signal_server(const char *kind, int number)
{
	char path[300], upper[16] = {0};
	const char *dir;
	FILE *pids;
	int pid;

	for (size_t i = 0; kind[i]; i++)
		upper[i] = (char)(kind[i] - 'a' + 'A');
	snprintf(path, sizeof path, "STEAD_TEST_DIR_%s", upper);
	dir = getenv(path);
	CHECK(dir);
	snprintf(path, sizeof path, "%s/pids", dir);
	pids = fopen(path, "re");
	CHECK(pids);
	while (fscanf(pids, "%d", &pid) == 1) {
		FILE *children;
		int child;

		CHECK_INT(kill(pid, 0), 0);
		signal_one(pid, number);
		snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
		children = fopen(path, "re");
		while (children && fscanf(children, "%d", &child) == 1)
			signal_one(child, number);
		if (children)
			fclose(children);
	}
	fclose(pids);
}

static void thaw(void *kind)
{
	signal_server(kind, SIGCONT);
}

/* A workspace with a file a.txt and this agent.yaml. */
static void prepare(struct str url, const char *agent_yaml)
{
	struct workspace_opts opts = {.store_url = url, .name = STR("test"), .create = true};
	struct workspace *ws;
	struct ctx ctx = {.arena = arena_new()};
	struct err err = {0};

	CHECK_OK(workspace_open(&opts, &ws, &err), err);
	CHECK_OK(store_write(workspace_home(ws), &ctx, (struct wpath){STR("agent.yaml")}, str_of(agent_yaml),
			     (struct store_cond){0}, NULL, &err),
		 err);
	CHECK_OK(store_write(workspace_files(ws), &ctx, (struct wpath){STR("a.txt")}, STR("hello\n"),
			     (struct store_cond){0}, NULL, &err),
		 err);
	workspace_close(ws);
	arena_destroy(ctx.arena);
}

static struct str error_kind(const struct jv *reply)
{
	return jv_get_str(jv_get(jv_get(jv_get(reply, "result"), "_meta"), "stead/error"), "kind");
}

static const char *text_of(struct arena *arena, const struct jv *reply)
{
	struct buf out;

	buf_init(&out, arena, MIB);
	jv_write(&out, reply);
	return arena_cstr(arena, utf8_first(buf_str(&out), 400));
}

TEST(while_a_server_is_stopped_pings_are_answered_calls_end_by_their_deadline_and_can_be_cancelled)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct arena *arena = arena_new();
		struct str url = url_of(arena, kinds[i], NULL);
		struct session s;
		struct jv *reply;

		prepare(url, "name: x\ntool_timeouts: {overrides: {read_file: 2, ls: 3600, write_file: 2}}\n");
		session_open_on(&s, url, STR_NONE);
		CHECK(!jv_get_bool(jv_get(session_ask(&s, CALL("1", "read_file", "{\"path\":\"a.txt\"}")), "result"),
				   "isError", false));
		test_defer(thaw, (void *)kinds[i]);
		signal_server(kinds[i], SIGSTOP);
		session_line(&s, CALL("2", "ls", "{}"));
		session_line(&s, CALL("3", "read_file", "{\"path\":\"a.txt\"}"));
		session_line(&s, CALL("4", "read_file", "{\"path\":\"b.txt\"}"));
		session_line(&s, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\",\"params\":"
				 "{\"uri\":\"stead:///a.txt\"}}");
		reply = session_ask(&s, PING);
		if (!str_is(jv_get_str(reply, "id"), "ping"))
			TEST_FAIL("%s: not the answer to the ping: %s", kinds[i], text_of(arena, reply));
		session_line(&s, CANCEL("2"));
		session_line(&s, CANCEL("5"));
		for (int k = 0; k < 2; k++) {
			reply = session_next(&s);
			if (jv_get_int(reply, "id", 0) != 3 && jv_get_int(reply, "id", 0) != 4)
				TEST_FAIL("%s: not the answer to a read: %s", kinds[i], text_of(arena, reply));
			CHECK_STR(error_kind(reply), STR("timeout"));
		}
		signal_server(kinds[i], SIGCONT);
		reply = session_ask(&s, CALL("6", "read_file", "{\"path\":\"a.txt\"}"));
		CHECK_INT(jv_get_int(reply, "id", 0), 6);
		CHECK(!jv_get_bool(jv_get(reply, "result"), "isError", false));
		session_close(&s);
		arena_destroy(arena);
	}
}

TEST(twenty_reads_wait_for_the_server_at_the_same_time)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct arena *arena = arena_new();
		struct proxy *proxy;
		struct str url = url_of(arena, kinds[i], &proxy);
		struct session s;

		prepare(url, "name: x\n");
		session_open_on(&s, url, STR_NONE);
		session_ask(&s, CALL("99", "ls", "{}"));
		proxy_arm(proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
		for (int k = 0; k < 20; k++)
			session_line(&s, arena_printf(arena, CALL("%d", "read_file", "{\"path\":\"f%d\"}"), k, k).ptr);
		/* one after the other, they would never be more than one */
		for (int tries = 0; proxy_faults(proxy) < 20 && tries < 3000; tries++)
			usleep(10000);
		CHECK_INT(proxy_faults(proxy), 20);
		proxy_disarm(proxy);
		for (int k = 0; k < 20; k++)
			CHECK(session_next(&s));
		session_close(&s);
		proxy_stop(proxy);
		arena_destroy(arena);
	}
}

/* `stead mcp` as another process, with a pipe to its input. */
static pid_t start_mcp(struct arena *arena, struct str url, int *ret_to)
{
	const char *stead = getenv("STEAD_PROGRAM");
	const char *argv[] = {stead, "--store", arena_cstr(arena, url), "-w", "test", "mcp", NULL};
	posix_spawn_file_actions_t actions;
	int to[2];
	pid_t pid;

	CHECK(stead && pipe2(to, O_CLOEXEC) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	CHECK_INT(posix_spawn(&pid, stead, &actions, NULL, (char *const *)argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	*ret_to = to[1];
	return pid;
}

TEST(a_closed_input_ends_the_program_although_a_call_hangs_in_a_store)
{
	static const char *const calls[] = {CALL("1", "read_file", "{\"path\":\"a.txt\"}") "\n",
					    CALL("1", "write_file", "{\"path\":\"b.txt\",\"content\":\"b\"}") "\n"};

	for (size_t i = 0; i < COUNT(kinds) * COUNT(calls); i++) {
		struct arena *arena = arena_new();
		struct proxy *proxy;
		struct str url = url_of(arena, kinds[i / 2], &proxy);
		int to, status = -1;
		pid_t pid, ended = 0;

		prepare(url, "name: x\n");
		pid = start_mcp(arena, url, &to);
		/* the program has opened the store when it reads */
		CHECK(write(to, PING "\n", sizeof(PING)) == (ssize_t)sizeof(PING));
		for (int left = 1; left;)
			CHECK(ioctl(to, FIONREAD, &left) == 0);
		proxy_arm(proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
		CHECK(write(to, calls[i % 2], strlen(calls[i % 2])) == (ssize_t)strlen(calls[i % 2]));
		for (int tries = 0; !proxy_faults(proxy) && tries < 3000; tries++)
			usleep(10000);
		CHECK(proxy_faults(proxy) > 0);
		close(to);
		for (int tries = 0; ended == 0 && tries < 6000; tries++) {
			usleep(10000);
			ended = waitpid(pid, &status, WNOHANG);
		}
		if (ended == 0)
			kill(pid, SIGKILL);
		CHECK_INT(ended, pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		proxy_stop(proxy);
		arena_destroy(arena);
	}
}

TEST(opening_ends_by_its_deadline_when_a_server_accepts_and_says_nothing)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct arena *arena = arena_new();
		struct proxy *proxy;
		struct workspace_opts opts = {
			.store_url = url_of(arena, kinds[i], &proxy), .name = STR("test"), .create = true};
		struct workspace *ws;
		struct err err;

		proxy_arm(proxy, &(struct proxy_plan){.fault = PROXY_STALL, .count = PROXY_ALWAYS});
		opts.deadline_ns = clock_monotonic_ns() + NS_PER_S;
		CHECK_ERR(workspace_open(&opts, &ws, &err), err, ERR_TIMEOUT);
		CHECK(proxy_faults(proxy) > 0);
		proxy_stop(proxy);
		arena_destroy(arena);
	}
}
