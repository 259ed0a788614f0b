/* SPDX-License-Identifier: Apache-2.0 */
/* An answer while it arrives, whatever the protocol: blocks that grow, and their one form at the end. */
#include "base/limits.h"
#include "model/model_internal.h"

struct block *answer_block(struct answer *s, int64_t index, enum block_kind kind)
{
	if (index < 0 || (uint64_t)index > s->count || index >= ANSWER_BLOCKS_MAX)
		return NULL;
	if ((uint64_t)index < s->count)
		return &s->blocks[index];
	ARENA_ROOM(s->arena, s->blocks, s->count, s->cap);
	s->blocks[s->count] = (struct block){.kind = kind, .open = true};
	buf_init(&s->blocks[s->count].text, s->arena, MODEL_ANSWER_MAX);
	buf_init(&s->blocks[s->count].signature, s->arena, MODEL_ANSWER_MAX);
	return &s->blocks[s->count++];
}

struct block *answer_last(struct answer *s, enum block_kind kind)
{
	if (s->count && s->blocks[s->count - 1].kind == kind)
		return &s->blocks[s->count - 1];
	return answer_block(s, (int64_t)s->count, kind);
}

int answer_add(struct answer *s, struct block *b, struct str text, struct err *err)
{
	s->bytes += text.len;
	if (!b || s->bytes > MODEL_ANSWER_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the answer of \"%.*s\" has more than %zu MiB or %d parts; it is not usable",
			       STR_ARG(s->model->label), MODEL_ANSWER_MAX / MIB, ANSWER_BLOCKS_MAX);
	buf_add(&b->text, text);
	if (s->req->delta && text.len && (b->kind == BLOCK_TEXT || b->kind == BLOCK_THINKING))
		s->req->delta(s->req->arg, b->kind == BLOCK_TEXT ? MODEL_TEXT : MODEL_THINKING, text);
	return 0;
}

int answer_parse(struct answer *s, struct str data, struct jv **ret, struct err *err)
{
	struct err why;

	if (jv_parse(s->arena, data, ret, &why) == 0 && (*ret)->type == JV_OBJECT)
		return 0;
	err_set(err, ERR_UNAVAILABLE, "the stream of \"%.*s\" has an event that is not JSON", STR_ARG(s->model->label));
	err->retryable = true;
	return -ERR_UNAVAILABLE;
}

static struct jv *typed(struct arena *arena, const char *type)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "type", str_of(type));
	return v;
}

static struct jv *call_block(struct arena *arena, const struct block *b, size_t index)
{
	struct jv *v = typed(arena, "tool_use"), *input = NULL;
	struct str text = str_trim(buf_str(&b->text));
	struct err why;

	jv_set_str(arena, v, "id", b->id.len ? b->id : arena_printf(arena, "call_%zu", index));
	jv_set_str(arena, v, "name", b->name);
	if (text.len == 0) {
		jv_set(arena, v, "input", jv_object(arena));
	} else if (jv_parse(arena, text, &input, &why) == 0 && input->type == JV_OBJECT) {
		jv_set(arena, v, "input", input);
	} else {
		jv_set(arena, v, "input", jv_object(arena));
		jv_set_str(arena, v, "input_text", text);
		jv_set_str(arena, v, "input_error",
			   input ? STR("the arguments are not an object") : err_text(arena, &why));
	}
	return v;
}

static struct jv *block_value(struct answer *s, const struct block *b, size_t index)
{
	struct arena *arena = s->arena;
	struct jv *v = NULL;

	switch (b->kind) {
	case BLOCK_TEXT:
		if (b->text.len == 0)
			return NULL; /* an empty text must not be sent back */
		v = typed(arena, "text");
		jv_set_str(arena, v, "text", buf_str(&b->text));
		return v;
	case BLOCK_THINKING:
		v = typed(arena, "thinking");
		jv_set_str(arena, v, "thinking", b->text.len ? buf_str(&b->text) : STR(""));
		if (b->signature.len)
			jv_set_str(arena, v, "signature", buf_str(&b->signature));
		return v;
	case BLOCK_REDACTED:
		return jv_copy(arena, b->item);
	case BLOCK_CALL:
		/* Cut off in the middle of its arguments: it must not run. */
		return s->stop == MODEL_CUT && b->open ? NULL : call_block(arena, b, index);
	case BLOCK_ITEM:
		v = typed(arena, "reasoning");
		jv_set(arena, v, "item", jv_copy(arena, b->item));
		return v;
	}
	return v;
}

void answer_finish(struct answer *s, struct model_answer *ret)
{
	*ret = (struct model_answer){.content = jv_array(s->arena), .stop = s->stop, .usage = s->usage, .id = s->id};
	for (size_t i = 0; i < s->count; i++) {
		struct jv *v = block_value(s, &s->blocks[i], i);

		if (v)
			jv_push(s->arena, ret->content, v);
	}
}

struct str blocks_text(struct arena *arena, const struct jv *content, const char *type)
{
	struct buf text;

	buf_init(&text, arena, JSON_LEN_MAX);
	for (const struct jv_member *m = jv_first(content); m; m = m->next) {
		if (!str_is(jv_get_str(m->value, "type"), type))
			continue;
		if (text.len)
			buf_char(&text, '\n');
		buf_add(&text, jv_get_str(m->value, "text"));
	}
	return text.len ? buf_str(&text) : STR("");
}

struct str call_arguments(struct arena *arena, const struct jv *block)
{
	const struct jv *input = jv_get(block, "input");
	struct buf text;

	if (jv_get_str(block, "input_text").len)
		return jv_get_str(block, "input_text");
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, input ? input : jv_object(arena));
	return buf_str(&text);
}

struct str image_url(struct arena *arena, const struct jv *block)
{
	const struct jv *source = jv_get(block, "source");

	if (jv_get_str(source, "url").len)
		return jv_get_str(source, "url");
	return arena_printf(arena, "data:%.*s;base64,%.*s", STR_ARG(jv_get_str(source, "media_type")),
			    STR_ARG(jv_get_str(source, "data")));
}
