/* SPDX-License-Identifier: Apache-2.0 */
/* Streams larger than the memory they may use. The build runs the small one with the fast tests, the large one not. */
#include "memory_use.h"
#include "store/backends/disk/disk_fix.h"

struct stream {
	uint64_t at, size;
	bool bad;
};

/* Every 8 bytes are their own offset: a piece that is lost, doubled or misplaced shows. */
static void fill(uint64_t at, char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)((at + i) >> (8 * ((at + i) % 8)));
}

static int pull(void *arg, void *buf, size_t cap, size_t *ret_len, struct err *err)
{
	struct stream *s = arg;
	size_t n = s->size - s->at < cap ? (size_t)(s->size - s->at) : cap;

	(void)err;
	fill(s->at, buf, n);
	s->at += n;
	*ret_len = n;
	return 0;
}

static int push(void *arg, const void *bytes, size_t len, struct err *err)
{
	static char want[STREAM_CHUNK];
	struct stream *s = arg;

	(void)err;
	if (len <= sizeof(want))
		fill(s->at, want, len);
	s->bad |= len > sizeof(want) || memcmp(want, bytes, len) != 0;
	s->at += len;
	return 0;
}

static void check_stream(uint64_t size)
{
	struct fix f = fix_new(true);
	struct stream in = {.size = size}, out = {.size = size};
	struct source source = {.pull = pull, .arg = &in};
	struct sink sink = {.push = push, .arg = &out};
	struct store_stat st;

	memory_peak_begin();
	CHECK_OK(store_write_stream(f.s, &f.ctx, P("big"), &source, ANY, &st, &f.err), f.err);
	CHECK_INT(st.size, size);
	CHECK_OK(store_copy(f.s, &f.ctx, P("big"), P("copy"), ANY, NULL, &f.err), f.err);
	CHECK_OK(store_read_stream(f.s, &f.ctx, P("copy"), STORE_WHOLE, &sink, NULL, &f.err), f.err);
	CHECK_INT(out.at, size);
	CHECK(!out.bad);
	CHECK(memory_peak_kib() < 16 * 1024);
}

TEST(a_stream_of_64_mib_needs_less_than_16_mib)
{
	check_stream(64 * MIB + 5);
}

TEST(a_stream_of_1_gib_needs_less_than_16_mib)
{
	check_stream(1024 * MIB + 5);
}
