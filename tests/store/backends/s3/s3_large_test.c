/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is larger than the memory it may use, through a real S3 server and back. */
#include "memory_use.h"
#include "store/backends/s3/s3_fix.h"

/* Every 8 bytes are their own offset: a piece that is lost, doubled or misplaced shows. */
struct counted {
	uint64_t at, size;
	bool bad;
};

static int counted_pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct counted *c = arg;
	size_t n = cap / 8 * 8;

	(void)err;
	n = c->size - c->at < n ? (size_t)(c->size - c->at) : n;
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v = c->at + i;

		memcpy((char *)buf + i, &v, 8);
	}
	c->at += n;
	*ret_len = n;
	return 0;
}

static int counted_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	struct counted *c = arg;

	(void)err;
	for (size_t i = (8 - c->at % 8) % 8; i + 8 <= len; i += 8) {
		uint64_t v;

		memcpy(&v, (const char *)bytes + i, 8);
		c->bad |= v != c->at + i;
	}
	c->at += len;
	return 0;
}

static void through(uint64_t mib)
{
	struct conf c = {.ctx = {.arena = arena_new()}, .s = s3_at(NULL, s3_prefix(), "")};
	struct counted in = {.size = mib * MIB}, out = {0};
	struct source source = {.pull = counted_pull, .arg = &in};
	struct sink sink = {.push = counted_push, .arg = &out};
	struct store_stat st;

	memory_peak_begin();
	CHECK_OK(store_write_stream(c.s, &c.ctx, P("big"), &source, ANY, &st, &c.err), c.err);
	CHECK_INT(st.size, in.size);
	CHECK_OK(store_read_stream(c.s, &c.ctx, P("big"), STORE_WHOLE, &sink, NULL, &c.err), c.err);
	CHECK_INT(out.at, in.size);
	CHECK(!out.bad);
	CHECK_OK(store_remove(c.s, &c.ctx, P("big"), false, ANY, NULL, &c.err), c.err);
	CHECK(memory_peak_kib() < 64 * 1024);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

TEST(a_large_file_through_s3_needs_less_than_64_mib)
{
	const char *mib = getenv("STEAD_TEST_S3_MIB"); /* more by hand: what the server's memory holds */

	through(mib ? strtoull(mib, NULL, 10) : 256);
}
