/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of schedules, read when they are asked for. A declaration that is misspelt would run at the wrong time
 * or never, so a wrong key or value refuses that file, with its line, and leaves the others alone. `stead doctor` and
 * `stead schedule list` report what was refused.
 *
 * The prompt of a declaration is written by a person, that of a dynamic one by an agent. Both are only text for the
 * agent: what it may do while it follows them is decided elsewhere.
 */
#include "home/schedules/schedules.h"

#include "base/clock.h"
#include "base/limits.h"
#include "text/schema.h"
#include "text/yaml.h"
#include "tool/schema_text.h"
#include "workspace/workspace_parts.h"

#define DIR            "crons"
#define GRACE_DEFAULT  300
#define TASKS_DEFAULT  50
#define EVERY_DEFAULT  300
#define EVERY_LEAST    60
#define EVERY_MOST     31536000 /* a year */
#define ENTRIES_MAX    1000
#define NAME_MAX_BYTES 100

/* --- declarations --- */

static const char file_schema[] =
	"name str>=1\n"
	"schedule! str>=1\n"
	"enabled bool\n"
	"prompt! str>=1\n"
	"timezone str>=1\n"
	"output {channel!; chat_id int or str; target_id int or str; delivery channel|agent|both}\n"
	"misfire once|skip|all\n"
	"grace_seconds int>=0<=315360000";

static enum misfire misfire_of(struct str word)
{
	return str_is(word, "skip") ? MISFIRE_SKIP : str_is(word, "all") ? MISFIRE_ALL : MISFIRE_ONCE;
}

static int check_file(struct arena *arena, const struct jv *document, struct err *err)
{
	struct jv *schema;
	int r = schema_text_parse(arena, file_schema, &schema, err);

	if (r == 0 && document->type == JV_NULL)
		return err_set(err, ERR_INVALID, "the file is empty; it needs \"schedule\" and \"prompt\"");
	return r ? r : schema_check(schema, document, "schedule", err);
}

/* A name is part of the names of sessions and files, and is shown in lists of one line each. */
static int check_name(struct str name, struct err *err)
{
	bool is_plain = true;

	for (size_t i = 0; i < name.len; i++)
		is_plain &= (unsigned char)name.ptr[i] >= ' ' && name.ptr[i] != 0x7f;
	if (is_plain && name.len <= NAME_MAX_BYTES)
		return 0;
	return err_set(err, ERR_INVALID, "the name \"%.*s\" is not allowed; give one of at most %d bytes in one line",
		       STR_ARG(utf8_first(str_first(name, str_find_char(name, '\n')), 40)), NAME_MAX_BYTES);
}

int schedule_parse(struct arena *arena, struct str name, struct str text, struct str zone_name, struct schedule *ret,
		   struct err *err)
{
	struct schedule s = {.id = name, .enabled = true, .zone_name = zone_name};
	struct jv *document;
	int r = yaml_parse(arena, text, &document, err);

	if (r == 0)
		r = check_file(arena, document, err);
	if (r)
		return r;
	if (jv_get(document, "name"))
		s.id = jv_get_str(document, "name");
	if (jv_get(document, "timezone"))
		s.zone_name = jv_get_str(document, "timezone");
	s.enabled = jv_get_bool(document, "enabled", true);
	s.expression = jv_get_str(document, "schedule");
	s.prompt = jv_get_str(document, "prompt");
	s.output = jv_get(document, "output");
	s.misfire = misfire_of(jv_get_str(document, "misfire"));
	s.grace = jv_get_int(document, "grace_seconds", GRACE_DEFAULT);
	r = cron_parse(s.expression, &s.cron, err);
	if (r)
		return err_prefix(err, "line %u", jv_get(document, "schedule")->line);
	r = zone_open(arena, s.zone_name, &s.zone, err);
	if (r && jv_get(document, "timezone"))
		return err_prefix(err, "line %u", jv_get(document, "timezone")->line);
	if (r == 0)
		r = check_name(s.id, err);
	if (r == 0)
		*ret = s;
	return r;
}

struct reading {
	struct workspace *ws;
	struct ctx *ctx;
	struct schedule *list;
	size_t count, room;
	struct jv *problems;
};

static void add_problem(struct reading *reading, struct str path, const struct err *err)
{
	struct arena *arena = reading->ctx->arena;
	struct jv *p = jv_object(arena);

	jv_set_str(arena, p, "path", path);
	jv_set_str(arena, p, "problem", err_text(arena, err));
	jv_push(arena, reading->problems, p);
}

static void add(struct reading *reading, const struct schedule *schedule)
{
	struct err err;

	if (str_is(schedule->id, HEARTBEAT_ID)) {
		err_set(&err, ERR_EXISTS, "the name \"%s\" is reserved for the heartbeat; give it another name",
			HEARTBEAT_ID);
		add_problem(reading, schedule->path, &err);
		return;
	}
	for (size_t i = 0; i < reading->count; i++)
		if (str_eq(reading->list[i].id, schedule->id)) {
			err_set(&err, ERR_EXISTS, "the name \"%.*s\" is already used by %.*s; give it another name",
				STR_ARG(utf8_first(schedule->id, 60)), STR_ARG(reading->list[i].path));
			add_problem(reading, schedule->path, &err);
			return;
		}
	reading->list[reading->count++] = *schedule;
}

static bool is_declaration(const struct store_entry *e)
{
	struct str name = wpath_name(e->path);

	return e->stat.kind == STORE_FILE && name.ptr[0] != '.' &&
	       (str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")));
}

static void add_file(struct reading *reading, struct wpath path)
{
	struct arena *arena = reading->ctx->arena;
	struct str name = wpath_name(path), text;
	struct schedule schedule;
	struct err err;
	int r = store_read(workspace_home(reading->ws), reading->ctx, path, STORE_WHOLE, YAML_LEN_MAX, &text, NULL,
			   &err);

	if (r == -ERR_TOO_LARGE)
		err_set(&err, ERR_TOO_LARGE,
			"the file has more than %d bytes; put long text into a file that the prompt names",
			(int)YAML_LEN_MAX);
	if (r == 0)
		r = schedule_parse(arena, str_first(name, str_rfind_char(name, '.')), text,
				   workspace_config(reading->ws)->timezone, &schedule, &err);
	if (r) {
		add_problem(reading, path.s, &err);
		return;
	}
	schedule.path = path.s;
	add(reading, &schedule);
}

/* --- dynamic ones --- */

static const char entry_schema[] = "id! str>=1\ntask_type! once|interval\nprompt! str>=1\ncreated_at! "
				   "str>=1\nrun_at\ninterval_seconds int>=1<=31536000\n"
				   "next_run\nchannel str?\nchat_id int or str or null\n...";

static int parse_entry(struct reading *reading, const struct jv *schema, const struct jv *entry, struct schedule *ret,
		       struct err *err)
{
	bool once = str_is(jv_get_str(entry, "task_type"), "once");
	int64_t at;
	int r = schema_check(schema, entry, "entry", err);

	if (r)
		return r;
	if (!clock_parse(jv_get_str(entry, once ? "run_at" : "created_at"), &at))
		return err_set(err, ERR_INVALID, "entry %.*s has no valid %s",
			       STR_ARG(utf8_first(jv_get_str(entry, "id"), 60)), once ? "run_at" : "created_at");
	*ret = (struct schedule){
		.id = jv_get_str(entry, "id"),
		.path = STR(SCHEDULES_DYNAMIC),
		.kind = once ? SCHEDULE_ONCE : SCHEDULE_INTERVAL,
		.enabled = true,
		.zone_name = workspace_config(reading->ws)->timezone,
		.first = at / NS_PER_S,
		.interval = jv_get_int(entry, "interval_seconds", EVERY_DEFAULT),
		.prompt = jv_get_str(entry, "prompt"),
		.grace = once ? INT64_MAX / 2 : GRACE_DEFAULT, /* what was promised for once is done, however late */
	};
	if (!once)
		ret->first += ret->interval;
	if (jv_get_str(entry, "channel").len)
		ret->output = entry;
	return zone_open(reading->ctx->arena, ret->zone_name, &ret->zone, err);
}

/* JV_NULL when there is no such file. */
static int read_dynamic(struct workspace *ws, struct ctx *ctx, struct jv **ret, struct err *err)
{
	struct str text;
	int r = workspace_read(ctx, workspace_home(ws), SCHEDULES_DYNAMIC, YAML_LEN_MAX, &text, err);

	if (r == 0 && !text.ptr)
		*ret = jv_array(ctx->arena);
	else if (r == 0)
		r = jv_parse(ctx->arena, text, ret, err);
	if (r == 0 && ((*ret)->type != JV_ARRAY || jv_count(*ret) > ENTRIES_MAX))
		r = err_set(err, ERR_INVALID, "%s is not a list of at most %d entries", SCHEDULES_DYNAMIC, ENTRIES_MAX);
	return r;
}

static void add_dynamic(struct reading *reading, const struct jv *entries)
{
	struct jv *schema;
	struct schedule schedule;
	struct err err;

	if (schema_text_parse(reading->ctx->arena, entry_schema, &schema, &err) != 0)
		return;
	for (const struct jv_member *m = jv_first(entries); m; m = m->next)
		if (parse_entry(reading, schema, m->value, &schedule, &err) == 0)
			add(reading, &schedule);
		else
			add_problem(reading, STR(SCHEDULES_DYNAMIC), &err);
}

/* --- all of them --- */

int schedules_read(struct workspace *ws, struct ctx *ctx, struct schedules *ret, struct err *err)
{
	struct reading reading = {.ws = ws, .ctx = ctx, .problems = jv_array(ctx->arena)};
	struct store_list_req req = {.limit = SCHEDULES_MAX};
	struct store_page page = {0};
	struct jv *entries = jv_array(ctx->arena);
	struct err bad;
	int r = store_list(workspace_home(ws), ctx, (struct wpath){STR(DIR)}, &req, &page, err);

	if (r && r != -ERR_NOT_FOUND)
		return r;
	if (read_dynamic(ws, ctx, &entries, &bad) != 0)
		add_problem(&reading, STR(SCHEDULES_DYNAMIC), &bad);
	reading.room = page.count + jv_count(entries);
	reading.list = arena_alloc(ctx->arena, (reading.room + 1) * sizeof *reading.list);
	for (size_t i = 0; i < page.count; i++)
		if (is_declaration(&page.entries[i]))
			add_file(&reading, page.entries[i].path);
	add_dynamic(&reading, entries);
	*ret = (struct schedules){reading.list, reading.count, reading.problems};
	return ctx_check(ctx, err);
}

int schedule_find(const struct schedules *all, struct str id, const struct schedule **ret, struct err *err)
{
	const char *nearest = NULL;
	unsigned least = 4;

	for (size_t i = 0; i < all->count; i++) {
		unsigned distance = str_distance(id, all->list[i].id, 3);

		if (distance == 0) {
			*ret = &all->list[i];
			return 0;
		}
		if (distance < least) {
			least = distance;
			nearest = all->list[i].id.ptr;
			*ret = &all->list[i];
		}
	}
	if (nearest)
		return err_set(err, ERR_NOT_FOUND, "there is no schedule \"%.*s\"; did you mean \"%.*s\"?",
			       STR_ARG(utf8_first(id, 60)), STR_ARG((*ret)->id));
	return err_set(err, ERR_NOT_FOUND, "there is no schedule \"%.*s\"; 'stead schedule list' shows them",
		       STR_ARG(utf8_first(id, 60)));
}

bool schedule_next(const struct schedule *schedule, int64_t after, struct cron_time *ret)
{
	int64_t at = schedule->first;

	if (schedule->kind == SCHEDULE_CRON)
		return cron_next(&schedule->cron, schedule->zone, after, ret);
	if (schedule->kind == SCHEDULE_ONCE && at <= after)
		return false;
	if (at <= after)
		at += ((after - at) / schedule->interval + 1) * schedule->interval;
	*ret = (struct cron_time){.at = at, .wall = at + zone_offset(schedule->zone, at)};
	return true;
}

/* --- made by agents --- */

struct adding {
	struct jv *entry;   /* to be added, or NULL */
	struct str remove;  /* the id to be removed */
	struct jv *removed; /* what was removed */
	int64_t most;
};

static int change_dynamic(void *arg, struct arena *arena, struct str before, struct str *ret_after, struct err *err)
{
	struct adding *adding = arg;
	struct jv *list = jv_array(arena), *kept = jv_array(arena);
	struct buf text;
	int r = before.ptr ? jv_parse(arena, before, &list, err) : 0;

	if (r == 0 && list->type != JV_ARRAY)
		r = err_set(err, ERR_INVALID, "%s is not a list; correct it or remove it", SCHEDULES_DYNAMIC);
	if (r)
		return r;
	adding->removed = NULL;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (adding->remove.len && str_eq(jv_get_str(m->value, "id"), adding->remove))
			adding->removed = m->value;
		else
			jv_push(arena, kept, m->value);
	if (!adding->entry && !adding->removed)
		return 0;
	if (adding->entry && (int64_t)jv_count(kept) >= adding->most)
		return err_set(err, ERR_QUOTA,
			       "there are already %zu scheduled tasks, the most that are allowed; cancel one with "
			       "cancel_scheduled first",
			       jv_count(kept));
	if (adding->entry)
		jv_push(arena, kept, adding->entry);
	buf_init(&text, arena, YAML_LEN_MAX);
	jv_write_pretty(&text, kept);
	*ret_after = buf_str(&text);
	return 0;
}

static int write_dynamic(struct workspace *ws, struct ctx *ctx, struct adding *adding, struct err *err)
{
	struct store_change change = {.max = YAML_LEN_MAX, .create = true, .change = change_dynamic, .arg = adding};

	return store_change(workspace_home(ws), ctx, (struct wpath){STR(SCHEDULES_DYNAMIC)}, &change, NULL, NULL, NULL,
			    err);
}

/* builtins.cron.config of agent.yaml. */
static int64_t setting(struct workspace *ws, const char *key, int64_t fallback)
{
	const struct jv *cron = jv_get(jv_get(workspace_config(ws)->document, "builtins"), "cron");

	return jv_get_int(jv_get(cron, "config"), key, fallback);
}

/* "2026-11-15T09:00" is in the workspace's zone; with "Z" or an offset it is an instant. */
static int parse_run_at(struct workspace *ws, struct arena *arena, struct str text, int64_t now, int64_t *ret,
			struct err *err)
{
	const struct zone *zone;
	int64_t ns;
	size_t t = str_find_char(text, 'T');
	struct str time = str_from(text, t == text.len ? 10 : t);
	bool is_instant =
		str_ends(text, STR("Z")) || str_find_char(time, '+') < time.len || str_find_char(time, '-') < time.len;
	int r = zone_open(arena, workspace_config(ws)->timezone, &zone, err);

	if (r)
		return r;
	if (!clock_parse(text, &ns))
		return err_set(err, ERR_INVALID,
			       "run_at \"%.*s\" is not a valid time; write it as 2026-11-30T09:00, or with Z or an "
			       "offset at its end, and with a year from 1970 to 2261",
			       STR_ARG(utf8_first(text, 60)));
	*ret = is_instant ? ns / NS_PER_S : zone_instants(zone, ns / NS_PER_S).at[0];
	if (*ret <= now)
		return err_set(err, ERR_INVALID, "run_at %.*s is not in the future; it is now %.*s",
			       STR_ARG(zone_format(arena, zone, *ret)), STR_ARG(zone_format(arena, zone, now)));
	return 0;
}

int schedule_add(struct workspace *ws, struct ctx *ctx, struct str run_at, int64_t interval, struct str prompt,
		 const struct jv *to, struct jv **ret_entry, struct err *err)
{
	struct arena *arena = ctx->arena;
	int64_t now = clock_real_ns() / NS_PER_S, least = setting(ws, "min_interval_seconds", EVERY_DEFAULT);
	int64_t at = now;
	struct jv *entry = jv_object(arena);
	struct adding adding = {.entry = entry, .most = setting(ws, "max_tasks", TASKS_DEFAULT)};
	bool once = run_at.ptr != NULL;
	int r = once ? parse_run_at(ws, arena, run_at, now, &at, err) : 0;

	if (r)
		return r;
	if (least < EVERY_LEAST)
		least = EVERY_LEAST;
	if (!once && (interval < least || interval > EVERY_MOST))
		return err_set(err, ERR_INVALID, "interval_seconds is %lld; give %lld to %d", (long long)interval,
			       (long long)least, EVERY_MOST);
	if (!once)
		at = now + interval;
	jv_set_str(arena, entry, "id", arena_printf(arena, "%08x", (unsigned)random_u64()));
	jv_set_str(arena, entry, "task_type", once ? STR("once") : STR("interval"));
	jv_set_str(arena, entry, "prompt", prompt);
	jv_set_str(arena, entry, "created_at", clock_format_seconds(arena, now));
	if (once)
		jv_set_str(arena, entry, "run_at", clock_format_seconds(arena, at));
	else
		jv_set_int(arena, entry, "interval_seconds", interval);
	for (const struct jv_member *m = jv_first(to); m; m = m->next)
		jv_set_key(arena, entry, m->key, m->value);
	r = write_dynamic(ws, ctx, &adding, err);
	if (r)
		return r;
	*ret_entry = jv_copy(arena, entry);
	jv_set_str(arena, *ret_entry, "next_run", clock_format_seconds(arena, at));
	return 0;
}

int schedule_cancel(struct workspace *ws, struct ctx *ctx, struct str id, struct jv **ret_entry, struct err *err)
{
	struct adding adding = {.remove = id};
	int r = write_dynamic(ws, ctx, &adding, err);

	if (r)
		return r;
	if (!adding.removed)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no scheduled task \"%.*s\"; list_scheduled shows them, and only people change "
			       "those in crons/",
			       STR_ARG(utf8_first(id, 60)));
	*ret_entry = adding.removed;
	return 0;
}

/* --- for people and models --- */

static struct str effect_text(struct arena *arena, const struct cron_time *t)
{
	struct civil c = civil_of(t->wall);

	switch (t->effect) {
	case CRON_MOVED:
		return arena_printf(arena, "%02d:%02d is skipped by the clock change: it runs right after the change",
				    c.hour, c.minute);
	case CRON_LEFT_OUT:
		return STR("the clocks go forward before this time; the times that they skip are left out");
	case CRON_FIRST_ONLY:
		return arena_printf(arena, "%02d:%02d occurs twice on this day: it runs the first time only", c.hour,
				    c.minute);
	case CRON_AGAIN:
		return arena_printf(arena, "%02d:%02d occurs twice on this day: this is the second time", c.hour,
				    c.minute);
	default:
		return STR_NONE;
	}
}

static struct jv *time_value(struct arena *arena, const struct cron_time *t, const struct zone *zone)
{
	struct jv *v = jv_object(arena);
	struct str effect = effect_text(arena, t);

	jv_set_str(arena, v, "at", clock_format_seconds(arena, t->at));
	jv_set_str(arena, v, "local", zone_format(arena, zone, t->at));
	if (effect.len)
		jv_set_str(arena, v, "effect", effect);
	return v;
}

struct jv *schedule_times(struct arena *arena, const struct cron *cron, const struct zone *zone, int64_t from,
			  uint64_t count)
{
	struct jv *times = jv_array(arena);
	struct cron_time t = {.at = from};

	while (jv_count(times) < count && cron_next(cron, zone, t.at, &t))
		jv_push(arena, times, time_value(arena, &t, zone));
	return times;
}

static struct str when_text(struct arena *arena, const struct schedule *s)
{
	return s->kind == SCHEDULE_CRON   ? s->expression
	       : s->kind == SCHEDULE_ONCE ? STR("once")
					  : arena_printf(arena, "every %lld s", (long long)s->interval);
}

struct jv *schedule_value(struct workspace *ws, struct ctx *ctx, const struct schedule *s, int64_t now)
{
	struct arena *arena = ctx->arena;
	struct jv *v = jv_object(arena);
	struct schedule_state state = {0};
	struct cron_time t;
	struct err ignored;

	if (schedule_state_read(ws, ctx, s->id, &state, &ignored) != 0)
		state = (struct schedule_state){0};
	jv_set_str(arena, v, "id", s->id);
	jv_set_str(arena, v, "schedule", when_text(arena, s));
	jv_set_str(arena, v, "zone", s->zone_name);
	jv_set_bool(arena, v, "enabled", s->enabled);
	jv_set_bool(arena, v, "paused", state.paused);
	if (s->enabled && !state.paused && schedule_next(s, now, &t))
		jv_set(arena, v, "next", time_value(arena, &t, s->zone));
	if (state.running)
		jv_set_str(arena, v, "running", clock_format_seconds(arena, state.running));
	if (state.last_due)
		jv_set_str(arena, v, "last", clock_format_seconds(arena, state.last_due));
	jv_set_str(arena, v, "path", s->path);
	jv_set_str(arena, v, "prompt", s->prompt);
	return v;
}

void schedules_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	struct schedules all;
	struct err err;

	if (schedules_read(ws, ctx, &all, &err) != 0) {
		finding_error(findings, "schedules", &err, "look at the directory crons/");
		return;
	}
	finding_problems(findings, "schedules", all.problems, "correct the file; it is left out until then");
	if (all.count)
		finding_add(findings, "schedules",
			    arena_printf(ctx->arena, "%zu schedule%s", all.count,
					 all.count == 1 ? " is there" : "s are there"),
			    NULL);
}
