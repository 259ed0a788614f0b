/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits a YAML document by lines. The parser reports the line of every key; a changed value is replaced
 * from that line to the last one that belongs to it, and all other lines are kept byte for byte, with the
 * comments that a person wrote.
 *
 * The result is parsed again and compared with the intended value. So a document whose layout lines do not express
 * (flow style, several keys on a line) cannot be damaged: then the item, and as a last resort the whole document, is
 * rewritten, which loses comments but no value.
 */
#include "base/limits.h"
#include "text/yaml.h"

struct page {
	struct arena *arena;
	struct str *lines; /* [1 … count], without their newlines */
	size_t count;
};

static struct page page_of(struct arena *arena, struct str text)
{
	struct page p = {.arena = arena};
	struct str rest = text, line;
	size_t cap = 2;

	for (size_t i = 0; i < text.len; i++)
		cap += text.ptr[i] == '\n';
	p.lines = ARENA_ARRAY(arena, struct str, cap + 1);
	if (str_ends(rest, STR("\n")))
		rest.len--;
	while (text.len && str_cut(&rest, '\n', &line))
		p.lines[++p.count] = line;
	return p;
}

static size_t indent_of(struct str line)
{
	size_t n = 0;

	while (n < line.len && line.ptr[n] == ' ')
		n++;
	return n;
}

static bool is_blank(struct str line)
{
	return str_trim(line).len == 0;
}

static bool is_comment(struct str line)
{
	return str_starts(str_trim(line), STR("#"));
}

/* "- x" or "-" at `column`. */
static bool is_dash(struct str line, size_t column)
{
	struct str rest = str_from(line, column);

	return indent_of(line) == column && rest.len && rest.ptr[0] == '-' && (rest.len == 1 || rest.ptr[1] == ' ');
}

/* The last line of what begins on line `from` and is indented deeper than `column`; `same` also takes in dashes at that
   column. */
static size_t last_line(const struct page *p, size_t from, size_t column, bool same, bool block)
{
	size_t last = from;

	for (size_t i = from + 1; i <= p->count; i++) {
		struct str line = p->lines[i];

		if (is_blank(line))
			continue;
		if (indent_of(line) <= column && !(same && is_dash(line, column)))
			break;
		if (block || !is_comment(line))
			last = i;
	}
	return last;
}

/* The text of a value that is on its key's line. */
static struct str behind_key(struct str line, size_t column, struct str key)
{
	struct str rest = str_from(line, column);
	size_t quoted = rest.len && (rest.ptr[0] == '"' || rest.ptr[0] == '\'') ? 2 : 0;

	rest = str_from(rest, key.len + quoted);
	return str_trim(str_from(rest, str_find_char(rest, ':') + 1));
}

static size_t member_end(const struct page *p, const struct jv_member *m, size_t column)
{
	struct str value = behind_key(p->lines[m->key_line], column, m->key);
	bool block = value.len && (value.ptr[0] == '|' || value.ptr[0] == '>');

	return last_line(p, m->key_line, column, m->value->type == JV_ARRAY, block);
}

/* Where the comment after a value on one line begins, with the blanks before it; the line's length when there is
   none. */
static size_t comment_at(struct str line, size_t from)
{
	char quote = 0;

	for (size_t i = from; i < line.len; i++) {
		char c = line.ptr[i];

		if (quote == '"' && c == '\\')
			i++;
		else if (quote)
			quote = c == quote ? 0 : quote;
		else if ((c == '"' || c == '\'') && line.ptr[i - 1] == ' ')
			quote = c;
		else if (c == '#' && i && line.ptr[i - 1] == ' ') {
			while (i > from && line.ptr[i - 1] == ' ')
				i--;
			return i;
		}
	}
	return line.len;
}

/* One replacement: lines [from, to] become `text` (whole lines); to = from - 1 inserts before `from`. */
struct splice {
	size_t from, to;
	struct str text;
};

static struct str apply(const struct page *p, const struct splice *splices, size_t count)
{
	struct buf out;
	size_t next = 1;

	buf_init(&out, p->arena, 8 * YAML_LEN_MAX);
	for (size_t i = 0; i <= count; i++) {
		size_t until = i < count ? splices[i].from : p->count + 1;

		for (; next < until; next++) {
			buf_add(&out, p->lines[next]);
			buf_char(&out, '\n');
		}
		if (i < count) {
			buf_add(&out, splices[i].text);
			next = splices[i].to + 1 > next ? splices[i].to + 1 : next;
		}
	}
	return buf_str(&out);
}

/* "key: value" as lines, the first of which begins with `head` in place of its indentation. */
static struct str member_text(struct arena *arena, struct str head, size_t column, struct str key,
			      const struct jv *value)
{
	struct jv *one = jv_object(arena);
	struct buf text;

	jv_set_key(arena, one, key, jv_copy(arena, value));
	buf_init(&text, arena, 8 * YAML_LEN_MAX);
	yaml_write(&text, one, (unsigned)column);
	return arena_printf(arena, "%.*s%s", STR_ARG(head), arena_cstr(arena, str_from(buf_str(&text), column)));
}

/* A value on one line keeps the comment that follows it. */
static struct str with_comment(struct arena *arena, struct str text, struct str line, size_t column)
{
	size_t at = comment_at(line, column);
	struct buf out;

	if (at == line.len || str_find_char(text, '\n') != text.len - 1)
		return text;
	buf_init(&out, arena, 8 * YAML_LEN_MAX);
	buf_add(&out, str_first(text, text.len - 1));
	buf_add(&out, str_from(line, at));
	buf_char(&out, '\n');
	return buf_str(&out);
}

/* --- items --- */

struct place {
	size_t dash, column; /* line and column of the dash */
	size_t keys;         /* column of the item's keys; 0: not one key a line */
	size_t last;
};

static bool find_item(const struct page *p, const struct jv *item, struct place *ret)
{
	const struct jv_member *first = jv_first(item);
	struct str line;
	size_t at;

	if (item->type != JV_OBJECT || !first || first->key_line > p->count)
		return false;
	at = first->key_line;
	line = p->lines[at];
	if (!is_dash(line, indent_of(line))) { /* "-" on a line of its own, or no dash at all */
		while (at > 1 && (is_blank(p->lines[at - 1]) || is_comment(p->lines[at - 1])))
			at--;
		if (at < 2 || !str_is(str_trim(p->lines[at - 1]), "-"))
			return false;
		at--;
	}
	*ret = (struct place){.dash = at, .column = indent_of(p->lines[at])};
	ret->last = last_line(p, at, ret->column, false, true);
	while (ret->last > at && (is_blank(p->lines[ret->last]) || is_comment(p->lines[ret->last])))
		ret->last--;
	ret->keys = ret->dash == first->key_line ? ret->column + 1 : indent_of(p->lines[first->key_line]);
	while (ret->keys < line.len && line.ptr[ret->keys] == ' ')
		ret->keys++;
	for (const struct jv_member *m = first; m->next; m = m->next)
		if (m->next->key_line <= m->key_line || indent_of(p->lines[m->next->key_line]) != ret->keys)
			ret->keys = 0;
	if (ret->keys && ret->keys < line.len && line.ptr[ret->keys] == '{')
		ret->keys = 0;
	for (const struct jv_member *m = ret->keys ? first : NULL; m; m = m->next)
		ret->last = member_end(p, m, ret->keys); /* a block may end in what looks like a comment */
	return true;
}

static struct str item_text(struct arena *arena, size_t column, const struct jv *item)
{
	struct buf text, out;

	buf_init(&text, arena, 8 * YAML_LEN_MAX);
	buf_init(&out, arena, 8 * YAML_LEN_MAX);
	yaml_write(&text, item, (unsigned)column + 2);
	buf_add(&out, str_first(buf_str(&text), column));
	buf_lit(&out, "- ");
	buf_add(&out, str_from(buf_str(&text), column + 2));
	return buf_str(&out);
}

/* The keys that differ, each on its own lines. False: the item has to be written as a whole. */
static bool set_members(const struct page *p, const struct jv *old, const struct place *at, const struct jv *item,
			struct str *ret)
{
	struct splice *splices = ARENA_ARRAY(p->arena, struct splice, jv_count(old) + jv_count(item) + 1);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(old); m; m = m->next) {
		const struct jv *value = jv_get_key(item, m->key);
		struct str line = p->lines[m->key_line];
		struct splice s = {m->key_line, member_end(p, m, at->keys), STR_NONE};

		if (value && jv_equal(value, m->value))
			continue;
		if (!value && m == jv_first(old))
			return false; /* its line has the dash */
		if (value)
			s.text = with_comment(p->arena,
					      member_text(p->arena, str_first(line, at->keys), at->keys, m->key, value),
					      s.to == s.from ? line : STR(""), at->keys);
		splices[n++] = s;
	}
	for (const struct jv_member *m = jv_first(item); m; m = m->next)
		if (!jv_get_key(old, m->key)) {
			struct str head = arena_printf(p->arena, "%*s", (int)at->keys, "");

			splices[n++] = (struct splice){at->last + 1, at->last,
						       member_text(p->arena, head, at->keys, m->key, m->value)};
		}
	*ret = apply(p, splices, n);
	return true;
}

/* --- the document --- */

static int read_list(struct arena *arena, struct str text, const char *list, struct jv **ret_document,
		     const struct jv_member **ret_list, struct err *err)
{
	int r = yaml_parse(arena, text, ret_document, err);

	*ret_list = NULL;
	if (r)
		return r;
	if ((*ret_document)->type == JV_NULL)
		*ret_document = jv_object(arena);
	if ((*ret_document)->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "line 1: the document is not a list of \"key: value\" lines");
	for (const struct jv_member *m = jv_first(*ret_document); m; m = m->next)
		if (str_is(m->key, list))
			*ret_list = m;
	if (*ret_list && (*ret_list)->value->type != JV_ARRAY && (*ret_list)->value->type != JV_NULL)
		return err_set(err, ERR_INVALID, "line %u: \"%s\" is not a list; write its items as \"- key: value\"",
			       (*ret_list)->key_line, list);
	return 0;
}

/* True when `text` means `wanted`. */
static bool means(struct arena *arena, struct str text, const struct jv *wanted)
{
	struct jv *got;
	struct err ignored;

	return yaml_parse(arena, text, &got, &ignored) == 0 && jv_equal(got, wanted);
}

static struct str write_anew(struct arena *arena, const struct jv *document)
{
	struct buf text;

	buf_init(&text, arena, 8 * YAML_LEN_MAX);
	yaml_write(&text, document, 0);
	return buf_str(&text);
}

/* The list with item `index` replaced, added (index = count) or, with NULL, taken out. */
static struct jv *changed(struct arena *arena, const struct jv *document, const char *list, size_t index,
			  const struct jv *item)
{
	struct jv *copy = jv_copy(arena, document), *items = jv_array(arena);
	size_t i = 0;

	for (const struct jv_member *m = jv_first(jv_get(document, list)); m; m = m->next, i++) {
		if (i != index)
			jv_push(arena, items, m->value);
		else if (item)
			jv_push(arena, items, jv_copy(arena, item));
	}
	if (index >= i && item)
		jv_push(arena, items, jv_copy(arena, item));
	jv_set(arena, copy, list, items);
	return copy;
}

static struct str add_item(const struct page *p, const struct jv_member *list, const char *key, const struct jv *item)
{
	const struct jv_member *last = list ? jv_first(list->value) : NULL;
	struct splice s = {p->count + 1, p->count, STR_NONE};
	struct place at = {.column = 2};

	while (last && last->next)
		last = last->next;
	if (last && find_item(p, last->value, &at))
		s = (struct splice){at.last + 1, at.last, STR_NONE};
	else if (list && list->key_line <= p->count)
		s = (struct splice){list->key_line, list->key_line, STR_NONE}; /* "tasks:" or "tasks: []" */
	s.text = item_text(p->arena, at.column, item);
	if (!last)
		s.text = arena_printf(p->arena, "%s:\n%s", key, arena_cstr(p->arena, s.text));
	return apply(p, &s, 1);
}

int yaml_list_set(struct arena *arena, struct str text, const char *list, size_t index, const struct jv *item,
		  struct str *ret_text, struct err *err)
{
	struct page p = page_of(arena, text);
	const struct jv_member *m;
	struct jv *document, *wanted;
	const struct jv *old;
	struct place at;
	int r = read_list(arena, text, list, &document, &m, err);

	if (r)
		return r;
	wanted = changed(arena, document, list, index, item);
	old = m ? jv_at(m->value, index) : NULL;
	if (!old) {
		*ret_text = add_item(&p, m, list, item);
	} else if (find_item(&p, old, &at)) {
		struct splice whole = {at.dash, at.last, item_text(arena, at.column, item)};

		if (at.keys && set_members(&p, old, &at, item, ret_text) && means(arena, *ret_text, wanted))
			return 0;
		*ret_text = apply(&p, &whole, 1);
	} else {
		*ret_text = write_anew(arena, wanted);
	}
	if (!means(arena, *ret_text, wanted))
		*ret_text = write_anew(arena, wanted);
	return 0;
}

int yaml_list_remove(struct arena *arena, struct str text, const char *list, size_t index, struct str *ret_text,
		     struct err *err)
{
	struct page p = page_of(arena, text);
	const struct jv_member *m;
	struct jv *document, *wanted;
	struct splice s[2];
	size_t n = 0;
	struct place at;
	int r = read_list(arena, text, list, &document, &m, err);

	if (r)
		return r;
	if (!m || index >= jv_count(m->value))
		return err_set(err, ERR_NOT_FOUND, "\"%s\" has no item %zu", list, index + 1);
	wanted = changed(arena, document, list, index, NULL);
	*ret_text = STR("");
	if (find_item(&p, jv_at(m->value, index), &at)) {
		if (jv_count(m->value) == 1)
			s[n++] = (struct splice){m->key_line, m->key_line, arena_printf(arena, "%s: []\n", list)};
		s[n++] = (struct splice){at.dash, at.last, STR_NONE};
		*ret_text = apply(&p, s, n);
	}
	if (!means(arena, *ret_text, wanted))
		*ret_text = write_anew(arena, wanted);
	return 0;
}

int yaml_set(struct arena *arena, struct str text, const char *key, const struct jv *value, struct str *ret_text,
	     struct err *err)
{
	struct page p = page_of(arena, text);
	struct jv *document, *wanted;
	const struct jv_member *m;
	struct splice s = {p.count + 1, p.count, STR_NONE};
	int r = yaml_parse(arena, text, &document, err);

	if (r)
		return r;
	if (document->type == JV_NULL)
		document = jv_object(arena);
	if (document->type != JV_OBJECT)
		return err_set(err, ERR_INVALID, "line 1: the document is not a list of \"key: value\" lines");
	wanted = jv_copy(arena, document);
	jv_set(arena, wanted, key, jv_copy(arena, value));
	for (m = jv_first(document); m && !str_is(m->key, key);)
		m = m->next;
	s.text = member_text(arena, STR_NONE, 0, str_of(key), value);
	if (m && m->key_line <= p.count) {
		s.from = m->key_line;
		s.to = member_end(&p, m, 0);
		s.text = with_comment(arena, s.text, s.to == s.from ? p.lines[s.from] : STR(""), 0);
	}
	*ret_text = apply(&p, &s, 1);
	if (!means(arena, *ret_text, wanted))
		*ret_text = write_anew(arena, wanted);
	return 0;
}
