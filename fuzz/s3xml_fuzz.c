/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XML of S3 answers. Beyond "does not crash": what is accepted has an outermost element that ends last, lists are
 * in key order, and a text never grows by being decoded.
 */
#include <stdint.h>
#include <stdlib.h>

#include "store/backends/s3/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

struct seen {
	size_t size;
	bool outermost;
};

static int visit(void *arg, struct str parent, struct str name, unsigned depth, struct str text, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	require(!s->outermost && name.len && depth < S3_XML_DEPTH_MAX && (depth == 0) == (parent.len == 0));
	require(text.len <= s->size);
	s->outermost = depth == 0;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_SCOPE struct arena *arena = arena_new();
	struct str xml = str_n(data, size);
	struct seen seen = {.size = size};
	struct s3_listing list;
	struct s3_upload *uploads;
	struct s3_error error;
	struct err err = {0};
	size_t count;

	if (s3_xml_walk(arena, xml, visit, &seen, &err) == 0)
		require(seen.outermost);
	else
		require(err.kind == ERR_CORRUPT);
	if (s3_xml_listing(arena, xml, &list, &err) == 0)
		for (size_t i = 1; i < list.count; i++)
			require(str_cmp(list.objects[i - 1].key, list.objects[i].key) <= 0);
	(void)s3_xml_uploads(arena, xml, &uploads, &count, &err);
	s3_xml_error(arena, xml, &error);
	require(error.code.len <= size);
	(void)s3_time(xml);
	return 0;
}
