/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace's configuration: agent.yaml, .env and tools.json become one checked document.
 *
 * The order matters. Text is parsed first and variables are filled in afterwards, so that a secret with a quote in it
 * cannot change the document's shape; the schema is checked on what came out, so that a variable is held to the same
 * rules as text; what a schema cannot say (two keys that exclude each other, a time zone that exists) comes last.
 *
 * Everything fails closed: a tools.json that cannot be read is an error, because a deny list that is silently gone
 * would open the gate that it was meant to close.
 */
#include "workspace/config.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "text/dotenv.h"
#include "text/schema.h"
#include "text/yaml.h"
#include "workspace/embedded.h"
#include "workspace/tools_json.h"

#define ZONES "/usr/share/zoneinfo/"

struct str config_schema(void)
{
	return embedded_agent_schema;
}

struct str config_tools_schema(void)
{
	return embedded_tools_schema;
}

__attribute__((format(printf, 3, 4))) static int refuse(struct err *err, const struct jv *where, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (where && where->line)
		return err_set(err, ERR_INVALID, "agent.yaml line %u: %s", where->line, text);
	return err_set(err, ERR_INVALID, "agent.yaml: %s", text);
}

static int check_against(struct arena *arena, struct str schema_text, const struct jv *document, const char *file,
			 struct err *err)
{
	struct jv *schema;
	int r = jv_parse(arena, schema_text, &schema, err);

	return r ? r : schema_check(schema, document, file, err);
}

/* --- sizes --- */

bool config_size(const struct jv *v, uint64_t fallback, uint64_t *ret)
{
	static const char units[] = "kmgt";
	struct str s = jv_str_of(v);
	char number[32];
	size_t n = 0;
	double size;
	const char *unit;

	*ret = fallback;
	if (v && v->type == JV_INT)
		*ret = (uint64_t)v->u.i;
	else if (v && v->type == JV_REAL)
		*ret = v->u.d < 9e15 ? (uint64_t)v->u.d : UINT64_MAX;
	if (!s.ptr)
		return true;
	while (n < s.len && n < sizeof number - 1 && (s.ptr[n] == '.' || (s.ptr[n] >= '0' && s.ptr[n] <= '9')))
		n++;
	memcpy(number, s.ptr, n);
	number[n] = 0;
	s = str_trim(str_from(s, n));
	size = strtod(number, NULL);
	unit = s.len ? strchr(units, s.ptr[0] | 32) : NULL;
	if (unit)
		size *= pow(s.len > 1 && s.ptr[1] == 'i' ? 1024 : 1000, (double)(unit - units + 1));
	if (!(size < 9e18))
		return false;
	*ret = (uint64_t)size;
	return true;
}

static int size_of(const struct jv *object, const char *section, const char *key, uint64_t fallback, uint64_t *ret,
		   struct err *err)
{
	const struct jv *v = jv_get(object, key);

	if (!config_size(v, fallback, ret))
		return refuse(err, v, "%s.%s is larger than any store; write a smaller size", section, key);
	return 0;
}

static int read_history(const struct jv *document, struct config *config, struct err *err)
{
	const struct jv *history = jv_get(document, "history");

	config->history.revisions = (uint64_t)jv_get_int(history, "revisions", 0);
	config->history.age_days = (uint64_t)jv_get_int(history, "age_days", 0);
	return size_of(history, "history", "bytes", 0, &config->history.bytes, err);
}

static int read_quota(const struct jv *document, struct config *config, struct err *err)
{
	const struct jv *quota = jv_get(document, "quota");
	int r = size_of(quota, "quota", "bytes", 0, &config->quota.bytes, err);

	if (r)
		return r;
	config->quota.files = (uint64_t)jv_get_int(quota, "files", 0);
	return size_of(quota, "quota", "file_size", 0, &config->quota.file_size, err);
}

/* --- what a schema cannot say --- */

/* A zone is a file of the system's database that begins with "TZif". The schema lets no '.' and no leading '/' through,
   so the name cannot leave the database. */
static bool zone_exists(struct str zone)
{
	char path[300], magic[4];

	if (str_is(zone, "UTC") || access(ZONES, F_OK) != 0)
		return true;
	snprintf(path, sizeof path, ZONES "%.*s", STR_ARG(str_first(zone, 250)));
	FD_SCOPE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, "TZif", 4) == 0;
}

/* What a message may show of a text. */
static struct str shown(const struct jv *v)
{
	return v->from_env ? STR("(not shown)") : utf8_first(v->u.s, 60);
}

static int check_zone(const struct jv *document, struct config *config, struct err *err)
{
	const struct jv *zone = jv_get(document, "timezone");

	config->timezone = zone ? zone->u.s : STR("UTC");
	if (zone_exists(config->timezone))
		return 0;
	return refuse(err, zone, "timezone is \"%.*s\"; expected a zone of the IANA database such as \"Europe/Berlin\"",
		      STR_ARG(shown(zone)));
}

static int check_model(const struct jv *document, struct err *err)
{
	const struct jv *model = jv_get(document, "model");
	struct str name = jv_get_str(model, "model");

	if (!model || model->type != JV_OBJECT || jv_get(model, "provider") || str_find_char(name, ':') < name.len)
		return 0;
	return refuse(err, model,
		      "model.provider is missing; write \"provider: anthropic\" or \"model: "
		      "anthropic:claude-sonnet-4-5\"");
}

static const struct jv *channel_name(const struct jv *channel)
{
	const struct jv *name = jv_get(channel, "name");

	return name ? name : jv_get(channel, "type");
}

static int check_channels(const struct jv *document, struct err *err)
{
	const struct jv *one = jv_get(document, "channel"), *many = jv_get(document, "channels");

	if (one && many)
		return refuse(err, one, "both channel and channels are set; move the one into the list");
	for (const struct jv_member *a = jv_first(many); a; a = a->next)
		for (const struct jv_member *b = a->next; b; b = b->next)
			if (str_eq(channel_name(a->value)->u.s, channel_name(b->value)->u.s))
				return refuse(err, b->value, "two channels are called \"%.*s\"; give each a name",
					      STR_ARG(shown(channel_name(b->value))));
	return 0;
}

static int check_heartbeat(const struct jv *document, struct err *err)
{
	static const char *const ids[] = {"target_id", "target_chat_id", "target_channel_id"};
	const struct jv *heartbeat = jv_get(document, "heartbeat"), *output = jv_get(heartbeat, "output");
	const char *seen = NULL;

	for (size_t i = 0; i < COUNT(ids); i++) {
		if (!jv_get(heartbeat, ids[i]))
			continue;
		if (seen || output)
			return refuse(err, jv_get(heartbeat, ids[i]), "heartbeat has both %s and %s; keep one of them",
				      ids[i], seen ? seen : "output");
		seen = ids[i];
	}
	return 0;
}

/* --- allow and deny --- */

static void add_names(struct arena *arena, struct jv **list, const struct jv *names)
{
	for (const struct jv_member *m = jv_first(names); m; m = m->next) {
		if (!*list)
			*list = jv_array(arena);
		jv_push(arena, *list, m->value);
	}
}

/* Deny lists add up, and so do allow lists. builtins.allow does not count here: in the system that it comes from it
   chooses among optional extras and never takes the file tools away. */
static void merge_names(struct arena *arena, const struct jv *document, const struct jv *tools, struct config *config)
{
	struct jv *allow = NULL, *deny = NULL;

	add_names(arena, &allow, jv_get(tools, "allow"));
	add_names(arena, &allow, jv_get(jv_get(document, "tools"), "allow"));
	add_names(arena, &deny, jv_get(tools, "deny"));
	add_names(arena, &deny, jv_get(jv_get(document, "tools"), "deny"));
	add_names(arena, &deny, jv_get(jv_get(document, "builtins"), "deny"));
	config->tools_allow = allow;
	config->tools_deny = deny;
}

/* --- the whole --- */

/* The lines of the schema from `open` to the closing brace with the same indent; ptr NULL when there are none. */
static struct str schema_lines(struct str open, struct str close)
{
	struct str schema = embedded_agent_schema;
	size_t from = str_find(schema, open, 0), to = from == SIZE_MAX ? SIZE_MAX : str_find(schema, close, from);

	return to == SIZE_MAX ? STR_NONE : str_n(schema.ptr + from, to + close.len - from);
}

/* Parsing the whole schema costs more than the rest of opening a workspace. A file has a few of its keys, so those
   alone are cut out of the text and checked; when that does not succeed, for whatever reason, the whole schema decides
   and gives the sentence. So the cut can only save time: what it accepts, it accepts by the same rules. */
static bool fits_used_keys(struct arena *arena, const struct jv *document)
{
	bool refers = false;
	struct jv *schema;
	struct err err;
	struct buf b;

	buf_init(&b, arena, embedded_agent_schema.len + KIB);
	buf_lit(&b, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
	for (const struct jv_member *m = jv_first(document); m; m = m->next) {
		struct str open = arena_printf(arena, "\n    \"%.*s\": {", STR_ARG(m->key));
		struct str lines = schema_lines(open, STR("\n    }"));

		if (!lines.ptr)
			return false;
		refers |= str_find(lines, STR("$ref"), 0) != SIZE_MAX;
		buf_add(&b, lines);
		buf_add(&b, m->next ? STR(",") : STR("}"));
	}
	if (refers) {
		buf_char(&b, ',');
		buf_add(&b, schema_lines(STR("\n  \"$defs\": {"), STR("\n  }")));
	}
	buf_char(&b, '}');
	return jv_parse(arena, buf_str(&b), &schema, &err) == 0 && schema_check(schema, document, "", &err) == 0;
}

static int read_document(struct arena *arena, struct str text, const struct jv *vars, struct jv **ret, struct err *err)
{
	int r = yaml_parse(arena, text, ret, err);

	if (!r && (*ret)->type == JV_NULL)
		*ret = jv_object(arena);
	if (!r)
		r = dotenv_expand(arena, *ret, vars, err);
	if (r)
		return err_in_file(err, "agent.yaml");
	/* an empty file, or one with valid common keys only: the schema need not be read */
	if ((*ret)->type == JV_OBJECT && (jv_count(*ret) == 0 || fits_used_keys(arena, *ret)))
		return 0;
	return check_against(arena, embedded_agent_schema, *ret, "agent.yaml", err);
}

static int check_document(const struct jv *document, struct config *config, struct err *err)
{
	int (*const checks[])(const struct jv *, struct err *) = {check_model, check_channels, check_heartbeat};
	int r = check_zone(document, config, err);

	for (size_t i = 0; !r && i < COUNT(checks); i++)
		r = checks[i](document, err);
	if (!r)
		r = read_quota(document, config, err);
	if (!r)
		r = read_history(document, config, err);
	return r;
}

int config_load(struct arena *arena, struct str agent_yaml, struct str dotenv, struct str tools_json,
		struct config *ret_config, struct err *err)
{
	struct config config = {0};
	struct jv *vars, *document, *tools;
	int r = dotenv_parse(arena, dotenv, &vars, err);

	if (r)
		return err_in_file(err, ".env");
	r = read_document(arena, agent_yaml, vars, &document, err);
	if (!r)
		r = check_document(document, &config, err);
	if (!r)
		r = tools_json_read(arena, tools_json, vars, &tools, err);
	if (r)
		return r;
	config.document = document;
	config.name = jv_get_str(document, "name");
	config.description = jv_get_str(document, "description");
	config.relaxed = str_is(jv_get_str(document, "durability"), "relaxed");
	config.prompt_tokens = (uint64_t)jv_get_int(jv_get(document, "prompt"), "max_tokens", 16000);
	config.prompt_files = jv_get(jv_get(document, "prompt"), "context_files");
	config.teammates = jv_get(jv_get(document, "prompt"), "teammates");
	config.mcp_servers = jv_get(tools, "mcpServers");
	merge_names(arena, document, tools, &config);
	*ret_config = config;
	return 0;
}
