/* SPDX-License-Identifier: Apache-2.0 */
/* The list of files that a sandbox keeps: what is read can be written, and is then read as the same. */
#include <stdlib.h>

#include "sandbox/snapshot_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct manifest m, again;
	struct str text;
	struct err err;

	if (manifest_parse(arena, str_n(data, size), &m, &err) != 0)
		return 0;
	if (manifest_format(arena, &m, &text, &err) != 0 || manifest_parse(arena, text, &again, &err) != 0 ||
	    again.count != m.count || again.bytes != m.bytes)
		abort();
	for (size_t i = 0; i < m.count; i++)
		if (!str_eq(m.entries[i].path, again.entries[i].path) ||
		    !snap_entry_same(&m.entries[i], &again.entries[i]))
			abort();
	return 0;
}
