/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP3, the reading half, and what a server's errors mean. The parser pulls its bytes, so that it is the same over a
 * socket and over a fuzzer's input, and puts long strings straight where they stay. No number is believed before it is
 * compared with what may still come; arrays grow as their items arrive, so a count alone costs nothing.
 */
#include "net/resp.h"

#include "base/limits.h"

static int corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "the server's answer is not in the Redis protocol (%s); check host and port",
		       what);
}

static int fill(struct resp_in *in, struct err *err)
{
	size_t n = 0;
	int r;

	if (in->at) {
		memmove(in->buf, in->buf + in->at, in->len - in->at);
		in->len -= in->at;
		in->at = 0;
	}
	r = in->fill(in->arg, in->buf + in->len, RESP_BUF - in->len, NULL, 0, &n, err);
	in->len += n;
	return r;
}

/* Up to CR LF, without them. Good until the next fill. */
static int take_line(struct resp_in *in, struct str *ret, struct err *err)
{
	size_t seen = 0;

	for (;;) {
		const char *from = in->buf + in->at;
		const char *lf = memchr(from + seen, '\n', in->len - in->at - seen);
		int r;

		if (lf) {
			size_t n = (size_t)(lf - from);

			if (n == 0 || from[n - 1] != '\r')
				return corrupt(err, "a line ends without CR");
			*ret = str_n(from, n - 1);
			in->at += n + 1;
			return 0;
		}
		seen = in->len - in->at;
		if (seen >= RESP_LINE_MAX)
			return corrupt(err, "a line does not end");
		r = fill(in, err);
		if (r)
			return r;
	}
}

/* `len` bytes to their place, the last of them read together with what follows. */
static int take_bytes(struct resp_in *in, char *bytes, size_t len, struct err *err)
{
	size_t have = in->len - in->at < len ? in->len - in->at : len;

	if (have)
		memcpy(bytes, in->buf + in->at, have);
	in->at += have;
	while (have < len) {
		size_t n = 0;
		int r = in->fill(in->arg, bytes + have, len - have, in->buf, RESP_BUF, &n, err);

		if (r)
			return r;
		in->at = 0;
		in->len = n > len - have ? n - (len - have) : 0;
		have += n - in->len;
	}
	return 0;
}

static int take_end(struct resp_in *in, struct err *err)
{
	while (in->len - in->at < 2) {
		int r = fill(in, err);

		if (r)
			return r;
	}
	in->at += 2;
	return in->buf[in->at - 2] == '\r' && in->buf[in->at - 1] == '\n'
		       ? 0
		       : corrupt(err, "a string is not as long as it says");
}

/* The head of a string that may be put elsewhere, and where. */
static int take_head_of_string(struct resp_in *in, size_t len, char **ret_to, struct err *err)
{
	while (in->len - in->at < in->place->head) {
		int r = fill(in, err);

		if (r)
			return r;
	}
	*ret_to = in->place->to(in->place->arg, in->buf + in->at, len - in->place->head);
	return 0;
}

static int take_string(struct resp_in *in, size_t len, bool placed, struct str *ret, struct err *err)
{
	char *bytes, *to = NULL;
	size_t own = len;
	int r = 0;

	if (len > in->left)
		return err_set(err, ERR_TOO_LARGE, "the server's answer has %zu bytes, more than requested", len);
	in->left -= len;
	if (placed && in->place && len >= in->place->head)
		r = take_head_of_string(in, len, &to, err);
	if (to)
		own = in->place->head;
	bytes = arena_alloc_raw(in->arena, own + 1);
	if (r == 0)
		r = take_bytes(in, bytes, own, err);
	if (r == 0 && to)
		r = take_bytes(in, to, len - own, err);
	if (r == 0)
		r = take_end(in, err);
	bytes[own] = '\0';
	*ret = str_n(bytes, own);
	return r;
}

static int parse(struct resp_in *in, unsigned depth, struct resp_value *ret, struct err *err);

static int take_items(struct resp_in *in, size_t count, unsigned depth, struct resp_value *ret, struct err *err)
{
	size_t cap = 0;

	if (depth >= RESP_DEPTH_MAX)
		return corrupt(err, "it is nested too deeply");
	ret->items = NULL;
	ret->count = 0;
	while (ret->count < count) {
		int r;

		if (in->items-- == 0) {
			in->items = 0;
			return err_set(err, ERR_TOO_LARGE, "the server's answer has more than %d values",
				       RESP_ITEMS_MAX);
		}
		ARENA_ROOM(in->arena, ret->items, ret->count, cap);
		r = parse(in, depth + 1, &ret->items[ret->count], err);
		if (r)
			return r;
		ret->count++;
	}
	return 0;
}

/* What the first byte of a line stands for, and the rest of the line. */
static int take_head(struct resp_in *in, char *ret_kind, struct str *ret_rest, int64_t *ret_number, struct err *err)
{
	struct str line = STR_NONE;
	int r = take_line(in, &line, err);

	if (r)
		return r;
	if (line.len == 0)
		return corrupt(err, "an empty line");
	*ret_kind = line.ptr[0];
	*ret_rest = str_from(line, 1);
	*ret_number = 0;
	if (memchr("$=!*%~>|:", *ret_kind, 9) && !str_to_i64(*ret_rest, ret_number))
		return corrupt(err, "a malformed number");
	if (memchr("$=!*%~>|", *ret_kind, 8) && (*ret_number < -1 || *ret_number > INT32_MAX))
		return corrupt(err, "an invalid length");
	return 0;
}

static int parse(struct resp_in *in, unsigned depth, struct resp_value *ret, struct err *err)
{
	struct str rest;
	int64_t number;
	char kind;
	int r;

	do {
		r = take_head(in, &kind, &rest, &number, err);
		if (r == 0 && kind == '|') /* attributes: nothing that we asked for */
			r = take_items(in, number < 0 ? 0 : (size_t)number * 2, depth, ret, err);
		if (r)
			return r;
	} while (kind == '|');
	*ret = (struct resp_value){.type = RESP_NULL};
	switch (kind) {
	case '+':
	case '-':
	case ',':
	case '(':
		ret->type = kind == '-' ? RESP_ERROR : RESP_STR;
		ret->s = arena_str(in->arena, rest);
		return 0;
	case ':':
		ret->type = RESP_INT;
		ret->i = number;
		return 0;
	case '#':
		ret->type = RESP_INT;
		ret->i = str_is(rest, "t");
		return ret->i || str_is(rest, "f") ? 0 : corrupt(err, "a malformed boolean");
	case '_':
		return rest.len ? corrupt(err, "a null followed by other bytes") : 0;
	case '$':
	case '=':
	case '!':
		if (number < 0)
			return 0;
		ret->type = kind == '!' ? RESP_ERROR : RESP_STR;
		return take_string(in, (size_t)number, depth == 0 && kind == '$', &ret->s, err);
	case '*':
	case '~':
	case '>':
	case '%':
		if (number < 0)
			return 0;
		ret->type = kind == '>' ? RESP_PUSH : RESP_ARRAY;
		return take_items(in, (size_t)number * (kind == '%' ? 2 : 1), depth, ret, err);
	}
	return corrupt(err, "an unknown type");
}

int resp_parse(struct resp_in *in, size_t max, struct resp_value *ret_value, struct err *err)
{
	in->left = max;
	in->items = RESP_ITEMS_MAX;
	return parse(in, 0, ret_value, err);
}

static const struct {
	const char *code;
	enum err_kind kind;
	bool retryable;
	const char *sentence; /* NULL: the server's own words */
} meanings[] = {
	{"WRONGPASS", ERR_UNAUTHENTICATED, false,
	 "Redis refused the user or the password; check the user in the URL and STEAD_REDIS_PASSWORD"},
	{"NOAUTH", ERR_UNAUTHENTICATED, false, "Redis requires a password; set STEAD_REDIS_PASSWORD"},
	{"NOPERM", ERR_DENIED, false,
	 "the Redis user may not do this; give it the commands and the key pattern that docs/stores.md names"},
	{"OOM", ERR_QUOTA, false,
	 "the Redis server is full; raise its maxmemory, or remove files (removing still works)"},
	{"READONLY", ERR_UNAVAILABLE, true, "this Redis server is a read-only replica; name the primary in the URL"},
	{"LOADING", ERR_UNAVAILABLE, true, "the Redis server is still loading its data; try again in a moment"},
	{"BUSY", ERR_UNAVAILABLE, true,
	 "the Redis server is busy with a script; try again, or end the script with SCRIPT KILL"},
	{"MISCONF", ERR_UNAVAILABLE, false,
	 "the Redis server cannot save to its disk and refuses writes; free space on its disk or correct its dir"},
	{"MASTERDOWN", ERR_UNAVAILABLE, true, "this Redis replica has lost its primary; name the primary in the URL"},
	{"NOREPLICAS", ERR_UNAVAILABLE, true, "the Redis server has fewer replicas than it requires for writes"},
	{"CLUSTERDOWN", ERR_UNAVAILABLE, true, "the Redis cluster is down; look at CLUSTER INFO"},
	{"TRYAGAIN", ERR_UNAVAILABLE, true, "the Redis cluster is moving these keys; try again"},
	{"MOVED", ERR_UNAVAILABLE, true, "the Redis cluster has moved these keys; try again"},
	{"ASK", ERR_UNAVAILABLE, true, "the Redis cluster is moving these keys; try again"},
	{"NOPROTO", ERR_UNSUPPORTED, false, "this server does not speak RESP3; Redis 6.2 or newer is needed"},
	{"WRONGTYPE", ERR_CORRUPT, false,
	 "another program already uses a key with this prefix; choose another prefix in the URL"},
};

int resp_error(struct str text, struct err *err)
{
	struct str code = str_first(text, str_find_char(text, ' ')), shown = utf8_first(text, 200);
	int r;

	for (size_t i = 0; i < COUNT(meanings); i++)
		if (str_is(code, meanings[i].code)) {
			r = err_set(err, meanings[i].kind, "%s", meanings[i].sentence);
			err->retryable = meanings[i].retryable;
			return r;
		}
	if (str_find(text, STR("DB index"), 0) != SIZE_MAX ||
	    str_find(text, STR("SELECT is not allowed"), 0) != SIZE_MAX)
		return err_set(err, ERR_INVALID,
			       "Redis has no such database; use a lower number in the URL (a cluster has only 0)");
	if (str_find(text, STR("max number of clients"), 0) != SIZE_MAX) {
		r = err_set(err, ERR_UNAVAILABLE, "the Redis server has too many clients; raise its maxclients");
		err->retryable = true;
		return r;
	}
	if (str_find(text, STR("unknown command"), 0) != SIZE_MAX)
		return err_set(err, ERR_UNSUPPORTED, "this server lacks a command; Redis 6.2 or newer is needed (%.*s)",
			       STR_ARG(shown));
	return err_set(err, ERR_UNAVAILABLE, "Redis answered: %.*s", STR_ARG(shown));
}
