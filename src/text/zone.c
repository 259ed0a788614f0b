/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library knows one zone per process, and setting it is not safe while other threads ask for the time. So the
 * files of the zone database are read here: the block of 64-bit times, and the rule in the last line, which holds for
 * all years after the last time of the block (current files list no change after 2037, and many list none after 2007).
 *
 * A zone is a list of periods of one offset each. Everything else follows from two questions, the offset at an instant
 * and the next change after it; whether a change is called summer time does not matter. Offsets differ by at most
 * 26 hours, so the periods around a wall time are those within that distance of it.
 */
#include "text/zone.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/limits.h"

#define ZONES      "/usr/share/zoneinfo"
#define HEAD       ((size_t)44)
#define DAY        INT64_C(86400)
#define AROUND     (26 * INT64_C(3600))
#define OFFSET_MAX (26 * 3600)

/* When clocks change within a year, as the last line of a file has it. */
struct rule {
	enum { RULE_WEEKDAY, RULE_JULIAN, RULE_DAY } kind; /* "M3.2.0", "J60" (never 29 February), "59" */
	int month, week, day;
	int32_t time; /* seconds after midnight, by the clock before the change; may be negative or beyond a day */
};

struct zone {
	size_t count; /* of changes; since[i] is followed by offset[i] */
	const int64_t *since;
	const int32_t *offset;
	int32_t first; /* before all changes */
	/* After the last change, when has_rules is set: */
	bool has_rules;
	int32_t standard, summer;
	struct rule to_summer, to_standard;
};

/* --- calendar --- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Days since 1970 of the first day of a month: years are counted from March, so that a leap day ends one. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = floor_div(y, 400), in_era = y - era * 400;
	int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

struct civil civil_of(int64_t wall)
{
	int64_t days = floor_div(wall, DAY), rest = wall - days * DAY, z = days + 719468, era = floor_div(z, 146097);
	int64_t in_era = z - era * 146097;
	int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	int64_t in_year = in_era - (365 * year + year / 4 - year / 100), month = (5 * in_year + 2) / 153;
	struct civil c = {
		.day = (int)(in_year - (153 * month + 2) / 5 + 1),
		.month = (int)(month < 10 ? month + 3 : month - 9),
		.hour = (int)(rest / 3600),
		.minute = (int)(rest / 60 % 60),
		.second = (int)(rest % 60),
		.weekday = (int)((days % 7 + 11) % 7),
	};

	c.year = year + era * 400 + (c.month <= 2);
	return c;
}

int64_t civil_wall(const struct civil *c)
{
	return days_of(c->year, c->month, c->day) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
}

static bool is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int civil_month_days(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year));
}

/* --- the rule of the last line: "CET-1CEST,M3.5.0,M10.5.0/3" --- */

static bool take_char(struct str *rest, char c)
{
	if (!rest->len || rest->ptr[0] != c)
		return false;
	*rest = str_from(*rest, 1);
	return true;
}

static bool take_number(struct str *rest, int most, int *ret)
{
	int n = 0;
	size_t i = 0;

	while (i < rest->len && rest->ptr[i] >= '0' && rest->ptr[i] <= '9' && n <= most)
		n = n * 10 + (rest->ptr[i++] - '0');
	*rest = str_from(*rest, i);
	*ret = n;
	return i && n <= most;
}

/* The name of a zone is of no use here. */
static bool skip_name(struct str *rest)
{
	size_t i = 0;

	if (take_char(rest, '<')) {
		i = str_find_char(*rest, '>');
		*rest = str_from(*rest, i + 1);
		return i > 0;
	}
	while (i < rest->len && ((rest->ptr[i] | 32) >= 'a' && (rest->ptr[i] | 32) <= 'z'))
		i++;
	*rest = str_from(*rest, i);
	return i > 0;
}

/* "-1", "5:30", "167:00:00" */
static bool take_time(struct str *rest, int32_t *ret)
{
	bool minus = take_char(rest, '-');
	int hours, minutes = 0, seconds = 0;

	if (!minus)
		take_char(rest, '+');
	if (!take_number(rest, 167, &hours))
		return false;
	if (take_char(rest, ':') && !take_number(rest, 59, &minutes))
		return false;
	if (take_char(rest, ':') && !take_number(rest, 59, &seconds))
		return false;
	*ret = (hours * 3600 + minutes * 60 + seconds) * (minus ? -1 : 1);
	return true;
}

static bool take_rule(struct str *rest, struct rule *ret)
{
	*ret = (struct rule){.time = 2 * 3600};
	if (!take_char(rest, ','))
		return false;
	if (take_char(rest, 'M')) {
		if (!take_number(rest, 12, &ret->month) || !take_char(rest, '.') || !take_number(rest, 5, &ret->week) ||
		    !take_char(rest, '.') || !take_number(rest, 6, &ret->day) || !ret->month || !ret->week)
			return false;
	} else {
		ret->kind = take_char(rest, 'J') ? RULE_JULIAN : RULE_DAY;
		if (!take_number(rest, 365, &ret->day) || (ret->kind == RULE_JULIAN && !ret->day))
			return false;
	}
	return !take_char(rest, '/') || take_time(rest, &ret->time);
}

/* Without a rule (an empty line) the last offset stays. */
static bool parse_rules(struct str line, struct zone *zone)
{
	int32_t west;

	if (!line.len)
		return true;
	if (!skip_name(&line) || !take_time(&line, &west) || west > OFFSET_MAX || west < -OFFSET_MAX)
		return false;
	zone->has_rules = true;
	zone->standard = zone->summer = -west;
	if (!line.len)
		return true;
	if (!skip_name(&line))
		return false;
	zone->summer += 3600;
	if (line.len && line.ptr[0] != ',') {
		if (!take_time(&line, &west) || west > OFFSET_MAX || west < -OFFSET_MAX)
			return false;
		zone->summer = -west;
	}
	return take_rule(&line, &zone->to_summer) && take_rule(&line, &zone->to_standard) && !line.len;
}

/* The instant of a rule in a year, with the offset before it. */
static int64_t rule_at(const struct rule *rule, int64_t year, int32_t before)
{
	int64_t days = days_of(year, 1, 1);

	if (rule->kind == RULE_WEEKDAY) {
		int first_weekday, day;

		days = days_of(year, rule->month, 1);
		first_weekday = civil_of(days * DAY).weekday;
		day = (rule->day - first_weekday + 7) % 7 + (rule->week - 1) * 7;
		while (day >= civil_month_days(year, rule->month))
			day -= 7;
		days += day;
	} else {
		days += rule->day;
		if (rule->kind == RULE_JULIAN)
			days -= 1 - (is_leap(year) && rule->day >= 60);
	}
	return days * DAY + rule->time - before;
}

/* The latest change by the rules at or before `at`, and the first one after it. */
struct between {
	int32_t offset;
	int64_t until;
};

static struct between by_rules(const struct zone *zone, int64_t at)
{
	int64_t year = civil_of(at + zone->standard).year, last = INT64_MIN;
	struct between b = {zone->standard, ZONE_NEVER};

	if (zone->summer == zone->standard)
		return b;
	for (int64_t y = year - 1; y <= year + 1; y++) {
		int64_t change[] = {rule_at(&zone->to_summer, y, zone->standard),
				    rule_at(&zone->to_standard, y, zone->summer)};

		for (int i = 0; i < 2; i++) {
			if (change[i] <= at && change[i] >= last) {
				last = change[i];
				b.offset = i == 0 ? zone->summer : zone->standard;
			} else if (change[i] > at && change[i] < b.until) {
				b.until = change[i];
			}
		}
	}
	return b;
}

/* --- the file --- */

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be64(const unsigned char *p)
{
	return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

struct counts {
	size_t isut, isstd, leap, times, types, chars;
};

static bool head_at(struct str file, size_t at, struct counts *ret)
{
	const unsigned char *p;

	if (at > file.len || file.len - at < HEAD || memcmp(file.ptr + at, "TZif", 4) != 0)
		return false;
	p = (const unsigned char *)file.ptr + at + 20;
	*ret = (struct counts){be32(p), be32(p + 4), be32(p + 8), be32(p + 12), be32(p + 16), be32(p + 20)};
	return ret->isut <= file.len && ret->isstd <= file.len && ret->leap <= file.len && ret->times <= file.len &&
	       ret->types && ret->types <= 256 && ret->chars <= file.len;
}

static size_t block_size(const struct counts *c, size_t time)
{
	return c->times * (time + 1) + c->types * 6 + c->chars + c->leap * (time + 4) + c->isstd + c->isut;
}

static bool take_offset(const unsigned char *types, size_t type, size_t count, int32_t *ret)
{
	if (type >= count)
		return false;
	*ret = (int32_t)be32(types + 6 * type);
	return *ret >= -OFFSET_MAX && *ret <= OFFSET_MAX;
}

static bool take_changes(struct arena *arena, const unsigned char *p, const struct counts *c, struct zone *zone)
{
	const unsigned char *types = p + 9 * c->times;
	int64_t *since = arena_alloc_raw(arena, (c->times + 1) * sizeof *since);
	int32_t *offset = arena_alloc_raw(arena, (c->times + 1) * sizeof *offset);

	if (!take_offset(types, 0, c->types, &zone->first))
		return false;
	for (size_t i = 0; i < c->times; i++) {
		since[i] = be64(p + 8 * i);
		if ((i && since[i] <= since[i - 1]) || !take_offset(types, p[8 * c->times + i], c->types, &offset[i]))
			return false;
	}
	zone->count = c->times;
	zone->since = since;
	zone->offset = offset;
	return true;
}

static bool parse(struct arena *arena, struct str file, struct zone *zone)
{
	struct counts c;
	size_t at = HEAD;
	struct str line;

	if (!head_at(file, 0, &c) || file.ptr[4] < '2')
		return false;
	at += block_size(&c, 4);
	if (!head_at(file, at, &c) || file.len - at - HEAD < block_size(&c, 8) ||
	    !take_changes(arena, (const unsigned char *)file.ptr + at + HEAD, &c, zone))
		return false;
	line = str_from(file, at + HEAD + block_size(&c, 8));
	return take_char(&line, '\n') && str_find_char(line, '\n') < line.len &&
	       parse_rules(str_first(line, str_find_char(line, '\n')), zone);
}

int zone_parse(struct arena *arena, struct str bytes, const struct zone **ret, struct err *err)
{
	struct zone *zone = arena_alloc(arena, sizeof *zone);

	if (!parse(arena, bytes, zone))
		return err_set(err, ERR_CORRUPT,
			       "the file of the time zone is damaged; install Debian's package tzdata");
	*ret = zone;
	return 0;
}

/* --- names --- */

/* "+02:00", "-0330", "+5" */
static bool parse_fixed(struct str name, int32_t *ret)
{
	bool minus = name.len && name.ptr[0] == '-';
	int hours, minutes = 0;

	if (!minus && !(name.len && name.ptr[0] == '+'))
		return false;
	name = str_from(name, 1);
	if (name.len == 4 && str_find_char(name, ':') == 4) {
		struct str h = str_first(name, 2), m = str_from(name, 2);

		if (!take_number(&h, 23, &hours) || h.len || !take_number(&m, 59, &minutes) || m.len)
			return false;
	} else if (!take_number(&name, 23, &hours) || (take_char(&name, ':') && !take_number(&name, 59, &minutes)) ||
		   name.len) {
		return false;
	}
	*ret = (hours * 3600 + minutes * 60) * (minus ? -1 : 1);
	return true;
}

/* A name of the database: parts of letters, digits, '_', '+' and '-', so that it never leaves the directory. What
   "right/" has counts leap seconds, which our instants do not; "posixrules" is a file of the database, and not a place.
 */
static bool is_name(struct str name)
{
	struct str rest = name, part;

	if (!name.len || name.len > ZONE_NAME_MAX || name.ptr[name.len - 1] == '/' || str_starts(name, STR("right/")) ||
	    str_is(name, "posixrules"))
		return false;
	while (str_cut(&rest, '/', &part)) {
		if (!part.len)
			return false;
		for (size_t i = 0; i < part.len; i++) {
			char c = part.ptr[i];

			if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && !strchr("_+-", c))
				return false;
		}
	}
	return true;
}

static int unknown(struct str name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		       "there is no time zone \"%.*s\"; use a name such as \"Europe/Berlin\", an offset such as "
		       "\"+02:00\", or \"UTC\"",
		       STR_ARG(utf8_first(name, ZONE_NAME_MAX)));
}

int zone_open(struct arena *arena, struct str name, const struct zone **ret, struct err *err)
{
	struct zone *fixed = arena_alloc(arena, sizeof *fixed);
	const char *dir = env_process("TZDIR");
	char *bytes;
	ssize_t n;

	if (str_is(name, "UTC") || str_is(name, "Z") || parse_fixed(name, &fixed->first)) {
		*ret = fixed;
		return 0;
	}
	if (!is_name(name))
		return unknown(name, err);
	FD_SCOPE int fd = open(arena_printf(arena, "%s/%.*s", dir ? dir : ZONES, STR_ARG(name)).ptr,
			       O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return unknown(name, err);
	bytes = arena_alloc_raw(arena, ZONE_SIZE_MAX);
	n = read(fd, bytes, ZONE_SIZE_MAX);
	if (n < (ssize_t)HEAD || memcmp(bytes, "TZif", 4) != 0) /* a directory, or a table that is not a zone */
		return unknown(name, err);
	return zone_parse(arena, str_n(bytes, (size_t)n), ret, err);
}

/* --- questions --- */

static struct between around(const struct zone *zone, int64_t at)
{
	size_t low = 0, high = zone->count;
	struct between b;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (zone->since[middle] <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < zone->count)
		return (struct between){low ? zone->offset[low - 1] : zone->first, zone->since[low]};
	if (zone->has_rules)
		return by_rules(zone, at);
	b.offset = low ? zone->offset[low - 1] : zone->first;
	b.until = ZONE_NEVER;
	return b;
}

int32_t zone_offset(const struct zone *zone, int64_t at)
{
	return around(zone, at).offset;
}

/* Changes that keep the offset (only the name changes, or a rule repeats what the block says) are passed over. */
int64_t zone_change(const struct zone *zone, int64_t at)
{
	struct between b = around(zone, at);

	/* A rule for a year that is summer all through gives the same offset for ever. */
	for (size_t passed = 0; b.until != ZONE_NEVER && passed < zone->count + 4; passed++) {
		struct between next = around(zone, b.until);

		if (next.offset != b.offset)
			return b.until;
		b = next;
	}
	return ZONE_NEVER;
}

struct zone_instants zone_instants(const struct zone *zone, int64_t wall)
{
	struct zone_instants found = {0};
	int64_t from = wall - AROUND;

	while (from < wall + AROUND && found.count < 2) {
		int32_t offset = zone_offset(zone, from);
		int64_t until = zone_change(zone, from);

		if (wall - offset >= from && wall - offset < until)
			found.at[found.count++] = wall - offset;
		else if (!found.count && until != ZONE_NEVER && until + offset <= wall &&
			 wall < until + zone_offset(zone, until))
			found.at[0] = until;
		from = until;
	}
	return found;
}

/* --- text --- */

struct str zone_format(struct arena *arena, const struct zone *zone, int64_t at)
{
	int32_t offset = zone_offset(zone, at), size = offset < 0 ? -offset : offset;
	struct civil c = civil_of(at + offset);

	return arena_printf(arena, "%04lld-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", (long long)c.year, c.month, c.day,
			    c.hour, c.minute, c.second, offset < 0 ? '-' : '+', size / 3600, size / 60 % 60);
}

struct str zone_date(struct arena *arena, struct str name, int64_t real_ns)
{
	const struct zone *zone = NULL;
	struct err ignored;
	int64_t at = floor_div(real_ns, NS_PER_S);

	if (zone_open(arena, name, &zone, &ignored) != 0)
		return str_first(clock_format_utc(arena, real_ns), 10);
	return str_first(zone_format(arena, zone, at), 10);
}
