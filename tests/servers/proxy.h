/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy on loopback that passes bytes to a real server, counts, and does damage on request. It knows no
 * protocol: a request begins when the client sends after the server has answered, so `requests` are round trips,
 * whether it is HTTP, Redis or PostgreSQL that passes. It runs on a thread of the test program.
 *
 *	struct proxy *p = proxy_start("127.0.0.1:6379");
 *	proxy_arm(p, &(struct proxy_plan){.fault = PROXY_CUT_ANSWER, .at = 2});    (the second request from now)
 *	... use 127.0.0.1:proxy_port(p) ...
 *	proxy_stop(p);
 */
#ifndef STEAD_TESTS_SERVERS_PROXY_H
#define STEAD_TESTS_SERVERS_PROXY_H

#include <stdint.h>

enum proxy_fault {
	PROXY_PASS,         /* only count */
	PROXY_REFUSE,       /* at once: nobody listens, and open connections are cut */
	PROXY_CUT_REQUEST,  /* pass `bytes` of the request, then cut both sides */
	PROXY_CUT_ANSWER,   /* pass the request; when the server has answered, pass `bytes` of that and cut (0: it is
			       lost) */
	PROXY_STALL,        /* pass nothing and say nothing */
	PROXY_STALL_ANSWER, /* pass the request and `bytes` of the answer, then say nothing */
	PROXY_DELAY,        /* pass the answer `delay_ms` later */
	PROXY_ANSWER,       /* do not pass the request, answer `answer` */
};

struct proxy_plan {
	enum proxy_fault fault;
	uint64_t at;       /* the first request it concerns, 1 (or 0) being the next one that `match` allows */
	uint64_t count;    /* how many in a row; 0: one. PROXY_ALWAYS: all from then on */
	const char *match; /* only requests whose first bytes contain this; NULL: any */
	uint64_t bytes;
	unsigned delay_ms;
	const char *answer; /* the whole answer with its head; see PROXY_STATUS */
};
#define PROXY_ALWAYS UINT64_MAX
/* An HTTP answer for `answer`: PROXY_STATUS("503 Slow Down", "Retry-After: 1\r\n"). */
#define PROXY_STATUS(status, headers) "HTTP/1.1 " status "\r\n" headers "Content-Length: 0\r\n\r\n"

struct proxy;
/* Aborts when it cannot listen. `target`: "127.0.0.1:port"; an "http://" before it is passed over. */
struct proxy *proxy_start(const char *target);
void proxy_stop(struct proxy *proxy);
uint16_t proxy_port(const struct proxy *proxy);

/* In place of the plan before it. It concerns requests that begin after this returns. */
void proxy_arm(struct proxy *proxy, const struct proxy_plan *plan);
/* Passes again, listens again on the same port, and cuts connections that are stalled. */
void proxy_disarm(struct proxy *proxy);
/* Cuts every open connection now, as a server does that drops idle ones. */
void proxy_cut(struct proxy *proxy);
/* From now on another address: a server that came back elsewhere. */
void proxy_retarget(struct proxy *proxy, const char *target);

/* Since the start, or the last proxy_forget. */
uint64_t proxy_requests(struct proxy *proxy);
uint64_t proxy_connections(struct proxy *proxy);
uint64_t proxy_bytes_up(struct proxy *proxy);
uint64_t proxy_bytes_down(struct proxy *proxy);
uint64_t proxy_faults(struct proxy *proxy); /* requests that a plan hit: 0 means that the test showed nothing */
/* How many requests had `text` in their first bytes ("PUT /", "?list-type=2"). */
uint64_t proxy_requests_with(struct proxy *proxy, const char *text);
void proxy_forget(struct proxy *proxy);
/* What was asked, a comment line each: for a test whose count is wrong. */
void proxy_tell(struct proxy *proxy);

#endif
