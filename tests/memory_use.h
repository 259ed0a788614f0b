/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory this process holds. getrusage() would not do: its peak counts what the process was before it became
 * this program, which is all of the test runner.
 */
#ifndef STEAD_TESTS_MEMORY_USE_H
#define STEAD_TESTS_MEMORY_USE_H

#include <stdlib.h>

#include "test.h"

/* VmRSS is what it holds now, VmHWM its peak. */
__attribute__((unused)) static long memory_kib(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	CHECK(f != NULL);
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtol(line + strlen(key) + 1, NULL, 10);
	fclose(f);
	CHECK(kib >= 0);
	return kib;
}

static long memory_start;

/* The peak counts from here on. */
__attribute__((unused)) static void memory_peak_begin(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	if (f) { /* where it cannot be forgotten, the peak so far counts too */
		fputs("5\n", f);
		fclose(f);
	}
	memory_start = memory_kib("VmRSS");
}

/* How far above its beginning the memory has been since then. */
__attribute__((unused)) static long memory_peak_kib(void)
{
	long more = memory_kib("VmHWM") - memory_start;

	printf("# %ld KiB more memory at its peak\n", more);
	return more;
}

#endif
