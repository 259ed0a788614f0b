/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that grow at their end (logs, ledgers) are in the index in parts, each of which counts as a file of its own. So
 * when a line is added, only the last part is read and indexed again. A part ends where the next one begins, at a line
 * that search_source.line allows, once it has SEARCH_PART_MIN bytes; the last part is open.
 *
 * The open part has the path of the file, and its version in the index is that of the file, followed by where the part
 * is and what it looked like. The parts before it have the path, PART_MARK and their number.
 */
#ifndef STEAD_HOME_SEARCH_SEARCH_PARTS_H
#define STEAD_HOME_SEARCH_SEARCH_PARTS_H

#include "base/arena.h"
#include "index/words.h"

#define SEARCH_PART_MIN ((size_t)16 * 1024)

struct search_part {
	uint64_t number; /* 0, 1, 2 … */
	uint64_t offset; /* where it begins in the file */
	uint64_t line;   /* the same, from 1 */
	uint64_t size;   /* of the file, when the part was indexed */
	uint64_t hash;   /* of the part */
};

/* The name of a part before the last one. */
struct str search_part_key(struct arena *arena, struct str path, uint64_t number);
/* The file of a name in the index. */
struct str search_part_file(struct str key);
struct str search_part_version(struct arena *arena, struct str version, const struct search_part *part);
/* The file's version as the index has it; the part is optional. False: it says nothing of a part, and is the whole. */
bool search_part_parse(struct str version, struct str *ret_version, struct search_part *ret_part);
/* The version of a file in the view, without its part; ptr NULL: the view does not have it, or as gone. */
struct str search_part_known(const struct words_view *view, struct str path, struct search_part *ret_part);

#endif
