/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How files become documents. Each family says which files are its own and what is in them; what belongs to none, below
 * files/, is plain text. A file that its family cannot read is plain text too: one bad file is never lost.
 */
#include "base/limits.h"
#include "home/search/search_internal.h"
#include "text/frontmatter.h"

static bool below(struct wpath path, const char *dir)
{
	return wpath_within(path, (struct wpath){str_of(dir)}) && path.s.len > strlen(dir);
}

static struct str first_heading(struct str text)
{
	struct str rest = text, line;

	for (int i = 0; i < 20 && str_cut(&rest, '\n', &line); i++)
		if (str_starts(line, STR("# ")))
			return str_trim(str_from(line, 2));
	return STR_NONE;
}

static void plain_text(struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit, void *arg)
{
	struct search_doc doc = {.title = wpath_name(path), .body = bytes, .time_ns = mtime_ns};

	emit(arg, &doc);
}

/* --- Markdown with a head --- */

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

/* --- which --- */

static bool owns_notes(struct wpath path)
{
	return below(path, "notes") && str_ends(path.s, STR(".md")) && !str_is(path.s, "notes/WORKSPACE.md") &&
	       str_find(path.s, STR("/."), 0) == SIZE_MAX;
}

static bool owns_files(struct wpath path)
{
	return below(path, "files");
}

static const struct search_source files_family = {SEARCH_FILES, owns_files, NULL};
static const struct search_source plain_notes = {SEARCH_NOTES, owns_notes, markdown};

static const struct search_source *const sources[] = {&notebook_source, &plain_notes,      &memory_source,
						      &sessions_source, &knowledge_source, &files_family};

const struct search_source *search_source_of(struct wpath path)
{
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
		if (sources[i]->owns(path))
			return sources[i];
	return NULL;
}

bool search_documents(struct arena *arena, const struct search_source *family, struct wpath path, struct str bytes,
		      int64_t mtime_ns, search_emit emit, void *arg)
{
	struct err err;

	if (memchr(bytes.ptr ? bytes.ptr : "", 0, bytes.len < 8 * KIB ? bytes.len : 8 * KIB))
		return true;
	if (family->documents && family->documents(arena, path, bytes, mtime_ns, emit, arg, &err) == 0)
		return true;
	plain_text(path, bytes, mtime_ns, emit, arg);
	return !family->documents;
}
