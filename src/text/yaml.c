/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text to values: libfyaml's one file.
 *
 * Values are built from the parser's events and not from its document tree: each event has the line it came from, the
 * depth is ours to bound, and nothing is expanded before it was counted. What makes YAML dangerous or surprising is
 * refused with its line, because every document here is configuration or the head of a note that a person wrote:
 * tags, several documents, duplicate keys, keys that are not scalars, merge keys ("<<", of YAML 1.1: in 1.2 they are
 * plain keys, and half of the readers expand them), infinities. An alias is a copy of what its anchor names, and all
 * copies together may not grow past YAML_LEN_MAX.
 *
 * The library writes nothing on its own: it gets a diagnostic object that only collects.
 */
#include "text/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <math.h>
#include <stdarg.h>

#include "base/limits.h"

/* An anchored value with what a copy of it costs. */
struct anchor {
	struct str name;
	const struct jv *value;
	size_t cost;
	struct anchor *next;
};

struct reader {
	struct arena *arena;
	struct fy_parser *parser;
	struct fy_diag *diag;
	struct anchor *anchors;
	size_t cost; /* of what was built so far */
	struct err *err;
};

#define NODE_COST 8

static unsigned line_of(struct fy_event *event)
{
	const struct fy_mark *mark = fy_event_start_mark(event);

	return mark && mark->line >= 0 ? ((unsigned)mark->line + 1) & 0x7fffffffU : 0;
}

__attribute__((format(printf, 3, 4))) static int refuse(struct reader *reader, unsigned line, const char *fmt, ...)
{
	char text[360];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	err_set(reader->err, ERR_INVALID, "line %u: %s", line, text);
	return err_detail(reader->err, DETAIL_AT_LINE);
}

/* Reports what the library says about text that it cannot parse. */
static int refuse_syntax(struct reader *reader)
{
	struct fy_diag_error *found;
	void *at = NULL;

	found = fy_diag_errors_iterate(reader->diag, &at);
	if (!found || !found->msg)
		return err_set(reader->err, ERR_INVALID, "not YAML");
	return refuse(reader, found->line > 0 ? (unsigned)found->line : 1, "not YAML: %s", found->msg);
}

/* The next event, or NULL with the error set. */
static struct fy_event *next(struct reader *reader)
{
	struct fy_event *event = fy_parser_parse(reader->parser);

	if (!event)
		refuse_syntax(reader);
	return event;
}

static int charge(struct reader *reader, unsigned line, size_t cost)
{
	reader->cost += cost;
	if (reader->cost > YAML_LEN_MAX * NODE_COST)
		return refuse(reader, line, "aliases make the document larger than %zu bytes; use fewer of them",
			      YAML_LEN_MAX);
	return 0;
}

/* --- scalars of the core schema --- */

static bool is_one_of(struct str s, const char *a, const char *b, const char *c)
{
	return str_is(s, a) || str_is(s, b) || str_is(s, c);
}

static bool in_base(struct str digits, unsigned shift, int64_t *ret)
{
	uint64_t v = 0;

	if (!digits.len)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		char c = digits.ptr[i];
		unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
			     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
						    : 99;

		if (d >> shift || v >> (63 - shift))
			return false;
		v = v << shift | d;
	}
	*ret = (int64_t)v;
	return true;
}

static size_t digits_at(struct str s, size_t i)
{
	size_t n = 0;

	while (i + n < s.len && s.ptr[i + n] >= '0' && s.ptr[i + n] <= '9')
		n++;
	return n;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool looks_like_number(struct str s)
{
	size_t i = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'), whole = digits_at(s, i), n;

	i += whole;
	if (i < s.len && s.ptr[i] == '.') {
		n = digits_at(s, ++i);
		if (!whole && !n)
			return false;
		i += n;
	} else if (!whole) {
		return false;
	}
	if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
		i++;
		i += i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+');
		n = digits_at(s, i);
		if (!n)
			return false;
		i += n;
	}
	return i == s.len;
}

static bool is_infinite_or_nan(struct str s)
{
	if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'))
		s = str_from(s, 1);
	return is_one_of(s, ".inf", ".Inf", ".INF") || is_one_of(s, ".nan", ".NaN", ".NAN");
}

/* Decimal integers keep all digits; past int64_t they become the nearest double, as in JSON. NULL: not a number. */
static struct jv *number(struct arena *arena, struct str s)
{
	int64_t i;
	double d;

	if (str_starts(s, STR("0x")) && in_base(str_from(s, 2), 4, &i))
		return jv_int(arena, i);
	if (str_starts(s, STR("0o")) && in_base(str_from(s, 2), 3, &i))
		return jv_int(arena, i);
	if (!looks_like_number(s))
		return NULL;
	if (str_to_i64(s.ptr[0] == '+' ? str_from(s, 1) : s, &i))
		return jv_int(arena, i);
	d = strtod(arena_cstr(arena, s), NULL);
	return isfinite(d) ? jv_real(arena, d) : NULL;
}

static struct jv *plain_scalar(struct arena *arena, struct str s)
{
	struct jv *v;

	if (s.len == 0 || str_is(s, "~") || is_one_of(s, "null", "Null", "NULL"))
		return jv_null(arena);
	if (is_one_of(s, "true", "True", "TRUE"))
		return jv_bool(arena, true);
	if (is_one_of(s, "false", "False", "FALSE"))
		return jv_bool(arena, false);
	v = number(arena, s);
	return v ? v : jv_str(arena, s);
}

static int scalar_text(struct reader *reader, struct fy_event *event, struct str *ret)
{
	size_t len = 0;
	const char *text = event->scalar.value ? fy_token_get_text(event->scalar.value, &len) : "";

	if (!text)
		return refuse_syntax(reader);
	*ret = arena_str(reader->arena, str_n(text, len));
	/* an escape such as "\ud800" is not a character; the text around it was checked before parsing */
	if (!utf8_valid(*ret))
		return refuse(reader, line_of(event), "a quoted string has an escape that is not a character");
	return 0;
}

static int scalar(struct reader *reader, struct fy_event *event, struct jv **ret)
{
	bool plain = !event->scalar.value || fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
	unsigned line = line_of(event);
	struct str text;
	int r = scalar_text(reader, event, &text);

	if (r)
		return r;
	if (plain && is_infinite_or_nan(text))
		return refuse(reader, line, "%.*s is not allowed in a configuration; quote it if it is text",
			      STR_ARG(text));
	*ret = plain ? plain_scalar(reader->arena, text) : jv_str(reader->arena, text);
	(*ret)->line = line & 0x7fffffffU;
	return charge(reader, line, NODE_COST + text.len);
}

/* --- collections --- */

static int node(struct reader *r, struct fy_event *event, unsigned depth, struct jv **ret);

static int sequence(struct reader *reader, unsigned depth, struct jv *list)
{
	for (;;) {
		struct fy_event *event = next(reader);
		struct jv *item;
		int r;

		if (!event)
			return -ERR_INVALID;
		if (event->type == FYET_SEQUENCE_END) {
			fy_parser_event_free(reader->parser, event);
			return 0;
		}
		r = node(reader, event, depth, &item);
		fy_parser_event_free(reader->parser, event);
		if (r)
			return r;
		jv_push(reader->arena, list, item);
	}
}

static int mapping_key(struct reader *reader, struct fy_event *event, struct str *ret)
{
	unsigned line = line_of(event);
	int r;

	if (event->type != FYET_SCALAR)
		return refuse(reader, line, "a key must be plain text, not a list, a mapping or an alias");
	if (event->scalar.tag || event->scalar.anchor)
		return refuse(reader, line, "a key has a tag or an anchor; write it as plain text");
	r = scalar_text(reader, event, ret);
	if (r)
		return r;
	if (str_is(*ret, "<<") && event->scalar.value && fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN)
		return refuse(reader, line, "merge keys (\"<<\") are not supported; write the keys out");
	return charge(reader, line, NODE_COST + ret->len);
}

static int member_cmp(const void *a, const void *b)
{
	const struct jv_member *x = *(const struct jv_member *const *)a, *y = *(const struct jv_member *const *)b;
	int c = str_cmp(x->key, y->key);

	return c ? c : (x->key_line > y->key_line) - (x->key_line < y->key_line);
}

/* By sorting: a mapping with thousands of keys must not cost their square. */
static int refuse_duplicates(struct reader *reader, const struct jv *object)
{
	size_t n = 0;
	const struct jv_member **sorted = ARENA_ARRAY(reader->arena, const struct jv_member *, jv_count(object));

	for (const struct jv_member *m = jv_first(object); m; m = m->next)
		sorted[n++] = m;
	qsort(sorted, n, sizeof *sorted, member_cmp);
	for (size_t i = 1; i < n; i++)
		if (str_eq(sorted[i - 1]->key, sorted[i]->key))
			return refuse(reader, sorted[i]->key_line, "the key \"%.*s\" occurs twice",
				      STR_ARG(utf8_first(sorted[i]->key, 100)));
	return 0;
}

static int mapping(struct reader *reader, unsigned depth, struct jv *object)
{
	for (;;) {
		struct fy_event *event = next(reader);
		struct jv *value;
		struct str key;
		unsigned key_line;
		int r;

		if (!event)
			return -ERR_INVALID;
		if (event->type == FYET_MAPPING_END) {
			fy_parser_event_free(reader->parser, event);
			return refuse_duplicates(reader, object);
		}
		key_line = line_of(event);
		r = mapping_key(reader, event, &key);
		fy_parser_event_free(reader->parser, event);
		event = r ? NULL : next(reader);
		if (!event)
			return r ? r : -ERR_INVALID;
		r = node(reader, event, depth, &value);
		fy_parser_event_free(reader->parser, event);
		if (r)
			return r;
		*jv_add(reader->arena, object) = (struct jv_member){key, key_line, value, NULL};
	}
}

/* --- anchors --- */

static struct str token_text(struct reader *reader, struct fy_token *token)
{
	size_t len = 0;
	const char *text = fy_token_get_text(token, &len);

	return arena_str(reader->arena, str_n(text ? text : "", text ? len : 0));
}

static int alias(struct reader *reader, struct fy_event *event, struct jv **ret)
{
	struct str name = token_text(reader, event->alias.anchor);
	unsigned line = line_of(event);
	int r;

	for (const struct anchor *a = reader->anchors; a; a = a->next) {
		if (!str_eq(a->name, name))
			continue;
		r = charge(reader, line, a->cost);
		if (r)
			return r;
		*ret = jv_copy(reader->arena, a->value);
		return 0;
	}
	return refuse(reader, line, "*%.*s does not name an earlier anchor", STR_ARG(utf8_first(name, 100)));
}

static void remember(struct reader *reader, struct fy_token *anchor, const struct jv *value, size_t cost)
{
	struct anchor *a = ARENA_NEW(reader->arena, struct anchor);

	a->name = token_text(reader, anchor);
	a->value = value;
	a->cost = cost;
	a->next = reader->anchors;
	reader->anchors = a;
}

static int collection(struct reader *reader, struct fy_event *event, unsigned depth, struct jv **ret)
{
	bool is_map = event->type == FYET_MAPPING_START;
	unsigned line = line_of(event);
	int r;

	if (depth >= JSON_DEPTH_MAX)
		return refuse(reader, line, "the document is nested more than %d levels deep", JSON_DEPTH_MAX);
	*ret = is_map ? jv_object(reader->arena) : jv_array(reader->arena);
	(*ret)->line = line & 0x7fffffffU;
	r = charge(reader, line, NODE_COST);
	if (r)
		return r;
	return is_map ? mapping(reader, depth + 1, *ret) : sequence(reader, depth + 1, *ret);
}

static int node(struct reader *reader, struct fy_event *event, unsigned depth, struct jv **ret)
{
	struct fy_token *tag = fy_event_get_tag_token(event), *anchor = fy_event_get_anchor_token(event);
	size_t before = reader->cost;
	int r;

	if (event->type == FYET_ALIAS)
		return alias(reader, event, ret);
	if (tag)
		return refuse(reader, line_of(event), "the tag %.*s is not supported; leave it out",
			      STR_ARG(utf8_first(token_text(reader, tag), 100)));
	if (event->type == FYET_SCALAR)
		r = scalar(reader, event, ret);
	else if (event->type == FYET_MAPPING_START || event->type == FYET_SEQUENCE_START)
		r = collection(reader, event, depth, ret);
	else
		r = refuse_syntax(reader);
	/* remembered when it is whole: an alias within its own anchor finds nothing, so no value can hold itself */
	if (!r && anchor)
		remember(reader, anchor, *ret, reader->cost - before);
	return r;
}

static int document(struct reader *reader, struct jv **ret)
{
	bool seen = false;

	for (;;) {
		struct fy_event *event = next(reader);
		enum fy_event_type type;
		int r = 0;

		if (!event)
			return -ERR_INVALID;
		type = event->type;
		if (type == FYET_DOCUMENT_START && seen)
			r = refuse(reader, line_of(event), "a second document begins; only one is allowed");
		else if (type == FYET_DOCUMENT_START)
			seen = true;
		else if (type != FYET_STREAM_START && type != FYET_STREAM_END && type != FYET_DOCUMENT_END)
			r = node(reader, event, 0, ret);
		fy_parser_event_free(reader->parser, event);
		if (r || type == FYET_STREAM_END)
			return r;
	}
}

static int read_document(struct reader *reader, struct str text, struct jv **ret)
{
	struct fy_diag_cfg quiet;
	struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE};
	int r;

	fy_diag_cfg_default(&quiet);
	quiet.fp = NULL;
	quiet.level = FYET_ERROR;
	reader->diag = fy_diag_create(&quiet);
	if (!reader->diag)
		return err_set(reader->err, ERR_INTERNAL, "the YAML reader could not be started");
	fy_diag_set_collect_errors(reader->diag, true);
	cfg.diag = reader->diag;
	reader->parser = fy_parser_create(&cfg);
	if (!reader->parser || fy_parser_set_string(reader->parser, text.ptr, text.len) != 0)
		r = err_set(reader->err, ERR_INTERNAL, "the YAML reader could not be started");
	else
		r = document(reader, ret);
	fy_parser_destroy(reader->parser);
	fy_diag_destroy(reader->diag);
	return r;
}

int yaml_parse(struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	struct reader reader = {.arena = arena, .err = err};
	struct jv *value = jv_null(arena);
	int r;

	if (text.len > YAML_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the YAML text has %zu bytes; at most %zu are read", text.len,
			       YAML_LEN_MAX);
	if (!utf8_valid(text) || (text.len && memchr(text.ptr, 0, text.len)))
		return err_set(err, ERR_INVALID, "the YAML text is not UTF-8, or has a NUL byte; save it as UTF-8");
	if (str_starts(text, STR("\xEF\xBB\xBF")))
		text = str_from(text, 3);
	if (str_trim(text).len) {
		r = read_document(&reader, text, &value);
		if (r)
			return r;
	}
	*ret = value;
	return 0;
}
