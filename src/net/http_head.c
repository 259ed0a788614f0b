/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_head.h"

#define METHOD_MAX     20
#define LENGTH_DIGITS  18
#define CHUNK_DIGITS   15
#define CHUNK_LINE_MAX 256
#define TRAILER_MAX    (16 * (size_t)1024)

static enum head_state bad(struct http_head *head, const char *why)
{
	head->reason_bad = why;
	return HEAD_BAD;
}

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("!#$%&'*+-.^_`|~", c))))
			return false;
	}
	return s.len > 0;
}

/* Printable, also what is beyond ASCII; blanks and tabs only where `blanks`. */
static bool is_text(struct str s, bool blanks)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c == 0x7F || (c < ' ' && !(blanks && c == '\t')) || (c == ' ' && !blanks))
			return false;
	}
	return true;
}

static struct str trim(struct str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
		s = str_from(s, 1);
	while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* --- lines --- */

/* Where the empty line ends; 0: it has not come. */
static size_t find_end(struct str bytes)
{
	size_t at = str_find(bytes, STR("\r\n\r\n"), 0);

	return at == SIZE_MAX ? 0 : at + 4;
}

/* The next line without its CR LF. False: it ends otherwise. */
static bool next_line(struct str *rest, struct str *ret)
{
	size_t at = str_find_char(*rest, '\n');

	if (at >= rest->len || at == 0 || rest->ptr[at - 1] != '\r')
		return false;
	*ret = str_first(*rest, at - 1);
	*rest = str_from(*rest, at + 1);
	return memchr(ret->ptr, '\r', ret->len) == NULL;
}

static bool read_length(struct str value, uint64_t *ret)
{
	*ret = 0;
	if (!value.len || value.len > LENGTH_DIGITS)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] < '0' || value.ptr[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(value.ptr[i] - '0');
	}
	return true;
}

/* True when the list has the word. */
static bool list_has(struct str list, const char *word)
{
	struct str part;

	while (str_cut(&list, ',', &part))
		if (str_eq_nocase(trim(part), str_of(word)))
			return true;
	return false;
}

/* Fields that decide where the message ends and whom it is for. NULL: it is in order. */
static const char *read_framing(struct http_head *head, struct str name, struct str value)
{
	if (str_eq_nocase(name, STR("content-length"))) {
		if (head->has_length || !read_length(value, &head->length))
			return "it has two lengths, or a length that is not a number";
		head->has_length = true;
	} else if (str_eq_nocase(name, STR("transfer-encoding"))) {
		if (head->is_chunked || !str_eq_nocase(value, STR("chunked")) || head->minor == 0)
			return "its transfer encoding is not \"chunked\"";
		head->is_chunked = true;
	} else if (str_eq_nocase(name, STR("host")) && head->method.len) {
		if (head->host.ptr || !value.len || !is_text(value, false))
			return "it has two hosts, or an empty one";
		head->host = value;
	} else if (str_eq_nocase(name, STR("connection"))) {
		head->wants_close |= list_has(value, "close");
	}
	return NULL;
}

static enum head_state read_fields(struct str rest, struct http_head *head)
{
	struct str line;

	for (;;) {
		size_t colon;
		struct str name, value;
		const char *why;

		if (!next_line(&rest, &line))
			return bad(head, "a line of its head does not end with CR LF");
		if (!line.len)
			break;
		colon = str_find_char(line, ':');
		name = str_first(line, colon);
		if (colon >= line.len || !is_token(name))
			return bad(head, "a line of its head is not a field");
		value = trim(str_from(line, colon + 1));
		if (!is_text(value, true))
			return bad(head, "a field has a control character");
		if (head->count == HEAD_FIELDS_MAX)
			return bad(head, "it has too many fields");
		head->fields[head->count++] = (struct head_field){name, value};
		why = read_framing(head, name, value);
		if (why)
			return bad(head, why);
	}
	if (head->has_length && head->is_chunked)
		return bad(head, "it has both a length and a transfer encoding");
	return HEAD_DONE;
}

static bool read_version(struct str text, struct http_head *head)
{
	head->minor = str_is(text, "HTTP/1.1") ? 1 : 0;
	return head->minor || str_is(text, "HTTP/1.0");
}

/* The head is whole, or what is wrong with what has come. */
static enum head_state begin(struct str bytes, struct http_head *ret, struct str *ret_line, struct str *ret_rest)
{
	*ret = (struct http_head){0};
	ret->len = find_end(str_first(bytes, HEAD_BYTES_MAX));
	if (!ret->len)
		return bytes.len >= HEAD_BYTES_MAX ? bad(ret, "its head is too large") : HEAD_MORE;
	*ret_rest = str_first(bytes, ret->len);
	return next_line(ret_rest, ret_line) ? HEAD_DONE : bad(ret, "its first line does not end with CR LF");
}

/* --- requests --- */

/* "http://host/path" becomes "/path"; *ret_host gets the host. */
static bool cut_absolute(struct http_head *head, struct str *ret_host)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < COUNT(schemes); i++) {
		struct str scheme = str_of(schemes[i]), rest;
		size_t end;

		if (!str_eq_nocase(str_first(head->target, scheme.len), scheme))
			continue;
		rest = str_from(head->target, scheme.len);
		end = 0;
		while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?')
			end++;
		*ret_host = str_first(rest, end);
		head->target = end < rest.len ? str_from(rest, end) : STR("/");
		return ret_host->len && head->target.ptr[0] == '/';
	}
	return false;
}

enum head_state http_head_request(struct str bytes, struct http_head *ret)
{
	struct str line, rest, named = STR_NONE, version;
	enum head_state state = begin(bytes, ret, &line, &rest);
	size_t one, two;

	if (state != HEAD_DONE)
		return state;
	one = str_find_char(line, ' ');
	two = str_rfind_char(line, ' ');
	if (one >= line.len || one == two)
		return bad(ret, "its first line is not a request");
	ret->method = str_first(line, one);
	ret->target = str_n(line.ptr + one + 1, two - one - 1);
	version = str_from(line, two + 1);
	if (!is_token(ret->method) || ret->method.len > METHOD_MAX || !ret->target.len || !is_text(ret->target, false))
		return bad(ret, "its first line is not a request");
	if (!read_version(version, ret))
		return bad(ret, "its version is not HTTP/1.1");
	if (str_eq_nocase(ret->method, STR("CONNECT")))
		return bad(ret, "CONNECT is not supported");
	if (ret->target.ptr[0] != '/' && !str_is(ret->target, "*") && !cut_absolute(ret, &named))
		return bad(ret, "its target is not a path");
	if (memchr(ret->target.ptr, '#', ret->target.len))
		return bad(ret, "its target has a fragment");
	state = read_fields(rest, ret);
	if (state == HEAD_DONE && !ret->host.ptr)
		return bad(ret, "it names no host");
	if (state == HEAD_DONE && named.ptr && !str_eq_nocase(named, ret->host))
		return bad(ret, "its target and its Host field name two hosts");
	return state;
}

enum head_state http_head_answer(struct str bytes, struct http_head *ret)
{
	struct str line, rest;
	enum head_state state = begin(bytes, ret, &line, &rest);
	uint64_t status;

	if (state != HEAD_DONE)
		return state;
	if (line.len < 12 || line.ptr[8] != ' ' || !read_version(str_first(line, 8), ret) ||
	    !read_length(str_n(line.ptr + 9, 3), &status) || status < 100 || status > 599 ||
	    (line.len > 12 && line.ptr[12] != ' ') || !is_text(str_from(line, 12), true))
		return bad(ret, "its first line is not an answer");
	ret->status = (int)status;
	ret->reason = str_from(line, 13);
	return read_fields(rest, ret);
}

struct str http_head_find(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->count; i++)
		if (str_eq_nocase(head->fields[i].name, str_of(name)))
			return head->fields[i].value;
	return STR_NONE;
}

bool http_head_is_hop(struct str name)
{
	static const char *const hops[] = {"connection",
					   "keep-alive",
					   "proxy-connection",
					   "proxy-authenticate",
					   "proxy-authorization",
					   "te",
					   "trailer",
					   "transfer-encoding",
					   "upgrade",
					   "expect"};

	for (size_t i = 0; i < COUNT(hops); i++)
		if (str_eq_nocase(name, str_of(hops[i])))
			return true;
	return false;
}

/* --- chunks --- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static void size_char(struct http_chunks *c, char ch)
{
	int digit = hex_digit(ch);
	bool fits = ++c->line <= CHUNK_LINE_MAX;

	if (fits && c->saw_cr) {
		c->state = ch != '\n' || !c->digits ? CHUNK_BAD : c->left ? CHUNK_DATA : CHUNK_TRAILER;
		c->saw_cr = c->in_extension = false;
		c->line = 0;
	} else if (fits && ch == '\r') {
		c->saw_cr = true;
	} else if (fits && c->in_extension) {
		if (ch == '\n')
			c->state = CHUNK_BAD;
	} else if (fits && digit >= 0 && c->digits < CHUNK_DIGITS) {
		c->left = c->left << 4 | (unsigned)digit;
		c->digits++;
	} else if (fits && ch == ';' && c->digits) {
		c->in_extension = true;
	} else {
		c->state = CHUNK_BAD;
	}
}

static void data_end_char(struct http_chunks *c, char ch)
{
	if (!c->saw_cr && ch == '\r') {
		c->saw_cr = true;
	} else if (c->saw_cr && ch == '\n') {
		*c = (struct http_chunks){.state = CHUNK_SIZE};
	} else {
		c->state = CHUNK_BAD;
	}
}

static void trailer_char(struct http_chunks *c, char ch)
{
	bool fits = ++c->trailer <= TRAILER_MAX;

	if (fits && c->saw_cr) {
		c->state = ch != '\n' ? CHUNK_BAD : c->line == 0 ? CHUNK_OVER : CHUNK_TRAILER;
		c->saw_cr = false;
		c->line = 0;
	} else if (fits && ch == '\r') {
		c->saw_cr = true;
	} else if (fits && ch != '\n') {
		c->line++;
	} else {
		c->state = CHUNK_BAD;
	}
}

void http_chunks_take(struct http_chunks *chunks, struct str *rest, struct str *ret_data)
{
	*ret_data = STR_NONE;
	while (rest->len && chunks->state != CHUNK_OVER && chunks->state != CHUNK_BAD) {
		char ch = rest->ptr[0];

		if (chunks->state == CHUNK_DATA) {
			*ret_data = str_first(*rest, chunks->left < rest->len ? (size_t)chunks->left : rest->len);
			*rest = str_from(*rest, ret_data->len);
			chunks->left -= ret_data->len;
			if (!chunks->left)
				chunks->state = CHUNK_DATA_END;
			return;
		}
		*rest = str_from(*rest, 1);
		if (chunks->state == CHUNK_SIZE)
			size_char(chunks, ch);
		else if (chunks->state == CHUNK_DATA_END)
			data_end_char(chunks, ch);
		else
			trailer_char(chunks, ch);
	}
}
