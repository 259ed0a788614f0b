/* SPDX-License-Identifier: Apache-2.0 */
#include "server/parse.h"

#include "base/hex.h"
#include "base/limits.h"

static bool parse_port(struct str text, uint16_t *ret)
{
	int64_t port;

	if (!str_to_i64(text, &port) || port < 0 || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

int listen_parse(struct str text, struct str *ret_host, uint16_t *ret_port, struct err *err)
{
	struct str host = host_name(text), port = STR_NONE;

	if (parse_port(text, ret_port)) {
		*ret_host = STR("127.0.0.1");
		return 0;
	}
	if (text.len && text.ptr[0] == ':')
		host = STR("127.0.0.1");
	if (text.len && text.ptr[text.len - 1] != ']')
		port = str_from(text, str_rfind_char(text, ':') + 1);
	if (!host.ptr || !host.len || !parse_port(port, ret_port))
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" is not an address to listen on; write HOST:PORT, such as 127.0.0.1:7777",
			       STR_ARG(utf8_first(text, 100)));
	*ret_host = host;
	return 0;
}

bool host_is_loopback(struct str host)
{
	if (str_eq_nocase(host, STR("localhost")) || str_is(host, "::1"))
		return true;
	/* 127.0.0.0/8, and nothing that merely begins so */
	if (!str_starts(host, STR("127.")))
		return false;
	for (size_t i = 0; i < host.len; i++)
		if (host.ptr[i] != '.' && (host.ptr[i] < '0' || host.ptr[i] > '9'))
			return false;
	return true;
}

struct str host_name(struct str host)
{
	struct str name = host, rest;
	uint16_t ignored;

	if (host.len && host.ptr[0] == '[') {
		size_t end = str_find_char(host, ']');

		name = str_first(str_from(host, 1), end - 1);
		rest = str_from(host, end + 1);
		if (end == host.len)
			return STR_NONE;
	} else {
		size_t colon = str_find_char(host, ':');

		name = str_first(host, colon);
		rest = str_from(host, colon);
	}
	if (rest.len && (rest.ptr[0] != ':' || (rest.len > 1 && !parse_port(str_from(rest, 1), &ignored))))
		return STR_NONE;
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] <= ' ' || name.ptr[i] == '/' || name.ptr[i] == '@' || name.ptr[i] >= 0x7f)
			return STR_NONE;
	return name;
}

struct str origin_host(struct str origin)
{
	struct str host = STR_NONE;

	if (str_starts(origin, STR("http://")))
		host = str_from(origin, 7);
	else if (str_starts(origin, STR("https://")))
		host = str_from(origin, 8);
	return host.len && host_name(host).len ? host : STR_NONE;
}

/* --- queries --- */

static struct str decode(struct arena *arena, struct str text)
{
	struct str plain = arena_str(arena, text);

	for (size_t i = 0; i < plain.len; i++)
		if (plain.ptr[i] == '+')
			((char *)plain.ptr)[i] = ' ';
	return percent_decode(arena, plain);
}

int query_get(struct arena *arena, struct str query, const char *name, struct str *ret, bool *ret_found,
	      struct err *err)
{
	struct str part;

	*ret = STR("");
	*ret_found = false;
	while (str_cut(&query, '&', &part)) {
		size_t eq = str_find_char(part, '=');

		if (!str_is(str_first(part, eq), name))
			continue;
		if (*ret_found)
			return err_set(err, ERR_INVALID, "the query has \"%s\" more than once", name);
		*ret_found = true;
		*ret = decode(arena, str_from(part, eq + 1));
		if (!ret->ptr || !utf8_valid(*ret) || memchr(ret->ptr, 0, ret->len))
			return err_set(err, ERR_INVALID, "the value of \"%s\" in the query is not encoded text", name);
	}
	return 0;
}

int query_number(struct arena *arena, struct str query, const char *name, uint64_t max, uint64_t *ret, struct err *err)
{
	struct str text;
	int64_t n;
	bool found;
	int r = query_get(arena, query, name, &text, &found, err);

	if (r || !found)
		return r;
	if (!str_to_i64(text, &n) || n < 0 || (uint64_t)n > max)
		return err_set(err, ERR_INVALID, "\"%s\" in the query must be a number from 0 to %llu", name,
			       (unsigned long long)max);
	*ret = (uint64_t)n;
	return 0;
}

int query_flag(struct arena *arena, struct str query, const char *name, bool *ret, struct err *err)
{
	struct str text;
	bool found;
	int r = query_get(arena, query, name, &text, &found, err);

	*ret = found && (text.len == 0 || str_is(text, "true") || str_is(text, "1"));
	if (r == 0 && found && !*ret && !str_is(text, "false") && !str_is(text, "0"))
		r = err_set(err, ERR_INVALID, "\"%s\" in the query must be true or false", name);
	return r;
}

int query_check(struct str query, const char *known, struct err *err)
{
	struct str part, rest, word;

	while (str_cut(&query, '&', &part)) {
		struct str name = str_first(part, str_find_char(part, '='));
		bool found = part.len == 0;

		for (rest = str_of(known); str_cut(&rest, ' ', &word);)
			found |= word.len && str_eq(word, name);
		if (!found)
			return err_set(err, ERR_INVALID, "the query has an unknown parameter \"%.*s\"%s%s",
				       STR_ARG(utf8_first(name, 60)), *known ? "; it may have: " : "", known);
	}
	return 0;
}

int target_path(struct arena *arena, struct str raw, struct wpath *ret, struct err *err)
{
	struct str text = percent_decode(arena, raw);

	if (!text.ptr || memchr(text.ptr, 0, text.len))
		return err_set(err, ERR_INVALID,
			       "the path of the target is not encoded correctly; percent-encode it as UTF-8");
	return wpath_parse(text, ret, err);
}

/* --- ranges and tags --- */

static bool parse_u64(struct str text, uint64_t *ret)
{
	int64_t n;

	if (!text.len || text.ptr[0] == '-' || !str_to_i64(text, &n))
		return false;
	*ret = (uint64_t)n;
	return true;
}

enum range_kind range_parse(struct str header, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length)
{
	struct str spec = str_trim(str_from(header, 6)), first, last;
	uint64_t from, to = UINT64_MAX;
	size_t dash = str_find_char(spec, '-');

	*ret_offset = 0;
	*ret_length = size;
	if (!str_eq_nocase(str_first(header, 6), STR("bytes=")) || dash == spec.len)
		return RANGE_WHOLE;
	first = str_trim(str_first(spec, dash));
	last = str_trim(str_from(spec, dash + 1));
	if (!first.len) { /* the last so many */
		if (!parse_u64(last, &to))
			return RANGE_WHOLE;
		if (to == 0 || size == 0)
			return RANGE_BEYOND;
		*ret_length = to < size ? to : size;
		*ret_offset = size - *ret_length;
		return RANGE_PART;
	}
	if (!parse_u64(first, &from) || (last.len && !parse_u64(last, &to)) || to < from)
		return RANGE_WHOLE;
	if (from >= size)
		return RANGE_BEYOND;
	*ret_offset = from;
	*ret_length = to < size ? to - from + 1 : size - from;
	return RANGE_PART;
}

/* The next tag of a list with its mark of weakness; false: the list is used up or malformed. */
static bool next_tag(struct str *rest, struct str *ret_tag, bool *ret_weak)
{
	size_t end;

	*rest = str_trim(*rest);
	while (rest->len && rest->ptr[0] == ',')
		*rest = str_trim(str_from(*rest, 1));
	*ret_weak = str_starts(*rest, STR("W/"));
	if (*ret_weak)
		*rest = str_from(*rest, 2);
	if (!rest->len || rest->ptr[0] != '"')
		return false;
	*rest = str_from(*rest, 1);
	end = str_find_char(*rest, '"');
	if (end == rest->len)
		return false;
	*ret_tag = str_first(*rest, end);
	*rest = str_from(*rest, end + 1);
	return true;
}

bool etag_matches(struct str header, struct str version, bool weak)
{
	struct str tag;
	bool is_weak;

	if (str_is(str_trim(header), "*"))
		return true;
	while (next_tag(&header, &tag, &is_weak))
		if ((weak || !is_weak) && str_eq(tag, version))
			return true;
	return false;
}

struct str etag_single(struct str header)
{
	struct str tag, more;
	bool is_weak;

	if (!next_tag(&header, &tag, &is_weak) || is_weak || next_tag(&header, &more, &is_weak) || header.len)
		return STR_NONE;
	return tag;
}

struct str bearer_token(struct str header)
{
	struct str token;

	if (header.len < 7 || !str_eq_nocase(str_first(header, 7), STR("Bearer ")))
		return STR_NONE;
	token = str_trim(str_from(header, 7));
	return token.len ? token : STR_NONE;
}

const char *content_type(struct str name)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{".md", "text/markdown; charset=utf-8"},
		{".txt", "text/plain; charset=utf-8"},
		{".log", "text/plain; charset=utf-8"},
		{".c", "text/plain; charset=utf-8"},
		{".h", "text/plain; charset=utf-8"},
		{".py", "text/plain; charset=utf-8"},
		{".sh", "text/plain; charset=utf-8"},
		{".json", "application/json"},
		{".jsonl", "application/jsonl"},
		{".yaml", "application/yaml"},
		{".yml", "application/yaml"},
		{".csv", "text/csv; charset=utf-8"},
		{".html", "text/html; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".js", "text/javascript; charset=utf-8"},
		{".xml", "application/xml"},
		{".pdf", "application/pdf"},
		{".png", "image/png"},
		{".jpg", "image/jpeg"},
		{".jpeg", "image/jpeg"},
		{".gif", "image/gif"},
		{".svg", "image/svg+xml"},
		{".webp", "image/webp"},
		{".mp3", "audio/mpeg"},
		{".wav", "audio/wav"},
		{".ogg", "audio/ogg"},
		{".mp4", "video/mp4"},
		{".webm", "video/webm"},
		{".zip", "application/zip"},
		{".tar", "application/x-tar"},
		{".gz", "application/gzip"},
	};
	struct str end = str_from(name, str_rfind_char(name, '.'));

	for (size_t i = 0; end.len && i < COUNT(types); i++)
		if (str_eq_nocase(end, str_of(types[i].end)))
			return types[i].type;
	return "application/octet-stream";
}
