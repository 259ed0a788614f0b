/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4 as S3 and its kin understand it. Pure functions: no clock, no I/O. Paths are signed as they
 * are sent (encoded once, never normalised); a query is sorted and encoded here, and must be sent in that form.
 */
#ifndef STEAD_NET_SIGV4_H
#define STEAD_NET_SIGV4_H

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "net/digest.h"
#include "net/http.h"

#define SIGV4_UNSIGNED STR("UNSIGNED-PAYLOAD")
#define SIGV4_EMPTY    STR("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") /* of no bytes */

/* "20130524T000000Z"; the first 8 characters are the day. */
struct sigv4_time {
	char text[17];
};
struct sigv4_time sigv4_time(int64_t unix_s);

/* The key of a day, a region and a service, worth keeping: it is four HMACs. */
struct sigv4_key {
	uint8_t bytes[SHA256_LEN];
	char day[9];
};
void sigv4_key_derive(struct sigv4_key *ret, struct str secret, struct sigv4_time when, struct str region,
		      struct str service);

/* Who signs, and where that is valid. `key` must be of the day of `when`. */
struct sigv4 {
	struct str access_key, token; /* token: of temporary credentials, else empty */
	struct str region, service;
	const struct sigv4_key *key;
	struct sigv4_time when;
};

/* A part of a query, not encoded. A name without '=' is signed and sent as `name=`. */
struct sigv4_param {
	struct str name, value;
};

struct sigv4_request {
	const char *method;
	struct str host;                  /* with the port, unless it is the scheme's own */
	struct str path;                  /* encoded, from its '/' on */
	const struct sigv4_param *params; /* any order */
	size_t param_count;
	const struct http_header *headers; /* all of them are signed; without host and x-amz-date */
	size_t header_count;
	struct str payload; /* hex SHA-256 of the body, or SIGV4_UNSIGNED */
};

/* "a=1&b=%20", sorted: the text after '?' (nothing: empty). */
struct str sigv4_query(struct arena *arena, const struct sigv4_param *params, size_t count);

/* All headers to send (but for host, which the client makes of the URL): the request's, x-amz-date,
   x-amz-content-sha256, x-amz-security-token where there is one, and authorization. */
void sigv4_sign(struct arena *arena, const struct sigv4 *signer, const struct sigv4_request *req,
		const struct http_header **ret_headers, size_t *ret_count);

/* The steps, for tests against published vectors. `headers` in any order, with host. */
struct str sigv4_canonical(struct arena *arena, const char *method, struct str path, struct str query,
			   const struct http_header *headers, size_t count, struct str payload, struct str *ret_signed);

#endif
