/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a manifest is lines, because a person may have to look at one and a line is cheap to parse:
 *
 *	stead-snapshot 1
 *	p HASH SIZE                                      a pack; numbered from 0 in this order
 *	f MODE MTIME SIZE HASH PACK OFFSET PATH
 *	d MODE OPAQUE PATH
 *	l MTIME TARGET PATH
 *	w PATH                                           deleted: a file of the workspace does not show through
 *
 * Paths and targets are any bytes but NUL; those that are not printable ASCII, and '%', are %XX. The text comes from a
 * store that others may write to, so nothing in it is trusted: every number has a limit, paths must be sorted and must
 * stay below their directory, and a file must be inside its pack.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "sandbox/snapshot_internal.h"

#define HEADER   "stead-snapshot 1"
#define HASH_LEN 64

/* --- text --- */

static void add_escaped(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c > ' ' && c < 0x7f && c != '%')
			buf_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool unescape(struct arena *arena, struct str s, struct str *ret)
{
	char *out;
	size_t n = 0;

	*ret = s;
	if (str_find_char(s, '%') == s.len)
		return true;
	out = arena_alloc_raw(arena, s.len + 1);
	for (size_t i = 0; i < s.len; i++) {
		int high, low;

		if (s.ptr[i] != '%') {
			out[n++] = s.ptr[i];
			continue;
		}
		if (i + 2 >= s.len || (high = hex_digit(s.ptr[i + 1])) < 0 || (low = hex_digit(s.ptr[i + 2])) < 0 ||
		    high + low == 0)
			return false;
		out[n++] = (char)(high * 16 + low);
		i += 2;
	}
	out[n] = 0;
	*ret = str_n(out, n);
	return true;
}

int manifest_format(struct arena *arena, const struct manifest *m, struct str *ret, struct err *err)
{
	struct buf out;

	buf_init(&out, arena, SNAPSHOT_MANIFEST_MAX);
	buf_lit(&out, HEADER "\n");
	for (size_t i = 0; i < m->pack_count; i++)
		buf_printf(&out, "p %.*s %llu\n", STR_ARG(m->packs[i].hash), (unsigned long long)m->packs[i].size);
	for (size_t i = 0; i < m->count; i++) {
		const struct snap_entry *e = &m->entries[i];

		buf_printf(&out, "%c ", (char)e->kind);
		if (e->kind == SNAP_FILE)
			buf_printf(&out, "%o %lld %llu %.*s %zu %llu ", e->mode, (long long)e->mtime_ns,
				   (unsigned long long)e->size, STR_ARG(e->hash), e->pack,
				   (unsigned long long)e->offset);
		else if (e->kind == SNAP_DIR)
			buf_printf(&out, "%o %d ", e->mode, e->opaque);
		else if (e->kind == SNAP_LINK) {
			buf_printf(&out, "%lld ", (long long)e->mtime_ns);
			add_escaped(&out, e->target);
			buf_char(&out, ' ');
		}
		add_escaped(&out, e->path);
		buf_char(&out, '\n');
	}
	if (out.overflow)
		return err_set(err, ERR_TOO_LARGE, "the list of the files that a command left is larger than %zu MiB",
			       SNAPSHOT_MANIFEST_MAX / MIB);
	*ret = buf_str(&out);
	return 0;
}

/* --- reading --- */

static bool take_word(struct str *line, struct str *ret)
{
	return str_cut(line, ' ', ret) && ret->len;
}

static bool take_number(struct str *line, uint64_t max, uint64_t *ret)
{
	struct str word;
	int64_t n;

	if (!take_word(line, &word) || !str_to_i64(word, &n) || n < 0 || (uint64_t)n > max)
		return false;
	*ret = (uint64_t)n;
	return true;
}

static bool take_mode(struct str *line, uint32_t *ret)
{
	struct str word;
	uint32_t mode = 0;

	if (!take_word(line, &word) || word.len > 4)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		if (word.ptr[i] < '0' || word.ptr[i] > '7')
			return false;
		mode = mode * 8 + (uint32_t)(word.ptr[i] - '0');
	}
	*ret = mode;
	return mode <= 0777;
}

static bool take_time(struct str *line, int64_t *ret)
{
	struct str word;

	return take_word(line, &word) && str_to_i64(word, ret);
}

static bool take_hash(struct str *line, struct str *ret)
{
	if (!take_word(line, ret) || ret->len != HASH_LEN)
		return false;
	for (size_t i = 0; i < HASH_LEN; i++)
		if (!((ret->ptr[i] >= '0' && ret->ptr[i] <= '9') || (ret->ptr[i] >= 'a' && ret->ptr[i] <= 'f')))
			return false;
	return true;
}

/* Below "home" or "files", and nowhere else. */
static bool is_path(struct str path)
{
	struct str rest = path, part;
	size_t n = 0;

	if (path.len > SNAPSHOT_PATH_MAX || !path.len || path.ptr[path.len - 1] == '/')
		return false;
	while (str_cut(&rest, '/', &part)) {
		if (!part.len || part.len > 255 || str_is(part, ".") || str_is(part, ".."))
			return false;
		if (n == 0 && !str_is(part, SNAPSHOT_HOME) && !str_is(part, SNAPSHOT_FILES))
			return false;
		n++;
	}
	return n > 1 && n <= SNAPSHOT_DEPTH_MAX;
}

static bool take_file(struct str *line, const struct manifest *m, struct snap_entry *e)
{
	uint64_t pack;

	if (!take_mode(line, &e->mode) || !take_time(line, &e->mtime_ns) ||
	    !take_number(line, INT64_MAX / 2, &e->size) || !take_hash(line, &e->hash) ||
	    !take_number(line, SNAPSHOT_PACKS_MAX, &pack) || !take_number(line, INT64_MAX / 2, &e->offset))
		return false;
	e->pack = (size_t)pack;
	return e->pack < m->pack_count && e->offset + e->size <= m->packs[e->pack].size;
}

static bool take_entry(struct arena *arena, struct str line, char kind, struct manifest *m)
{
	struct snap_entry e = {.kind = (enum snap_kind)kind};
	struct str target;
	uint64_t opaque = 0;
	bool ok = kind == SNAP_FILE   ? take_file(&line, m, &e)
		  : kind == SNAP_DIR  ? take_mode(&line, &e.mode) && take_number(&line, 1, &opaque)
		  : kind == SNAP_LINK ? take_time(&line, &e.mtime_ns) && take_word(&line, &target) &&
						unescape(arena, target, &e.target) && e.target.len <= SNAPSHOT_PATH_MAX
				      : kind == SNAP_GONE;

	e.opaque = opaque != 0;
	if (!ok || !unescape(arena, line, &e.path) || !is_path(e.path) || m->count == SNAPSHOT_FILES_MAX ||
	    (m->count && str_cmp(m->entries[m->count - 1].path, e.path) >= 0))
		return false;
	manifest_add(arena, m, e);
	return true;
}

static bool take_pack(struct arena *arena, struct str line, struct manifest *m)
{
	struct snap_pack pack;

	if (m->pack_count == SNAPSHOT_PACKS_MAX || !take_hash(&line, &pack.hash) ||
	    !take_number(&line, INT64_MAX / 2, &pack.size) || line.len)
		return false;
	ARENA_ROOM(arena, m->packs, m->pack_count, m->pack_cap);
	m->packs[m->pack_count++] = pack;
	return true;
}

int manifest_parse(struct arena *arena, struct str text, struct manifest *ret, struct err *err)
{
	struct manifest m = {0};
	struct str rest = text, line;
	size_t number = 1;
	bool ok = str_ends(text, STR("\n")) && str_cut(&rest, '\n', &line) && str_is(line, HEADER);

	while (ok && rest.len && str_cut(&rest, '\n', &line)) {
		number++;
		ok = line.len > 2 && line.ptr[1] == ' ';
		if (ok && line.ptr[0] == 'p')
			ok = m.count == 0 && take_pack(arena, str_from(line, 2), &m);
		else if (ok)
			ok = take_entry(arena, str_from(line, 2), line.ptr[0], &m);
	}
	if (!ok)
		return err_set(err, ERR_CORRUPT, "line %zu of the list of kept files is damaged", number);
	*ret = m;
	return 0;
}

/* --- entries --- */

void manifest_add(struct arena *arena, struct manifest *m, struct snap_entry entry)
{
	ARENA_ROOM(arena, m->entries, m->count, m->cap);
	m->entries[m->count++] = entry;
	m->files += entry.kind == SNAP_FILE;
	m->bytes += entry.kind == SNAP_FILE ? entry.size : 0;
}

static int by_path(const void *a, const void *b)
{
	return str_cmp(((const struct snap_entry *)a)->path, ((const struct snap_entry *)b)->path);
}

void manifest_sort(struct manifest *m)
{
	if (m->count)
		qsort(m->entries, m->count, sizeof *m->entries, by_path);
}

const struct snap_entry *manifest_find(const struct manifest *m, struct str path)
{
	struct snap_entry key = {.path = path};

	return m->count ? bsearch(&key, m->entries, m->count, sizeof *m->entries, by_path) : NULL;
}

bool snap_entry_same(const struct snap_entry *a, const struct snap_entry *b)
{
	if (a->kind != b->kind || a->mode != b->mode || a->opaque != b->opaque)
		return false;
	if (a->kind == SNAP_FILE)
		return a->size == b->size && a->mtime_ns == b->mtime_ns && str_eq(a->hash, b->hash);
	return a->kind != SNAP_LINK || (a->mtime_ns == b->mtime_ns && str_eq(a->target, b->target));
}

/* --- changes --- */

static bool covers(const struct snap_entry *e)
{
	return e->kind != SNAP_DIR || e->opaque || e->is_cover;
}

/* True: a change at the path itself, or one above it that removes what is below. */
static bool is_replaced(const struct manifest *delta, struct str path)
{
	if (manifest_find(delta, path))
		return true;
	for (size_t i = path.len; i-- > 0;)
		if (path.ptr[i] == '/') {
			const struct snap_entry *e = manifest_find(delta, str_first(path, i));

			if (e && covers(e))
				return true;
		}
	return false;
}

/* A content that a pack already has need not be written again. */
static void reuse_contents(struct arena *arena, const struct manifest *base, struct manifest *m)
{
	struct strmap *known = strmap_new(arena);

	for (size_t i = 0; i < base->count; i++)
		if (base->entries[i].kind == SNAP_FILE)
			*strmap_put(known, base->entries[i].hash, NULL) = i + 1;
	for (size_t i = 0; i < m->count; i++) {
		struct snap_entry *e = &m->entries[i];
		const size_t *at = e->kind == SNAP_FILE && e->pack == SNAP_NEW ? strmap_find(known, e->hash) : NULL;

		if (at && base->entries[*at - 1].size == e->size) {
			e->pack = base->entries[*at - 1].pack;
			e->offset = base->entries[*at - 1].offset;
		}
	}
}

/* Numbers the packs that are used again. */
static void take_packs(struct arena *arena, const struct manifest *base, struct manifest *m)
{
	size_t *number = ARENA_ARRAY(arena, size_t, base->pack_count + 1);

	for (size_t i = 0; i < m->count; i++) {
		struct snap_entry *e = &m->entries[i];

		if (e->kind != SNAP_FILE || e->pack == SNAP_NEW)
			continue;
		if (!number[e->pack]) {
			ARENA_ROOM(arena, m->packs, m->pack_count, m->pack_cap);
			m->packs[m->pack_count++] = base->packs[e->pack];
			number[e->pack] = m->pack_count;
		}
		e->pack = number[e->pack] - 1;
	}
}

void manifest_apply(struct arena *arena, const struct manifest *base, const struct manifest *delta,
		    struct manifest *ret)
{
	struct manifest m = {0};

	for (size_t i = 0; i < base->count; i++)
		if (!is_replaced(delta, base->entries[i].path))
			manifest_add(arena, &m, base->entries[i]);
	for (size_t i = 0; i < delta->count; i++)
		if (!delta->entries[i].is_cover)
			manifest_add(arena, &m, delta->entries[i]);
	manifest_sort(&m);
	reuse_contents(arena, base, &m);
	take_packs(arena, base, &m);
	*ret = m;
}
