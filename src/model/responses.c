/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAI Responses, without state on the server (store: false): the whole conversation is sent each time, with the
 * reasoning items as they came. While the stream runs only the text is taken from it; the answer is what the last event
 * has, which is complete.
 */
#include "base/limits.h"
#include "model/model_internal.h"

static struct jv *item_of(struct arena *arena, const char *type)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "type", str_of(type));
	return v;
}

static void add_text(struct arena *arena, struct jv *list, const char *role, const char *type, struct str text)
{
	struct jv *message = jv_object(arena), *parts = jv_array(arena), *part = item_of(arena, type);

	jv_set_str(arena, part, "text", text);
	jv_push(arena, parts, part);
	jv_set_str(arena, message, "role", str_of(role));
	jv_set(arena, message, "content", parts);
	jv_push(arena, list, message);
}

static void add_image(struct arena *arena, struct jv *list, const struct jv *block)
{
	struct jv *message = jv_object(arena), *parts = jv_array(arena), *part = item_of(arena, "input_image");

	jv_set_str(arena, part, "image_url", image_url(arena, block));
	jv_push(arena, parts, part);
	jv_set_str(arena, message, "role", STR("user"));
	jv_set(arena, message, "content", parts);
	jv_push(arena, list, message);
}

static void add_block(struct arena *arena, struct jv *list, const struct jv *block, const char *role, bool own)
{
	struct str type = jv_get_str(block, "type");
	bool is_user = strcmp(role, "user") == 0;
	struct jv *item;

	if (str_is(type, "text")) {
		add_text(arena, list, role, is_user ? "input_text" : "output_text", jv_get_str(block, "text"));
	} else if (str_is(type, "image")) {
		add_image(arena, list, block);
	} else if (str_is(type, "reasoning") && own) {
		jv_push(arena, list, jv_copy(arena, jv_get(block, "item")));
	} else if (str_is(type, "tool_use")) {
		item = item_of(arena, "function_call");
		jv_set_str(arena, item, "call_id", call_word(arena, jv_get_str(block, "id")));
		jv_set_str(arena, item, "name", call_word(arena, jv_get_str(block, "name")));
		jv_set_str(arena, item, "arguments", call_arguments(arena, block));
		jv_push(arena, list, item);
	} else if (str_is(type, "tool_result")) {
		item = item_of(arena, "function_call_output");
		jv_set_str(arena, item, "call_id", call_word(arena, jv_get_str(block, "tool_use_id")));
		jv_set_str(arena, item, "output", jv_get_str(block, "content"));
		jv_push(arena, list, item);
	}
}

static void write_body(const struct model *m, struct arena *arena, const struct model_request *req, struct buf *out)
{
	struct jv *list = jv_array(arena);
	struct buf system;

	buf_init(&system, arena, JSON_LEN_MAX);
	for (size_t i = 0; i < req->system_count; i++)
		buf_add(&system, req->system[i]);
	for (const struct jv_member *e = jv_first(req->messages); e; e = e->next) {
		bool own = str_is(jv_get_str(e->value, "wire"), wire_responses.name);
		const char *role = str_is(jv_get_str(e->value, "role"), "assistant") ? "assistant" : "user";

		for (const struct jv_member *b = jv_first(jv_get(e->value, "content")); b; b = b->next)
			add_block(arena, list, b->value, role, own);
	}
	buf_lit(out, ",\"store\":false,\"include\":[\"reasoning.encrypted_content\"]");
	if (model_limit(m, req, 0))
		buf_printf(out, ",\"max_output_tokens\":%llu", (unsigned long long)model_limit(m, req, 0));
	if (system.len) {
		buf_lit(out, ",\"instructions\":");
		jv_write_string(out, buf_str(&system));
	}
	if (req->tools.len) {
		buf_lit(out, ",\"tools\":");
		buf_add(out, req->tools);
	}
	buf_lit(out, ",\"input\":");
	jv_write(out, list);
}

static void tool_value(struct arena *arena, const struct model_tool *tool, struct jv *ret)
{
	jv_set_str(arena, ret, "type", STR("function"));
	jv_set_str(arena, ret, "name", tool->name);
	jv_set_str(arena, ret, "description", tool->description);
	jv_set(arena, ret, "parameters", (struct jv *)tool->schema);
	jv_set_bool(arena, ret, "strict", false);
}

/* --- the stream --- */

static int take_item(struct answer *s, const struct jv *item, struct err *err)
{
	struct str type = jv_get_str(item, "type");
	struct block *b;
	int r = 0;

	if (str_is(type, "function_call")) {
		b = answer_block(s, (int64_t)s->count, BLOCK_CALL);
		r = answer_add(s, b, jv_get_str(item, "arguments"), err);
		if (r)
			return r;
		b->id = jv_get_str(item, "call_id");
		b->name = jv_get_str(item, "name");
		b->open = str_is(jv_get_str(item, "status"), "incomplete");
	} else if (str_is(type, "reasoning")) {
		b = answer_block(s, (int64_t)s->count, BLOCK_ITEM);
		r = answer_add(s, b, STR(""), err);
		if (r == 0)
			b->item = item;
	} else if (str_is(type, "message")) {
		for (const struct jv_member *m = jv_first(jv_get(item, "content")); m && r == 0; m = m->next) {
			struct str text = jv_get_str(m->value, "text");

			b = answer_block(s, (int64_t)s->count, BLOCK_TEXT);
			r = answer_add(s, b, text.len ? text : jv_get_str(m->value, "refusal"), err);
		}
	}
	return r;
}

/* The deltas were shown already: the complete text replaces them without a word. */
static int take_whole(struct answer *s, const struct jv *response, struct err *err)
{
	const struct jv *usage = jv_get(response, "usage");
	struct str why = jv_get_str(jv_get(response, "incomplete_details"), "reason");
	struct model_request silent = *s->req;
	const struct model_request *req = s->req;
	int r = 0;

	silent.delta = NULL;
	s->req = &silent;
	s->id = jv_get_str(response, "id");
	for (const struct jv_member *m = jv_first(jv_get(response, "output")); m && r == 0; m = m->next)
		r = take_item(s, m->value, err);
	s->req = req;
	s->usage.input = token_count(usage, "input_tokens", 0);
	s->usage.output = token_count(usage, "output_tokens", 0);
	s->usage.cache_read = token_count(jv_get(usage, "input_tokens_details"), "cached_tokens", 0);
	if (str_is(why, "content_filter"))
		s->stop = MODEL_REFUSED;
	else if (str_is(why, "max_output_tokens") || str_is(jv_get_str(response, "status"), "incomplete"))
		s->stop = MODEL_CUT; /* not every server gives the reason */
	else
		s->stop = MODEL_DONE;
	s->done = true;
	return r;
}

static int take_event(struct answer *s, struct str event, struct str data, struct err *err)
{
	struct jv *v;
	struct str type;
	int r;

	(void)event;
	if (str_is(str_trim(data), "[DONE]"))
		return 0;
	r = answer_parse(s, data, &v, err);
	if (r)
		return r;
	type = jv_get_str(v, "type");
	if (str_is(type, "error"))
		return model_refusal(s->model, s->arena, 0, data, err);
	if (str_is(type, "response.failed")) {
		struct buf text;

		buf_init(&text, s->arena, JSON_LEN_MAX);
		jv_write(&text, jv_get(v, "response"));
		return model_refusal(s->model, s->arena, 0, buf_str(&text), err);
	}
	if (str_is(type, "response.completed") || str_is(type, "response.incomplete"))
		return take_whole(s, jv_get(v, "response"), err);
	if (s->req->delta && (str_is(type, "response.output_text.delta") || str_is(type, "response.refusal.delta")))
		s->req->delta(s->req->arg, MODEL_TEXT, jv_get_str(v, "delta"));
	if (s->req->delta && str_is(type, "response.reasoning_summary_text.delta"))
		s->req->delta(s->req->arg, MODEL_THINKING, jv_get_str(v, "delta"));
	return 0;
}

const struct wire wire_responses = {
	.name = "responses", .path = "/responses", .body = write_body, .tool = tool_value, .event = take_event};
