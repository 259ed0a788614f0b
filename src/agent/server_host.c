/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an MCP server may ask while one of its tools runs, if tools.json lets it. A question to the model (sampling)
 * goes to the model of the turn: policy decides about it under the name <server>__sampling, the limits of spend hold,
 * and its tokens count for the turn. A question to the person (elicitation) goes through the door of approvals; nobody
 * there means that the server gets no answer, since its call cannot be suspended. Both are in the log.
 */
#include "agent/agent_internal.h"
#include "agent/policy.h"
#include "base/clock.h"
#include "mcp/client.h"

/* --- the model --- */

static struct jv *text_block(struct arena *arena, struct str text)
{
	struct jv *block = jv_object(arena);

	jv_set_str(arena, block, "type", STR("text"));
	jv_set_str(arena, block, "text", text);
	return block;
}

static void add_block(struct arena *arena, struct jv *content, const struct jv *block)
{
	struct jv *image, *source;

	if (str_is(jv_get_str(block, "type"), "text")) {
		jv_push(arena, content, text_block(arena, jv_get_str(block, "text")));
	} else if (str_is(jv_get_str(block, "type"), "image")) {
		image = jv_object(arena);
		source = jv_object(arena);
		jv_set_str(arena, source, "type", STR("base64"));
		jv_set_str(arena, source, "media_type", jv_get_str(block, "mimeType"));
		jv_set_str(arena, source, "data", jv_get_str(block, "data"));
		jv_set_str(arena, image, "type", STR("image"));
		jv_set(arena, image, "source", source);
		jv_push(arena, content, image);
	}
}

/* The server's conversation in the form of model.h. */
static struct jv *messages_of(struct arena *arena, const struct jv *params)
{
	struct jv *list = jv_array(arena);

	for (const struct jv_member *m = jv_first(jv_get(params, "messages")); m; m = m->next) {
		struct jv *message = jv_object(arena), *content = jv_array(arena);
		const struct jv *given = jv_get(m->value, "content");
		bool answers = str_is(jv_get_str(m->value, "role"), "assistant");

		if (given && given->type == JV_ARRAY)
			for (const struct jv_member *b = jv_first(given); b; b = b->next)
				add_block(arena, content, b->value);
		else
			add_block(arena, content, given);
		jv_set_str(arena, message, "role", answers ? STR("assistant") : STR("user"));
		jv_set(arena, message, "content", content);
		if (jv_count(content))
			jv_push(arena, list, message);
	}
	return list;
}

static struct str answer_text(struct arena *arena, const struct jv *content)
{
	struct buf text;

	buf_init(&text, arena, TOOL_TEXT_MAX);
	for (const struct jv_member *b = jv_first(content); b; b = b->next)
		if (str_is(jv_get_str(b->value, "type"), "text"))
			buf_add(&text, jv_get_str(b->value, "text"));
	return text.len ? buf_str(&text) : STR("");
}

/* What was asked and what it cost; the turn counts it. */
static void note_sampling(struct run *run, struct str server, const struct model_answer *answer)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "sampling");

	jv_set_str(arena, entry, "server", arena_str(arena, server));
	jv_set_str(arena, entry, "model", arena_str(arena, model_label(run_model(run)->model)));
	jv_set_str(arena, entry, "text", arena_str(arena, answer_text(arena, answer->content)));
	jv_set(arena, entry, "usage", usage_value(arena, &answer->usage));
	journal_queue(run, entry);
}

/* Whether policy, and the person if it says so, let the server ask. */
static int pass(struct server_host *h, struct ctx *ctx, const char *what, const struct jv *params, struct err *err)
{
	struct run *run = h->run;
	struct str name = arena_printf(ctx->arena, "%.*s__%s", STR_ARG(h->server), what);
	struct tool_info info = {.name = name, .traits = TOOL_OPEN_WORLD};
	struct gate gate = gates_decide(run->agent->gates, &info, h->server, params);
	struct agent_event event = {.kind = AGENT_ASK, .text = gate.rule, .name = name, .input = params};

	if (gate.effect == GATE_ALLOW)
		return 0;
	if (gate.effect == GATE_ASK && run->in->approve &&
	    run->in->approve(run->in->arg, &event, gates_wait_ns(run->agent->gates)) == AGENT_YES)
		return 0;
	return err_set(err, ERR_DENIED, "%.*s is not allowed (%.*s)", STR_ARG(name), STR_ARG(gate.rule));
}

static int sample(struct server_host *h, struct ctx *ctx, const struct jv *params, struct jv **ret, struct err *err)
{
	struct run *run = h->run;
	struct arena *arena = ctx->arena;
	const struct agent_model *model = run_model(run);
	struct str system = jv_get_str(params, "systemPrompt");
	int64_t most = jv_get_int(params, "maxTokens", 0);
	struct model_request request = {.system = &system,
					.system_count = system.len ? 1 : 0,
					.max_tokens = most > 0 ? (uint64_t)most : 0,
					.messages = messages_of(arena, params)};
	struct model_answer answer;
	int r = pass(h, ctx, "sampling", params, err);

	if (r == 0 && str_is(str_of(model_wire(model->model)), "replay"))
		r = err_set(err, ERR_UNSUPPORTED, "a recording can answer only its own conversation");
	if (r == 0 && !jv_count(request.messages))
		r = err_set(err, ERR_INVALID, "there is no message to answer");
	if (r == 0)
		r = spend_check(run, err);
	if (r == 0)
		r = model_ask(model->model, ctx, &request, &answer, err);
	if (r)
		return r;
	spend_price(&model->prices, &answer.usage);
	note_sampling(run, h->server, &answer);
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "role", STR("assistant"));
	jv_set(arena, *ret, "content", text_block(arena, answer_text(arena, answer.content)));
	jv_set_str(arena, *ret, "model", model_label(model->model));
	jv_set_str(arena, *ret, "stopReason", answer.stop == MODEL_CUT ? STR("maxTokens") : STR("endTurn"));
	return 0;
}

/* --- the person --- */

/* Name of a value that the form needs and nobody gave; ptr NULL: it is complete. */
static struct str missing(const struct jv *schema, const struct jv *values)
{
	for (const struct jv_member *m = jv_first(jv_get(schema, "required")); m; m = m->next)
		if (!jv_get_key(values, jv_str_of(m->value)))
			return jv_str_of(m->value);
	return STR_NONE;
}

static void note_form(struct run *run, struct str server, struct str message, const char *action)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "elicitation");

	jv_set_str(arena, entry, "server", arena_str(arena, server));
	jv_set_str(arena, entry, "message", arena_str(arena, utf8_first(message, 1000)));
	jv_set_str(arena, entry, "action", str_of(action));
	journal_queue(run, entry);
}

static enum agent_verdict ask_person(struct server_host *h, struct ctx *ctx, const struct jv *params,
				     struct jv **ret_values)
{
	const struct agent_turn *in = h->run->in;
	const struct jv *schema = jv_get(params, "requestedSchema");
	struct jv *shown = jv_object(ctx->arena), *given = NULL;
	struct agent_event event = {.kind = AGENT_ASK,
				    .text = jv_get_str(params, "message"),
				    .name = arena_printf(ctx->arena, "%.*s__elicitation", STR_ARG(h->server)),
				    .input = shown};
	enum agent_verdict verdict = AGENT_LATER;

	jv_set_str(ctx->arena, shown, "message", jv_get_str(params, "message"));
	jv_set(ctx->arena, shown, "values", mcp_form_values(ctx->arena, schema, NULL));
	if (in->fill)
		verdict = in->fill(in->arg, &event, schema, ctx->arena, &given);
	else if (in->approve)
		verdict = in->approve(in->arg, &event, gates_wait_ns(h->run->agent->gates));
	*ret_values = mcp_form_values(ctx->arena, schema, given);
	return verdict == AGENT_YES && missing(schema, *ret_values).len ? AGENT_NO : verdict;
}

static int elicit(struct server_host *h, struct ctx *ctx, const struct jv *params, struct jv **ret)
{
	static const char *const actions[] = {[AGENT_LATER] = "cancel", [AGENT_YES] = "accept", [AGENT_NO] = "decline"};
	struct tool_info info = {.name = arena_printf(ctx->arena, "%.*s__elicitation", STR_ARG(h->server)),
				 .traits = TOOL_OPEN_WORLD};
	enum agent_verdict verdict = AGENT_NO;
	struct jv *values = NULL;

	if (gates_decide(h->run->agent->gates, &info, h->server, params).effect != GATE_DENY)
		verdict = ask_person(h, ctx, params, &values);
	note_form(h->run, h->server, jv_get_str(params, "message"), actions[verdict]);
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "action", str_of(actions[verdict]));
	if (verdict == AGENT_YES)
		jv_set(ctx->arena, *ret, "content", values);
	return 0;
}

/* --- as a host --- */

static int host_ask(void *arg, struct ctx *ctx, struct str method, const struct jv *params, struct jv **ret,
		    struct err *err)
{
	return str_is(method, "sampling/createMessage") ? sample(arg, ctx, params, ret, err)
							: elicit(arg, ctx, params, ret);
}

static void host_progress(void *arg, struct str sentence)
{
	struct server_host *h = arg;
	struct arena *arena = h->run->ctx->arena;
	struct agent_event event = {.kind = AGENT_NOTE,
				    .text = arena_printf(arena, "%.*s: %.*s", STR_ARG(h->server), STR_ARG(sentence))};

	if (h->run->in->event)
		h->run->in->event(h->run->in->arg, &event);
}

struct mcp_host server_host(struct server_host *own)
{
	return (struct mcp_host){.ask = host_ask, .progress = host_progress, .arg = own};
}
