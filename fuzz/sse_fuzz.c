/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model's server may send. The bytes go through the parser of event streams, whole and in pieces, and both must
 * give the same events; then the events go to each protocol, whose answer must be blocks that can be written and read
 * again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "model/model_internal.h"
#include "net/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static int note_event(void *arg, const struct sse_event *event, struct err *err)
{
	(void)err;
	buf_printf(arg, "%zu %zu %zu ", event->event.len, event->data.len, event->id.len);
	buf_add(arg, event->data);
	return 0;
}

static void check_cuts(struct arena *arena, struct str bytes)
{
	struct buf whole, pieces;
	struct sse sse;
	struct err err;

	buf_init(&whole, arena, SIZE_MAX / 2);
	buf_init(&pieces, arena, SIZE_MAX / 2);
	sse_init(&sse, note_event, &whole);
	require(sse_feed(&sse, bytes, &err) == 0);
	sse_release(&sse);
	sse_init(&sse, note_event, &pieces);
	for (size_t i = 0; i < bytes.len; i += 3)
		require(sse_feed(&sse, str_first(str_from(bytes, i), 3), &err) == 0);
	sse_release(&sse);
	require(str_eq(buf_str(&whole), buf_str(&pieces)));
}

static int take_event(void *arg, const struct sse_event *event, struct err *err)
{
	struct answer *a = arg;

	return a->model->wire->event(a, event->event, event->data, err);
}

static void check_wire(struct arena *arena, const struct wire *wire, struct str bytes)
{
	struct model model = {.wire = wire, .label = STR("fuzz:model"), .set.api_key = STR("secret")};
	struct model_request request = {0};
	struct answer answer = {.arena = arena, .model = &model, .req = &request};
	struct model_answer made;
	struct jv *again;
	struct buf text;
	struct sse sse;
	struct err err;

	sse_init(&sse, take_event, &answer);
	if (sse_feed(&sse, bytes, &err) != 0)
		require(!err_mentions(&err, "secret"));
	sse_release(&sse);
	answer_finish(&answer, &made);
	buf_init(&text, arena, SIZE_MAX / 2);
	jv_write(&text, made.content);
	require(jv_parse(arena, buf_str(&text), &again, &err) == 0 && again->type == JV_ARRAY);
	for (const struct jv_member *m = jv_first(again); m; m = m->next)
		require(jv_get_str(m->value, "type").len > 0 || !wire->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wire *const wires[] = {&wire_anthropic, &wire_chat, &wire_responses};

	for (size_t i = 0; i < COUNT(wires); i++) {
		ARENA_SCOPE struct arena *arena = arena_new();

		if (i == 0)
			check_cuts(arena, str_n(data, size));
		check_wire(arena, wires[i], str_n(data, size));
	}
	return 0;
}
