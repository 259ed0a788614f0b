/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of Telegram's Bot API. The token is part of every URL, so no URL is ever part of a message. */
#ifndef STEAD_RUNNER_CHANNELS_TELEGRAM_API_H
#define STEAD_RUNNER_CHANNELS_TELEGRAM_API_H

#include "base/ctx.h"
#include "text/jv.h"

struct telegram_api;

/* What the service said about a call that failed. */
struct telegram_failure {
	int code;           /* 400, 403, 409, …; 0: no answer came */
	struct str text;    /* its description */
	int64_t migrate_to; /* the group has this id now; 0: it has not moved */
};

/* Both are copied. */
struct telegram_api *telegram_api_new(struct str base_url, struct str token);
void telegram_api_destroy(struct telegram_api *api);

/*
 * Calls a method with parameters (an object; NULL: none). Waits as long as the service asks (429) and tries again, and
 * also after network faults and errors of the service, but never repeats a message that may have been delivered.
 * ERR_UNAUTHENTICATED: the token is refused. ERR_CONFLICT: another program polls. ERR_DENIED: the chat does not want
 * the bot. ERR_INVALID: everything else that is refused. *ret_failure may be NULL.
 */
int telegram_call(struct telegram_api *api, struct ctx *ctx, const char *method, const struct jv *params,
		  struct jv **ret_result, struct telegram_failure *ret_failure, struct err *err);
/* The same for sendDocument, with a file. */
int telegram_send_file(struct telegram_api *api, struct ctx *ctx, const struct jv *params, struct str name,
		       struct str bytes, struct jv **ret_result, struct telegram_failure *ret_failure, struct err *err);
/* The bytes of a file that a message names; ERR_TOO_LARGE over 20 MB, which bots cannot get. */
int telegram_get_file(struct telegram_api *api, struct ctx *ctx, struct str file_id, struct str *ret_bytes,
		      struct err *err);

#endif
