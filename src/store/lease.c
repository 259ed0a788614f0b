/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a lease is one JSON object: {"holder","fence","ttl_ms","mark"}. `mark` is random and new with every
 * write, so that no two writes have the same bytes: on stores whose versions are hashes of the content a renewal
 * would otherwise be invisible, and a contender would take a lease that is alive. It also tells whose a write was when
 * its answer got lost.
 *
 * A released lease keeps its file with no holder in it: the fence must continue from there. Only lease_drop() removes
 * it. A file that cannot be read as a lease is an error and never taken for a free one, unless it is empty or has
 * nothing but zeros.
 *
 * CLOCK_BOOTTIME and not CLOCK_MONOTONIC: a laptop that slept for an hour must not believe that its minute is not over.
 */
#include "store/lease.h"

#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/jv.h"

#define POLL_LEAST_NS (20 * NS_PER_MS)
#define POLL_MOST_NS  (1000 * NS_PER_MS)

struct lease {
	struct store *leases;
	char *name, *holder;
	uint64_t fence;
	int64_t ttl_ns;
	char *version; /* of its file */
	size_t version_len;
};

/* The file, read. */
struct record {
	struct str holder, mark, version;
	uint64_t fence;
	int64_t ttl_ns;
	bool exists;
};

static int64_t boot_now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 * NS_PER_MS + ts.tv_nsec;
}

static void boot_sleep(void *arg, int64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / (1000 * NS_PER_MS)), .tv_nsec = (long)(ns % (1000 * NS_PER_MS))};

	(void)arg;
	nanosleep(&ts, NULL);
}

static const struct lease_clock boot_clock = {.now_ns = boot_now, .sleep_ns = boot_sleep};

static int64_t now_of(const struct lease_clock *clock)
{
	return clock->now_ns(clock->arg);
}

/* --- the file --- */

/* What a power cut may leave of a lease that was written without a sync. Its holder is gone as well. */
static bool is_torn(struct str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i])
			return false;
	return true;
}

static int parse_record(struct ctx *ctx, struct str bytes, struct record *record, struct err *err)
{
	struct jv *v;
	int64_t fence, ttl_ms;
	struct err why;

	if (is_torn(bytes)) {
		record->exists = true;
		return 0;
	}
	if (jv_parse(ctx->arena, bytes, &v, &why) != 0)
		return err_set(err, ERR_CORRUPT,
			       "the file of the lease is malformed (%.*s); remove it when nobody holds it",
			       STR_ARG(err_text(ctx->arena, &why)));
	fence = jv_get_int(v, "fence", 0);
	ttl_ms = jv_get_int(v, "ttl_ms", 0);
	record->holder = jv_get_str(v, "holder");
	record->mark = jv_get_str(v, "mark");
	if (fence < 1 || ttl_ms < 1 || ttl_ms > LEASE_TTL_MAX_NS / NS_PER_MS || !record->mark.len)
		return err_set(err, ERR_CORRUPT, "the file of the lease is malformed; remove it when nobody holds it");
	record->fence = (uint64_t)fence;
	record->ttl_ns = ttl_ms * NS_PER_MS;
	record->exists = true;
	return 0;
}

static int read_record(struct store *leases, struct ctx *ctx, struct str name, struct record *ret, struct err *err)
{
	struct store_stat stat;
	struct str bytes;
	int r = store_read(leases, ctx, (struct wpath){name}, STORE_WHOLE, LEASE_LEN_MAX, &bytes, &stat, err);

	*ret = (struct record){0};
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r == 0 && parse_record(ctx, bytes, ret, err) != 0)
		return err_prefix(err, "\"%.*s\"", STR_ARG(name));
	if (r == 0)
		ret->version = stat.version;
	return r;
}

/* Writes `next` in the place of `old`. After a lost answer, or a conflict with what may have been our own first
   try, the mark tells whose write it was. */
static int write_record(struct store *leases, struct ctx *ctx, struct str name, const struct record *old,
			const struct record *next, struct str *ret_version, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct str mark = arena_printf(arena, "%016llx%016llx", (unsigned long long)random_u64(),
				       (unsigned long long)random_u64());
	struct store_cond cond = {.kind = old->exists ? STORE_VERSION : STORE_ABSENT, .version = old->version};
	struct store_stat stat;
	struct record now;
	struct err look;
	struct buf b;
	int r;

	jv_set_str(arena, v, "holder", next->holder);
	jv_set_int(arena, v, "fence", (int64_t)next->fence);
	jv_set_int(arena, v, "ttl_ms", next->ttl_ns / NS_PER_MS);
	jv_set_str(arena, v, "mark", mark);
	buf_init(&b, arena, LEASE_LEN_MAX);
	jv_write(&b, v);
	r = store_write(leases, ctx, (struct wpath){name}, buf_str(&b), cond, &stat, err);
	if (r == 0) {
		*ret_version = stat.version;
		return 0;
	}
	if (r != -ERR_CONFLICT && r != -ERR_EXISTS && !err->retryable)
		return r;
	if (read_record(leases, ctx, name, &now, &look) == 0 && str_eq(now.mark, mark)) {
		*ret_version = now.version;
		return 0;
	}
	return r;
}

/* --- handles --- */

static struct str version_of(const struct lease *l)
{
	return str_n(l->version, l->version_len);
}

static void set_version(struct lease *l, struct str version)
{
	free(l->version);
	l->version = xstrndup(version);
	l->version_len = version.len;
}

static struct lease *handle_new(struct store *leases, const struct lease_want *want, const struct record *record)
{
	struct lease *l = xcalloc(1, sizeof *l);

	l->leases = leases;
	l->name = xstrndup(want->name);
	l->holder = xstrndup(want->holder);
	l->fence = record->fence;
	l->ttl_ns = record->ttl_ns;
	set_version(l, record->version);
	return l;
}

void lease_destroy(struct lease *lease)
{
	if (!lease)
		return;
	free(lease->name);
	free(lease->holder);
	free(lease->version);
	free(lease);
}

/* --- acquiring --- */

static int check_want(const struct lease_want *want, struct err *err)
{
	if (!wpath_name_ok(want->name))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a valid lease name; use letters, digits, '-' and '_'",
			       STR_ARG(utf8_first(want->name, 80)));
	if (!want->holder.len || want->holder.len > LEASE_HOLDER_MAX || !utf8_valid(want->holder))
		return err_set(err, ERR_INVALID, "the holder of a lease needs a name of 1 to %zu bytes",
			       LEASE_HOLDER_MAX);
	if (want->ttl_ns < LEASE_TTL_MIN_NS || want->ttl_ns > LEASE_TTL_MAX_NS)
		return err_set(err, ERR_INVALID, "the time of a lease must be between 0.1 seconds and 24 hours");
	return 0;
}

static int held_by_other(struct str name, const struct record *record, struct err *err)
{
	return err_set(err, ERR_CONFLICT,
		       "the lease \"%.*s\" is held by \"%.*s\" (fence %llu); wait at least %.1f seconds for it, or try "
		       "again later",
		       STR_ARG(name), STR_ARG(utf8_first(record->holder, 100)), (unsigned long long)record->fence,
		       (double)record->ttl_ns / 1e9);
}

/* True when the file has been seen unchanged for its whole time. A hundredth more is waited, since no two clocks run
   alike. */
static bool seen_long_enough(struct lease_watch *watch, const struct record *record, int64_t now)
{
	uint64_t seen[2];

	hash_u128(record->version, seen);
	if (!watch->begun || watch->seen[0] != seen[0] || watch->seen[1] != seen[1])
		*watch = (struct lease_watch){.begun = true, .seen = {seen[0], seen[1]}, .since_ns = now};
	return now - watch->since_ns >= record->ttl_ns + record->ttl_ns / 100;
}

/* One look. ERR_CONFLICT with *ret_again: another contender holds it, or was quicker. The time is taken after the file
   was read: the contender's time begins when the holder's write is known to have been made. */
static int try_once(struct store *leases, struct ctx *ctx, const struct lease_want *want, struct lease_watch *watch,
		    struct record *ret, bool *ret_again, struct err *err)
{
	const struct lease_clock *clock = want->clock ? want->clock : &boot_clock;
	struct record old, next = {.holder = want->holder, .ttl_ns = want->ttl_ns};
	int r = read_record(leases, ctx, want->name, &old, err);
	int64_t now = now_of(clock);

	*ret_again = false;
	if (r)
		return r;
	if (old.exists && old.holder.len && !str_eq(old.holder, want->holder) && !seen_long_enough(watch, &old, now)) {
		*ret_again = true;
		*ret = old;
		return held_by_other(want->name, &old, err);
	}
	next.fence = old.fence + 1;
	r = write_record(leases, ctx, want->name, &old, &next, &next.version, err);
	*ret_again = r == -ERR_CONFLICT || r == -ERR_EXISTS;
	if (*ret_again) {
		*ret = old;
		r = err_set(err, ERR_CONFLICT, "another holder took the lease \"%.*s\" at the same moment; try again",
			    STR_ARG(want->name));
	} else if (r == 0) {
		*ret = next;
	}
	return r;
}

int lease_acquire(struct store *leases, struct ctx *ctx, const struct lease_want *want, struct lease **ret_lease,
		  struct err *err)
{
	const struct lease_clock *clock = want->clock ? want->clock : &boot_clock;
	struct lease_watch own = {0}, *watch = want->watch ? want->watch : &own;
	int64_t end = now_of(clock) + want->wait_ns;
	int r = check_want(want, err);

	while (r == 0) {
		ARENA_SCOPE struct arena *arena = arena_new();
		struct ctx step = *ctx;
		struct record got = {0};
		int64_t pause;
		bool again;

		step.arena = arena;
		r = try_once(leases, &step, want, watch, &got, &again, err);
		if (r == 0) {
			*ret_lease = handle_new(leases, want, &got);
			return 0;
		}
		if (!again || now_of(clock) >= end)
			return r;
		pause = got.ttl_ns / 10;
		pause = pause < POLL_LEAST_NS ? POLL_LEAST_NS : pause > POLL_MOST_NS ? POLL_MOST_NS : pause;
		clock->sleep_ns(clock->arg, pause);
		r = ctx_check(ctx, err);
	}
	return r;
}

static int is_held_so(const struct record *record, struct str name, struct str holder, uint64_t fence, struct err *err)
{
	if (!record->exists)
		return err_set(err, ERR_NOT_FOUND, "there is no lease \"%.*s\"; acquire it first", STR_ARG(name));
	if (!str_eq(record->holder, holder) || (fence && record->fence != fence))
		return err_set(err, ERR_CONFLICT,
			       "the lease \"%.*s\" is no longer held by \"%.*s\"%s: %s%.*s%s has fence %llu; stop what "
			       "it protects and acquire it again",
			       STR_ARG(name), STR_ARG(utf8_first(holder, 100)), fence ? " with this fence" : "",
			       record->holder.len ? "\"" : "it is free and", STR_ARG(utf8_first(record->holder, 100)),
			       record->holder.len ? "\"" : "", (unsigned long long)record->fence);
	return 0;
}

int lease_resume(struct store *leases, struct ctx *ctx, const struct lease_want *want, uint64_t fence,
		 struct lease **ret_lease, struct err *err)
{
	struct record record;
	int r = check_want(want, err);

	if (!r)
		r = read_record(leases, ctx, want->name, &record, err);
	if (!r)
		r = is_held_so(&record, want->name, want->holder, fence, err);
	if (!r)
		*ret_lease = handle_new(leases, want, &record);
	return r;
}

/* --- holding --- */

/* The file becomes `holder`'s, from the version that this handle knows; a conflict is reported as one about the lease.
 */
static int rewrite(struct lease *l, struct ctx *ctx, struct str holder, struct err *err)
{
	struct record old = {.exists = true, .version = version_of(l)};
	struct record next = {.holder = holder, .fence = l->fence, .ttl_ns = l->ttl_ns};
	struct str version;
	struct record now;
	int r = write_record(l->leases, ctx, str_of(l->name), &old, &next, &version, err);

	if (r == -ERR_CONFLICT) { /* ours still, but renewed through another handle of the same holder? */
		r = read_record(l->leases, ctx, str_of(l->name), &now, err);
		if (r == 0)
			r = is_held_so(&now, str_of(l->name), str_of(l->holder), l->fence, err);
		if (r == 0)
			r = write_record(l->leases, ctx, str_of(l->name), &now, &next, &version, err);
	}
	if (r == 0)
		set_version(l, version);
	return r;
}

int lease_renew(struct lease *lease, struct ctx *ctx, struct err *err)
{
	return rewrite(lease, ctx, str_of(lease->holder), err);
}

int lease_release(struct lease *lease, struct ctx *ctx, struct err *err)
{
	int r = rewrite(lease, ctx, STR(""), err);

	return r == -ERR_CONFLICT || r == -ERR_NOT_FOUND ? 0 : r;
}

int lease_drop(struct lease *lease, struct ctx *ctx, struct err *err)
{
	struct store_cond cond = {.kind = STORE_VERSION, .version = version_of(lease)};
	uint64_t count;
	int r;

	if (!store_is_local(lease->leases))
		return lease_release(lease, ctx, err);
	r = store_remove(lease->leases, ctx, (struct wpath){str_of(lease->name)}, false, cond, &count, err);
	return r == -ERR_CONFLICT || r == -ERR_NOT_FOUND ? 0 : r;
}

int lease_show(struct store *leases, struct ctx *ctx, struct str name, struct lease_info *ret_info, struct err *err)
{
	struct record record;
	int r = 0;

	if (!wpath_name_ok(name))
		r = err_set(err, ERR_INVALID, "\"%.*s\" is not a valid lease name", STR_ARG(utf8_first(name, 80)));
	if (!r)
		r = read_record(leases, ctx, name, &record, err);
	if (!r && !record.exists)
		r = err_set(err, ERR_NOT_FOUND, "the lease \"%.*s\" was never acquired", STR_ARG(name));
	if (!r)
		*ret_info = (struct lease_info){
			.name = name, .holder = record.holder, .fence = record.fence, .ttl_ns = record.ttl_ns};
	return r;
}
