/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads as clients of Wacht know them: /ai/actor-project-threads/{thread}, and the same below /ai/threads/. A thread
 * is a lane of a board (thread_places.c finds it), its conversation is the session that has its id,
 * and its filesystem is what the dialect `wacht` shows to its agent as /workspace and /uploads.
 *
 * A run is answered before it has begun, as those clients expect; the messages and the thread's status tell how it
 * goes.
 */
#include "agent/agent.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/limits.h"
#include "home/sessions/sessions.h"
#include "server/server_internal.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     100
#define PAGE          200 /* entries that are looked at together */
#define FILES_MAX     20

static struct str thread_of(struct exchange *x)
{
	return percent_decode(x->arena, call_of(x)->thread);
}

static void set_missing(struct arena *arena, struct jv *v, const char *key, struct jv *value)
{
	if (!jv_get(v, key))
		jv_set(arena, v, key, value);
}

/* As serve.c reads it: a workspace, or one of its other boards. */
static struct str project_name(struct exchange *x)
{
	const struct web_call *call = call_of(x);

	if (!call->board.len || str_is(call->board, BOARD_DEFAULT))
		return call->workspace;
	return arena_printf(x->arena, "%.*s:%.*s", STR_ARG(call->workspace), STR_ARG(call->board));
}

struct jv *wacht_thread_view(struct exchange *x, const struct jv *thread)
{
	struct web_call *call = call_of(x);
	struct arena *arena = x->arena;
	struct jv *v = jv_copy(arena, thread);
	struct str purpose = jv_get_str(thread, "purpose");
	bool is_public = str_is(purpose, "conversation");

	jv_set_str(arena, v, "thread_purpose", purpose);
	jv_set_str(arena, v, "thread_kind", purpose);
	jv_set_str(arena, v, "thread_visibility", is_public ? STR("user_facing") : STR("internal"));
	jv_set_str(arena, v, "project_id", project_name(x));
	jv_set_str(arena, v, "actor_id", call->user.len ? call->user : STR(""));
	jv_set_str(arena, v, "deployment_id", STR(""));
	jv_set_int(arena, v, "next_event_sequence", 0);
	set_missing(arena, v, "metadata", jv_object(arena));
	set_missing(arena, v, "last_activity_at", jv_str(arena, jv_get_str(thread, "updated_at")));
	return v;
}

static void answer_thread(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct jv *thread;
	struct err err = {0};

	if (board_thread_get(call_of(x)->tenant->ws, &ctx, call_of(x)->board, thread_of(x), &thread, &err) != 0)
		answer_error(x, &err);
	else
		answer_json(x, 200, wacht_thread_view(x, thread));
}

void run_thread(struct exchange *x)
{
	answer_thread(x);
}

void run_thread_update(struct exchange *x)
{
	const struct jv *result;
	struct jv *args;
	struct err err = {0};

	if (body_fields(x, "update_thread", &args, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	jv_remove(args, "agent_id");
	jv_set_str(x->arena, args, "thread_id", thread_of(x));
	jv_set_str(x->arena, args, "board", call_of(x)->board);
	if (exchange_call_tool(x, "update_thread", args, &result))
		answer_thread(x);
}

/* --- files --- */

/* Both directories are there from the beginning, as far as a client can see. */
static void answer_top(struct exchange *x)
{
	struct store_entry top[] = {
		{.path = {STR("uploads")}, .stat = {.kind = STORE_DIR}},
		{.path = {STR("workspace")}, .stat = {.kind = STORE_DIR}},
	};
	struct file_list list = {.page = {.entries = top, .count = COUNT(top)}};

	answer_wacht_list(x, &list, jv_array(x->arena));
}

void run_thread_list(struct exchange *x)
{
	struct file_list list = {0};
	struct err err = {0};
	int r = exchange_list_files(x, &list, &err);

	if (r == -ERR_NOT_FOUND && str_find_char(list.path.s, '/') == list.path.s.len)
		r = 0;
	if (r)
		answer_error(x, &err);
	else if (wpath_is_root(list.path) && !list.req.recursive)
		answer_top(x);
	else
		answer_wacht_list(x, &list, jv_array(x->arena));
}

/* --- messages --- */

/* The time that a thread spent on an item. */
struct span {
	int64_t from_ns, to_ns;
};

struct search {
	struct str before_id, after_id;
	struct span *spans; /* NULL: any time counts */
	size_t span_count;
	size_t limit;
	struct jv **found; /* the newest first; one more than the limit */
	size_t count;
	bool is_before; /* before_id was passed, or there is none */
	bool is_over;   /* after_id was reached */
};

static bool in_spans(const struct search *s, const struct jv *entry)
{
	int64_t at;

	if (!s->spans)
		return true;
	if (!clock_parse(jv_get_str(entry, "timestamp"), &at))
		return false;
	for (size_t i = 0; i < s->span_count; i++)
		if (at >= s->spans[i].from_ns && at <= s->spans[i].to_ns)
			return true;
	return false;
}

/* Without after_id the newest are wanted, and with it the first that follow it. */
static void take_entry(struct search *s, struct jv *entry)
{
	struct str id = jv_get_str(entry, "id");

	if (s->after_id.len && str_eq(id, s->after_id)) {
		s->is_over = true;
	} else if (!s->is_before) {
		s->is_before = str_eq(id, s->before_id);
	} else if (in_spans(s, entry)) {
		if (s->count == s->limit + 1) {
			memmove(s->found, s->found + 1, s->limit * sizeof(*s->found));
			s->count--;
		}
		s->found[s->count++] = entry;
		s->is_over = !s->after_id.len && s->count == s->limit + 1;
	}
}

static int search_messages(struct exchange *x, struct search *s, struct err *err)
{
	struct session_ref ref = {.session = thread_of(x)};
	struct ctx ctx = exchange_ctx(x);
	struct session_page page = {0};
	int r;

	do {
		r = session_history(call_of(x)->tenant->ws, &ctx, ref, page.before, PAGE, true, &page, err);
		if (r == -ERR_NOT_FOUND) /* nothing was said yet */
			return 0;
		for (size_t i = r ? 0 : jv_count(page.entries); i-- && !s->is_over;)
			take_entry(s, (struct jv *)jv_at(page.entries, i));
	} while (r == 0 && page.before && !s->is_over);
	return r;
}

static struct jv *message_view(struct exchange *x, const struct jv *entry)
{
	struct arena *arena = x->arena;
	struct jv *v = jv_object(arena), *content = jv_object(arena), *metadata = jv_object(arena);
	bool is_user = str_is(jv_get_str(entry, "role"), "user");
	struct str when = jv_get_str(entry, "timestamp"), type = is_user ? STR("user_message") : STR("agent_response");

	jv_set_str(arena, content, "type", type);
	jv_set_str(arena, content, is_user ? "message" : "response", session_entry_text(arena, entry));
	jv_set_str(arena, metadata, "role", jv_get_str(entry, "role"));
	jv_set_str(arena, v, "id", jv_get_str(entry, "id"));
	jv_set_str(arena, v, "thread_id", thread_of(x));
	jv_set_str(arena, v, "timestamp", when);
	jv_set_str(arena, v, "message_type", type);
	jv_set(arena, v, "content", content);
	jv_set(arena, v, "metadata", metadata);
	jv_set_str(arena, v, "created_at", when);
	jv_set_str(arena, v, "updated_at", when);
	return v;
}

static int64_t time_of(const struct jv *assignment, const char *const *keys, int64_t fallback)
{
	int64_t at;

	for (; *keys; keys++)
		if (clock_parse(jv_get_str(assignment, *keys), &at))
			return at;
	return fallback;
}

/* What was said while the thread worked on the item belongs to it. */
static int find_spans(struct exchange *x, struct str item_id, struct search *s, struct err *err)
{
	static const char *const begins[] = {"claimed_at", "started_at", "created_at", NULL};
	static const char *const ends[] = {"completed_at", "rejected_at", NULL};
	struct ctx ctx = exchange_ctx(x);
	const struct jv *all;
	struct jv *item;
	int r = board_item_get(call_of(x)->tenant->ws, &ctx, (struct board_ref){call_of(x)->board, item_id}, &item,
			       err);

	if (r)
		return r;
	all = jv_get(item, "assignments");
	s->spans = ARENA_ARRAY(x->arena, struct span, jv_count(all) + 1);
	for (const struct jv_member *m = jv_first(all); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "thread_id"), thread_of(x)))
			s->spans[s->span_count++] =
				(struct span){time_of(m->value, begins, INT64_MAX), time_of(m->value, ends, INT64_MAX)};
	return 0;
}

static int search_of(struct exchange *x, struct search *ret, struct err *err)
{
	uint64_t limit = LIMIT_DEFAULT;
	struct str item_id = STR_NONE;
	bool found;
	int r = query_number(x->arena, x->query, "limit", LIMIT_MAX, &limit, err);

	*ret = (struct search){0};
	if (r == 0)
		r = query_get(x->arena, x->query, "before_id", &ret->before_id, &found, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "after_id", &ret->after_id, &found, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "board_item_id", &item_id, &found, err);
	if (r == 0 && item_id.len)
		r = find_spans(x, item_id, ret, err);
	ret->limit = limit ? (size_t)limit : 1;
	ret->found = ARENA_ARRAY(x->arena, struct jv *, ret->limit + 1);
	ret->is_before = !ret->before_id.len;
	return r;
}

void run_thread_messages(struct exchange *x)
{
	struct jv *v = jv_object(x->arena), *data = jv_array(x->arena);
	struct search s;
	struct err err = {0};
	size_t skipped;
	int r = search_of(x, &s, &err);

	if (r == 0)
		r = search_messages(x, &s, &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	/* the one beyond the limit is the oldest, or after after_id the newest */
	skipped = s.count > s.limit && s.after_id.len ? 1 : 0;
	for (size_t i = s.count > s.limit && !skipped ? s.limit : s.count; i-- > skipped;)
		jv_push(x->arena, data, message_view(x, s.found[i]));
	jv_set(x->arena, v, "data", data);
	jv_set_int(x->arena, v, "limit", (int64_t)s.limit);
	jv_set_bool(x->arena, v, "has_more", s.count > s.limit);
	answer_json(x, 200, v);
}

/* --- runs --- */

static int add_file(struct exchange *x, const struct jv *file, struct buf *text, struct err *err)
{
	struct ctx ctx = exchange_change_ctx(x);
	struct str name = jv_get_str(file, "name"), content = jv_get_str(file, "content"), path, bytes;
	struct source source = {0};
	int r;

	name = name.len ? name : jv_get_str(file, "filename");
	content = content.len ? content : jv_get_str(file, "data");
	if (!name.len || !base64_decode(x->arena, content, &bytes))
		return err_set(err, ERR_INVALID, "a file must be {\"name\", \"content\"}, with its bytes as base64");
	source.bytes = bytes.ptr ? bytes : STR("");
	r = board_thread_attach(call_of(x)->tenant->ws, &ctx, call_of(x)->board, thread_of(x), name, &source, &path,
				err);
	if (r == 0)
		buf_printf(text, "\n%.*s", STR_ARG(path));
	return r;
}

static void run_new_message(struct exchange *x, const struct jv *message)
{
	const struct jv *files = jv_get(message, "files");
	struct str said = str_trim(jv_get_str(message, "message"));
	struct buf text;
	struct err err = {0};
	int r = 0;

	files = files ? files : jv_get(message, "images");
	buf_init(&text, x->arena, HTTP_FORM_BODY_MAX);
	buf_add(&text, said);
	if (!said.len && !jv_count(files))
		r = err_set(&err, ERR_INVALID, "new_message needs a message");
	if (r == 0 && jv_count(files) > FILES_MAX)
		r = err_set(&err, ERR_TOO_LARGE, "a message may have at most %d files", FILES_MAX);
	if (r == 0 && turns_has(call_of(x)->serve->turns, call_of(x)->tenant, thread_of(x)))
		r = err_set(&err, ERR_CONFLICT, "the thread is running; wait until it is idle, or cancel it");
	if (r == 0 && jv_count(files))
		buf_lit(&text, "\n\nFiles of this message:");
	for (const struct jv_member *m = r ? NULL : jv_first(files); m && r == 0; m = m->next)
		r = add_file(x, m->value, &text, &err);
	if (r)
		answer_error(x, &err);
	else
		start_thread_turn(x, thread_of(x), str_trim(buf_str(&text)));
}

static bool is_approved(const struct jv *approvals, struct str tool)
{
	for (const struct jv_member *m = jv_first(approvals); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "tool_name"), tool))
			return str_starts(jv_get_str(m->value, "mode"), STR("allow"));
	return false;
}

/* A call whose tool is not in the answer is denied: it was asked for, and not granted. */
static void run_approval(struct exchange *x, const struct jv *answer)
{
	struct workspace *ws = call_of(x)->tenant->ws;
	struct ctx ctx = exchange_ctx(x);
	struct jv *waiting = NULL;
	struct err err = {0};
	int r = agent_approvals(ws, &ctx, STR_NONE, thread_of(x), &waiting, &err);

	if (r == 0 && !jv_count(waiting))
		r = err_set(&err, ERR_CONFLICT, "no call of the thread waits for approval");
	for (const struct jv_member *m = r ? NULL : jv_first(waiting); m && r == 0; m = m->next) {
		struct agent_decision decision = {
			.session = thread_of(x),
			.id = jv_get_str(m->value, "id"),
			.by = call_of(x)->user,
			.approves = is_approved(jv_get(answer, "approvals"), jv_get_str(m->value, "name"))};

		r = agent_decide(ws, &ctx, &decision, &err);
	}
	if (r)
		answer_error(x, &err);
	else
		start_thread_turn(x, thread_of(x), STR(""));
}

static void run_cancel(struct exchange *x)
{
	struct web_call *call = call_of(x);
	struct ctx ctx = exchange_ctx(x);
	struct jv *v = jv_object(x->arena), *thread;
	struct err err = {0};
	bool ran = false;
	int r = exchange_stop_turn(x, thread_of(x), &ran, &err);

	if (r == 0)
		r = board_thread_get(call->tenant->ws, &ctx, call->board, thread_of(x), &thread, &err);
	if (r == 0 && !ran && str_is(jv_get_str(thread, "status"), "running")) /* its server was killed */
		r = board_thread_note(call->tenant->ws, &ctx, call->board, thread_of(x), STR("interrupted"),
				      STR("the server that ran it ended"), &err);
	if (r) {
		answer_error(x, &err);
		return;
	}
	jv_set_str(x->arena, v, "status", ran ? STR("cancelled") : STR("idle"));
	answer_json(x, 200, v);
}

void run_thread_run(struct exchange *x)
{
	static const char *const names[] = {"new_message", "user_input_response", "approval_response", "cancel"};
	const struct jv *what, *given[COUNT(names)];
	struct jv *body;
	size_t count = 0;
	struct err err = {0};
	int r = body_json(x, &body, &err);

	what = r ? NULL : jv_get(body, "execution_type");
	what = what ? what : body;
	for (size_t i = 0; r == 0 && i < COUNT(names); i++) {
		given[i] = jv_get(what, names[i]);
		given[i] = jv_is_null(given[i]) ? NULL : given[i];
		count += given[i] != NULL;
	}
	if (r == 0 && count != 1)
		r = err_set(&err, ERR_INVALID,
			    "the body must be {\"execution_type\": {\"new_message\": {\"message\": \"…\"}}}, or has "
			    "approval_response or cancel instead of new_message");
	if (r)
		answer_error(x, &err);
	else if (given[0] || given[1])
		run_new_message(x, given[0] ? given[0] : given[1]);
	else if (given[2])
		run_approval(x, given[2]);
	else
		run_cancel(x);
}
