/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a parser of our own: addresses are checked before a connection is made, and a check is worth something only if
 * the host that it looked at is the one that is connected to. So a URL is taken apart here, everything that is unclear
 * is refused, and the request is made from the parts. The host is also compared once more when the socket is opened
 * (net/http.h).
 */
#include "net/url.h"

#include <arpa/inet.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

#define HOST_MAX ((size_t)253)

static int refuse(struct err *err, struct str text, const char *why)
{
	bool shown = utf8_valid(text);

	for (size_t i = 0; i < text.len; i++)
		shown &= (unsigned char)text.ptr[i] >= 0x20 && text.ptr[i] != 0x7F;
	return err_set(err, ERR_INVALID, "the URL \"%.*s\" is not valid: %s",
		       STR_ARG(shown ? utf8_first(text, 120) : STR("…")), why);
}

/* The target may have what RFC 3986 allows in paths and queries; '%' only with two digits. */
static bool is_plain(struct str s, size_t i)
{
	unsigned char c = (unsigned char)s.ptr[i];

	if (c == '%')
		return i + 2 < s.len && strchr("0123456789abcdefABCDEF", s.ptr[i + 1]) && s.ptr[i + 1] &&
		       strchr("0123456789abcdefABCDEF", s.ptr[i + 2]) && s.ptr[i + 2];
	return c > 0x20 && c < 0x7F && !strchr("\"<>\\^`{|}", c);
}

static struct str clean_target(struct arena *arena, struct str target)
{
	struct buf out;

	target = str_first(target, str_find_char(target, '#'));
	buf_init(&out, arena, 3 * URL_LEN_MAX + 2);
	if (!target.len || target.ptr[0] != '/')
		buf_char(&out, '/');
	for (size_t i = 0; i < target.len; i++) {
		unsigned char c = (unsigned char)target.ptr[i];

		if (is_plain(target, i))
			buf_char(&out, (char)c);
		else
			buf_printf(&out, "%%%02X", c);
	}
	return buf_str(&out);
}

static bool is_v6_text(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("0123456789abcdefABCDEF:.", s.ptr[i]) || !s.ptr[i])
			return false;
	return s.len > 1 && s.len < 46;
}

static bool is_name(struct str s)
{
	if (str_starts(s, STR(".")) || str_ends(s, STR(".")) || str_find(s, STR(".."), 0) != SIZE_MAX)
		return false; /* an empty label */
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = ascii_lower((unsigned char)s.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_')
			return false;
	}
	return s.len > 0 && s.len <= HOST_MAX;
}

/* Whether the last label is a number, so that the whole host is meant as an IPv4 address. */
static bool ends_in_number(struct str host)
{
	size_t dot = str_rfind_char(host, '.');
	struct str label = dot < host.len ? str_from(host, dot + 1) : host;
	bool hex = str_starts(label, STR("0x"));

	label = str_from(label, hex ? 2 : 0);
	for (size_t i = 0; i < label.len; i++)
		if (!strchr(hex ? "0123456789abcdef" : "0123456789", label.ptr[i]))
			return false;
	return hex || label.len > 0;
}

/* A name loses the dot at its end, so that "host." and "host" are one host to every check. Numbers that are not an
   address would be asked of a name server, which may answer anything. */
static int take_name(struct arena *arena, struct str all, struct str name, struct url *url, struct err *err)
{
	struct in_addr address;

	if (name.len > 1 && name.ptr[name.len - 1] == '.')
		name.len--;
	url->host = str_lower(arena, name);
	if (!is_name(url->host))
		return refuse(err, all,
			      "the host may have letters, digits, '.', '-' and '_'; write other names as "
			      "xn--…");
	if (ends_in_number(url->host) && inet_aton(arena_cstr(arena, url->host), &address) == 0)
		return refuse(err, all, "the host ends in a number and is not an IPv4 address");
	return 0;
}

static int take_port(struct str all, struct str text, struct url *url, struct err *err)
{
	int64_t port;

	if (!text.len)
		return 0;
	if (text.ptr[0] != ':' || !str_to_i64(str_from(text, 1), &port) || port < 1 || port > 65535 ||
	    text.ptr[1] == '-')
		return refuse(err, all, "after the host comes a ':' and a port from 1 to 65535, or the path");
	url->port = (uint16_t)port;
	return 0;
}

static int take_host(struct arena *arena, struct str all, struct str authority, struct url *url, struct err *err)
{
	size_t end;
	int r;

	if (str_find_char(authority, '@') < authority.len)
		return err_set(err, ERR_INVALID,
			       "a URL with a user name or a password is not accepted; leave out what comes before the "
			       "'@'");
	if (authority.len && authority.ptr[0] == '[') {
		end = str_find_char(authority, ']');
		url->host = str_n(authority.ptr + 1, end - 1);
		if (end == authority.len || !is_v6_text(url->host))
			return refuse(err, all, "an IPv6 address is written as [2001:db8::1]");
		url->host = str_lower(arena, url->host);
		return take_port(all, str_from(authority, end + 1), url, err);
	}
	end = str_find_char(authority, ':');
	r = take_name(arena, all, str_first(authority, end), url, err);
	return r ? r : take_port(all, str_from(authority, end), url, err);
}

static int take_scheme(struct str *rest, struct str all, struct url *url, struct err *err)
{
	if (all.len >= 8 && str_eq_nocase(str_first(all, 8), STR("https://"))) {
		*url = (struct url){.tls = true, .port = 443};
		*rest = str_from(all, 8);
		return 0;
	}
	if (all.len >= 7 && str_eq_nocase(str_first(all, 7), STR("http://"))) {
		*url = (struct url){.port = 80};
		*rest = str_from(all, 7);
		return 0;
	}
	return refuse(err, all, "it must begin with http:// or https://");
}

int url_parse(struct arena *arena, struct str text, struct url *ret, struct err *err)
{
	struct str rest = STR_NONE;
	struct url url;
	size_t end = 0;
	int r;

	text = str_trim(text);
	if (text.len > URL_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the URL has %zu bytes; at most %zu are accepted", text.len,
			       URL_LEN_MAX);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F || text.ptr[i] == '\\')
			return refuse(err, text, "it has a control character or a backslash");
	r = take_scheme(&rest, text, &url, err);
	if (r)
		return r;
	while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?' && rest.ptr[end] != '#')
		end++;
	r = take_host(arena, text, str_first(rest, end), &url, err);
	if (r)
		return r;
	url.target = clean_target(arena, str_from(rest, end));
	*ret = url;
	return 0;
}

struct str url_format(struct arena *arena, const struct url *url)
{
	bool v6 = str_find_char(url->host, ':') < url->host.len;
	bool usual = url->port == (url->tls ? 443 : 80);
	struct str port = usual ? STR("") : arena_printf(arena, ":%u", url->port);

	return arena_printf(arena, "%s://%s%.*s%s%.*s%.*s", url->tls ? "https" : "http", v6 ? "[" : "",
			    STR_ARG(url->host), v6 ? "]" : "", STR_ARG(port), STR_ARG(url->target));
}

/* "a/b/../c/./d" without its dots; the query stays as it is. */
static struct str squash(struct arena *arena, struct str target)
{
	size_t path_len = str_find_char(target, '?');
	struct str path = str_first(target, path_len), rest = str_from(path, 1), part;
	struct buf out;

	buf_init(&out, arena, 6 * URL_LEN_MAX + 16);
	while (rest.ptr && str_cut(&rest, '/', &part)) {
		bool up = str_is(part, ".."), here = str_is(part, ".");

		if (up)
			out.len = out.len ? str_rfind_char(buf_str(&out), '/') : 0;
		if (!up && !here) {
			buf_char(&out, '/');
			buf_add(&out, part);
		}
		if (!rest.ptr && (up || here))
			buf_char(&out, '/');
	}
	if (!out.len)
		buf_char(&out, '/');
	buf_add(&out, str_from(target, path_len));
	return buf_str(&out);
}

static bool has_scheme(struct str s)
{
	size_t colon = str_find_char(s, ':');

	for (size_t i = 0; i < colon; i++) {
		unsigned char c = ascii_lower((unsigned char)s.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !(i && ((c >= '0' && c <= '9') || strchr("+-.", c))))
			return false;
	}
	return colon > 0 && colon < s.len;
}

int url_join(struct arena *arena, const struct url *base, struct str reference, struct url *ret, struct err *err)
{
	struct str ref = str_trim(reference), path, dir;
	struct url url = *base;

	if (ref.len > URL_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the URL has %zu bytes; at most %zu are accepted", ref.len,
			       URL_LEN_MAX);
	if (has_scheme(ref))
		return url_parse(arena, ref, ret, err);
	for (size_t i = 0; i < ref.len; i++)
		if ((unsigned char)ref.ptr[i] < 0x20 || ref.ptr[i] == 0x7F || ref.ptr[i] == '\\')
			return refuse(err, ref, "it has a control character or a backslash");
	if (str_starts(ref, STR("//")))
		return url_parse(arena, arena_printf(arena, "%s:%.*s", base->tls ? "https" : "http", STR_ARG(ref)), ret,
				 err);
	path = str_first(base->target, str_find_char(base->target, '?'));
	dir = str_first(path, str_rfind_char(path, '/') + 1);
	if (!ref.len || ref.ptr[0] == '#')
		url.target = base->target;
	else if (ref.ptr[0] == '?')
		url.target = arena_printf(arena, "%.*s%.*s", STR_ARG(path), STR_ARG(ref));
	else if (ref.ptr[0] == '/')
		url.target = ref;
	else
		url.target = arena_printf(arena, "%.*s%.*s", STR_ARG(dir), STR_ARG(ref));
	if (url.target.len > 2 * URL_LEN_MAX)
		return err_set(err, ERR_TOO_LARGE, "the URL has more than %zu bytes", 2 * URL_LEN_MAX);
	url.target = str_first(url.target, str_find_char(url.target, '#'));
	url.target = clean_target(arena, squash(arena, url.target));
	*ret = url;
	return 0;
}
