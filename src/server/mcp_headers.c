/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that repeat what is in the body of an MCP request, so that programs on the way can route it without reading
 * the body. They are checked against it, because what the two disagree about could be used to get past such a program.
 */
#include "base/base64.h"
#include "server/mcp_door.h"
#include "text/jv.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MODERN       "2026-07-28"
#define META_CAPS    "io.modelcontextprotocol/clientCapabilities"

static bool is_legacy_version(struct str version)
{
	static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

	for (size_t i = 0; i < COUNT(versions); i++)
		if (str_is(version, versions[i]))
			return true;
	return false;
}

bool mcp_is_modern(const struct mcp_headers *headers, const struct rpc_message *msg)
{
	const struct jv *meta = jv_get(msg->params, "_meta");

	return (headers->version.ptr && !is_legacy_version(headers->version)) || jv_get(meta, META_VERSION) ||
	       jv_get(meta, META_CAPS);
}

bool mcp_describes_itself(const struct rpc_message *msg)
{
	const struct jv *meta = jv_get(msg->params, "_meta"), *caps = jv_get(meta, META_CAPS);

	return jv_str_of(jv_get(meta, META_VERSION)).ptr && caps && caps->type == JV_OBJECT;
}

/* "=?base64?…?=" holds text that a header cannot; ptr NULL: it is malformed. */
static struct str decode_value(struct arena *arena, struct str value)
{
	struct str bytes;

	value = str_trim(value);
	if (value.len < 11 || !str_starts(value, STR("=?base64?")) || !str_ends(value, STR("?=")))
		return value;
	value = str_first(str_from(value, 9), value.len - 11);
	if (!base64_decode(arena, value, &bytes) || !utf8_valid(bytes))
		return STR_NONE;
	return bytes;
}

/* The member of params that Mcp-Name repeats; NULL: none. */
static const char *named_by(struct str method)
{
	if (str_is(method, "tools/call") || str_is(method, "prompts/get"))
		return "name";
	return str_is(method, "resources/read") ? "uri" : NULL;
}

const char *mcp_headers_wrong(struct arena *arena, const struct mcp_headers *headers, const struct rpc_message *msg)
{
	const char *member = named_by(msg->method);
	const struct jv *version = jv_get(jv_get(msg->params, "_meta"), META_VERSION);
	struct str name;

	if (!version && headers->version.ptr && !str_is(str_trim(headers->version), MODERN) &&
	    !is_legacy_version(str_trim(headers->version)))
		return "this version of the protocol is not supported: MCP-Protocol-Version must be 2026-07-28, or "
		       "after initialize one from 2024-11-05 to 2025-11-25";
	if (!headers->method.ptr)
		return "the header Mcp-Method is missing; it must be the method of the request";
	if (!str_eq(str_trim(headers->method), msg->method))
		return "the header Mcp-Method is not the method of the request";
	if (member) {
		if (!headers->name.ptr)
			return "the header Mcp-Name is missing; it must be the name or URI that the request is about";
		name = decode_value(arena, headers->name);
		if (!name.ptr)
			return "the header Mcp-Name is not encoded correctly";
		if (!str_eq(name, jv_get_str(msg->params, member)))
			return "the header Mcp-Name differs from the name or URI in the request";
	}
	/* a version that is missing in the body is reported as that (-32602) */
	if (version && !headers->version.ptr)
		return "the header MCP-Protocol-Version is missing";
	if (version && !str_eq(str_trim(headers->version), jv_str_of(version)))
		return "the header MCP-Protocol-Version is not the version in the request";
	return NULL;
}
