/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Chromium of our own and its DevTools protocol over a pipe: JSON messages with a NUL after each. The browser ends
 * when its end of the pipe is closed, so it does not outlive this process, however that ends. Not thread-safe.
 */
#ifndef STEAD_HOME_BROWSER_CDP_H
#define STEAD_HOME_BROWSER_CDP_H

#include "base/ctx.h"
#include "text/jv.h"

struct cdp;

struct cdp_opts {
	const char *program;
	const char *dir;     /* its profile, and its home */
	uint16_t proxy_port; /* through which all its connections go */
	/* Called for each event, while a call waits. It may call cdp_post(). */
	void (*event)(void *arg, struct arena *arena, struct str method, const struct jv *message);
	void *arg;
};

/* Strings of `opts` must outlive it. ERR_UNAVAILABLE: it did not start. */
int cdp_open(struct ctx *ctx, const struct cdp_opts *opts, struct cdp **ret, struct err *err);
/* Ends the browser and all that it started. NULL is allowed. */
void cdp_close(struct cdp *cdp);
/* One command; `session` empty: the browser itself. `params` may be NULL; *ret (may be NULL) is in ctx->arena.
   ERR_INVALID: the browser refuses it, with its words; ERR_UNAVAILABLE: it has ended. */
int cdp_call(struct cdp *cdp, struct ctx *ctx, struct str session, const char *method, const struct jv *params,
	     struct jv **ret, struct err *err);
/* Sends a command and does not wait for its answer. */
void cdp_post(struct cdp *cdp, struct arena *arena, struct str session, const char *method, const struct jv *params);
/* Takes events until `until` says so or the time (clock_monotonic_ns) has come. */
int cdp_wait(struct cdp *cdp, struct ctx *ctx, bool (*until)(void *arg), int64_t until_ns, struct err *err);

#endif
