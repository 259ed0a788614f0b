/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STEAD_TOOLS_SHA256_H
#define STEAD_TOOLS_SHA256_H

#include "base/arena.h"
#include "base/str.h"

/* 64 hex digits. */
struct str sha256_hex(struct arena *arena, struct str bytes);

#endif
