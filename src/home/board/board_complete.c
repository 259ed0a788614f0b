/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses, and what ends work. An item is completed by one conditional write of its record, on the version that all
 * was checked against: every artifact exists in the task, is a file, is not empty, and has the size and the SHA-256
 * that the deliverable states; the item's acceptance checks passed. If the record or an artifact changed in between,
 * everything is checked again. The journal entry is part of that write (board_journal.c).
 *
 * A refusal names the rule, so that a model can correct its call.
 */
#include "base/sha256.h"
#include "home/board/board_internal.h"
#include "tool/call.h"

#define SUMMARY_MIN 30
#define LINE_MOST   200
#define TRIES       8

static const char *const statuses[] = {
	"pending",  "available", "claimed",   "in_progress",         "completed", "blocked", "needs_clarification",
	"rejected", "failed",    "cancelled", "waiting_for_children"};
static const char *const finals[] = {"completed", "cancelled", "failed", "rejected"};
/* Those that need a summary. */
static const char *const told[] = {"completed", "failed", "blocked", "rejected", "needs_clarification"};

bool status_is_final(struct str status)
{
	return word_in(status, finals, COUNT(finals));
}

/* --- artifacts --- */

static int hash_push(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	sha256_add(arg, str_n(bytes, len));
	return 0;
}

/* {path, kind?, note?} or a path, with what is there: size, sha256, version. */
static int take_artifact(struct ctx *ctx, struct store *task, const struct jv *given, struct jv **ret, struct err *err)
{
	static const char *const names[] = {"kind", "note", NULL};
	struct arena *arena = ctx->arena;
	struct str text = given->type == JV_STR ? given->u.s : jv_get_str(given, "path"); /* no other type has one */
	struct sha256 hash;
	struct sink sink = {.push = hash_push, .arg = &hash};
	struct store_stat stat;
	struct wpath path;
	char hex[65];
	int r = board_task_path(arena, text, &path, err);

	if (r == 0 && wpath_is_root(path))
		r = err_set(err, ERR_INVALID, "an artifact needs a path, such as /task/artifacts/summary.md");
	sha256_begin(&hash);
	if (r == 0)
		r = store_stat(task, ctx, path, &stat, err);
	if (r == 0 && stat.kind == STORE_DIR)
		return err_set(err, ERR_INVALID, "the artifact /task/%.*s is a directory; name its files",
			       STR_ARG(path.s));
	if (r == 0)
		r = store_read_stream(task, ctx, path, STORE_WHOLE, &sink, &stat, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_INVALID,
			       "the artifact /task/%.*s does not exist; write it before the task is completed",
			       STR_ARG(path.s));
	if (r == 0 && stat.size == 0)
		return err_set(err, ERR_INVALID,
			       "the artifact /task/%.*s is empty; write it before the task is completed",
			       STR_ARG(path.s));
	if (r)
		return r;
	sha256_end(&hash, hex);
	*ret = jv_object(arena);
	jv_set_str(arena, *ret, "path", arena_printf(arena, "/task/%.*s", STR_ARG(path.s)));
	if (given->type == JV_OBJECT)
		copy_members(arena, *ret, given, names);
	jv_set_int(arena, *ret, "size_bytes", (int64_t)stat.size);
	jv_set_str(arena, *ret, "sha256", arena_str(arena, str_n(hex, 64)));
	jv_set_str(arena, *ret, "version", stat.version);
	return 0;
}

static int take_artifacts(struct ctx *ctx, struct store *task, const struct jv *given, struct jv **ret, struct err *err)
{
	struct jv *one = NULL;
	int r = 0;

	*ret = jv_array(ctx->arena);
	if (jv_count(given) > BOARD_ARTIFACTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "at most %d artifacts are possible; name the most important ones",
			       BOARD_ARTIFACTS_MAX);
	for (const struct jv_member *m = jv_first(given); m && r == 0; m = m->next) {
		r = take_artifact(ctx, task, m->value, &one, err);
		if (r == 0)
			jv_push(ctx->arena, *ret, one);
	}
	return r;
}

/* True when no artifact has changed since it was read. */
static bool are_unchanged(struct ctx *ctx, struct store *task, const struct jv *artifacts)
{
	for (const struct jv_member *m = jv_first(artifacts); m; m = m->next) {
		struct store_stat stat;
		struct wpath path;
		struct err ignored;

		if (board_task_path(ctx->arena, jv_get_str(m->value, "path"), &path, &ignored) != 0 ||
		    store_stat(task, ctx, path, &stat, &ignored) != 0 ||
		    !str_eq(stat.version, jv_get_str(m->value, "version")))
			return false;
	}
	return true;
}

/* --- handoffs --- */

static int take_line(const struct jv *fields, const char *name, struct str *ret, struct err *err)
{
	*ret = str_trim(jv_get_str(fields, name));
	if (utf8_count(*ret) > LINE_MOST || str_find_char(*ret, '\n') < ret->len)
		return err_set(err, ERR_INVALID, "%s must be one line of at most %d characters", name, LINE_MOST);
	return 0;
}

static int take_texts(const struct jv *fields, struct handoff *h, struct err *err)
{
	int r = take_line(fields, "findings", &h->findings, err);

	if (r == 0)
		r = take_line(fields, "cautions", &h->cautions, err);
	if (r == 0)
		r = take_line(fields, "next", &h->next, err);
	h->summary = str_trim(jv_get_str(fields, "result_summary"));
	if (r == 0 && word_in(h->status, told, COUNT(told)) && utf8_count(h->summary) < SUMMARY_MIN)
		r = err_set(
			err, ERR_INVALID,
			"the status %.*s needs a result_summary of at least %d characters that says what was achieved",
			STR_ARG(h->status), SUMMARY_MIN);
	if (r == 0 && str_is(h->status, "completed") && !jv_count(jv_get(fields, "artifacts")))
		r = err_set(err, ERR_INVALID,
			    "the status completed needs at least one artifact, such as "
			    "[{\"path\":\"/task/artifacts/summary.md\"}]");
	return r;
}

#define FAILED_TEXT_MAX 320 /* of an error's sentence */

static struct str failed_check(struct arena *arena, const struct jv *check)
{
	struct str command = jv_get_str(check, "command"), detail = jv_get_str(check, "detail");

	if (command.len)
		return arena_printf(arena, "`%.*s`: %.*s", STR_ARG(utf8_first(command, 100)),
				    STR_ARG(utf8_first(detail, 200)));
	return arena_printf(arena, "%.*s %.*s: %.*s", STR_ARG(utf8_first(jv_get_str(check, "path"), 120)),
			    STR_ARG(jv_get_str(check, "check")), STR_ARG(utf8_first(detail, 200)));
}

/* All of them, as far as there is room: who corrects one at a time tries as often as there are checks. */
static struct str failed_checks(struct arena *arena, const struct jv *checks)
{
	size_t left = 0;
	struct buf b;

	buf_init(&b, arena, KIB);
	for (const struct jv_member *m = jv_first(checks); m; m = m->next) {
		struct str one = jv_get_bool(m->value, "ok", false) ? STR("") : failed_check(arena, m->value);

		if (one.len && (left || b.len + one.len + 2 > FAILED_TEXT_MAX) && b.len)
			left++;
		else if (one.len)
			buf_printf(&b, "%s%.*s", b.len ? "; " : "", STR_ARG(utf8_first(one, FAILED_TEXT_MAX)));
	}
	if (left)
		buf_printf(&b, "; and %zu more", left);
	return b.ptr ? buf_str(&b) : STR("");
}

static int check_with(struct workspace *ws, struct ctx *ctx, const struct item *item, const struct jv *fields,
		      struct handoff *h, struct err *err)
{
	struct store *task;
	bool ok = true;
	int r = board_task_open(ws, ctx, (struct board_ref){item->board, item->id}, &task, err);

	if (r)
		return r;
	r = take_artifacts(ctx, task, jv_get(fields, "artifacts"), &h->artifacts, err);
	if (r == 0 && str_is(h->status, "completed"))
		r = checks_run(ws, ctx, task, item, &h->checks, &ok, err);
	if (r == 0 && !ok)
		r = err_set(err, ERR_INVALID, "the acceptance checks of %.*s failed; correct this and try again: %.*s",
			    STR_ARG(item_key(item->v)), STR_ARG(failed_checks(ctx->arena, h->checks)));
	if (r == 0 && !are_unchanged(ctx, task, h->artifacts))
		r = err_set(err, ERR_CONFLICT,
			    "an artifact changed while it was being checked; complete the item again");
	store_destroy(task);
	return r;
}

int handoff_make(struct workspace *ws, struct ctx *ctx, const struct item *item, const struct jv *fields,
		 struct handoff *ret, struct err *err)
{
	int r;

	*ret = (struct handoff){.status = jv_get_str(fields, "status"), .artifacts = jv_array(ctx->arena)};
	r = take_texts(fields, ret, err);
	if (r == 0 && (jv_count(jv_get(fields, "artifacts")) || jv_count(jv_get(item->v, "checks"))))
		r = check_with(ws, ctx, item, fields, ret, err);
	return r;
}

static void set_line(struct arena *arena, struct jv *v, const char *name, struct str text)
{
	if (text.len)
		jv_set_str(arena, v, name, text);
}

struct jv *handoff_value(struct arena *arena, const struct handoff *h, const struct board_caller *caller,
			 struct str assignment_id)
{
	struct jv *v = jv_object(arena);

	jv_set_str(arena, v, "id", board_id_new(arena));
	jv_set_str(arena, v, "at", board_now(arena));
	set_line(arena, v, "assignment_id", assignment_id);
	set_line(arena, v, "by_thread_id", caller->thread_id);
	set_line(arena, v, "by_agent_name", caller->name);
	jv_set_str(arena, v, "result_summary", h->summary);
	jv_set(arena, v, "artifacts", jv_copy(arena, h->artifacts));
	set_line(arena, v, "findings", h->findings);
	set_line(arena, v, "cautions", h->cautions);
	set_line(arena, v, "next", h->next);
	if (jv_count(h->checks))
		jv_set(arena, v, "checks", jv_copy(arena, h->checks));
	return v;
}

/* --- children --- */

int item_has_open_children(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, bool *ret,
			   struct err *err)
{
	*ret = false;
	for (const struct jv_member *m = jv_first(jv_get(item, "children")); m && !*ret; m = m->next) {
		struct item child;
		int r = item_load(ws, ctx, (struct board_ref){board, jv_str_of(m->value)}, &child, err);

		if (r == -ERR_NOT_FOUND) /* its making was cut off */
			continue;
		if (r)
			return r;
		*ret = !status_is_final(jv_get_str(child.v, "status"));
	}
	return 0;
}

static int wake(struct item_edit *e, struct jv *item, struct err *err)
{
	(void)err;
	e->is_unchanged = !str_is(jv_get_str(item, "status"), "waiting_for_children");
	if (!e->is_unchanged)
		jv_set_str(e->ctx->arena, item, "status", STR("pending"));
	return 0;
}

int item_wake(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct err *err)
{
	struct item_edit e = {.edit = wake};
	struct item item;
	bool open;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r || item.archived || !str_is(jv_get_str(item.v, "status"), "waiting_for_children"))
		return r;
	r = item_has_open_children(ws, ctx, item.board, item.v, &open, err);
	return r || open ? r : item_edit(ws, ctx, ref, &e, err);
}

/* --- changes of an item --- */

/* "Who may set which status": a lane that executes or reviews may not decide about the item. */
static int check_caller(const struct board_caller *caller, struct str status, struct err *err)
{
	bool reviews = str_is(caller->purpose, "review"), executes = str_is(caller->purpose, "execution");

	if (executes && !str_is(status, "blocked"))
		return err_set(err, ERR_DENIED,
			       "an execution lane can only set an item to blocked; end your assignment with "
			       "update_assignment, and the coordinator decides");
	if (reviews && !str_is(status, "rejected") && !str_is(status, "blocked") && !str_is(status, "failed"))
		return err_set(err, ERR_DENIED, "a review lane can only set an item to rejected, blocked or failed");
	return 0;
}

/* Those who do the work do not write the rules that it is judged by. */
static int check_lane(const struct board_caller *caller, const struct jv *fields, struct err *err)
{
	if ((jv_get(fields, "checks") || jv_get(fields, "mounts")) &&
	    (str_is(caller->purpose, "review") || str_is(caller->purpose, "execution")))
		return err_set(err, ERR_DENIED,
			       "only the coordinator changes the checks and mounts of an item; say in a comment what "
			       "should change");
	return 0;
}

static int check_transition(struct workspace *ws, struct ctx *ctx, const struct item *item, struct str status,
			    struct err *err)
{
	struct str now = jv_get_str(item->v, "status");
	bool open = false;
	int r = 0;

	if (!word_in(status, statuses, COUNT(statuses)))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a status of an item",
			       STR_ARG(utf8_first(status, 40)));
	if (status_is_final(now) && !str_is(status, "pending"))
		return err_set(err, ERR_CONFLICT, "the item %.*s is %.*s; it can only be reopened, with status pending",
			       STR_ARG(item_key(item->v)), STR_ARG(now));
	if (str_is(status, "completed") || str_is(status, "waiting_for_children"))
		r = item_has_open_children(ws, ctx, item->board, item->v, &open, err);
	if (r == 0 && open && str_is(status, "completed"))
		r = err_set(err, ERR_CONFLICT,
			    "the item %.*s has children that have not ended; set it to waiting_for_children",
			    STR_ARG(item_key(item->v)));
	if (r == 0 && !open && str_is(status, "waiting_for_children"))
		r = err_set(err, ERR_CONFLICT,
			    "the item %.*s has no children to wait for; create_item with child_of creates one",
			    STR_ARG(item_key(item->v)));
	return r;
}

struct updating {
	const struct jv *fields;
	const struct handoff *handoff; /* NULL: the status stays */
	const struct board_caller *caller;
	struct str coordinator;
};

static void end_assignments(struct arena *arena, struct jv *item)
{
	static const char *const open[] = {"pending", "available", "claimed", "in_progress"};

	for (const struct jv_member *m = jv_first(jv_get(item, "assignments")); m; m = m->next)
		if (word_in(jv_get_str(m->value, "status"), open, COUNT(open))) {
			jv_set_str(arena, m->value, "status", STR("cancelled"));
			jv_set_str(arena, m->value, "result_status", STR("cancelled"));
		}
}

static void set_status(struct arena *arena, struct jv *item, const struct updating *u)
{
	const struct handoff *h = u->handoff;
	struct jv *deliverables = (struct jv *)jv_get(item, "deliverables"), *v;

	jv_set_str(arena, item, "status", h->status);
	jv_remove(item, "completed_at");
	if (status_is_final(h->status))
		end_assignments(arena, item);
	if (word_in(h->status, told, COUNT(told)) || h->summary.len) {
		v = handoff_value(arena, h, u->caller, STR(""));
		item_journal_queue(arena, item, h, u->caller->name.len ? u->caller->name : STR("coordinator"),
				   "handoff", jv_get_str(v, "id"));
		if (str_is(h->status, "completed")) {
			if (!deliverables) {
				deliverables = jv_array(arena);
				jv_set(arena, item, "deliverables", deliverables);
			}
			jv_push(arena, deliverables, v);
			jv_set_str(arena, item, "completed_at", jv_get_str(v, "at"));
		} else {
			jv_set_str(arena, item, "status_summary", h->summary);
		}
	}
}

static int edit_item(struct item_edit *e, struct jv *item, struct err *err)
{
	static const char *const names[] = {"title", "description", "priority", "checks", "mounts", "metadata", NULL};
	const struct updating *u = e->arg;
	struct arena *arena = e->ctx->arena;
	bool by_person = !u->caller->thread_id.len;

	(void)err;
	copy_members(arena, item, u->fields, names);
	if (jv_get_bool(u->fields, "clear_schedule", false))
		schedule_clear(item);
	if (u->handoff)
		set_status(arena, item, u);
	else if (by_person && (jv_get(u->fields, "title") || jv_get(u->fields, "description")))
		item_preempt(arena, item, u->coordinator, "task_updated");
	return 0;
}

static bool same_artifacts(struct arena *arena, const struct jv *kept, const struct jv *given)
{
	const struct jv_member *k = jv_first(kept), *g = jv_first(given);

	for (; k && g; k = k->next, g = g->next) {
		struct str text = g->value->type == JV_STR ? g->value->u.s : jv_get_str(g->value, "path");
		struct wpath path;
		struct err ignored;

		if (board_task_path(arena, text, &path, &ignored) != 0 ||
		    !str_eq(jv_get_str(k->value, "path"), arena_printf(arena, "/task/%.*s", STR_ARG(path.s))))
			return false;
	}
	return !k && !g;
}

/* True: there is nothing to say about the status that the item has already, or it was said, by a request that is sent
   again. Anything else is another result, which must not be lost. */
static bool is_told(struct arena *arena, const struct jv *item, const struct jv *fields)
{
	const struct jv *artifacts = jv_get(fields, "artifacts"), *all = jv_get(item, "deliverables"), *last;
	struct str summary = str_trim(jv_get_str(fields, "result_summary"));

	if (!summary.len && !jv_count(artifacts))
		return true;
	if (!str_is(jv_get_str(item, "status"), "completed"))
		return str_eq(jv_get_str(item, "status_summary"), summary);
	last = jv_count(all) ? jv_at(all, jv_count(all) - 1) : NULL;
	return str_eq(jv_get_str(last, "result_summary"), summary) &&
	       same_artifacts(arena, jv_get(last, "artifacts"), artifacts);
}

static int update_once(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct updating *u,
		       struct item_edit *e, struct err *err)
{
	struct str status = jv_get_str(u->fields, "status");
	struct handoff *h = ARENA_NEW(ctx->arena, struct handoff);
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r)
		return r;
	if (status.len && !(str_eq(status, jv_get_str(item.v, "status")) && is_told(ctx->arena, item.v, u->fields))) {
		r = check_transition(ws, ctx, &item, status, err);
		if (r == 0)
			r = check_caller(u->caller, status, err);
		if (r == 0) {
			u->handoff = h; /* from here on a conflict is worth another try */
			r = handoff_make(ws, ctx, &item, u->fields, h, err);
		}
	}
	if (r == 0 && u->handoff)
		e->cond = (struct store_cond){.kind = STORE_VERSION, .version = item.version};
	u->coordinator = board_coordinator(ws, ctx, item.board);
	return r ? r : item_edit(ws, ctx, ref, e, err);
}

int board_item_update(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct jv *fields,
		      const struct board_caller *caller, struct jv **ret_item, struct err *err)
{
	struct updating u = {.fields = fields, .caller = caller};
	struct item_edit e = {.edit = edit_item, .arg = &u};
	struct str status = jv_get_str(fields, "status");
	int r = check_lane(caller, fields, err);

	if (r == 0)
		r = checks_validate(ws, jv_get(fields, "checks"), err);
	if (r == 0)
		r = mounts_validate(ws, ctx, jv_get(fields, "mounts"), err);
	for (int i = 0; r == 0 && i < TRIES; i++) {
		u.handoff = NULL;
		e.cond = (struct store_cond){0};
		r = update_once(ws, ctx, ref, &u, &e, err);
		if (r != -ERR_CONFLICT || !u.handoff || i == TRIES - 1)
			break;
		r = ctx_check(ctx, err);
	}
	if (r == 0 && jv_get_bool(fields, "clear_schedule", false))
		r = schedule_unmark(ws, ctx, e.id, err);
	if (r)
		return r;
	if (u.handoff && status_is_final(status) && jv_get_str(e.item, "child_of").len)
		r = item_wake(ws, ctx, (struct board_ref){e.board, jv_get_str(e.item, "child_of")}, err);
	if (u.handoff)
		notice_watchers(ws, ctx, e.board, e.item, arena_cstr(ctx->arena, status));
	if (r == -ERR_NOT_FOUND)
		r = 0;
	if (r == 0)
		*ret_item = item_view(ctx->arena, e.item);
	return r;
}
