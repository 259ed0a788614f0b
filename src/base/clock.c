/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

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
	const char *pinned = getenv("STEAD_TEST_CLOCK_NS");
	int64_t ns;

	if (pinned && str_to_i64(str_of(pinned), &ns))
		return ns;
	return now_ns(CLOCK_REALTIME);
}

struct str clock_format_utc(struct arena *arena, int64_t real_ns)
{
	int64_t s = real_ns / NS_PER_S - (real_ns % NS_PER_S < 0);
	time_t t = (time_t)s;
	struct tm tm;
	char text[40];

	gmtime_r(&t, &tm);
	return arena_str(arena, str_n(text, strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm)));
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
