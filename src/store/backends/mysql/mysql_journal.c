/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals: rows of a table. Adding an entry and changing a file is one procedure, so both or neither happen, in one
 * round trip; one that was overtaken gets what it missed in the same answer.
 *
 * The server has nothing that wakes a client, so whoever waits for an entry looks for it, several times a second. A
 * wait on a lock of the server was rejected: it would hold a connection per waiter.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "store/backends/mysql/mysql.h"

/* Missed entries that the answer to an overtaken add brings along. */
#define NEWS_MAX (1 * MIB)
/* How often a waiter looks. */
#define LOOK_EVERY_NS 100000000

/* Rows have number and bytes in the columns 2 and 3. */
static void take_entries(struct arena *arena, const struct my_result *res, struct journal_page *page)
{
	page->entries = ARENA_ARRAY(arena, struct journal_entry, my_rows(res) + 1);
	for (size_t i = 0; i < my_rows(res); i++)
		if (!my_null(res, i, 2))
			page->entries[page->count++] = (struct journal_entry){(uint64_t)my_i64(res, i, 2),
									      arena_str(arena, my_str(res, i, 3))};
}

static int read_once(struct mysql_store *m, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		     struct journal_page *ret_page, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	struct journal_page page = {.first = 1};
	int r;

	my_sql_init(&sql, "CALL stead_news(");
	my_sql_str(&sql, journal.s);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, req->after < INT64_MAX / 2 ? (int64_t)req->after : INT64_MAX / 2);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, req->max_bytes < INT64_MAX ? (int64_t)req->max_bytes : INT64_MAX);
	my_sql_add(&sql, ")");
	r = my_call(m->pool, ctx, &sql, &res, err);
	if (r)
		return r;
	if (my_rows(res)) {
		page.first = (uint64_t)my_i64(res, 0, 0);
		page.last = (uint64_t)my_i64(res, 0, 1);
		take_entries(ctx->arena, res, &page);
	}
	*ret_page = page;
	if (req->after + 1 < page.first)
		return err_set(err, ERR_NOT_FOUND, "entries up to %llu were removed; begin at %llu",
			       (unsigned long long)page.first - 1, (unsigned long long)page.first);
	return 0;
}

int mysql_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err)
{
	struct mysql_store *m = mysql_of(s);
	int64_t now = clock_monotonic_ns();
	int64_t until = req->wait_ns > INT64_MAX - now ? INT64_MAX : now + req->wait_ns;
	int r = read_once(m, ctx, journal, req, ret_page, err);

	if (ctx->deadline_ns && ctx->deadline_ns < until)
		until = ctx->deadline_ns;
	while (r == 0 && ret_page->count == 0 && req->wait_ns > 0 && clock_monotonic_ns() < until) {
		int64_t left = until - clock_monotonic_ns();

		sql_pause(ctx, left < LOOK_EVERY_NS ? left : LOOK_EVERY_NS);
		if (clock_monotonic_ns() >= until) /* the wait is over, which is not the end of the call */
			break;
		r = ctx_check(ctx, err);
		if (r == 0)
			r = read_once(m, ctx, journal, req, ret_page, err);
	}
	return r;
}

static void add_call(struct wpath journal, struct wpath to, struct store_cond cond, const struct journal_add *add,
		     struct my_sql *sql)
{
	bool bytes = add->change == JOURNAL_WRITE || add->change == JOURNAL_APPEND;

	my_sql_init(sql, MY_CHANGE "stead_journal_add(");
	my_sql_str(sql, journal.s);
	my_sql_add(sql, ", ");
	my_sql_i64(sql, (int64_t)add->after);
	my_sql_add(sql, ", ");
	my_sql_str(sql, add->bytes);
	my_sql_add(sql, ", ");
	my_sql_i64(sql, (int64_t)add->change);
	my_sql_add(sql, ", ");
	my_sql_str(sql, to.s);
	my_sql_add(sql, ", ");
	my_sql_cond(sql, cond);
	my_sql_add(sql, ", ");
	my_sql_str(sql, add->version);
	my_sql_add(sql, ", ");
	my_sql_i64(sql, clock_real_ns());
	my_sql_add(sql, ", ");
	if (bytes)
		my_sql_str(sql, add->content);
	else
		my_sql_add(sql, "NULL");
	my_sql_add(sql, ", ");
	my_sql_i64(sql, sql_token_new());
	my_sql_add(sql, ", ");
	my_sql_i64(sql, (int64_t)NEWS_MAX);
	my_sql_add(sql, ", ");
	my_sql_str(sql, add->from.s);
	my_sql_add(sql, ", ");
	my_sql_str(sql, add->from_cond.version);
	my_sql_add(sql, ", ");
	my_sql_again(sql);
}

int mysql_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};
	enum sql_outcome outcome;
	int r;

	if (add->change == JOURNAL_GROUP)
		return err_set(err, ERR_UNSUPPORTED, "this store cannot make a group of changes in one step");
	if (add->content.len > JOURNAL_ENTRY_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the file has %zu bytes; at most %zu can change in one step with the journal",
			       add->content.len, (size_t)JOURNAL_ENTRY_MAX);
	add_call(journal, to, cond, add, &sql);
	r = my_change(mysql_of(s)->pool, ctx, &sql, &res, err);
	if (r)
		return r;
	outcome = (enum sql_outcome)my_i64(res, 0, 0);
	if (outcome == SQL_OVERTAKEN) {
		const struct my_result *news = my_result_next(res);

		ret_added->overtaken = true;
		ret_added->news.first = (uint64_t)my_i64(res, 0, 4);
		ret_added->news.last = (uint64_t)my_i64(res, 0, 5);
		if (news)
			take_entries(ctx->arena, news, &ret_added->news);
	}
	r = sql_outcome_check(outcome, my_str(res, 0, 1), to.s, add->change == JOURNAL_MOVE ? add->from_cond : cond,
			      err);
	if (r == 0 && add->change != JOURNAL_ALONE && add->change != JOURNAL_REMOVE)
		ret_added->stat = (struct store_stat){.kind = STORE_FILE,
						      .size = (uint64_t)my_i64(res, 0, 2),
						      .mtime_ns = my_i64(res, 0, 3),
						      .version = arena_str(ctx->arena, add->version)};
	return r;
}

int mysql_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err)
{
	MY_RESULT_SCOPE struct my_result *res = NULL;
	MY_SQL_SCOPE struct my_sql sql = {0};

	my_sql_init(&sql, MY_CHANGE "stead_journal_cut(");
	my_sql_str(&sql, journal.s);
	my_sql_add(&sql, ", ");
	my_sql_i64(&sql, before < INT64_MAX ? (int64_t)before : INT64_MAX);
	return my_change(mysql_of(s)->pool, ctx, &sql, &res, err);
}
