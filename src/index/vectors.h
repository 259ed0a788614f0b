/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of texts, in a file that only grows: one record a text, found by a hash of what was embedded, so that the
 * same text is never embedded twice. A vector is kept as one byte a number and its length: of a hundred thousand texts
 * with 384 numbers that is 42 MB, mapped, and what is lost is far less than the differences between neighbours.
 *
 * Several threads and processes may use one file. A truncated or damaged record is ignored. A file that became shorter
 * is started again, because vectors are derived.
 */
#ifndef STEAD_INDEX_VECTORS_H
#define STEAD_INDEX_VECTORS_H

#include "base/ctx.h"

#define VECTORS_DIMS_MAX 8192
#define VECTORS_MAX      (1u << 23)
#define VECTORS_NONE     UINT32_MAX

struct vectors;

/* Opens or creates the file; path NULL: in memory. A file that is not valid is started again. */
int vectors_open(const char *path, struct vectors **ret, struct err *err);
void vectors_close(struct vectors *v);
/* Deletes all of it. */
void vectors_forget(struct vectors *v);
/* Takes in what others added, and checks that the file is still the mapped one. False: it had to be started again, and
   every number that vectors_find() gave is void. */
bool vectors_refresh(struct vectors *v);
/* How many numbers each has; 0: there are none yet. */
unsigned vectors_dims(struct vectors *v);
uint32_t vectors_count(struct vectors *v);
/* The record with this key, or VECTORS_NONE. */
uint32_t vectors_find(struct vectors *v, const uint64_t key[2]);
/* Adds `count` vectors of `dims` numbers each. The first ones decide how many all have; ERR_INVALID: these have
   another, or are not numbers or all zero. */
int vectors_add(struct vectors *v, const uint64_t (*keys)[2], const float *values, size_t count, unsigned dims,
		struct err *err);

/* A question. */
struct vectors_probe {
	const int8_t *values; /* padded with zeros to a multiple of 32 */
	float norm;
	unsigned dims;
};
bool vectors_probe(struct arena *arena, const float *values, unsigned dims, struct vectors_probe *ret);
/* The cosines with records (VECTORS_NONE: -2). The mapping stays in place until all are computed. */
void vectors_cosines(struct vectors *v, const struct vectors_probe *probe, const uint32_t *records, size_t count,
		     float *ret);

/* The sum of products of n bytes, n a multiple of 32: as the machine does it best, and in plain C. */
int32_t vectors_dot(const int8_t *a, const int8_t *b, size_t n);
int32_t vectors_dot_plain(const int8_t *a, const int8_t *b, size_t n);

#endif
