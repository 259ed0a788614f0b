/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what this program allocates: a measure of work that is the same on every run and every machine. The program is
 * linked with count_allocations (tests/meson.build), which puts these functions before those of the C library.
 */
#ifndef STEAD_TESTS_ALLOCATIONS_H
#define STEAD_TESTS_ALLOCATIONS_H

#include <stddef.h>

static size_t allocation_count, allocation_bytes;

static void allocation_add(size_t bytes)
{
	allocation_count++;
	allocation_bytes += bytes;
}

/* NOLINTBEGIN: the names are the linker's */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	allocation_add(size);
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocation_add(n * size);
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	allocation_add(size);
	return __real_realloc(old, size);
}
/* NOLINTEND */

#endif
