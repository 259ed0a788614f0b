/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools for subagents, in the words of each dialect. The records do the work; what differs is the names, the
 * arguments, and the reply. Native replies have the form of AgentScope's: lines with keys, then the text.
 */
#include "agent/children.h"
#include "base/clock.h"
#include "home/subagents/subagents.h"
#include "tool/schema_text.h"

#define WAIT_SECONDS  30
#define WAIT_MOST     600
#define ASYNC_SECONDS 60
#define ASYNC_MOST    120
#define PAW_MINUTES   30
#define PAW_SHOWN     ((size_t)5000)

/* Of an own tool; `arg` of the struct agent_tool is one. */
struct child_tool {
	const char *dialect, *name, *description, *args;
	unsigned traits;
	int (*call)(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		    struct str *ret_text, struct err *err);
};

static int64_t seconds_of(const struct jv *args, const char *key, int64_t usual, int64_t most)
{
	int64_t s = jv_get_int(args, key, usual);

	return (s < most ? s : most) * NS_PER_S;
}

static struct jv *one(struct arena *arena, struct str id)
{
	struct jv *list = jv_array(arena);

	jv_push(arena, list, jv_str(arena, id));
	return list;
}

static int wait_for_one(struct run *run, struct ctx *ctx, int64_t wait_ns, struct jv **record, struct err *err)
{
	struct jv *list;
	int r = children_wait(run, ctx, one(ctx->arena, jv_get_str(*record, "taskId")), false, wait_ns, &list, err);

	if (r == 0)
		*record = (struct jv *)jv_at(list, 0);
	return r;
}

/* --- replies --- */

static void add_merge(struct buf *text, const struct jv *record)
{
	if (jv_get(record, "mergedFiles"))
		buf_printf(text, "files merged: %lld\n", (long long)jv_get_int(record, "mergedFiles", 0));
	if (jv_get_str(record, "mergeError").len)
		buf_printf(text, "its files were not merged: %.*s; they are in the fork %.*s\n",
			   STR_ARG(jv_get_str(record, "mergeError")), STR_ARG(jv_get_str(record, "fork")));
	if (jv_get_str(record, "outputPath").len && str_is(jv_get_str(record, "status"), "COMPLETED"))
		buf_printf(text, "output_path: %.*s\n", STR_ARG(jv_get_str(record, "outputPath")));
}

/* What came of it, without its names. */
static void add_outcome(struct buf *text, const struct jv *record, bool waited, size_t most)
{
	struct str status = jv_get_str(record, "status"), id = jv_get_str(record, "taskId");
	struct str result = jv_get_str(record, "result"), shown = utf8_first(result, most);

	if (str_is(status, "COMPLETED")) {
		buf_lit(text, "status: ok\n");
		add_merge(text, record);
		buf_lit(text, "reply:\n");
		buf_add(text, shown);
		if (shown.len < result.len)
			buf_printf(text, "\n(cut after %zu of %zu bytes; all of it is in session %.*s)", shown.len,
				   result.len, STR_ARG(jv_get_str(record, "subSessionId")));
	} else if (record_has_ended(record)) {
		struct str why = jv_get_str(record, "errorMessage");

		buf_printf(text, "status: %s\nerror: %.*s", str_is(status, "CANCELLED") ? "cancelled" : "error",
			   STR_ARG(why.len ? why : STR("the task was cancelled")));
	} else if (jv_get_bool(record, "awaitingConfirm", false)) {
		buf_printf(text, "status: waiting\ntask_id: %.*s\nA person must first approve a call by this subagent.",
			   STR_ARG(id));
	} else {
		buf_printf(text,
			   "status: %s\ntask_id: %.*s\nIt continues in the background; you will be told when it ends.",
			   waited ? "timeout_promoted" : "accepted", STR_ARG(id));
	}
}

static struct str reply(struct arena *arena, const struct jv *record, bool waited)
{
	struct str session = jv_get_str(record, "subSessionId"), id = jv_get_str(record, "subAgentId");
	struct buf text;

	buf_init(&text, arena, TOOL_TEXT_MAX);
	buf_printf(&text, "agent_key: agent:%.*s:%.*s\nagent_id: %.*s\nsession_id: %.*s\n", STR_ARG(id),
		   STR_ARG(str_from(session, strlen("sub-"))), STR_ARG(id), STR_ARG(session));
	add_outcome(&text, record, waited, TASK_RESULT_MAX);
	return buf_str(&text);
}

static void add_line(struct buf *text, const struct jv *record)
{
	struct str label = jv_get_str(record, "label");

	buf_printf(text, "\n- task_id: %.*s agent: %.*s%s%.*s status: %.*s created: %.*s",
		   STR_ARG(jv_get_str(record, "taskId")), STR_ARG(jv_get_str(record, "subAgentId")),
		   label.len ? " label: " : "", STR_ARG(label), STR_ARG(jv_get_str(record, "status")),
		   STR_ARG(jv_get_str(record, "createdAt")));
}

/* --- spawn, send --- */

static int spawn_and_wait(struct run *run, struct ctx *ctx, const struct spawn *spawn, int64_t wait_ns,
			  struct str *ret_text, struct err *err)
{
	struct jv *record;
	int r = children_spawn(run, ctx, spawn, &record, err);

	if (r == 0 && wait_ns > 0)
		r = wait_for_one(run, ctx, wait_ns, &record, err);
	if (r == 0)
		*ret_text = reply(ctx->arena, record, wait_ns > 0);
	return r;
}

static int call_spawn(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		      struct str *ret_text, struct err *err)
{
	struct spawn spawn = {.agent_id = jv_get_str(args, "agent_id"),
			      .task = jv_get_str(args, "task"),
			      .label = jv_get_str(args, "label"),
			      .output_path = jv_get_str(args, "output_path")};

	(void)tool;
	return spawn_and_wait(run, ctx, &spawn, seconds_of(args, "timeout_seconds", WAIT_SECONDS, WAIT_MOST), ret_text,
			      err);
}

static int call_send(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		     struct str *ret_text, struct err *err)
{
	struct str key = jv_get_str(args, "agent_key"), label = jv_get_str(args, "label");
	int64_t wait_ns = seconds_of(args, "timeout_seconds", WAIT_SECONDS, WAIT_MOST);
	struct jv *record;
	int r;

	(void)tool;
	if (!key.len == !label.len)
		return err_set(err, ERR_INVALID, "give either agent_key or label, not both");
	r = children_send(run, ctx, key.len ? key : label, jv_get_str(args, "message"), &record, err);
	if (r == 0 && wait_ns > 0)
		r = wait_for_one(run, ctx, wait_ns, &record, err);
	if (r == 0)
		*ret_text = reply(ctx->arena, record, wait_ns > 0);
	return r;
}

static int call_delegate(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
			 struct str *ret_text, struct err *err)
{
	struct spawn spawn = {.agent_id = str_from(tool->info.name, strlen("delegate_")),
			      .task = jv_get_str(args, "task")};

	return spawn_and_wait(run, ctx, &spawn, WAIT_MOST * NS_PER_S, ret_text, err);
}

/* --- look, wait, cancel --- */

static int call_list(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		     struct str *ret_text, struct err *err)
{
	struct str wanted = jv_get_str(args, "status_filter");
	struct buf lines, text;
	struct jv *list;
	size_t count = 0;
	int r = children_list(run, ctx, &list, err);

	(void)tool;
	if (r)
		return r;
	buf_init(&lines, ctx->arena, TOOL_TEXT_MAX);
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		if (wanted.len && !str_eq_nocase(wanted, jv_get_str(m->value, "status")))
			continue;
		add_line(&lines, m->value);
		count++;
	}
	buf_printf(&text, "%zu task%s%.*s", count, count == 1 ? "" : "s", STR_ARG(buf_str(&lines)));
	*ret_text = buf_str(&text);
	return 0;
}

static int call_output(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		       struct str *ret_text, struct err *err)
{
	bool blocks = jv_get_bool(args, "block", true);
	int64_t wait_ns = jv_get(args, "timeout") ? jv_get_int(args, "timeout", 0) * NS_PER_MS
						  : seconds_of(args, "timeout_seconds", WAIT_SECONDS, WAIT_MOST);
	struct str id = jv_get_str(args, "task_id").len ? jv_get_str(args, "task_id") : jv_get_str(args, "id");
	struct jv *list;
	struct buf text;
	int r = children_wait(run, ctx, one(ctx->arena, id), false, blocks ? wait_ns : 0, &list, err);

	(void)tool;
	if (r)
		return r;
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	buf_printf(&text, "task_id: %.*s\nagent_id: %.*s\ncreated_at: %.*s\n",
		   STR_ARG(jv_get_str(jv_at(list, 0), "taskId")), STR_ARG(jv_get_str(jv_at(list, 0), "subAgentId")),
		   STR_ARG(jv_get_str(jv_at(list, 0), "createdAt")));
	add_outcome(&text, jv_at(list, 0), blocks, jv_get(args, "id") ? PAW_SHOWN : TASK_RESULT_MAX);
	*ret_text = buf_str(&text);
	return 0;
}

static int call_cancel(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		       struct str *ret_text, struct err *err)
{
	struct str id = jv_get_str(args, "task_id").len ? jv_get_str(args, "task_id") : jv_get_str(args, "id");
	struct jv *record;
	int r = children_cancel(run, ctx, id, &record, err);

	(void)tool;
	if (r == 0)
		*ret_text = arena_printf(ctx->arena, "task %.*s: %.*s", STR_ARG(jv_get_str(record, "taskId")),
					 STR_ARG(jv_get_str(record, "status")));
	return r;
}

/* "a, b" */
static struct jv *ids_from(struct arena *arena, struct str text)
{
	struct jv *ids = jv_array(arena);
	struct str part;

	while (str_cut(&text, ',', &part))
		if (str_trim(part).len)
			jv_push(arena, ids, jv_str(arena, str_trim(part)));
	return ids;
}

static int call_wait(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
		     struct str *ret_text, struct err *err)
{
	const struct jv *ids = jv_get(args, "task_ids");
	bool all = jv_get_bool(args, "wait_all", false);
	struct jv *list;
	struct buf text;
	int r;

	(void)tool;
	if (ids && ids->type == JV_STR)
		ids = ids_from(ctx->arena, ids->u.s);
	r = children_wait(run, ctx, ids, !all && !ids, seconds_of(args, "timeout_seconds", ASYNC_SECONDS, ASYNC_MOST),
			  &list, err);
	if (r)
		return r;
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		if (!record_has_ended(m->value) && !all && !ids)
			continue;
		buf_printf(&text, "---\ntask_id: %.*s\n", STR_ARG(jv_get_str(m->value, "taskId")));
		add_outcome(&text, m->value, true, TASK_RESULT_MAX / 4);
		buf_lit(&text, "\n");
	}
	*ret_text = text.len ? buf_str(&text) : jv_count(list) ? STR("no task has ended") : STR("no task is running");
	return 0;
}

/* --- OpenPaw --- */

static int call_paw_spawn(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
			  struct str *ret_text, struct err *err)
{
	struct spawn spawn = {.task = jv_get_str(args, "task"),
			      .label = jv_get_str(args, "label"),
			      .only = jv_get(args, "allowed_tools"),
			      .never = jv_get(args, "denied_tools"),
			      .timeout_ns = jv_get_int(args, "timeout_minutes", PAW_MINUTES) * 60 * NS_PER_S};
	struct jv *record;
	int r = children_spawn(run, ctx, &spawn, &record, err);

	(void)tool;
	if (r == 0)
		*ret_text = arena_printf(
			ctx->arena,
			"Spawned %.*s (id: %.*s). It runs in the background; you will be told when it ends.",
			STR_ARG(spawn.label.len ? spawn.label : STR("a sub-agent")),
			STR_ARG(jv_get_str(record, "taskId")));
	return r;
}

/* --- OmniCoreAgent --- */

static int spawn_workers(struct run *run, struct ctx *ctx, const struct jv *list, struct jv *ids, struct err *err)
{
	int r = 0;

	for (const struct jv_member *m = jv_first(list); m && r == 0; m = m->next) {
		struct spawn spawn = {.task = jv_get_str(m->value, "task"),
				      .role = jv_get_str(m->value, "role"),
				      .label = jv_get_str(m->value, "name"),
				      .output_path = jv_get_str(m->value, "output_path")};
		struct jv *record;

		r = children_spawn(run, ctx, &spawn, &record, err);
		if (r == 0)
			jv_push(ctx->arena, ids, jv_str(ctx->arena, jv_get_str(record, "taskId")));
	}
	return r;
}

static int call_workers(const struct agent_tool *tool, struct run *run, struct ctx *ctx, const struct jv *args,
			struct str *ret_text, struct err *err)
{
	struct jv *ids = jv_array(ctx->arena), *list;
	struct buf text;
	int r = spawn_workers(run, ctx, jv_get(args, "subagents"), ids, err);

	(void)tool;
	if (r == 0)
		r = children_wait(run, ctx, ids, false, WAIT_MOST * NS_PER_S, &list, err);
	if (r)
		return r;
	buf_init(&text, ctx->arena, TOOL_TEXT_MAX);
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		buf_printf(&text, "## %.*s\n", STR_ARG(jv_get_str(m->value, "label")));
		add_outcome(&text, m->value, true, PAW_SHOWN);
		buf_lit(&text, "\n\n");
	}
	*ret_text = buf_str(&text);
	return 0;
}

/* --- the tables --- */

#define SPAWN (TOOL_OPEN_WORLD | TOOL_IDEMPOTENT | TOOL_PLANS)
#define LOOK  (TOOL_READS_ONLY | TOOL_IDEMPOTENT)

/* clang-format off */
static const struct child_tool tools[] = {
	{"native", "spawn_agent", "Gives a task to a subagent, which works on its own and reports. Several calls in one answer run at the same time.",
	 "task!: what to do, with everything it must know: it sees nothing of this conversation\nagent_id: a declared subagent (default general-purpose)\nlabel: a name for it, to send it more messages\ntimeout_seconds int>=0<=600: how long to wait for the report; 0 or later: it continues in the background (default 30)\noutput_path: a file that gets the result", SPAWN, call_spawn},
	{"native", "send_agent", "Sends another message to a subagent that has reported.",
	 "agent_key: from spawn_agent\nlabel: its label\nmessage!: what to say\n"
	 "timeout_seconds int>=0<=600: how long to wait for the report (default 30)", SPAWN, call_send},
	{"native", "list_agents", "Lists the tasks that were given to subagents in this conversation.",
	 "status_filter PENDING|RUNNING|COMPLETED|FAILED|CANCELLED: only these", LOOK, call_list},
	{"native", "agent_output", "Shows the report of a task that a subagent works on.",
	 "task_id!: from spawn_agent\nblock bool: wait for it (default true)\n"
	 "timeout_seconds int>=0<=600: how long to wait (default 30)", LOOK, call_output},
	{"native", "cancel_agent", "Ends a task that a subagent works on.", "task_id!: from spawn_agent", SPAWN, call_cancel},
	{"native", "wait_agents", "Waits until a background task has ended, or all of them.",
	 "task_ids [str]: wait for all of these\nwait_all bool: wait for all that run (default false)\n"
	 "timeout_seconds int>=0<=120: how long to wait (default 60)", LOOK, call_wait},

	{"agentscope", "agent_spawn", "Starts a subagent with a task.",
	 "agent_id!: a declared subagent, or general-purpose\ntask!: what to do\nlabel: a name for it\n"
	 "timeout_seconds int>=0<=600: 0: in the background (default 30)", SPAWN, call_spawn},
	{"agentscope", "agent_send", "Sends a message to a subagent.",
	 "agent_key: from agent_spawn\nlabel: its label\nmessage!: what to say\n"
	 "timeout_seconds int>=0<=600: default 30", SPAWN, call_send},
	{"agentscope", "agent_list", "Lists the subagents of this conversation and their tasks.", NULL, LOOK, call_list},
	{"agentscope", "task_output", "Shows the result of a background task.",
	 "task_id!: from agent_spawn\nblock bool: wait for it (default true)\n"
	 "timeout int>=0<=600000: milliseconds (default 30000)", LOOK, call_output},
	{"agentscope", "task_cancel", "Cancels a background task.", "task_id!: from agent_spawn", SPAWN, call_cancel},
	{"agentscope", "task_list", "Lists background tasks.", "status_filter: only this status", LOOK, call_list},
	{"agentscope", "wait_async_results", "Waits for background tasks.",
	 "timeout_seconds int>=0<=120: default 60\ntask_ids: ids, with commas between them\n"
	 "wait_all bool: wait for all that run", LOOK, call_wait},

	{"openpaw", "spawn_agent", "Starts a sub-agent in the background.",
	 "task!: what to do\nlabel: a name for it\ntimeout_minutes int>=1<=120: default 30\n"
	 "allowed_tools [str]: only these\ndenied_tools [str]: not these", SPAWN, call_paw_spawn},
	{"openpaw", "list_subagents", "Lists sub-agents and their states.", NULL, LOOK, call_list},
	{"openpaw", "get_subagent_result", "Shows the result of a sub-agent.", "id!: from spawn_agent", LOOK, call_output},
	{"openpaw", "cancel_subagent", "Cancels a sub-agent.", "id!: from spawn_agent", SPAWN, call_cancel},

	{"omnicoreagent", "spawn_subagents", "Runs workers in parallel and waits for all of them; each writes its result to "
	 "its output_path.",
	 "subagents! [{name!; role!; task!; output_path!}]: the workers", SPAWN, call_workers},
};
/* clang-format on */

static int add(struct agent *agent, const struct child_tool *t, struct str name, struct str description,
	       struct err *err)
{
	struct jv *schema;
	struct agent_tool tool = {
		.info = {.name = name, .title = name, .description = description, .traits = t->traits},
		.runs_along = !(t->traits & TOOL_READS_ONLY) && t->call != call_cancel,
		.ends_itself = true,
		.is_of_agents = true,
		.call = t->call};
	int r = schema_text_parse(agent->arena, t->args ? t->args : "", &schema, err);

	tool.info.input_schema = schema;
	return r ? r : agent_tool_add(agent, &tool, err);
}

/* A team that is declared in subagents/: a tool for each member. */
static int add_team(struct agent *agent, struct err *err)
{
	static const struct child_tool delegate = {"omnicoreagent",     NULL,  NULL,
						   "task!: what to do", SPAWN, call_delegate};
	struct ctx ctx = {.arena = agent->arena};
	struct jv *list;
	int r = subagents_list(agent->ws, &ctx, false, &list, err);

	for (const struct jv_member *m = r ? NULL : jv_first(jv_get(list, "subagents")); m && r == 0; m = m->next)
		r = add(agent, &delegate,
			arena_printf(agent->arena, "delegate_%.*s", STR_ARG(jv_get_str(m->value, "id"))),
			jv_get_str(m->value, "description"), err);
	return r;
}

int child_tools_add(struct agent *agent, struct err *err)
{
	struct child_limits limits = child_limits_read(workspace_config(agent->ws)->document);
	struct str dialect = agent->opts.dialect.len ? agent->opts.dialect : STR("native");
	int r = 0;

	if (!limits.enabled || agent->kin.depth >= limits.max_depth)
		return 0;
	for (size_t i = 0; i < COUNT(tools) && r == 0; i++)
		if (str_is(dialect, tools[i].dialect))
			r = add(agent, &tools[i], str_of(tools[i].name), str_of(tools[i].description), err);
	if (r == 0 && str_is(dialect, "omnicoreagent") &&
	    !tool_list_has_builtin_of(workspace_config(agent->ws)->tools_deny, STR("spawn_subagents")))
		r = add_team(agent, err);
	return r;
}
