/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of DNS. Beyond "does not crash": a name that is accepted is one that a rule can name, and the answer is a
 * packet that repeats the question and fits.
 */
#include <stdint.h>
#include <stdlib.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t answer[DNS_PACKET_MAX];
	char clean[DNS_NAME_MAX + 1];
	struct str packet = str_n(data, size);
	struct dns_query query;
	size_t len, clean_len;

	if (dns_name_clean(packet, clean, &clean_len)) {
		require(clean_len && clean_len <= DNS_NAME_MAX && strlen(clean) == clean_len);
		require(clean[0] != '.' && clean[clean_len - 1] != '.');
	}
	if (!dns_query_parse(packet, &query)) {
		len = dns_answer_bad(packet, answer);
		require(len == 0 || len == 12);
		return 0;
	}
	require(query.name_len && query.name_len <= DNS_NAME_MAX && strlen(query.name) == query.name_len);
	for (size_t i = 0; i < query.name_len; i++)
		require(!(query.name[i] >= 'A' && query.name[i] <= 'Z') && query.name[i] > ' ');
	len = dns_answer(packet, &query, DNS_OK, 0x7F4D0001, answer);
	require(len >= query.question_end && len <= DNS_PACKET_MAX);
	require(memcmp(answer, data, 2) == 0 && memcmp(answer + 12, data + 12, query.question_end - 12) == 0);
	require(dns_answer(packet, &query, DNS_NO_NAME, 0, answer) == query.question_end);
	return 0;
}
