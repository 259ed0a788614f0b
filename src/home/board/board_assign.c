/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignments: who works on an item, one at a time. The item's own status follows from them: a running assignment makes
 * it in_progress, a waiting one available, and when none is left it is pending again and the coordinator's, who decides
 * what comes next. An item with an exclusive owner needs no decision: its last assignment completes it.
 */
#include "home/board/board_internal.h"
#include "tool/call.h"

#define DELEGATE_CHARS 80
#define DELEGATE_WORDS 14
#define TRIES          8

static bool has_status(const struct jv *assignment, const char *a, const char *b)
{
	struct str status = jv_get_str(assignment, "status");

	return str_is(status, a) || (b && str_is(status, b));
}

static struct jv *first_with(const struct jv *item, const char *a, const char *b)
{
	for (const struct jv_member *m = jv_first(jv_get(item, "assignments")); m; m = m->next)
		if (has_status(m->value, a, b))
			return m->value;
	return NULL;
}

void item_reconcile(struct arena *arena, struct jv *item, struct str coordinator)
{
	struct str status = jv_get_str(item, "status");
	struct jv *next = first_with(item, "claimed", "in_progress");
	const char *becomes = "in_progress";

	if (status_is_final(status) || str_is(status, "waiting_for_children"))
		return;
	if (!next) {
		becomes = "available";
		next = first_with(item, "available", NULL);
	}
	if (!next) {
		next = first_with(item, "pending", NULL);
		if (next)
			jv_set_str(arena, next, "status", STR("available"));
	}
	if (next) {
		jv_set_str(arena, item, "status", str_of(becomes));
		jv_set_str(arena, item, "assigned_thread_id", jv_get_str(next, "thread_id"));
		return;
	}
	if (str_is(status, "in_progress") || str_is(status, "available") || str_is(status, "claimed"))
		jv_set_str(arena, item, "status", STR("pending"));
	if (coordinator.len)
		jv_set_str(arena, item, "assigned_thread_id", coordinator);
	else
		jv_remove(item, "assigned_thread_id");
}

void item_preempt(struct arena *arena, struct jv *item, struct str coordinator, const char *reason)
{
	struct jv *routing = jv_object(arena);
	bool ran = false;

	if (status_is_final(jv_get_str(item, "status")))
		return;
	for (const struct jv_member *m = jv_first(jv_get(item, "assignments")); m; m = m->next) {
		if (!has_status(m->value, "claimed", "in_progress") && !has_status(m->value, "available", NULL))
			continue;
		ran = true;
		jv_set_str(arena, m->value, "status", STR("pending"));
		jv_set_str(arena, m->value, "preempted_at", board_now(arena));
	}
	jv_set_str(arena, routing, "reason", str_of(ran ? "assignment_preempted" : reason));
	jv_set_str(arena, routing, "cause", str_of(reason));
	jv_set_str(arena, routing, "at", board_now(arena));
	jv_set(arena, item, "routing", routing);
	if (ran || str_is(jv_get_str(item, "status"), "available"))
		jv_set_str(arena, item, "status", STR("pending"));
	if (coordinator.len)
		jv_set_str(arena, item, "assigned_thread_id", coordinator);
}

struct jv *assignment_find(const struct jv *item, struct str id, struct str thread_id)
{
	struct jv *found = NULL;

	for (const struct jv_member *m = jv_first(jv_get(item, "assignments")); m; m = m->next) {
		if (id.len ? str_eq(jv_get_str(m->value, "id"), id)
			   : str_eq(jv_get_str(m->value, "thread_id"), thread_id) &&
				     (!found || !jv_get(m->value, "result_status")))
			found = m->value;
	}
	return found;
}

/* --- assigning --- */

struct assigning {
	const struct jv *fields;
	struct str coordinator, id;
};

static int edit_assign(struct item_edit *e, struct jv *item, struct err *err)
{
	static const char *const names[] = {"thread_id", "role", "instructions", "handoff_file_path", NULL};
	struct assigning *a = e->arg;
	struct arena *arena = e->ctx->arena;
	struct jv *list = (struct jv *)jv_get(item, "assignments"), *v = jv_object(arena);

	if (!list) {
		list = jv_array(arena);
		jv_set(arena, item, "assignments", list);
	}
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "thread_id"), jv_get_str(a->fields, "thread_id")) &&
		    str_eq(jv_get_str(m->value, "instructions"), jv_get_str(a->fields, "instructions")) &&
		    !jv_get(m->value, "result_status")) { /* the same again is the same assignment */
			a->id = jv_get_str(m->value, "id");
			e->is_unchanged = true;
			return 0;
		}
	if (jv_count(list) >= BOARD_ASSIGNMENTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the item has %d assignments already; make another item",
			       BOARD_ASSIGNMENTS_MAX);
	jv_set_str(arena, v, "id", a->id);
	copy_members(arena, v, a->fields, names);
	if (!jv_get(v, "role"))
		jv_set_str(arena, v, "role", STR("executor"));
	jv_set_str(arena, v, "status", STR("pending"));
	jv_set_str(arena, v, "created_at", board_now(arena));
	jv_set_int(arena, v, "state_version", 1);
	jv_push(arena, list, v);
	if (status_is_final(jv_get_str(item, "status")) || str_is(jv_get_str(item, "status"), "blocked"))
		jv_set_str(arena, item, "status", STR("pending")); /* reopened */
	jv_remove(item, "completed_at");
	item_reconcile(arena, item, a->coordinator);
	return 0;
}

static struct jv *give(struct arena *arena, const struct jv *item, struct str id)
{
	struct jv *v = jv_object(arena), *assignment = assignment_find(item, id, STR(""));

	jv_set(arena, v, "item", item_view(arena, item));
	jv_set(arena, v, "assignment", assignment ? jv_copy(arena, assignment) : jv_null(arena));
	return v;
}

int item_assign(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields, struct jv **ret,
		struct err *err)
{
	struct assigning a = {.fields = fields, .id = board_id_new(ctx->arena)};
	struct item_edit e = {.edit = edit_assign, .arg = &a};
	struct jv *thread;
	int r = thread_get(ws, ctx, ref.board, jv_get_str(fields, "thread_id"), &thread, err);

	if (r == 0 && !jv_get_bool(thread, "accepts_assignments", true))
		r = err_set(err, ERR_CONFLICT, "the thread %.*s takes no assignments; list_threads shows those that do",
			    STR_ARG(jv_get_str(fields, "thread_id")));
	if (r == 0)
		r = board_name(ref.board, &ref.board, err);
	if (r)
		return r;
	a.coordinator = board_coordinator(ws, ctx, ref.board);
	r = item_edit(ws, ctx, ref, &e, err);
	if (r == 0)
		*ret = give(ctx->arena, e.item, a.id);
	return r;
}

/* --- progress and results --- */

struct progressing {
	const struct jv *fields;
	const struct handoff *handoff;
	const struct board_caller *caller;
	struct str coordinator, id;
	size_t journal;  /* the size of the journal now */
	bool is_refused; /* another try would not help */
};

static int edit_assignment(struct item_edit *e, struct jv *item, struct err *err)
{
	static const struct {
		const char *status, *time;
	} times[] = {{"claimed", "claimed_at"},
		     {"in_progress", "started_at"},
		     {"completed", "completed_at"},
		     {"rejected", "rejected_at"}};
	struct progressing *p = e->arg;
	struct arena *arena = e->ctx->arena;
	struct str status = jv_get_str(p->fields, "status");
	struct jv *v = assignment_find(item, p->id, STR("")), *value;

	if (!v)
		return err_set(err, ERR_NOT_FOUND,
			       "the assignment %.*s no longer exists; get_item shows the current ones", STR_ARG(p->id));
	p->is_refused = jv_get(v, "result_status") != NULL;
	if (p->is_refused)
		return err_set(err, ERR_CONFLICT, "the assignment %.*s has ended (%.*s); assign the item again",
			       STR_ARG(p->id), STR_ARG(jv_get_str(v, "status")));
	for (size_t i = 0; i < COUNT(times); i++)
		if (str_is(status, times[i].status))
			jv_set_str(arena, v, times[i].time, board_now(arena));
	jv_set_str(arena, v, "status", status);
	if (!jv_get(v, "journal_size"))
		jv_set_int(arena, v, "journal_size", (int64_t)p->journal);
	jv_set_int(arena, v, "state_version", jv_get_int(v, "state_version", 0) + 1);
	if (!str_is(status, "claimed") && !str_is(status, "in_progress") && !str_is(status, "available")) {
		struct str result = jv_get_str(p->fields, "result_status");

		jv_set_str(arena, v, "result_status", result.len ? result : status);
		jv_set_str(arena, v, "result_summary", p->handoff->summary);
		value = handoff_value(arena, p->handoff, p->caller, p->id);
		jv_set(arena, v, "result_payload", value);
		item_journal_queue(arena, item, p->handoff, p->caller->name.len ? p->caller->name : STR("agent"),
				   "assignment", p->id);
		if (str_is(status, "completed") && jv_get_str(item, "exclusive_owner_agent_id").len &&
		    !first_with(item, "pending", "available") && !first_with(item, "claimed", "in_progress")) {
			jv_push(arena, (struct jv *)jv_get(item, "deliverables"), jv_copy(arena, value));
			jv_set_str(arena, item, "status", STR("completed"));
			jv_set_str(arena, item, "completed_at", board_now(arena));
		}
	}
	item_reconcile(arena, item, p->coordinator);
	return 0;
}

static int update_once(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct progressing *p,
		       struct item_edit *e, struct err *err)
{
	struct handoff *h = ARENA_NEW(ctx->arena, struct handoff);
	struct str id = jv_get_str(p->fields, "assignment_id");
	struct jv *assignment;
	struct str journal;
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0)
		r = item_journal_read(ws, ctx, &item, &journal, err);
	if (r)
		return r;
	p->journal = journal.len;
	assignment = assignment_find(item.v, id, p->caller->thread_id);
	if (!assignment)
		return err_set(err, ERR_NOT_FOUND, "the item %.*s has no such assignment; get_item lists them",
			       STR_ARG(item_key(item.v)));
	if (p->caller->thread_id.len && !str_eq(jv_get_str(assignment, "thread_id"), p->caller->thread_id) &&
	    !str_is(p->caller->purpose, "coordinator") && !str_is(p->caller->purpose, "conversation"))
		return err_set(err, ERR_DENIED, "the assignment %.*s belongs to another lane; get_item shows yours",
			       STR_ARG(jv_get_str(assignment, "id")));
	p->id = jv_get_str(assignment, "id");
	p->coordinator = board_coordinator(ws, ctx, item.board);
	p->handoff = h;
	r = handoff_make(ws, ctx, &item, p->fields, h, err);
	e->cond = (struct store_cond){.kind = STORE_VERSION, .version = item.version};
	return r ? r : item_edit(ws, ctx, ref, e, err);
}

int assignment_update(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		      const struct board_caller *caller, struct jv **ret, struct err *err)
{
	struct progressing p = {.fields = fields, .caller = caller};
	struct item_edit e = {.edit = edit_assignment, .arg = &p};
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		p.handoff = NULL;
		r = update_once(ws, ctx, ref, &p, &e, err);
		if (r != -ERR_CONFLICT || !p.handoff || p.is_refused)
			break;
		r = ctx_check(ctx, err);
		if (r)
			break;
	}
	if (r == 0)
		*ret = give(ctx->arena, e.item, p.id);
	return r;
}

/* --- delegation --- */

int item_delegate(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
		  struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str about = str_trim(jv_get_str(fields, "description")), lane = jv_get_str(fields, "thread_id");
	struct jv *item_fields = jv_object(arena), *assign = jv_object(arena), *item, *thread, *done;
	size_t words = 0;
	struct str rest = about, word;
	int r;

	while (str_cut(&rest, ' ', &word))
		words += str_trim(word).len > 0;
	if (utf8_count(about) < DELEGATE_CHARS || words < DELEGATE_WORDS)
		return err_set(err, ERR_INVALID,
			       "the description of a delegated task must name its scope and its output, in at least %d "
			       "characters and %d words",
			       DELEGATE_CHARS, DELEGATE_WORDS);
	r = thread_get(ws, ctx, board, lane, &thread, err);
	if (r)
		return r;
	jv_set_str(arena, item_fields, "title", jv_get_str(fields, "title"));
	jv_set_str(arena, item_fields, "description", about);
	jv_set_bool(arena, item_fields, "delegated", true);
	if (jv_get_str(thread, "assigned_agent_name").len)
		jv_set_str(arena, item_fields, "exclusive_owner_agent_id", jv_get_str(thread, "assigned_agent_name"));
	r = board_item_create(ws, ctx, board, item_fields, &item, err);
	jv_set_str(arena, assign, "thread_id", lane);
	jv_set_str(arena, assign, "instructions", about);
	if (r == 0)
		r = item_assign(ws, ctx, (struct board_ref){board, jv_get_str(item, "id")}, assign, &done, err);
	if (r)
		return r;
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "task_key", item_key(item));
	jv_set_str(arena, *ret, "board_item_id", jv_get_str(item, "id"));
	jv_set_str(arena, *ret, "target_lane_thread_id", lane);
	jv_set_str(arena, *ret, "assigned_agent_id", jv_get_str(thread, "assigned_agent_name"));
	return 0;
}
