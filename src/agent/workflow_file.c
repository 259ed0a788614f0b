/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflows/NAME.yaml. Steps come one after the other unless `needs` says otherwise; `parallel` is a list of steps that
 * run at the same time; `team` is a step whose agent gives tasks to the members. All of it becomes one flat list of
 * steps with what each needs, and everything that cannot work is refused here, with its line.
 */
#include <stdarg.h>
#include <stdio.h>

#include "agent/workflow.h"
#include "base/limits.h"
#include "home/subagents/subagents.h"
#include "text/yaml.h"

#define STEPS_MAX   100
#define RUNNING     4
#define RUNNING_MAX 16

struct reading {
	struct arena *arena;
	struct jv *steps;    /* so far */
	struct jv *frontier; /* ids that the next step needs */
	struct err *err;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct err *err, const struct jv *at, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (at && at->line)
		return err_set(err, ERR_INVALID, "line %u: %s", at->line, text);
	return err_set(err, ERR_INVALID, "%s", text);
}

static int check_keys(const struct jv *v, const char *const *keys, size_t count, struct err *err)
{
	if (!v || v->type != JV_OBJECT)
		return refuse(err, v, "expected an object here");
	for (const struct jv_member *m = jv_first(v); m; m = m->next) {
		const char *near;
		bool known = false;

		for (size_t i = 0; i < count; i++)
			known = known || str_is(m->key, keys[i]);
		if (known)
			continue;
		near = str_nearest(m->key, keys, count);
		return refuse(err, m->value, "\"%.*s\" is not a key here%s%s%s", STR_ARG(utf8_first(m->key, 60)),
			      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	}
	return 0;
}

static bool is_id(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (!((id.ptr[i] >= 'a' && id.ptr[i] <= 'z') || (id.ptr[i] >= '0' && id.ptr[i] <= '9') ||
		      (i && memchr("_-", id.ptr[i], 2))))
			return false;
	return id.len && id.len <= 40 && !str_is(id, "input") && !str_is(id, "run");
}

static bool has_step(const struct reading *r, struct str id)
{
	for (const struct jv_member *m = jv_first(r->steps); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "id"), id))
			return true;
	return false;
}

static bool lists(const struct jv *list, struct str word)
{
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (str_eq(jv_str_of(m->value), word))
			return true;
	return false;
}

static void need(struct reading *r, struct jv *needs, struct str id)
{
	if (!lists(needs, id))
		jv_push(r->arena, needs, jv_str(r->arena, id));
}

/* {{NAME}} in a text; each must be the input, the run, or a step that has ended by then. */
static int check_marks(struct reading *r, const struct jv *at, struct str text, struct jv *needs)
{
	for (size_t i = 0; (i = str_find(text, STR("{{"), i)) != SIZE_MAX;) {
		size_t end = str_find(text, STR("}}"), i);
		struct str name;

		if (end == SIZE_MAX)
			break;
		name = str_trim(str_first(str_from(text, i + 2), end - i - 2));
		i = end + 2;
		if (str_is(name, "input") || str_is(name, "run"))
			continue;
		if (!has_step(r, name))
			return refuse(r->err, at, "{{%.*s}} is neither \"input\" nor a step before this one",
				      STR_ARG(utf8_first(name, 60)));
		if (needs)
			need(r, needs, name);
	}
	return 0;
}

static int check_when(struct reading *r, const struct jv *when, struct jv *needs)
{
	static const char *const keys[] = {"step", "is", "contains", "lacks", "status"};
	struct str step = jv_get_str(when, "step");
	int e = check_keys(when, keys, COUNT(keys), r->err);

	if (e)
		return e;
	if (!has_step(r, step))
		return refuse(r->err, when, "\"when\" names no step before this one");
	if (jv_count(when) != 2)
		return refuse(r->err, when,
			      "\"when\" needs a step and one of \"is\", \"contains\", \"lacks\", \"status\"");
	for (const struct jv_member *m = jv_first(when); m; m = m->next)
		if (m->value->type != JV_STR)
			return refuse(r->err, m->value, "\"%.*s\" of \"when\" must be text", STR_ARG(m->key));
	need(r, needs, step);
	return 0;
}

static int read_needs(struct reading *r, const struct jv *step, struct jv **ret)
{
	const struct jv *given = jv_get(step, "needs");

	*ret = jv_array(r->arena);
	for (const struct jv_member *m = jv_first(given ? given : r->frontier); m; m = m->next) {
		if (!has_step(r, jv_str_of(m->value)))
			return refuse(r->err, m->value, "it needs \"%.*s\", which is not a step before this one",
				      STR_ARG(utf8_first(jv_str_of(m->value), 60)));
		need(r, *ret, jv_str_of(m->value));
	}
	return 0;
}

/* Members of a team, and who leads it. */
static int read_team(struct reading *r, const struct jv *team, struct jv *step)
{
	static const char *const keys[] = {"coordinator", "members"};
	int e = check_keys(team, keys, COUNT(keys), r->err);

	if (e)
		return e;
	if (jv_get(step, "agent"))
		return refuse(r->err, team, "a step has an agent or a team; the agent of a team is its coordinator");
	if (!jv_count(jv_get(team, "members")))
		return refuse(r->err, team, "a team needs members");
	if (jv_get_str(team, "coordinator").len)
		jv_set_str(r->arena, step, "agent", jv_get_str(team, "coordinator"));
	jv_set(r->arena, step, "members", jv_copy(r->arena, jv_get(team, "members")));
	return 0;
}

static const char *const step_keys[] = {"id",     "agent", "task",  "needs", "when",       "output",
					"prompt", "model", "tools", "team",  "on_failure", "parallel"};

static int read_step(struct reading *r, const struct jv *given, struct jv **ret_id)
{
	static const char *const copied[] = {"agent", "task",  "output", "prompt",
					     "model", "tools", "when",   "on_failure"};
	struct jv *step = jv_object(r->arena), *needs;
	struct str id = jv_get_str(given, "id"), failure = jv_get_str(given, "on_failure");
	int e = check_keys(given, step_keys, COUNT(step_keys) - 1, r->err);

	if (e)
		return e;
	if (!is_id(id))
		return refuse(r->err, given, "a step needs an id of lower-case letters, digits, '-' and '_'");
	if (has_step(r, id))
		return refuse(r->err, given, "two steps are called \"%.*s\"", STR_ARG(id));
	if (!str_trim(jv_get_str(given, "task")).len)
		return refuse(r->err, given, "the step \"%.*s\" has no task", STR_ARG(id));
	if (failure.len && !str_is(failure, "stop") && !str_is(failure, "continue"))
		return refuse(r->err, given, "on_failure must be \"stop\" or \"continue\"");
	e = read_needs(r, given, &needs);
	jv_set_str(r->arena, step, "id", id);
	for (size_t i = 0; i < COUNT(copied); i++)
		if (jv_get(given, copied[i]))
			jv_set(r->arena, step, copied[i], jv_copy(r->arena, jv_get(given, copied[i])));
	if (e == 0)
		e = check_marks(r, given, jv_get_str(given, "task"), needs);
	if (e == 0)
		e = check_marks(r, given, jv_get_str(given, "output"), needs);
	if (e == 0 && jv_get(given, "when"))
		e = check_when(r, jv_get(given, "when"), needs);
	if (e == 0 && jv_get(given, "team"))
		e = read_team(r, jv_get(given, "team"), step);
	if (!jv_get(step, "agent"))
		jv_set_str(r->arena, step, "agent", STR(GENERAL_PURPOSE));
	jv_set(r->arena, step, "needs", needs);
	jv_push(r->arena, r->steps, step);
	*ret_id = jv_str(r->arena, id);
	return e;
}

/* A step, or several that run at the same time. */
static int read_next(struct reading *r, const struct jv *given)
{
	const struct jv *parallel = jv_get(given, "parallel");
	struct jv *frontier = jv_array(r->arena), *id;
	int e = 0;

	if (jv_count(r->steps) + jv_count(parallel) >= STEPS_MAX)
		return refuse(r->err, given, "a workflow has at most %d steps", STEPS_MAX);
	if (!parallel) {
		e = read_step(r, given, &id);
		if (e == 0)
			jv_push(r->arena, frontier, id);
	} else if (jv_count(given) != 1 || parallel->type != JV_ARRAY || !jv_count(parallel)) {
		return refuse(r->err, given, "\"parallel\" must be a list of steps, with no other keys");
	}
	for (const struct jv_member *m = jv_first(parallel); m && e == 0; m = m->next) {
		e = read_step(r, m->value, &id);
		if (e == 0)
			jv_push(r->arena, frontier, id);
	}
	r->frontier = frontier;
	return e;
}

/* A file that is one team: a step of its own. */
static struct jv *as_steps(struct arena *arena, const struct jv *v)
{
	struct jv *steps = jv_array(arena), *step = jv_object(arena);

	jv_set_str(arena, step, "id", STR("team"));
	jv_set(arena, step, "team", (struct jv *)jv_get(v, "team"));
	if (jv_get(v, "task"))
		jv_set(arena, step, "task", (struct jv *)jv_get(v, "task"));
	step->line = v->line;
	jv_push(arena, steps, step);
	return steps;
}

static int read_all(struct arena *arena, const struct jv *v, struct jv *ret, struct err *err)
{
	static const char *const keys[] = {"description", "input", "notebook", "max_running",
					   "answer",      "steps", "team",     "task"};
	struct reading r = {.arena = arena, .steps = jv_array(arena), .frontier = jv_array(arena), .err = err};
	const struct jv *steps = jv_get(v, "team") && v->type == JV_OBJECT ? as_steps(arena, v) : jv_get(v, "steps");
	int64_t running = jv_get_int(v, "max_running", RUNNING);
	int e = check_keys(v, keys, COUNT(keys), err);

	if (e)
		return e;
	if (jv_get(v, "team") && jv_get(v, "steps"))
		return refuse(err, v, "a workflow must have steps, or be one team with a task");
	if (!jv_get(v, "team") && jv_get(v, "task"))
		return refuse(err, v, "a task belongs to a step, or to a team");
	if (!steps || steps->type != JV_ARRAY || !jv_count(steps))
		return refuse(err, v, "a workflow needs steps, or a team with a task");
	if (running < 1 || running > RUNNING_MAX)
		return refuse(err, jv_get(v, "max_running"), "max_running must be between 1 and %d", RUNNING_MAX);
	for (const struct jv_member *m = jv_first(steps); m && e == 0; m = m->next)
		e = read_next(&r, m->value);
	if (e == 0)
		e = check_marks(&r, v, jv_get_str(v, "answer"), NULL);
	if (e)
		return e;
	for (size_t i = 0; i < 2; i++)
		if (jv_get(v, keys[i]))
			jv_set_str(arena, ret, keys[i], jv_get_str(v, keys[i]));
	jv_set_bool(arena, ret, "notebook", jv_get_bool(v, "notebook", true));
	jv_set_int(arena, ret, "max_running", running);
	if (jv_get(v, "answer"))
		jv_set_str(arena, ret, "answer", jv_get_str(v, "answer"));
	jv_set(arena, ret, "steps", r.steps);
	return 0;
}

int workflow_parse(struct arena *arena, struct str name, struct str text, struct jv **ret, struct err *err)
{
	struct jv *v, *out = jv_object(arena);
	int r = yaml_parse(arena, text, &v, err);

	jv_set_str(arena, out, "name", name);
	if (r == 0)
		r = read_all(arena, v, out, err);
	if (r)
		return err_prefix(err, "workflows/%.*s.yaml", STR_ARG(utf8_first(name, 60)));
	*ret = out;
	return 0;
}

int workflow_get(struct workspace *ws, struct ctx *ctx, struct str name, struct jv **ret, struct err *err)
{
	struct str text;
	struct wpath path;
	int r = wpath_parse(arena_printf(ctx->arena, "workflows/%.*s.yaml", STR_ARG(name)), &path, err);

	if (r == 0 && str_find_char(name, '/') < name.len)
		r = err_set(err, ERR_INVALID,
			    "the name of a workflow must not contain '/'; use letters, digits and '-'");
	if (r == 0)
		r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, YAML_LEN_MAX, &text, NULL, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no workflow \"%.*s\"; 'stead workflow' lists those in workflows/",
			       STR_ARG(utf8_first(name, 60)));
	return r ? r : workflow_parse(ctx->arena, name, text, ret, err);
}

static void add_one(struct workspace *ws, struct ctx *ctx, struct str name, struct jv *found, struct jv *problems)
{
	struct arena *arena = ctx->arena;
	struct jv *v, *item = jv_object(arena);
	struct err err;

	if (workflow_get(ws, ctx, name, &v, &err) != 0) {
		jv_set_str(arena, item, "path", arena_printf(arena, "workflows/%.*s.yaml", STR_ARG(name)));
		jv_set_str(arena, item, "problem", err_text(arena, &err));
		jv_push(arena, problems, item);
		return;
	}
	jv_set_str(arena, item, "name", name);
	if (jv_get(v, "description"))
		jv_set_str(arena, item, "description", jv_get_str(v, "description"));
	if (jv_get(v, "input"))
		jv_set_str(arena, item, "input", jv_get_str(v, "input"));
	jv_set_int(arena, item, "steps", (int64_t)jv_count(jv_get(v, "steps")));
	jv_push(arena, found, item);
}

int workflow_list(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *found = jv_array(arena), *problems = jv_array(arena);
	struct store_list_req req = {.limit = 1000};
	struct store_page page = {0};
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR("workflows")}, &req, &page, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	for (size_t i = 0; r == 0 && i < page.count; i++) {
		struct str path = page.entries[i].path.s, name = str_from(path, str_rfind_char(path, '/') + 1);

		if (str_ends(name, STR(".yaml")))
			add_one(ws, ctx, str_first(name, name.len - 5), found, problems);
	}
	*ret = jv_object(arena);
	jv_set(arena, *ret, "workflows", found);
	jv_set(arena, *ret, "problems", problems);
	return 0;
}

/* --- readings of a run --- */

bool workflow_holds(const struct jv *when, const struct jv *states)
{
	const struct jv *state = jv_get_key(states, jv_get_str(when, "step"));
	struct str result = jv_get_str(state, "result");

	if (!when)
		return true;
	if (jv_get(when, "status"))
		return str_eq(jv_get_str(state, "status"), jv_get_str(when, "status"));
	if (jv_get(when, "is"))
		return str_eq(str_trim(result), str_trim(jv_get_str(when, "is")));
	if (jv_get(when, "contains"))
		return str_find(result, jv_get_str(when, "contains"), 0) != SIZE_MAX;
	return str_find(result, jv_get_str(when, "lacks"), 0) == SIZE_MAX;
}

struct str workflow_fill(struct arena *arena, struct str text, const struct jv *record)
{
	struct buf out;

	buf_init(&out, arena, TOOL_TEXT_MAX);
	for (;;) {
		size_t at = str_find(text, STR("{{"), 0), end = at == SIZE_MAX ? at : str_find(text, STR("}}"), at);
		struct str name;

		if (end == SIZE_MAX)
			break;
		name = str_trim(str_first(str_from(text, at + 2), end - at - 2));
		buf_add(&out, str_first(text, at));
		if (str_is(name, "input"))
			buf_add(&out, jv_get_str(record, "input"));
		else if (str_is(name, "run"))
			buf_add(&out, jv_get_str(record, "id"));
		else
			buf_add(&out, jv_get_str(jv_get_key(jv_get(record, "steps"), name), "result"));
		text = str_from(text, end + 2);
	}
	buf_add(&out, text);
	return out.len ? buf_str(&out) : STR("");
}
