/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client learns what is here: the handshake of the older revisions, discovery in the newer one.
 */
#include "mcp/server.h"
#include "stead.h"

#define TTL_DISCOVER_MS 3600000

static const char instructions[] =
	"A workspace of plain files that lasts between calls, restarts and machines. Paths are relative to its root, "
	"with '/' "
	"between elements; '..' is refused. Calls may be answered in another order than they were made: wait for a "
	"write's answer before you build on it. Every file is also a resource, stead:/// and its path.";

static const struct {
	const char *version;
	enum form form;
} legacy_versions[] = {
	/* newest first: the first one is offered to a client that asks for something unknown */
	{"2025-11-25", FORM_STRUCTURED},
	{"2025-06-18", FORM_STRUCTURED},
	{"2025-03-26", FORM_PLAIN},
	{"2024-11-05", FORM_PLAIN},
};

static struct jv *capabilities(struct arena *arena)
{
	struct jv *caps = jv_object(arena), *resources = jv_object(arena);

	/* the tools of a session never change, so there is no listChanged for them */
	jv_set(arena, caps, "tools", jv_object(arena));
	jv_set_bool(arena, resources, "subscribe", true);
	jv_set_bool(arena, resources, "listChanged", true);
	jv_set(arena, caps, "resources", resources);
	jv_set(arena, caps, "completions", jv_object(arena));
	return caps;
}

void method_initialize(struct request *req)
{
	struct str wanted = jv_get_str(req->params, "protocolVersion");
	struct jv *result = jv_object(req->arena), *info = jv_object(req->arena);
	size_t chosen = 0;

	for (size_t i = 0; i < COUNT(legacy_versions); i++)
		if (str_is(wanted, legacy_versions[i].version))
			chosen = i;
	req->server->legacy_form = legacy_versions[chosen].form;
	subs_add_session(req->server);
	jv_set_str(req->arena, result, "protocolVersion", str_of(legacy_versions[chosen].version));
	jv_set(req->arena, result, "capabilities", capabilities(req->arena));
	jv_set_str(req->arena, info, "name", STR("stead"));
	jv_set_str(req->arena, info, "title", STR("Stead"));
	jv_set_str(req->arena, info, "version", STR(STEAD_VERSION));
	jv_set(req->arena, result, "serverInfo", info);
	jv_set_str(req->arena, result, "instructions", str_of(instructions));
	reply_value(req, result);
}

void method_discover(struct request *req)
{
	struct jv *result = jv_object(req->arena), *versions = jv_array(req->arena);

	jv_push(req->arena, versions, jv_str(req->arena, STR("2026-07-28")));
	jv_set(req->arena, result, "supportedVersions", versions);
	jv_set(req->arena, result, "capabilities", capabilities(req->arena));
	jv_set_str(req->arena, result, "instructions", str_of(instructions));
	reply_cache_hint(req, result, TTL_DISCOVER_MS);
	reply_value(req, result);
}

void method_empty(struct request *req)
{
	reply_value(req, NULL);
}
