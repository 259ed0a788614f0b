/* SPDX-License-Identifier: Apache-2.0 */
#include "server/links.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "server/download.h"
#include "server/server_internal.h"
#include "text/schema.h"
#include "tool/schema_text.h"

#define DIR        ".stead/links"
#define TIME_LEN   16 /* hexadecimal digits of the second at which it ends */
#define SECRET_LEN 32
#define FILE_MAX   (16 * KIB)
#define SECONDS    600
#define PAGE       1000

struct links {
	struct store *base;
	atomic_uint count; /* those that there were at the last sweep, and those made since */
	atomic_bool made;
};

struct links *links_new(struct store *base)
{
	struct links *l = xcalloc(1, sizeof(*l));

	l->base = base;
	return l;
}

void links_destroy(struct links *l)
{
	free(l);
}

static int64_t now_s(void)
{
	return clock_real_ns() / NS_PER_S;
}

/* The time at the beginning of a secret or of a name; -1: there is none. */
static int64_t end_of(struct str text)
{
	uint64_t v = 0;

	if (text.len < TIME_LEN)
		return -1;
	for (size_t i = 0; i < TIME_LEN; i++) {
		if (hex_digit(text.ptr[i]) < 0)
			return -1;
		v = v << 4 | (uint64_t)hex_digit(text.ptr[i]);
	}
	return v > INT64_MAX ? -1 : (int64_t)v;
}

static struct wpath link_path(struct arena *arena, struct str secret)
{
	return (struct wpath){
		arena_printf(arena, DIR "/%.*s-%.*s.json", TIME_LEN, secret.ptr, STR_ARG(sha256_hex(arena, secret)))};
}

int link_create(struct links *l, struct ctx *ctx, struct jv *what, int64_t seconds, struct str *ret_secret,
		struct err *err)
{
	char *text = arena_alloc(ctx->arena, TIME_LEN + SECRET_LEN + 1);
	struct str secret = str_n(text, TIME_LEN + SECRET_LEN);
	struct buf bytes;
	int r;

	if (atomic_load(&l->count) >= SERVER_LINKS_MAX)
		return err_set(
			err, ERR_RATE_LIMITED,
			"there are already %d links; wait until some have expired, or make links for a shorter time",
			SERVER_LINKS_MAX);
	hex_u64((uint64_t)(now_s() + seconds), text);
	hex_u64(random_u64(), text + TIME_LEN);
	hex_u64(random_u64(), text + TIME_LEN + 16);
	buf_init(&bytes, ctx->arena, FILE_MAX);
	jv_write_pretty(&bytes, what);
	if (bytes.overflow)
		return err_set(err, ERR_TOO_LARGE, "the path is too long for a link");
	r = store_write(l->base, ctx, link_path(ctx->arena, secret), buf_str(&bytes),
			(struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	if (r)
		return r;
	atomic_fetch_add(&l->count, 1);
	atomic_store(&l->made, true);
	*ret_secret = secret;
	return 0;
}

static int unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "this link is unknown, was already used or has expired; ask for a new one");
}

int link_find(struct links *l, struct ctx *ctx, struct str secret, bool use, struct jv **ret_what, struct err *err)
{
	struct store_stat stat;
	struct wpath path;
	struct str bytes;
	struct jv *what;
	int r;

	if (secret.len != TIME_LEN + SECRET_LEN || end_of(secret) <= now_s())
		return unknown(err);
	path = link_path(ctx->arena, secret);
	r = store_read(l->base, ctx, path, STORE_WHOLE, FILE_MAX, &bytes, &stat, err);
	if (r == 0)
		r = jv_parse(ctx->arena, bytes, &what, err);
	/* who removes it has it; anyone else comes too late */
	if (r == 0 && use && jv_get_bool(what, "once", true))
		r = store_remove(l->base, ctx, path, false,
				 (struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL, err);
	if (r == -ERR_NOT_FOUND || r == -ERR_CONFLICT)
		return unknown(err);
	if (r == 0)
		*ret_what = what;
	return r;
}

void links_sweep(struct links *l)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena, .deadline_ns = clock_monotonic_ns() + SERVER_OPEN_MS * NS_PER_MS};
	struct store_list_req req = {.limit = PAGE, .names_only = true};
	struct store_page page = {0};
	unsigned left = 0;
	struct err err;

	if (!atomic_exchange(&l->made, false))
		return;
	do {
		if (store_list(l->base, &ctx, (struct wpath){STR(DIR)}, &req, &page, &err) != 0)
			break;
		for (size_t i = 0; i < page.count; i++) {
			struct wpath path = page.entries[i].path;

			if (end_of(wpath_name(path)) > now_s())
				left++;
			else
				store_remove(l->base, &ctx, path, false, (struct store_cond){0}, NULL, &err);
		}
		req.after = page.next;
	} while (page.next.ptr);
	atomic_store(&l->count, left);
	if (left)
		atomic_store(&l->made, true);
}

/* --- routes --- */

static const char link_form[] = "path! str\nformat zip|tar\nonce bool\nshow bool\nexpires_seconds int>=1<=86400";

static int link_form_check(struct arena *arena, const struct jv *body, struct err *err)
{
	struct jv *schema;
	int r = schema_text_parse(arena, link_form, &schema, err);

	return r ? r : schema_check(schema, body, "the link", err);
}

/* What a link is to, as it is stored. */
static struct jv *link_what(struct exchange *x, const struct jv *body, struct wpath path)
{
	struct web_call *call = call_of(x);
	struct arena *arena = x->arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "workspace", call->workspace);
	if (call->user.len)
		jv_set_str(arena, v, "user", call->user);
	if (call->task) {
		jv_set_str(arena, v, "board", call->board);
		jv_set_str(arena, v, "item", call->item);
	}
	jv_set_str(arena, v, "path", path.s);
	jv_set_str(arena, v, "format", jv_get_str(body, "format"));
	jv_set_bool(arena, v, "once", jv_get_bool(body, "once", true));
	jv_set_bool(arena, v, "show", jv_get_bool(body, "show", false));
	if (call->grant.id.len)
		jv_set_str(arena, v, "token", call->grant.id);
	return v;
}

void run_link_create(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct jv *body, *v = jv_object(x->arena);
	struct str secret;
	struct wpath path;
	struct err err = {0};
	int64_t seconds;
	int r = body_json(x, &body, &err);

	if (r == 0)
		r = link_form_check(x->arena, body, &err);
	if (r == 0)
		r = files_path(x, jv_get_str(body, "path"), &path, &err);
	if (r == 0) /* what cannot be seen cannot be linked to */
		r = store_stat(exchange_files(x), &ctx, path, NULL, &err);
	if (r == 0) {
		seconds = jv_get_int(body, "expires_seconds", SECONDS);
		r = link_create(call->serve->links, &ctx, link_what(x, body, path), seconds, &secret, &err);
	}
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set_str(x->arena, v, "url", arena_printf(x->arena, "/links/%.*s", STR_ARG(secret)));
	jv_set_str(x->arena, v, "expires", clock_format_utc(x->arena, clock_real_ns() + seconds * NS_PER_S));
	jv_set_bool(x->arena, v, "once", jv_get_bool(body, "once", true));
	answer_json(x, 201, v);
}

/* Opens what a link is to: from here on the request is one of the workspace. */
static int open_linked(struct exchange *x, const struct jv *what, struct err *err)
{
	struct web_call *call = call_of(x);
	struct str token = jv_get_str(what, "token");
	struct ctx ctx = exchange_ctx(x);
	int r = 0;

	if (token.len)
		r = token_exists(call->serve->base, &ctx, token, err);
	if (r == -ERR_NOT_FOUND)
		return unknown(err);
	call->workspace = jv_get_str(what, "workspace");
	call->user = jv_get_str(what, "user");
	if (r == 0)
		r = tenants_get(call->serve->tenants, call->workspace, call->user, &call->tenant, err);
	if (r || !jv_get(what, "item"))
		return r;
	call->board = jv_get_str(what, "board");
	call->item = jv_get_str(what, "item");
	ctx = exchange_ctx(x);
	return board_task_open(call->tenant->ws, &ctx, exchange_item(x), &call->task, err);
}

void run_link(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct download download = {0};
	struct jv *what;
	struct err err = {0};
	int r = link_find(call->serve->links, &ctx, call->rest, true, &what, &err);

	if (r == 0)
		r = open_linked(x, what, &err);
	if (r == 0)
		r = format_parse(jv_get_str(what, "format"), &download.is_zip, &err);
	if (r == 0) {
		download.path.s = jv_get_str(what, "path");
		download.is_shown = jv_get_bool(what, "show", false);
		r = exchange_download(x, &download, &err);
	}
	if (r)
		answer_error(x, &err);
}
