/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much one token may ask for: requests in a minute, and requests at a time. Both are limits of this process; with
 * several replicas each has its own.
 */
#ifndef STEAD_SERVER_GATE_H
#define STEAD_SERVER_GATE_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct gate;
struct gate_place;

/* 0: no limit. */
struct gate_limits {
	uint64_t per_minute, at_once;
};
struct gate *gate_new(struct gate_limits limits);
void gate_destroy(struct gate *gate);
/* Counts a request of the token; *ret_place is for gate_leave(), NULL without limits. ERR_RATE_LIMITED: it is too much
   now; *ret_retry_s says when it may be tried again. */
int gate_enter(struct gate *gate, struct str token, struct gate_place **ret_place, unsigned *ret_retry_s,
	       struct err *err);
void gate_leave(struct gate *gate, struct gate_place *place);
/* Forgets tokens that have not been used for a while. */
void gate_sweep(struct gate *gate);

#endif
