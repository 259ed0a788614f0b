/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a Markdown file: YAML between two fences (text/yaml.h). Most heads were written by frontmatter_write(),
 * or as simply by a person: one "key: value" per line. quick_head() reads those at a tenth of the price and leaves
 * everything else to the YAML parser, so that ten thousand notes can be listed.
 *
 * A text that begins with "---" and has no second such line has no head: "---" is also a rule in Markdown.
 */
#include "text/frontmatter.h"

#include "base/limits.h"
#include "text/yaml.h"

static bool is_fence(struct str line)
{
	struct str rest = str_from(line, 3);

	if (!str_starts(line, STR("---")))
		return false;
	for (size_t i = 0; i < rest.len; i++)
		if (rest.ptr[i] != ' ' && rest.ptr[i] != '\t' && rest.ptr[i] != '\r')
			return false;
	return true;
}

/* The offsets of the closing fence and of what follows it. */
static bool find_close(struct str text, size_t from, size_t *ret_close, size_t *ret_body)
{
	while (from < text.len) {
		struct str line = str_from(text, from);

		line.len = str_find_char(line, '\n');
		if (is_fence(line)) {
			*ret_close = from;
			*ret_body = from + line.len + (from + line.len < text.len);
			return true;
		}
		from += line.len + 1;
	}
	return false;
}

/* A value at the start of *rest, up to one of `ends` or the end of the line. NULL: the YAML parser must decide. */
static struct jv *quick_scalar(struct arena *arena, struct str *rest, const char *ends)
{
	struct jv *v = NULL;
	struct err ignored;
	struct str word;
	int64_t number;
	size_t n = 0;

	if (rest->len && rest->ptr[0] == '"') {
		for (n = 1; n < rest->len && rest->ptr[n] != '"'; n++)
			if (rest->ptr[n] == '\\' && str_eq_nocase(str_first(str_from(*rest, ++n), 2), STR("ud")))
				return NULL; /* JSON has surrogates, YAML has not */
		word = str_first(*rest, n + 1);
		if (jv_parse(arena, word, &v, &ignored))
			return NULL;
	} else {
		while (n < rest->len && !strchr(ends, rest->ptr[n]))
			n++;
		word = str_first(*rest, n);
		if (str_is(word, "true") || str_is(word, "false"))
			v = jv_bool(arena, word.ptr[0] == 't');
		else if (yaml_is_plain(word))
			v = jv_str(arena, word);
		else if (word.len <= 18 && word.len && word.ptr[0] >= '1' && str_to_i64(word, &number))
			v = jv_int(arena, number);
	}
	*rest = str_from(*rest, word.len);
	return v;
}

static struct jv *quick_list(struct arena *arena, struct str *rest, unsigned line)
{
	struct jv *list = jv_array(arena), *item;

	do {
		*rest = str_from(*rest, list->u.items.count ? 2 : 1);
		if (!list->u.items.count && str_starts(*rest, STR("]")))
			break;
		item = quick_scalar(arena, rest, ",]");
		if (!item)
			return NULL;
		item->line = line & 0x7fffffffU;
		jv_push(arena, list, item);
	} while (str_starts(*rest, STR(", ")));
	if (!str_starts(*rest, STR("]")))
		return NULL;
	*rest = str_from(*rest, 1);
	return list;
}

/* False: the YAML parser must decide. */
static bool quick_head(struct arena *arena, struct str text, struct frontmatter *ret)
{
	struct str rest = str_from(text, 4), line;
	struct jv *head = jv_object(arena), *value;

	if (!str_starts(text, STR("---\n")))
		return false;
	head->line = 2;
	for (unsigned n = 2; str_cut(&rest, '\n', &line); n++) {
		struct str key = str_first(line, str_find_char(line, ':')), left = str_from(line, key.len + 2);
		size_t at = (size_t)(line.ptr - text.ptr);

		if (str_is(line, "---")) {
			*ret = (struct frontmatter){head, str_from(text, at + 4), true};
			return at <= FRONTMATTER_LEN_MAX;
		}
		if (!yaml_is_plain(key) || str_find_char(key, ' ') < key.len || jv_get_key(head, key) ||
		    !str_starts(str_from(line, key.len), STR(": ")))
			return false;
		value = str_starts(left, STR("[")) ? quick_list(arena, &left, n) : quick_scalar(arena, &left, "");
		if (!value || left.len)
			return false;
		value->line = n & 0x7fffffffU;
		jv_set_key(arena, head, key, value);
		head->u.items.last->key_line = n;
	}
	return false;
}

int frontmatter_parse(struct arena *arena, struct str text, struct frontmatter *ret, struct err *err)
{
	struct str first = str_first(text, str_find_char(text, '\n'));
	size_t close, body;
	struct jv *head;
	int r;

	if (quick_head(arena, text, ret))
		return 0;
	if (first.len == text.len || !is_fence(first) || !find_close(text, first.len + 1, &close, &body)) {
		*ret = (struct frontmatter){jv_object(arena), text, false};
		return 0;
	}
	if (close > FRONTMATTER_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the head between the \"---\" lines has %zu bytes; at most %zu are read", close,
			       FRONTMATTER_LEN_MAX);
	/* from the line break of the first line on, so that lines count as in the file */
	r = yaml_parse(arena, str_n(text.ptr + first.len, close - first.len), &head, err);
	if (r)
		return r;
	if (head->type == JV_NULL)
		head = jv_object(arena);
	if (head->type != JV_OBJECT)
		return err_set(err, ERR_INVALID,
			       "line 2: there is no \"key: value\" between the \"---\" lines; add one, or "
			       "remove the first \"---\" line");
	*ret = (struct frontmatter){head, str_from(text, body), true};
	return 0;
}

void frontmatter_write(struct buf *buf, const struct jv *head, struct str body)
{
	buf_lit(buf, "---\n");
	yaml_write(buf, head, 0);
	buf_lit(buf, "---\n");
	buf_add(buf, body);
}
