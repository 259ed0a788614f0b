/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory file is Markdown of which only the bullets matter. It is taken apart into parts that together are the file,
 * byte for byte, so that a change of one fact leaves everything else as a person wrote it.
 *
 * The provenance is a comment at the end of the bullet, which a Markdown viewer does not show. Text that was saved
 * cannot contain the beginning of a comment: "<!--" is written as "&lt;!--" (and what looks like that already gets one
 * more "amp;"), so that no text can bring provenance of its own along. '<' and '>' in the comment are JSON escapes.
 *
 * Rejected: a file of provenance next to MEMORY.md. People edit and move bullets, and provenance that is not in the
 * bullet would be lost.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/memory/memory_internal.h"

#define MARK_BEGIN "<!-- stead:fact "
#define MARK_END   "-->"
#define ID_MAX     64

static const char *const trust_names[] = {"", "outside", "agent", "document", "person"};

const char *memory_trust_name(enum memory_trust trust)
{
	return trust_names[trust <= TRUST_PERSON ? trust : 0];
}

enum memory_trust memory_trust_of(struct str name)
{
	for (int i = TRUST_OUTSIDE; i <= TRUST_PERSON; i++)
		if (str_is(name, trust_names[i]))
			return (enum memory_trust)i;
	return 0;
}

bool memory_id_is(struct str id)
{
	if (id.len < 3 || id.len > ID_MAX || id.ptr[1] != '-' || (id.ptr[0] != 'm' && id.ptr[0] != 'p'))
		return false;
	for (size_t i = 2; i < id.len; i++) {
		char c = id.ptr[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')))
			return false;
	}
	return true;
}

/* --- escapes --- */

/* The length of "&" ("amp;")* "lt;!--" at `at`, 0: something else is there. *ret_amps: how many. */
static size_t escaped_at(struct str s, size_t at, size_t *ret_amps)
{
	struct str rest = str_from(s, at + 1);

	if (s.ptr[at] != '&')
		return 0;
	for (*ret_amps = 0; str_starts(rest, STR("amp;")); (*ret_amps)++)
		rest = str_from(rest, 4);
	return str_starts(rest, STR("lt;!--")) ? 1 + *ret_amps * 4 + 6 : 0;
}

static void write_escaped(struct buf *out, struct str s)
{
	size_t amps;

	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '<' && str_starts(str_from(s, i), STR("<!--")))
			buf_lit(out, "&lt;");
		else if (escaped_at(s, i, &amps))
			buf_lit(out, "&amp;");
		else
			buf_char(out, s.ptr[i]);
	}
}

static struct str unescape(struct arena *arena, struct str s)
{
	struct buf out;
	size_t amps;

	if (str_find(s, STR("lt;!--"), 0) == SIZE_MAX)
		return s;
	buf_init(&out, arena, s.len + 1);
	for (size_t i = 0; i < s.len; i++) {
		size_t len = escaped_at(s, i, &amps);

		if (len && amps == 0) {
			buf_lit(&out, "<!--");
			i += len - 1;
		} else if (len) {
			buf_char(&out, '&');
			i += 4; /* one "amp;" less */
		} else {
			buf_char(&out, s.ptr[i]);
		}
	}
	return buf_str(&out);
}

/* --- writing --- */

static void write_mark(struct buf *out, const struct jv *mark)
{
	struct buf json;

	buf_init(&json, out->arena, JSON_LEN_MAX);
	jv_write(&json, mark);
	buf_lit(out, MARK_BEGIN);
	for (size_t i = 0; i < json.len; i++) {
		if (json.ptr[i] == '<')
			buf_lit(out, "\\u003c");
		else if (json.ptr[i] == '>')
			buf_lit(out, "\\u003e");
		else
			buf_char(out, json.ptr[i]);
	}
	buf_lit(out, " " MARK_END);
	if (!out->arena)
		buf_release(&json);
}

void memory_write_fact(struct buf *out, struct str text, const struct jv *mark)
{
	struct str line;
	bool first = true;

	while (str_cut(&text, '\n', &line)) {
		buf_add(out, first ? STR("- ") : STR("\n  "));
		write_escaped(out, line);
		first = false;
	}
	if (mark) {
		buf_char(out, ' ');
		write_mark(out, mark);
	}
	buf_char(out, '\n');
}

static struct str trim_end(struct str s)
{
	while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' || s.ptr[s.len - 1] == '\r'))
		s.len--;
	return s;
}

struct str memory_normal(struct arena *arena, struct str text)
{
	struct buf out;
	struct str line;
	char *clean = arena_alloc_raw(arena, text.len + 1);

	for (size_t i = 0; i < text.len; i++)
		clean[i] = (unsigned char)text.ptr[i] < ' ' && text.ptr[i] != '\n' && text.ptr[i] != '\t' ? ' '
													  : text.ptr[i];
	text = str_trim(str_n(clean, text.len));
	buf_init(&out, arena, text.len + 1);
	while (str_cut(&text, '\n', &line)) {
		line = trim_end(line);
		if (!line.len)
			continue;
		if (out.len)
			buf_char(&out, '\n');
		buf_add(&out, line);
	}
	return out.len ? buf_str(&out) : STR("");
}

/* --- reading --- */

static bool is_bullet(struct str line)
{
	return line.len >= 2 && (line.ptr[0] == '-' || line.ptr[0] == '*' || line.ptr[0] == '+') &&
	       (line.ptr[1] == ' ' || line.ptr[1] == '\t');
}

static bool is_fence(struct str line)
{
	return str_starts(line, STR("```")) || str_starts(line, STR("~~~"));
}

/* True for a line that continues with the bullet before it. */
static bool goes_on(struct str line)
{
	if (!str_trim(line).len)
		return false;
	if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
		return true;
	return !is_bullet(line) && !memchr("#`~>|<=-", line.ptr[0], 8);
}

/* The text of a bullet's lines: without the bullet and the indent. */
static struct str bullet_text(struct arena *arena, struct str raw)
{
	struct buf out;
	struct str line;

	buf_init(&out, arena, raw.len + 1);
	for (bool first = true; str_cut(&raw, '\n', &line); first = false) {
		size_t skip = 0;

		if (first)
			line = str_trim(str_from(line, 2));
		while (!first && skip < 2 && skip < line.len && line.ptr[skip] == ' ')
			skip++;
		if (!first && skip == 0 && line.len && line.ptr[0] == '\t')
			skip = 1;
		line = trim_end(str_from(line, skip));
		if (!first && line.len)
			buf_char(&out, '\n');
		buf_add(&out, line);
	}
	return out.len ? buf_str(&out) : STR("");
}

static size_t find_last(struct str s, struct str what)
{
	size_t found = SIZE_MAX;

	for (size_t at = str_find(s, what, 0); at != SIZE_MAX; at = str_find(s, what, at + 1))
		found = at;
	return found;
}

/* Cuts the mark off; NULL: there is none that can be read. */
static struct jv *take_mark(struct arena *arena, struct str *text, bool *ret_broken)
{
	size_t at = find_last(*text, STR(MARK_BEGIN));
	struct jv *mark = NULL;
	struct str json;
	struct err ignored;

	*ret_broken = at != SIZE_MAX;
	if (at == SIZE_MAX || !str_ends(*text, STR(MARK_END)))
		return NULL;
	json = str_from(*text, at + sizeof(MARK_BEGIN) - 1);
	json = str_trim(str_first(json, json.len - (sizeof(MARK_END) - 1)));
	if (jv_parse(arena, json, &mark, &ignored) || mark->type != JV_OBJECT || !memory_id_is(jv_get_str(mark, "id")))
		return NULL;
	*text = str_trim(str_first(*text, at));
	*ret_broken = false;
	return mark;
}

static void read_fact(struct arena *arena, struct str raw, struct fact *ret)
{
	struct str text = bullet_text(arena, raw);
	bool broken;

	*ret = (struct fact){.mark = take_mark(arena, &text, &broken)};
	ret->text = unescape(arena, text);
	if (!ret->mark) {
		/* a malformed mark proves nothing: the lowest trust */
		ret->trust = broken ? TRUST_OUTSIDE : TRUST_PERSON;
		ret->id = arena_printf(arena, "p-%.16s", hash_hex128(arena, ret->text).ptr);
		return;
	}
	ret->id = jv_get_str(ret->mark, "id");
	ret->trust = memory_trust_of(jv_get_str(ret->mark, "trust"));
	if (!ret->trust)
		ret->trust = TRUST_OUTSIDE;
	ret->at = jv_get_str(ret->mark, "at");
	ret->from = jv_get_str(ret->mark, "from");
	ret->until = jv_get_str(ret->mark, "until");
	ret->superseded = jv_get_str(ret->mark, "superseded_by").len > 0;
}

static struct part *add_part(struct arena *arena, struct parts *parts, size_t *cap)
{
	if (parts->count == *cap) {
		size_t grown = *cap ? *cap * 2 : 64;

		parts->list = arena_grow(arena, parts->list, *cap * sizeof(*parts->list), grown * sizeof(*parts->list));
		*cap = grown;
	}
	parts->list[parts->count] = (struct part){0};
	return &parts->list[parts->count++];
}

/* The first line of `rest`, without its newline; *ret_len with it. */
static struct str line_at(struct str rest, size_t *ret_len)
{
	size_t end = str_find_char(rest, '\n');

	*ret_len = end < rest.len ? end + 1 : end;
	return str_first(rest, end);
}

void memory_parse(struct arena *arena, struct str bytes, struct parts *ret)
{
	size_t cap = 0, line = 1, len;
	bool fenced = false;

	*ret = (struct parts){0};
	for (struct str rest = bytes; rest.len; line++) {
		struct str text = line_at(rest, &len);
		struct part *part = add_part(arena, ret, &cap);

		*part = (struct part){.raw = str_first(rest, len), .line = line};
		if (is_fence(text))
			fenced = !fenced;
		rest = str_from(rest, len);
		if (fenced || !is_bullet(text))
			continue;
		while (rest.len && goes_on(line_at(rest, &len))) {
			part->raw.len += len;
			rest = str_from(rest, len);
			line++;
		}
		read_fact(arena, part->raw, &part->fact);
		part->is_fact = part->fact.text.len > 0;
	}
}

/* The bullet that has `at` in it. */
static struct str bullet_around(struct str bytes, size_t at, size_t *ret_start)
{
	size_t start = at, end = at + str_find_char(str_from(bytes, at), '\n');

	do {
		struct str before = str_first(bytes, start);
		size_t newline = str_rfind_char(before, '\n');

		start = newline == before.len ? 0 : newline;
	} while (start && !is_bullet(str_from(bytes, start + 1)));
	*ret_start = start ? start + 1 : 0;
	return str_first(str_from(bytes, *ret_start), end - *ret_start);
}

static bool find_in(struct arena *arena, struct str bytes, struct str id, struct part *ret)
{
	struct parts parts;

	memory_parse(arena, bytes, &parts);
	for (size_t i = 0; i < parts.count; i++)
		if (parts.list[i].is_fact && str_eq(parts.list[i].fact.id, id)) {
			*ret = parts.list[i];
			return true;
		}
	return false;
}

bool memory_find(struct arena *arena, struct str bytes, struct str id, struct part *ret)
{
	struct str mark = arena_printf(arena, "\"id\":\"%.*s\"", STR_ARG(id));
	size_t at = bytes.len ? str_find(bytes, mark, 0) : SIZE_MAX, start;

	if (at == SIZE_MAX && !str_starts(id, STR("p-")))
		return false;
	if (at == SIZE_MAX || !find_in(arena, bullet_around(bytes, at, &start), id, ret))
		return find_in(arena, bytes, id, ret); /* a person wrote it: its id is made of its words */
	for (size_t i = 0; i < start; i++)
		ret->line += bytes.ptr[i] == '\n';
	return true;
}

/* --- content to save --- */

static int add_text(struct arena *arena, struct str raw, bool bullet, struct str *list, size_t *count, struct err *err)
{
	struct str text;

	text = memory_normal(arena, bullet ? bullet_text(arena, raw) : raw);
	if (!text.len)
		return 0;
	if (text.len > FACT_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "a fact has more than %zu bytes; save a summary, and the rest as a file", FACT_TEXT_MAX);
	if (*count == FACTS_SAVE_MAX)
		return err_set(err, ERR_TOO_LARGE, "there are more than %d facts; save them in several calls",
			       FACTS_SAVE_MAX);
	list[(*count)++] = text;
	return 0;
}

int memory_split(struct arena *arena, struct str content, struct str **ret, size_t *ret_count, struct err *err)
{
	size_t len;
	int r = 0;

	if (!utf8_valid(content))
		return err_set(err, ERR_INVALID, "the content is not UTF-8 text; write it as UTF-8");
	*ret = ARENA_ARRAY(arena, struct str, FACTS_SAVE_MAX);
	*ret_count = 0;
	while (r == 0 && content.len) {
		struct str line = line_at(content, &len), raw = str_first(content, len);
		bool bullet = is_bullet(line);

		content = str_from(content, len);
		if (!str_trim(line).len)
			continue;
		while (content.len) { /* up to a blank line or the next bullet */
			struct str next = line_at(content, &len);

			if (!str_trim(next).len || is_bullet(next))
				break;
			raw.len += len;
			content = str_from(content, len);
		}
		r = add_text(arena, raw, bullet, *ret, ret_count, err);
	}
	if (r == 0 && *ret_count == 0)
		r = err_set(err, ERR_INVALID, "there is nothing to save; write a bullet for each fact");
	return r;
}

/* --- what a fact says of itself --- */

bool memory_holds(const struct fact *fact, int64_t now_ns)
{
	int64_t t;

	if (fact->superseded)
		return false;
	if (fact->until.len && clock_parse(fact->until, &t) && now_ns >= t)
		return false;
	return !(fact->from.len && clock_parse(fact->from, &t) && now_ns < t);
}

struct jv *memory_value(struct arena *arena, const struct part *part, struct str path, int64_t now_ns)
{
	static const char *const words[] = {"user", "agent", "session", "source",
					    "at",   "from",  "until",   "superseded_by"};
	const struct fact *fact = &part->fact;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "id", fact->id);
	jv_set_str(arena, v, "text", fact->text);
	jv_set_str(arena, v, "trust", str_of(memory_trust_name(fact->trust)));
	jv_set_bool(arena, v, "current", memory_holds(fact, now_ns));
	jv_set_str(arena, v, "path", path);
	jv_set_int(arena, v, "line", (int64_t)part->line);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (jv_get_str(fact->mark, words[i]).len)
			jv_set_str(arena, v, words[i], jv_get_str(fact->mark, words[i]));
	if (jv_count(jv_get(fact->mark, "sources")))
		jv_set(arena, v, "sources", jv_copy(arena, jv_get(fact->mark, "sources")));
	if (jv_count(jv_get(fact->mark, "supersedes")))
		jv_set(arena, v, "supersedes", jv_copy(arena, jv_get(fact->mark, "supersedes")));
	return v;
}
