/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How files become documents. Each family says which files are its own and what is in them. A file that its family
 * cannot read is plain text: one bad file is never lost.
 */
#include "base/fatal.h"
#include "base/limits.h"
#include "home/search/search_internal.h"

#define AREAS_MAX 8 /* bits of a row of the index */

/* All sources of all families: begins with NULL, ends with NULL. *ret_family is where the walk is. */
static const struct search_source *next_source(const struct search_source *source, size_t *family)
{
	if (source && (++source)->area)
		return source;
	*family += source != NULL;
	while (families[*family] && !families[*family]->search)
		++*family;
	return families[*family] ? families[*family]->search : NULL;
}

/* An area may have several sources, and its number is that of its first. */
static size_t all_areas(const char *names[AREAS_MAX])
{
	const struct search_source *s = NULL;
	size_t family = 0, count = 0;

	while ((s = next_source(s, &family))) {
		size_t i = 0;

		while (i < count && strcmp(names[i], s->area) != 0)
			i++;
		if (i == AREAS_MAX)
			fatal("the search index has no bit for the area %s", s->area);
		names[i] = s->area;
		count = i == count ? count + 1 : count;
	}
	return count;
}

unsigned search_area(struct str name)
{
	const char *names[AREAS_MAX];
	size_t count = all_areas(names);

	for (size_t i = 0; i < count; i++)
		if (str_is(name, names[i]))
			return 1u << i;
	return 0;
}

const char *search_area_name(unsigned area)
{
	const char *names[AREAS_MAX];
	size_t count = all_areas(names);

	for (size_t i = 0; i < count; i++)
		if (area == 1u << i)
			return names[i];
	return "";
}

struct str search_areas(struct arena *arena, const char *separator)
{
	const char *names[AREAS_MAX];
	size_t count = all_areas(names);
	struct buf b;

	buf_init(&b, arena, KIB);
	for (size_t i = 0; i < count; i++)
		buf_printf(&b, "%s%s", i ? separator : "", names[i]);
	return buf_str(&b);
}

const struct search_source *search_source_of(struct wpath path)
{
	const struct search_source *s = NULL;
	size_t family = 0;

	while ((s = next_source(s, &family)) && !s->owns(path))
		;
	return s;
}

const char *search_place(size_t index)
{
	const struct search_source *s = NULL;
	size_t family = 0;

	while ((s = next_source(s, &family)))
		for (const char *const *place = s->places; *place; place++)
			if (index-- == 0)
				return *place;
	return NULL;
}

static void plain_text(struct wpath path, struct str bytes, int64_t mtime_ns, search_emit emit, void *arg)
{
	struct search_doc doc = {.title = wpath_name(path), .body = bytes, .time_ns = mtime_ns};

	emit(arg, &doc);
}

bool search_documents(struct arena *arena, const struct search_source *source, struct wpath path, struct str bytes,
		      int64_t mtime_ns, search_emit emit, void *arg)
{
	struct err err;

	if (memchr(bytes.ptr ? bytes.ptr : "", 0, bytes.len < 8 * KIB ? bytes.len : 8 * KIB))
		return true;
	if (source->documents && source->documents(arena, path, bytes, mtime_ns, emit, arg, &err) == 0)
		return true;
	plain_text(path, bytes, mtime_ns, emit, arg);
	return !source->documents;
}
