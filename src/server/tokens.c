/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file per token, named by the part of it that is not secret: making, finding and revoking one costs the same
 * however many there are, and two programs never write the same file. The secret has 192 random bits, so a plain
 * SHA-256 is as good as a slow hash would be.
 */
#include "server/tokens.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "workspace/workspace.h"

#define DIR            ".stead/tokens"
#define ID_LEN         16
#define SECRET_LEN     48
#define FILE_MAX       (64 * KIB)
#define LIST_MAX       10000
#define TOKEN_CACHE_MS 1000
#define CACHE_SLOTS    256

static const char *const access_names[] = {"none", "read", "write", "admin"};

const char *access_name(enum access access)
{
	return access_names[access];
}

static enum access access_of(struct str name)
{
	for (size_t i = ACCESS_READ; i < COUNT(access_names); i++)
		if (str_is(name, access_names[i]))
			return (enum access)i;
	return ACCESS_NONE;
}

static bool has_name(const struct jv *list, struct str name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_str_of(m->value), name))
			return true;
	return false;
}

bool grant_covers_workspace(const struct grant *grant, struct str workspace)
{
	return !grant->workspaces || has_name(grant->workspaces, workspace);
}

int grant_user(const struct grant *grant, struct str wanted, struct str *ret_user, struct err *err)
{
	if (!wanted.len && jv_count(grant->users) == 1 && !has_name(grant->users, STR("*")))
		wanted = jv_str_of(jv_at(grant->users, 0));
	*ret_user = wanted;
	if (!grant->id.len || has_name(grant->users, STR("*")))
		return 0;
	if (wanted.len ? has_name(grant->users, wanted) : !grant->users)
		return 0;
	if (!wanted.len)
		return err_set(err, ERR_INVALID, "this token is for several users; name one in the header Stead-User");
	return err_set(err, ERR_DENIED, "this token is not for the user \"%.*s\"", STR_ARG(utf8_first(wanted, 80)));
}

/* --- files --- */

static bool id_ok(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (hex_digit(id.ptr[i]) < 0 || (id.ptr[i] >= 'A' && id.ptr[i] <= 'F'))
			return false;
	return id.len == ID_LEN;
}

static struct wpath token_path(struct arena *arena, struct str id)
{
	return (struct wpath){arena_printf(arena, DIR "/%.*s.json", STR_ARG(id))};
}

static struct str random_hex(struct arena *arena, size_t len)
{
	char *text = arena_alloc(arena, len + 1);

	for (size_t i = 0; i < len; i += 16)
		hex_u64(random_u64(), text + i);
	return str_n(text, len);
}

static struct jv *names(struct arena *arena, const struct str *list, size_t count)
{
	struct jv *v = jv_array(arena);

	for (size_t i = 0; i < count; i++)
		jv_push(arena, v, jv_str(arena, list[i]));
	return v;
}

static int check_want(const struct token_want *want, struct err *err)
{
	if (!utf8_valid(want->name) || want->name.len > 200)
		return err_set(err, ERR_INVALID, "the name of a token must be text of at most 200 bytes");
	for (size_t i = 0; i < want->workspace_count; i++)
		if (!workspace_name_ok(want->workspaces[i]))
			return err_set(err, ERR_INVALID, "\"%.*s\" cannot be the name of a workspace",
				       STR_ARG(utf8_first(want->workspaces[i], 80)));
	for (size_t i = 0; i < want->user_count; i++)
		if (!want->users[i].len || !utf8_valid(want->users[i]) || want->users[i].len > 200)
			return err_set(err, ERR_INVALID, "the name of a user must be text of 1 to 200 bytes");
	return 0;
}

int token_create(struct store *base, struct ctx *ctx, const struct token_want *want, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str id = random_hex(arena, ID_LEN);
	struct str text = arena_printf(arena, "stead_%s_%s", id.ptr, random_hex(arena, SECRET_LEN).ptr);
	struct jv *v = jv_object(arena);
	struct buf bytes;
	int r = check_want(want, err);

	if (r)
		return r;
	jv_set_str(arena, v, "id", id);
	jv_set_str(arena, v, "name", want->name);
	jv_set_str(arena, v, "access", str_of(access_name(want->access)));
	if (want->workspace_count)
		jv_set(arena, v, "workspaces", names(arena, want->workspaces, want->workspace_count));
	if (want->user_count)
		jv_set(arena, v, "users", names(arena, want->users, want->user_count));
	jv_set_str(arena, v, "created", clock_format_utc(arena, clock_real_ns()));
	if (want->expires_ns)
		jv_set_str(arena, v, "expires", clock_format_utc(arena, want->expires_ns));
	jv_set_str(arena, v, "sha256", sha256_hex(arena, text));
	buf_init(&bytes, arena, FILE_MAX);
	jv_write_pretty(&bytes, v);
	if (bytes.overflow)
		return err_set(err, ERR_TOO_LARGE, "a token cannot name so many workspaces and users");
	r = store_write(base, ctx, token_path(arena, id), buf_str(&bytes), (struct store_cond){.kind = STORE_ABSENT},
			NULL, err);
	if (r)
		return r;
	jv_remove(v, "sha256");
	jv_set_str(arena, v, "token", text);
	*ret = v;
	return 0;
}

static int token_read(struct store *base, struct ctx *ctx, struct str id, struct jv **ret, struct err *err)
{
	struct str bytes;
	int r = store_read(base, ctx, token_path(ctx->arena, id), STORE_WHOLE, FILE_MAX, &bytes, NULL, err);

	if (r == 0 && jv_parse(ctx->arena, bytes, ret, err) != 0)
		r = err_set(err, ERR_CORRUPT, "the file of the token %.*s is damaged; revoke it", STR_ARG(id));
	return r;
}

static bool is_expired(const struct jv *token)
{
	struct str expires = jv_get_str(token, "expires");
	int64_t at;

	return expires.len && (!clock_parse(expires, &at) || at <= clock_real_ns());
}

int token_exists(struct store *base, struct ctx *ctx, struct str id, struct err *err)
{
	struct jv *token;
	int r = id_ok(id) ? token_read(base, ctx, id, &token, err) : err_set(err, ERR_NOT_FOUND, "that is not an id");

	return r == 0 && is_expired(token) ? err_set(err, ERR_NOT_FOUND, "the token has expired") : r;
}

int token_list(struct store *base, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page = {0};
	struct jv *list = jv_array(ctx->arena);

	do {
		int r = store_list(base, ctx, (struct wpath){STR(DIR)}, &req, &page, err);

		if (r == -ERR_NOT_FOUND)
			break;
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct str id = str_first(wpath_name(page.entries[i].path), ID_LEN);
			struct jv *v;

			if (!id_ok(id))
				continue;
			r = token_read(base, ctx, id, &v, err);
			if (r == -ERR_NOT_FOUND) {
				r = 0;
				continue;
			}
			if (r)
				break;
			jv_remove(v, "sha256");
			if (is_expired(v))
				jv_set_bool(ctx->arena, v, "expired", true);
			jv_push(ctx->arena, list, v);
		}
		if (r)
			return r;
		req.after = page.next;
	} while (page.next.ptr && jv_count(list) < LIST_MAX);
	*ret = list;
	return 0;
}

int token_any(struct store *base, struct ctx *ctx, bool *ret, struct err *err)
{
	struct store_list_req req = {.limit = 1};
	struct store_page page = {0};
	int r = store_list(base, ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	*ret = r == 0 && page.count > 0;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int token_revoke(struct store *base, struct ctx *ctx, struct str id, struct err *err)
{
	int r = id_ok(id)
			? store_remove(base, ctx, token_path(ctx->arena, id), false, (struct store_cond){0}, NULL, err)
			: -ERR_NOT_FOUND;

	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no token \"%.*s\"; 'stead token list' shows their ids",
			       STR_ARG(utf8_first(id, 40)));
	return r;
}

/* --- checking --- */

/* One token as it was read; `token` NULL: the slot is free. */
struct known {
	struct arena *arena;
	struct jv *token;
	int64_t read_ns;
};

struct tokens {
	struct store *base;
	pthread_mutex_t lock;
	struct known known[CACHE_SLOTS];
};

struct tokens *tokens_new(struct store *base)
{
	struct tokens *t = xcalloc(1, sizeof(*t));

	t->base = base;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void tokens_destroy(struct tokens *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < CACHE_SLOTS; i++)
		arena_destroy(t->known[i].arena);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static bool same_in_constant_time(struct str a, struct str b)
{
	unsigned char differs = a.len != b.len;

	for (size_t i = 0; i < a.len && i < b.len; i++)
		differs |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
	return !differs;
}

static int refuse(struct err *err)
{
	return err_set(err, ERR_UNAUTHENTICATED,
		       "this token is unknown, was revoked or has expired; make one with: stead token create");
}

static const struct jv *copy_names(struct arena *arena, const struct jv *list)
{
	struct jv *copy;

	if (!list)
		return NULL;
	copy = jv_array(arena);
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		jv_push(arena, copy, jv_str(arena, arena_str(arena, jv_str_of(m->value))));
	return copy;
}

static int grant_of(struct arena *arena, const struct jv *token, struct str text, struct grant *ret, struct err *err)
{
	struct str hash = sha256_hex(arena, text);

	if (!same_in_constant_time(hash, jv_get_str(token, "sha256")) || is_expired(token))
		return refuse(err);
	*ret = (struct grant){.id = arena_str(arena, jv_get_str(token, "id")),
			      .access = access_of(jv_get_str(token, "access")),
			      .workspaces = copy_names(arena, jv_get(token, "workspaces")),
			      .users = copy_names(arena, jv_get(token, "users"))};
	return 0;
}

static void remember(struct tokens *t, struct arena *arena, struct jv *token, struct str id)
{
	struct known *slot = &t->known[hash_u64(id, 7) % CACHE_SLOTS], old;

	pthread_mutex_lock(&t->lock);
	old = *slot;
	*slot = (struct known){arena, token, clock_monotonic_ns()};
	pthread_mutex_unlock(&t->lock);
	arena_destroy(old.arena);
}

/* False: it has to be read. */
static bool find_known(struct tokens *t, struct arena *arena, struct str id, struct str text, struct grant *ret,
		       int *ret_r, struct err *err)
{
	struct known *slot = &t->known[hash_u64(id, 7) % CACHE_SLOTS];
	bool found;

	pthread_mutex_lock(&t->lock);
	found = slot->token && str_eq(jv_get_str(slot->token, "id"), id) &&
		clock_monotonic_ns() - slot->read_ns < TOKEN_CACHE_MS * NS_PER_MS;
	if (found)
		*ret_r = grant_of(arena, slot->token, text, ret, err);
	pthread_mutex_unlock(&t->lock);
	return found;
}

int tokens_check(struct tokens *t, struct ctx *ctx, struct str text, bool may_wait, struct grant *ret_grant,
		 bool *ret_later, struct err *err)
{
	struct str id = str_first(str_from(text, 6), ID_LEN);
	struct ctx own = *ctx;
	struct jv *token = NULL;
	int r = 0;

	*ret_later = false;
	if (text.len != 6 + ID_LEN + 1 + SECRET_LEN || !str_starts(text, STR("stead_")) || !id_ok(id))
		return refuse(err);
	if (find_known(t, ctx->arena, id, text, ret_grant, &r, err))
		return r;
	if (!may_wait && !store_is_local(t->base)) {
		*ret_later = true;
		return 0;
	}
	own.arena = arena_new();
	r = token_read(t->base, &own, id, &token, err);
	if (r == 0 && !str_eq(jv_get_str(token, "id"), id))
		r = -ERR_NOT_FOUND;
	if (r == 0) {
		r = grant_of(ctx->arena, token, text, ret_grant, err);
		remember(t, own.arena, token, id);
		return r;
	}
	arena_destroy(own.arena);
	return r == -ERR_NOT_FOUND ? refuse(err) : r;
}
