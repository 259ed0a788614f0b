/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one form of tar that Stead writes: plain files with fixed owner and mode, ustar headers, and a pax header only
 * for what ustar cannot hold (long or non-ASCII names, 8 GiB and more). Any tar program reads it. Stead itself reads
 * nothing else: a header is encoded again from its parsed fields and must give the same bytes. So there are no links,
 * devices, sparse files, odd numbers or second meanings to guard against, and equal content gives equal archives.
 */
#ifndef STEAD_TEXT_TAR_H
#define STEAD_TEXT_TAR_H

#include <stdbool.h>

#include "base/buf.h"

#define TAR_BLOCK      512
#define TAR_HEADER_MAX (8 * TAR_BLOCK)
#define TAR_NAME_MAX   2048

struct tar_entry {
	struct str name; /* UTF-8, relative; the reader's caller checks it */
	uint64_t size;
	int64_t time_s; /* since 1970 */
};

/* The header of an entry: one block, or several with a pax header. Its bytes follow, then zeros up to a block. */
void tar_header(struct buf *out, const struct tar_entry *entry);
/* Zero bytes that follow `size` bytes of content. */
size_t tar_padding(uint64_t size);
/* Two blocks of zeros end an archive. */
#define TAR_END_LEN (2 * TAR_BLOCK)

/* How many bytes the header that begins with this block takes; 0: it is not one of ours. */
size_t tar_header_len(const char block[TAR_BLOCK]);
/* A whole header. False: it is not what tar_header() writes. The name is in the arena. */
bool tar_parse(struct arena *arena, struct str header, struct tar_entry *ret);

#endif
