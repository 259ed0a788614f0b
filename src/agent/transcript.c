/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of a session's log: how far the last turn came, the conversation as a model gets it, and the steps of a turn
 * for people. A log may have been written by other runtimes too; what does not fit is passed over, and what is sent
 * always has one result for each call, in the message after it.
 */
#include "agent/agent_internal.h"
#include "base/limits.h"

static bool is_type(const struct jv *entry, const char *type)
{
	return str_is(jv_get_str(entry, "type"), type);
}

static bool is_message(const struct jv *entry, const char *role)
{
	return is_type(entry, "message") && str_is(jv_get_str(entry, "role"), role);
}

static void take_answer(struct turn_state *s, const struct jv *entry)
{
	s->answer = entry;
	s->answers++;
	s->call_count = 0;
	for (const struct jv_member *b = jv_first(jv_get(entry, "content")); b; b = b->next)
		if (is_type(b->value, "tool_use") && s->call_count < AGENT_CALLS_MAX)
			s->calls[s->call_count++] = (struct wanted_call){.block = b->value};
}

/* The first call of that id that still lacks one: a model may use an id twice. */
static void take_call_entry(struct turn_state *s, const struct jv *entry, bool is_result)
{
	struct str id = jv_get_str(entry, "toolCallId");

	for (size_t i = 0; i < s->call_count; i++) {
		const struct jv **slot = is_result ? &s->calls[i].result : &s->calls[i].intent;

		if (str_eq(jv_get_str(s->calls[i].block, "id"), id) && !*slot) {
			*slot = entry;
			return;
		}
	}
}

void transcript_state(const struct jv *entries, struct turn_state *ret)
{
	*ret = (struct turn_state){0};
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		const struct jv *e = m->value;

		if (ret->message && str_eq(jv_get_str(e, "undone"), jv_get_str(ret->message, "turn")))
			ret->end = e; /* taken back: it does not continue */
		if (!jv_get_str(e, "turn").len)
			continue; /* another runtime's */
		if (is_message(e, "user"))
			*ret = (struct turn_state){.message = e};
		else if (is_type(e, "compaction") && !ret->message)
			*ret = (struct turn_state){.message = e, .answers = (uint64_t)jv_get_int(e, "steps", 0)};
		else if (is_message(e, "assistant"))
			take_answer(ret, e);
		else if (is_type(e, "tool_use"))
			take_call_entry(ret, e, false);
		else if (is_type(e, "tool_result"))
			take_call_entry(ret, e, true);
		else if (is_type(e, "turn"))
			ret->end = e;
	}
}

struct str transcript_said(const struct jv *message)
{
	struct str text = jv_get_str(message, "text");

	return text.len ? text : jv_get_str(message, "content");
}

const struct jv *transcript_compaction(const struct jv *entries)
{
	const struct jv *last = NULL;

	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (is_type(m->value, "compaction"))
			last = m->value;
	return last;
}

uint64_t transcript_answers(const struct jv *entries, struct str model)
{
	uint64_t count = 0;

	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (is_message(m->value, "assistant") && str_eq(jv_get_str(m->value, "model"), model))
			count = (uint64_t)jv_get_int(m->value, "number", (int64_t)count + 1);
	return count;
}

/* --- for the model --- */

struct making {
	struct arena *arena;
	struct jv *list, *message; /* the last of the list; NULL: none */
	struct jv *open;           /* ids of calls of the last answer that have no result yet */
	struct jv *pictures;       /* of the results of the last answer; NULL: they are left out */
	struct jv *begun;          /* members: ids of those of them whose call was begun */
};

static struct jv *content_of(struct making *m, const char *role)
{
	if (!m->message || !str_is(jv_get_str(m->message, "role"), role)) {
		m->message = jv_object(m->arena);
		jv_set_str(m->arena, m->message, "role", str_of(role));
		jv_set(m->arena, m->message, "content", jv_array(m->arena));
		jv_push(m->arena, m->list, m->message);
	}
	return (struct jv *)jv_get(m->message, "content");
}

static void add_text(struct making *m, const char *role, struct str text)
{
	struct jv *block = jv_object(m->arena);

	if (!text.len)
		return;
	jv_set_str(m->arena, block, "type", STR("text"));
	jv_set_str(m->arena, block, "text", text);
	jv_push(m->arena, content_of(m, role), block);
}

/* After the results: nothing may come between those, and not every provider takes a picture in one. */
static void add_pictures(struct making *m)
{
	for (const struct jv_member *p = m->pictures ? jv_first(m->pictures) : NULL; p; p = p->next) {
		struct jv *block = jv_object(m->arena), *source = jv_object(m->arena);

		jv_set_str(m->arena, source, "type", STR("base64"));
		jv_set_str(m->arena, source, "media_type", jv_get_str(p->value, "media_type"));
		jv_set_str(m->arena, source, "data", jv_get_str(p->value, "data"));
		jv_set_str(m->arena, block, "type", STR("image"));
		jv_set(m->arena, block, "source", source);
		add_text(m, "user", arena_printf(m->arena, "[%.*s:]", STR_ARG(jv_get_str(p->value, "name"))));
		jv_push(m->arena, content_of(m, "user"), block);
	}
	if (m->pictures)
		m->pictures = jv_array(m->arena);
}

static void add_result(struct making *m, struct str id, struct str text, bool is_error)
{
	struct jv *block = jv_object(m->arena);

	jv_set_str(m->arena, block, "type", STR("tool_result"));
	jv_set_str(m->arena, block, "tool_use_id", id);
	jv_set_str(m->arena, block, "content", text);
	if (is_error)
		jv_set_bool(m->arena, block, "is_error", true);
	jv_push(m->arena, content_of(m, "user"), block);
}

static struct str why_open(struct making *m, struct str id, size_t index)
{
	if (jv_get_key(m->begun, id))
		return STR("the outcome is unknown: the turn was ended during this call, and it may or may not have "
			   "taken effect");
	if (index >= AGENT_CALLS_MAX)
		return arena_printf(m->arena,
				    "this call was not made: one answer may have at most %d calls; ask for it again",
				    AGENT_CALLS_MAX);
	return STR("this call was not made: the turn had ended");
}

/* A turn that ended before its calls ran: the model must not find a call without a result. */
static void close_calls(struct making *m)
{
	size_t index = 0;

	for (const struct jv_member *id = jv_first(m->open); id; id = id->next, index++)
		if (id->value->type == JV_STR)
			add_result(m, id->value->u.s, why_open(m, id->value->u.s, index), true);
	m->open = NULL;
	add_pictures(m);
}

static void add_answer(struct making *m, const struct jv *entry)
{
	const struct jv *content = jv_get(entry, "content");

	close_calls(m);
	if (!m->message || str_is(jv_get_str(entry, "stop"), "refused"))
		return; /* a conversation begins with the user; a refused answer is not sent back */
	if (!content || content->type != JV_ARRAY) {
		add_text(m, "assistant", jv_str_of(content));
		return;
	}
	if (str_is(jv_get_str(m->message, "role"), "assistant"))
		m->message = NULL; /* another answer, perhaps over another protocol */
	m->open = jv_array(m->arena);
	m->begun = jv_object(m->arena);
	for (const struct jv_member *b = jv_first(content); b; b = b->next) {
		jv_push(m->arena, content_of(m, "assistant"), b->value);
		if (is_type(b->value, "tool_use"))
			jv_push(m->arena, m->open, jv_str(m->arena, jv_get_str(b->value, "id")));
	}
	if (m->message && jv_get_str(entry, "wire").len)
		jv_set_str(m->arena, m->message, "wire", jv_get_str(entry, "wire"));
}

static void take_result(struct making *m, const struct jv *entry)
{
	struct str id = jv_get_str(entry, "toolCallId");

	for (const struct jv_member *o = jv_first(m->open); o; o = o->next)
		if (o->value->type == JV_STR && str_eq(o->value->u.s, id)) {
			*o->value = (struct jv){.type = JV_NULL};
			add_result(m, id, jv_get_str(entry, "output"), jv_get_bool(entry, "is_error", false));
			if (m->pictures && jv_get(entry, "picture"))
				jv_push(m->arena, m->pictures, (struct jv *)jv_get(entry, "picture"));
			return;
		}
}

static void add_user(struct making *m, const struct jv *entry)
{
	const struct jv *content = jv_get(entry, "content");

	close_calls(m);
	if (content && content->type == JV_ARRAY) {
		for (const struct jv_member *b = jv_first(content); b; b = b->next)
			jv_push(m->arena, content_of(m, "user"), b->value);
		return;
	}
	add_text(m, "user", jv_str_of(content));
}

struct jv *transcript_undone(struct arena *arena, const struct jv *entries)
{
	struct jv *turns = jv_object(arena);

	for (const struct jv_member *e = jv_first(entries); e; e = e->next)
		if (is_type(e->value, "undone"))
			jv_set_key(arena, turns, jv_get_str(e->value, "undone"), jv_bool(arena, true));
		else if (is_type(e->value, "redone"))
			jv_remove(turns, arena_cstr(arena, jv_get_str(e->value, "redone")));
	return turns;
}

uint64_t transcript_turns(struct arena *arena, const struct jv *entries, const struct jv *until)
{
	const struct jv *undone = transcript_undone(arena, entries);
	uint64_t count = (uint64_t)jv_get_int(transcript_compaction(entries), "turns", 0);

	for (const struct jv_member *m = jv_first(entries); m && m->value != until; m = m->next)
		count += is_type(m->value, "turn") && !jv_get_key(undone, jv_get_str(m->value, "turn"));
	return count;
}

bool transcript_has_pictures(const struct jv *entries)
{
	const struct jv_member *m = jv_first(entries);

	while (m && !jv_get(m->value, "picture"))
		m = m->next;
	return m;
}

struct jv *transcript_messages(struct arena *arena, const struct jv *entries, bool shows_pictures)
{
	struct making m = {
		.arena = arena, .list = jv_array(arena), .pictures = shows_pictures ? jv_array(arena) : NULL};
	struct str summary = jv_get_str(transcript_compaction(entries), "summary");
	const struct jv *undone = transcript_undone(arena, entries);

	if (summary.len)
		add_text(&m, "user",
			 arena_printf(arena,
				      "<summary_of_earlier_conversation>\n%.*s\n</summary_of_earlier_conversation>",
				      STR_ARG(summary)));
	for (const struct jv_member *e = jv_first(entries); e; e = e->next) {
		if (jv_get_key(undone, jv_get_str(e->value, "turn")))
			continue;
		if (is_message(e->value, "user") || is_type(e->value, "notice"))
			add_user(&m, e->value);
		else if (is_message(e->value, "assistant"))
			add_answer(&m, e->value);
		else if (is_type(e->value, "tool_use") && m.begun)
			jv_set_key(arena, m.begun, jv_get_str(e->value, "toolCallId"), jv_bool(arena, true));
		else if (is_type(e->value, "tool_result"))
			take_result(&m, e->value);
	}
	close_calls(&m);
	return m.list;
}

/* --- for people --- */

struct str transcript_text(struct arena *arena, const struct jv *answer)
{
	return session_entry_text(arena, answer);
}

struct jv *usage_value(struct arena *arena, const struct model_usage *usage)
{
	struct jv *v = jv_object(arena);

	jv_set_int(arena, v, "input_tokens", (int64_t)usage->input);
	jv_set_int(arena, v, "output_tokens", (int64_t)usage->output);
	if (usage->cache_read)
		jv_set_int(arena, v, "cache_read_tokens", (int64_t)usage->cache_read);
	if (usage->cache_write)
		jv_set_int(arena, v, "cache_write_tokens", (int64_t)usage->cache_write);
	if (usage->cost_usd > 0)
		jv_set(arena, v, "cost_usd", jv_real(arena, usage->cost_usd));
	return v;
}

static void add_usage(struct model_usage *sum, const struct jv *usage)
{
	sum->input += (uint64_t)jv_get_int(usage, "input_tokens", 0);
	sum->output += (uint64_t)jv_get_int(usage, "output_tokens", 0);
	sum->cache_read += (uint64_t)jv_get_int(usage, "cache_read_tokens", 0);
	sum->cache_write += (uint64_t)jv_get_int(usage, "cache_write_tokens", 0);
	sum->cost_usd += settings_real(jv_get(usage, "cost_usd"), 0);
}

struct model_usage transcript_usage(const struct jv *entries, struct str turn)
{
	struct model_usage sum = {0};

	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "turn"), turn))
			add_usage(&sum, jv_get(m->value, "usage"));
	return sum;
}

static struct jv *step_value(struct arena *arena, const struct jv *answer)
{
	struct jv *step = jv_object(arena), *calls = jv_array(arena);
	struct str text = transcript_text(arena, answer);

	jv_set_int(arena, step, "step", jv_get_int(answer, "step", 0));
	jv_set_str(arena, step, "model", jv_get_str(answer, "model"));
	if (text.len)
		jv_set_str(arena, step, "text", text);
	for (const struct jv_member *b = jv_first(jv_get(answer, "content")); b; b = b->next) {
		struct jv *call;

		if (!is_type(b->value, "tool_use"))
			continue;
		call = jv_object(arena);
		jv_set_str(arena, call, "id", jv_get_str(b->value, "id"));
		jv_set_str(arena, call, "name", jv_get_str(b->value, "name"));
		jv_set(arena, call, "input", (struct jv *)jv_get(b->value, "input"));
		jv_push(arena, calls, call);
	}
	if (jv_count(calls))
		jv_set(arena, step, "calls", calls);
	if (jv_get(answer, "usage"))
		jv_set(arena, step, "usage", (struct jv *)jv_get(answer, "usage"));
	return step;
}

static void give_result(struct arena *arena, struct jv *step, const struct jv *entry)
{
	for (const struct jv_member *c = jv_first(jv_get(step, "calls")); c; c = c->next)
		if (str_eq(jv_get_str(c->value, "id"), jv_get_str(entry, "toolCallId")) &&
		    !jv_get(c->value, "output")) {
			jv_set_str(arena, c->value, "output", jv_get_str(entry, "output"));
			jv_set_bool(arena, c->value, "is_error", jv_get_bool(entry, "is_error", false));
			return;
		}
}

struct jv *transcript_steps(struct arena *arena, const struct jv *entries, struct str turn, struct model_usage *ret_sum,
			    uint64_t *ret_calls)
{
	struct jv *steps = jv_array(arena), *step = NULL;

	*ret_sum = (struct model_usage){0};
	*ret_calls = 0;
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		if (!str_eq(jv_get_str(m->value, "turn"), turn))
			continue;
		if (is_message(m->value, "assistant")) {
			step = step_value(arena, m->value);
			jv_push(arena, steps, step);
			add_usage(ret_sum, jv_get(m->value, "usage"));
			++*ret_calls;
		} else if (is_type(m->value, "tool_result")) {
			give_result(arena, step, m->value);
		} else if (is_type(m->value, "compaction")) {
			add_usage(ret_sum, jv_get(m->value, "usage"));
		}
	}
	return steps;
}
