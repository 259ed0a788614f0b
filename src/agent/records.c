/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file for a whole tree of subagents, because its limits hold for the tree: how many run and how many there are is
 * decided in the same conditional write that adds a record. Records that the parent has seen go after a day.
 */
#include "agent/records.h"

#include "base/clock.h"
#include "base/limits.h"

#define KEPT_NS (24 * 3600 * NS_PER_S)

static struct wpath path_of(const struct records *records, struct arena *arena)
{
	struct str agent = records->top.agent.len ? records->top.agent : STR("default");

	return (struct wpath){arena_printf(arena, "agents/%.*s/tasks/%.*s.json",
					   STR_ARG(workspace_encode_name(arena, agent)),
					   STR_ARG(workspace_encode_name(arena, records->top.session)))};
}

static int parse(struct arena *arena, struct str text, struct jv **ret, struct err *err)
{
	int r;

	*ret = jv_object(arena);
	if (!text.len)
		return 0;
	r = jv_parse(arena, text, ret, err);
	if (r == 0 && (*ret)->type != JV_OBJECT)
		r = err_set(err, ERR_CORRUPT, "it is not a JSON object");
	return r ? err_prefix(err, "the records of subagents cannot be read") : 0;
}

int task_records_read(const struct records *records, struct arena *arena, struct jv **ret_tasks, struct err *err)
{
	struct ctx ctx = {.arena = arena};
	struct str text = STR_NONE;
	int r = store_read(workspace_home(records->ws), &ctx, path_of(records, arena), STORE_WHOLE, TASK_RECORDS_MAX,
			   &text, NULL, err);

	return r && r != -ERR_NOT_FOUND ? r : parse(arena, text, ret_tasks, err);
}

bool record_has_ended(const struct jv *record)
{
	struct str status = jv_get_str(record, "status");

	return str_is(status, "COMPLETED") || str_is(status, "FAILED") || str_is(status, "CANCELLED");
}

const struct jv *record_find(const struct jv *tasks, struct str name, struct str session)
{
	const struct jv *found = jv_get_key(tasks, name);

	if (found && str_eq(jv_get_str(found, "parentSessionId"), session))
		return found;
	found = NULL;
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		if (str_eq(jv_get_str(m->value, "label"), name) &&
		    str_eq(jv_get_str(m->value, "parentSessionId"), session))
			found = m->value; /* the newest */
	return found;
}

/* --- changing --- */

static bool is_old(const struct jv *record, int64_t now_ns)
{
	int64_t told_ns;

	return record_has_ended(record) && clock_parse(jv_get_str(record, "deliveredAt"), &told_ns) &&
	       now_ns - told_ns > KEPT_NS;
}

static struct jv *without_old(struct arena *arena, const struct jv *tasks)
{
	struct jv *left = jv_object(arena);
	int64_t now_ns = clock_real_ns();

	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		if (!is_old(m->value, now_ns))
			jv_set_key(arena, left, m->key, m->value);
	return left;
}

struct edit {
	records_edit edit;
	void *arg;
};

static int edit_text(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	const struct edit *e = arg;
	struct jv *tasks;
	struct buf text;
	int r = parse(arena, before, &tasks, err);

	if (r)
		return r;
	tasks = without_old(arena, tasks);
	r = e->edit(e->arg, arena, tasks, err);
	if (r)
		return r;
	buf_init(&text, arena, TASK_RECORDS_MAX);
	jv_write_pretty(&text, tasks);
	*ret_after = buf_str(&text);
	return 0;
}

int task_records_change(const struct records *records, struct arena *arena, records_edit edit, void *arg,
			struct err *err)
{
	struct edit e = {edit, arg};
	struct store_change how = {.max = TASK_RECORDS_MAX, .create = true, .change = edit_text, .arg = &e};
	struct ctx ctx = {.arena = arena, .actor = workspace_actor(records->ws)};

	return store_change(workspace_home(records->ws), &ctx, path_of(records, arena), &how, NULL, NULL, NULL, err);
}

struct setting {
	struct str id;
	const struct jv *members;
};

static int set_members(void *arg, struct arena *arena, struct jv *tasks, struct err *err)
{
	const struct setting *s = arg;
	struct jv *record = (struct jv *)jv_get_key(tasks, s->id);
	bool ended = record_has_ended(record);

	if (!record)
		return err_set(err, ERR_NOT_FOUND, "there is no task \"%.*s\"", STR_ARG(utf8_first(s->id, 80)));
	for (const struct jv_member *m = jv_first(s->members); m; m = m->next) {
		if (ended && str_is(m->key, "status"))
			continue;
		if (m->value->type == JV_NULL)
			jv_remove(record, arena_cstr(arena, m->key));
		else
			jv_set_key(arena, record, m->key, m->value);
	}
	jv_set_str(arena, record, "lastUpdatedAt", clock_format_utc(arena, clock_real_ns()));
	return 0;
}

int task_records_set(const struct records *records, struct arena *arena, struct str id, const struct jv *members,
		     struct err *err)
{
	struct setting s = {id, members};

	return task_records_change(records, arena, set_members, &s, err);
}
