/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values to YAML, as small as a round trip allows: a scalar is written plain when no reader of YAML could take it for
 * anything but that text, else in double quotes with every character escaped that YAML does not allow raw. So
 * "null", "1e3", a line break or a quote in a title come back as they went in, however often the file is rewritten.
 * Text of several lines becomes a block where its indentation alone delimits it.
 */
#include "base/utf8.h"
#include "text/yaml.h"

#define FLOW_ITEMS_MAX 16

static bool plain_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '.' || c == '/' || c == ' ';
}

bool yaml_is_plain(struct str s)
{
	static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};

	if (!s.len || s.len > 200 || s.ptr[s.len - 1] == ' ' || !((s.ptr[0] | 32) >= 'a' && (s.ptr[0] | 32) <= 'z'))
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!plain_char(s.ptr[i]))
			return false;
	for (size_t i = 0; s.len <= 5 && i < COUNT(words); i++)
		if (str_eq_nocase(s, str_of(words[i])))
			return false;
	return true;
}

static bool must_escape(uint32_t c)
{
	return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE ||
	       c == 0xFFFF;
}

static void write_quoted(struct buf *buf, struct str s)
{
	buf_char(buf, '"');
	for (size_t i = 0; i < s.len;) {
		size_t from = i;
		uint32_t c = utf8_next(s, &i);

		if (c == '"' || c == '\\')
			buf_printf(buf, "\\%c", (char)c);
		else if (c == '\n')
			buf_lit(buf, "\\n");
		else if (c == '\t')
			buf_lit(buf, "\\t");
		else if (must_escape(c))
			buf_printf(buf, "\\u%04x", (unsigned)c);
		else
			buf_add(buf, str_n(s.ptr + from, i - from));
	}
	buf_char(buf, '"');
}

static void write_text(struct buf *buf, struct str s)
{
	ARENA_SCOPE struct arena *arena = NULL;

	if (!utf8_valid(s)) { /* as the JSON writer does: a malformed byte becomes U+FFFD */
		struct buf json;
		struct jv *clean;
		struct err err;

		arena = arena_new();
		buf_init(&json, arena, s.len * 6 + 16);
		jv_write_string(&json, s);
		if (jv_parse(arena, buf_str(&json), &clean, &err) != 0)
			return;
		s = clean->u.s;
	}
	if (yaml_is_plain(s))
		buf_add(buf, s);
	else
		write_quoted(buf, s);
}

static void write_scalar(struct buf *buf, const struct jv *v)
{
	if (v->type == JV_STR)
		write_text(buf, v->u.s);
	else
		jv_write(buf, v);
}

static bool is_scalar(const struct jv *v)
{
	return v->type != JV_ARRAY && v->type != JV_OBJECT;
}

/* Short lists of scalars go on one line, as people write tags. */
static bool fits_one_line(const struct jv *list)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (!is_scalar(m->value))
			return false;
	return jv_count(list) <= FLOW_ITEMS_MAX;
}

static void indent(struct buf *buf, unsigned columns)
{
	for (unsigned i = 0; i < columns; i++)
		buf_char(buf, ' ');
}

/* True for lines that may follow "key: |": the first is not empty and does not begin with a blank, none ends with one,
   the last is not empty (or blank lines would decide where the block ends), and nothing needs an escape. */
static bool may_stand_as_block(struct str s)
{
	struct str line;

	if (str_find_char(s, '\n') == s.len || !utf8_valid(s) || s.ptr[0] == '\n' || s.ptr[0] == ' ' ||
	    str_ends(s, STR("\n\n")))
		return false;
	for (size_t i = 0; i < s.len;) {
		uint32_t c = utf8_next(s, &i);

		if (c != '\n' && must_escape(c))
			return false;
	}
	while (str_cut(&s, '\n', &line))
		if (line.len && line.ptr[line.len - 1] == ' ')
			return false;
	return true;
}

static void write_block(struct buf *buf, struct str s, unsigned columns)
{
	bool ends = str_ends(s, STR("\n"));
	struct str line;

	buf_add(buf, ends ? STR(" |\n") : STR(" |-\n"));
	if (ends)
		s.len--;
	while (str_cut(&s, '\n', &line)) {
		if (line.len)
			indent(buf, columns);
		buf_add(buf, line);
		buf_char(buf, '\n');
	}
}

static void write_members(struct buf *buf, const struct jv *v, unsigned columns);

/* The value after "key:" or "-", with its line end. */
static void write_value(struct buf *buf, const struct jv *v, unsigned columns)
{
	if (jv_count(v) == 0 && !is_scalar(v)) {
		buf_add(buf, v->type == JV_ARRAY ? STR(" []\n") : STR(" {}\n"));
	} else if (v->type == JV_ARRAY && fits_one_line(v)) {
		buf_lit(buf, " [");
		for (const struct jv_member *m = jv_first(v); m; m = m->next) {
			write_scalar(buf, m->value);
			if (m->next)
				buf_lit(buf, ", ");
		}
		buf_lit(buf, "]\n");
	} else if (v->type == JV_STR && may_stand_as_block(v->u.s)) {
		write_block(buf, v->u.s, columns + 2);
	} else if (is_scalar(v)) {
		buf_char(buf, ' ');
		write_scalar(buf, v);
		buf_char(buf, '\n');
	} else {
		buf_char(buf, '\n');
		write_members(buf, v, columns + 2);
	}
}

static void write_members(struct buf *buf, const struct jv *v, unsigned columns)
{
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		indent(buf, columns);
		if (v->type == JV_ARRAY) {
			buf_char(buf, '-');
		} else {
			write_text(buf, m->key);
			buf_char(buf, ':');
		}
		write_value(buf, m->value, columns);
	}
}

void yaml_write(struct buf *buf, const struct jv *object, unsigned columns)
{
	write_members(buf, object, columns);
}
