/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items that begin at a set time, once or again and again. Such an item is made at once, with the time in
 * `scheduled_for`, and lists leave it out until then. boards/.due/<id>.json is a mark that something is due: what looks
 * for due items reads that directory and no others.
 *
 * An item fires by one conditional write of its record (`fired_at`), so it fires once, whoever looks and however many
 * do. The same write names the item that follows it, which is made afterwards if it is not there. The mark is removed
 * last: after a crash at any place the next look does what is missing, and nothing twice.
 */
#include "home/board/board_internal.h"

#include "base/clock.h"
#include "base/utf8.h"

#define DUE_MAX      1000
#define INTERVAL_MIN 60

static struct wpath mark_path(struct arena *arena, struct str id)
{
	return (struct wpath){arena_printf(arena, BOARD_DUE_DIR "/%.*s.json", STR_ARG(id))};
}

int schedule_fields(struct arena *arena, const struct jv *fields, struct jv *record, struct err *err)
{
	struct str kind = jv_get_str(fields, "schedule_kind"), at = jv_get_str(fields, "next_run_at");
	int64_t interval = jv_get_int(fields, "interval_seconds", 0), at_ns;
	struct str overlap = jv_get_str(fields, "overlap");
	bool repeats = str_is(kind, "interval");

	if (overlap.len && !str_is(overlap, "skip") && !str_is(overlap, "parallel"))
		return err_set(err, ERR_INVALID, "overlap must be \"parallel\" or \"skip\"");
	if (overlap.len && !repeats)
		return err_set(err, ERR_INVALID,
			       "overlap is for recurring items; give schedule_kind \"interval\" with it");
	if (!kind.len && !at.len && !interval)
		return 0;
	if (!repeats && !str_is(kind, "once"))
		return err_set(err, ERR_INVALID, "schedule_kind must be \"once\" or \"interval\"");
	if (!clock_parse(at, &at_ns))
		return err_set(err, ERR_INVALID,
			       "next_run_at \"%.*s\" is not a valid time; write it as 2026-11-30T09:00:00Z",
			       STR_ARG(utf8_first(at, 40)));
	if (repeats ? interval < INTERVAL_MIN : interval != 0)
		return err_set(err, ERR_INVALID,
			       "interval_seconds must be at least %d for \"interval\", and is not used for \"once\"",
			       INTERVAL_MIN);
	jv_set_str(arena, record, "schedule_id", jv_get_str(record, "id"));
	jv_set_str(arena, record, "schedule_kind", kind);
	jv_set_str(arena, record, "scheduled_for", clock_format_utc(arena, at_ns));
	if (repeats)
		jv_set_int(arena, record, "interval_seconds", interval);
	if (overlap.len)
		jv_set_str(arena, record, "overlap", overlap);
	return 0;
}

bool schedule_waits(const struct jv *item)
{
	return jv_get_str(item, "scheduled_for").len && !jv_get_str(item, "fired_at").len;
}

int schedule_mark(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *record, struct err *err)
{
	struct jv *mark = jv_object(ctx->arena);
	struct buf text;

	if (!schedule_waits(record))
		return 0;
	jv_set_str(ctx->arena, mark, "board", board);
	jv_set_str(ctx->arena, mark, "at", jv_get_str(record, "scheduled_for"));
	buf_init(&text, ctx->arena, KIB);
	jv_write(&text, mark);
	return store_write(workspace_home(ws), ctx, mark_path(ctx->arena, jv_get_str(record, "id")), buf_str(&text),
			   (struct store_cond){0}, NULL, err);
}

int schedule_unmark(struct workspace *ws, struct ctx *ctx, struct str id, struct err *err)
{
	int r = store_remove(workspace_home(ws), ctx, mark_path(ctx->arena, id), false, (struct store_cond){0}, NULL,
			     err);

	return r == -ERR_NOT_FOUND ? 0 : r;
}

void schedule_clear(struct jv *item)
{
	static const char *const names[] = {"schedule_id", "schedule_kind", "scheduled_for", "interval_seconds",
					    "overlap"};

	for (size_t i = 0; i < COUNT(names); i++)
		jv_remove(item, names[i]);
}

/* --- firing --- */

/* Times that passed while nobody looked are left out. */
static struct str next_time(struct arena *arena, const struct jv *item, int64_t now_ns)
{
	int64_t step = jv_get_int(item, "interval_seconds", 0) * NS_PER_S, at = now_ns;

	clock_parse(jv_get_str(item, "scheduled_for"), &at);
	return clock_format_utc(arena, at > now_ns ? at : at + ((now_ns - at) / step + 1) * step);
}

static bool is_later(const struct jv *item, int64_t now_ns)
{
	int64_t at_ns;

	return clock_parse(jv_get_str(item, "scheduled_for"), &at_ns) && at_ns > now_ns;
}

/* Whether the item before this one in its series is on the board and not done. */
static int look_back(struct item_edit *e, const struct jv *item, bool *ret_open, struct err *err)
{
	struct str before = jv_get_str(item, "follows");
	struct wpath path = board_path(e->ctx->arena, e->board, "items/%.*s.json", STR_ARG(before));
	struct jv *v;
	int r;

	*ret_open = false;
	if (!before.len || !str_is(jv_get_str(item, "overlap"), "skip"))
		return 0;
	r = record_read(e->ws, e->ctx, path, &v, NULL, err);
	*ret_open = r == 0 && !status_is_final(jv_get_str(v, "status"));
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int fire(struct item_edit *e, struct jv *item, struct err *err)
{
	struct arena *arena = e->ctx->arena;
	int64_t *now = e->arg;
	bool is_open = false;
	int r;

	e->is_unchanged = !schedule_waits(item) || status_is_final(jv_get_str(item, "status")) || is_later(item, *now);
	if (e->is_unchanged)
		return 0;
	r = look_back(e, item, &is_open, err);
	if (r)
		return r;
	if (is_open) {
		jv_set_str(arena, item, "scheduled_for", next_time(arena, item, *now));
		return 0;
	}
	jv_set_str(arena, item, "fired_at", clock_format_utc(arena, *now));
	if (!jv_get_int(item, "interval_seconds", 0))
		return 0;
	jv_set_str(arena, item, "next_item", board_id_new(arena));
	jv_set_str(arena, item, "next_run_at", next_time(arena, item, *now));
	return 0;
}

static int fire_one(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, int64_t now,
		    struct err *err)
{
	struct item_edit e = {.edit = fire, .arg = &now};
	int r = item_edit(ws, ctx, (struct board_ref){board, id}, &e, err);

	if (r == -ERR_NOT_FOUND || r == -ERR_CONFLICT) /* archived, or never made */
		return schedule_unmark(ws, ctx, id, err);
	if (r == 0 && schedule_waits(e.item) && is_later(e.item, now)) /* it was put off */
		return schedule_mark(ws, ctx, board, e.item, err);
	if (r == 0 && jv_get_str(e.item, "next_item").len)
		r = item_follow(ws, ctx, board, e.item, err);
	return r ? r : schedule_unmark(ws, ctx, id, err);
}

int board_fire(struct workspace *ws, struct ctx *ctx, int64_t now_ns, int64_t *ret_next_ns, struct err *err)
{
	struct store_list_req req = {.limit = DUE_MAX};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(BOARD_DUE_DIR)}, &req, &page, err);

	*ret_next_ns = INT64_MAX;
	if (r == -ERR_NOT_FOUND)
		return 0;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path), id = str_first(name, name.len - 5), board;
		struct jv *mark;
		int64_t at;

		if (!str_ends(name, STR(".json")) || !board_is_id(id) ||
		    record_read(ws, ctx, page.entries[i].path, &mark, NULL, err) != 0)
			continue;
		if (!clock_parse(jv_get_str(mark, "at"), &at) ||
		    board_name(jv_get_str(mark, "board"), &board, err) != 0)
			continue;
		if (at <= now_ns)
			r = fire_one(ws, ctx, board, id, now_ns, err);
		else if (at < *ret_next_ns)
			*ret_next_ns = at;
	}
	return r;
}
