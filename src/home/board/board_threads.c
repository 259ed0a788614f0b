/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: the lanes that work on items. A lane is described well enough that the coordinator can choose it, and two
 * lanes with nearly the same description are refused, because nobody could choose between them.
 *
 * A connection is bound to a lane when its session is the lane's id. Then the lane is who acts, whatever the arguments
 * of a tool say; so an execution lane cannot pass for the coordinator.
 */
#include "base/strmap.h"
#include "home/board/board_internal.h"

#define RESPONSIBILITY_CHARS 30
#define RESPONSIBILITY_WORDS 4
#define INSTRUCTION_WORDS    160
#define INSTRUCTION_CHARS    1200
#define SIMILAR_PERCENT      80

/* --- words --- */

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c & 0x80);
}

/* Cuts the next word off `rest`, in small letters. */
static bool next_word(struct arena *arena, struct str *rest, struct str *ret)
{
	size_t start = 0, end;
	char *copy;

	while (start < rest->len && !is_word_char(rest->ptr[start]))
		start++;
	for (end = start; end < rest->len && is_word_char(rest->ptr[end]);)
		end++;
	if (start == end)
		return false;
	copy = (char *)arena_cstr(arena, str_n(rest->ptr + start, end - start));
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
	*ret = str_n(copy, end - start);
	*rest = str_from(*rest, end);
	return true;
}

static size_t count_words(struct arena *arena, struct str text)
{
	struct str word;
	size_t n = 0;

	while (next_word(arena, &text, &word))
		n++;
	return n;
}

/* The part of all words of both texts that both have, in percent. */
static size_t similarity(struct arena *arena, struct str a, struct str b)
{
	struct strmap *seen = strmap_new(arena);
	size_t all = 0, both = 0;
	struct str word;
	bool added;

	while (next_word(arena, &a, &word)) {
		*strmap_put(seen, word, &added) = 1;
		all += added;
	}
	while (next_word(arena, &b, &word)) {
		size_t *in = strmap_put(seen, word, &added);

		both += !added && *in == 1;
		all += added;
		*in = 2;
	}
	return all ? 100 * both / all : 0;
}

/* --- threads --- */

/* People begin conversations; the coordinator chooses among the other lanes. */
static bool is_conversation(struct str purpose)
{
	return str_is(purpose, "conversation");
}

static int check_thread(struct arena *arena, const struct jv *fields, bool is_new, struct err *err)
{
	struct str duty = str_trim(jv_get_str(fields, "responsibility"));
	struct str orders = str_trim(jv_get_str(fields, "system_instructions"));

	if (is_new && !str_trim(jv_get_str(fields, "title")).len)
		return err_set(err, ERR_INVALID, "a thread needs a title; say in a few words what the lane is for");
	if ((is_new ? duty.len || !is_conversation(jv_get_str(fields, "purpose"))
		    : jv_get(fields, "responsibility") != NULL) &&
	    (utf8_count(duty) < RESPONSIBILITY_CHARS || count_words(arena, duty) < RESPONSIBILITY_WORDS))
		return err_set(err, ERR_INVALID,
			       "the responsibility must say what the lane does, in at least %d characters and %d words",
			       RESPONSIBILITY_CHARS, RESPONSIBILITY_WORDS);
	if (utf8_count(orders) > INSTRUCTION_CHARS || count_words(arena, orders) > INSTRUCTION_WORDS)
		return err_set(err, ERR_TOO_LARGE, "system_instructions may have at most %d words and %d characters",
			       INSTRUCTION_WORDS, INSTRUCTION_CHARS);
	return 0;
}

static int refuse_similar(struct arena *arena, const struct jv *all, struct str purpose, const struct jv *fields,
			  struct err *err)
{
	for (const struct jv_member *m = is_conversation(purpose) ? NULL : jv_first(all); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "purpose"), purpose) &&
		    similarity(arena, jv_get_str(m->value, "responsibility"), jv_get_str(fields, "responsibility")) >=
			    SIMILAR_PERCENT)
			return err_set(err, ERR_EXISTS,
				       "the thread %.*s (%.*s) has nearly the same responsibility; assign to it, or "
				       "say what is different",
				       STR_ARG(jv_get_str(m->value, "id")),
				       STR_ARG(utf8_first(jv_get_str(m->value, "title"), 80)));
	return 0;
}

static int edit_thread(struct record_edit *e, struct jv *record, bool is_new, struct err *err)
{
	static const char *const names[] = {"title",
					    "responsibility",
					    "capability_tags",
					    "reusable",
					    "accepts_assignments",
					    "system_instructions",
					    "assigned_agent_name",
					    "status",
					    "metadata",
					    "execution_state",
					    NULL};
	struct arena *arena = e->ctx->arena;

	(void)err;
	copy_members(arena, record, e->arg, names);
	jv_set_str(arena, record, "updated_at", board_now(arena));
	(void)is_new;
	return 0;
}

static struct jv *new_thread(struct arena *arena, struct str board, const struct jv *fields)
{
	struct jv *v = jv_object(arena);
	struct str purpose = jv_get_str(fields, "purpose");

	jv_set_str(arena, v, "id", board_id_new(arena));
	jv_set_str(arena, v, "board_id", board);
	jv_set_str(arena, v, "purpose", purpose.len ? purpose : STR("execution"));
	jv_set_str(arena, v, "status", STR("idle"));
	jv_set_bool(arena, v, "reusable", true);
	jv_set_bool(arena, v, "accepts_assignments", true);
	jv_set(arena, v, "capability_tags", jv_array(arena));
	jv_set_str(arena, v, "created_at", board_now(arena));
	return v;
}

struct making {
	const struct jv *fields;
	struct jv *record;
};

static int edit_new_thread(struct record_edit *e, struct jv *record, bool is_new, struct err *err)
{
	const struct making *making = e->arg;
	struct record_edit inner = {.arg = (void *)making->fields, .ctx = e->ctx};

	for (const struct jv_member *m = jv_first(making->record); m; m = m->next)
		jv_set_key(e->ctx->arena, record, m->key, m->value);
	return edit_thread(&inner, record, is_new, err);
}

int thread_create(struct workspace *ws, struct ctx *ctx, struct str board, const struct jv *fields, struct jv **ret,
		  struct err *err)
{
	struct making making = {.fields = fields};
	struct record_edit e = {.edit = edit_new_thread, .arg = &making, .create = true};
	struct jv *all = jv_array(ctx->arena), *board_fields = jv_object(ctx->arena), *ignored;
	struct str id;
	int r = board_name(board, &board, err);

	if (r == 0)
		r = check_thread(ctx->arena, fields, true, err);
	if (r == 0)
		r = thread_list(ws, ctx, board, &all, err);
	if (r == 0 && jv_count(all) >= BOARD_THREADS_MAX)
		r = err_set(err, ERR_TOO_LARGE, "the board already has %d threads; use one of them, or another board",
			    BOARD_THREADS_MAX);
	making.record = new_thread(ctx->arena, board, fields);
	id = jv_get_str(making.record, "id");
	if (r == 0)
		r = refuse_similar(ctx->arena, all, jv_get_str(making.record, "purpose"), fields, err);
	if (r == 0)
		r = record_edit(ws, ctx, board_path(ctx->arena, board, "threads/%.*s.json", STR_ARG(id)), &e, err);
	if (r == 0 && str_is(jv_get_str(making.record, "purpose"), "coordinator")) {
		jv_set_str(ctx->arena, board_fields, "coordinator_thread_id", id);
		r = board_set(ws, ctx, board, board_fields, &ignored, err);
	}
	if (r == 0)
		*ret = e.record;
	return r;
}

static int no_thread(struct str board, struct str id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no thread \"%.*s\" on the board \"%.*s\"; list_threads shows them",
		       STR_ARG(utf8_first(id, 40)), STR_ARG(board));
}

int thread_get(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, struct jv **ret, struct err *err)
{
	int r = board_name(board, &board, err);

	if (r == 0 && !board_is_id(id))
		return no_thread(board, id, err);
	if (r == 0)
		r = record_read(ws, ctx, board_path(ctx->arena, board, "threads/%.*s.json", STR_ARG(id)), ret, NULL,
				err);
	return r == -ERR_NOT_FOUND ? no_thread(board, id, err) : r;
}

int thread_update(struct workspace *ws, struct ctx *ctx, struct str board, struct str id, const struct jv *fields,
		  struct jv **ret, struct err *err)
{
	struct record_edit e = {.edit = edit_thread, .arg = (void *)fields};
	int r = thread_get(ws, ctx, board, id, ret, err);

	if (r == 0)
		r = check_thread(ctx->arena, fields, false, err);
	if (r == 0)
		r = board_name(board, &board, err);
	if (r == 0)
		r = record_edit(ws, ctx, board_path(ctx->arena, board, "threads/%.*s.json", STR_ARG(id)), &e, err);
	if (r == 0)
		*ret = e.record;
	return r;
}

int thread_list(struct workspace *ws, struct ctx *ctx, struct str board, struct jv **ret, struct err *err)
{
	int r = board_name(board, &board, err);

	return r ? r : records_read(ws, ctx, board_path(ctx->arena, board, "threads"), BOARD_THREADS_MAX, ret, err);
}

/* On a board other than the first. */
static int search_boards(struct workspace *ws, struct ctx *ctx, struct str id, struct str *ret, struct err *err)
{
	struct store_list_req req = {.limit = BOARDS_MAX, .names_only = true};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR("boards")}, &req, &page, err);

	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str name = wpath_name(page.entries[i].path), good;
		struct err ignored;

		if (page.entries[i].stat.kind != STORE_DIR || board_name(name, &good, &ignored) != 0 ||
		    str_is(name, BOARD_DEFAULT))
			continue;
		r = store_stat(workspace_home(ws), ctx, board_path(ctx->arena, name, "threads/%.*s.json", STR_ARG(id)),
			       NULL, err);
		*ret = name;
		if (r == 0)
			return 0;
		r = r == -ERR_NOT_FOUND ? 0 : r;
	}
	return r && r != -ERR_NOT_FOUND
		       ? r
		       : err_set(err, ERR_NOT_FOUND, "there is no thread \"%.*s\"; list_threads shows those of a board",
				 STR_ARG(utf8_first(id, 40)));
}

int board_of_thread(struct workspace *ws, struct ctx *ctx, struct str id, struct str *ret, struct err *err)
{
	int r;

	if (!board_is_id(id))
		return no_thread(STR(BOARD_DEFAULT), id, err);
	r = store_stat(workspace_home(ws), ctx,
		       board_path(ctx->arena, STR(BOARD_DEFAULT), "threads/%.*s.json", STR_ARG(id)), NULL, err);
	*ret = STR(BOARD_DEFAULT);
	return r == -ERR_NOT_FOUND ? search_boards(ws, ctx, id, ret, err) : r;
}

/* The thread that the session is bound to, on whatever board. *ret_thread stays NULL when there is none. */
static int session_thread(struct workspace *ws, struct ctx *ctx, struct board_caller *ret, struct jv **ret_thread,
			  struct err *err)
{
	struct str session = ctx->actor.session.len ? ctx->actor.session : workspace_actor(ws).session;
	struct str board = STR(BOARD_DEFAULT);
	int r;

	if (!board_is_id(session))
		return 0;
	r = thread_get(ws, ctx, board, session, ret_thread, err);
	if (r == -ERR_NOT_FOUND) {
		r = search_boards(ws, ctx, session, &board, err);
		if (r == 0)
			r = thread_get(ws, ctx, board, session, ret_thread, err);
	}
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	ret->board = board;
	ret->thread_id = session;
	return 0;
}

int board_caller(struct workspace *ws, struct ctx *ctx, struct str board, struct str thread_id,
		 struct board_caller *ret, struct err *err)
{
	struct jv *thread = NULL;
	int r;

	*ret = (struct board_caller){.name = ctx->actor.agent.len ? ctx->actor.agent : ctx->actor.user};
	r = session_thread(ws, ctx, ret, &thread, err);
	if (r == 0 && !thread && thread_id.len) {
		r = thread_get(ws, ctx, board, thread_id, &thread, err);
		ret->thread_id = thread_id;
		ret->board = board;
	}
	if (r || !thread)
		return r;
	ret->purpose = jv_get_str(thread, "purpose");
	ret->name = jv_get_str(thread, "assigned_agent_name");
	if (!ret->name.len)
		ret->name = jv_get_str(thread, "title");
	return 0;
}
