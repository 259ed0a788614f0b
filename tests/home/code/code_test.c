/* SPDX-License-Identifier: Apache-2.0 */
/* Code over the files: its result, its errors, its figures; functions of agent.yaml; scripts of skills. */
#include "tool/tool_fix.h"

#include <unistd.h>

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

static void keep(struct bench *b, const char *path, const char *text)
{
	struct err err = {0};

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){str_of(path)}, str_of(text),
			     (struct store_cond){0}, NULL, &err),
		 err);
}

static void configure(struct bench *b, const char *yaml, const char *dialect)
{
	keep(b, "agent.yaml", yaml);
	bench_reopen(b, (struct workspace_opts){0}, dialect);
}

TEST(what_run_returns_is_the_result_whatever_is_printed)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "write_file", "{'path':'in.txt','content':'4'}");
	good(&b, "run_code",
	     "{'code':'def run(input):\\n  print(dict(result=1))\\n  open(\\'out.txt\\',\\'w\\').write(\\'done\\')\\n"
	     "  return {\\'n\\': input[\\'a\\'] * int(open(\\'in.txt\\').read())}','input':{'a':3}}");
	CHECK_INT(jv_get_int(jv_get(b.result.value, "result"), "n", 0), 12);
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("{'result': 1}\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'out.txt'}"), "content"), STR("done"));
}

TEST(code_that_misses_the_network_is_told_what_gives_it_one)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "run_code", "{'code':'import socket; socket.getaddrinfo(\\'example.com\\', 80)'}");
	CHECK_HAS(b.result.text, STR("[code has no network; code.allow_network in agent.yaml"));
	good(&b, "run_code", "{'code':'1/0'}");
	CHECK(str_find(b.result.text, STR("no network"), 0) == SIZE_MAX);
}

TEST(the_last_expression_is_shown_and_an_error_has_its_line)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "run_code", "{'code':'x = 20\\nx + 1'}");
	CHECK_STR(jv_get_str(b.result.value, "text"), STR("21"));
	good(&b, "run_code", "{'code':'a = 1\\nb = a / 0'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "error"), "name"), STR("ZeroDivisionError"));
	CHECK_HAS(b.result.text, STR("line 2"));
	CHECK_HAS(b.result.text, STR("b = a / 0"));
	CHECK_INT(jv_get_int(b.result.value, "exit_code", 0), 1);
	CHECK(!jv_get(b.result.value, "result"));
}

TEST(code_that_leaves_early_or_writes_nonsense_has_no_result)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "run_code", "{'code':'import os\\ndef run(i):\\n  os._exit(0)'}");
	CHECK(!jv_get(b.result.value, "result"));
	good(&b, "run_code", "{'code':'import os\\nos.write(3, b\\'[1\\')\\nos._exit(0)'}");
	CHECK(!jv_get(b.result.value, "result"));
	CHECK_HAS(b.result.text, STR("descriptor 3 is not JSON"));
	good(&b, "run_code", "{'code':'def run(i):\\n  return float(\\'nan\\')'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "error"), "name"), STR("ValueError"));
	refused(&b, "run_code", "{'code':''}", ERR_INVALID);
	refused(&b, "run_code", "{'code':'1','language':'cobol'}", ERR_INVALID);
}

static void open_session(struct bench *b, const char *session)
{
	bench_reopen(b, (struct workspace_opts){.session = str_of(session)}, "native");
}

TEST(a_session_keeps_variables_and_definitions_for_its_next_call)
{
	struct bench b;

	open_bench(&b, "native");
	open_session(&b, "one");
	good(&b, "run_code",
	     "{'mode':'session','code':'import math\\ntotal = 40\\nclass P:\\n  x = 1\\ndef f(a):\\n  return a + "
	     "total\\n"
	     "p = q = P()\\ng = lambda: 1'}");
	CHECK_HAS(jv_get_str(b.result.value, "stderr"), STR("not kept for the next call: g"));
	open_session(&b, "one"); /* a process ends and another begins */
	good(&b, "run_code", "{'mode':'session','code':'p.x = 2\\nn = f(2)\\n1 / 0'}");
	good(&b, "run_code", "{'mode':'session','code':'n, math.floor(2.5), q.x, p is q'}");
	CHECK_STR(jv_get_str(b.result.value, "text"), STR("(42, 2, 2, True)"));
	good(&b, "run_code", "{'code':'total'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "error"), "name"), STR("NameError"));
	open_session(&b, "two");
	good(&b, "run_code", "{'mode':'session','code':'total'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "error"), "name"), STR("NameError"));
	refused(&b, "run_code", "{'mode':'session','language':'sh','code':'true'}", ERR_INVALID);
}

TEST(what_is_displayed_is_a_file_and_an_image)
{
	struct bench b;
	const struct jv *first;

	open_bench(&b, "native");
	good(&b, "run_code",
	     "{'code':'class P:\\n  def _repr_png_(self): return b\\'\\\\x89PNG fake\\'\\ndisplay(P(), \\'hello\\')'}");
	first = jv_first(jv_get(b.result.value, "results"))->value;
	CHECK_STR(jv_get_str(first, "path"), STR("artifacts/image-1.png"));
	CHECK_STR(b.result.media.mime, STR("image/png"));
	good(&b, "file_info", "{'path':'artifacts/image-1.png'}");
	CHECK_HAS(b.result.text, STR("9"));
}

/* The interpreter of a call that a worker made has another one for its parent, and not the guardian. */
#define HAS_WAITED                                                                                                     \
	"import os, sys\\n"                                                                                            \
	"waited = os.getppid() > 1\\n"

static const char *shown(struct bench *b, const char *args)
{
	good(b, "run_code", args);
	return arena_cstr(b->ctx.arena, jv_get_str(b->result.value, "text"));
}

TEST(from_the_second_call_on_an_interpreter_waits_and_no_call_finds_anything_of_another)
{
	static const char each[] =
		"{'code':'" HAS_WAITED "import builtins, random\\nseen = getattr(builtins, \\'left\\', 0)\\n"
		"builtins.left = 1\\nos.environ[\\'LEFT\\'] = \\'1\\'\\n"
		"made = os.listdir(\\'/tmp\\')\\nos.makedirs(\\'/tmp/left\\')\\n"
		"open(\\'n.txt\\', \\'a\\').write(\\'x\\')\\n"
		"(waited, seen, made, os.getcwd(), len(open(\\'n.txt\\').read()))'}";
	struct bench b;

	open_bench(&b, "native");
	CHECK_STR(str_of(shown(&b, each)), STR("(False, 0, [], '/workspace', 1)"));
	CHECK_STR(str_of(shown(&b, each)), STR("(True, 0, [], '/workspace', 2)"));
	CHECK_STR(str_of(shown(&b, each)), STR("(True, 0, [], '/workspace', 3)"));
	CHECK_STR(str_of(shown(&b, "{'code':'import os\\nos.environ.get(\\'LEFT\\', 0)'}")), STR("0"));
	good(&b, "run_code", "{'code':'while True: pass','timeout':1}");
	CHECK_INT(jv_get_bool(b.result.value, "timed_out", false), true);
	CHECK_STR(str_of(shown(&b, each)), STR("(True, 0, [], '/workspace', 4)"));
	CHECK_STR(str_of(shown(&b, "{'mode':'session','code':'" HAS_WAITED "waited'}")), STR("False"));
}

TEST(modules_to_preload_are_there_before_a_call_and_variables_of_a_function_only_in_its_own)
{
	static const char yaml[] =
		"code:\n  preload: [decimal, no_such_module]\n  functions:\n    zone:\n"
		"      env_variables: {ZONE: here, TZ: 'ABC-3'}\n      code: |\n"
		"        import os, time\n        def run(input):\n"
		"          return os.environ['ZONE'] + time.strftime('%Z') + str(os.getppid() > 1)\n";
	static const char loaded[] =
		"{'code':'import os, sys\\n(\\'decimal\\' in sys.modules, \\'ZONE\\' in os.environ)'}";
	struct bench b;

	open_bench(&b, "native");
	configure(&b, yaml, "native");
	CHECK_STR(str_of(shown(&b, loaded)), STR("(False, False)"));
	good(&b, "call_function", "{'function':'zone'}");
	CHECK_STR(jv_get_str(b.result.value, "result"), STR("hereABCTrue"));
	CHECK_STR(str_of(shown(&b, loaded)), STR("(True, False)"));
	good(&b, "run_code", "{'code':'import no_such_module'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "error"), "name"), STR("ModuleNotFoundError"));
}

TEST(other_interpreters_get_the_input_and_answer_on_descriptor_3)
{
	struct bench b;

	open_bench(&b, "native");
	good(&b, "run_code", "{'language':'sh','code':'read n; echo [$n, 2] >&3','input':7}");
	CHECK_INT(jv_first(jv_get(b.result.value, "result"))->value->u.i, 7);
	configure(&b, "code: {interpreters: {twice: [sh, -c, 'sh -c \"$0\"; sh -c \"$0\"']}}\n", "native");
	good(&b, "run_code", "{'language':'twice','code':'echo x'}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("x\nx\n"));
	if (access("/usr/bin/node", X_OK) != 0)
		return;
	good(&b, "run_code", "{'language':'node','code':'async function run(i) { return {got: i} }','input':'in'}");
	CHECK_STR(jv_get_str(jv_get(b.result.value, "result"), "got"), STR("in"));
}

TEST(functions_check_their_input_and_their_result)
{
	static const char yaml[] =
		"code:\n  functions:\n    total:\n      type: CodeRunner\n      runtime: python\n"
		"      description: Adds prices.\n      timeout_seconds: 5\n      allow_network: false\n"
		"      env_variables: {TAX: '10'}\n"
		"      code: |\n        import os\n        def run(input):\n"
		"          if input['prices'] == [0]: return {'sum': 'none'}\n"
		"          return {'sum': sum(input['prices']) + int(os.environ['TAX'])}\n"
		"      input_schema: [{name: prices, type: ARRAY, required: true, items: {type: INTEGER}}]\n"
		"      output_schema: [{name: sum, type: INTEGER, required: true}]\n";
	struct bench b;

	open_bench(&b, "native");
	CHECK(!toolset_find(b.set, STR("call_function")));
	configure(&b, yaml, "native");
	good(&b, "call_function", "{'function':'total','input':{'prices':[1,2]}}");
	CHECK_INT(jv_get_int(jv_get(b.result.value, "result"), "sum", 0), 13);
	refused(&b, "call_function", "{'function':'total','input':{'prices':['x']}}", ERR_INVALID);
	refused(&b, "call_function", "{'function':'total','input':{'prices':[0]}}", ERR_INVALID);
	refused(&b, "call_function", "{'function':'totals','input':{}}", ERR_NOT_FOUND);
}

TEST(a_script_of_a_skill_works_on_the_files)
{
	struct bench b;

	open_bench(&b, "native");
	keep(&b, "skills/count/SKILL.md", "---\nname: count\ndescription: Counts.\n---\nRun it.\n");
	keep(&b, "skills/count/scripts/count.sh",
	     "cat \"$SKILL_DIR/word.txt\"; echo \"$2\" > counted.txt; ls -A \"$HOME\"\n");
	keep(&b, "skills/count/word.txt", "a word\n");
	good(&b, "run_skill_script", "{'skill':'count','script':'count.sh','args':['one','two words']}");
	CHECK_STR(jv_get_str(b.result.value, "stdout"), STR("a word\n"));
	CHECK_STR(jv_get_str(good(&b, "read_file", "{'path':'counted.txt'}"), "content"), STR("two words\n"));
	refused(&b, "run_skill_script", "{'skill':'count','script':'../../x'}", ERR_NOT_FOUND);
	refused(&b, "run_skill_script", "{'skill':'coun','script':'x'}", ERR_NOT_FOUND);
}

TEST(the_dialects_have_scripts_and_functions)
{
	struct bench b;

	open_bench(&b, "omnicoreagent");
	keep(&b, "skills/say/SKILL.md", "---\nname: say\ndescription: Says.\n---\nRun it.\n");
	keep(&b, "skills/say/scripts/say.sh", "#!/bin/sh\necho \"said $1\"\n");
	call(&b, "run_skill_script", "{'skill_name':'say','script_name':'say.sh','args':['it']}");
	CHECK_STR(b.result.text, STR("said it\n[exit code 0]"));
	configure(&b, "code: {functions: {one: {code: 'def run(i): return 1'}}}\n", "wacht");
	call(&b, "call_function", "{'function':'one'}");
	CHECK(!b.result.is_error);
	CHECK_STARTS(b.result.text, STR("1\n"));
}
