/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session logs and what is derived from them. A log is only ever appended to, so adding an entry costs the same whether
 * it is the first or the millionth, and two runtimes that write to one session lose nothing. Entries that come together
 * are one append.
 */
#include "home/sessions/sessions_internal.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "home/search/search.h"
#include "store/jsonl.h"

static struct str agent_of(struct workspace *ws, struct str agent)
{
	if (!agent.len)
		agent = workspace_actor(ws).agent;
	return agent.len ? agent : STR("default");
}

static int check_ref(struct session_ref ref, struct err *err)
{
	if (!ref.session.len || ref.session.len > PATH_NAME_MAX || !utf8_valid(ref.session))
		return err_set(err, ERR_INVALID, "name the session with 1 to %zu bytes of text", PATH_NAME_MAX);
	for (size_t i = 0; i < ref.session.len; i++)
		if ((unsigned char)ref.session.ptr[i] < ' ' || ref.session.ptr[i] == 0x7f)
			return err_set(err, ERR_INVALID,
				       "the name of the session has a line break or another control character");
	if (ref.agent.len > PATH_NAME_MAX || !utf8_valid(ref.agent))
		return err_set(err, ERR_INVALID, "the name of the agent has more than %zu bytes", PATH_NAME_MAX);
	return 0;
}

struct wpath session_agent_path(struct workspace *ws, struct ctx *ctx, struct str agent, const char *rest)
{
	return (struct wpath){arena_printf(ctx->arena, "agents/%.*s/%s",
					   STR_ARG(workspace_encode_id(ctx->arena, agent_of(ws, agent))), rest)};
}

static struct wpath log_path(struct workspace *ws, struct ctx *ctx, struct session_ref ref)
{
	struct str name = workspace_encode_id(ctx->arena, ref.session);

	return session_agent_path(ws, ctx, ref.agent,
				  arena_printf(ctx->arena, "sessions/%.*s.log.jsonl", STR_ARG(name)).ptr);
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

static int entry_line(struct ctx *ctx, const struct jv *entry, struct buf *lines, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *line = jv_object(arena);
	struct buf text;

	if (!entry || entry->type != JV_OBJECT || !jv_get_str(entry, "type").len)
		return err_set(err, ERR_INVALID, "a session entry must be an object with a \"type\", such as message");
	jv_set_str(arena, line, "type", jv_get_str(entry, "type"));
	jv_set_str(arena, line, "id", new_id(arena));
	jv_set_str(arena, line, "timestamp", now(arena));
	for (const struct jv_member *m = jv_first(entry); m; m = m->next)
		if (!jv_is_null(m->value))
			jv_set_key(arena, line, m->key, m->value);
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, line);
	if (text.overflow)
		return err_set(
			err, ERR_TOO_LARGE,
			"an entry of a session has more than %zu bytes; append it in parts, or park it as an artifact",
			JSON_LEN_MAX);
	buf_add(lines, buf_str(&text));
	buf_char(lines, '\n');
	*ret = line;
	return 0;
}

/* The first line of a new log. */
static struct str head_line(struct workspace *ws, struct arena *arena, struct session_ref ref)
{
	struct jv *head = jv_object(arena);
	struct buf text;

	jv_set_str(arena, head, "type", STR("session"));
	jv_set_str(arena, head, "session", ref.session);
	jv_set_str(arena, head, "agent", agent_of(ws, ref.agent));
	jv_set_str(arena, head, "timestamp", now(arena));
	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, head);
	buf_char(&text, '\n');
	return buf_str(&text);
}

static int append_lines(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct str lines,
			struct err *err)
{
	struct store *home = workspace_home(ws);
	struct wpath path = log_path(ws, ctx, ref);
	int r = store_stat(home, ctx, path, NULL, err);

	if (r == -ERR_NOT_FOUND) {
		struct str head = head_line(ws, ctx->arena, ref);

		r = store_write(home, ctx, path, arena_printf(ctx->arena, "%.*s%.*s", STR_ARG(head), STR_ARG(lines)),
				(struct store_cond){.kind = STORE_ABSENT}, NULL, err);
		if (r != -ERR_EXISTS)
			return r;
		r = 0;
	}
	return r ? r : store_append(home, ctx, path, lines, (struct store_cond){0}, NULL, err);
}

static int all_lines(struct ctx *ctx, struct session_ref ref, const struct jv *entries, struct buf *lines,
		     struct jv *written, struct err *err)
{
	struct jv *line = NULL;
	int r = check_ref(ref, err);

	buf_init(lines, ctx->arena, SIZE_MAX / 2);
	for (const struct jv_member *m = jv_first(entries); m && r == 0; m = m->next) {
		r = entry_line(ctx, m->value, lines, &line, err);
		if (r == 0)
			jv_push(ctx->arena, written, line);
	}
	return r;
}

int session_replace(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entries,
		    struct err *err)
{
	struct str head = head_line(ws, ctx->arena, ref);
	struct buf lines;
	int r = all_lines(ctx, ref, entries, &lines, jv_array(ctx->arena), err);

	if (r)
		return r;
	return store_write(workspace_home(ws), ctx, log_path(ws, ctx, ref),
			   arena_printf(ctx->arena, "%.*s%.*s", STR_ARG(head), STR_ARG(buf_str(&lines))),
			   (struct store_cond){0}, NULL, err);
}

int session_append_all(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entries,
		       struct jv **ret_entries, struct err *err)
{
	struct jv *written = jv_array(ctx->arena);
	struct buf lines;
	int r = all_lines(ctx, ref, entries, &lines, written, err);

	if (r == 0 && lines.len)
		r = append_lines(ws, ctx, ref, buf_str(&lines), err);
	if (r == 0)
		*ret_entries = written;
	return r;
}

int session_append(struct workspace *ws, struct ctx *ctx, struct session_ref ref, const struct jv *entry,
		   struct jv **ret_entry, struct err *err)
{
	struct jv *one = jv_array(ctx->arena), *written;
	int r;

	jv_push(ctx->arena, one, entry ? (struct jv *)entry : jv_null(ctx->arena));
	r = session_append_all(ws, ctx, ref, one, &written, err);
	if (r == 0 && ret_entry)
		*ret_entry = (struct jv *)jv_at(written, 0);
	return r;
}

struct collect {
	struct arena *arena;
	struct jv **entries; /* the last first */
	size_t count, cap, most;
	uint64_t before;
	bool messages;
	bool recent;           /* only what the last compaction left */
	bool compacted;        /* it was seen */
	struct str first_kept; /* the entry that it begins with */
};

/* Whether entries before this one are wanted. */
static bool goes_back(struct collect *c, const struct jv *entry)
{
	if (!c->compacted && str_is(jv_get_str(entry, "type"), "compaction")) {
		c->compacted = true;
		c->first_kept = arena_str(c->arena, jv_get_str(entry, "first_kept"));
		return c->first_kept.len > 0;
	}
	return !c->compacted || !str_eq(jv_get_str(entry, "id"), c->first_kept);
}

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
	ARENA_ROOM(c->arena, c->entries, c->count, c->cap);
	if (jv_parse(c->arena, buf_str(&text), &c->entries[c->count], &ignored) == 0)
		c->count++;
	c->before = line->offset;
	return !c->recent || goes_back(c, line->value);
}

static int no_session(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct err *err)
{
	struct jv *list;
	uint64_t total;
	char names[200] = "";
	size_t len = 0;

	if (session_list(ws, ctx, ref.agent, 10, &list, &total, err) == 0)
		for (const struct jv_member *m = jv_first(list); m && len < 120; m = m->next) {
			struct str agent = jv_get_str(m->value, "agent");
			bool is_own = str_eq(agent, agent_of(ws, ref.agent));

			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s%s%.*s", len ? ", " : "",
						STR_ARG(utf8_first(jv_get_str(m->value, "session"), 40)),
						is_own ? "" : " of the agent ",
						STR_ARG(is_own ? STR("") : utf8_first(agent, 40)));
		}
	return err_set(err, ERR_NOT_FOUND, "agent \"%.*s\" has no session \"%.*s\"; %s%s",
		       STR_ARG(utf8_first(agent_of(ws, ref.agent), 60)), STR_ARG(utf8_first(ref.session, 60)),
		       len ? "there is " : "there is none yet", names);
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
	r = jsonl_read_back(workspace_home(ws), ctx, path, &back, err);
	if (r)
		return r;
	*ret = (struct session_page){.entries = jv_array(ctx->arena), .bad = back.bad};
	ret->before = c.count == count ? c.before : 0;
	for (size_t i = c.count; i--;)
		jv_push(ctx->arena, ret->entries, c.entries[i]);
	return 0;
}

int session_recent(struct workspace *ws, struct ctx *ctx, struct session_ref ref, size_t most, struct jv **ret_entries,
		   struct err *err)
{
	struct collect c = {.arena = ctx->arena, .most = most + 1, .recent = true};
	struct jsonl_back back = {.visit = collect, .arg = &c};
	int r = check_ref(ref, err);

	if (r)
		return r;
	r = jsonl_read_back(workspace_home(ws), ctx, log_path(ws, ctx, ref), &back, err);
	if (r)
		return r;
	if (c.count > most)
		return err_set(err, ERR_TOO_LARGE, "session \"%.*s\" has more than %zu entries; start a new session",
			       STR_ARG(utf8_first(ref.session, 60)), most);
	*ret_entries = jv_array(ctx->arena);
	for (size_t i = c.count; i--;)
		jv_push(ctx->arena, *ret_entries, c.entries[i]);
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

/* --- state --- */

static struct wpath state_path(struct workspace *ws, struct ctx *ctx, struct session_ref ref)
{
	struct str name = workspace_encode_id(ctx->arena, ref.session);

	return session_agent_path(ws, ctx, ref.agent,
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
		return err_set(err, ERR_TOO_LARGE, "the state has more than %zu bytes; keep large parts in files",
			       JSON_LEN_MAX);
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
	return jsonl_append(workspace_home(ws), ctx, session_agent_path(ws, ctx, ref.agent, "token_usage.jsonl"), line,
			    NULL, err);
}

#define LINES_LOOKED 200

struct look {
	struct str turn;
	size_t lines;
	bool found;
};

static bool look_at(void *arg, const struct jsonl_line *line)
{
	struct look *look = arg;

	look->found = str_eq(jv_get_str(line->value, "turn"), look->turn);
	return !look->found && ++look->lines < LINES_LOOKED;
}

int usage_has(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct str turn, bool *ret_has,
	      struct err *err)
{
	struct look look = {.turn = turn};
	struct jsonl_back back = {.visit = look_at, .arg = &look};
	struct wpath path = session_agent_path(ws, ctx, ref.agent, "token_usage.jsonl");
	int r = jsonl_read_back(workspace_home(ws), ctx, path, &back, err);

	*ret_has = look.found;
	return r;
}

struct sum {
	struct arena *arena;
	int64_t since_ns;
	struct jv *all, *by_model, *by_session, *by_day;
};

static double cost_of(const struct jv *line)
{
	const struct jv *v = jv_get(line, "cost_usd");

	return v && v->type == JV_REAL ? v->u.d : v && v->type == JV_INT ? (double)v->u.i : 0;
}

static void count_in(struct arena *arena, struct jv *into, const struct jv *line)
{
	static const char *const keys[] = {"input_tokens", "output_tokens", "total_tokens", "llm_calls"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		jv_set_int(arena, into, keys[i], jv_get_int(into, keys[i], 0) + jv_get_int(line, keys[i], 0));
	if (cost_of(line) > 0)
		jv_set(arena, into, "cost_usd", jv_real(arena, cost_of(into) + cost_of(line)));
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
	count_by(s, s->by_day, str_first(jv_get_str(line->value, "timestamp"), strlen("2026-11-15")), line->value);
	return true;
}

static int sum_agent(struct workspace *ws, struct ctx *ctx, struct wpath dir, struct sum *sum, struct err *err)
{
	struct jsonl_back back = {.visit = sum_line, .arg = sum};
	struct wpath path = {arena_printf(ctx->arena, "%.*s/token_usage.jsonl", STR_ARG(dir.s))};

	return jsonl_read_back(workspace_home(ws), ctx, path, &back, err);
}

static int sum_agents(struct workspace *ws, struct ctx *ctx, struct sum *sum, struct err *err)
{
	struct store_list_req req = {.limit = 1000};
	struct store_page page = {0};
	int r;

	do {
		r = store_list(workspace_home(ws), ctx, (struct wpath){STR("agents")}, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			if (page.entries[i].stat.kind == STORE_DIR)
				r = sum_agent(ws, ctx, page.entries[i].path, sum, err);
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int usage_sum(struct workspace *ws, struct ctx *ctx, struct str agent, int64_t since_ns, struct jv **ret_sum,
	      struct err *err)
{
	struct sum s = {
		ctx->arena,           since_ns, jv_object(ctx->arena), jv_object(ctx->arena), jv_object(ctx->arena),
		jv_object(ctx->arena)};
	int r;

	count_in(ctx->arena, s.all, NULL);
	r = agent.len ? sum_agent(ws, ctx, wpath_parent(session_agent_path(ws, ctx, agent, "x")), &s, err)
		      : sum_agents(ws, ctx, &s, err);
	jv_set(ctx->arena, s.all, "by_model", s.by_model);
	jv_set(ctx->arena, s.all, "by_session", s.by_session);
	jv_set(ctx->arena, s.all, "by_day", s.by_day);
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

/* Every line is an entry, but the first, which names the session. */
static enum search_line log_line(struct wpath path, struct str line)
{
	(void)path;
	return str_starts(line, STR("{\"type\":\"session\"")) ? SEARCH_HEAD : SEARCH_BEGINS;
}

static const char *const places[] = {"agents", NULL};
const struct search_source sessions_sources[] = {{"sessions", places, owns_log, log_documents, log_line}, {0}};
