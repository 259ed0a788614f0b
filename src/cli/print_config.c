/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead mcp --print-config[=CLIENT]`: the command that the options describe, in the form of a client's settings. All
 * clients start the same command; they differ in where they want it and how it is spelled.
 */
#include <limits.h>
#include <unistd.h>

#include "cli/commands.h"
#include "command/cli.h"

/* What a client starts. */
struct launch {
	struct arena *arena;
	struct str program;
	struct jv *args;
};

/* A client starts the program from a directory of its own, so no path in the block may be relative. */
static struct str absolute(struct arena *arena, struct str path)
{
	char whole[PATH_MAX];

	if (realpath(arena_cstr(arena, path), whole))
		return arena_str(arena, str_of(whole));
	/* a directory that will be made later */
	if (path.len == 0 || path.ptr[0] == '/' || !getcwd(whole, sizeof(whole)))
		return path;
	return arena_printf(arena, "%s/%.*s", whole, STR_ARG(str_starts(path, STR("./")) ? str_from(path, 2) : path));
}

static struct str absolute_store(struct arena *arena, struct str url)
{
	if (str_starts(url, STR("config:")))
		return arena_printf(arena, "config:%.*s", STR_ARG(absolute(arena, str_from(url, 7))));
	if (!str_starts(url, STR("disk:")))
		return url;
	return arena_printf(arena, "disk:%.*s", STR_ARG(absolute(arena, str_from(url, 5))));
}

static void add_arg(struct launch *l, struct str text)
{
	jv_push(l->arena, l->args, jv_str(l->arena, text));
}

static int launch_init(struct launch *l, struct cli *cli, struct err *err)
{
	static const char *const passed[] = {"store",   "workspace", "user",  "agent", "session",
					     "dialect", "root",      "files", "tools"};
	static const char *const flags[] = {"read-only", "structured", "relaxed"};
	struct arena *arena = cli->ctx.arena;

	*l = (struct launch){arena, absolute(arena, STR("/proc/self/exe")), jv_array(arena)};
	if (str_is(l->program, "/proc/self/exe"))
		return err_set(err, ERR_UNAVAILABLE, "mcp --print-config: /proc does not say where this program is");
	add_arg(l, STR("mcp"));
	for (size_t i = 0; i < COUNT(passed); i++) {
		struct str value = cli_setting(cli, passed[i]);

		if (strcmp(passed[i], "store") == 0)
			value = absolute_store(arena, value);
		if (strcmp(passed[i], "files") == 0)
			value = value.len ? absolute(arena, value) : value;
		if (value.len) {
			add_arg(l, arena_printf(arena, "--%s", passed[i]));
			add_arg(l, value);
		}
	}
	for (size_t i = 0; i < COUNT(flags); i++)
		if (args_has(&cli->args, flags[i]))
			add_arg(l, arena_printf(arena, "--%s", flags[i]));
	return 0;
}

/* --- forms --- */

/* {"command": …, "args": […]}, after `type` if there is one. */
static struct jv *server_of(const struct launch *l, const char *type)
{
	struct jv *server = jv_object(l->arena);

	if (type)
		jv_set_str(l->arena, server, "type", str_of(type));
	jv_set_str(l->arena, server, "command", l->program);
	jv_set(l->arena, server, "args", l->args);
	return server;
}

static void print_json(struct cli *cli, const struct launch *l, const char *key, struct jv *server)
{
	struct jv *document = jv_object(l->arena), *servers = jv_object(l->arena);

	jv_set(l->arena, servers, "stead", server);
	jv_set(l->arena, document, key, servers);
	output_json(&cli->out, l->arena, document);
}

static void print_servers(struct cli *cli, const struct launch *l)
{
	print_json(cli, l, "mcpServers", server_of(l, NULL));
}

static void print_vscode(struct cli *cli, const struct launch *l)
{
	print_json(cli, l, "servers", server_of(l, "stdio"));
}

static void print_zed(struct cli *cli, const struct launch *l)
{
	struct jv *server = server_of(l, NULL);

	jv_set(l->arena, server, "env", jv_object(l->arena));
	print_json(cli, l, "context_servers", server);
}

static void print_opencode(struct cli *cli, const struct launch *l)
{
	struct jv *server = jv_object(l->arena), *command = jv_array(l->arena);

	jv_push(l->arena, command, jv_str(l->arena, l->program));
	for (const struct jv_member *m = jv_first(l->args); m; m = m->next)
		jv_push(l->arena, command, m->value);
	jv_set_str(l->arena, server, "type", STR("local"));
	jv_set(l->arena, server, "command", command);
	jv_set_bool(l->arena, server, "enabled", true);
	print_json(cli, l, "mcp", server);
}

/* TOML's basic strings are JSON's. */
static void print_codex(struct cli *cli, const struct launch *l)
{
	struct buf text;

	buf_init(&text, l->arena, 64 * 1024);
	buf_lit(&text, "[mcp_servers.stead]\ncommand = ");
	jv_write_string(&text, l->program);
	buf_lit(&text, "\nargs = [");
	for (const struct jv_member *m = jv_first(l->args); m; m = m->next) {
		if (m != jv_first(l->args))
			buf_lit(&text, ", ");
		jv_write_string(&text, jv_str_of(m->value));
	}
	buf_lit(&text, "]\n");
	output_add(&cli->out, buf_str(&text));
}

/* One word of a shell's command line. */
static void add_word(struct buf *text, struct str word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+";
	size_t n = 0;

	while (n < word.len && memchr(plain, word.ptr[n], sizeof(plain) - 1))
		n++;
	if (n == word.len && n) {
		buf_add(text, word);
		return;
	}
	buf_char(text, '\'');
	for (size_t i = 0; i < word.len; i++) {
		if (word.ptr[i] == '\'')
			buf_lit(text, "'\\''");
		else
			buf_char(text, word.ptr[i]);
	}
	buf_char(text, '\'');
}

static void print_claude_code(struct cli *cli, const struct launch *l)
{
	struct buf text;

	buf_init(&text, l->arena, 64 * 1024);
	buf_lit(&text, "claude mcp add stead -- ");
	add_word(&text, l->program);
	for (const struct jv_member *m = jv_first(l->args); m; m = m->next) {
		buf_char(&text, ' ');
		add_word(&text, jv_str_of(m->value));
	}
	buf_char(&text, '\n');
	output_add(&cli->out, buf_str(&text));
}

static const struct form {
	const char *client;
	void (*print)(struct cli *cli, const struct launch *launch);
	const char *where; /* for people */
} forms[] = {
	{"", print_servers, "goes into the client's settings"},
	{"claude-code", print_claude_code, "is a command: run it in a shell"},
	{"claude-desktop", print_servers, "goes into claude_desktop_config.json (Settings, Developer, Edit Config)"},
	{"cursor", print_servers, "goes into ~/.cursor/mcp.json, or .cursor/mcp.json of a project"},
	{"vscode", print_vscode, "goes into .vscode/mcp.json"},
	{"codex", print_codex, "goes into ~/.codex/config.toml"},
	{"opencode", print_opencode, "goes into opencode.json, or ~/.config/opencode/opencode.json"},
	{"zed", print_zed, "goes into Zed's settings.json"},
	{"gemini", print_servers, "goes into ~/.gemini/settings.json"},
};

int print_config(struct cli *cli, struct err *err)
{
	struct str client = args_get(&cli->args, "print-config");
	struct launch launch;
	int r = launch_init(&launch, cli, err);

	for (size_t i = 0; r == 0 && i < COUNT(forms); i++) {
		if (!str_is(client.ptr ? client : STR(""), forms[i].client))
			continue;
		forms[i].print(cli, &launch);
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "This %s.\n", forms[i].where);
	}
	return r;
}
