/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead tools` and `stead call`: the tool table for people and scripts. A value on the command line is text; what it
 * becomes is decided by the type that the tool's schema gives the argument: `limit=5` is a number, `content=5` is text,
 * and no extra notation is needed.
 */
#include <unistd.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "command/cli.h"
#include "command/input.h"

/* Types that a property's schema allows, as bits of 1 << enum jv_type. 0: the schema does not say. */
static unsigned types_of(const struct jv *schema)
{
	static const struct {
		const char *name;
		unsigned bits;
	} names[] = {{"string", 1u << JV_STR},   {"integer", 1u << JV_INT}, {"number", 1u << JV_INT | 1u << JV_REAL},
		     {"boolean", 1u << JV_BOOL}, {"array", 1u << JV_ARRAY}, {"object", 1u << JV_OBJECT},
		     {"null", 1u << JV_NULL}};
	static const char *const choices[] = {"anyOf", "oneOf"};
	const struct jv *type = jv_get(schema, "type"), *options = jv_get(schema, "enum");
	unsigned types = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_is(jv_str_of(type), names[i].name))
			types |= names[i].bits;
		for (const struct jv_member *m = type && type->type == JV_ARRAY ? jv_first(type) : NULL; m; m = m->next)
			if (str_is(jv_str_of(m->value), names[i].name))
				types |= names[i].bits;
	}
	for (size_t i = 0; i < 2; i++)
		for (const struct jv_member *m = jv_first(jv_get(schema, choices[i])); m; m = m->next)
			types |= types_of(m->value);
	for (const struct jv_member *m = type ? NULL : jv_first(options); m; m = m->next)
		types |= 1u << m->value->type;
	return types;
}

/* The value of KEY=VALUE. Text that should be something else and is not stays text: the schema check then says what was
   expected, better than we could. */
static struct jv *typed_value(struct arena *arena, const struct jv *schema, struct str text)
{
	unsigned types = types_of(schema);
	struct jv *value;
	struct err unused;

	if (types == 0 || types == 1u << JV_STR)
		return jv_str(arena, text);
	if (jv_parse(arena, text, &value, &unused) != 0 || !(types & 1u << value->type))
		value = jv_str(arena, text);
	if (value->type == JV_STR && !(types & 1u << JV_STR) && types & 1u << JV_ARRAY) {
		struct jv *list = jv_array(arena); /* include=*.md is a list of one */

		jv_push(arena, list, value);
		return list;
	}
	return value;
}

static void push_all(struct arena *arena, struct jv *list, const struct jv *v)
{
	if (v->type != JV_ARRAY)
		jv_push(arena, list, jv_copy(arena, v));
	for (const struct jv_member *m = v->type == JV_ARRAY ? jv_first(v) : NULL; m; m = m->next)
		jv_push(arena, list, m->value);
}

static int add_pair(struct arena *arena, const struct jv *schema, struct str pair, struct jv *args, struct err *err)
{
	size_t eq = str_find_char(pair, '=');
	struct str key = str_first(pair, eq);
	struct jv *value;
	const struct jv *before, *property;

	if (eq == pair.len || eq == 0)
		return err_set(err, ERR_INVALID, "call: '%.*s' is neither KEY=VALUE nor a JSON object nor '-'",
			       STR_ARG(utf8_first(pair, 80)));
	if (!utf8_valid(pair))
		return err_set(err, ERR_INVALID, "call: the argument '%.*s' is not UTF-8; send bytes as base64",
			       STR_ARG(utf8_first(key, 80)));
	property = jv_get_key(jv_get(schema, "properties"), key);
	value = typed_value(arena, property, str_from(pair, eq + 1));
	before = jv_get_key(args, key);
	if (before && types_of(property) & 1u << JV_ARRAY) {
		struct jv *both = jv_array(arena);

		push_all(arena, both, before);
		push_all(arena, both, value);
		value = both;
	}
	jv_set_key(arena, args, key, value);
	return 0;
}

static int add_json(struct arena *arena, struct str text, struct jv *args, struct err *err)
{
	struct jv *value;
	int r = jv_parse(arena, text, &value, err);

	if (r)
		return err_prefix(err, "call: the arguments");
	if (value->type != JV_OBJECT)
		return err_set(err, ERR_INVALID,
			       "call: the arguments must be one JSON object, like {\"path\": \"a.md\"}");
	for (const struct jv_member *m = jv_first(value); m; m = m->next)
		jv_set_key(arena, args, m->key, m->value);
	return 0;
}

static int collect_args(struct cli *cli, const struct jv *schema, struct jv *args, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	int r = 0;

	for (size_t i = 1; i < cli->args.operand_count && r == 0; i++) {
		struct str text = cli->args.operands[i], trimmed = str_trim(text);

		if (str_is(text, "-")) {
			r = input_read(arena, STDIN_FILENO, JSON_LEN_MAX, &text, err);
			if (r)
				return err_prefix(err, "call");
			r = add_json(arena, text, args, err);
		} else if (trimmed.len && (trimmed.ptr[0] == '{' || trimmed.ptr[0] == '[')) {
			r = add_json(arena, text, args, err);
		} else {
			r = add_pair(arena, schema, text, args, err);
		}
	}
	return r;
}

static void report_progress_of(struct cli *cli, const struct tool_info *info)
{
	if (info && info->traits & TOOL_LONG)
		cli_show_progress(cli, "looked at");
}

static int run_call(struct cli *cli, struct err *err)
{
	struct jv *args = jv_object(cli->ctx.arena);
	struct tool_result result;
	const struct tool_info *info;
	struct str dialect = args_get(&cli->args, "dialect");
	bool reads = dialect_traits(dialect, cli->args.operands[0]) & TOOL_READS_ONLY;
	int r = cli_open(cli, reads ? CLI_READS : CLI_SERVES, err);

	if (r == 0)
		r = cli_open_tools(cli, dialect, err);
	if (r)
		return r;
	info = toolset_find(cli->set, cli->args.operands[0]);
	if (info) /* an unknown name fails below, with the nearest one */
		r = collect_args(cli, info->input_schema, args, err);
	report_progress_of(cli, info);
	if (info && info->traits & TOOL_STAYS)
		return err_set(err, ERR_UNSUPPORTED,
			       "what %.*s starts ends with the process that started it, and this process ends now; run "
			       "the command with 'stead exec', or call the tool over 'stead mcp' or 'stead serve'",
			       STR_ARG(info->name));
	if (r == 0)
		r = toolset_call(cli->set, &cli->ctx, cli->args.operands[0], args, &result, err);
	return r ? r : cli_print_result(cli, &result, err);
}

static struct jv *tool_json(struct arena *arena, const struct tool_info *info, bool is_offered)
{
	struct jv *tool = jv_object(arena), *notes = jv_object(arena);

	jv_set_str(arena, tool, "name", info->name);
	jv_set_str(arena, tool, "title", info->title);
	jv_set_str(arena, tool, "description", info->description);
	jv_set(arena, tool, "inputSchema", jv_copy(arena, info->input_schema));
	if (info->output_schema)
		jv_set(arena, tool, "outputSchema", jv_copy(arena, info->output_schema));
	jv_set_bool(arena, notes, "readOnlyHint", info->traits & TOOL_READS_ONLY);
	jv_set_bool(arena, notes, "destructiveHint", info->traits & TOOL_DESTRUCTIVE);
	jv_set_bool(arena, notes, "idempotentHint", info->traits & TOOL_IDEMPOTENT);
	jv_set_bool(arena, notes, "openWorldHint", info->traits & TOOL_OPEN_WORLD);
	jv_set(arena, tool, "annotations", notes);
	jv_set_bool(arena, tool, "offered", is_offered);
	return tool;
}

static bool is_required(const struct jv *schema, struct str key)
{
	for (const struct jv_member *m = jv_first(jv_get(schema, "required")); m; m = m->next)
		if (str_eq(jv_str_of(m->value), key))
			return true;
	return false;
}

/* "* read_file path [offset] [limit]" */
static void print_usage(struct output *out, const struct tool_info *info, bool is_offered)
{
	output_printf(out, "%c ", is_offered ? '*' : ' ');
	output_add(out, output_tone(out, TONE_BOLD));
	output_add(out, info->name);
	output_add(out, output_tone(out, TONE_PLAIN));
	for (int required = 1; required >= 0; required--)
		for (const struct jv_member *m = jv_first(jv_get(info->input_schema, "properties")); m; m = m->next)
			if (is_required(info->input_schema, m->key) == required)
				output_printf(out, required ? " %.*s" : " [%.*s]", STR_ARG(m->key));
	output_add(out, STR("\n"));
}

/* Its usage, and the first sentence about it. */
static void print_tool(struct output *out, const struct tool_info *info, bool is_offered)
{
	size_t end = str_find(info->description, STR(". "), 0), line = str_find_char(info->description, '\n');

	print_usage(out, info, is_offered);
	end = end < line ? end + 1 : line;
	output_printf(out, "    %.*s\n", STR_ARG(str_first(info->description, end)));
}

/* "integer", "list of string", "one of: a, b" */
static void print_type(struct output *out, const struct jv *schema)
{
	const struct jv *words = jv_get(schema, "enum"), *type = jv_get(schema, "type");
	const char *gap = "one of ";

	if (type && str_is(jv_str_of(type), "array")) {
		output_add(out, STR("list of "));
		print_type(out, jv_get(schema, "items"));
		return;
	}
	for (const struct jv_member *m = jv_first(words); m; m = m->next, gap = ", ")
		output_printf(out, "%s%.*s", gap, STR_ARG(jv_str_of(m->value)));
	if (!words)
		output_printf(out, "%.*s", STR_ARG(jv_str_of(type).len ? jv_str_of(type) : STR("anything")));
}

/* The whole description of one tool. */
static void explain_tool(struct output *out, const struct tool_info *info, bool is_offered)
{
	print_usage(out, info, is_offered);
	output_printf(out, "\n%.*s\n", STR_ARG(info->description));
	for (const struct jv_member *m = jv_first(jv_get(info->input_schema, "properties")); m; m = m->next) {
		output_printf(out, "%s  %.*s (", m == jv_first(jv_get(info->input_schema, "properties")) ? "\n" : "",
			      STR_ARG(m->key));
		print_type(out, m->value);
		output_printf(out, "%s)", is_required(info->input_schema, m->key) ? ", required" : "");
		if (jv_get_str(m->value, "description").len)
			output_printf(out, ": %.*s", STR_ARG(jv_get_str(m->value, "description")));
		output_add(out, STR("\n"));
	}
	if (!is_offered)
		output_printf(out, "\nMCP clients get it with --tools default,%.*s.\n", STR_ARG(info->name));
}

static int show_tool(struct cli *cli, const struct toolset *offered, struct err *err)
{
	struct str name = cli->args.operands[0];
	const struct tool_info *info = toolset_find(cli->set, name);
	struct tool_result ignored;

	if (!info) /* fails with the nearest name */
		return toolset_call(cli->set, &cli->ctx, name, NULL, &ignored, err);
	if (args_has(&cli->args, "names"))
		for (const struct jv_member *m = jv_first(jv_get(info->input_schema, "properties")); m; m = m->next)
			output_printf(&cli->out, "%.*s=\n", STR_ARG(m->key));
	else if (!cli_json(cli, tool_json(cli->ctx.arena, info, toolset_find(offered, name))))
		explain_tool(&cli->out, info, toolset_find(offered, name));
	return 0;
}

static void list_tools(struct cli *cli, const struct toolset *offered)
{
	struct jv *list = jv_array(cli->ctx.arena);
	size_t count = toolset_count(cli->set);

	for (size_t i = 0; i < count; i++) {
		const struct tool_info *info = toolset_at(cli->set, i);
		bool is_offered = toolset_find(offered, info->name);

		if (args_has(&cli->args, "names"))
			output_printf(&cli->out, "%.*s\n", STR_ARG(info->name));
		else if (cli->json)
			jv_push(cli->ctx.arena, list, tool_json(cli->ctx.arena, info, is_offered));
		else
			print_tool(&cli->out, info, is_offered);
	}
	if (!args_has(&cli->args, "names") && !cli_json(cli, list))
		output_printf(&cli->out, "\n* %zu of %zu tool%s: what an MCP client gets%s\n", toolset_count(offered),
			      count, count == 1 ? "" : "s",
			      toolset_count(offered) < count ? "; --tools all offers every tool" : "");
}

/* The tools are the same without a workspace. */
static int open_for_tools(struct cli *cli, struct err *err)
{
	int r = cli_open(cli, CLI_READS, err);
	struct workspace_opts opts = {.store_url = STR("memory:"), .create = true};

	if (r != -ERR_NOT_FOUND || cli->ws || cli_setting(cli, "workspace").len)
		return r;
	cli->hint = NULL;
	dialect_opts(cli_setting(cli, "dialect"), &opts);
	return workspace_open(&opts, &cli->ws, err);
}

static int run_tools(struct cli *cli, struct err *err)
{
	struct toolset *offered = NULL;
	int r = open_for_tools(cli, err);

	if (r == 0)
		r = cli_open_tools(cli, args_get(&cli->args, "dialect"), err);
	if (r == 0)
		r = cli_choose_tools(cli, &offered, err);
	if (r == 0 && cli->args.operand_count)
		r = show_tool(cli, offered, err);
	else if (r == 0)
		list_tools(cli, offered);
	toolset_destroy(offered);
	return r;
}

static const struct option tools_options[] = {
	TOOLS_OPTIONS,
	{"names", .help = "print only the names of the tools, or of TOOL's arguments"},
	{0},
};

const struct command tools_commands[] = {
	{"call", "call a tool, as an agent would", TOPIC_TOOLS, "TOOL [KEY=VALUE... | JSON | -]", .run = run_call,
	 .complete = COMPLETE_TOOL,
	 .about = "Arguments are KEY=VALUE pairs, typed by the tool's schema (for a list, give JSON or repeat the\n"
		  "key), or one JSON object, or '-' for a JSON object on standard input. Prints the text that a\n"
		  "model would read, or with --json the structured result.\n",
	 .examples = "stead call write_file path=notes.md content='# Notes'\n  create a file\n"
		     "stead call read_file path=notes.md line_numbers=true\n  read it with line numbers\n"
		     "stead call grep '{\"pattern\": \"budget\", \"include\": [\"*.md\"]}' --json\n"
		     "  arguments as JSON, result as JSON\n"},
	{"tools", "list the tools that agents get", TOPIC_TOOLS, "[TOOL]", .run = run_tools, .options = tools_options,
	 .complete = COMPLETE_TOOL,
	 .about = "Prints the name, arguments (optional ones in brackets) and purpose of each tool. A '*' marks\n"
		  "those that 'stead mcp' offers with the same options. With --json, prints the whole table with\n"
		  "schemas.\n",
	 .examples = "stead tools\n  the native tools\n"
		     "stead tools grep\n  one tool, with its arguments\n"
		     "stead tools --files . --tools default,search\n"
		     "  what a client would get for this directory\n"
		     "stead tools --dialect openpaw\n  another system's tools\n"},
	{0},
};
