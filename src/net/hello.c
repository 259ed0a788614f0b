/* SPDX-License-Identifier: Apache-2.0 */
#include "net/hello.h"

#define RECORD_HEAD     5
#define RECORD_MAX      16384
#define HANDSHAKE       22
#define CLIENT_HELLO    1
#define EXT_SERVER_NAME 0
#define EXT_ECH         0xFE0D
#define NAME_IS_HOST    0

/* Cuts a number of `width` bytes. */
static bool cut_number(struct str *rest, unsigned width, size_t *ret)
{
	*ret = 0;
	if (rest->len < width)
		return false;
	for (unsigned i = 0; i < width; i++)
		*ret = *ret << 8 | (unsigned char)rest->ptr[i];
	*rest = str_from(*rest, width);
	return true;
}

/* Cuts a piece that has its length in `width` bytes before it. */
static bool cut_piece(struct str *rest, unsigned width, struct str *ret)
{
	size_t len;

	if (!cut_number(rest, width, &len) || len > rest->len)
		return false;
	*ret = str_first(*rest, len);
	*rest = str_from(*rest, len);
	return true;
}

/* The payloads of the records, one after the other, until the message is whole. *ret_len: its bytes so far. */
static enum hello_state join(struct str bytes, char *message, size_t *ret_len)
{
	size_t have = 0;

	for (;;) {
		size_t len, body;

		if (have >= 4) {
			body = (size_t)(unsigned char)message[1] << 16 | (size_t)(unsigned char)message[2] << 8 |
			       (unsigned char)message[3];
			if (message[0] != CLIENT_HELLO || body > HELLO_BYTES_MAX - 4)
				return HELLO_BAD;
			*ret_len = body + 4;
			if (have >= body + 4)
				return have == body + 4 ? HELLO_DONE : HELLO_BAD; /* nothing may follow it */
		}
		if (bytes.len && (unsigned char)bytes.ptr[0] != HANDSHAKE)
			return HELLO_BAD;
		if (bytes.len > 1 && bytes.ptr[1] != 3)
			return HELLO_BAD;
		if (bytes.len < RECORD_HEAD)
			return HELLO_MORE;
		len = (size_t)(unsigned char)bytes.ptr[3] << 8 | (unsigned char)bytes.ptr[4];
		if (len == 0 || len > RECORD_MAX || len > HELLO_BYTES_MAX - have)
			return HELLO_BAD;
		if (bytes.len - RECORD_HEAD < len)
			return HELLO_MORE;
		memcpy(message + have, bytes.ptr + RECORD_HEAD, len);
		have += len;
		bytes = str_from(bytes, RECORD_HEAD + len);
	}
}

/* One name, of the one kind there is. */
static bool read_server_name(struct str data, struct hello *ret)
{
	struct str list, name;
	size_t kind;

	return cut_piece(&data, 2, &list) && data.len == 0 && cut_number(&list, 1, &kind) && kind == NAME_IS_HOST &&
	       cut_piece(&list, 2, &name) && list.len == 0 && dns_name_clean(name, ret->name, &ret->name_len);
}

static bool read_extensions(struct str rest, struct hello *ret)
{
	struct str data;
	size_t type;

	while (rest.len) {
		if (!cut_number(&rest, 2, &type) || !cut_piece(&rest, 2, &data))
			return false;
		if (type == EXT_ECH)
			ret->is_encrypted = true;
		if (type == EXT_SERVER_NAME && (ret->name_len || !read_server_name(data, ret)))
			return false;
	}
	return true;
}

enum hello_state hello_parse(struct str bytes, struct hello *ret)
{
	char message[HELLO_BYTES_MAX];
	size_t len = 0, number;
	struct str rest, piece;
	enum hello_state state;

	*ret = (struct hello){0};
	state = join(bytes, message, &len);
	if (state != HELLO_DONE)
		return state == HELLO_MORE && bytes.len >= HELLO_BYTES_MAX ? HELLO_BAD : state;
	rest = str_n(message + 4, len - 4);
	if (!cut_number(&rest, 2, &number) || number >> 8 != 3 || rest.len < 32)
		return HELLO_BAD;
	rest = str_from(rest, 32); /* random */
	if (!cut_piece(&rest, 1, &piece) || piece.len > 32 || !cut_piece(&rest, 2, &piece) ||
	    !cut_piece(&rest, 1, &piece))
		return HELLO_BAD;
	if (rest.len == 0)
		return HELLO_DONE; /* a client of TLS 1.2 without extensions */
	if (!cut_piece(&rest, 2, &piece) || rest.len || !read_extensions(piece, ret))
		return HELLO_BAD;
	return HELLO_DONE;
}
