/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: who may use the server, and for what. A token is a secret text that is shown once; the store keeps its
 * SHA-256 only, in a file of its own below .stead/tokens of the store, which belongs to no workspace and which no tool
 * can name.
 */
#ifndef STEAD_SERVER_TOKENS_H
#define STEAD_SERVER_TOKENS_H

#include "store/store.h"
#include "text/jv.h"

/* Each includes those before it. ADMIN: makes workspaces, and sees the numbers of the server. */
enum access { ACCESS_NONE, ACCESS_READ, ACCESS_WRITE, ACCESS_ADMIN };
const char *access_name(enum access access);

/* What the holder of a token may do. */
struct grant {
	struct str id; /* of the token; empty: the server is open */
	enum access access;
	/* Names, or NULL: all workspaces; no user (the shared workspace). In `users`, "*" is any user. */
	const struct jv *workspaces, *users;
};
bool grant_covers_workspace(const struct grant *grant, struct str workspace);
/* The user to act as: `wanted`, or without one the only user of the grant. ERR_DENIED: another one's. */
int grant_user(const struct grant *grant, struct str wanted, struct str *ret_user, struct err *err);

struct token_want {
	struct str name;
	enum access access;
	const struct str *workspaces, *users;
	size_t workspace_count, user_count;
	int64_t expires_ns; /* real time; 0: never */
};
/* `base` is the store of all workspaces. *ret: {id, name, access, workspaces?, users?, created, expires?} and "token",
   the secret. */
int token_create(struct store *base, struct ctx *ctx, const struct token_want *want, struct jv **ret, struct err *err);
/* The same without the secret, "expired" where it has, by id. */
int token_list(struct store *base, struct ctx *ctx, struct jv **ret, struct err *err);
int token_revoke(struct store *base, struct ctx *ctx, struct str id, struct err *err);
/* ERR_NOT_FOUND: it was revoked or has expired. */
int token_exists(struct store *base, struct ctx *ctx, struct str id, struct err *err);
/* True when there is at least one. */
int token_any(struct store *base, struct ctx *ctx, bool *ret, struct err *err);

/* Tokens that were looked at lately. A token that was revoked is refused after TOKEN_CACHE_MS at the latest. */
struct tokens;
struct tokens *tokens_new(struct store *base);
void tokens_destroy(struct tokens *tokens);
/* ERR_UNAUTHENTICATED: it is not a token, unknown, revoked or expired. Without `may_wait` a store that is not on this
   machine is not asked: then *ret_later is set. */
int tokens_check(struct tokens *tokens, struct ctx *ctx, struct str text, bool may_wait, struct grant *ret_grant,
		 bool *ret_later, struct err *err);

#endif
