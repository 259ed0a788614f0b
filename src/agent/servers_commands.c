/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stead servers`: what the MCP servers of tools.json offer, and logins. A login needs a browser, which comes back to a
 * port of this machine; only the person who asked for it knows the address that it comes back with.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_commands.h"
#include "agent/servers.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"

#define LOGIN_SECONDS 300
#define LOOK_MS       200
#define LINE_MAX_     (16 * KIB)

static const struct jv *servers_of(struct cli *cli)
{
	return workspace_config(cli->ws)->mcp_servers;
}

static int run_list(struct cli *cli, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *list = jv_array(arena);

	(void)err;
	for (const struct jv_member *m = jv_first(servers_of(cli)); m; m = m->next) {
		struct jv *v = jv_object(arena);

		jv_set_str(arena, v, "name", m->key);
		jv_set_str(arena, v, "transport", jv_get_str(m->value, "transport"));
		jv_set_str(arena, v, jv_get(m->value, "command") ? "command" : "url",
			   jv_get_str(m->value, jv_get(m->value, "command") ? "command" : "url"));
		jv_set_bool(arena, v, "disabled", jv_get_bool(m->value, "disabled", false));
		jv_push(arena, list, v);
	}
	if (cli_json(cli, list))
		return 0;
	for (const struct jv_member *m = jv_first(list); m; m = m->next)
		output_printf(&cli->out, "%.*s\t%.*s\t%.*s%s\n", STR_ARG(jv_get_str(m->value, "name")),
			      STR_ARG(jv_get_str(m->value, "transport")),
			      STR_ARG(jv_get(m->value, "url") ? jv_get_str(m->value, "url")
							      : jv_get_str(m->value, "command")),
			      jv_get_bool(m->value, "disabled", false) ? " (disabled)" : "");
	if (!jv_count(list))
		output_add(&cli->out, STR("tools.json names no MCP servers\n"));
	return 0;
}

static int open_client(struct cli *cli, struct mcp_client **ret, struct err *err)
{
	struct str name = cli->args.operands[0];
	const struct jv *server = jv_get_key(servers_of(cli), name);

	if (!server)
		return err_set(err, ERR_NOT_FOUND,
			       "tools.json names no MCP server \"%.*s\"; 'stead servers' lists them",
			       STR_ARG(utf8_first(name, 80)));
	*ret = mcp_client_new(name, server);
	return 0;
}

/* Adds the names of what the server lists; one that does not offer it lists nothing. */
static void add_list(struct cli *cli, struct mcp_client *client, struct jv *value, const char *what, const char *key)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *list, *names = jv_array(arena);
	struct err ignored;

	if (mcp_client_offers(client, what) && mcp_client_list(client, &cli->ctx, what, &list, &ignored) == 0)
		for (const struct jv_member *m = jv_first(list); m; m = m->next)
			jv_push(arena, names, jv_str(arena, arena_str(arena, jv_get_str(m->value, key))));
	jv_set(arena, value, what, names);
}

static int show(struct cli *cli, struct mcp_client *client, struct err *err)
{
	struct arena *arena = cli->ctx.arena;
	struct jv *value = jv_object(arena), *names = jv_array(arena);
	const struct mcp_tool *tools;
	size_t count;
	int r = mcp_client_tools(client, &cli->ctx, &tools, &count, err);

	if (r)
		return r;
	for (size_t i = 0; i < count; i++)
		jv_push(arena, names, jv_str(arena, tools[i].name));
	jv_set_str(arena, value, "name", mcp_client_name(client));
	jv_set(arena, value, "tools", names);
	add_list(cli, client, value, "resources", "uri");
	add_list(cli, client, value, "prompts", "name");
	if (cli_json(cli, value))
		return 0;
	for (const struct jv_member *m = jv_first(value); m; m = m->next)
		for (const struct jv_member *n = m->value->type == JV_ARRAY ? jv_first(m->value) : NULL; n; n = n->next)
			output_printf(&cli->out, "%.*s\t%.*s\n", STR_ARG(m->key), STR_ARG(jv_str_of(n->value)));
	return 0;
}

static int run_show(struct cli *cli, struct err *err)
{
	struct mcp_client *client = NULL;
	int r = open_client(cli, &client, err);

	if (r)
		return r;
	mcp_client_show_errors(client);
	r = show(cli, client, err);
	output_flush(&cli->out); /* it has names of the client */
	mcp_client_destroy(client);
	return r;
}

/* --- logins --- */

static int listen_here(int *ret_fd, uint16_t *ret_port, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
		int sys = errno;

		if (fd >= 0)
			close(fd);
		return err_sys(err, sys, "no port is free for the browser to return to");
	}
	*ret_fd = fd;
	*ret_port = ntohs(at.sin_port);
	return 0;
}

/* The target of a request for /callback; ptr NULL: it was for something else. */
static struct str read_target(struct arena *arena, int fd)
{
	char *text = arena_alloc_raw(arena, LINE_MAX_);
	struct str line, target;
	size_t len = 0;

	while (len < LINE_MAX_ && str_find(str_n(text, len), STR("\r\n\r\n"), 0) == SIZE_MAX) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n = poll(&p, 1, 2000) > 0 ? read(fd, text + len, LINE_MAX_ - len) : 0;

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	line = str_first(str_n(text, len), str_find_char(str_n(text, len), '\r'));
	if (!str_starts(line, STR("GET /callback")))
		return STR_NONE;
	target = str_from(line, 4);
	return str_first(target, str_find_char(target, ' '));
}

static void answer(int fd, bool found)
{
	static const char page[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: "
				   "close\r\n\r\nStead has received the login. You can close this page.\n";
	static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

	(void)!write(fd, found ? page : none, strlen(found ? page : none));
}

static int visit(void *arg, struct ctx *ctx, struct str url, struct str *ret_back, struct err *err)
{
	int *listener = arg;
	int r;

	fprintf(stderr, "open this address in a browser on this machine:\n%.*s\n", STR_ARG(url));
	while ((r = ctx_check(ctx, err)) == 0) {
		struct pollfd p = {.fd = *listener, .events = POLLIN};
		struct str target;

		if (poll(&p, 1, LOOK_MS) <= 0)
			continue;
		FD_SCOPE int fd = accept4(*listener, NULL, NULL, SOCK_CLOEXEC);
		target = fd >= 0 ? read_target(ctx->arena, fd) : STR_NONE;
		if (fd >= 0)
			answer(fd, target.ptr != NULL);
		if (target.ptr) {
			*ret_back = target;
			return 0;
		}
	}
	return err_prefix(err, "the login was not completed");
}

static int run_login(struct cli *cli, struct err *err)
{
	struct ctx ctx = cli->ctx;
	struct mcp_login login = {.visit = visit};
	struct mcp_client *client = NULL;
	uint16_t port = 0;
	int fd = -1, r = open_client(cli, &client, err);

	if (r)
		return r;
	ctx.deadline_ns = clock_monotonic_ns() + LOGIN_SECONDS * NS_PER_S;
	r = listen_here(&fd, &port, err);
	if (r == 0) {
		login.redirect_uri = arena_printf(ctx.arena, "http://127.0.0.1:%u/callback", port);
		login.arg = &fd;
		mcp_client_set_login(client, &login);
		r = mcp_client_greet(client, &ctx, err);
		close(fd);
	}
	if (r == 0)
		output_printf(&cli->out, "the MCP server \"%.*s\" is ready to use\n", STR_ARG(mcp_client_name(client)));
	mcp_client_destroy(client);
	return r;
}

static int run_logout(struct cli *cli, struct err *err)
{
	struct mcp_client *client = NULL;
	int r = open_client(cli, &client, err);

	if (r)
		return r;
	output_add(&cli->out, mcp_client_logout(client) ? STR("the login was removed\n") : STR("there was no login\n"));
	mcp_client_destroy(client);
	return 0;
}

const struct action server_actions[] = {
	{"list", NULL, .opens = CLI_READS, .run = run_list},
	{"show", "NAME", .opens = CLI_READS, .run = run_show},
	{"login", "NAME", .opens = CLI_READS, .run = run_login},
	{"logout", "NAME", .opens = CLI_READS, .run = run_logout},
	{0},
};
