/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comments and trailing commas become blanks, byte for byte, so the lines that the parser names stay true. The schema
 * checks shapes; what it cannot say (that a server is reached in one way, that a header is one) is checked here, and
 * servers are brought into one form, so that the code that starts them need not know the variants.
 *
 * JSON values have no lines. When something is wrong, the text is read once more as YAML, of which it is a part, only
 * to name the line.
 */
#include "workspace/tools_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "text/dotenv.h"
#include "text/schema.h"
#include "text/yaml.h"
#include "workspace/embedded.h"

#define TIMEOUT_MS 30000
#define WEEK_MS    ((int64_t)7 * 24 * 3600 * 1000)
#define NAME_MAX_  ((size_t)64)

/* --- comments and commas --- */

/* Where a comment that begins at `i` ends, or `i` when none begins there (or never ends: the parser will name it). */
static size_t comment_end(struct str text, size_t i)
{
	struct str rest = str_from(text, i);
	size_t end;

	if (str_starts(rest, STR("//")))
		return i + str_find_char(rest, '\n');
	if (!str_starts(rest, STR("/*")))
		return i;
	end = str_find(rest, STR("*/"), 2);
	return end == SIZE_MAX ? i : i + end + 2;
}

static size_t string_end(struct str text, size_t i)
{
	for (i++; i < text.len && text.ptr[i] != '"'; i++)
		i += text.ptr[i] == '\\';
	return i;
}

/* A comma with nothing before it is left for the parser to refuse. */
static struct str plain_json(struct arena *arena, struct str text)
{
	char *out = arena_alloc_raw(arena, text.len + 1), before = '[';
	size_t comma = SIZE_MAX;

	memcpy(out, text.ptr ? text.ptr : "", text.len);
	for (size_t i = 0; i < text.len; i++) {
		size_t end = comment_end(text, i);

		if (end > i) {
			for (; i < end; i++)
				out[i] = out[i] == '\n' ? '\n' : ' ';
			i--;
			continue;
		}
		if (memchr(" \t\r\n", out[i], 4))
			continue;
		if ((out[i] == '}' || out[i] == ']') && comma != SIZE_MAX)
			out[comma] = ' ';
		comma = out[i] == ',' && !memchr("[{,", before, 3) ? i : SIZE_MAX;
		before = out[i];
		if (out[i] == '"')
			i = string_end(text, i);
	}
	return str_n(out, text.len);
}

/* --- durations --- */

/* "12.5S" off the front of *s: the number before one of `units`, which may each come once, in order. */
static bool take_part(struct str *s, const char **units, char *ret_unit, double *ret)
{
	char number[32];
	size_t n = 0;
	const char *unit;

	while (n < s->len && n < sizeof number - 1 && ((s->ptr[n] >= '0' && s->ptr[n] <= '9') || s->ptr[n] == '.'))
		n++;
	if (n == 0 || n >= s->len || s->ptr[0] == '.')
		return false;
	memcpy(number, s->ptr, n);
	number[n] = 0;
	unit = strchr(*units, s->ptr[n] & ~32);
	if (!unit || !*unit)
		return false;
	*ret_unit = *unit;
	*units = unit + 1;
	*ret = strtod(number, NULL);
	*s = str_from(*s, n + 1);
	return true;
}

static bool iso_seconds(struct str s, double *ret)
{
	const char *days = "D", *times = "HMS";
	double part, total = 0;
	char unit;

	if (s.len < 3 || (s.ptr[0] & ~32) != 'P')
		return false;
	s = str_from(s, 1);
	if ((s.ptr[0] & ~32) != 'T') {
		if (!take_part(&s, &days, &unit, &part))
			return false;
		total += part * 86400;
	}
	if (s.len && (s.ptr[0] & ~32) == 'T') {
		s = str_from(s, 1);
		if (!s.len)
			return false;
		while (s.len) {
			if (!take_part(&s, &times, &unit, &part))
				return false;
			total += part * (unit == 'H' ? 3600 : unit == 'M' ? 60 : 1);
		}
	}
	*ret = total;
	return s.len == 0;
}

/* ISO 8601 ("PT30S", "P1DT2H", any case) or seconds, in milliseconds; false when it is not a duration, not above 0, or
   over a week. */
static bool tools_json_duration(const struct jv *v, int64_t *ret_ms)
{
	double seconds;

	if (v->type == JV_INT)
		seconds = (double)v->u.i;
	else if (v->type == JV_REAL)
		seconds = v->u.d;
	else if (v->type != JV_STR || !iso_seconds(v->u.s, &seconds))
		return false;
	if (!(seconds > 0 && seconds * 1000 <= (double)WEEK_MS))
		return false;
	*ret_ms = (int64_t)ceil(seconds * 1000);
	return true;
}

/* --- servers --- */

/* Other ways to write a transport, in any case; one that is not known stays, for the schema to refuse. */
static struct str transport_name(struct str text)
{
	static const struct {
		const char *word, *name;
	} words[] = {{"stdio", "stdio"},
		     {"sse", "sse"},
		     {"http", "http"},
		     {"streamable-http", "http"},
		     {"streamable_http", "http"},
		     {"streamablehttp", "http"}};

	for (size_t i = 0; i < COUNT(words); i++)
		if (str_eq_nocase(text, str_of(words[i].word)))
			return str_of(words[i].name);
	return text;
}

static void settle_transports(struct arena *arena, const struct jv *tools)
{
	static const char *const keys[] = {"transport", "type"};

	for (const struct jv_member *m = jv_first(jv_get(tools, "mcpServers")); m; m = m->next)
		for (size_t i = 0; i < 2; i++) {
			struct str text = jv_get_str(m->value, keys[i]);

			if (text.len && !str_eq(transport_name(text), text))
				jv_set_str(arena, m->value, keys[i], transport_name(text));
		}
}

__attribute__((format(printf, 3, 4))) static int refuse(struct err *err, const struct jv_member *server,
							const char *fmt, ...)
{
	char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (server->key_line)
		return err_set(err, ERR_INVALID, "tools.json line %u: mcpServers.%.*s %s", server->key_line,
			       STR_ARG(utf8_first(server->key, 60)), text);
	return err_set(err, ERR_INVALID, "tools.json: mcpServers.%.*s %s", STR_ARG(utf8_first(server->key, 60)), text);
}

/* Tools of the server are called NAME__tool, so the name must be one that a tool may have. */
static bool server_name_ok(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (i == 0 || !memchr("_.-", c, 3)))
			return false;
	}
	return name.len && name.len <= NAME_MAX_;
}

static int check_transport(const struct jv_member *server, struct str *ret, struct err *err)
{
	const struct jv *s = server->value;
	struct str transport = jv_get_str(s, "transport"), type = jv_get_str(s, "type");

	if (!jv_get(s, "command") == !jv_get(s, "url"))
		return refuse(err, server, "needs either a \"command\" or a \"url\"");
	if (transport.len && type.len && !str_eq(transport, type))
		return refuse(err, server, "has two transports, \"%.*s\" and \"%.*s\"; keep one", STR_ARG(transport),
			      STR_ARG(type));
	if (!transport.len)
		transport = type.len ? type : jv_get(s, "command") ? STR("stdio") : STR("http");
	if (str_is(transport, "stdio") != (jv_get(s, "command") != NULL))
		return refuse(err, server, "is reached by %.*s and has no \"%s\"", STR_ARG(transport),
			      str_is(transport, "stdio") ? "command" : "url");
	*ret = transport;
	return 0;
}

/* What would be cut in two on its way (a header with a line break, a variable with '=') is refused. */
static int check_pairs(const struct jv_member *server, const char *key, const char *never, struct err *err)
{
	for (const struct jv_member *m = jv_first(jv_get(server->value, key)); m; m = m->next) {
		struct str value = jv_str_of(m->value);

		for (size_t i = 0; i < m->key.len; i++)
			if ((unsigned char)m->key.ptr[i] <= 32 || (unsigned char)m->key.ptr[i] >= 127 ||
			    strchr(never, m->key.ptr[i]))
				return refuse(err, server, "has an invalid name in %s", key);
		if (!m->key.len)
			return refuse(err, server, "has an empty name in %s", key);
		for (size_t i = 0; i < value.len; i++)
			if (!value.ptr[i] || value.ptr[i] == '\n' || value.ptr[i] == '\r')
				return refuse(err, server, "has a line break or NUL in %s.%.*s", key,
					      STR_ARG(utf8_first(m->key, 60)));
	}
	return 0;
}

static int settle_duration(struct arena *arena, const struct jv_member *server, const char *key, const char *to,
			   struct err *err)
{
	const struct jv *v = jv_get(server->value, key);
	int64_t ms = TIMEOUT_MS;

	if (v && !tools_json_duration(v, &ms))
		return refuse(err, server,
			      "has a %s that is not a duration above 0 and up to a week, such as \"PT30S\"", key);
	jv_remove(server->value, key);
	jv_set_int(arena, server->value, to, ms);
	return 0;
}

static int settle_server(struct arena *arena, const struct jv_member *server, struct err *err)
{
	struct str transport = STR_NONE;
	int r;

	if (!server_name_ok(server->key))
		return refuse(err, server, "is not a valid name for a server; use letters, digits, '_', '-' and '.'");
	r = check_transport(server, &transport, err);
	if (r == 0)
		r = check_pairs(server, "env", "=", err);
	if (r == 0)
		r = check_pairs(server, "headers", "()<>@,;:\\\"/[]?={}", err);
	if (r == 0)
		r = check_pairs(server, "queryParams", "&=#", err);
	if (r == 0)
		r = settle_duration(arena, server, "timeout", "timeout_ms", err);
	if (r == 0)
		r = settle_duration(arena, server, "initializationTimeout", "initialization_timeout_ms", err);
	if (r)
		return r;
	jv_remove(server->value, "type");
	jv_set_str(arena, server->value, "transport", transport);
	jv_set_bool(arena, server->value, "disabled", jv_get_bool(server->value, "disabled", false));
	return 0;
}

/* --- the whole --- */

static int check(struct arena *arena, struct jv *tools, const struct jv *vars, struct err *err)
{
	struct jv *schema;
	int r = dotenv_expand(arena, tools, vars, err);

	if (r)
		return err_in_file(err, "tools.json");
	settle_transports(arena, tools);
	r = jv_parse(arena, embedded_tools_schema, &schema, err);
	if (r == 0)
		r = schema_check(schema, tools, "tools.json", err);
	for (const struct jv_member *m = jv_first(jv_get(tools, "mcpServers")); r == 0 && m; m = m->next)
		r = settle_server(arena, m, err);
	return r;
}

int tools_json_read(struct arena *arena, struct str text, const struct jv *vars, struct jv **ret, struct err *err)
{
	struct jv *tools, *with_lines;
	struct str plain;
	struct err again;
	int r;

	*ret = NULL;
	if (str_starts(text, STR("\xEF\xBB\xBF")))
		text = str_from(text, 3);
	if (!str_trim(text).len)
		return 0;
	if (text.len > YAML_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "tools.json has %zu bytes; at most %zu are read", text.len,
			       YAML_LEN_MAX);
	plain = plain_json(arena, text);
	r = jv_parse(arena, plain, &tools, err);
	if (r)
		return err_prefix(err, "tools.json");
	r = check(arena, tools, vars, err);
	if (r == 0)
		*ret = tools;
	else if (yaml_parse(arena, plain, &with_lines, &again) == 0 && check(arena, with_lines, vars, &again) != 0)
		*err = again;
	return r;
}
