/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal is a stream whose entries have the ids 1-0, 2-0, 3-0 …; a hash next to it holds how many were cut
 * away, so its length gives its last number, and asking for that copies nothing. Adding, with the change of the file
 * that the entry is about, is one script; whoever was overtaken gets what it missed in the same answer. Waiting is
 * XREAD BLOCK.
 */
#include "base/clock.h"
#include "store/backends/redis/redis.h"
#include "store/journal.h"

#define NEWS_BYTES     (1 * MIB)
#define NEWS_TEXT      "1048576"
#define WAIT_STEP_NS   INT64_C(5000000000) /* then the journal is looked at again: it may have been removed */
#define JOURNAL_ANSWER (JOURNAL_ENTRY_MAX + NEWS_BYTES)

static void fill_page(struct ctx *ctx, const struct resp_value *v, uint64_t after, struct journal_page *ret)
{
	*ret = (struct journal_page){.first = redis_number(v, 1), .last = redis_number(v, 2)};
	if (after + 1 < ret->first)
		after = ret->first - 1;
	ret->count = v->count > 3 ? v->count - 3 : 0;
	ret->entries = ARENA_ARRAY(ctx->arena, struct journal_entry, ret->count);
	for (size_t i = 0; i < ret->count; i++)
		ret->entries[i] = (struct journal_entry){.number = after + 1 + i, .bytes = redis_item(v, i + 3)};
}

static int read_now(struct redis *rd, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		    struct journal_page *ret_page, struct err *err)
{
	size_t max = req->max_bytes ? req->max_bytes : 1;
	struct str args[REDIS_BEFORE + 3] = {
		[REDIS_BEFORE] = journal.s,
		arena_printf(ctx->arena, "%llu", (unsigned long long)req->after),
		arena_printf(ctx->arena, "%zu", max),
	};
	struct resp_value v;
	int r = redis_script(rd, ctx, REDIS_JOURNAL_READ, NULL, args, REDIS_BEFORE + 3, max + JOURNAL_ANSWER, &v, err);

	if (r)
		return r;
	fill_page(ctx, &v, req->after, ret_page);
	if (redis_says(&v, "cut"))
		return err_set(err, ERR_NOT_FOUND, "entries before %llu are no longer kept; begin there",
			       (unsigned long long)ret_page->first);
	return redis_says(&v, "ok") ? 0 : redis_refused(&v, (struct store_cond){0}, err);
}

/* Waits until there is an entry after `after`, or the time is up. */
static int wait_for_entry(struct redis *rd, struct ctx *ctx, struct wpath journal, uint64_t after, int64_t wait_ns,
			  struct err *err)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str args[] = {STR("XREAD"),
			     STR("COUNT"),
			     STR("1"),
			     STR("BLOCK"),
			     arena_printf(arena, "%lld", (long long)(wait_ns / NS_PER_MS + 1)),
			     STR("STREAMS"),
			     redis_key(rd, arena, "j:", journal.s),
			     arena_printf(arena, "%llu-0", (unsigned long long)after)};
	struct resp_conn *conn;
	struct resp_value v;
	int r = resp_take(rd->client, ctx, true, &conn, err);

	if (r)
		return r;
	resp_put(conn, args, 8);
	r = resp_send(conn, ctx, err);
	if (r == 0)
		r = resp_get(conn, ctx, arena, JOURNAL_ANSWER, wait_ns, &v, err);
	if (r == 0 && v.type == RESP_ERROR)
		r = resp_error(v.s, err);
	resp_give(rd->client, conn);
	return r;
}

int redis_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err)
{
	struct redis *rd = redis_of(s);
	int64_t left = req->wait_ns;
	int r = read_now(rd, ctx, journal, req, ret_page, err);

	while (r == 0 && ret_page->count == 0 && left > 0) {
		int64_t step = left < WAIT_STEP_NS ? left : WAIT_STEP_NS;

		r = wait_for_entry(rd, ctx, journal, req->after, step, err);
		if (r == 0)
			r = read_now(rd, ctx, journal, req, ret_page, err);
		left -= step;
	}
	return r;
}

static struct str change_word(enum journal_change change)
{
	switch (change) {
	case JOURNAL_WRITE:
		return STR("w");
	case JOURNAL_APPEND:
		return STR("a");
	case JOURNAL_REMOVE:
		return STR("r");
	case JOURNAL_MOVE:
		return STR("m");
	case JOURNAL_ALONE:
	case JOURNAL_GROUP:
		break;
	}
	return STR("");
}

static int overtaken(struct ctx *ctx, const struct resp_value *v, const struct journal_add *add,
		     struct journal_added *ret_added, struct err *err)
{
	ret_added->overtaken = true;
	fill_page(ctx, v, add->after, &ret_added->news);
	return err_set(err, ERR_CONFLICT, "another writer added entry %llu first", (unsigned long long)add->after + 1);
}

#define GROUP_BEFORE (REDIS_BEFORE + 9)
#define GROUP_ARGS   6

/* The six arguments of one change. */
static int item_args(struct redis *rd, struct ctx *ctx, const struct journal_item *item, int64_t mtime,
		     struct str args[GROUP_ARGS], struct err *err)
{
	struct redis_change *ch = ARENA_NEW(ctx->arena, struct redis_change), *from = NULL;
	bool is_write = item->change == JOURNAL_WRITE, is_move = item->change == JOURNAL_MOVE;
	int r = redis_change_init(ch, item->cond, is_write ? item->version : STR(""), mtime, err);

	args[0] = change_word(item->change);
	args[1] = item->path.s;
	args[2] = redis_cond_kind(item->cond);
	args[3] = ch->want_arg;
	args[4] = args[5] = STR("");
	if (r == 0 && is_write) {
		char *data = arena_alloc_raw(ctx->arena, REDIS_HEAD + item->content.len);

		redis_change_bytes(rd, ctx, ch, item->version, item->content, 0);
		memcpy(data, ch->head, REDIS_HEAD);
		if (item->content.len)
			memcpy(data + REDIS_HEAD, item->content.ptr, item->content.len);
		args[4] = str_n(data, REDIS_HEAD + item->content.len);
	}
	if (r == 0 && is_move) {
		from = ARENA_NEW(ctx->arena, struct redis_change);
		r = redis_change_init(from, item->from_cond, STR(""), 0, err);
		args[4] = item->from.s;
		args[5] = from->want_arg;
	}
	return r;
}

static int add_group(struct redis *rd, struct ctx *ctx, struct wpath journal, const struct journal_add *add,
		     struct journal_added *ret_added, struct err *err)
{
	size_t count = GROUP_BEFORE + GROUP_ARGS * add->item_count, failed;
	struct str *args = ARENA_ARRAY(ctx->arena, struct str, count);
	int64_t mtime = clock_real_ns();
	struct redis_change ch;
	struct resp_value v;
	int r = redis_change_init(&ch, (struct store_cond){0}, STR(""), mtime, err);

	args[REDIS_BEFORE + 1] = journal.s;
	args[REDIS_BEFORE + 2] = rd->journals;
	args[REDIS_BEFORE + 3] = redis_key(rd, ctx->arena, "j:", journal.s);
	args[REDIS_BEFORE + 4] = arena_printf(ctx->arena, "%llu-0", (unsigned long long)add->after + 1);
	args[REDIS_BEFORE + 5] = add->bytes;
	args[REDIS_BEFORE + 6] = STR(NEWS_TEXT);
	args[REDIS_BEFORE + 7] = str_n(ch.head, REDIS_HEAD);
	args[REDIS_BEFORE + 8] = arena_printf(ctx->arena, "%llu", (unsigned long long)add->after);
	for (size_t i = 0; r == 0 && i < add->item_count; i++) {
		ret_added->failed = i;
		r = item_args(rd, ctx, &add->items[i], mtime, args + GROUP_BEFORE + GROUP_ARGS * i, err);
	}
	if (r == 0)
		r = redis_script(rd, ctx, REDIS_JOURNAL_GROUP, &ch, args, count, JOURNAL_ANSWER, &v, err);
	if (r || redis_says(&v, "ok"))
		return r;
	if (redis_says(&v, "overtaken"))
		return overtaken(ctx, &v, add, ret_added, err);
	failed = (size_t)redis_number(&v, 2);
	ret_added->failed = failed < add->item_count ? failed : 0;
	return redis_refused(&v, add->items[ret_added->failed].cond, err);
}

int redis_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err)
{
	struct redis *rd = redis_of(s);
	int64_t mtime = clock_real_ns();
	bool write = add->change == JOURNAL_WRITE, move = add->change == JOURNAL_MOVE;
	struct redis_change ch, from_ch;
	struct str args[REDIS_BEFORE + 18] = {
		[REDIS_BEFORE + 7] = journal.s,
		change_word(add->change),
		rd->journals,
		redis_key(rd, ctx->arena, "j:", journal.s),
		arena_printf(ctx->arena, "%llu-0", (unsigned long long)add->after + 1),
		add->bytes,
		STR(NEWS_TEXT),
		str_n(ch.head, REDIS_HEAD),
		arena_printf(ctx->arena, "%llu", (unsigned long long)add->after),
		add->from.s,
	};
	struct resp_value v;
	int r;

	if (add->change == JOURNAL_GROUP)
		return add_group(rd, ctx, journal, add, ret_added, err);
	if (add->change != JOURNAL_ALONE && add->content.len > REDIS_JOURNAL_STEP)
		return err_set(err, ERR_UNSUPPORTED,
			       "more than %zu bytes cannot be written in one step with a journal entry",
			       (size_t)REDIS_JOURNAL_STEP);
	r = redis_change_init(&ch, cond, move ? STR("") : add->version, mtime, err);
	if (r == 0)
		r = redis_change_init(&from_ch, add->from_cond, STR(""), 0, err);
	args[REDIS_BEFORE + 17] = from_ch.want_arg;
	if (r == 0 && write) {
		redis_change_bytes(rd, ctx, &ch, add->version, add->content, 0);
		redis_change_simple(&ch, cond);
	}
	if (r == 0) {
		redis_file_args(rd, ctx, to, cond, &ch, write, add->content, args);
		r = redis_script(rd, ctx, REDIS_JOURNAL_ADD, &ch, args, REDIS_BEFORE + (move ? 18 : 16), JOURNAL_ANSWER,
				 &v, err);
	}
	if (r)
		return r;
	if (redis_says(&v, "overtaken"))
		return overtaken(ctx, &v, add, ret_added, err);
	if (!redis_says(&v, "ok"))
		return redis_refused(&v, move ? add->from_cond : cond, err);
	if (write || move || add->change == JOURNAL_APPEND)
		ret_added->stat =
			(struct store_stat){.kind = STORE_FILE,
					    .size = v.type == RESP_INT ? add->content.len : redis_number(&v, 1),
					    .mtime_ns = move ? (int64_t)redis_number(&v, 2) : mtime,
					    .version = add->version};
	return 0;
}

int redis_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	struct redis *rd = redis_of(s);
	struct str args[REDIS_BEFORE + 2] = {
		[REDIS_BEFORE] = journal.s,
		arena_printf(ctx->arena, "%llu", (unsigned long long)before),
	};
	struct resp_value v;

	return redis_script(rd, ctx, REDIS_JOURNAL_CUT, NULL, args, REDIS_BEFORE + 2, REDIS_META_MAX, &v, err);
}
