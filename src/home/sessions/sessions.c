/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session logs and what is derived from them. A log is only ever appended to, so adding an entry costs the same whether
 * it is the first or the millionth, and two runtimes that write to one session lose nothing. The index knows how far it
 * has read each log and reads on from there when it is asked for.
 */
#include "home/sessions/sessions.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/search/search.h"
#include "store/jsonl.h"

#define TITLE_MOST    80
#define SESSIONS_MOST 100000

static struct str agent_of(struct workspace *ws, struct str agent)
{
	if (!agent.len)
		agent = workspace_actor(ws).agent;
	return agent.len ? agent : STR("default");
}

static int check_ref(struct session_ref ref, struct err *err)
{
	if (!ref.session.len || ref.session.len > PATH_NAME_MAX || !utf8_valid(ref.session))
		return err_set(err, ERR_INVALID, "name the session, with 1 to %zu bytes of text", PATH_NAME_MAX);
	if (ref.agent.len > PATH_NAME_MAX || !utf8_valid(ref.agent))
		return err_set(err, ERR_INVALID, "the name of the agent has more than %zu bytes", PATH_NAME_MAX);
	return 0;
}

static struct wpath agent_path(struct workspace *ws, struct ctx *ctx, struct str agent, const char *rest)
{
	return (struct wpath){arena_printf(ctx->arena, "agents/%.*s/%s",
					   STR_ARG(workspace_encode_name(ctx->arena, agent_of(ws, agent))), rest)};
}

static struct wpath log_path(struct workspace *ws, struct ctx *ctx, struct session_ref ref)
{
	struct str name = workspace_encode_name(ctx->arena, ref.session);

	return agent_path(ws, ctx, ref.agent, arena_printf(ctx->arena, "sessions/%.*s.log.jsonl", STR_ARG(name)).ptr);
}

static struct str new_id(struct arena *arena)
{
	return arena_printf(arena, "%012llx%08llx", (unsigned long long)(clock_real_ns() / 1000000),
			    (unsigned long long)(random_u64() & 0xffffffff));
}

static struct str now(struct arena *arena)
{
	return clock_format_utc(arena, clock_real_ns());
}

/* --- the log --- */

int session_append(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entry,
		   struct jv **ret_entry, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *line = jv_object(arena), *head = jv_object(arena);
	int r = check_ref(ref, err);

	if (r)
		return r;
	if (!entry || entry->type != JV_OBJECT || !jv_get_str(entry, "type").len)
		return err_set(err, ERR_INVALID, "an entry of a session is an object with \"type\", such as message");
	jv_set_str(arena, line, "type", jv_get_str(entry, "type"));
	jv_set_str(arena, line, "id", new_id(arena));
	jv_set_str(arena, line, "timestamp", now(arena));
	for (const struct jv_member *m = jv_first(entry); m; m = m->next)
		if (!jv_is_null(m->value))
			jv_set_key(arena, line, m->key, m->value);
	jv_set_str(arena, head, "type", STR("session"));
	jv_set_str(arena, head, "session", ref.session);
	jv_set_str(arena, head, "agent", agent_of(ws, ref.agent));
	jv_set_str(arena, head, "timestamp", now(arena));
	r = jsonl_append(workspace_home(ws), ctx, log_path(ws, ctx, ref), line, head, err);
	if (r == 0 && ret_entry)
		*ret_entry = line;
	return r;
}

struct collect {
	struct arena *arena;
	struct jv **entries; /* the last first */
	size_t count, most;
	uint64_t before;
	bool messages;
};

static bool collect(void *arg, const struct jsonl_line *line)
{
	struct collect *c = arg;
	struct str type = jv_get_str(line->value, "type");
	struct buf text;
	struct err ignored;

	if (str_is(type, "session") || (c->messages && !str_is(type, "message")))
		return true;
	if (c->count == c->most)
		return false;
	buf_init(&text, c->arena, JSON_LEN_MAX);
	jv_write(&text, line->value); /* the line's memory goes; a copy borrows its strings, so it is read again */
	if (jv_parse(c->arena, buf_str(&text), &c->entries[c->count], &ignored) == 0)
		c->count++;
	c->before = line->offset;
	return true;
}

static int no_session(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct err *err)
{
	struct jv *list;
	char names[200] = "";
	size_t len = 0;

	if (session_list(ws, ctx, ref.agent, &list, err) == 0)
		for (const struct jv_member *m = jv_first(list); m && len < 120; m = m->next)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s", len ? ", " : "",
						STR_ARG(utf8_first(jv_get_str(m->value, "session"), 40)));
	return err_set(err, ERR_NOT_FOUND, "agent \"%.*s\" has no session \"%.*s\"; %s%s",
		       STR_ARG(utf8_first(agent_of(ws, ref.agent), 60)), STR_ARG(utf8_first(ref.session, 60)),
		       len ? "it has " : "it has none", names);
}

int session_history(struct workspace *ws, struct ctx *ctx, struct session_ref ref, uint64_t before, size_t count,
		    bool messages, struct session_page *ret, struct err *err)
{
	struct collect c = {.arena = ctx->arena, .most = count, .messages = messages};
	struct jsonl_back back = {.before = before, .visit = collect, .arg = &c};
	struct wpath path;
	int r = check_ref(ref, err);

	if (r)
		return r;
	path = log_path(ws, ctx, ref);
	if (store_stat(workspace_home(ws), ctx, path, NULL, err) == -ERR_NOT_FOUND)
		return no_session(ws, ctx, ref, err);
	c.entries = ARENA_ARRAY(ctx->arena, struct jv *, count + 1);
	r = jsonl_read_back(workspace_home(ws), ctx, path, &back, err);
	if (r)
		return r;
	*ret = (struct session_page){.entries = jv_array(ctx->arena), .bad = back.bad};
	ret->before = c.count == count ? c.before : 0;
	for (size_t i = c.count; i--;)
		jv_push(ctx->arena, ret->entries, c.entries[i]);
	return 0;
}

struct str session_entry_text(struct arena *arena, const struct jv *entry)
{
	const struct jv *content = jv_get(entry, "content");
	struct str type = jv_get_str(entry, "type");
	struct buf text;

	if (str_is(type, "tool_result") && !content)
		content = jv_get(entry, "output");
	if (str_is(type, "summary") && !content)
		content = jv_get(entry, "summary");
	if (content && content->type == JV_STR)
		return content->u.s;
	buf_init(&text, arena, JSON_LEN_MAX);
	if (str_is(type, "tool_use")) {
		buf_add(&text, jv_get_str(entry, "name"));
		buf_char(&text, '(');
		jv_write(&text, jv_get(entry, "input") ? jv_get(entry, "input") : jv_object(arena));
		buf_char(&text, ')');
		return buf_str(&text);
	}
	for (const struct jv_member *m = jv_first(content); m; m = m->next) {
		struct str part = jv_get_str(m->value, "text");

		if (!part.len)
			continue;
		if (text.len)
			buf_char(&text, '\n');
		buf_add(&text, part);
	}
	if (!text.len && content && content->type == JV_OBJECT)
		jv_write(&text, content);
	return text.len ? buf_str(&text) : STR("");
}

/* --- the index --- */

/* Takes what a log has behind `bytes` into its entry of the index. */
struct tally {
	struct arena *arena;
	struct jv *entry;
	int64_t entries, messages;
};

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
	if (str_is(type, "message") && is_user && !jv_get_str(t->entry, "title").len) {
		struct str text = str_trim(session_entry_text(t->arena, line->value));

		text = utf8_first(str_first(text, str_find_char(text, '\n')), TITLE_MOST);
		jv_set_str(t->arena, t->entry, "title", arena_str(t->arena, text));
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

	if (store_read(workspace_home(ws), ctx, path, STORE_WHOLE, JSON_LEN_MAX, &text, NULL, &ignored) ||
	    jv_parse(ctx->arena, text, &index, &ignored) || index->type != JV_OBJECT || !jv_get(index, "sessions") ||
	    jv_get(index, "sessions")->type != JV_OBJECT) {
		index = jv_object(ctx->arena); /* derived: a broken index is built again */
		jv_set_int(ctx->arena, index, "version", 1);
		jv_set(ctx->arena, index, "sessions", jv_object(ctx->arena));
	}
	return index;
}

static void write_index(struct workspace *ws, struct ctx *ctx, struct wpath path, const struct jv *index)
{
	struct buf text;
	struct err ignored;

	buf_init(&text, ctx->arena, JSON_LEN_MAX);
	jv_write_pretty(&text, index);
	if (!text.overflow) /* when it fails, the next one to ask counts again */
		store_write(workspace_home(ws), ctx, path, buf_str(&text), (struct store_cond){0}, NULL, &ignored);
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

/* `dir` is agents/<agent> as encoded in the store. */
static int list_agent(struct workspace *ws, struct ctx *ctx, struct str dir, struct jv *list, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath logs = {arena_printf(arena, "%.*s/sessions", STR_ARG(dir))};
	struct wpath index_path = {arena_printf(arena, "%.*s/sessions.json", STR_ARG(logs.s))};
	struct jv *index = read_index(ws, ctx, index_path), *sessions = (struct jv *)jv_get(index, "sessions");
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	bool changed = false;
	int r;

	do {
		r = store_list(workspace_home(ws), ctx, logs, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count && jv_count(list) < SESSIONS_MOST; i++) {
			struct str name = wpath_relative(page.entries[i].path, logs).s;
			struct jv *entry;

			if (!str_ends(name, STR(".log.jsonl")) || page.entries[i].stat.kind != STORE_FILE)
				continue;
			name = str_first(name, name.len - 10);
			entry = (struct jv *)jv_get_key(sessions, name);
			if (!entry || entry->type != JV_OBJECT) {
				entry = jv_object(arena);
				jv_set_str(arena, entry, "session", name);
				jv_set_key(arena, sessions, name, entry);
			}
			r = index_log(ws, ctx, &page.entries[i], entry, &changed, err);
			if (r == 0)
				add_session(arena, list, wpath_name((struct wpath){dir}), entry);
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	if (r == 0 && changed)
		write_index(ws, ctx, index_path, index);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int newest_first(const void *a, const void *b)
{
	const struct jv *x = *(const struct jv *const *)a, *y = *(const struct jv *const *)b;
	int c = str_cmp(jv_get_str(y, "last_active_at"), jv_get_str(x, "last_active_at"));

	return c ? c : str_cmp(jv_get_str(x, "session"), jv_get_str(y, "session"));
}

static struct jv *sorted(struct arena *arena, const struct jv *list)
{
	struct jv **all = ARENA_ARRAY(arena, struct jv *, jv_count(list) + 1), *ret = jv_array(arena);
	size_t n = 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		all[n++] = m->value;
	qsort(all, n, sizeof(*all), newest_first);
	for (size_t i = 0; i < n; i++)
		jv_push(arena, ret, all[i]);
	return ret;
}

int session_list(struct workspace *ws, struct ctx *ctx, struct str agent, struct jv **ret_list, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct jv *list = jv_array(ctx->arena);
	int r = 0;

	if (agent.len > PATH_NAME_MAX)
		return err_set(err, ERR_INVALID, "the name of the agent has more than %zu bytes", PATH_NAME_MAX);
	if (agent.len) {
		struct wpath dir = agent_path(ws, ctx, agent, "x");

		r = list_agent(ws, ctx, wpath_parent(dir).s, list, err);
		*ret_list = sorted(ctx->arena, list);
		return r;
	}
	do {
		r = store_list(workspace_home(ws), ctx, (struct wpath){STR("agents")}, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			if (page.entries[i].stat.kind == STORE_DIR)
				r = list_agent(ws, ctx, page.entries[i].path.s, list, err);
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	*ret_list = sorted(ctx->arena, list);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* --- state --- */

static struct wpath state_path(struct workspace *ws, struct ctx *ctx, struct session_ref ref)
{
	struct str name = workspace_encode_name(ctx->arena, ref.session);

	return agent_path(ws, ctx, ref.agent,
			  arena_printf(ctx->arena, "context/%.*s/agent_state.json", STR_ARG(name)).ptr);
}

int session_state(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct jv **ret_state,
		  struct str *ret_version, struct err *err)
{
	struct store_stat stat = {0};
	struct str text;
	int r = check_ref(ref, err);

	*ret_state = NULL;
	*ret_version = STR_NONE;
	if (r)
		return r;
	r = store_read(workspace_home(ws), ctx, state_path(ws, ctx, ref), STORE_WHOLE, JSON_LEN_MAX, &text, &stat, err);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	*ret_version = stat.version;
	r = jv_parse(ctx->arena, text, ret_state, err);
	return r ? err_prefix(err, "the state of session \"%.*s\" is not valid JSON",
			      STR_ARG(utf8_first(ref.session, 60)))
		 : 0;
}

int session_state_set(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *state,
		      struct str if_version, struct str *ret_version, struct err *err)
{
	struct store_cond cond = {.kind = if_version.len ? STORE_VERSION : STORE_ANY, .version = if_version};
	struct store_stat stat;
	struct buf text;
	int r = check_ref(ref, err);

	if (r)
		return r;
	buf_init(&text, ctx->arena, JSON_LEN_MAX);
	jv_write_pretty(&text, state);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE, "the state has more than %zu bytes", JSON_LEN_MAX);
	r = store_write(workspace_home(ws), ctx, state_path(ws, ctx, ref), buf_str(&text), cond, &stat, err);
	if (r == 0)
		*ret_version = stat.version;
	return r;
}

/* --- usage --- */

int usage_add(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *usage, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *line = jv_object(arena);
	int64_t in = jv_get_int(usage, "input_tokens", 0), out = jv_get_int(usage, "output_tokens", 0);

	if (in < 0 || out < 0)
		return err_set(err, ERR_INVALID, "tokens are counted from 0");
	jv_set_str(arena, line, "timestamp", now(arena));
	jv_set_str(arena, line, "workspace", workspace_name(ws));
	jv_set_str(arena, line, "invocation_type", STR("user"));
	jv_set_str(arena, line, "session_key", ref.session);
	jv_set_int(arena, line, "total_tokens", in + out);
	jv_set_int(arena, line, "llm_calls", 1);
	for (const struct jv_member *m = jv_first(usage); m; m = m->next)
		if (!jv_is_null(m->value))
			jv_set_key(arena, line, m->key, m->value);
	return jsonl_append(workspace_home(ws), ctx, agent_path(ws, ctx, ref.agent, "token_usage.jsonl"), line, NULL,
			    err);
}

struct sum {
	struct arena *arena;
	int64_t since_ns;
	struct jv *all, *by_model, *by_session;
};

static void count_in(struct arena *arena, struct jv *into, const struct jv *line)
{
	static const char *const keys[] = {"input_tokens", "output_tokens", "total_tokens", "llm_calls"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		jv_set_int(arena, into, keys[i], jv_get_int(into, keys[i], 0) + jv_get_int(line, keys[i], 0));
}

static void count_by(struct sum *s, struct jv *groups, struct str name, const struct jv *line)
{
	struct jv *group;

	if (!name.len)
		return;
	group = (struct jv *)jv_get_key(groups, name);
	if (!group) {
		group = jv_object(s->arena);
		jv_set_key(s->arena, groups, arena_str(s->arena, name), group);
	}
	count_in(s->arena, group, line);
}

static bool sum_line(void *arg, const struct jsonl_line *line)
{
	struct sum *s = arg;
	int64_t at;

	if (clock_parse(jv_get_str(line->value, "timestamp"), &at) && at < s->since_ns)
		return false; /* lines are in the order of time */
	count_in(s->arena, s->all, line->value);
	count_by(s, s->by_model, jv_get_str(line->value, "model"), line->value);
	count_by(s, s->by_session, jv_get_str(line->value, "session_key"), line->value);
	return true;
}

int usage_sum(struct workspace *ws, struct ctx *ctx, struct str agent, int64_t since_ns, struct jv **ret_sum,
	      struct err *err)
{
	struct sum s = {ctx->arena, since_ns, jv_object(ctx->arena), jv_object(ctx->arena), jv_object(ctx->arena)};
	struct jsonl_back back = {.visit = sum_line, .arg = &s};
	int r;

	count_in(ctx->arena, s.all, NULL);
	r = jsonl_read_back(workspace_home(ws), ctx, agent_path(ws, ctx, agent, "token_usage.jsonl"), &back, err);
	jv_set(ctx->arena, s.all, "by_model", s.by_model);
	jv_set(ctx->arena, s.all, "by_session", s.by_session);
	*ret_sum = s.all;
	return r;
}

/* --- for search: every entry is a document --- */

static bool owns_log(struct wpath path)
{
	return wpath_within(path, (struct wpath){STR("agents")}) &&
	       str_find(path.s, STR("/sessions/"), 0) != SIZE_MAX && str_ends(path.s, STR(".log.jsonl"));
}

static int log_documents(struct arena *arena, struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit,
			 void *arg, struct err *err)
{
	struct str rest = bytes, line, session = wpath_name(path);
	struct jv *v;

	for (unsigned long number = 1; str_cut(&rest, '\n', &line); number++) {
		struct search_doc doc = {.time_ns = mtime_ns};

		if (!str_trim(line).len || jv_parse(arena, line, &v, err) != 0 || v->type != JV_OBJECT)
			continue;
		if (str_is(jv_get_str(v, "type"), "session") && jv_get_str(v, "session").len) {
			session = jv_get_str(v, "session");
			continue;
		}
		doc.id = jv_get_str(v, "id");
		if (!doc.id.len)
			doc.id = arena_printf(arena, "%lu", number);
		doc.title = session;
		doc.kind = jv_get_str(v, "type");
		doc.author = jv_get_str(v, "role");
		doc.body = str_trim(session_entry_text(arena, v));
		clock_parse(jv_get_str(v, "timestamp"), &doc.time_ns);
		if (doc.body.len)
			emit(arg, &doc);
	}
	return 0;
}

/* Every line is an entry. */
static bool begins(struct wpath path, struct str line)
{
	(void)path;
	(void)line;
	return true;
}

static const char *const places[] = {"agents", NULL};
const struct search_source sessions_sources[] = {{"sessions", places, owns_log, log_documents, begins}, {0}};
