/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deployment on real servers: files in S3, state in Redis or PostgreSQL, templates on this machine, users with stores
 * of their own, two replicas at once, and what it costs in requests. Every request to S3 and to the state's server goes
 * through a proxy that counts. Below `tests/servers/with redis,postgres,ceph --`.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "find/find.h"
#include "revisions/revisions.h"
#include "servers/proxy.h"
#include "store/backends/s3/s3_fix.h"
#include "temp_dir.h"
#include "test.h"
#include "workspace/place.h"
#include "workspace/workspace.h"

struct site {
	const char *dir, *prefix, *state_kind;
	struct proxy *s3, *state;
	struct arena *arena;
	struct ctx ctx;
	struct err err;
	struct str url;
};

static const char *const kinds[] = {"redis", "postgres"};

static void host_write(const char *dir, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* The URL of the state's server, by way of the proxy. */
static struct str state_url(struct site *s, const char *prefix)
{
	const char *server = getenv(strcmp(s->state_kind, "redis") == 0 ? "STEAD_TEST_REDIS" : "STEAD_TEST_POSTGRES");
	char target[64];
	unsigned port;

	CHECK(server && sscanf(strrchr(server, ':'), ":%u", &port) == 1);
	snprintf(target, sizeof target, "127.0.0.1:%u", port);
	if (!s->state)
		s->state = proxy_start(target);
	if (strcmp(s->state_kind, "redis") == 0)
		return arena_printf(s->arena, "redis://127.0.0.1:%u?prefix=%s", proxy_port(s->state), prefix);
	return arena_printf(s->arena, "postgres://stead@127.0.0.1:%u/stead?sslmode=disable&prefix=%s",
			    proxy_port(s->state), prefix);
}

/* `more`: further lines of stead.yaml; "%s" in it is the S3 URL of another prefix. */
static struct site site_new(const char *kind, const char *more)
{
	struct site s = {.dir = temp_dir_new(), .arena = arena_new(), .state_kind = kind};
	char endpoint[64], files[512], other[512];
	struct str yaml, state;

	s3_keys();
	s.ctx.arena = s.arena;
	s.prefix = arena_printf(s.arena, "p-%016llx", (unsigned long long)random_u64()).ptr;
	s.s3 = proxy_start(s3_env(""));
	snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", proxy_port(s.s3));
	s3_url(files, sizeof files, endpoint, s.prefix, "");
	s3_url(other, sizeof other, endpoint, arena_printf(s.arena, "%s-other", s.prefix).ptr, "");
	state = state_url(&s, s.prefix);
	yaml = arena_printf(s.arena,
			    "store: \"%s\"\nstate: \"%.*s\"\ntemplates: disk:./templates\nreplicas: 2\n"
			    "cache: {dir: ./cache}\nusers: {ann: {store: \"%s\"}}\n%s",
			    files, STR_ARG(state), other, more);
	host_write(s.dir, "stead.yaml", yaml.ptr);
	CHECK(mkdir(arena_printf(s.arena, "%s/templates", s.dir).ptr, 0755) == 0);
	host_write(s.dir, "templates/SOUL.md", "the soul of all\n");
	s.url = arena_printf(s.arena, "config:%s/stead.yaml", s.dir);
	return s;
}

static void site_end(struct site *s)
{
	if (s->s3)
		proxy_stop(s->s3);
	if (s->state)
		proxy_stop(s->state);
	arena_destroy(s->arena);
}
#define SITE __attribute__((cleanup(site_end))) struct site

static struct workspace *open_ws(struct site *s, struct workspace_opts opts)
{
	struct workspace *ws = NULL;

	opts.store_url = s->url;
	opts.create = true;
	opts.name = STR("scout");
	CHECK_OK(workspace_open(&opts, &ws, &s->err), s->err);
	return ws;
}

static struct wpath at(const char *path)
{
	return (struct wpath){str_of(path)};
}

static void store_text(struct site *s, struct store *store, const char *path, const char *text)
{
	CHECK_OK(store_write(store, &s->ctx, at(path), str_of(text), (struct store_cond){0}, NULL, &s->err), s->err);
}

static struct str text_of(struct site *s, struct store *store, const char *path)
{
	struct str bytes = STR("");

	CHECK_OK(store_read(store, &s->ctx, at(path), STORE_WHOLE, MIB, &bytes, NULL, &s->err), s->err);
	return bytes;
}

static bool has(struct site *s, struct store *store, const char *path)
{
	return store_stat(store, &s->ctx, at(path), NULL, &s->err) == 0;
}

/* One of the stores by itself, not by way of the proxy. */
static struct store *bare(struct site *s, bool state, const char *behind)
{
	struct str url;
	struct store *store;
	char buf[512];

	s3_url(buf, sizeof buf, NULL, arena_printf(s->arena, "%s%s", s->prefix, behind).ptr, "");
	url = state ? state_url(s, s->prefix) : str_of(buf);
	CHECK_OK(store_open_url(url, NULL, &store, &s->err), s->err);
	return store;
}

static void files_in_s3_and_state_in(const char *kind)
{
	SITE s = site_new(kind, "");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){.root = STR("workspace"), .person = true});
	struct store *files = bare(&s, false, ""), *state = bare(&s, true, "");

	store_text(&s, workspace_files(ws), "files/notes.md", "text");
	store_text(&s, workspace_home(ws), "tasks/one/plan.md", "plan");
	CHECK_STR(text_of(&s, workspace_files(ws), "SOUL.md"), STR("the soul of all\n"));
	CHECK_STR(text_of(&s, workspace_files(ws), "files/notes.md"), STR("text"));
	CHECK(has(&s, files, "scout/files/notes.md") && !has(&s, state, "scout/files/notes.md"));
	CHECK(has(&s, state, "scout/tasks/one/plan.md") && !has(&s, files, "scout/tasks"));
	CHECK(!has(&s, files, "scout/.stead") && !has(&s, files, "scout/SOUL.md"));
	store_text(&s, workspace_files(ws), "SOUL.md", "my own\n");
	CHECK_STR(text_of(&s, workspace_files(ws), "SOUL.md"), STR("my own\n"));
	CHECK(has(&s, files, "scout/SOUL.md"));
	workspace_close(ws);
	store_destroy(files);
	store_destroy(state);
}

TEST(files_lie_in_s3_state_in_redis_and_templates_show_through)
{
	files_in_s3_and_state_in("redis");
}

TEST(files_lie_in_s3_state_in_postgres_and_templates_show_through)
{
	files_in_s3_and_state_in("postgres");
}

TEST(a_user_has_a_bucket_of_his_own_and_the_others_share)
{
	for (int i = 0; i < 2; i++) {
		SITE s = site_new(kinds[i], "");
		struct workspace *ann = open_ws(&s, (struct workspace_opts){.user = STR("ann")});
		struct workspace *bob = open_ws(&s, (struct workspace_opts){.user = STR("bob")});
		struct store *own = bare(&s, false, "-other"), *shared = bare(&s, false, "");

		store_text(&s, workspace_files(ann), "n.md", "of ann");
		store_text(&s, workspace_files(bob), "n.md", "of bob");
		CHECK_STR(text_of(&s, workspace_files(ann), "n.md"), STR("of ann"));
		CHECK(has(&s, own, "scout/users/ann/files/n.md") && !has(&s, shared, "scout/users/ann/files/n.md"));
		CHECK(has(&s, shared, "scout/users/bob/files/n.md") && !has(&s, own, "scout/users/bob"));
		workspace_close(ann);
		workspace_close(bob);
		store_destroy(own);
		store_destroy(shared);
	}
}

TEST(isolation_by_session_and_agent_holds_on_servers)
{
	static const char *const scopes[] = {"isolation: session\n", "isolation: agent\n", "isolation: user\n",
					     "isolation: global\n"};
	const struct workspace_opts one = {.user = STR("bob"), .agent = STR("a"), .session = STR("s1")};
	struct workspace_opts others[3] = {one, one, one};

	others[0].session = STR("s2");
	others[1].agent = STR("b");
	others[2].user = STR("carl");
	for (int i = 0; i < 4; i++) {
		SITE s = site_new(kinds[i % 2], scopes[i]);
		struct workspace *a = open_ws(&s, one);

		store_text(&s, workspace_files(a), "x", "1");
		workspace_close(a);
		for (int k = 0; k < 3; k++) {
			struct workspace *b = open_ws(&s, others[k]);

			CHECK_INT(has(&s, workspace_files(b), "x"), i != k);
			workspace_close(b);
		}
	}
}

TEST(several_replicas_with_local_state_are_refused_at_start)
{
	SITE s = site_new("redis", "");
	struct workspace_opts opts = {.store_url = s.url, .name = STR("scout"), .create = true};
	struct workspace *ws;
	char url[512];

	s3_url(url, sizeof url, NULL, s.prefix, "");
	host_write(s.dir, "stead.yaml",
		   arena_printf(s.arena, "store: \"%s\"\nstate: disk:./state\nreplicas: 2\n", url).ptr);
	CHECK_ERR(workspace_open(&opts, &ws, &s.err), s.err, ERR_INVALID);
	CHECK_HAS(str_of(s.err.msg), STR("set \"state:\" to a store that all can reach"));
}

/* --- two replicas --- */

#define ROUNDS 12

static int add_one(struct site *s, struct store *files)
{
	for (int tries = 0; tries < 2000; tries++) {
		struct store_stat stat;
		struct str now;
		long n;
		int r = store_read(files, &s->ctx, at("count"), STORE_WHOLE, 64, &now, &stat, &s->err);

		if (r)
			return r;
		n = strtol(arena_printf(s->arena, "%.*s", STR_ARG(now)).ptr, NULL, 10);
		r = store_write(files, &s->ctx, at("count"), arena_printf(s->arena, "%ld", n + 1),
				(struct store_cond){.kind = STORE_VERSION, .version = stat.version}, NULL, &s->err);
		if (r != -ERR_CONFLICT)
			return r;
	}
	return -ERR_CONFLICT;
}

/* What one replica does, in a process of its own; how many names it was the one to create is its exit code. */
static int replica(struct site *s, int id)
{
	struct workspace *ws = open_ws(s, (struct workspace_opts){0});
	struct store *files = workspace_files(ws);
	int created = 0, r = 0;

	for (int i = 0; i < ROUNDS && !r; i++) {
		struct str line = arena_printf(s->arena, "%d-%d\n", id, i);

		r = store_append(files, &s->ctx, at("log"), line, (struct store_cond){0}, NULL, &s->err);
		if (!r)
			r = add_one(s, files);
		if (r)
			break;
		r = store_write(files, &s->ctx, (struct wpath){arena_printf(s->arena, "name-%d", i)}, line,
				(struct store_cond){.kind = STORE_ABSENT}, NULL, &s->err);
		created += r == 0;
		if (r == -ERR_EXISTS || r == -ERR_CONFLICT)
			r = 0;
	}
	if (r)
		printf("# replica %d: %s\n", id, s->err.msg);
	workspace_close(ws);
	return r ? 100 : created;
}

static void two_replicas_on(const char *kind)
{
	SITE s = site_new(kind, "");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){0});
	struct rev_query query = {0};
	struct revision *list;
	pid_t children[2];
	size_t count;
	struct str log;
	int created = 0;
	bool more;

	store_text(&s, workspace_files(ws), "count", "0");
	store_text(&s, workspace_files(ws), "log", "");
	workspace_close(ws);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0)
			_exit(replica(&s, i));
	}
	for (int i = 0; i < 2; i++) {
		int status;

		CHECK_INT(waitpid(children[i], &status, 0), children[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 100);
		created += WEXITSTATUS(status);
	}
	CHECK_INT(created, ROUNDS);
	ws = open_ws(&s, (struct workspace_opts){0});
	CHECK_STR(text_of(&s, workspace_files(ws), "count"), STR("24"));
	log = text_of(&s, workspace_files(ws), "log");
	for (int i = 0; i < 2 * ROUNDS; i++) {
		struct str line = arena_printf(s.arena, "%d-%d\n", i % 2, i / 2);
		size_t first = str_find(log, line, 0);

		CHECK(first < log.len && str_find(log, line, first + 1) >= log.len);
	}
	CHECK_OK(revisions_query(workspace_revisions(ws), &s.ctx, &query, &list, &count, &more, &s.err), s.err);
	for (size_t i = 0; count != 2 + 5 * ROUNDS && i < count; i++)
		printf("# %llu %s %.*s %llu %llu\n", (unsigned long long)list[i].number, rev_op_name(list[i].op),
		       STR_ARG(list[i].path.s), (unsigned long long)list[i].before.size,
		       (unsigned long long)list[i].after.size);
	CHECK_INT(count, 2 + 5 * ROUNDS);
	workspace_close(ws);
}

TEST(two_replicas_with_state_in_redis_lose_nothing_and_double_nothing)
{
	two_replicas_on("redis");
}

TEST(two_replicas_with_state_in_postgres_lose_nothing_and_double_nothing)
{
	two_replicas_on("postgres");
}

/* --- what it costs --- */

TEST(a_write_over_two_stores_is_one_request_to_each)
{
	for (int i = 0; i < 2; i++) {
		SITE s = site_new(kinds[i], "");
		struct workspace *ws = open_ws(&s, (struct workspace_opts){0});
		struct store *files = workspace_files(ws);

		store_text(&s, files, "a", "new");
		store_text(&s, files, "a", "known");
		proxy_forget(s.s3);
		proxy_forget(s.state);
		store_text(&s, files, "a", "again");
		CHECK_INT(proxy_requests(s.s3), 1);
		CHECK_INT(proxy_requests(s.state), 1);
		proxy_forget(s.s3);
		proxy_forget(s.state);
		CHECK_STR(text_of(&s, files, "a"), STR("again"));
		CHECK_INT(proxy_requests(s.s3), 1);
		CHECK_INT(proxy_requests(s.state), 0);
		workspace_close(ws);
	}
}

#define MAKERS 16

struct making {
	struct store *store;
	unsigned count;
	atomic_uint next;
	atomic_bool failed;
};

static void *make_files(void *arg)
{
	struct making *m = arg;
	struct arena *arena = arena_new();
	struct ctx ctx = {.arena = arena};
	struct err err;
	unsigned i;

	while ((i = atomic_fetch_add(&m->next, 1)) < m->count) {
		struct wpath path = {arena_printf(arena, "scout/files/d/f%05u.txt", i)};

		if (store_write(m->store, &ctx, path, arena_printf(arena, "line of file %u\n", i),
				(struct store_cond){0}, NULL, &err))
			m->failed = true;
		arena_reset(arena);
	}
	arena_destroy(arena);
	return NULL;
}

static uint64_t grep_count(struct site *s, struct store *files, const char *pattern)
{
	struct grep_req req = {.path = WPATH_ROOT,
			       .pattern = str_of(pattern),
			       .limit = 10,
			       .line_cut = 200,
			       .threads = 2,
			       .output = GREP_LINES};
	struct grep_result res;

	CHECK_OK(find_grep(files, &s->ctx, &req, NULL, NULL, &res, &s->err), s->err);
	return res.matches;
}

static uint64_t objects_read(struct site *s)
{
	return proxy_requests_with(s->s3, "GET /") - proxy_requests_with(s->s3, "list-type=2");
}

TEST(a_second_grep_over_unchanged_files_in_s3_reads_none)
{
	const char *wish = getenv("STEAD_TEST_FILES");
	struct making m = {.count = wish ? (unsigned)strtoul(wish, NULL, 10) : 2000};
	SITE s = site_new("redis", "");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){0}), *other;
	pthread_t threads[MAKERS];

	m.store = bare(&s, false, "");
	for (int i = 0; i < MAKERS; i++)
		CHECK(pthread_create(&threads[i], NULL, make_files, &m) == 0);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!m.failed);
	CHECK_INT(grep_count(&s, workspace_files(ws), "line of file"), m.count);
	proxy_forget(s.s3);
	CHECK_INT(grep_count(&s, workspace_files(ws), "line of file"), m.count);
	CHECK_INT(objects_read(&s), 0);
	/* nothing but the pages of one list; a server may end a page early, and this one does while it is busy */
	if (proxy_requests(s.s3) != m.count / 1000)
		proxy_tell(s.s3);
	CHECK_INT(proxy_requests(s.s3), proxy_requests_with(s.s3, "list-type=2"));
	CHECK(proxy_requests(s.s3) <= m.count / 1000 + 2);

	/* another process changes a file, and one more reads by the same cache directory */
	CHECK_OK(store_write(m.store, &s.ctx, at("scout/files/d/f00007.txt"), STR("changed elsewhere\n"),
			     (struct store_cond){0}, NULL, &s.err),
		 s.err);
	proxy_forget(s.s3);
	CHECK_INT(grep_count(&s, workspace_files(ws), "changed elsewhere"), 1);
	CHECK_INT(objects_read(&s), 1);
	other = open_ws(&s, (struct workspace_opts){0});
	CHECK_INT(grep_count(&s, workspace_files(other), "line of file"), m.count - 1);
	proxy_forget(s.s3);
	CHECK_INT(grep_count(&s, workspace_files(other), "line of file"), m.count - 1);
	CHECK_INT(objects_read(&s), 0);
	workspace_close(other);
	workspace_close(ws);
	store_destroy(m.store);
}
