/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle from a stranger. Checksums keep a fuzzer out, so the input is either an archive as it is (first byte 0), or
 * a list of entries (name and content, a length byte before each) that is made into an archive whose sums are right.
 * Beyond "does not crash": what is refused leaves nothing and has a sentence; what is taken is one workspace, without
 * secrets and without anything outside its directory.
 */
#include <stdint.h>
#include <stdlib.h>

#include "admin/bundle.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "store/stores.h"
#include "text/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static struct str cut(struct str *rest)
{
	size_t len = rest->len ? (unsigned char)rest->ptr[0] : 0;
	struct str piece = str_first(str_from(*rest, rest->len ? 1 : 0), len);

	*rest = str_from(*rest, rest->len ? 1 + piece.len : 0);
	return piece;
}

static void add(struct buf *out, struct str name, struct str bytes)
{
	static const char zeros[TAR_BLOCK];
	struct tar_entry e = {name, bytes.len, 0};

	tar_header(out, &e);
	buf_add(out, bytes);
	buf_add(out, str_n(zeros, tar_padding(bytes.len)));
}

/* The entries, the sums over them, and the end. */
static struct str forge(struct arena *arena, struct str rest)
{
	static const char zeros[TAR_END_LEN];
	struct buf out, sums;
	struct str sum;

	buf_init(&out, arena, 4 * MIB);
	buf_init(&sums, arena, 4 * MIB);
	while (rest.len) {
		struct str name = cut(&rest), bytes = cut(&rest);

		add(&out, name, bytes);
		buf_printf(&sums, "%.*s  %.*s\n", STR_ARG(sha256_hex(arena, bytes)), STR_ARG(name));
	}
	sum = sha256_hex(arena, buf_str(&sums));
	buf_printf(&sums, "# all %.*s\n", STR_ARG(sum));
	add(&out, STR("SHA256SUMS"), buf_str(&sums));
	buf_add(&out, str_n(zeros, sizeof(zeros)));
	return buf_str(&out);
}

static void check(struct ctx *ctx, struct store *base, int r, const struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page;
	struct err ignored;
	struct str name = STR_NONE;

	require(store_list(base, ctx, WPATH_ROOT, &req, &page, &ignored) == 0);
	require(r == 0 || (page.count == 0 && err->kind != ERR_NONE && err->msg[0]));
	for (size_t i = 0; i < page.count; i++) {
		struct str path = page.entries[i].path.s, first;

		require(str_cut(&path, '/', &first) && workspace_name_ok(first));
		require(!name.len || str_eq(name, first));
		name = first;
		require(!str_eq(path, STR(".env")) && !str_eq(path, STR(".stead/fork.json")));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct store *base = store_memory_new();
	struct str input = str_n(data, size);
	struct source source = {.bytes = str_from(input, size ? 1 : 0)};
	struct jv *report;
	struct err err = {0};
	int r;

	if (size && data[0])
		source.bytes = forge(arena, source.bytes);
	r = bundle_import_into(&ctx, base, &source, STR_NONE, &report, &err);
	check(&ctx, base, r, &err);
	store_destroy(base);
	return 0;
}
