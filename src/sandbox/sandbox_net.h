/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command may reach on the network, and secrets that it may use without ever having them. The command has a
 * network namespace of its own. Stead answers its name lookups and accepts its connections there, decides about each,
 * and dials the real server from outside. So programs need no proxy setting, and what is not allowed does not exist
 * for them.
 */
#ifndef STEAD_SANDBOX_SANDBOX_NET_H
#define STEAD_SANDBOX_SANDBOX_NET_H

#include "base/arena.h"
#include "base/err.h"

#define SANDBOX_HOSTS_MAX   64
#define SANDBOX_SECRETS_MAX 32
#define SANDBOX_PORTS_MAX   16 /* different ones of all hosts together */

/* A host, or all hosts below a name. */
struct sandbox_host {
	struct str name;       /* in small letters; of a pattern the part after "*."; empty with is_wild: every name */
	bool is_wild;          /* names below it, not the name itself */
	uint32_t literal;      /* an IPv4 address in place of a name; 0: no */
	uint16_t port;         /* 0: 80 and 443 */
	bool allows_private;   /* the name may lead to a loopback or private address (never to a link-local one) */
	struct str address;    /* go there, whatever the name leads to; empty: look the name up */
	uint16_t address_port; /* 0: the same port */
};
/* NAME[:PORT][=ADDRESS[:PORT]]: "pypi.org", "*.example.com", "127.0.0.1:8080", "api.test=10.0.0.7:8443". ERR_INVALID.
 */
int sandbox_host_parse(struct arena *arena, struct str text, struct sandbox_host *ret, struct err *err);
/* A comma between each two; added to the `count` in `list`, which has room for SANDBOX_HOSTS_MAX. */
int sandbox_hosts_parse(struct arena *arena, struct str text, struct sandbox_host *list, size_t *count,
			struct err *err);

struct sandbox_net;
/* True when a rule allows the host on some port. */
bool sandbox_net_reaches(const struct sandbox_net *rules, struct str host);

/* A secret that requests to one host get. The command has a placeholder in the variable `name`. */
struct sandbox_secret {
	struct str name, value;
	struct str host;   /* one name, no pattern */
	struct str header; /* "Authorization: Bearer {}": each request gets it. Empty: */
	struct str query;  /* this parameter of the query is set. Both empty: the placeholder is replaced where it is */
	bool plain_http;   /* also where the connection is not encrypted */
};

/* ERR_INVALID: it cannot be put into requests, or not be found in answers. */
int sandbox_secret_check(const struct sandbox_secret *secret, struct err *err);

struct sandbox_net {
	const struct sandbox_host *hosts; /* none: no network */
	size_t host_count;
	const struct sandbox_secret *secrets;
	size_t secret_count;
	const char *ca_file; /* PEM: authorities that are trusted in addition to the system's; NULL: none */
	uint64_t bytes_max;  /* of all connections together, both ways; 0: SANDBOX_NET_BYTES_DEFAULT */
	int64_t head_ms;     /* a request must have told what it wants after this time; 0: SANDBOX_NET_HEAD_MS */
};

/* What became of a connection, or of a name that was not allowed (then `port` is 0). */
enum sandbox_net_outcome { SANDBOX_NET_ENDED, SANDBOX_NET_REFUSED, SANDBOX_NET_FAILED };
const char *sandbox_net_outcome_name(enum sandbox_net_outcome outcome);
struct sandbox_connection {
	struct str host; /* the name, or the address where there was none */
	uint16_t port;
	enum sandbox_net_outcome outcome;
	struct str reason;       /* of what was refused or failed */
	uint64_t sent, received; /* bytes, as the command sees them */
	int64_t at_ns;           /* real time of its beginning */
	int64_t duration_ms;
};

#endif
