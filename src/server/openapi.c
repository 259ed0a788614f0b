/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi.json: the table of routes as an OpenAPI 3.1 document. */
#include "base/limits.h"
#include "server/server_internal.h"
#include "stead.h"
#include "text/jv.h"
#include "tool/family.h"
#include "tool/schema_text.h"

static struct jv *object_with(struct arena *arena, const char *key, struct str value)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, key, value);
	return v;
}

static void add_parameter(struct arena *arena, struct jv *list, struct str name, const char *in, const char *type)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", name);
	jv_set_str(arena, v, "in", str_of(in));
	if (str_is(str_of(in), "path"))
		jv_set_bool(arena, v, "required", true);
	jv_set(arena, v, "schema", object_with(arena, "type", str_of(type)));
	jv_push(arena, list, v);
}

static const char *type_of(struct str name)
{
	if (str_is(name, "recursive") || str_is(name, "archived") || str_is(name, "scheduled") ||
	    str_is(name, "unread") || str_is(name, "whole") || str_is(name, "with_journal") || str_is(name, "forks") ||
	    str_is(name, "include_archived") || str_is(name, "versions") || str_is(name, "exact") ||
	    str_is(name, "all"))
		return "boolean";
	return str_is(name, "limit") || str_is(name, "wait") || str_is(name, "since") ? "integer" : "string";
}

static struct jv *parameters(struct arena *arena, const struct route *route)
{
	struct jv *list = jv_array(arena);
	struct str rest = str_of(route->path), word;

	while (str_cut(&rest, '/', &word))
		if (word.len && word.ptr[0] == '{')
			add_parameter(arena, list, str_first(str_from(word, 1), str_find_char(word, '}') - 1), "path",
				      "string");
	for (rest = str_of(route->query); str_cut(&rest, ' ', &word);)
		add_parameter(arena, list, word, "query", type_of(word));
	for (rest = str_of(route->headers); str_cut(&rest, ' ', &word);)
		add_parameter(arena, list, word, "header", "string");
	if (strstr(route->path, "{workspace}") || route->of_thread)
		add_parameter(arena, list, STR("Stead-User"), "header", "string");
	return list;
}

/* The schema of the arguments or of the result of the route's tool, without what the target and the query give; NULL:
   it has no tool. */
static struct jv *tool_schema(struct arena *arena, const struct route *route, bool of_args)
{
	const struct tool *tool = route->tool ? tool_named(route->tool) : NULL;
	const char *text = tool ? (of_args ? tool->args : tool->result) : NULL;
	struct str form = str_of(route->path), word;
	struct jv *schema, *needed, *left = jv_array(arena);
	struct err ignored;

	if (!text || schema_text_parse(arena, text, &schema, &ignored) != 0)
		return NULL;
	if (!of_args)
		return schema;
	needed = (struct jv *)jv_get(schema, "required");
	while (str_cut(&form, '/', &word))
		if (word.len > 2 && word.ptr[0] == '{')
			jv_remove((struct jv *)jv_get(schema, "properties"),
				  arena_cstr(arena, str_n(word.ptr + 1, word.len - 2)));
	for (const struct jv_member *m = jv_first(needed); m; m = m->next)
		if (jv_get_key(jv_get(schema, "properties"), jv_str_of(m->value)))
			jv_push(arena, left, m->value);
	if (jv_count(left))
		jv_set(arena, schema, "required", left);
	else
		jv_remove(schema, "required");
	return schema;
}

static void set_schema(struct arena *arena, struct jv *with_content, struct jv *schema)
{
	for (const struct jv_member *m = jv_first(jv_get(with_content, "content")); schema && m; m = m->next)
		jv_set(arena, m->value, "schema", schema);
}

static void add_media(struct arena *arena, struct jv *response, struct str type)
{
	struct jv *content = (struct jv *)jv_get(response, "content");

	if (str_is(type, "-"))
		return;
	if (!content) {
		content = jv_object(arena);
		jv_set(arena, response, "content", content);
	}
	jv_set_key(arena, content, type, jv_object(arena));
}

/* "200 application/json 304 -", and an error in its one form. */
static struct jv *responses(struct arena *arena, const struct route *route)
{
	struct jv *v = jv_object(arena), *error = object_with(arena, "description", STR("An error (RFC 9457)."));
	struct str rest = str_of(route->answers), status, type;

	while (str_cut(&rest, ' ', &status) && str_cut(&rest, ' ', &type)) {
		struct jv *one = (struct jv *)jv_get_key(v, status);

		if (!one) {
			one = object_with(arena, "description", str_of(route->summary));
			jv_set_key(arena, v, status, one);
		}
		add_media(arena, one, type);
		set_schema(arena, one, tool_schema(arena, route, false));
	}
	add_media(arena, error, STR("application/problem+json"));
	jv_set(arena, v, "default", error);
	return v;
}

static struct jv *operation(struct arena *arena, const struct route *route)
{
	struct jv *v = jv_object(arena), *body, *none = jv_array(arena);
	struct str rest, type;

	jv_set_str(arena, v, "operationId", str_of(route->id));
	jv_set_str(arena, v, "summary", str_of(route->summary));
	jv_set(arena, v, "parameters", parameters(arena, route));
	if (route->body) {
		body = jv_object(arena);
		for (rest = str_of(route->body); str_cut(&rest, ' ', &type);)
			add_media(arena, body, type);
		set_schema(arena, body, tool_schema(arena, route, true));
		jv_set(arena, v, "requestBody", body);
	}
	jv_set(arena, v, "responses", responses(arena, route));
	if (!route->access)
		jv_set(arena, v, "security", none);
	else
		jv_set_str(arena, v, "x-stead-access", str_of(access_name(route->access)));
	return v;
}

static struct jv *paths(struct arena *arena)
{
	struct jv *v = jv_object(arena);

	for (const struct route *route = routes; route->path; route++) {
		struct jv *item = (struct jv *)jv_get(v, route->path);
		char *method = (char *)arena_cstr(arena, str_of(route->method));

		for (char *c = method; *c; c++)
			*c = (char)(*c | 0x20);
		if (!item) {
			item = jv_object(arena);
			jv_set(arena, v, route->path, item);
		}
		jv_set(arena, item, method, operation(arena, route));
	}
	return v;
}

void run_openapi(struct exchange *x)
{
	struct arena *arena = x->arena;
	struct jv *v = jv_object(arena), *info = jv_object(arena), *schemes = jv_object(arena);
	struct jv *bearer = object_with(arena, "type", STR("http")), *components = jv_object(arena);
	struct jv *security = jv_array(arena), *one = jv_object(arena);

	jv_set_str(arena, v, "openapi", STR("3.1.0"));
	jv_set_str(arena, info, "title", STR("Stead"));
	jv_set_str(arena, info, "version", STR(STEAD_VERSION));
	jv_set(arena, v, "info", info);
	jv_set(arena, v, "paths", paths(arena));
	jv_set_str(arena, bearer, "scheme", STR("bearer"));
	jv_set(arena, schemes, "token", bearer);
	jv_set(arena, components, "securitySchemes", schemes);
	jv_set(arena, v, "components", components);
	jv_set(arena, one, "token", jv_array(arena));
	jv_push(arena, security, one);
	jv_set(arena, v, "security", security);
	answer_json(x, 200, v);
}
