/* SPDX-License-Identifier: Apache-2.0 */
/* Standard base64 with padding (RFC 4648, section 4). */
#ifndef STEAD_TEXT_BASE64_H
#define STEAD_TEXT_BASE64_H

#include <stdbool.h>

#include "base/buf.h"

void base64_write(struct buf *out, struct str bytes);
/* Strict: no white space, padding required, unused bits zero. False when it is not base64. */
bool base64_parse(struct arena *arena, struct str text, struct str *ret_bytes);

#endif
