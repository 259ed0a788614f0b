/* SPDX-License-Identifier: Apache-2.0 */
/* Tools over HTTP: the same set, checks and results as over MCP. What goes wrong in a tool is an HTTP error here. */
#include "base/hex.h"
#include "base/limits.h"
#include "mcp/mcp.h"
#include "server/server_internal.h"
#include "text/jv.h"
#include "tool/family.h"

/* The tools that this token may call. */
static struct toolset *tools_of(const struct web_call *call)
{
	return call->grant.access >= ACCESS_WRITE ? call->tenant->set : call->tenant->reading;
}

static void write_tool(struct buf *b, const struct tool_info *tool, bool brief)
{
	buf_lit(b, "{\"name\":");
	jv_write_string(b, tool->name);
	buf_lit(b, ",\"title\":");
	jv_write_string(b, tool->title);
	buf_lit(b, ",\"description\":");
	jv_write_string(b, tool->description);
	buf_printf(b, ",\"reads_only\":%s,\"destructive\":%s", tool->traits & TOOL_READS_ONLY ? "true" : "false",
		   tool->traits & TOOL_DESTRUCTIVE ? "true" : "false");
	if (!brief) {
		buf_lit(b, ",\"input_schema\":");
		jv_write(b, tool->input_schema);
	}
	if (!brief && tool->output_schema) {
		buf_lit(b, ",\"output_schema\":");
		jv_write(b, tool->output_schema);
	}
	buf_char(b, '}');
}

void run_tools(struct exchange *x)
{
	struct toolset *set = tools_of(call_of(x));
	struct err err = {0};
	bool brief;
	struct buf b;

	if (query_flag(x->arena, x->query, "brief", &brief, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	buf_init(&b, x->arena, JSON_LEN_MAX);
	buf_lit(&b, "{\"tools\":[");
	for (size_t i = 0; i < toolset_count(set); i++) {
		if (i)
			buf_char(&b, ',');
		write_tool(&b, toolset_at(set, i), brief);
	}
	buf_lit(&b, "]}");
	answer_json_text(x, 200, buf_str(&b));
}

/* The sentence is the problem's detail; the lines that a model would get after it are there too. */
static void answer_failure(struct exchange *x, const struct tool_result *result)
{
	struct jv *more = jv_object(x->arena);

	jv_set_str(x->arena, more, "text", result->text);
	if (result->value)
		jv_set(x->arena, more, "result", (struct jv *)result->value);
	answer_problem(x, http_status(result->err.kind), &result->err, more);
}

static void answer_result(struct exchange *x, const struct tool_result *result)
{
	struct buf b;
	struct err err;

	buf_init(&b, x->arena, 4 * JSON_LEN_MAX);
	buf_lit(&b, "{\"text\":");
	jv_write_string(&b, result->text);
	if (result->value) {
		buf_lit(&b, ",\"result\":");
		jv_write(&b, result->value);
	}
	buf_char(&b, '}');
	if (b.overflow) {
		err_set(&err, ERR_TOO_LARGE, "the result is too large to send; ask for less");
		answer_error(x, &err);
	} else {
		answer_json_text(x, 200, buf_str(&b));
	}
}

/* --- routes that are a tool --- */

const struct tool *tool_named(const char *name)
{
	for (size_t i = 0; families[i]; i++)
		for (const struct tool *tool = families[i]->tools; tool && tool->name; tool++)
			if (str_is(str_of(name), tool->name))
				return tool;
	return NULL;
}

int route_status(const struct route *route)
{
	int64_t status = 200;

	str_to_i64(str_first(str_of(route->answers), 3), &status);
	return (int)status;
}

bool exchange_call_tool(struct exchange *x, const char *name, const struct jv *args, const struct jv **ret_result)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct tool_result result = {0};
	struct err err;

	if (toolset_call(tools_of(call), &ctx, str_of(name), args, &result, &err) != 0) {
		answer_error(x, &err);
		return false;
	}
	if (result.is_error) {
		answer_failure(x, &result);
		return false;
	}
	*ret_result = result.value;
	return true;
}

/* A parameter of the query as the type that the tool's schema has for it. */
static int take_query(struct exchange *x, const struct jv *schema, struct str name, struct jv *args, struct err *err)
{
	struct arena *arena = x->arena;
	const char *key = arena_cstr(arena, name);
	const struct jv *property = jv_get(jv_get(schema, "properties"), key);
	struct str type = jv_get_str(property, "type"), text;
	uint64_t number = 0;
	bool found, flag;
	int r = query_get(arena, x->query, key, &text, &found, err);

	if (r || !found)
		return r;
	if (str_is(type, "boolean")) {
		r = query_flag(arena, x->query, key, &flag, err);
		jv_set_bool(arena, args, key, flag);
	} else if (str_is(type, "integer")) {
		r = query_number(arena, x->query, key, INT64_MAX, &number, err);
		jv_set_int(arena, args, key, (int64_t)number);
	} else {
		jv_set_str(arena, args, key, text);
	}
	return r;
}

/* The names of a target are arguments of the same name: {board}, {item}, and one more. */
static void take_target(struct exchange *x, struct jv *args)
{
	struct web_call *call = call_of(x);
	struct str form = str_of(call->route->path), word;
	const char *last = NULL;

	while (str_cut(&form, '/', &word))
		if (word.len > 2 && word.ptr[0] == '{' && !str_is(word, "{workspace}") && !str_is(word, "{board}") &&
		    !str_is(word, "{item}"))
			last = arena_cstr(x->arena, str_n(word.ptr + 1, word.len - 2));
	if (call->board.ptr)
		jv_set_str(x->arena, args, "board", percent_decode(x->arena, call->board));
	if (call->item.ptr)
		jv_set_str(x->arena, args, "item", percent_decode(x->arena, call->item));
	if (last)
		jv_set_str(x->arena, args, last, percent_decode(x->arena, call->rest));
}

void run_tool_route(struct exchange *x)
{
	const struct route *route = call_of(x)->route;
	const struct tool_info *tool = toolset_find(call_of(x)->tenant->set, str_of(route->tool));
	struct str names = str_of(route->query), name;
	struct jv *args = jv_object(x->arena);
	const struct jv *result;
	struct err err;
	int r = tool ? 0
		     : err_set(&err, ERR_DENIED, "the configuration of the workspace denies the tool %s", route->tool);

	if (r == 0 && route->body)
		r = body_json(x, &args, &err);
	while (r == 0 && str_cut(&names, ' ', &name))
		r = take_query(x, tool->input_schema, name, args, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	take_target(x, args);
	if (exchange_call_tool(x, route->tool, args, &result))
		answer_json(x, route_status(route), result);
}

void run_tool_call(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct str name = percent_decode(x->arena, call->rest);
	const struct tool_info *tool = toolset_find(call->tenant->set, name);
	struct tool_result result = {0};
	struct jv *args = NULL;
	struct err err;
	int r = 0;

	if (tool && !(tool->traits & TOOL_READS_ONLY) && call->grant.access < ACCESS_WRITE)
		r = err_set(&err, ERR_DENIED, "the tool %.*s changes something, and this token may only read",
			    STR_ARG(name));
	if (r == 0)
		r = mcp_check_session(call->tenant->set, &ctx, name, &err);
	if (r == 0)
		r = body_json(x, &args, &err);
	if (r == 0)
		r = toolset_call(tools_of(call), &ctx, name, args, &result, &err);
	if (r)
		answer_error(x, &err);
	else if (result.is_error)
		answer_failure(x, &result);
	else
		answer_result(x, &result);
}
