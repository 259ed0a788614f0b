/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to lists of directories that are kept while the directory is unchanged, whoever might change it. Only a
 * directory of this machine whose changes the kernel reports is kept.
 */
#ifndef STEAD_SERVER_LISTS_H
#define STEAD_SERVER_LISTS_H

#include "base/str.h"

struct lists;
struct list_text {
	struct str text;
};

struct lists *lists_new(void);
void lists_destroy(struct lists *lists);
/* The answer that was kept under the key (it names the workspace, the user and the request), if `dir` is as it was
   then: to be given back with list_text_put(). NULL: there is none. *ret_ticket is then for lists_end(), which must be
   called; 0: nothing is to be kept. */
const struct list_text *lists_begin(struct lists *lists, struct str key, const char *dir, uint64_t *ret_ticket);
/* The answer that was made after lists_begin(); empty: there is none that can be kept. */
void lists_end(struct lists *lists, uint64_t ticket, struct str text);
void list_text_put(const struct list_text *text);
/* Gives up what nobody asked for in the last second. */
void lists_sweep(struct lists *lists);

#endif
