/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/env.h"

static int64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

int64_t clock_real_ns(void)
{
	const char *pinned = env_process("STEAD_TEST_CLOCK_NS");
	int64_t ns;

	if (pinned && str_to_i64(str_of(pinned), &ns))
		return ns;
	return now_ns(CLOCK_REALTIME);
}

struct str clock_format_seconds(struct arena *arena, int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[40];

	gmtime_r(&t, &tm);
	return arena_str(arena, str_n(text, strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm)));
}

struct str clock_format_utc(struct arena *arena, int64_t real_ns)
{
	return clock_format_seconds(arena, real_ns / NS_PER_S - (real_ns % NS_PER_S < 0));
}

uint64_t random_u64(void)
{
	uint64_t v;
	ssize_t n;

	do
		n = getrandom(&v, sizeof(v), 0);
	while (n != (ssize_t)sizeof(v));
	return v;
}

/* A number of exactly `digits` digits at *at, which moves past it. */
static bool take_digits(struct str s, size_t *at, unsigned digits, int *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < digits; i++, (*at)++) {
		if (*at >= s.len || s.ptr[*at] < '0' || s.ptr[*at] > '9')
			return false;
		*ret = *ret * 10 + (s.ptr[*at] - '0');
	}
	return true;
}

static bool take_char(struct str s, size_t *at, const char *one_of)
{
	if (*at >= s.len || !s.ptr[*at] || !strchr(one_of, s.ptr[*at]))
		return false;
	(*at)++;
	return true;
}

/* Nanoseconds after a '.'; further digits are dropped. */
static int64_t take_fraction(struct str s, size_t *at)
{
	int64_t ns = 0, unit = 100000000;

	for (; *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; (*at)++, unit /= 10)
		ns += (s.ptr[*at] - '0') * unit;
	return ns;
}

static bool take_zone(struct str s, size_t *at, int64_t *ret_seconds)
{
	int hours, minutes = 0;
	bool west;

	*ret_seconds = 0;
	if (*at == s.len || take_char(s, at, "Zz"))
		return *at == s.len;
	west = s.ptr[*at] == '-';
	if (!take_char(s, at, "+-") || !take_digits(s, at, 2, &hours))
		return false;
	take_char(s, at, ":");
	if (*at < s.len && !take_digits(s, at, 2, &minutes))
		return false;
	*ret_seconds = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
	return *at == s.len && hours < 24 && minutes < 60;
}

bool clock_parse(struct str text, int64_t *ret_real_ns)
{
	struct tm tm = {0}, back;
	int64_t ns = 0, zone = 0;
	size_t at = 0;
	time_t t;

	if (!take_digits(text, &at, 4, &tm.tm_year) || !take_char(text, &at, "-") ||
	    !take_digits(text, &at, 2, &tm.tm_mon) || !take_char(text, &at, "-") ||
	    !take_digits(text, &at, 2, &tm.tm_mday))
		return false;
	if (at < text.len) {
		if (!take_char(text, &at, "Tt ") || !take_digits(text, &at, 2, &tm.tm_hour) ||
		    !take_char(text, &at, ":") || !take_digits(text, &at, 2, &tm.tm_min))
			return false;
		if (take_char(text, &at, ":") && !take_digits(text, &at, 2, &tm.tm_sec))
			return false;
		if (take_char(text, &at, ".,"))
			ns = take_fraction(text, &at);
		if (!take_zone(text, &at, &zone))
			return false;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	back = tm;
	t = timegm(&back);
	if (back.tm_mday != tm.tm_mday || back.tm_mon != tm.tm_mon || back.tm_hour != tm.tm_hour ||
	    back.tm_min != tm.tm_min || tm.tm_sec > 60 || tm.tm_year < 70 || tm.tm_year > 361)
		return false;
	*ret_real_ns = ((int64_t)t - zone) * NS_PER_S + ns;
	return true;
}
