/* SPDX-License-Identifier: Apache-2.0 */
/* An answer while it arrives, whatever the protocol: blocks that grow, and their one form at the end. */
#include "base/hex.h"
#include "base/limits.h"
#include "model/model_internal.h"

#define WORD_MAX ((size_t)64) /* of a name or an id, with every provider */

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
			       "the answer of \"%.*s\" has more than %zu MiB, more than %d parts, or parts out of "
			       "order; it is not usable",
			       STR_ARG(s->model->label), MODEL_ANSWER_MAX / MIB, ANSWER_BLOCKS_MAX);
	buf_add(&b->text, text);
	if (s->req->delta && text.len && (b->kind == BLOCK_TEXT || b->kind == BLOCK_THINKING))
		s->req->delta(s->req->arg, b->kind == BLOCK_TEXT ? MODEL_TEXT : MODEL_THINKING, text);
	return 0;
}

/* --- characters in two halves --- */

/* The UTF-16 unit of the escape at `at`; 0: there is no such escape. */
static unsigned unit_at(struct str data, size_t at)
{
	unsigned unit = 0;

	if (at + 6 > data.len || data.ptr[at] != '\\' || data.ptr[at + 1] != 'u')
		return 0;
	for (size_t i = at + 2; i < at + 6; i++) {
		int digit = hex_digit(data.ptr[i]);

		if (digit < 0)
			return 0;
		unit = unit << 4 | (unsigned)digit;
	}
	return unit;
}

static bool is_high(unsigned unit)
{
	return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(unsigned unit)
{
	return unit >= 0xDC00 && unit < 0xE000;
}

/*
 * Servers that cut their text between UTF-16 units put half of a surrogate pair at the end of one delta and the other
 * half at the start of the next. The first half is kept back until the second comes, before anything is parsed: our
 * strings are UTF-8, which has no such halves. Every other half is left for the parser to refuse.
 */
static struct str join_halves(struct answer *s, struct str data)
{
	unsigned first = s->half;
	size_t done = 0, step;
	struct buf joined;

	if (str_find(data, STR("\\ud"), 0) == SIZE_MAX && str_find(data, STR("\\uD"), 0) == SIZE_MAX)
		return data;
	buf_init(&joined, s->arena, data.len * 2);
	for (size_t i = 0; i < data.len; i += step) {
		unsigned unit = unit_at(data, i);

		step = data.ptr[i] != '\\' ? 1 : unit ? 6 : 2;
		if (is_high(unit) && is_low(unit_at(data, i + 6))) {
			step = 12;
		} else if (is_high(unit) && i + 6 < data.len && data.ptr[i + 6] == '"') {
			buf_add(&joined, str_n(data.ptr + done, i - done));
			done = i + 6;
			s->half = unit;
		} else if (is_low(unit) && first && i && data.ptr[i - 1] == '"') {
			buf_add(&joined, str_n(data.ptr + done, i - done));
			buf_printf(&joined, "\\u%04x", first);
			done = i;
		}
	}
	if (done == 0)
		return data;
	buf_add(&joined, str_n(data.ptr + done, data.len - done));
	return buf_str(&joined);
}

int answer_parse(struct answer *s, struct str data, struct jv **ret, struct err *err)
{
	struct err why;

	data = join_halves(s, data);
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

/* The id of the call. Results are told apart by it, so one that an earlier call has, too, gets a number. */
static struct str call_id(const struct answer *s, size_t index)
{
	struct str own = s->blocks[index].id;
	struct str id = own.len ? own : arena_printf(s->arena, "call_%zu", index);

	for (size_t i = 0; i < index; i++)
		if (s->blocks[i].kind == BLOCK_CALL && str_eq(s->blocks[i].id, id)) {
			id = arena_printf(s->arena, "%.*s_%zu", STR_ARG(own), index);
			i = SIZE_MAX; /* the new one may be there as well */
			own = id;
		}
	return s->blocks[index].id = id;
}

static struct jv *call_block(struct arena *arena, const struct block *b, struct str id)
{
	struct jv *v = typed(arena, "tool_use"), *input = NULL;
	struct str text = str_trim(buf_str(&b->text));
	struct err why;

	jv_set_str(arena, v, "id", id);
	jv_set_str(arena, v, "name", b->name);
	if (text.len == 0) {
		const struct jv *whole = jv_get(b->item, "input"); /* some servers give it at once, and no pieces */

		jv_set(arena, v, "input", whole && whole->type == JV_OBJECT ? jv_copy(arena, whole) : jv_object(arena));
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

static struct jv *block_value(struct answer *s, size_t index)
{
	struct arena *arena = s->arena;
	const struct block *b = &s->blocks[index];
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
		return (s->stop == MODEL_CUT || s->stop == MODEL_FULL) && b->open
			       ? NULL
			       : call_block(arena, b, call_id(s, index));
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
		struct jv *v = block_value(s, i);

		if (v)
			jv_push(s->arena, ret->content, v);
	}
}

const char *model_stop_name(enum model_stop stop)
{
	static const char *const names[MODEL_STOPS] = {[MODEL_DONE] = "done",
						       [MODEL_CUT] = "cut",
						       [MODEL_PAUSED] = "paused",
						       [MODEL_REFUSED] = "refused",
						       [MODEL_FULL] = "full"};

	return names[stop];
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

struct str call_word(struct arena *arena, struct str word)
{
	struct str cut = str_first(word, WORD_MAX);
	char *text = (char *)arena_str(arena, cut.len ? cut : STR("unknown")).ptr;
	size_t len = cut.len ? cut.len : strlen("unknown");

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-')
			text[i] = '_';
	}
	return str_n(text, len);
}

uint64_t token_count(const struct jv *usage, const char *key, uint64_t fallback)
{
	int64_t count = jv_get_int(usage, key, -1);

	return count < 0 ? fallback : (uint64_t)count;
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
