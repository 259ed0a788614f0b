/* SPDX-License-Identifier: Apache-2.0 */
/* Costs, limits of what is spent, and models that are asked in place of others. */
#include "agent/agent_fix.h"
#include "agent/agent_internal.h"

static void configure(struct bench *b, const char *model, struct str file, const char *rest)
{
	struct err err;
	struct str text = arena_printf(b->arena, "model:\n  model: \"%.*s\"\n%s%s", STR_ARG(file), model, rest);

	CHECK_OK(store_write(workspace_home(b->ws), &b->ctx, (struct wpath){STR("agent.yaml")}, text,
			     (struct store_cond){0}, NULL, &err),
		 err);
	bench_reopen(b, (struct workspace_opts){0}, "");
}

static const char *const two_steps[] = {"[" CALL("a", "ls", "{}") "]", "'done'", "'more'", NULL};

TEST(costs_are_counted_by_the_prices_of_the_model)
{
	struct agent_result result;
	struct jv *sum;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	configure(&b, "  price: {input: 1000, output: 100000}\n", recording(b.arena, two_steps), "");
	CHECK_OK(say(&b, STR_NONE, "Go", &result, &err), err);
	CHECK(result.usage.cost_usd > 0.2199 && result.usage.cost_usd < 0.2201); /* 2 × (10 × 0.001 + 1 × 0.1) */
	CHECK_OK(usage_sum(b.ws, &b.ctx, STR_NONE, 0, &sum, &err), err);
	CHECK_INT((int)(jv_get(sum, "cost_usd")->u.d * 1000 + 0.5), 220);
}

TEST(what_was_cached_has_its_own_price)
{
	struct prices prices = {.input = 10, .output = 0, .cache_read = 1, .cache_write = 20};
	struct model_usage usage = {.input = 600000, .output = 5, .cache_read = 300000, .cache_write = 100000};

	spend_price(&prices, &usage);
	CHECK_INT((int)(usage.cost_usd * 10 + 0.5), 43); /* 0.2 × 10 + 0.3 × 1 + 0.1 × 20 */
}

TEST(a_limit_of_a_run_or_a_day_ends_the_turn)
{
	static const struct {
		const char *model, *rest;
		unsigned turns; /* that succeed */
	} cases[] = {
		{"", "spend:\n  max_tokens_per_run: 11\n", 0},
		{"", "spend:\n  max_tokens_per_run: 22\n", 2},
		{"", "spend:\n  max_tokens_per_day: 22\n", 1},
		{"  price: {input: 1000}\n", "spend:\n  max_usd_per_run: 0.01\n", 0},
		{"  price: {input: 1000}\n", "spend:\n  max_usd_per_day: 0.02\n", 1},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct agent_result result;
		struct bench b;
		struct err err;
		unsigned turns = 0;

		bench_open_disk(&b, "");
		configure(&b, cases[i].model, recording(b.arena, two_steps), cases[i].rest);
		while (turns < 2 && say(&b, STR_NONE, turns ? "Again" : "Go", &result, &err) == 0)
			turns++;
		CHECK_INT(turns, cases[i].turns);
		if (turns < 2)
			CHECK_INT(err.kind, ERR_QUOTA);
	}
}

TEST(the_limit_of_a_day_counts_what_all_agents_of_the_workspace_have_used)
{
	struct agent_result result;
	struct jv *usage, *sum;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	configure(&b, "", recording(b.arena, two_steps), "spend:\n  max_tokens_per_day: 30\n");
	usage = jv_object(b.arena);
	jv_set_int(b.arena, usage, "input_tokens", 30);
	CHECK_OK(usage_add(b.ws, &b.ctx, (struct session_ref){STR("writer"), STR("x")}, usage, &err), err);
	CHECK_ERR(say(&b, STR_NONE, "Go", &result, &err), err, ERR_QUOTA);
	CHECK_OK(usage_sum(b.ws, &b.ctx, STR_NONE, 0, &sum, &err), err);
	CHECK_INT(jv_get_int(sum, "total_tokens", 0), 30);
	CHECK_OK(usage_sum(b.ws, &b.ctx, STR("default"), 0, &sum, &err), err);
	CHECK_INT(jv_get_int(sum, "total_tokens", -1), 0);
}

TEST(a_limit_in_dollars_needs_the_price_of_a_model_that_costs_something)
{
	static const struct {
		const char *price, *model;
		bool is_refused;
	} cases[] = {{"", "openai:m", true},
		     {"", "ollama:m", false},
		     {"  price: {input: 0, output: 0}\n", "openai:m", false},
		     {"  fallback: [\"openai:other\"]\n", "ollama:m", true}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct agent_opts opts = {0};
		struct agent *agent = NULL;
		struct bench b;
		struct err err;
		int r;

		setenv("OPENAI_API_KEY", "k", 1);
		bench_open_disk(&b, "");
		configure(&b, cases[i].price, str_of(cases[i].model), "spend:\n  max_usd_per_day: 1\n");
		r = agent_open(b.ws, &opts, &agent, &err);
		CHECK_INT(r, cases[i].is_refused ? -ERR_INVALID : 0);
		if (r)
			CHECK_HAS(str_of(err.msg), STR("is not known"));
		agent_close(agent);
	}
}

TEST(another_model_answers_when_one_fails)
{
	const char *const one[] = {"[" CALL("a", "ls", "{}") "]", NULL};
	const char *const other[] = {"'from the other'", NULL};
	struct str second;
	struct agent_result result;
	struct bench b;
	struct err err;

	bench_open_disk(&b, "");
	second = recording(b.arena, other);
	configure(&b, arena_printf(b.arena, "  fallback: [\"%.*s\"]\n", STR_ARG(second)).ptr, recording(b.arena, one),
		  "");
	CHECK_OK(say(&b, STR_NONE, "Go", &result, &err), err);
	CHECK_STR(result.answer, STR("from the other"));
	CHECK_STR(result.model, second);
	CHECK_INT(count_entries(&b, "problem"), 1);
}
