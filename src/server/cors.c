/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of other origins, and what may be asked of an address.
 *
 * A browser lets a page of another origin read an answer only if the answer allows it, and asks first (a preflight)
 * where the request is not one that a plain form could send. Only origins that --origin names are allowed; there are no
 * cookies, so credentials are never.
 */
#include "server/server_internal.h"

#define PREFLIGHT_S "600"
#define READABLE                                                                                                       \
	"ETag, Content-Range, Content-Disposition, Accept-Ranges, Allow, Retry-After, WWW-Authenticate, "              \
	"X-Request-Id, Mcp-Session-Id"

void cors_allow(struct exchange *x, struct str origin)
{
	exchange_add_header(x, "Access-Control-Allow-Origin", origin);
	exchange_add_header(x, "Access-Control-Expose-Headers", STR(READABLE));
	exchange_add_header(x, "Vary", STR("Origin"));
	call_of(x)->is_cors = true;
}

/* "authorization, if-match": what is given back must be a list of names. */
static bool is_list_of_names(struct str text)
{
	static const char chars[] = "-_, 0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return text.len > 0 && strspn(text.ptr, chars) == text.len;
}

void answer_options(struct exchange *x, struct str methods)
{
	struct str headers = exchange_header(x, "Access-Control-Request-Headers");

	exchange_add_header(x, "Allow", methods);
	if (call_of(x)->is_cors && exchange_header(x, "Access-Control-Request-Method").ptr) {
		exchange_add_header(x, "Access-Control-Allow-Methods", methods);
		if (is_list_of_names(headers))
			exchange_add_header(x, "Access-Control-Allow-Headers", headers);
		exchange_add_header(x, "Access-Control-Max-Age", STR(PREFLIGHT_S));
	}
	answer_empty(x, 204);
}
