/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent may spend. A limit is checked before each question to the model, so it is passed by one answer at most.
 * A turn counts what its log says; the day counts the lines of token_usage.jsonl, in which subagents are counted with
 * the agent at the top.
 */
#include "agent/agent_internal.h"
#include "agent/children.h"
#include "base/clock.h"

#define DAY_NS (24 * 3600 * NS_PER_S)

struct spent {
	double usd;
	uint64_t tokens;
};

void spend_price(const struct prices *p, struct model_usage *u)
{
	uint64_t cached = u->cache_read + u->cache_write, plain = u->input > cached ? u->input - cached : 0;

	u->cost_usd = ((double)plain * p->input + (double)u->cache_read * p->cache_read +
		       (double)u->cache_write * p->cache_write + (double)u->output * p->output) /
		      1e6;
}

struct workspace *spend_place(const struct run *run, struct session_ref *ret_ref)
{
	const struct kin *kin = &run->agent->kin;

	*ret_ref = run->ref;
	if (!kin->top.session.len)
		return run->agent->ws;
	ret_ref->agent = kin->top.agent;
	return crew_workspace(kin->crew);
}

/* Today, without this turn. */
static int read_day(struct run *run, struct err *err)
{
	int64_t now_ns = clock_real_ns();
	struct session_ref ref;
	struct workspace *ws = spend_place(run, &ref);
	struct jv *sum;
	int r = usage_sum(ws, run->ctx, STR_NONE, now_ns - now_ns % DAY_NS, &sum, err);

	if (r)
		return r;
	run->day = ARENA_NEW(run->ctx->arena, struct spent);
	run->day->usd = settings_real(jv_get(sum, "cost_usd"), 0);
	run->day->tokens = (uint64_t)jv_get_int(sum, "total_tokens", 0);
	return 0;
}

/* With the subagents that this turn has started and that have ended. */
static struct spent spent_in_turn(struct run *run)
{
	struct model_usage own = transcript_usage(run->entries, run->turn);
	struct spent sum = {own.cost_usd, own.input + own.output};
	struct jv *tasks;
	struct err ignored;

	if (children_list(run, run->ctx, &tasks, &ignored) != 0)
		return sum;
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "parentTurn"), run->turn)) {
			sum.tokens += (uint64_t)jv_get_int(m->value, "tokens", 0);
			sum.usd += settings_real(jv_get(m->value, "costUsd"), 0);
		}
	return sum;
}

static int over_usd(const struct jv *spend, const char *key, double spent, struct err *err)
{
	double most = settings_real(jv_get(spend, key), 0);

	return most > 0 && spent >= most
		       ? err_set(err, ERR_QUOTA,
				 "%.4f US dollars are spent, and spend.%s in agent.yaml is %.4f; raise it to continue",
				 spent, key, most)
		       : 0;
}

static int over_tokens(const struct jv *spend, const char *key, uint64_t spent, struct err *err)
{
	int64_t most = jv_get_int(spend, key, 0);

	return most > 0 && spent >= (uint64_t)most
		       ? err_set(err, ERR_QUOTA,
				 "%llu tokens are used, and spend.%s in agent.yaml is %lld; raise it to continue",
				 (unsigned long long)spent, key, (long long)most)
		       : 0;
}

int spend_check(struct run *run, struct err *err)
{
	const struct jv *spend = jv_get(workspace_config(run->agent->ws)->document, "spend");
	bool by_day = jv_get(spend, "max_usd_per_day") || jv_get(spend, "max_tokens_per_day");
	struct spent turn;
	int r = by_day && !run->day ? read_day(run, err) : 0;

	if (r || !spend)
		return r;
	turn = spent_in_turn(run);
	r = over_usd(spend, "max_usd_per_run", turn.usd, err);
	if (r == 0)
		r = over_tokens(spend, "max_tokens_per_run", turn.tokens, err);
	if (r == 0 && by_day)
		r = over_usd(spend, "max_usd_per_day", run->day->usd + turn.usd, err);
	if (r == 0 && by_day)
		r = over_tokens(spend, "max_tokens_per_day", run->day->tokens + turn.tokens, err);
	return r;
}
