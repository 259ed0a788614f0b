/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of a session at a time, among all processes and machines. The lease lasts as long as a turn may, so nothing
 * has to renew it. Its holder says which process it is, so that a process of the same machine need not wait for the
 * lease of one that was killed: it sees that the holder is gone, gives the lease back in its name, and takes it. Of
 * several that do so at once one succeeds, because every change of a lease is conditional.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "store/lease.h"

#define MARGIN_NS (30 * NS_PER_S)
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

static struct str name_of(struct run *run)
{
	struct arena *arena = run->ctx->arena;
	struct actor actor = workspace_actor(run->agent->ws);
	struct str who = arena_printf(arena, "%.*s/%.*s/%.*s", STR_ARG(workspace_encode_name(arena, actor.user)),
				      STR_ARG(workspace_encode_name(arena, run->ref.agent)), STR_ARG(run->ref.session));

	return arena_printf(arena, "turn-%.32s", sha256_hex(arena, who).ptr);
}

int turn_lease_take(struct run *run, struct turn_lease **ret, struct err *err)
{
	struct store *leases = workspace_leases_new(run->agent->ws);
	struct lease_want want = {.name = name_of(run),
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
		return r == -ERR_CONFLICT ? err_set(err, ERR_CONFLICT,
						    "another process runs a turn of session \"%.*s\"; wait for its end",
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

	lease_release(lease->lease, &ctx, &ignored);
	lease_destroy(lease->lease);
	store_destroy(lease->leases);
	free(lease);
}
