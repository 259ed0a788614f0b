/* SPDX-License-Identifier: Apache-2.0 */
/* Time and unique ids. Tests set STEAD_TEST_CLOCK_NS (real time, nanoseconds) to pin the wall clock. */
#ifndef STEAD_BASE_CLOCK_H
#define STEAD_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

int64_t clock_monotonic_ns(void);
int64_t clock_real_ns(void);
/* "2026-11-15T09:50:42Z", UTC, whole seconds. */
struct str clock_format_utc(struct arena *arena, int64_t real_ns);
/* "2026-11-15", with or without "T09:50[:42[.5]]" ('T' or a blank) and "Z" or "+01:00"; without a zone it is UTC.
   False: not a valid time. */
bool clock_parse(struct str text, int64_t *ret_real_ns);
/* 64 random bits from the kernel. */
uint64_t random_u64(void);

#endif
