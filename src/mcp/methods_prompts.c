/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prompts: texts that a person chooses in a client. The families have them: the assembled prompt of the workspace, and
 * one for each skill.
 */
#include "mcp/server.h"
#include "tool/family.h"

#define TTL_PROMPTS_MS 5000

static struct call call_of(struct request *req, struct ctx *ctx)
{
	struct server *s = req->server;

	*ctx = request_ctx(req);
	return (struct call){.ctx = ctx, .ws = s->ws, .files = workspace_files(s->ws), .set = s->set};
}

void method_prompts_list(struct request *req)
{
	struct jv *result = jv_object(req->arena), *list = jv_array(req->arena);
	struct ctx ctx;
	struct call call = call_of(req, &ctx);
	struct err err;

	for (size_t i = 0; families[i]; i++)
		if (families[i]->list_prompts && families[i]->list_prompts(&call, list, &err)) {
			reply_error(req, RPC_INTERNAL, NULL, "%s", err.msg);
			return;
		}
	jv_set(req->arena, result, "prompts", list);
	reply_cache_hint(req, result, TTL_PROMPTS_MS);
	reply_value(req, result);
}

/* From the family that has a prompt of this name. */
static int find_prompt(struct call *call, struct str name, struct str *ret_text, struct err *err)
{
	int r = err_set(err, ERR_NOT_FOUND, "there are no prompts");

	for (size_t i = 0; r == -ERR_NOT_FOUND && families[i]; i++)
		if (families[i]->get_prompt)
			r = families[i]->get_prompt(call, name, ret_text, err);
	return r;
}

void method_prompts_get(struct request *req)
{
	struct arena *arena = req->arena;
	struct jv *result = jv_object(arena), *list = jv_array(arena), *message = jv_object(arena),
		  *content = jv_object(arena);
	struct str name = jv_get_str(req->params, "name"), text;
	struct ctx ctx;
	struct call call = call_of(req, &ctx);
	struct err err;
	int r = find_prompt(&call, name, &text, &err);

	if (r) {
		reply_error(req, r == -ERR_NOT_FOUND ? RPC_INVALID_PARAMS : RPC_INTERNAL, NULL,
			    "there is no prompt \"%.*s\"; prompts/list has their names",
			    STR_ARG(utf8_first(name, 100)));
		return;
	}
	jv_set_str(arena, content, "type", STR("text"));
	jv_set_str(arena, content, "text", text);
	jv_set_str(arena, message, "role", STR("user"));
	jv_set(arena, message, "content", content);
	jv_push(arena, list, message);
	jv_set(arena, result, "messages", list);
	reply_value(req, result);
}
