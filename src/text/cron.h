/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cron expressions of five fields, "minute hour day-of-month month day-of-week", and the times that they name in a
 * zone. The grammar and the treatment of clock changes are those of Vixie cron and cronie.
 */
#ifndef STEAD_TEXT_CRON_H
#define STEAD_TEXT_CRON_H

#include "text/zone.h"

struct cron {
	uint64_t minutes;     /* bit 0-59 */
	uint32_t hours, days; /* bit 0-23, bit 1-31 */
	uint16_t months;      /* bit 1-12 */
	uint8_t weekdays;     /* bit 0-6, 0: Sunday */
	bool any_day;         /* one of the two fields of days starts with '*': a day must match both, not either */
	bool is_interval;     /* the minute or the hour starts with '*': runs by elapsed time, not at a time of day */
};

/* Fields are lists of "*", "n", "a-b", each of the first and the last with "/step"; months and weekdays also by name
   ("jan", "mon-fri"); 0 and 7 are Sunday. Also "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight",
   "@hourly". ERR_INVALID names the field. */
int cron_parse(struct str text, struct cron *ret, struct err *err);

/* What a change of the clocks does to a run. */
enum cron_effect {
	CRON_AS_WRITTEN,
	CRON_MOVED,      /* its time of day is skipped: it runs once, at the change */
	CRON_LEFT_OUT,   /* runs between the previous one and this one are skipped with the hour that they are in */
	CRON_FIRST_ONLY, /* its time of day occurs twice: it runs the first time only */
	CRON_AGAIN,      /* its time of day occurs twice, and this is the second */
};

struct cron_time {
	int64_t at;   /* seconds since 1970 */
	int64_t wall; /* the time of day that the expression names: another one than at `at` if the run is CRON_MOVED */
	enum cron_effect effect;
};

/* The first time after `after`. False: there is none in the next 40 years, as for 30 February. */
bool cron_next(const struct cron *cron, const struct zone *zone, int64_t after, struct cron_time *ret);

#endif
