/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an MCP server may send to its client: a message while a request runs, a challenge for a login, and a tool's
 * schema with marks for headers. A header that is made from it must be one line, and a part of a challenge is within
 * the challenge.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "mcp/oauth_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_challenge(struct str text)
{
	static const char *const names[] = {"resource_metadata", "scope", "error"};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct str value = oauth_challenge_param(text, names[i]);

		require(!value.ptr || (value.ptr >= text.ptr && value.ptr + value.len <= text.ptr + text.len));
	}
}

static void check_line(struct str value)
{
	for (size_t i = 0; i < value.len; i++)
		require(value.ptr[i] != '\n' && value.ptr[i] != '\r' && value.ptr[i] != 0);
}

/* The value as a schema, and as arguments for it. */
static void check_marks(struct arena *arena, struct str text)
{
	struct http_header headers[16];
	struct err err;
	struct jv *v;
	size_t count;

	check_line(mcp_header_value(arena, text));
	if (jv_parse(arena, text, &v, &err) != 0 || v->type != JV_OBJECT)
		return;
	if (!mcp_header_marks_ok(v))
		return;
	count = mcp_param_headers(arena, v, jv_get(v, "args"), headers, COUNT(headers));
	require(count <= COUNT(headers));
	for (size_t i = 0; i < count; i++) {
		check_line(headers[i].name);
		check_line(headers[i].value);
	}
	mcp_form_values(arena, v, jv_get(v, "args"));
}

static int reply(struct mcp_client *c, struct ctx *ctx, struct str line, struct err *err)
{
	struct jv *v;

	(void)c;
	require(jv_parse(ctx->arena, str_trim(line), &v, err) == 0);
	return 0;
}

static void check_message(struct arena *arena, struct str text)
{
	struct jv *server = jv_object(arena);
	struct mcp_client *c = mcp_client_new(STR("s"), server);
	struct ctx ctx = {.arena = arena};
	struct flight f = {.c = c, .ctx = &ctx, .id = 1};
	struct err err;

	jv_set_str(arena, server, "transport", STR("stdio"));
	jv_set_bool(arena, server, "elicitation", true);
	require(mcp_take(&f, text, reply, &err) == 0);
	mcp_client_destroy(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str text = str_n(data, size);

	if (size > 64 * KIB)
		return 0;
	check_challenge(text);
	check_marks(arena, text);
	check_message(arena, text);
	return 0;
}
