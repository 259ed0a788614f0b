/* SPDX-License-Identifier: Apache-2.0 */
/* What a container engine sends: the head of an answer, and frames of output in pieces of any size. */
#include "sandbox/engine.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void count(void *arg, bool is_stderr, struct str bytes)
{
	size_t *total = arg;

	(void)is_stderr;
	*total += bytes.len;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct str all = str_n((const char *)data, size);
	struct engine_frames whole = {0}, pieces = {0};
	size_t in_whole = 0, in_pieces = 0, step = size ? data[0] % 13 + 1 : 1;
	struct engine_head head;
	int n = engine_head_parse(all, &head);
	bool ok;

	if (n > 0 && ((size_t)n > size || head.length < -1 || head.status < 0 || head.status > 999))
		__builtin_trap();
	ok = engine_frames_take(&whole, all, count, &in_whole);
	for (size_t at = 0; at < size; at += step)
		if (!engine_frames_take(&pieces, str_first(str_from(all, at), step), count, &in_pieces))
			return 0;
	if (ok && in_whole != in_pieces)
		__builtin_trap();
	return 0;
}
