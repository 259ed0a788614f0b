/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workspace's configuration: agent.yaml, .env and tools.json become one checked document.
 *
 * The order matters. Text is parsed first and variables are filled in afterwards, so that a secret with a quote in it
 * cannot change the document's shape; the schema is checked on what came out, so that a variable is held to the same
 * rules as text; what a schema cannot say (a time zone that exists) comes last.
 *
 * A key that nothing acts on is an error. The schema has only keys that some code reads, because each part of Stead
 * brings its own (config.json in its folder), and tests/cli/config_effect_test.sh shows an effect of every one.
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
#include "workspace/rights.h"
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

__attribute__((format(printf, 3, 4))) static int refuse(struct err *err, unsigned line, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (line)
		return err_set(err, ERR_INVALID, "agent.yaml line %u: %s", line, text);
	return err_set(err, ERR_INVALID, "agent.yaml: %s", text);
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
		return refuse(err, v->line, "%s.%s is larger than any store; write a smaller size", section, key);
	return 0;
}

static int read_history(const struct jv *document, struct config *config, struct err *err)
{
	const struct jv *history = jv_get(document, "history");

	config->history.revisions = (uint64_t)jv_get_int(history, "revisions", 0);
	config->history.age_days = (uint64_t)jv_get_int(history, "age_days", 0);
	return size_of(history, "history", "bytes", 0, &config->history.bytes, err);
}

static int read_quota(const struct jv *document, struct config_quota *ret, struct err *err)
{
	const struct jv *quota = jv_get(document, "quota"), *user = jv_get(quota, "user");
	int r = size_of(quota, "quota", "bytes", 0, &ret->bytes, err);

	if (!r)
		r = size_of(quota, "quota", "file_size", 0, &ret->file_size, err);
	if (!r)
		r = size_of(user, "quota.user", "bytes", 0, &ret->user_bytes, err);
	ret->files = (uint64_t)jv_get_int(quota, "files", 0);
	ret->user_files = (uint64_t)jv_get_int(user, "files", 0);
	return r;
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

static int check_zone(struct arena *arena, const struct jv *document, struct config *config, struct err *err)
{
	const struct jv *zone = jv_get(document, "timezone");
	struct err ignored;

	config->timezone = zone ? zone->u.s : STR("UTC");
	if (zone_exists(config->timezone)) {
		if (!str_is(config->timezone, "UTC"))
			(void)zone_open(arena, config->timezone, &config->zone, &ignored);
		return 0;
	}
	return refuse(err, zone->line,
		      "timezone is \"%.*s\"; expected a zone of the IANA database such as \"Europe/Berlin\"",
		      STR_ARG(shown(zone)));
}

/* Agents write plans, so where they are must be the agent's to write. */
static int check_plans(const struct jv *document, struct err *err)
{
	const struct jv *dir = jv_get(jv_get(document, "plans"), "directory");
	struct wpath path = {dir ? dir->u.s : STR("plans")};
	struct str top = str_first(path.s, str_find_char(path.s, '/'));

	if (rights_owner_of(path) == RIGHTS_AGENT && !str_eq_nocase(top, STR("users")) &&
	    !str_eq_nocase(top, STR("notes")))
		return 0;
	return refuse(err, dir->line, "plans.directory is \"%.*s\", which agents may not write; name another directory",
		      STR_ARG(shown(dir)));
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

/* builtins.NAME.enabled: false denies the builtin. */
static void add_disabled(struct arena *arena, struct jv **list, const struct jv *builtins)
{
	for (const struct jv_member *m = jv_first(builtins); m; m = m->next)
		if (m->value->type == JV_OBJECT && !jv_get_bool(m->value, "enabled", true)) {
			if (!*list)
				*list = jv_array(arena);
			jv_push(arena, *list, jv_str(arena, m->key));
		}
}

static bool is_disabled(const struct jv *document, const char *what)
{
	for (const struct jv_member *m = jv_first(jv_get(document, "disable")); m; m = m->next)
		if (str_is(jv_str_of(m->value), what))
			return true;
	return false;
}

bool config_disables(const struct config *config, const char *what)
{
	return is_disabled(config->document, what);
}

static bool names_processor(const struct jv *list, const char *name)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_is(jv_str_of(m->value), name) || str_is(jv_str_of(m->value), "group:processor"))
			return true;
	return false;
}

bool config_has_processor(const struct config *config, const char *name, bool usual)
{
	const struct jv *own = jv_get(jv_get(config->document, "builtins"), name);

	if (names_processor(config->tools_deny, name))
		return false;
	if (config->builtins_allow)
		return names_processor(config->builtins_allow, name);
	return jv_get_bool(own, "enabled", usual);
}

/* Parts whose tools go with them. */
static void add_switched_off(struct arena *arena, struct jv **list, const struct jv *document)
{
	static const char *const parts[][2] = {
		{"memory_tools", "group:memory"}, {"memory_tools", "session_search"}, {"subagents", "group:subagents"}};

	for (size_t i = 0; i < COUNT(parts); i++)
		if (is_disabled(document, parts[i][0])) {
			if (!*list)
				*list = jv_array(arena);
			jv_push(arena, *list, jv_str(arena, str_of(parts[i][1])));
		}
}

/* Deny lists add up, and so do allow lists. builtins.allow is a list of its own: it chooses among builtins and never
   takes the file tools away. */
static void merge_names(struct arena *arena, const struct jv *document, const struct jv *tools, struct config *config)
{
	const struct jv *builtins = jv_get(document, "builtins");
	struct jv *allow = NULL, *deny = NULL;

	add_names(arena, &allow, jv_get(tools, "allow"));
	add_names(arena, &allow, jv_get(jv_get(document, "tools"), "allow"));
	add_names(arena, &deny, jv_get(tools, "deny"));
	add_names(arena, &deny, jv_get(jv_get(document, "tools"), "deny"));
	add_names(arena, &deny, jv_get(builtins, "deny"));
	add_switched_off(arena, &deny, document);
	add_disabled(arena, &deny, builtins);
	config->tools_allow = allow;
	config->tools_deny = deny;
	config->builtins_allow = jv_count(jv_get(builtins, "allow")) ? jv_get(builtins, "allow") : NULL;
}

/* --- keys that nothing acts on --- */

/* Keys of the systems whose files Stead reads, and what to use in place of each. A row counts only as long as the
   schema lacks the key: whoever begins to act on one adds it to a config.json, and that is all. */
static const struct {
	const char *key, *instead; /* instead NULL: there is nothing like it */
} unserved[] = {
	{"channel", NULL},
	{"channels", NULL},
	{"context_management", NULL},
	{"cron", NULL},
	{"heartbeat", NULL},
	{"lanes", NULL},
	{"lanes.cron_concurrency", "a process runs up to 64 schedules at once"},
	{"lanes.subagent_concurrency", "set the number with \"subagents.max_running\""},
	{"lifecycle.notify_auto_compact", "a summary in the middle of a conversation changes nothing for people"},
	{"logging", NULL},
	{"memory.embedding", "search by meaning is set up with \"embedding\""},
	{"memory.enabled", "search by meaning is set up with \"embedding\""},
	{"memory.vector_store", "search by meaning is set up with \"embedding\""},
	{"model.region", "no provider that Stead knows has regions"},
	{"queue", NULL},
	{"session_ttl_minutes", NULL},
	{"tool_offload.include_metadata", "the file of a parked result always says where the result came from"},
	{"workspace_config", "say where workspaces are stored with --store, STEAD_STORE or stead.yaml"},
	{"workspace_tools", "choose the offered tools with \"tools.allow\" and \"tools.deny\""},
};

/* The member that a dotted key leads to; NULL: there is none. `through`: looked for below this member of each level. */
static const struct jv_member *find_member(const struct jv *at, struct str key, const char *through)
{
	const struct jv_member *m = NULL;
	struct str name;

	while (at && str_cut(&key, '.', &name)) {
		at = through ? jv_get(at, through) : at;
		for (m = jv_first(at); m && !str_eq(m->key, name); m = m->next)
			continue;
		at = m ? m->value : NULL;
	}
	return at ? m : NULL;
}

static int refuse_unserved(const struct jv *schema, const struct jv *document, struct err *err)
{
	for (size_t i = 0; i < COUNT(unserved); i++) {
		const struct jv_member *m = find_member(document, str_of(unserved[i].key), NULL);

		if (!m || find_member(schema, str_of(unserved[i].key), "properties"))
			continue;
		return refuse(err, m->key_line, "nothing in this version of Stead acts on \"%s\"; remove it%s%s",
			      unserved[i].key, unserved[i].instead ? "; " : "",
			      unserved[i].instead ? unserved[i].instead : "");
	}
	return 0;
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

bool config_has_key(struct arena *arena, struct str key)
{
	return schema_lines(arena_printf(arena, "\n    \"%.*s\": {", STR_ARG(key)), STR("\n    }")).ptr;
}

int config_check(struct arena *arena, const struct jv *document, const char *file, struct err *err)
{
	struct jv *schema;
	int r;

	/* an empty file, or one with valid common keys only: the schema need not be read */
	if (document->type == JV_OBJECT && (jv_count(document) == 0 || fits_used_keys(arena, document)))
		return 0;
	r = jv_parse(arena, embedded_agent_schema, &schema, err);
	if (!r && document->type == JV_OBJECT)
		r = refuse_unserved(schema, document, err);
	return r ? r : schema_check(schema, document, file, err);
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
	return config_check(arena, *ret, "agent.yaml", err);
}

/* --- what holds for all workspaces --- */

static bool is_list_of_names(struct str key)
{
	return str_is(key, "allow") || str_is(key, "deny");
}

/* What `own` does not say is taken from `defaults`. */
static void fill_in(struct arena *arena, struct jv *own, const struct jv *defaults)
{
	for (const struct jv_member *m = jv_first(defaults); m; m = m->next) {
		const struct jv_member *mine = jv_first(own);

		while (mine && !str_eq(mine->key, m->key))
			mine = mine->next;
		if (!mine)
			jv_set_key(arena, own, m->key, jv_copy(arena, m->value));
		else if (mine->value->type == JV_OBJECT && m->value->type == JV_OBJECT)
			fill_in(arena, mine->value, m->value);
		else if (is_list_of_names(m->key) && mine->value->type == JV_ARRAY && m->value->type == JV_ARRAY)
			for (const struct jv_member *name = jv_first(m->value); name; name = name->next)
				jv_push(arena, mine->value, jv_copy(arena, name->value));
	}
}

static int check_document(struct arena *arena, const struct jv *document, struct config *config, struct err *err)
{
	int r = check_zone(arena, document, config, err);

	if (!r)
		r = check_plans(document, err);
	if (!r)
		r = read_quota(document, &config->quota, err);
	if (!r)
		r = read_history(document, config, err);
	return r;
}

int config_load(struct arena *arena, struct str agent_yaml, struct str dotenv, struct str tools_json,
		const struct config_defaults *defaults, struct config *ret_config, struct err *err)
{
	struct config config = {0};
	struct jv *vars, *document, *tools;
	int r = dotenv_parse(arena, dotenv, &vars, err);

	if (r)
		return err_in_file(err, ".env");
	if (defaults)
		fill_in(arena, vars, defaults->vars);
	r = read_document(arena, agent_yaml, vars, &document, err);
	if (!r && defaults)
		fill_in(arena, document, defaults->document);
	if (!r)
		r = check_document(arena, document, &config, err);
	if (!r)
		r = tools_json_read(arena, is_disabled(document, "tools_config") ? STR("") : tools_json, vars, &tools,
				    err);
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
