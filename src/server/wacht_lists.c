/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of items and of threads as clients of Wacht ask for them: several statuses at once, with what is archived
 * or only that, threads by words. The tools list one status, and either the items or the archive; both are in the order
 * of ids, and a cursor is an id, so that a page is merged from the two and the next one begins after its last id.
 */
#include "base/limits.h"
#include "server/server_internal.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000
#define FILTERED      1000 /* items that are looked through at once, when only those of some statuses are wanted */

struct asked {
	struct str statuses; /* with commas between them; empty: all */
	struct str cursor, words;
	bool with_archived, only_archived;
	uint64_t limit;
};

static int take_asked(struct exchange *x, uint64_t limit, struct asked *ret, struct err *err)
{
	bool found;
	int r;

	*ret = (struct asked){.limit = limit};
	r = query_number(x->arena, x->query, "limit", LIMIT_MAX, &ret->limit, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "cursor", &ret->cursor, &found, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "status", &ret->statuses, &found, err);
	if (r == 0)
		r = query_get(x->arena, x->query, "q", &ret->words, &found, err);
	if (r == 0)
		r = query_flag(x->arena, x->query, "include_archived", &ret->with_archived, err);
	if (r == 0)
		r = query_flag(x->arena, x->query, "archived_only", &ret->only_archived, err);
	if (ret->limit == 0)
		ret->limit = 1;
	return r;
}

static bool has_status(struct str statuses, struct str have)
{
	struct str one;

	if (!statuses.len)
		return true;
	while (str_cut(&statuses, ',', &one))
		if (str_eq(str_trim(one), have))
			return true;
	return false;
}

static struct jv *of_board(struct exchange *x)
{
	struct jv *args = jv_object(x->arena);

	if (exchange_item(x).board.len)
		jv_set_str(x->arena, args, "board", exchange_item(x).board);
	return args;
}

/* Adds the items after the cursor, newest first: more than a page has, if there are so many. False: it is answered. */
static bool gather(struct exchange *x, const struct asked *asked, bool archived, struct jv *ret_items)
{
	int64_t piece = asked->statuses.len ? FILTERED : (int64_t)asked->limit + 1;
	struct str cursor = asked->cursor;
	const struct jv *result;

	do {
		struct jv *args = of_board(x);

		jv_set_int(x->arena, args, "limit", piece);
		jv_set_bool(x->arena, args, "archived", archived);
		if (cursor.len)
			jv_set_str(x->arena, args, "cursor", cursor);
		if (!exchange_call_tool(x, "list_items", args, &result))
			return false;
		for (const struct jv_member *m = jv_first(jv_get(result, "items")); m; m = m->next)
			if (has_status(asked->statuses, jv_get_str(m->value, "status")))
				jv_push(x->arena, ret_items, m->value);
		cursor = jv_get_str(result, "next_cursor");
	} while (cursor.len && jv_count(ret_items) <= asked->limit);
	return true;
}

/* A page of both, newest first. */
static void answer_merged(struct exchange *x, const struct jv *a, const struct jv *b, uint64_t limit)
{
	const struct jv_member *one = jv_first(a), *other = jv_first(b);
	struct jv *data = jv_array(x->arena);
	struct str last = STR("");

	while ((one || other) && jv_count(data) < limit) {
		bool is_one =
			one && (!other || str_cmp(jv_get_str(one->value, "id"), jv_get_str(other->value, "id")) > 0);
		const struct jv_member **next = is_one ? &one : &other;

		last = jv_get_str((*next)->value, "id");
		jv_push(x->arena, data, (*next)->value);
		*next = (*next)->next;
	}
	answer_wacht_page(x, data, limit, one || other ? last : STR(""));
}

void run_wacht_items(struct exchange *x)
{
	struct jv *items = jv_array(x->arena), *archive = jv_array(x->arena);
	struct asked asked;
	struct err err = {0};

	if (take_asked(x, LIMIT_DEFAULT, &asked, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	if (!asked.only_archived && !gather(x, &asked, false, items))
		return;
	if ((asked.only_archived || asked.with_archived) && !gather(x, &asked, true, archive))
		return;
	answer_merged(x, items, archive, asked.limit);
}

static bool thread_matches(struct exchange *x, const struct jv *thread, struct str words)
{
	const char *needle = arena_cstr(x->arena, words);

	return !words.len || strcasestr(arena_cstr(x->arena, jv_get_str(thread, "title")), needle) ||
	       strcasestr(arena_cstr(x->arena, jv_get_str(thread, "responsibility")), needle);
}

/* Threads are not archived, so none are when only those are asked for. */
void run_wacht_threads(struct exchange *x)
{
	struct jv *data = jv_array(x->arena);
	const struct jv *result;
	struct str next = STR("");
	struct asked asked;
	struct err err = {0};

	if (take_asked(x, BOARD_THREADS_MAX, &asked, &err) != 0) {
		answer_error(x, &err);
		return;
	}
	if (!exchange_call_tool(x, "list_threads", of_board(x), &result))
		return;
	for (const struct jv_member *m = jv_first(jv_get(result, "threads")); m && !asked.only_archived; m = m->next) {
		if (str_cmp(jv_get_str(m->value, "id"), asked.cursor) <= 0 || !thread_matches(x, m->value, asked.words))
			continue;
		if (jv_count(data) == asked.limit) {
			next = jv_get_str(jv_at(data, jv_count(data) - 1), "id");
			break;
		}
		jv_push(x->arena, data, wacht_thread_view(x, m->value));
	}
	answer_wacht_page(x, data, asked.limit, next);
}
