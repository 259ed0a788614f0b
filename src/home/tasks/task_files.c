/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tasks are. TASKS.yaml takes new ones until it is full (TASKS_FULL); after that each gets a file of its own,
 * tasks/5f/5f0c9a52-….yaml, of the same form. So every file stays small enough to be read and rewritten for one task,
 * and one more task costs the same whether there are a hundred or ten thousand. The first two characters of the id are
 * a directory, so that a beginning of an id is looked up in a short list.
 *
 * Rejected: one file that later versions of a task are appended to. A person who edits the earlier version would be
 * ignored, and other programs would read both.
 */
#include "home/tasks/tasks_internal.h"

#include "base/limits.h"
#include "text/yaml.h"

#define SHARD_LEN  2
#define ID_LEN_MAX ((size_t)64)

int tasks_parse(struct arena *arena, struct str text, struct jv **ret_tasks, struct err *err)
{
	struct jv *document;
	const struct jv *tasks;
	int r = yaml_parse(arena, text, &document, err);

	if (r)
		return r;
	tasks = jv_get(document, "tasks");
	if (document->type != JV_OBJECT && document->type != JV_NULL)
		return err_set(err, ERR_INVALID, "line 1: it has no \"tasks:\" list");
	if (!jv_is_null(tasks) && tasks->type != JV_ARRAY)
		return err_set(err, ERR_INVALID, "line %u: \"tasks\" is not a list", tasks->line);
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		if (m->value->type != JV_OBJECT || !jv_get_str(m->value, "id").len)
			return err_set(err, ERR_INVALID, "line %u: a task has no text \"id\"", m->value->line);
	*ret_tasks = jv_is_null(tasks) ? jv_array(arena) : jv_copy(arena, tasks);
	return 0;
}

int tasks_read(struct workspace *ws, struct ctx *ctx, struct wpath path, struct jv **ret_tasks, struct err *err)
{
	struct str text;
	int r = store_read(workspace_home(ws), ctx, path, STORE_WHOLE, YAML_LEN_MAX, &text, NULL, err);

	if (r == -ERR_NOT_FOUND) {
		*ret_tasks = jv_array(ctx->arena);
		return 0;
	}
	if (r == 0)
		r = tasks_parse(ctx->arena, text, ret_tasks, err);
	if (r == -ERR_INVALID)
		err_prefix(err, "%.*s cannot be read (correct it%s)", STR_ARG(path.s),
			   str_eq(path.s, TASKS_PATH.s) ? ", or the next change sets it aside" : "");
	return r;
}

/* --- files of single tasks --- */

/* True for what an id of a task with a file of its own can begin with: hex digits and '-'. */
static bool may_have_file(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (!((id.ptr[i] >= '0' && id.ptr[i] <= '9') || (id.ptr[i] >= 'a' && id.ptr[i] <= 'f') ||
		      (id.ptr[i] == '-' && i >= SHARD_LEN)))
			return false;
	return id.len && id.len <= ID_LEN_MAX;
}

struct wpath task_path(struct arena *arena, struct str id)
{
	return (struct wpath){
		arena_printf(arena, TASKS_DIR "/%.*s/%.*s.yaml", STR_ARG(str_first(id, SHARD_LEN)), STR_ARG(id))};
}

bool task_file_id(struct wpath path, struct str *ret_id)
{
	struct str name = wpath_name(path);

	if (!wpath_within(path, (struct wpath){STR(TASKS_DIR)}) || !str_ends(name, STR(".yaml")))
		return false;
	*ret_id = str_first(name, name.len - 5);
	return ret_id->len > SHARD_LEN && may_have_file(*ret_id) &&
	       str_eq(wpath_name(wpath_parent(path)), str_first(*ret_id, SHARD_LEN));
}

int task_files(struct workspace *ws, struct ctx *ctx, struct wpath dir, task_file_fn visit, void *arg, struct err *err)
{
	struct store_list_req req = {.recursive = true, .limit = STORE_PAGE_MAX};
	struct store_page page = {0};
	struct str id;
	int r;

	do {
		r = store_list(workspace_home(ws), ctx, dir, &req, &page, err);
		for (size_t i = 0; r == 0 && i < page.count; i++)
			if (task_file_id(page.entries[i].path, &id))
				r = visit(arg, &page.entries[i], id, err);
		req.after = page.next;
	} while (r == 0 && page.next.ptr);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

/* --- by a beginning of an id --- */

struct search {
	struct str id;
	size_t hits;
	struct str first; /* the id of the first hit */
	bool exact;
	struct wpath path;
	struct err *err; /* says which are meant, from the second hit on */
};

static void hit(struct search *s, struct str own, struct wpath path)
{
	if (s->exact)
		return;
	s->exact = own.len == s->id.len;
	if (++s->hits == 1 || s->exact)
		s->path = path;
	if (s->hits == 1)
		s->first = own;
	else if (s->hits == 2)
		err_set(s->err, ERR_INVALID,
			"several tasks have ids that begin with \"%.*s\" (%.*s and %.*s); give more of it",
			STR_ARG(utf8_first(s->id, 60)), STR_ARG(utf8_first(s->first, 60)),
			STR_ARG(utf8_first(own, 60)));
}

static int hit_file(void *arg, const struct store_entry *file, struct str id, struct err *err)
{
	struct search *s = arg;

	(void)err;
	if (str_starts(id, s->id))
		hit(s, id, file->path);
	return 0;
}

static int search_files(struct workspace *ws, struct ctx *ctx, struct search *s, struct err *err)
{
	struct wpath dir = {STR(TASKS_DIR)};

	if (!may_have_file(s->id))
		return 0;
	if (s->id.len >= SHARD_LEN)
		dir.s = arena_printf(ctx->arena, TASKS_DIR "/%.*s", STR_ARG(str_first(s->id, SHARD_LEN)));
	return task_files(ws, ctx, dir, hit_file, s, err);
}

int tasks_find(struct workspace *ws, struct ctx *ctx, struct str id, struct wpath *ret_path, struct err *err)
{
	struct err which;
	struct search s = {.id = id, .err = &which};
	struct store_stat stat;
	struct jv *tasks;
	int r;

	if (!id.len)
		return err_set(err, ERR_INVALID, "the id of the task is empty; see list_tasks");
	if (id.len > 8 && may_have_file(id)) { /* the whole id needs no search */
		*ret_path = task_path(ctx->arena, id);
		r = store_stat(workspace_home(ws), ctx, *ret_path, &stat, err);
		if (r != -ERR_NOT_FOUND)
			return r;
	}
	r = tasks_read(ws, ctx, TASKS_PATH, &tasks, err);
	for (const struct jv_member *m = r ? NULL : jv_first(tasks); m; m = m->next)
		if (str_starts(jv_get_str(m->value, "id"), id))
			hit(&s, jv_get_str(m->value, "id"), TASKS_PATH);
	if (r == 0 && !s.exact)
		r = search_files(ws, ctx, &s, err);
	if (r)
		return r;
	if (s.hits == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no task whose id begins with \"%.*s\"; see list_tasks",
			       STR_ARG(utf8_first(id, 60)));
	*ret_path = s.path;
	if (s.hits == 1 || s.exact)
		return 0;
	*err = which;
	return -ERR_INVALID;
}

/* --- all of them --- */

struct reading {
	struct workspace *ws;
	struct ctx *ctx;
	struct jv *tasks;
};

static int read_one(void *arg, const struct store_entry *file, struct str id, struct err *err)
{
	struct reading *reading = arg;
	struct jv *own;
	int r = tasks_read(reading->ws, reading->ctx, file->path, &own, err);

	(void)id;
	for (const struct jv_member *m = r ? NULL : jv_first(own); m; m = m->next)
		jv_push(reading->ctx->arena, reading->tasks, m->value);
	return r;
}

int tasks_read_all(struct workspace *ws, struct ctx *ctx, struct jv **ret_tasks, struct err *err)
{
	struct reading reading = {.ws = ws, .ctx = ctx};
	int r = tasks_read(ws, ctx, TASKS_PATH, &reading.tasks, err);

	if (r == 0)
		r = task_files(ws, ctx, (struct wpath){STR(TASKS_DIR)}, read_one, &reading, err);
	*ret_tasks = reading.tasks;
	return r;
}
