/* SPDX-License-Identifier: Apache-2.0 */
/* The list of dialects: each is one file of this folder. */
#include "dialects/common.h"

const struct dialect *const dialects[] = {
	&dialect_omnicoreagent,    &dialect_openpaw,  &dialect_wacht,      &dialect_agentscope,
	&dialect_anthropic_memory, &dialect_loomflow, &dialect_filesystem, NULL};
