/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes up requests with awkward keys, queries and headers, signs them, and prints one JSON object per line for
 * sigv4_test.mjs, which signs them again with another implementation. Text is in hex: nothing to get wrong on the way.
 *   sigv4_cases COUNT SEED
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "net/sigv4.h"

static uint64_t state;

static unsigned draw(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

static struct str text_of(struct arena *arena, const char *const *pieces, unsigned kinds, unsigned most)
{
	struct buf out;
	unsigned n = draw(most + 1);

	buf_init(&out, arena, MIB);
	for (unsigned i = 0; i < n; i++)
		buf_add(&out, str_of(pieces[draw(kinds)]));
	return buf_str(&out);
}

static struct str awkward(struct arena *arena, unsigned most)
{
	static const char *const pieces[] = {
		"a",
		"Z",
		"09",
		"-",
		"_",
		".",
		"~",
		"/",
		"//",
		"..",
		" ",
		"+",
		"%",
		"%20",
		"&",
		"=",
		"?",
		"#",
		"*",
		"'",
		"(",
		")",
		"!",
		"$",
		"@",
		":",
		";",
		",",
		"\"",
		"\\",
		"<",
		"|",
		"\xc3\xa9",
		"\xe6\x97\xa5",
		"\xf0\x9f\x98\x80",
		"\x7f",
		"\t",
	};

	return text_of(arena, pieces, sizeof(pieces) / sizeof(*pieces), most);
}

static void put(const char *name, struct str text, const char *end)
{
	printf("\"%s\":\"", name);
	for (size_t i = 0; i < text.len; i++)
		printf("%02x", (unsigned char)text.ptr[i]);
	printf("\"%s", end);
}

static void put_pair(struct str name, struct str value, bool first)
{
	printf("%s{", first ? "" : ",");
	put("name", name, ",");
	put("value", value, "}");
}

static void one(struct arena *arena)
{
	static const char *const methods[] = {"GET", "PUT", "POST", "HEAD", "DELETE"};
	static const char *const regions[] = {"us-east-1", "auto", "eu-central-1"};
	static const char *const values[] = {"a", " ", "  ", "\t", "=", "\"x\"", ",", "*", "bytes=0-9", "\xc3\xa9"};
	static const char *const names[] = {"Range",        "if-match",     "If-None-Match",    "x-amz-meta-a",
					    "X-Amz-Meta-B", "content-type", "x-amz-copy-source"};
	struct str secret = awkward(arena, 30), region = str_of(regions[draw(3)]), key_text = awkward(arena, 20);
	struct sigv4_key key;
	struct sigv4 signer = {.access_key = STR("AK:ID"), .region = region, .service = STR("s3"), .key = &key};
	struct sigv4_param params[6];
	struct http_header headers[7];
	struct sigv4_request req = {.method = methods[draw(5)],
				    .host = STR("bucket.host:8080"),
				    .params = params,
				    .param_count = draw(7),
				    .headers = headers};
	const struct http_header *signed_headers;
	size_t signed_count;
	struct buf path;
	int64_t when = (int64_t)draw(2000000000);

	buf_init(&path, arena, MIB);
	buf_char(&path, '/');
	http_encode(&path, key_text, true);
	req.path = buf_str(&path);
	for (size_t i = 0; i < req.param_count; i++) {
		struct str name = awkward(arena, 2); /* STR_ARG looks three times */

		params[i] = (struct sigv4_param){arena_printf(arena, "k%.*s", STR_ARG(name)), awkward(arena, 8)};
	}
	for (size_t i = 0; i < 7; i++)
		if (draw(2))
			headers[req.header_count++] =
				(struct http_header){str_of(names[i]), text_of(arena, values, 10, 6)};
	signer.token = draw(2) ? awkward(arena, 20) : STR_NONE;
	signer.when = sigv4_time(when);
	req.payload = draw(2) ? SIGV4_UNSIGNED : SIGV4_EMPTY;
	sigv4_key_derive(&key, secret, signer.when, region, STR("s3"));
	printf("{\"when\":%lld,\"method\":\"%s\",", (long long)when, req.method);
	put("secret", secret, ",");
	put("region", region, ",");
	put("token", signer.token, ",");
	put("key", key_text, ",");
	put("payload", req.payload, ",\"params\":[");
	for (size_t i = 0; i < req.param_count; i++)
		put_pair(params[i].name, params[i].value, i == 0);
	printf("],\"headers\":[");
	for (size_t i = 0; i < req.header_count; i++)
		put_pair(headers[i].name, headers[i].value, i == 0);
	printf("],");
	put("query", sigv4_query(arena, params, req.param_count), ",\"signed\":[");
	sigv4_sign(arena, &signer, &req, &signed_headers, &signed_count);
	for (size_t i = req.header_count; i < signed_count; i++)
		put_pair(signed_headers[i].name, signed_headers[i].value, i == req.header_count);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct arena *arena = arena_new();
	int64_t count = 0, seed = 0;

	if (argc != 3 || !str_to_i64(str_of(argv[1]), &count) || !str_to_i64(str_of(argv[2]), &seed)) {
		fprintf(stderr, "usage: sigv4_cases COUNT SEED\n");
		return 2;
	}
	state = (uint64_t)seed;
	for (int64_t i = 0; i < count; i++) {
		one(arena);
		arena_reset(arena);
	}
	arena_destroy(arena);
	return 0;
}
