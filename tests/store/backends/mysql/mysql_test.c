/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the MySQL store beyond the contract: round trips, values that could be taken for SQL, what it says
   when something is wrong, and how its tables are made. */
#include <pthread.h>

#include "servers/proxy.h"
#include "store/backends/mysql/mysql_fix.h"
#include "store/backends/mysql/mysql_schema.h"
#include "store/journal.h"

#define FIX_SCOPE __attribute__((cleanup(fix_end)))

struct fix {
	struct conf c;
	struct proxy *proxy;
};

static void fix_end(struct fix *f)
{
	store_destroy(f->c.s);
	if (f->proxy)
		proxy_stop(f->proxy);
	arena_destroy(f->c.ctx.arena);
}

static struct fix proxied(void)
{
	const char *at = strchr(SERVER_URL, '@') + 1;
	struct fix f = {.c = {.ctx = {.arena = arena_new()}}};

	f.proxy = proxy_start(arena_cstr(f.c.ctx.arena, str_n(at, strcspn(at, "/"))));
	CHECK_OK(store_open_url(
			 arena_printf(f.c.ctx.arena, "mysql://stead@127.0.0.1:%u/stead", (unsigned)proxy_port(f.proxy)),
			 NULL, &f.c.s, &f.c.err),
		 f.c.err);
	CHECK_OK(store_remove(f.c.s, &f.c.ctx, WPATH_ROOT, true, ANY, NULL, &f.c.err), f.c.err);
	return f;
}

#define CHECK_TRIPS(f, want, call)                                                                                     \
	do {                                                                                                           \
		uint64_t before_ = store_mysql_trips((f).c.s);                                                         \
		proxy_forget((f).proxy);                                                                               \
		call;                                                                                                  \
		CHECK_INT(proxy_requests((f).proxy), want);                                                            \
		CHECK_INT(store_mysql_trips((f).c.s) - before_, want);                                                 \
	} while (0)

TEST(every_operation_is_one_round_trip)
{
	FIX_SCOPE struct fix f = proxied();
	struct conf *c = &f.c;
	struct store_list_req req = {.limit = 100};
	struct store_page page;
	struct str v;

	CHECK_TRIPS(f, 1, v = put(c, "d/a", "one"));
	CHECK_TRIPS(f, 1, get(c, "d/a"));
	CHECK_TRIPS(f, 1, stat_of(c, "d/a"));
	CHECK_TRIPS(f, 1, CHECK_OK(store_write(c->s, &c->ctx, P("d/a"), STR("2"), VERS(v), NULL, &c->err), c->err));
	CHECK_TRIPS(f, 1,
		    CHECK_ERR(store_write(c->s, &c->ctx, P("d/a"), STR("3"), VERS(v), NULL, &c->err), c->err,
			      ERR_CONFLICT));
	CHECK_TRIPS(f, 1, CHECK_OK(store_write(c->s, &c->ctx, P("d/b"), STR("x"), ABSENT, NULL, &c->err), c->err));
	CHECK_TRIPS(f, 1, CHECK_OK(store_append(c->s, &c->ctx, P("d/b"), STR("y"), ANY, NULL, &c->err), c->err));
	CHECK_TRIPS(f, 1, CHECK_OK(store_list(c->s, &c->ctx, P("d"), &req, &page, &c->err), c->err));
	CHECK_TRIPS(f, 1, CHECK_OK(store_copy(c->s, &c->ctx, P("d/a"), P("e"), ANY, NULL, &c->err), c->err));
	CHECK_TRIPS(f, 1, CHECK_OK(store_move(c->s, &c->ctx, P("d"), P("g"), ANY, ANY, NULL, &c->err), c->err));
	CHECK_TRIPS(f, 1, CHECK_OK(store_remove(c->s, &c->ctx, P("g"), true, ANY, NULL, &c->err), c->err));
	CHECK_GONE(c, "g");
}

/* And the connection is used again. */
TEST(a_read_of_what_is_not_there_or_of_a_directory_is_one_round_trip)
{
	FIX_SCOPE struct fix f = proxied();
	struct conf *c = &f.c;
	struct str bytes;

	put(c, "d/a", "one");
	CHECK_TRIPS(f, 1,
		    CHECK_ERR(store_read(c->s, &c->ctx, P("none"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err,
			      ERR_NOT_FOUND));
	CHECK_TRIPS(f, 1,
		    CHECK_ERR(store_read(c->s, &c->ctx, P("d"), STORE_WHOLE, 10, &bytes, NULL, &c->err), c->err,
			      ERR_INVALID));
	CHECK_TRIPS(f, 1, get(c, "d/a"));
}

TEST(a_write_with_its_journal_entry_is_one_round_trip)
{
	FIX_SCOPE struct fix f = proxied();
	struct conf *c = &f.c;
	struct journal_add add = {
		.bytes = STR("an entry"), .change = JOURNAL_WRITE, .content = STR("+"), .version = STR("v1")};
	struct journal_added added = {0};

	put(c, "warm", "up");
	CHECK_TRIPS(f, 1,
		    CHECK_OK(store_journal_add(c->s, &c->ctx, P("log"), P("t"), ANY, &add, &added, &c->err), c->err));
	add.bytes = STR("another");
	CHECK_TRIPS(f, 1,
		    CHECK_ERR(store_journal_add(c->s, &c->ctx, P("log"), P("t"), ANY, &add, &added, &c->err), c->err,
			      ERR_CONFLICT));
	CHECK(added.overtaken);
	CHECK_STR(added.news.entries[0].bytes, STR("an entry"));
}

TEST(values_are_never_taken_for_sql)
{
	static const char *const texts[] = {"'",  "''", "\\'", "a'); DROP TABLE stead_files; -- ",
					    "\\", "%_", "/*",  "\x80\xff'\\"};
	struct conf c = {.s = mysql_empty("prefix=sql"), .ctx = {.arena = arena_new()}};
	char zeros[300] = {0};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		put(&c, "f", texts[i]);
		CHECK_STR(get(&c, "f"), str_of(texts[i]));
		if (utf8_valid(str_of(texts[i])) && !strchr(texts[i], '/') && i != 6) {
			put(&c, texts[i], "named so");
			CHECK_STR(get(&c, texts[i]), STR("named so"));
		}
	}
	zeros[7] = '\'';
	CHECK_OK(store_write(c.s, &c.ctx, P("f"), str_n(zeros, sizeof zeros), ANY, NULL, &c.err), c.err);
	CHECK_STR(get(&c, "f"), str_n(zeros, sizeof zeros));
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static void *open_it(void *arg)
{
	struct err err;
	struct store *s;

	(void)arg;
	if (store_open_url(str_of(SERVER_URL), NULL, &s, &err) != 0)
		return xstrndup(str_of(err.msg));
	store_destroy(s);
	return NULL;
}

static void run_sql(const char *sql)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct my_config config;
	struct my_link *link;
	struct err err;

	CHECK_OK(my_config_parse(str_of(SERVER_URL), NULL, &config, &err), err);
	CHECK_OK(my_open(&config, &ctx, &link, &err), err);
	CHECK_OK(my_exec(link, &ctx, str_of(sql), NULL, &err), err);
	my_close(link);
	my_config_release(&config);
}

TEST(many_that_open_a_new_database_together_make_its_tables_once)
{
	pthread_t threads[8];

	store_destroy(mysql_empty("pool=1"));
	run_sql("DROP TABLE stead_meta, stead_files; DROP PROCEDURE stead_write");
	for (size_t i = 0; i < 8; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, open_it, NULL), 0);
	for (size_t i = 0; i < 8; i++) {
		void *said = NULL;

		pthread_join(threads[i], &said);
		if (said)
			TEST_FAIL("%s", (char *)said);
	}
	store_destroy(mysql_empty("pool=1"));
}

static void refuses(const char *url, const char *says, enum err_kind kind)
{
	struct store *s;
	struct err err;

	CHECK_ERR(store_open_url(str_of(url), NULL, &s, &err), err, kind);
	CHECK_HAS(str_of(err.msg), str_of(says));
}

TEST(what_is_wrong_is_said_in_one_sentence)
{
	char url[300];
	const char *at = strchr(SERVER_URL, '@') + 1;

	refuses("mysql://ann:secret@h/db", "put it into STEAD_MYSQL_PASSWORD", ERR_INVALID);
	refuses("mysql://h", "names no database", ERR_INVALID);
	refuses("mariadb://h/db?colour=red", "\"colour\" is not a parameter", ERR_INVALID);
	refuses("mysql://h:99999/db", "give a number from 1 to 65535", ERR_INVALID);
	refuses("mysql://stead@127.0.0.1:1/stead", "cannot be reached", ERR_UNAVAILABLE);
	refuses(mysql_env("STEAD_TEST_MARIADB_LOCKED"), "set the password in STEAD_MYSQL_PASSWORD",
		ERR_UNAUTHENTICATED);
	snprintf(url, sizeof url, "mysql://stead@%.*s/nosuch", (int)strcspn(at, "/"), at);
	refuses(url, "may not use this database", ERR_DENIED);
	run_sql("UPDATE stead_meta SET version = 99");
	refuses(SERVER_URL, "use a newer Stead", ERR_UNSUPPORTED);
	run_sql("UPDATE stead_meta SET version = 1");
}

TEST(a_password_is_taken_from_the_environment)
{
	struct store *s;
	struct err err;

	setenv("STEAD_MYSQL_PASSWORD", "open sesame", 1);
	CHECK_OK(store_open_url(str_of(mysql_env("STEAD_TEST_MARIADB_LOCKED")), NULL, &s, &err), err);
	unsetenv("STEAD_MYSQL_PASSWORD");
	store_destroy(s);
}
