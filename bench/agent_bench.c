/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step of the agent costs: agent_bench DIR [TURNS]. A model on this machine answers at once, over the protocol
 * of each family; a step is one question to it and one tool call. CPU time of this process alone, user and system, per
 * step; the durable log and the workspace are on disk in DIR. 54.7 ms is what OmniCoreAgent states for a step of its
 * own.
 *
 * Then what a call of a custom tool in Python takes, from the call to its result in the log, next to a start of the
 * interpreter that imports the same modules; without a worker (a call after which none can be used again), and with
 * one.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../tests/agent/model_stub.h"
#include "agent/agent.h"
#include "base/clock.h"
#include "base/limits.h"

#define STEPS   10 /* of a turn */
#define PEER_MS 54.7

static unsigned turns = 40;

static void must(int r, const struct err *err)
{
	if (r) {
		fprintf(stderr, "agent_bench: %s\n", err->msg);
		exit(1);
	}
}

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void run_turn(struct agent *agent, unsigned number)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct agent_turn turn = {.text = STR("Read a.txt"), .session = arena_printf(arena, "s%u", number)};
	struct agent_result result;
	struct err err = {0};

	must(agent_run(agent, &ctx, &turn, &result, &err), &err);
	if (result.model_calls != STEPS + 1) {
		fprintf(stderr, "agent_bench: a turn had %llu steps\n", (unsigned long long)result.model_calls);
		exit(1);
	}
}

static void measure(struct workspace *ws, const char *name, const char *model, const char *url)
{
	struct agent_opts opts = {.model = str_of(model), .base_url = str_of(url)};
	struct agent *agent;
	struct err err = {0};
	double before, each;

	must(agent_open(ws, &opts, &agent, &err), &err);
	run_turn(agent, 1000000 + (unsigned)name[0]); /* what is made once */
	before = cpu_ms();
	for (unsigned i = 0; i < turns; i++)
		run_turn(agent, i + (name[0] == 'A' ? 0 : turns));
	each = (cpu_ms() - before) / (turns * (STEPS + 1));
	printf("| %s | %.2f ms | %.0f x less than %.1f ms | <= 1 ms |\n", name, each, PEER_MS / each, PEER_MS);
	agent_close(agent);
}

/* --- custom tools --- */

#define CALLS   40
#define IMPORTS "asyncio, unittest.mock, http.client, xml.dom.minidom, sqlite3, decimal, email.message"

extern char **environ;

static void put_tool(struct workspace *ws, const char *name, const char *imports, const char *body)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err = {0};
	struct str text = arena_printf(arena,
				       "# stead: files=write\nimport %s\nfrom stead import tool\n@tool\n"
				       "def %s() -> str:\n    \"\"\"Measured.\"\"\"\n    %s\n    return 'x'\n",
				       imports, name, body);

	must(store_write(workspace_home(ws), &ctx, (struct wpath){arena_printf(arena, "tools/%s.py", name)}, text,
			 (struct store_cond){0}, NULL, &err),
	     &err);
}

/* Milliseconds of a call: a turn with many, less one with a single call. */
static double time_calls(struct workspace *ws, const char *dir, const char *name, unsigned calls)
{
	static unsigned turn_number;
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct str path = arena_printf(arena, "%s.%s", dir, name);
	struct agent_opts opts = {.model = arena_printf(arena, "replay:%s", path.ptr)};
	struct agent_turn turn = {.text = STR("Go"), .session = arena_printf(arena, "t%u", turn_number++)};
	struct agent_result result;
	struct agent *agent;
	struct err err = {0};
	FILE *f = fopen(path.ptr, "we");
	int64_t start;

	if (!f)
		exit(1);
	fputs("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[", f);
	for (unsigned i = 0; i < calls; i++)
		fprintf(f, "%s{\"type\":\"tool_use\",\"id\":\"%u\",\"name\":\"%s\",\"input\":{}}", i ? "," : "", i,
			name);
	fputs("]}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"done\"}\n", f);
	fclose(f);
	must(agent_open(ws, &opts, &agent, &err), &err);
	start = clock_monotonic_ns();
	must(agent_run(agent, &ctx, &turn, &result, &err), &err);
	start = clock_monotonic_ns() - start;
	agent_close(agent);
	unlink(path.ptr);
	return (double)start / 1e6;
}

static double time_python(const char *code)
{
	const char *argv[] = {"/usr/bin/python3", "-c", code, NULL}; /* the one that a sandbox sees */
	int64_t start = clock_monotonic_ns();
	pid_t pid;

	for (unsigned i = 0; i < CALLS; i++)
		if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0 ||
		    waitpid(pid, NULL, 0) != pid)
			exit(1);
	return (double)(clock_monotonic_ns() - start) / 1e6 / CALLS;
}

static void measure_tool(struct workspace *ws, const char *dir, const char *what, const char *imports)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	double plain = time_python(arena_printf(arena, "import %s", imports).ptr), warm, cold;

	put_tool(ws, "warm", imports, "pass");
	put_tool(ws, "cold", imports, "__import__('os').mkdir('/tmp/d')"); /* spends the worker */
	warm = time_calls(ws, dir, "warm", 1);
	warm = (time_calls(ws, dir, "warm", CALLS + 1) - time_calls(ws, dir, "warm", 1)) / CALLS;
	cold = (time_calls(ws, dir, "cold", CALLS + 1) - time_calls(ws, dir, "cold", 1)) / CALLS;
	printf("| custom tool, %s: waiting interpreter | %.1f ms | %.2f x python3 -c (%.1f ms) | no start |\n", what,
	       warm, warm / plain, plain);
	printf("| custom tool, %s: new interpreter | %.1f ms | %.2f x | |\n", what, cold, cold / plain);
}

int main(int argc, char **argv)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct workspace_opts opts = {.name = STR("bench"), .create = true};
	struct model_stub stub = {.steps = STEPS};
	struct workspace *ws;
	struct err err = {0};

	if (argc < 2 || argc > 3 || model_stub_start(&stub) != 0) {
		fprintf(stderr, "usage: agent_bench DIR [TURNS]\n");
		return 2;
	}
	if (argc == 3)
		turns = (unsigned)strtoul(argv[2], NULL, 10);
	setenv("ANTHROPIC_API_KEY", "k", 1);
	setenv("OPENAI_API_KEY", "k", 1);
	opts.store_url = arena_printf(arena, "disk:%s", argv[1]);
	must(workspace_open(&opts, &ws, &err), &err);
	must(store_write(workspace_files(ws), &ctx, (struct wpath){STR("a.txt")}, STR("one\ntwo\n"),
			 (struct store_cond){0}, NULL, &err),
	     &err);
	measure(ws, "Anthropic Messages", "anthropic:m", stub.url);
	measure(ws, "Chat Completions", "openai:m", stub.url);
	measure_tool(ws, argv[1], "no import", "sys");
	measure_tool(ws, argv[1], "imports of the library", IMPORTS);
	if (getenv("STEAD_BENCH_IMPORT"))
		measure_tool(ws, argv[1], getenv("STEAD_BENCH_IMPORT"), getenv("STEAD_BENCH_IMPORT"));
	workspace_close(ws);
	model_stub_stop(&stub);
	return 0;
}
