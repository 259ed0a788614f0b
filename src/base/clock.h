/* SPDX-License-Identifier: Apache-2.0 */
/* Time and unique ids. Tests set STEAD_TEST_CLOCK_NS (real time, nanoseconds) to pin the wall clock. */
#ifndef STEAD_BASE_CLOCK_H
#define STEAD_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/str.h"

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

int64_t clock_monotonic_ns(void);
int64_t clock_real_ns(void);
static inline struct timespec clock_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}
static inline int64_t clock_of_timespec(struct timespec t)
{
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}
/* "2026-11-15T09:50:42Z", UTC, whole seconds. */
struct str clock_format_utc(struct arena *arena, int64_t real_ns);
/* The same of seconds since 1970: also for times after 2262, which nanoseconds cannot name. */
struct str clock_format_seconds(struct arena *arena, int64_t seconds);
/* "2026-11-15", with or without "T09:50[:42[.5]]" ('T' or a blank) and "Z" or "+01:00"; without a zone it is UTC.
   False: not a valid time. */
bool clock_parse(struct str text, int64_t *ret_real_ns);
/* 64 random bits from the kernel. */
uint64_t random_u64(void);

#endif
