/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: one JSON file for each item, thread and board, written by one conditional write. A person may edit them. An
 * item and all that decides its state (assignments, deliverables, a pending question) are one record, so a transition
 * is never seen half made; comments are many and decide nothing, so they are a file of their own.
 *
 * The directory of items is flat and its names sort by time. A record is found by its name, so one more item costs the
 * same among ten and among ten thousand.
 */
#include "home/board/board_internal.h"

#include "base/strmap.h"

/* --- any record --- */

static int parse_record(struct ctx *ctx, struct wpath path, struct str text, struct jv **ret, struct err *err)
{
	int r = jv_parse(ctx->arena, text, ret, err);

	if (r == 0 && (*ret)->type != JV_OBJECT)
		r = err_set(err, ERR_CORRUPT, "it is not an object");
	if (r) {
		err->kind = ERR_CORRUPT;
		return err_prefix(err, "%.*s cannot be read; correct or restore it", STR_ARG(path.s));
	}
	return 0;
}

int record_read(struct workspace *ws, struct ctx *ctx, struct wpath path, struct jv **ret, struct str *ret_version,
		struct err *err)
{
	struct store_stat stat;
	struct str text;
	int r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, BOARD_RECORD_MAX, &text, &stat, err);

	if (r == 0)
		r = parse_record(ctx, path, text, ret, err);
	if (r == 0 && ret_version)
		*ret_version = stat.version;
	return r;
}

static int write_record(struct arena *arena, const struct jv *record, struct str *ret, struct err *err)
{
	struct buf text;

	buf_init(&text, arena, BOARD_RECORD_MAX);
	jv_write_pretty(&text, record);
	if (text.overflow)
		return err_set(err, ERR_TOO_LARGE,
			       "the record would exceed %zu bytes; keep long texts in files of the task",
			       (size_t)BOARD_RECORD_MAX);
	*ret = buf_str(&text);
	return 0;
}

struct record_change {
	struct record_edit *e;
	struct wpath path;
};

static int change_record(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct record_change *c = arg;
	struct record_edit *e = c->e;
	struct jv *record = jv_object(e->ctx->arena);
	int r = before.ptr ? parse_record(e->ctx, c->path, before, &record, err) : 0;

	(void)arena;
	if (r == 0)
		r = e->edit(e, record, !before.ptr, err);
	if (r == 0)
		r = write_record(e->ctx->arena, record, ret_after, err);
	e->record = record;
	return r;
}

int record_edit(struct workspace *ws, struct ctx *ctx, struct wpath path, struct record_edit *e, struct err *err)
{
	struct record_change c = {e, path};
	struct store_change change = {.max = BOARD_RECORD_MAX, .create = e->create, .change = change_record, .arg = &c};

	e->ctx = ctx;
	return store_change(workspace_home(ws), ctx, path, &change, NULL, NULL, NULL, err);
}

int records_read(struct workspace *ws, struct ctx *ctx, struct wpath dir, size_t max, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = max, .names_only = true};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, dir, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		r = 0;
	*ret = jv_array(ctx->arena);
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct jv *record;

		if (!str_ends(page.entries[i].path.s, STR(".json")))
			continue;
		r = record_read(ws, ctx, page.entries[i].path, &record, NULL, err);
		if (r == 0)
			jv_push(ctx->arena, *ret, record);
		else if (r == -ERR_NOT_FOUND)
			r = 0;
	}
	return r;
}

/* --- items by their names --- */

static struct wpath item_path(struct arena *arena, struct str board, struct str id, bool archived)
{
	return board_path(arena, board, "%s/%.*s.json", archived ? "archive" : "items", STR_ARG(id));
}

static int no_item(struct board_ref ref, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no item \"%.*s\" on the board \"%.*s\"; list_items shows them",
		       STR_ARG(utf8_first(ref.ref, 80)), STR_ARG(ref.board));
}

/* The only id of a directory that ends with these digits. */
static int find_ending(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const char *dir, struct str *ret,
		       struct err *err)
{
	struct store_list_req req = {.limit = STORE_PAGE_MAX, .names_only = true};
	struct store_page page = {0};
	int r;

	do {
		r = store_list(workspace_home(ws), ctx, board_path(ctx->arena, ref.board, "%s", dir), &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++) {
			struct str name = wpath_name(page.entries[i].path);
			struct str id = str_first(name, name.len > 5 ? name.len - 5 : 0);

			if (!board_is_id(id) || !str_ends(id, ref.ref))
				continue;
			if (ret->len)
				return err_set(err, ERR_INVALID,
					       "several items have ids that end with \"%.*s\"; give more of it",
					       STR_ARG(ref.ref));
			*ret = id;
		}
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int find_id(struct workspace *ws, struct ctx *ctx, struct board_ref *ref, struct str *ret_id, struct err *err)
{
	struct str text = str_trim(ref->ref), id = STR("");
	int r = board_name(ref->board, &ref->board, err);

	if (str_starts(text, STR("TASK-")))
		text = str_from(text, 5);
	else if (str_starts(text, STR("DELEGATE-")))
		text = str_from(text, 9);
	ref->ref = text;
	if (r)
		return r;
	if (board_is_id(text)) {
		*ret_id = text;
		return 0;
	}
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return no_item(*ref, err);
	if (text.len < 3)
		return no_item(*ref, err);
	r = find_ending(ws, ctx, *ref, "items", &id, err);
	if (r == 0 && !id.len)
		r = find_ending(ws, ctx, *ref, "archive", &id, err);
	if (r == 0 && !id.len)
		r = no_item(*ref, err);
	*ret_id = id;
	return r;
}

int item_load(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct item *ret, struct err *err)
{
	int r = find_id(ws, ctx, &ref, &ret->id, err);

	if (r)
		return r;
	ret->board = ref.board;
	ret->archived = false;
	r = record_read(ws, ctx, item_path(ctx->arena, ref.board, ret->id, false), &ret->v, &ret->version, err);
	if (r == -ERR_NOT_FOUND) {
		ret->archived = true;
		r = record_read(ws, ctx, item_path(ctx->arena, ref.board, ret->id, true), &ret->v, &ret->version, err);
	}
	if (r == -ERR_NOT_FOUND)
		return no_item(ref, err);
	if (r == 0 && jv_count(jv_get(ret->v, "journal_queue")))
		r = item_settle(ws, ctx, ret, err);
	return r;
}

/* --- changing an item --- */

static int change_item(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct item_edit *e = arg;
	struct arena *own = e->ctx->arena;
	struct jv *item;
	int r = parse_record(e->ctx, item_path(own, e->board, e->id, false), before, &item, err);

	(void)arena;
	e->is_unchanged = false;
	if (r == 0)
		r = e->edit(e, item, err);
	e->item = item;
	if (r || e->is_unchanged)
		return r;
	jv_set_int(own, item, "state_version", jv_get_int(item, "state_version", 0) + 1);
	jv_set_str(own, item, "updated_at", board_now(own));
	return write_record(own, item, ret_after, err);
}

int item_edit(struct workspace *ws, struct ctx *ctx, struct board_ref ref, struct item_edit *e, struct err *err)
{
	struct store_change change = {.max = BOARD_RECORD_MAX, .cond = e->cond, .change = change_item, .arg = e};
	struct item item = {0};
	struct err other;
	int r = find_id(ws, ctx, &ref, &e->id, err);

	if (r)
		return r;
	e->ws = ws;
	e->ctx = ctx;
	e->board = ref.board;
	r = store_change(workspace_home(ws), ctx, item_path(ctx->arena, ref.board, e->id, false), &change, NULL, NULL,
			 NULL, err);
	if (r == -ERR_NOT_FOUND &&
	    record_read(ws, ctx, item_path(ctx->arena, ref.board, e->id, true), &item.v, NULL, &other) == 0)
		return err_set(err, ERR_CONFLICT, "the item %.*s is archived; take it back with unarchive_item first",
			       STR_ARG(e->id));
	if (r == -ERR_NOT_FOUND)
		return no_item(ref, err);
	if (r || !jv_count(jv_get(e->item, "journal_queue")))
		return r;
	item = (struct item){.board = e->board, .id = e->id, .v = e->item};
	r = item_settle(ws, ctx, &item, err);
	e->item = item.v;
	return r;
}

/* --- what clients see --- */

struct str item_key(const struct jv *item)
{
	return jv_get_str(item, "task_key");
}

struct jv *item_view(struct arena *arena, const struct jv *record)
{
	struct jv *v = jv_copy(arena, record);

	jv_remove(v, "journal_queue");
	jv_remove(v, "archive_revision");
	jv_remove(v, "next_item");
	jv_set(arena, v, "mounts", mounts_view(arena, jv_get(record, "mounts")));
	return v;
}

struct jv *item_line(struct arena *arena, const struct jv *record)
{
	static const char *const left_out[] = {"assignments",   "answers",     "approvals",
					       "subscriptions", "description", "checks"};
	struct jv *v = item_view(arena, record), *last = jv_array(arena);
	const struct jv *all = jv_get(record, "deliverables");
	struct str about = jv_get_str(record, "description");

	for (size_t i = 0; i < COUNT(left_out); i++)
		jv_remove(v, left_out[i]);
	if (about.len)
		jv_set_str(arena, v, "description", utf8_first(about, 300));
	if (jv_count(all))
		jv_push(arena, last, jv_copy(arena, jv_at(all, jv_count(all) - 1)));
	jv_set(arena, v, "deliverables", last);
	jv_set_int(arena, v, "deliverable_count", (int64_t)jv_count(all));
	return v;
}
