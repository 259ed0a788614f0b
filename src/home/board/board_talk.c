/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people and lanes say to each other: comments, questions with answers of a kind, approvals of tools, and notices.
 *
 * A question and an approval are part of the item's record, because the item waits for them. Comments and notices are
 * lines of files that only grow; that a comment is resolved, or a notice read, is another line. A comment of a person
 * takes the item from whoever works on it, so that the coordinator can decide what it means.
 */
#include "home/board/board_internal.h"

#include "base/clock.h"
#include "base/strmap.h"
#include "store/jsonl.h"

#define COMMENT_MAX (64 * KIB)
#define ANSWER_MAX  4000
#define KEPT_MAX    200 /* answers and approvals that the record keeps */
#define LOOK_MAX    10000

static struct wpath comments_path(struct arena *arena, struct str board, struct str id)
{
	return board_path(arena, board, "comments/%.*s.jsonl", STR_ARG(id));
}

static void push_kept(struct arena *arena, struct jv *item, const char *key, struct jv *value)
{
	struct jv *list = (struct jv *)jv_get(item, key), *left;

	if (!list) {
		list = jv_array(arena);
		jv_set(arena, item, key, list);
	}
	jv_push(arena, list, value);
	if (jv_count(list) <= KEPT_MAX)
		return;
	left = jv_array(arena);
	for (size_t i = jv_count(list) - KEPT_MAX; i < jv_count(list); i++)
		jv_push(arena, left, (struct jv *)jv_at(list, i));
	jv_set(arena, item, key, left);
}

/* A copy that borrows nothing of the line that it is from. */
static struct jv *keep_line(struct arena *arena, const struct jv *value)
{
	struct jv *v = jv_object(arena);
	struct buf text;
	struct err ignored;

	buf_init(&text, arena, JSON_LEN_MAX);
	jv_write(&text, value);
	if (!text.overflow)
		jv_parse(arena, buf_str(&text), &v, &ignored);
	return v;
}

/* --- comments --- */

static int edit_preempt(struct item_edit *e, struct jv *item, struct err *err)
{
	struct str *coordinator = e->arg;

	(void)err;
	item_preempt(e->ctx->arena, item, *coordinator, "user_feedback");
	jv_set_int(e->ctx->arena, item, "comment_count", jv_get_int(item, "comment_count", 0) + 1);
	return 0;
}

static int edit_count(struct item_edit *e, struct jv *item, struct err *err)
{
	(void)err;
	jv_set_int(e->ctx->arena, item, "comment_count", jv_get_int(item, "comment_count", 0) + 1);
	return 0;
}

int comment_add(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		const struct board_caller *caller, struct jv **ret, struct err *err)
{
	static const char *const names[] = {"metadata", NULL};
	struct arena *arena = ctx->arena;
	struct str body = str_trim(jv_get_str(fields, "body")), coordinator;
	struct item_edit e = {.edit = caller->thread_id.len ? edit_count : edit_preempt, .arg = &coordinator};
	struct jv *v = jv_object(arena);
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0 && (!body.len || body.len > COMMENT_MAX))
		r = err_set(err, ERR_INVALID, "a comment has 1 to %zu bytes", (size_t)COMMENT_MAX);
	if (r == 0 && item.archived)
		r = err_set(err, ERR_CONFLICT, "the item %.*s is archived; take it back with unarchive_item first",
			    STR_ARG(item_key(item.v)));
	if (r)
		return r;
	coordinator = board_coordinator(ws, ctx, item.board);
	jv_set_str(arena, v, "id", board_id_new(arena));
	jv_set_str(arena, v, "board_item_id", item.id);
	jv_set_str(arena, v, "created_at", board_now(arena));
	jv_set_str(arena, v, "author", caller->name.len ? caller->name : STR("user"));
	if (caller->thread_id.len)
		jv_set_str(arena, v, "thread_id", caller->thread_id);
	jv_set_str(arena, v, "body", body);
	copy_members(arena, v, fields, names);
	r = jsonl_append(workspace_home(ws), ctx, comments_path(arena, item.board, item.id), v, NULL, err);
	if (r == 0)
		r = item_edit(ws, ctx, (struct board_ref){item.board, item.id}, &e, err);
	if (r == 0)
		*ret = v;
	return r;
}

/* Comments by id, with what was said about them later. */
struct folding {
	struct arena *arena;
	struct strmap *resolved; /* index + 1 into `lines` */
	const struct jv **lines;
	size_t line_count, line_cap;
	struct jv *newest_first;
	struct str before; /* only those with smaller ids; empty: all */
	size_t limit;
	bool more;
};

static bool fold_line(void *arg, const struct jsonl_line *line)
{
	struct folding *f = arg;
	struct str about = jv_get_str(line->value, "resolves"), id = jv_get_str(line->value, "id");
	struct jv *v = keep_line(f->arena, line->value);
	size_t *said;

	if (about.len) {
		ARENA_ROOM(f->arena, f->lines, f->line_count, f->line_cap);
		f->lines[f->line_count++] = v;
		said = strmap_put(f->resolved, jv_get_str(v, "resolves"), NULL);
		if (!*said) /* the newest counts */
			*said = f->line_count;
		return true;
	}
	if (f->before.len && str_cmp(id, f->before) >= 0)
		return true;
	if (jv_count(f->newest_first) == f->limit) {
		f->more = true;
		return false;
	}
	said = strmap_find(f->resolved, jv_get_str(v, "id"));
	if (said) {
		static const char *const names[] = {"resolved_at", "resolved_by_thread_id", "resolution_summary", NULL};

		copy_members(f->arena, v, f->lines[*said - 1], names);
	}
	jv_push(f->arena, f->newest_first, v);
	return true;
}

static int read_comments(struct workspace *ws, struct ctx *ctx, const struct item *item, struct folding *f,
			 struct err *err)
{
	struct jsonl_back back = {.visit = fold_line, .arg = f};

	f->arena = ctx->arena;
	f->resolved = strmap_new(ctx->arena);
	f->newest_first = jv_array(ctx->arena);
	return jsonl_read_back(workspace_home(ws), ctx, comments_path(ctx->arena, item->board, item->id), &back, err);
}

int comment_list(struct workspace *ws, struct ctx *ctx, struct board_ref ref, size_t limit, struct str cursor,
		 struct jv **ret, struct err *err)
{
	struct folding f = {.before = cursor, .limit = limit};
	struct jv *list = jv_array(ctx->arena);
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = read_comments(ws, ctx, &item, &f, err);
	if (r)
		return r;
	for (size_t i = jv_count(f.newest_first); i > 0; i--)
		jv_push(ctx->arena, list, (struct jv *)jv_at(f.newest_first, i - 1));
	*ret = jv_object(ctx->arena);
	jv_set(ctx->arena, *ret, "comments", list);
	if (f.more)
		jv_set_str(ctx->arena, *ret, "next_cursor", jv_get_str(jv_at(list, 0), "id"));
	return 0;
}

int comment_resolve(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		    const struct board_caller *caller, struct jv **ret, struct err *err)
{
	static const char *const names[] = {"resolved_at", "resolved_by_thread_id", "resolution_summary", NULL};
	struct arena *arena = ctx->arena;
	struct str id = jv_get_str(fields, "comment_id"), summary = str_trim(jv_get_str(fields, "resolution_summary"));
	struct folding f = {.limit = LOOK_MAX};
	struct jv *line = jv_object(arena), *found = NULL;
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = read_comments(ws, ctx, &item, &f, err);
	if (r)
		return r;
	for (const struct jv_member *m = jv_first(f.newest_first); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "id"), id))
			found = m->value;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "the item %.*s has no comment \"%.*s\"; list_comments shows them",
			       STR_ARG(item_key(item.v)), STR_ARG(utf8_first(id, 40)));
	jv_set_str(arena, line, "resolves", id);
	jv_set_str(arena, line, "resolved_at", board_now(arena));
	if (caller->thread_id.len)
		jv_set_str(arena, line, "resolved_by_thread_id", caller->thread_id);
	jv_set_str(arena, line, "resolution_summary", summary);
	r = jsonl_append(workspace_home(ws), ctx, comments_path(arena, item.board, item.id), line, NULL, err);
	if (r)
		return r;
	copy_members(arena, found, line, names);
	*ret = found;
	return 0;
}

/* --- questions --- */

struct asking {
	const struct jv *fields;
	const struct board_caller *caller;
	struct jv *record;
};

static int edit_ask(struct item_edit *e, struct jv *item, struct err *err)
{
	const struct asking *a = e->arg;

	if (!jv_is_null(jv_get(item, "pending_question")))
		return err_set(err, ERR_CONFLICT, "the item %.*s is already waiting for another answer",
			       STR_ARG(item_key(item)));
	if (status_is_final(jv_get_str(item, "status")))
		return err_set(err, ERR_CONFLICT, "the item %.*s has ended", STR_ARG(item_key(item)));
	jv_set(e->ctx->arena, item, "pending_question", a->record);
	jv_set_str(e->ctx->arena, item, "status", STR("needs_clarification"));
	return 0;
}

static int take_questions(struct arena *arena, const struct jv *given, struct jv *to, struct err *err)
{
	for (const struct jv_member *m = jv_first(given); m; m = m->next) {
		struct jv *q = jv_copy(arena, m->value);
		struct str kind = jv_get_str(q, "kind");

		if (!kind.len)
			jv_set_str(arena, q, "kind", STR("free_text"));
		if ((str_is(kind, "single_choice") || str_is(kind, "multi_choice")) &&
		    jv_count(jv_get(q, "options")) < 2)
			return err_set(err, ERR_INVALID, "a question of kind %.*s needs at least two options",
				       STR_ARG(kind));
		if (!jv_get_str(q, "id").len)
			jv_set_str(arena, q, "id", arena_printf(arena, "q%zu", jv_count(to) + 1));
		jv_push(arena, to, q);
	}
	return jv_count(to) ? 0 : err_set(err, ERR_INVALID, "there is no question");
}

int question_ask(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		 const struct board_caller *caller, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct asking a = {.fields = fields, .caller = caller, .record = jv_object(arena)};
	struct item_edit e = {.edit = edit_ask, .arg = &a};
	struct jv *questions = jv_array(arena), *notice = jv_object(arena);
	int r = take_questions(arena, jv_get(fields, "questions"), questions, err);

	jv_set_str(arena, a.record, "id", board_id_new(arena));
	jv_set_str(arena, a.record, "at", board_now(arena));
	if (caller->thread_id.len)
		jv_set_str(arena, a.record, "thread_id", caller->thread_id);
	jv_set(arena, a.record, "questions", questions);
	if (r == 0)
		r = item_edit(ws, ctx, ref, &e, err);
	if (r)
		return r;
	jv_set_str(arena, notice, "kind", STR("question"));
	jv_set_str(arena, notice, "board_item_id", e.id);
	jv_set_str(arena, notice, "text", jv_get_str(jv_at(questions, 0), "text"));
	r = notice_add(ws, ctx, e.board, notice, err);
	if (r == 0)
		*ret = item_view(arena, e.item);
	return r;
}

static const struct jv *member_by_id(const struct jv *list, const char *key, struct str id)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_get_str(m->value, key), id))
			return m->value;
	return NULL;
}

static bool is_option(const struct jv *question, const struct jv *value)
{
	for (const struct jv_member *m = jv_first(jv_get(question, "options")); m; m = m->next)
		if (jv_equal(m->value, value))
			return true;
	return false;
}

static bool are_options(const struct jv *question, const struct jv *values)
{
	for (const struct jv_member *m = jv_first(values); m; m = m->next)
		if (!is_option(question, m->value))
			return false;
	return values && values->type == JV_ARRAY;
}

/* The value is what the kind of the question asks for: {kind, value} or the value itself. */
static bool value_fits(const struct jv *question, const struct jv *value)
{
	struct str kind = jv_get_str(question, "kind"), text;
	int64_t ns;

	if (value && value->type == JV_OBJECT)
		value = jv_get(value, "value");
	text = jv_str_of(value);
	if (!value)
		return false;
	if (str_is(kind, "single_choice"))
		return is_option(question, value);
	if (str_is(kind, "multi_choice"))
		return are_options(question, value);
	if (str_is(kind, "yes_no") || str_is(kind, "confirm"))
		return value->type == JV_BOOL;
	if (str_is(kind, "number"))
		return value->type == JV_INT || value->type == JV_REAL;
	if (str_is(kind, "date"))
		return clock_parse(text, &ns);
	return value->type == JV_STR && utf8_count(text) <= ANSWER_MAX;
}

static int check_answers(const struct jv *question, const struct jv *answers, struct err *err)
{
	const struct jv *questions = jv_get(question, "questions");

	for (const struct jv_member *m = jv_first(questions); m; m = m->next) {
		struct str id = jv_get_str(m->value, "id");
		const struct jv *answer = member_by_id(answers, "question_id", id);

		if (!answer)
			return err_set(err, ERR_INVALID, "the question \"%.*s\" has no answer", STR_ARG(id));
		if (!value_fits(m->value, jv_get(answer, "value")))
			return err_set(
				err, ERR_INVALID,
				"the answer to \"%.*s\" is not a %.*s (give options exactly as they are written)",
				STR_ARG(id), STR_ARG(jv_get_str(m->value, "kind")));
	}
	return 0;
}

static int edit_answer(struct item_edit *e, struct jv *item, struct err *err)
{
	static const char *const names[] = {"answers", "freeform_text", NULL};
	struct arena *arena = e->ctx->arena;
	const struct jv *fields = e->arg, *question = jv_get(item, "pending_question");
	struct str text = str_trim(jv_get_str(fields, "freeform_text"));
	struct jv *kept = jv_object(arena);
	int r = 0;

	if (jv_is_null(question))
		return err_set(err, ERR_CONFLICT, "the item %.*s is not waiting for an answer",
			       STR_ARG(item_key(item)));
	if (utf8_count(text) > ANSWER_MAX)
		return err_set(err, ERR_TOO_LARGE, "freeform_text has at most %d characters", ANSWER_MAX);
	if (!text.len)
		r = check_answers(question, jv_get(fields, "answers"), err);
	if (r)
		return r;
	jv_set_str(arena, kept, "at", board_now(arena));
	jv_set(arena, kept, "question", jv_copy(arena, question));
	copy_members(arena, kept, fields, names);
	push_kept(arena, item, "answers", kept);
	jv_remove(item, "pending_question");
	if (str_is(jv_get_str(item, "status"), "needs_clarification"))
		jv_set_str(arena, item, "status", STR("pending"));
	item_reconcile(arena, item, board_coordinator(e->ws, e->ctx, e->board));
	return 0;
}

int board_question_answer(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
			  struct jv **ret, struct err *err)
{
	struct item_edit e = {.edit = edit_answer, .arg = (void *)fields};
	int r = item_edit(ws, ctx, ref, &e, err);

	if (r == 0)
		*ret = item_view(ctx->arena, e.item);
	return r;
}

/* --- approvals --- */

static int edit_request(struct item_edit *e, struct jv *item, struct err *err)
{
	if (!jv_is_null(jv_get(item, "pending_approval")))
		return err_set(err, ERR_CONFLICT, "the item %.*s is already waiting for another approval",
			       STR_ARG(item_key(item)));
	jv_set(e->ctx->arena, item, "pending_approval", e->arg);
	return 0;
}

int approval_request(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		     const struct board_caller *caller, struct jv **ret, struct err *err)
{
	static const char *const names[] = {"message", "tools", NULL};
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct item_edit e = {.edit = edit_request, .arg = v};
	int r;

	jv_set_str(arena, v, "request_message_id", board_id_new(arena));
	jv_set_str(arena, v, "at", board_now(arena));
	if (caller->thread_id.len)
		jv_set_str(arena, v, "thread_id", caller->thread_id);
	copy_members(arena, v, fields, names);
	r = item_edit(ws, ctx, ref, &e, err);
	if (r == 0)
		*ret = item_view(arena, e.item);
	return r;
}

static int edit_approve(struct item_edit *e, struct jv *item, struct err *err)
{
	static const char *const names[] = {"approvals", NULL};
	struct arena *arena = e->ctx->arena;
	const struct jv *fields = e->arg, *wanted = jv_get(item, "pending_approval");
	struct jv *kept = jv_object(arena);

	if (jv_is_null(wanted))
		return err_set(err, ERR_CONFLICT, "the item %.*s is not waiting for an approval",
			       STR_ARG(item_key(item)));
	if (!str_eq(jv_get_str(wanted, "request_message_id"), jv_get_str(fields, "request_message_id")))
		return err_set(err, ERR_CONFLICT,
			       "the item %.*s is waiting for approval of the request %.*s, not of this one",
			       STR_ARG(item_key(item)), STR_ARG(jv_get_str(wanted, "request_message_id")));
	for (const struct jv_member *m = jv_first(jv_get(fields, "approvals")); m; m = m->next) {
		struct str name = jv_get_str(m->value, "tool_name");

		if (!member_by_id(jv_get(wanted, "tools"), "tool_name", name))
			return err_set(err, ERR_INVALID, "nobody asked for approval of the tool \"%.*s\"",
				       STR_ARG(utf8_first(name, 60)));
	}
	jv_set_str(arena, kept, "at", board_now(arena));
	jv_set(arena, kept, "request", jv_copy(arena, wanted));
	copy_members(arena, kept, fields, names);
	push_kept(arena, item, "approvals", kept);
	jv_remove(item, "pending_approval");
	return 0;
}

int board_approval_answer(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
			  struct jv **ret, struct err *err)
{
	struct item_edit e = {.edit = edit_approve, .arg = (void *)fields};
	int r = item_edit(ws, ctx, ref, &e, err);

	if (r == 0)
		*ret = item_view(ctx->arena, e.item);
	return r;
}

/* --- subscriptions and notices --- */

struct watching {
	struct str thread_id;
	const struct jv *events;
};

static int edit_watch(struct item_edit *e, struct jv *item, struct err *err)
{
	const struct watching *w = e->arg;
	struct arena *arena = e->ctx->arena;
	struct jv *left = jv_array(arena), *v = jv_object(arena);

	for (const struct jv_member *m = jv_first(jv_get(item, "subscriptions")); m; m = m->next)
		if (!str_eq(jv_get_str(m->value, "thread_id"), w->thread_id))
			jv_push(arena, left, jv_copy(arena, m->value));
	if (jv_count(left) >= BOARD_THREADS_MAX)
		return err_set(err, ERR_TOO_LARGE, "too many threads watch the item");
	jv_set_str(arena, v, "thread_id", w->thread_id);
	jv_set(arena, v, "events", jv_copy(arena, w->events));
	if (jv_count(w->events))
		jv_push(arena, left, v);
	jv_set(arena, item, "subscriptions", left);
	return 0;
}

int item_watch(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str thread_id,
	       const struct jv *events, struct jv **ret, struct err *err)
{
	struct watching w = {thread_id, events};
	struct item_edit e = {.edit = edit_watch, .arg = &w};
	struct jv *thread;
	int r = thread_get(ws, ctx, ref.board, thread_id, &thread, err);

	if (r == 0)
		r = item_edit(ws, ctx, ref, &e, err);
	if (r == 0)
		*ret = item_view(ctx->arena, e.item);
	return r;
}

int notice_add(struct workspace *ws, struct ctx *ctx, struct str board, struct jv *notice, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "id", board_id_new(arena));
	jv_set_str(arena, v, "created_at", board_now(arena));
	for (const struct jv_member *m = jv_first(notice); m; m = m->next)
		jv_set_key(arena, v, m->key, m->value);
	return jsonl_append(workspace_home(ws), ctx, board_path(arena, board, "notices.jsonl"), v, NULL, err);
}

void notice_watchers(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, const char *event)
{
	struct arena *arena = ctx->arena;
	struct err ignored;

	for (const struct jv_member *m = jv_first(jv_get(item, "subscriptions")); m; m = m->next) {
		struct jv *notice = jv_object(arena);
		bool wanted = false;

		for (const struct jv_member *k = jv_first(jv_get(m->value, "events")); k; k = k->next)
			wanted = wanted || str_is(jv_str_of(k->value), event);
		if (!wanted)
			continue;
		jv_set_str(arena, notice, "kind", STR("subscription"));
		jv_set_str(arena, notice, "event", str_of(event));
		jv_set_str(arena, notice, "thread_id", jv_get_str(m->value, "thread_id"));
		jv_set_str(arena, notice, "board_item_id", jv_get_str(item, "id"));
		jv_set_str(arena, notice, "text",
			   arena_printf(arena, "%.*s is %s: %.*s", STR_ARG(item_key(item)), event,
					STR_ARG(jv_get_str(item, "title"))));
		notice_add(ws, ctx, board, notice, &ignored);
	}
}

struct noticing {
	struct arena *arena;
	struct strmap *read;
	struct str thread_id, before;
	struct jv *list;
	size_t limit, looked;
	bool unread, more;
};

static bool fold_notice(void *arg, const struct jsonl_line *line)
{
	struct noticing *n = arg;
	struct jv *v;

	if (++n->looked > LOOK_MAX)
		return false;
	for (const struct jv_member *m = jv_first(jv_get(line->value, "read")); m; m = m->next)
		strmap_put(n->read, arena_str(n->arena, jv_str_of(m->value)), NULL);
	if (jv_get(line->value, "read") || !str_eq(jv_get_str(line->value, "thread_id"), n->thread_id) ||
	    (n->before.len && str_cmp(jv_get_str(line->value, "id"), n->before) >= 0))
		return true;
	v = keep_line(n->arena, line->value);
	jv_set_bool(n->arena, v, "is_read", strmap_find(n->read, jv_get_str(v, "id")) != NULL);
	if (n->unread && jv_get_bool(v, "is_read", false))
		return true;
	if (jv_count(n->list) == n->limit) {
		n->more = true;
		return false;
	}
	jv_push(n->arena, n->list, v);
	return true;
}

int notice_list(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *args, struct jv **ret,
		struct err *err)
{
	struct arena *arena = ctx->arena;
	struct noticing n = {.arena = arena,
			     .read = strmap_new(arena),
			     .thread_id = jv_get_str(args, "thread_id"),
			     .before = jv_get_str(args, "cursor"),
			     .list = jv_array(arena),
			     .limit = (size_t)jv_get_int(args, "limit", 50),
			     .unread = jv_get_bool(args, "unread", false)};
	struct jsonl_back back = {.visit = fold_notice, .arg = &n};
	int r = board_name(board, &board, err);

	if (r == 0)
		r = jsonl_read_back(workspace_home(ws), ctx, board_path(arena, board, "notices.jsonl"), &back, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set(arena, *ret, "notices", n.list);
	if (n.more)
		jv_set_str(arena, *ret, "next_cursor", jv_get_str(jv_at(n.list, jv_count(n.list) - 1), "id"));
	return 0;
}

int notice_mark(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *ids, struct jv **ret,
		struct err *err)
{
	struct jv *line = jv_object(ctx->arena);
	int r = board_name(board, &board, err);

	jv_set(ctx->arena, line, "read", jv_copy(ctx->arena, ids));
	jv_set_str(ctx->arena, line, "at", board_now(ctx->arena));
	if (r == 0)
		r = jsonl_append(workspace_home(ws), ctx, board_path(ctx->arena, board, "notices.jsonl"), line, NULL,
				 err);
	*ret = jv_object(ctx->arena);
	jv_set_int(ctx->arena, *ret, "marked", (int64_t)jv_count(ids));
	return r;
}
