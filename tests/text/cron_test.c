/* SPDX-License-Identifier: Apache-2.0 */
/* Zones and cron expressions: known instants, and a comparison with counting every minute. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"
#include "text/cron.h"

static const struct zone *zone_of(struct arena *arena, const char *name)
{
	const struct zone *zone = NULL;
	struct err err;

	if (access("/usr/share/zoneinfo/Europe/Berlin", R_OK) != 0)
		SKIP("the time zones (tzdata) are not installed");
	CHECK_OK(zone_open(arena, str_of(name), &zone, &err), err);
	return zone;
}

static struct cron cron_of(const char *text)
{
	struct cron cron = {0};
	struct err err;

	CHECK_OK(cron_parse(str_of(text), &cron, &err), err);
	return cron;
}

TEST(a_zone_has_the_offset_of_its_period)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct {
		const char *zone;
		int64_t at;
		int32_t offset;
	} rows[] = {
		{"Europe/Berlin", 1774745999, 3600},
		{"Europe/Berlin", 1774746000, 7200},
		{"America/New_York", 1772953199, -18000},
		{"America/New_York", 1772953200, -14400},
		{"Asia/Kolkata", 0, 19800},
		{"Australia/Lord_Howe", 1791041400, 39600},
		{"Australia/Lord_Howe", 1791041399, 37800},
		{"Europe/Dublin", 1782000000, 3600},
		{"Africa/Cairo", 1776981600, 10800},
		{"Pacific/Apia", 1325239199, -36000},
		{"Pacific/Apia", 1325239200, 50400},
		{"UTC", 1, 0},
		{"+05:30", 1, 19800},
		{"-0330", 1, -12600},
		{"Europe/Berlin", 4099766400, 3600}, /* 2099-12-01, by the rule of the last line */
		{"Europe/Berlin", 4088102400, 7200},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (zone_offset(zone_of(arena, rows[i].zone), rows[i].at) != rows[i].offset)
			TEST_FAIL("%s at %lld: %d instead of %d", rows[i].zone, (long long)rows[i].at,
				  zone_offset(zone_of(arena, rows[i].zone), rows[i].at), rows[i].offset);
}

TEST(a_wall_time_is_an_instant_or_two_or_none)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	const struct zone *berlin = zone_of(arena, "Europe/Berlin");
	struct civil c = {.year = 2026, .month = 10, .day = 25, .hour = 2, .minute = 30};
	struct zone_instants found = zone_instants(berlin, civil_wall(&c));

	CHECK_INT(found.count, 2);
	CHECK_INT(found.at[0], 1792888200);
	CHECK_INT(found.at[1], 1792891800);
	c.month = 3;
	c.day = 29;
	found = zone_instants(berlin, civil_wall(&c));
	CHECK_INT(found.count, 0);
	CHECK_INT(found.at[0], 1774746000);
	c.hour = 12;
	CHECK_INT(zone_instants(berlin, civil_wall(&c)).count, 1);
	c = (struct civil){.year = 2011, .month = 12, .day = 30, .hour = 12};
	found = zone_instants(zone_of(arena, "Pacific/Apia"), civil_wall(&c));
	CHECK_INT(found.count, 0);
	CHECK_INT(found.at[0], 1325239200);
}

TEST(a_date_is_the_same_after_a_round_trip)
{
	for (int64_t wall = -INT64_C(4000000000); wall < INT64_C(8000000000); wall += 86399 * 7) {
		struct civil c = civil_of(wall);

		CHECK_INT(civil_wall(&c), wall);
		CHECK(c.day >= 1 && c.day <= civil_month_days(c.year, c.month));
	}
	CHECK_INT(civil_of(0).weekday, 4);
	CHECK_INT(civil_of(-86400).weekday, 3);
}

TEST(a_zone_that_is_not_there_is_refused)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const char *const names[] = {"",          "Mars/Base",      "../../etc/passwd", "/etc/passwd",
					    "Europe/",   "Europe",         "+25:00",           "+1:99",
					    "tzdata.zi", "Europe//Berlin", "right/UTC",        "posixrules"};
	const struct zone *zone;
	struct err err;

	for (size_t i = 0; i < COUNT(names); i++)
		if (zone_open(arena, str_of(names[i]), &zone, &err) != -ERR_NOT_FOUND)
			TEST_FAIL("\"%s\" is accepted", names[i]);
}

TEST(a_wrong_expression_is_refused_by_its_field)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{"", "five fields"},
		{"* * * *", "five fields"},
		{"* * * * * *", "five fields"},
		{"60 * * * *", "the minute"},
		{"* 24 * * *", "the hour"},
		{"* * 0 * *", "the day of month"},
		{"* * * 13 *", "the month"},
		{"* * * * 8", "the day of week"},
		{"*/0 * * * *", "a step"},
		{"5/10 * * * *", "a range"},
		{"22-2 * * * *", "ends before"},
		{"fri-mon * * * *", "the minute"},
		{"1,,2 * * * *", "the minute"},
		{"1, * * * *", "the minute"},
		{"* * L * *", "the day of month"},
		{"* * ? * *", "the day of month"},
		{"@reboot", "is not a schedule"},
		{"-5 * * * *", "the minute"},
		{"* * * * mon#2", "the day of week"},
		{"1--2 * * * *", "the minute"},
		{"*/ * * * *", "a step"},
		{"*/90 * * * *", "a step that is larger"},
		{"0 */25 * * *", "a step that is larger"},
	};
	struct cron cron;
	struct err err;

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (cron_parse(str_of(rows[i].text), &cron, &err) != -ERR_INVALID)
			TEST_FAIL("\"%s\" is accepted", rows[i].text);
		if (!strstr(err.msg, rows[i].part))
			TEST_FAIL("\"%s\": \"%s\" does not say \"%s\"", rows[i].text, err.msg, rows[i].part);
	}
}

struct vector {
	const char *zone, *text;
	int64_t after;
	int64_t at;
	enum cron_effect effect;
};

TEST(the_next_time_follows_the_clocks)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	static const struct vector rows[] = {
		{"America/New_York", "30 2 * * *", 1772949600, 1772953200, CRON_MOVED},
		{"America/New_York", "15,45 2 * * *", 1772949600, 1772953200, CRON_MOVED},
		{"America/New_York", "*/30 * * * *", 1772949600, 1772951400, CRON_AS_WRITTEN},
		{"America/New_York", "*/30 * * * *", 1772951400, 1772953200, CRON_LEFT_OUT},
		{"America/New_York", "30 1 * * *", 1793500000, 1793511000, CRON_FIRST_ONLY},
		{"America/New_York", "30 1 * * *", 1793511000, 1793601000, CRON_AS_WRITTEN},
		{"America/New_York", "30 * * * *", 1793510000, 1793511000, CRON_AS_WRITTEN},
		{"America/New_York", "30 * * * *", 1793511000, 1793514600, CRON_AGAIN},
		{"Europe/Berlin", "30 2 25 10 *", 1792800000, 1792888200, CRON_FIRST_ONLY},
		{"Australia/Lord_Howe", "45 1 * * *", 1775300000, 1775313900, CRON_FIRST_ONLY},
		{"Australia/Lord_Howe", "45 * * * *", 1775313900, 1775315700, CRON_AGAIN},
		{"Australia/Lord_Howe", "15 2 4 10 *", 1791000000, 1791041400, CRON_MOVED},
		{"Africa/Cairo", "30 0 * * *", 1776981500, 1776981600, CRON_MOVED},
		{"America/Havana", "0 0 * * *", 1772945000, 1772946000, CRON_MOVED},
		{"Asia/Beirut", "5 0 * * *", 1774735000, 1774735200, CRON_MOVED},
		{"UTC", "0 0 29 2 *", 3981398400, 4233686400, CRON_AS_WRITTEN}, /* 2096-03-01, 2104-02-29 */
		{"UTC", "0 0 1-7 * 1", 1772323200, 1772409600, CRON_AS_WRITTEN},
		{"UTC", "* * * * *", 0, 60, CRON_AS_WRITTEN},
		{"UTC", "* * * * *", 59, 60, CRON_AS_WRITTEN},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct cron cron = cron_of(rows[i].text);
		struct cron_time t = {0};

		CHECK(cron_next(&cron, zone_of(arena, rows[i].zone), rows[i].after, &t));
		if (t.at != rows[i].at || t.effect != rows[i].effect)
			TEST_FAIL("%s in %s: %lld (%d) instead of %lld (%d)", rows[i].text, rows[i].zone,
				  (long long)t.at, (int)t.effect, (long long)rows[i].at, (int)rows[i].effect);
	}
}

TEST(an_impossible_date_never_comes)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct cron cron = cron_of("0 0 30 2 *");
	struct cron_time t;

	CHECK(!cron_next(&cron, zone_of(arena, "UTC"), 1772323200, &t));
	CHECK(!cron_next(&cron, zone_of(arena, "Europe/Berlin"), 1772323200, &t));
}

/* --- every minute, counted --- */

static bool wall_matches(const struct cron *cron, int64_t wall)
{
	struct civil c = civil_of(wall);
	bool day = cron->days >> c.day & 1, weekday = cron->weekdays >> c.weekday & 1;

	return (cron->minutes >> c.minute & 1) && (cron->hours >> c.hour & 1) && (cron->months >> c.month & 1) &&
	       (cron->any_day ? day && weekday : day || weekday);
}

/* Whether the job runs at `at`, by the rules of cron(8). */
static bool runs_at(const struct cron *cron, const struct zone *zone, int64_t at)
{
	int64_t now = zone_offset(zone, at), before = zone_offset(zone, at - 60), wall = at + now;

	if (cron->is_interval)
		return wall_matches(cron, wall);
	for (int64_t skipped = at + before; now - before <= 10800 && skipped < wall; skipped += 60)
		if (wall_matches(cron, skipped))
			return true;
	for (int64_t earlier = at - 60; earlier >= at - 10800; earlier -= 60)
		if (earlier + zone_offset(zone, earlier) == wall)
			return false;
	return wall_matches(cron, wall);
}

static const char *random_field(char *text, size_t size, int least, int most)
{
	int a = least + rand() % (most - least + 1), b = least + rand() % (most - least + 1), step = 1 + rand() % 7;

	switch (rand() % 6) {
	case 0:
	case 1:
		snprintf(text, size, "*");
		break;
	case 2:
		snprintf(text, size, "*/%d", step);
		break;
	case 3:
		snprintf(text, size, "%d", a);
		break;
	case 4:
		snprintf(text, size, "%d-%d/%d", a < b ? a : b, a < b ? b : a, step);
		break;
	default:
		snprintf(text, size, "%d,%d", a, b);
		break;
	}
	return text;
}

TEST(the_next_time_is_that_of_counting_every_minute)
{
	static const char *const zones[] = {"America/New_York", "Europe/Berlin",     "Australia/Lord_Howe",
					    "Africa/Cairo",     "America/Havana",    "Asia/Beirut",
					    "Europe/Dublin",    "Africa/Casablanca", "Asia/Kathmandu",
					    "America/St_Johns", "Pacific/Chatham",   "UTC"};
	static const int64_t changes[] = {1772953200, 1793516400, 1774746000, 1792890000, 1775314800,
					  1791041400, 1776981600, 1772946000, 1774735200, 1793500000};
	const char *given = getenv("STEAD_TEST_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)random_u64();

	srand(seed);
	for (int round = 0; round < 3000; round++) {
		ARENA_SCOPE struct arena *arena = arena_new();
		const char *name = zones[(size_t)rand() % COUNT(zones)];
		const struct zone *zone = zone_of(arena, name);
		char f[5][32], text[200];
		int64_t after = (changes[(size_t)rand() % COUNT(changes)] - rand() % 40000) / 60 * 60, at = after;
		struct cron_time t = {0};
		struct cron cron;
		bool found;

		snprintf(text, sizeof text, "%s %s %s %s %s", random_field(f[0], 32, 0, 59),
			 random_field(f[1], 32, 0, 23), rand() % 3 ? "*" : random_field(f[2], 32, 1, 31),
			 rand() % 3 ? "*" : random_field(f[3], 32, 1, 12),
			 rand() % 3 ? "*" : random_field(f[4], 32, 0, 6));
		cron = cron_of(text);
		found = cron_next(&cron, zone, after, &t);
		do
			at += 60;
		while (at < after + 3 * 86400 && !runs_at(&cron, zone, at));
		if (at < after + 3 * 86400 ? !found || t.at != at : found && t.at < at)
			TEST_FAIL("seed %u: \"%s\" in %s after %lld: %lld instead of %lld", seed, text, name,
				  (long long)after, (long long)t.at, (long long)at);
	}
}
