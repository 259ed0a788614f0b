/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anthropic Messages. The order of a request is tools, system, messages, and a cache holds a prefix of it; so there is
 * a breakpoint after each class of the prompt but the last, which changes with each turn, and one on the last message,
 * which moves forward. Four are allowed.
 */
#include "base/limits.h"
#include "model/model_internal.h"

#define MAX_TOKENS_DEFAULT 8192
#define BREAKPOINTS_MAX    4

static void add_cache_mark(struct arena *arena, struct jv *block)
{
	struct jv *mark = jv_object(arena);

	jv_set_str(arena, mark, "type", STR("ephemeral"));
	jv_set(arena, block, "cache_control", mark);
}

static void write_system(struct arena *arena, const struct model_request *req, struct buf *out)
{
	struct jv *parts = jv_array(arena);

	for (size_t i = 0; i < req->system_count; i++) {
		struct jv *part = jv_object(arena);

		if (req->system[i].len == 0)
			continue;
		jv_set_str(arena, part, "type", STR("text"));
		jv_set_str(arena, part, "text", req->system[i]);
		if (i + 1 < req->system_count && i + 1 < BREAKPOINTS_MAX)
			add_cache_mark(arena, part);
		jv_push(arena, parts, part);
	}
	if (jv_count(parts)) {
		buf_lit(out, ",\"system\":");
		jv_write(out, parts);
	}
}

/* False: a block that this protocol does not have, or that came over another one. */
static bool is_sendable(const struct jv *block, bool own)
{
	struct str type = jv_get_str(block, "type");

	if (str_is(type, "thinking"))
		return own && jv_get_str(block, "signature").len;
	if (str_is(type, "redacted_thinking"))
		return own;
	return !str_is(type, "reasoning");
}

static struct jv *clean_block(struct arena *arena, const struct jv *block)
{
	static const char *const words[] = {"id", "name", "tool_use_id"};
	struct jv *copy = jv_copy(arena, block);

	jv_remove(copy, "input_text");
	jv_remove(copy, "input_error");
	for (size_t i = 0; i < COUNT(words); i++)
		if (jv_get(block, words[i]))
			jv_set_str(arena, copy, words[i], call_word(arena, jv_get_str(block, words[i])));
	return copy;
}

static void write_messages(struct arena *arena, const struct jv *messages, struct buf *out)
{
	struct jv *list = jv_array(arena), *last = NULL;

	for (const struct jv_member *e = jv_first(messages); e; e = e->next) {
		bool own = str_is(jv_get_str(e->value, "wire"), wire_anthropic.name);
		struct jv *message = jv_object(arena), *content = jv_array(arena);

		for (const struct jv_member *b = jv_first(jv_get(e->value, "content")); b; b = b->next)
			if (is_sendable(b->value, own))
				jv_push(arena, content, last = clean_block(arena, b->value));
		if (jv_count(content) == 0)
			continue;
		jv_set_str(arena, message, "role", jv_get_str(e->value, "role"));
		jv_set(arena, message, "content", content);
		jv_push(arena, list, message);
	}
	if (last)
		add_cache_mark(arena, last);
	buf_lit(out, ",\"messages\":");
	jv_write(out, list);
}

static void write_body(const struct model *m, struct arena *arena, const struct model_request *req, struct buf *out)
{
	buf_printf(out, ",\"max_tokens\":%llu", (unsigned long long)model_limit(m, req, MAX_TOKENS_DEFAULT));
	write_system(arena, req, out);
	if (req->tools.len) {
		buf_lit(out, ",\"tools\":");
		buf_add(out, req->tools);
	}
	write_messages(arena, req->messages, out);
}

static void tool_value(struct arena *arena, const struct model_tool *tool, struct jv *ret)
{
	jv_set_str(arena, ret, "name", tool->name);
	jv_set_str(arena, ret, "description", tool->description);
	jv_set(arena, ret, "input_schema", (struct jv *)tool->schema);
}

/* --- the stream --- */

static int take_start(struct answer *s, const struct jv *event, struct err *err)
{
	static const struct {
		const char *type;
		enum block_kind kind;
	} kinds[] = {{"text", BLOCK_TEXT},
		     {"thinking", BLOCK_THINKING},
		     {"redacted_thinking", BLOCK_REDACTED},
		     {"tool_use", BLOCK_CALL}};
	const struct jv *block = jv_get(event, "content_block");
	struct str type = jv_get_str(block, "type");
	enum block_kind kind = BLOCK_REDACTED; /* what is not known is kept and sent back as it came */
	struct block *b;

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (str_is(type, kinds[i].type))
			kind = kinds[i].kind;
	b = answer_block(s, jv_get_int(event, "index", (int64_t)s->count), kind);
	if (!b)
		return answer_add(s, NULL, STR_NONE, err);
	b->id = jv_get_str(block, "id");
	b->name = jv_get_str(block, "name");
	b->item = block;
	return answer_add(s, b, kind == BLOCK_TEXT ? jv_get_str(block, "text") : jv_get_str(block, "thinking"), err);
}

static int take_delta(struct answer *s, const struct jv *event, struct err *err)
{
	const struct jv *delta = jv_get(event, "delta");
	int64_t index = jv_get_int(event, "index", (int64_t)s->count - 1);
	struct block *b = index >= 0 && (uint64_t)index < s->count ? &s->blocks[index] : NULL;
	struct str type = jv_get_str(delta, "type");

	if (!b)
		return 0;
	if (str_is(type, "text_delta"))
		return answer_add(s, b, jv_get_str(delta, "text"), err);
	if (str_is(type, "thinking_delta"))
		return answer_add(s, b, jv_get_str(delta, "thinking"), err);
	if (str_is(type, "input_json_delta"))
		return answer_add(s, b, jv_get_str(delta, "partial_json"), err);
	if (str_is(type, "signature_delta"))
		buf_add(&b->signature, jv_get_str(delta, "signature"));
	return 0;
}

static void take_usage(struct answer *s, const struct jv *usage)
{
	struct model_usage *u = &s->usage;
	uint64_t plain = u->input - u->cache_read - u->cache_write;

	plain = token_count(usage, "input_tokens", plain);
	u->cache_read = token_count(usage, "cache_read_input_tokens", u->cache_read);
	u->cache_write = token_count(usage, "cache_creation_input_tokens", u->cache_write);
	u->output = token_count(usage, "output_tokens", u->output);
	u->input = plain + u->cache_read + u->cache_write;
}

static enum model_stop stop_of(struct str reason)
{
	return str_is(reason, "max_tokens")                      ? MODEL_CUT
	       : str_is(reason, "pause_turn")                    ? MODEL_PAUSED
	       : str_is(reason, "refusal")                       ? MODEL_REFUSED
	       : str_is(reason, "model_context_window_exceeded") ? MODEL_FULL
								 : MODEL_DONE;
}

static int take_event(struct answer *s, struct str event, struct str data, struct err *err)
{
	struct jv *v;
	struct str type;
	int r = answer_parse(s, data, &v, err);

	(void)event; /* the data has it too */
	if (r)
		return r;
	type = jv_get_str(v, "type");
	if (str_is(type, "content_block_start"))
		return take_start(s, v, err);
	if (str_is(type, "content_block_delta"))
		return take_delta(s, v, err);
	if (str_is(type, "error"))
		return model_refusal(s->model, s->arena, 0, data, err);
	if (str_is(type, "message_start")) {
		s->id = jv_get_str(jv_get(v, "message"), "id");
		take_usage(s, jv_get(jv_get(v, "message"), "usage"));
	} else if (str_is(type, "content_block_stop")) {
		int64_t index = jv_get_int(v, "index", -1);

		if (index >= 0 && (uint64_t)index < s->count)
			s->blocks[index].open = false;
	} else if (str_is(type, "message_delta")) {
		struct str reason = jv_get_str(jv_get(v, "delta"), "stop_reason");

		if (reason.len)
			s->stop = stop_of(reason);
		take_usage(s, jv_get(v, "usage"));
	} else if (str_is(type, "message_stop")) {
		s->done = true;
	}
	return 0;
}

const struct wire wire_anthropic = {
	.name = "anthropic", .path = "/messages", .body = write_body, .tool = tool_value, .event = take_event};
