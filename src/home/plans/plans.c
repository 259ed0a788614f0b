/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of planning is one small file per session, changed under a condition. Whether plan mode is on is asked
 * before every call that changes something, so the answer is kept for a second: the process that serves a session is
 * nearly always the one that switched it, and it forgets the answer when it does.
 */
#include "home/plans/plans.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

#define NS_PER_S    INT64_C(1000000000)
#define TODOS_MOST  200
#define CONTENT_MAX ((size_t)2000)

static struct actor actor_of(struct workspace *ws, struct ctx *ctx)
{
	struct actor own = workspace_actor(ws), a = ctx->actor;

	a.agent = a.agent.len ? a.agent : own.agent.len ? own.agent : STR("default");
	a.session = a.session.len ? a.session : own.session;
	return a;
}

static struct wpath state_path(struct workspace *ws, struct ctx *ctx)
{
	struct actor a = actor_of(ws, ctx);

	return (struct wpath){arena_printf(
		ctx->arena, "agents/%.*s/context/%.*s/planning.json", STR_ARG(workspace_encode_id(ctx->arena, a.agent)),
		STR_ARG(workspace_encode_id(ctx->arena, a.session.len ? a.session : STR("default"))))};
}

static struct wpath plan_path(struct workspace *ws, struct ctx *ctx)
{
	const struct jv *own = jv_get(workspace_config(ws)->document, "plans");
	struct str dir = jv_get_str(own, "directory"), name = STR("PLAN");
	struct actor a = actor_of(ws, ctx);

	if (a.session.len && jv_get_bool(own, "per_session", workspace_layout(ws) != LAYOUT_AGENTSCOPE))
		name = workspace_encode_id(ctx->arena, a.session);
	return (struct wpath){
		arena_printf(ctx->arena, "%.*s/%.*s.md", STR_ARG(dir.len ? dir : STR("plans")), STR_ARG(name))};
}

void plan_places(struct workspace *ws, struct ctx *ctx, struct wpath *ret_plan, struct wpath *ret_state)
{
	*ret_plan = plan_path(ws, ctx);
	*ret_state = state_path(ws, ctx);
}

/* --- the answer that is kept for a second --- */

#define KEPT 256

static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t key;
		int64_t until_ns;
		bool active;
	} at[KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t key_of(struct workspace *ws, struct wpath path)
{
	return hash_u64(path.s, (uint64_t)(uintptr_t)ws) | 1;
}

static bool recall(uint64_t key, bool *ret_active)
{
	bool known;

	pthread_mutex_lock(&kept.lock);
	known = kept.at[key % KEPT].key == key && kept.at[key % KEPT].until_ns > clock_monotonic_ns();
	*ret_active = known && kept.at[key % KEPT].active;
	pthread_mutex_unlock(&kept.lock);
	return known;
}

static void remember(uint64_t key, bool active)
{
	pthread_mutex_lock(&kept.lock);
	kept.at[key % KEPT].key = key;
	kept.at[key % KEPT].until_ns = clock_monotonic_ns() + NS_PER_S;
	kept.at[key % KEPT].active = active;
	pthread_mutex_unlock(&kept.lock);
}

/* --- state --- */

static int read_state(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct str text;
	int r = store_read_file(workspace_home(ws), ctx, state_path(ws, ctx), YAML_LEN_MAX, &text, NULL, err);

	*ret = jv_object(ctx->arena);
	if (r)
		return r == -ERR_NOT_FOUND ? 0 : r;
	r = jv_parse(ctx->arena, text, ret, err);
	if (r == 0 && (*ret)->type != JV_OBJECT)
		r = err_set(err, ERR_INVALID, "it is not a JSON object");
	return r ? err_prefix(err, "the state of planning (%.*s) cannot be read", STR_ARG(state_path(ws, ctx).s)) : 0;
}

struct edit {
	void (*apply)(struct arena *arena, struct jv *state, const struct jv *arg);
	const struct jv *arg;
	struct jv *after;
};

static int edit_text(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct edit *e = arg;
	struct jv *state = jv_object(arena);
	struct buf text;
	int r = before.len ? jv_parse(arena, before, &state, err) : 0;

	if (r == 0 && state->type != JV_OBJECT)
		r = err_set(err, ERR_INVALID, "the state of planning is not a JSON object");
	if (r)
		return r;
	e->apply(arena, state, e->arg);
	e->after = state;
	buf_init(&text, arena, YAML_LEN_MAX);
	jv_write_pretty(&text, state);
	*ret_after = buf_str(&text);
	return 0;
}

static int change_state(struct workspace *ws, struct ctx *ctx, struct edit *e, struct err *err)
{
	struct store_change how = {.max = YAML_LEN_MAX, .create = true, .change = edit_text, .arg = e};
	struct wpath path = state_path(ws, ctx);
	int r = store_change(workspace_home(ws), ctx, path, &how, NULL, NULL, NULL, err);

	if (r == 0)
		remember(key_of(ws, path), jv_get_bool(e->after, "plan_active", false));
	return r;
}

/* --- plan mode --- */

int plan_look(struct workspace *ws, struct ctx *ctx, bool with_content, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct wpath path = plan_path(ws, ctx);
	struct str text = STR_NONE;
	struct jv *state, *v = jv_object(arena);
	int r = read_state(ws, ctx, &state, err);

	if (r == 0)
		r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, TOOL_TEXT_MAX, &text, NULL, err);
	if (r && r != -ERR_NOT_FOUND)
		return r;
	jv_set_bool(arena, v, "active", jv_get_bool(state, "plan_active", false));
	jv_set_str(arena, v, "path", path.s);
	jv_set_bool(arena, v, "exists", r == 0);
	if (r == 0 && with_content)
		jv_set_str(arena, v, "content", text);
	*ret = v;
	return 0;
}

static void set_active(struct arena *arena, struct jv *state, const struct jv *arg)
{
	struct str summary = jv_get_str(arg, "summary");

	jv_set_bool(arena, state, "plan_active", jv_get_bool(arg, "active", false));
	jv_set_str(arena, state, jv_get_bool(arg, "active", false) ? "plan_entered_at" : "plan_left_at",
		   clock_format_utc(arena, clock_real_ns()));
	if (summary.len)
		jv_set_str(arena, state, "plan_summary", summary);
}

static int switch_mode(struct workspace *ws, struct ctx *ctx, bool active, struct str summary, struct jv **ret,
		       struct err *err)
{
	struct jv *arg = jv_object(ctx->arena);
	struct edit e = {.apply = set_active, .arg = arg};
	int r;

	jv_set_bool(ctx->arena, arg, "active", active);
	jv_set_str(ctx->arena, arg, "summary", summary);
	r = change_state(ws, ctx, &e, err);
	return r ? r : plan_look(ws, ctx, false, ret, err);
}

int plan_enter(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	return switch_mode(ws, ctx, true, STR_NONE, ret, err);
}

int plan_write(struct workspace *ws, struct ctx *ctx, struct str content, struct jv **ret, struct err *err)
{
	int r;

	if (content.len > TOOL_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the plan has more than %zu bytes; put details into files and name them in the plan",
			       TOOL_TEXT_MAX);
	r = store_write(workspace_home(ws), ctx, plan_path(ws, ctx), content, (struct store_cond){0}, NULL, err);
	return r ? r : plan_look(ws, ctx, false, ret, err);
}

int plan_exit(struct workspace *ws, struct ctx *ctx, struct str summary, struct jv **ret, struct err *err)
{
	struct jv *now;
	int r = plan_look(ws, ctx, false, &now, err);

	if (r == 0 && !jv_get_bool(now, "active", false))
		r = err_set(err, ERR_INVALID, "plan mode is off; plan_enter turns it on");
	if (r == 0 && !jv_get_bool(now, "exists", false))
		r = err_set(err, ERR_INVALID, "there is no plan yet; write it with plan_write first");
	return r ? r : switch_mode(ws, ctx, false, summary, ret, err);
}

int plan_leave(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	return switch_mode(ws, ctx, false, STR_NONE, ret, err);
}

int plan_refuses(struct workspace *ws, struct ctx *ctx, const char *tool, struct err *err)
{
	struct wpath path = state_path(ws, ctx);
	uint64_t key = key_of(ws, path);
	struct jv *state;
	bool active;

	if (!recall(key, &active)) {
		int r = read_state(ws, ctx, &state, err);

		if (r)
			return r;
		active = jv_get_bool(state, "plan_active", false);
		remember(key, active);
	}
	if (!active)
		return 0;
	return err_set(
		err, ERR_DENIED,
		"%s is refused while plan mode is on; look around, write the plan with plan_write, and leave with "
		"plan_exit",
		tool);
}

/* --- what is to do now --- */

static bool is_word(struct str s, const char *const *words)
{
	while (*words && !str_is(s, *words))
		words++;
	return *words != NULL;
}

/* Evidence that names a file must be one that is there. */
static int check_evidence(struct workspace *ws, struct ctx *ctx, const struct jv *todo, struct err *err)
{
	struct str evidence = jv_get_str(todo, "evidence");
	struct wpath path;
	struct err ignored;

	if (!evidence.len || !str_is(jv_get_str(todo, "status"), "completed") ||
	    str_find_char(evidence, ' ') < evidence.len || wpath_parse_lenient(ctx->arena, evidence, &path, &ignored))
		return 0; /* a sentence */
	if (store_stat(workspace_files(ws), ctx, path, NULL, &ignored) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "\"%.*s\" is completed with the evidence \"%.*s\", but there is no such file; do it first, or "
		       "describe the evidence in a sentence",
		       STR_ARG(utf8_first(jv_get_str(todo, "content"), 60)), STR_ARG(utf8_first(evidence, 100)));
}

static int check_todos(struct workspace *ws, struct ctx *ctx, const struct jv *todos, struct err *err)
{
	static const char *const statuses[] = {"pending", "in_progress", "completed", NULL};
	static const char *const priorities[] = {"high", "medium", "low", NULL};
	size_t running = 0, n = 0;

	if (jv_count(todos) > TODOS_MOST)
		return err_set(err, ERR_TOO_LARGE,
			       "the list has %zu items; at most %d are allowed; put several into one", jv_count(todos),
			       TODOS_MOST);
	for (const struct jv_member *m = jv_first(todos); m; m = m->next) {
		struct str content = jv_get_str(m->value, "content"), status = jv_get_str(m->value, "status");
		struct str priority = jv_get_str(m->value, "priority");
		int r;

		n++;
		if (!str_trim(content).len || content.len > CONTENT_MAX)
			return err_set(err, ERR_INVALID,
				       "item %zu has no content of 1 to %zu bytes; say what is to be done", n,
				       CONTENT_MAX);
		if (status.len && !is_word(status, statuses))
			return err_set(err, ERR_INVALID,
				       "item %zu has the status \"%.*s\"; use pending, in_progress or completed", n,
				       STR_ARG(utf8_first(status, 40)));
		if (priority.len && !is_word(priority, priorities))
			return err_set(err, ERR_INVALID, "item %zu has the priority \"%.*s\"; use high, medium or low",
				       n, STR_ARG(utf8_first(priority, 40)));
		running += str_is(status, "in_progress");
		r = check_evidence(ws, ctx, m->value, err);
		if (r)
			return r;
	}
	if (running > 1)
		return err_set(err, ERR_INVALID, "%zu items are in progress; do one at a time", running);
	return 0;
}

static struct str id_of(const struct jv *list, struct str content)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "content"), content))
			return jv_get_str(m->value, "id");
	return STR_NONE;
}

static void set_todos(struct arena *arena, struct jv *state, const struct jv *arg)
{
	const struct jv *before = jv_get(state, "todos");
	struct jv *list = jv_array(arena);

	for (const struct jv_member *m = jv_first(arg); m; m = m->next) {
		struct jv *item = jv_object(arena);
		struct str content = jv_get_str(m->value, "content"), id = id_of(before, content);
		struct str status = jv_get_str(m->value, "status"), priority = jv_get_str(m->value, "priority");

		if (!id.len)
			id = arena_printf(arena, "%08llx", (unsigned long long)(random_u64() & 0xffffffff));
		jv_set_str(arena, item, "id", id);
		jv_set_str(arena, item, "content", content);
		jv_set_str(arena, item, "status", status.len ? status : STR("pending"));
		jv_set_str(arena, item, "priority", priority.len ? priority : STR("medium"));
		if (jv_get_str(m->value, "evidence").len)
			jv_set_str(arena, item, "evidence", jv_get_str(m->value, "evidence"));
		jv_push(arena, list, item);
	}
	jv_set(arena, state, "todos", list);
}

static struct jv *todo_value(struct arena *arena, const struct jv *state)
{
	const struct jv *list = jv_get(state, "todos");
	struct jv *v = jv_object(arena);
	int64_t open = 0;

	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		open += !str_is(jv_get_str(m->value, "status"), "completed");
	jv_set(arena, v, "todos", list && list->type == JV_ARRAY ? jv_copy(arena, list) : jv_array(arena));
	jv_set_int(arena, v, "open", open);
	return v;
}

int todo_write(struct workspace *ws, struct ctx *ctx, const struct jv *todos, struct jv **ret, struct err *err)
{
	struct edit e = {.apply = set_todos, .arg = todos};
	int r = check_todos(ws, ctx, todos, err);

	if (r == 0)
		r = change_state(ws, ctx, &e, err);
	if (r == 0)
		*ret = todo_value(ctx->arena, e.after);
	return r;
}

int todo_read(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct jv *state;
	int r = read_state(ws, ctx, &state, err);

	if (r == 0)
		*ret = todo_value(ctx->arena, state);
	return r;
}
