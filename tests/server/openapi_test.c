/* SPDX-License-Identifier: Apache-2.0 */
/* The document describes what the server does: every operation in it is called, and answers with a status and a type
   that the document names. */
#include "client.h"
#include "server/server_internal.h"

/* What an operation is called with, where "{}" and no query are not enough. "$item" and the like are ids of what is
   there by then. */
static const struct example {
	const char *id, *query, *body;
} examples[] = {
	{"events", "?since=0&wait=0", NULL},
	{"item_events", "?since=0&wait=0", NULL},
	{"create_link", NULL, "{\"path\":\"b.md\"}"},
	{"create_item_link", NULL, "{\"path\":\"TASK.md\"}"},
	{"preview_file", "?path=b.md", NULL},
	{"preview_item_file", "?path=TASK.md", NULL},
	{"move_file", NULL, "{\"from\":\"c.md\",\"to\":\"d.md\"}"},
	{"copy_file", NULL, "{\"from\":\"b.md\",\"to\":\"e.md\"}"},
	{"diff", "?from=0", NULL},
	{"restore", NULL, "{\"path\":\"b.md\",\"revision\":\"head\"}"},
	{"note", NULL, "{\"title\":\"x\",\"content\":\"x\"}"},
	{"memory_save", NULL, "{\"content\":\"the sky is blue\"}"},
	{"search", "?query=x", NULL},
	{"create_item", NULL, "{\"title\":\"x\"}"},
	{"update_item", NULL, "{\"priority\":\"high\"}"},
	{"delegate_item", NULL,
	 "{\"title\":\"x\",\"thread_id\":\"$thread\",\"description\":\"Read all of the drafts that are in the folder, "
	 "and write a "
	 "table that says which of them is the best one.\"}"},
	{"assign_item", NULL, "{\"thread_id\":\"$thread\"}"},
	{"wacht_create_item", NULL, "{\"title\":\"x\"}"},
	{"wacht_delegate", NULL,
	 "{\"title\":\"x\",\"target_lane_thread_id\":\"$thread\",\"description\":\"Read all of the drafts that are in "
	 "the folder, and write "
	 "a table that says which of them is the best one.\"}"},
	{"wacht_preview", "?path=/task/TASK.md", NULL},
	{"wacht_download", "?path=TASK.md", NULL},
	{"wacht_comment", NULL, "{\"body\":\"x\"}"},
	{"wacht_create_thread", NULL,
	 "{\"title\":\"z\",\"responsibility\":\"Draws pictures of all that was counted\"}"},
	{"wacht_thread_file", "?path=/workspace/a.md", NULL},
	{"wacht_run", NULL, "{\"new_message\":{\"message\":\"x\"}}"},
	{"preview_thread_file", "?path=workspace/a.md", NULL},
	{"update_assignment", NULL, "{\"status\":\"claimed\"}"},
	{"comment_item", NULL, "{\"body\":\"x\"}"},
	{"ask_user", NULL, "{\"questions\":[{\"text\":\"Which?\"}]}"},
	{"answer_question", NULL, "{\"freeform_text\":\"this\"}"},
	{"request_approval", NULL, "{\"tools\":[{\"tool_name\":\"x\"}]}"},
	{"answer_approval", NULL, "{\"request_message_id\":\"$request\",\"approvals\":[]}"},
	{"watch_item", NULL, "{\"events\":[\"completed\"]}"},
	{"add_journal", NULL, "{\"text\":\"x\"}"},
	{"create_thread", NULL,
	 "{\"title\":\"y\",\"responsibility\":\"Checks the tables of others for wrong numbers\"}"},
	{"notify_user", NULL, "{\"text\":\"x\"}"},
	{"read_notices", NULL, "{\"ids\":[]}"},
};

static const struct example *example_of(struct str id)
{
	static const struct example none = {0};

	for (size_t i = 0; i < COUNT(examples); i++)
		if (str_is(id, examples[i].id))
			return &examples[i];
	return &none;
}

#define BOARD "/v1/workspaces/demo/boards/main"
static const char *thread_id, *item_id, *token_id;

/* The id that a name stands for. */
static struct str id_named(struct site *s, struct str name)
{
	const char *item = arena_printf(s->arena, BOARD "/items/%s", item_id).ptr;
	const struct jv *v;

	if (str_is(name, "workspace") || str_is(name, "board"))
		return str_is(name, "board") ? STR("main") : STR("demo");
	if (str_is(name, "path"))
		return STR("a.md");
	if (str_is(name, "token"))
		return str_of(token_id);
	if (str_is(name, "slug_or_title"))
		return STR("first");
	if (str_is(name, "thread") || str_is(name, "thread_id"))
		return str_of(thread_id);
	if (str_is(name, "item"))
		return str_of(item_id);
	if (str_is(name, "comment_id")) {
		v = json_of(s, get(s, arena_printf(s->arena, "%s/comments", item).ptr));
		return jv_get_str(jv_at(jv_get(v, "comments"), 0), "id");
	}
	v = jv_get(json_of(s, get(s, item)), "item");
	if (str_is(name, "request"))
		return jv_get_str(jv_get(v, "pending_approval"), "request_message_id");
	if (str_is(name, "assignment_id"))
		return jv_get_str(jv_at(jv_get(v, "assignments"), 0), "id");
	return STR("ls"); /* a tool */
}

/* The text with what its names stand for: "{name}" or "$name". */
static const char *fill(struct site *s, struct str text, char open, const char *end)
{
	struct buf b;

	buf_init(&b, s->arena, 1000);
	while (text.len) {
		size_t at = str_find_char(text, open);
		struct str name = str_from(text, at + 1);

		buf_add(&b, str_first(text, at));
		if (at == text.len)
			break;
		name = str_first(name, strcspn(arena_cstr(s->arena, name), end));
		buf_add(&b, id_named(s, name));
		text = str_from(text, at + 1 + name.len + (open == '{'));
	}
	return arena_cstr(s->arena, buf_str(&b));
}

/* A thread has no files at its top. */
static const char *lane_file(struct site *s)
{
	return arena_printf(s->arena, BOARD "/threads/%s/files/workspace/a.md", thread_id).ptr;
}

static void put_example(struct site *s)
{
	const struct jv *v;

	ask(s, "PUT", "/v1/workspaces/demo/files/a.md", NULL, STR("x"));
	ask(s, "PUT", "/v1/workspaces/demo/files/b.md", NULL, STR("x"));
	ask(s, "PUT", "/v1/workspaces/demo/files/c.md", NULL, STR("x"));
	ask(s, "POST", "/v1/workspaces/demo/tools/note", NULL, STR("{\"title\":\"first\",\"content\":\"x\"}"));
	token_id = arena_cstr(s->arena, jv_get_str(json_of(s, ask(s, "POST", "/v1/tokens", NULL, STR("{}"))), "id"));
	v = json_of(s, ask(s, "POST", BOARD "/threads", NULL,
			   STR("{\"title\":\"x\",\"responsibility\":\"Writes the texts that people ask for\"}")));
	thread_id = arena_cstr(s->arena, jv_get_str(jv_get(v, "thread"), "id"));
	v = json_of(s, ask(s, "POST", BOARD "/items", NULL, STR("{\"title\":\"x\"}")));
	item_id = arena_cstr(s->arena, jv_get_str(jv_get(v, "item"), "id"));
	ask(s, "PUT", arena_printf(s->arena, BOARD "/items/%s/files/a.md", item_id).ptr, NULL, STR("x"));
}

static void check_operation(struct site *s, struct str path, struct str method, const struct jv *op)
{
	const struct jv *responses = jv_get(op, "responses"), *content;
	struct str same_as = jv_get_str(op, "x-stead-same-as");
	const struct example *example = example_of(same_as.len ? same_as : jv_get_str(op, "operationId"));
	const char *name = arena_cstr(s->arena, method), *target = fill(s, path, '{', "}");
	struct str body = jv_get(op, "requestBody") ? STR("{}") : STR_NONE, type, status;
	struct reply reply;

	if (str_find(path, STR("{thread}"), 0) != SIZE_MAX) /* an operation before this one may have removed it */
		ask(s, "PUT", lane_file(s), NULL, STR("x"));
	if (str_ends(path, STR("/threads/{thread}/files/{path}")))
		target = lane_file(s);
	if (example->query)
		target = arena_printf(s->arena, "%s%s", target, example->query).ptr;
	if (example->body)
		body = str_of(fill(s, str_of(example->body), '$', "\""));

	for (char *c = (char *)name; *c; c++)
		*c = (char)(*c & ~0x20);
	if ((str_is(path, "/mcp/{workspace}") && !str_is(method, "post")) ||
	    (str_ends(path, STR("/approvals")) && str_is(method, "post")))
		return; /* these need a session, or a question: mcp_test, sessions_test */
	if (str_starts(path, STR("/ai/")) && (str_ends(path, STR("/answer")) || str_ends(path, STR("/approval"))))
		return; /* these need a question: boards_test */
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
	if (content && !str_ends(path, STR("/files/{path}")) && !str_ends(path, STR("/download")) &&
	    !str_ends(path, STR("}/filesystem/file")) && !jv_get_key(content, type))
		TEST_FAIL("%s %s answers with %.*s, which is not described", name, target, STR_ARG(type));
}

/* A conversation of the name that fill() gives, with a recording as the model. */
static void make_session(struct site *s, const char *workspace)
{
	const char *recording = arena_printf(s->arena, "%s/recording", s->dir).ptr;

	write_host_file(recording, STR("{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"x\"}\n"));
	write_host_file(arena_printf(s->arena, "%s/ws/%s/agent.yaml", s->dir, workspace).ptr,
			arena_printf(s->arena, "model: \"replay:%s\"\n", recording));
	CHECK_STATUS(ask(s, "POST", arena_printf(s->arena, "/v1/workspaces/%s/sessions/ls/messages", workspace).ptr,
			 NULL, STR("{\"text\":\"x\"}")),
		     200);
}

TEST(every_operation_answers_as_described)
{
	static struct site s;
	const struct jv *document;
	size_t count = 0, wanted = 0;

	site_start(&s, true);
	make_session(&s, "demo");
	site_make_workspace(&s, "default"); /* that of /v1/admin/ */
	make_session(&s, "default");
	put_example(&s);
	document = json_of(&s, get(&s, "/openapi.json"));
	CHECK_STR(jv_get_str(document, "openapi"), STR("3.1.0"));
	for (const struct jv_member *p = jv_first(jv_get(document, "paths")); p; p = p->next)
		for (const struct jv_member *m = jv_first(p->value); m; m = m->next) {
			check_operation(&s, p->key, m->key, m->value);
			count++;
		}
	for (const struct route *route = routes; route->path; route++) {
		wanted++;
		for (const struct route_name *one = route_names; one->name; one++)
			wanted += str_starts(str_of(route->path), str_of(one->form));
	}
	CHECK_INT(count, wanted);
}

/* The parameter of an operation. */
static const struct jv *parameter(const struct jv *document, const char *path, const char *name)
{
	const struct jv *op = jv_get(jv_get(jv_get(document, "paths"), path), "get");

	for (const struct jv_member *m = jv_first(jv_get(op, "parameters")); m; m = m->next)
		if (str_is(jv_get_str(m->value, "name"), name))
			return m->value;
	return NULL;
}

TEST(a_parameter_has_the_type_that_its_route_takes)
{
	static struct site s;
	const struct jv *document, *query;

	site_start(&s, true);
	document = json_of(&s, get(&s, "/openapi.json"));
	query = parameter(document, "/v1/workspaces/{workspace}/search", "query");
	CHECK_STR(jv_get_str(jv_get(query, "schema"), "type"), STR("string"));
	CHECK(jv_get_bool(query, "required", false));
	CHECK(jv_get_str(query, "description").len > 0);
	CHECK_STR(
		jv_get_str(jv_get(parameter(document, "/v1/workspaces/{workspace}/usage", "since"), "schema"), "type"),
		STR("string"));
	CHECK_STR(jv_get_str(jv_get(parameter(document, "/v1/workspaces/{workspace}/revisions", "since"), "schema"),
			     "type"),
		  STR("string"));
	CHECK_STR(
		jv_get_str(jv_get(parameter(document, "/v1/workspaces/{workspace}/events", "since"), "schema"), "type"),
		STR("integer"));
	CHECK_STR(jv_get_str(jv_get(parameter(document, "/v1/admin/sessions", "limit"), "schema"), "type"),
		  STR("integer"));
	CHECK(parameter(document, "/v1/admin/sessions", "workspace") == NULL);
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
