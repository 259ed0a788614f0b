/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one form of zip that Stead writes: plain files, not compressed, names in UTF-8, checksums and sizes after the
 * bytes, so that an archive can be sent while it is made. The 64-bit fields are there only where they are needed. Any
 * zip program of the last twenty years reads it.
 */
#ifndef STEAD_TEXT_ZIP_H
#define STEAD_TEXT_ZIP_H

#include <stdint.h>

#include "base/buf.h"

#define ZIP_NAME_MAX 65535

struct zip_entry {
	struct str name; /* UTF-8, relative, with '/' between its elements */
	uint64_t size;
	int64_t time_s;  /* since 1970; shown in UTC */
	uint32_t crc;    /* zip_local() does not need it */
	uint64_t offset; /* of its local header in the archive */
};

/* The checksum of bytes that follow those of which `crc` is the checksum; 0 at first. */
uint32_t zip_crc(uint32_t crc, struct str bytes);
/* What comes before the bytes of an entry. */
void zip_local(struct buf *out, const struct zip_entry *entry);
/* What follows them. */
void zip_descriptor(struct buf *out, const struct zip_entry *entry);
/* The entry in the directory at the end of the archive. */
void zip_central(struct buf *out, const struct zip_entry *entry);
/* The end: the directory has `count` entries in `size` bytes from `offset` on. */
void zip_end(struct buf *out, uint64_t count, uint64_t size, uint64_t offset);

#endif
