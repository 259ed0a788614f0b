/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that run commands, over a workspace. */
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "tool/tool_fix.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sandbox/sandbox.h"

static void open_bench(struct bench *b, const char *dialect)
{
	enum sandbox_tier tier;
	struct err err;

	if (sandbox_tier_choose(SANDBOX_AUTO, &tier, &err) != 0)
		SKIP("%.150s", err.msg);
	bench_open_disk(b, dialect);
}

static void configure(struct bench *b, const char *text)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "native");
}

TEST(a_command_works_on_the_files_and_one_undo_takes_it_back)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "write_file", "{'path':'a.txt','content':'one\\n'}");
	good(&b, "execute", "{'command':'cat a.txt; echo two >> a.txt; echo new > b.txt'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("one\n"));
	CHECK_INT(jv_get_int(b.result.value, "changed_files", 0), 2);
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'a.txt'}"), "content"), STR("one\ntwo\n"));
	good(&b, "undo", "{}");
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'a.txt'}"), "content"), STR("one\n"));
	refused(&b, "read_file", "{'path':'b.txt'}", ERR_NOT_FOUND);
}

TEST(git_works_inside_and_its_directory_is_refused_as_one)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "write_file", "{'path':'a.txt','content':'one\\n'}");
	good(&b, "execute",
	     "{'command':'git init -q . && git add a.txt && git -c user.name=a -c user.email=a@b commit -qm first && "
	     "git log "
	     "--format=%s && git mv a.txt b.txt && git status --short'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("first\nR  a.txt -> b.txt\n"));
	CHECK_INT(jv_get_int(b.result.value, "changed_files", 0), 3);
	CHECK_HAS(b.result.text, STR("[refused .git: its contents can be read but not changed]"));
}

TEST(a_command_in_a_store_in_memory_gets_copies)
{
	struct bench b;

	bench_open(&b, "native");
	good(&b, "write_file", "{'path':'dir/a.txt','content':'one'}");
	good(&b, "execute", "{'command':'cat a.txt; mv a.txt b.txt','working_directory':'dir'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("one"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'dir/b.txt'}"), "content"), STR("one"));
}

TEST(output_that_does_not_fit_is_an_artifact)
{
	struct bench b;
	struct str id;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'seq 100000'}");
	id = jv_get_str(b.result.value, "stdout_artifact");
	CHECK(id.len && jv_get_bool(b.result.value, "truncated", false));
	CHECK_HAS(b.result.text, STR("bytes left out]"));
	good(&b, "tail_artifact", arena_printf(b.arena, "{'artifact_id':'%.*s','lines':1}", STR_ARG(id)).ptr);
	CHECK_STR(str_trim(jv_get_str(b.result.value, "content")), STR("100000"));
}

TEST(a_working_directory_stays_in_the_files)
{
	struct bench b;

	open_bench(&b, "native");
	refused(&b, "execute", "{'command':'pwd','working_directory':'/etc'}", ERR_INVALID);
	refused(&b, "execute", "{'command':'pwd','working_directory':'../..'}", ERR_INVALID);
	refused(&b, "execute", "{'command':'pwd','timeout':100000}", ERR_INVALID);
	refused(&b, "execute", "{'command':'pwd','timeout':1e30}", ERR_INVALID);
}

TEST(a_working_directory_may_be_named_as_the_command_sees_it)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'mkdir sub; echo x > sub/f'}");
	good(&b, "execute", "{'command':'pwd','working_directory':'/workspace/sub'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("/workspace/sub\n"));
	good(&b, "execute", "{'command':'pwd','working_directory':'/workspace'}");
	refused(&b, "execute", "{'command':'pwd','working_directory':'/workspace/../etc'}", ERR_INVALID);
	refused(&b, "execute", "{'command':'pwd','working_directory':'/workspaces'}", ERR_INVALID);
	refused(&b, "execute", "{'command':'pwd','working_directory':'sub/f'}", ERR_INVALID);
	CHECK_HAS(b.result.text, STR("\"sub/f\" is a file"));
}

TEST(what_ended_a_command_is_in_the_answer)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'kill -SEGV $$'}");
	CHECK_STR(b.result.text, STR("[killed by signal 11 (SIGSEGV)]\n[exit code 139]"));
	good(&b, "execute", "{'command':'exec truncate -s 10G large'}");
	CHECK_HAS(b.result.text, STR("[killed because a file would be larger than sandbox.disk"));
}

TEST(what_is_left_out_is_named_unless_it_is_kept)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute",
	     "{'command':'mkdir -p a/node_modules/m a/__pycache__; touch a/node_modules/m/i.js a/__pycache__/x'}");
	CHECK_HAS(b.result.text, STR("[not kept a/node_modules: sandbox.exclude names it; "));
	good(&b, "execute", "{'command':'mkdir -p a/__pycache__; touch a/__pycache__/x'}");
	CHECK_STR(b.result.text, STR("[exit code 0]"));
	configure(&b, "sandbox: {keep: user}\n");
	good(&b, "execute", "{'command':'mkdir -p node_modules; touch node_modules/x'}");
	CHECK_STR(b.result.text, STR("[exit code 0]"));
}

TEST(an_empty_command_is_refused)
{
	struct bench b;

	open_bench(&b, "native");
	refused(&b, "execute", "{'command':' '}", ERR_INVALID);
	refused(&b, "start_job", "{'command':''}", ERR_INVALID);
	refused(&b, "start_job", "{'command':'ls\\u0000'}", ERR_INVALID);
}

TEST(a_name_cannot_forge_a_line_of_the_answer)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'IFS=; touch $(printf %b x\\\\\\\\012[exit]\\\\\\\\033)'}");
	CHECK_HAS(b.result.text, STR("[refused x\\x0a[exit]\\x1b: its name is not a valid path"));
}

/* A process that this one has made and not waited for; 0: there is none. */
static pid_t any_child(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	pid_t pid = 0;

	while (tasks && pid == 0 && (e = readdir(tasks))) {
		char path[300];
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/children", e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%d", &pid) != 1)
			pid = 0;
		if (f)
			(void)!fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return pid;
}

TEST(the_sandbox_of_a_third_command_is_made_in_advance_and_ends_with_the_workspace)
{
	struct bench b;
	pid_t waiting = 0;

	open_bench(&b, "native");
	good(&b, "write_file", "{'path':'a.txt','content':''}");
	good(&b, "execute", "{'command':'true'}");
	CHECK_INT(any_child(), 0);
	good(&b, "execute", "{'command':'true'}");
	for (int tries = 0; tries < 2000 && (waiting = any_child()) == 0; tries++)
		usleep(5000); /* it is made in the background */
	CHECK(waiting > 0);
	for (int tries = 0; tries < 2000 && kill(waiting, 0) == 0; tries++) {
		good(&b, "execute", "{'command':'cat a.txt; echo line >>a.txt'}");
		CHECK_INT(jv_get_int(b.result.value, "changed_files", 0), 1);
	}
	CHECK(kill(waiting, 0) != 0); /* a command has used it up */
	good(&b, "execute", "{'command':'tail -n 1 a.txt'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("line\n"));
	bench_close(&b);
	CHECK_INT(any_child(), 0);
}

TEST(a_command_is_killed_at_its_time_limit)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'echo begun; sleep 1000','timeout':1}");
	CHECK_INT(jv_get_int(b.result.value, "exit_code", 0), 124);
	CHECK_STARTS(b.result.text, STR("begun\n[killed after "));
}

TEST(a_command_that_reaches_the_deadline_of_its_call_gives_what_it_printed_and_keeps_what_it_changed)
{
	struct bench b;

	open_bench(&b, "native");
	b.ctx.deadline_ns = clock_monotonic_ns() + 3 * NS_PER_S;
	good(&b, "execute", "{'command':'echo one >made; echo begun; sleep 1000','timeout':1000}");
	b.ctx.deadline_ns = 0;
	CHECK_STARTS(b.result.text, STR("begun\n[killed after "));
	CHECK_STR(content_of(&b, "made"), STR("one\n"));
}

TEST(a_command_that_closes_its_input_ends_nobody_else)
{
	struct bench b;
	struct jv *args;
	char *input = malloc((size_t)1 << 20);

	open_bench(&b, "native");
	memset(input, 'x', (size_t)1 << 20);
	args = jv_object(b.arena);
	jv_set_str(b.arena, args, "command", STR("exec <&-; echo done"));
	jv_set_str(b.arena, args, "input", str_n(input, (size_t)1 << 20));
	signal(SIGPIPE, SIG_DFL);
	call_jv(&b, "execute", args);
	CHECK(!b.result.is_error);
	CHECK_STARTS(b.result.text, STR("done\n"));
	bench_close(&b);
	free(input);
}

TEST(dialects_have_their_names_and_replies)
{
	struct bench b;

	open_bench(&b, "agentscope");
	call(&b, "execute", "{'command':'echo out; exit 2'}");
	CHECK_STR(b.result.text, STR("Exit code: 2\n\nout\n"));
	call(&b, "execute_shell_command", "{'command':'true'}");
	CHECK_STR(b.result.text, STR("Exit code: 0\n\n"));
	bench_close(&b);
	open_bench(&b, "wacht");
	call(&b, "execute_command", "{'command':'pwd; echo x > x'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("/task\n"));
	CHECK(jv_get_bool(b.result.value, "success", false));
	CHECK_STR(jv_get_str(b.result.value, "remarks"), STR("[1 file created]\n"));
	call(&b, "execute_command", "{'command':'echo x > .env; ln -s x link; seq 100000','timeout_seconds':9}");
	CHECK(jv_get_bool(b.result.value, "truncated", false));
	CHECK_STARTS(jv_get_str(b.result.value, "remarks"), STR("[refused .env: "));
	bench_close(&b);
	open_bench(&b, "loomflow");
	call(&b, "bash", "{'command':'echo $((1+1)); [[ a == a ]] && echo bash'}");
	CHECK_STR(b.result.text, STR("2\nbash\n[exit code 0]"));
	bench_close(&b);
	open_bench(&b, "openpaw");
	call(&b, "shell", "{'command':'exit 4'}");
	CHECK_STR(b.result.text, STR("[exit code 4]"));
}

TEST(nothing_is_kept_when_the_quota_does_not_allow_it)
{
	struct bench b;

	open_bench(&b, "native");
	configure(&b, "quota:\n  bytes: 100kB\n");
	good(&b, "execute", "{'command':'echo small > small; head -c 200000 /dev/zero > large'}");
	CHECK(!jv_get_bool(b.result.value, "saved", true));
	CHECK_HAS(b.result.text, STR("[no change was kept: "));
	configure(&b, "quota:\n  file_size: 50kB\n");
	good(&b, "execute", "{'command':'echo small > small; head -c 200000 /dev/zero > large'}");
	CHECK_HAS(b.result.text, STR("[no change was kept: large: the file would have 200000 bytes"));
	refused(&b, "read_file", "{'path':'small'}", ERR_NOT_FOUND);
}

TEST(the_tier_is_not_for_the_agent_to_choose)
{
	struct bench b;

	open_bench(&b, "native");
	refused(&b, "execute", "{'command':'id','tier':'local'}", ERR_INVALID);
}

TEST(a_job_runs_in_the_background_and_one_wait_is_enough)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "start_job", "{'command':'echo begun; sleep 0.2; echo done > result.txt; echo ended'}");
	CHECK_INT(jv_get_int(b.result.value, "job", 0), 1);
	good(&b, "wait_job", "{'job':1}");
	CHECK_STR(jv_get_str(b.result.value, "output"), STR("begun\nended\n"));
	CHECK_STR(jv_get_str(b.result.value, "status"), STR("ended"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'result.txt'}"), "content"), STR("done\n"));
	good(&b, "wait_job", "{'job':1,'offset':6,'timeout':0}");
	CHECK_STR(jv_get_str(b.result.value, "output"), STR("ended\n"));
	refused(&b, "wait_job", "{'job':2}", ERR_NOT_FOUND);
}

TEST(output_of_a_job_that_does_not_fit_says_where_it_goes_on)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "start_job", "{'command':'seq 10000'}");
	good(&b, "wait_job", "{'job':1}");
	CHECK_HAS(b.result.text, STR("[18894 more bytes were printed; wait_job with offset 30000 returns them]"));
	good(&b, "wait_job", "{'job':1,'offset':30000}");
	CHECK(str_find(b.result.text, STR("more were printed"), 0) == SIZE_MAX);
	good(&b, "start_job", "{'command':'head -c 5000000 /dev/zero | tr \\\\0 x'}");
	good(&b, "wait_job", "{'job':2}");
	good(&b, "wait_job", "{'job':2,'offset':4190000}");
	CHECK_HAS(b.result.text, STR("[805696 more bytes were printed but not kept"));
}

TEST(what_a_tool_changed_while_a_command_ran_is_merged_or_kept_beside_it)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "write_file", "{'path':'list','content':'one\\ntwo\\nthree\\nfour\\nfive\\n'}");
	good(&b, "write_file", "{'path':'same','content':'one\\n'}");
	good(&b, "start_job",
	     "{'command':'sed -i s/five/FIVE/ list; echo mine > same; echo made > new; echo begun; sleep 1000'}");
	for (int tries = 0; tries < 100000; tries++) {
		good(&b, "wait_job", "{'job':1,'timeout':0}");
		if (jv_get_int(b.result.value, "printed", 0) > 0)
			break;
	}
	good(&b, "write_file", "{'path':'list','content':'ONE\\ntwo\\nthree\\nfour\\nfive\\n','mode':'overwrite'}");
	good(&b, "write_file", "{'path':'same','content':'theirs\\n','mode':'overwrite'}");
	good(&b, "write_file", "{'path':'new','content':'theirs\\n'}");
	good(&b, "kill_job", "{'job':1}");
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'list'}"), "content"),
		  STR("ONE\ntwo\nthree\nfour\nFIVE\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'same'}"), "content"), STR("theirs\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'same.conflict-1'}"), "content"), STR("mine\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'new'}"), "content"), STR("theirs\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'new.conflict-1'}"), "content"), STR("made\n"));
}

TEST(a_job_that_ran_out_of_time_says_so)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "start_job", "{'command':'sleep 1000','timeout':1}");
	good(&b, "wait_job", "{'job':1}");
	CHECK_STARTS(b.result.text, STR("[killed after "));
}

TEST(a_killed_job_keeps_what_it_changed)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "start_job", "{'command':'echo kept > kept.txt; echo ready; sleep 1000'}");
	for (int tries = 0; tries < 100000; tries++) {
		good(&b, "wait_job", "{'job':1,'timeout':0}");
		if (jv_get_int(b.result.value, "printed", 0) > 0)
			break;
	}
	good(&b, "kill_job", "{'job':1}");
	CHECK_INT(jv_get_int(b.result.value, "exit_code", 0), 137);
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'kept.txt'}"), "content"), STR("kept\n"));
}

TEST(jobs_are_counted_and_end_with_the_workspace)
{
	struct bench b;

	open_bench(&b, "native");
	for (int i = 0; i < SANDBOX_JOBS_MAX; i++)
		good(&b, "start_job", "{'command':'sleep 1000'}");
	refused(&b, "start_job", "{'command':'sleep 1000'}", ERR_UNAVAILABLE);
	good(&b, "list_jobs", "{}");
	CHECK_INT(jv_count(jv_get(b.result.value, "jobs")), SANDBOX_JOBS_MAX);
	good(&b, "kill_job", "{'job':1}");
	good(&b, "start_job", "{'command':'sleep 1000'}");
	good(&b, "list_jobs", "{}");
	CHECK_INT(jv_get_int(jv_first(jv_get(b.result.value, "jobs"))->value, "job", 0), 2);
}
