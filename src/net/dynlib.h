/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that only remote stores need are loaded when the first of them is used: libcurl and its dependencies cost a
 * program 3 ms at every start, more than everything else together.
 */
#ifndef STEAD_NET_DYNLIB_H
#define STEAD_NET_DYNLIB_H

#include <stddef.h>

#include "base/err.h"

struct dynlib_entry {
	const char *name;
	void *slot; /* of a function pointer */
};

/* Fills each slot. It is never unloaded. ERR_UNSUPPORTED names the library and Debian's package for it. */
int dynlib_load(const char *soname, const char *package, const struct dynlib_entry *entries, size_t count,
		struct err *err);

#endif
