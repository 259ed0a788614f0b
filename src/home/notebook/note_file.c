/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One note as a file: a head between "---" lines, an empty line, the text, a line break. Reading is forgiving (a head
 * that a person or another program wrote may lack anything), with one exception: who wrote a note, what it is called
 * and where it belongs is said by its path, because the path is what Stead decides and the head is only text.
 *
 * Also here, because they need nothing else: slugs, times, and the search document of a note.
 */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <wctype.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "home/notebook/notebook_internal.h"
#include "home/search/search.h"

#define SLUG_CHARS 60
#define SLUG_BYTES 200
#define LEDE_CHARS 120

const char *const note_kinds[] = {"finding", "question", "decision", "summary", "artifact", "plan", "note", NULL};

struct str note_kind(struct str kind)
{
	if (!kind.len)
		return STR("finding");
	for (size_t i = 0; note_kinds[i]; i++)
		if (str_eq_nocase(kind, str_of(note_kinds[i])))
			return str_of(note_kinds[i]);
	return STR("note");
}

/* --- text --- */

static locale_t letters;
static pthread_once_t letters_once = PTHREAD_ONCE_INIT;

static void letters_open(void)
{
	letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* A letter or digit of any script, small; 0: neither. */
static uint32_t word_char(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c + 32;
	if (c < 0x80)
		return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ? c : 0;
	pthread_once(&letters_once, letters_open);
	if (!letters || !iswalnum_l((wint_t)c, letters))
		return 0;
	return (uint32_t)towlower_l((wint_t)c, letters);
}

struct str note_fragment(struct arena *arena, struct str title)
{
	size_t chars = 0;
	char utf8[UTF8_LEN_MAX];
	bool gap = false;
	struct buf b;

	buf_init(&b, arena, SLUG_BYTES + 8);
	if (!utf8_valid(title))
		title = STR("untitled");
	for (size_t i = 0; i < title.len && chars < SLUG_CHARS && b.len < SLUG_BYTES;) {
		uint32_t c = word_char(utf8_next(title, &i));

		if (!c) {
			gap = b.len > 0;
			continue;
		}
		if (gap) {
			buf_char(&b, '-');
			chars++;
		}
		gap = false;
		if (chars < SLUG_CHARS)
			buf_add(&b, str_n(utf8, utf8_put(utf8, c)));
		chars++;
	}
	while (b.len && b.ptr[b.len - 1] == '-')
		b.len--;
	return b.len ? buf_str(&b) : STR("untitled");
}

struct str note_cut(struct arena *arena, struct str text, size_t max)
{
	struct str first = utf8_points(text, max);

	return first.len < text.len ? arena_printf(arena, "%.*s…", (int)first.len, first.ptr) : text;
}

static struct str lede_of(struct arena *arena, struct str body)
{
	struct str line;
	bool fenced = false;

	while (str_cut(&body, '\n', &line)) {
		line = str_trim(line);
		if (str_starts(line, STR("```")) || str_starts(line, STR("~~~"))) {
			fenced = !fenced;
			continue;
		}
		if (!fenced && line.len && line.ptr[0] != '#')
			return note_cut(arena, line, LEDE_CHARS);
	}
	return STR("");
}

bool note_has_tag(const struct note *note, struct str tag)
{
	for (size_t i = 0; i < note->tag_count; i++)
		if (str_eq(note->tags[i], tag))
			return true;
	return false;
}

/* --- times --- */

struct str note_time(struct arena *arena, int64_t ns)
{
	struct str whole = clock_format_utc(arena, ns);

	return arena_printf(arena, "%.*s.%06lldZ", (int)(whole.len - 1), whole.ptr,
			    (long long)(ns % 1000000000 / 1000));
}

/* --- reading --- */

/* notes/<author>/[<namespace>/]<slug>.md */
bool note_path_split(struct wpath path, struct str *ret_author, struct str *ret_namespace, struct str *ret_slug)
{
	struct str rest = path.s, part, parts[4];
	size_t n = 0;

	while (n < 4 && str_cut(&rest, '/', &part))
		parts[n++] = part;
	if (rest.len || n < 3 || !str_is(parts[0], "notes") || parts[1].ptr[0] == '.')
		return false;
	if (!str_ends(parts[n - 1], STR(".md")) || parts[n - 1].ptr[0] == '.')
		return false;
	*ret_author = parts[1];
	*ret_namespace = n == 4 ? parts[2] : STR("");
	*ret_slug = str_first(parts[n - 1], parts[n - 1].len - 3);
	return n == 3 || parts[2].ptr[0] != '.';
}

uint64_t note_number(struct str slug)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < slug.len && i < 18 && slug.ptr[i] >= '0' && slug.ptr[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(slug.ptr[i] - '0');
	return i >= 3 && i < slug.len && slug.ptr[i] == '-' ? v : 0;
}

/* What the head calls it, when that is what the path stands for; else what the path says. */
static struct str name_of(struct arena *arena, const struct jv *head, const char *key, struct str element)
{
	struct str name = jv_get_str(head, key);

	return str_eq(workspace_encode_name(arena, name), element) ? name : element;
}

static int64_t time_of(const struct jv *head, const char *key, int64_t fallback)
{
	int64_t ns;

	return clock_parse(jv_get_str(head, key), &ns) ? ns : fallback;
}

static uint64_t count_of(const struct jv *head, const char *key, int64_t fallback)
{
	int64_t n = jv_get_int(head, key, fallback);

	return n < 0 ? 0 : (uint64_t)n;
}

static void read_tags(struct arena *arena, const struct jv *head, struct note *n)
{
	const struct jv *list = jv_get(head, "tags");
	struct str *tags = ARENA_ARRAY(arena, struct str, jv_count(list) + 1), part, rest = jv_str_of(list);

	if (rest.len) { /* "tags: a, b" */
		tags = ARENA_ARRAY(arena, struct str, NOTE_TAGS_MAX);
		while (n->tag_count < NOTE_TAGS_MAX && str_cut(&rest, ',', &part))
			if (str_trim(part).len)
				tags[n->tag_count++] = str_trim(part);
	}
	for (const struct jv_member *m = jv_first(list); m && n->tag_count < NOTE_TAGS_MAX; m = m->next)
		if (m->value->type == JV_STR)
			tags[n->tag_count++] = m->value->u.s;
	n->tags = tags;
}

static void read_state(const struct jv *head, struct note *n)
{
	const struct jv *answered = jv_get(head, "answered");

	n->archived_ns = time_of(head, "archived_at", 0);
	n->last_cited_ns = time_of(head, "last_cited_at", 0);
	n->answer = str_is(n->kind, "question") ? NOTE_OPEN : NOTE_NOT_ASKED;
	if (answered && answered->type == JV_BOOL)
		n->answer = answered->u.b ? NOTE_ANSWERED : NOTE_OPEN;
	n->answered_by = jv_get_str(head, "answered_by");
	n->parent_slug = jv_get_str(head, "parent_slug");
	n->user_id = jv_get_str(head, "user_id");
	n->run_id = jv_get_str(head, "run_id");
	n->version = count_of(head, "version", 1);
	n->cited = count_of(head, "cited_count", 0);
	n->succeeded = count_of(head, "success_count", 0);
}

int note_parse(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, struct note *ret,
	       struct err *err)
{
	struct note n = {.path = path.s};
	struct str author, namespace;
	struct frontmatter f;
	int r;

	if (!note_path_split(path, &author, &namespace, &n.slug))
		return err_set(err, ERR_INVALID, "the path is not notes/<author>/<slug>.md");
	n.number = note_number(n.slug);
	if (!n.number)
		return err_set(err, ERR_CORRUPT, "the name is not NNN-title.md; rename it, or move it out of notes/");
	if (!utf8_valid(bytes))
		return err_set(err, ERR_CORRUPT, "the file is not UTF-8 text; correct it, or move it out of notes/");
	r = frontmatter_parse(arena, bytes, &f, err);
	if (r)
		return r;
	if (!f.has_head)
		return err_set(err, ERR_CORRUPT,
			       "the file has no head between \"---\" lines; add one, or move it out of notes/");
	n.author = name_of(arena, f.head, "author", author);
	n.namespace = namespace.len ? name_of(arena, f.head, "namespace", namespace) : STR("");
	n.title = jv_get(f.head, "title") ? jv_get_str(f.head, "title") : n.slug;
	n.kind = note_kind(jv_get_str(f.head, "kind"));
	read_tags(arena, f.head, &n);
	n.created_ns = time_of(f.head, "created_at", mtime_ns);
	n.updated_ns = time_of(f.head, "updated_at", n.created_ns);
	read_state(f.head, &n);
	n.body = f.body;
	if (str_starts(n.body, STR("\n")))
		n.body = str_from(n.body, 1);
	if (str_ends(n.body, STR("\n")))
		n.body.len--;
	if (!n.body.len)
		n.body = STR("");
	n.body_size = n.body.len;
	n.lede = lede_of(arena, n.body);
	*ret = n;
	return 0;
}

/* --- writing --- */

static void set_time(struct arena *arena, struct jv *head, const char *key, int64_t ns)
{
	if (ns)
		jv_set_str(arena, head, key, note_time(arena, ns));
	else
		jv_remove(head, key);
}

static void set_text(struct arena *arena, struct jv *head, const char *key, struct str text)
{
	if (text.len)
		jv_set_str(arena, head, key, text);
	else
		jv_remove(head, key);
}

static void set_count(struct arena *arena, struct jv *head, const char *key, uint64_t n, uint64_t silent)
{
	if (n != silent)
		jv_set_int(arena, head, key, (int64_t)n);
	else
		jv_remove(head, key);
}

int note_format(struct arena *arena, const struct note *n, const struct jv *old_head, struct str *ret, struct err *err)
{
	struct jv *head = old_head ? jv_copy(arena, old_head) : jv_object(arena), *tags = jv_array(arena);
	struct buf b;

	for (size_t i = 0; i < n->tag_count; i++)
		jv_push(arena, tags, jv_str(arena, n->tags[i]));
	jv_set_str(arena, head, "slug", n->slug);
	jv_set_str(arena, head, "title", n->title);
	jv_set_str(arena, head, "author", n->author);
	jv_set_str(arena, head, "kind", n->kind);
	jv_set(arena, head, "tags", tags);
	set_time(arena, head, "created_at", n->created_ns);
	set_time(arena, head, "updated_at", n->updated_ns);
	set_text(arena, head, "user_id", n->user_id);
	set_text(arena, head, "run_id", n->run_id);
	set_text(arena, head, "namespace", n->namespace);
	set_time(arena, head, "archived_at", n->archived_ns);
	if (n->answer != NOTE_NOT_ASKED)
		jv_set_bool(arena, head, "answered", n->answer == NOTE_ANSWERED);
	set_text(arena, head, "answered_by", n->answered_by);
	set_text(arena, head, "parent_slug", n->parent_slug);
	set_count(arena, head, "cited_count", n->cited, 0);
	set_count(arena, head, "success_count", n->succeeded, 0);
	set_time(arena, head, "last_cited_at", n->last_cited_ns);
	set_count(arena, head, "version", n->version, 1);
	buf_init(&b, arena, NOTE_FILE_MAX);
	frontmatter_write(&b, head, STR("\n"));
	if (b.len > FRONTMATTER_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "title and tags take %zu bytes; at most %zu may be written", b.len,
			       FRONTMATTER_LEN_MAX);
	buf_add(&b, n->body);
	buf_char(&b, '\n');
	if (b.overflow)
		return err_set(err, ERR_TOO_LARGE, "the note is too long; at most %zu bytes may be written",
			       NOTE_BODY_MAX);
	*ret = buf_str(&b);
	return 0;
}

/* --- search --- */

/* What ranking multiplies with: 1 + ln(1 + cited) + 2 ln(1 + succeeded), less 1. */
static double note_credit(const struct note *note)
{
	return log1p((double)note->cited) + 2 * log1p((double)note->succeeded);
}

static bool owns_note(struct wpath path)
{
	struct str author, namespace, slug;

	return note_path_split(path, &author, &namespace, &slug);
}

static int note_documents(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
			  void *arg, struct err *err)
{
	struct search_doc doc;
	struct note n;
	int r = note_parse(arena, path, bytes, mtime_ns, &n, err);

	if (r)
		return r;
	doc = (struct search_doc){.title = n.title,
				  .body = n.body,
				  .kind = n.kind,
				  .author = n.author,
				  .tags = n.tags,
				  .tag_count = n.tag_count,
				  .time_ns = n.updated_ns,
				  .credit = note_credit(&n),
				  .archived = n.archived_ns != 0};
	emit(arg, &doc);
	return 0;
}

static struct str first_heading(struct str text)
{
	struct str rest = text, line;

	for (int i = 0; i < 20 && str_cut(&rest, '\n', &line); i++)
		if (str_starts(line, STR("# ")))
			return str_trim(str_from(line, 2));
	return STR_NONE;
}

/* --- Markdown that people put into notes/ by hand --- */

static int markdown(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
		    void *arg, struct err *err)
{
	struct frontmatter fm;
	struct search_doc doc = {.time_ns = mtime_ns};
	const struct jv *tags;
	struct str *list;
	int r = frontmatter_parse(arena, bytes, &fm, err);

	if (r)
		return r;
	doc.title = jv_get_str(fm.head, "title");
	if (!doc.title.len)
		doc.title = jv_get_str(fm.head, "name");
	if (!doc.title.len)
		doc.title = first_heading(fm.body);
	if (!doc.title.len)
		doc.title = wpath_name(path);
	doc.body = fm.body;
	doc.kind = jv_get_str(fm.head, "kind");
	doc.author = jv_get_str(fm.head, "author");
	doc.archived = jv_get_bool(fm.head, "archived", false) || str_find(path.s, STR("/archive/"), 0) != SIZE_MAX;
	tags = jv_get(fm.head, "tags");
	list = ARENA_ARRAY(arena, struct str, jv_count(tags) + 1);
	for (const struct jv_member *m = jv_first(tags); m; m = m->next)
		if (jv_str_of(m->value).len)
			list[doc.tag_count++] = jv_str_of(m->value);
	doc.tags = list;
	emit(arg, &doc);
	return 0;
}

static bool owns_notes(struct wpath path)
{
	return wpath_within(path, (struct wpath){STR("notes")}) && str_ends(path.s, STR(".md")) &&
	       !str_is(path.s, "notes/WORKSPACE.md") && str_find(path.s, STR("/."), 0) == SIZE_MAX;
}

static const char *const places[] = {"notes", NULL};
const struct search_source notebook_sources[] = {
	{"notes", places, owns_note, note_documents, NULL},
	{"notes", places, owns_notes, markdown, NULL},
	{0},
};
