/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task list. Every change is a read-modify-write of one file under the condition that nobody else wrote, made by
 * lines (text/yaml.h), so that agents on several machines and a person with an editor can share it. A change that only
 * adds to the end is an append, so that history keeps what was added and not the whole file again.
 *
 * A change also looks for tasks that nobody looks after: in the file that it changes, in TASKS.yaml, and in the
 * directory that its task's own file is in. So all are looked at in turn, and no change costs more than the last.
 */
#include "home/tasks/tasks_internal.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/yaml.h"
#include "workspace/workspace_parts.h"

#define NS_PER_S    INT64_C(1000000000)
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

/* The item whose id begins with `id`; an id that is exactly that wins. */
static int find(const struct jv *tasks, struct str id, size_t *ret_index, struct err *err)
{
	size_t i = 0, hits = 0;

	for (const struct jv_member *m = jv_first(tasks); m; m = m->next, i++) {
		struct str own = jv_get_str(m->value, "id");

		if (!str_starts(own, id))
			continue;
		if (hits++ == 0 || own.len == id.len)
			*ret_index = i;
		if (own.len == id.len)
			return 0;
	}
	if (hits == 0) /* it went since tasks_find() */
		return err_set(err, ERR_NOT_FOUND, "there is no task whose id begins with \"%.*s\"; see list_tasks",
			       STR_ARG(utf8_first(id, 60)));
	return hits == 1 ? 0
			 : err_set(err, ERR_INVALID, "several tasks have ids that begin with \"%.*s\"; give more of it",
				   STR_ARG(utf8_first(id, 60)));
}

static size_t common(struct str a, struct str b)
{
	size_t n = 0;

	while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
		n++;
	return n;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp(jv_get_str(*(const struct jv *const *)a, "id"), jv_get_str(*(const struct jv *const *)b, "id"));
}

/* Of ids in order, each has the most in common with one of its neighbours. */
void tasks_set_short_ids(struct arena *arena, struct jv **tasks, size_t count)
{
	qsort(tasks, count, sizeof(*tasks), by_id);
	for (size_t i = 0; i < count; i++) {
		struct str id = jv_get_str(tasks[i], "id");
		size_t need = SHORT_LEAST;

		for (size_t k = i ? i - 1 : 1; k <= i + 1 && k < count; k += 2) {
			struct str other = jv_get_str(tasks[k], "id");

			if (!str_eq(other, id) && common(other, id) >= need)
				need = common(other, id) + 1;
		}
		jv_set_str(arena, tasks[i], "short_id", utf8_first(id, need));
	}
}

struct str task_rank(struct arena *arena, const struct jv *task)
{
	size_t priority = index_of(jv_get_str(task, "priority"), priorities, COUNT(priorities));

	return arena_printf(arena, "%zu %.*s %.*s", priority, STR_ARG(jv_get_str(task, "created_at")),
			    STR_ARG(jv_get_str(task, "id")));
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
	size_t all = 0, n = 0;
	int r = known(status, "status", statuses, COUNT(statuses), err);

	if (!r)
		r = tasks_read_all(ws, ctx, &tasks, err);
	if (r)
		return r;
	sorted = ARENA_ARRAY(arena, struct jv *, jv_count(tasks) + 1);
	for (const struct jv_member *m = jv_first(tasks); m; m = m->next)
		sorted[all++] = m->value;
	tasks_set_short_ids(arena, sorted, all);
	for (size_t i = 0; i < all; i++)
		if ((!status.len || str_eq(jv_get_str(sorted[i], "status"), status)) &&
		    (!type.len || str_eq(jv_get_str(sorted[i], "type"), type)))
			sorted[n++] = sorted[i];
	qsort(sorted, n, sizeof(*sorted), by_urgency);
	*ret_tasks = jv_array(arena);
	for (size_t i = 0; i < n; i++)
		jv_push(arena, *ret_tasks, sorted[i]);
	return 0;
}

int tasks_get(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret_task, struct err *err)
{
	struct jv *tasks;
	struct wpath path;
	size_t index = 0;
	int r = tasks_find(ws, ctx, id, &path, err);

	if (!r)
		r = tasks_read(ws, ctx, path, &tasks, err);
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
	struct wpath path;
	/* Makes the change to the text; `tasks` is its parsed content. NULL: there is only cleaning to do. */
	int (*edit)(struct change *c, const struct jv *tasks, struct str *text, struct err *err);
	const struct jv *fields;
	struct str id;
	bool force;
	struct jv *task; /* out */
	struct str note;
	size_t touched; /* out: the item that was changed */
	bool is_gone;   /* it was removed */
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
	c->note = arena_printf(arena,
			       "%.*s could not be read (%.*s); it was set aside as %.*s and a new list was started",
			       STR_ARG(c->path.s), STR_ARG(err_text(arena, why)), STR_ARG(path.s));
	return 0;
}

static void add_note(const struct workspace *ws, struct arena *arena, struct jv *task, struct str note)
{
	struct str before = jv_get_str(task, "notes"), time = workspace_time(ws, arena, clock_real_ns());
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

/* What a task is to become. *ret_failed: it is given up, and `task` is changed accordingly; *ret_removed: it goes. */
static void judge(const struct change *c, struct jv *task, bool *ret_failed, bool *ret_removed)
{
	struct arena *arena = c->ctx->arena;
	int64_t at = clock_real_ns();
	int64_t stale = (int64_t)setting(c, "stale_hours", 48) * 3600 * NS_PER_S;
	int64_t keep = (int64_t)setting(c, "max_age_days", 3) * 86400 * NS_PER_S;
	int64_t seen = time_of(task, "last_checked_at"), made = time_of(task, "created_at");
	int64_t ended = time_of(task, "completed_at");

	seen = seen > made ? seen : made;
	*ret_removed = has_ended(task) && keep && ended && at - ended > keep;
	*ret_failed = task_is_active(task) && !str_is(jv_get_str(task, "status"), "awaiting_check") && stale && seen &&
		      at - seen > stale;
	if (!*ret_failed)
		return;
	add_note(c->ws, arena, task, STR("No progress for too long; marked as failed."));
	jv_set_str(arena, task, "status", STR("failed"));
	jv_set(arena, task, "completed_at", now(arena));
}

/* Cleans all but what was changed just now. `tasks` are those before the change. They are gone through from the last,
   so that the places of those before stay. */
static int clean(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	int r = 0;

	for (size_t i = jv_count(tasks); i-- && !r;) {
		struct jv *task = jv_copy(arena, jv_at(tasks, i));
		size_t place = i - (c->is_gone && i > c->touched);
		bool failed, removed;

		if (i == c->touched)
			continue;
		judge(c, task, &failed, &removed);
		c->removed += removed;
		c->failed += failed;
		if (removed)
			r = yaml_list_remove(arena, *text, "tasks", place, text, err);
		else if (failed)
			r = yaml_list_set(arena, *text, "tasks", place, task, text, err);
	}
	return r;
}

#define NEW_LIST STR("version: 1\nlast_updated: null\ntasks: []\n")

static bool is_list(struct wpath path)
{
	return str_eq(path.s, TASKS_PATH.s);
}

static int edit_create(struct change *c, const struct jv *tasks, struct str *text, struct err *err);

static int change_text(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct change *c = arg;
	struct str text = before.len ? before : is_list(c->path) ? NEW_LIST : STR("tasks: []\n"), was = text;
	struct jv *tasks;
	struct err why;
	int r = 0;

	c->failed = c->removed = 0;
	c->touched = SIZE_MAX;
	if (tasks_parse(arena, text, &tasks, &why)) {
		if (!is_list(c->path)) {
			*err = why;
			return err_prefix(err, "%.*s cannot be read (correct it)", STR_ARG(c->path.s));
		}
		r = set_aside(c, text, &why, err);
		text = NEW_LIST;
		tasks = jv_array(arena);
	}
	if (!r && c->edit)
		r = c->edit(c, tasks, &text, err);
	if (!r)
		r = clean(c, tasks, &text, err);
	if (r || str_eq(text, was))
		return r;
	if (is_list(c->path) && (!before.len || !str_starts(text, before))) /* an append cannot set it */
		r = yaml_set(arena, text, "last_updated", now(arena), &text, err);
	*ret_after = text;
	return r;
}

/* Changes the file. That of a single task goes with it. */
static int run(struct change *c, struct err *err)
{
	struct store_change how = {
		.max = YAML_LEN_MAX, .create = c->edit == edit_create, .change = change_text, .arg = c};
	struct workspace_changed changed;
	int r = workspace_change(c->ws, c->ctx, c->path, &how, &changed, err);

	if (r == -ERR_NOT_FOUND && !c->edit)
		return 0;
	if (r || is_list(c->path) || !(c->is_gone || c->removed))
		return r;
	return store_remove(workspace_home(c->ws), c->ctx, c->path, false,
			    (struct store_cond){.kind = STORE_VERSION, .version = changed.stat.version}, NULL, err);
}

/* --- cleaning elsewhere --- */

/* A file that is younger than this has nothing to clean, since a task counts as seen when it is written. */
static int64_t clean_age(const struct change *c)
{
	uint64_t stale = setting(c, "stale_hours", 48), keep = setting(c, "max_age_days", 3) * 24;

	return (int64_t)(stale && (stale < keep || !keep) ? stale : keep) * 3600 * NS_PER_S;
}

struct cleaning {
	struct change *change;
	int64_t before_ns; /* files that were changed later are left alone */
	uint64_t failed, removed;
};

static int clean_file(void *arg, const struct store_entry *file, struct str id, struct err *err)
{
	struct cleaning *cleaning = arg;
	struct change c = {.ws = cleaning->change->ws, .ctx = cleaning->change->ctx, .path = file->path};
	int r;

	(void)id;
	if (file->stat.mtime_ns > cleaning->before_ns)
		return 0;
	r = run(&c, err);
	cleaning->failed += c.failed;
	cleaning->removed += c.removed;
	return r;
}

/* The other files that a change looks at. What cannot be cleaned now is cleaned later; a TASKS.yaml that cannot be read
   is not set aside for this. */
static void clean_near(struct change *c)
{
	struct cleaning cleaning = {.change = c, .before_ns = clock_real_ns() - clean_age(c)};
	struct store_entry list = {.path = TASKS_PATH};
	struct jv *tasks;
	struct err ignored;

	if (is_list(c->path))
		return;
	if (store_stat(workspace_home(c->ws), c->ctx, TASKS_PATH, &list.stat, &ignored) == 0 &&
	    list.stat.mtime_ns <= cleaning.before_ns && tasks_read(c->ws, c->ctx, TASKS_PATH, &tasks, &ignored) == 0)
		(void)clean_file(&cleaning, &list, STR_NONE, &ignored);
	(void)task_files(c->ws, c->ctx, wpath_parent(c->path), clean_file, &cleaning, &ignored);
}

/* --- the changes --- */

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
static void merge(const struct change *c, struct jv *task)
{
	struct arena *arena = c->ctx->arena;
	const struct jv *fields = c->fields;
	struct str status = jv_get_str(fields, "status");

	for (const struct jv_member *m = jv_first(fields); m; m = m->next) {
		if (str_is(m->key, "notes") && jv_str_of(m->value).len)
			add_note(c->ws, arena, task, jv_str_of(m->value));
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

	jv_set_str(arena, task, "id", c->id);
	jv_set_str(arena, task, "type", STR("custom"));
	jv_set_str(arena, task, "status", STR("pending"));
	jv_set_str(arena, task, "priority", STR("normal"));
	jv_set_str(arena, task, "description", STR_NONE);
	jv_set(arena, task, "created_at", now(arena));
	jv_set_int(arena, task, "check_count", 0);
	merge(c, task);
	c->task = task;
	return yaml_list_set(arena, *text, "tasks", jv_count(tasks), task, text, err);
}

/* A new task goes to TASKS.yaml, unless that is full. */
static int place_new(struct change *c, struct err *err)
{
	struct store_stat stat;
	int r = store_stat(workspace_home(c->ws), c->ctx, TASKS_PATH, &stat, err);

	c->path = r == 0 && stat.size >= TASKS_FULL ? task_path(c->ctx->arena, c->id) : TASKS_PATH;
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int tasks_create(struct workspace *ws, struct ctx *ctx, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_create, .fields = fields, .id = uuid4(ctx->arena)};
	int r = check_fields(fields, err);

	if (!r && !str_trim(jv_get_str(fields, "description")).len)
		r = err_set(err, ERR_INVALID, "the description of the task is empty; say what to do");
	if (!r)
		r = place_new(&c, err);
	if (!r)
		r = run(&c, err);
	if (r)
		return r;
	*ret_task = c.task;
	*ret_note = c.note;
	clean_near(&c);
	return 0;
}

static int edit_update(struct change *c, const struct jv *tasks, struct str *text, struct err *err)
{
	struct arena *arena = c->ctx->arena;
	size_t index = 0;
	int r = find(tasks, c->id, &index, err);

	if (r)
		return r;
	c->touched = index;
	c->task = jv_copy(arena, jv_at(tasks, index));
	merge(c, c->task);
	jv_set_int(arena, c->task, "check_count", jv_get_int(c->task, "check_count", 0) + 1);
	jv_set(arena, c->task, "last_checked_at", now(arena));
	return yaml_list_set(arena, *text, "tasks", index, c->task, text, err);
}

/* Where the task is. A TASKS.yaml that nobody can read is set aside by the change itself. */
static int find_or_set_aside(struct change *c, struct err *err)
{
	struct jv *tasks;
	int r = tasks_find(c->ws, c->ctx, c->id, &c->path, err);
	struct err ignored;

	if (r != -ERR_INVALID || tasks_read(c->ws, c->ctx, TASKS_PATH, &tasks, &ignored) != -ERR_INVALID)
		return r;
	c->path = TASKS_PATH;
	return 0;
}

int tasks_update(struct workspace *ws, struct ctx *ctx, struct str id, const struct jv *fields, struct jv **ret_task,
		 struct str *ret_note, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_update, .fields = fields, .id = id};
	int r = check_fields(fields, err);

	if (!r)
		r = find_or_set_aside(&c, err);
	if (!r)
		r = run(&c, err);
	if (r)
		return r;
	*ret_task = c.task;
	*ret_note = c.note;
	clean_near(&c);
	return 0;
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
	c->touched = index;
	c->is_gone = true;
	return yaml_list_remove(c->ctx->arena, *text, "tasks", index, text, err);
}

int tasks_delete(struct workspace *ws, struct ctx *ctx, struct str id, bool force, struct jv **ret_task,
		 struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .edit = edit_delete, .id = id, .force = force};
	int r = tasks_find(ws, ctx, id, &c.path, err); /* a broken file is not set aside for a deletion */

	if (!r)
		r = run(&c, err);
	if (r)
		return r;
	*ret_task = c.task;
	clean_near(&c);
	return 0;
}

int tasks_clean(struct workspace *ws, struct ctx *ctx, uint64_t *ret_failed, uint64_t *ret_removed, struct err *err)
{
	struct change c = {.ws = ws, .ctx = ctx, .path = TASKS_PATH};
	struct cleaning cleaning = {.change = &c, .before_ns = INT64_MAX};
	struct jv *tasks;
	int r = tasks_read(ws, ctx, TASKS_PATH, &tasks, err);

	if (!r)
		r = run(&c, err);
	if (!r)
		r = task_files(ws, ctx, (struct wpath){STR(TASKS_DIR)}, clean_file, &cleaning, err);
	*ret_failed = c.failed + cleaning.failed;
	*ret_removed = c.removed + cleaning.removed;
	return r;
}

void tasks_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct jv *tasks;
	struct err err;

	if (tasks_read_all(ws, ctx, &tasks, &err) != 0)
		finding_error(findings, "tasks", &err, "correct the file; the next change sets it aside");
	else if (jv_count(tasks))
		finding_add(findings, "tasks", arena_printf(ctx->arena, "%zu in the list", jv_count(tasks)), NULL);
}
