/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note, read_note, list_notes, update_note, archive_note, ask_question, answer_question, list_open_questions: the
 * notebook as tools. Who writes is not an argument: it is the agent that the workspace was opened for, so no model can
 * write in another's name or change another's note.
 */
#include "home/notebook/notebook_tools.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "home/notebook/notebook_internal.h"
#include "home/search/search.h"
#include "tool/call.h"
#include "tool/family.h"

#define TITLE_IN_LISTS 200

/* --- values --- */

static struct jv *tags_value(struct arena *arena, const struct note *n)
{
	struct jv *tags = jv_array(arena);

	for (size_t i = 0; i < n->tag_count; i++)
		jv_push(arena, tags, jv_str(arena, n->tags[i]));
	return tags;
}

static void set_if(struct arena *arena, struct jv *v, const char *key, struct str text)
{
	if (text.len)
		jv_set_str(arena, v, key, text);
}

static struct str shown_time(struct call *call, int64_t ns)
{
	return workspace_time(call->ws, call->ctx->arena, ns);
}

/* What lists and single notes have in common. */
static struct jv *note_value(struct call *call, const struct note *n, bool listed)
{
	struct arena *arena = call->ctx->arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "slug", n->slug);
	jv_set_str(arena, v, "author", n->author);
	jv_set_str(arena, v, "kind", n->kind);
	jv_set_str(arena, v, "title", listed ? note_cut(arena, n->title, TITLE_IN_LISTS) : n->title);
	jv_set(arena, v, "tags", tags_value(arena, n));
	set_if(arena, v, "namespace", n->namespace);
	jv_set_str(arena, v, "created", shown_time(call, n->created_ns));
	jv_set_str(arena, v, "updated", shown_time(call, n->updated_ns));
	jv_set_int(arena, v, "version", (int64_t)n->version);
	jv_set_int(arena, v, "size", (int64_t)n->body_size);
	if (listed)
		set_if(arena, v, "lede", n->lede);
	if (n->archived_ns)
		jv_set_str(arena, v, "archived", shown_time(call, n->archived_ns));
	if (n->answer != NOTE_NOT_ASKED)
		jv_set_bool(arena, v, "answered", n->answer == NOTE_ANSWERED);
	set_if(arena, v, "answered_by", n->answered_by);
	set_if(arena, v, "parent_slug", n->parent_slug);
	if (n->cited) {
		jv_set_int(arena, v, "cited", (int64_t)n->cited);
		jv_set_int(arena, v, "succeeded", (int64_t)n->succeeded);
	}
	return v;
}

/* Each text of the list is one tag, or several with commas between them. */
static void read_tags(struct arena *arena, const struct jv *list, const struct str **ret, size_t *ret_count)
{
	size_t n = 0, most = 1;
	struct str *tags;

	*ret_count = 0;
	*ret = NULL;
	if (jv_is_null(list))
		return;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		for (size_t i = 0; i <= jv_str_of(m->value).len; i++)
			most += i == jv_str_of(m->value).len || jv_str_of(m->value).ptr[i] == ',';
	tags = ARENA_ARRAY(arena, struct str, most);
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct str rest = jv_str_of(m->value), part;

		while (str_cut(&rest, ',', &part))
			if (str_trim(part).len)
				tags[n++] = str_trim(part);
	}
	*ret = tags;
	*ret_count = n;
}

/* --- handlers --- */

int tool_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct note_new in = {.title = jv_get_str(args, "title"),
			      .body = jv_get_str(args, "content"),
			      .kind = jv_get_str(args, "kind"),
			      .namespace = jv_get_str(args, "namespace")};
	struct note n;
	int r;

	read_tags(arena, jv_get(args, "tags"), &in.tags, &in.tag_count);
	r = notebook_add(workspace_notebook(call->ws), call->ctx, &in, &n, err);
	if (r)
		return err_prefix(err, "note");
	ret->value = note_value(call, &n, true);
	return 0;
}

static struct jv *versions_value(struct call *call, const struct note_version *versions, size_t count)
{
	struct arena *arena = call->ctx->arena;
	struct jv *list = jv_array(arena);

	for (size_t i = 0; i < count; i++) {
		struct jv *v = jv_object(arena);

		jv_set_int(arena, v, "version", (int64_t)versions[i].version);
		jv_set_str(arena, v, "time", shown_time(call, versions[i].time_ns));
		jv_set_int(arena, v, "size", (int64_t)versions[i].size);
		jv_set_str(arena, v, "lede", versions[i].lede);
		jv_push(arena, list, v);
	}
	return list;
}

/* The text from `offset` on, up to the limit of one result, cut between characters. */
static void set_page(struct arena *arena, struct jv *v, const struct note *n, uint64_t offset)
{
	struct str rest = str_from(n->body, (size_t)offset), page;

	rest = utf8_skip_inside(rest);
	page = utf8_first(rest, READ_BYTES_DEFAULT);
	jv_set_str(arena, v, "content", page.len ? page : STR(""));
	if (offset)
		jv_set_int(arena, v, "offset", (int64_t)(n->body.len - rest.len));
	if (page.len < rest.len)
		jv_set_int(arena, v, "next_offset", (int64_t)(n->body.len - rest.len + page.len));
}

int tool_read_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct notebook *nb = workspace_notebook(call->ws);
	struct arena *arena = call->ctx->arena;
	struct str ref = jv_get_str(args, "slug_or_title");
	int64_t version = jv_get_int(args, "version", 0);
	struct note_version *versions;
	struct note n;
	size_t count;
	int r;

	if (version)
		r = notebook_read_version(nb, call->ctx, ref, (uint64_t)version, &n, err);
	else
		r = notebook_read(nb, call->ctx, ref, &n, err);
	if (r)
		return err_prefix(err, "read_note");
	ret->value = note_value(call, &n, false);
	set_page(arena, ret->value, &n, (uint64_t)jv_get_int(args, "offset", 0));
	if (jv_get_bool(args, "versions", false)) {
		r = notebook_versions(nb, call->ctx, ref, &versions, &count, err);
		if (!r)
			jv_set(arena, ret->value, "versions", versions_value(call, versions, count));
	}
	return r;
}

static void set_problems(struct arena *arena, struct jv *v, const struct note_list *list)
{
	struct jv *problems = jv_array(arena);

	if (!list->problem_count)
		return;
	for (size_t i = 0; i < list->problem_count && i < 20; i++) {
		struct jv *p = jv_object(arena);

		jv_set_str(arena, p, "path", list->problems[i].path);
		jv_set_str(arena, p, "problem", list->problems[i].why);
		jv_push(arena, problems, p);
	}
	jv_set(arena, v, "problems", problems);
	jv_set_int(arena, v, "total_problems", (int64_t)list->problem_count);
}

static int list_as_value(struct call *call, const struct note_query *query, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *notes = jv_array(arena);
	struct note_list list;
	int r = notebook_list(workspace_notebook(call->ws), call->ctx, query, &list, err);

	if (r)
		return r;
	for (size_t i = 0; i < list.count; i++)
		jv_push(arena, notes, note_value(call, &list.notes[i], true));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "notes", notes);
	jv_set_int(arena, ret->value, "total", (int64_t)list.total);
	if (list.next.ptr)
		jv_set_str(arena, ret->value, "next_cursor", list.next);
	set_problems(arena, ret->value, &list);
	return 0;
}

int tool_list_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct note_query query = {.author = jv_get_str(args, "author"),
				   .kind = jv_get_str(args, "kind"),
				   .namespace = jv_get_str(args, "namespace"),
				   .tag = jv_get_str(args, "tag"),
				   .with_archived = jv_get_bool(args, "include_archived", false),
				   .limit = (size_t)jv_get_int(args, "limit", 0),
				   .cursor = jv_get_str(args, "cursor")};
	int r = list_as_value(call, &query, ret, err);

	return r ? err_prefix(err, "list_notes") : 0;
}

int tool_list_open_questions(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct note_query query = {.open_questions = true,
				   .limit = (size_t)jv_get_int(args, "limit", 100),
				   .cursor = jv_get_str(args, "cursor")};
	int r = list_as_value(call, &query, ret, err);

	return r ? err_prefix(err, "list_open_questions") : 0;
}

int tool_update_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct str *tags;
	struct note n;
	size_t count;
	int r;

	read_tags(arena, jv_get(args, "tags"), &tags, &count);
	r = notebook_update(workspace_notebook(call->ws), call->ctx, jv_get_str(args, "slug"),
			    jv_get_str(args, "content"), tags, count, &n, err);
	if (r)
		return err_prefix(err, "update_note");
	ret->value = note_value(call, &n, true);
	return 0;
}

int tool_archive_note(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct note n;
	int r = notebook_archive(workspace_notebook(call->ws), call->ctx, jv_get_str(args, "slug"),
				 !jv_get_bool(args, "restore", false), &n, err);

	if (r)
		return err_prefix(err, "archive_note");
	ret->value = note_value(call, &n, true);
	return 0;
}

int tool_ask_question(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct note n;
	int r = notebook_ask(workspace_notebook(call->ws), call->ctx, jv_get_str(args, "title"),
			     jv_get_str(args, "content"), &n, err);

	if (r)
		return err_prefix(err, "ask_question");
	ret->value = note_value(call, &n, true);
	return 0;
}

int tool_answer_question(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct note n, question;
	int r = notebook_answer(workspace_notebook(call->ws), call->ctx, jv_get_str(args, "slug"),
				jv_get_str(args, "content"), &n, &question, err);

	if (r)
		return err_prefix(err, "answer_question");
	ret->value = note_value(call, &n, true);
	jv_set(call->ctx->arena, ret->value, "question", note_value(call, &question, true));
	return 0;
}

/* --- search --- */

#define SEARCH_DEFAULT 10
#define SEARCH_MOST    100
#define SEARCH_DEEPEST 10000

static struct jv *found_value(struct call *call, const struct search_hit *hit)
{
	struct arena *arena = call->ctx->arena;
	struct note n = {.tags = hit->tags, .tag_count = hit->tag_count};
	struct str name = wpath_name((struct wpath){hit->path});
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "slug", str_ends(name, STR(".md")) ? str_first(name, name.len - 3) : name);
	jv_set_str(arena, v, "author", hit->author);
	jv_set_str(arena, v, "kind", hit->kind);
	jv_set_str(arena, v, "title", note_cut(arena, hit->title, TITLE_IN_LISTS));
	jv_set(arena, v, "tags", tags_value(arena, &n));
	jv_set_str(arena, v, "updated", shown_time(call, hit->time_ns));
	jv_set_str(arena, v, "snippet", hit->snippet);
	jv_set(arena, v, "score", jv_real(arena, hit->score));
	return v;
}

int tool_search_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	int64_t limit = jv_get_int(args, "limit", SEARCH_DEFAULT), offset = 0;
	struct search_query query = {.text = jv_get_str(args, "query"),
				     .areas = search_area(STR("notes")),
				     .kind = jv_get_str(args, "kind"),
				     .author = jv_get_str(args, "author"),
				     .with_archived = jv_get_bool(args, "include_archived", false),
				     .limit = (size_t)(limit > SEARCH_MOST ? SEARCH_MOST : limit)};
	struct jv *notes = jv_array(arena);
	struct search_hits hits;
	int r;

	if (jv_get_str(args, "cursor").len &&
	    (!str_to_i64(jv_get_str(args, "cursor"), &offset) || offset < 0 || offset > SEARCH_DEEPEST))
		return err_set(err, ERR_INVALID,
			       "search_notes: the cursor is not the next_cursor of a previous page; leave it out to "
			       "start again");
	read_tags(arena, jv_get(args, "tags"), &query.tags, &query.tag_count);
	query.offset = (size_t)offset;
	r = home_search(call->ws, call->ctx, &query, &hits, err);
	if (r)
		return err_prefix(err, "search_notes");
	for (size_t i = 0; i < hits.count; i++)
		jv_push(arena, notes, found_value(call, &hits.hits[i]));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "notes", notes);
	jv_set_int(arena, ret->value, "total", (int64_t)hits.total);
	if (!hits.total)
		jv_set_str(arena, ret->value, "hint", STR("no note matches; try other words, or list_notes"));
	if (hits.count && query.offset + hits.count < hits.total)
		jv_set_str(arena, ret->value, "next_cursor", arena_printf(arena, "%zu", query.offset + hits.count));
	if (hits.note.len)
		jv_set_str(arena, ret->value, "note", hits.note);
	return 0;
}

/* --- text for the model --- */

static void add_head(struct buf *text, const struct jv *n)
{
	buf_printf(text, "%.*s [%.*s] by %.*s, %.*s", STR_ARG(jv_get_str(n, "slug")), STR_ARG(jv_get_str(n, "kind")),
		   STR_ARG(jv_get_str(n, "author")), STR_ARG(jv_get_str(n, "updated")));
	if (jv_get_int(n, "version", 1) > 1)
		buf_printf(text, ", version %lld", (long long)jv_get_int(n, "version", 1));
	for (const struct jv_member *m = jv_first(jv_get(n, "tags")); m; m = m->next)
		buf_printf(text, " #%.*s", STR_ARG(jv_str_of(m->value)));
	if (jv_get(n, "archived"))
		buf_lit(text, " (archived)");
	if (jv_get(n, "answered"))
		buf_printf(text, " (%s)", jv_get_bool(n, "answered", false) ? "answered" : "open");
}

static void add_title(struct buf *text, const struct jv *n)
{
	struct str title = jv_get_str(n, "title");

	for (size_t i = 0; i < title.len; i++)
		buf_char(text, (unsigned char)title.ptr[i] < 0x20 ? ' ' : title.ptr[i]);
}

static void render_list(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *notes = jv_get(value, "notes"), *problems = jv_get(value, "problems");
	long long total = (long long)jv_get_int(value, "total", 0);

	(void)args;
	if (!total)
		buf_lit(text, "no notes");
	else
		buf_printf(text, "%zu of %lld note%s, newest first:", jv_count(notes), total, total == 1 ? "" : "s");
	for (const struct jv_member *m = jv_first(notes); m; m = m->next) {
		struct str lede = jv_get_str(m->value, "lede");

		buf_lit(text, "\n- ");
		add_head(text, m->value);
		buf_lit(text, ": ");
		add_title(text, m->value);
		if (lede.len)
			buf_printf(text, "\n  %.*s", STR_ARG(lede));
	}
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "\n[more: cursor \"%.*s\"]", STR_ARG(jv_get_str(value, "next_cursor")));
	for (const struct jv_member *m = jv_first(problems); m; m = m->next)
		buf_printf(text, "\n[not a note: %.*s: %.*s]", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "problem")));
}

static void render_found(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *notes = jv_get(value, "notes");
	long long total = (long long)jv_get_int(value, "total", 0);

	(void)args;
	if (!total)
		buf_add(text, jv_get_str(value, "hint"));
	else
		buf_printf(text, "%zu of %lld note%s, best first:", jv_count(notes), total, total == 1 ? "" : "s");
	for (const struct jv_member *m = jv_first(notes); m; m = m->next) {
		buf_lit(text, "\n- ");
		add_head(text, m->value);
		buf_lit(text, ": ");
		add_title(text, m->value);
		buf_printf(text, "\n  %.*s", STR_ARG(jv_get_str(m->value, "snippet")));
	}
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "\n[more: cursor \"%.*s\"]", STR_ARG(jv_get_str(value, "next_cursor")));
	if (jv_get(value, "note"))
		buf_printf(text, "\n[%.*s]", STR_ARG(jv_get_str(value, "note")));
}

static void render_note(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	add_title(text, value);
	buf_char(text, '\n');
	add_head(text, value);
	if (jv_get_str(value, "parent_slug").len)
		buf_printf(text, ", answers %.*s", STR_ARG(jv_get_str(value, "parent_slug")));
	for (const struct jv_member *m = jv_first(jv_get(value, "versions")); m; m = m->next)
		buf_printf(text, "\nversion %lld, %.*s, %lld bytes: %.*s",
			   (long long)jv_get_int(m->value, "version", 0), STR_ARG(jv_get_str(m->value, "time")),
			   (long long)jv_get_int(m->value, "size", 0), STR_ARG(jv_get_str(m->value, "lede")));
	buf_lit(text, "\n\n");
	buf_add(text, jv_get_str(value, "content"));
	if (jv_get(value, "next_offset"))
		buf_printf(text, "\n[%lld of %lld bytes; continue with offset %lld]",
			   (long long)jv_get_int(value, "next_offset", 0), (long long)jv_get_int(value, "size", 0),
			   (long long)jv_get_int(value, "next_offset", 0));
}

static void render_written(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_lit(text, "wrote ");
	add_head(text, value);
	buf_printf(text, " (%lld byte%s): ", (long long)jv_get_int(value, "size", 0),
		   plural((uint64_t)jv_get_int(value, "size", 0)));
	add_title(text, value);
}

static void render_archived(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "%s %.*s: ", jv_get(value, "archived") ? "archived" : "brought back",
		   STR_ARG(jv_get_str(value, "slug")));
	add_title(text, value);
}

static void render_answer(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "answered %.*s of %.*s with %.*s", STR_ARG(jv_get_str(jv_get(value, "question"), "slug")),
		   STR_ARG(jv_get_str(jv_get(value, "question"), "author")), STR_ARG(jv_get_str(value, "slug")));
}

/* --- the table --- */

/* --- credit --- */

static int tool_cited_notes(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct jv *list = jv_array(arena);
	struct str *slugs;
	size_t count;

	(void)args;
	(void)err;
	notebook_cited(workspace_notebook(call->ws), call->ctx, &slugs, &count);
	for (size_t i = 0; i < count; i++)
		jv_push(arena, list, jv_str(arena, slugs[i]));
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "cited_slugs", list);
	return 0;
}

static void render_cited(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *list = jv_get(value, "cited_slugs");

	(void)args;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		buf_printf(text, "%.*s\n", STR_ARG(jv_str_of(m->value)));
	buf_printf(text, "%zu note%s read", jv_count(list), plural(jv_count(list)));
}

static int tool_attribute_outcome(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *given = jv_get(args, "slugs");
	struct str *slugs = given ? ARENA_ARRAY(arena, struct str, jv_count(given) + 1) : NULL;
	bool success = jv_get_bool(args, "success", false);
	uint64_t credited;
	size_t count = 0;
	int r;

	for (const struct jv_member *m = jv_first(given); m; m = m->next)
		slugs[count++] = jv_str_of(m->value);
	r = notebook_credit(workspace_notebook(call->ws), call->ctx, success, slugs, count, &credited, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_int(arena, ret->value, "credited", (int64_t)credited);
	jv_set_bool(arena, ret->value, "success", success);
	return 0;
}

static void render_credited(const struct jv *args, const struct jv *value, struct buf *text)
{
	int64_t n = jv_get_int(value, "credited", 0);

	(void)args;
	buf_printf(text, "credited %lld note%s with a %s", (long long)n, plural((uint64_t)n),
		   jv_get_bool(value, "success", false) ? "success" : "failure");
}

/* clang-format off */
#define KIND   "kind: finding (default), question, decision, summary, artifact, plan or note\n"
#define CURSOR "cursor: next_cursor of the previous page"
#define NOTE \
	"slug!; author!; kind!; title!; tags! [str]; namespace; created!; updated!; version! int; size! int; lede; archived; " \
	"answered bool; answered_by; parent_slug; cited int; succeeded int"
#define NOTES \
	"notes! [{" NOTE "}]: newest first\n" \
	"total! int; next_cursor\n" \
	"problems [{path!; problem!}]: files that are not valid notes\n" \
	"total_problems int"

static const struct tool tools[] = {
	{
		.name = "note", .title = "Write a note", .traits = TOOL_BASIC, .group = "notes", .call = tool_note, .render = render_written,
		.description =
			"Adds a note to the notebook that all agents of this workspace share, and returns its slug. Write one "
			"finding, decision or plan in each note, with a title that others will find.",
		.args =
			"title!: what it is about, in one line\n"
			"content!: the note, in Markdown\n"
			KIND
			"tags [str]<=50: words to find it by\n"
			"namespace: a part of the notebook, for example a project (default: none)",
		.result = NOTE,
	},
	{
		.name = "read_note", .title = "Read a note", .group = "notes",
		.traits = RO | TOOL_BASIC, .call = tool_read_note,
		.render = render_note,
		.description =
			"Reads a note, even an archived or earlier one, by its slug or the beginning of it, author/slug, or part of its title (of several, the one updated last).",
		.args =
			"slug_or_title!: slug, or part of the title\n"
			"version int>=1: read this version (default: the current one)\n"
			"versions bool: list the versions too\n"
			"offset int>=0: first byte of the content, for long notes (default 0)",
		.result =
			NOTE "; content!; offset int; next_offset int\n"
			"versions [{version! int; time!; size! int; lede}]: oldest first",
	},
	{
		.name = "list_notes", .title = "List notes", .group = "notes", .traits = RO, .call = tool_list_notes,
		.render = render_list,
		.description =
			"Lists notes, last updated first, with slug, author, kind, tags, title and first line, and counts all "
			"that match.",
		.args =
			"author: only notes by this agent\n"
			"kind: only notes of this kind\n"
			"tag: only notes with this tag\n"
			"namespace: only notes in this namespace\n"
			"include_archived bool: include archived notes\n"
			"limit int>=1: number of notes (default 50, at most 1000)\n"
			CURSOR,
		.result = NOTES,
	},
	{
		.name = "search_notes", .title = "Search notes", .group = "notes", .traits = RO | TOOL_LONG | TOOL_BASIC,
		.call = tool_search_notes, .render = render_found,
		.description =
			"Finds notes by their words, best first: any word may match, a \"quoted phrase\" must occur, and a "
			"-word must not. Of equally good notes, those that were useful before come first.",
		.args =
			"query!: words\n"
			"kind: only notes of this kind\n"
			"author: only notes by this agent\n"
			"tags [str]<=50: only notes with all of these tags\n"
			"include_archived bool: include archived notes\n"
			"limit int>=1: number of notes (default 10, at most 100)\n"
			CURSOR,
		.result =
			"notes! [{slug!; author; kind; title!; tags [str]; updated; snippet!; score num}]: best first\n"
			"total! int; next_cursor; hint; note",
	},
	{
		.name = "update_note", .title = "Rewrite a note", .group = "notes", .call = tool_update_note,
		.render = render_written,
		.description =
			"Replaces the text of one of your own notes; the previous version stays readable. You cannot change "
			"notes of other agents.",
		.args =
			"slug!: slug of your note\n"
			"content!: the whole new text\n"
			"tags [str]<=50: tags that replace the old ones (default: keep them)",
		.result = NOTE,
	},
	{
		.name = "archive_note", .title = "Archive a note", .group = "notes", .traits = TOOL_IDEMPOTENT,
		.call = tool_archive_note, .render = render_archived,
		.description =
			"Removes one of your own notes from lists, search and the index; it can still be read by its slug. "
			"restore brings it back.",
		.args =
			"slug!: slug of your note\n"
			"restore bool: bring it back",
		.result = NOTE,
	},
	{
		.name = "ask_question", .title = "Ask the team", .group = "notes", .call = tool_ask_question,
		.render = render_written, .acts_as = "note",
		.description = "Writes a question into the notebook. It stays open until somebody uses answer_question.",
		.args =
			"title!: the question, in one line\n"
			"content!: what is needed to answer it",
		.result = NOTE,
	},
	{
		.name = "answer_question", .title = "Answer a question", .group = "notes", .call = tool_answer_question,
		.render = render_answer, .acts_as = "note",
		.description =
			"Answers a question of any agent: writes a finding that refers to the question and marks the question "
			"as answered.",
		.args =
			"slug!: slug of the question\n"
			"content!: the answer, in Markdown",
		.result = NOTE "; question! {" NOTE "}",
	},
	{
		.name = "list_open_questions", .title = "List open questions", .group = "notes", .traits = RO,
		.call = tool_list_open_questions, .render = render_list,
		.description = "Lists the questions that nobody has answered, newest first.",
		.args =
			"limit int>=1: number of questions (default 100, at most 1000)\n"
			CURSOR,
		.result = NOTES,
	},
	{
		.name = "cited_notes", .title = "List cited notes", .group = "notes", .traits = RO,
		.call = tool_cited_notes, .render = render_cited,
		.description = "Lists the slugs of the notes that were read since the last attribute_outcome.",
		.result = "cited_slugs! [str]: oldest first",
	},
	{
		.name = "attribute_outcome", .title = "Credit notes", .group = "notes", .call = tool_attribute_outcome,
		.render = render_credited, .acts_as = "note",
		.description =
			"Credits notes with how the work ended: those that are named, or those that cited_notes lists, which "
			"are then forgotten. Credit ranks a note higher in searches.",
		.args =
			"success! bool: whether the work succeeded\n"
			"slugs [str]: the notes (default: those that were read)",
		.result = "credited! int; success! bool",
	},
	{0},
};
/* clang-format on */

static void *open_notebook(struct workspace *ws)
{
	return notebook_new(ws);
}

static void close_notebook(void *state)
{
	notebook_destroy(state);
}

const struct family notebook_family = {
	.name = "notebook",
	.about = "Notes and questions that all agents of a workspace share.",
	.tools = tools,
	.search = notebook_sources,
	.prompt = notebook_sections,
	.commands = notebook_commands,
	.open = open_notebook,
	.close = close_notebook,
};

struct notebook *workspace_notebook(struct workspace *ws)
{
	return family_state(&notebook_family, ws);
}
