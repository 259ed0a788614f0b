/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a command's network. net_hosts.c reads the rules, net_child.c opens sockets in the namespace, net_run.c
 * serves them while the command runs, net_conn.c is one connection, net_http.c the requests on it, net_secret.c puts
 * secrets into requests and takes them out of answers, net_io.c reads and writes.
 */
#ifndef STEAD_SANDBOX_NET_INTERNAL_H
#define STEAD_SANDBOX_NET_INTERNAL_H

#include <pthread.h>

#include "base/buf.h"
#include "base/ctx.h"
#include "net/dns.h"
#include "net/reach.h"
#include "net/tls.h"
#include "sandbox/sandbox_internal.h"

#define NET_FIRST_ADDRESS     UINT32_C(0x7F4D0001) /* 127.77.0.1: the first name */
#define NET_NAMES_MAX         4096
#define NET_ALIVE_MAX         64 /* connections at a time */
#define NET_PLACEHOLDER       "stead-secret-"
#define SANDBOX_NET_VARIABLES 16 /* of certificates */

/* A secret with all that is made of it before the command starts. */
struct net_secret {
	const struct sandbox_secret *given;
	struct str placeholder;
	struct str header_name, header_value; /* with the value in it; empty: none */
	struct str encoded;                   /* the value as a query has it */
};

struct net {
	const struct sandbox_net *given;
	struct arena *arena; /* of what is made before the threads; later only under the lock */
	struct net_secret *secrets;
	struct str masks[5 * SANDBOX_SECRETS_MAX]; /* what no answer may have in it */
	size_t mask_count;
	struct tls_authority *authority; /* NULL: nothing is terminated */
	struct tls_config *outside;
	struct tls_config *servers[SANDBOX_SECRETS_MAX]; /* by secret */
	const char **env;
	const char *bundle; /* certificates for the command; NULL: those of the machine */
	uint16_t ports[SANDBOX_PORTS_MAX];
	size_t port_count;
	uint32_t literals[SANDBOX_HOSTS_MAX];
	size_t literal_count;
	int ends[2]; /* descriptors come through it: ours, the child's */
	int dns, listeners[SANDBOX_PORTS_MAX];
	int stop_fd;        /* readable from the moment when everything must end */
	struct cancel stop; /* the same for calls that look at a flag */
	pthread_t thread;
	bool runs;
	int64_t head_ms;
	uint64_t bytes_max;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t idle;
	unsigned alive;
	uint64_t total, bytes;
	struct str *names; /* that got an address */
	size_t name_count, name_cap;
	struct sandbox_connection *log;
	size_t log_count, log_cap;
	uint64_t unlogged;
};

/* --- rules (net_hosts.c) --- */

/* The first rule that allows it; NULL: none. `literal` 0: by name. */
const struct sandbox_host *net_find_host(const struct sandbox_net *rules, struct str name, uint32_t literal,
					 uint16_t port);
bool net_allows_name(const struct sandbox_net *rules, struct str name);
bool net_host_has_port(const struct sandbox_host *host, uint16_t port);

/* --- the log (net_run.c) --- */

/* Adds to the log; everything is copied. */
void net_log(struct net *net, const struct sandbox_connection *what);
/* Counts bytes. False: there were too many. */
bool net_count(struct net *net, uint64_t bytes);

/* --- one connection (net_conn.c) --- */

struct side {
	int fd;
	struct tls *tls; /* NULL: in the clear */
	char *bytes;     /* what was read and not used: HEAD_BYTES_MAX of room */
	size_t at, len;
};
struct conn {
	struct net *net;
	struct arena *arena;
	struct ctx ctx;
	struct side in, out; /* the command, the server */
	const struct sandbox_host *host;
	struct str name; /* that the command asked for; of an address its text */
	uint16_t port;
	bool is_literal, has_secret, is_tls;
	struct sandbox_connection log;
};
/* Serves the connection on `fd`, which it closes. */
void net_conn_serve(struct net *net, int fd);
/* Ends it: the outcome and a sentence for people. The first one counts. Always false. */
__attribute__((format(printf, 3, 4))) bool conn_refuse(struct conn *c, enum sandbox_net_outcome outcome,
						       const char *fmt, ...);
/* Connects c->out to the server. */
bool conn_dial(struct conn *c);
/* Bytes both ways until both have ended. */
void conn_relay(struct conn *c);
/* Requests and answers until one side closes (net_http.c). */
void net_http_serve(struct conn *c);

/* --- bytes (net_io.c) --- */

/* Waits until `fd` is ready. False: the time is over, or everything ends. */
bool conn_wait(struct conn *c, int fd, short events, int64_t deadline_ns);
/* Reads more into side->bytes, behind what is there. 1: some, 0: the end, -1: it failed, and the log says why. */
int side_fill(struct conn *c, struct side *side, int64_t deadline_ns);
bool side_write(struct conn *c, struct side *side, struct str bytes);
bool side_handshake(struct conn *c, struct side *side);
static inline struct str side_have(const struct side *side)
{
	return str_n(side->bytes + side->at, side->len - side->at);
}
void side_use(struct side *side, size_t n);
int64_t deadline_in(int64_t ms);

/* --- secrets (net_secret.c) --- */

/* Placeholders, forms to mask, the authority and its certificates. */
int net_secrets_prepare(struct net *net, struct err *err);
bool net_has_secret(const struct net *net, struct str host);
struct http_head;
/* The target and the fields of a request to c->name as the server gets them. */
void net_secret_request(struct conn *c, const struct http_head *head, struct buf *ret);

/* Takes the secrets out of a stream; what is masked keeps its length. */
struct mask {
	const struct net *net;
	struct buf pending;
};
void mask_init(struct mask *mask, const struct net *net, struct arena *arena);
/* Adds bytes; *ret: what can be passed on, valid until mask_used(). */
void mask_add(struct mask *mask, struct str bytes, bool is_end, struct str *ret);
void mask_used(struct mask *mask, size_t n);
/* A whole text at once, in place. */
void mask_text(const struct net *net, char *text, size_t len);

/* --- of a run (net_run.c) --- */

int net_new(const struct sandbox_net *given, struct net **ret, struct err *err);
/* What the child needs; before it is made. */
void net_plan(struct net *net, struct plan *plan);
/* The child has opened its sockets: serve them. */
int net_begin(struct net *net, struct err *err);
/* Ends everything. */
void net_end(struct net *net);
void net_result(struct net *net, struct arena *arena, struct sandbox_result *ret);
void net_destroy(struct net *net);

#endif
