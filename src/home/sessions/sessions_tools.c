/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools over sessions. An agent looks at what was said before (session_list, session_history, session_search); a
 * runtime that is not Stead's own writes its conversations here (session_append, session_state) and closes them
 * (session_archive). AgentScope's three names for looking have their own arguments and text.
 */
#include "home/sessions/sessions_tools.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "home/search/search.h"
#include "home/sessions/sessions.h"
#include "tool/call.h"
#include "tool/family.h"
#include "tool/schemas.h"

#define LAST_DEFAULT 20
#define LAST_MOST    1000
#define PREVIEW      500

static struct session_ref ref_of(const struct jv *args)
{
	return (struct session_ref){.agent = jv_get_str(args, "agent"), .session = jv_get_str(args, "session")};
}

void session_line(struct arena *arena, struct buf *text, const struct jv *entry, size_t most)
{
	struct str type = jv_get_str(entry, "type"), role = jv_get_str(entry, "role");
	struct str words = session_entry_text(arena, entry);

	buf_printf(text, "[%.*s]: ", STR_ARG(role.len ? role : type));
	buf_add(text, utf8_first(words, most));
	if (words.len > most)
		buf_printf(text, "… (%zu bytes more)", words.len - most);
}

/* --- native --- */

static int tool_session_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t limit = arg_count(args, "limit", 50, LAST_MOST), n = 0;
	struct jv *list, *page = jv_array(arena);
	int r = session_list(call->ws, call->ctx, jv_get_str(args, "agent"), &list, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(list); m && n < limit; m = m->next, n++)
		jv_push(arena, page, m->value);
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "sessions", page);
	jv_set_int(arena, ret->value, "total", (int64_t)jv_count(list));
	return 0;
}

static void render_sessions(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *list = jv_get(value, "sessions");

	(void)args;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		buf_printf(text, "%.*s (%.*s, %lld messages, last %.*s): %.*s\n",
			   STR_ARG(jv_get_str(m->value, "session")), STR_ARG(jv_get_str(m->value, "agent")),
			   (long long)jv_get_int(m->value, "messages", 0),
			   STR_ARG(jv_get_str(m->value, "last_active_at")), STR_ARG(jv_get_str(m->value, "title")));
	buf_printf(text, "%lld session%s in all", (long long)jv_get_int(value, "total", 0),
		   plural((uint64_t)jv_get_int(value, "total", 0)));
}

static int tool_session_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t count = arg_count(args, "last", LAST_DEFAULT, LAST_MOST);
	int64_t before = 0;
	struct session_page page;
	int r;

	if (jv_get_str(args, "cursor").len && (!str_to_i64(jv_get_str(args, "cursor"), &before) || before <= 0))
		return err_set(err, ERR_INVALID, "the cursor is not one that this tool gave");
	r = session_history(call->ws, call->ctx, ref_of(args), (uint64_t)before, count ? count : 1,
			    !jv_get_bool(args, "tools", true), &page, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "session", jv_get_str(args, "session"));
	jv_set(arena, ret->value, "entries", page.entries);
	if (page.before)
		jv_set_str(arena, ret->value, "next_cursor",
			   arena_printf(arena, "%llu", (unsigned long long)page.before));
	if (page.bad)
		jv_set_int(arena, ret->value, "unreadable", (int64_t)page.bad);
	return 0;
}

static void render_history(const struct jv *args, const struct jv *value, struct buf *text)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "entries")); m; m = m->next) {
		session_line(arena, text, m->value, PREVIEW);
		buf_char(text, '\n');
	}
	if (!jv_count(jv_get(value, "entries")))
		buf_lit(text, "nothing was said yet\n");
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "[there is more before; go on with cursor %.*s]\n",
			   STR_ARG(jv_get_str(value, "next_cursor")));
	text->len--;
}

static int tool_session_append(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *list = jv_get(args, "entries");
	struct jv *ids = jv_array(arena), *written;
	int r = 0;

	for (const struct jv_member *m = jv_first(list); m && !r; m = m->next) {
		if (str_is(jv_get_str(m->value, "type"), "usage")) {
			r = usage_add(call->ws, call->ctx, ref_of(args), m->value, err);
			continue;
		}
		r = session_append(call->ws, call->ctx, ref_of(args), m->value, &written, err);
		if (r == 0)
			jv_push(arena, ids, jv_str(arena, jv_get_str(written, "id")));
	}
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "session", jv_get_str(args, "session"));
	jv_set(arena, ret->value, "ids", ids);
	return 0;
}

static void render_append(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "added %zu entr%s to session %.*s", jv_count(jv_get(value, "ids")),
		   jv_count(jv_get(value, "ids")) == 1 ? "y" : "ies", STR_ARG(jv_get_str(value, "session")));
}

static int tool_session_archive(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return session_archive(call->ws, call->ctx, ref_of(args), jv_get_str(args, "tag"), jv_get_str(args, "summary"),
			       &ret->value, err);
}

static void render_archive(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	buf_printf(text, "archived %lld messages as %.*s", (long long)jv_get_int(value, "messages", 0),
		   STR_ARG(jv_get_str(value, "path")));
}

static int tool_session_state(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *wanted = jv_get(args, "state");
	struct jv *state = NULL;
	struct str version;
	int r = wanted ? session_state_set(call->ws, call->ctx, ref_of(args), wanted, jv_get_str(args, "if_version"),
					   &version, err)
		       : session_state(call->ws, call->ctx, ref_of(args), &state, &version, err);

	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "session", jv_get_str(args, "session"));
	if (state)
		jv_set(arena, ret->value, "state", state);
	if (version.len)
		jv_set_str(arena, ret->value, "version", version);
	return 0;
}

static int tool_session_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct search_query query = {.text = jv_get_str(args, "query"),
				     .areas = search_area(STR("sessions")),
				     .author = jv_get_str(args, "role"),
				     .limit = arg_count(args, "limit", 10, 100)};
	struct str agent = jv_get_str(args, "agent");
	struct jv *list = jv_array(arena);
	struct search_hits hits;
	int r;

	if (agent.len)
		query.under = arena_printf(arena, "agents/%.*s", STR_ARG(workspace_encode_name(arena, agent)));
	r = home_search(call->ws, call->ctx, &query, &hits, err);
	if (r)
		return r;
	for (size_t i = 0; i < hits.count; i++) {
		struct jv *hit = jv_object(arena);

		jv_set_str(arena, hit, "session", hits.hits[i].title);
		jv_set_str(arena, hit, "id", hits.hits[i].id);
		jv_set_str(arena, hit, "role", hits.hits[i].author);
		jv_set_str(arena, hit, "type", hits.hits[i].kind);
		jv_set_str(arena, hit, "path", hits.hits[i].path);
		jv_set_str(arena, hit, "snippet", hits.hits[i].snippet);
		jv_push(arena, list, hit);
	}
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "hits", list);
	jv_set_int(arena, ret->value, "total", (int64_t)hits.total);
	if (hits.note.len)
		jv_set_str(arena, ret->value, "note", hits.note);
	return 0;
}

static void render_hits(const struct jv *args, const struct jv *value, struct buf *text)
{
	(void)args;
	for (const struct jv_member *m = jv_first(jv_get(value, "hits")); m; m = m->next)
		buf_printf(text, "%.*s %.*s [%.*s]: %.*s\n", STR_ARG(jv_get_str(m->value, "session")),
			   STR_ARG(jv_get_str(m->value, "id")), STR_ARG(jv_get_str(m->value, "role")),
			   STR_ARG(jv_get_str(m->value, "snippet")));
	buf_printf(text, "%lld match%s in all", (long long)jv_get_int(value, "total", 0),
		   jv_get_int(value, "total", 0) == 1 ? "" : "es");
}

/* --- AgentScope --- */

static int scope_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("query", "query", "agentId", "agent", "maxResults", "limit", NULL);
	const struct jv *hits;

	r = tool_session_search(call, mapped, ret, err);
	if (r)
		return r;
	hits = jv_get(ret->value, "hits");
	buf_printf(&text, "Found %zu matching entries", jv_count(hits));
	for (const struct jv_member *m = jv_first(hits); m; m = m->next) {
		struct str role = jv_get_str(m->value, "role"), snippet = jv_get_str(m->value, "snippet");

		buf_printf(&text, "\n  [%.*s] %.*s — [%.*s]: %.*s", STR_ARG(jv_get_str(m->value, "path")),
			   STR_ARG(jv_get_str(m->value, "id")), STR_ARG(role), STR_ARG(utf8_points(snippet, 200)));
	}
	text_reply(ret, &text);
	return 0;
}

static int scope_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("agentId", "agent", NULL);

	r = tool_session_list(call, mapped, ret, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(jv_get(ret->value, "sessions")); m; m = m->next)
		buf_printf(&text, "%s- %.*s (updated %.*s)", text.len ? "\n" : "",
			   STR_ARG(jv_get_str(m->value, "session")), STR_ARG(jv_get_str(m->value, "last_active_at")));
	if (!text.len)
		buf_lit(&text, "No sessions found");
	text_reply(ret, &text);
	return 0;
}

static int scope_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START("agentId", "agent", "sessionId", "session", "lastN", "last", NULL);
	const struct jv *entries;

	r = tool_session_history(call, mapped, ret, err);
	if (r)
		return r;
	entries = jv_get(ret->value, "entries");
	buf_printf(&text, "Session %.*s: last %zu entries", STR_ARG(jv_get_str(args, "sessionId")), jv_count(entries));
	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		buf_char(&text, '\n');
		session_line(arena, &text, m->value, PREVIEW);
	}
	text_reply(ret, &text);
	return 0;
}

/* --- OpenPaw: archives --- */

static int paw_conversations(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	START(NULL);
	struct search_query query = {.text = jv_get_str(args, "query"),
				     .areas = search_area(STR("memory")),
				     .under = STR("memory/conversations"),
				     .limit = arg_count(args, "limit", 5, 20)};
	struct search_hits hits;

	(void)mapped;
	r = home_search(call->ws, call->ctx, &query, &hits, err);
	if (r)
		return r;
	for (size_t i = 0; i < hits.count; i++)
		buf_printf(&text, "%s[%.*s]\n%.*s", i ? "\n\n" : "",
			   STR_ARG(wpath_name((struct wpath){hits.hits[i].path})), STR_ARG(hits.hits[i].snippet));
	if (!hits.count)
		buf_printf(&text, "No conversations match '%.*s'.", STR_ARG(query.text));
	text_reply(ret, &text);
	return 0;
}

/* clang-format off */
#define S_AGENT S_STR("agent", "whose session (default: the agent that this workspace was opened for)")
#define S_SESSION S_STR("session", "the session's id")
#define SESSION S_OBJ( \
	S_BARE("agent", "string") AND S_BARE("session", "string") AND S_BARE("started_at", "string") AND \
	S_BARE("last_active_at", "string") AND S_BARE("entries", "integer") AND S_BARE("messages", "integer") AND \
	S_BARE("bytes", "integer") AND S_BARE("title", "string") AND S_BARE("summary", "string"), "\"agent\",\"session\"")
#define ENTRY "{\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{\"type\":\"string\",\"minLength\":1}}}"

static const struct tool native[] = {
	{.name = "session_list", .title = "List sessions", .group = "sessions", .call = tool_session_list,
	 .render = render_sessions, .traits = RO,
	 .description = "Lists conversations with their sizes, times and first words, the newest first.",
	 .input_schema = S_OBJ(
		S_STR("agent", "only this agent's (default: all)") AND
		S_INT1("limit", "how many (default 50, at most 1000)"), ""),
	 .output_schema = S_OBJ(S_LIST("sessions", SESSION, "the newest first") AND S_BARE("total", "integer"),
		"\"sessions\",\"total\"")},
	{.name = "session_history", .title = "Read a session", .group = "sessions", .call = tool_session_history,
	 .render = render_history, .traits = RO,
	 .description = "Gives the last entries of a conversation, whole and in order; go back with next_cursor.",
	 .input_schema = S_OBJ(
		S_SESSION AND S_AGENT AND
		S_INT1("last", "how many entries (default 20, at most 1000)") AND
		S_BOOL("tools", "calls and results of tools too (default true)") AND
		S_CURSOR, "\"session\""),
	 .output_schema = S_OBJ(
		S_BARE("session", "string") AND
		S_LIST("entries", "{\"type\":\"object\"}", "in order") AND
		S_BARE("next_cursor", "string") AND
		S_BARE("unreadable", "integer"), "\"session\",\"entries\"")},
	{.name = "session_search", .title = "Search sessions", .group = "sessions", .call = tool_session_search,
	 .render = render_hits, .traits = RO | TOOL_LONG,
	 .description = "Finds what was said in any conversation, best first: words (any may match), \"phrases\", -without.",
	 .input_schema = S_OBJ(
		S_STR("query", "what to look for") AND
		S_STR("agent", "only this agent's sessions (default: all)") AND
		S_STR("role", "only what this role said") AND
		S_INT1("limit", "hits (default 10, at most 100)"), "\"query\""),
	 .output_schema = S_OBJ(
		S_LIST("hits", "{\"type\":\"object\"}", "best first") AND
		S_BARE("total", "integer") AND
		S_BARE("note", "string"), "\"hits\",\"total\"")},
	{.name = "session_append", .title = "Write to a session", .group = "sessions", .call = tool_session_append,
	 .render = render_append,
	 .description =
		"Adds entries to a conversation's log, which is never shortened: objects with type message (role, "
		"content), tool_use (toolCallId, name, input), tool_result (toolCallId, output), summary or another "
		"word; an entry of type usage (input_tokens, output_tokens, model) goes to the token log.",
	 .input_schema = S_OBJ(S_SESSION AND S_AGENT AND S_LIST("entries", ENTRY, "in order"), "\"session\",\"entries\""),
	 .output_schema = S_OBJ(
		S_BARE("session", "string") AND
		S_LIST("ids", "{\"type\":\"string\"}", "of what was added"), "\"session\",\"ids\"")},
	{.name = "session_archive", .title = "Archive a session", .group = "sessions", .call = tool_session_archive,
	 .render = render_archive,
	 .description =
		"Writes what was said since the last archive to memory/conversations/, as Markdown and JSON.",
	 .input_schema = S_OBJ(
		S_SESSION AND S_AGENT AND
		S_STR("tag", "why (default manual)") AND
		S_STR("summary", "what it was about"), "\"session\""),
	 .output_schema = S_OBJ(
		S_BARE("conversation_id", "string") AND S_BARE("path", "string") AND S_BARE("messages", "integer"),
		"\"conversation_id\",\"path\",\"messages\"")},
	{.name = "session_state", .title = "State of a session", .group = "sessions", .call = tool_session_state,
	 .description =
		"Gives the snapshot that a runtime left for a session, with its version; with state it is replaced, "
		"with if_version only when it still has that version.",
	 .input_schema = S_OBJ(
		S_SESSION AND S_AGENT AND
		"\"state\":{\"type\":\"object\",\"description\":\"the new snapshot\"}" AND
		S_IF_VERSION, "\"session\""),
	 .output_schema = S_OBJ(
		S_BARE("session", "string") AND S_BARE("state", "object") AND S_BARE("version", "string"),
		"\"session\"")},
	{0},
};

static const struct tool agentscope[] = {
	{.name = "session_list", .title = "List sessions", .group = "sessions", .acts_as = "session_list", .traits = RO,
	 .call = scope_list, .description = "Lists the sessions of an agent.",
	 .input_schema = S_OBJ(S_STR("agentId", "the agent"), "")},
	{.name = "session_history", .title = "Session history", .group = "sessions", .acts_as = "session_history",
	 .traits = RO, .call = scope_history, .description = "Shows the last entries of a session.",
	 .input_schema = S_OBJ(
		S_STR("agentId", "the agent") AND
		S_STR("sessionId", "the session") AND
		S_INT1("lastN", "entries (default 20)"), "\"sessionId\"")},
	{.name = "session_search", .title = "Search sessions", .group = "sessions", .acts_as = "session_search",
	 .traits = RO | TOOL_LONG, .call = scope_search, .description = "Finds entries of sessions.",
	 .input_schema = S_OBJ(
		S_STR("query", "what to look for") AND
		S_STR("agentId", "only this agent") AND
		S_INT1("maxResults", "entries (default 10)"), "\"query\"")},
	{0},
};
static const struct tool openpaw[] = {
	{.name = "search_conversations", .title = "Search conversations", .group = "sessions", .acts_as = "session_search",
	 .traits = RO | TOOL_LONG, .call = paw_conversations,
	 .description = "Finds passages of archived conversations, best first.",
	 .input_schema = S_OBJ(
		S_STR("query", "what to look for") AND
		S_INT1("limit", "passages (default 5, at most 20)"), "\"query\"")},
	{0},
};
/* clang-format on */

const struct tool_group agentscope_session_tools = {agentscope, COUNT(agentscope)};
const struct tool_group openpaw_session_tools = {openpaw, COUNT(openpaw)};

const struct family sessions_family = {
	.name = "sessions",
	.tools = native,
	.search = sessions_sources,
	.commands = sessions_commands,
};
