/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays over HTTP: what the body asks for. agent.yaml decides where keys and conversations are sent and what that may
 * cost, so a client chooses among the models that it names; only a client with admin access may name another one. A
 * recording is a file of the host, so nobody names one that agent.yaml does not.
 */
#include "agent/replay.h"
#include "base/hex.h"
#include "base/limits.h"
#include "model/model.h"
#include "server/server_internal.h"

#define FROM_MAX  1000000
#define BODY_FORM "{\"from\": 3, \"model\": \"…\", \"prompt\": \"…\", \"set_result\": {\"2.1\": \"…\"}}"

static int bad_body(struct err *err)
{
	return err_set(err, ERR_INVALID, "the body must be " BODY_FORM ", with each member optional and no others");
}

static int check_model(struct exchange *x, struct str model, struct err *err)
{
	struct web_call *call = call_of(x);
	struct str provider, name;

	if (agent_names_model(call->tenant->ws, model))
		return 0;
	if (!model_split(model, &provider, &name))
		return err_set(err, ERR_INVALID, "the model \"%.*s\" does not have the form PROVIDER:MODEL",
			       STR_ARG(utf8_first(model, 100)));
	if (call->grant.access < ACCESS_ADMIN || str_is(provider, "replay"))
		return err_set(
			err, ERR_DENIED,
			"agent.yaml does not name the model \"%.*s\"; choose one from its model and model.fallback%s",
			STR_ARG(utf8_first(model, 100)),
			str_is(provider, "replay") ? "" : ", or use a token with admin access");
	return 0;
}

static int take_outputs(struct exchange *x, const struct jv *given, struct replay_opts *opts, struct err *err)
{
	struct replay_output *outputs = ARENA_ARRAY(x->arena, struct replay_output, jv_count(given) + 1);

	if (given->type != JV_OBJECT)
		return bad_body(err);
	for (const struct jv_member *m = jv_first(given); m; m = m->next) {
		if (m->value->type != JV_STR || !replay_place_parse(m->key, &outputs[opts->output_count]))
			return err_set(err, ERR_INVALID,
				       "set_result: \"%.*s\" does not name a result, or its value is not text; write "
				       "{\"STEP\": \"…\"} or {\"STEP.CALL\": \"…\"}",
				       STR_ARG(utf8_first(m->key, 100)));
		if (m->value->u.s.len > TOOL_TEXT_MAX)
			return err_set(err, ERR_TOO_LARGE, "set_result: the result of %.*s has more than %zu KiB",
				       STR_ARG(utf8_first(m->key, 100)), TOOL_TEXT_MAX / KIB);
		outputs[opts->output_count++].text = m->value->u.s;
	}
	opts->outputs = outputs;
	return 0;
}

static int take_member(struct exchange *x, const struct jv_member *m, struct replay_opts *opts, struct err *err)
{
	bool is_text = m->value->type == JV_STR;

	if (str_is(m->key, "set_result"))
		return take_outputs(x, m->value, opts, err);
	if (str_is(m->key, "from") && m->value->type == JV_INT && m->value->u.i >= 1 && m->value->u.i <= FROM_MAX) {
		opts->from = (uint64_t)m->value->u.i;
	} else if (str_is(m->key, "model") && is_text) {
		opts->model = m->value->u.s;
		return opts->model.len ? check_model(x, opts->model, err) : 0;
	} else if (str_is(m->key, "prompt") && is_text) {
		opts->prompt = m->value->u.s;
		if (opts->prompt.len > PROMPT_FILE_MAX)
			return err_set(err, ERR_TOO_LARGE, "prompt has more than %zu KiB", PROMPT_FILE_MAX / KIB);
	} else {
		return bad_body(err);
	}
	return 0;
}

void run_session_replay(struct exchange *x)
{
	struct replay_opts *opts = ARENA_NEW(x->arena, struct replay_opts);
	struct jv *body;
	struct err err;
	int r = body_json(x, &body, &err);

	opts->session = percent_decode(x->arena, call_of(x)->rest);
	for (const struct jv_member *m = r ? NULL : jv_first(body); m && r == 0; m = m->next)
		r = take_member(x, m, opts, &err);
	if (r)
		answer_error(x, &err);
	else
		start_replay(x, opts);
}
