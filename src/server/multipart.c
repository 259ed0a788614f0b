/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body is parsed whole, in place: the parts are slices of it. A body that does not fit into memory is mapped from its
 * file by the caller, so a large one costs address space and no copy.
 */
#include "server/multipart.h"

#include <string.h>

#include "base/limits.h"

#define BOUNDARY_MAX 70 /* RFC 2046 */

/* The value of `; name=value` or `; name="value"` in a header. */
static struct str parameter(struct arena *arena, struct str header, const char *name)
{
	size_t at = str_find_char(header, ';');

	while (at < header.len) {
		struct str rest = str_trim(str_from(header, at + 1)), key, value;
		size_t eq = str_find_char(rest, '='), end;

		key = str_trim(str_first(rest, eq));
		value = str_from(rest, eq + 1);
		if (value.len && value.ptr[0] == '"') {
			char *copy = arena_alloc_raw(arena, value.len);
			size_t n = 0;

			for (end = 1; end < value.len && value.ptr[end] != '"'; end++) {
				if (value.ptr[end] == '\\' && end + 1 < value.len)
					end++;
				copy[n++] = value.ptr[end];
			}
			at = (size_t)(value.ptr - header.ptr) + end + 1;
			at += str_find_char(str_from(header, at), ';');
			value = str_n(copy, n);
		} else {
			end = str_find_char(value, ';');
			at = value.ptr ? (size_t)(value.ptr - header.ptr) + end : header.len;
			value = str_trim(str_first(value, end));
		}
		if (eq < rest.len && str_eq_nocase(key, str_of(name)))
			return value;
	}
	return STR_NONE;
}

struct str multipart_boundary(struct arena *arena, struct str content_type)
{
	struct str type = str_trim(str_first(content_type, str_find_char(content_type, ';'))), boundary;

	if (!str_eq_nocase(type, STR("multipart/form-data")))
		return STR_NONE;
	boundary = parameter(arena, content_type, "boundary");
	return boundary.len && boundary.len <= BOUNDARY_MAX ? boundary : STR_NONE;
}

static int malformed(struct err *err)
{
	return err_set(err, ERR_INVALID, "the body of the request is not well-formed multipart/form-data");
}

/* The header lines of a part; returns where its bytes begin, or SIZE_MAX. */
static size_t parse_head(struct arena *arena, struct str text, struct part *part)
{
	size_t at = 0;

	for (;;) {
		struct str line = str_from(text, at), name, value;
		size_t end = str_find(line, STR("\r\n"), 0), colon;

		if (end == SIZE_MAX || at > HTTP_REQUEST_HEAD_MAX)
			return SIZE_MAX;
		line = str_first(line, end);
		at += end + 2;
		if (!line.len)
			return at;
		colon = str_find_char(line, ':');
		name = str_first(line, colon);
		value = str_trim(str_from(line, colon + 1));
		if (str_eq_nocase(name, STR("Content-Disposition"))) {
			part->name = parameter(arena, value, "name");
			part->filename = parameter(arena, value, "filename");
		} else if (str_eq_nocase(name, STR("Content-Type"))) {
			part->type = value;
		}
	}
}

int multipart_parse(struct arena *arena, struct str body, struct str boundary, struct part **ret, size_t *ret_count,
		    struct err *err)
{
	struct str mark = arena_printf(arena, "\r\n--%.*s", STR_ARG(boundary));
	struct part *parts = NULL;
	size_t count = 0, cap = 0, at;

	if (!str_starts(body, str_from(mark, 2))) { /* what comes before the first boundary does not count */
		at = str_find(body, mark, 0);
		if (at == SIZE_MAX)
			return malformed(err);
		at += mark.len;
	} else {
		at = mark.len - 2;
	}
	while (!str_starts(str_from(body, at), STR("--"))) {
		struct part part = {0};
		size_t begin, end;

		if (!str_starts(str_from(body, at), STR("\r\n")))
			return malformed(err);
		at += 2;
		begin = parse_head(arena, str_from(body, at), &part);
		end = begin == SIZE_MAX ? SIZE_MAX : str_find(body, mark, at + begin - 2);
		if (end == SIZE_MAX || !part.name.ptr)
			return malformed(err);
		if (count == MULTIPART_PARTS_MAX)
			return err_set(err, ERR_TOO_LARGE, "the request has more than %d parts", MULTIPART_PARTS_MAX);
		part.bytes = end < at + begin ? STR("") : str_n(body.ptr + at + begin, end - at - begin);
		ARENA_ROOM(arena, parts, count, cap);
		parts[count++] = part;
		at = end + mark.len;
	}
	*ret = parts;
	*ret_count = count;
	return 0;
}
