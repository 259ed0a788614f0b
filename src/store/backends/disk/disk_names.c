/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one directory, read at once and sorted. getdents64 with a large buffer instead of readdir(): it needs no
 * second descriptor and no allocation per directory, and gives the kind of an entry without a stat.
 */
#include <dirent.h>
#include <errno.h>

#include "store/backends/disk/disk.h"

/* A directory's names are kept in memory while it is read; this bounds them to what uint32_t can address. */
#define NAMES_TEXT_MAX ((size_t)UINT32_MAX)

static unsigned char type_of_mode(mode_t mode)
{
	return (unsigned char)IFTODT(mode);
}

static int add_name(struct disk_names *names, const char *name, unsigned char type, struct err *err)
{
	size_t len = strlen(name);
	struct disk_name_ref *ref;

	if (names->len + len + 1 > NAMES_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE, "the directory has more names than can be listed; split it");
	if (names->len + len + 1 > names->cap) {
		names->cap = names->cap ? names->cap * 2 : 4096;
		names->text = xrealloc(names->text, names->cap);
	}
	HEAP_ROOM(names->refs, names->count, names->ref_cap);
	ref = &names->refs[names->count++];
	*ref = (struct disk_name_ref){.at = (uint32_t)names->len,
				      .len = (uint32_t)len,
				      .type = type,
				      .valid = wpath_name_ok(str_n(name, len))};
	memcpy(names->text + names->len, name, len + 1);
	names->len += len + 1;
	return 0;
}

static int take_entry(int dir, const struct dirent64 *e, bool all, struct disk_names *names, struct err *err)
{
	const char *name = e->d_name;
	unsigned char type = e->d_type;

	if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
		return 0;
	if (!all && disk_name_reserved(name)) {
		disk_sweep_name(dir, name);
		return 0;
	}
	if (type == DT_UNKNOWN) {
		struct stat st;

		if (disk_lstat(dir, name, &st) < 0)
			return 0; /* already gone */
		type = type_of_mode(st.st_mode);
	}
	return add_name(names, name, type, err);
}

int disk_names_read(int dir, bool all, struct disk_names *ret, struct err *err)
{
	_Alignas(struct dirent64) char buf[32 * 1024];
	struct disk_names names = {0};
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && (n = getdents64(dir, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; r == 0 && at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(buf + at);

			r = take_entry(dir, e, all, &names, err);
			at += e->d_reclen;
		}
	if (r == 0 && n < 0 && errno != ENOENT) /* ENOENT: the directory was removed while it was read */
		r = disk_fail(err, errno);
	if (r) {
		disk_names_release(&names);
		return r;
	}
	*ret = names;
	return 0;
}

static int compare(const void *a, const void *b, void *text)
{
	const struct disk_name_ref *x = a, *y = b;
	const char *base = text;
	size_t n = x->len < y->len ? x->len : y->len;
	int c = memcmp(base + x->at, base + y->at, n);
	int cx, cy;

	if (c)
		return c;
	cx = x->len > n ? (unsigned char)base[x->at + n] : x->type == DT_DIR ? '/' : -1;
	cy = y->len > n ? (unsigned char)base[y->at + n] : y->type == DT_DIR ? '/' : -1;
	return cx - cy;
}

static void sort_range(struct disk_names *names, size_t from, size_t count)
{
	if (count > 1)
		qsort_r(names->refs + from, count, sizeof(*names->refs), compare, names->text);
}

void disk_names_sort(struct disk_names *names)
{
	sort_range(names, names->sorted, names->count - names->sorted);
	names->sorted = names->count;
}

static void swap_refs(struct disk_name_ref *a, struct disk_name_ref *b)
{
	struct disk_name_ref ref = *a;

	*a = *b;
	*b = ref;
}

/* Restores the heap, in which a parent is not less than its children, after its element `i` became less. */
static void sift_down(struct disk_name_ref *heap, size_t count, size_t i, void *text)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= count)
			return;
		if (child + 1 < count && compare(&heap[child], &heap[child + 1], text) < 0)
			child++;
		if (compare(&heap[i], &heap[child], text) >= 0)
			return;
		swap_refs(&heap[i], &heap[child]);
		i = child;
	}
}

/* The first page of a large directory: a heap of the least names so far, which most names need only be compared with.
 */
void disk_names_sort_first(struct disk_names *names, size_t count)
{
	struct disk_name_ref *refs = names->refs;

	if (count <= names->sorted)
		return;
	if (names->sorted || count >= names->count / 8) {
		disk_names_sort(names);
		return;
	}
	for (size_t i = count / 2; i > 0; i--)
		sift_down(refs, count, i - 1, names->text);
	for (size_t i = count; i < names->count; i++)
		if (compare(&refs[i], &refs[0], names->text) < 0) {
			swap_refs(&refs[i], &refs[0]);
			sift_down(refs, count, 0, names->text);
		}
	sort_range(names, 0, count);
	names->sorted = count;
}

/* The first of the sorted names that is not before the one at `key`, which is in the text of the names, too. */
static size_t find_place(const struct disk_names *names, const struct disk_name_ref *key)
{
	size_t low = 0, high = names->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare(&names->refs[mid], key, names->text) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Puts the name at the end of the text, where it can be compared with the others. False: there is no room. */
static bool borrow_text(struct disk_names *names, const char *name, unsigned char type, struct disk_name_ref *ret)
{
	size_t len = strlen(name);

	if (names->len + len + 1 > NAMES_TEXT_MAX)
		return false;
	if (names->len + len + 1 > names->cap) {
		names->cap = names->cap * 2 + len + 1;
		names->text = xrealloc(names->text, names->cap);
	}
	memcpy(names->text + names->len, name, len + 1);
	*ret = (struct disk_name_ref){.at = (uint32_t)names->len, .len = (uint32_t)len, .type = type};
	return true;
}

static bool is_same(const struct disk_names *names, size_t i, const struct disk_name_ref *key)
{
	return i < names->count && compare(&names->refs[i], key, names->text) == 0;
}

static void move_refs(struct disk_names *names, size_t to, size_t from)
{
	memmove(names->refs + to, names->refs + from, (names->count - from) * sizeof(*names->refs));
}

bool disk_names_put(struct disk_names *names, const char *name, unsigned char type, disk_names_hook *hook, void *arg)
{
	struct disk_name_ref ref;
	size_t i;

	if (!borrow_text(names, name, type, &ref))
		return false;
	i = find_place(names, &ref);
	if (is_same(names, i, &ref)) { /* another kind counts as another name */
		if (names->refs[i].type == type)
			return true;
		hook(arg, names, &names->refs[i], -1);
		names->refs[i].type = type;
		hook(arg, names, &names->refs[i], 1);
		return true;
	}
	ref.valid = wpath_name_ok(str_n(name, ref.len));
	names->len += ref.len + 1;
	HEAP_ROOM(names->refs, names->count, names->ref_cap);
	move_refs(names, i + 1, i);
	names->refs[i] = ref;
	names->sorted = ++names->count;
	hook(arg, names, &names->refs[i], 1);
	return true;
}

void disk_names_remove(struct disk_names *names, const char *name, unsigned char type, disk_names_hook *hook, void *arg)
{
	struct disk_name_ref ref;
	size_t i;

	if (!borrow_text(names, name, type, &ref))
		return; /* then the next name that is put fails, too */
	i = find_place(names, &ref);
	if (!is_same(names, i, &ref))
		return;
	hook(arg, names, &names->refs[i], -1);
	names->dead += ref.len + 1;
	move_refs(names, i, i + 1);
	names->sorted = --names->count;
}

void disk_names_release(struct disk_names *names)
{
	free(names->text);
	free(names->refs);
	*names = (struct disk_names){0};
}
