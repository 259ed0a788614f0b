/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dns.h"

#define HEADER    12
#define CLASS_IN  1
#define TTL_S     60
#define LABEL_MAX 63

static uint16_t number(const unsigned char *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static bool label_char(char c, char *ret)
{
	*ret = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
	return (*ret >= 'a' && *ret <= 'z') || (*ret >= '0' && *ret <= '9') || *ret == '-' || *ret == '_';
}

/* The labels at `at` as a name with dots. 0: malformed, or compressed, which a question never is. */
static size_t read_name(struct str packet, size_t at, struct dns_query *ret)
{
	ret->name_len = 0;
	for (;;) {
		size_t len;

		if (at >= packet.len)
			return 0;
		len = (unsigned char)packet.ptr[at++];
		if (len == 0)
			break;
		if (len > LABEL_MAX || len > packet.len - at || ret->name_len + len + 1 > DNS_NAME_MAX)
			return 0;
		if (ret->name_len)
			ret->name[ret->name_len++] = '.';
		for (size_t i = 0; i < len; i++)
			if (!label_char(packet.ptr[at + i], &ret->name[ret->name_len++]))
				return 0;
		at += len;
	}
	ret->name[ret->name_len] = 0;
	return at;
}

bool dns_query_parse(struct str packet, struct dns_query *ret)
{
	const unsigned char *bytes = (const unsigned char *)packet.ptr;
	size_t at;

	if (packet.len < HEADER || packet.len > DNS_PACKET_MAX)
		return false;
	/* a question (QR 0, opcode 0), one of them; what follows it (EDNS) is not looked at */
	if ((bytes[2] & 0xF8) != 0 || number(bytes + 4) != 1 || number(bytes + 6) != 0)
		return false;
	at = read_name(packet, HEADER, ret);
	if (at == 0 || ret->name_len == 0 || packet.len - at < 4 || number(bytes + at + 2) != CLASS_IN)
		return false;
	ret->type = number(bytes + at);
	ret->question_end = at + 4;
	return true;
}

size_t dns_answer(struct str packet, const struct dns_query *query, enum dns_code code, uint32_t address,
		  uint8_t ret[DNS_PACKET_MAX])
{
	static const uint8_t record[] = {0xC0, HEADER, 0, DNS_TYPE_A, 0, CLASS_IN, 0, 0, 0, TTL_S, 0, 4};
	bool has = code == DNS_OK && address && query->type == DNS_TYPE_A &&
		   query->question_end + sizeof(record) + 4 <= DNS_PACKET_MAX;
	size_t len = query->question_end;

	memcpy(ret, packet.ptr, len);
	ret[2] = (uint8_t)(0x84 | (ret[2] & 1)); /* an answer, of authority; recursion as it was asked for */
	ret[3] = (uint8_t)(0x80 | code);
	memset(ret + 6, 0, 6);
	if (!has)
		return len;
	ret[7] = 1;
	memcpy(ret + len, record, sizeof(record));
	len += sizeof(record);
	for (int shift = 24; shift >= 0; shift -= 8)
		ret[len++] = (uint8_t)(address >> shift);
	return len;
}

size_t dns_answer_bad(struct str packet, uint8_t ret[DNS_PACKET_MAX])
{
	if (packet.len < HEADER || (packet.ptr[2] & 0x80))
		return 0;
	memset(ret, 0, HEADER);
	memcpy(ret, packet.ptr, 2);
	ret[2] = 0x80;
	ret[3] = 0x81; /* a format error */
	return HEADER;
}

bool dns_name_clean(struct str name, char ret[DNS_NAME_MAX + 1], size_t *ret_len)
{
	size_t label = 0;

	if (name.len && name.ptr[name.len - 1] == '.')
		name.len--;
	if (!name.len || name.len > DNS_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '.') {
			if (!label)
				return false;
			label = 0;
			ret[i] = '.';
		} else if (++label > LABEL_MAX || !label_char(name.ptr[i], &ret[i])) {
			return false;
		}
	}
	ret[name.len] = 0;
	*ret_len = name.len;
	return label > 0;
}
