/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http and https URLs, parsed once and strictly. What two parsers could read differently (a user name, a backslash, a
 * control character, a name that is not ASCII) is refused, so that the host that was checked is the host that is asked.
 */
#ifndef STEAD_NET_URL_H
#define STEAD_NET_URL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct url {
	bool tls;
	struct str host; /* a name in small letters without a dot at its end, or an address; IPv6 without brackets */
	uint16_t port;
	struct str target; /* path and query: begins with '/', all characters legal, no fragment */
};

/* ERR_INVALID. Illegal characters of the path and the query are percent-encoded. */
int url_parse(struct arena *arena, struct str text, struct url *ret, struct err *err);
/* A reference as a page or a redirect has it: a whole URL, or one relative to `base`. */
int url_join(struct arena *arena, const struct url *base, struct str reference, struct url *ret, struct err *err);
/* NUL-terminated; the port only where it is not the usual one. */
struct str url_format(struct arena *arena, const struct url *url);

#endif
