/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, ids, and the boards themselves.
 *
 * An id is a 64-bit number as text: the milliseconds of its making and 20 random bits. So ids sort by time as text
 * (they have 19 digits until the year 2271), replicas need not agree on a counter, and the rare second use of a number
 * is refused by the write that creates the record, and another one is taken.
 */
#include <stdarg.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "home/board/board_internal.h"

#define ID_DIGITS   19
#define RANDOM_BITS 20

bool word_in(struct str word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(word, words[i]))
			return true;
	return false;
}

int board_name(struct str text, struct str *ret, struct err *err)
{
	bool ok = text.len <= 64;

	if (!text.len)
		text = STR(BOARD_DEFAULT);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		ok = ok && ((c >= 'a' && c <= 'z') || (i && ((c >= '0' && c <= '9') || c == '-' || c == '_')));
	}
	if (!ok)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not a valid board name; use up to 64 lower-case letters, digits, '-' and "
			       "'_', beginning with a letter",
			       STR_ARG(utf8_first(text, 80)));
	*ret = text;
	return 0;
}

struct wpath board_path(struct arena *arena, struct str board, const char *fmt, ...)
{
	char rest[512];
	va_list list;

	va_start(list, fmt);
	vsnprintf(rest, sizeof(rest), fmt, list);
	va_end(list);
	return (struct wpath){arena_printf(arena, "boards/%.*s%s%s", STR_ARG(board), rest[0] ? "/" : "", rest)};
}

struct str board_id_new(struct arena *arena)
{
	static atomic_ullong last;
	uint64_t ms = (uint64_t)(clock_real_ns() / NS_PER_MS);
	unsigned long long id = ms << RANDOM_BITS | (random_u64() & ((UINT64_C(1) << RANDOM_BITS) - 1));
	unsigned long long before = atomic_load(&last), next;

	do
		next = id > before ? id : before + 1; /* the order of one process is the order of its ids */
	while (!atomic_compare_exchange_weak(&last, &before, next));
	return arena_printf(arena, "%019llu", next);
}

bool board_is_id(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
	return text.len == ID_DIGITS;
}

struct str board_now(struct arena *arena)
{
	return clock_format_utc(arena, clock_real_ns());
}

void copy_members(struct arena *arena, struct jv *to, const struct jv *from, const char *const *names)
{
	for (; *names; names++) {
		const struct jv *v = jv_get(from, *names);

		if (v && v->type == JV_NULL)
			jv_remove(to, *names);
		else if (v)
			jv_set(arena, to, *names, jv_copy(arena, v));
	}
}

/* --- boards --- */

static int edit_board(struct record_edit *e, struct jv *record, bool is_new, struct err *err)
{
	static const char *const names[] = {"title", "description", "coordinator_thread_id", NULL};
	struct arena *arena = e->ctx->arena;

	(void)err;
	if (is_new)
		jv_set_str(arena, record, "created_at", board_now(arena));
	copy_members(arena, record, e->arg, names);
	jv_set_str(arena, record, "updated_at", board_now(arena));
	return 0;
}

int board_set(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
	      struct err *err)
{
	struct record_edit e = {.edit = edit_board, .arg = (void *)fields, .create = true};
	int r = board_name(board, &board, err);

	if (r == 0)
		r = record_edit(ws, ctx, board_path(ctx->arena, board, "board.json"), &e, err);
	return r ? r : board_get(ws, ctx, board, ret, err);
}

static int read_board(struct workspace *ws, struct ctx *ctx, struct str board, struct jv **ret, struct err *err)
{
	struct jv *record;
	int r = record_read(ws, ctx, board_path(ctx->arena, board, "board.json"), &record, NULL, err);

	if (r == -ERR_NOT_FOUND) { /* the first item makes a board */
		record = jv_object(ctx->arena);
		r = store_stat(workspace_home(ws), ctx, board_path(ctx->arena, board, "%s", ""), NULL, err);
	}
	if (r == -ERR_NOT_FOUND && str_is(board, BOARD_DEFAULT))
		r = 0;
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "there is no board \"%.*s\"; list_boards shows them",
			       STR_ARG(board));
	if (r)
		return r;
	*ret = jv_object(ctx->arena);
	jv_set_str(ctx->arena, *ret, "id", board);
	for (const struct jv_member *m = jv_first(record); m; m = m->next)
		jv_set_key(ctx->arena, *ret, m->key, m->value);
	if (!jv_get_str(*ret, "title").len)
		jv_set_str(ctx->arena, *ret, "title", board);
	return 0;
}

int board_get(struct workspace *ws, struct ctx *ctx, struct str board, struct jv **ret, struct err *err)
{
	int r = board_name(board, &board, err);

	return r ? r : read_board(ws, ctx, board, ret, err);
}

int board_all(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct store_list_req req = {.limit = BOARDS_MAX, .names_only = true};
	struct store_page page = {0};
	bool has_default = false;
	struct jv *board;
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR("boards")}, &req, &page, err);

	if (r == -ERR_NOT_FOUND)
		r = 0;
	*ret = jv_array(ctx->arena);
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path), good;
		struct err ignored;

		if (page.entries[i].stat.kind != STORE_DIR || board_name(name, &good, &ignored) != 0)
			continue;
		has_default = has_default || str_is(name, BOARD_DEFAULT);
		r = read_board(ws, ctx, name, &board, err);
		if (r == 0)
			jv_push(ctx->arena, *ret, board);
	}
	if (r == 0 && !has_default && read_board(ws, ctx, STR(BOARD_DEFAULT), &board, err) == 0)
		jv_push(ctx->arena, *ret, board);
	return r;
}

struct str board_coordinator(struct workspace *ws, struct ctx *ctx, struct str board)
{
	struct jv *record;
	struct err ignored;

	if (record_read(ws, ctx, board_path(ctx->arena, board, "board.json"), &record, NULL, &ignored) != 0)
		return STR("");
	return jv_get_str(record, "coordinator_thread_id");
}
