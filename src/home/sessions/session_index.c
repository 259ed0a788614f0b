/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of sessions. agents/<agent>/sessions/sessions.json has a row for each of the newest sessions, how many there
 * are, and the revision up to which it is right. A list reads on from there: it asks the log of revisions which session
 * logs have changed, and reads only what was added to those. So a page of the list costs the same however many sessions
 * there are.
 *
 * All session logs are looked for when the index is missing, when more rows are wanted than it has, and when that was
 * not done for an hour, since other programs may have brought some. It is derived and not recorded.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "base/strmap.h"
#include "home/sessions/sessions_internal.h"
#include "revisions/revisions.h"
#include "store/jsonl.h"
#include "workspace/workspace_parts.h"

#define TITLE_MOST    80
#define SUMMARY_MOST  200
#define SESSIONS_MOST 100000
#define ROWS_KEPT     200
#define CHANGES_MAX   10000 /* more than this is found faster by a walk */
#define WALK_NS       (INT64_C(3600) * 1000000000)
#define LOG_SUFFIX    ".log.jsonl"

/* --- one session --- */

/* Takes what a log has after `bytes` into its entry of the index. */
struct tally {
	struct arena *arena;
	struct jv *entry;
	int64_t entries, messages;
};

/* The newest summary of the conversation. */
static void set_summary(struct tally *t, const struct jv *entry)
{
	struct str text = jv_get_str(entry, "summary");

	text = str_trim(text.len ? text : session_entry_text(t->arena, entry));
	if (text.len)
		jv_set_str(t->arena, t->entry, "summary", arena_str(t->arena, utf8_first(text, SUMMARY_MOST)));
}

static bool tally(void *arg, const struct jsonl_line *line)
{
	struct tally *t = arg;
	struct str type = jv_get_str(line->value, "type"), when = jv_get_str(line->value, "timestamp");
	bool is_user =
		str_is(jv_get_str(line->value, "role"), "user") || str_is(jv_get_str(line->value, "role"), "human");

	if (when.len)
		jv_set_str(t->arena, t->entry, "updatedAt", arena_str(t->arena, when));
	if (str_is(type, "session")) {
		jv_set_str(t->arena, t->entry, "session", arena_str(t->arena, jv_get_str(line->value, "session")));
		jv_set_str(t->arena, t->entry, "agent", arena_str(t->arena, jv_get_str(line->value, "agent")));
		jv_set_str(t->arena, t->entry, "startedAt", arena_str(t->arena, when));
		return true;
	}
	t->entries++;
	t->messages += str_is(type, "message");
	if (str_is(type, "summary") || str_is(type, "compaction"))
		set_summary(t, line->value);
	if (str_is(type, "message") && is_user && !jv_get_str(t->entry, "title").len) {
		struct str text = str_trim(session_entry_text(t->arena, line->value));

		text = utf8_first(str_first(text, str_find_char(text, '\n')), TITLE_MOST);
		jv_set_str(t->arena, t->entry, "title", arena_str(t->arena, text));
		if (!jv_get_str(t->entry, "summary").len)
			jv_set_str(t->arena, t->entry, "summary", jv_get_str(t->entry, "title"));
	}
	return true;
}

static int index_log(struct workspace *ws, struct ctx *ctx, const struct store_entry *file, struct jv *entry,
		     bool *changed, struct err *err)
{
	struct tally t = {.arena = ctx->arena, .entry = entry};
	uint64_t from = (uint64_t)jv_get_int(entry, "bytes", 0), end = from;
	int r;

	if (from == file->stat.size)
		return 0;
	if (from > file->stat.size) /* it is another file than it was */
		from = 0;
	t.entries = from ? jv_get_int(entry, "entries", 0) : 0;
	t.messages = from ? jv_get_int(entry, "messages", 0) : 0;
	r = jsonl_read_from(workspace_home(ws), ctx, file->path, from, tally, &t, &end, err);
	if (r)
		return r;
	jv_set_int(ctx->arena, entry, "entries", t.entries);
	jv_set_int(ctx->arena, entry, "messages", t.messages);
	jv_set_int(ctx->arena, entry, "bytes", (int64_t)end);
	*changed = true;
	return 0;
}

static struct jv *read_index(struct workspace *ws, struct ctx *ctx, struct wpath path)
{
	struct str text;
	struct jv *index;
	struct err ignored;

	if (store_read(workspace_home(ws), ctx, path, STORE_WHOLE, JSON_LEN_MAX, &text, NULL, &ignored) == 0 &&
	    jv_parse(ctx->arena, text, &index, &ignored) == 0 && index->type == JV_OBJECT &&
	    jv_get(index, "sessions") && jv_get(index, "sessions")->type == JV_OBJECT)
		return index;
	index = jv_object(ctx->arena); /* derived: a broken index is built again */
	jv_set_int(ctx->arena, index, "version", 1);
	jv_set(ctx->arena, index, "sessions", jv_object(ctx->arena));
	return index;
}

static void add_session(struct arena *arena, struct jv *list, struct str agent, const struct jv *entry)
{
	struct jv *s = jv_object(arena);

	jv_set_str(arena, s, "agent", jv_get_str(entry, "agent").len ? jv_get_str(entry, "agent") : agent);
	jv_set_str(arena, s, "session", jv_get_str(entry, "session"));
	jv_set_str(arena, s, "started_at", jv_get_str(entry, "startedAt"));
	jv_set_str(arena, s, "last_active_at", jv_get_str(entry, "updatedAt"));
	jv_set_int(arena, s, "entries", jv_get_int(entry, "entries", 0));
	jv_set_int(arena, s, "messages", jv_get_int(entry, "messages", 0));
	jv_set_int(arena, s, "bytes", jv_get_int(entry, "bytes", 0));
	jv_set_str(arena, s, "title", jv_get_str(entry, "title"));
	if (jv_get_str(entry, "summary").len)
		jv_set_str(arena, s, "summary", jv_get_str(entry, "summary"));
	jv_push(arena, list, s);
}

/* --- the index of an agent --- */

struct row {
	struct str name; /* of the log, without its suffix */
	struct jv *entry;
};

struct agent_index {
	struct workspace *ws;
	struct ctx *ctx;
	struct wpath logs, file;
	struct jv *index;
	struct row *rows;
	size_t count, cap;
	struct strmap *places; /* of a name in `rows`, from 1; 0: it is gone */
	int64_t total;
	bool changed;
};

static struct row *find_row(const struct agent_index *a, struct str name)
{
	size_t *place = strmap_find(a->places, name);

	return place && *place ? &a->rows[*place - 1] : NULL;
}

static struct row *add_row(struct agent_index *a, struct str name, struct jv *entry)
{
	ARENA_ROOM(a->ctx->arena, a->rows, a->count, a->cap);
	a->rows[a->count++] = (struct row){name, entry};
	*strmap_put(a->places, name, NULL) = a->count;
	return &a->rows[a->count - 1];
}

static void remove_row(struct agent_index *a, struct str name)
{
	struct row *row = find_row(a, name);

	if (!row)
		return;
	*strmap_find(a->places, a->rows[a->count - 1].name) = (size_t)(row - a->rows) + 1;
	*strmap_find(a->places, name) = 0;
	*row = a->rows[--a->count];
}

/* The name of a log; empty: it is not one. */
static struct str log_name(const struct agent_index *a, struct wpath path)
{
	struct str name;

	if (!wpath_within(path, a->logs) || path.s.len == a->logs.s.len || !str_ends(path.s, STR(LOG_SUFFIX)))
		return STR_NONE;
	name = wpath_relative(path, a->logs).s;
	return str_first(name, name.len - strlen(LOG_SUFFIX));
}

static int take_log(struct agent_index *a, const struct store_entry *file, struct str name, struct err *err)
{
	struct row *row = find_row(a, name);

	if (!row) {
		row = add_row(a, name, jv_object(a->ctx->arena));
		jv_set_str(a->ctx->arena, row->entry, "session", name);
	}
	return index_log(a->ws, a->ctx, file, row->entry, &a->changed, err);
}

static int newest_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = str_cmp(jv_get_str(y->entry, "updatedAt"), jv_get_str(x->entry, "updatedAt"));

	return c ? c : str_cmp(x->name, y->name);
}

/* Writes the newest rows, which are the first. When it fails, the next one to ask counts again. */
static void write_index(struct agent_index *a)
{
	struct arena *arena = a->ctx->arena;
	struct jv *kept = jv_object(arena);
	struct wpath path;
	struct err ignored;
	struct buf text;

	for (size_t i = 0; i < a->count && i < ROWS_KEPT; i++)
		jv_set_key(arena, kept, a->rows[i].name, a->rows[i].entry);
	jv_set_int(arena, a->index, "total", a->total);
	jv_set(arena, a->index, "sessions", kept);
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write_pretty(&text, a->index);
	if (!text.overflow && wpath_join(arena, workspace_part(a->ws), a->file, &path, &ignored) == 0)
		(void)workspace_write_derived(a->ws, a->ctx, path, buf_str(&text), (struct store_cond){0}, &ignored);
}

/* --- all logs --- */

static int newest_file(const void *a, const void *b)
{
	const struct store_entry *x = a, *y = b;

	if (x->stat.mtime_ns != y->stat.mtime_ns)
		return x->stat.mtime_ns > y->stat.mtime_ns ? -1 : 1;
	return str_cmp(x->path.s, y->path.s);
}

/* Lists all logs, and reads the newest `most`. */
static int walk(struct agent_index *a, uint64_t most, struct err *err)
{
	struct arena *arena = a->ctx->arena;
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct store_entry *files = NULL;
	struct agent_index old = *a;
	size_t count = 0, cap = 0;
	int r;

	do {
		r = store_list(workspace_home(a->ws), a->ctx, a->logs, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count && count < SESSIONS_MOST; i++) {
			if (page.entries[i].stat.kind != STORE_FILE || !log_name(a, page.entries[i].path).len)
				continue;
			ARENA_ROOM(arena, files, count, cap);
			files[count++] = page.entries[i];
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	if (r)
		return r;
	if (count)
		qsort(files, count, sizeof(*files), newest_file);
	a->rows = NULL;
	a->count = a->cap = 0;
	a->places = strmap_new(arena);
	for (size_t i = 0; i < count && i < most && r == 0; i++) {
		struct str name = log_name(a, files[i].path);
		const struct row *known = find_row(&old, name);

		if (known)
			add_row(a, name, known->entry);
		r = take_log(a, &files[i], name, err);
	}
	a->total = (int64_t)count;
	a->changed = true;
	jv_set_str(arena, a->index, "walkedAt", clock_format_utc(arena, clock_real_ns()));
	return r;
}

/* --- what changed --- */

struct changed_log {
	struct str name;
	const struct revision *first, *last;
	bool rewritten; /* and not only appended to */
};

static int take_change(struct agent_index *a, const struct changed_log *c, struct err *err)
{
	struct arena *arena = a->ctx->arena;
	struct str name = c->name;
	struct store_entry file = {
		.path = {arena_printf(arena, "%.*s/%.*s" LOG_SUFFIX, STR_ARG(a->logs.s), STR_ARG(name))}};
	int r = store_stat(workspace_home(a->ws), a->ctx, file.path, &file.stat, err);

	a->total += (int64_t)c->last->after.exists - (int64_t)c->first->before.exists;
	a->changed = true;
	if (c->rewritten || r == -ERR_NOT_FOUND)
		remove_row(a, name);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	return take_log(a, &file, name, err);
}

/* The logs that the revisions are about, each once. */
static struct changed_log *changed_logs(struct agent_index *a, const struct revision *list, size_t count,
					size_t *ret_count)
{
	struct changed_log *logs = ARENA_ARRAY(a->ctx->arena, struct changed_log, count + 1);
	struct strmap *places = strmap_new(a->ctx->arena);
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct str name = log_name(a, wpath_relative(list[i].path, workspace_part(a->ws)));
		size_t *place;

		if (!name.len)
			continue;
		place = strmap_put(places, name, NULL);
		if (!*place) {
			logs[n] = (struct changed_log){.name = name, .first = &list[i]};
			*place = ++n;
		}
		logs[*place - 1].last = &list[i];
		logs[*place - 1].rewritten |= list[i].op != REV_APPEND;
	}
	*ret_count = n;
	return logs;
}

/* Takes in the changes up to `head`, or up to the first that a thread is still making. ERR_NOT_FOUND: there are too
   many. */
static int follow(struct agent_index *a, uint64_t since, uint64_t *head, struct err *err)
{
	struct rev_query query = {.since = since, .until = *head, .limit = CHANGES_MAX};
	struct store *shared = workspace_shared(a->ws);
	struct changed_log *logs;
	struct revision *list;
	size_t count, n;
	bool more = false;
	int r = wpath_join(a->ctx->arena, workspace_part(a->ws), a->logs, &query.path, err);

	if (r == 0)
		r = revisions_query(shared, a->ctx, &query, &list, &count, &more, err);
	if (r || more)
		return r ? r : -ERR_NOT_FOUND;
	for (size_t i = 0; i < count && r == 0; i++) {
		if (!list[i].done && list[i].own && list[i].number <= *head)
			*head = list[i].number - 1;
		else if (!list[i].done && !list[i].own)
			r = revisions_settle(shared, a->ctx, list[i].path, NULL, err);
	}
	while (count && list[count - 1].number > *head)
		count--;
	logs = changed_logs(a, list, count, &n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = take_change(a, &logs[i], err);
	return r;
}

/* --- the list --- */

/* True when the index can be read on from: it is of this workspace, and not too old. */
static bool is_usable(const struct agent_index *a, uint64_t head, uint64_t most)
{
	int64_t walked, revision = jv_get_int(a->index, "revision", -1), now = clock_real_ns();

	return revision >= 0 && (uint64_t)revision <= head &&
	       str_eq(jv_get_str(a->index, "workspace"), workspace_name(a->ws)) &&
	       clock_parse(jv_get_str(a->index, "walkedAt"), &walked) && now - walked < WALK_NS && now >= walked &&
	       (most <= ROWS_KEPT || (int64_t)a->count >= jv_get_int(a->index, "total", INT64_MAX));
}

/* `dir` is agents/<agent> as encoded in the store. Adds the newest `most` rows, or more. */
static int list_agent(struct workspace *ws, struct ctx *ctx, struct str dir, uint64_t most, struct jv *list,
		      uint64_t *total, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct agent_index a = {.ws = ws, .ctx = ctx, .places = strmap_new(arena)};
	uint64_t head, wanted;
	int r = revisions_head(workspace_shared(ws), ctx, &head, err);

	a.logs = (struct wpath){arena_printf(arena, "%.*s/sessions", STR_ARG(dir))};
	a.file = (struct wpath){arena_printf(arena, "%.*s/sessions.json", STR_ARG(a.logs.s))};
	a.index = read_index(ws, ctx, a.file);
	for (const struct jv_member *m = jv_first(jv_get(a.index, "sessions")); m; m = m->next)
		if (m->value->type == JV_OBJECT)
			add_row(&a, m->key, m->value);
	a.total = jv_get_int(a.index, "total", 0);
	if (r)
		return r;
	r = is_usable(&a, head, most) ? follow(&a, (uint64_t)jv_get_int(a.index, "revision", 0), &head, err)
				      : -ERR_NOT_FOUND;
	wanted = (uint64_t)(a.total > 0 ? a.total : 0);
	wanted = wanted < most ? wanted : most;
	if (r == -ERR_NOT_FOUND || (r == 0 && a.count < wanted))
		r = walk(&a, most > ROWS_KEPT ? most : ROWS_KEPT, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	if (a.count)
		qsort(a.rows, a.count, sizeof(*a.rows), newest_row);
	for (size_t i = 0; i < a.count && i < most; i++)
		add_session(arena, list, wpath_name((struct wpath){dir}), a.rows[i].entry);
	*total += (uint64_t)a.total;
	jv_set_int(arena, a.index, "revision", (int64_t)head);
	jv_set_str(arena, a.index, "workspace", workspace_name(ws));
	if (a.changed)
		write_index(&a);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct jv *x = *(const struct jv *const *)a, *y = *(const struct jv *const *)b;
	int c = str_cmp(jv_get_str(y, "last_active_at"), jv_get_str(x, "last_active_at"));

	return c ? c : str_cmp(jv_get_str(x, "session"), jv_get_str(y, "session"));
}

static struct jv *sorted(struct arena *arena, const struct jv *list, uint64_t most)
{
	struct jv **all = ARENA_ARRAY(arena, struct jv *, jv_count(list) + 1), *ret = jv_array(arena);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		all[n++] = m->value;
	qsort(all, n, sizeof(*all), newest_first);
	for (size_t i = 0; i < n && i < most; i++)
		jv_push(arena, ret, all[i]);
	return ret;
}

int session_list(struct workspace *ws, struct ctx *ctx, struct str agent, uint64_t most, struct jv **ret_list,
		 uint64_t *ret_total, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct jv *list = jv_array(ctx->arena);
	int r = 0;

	*ret_total = 0;
	if (agent.len > PATH_NAME_MAX)
		return err_set(err, ERR_INVALID, "the name of the agent has more than %zu bytes", PATH_NAME_MAX);
	if (agent.len) {
		struct wpath dir = session_agent_path(ws, ctx, agent, "x");

		r = list_agent(ws, ctx, wpath_parent(dir).s, most, list, ret_total, err);
		*ret_list = sorted(ctx->arena, list, most);
		return r;
	}
	do {
		r = store_list(workspace_home(ws), ctx, (struct wpath){STR("agents")}, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			if (page.entries[i].stat.kind == STORE_DIR)
				r = list_agent(ws, ctx, page.entries[i].path.s, most, list, ret_total, err);
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	*ret_list = sorted(ctx->arena, list, most);
	return r == -ERR_NOT_FOUND ? 0 : r;
}
