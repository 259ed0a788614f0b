/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a call: checks the structs that the caller filled in, gives the call memory, a deadline and a condition,
 * and turns the error into the embedder's form at the end.
 *
 * A struct says how long it is. A program that was compiled with an older header passes a shorter one, whose missing
 * fields are zero. A newer one is longer; that is fine until it uses a field that this library does not have.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "lib/lib_internal.h"

#define STRUCT_SIZE_MAX 4096 /* more is memory that was never set */
#define NS_PER_MS       INT64_C(1000000)

_Static_assert((int)STEAD_INTERNAL == (int)ERR_INTERNAL && (int)STEAD_INVALID == (int)ERR_INVALID,
	       "the kinds are the same numbers inside and outside");
_Static_assert(sizeof(((struct stead_error *)0)->message) == sizeof(((struct err *)0)->msg), "no sentence is cut");

int lib_take(const void *given, const char *name, void *ret, size_t known, struct err *err)
{
	const char *bytes = given;
	size_t size;

	memcpy(&size, given, sizeof size);
	/* every struct is as it was in its first release, so none is shorter yet */
	if (size < known || size > STRUCT_SIZE_MAX)
		return err_set(err, ERR_INVALID,
			       "the size in struct %s is %zu; set it to sizeof(struct %s), which is %zu", name, size,
			       name, known);
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return err_set(
				err, ERR_UNSUPPORTED,
				"struct %s uses a field that libstead %s does not have; leave it zero, or install "
				"the libstead whose header the program was compiled with",
				name, STEAD_VERSION);
	memcpy(ret, given, known);
	return 0;
}

int lib_deadline(int64_t timeout_ms, int64_t *ret_ns, struct err *err)
{
	const int64_t longest_ms = INT64_MAX / NS_PER_MS / 4;

	if (timeout_ms < 0)
		return err_set(err, ERR_INVALID, "timeout_ms is %lld; use 0 for none, or a positive number",
			       (long long)timeout_ms);
	*ret_ns =
		timeout_ms ? clock_monotonic_ns() + (timeout_ms < longest_ms ? timeout_ms : longest_ms) * NS_PER_MS : 0;
	return 0;
}

int lib_begin(struct lib_call *c, struct stead *stead, const struct stead_call_options *how)
{
	struct stead_call_options o = {0};
	int r;

	*c = (struct lib_call){.ctx.actor = workspace_actor(stead->ws)};
	r = how ? lib_take(how, "stead_call_options", &o, sizeof o, &c->err) : 0;
	if (r == 0)
		r = lib_deadline(o.timeout_ms, &c->ctx.deadline_ns, &c->err);
	if (r)
		return r;
	c->ctx.cancel = o.cancel ? &o.cancel->cancel : NULL;
	c->ctx.actor.call_id = str_of(o.call_id);
	if (o.if_version)
		c->cond = (struct store_cond){.kind = *o.if_version ? STORE_VERSION : STORE_ABSENT,
					      .version = str_of(o.if_version)};
	r = ctx_check(&c->ctx, &c->err);
	if (r == 0)
		c->ctx.arena = arena_new();
	return r;
}

int lib_begin_plain(struct lib_call *c, struct stead *stead, const struct stead_call_options *how)
{
	int r = lib_begin(c, stead, how);

	if (r == 0 && c->cond.kind != STORE_ANY)
		r = err_set(&c->err, ERR_INVALID,
			    "if_version is for write, append, remove and move; leave it NULL for this call");
	return r;
}

void lib_call_release(struct lib_call *c)
{
	arena_destroy(c->ctx.arena);
}

int lib_path(struct lib_call *c, const char *path)
{
	return wpath_parse_lenient(c->ctx.arena, str_of(path), &c->path, &c->err);
}

int lib_end(const struct err *err, int r, struct stead_error *error)
{
	if (r == 0)
		return STEAD_OK;
	if (error) {
		error->kind = (int)err->kind;
		error->retryable = err->retryable;
		memcpy(error->message, err->msg, sizeof(error->message));
	}
	return (int)err->kind;
}

struct stead_cancel *stead_cancel_new(void)
{
	return calloc(1, sizeof(struct stead_cancel));
}

void stead_cancel(struct stead_cancel *cancel)
{
	atomic_store(&cancel->cancel.requested, true);
}

void stead_cancel_free(struct stead_cancel *cancel)
{
	free(cancel);
}
