/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of knowledge/ is made when it is asked for: one list, and the first bytes of each file that is shown, for
 * its title. Titles are what the files say themselves (the head's `title`, else the first heading); a file without one,
 * or whose head is broken, is listed without.
 */
#include "home/knowledge/knowledge.h"

#include "base/limits.h"
#include "home/search/search.h"
#include "text/frontmatter.h"

#define DIR          "knowledge"
#define ENTRY        "knowledge/KNOWLEDGE.md"
#define LIST_DEFAULT ((size_t)200)
#define TITLE_BYTES  (4 * KIB) /* of a file, in which its title is looked for */
#define TITLE_MAX    ((size_t)120)

/* --- titles --- */

static struct str heading(struct str text)
{
	struct str rest = text, line;

	while (str_cut(&rest, '\n', &line)) {
		size_t n = 0;

		while (n < line.len && line.ptr[n] == '#')
			n++;
		if (n && n <= 6 && n < line.len && line.ptr[n] == ' ')
			return str_trim(str_from(line, n));
	}
	return STR_NONE;
}

static struct str title_of(struct arena *arena, struct str text)
{
	struct frontmatter fm = {.body = text};
	struct str title = STR_NONE;
	struct err ignored;

	if (memchr(text.ptr ? text.ptr : "", 0, text.len))
		return STR_NONE;
	if (frontmatter_parse(arena, text, &fm, &ignored) == 0)
		title = str_trim(jv_get_str(fm.head, "title"));
	if (!title.len)
		title = heading(fm.body);
	title.len = str_find_char(title, '\n');
	return utf8_valid(title) ? utf8_first(title, TITLE_MAX) : STR_NONE;
}

static bool may_have_title(struct str path)
{
	static const struct str ends[] = {STR(".md"), STR(".markdown"), STR(".mdx"), STR(".txt"), STR(".rst")};

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (path.len > ends[i].len && str_eq_nocase(str_from(path, path.len - ends[i].len), ends[i]))
			return true;
	return false;
}

static struct jv *file_value(struct ctx *ctx, struct store *home, const struct store_entry *e)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct str text, title = STR_NONE;
	struct err ignored;

	jv_set_str(arena, v, "path", wpath_relative(e->path, (struct wpath){STR(DIR)}).s);
	jv_set_int(arena, v, "size", (int64_t)e->stat.size);
	if (may_have_title(e->path.s) && store_read(home, ctx, e->path, (struct store_range){0, TITLE_BYTES},
						    TITLE_BYTES, &text, NULL, &ignored) == 0)
		title = title_of(arena, text);
	if (title.len)
		jv_set_str(arena, v, "title", title);
	return v;
}

/* --- the list --- */

int knowledge_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	struct wpath relative;
	int r = wpath_parse_lenient(arena, text, &relative, err);

	if (r == 0 && wpath_within(relative, (struct wpath){STR(DIR)}))
		relative = wpath_relative(relative, (struct wpath){STR(DIR)});
	if (r)
		return r;
	return wpath_is_root(relative) ? (*ret = (struct wpath){STR(DIR)}, 0)
				       : wpath_join(arena, (struct wpath){STR(DIR)}, relative, ret, err);
}

int knowledge_list(struct workspace *ws, struct ctx *ctx, const struct knowledge_query *query, struct jv **ret,
		   struct err *err)
{
	struct arena *arena = ctx->arena;
	struct store *home = workspace_home(ws);
	size_t limit = query->limit ? query->limit : LIST_DEFAULT;
	struct store_list_req req = {.recursive = true,
				     .limit = limit < KNOWLEDGE_LIST_MAX ? limit : KNOWLEDGE_LIST_MAX};
	struct jv *v = jv_object(arena), *files = jv_array(arena);
	struct store_page page = {0};
	struct wpath dir, after;
	int r = knowledge_path(arena, query->under, &dir, err);

	if (r == 0 && query->after.len) {
		r = knowledge_path(arena, query->after, &after, err);
		req.after = after.s;
	}
	if (r == 0)
		r = store_list(home, ctx, dir, &req, &page, err);
	if (r == -ERR_NOT_FOUND && !query->under.len)
		r = 0; /* there is none yet */
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		jv_push(arena, files, file_value(ctx, home, &page.entries[i]));
		r = ctx_check(ctx, err);
	}
	if (r)
		return r;
	jv_set_bool(arena, v, "entry", store_stat(home, ctx, (struct wpath){STR(ENTRY)}, NULL, err) == 0);
	jv_set(arena, v, "files", files);
	if (page.next.ptr)
		jv_set_str(arena, v, "next", wpath_relative((struct wpath){page.next}, (struct wpath){STR(DIR)}).s);
	*ret = v;
	return 0;
}

/* --- search --- */

static bool owns(struct wpath path)
{
	return wpath_within(path, (struct wpath){STR(DIR)}) && path.s.len > strlen(DIR);
}

/* One document per file: its title, its head's tags, and all its text. */
static int documents(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
		     void *arg, struct err *err)
{
	struct search_doc doc = {.time_ns = mtime_ns, .body = bytes, .title = title_of(arena, bytes)};
	struct frontmatter fm;
	const struct jv *tags;
	struct str *list;

	if (!doc.title.len)
		doc.title = wpath_name(path);
	if (frontmatter_parse(arena, bytes, &fm, err) == 0) {
		tags = jv_get(fm.head, "tags");
		list = ARENA_ARRAY(arena, struct str, jv_count(tags) + 1);
		for (const struct jv_member *m = jv_first(tags); m; m = m->next)
			if (jv_str_of(m->value).len)
				list[doc.tag_count++] = jv_str_of(m->value);
		doc.tags = list;
		doc.body = fm.body;
		doc.kind = jv_get_str(fm.head, "kind");
		doc.author = jv_get_str(fm.head, "author");
	}
	emit(arg, &doc);
	return 0;
}

static const char *const places[] = {DIR, NULL};
const struct search_source knowledge_sources[] = {{"knowledge", places, owns, documents, NULL}, {0}};
