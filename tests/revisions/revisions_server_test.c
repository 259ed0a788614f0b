/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revisions on a real server, with replicas in threads and in processes of their own. The server is the one that
 * tests/servers/with started: Redis, PostgreSQL or S3.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "revisions/revisions_journal_facts.h"

#define WORKERS 8

/* A place that no other test has. Connections that are opened with the same name see the same files. */
static const char *place_new(void)
{
	static char name[64];
	static unsigned count;

	snprintf(name, sizeof(name), "rev%d-%u", (int)getpid(), ++count);
	return name;
}

static struct store *server_open(void *place)
{
	const char *redis = getenv("STEAD_TEST_REDIS"), *postgres = getenv("STEAD_TEST_POSTGRES");
	const char *s3 = getenv("STEAD_TEST_S3"), *mariadb = getenv("STEAD_TEST_MARIADB");
	char url[600];
	struct store *s;
	struct err err;

	if (redis) {
		snprintf(url, sizeof(url), "%s?prefix=%s", redis, (const char *)place);
	} else if (postgres || mariadb) {
		snprintf(url, sizeof(url), "%s?prefix=%s", postgres ? postgres : mariadb, (const char *)place);
	} else if (s3) {
		setenv("AWS_ACCESS_KEY_ID", getenv("STEAD_TEST_S3_KEY"), 1);
		setenv("AWS_SECRET_ACCESS_KEY", getenv("STEAD_TEST_S3_SECRET"), 1);
		setenv("AWS_REGION", "us-east-1", 1);
		snprintf(url, sizeof(url), "s3://stead-test/%s?create=1&endpoint=%s", (const char *)place, s3);
	} else {
		TEST_FAIL("no server; run this with tests/servers/with NAME -- TEST");
	}
	CHECK_OK(store_open_url(str_of(url), NULL, &s, &err), err);
	return s;
}

static uint64_t counted(struct store *fault)
{
	uint64_t n = store_fault_count(fault);

	store_fault_arm(fault, 0, ERR_UNAVAILABLE, false);
	return n;
}

TEST(a_small_change_with_its_revision_is_one_operation_or_two)
{
	struct store *fault = store_fault_new(server_open((char *)place_new()));
	struct conf c = {.s = replica_on(fault), .ctx = {.arena = arena_new()}};
	uint64_t most = getenv("STEAD_TEST_S3") ? 2 : 1;

	put(&c, "first", "reads the log");
	counted(fault);
	put(&c, "a", "new");
	CHECK(counted(fault) <= most);
	put(&c, "a", "known");
	CHECK(counted(fault) <= most);
	CHECK_OK(store_append(c.s, &c.ctx, P("a"), STR("+"), ANY, NULL, &c.err), c.err);
	CHECK(counted(fault) <= most);
	CHECK_OK(store_remove(c.s, &c.ctx, P("first"), false, ANY, NULL, &c.err), c.err);
	CHECK(counted(fault) <= most);
	CHECK_STR(get(&c, "a"), STR("known+"));
	CHECK_INT(counted(fault), 1);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

TEST(eight_replicas_on_a_server_lose_nothing_and_double_nothing)
{
	replicas_lose_nothing(server_open, (char *)place_new(), WORKERS, 10);
}

TEST(six_replicas_of_a_fork_on_a_server_agree)
{
	replicas_of_a_fork_agree(server_open, (char *)place_new(), 6, 8);
}

TEST(eight_processes_on_a_server_lose_nothing_and_double_nothing)
{
	char *place = (char *)place_new();
	struct conf c = {.ctx = {.arena = arena_new()}};
	pid_t children[WORKERS];

	c.s = replica_on(server_open(place));
	put(&c, "count", "0");
	store_destroy(c.s); /* a connection is not to be shared with a child */
	for (unsigned i = 0; i < WORKERS; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct replica r = {.s = replica_on(server_open(place)), .id = i, .rounds = 10};

			replica_work(&r);
			if (r.failed)
				printf("# process %u: %s\n", i, r.err.msg);
			store_destroy(r.s);
			_exit(r.failed ? 1 : 0);
		}
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		int status;

		CHECK_INT(waitpid(children[i], &status, 0), children[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	c.s = replica_on(server_open(place));
	CHECK_STR(get(&c, "count"), STR("80"));
	check_appended(&c, WORKERS, 10);
	check_history(&c, 10);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}

static void *write_once(void *arg)
{
	struct conf c = {.s = arg, .ctx = {.arena = arena_new()}};
	int r = store_write(c.s, &c.ctx, P("f"), STR("x"), ANY, NULL, &c.err);

	arena_destroy(c.ctx.arena);
	return r ? arg : NULL;
}

TEST(who_waits_on_a_server_hears_of_another_replica)
{
	char *place = (char *)place_new();
	struct store *other = replica_on(server_open(place));
	struct conf c = {.s = replica_on(server_open(place)), .ctx = {.arena = arena_new()}};
	pthread_t writer;
	void *failed;

	c.ctx.deadline_ns = clock_monotonic_ns() + INT64_C(30000000000);
	CHECK_INT(pthread_create(&writer, NULL, write_once, other), 0);
	CHECK_OK(revisions_wait(c.s, &c.ctx, 0, 50, &c.err), c.err);
	pthread_join(writer, &failed);
	CHECK(!failed);
	store_destroy(other);
	store_destroy(c.s);
	arena_destroy(c.ctx.arena);
}
