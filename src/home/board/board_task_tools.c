/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file tools over the /task of an item: the handlers of the files family, over another store. What a lane does
 * there is noted in audit/<purpose>-<thread>.log of the task, which no tool can change.
 */
#include "home/board/board_task_tools.h"

#include "home/board/board_internal.h"
#include "home/files/files.h"

struct board_ref arg_item(const struct jv *args)
{
	return (struct board_ref){jv_get_str(args, "board"), jv_get_str(args, "item")};
}

static struct jv *without_item(struct arena *arena, const struct jv *args)
{
	struct jv *v = jv_copy(arena, args);

	jv_remove(v, "board");
	jv_remove(v, "item");
	jv_remove(v, "thread_id");
	return v;
}

/* --- the audit log --- */

static void add_quoted(struct buf *b, struct str text)
{
	jv_write_string(b, utf8_first(text, 300));
}

void board_audit(struct workspace *ws, struct ctx *ctx, struct board_ref ref, const struct board_caller *caller,
		 const struct board_audit *what)
{
	struct arena *arena = ctx->arena;
	struct buf b, input;
	struct item item;
	struct err ignored;
	struct wpath path;

	if (!caller->thread_id.len || item_load(ws, ctx, ref, &item, &ignored) != 0 || item.archived)
		return;
	path = board_path(arena, item.board, "tasks/%.*s/audit/%.*s-%.*s.log", STR_ARG(item_key(item.v)),
			  STR_ARG(caller->purpose), STR_ARG(caller->thread_id));
	buf_init(&input, arena, 64 * KIB);
	jv_write(&input, what->args);
	buf_init(&b, arena, 8 * KIB);
	buf_printf(&b, "[%.*s] iter=%lld tool=%s status=%s input=", STR_ARG(board_now(arena)),
		   (long long)jv_get_int(item.v, "state_version", 0), what->tool, what->err ? "error" : "success");
	add_quoted(&b, input.overflow ? STR("…") : buf_str(&input));
	if (what->err) {
		buf_lit(&b, " error=");
		add_quoted(&b, err_text(arena, what->err));
	}
	buf_char(&b, '\n');
	store_append(workspace_home(ws), ctx, path, buf_str(&b), (struct store_cond){0}, NULL, &ignored);
}

/* --- calls --- */

typedef int (*file_tool)(struct call *call, const struct jv *args, struct outcome *ret, struct err *err);

int board_task_call(struct call *call, struct board_ref ref, const struct jv *args, file_tool tool, struct outcome *ret,
		    struct err *err)
{
	static const char *const paths[] = {"path", "from", "to"};
	struct arena *arena = call->ctx->arena;
	struct jv *mapped = without_item(arena, args);
	struct call inner = *call;
	struct wpath path;
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(paths); i++) {
		if (!jv_get(mapped, paths[i]))
			continue;
		r = board_task_path(arena, jv_get_str(mapped, paths[i]), &path, err);
		if (r == 0)
			jv_set_str(arena, mapped, paths[i], path.s);
	}
	if (r == 0)
		r = board_task_open(call->ws, call->ctx, ref, &inner.files, err);
	if (r)
		return r;
	r = tool(&inner, mapped, ret, err);
	store_destroy(inner.files);
	return r;
}

static int call_as(struct call *call, const struct jv *args, const char *name, file_tool tool, struct outcome *ret,
		   struct err *err)
{
	struct board_ref ref = arg_item(args);
	struct board_audit what = {.tool = name, .args = without_item(call->ctx->arena, args)};
	struct board_caller caller;
	int r = board_caller(call->ws, call->ctx, ref.board, jv_get_str(args, "thread_id"), &caller, err);

	if (r)
		return r;
	r = board_task_call(call, ref, args, tool, ret, err);
	what.err = r ? err : NULL;
	board_audit(call->ws, call->ctx, ref, &caller, &what);
	return r;
}

int tool_item_ls(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return board_task_call(call, arg_item(args), args, tool_ls, ret, err);
}

int tool_item_read(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return board_task_call(call, arg_item(args), args, tool_read_file, ret, err);
}

int tool_item_grep(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return board_task_call(call, arg_item(args), args, tool_grep, ret, err);
}

static int append_journal(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	struct arena *arena = call->ctx->arena;
	struct str content = jv_get_str(args, "content");
	struct str journal = STR("");
	struct item item;
	int r = board_journal_add(call->ws, call->ctx, arg_item(args), content, err);

	if (r == 0)
		r = item_load(call->ws, call->ctx, arg_item(args), &item, err);
	if (r == 0)
		r = item_journal_read(call->ws, call->ctx, &item, &journal, err);
	if (r)
		return r;
	ret->value = jv_object(arena);
	jv_set_str(arena, ret->value, "path", STR("JOURNAL.md"));
	jv_set_int(arena, ret->value, "size", (int64_t)journal.len);
	jv_set_str(arena, ret->value, "version", STR(""));
	jv_set_str(arena, ret->value, "action", STR("appended"));
	jv_set_int(arena, ret->value, "bytes_written", (int64_t)content.len);
	jv_set_int(arena, ret->value, "lines_written", (int64_t)count_lines(content));
	return 0;
}

int tool_item_write(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	bool appends = str_is(jv_get_str(args, "mode"), "append");
	struct wpath path;
	int r = board_task_path(call->ctx->arena, jv_get_str(args, "path"), &path, err);

	if (r)
		return r;
	if (appends && str_is(path.s, "JOURNAL.md"))
		return append_journal(call, args, ret, err);
	return call_as(call, args, "item_write", tool_write_file, ret, err);
}

int tool_item_edit(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return call_as(call, args, "item_edit", tool_edit_file, ret, err);
}

int tool_item_delete(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return call_as(call, args, "item_delete", tool_delete_file, ret, err);
}

int tool_item_move(struct call *call, const struct jv *args, struct outcome *ret, struct err *err)
{
	return call_as(call, args, "item_move", tool_move_file, ret, err);
}
