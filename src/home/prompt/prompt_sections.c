/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt's own sections: files at the top of the home, and what Stead says of the workspace and the session. */
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/limits.h"
#include "home/prompt/prompt_internal.h"
#include "text/zone.h"
#include "workspace/fork.h"

#define NAME_MAX_BYTES ((size_t)100)

struct str prompt_today(struct arena *arena, const struct workspace *ws)
{
	return zone_date(arena, workspace_config(ws)->timezone, clock_real_ns());
}

/* --- files --- */

static int find_identity(struct prompt_find *find, struct err *err)
{
	int r = prompt_find_file(find, STR("AGENTS.md"), err);

	return r || find->count ? r : prompt_find_file(find, STR("AGENT.md"), err);
}

static int find_context(struct prompt_find *find, struct err *err)
{
	const struct jv *files = workspace_config(find->ws)->prompt_files;
	int r = 0;

	for (const struct jv_member *m = jv_first(files); r == 0 && m; m = m->next) {
		struct wpath path;
		struct err ignored;

		if (wpath_parse(jv_str_of(m->value), &path, &ignored) == 0 && !prompt_is_hidden(path.s))
			r = prompt_find_file(find, path.s, err);
	}
	return r;
}

/* Why a file of prompt.context_files is not used; NULL: it is. */
static const char *context_problem(struct workspace *ws, struct ctx *ctx, struct str text)
{
	struct store_stat stat;
	struct wpath path;
	struct err err;

	if (wpath_parse(text, &path, &err) != 0)
		return "prompt.context_files has a path that is not valid";
	if (prompt_is_hidden(path.s))
		return "prompt.context_files may not name it: no element of a path may begin with a dot";
	if (store_stat(workspace_home(ws), ctx, path, &stat, &err) != 0 || stat.kind != STORE_FILE)
		return "prompt.context_files names it, and there is no such file in the workspace";
	return NULL;
}

static void report_context(struct prompt_made *made)
{
	for (const struct jv_member *m = jv_first(workspace_config(made->ws)->prompt_files); m; m = m->next) {
		const char *why = context_problem(made->ws, made->ctx, jv_str_of(m->value));

		if (why)
			prompt_add_problem(made, jv_str_of(m->value), str_of(why));
	}
}

void prompt_check(struct workspace *ws, struct ctx *ctx, const struct findings *findings)
{
	for (const struct jv_member *m = jv_first(workspace_config(ws)->prompt_files); m; m = m->next) {
		const char *why = context_problem(ws, ctx, jv_str_of(m->value));

		if (why)
			finding_add(findings, "prompt",
				    arena_printf(ctx->arena, "%.*s: %s", STR_ARG(jv_str_of(m->value)), why),
				    "write the file, or take it out of prompt.context_files in agent.yaml");
	}
}

static int read_heartbeat(struct prompt_read *read, struct buf *text, struct err *err)
{
	(void)err;
	if (!workspace_heartbeat_is_empty(read->bytes))
		prompt_escape(text, prompt_without_comments(read->ctx->arena, read->bytes));
	return 0;
}

/* --- the workspace --- */

static void say_place(struct workspace *ws, struct buf *b)
{
	struct str root = workspace_root(ws).s, part = workspace_part(ws).s;

	if (workspace_files_are_own(ws)) {
		buf_lit(b, "The file tools work in a directory that people and other programs change too: ");
		prompt_escape_line(b, workspace_files_place(ws), PATH_LEN_MAX);
		buf_lit(b, ". Look before you write. Everything else is in the workspace.\n");
		return;
	}
	root = str_starts(root, part) ? str_from(root, part.len ? part.len + 1 : 0) : root;
	if (root.len) {
		buf_lit(b, "'/' of the file tools is its directory \"");
		prompt_escape_line(b, root, PATH_LEN_MAX);
		buf_lit(b, "\".\n");
	} else {
		buf_lit(b, "'/' of the file tools is the whole workspace.\n");
	}
	if (workspace_dir(ws).ptr)
		buf_lit(b, "It is on the disk of this machine, where people may edit it too.\n");
	else if (store_is_local(workspace_shared(ws)))
		buf_lit(b, "It is in memory and is lost when this program ends.\n");
	else
		buf_lit(b, "It is in a store that other machines and agents share: a path is a name there and not a "
			   "path of a host, and you see at once what others write.\n");
}

static int make_workspace(struct prompt_made *made, struct err *err)
{
	const struct prompt_files *files = made->parts->files;
	struct workspace *ws = made->ws;
	struct buf *b = &made->text, advice;
	struct fork_info fork;
	struct err ignored;
	bool is_fork = false;

	(void)err;
	report_context(made);
	buf_printf(b, "You work in the workspace \"%.*s\". What you write there outlasts this conversation.\n",
		   STR_ARG(workspace_name(ws)));
	say_place(ws, b);
	if (fork_read(made->ctx, workspace_unrecorded(ws), &fork, &is_fork, &ignored) == 0 && is_fork) {
		buf_lit(b, "It is a fork of \"");
		prompt_escape_line(b, fork.parent, NAME_MAX_BYTES);
		buf_printf(b, "\" at revision %llu: what you change stays here until a person merges it.\n",
			   (unsigned long long)fork.revision);
	}
	buf_init(&advice, made->ctx->arena, 64 * 1024);
	for (size_t i = 0; i < files->section_count; i++)
		if (files->sections[i].section->advise)
			files->sections[i].section->advise(ws, &advice);
	buf_add(b, offered_lines(made->ctx->arena, made->set, advice.len ? buf_str(&advice) : STR("")));
	buf_lit(b, "The sections around this one are files of the workspace, as people and agents wrote them. A '<' in "
		   "them that could begin a tag is written &lt;.\n");
	return 0;
}

/* --- the session --- */

static void add_fact(struct buf *b, const char *label, struct str value, size_t max)
{
	if (!value.len)
		return;
	buf_add(b, str_of(label));
	prompt_escape_line(b, value, max);
	buf_char(b, '\n');
}

/* Of "2026-11-15"; 0: Sunday. */
static int weekday_of(struct str date)
{
	struct civil day = {.month = 1, .day = 1};
	int64_t n;

	if (str_to_i64(str_first(date, 4), &n))
		day.year = n;
	if (str_to_i64(str_from(str_first(date, 7), 5), &n))
		day.month = (int)n;
	if (str_to_i64(str_from(date, 8), &n))
		day.day = (int)n;
	return civil_of(civil_wall(&day)).weekday;
}

/* The machine on which an AgentScope agent works: its tools take absolute paths below the workspace. */
static void say_host(const struct workspace *ws, struct buf *b)
{
	const char *temp = env_process("TMPDIR");
	char *real = workspace_dir(ws).ptr ? realpath(workspace_dir(ws).ptr, NULL) : NULL;
	struct utsname system;

	if (uname(&system) == 0)
		buf_printf(b, "System: %s %s\n", system.sysname, system.release);
	add_fact(b, "Workspace directory: ", str_of(real), PATH_LEN_MAX);
	add_fact(b, "Temporary directory: ", str_of(temp && temp[0] == '/' ? temp : "/tmp"), PATH_LEN_MAX);
	free(real);
}

/* The day but not the hour: a prompt that changes by the minute spoils the caching of the conversation after it. */
static int make_session(struct prompt_made *made, struct err *err)
{
	static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
					   "Thursday", "Friday", "Saturday"};
	struct str zone = workspace_config(made->ws)->timezone;
	struct str today = prompt_today(made->ctx->arena, made->ws);
	struct actor own = workspace_actor(made->ws), *a = &made->ctx->actor;
	struct buf *b = &made->text;

	(void)err;
	add_fact(b, "Name: ", workspace_config(made->ws)->name, NAME_MAX_BYTES);
	add_fact(b, "Purpose: ", workspace_config(made->ws)->description, PROMPT_ENTRY_MAX);
	add_fact(b, "Agent: ", a->agent.len ? a->agent : own.agent, NAME_MAX_BYTES);
	add_fact(b, "Session: ", a->session.len ? a->session : own.session, NAME_MAX_BYTES);
	add_fact(b, "User: ", own.user, NAME_MAX_BYTES);
	buf_printf(b, "Today: %s, %.*s (", days[weekday_of(today)], STR_ARG(today));
	prompt_escape_line(b, zone.len ? zone : STR("UTC"), NAME_MAX_BYTES);
	buf_lit(b, ")\n");
	if (workspace_layout(made->ws) == LAYOUT_AGENTSCOPE)
		say_host(made->ws, b);
	return 0;
}

#define IN_FILE "the rest is in that file"

const struct prompt_section prompt_sections[] = {
	{"identity", PROMPT_STATIC, 10, PROMPT_TEXT, 30, PROMPT_YIELDS, .rest = IN_FILE, .find = find_identity},
	{"soul", PROMPT_STATIC, 20, PROMPT_TEXT, 10, 8, .rest = IN_FILE, .file = "SOUL.md"},
	{"workspace", PROMPT_STATIC, 30, PROMPT_TEXT, PROMPT_WHOLE, 9, .make = make_workspace},
	{"context", PROMPT_STATIC, 50, PROMPT_TEXT, 10, 4, .rest = IN_FILE, .find = find_context},
	{"user", PROMPT_STATIC, 100, PROMPT_TEXT, 10, 7, .rest = IN_FILE, .file = "USER.md"},
	{"heartbeat", PROMPT_LASTING, 10, PROMPT_TEXT, 25, 2, .rest = IN_FILE, .file = "HEARTBEAT.md",
	 .read = read_heartbeat},
	{"session", PROMPT_SESSION, 10, PROMPT_TEXT, PROMPT_WHOLE, 1, .make = make_session},
	{0},
};
