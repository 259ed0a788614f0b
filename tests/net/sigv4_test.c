/* SPDX-License-Identifier: Apache-2.0 */
/* Signing, compared with the vectors that AWS published for S3 and to one of our own with awkward characters. */
#include "net/sigv4.h"
#include "test.h"

#define ACCESS STR("AKIAIOSFODNN7EXAMPLE")
#define SECRET STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
#define MAY_24 INT64_C(1369353600) /* 20130524T000000Z */

struct signed_one {
	struct arena *arena;
	struct sigv4_key key;
	struct sigv4 signer;
};

static void set_up(struct signed_one *s, int64_t unix_s, struct str region)
{
	s->signer = (struct sigv4){.access_key = ACCESS, .region = region, .service = STR("s3"), .key = &s->key};
	s->signer.when = sigv4_time(unix_s);
	sigv4_key_derive(&s->key, SECRET, s->signer.when, region, STR("s3"));
}

static struct str header_of(const struct http_header *headers, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(headers[i].name, name))
			return headers[i].value;
	return STR_NONE;
}

static struct str authorization(struct arena *arena, const struct sigv4 *signer, const struct sigv4_request *req)
{
	const struct http_header *headers;
	size_t count;

	sigv4_sign(arena, signer, req, &headers, &count);
	return header_of(headers, count, "authorization");
}

/* The signature of a request of the published page. */
static void check_signature(struct sigv4_request req, struct str signed_headers, struct str signature)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct signed_one s;

	set_up(&s, MAY_24, STR("us-east-1"));
	if (req.host.len == 0)
		req.host = STR("examplebucket.s3.amazonaws.com");
	if (req.payload.len == 0)
		req.payload = SIGV4_EMPTY;
	CHECK_STR(authorization(arena, &s.signer, &req),
		  arena_printf(arena,
			       "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
			       "SignedHeaders=%.*s, Signature=%.*s",
			       STR_ARG(signed_headers), STR_ARG(signature)));
}

TEST(a_time_is_written_in_the_basic_form)
{
	CHECK_STR(str_of(sigv4_time(MAY_24).text), STR("20130524T000000Z"));
	CHECK_STR(str_of(sigv4_time(INT64_C(1794704523)).text), STR("20261115T010203Z"));
	CHECK_STR(str_of(sigv4_time(INT64_MAX).text), STR("19700101T000000Z"));
}

TEST(the_signing_key_is_the_published_one)
{
	struct signed_one s;
	char hex[64];

	set_up(&s, MAY_24, STR("us-east-1"));
	hex_bytes(s.key.bytes, SHA256_LEN, hex);
	CHECK_STR(str_n(hex, 64), STR("dbb893acc010964918f1fd433add87c70e8b0db6be30c1fbeafefa5ec6ba8378"));
	CHECK_STR(str_of(s.key.day), STR("20130524"));
}

TEST(a_get_with_a_range_is_signed_as_published)
{
	const struct http_header headers[] = {{STR("Range"), STR("bytes=0-9")}};

	check_signature(
		(struct sigv4_request){
			.method = "GET", .path = STR("/test.txt"), .headers = headers, .header_count = 1},
		STR("host;range;x-amz-content-sha256;x-amz-date"),
		STR("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(a_put_with_an_encoded_path_is_signed_as_published)
{
	const struct http_header headers[] = {{STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY")},
					      {STR("date"), STR("Fri, 24 May 2013 00:00:00 GMT")}};

	check_signature(
		(struct sigv4_request){.method = "PUT",
				       .path = STR("/test%24file.text"),
				       .headers = headers,
				       .header_count = 2,
				       .payload =
					       STR("44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")},
		STR("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class"),
		STR("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(a_query_without_a_value_is_signed_as_published)
{
	const struct sigv4_param params[] = {{STR("lifecycle"), STR_NONE}};

	check_signature((struct sigv4_request){.method = "GET", .path = STR("/"), .params = params, .param_count = 1},
			STR("host;x-amz-content-sha256;x-amz-date"),
			STR("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(a_query_in_any_order_is_signed_as_published)
{
	const struct sigv4_param params[] = {{STR("prefix"), STR("J")}, {STR("max-keys"), STR("2")}};

	check_signature((struct sigv4_request){.method = "GET", .path = STR("/"), .params = params, .param_count = 2},
			STR("host;x-amz-content-sha256;x-amz-date"),
			STR("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(the_head_of_a_chunked_put_is_signed_as_published)
{
	const struct http_header headers[] = {{STR("content-encoding"), STR("aws-chunked")},
					      {STR("content-length"), STR("66824")},
					      {STR("x-amz-decoded-content-length"), STR("66560")},
					      {STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY")}};

	check_signature((struct sigv4_request){.method = "PUT",
					       .host = STR("s3.amazonaws.com"),
					       .path = STR("/examplebucket/chunkObject.txt"),
					       .headers = headers,
					       .header_count = 4,
					       .payload = STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")},
			STR("content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
			    "x-amz-decoded-content-length;x-amz-storage-class"),
			STR("4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"));
}

TEST(a_conditional_put_to_region_auto_has_its_known_signature)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct http_header headers[] = {{STR("if-none-match"), STR("*")}};
	struct sigv4_request req = {.method = "PUT",
				    .host = STR("acct.r2.cloudflarestorage.com"),
				    .path = STR("/my-bucket/a%20b%2Bc/%C3%A9%24.txt"),
				    .headers = headers,
				    .header_count = 1};
	uint8_t digest[SHA256_LEN];
	char hex[64];
	struct signed_one s;

	digest_sha256(STR("hello"), digest);
	hex_bytes(digest, SHA256_LEN, hex);
	req.payload = str_n(hex, 64);
	set_up(&s, INT64_C(1794704523), STR("auto"));
	CHECK_HAS(authorization(arena, &s.signer, &req),
		  STR("Signature=d948a31dc1cf7d9a76d21297bf32ebdac72627db29403bfca0cb3191af6bc51e"));
}

TEST(a_session_token_is_sent_and_signed)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct sigv4_request req = {.method = "GET", .host = STR("h"), .path = STR("/"), .payload = SIGV4_UNSIGNED};
	const struct http_header *headers;
	struct signed_one s;
	size_t count;

	set_up(&s, MAY_24, STR("us-east-1"));
	s.signer.token = STR("tok/en==");
	sigv4_sign(arena, &s.signer, &req, &headers, &count);
	CHECK_STR(header_of(headers, count, "x-amz-security-token"), STR("tok/en=="));
	CHECK_HAS(header_of(headers, count, "authorization"),
		  STR("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
}

TEST(header_values_are_folded_and_fields_of_one_name_are_joined_in_their_order)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct http_header headers[] = {{STR("X-B"), STR("  two   words\t ")},
					      {STR("x-a"), STR("z")},
					      {STR("Host"), STR("h")},
					      {STR("X-A"), STR("a")}};
	struct str names;

	CHECK_STR(sigv4_canonical(arena, "GET", STR("/a//b/../c"), STR("q="), headers, 4, STR("P"), &names),
		  STR("GET\n/a//b/../c\nq=\nhost:h\nx-a:z,a\nx-b:two words\n\nhost;x-a;x-b\nP"));
	CHECK_STR(names, STR("host;x-a;x-b"));
}

TEST(a_query_is_sorted_by_its_encoded_names_and_then_values)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct sigv4_param params[] = {{STR("a-b"), STR("1")}, {STR("a"), STR("2 +")},
					     {STR("a"), STR("10")},  {STR("\xc3\xa9"), STR("/")},
					     {STR("A"), STR("~")},   {STR("a="), STR_NONE}};

	CHECK_STR(sigv4_query(arena, params, 6), STR("%C3%A9=%2F&A=~&a=10&a=2%20%2B&a%3D=&a-b=1"));
	CHECK_STR(sigv4_query(arena, NULL, 0), STR_NONE);
}

TEST(digests_are_the_published_ones)
{
	uint8_t out[SHA256_LEN];
	struct digest *piecewise;
	struct err err;
	char hex[64];
	char long_key[131];

	digest_sha256(STR("abc"), out);
	hex_bytes(out, SHA256_LEN, hex);
	CHECK_STR(str_n(hex, 64), STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	piecewise = digest_sha256_begin();
	digest_add(piecewise, STR("a"));
	digest_add(piecewise, STR_NONE);
	digest_add(piecewise, STR("bc"));
	digest_end(piecewise, out);
	hex_bytes(out, SHA256_LEN, hex);
	CHECK_STR(str_n(hex, 64), STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	/* RFC 4231, case 6: a key longer than a block */
	memset(long_key, 0xaa, sizeof(long_key));
	digest_hmac_sha256(str_n(long_key, sizeof(long_key)),
			   STR("Test Using Larger Than Block-Size Key - Hash Key First"), out);
	hex_bytes(out, SHA256_LEN, hex);
	CHECK_STR(str_n(hex, 64), STR("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
	CHECK_OK(digest_md5(STR("abc"), out, &err), err);
	hex_bytes(out, MD5_LEN, hex);
	CHECK_STR(str_n(hex, 32), STR("900150983cd24fb0d6963f7d28e17f72"));
}
