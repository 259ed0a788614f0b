/* SPDX-License-Identifier: Apache-2.0 */
/* From strings to numbers, in an arena: for "was this seen before" over many names. Keys are borrowed. */
#ifndef STEAD_BASE_STRMAP_H
#define STEAD_BASE_STRMAP_H

#include <stdbool.h>

#include "base/arena.h"

struct strmap;

struct strmap *strmap_new(struct arena *arena);
/* The number stored for the key; a new key gets 0 and *ret_added (may be NULL) is true. Valid until the next put. */
size_t *strmap_put(struct strmap *map, struct str key, bool *ret_added);
size_t strmap_count(const struct strmap *map);
/* NULL: not there. */
size_t *strmap_find(struct strmap *map, struct str key);

#endif
