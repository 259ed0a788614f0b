/* SPDX-License-Identifier: Apache-2.0 */
/* How many tokens a model is likely to make of a text: an estimate without a vocabulary. */
#ifndef STEAD_TEXT_TOKENS_H
#define STEAD_TEXT_TOKENS_H

#include <stdint.h>

#include "base/str.h"

/* Of two pieces together it is never more than the sum of what they have alone. */
uint64_t tokens_estimate(struct str text);

#endif
