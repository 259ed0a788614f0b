/* SPDX-License-Identifier: Apache-2.0 */
/* What clients write into targets and headers, parsed once. Nothing here has a state or does input or output. */
#ifndef STEAD_SERVER_PARSE_H
#define STEAD_SERVER_PARSE_H

#include "base/err.h"
#include "store/wpath.h"

/* "127.0.0.1:7777", "[::1]:0", "localhost:80", ":7777" (loopback), "7777". */
int listen_parse(struct str text, struct str *ret_host, uint16_t *ret_port, struct err *err);
/* True for addresses and names that only this machine reaches. */
bool host_is_loopback(struct str host);
/* "name", "name:80", "[::1]:80": the name without its port; ptr NULL: malformed. */
struct str host_name(struct str host);
/* "https://host[:port]": the part after "//"; ptr NULL: malformed, or "null". */
struct str origin_host(struct str origin);

/* A parameter of a query, decoded, in the arena. False: the query does not have it. */
int query_get(struct arena *arena, struct str query, const char *name, struct str *ret, bool *ret_found,
	      struct err *err);
/* The same as a number up to max; *ret is left as it is if the query does not have it. */
int query_number(struct arena *arena, struct str query, const char *name, uint64_t max, uint64_t *ret, struct err *err);
/* "true", "1" or nothing after the name; "false" or "0". */
int query_flag(struct arena *arena, struct str query, const char *name, bool *ret, struct err *err);
/* ERR_INVALID: a parameter that is not in `known`, whose names have blanks between them. */
int query_check(struct str query, const char *known, struct err *err);

/* The rest of a target as a path of a workspace. */
int target_path(struct arena *arena, struct str raw, struct wpath *ret, struct err *err);

enum range_kind { RANGE_WHOLE, RANGE_PART, RANGE_BEYOND };
/* "bytes=0-99", "bytes=100-", "bytes=-100" of a file of `size` bytes. What is malformed, or asks for several parts,
   counts as the whole, as RFC 9110 allows. RANGE_BEYOND: no byte of it exists. */
enum range_kind range_parse(struct str header, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length);

/* True when `"version"`, or "*", is in a list of entity tags. `weak`: a tag that begins with W/ counts too. */
bool etag_matches(struct str header, struct str version, bool weak);
/* The only tag of a list, without its quotes; ptr NULL: there are several, or it is malformed or weak. */
struct str etag_single(struct str header);

/* "Bearer TOKEN"; ptr NULL: another scheme, or malformed. */
struct str bearer_token(struct str header);
/* By the name of the file. */
const char *content_type(struct str name);

#endif
