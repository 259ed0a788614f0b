/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to a thread alone. The files of an item are shared by all who work on it and end with it; a lane also
 * keeps notes and tools from one item to the next, and people send it files in a conversation that is about no item.
 * Those are in boards/<board>/lanes/<id>: workspace/ is the lane's own, uploads/ is what people sent. The same caps
 * apply as for an item. Paths of a thread begin with one of these names, so that
 * they can be told from paths of /task.
 *
 * The prompt of a session that is the id of a thread says which lane it is.
 */
#include "home/board/board_internal.h"
#include "home/board/board_state.h"

static const char *const top_names[] = {"workspace", "uploads"};

bool board_is_thread_path(struct str text)
{
	text = str_trim(text);
	if (!str_starts(text, STR("/")))
		return false;
	text = str_from(text, 1);
	return word_in(str_first(text, str_find_char(text, '/')), top_names, COUNT(top_names));
}

int board_thread_path(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	text = str_trim(text);
	if (str_starts(text, STR("/")))
		text = str_from(text, 1);
	if (text.len && !word_in(str_first(text, str_find_char(text, '/')), top_names, COUNT(top_names)))
		return err_set(
			err, ERR_INVALID,
			"the path \"%.*s\" is not one of the thread's files; those are in /workspace and /uploads",
			STR_ARG(utf8_first(text, 150)));
	return wpath_parse_lenient(arena, text, ret, err);
}

/* Both names and what is below them can be changed. */
static const char *refuse_other(const void *arg, struct wpath path)
{
	(void)arg;
	if (wpath_is_root(path) || word_in(str_first(path.s, str_find_char(path.s, '/')), top_names, COUNT(top_names)))
		return NULL;
	return "the files of a thread are in workspace/ and uploads/";
}

int board_thread_get(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct jv **ret,
		     struct err *err)
{
	return thread_get(ws, ctx, board, id, ret, err);
}

int board_thread_open(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct store **ret,
		      struct err *err)
{
	struct guard_rules rules = guard_defaults;
	struct jv *thread;
	int r = thread_get(ws, ctx, board, id, &thread, err);

	if (r == 0)
		r = board_name(board, &board, err);
	if (r)
		return r;
	rules.refusal = refuse_other;
	*ret = store_guard_new(board_state_task(family_state(&board_family, ws), ctx,
						board_path(ctx->arena, board, "lanes/%.*s", STR_ARG(id))),
			       &rules);
	return 0;
}

int board_thread_attach(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct str name,
			const struct source *source, struct str *ret_path, struct err *err)
{
	struct wpath path = {arena_printf(ctx->arena, "uploads/%.*s_%.*s", STR_ARG(board_id_new(ctx->arena)),
					  STR_ARG(attachment_name(ctx->arena, name)))};
	struct store *files;
	int r = board_thread_open(ws, ctx, board, id, &files, err);

	if (r)
		return r;
	r = store_write_stream(files, ctx, path, source, (struct store_cond){.kind = STORE_ABSENT}, NULL, err);
	store_destroy(files);
	*ret_path = arena_printf(ctx->arena, "/%.*s", STR_ARG(path.s));
	return r;
}

int board_thread_note(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct str status,
		      struct str problem, struct err *err)
{
	struct jv *fields = jv_object(ctx->arena), *state = jv_null(ctx->arena), *ignored;

	if (problem.len) {
		state = jv_object(ctx->arena);
		jv_set_str(ctx->arena, state, "error", problem);
	}
	jv_set_str(ctx->arena, fields, "status", status);
	jv_set(ctx->arena, fields, "execution_state", state);
	return thread_update(ws, ctx, board, id, fields, &ignored, err);
}

/* --- the prompt --- */

static int find_lane(struct prompt_find *find, struct err *err)
{
	struct str session =
		find->ctx->actor.session.len ? find->ctx->actor.session : workspace_actor(find->ws).session;
	struct str board = STR(BOARD_DEFAULT);
	int r;

	if (!board_is_id(session))
		return 0;
	r = board_of_thread(find->ws, find->ctx, session, &board, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	return prompt_find_file(find, board_path(find->ctx->arena, board, "threads/%.*s.json", STR_ARG(session)).s,
				err);
}

static int read_lane(struct prompt_read *read, struct buf *text, struct err *err)
{
	struct jv *thread;
	int r = jv_parse(read->ctx->arena, read->bytes, &thread, err);

	if (r)
		return r;
	buf_lit(text, "You are the thread \"");
	prompt_escape_line(text, jv_get_str(thread, "title"), PROMPT_ENTRY_MAX);
	buf_printf(text, "\" (id %.*s, %.*s) of the task board. ", STR_ARG(jv_get_str(thread, "id")),
		   STR_ARG(jv_get_str(thread, "purpose")));
	prompt_escape_line(text, jv_get_str(thread, "responsibility"), PROMPT_ENTRY_MAX);
	buf_char(text, '\n');
	prompt_escape(text, str_trim(jv_get_str(thread, "system_instructions")));
	buf_char(text, '\n');
	return 0;
}

const struct prompt_section board_sections[] = {
	{"lane", PROMPT_WORKING, 5, PROMPT_TEXT, PROMPT_WHOLE, PROMPT_YIELDS, .find = find_lane, .read = read_lane},
	{0},
};
