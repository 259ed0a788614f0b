/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead chat`: turns of one session, line by line. On a terminal libedit edits the line and remembers the ones before
 * it, and what was said in the session before; without that library, or with input from a pipe, a line is read as it
 * comes. Ctrl-C during a turn stops that turn; its steps are in the log.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent_commands.h"
#include "agent/agent_internal.h"
#include "agent/show.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/dynlib.h"
#include "workspace/fork.h"

#define RECALLED 500 /* entries of the session that are looked through for lines of before */

struct chat {
	struct cli *cli;
	struct agent *agent;
	struct str session;
	bool ended;
};

static struct cancel interrupted; /* by Ctrl-C; a signal handler has no other way to say it */

static void on_interrupt(int number)
{
	(void)number;
	atomic_store(&interrupted.requested, true);
}

/* --- lines --- */

static struct {
	char *(*readline)(const char *prompt);
	int (*add_history)(const char *line);
} edit;

static bool has_edit(void)
{
	const struct dynlib_entry entries[] = {{"readline", &edit.readline}, {"add_history", &edit.add_history}};
	struct err ignored;

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	       dynlib_load("libedit.so.2", "libedit2", entries, COUNT(entries), &ignored) == 0;
}

static char *read_line(bool edits)
{
	char *line = NULL;
	size_t cap = 0;

	if (edits) {
		line = edit.readline("> ");
		if (line && *line)
			edit.add_history(line);
		return line;
	}
	if (isatty(STDIN_FILENO))
		fprintf(stderr, "> ");
	if (getline(&line, &cap, stdin) >= 0)
		return line;
	free(line);
	return NULL;
}

/* The next line, with free(); NULL at the end. Ctrl-C drops what was typed, as it does in a shell. */
static char *next_line(bool edits)
{
	char *line;

	atomic_store(&interrupted.requested, false);
	while (!(line = read_line(edits)) && isatty(STDIN_FILENO) && atomic_load(&interrupted.requested)) {
		atomic_store(&interrupted.requested, false);
		clearerr(stdin);
		fputc('\n', stderr);
	}
	return line;
}

/* What the person has said before in this session can be called up again. */
static void recall(struct chat *chat)
{
	struct session_ref ref = {.agent = workspace_actor(chat->cli->ws).agent,
				  .session = agent_session_of(chat->cli)};
	struct session_page page;
	struct err ignored;

	if (session_history(chat->cli->ws, &chat->cli->ctx, ref, 0, RECALLED, true, &page, &ignored) != 0)
		return;
	for (const struct jv_member *m = jv_first(page.entries); m; m = m->next)
		if (str_is(jv_get_str(m->value, "role"), "user")) {
			struct str said = transcript_said(m->value);

			if (said.len && str_find_char(said, '\n') == said.len)
				edit.add_history(arena_cstr(chat->cli->ctx.arena, said));
		}
}

/* --- commands --- */

static int do_new(struct chat *chat, struct str rest, struct err *err)
{
	int r = agent_forget(chat->agent, &chat->cli->ctx, chat->session, err);

	(void)rest;
	if (r == 0)
		output_add(&chat->cli->out, STR("a new conversation begins\n"));
	return r;
}

static int do_compact(struct chat *chat, struct str rest, struct err *err)
{
	int r = agent_compact(chat->agent, &chat->cli->ctx, chat->session, err);

	(void)rest;
	if (r == 0)
		output_add(&chat->cli->out, STR("the older part of the conversation is now a summary\n"));
	return r;
}

static const char *plural(long long count)
{
	return count == 1 ? "" : "s";
}

static void print_changes(struct chat *chat, const char *what, const struct jv *report)
{
	long long count = jv_get_int(report, "changes", 0);

	if (count)
		output_printf(&chat->cli->out, "%s and %lld file change%s\n", what, count, plural(count));
	else
		output_printf(&chat->cli->out, "%s; it changed no files\n", what);
}

static int do_undo(struct chat *chat, struct str rest, struct err *err)
{
	struct jv *report;
	int r = agent_undo(chat->agent, &chat->cli->ctx, chat->session, &report, err);

	(void)rest;
	if (r == 0)
		print_changes(chat, "took back the last turn", report);
	return r;
}

static int do_redo(struct chat *chat, struct str rest, struct err *err)
{
	struct jv *report;
	int r = agent_redo(chat->agent, &chat->cli->ctx, chat->session, &report, err);

	(void)rest;
	if (r == 0)
		print_changes(chat, "brought back the turn", report);
	return r;
}

static int do_fork(struct chat *chat, struct str rest, struct err *err)
{
	struct arena *arena = chat->cli->ctx.arena;
	struct workspace *ws = chat->cli->ws;
	struct jv *report;
	struct str name = rest.len ? rest
				   : arena_printf(arena, "%.*s-%08llx", STR_ARG(str_first(workspace_name(ws), 40)),
						  (unsigned long long)(random_u64() & 0xffffffff));
	int r = fork_create(ws, &chat->cli->ctx, name, FORK_AT_HEAD, &report, err);

	if (r == 0)
		output_printf(
			&chat->cli->out, "created the workspace %.*s; continue there with 'stead chat -w %.*s%s%.*s'\n",
			STR_ARG(name), STR_ARG(name), chat->session.len ? " --session " : "", STR_ARG(chat->session));
	return r;
}

static int do_status(struct chat *chat, struct str rest, struct err *err)
{
	struct jv *v;
	int r = agent_status(chat->agent, &chat->cli->ctx, chat->session, &v, err);
	long long tokens, window;

	(void)rest;
	if (r)
		return r;
	tokens = jv_get_int(v, "tokens", 0);
	window = jv_get_int(v, "window", 1);
	output_printf(&chat->cli->out, "session %.*s, model %.*s, %lld turn%s, about %lld of %lld tokens (%lld %%)%s\n",
		      STR_ARG(jv_get_str(v, "session")), STR_ARG(jv_get_str(v, "model")),
		      (long long)jv_get_int(v, "turns", 0), plural(jv_get_int(v, "turns", 0)), tokens, window,
		      100 * tokens / window, jv_get_bool(v, "open", false) ? "; the last turn was cut off" : "");
	return 0;
}

static int do_exit(struct chat *chat, struct str rest, struct err *err)
{
	(void)rest;
	(void)err;
	chat->ended = true;
	return 0;
}

static int do_help(struct chat *chat, struct str rest, struct err *err);

static const struct {
	const char *name, *about;
	int (*run)(struct chat *chat, struct str rest, struct err *err);
} commands[] = {
	{"/new", "start over; the conversation so far is archived", do_new},
	{"/compact", "replace the older part of the conversation with a summary", do_compact},
	{"/undo", "take back the last turn and the changes of its calls", do_undo},
	{"/redo", "bring back the last undone turn", do_redo},
	{"/fork", "[NAME]: copy the workspace with this conversation", do_fork},
	{"/status", "model, turns and tokens", do_status},
	{"/help", "this list", do_help},
	{"/exit", "end the chat", do_exit},
};

static int do_help(struct chat *chat, struct str rest, struct err *err)
{
	(void)rest;
	(void)err;
	for (size_t i = 0; i < COUNT(commands); i++)
		output_printf(&chat->cli->out, "%-9s %s\n", commands[i].name, commands[i].about);
	return 0;
}

/* --- turns --- */

/* The person did not want the rest of it, so it is closed and does not continue with the next message. */
static int stop_turn(struct chat *chat, struct err *err)
{
	bool was_open;

	atomic_store(&interrupted.requested, false);
	fprintf(stderr, "[stopped]\n");
	return agent_drop(chat->agent, &chat->cli->ctx, chat->session, &was_open, err);
}

static int take_turn(struct chat *chat, struct str text, struct err *err)
{
	struct show show = {.cli = chat->cli};
	struct agent_turn turn = {.session = chat->session,
				  .text = text,
				  .event = show_event,
				  .approve = show_approve,
				  .fill = show_fill,
				  .arg = &show};
	struct agent_result result;
	int r = agent_run(chat->agent, &chat->cli->ctx, &turn, &result, err);

	show_end_line(&show);
	if (r == -ERR_CANCELLED && atomic_load(&interrupted.requested))
		return stop_turn(chat, err);
	if (r == 0 && result.waiting)
		show_waiting(chat->cli, &result);
	else if (r == 0)
		show_shortfall(&result);
	return r;
}

/* A mistyped command is not worth a question to a model. A path has another '/', a dot or a digit in it. */
static bool looks_like_command(struct str word)
{
	if (word.len < 2 || word.ptr[0] != '/')
		return false;
	for (size_t i = 1; i < word.len; i++)
		if (word.ptr[i] < 'a' || word.ptr[i] > 'z')
			return false;
	return true;
}

static int take_line(struct chat *chat, struct str line, struct err *err)
{
	struct str word = str_first(line, str_find_char(line, ' '));

	for (size_t i = 0; i < COUNT(commands); i++)
		if (str_is(word, commands[i].name))
			return commands[i].run(chat, str_trim(str_from(line, word.len)), err);
	if (!utf8_valid(line))
		return err_set(err, ERR_INVALID, "the line is not UTF-8 text; type it again");
	if (looks_like_command(word))
		return err_set(err, ERR_INVALID, "there is no command \"%.*s\"; /help lists them", STR_ARG(word));
	return take_turn(chat, line, err);
}

static bool chat_edits(struct chat *chat)
{
	bool edits = has_edit();

	if (edits)
		recall(chat);
	return edits;
}

/* An error ends its line, not the chat; from a pipe it ends the program, so that a script notices. */
static int talk(struct chat *chat, struct err *err)
{
	bool edits = chat_edits(chat), person = isatty(STDIN_FILENO);
	struct arena *arena = chat->cli->ctx.arena;
	char *line;
	int r = 0;

	while (!chat->ended && (r == 0 || person) && (line = next_line(edits))) {
		struct str text = str_trim(str_of(line));

		chat->cli->ctx.arena = arena_new();
		r = text.len ? take_line(chat, text, err) : 0;
		output_flush(&chat->cli->out);
		if (r && person)
			output_error(&chat->cli->out, err, STR_NONE, NULL, false);
		arena_destroy(chat->cli->ctx.arena);
		chat->cli->ctx.arena = arena;
		free(line);
	}
	return person ? 0 : r;
}

int run_chat(struct cli *cli, struct err *err)
{
	struct agent_opts opts = {.model = cli_setting(cli, "model"),
				  .base_url = args_get(&cli->args, "base-url"),
				  .dialect = cli_setting(cli, "dialect")};
	struct chat chat = {.cli = cli, .session = cli_setting(cli, "session")};
	struct sigaction action = {.sa_handler = on_interrupt}, before;
	struct jv *status;
	int r = cli_open(cli, CLI_WRITES, err);

	if (r == 0)
		r = agent_open(cli->ws, &opts, &chat.agent, err);
	if (r)
		return r;
	sigaction(SIGINT, &action, &before);
	cli->ctx.cancel = &interrupted;
	r = agent_status(chat.agent, &cli->ctx, chat.session, &status, err);
	if (r == 0 && isatty(STDIN_FILENO))
		r = do_status(&chat, STR_NONE, err);
	if (r == 0 && jv_get_bool(status, "open", false)) {
		fprintf(stderr, "[finishing the turn that was cut off]\n");
		r = take_turn(&chat, STR_NONE, err);
	}
	output_flush(&cli->out);
	if (r == 0)
		r = talk(&chat, err);
	sigaction(SIGINT, &before, NULL);
	agent_close(chat.agent);
	return r;
}
