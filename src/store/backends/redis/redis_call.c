/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call to Redis, made until its outcome is known. A connection may break after a change was sent and before its
 * answer came: the change has then happened or not, and calling that a failure or making it twice would both be wrong.
 * So the same change is sent again under the same token, marked as a repetition, and the script
 * answers for the first try when that one took effect. When the server stays away, the call says that the outcome is
 * not known.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "store/backends/redis/redis.h"

#define AGAIN_PAUSE_NS 50000000
#define TRIES_UNSENT   4 /* while nothing reached the server, or it refused for a passing reason */
#define MOVES_MAX      4

enum outcome { OUTCOME_DONE, OUTCOME_NO_SERVER, OUTCOME_LOST, OUTCOME_REFUSED };

/* Why a try failed: was anything sent? */
static enum outcome failed(bool sent)
{
	return sent ? OUTCOME_LOST : OUTCOME_NO_SERVER;
}

/* A request in the making. */
struct call {
	enum redis_script script; /* REDIS_SCRIPTS: a plain command */
	struct redis_change *change;
	const struct resp_place *place;
	struct str *args;
	size_t count, max;
};

static void put_bytes_first(struct resp_conn *conn, const struct redis_change *ch)
{
	struct str args[] = {STR("SET"), ch->bytes_key, str_n(ch->head, REDIS_HEAD), STR("PX"), STR(REDIS_SEPARATE_MS)};

	resp_put_joined(conn, args, 5, 2, ch->tail);
}

/* `separate`: the bytes go in a command of their own before it, in the same trip. */
static int exchange(struct resp_conn *conn, struct ctx *ctx, const struct call *call, bool separate,
		    struct resp_value *ret, struct err *err)
{
	const struct redis_change *ch = call->change;
	struct resp_value set = {.type = RESP_NULL};
	int r;

	if (separate)
		put_bytes_first(conn, ch);
	if (ch && ch->joined && !ch->bytes_key.len)
		resp_put_joined(conn, call->args, call->count, ch->joined, ch->tail);
	else
		resp_put(conn, call->args, call->count);
	r = resp_send(conn, ctx, err);
	if (r == 0 && separate)
		r = resp_get(conn, ctx, ctx->arena, REDIS_META_MAX, 0, &set, err);
	if (r == 0)
		r = resp_get_placed(conn, ctx, ctx->arena, call->max, call->place, ret, err);
	if (r == 0 && set.type == RESP_ERROR)
		*ret = set;
	return r;
}

/* A server whose scripts were flushed, or that took over from another, is given the text of the script. */
static int exchange_script(struct redis *rd, struct resp_conn *conn, struct ctx *ctx, const struct call *call,
			   struct resp_value *ret, struct err *err)
{
	int r;

	call->args[0] = STR("EVALSHA");
	call->args[1] = resp_script_hash(rd->client, call->script);
	if (call->change)
		redis_change_stamp(call->change, resp_conn_name(conn));
	r = exchange(conn, ctx, call, call->change && call->change->bytes_key.len, ret, err);
	if (r == 0 && ret->type == RESP_ERROR && str_starts(ret->s, STR("NOSCRIPT"))) {
		call->args[0] = STR("EVAL");
		call->args[1] = rd->scripts[call->script];
		r = exchange(conn, ctx, call, false, ret, err);
	}
	return r;
}

static int try_once(struct redis *rd, struct ctx *ctx, const struct call *call, struct resp_value *ret,
		    enum outcome *ret_outcome, struct err *err)
{
	struct resp_conn *conn;
	int r = 0;

	for (unsigned moves = 0; moves < MOVES_MAX; moves++) {
		r = resp_take(rd->client, ctx, false, &conn, err);
		*ret_outcome = failed(false);
		if (r)
			return r;
		if (call->script < REDIS_SCRIPTS)
			r = exchange_script(rd, conn, ctx, call, ret, err);
		else
			r = exchange(conn, ctx, call, false, ret, err);
		*ret_outcome = failed(true);
		if (r) {
			resp_give(rd->client, conn);
			return r;
		}
		*ret_outcome = ret->type == RESP_ERROR ? OUTCOME_REFUSED : OUTCOME_DONE;
		if (ret->type != RESP_ERROR) {
			resp_give(rd->client, conn);
			return 0;
		}
		r = resp_error(ret->s, err);
		if (err->retryable) /* another server may have taken over: look up the name again */
			resp_drop(rd->client, conn);
		else
			resp_give(rd->client, conn);
		if (!resp_follow(rd->client, ret->s))
			return r;
	}
	return r;
}

static bool pause_before_again(const struct ctx *ctx, unsigned tries, int64_t give_up_ns)
{
	struct timespec t = {.tv_nsec = AGAIN_PAUSE_NS * (long)(tries < TRIES_UNSENT ? tries : TRIES_UNSENT)};
	int64_t end = clock_monotonic_ns() + t.tv_nsec;
	struct err ignored;

	if (end > give_up_ns || (ctx->deadline_ns && end > ctx->deadline_ns))
		return false;
	nanosleep(&t, NULL);
	return ctx_check(ctx, &ignored) == 0;
}

static int unknown_outcome(struct err *err)
{
	return err_prefix(err, "the answer to the change was lost; check whether it was made");
}

static int until_known(struct redis *rd, struct ctx *ctx, const struct call *call, struct resp_value *ret,
		       struct err *err)
{
	int64_t give_up_ns = clock_monotonic_ns() + (int64_t)rd->answer_ms * NS_PER_MS;
	bool lost = false;

	for (unsigned tries = 1;; tries++) {
		enum outcome outcome;
		int r;

		if (call->change)
			call->args[REDIS_BEFORE] = lost ? STR("1") : STR("");
		if (lost && call->change && call->args[REDIS_BEFORE + 2].ptr == call->change->simple)
			call->args[REDIS_BEFORE + 2] = STR("-"); /* the caller must look before it asks again */
		r = try_once(rd, ctx, call, ret, &outcome, err);
		if (r == 0)
			return 0;
		if (outcome == OUTCOME_LOST)
			lost = true;
		else if ((!lost && tries == TRIES_UNSENT) || (outcome == OUTCOME_REFUSED && !err->retryable))
			return r;
		if (err->kind == ERR_UNAVAILABLE && err->retryable && pause_before_again(ctx, tries, give_up_ns))
			continue;
		return lost && call->change ? unknown_outcome(err) : r;
	}
}

int redis_command(struct redis *rd, struct ctx *ctx, const struct str *args, size_t count, size_t max,
		  struct resp_value *ret, struct err *err)
{
	return redis_command_placed(rd, ctx, args, count, max, NULL, ret, err);
}

int redis_command_placed(struct redis *rd, struct ctx *ctx, const struct str *args, size_t count, size_t max,
			 const struct resp_place *place, struct resp_value *ret, struct err *err)
{
	struct call call = {
		.script = REDIS_SCRIPTS, .place = place, .args = (struct str *)args, .count = count, .max = max};

	return until_known(rd, ctx, &call, ret, err);
}

int redis_script(struct redis *rd, struct ctx *ctx, enum redis_script script, struct redis_change *change,
		 struct str *args, size_t count, size_t max, struct resp_value *ret, struct err *err)
{
	struct call call = {.script = script, .change = change, .args = args, .count = count, .max = max};
	int r;

	args[2] = STR("1");
	args[3] = rd->names;
	r = until_known(rd, ctx, &call, ret, err);
	if (r == 0 && ret->type != RESP_INT && (ret->type != RESP_ARRAY || ret->count == 0))
		return err_set(err, ERR_CORRUPT, "one of the store's scripts did not return a list");
	return r;
}

/* Answers. */

struct str redis_item(const struct resp_value *answer, size_t i)
{
	if (i >= answer->count || answer->items[i].type != RESP_STR)
		return STR("");
	return answer->items[i].s;
}

uint64_t redis_number(const struct resp_value *answer, size_t i)
{
	int64_t n;

	return str_to_i64(redis_item(answer, i), &n) && n > 0 ? (uint64_t)n : 0;
}

bool redis_says(const struct resp_value *answer, const char *word)
{
	if (answer->type == RESP_INT)
		return strcmp(word, "ok") == 0;
	return str_is(redis_item(answer, 0), word);
}

int redis_refused(const struct resp_value *answer, struct store_cond cond, struct err *err)
{
	struct str what = str_trim(redis_item(answer, 1));

	if (redis_says(answer, "exists"))
		return store_cond_check((struct store_cond){.kind = STORE_ABSENT}, true, what, err);
	if (redis_says(answer, "conflict"))
		return store_cond_check(cond, what.len > 0, what, err);
	if (redis_says(answer, "none"))
		return store_not_found(err);
	if (redis_says(answer, "dir"))
		return store_refuse(REFUSE_DIR, what, err);
	if (redis_says(answer, "is file"))
		return store_refuse(REFUSE_FILE, what, err);
	if (redis_says(answer, "file"))
		return store_refuse(REFUSE_BELOW_FILE, what, err);
	if (redis_says(answer, "replace"))
		return store_refuse(REFUSE_FILE_TARGET, what, err);
	if (redis_says(answer, "recursive"))
		return store_refuse(REFUSE_NOT_RECURSIVE, what, err);
	if (redis_says(answer, "no version"))
		return store_refuse(REFUSE_DIR_VERSION, what, err);
	if (redis_says(answer, "long"))
		return store_refuse(REFUSE_LONG_PATH, what, err);
	if (redis_says(answer, "lost"))
		return err_set(err, ERR_UNAVAILABLE,
			       "Redis evicted parts of a large write before it was finished; write it again, and set "
			       "maxmemory-policy to noeviction");
	if (redis_says(answer, "short"))
		return err_set(
			err, ERR_CONFLICT,
			"the journal ends at entry %.*s, before the one to continue from; was the server restored "
			"from an older state?",
			STR_ARG(what));
	return err_set(err, ERR_CORRUPT, "one of the store's scripts answered \"%.*s\"",
		       STR_ARG(redis_item(answer, 0)));
}

/* Names. */

struct str redis_key(struct redis *rd, struct arena *arena, const char *kind, struct str rest)
{
	size_t kind_len = strlen(kind), len = rd->key_base.len + kind_len + rest.len;
	char *key = arena_alloc_raw(arena, len);

	memcpy(key, rd->key_base.ptr, rd->key_base.len);
	memcpy(key + rd->key_base.len, kind, kind_len);
	memcpy(key + rd->key_base.len + kind_len, rest.ptr, rest.len);
	return str_n(key, len);
}

struct str redis_chunk_key(struct redis *rd, struct arena *arena, struct str gen, uint64_t i)
{
	return arena_printf(arena, "%.*sc:%.*s:%llu", STR_ARG(rd->key_base), STR_ARG(gen), (unsigned long long)i);
}

struct str redis_token(struct arena *arena)
{
	return arena_printf(arena, "%llx%012llx", (unsigned long long)clock_real_ns(),
			    (unsigned long long)(random_u64() >> 16));
}

struct str redis_cond_kind(struct store_cond cond)
{
	return cond.kind == STORE_ABSENT ? STR("a") : cond.kind == STORE_VERSION ? STR("v") : STR("");
}
