/* SPDX-License-Identifier: Apache-2.0 */
/* execute, the tools of jobs, and the family's table. */
#include "home/exec/exec_internal.h"
#include "tool/family.h"

static int tool_execute(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct exec_call what = {.shell = "sh",
				 .command = jv_get_str(args, "command"),
				 .cwd = jv_get_str(args, "working_directory"),
				 .timeout_s = jv_get_int(args, "timeout", 0),
				 .timeout_max_s = SANDBOX_SECONDS_MAX,
				 .input = jv_get_str(args, "input")};

	return exec_call(call, &what, &ret->value, err);
}

static void render_execute(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	exec_output(value, text);
	exec_remarks(value, text);
	buf_printf(text, "[exit code %lld]", (long long)jv_get_int(value, "exit_code", 0));
}

static void render_job(const struct jv *args, const struct jv *value, struct buf *text)
{
	struct str output = jv_get_str(value, "output"), status = jv_get_str(value, "status");
	int64_t next = jv_get_int(value, "next_offset", 0), printed = jv_get_int(value, "printed", 0);
	int64_t kept = printed < (int64_t)SANDBOX_JOB_OUTPUT_MAX ? printed : (int64_t)SANDBOX_JOB_OUTPUT_MAX;

	(void)args;
	buf_add(text, output);
	if (output.len && output.ptr[output.len - 1] != '\n')
		buf_char(text, '\n');
	if (next < kept)
		buf_printf(text, "[%lld more bytes were printed; wait_job with offset %lld returns them]\n",
			   (long long)(kept - next), (long long)next);
	else if (kept < printed)
		buf_printf(text, "[%lld more bytes were printed but not kept; let the command write them to a file]\n",
			   (long long)(printed - kept));
	exec_remarks(value, text);
	if (str_is(status, "ended"))
		buf_printf(text, "[exit code %lld]", (long long)jv_get_int(value, "exit_code", 0));
	else if (str_is(status, "running"))
		buf_printf(text, "[still running; continue with offset %lld]",
			   (long long)jv_get_int(value, "next_offset", 0));
	else
		buf_printf(text, "[failed: %.*s]", STR_ARG(jv_get_str(value, "problem")));
}

/* The tier that agent.yaml asks for must be one that the machine has, and secrets must have a way to their hosts. */
static void exec_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct sandbox_job job;
	enum sandbox_tier tier;
	struct err err = {0};

	if (exec_job(ws, ctx, &job, &err) != 0) {
		finding_error(findings, "sandbox", &err, "correct agent.yaml or .env; commands cannot run until then");
		return;
	}
	if (sandbox_tier_choose(job.tier, &tier, &err) != 0)
		finding_error(
			findings, "sandbox", &err,
			"allow user namespaces, or set sandbox.tier in agent.yaml; commands cannot run until then");
	for (size_t i = 0; i < job.net->secret_count; i++)
		if (!sandbox_net_reaches(job.net, job.net->secrets[i].host))
			finding_add(findings, "sandbox",
				    arena_printf(ctx->arena,
						 "%.*s is granted to %.*s, which sandbox.network does not allow",
						 STR_ARG(job.net->secrets[i].name), STR_ARG(job.net->secrets[i].host)),
				    "add the host to sandbox.network in agent.yaml");
}

/* clang-format off */
#define JOB \
	"job! int; status! running|ended|failed; exit_code int; saved bool; problem\n" \
	"signal int; timed_out bool; out_of_memory bool; out_of_disk bool; duration_ms int; left_out\n" \
	"changes [{path!; outcome!; reason; kept_as}]\n"

/* A command can do what these do. */
#define FILES "read_file write_file edit_file append_file delete_file move_file"

static const struct tool native[] = {
	{
		.name = "execute", .title = "Run a command", .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .needs = FILES,
		.call = tool_execute, .render = render_execute,
		.description =
			"Runs a shell command in a sandbox that sees the files and nothing else, and no network but the hosts that agent.yaml allows. "
			"Files that it changes are kept; what it leaves running is killed when it ends.",
		.args =
			"command!: the command, for sh\n"
			"working_directory: relative directory to run it in (default: the root of the files)\n"
			"timeout int>=1<=1800: seconds until it is killed (default 120)\n"
			"input: its standard input (default: empty)",
		.result =
			"exit_code! int: 124 after the time limit, 128+n after signal n\n"
			"stdout!; stderr!\n"
			"truncated! bool: only the beginning and the end of the output are here\n"
			"stdout_artifact: id of the whole output; stderr_artifact\n"
			"signal int; timed_out! bool; out_of_memory bool; out_of_disk bool; duration_ms! int; cpu_ms int; memory_peak int; tier!\n"
			"changes! [{path!; outcome! created|changed|deleted|merged|conflict|refused; reason; kept_as}]\n"
			"network [{host!; port int; outcome! ended|refused|failed; reason; sent int; received int; duration_ms int}]\n"
			"changed_files! int; excluded int; left_out; saved! bool; problem; revision int",
	},
	{
		.name = "start_job", .title = "Start a command", .traits = TOOL_DESTRUCTIVE | TOOL_RUNS | TOOL_STAYS, .call = tool_start_job, .needs = "execute " FILES,
		.description =
			"Starts a shell command in the background, in the same sandbox as execute, and returns its number for "
			"wait_job. Its changes are kept when it has ended. Jobs end with this server.",
		.args =
			"command!: the command, for sh\n"
			"working_directory: relative directory to run it in (default: the root of the files)\n"
			"timeout int>=1<=86400: seconds until it is killed (default 1800)",
		.result = "job! int",
	},
	{
		.name = "wait_job", .title = "Wait for a job", .traits = RO | TOOL_LONG, .call = tool_wait_job,
		.render = render_job,
		.description =
			"Waits until a job has ended, or for timeout seconds, and returns what it printed from an offset on. One call "
			"is enough: it returns as soon as the job has ended.",
		.args =
			"job! int>=1: the number from start_job\n"
			"offset int>=0: first byte of the output (default 0)\n"
			"timeout int>=0<=600: seconds to wait (default 60); 0 returns the output at once",
		.result = JOB "output!; next_offset! int; printed! int",
	},
	{
		.name = "kill_job", .title = "End a job", .traits = TOOL_DESTRUCTIVE | TOOL_LONG, .call = tool_kill_job,
		.render = render_job,
		.description = "Kills a job with everything that it started, and keeps what it changed.",
		.args =
			"job! int>=1: the number from start_job\n"
			"offset int>=0: first byte of the output (default 0)",
		.result = JOB "output!; next_offset! int; printed! int",
	},
	{
		.name = "list_jobs", .title = "List jobs", .traits = RO, .call = tool_list_jobs,
		.description = "Lists running jobs and the last ones that ended.",
		.result = "jobs! [{job! int; status!; exit_code int; saved bool; problem; command!}]",
	},
	{0},
};
/* clang-format on */

const struct family exec_family = {
	.name = "exec",
	.about = "Commands that work on the files, in a sandbox.",
	.tools = native,
	.commands = exec_commands,
	.open = jobs_open,
	.close = jobs_close,
	.has_threads = true,
	.check = exec_check,
};
