/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call to Redis, made until its outcome is known. A connection may break after a change was sent and before its
 * answer came: the change has then happened or not, and calling that a failure or making it twice would both be wrong.
 * So the same change is sent again under the same token, marked as a repetition, and the script answers for the first
 * time when it was that which counted. When the server stays away, the call says that the outcome is not known.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "store/backends/redis.h"

#define AGAIN_PAUSE_NS 50000000
#define MOVES_MAX      4

enum outcome { OUTCOME_DONE, OUTCOME_NO_SERVER, OUTCOME_LOST, OUTCOME_REFUSED };

/* Why a try failed: was anything sent? */
static enum outcome failed(bool sent)
{
	return sent ? OUTCOME_LOST : OUTCOME_NO_SERVER;
}

static int exchange(struct resp_conn *conn, struct ctx *ctx, const struct str *args, size_t count, size_t max,
		    struct resp_value *ret, struct err *err)
{
	int r;

	resp_put(conn, args, count);
	r = resp_send(conn, ctx, err);
	return r ? r : resp_get(conn, ctx, ctx->arena, max, 0, ret, err);
}

/* A server whose scripts were flushed, or that took over from another, is given the text of the script. */
static int exchange_script(struct resp_conn *conn, struct ctx *ctx, struct str text, struct str *args, size_t count,
			   size_t max, struct resp_value *ret, struct err *err)
{
	int r = exchange(conn, ctx, args, count, max, ret, err);

	if (r == 0 && ret->type == RESP_ERROR && str_starts(ret->s, STR("NOSCRIPT"))) {
		args[0] = STR("EVAL");
		args[1] = text;
		r = exchange(conn, ctx, args, count, max, ret, err);
	}
	return r;
}

/* script REDIS_SCRIPTS: a plain command. */
static int try_once(struct redis *rd, struct ctx *ctx, enum redis_script script, struct str *args, size_t count,
		    size_t max, struct resp_value *ret, enum outcome *ret_outcome, struct err *err)
{
	struct resp_conn *conn;
	int r = 0;

	for (unsigned moves = 0; moves < MOVES_MAX; moves++) {
		r = resp_take(rd->client, ctx, false, &conn, err);
		*ret_outcome = failed(false);
		if (r)
			return r;
		if (script < REDIS_SCRIPTS) {
			args[0] = STR("EVALSHA");
			args[1] = resp_script_hash(rd->client, script);
			r = exchange_script(conn, ctx, rd->scripts[script], args, count, max, ret, err);
		} else {
			r = exchange(conn, ctx, args, count, max, ret, err);
		}
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

static bool pause_before_again(const struct ctx *ctx, int64_t give_up_ns)
{
	struct timespec t = {.tv_nsec = AGAIN_PAUSE_NS};
	int64_t end = clock_monotonic_ns() + AGAIN_PAUSE_NS;
	struct err ignored;

	if (end > give_up_ns || (ctx->deadline_ns && end > ctx->deadline_ns))
		return false;
	nanosleep(&t, NULL);
	return ctx_check(ctx, &ignored) == 0;
}

static int unknown_outcome(struct err *err)
{
	return err_prefix(err, "the answer to the change was lost, so look whether it was made");
}

static int until_known(struct redis *rd, struct ctx *ctx, enum redis_script script, bool changes, struct str *args,
		       size_t count, size_t max, struct resp_value *ret, struct err *err)
{
	int64_t give_up_ns = clock_monotonic_ns() + (int64_t)rd->answer_ms * 1000000;
	bool lost = false;

	for (unsigned tries = 1;; tries++) {
		enum outcome outcome;
		int r;

		if (changes)
			args[REDIS_BEFORE] = lost ? STR("1") : STR("");
		r = try_once(rd, ctx, script, args, count, max, ret, &outcome, err);
		if (r == 0)
			return 0;
		if (outcome == OUTCOME_LOST)
			lost = true;
		else if (!lost || (outcome == OUTCOME_REFUSED && !err->retryable))
			return r;
		if (err->kind == ERR_UNAVAILABLE && err->retryable && pause_before_again(ctx, give_up_ns))
			continue;
		return changes ? unknown_outcome(err) : r;
	}
}

int redis_command(struct redis *rd, struct ctx *ctx, const struct str *args, size_t count, size_t max,
		  struct resp_value *ret, struct err *err)
{
	return until_known(rd, ctx, REDIS_SCRIPTS, false, (struct str *)args, count, max, ret, err);
}

int redis_script(struct redis *rd, struct ctx *ctx, enum redis_script script, bool changes, struct str *args,
		 size_t count, size_t max, struct resp_value *ret, struct err *err)
{
	int r;

	args[2] = STR("1");
	args[3] = rd->names;
	r = until_known(rd, ctx, script, changes, args, count, max, ret, err);
	if (r == 0 && (ret->type != RESP_ARRAY || ret->count == 0))
		return err_set(err, ERR_CORRUPT, "a script of the store answered with something else than a list");
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
	return str_is(redis_item(answer, 0), word);
}

int redis_refused(const struct resp_value *answer, struct store_cond cond, struct err *err)
{
	struct str what = redis_item(answer, 1);

	if (redis_says(answer, "exists"))
		return store_cond_check((struct store_cond){.kind = STORE_ABSENT}, true, what, err);
	if (redis_says(answer, "conflict"))
		return store_cond_check(cond, what.len > 0, what, err);
	if (redis_says(answer, "none"))
		return err_set(err, ERR_NOT_FOUND,
			       "there is no such file or directory; list its parent to see what is there");
	if (redis_says(answer, "dir"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a directory; name a file", STR_ARG(what));
	if (redis_says(answer, "is file"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a file; name a directory", STR_ARG(what));
	if (redis_says(answer, "file"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a file, so nothing can lie below it", STR_ARG(what));
	if (redis_says(answer, "replace"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a file; a directory cannot replace it", STR_ARG(what));
	if (redis_says(answer, "recursive"))
		return err_set(err, ERR_INVALID, "\"%.*s\" is a directory; remove it recursively", STR_ARG(what));
	if (redis_says(answer, "no version"))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is a directory, which has no version; leave the condition out", STR_ARG(what));
	if (redis_says(answer, "long"))
		return err_set(err, ERR_INVALID, "\"%.*s\" would get a path of more than %zu bytes", STR_ARG(what),
			       PATH_LEN_MAX);
	if (redis_says(answer, "lost"))
		return err_set(
			err, ERR_UNAVAILABLE,
			"Redis has thrown away parts of a large write before it was finished; write it again, and set "
			"maxmemory-policy to noeviction");
	if (redis_says(answer, "short"))
		return err_set(err, ERR_CONFLICT,
			       "the journal ends at entry %.*s, before the one to go on from; was the server restored "
			       "from an older state?",
			       STR_ARG(what));
	return err_set(err, ERR_CORRUPT, "a script of the store answered \"%.*s\"", STR_ARG(redis_item(answer, 0)));
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

struct str redis_time(struct arena *arena, int64_t *ret_ns)
{
	*ret_ns = clock_real_ns();
	return arena_printf(arena, "%lld", (long long)*ret_ns);
}
