/* SPDX-License-Identifier: Apache-2.0 */
/* The document describes what the server does: every operation in it is called, and answers with a status and a type
   that the document names. */
#include "client.h"
#include "server/server_internal.h"

/* The target with an example for each name in it. */
static const char *fill(struct site *s, struct str path)
{
	struct buf b;

	buf_init(&b, s->arena, 1000);
	while (path.len) {
		size_t open = str_find_char(path, '{'), close = str_find_char(path, '}');
		struct str name = open < path.len ? str_first(str_from(path, open + 1), close - open - 1) : STR("");

		buf_add(&b, str_first(path, open));
		buf_add(&b, str_is(name, "workspace") ? STR("demo")
			    : str_is(name, "path")    ? STR("a.md")
			    : name.len                ? STR("ls")
						      : STR(""));
		path = str_from(path, close + 1);
	}
	if (str_ends(buf_str(&b), STR("/events")))
		buf_lit(&b, "?since=0&wait=0");
	return arena_cstr(s->arena, buf_str(&b));
}

static void check_operation(struct site *s, struct str path, struct str method, const struct jv *op)
{
	const struct jv *responses = jv_get(op, "responses"), *content;
	const char *name = arena_cstr(s->arena, method), *target = fill(s, path);
	struct str body = jv_get(op, "requestBody") ? STR("{}") : STR_NONE, type, status;
	struct reply reply;

	for (char *c = (char *)name; *c; c++)
		*c = (char)(*c & ~0x20);
	if (str_is(path, "/mcp/{workspace}") && !str_is(method, "post"))
		return; /* these need a session: mcp_test */
	if (str_is(path, "/mcp/{workspace}"))
		body = STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
	reply = ask(s, name, target, NULL, body);
	status = arena_printf(s->arena, "%d", reply.status);
	if (!jv_get_key(responses, status))
		TEST_FAIL("%s %s answers %d, which is not described: %.*s", name, target, reply.status,
			  STR_ARG(reply.body));
	content = jv_get(jv_get_key(responses, status), "content");
	type = head_value(reply.head, "Content-Type");
	type = str_first(type, str_find_char(type, ';'));
	if (content && !str_is(path, "/v1/workspaces/{workspace}/files/{path}") && !jv_get_key(content, type))
		TEST_FAIL("%s %s answers with %.*s, which is not described", name, target, STR_ARG(type));
}

TEST(every_operation_answers_as_described)
{
	static struct site s;
	const struct jv *document;
	size_t count = 0, wanted = 0;

	site_start(&s, true);
	ask(&s, "PUT", "/v1/workspaces/demo/files/a.md", NULL, STR("x"));
	document = json_of(&s, get(&s, "/openapi.json"));
	CHECK_STR(jv_get_str(document, "openapi"), STR("3.1.0"));
	for (const struct jv_member *p = jv_first(jv_get(document, "paths")); p; p = p->next)
		for (const struct jv_member *m = jv_first(p->value); m; m = m->next) {
			check_operation(&s, p->key, m->key, m->value);
			count++;
		}
	for (const struct route *route = routes; route->path; route++)
		wanted++;
	CHECK_INT(count, wanted);
}

TEST(parameters_of_the_document_are_those_that_are_accepted)
{
	static struct site s;
	const struct jv *document;

	site_start(&s, true);
	document = json_of(&s, get(&s, "/openapi.json"));
	for (const struct route *route = routes; route->path; route++) {
		char method[8] = {0};
		const struct jv *op;
		struct str rest = str_of(route->query), word;

		for (size_t i = 0; route->method[i]; i++)
			method[i] = (char)(route->method[i] | 0x20);
		op = jv_get(jv_get(jv_get(document, "paths"), route->path), method);
		CHECK_STR(jv_get_str(op, "operationId"), str_of(route->id));
		while (str_cut(&rest, ' ', &word)) {
			bool found = false;

			for (const struct jv_member *m = jv_first(jv_get(op, "parameters")); m; m = m->next)
				found |= str_eq(jv_get_str(m->value, "name"), word);
			CHECK(found);
		}
	}
}
