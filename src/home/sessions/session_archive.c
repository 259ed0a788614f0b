/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation as two files in memory/conversations/: JSON for programs, with times in UTC, and Markdown for people,
 * with times in their zone. The log is not
 * touched but for one line that says where the archive ends, so the next one begins there and nothing is archived
 * twice.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"

#define MESSAGES_MOST 100000

static struct str conversation_id(struct arena *arena)
{
	int64_t ns = clock_real_ns();
	struct str utc = clock_format_utc(arena, ns);
	char *id = (char *)arena_printf(arena, "conv_%.19s-%06lld", utc.ptr, (long long)(ns / 1000 % 1000000)).ptr;

	for (char *p = id; *p; p++)
		if (*p == ':')
			*p = '-';
	return str_of(id);
}

static struct str role_of(const struct jv *entry)
{
	struct str role = jv_get_str(entry, "role"), type = jv_get_str(entry, "type");

	if (str_is(role, "user") || str_is(role, "human"))
		return STR("human");
	if (str_is(role, "assistant") || str_is(role, "ai") || str_is(type, "tool_use"))
		return STR("ai");
	if (str_is(role, "tool") || str_is(type, "tool_result"))
		return STR("tool");
	return STR("unknown");
}

static struct jv *message(struct arena *arena, const struct jv *entry)
{
	struct jv *m = jv_object(arena), *calls = jv_null(arena), *one = jv_object(arena);
	bool is_call = str_is(jv_get_str(entry, "type"), "tool_use");
	struct str call_id = jv_get_str(entry, "toolCallId");

	if (is_call) {
		jv_set_str(arena, one, "name", jv_get_str(entry, "name"));
		jv_set(arena, one, "args",
		       jv_get(entry, "input") ? jv_copy(arena, jv_get(entry, "input")) : jv_object(arena));
		jv_set_str(arena, one, "id", call_id);
		calls = jv_array(arena);
		jv_push(arena, calls, one);
	}
	jv_set_str(arena, m, "timestamp", jv_get_str(entry, "timestamp"));
	jv_set_str(arena, m, "role", role_of(entry));
	jv_set_str(arena, m, "content", is_call ? STR("") : session_entry_text(arena, entry));
	jv_set(arena, m, "tool_calls", calls);
	jv_set(arena, m, "tool_call_id", !is_call && call_id.len ? jv_str(arena, call_id) : jv_null(arena));
	return m;
}

/* The messages after the last mark, in order. */
static struct jv *since_last(struct arena *arena, const struct jv *entries)
{
	struct jv *messages = jv_array(arena);

	for (const struct jv_member *m = jv_first(entries); m; m = m->next) {
		struct str type = jv_get_str(m->value, "type");

		if (str_is(type, "archive"))
			messages = jv_array(arena);
		else if (str_is(type, "message") || str_is(type, "tool_use") || str_is(type, "tool_result"))
			jv_push(arena, messages, message(arena, m->value));
	}
	return messages;
}

static void write_markdown(const struct workspace *ws, struct arena *arena, struct buf *out, const struct jv *c)
{
	const struct jv *messages = jv_get(c, "messages");
	static const struct {
		const char *label, *key;
	} lines[] = {{"ID", "conversation_id"},
		     {"Session", "session_key"},
		     {"Workspace", "workspace_name"},
		     {"Started", "started_at"},
		     {"Ended", "ended_at"}};

	buf_lit(out, "# Conversation\n\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct str value = jv_get_str(c, lines[i].key);

		if (str_ends(str_of(lines[i].key), STR("_at")))
			value = workspace_time_of(ws, arena, value);
		buf_printf(out, "**%s:** %.*s  \n", lines[i].label, STR_ARG(value));
	}
	buf_printf(out, "**Messages:** %zu\n", jv_count(messages));
	if (jv_get_str(c, "summary").len) {
		buf_lit(out, "\n## Summary\n\n");
		buf_add(out, jv_get_str(c, "summary"));
		buf_char(out, '\n');
	}
	for (const struct jv_member *m = jv_first(messages); m; m = m->next) {
		struct str role = jv_get_str(m->value, "role");
		const char *label = str_is(role, "human") ? "User" : str_is(role, "ai") ? "Agent" : "Tool";

		buf_printf(out, "\n---\n\n**%s** · %.*s\n\n", label,
			   STR_ARG(workspace_time_of(ws, arena, jv_get_str(m->value, "timestamp"))));
		buf_add(out, jv_get_str(m->value, "content"));
		if (jv_get_str(m->value, "content").len)
			buf_char(out, '\n');
		for (const struct jv_member *t = jv_first(jv_get(m->value, "tool_calls")); t; t = t->next) {
			buf_printf(out, "- `%.*s` ", STR_ARG(jv_get_str(t->value, "name")));
			jv_write(out, jv_get(t->value, "args"));
			buf_char(out, '\n');
		}
	}
}

static int write_files(struct workspace *ws, struct ctx *ctx, struct str id, const struct jv *conversation,
		       struct err *err)
{
	struct store_cond absent = {.kind = STORE_ABSENT};
	struct wpath json = {arena_printf(ctx->arena, "memory/conversations/%.*s.json", STR_ARG(id))};
	struct wpath markdown = {arena_printf(ctx->arena, "memory/conversations/%.*s.md", STR_ARG(id))};
	struct buf text;
	int r;

	buf_init(&text, ctx->arena, 4 * JSON_LEN_MAX);
	jv_write_pretty(&text, conversation);
	r = text.overflow ? err_set(err, ERR_TOO_LARGE, "the conversation is too long for one archive")
			  : store_write(workspace_home(ws), ctx, json, buf_str(&text), absent, NULL, err);
	if (r)
		return r;
	buf_clear(&text);
	write_markdown(ws, ctx->arena, &text, conversation);
	return store_write(workspace_home(ws), ctx, markdown, buf_str(&text), absent, NULL, err);
}

int session_archive(struct workspace *ws, struct ctx *ctx, struct session_ref ref, struct str tag, struct str summary,
		    struct jv **ret_report, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *c = jv_object(arena), *tags = jv_array(arena), *mark = jv_object(arena), *messages;
	struct str id = conversation_id(arena);
	struct session_page page;
	int r = session_history(ws, ctx, ref, 0, MESSAGES_MOST, false, &page, err);

	if (r)
		return r;
	messages = since_last(arena, page.entries);
	if (!jv_count(messages))
		return err_set(err, ERR_NOT_FOUND, "nothing was said in session \"%.*s\" since its last archive",
			       STR_ARG(utf8_first(ref.session, 60)));
	jv_push(arena, tags, jv_str(arena, tag.len ? tag : STR("manual")));
	jv_set_str(arena, c, "conversation_id", id);
	jv_set_str(arena, c, "session_key", ref.session);
	jv_set_str(arena, c, "workspace_name", workspace_name(ws));
	jv_set_str(arena, c, "started_at", jv_get_str(jv_at(messages, 0), "timestamp"));
	jv_set_str(arena, c, "ended_at", jv_get_str(jv_at(messages, jv_count(messages) - 1), "timestamp"));
	jv_set_int(arena, c, "message_count", (int64_t)jv_count(messages));
	jv_set(arena, c, "summary", summary.len ? jv_str(arena, summary) : jv_null(arena));
	jv_set(arena, c, "tags", tags);
	jv_set(arena, c, "messages", messages);
	r = write_files(ws, ctx, id, c, err);
	jv_set_str(arena, mark, "type", STR("archive"));
	jv_set_str(arena, mark, "conversation_id", id);
	if (r == 0)
		r = session_append(ws, ctx, ref, mark, NULL, err);
	*ret_report = jv_object(arena);
	jv_set_str(arena, *ret_report, "conversation_id", id);
	jv_set_str(arena, *ret_report, "path", arena_printf(arena, "memory/conversations/%.*s.md", STR_ARG(id)));
	jv_set_int(arena, *ret_report, "messages", (int64_t)jv_count(messages));
	return r;
}
