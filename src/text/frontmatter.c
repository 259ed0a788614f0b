/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a Markdown file: YAML between two fences (text/yaml.h).
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

/* The offsets of the closing fence and of what stands behind it. */
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

int frontmatter_parse(struct arena *arena, struct str text, struct frontmatter *ret, struct err *err)
{
	struct str first = str_first(text, str_find_char(text, '\n'));
	size_t close, body;
	struct jv *head;
	int r;

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
			       "line 2: between the \"---\" lines stands no \"key: value\"; add one, or "
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
