/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agent.yaml and the command line say about the agent. A key is taken from the workspace's .env or from the
 * environment, never from the text of agent.yaml: that is a file with a history, and people share it.
 */
#include <math.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/limits.h"
#include "text/dotenv.h"

#define RETRIES 4

double settings_real(const struct jv *number, double fallback)
{
	return !number ? fallback : number->type == JV_INT ? (double)number->u.i : number->u.d;
}

int64_t settings_ns(const struct jv *seconds, double fallback)
{
	double s = settings_real(seconds, fallback);

	return (int64_t)((s < 1e6 ? s : 1e6) * (double)NS_PER_S);
}

bool settings_is_for_runtimes(struct str tool)
{
	static const char *const names[] = {"session_append", "session_state", "session_archive", "assemble_prompt",
					    "park_result"};

	for (size_t i = 0; i < COUNT(names); i++)
		if (str_is(tool, names[i]))
			return true;
	return false;
}

static struct prices read_prices(const struct jv *price)
{
	double input = settings_real(jv_get(price, "input"), 0);

	return (struct prices){.input = input,
			       .output = settings_real(jv_get(price, "output"), 0),
			       .cache_read = settings_real(jv_get(price, "cache_read"), input),
			       .cache_write = settings_real(jv_get(price, "cache_write"), input)};
}

int settings_var(struct workspace *ws, struct arena *arena, const char *name, struct str *ret, struct err *err)
{
	struct ctx ctx = {.arena = arena};
	struct str text = STR_NONE;
	struct jv *vars = NULL;
	int r = store_read(workspace_home(ws), &ctx, (struct wpath){STR(".env")}, STORE_WHOLE, ENV_LEN_MAX, &text, NULL,
			   err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (r == 0 && dotenv_parse(arena, text, &vars, err) != 0)
		return err_in_file(err, ".env");
	*ret = jv_get_str(vars, name);
	if (!ret->len)
		*ret = str_of(env_get(workspace_env(ws), name));
	return 0;
}

/* The model's section of agent.yaml, in its one form. */
static int read_section(const struct jv *model, struct model_settings *set, struct err *err)
{
	const struct jv *key = jv_get(model, "api_key");
	struct str name = model && model->type == JV_STR ? model->u.s : jv_get_str(model, "model");
	struct str provider = jv_get_str(model, "provider");

	if (!model)
		return 0;
	if (key && !key->from_env)
		return err_set(
			err, ERR_INVALID,
			"agent.yaml: model.api_key must not be written here; write ${NAME} and set NAME in .env");
	if (provider.len) {
		set->provider = provider;
		set->name = name;
	} else if (!model_split(name, &set->provider, &set->name)) {
		return err_set(err, ERR_INVALID, "agent.yaml: model must have the form provider:model");
	}
	set->base_url = jv_get_str(model, "base_url");
	set->api_key = jv_str_of(key);
	return 0;
}

static void read_numbers(const struct jv *model, struct model_settings *set)
{
	set->max_tokens = (uint64_t)jv_get_int(model, "max_tokens", 0);
	set->temperature = settings_real(jv_get(model, "temperature"), NAN);
	set->top_p = settings_real(jv_get(model, "top_p"), NAN);
	set->options = jv_get(model, "options");
}

/* A provider other than agent.yaml's gets neither its key nor its address. */
static int take_opts(const struct agent_opts *opts, struct model_settings *set, struct err *err)
{
	struct str provider, name;

	if (opts->model.len) {
		if (!model_split(opts->model, &provider, &name))
			return err_set(err, ERR_INVALID, "the model \"%.*s\" does not have the form PROVIDER:MODEL",
				       STR_ARG(utf8_first(opts->model, 100)));
		if (!str_eq(provider, set->provider))
			set->api_key = set->base_url = STR_NONE;
		set->provider = provider;
		set->name = name;
	}
	if (opts->base_url.len) {
		set->base_url = opts->base_url;
		set->api_key = STR_NONE;
	}
	if (!set->provider.len)
		return err_set(
			err, ERR_INVALID,
			"no model is chosen; write \"model: anthropic:claude-sonnet-4-5\" into agent.yaml, or use "
			"--model PROVIDER:MODEL");
	return 0;
}

int settings_model(struct workspace *ws, const struct agent_opts *opts, struct model **ret, struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct jv *model = jv_get(workspace_config(ws)->document, "model");
	struct model_settings set = {.temperature = NAN, .top_p = NAN, .retries = RETRIES};
	const char *key_name;
	int r = read_section(model, &set, err);

	if (r == 0 && model && model->type == JV_OBJECT)
		read_numbers(model, &set);
	if (r == 0)
		r = take_opts(opts, &set, err);
	if (r)
		return r;
	key_name = model_key_name(set.provider);
	if (key_name && !set.api_key.len)
		r = settings_var(ws, arena, key_name, &set.api_key, err);
	return r ? r : model_open(&set, ret, err);
}

/* A limit in dollars counts with prices: without one it would hold nothing back. Models that need no key cost nothing.
 */
static int check_price(const struct agent *agent, const struct model *model, const struct jv *price, struct err *err)
{
	const struct jv *spend = jv_get(workspace_config(agent->ws)->document, "spend");
	struct str label = model_label(model), provider, name;

	if (price || (!jv_get(spend, "max_usd_per_run") && !jv_get(spend, "max_usd_per_day")) ||
	    !model_split(label, &provider, &name) || !model_key_name(provider))
		return 0;
	return err_set(err, ERR_INVALID,
		       "the spend limit in agent.yaml is in US dollars, and the price of \"%.*s\" is not known; add "
		       "\"price\" to the model, with 0 if it costs nothing",
		       STR_ARG(utf8_first(label, 100)));
}

static int add_model(struct agent *agent, const struct agent_opts *opts, const struct jv *price, struct err *err)
{
	struct agent_model *m = &agent->models[agent->model_count];
	int r = settings_model(agent->ws, opts, &m->model, err);

	if (r)
		return r;
	m->prices = read_prices(price);
	agent->model_count++;
	return check_price(agent, m->model, price, err);
}

/* Whether a section of agent.yaml, or one of its fallbacks, is about the model "provider:name". */
static bool is_about(const struct jv *section, struct str provider, struct str name)
{
	struct model_settings set = {0};
	struct err ignored;

	return section && read_section(section, &set, &ignored) == 0 && str_eq(set.provider, provider) &&
	       str_eq(set.name, name);
}

/* What agent.yaml says about a model; NULL: it does not name it. */
static const struct jv *find_section(const struct jv *model, struct str wanted)
{
	struct str provider, name;

	if (!model_split(wanted, &provider, &name))
		return NULL;
	if (is_about(model, provider, name))
		return model;
	for (const struct jv_member *m = jv_first(jv_get(model, "fallback")); m; m = m->next)
		if (is_about(m->value, provider, name))
			return m->value;
	return NULL;
}

bool agent_names_model(struct workspace *ws, struct str model)
{
	return find_section(jv_get(workspace_config(ws)->document, "model"), model) != NULL;
}

int settings_models(struct agent *agent, const struct agent_opts *opts, struct err *err)
{
	const struct jv *model = jv_get(workspace_config(agent->ws)->document, "model");
	bool is_configured = !opts->model.len; /* a model that was chosen has no substitutes */
	const struct jv *section = is_configured ? model : find_section(model, opts->model);
	const struct jv_member *m = is_configured ? jv_first(jv_get(model, "fallback")) : NULL;
	struct agent_opts first = *opts;
	int r;

	if (section && section != model && !first.base_url.len)
		first.base_url = jv_get_str(section, "base_url");
	r = add_model(agent, &first, jv_get(section, "price"), err);

	for (; m && r == 0 && agent->model_count < AGENT_MODELS_MAX; m = m->next) {
		struct agent_opts other = {.model = m->value->type == JV_STR ? m->value->u.s
									     : jv_get_str(m->value, "model"),
					   .base_url = jv_get_str(m->value, "base_url")};

		r = add_model(agent, &other, jv_get(m->value, "price"), err);
		if (r)
			r = err_prefix(err, "agent.yaml: model.fallback");
	}
	return r;
}
