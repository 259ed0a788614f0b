/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace in memory for tests of libstead. */
#ifndef STEAD_TESTS_LIB_LIB_FIX_H
#define STEAD_TESTS_LIB_LIB_FIX_H

#include "stead.h"
#include "test.h"

static const struct stead_options in_memory = {
	.size = sizeof in_memory, .store = "memory:", .workspace = "test", .create = 1};

static inline struct stead *open_memory(void)
{
	struct stead_error error = {0};
	struct stead *stead = NULL;

	if (stead_open(&in_memory, &stead, &error) != 0)
		TEST_FAIL("stead_open failed: %s", error.message);
	return stead;
}

/* A call that must succeed; `error` is the struct stead_error it was given. */
#define CHECK_DONE(call, error)                                                                                        \
	do {                                                                                                           \
		if ((call) != STEAD_OK)                                                                                \
			TEST_FAIL("%s failed: %s", #call, (error).message);                                            \
	} while (0)

#endif
