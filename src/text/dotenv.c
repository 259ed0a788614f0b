/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .env files. They hold secrets, so no message here shows a value, and nothing in a value is evaluated (no command
 * substitution, no reference to another name). Text that a shell would read differently is refused rather than guessed.
 *
 * ${NAME} is filled in on parsed values and not on the text: a secret with a quote or a line break in it can then
 * never change the shape of a document.
 */
#include "text/dotenv.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/limits.h"

struct lines {
	struct str text;
	size_t at;
	unsigned line;
	struct err *err;
};

static bool name_start(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool name_char(char c)
{
	return name_start(c) || (c >= '0' && c <= '9');
}

static size_t name_len(struct str s)
{
	size_t n = 0;

	if (!s.len || !name_start(s.ptr[0]))
		return 0;
	while (n < s.len && name_char(s.ptr[n]))
		n++;
	return n;
}

static bool at_end(const struct lines *in)
{
	return in->at >= in->text.len;
}

static char peek(const struct lines *in)
{
	return at_end(in) ? '\n' : in->text.ptr[in->at];
}

static void skip_blanks(struct lines *in)
{
	while (!at_end(in) && (peek(in) == ' ' || peek(in) == '\t' || peek(in) == '\r'))
		in->at++;
}

/* `line` 0: of a JSON value, which has none. */
__attribute__((format(printf, 3, 4))) static int refuse(struct err *err, unsigned line, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (!line)
		return err_set(err, ERR_INVALID, "%s", text);
	err_set(err, ERR_INVALID, "line %u: %s", line, text);
	return err_detail(err, DETAIL_AT_LINE);
}

static void skip_line(struct lines *in)
{
	while (!at_end(in) && peek(in) != '\n')
		in->at++;
	if (!at_end(in))
		in->at++;
	in->line++;
}

/* After a quoted value: blanks and a comment, nothing else. */
static int end_of_line(struct lines *in, struct str name)
{
	skip_blanks(in);
	if (peek(in) != '\n' && peek(in) != '#')
		return refuse(in->err, in->line, "text follows the closing quote of %.*s; quote the whole value",
			      STR_ARG(name));
	skip_line(in);
	return 0;
}

static char unescape(char c)
{
	return c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
}

static int quoted(struct lines *in, struct arena *arena, struct str name, struct str *ret)
{
	char quote = in->text.ptr[in->at++];
	unsigned begin = in->line;
	struct buf b;

	buf_init(&b, arena, ENV_LEN_MAX);
	for (; !at_end(in); in->at++) {
		char c = peek(in);

		if (c == quote) {
			in->at++;
			*ret = buf_str(&b);
			return end_of_line(in, name);
		}
		in->line += c == '\n';
		if (c == '\\' && quote == '"' && in->at + 1 < in->text.len &&
		    memchr("nrt\"\\$", in->text.ptr[in->at + 1], 6))
			c = unescape(in->text.ptr[++in->at]);
		buf_char(&b, c);
	}
	return refuse(in->err, begin, "the value of %.*s has no closing %c", STR_ARG(name), quote);
}

/* To the end of the line, or to a '#' with a blank before it. */
static void unquoted(struct lines *in, struct str *ret)
{
	size_t from = in->at;

	while (!at_end(in) && peek(in) != '\n') {
		if (peek(in) == '#' &&
		    (in->at == from || in->text.ptr[in->at - 1] == ' ' || in->text.ptr[in->at - 1] == '\t'))
			break;
		in->at++;
	}
	*ret = str_trim(str_n(in->text.ptr + from, in->at - from));
	skip_line(in);
}

static int assignment(struct lines *in, struct arena *arena, struct jv *vars)
{
	struct str rest = str_from(in->text, in->at), name, value = STR_NONE;
	int r = 0;

	if (str_starts(rest, STR("export ")) || str_starts(rest, STR("export\t"))) {
		in->at += 7;
		skip_blanks(in);
		rest = str_from(in->text, in->at);
	}
	name = str_first(rest, name_len(rest));
	in->at += name.len;
	skip_blanks(in);
	if (!name.len || peek(in) != '=')
		return refuse(in->err, in->line, "expected NAME=value, where NAME has letters, digits and '_'");
	in->at++;
	skip_blanks(in);
	if (!at_end(in) && (peek(in) == '"' || peek(in) == '\''))
		r = quoted(in, arena, name, &value);
	else
		unquoted(in, &value);
	if (r)
		return r;
	jv_set_key(arena, vars, arena_str(arena, name), jv_str(arena, arena_str(arena, value)));
	return 0;
}

int dotenv_parse(struct arena *arena, struct str text, struct jv **ret_vars, struct err *err)
{
	struct lines in = {text, 0, 1, err};
	struct jv *vars = jv_object(arena);

	if (text.len > ENV_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file has %zu bytes; at most %zu are read", text.len,
			       ENV_LEN_MAX);
	if (!utf8_valid(text) || (text.len && memchr(text.ptr, 0, text.len)))
		return err_set(err, ERR_INVALID, "the file is not UTF-8, or has a NUL byte; save it as UTF-8");
	if (str_starts(text, STR("\xEF\xBB\xBF")))
		in.at = 3;
	while (!at_end(&in)) {
		skip_blanks(&in);
		if (peek(&in) == '\n' || peek(&in) == '#') {
			skip_line(&in);
			continue;
		}
		if (assignment(&in, arena, vars) != 0)
			return -err->kind;
	}
	*ret_vars = vars;
	return 0;
}

/* --- ${NAME} --- */

static struct str look_up(struct arena *arena, const struct jv *vars, struct str name)
{
	const struct jv *v = jv_get_key(vars, name);

	return v ? v->u.s : str_of(env_process(arena_cstr(arena, name)));
}

static int fill_in(struct buf *b, struct arena *arena, struct str *rest, unsigned line, const struct jv *vars,
		   struct err *err)
{
	struct str name = str_from(*rest, 2), value;

	name.len = name_len(name);
	if (!name.len || 2 + name.len >= rest->len || rest->ptr[2 + name.len] != '}')
		return refuse(err, line, "\"${\" is not followed by NAME}; write \"$${\" for the text");
	value = look_up(arena, vars, name);
	if (!value.ptr)
		return refuse(err, line,
			      "${%.*s} is set neither in .env nor in the environment; set it, or write \"$${\" for the "
			      "text",
			      STR_ARG(utf8_first(name, 100)));
	buf_add(b, value);
	*rest = str_from(*rest, 3 + name.len);
	return 0;
}

static int expand_string(struct arena *arena, struct jv *v, const struct jv *vars, struct err *err)
{
	struct str rest = v->u.s;
	struct buf b;

	if (str_find_char(rest, '$') == rest.len)
		return 0;
	buf_init(&b, arena, YAML_LEN_MAX);
	while (rest.len) {
		size_t dollar = str_find_char(rest, '$');

		buf_add(&b, str_first(rest, dollar));
		rest = str_from(rest, dollar);
		if (str_starts(rest, STR("${"))) {
			if (fill_in(&b, arena, &rest, v->line, vars, err) != 0)
				return -err->kind;
			v->from_env = 1;
		} else if (rest.len) {
			buf_char(&b, '$');
			rest = str_from(rest, str_starts(rest, STR("$$")) ? 2 : 1);
		}
	}
	if (b.overflow)
		return refuse(err, v->line, "with its variables the value has more than %zu bytes", YAML_LEN_MAX);
	v->u.s = b.ptr ? buf_str(&b) : STR("");
	if (!utf8_valid(v->u.s))
		return refuse(err, v->line, "a variable from the environment is not UTF-8");
	return 0;
}

int dotenv_expand(struct arena *arena, struct jv *v, const struct jv *vars, struct err *err)
{
	if (v && v->type == JV_STR)
		return expand_string(arena, v, vars, err);
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		int r = dotenv_expand(arena, m->value, vars, err);

		if (r)
			return r;
	}
	return 0;
}
