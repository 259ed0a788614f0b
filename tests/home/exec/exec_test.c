/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that run commands, over a workspace. */
#include "tool/tool_fix.h"

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
	CHECK_HAS(b.result.text, STR("[refused .git: what is in it can be read but not changed]"));
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
}

TEST(a_command_is_killed_at_its_time_limit)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "execute", "{'command':'echo begun; sleep 1000','timeout':1}");
	CHECK_INT(jv_get_int(b.result.value, "exit_code", 0), 124);
	CHECK_STARTS(b.result.text, STR("begun\n[killed after "));
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
	struct err err = {0};

	open_bench(&b, "native");
	CHECK_OK(store_write(workspace_home(b.ws), &b.ctx, (struct wpath){STR("agent.yaml")},
			     STR("quota:\n  bytes: 100kB\n"), (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(&b, (struct workspace_opts){0}, "native");
	good(&b, "execute", "{'command':'echo small > small; head -c 200000 /dev/zero > large'}");
	CHECK(!jv_get_bool(b.result.value, "saved", true));
	CHECK_HAS(b.result.text, STR("[no change was kept: "));
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
}
