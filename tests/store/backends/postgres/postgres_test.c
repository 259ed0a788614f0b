/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the PostgreSQL store beyond the contract: round trips, what it says when something is wrong, how a
   schema is brought up, and that journals wake their waiters. */
#include <pthread.h>

#include "revisions/revisions.h"
#include "servers/proxy.h"
#include "store/backends/postgres/postgres_fix.h"
#include "store/backends/postgres/postgres_schema.h"
#include "store/journal.h"

#define FIX_SCOPE __attribute__((cleanup(fix_end)))

struct fix {
	struct conf c;
	struct store *below; /* what c.s is a view of, if it is */
	struct proxy *proxy;
};

static void fix_end(struct fix *f)
{
	store_destroy(f->c.s);
	store_destroy(f->below);
	if (f->proxy)
		proxy_stop(f->proxy);
	arena_destroy(f->c.ctx.arena);
}

static struct fix fix_new(const char *params)
{
	struct fix f = {.c = {.ctx = {.arena = arena_new()}}};

	f.c.s = postgres_empty(params);
	return f;
}

/* "127.0.0.1:port" of the server. */
static const char *server_address(void)
{
	static char address[80];
	const char *at = strchr(postgres_env("STEAD_TEST_POSTGRES"), '@') + 1;

	snprintf(address, sizeof(address), "%.*s", (int)strcspn(at, "/"), at);
	return address;
}

static struct fix proxied(const char *params)
{
	struct fix f = {.c = {.ctx = {.arena = arena_new()}}, .proxy = proxy_start(server_address())};
	struct str url = arena_printf(f.c.ctx.arena, "postgres://stead@127.0.0.1:%u/stead?%s&sslmode=disable",
				      (unsigned)proxy_port(f.proxy), params);

	CHECK_OK(store_open_url(url, NULL, &f.c.s, &f.c.err), f.c.err);
	CHECK_OK(store_remove(f.c.s, &f.c.ctx, WPATH_ROOT, true, ANY, NULL, &f.c.err), f.c.err);
	return f;
}

/* A statement as the owner of the database. */
static void as_owner(const char *sql)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct pg_config config;
	struct pg_link *link;
	struct err err;

	CHECK_OK(pg_config_parse(arena_printf(arena, "postgres://owner@%s/stead", server_address()), NULL, &config,
				 &err),
		 err);
	CHECK_OK(pg_open(&config, &ctx, &link, &err), err);
	CHECK_OK(pg_exec_text(link, &ctx, sql, NULL, &err), err);
	pg_close(link);
	pg_config_release(&config);
}

/* Round trips. */

#define CHECK_TRIPS(f, want, call)                                                                                     \
	do {                                                                                                           \
		uint64_t told_ = store_postgres_trips((f).c.s);                                                        \
		proxy_forget((f).proxy);                                                                               \
		call;                                                                                                  \
		CHECK_INT(proxy_requests((f).proxy), want);                                                            \
		CHECK_INT(store_postgres_trips((f).c.s) - told_, want);                                                \
	} while (0)

TEST(every_operation_is_one_round_trip)
{
	FIX_SCOPE struct fix f = proxied("schema=trips");
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

TEST(reading_one_entry_of_a_long_journal_fetches_one_row)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct pg_config config;
	struct pg_link *link;
	struct pg_result *res;
	struct err err;

	store_destroy(postgres_empty("schema=rows"));
	CHECK_OK(pg_config_parse(str_of(postgres_url("schema=rows")), NULL, &config, &err), err);
	CHECK_OK(pg_open(&config, &ctx, &link, &err), err);
	CHECK_OK(pg_exec_text(link, &ctx,
			      "INSERT INTO rows.stead_journals (path, first, last) VALUES ('log', 1, 5000);"
			      "INSERT INTO rows.stead_entries SELECT j.id, n, 'entry' FROM rows.stead_journals j, "
			      "generate_series(1, 5000) n",
			      NULL, &err),
		 err);
	/* in a transaction of its own, since the counters are those of the transaction */
	CHECK_OK(pg_exec_text(link, &ctx,
			      "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
			      "SELECT count(*) FROM rows.stead_journals j, rows.stead_news(j.id, 100, 1) n;"
			      "SELECT idx_tup_fetch::text FROM pg_stat_xact_user_tables WHERE schemaname = 'rows' AND "
			      "relname = 'stead_entries'",
			      &res, &err),
		 err);
	CHECK_STR(pg_str(res, 0, 0), STR("1"));
	pg_result_free(res);
	pg_close(link);
	pg_config_release(&config);
}

TEST(a_write_with_its_journal_entry_is_one_round_trip_and_so_is_being_overtaken)
{
	FIX_SCOPE struct fix f = proxied("schema=trips");
	struct conf *c = &f.c;
	struct journal_add add = {
		.bytes = STR("entry one"), .change = JOURNAL_WRITE, .content = STR("new"), .version = STR("v1")};
	struct journal_read req = {.max_bytes = 1000};
	struct journal_page page;
	struct journal_added added;

	CHECK_TRIPS(
		f, 1,
		CHECK_OK(store_journal_add(c->s, &c->ctx, P("log"), P("a"), ABSENT, &add, &added, &c->err), c->err));
	CHECK_STR(stat_of(c, "a").version, STR("v1"));
	add.bytes = STR("another");
	add.version = STR("v2");
	CHECK_TRIPS(f, 1,
		    CHECK_ERR(store_journal_add(c->s, &c->ctx, P("log"), P("a"), ANY, &add, &added, &c->err), c->err,
			      ERR_CONFLICT));
	CHECK(added.overtaken);
	CHECK_INT(added.news.count, 1);
	CHECK_STR(added.news.entries[0].bytes, STR("entry one"));
	CHECK_TRIPS(f, 1, CHECK_OK(store_journal_read(c->s, &c->ctx, P("log"), &req, &page, &c->err), c->err));
	CHECK_STR(get(c, "a"), STR("new"));
}

TEST(a_conditional_write_with_its_revision_is_one_round_trip_and_a_read_is_one)
{
	FIX_SCOPE struct fix f = proxied("schema=trips");
	struct conf *c = &f.c;
	struct revisions_opts opts = {.journal = true, .own = P(".stead/rev")};
	struct store *meta = store_prefix_new(store_share(c->s), P(".stead/rev")), *rev;
	struct str v;
	uint64_t got[4];

	CHECK_OK(store_revisions_open(store_share(c->s), meta, opts, &c->ctx, &rev, &c->err), c->err);
	f.below = f.c.s;
	f.c.s = rev;
	v = put(c, "a", "one");
	for (int i = 0; i < 4; i++) {
		proxy_forget(f.proxy);
		if (i == 0)
			CHECK_OK(store_write(rev, &c->ctx, P("a"), STR("two"), VERS(v), NULL, &c->err), c->err);
		else if (i == 1)
			get(c, "a");
		else if (i == 2)
			CHECK_OK(store_append(rev, &c->ctx, P("a"), STR("+"), ANY, NULL, &c->err), c->err);
		else
			CHECK_OK(store_write(rev, &c->ctx, P("b"), STR("x"), ABSENT, NULL, &c->err), c->err);
		got[i] = proxy_requests(f.proxy);
	}
	printf("# conditional write %d, read %d, append %d, create %d\n", (int)got[0], (int)got[1], (int)got[2],
	       (int)got[3]);
	CHECK_INT(got[0], 1);
	CHECK_INT(got[1], 1);
}

/* Large files. */

TEST(a_file_of_many_chunks_is_appended_to_copied_and_read_by_ranges)
{
	FIX_SCOPE struct fix f = fix_new("schema=large");
	struct conf *c = &f.c;
	struct stream st = {.total = 20 * MIB + 77};
	struct source source = stream_source(&st);
	struct str bytes;

	CHECK_OK(store_write_stream(c->s, &c->ctx, P("big"), &source, ANY, NULL, &c->err), c->err);
	for (int i = 0; i < 40; i++)
		CHECK_OK(store_append(c->s, &c->ctx, P("big"), STR("tail"), ANY, NULL, &c->err), c->err);
	CHECK_OK(store_copy(c->s, &c->ctx, P("big"), P("copy"), ANY, NULL, &c->err), c->err);
	CHECK_OK(store_remove(c->s, &c->ctx, P("big"), false, ANY, NULL, &c->err), c->err);
	CHECK_INT(stat_of(c, "copy").size, 20 * MIB + 77 + 160);
	for (uint64_t at = 0; at < 20 * MIB; at += 3 * MIB - 5) {
		CHECK_OK(store_read(c->s, &c->ctx, P("copy"), (struct store_range){at, 4096}, 4096, &bytes, NULL,
				    &c->err),
			 c->err);
		CHECK_INT(bytes.len, at + 4096 <= 20 * MIB + 237 ? 4096 : 20 * MIB + 237 - at);
		for (size_t i = 0; i < bytes.len && at + i < 20 * MIB + 77; i++)
			CHECK_INT(bytes.ptr[i], stream_byte(at + i));
	}
	bytes = get(c, "copy");
	CHECK_STR(str_from(bytes, bytes.len - 8), STR("tailtail"));
}

TEST(a_large_append_goes_behind_what_is_there)
{
	FIX_SCOPE struct fix f = fix_new("schema=large");
	struct conf *c = &f.c;
	struct stream st = {.total = 3 * MIB + 5};
	struct source source = stream_source(&st);
	struct str bytes;

	put(c, "a", "head");
	CHECK_OK(store_append_stream(c->s, &c->ctx, P("a"), &source, ANY, NULL, &c->err), c->err);
	CHECK_OK(store_append(c->s, &c->ctx, P("a"), STR("end"), ANY, NULL, &c->err), c->err);
	bytes = get(c, "a");
	CHECK_INT(bytes.len, 3 * MIB + 5 + 7);
	CHECK_STR(str_first(bytes, 4), STR("head"));
	for (size_t i = 0; i < 3 * MIB + 5; i++)
		if (bytes.ptr[i + 4] != stream_byte(i))
			TEST_FAIL("byte %zu is wrong", i);
	CHECK_STR(str_from(bytes, bytes.len - 3), STR("end"));
}

static void *write_large_turns(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf c = {.s = arg, .ctx = {.arena = arena}};
	char *bytes = xmalloc(3 * MIB);

	for (int i = 0; i < 12; i++) {
		memset(bytes, 'a' + i % 2, 3 * MIB);
		if (store_write(c.s, &c.ctx, P("mix"), str_n(bytes, 3 * MIB), ANY, NULL, &c.err))
			break;
	}
	free(bytes);
	return NULL;
}

TEST(a_reader_never_sees_a_mix_of_two_large_files)
{
	FIX_SCOPE struct fix f = fix_new("schema=large");
	pthread_t writer;
	int r = 0;

	put(&f.c, "mix", "b");
	pthread_create(&writer, NULL, write_large_turns, f.c.s);
	for (int i = 0; i < 40; i++) {
		struct str bytes = get(&f.c, "mix");

		for (size_t k = 1; k < bytes.len; k++)
			r += bytes.ptr[k] != bytes.ptr[0];
		arena_reset(f.c.ctx.arena);
	}
	pthread_join(writer, NULL);
	CHECK_INT(r, 0);
}

/* Journals wake. */

static void *add_one(void *arg)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct conf c = {.s = postgres_open("schema=wake"), .ctx = {.arena = arena}};
	struct journal_add add = {.bytes = STR("news")};
	struct journal_added added;
	const struct timespec pause = {.tv_nsec = 300000000};

	nanosleep(&pause, NULL); /* so that the other most likely waits; both orders must work */
	*(int *)arg = store_journal_add(c.s, &c.ctx, P("log"), WPATH_ROOT, ANY, &add, &added, &c.err);
	store_destroy(c.s);
	return NULL;
}

TEST(who_waits_for_a_journal_is_woken_by_another_process_entry)
{
	FIX_SCOPE struct fix f = fix_new("schema=wake");
	struct journal_read req = {.max_bytes = 1000, .wait_ns = 600000000000};
	struct journal_page page;
	uint64_t trips = store_postgres_trips(f.c.s);
	pthread_t adder;
	int added = -1;

	pthread_create(&adder, NULL, add_one, &added);
	CHECK_OK(store_journal_read(f.c.s, &f.c.ctx, P("log"), &req, &page, &f.c.err), f.c.err);
	pthread_join(adder, NULL);
	CHECK_INT(added, 0);
	CHECK_INT(page.count, 1);
	CHECK_STR(page.entries[0].bytes, STR("news"));
	CHECK(store_postgres_trips(f.c.s) - trips <= 6); /* it did not look again and again */
}

/* The schema. */

static void drop_schema(const char *name)
{
	ARENA_SCOPE struct arena *arena = arena_new();

	as_owner(arena_printf(arena, "DROP SCHEMA IF EXISTS %s CASCADE", name).ptr);
}

TEST(a_schema_of_version_1_is_brought_up_with_what_is_in_it)
{
	struct conf c = {.ctx = {.arena = arena_new()}};
	struct pg_config config;
	struct pg_link *link;

	drop_schema("old");
	CHECK_OK(pg_config_parse(str_of(postgres_url("schema=old")), NULL, &config, &c.err), c.err);
	CHECK_OK(pg_open(&config, &c.ctx, &link, &c.err), c.err);
	CHECK_OK(pg_migrate_to(link, &c.ctx, &config, 1, &c.err), c.err);
	CHECK_OK(pg_exec_text(link, &c.ctx,
			      "INSERT INTO old.stead_files VALUES ('d/a', 'v7', 3, 12, NULL, NULL, 'abc');"
			      "INSERT INTO old.stead_journals (path, first, last) VALUES ('log', 1, 1);"
			      "INSERT INTO old.stead_entries SELECT id, 1, 'one' FROM old.stead_journals",
			      NULL, &c.err),
		 c.err);
	pg_close(link);
	pg_config_release(&config);
	c.s = postgres_open("schema=old");
	CHECK_STR(get(&c, "d/a"), STR("abc"));
	CHECK_STR(stat_of(&c, "d/a").version, STR("v7"));
	CHECK_OK(store_append(c.s, &c.ctx, P("d/a"), STR("d"), ANY, NULL, &c.err), c.err);
	CHECK_STR(get(&c, "d/a"), STR("abcd"));
	store_destroy(c.s);
	c.s = postgres_open("schema=old"); /* a second time there is nothing to do */
	CHECK_TREE(&c, "d/a");
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

TEST(a_schema_of_a_newer_version_is_refused)
{
	struct store *s = NULL;
	struct err err;

	drop_schema("newer");
	store_destroy(postgres_open("schema=newer"));
	as_owner("UPDATE newer.stead_meta SET version = 99");
	CHECK_ERR(store_open_url(str_of(postgres_url("schema=newer")), NULL, &s, &err), err, ERR_UNSUPPORTED);
	CHECK_HAS(str_of(err.msg), STR("has version 99, but this Stead knows versions up to 5; use a newer Stead"));
}

static void *open_one(void *arg)
{
	struct store *s = NULL;
	struct err err;

	*(int *)arg = store_open_url(str_of(postgres_url("schema=together")), NULL, &s, &err);
	if (*(int *)arg)
		printf("# %s\n", err.msg);
	store_destroy(s);
	return NULL;
}

TEST(many_that_open_a_new_schema_together_make_it_once)
{
	pthread_t threads[8];
	int results[8], r = 0;

	drop_schema("together");
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, open_one, &results[i]);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		r += results[i] != 0;
	}
	CHECK_INT(r, 0);
}

/* Sentences. */

static void check_refused(const char *url, enum err_kind kind, const char *says)
{
	struct store *s = NULL;
	struct err err = {0};

	CHECK_ERR(store_open_url(str_of(url), NULL, &s, &err), err, kind);
	CHECK_HAS(str_of(err.msg), str_of(says));
	CHECK_LACKS(str_of(err.msg), STR("sesame"));
}

TEST(what_is_wrong_with_a_server_is_said_in_one_sentence)
{
	ARENA_SCOPE struct arena *a = arena_new();
	const char *at = server_address();

	check_refused(postgres_url("options=-c%20default_transaction_read_only%3Don&schema=ro"), ERR_DENIED,
		      "the server is read-only");
	check_refused(arena_printf(a, "postgres://stead@%s/no_such", at).ptr, ERR_UNAVAILABLE,
		      "there is no such database");
	check_refused(arena_printf(a, "postgres://nobody_here@%s/stead", at).ptr, ERR_UNAUTHENTICATED,
		      "check the user in the URL");
	check_refused("postgres://stead@127.0.0.1:1/stead", ERR_UNAVAILABLE, "check the host and port");
	check_refused(postgres_url("sslmode=verify-full&sslrootcert=/dev/null"), ERR_UNAVAILABLE, "TLS failed");
	unsetenv("PGPASSWORD");
	check_refused(postgres_env("STEAD_TEST_POSTGRES_LOCKED"), ERR_UNAUTHENTICATED, "set PGPASSWORD");
	setenv("STEAD_POSTGRES_PASSWORD", "wrong sesame", 1);
	check_refused(postgres_env("STEAD_TEST_POSTGRES_LOCKED"), ERR_UNAUTHENTICATED, "the password was refused");
	setenv("STEAD_POSTGRES_PASSWORD", "open sesame", 1);
	check_refused(postgres_env("STEAD_TEST_POSTGRES_LOCKED"), ERR_DENIED, "grant it rights");
	as_owner("ALTER ROLE locked CONNECTION LIMIT 0");
	check_refused(postgres_env("STEAD_TEST_POSTGRES_LOCKED"), ERR_UNAVAILABLE, "lower pool=");
	as_owner("ALTER ROLE locked CONNECTION LIMIT -1");
	unsetenv("STEAD_POSTGRES_PASSWORD");
}

TEST(what_is_wrong_with_a_url_is_said_in_one_sentence)
{
	check_refused("postgres://stead:sesame@127.0.0.1/stead", ERR_INVALID, "has a password");
	check_refused("postgres://127.0.0.1/stead?colour=red", ERR_INVALID, "colour");
	check_refused("postgres://127.0.0.1/stead?schema=a%22b", ERR_INVALID, "lower-case letters");
	check_refused("postgres://127.0.0.1/stead?prefix=../x", ERR_INVALID, "..");
	check_refused("postgres://127.0.0.1/stead?pool=0", ERR_INVALID, "1 to 1000");
	check_refused("postgres://127.0.0.1/stead?timeout=%zz", ERR_INVALID, "percent-encoded");
}

TEST(a_full_disk_on_the_server_is_said_so)
{
	struct pg_config config = {.server = (char *)"PostgreSQL at h/d"};
	struct err err = {0};

	CHECK_INT(pg_error(&config, "53100", "could not extend file", &err), -ERR_UNAVAILABLE);
	CHECK_STR(str_of(err.msg),
		  STR("PostgreSQL at h/d: the disk of the server is full; free space there, then try again"));
}

TEST(a_password_is_taken_from_the_environment)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct store *s = NULL;
	struct err err;

	as_owner("GRANT CREATE ON DATABASE stead TO locked");
	setenv("STEAD_POSTGRES_PASSWORD", "open sesame", 1);
	CHECK_OK(store_open_url(arena_printf(arena, "%s?schema=locked", postgres_env("STEAD_TEST_POSTGRES_LOCKED")),
				NULL, &s, &err),
		 err);
	store_destroy(s);
	unsetenv("STEAD_POSTGRES_PASSWORD");
	as_owner("REVOKE CREATE ON DATABASE stead FROM locked");
}
