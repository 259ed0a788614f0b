/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client may send. The bytes go through the framing and the envelope with a small line ceiling, and then to a
 * whole server over a workspace in memory. Beyond "does not crash": the reader gives back every line within the ceiling
 * unchanged, an envelope that is accepted has what it promises, and whatever the server says is one JSON object a line.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"

#define LINE_MAX_HERE 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static int file_of(struct str bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0);
	require(bytes.len == 0 || write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void check_framing(struct str bytes)
{
	struct rpc_reader r;
	struct str line, want, rest = bytes;
	enum rpc_got got;
	int fd = file_of(bytes);

	rpc_reader_init(&r, fd, LINE_MAX_HERE);
	while ((got = rpc_reader_next(&r, &line)) != RPC_END) {
		if (got == RPC_NEED_MORE) {
			rpc_reader_fill(&r);
			continue;
		}
		require(str_cut(&rest, '\n', &want));
		require((got == RPC_TOO_LONG) == (want.len > LINE_MAX_HERE));
		if (want.len && want.ptr[want.len - 1] == '\r')
			want.len--;
		require(got == RPC_TOO_LONG || str_eq(line, want));
	}
	rpc_reader_release(&r);
	close(fd);
}

static void check_envelope(struct str bytes)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str line;

	while (str_cut(&bytes, '\n', &line)) {
		struct rpc_message m;
		struct err err;

		if (rpc_parse(arena, line, &m, &err) != 0)
			continue;
		require((m.kind == RPC_REQUEST) <= (m.id != NULL));
		require(m.kind == RPC_RESPONSE || m.method.ptr);
		require(!m.params || m.params->type == JV_OBJECT);
	}
}

static void check_server(struct str bytes)
{
	static struct workspace *ws;
	static struct toolset *set;
	struct workspace_opts opts = {.store_url = STR("memory:"), .name = STR("fuzz"), .create = true};
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	int in = file_of(bytes), out = file_of(STR(""));
	struct rpc_reader r;
	struct str line;
	struct err err;
	enum rpc_got got;

	if (!ws)
		require(workspace_open(&opts, &ws, &err) == 0 && toolset_new(ws, STR(""), &set, &err) == 0);
	require(mcp_serve_stdio(ws, set, &(struct mcp_opts){0}, in, out, &err) == 0);
	lseek(out, 0, SEEK_SET);
	rpc_reader_init(&r, out, SIZE_MAX / 2);
	while ((got = rpc_reader_next(&r, &line)) != RPC_END) {
		struct jv *v;

		if (got == RPC_NEED_MORE) {
			rpc_reader_fill(&r);
			continue;
		}
		require(jv_parse(arena, line, &v, &err) == 0 && v->type == JV_OBJECT);
	}
	rpc_reader_release(&r);
	/* the next input finds an empty workspace: a find must be found again */
	require(store_remove(workspace_files(ws), &ctx, WPATH_ROOT, true, (struct store_cond){0}, NULL, &err) == 0);
	close(in);
	close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = str_n(data, size);

	check_framing(bytes);
	check_envelope(bytes);
	check_server(bytes);
	return 0;
}
