/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of another MCP server: a program that it starts (stdio), or an address (streamable HTTP, or the old HTTP
 * with SSE). A server is started or greeted at its first use, in the era of the protocol that it speaks. A program has
 * its own process group and an environment that holds only what was configured; it ends with the client, with all its
 * children, and also when this process is killed. One that died is started again by the next use.
 *
 * What a server says is data: its tools are offered, its text goes to the model, and nothing of it decides anything.
 */
#ifndef STEAD_MCP_CLIENT_H
#define STEAD_MCP_CLIENT_H

#include "base/ctx.h"
#include "text/jv.h"

struct mcp_client;

/* `server` in the form of workspace/tools_json.h; it and `name` must outlive the client. */
struct mcp_client *mcp_client_new(struct str name, const struct jv *server);
/* Ends the server's process, or the session with it. NULL is allowed. */
void mcp_client_destroy(struct mcp_client *client);
/* What the server's process writes to its standard error is seen on that of Stead. Before the first request. */
void mcp_client_show_errors(struct mcp_client *client);
struct str mcp_client_name(const struct mcp_client *client);
/* How long one request may take: timeout of tools.json. */
int64_t mcp_client_timeout_ns(const struct mcp_client *client);

/* Who is there for the server while a request runs. Everything is called on the thread of the request. */
struct mcp_host {
	/* The server asks: "sampling/createMessage" or "elicitation/create", each only if the configuration allows it.
	   NULL: nobody is there. */
	int (*ask)(void *arg, struct ctx *ctx, struct str method, const struct jv *params, struct jv **ret,
		   struct err *err);
	void (*progress)(void *arg, struct str sentence); /* may be NULL */
	void *arg;
};

struct mcp_tool {
	struct str name, description;
	const struct jv *schema;
	bool is_idempotent; /* the server says that a call may be repeated */
};
/* The tools of the server without those that the configuration leaves out; they live as long as the client. Starts the
   server, and asks again if it has said that they changed, or if the list is old. One call at a time, from any
   thread. */
int mcp_client_tools(struct mcp_client *client, struct ctx *ctx, const struct mcp_tool **ret_tools, size_t *ret_count,
		     struct err *err);
/* True: mcp_client_tools() would ask the server. */
bool mcp_client_is_stale(struct mcp_client *client, struct ctx *ctx);
/* What a tool gave, in the arena of the call. */
struct mcp_result {
	struct str text;        /* what is not text is named in it */
	struct str image, mime; /* the first picture, in base64, as the server sent it; empty: there is none */
	bool is_error;          /* the tool says that it failed */
};

/* Calls a tool. `host` may be NULL. */
int mcp_client_call(struct mcp_client *client, struct ctx *ctx, struct str tool, const struct jv *args,
		    const struct mcp_host *host, struct mcp_result *ret, struct err *err);

/* Whether the server has said that it offers "resources" or "prompts". */
bool mcp_client_offers(struct mcp_client *client, const char *what);
/* All of "resources", "resources/templates" or "prompts", as an array. */
int mcp_client_list(struct mcp_client *client, struct ctx *ctx, const char *what, struct jv **ret, struct err *err);
/* Text of a resource. */
int mcp_client_read(struct mcp_client *client, struct ctx *ctx, struct str uri, const struct mcp_host *host,
		    struct str *ret_text, struct err *err);
/* Text of a prompt. `args` may be NULL. */
int mcp_client_prompt(struct mcp_client *client, struct ctx *ctx, struct str name, const struct jv *args,
		      const struct mcp_host *host, struct str *ret_text, struct err *err);

/* The values of a form, of `given` (may be NULL) and the defaults of its schema. */
struct jv *mcp_form_values(struct arena *arena, const struct jv *schema, const struct jv *given);

/* How a person lets Stead use a server that wants OAuth. */
struct mcp_login {
	struct str redirect_uri;  /* where the person's browser comes back to */
	struct str client_id_url; /* of a document that describes this client; empty: none */
	/* Sends the person to `url` and waits for the URL they come back to. */
	int (*visit)(void *arg, struct ctx *ctx, struct str url, struct str *ret_back, struct err *err);
	void *arg;
};
/* Without it a server that wants a login is an error that names the command. `login` must outlive the client. */
void mcp_client_set_login(struct mcp_client *client, const struct mcp_login *login);
/* Greets the server, with a login if it wants one. */
int mcp_client_greet(struct mcp_client *client, struct ctx *ctx, struct err *err);
/* Forgets what logins have given; false: there was nothing. */
bool mcp_client_logout(struct mcp_client *client);

#endif
