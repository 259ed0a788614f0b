/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `search`: the ranked question, where grep is the exact one. A hit shows the passage and its
 * place; the text says what to do next (read the file, narrow the search, continue).
 */
#include "home/search/search_tools.h"
#include "home/search/search_internal.h"

#include "base/clock.h"
#include "base/limits.h"
#include "tool/call.h"
#include "tool/family.h"
#include "workspace/workspace_parts.h"

static int take_areas(struct arena *arena, const struct jv *v, unsigned *ret, struct err *err)
{
	struct str name = jv_str_of(v);
	unsigned area;

	*ret = 0;
	for (const struct jv_member *m = v && v->type == JV_ARRAY ? jv_first(v) : NULL; m; m = m->next) {
		int r = take_areas(arena, m->value, &area, err);

		if (r)
			return r;
		*ret |= area;
	}
	if (!name.len)
		return 0;
	*ret = str_is(name, "all") ? UINT32_MAX : search_area(name);
	return *ret ? 0
		    : err_set(err, ERR_INVALID, "search: there is no area \"%.*s\"; the areas are %.*s",
			      STR_ARG(utf8_first(name, 60)), STR_ARG(search_areas(arena, ", ")));
}

/* "o10": how many were given already. */
static int take_cursor(struct str text, size_t *ret, struct err *err)
{
	int64_t n;

	*ret = 0;
	if (!text.len)
		return 0;
	if (text.ptr[0] != 'o' || !str_to_i64(str_from(text, 1), &n) || n < 0 || n > SEARCH_OFFSET_MAX)
		return err_set(err, ERR_INVALID,
			       "search: the cursor does not belong to this query; leave it out to start again");
	*ret = (size_t)n;
	return 0;
}

int search_args(struct arena *arena, const struct jv *args, struct search_query *ret, struct err *err)
{
	const struct jv *tags = jv_get(args, "tags");
	struct str *list = ARENA_ARRAY(arena, struct str, jv_count(tags) + 1);
	struct str since = jv_get_str(args, "since"), until = jv_get_str(args, "until");
	struct wpath under = WPATH_ROOT;
	int r;

	*ret = (struct search_query){.text = jv_get_str(args, "query"),
				     .kind = jv_get_str(args, "kind"),
				     .author = jv_get_str(args, "author"),
				     .exact = jv_get_bool(args, "exact", false),
				     .with_archived = jv_get_bool(args, "archived", false),
				     .limit = arg_count(args, "limit", 10, SEARCH_LIMIT_MAX),
				     .tags = list};
	for (const struct jv_member *m = jv_first(tags); m; m = m->next)
		list[ret->tag_count++] = jv_str_of(m->value);
	r = take_areas(arena, jv_get(args, "area"), &ret->areas, err);
	if (!r && jv_get_str(args, "mode").len)
		r = search_mode_of(jv_get_str(args, "mode"), &ret->mode, err);
	if (!r && jv_get_str(args, "under").len)
		r = wpath_parse_lenient(arena, jv_get_str(args, "under"), &under, err);
	ret->under = under.s;
	if (!r && since.len)
		r = search_time(since, false, &ret->since_ns, err);
	if (!r && until.len)
		r = search_time(until, true, &ret->until_ns, err);
	return r ? r : take_cursor(jv_get_str(args, "cursor"), &ret->offset, err);
}

/* What file tools call the file; ptr NULL: they cannot see it. */
static struct str tool_path(struct workspace *ws, struct str path)
{
	struct wpath root = wpath_relative(workspace_root(ws), workspace_part(ws));

	if (workspace_files_are_own(ws) || !wpath_within(workspace_root(ws), workspace_part(ws)) ||
	    !wpath_within((struct wpath){path}, root))
		return STR_NONE;
	return wpath_relative((struct wpath){path}, root).s;
}

static struct jv *hit_value(struct arena *arena, struct workspace *ws, const struct search_hit *hit)
{
	struct jv *v = jv_object(arena), *tags = jv_array(arena);
	struct str own = search_own_path(ws, hit->path), file = own.len ? own : tool_path(ws, hit->path);

	jv_set_str(arena, v, "path", own.len ? own : hit->path);
	if (hit->id.len)
		jv_set_str(arena, v, "id", hit->id);
	jv_set_str(arena, v, "area", str_of(hit->area));
	if (file.len)
		jv_set_str(arena, v, "file", file);
	jv_set_str(arena, v, "title", hit->title);
	if (hit->kind.len)
		jv_set_str(arena, v, "kind", hit->kind);
	if (hit->author.len)
		jv_set_str(arena, v, "author", hit->author);
	for (size_t i = 0; i < hit->tag_count; i++)
		jv_push(arena, tags, jv_str(arena, hit->tags[i]));
	if (hit->tag_count)
		jv_set(arena, v, "tags", tags);
	jv_set_str(arena, v, "time", workspace_time(ws, arena, hit->time_ns));
	jv_set(arena, v, "score", jv_real(arena, hit->score));
	jv_set_str(arena, v, "snippet", hit->snippet);
	return v;
}

/* A fact is in MEMORY.md and in the ledger of its day. */
static bool is_repeated(const struct search_hits *hits, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (hits->hits[i].id.len && str_eq(hits->hits[k].id, hits->hits[i].id) &&
		    strcmp(hits->hits[k].area, hits->hits[i].area) == 0)
			return true;
	return false;
}

struct jv *search_value(struct arena *arena, struct workspace *ws, const struct search_query *query,
			const struct search_hits *hits)
{
	struct jv *v = jv_object(arena), *list = jv_array(arena);
	size_t next = query->offset + hits->count, repeated = 0;

	for (size_t i = 0; i < hits->count; i++) {
		if (is_repeated(hits, i))
			repeated++;
		else
			jv_push(arena, list, hit_value(arena, ws, &hits->hits[i]));
	}
	jv_set(arena, v, "hits", list);
	if (!jv_count(list))
		jv_set_str(arena, v, "hint", STR("nothing found; try other words, or grep for exact text"));
	jv_set_int(arena, v, "total", (int64_t)(hits->total - repeated));
	if (hits->count && next < hits->total && next < SEARCH_OFFSET_MAX)
		jv_set_str(arena, v, "next_cursor", arena_printf(arena, "o%zu", next));
	if (hits->note.len)
		jv_set_str(arena, v, "note", hits->note);
	if (hits->explanation.len)
		jv_set_str(arena, v, "explanation", hits->explanation);
	return v;
}

static int tool_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct search_query query;
	struct search_hits hits;
	int r = search_args(call->ctx->arena, args, &query, err);

	query.under = r ? STR("") : search_own_under(call->ws, call->ctx, query.under);
	if (!r)
		r = home_search(call->ws, call->ctx, &query, &hits, err);
	if (!r)
		ret->value = search_value(call->ctx->arena, call->ws, &query, &hits);
	return r;
}

static void add_tags(struct buf *text, const struct jv *hit)
{
	for (const struct jv_member *m = jv_first(jv_get(hit, "tags")); m; m = m->next)
		buf_printf(text, " #%.*s", STR_ARG(jv_str_of(m->value)));
}

static void render_search(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *hits = jv_get(value, "hits");
	struct str next = jv_get_str(value, "next_cursor"), note = jv_get_str(value, "note");

	(void)args;
	buf_add(text, jv_get_str(value, "explanation"));
	for (const struct jv_member *m = jv_first(hits); m; m = m->next) {
		struct str id = jv_get_str(m->value, "id"), kind = jv_get_str(m->value, "kind"),
			   author = jv_get_str(m->value, "author");

		buf_printf(text, "%.*s%s%.*s  %.*s", STR_ARG(jv_get_str(m->value, "path")), id.len ? "#" : "",
			   STR_ARG(id), STR_ARG(jv_get_str(m->value, "title")));
		if (kind.len)
			buf_printf(text, " (%.*s)", STR_ARG(kind));
		if (author.len)
			buf_printf(text, " by %.*s", STR_ARG(author));
		add_tags(text, m->value);
		buf_printf(text, ", %.*s", STR_ARG(str_first(jv_get_str(m->value, "time"), 10)));
		if (jv_get(value, "explanation"))
			buf_printf(text, " [%.3f]", jv_get(m->value, "score")->u.d);
		buf_printf(text, "\n    %.*s\n", STR_ARG(jv_get_str(m->value, "snippet")));
	}
	if (!jv_count(hits))
		buf_printf(text, "[%.*s]", STR_ARG(jv_get_str(value, "hint")));
	else
		buf_printf(text, "[%zu of %lld", jv_count(hits), (long long)jv_get_int(value, "total", 0));
	if (next.len)
		buf_printf(text, "; continue with cursor %.*s", STR_ARG(next));
	if (jv_count(hits))
		buf_char(text, ']');
	if (note.len)
		buf_printf(text, "\n[%.*s]", STR_ARG(note));
}

static struct str area_words(struct arena *arena)
{
	return search_areas(arena, "|");
}

/* clang-format off */
static const struct tool tools[] = {
	{
		.name = "search", .title = "Search everything", .traits = RO | TOOL_LONG | TOOL_BASIC, .call = tool_search,
		.render = render_search, .needs = "read_file", .words = area_words,
		.description =
			"Finds the best passages in notes, memory, sessions, knowledge and files, in any language and despite "
			"misspellings: any word may match, a \"quoted phrase\" must occur, and a -word must not. For exact "
			"text or patterns in files use grep.",
		.args =
			"query!: words; empty: everything, newest first\n"
			"area [$WORDS|all]: where to search (default: everywhere)\n"
			"kind: only this kind of note, or this role in a session\n"
			"tags [str]<=50: only notes with all of these tags\n"
			"author: only passages by this author\n"
			"since: not older than this: 2026-11-15, 2026-11-15T10:00:00Z, or an age: 12h, 7d\n"
			"until: not newer than this, in the same forms\n"
			"under: only below this directory of the workspace, for example notes/research\n"
			"mode auto|text|semantic: text: by words; semantic: by meaning, if an embedder is configured; auto: "
			"both (default)\n"
			"exact bool: match words exactly, without other endings or misspellings\n"
			"archived bool: include what is archived\n"
			"limit int>=1: number of hits (default 10, at most 100)\n"
			"cursor: next_cursor of the previous page",
		.result =
			"hits! [{path!; id; area!; file; title!; kind; author; tags [str]: of a note; time!; score! num; "
			"snippet!}]: best first\n"
			"total! int; next_cursor; hint; note; explanation",
	},
	{0},
};
/* clang-format on */

const struct family search_family = {
	.name = "search",
	.about = "One search over everything in the workspace.",
	.tools = tools,
	.commands = search_commands,
	.open = home_index_new,
	.close = home_index_close,
};
