/* SPDX-License-Identifier: Apache-2.0 */
/* `stead run`: one turn of the agent, and the table of its commands. */
#include "agent/agent_commands.h"

#include <stdio.h>
#include <unistd.h>

#include "agent/acp.h"
#include "agent/show.h"
#include "base/limits.h"
#include "command/cli.h"
#include "command/input.h"
#include "home/sessions/sessions_tools.h"

/* With --json, one object a line. */
static void print_event(void *arg, const struct agent_event *event)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct show *show = arg;

	output_json_line(&show->cli->out, arena, agent_event_value(arena, event));
	output_flush(&show->cli->out);
}

static int read_text(struct cli *cli, struct str *ret, struct err *err)
{
	struct str text = args_operand(&cli->args, 0);
	int r = 0;

	if (str_is(text, "-"))
		r = input_read(cli->ctx.arena, STDIN_FILENO, TOOL_TEXT_MAX, &text, err);
	text = str_trim(text);
	if (r == 0 && !utf8_valid(text))
		return err_set(err, ERR_INVALID, "run: the text is not UTF-8; save it as UTF-8");
	if (r == 0 && !text.len && !args_has(&cli->args, "resume"))
		return err_set(err, ERR_INVALID, "run: say what to do: stead run \"TEXT\", or --resume");
	if (r == 0 && text.len && args_has(&cli->args, "resume"))
		return err_set(
			err, ERR_INVALID,
			"run: --resume takes no text; without --resume, a turn that was cut off is finished first");
	*ret = text;
	return r;
}

static void print_result(struct cli *cli, struct show *show, const struct agent_result *result, bool streamed)
{
	struct jv *value = agent_result_value(cli->ctx.arena, result);

	if (cli->json && streamed) {
		jv_set_str(cli->ctx.arena, value, "event", STR("end"));
		output_json_line(&cli->out, cli->ctx.arena, value);
	} else if (!cli_json(cli, value) && result->waiting) {
		show_waiting(cli, result);
	} else if (!cli->json) {
		if (!streamed || !show->begun)
			output_words(&cli->out, result->answer);
		if (result->answer.len == 0 || result->answer.ptr[result->answer.len - 1] != '\n')
			output_add(&cli->out, STR("\n"));
		show->begun = false;
		output_flush(&cli->out);
		show_shortfall(result);
	}
}

/* A turn whose answer is printed before it is closed. */
struct printing {
	struct show show; /* first: it is the argument of the functions of show.h, too */
	bool streams, is_done;
};

static void print_answer(void *arg, const struct agent_result *result)
{
	struct printing *p = arg;

	print_result(p->show.cli, &p->show, result, p->streams);
	show_end_line(&p->show);
	p->is_done = true;
}

/* One turn; with an empty text the last one is finished. */
static int run_turn(struct cli *cli, struct agent_turn turn, bool streams, struct err *err)
{
	struct agent_opts opts = {.model = cli_setting(cli, "model"),
				  .base_url = args_get(&cli->args, "base-url"),
				  .dialect = cli_setting(cli, "dialect")};
	struct printing p = {.show = {.cli = cli}, .streams = streams};
	struct agent_result result;
	struct agent *agent;
	int r = agent_open(cli->ws, &opts, &agent, err);

	if (r)
		return r;
	turn.event = cli->json ? (streams ? print_event : NULL) : streams ? show_event : show_note;
	turn.approve = cli->json ? NULL : show_approve;
	turn.fill = cli->json ? NULL : show_fill;
	turn.answered = print_answer;
	turn.arg = &p;
	r = agent_run(agent, &cli->ctx, &turn, &result, err);
	if (r == 0 && !p.is_done)
		print_answer(&p, &result);
	if (r == 0 && result.waiting)
		cli->status = exit_code_of(ERR_DENIED);
	show_end_line(&p.show);
	if (r == 0 && !agent_wait(agent, &(struct ctx){.arena = cli->ctx.arena}, turn.session))
		fprintf(stderr, "stead: background tasks continue with the next run of this session\n");
	agent_close(agent);
	if (r && err->retryable)
		cli->hint = "nothing is lost: 'stead run --resume' with the same session continues where it stopped";
	return r;
}

static int run_run(struct cli *cli, struct err *err)
{
	struct agent_turn turn = {.session = cli_setting(cli, "session"), .key = args_get(&cli->args, "key")};
	int r = read_text(cli, &turn.text, err);

	if (r == 0)
		r = agent_key_check(turn.key, err);
	if (r == 0)
		r = cli_open(cli, CLI_WRITES, err);
	return r ? r : run_turn(cli, turn, args_has(&cli->args, "stream"), err);
}

static int run_sessions_resume(struct cli *cli, struct err *err)
{
	return run_turn(cli, (struct agent_turn){.session = cli->args.operands[0]}, false, err);
}

/* --- editors --- */

static int open_project(void *arg, struct str cwd, struct workspace **ret_ws, struct err *err)
{
	return cli_open_dir(arg, cwd, ret_ws, err);
}

static int run_acp(struct cli *cli, struct err *err)
{
	struct acp_opts opts = {.agent = {.model = cli_setting(cli, "model"),
					  .base_url = args_get(&cli->args, "base-url"),
					  .dialect = cli_setting(cli, "dialect")},
				.open = open_project,
				.arg = cli};

	return acp_serve(&opts, STDIN_FILENO, STDOUT_FILENO, err);
}

/* --- approvals --- */

struct str agent_session_of(struct cli *cli)
{
	struct actor actor = workspace_actor(cli->ws);
	struct str session = cli_setting(cli, "session");

	return session.len ? session : actor.agent.len ? actor.agent : STR("default");
}

static int run_approvals_list(struct cli *cli, struct err *err)
{
	struct jv *list;
	struct str session = agent_session_of(cli);
	int r = agent_approvals(cli->ws, &cli->ctx, workspace_actor(cli->ws).agent, session, &list, err);

	if (r || cli_json(cli, list))
		return r;
	for (const struct jv_member *m = jv_first(list); m; m = m->next) {
		struct buf input;

		buf_init(&input, cli->ctx.arena, JSON_LEN_MAX);
		if (jv_get(m->value, "input"))
			jv_write(&input, jv_get(m->value, "input"));
		output_printf(&cli->out, "%.*s %.*s %.*s (%.*s, until %.*s)\n", STR_ARG(jv_get_str(m->value, "id")),
			      STR_ARG(jv_get_str(m->value, "name")), STR_ARG(buf_str(&input)),
			      STR_ARG(jv_get_str(m->value, "rule")), STR_ARG(jv_get_str(m->value, "expires_at")));
	}
	if (!jv_count(list))
		output_add(&cli->out, STR("nothing is waiting for approval\n"));
	return 0;
}

static int decide(struct cli *cli, bool approves, struct err *err)
{
	struct agent_decision decision = {.agent = workspace_actor(cli->ws).agent,
					  .session = agent_session_of(cli),
					  .id = cli->args.operands[0],
					  .by = workspace_actor(cli->ws).user,
					  .approves = approves};
	int r = agent_decide(cli->ws, &cli->ctx, &decision, err);

	if (r == 0)
		output_printf(&cli->out, "%s; 'stead run --resume%.*s' continues\n", approves ? "approved" : "denied",
			      STR_ARG(show_place(cli, decision.session)));
	if (r == -ERR_NOT_FOUND)
		cli->hint =
			"'stead approvals --session NAME' lists the calls of a session; 'stead sessions' shows their "
			"names";
	return r;
}

static int run_approvals_approve(struct cli *cli, struct err *err)
{
	return decide(cli, true, err);
}

static int run_approvals_deny(struct cli *cli, struct err *err)
{
	return decide(cli, false, err);
}

static const struct action approval_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_approvals_list},
	{"approve", "ID", .opens = CLI_WRITES, .run = run_approvals_approve},
	{"deny", "ID", .opens = CLI_WRITES, .run = run_approvals_deny},
	{0},
};

static const struct action session_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_sessions_list},
	{"show", "ID", .opens = CLI_READS, .run = run_sessions_show},
	{"resume", "ID", .opens = CLI_WRITES, .run = run_sessions_resume},
	{"append", "ID", .opens = CLI_WRITES, .run = run_sessions_append},
	{"archive", "ID", .opens = CLI_WRITES, .run = run_sessions_archive},
	{"merge", "ID FORK", .opens = CLI_WRITES, .run = run_sessions_merge},
	{0},
};

static const struct option run_options[] = {
	{"model", 'm', "MODEL", .env = "STEAD_MODEL",
	 .help = "PROVIDER:MODEL, such as anthropic:claude-sonnet-4-5 (default: model in agent.yaml)"},
	{"base-url", 0, "URL",
	 .help = "another server that speaks the provider's protocol, such as http://127.0.0.1:8080/v1"},
	{"stream",
	 .help = "print the answer as it arrives, and tool calls on standard error; with --json, one event per line"},
	{"resume", .help = "finish the last turn of the session if it was cut off, and print its answer"},
	{"key", 0, "KEY",
	 .help = "a name for this message: if the session's last turn has it, its answer is printed and nothing is "
		 "asked"},
	{0},
};

static const struct option chat_options[] = {
	{"model", 'm', "MODEL", .env = "STEAD_MODEL", .help = "PROVIDER:MODEL (default: model in agent.yaml)"},
	{"base-url", 0, "URL", .help = "another server that speaks the provider's protocol"},
	{0},
};

static const struct option replay_options[] = {
	{"from", 0, "STEP", .min = 1, .max = 1000000,
	 .help = "begin with this call to the model (default: 1, the first)"},
	{"model", 'm', "MODEL", .env = "STEAD_MODEL",
	 .help = "another model (default: the recorded answers, or after a change the model in agent.yaml)"},
	{"base-url", 0, "URL", .help = "another server that speaks the provider's protocol"},
	{"prompt", 0, "FILE", .help = "another system prompt, from a file on this machine"},
	{"set-result", 0, "STEP=FILE",
	 .help = "another result for that step's first tool call (STEP.N: its N-th); may be repeated"},
	{0},
};

const struct command agent_commands[] = {
	{"run", "give the agent a message to work on, with the workspace's tools", TOPIC_AGENT, .operands = "[TEXT]",
	 .run = run_run, .options = run_options,
	 .about = "The agent gets the workspace's prompt and tools, and the conversation of the session (--session;\n"
		  "default: the agent's name). If TEXT is '-', it is read from standard input. Providers are\n"
		  "anthropic, openai, openai-responses, openrouter, ollama, llamacpp, vllm, and replay:FILE, which\n"
		  "gives recorded answers. Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY in the\n"
		  "workspace's .env or in the environment.\n"
		  "\n"
		  "Every step is in the session's log before the next one begins. If a run is killed, the next run\n"
		  "in the same session finishes it: no answer is requested twice, and no change is made twice. A\n"
		  "script that repeats a run until it exits with 0 should give it a --key, since a run may be\n"
		  "killed after it has printed its answer.\n",
	 .examples = "stead run --model anthropic:claude-sonnet-4-5 \"Summarise notes.md\"\n  one turn\n"
		     "stead run --session report --stream \"Continue the report\"\n"
		     "  in its own session, printed as it arrives\n"
		     "stead run --session report --resume\n  finish a turn that was cut off\n"
		     "until stead run --session report --key monday \"Write the report\"; do sleep 1; done\n"
		     "  ask once, whatever ends the runs\n"
		     "stead run --model openai:qwen3 --base-url http://127.0.0.1:8080/v1 \"Hello\"\n"
		     "  with a local server\n"},
	{"chat", "talk to the agent in the terminal", TOPIC_AGENT, .run = run_chat, .options = chat_options,
	 .about = "Each line is a message; the answer and the tool calls are printed as they arrive. A line that\n"
		  "begins with '/' is a command: /new (archive the conversation and start over), /compact (replace\n"
		  "the older part with a summary), /undo (take back the last turn and its changes), /redo (bring it\n"
		  "back), /fork [NAME] (copy the workspace with this conversation), /status, /help, /exit. @path in\n"
		  "a message attaches a file. Ctrl-C ends the running turn, Ctrl-D the chat. Lines may also come\n"
		  "from a pipe.\n",
	 .examples = "stead chat -w research\n  continue this workspace's conversation\n"
		     "stead chat --session ideas --model ollama:qwen3\n"
		     "  another conversation, with a local model\n"},
	{"approvals", "list calls that wait for approval, and decide about them", TOPIC_AGENT,
	 .actions = approval_actions,
	 .about = "If policy or approval_gates in agent.yaml says so, a person must approve a call before it is\n"
		  "made. On a terminal, 'run' and 'chat' ask at once; otherwise the turn is suspended and its calls\n"
		  "are listed here. A decision is for one call with its exact arguments. --session names the\n"
		  "session.\n",
	 .examples = "stead approvals --session report\n  the calls that wait\n"
		     "stead approvals approve 6f1c22d09a3b-7.1 --session report\n  allow that call\n"},
	{"workflow", "run steps that people have written, each done by an agent", TOPIC_AGENT,
	 .actions = workflow_actions, .options = workflow_options,
	 .about = "A workflow is a file, workflows/NAME.yaml: steps in order or in parallel, with conditions on the\n"
		  "results of other steps, each done by an agent in its own session; or a team with a coordinator.\n"
		  "'run' prints the result. If INPUT is '-', it is read from standard input. 'resume' finishes a\n"
		  "run that was cut off, without repeating steps that are done. docs/workflows.md describes the\n"
		  "file.\n",
	 .examples = "stead workflow\n  the workflows of this workspace\n"
		     "stead workflow run report \"solar power in Chile\"\n  run one with this input\n"
		     "stead workflow runs\n  runs, the newest first\n"
		     "stead workflow resume 6f1c22d09a3b\n  continue a run that was cut off\n"},
	{"agents", "show the tasks of subagents", TOPIC_AGENT, .actions = child_actions,
	 .about = "Each task that an agent gives to a subagent has a record: the task, whether it has ended, and\n"
		  "the report. If a process is killed, its tasks continue with the next turn of their session\n"
		  "(--session).\n",
	 .examples = "stead agents --session report\n  the tasks of a session\n"
		     "stead agents output task_6f1c22d09a3b41aa\n  the report of one\n"
		     "stead agents cancel task_6f1c22d09a3b41aa\n  end it, even in another process\n"},
	{"servers", "show the MCP servers of tools.json, and log in to them", TOPIC_AGENT, .actions = server_actions,
	 .about = "'list' shows the servers that tools.json names. 'show' starts one and lists what it offers.\n"
		  "'login' is for servers that want OAuth: it prints an address to visit in a browser on this\n"
		  "machine, and waits until you have logged in. The login is kept for this user of this machine,\n"
		  "outside the workspace, and is renewed automatically; 'logout' forgets it.\n",
	 .examples = "stead servers -w research\n  the servers of a workspace\n"
		     "stead servers login tracker\n  let the agent use a server that wants a login\n"},
	{"replay", "run a conversation again from one of its steps, and compare", TOPIC_AGENT, .operands = "SESSION...",
	 .opens = CLI_WRITES, .run = run_replay, .options = replay_options,
	 .about = "Forks the workspace as it was at that step and continues there, with another model, prompt or\n"
		  "tool result. Prints what differs: answers, tool calls, files, tokens. If you change nothing, the\n"
		  "recorded answers give the same transcript and files; if you do, a model answers. Steps are\n"
		  "counted through the session. Several sessions are compared in a table whose last row has the\n"
		  "totals. The exit code is 1 if anything differs.\n",
	 .examples = "stead replay report\n  the same again; nothing should differ\n"
		     "stead replay report --from 3 --model openai:gpt-4.1\n"
		     "  what another model does from step 3 on\n"
		     "stead replay monday tuesday --model openai:gpt-4.1\n"
		     "  the same for several sessions, as a table\n"},
	{"acp", "serve an editor over the Agent Client Protocol", TOPIC_AGENT, .run = run_acp, .options = chat_options,
	 .about = "Speaks the Agent Client Protocol on standard input and output; editors start it. The agent works\n"
		  "in the directory that the editor has open, unless --workspace names a workspace, and you can\n"
		  "undo its changes. Its sessions outlive the editor. docs/agent.md has the settings for editors.\n",
	 .examples = "stead acp --model anthropic:claude-sonnet-4-5\n  the command for an editor's list of agents\n"},
	{"sessions", "list, show, resume, extend and archive conversations", TOPIC_HOME, .actions = session_actions,
	 .options = sessions_options,
	 .about = "A session is a log with one JSON object per line; it only grows. 'append' adds such lines from\n"
		  "standard input, so that your own runtime can record what it says and does. 'archive' writes the\n"
		  "messages since the last archive to memory/conversations/, as Markdown and JSON. 'resume'\n"
		  "finishes a turn that was cut off, and prints its answer. 'merge' adds the turns that a session\n"
		  "had in a fork to its end here. --agent says whose sessions.\n",
	 .examples = "stead sessions\n  all sessions, the newest first\n"
		     "echo '{\"type\":\"message\",\"role\":\"user\",\"content\":\"hello\"}' | stead sessions append "
		     "chat-1\n"
		     "  add a message\n"
		     "stead sessions show chat-1\n  the end of a session\n"
		     "stead sessions resume chat-1\n  finish its last turn\n"
		     "stead sessions merge chat-1 draft\n  bring what was said in the fork 'draft'\n"},
	{0},
};
