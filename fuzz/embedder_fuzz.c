/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an embedder: any number of texts that were asked for, given by the first byte. */
#include <math.h>

#include "base/limits.h"
#include "home/search/embedder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	size_t count = size ? data[0] % 5 : 0;
	unsigned dims;
	float *values;
	struct err err;

	if (!size ||
	    embedder_parse(arena, arena_str(arena, str_n(data + 1, size - 1)), count, &values, &dims, &err) != 0)
		return 0;
	if (!dims || dims > EMBEDDER_DIMS_MAX || !count)
		abort();
	for (size_t i = 0; i < count * dims; i++)
		if (!isfinite(values[i]))
			abort();
	return 0;
}
