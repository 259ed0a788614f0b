/* SPDX-License-Identifier: Apache-2.0 */
/* Dates in the workspace's time zone. */
#ifndef STEAD_WORKSPACE_ZONE_H
#define STEAD_WORKSPACE_ZONE_H

#include <stdint.h>

#include "base/arena.h"

/* Seconds east of UTC at that time, by the system's database of zones; 0 for "UTC" and for a zone that is not there. */
int32_t zone_offset(struct arena *arena, struct str zone, int64_t real_ns);
/* "2026-11-15" */
struct str zone_date(struct arena *arena, struct str zone, int64_t real_ns);

#endif
