/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cron expression and a file of the zone database, both from anyone. Input: the expression, a newline, the bytes of
 * the file. Beyond "does not crash and ends": times only go forward, and each is at a whole minute of the wall clock.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "text/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str bytes = str_n(data, size), text = STR_NONE;
	const struct zone *zone;
	struct cron cron;
	struct err err = {0};
	struct cron_time t = {.at = INT64_C(1772323200)}, next;

	str_cut(&bytes, '\n', &text);
	if (zone_parse(arena, bytes, &zone, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		require(zone_open(arena, STR("+05:30"), &zone, &err) == 0);
	}
	if (cron_parse(text, &cron, &err) != 0) {
		require(err.kind != ERR_NONE && err.msg[0]);
		return 0;
	}
	for (int i = 0; i < 20 && cron_next(&cron, zone, t.at, &next); i++, t = next) {
		require(next.at > t.at);
		require(next.effect == CRON_MOVED || (next.at + zone_offset(zone, next.at)) % 60 == 0);
	}
	return 0;
}
