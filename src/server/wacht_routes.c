/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board as clients of Wacht know it: /ai/actor-projects/{project}/board/…, and the same below /ai/projects/. A
 * project is a workspace with its board "main", or "WORKSPACE:BOARD". The routes are the same tools and files as those
 * below /v1, with the names and the forms of answers that those clients expect: an item by itself, and pages as {data,
 * limit, has_more, next_cursor}.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "server/server_internal.h"

#define LIMIT_DEFAULT 50

static struct jv *item_only(struct exchange *x, struct jv *args)
{
	struct board_ref ref = exchange_item(x);

	if (ref.board.len)
		jv_set_str(x->arena, args, "board", ref.board);
	if (ref.ref.len)
		jv_set_str(x->arena, args, "item", ref.ref);
	return args;
}

/* Answers with the member `key` of the tool's result. */
static void answer_member(struct exchange *x, const char *tool, struct jv *args, const char *key)
{
	const struct jv *result;

	if (exchange_call_tool(x, tool, item_only(x, args), &result))
		answer_json(x, route_status(call_of(x)->route), key ? jv_get(result, key) : result);
}

static int page_args(struct exchange *x, struct jv *args, uint64_t *ret_limit, struct err *err)
{
	struct str cursor;
	bool found;
	int r = query_number(x->arena, x->query, "limit", 1000, ret_limit, err);

	if (r == 0)
		r = query_get(x->arena, x->query, "cursor", &cursor, &found, err);
	if (r == 0 && cursor.len)
		jv_set_str(x->arena, args, "cursor", cursor);
	jv_set_int(x->arena, args, "limit", (int64_t)(*ret_limit ? *ret_limit : 1));
	return r;
}

void answer_wacht_page(struct exchange *x, const struct jv *data, uint64_t limit, struct str next)
{
	struct jv *v = jv_object(x->arena);

	jv_set(x->arena, v, "data", (struct jv *)data);
	jv_set_int(x->arena, v, "limit", (int64_t)limit);
	jv_set_bool(x->arena, v, "has_more", next.len > 0);
	if (next.len)
		jv_set_str(x->arena, v, "next_cursor", next);
	answer_json(x, 200, v);
}

static void run_pages(struct exchange *x, const char *tool, const char *key)
{
	struct jv *args = jv_object(x->arena);
	uint64_t limit = LIMIT_DEFAULT;
	const struct jv *result;
	struct err err = {0};

	if (page_args(x, args, &limit, &err) != 0)
		answer_error(x, &err);
	else if (exchange_call_tool(x, tool, item_only(x, args), &result))
		answer_wacht_page(x, jv_get(result, key), limit, jv_get_str(result, "next_cursor"));
}

void run_wacht_board(struct exchange *x)
{
	answer_member(x, "get_board", jv_object(x->arena), "board");
}

void run_wacht_item(struct exchange *x)
{
	answer_member(x, "get_item", jv_object(x->arena), "item");
}

void run_wacht_comments(struct exchange *x)
{
	run_pages(x, "list_comments", "comments");
}

/* A cursor of assignments is the id of the last one. */
void run_wacht_assignments(struct exchange *x)
{
	struct jv *args = jv_object(x->arena), *data = jv_array(x->arena);
	uint64_t limit = LIMIT_DEFAULT;
	const struct jv *result;
	struct str after, next = STR("");
	struct err err = {0};

	if (page_args(x, args, &limit, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	after = jv_get_str(args, "cursor");
	if (!exchange_call_tool(x, "get_item", item_only(x, jv_object(x->arena)), &result))
		return;
	for (const struct jv_member *m = jv_first(jv_get(jv_get(result, "item"), "assignments")); m; m = m->next) {
		if (after.len && str_cmp(jv_get_str(m->value, "id"), after) <= 0)
			continue;
		if (jv_count(data) == limit) {
			next = jv_get_str(jv_at(data, jv_count(data) - 1), "id");
			break;
		}
		jv_push(x->arena, data, m->value);
	}
	answer_wacht_page(x, data, limit, next);
}

/* --- changes --- */

void run_wacht_cancel(struct exchange *x)
{
	struct jv *args = jv_object(x->arena);

	jv_set_str(x->arena, args, "status", STR("cancelled"));
	answer_member(x, "update_item", args, "item");
}

void run_wacht_archive(struct exchange *x)
{
	answer_member(x, "archive_item", jv_object(x->arena), "item");
}

void run_wacht_unarchive(struct exchange *x)
{
	answer_member(x, "unarchive_item", jv_object(x->arena), "item");
}

/* A thread without a purpose is a conversation; which agent runs it is not for a client to say. */
void run_wacht_thread_create(struct exchange *x)
{
	const struct jv *result, *purpose;
	struct jv *args;
	struct err err = {0};

	if (body_fields(x, "create_thread", &args, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	purpose = jv_get(args, "thread_purpose");
	if (!jv_get(args, "purpose"))
		jv_set(x->arena, args, "purpose",
		       purpose ? (struct jv *)purpose : jv_str(x->arena, STR("conversation")));
	jv_remove(args, "thread_purpose");
	jv_remove(args, "agent_id");
	if (!exchange_call_tool(x, "create_thread", item_only(x, args), &result))
		return;
	thread_places_keep(x, jv_get_str(jv_get(result, "thread"), "id"));
	answer_json(x, 201, wacht_thread_view(x, jv_get(result, "thread")));
}

void run_wacht_delegate(struct exchange *x)
{
	struct jv *args;
	struct str lane;
	struct err err = {0};

	if (body_fields(x, "delegate_item", &args, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	lane = jv_get_str(args, "target_lane_thread_id");
	jv_remove(args, "target_lane_thread_id");
	jv_remove(args, "capability_tags");
	jv_set_str(x->arena, args, "thread_id", lane);
	answer_member(x, "delegate_item", args, NULL);
}

/* --- files --- */

static void add_entry(struct exchange *x, const struct store_entry *e, struct jv *entries, struct jv *files)
{
	struct arena *arena = x->arena;
	struct jv *a = jv_object(arena), *b = jv_object(arena);
	bool is_dir = e->stat.kind == STORE_DIR;

	jv_set_str(arena, a, "name", wpath_name(e->path));
	jv_set_str(arena, a, "kind", is_dir ? STR("directory") : STR("file"));
	jv_set_str(arena, b, "path", e->path.s);
	jv_set_str(arena, b, "name", wpath_name(e->path));
	jv_set_bool(arena, b, "is_dir", is_dir);
	jv_set_int(arena, a, "size_bytes", (int64_t)e->stat.size);
	if (!is_dir) {
		struct str time = clock_format_utc(arena, e->stat.mtime_ns);

		jv_set_str(arena, a, "modified_at", time);
		jv_set_int(arena, b, "size_bytes", (int64_t)e->stat.size);
		jv_set_str(arena, b, "modified_at", time);
	}
	jv_push(arena, entries, a);
	jv_push(arena, files, b);
}

/* Both forms in one: entries as the documentation has them, files and mounts as the server of Wacht gives them. */
void answer_wacht_list(struct exchange *x, const struct file_list *list, const struct jv *mounts)
{
	struct jv *v = jv_object(x->arena), *entries = jv_array(x->arena), *files = jv_array(x->arena);

	for (size_t i = 0; i < list->page.count; i++)
		add_entry(x, &list->page.entries[i], entries, files);
	jv_set_bool(x->arena, v, "exists", true);
	jv_set(x->arena, v, "entries", entries);
	jv_set(x->arena, v, "files", files);
	jv_set(x->arena, v, "mounts", (struct jv *)mounts);
	jv_set_bool(x->arena, v, "has_more", list->page.next.ptr != NULL);
	if (list->page.next.ptr)
		jv_set_str(x->arena, v, "next_cursor", list->page.next);
	answer_json(x, 200, v);
}

void run_wacht_list(struct exchange *x)
{
	struct ctx ctx = exchange_ctx(x);
	struct file_list list = {0};
	struct jv *item;
	struct err err = {0};
	int r = exchange_list_files(x, &list, &err);

	if (r == -ERR_NOT_FOUND && board_dir_is_fixed(list.path))
		r = 0;
	if (r == 0)
		r = board_item_get(call_of(x)->tenant->ws, &ctx, exchange_item(x), &item, &err);
	if (r)
		answer_error(x, &err);
	else
		answer_wacht_list(x, &list, jv_get(item, "mounts"));
}

void run_wacht_download(struct exchange *x)
{
	struct wpath path;
	struct err err = {0};
	int r = query_path(x, &path, &err);

	call_of(x)->is_attachment = true;
	if (r == 0)
		r = exchange_get_file(x, path, &err);
	if (r)
		answer_error(x, &err);
}
