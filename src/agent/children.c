/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a parent does with its subagents. A task is its record: spawning writes one, under the limits of the whole tree,
 * and then starts a thread for it. The id of a task is made from the id of the call that asked for it, so a call that
 * is made again after a kill finds its task instead of starting another.
 */
#include "agent/children.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "home/plans/plans.h"
#include "home/subagents/subagents.h"

#define TASK_SECONDS 1800.0
#define RUNNING_MOST 8
#define TASKS_MOST   100
#define CANCEL_NS    (5 * NS_PER_S)
#define NOTICE_MAX   ((size_t)2000) /* bytes of a result in a notice */

struct child_limits child_limits_read(const struct jv *document)
{
	const struct jv *v = jv_get(document, "subagents");

	return (struct child_limits){.enabled = jv_get_bool(v, "enabled", true),
				     .max_depth = (unsigned)jv_get_int(v, "max_depth", 1),
				     .max_running = (uint64_t)jv_get_int(v, "max_running", RUNNING_MOST),
				     .max_tasks = (uint64_t)jv_get_int(v, "max_tasks", TASKS_MOST),
				     .max_tokens = (uint64_t)jv_get_int(v, "max_tokens", 0),
				     .timeout_ns = settings_ns(jv_get(v, "timeout_seconds"), TASK_SECONDS)};
}

static struct child_limits limits_of(const struct run *run)
{
	return child_limits_read(workspace_config(run->agent->ws)->document);
}

static struct records records_of(const struct run *run)
{
	const struct kin *kin = &run->agent->kin;

	return (struct records){crew_workspace(kin->crew), kin->top.session.len ? kin->top : run->ref};
}

/* --- a new record --- */

struct addition {
	struct arena *arena;
	struct child_limits limits;
	struct jv *record;
	struct jv *found; /* the record as it is in the file */
};

static int check_limits(const struct addition *a, const struct jv *tasks, struct err *err)
{
	struct str label = jv_get_str(a->record, "label");
	uint64_t running = 0, tokens = 0;

	for (const struct jv_member *m = jv_first(tasks); m; m = m->next) {
		bool ended = record_has_ended(m->value);

		running += !ended;
		tokens += (uint64_t)jv_get_int(m->value, "tokens", 0);
		if (label.len && !ended && str_eq(jv_get_str(m->value, "label"), label) &&
		    str_eq(jv_get_str(m->value, "parentSessionId"), jv_get_str(a->record, "parentSessionId")))
			return err_set(err, ERR_EXISTS,
				       "a subagent with the label \"%.*s\" is already running; use another label",
				       STR_ARG(utf8_first(label, 80)));
	}
	if (running >= a->limits.max_running)
		return err_set(err, ERR_QUOTA,
			       "%llu subagents are already running, and subagents.max_running is %llu; wait for one",
			       (unsigned long long)running, (unsigned long long)a->limits.max_running);
	if (jv_count(tasks) >= a->limits.max_tasks)
		return err_set(
			err, ERR_QUOTA,
			"this conversation has given away %zu tasks, and subagents.max_tasks is %llu; do the rest "
			"without subagents",
			jv_count(tasks), (unsigned long long)a->limits.max_tasks);
	if (a->limits.max_tokens && tokens >= a->limits.max_tokens)
		return err_set(err, ERR_QUOTA,
			       "the subagents of this conversation have used %llu tokens, and subagents.max_tokens is "
			       "%llu; do the rest yourself",
			       (unsigned long long)tokens, (unsigned long long)a->limits.max_tokens);
	return 0;
}

static int add_record(void *arg, struct arena *arena, struct jv *tasks, struct err *err)
{
	struct addition *a = arg;
	struct str id = jv_get_str(a->record, "taskId");
	const struct jv *there = jv_get_key(tasks, id);
	int r = there ? 0 : check_limits(a, tasks, err);

	if (r)
		return r;
	if (!there)
		jv_set_key(arena, tasks, id, a->record);
	a->found = agent_keep(a->arena, there ? there : a->record);
	return 0;
}

/* Adds the record unless it is there, and starts its subagent unless it has ended. */
static int begin(struct run *run, struct ctx *ctx, struct jv *record, struct jv **ret_record, struct err *err)
{
	struct addition a = {.arena = ctx->arena, .limits = limits_of(run), .record = record};
	struct records records = records_of(run);
	int r = task_records_change(&records, ctx->arena, add_record, &a, err);

	if (r)
		return r;
	if (!record_has_ended(a.found))
		crew_start(run->agent->kin.crew, run->agent, &records, a.found);
	*ret_record = a.found;
	return 0;
}

static struct str short_hash(struct arena *arena, struct str text)
{
	return str_first(sha256_hex(arena, text), 16);
}

static struct jv *record_new(struct run *run, struct ctx *ctx, struct str id)
{
	struct arena *arena = ctx->arena;
	struct jv *record = jv_object(arena);
	const struct kin *kin = &run->agent->kin;
	struct str now = clock_format_utc(arena, clock_real_ns());

	jv_set_str(arena, record, "taskId", id);
	jv_set_str(arena, record, "status", STR("PENDING"));
	jv_set_str(arena, record, "parentAgentId", run->ref.agent.len ? run->ref.agent : STR("default"));
	jv_set_str(arena, record, "parentSessionId", run->ref.session);
	jv_set_str(arena, record, "parentTurn", run->turn);
	if (kin->task.len)
		jv_set_str(arena, record, "parentTaskId", kin->task);
	jv_set_int(arena, record, "depth", (int64_t)kin->depth + 1);
	jv_set_str(arena, record, "createdAt", now);
	jv_set_str(arena, record, "lastUpdatedAt", now);
	return record;
}

/* It ends with its parent's task at the latest. */
static void set_end(struct run *run, struct arena *arena, struct jv *record, int64_t timeout_ns)
{
	struct child_limits limits = limits_of(run);
	int64_t end_ns = clock_real_ns() +
			 (timeout_ns && timeout_ns < limits.timeout_ns ? timeout_ns : limits.timeout_ns) + NS_PER_S;

	if (run->agent->kin.end_ns && run->agent->kin.end_ns < end_ns)
		end_ns = run->agent->kin.end_ns;
	jv_set_str(arena, record, "endsAt", clock_format_utc(arena, end_ns));
}

/* --- spawning --- */

static void set_place(struct run *run, struct arena *arena, struct jv *record, const struct jv *declared)
{
	struct str mode = jv_get_str(jv_get(declared, "workspace"), "mode"), own = run->agent->kin.root;
	struct str root = jv_get_str(jv_get(declared, "workspace"), "root");

	if (own.len)
		jv_set_str(arena, record, "parentRoot", own);
	if (str_is(mode, "isolated") && !str_is(root, ".")) {
		jv_set_bool(arena, record, "isolated", true);
		jv_set_str(arena, record, "root", root);
	} else if (str_is(mode, "fork")) {
		jv_set_str(arena, record, "fork",
			   arena_printf(arena, "task-%.*s", STR_ARG(short_hash(arena, jv_get_str(record, "taskId")))));
	} else if (own.len) {
		jv_set_str(arena, record, "root", own);
	}
}

static void set_wishes(struct run *run, struct ctx *ctx, struct jv *record, const struct spawn *spawn,
		       const struct jv *declared)
{
	struct arena *arena = ctx->arena;
	struct str model = jv_get_str(declared, "model");
	struct jv *plan;
	struct err ignored;

	if (!model.len)
		model = jv_get_str(jv_get(workspace_config(run->agent->ws)->document, "subagents"), "model");
	if (model.len)
		jv_set_str(arena, record, "model", model);
	if (spawn->role.len)
		jv_set_str(arena, record, "role", spawn->role);
	if (spawn->label.len)
		jv_set_str(arena, record, "label", spawn->label);
	if (spawn->output_path.len)
		jv_set_str(arena, record, "outputPath", spawn->output_path);
	if (jv_count(spawn->only))
		jv_set(arena, record, "allowedTools", (struct jv *)spawn->only);
	if (jv_count(spawn->never))
		jv_set(arena, record, "deniedTools", (struct jv *)spawn->never);
	if (plan_look(run->agent->ws, ctx, false, &plan, &ignored) == 0 && jv_get_bool(plan, "active", false))
		jv_set_bool(arena, record, "plans", true);
}

static int declaration_of(struct run *run, struct ctx *ctx, struct str id, struct jv **ret, struct err *err)
{
	int r;

	*ret = NULL;
	if (str_is(id, GENERAL_PURPOSE))
		return 0;
	r = subagent_get(crew_workspace(run->agent->kin.crew), ctx, id, ret, err);
	if (r == 0 && str_is(jv_get_str(*ret, "mode"), "primary"))
		return err_set(err, ERR_DENIED,
			       "\"%.*s\" is declared with mode: primary and cannot be a subagent; list_subagents shows "
			       "the others",
			       STR_ARG(utf8_first(id, 64)));
	return r;
}

/* Who coordinates a team gives tasks to its members alone. */
static int check_team(const struct run *run, struct str id, struct err *err)
{
	const struct jv *members = run->agent->kin.members;

	for (const struct jv_member *m = jv_first(members); m; m = m->next)
		if (str_eq(jv_str_of(m->value), id))
			return 0;
	return members ? err_set(err, ERR_DENIED,
				 "\"%.*s\" is not a member of the team; give the task to one of its members",
				 STR_ARG(utf8_first(id, 64)))
		       : 0;
}

/* The members of a team know of each other, since they share a notebook. */
static void set_team(struct run *run, struct arena *arena, struct jv *record, struct str id)
{
	struct str lead = workspace_actor(run->agent->ws).agent;
	struct jv *mates = jv_array(arena);

	if (!run->agent->kin.members)
		return;
	if (lead.len)
		jv_push(arena, mates, jv_str(arena, lead));
	for (const struct jv_member *m = jv_first(run->agent->kin.members); m; m = m->next)
		if (!str_eq(jv_str_of(m->value), id))
			jv_push(arena, mates, jv_str(arena, jv_str_of(m->value)));
	jv_set(arena, record, "teammates", mates);
}

/* Before anything is paid for: a result that cannot be written is found out too late. */
static int check_output(struct run *run, struct arena *arena, struct str path, struct err *err)
{
	struct wpath at = {path};
	int r = path.len ? workspace_path(run->agent->ws, arena, path, &at, err) : 0;

	if (r)
		return err_prefix(err, "output_path");
	return path.len && !at.s.len ? err_set(err, ERR_INVALID, "output_path: name a file, not the root") : 0;
}

int children_spawn(struct run *run, struct ctx *ctx, const struct spawn *spawn, struct jv **ret_record, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct str id = spawn->agent_id.len ? spawn->agent_id : STR(GENERAL_PURPOSE);
	struct str hash =
		short_hash(arena, arena_printf(arena, "%.*s %.*s", STR_ARG(ctx->actor.call_id), STR_ARG(spawn->label)));
	struct jv *declared, *record;
	int r = declaration_of(run, ctx, id, &declared, err);

	if (r == 0)
		r = check_team(run, id, err);
	if (r)
		return r;
	if (run->agent->kin.depth >= limits_of(run).max_depth)
		return err_set(err, ERR_QUOTA, "subagents may be nested %u deep (subagents.max_depth); do it yourself",
			       limits_of(run).max_depth);
	if (!str_trim(spawn->task).len)
		return err_set(err, ERR_INVALID, "say what the subagent should do");
	r = check_output(run, arena, spawn->output_path, err);
	if (r)
		return r;
	record = record_new(run, ctx, arena_printf(arena, "task_%.*s", STR_ARG(hash)));
	jv_set_str(arena, record, "subAgentId", id);
	jv_set_str(arena, record, "subSessionId", arena_printf(arena, "sub-%.*s", STR_ARG(hash)));
	jv_set_str(arena, record, "task", spawn->task);
	set_place(run, arena, record, declared);
	set_team(run, arena, record, id);
	set_wishes(run, ctx, record, spawn, declared);
	set_end(run, arena, record, spawn->timeout_ns);
	return begin(run, ctx, record, ret_record, err);
}

/* --- sending --- */

/* "agent:ID:HASH", as agent_spawn of AgentScope gives it. */
static bool has_key(const struct jv *record, struct str key)
{
	struct str hash = str_from(jv_get_str(record, "subSessionId"), strlen("sub-"));

	return str_starts(key, STR("agent:")) && hash.len && str_ends(key, hash);
}

/* The newest task of the subagent that is meant. */
static const struct jv *find_meant(const struct jv *tasks, struct str to, struct str session)
{
	const struct jv *found = record_find(tasks, to, session);

	for (const struct jv_member *m = jv_first(tasks); m && !found; m = m->next)
		if (has_key(m->value, to) && str_eq(jv_get_str(m->value, "parentSessionId"), session))
			found = m->value;
	for (const struct jv_member *m = jv_first(tasks); m && found; m = m->next)
		if (str_eq(jv_get_str(m->value, "subSessionId"), jv_get_str(found, "subSessionId")))
			found = m->value;
	return found;
}

static int unknown(struct str id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "this conversation has no subagent or task \"%.*s\"; list them",
		       STR_ARG(utf8_first(id, 80)));
}

int children_send(struct run *run, struct ctx *ctx, struct str to, struct str message, struct jv **ret_record,
		  struct err *err)
{
	static const char *const kept[] = {"subAgentId",   "subSessionId", "label",      "model",
					   "role",         "root",         "parentRoot", "isolated",
					   "allowedTools", "deniedTools",  "plans",      "fork"};
	struct arena *arena = ctx->arena;
	struct records records = records_of(run);
	const struct jv *meant;
	struct jv *tasks, *record;
	struct str id = arena_printf(arena, "task_%.*s", STR_ARG(short_hash(arena, ctx->actor.call_id)));
	int r = task_records_read(&records, arena, &tasks, err);

	if (r)
		return r;
	meant = jv_get_key(tasks, id); /* this call was made before */
	if (meant) {
		*ret_record = (struct jv *)meant;
		return record_has_ended(meant) ? 0 : begin(run, ctx, *ret_record, ret_record, err);
	}
	meant = find_meant(tasks, to, run->ref.session);
	if (!meant)
		return unknown(to, err);
	if (!record_has_ended(meant))
		return err_set(err, ERR_CONFLICT,
			       "\"%.*s\" is still working on its last message; wait for it or cancel it",
			       STR_ARG(utf8_first(to, 80)));
	record = record_new(run, ctx, id);
	for (size_t i = 0; i < COUNT(kept); i++)
		if (jv_get(meant, kept[i]))
			jv_set(arena, record, kept[i], (struct jv *)jv_get(meant, kept[i]));
	jv_set_str(arena, record, "task", message);
	jv_set_bool(arena, record, "follows", true);
	set_end(run, arena, record, 0);
	return begin(run, ctx, record, ret_record, err);
}

/* --- looking, waiting, cancelling --- */

static bool is_own(const struct run *run, const struct jv *record)
{
	return str_eq(jv_get_str(record, "parentSessionId"), run->ref.session);
}

int children_list(struct run *run, struct ctx *ctx, struct jv **ret_list, struct err *err)
{
	struct records records = records_of(run);
	struct jv *tasks, *list = jv_array(ctx->arena);
	int r = task_records_read(&records, ctx->arena, &tasks, err);

	for (const struct jv_member *m = r ? NULL : jv_first(tasks); m; m = m->next)
		if (is_own(run, m->value))
			jv_push(ctx->arena, list, m->value);
	*ret_list = list;
	return r;
}

static int mark_told(void *arg, struct arena *arena, struct jv *tasks, struct err *err)
{
	const struct jv *ids = arg;

	(void)err;
	for (const struct jv_member *m = jv_first(ids); m; m = m->next) {
		struct jv *record = (struct jv *)jv_get_key(tasks, jv_str_of(m->value));

		if (record && record_has_ended(record) && !jv_get(record, "deliveredAt"))
			jv_set_str(arena, record, "deliveredAt", clock_format_utc(arena, clock_real_ns()));
	}
	return 0;
}

static struct jv *ids_of(struct arena *arena, const struct jv *list, bool ended)
{
	struct jv *ids = jv_array(arena);

	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (record_has_ended(m->value) == ended && (!ended || !jv_get(m->value, "deliveredAt")))
			jv_push(arena, ids, jv_str(arena, jv_get_str(m->value, "taskId")));
	return ids;
}

/* The records that are meant, as they are now. */
static int pick(struct run *run, struct ctx *ctx, const struct jv *ids, struct jv **ret_list, struct err *err)
{
	struct jv *all, *list = jv_array(ctx->arena), *by_id = jv_object(ctx->arena);
	int r = children_list(run, ctx, &all, err);

	if (r)
		return r;
	for (const struct jv_member *m = jv_first(all); m; m = m->next)
		jv_set_key(ctx->arena, by_id, jv_get_str(m->value, "taskId"), m->value);
	for (const struct jv_member *m = jv_first(ids); m; m = m->next) {
		const struct jv *record = find_meant(by_id, jv_str_of(m->value), run->ref.session);

		if (jv_get_key(by_id, jv_str_of(m->value)))
			record = jv_get_key(by_id, jv_str_of(m->value));
		if (!record)
			return unknown(jv_str_of(m->value), err);
		jv_push(ctx->arena, list, (struct jv *)record);
	}
	*ret_list = ids ? list : all;
	return 0;
}

int children_wait(struct run *run, struct ctx *ctx, const struct jv *ids, bool any, int64_t wait_ns,
		  struct jv **ret_list, struct err *err)
{
	struct records records = records_of(run);
	struct jv *list, *told, *open;
	int r = pick(run, ctx, ids, &list, err);

	if (r)
		return r;
	open = ids_of(ctx->arena, list, false);
	if (jv_count(open) && !(any && jv_count(ids_of(ctx->arena, list, true))))
		crew_wait(run->agent->kin.crew, ctx, run->ref.session, open, any, wait_ns);
	r = ctx_check(run->ctx, err);
	if (r == 0)
		r = pick(run, ctx, ids ? ids : open, &list, err);
	if (r)
		return r;
	told = ids_of(ctx->arena, list, true);
	*ret_list = list;
	return jv_count(told) ? task_records_change(&records, ctx->arena, mark_told, told, err) : 0;
}

int children_cancel(struct run *run, struct ctx *ctx, struct str id, struct jv **ret_record, struct err *err)
{
	struct arena *arena = ctx->arena;
	struct records records = records_of(run);
	struct jv *ids = jv_array(arena), *list, *members = jv_object(arena);
	int r;

	jv_push(arena, ids, jv_str(arena, id));
	r = pick(run, ctx, ids, &list, err);
	if (r)
		return r;
	id = jv_get_str(jv_at(list, 0), "taskId");
	jv_set_bool(arena, members, "cancelRequested", true);
	if (crew_cancel(run->agent->kin.crew, id))
		crew_wait(run->agent->kin.crew, ctx, run->ref.session, ids, false, CANCEL_NS);
	jv_set_str(arena, members, "status", STR("CANCELLED")); /* what runs elsewhere sees it, too */
	if (!record_has_ended(jv_at(list, 0)))
		r = task_records_set(&records, arena, id, members, err);
	if (r == 0)
		r = pick(run, ctx, ids, &list, err);
	if (r == 0)
		*ret_record = (struct jv *)jv_at(list, 0);
	return r;
}

/* --- between the steps of a turn --- */

void children_take_up(struct run *run)
{
	struct records records = records_of(run);
	struct jv *list;
	struct err ignored;

	if (children_list(run, run->ctx, &list, &ignored) != 0)
		return;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		if (!record_has_ended(m->value))
			crew_start(run->agent->kin.crew, run->agent, &records, m->value);
}

static bool is_in_log(const struct run *run, struct str id)
{
	for (const struct jv_member *m = jv_first(run->entries); m; m = m->next)
		if (str_is(jv_get_str(m->value, "type"), "notice") && str_eq(jv_get_str(m->value, "task"), id))
			return true;
	return false;
}

static void queue_notice(struct run *run, const struct jv *record)
{
	struct arena *arena = run->ctx->arena;
	struct jv *entry = journal_entry(run, "notice");
	struct str id = jv_get_str(record, "taskId"), why = jv_get_str(record, "errorMessage");
	struct str text = why.len ? why : jv_get_str(record, "result"), shown = utf8_first(text, NOTICE_MAX);

	jv_set_str(arena, entry, "task", id);
	jv_set_str(arena, entry, "content",
		   arena_printf(arena,
				"<system-reminder>\n<task id=\"%.*s\" state=\"%.*s\" agent=\"%.*s\">\n%.*s%s\n</task>\n"
				"</system-reminder>",
				STR_ARG(id), STR_ARG(jv_get_str(record, "status")),
				STR_ARG(jv_get_str(record, "subAgentId")), STR_ARG(shown),
				shown.len < text.len ? "\n(cut; ask for the task's output to see all of it)" : ""));
	journal_queue(run, entry);
}

void children_tell(struct run *run)
{
	struct records records = records_of(run);
	struct arena *arena = run->ctx->arena;
	struct jv *list, *ids;
	struct err ignored;

	if (children_list(run, run->ctx, &list, &ignored) != 0)
		return;
	ids = ids_of(arena, list, true);
	if (!jv_count(ids))
		return;
	for (const struct jv_member *m = jv_first(ids); m; m = m->next)
		for (const struct jv_member *t = jv_first(list); t; t = t->next)
			if (str_eq(jv_get_str(t->value, "taskId"), jv_str_of(m->value)) &&
			    !is_in_log(run, jv_str_of(m->value)))
				queue_notice(run, t->value);
	if (journal_flush(run, &ignored) == 0)
		task_records_change(&records, arena, mark_told, ids, &ignored);
}
