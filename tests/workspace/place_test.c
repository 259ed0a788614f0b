/* SPDX-License-Identifier: Apache-2.0 */
/* stead.yaml: what it refuses, and where things lie by it. */
#include "workspace/place.h"

#include <fcntl.h>
#include <unistd.h>

#include "admin/bundle.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/limits.h"
#include "net/loopback.h"
#include "revisions/revisions.h"
#include "temp_dir.h"
#include "test.h"
#include "workspace/fork.h"
#include "workspace/workspace.h"

struct site {
	const char *dir;
	struct arena *arena;
	struct ctx ctx;
	struct err err;
	struct str url;
};

static void host_write(const char *dir, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool host_has(const char *dir, const char *name)
{
	char path[400];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static struct site site_new(const char *yaml)
{
	struct site s = {.dir = temp_dir_new(), .arena = arena_new()};

	s.ctx.arena = s.arena;
	host_write(s.dir, "stead.yaml", yaml);
	s.url = arena_printf(s.arena, "config:%s/stead.yaml", s.dir);
	return s;
}

static void site_end(struct site *s)
{
	arena_destroy(s->arena);
}
#define SITE __attribute__((cleanup(site_end))) struct site

static struct workspace *open_ws(struct site *s, struct workspace_opts opts)
{
	struct workspace *ws = NULL;

	opts.store_url = s->url;
	opts.create = true;
	if (!opts.name.len)
		opts.name = STR("scout");
	CHECK_OK(workspace_open(&opts, &ws, &s->err), s->err);
	return ws;
}

static struct wpath at(const char *path)
{
	return (struct wpath){str_of(path)};
}

static void put(struct site *s, struct store *store, const char *path, const char *text)
{
	CHECK_OK(store_write(store, &s->ctx, at(path), str_of(text), (struct store_cond){0}, NULL, &s->err), s->err);
}

static struct str get(struct site *s, struct store *store, const char *path)
{
	struct str bytes = STR("");

	CHECK_OK(store_read(store, &s->ctx, at(path), STORE_WHOLE, MIB, &bytes, NULL, &s->err), s->err);
	return bytes;
}

#define CHECK_NONE(s, store, path)                                                                                     \
	CHECK_ERR(store_stat((store), &(s)->ctx, at(path), NULL, &(s)->err), (s)->err, ERR_NOT_FOUND)

#define CHECK_REFUSES(yaml, part)                                                                                      \
	do {                                                                                                           \
		SITE s_ = site_new(yaml);                                                                              \
		struct place_config c_;                                                                                \
		CHECK_ERR(place_read(s_.arena, s_.url, &c_, &s_.err), s_.err, ERR_INVALID);                            \
		CHECK_HAS(str_of(s_.err.msg), STR(part));                                                              \
	} while (0)

/* --- the file --- */

TEST(a_file_without_a_store_leaves_it_to_the_environment)
{
	SITE site = site_new("replicas: 1\n");
	struct place_config c;

	setenv("STEAD_STORE", "disk:/srv/of-the-environment", 1);
	CHECK_OK(place_read(site.arena, site.url, &c, &site.err), site.err);
	CHECK_STR(c.store, STR("disk:/srv/of-the-environment"));
	host_write(site.dir, "stead.yaml", "store: disk:mine\n");
	CHECK_OK(place_read(site.arena, site.url, &c, &site.err), site.err);
	CHECK(str_ends(c.store, STR("/mine")));
	host_write(site.dir, "stead.yaml", "replicas: 1\n");
	setenv("STEAD_STORE", "temp:", 1);
	CHECK_ERR(place_read(site.arena, site.url, &c, &site.err), site.err, ERR_INVALID);
	CHECK_HAS(str_of(site.err.msg), STR("names no store"));
	unsetenv("STEAD_STORE");
}

TEST(a_key_that_is_not_known_names_the_nearest_and_the_line)
{
	CHECK_REFUSES("store: disk:./x\nreplica: 2\n", "line 2");
	CHECK_REFUSES("store: disk:./x\nreplica: 2\n", "replicas");
	CHECK_REFUSES("isolation: tenant\n", "isolation");
	CHECK_REFUSES("cache: {bytes: many}\n", "bytes");
	CHECK_REFUSES("users: {ann: {sotre: x}}\n", "store");
	CHECK_REFUSES("store: ${NO_SUCH_NAME_HERE}\n", "NO_SUCH_NAME_HERE");
}

TEST(several_replicas_are_refused_where_only_one_machine_sees)
{
	CHECK_REFUSES("store: disk:./x\nreplicas: 2\n", "runtime state");
	CHECK_REFUSES("store: s3://bucket\nstate: disk:./state\nreplicas: 3\n", "runtime state");
	CHECK_REFUSES("store: s3://bucket\nstate: disk:./state\nreplicas: 3\n",
		      "set \"state:\" to a store that all can reach");
	CHECK_REFUSES("store: \"memory:\"\nstate: redis://h\nreplicas: 3\n", "files would be stored in \"memory:\"");
	CHECK_REFUSES("store: s3://b\nreplicas: 2\nusers: {ann: {store: disk:./ann}}\n", "users.ann.store");
}

TEST(several_replicas_are_taken_where_all_machines_see)
{
	SITE s = site_new("store: s3://bucket\nstate: redis://h\ntemplates: disk:./t\nreplicas: 3\n");
	struct place_config c;

	CHECK_OK(place_read(s.arena, s.url, &c, &s.err), s.err);
	CHECK_STR(c.store, STR("s3://bucket"));
	CHECK_STR(c.state, STR("redis://h"));
	CHECK_INT(c.replicas, 3);
	CHECK_INT(c.cache_bytes, 1024 * MIB);
}

TEST(env_beside_the_file_fills_in_and_stays_in_this_process)
{
	SITE s = site_new("store: disk:./${PLACE_TEST_DIR}\n");
	struct place_config c;

	host_write(s.dir, ".env", "PLACE_TEST_DIR=here\nPLACE_TEST_SECRET='s3cret'\n");
	CHECK_OK(place_read(s.arena, s.url, &c, &s.err), s.err);
	CHECK_STR(c.store, arena_printf(s.arena, "disk:%s/here", s.dir));
	CHECK_STR(str_of(env_get(&c.env, "PLACE_TEST_SECRET")), STR("s3cret"));
	CHECK(getenv("PLACE_TEST_SECRET") == NULL);
}

/* What the S3 store of the user ann answers: the server's echo of the request, with the name of the key. */
static struct str request_of(struct site *s, struct place *place)
{
	struct str text;

	CHECK_OK(store_read(place_store(place), &s->ctx, at("scout/users/ann/x"), STORE_WHOLE, MIB, &text, NULL,
			    &s->err),
		 s->err);
	return text;
}

TEST(two_deployments_in_one_process_each_use_their_own_credentials)
{
	static const char *const vars[] = {"AWS_ACCESS_KEY_ID=ONE\nAWS_SECRET_ACCESS_KEY=s3cret\n",
					   "AWS_ACCESS_KEY_ID=TWO\nAWS_SECRET_ACCESS_KEY=s3cret\n"};
	const struct place_want want = {.workspace = STR("scout"), .create = true};
	struct site s[2] = {site_new(""), site_new("")};
	struct loopback *server = loopback_start();
	struct place_config c[2];
	struct place *places[2];
	struct str dir;
	char yaml[200];

	snprintf(yaml, sizeof yaml,
		 "store: disk:./files\ncache: {bytes: 0}\n"
		 "users: {ann: {store: \"s3://echo?endpoint=http://127.0.0.1:%u\"}}\n",
		 loopback_port(server));
	for (size_t i = 0; i < 2; i++) {
		host_write(s[i].dir, "stead.yaml", yaml);
		host_write(s[i].dir, ".env", vars[i]);
		CHECK_OK(place_read(s[i].arena, s[i].url, &c[i], &s[i].err), s[i].err);
		CHECK_OK(place_open(s[i].arena, &c[i], &want, &places[i], &dir, &s[i].err), s[i].err);
	}
	/* a user's store is opened now, after both deployments were read */
	CHECK_HAS(request_of(&s[0], places[0]), STR("Credential=ONE/"));
	CHECK_HAS(request_of(&s[1], places[1]), STR("Credential=TWO/"));
	for (size_t i = 0; i < 2; i++) {
		place_close(places[i]);
		site_end(&s[i]);
	}
	loopback_stop(server);
}

/* Retries happen in the backend alone: no layer above it makes them again. */
TEST(a_server_that_only_fails_is_asked_as_often_as_its_store_asks)
{
	SITE s = site_new("");
	struct loopback *server = loopback_start();
	struct place_config c = {.cache_bytes = MIB};
	struct store *store;
	struct str bytes, dir;

	setenv("AWS_ACCESS_KEY_ID", "ONE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s3cret", 1);
	CHECK_OK(
		place_open_one(s.arena, &c,
			       arena_printf(s.arena, "s3://status?endpoint=http://127.0.0.1:%u", loopback_port(server)),
			       false, false, &store, &dir, &s.err),
		s.err);
	CHECK_ERR(store_read(store, &s.ctx, at("503"), STORE_WHOLE, MIB, &bytes, NULL, &s.err), s.err, ERR_UNAVAILABLE);
	CHECK_INT(loopback_requests(server), 7);
	store_destroy(store);
	loopback_stop(server);
}

TEST(a_url_is_shown_without_its_password)
{
	SITE s = site_new("");

	CHECK_STR(store_url_shown(s.arena, STR("redis://ann:s3cret@h:6379/0")), STR("redis://ann:***@h:6379/0"));
	CHECK_STR(store_url_shown(s.arena, STR("postgres://h/db?user=a&password=s3cret&x=1")),
		  STR("postgres://h/db?user=a&password=***&x=1"));
	CHECK_STR(store_url_shown(s.arena, STR("s3://bucket/a@b:c")), STR("s3://bucket/a@b:c"));
	CHECK_STR(store_url_shown(s.arena, STR("disk:/a:b@c")), STR("disk:/a:b@c"));
}

/* --- where things lie --- */

TEST(files_lie_in_one_store_and_state_in_another)
{
	SITE s = site_new("store: disk:./files\nstate: disk:./state\n");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){.root = STR("workspace")});

	put(&s, workspace_files(ws), "files/notes.md", "text");
	put(&s, workspace_home(ws), "tasks/one/plan.md", "plan");
	put(&s, workspace_home(ws), "agents/main/state.json", "{}");
	CHECK_STR(get(&s, workspace_files(ws), "files/notes.md"), STR("text"));
	CHECK_STR(get(&s, workspace_home(ws), "tasks/one/plan.md"), STR("plan"));
	workspace_close(ws);
	CHECK(host_has(s.dir, "files/scout/files/notes.md") && host_has(s.dir, "files/scout/agent.yaml"));
	CHECK(host_has(s.dir, "state/scout/tasks/one/plan.md") &&
	      host_has(s.dir, "state/scout/agents/main/state.json"));
	CHECK(host_has(s.dir, "state/scout/.stead/rev"));
	CHECK(!host_has(s.dir, "files/scout/.stead") && !host_has(s.dir, "files/scout/tasks"));
	CHECK(!host_has(s.dir, "state/scout/agent.yaml"));
}

TEST(history_undo_and_forks_work_over_two_stores)
{
	SITE s = site_new("store: disk:./files\nstate: disk:./state\n");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){0}), *fork;
	struct revision *list;
	struct rev_query query = {0};
	struct jv *made;
	size_t count;
	bool more;

	put(&s, workspace_files(ws), "a", "one");
	put(&s, workspace_files(ws), "a", "two");
	CHECK_OK(revisions_query(workspace_revisions(ws), &s.ctx, &query, &list, &count, &more, &s.err), s.err);
	CHECK_INT(count, 2);
	CHECK_OK(fork_create(ws, &s.ctx, STR("try"), 1, &made, &s.err), s.err);
	workspace_close(ws);
	fork = open_ws(&s, (struct workspace_opts){.name = STR("try")});
	CHECK_STR(get(&s, workspace_files(fork), "a"), STR("one"));
	workspace_close(fork);
	CHECK(host_has(s.dir, "state/try/.stead"));
}

static int collect(void *arg, const void *bytes, size_t len, struct err *err)
{
	(void)err;
	buf_add(arg, str_n(bytes, len));
	return 0;
}

TEST(an_import_comes_to_lie_in_both_stores)
{
	SITE s = site_new("store: disk:./files\nstate: disk:./state\n");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){0});
	struct source source = {0};
	struct jv *report;
	struct sink sink;
	struct buf out;

	put(&s, workspace_files(ws), "a", "one");
	buf_init(&out, s.arena, 64 * MIB);
	sink = (struct sink){.push = collect, .arg = &out};
	CHECK_OK(bundle_export(ws, &s.ctx, &sink, &report, &s.err), s.err);
	workspace_close(ws);
	source.bytes = buf_str(&out);
	CHECK_OK(bundle_import(&s.ctx, s.url, &source, STR("second"), &report, &s.err), s.err);
	CHECK(host_has(s.dir, "files/second/files/a") && host_has(s.dir, "state/second/.stead/rev"));
	CHECK(!host_has(s.dir, "files/second/.stead"));
	ws = open_ws(&s, (struct workspace_opts){.name = STR("second")});
	CHECK_STR(get(&s, workspace_files(ws), "a"), STR("one"));
	workspace_close(ws);
}

TEST(templates_show_through_and_are_never_changed)
{
	SITE s = site_new("store: disk:./files\ntemplates: disk:./templates\n");
	struct workspace *ws;
	char path[400];

	snprintf(path, sizeof path, "%s/templates", s.dir);
	CHECK(mkdir(path, 0755) == 0);
	host_write(s.dir, "templates/SOUL.md", "the soul of all\n");
	host_write(s.dir, "templates/agent.yaml", "name: from-templates\n");
	ws = open_ws(&s, (struct workspace_opts){.root = STR("workspace"), .person = true});
	CHECK_STR(workspace_config(ws)->name, STR("from-templates"));
	CHECK_STR(get(&s, workspace_files(ws), "SOUL.md"), STR("the soul of all\n"));
	put(&s, workspace_files(ws), "SOUL.md", "my own\n");
	CHECK_STR(get(&s, workspace_files(ws), "SOUL.md"), STR("my own\n"));
	workspace_close(ws);
	CHECK(!host_has(s.dir, "files/scout/agent.yaml") && host_has(s.dir, "files/scout/SOUL.md"));
	ws = open_ws(&s, (struct workspace_opts){.user = STR("ann"), .name = STR("other")});
	CHECK_STR(get(&s, workspace_home(ws), "SOUL.md"), STR("the soul of all\n"));
	put(&s, workspace_home(ws), "SOUL.md", "of ann\n");
	workspace_close(ws);
	ws = open_ws(&s, (struct workspace_opts){.name = STR("other")});
	CHECK_STR(get(&s, workspace_home(ws), "SOUL.md"), STR("the soul of all\n"));
	workspace_close(ws);
}

TEST(a_deployment_bounds_every_workspace_unless_its_own_configuration_does)
{
	SITE s = site_new("store: disk:./files\nquota: {file_size: 4, user: {files: 1}}\n");
	struct workspace *ws = open_ws(&s, (struct workspace_opts){.user = STR("ann")});

	put(&s, workspace_files(ws), "a", "1234");
	CHECK_ERR(store_write(workspace_files(ws), &s.ctx, at("a"), STR("12345"), (struct store_cond){0}, NULL, &s.err),
		  s.err, ERR_QUOTA);
	CHECK_ERR(
		store_write(workspace_home(ws), &s.ctx, at("notes/b"), STR("1"), (struct store_cond){0}, NULL, &s.err),
		s.err, ERR_QUOTA);
	CHECK_HAS(str_of(s.err.msg), STR("1 of the user's 1 files are already there"));
	workspace_close(ws);
	host_write(s.dir, "files/scout/agent.yaml", "quota: {file_size: 0}\n");
	ws = open_ws(&s, (struct workspace_opts){.user = STR("ann")});
	put(&s, workspace_files(ws), "a", "12345");
	workspace_close(ws);
}

TEST(keys_of_agent_yaml_in_stead_yaml_hold_for_every_workspace)
{
	SITE s = site_new("workspaces_path: here\n"
			  "timezone: Europe/Berlin\n"
			  "queue: {mode: steer, cap: 7}\n"
			  "builtins: {deny: [cron]}\n"
			  "description: ${PLACE_TEST_WORD}\n");
	struct workspace *ws;
	const struct config *config;

	host_write(s.dir, ".env", "PLACE_TEST_WORD=shared\nPLACE_TEST_NAME=theirs\n");
	ws = open_ws(&s, (struct workspace_opts){0});
	CHECK_STR(workspace_config(ws)->timezone, STR("Europe/Berlin"));
	CHECK_STR(workspace_config(ws)->description, STR("shared"));
	workspace_close(ws);
	host_write(s.dir, "here/scout/.env", "PLACE_TEST_WORD=own\n");
	host_write(s.dir, "here/scout/agent.yaml",
		   "timezone: Asia/Tokyo\nqueue: {cap: 9}\nbuiltins: {deny: [shell]}\n"
		   "name: ${PLACE_TEST_NAME}\ndescription: ${PLACE_TEST_WORD}\n");
	ws = open_ws(&s, (struct workspace_opts){0});
	config = workspace_config(ws);
	CHECK_STR(config->timezone, STR("Asia/Tokyo"));
	CHECK_STR(config->description, STR("own"));
	CHECK_STR(config->name, STR("theirs"));
	CHECK_STR(jv_get_str(jv_get(config->document, "queue"), "mode"), STR("steer"));
	CHECK_INT(jv_get_int(jv_get(config->document, "queue"), "cap", 0), 9);
	CHECK_INT(jv_count(config->tools_deny), 2);
	workspace_close(ws);
}

TEST(a_mistake_in_what_holds_for_all_names_the_file_and_the_line)
{
	SITE s = site_new("store: disk:./x\nqueue: {mode: fast}\n");
	struct place_config c;

	CHECK_ERR(place_read(s.arena, s.url, &c, &s.err), s.err, ERR_INVALID);
	CHECK_HAS(str_of(s.err.msg), STR("stead.yaml line 2: queue.mode is \"fast\""));
}

TEST(a_user_may_have_a_store_of_his_own)
{
	SITE s = site_new("store: disk:./files\nstate: disk:./state\nusers:\n  ann: {store: disk:./ann}\n");
	struct workspace *ann = open_ws(&s, (struct workspace_opts){.user = STR("ann")});
	struct workspace *bob = open_ws(&s, (struct workspace_opts){.user = STR("bob")});

	put(&s, workspace_files(ann), "n.md", "of ann");
	put(&s, workspace_files(bob), "n.md", "of bob");
	CHECK_STR(get(&s, workspace_files(ann), "n.md"), STR("of ann"));
	workspace_close(ann);
	workspace_close(bob);
	CHECK(host_has(s.dir, "ann/scout/users/ann/files/n.md") && !host_has(s.dir, "files/scout/users/ann"));
	CHECK(host_has(s.dir, "files/scout/users/bob/files/n.md"));
}

/* --- whose part --- */

static const struct workspace_opts both = {.user = {"ann", 3}, .agent = {"scout", 5}, .session = {"s1", 2}};

/* Writes as one caller; another one with the same user and agent but another session looks. */
static bool is_shared_with(const char *yaml, struct workspace_opts other)
{
	SITE s = site_new(yaml);
	struct workspace *a = open_ws(&s, both), *b;
	bool seen;

	put(&s, workspace_files(a), "x", "1");
	workspace_close(a);
	b = open_ws(&s, other);
	seen = store_stat(workspace_files(b), &s.ctx, at("x"), NULL, &s.err) == 0;
	workspace_close(b);
	return seen;
}

TEST(isolation_decides_who_shares_files)
{
	struct workspace_opts session = both, user = both, agent = both, nobody = {0};

	session.session = STR("s2");
	user.user = STR("bob");
	agent.agent = STR("other");
	CHECK(is_shared_with("store: disk:./f\n", session) && !is_shared_with("store: disk:./f\n", user));
	CHECK(!is_shared_with("store: disk:./f\nisolation: session\n", session));
	CHECK(is_shared_with("store: disk:./f\nisolation: session\n", user));
	CHECK(!is_shared_with("store: disk:./f\nisolation: agent\n", agent));
	CHECK(is_shared_with("store: disk:./f\nisolation: agent\n", user));
	CHECK(is_shared_with("store: disk:./f\nisolation: global\n", nobody));
	CHECK(!is_shared_with("store: disk:./f\n", nobody));
}

TEST(no_two_callers_get_one_namespace_by_their_names)
{
	SITE s = site_new("");
	struct actor user = {.user = STR("@session.a")}, session = {.session = STR("a")}, agent = {.agent = STR("a")};
	struct wpath of_user, of_session, of_agent;

	CHECK_OK(place_namespace(s.arena, SCOPE_USER, &user, &of_user, &s.err), s.err);
	CHECK_OK(place_namespace(s.arena, SCOPE_SESSION, &session, &of_session, &s.err), s.err);
	CHECK_OK(place_namespace(s.arena, SCOPE_AGENT, &agent, &of_agent, &s.err), s.err);
	CHECK_STR(of_session.s, STR("users/@session.a"));
	CHECK_STR(of_agent.s, STR("users/@agent.a"));
	CHECK_STR(of_user.s, STR("users/~40session.a"));
}
