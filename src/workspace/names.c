/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of workspaces, and names of people as path elements.
 *
 * A user called "a/b", "A_B", "con" or ".." must get a separate partition, on every file system that a workspace may be
 * copied to. So a name is encoded, never cleaned: small letters, digits, '-', '_' and inner '.' stand for themselves,
 * every other byte is '~' and two hex digits. That can be read back, so two names cannot become one; it has no capital
 * letters, so a file system that ignores case cannot make them one either.
 *
 * What gets too long for a path element is cut, and "~~" and the SHA-256 of the whole follow ("~~" cannot come from the
 * rule above). A fast hash would not do: tenants may choose their own names, and could choose one that collides.
 *
 * Ids of agents and sessions keep their capital letters, so that agents/MyAgent/ is where other systems have it. Users
 * do not: on a file system that ignores case, two ids that differ in nothing else are one conversation, but never two
 * users' conversation.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "workspace/workspace.h"

#define PLAIN_MAX 200
#define CUT_AT    120

bool workspace_name_ok(struct str name)
{
	if (name.len < 2 || name.len > 64 || name.ptr[0] < 'a' || name.ptr[0] > 'z')
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* --- encoding --- */

/* Names that some systems keep for devices, also with an extension. */
static bool is_device(struct str name)
{
	static const char *const devices[] = {"con", "prn", "aux", "nul"};
	struct str stem = str_first(name, str_find_char(name, '.')), begin = str_first(stem, 3);

	for (size_t i = 0; i < COUNT(devices); i++)
		if (str_eq_nocase(stem, str_of(devices[i])))
			return true;
	return stem.len == 4 && (str_eq_nocase(begin, STR("com")) || str_eq_nocase(begin, STR("lpt"))) &&
	       stem.ptr[3] >= '0' && stem.ptr[3] <= '9';
}

static bool stands_for_itself(struct str name, size_t i, bool capitals)
{
	char c = name.ptr[i];

	if (c == '.')
		return i > 0 && i + 1 < name.len;
	if (i == 0 && is_device(name))
		return false;
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       (capitals && c >= 'A' && c <= 'Z');
}

static struct str encode(struct arena *arena, struct str name, bool capitals)
{
	struct buf b;
	size_t cut = 0;

	if (name.len == 0)
		return STR("~");
	buf_init(&b, arena, PATH_NAME_MAX);
	for (size_t i = 0; i < name.len && b.len <= PLAIN_MAX; i++) {
		if (stands_for_itself(name, i, capitals))
			buf_char(&b, name.ptr[i]);
		else
			buf_printf(&b, "~%02x", (unsigned char)name.ptr[i]);
		if (b.len <= CUT_AT)
			cut = b.len;
	}
	if (b.len > PLAIN_MAX) {
		b.len = cut;
		buf_lit(&b, "~~");
		buf_add(&b, sha256_hex(arena, name));
	}
	return buf_str(&b);
}

struct str workspace_encode_name(struct arena *arena, struct str name)
{
	return encode(arena, name, false);
}

struct str workspace_encode_id(struct arena *arena, struct str id)
{
	return encode(arena, id, true);
}
