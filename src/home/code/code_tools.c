/* SPDX-License-Identifier: Apache-2.0 */
/* run_code, call_function, run_skill_script, and the family's table. */
#include "base/limits.h"
#include "home/code/code.h"
#include "text/schema.h"
#include "tool/family.h"
#include "tool/prompt_section.h"

static int tool_run_code(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct str language = jv_get_str(args, "language");
	struct code_run what = {.language = language.len ? language : STR("python"),
				.code = jv_get_str(args, "code"),
				.input = jv_get(args, "input"),
				.timeout_s = jv_get_int(args, "timeout", 0),
				.allow_network = code_has_network(call->ws),
				.session = str_is(jv_get_str(args, "mode"), "session")};

	return code_run(call, &what, ret, err);
}

static int tool_call_function(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return code_call(call, jv_get_str(args, "function"), jv_get(args, "input"), ret, err);
}

static int tool_run_skill_script(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct skill_script what = {.skill = jv_get_str(args, "skill"),
				    .script = jv_get_str(args, "script"),
				    .args = jv_get(args, "args"),
				    .timeout_s = jv_get_int(args, "timeout", 0)};

	return skill_script_run(call, &what, &ret->value, err);
}

/* --- text --- */

/* What Python and its clients raise for a name that does not exist, as none does without a network. */
static bool lacks_network(const struct jv *value, struct str error)
{
	static const char *const names[] = {
		"gaierror",      "URLError",           "ConnectionError",     "ConnectError",
		"MaxRetryError", "NewConnectionError", "ClientConnectorError"};

	for (size_t i = 0; i < COUNT(names); i++)
		if (str_is(error, names[i]))
			return !jv_get(value, "network"); /* else that says what was refused */
	return false;
}

void code_render(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *result = jv_get(value, "result"), *error = jv_get(value, "error");

	(void)args;
	exec_output(value, text);
	if (jv_get_str(value, "text").len)
		buf_printf(text, "%.*s\n", STR_ARG(jv_get_str(value, "text")));
	for (const struct jv_member *m = jv_first(jv_get(value, "results")); m; m = m->next) {
		struct str path = jv_get_str(m->value, "path");

		buf_printf(text, "[%.*s%s%.*s]\n", STR_ARG(jv_get_str(m->value, "mime")), path.len ? ": " : "",
			   STR_ARG(path));
		if (jv_get_str(m->value, "data").len)
			buf_printf(text, "%.*s\n", STR_ARG(jv_get_str(m->value, "data")));
	}
	if (result) {
		jv_write(text, result);
		buf_lit(text, "\n");
	}
	if (error)
		buf_printf(text, "%.*s\n", STR_ARG(str_trim(jv_get_str(error, "traceback"))));
	if (lacks_network(value, jv_get_str(error, "name")))
		buf_lit(text, "[code has no network; code.allow_network in agent.yaml, or a function's allow_network, "
			      "allows the hosts in sandbox.network]\n");
	exec_remarks(value, text);
	if (jv_get_bool(value, "saved", true) && jv_get_str(value, "problem").len)
		buf_printf(text, "[%.*s]\n", STR_ARG(jv_get_str(value, "problem")));
	buf_printf(text, "[exit code %lld]", (long long)jv_get_int(value, "exit_code", 0));
}

static void render_script(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	exec_output(value, text);
	exec_remarks(value, text);
	buf_printf(text, "[exit code %lld]", (long long)jv_get_int(value, "exit_code", 0));
}

/* --- functions in the prompt --- */

static bool has_functions(struct workspace *ws)
{
	return jv_count(jv_get(jv_get(workspace_config(ws)->document, "code"), "functions")) > 0;
}

/* "(fields)" of a schema: names and types are enough to call it. */
static void list_fields(struct arena *arena, const struct jv *written, struct buf *text)
{
	struct jv *schema;
	struct err ignored;
	size_t n = 0;

	if (!written || code_schema(arena, written, &schema, &ignored) != 0)
		return;
	buf_lit(text, " {");
	for (const struct jv_member *m = jv_first(jv_get(schema, "properties")); m; m = m->next)
		buf_printf(text, "%s%.*s: %.*s", n++ ? ", " : "", STR_ARG(m->key),
			   STR_ARG(jv_get_str(m->value, "type")));
	buf_lit(text, "}");
}

static int find_functions(struct prompt_find *find, struct err *err)
{
	const struct jv *functions = jv_get(jv_get(workspace_config(find->ws)->document, "code"), "functions");
	struct arena *arena = find->ctx->arena;

	(void)err;
	for (const struct jv_member *m = jv_first(functions); m; m = m->next) {
		struct buf about, line;

		buf_init(&about, arena, 8 * KIB);
		buf_add(&about, jv_get_str(m->value, "description"));
		list_fields(arena, jv_get(m->value, "input_schema"), &about);
		buf_init(&line, arena, 64 * KIB);
		prompt_escape_entry(&line, m->key, buf_str(&about));
		prompt_add_line(find, m->key, STR("agent.yaml"), buf_str(&line));
	}
	return 0;
}

static const struct prompt_section prompt[] = {
	{.name = "functions",
	 .class = PROMPT_STATIC,
	 .position = 65,
	 .form = PROMPT_LIST,
	 .floor = 10,
	 .yields = 5,
	 .about = "Functions that call_function runs, with the fields of their input.\n",
	 .rest = "call_function lists the others if you give it a name that does not exist",
	 .find = find_functions},
	{0},
};

/* The code of each function must be in a language that there is, and its schemas must be schemas. */
static void code_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	const struct jv *code = jv_get(workspace_config(ws)->document, "code");
	static const char *const keys[] = {"input_schema", "output_schema"};

	for (const struct jv_member *m = jv_first(jv_get(code, "functions")); m; m = m->next)
		for (size_t i = 0; i < COUNT(keys); i++) {
			const struct jv *written = jv_get(m->value, keys[i]);
			struct jv *schema;
			struct err err = {0};

			if (!written || code_schema(ctx->arena, written, &schema, &err) == 0)
				continue;
			err_prefix(&err, "code.functions.%.*s.%s", STR_ARG(m->key), keys[i]);
			finding_error(findings, "code", &err, "correct the schema in agent.yaml");
		}
}

/* clang-format off */
/* Code can do what these do. */
#define FILES "execute read_file write_file edit_file append_file delete_file move_file"
#define RAN \
	"exit_code! int; stdout!; stderr!; truncated! bool; stdout_artifact; stderr_artifact\n" \
	"signal int; timed_out! bool; out_of_memory bool; out_of_disk bool; duration_ms! int; cpu_ms int; memory_peak int; tier!\n" \
	"changes! [{path!; outcome! created|changed|deleted|merged|conflict|refused; reason; kept_as}]\n" \
	"network [{host!; port int; outcome! ended|refused|failed; reason; sent int; received int; duration_ms int}]\n" \
	"changed_files! int; excluded int; left_out; saved! bool; problem; revision int"
#define ANSWER \
	"result any: what run(input) returned\n" \
	"text: the value of the last expression\n" \
	"results! [{mime!; path; data}]: figures and what was displayed\n" \
	"error {name!; value!; traceback!}: what the code raised\n"

static const struct tool native[] = {
	{
		.name = "run_code", .title = "Run code", .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .needs = FILES,
		.call = tool_run_code, .render = code_render,
		.description =
			"Runs code in a sandbox that sees the files and nothing else. If the code defines run(input), it is called "
			"and its JSON result is returned; else the value of the last expression is shown. Figures of matplotlib are "
			"saved in artifacts/ and shown. Files that it changes are kept.",
		.args =
			"code!: the code\n"
			"language: python (default), node, sh or a configured one\n"
			"input any: the argument of run(input)\n"
			"mode fresh|session: session keeps variables between calls (python; default fresh)\n"
			"timeout int>=1<=1800: seconds (default 30)",
		.result = ANSWER RAN,
	},
	{
		.name = "call_function", .title = "Call a function", .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .needs = "run_code " FILES,
		.call = tool_call_function, .render = code_render, .available = has_functions,
		.setup = "add functions to code.functions in agent.yaml",
		.description = "Calls a function that people prepared, in the sandbox over the files. Its input and its result are checked.",
		.args =
			"function!: its name\n"
			"input any: its input",
		.result = ANSWER RAN,
	},
	{
		.name = "run_skill_script", .title = "Run a skill's script", .traits = TOOL_LONG | TOOL_DESTRUCTIVE | TOOL_RUNS, .needs = "load_skill " FILES,
		.call = tool_run_skill_script, .render = render_script,
		.description = "Runs a script of a skill in the sandbox, over the files. The skill's own files are in $SKILL_DIR.",
		.args =
			"skill!: the skill's name\n"
			"script!: the script, from its directory scripts/\n"
			"args [str]: its arguments\n"
			"timeout int>=1<=1800: seconds (default 30)",
		.result = RAN,
	},
	{0},
};
/* clang-format on */

const struct family code_family = {
	.name = "code",
	.about = "Code that works on the files, in a sandbox: agents' code, prepared functions, skill scripts.",
	.tools = native,
	.prompt = prompt,
	.check = code_check,
};
