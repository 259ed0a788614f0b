/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones: offsets, and clock times as instants. Instants are seconds since 1970 (UTC); a wall time is what a clock
 * on the wall shows, counted in the same way as if it were UTC. All of it is thread safe.
 */
#ifndef STEAD_TEXT_ZONE_H
#define STEAD_TEXT_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define ZONE_NEVER INT64_MAX

/* A date and a time of day in the proleptic Gregorian calendar. */
struct civil {
	int64_t year;
	int month, day; /* 1-12, 1-31 */
	int hour, minute, second;
	int weekday; /* 0: Sunday */
};
struct civil civil_of(int64_t wall);
int64_t civil_wall(const struct civil *civil); /* ignores the weekday */
int civil_month_days(int64_t year, int month);

struct zone;

/* `name`: "UTC", a fixed offset ("+02:00", "-0330"), or a name of the system's database ($TZDIR or
   /usr/share/zoneinfo), such as "Europe/Berlin". ERR_NOT_FOUND: there is no such zone. */
int zone_open(struct arena *arena, struct str name, const struct zone **ret, struct err *err);
/* From the bytes of a TZif file (RFC 9636). ERR_CORRUPT: the bytes are damaged. */
int zone_parse(struct arena *arena, struct str bytes, const struct zone **ret, struct err *err);

/* Seconds east of UTC. */
int32_t zone_offset(const struct zone *zone, int64_t at);
/* The first instant after `at` at which the offset changes; ZONE_NEVER: it stays. */
int64_t zone_change(const struct zone *zone, int64_t at);

/* The instants at which the clocks show a wall time. count 1: at[0]. count 2: the clocks were set back, and show it
   twice. count 0: the clocks skip it, and at[0] is the instant of that change. */
struct zone_instants {
	int count;
	int64_t at[2];
};
struct zone_instants zone_instants(const struct zone *zone, int64_t wall);

/* "2026-11-15T10:50:42+01:00". */
struct str zone_format(struct arena *arena, const struct zone *zone, int64_t at);
/* "2026-11-15", the date in a zone by name; a zone that cannot be opened counts as UTC. */
struct str zone_date(struct arena *arena, struct str name, int64_t real_ns);

#endif
