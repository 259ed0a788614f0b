/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the home that file tools may not see (skills, knowledge, uploads), read by their family's own tool. */
#ifndef STEAD_HOME_FILES_HOME_PAGE_H
#define STEAD_HOME_FILES_HOME_PAGE_H

#include "tool/tool.h"

/* Adds content, lines, total_lines?, offset, binary and next_offset? to `value`: a page of lines by `offset` and
   `limit` of the arguments. A binary file is given as base64, up to READ_BYTES_DEFAULT bytes, with encoding "base64".
 */
int home_read_page(struct call *call, struct store *store, struct wpath path, const struct jv *args, struct jv *value,
		   struct err *err);
/* The content, and how to continue. */
void render_home_page(const struct jv *args, const struct jv *value, struct buf *text);

/* The arguments that it reads and the members that it adds, for tool tables. */
#define PAGE_ARGS                                                                                                      \
	"offset int>=0: first line, from 1 (default 1)\n"                                                              \
	"limit int>=1: number of lines (default 2000)"
#define PAGE_RESULT "content!; encoding; size int; lines int; total_lines int; next_offset int"

#endif
