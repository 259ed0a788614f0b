/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First messages of TLS. Beyond "does not crash": what is decided does not change when more bytes come, a message that
 * is whole was not whole before its last byte, and a name is one that a rule can name.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello whole, part;
	enum hello_state state = hello_parse(str_n(data, size), &whole), before;
	char clean[DNS_NAME_MAX + 1];
	size_t len;

	for (size_t n = 0; n < size && n < 600; n++) {
		before = hello_parse(str_n(data, n), &part);
		if (before == HELLO_MORE)
			continue;
		require(before == state);
		require(part.name_len == whole.name_len && memcmp(part.name, whole.name, part.name_len) == 0);
		require(part.is_encrypted == whole.is_encrypted || state == HELLO_BAD);
		break;
	}
	if (state == HELLO_DONE && whole.name_len)
		require(dns_name_clean(str_n(whole.name, whole.name_len), clean, &len) && len == whole.name_len &&
			memcmp(clean, whole.name, len) == 0);
	return 0;
}
