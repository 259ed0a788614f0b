/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next time is not found by counting minutes. A zone is a sequence of periods of one offset each; within a period
 * wall time and UTC run alike, so the next match is found by fields: month, day, hour, minute. The periods are walked
 * in order of UTC.
 *
 * At a change of the clocks people expect two things. A job that runs by elapsed time ("every 30 minutes") keeps its
 * rhythm: what the clocks skip is not made up, and an hour that occurs twice has its runs twice. A job at a time of day
 * runs once a day: at the change itself when its time is skipped, and the first time when its time occurs twice. A
 * change of more than three hours is a correction of the calendar (Apia skipped a day in 2011), and is taken as it is.
 */
#include "text/cron.h"

#include <stdio.h>

#include "base/limits.h"

#define MINUTE      INT64_C(60)
#define DAY         INT64_C(86400)
#define YEARS_MAX   40
#define CHANGE_MOST (3 * INT64_C(3600))

/* --- the expression --- */

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
				     "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct field {
	const char *name;
	int least, most;
	const char *const *words; /* the first means `least`; NULL: only numbers */
} fields[] = {
	{"minute", 0, 59, NULL},  {"hour", 0, 23, NULL},           {"day of month", 1, 31, NULL},
	{"month", 1, 12, months}, {"day of week", 0, 7, weekdays},
};
#define FIELDS COUNT(fields)

static const struct {
	const char *name, *text;
} nicknames[] = {
	{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
	{"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
};

static int wrong(const struct field *field, struct str part, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "the %s \"%.*s\" %s", field->name, STR_ARG(utf8_first(part, 40)), why);
}

static bool take_value(const struct field *field, struct str text, int *ret)
{
	int64_t n;

	for (int i = 0; field->words && field->words[i]; i++)
		if (str_eq_nocase(text, str_of(field->words[i]))) {
			*ret = field->least + i;
			return true;
		}
	if (!text.len || text.len > 2 || text.ptr[0] == '-' || !str_to_i64(text, &n) || n < field->least ||
	    n > field->most)
		return false;
	*ret = (int)n;
	return true;
}

static int range_error(const struct field *field, struct str item, struct err *err)
{
	char why[160];

	snprintf(why, sizeof why, "is not a value from %d to %d%s; write *, 5, 1-5, 1,3,5 or */10", field->least,
		 field->most, field->words ? " or a name of three letters" : "");
	return wrong(field, item, why, err);
}

/* "*", "5", "1-5", with "/2" after the first and the last. */
static int parse_item(const struct field *field, struct str item, uint64_t *bits, struct err *err)
{
	struct str range = item, step = STR_NONE, low;
	size_t slash = str_find_char(item, '/');
	int from = field->least, to = field->most;
	int64_t by = 1;

	if (slash < item.len) {
		range = str_first(item, slash);
		step = str_from(item, slash + 1);
		if (!step.len || step.len > 3 || !str_to_i64(step, &by) || by < 1)
			return wrong(field, item, "has a step that is not a number of at least 1", err);
		if (by > field->most - field->least + 1)
			return wrong(field, item, "has a step that is larger than the field, so it would never repeat",
				     err);
	}
	if (!str_is(range, "*")) {
		struct str high = range;
		bool is_range = str_find_char(range, '-') < range.len;

		if (!str_cut(&high, '-', &low) || !take_value(field, low, &from))
			return range_error(field, item, err);
		to = from;
		if (is_range && !take_value(field, high, &to))
			return range_error(field, item, err);
		if (to < from)
			return wrong(field, item, "ends before it begins; write two ranges, such as 22-23,0-2", err);
		if (step.ptr && !is_range)
			return wrong(field, item, "has a step without a range; write 5-59/10 or */10", err);
	}
	for (int64_t i = from; i <= to; i += by)
		*bits |= UINT64_C(1) << i;
	return 0;
}

static int parse_field(const struct field *field, struct str text, uint64_t *ret_bits, struct err *err)
{
	struct str rest = text, item;
	int r = text.ptr[text.len - 1] == ',' ? range_error(field, text, err) : 0;

	*ret_bits = 0;
	while (r == 0 && str_cut(&rest, ',', &item))
		r = parse_item(field, item, ret_bits, err);
	return r;
}

static bool take_word(struct str *rest, struct str *ret)
{
	size_t n = 0;

	*rest = str_trim(*rest);
	while (n < rest->len && rest->ptr[n] != ' ' && rest->ptr[n] != '\t')
		n++;
	*ret = str_first(*rest, n);
	*rest = str_from(*rest, n);
	return n > 0;
}

static int nickname(struct str text, struct str *ret, struct err *err)
{
	for (size_t i = 0; i < COUNT(nicknames); i++)
		if (str_eq_nocase(text, str_of(nicknames[i].name))) {
			*ret = str_of(nicknames[i].text);
			return 0;
		}
	return err_set(err, ERR_INVALID,
		       "\"%.*s\" is not a schedule; the names are @hourly, @daily, @weekly, @monthly and @yearly",
		       STR_ARG(utf8_first(text, 40)));
}

static bool is_any(struct str field)
{
	return field.ptr[0] == '*';
}

int cron_parse(struct str text, struct cron *ret, struct err *err)
{
	struct str rest = str_trim(text), words[FIELDS], more;
	uint64_t bits[FIELDS];
	size_t n = 0;
	int r = 0;

	if (text.len > CRON_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the schedule is longer than %zu bytes", CRON_LEN_MAX);
	if (rest.len && rest.ptr[0] == '@')
		r = nickname(rest, &rest, err);
	while (r == 0 && n < FIELDS && take_word(&rest, &words[n]))
		n++;
	if (r)
		return r;
	if (n < FIELDS || take_word(&rest, &more))
		return err_set(err, ERR_INVALID,
			       "the schedule \"%.*s\" does not have five fields; write minute, hour, day of month, "
			       "month and day of week, such as \"30 9 * * 1-5\"",
			       STR_ARG(utf8_first(text, 60)));
	for (n = 0; r == 0 && n < FIELDS; n++)
		r = parse_field(&fields[n], words[n], &bits[n], err);
	if (r)
		return r;
	*ret = (struct cron){
		.minutes = bits[0],
		.hours = (uint32_t)bits[1],
		.days = (uint32_t)bits[2],
		.months = (uint16_t)bits[3],
		.weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f),
		.any_day = is_any(words[2]) || is_any(words[4]),
		.is_interval = is_any(words[0]) || is_any(words[1]),
	};
	return 0;
}

/* --- wall times --- */

static bool day_matches(const struct cron *cron, const struct civil *c)
{
	bool day = cron->days >> c->day & 1, weekday = cron->weekdays >> c->weekday & 1;

	return (cron->months >> c->month & 1) && (cron->any_day ? day && weekday : day || weekday);
}

/* The first bit at or after `from`; -1: none. */
static int next_bit(uint64_t bits, int from)
{
	uint64_t rest = from < 64 ? bits >> from << from : 0;

	return rest ? __builtin_ctzll(rest) : -1;
}

/* The first time of day that matches, at or after hour:minute; false: none on this day. */
static bool next_in_day(const struct cron *cron, int *hour, int *minute)
{
	int h = next_bit(cron->hours, *hour), m = next_bit(cron->minutes, h == *hour ? *minute : 0);

	if (h >= 0 && m < 0) { /* no minute is left in this hour */
		h = next_bit(cron->hours, h + 1);
		m = next_bit(cron->minutes, 0);
	}
	*hour = h;
	*minute = m;
	return h >= 0;
}

/* The first match in [from, until); `from` is a whole minute. ZONE_NEVER: none. */
static int64_t next_wall(const struct cron *cron, int64_t from, int64_t until)
{
	struct civil c = civil_of(from);

	while (from < until) {
		if (day_matches(cron, &c) && next_in_day(cron, &c.hour, &c.minute)) {
			int64_t wall = civil_wall(&c);

			return wall < until ? wall : ZONE_NEVER;
		}
		c.hour = c.minute = 0;
		if (!(cron->months >> c.month & 1) || c.day == civil_month_days(c.year, c.month)) {
			c.day = 1;
			c.year += c.month == 12;
			c.month = c.month % 12 + 1;
		} else {
			c.day++;
		}
		from = civil_wall(&c);
		c.weekday = civil_of(from).weekday;
	}
	return ZONE_NEVER;
}

static int64_t whole_minute(int64_t wall)
{
	int64_t rest = wall % MINUTE;

	return rest ? wall + (rest < 0 ? -rest : MINUTE - rest) : wall;
}

/* --- periods of one offset --- */

struct period {
	int64_t from, until; /* UTC */
	int64_t offset;
	int64_t before; /* the offset of the period before it; the same as `offset` when not known */
};

/* The clocks skipped this much at the beginning of the period, or were set back by it (negative); a correction of the
   calendar counts as nothing. */
static int64_t skipped(const struct period *p)
{
	int64_t by = p->offset - p->before;

	return by > CHANGE_MOST || by < -CHANGE_MOST ? 0 : by;
}

/* The first run of the period at or after `from`, which is not before the period. */
static bool next_in_period(const struct cron *cron, const struct period *p, int64_t from, struct cron_time *ret)
{
	int64_t start = p->from + p->offset, by = skipped(p), end = p->until;
	int64_t first = by > 0 && from == p->from ? next_wall(cron, whole_minute(start - by), start) : ZONE_NEVER;
	int64_t seen = by < 0 ? start - by : start; /* wall times before this one occurred in the period before */
	int64_t wall = whole_minute(from + p->offset);

	if (first != ZONE_NEVER && !cron->is_interval) {
		*ret = (struct cron_time){.at = p->from, .wall = first, .effect = CRON_MOVED};
		return true;
	}
	if (!cron->is_interval && wall < seen)
		wall = whole_minute(seen);
	wall = next_wall(cron, wall, end == ZONE_NEVER ? wall + YEARS_MAX * 366 * DAY : end + p->offset);
	if (wall == ZONE_NEVER)
		return false;
	*ret = (struct cron_time){.at = wall - p->offset, .wall = wall};
	if (cron->is_interval && wall < seen)
		ret->effect = CRON_AGAIN;
	else if (first != ZONE_NEVER && cron->is_interval)
		ret->effect = CRON_LEFT_OUT;
	return true;
}

bool cron_next(const struct cron *cron, const struct zone *zone, int64_t after, struct cron_time *ret)
{
	int64_t from = after + 1, last = after + YEARS_MAX * 366 * DAY;
	/* The change that `after` follows closely decides about wall times that occur again. */
	int64_t look = from - DAY, change = zone_change(zone, look);
	struct period p = {.from = look, .until = change, .offset = zone_offset(zone, look)};

	p.before = p.offset;
	while (p.from < last) {
		struct cron_time found;

		if (p.until > from && next_in_period(cron, &p, from > p.from ? from : p.from, &found)) {
			struct zone_instants both = zone_instants(zone, found.wall);

			if (!cron->is_interval && both.count == 2 && both.at[0] == found.at &&
			    both.at[1] - both.at[0] <= CHANGE_MOST)
				found.effect = CRON_FIRST_ONLY;
			*ret = found;
			return found.at < last;
		}
		if (p.until == ZONE_NEVER)
			return false;
		p = (struct period){.from = p.until,
				    .before = p.offset,
				    .offset = zone_offset(zone, p.until),
				    .until = zone_change(zone, p.until)};
	}
	return false;
}
