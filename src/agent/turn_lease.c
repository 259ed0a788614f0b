/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of a session at a time, among all processes and machines. The lease lasts as long as a turn may, so nothing
 * has to renew it. Its holder says which process it is, so that a process of the same machine need not wait for the
 * lease of one that was killed: it sees that the holder is gone, gives the lease back in its name, and takes it. Of
 * several that do so at once one succeeds, because every change of a lease is conditional.
 *
 * The file of a lease goes with its turn: each run of a schedule has a session of its own, and would leave one behind.
 *
 * To stop a turn of another process, its lease is answered with a second one: "stop-…", whose holder has a number made
 * of the name of the turn's holder. So a request is for one turn, and one that comes too late stops nothing.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "store/lease.h"

#define MARGIN_NS (30 * NS_PER_S)
#define STOP_NS   (5 * NS_PER_S)
#define LOOK_NS   (50 * NS_PER_MS)
#define WAIT_NS   NS_PER_S /* an undo or the like holds it for a moment; who waits longer waits for a turn */

struct turn_lease {
	struct store *leases;
	struct lease *lease;
};

/* When the process began, in ticks since the machine did; 0: there is no such process. */
static unsigned long long began(long pid)
{
	char path[64], text[1024];
	unsigned long long ticks = 0;
	const char *at;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name before it may have anything in it */
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			  &ticks) != 1)
		return 0;
	return ticks;
}

/* Where a process number means the same process: this machine and this PID namespace. */
static struct str place(struct arena *arena)
{
	char host[65] = "", space[64] = "";
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);

	if (gethostname(host, sizeof(host) - 1) != 0 || n < 0)
		return call_id_new(arena); /* unlike any other */
	for (char *p = host; *p; p++)
		if (*p == ' ')
			*p = '-';
	return arena_printf(arena, "%s %s", host, space);
}

static struct str own_name(struct arena *arena)
{
	static _Atomic unsigned long long turns;

	return arena_printf(arena, "%.*s %ld %llu %llu", STR_ARG(place(arena)), (long)getpid(), began(getpid()),
			    (unsigned long long)atomic_fetch_add(&turns, 1));
}

static bool is_gone(struct arena *arena, struct str holder)
{
	struct str here = place(arena);
	unsigned long long ticks;
	long pid;

	if (!str_starts(holder, here) ||
	    sscanf(arena_cstr(arena, str_from(holder, here.len)), " %ld %llu", &pid, &ticks) != 2)
		return false;
	return began(pid) != ticks;
}

/* A holder that is gone no longer holds it. */
static void give_back_for_the_dead(struct store *leases, struct ctx *ctx, struct lease_want want)
{
	struct lease_info info;
	struct lease *lease;
	struct err ignored;

	if (lease_show(leases, ctx, want.name, &info, &ignored) != 0 || !info.holder.len ||
	    !is_gone(ctx->arena, info.holder))
		return;
	want.holder = info.holder;
	if (lease_resume(leases, ctx, &want, info.fence, &lease, &ignored) != 0)
		return;
	lease_release(lease, ctx, &ignored);
	lease_destroy(lease);
}

static struct str name_of(struct arena *arena, struct workspace *ws, const char *kind, struct session_ref ref)
{
	struct actor actor = workspace_actor(ws);
	struct str who = arena_printf(arena, "%.*s/%.*s/%.*s", STR_ARG(workspace_encode_name(arena, actor.user)),
				      STR_ARG(workspace_encode_name(arena, ref.agent)), STR_ARG(ref.session));

	return arena_printf(arena, "%s-%.32s", kind, sha256_hex(arena, who).ptr);
}

int turn_lease_take(struct run *run, struct turn_lease **ret, struct err *err)
{
	struct store *leases = workspace_brief_leases_new(run->agent->ws);
	struct lease_want want = {.name = name_of(run->ctx->arena, run->agent->ws, "turn", run->ref),
				  .holder = own_name(run->ctx->arena),
				  .ttl_ns = run->agent->timeout_ns + MARGIN_NS};
	struct lease *lease;
	int r;

	want.ttl_ns = want.ttl_ns < LEASE_TTL_MAX_NS ? want.ttl_ns : LEASE_TTL_MAX_NS;
	r = lease_acquire(leases, run->ctx, &want, &lease, err);
	if (r == -ERR_CONFLICT) {
		give_back_for_the_dead(leases, run->ctx, want);
		want.wait_ns = WAIT_NS;
		r = lease_acquire(leases, run->ctx, &want, &lease, err);
	}
	if (r) {
		store_destroy(leases);
		return r == -ERR_CONFLICT
			       ? err_set(err, ERR_CONFLICT,
					 "another process is running a turn of session \"%.*s\"; wait until it ends",
					 STR_ARG(utf8_first(run->ref.session, 60)))
			       : r;
	}
	*ret = xcalloc(1, sizeof(**ret));
	**ret = (struct turn_lease){leases, lease};
	return 0;
}

void turn_lease_give(struct turn_lease *lease, struct run *run)
{
	struct ctx ctx = {.arena = run->ctx->arena}; /* also when the turn was cancelled */
	struct err ignored;

	lease_drop(lease->lease, &ctx, &ignored);
	lease_destroy(lease->lease);
	store_destroy(lease->leases);
	free(lease);
}

/* --- stopping a turn of any process --- */

/* A number for the turn of the session that runs, unlike that of any other turn; 0: none runs. */
static int running_turn(struct store *leases, struct ctx *ctx, struct str name, uint64_t *ret_turn, struct err *err)
{
	struct lease_info info;
	int r = lease_show(leases, ctx, name, &info, err);

	*ret_turn = 0;
	if (r == 0 && info.holder.len && !is_gone(ctx->arena, info.holder))
		*ret_turn = hash_u64(info.holder, info.fence) | 1;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static struct str stop_holder(struct arena *arena, uint64_t turn)
{
	return arena_printf(arena, "turn %llu", (unsigned long long)turn);
}

static int wait_for_end(struct store *leases, struct ctx *ctx, struct str name, uint64_t turn, struct err *err)
{
	struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t now = turn;
	int r = 0;

	while (r == 0 && now == turn) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		r = ctx_check(ctx, err);
		if (r == 0)
			r = running_turn(leases, ctx, name, &now, err);
	}
	return r;
}

int agent_stop(struct workspace *ws, struct ctx *ctx, struct str session, bool *ret_ran, struct err *err)
{
	struct session_ref ref = {.agent = workspace_actor(ws).agent, .session = session};
	struct store *leases = workspace_brief_leases_new(ws);
	struct str name = name_of(ctx->arena, ws, "turn", ref);
	struct lease_want want = {
		.name = name_of(ctx->arena, ws, "stop", ref), .ttl_ns = STOP_NS, .wait_ns = 2 * STOP_NS};
	struct ctx end = {.arena = ctx->arena};
	struct lease *request;
	struct err ignored;
	uint64_t turn;
	int r = running_turn(leases, ctx, name, &turn, err);

	*ret_ran = turn != 0;
	if (r == 0 && turn) {
		want.holder = stop_holder(ctx->arena, turn);
		r = lease_acquire(leases, ctx, &want, &request, err);
		if (r == 0) {
			r = wait_for_end(leases, ctx, name, turn, err);
			lease_drop(request, &end, &ignored);
			lease_destroy(request);
		}
	}
	store_destroy(leases);
	return r;
}

int agent_turn_runs(struct workspace *ws, struct ctx *ctx, struct str session, bool *ret_runs, struct err *err)
{
	struct session_ref ref = {.agent = workspace_actor(ws).agent, .session = session};
	struct store *leases = workspace_brief_leases_new(ws);
	uint64_t turn;
	int r = running_turn(leases, ctx, name_of(ctx->arena, ws, "turn", ref), &turn, err);

	*ret_runs = turn != 0;
	store_destroy(leases);
	return r;
}

bool agent_stop_asked(struct workspace *ws, struct ctx *ctx, struct str session)
{
	struct session_ref ref = {.agent = workspace_actor(ws).agent, .session = session};
	struct store *leases = workspace_brief_leases_new(ws);
	struct lease_info info;
	struct err ignored;
	uint64_t turn = 0;
	bool asked = lease_show(leases, ctx, name_of(ctx->arena, ws, "stop", ref), &info, &ignored) == 0 &&
		     info.holder.len &&
		     running_turn(leases, ctx, name_of(ctx->arena, ws, "turn", ref), &turn, &ignored) == 0 && turn &&
		     str_eq(info.holder, stop_holder(ctx->arena, turn));

	store_destroy(leases);
	return asked;
}
