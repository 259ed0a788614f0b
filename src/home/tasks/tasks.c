/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TASKS.yaml. Every change is a read-modify-write under the condition that nobody else wrote, made by lines
 * (text/yaml.h), so that agents on several machines and a person with an editor can share one file.
 */
#include "home/tasks/tasks.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/yaml.h"

#define NS_PER_S    INT64_C(1000000000)
#define TASKS_PATH  ((struct wpath){STR("TASKS.yaml")})
#define TASKS_MOST  10000
#define SHORT_LEAST 8

static const char *const statuses[] = {"pending", "in_progress", "awaiting_check", "completed", "failed", "cancelled"};
static const char *const priorities[] = {"urgent", "high", "normal", "low"};

static size_t index_of(struct str word, const char *const *words, size_t n)
{
	size_t i = 0;

	while (i < n && !str_is(word, words[i]))
		i++;
	return i;
}

bool task_is_active(const struct jv *task)
{
	return index_of(jv_get_str(task, "status"), statuses, COUNT(statuses)) < 3;
}

static bool has_ended(const struct jv *task)
{
	size_t i = index_of(jv_get_str(task, "status"), statuses, COUNT(statuses));

	return i >= 3 && i < COUNT(statuses);
}

static int64_t time_of(const struct jv *task, const char *key)
{
	int64_t ns;

	return clock_parse(jv_get_str(task, key), &ns) ? ns : 0;
}

static struct jv *now(struct arena *arena)
{
	return jv_str(arena, clock_format_utc(arena, clock_real_ns()));
}

/* --- reading --- */

static int parse(struct arena *arena, struct str text, struct jv **ret_tasks, struct err *err)
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
			return err_set(err, ERR_INVALID, "line %u: a task has no \"id\" that is text", m->value->line);
	*ret_tasks = jv_is_null(tasks) ? jv_array(arena) : jv_copy(arena, tasks);
	return 0;
}

/* All in the order of the file, with the keys that the file has. */
static int tasks_read(struct workspace *ws, struct ctx *ctx, struct jv **ret_tasks, struct err *err)
{
	struct str text;
	int r = store_read(workspace_home(ws), ctx, TASKS_PATH, STORE_WHOLE, YAML_LEN_MAX, &text, NULL, err);

	if (r == -ERR_NOT_FOUND) {
		*ret_tasks = jv_array(ctx->arena);
		return 0;
	}
	if (r == 0)
		r = parse(ctx->arena, text, ret_tasks, err);
	if (r == -ERR_INVALID)
		err_prefix(err, "TASKS.yaml cannot be read (correct it, or the next change sets it aside)");
	return r;
}

/* The item whose id begins with `id`; an id that is exactly that wins. */
static int find(const struct jv *tasks, struct str id, size_t *ret_index, struct err *err)
{
	const struct jv_member *first = NULL;
	size_t i = 0, hits = 0;

	if (!id.len)
		return err_set(err, ERR_INVALID, "the id of the task is empty; see list_tasks");
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next, i++) {
		struct str own = jv_get_str(m->value, "id");

		if (!str_starts(own, id))
			continue;
		if (hits++ == 0 || own.len == id.len)
			*ret_index = i;
		if (own.len == id.len)
			return 0;
		if (!first)
			first = m;
		else if (hits == 2)
			err_set(err, ERR_INVALID,
				"several tasks have ids that begin with \"%.*s\" (%.*s and %.*s); give more of it",
				STR_ARG(utf8_first(id, 60)), STR_ARG(utf8_first(jv_get_str(first->value, "id"), 60)),
				STR_ARG(utf8_first(own, 60)));
	}
	if (hits == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no task whose id begins with \"%.*s\"; see list_tasks",
			       STR_ARG(utf8_first(id, 60)));
	return hits == 1 ? 0 : -ERR_INVALID;
}

static size_t common(struct str a, struct str b)
{
	size_t n = 0;

	while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
		n++;
	return n;
}

static struct str short_id(const struct jv *tasks, struct str id)
{
	size_t need = SHORT_LEAST;

	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		struct str other = jv_get_str(m->value, "id");

		if (!str_eq(other, id) && common(other, id) >= need)
			need = common(other, id) + 1;
	}
	return utf8_first(id, need);
}

static int by_urgency(const void *a, const void *b)
{
	const struct jv *x = *(const struct jv *const *)a, *y = *(const struct jv *const *)b;
	size_t p = index_of(jv_get_str(x, "priority"), priorities, COUNT(priorities));
	size_t q = index_of(jv_get_str(y, "priority"), priorities, COUNT(priorities));
	int c = (p > q) - (p < q);

	if (c == 0)
		c = str_cmp(jv_get_str(x, "created_at"), jv_get_str(y, "created_at"));
	return c ? c : str_cmp(jv_get_str(x, "id"), jv_get_str(y, "id"));
}

static int known(struct str word, const char *what, const char *const *words, size_t n, struct err *err)
{
	char list[200] = "";
	size_t len = 0;

	if (!word.len || index_of(word, words, n) < n)
		return 0;
	for (size_t i = 0; i < n && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", words[i]);
	return err_set(err, ERR_INVALID, "the %s \"%.*s\" is not one of %s", what, STR_ARG(utf8_first(word, 60)), list);
}

int tasks_list(struct workspace *ws, struct ctx *ctx, struct str status, struct str type, struct jv **ret_tasks,
	       struct err *err)
{
	struct arena *arena = ctx->arena;
	struct jv *tasks, **sorted;
	size_t n = 0;
	int r = known(status, "status", statuses, COUNT(statuses), err);

	if (!r)
		r = tasks_read(ws, ctx, &tasks, err);
	if (r)
		return r;
	sorted = ARENA_ARRAY(arena, struct jv *, jv_count(tasks) + 1);
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		if (status.len && !str_eq(jv_get_str(m->value, "status"), status))
			continue;
		if (type.len && !str_eq(jv_get_str(m->value, "type"), type))
			continue;
		jv_set_str(arena, m->value, "short_id", short_id(tasks, jv_get_str(m->value, "id")));
		sorted[n++] = m->value;
	}
	qsort(sorted, n, sizeof(*sorted), by_urgency);
	*ret_tasks = jv_array(arena);
	for (size_t i = 0; i < n; i++)
		jv_push(arena, *ret_tasks, sorted[i]);
	return 0;
}

int tasks_get(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret_task, struct err *err)
{
	struct jv *tasks;
	size_t index = 0;
	int r = tasks_read(ws, ctx, &tasks, err);

	if (!r)
		r = find(tasks, id, &index, err);
	if (!r)
		*ret_task = (struct jv *)jv_at(tasks, index);
	return r;
}

/* --- changing --- */

struct change {
	struct workspace *ws;
	struct ctx *ctx;
	/* Makes the change to the text; `tasks` is its parsed content. */
	int (*edit)(struct change *c, const struct jv *tasks, struct str *text, struct err *err);
	const struct jv *fields;
	struct str id;
	bool force;
	struct jv *task; /* out */
	struct str note;
	uint64_t failed, removed;
};

/* A file that nobody can read is kept under another name; what names it is its content, so that it is kept once. */
static int set_aside(struct change *c, struct str text, const struct err *why, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	struct wpath path = {arena_printf(arena, "TASKS.broken-%.8s.yaml", hash_hex128(arena, text).ptr)};
	int r = store_write(workspace_home(c->ws), c->ctx, path, text, (struct store_cond){.kind = STORE_ABSENT}, NULL,
			    err);

	if (r && r != -ERR_EXISTS)
		return r;
	c->note = arena_printf(
		arena, "TASKS.yaml could not be read (%.*s); it was set aside as %.*s and a new list was started",
		STR_ARG(err_text(arena, why)), STR_ARG(path.s));
	return 0;
}

static void add_note(struct arena *arena, struct jv *task, struct str note)
{
	struct str before = jv_get_str(task, "notes"), time = clock_format_utc(arena, clock_real_ns());
	struct buf text;

	buf_init(&text, arena, YAML_LEN_MAX);
	buf_add(&text, before);
	if (before.len && !str_ends(before, STR("\n")))
		buf_char(&text, '\n');
	buf_printf(&text, "- [%.*s] ", STR_ARG(time));
	buf_add(&text, note);
	buf_char(&text, '\n');
	jv_set_str(arena, task, "notes", buf_str(&text));
}

static uint64_t setting(const struct change *c, const char *key, uint64_t fallback)
{
	const struct jv *document = workspace_config(c->ws)->document;
	const struct jv *config = jv_get(jv_get(jv_get(document, "builtins"), "task_tracker"), "config");
	int64_t v = jv_get_int(config, key, -1);

	return v < 0 ? fallback : (uint64_t)v;
}

/* What a task that is not looked after, or ended long ago, becomes. Items are gone through from the last, so that the
   places of those before them stay. */
static int clean(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	int64_t at = clock_real_ns();
	int64_t stale = (int64_t)setting(c, "stale_hours", 48) * 3600 * NS_PER_S;
	int64_t keep = (int64_t)setting(c, "max_age_days", 3) * 86400 * NS_PER_S;
	int r = 0;

	for (size_t i = jv_count(tasks); i-- && !r;) {
		struct jv *task = jv_copy(arena, jv_at(tasks, i));
		int64_t seen = time_of(task, "last_checked_at"), made = time_of(task, "created_at");
		int64_t ended = time_of(task, "completed_at");

		seen = seen > made ? seen : made;
		if (has_ended(task) && keep && ended && at - ended > keep) {
			c->removed++;
			r = yaml_list_remove(arena, *text, "tasks", i, text, err);
		} else if (task_is_active(task) && !str_is(jv_get_str(task, "status"), "awaiting_check") && stale &&
			   seen && at - seen > stale) {
			c->failed++;
			add_note(arena, task, STR("No progress for too long; marked as failed."));
			jv_set_str(arena, task, "status", STR("failed"));
			jv_set(arena, task, "completed_at", now(arena));
			r = yaml_list_set(arena, *text, "tasks", i, task, text, err);
		}
	}
	return r;
}

static int change_text(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct change *c = arg;
	struct str text = before.len ? before : STR("version: 1\ntasks: []\n"), was = text;
	struct jv *tasks;
	struct err why;
	int r;

	c->failed = c->removed = 0;
	if (parse(arena, text, &tasks, &why)) {
		r = set_aside(c, text, &why, err);
		if (r)
			return r;
		text = STR("version: 1\ntasks: []\n");
		tasks = jv_array(arena);
	}
	r = c->edit(c, tasks, &text, err);
	if (!r)
		r = parse(arena, text, &tasks, err);
	if (!r)
		r = clean(c, tasks, &text, err);
	if (!r && !str_eq(text, was))
		r = yaml_set(arena, text, "last_updated", now(arena), &text, err);
	if (!r && !str_eq(text, was))
		*ret_after = text;
	return r;
}

static int run(struct change *c, struct err *err)
{
	struct store_change how = {.max = YAML_LEN_MAX, .create = true, .change = change_text, .arg = c};

	return store_change(workspace_home(c->ws), c->ctx, TASKS_PATH, &how, NULL, NULL, NULL, err);
}

static struct str uuid4(struct arena *arena)
{
	uint64_t a = random_u64(), b = random_u64();

	return arena_printf(arena, "%08llx-%04llx-4%03llx-%04llx-%012llx", (unsigned long long)(a >> 32),
			    (unsigned long long)(a >> 16 & 0xffff), (unsigned long long)(a & 0xfff),
			    (unsigned long long)((b >> 48 & 0x3fff) | 0x8000),
			    (unsigned long long)(b & 0xffffffffffffULL));
}

static int check_fields(const struct jv *fields, struct err *err)
{
	static const char *const times[] = {"deadline", "started_at", "completed_at"};
	int r = known(jv_get_str(fields, "status"), "status", statuses, COUNT(statuses), err);

	if (!r)
		r = known(jv_get_str(fields, "priority"), "priority", priorities, COUNT(priorities), err);
	for (size_t i = 0; i < COUNT(times) && !r; i++) {
		struct str text = jv_get_str(fields, times[i]);
		int64_t ns;

		if (text.len && !clock_parse(text, &ns))
			r = err_set(err, ERR_INVALID, "\"%.*s\" is not a valid time for %s; write 2026-11-15T09:30:00Z",
				    STR_ARG(utf8_first(text, 60)), times[i]);
	}
	return r;
}

/* Status and what follows from it, notes, and the other fields as they are given. */
static void merge(struct arena *arena, struct jv *task, const struct jv *fields)
{
	struct str status = jv_get_str(fields, "status");

	for (const struct jv_member *m = jv_first(fields); m; m = m->next) {
		if (str_is(m->key, "notes") && jv_str_of(m->value).len)
			add_note(arena, task, jv_str_of(m->value));
		else if (!str_is(m->key, "notes") && !str_is(m->key, "id") && !jv_is_null(m->value))
			jv_set_key(arena, task, m->key, jv_copy(arena, m->value));
	}
	if (str_is(status, "in_progress"))
		jv_set(arena, task, "started_at", now(arena));
	if (status.len && has_ended(task))
		jv_set(arena, task, "completed_at", now(arena));
	else if (status.len && jv_get(task, "completed_at"))
		jv_set(arena, task, "completed_at", jv_null(arena));
}

static int edit_create(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	struct jv *task = jv_object(arena);

	if (jv_count(tasks) >= TASKS_MOST)
		return err_set(err, ERR_TOO_LARGE, "there are %d tasks already; delete some that have ended",
			       TASKS_MOST);
	jv_set_str(arena, task, "id", c->id);
	jv_set_str(arena, task, "type", STR("custom"));
	jv_set_str(arena, task, "status", STR("pending"));
	jv_set_str(arena, task, "priority", STR("normal"));
	jv_set_str(arena, task, "description", STR_NONE);
	jv_set(arena, task, "created_at", now(arena));
	jv_set_int(arena, task, "check_count", 0);
	merge(arena, task, c->fields);
	c->task = task;
	return yaml_list_set(arena, *text, "tasks", jv_count(tasks), task, text, err);
}

int tasks_create(struct workspace *ws, struct ctx *ctx, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_create, .fields = fields, .id = uuid4(ctx->arena)};
	int r = check_fields(fields, err);

	if (!r && !str_trim(jv_get_str(fields, "description")).len)
		r = err_set(err, ERR_INVALID, "the description of the task is empty; say what to do");
	if (!r)
		r = run(&c, err);
	if (!r) {
		*ret_task = c.task;
		*ret_note = c.note;
	}
	return r;
}

static int edit_update(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	size_t index = 0;
	int r = find(tasks, c->id, &index, err);

	if (r)
		return r;
	c->task = jv_copy(arena, jv_at(tasks, index));
	merge(arena, c->task, c->fields);
	jv_set_int(arena, c->task, "check_count", jv_get_int(c->task, "check_count", 0) + 1);
	jv_set(arena, c->task, "last_checked_at", now(arena));
	return yaml_list_set(arena, *text, "tasks", index, c->task, text, err);
}

int tasks_update(struct workspace *ws, struct ctx *ctx, struct str id, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_update, .fields = fields, .id = id};
	int r = check_fields(fields, err);

	if (!r)
		r = run(&c, err);
	if (!r) {
		*ret_task = c.task;
		*ret_note = c.note;
	}
	return r;
}

static int edit_delete(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	size_t index = 0;
	int r = find(tasks, c->id, &index, err);

	if (r)
		return r;
	c->task = (struct jv *)jv_at(tasks, index);
	if (!c->force && !has_ended(c->task))
		return err_set(err, ERR_DENIED,
			       "the task is %.*s; only tasks that are completed, failed or cancelled can be deleted",
			       STR_ARG(jv_get_str(c->task, "status")));
	return yaml_list_remove(c->ctx->arena, *text, "tasks", index, text, err);
}

int tasks_delete(struct workspace *ws, struct ctx *ctx, struct str id, bool force, struct jv **ret_task,
		 struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_delete, .id = id, .force = force};
	struct jv *tasks;
	int r = tasks_read(ws, ctx, &tasks, err); /* a broken file is not set aside for a deletion */

	if (!r)
		r = run(&c, err);
	if (!r)
		*ret_task = c.task;
	return r;
}

static int edit_nothing(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	(void)c;
	(void)tasks;
	(void)text;
	(void)err;
	return 0;
}

int tasks_clean(struct workspace *ws, struct ctx *ctx, uint64_t *ret_failed, uint64_t *ret_removed, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_nothing};
	struct jv *tasks;
	int r = tasks_read(ws, ctx, &tasks, err);

	if (!r)
		r = run(&c, err);
	*ret_failed = c.failed;
	*ret_removed = c.removed;
	return r;
}

void tasks_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct jv *tasks;
	struct err err;

	if (tasks_read(ws, ctx, &tasks, &err) != 0)
		finding_error(findings, "tasks", &err, "correct TASKS.yaml; the next change sets it aside");
	else if (jv_count(tasks))
		finding_add(findings, "tasks", arena_printf(ctx->arena, "%zu in TASKS.yaml", jv_count(tasks)), NULL);
}
