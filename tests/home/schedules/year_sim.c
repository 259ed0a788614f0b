/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A year of one schedule in a moment, for year_test.mjs: year_sim ZONE EXPRESSION POLICY FROM TO SEED DIR
 *
 * The wall clock moves on to the next due time or by up to six hours, is set forth and back by up to two days, and set
 * right again; the process ends at random, also between claiming a due time and running it. A second process that
 * believes the same due time to be free tries to claim each one, too. Prints
 * {"fired":[due…],"missed":n,"restarts":n,"jumps":n}.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "home/schedules/schedules.h"
#include "workspace/workspace.h"

struct sim {
	struct arena *arena;
	struct workspace_opts opts;
	struct workspace *ws;
	struct schedule schedule;
	uint64_t seed;
	int64_t now;
	uint64_t missed, restarts, jumps, fired;
};

static uint64_t dice(struct sim *sim, uint64_t sides)
{
	sim->seed = sim->seed * 6364136223846793005u + 1442695040888963407u;
	return (sim->seed >> 33) % sides;
}

static void check(bool ok, const char *what, const struct err *err)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, err->msg);
	exit(1);
}

static void restart(struct sim *sim)
{
	struct err err = {0};

	workspace_close(sim->ws);
	check(workspace_open(&sim->opts, &sim->ws, &err) == 0, "open", &err);
	sim->restarts++;
}

/* Claims and runs what is due now. A run that was cut off is finished, and its due time is not printed again. */
static void look(struct sim *sim)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct schedule_state state;
	struct schedule_due due;
	struct err err = {0};

	for (;;) {
		check(schedule_state_read(sim->ws, &ctx, sim->schedule.id, &state, &err) == 0, "state", &err);
		if (state.running) {
			check(schedule_ended(sim->ws, &ctx, &sim->schedule, state.running, NULL, &err) == 0, "end",
			      &err);
			continue;
		}
		due = schedule_look(&sim->schedule, &state, sim->now);
		if (!due.passed)
			return;
		check(schedule_claim(sim->ws, &ctx, &sim->schedule, &due, STR("first"), &err) == 0, "claim", &err);
		check(schedule_claim(sim->ws, &ctx, &sim->schedule, &due, STR("second"), &err) == -ERR_CONFLICT,
		      "a due time was claimed twice", &err);
		sim->missed += due.missed;
		if (due.due)
			printf("%s%lld", sim->fired++ ? "," : "", (long long)due.due);
		if (dice(sim, 30) == 0)
			restart(sim);
	}
}

/* How long it takes until the process looks again: mostly until the next due time, as it would, and sometimes longer.
 */
static int64_t step(struct sim *sim)
{
	struct cron_time next;

	if (dice(sim, 10) < 7 && schedule_next(&sim->schedule, sim->now, &next) && next.at - sim->now < 86400)
		return next.at - sim->now;
	return 1 + (int64_t)dice(sim, 6 * 3600);
}

static void live(struct sim *sim, int64_t from, int64_t to)
{
	int64_t offset = 0;

	sim->now = from;
	for (int64_t real = from; real < to; real += step(sim)) {
		uint64_t what = dice(sim, 100);

		if (what == 0) {
			offset = (int64_t)dice(sim, 4 * 86400) - 2 * 86400;
			sim->jumps++;
		} else if (what < 10) {
			offset = 0;
		} else if (what < 12) {
			restart(sim);
		}
		sim->now = real + offset < to ? real + offset : to;
		look(sim);
	}
	sim->now = to;
	look(sim);
}

int main(int argc, char **argv)
{
	struct sim sim = {.arena = arena_new()};
	struct ctx ctx = {.arena = sim.arena};
	struct err err = {0};
	struct str text;
	int64_t from;

	if (argc != 8)
		return 2;
	sim.seed = strtoull(argv[6], NULL, 10);
	from = strtoll(argv[4], NULL, 10);
	text = arena_printf(sim.arena, "schedule: '%s'\ntimezone: %s\nmisfire: %s\nprompt: x\ngrace_seconds: %d\n",
			    argv[2], argv[1], argv[3], str_is(str_of(argv[3]), "all") ? 31536000 : 300);
	sim.opts = (struct workspace_opts){.store_url = arena_printf(sim.arena, "disk:%s", argv[7]),
					   .name = STR("year"),
					   .create = true,
					   .relaxed = true};
	check(workspace_open(&sim.opts, &sim.ws, &err) == 0, "open", &err);
	check(schedule_parse(sim.arena, STR("go"), text, STR("UTC"), &sim.schedule, &err) == 0, "parse", &err);
	check(schedule_begin(sim.ws, &ctx, STR("go"), from, &err) == 0, "begin", &err);
	printf("{\"fired\":[");
	live(&sim, from, strtoll(argv[5], NULL, 10));
	printf("],\"missed\":%llu,\"restarts\":%llu,\"jumps\":%llu}\n", (unsigned long long)sim.missed,
	       (unsigned long long)sim.restarts, (unsigned long long)sim.jumps);
	workspace_close(sim.ws);
	arena_destroy(sim.arena);
	return 0;
}
