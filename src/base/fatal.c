/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fatal.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void (*_Atomic fatal_hook)(const char *message);

void fatal_set_hook(void (*hook)(const char *message))
{
	atomic_store(&fatal_hook, hook);
}

void fatal(const char *fmt, ...)
{
	void (*hook)(const char *message) = atomic_load(&fatal_hook);
	char message[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof message, fmt, args);
	va_end(args);
	if (hook)
		hook(message);
	abort();
}
