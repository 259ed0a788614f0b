/* SPDX-License-Identifier: Apache-2.0 */
#include "store/wpath.h"

#include "base/limits.h"

bool wpath_name_ok(struct str name)
{
	if (name.len == 0 || name.len > PATH_NAME_MAX || str_is(name, ".") || str_is(name, ".."))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c < 0x20 || c == 0x7F || c == '/')
			return false;
	}
	return utf8_valid(name);
}

static int bad_name(struct str text, struct str name, struct err *err)
{
	if (str_is(name, ".."))
		return err_set(err, ERR_INVALID,
			       "the path \"%.*s\" has a \"..\" element; name the file from the root instead",
			       STR_ARG(text));
	if (name.len == 0 || str_is(name, "."))
		return err_set(err, ERR_INVALID, "the path \"%.*s\" has an empty or \".\" element; leave it out",
			       STR_ARG(text));
	if (name.len > PATH_NAME_MAX)
		return err_set(err, ERR_INVALID, "the path has an element of %zu bytes; at most %zu are allowed",
			       name.len, PATH_NAME_MAX);
	return err_set(err, ERR_INVALID, "the path \"%.*s\" has a control character or is not UTF-8; rename it",
		       STR_ARG(text));
}

static int check_len(struct str text, struct err *err)
{
	if (text.len > PATH_LEN_MAX)
		return err_set(err, ERR_INVALID, "the path has %zu bytes; at most %zu are allowed", text.len,
			       PATH_LEN_MAX);
	return 0;
}

int wpath_parse(struct str text, struct wpath *ret, struct err *err)
{
	struct str rest = text, name;
	int r = check_len(text, err);

	if (r)
		return r;
	if (text.len == 0) {
		*ret = WPATH_ROOT;
		return 0;
	}
	while (str_cut(&rest, '/', &name))
		if (!wpath_name_ok(name))
			return bad_name(text, name, err);
	ret->s = text;
	return 0;
}

int wpath_parse_lenient(struct arena *arena, struct str text, struct wpath *ret, struct err *err)
{
	struct str rest = text, name;
	size_t len = 0;
	char *out;
	int r;

	if (text.len > 2 * PATH_LEN_MAX)
		return check_len(text, err);
	out = arena_alloc_raw(arena, text.len + 1);
	while (str_cut(&rest, '/', &name)) {
		if (name.len == 0 || str_is(name, "."))
			continue;
		if (!wpath_name_ok(name))
			return bad_name(text, name, err);
		if (len)
			out[len++] = '/';
		memcpy(out + len, name.ptr, name.len);
		len += name.len;
	}
	r = check_len(str_n(out, len), err);
	if (r)
		return r;
	ret->s = str_n(out, len);
	return 0;
}

struct str wpath_name(struct wpath p)
{
	size_t at = str_rfind_char(p.s, '/');

	return at < p.s.len ? str_from(p.s, at + 1) : p.s;
}

struct wpath wpath_parent(struct wpath p)
{
	size_t at = str_rfind_char(p.s, '/');

	return at < p.s.len ? (struct wpath){str_first(p.s, at)} : WPATH_ROOT;
}

bool wpath_within(struct wpath p, struct wpath dir)
{
	return dir.s.len == 0 || (str_starts(p.s, dir.s) && (p.s.len == dir.s.len || p.s.ptr[dir.s.len] == '/'));
}

struct wpath wpath_relative(struct wpath p, struct wpath dir)
{
	return (struct wpath){str_from(p.s, dir.s.len ? dir.s.len + 1 : 0)};
}

int wpath_join(struct arena *arena, struct wpath dir, struct wpath p, struct wpath *ret, struct err *err)
{
	size_t len = dir.s.len + (dir.s.len && p.s.len) + p.s.len;
	char *out;

	if (len > PATH_LEN_MAX)
		return err_set(err, ERR_INVALID, "the path has %zu bytes with its directory; at most %zu are allowed",
			       len, PATH_LEN_MAX);
	out = arena_alloc_raw(arena, len + 1);
	if (dir.s.len)
		memcpy(out, dir.s.ptr, dir.s.len);
	if (dir.s.len && p.s.len)
		out[dir.s.len] = '/';
	if (p.s.len)
		memcpy(out + len - p.s.len, p.s.ptr, p.s.len);
	out[len] = '\0';
	ret->s = str_n(out, len);
	return 0;
}
