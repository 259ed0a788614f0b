/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the home that file tools may not see (skills, knowledge, uploads), read by their family's own tool. */
#ifndef STEAD_HOME_FILES_HOME_PAGE_H
#define STEAD_HOME_FILES_HOME_PAGE_H

#include "tool/tool.h"

/* Adds content, lines, total_lines?, offset, binary and next_offset? to `value`: a page of lines by `offset` and
   `limit` of the arguments. Bytes that are no text come as base64 up to READ_BYTES_DEFAULT, with encoding "base64". */
int home_read_page(struct call *call, struct store *store, struct wpath path, const struct jv *args, struct jv *value,
		   struct err *err);
/* The content, and where it goes on. */
void render_home_page(const struct jv *args, const struct jv *value, struct buf *text);

#endif
