/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, with padding) for bytes that travel as text. */
#ifndef STEAD_BASE_BASE64_H
#define STEAD_BASE_BASE64_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

struct str base64_encode(struct arena *arena, struct str bytes);
/* Strict; false when the text is not base64. */
bool base64_decode(struct arena *arena, struct str text, struct str *ret);

#endif
