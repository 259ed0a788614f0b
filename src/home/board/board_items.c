/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items: making, listing, changing and archiving them.
 *
 * What is made first decides what a crash can leave. A new item's TASK.md is written before its record, and a parent
 * names its child before the child is there: so an item that is seen is whole, and what a crash leaves is a directory
 * without a record (doctor reports it) or a name that is passed over.
 *
 * A list reads the directory of records, and of the records those that it gives or that it has to look into because of
 * a filter; a record that was read before and has the same version is not read again.
 */
#include "home/board/board_internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "home/board/board_state.h"
#include "home/uploads/uploads.h"
#include "revisions/revisions.h"
#include "workspace/workspace_parts.h"

#define ID_TRIES 8

static const char *const created_statuses[] = {"pending", "available", "blocked", "needs_clarification"};

/* --- new ones --- */

static int add_child(struct item_edit *e, struct jv *item, struct err *err)
{
	struct jv *children = (struct jv *)jv_get(item, "children");

	if (!children) {
		children = jv_array(e->ctx->arena);
		jv_set(e->ctx->arena, item, "children", children);
	}
	if (status_is_final(jv_get_str(item, "status")))
		return err_set(err, ERR_CONFLICT, "the parent %.*s is %.*s; reopen it (status pending) first",
			       STR_ARG(item_key(item)), STR_ARG(jv_get_str(item, "status")));
	if (jv_count(children) >= BOARD_CHILDREN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the parent has %d children already; use another parent",
			       BOARD_CHILDREN_MAX);
	jv_push(e->ctx->arena, children, jv_str(e->ctx->arena, *(struct str *)e->arg));
	return 0;
}

static struct jv *new_record(struct ctx *ctx, struct str board, struct str id, const struct jv *fields)
{
	static const char *const names[] = {
		"title", "description", "priority", "checks", "mounts", "metadata", "exclusive_owner_agent_id", NULL};
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct str status = jv_get_str(fields, "status"), now = board_now(arena);

	jv_set_str(arena, v, "id", id);
	jv_set_str(arena, v, "board_id", board);
	jv_set_str(arena, v, "task_key",
		   arena_printf(arena, "%s-%.*s", jv_get_bool(fields, "delegated", false) ? "DELEGATE" : "TASK",
				STR_ARG(id)));
	copy_members(arena, v, fields, names);
	jv_set_str(arena, v, "title", str_trim(jv_get_str(fields, "title")));
	jv_set_str(arena, v, "status", status.len ? status : STR("pending"));
	if (!jv_get(v, "priority"))
		jv_set_str(arena, v, "priority", STR("neutral"));
	if (!jv_get(v, "metadata"))
		jv_set(arena, v, "metadata", jv_object(arena));
	jv_set_str(arena, v, "created_at", now);
	jv_set_str(arena, v, "updated_at", now);
	jv_set_int(arena, v, "state_version", 1);
	jv_set(arena, v, "assignments", jv_array(arena));
	jv_set(arena, v, "deliverables", jv_array(arena));
	return v;
}

static int write_brief(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, struct err *err)
{
	struct wpath path = board_path(ctx->arena, board, "tasks/%.*s/TASK.md", STR_ARG(item_key(item)));
	struct str about = str_trim(jv_get_str(item, "description"));
	struct str text = arena_printf(ctx->arena, "# %.*s\n%s%.*s%s", STR_ARG(jv_get_str(item, "title")),
				       about.len ? "\n" : "", STR_ARG(about), about.len ? "\n" : "");
	int r = store_write(workspace_home(ws), ctx, path, text, (struct store_cond){.kind = STORE_ABSENT}, NULL, err);

	return r == -ERR_EXISTS ? 0 : r;
}

static int check_fields(struct workspace *ws, struct ctx *ctx, const struct jv *fields, struct err *err)
{
	struct str status = jv_get_str(fields, "status");
	int r = checks_validate(ws, jv_get(fields, "checks"), err);

	if (r == 0)
		r = mounts_validate(ws, ctx, jv_get(fields, "mounts"), err);
	if (r == 0 && !str_trim(jv_get_str(fields, "title")).len)
		r = err_set(err, ERR_INVALID, "an item needs a title; say in one line what to do");
	if (r == 0 && status.len && !word_in(status, created_statuses, COUNT(created_statuses)))
		r = err_set(err, ERR_INVALID,
			    "a new item cannot have the status \"%.*s\"; create it and then change its status",
			    STR_ARG(utf8_first(status, 40)));
	return r;
}

/* The brief, the mark of a schedule, and then the record, which shows it. */
static int put_record(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *record, struct err *err)
{
	struct wpath path = board_path(ctx->arena, board, "items/%.*s.json", STR_ARG(jv_get_str(record, "id")));
	struct buf text;
	int r = write_brief(ws, ctx, board, record, err);

	buf_init(&text, ctx->arena, BOARD_RECORD_MAX);
	jv_write_pretty(&text, record);
	if (r == 0 && text.overflow)
		r = err_set(err, ERR_TOO_LARGE, "the item is too large; keep long texts in files of the task");
	if (r == 0)
		r = schedule_mark(ws, ctx, board, record, err);
	return r ? r
		 : store_write(workspace_home(ws), ctx, path, buf_str(&text), (struct store_cond){.kind = STORE_ABSENT},
			       NULL, err);
}

int board_item_create(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields,
		      struct jv **ret_item, struct err *err)
{
	struct str parent = jv_get_str(fields, "child_of"), id = STR("");
	struct item_edit e = {.edit = add_child, .arg = &id};
	struct jv *record = NULL;
	int r = board_name(board, &board, err);

	if (r == 0)
		r = check_fields(ws, ctx, fields, err);
	for (int i = 0; r == 0 && i < ID_TRIES; i++) {
		id = board_id_new(ctx->arena);
		record = new_record(ctx, board, id, fields);
		r = schedule_fields(ctx->arena, fields, record, err);
		if (r == 0 && parent.len && i == 0)
			r = item_edit(ws, ctx, (struct board_ref){board, parent}, &e, err);
		if (parent.len)
			jv_set_str(ctx->arena, record, "child_of", e.id);
		if (r == 0)
			r = put_record(ws, ctx, board, record, err);
		if (r != -ERR_EXISTS || parent.len)
			break;
		r = 0;
	}
	if (r == 0)
		*ret_item = item_view(ctx->arena, record);
	return r;
}

int item_follow(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *item, struct err *err)
{
	static const char *const names[] = {"schedule_id", "schedule_kind", "interval_seconds", "overlap", NULL};
	struct str id = jv_get_str(item, "next_item");
	struct jv *record = new_record(ctx, board, id, item);
	struct wpath archived = board_path(ctx->arena, board, "archive/%.*s.json", STR_ARG(id));
	int r = store_stat(workspace_home(ws), ctx, archived, NULL, err);

	if (r != -ERR_NOT_FOUND)
		return r;
	jv_set_str(ctx->arena, record, "status", STR("pending"));
	copy_members(ctx->arena, record, item, names);
	jv_set_str(ctx->arena, record, "scheduled_for", jv_get_str(item, "next_run_at"));
	jv_set_str(ctx->arena, record, "follows", jv_get_str(item, "id"));
	r = put_record(ws, ctx, board, record, err);
	return r == -ERR_EXISTS ? 0 : r;
}

int board_item_get(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item, struct err *err)
{
	struct item item;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0 && str_is(jv_get_str(item.v, "status"), "waiting_for_children")) {
		r = item_wake(ws, ctx, ref, err);
		if (r == 0)
			r = item_load(ws, ctx, ref, &item, err);
	}
	if (r == 0)
		*ret_item = item_view(ctx->arena, item.v);
	return r;
}

/* --- lists --- */

/* The record of a list's entry, from what is kept when its version is the same. */
static int read_entry(struct workspace *ws, struct ctx *ctx, struct board_state *state, const struct store_entry *entry,
		      struct jv **ret, struct err *err)
{
	struct str text = board_state_find(state, ctx->arena, entry->path.s, entry->stat.version), version;
	struct buf line;
	int r;

	if (text.len)
		return jv_parse(ctx->arena, text, ret, err);
	r = record_read(ws, ctx, entry->path, ret, &version, err);
	if (r)
		return r;
	*ret = item_line(ctx->arena, *ret);
	buf_init(&line, ctx->arena, BOARD_RECORD_MAX);
	jv_write(&line, *ret);
	if (!line.overflow)
		board_state_keep(state, entry->path.s, version, buf_str(&line));
	return 0;
}

static bool is_wanted(const struct board_list *list, const struct jv *item)
{
	return schedule_waits(item) == list->scheduled &&
	       (!list->status.len || str_eq(jv_get_str(item, "status"), list->status)) &&
	       (!list->thread_id.len || str_eq(jv_get_str(item, "assigned_thread_id"), list->thread_id)) &&
	       (!list->child_of.len || str_eq(jv_get_str(item, "child_of"), list->child_of));
}

/* All names of the directory; `ret` is in the order of lists, the oldest first. */
static int list_names(struct workspace *ws, struct ctx *ctx, struct wpath dir, struct store_entry **ret,
		      size_t *ret_count, struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	size_t count = 0, cap = 0;
	struct store_entry *all = NULL;
	int r;

	do {
		r = store_list(workspace_home(ws), ctx, dir, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct str name = wpath_name(page.entries[i].path);

			if (name.len < 6 || !board_is_id(str_first(name, name.len - 5)))
				continue;
			ARENA_ROOM(ctx->arena, all, count, cap);
			all[count++] = page.entries[i];
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	*ret = all;
	*ret_count = count;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int board_item_list(struct workspace *ws, struct ctx *ctx, const struct board_list *list, struct jv **ret,
		    struct err *err)
{
	struct board_state *state = family_state(&board_family, ws);
	struct arena *arena = ctx->arena;
	struct jv *items = jv_array(arena), *item;
	struct store_entry *all = NULL;
	size_t count = 0, i;
	struct str board;
	struct err ignored;
	int64_t next_ns;
	int r = board_name(list->board, &board, err);

	if (r == 0 && !list->archived)
		board_fire(ws, ctx, clock_real_ns(), &next_ns, &ignored); /* who cannot write sees them later */
	if (r == 0)
		r = list_names(ws, ctx, board_path(arena, board, "%s", list->archived ? "archive" : "items"), &all,
			       &count, err);
	*ret = jv_object(arena);
	for (i = count; r == 0 && i > 0 && jv_count(items) < list->limit; i--) {
		struct str id = str_first(wpath_name(all[i - 1].path), 19);

		if (list->cursor.len && str_cmp(id, list->cursor) >= 0)
			continue;
		r = read_entry(ws, ctx, state, &all[i - 1], &item, err);
		if (r == 0 && is_wanted(list, item))
			jv_push(arena, items, item);
		if (r == -ERR_NOT_FOUND) /* archived since */
			r = 0;
	}
	if (r == 0 && !count) /* a name that is misspelt has no items either */
		r = board_get(ws, ctx, board, &item, err);
	if (r)
		return r;
	jv_set(arena, *ret, "items", items);
	jv_set_int(arena, *ret, "total", (int64_t)count);
	if (i > 0 && jv_count(items))
		jv_set_str(arena, *ret, "next_cursor", str_first(wpath_name(all[i].path), 19));
	return 0;
}

/* --- the archive --- */

static int mark_archived(struct item_edit *e, struct jv *item, struct err *err)
{
	uint64_t head;
	int r = revisions_head(workspace_shared(e->ws), e->ctx, &head, err);

	if (r == 0 && str_is(jv_get_str(item, "status"), "in_progress"))
		return err_set(err, ERR_CONFLICT, "the item %.*s is in progress; cancel or complete it first",
			       STR_ARG(item_key(item)));
	if (r)
		return r;
	jv_set_str(e->ctx->arena, item, "archived_at", board_now(e->ctx->arena));
	jv_set_int(e->ctx->arena, item, "archive_revision", (int64_t)head);
	jv_remove(item, "subscriptions");
	return 0;
}

int board_item_archive(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item,
		       struct err *err)
{
	struct item_edit e = {.edit = mark_archived};
	struct store *home = workspace_home(ws);
	struct wpath from, to, dir;
	int r = item_edit(ws, ctx, ref, &e, err);

	if (r)
		return r;
	from = board_path(ctx->arena, e.board, "items/%.*s.json", STR_ARG(e.id));
	to = board_path(ctx->arena, e.board, "archive/%.*s.json", STR_ARG(e.id));
	dir = board_path(ctx->arena, e.board, "tasks/%.*s", STR_ARG(item_key(e.item)));
	r = store_move(home, ctx, from, to, (struct store_cond){0}, (struct store_cond){.kind = STORE_ABSENT}, NULL,
		       err);
	if (r == 0)
		r = store_remove(home, ctx, dir, true, (struct store_cond){0}, NULL, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	*ret_item = item_view(ctx->arena, e.item);
	return 0;
}

/* Writes the files of the item as they were; those that are already there stay. */
static int bring_back(struct workspace *ws, struct ctx *ctx, struct wpath dir, uint64_t number, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store *shared = store_at_revision_new(workspace_shared(ws), number);
	struct store *then = store_prefix_new(shared, workspace_part(ws));
	struct store_page page = {0};
	struct store_stat stat;
	int r;

	do {
		r = store_list(then, ctx, dir, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			r = store_copy_between(then, ctx, page.entries[i].path, workspace_home(ws),
					       page.entries[i].path, (struct store_cond){.kind = STORE_ABSENT}, &stat,
					       err);
			if (r == -ERR_EXISTS)
				r = 0;
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	store_destroy(then);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "the item's files are no longer in the workspace's history, so it cannot be taken back");
	return r;
}

static int mark_taken_back(struct record_edit *e, struct jv *record, bool is_new, struct err *err)
{
	(void)is_new;
	(void)err;
	jv_remove(record, "archived_at");
	jv_remove(record, "archive_revision");
	jv_set_str(e->ctx->arena, record, "updated_at", board_now(e->ctx->arena));
	jv_set_int(e->ctx->arena, record, "state_version", jv_get_int(record, "state_version", 0) + 1);
	return 0;
}

int board_item_unarchive(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct jv **ret_item,
			 struct err *err)
{
	struct record_edit e = {.edit = mark_taken_back};
	struct item item;
	struct wpath from, to;
	int r = item_load(ws, ctx, ref, &item, err);

	if (r == 0 && !item.archived)
		r = err_set(err, ERR_CONFLICT, "the item %.*s is not archived", STR_ARG(item_key(item.v)));
	if (r == 0)
		r = bring_back(ws, ctx, board_path(ctx->arena, item.board, "tasks/%.*s", STR_ARG(item_key(item.v))),
			       (uint64_t)jv_get_int(item.v, "archive_revision", 0), err);
	if (r)
		return r;
	from = board_path(ctx->arena, item.board, "archive/%.*s.json", STR_ARG(item.id));
	to = board_path(ctx->arena, item.board, "items/%.*s.json", STR_ARG(item.id));
	r = store_move(workspace_home(ws), ctx, from, to, (struct store_cond){0},
		       (struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	if (r == 0)
		r = record_edit(ws, ctx, to, &e, err);
	if (r == 0)
		*ret_item = item_view(ctx->arena, e.record);
	return r;
}

/* --- attachments --- */

struct str attachment_name(struct arena *arena, struct str name)
{
	struct str last = str_from(name, str_rfind_char(name, '/') == name.len ? 0 : str_rfind_char(name, '/') + 1);
	char *text;

	last = utf8_first(last, 120);
	if (!last.len)
		last = STR("file");
	text = (char *)arena_cstr(arena, last);
	for (char *c = text; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
		      *c == '_' || *c == '-'))
			*c = '_';
	return str_n(text, last.len);
}

int board_item_attach(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct str name, struct str mime,
		      const struct source *source, struct jv **ret_attachment, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct store_stat stat;
	struct store *task;
	struct str safe = attachment_name(arena, name);
	struct wpath path = {arena_printf(arena, "uploads/%.*s_%.*s", STR_ARG(board_id_new(arena)), STR_ARG(safe))};
	struct jv *v = jv_object(arena);
	int r = board_task_open(ws, ctx, ref, &task, err);

	if (r)
		return r;
	r = store_write_stream(task, ctx, path, source, (struct store_cond){.kind = STORE_ABSENT}, &stat, err);
	store_destroy(task);
	if (r)
		return r;
	jv_set_str(arena, v, "path", arena_printf(arena, "/task/%.*s", STR_ARG(path.s)));
	jv_set_str(arena, v, "name", safe);
	jv_set_str(arena, v, "original_name", name);
	jv_set_str(arena, v, "mime_type", mime.len ? mime : STR("application/octet-stream"));
	jv_set_int(arena, v, "size_bytes", (int64_t)stat.size);
	*ret_attachment = v;
	return 0;
}
