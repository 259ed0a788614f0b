/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client learns what is here: the handshake of the older revisions, discovery in the newer one.
 */
#include <string.h>

#include "mcp/server.h"
#include "stead.h"

#define TTL_DISCOVER_MS 3600000

/* Adds a sentence when the client has a tool that it is about. "$" in `text` stands for the names of those that it has.
 */
static void advise(struct buf *b, const struct toolset *set, const char *tools, const char *text)
{
	const char *at = strchr(text, '$');
	struct str rest = str_of(tools), name;
	size_t start = b->len;
	bool any = false;

	buf_add(b, str_n(text, (size_t)(at - text)));
	while (str_cut(&rest, ' ', &name))
		if (toolset_find(set, name)) {
			buf_printf(b, "%s%.*s", any ? ", " : "", STR_ARG(name));
			any = true;
		}
	buf_add(b, str_of(at + 1));
	if (!any)
		b->len = start;
}

/* The tools for files, in every dialect's words. */
#define FILE_TOOLS                                                                                                     \
	"ls list_files list_directory read_file read edit_file edit write_file write overwrite_file grep grep_files "  \
	"search_files glob glob_files find memory"

static void describe_paths(const struct server *s, struct buf *b)
{
	const char *top = toolset_top(s->set);

	if (workspace_files_are_own(s->ws))
		buf_printf(b, "Files of the directory %.*s. ", STR_ARG(workspace_files_place(s->ws)));
	else
		buf_printf(b, "Files of the workspace \"%.*s\", which last between conversations. ",
			   STR_ARG(workspace_name(s->ws)));
	if (top)
		buf_printf(b, "Paths begin with %s. ", top);
	else if (workspace_files_are_own(s->ws))
		buf_lit(b, "Paths are relative to it; absolute paths below it work too. ");
	else
		buf_lit(b, "Paths are relative to its root. ");
}

/* Clients that load tools when they are needed show a model only their names and this. */
static struct str instructions(struct request *req)
{
	const struct server *s = req->server;
	struct buf b;

	buf_init(&b, req->arena, 16 * 1024);
	describe_paths(s, &b);
	advise(&b, s->set, FILE_TOOLS, "Work with $. ");
	advise(&b, s->set, "history diff undo restore", "Every change is recorded and can be undone: $. ");
	advise(&b, s->set, "memory_save memory_search", "Facts that should outlast the conversation: $. ");
	advise(&b, s->set, "note search_notes", "Findings that other agents share: $. ");
	advise(&b, s->set, "create_task create_project_task list_tasks get_project_task",
	       "Work to be continued later: $. ");
	advise(&b, s->set, "list_skills load_skill load_skill_through_path", "Instructions that people prepared: $. ");
	advise(&b, s->set, "search", "$ looks through all of this at once. ");
	buf_lit(&b, "Wait for the answer to a change before a call that depends on it.");
	return buf_str(&b);
}

static const struct {
	const char *version;
	enum form form;
} legacy_versions[] = {
	/* newest first: the first one is offered to a client that asks for something unknown */
	{"2025-11-25", FORM_TITLED},
	{"2025-06-18", FORM_TITLED},
	{"2025-03-26", FORM_PLAIN},
	{"2024-11-05", FORM_PLAIN},
};

static struct jv *capabilities(struct arena *arena)
{
	struct jv *caps = jv_object(arena), *resources = jv_object(arena);

	/* the tools of a session never change, so there is no listChanged for them */
	jv_set(arena, caps, "tools", jv_object(arena));
	jv_set(arena, caps, "prompts", jv_object(arena));
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
	client_set_name(&req->server->client, jv_get(req->params, "clientInfo"));
	subs_add_session(req->server);
	jv_set_str(req->arena, result, "protocolVersion", str_of(legacy_versions[chosen].version));
	jv_set(req->arena, result, "capabilities", capabilities(req->arena));
	jv_set_str(req->arena, info, "name", STR("stead"));
	jv_set_str(req->arena, info, "title", STR("Stead"));
	jv_set_str(req->arena, info, "version", STR(STEAD_VERSION));
	jv_set(req->arena, result, "serverInfo", info);
	jv_set_str(req->arena, result, "instructions", instructions(req));
	reply_value(req, result);
}

void method_discover(struct request *req)
{
	struct jv *result = jv_object(req->arena), *versions = jv_array(req->arena);

	jv_push(req->arena, versions, jv_str(req->arena, STR("2026-07-28")));
	jv_set(req->arena, result, "supportedVersions", versions);
	jv_set(req->arena, result, "capabilities", capabilities(req->arena));
	jv_set_str(req->arena, result, "instructions", instructions(req));
	reply_cache_hint(req, result, TTL_DISCOVER_MS);
	reply_value(req, result);
}

void method_empty(struct request *req)
{
	reply_value(req, NULL);
}
