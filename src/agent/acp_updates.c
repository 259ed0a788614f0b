/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client of the Agent Client Protocol sees of a turn: pieces of text, tool calls with their kind and place,
 * the to-do list as a plan; and the other way round, what it sends as a prompt.
 */
#include "agent/acp.h"
#include "base/clock.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"

#define TITLE_ARG   ((size_t)80)
#define SHOWN_MAX   ((size_t)20000) /* bytes of a result */
#define LOADED_MOST 1000            /* entries of a conversation that are sent again */

/* --- prompts --- */

static void add_resource(struct buf *text, const struct jv *block)
{
	const struct jv *resource = jv_get(block, "resource");

	if (jv_get_str(resource, "text").ptr)
		buf_printf(text, "\n<attached_file path=\"%.*s\">\n%.*s\n</attached_file>\n",
			   STR_ARG(jv_get_str(resource, "uri")), STR_ARG(jv_get_str(resource, "text")));
	else if (jv_get_str(block, "uri").len)
		buf_printf(text, "[%.*s](%.*s)", STR_ARG(jv_get_str(block, "name")), STR_ARG(jv_get_str(block, "uri")));
}

static struct jv *image(struct arena *arena, const struct jv *block)
{
	struct jv *v = jv_object(arena), *source = jv_object(arena);

	jv_set_str(arena, source, "type", STR("base64"));
	jv_set_str(arena, source, "media_type", jv_get_str(block, "mimeType"));
	jv_set_str(arena, source, "data", jv_get_str(block, "data"));
	jv_set_str(arena, v, "type", STR("image"));
	jv_set(arena, v, "source", source);
	return v;
}

int acp_prompt_read(struct arena *arena, const struct jv *prompt, struct str *ret_text, struct jv **ret_blocks,
		    struct err *err)
{
	struct jv *images = jv_array(arena);
	struct buf text;

	buf_init(&text, arena, JSON_LEN_MAX);
	for (const struct jv_member *m = jv_first(prompt); m; m = m->next) {
		struct str type = jv_get_str(m->value, "type");

		if (str_is(type, "text"))
			buf_add(&text, jv_get_str(m->value, "text"));
		else if (str_is(type, "image"))
			jv_push(arena, images, image(arena, m->value));
		else if (str_is(type, "resource") || str_is(type, "resource_link"))
			add_resource(&text, m->value);
		else
			return err_set(err, ERR_INVALID, "a block of type \"%.*s\" is not understood",
				       STR_ARG(utf8_first(type, 40)));
	}
	*ret_text = str_trim(buf_str(&text));
	if (!ret_text->len)
		return err_set(err, ERR_INVALID, "the prompt has no text");
	*ret_blocks = jv_count(images) ? images : NULL;
	return 0;
}

/* --- updates --- */

static struct jv *update_new(struct arena *arena, const char *kind)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "sessionUpdate", str_of(kind));
	return v;
}

static struct jv *text_block(struct arena *arena, struct str text)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "type", STR("text"));
	jv_set_str(arena, v, "text", text);
	return v;
}

void acp_send_text(struct acp_session *s, const char *kind, struct str text)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *update = update_new(arena, kind);

	jv_set(arena, update, "content", text_block(arena, text));
	acp_update(s, arena, update);
}

static const char *kind_of(struct str name)
{
	static const struct {
		const char *part, *kind;
	} kinds[] = {{"search", "search"}, {"grep", "search"}, {"glob", "search"},     {"read", "read"},
		     {"list", "read"},     {"ls", "read"},     {"fetch", "fetch"},     {"delete", "delete"},
		     {"clear", "delete"},  {"move", "move"},   {"execute", "execute"}, {"shell", "execute"},
		     {"todo", "think"},    {"plan", "think"},  {"write", "edit"},      {"edit", "edit"},
		     {"append", "edit"},   {"insert", "edit"}, {"copy", "edit"}};

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (str_find(name, str_of(kinds[i].part), 0) != SIZE_MAX)
			return kinds[i].kind;
	return "other";
}

static struct str path_in(const struct jv *input)
{
	struct str path = jv_get_str(input, "path");

	return path.len ? path : jv_get_str(input, "from");
}

static void set_call(struct acp_session *s, struct arena *arena, struct jv *v, const struct agent_event *event)
{
	struct str path = path_in(event->input), title = event->name;

	if (path.len)
		title = arena_printf(arena, "%.*s %.*s", STR_ARG(event->name), STR_ARG(utf8_first(path, TITLE_ARG)));
	jv_set_str(arena, v, "toolCallId", event->id);
	jv_set_str(arena, v, "title", title);
	jv_set_str(arena, v, "kind", str_of(kind_of(event->name)));
	if (event->input)
		jv_set(arena, v, "rawInput", (struct jv *)event->input);
	if (path.len) {
		struct jv *list = jv_array(arena), *place = jv_object(arena);

		jv_set_str(arena, place, "path",
			   path.ptr[0] == '/' && str_starts(path, s->cwd)
				   ? path
				   : arena_printf(arena, "%.*s/%.*s", STR_ARG(s->cwd),
						  STR_ARG(path.ptr[0] == '/' ? str_from(path, 1) : path)));
		jv_push(arena, list, place);
		jv_set(arena, v, "locations", list);
	}
}

static void send_plan(struct acp_session *s, struct arena *arena, const struct jv *input)
{
	struct jv *update = update_new(arena, "plan"), *entries = jv_array(arena);

	for (const struct jv_member *m = jv_first(jv_get(input, "todos")); m; m = m->next) {
		struct jv *entry = jv_object(arena);
		struct str priority = jv_get_str(m->value, "priority"), status = jv_get_str(m->value, "status");

		jv_set_str(arena, entry, "content", jv_get_str(m->value, "content"));
		jv_set_str(arena, entry, "priority", priority.len ? priority : STR("medium"));
		jv_set_str(arena, entry, "status", status.len ? status : STR("pending"));
		jv_push(arena, entries, entry);
	}
	jv_set(arena, update, "entries", entries);
	acp_update(s, arena, update);
}

static void send_call(struct acp_session *s, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *update = update_new(arena, "tool_call");

	set_call(s, arena, update, event);
	jv_set_str(arena, update, "status", STR("in_progress"));
	acp_update(s, arena, update);
	if (str_is(event->name, "todo_write"))
		send_plan(s, arena, event->input);
}

static void send_outcome(struct acp_session *s, struct str id, struct str text, bool is_error)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *update = update_new(arena, "tool_call_update"), *list = jv_array(arena), *item = jv_object(arena);

	jv_set_str(arena, item, "type", STR("content"));
	jv_set(arena, item, "content", text_block(arena, utf8_first(text, SHOWN_MAX)));
	jv_push(arena, list, item);
	jv_set_str(arena, update, "toolCallId", id);
	jv_set_str(arena, update, "status", is_error ? STR("failed") : STR("completed"));
	jv_set(arena, update, "content", list);
	acp_update(s, arena, update);
}

void acp_event(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct acp_session *s = arg;

	switch (event->kind) {
	case AGENT_TEXT:
		acp_send_text(s, "agent_message_chunk", event->text);
		break;
	case AGENT_THINKING:
		acp_send_text(s, "agent_thought_chunk", event->text);
		break;
	case AGENT_AGAIN:
		acp_send_text(s, "agent_thought_chunk",
			      arena_printf(arena, "\n(asked again: %.*s)\n", STR_ARG(event->text)));
		break;
	case AGENT_NOTE:
		acp_send_text(s, "agent_thought_chunk", arena_printf(arena, "\n(%.*s)\n", STR_ARG(event->text)));
		break;
	case AGENT_CALL:
		send_call(s, event);
		break;
	case AGENT_RESULT:
		send_outcome(s, event->id, event->text, event->is_error);
		break;
	case AGENT_ASK:
		break;
	}
}

static struct jv *choice(struct arena *arena, const char *id, const char *name)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "optionId", str_of(id));
	jv_set_str(arena, v, "name", str_of(name));
	jv_set_str(arena, v, "kind", str_of(id));
	return v;
}

enum agent_verdict acp_approve(void *arg, const struct agent_event *event, int64_t wait_ns)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct acp_session *s = arg;
	struct jv *params = jv_object(arena), *call = jv_object(arena), *options = jv_array(arena);
	const struct jv *outcome;

	set_call(s, arena, call, event);
	jv_set_str(arena, call, "status", STR("pending"));
	jv_push(arena, options, choice(arena, "allow_once", "Allow"));
	jv_push(arena, options, choice(arena, "reject_once", "Reject"));
	jv_set_str(arena, params, "sessionId", s->id);
	jv_set(arena, params, "toolCall", call);
	jv_set(arena, params, "options", options);
	outcome = jv_get(acp_ask(s, arena, "session/request_permission", params, wait_ns), "outcome");
	if (!str_is(jv_get_str(outcome, "outcome"), "selected"))
		return AGENT_LATER;
	return str_is(jv_get_str(outcome, "optionId"), "allow_once") ? AGENT_YES : AGENT_NO;
}

/* --- a conversation that was --- */

static void replay_calls(struct acp_session *s, const struct jv *content)
{
	for (const struct jv_member *b = jv_first(content); b; b = b->next) {
		struct str type = jv_get_str(b->value, "type");
		struct agent_event event = {.kind = AGENT_CALL,
					    .id = jv_get_str(b->value, "id"),
					    .name = jv_get_str(b->value, "name"),
					    .input = jv_get(b->value, "input")};

		if (str_is(type, "text"))
			acp_send_text(s, "agent_message_chunk", jv_get_str(b->value, "text"));
		else if (str_is(type, "thinking"))
			acp_send_text(s, "agent_thought_chunk", jv_get_str(b->value, "thinking"));
		else if (str_is(type, "tool_use"))
			send_call(s, &event);
	}
}

int acp_replay(struct acp_session *s, struct arena *arena, struct err *err)
{
	struct ctx ctx = {.arena = arena};
	struct session_ref ref = {workspace_actor(s->ws).agent, s->id};
	struct session_page page;
	int r = session_history(s->ws, &ctx, ref, 0, LOADED_MOST, false, &page, err);

	for (const struct jv_member *m = r ? NULL : jv_first(page.entries); m; m = m->next) {
		struct str type = jv_get_str(m->value, "type"), role = jv_get_str(m->value, "role");
		const struct jv *content = jv_get(m->value, "content");

		if (str_is(type, "tool_result"))
			send_outcome(s, jv_get_str(m->value, "toolCallId"), jv_get_str(m->value, "output"),
				     jv_get_bool(m->value, "is_error", false));
		else if (str_is(type, "message") && str_is(role, "user"))
			acp_send_text(s, "user_message_chunk", session_entry_text(arena, m->value));
		else if (str_is(type, "message") && content && content->type == JV_STR)
			acp_send_text(s, "agent_message_chunk", content->u.s);
		else if (str_is(type, "message"))
			replay_calls(s, content);
	}
	return r;
}

/* --- commands --- */

static int do_compact(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err)
{
	*ret = STR("The older part of the conversation is now a summary.");
	return agent_compact(s->agent, ctx, s->id, err);
}

static int do_new(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err)
{
	*ret = STR("A new conversation begins.");
	return agent_forget(s->agent, ctx, s->id, err);
}

static int do_undo(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err)
{
	struct jv *report;
	int r = agent_undo(s->agent, ctx, s->id, &report, err);

	*ret = STR("The last turn and its changes were taken back.");
	return r;
}

static int do_redo(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err)
{
	struct jv *report;
	int r = agent_redo(s->agent, ctx, s->id, &report, err);

	*ret = STR("The last undone turn and its changes are back.");
	return r;
}

static int do_status(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err)
{
	struct jv *v;
	int r = agent_status(s->agent, ctx, s->id, &v, err);

	if (r == 0)
		*ret = arena_printf(ctx->arena, "Model %.*s, %lld turn%s, about %lld of %lld tokens.",
				    STR_ARG(jv_get_str(v, "model")), (long long)jv_get_int(v, "turns", 0),
				    jv_get_int(v, "turns", 0) == 1 ? "" : "s", (long long)jv_get_int(v, "tokens", 0),
				    (long long)jv_get_int(v, "window", 0));
	return r;
}

static const struct {
	const char *name, *about;
	int (*run)(struct acp_session *s, struct ctx *ctx, struct str *ret, struct err *err);
} commands[] = {
	{"compact", "Replace the older part of the conversation with a summary", do_compact},
	{"new", "Start over; the conversation so far is archived", do_new},
	{"undo", "Take back the last turn and the changes of its calls", do_undo},
	{"redo", "Bring back the last undone turn", do_redo},
	{"status", "Show model, turns and tokens", do_status},
};

void acp_send_commands(struct acp_session *s)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct jv *update = update_new(arena, "available_commands_update"), *list = jv_array(arena);

	for (size_t i = 0; i < COUNT(commands); i++) {
		struct jv *v = jv_object(arena);

		jv_set_str(arena, v, "name", str_of(commands[i].name));
		jv_set_str(arena, v, "description", str_of(commands[i].about));
		jv_push(arena, list, v);
	}
	jv_set(arena, update, "availableCommands", list);
	acp_update(s, arena, update);
}

bool acp_command(struct acp_session *s, struct ctx *ctx, struct str line, struct err *err, int *ret)
{
	struct str says = STR_NONE;

	for (size_t i = 0; i < COUNT(commands); i++)
		if (str_starts(line, STR("/")) && str_is(str_from(line, 1), commands[i].name)) {
			*ret = commands[i].run(s, ctx, &says, err);
			if (*ret == 0)
				acp_send_text(s, "agent_message_chunk", says);
			return true;
		}
	return false;
}
