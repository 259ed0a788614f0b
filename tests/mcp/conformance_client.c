/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of MCP servers under the official conformance suite. The suite starts a server, calls this program with
 * its address, and names the scenario in the environment; what is done here is what an agent would do with such a
 * server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "mcp/client.h"
#include "net/http.h"

#define SECONDS 25

static struct arena *arena;
static struct ctx ctx;

/* A person whose browser follows the login page, which sends it back at once. */
static int visit(void *arg, struct ctx *own, struct str url, struct str *ret_back, struct err *err)
{
	struct http *http = http_new(NULL);
	struct http_request req = {.method = "GET", .url = url};
	struct http_response response;
	int r = http_perform(http, own, &req, &response, err);

	(void)arg;
	if (r == 0)
		*ret_back = arena_str(own->arena, http_header_of(&response, "location"));
	http_destroy(http);
	return r;
}

static const struct mcp_login login = {
	.redirect_uri = {"http://localhost:3000/callback", 30},
	.client_id_url = {"https://conformance-test.local/client-metadata.json", 51},
	.visit = visit,
};

/* A person who accepts every form as it is. */
static int ask(void *arg, struct ctx *own, struct str method, const struct jv *params, struct jv **ret, struct err *err)
{
	struct jv *answer = jv_object(own->arena);

	(void)arg;
	if (!str_is(method, "elicitation/create"))
		return err_set(err, ERR_UNSUPPORTED, "not offered");
	jv_set_str(own->arena, answer, "action", STR("accept"));
	jv_set(own->arena, answer, "content", mcp_form_values(own->arena, jv_get(params, "requestedSchema"), NULL));
	*ret = answer;
	return 0;
}

static const struct mcp_host host = {.ask = ask};

static struct jv *parse(const char *text)
{
	struct jv *v = NULL;
	struct err err;

	return text && jv_parse(arena, str_of(text), &v, &err) == 0 ? v : NULL;
}

static struct jv *server_of(const char *url, const struct jv *context)
{
	struct jv *v = jv_object(arena), *oauth = jv_object(arena);
	const char *version = getenv("MCP_CONFORMANCE_PROTOCOL_VERSION");

	jv_set_str(arena, v, "transport", STR("http"));
	jv_set_str(arena, v, "url", str_of(url));
	jv_set_bool(arena, v, "elicitation", true);
	if (version)
		jv_set_str(arena, v, "protocolVersion", str_of(version));
	if (jv_get_str(context, "client_id").len) {
		jv_set_str(arena, oauth, "clientId", jv_get_str(context, "client_id"));
		jv_set_str(arena, oauth, "clientSecret", jv_get_str(context, "client_secret"));
		jv_set(arena, v, "oauth", oauth);
	}
	return v;
}

static void call(struct mcp_client *c, struct str tool, const struct jv *args)
{
	struct mcp_result result;
	struct err err;

	if (mcp_client_call(c, &ctx, tool, args, &host, &result, &err) != 0)
		fprintf(stderr, "%.*s: %s\n", STR_ARG(tool), err.msg);
}

static struct jv *numbers(void)
{
	struct jv *v = jv_object(arena);

	jv_set_int(arena, v, "a", 5);
	jv_set_int(arena, v, "b", 3);
	return v;
}

static void use_everything(struct mcp_client *c)
{
	struct jv *list;
	struct str text;
	struct err err;

	if (mcp_client_list(c, &ctx, "resources", &list, &err) == 0 && jv_count(list))
		mcp_client_read(c, &ctx, jv_get_str(jv_at(list, 0), "uri"), &host, &text, &err);
	if (mcp_client_list(c, &ctx, "prompts", &list, &err) == 0 && jv_count(list))
		mcp_client_prompt(c, &ctx, jv_get_str(jv_at(list, 0), "name"), NULL, &host, &text, &err);
}

static void use_tools(struct mcp_client *c, const struct mcp_tool *tools, size_t count, struct str scenario,
		      const struct jv *context)
{
	if (str_is(scenario, "http-custom-headers")) {
		for (const struct jv_member *m = jv_first(jv_get(context, "toolCalls")); m; m = m->next)
			call(c, jv_get_str(m->value, "name"), jv_get(m->value, "arguments"));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct jv *args = jv_object(arena);

		if (str_is(tools[i].name, "add_numbers"))
			args = numbers();
		if (str_is(tools[i].name, "json_schema_echo"))
			jv_set(arena, args, "schema", (struct jv *)tools[0].schema);
		call(c, tools[i].name, args);
	}
	if (str_is(scenario, "http-standard-headers"))
		use_everything(c);
}

int main(int argc, char **argv)
{
	const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
	char state[] = "/tmp/stead-conformance-XXXXXX";
	const struct mcp_tool *tools;
	const struct jv *context;
	struct mcp_client *c;
	struct err err;
	size_t count;
	int r;

	if (argc < 2 || !scenario || !mkdtemp(state))
		return 2;
	setenv("XDG_STATE_HOME", state, 1);
	arena = arena_new();
	ctx = (struct ctx){.arena = arena, .deadline_ns = clock_monotonic_ns() + SECONDS * NS_PER_S};
	context = parse(getenv("MCP_CONFORMANCE_CONTEXT"));
	c = mcp_client_new(STR("suite"), server_of(argv[argc - 1], context));
	mcp_client_set_login(c, &login);
	r = mcp_client_tools(c, &ctx, &tools, &count, &err);
	if (r)
		fprintf(stderr, "%s\n", err.msg);
	else
		use_tools(c, tools, count, str_of(scenario), context);
	mcp_client_logout(c);
	mcp_client_destroy(c);
	arena_destroy(arena);
	return r ? 1 : 0;
}
