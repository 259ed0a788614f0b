/* SPDX-License-Identifier: Apache-2.0 */
/* Tools and workspaces over HTTP, and the handles that requests share. */
#include <pthread.h>

#include "client.h"
#include "server/pool.h"
#include "server/tenants.h"

static struct reply call(struct site *s, const char *tool, const char *args)
{
	return ask(s, "POST", arena_printf(s->arena, "/v1/workspaces/demo/tools/%s", tool).ptr, NULL, str_of(args));
}

TEST(a_tool_gives_text_and_result)
{
	static struct site s;
	const struct jv *v;

	site_start(&s, true);
	CHECK_STATUS(call(&s, "write_file", "{\"path\":\"a.md\",\"content\":\"hello\"}"), 200);
	v = json_of(&s, call(&s, "read_file", "{\"path\":\"a.md\"}"));
	CHECK_STR(jv_get_str(v, "text"), STR("hello"));
	CHECK_STR(jv_get_str(jv_get(v, "result"), "content"), STR("hello"));
	CHECK_STATUS(call(&s, "ls", ""), 200);
}

TEST(what_goes_wrong_in_a_tool_is_a_problem)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	call(&s, "write_file", "{\"path\":\"a.md\",\"content\":\"x x\"}");
	CHECK_STATUS(call(&s, "none", "{}"), 404);
	CHECK_STATUS(call(&s, "read_file", "{"), 400);
	CHECK_STATUS(call(&s, "read_file", "[]"), 400);
	CHECK_STATUS(call(&s, "read_file", "{\"pth\":1}"), 400);
	CHECK_STATUS(call(&s, "read_file", "{\"path\":\"../x\"}"), 400);
	reply = call(&s, "edit_file", "{\"path\":\"a.md\",\"old_text\":\"x\",\"new_text\":\"y\"}");
	CHECK(reply.status >= 400 && reply.status < 500);
	CHECK_HAS(jv_get_str(json_of(&s, reply), "detail"), STR("occurs 2 times"));
}

TEST(a_brief_list_of_tools_has_no_schemas)
{
	static struct site s;
	const struct jv *all, *brief;

	site_start(&s, true);
	all = jv_get(json_of(&s, get(&s, "/v1/workspaces/demo/tools")), "tools");
	brief = jv_get(json_of(&s, get(&s, "/v1/workspaces/demo/tools?brief=true")), "tools");
	CHECK_INT(jv_count(brief), jv_count(all));
	CHECK_STR(jv_get_str(jv_at(brief, 0), "name"), jv_get_str(jv_at(all, 0), "name"));
	CHECK(jv_get(jv_at(all, 0), "input_schema"));
	CHECK(!jv_get(jv_at(brief, 0), "input_schema") && !jv_get(jv_at(brief, 0), "output_schema"));
	CHECK_STATUS(get(&s, "/v1/workspaces/demo/tools?brief=maybe"), 400);
}

TEST(workspaces_are_created_once)
{
	static struct site s;
	struct reply reply;

	site_start(&s, true);
	CHECK_STATUS(get(&s, "/v1/workspaces/new-one/files"), 404);
	CHECK_STATUS(get(&s, "/v1/workspaces/new-one"), 404);
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/new-one", NULL, STR_NONE), 201);
	reply = ask(&s, "PUT", "/v1/workspaces/new-one", NULL, STR_NONE);
	CHECK_STATUS(reply, 200);
	CHECK(!jv_get_bool(json_of(&s, reply), "created", true));
	CHECK_STATUS(get(&s, "/v1/workspaces/new-one/files"), 200);
	CHECK_STR(get(&s, "/v1/workspaces/new-one").body, STR("{\"name\":\"new-one\"}"));
	CHECK_STATUS(ask(&s, "POST", "/v1/workspaces/new-one/tools/fork", NULL, STR("{\"name\":\"branch\"}")), 200);
	CHECK_HAS(get(&s, "/v1/workspaces/branch").body, STR("\"fork_of\":\"new-one\""));
	CHECK_STATUS(ask(&s, "PUT", "/v1/workspaces/Bad..Name", NULL, STR_NONE), 400);
	CHECK_STR(get(&s, "/v1/workspaces").body, STR("{\"workspaces\":[{\"name\":\"branch\"},{\"name\":\"demo\"},{"
						      "\"name\":\"new-one\"}],\"next\":null}"));
	CHECK_STR(get(&s, "/v1/workspaces?limit=1").body,
		  STR("{\"workspaces\":[{\"name\":\"branch\"}],\"next\":\"branch/\"}"));
}

struct crowd {
	struct tenants *tenants;
	atomic_int failed;
};

static void *open_and_close(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < 200; i++) {
		struct tenant *tenant;
		struct err err;
		char user[20];

		snprintf(user, sizeof(user), "u%d", i % 7);
		if (tenants_get(c->tenants, i % 2 ? STR("demo") : STR("two"), i % 3 ? str_of(user) : STR(""), &tenant,
				&err)) {
			atomic_fetch_add(&c->failed, 1);
			continue;
		}
		if (!str_eq(workspace_actor(tenant->ws).user, tenant->user))
			atomic_fetch_add(&c->failed, 1);
		tenants_put(c->tenants, tenant);
		if (i % 10 == 0)
			tenants_sweep(c->tenants, 0);
	}
	return NULL;
}

TEST(handles_are_shared_and_closed_when_idle)
{
	static struct site s;
	struct crowd crowd = {0};
	struct workspace_opts like = {.relaxed = true};
	struct tenant *a, *b;
	pthread_t threads[4];
	struct err err = {0};

	site_start(&s, true);
	site_make_workspace(&s, "two");
	like.store_url = s.store_url;
	crowd.tenants = tenants_new(&like, &(struct toolset_choice){0});
	CHECK_OK(tenants_get(crowd.tenants, STR("demo"), STR("u"), &a, &err), err);
	CHECK_OK(tenants_get(crowd.tenants, STR("demo"), STR("u"), &b, &err), err);
	CHECK(a == b);
	CHECK_ERR(tenants_get(crowd.tenants, STR("none"), STR(""), &b, &err), err, ERR_NOT_FOUND);
	tenants_put(crowd.tenants, a);
	tenants_sweep(crowd.tenants, 0);
	CHECK_INT(tenants_count(crowd.tenants), 1); /* one is still used */
	for (size_t i = 0; i < COUNT(threads); i++)
		CHECK_INT(pthread_create(&threads[i], NULL, open_and_close, &crowd), 0);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(atomic_load(&crowd.failed), 0);
	tenants_put(crowd.tenants, a);
	tenants_sweep(crowd.tenants, 0);
	CHECK_INT(tenants_count(crowd.tenants), 0);
	tenants_destroy(crowd.tenants);
}

static void set_agent_yaml(struct ctx *ctx, struct workspace *ws, const char *text)
{
	struct store_cond any = {0};
	struct err err;

	CHECK_OK(store_write(workspace_home(ws), ctx, (struct wpath){STR("agent.yaml")}, str_of(text), any, NULL, &err),
		 err);
}

TEST(changed_settings_are_for_those_who_come_after)
{
	static struct site s;
	struct workspace_opts like = {.relaxed = true};
	struct tenant *owner, *before, *after, *again;
	struct tenants *tenants;
	struct ctx ctx;
	struct err err = {0};

	site_start(&s, true);
	ctx = (struct ctx){.arena = s.arena};
	like.store_url = s.store_url;
	tenants = tenants_new(&like, &(struct toolset_choice){0});
	CHECK_OK(tenants_get(tenants, STR("demo"), STR("u"), &before, &err), err);
	CHECK_OK(tenants_get(tenants, STR("demo"), STR(""), &owner, &err), err);
	tenants_renew(tenants);
	CHECK(tenants_find(tenants, STR("demo"), STR("u")) == before); /* nothing has changed */
	tenants_put(tenants, before);
	set_agent_yaml(&ctx, owner->ws, "description: [");
	tenants_renew(tenants);
	CHECK(tenants_find(tenants, STR("demo"), STR("u")) == before); /* nobody could work with that */
	tenants_put(tenants, before);
	set_agent_yaml(&ctx, owner->ws, "description: changed\n");
	tenants_renew(tenants);
	CHECK(tenants_find(tenants, STR("demo"), STR("u")) == NULL);
	CHECK_OK(tenants_get(tenants, STR("demo"), STR("u"), &after, &err), err);
	CHECK(after != before && tenant_is(after, before));
	CHECK_STR(workspace_config(after->ws)->description, STR("changed"));
	tenants_renew(tenants);
	CHECK_OK(tenants_get(tenants, STR("demo"), STR("u"), &again, &err), err);
	CHECK(again == after);
	CHECK_INT(tenants_count(tenants), 3); /* who has an old one keeps it */
	tenants_put(tenants, again);
	tenants_put(tenants, after);
	tenants_put(tenants, before);
	tenants_put(tenants, owner);
	tenants_sweep(tenants, 0);
	CHECK_INT(tenants_count(tenants), 0);
	tenants_destroy(tenants);
}

/* Jobs that run until they are let go. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int running, done;
	bool open;
};

static void pass_gate(void *arg)
{
	struct gate *g = arg;

	pthread_mutex_lock(&g->lock);
	g->running++;
	pthread_cond_broadcast(&g->changed);
	while (!g->open)
		pthread_cond_wait(&g->changed, &g->lock);
	g->done++;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

static void open_gate(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->open = true;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

TEST(no_workspace_can_keep_the_others_waiting)
{
	static struct gate greedy = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	static struct gate modest = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = true};
	struct pool *pool = pool_new(4, 100);

	for (int i = 0; i < 50; i++)
		CHECK(pool_add(pool, 1, pass_gate, &greedy));
	CHECK(pool_add(pool, 2, pass_gate, &modest));
	pthread_mutex_lock(&modest.lock);
	while (!modest.done) /* although none of the greedy ones ends */
		pthread_cond_wait(&modest.changed, &modest.lock);
	pthread_mutex_unlock(&modest.lock);
	pthread_mutex_lock(&greedy.lock);
	CHECK_INT(greedy.done, 0);
	CHECK(greedy.running <= 3);
	pthread_mutex_unlock(&greedy.lock);
	open_gate(&greedy);
	pool_destroy(pool);
	CHECK_INT(greedy.done, 50);
}
