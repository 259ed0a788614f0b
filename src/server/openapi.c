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

static void add_parameter(struct arena *arena, struct jv *list, struct str name, const char *in, struct jv *schema)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "name", name);
	jv_set_str(arena, v, "in", str_of(in));
	if (str_is(str_of(in), "path"))
		jv_set_bool(arena, v, "required", true);
	jv_set(arena, v, "schema", schema);
	jv_push(arena, list, v);
}

static struct jv *of_type(struct arena *arena, const char *type)
{
	return object_with(arena, "type", str_of(type));
}

/* The type of a parameter that is not an argument of a tool. */
static const char *type_of(struct str name, const struct route *route)
{
	if (str_is(name, "recursive") || str_is(name, "brief") || str_is(name, "forks") ||
	    str_is(name, "include_archived") || str_is(name, "archived_only"))
		return "boolean";
	if (str_is(name, "since") && route->run == run_events)
		return "integer";
	return str_is(name, "limit") || str_is(name, "wait") || str_is(name, "before") ? "integer" : "string";
}

/* A parameter that is an argument of the route's tool: what the tool says of it. Lists are given as text. */
static void add_argument(struct arena *arena, struct jv *list, const struct jv *args, struct str name)
{
	const struct jv *property = jv_get_key(jv_get(args, "properties"), name), *about;
	struct str type = jv_get_str(property, "type");
	bool is_plain = str_is(type, "string") || str_is(type, "integer") || str_is(type, "boolean");
	struct jv *schema = is_plain ? jv_copy(arena, property) : of_type(arena, "string"), *last;

	about = jv_get(property, "description");
	jv_remove(schema, "description");
	add_parameter(arena, list, name, "query", schema);
	last = (struct jv *)jv_at(list, jv_count(list) - 1);
	if (about)
		jv_set(arena, last, "description", (struct jv *)about);
	for (const struct jv_member *m = jv_first(jv_get(args, "required")); m; m = m->next)
		if (str_eq(jv_str_of(m->value), name))
			jv_set_bool(arena, last, "required", true);
}

/* The schema of the arguments of the route's tool; NULL: it has none. */
static struct jv *args_schema(struct arena *arena, const struct route *route)
{
	const struct tool *tool = route->tool ? tool_named(route->tool) : NULL;

	return tool ? tool_args_schema(arena, tool) : NULL;
}

static struct jv *parameters(struct arena *arena, const struct route *route, const char *path)
{
	struct jv *list = jv_array(arena), *args = args_schema(arena, route);
	struct str rest = str_of(path), word;

	while (str_cut(&rest, '/', &word))
		if (word.len && word.ptr[0] == '{')
			add_parameter(arena, list, str_first(str_from(word, 1), str_find_char(word, '}') - 1), "path",
				      of_type(arena, "string"));
	for (rest = str_of(route->query); str_cut(&rest, ' ', &word);)
		if (args)
			add_argument(arena, list, args, word);
		else
			add_parameter(arena, list, word, "query", of_type(arena, type_of(word, route)));
	for (rest = str_of(route->headers); str_cut(&rest, ' ', &word);)
		add_parameter(arena, list, word, "header", of_type(arena, "string"));
	if (strstr(route->path, "{workspace}") || route->of_thread)
		add_parameter(arena, list, STR("Stead-User"), "header", of_type(arena, "string"));
	return list;
}

static struct jv *result_schema(struct arena *arena, const struct route *route)
{
	const struct tool *tool = route->tool ? tool_named(route->tool) : NULL;
	struct jv *schema;
	struct err ignored;

	return tool && tool->result && schema_text_parse(arena, tool->result, &schema, &ignored) == 0 ? schema : NULL;
}

/* The schema of the body of a route that is a tool: the arguments that the target does not give. */
static struct jv *body_schema(struct arena *arena, const struct route *route)
{
	struct jv *schema = args_schema(arena, route), *needed, *left = jv_array(arena);
	struct str form = str_of(route->path), word;

	if (!schema)
		return NULL;
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
		set_schema(arena, one, result_schema(arena, route));
	}
	add_media(arena, error, STR("application/problem+json"));
	jv_set(arena, v, "default", error);
	return v;
}

/* An operation at `path`: that of the route, or another name of it. */
static struct jv *operation(struct arena *arena, const struct route *route, const char *path)
{
	struct jv *v = jv_object(arena), *body, *none = jv_array(arena);
	bool is_same = str_is(str_of(path), route->path);
	struct str rest, type;

	jv_set_str(arena, v, "operationId",
		   is_same ? str_of(route->id) : arena_printf(arena, "%s_other_name", route->id));
	if (!is_same)
		jv_set_str(arena, v, "x-stead-same-as", str_of(route->id));
	jv_set_str(arena, v, "summary", str_of(route->summary));
	jv_set(arena, v, "parameters", parameters(arena, route, path));
	if (route->body) {
		body = jv_object(arena);
		for (rest = str_of(route->body); str_cut(&rest, ' ', &type);)
			add_media(arena, body, type);
		set_schema(arena, body, body_schema(arena, route));
		jv_set(arena, v, "requestBody", body);
	}
	jv_set(arena, v, "responses", responses(arena, route));
	if (!route->access)
		jv_set(arena, v, "security", none);
	else
		jv_set_str(arena, v, "x-stead-access", str_of(access_name(route->access)));
	return v;
}

static void add_operation(struct arena *arena, struct jv *all, const struct route *route, const char *path)
{
	struct jv *item = (struct jv *)jv_get(all, path);
	char *method = (char *)arena_cstr(arena, str_of(route->method));

	for (char *c = method; *c; c++)
		*c = (char)(*c | 0x20);
	if (!item) {
		item = jv_object(arena);
		jv_set(arena, all, path, item);
	}
	jv_set(arena, item, method, operation(arena, route, path));
}

static struct jv *paths(struct arena *arena)
{
	struct jv *v = jv_object(arena);

	for (const struct route *route = routes; route->path; route++)
		add_operation(arena, v, route, route->path);
	for (const struct route_name *one = route_names; one->name; one++)
		for (const struct route *route = routes; route->path; route++) {
			struct str path = str_of(route->path), rest = str_from(path, strlen(one->form));

			if (str_starts(path, str_of(one->form)))
				add_operation(arena, v, route,
					      arena_printf(arena, "%s%.*s", one->name, STR_ARG(rest)).ptr);
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
