/* SPDX-License-Identifier: Apache-2.0 */
/* Tools over HTTP: the same set, checks and results as over MCP. What goes wrong in a tool is an HTTP error here. */
#include "base/hex.h"
#include "base/limits.h"
#include "server/server_internal.h"
#include "text/jv.h"

/* The tools that this token may call. */
static struct toolset *tools_of(const struct web_call *call)
{
	return call->grant.access >= ACCESS_WRITE ? call->tenant->set : call->tenant->reading;
}

static void write_tool(struct buf *b, const struct tool_info *tool)
{
	buf_lit(b, "{\"name\":");
	jv_write_string(b, tool->name);
	buf_lit(b, ",\"title\":");
	jv_write_string(b, tool->title);
	buf_lit(b, ",\"description\":");
	jv_write_string(b, tool->description);
	buf_printf(b, ",\"reads_only\":%s,\"destructive\":%s,\"input_schema\":",
		   tool->traits & TOOL_READS_ONLY ? "true" : "false",
		   tool->traits & TOOL_DESTRUCTIVE ? "true" : "false");
	jv_write(b, tool->input_schema);
	if (tool->output_schema) {
		buf_lit(b, ",\"output_schema\":");
		jv_write(b, tool->output_schema);
	}
	buf_char(b, '}');
}

void run_tools(struct exchange *x)
{
	struct toolset *set = tools_of(call_of(x));
	struct buf b;

	buf_init(&b, x->arena, JSON_LEN_MAX);
	buf_lit(&b, "{\"tools\":[");
	for (size_t i = 0; i < toolset_count(set); i++) {
		if (i)
			buf_char(&b, ',');
		write_tool(&b, toolset_at(set, i));
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
