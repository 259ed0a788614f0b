/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAI Chat Completions, the protocol that every local server speaks, each with small differences: a tool call may
 * come whole or in pieces, with or without an index or an id, and the stated reason for the end may not mention it. So
 * the presence of calls decides, and nothing is sent that was not asked for.
 */
#include "base/limits.h"
#include "model/model_internal.h"

static struct jv *message_of(struct arena *arena, const char *role)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "role", str_of(role));
	return v;
}

static void add_system(struct arena *arena, const struct model_request *req, struct jv *list)
{
	struct jv *message = message_of(arena, "system");
	struct buf text;

	buf_init(&text, arena, JSON_LEN_MAX);
	for (size_t i = 0; i < req->system_count; i++)
		buf_add(&text, req->system[i]);
	if (text.len == 0)
		return;
	jv_set_str(arena, message, "content", buf_str(&text));
	jv_push(arena, list, message);
}

static void add_assistant(struct arena *arena, const struct jv *content, struct jv *list)
{
	struct jv *message = message_of(arena, "assistant"), *calls = jv_array(arena);
	struct str text = blocks_text(arena, content, "text");

	for (const struct jv_member *b = jv_first(content); b; b = b->next) {
		struct jv *call, *function;

		if (!str_is(jv_get_str(b->value, "type"), "tool_use"))
			continue;
		call = jv_object(arena);
		function = jv_object(arena);
		jv_set_str(arena, function, "name", call_word(arena, jv_get_str(b->value, "name")));
		jv_set_str(arena, function, "arguments", call_arguments(arena, b->value));
		jv_set_str(arena, call, "id", jv_get_str(b->value, "id"));
		jv_set_str(arena, call, "type", STR("function"));
		jv_set(arena, call, "function", function);
		jv_push(arena, calls, call);
	}
	if (!text.len && !jv_count(calls))
		return;
	jv_set(arena, message, "content", text.len ? jv_str(arena, text) : jv_null(arena));
	if (jv_count(calls))
		jv_set(arena, message, "tool_calls", calls);
	jv_push(arena, list, message);
}

static struct jv *part_of(struct arena *arena, const struct jv *block)
{
	struct jv *part = jv_object(arena), *url;

	if (str_is(jv_get_str(block, "type"), "text")) {
		jv_set_str(arena, part, "type", STR("text"));
		jv_set_str(arena, part, "text", jv_get_str(block, "text"));
		return part;
	}
	url = jv_object(arena);
	jv_set_str(arena, url, "url", image_url(arena, block));
	jv_set_str(arena, part, "type", STR("image_url"));
	jv_set(arena, part, "image_url", url);
	return part;
}

/* Results are messages of their own, and come first; there is no flag for an error, so the text says it. */
static void add_user(struct arena *arena, const struct jv *content, struct jv *list)
{
	struct jv *parts = jv_array(arena), *message;
	bool text_only = true;

	for (const struct jv_member *b = jv_first(content); b; b = b->next) {
		struct str type = jv_get_str(b->value, "type");

		if (str_is(type, "tool_result")) {
			struct jv *result = message_of(arena, "tool");

			jv_set_str(arena, result, "tool_call_id", jv_get_str(b->value, "tool_use_id"));
			jv_set_str(arena, result, "content", jv_get_str(b->value, "content"));
			jv_push(arena, list, result);
		} else if (str_is(type, "text") || str_is(type, "image")) {
			text_only &= str_is(type, "text");
			jv_push(arena, parts, part_of(arena, b->value));
		}
	}
	if (jv_count(parts) == 0)
		return;
	message = message_of(arena, "user");
	if (text_only) /* some servers take nothing else */
		jv_set_str(arena, message, "content", blocks_text(arena, content, "text"));
	else
		jv_set(arena, message, "content", parts);
	jv_push(arena, list, message);
}

static void write_body(const struct model *m, struct arena *arena, const struct model_request *req, struct buf *out)
{
	struct jv *list = jv_array(arena);

	add_system(arena, req, list);
	for (const struct jv_member *e = jv_first(req->messages); e; e = e->next)
		if (str_is(jv_get_str(e->value, "role"), "assistant"))
			add_assistant(arena, jv_get(e->value, "content"), list);
		else
			add_user(arena, jv_get(e->value, "content"), list);
	buf_lit(out, ",\"stream_options\":{\"include_usage\":true}");
	if (model_limit(m, req, 0))
		buf_printf(out, ",\"%s\":%llu", m->first_party ? "max_completion_tokens" : "max_tokens",
			   (unsigned long long)model_limit(m, req, 0));
	if (req->tools.len) {
		buf_lit(out, ",\"tools\":");
		buf_add(out, req->tools);
	}
	buf_lit(out, ",\"messages\":");
	jv_write(out, list);
}

static void tool_value(struct arena *arena, const struct model_tool *tool, struct jv *ret)
{
	struct jv *function = jv_object(arena);

	jv_set_str(arena, function, "name", tool->name);
	jv_set_str(arena, function, "description", tool->description);
	jv_set(arena, function, "parameters", (struct jv *)tool->schema);
	jv_set_str(arena, ret, "type", STR("function"));
	jv_set(arena, ret, "function", function);
}

/* --- the stream --- */

/* The block of the `index`-th call; calls follow each other, whatever text came between. */
static struct block *call_at(struct answer *s, int64_t index)
{
	int64_t seen = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->blocks[i].kind == BLOCK_CALL && seen++ == index)
			return &s->blocks[i];
	return seen == index ? answer_block(s, (int64_t)s->count, BLOCK_CALL) : NULL;
}

static int64_t count_calls(const struct answer *s)
{
	int64_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->blocks[i].kind == BLOCK_CALL;
	return count;
}

/* A text in pieces; some servers give an object, at once. */
static struct str arguments_of(struct arena *arena, const struct jv *function)
{
	const struct jv *arguments = jv_get(function, "arguments");
	struct buf text;

	if (jv_is_null(arguments) || arguments->type == JV_STR)
		return jv_get_str(function, "arguments");
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, arguments);
	return buf_str(&text);
}

static int take_call(struct answer *s, const struct jv *call, struct err *err)
{
	const struct jv *function = jv_get(call, "function");
	int64_t known = count_calls(s);
	/* Without an index: a piece with a name begins the next call, one without continues with the last. */
	int64_t fallback = jv_get_str(function, "name").len || known == 0 ? known : known - 1;
	struct block *b = call_at(s, jv_get_int(call, "index", fallback));

	if (!b)
		return answer_add(s, NULL, STR_NONE, err);
	if (jv_get_str(call, "id").len)
		b->id = jv_get_str(call, "id");
	if (jv_get_str(function, "name").len)
		b->name = jv_get_str(function, "name");
	if (!b->id.len)
		b->id = arena_printf(s->arena, "call_%lld", (long long)count_calls(s));
	return answer_add(s, b, arguments_of(s->arena, function), err);
}

static int take_choice(struct answer *s, const struct jv *choice, struct err *err)
{
	const struct jv *delta = jv_get(choice, "delta");
	struct str text = jv_get_str(delta, "content"), reason = jv_get_str(choice, "finish_reason");
	struct str thought = jv_get_str(delta, "reasoning_content");
	int r = 0;

	if (!thought.len)
		thought = jv_get_str(delta, "reasoning");
	if (!text.len)
		text = jv_get_str(delta, "refusal");
	if (thought.len)
		r = answer_add(s, answer_last(s, BLOCK_THINKING), thought, err);
	if (r == 0 && text.len)
		r = answer_add(s, answer_last(s, BLOCK_TEXT), text, err);
	for (const struct jv_member *m = jv_first(jv_get(delta, "tool_calls")); m && r == 0; m = m->next)
		r = take_call(s, m->value, err);
	if (reason.len) {
		s->done = true;
		s->stop = str_is(reason, "length")           ? MODEL_CUT
			  : str_is(reason, "content_filter") ? MODEL_REFUSED
							     : MODEL_DONE;
		for (size_t i = 0; i < s->count && s->stop != MODEL_CUT; i++)
			s->blocks[i].open = false;
	}
	return r;
}

static void take_usage(struct answer *s, const struct jv *usage)
{
	s->usage.input = token_count(usage, "prompt_tokens", 0);
	s->usage.output = token_count(usage, "completion_tokens", 0);
	s->usage.cache_read = token_count(jv_get(usage, "prompt_tokens_details"), "cached_tokens", 0);
}

static int take_event(struct answer *s, struct str event, struct str data, struct err *err)
{
	struct jv *v;
	int r;

	(void)event;
	if (str_is(str_trim(data), "[DONE]"))
		return 0;
	r = answer_parse(s, data, &v, err);
	if (r)
		return r;
	if (!jv_is_null(jv_get(v, "error")))
		return model_refusal(s->model, s->arena, 0, data, err);
	if (jv_get_str(v, "id").len)
		s->id = jv_get_str(v, "id");
	if (jv_first(jv_get(v, "choices")))
		r = take_choice(s, jv_first(jv_get(v, "choices"))->value, err);
	if (!jv_is_null(jv_get(v, "usage")))
		take_usage(s, jv_get(v, "usage"));
	return r;
}

const struct wire wire_chat = {
	.name = "chat", .path = "/chat/completions", .body = write_body, .tool = tool_value, .event = take_event};
