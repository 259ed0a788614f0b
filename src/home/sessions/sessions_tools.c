/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools over sessions. An agent looks at what was said before (session_list, session_history, session_search). A
 * runtime other than Stead's writes its conversations here (session_append, session_state) and closes them
 * (session_archive).
 */
#include "home/sessions/sessions_tools.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "home/search/search.h"
#include "home/sessions/sessions.h"
#include "tool/call.h"
#include "tool/family.h"

#define LAST_DEFAULT 20
#define LAST_MOST    1000

static struct session_ref ref_of(const struct jv *args)
{
	return (struct session_ref){.agent = jv_get_str(args, "agent"), .session = jv_get_str(args, "session")};
}

/* What Stead's agent writes between the messages, in words; empty: nothing is known of such an entry. */
static struct str aside(struct arena *arena, const struct jv *entry)
{
	struct str type = jv_get_str(entry, "type"), status = jv_get_str(entry, "status");
	struct str error = jv_get_str(entry, "error");

	if (str_is(type, "request"))
		return arena_printf(arena, "%.*s, at revision %lld", STR_ARG(jv_get_str(entry, "model")),
				    (long long)jv_get_int(entry, "revision", 0));
	if (str_is(type, "turn"))
		return arena_printf(arena, "%.*s%s%.*s", STR_ARG(status), error.len ? ": " : "", STR_ARG(error));
	if (str_is(type, "approval") && str_is(status, "asked"))
		return arena_printf(arena, "asked for %.*s (%.*s)", STR_ARG(jv_get_str(entry, "name")),
				    STR_ARG(jv_get_str(entry, "rule")));
	if (str_is(type, "approval"))
		return arena_printf(arena, "%.*s by %.*s", STR_ARG(status), STR_ARG(jv_get_str(entry, "by")));
	if (str_is(type, "compaction"))
		return jv_get_str(entry, "summary").len ? jv_get_str(entry, "summary")
							: STR("the conversation begins again");
	if (str_is(type, "problem"))
		return jv_get_str(entry, "problem");
	if (str_is(type, "undone") || str_is(type, "redone"))
		return STR("the turn before");
	if (str_is(type, "archive"))
		return jv_get_str(entry, "conversation_id");
	return str_is(type, "message") ? STR("(tool calls)") : STR("");
}

void session_line(struct arena *arena, struct buf *text, const struct jv *entry, size_t most)
{
	struct str type = jv_get_str(entry, "type"), role = jv_get_str(entry, "role");
	struct str words = session_entry_text(arena, entry);

	if (!words.len)
		words = aside(arena, entry);
	buf_printf(text, "[%.*s]: ", STR_ARG(role.len ? role : type));
	buf_add(text, utf8_first(words, most));
	if (words.len > most)
		buf_printf(text, "… (%zu bytes more)", words.len - most);
}

int tool_session_list(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	static const char *const times[] = {"started_at", "last_active_at", NULL};
	struct arena *arena = call->ctx->arena;
	uint64_t limit = arg_count(args, "limit", 50, LAST_MOST), total;
	struct jv *list;
	int r = session_list(call->ws, call->ctx, jv_get_str(args, "agent"), limit, &list, &total, err);

	if (r)
		return r;
	workspace_times(call->ws, arena, list, times);
	ret->value = jv_object(arena);
	jv_set(arena, ret->value, "sessions", list);
	jv_set_int(arena, ret->value, "total", (int64_t)total);
	return 0;
}

static void render_sessions(const struct jv *args, const struct jv *value, struct buf *text)
{
	const struct jv *list = jv_get(value, "sessions");

	(void)args;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		buf_printf(text, "%.*s (%.*s, %lld message%s, last %.*s): %.*s\n",
			   STR_ARG(jv_get_str(m->value, "session")), STR_ARG(jv_get_str(m->value, "agent")),
			   (long long)jv_get_int(m->value, "messages", 0),
			   plural((uint64_t)jv_get_int(m->value, "messages", 0)),
			   STR_ARG(jv_get_str(m->value, "last_active_at")), STR_ARG(jv_get_str(m->value, "title")));
	buf_printf(text, "%lld session%s in all", (long long)jv_get_int(value, "total", 0),
		   plural((uint64_t)jv_get_int(value, "total", 0)));
}

int tool_session_history(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	uint64_t count = arg_count(args, "last", LAST_DEFAULT, LAST_MOST);
	int64_t before = 0;
	struct session_page page;
	int r;

	if (jv_get_str(args, "cursor").len && (!str_to_i64(jv_get_str(args, "cursor"), &before) || before <= 0))
		return err_set(err, ERR_INVALID,
			       "the cursor is not the next_cursor of a previous page; leave it out to start again");
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
		session_line(arena, text, m->value, SESSION_LINE_MAX);
		buf_char(text, '\n');
	}
	if (!jv_count(jv_get(value, "entries")))
		buf_lit(text, "there are no entries yet\n");
	if (jv_get(value, "next_cursor"))
		buf_printf(text, "[there are earlier entries; continue with cursor %.*s]\n",
			   STR_ARG(jv_get_str(value, "next_cursor")));
	text->len--;
}

/* A person's decision about a call is an entry of the log, and no tool may write one in their place. */
static int check_types(const struct jv *entries, struct err *err)
{
	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (str_eq_nocase(str_trim(jv_get_str(m->value, "type")), STR("approval")))
			return err_set(
				err, ERR_DENIED,
				"entries of type approval are written by people, with 'stead approvals' or over HTTP");
	return 0;
}

static int tool_session_append(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	const struct jv *list = jv_get(args, "entries");
	struct jv *ids = jv_array(arena), *entries = jv_array(arena), *written;
	int r = check_types(list, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (!str_is(jv_get_str(m->value, "type"), "usage"))
			jv_push(arena, entries, m->value);
	r = session_append_all(call->ws, call->ctx, ref_of(args), entries, &written, err);
	for (const struct jv_member *m = jv_first(list); m && !r; m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "usage"))
			r = usage_add(call->ws, call->ctx, ref_of(args), m->value, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(written); m; m = m->next)
		jv_push(arena, ids, jv_str(arena, jv_get_str(m->value, "id")));
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
	buf_printf(text, "archived %lld message%s as %.*s", (long long)jv_get_int(value, "messages", 0),
		   plural((uint64_t)jv_get_int(value, "messages", 0)), STR_ARG(jv_get_str(value, "path")));
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

int tool_session_search(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
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
		query.under = arena_printf(arena, "agents/%.*s", STR_ARG(workspace_encode_id(arena, agent)));
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

/* clang-format off */
#define SESSION \
	"session!: the session's id\n" \
	"agent: the session's agent (default: the agent that this workspace was opened for)\n"

static const struct tool native[] = {
	{
		.name = "session_list", .title = "List sessions", .traits = RO, .call = tool_session_list,
		.render = render_sessions,
		.description = "Lists conversations, newest first, with their size, times and first words.",
		.args =
			"agent: only sessions of this agent (default: all)\n"
			"limit int>=1: number of sessions (default 50, at most 1000)",
		.result =
			"sessions! [{agent!; session!; started_at; last_active_at; entries int; messages int; bytes int; title; "
			"summary}]: newest first\n"
			"total! int",
	},
	{
		.name = "session_history", .title = "Read a session", .traits = RO, .call = tool_session_history,
		.render = render_history,
		.description = "Reads the last entries of a conversation, in order. next_cursor leads to earlier ones.",
		.args =
			SESSION
			"last int>=1: number of entries (default 20, at most 1000)\n"
			"tools bool: include tool calls and their results (default true)\n"
			"cursor: next_cursor of the previous page",
		.result =
			"session!\n"
			"entries! [obj]: in order\n"
			"next_cursor; unreadable int",
	},
	{
		.name = "session_search", .title = "Search sessions", .traits = RO | TOOL_LONG,
		.call = tool_session_search, .render = render_hits,
		.description =
			"Finds what was said in any conversation, best first: any word may match, a \"quoted phrase\" must "
			"occur, and a -word must not.",
		.args =
			"query!: words\n"
			"agent: only sessions of this agent (default: all)\n"
			"role: only what this role said\n"
			"limit int>=1: number of hits (default 10, at most 100)",
		.result =
			"hits! [obj]: best first\n"
			"total! int; note",
	},
	{
		.name = "session_append", .title = "Write to a session", .call = tool_session_append,
		.render = render_append,
		.description =
			"Appends entries to a conversation's log. Each is an object with a type: message (role, content), "
			"tool_use (toolCallId, name, input), tool_result (toolCallId, output), summary, or another word. "
			"Entries of type usage (input_tokens, output_tokens, model) go to the token log instead.",
		.args =
			SESSION
			"entries! [{type! str>=1; ...}]: in order",
		.result =
			"session!\n"
			"ids! [str]: ids of the new entries",
	},
	{
		.name = "session_archive", .title = "Archive a session", .call = tool_session_archive,
		.render = render_archive,
		.description =
			"Writes what was said since the last archive to memory/conversations/, as Markdown and JSON.",
		.args =
			SESSION
			"tag: the reason (default manual)\n"
			"summary: what the conversation was about",
		.result = "conversation_id!; path!; messages! int",
	},
	{
		.name = "session_state", .title = "Read or write a session's state", .call = tool_session_state,
		.description =
			"Reads the state that a runtime saved for a session, with its version. With state, replaces it.",
		.args =
			SESSION
			"state obj: the new state\n"
			"if_version: replace the state only if it still has this version",
		.result = "session!; state obj; version",
	},
	{0},
};
/* clang-format on */

const struct family sessions_family = {
	.name = "sessions",
	.about = "Conversations: reading, searching and recording them.",
	.tools = native,
	.search = sessions_sources,
	.commands = sessions_commands,
};
