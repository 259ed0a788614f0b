/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links to one file or directory that work without a token, for a while: for a browser's downloads and media, and to
 * hand to somebody. A link works once, unless its maker wants otherwise, and never longer than the token that made it.
 *
 * The secret of a link is in its address alone. The store keeps a small file for each, below .stead/links of the store,
 * named by the time at which it ends and the SHA-256 of the secret; so every replica knows it, exactly one of them gets
 * to use up a link that works once, and those that have ended are found by their names.
 */
#ifndef STEAD_SERVER_LINKS_H
#define STEAD_SERVER_LINKS_H

#include "store/store.h"
#include "text/jv.h"

struct links;

struct links *links_new(struct store *base);
void links_destroy(struct links *links);
/* Removes those that have ended, if this process made any since the last time. */
void links_sweep(struct links *links);

/* Stores what a link is to, for `seconds`. *ret_secret: what its address ends with. ERR_RATE_LIMITED: there are too
   many. */
int link_create(struct links *links, struct ctx *ctx, struct jv *what, int64_t seconds, struct str *ret_secret,
		struct err *err);
/* What it is to; with `use`, a link that works once ("once" in it) is used up. ERR_NOT_FOUND: unknown, used or ended.
 */
int link_find(struct links *links, struct ctx *ctx, struct str secret, bool use, struct jv **ret_what, struct err *err);

#endif
