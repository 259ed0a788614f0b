/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is written in one canonical form; its hash, with the time and the scope, is what the key signs. Our own,
 * because it is two hundred lines and the libraries that have it bring a whole SDK. The canonical form is exact to
 * the byte: tests hold it to the vectors that AWS published and to another implementation.
 */
#include "net/sigv4.h"

#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/utf8.h"

#define TEXT_MAX SIZE_MAX /* the caller bounds what is signed */

struct sigv4_time sigv4_time(int64_t unix_s)
{
	struct sigv4_time ret;
	time_t t = (time_t)unix_s;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(ret.text, sizeof(ret.text), "%Y%m%dT%H%M%SZ", &tm) != 16)
		memcpy(ret.text, "19700101T000000Z",
		       17); /* no such year: the server will say that the clock is wrong */
	return ret;
}

static struct str day_of(const struct sigv4_time *when)
{
	return str_n(when->text, 8);
}

void sigv4_key_derive(struct sigv4_key *ret, struct str secret, struct sigv4_time when, struct str region,
		      struct str service)
{
	struct buf first;
	uint8_t k[SHA256_LEN];

	buf_init(&first, NULL, TEXT_MAX);
	buf_lit(&first, "AWS4");
	buf_add(&first, secret);
	digest_hmac_sha256(buf_str(&first), day_of(&when), k);
	explicit_bzero(first.ptr, first.len);
	buf_release(&first);
	digest_hmac_sha256(str_n(k, SHA256_LEN), region, k);
	digest_hmac_sha256(str_n(k, SHA256_LEN), service, k);
	digest_hmac_sha256(str_n(k, SHA256_LEN), STR("aws4_request"), ret->bytes);
	memcpy(ret->day, when.text, 8);
	ret->day[8] = 0;
	explicit_bzero(k, sizeof(k));
}

static int param_cmp(const void *a, const void *b)
{
	const struct sigv4_param *x = a, *y = b;
	int c = str_cmp(x->name, y->name);

	return c ? c : str_cmp(x->value, y->value);
}

static struct str encoded(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, TEXT_MAX);
	http_encode(&out, text, false);
	return buf_str(&out);
}

struct str sigv4_query(struct arena *arena, const struct sigv4_param *params, size_t count)
{
	struct sigv4_param *sorted = ARENA_ARRAY(arena, struct sigv4_param, count);
	struct buf out;

	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct sigv4_param){encoded(arena, params[i].name), encoded(arena, params[i].value)};
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), param_cmp);
	buf_init(&out, arena, TEXT_MAX);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_char(&out, '&');
		buf_add(&out, sorted[i].name);
		buf_char(&out, '=');
		buf_add(&out, sorted[i].value);
	}
	return buf_str(&out);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without white space at the ends, and with one blank for each run of it inside. */
static void add_value(struct buf *out, struct str value)
{
	bool gap = false;

	value = str_trim(value);
	for (size_t i = 0; i < value.len; i++) {
		if (is_space(value.ptr[i])) {
			gap = true;
			continue;
		}
		if (gap)
			buf_char(out, ' ');
		gap = false;
		buf_char(out, value.ptr[i]);
	}
}

/* By name only, and stable: fields of one name keep the order in which they are sent. */
static void sort_headers(struct http_header *headers, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct http_header h = headers[i];
		size_t at = i;

		for (; at > 0 && str_cmp(headers[at - 1].name, h.name) > 0; at--)
			headers[at] = headers[at - 1];
		headers[at] = h;
	}
}

struct str sigv4_canonical(struct arena *arena, const char *method, struct str path, struct str query,
			   const struct http_header *headers, size_t count, struct str payload, struct str *ret_signed)
{
	struct http_header *sorted = ARENA_ARRAY(arena, struct http_header, count);
	struct buf names, out;

	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct http_header){str_lower(arena, headers[i].name), headers[i].value};
	sort_headers(sorted, count);
	buf_init(&names, arena, TEXT_MAX);
	buf_init(&out, arena, TEXT_MAX);
	buf_printf(&out, "%s\n", method);
	buf_add(&out, path);
	buf_char(&out, '\n');
	buf_add(&out, query);
	buf_char(&out, '\n');
	for (size_t i = 0; i < count; i++) {
		bool again = i > 0 && str_eq(sorted[i].name, sorted[i - 1].name);
		bool more = i + 1 < count && str_eq(sorted[i].name, sorted[i + 1].name);

		if (!again) {
			if (i > 0)
				buf_char(&names, ';');
			buf_add(&names, sorted[i].name);
			buf_add(&out, sorted[i].name);
		}
		buf_char(&out, again ? ',' : ':');
		add_value(&out, sorted[i].value);
		if (!more)
			buf_char(&out, '\n');
	}
	buf_char(&out, '\n');
	buf_add(&out, buf_str(&names));
	buf_char(&out, '\n');
	buf_add(&out, payload);
	*ret_signed = buf_str(&names);
	return buf_str(&out);
}

/* "20130524/us-east-1/s3/aws4_request" */
static struct str scope_of(struct arena *arena, const struct sigv4 *signer)
{
	struct buf out;

	buf_init(&out, arena, TEXT_MAX);
	buf_add(&out, day_of(&signer->when));
	buf_char(&out, '/');
	buf_add(&out, signer->region);
	buf_char(&out, '/');
	buf_add(&out, signer->service);
	buf_lit(&out, "/aws4_request");
	return buf_str(&out);
}

static struct str sigv4_signature(struct arena *arena, const struct sigv4 *signer, struct str canonical)
{
	uint8_t digest[SHA256_LEN];
	char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
	struct buf out;

	digest_sha256(canonical, digest);
	hex_bytes(digest, SHA256_LEN, hex);
	buf_init(&out, arena, TEXT_MAX);
	buf_printf(&out, "AWS4-HMAC-SHA256\n%s\n", signer->when.text);
	buf_add(&out, scope_of(arena, signer));
	buf_char(&out, '\n');
	buf_add(&out, str_n(hex, 2 * SHA256_LEN));
	digest_hmac_sha256(str_n(signer->key->bytes, SHA256_LEN), buf_str(&out), digest);
	hex_bytes(digest, SHA256_LEN, hex);
	return str_n(hex, 2 * SHA256_LEN);
}

void sigv4_sign(struct arena *arena, const struct sigv4 *signer, const struct sigv4_request *req,
		const struct http_header **ret_headers, size_t *ret_count)
{
	/* host is last while signing; authorization then takes its slot */
	struct http_header *all = ARENA_ARRAY(arena, struct http_header, req->header_count + 4);
	size_t n = req->header_count;
	struct str signature, names;
	struct buf out;

	if (n > 0)
		memcpy(all, req->headers, n * sizeof(*all));
	all[n++] = (struct http_header){STR("x-amz-date"), arena_str(arena, str_n(signer->when.text, 16))};
	all[n++] = (struct http_header){STR("x-amz-content-sha256"), req->payload};
	if (signer->token.len > 0)
		all[n++] = (struct http_header){STR("x-amz-security-token"), signer->token};
	all[n] = (struct http_header){STR("host"), req->host};
	signature = sigv4_signature(arena, signer,
				    sigv4_canonical(arena, req->method, req->path,
						    sigv4_query(arena, req->params, req->param_count), all, n + 1,
						    req->payload, &names));
	buf_init(&out, arena, TEXT_MAX);
	buf_lit(&out, "AWS4-HMAC-SHA256 Credential=");
	buf_add(&out, signer->access_key);
	buf_char(&out, '/');
	buf_add(&out, scope_of(arena, signer));
	buf_lit(&out, ", SignedHeaders=");
	buf_add(&out, names);
	buf_lit(&out, ", Signature=");
	buf_add(&out, signature);
	all[n++] = (struct http_header){STR("authorization"), buf_str(&out)};
	*ret_headers = all;
	*ret_count = n;
}
